"""What happened at one moment has an order, too, that of the graph: a run in virtual time reads the same every time.

    in_order(events)            # by time; nodes that begin or end together stand as the graph has them

The engine tells its own events in order. What nodes say in threads, and what graphs inside them tell, is heard in any
order and put beside the visits it belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Any

Event = dict[str, Any]


def in_order(events: list[Event]) -> list[Event]:
    """The events by time. The engine tells its own in order; what nodes say in threads is put beside their visits."""
    ordered: list[Event] = []
    for run in _runs(events):
        places = _places(run)
        for _, moment in groupby(sorted(run, key=lambda event: event["t"]), key=lambda event: event["t"]):
            ordered += _one_moment(list(moment), "", places)
    return ordered


def _runs(events: list[Event]) -> list[list[Event]]:
    """The events run by run, where a trace heard one that was resumed after the one before it."""
    runs: list[list[Event]] = [[]]
    over = False
    for event in events:
        if over and event["kind"] == "graph_start" and "node" not in event:
            runs.append([])
            over = False
        over = over or event["kind"] == "graph_end" and "node" not in event
        runs[-1].append(event)
    return runs


def _places(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """Path of a run -> its nodes -> their place in the graph."""
    found = {}
    for event in events:
        if event["kind"] == "graph_start":
            path = event.get("node", "")
            found[path] = {f"{path}/{name}" if path else name: at for at, name in enumerate(event["nodes"])}
    return found


def _one_moment(events: list[Event], path: str, places: dict[str, dict[str, int]]) -> list[Event]:
    """Events of one time, heard of the run at `path`: neighbours in the order of its graph.

    What a node said, and what a graph inside it told, stands before the end of that visit, else after its start, else
    before all.
    """
    if len(events) == 1:
        return events
    nodes, ends = places.get(path, {}), Counter[str]()
    told: list[Event] = []
    said: dict[tuple[str, int], list[Event]] = {}  # (node, how many of its visits had ended) -> what it said
    for event in events:
        if speaker := _speaker(event, path, nodes):
            said.setdefault((speaker, ends[speaker]), []).append(event)
        else:
            told.append(event)
            ends[event.get("node", "")] += event["kind"] == "node_end"
    told = _in_turn(told, nodes)
    spots = _spots(told)
    found = []  # (where among what is told, what is said there)
    for (name, ended), heard in said.items():
        there = spots.get(name, [(-1, nodes.get(name, -1))])
        found.append((there[min(ended, len(there) - 1)], _one_moment(heard, name, places)))
    found += [((at, 1), [event]) for at, event in enumerate(told)]
    return [event for _, heard in sorted(found, key=lambda pair: pair[0]) for event in heard]


def _spots(told: list[Event]) -> dict[str, list[tuple[int, int]]]:
    """Node -> where what it said belongs, visit by visit: before an end (at, 0), or after the last start (at, 2)."""
    found: dict[str, list[tuple[int, int]]] = {}
    begun: dict[str, int] = {}  # node -> where its visit began that has no end here
    for at, event in enumerate(told):
        if event["kind"] == "node_start":
            begun[event["node"]] = at
        elif event["kind"] == "node_end":
            begun.pop(event["node"], None)
            found.setdefault(event["node"], []).append((at, 0))
    for name, at in begun.items():
        found.setdefault(name, []).append((at, 2))
    return found


def _in_turn(told: list[Event], nodes: dict[str, int]) -> list[Event]:
    """What a run told of itself in one moment, as it told it; nodes that begin, or end, together in their order."""
    ordered: list[Event] = []
    for kind, alike in groupby(told, key=lambda event: event["kind"]):
        in_turn = kind in ("node_start", "node_end")
        ordered += sorted(alike, key=lambda event: nodes.get(event["node"], -1) if in_turn else 0)
    return ordered


_OF_NODES = frozenset(["node_start", "node_end", "refused", "blocked", "pause"])  # what a run tells of a node by name


def _speaker(event: Event, path: str, nodes: dict[str, int]) -> str:
    """The node of the run at `path` that says this, itself or by way of a graph inside it; "" if the run tells it."""
    node = name = str(event.get("node", path))
    while name and name != path and name not in nodes and name.rpartition("/")[0] != path:
        name = name.rpartition("/")[0]
    told = name == path or node == name and event["kind"] in _OF_NODES and name in nodes
    return "" if told else name
