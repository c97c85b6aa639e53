"""A scripted model answers what it was told to, when it was told to: no key, no network, no surprise.

    >>> model = ScriptedModel(["yes", "no"], latency=1.5)    # 1.5 s a call, on the run's clock
    >>> model([Message("user", "Are you there?")]).text
    'yes'
    >>> model
    ScriptedModel('stub', 1 of 2 replies given)
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..clock import sleep
from .base import Message, ModelError, Reply, ToolSpec, checked, name_of

Answer = str | Reply | Exception
Script = Sequence[Answer] | Callable[[Sequence[Message], Sequence[ToolSpec] | None], Answer]
Latency = float | Sequence[float] | Callable[[Sequence[Message]], float]


class Asked(NamedTuple):
    """One question that a scripted model was asked."""

    messages: list[Message]
    tools: list[ToolSpec] | None


class ScriptedModel:
    """A model that answers from `script`: a list of replies in order, or a function (messages, tools) -> reply.

    A reply is a str, a Reply, or an Exception, which is raised. `latency` is in seconds: a number, a list with
    one for each call, or a function of the messages. `calls` lists what the model was asked. Any number of
    threads may ask, but nodes that run at once take the replies of a list in the order in which they come:
    give those a function, or a model each. A call past the end of a list is a ModelError. A pickled copy goes
    on from where it stood, and keeps its own `calls`.
    """

    def __init__(self, script: Script, latency: Latency = 0.0, name: str = "stub") -> None:
        if isinstance(script, Answer):
            raise TypeError(f"model {name!r}: a script is a list or a function; for one reply write [{script!r}]")
        self.name = name
        self.script = script if callable(script) else list(script)
        self.latency = list(latency) if isinstance(latency, Sequence) else latency
        self.calls: list[Asked] = []
        self._turn = threading.Lock()
        self._check()

    def __call__(self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None = None) -> Reply:
        with self._turn:
            turn = len(self.calls)
            self.calls.append(Asked(list(messages), None if tools is None else list(tools)))
        answer = self.script if callable(self.script) else self._nth(self.script, turn, "replies")
        sleep(self._seconds(turn, messages))
        if callable(answer):
            answer = answer(messages, tools)
        if isinstance(answer, Exception):
            raise answer
        return checked(Reply(answer) if isinstance(answer, str) else answer, self)

    def __repr__(self) -> str:
        if callable(self.script):
            return f"ScriptedModel({self.name!r}, answers from {name_of(self.script)}, calls so far: {len(self.calls)})"
        given = min(len(self.calls), len(self.script))
        return f"ScriptedModel({self.name!r}, {given} of {len(self.script)} replies given)"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turn=threading.Lock())

    def _seconds(self, turn: int, messages: Sequence[Message]) -> float:
        if callable(self.latency):
            return _duration(self.latency(messages))
        return self._nth(self.latency, turn, "latencies") if isinstance(self.latency, list) else self.latency

    def _nth(self, listed: list[Any], turn: int, what: str) -> Any:
        if turn < len(listed):
            return listed[turn]
        raise ModelError(f"model {self.name!r} ran out of {what}: there were {len(listed)}, "
                         f"and this is call {turn + 1}; add to the list, or give a function instead")

    def _check(self) -> None:
        """TypeError or ValueError for what no call could use, so that it is said where the model is made."""
        for position, answer in enumerate([] if callable(self.script) else self.script):
            if not isinstance(answer, Answer):
                raise TypeError(f"model {self.name!r}: script[{position}] is {answer!r}; "
                                f"a reply is a str, a Reply or an Exception")
        for seconds in self.latency if isinstance(self.latency, list) else [self.latency]:
            if not callable(seconds):
                _duration(seconds)


def _duration(seconds: Any) -> float:
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < math.inf:
        return seconds
    raise ValueError(f"latency {seconds!r}: a latency is a number of seconds, 0 or more")
