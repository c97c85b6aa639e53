"""A picture begins as a sheet of marks: what `graph.describe()` says and, given a run, what became of it.

    drawn = sheet(graph, trace)
    drawn.nodes[1].state, drawn.nodes[1].visits          # 'ran', 2
    drawn.edges[1].taken, drawn.edges[1].times           # True, 2

A node that runs a graph has that one's sheet inside: `mark.inner`, drawn as a box around it where `mark.open` is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .engine import END, START
from .facts import EACH, Facts, facts_of
from .words import duration, shown

ROOM = 25  # nodes: unasked, nested graphs are opened as long as the whole picture stays within it


@dataclass
class NodeMark:
    """One node on the sheet: what it is, and, given a run, what became of it."""

    name: str
    kind: str  # START, END, or a node's kind
    cap: int | None = None  # its max_visits
    inner: Sheet | None = None  # the graph that it runs
    open: bool = False  # is that graph drawn, too?
    id: str = ""  # n0, n1, ...: unlike its name, the only one of its kind in the picture
    state: str | None = None  # ran, failed, waiting; running, interrupted; blocked, skipped, not run; None: unknown
    visits: int = 0
    items: int = 0  # of a map: how many it ran, over all visits; 0 where that is not known
    seconds: float | None = None  # of its calls, all visits together; None: not recorded
    alarm: str | None = None  # "failed: TimeoutError: no answer"

    @property
    def absent(self) -> bool:
        return self.state in ("blocked", "skipped", "not run")

    @property
    def unfinished(self) -> bool:
        return self.state in ("running", "interrupted")


@dataclass
class EdgeMark:
    """One edge on the sheet; the labels of one router that name one target share it."""

    src: str
    dst: str
    kind: str  # static, router, on_error; of an arrow also either, a static edge and an on_error in one
    labels: list[str] = field(default_factory=list)
    backwards: bool = False
    taken: bool | None = None  # None without a run, or unknown
    times: int | None = None  # how often, where that is known

    @property
    def label(self) -> str:
        return " / ".join(shown(label) for label in self.labels)


@dataclass
class Sheet:
    """All the marks of one graph, in its order."""

    name: str
    nodes: list[NodeMark]
    edges: list[EdgeMark]
    caption: str | None = None  # "done, 13.170 s"; None without a run

    def __post_init__(self) -> None:
        self.mark = {mark.name: mark for mark in self.nodes}

    def all_nodes(self) -> Iterator[NodeMark]:
        """Every mark that is drawn, those in open boxes included, each after the box it is in."""
        for mark in self.nodes:
            yield mark
            if mark.inner and mark.open:
                yield from mark.inner.all_nodes()

    @property
    def size(self) -> int:
        """How many nodes it has, START and END not counted, and those inside nodes neither."""
        return sum(mark.kind not in (START, END) for mark in self.nodes)

    @property
    def total(self) -> int:
        """How many nodes and edges are drawn, those in open boxes included."""
        inner = sum(mark.inner.total for mark in self.nodes if mark.inner and mark.open)
        return len(self.nodes) + len(self.edges) + inner


def sheet(graph: Any, run: Any = None, nested: bool | None = None) -> Sheet:
    """The marks of a picture, computed before anything is drawn.

    `graph` is a Graph or what its `describe()` returned; `run` a GraphState (what ran, how often, what failed) or a
    Trace (also how long it took). nested: are graphs inside nodes opened? True: all; False: none; None: level by level,
    as long as there are not more than 25 nodes in the picture. TypeError for anything else.
    """
    described = graph if isinstance(graph, Mapping) else graph.describe() if hasattr(graph, "describe") else None
    if not isinstance(described, Mapping):
        raise TypeError(f"cannot draw {graph!r}: pass a Graph, or what graph.describe() returned")
    if nested not in (None, True, False):
        raise TypeError(f"nested={nested!r}: True opens the graphs inside nodes, False closes them, None sees to it")
    drawn = _blank(described)
    _open(drawn, nested)
    if run is not None:
        facts = facts_of(described, run)
        _mark(drawn, facts)
        took = "" if facts.seconds is None else f", {duration(facts.seconds)}"
        drawn.caption = (facts.status or "not over") + took + (" since it was resumed" if facts.resumed else "")
    return drawn


def _blank(described: Mapping[str, Any]) -> Sheet:
    edges = _edge_marks(described)
    nodes = [NodeMark(START, START)]
    for node in described["nodes"]:
        inner = _blank(node["graph"]) if "graph" in node else None
        nodes.append(NodeMark(node["name"], node["kind"], node["max_visits"], inner))
    if any(edge.dst == END for edge in edges):
        nodes.append(NodeMark(END, END))
    return Sheet(described["name"], nodes, edges)


def _edge_marks(described: Mapping[str, Any]) -> list[EdgeMark]:
    handlers = {node["name"]: node["on_error"] for node in described["nodes"]}
    last = {edge["src"]: edge for edge in described["edges"]}  # the edge to a node's on_error is its last one
    marks: dict[tuple[str, str, str], EdgeMark] = {}  # (src, dst, kind) -> its mark
    for edge in described["edges"]:
        src, dst, label = edge["src"], edge["dst"], edge["label"]
        handles = edge is last[src] and label == "on_error" and handlers.get(src) == dst
        kind = "on_error" if handles else "router" if edge["conditional"] else "static"
        mark = marks.setdefault((src, dst, kind), EdgeMark(src, dst, kind, backwards=bool(edge["backwards"])))
        if edge["conditional"] and label not in mark.labels:
            mark.labels.append(label)
    return list(marks.values())


def _open(drawn: Sheet, nested: bool | None) -> None:
    """Opens the graphs inside nodes, one level after the other, and gives every mark its id."""
    level, room = [drawn], ROOM - drawn.size
    while level and nested is not False:
        holders = [mark for sheet in level for mark in sheet.nodes if mark.inner]
        level = [mark.inner for mark in holders if mark.inner]
        room -= sum(sheet.size for sheet in level)
        if nested is None and room < 0:
            break
        for mark in holders:
            mark.open = True
    for number, mark in enumerate(drawn.all_nodes()):
        mark.id = f"n{number}"


# ---- what a run adds


def _mark(drawn: Sheet, facts: Facts) -> None:
    for edge in drawn.edges:
        edge.taken, edge.times = _way(edge, facts)
    _conclude(drawn, facts)
    over = facts.status in ("done", "failed", "paused")
    may_run = _below(drawn, facts.running) if facts.status == "paused" else ()
    to_end = [edge.taken for edge in drawn.edges if edge.dst == END]
    for mark in drawn.nodes:
        never = "skipped" if over and mark.name not in may_run else "not run"
        if mark.kind == START:
            mark.state = "ran"
        elif mark.kind == END:
            mark.state = "ran" if any(to_end) else None if None in to_end else never
        else:
            _mark_node(mark, facts, never)
        if mark.inner:
            _mark_inside(mark, mark.inner, facts)


def _mark_node(mark: NodeMark, facts: Facts, never: str) -> None:
    name = mark.name
    mark.visits, mark.seconds = facts.visits.get(name, 0), None if name in facts.before else facts.spent.get(name)
    if name in facts.inner and mark.kind == "map":
        mark.items = facts.inner[name].visits.get(EACH, 0)
    asked = _asked(mark, facts)
    if asked:
        mark.state, mark.alarm = "waiting", f"waiting: {shown(asked)}"
        mark.visits = max(0, mark.visits - facts.running[name])
    elif name in facts.running:
        mark.state = "running" if facts.status is None else "interrupted"
    elif name in facts.errors:
        mark.state, mark.alarm = "failed", f"failed: {shown(facts.errors[name])}"
    else:
        mark.state = "ran" if mark.visits else "blocked" if name in facts.blocked else never


def _asked(mark: NodeMark, facts: Facts) -> str:
    """What a node waits for: the answer to its question, or to those of gates inside it."""
    if mark.name in facts.waiting:
        return facts.waiting[mark.name]
    if mark.name in facts.running and mark.name in facts.inner:
        questions = facts.inner[mark.name].questions()
        return "; ".join(gate if mark.open else f"{gate}: {question}" for gate, question in questions)
    return ""


def _mark_inside(mark: NodeMark, drawn: Sheet, facts: Facts) -> None:
    """Marks the graph inside a node, all its runs together; not at all where nothing is told of them."""
    inside = facts.inner.get(mark.name)
    if inside is not None and mark.kind == "map":
        inside = inside.inner.get(EACH)
    if inside is not None and (inside.visits or inside.running):
        unsure = "interrupted" if mark.state in ("failed", "interrupted") else "done"
        inside.status = {"waiting": "paused", "running": None}.get(str(mark.state), inside.status or unsure)
        _mark(drawn, inside)
    elif not mark.visits:
        _mark_absent(drawn, mark.state if mark.absent else "not run")


def _mark_absent(drawn: Sheet, state: str | None) -> None:
    for edge in drawn.edges:
        edge.taken, edge.times = False, 0
    for mark in drawn.nodes:
        mark.state = state
        if mark.inner:
            _mark_absent(mark.inner, state)


def _below(drawn: Sheet, names: Iterable[str]) -> set[str]:
    """The nodes that these lead to, whichever way."""
    targets: dict[str, set[str]] = {}
    for edge in drawn.edges:
        targets.setdefault(edge.src, set()).add(edge.dst)
    found, todo = set[str](), list(names)
    while todo:
        further = targets.get(todo.pop(), set()) - found
        found |= further
        todo += further
    return found


def _way(edge: EdgeMark, facts: Facts) -> tuple[bool | None, int | None]:
    """Did a ticket go along this edge, and how often? None where the run does not tell."""
    src, visits = edge.src, facts.visits.get(edge.src, 0)
    times: int | None = None
    if src == START:
        return True, 1
    if edge.kind == "on_error":
        times = facts.handled.get(src, 0)
        if not facts.known and src in facts.errors:
            return True, None
        if not facts.refusals:  # there may have been more
            return True if times else None, None
    elif edge.kind == "router" and facts.known:
        times = sum(facts.routes.get((src, label), 0) for label in edge.labels)
    elif not visits:
        times = 0
    elif edge.kind == "static":
        failed = facts.failed.get(src, 0) if facts.known else int(src in facts.errors)
        if facts.known or not failed or visits == 1:
            times = max(0, visits - failed - facts.running[src])
    if facts.before.get(src):  # there were visits of which nothing is told
        return True if times and edge.kind != "static" else None, None
    return None if times is None else times > 0, times


def _conclude(drawn: Sheet, facts: Facts) -> None:
    """What a run does not tell may follow all the same: a node that ran and has one way in was sent there, one that did
    not was not; a node that has no handler and let its successor run did not fail; of labels, one was named."""
    ways_in = Counter(edge.dst for edge in drawn.edges)
    handled = {edge.src for edge in drawn.edges if edge.kind == "on_error"}
    reached = facts.visits.keys() | facts.errors | facts.blocked
    over = facts.status in ("done", "failed")
    unclear: dict[str, list[EdgeMark]] = {}
    for edge in (edge for edge in drawn.edges if edge.taken is None):
        if over and edge.dst != END and edge.dst not in reached:
            edge.taken, edge.times = False, 0
        else:
            unclear.setdefault(edge.src, []).append(edge)
    for src, ways in unclear.items():
        labels = {label for way in ways if way.kind == "router" for label in way.labels}
        sure = over and len(labels) == 1 and src not in facts.errors and src not in facts.before
        for way in ways:
            ran = way.dst in facts.visits or way.dst == END and facts.status == "done"
            named = sure and way.kind == "router"
            if named or ways_in[way.dst] == 1 and way.dst in facts.visits:
                way.taken, way.times = True, facts.visits[src if named else way.dst]
            elif way.kind == "static" and ran and src not in handled:
                way.taken = True
