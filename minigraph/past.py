"""Every run of a node has a past: the visits whose tickets led to it, and theirs, back to START.

    first = Visit(1, "draft", 1, ())
    second = Visit(2, "check", 1, (first,))
    second.follows(first)       # True: what `draft` wrote, `check` may read and overwrite

Two visits of which neither follows the other are live branches. If both write one key they race, whatever the clock
says; that is how a collision is told from an overwriting.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Visit:
    """One run of one node: its number in the run, the how-manieth visit of the node it is, and who led to it."""

    began: float  # seconds on the run's clock, where anybody asks
    ended: float
    writes: dict[str, Any] | None = None  # what the node returned; {} once it is merged
    error: BaseException | None = None
    known: set[Visit] | None = None  # visits that it was found to follow

    def __init__(self, number: int, node: str, count: int, parents: tuple[Visit, ...]) -> None:
        self.number, self.node, self.count, self.parents = number, node, count, parents

    def __repr__(self) -> str:
        return f"<visit {self.count} of {self.node!r}>"

    def follows(self, other: Visit) -> bool:
        """True if `other` lies in the past of this visit, or is this visit.

        Visits are numbered as they start, so the way back never passes a number below that of `other`; and a visit
        remembers whom it was found to follow, so that the next search from below ends there.
        """
        if other is self or other in self.parents:
            return True
        todo, seen = [self], {self}
        while todo:
            for parent in todo.pop().parents:
                if parent is other or parent.known and other in parent.known:
                    self.known = self.known or set()
                    self.known.add(other)
                    return True
                if parent.number > other.number and parent not in seen:
                    seen.add(parent)
                    todo.append(parent)
        return False


class Write(NamedTuple):
    """Who wrote a key last, what, and the write before it."""

    visit: Visit
    value: Any
    older: Write | None


def seen(write: Write | None, visit: Visit) -> Write | None:
    """The newest write, from `write` back, that lies in the past of a visit; None if there is none."""
    while write is not None and not visit.follows(write.visit):
        write = write.older
    return write
