"""What is known of a run at one moment is a frame: every node, the cards of the row, the blackboard; data, and words.

    print(frame.text)                   # gather: ● running · wave 1 · 1.2 s ... and every node, card and key
    frame.html(), frame.svg()           # the same to be looked at

frames.py makes frames of events; panel.py and scene.py make them a piece of a page and a picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .panel import Panel
from .words import duration, quoted, shown

SIGNS = {  # what is known of a node -> the sign that goes with the word
    "idle": "", "queued": "○", "running": "●", "done": "✓", "failed": "✗", "waiting": "?", "refused": "⊘",
    "blocked": "■", "skipped": "–", "not run": "–", "interrupted": "◼"}


@dataclass(frozen=True)
class NodeNow:
    """What is known of one node at one moment."""

    name: str
    kind: str = "fn"
    state: str = "idle"  # a key of SIGNS
    visits: int = 0
    seconds: float = 0.0  # of its calls, all visits together; while it runs, of this visit
    words: str = ""  # the error, the reason or the question
    inside: str = ""  # "2 of 5 done": how far the graph, the map or the calls inside it have come

    @property
    def sign(self) -> str:
        return SIGNS[self.state]

    @property
    def facts(self) -> str:
        """The line under its name: "✓ ×2 · 1.200 s", "● 2 of 5 done"; its kind as long as nothing has happened."""
        if self.state == "idle":
            return "" if self.kind == "fn" else self.kind
        often = [f"×{self.visits}"] if self.visits > 1 else []
        if self.state == "running":
            what = self.inside or (f"visit {self.visits}" if often else "running")
            return f"{self.sign} {what} · {ticking(self.seconds)}"
        spent = [duration(self.seconds)] if self.state == "done" and self.seconds >= 0.0005 else []
        word = [] if spent else [self.state]
        return f"{self.sign} " + " · ".join([*word, *often, *spent])


@dataclass(frozen=True)
class Card:
    """One visit of the row that is shown: the wave's, or, without waves, what runs and what ran last."""

    node: str
    visit: int
    state: str
    seconds: float  # of this visit, so far
    share: float  # of the slowest in the row, from 0 to 1
    note: str = ""  # "waited 1.500 s at the barrier", "set the pace"
    keys: tuple[str, ...] = ()  # that it wrote
    words: str = ""
    inside: str = ""
    waits: bool = False  # it stands at the barrier, or has stood there

    @property
    def told(self) -> str:
        """The line under its name: "✓ done · 1.200 s"."""
        how = f"{SIGNS[self.state]} {self.state}"
        if self.state in ("queued", "waiting", "refused"):
            return how
        return f"{how} · {ticking(self.seconds) if self.state == 'running' else duration(self.seconds)}"

    @property
    def title(self) -> str:
        return self.node if self.visit < 2 else f"{self.node} (visit {self.visit})"


@dataclass(frozen=True)
class Value:
    """What stands on the blackboard under one key, cut short, and who wrote it."""

    text: str
    by: str | None = None  # None: it came with the initial state
    visit: int = 0

    @property
    def source(self) -> str:
        return "at the start" if self.by is None else self.by if self.visit < 2 else f"{self.by} (visit {self.visit})"


@dataclass(frozen=True)
class Frame:
    """All that is known of a run at one moment. Shows itself in a notebook; `text` says the same in words."""

    name: str
    status: str  # "not begun", "running", or how it ended
    t: float
    wave: int | None
    nodes: dict[str, NodeNow]
    edges: dict[tuple[str, str, str], int]  # (src, dst, kind) -> how often a ticket went along it
    cards: tuple[Card, ...]
    more: str  # of cards that the row has no room for: "and 8 more: 3 running, 5 done"
    board: dict[str, Value]
    fresh: dict[str, str | None]  # key that the last event wrote -> what stood there before
    rows: tuple[str, ...]  # the keys that are shown, each in its place: where there are many, those written last
    error: str | None
    notice: str  # of whoever runs it
    panel: Panel = field(repr=False, compare=False)

    @property
    def title(self) -> str:
        """ "● running · wave 2 · 0.8 s", "✓ done · 13.170 s" """
        sign = {"done": "✓", "failed": "✗", "running": "●", "paused": "?", "not begun": "○"}.get(self.status, "◼")
        over = self.status not in ("running", "not begun")
        wave = [] if over or self.wave is None else [f"wave {self.wave}"]
        return " · ".join([f"{sign} {self.status}", *wave, duration(self.t) if over else ticking(self.t)])

    @property
    def caption(self) -> str:
        """What there is to say in one line: why it failed, what is asked, or how many nodes did what."""
        if self.error and self.status != "interrupted":
            return f"✗ {self.error}"
        if self.notice:
            return self.notice
        asked = [f"{node.name} asks: {node.words}" for node in self.nodes.values() if node.state == "waiting"]
        if asked:
            return "; ".join(asked)
        return counted(node.state for node in self.nodes.values() if node.state != "idle")

    @property
    def text(self) -> str:
        """The frame in words: how it stands, the nodes there is something to say of, the cards, the blackboard."""
        lines = [f"{quoted(self.name)}: {self.title}", *([f"  {shown(self.error)}"] if self.error else [])]
        lines += [f"  {quoted(node.name)}: {node.facts}" + (f": {shown(node.words)}" if node.words else "")
                  for node in self.nodes.values() if node.state != "idle"]
        lines += [f"  card {quoted(card.title)}: " + "; ".join(filter(None, (
            card.told, card.inside, card.note, f"wrote {', '.join(map(quoted, card.keys))}" if card.keys else "")))
            for card in self.cards]
        lines += [f"  {self.more}"] if self.more else []
        lines += [f"  {quoted(key)} = {value.text} ({shown(value.source)}{'; new' if key in self.fresh else ''})"
                  for key, value in self.board.items()]
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture; "" where there is no Graphviz, or the graph is too large to be looked at in motion."""
        return self.panel.svg(self)

    def html(self) -> str:
        """The picture and the row of cards, as a piece of a page that brings its own style."""
        return self.panel.html(self)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook keeps: the panel as a still, which needs no style sheet and no script, and the text."""
        return {"text/plain": self.text, "text/html": self.panel.still(self)}


def counted(states: Iterable[str]) -> str:
    """How many there are of each: "2 running, 3 done"."""
    counts = Counter(states)
    return ", ".join(f"{counts[state]} {state}" for state in SIGNS if counts[state])


def ticking(seconds: float) -> str:
    """Seconds that are not over yet: "0.8 s"."""
    return f"{seconds:.1f} s"
