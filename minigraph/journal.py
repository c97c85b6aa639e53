"""A run is what happened: its journal says so, record by record, and to resume is to run on what the records say.

    records = []
    state = run_graph(graph, {"topic": "tea"}, journal=records.append)      # state.status: 'paused'
    resume_graph(graph, records, {"approve": "yes"})                        # no finished node runs again

    {"shape": graph.describe(), "schedule": "waves", "state": {"topic": "tea"}}     the first record
    {"node": "draft", "visit": 1, "writes": {"text": "..."}}                        or "error" in place of "writes"
    {"router": "check", "visit": 1, "label": "fix"}                                 or "error" in place of "label"
    {"gate": "approve", "visit": 1, "answer": "yes"}
    {"edit": {"topic": "coffee"}}

Nothing else is saved, so nothing can disagree. What ran inside a node is named by its visit: "outer#2/inner".
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from .past import Visit, described
from .shape import GraphError
from .state import GraphState, short

Record = dict[str, Any]
Sink = Callable[[Record], Any]  # what `journal=` is


class Route(NamedTuple):
    """What a router said after a visit, or how it failed."""

    router: str
    visit: int
    label: Any
    error: str | None

    def __call__(self) -> Record:
        if self.error is not None:
            return {"router": self.router, "visit": self.visit, "error": self.error}
        label = self.label if isinstance(self.label, str) else list(self.label)
        return {"router": self.router, "visit": self.visit, "label": label}


Entry = Union[Visit, Record, "Callable[[], Record]", Route]  # a record, or what makes one if anybody asks
Kept = Union[Entry, "tuple[str, Entry]"]  # of an inner run, with its prefix before it


class Paused(BaseException):
    """Raised by a node that waits for a person: `.waiting` says for what, gate -> question; its own gate is "".

    No Exception, like KeyboardInterrupt: a retry or a fallback around the node must not take it for a failure.
    """

    def __init__(self, waiting: Mapping[str, Any]) -> None:
        super().__init__(waiting)
        self.waiting = dict(waiting)


class Question(str):
    """What a gate asks, and the `.choices` it leaves, or None."""

    choices: list[str] | None = None


class JournalError(RuntimeError):
    """The journal could not take a record, so the run stopped: `.state` holds what it had, `.state.journal` too."""

    state: GraphState


# ---- writing


class Log:
    """What a run has committed so far, its inner runs included, and where each record goes."""

    def __init__(self, sink: Sink | None = None, records: Iterable[Record] = ()) -> None:
        self.sink = sink
        self.entries: list[Kept] = list(records)
        self.plain = sink is not None  # must every value come back from JSON?
        self.floor = threading.Lock()
        self.checked = 0  # how many entries are known to be plain
        self.begun = False

    def begin(self, first: Callable[[], Record]) -> None:
        """The sink is told how many records there are already; without any, it gets the first one."""
        resumed = len(self.entries)
        if not resumed and self.plain and (wrong := unplain(first()["state"])):
            raise GraphError(f"the initial state cannot go to the journal: {wrong}")
        getattr(self.sink, "begin", _nothing)(resumed)
        self.begun = True
        if not resumed:
            self.add("", first)

    def end(self) -> None:
        """The sink may rest, unless it refused to begin: then it is somebody else's."""
        if self.begun:
            getattr(self.sink, "close", _nothing)()

    def add(self, prefix: str, entry: Entry) -> None:
        """Commits the end of a visit, or a record as it is."""
        kept = (prefix, entry) if prefix else entry
        if self.sink is None:
            self.entries.append(kept)
            return
        with self.floor:
            self.entries.append(kept)
            record = _record(kept)
            try:
                self.sink(record)
            except Exception as error:
                raise JournalError(f"the journal could not take {_named(record)} ({described(error)}); the run "
                                   "stopped, and .state of this error holds what it had") from error

    def records(self) -> list[Record]:
        """Everything that was committed, in order."""
        return [_record(kept) for kept in list(self.entries)]

    def unplain(self) -> str | None:
        """What keeps this run from pausing, a value that JSON does not bring back; None if nothing does."""
        entries = self.entries[self.checked:]
        for record in map(_record, entries):
            if wrong := unplain(record.get("writes") or record.get("state") or {}):
                who = f"node {record['node']!r} wrote" if "node" in record else "the run began with"
                return f"the run cannot pause, for what {who} would be lost: {wrong}"
        self.checked += len(entries)
        self.plain = True  # from now on, whatever is written has to outlast the pause
        return None


def _nothing(*args: Any) -> None:
    """A sink that is a plain function neither begins nor closes."""


def _record(kept: Kept) -> Record:
    inner: Any = kept
    prefix, entry = inner if type(inner) is tuple else ("", inner)
    if isinstance(entry, Visit):
        record: Record = {"node": prefix + entry.node, "visit": entry.count}
        if entry.wave is not None:
            record["wave"] = entry.wave
        return {**record, "error": described(entry.error)} if entry.error else {**record, "writes": entry.writes}
    record = entry if isinstance(entry, dict) else entry()
    kind = next(iter(record))
    return {**record, kind: prefix + record[kind]} if prefix else record


def _named(record: Record) -> str:
    kind = next(iter(record))
    return "the first record" if kind == "shape" else f"the record of {kind} {record[kind]!r}"


def unplain(values: Mapping[str, Any]) -> str | None:
    """The first key whose value does not come back equal from JSON, in a sentence; None if they all do."""
    for key, value in values.items():
        try:
            back = json.loads(json.dumps(value, allow_nan=False))
            lost = "" if bool(back == value) else f"{short(value, 60)} comes back as {short(back, 60)}"
        except Exception as error:
            lost = str(error)
        if lost:
            return (f"{key!r} does not come back from JSON as it was ({lost}); "
                    "return plain values: text, numbers, lists and dicts with string keys")
    return None


# ---- reading

_INNER = re.compile(r"(?s)(.*?)#(\d+(?:\.\d+)?)/(.+)")  # outer#2/inner


class Script:
    """What the records say of one run, and what they and the caller say of the runs inside it.

    Answers and edits that are new stand at its end: to resume is to play the script, and then to go on without one.
    """

    def __init__(self, records: Sequence[Record], answers: Mapping[str, Any], edits: Mapping[str, Any],
                 nodes: Iterable[str], force: bool = False) -> None:
        self.force = force
        self.lines: list[Record] = []  # of the run itself
        self.inner: dict[str, list[Record]] = {}  # "outer#2" -> the records of the run inside that visit
        self.answers: dict[str, dict[str, Any]] = {}  # outer -> answers to gates in the run inside it
        for record in records:
            self._sort(record)
        self.new = len(self.lines)  # from here on, what the caller adds
        known = set(nodes)
        if edits:
            self.lines.append({"edit": dict(edits)})
        for path, answer in answers.items():
            outer, slash, rest = path.partition("/") if path not in known else (path, "", "")
            if slash:
                self.answers.setdefault(outer, {})[rest] = answer
            else:
                self.lines.append({"gate": path, "visit": None, "answer": answer})
        self.at = 0  # the first line that is not played
        self.played = [False] * len(self.lines)
        self.where = {(kind := next(iter(line)), line[kind], line["visit"]): number
                      for number, line in enumerate(self.lines) if "edit" not in line}

    def _sort(self, record: Record) -> None:
        kind = next(iter(record))
        if kind != "edit" and (found := _INNER.fullmatch(record[kind])):
            self.inner.setdefault(f"{found[1]}#{found[2]}", []).append({**record, kind: found[3]})
        else:
            self.lines.append(record)

    def line(self, kind: str, visit: Visit) -> int | None:
        """The number of the line about a visit ("node", "router" or "gate"), not played yet; None if there is none."""
        number = self.where.get((kind, visit.node, visit.count))
        if number is None and kind == "gate":
            number = self.where.get((kind, visit.node, None))
        return None if number is None or self.played[number] else number

    def play(self, number: int) -> Record:
        """The line, which counts as played from now on."""
        self.played[number] = True
        while self.at < len(self.lines) and self.played[self.at]:
            self.at += 1
        return self.lines[number]

    def next(self, kind: str) -> int | None:
        """The number of the line that stands next, if it is of this kind."""
        return self.at if self.at < len(self.lines) and kind in self.lines[self.at] else None

    def left(self) -> Iterator[Record]:
        """The recorded lines that were not played."""
        return (line for line, played in zip(self.lines[: self.new], self.played, strict=False) if not played)

    def part(self, name: str, outer: str, nodes: Iterable[str]) -> Script | None:
        """The script of a run inside a visit; None if nothing is known of it."""
        records, answers = self.inner.pop(name, []), self.answers.pop(outer, {})
        return Script(records, answers, {}, nodes, self.force) if records or answers else None


def differences(before: Mapping[str, Any], now: Mapping[str, Any], where: str = "") -> list[str]:
    """What differs between two shapes (see Graph.describe), a few words each."""
    found = []
    old, new = ({node["name"]: node for node in shape["nodes"]} for shape in (before, now))
    found += [f"node {where + name!r} is gone" for name in old if name not in new]
    found += [f"node {where + name!r} is new" for name in new if name not in old]
    for name in old.keys() & new.keys():
        a, b = old[name], new[name]
        found += [f"{key} of {where + name!r} was {a[key]!r} and is {b[key]!r}"
                  for key in ("kind", "max_visits", "on_error") if a.get(key) != b.get(key)]
        if a.get("graph") != b.get("graph"):
            empty: dict[str, Any] = {"nodes": [], "edges": []}
            found += differences(a.get("graph") or empty, b.get("graph") or empty, f"{where}{name}/")
    ways = [{(e["src"], e["dst"], e["label"]): e["backwards"] for e in shape["edges"]} for shape in (before, now)]
    for one, other, words in ((ways[0], ways[1], "is gone"), (ways[1], ways[0], "is new")):
        found += [f"edge {where + src!r} -> {where + dst!r}{f', {label!r},' if label else ''} {words}"
                  for src, dst, label in one if (src, dst, label) not in other]
    if not found and ([*old], [*ways[0].items()]) != ([*new], [*ways[1].items()]):
        found.append(f"the order in which nodes or edges{' of ' + where[:-1] if where else ''} were added is another")
    return found


def check_records(records: Any, shape: Mapping[str, Any], force: bool) -> Record:
    """The first record; GraphError if these are no records, or those of a graph of another shape."""
    whole = isinstance(records, Sequence) and all(isinstance(record, Mapping) and record for record in records)
    if not whole or not records or not {"shape", "schedule", "state"} <= set(records[0]):
        raise GraphError("resume_graph(graph, records): records are what a journal took, in order, the first one "
                         "included: state.journal, or store.load(...)")
    before = records[0]["shape"]
    if not force and before != shape and (found := differences(before, json.loads(json.dumps(shape)))):
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        raise GraphError(f"these records are of a graph of another shape: {'; '.join(found[:4])}{more}. Resume them "
                         "with the graph they came from, or pass force=True to use what still fits")
    return dict(records[0])
