"""A recording answers what was asked before as it was answered then: no key, no network, and the same words every time.

    model = recorded(openai_model("NAME"), "replies.jsonl")   # asks it, and writes down what it says
    model = recorded(None, "replies.jsonl")                   # from then on; what it never heard is a ModelError

The file holds one reply a line, beside the question in clear, so that a diff shows what changed. Nothing else of a call
gets into it, no header and no setting, and what has the form of a secret key is left out.
"""

from __future__ import annotations

import difflib
import hashlib
import heapq
import json
import os
import re
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ..clock import now, sleep
from .base import Message, Model, ModelError, Reply, ToolCall, ToolSpec, checked, name_of, without_keys

Question = list[dict[str, Any]]  # the messages, as they are written down


def recorded(model: Model | None, path: str | os.PathLike[str], *, timed: bool = False) -> Recording:
    """A model that answers from the file at `path`, and asks `model`, if there is one, what it does not find there.

    The n-th time that a question is asked it gets the n-th reply recorded to it. When there are no more, `model` is
    asked and its reply recorded; without a model the last one is given again. So a loop that asks five times for an
    opinion gets five, also when they are replayed. timed: a replay takes the seconds that the reply took, on the run's
    clock. FileNotFoundError if there is neither a model nor a file.
    """
    return Recording(model, path, timed)


class Take(NamedTuple):
    """One recorded reply: what was asked, the tools' names, what was said, by whom, and how long it took."""

    key: str
    asked: Question
    tools: list[str]
    reply: Reply
    model: str
    seconds: float
    line: int


class Recording:
    """What `recorded` makes. Nodes that run at once may ask it, and processes that run at once may share the file."""

    def __init__(self, model: Model | None, path: str | os.PathLike[str], timed: bool = False) -> None:
        self.model, self.path, self.timed = model, Path(path), timed
        if model is None and not self.path.is_file():
            raise FileNotFoundError(f"there is no recording at {str(path)!r}; recorded(model, path) makes one")
        self.takes: list[Take] = list(read(self.path)) if self.path.is_file() else []
        self.by_key: dict[str, list[Take]] = {}  # key -> the replies to that question, in order
        for take in self.takes:
            self.by_key.setdefault(take.key, []).append(take)
        self.times: Counter[str] = Counter()  # key -> how often it was asked
        self._turn = threading.Lock()

    def __call__(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> Reply:
        key = key_of(messages, tools)
        with self._turn:
            nth, takes = self.times[key], self.by_key.get(key, [])
            self.times[key] += 1
            take = takes[nth] if nth < len(takes) else takes[-1] if takes and self.model is None else None
        if take is None:
            return self._ask(key, messages, tools)
        if self.timed:
            sleep(take.seconds)
        return take.reply

    def __repr__(self) -> str:
        live = "none is asked" if self.model is None else f"else {name_of(self.model)} is asked"
        return f"Recording({str(self.path)!r}, {len(self.takes)} replies, {live})"

    @property
    def name(self) -> str:
        """That of the model, or of the one that was recorded."""
        if self.model is not None:
            return name_of(self.model)
        return self.takes[0].model if self.takes else "recording"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turn=threading.Lock())

    def _ask(self, key: str, messages: Sequence[Message], tools: Sequence[ToolSpec] | None) -> Reply:
        if self.model is None:
            raise ModelError(_unheard(self, question(messages), [tool.name for tool in tools or ()]))
        started = now()
        reply = checked(self.model(messages, tools), self.model)
        take = Take(key, question(messages), [tool.name for tool in tools or ()], reply, self.name,
                    round(now() - started, 3), self.takes[-1].line + 1 if self.takes else 1)
        with self._turn:
            append(self.path, as_line(take))
            self.takes.append(take)
            self.by_key.setdefault(key, []).append(take)
        return reply


# ---- what was asked


def question(messages: Sequence[Message]) -> Question:
    """The messages as plain data. A call is known by its position: its id is another one at every run."""
    number: dict[str | None, Any] = {}  # id of a call -> its position in the conversation
    for message in messages:
        for call in message.tool_calls:
            number[call.id] = len(number) + 1
    return [_plain(message, number) for message in messages]


def _plain(message: Message, number: Mapping[str | None, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["calls"] = [{"call": number[call.id], "name": call.name, "arguments": call.arguments}
                          for call in message.tool_calls]
    if message.role == "tool":
        plain["call"] = number.get(message.tool_call_id, message.tool_call_id)
    return plain


def key_of(messages: Sequence[Message], tools: Sequence[ToolSpec] | None) -> str:
    """A hash of what is asked: of the messages and the tools as JSON with sorted keys, 16 hexadecimal digits."""
    asked = {"messages": question(messages), "tools": [asdict(tool) for tool in tools or ()]}
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()[:16]


# ---- the file

_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")  # they break a line, or hide in one


def as_line(take: Take) -> str:
    """The take as one line of JSON, without the end of the line."""
    reply = {name: value for name, value in asdict(take.reply).items() if value}
    record = {"key": take.key, "asked": take.asked, "tools": take.tools, "reply": reply, "model": take.model,
              "seconds": take.seconds}
    text = json.dumps(_clean(record), ensure_ascii=False, default=str)
    return _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _clean(value: Any) -> Any:
    """The value with "[key]" for every secret key in a text of it, however deep."""
    if isinstance(value, str):
        return without_keys(value)
    if isinstance(value, Mapping):
        return {_clean(name): _clean(inner) for name, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def append(path: Path, line: str) -> None:
    """Adds the line, whole, in one write at the end: so several processes can do it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+", buffering=0) as file:
        # After a line that was cut off another would be lost with it.
        whole = not file.seek(0, os.SEEK_END) or (file.seek(-1, os.SEEK_END), file.read(1))[1] == b"\n"
        file.write((line if whole else f"\n{line}").encode() + b"\n")


def read(path: Path) -> Iterator[Take]:
    """The takes in the file. A line that is none is left out, with a warning: a run was killed while it wrote it."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield _take(json.loads(line), number)
        except (AttributeError, KeyError, TypeError, ValueError):
            warnings.warn(f"{path}, line {number}: no recorded reply, or half of one; it is left out", stacklevel=4)


def _take(record: Any, line: int) -> Take:
    said = dict(record["reply"])
    calls = tuple(ToolCall(**call) for call in said.pop("tool_calls", ()))
    _spoken(record["asked"])  # what cannot be shown is no question
    return Take(record["key"], record["asked"], record.get("tools", []), Reply(said.pop("text", ""), calls, **said),
                record.get("model", "recording"), record.get("seconds", 0.0), line)


# ---- what was never asked


def _unheard(recording: Recording, asked: Question, tools: list[str]) -> str:
    """What to say of a question that is not in the recording: beside the nearest one that is."""
    where = f"{str(recording.path)!r} holds no reply to {_quoted(_spoken(asked))}"
    way_out = "record one with recorded(model, path)"
    if not recording.takes:
        return f"{where}, nor to anything else; {way_out}"
    near = _nearest(_spoken(asked), recording.takes)
    there, here = _spoken(near.asked), _spoken(asked)
    if there == here:
        return f"{where} with these tools; line {near.line} has one with {_listed(near.tools, tools)}; {way_out}"
    at = len(os.path.commonprefix([there, here]))
    return (f"{where}; the nearest is in line {near.line}, which has {_quoted(there, at)} "
            f"where this has {_quoted(here, at)}; {way_out}")


def _spoken(asked: Question) -> str:
    """The question as text: each message on a line, after its role."""
    return "\n".join(f"{one['role']}: {one['content']}" + "".join(
        f" [{call['name']} {json.dumps(call['arguments'], default=str)}]" for call in one.get("calls", ()))
        for one in asked)


def _nearest(text: str, takes: Sequence[Take]) -> Take:
    """The take whose question is most like the text, by its last words: the first ones are often the same in all."""
    def likeness(take: Take, exactly: bool) -> float:
        matcher = difflib.SequenceMatcher(None, _spoken(take.asked)[-500:], text[-500:])
        return matcher.ratio() if exactly else matcher.quick_ratio()

    best = heapq.nlargest(8, takes, key=lambda take: likeness(take, False))
    return max(best, key=lambda take: likeness(take, True))


def _quoted(text: str, at: int | None = None) -> str:
    """Sixty characters of the text: its end, or what stands around the position `at`."""
    start = max(0, len(text) - 60 if at is None else at - 15)
    shown = text[start:start + 60]
    return repr(("..." if start else "") + shown + ("..." if start + 60 < len(text) else ""))


def _listed(there: list[str], here: list[str]) -> str:
    if there == here:
        return "tools of these names that are described otherwise"
    return f"the tools {', '.join(there)}" if there else "no tools"
