"""What a run tells of itself: who ran, how often, what failed, which ways were taken; of it and of the runs inside it.

    facts = facts_of(graph.describe(), trace)
    facts.visits["draft"], facts.routes["check", "fix"]         # 2, 1
    facts.inner["draft"].visits["outline"]                      # 2: draft runs a graph of its own

A Trace tells it in events, the journal of a GraphState in records; a GraphState without a journal tells less.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

EACH = "*"  # stands for every item of a map


@dataclass
class Facts:
    """What is known of the runs of one graph: of the one that is drawn, or of all runs inside a node."""

    known: bool = True  # False: a GraphState without its journal, which does not tell what routers said
    refusals: bool = True  # False: it is not told which visits were refused
    status: str | None = None
    seconds: float | None = None  # of the whole run
    resumed: bool = False
    visits: dict[str, int] = field(default_factory=dict)  # node -> how often it ran
    seen: Counter[str] = field(default_factory=Counter)  # how often when the run that is told of began
    before: dict[str, int] = field(default_factory=dict)  # node -> its visits of which a resumed run tells no more
    running: Counter[str] = field(default_factory=Counter)  # node -> how many of its visits are not over
    blocked: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    waiting: dict[str, str] = field(default_factory=dict)  # gate -> question
    errors: dict[str, str] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)  # node -> how many of its calls failed
    handled: dict[str, int] = field(default_factory=dict)  # node -> how many failures its on_error was handed
    spent: dict[str, float] = field(default_factory=dict)  # node -> seconds of its calls
    routes: dict[tuple[str, str], int] = field(default_factory=dict)  # (router, label) -> how often
    inner: dict[str, Facts] = field(default_factory=dict)  # node -> of the runs inside it

    def inside(self, names: Iterable[str]) -> Facts:
        """What is known of the graph at the end of this way inwards."""
        facts = self
        for name in names:
            facts = facts.inner.setdefault(name, Facts(facts.known))
        return facts

    def questions(self, path: str = "") -> Iterator[tuple[str, str]]:
        """(gate, what it asks), here and further inside: ("inner/ask", "Send it?")."""
        yield from ((f"{path}{name}", question) for name, question in self.waiting.items())
        for name, facts in self.inner.items():
            yield from facts.questions(path if name == EACH else f"{path}{name}/")


def facts_of(described: Mapping[str, Any], run: Any) -> Facts:
    """What a Trace or a GraphState tells of a graph that describes itself so. TypeError for anything else."""
    if isinstance(getattr(run, "events", None), list):
        return _facts_of_events(described, run.events)
    if isinstance(getattr(run, "visits", None), Mapping):
        return _facts_of_state(described, run)
    raise TypeError(f"cannot draw a run from {run!r}: pass the GraphState that run_graph returned, or a Trace")


def _facts_of_events(described: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Facts:
    top = Facts()
    ways: dict[Any, list[str] | None] = {None: []}  # path -> the names of the nodes it leads through
    ways.update({node["name"]: [node["name"]] for node in described["nodes"]})
    for event in events:
        path = event.get("node")
        if path not in ways:
            ways[path] = _names(described, str(path))
        names = ways[path]
        if names is not None:
            _hear(top, names, event)
    return top


def _names(described: Mapping[str, Any], path: str) -> list[str] | None:
    """The names of the nodes that a path leads through, ["outer", "inner"], each item of a map being called "*":
    ["map", "*", "inner"]; None for a path that leads nowhere. A name may have a slash in it."""
    if any(node["name"] == path for node in described["nodes"]):
        return [path]
    for node in described["nodes"]:
        name = node["name"]
        if not ("graph" in node or node["kind"] == "map") or not path.startswith(f"{name}/"):
            continue
        rest, names = path[len(name) + 1:], [name]
        if node["kind"] == "map":
            item, _, rest = rest.partition("/")
            names += [EACH] if item.isdecimal() else []
            if not rest:
                return names
        inner = _names(node["graph"], rest) if "graph" in node else None
        if inner:
            return names + inner
    return None


def _hear(top: Facts, names: list[str], event: Mapping[str, Any]) -> None:
    """Takes an event of the node that these names lead to, or of the run inside it."""
    if event["kind"] in ("graph_start", "graph_end", "route"):
        _hear_graph(top.inside(names), event)
    elif names:
        _hear_node(top.inside(names[:-1]), names[-1], event)


def _hear_graph(facts: Facts, event: Mapping[str, Any]) -> None:
    if event["kind"] == "graph_start":
        facts.resumed = bool(event.get("resumed"))
        facts.seen, facts.refused = Counter(facts.visits), set()
    elif event["kind"] == "graph_end":
        facts.status, facts.seconds = event["status"], event["ms"] / 1000
        if facts.resumed:  # what the run had done before, it tells in its path alone
            facts.before = Counter(event["path"]) - (Counter(facts.visits) - facts.seen)
            facts.visits = Counter(facts.visits) + facts.before
    else:
        named = event["label"]
        for label in named if isinstance(named, (list, tuple)) else [] if named is None else [named]:
            _count(facts.routes, (event["router"], label))
        if event.get("error"):
            facts.errors[event["router"]] = event["error"]
            _count(facts.handled, event["router"])


def _hear_node(facts: Facts, node: str, event: Mapping[str, Any]) -> None:
    kind = event["kind"]
    if kind == "node_start":
        _count(facts.visits, node)
        facts.running[node] += 1
    elif kind == "node_end":
        facts.spent[node] = facts.spent.get(node, 0.0) + event["ms"] / 1000
        facts.running[node] -= 1
        if facts.running[node] <= 0:
            del facts.running[node]
        facts.waiting.pop(node, None)
        if event["error"]:
            facts.errors[node] = event["error"]
            _count(facts.failed, node)
            _count(facts.handled, node)
    elif kind == "refused":
        facts.errors[node] = event["why"]
        if node not in facts.refused:  # a node is refused into its on_error only once
            _count(facts.handled, node)
        facts.refused.add(node)
    elif kind == "blocked":
        facts.blocked.add(node)
    elif kind == "pause":
        facts.waiting[node] = str(event["question"])
        facts.running[node] = facts.running[node] or 1


def _count(counts: dict[Any, int], key: Any) -> None:
    counts[key] = counts.get(key, 0) + 1


_INSIDE = re.compile(r"#\d+(?:\.\d+)?/")  # as in outer#2/inner


def _facts_of_state(described: Mapping[str, Any], state: Any) -> Facts:
    """A GraphState tells what ran and what failed; its journal, where it has one, also what routers said."""
    records = list(getattr(state, "journal", ()))
    top = _facts_of_events(described, _told(records))
    top.known = bool(records)
    if top.known:
        top.running = Counter(state.visits) - Counter(top.visits)
    top.status, top.visits, top.errors = state.status, dict(state.visits), {**top.errors, **state.errors}
    for path, question in state.waiting.items():
        names = _names(described, path) or []
        for depth, name in enumerate(names):
            running = top.inside(names[:depth]).running
            running[name] = running[name] or 1
        if names:
            top.inside(names[:-1]).waiting[names[-1]] = str(question)
    for node in described["nodes"]:  # that a visit was refused is in no record
        if top.errors.get(node["name"]) == f"max_visits={node['max_visits']} reached":
            _count(top.handled, node["name"])
    within = [*top.inner.values()]
    for facts in within:
        facts.refusals = False
        within += facts.inner.values()
    return top


def _told(records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The events that records stand for, as far as they matter here."""
    for record in records:
        kind = next(iter(record))
        error = record.get("error")
        if kind in ("node", "gate"):
            path = _INSIDE.sub("/", record[kind])
            yield {"kind": "node_start", "node": path}
            yield {"kind": "node_end", "node": path, "ms": 0, "error": error}
        elif kind == "router":
            *outer, name = _INSIDE.split(record["router"])
            where = {"node": "/".join(outer)} if outer else {}
            yield {"kind": "route", "router": name, "label": record.get("label"), "error": error, **where}
