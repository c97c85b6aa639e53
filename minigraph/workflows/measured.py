"""Recorded times, taken again: a source answers from its file in a moment, and waits for the rest of its time.

    seconds = node_seconds("gather")                # {"scan_github": 1.506, "scan_web": 1.887, ...}
    with on_clock(speed=None):                      # virtual time: exact, and over at once
        taking(seconds["scan_web"], read_web)(path)

The times are in data/measured/, one run each. What about them is measured and what is assumed stands there too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from .. import clock
from .sources import data_dir


def recorded(workflow: str) -> dict[str, Any]:
    """What data/measured/ holds about a workflow, as it stands there."""
    found: dict[str, Any] = json.loads((data_dir() / "measured" / f"{workflow}.json").read_text(encoding="utf-8"))
    return found


def node_seconds(workflow: str) -> dict[str, float]:
    """Node -> how long it took, in seconds."""
    return {node: ms / 1000 for node, ms in recorded(workflow)["nodes"].items()}


def call_seconds(workflow: str) -> list[tuple[str, float]]:
    """("model" or the tool's name, seconds) of each call of a loop, in order."""
    return [(name, ms / 1000) for name, ms in recorded(workflow)["calls"]]


@dataclass(frozen=True)
class taking:
    """`fn`, made to take `seconds` on the clock of the run, also when it fails. What it takes anyway counts."""

    seconds: float
    fn: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        started = clock.now()
        try:
            return self.fn(*args, **kwargs)
        finally:
            clock.sleep(max(0.0, self.seconds - (clock.now() - started)))


def ahead(fn: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """A function that does again what `fn(*args)` did just now: it returns the same, or raises the same.

    For recorded times on a real clock: reading a file costs a computer some milliseconds, and at 20 times real time,
    or beside three other readers, these would drown what was recorded.
    """
    try:
        value = fn(*args)
    except Exception as error:
        failure = error

        def again(*_: Any) -> Any:
            raise failure
    else:
        def again(*_: Any) -> Any:
            return value
    return again


def on_clock(speed: float | None) -> AbstractContextManager[Any]:
    """A `with` block in virtual time, or at `speed` times real time. ValueError for a speed that is not above 0."""
    return clock.virtual_time() if speed is None else clock.use(clock.RealClock(speed))
