"""A forecast is a run: the shape of a graph, really run in virtual time, by nodes that only sleep.

    forecast = foretell(graph, {"scan": 1.9, "write": 11.3}, "waves")
    forecast.seconds, forecast.speed_up         # 13.2, 1.26
    forecast.critical                           # [('scan', 1), ('write', 1)]

None of the graph's own functions is called, and no router of its own is asked: what a router says is chosen
beforehand. Everything else is the engine's: who waits for whom, laps, refusals, barriers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from ..clock import sleep, virtual_time
from ..engine import Graph, Node, run_graph
from ..shape import meant
from ..trace import Trace, Visit

Choice = Union[str, Sequence[str]]  # a router's label, or its labels visit by visit, the last of them from then on

USUAL = 1.0  # seconds that a node takes unless told otherwise
MOST_STEPS = 250  # of a forecast, for a slider is to be answered at once


@dataclass(frozen=True)
class Forecast:
    """What a run would take: `seconds` in all, `in_series` one node after another, and the visits that decide it."""

    trace: Trace
    seconds: float
    critical: list[tuple[str, int]]  # (node, visit), each beginning when the one before it is over
    in_series: float

    @property
    def speed_up(self) -> float:
        """How many times as fast as one node after another; 1 if nothing takes any time."""
        return self.in_series / self.seconds if self.seconds else 1.0

    @property
    def trouble(self) -> str | None:
        """Why the run would not end well, or None."""
        if self.trace.status == "done":
            return None
        if self.trace.status == "max_steps":
            return f"given up after {MOST_STEPS} node runs: the loop goes on"
        return str(self.trace.of("graph_end")[0]["error"])

    def __str__(self) -> str:
        """The text twin: "waves: 4.000 s, 2.00 times as fast as in series (8.000 s); critical path a -> c"."""
        path = " -> ".join(name if visit == 1 else f"{name} (visit {visit})" for name, visit in self.critical)
        said = (f"{self.trace.schedule}: {self.seconds:.3f} s, {self.speed_up:.2f} times as fast as in series "
                f"({self.in_series:.3f} s); critical path {path or 'none'}")
        return f"{said}; {self.trouble}" if self.trouble else said


def foretell(graph: Graph, latencies: Mapping[str, float] | None = None, schedule: str = "waves", *,
             choices: Mapping[str, Choice] | None = None) -> Forecast:
    """What a run of `graph` would take if its nodes took these times.

    latencies: node -> seconds (default 1). choices: node -> what its router says, a label, or a list of labels visit by
    visit, of which the last stays; by default `usual_choice`. A nested graph, a map or a gate takes one time like any
    node. ValueError for a name, a time or a label that cannot be meant; GraphError for a graph that cannot run.
    """
    twin = stand_in(graph, checked_latencies(graph, latencies), checked_choices(graph, choices))
    trace = Trace()
    with virtual_time():
        run_graph(twin, {}, trace, max(MOST_STEPS, len(graph.nodes)), schedule=schedule)
    in_series = sum(visit.seconds for visit in trace.visits())
    critical = [(visit.node, visit.visit) for visit in critical_path(trace, graph)]
    return Forecast(trace, trace.seconds, critical, in_series)


# ---- the stand-ins


def stand_in(graph: Graph, latencies: Mapping[str, float], choices: Mapping[str, Choice]) -> Graph:
    """A graph of the same shape whose nodes sleep, and whose routers say what was chosen; for one run."""
    twin = Graph(graph.name)
    for node in graph.nodes.values():
        twin.add_node(Node(node.name, _Sleep(latencies[node.name]), node.kind, node.max_visits, node.on_error))
    for src, targets in graph.edges.items():
        for dst in targets:
            twin.add_edge(src, dst)
    for src, (_, labels) in graph.routers.items():
        twin.add_router(src, _Say(choices[src]), labels)
    return twin


@dataclass(frozen=True)
class _Sleep:
    seconds: float

    def __call__(self, state: Any) -> None:
        sleep(self.seconds)


class _Say:
    """A router that says what it was told to, visit by visit."""

    def __init__(self, choice: Choice) -> None:
        self.labels = [choice] if isinstance(choice, str) else list(choice)

    def __call__(self, state: Any) -> str:
        return self.labels.pop(0) if len(self.labels) > 1 else self.labels[0]


# ---- what is assumed, and what was asked for


def usual_choice(graph: Graph, node: str) -> str:
    """What the router on `node` says unless told otherwise: its first label that leads on, not back."""
    labels = graph.routers[node][1]
    onward = (label for label in labels if label not in labels_back(graph, node))
    return next(onward, next(iter(labels)))


def labels_back(graph: Graph, node: str) -> list[str]:
    """The labels of the router on `node` that lead backwards: they begin another lap."""
    back = graph.plan().back
    return [label for label, ends in graph.routers[node][1].items() if any((node, dst) in back for dst in ends)]


def checked_latencies(graph: Graph, latencies: Mapping[str, float] | None) -> dict[str, float]:
    """Node -> seconds, for every node of the graph; ValueError names what cannot be meant."""
    if not isinstance(graph, Graph):
        raise TypeError(f"a forecast is made of a Graph, not of {graph!r}")
    for name, seconds in (latencies or {}).items():
        if name not in graph.nodes:
            raise ValueError(f"latencies: no such node {name!r}; {_instead(name, graph.nodes)}")
        if not _is_time(seconds):
            raise ValueError(f"latencies: {name!r} takes {seconds!r}, and a time is a number of seconds from 0")
    return {name: float((latencies or {}).get(name, USUAL)) for name in graph.nodes}


def checked_choices(graph: Graph, choices: Mapping[str, Choice] | None) -> dict[str, Choice]:
    """Node -> what its router says, for every router of the graph; ValueError names what cannot be meant."""
    graph.plan()  # a graph that cannot run has no directions to choose by
    for name, choice in (choices or {}).items():
        if name not in graph.routers:
            raise ValueError(f"choices: there is no router on {name!r}; {_instead(name, graph.routers)}")
        for label in ([choice] if isinstance(choice, str) else list(choice)) or [""]:
            if label not in graph.routers[name][1]:
                raise ValueError(f"choices: the router on {name!r} has no label {label!r}; "
                                 f"{_instead(label, graph.routers[name][1])}")
    return {name: (choices or {}).get(name, usual_choice(graph, name)) for name in graph.routers}


def _instead(name: object, names: Mapping[str, Any]) -> str:
    return (meant(str(name), names).rstrip() or
            f"there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names)) or 'none'}")


def _is_time(seconds: object) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < math.inf


# ---- what set the length of the run


def critical_path(trace: Trace, graph: Graph) -> list[Visit]:
    """The visits that set the length of a run, first to last: each could begin when the one before it was over.

    Found from the end backwards: whoever ended last before a visit began is what it waited for, at an edge or at the
    barrier. Of several that ended together, one with an edge to it is taken, else one that leads to it.
    """
    plan, order = graph.plan(), list(graph.nodes)
    visits = sorted((v for v in trace.visits() if v.node in graph.nodes), key=lambda v: order.index(v.node))
    begun, ended = _places(trace, "node_start"), _places(trace, "node_end")

    def before(visit: Visit) -> list[Visit]:
        return [other for other in visits if ended.get(_key(other), math.inf) < begun[_key(visit)]]

    latest = _latest(visits)
    path = [visit for visit in latest if not any(visit in before(other) for other in latest)][:1]
    while path and (earlier := _latest(before(path[0]))):
        name = path[0].node
        path.insert(0, min(earlier, key=lambda v: (name not in plan.outs[v.node], name not in plan.below(v.node))))
    return path


def _latest(visits: Sequence[Visit]) -> list[Visit]:
    """Those that ended last; a sum of times may differ in its last digits."""
    end = max((visit.end for visit in visits), default=0.0)
    return [visit for visit in visits if visit.end >= end - 1e-9]


def _places(trace: Trace, kind: str) -> dict[tuple[str, int], int]:
    """(node, visit) -> where in the trace its start, or its end, stands."""
    return {(event["node"], event["visit"]): place for place, event in enumerate(trace.events) if event["kind"] == kind}


def _key(visit: Visit) -> tuple[str, int]:
    return visit.node, visit.visit
