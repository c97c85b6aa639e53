"""A trace is what happened: the events of one run, in order, and the tables made of them.

    trace = Trace()
    run_graph(graph, {}, trace)
    print(trace)                # a table of waves: who ran, from when to when, and who waited at the barrier
    trace.to_jsonl("monday.jsonl")
    Trace.from_jsonl("monday.jsonl")

A Trace is an observer. It records and it computes; drawing is another module's work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any


@dataclass
class Visit:
    """One run of one node. Seconds since the start of the run; `wait` is the time it stood at the barrier."""

    node: str
    visit: int
    wave: int | None  # from 1; None where there are no waves
    start: float
    end: float
    wait: float = 0.0
    keys: list[str] = field(default_factory=list)
    error: str | None = None
    retries: int = 0

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass
class Call:
    """One call of a model or a tool. `kind` is "llm" or "tool"; `node` is None in a loop outside a graph."""

    kind: str
    name: str
    node: str | None
    start: float
    end: float
    error: str | None = None

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Trace:
    """The events of one run: dicts with `kind`, `t` (seconds since the start) and what the event says."""

    def __init__(self, events: Iterable[dict[str, Any]] = ()) -> None:
        self._events: list[dict[str, Any]] = list(events)
        self._sorted = 0  # how many events the sorted list holds
        self._in_order: list[dict[str, Any]] = []

    def __call__(self, kind: str, event: dict[str, Any]) -> None:
        self._events.append({"kind": kind, **event})

    def __repr__(self) -> str:
        return f"<Trace of {self.name!r}: {len(self)} events, {self.seconds:.3f} s, {self.status or 'not ended'}>"

    def __str__(self) -> str:
        return self.to_text()

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.events)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events in the order of their time; what happened at the same time stands in the order of the graph."""
        if self._sorted != len(self._events):
            self._sorted = len(self._events)
            self._in_order = _in_order(self._events[: self._sorted])
        return self._in_order

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these kinds, in order."""
        return [event for event in self.events if event["kind"] in kinds]

    def _first(self, *kinds: str) -> dict[str, Any]:
        return next(iter(self.of(*kinds)), {})

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return str(self._first("graph_start", "loop_start").get("workflow", "trace"))

    @property
    def nodes(self) -> list[str]:
        """The graph's nodes, in its order; [] for a loop."""
        return list(self._first("graph_start").get("nodes", []))

    @property
    def schedule(self) -> str | None:
        """"waves" or "ready"; None for a loop."""
        return self._first("graph_start").get("schedule")

    @property
    def status(self) -> str | None:
        """How it ended; None while it has not."""
        return self._first("graph_end", "loop_end").get("status")

    @property
    def seconds(self) -> float:
        """From the start to the last event."""
        return max((event["t"] for event in self._events), default=0.0)

    def visits(self) -> list[Visit]:
        """Every run of a node, in order of its start. A visit that has not ended lasts until the last event."""
        found: dict[tuple[str, int], Visit] = {}
        latest: dict[str, Visit] = {}  # node -> its visit that began last
        over = self.seconds
        for event in self.events:
            kind = event["kind"]
            if kind == "node_start":
                key = event["node"], event["visit"]
                found[key] = latest[event["node"]] = Visit(*key, event.get("wave"), event["t"], over)
            elif kind == "node_end" and (event["node"], event["visit"]) in found:
                visit = found[event["node"], event["visit"]]
                visit.end, visit.keys, visit.error = event["t"], list(event["keys"]), event["error"]
                visit.start = min(visit.end, max(visit.start, visit.end - event["ms"] / 1000))
            elif kind == "retry" and event["node"] in latest:
                latest[event["node"]].retries += 1
        waits = {(wave["wave"], node): ms / 1000 for wave in self.of("wave_end") for node, ms in wave["waits"].items()}
        for visit in found.values():
            visit.wait = waits.get((visit.wave, visit.node), 0.0)
        return list(found.values())

    def waves(self) -> list[list[Visit]]:
        """The visits, wave by wave; [] for a run without waves."""
        found: dict[int, list[Visit]] = {}
        for visit in self.visits():
            if visit.wave is not None:
                found.setdefault(visit.wave, []).append(visit)
        return [found[wave] for wave in sorted(found)]

    def paces(self) -> set[tuple[str, int]]:
        """The slowest visit, (node, visit), of each wave in which several nodes of the graph itself ran."""
        nodes = set(self.nodes)
        outer = [[visit for visit in wave if visit.node in nodes] for wave in self.waves()]
        slowest = [max(wave, key=lambda visit: visit.end) for wave in outer if len(wave) > 1]
        return {(visit.node, visit.visit) for visit in slowest}

    def calls(self) -> list[Call]:
        """Every call of a model or a tool, in order of its start."""
        calls = [Call(event["kind"], str(event.get("name", event["kind"])), event.get("node"),
                      max(0.0, event["t"] - event.get("ms", 0.0) / 1000), event["t"], event.get("error"))
                 for event in self.of("llm", "tool")]
        return sorted(calls, key=lambda call: call.start)

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Writes one event a line. A value that JSON does not know is written as its text."""
        with open(path, "w", encoding="utf-8") as file:
            for event in self.events:
                file.write(json.dumps(event, ensure_ascii=False, default=str) + "\n")

    @classmethod
    def from_jsonl(cls, path: str | os.PathLike[str]) -> Trace:
        """Reads what `to_jsonl` wrote. ValueError names the line that is no event."""
        events = []
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    event = json.loads(line)
                except ValueError as error:
                    raise ValueError(f"{path}: line {number} is no JSON: {error}") from None
                _check_event(event, f"{path}: line {number}")
                events.append(event)
        return cls(events)

    def to_text(self) -> str:
        """The run as a table: a row a visit for a graph, a row a call for a loop."""
        end = f"{self.name}: {self.status or 'not ended'} after {self.seconds:.3f} s"
        rows = self._visit_rows() if self.visits() else self._call_rows()
        return "\n".join([*_table(rows), end])

    def _visit_rows(self) -> list[list[str]]:
        rows = [["wave", "node", "start", "end", "ms", ""]]
        visits, paces = self.visits(), self.paces()
        asked = {name: iter(events) for name, events in self._routes().items()}
        for visit in visits:
            name = visit.node if visit.visit == 1 else f"{visit.node} (visit {visit.visit})"
            notes = [f"failed: {visit.error.rstrip('.')}"] if visit.error else []
            if not visit.error and (route := next(asked.get(visit.node, iter(())), None)):
                lost = route.get("error")
                notes.append(f"router failed: {lost}" if lost else f"→ {_label(route['label'])}")
            notes += [f"{visit.retries + 1} attempts"] if visit.retries else []
            notes += ["set the pace"] if (visit.node, visit.visit) in paces else []
            notes += [f"waited {visit.wait:.3f} s at the barrier"] if visit.wait >= 0.0005 else []
            rows.append([str(visit.wave or "-"), one_line(name), f"{visit.start:.3f} s", f"{visit.end:.3f} s",
                         f"{visit.seconds * 1000:.0f}", one_line("; ".join(notes))])
        for event in self.of("refused", "blocked"):
            rows.append(["-", one_line(event["node"]), f"{event['t']:.3f} s", "", "",
                         one_line(f"{event['kind']}: {event['why']}")])
        return rows

    def _routes(self) -> dict[str, list[dict[str, Any]]]:
        """Node -> what its router said, once for each visit that did not fail."""
        found: dict[str, list[dict[str, Any]]] = {}
        for event in self.of("route"):
            found.setdefault(event["router"], []).append(event)
        return found

    def _call_rows(self) -> list[list[str]]:
        rows = [["call", "what", "start", "end", "ms", ""]]
        for number, call in enumerate(self.calls(), 1):
            rows.append([str(number), one_line(f"{call.kind} {call.name}"), f"{call.start:.3f} s", f"{call.end:.3f} s",
                         f"{call.seconds * 1000:.0f}", one_line(f"failed: {call.error}" if call.error else "")])
        return rows


def _in_order(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events by time. The engine tells its own in order; what nodes say in threads is put beside their visits."""
    nodes = {name: place for event in events if event["kind"] == "graph_start"
             for place, name in enumerate(event["nodes"])}
    found = sorted(events, key=lambda event: event["t"])
    ordered: list[dict[str, Any]] = []
    for _, moment in groupby(found, key=lambda event: event["t"]):
        ordered += _one_moment(list(moment), nodes)
    return ordered


def _one_moment(events: list[dict[str, Any]], nodes: dict[str, int]) -> list[dict[str, Any]]:
    """Events of one time, neighbours in the order of the graph.

    What a node said stands before its end, else after its start, else before all.
    """
    if len(events) == 1:
        return events
    said: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if _is_said(event, nodes):
            said.setdefault(_speaker(event, nodes), []).append(event)
    told: list[dict[str, Any]] = []
    for kind, alike in groupby((event for event in events if not _is_said(event, nodes)), key=lambda e: e["kind"]):
        in_turn = kind in ("node_start", "node_end")
        told += sorted(alike, key=lambda event: nodes.get(event["node"], -1) if in_turn else 0)
    ends = {event["node"] for event in told if event["kind"] == "node_end"}
    starts = {event["node"] for event in told if event["kind"] == "node_start"}
    elsewhere = sorted(said.keys() - ends - starts, key=lambda name: nodes.get(name, -1))
    ordered = [event for name in elsewhere for event in said.pop(name)]
    for event in told:
        kind, name = event["kind"], event.get("node", "")
        before = said.pop(name, []) if kind == "node_end" else []
        after = said.pop(name, []) if kind == "node_start" and name not in ends else []
        ordered += [*before, event, *after]
    return ordered


_TOLD = frozenset(["graph_start", "graph_end", "wave_start", "wave_end", "node_start", "node_end", "route", "refused",
                   "blocked", "pause"])  # the engine's own kinds


def _is_said(event: dict[str, Any], nodes: dict[str, int]) -> bool:
    """Is this an event of a node's own (or of a graph inside a node), sent from whatever thread it ran in?"""
    return "node" in event and (event["kind"] not in _TOLD or event["node"] not in nodes)


def _speaker(event: dict[str, Any], nodes: dict[str, int]) -> str:
    """The node of the outer graph that an event comes from."""
    name = str(event["node"])
    while name not in nodes and "/" in name:
        name = name.rpartition("/")[0]
    return name


def _label(label: Any) -> str:
    return label if isinstance(label, str) else ", ".join(map(str, label))


def _check_event(event: Any, where: str) -> None:
    if not isinstance(event, dict) or not isinstance(event.get("kind"), str) or not isinstance(
            event.get("t"), (int, float)):
        raise ValueError(f"{where} is no event: an event is an object with a 'kind' and a 't' in seconds")


def one_line(text: str) -> str:
    """The text on one line, control characters shown and not obeyed."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _table(rows: list[list[str]]) -> list[str]:
    """Rows as lines of aligned columns: words to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = {2, 3, 4}
    return ["  ".join(cell.rjust(width) if column in right else cell.ljust(width)
                      for column, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
