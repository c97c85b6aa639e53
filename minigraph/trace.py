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
from pathlib import Path
from typing import Any

from .moments import in_order


@dataclass
class Visit:
    """One run of one node. Seconds since the start of the run; `wait` is the time it stood at the barrier."""

    node: str  # "outer/inner" for what a graph inside a node ran, "map/3" for an item of a map
    visit: int
    wave: int | None  # from 1, of the graph the node is in; None where there are no waves
    start: float
    end: float
    wait: float = 0.0
    keys: list[str] = field(default_factory=list)
    error: str | None = None
    retries: int = 0
    within: str | None = None  # the node that it ran in; None for a node of the graph itself
    pace: bool = False  # was it the slowest of its wave?
    labels: list[str] = field(default_factory=list)  # what its router said
    lost: str | None = None  # or the error of that router
    question: str | None = None  # what it waits for a person to answer
    ended: bool = True  # False: it was cut off, or it waits, or the run goes on

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
    """The events of one run: dicts with `kind`, `t` (seconds since the start) and what the event says.

    What it hears of a second run, one that was resumed say, lies after the first.
    """

    def __init__(self, events: Iterable[dict[str, Any]] = ()) -> None:
        self._events: list[dict[str, Any]] = list(events)
        self._before = 0.0  # seconds of the runs that it heard before this one, as one that is resumed may be
        self._sorted = 0  # how many events the sorted list holds
        self._in_order: list[dict[str, Any]] = []

    def __call__(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "graph_start" and "node" not in event and self.status:
            self._before = self.seconds
        if self._before:
            event = {**event, "t": event["t"] + self._before}
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
            self._in_order = in_order(self._events[: self._sorted])
        return self._in_order

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these kinds, in order."""
        return [event for event in self.events if event["kind"] in kinds]

    def _own(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these kinds that tell of the run itself, not of one inside a node."""
        return [event for event in self.of(*kinds) if "node" not in event]

    def _started(self) -> dict[str, Any]:
        return next(iter(self._own("graph_start", "loop_start")), {})

    @property
    def name(self) -> str:
        """The name of the workflow."""
        return str(self._started().get("workflow", "trace"))

    @property
    def nodes(self) -> list[str]:
        """The graph's nodes, in its order; [] for a loop."""
        return list(self._started().get("nodes", []))

    @property
    def schedule(self) -> str | None:
        """"waves" or "ready"; None for a loop."""
        return self._started().get("schedule")

    @property
    def status(self) -> str | None:
        """How it ended; None while it has not."""
        ends = self._own("graph_start", "loop_start", "graph_end", "loop_end")
        return ends[-1].get("status") if ends else None

    @property
    def seconds(self) -> float:
        """From the start to the last event."""
        return max((event["t"] for event in self._events), default=0.0)

    @property
    def ending(self) -> str:
        """How it ended and when, in words: "done after 1.887 s"."""
        records = self._started().get("resumed")
        return (f"{self.status or 'not ended'} after {self.seconds:.3f} s"
                + (f", resumed from {records} record{'s' * (records != 1)}" if records else ""))

    def visits(self) -> list[Visit]:
        """Every run of a node, in order of its start. A visit that has not ended lasts until the last event."""
        return _Reading(self).visits

    def waves(self) -> list[list[Visit]]:
        """The visits of the graph's own nodes, wave by wave; [] for a run without waves."""
        return [wave for wave in _Reading(self).waves[""] if wave]

    def paces(self) -> set[tuple[str, int]]:
        """The slowest visit, (node, visit), of each wave in which several nodes of the graph itself ran."""
        return {(visit.node, visit.visit) for visit in self.visits() if visit.pace and visit.within is None}

    def calls(self) -> list[Call]:
        """Every call of a model or a tool, in order of its start."""
        calls = [Call(event["kind"], str(event.get("name", event["kind"])), event.get("node"),
                      max(0.0, event["t"] - event.get("ms", 0.0) / 1000), event["t"], event.get("error"))
                 for event in self.of("llm", "tool")]
        return sorted(calls, key=lambda call: call.start)

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Writes one event a line. A value that JSON does not know is written as its text."""
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:  # half of an emoji is no letter
            for event in self.events:
                file.write(_line(event) + "\n")

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

    def to_html(self, path: str | os.PathLike[str] | None = None) -> Path:
        """The path of one file, written, in which the run is replayed: no server, no network, nothing else needed.

        Without a path it is outbox/, and the name of the workflow. ValueError for a trace without a graph, a loop's.
        """
        from .playback import write

        return write(self, path)

    def to_text(self) -> str:
        """The run as a table: a row a visit for a graph, a row a call for a loop."""
        rows = self._visit_rows() if self.visits() else self._call_rows()
        return "\n".join([*_table(rows), f"{self.name}: {self.ending}"])

    def _visit_rows(self) -> list[list[str]]:
        rows = [["wave", "node", "start", "end", "ms", ""]]
        waves: dict[str | None, str | None] = {}  # node -> the wave of its latest visit: "2", and "2.1" within that
        for visit in self.visits():
            wave, above = str(visit.wave) if visit.wave else None, waves.get(visit.within)
            waves[visit.node] = wave if visit.within is None else f"{above}.{wave}" if above and wave else None
            name = visit.node if visit.visit == 1 else f"{visit.node} (visit {visit.visit})"
            rows.append([waves[visit.node] or "-", one_line(name), f"{visit.start:.3f} s", f"{visit.end:.3f} s",
                         f"{visit.seconds * 1000:.0f}", one_line("; ".join(_notes(visit)))])
        for event in self.of("refused", "blocked"):
            rows.append(["-", one_line(event["node"]), f"{event['t']:.3f} s", "", "",
                         one_line(f"{event['kind']}: {event['why']}")])
        return rows

    def _call_rows(self) -> list[list[str]]:
        rows = [["call", "what", "start", "end", "ms", ""]]
        for number, call in enumerate(self.calls(), 1):
            rows.append([str(number), one_line(f"{call.kind} {call.name}"), f"{call.start:.3f} s", f"{call.end:.3f} s",
                         f"{call.seconds * 1000:.0f}", one_line(f"failed: {call.error}" if call.error else "")])
        return rows


class _Reading:
    """The visits and the waves of a run, put together from its events.

    Runs inside nodes are read in the same way; `path` is the node that a run is in, "" for the run itself.
    """

    def __init__(self, trace: Trace) -> None:
        self.own = set(trace.nodes)
        self.over = trace.seconds
        self.visits: list[Visit] = []
        self.waves: dict[str, list[list[Visit]]] = {"": []}  # path -> the visits of each wave
        self.latest: dict[str, Visit] = {}  # node -> its visit that began last
        self.open: dict[tuple[str, int], Visit] = {}  # visits that have not ended
        self.waiting: dict[str, str] = {}  # gate -> its question
        readers = {"graph_start": self._graph_start, "node_start": self._node_start, "node_end": self._node_end,
                   "retry": self._retry, "route": self._route, "wave_end": self._wave_end, "pause": self._pause,
                   "graph_end": self._graph_end}
        for event in trace.events:
            if event["kind"] in readers:
                readers[event["kind"]](event, event.get("node", ""))
        for visit in list(self.open.values()):
            self._close(visit)
        for wave in (wave for waves in self.waves.values() for wave in waves):
            waited_for = [visit for visit in wave if visit.question is None]  # nobody waits for a gate
            if len(waited_for) > 1 and all(visit.ended for visit in waited_for):
                max(waited_for, key=lambda visit: visit.end).pace = True

    def _graph_start(self, event: dict[str, Any], path: str) -> None:
        self.waves.setdefault(path, []).append([])  # its first wave is none of an earlier run's

    def _node_start(self, event: dict[str, Any], node: str) -> None:
        within = None if node in self.own else self._holder(node)
        visit = Visit(node, event["visit"], event.get("wave"), event["t"], self.over, within=within)
        self.visits.append(visit)
        self.latest[node] = self.open[node, visit.visit] = visit
        if visit.wave is not None:
            waves = self.waves.setdefault(within or "", [])
            if not waves or waves[-1] and waves[-1][0].wave != visit.wave:
                waves.append([])
            waves[-1].append(visit)

    def _holder(self, node: str) -> str | None:
        """The node that holds this one: the nearest above it that has begun."""
        above = node.rpartition("/")[0]
        while above and above not in self.latest:
            above = above.rpartition("/")[0]
        return above or None

    def _node_end(self, event: dict[str, Any], node: str) -> None:
        visit = self.open.pop((node, event["visit"]), None)
        if visit is not None:
            visit.end, visit.keys, visit.error = event["t"], list(event["keys"]), event["error"]
            visit.start = min(visit.end, max(visit.start, visit.end - event["ms"] / 1000))

    def _retry(self, event: dict[str, Any], node: str) -> None:
        if node in self.latest:
            self.latest[node].retries += 1

    def _route(self, event: dict[str, Any], path: str) -> None:
        visit = self.latest.get(f"{path}/{event['router']}" if path else event["router"])
        if visit is not None and visit.error is None:
            visit.lost, label = event.get("error"), event["label"]
            visit.labels = [str(one) for one in label] if isinstance(label, (list, tuple)) else [str(label)]

    def _wave_end(self, event: dict[str, Any], path: str) -> None:
        for name, ms in event["waits"].items():
            visit = self.latest.get(f"{path}/{name}" if path else name)
            if visit is not None and visit.wave == event["wave"]:
                visit.wait = ms / 1000

    def _pause(self, event: dict[str, Any], node: str) -> None:
        self.waiting[node] = str(event["question"])

    def _graph_end(self, event: dict[str, Any], path: str) -> None:
        """What is still open below has been dropped, but for gates: they wait until the run itself is over."""
        for (node, _), visit in list(self.open.items()):
            if not path or node.startswith(f"{path}/") and not self._asks(node):
                visit.end = event["t"]
                self._close(visit)
        if not path:
            self.waiting.clear()

    def _close(self, visit: Visit) -> None:
        """The run is over, and the visit has not ended: it may wait for a person, itself or in what it holds."""
        del self.open[visit.node, visit.visit]
        visit.ended, visit.question = False, self._asks(visit.node)

    def _asks(self, node: str) -> str | None:
        return next((question for gate, question in self.waiting.items()
                     if gate == node or gate.startswith(f"{node}/")), None)


def _notes(visit: Visit) -> list[str]:
    """What there is to say of a visit beside its times."""
    found = [f"failed: {visit.error.rstrip('.')}"] if visit.error else []
    if not visit.ended:
        found.append("has not ended" if visit.question is None else f"waits for an answer: {visit.question}")
    if not visit.error and (visit.lost or visit.labels):
        found.append(f"router failed: {visit.lost}" if visit.lost else f"→ {', '.join(visit.labels)}")
    found += [f"{visit.retries + 1} attempts"] if visit.retries else []
    found += ["set the pace"] if visit.pace else []
    return found + ([f"waited {visit.wait:.3f} s at the barrier"] if visit.wait >= 0.0005 else [])


def _line(event: dict[str, Any]) -> str:
    """The event as JSON; a value that JSON does not know, or cannot take apart, as its text."""
    try:
        return json.dumps(event, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no strings, circles
        return json.dumps({key: _plain(value, 1) for key, value in event.items()}, ensure_ascii=False)


def _plain(value: Any, deep: int) -> Any:
    """The value as JSON gives it back, or its text; of a mapping each value by itself, `deep` mappings down."""
    try:
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError, RecursionError):
        apart = isinstance(value, dict) and deep
        return {str(key): _plain(inner, deep - 1) for key, inner in value.items()} if apart else str(value)


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
