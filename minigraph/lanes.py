"""What a chart shows is plain data first: bars, a bar a visit, in lanes, a lane a node.

    for bar in rows(trace):
        print(bar.lane, bar.start, bar.end, bar.wait, bar.notes)

What a graph inside a node ran stands below that node; the many items of a map share a few lanes. Nothing is drawn here.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from .trace import Trace, Visit

MOST = 6  # lanes: how many the items of one map may fill

RAN = ("node", "llm", "tool", "gate", "items")  # the kinds of bars that have a length


@dataclass
class Bar:
    """One visit of a node or one call of a loop, or, of no length, a visit that did not take place. In seconds."""

    lane: str
    start: float
    end: float
    kind: str = "node"  # node, llm, tool; gate: it waits for a person; items: many at once; refused, blocked
    wait: float = 0.0  # how long it stood at the barrier afterwards
    visit: int = 1
    wave: int | None = None
    error: str | None = None
    notes: list[str] = field(default_factory=list)  # ["→ digest", "3 attempts"]
    tries: list[float] = field(default_factory=list)  # when an attempt had failed, and another was to follow
    item: str | None = None  # which item of a map, where items share lanes
    count: int = 1  # how many visits it stands for
    depth: int = 0  # how many nodes it is inside of

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def over(self) -> float:
        """When the wait was over, too."""
        return self.end + self.wait


@dataclass
class Lane:
    """Bars side by side, none over another."""

    name: str  # "" where the lane above goes on, because bars of one name overlap
    bars: list[Bar]
    times: int = 1  # how many visits or calls there are of this name

    y: float = 0.0  # where it is drawn


def rows(trace: Trace) -> list[Bar]:
    """The bars of a chart, lane by lane in the order of the graph: a bar a visit, or, for a loop, a bar a call."""
    if not trace.nodes:
        calls = [Bar("model" if call.kind == "llm" else call.name, call.start, call.end, call.kind, error=call.error)
                 for call in trace.calls()]
        first = {bar.lane: bar.start for bar in reversed(calls)}
        return sorted(calls, key=lambda bar: (bar.lane != "model", first[bar.lane], bar.lane, bar.start))
    visits = trace.visits()
    holder = {visit.node: visit.within for visit in visits}  # node -> the one that it is in
    thinkers = {call.node for call in trace.calls() if call.kind == "llm"}
    tries = _tries(trace)
    bars = [_bar(visit, "llm" if visit.node in thinkers else "node", _above(visit.node, holder), tries)
            for visit in visits]
    own = set(trace.nodes)
    for event in trace.of("refused", "blocked"):
        node, at = event["node"], event["t"]
        if node not in own:
            holder.setdefault(node, _nearest(node, holder))
        bars.append(Bar(node, at, at, event["kind"], error=event["why"], depth=len(_above(node, holder))))
    return sorted(_folded(bars, trace, holder), key=_order(trace, bars, holder))


def _bar(visit: Visit, kind: str, above: list[str], tries: dict[str, list[float]]) -> Bar:
    notes = [f"{visit.retries + 1} attempts"] if visit.retries else []
    notes += ["set the pace"] if visit.pace else []
    notes += ["has not ended"] if not visit.ended and visit.question is None else []
    if visit.question is not None:
        kind, notes = "gate", [f"waits for an answer: {visit.question}", *notes]
    elif visit.labels and not visit.lost and not visit.error:
        notes.append("→ " + ", ".join(visit.labels))
    within = [at for at in tries.get(visit.node, ()) if visit.start <= at <= visit.end]
    return Bar(visit.node, visit.start, visit.end, kind, visit.wait, visit.visit, visit.wave,
               visit.error or visit.lost, notes, within if visit.retries else [], depth=len(above))


def _tries(trace: Trace) -> dict[str, list[float]]:
    """Node -> when it was to be tried again."""
    found: dict[str, list[float]] = {}
    for event in trace.of("retry"):
        found.setdefault(event.get("node", ""), []).append(event["t"])
    return found


# ---- nodes inside nodes


def _above(node: str, holder: dict[str, str | None]) -> list[str]:
    """The nodes that hold this one, the innermost first."""
    found, above = [], holder.get(node)
    while above is not None:
        found.append(above)
        above = holder.get(above)
    return found


def _nearest(node: str, holder: dict[str, str | None]) -> str | None:
    above = node.rpartition("/")[0]
    while above and above not in holder:
        above = above.rpartition("/")[0]
    return above or None


def _order(trace: Trace, bars: list[Bar], holder: dict[str, str | None]) -> Callable[[Bar], Any]:
    """The key by which bars are sorted: graph by graph in its order, what a node holds right below it, then by time."""
    place = {f"{event['node']}/{name}" if "node" in event else name: at
             for event in trace.of("graph_start") for at, name in enumerate(event["nodes"])}
    first: dict[str, float] = {}
    for bar in bars:
        first[bar.lane] = min(bar.start, first.get(bar.lane, bar.start))

    def where(node: str) -> tuple[Any, ...]:
        return place.get(node, len(place)), first.get(node, 0.0), node

    def key(bar: Bar) -> tuple[Any, ...]:
        lane = bar.lane
        return (*map(where, reversed(_above(lane, holder))), where(lane)), bar.kind == "items", bar.start

    return key


# ---- the items of a map


def _folded(bars: list[Bar], trace: Trace, holder: dict[str, str | None]) -> list[Bar]:
    """The bars, with the items of a map that has many of them on a few shared lanes, and without what is inside those.

    Where more of them ran at once than there are lanes, the failed and the slowest have bars of their own, and one bar
    stands for the rest.
    """
    plain = {event["node"] for event in trace.of("graph_start")
             if "node" in event and not all(name.isdecimal() for name in event["nodes"])}  # nodes that run a graph
    items: dict[str, set[str]] = {}  # map -> its items
    for node, above in holder.items():
        if above is not None and above not in plain and node[len(above) + 1:].isdecimal():
            items.setdefault(above, set()).add(node)
    many = {node: above for above, nodes in items.items() if len(nodes) > MOST for node in nodes}
    laps: dict[str, list[list[Bar]]] = {above: [[]] for above in many.values()}  # map -> the items of each visit
    found = []
    for bar in bars:
        folded = {bar.lane, *_above(bar.lane, holder)} & many.keys()
        if not folded:
            found.append(bar)
        elif folded == {bar.lane}:
            laps[many[bar.lane]][-1].append(bar)
        if bar.lane in laps:
            laps[bar.lane].append([])
    for above, visits in laps.items():
        holder[f"{above}/…"] = above
        found += [bar for some in visits if some for bar in _few(f"{above}/…", some)]
    return found


def _few(lane: str, items: list[Bar]) -> list[Bar]:
    """The items of one visit of a map, each a bar, or the most telling ones and a bar for the rest.

    That all of them wait for the slowest is what a map is; it is not said of each.
    """
    for bar in items:
        bar.item, bar.lane, bar.wait = bar.lane.rpartition("/")[2], lane, 0.0
    items.sort(key=lambda bar: (bar.start, int(bar.item or 0)))
    if len(packed(items)) <= MOST:
        return items
    ranked = sorted(items, key=lambda bar: (bar.error is None, bar.kind != "gate", -bar.seconds))
    return [*ranked[:MOST - 1], _together(ranked[MOST - 1:])]


def _together(bars: list[Bar]) -> Bar:
    """One bar that stands for these."""
    failed, waiting = sum(bar.error is not None for bar in bars), sum(bar.kind == "gate" for bar in bars)
    lengths = [bar.seconds for bar in bars]
    notes = [f"{len(bars)} more", f"{min(lengths):.3f} to {max(lengths):.3f} s"]
    notes += [f"{waiting} wait for an answer"] if waiting else []
    return Bar(bars[0].lane, min(bar.start for bar in bars), max(bar.end for bar in bars), "items",
               error=f"{failed} failed" if failed else None, notes=notes, count=len(bars), depth=bars[0].depth)


# ---- lanes


def lanes_of(bars: list[Bar]) -> list[Lane]:
    """A lane a name, and one more wherever two bars of a name overlap, as calls of one tool may."""
    found = []
    for name, mine in groupby(bars, key=lambda bar: bar.lane):
        alike = list(mine)
        first, *more = packed(alike)
        asked = sum(bar.kind == "gate" and bar.visit == then.visit for bar, then in pairwise(alike))
        times = sum(bar.count for bar in alike if bar.kind in RAN) - asked  # one that was answered later is one visit
        found += [Lane(name, first, times), *(Lane("", further) for further in more)]
    return found


def packed(bars: Iterable[Bar]) -> list[list[Bar]]:
    """The bars, which come in order of their start, in as few rows as they fit into, none over another."""
    found: list[list[Bar]] = []
    free: list[tuple[float, int]] = []  # when a row is free, and which: a heap
    for bar in bars:
        if free and free[0][0] <= bar.start + 1e-9:
            row = heapq.heappop(free)[1]
            found[row].append(bar)
        else:
            row = len(found)
            found.append([bar])
        heapq.heappush(free, (bar.over, row))
    return found


def waves_of(trace: Trace) -> list[tuple[int, float, float]]:
    """The waves of a run as (number, start, end) in seconds, those of the graph itself; [] for a run without waves."""
    found: list[tuple[int, float, float]] = []
    over = trace.seconds
    for event in trace.of("wave_start", "wave_end"):
        if "node" in event:
            continue
        if event["kind"] == "wave_start":
            found.append((event["wave"], event["t"], over))
        elif found and found[-1][0] == event["wave"]:
            found[-1] = (*found[-1][:2], event["t"])
    return found


def resumed_at(trace: Trace) -> list[float]:
    """When the runs began that a trace heard after the first: the same run, resumed."""
    return [event["t"] for event in trace.of("graph_start") if "node" not in event][1:]
