"""A film is a finished run, step by step: a frame for each thing that happened, the clock and the blackboard below it.

    film = Film(trace)
    len(film), film[3].title            # 9, "wave 1 is over after 1.887 s: tags, text on the blackboard"
    film.html(3)                        # picture, cards, a bar a visit with a cursor, the blackboard before and after

A step is an event of the run, or a few that belong together: a wave with the nodes that begin it, a lone node's end
with the end of its wave. What a stepper shows and what an exported page replays are these steps, slot by slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

from .frames import OF_A_NODE, Frame, Reel
from .panel import CARDS, CUT, LIGHT, STYLES, Panel, css, inlined, variables
from .scene import Slots, Template, hole, open_group
from .strip import STYLES as STRIP
from .strip import Strip
from .trace import Trace
from .words import duration, shown

Event = Mapping[str, Any]

LOOKS = {
    **STYLES, **STRIP,
    "board": "display:grid;grid-template-columns:minmax(70px,2fr) 4fr 4fr minmax(70px,2fr);margin-top:12px;",
    "th": "color:var(--faint);border-bottom:1px solid var(--rule);padding:0 8px;" + CUT,
    "td": "height:21px;line-height:21px;padding:0 8px;border-bottom:1px solid var(--band);min-width:0;" + CUT,
    "td-old": "color:var(--faint);",
    "td-new": "background:var(--done-fill);font-weight:600;",
}


@dataclass(frozen=True)
class Step:
    """One step of a run: what happened, when, and how things stand afterwards."""

    number: int  # from 0
    title: str
    frame: Frame

    @property
    def t(self) -> float:
        return self.frame.t

    @property
    def written(self) -> dict[str, tuple[str | None, str]]:
        """The keys that this step wrote: what stood there before, None for nothing, and what stands there now."""
        return {key: (before, self.frame.board[key].text) for key, before in self.frame.fresh.items()}

    @property
    def text(self) -> str:
        """The step in words."""
        return f"{self.number + 1}. {self.title}\n{self.frame.text}"


class Film(Sequence[Step]):
    """The steps of one run. `graph`: a Graph or what its describe() says, for a trace that does not hold it."""

    def __init__(self, trace: Trace, graph: Any = None) -> None:
        self.trace, self.description = trace, described(trace, graph)
        self.moments = list(moments(trace.events, {node["name"] for node in self.description["nodes"]}))
        self.panel, self.rows = Panel(self.description), 0
        self._rewind()
        for event in trace.events:  # once through, for the most cards and keys there are at once
            self.reel(event["kind"], event)
            self.panel.places = max(self.panel.places, min(CARDS, len(self.reel.row)))
            self.rows = max(self.rows, len(self.reel.rows))
        self._rewind()
        self.strip = Strip(trace)

    def __len__(self) -> int:
        return len(self.moments)

    def __getitem__(self, number: Any) -> Any:
        """One step, or a list of them for a slice."""
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"step {number}: this run has {len(self)}, numbered from 0")
        number %= len(self)
        frame = self._seek(number)
        return Step(number, shown(told(self.moments[number], list(frame.fresh))), frame)

    def __repr__(self) -> str:
        return f"<Film of {self.description['name']!r}: {len(self)} steps>"

    def _rewind(self) -> None:
        self.reel, self.at = Reel(self.description, panel=self.panel), -1
        self.frame = self.reel.frame()

    def _seek(self, number: int) -> Frame:
        """The frame after that step: onwards from where the reel stands, or from the beginning."""
        if number < self.at:
            self._rewind()
        for moment in self.moments[self.at + 1:number + 1]:
            fresh: dict[str, str | None] = {}
            for event in moment.events:
                self.reel(event["kind"], event)
                fresh = {**self.reel.fresh, **fresh}  # what stood there before the first of them
            self.reel.fresh = fresh
        if number != self.at:
            self.at, self.frame = number, self.reel.frame()
        return self.frame

    # ---- as HTML

    @cached_property
    def template(self) -> Template:
        return self._opened(self.panel.picture)

    def html(self, number: int) -> str:
        """One step, with a style sheet."""
        return f"<style>{css(LOOKS)}.mg-panel{{{variables(LIGHT)}}}</style>{self.template.fill(self.slots(number))}"

    def still(self, number: int) -> str:
        """One step without style sheet, script and SVG."""
        step: Step = self[number]
        picture = self.panel.image(step.frame, step.text)
        return inlined(self._opened(picture).fill(self.slots(number)), LOOKS)

    def slots(self, number: int) -> Slots:
        """What stands in the open places at that step."""
        step: Step = self[number]
        slots = self.panel.slots(step.frame)
        slots["caption"] = f"step {number + 1} of {len(self)}: {escape(step.title)}"
        slots["caption@class"] = "caption alarm"
        slots.update(self.strip.slots(step.t))
        for place in range(self.rows):
            slots.update(_row(place, step.frame))
        rest = len(step.frame.board) - len(step.frame.rows)
        slots["rest"] = f"and {rest} key{'s' * (rest > 1)} written earlier" if rest else ""
        return slots

    def _opened(self, picture: str) -> Template:
        """The panel, the bars and the blackboard, their slots open."""
        heads = "".join(f'<div class="th">{name}</div>' for name in ("key", "before", "after", "written by"))
        return self.panel.opened(self.panel.places, picture, (
            f'{self.strip.html}<div class="board">{heads}{"".join(map(_open_row, range(self.rows)))}</div>'
            f'<div class="foot" data-s="rest">{hole("rest")}</div>'))


# ---- the blackboard


_COLUMNS = ("k", "o", "v", "w")  # key, old, value, by whom


def _open_row(place: int) -> str:
    return "".join(f'<div {open_group(f"b{place}.{column}")} title="{hole(f"b{place}.{column}@title")}">'
                   f'{hole(f"b{place}.{column}")}</div>' for column in _COLUMNS)


def _row(place: int, frame: Frame) -> Iterator[tuple[str, str]]:
    """One key: what stood there before this step, what stands there now, and who wrote it."""
    cells, new = [""] * 4, ""
    if place < len(frame.rows):
        key = frame.rows[place]
        value, new = frame.board[key], " td-new" if key in frame.fresh else ""
        before = frame.fresh.get(key, value.text)
        cells = [f"{'✎ ' if new else ''}{shown(key)}", "—" if before is None else before, value.text,
                 shown(value.source)]
    for column, cell in zip(_COLUMNS, cells, strict=True):
        yield f"b{place}.{column}@class", "td td-old" if column == "o" else f"td{new}"
        yield f"b{place}.{column}", escape(cell)
        yield f"b{place}.{column}@title", cell if len(cell) > 20 else ""


# ---- from events to steps


def described(trace: Trace, graph: Any = None) -> Mapping[str, Any]:
    """The description of the graph that ran: the trace holds it, or it is passed. ValueError where neither is so."""
    if graph is not None:
        found = graph.describe() if hasattr(graph, "describe") else graph
    else:
        found = next((event.get("graph") for event in trace.of("graph_start") if "node" not in event), None)
    if not isinstance(found, Mapping):
        raise ValueError(f"{trace!r} does not hold the graph that ran: pass graph=, or, if it is the trace of a loop, "
                         "look at chart(trace)")
    return found


class Moment(NamedTuple):
    """The events of one step, in order, and the one that it is named after."""

    first: Event
    events: list[Event]


def moments(events: Iterable[Event], nodes: set[str]) -> Iterator[Moment]:
    """The events in groups, a group a step; what nodes say of themselves goes with the step after."""
    moment, said = None, []  # type: Moment | None, list[Event]
    for event in events:
        said.append(event)
        if _is_said(event, nodes):
            continue
        if moment is not None and _belongs(event, moment.first):
            moment.events.extend(said)
        else:
            if moment is not None:
                yield moment
            moment = Moment(event, said)
        said = []
    if moment is not None:
        yield Moment(moment.first, moment.events + said)


def _is_said(event: Event, nodes: set[str]) -> bool:
    """Is this of a node's own, or of a graph inside one, and no more than a detail?"""
    own = "node" not in event or event["node"] in nodes and event["kind"] in OF_A_NODE
    return not own and event["kind"] not in ("node_end", "llm", "tool", "retry", "pause")


def _belongs(event: Event, first: Event) -> bool:
    """Is this event part of the step that began with the other one, if nothing else has happened in between?"""
    kind, begun = event["kind"], first["kind"]
    if kind == "wave_end":  # of one node alone it goes with that node's end, or question
        return begun in ("node_end", "pause") and event["nodes"] in ([], [first["node"]])
    if kind == "node_start":
        return begun in ("wave_start", "node_start")
    return bool(kind == begun == "blocked")


def told(moment: Moment, written: Sequence[str] = ()) -> str:
    """A step in one sentence, from its first event; `written` are the keys that it put on the blackboard."""
    event = moment.first
    kind, name = event["kind"], str(event.get("node", ""))
    alike = [str(one["node"]) for one in moment.events if one["kind"] == kind and "node" in one]
    if kind in _SENTENCES:
        return _SENTENCES[kind](event)
    if kind == "node_start":
        return f"{_listed(alike)} begin{'s' * (len(alike) == 1)}"
    if kind == "blocked":
        return f"{_listed(alike)} {'is' if len(alike) == 1 else 'are'} blocked: {event['why']}"
    wrote = f": {_listed(written)} on the blackboard" if written else ""
    if kind == "wave_end":
        return f"wave {event['wave']} is over after {duration(event['ms'] / 1000)}{wrote}"
    if kind == "node_end":
        after = f"after {duration(event['ms'] / 1000)}"
        return f"{name} fails {after}: {event['error']}" if event["error"] else f"{name} is done {after}{wrote}"
    return f"{name}: {kind}"


def _told_route(event: Event) -> str:
    if event.get("error"):
        return f"the router of {event['router']} fails: {event['error']}"
    return f"{event['router']} says {_listed(event['label'])}: on to {_listed(event['targets'])}"


_SENTENCES: dict[str, Callable[[Event], str]] = {
    "graph_start": lambda event: "the run goes on" if event.get("resumed") else "the run begins",
    "graph_end": lambda event: f"the run is over: {event['status']}" + (
        f", {event['error']}" if event.get("error") else ""),
    "wave_start": lambda event: f"wave {event['wave']} begins: {_listed(event['nodes'])}",
    "route": _told_route,
    "refused": lambda event: f"{event['node']} is refused: {event['why']}",
    "pause": lambda event: f"{event['node']} asks: {event['question']}",
    "llm": lambda event: f"{event['node']}: a model answered",
    "tool": lambda event: f"{event['node']}: tool {event.get('name', '')} came back",
    "retry": lambda event: f"{event['node']} tries again",
}


def _listed(names: Any, most: int = 4) -> str:
    names = [names] if isinstance(names, str) else list(map(str, names))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
