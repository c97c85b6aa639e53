"""Every run of a node has a past: the visits whose tickets led to it, and theirs, back to START.

    first = Visit(1, "draft", 1, ())
    second = Visit(2, "check", 1, (first,))
    second.follows(first)       # True: what `draft` wrote, `check` may read and overwrite

Two visits of which neither follows the other are live branches. If both write one key they race, whatever the clock
says; that is how a collision is told from an overwriting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .state import MissingKey


class Visit:
    """One run of one node: its number in the run, the how-manieth visit of the node it is, and who led to it."""

    began: float  # seconds on the run's clock, where anybody asks
    ended: float
    writes: dict[str, Any] | None = None  # what the node returned
    wave: int | None = None  # in which it was made, where there are waves
    error: BaseException | None = None
    known: set[Visit] | None = None  # visits that it was found to follow
    inner = 0  # how many runs began inside it
    grave = False  # is its error one that ends the whole run?

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


class Refused(RuntimeError):
    """A visit that max_visits does not allow."""


class Recorded(RuntimeError):
    """A failure as a journal tells it: the type it had stands in the text."""


def described(error: BaseException) -> str:
    """An exception as the errors show it: `TypeName: message`; a guard's message, or a recorded failure, alone."""
    if isinstance(error, (Refused, Recorded)):
        return str(error)
    name = "KeyError" if isinstance(error, MissingKey) else type(error).__name__
    try:
        text = str(error)
    except Exception:  # an exception whose own words fail it
        return f"{name} (it has no text that can be shown)"
    return f"{name}: {text}" if text else name
