"""A model is a callable: messages in, one Reply out; who answers is nobody else's business.

    >>> def parrot(messages, tools=None):
    ...     return Reply(messages[-1].content)
    >>> parrot([Message("user", render("say {word}", {"word": "hello"}))]).text
    'say hello'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

ROLES = ("system", "user", "assistant", "tool")
STOP_REASONS = ("end", "tool_use", "max_tokens", "refusal")
KINDS = ("auth", "rate_limit", "overloaded", "timeout", "bad_request", "refused", "connection", "other")
Template = str | Callable[[Any], str]  # text with {key} in it, or a function of the state


class ModelError(Exception):
    """A model that could not answer: one sentence for a person, and its `kind`, one word for a program.

    ModelError(kind, sentence), where the kind is one of KINDS; ModelError(sentence) is of the kind "other".
    """

    def __init__(self, kind: str, message: str | None = None) -> None:
        if message is None:
            kind, message = "other", kind
        elif kind not in KINDS:
            raise ValueError(f"kind {kind!r}: a ModelError is of one of the kinds {', '.join(KINDS)}")
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class ToolCall:
    """A model's wish to have the tool `name` run; `id` ties the result to the wish."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class ToolSpec:
    """What a model is told about a tool; `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Message:
    """One turn of a conversation: a role (system, user, assistant or tool) and what it said.

    An assistant's message may carry `tool_calls`; a tool's message answers the call `tool_call_id`.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"message role {self.role!r}: a role is one of {', '.join(ROLES)}")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))


@dataclass(frozen=True)
class Reply:
    """What a model answered: text, the tools it wants run, why it stopped, and tokens by kind in `usage`.

    stop_reason: "end" (it said all it wanted), "tool_use" (it waits for results), "max_tokens" (it was cut off at a
    limit) or "refusal" (it would not answer). A reply that asks for tools has not ended, so with `tool_calls` the
    reason "end" becomes "tool_use". usage: input_tokens and output_tokens where the model counts them.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    stop_reason: str = "end"
    usage: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.stop_reason not in STOP_REASONS:
            raise ValueError(f"stop_reason {self.stop_reason!r}: a reply stops for one of {', '.join(STOP_REASONS)}")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        if self.tool_calls and self.stop_reason == "end":
            object.__setattr__(self, "stop_reason", "tool_use")


class Model(Protocol):
    """Any `model(messages, tools=None) -> Reply`: a function does. It raises ModelError when it cannot answer."""

    def __call__(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None, /) -> Reply: ...


def name_of(fn: Any) -> str:
    """The name of a function, or of a callable object: its own `name`, or else its type's."""
    name = getattr(fn, "__name__", None) or getattr(fn, "name", None)
    return name if isinstance(name, str) else type(fn).__name__


_KEYS = re.compile(r"""
    \b (?: sk | pk | rk ) [-_] (?= [\w-]*\d ) [\w-]{12,}
  | \b gh[opsu]_ \w{20,} | \b github_pat_ \w{20,}
  | \b AKIA [0-9A-Z]{16} \b | \b AIza [\w-]{30,} | \b xox[abprs]- [\w-]{10,} | \b hf_ \w{20,}
  | \b Bearer \s+ [\w.~+/=-]{12,}
""", re.VERBOSE)


def without_keys(text: str) -> str:
    """The text with "[key]" in place of whatever has the form of a secret key."""
    return _KEYS.sub("[key]", text)


def checked(reply: Any, model: Any) -> Reply:
    """`reply` if it is a Reply; ModelError if the model broke the contract."""
    if isinstance(reply, Reply):
        return reply
    raise ModelError(f"model {name_of(model)!r} returned a {type(reply).__name__}; a model returns Reply(text)")


def render(template: Template, state: Mapping[str, Any]) -> str:
    """The template with every `{key}` replaced by `str(state[key])`; `{{` and `}}` are literal braces.

    Nothing else is filled in: no attribute, no index, no format. A value is never read as a template, so a
    reply that contains "{password}" keeps those ten characters. A function of the state is called instead.
    ValueError for a malformed template, KeyError for a key that the state does not have.
    """
    if callable(template):
        text = template(state)
        if not isinstance(text, str):
            raise TypeError(f"prompt function {name_of(template)!r} returned {text!r}; it returns the prompt, as text")
        return text
    return "".join(literal + (str(look_up(state, key)) if key else "") for literal, key in pieces(template))


def look_up(state: Mapping[str, Any], key: str) -> Any:
    """`state[key]`; the KeyError lists the keys there are."""
    try:
        return state[key]
    except KeyError as error:
        if error.args != (key,):  # the run's blackboard says it itself, and better: who should have written the key
            raise
        raise KeyError(f"no {key!r} on the blackboard; it holds {', '.join(map(repr, state)) or 'nothing'}.") from None


def well_formed(template: Template) -> Template:
    """The template, if `render` can fill it in; a ValueError now rather than in the middle of a run."""
    if isinstance(template, str):
        list(pieces(template))
    elif not callable(template):
        raise TypeError(f"a prompt is text with {{key}} in it, or a function of the state, not {template!r}")
    return template


_PIECE = re.compile(r"\{\{ | \}\} | \{ ([^{}]*) \} | [{}]", re.VERBOSE)


def pieces(template: str) -> Iterator[tuple[str, str | None]]:
    """(literal text, the key after it or None) from left to right; ValueError for anything but `{key}`."""
    start = 0
    for match in _PIECE.finditer(template):
        literal, found, key = template[start : match.start()], match.group(), match.group(1)
        start = match.end()
        if key is not None:
            yield literal, _key(key)
        elif len(found) == 2:
            yield literal + found[0], None
        else:
            near = template[max(0, start - 15) : start + 15]
            raise ValueError(f"template: the {found} in {near!r} has no partner; if it is text, double it: {found * 2}")
    yield template[start:], None


_MORE_THAN_A_KEY = re.compile(r"(\w+)([.\[!:]).*", re.DOTALL)
_ASKS_FOR = {".": "an attribute", "[": "an index", "!": "a conversion", ":": "a format"}


def _key(field: str) -> str:
    """`field`, if it is a key; else a ValueError that says which part may not stand there, and why."""
    if field.isidentifier():
        return field
    if more := _MORE_THAN_A_KEY.fullmatch(field):
        name, mark = more.groups()
        why = f"{field[len(name):]!r} asks for {_ASKS_FOR[mark]}, and a template only looks up keys, as in {{key}}"
    elif field == "" or field.isdigit():
        why = "keys go by name, not by position, as in {key}"
    else:
        why = "it is no name of a key; if it is text, double its braces: {{ and }}"
    raise ValueError(f"template: {{{field}}} is refused: {why}")
