"""A graph is data: nodes, the edges between them, and which way each edge points.

    graph = Graph("hello")
    graph.add_node("ask", lambda state: {"name": "Ada"})
    graph.add_node("greet", lambda state: {"text": f"Hello {state['name']}"})
    graph.add_edge(START, "ask").add_edge("ask", "greet").add_edge("greet", END)

Static edges always fire. A router's edges, and the edge to `on_error`, are conditional. A conditional edge points
backwards when its target already leads to its source; all other edges point forward, so they never make a circle.
Whatever is wrong with a graph is a GraphError before any node runs.
"""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

START, END = "START", "END"
RESERVED = (START, END, "engine")  # errors["engine"] is where a run says that max_steps ended it
KINDS = ("fn", "tool", "llm", "agent", "human", "graph", "map")

NodeFn = Callable[[Any], Any]  # reads the state, returns the keys to merge
RouteFn = Callable[[Any], Any]  # reads the state, returns a label, or several
Targets = Mapping[str, Union[str, "list[str]", "tuple[str, ...]"]]


class GraphError(ValueError):
    """The graph, or the call that runs it, is wrong. Nothing has run when it is raised."""


@dataclass(frozen=True)
class Node:
    """A step: a name and any callable `state -> update`.

    max_visits: how often it may run in one run; the visit after that is refused, which is a failure of the node.
    on_error: the node that goes on when this one fails, or END. kind: one of KINDS; pictures tell them apart.
    """

    name: str
    fn: NodeFn
    kind: str = "fn"
    max_visits: int | None = None
    on_error: str | None = None

    def inner(self) -> Graph | None:
        """The graph that this node runs, be there wrappers around it; None if it runs none."""
        found = getattr(self._innermost(), "graph", None)
        return found if isinstance(found, Graph) else None

    def gate(self) -> Any:
        """What takes the answer, by `accept(answer)`, if this node asks a person; None if it does not."""
        fn = self._innermost()
        return fn if hasattr(fn, "accept") and not isinstance(fn, type) else None

    def _innermost(self) -> Any:
        fn: Any = self.fn
        while not isinstance(fn, type) and hasattr(fn, "fn"):
            fn = fn.fn
        return fn


class Graph:
    """Nodes and edges, drawn, run and explained from the same data. The add methods return the graph."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}  # in the order they were added
        self.edges: dict[str, dict[str, None]] = {START: {}}  # source -> its targets, in order
        self.routers: dict[str, tuple[RouteFn, dict[str, tuple[str, ...]]]] = {}  # node -> route, label -> targets
        self._plan: Plan | None = None

    def __repr__(self) -> str:
        edges = sum(map(len, self.edges.values()))
        return f"<Graph {self.name!r}: {len(self.nodes)} nodes, {edges} edges, {len(self.routers)} routers>"

    def add_node(self, node: Node | str, fn: NodeFn | None = None, *, kind: str = "fn",
                 max_visits: int | None = None, on_error: str | None = None) -> Graph:
        """Adds a Node, or makes one: `add_node("name", fn)`. GraphError for a name that is taken or reserved."""
        if not isinstance(node, Node):
            node = Node(node, fn, kind, max_visits, on_error)  # type: ignore[arg-type]
        _check_node(node, self.nodes)
        self.nodes[node.name] = node
        self.edges[node.name] = {}
        self._plan = None
        return self

    def add_edge(self, src: str, dst: str) -> Graph:
        """Adds a static edge: when `src` has run, `dst` gets a ticket. Adding it twice changes nothing."""
        if src == END or dst == START:
            raise GraphError(f"edge {src!r} -> {dst!r}: START only begins edges and END only ends them")
        for end in (src, dst):
            self._known(end, f"edge {src!r} -> {dst!r}")
        if src in self.routers:
            raise GraphError(f"edge {src!r} -> {dst!r}: {src!r} has a router, and a node has a router or static edges, "
                             f"not both; let a label of the router name {dst!r} too")
        self.edges[src][dst] = None
        self._plan = None
        return self

    def add_router(self, src: str, route: RouteFn, targets: Targets) -> Graph:
        """Adds conditional edges: after `src`, `route(state)` returns a label (or several) of `targets`.

        targets: label -> node, END, or a list of nodes that then run together.
        """
        where = f"router on {src!r}"
        self._known(src, where)
        if src in (START, END):
            raise GraphError(f"{where}: a router follows a node; add a first node and put the router there")
        if src in self.routers:
            raise GraphError(f"{where}: it has one already, and a node has one router; give that one more labels")
        if self.edges[src]:
            raise GraphError(f"{where}: it has static edges, and a node has a router or static edges, not both; "
                             f"remove {src!r} -> {next(iter(self.edges[src]))!r} or name it under a label")
        if not callable(route):
            raise GraphError(f"{where}: the route must be a function of the state, not {route!r}")
        if not isinstance(targets, Mapping) or not targets:
            raise GraphError(f"{where}: targets must say label -> node, as in {{'yes': 'save', 'no': END}}; "
                             f"got {targets!r}")
        self.routers[src] = route, {label: self._ends(where, label, named) for label, named in targets.items()}
        self._plan = None
        return self

    def describe(self) -> dict[str, Any]:
        """The graph as plain data (it dumps to JSON): what runs, and what every picture is drawn from.

        A node that runs a graph has that one's description under "graph".
        """
        _check_nesting(self, ())
        plan = Plan(self)
        nodes = [{"name": n.name, "kind": n.kind, "max_visits": n.max_visits, "on_error": n.on_error,
                  **({"graph": inner.describe()} if (inner := n.inner()) else {})} for n in self.nodes.values()]
        edges = [{"src": src, "dst": dst, "conditional": label is not None, "label": label,
                  "backwards": (src, dst) in plan.back} for src, dst, label in self._all_edges()]
        return {"name": self.name, "nodes": nodes, "edges": edges}

    def plan(self) -> Plan:
        """The checked plan that a run follows; GraphError names the first thing that is wrong with the graph."""
        if self._plan is None:
            plan = Plan(self)
            plan.check()
            self._plan = plan
        return self._plan

    def lint(self) -> list[str]:
        """Advice, a sentence each: what is allowed but is probably not meant. GraphError if the graph cannot run."""
        return list(_advice(self, self.plan()))

    # A graph shows itself; drawing is another module's work, loaded when it is asked for.

    def to_dot(self) -> str:
        """The graph in Graphviz's DOT language."""
        from . import draw
        return draw.to_dot(self.describe())

    def to_mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        from . import draw
        return draw.to_mermaid(self.describe())

    def to_text(self) -> str:
        """The graph in words, a line a node."""
        from . import draw
        return draw.to_text(self.describe())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        from . import draw
        return draw.draw(self)._repr_mimebundle_(include, exclude)

    def _known(self, name: str, where: str) -> None:
        if not isinstance(name, str) or name not in self.nodes and name not in (START, END):
            raise GraphError(f"{where}: {_no_such_node(name, self.nodes)}")

    def _ends(self, where: str, label: object, named: object) -> tuple[str, ...]:
        """The targets of one label, checked, each once."""
        if not isinstance(label, str):
            raise GraphError(f"{where}: the label {label!r} is no string; labels are strings, as in {str(label)!r}")
        ends = tuple(named) if isinstance(named, (list, tuple)) else (named,)
        if not ends:
            raise GraphError(f"{where}: label {label!r} names no target; name END to end the branch")
        for end in ends:
            if end == START:
                raise GraphError(f"{where}: label {label!r} names START; name the node to go back to")
            self._known(end, f"{where}, label {label!r}")
        return tuple(dict.fromkeys(ends))

    def _all_edges(self) -> Iterator[tuple[str, str, str | None]]:
        """Every edge as (source, target, label), label None for a static one."""
        for src in (START, *self.nodes):
            yield from ((src, dst, None) for dst in self.edges[src])
            for label, ends in self.routers.get(src, (None, {}))[1].items():
                yield from ((src, dst, label) for dst in ends)
            if src != START and self.nodes[src].on_error is not None:
                yield src, self.nodes[src].on_error, "on_error"  # type: ignore[misc]


class Plan:
    """What a run needs to know of a graph, found out once: the order of its nodes and the direction of its edges."""

    def __init__(self, graph: Graph, reverse_labels: bool = False) -> None:
        self.graph, self.reverse_labels = graph, reverse_labels
        self.nodes, self.routers = dict(graph.nodes), dict(graph.routers)
        self.order = {name: i for i, name in enumerate(graph.nodes)}  # node -> its place
        self.back: set[tuple[str, str]] = set()  # the edges that point backwards
        self.outs: dict[str, list[str]] = {name: [] for name in (START, *graph.nodes)}  # node -> forward targets
        self.ins: dict[str, list[str]] = {name: [] for name in (START, *graph.nodes)}  # node -> forward sources
        self._below: dict[str, frozenset[str]] = {}
        self._described: dict[str, Any] = {}
        for src, targets in graph.edges.items():
            for dst in targets:
                self._join(src, dst)
        self.rank = self._ranks()  # node -> a number, greater than that of every node before it
        self.reached = self._breadth_first()
        for src in [*self.reached, *(n for n in graph.nodes if n not in self.reached)]:
            for dst in self._choices(src):
                if dst not in self.outs[src] and not self._points_back(src, dst):
                    self._join(src, dst)
        # What a run asks after each visit: whom to hand a ticket, and whom a failed one.
        self.next = {name: [d for d in graph.edges[name] if d != END] for name in self.outs}
        self.spoils = {name: self._spoils(name) for name in graph.nodes}
        # START delivers at once and never again: nobody waits for it.
        for name in graph.edges[START]:
            if name != END:
                self.ins[name].remove(START)
        self.missing = {name: len(sources) for name, sources in self.ins.items()}

    def describe(self) -> dict[str, Any]:
        """What `Graph.describe()` says, found out once."""
        if not self._described:
            self._described.update(self.graph.describe())
        return self._described

    def below(self, name: str) -> frozenset[str]:
        """The nodes that `name` leads to along forward edges."""
        if name not in self._below:
            self._below[name] = frozenset(_reach(self.outs[name], self.outs))
        return self._below[name]

    def check(self) -> None:
        """Raises GraphError for what only the whole graph can show."""
        graph = self.graph
        if not graph.edges[START]:
            raise GraphError(f"graph {graph.name!r} has no edge out of START; "
                             "begin it with add_edge(START, 'first node')")
        for node in graph.nodes.values():
            if node.on_error is not None and node.on_error not in graph.nodes and node.on_error != END:
                raise GraphError(f"on_error of {node.name!r}: {_no_such_node(node.on_error, graph.nodes)}")
        lost = [name for name in graph.nodes if name not in self.reached]
        if lost:
            raise GraphError(f"nothing leads from START to {', '.join(map(repr, lost[:5]))}: "
                             f"add an edge to {'it' if len(lost) == 1 else 'them'}, or leave {lost[0]!r} out")
        free = [name for name in graph.nodes if graph.nodes[name].max_visits is None]
        loop = _find_cycle(free, lambda name: self._every_target(name))
        if loop:
            raise GraphError(f"the cycle {_arrows(loop)} has no bound: give one of its nodes max_visits=, "
                             f"as in add_node({loop[0]!r}, ..., max_visits=3)")
        _check_nesting(graph, ())
        for node in graph.nodes.values():
            if inner := node.inner():
                inner.plan()

    def _join(self, src: str, dst: str) -> None:
        if dst != END and dst in self.ins:
            self.outs[src].append(dst)
            self.ins[dst].append(src)

    def _ranks(self) -> dict[str, int]:
        """A topological order of the static edges (Kahn's algorithm); GraphError names a cycle if there is none."""
        missing = {name: len(sources) for name, sources in self.ins.items()}
        free = deque(name for name, count in missing.items() if not count)
        rank: dict[str, int] = {}
        while free:
            name = free.popleft()
            rank[name] = len(rank)
            for dst in self.outs[name]:
                missing[dst] -= 1
                if not missing[dst]:
                    free.append(dst)
        if len(rank) < len(missing):
            loop = _find_cycle([n for n in missing if n not in rank], self.outs.__getitem__)
            raise GraphError(f"the static edges {_arrows(loop)} make a cycle that nothing can stop: "
                             "let a router decide whether to go back")
        return rank

    def _breadth_first(self) -> dict[str, None]:
        """The nodes that START leads to along any edge, nearest first."""
        seen = {START: None}
        todo = deque([START])
        while todo:
            for dst in self._every_target(todo.popleft()):
                if dst not in seen:
                    seen[dst] = None
                    todo.append(dst)
        return seen

    def _choices(self, src: str) -> list[str]:
        """The targets of the conditional edges out of a node: its labels in order, `on_error` last; END left out."""
        if src == START:
            return []
        labels = list(self.graph.routers.get(src, (None, {}))[1].values())
        ends = [dst for named in (labels[::-1] if self.reverse_labels else labels) for dst in named]
        handler = self.graph.nodes[src].on_error
        return [dst for dst in (*ends, handler) if dst in self.ins]

    def _every_target(self, src: str) -> list[str]:
        return [dst for dst in self.graph.edges[src] if dst != END] + self._choices(src)

    def _points_back(self, src: str, dst: str) -> bool:
        """True, and noted, if dst leads to src already; otherwise the ranks are mended so that dst comes after src.

        The search never looks past the ranks between the two (Pearce and Kelly, "A dynamic topological sort
        algorithm for directed acyclic graphs", 2006): an edge that agrees with the order costs nothing.
        """
        rank, low, high = self.rank, self.rank[dst], self.rank[src]
        if low > high:
            return False
        after = _reach([dst], self.outs, lambda n: rank[n] <= high)
        if src in after:
            self.back.add((src, dst))
            return True
        before = _reach([src], self.ins, lambda n: rank[n] >= low)
        moved = [*sorted(before, key=rank.__getitem__), *sorted(after, key=rank.__getitem__)]
        places = sorted(rank[name] for name in moved)
        rank.update(zip(moved, places, strict=True))
        return False

    def _spoils(self, name: str) -> list[str]:
        """Whom a failure of this node without a handler reaches: forward static and router targets."""
        named = [dst for ends in self.graph.routers.get(name, (None, {}))[1].values() for dst in ends]
        ends = dict.fromkeys([*self.graph.edges[name], *named])
        return [dst for dst in ends if dst != END and (name, dst) not in self.back]


def _check_node(node: Node, others: Mapping[str, Node]) -> None:
    name = node.name
    if not isinstance(name, str) or not name:
        raise GraphError(f"a node's name must be a string that is not empty, not {name!r}")
    if name in RESERVED:
        raise GraphError(f"node {name!r}: this name is reserved; choose another")
    if re.search(r"#\d+(\.\d+)?/", name):
        raise GraphError(f"node {name!r}: a journal names what ran inside a node like this; leave the #1/ out")
    if name in others:
        raise GraphError(f"node {name!r}: there is one of this name already; every node has a name of its own")
    if not callable(node.fn):
        raise GraphError(f"node {name!r}: its function must be callable, not {node.fn!r}; "
                         f"as in add_node({name!r}, lambda state: {{'key': 'value'}})")
    if node.kind not in KINDS:
        raise GraphError(f"node {name!r}: kind {node.kind!r} is none of {', '.join(KINDS)}")
    cap = node.max_visits
    if cap is not None and (not isinstance(cap, int) or isinstance(cap, bool) or cap < 1):
        raise GraphError(f"node {name!r}: max_visits={cap!r} must be a whole number from 1, or None for no cap")
    if node.on_error == START:
        raise GraphError(f"node {name!r}: on_error names START; name the node to go back to")


def _check_nesting(graph: Graph, above: tuple[Graph, ...]) -> None:
    """Raises GraphError if a graph runs inside itself."""
    for node in graph.nodes.values():
        inner = node.inner()
        if inner is not None and any(inner is outer for outer in (*above, graph)):
            raise GraphError(f"node {node.name!r} runs the graph {inner.name!r}, which is inside itself then, without "
                             "end; to go round, let a router point backwards")
        if inner is not None:
            _check_nesting(inner, (*above, graph))


def _no_such_node(name: object, nodes: Mapping[str, Node]) -> str:
    if not isinstance(name, str):
        return (f"no such node {name!r}: an end is the name of one node, a string; "
                "several targets are several edges, or stand under a router's label")
    if hint := meant(name, (*nodes, START, END)):
        return f"no such node {name!r}; {hint}"[:-1]
    listed = ", ".join(map(repr, list(nodes)[:8])) + (", ..." if len(nodes) > 8 else "")
    return f"no such node {name!r}; " + (f"add it first: the graph has {listed}" if nodes else "add its nodes first")


def meant(name: str, names: Iterable[str]) -> str:
    """"did you mean 'review'? ", or "" if no name comes close; capitals do not count."""
    known = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), known, n=1)
    return f"did you mean {known[close[0]]!r}? " if close else ""


def _reach(begin: Iterable[str], outs: Mapping[str, Iterable[str]],
           within: Callable[[str], bool] = lambda name: True) -> set[str]:
    """The nodes that can be reached from `begin`, itself included, passing only nodes that are `within`."""
    seen = set(begin)
    todo = list(seen)
    while todo:
        for dst in outs[todo.pop()]:
            if dst not in seen and within(dst):
                seen.add(dst)
                todo.append(dst)
    return seen


def _find_cycle(names: Iterable[str], targets: Callable[[str], Iterable[str]]) -> list[str]:
    """The nodes of one cycle among `names`, in order, or []."""
    outs = {name: [] for name in names}  # type: dict[str, list[str]]
    before = dict.fromkeys(outs, 0)
    for name in outs:
        outs[name] = [dst for dst in targets(name) if dst in outs]
        for dst in outs[name]:
            before[dst] += 1
    free = [name for name, count in before.items() if not count]
    while free:  # take away whatever nothing leads to; what is left lies on a cycle or below one
        for dst in outs.pop(free.pop()):
            before[dst] -= 1
            if not before[dst]:
                free.append(dst)
    above: dict[str, str] = {dst: name for name in outs for dst in outs[name]}
    if not above:
        return []
    here = next(iter(above))
    walk: dict[str, int] = {}  # node -> how far along the way back it stands
    while here not in walk:
        walk[here] = len(walk)
        here = above[here]
    return list(walk)[walk[here]:][::-1]


def _arrows(loop: list[str]) -> str:
    shown = loop if len(loop) <= 8 else [*loop[:7], "..."]
    return " -> ".join(repr(name) if name != "..." else name for name in [*shown, loop[0]])


def _advice(graph: Graph, plan: Plan) -> Iterator[str]:
    """What lint says."""
    for name in graph.nodes:
        if not graph.edges[name] and name not in graph.routers:
            yield f"{name!r} has no edge out, so its branch ends there; add_edge({name!r}, END) would say so"
    for src, dst in sorted(plan.back - Plan(graph, reverse_labels=True).back, key=lambda e: plan.order[e[0]]):
        yield (f"{src!r} -> {dst!r} points backwards only because of the order in which the labels of a router are "
               "declared; declare the label that comes first in time first")
    for src, head in sorted(plan.back, key=lambda edge: (plan.order[edge[0]], plan.order[edge[1]])):
        yield from _leaks(graph, plan, src, head)


def _leaks(graph: Graph, plan: Plan, last: str, head: str) -> Iterator[str]:
    """Branches that leave the loop head..last while it may still go round: there the schedules can differ."""
    body = ({head} | plan.below(head)) & ({last} | _reach(plan.ins[last], plan.ins))
    for name in sorted(body & set(graph.nodes), key=plan.order.__getitem__):
        together = [graph.edges[name], *graph.routers.get(name, (None, {}))[1].values()]
        for ends in together:
            inside = [dst for dst in ends if dst in body or (name, dst) == (last, head)]
            leaving = [dst for dst in ends if dst not in body and dst != END]
            if inside and leaving:
                yield (f"in the loop {head!r} ... {last!r}, {name!r} starts {leaving[0]!r}, which leaves the loop "
                       f"while {inside[0]!r} may bring the next lap; let {leaving[0]!r} wait until the loop is over")
