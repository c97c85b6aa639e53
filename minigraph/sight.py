"""What a visit may see of the blackboard: all of it, or under "ready" what its past wrote; and why a key is missing.

    run.view(visit)["text"]         # the newest text in the past of this visit
    run.explain("tags")             # " Did 'classify' forget its return?"

Under "waves" all nodes look at one blackboard, and nothing here costs anything. Otherwise each write is kept as long as
somebody beside it may still look at what it wrote over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .crew import here
from .past import Visit, Write, seen
from .shape import START
from .state import GraphState, MissingKey, OwnCopy, PastView, ReadOnly, missing


class Sight:
    """The part of a run that finds keys for a visit."""

    strict: bool
    waves: bool
    state: GraphState
    begun_with: dict[str, Any]  # the blackboard, where it began
    writer: dict[str, Visit]  # key -> the visit that wrote it last; a key of the initial state has none
    held: Mapping[str, Any]
    running: dict[str, Visit]

    def __init__(self) -> None:
        self.written: dict[str, Write] = {}  # key -> its writes, newest first, where not all look at one blackboard
        self.faults: dict[str, Write] = {}  # node -> its errors, in the same way

    def view(self, visit: Visit) -> GraphState:
        """The blackboard of one visit: all of it, or under "ready" what its past wrote; in a strict run, a copy."""
        if self.strict:
            return OwnCopy(self.past(visit), self.explain, self.writer.__contains__)
        return self.state if self.waves else PastView(self, visit)

    def remember(self, visit: Visit, writes: Mapping[str, Any]) -> None:
        """Keeps what was written, and what it wrote over as long as somebody beside may still look at that."""
        beside = self.held or len(self.running) > 1
        for key, value in writes.items():
            self.written[key] = Write(visit, value, self.written.get(key) if beside else None)

    def find(self, key: str, visit: Visit) -> Any:
        """The value of one key in the past of a visit; KeyError if it has none."""
        if key == "errors":
            return self.past_errors(visit)
        write = seen(self.written.get(key), visit)
        if write is not None:
            return write.value
        if key in self.begun_with:
            return self.begun_with[key]
        raise MissingKey(missing(key, self.past(visit)) + self.explain(key))

    def past(self, visit: Visit) -> dict[str, Any]:
        """All that the past of a visit wrote; a strict run leaves out a key that was written anew beside it."""
        there = dict(self.begun_with)
        for key, newest in list(self.written.items()):
            write = seen(newest, visit)
            if write is not None and (write is newest or not self.strict):
                there[key] = write.value
            elif self.strict:
                there.pop(key, None)
        there["errors"] = self.past_errors(visit)
        return there

    def past_errors(self, visit: Visit) -> dict[str, str]:
        found = ((name, seen(newest, visit)) for name, newest in list(self.faults.items()))
        return ReadOnly((name, write.value) for name, write in found if write is not None)

    def explain(self, key: str) -> str:
        """What else there is to say about a missing key: who writes it beside, or who above returned nothing."""
        inside = here.get()
        if inside is None or self.running.get(inside[1].node) is not inside[1]:
            return ""
        visit = inside[1]
        if key in self.writer:
            writer = self.writer[key].node
            return (f" {writer!r} writes {key!r}, but beside {visit.node!r}, not before it: "
                    f"lead an edge from {writer!r} to {visit.node!r}, or do not read {key!r} there.")
        silent, todo = dict[str, None](), [visit]
        known = {visit}
        while todo:
            for above in todo.pop().parents:
                if above not in known:
                    known.add(above)
                    todo.append(above)
                    if above.writes is None and above.error is None and above.node != START:
                        silent[above.node] = None
        return f" Did {' or '.join(map(repr, list(silent)[:3]))} forget its return?" if silent else ""
