"""A node is any function of the blackboard; here are the few that most workflows need.

    graph.add_node(tool_node("count", len, "text", "length"))
    graph.add_node(llm_node("rate", "From 0 to 1, how urgent is this? {text}", "score", model, parse=float))
    graph.add_router("rate", band_router("score", {"hot": 0.8, "warm": 0.5}, below="cold"), {...})

What is made here are objects of module-level classes: they pickle when what they hold does, so that a pool of
processes can run them.
"""

from __future__ import annotations

import contextvars
import inspect
import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from . import clock
from .crew import here
from .engine import Node, described, emit
from .gates import human_node
from .models.base import Message, Model, ModelError, Reply, Template, checked, look_up, name_of, render, well_formed
from .nested import graph_node, map_node
from .state import MissingKey

__all__ = ["band_router", "fallback", "graph_node", "human_node", "key_router", "llm_node", "map_node", "render",
           "retry", "timeout", "tool_node"]

Parse = Callable[[str], Any] | Sequence[str] | set[str] | frozenset[str] | None


# ---- a plain function


def tool_node(name: str, fn: Callable[..., Any], in_keys: str | Sequence[str], out_key: str | None, *,
              max_visits: int | None = None, on_error: str | None = None) -> Node:
    """A node that calls `fn` with the values of `in_keys`, in that order, and writes its result to `out_key`.

    With `out_key=None` the function returns the mapping to merge. TypeError if `fn` cannot take that many values.
    """
    keys = (in_keys,) if isinstance(in_keys, str) else tuple(in_keys)
    if not all(isinstance(key, str) for key in keys) or not isinstance(out_key, (str, type(None))):
        raise TypeError(f"tool_node {name!r}: keys of the blackboard are strings; got {in_keys!r} and {out_key!r}")
    try:
        inspect.signature(fn).bind(*keys)
    except ValueError:
        pass  # some builtins do not tell their signature
    except TypeError as error:
        raise TypeError(f"tool_node {name!r}: {_shown(fn)} cannot be called with the values of {keys!r}: "
                        f"{error}") from None
    return Node(name, CallTool(fn, keys, out_key), "tool", max_visits, on_error)


@dataclass(frozen=True)
class CallTool:
    """The function of a tool_node."""

    fn: Callable[..., Any]
    in_keys: tuple[str, ...]
    out_key: str | None

    def __repr__(self) -> str:
        return f"<{_shown(self.fn)}({', '.join(self.in_keys)}) -> {self.out_key or 'a mapping'}>"

    def __call__(self, state: Mapping[str, Any]) -> Any:
        result = self.fn(*[look_up(state, key) for key in self.in_keys])
        if self.out_key is None or inspect.iscoroutine(result):
            return result  # the engine says what to do about a coroutine
        return {self.out_key: result}


# ---- one model call


def llm_node(name: str, prompt: Template, out_key: str, model: Model, parse: Parse = None,
             system: Template | None = None, *,
             max_visits: int | None = None, on_error: str | None = None) -> Node:
    """A node that makes ONE model call, without tools, and writes the reply to `out_key`.

    `prompt` and `system` are templates with `{key}` (see `render`), or functions of the blackboard. `parse` makes
    a value of the reply: float, int, json.loads, any other function of the text, or a list of labels, of which
    the reply must be one, give or take case and the space around it. A reply that does not parse is a ValueError
    that quotes it. A reply cut off at the model's limit is kept; the event says stop_reason max_tokens.
    """
    if not callable(model):
        raise TypeError(f"llm_node {name!r}: a model is a callable (messages) -> Reply, not {model!r}")
    ask = AskModel(well_formed(prompt), out_key, model, _parser(parse), system and well_formed(system))
    return Node(name, ask, "llm", max_visits, on_error)


@dataclass(frozen=True)
class AskModel:
    """The function of an llm_node. The model is called in one place, with messages and nothing else."""

    prompt: Template
    out_key: str
    model: Model
    parse: Parser | None
    system: Template | None

    def __repr__(self) -> str:
        return f"<ask {name_of(self.model)} -> {self.out_key}>"

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        messages = [Message("user", render(self.prompt, state))]
        if self.system:
            messages.insert(0, Message("system", render(self.system, state)))
        reply = self.ask(messages)
        if reply.stop_reason == "refusal":
            raise ModelError("refused", f"model {name_of(self.model)!r} refused to answer"
                                        + (f": {reply.text}" if reply.text else ""))
        if reply.tool_calls:
            raise ModelError(f"model {name_of(self.model)!r} asked for the tool {reply.tool_calls[0].name!r}, and an "
                             f"llm_node has no tools; an agent_node has")
        return {self.out_key: self.parse(reply.text) if self.parse else reply.text}

    def ask(self, messages: list[Message]) -> Reply:
        """The model's reply; an `llm` event tells how long it took and how it ended."""
        event: dict[str, Any] = {"name": name_of(self.model), "stop_reason": None, "usage": {}, "error": None}
        started = clock.now()
        try:
            reply = checked(self.model(messages), self.model)
            event.update(stop_reason=reply.stop_reason, usage=reply.usage)
            return reply
        except BaseException as error:
            event.update(error=described(error))
            raise
        finally:
            emit("llm", {**event, "ms": 1000 * (clock.now() - started)})


@dataclass(frozen=True)
class Parser:
    """`convert(text)`; a ValueError that quotes the text and says what was `wanted` if that fails."""

    convert: Callable[[str], Any]
    wanted: str | None = None

    def __call__(self, text: str) -> Any:
        try:
            return self.convert(text)
        except Exception as error:
            wanted = self.wanted or f"what {name_of(self.convert)} takes ({described(error)})"
            quoted = repr(text if len(text) <= 80 else text[:77] + "...")
            raise ValueError(f"the reply {quoted} is not {wanted}; the prompt should ask for nothing else") from error


def _parser(parse: Parse) -> Parser | None:
    """What `parse=` means; a TypeError or ValueError for what cannot be meant."""
    if parse is None or isinstance(parse, Parser):
        return parse
    if parse is bool:
        raise TypeError("parse=bool takes every reply for True; parse=['yes', 'no'] returns one of the two")
    for known, convert, wanted in ((float, _finite, "a plain number"), (int, int, "a whole number"),
                                   (json.loads, _plain_json, "JSON")):
        if parse is known:
            return Parser(convert, wanted)
    if callable(parse):
        return Parser(parse)
    if not isinstance(parse, (list, tuple, set, frozenset)) or not all(isinstance(label, str) for label in parse):
        raise TypeError(f"parse={parse!r}: parse is a function of the reply, or a list of labels, which are strings")
    labels = {_folded(label): label for label in parse}
    if not labels or len(labels) < len(parse):
        raise ValueError(f"parse={parse!r}: there must be labels, and no two alike but for case and space")
    listed = labels.values() if isinstance(parse, (list, tuple)) else sorted(labels.values())
    return Parser(_Choice(labels), f"one of {', '.join(map(repr, listed))}")


@dataclass(frozen=True)
class _Choice:
    labels: dict[str, str]  # as compared -> as declared

    def __call__(self, text: str) -> str:
        return self.labels[_folded(text)]


def _folded(text: str) -> str:
    return text.strip().casefold()


def _finite(text: str) -> float:
    """float(text), but not infinity and not nan, which compares as false with every threshold."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _plain_json(text: str) -> Any:
    return json.loads(text, parse_constant=_finite)  # NaN and Infinity are Python's, not JSON's


# ---- routers


@dataclass
class key_router:
    """A router that goes where the blackboard says: its label is `state[key]`, or `default` if that is missing or None.

        graph.add_router("classify", key_router("intent", default="chat"), {"task": "plan", "chat": "reply"})
    """

    key: str
    default: str | None = None

    def __call__(self, state: Mapping[str, Any]) -> Any:
        label = state.get(self.key)
        if label is None:
            label = self.default
        if label is None and look_up(state, self.key) is None:
            raise MissingKey(f"state[{self.key!r}] is None, and {self!r} has no default= to go to instead")
        return label


@dataclass
class band_router:
    """A router that goes by a number: its label is the highest band whose threshold `state[key]` reaches, or `below`.

        band_router("score", {"hot": 0.8, "warm": 0.5}, below="cold")      # 0.8 is hot, 0.5 is warm, 0.49 is cold
    """

    key: str
    bands: dict[str, float]
    below: str

    def __post_init__(self) -> None:
        wrong = [f"{label!r}: {low!r}" for label, low in self.bands.items() if not _is_number(low)]
        if not self.bands or wrong:
            raise ValueError(f"band_router({self.key!r}): bands say label -> lowest number, as in {{'hot': 0.8}}; "
                             f"got {', '.join(wrong) or 'none'}")
        if len(set(self.bands.values())) < len(self.bands):
            raise ValueError(f"band_router({self.key!r}): two bands begin at the same number: {self.bands!r}")
        if self.below in self.bands:
            raise ValueError(f"band_router({self.key!r}): below={self.below!r} is a band already; what lies below all "
                             "bands needs a label of its own")
        self.bands = dict(sorted(self.bands.items(), key=lambda band: band[1], reverse=True))

    @property
    def labels(self) -> list[str]:
        """Every label this router can return, the highest band first."""
        return [*self.bands, self.below]

    def __call__(self, state: Mapping[str, Any]) -> str:
        value = look_up(state, self.key)
        if not _is_number(value):
            raise TypeError(f"state[{self.key!r}] is {value!r}, and bands are for numbers; "
                            f"does the node that wrote it say parse=float?")
        return next((label for label, low in self.bands.items() if value >= low), self.below)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


# ---- wrappers: they take any function, and stay within one visit


class _Wrapper:
    """What wrappers share: they go by the name of the function they wrap, and show its signature."""

    fn: Callable[..., Any]

    def __repr__(self) -> str:
        settings = [f"{name}={_shown(value)}" for name, value in vars(self).items() if name != "fn"]
        return f"{type(self).__name__}({', '.join([_shown(self.fn), *settings])})"

    @property
    def __name__(self) -> str:
        return name_of(self.fn)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.fn


@dataclass(frozen=True, repr=False)
class retry(_Wrapper):
    """`fn`, called again when it fails: `attempts` calls at most, `delay` seconds apart, then `backoff` times that.

        Node("fetch", retry(timeout(fetch, 2), attempts=3, delay=0.5))      # waits 0.5 s, then 1 s

    on: the exception type, or the tuple of types, that is worth another try. The last error is raised as it is; each
    one before it is a `retry` event. A model or a tool is a function too: `model=retry(model, attempts=3)`.
    """

    fn: Callable[..., Any]
    attempts: int = 3
    delay: float = 0.0
    backoff: float = 2.0
    on: type[Exception] | tuple[type[Exception], ...] = Exception

    def __post_init__(self) -> None:
        _check_wrapped(self.fn, "retry")
        if not isinstance(self.attempts, int) or isinstance(self.attempts, bool) or self.attempts < 1:
            raise ValueError(f"retry: attempts={self.attempts!r} must be a whole number from 1: it counts the calls")
        _check_number(self.delay, "retry: delay", least=0)
        _check_number(self.backoff, "retry: backoff", least=1)
        kinds = self.on if isinstance(self.on, tuple) else (self.on,)
        if not kinds or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
            raise TypeError(f"retry: on={self.on!r} must be a type of Exception, or a tuple of them; "
                            "KeyboardInterrupt is none: it is a person, and is not tried again")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        wait = self.delay
        for attempt in range(1, self.attempts):
            try:
                return self.fn(*args, **kwargs)
            except self.on as error:
                emit("retry", {"attempt": attempt, "attempts": self.attempts, "error": described(error), "delay": wait})
            clock.sleep(wait)
            wait *= self.backoff
        return self.fn(*args, **kwargs)


@dataclass(frozen=True, repr=False)
class timeout(_Wrapper):
    """`fn`, waited for no longer than `seconds` of the run's clock: TimeoutError if it takes longer.

    The call runs in a daemon thread of its own, and a thread cannot be stopped: one that is late is left running,
    and what it returns or emits after that is dropped.
    """

    fn: Callable[..., Any]
    seconds: float

    def __post_init__(self) -> None:
        _check_wrapped(self.fn, "timeout")
        _check_number(self.seconds, "timeout: seconds", least=0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        over, context, box = threading.Event(), contextvars.copy_context(), clock.current().mailbox()
        context.run(_be_heard_until, over)
        worker = threading.Thread(target=context.run, args=(box.work, _outcome, self.fn, args, kwargs), daemon=True,
                                  name=f"timeout-{name_of(self.fn)}")
        with clock.current().running():
            box.expect()
            try:
                worker.start()
            except RuntimeError:  # no thread can be started here
                box.work(int)  # or virtual time would wait for ever for what was expected
                raise
            try:
                # A second look: a call that ends at the very moment is in time, whichever of the two wakes up first.
                arrived = box.take(self.seconds) or box.take(0)
            finally:
                over.set()
        for value, error in arrived:
            if error is not None:
                raise error
            return value
        raise TimeoutError(f"`{name_of(self.fn)}` took longer than {float(self.seconds)} s; "
                           "it was left running, not stopped")


def _outcome(fn: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, BaseException | None]:
    """(what the call returned, None), or (None, what it raised): the thread that waits will raise it."""
    try:
        return fn(*args, **kwargs), None
    except BaseException as error:
        return None, error


def _be_heard_until(over: threading.Event) -> None:
    """From here on, in this context, what is emitted reaches the run only until `over` is set."""
    inside = here.get()
    if inside is not None:
        run, visit = inside
        here.set((_Earshot(run, over), visit))


class _Earshot:
    """Stands before a run, and hears for it until the event is set."""

    def __init__(self, run: Any, over: threading.Event) -> None:
        self.run, self.over = run, over

    def hear(self, kind: str, event: Mapping[str, Any], visit: Any) -> None:
        if not self.over.is_set():
            self.run.hear(kind, event, visit)

    def nest(self, *args: Any) -> Any:
        return self.run.nest(*args, hear=self.hear)


class fallback(_Wrapper):
    """`fn`, and when it fails each of the `others` in turn, with the same arguments; the first result is the result.

        Node("weather", fallback(live, cached, guess))

    When all have failed, the last error is raised, in words that name them all. Each step down is a `fallback` event.
    """

    def __init__(self, fn: Callable[..., Any], *others: Callable[..., Any]) -> None:
        if not others:
            raise TypeError(f"fallback: there is nothing to fall back on; name a second function after {fn!r}")
        for each in (fn, *others):
            _check_wrapped(each, "fallback")
        self.fn, self.others = fn, others

    def __repr__(self) -> str:
        return f"fallback({', '.join(map(_shown, (self.fn, *self.others)))})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        failed = []
        for fn in (self.fn, *self.others):
            try:
                return fn(*args, **kwargs)
            except Exception as error:
                last, text = error, described(error)
                failed.append(f"`{name_of(fn)}` raised {text}")
                emit("fallback", {"failed": name_of(fn), "error": text})
        raise _saying(last, f"all {len(failed)} failed: {'; '.join(failed)}") from last


def _saying(error: Exception, text: str) -> Exception:
    """A new error of the same type that says `text`; a RuntimeError where that type wants more than a text."""
    try:
        return type(error)(text)
    except Exception:
        return RuntimeError(text)


def _shown(value: Any) -> str:
    """A function or a type by its name, anything else as it shows itself: a memory address tells nobody anything."""
    return name_of(value) if inspect.isroutine(value) or isinstance(value, type) else repr(value)


def _check_wrapped(fn: Any, wrapper: str) -> None:
    if isinstance(fn, Node):
        raise TypeError(f"{wrapper} wraps a function, and {fn.name!r} is a Node: wrap what it calls, the function or "
                        f"the model, as in tool_node({fn.name!r}, {wrapper}(fn, ...), ...)")
    if not callable(fn):
        raise TypeError(f"{wrapper} wraps a function, not {fn!r}")


def _check_number(value: Any, what: str, least: float) -> None:
    if not (_is_number(value) and least <= value < math.inf):
        raise ValueError(f"{what}={value!r} must be a number from {least}")
