"""A graph can be one node of another, and a node can be run once for each item of a list.

    outer.add_node(graph_node("research", inner, in_keys=["topic"], out_keys=["notes"]))
    outer.add_node(map_node("summarise", summarise, over="pages", out_key="summaries"))

Both run inside their node as a part of the run: heard, timed, paused and resumed with it. A map is a graph, too: one
that is drawn when its list is known, a node an item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from .engine import run_inside
from .models.base import look_up, name_of
from .shape import END, START, Graph, Node
from .state import GraphState, short


class InnerFailure(RuntimeError):
    """What failed inside a node: the text names the inner node, or the items."""


def graph_node(name: str, graph: Graph, in_keys: Sequence[str], out_keys: Sequence[str], *,
               max_steps: int | None = None, max_visits: int | None = None, on_error: str | None = None) -> Node:
    """A node that runs a graph: only `in_keys` go in, and of `out_keys` those come out that the graph wrote.

    An inner failure that nobody handled fails the node, and names the inner node. max_steps is the inner run's own.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph_node {name!r}: it runs a Graph, not {graph!r}")
    for what, keys in (("in_keys", in_keys), ("out_keys", out_keys)):
        if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
            raise TypeError(f"graph_node {name!r}: {what}={keys!r} must be a list of keys, as in [{str(keys)!r}]")
    return Node(name, RunGraph(graph, tuple(in_keys), tuple(out_keys), max_steps), "graph", max_visits, on_error)


@dataclass(frozen=True)
class RunGraph:
    """The function of a graph_node."""

    graph: Graph
    in_keys: tuple[str, ...]
    out_keys: tuple[str, ...]
    max_steps: int | None = None

    def __repr__(self) -> str:
        return f"<run {self.graph.name}: {', '.join(self.in_keys)} -> {', '.join(self.out_keys)}>"

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        result = run_inside(self.graph, {key: look_up(state, key) for key in self.in_keys}, self.max_steps)
        if result.status != "done":
            raise InnerFailure(f"in graph {self.graph.name!r}: {why_not(result)}")
        return {key: result[key] for key in self.out_keys if key in result._written}


def map_node(name: str, fn: Callable[[Any], Any], over: str, out_key: str, *,
             max_visits: int | None = None, on_error: str | None = None) -> Node:
    """A node that calls `fn` with every item of the list `state[over]`, at once, and writes the list of results.

    The results stand in the order of the items; of no items the result is []. When items fail, all the others are
    finished first, and the failure names those that failed.
    """
    if not callable(fn):
        raise TypeError(f"map_node {name!r}: fn is called with each item, and {fn!r} cannot be called")
    if not isinstance(over, str) or not isinstance(out_key, str):
        raise TypeError(f"map_node {name!r}: keys of the blackboard are strings; got {over!r} and {out_key!r}")
    return Node(name, MapItems(fn, over, out_key), "map", max_visits, on_error)


@dataclass(frozen=True)
class MapItems:
    """The function of a map_node."""

    fn: Callable[[Any], Any]
    over: str
    out_key: str

    def __repr__(self) -> str:
        return f"<{name_of(self.fn)} of each of {self.over} -> {self.out_key}>"

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        items = look_up(state, self.over)
        if isinstance(items, (str, bytes, Mapping)) or not hasattr(items, "__iter__"):
            raise TypeError(f"state[{self.over!r}] is a value of type {type(items).__name__}, and a map goes "
                            "over a list: wrap it in one")
        items = list(items)
        if not items:
            return {self.out_key: []}
        result = run_inside(self.drawn(items), {})
        if result.status != "done":
            raise InnerFailure(_which(items, result))
        return {self.out_key: [result[str(number)] for number in range(len(items))]}

    def drawn(self, items: list[Any]) -> Graph:
        """The graph with a node for each item, named by its number."""
        graph = Graph(name_of(self.fn))
        for number, item in enumerate(items):
            graph.add_node(str(number), Item(self.fn, str(number), item)).add_edge(START, str(number))
            graph.add_edge(str(number), END)
        return graph


@dataclass(frozen=True)
class Item:
    """The call for one item."""

    fn: Callable[[Any], Any]
    key: str
    item: Any

    def __call__(self, state: Mapping[str, Any]) -> Any:
        result = self.fn(self.item)
        return result if isawaitable(result) else {self.key: result}  # the engine says what to do about a coroutine


def why_not(result: GraphState) -> str:
    """Why a run inside a node did not come to its end, in a few words."""
    if result.status == "paused":
        return (f"gate {next(iter(result.waiting))!r} waits for a person, and cannot wait outside a run or in an "
                "executor elsewhere: leave out executor=")
    if result.status == "max_steps":
        return result.errors["engine"]
    return "; ".join(result._unhandled[:3])


def _which(items: list[Any], result: GraphState) -> str:
    if result.status != "failed":
        return why_not(result)
    failed = list(result.errors)
    told = "; ".join(f"item {name} ({short(items[int(name)], 40)}): {result.errors[name]}" for name in failed[:3])
    more = f"; and {len(failed) - 3} more" if len(failed) > 3 else ""
    return f"{len(failed)} of {len(items)} items failed: {told}{more}"
