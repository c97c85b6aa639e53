"""A store keeps journals: many runs in one SQLite file, each record committed the moment it is made.

    store = SqliteStore("runs.db")
    run_graph(graph, {"topic": "tea"}, journal=store.run("monday"))
    resume_graph(graph, store.load("monday"), journal=store.run("monday"))      # after a pause, or after a crash
    store.list()                                    # every run: its status, how many records, since when
    store.history("monday")                         # one run: what happened, record by record
    store.fork("monday", 3, "what if")              # time travel: a new run that begins with the first 3 records

Any number of processes may use one file; a run is written by one of them at a time. dbfile.py says what a commit
survives, and how locks work.
"""

from __future__ import annotations

import json
import os
import sqlite3
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import datetime
from typing import Any, NamedTuple

from .dbfile import DatabaseFile, StoreError, to_bytes
from .shape import meant

__all__ = ["Entry", "Origin", "Row", "RunLog", "SqliteStore", "StoreError", "in_words"]

Record = dict[str, Any]
Records = list[Record]
Numbered = list[tuple[int, float, Record]]  # (number, time, record)

TABLES = (
    # holder: the process that writes to the run; one that was killed is still named
    "CREATE TABLE runs (run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created REAL NOT NULL, holder INTEGER, "
    "origin TEXT, origin_records INTEGER)",
    # without rowid: a record is one entry in one tree, and its commit writes one page
    "CREATE TABLE records (run INTEGER NOT NULL, number INTEGER NOT NULL, at REAL NOT NULL, record TEXT NOT NULL, "
    "PRIMARY KEY (run, number)) WITHOUT ROWID",
)
APPEND = "INSERT INTO records SELECT ?, COALESCE(MAX(number), 0) + 1, ?, CAST(? AS TEXT) FROM records WHERE run = ?"


class Origin(NamedTuple):
    """Where a forked run comes from: the run it was copied from, and how many of its records."""

    run: str
    records: int


class Row(NamedTuple):
    """One run of a store; what `status` can be stands at SqliteStore.list."""

    id: str
    workflow: str
    status: str
    records: int
    started: datetime
    updated: datetime
    origin: Origin | None


class Entry(NamedTuple):
    """One record of a run, in words."""

    number: int
    when: datetime
    what: str


class Rows(list):  # type: ignore[type-arg]
    """A list of rows that shows itself as a table."""

    def __repr__(self) -> str:
        if not self:
            return "(none)"
        cells = [list(self[0]._fields), *([_cell(value) for value in row] for row in self)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


class SqliteStore:
    """Runs in one SQLite file, which is made when the first of them begins.

    path: the file; the folder `path + ".locks"` beside it tells which runs are being written. wait: seconds to wait
    for others who write to the file. now: where the times come from. StoreError: whatever goes wrong with the file.
    """

    def __init__(self, path: str | os.PathLike[str], *, wait: float = 10.0,
                 now: Callable[[], float] = time.time) -> None:
        self.file, self.now = DatabaseFile(path, TABLES, wait), now

    def __repr__(self) -> str:
        return f"<SqliteStore {self.file.name!r}>"

    def run(self, id: str) -> RunLog:
        """The journal of a run, for run_graph and resume_graph. The run is taken when it begins, not by asking."""
        if not isinstance(id, str) or not id:
            raise StoreError(f"the id of a run is a string that is not empty, as in 'monday'; got {id!r}")
        return RunLog(self, id)

    def load(self, id: str) -> Records:
        """The records of a run, in order, for resume_graph. A last one that was cut off is left out."""
        with self.file.open() as db:
            return [record for _, _, record in self._records(db, id)]

    def history(self, id: str) -> Rows:
        """What happened in a run, an Entry a record: `number`, `when`, and `what` in words."""
        with self.file.open() as db:
            return Rows(Entry(number, _local(at), in_words(record)) for number, at, record in self._records(db, id))

    def list(self) -> Rows:
        """A Row for every run, in the order in which they were begun.

        `status` is what a store can know: `running` (a process writes to it), `killed` (the process that did died),
        `new` (nothing is recorded yet; of a fork, nothing of its own), `ended` (done, failed, paused or interrupted:
        resume_graph goes through the records and says which).
        """
        with self.file.open() as db:
            return Rows(self._row(db, *run) for run in db.execute(
                "SELECT run, id, created, holder, origin, origin_records FROM runs ORDER BY run").fetchall())

    def fork(self, id: str, records: int, new_id: str) -> RunLog:
        """The journal of a new run that begins with the first `records` records of another, and knows where from.

            resume_graph(graph, store.load(new_id), edits={"tone": "kind"}, journal=store.run(new_id))
        """
        log = self.run(new_id)
        with self.file.open(changes=True) as db:
            run = self._find(db, id)
            if not isinstance(records, int) or not 0 < len(self._records(db, id, max(records, 0))) == records:
                raise StoreError(f"run {id!r} has {_count(db, run)[0]} records, and a fork begins with the first of "
                                 f"them, from 1 to all; not with {records!r}")
            if _number(db, new_id) is not None:
                raise StoreError(f"there is a run {new_id!r} already: choose another id for the fork of {id!r}")
            new = db.execute("INSERT INTO runs (id, created, origin, origin_records) VALUES (CAST(? AS TEXT), ?, "
                             "CAST(? AS TEXT), ?)", (to_bytes(new_id), self.now(), to_bytes(id), records)).lastrowid
            db.execute("INSERT INTO records SELECT ?, number, at, record FROM records WHERE run = ? AND number <= ?",
                       (new, run, records))
        return log

    def delete(self, id: str) -> None:
        """Nothing; the run and its records are gone. A run that is being written is refused."""
        with self.file.open() as db:
            self._find(db, id)
        with closing(self.lock(id)), self.file.open(changes=True) as db:
            run = self._find(db, id)
            db.execute("DELETE FROM records WHERE run = ?", (run,))
            db.execute("DELETE FROM runs WHERE run = ?", (run,))

    def origin(self, id: str) -> Origin | None:
        """Where a run was forked from; None if it was not, or is not there."""
        with self.file.open() as db:
            found = db.execute("SELECT origin, origin_records FROM runs WHERE id = CAST(? AS TEXT)",
                               (to_bytes(id),)).fetchone()
        return Origin(*found) if found and found[0] is not None else None

    def lock(self, id: str) -> sqlite3.Connection:
        """The right to write to a run, to be closed; StoreError while another has it."""
        try:
            return self.file.lock(id)
        except StoreError:
            if not self.file.is_locked(id):  # something else is wrong
                raise
        raise self.taken(id)

    def taken(self, id: str) -> StoreError:
        """What to tell whoever wants to write to a run that is being written."""
        with self.file.open() as db:
            found = db.execute("SELECT holder FROM runs WHERE id = CAST(? AS TEXT)", (to_bytes(id),)).fetchone()
        pid = found[0] if found else None
        who = "this very process" if pid == os.getpid() else f"process {pid}" if pid else "another process"
        return StoreError(f"run {id!r} is being run by {who}: wait until it ends, or end it, then resume")

    # ---- what is in the file

    def _find(self, db: sqlite3.Connection, id: str) -> int:
        """The number under which the file keeps a run; StoreError names the runs there are."""
        run = _number(db, self.run(id).id)
        if run is None:
            ids = [name for name, in db.execute("SELECT id FROM runs ORDER BY run")]
            listed = ", ".join(map(repr, ids[-8:])) + (f" and {len(ids) - 8} earlier" if len(ids) > 8 else "")
            raise StoreError(f"no run {id!r} in {self.file.name!r}; {meant(id, ids)}"
                             + (f"there {'are' if len(ids) > 1 else 'is'} {listed}" if ids else "it holds no runs yet"))
        return run

    def _records(self, db: sqlite3.Connection, id: str, first: int = -1) -> Numbered:
        """The records of a run, or its first ones; StoreError if one is missing, or is damaged and not the last."""
        rows = db.execute("SELECT number, at, record FROM records WHERE run = ? ORDER BY number LIMIT ?",
                          (self._find(db, id), first)).fetchall()
        found: Numbered = []
        for place, (number, at, text) in enumerate(rows, 1):
            record = _read(text)
            if number != place or record is None and place < len(rows):
                what = "missing" if number != place else "damaged"
                way_out = (f"store.fork({id!r}, {place - 1}, 'a new id') keeps what comes before it" if place > 1
                           else "nothing can be resumed without it, run the graph under another id")
                raise StoreError(f"record {place} of run {id!r} in {self.file.name!r} is {what}: {way_out}")
            if record is not None:
                found.append((number, at, record))
        return found

    def _row(self, db: sqlite3.Connection, run: int, id: str, created: float, holder: int | None,
             origin: str | None, origin_records: int | None) -> Row:
        count, updated = _count(db, run)
        first = db.execute("SELECT record FROM records WHERE run = ? AND number = 1", (run,)).fetchone()
        shape = ((_read(first[0]) if first else None) or {}).get("shape") or {}
        status = ("running" if holder is not None and self.file.is_locked(id)
                  else "new" if count == (origin_records or 0)
                  else "killed" if holder is not None else "ended")
        return Row(id, str(shape.get("name", "?")), status, count, _local(created), _local(max(created, updated)),
                   Origin(origin, origin_records or 0) if origin is not None else None)


class RunLog:
    """The journal of one run: called with a record, it has committed it when it returns.

    `begin(resumed)` takes the run, so that nobody else writes to it, and `close()` lets go of it; the engine calls
    both. Called without, it takes the run by itself: `with store.run("tuesday") as log: log(record)` keeps records
    from elsewhere. After a record that could not be written it takes no other, so that what is stored has no gap.
    """

    def __init__(self, store: SqliteStore, id: str) -> None:
        self.store, self.id = store, id
        self._mutex = threading.Lock()  # nodes end in any thread
        self._door: sqlite3.Connection | None = None  # the lock
        self._db: sqlite3.Connection | None = None
        self._run: int | None = None  # its number in the file, once it is taken
        self._process = 0  # which has taken it
        self._begun = False
        self._lost: StoreError | None = None  # why a record could not be written

    def __repr__(self) -> str:
        return f"<run {self.id!r} in {self.store.file.name!r}>"

    @property
    def origin(self) -> Origin | None:
        """The run this one was forked from, and how many of its records; None if it was not forked."""
        return self.store.origin(self.id)

    def begin(self, resumed: int = 0) -> None:
        """Takes the run, of which `resumed` records are replayed: StoreError unless these are all that it holds."""
        with self._mutex:
            if self._begun or self._is_elsewhere():
                raise self.store.taken(self.id)
            self._leave()  # what was written without begin() is stored like the rest
            self._take(resumed)
            self._begun, self._lost = True, None

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Commits a record."""
        body = to_bytes(json.dumps(record, ensure_ascii=False))
        with self._mutex:
            if self._is_elsewhere():
                raise self.store.taken(self.id)
            if self._lost is not None:
                raise self._lost
            db = self._db or self._take(0 if "shape" in record else None)
            try:
                with self.store.file.told():
                    db.execute(APPEND, (self._run, self.store.now(), body, self._run))
            except StoreError as error:
                self._lost = error
                raise

    def close(self) -> None:
        """Lets go of the run; begin() or a record takes it again."""
        with self._mutex:
            self._leave()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        self._leave()

    def _take(self, resumed: int | None) -> sqlite3.Connection:
        """The file, opened; the run is locked, says who writes to it, and has lost a last record that was cut off."""
        store, self._process = self.store, os.getpid()
        self._door = store.lock(self.id)
        try:
            self._db = db = store.file.connect()
            with store.file.told():
                run = _number(db, self.id)
                stored = _count(db, run)[0] if run is not None else 0
                if resumed is not None and resumed != stored:
                    raise StoreError(_disagreement(self.id, stored, resumed))
                db.execute("INSERT INTO runs (id, created, holder) VALUES (CAST(? AS TEXT), ?, ?) "
                           "ON CONFLICT (id) DO UPDATE SET holder = excluded.holder",
                           (to_bytes(self.id), store.now(), self._process))
                self._run = _number(db, self.id)
                db.execute("DELETE FROM records WHERE run = ? AND number > ?", (self._run, stored))
        except BaseException:
            self._leave()
            raise
        return db

    def _is_elsewhere(self) -> bool:
        """Was the run taken by the process from which this one was forked?"""
        return self._db is not None and self._process != os.getpid()

    def _leave(self) -> None:
        if self._is_elsewhere():
            return  # it is for the parent to let go
        db, door, run = self._db, self._door, self._run
        self._db = self._door = self._run = None
        self._begun = False
        if db is not None:
            with suppress(sqlite3.Error):  # on a full disk, say; it must not hide what the run returns
                if run is not None:
                    db.execute("UPDATE runs SET holder = NULL WHERE run = ?", (run,))
            db.close()
        if door is not None:
            door.close()


def _disagreement(id: str, stored: int, resumed: int) -> str:
    """Why a run that holds `stored` records cannot go on from `resumed`, and what can be done."""
    if not resumed:
        return (f"run {id!r} exists: resume it with resume_graph(graph, store.load({id!r}), "
                f"journal=store.run({id!r})), or choose another id")
    if not stored:
        return (f"run {id!r} holds no records, and {resumed} are to be replayed: first copy them into it, with "
                f"store.fork('the run they are from', {resumed}, {id!r})")
    return (f"run {id!r} holds {stored} records, and {resumed} are to be replayed: resume all of store.load({id!r}), "
            f"or go on from an earlier moment in a run of its own, store.fork({id!r}, {resumed}, 'a new id')")


# ---- in words


def in_words(record: Mapping[str, Any]) -> str:
    """What a record says happened: "draft ended, wrote text", "route review -> fix", "gate approve answered 'yes'"."""
    if "shape" in record:
        keys = ", ".join(map(str, record.get("state") or {})) or "nothing"
        return _short(f"{(record['shape'] or {}).get('name', 'the run')} began with {keys}")
    if "edit" in record:
        return _short("edit " + ", ".join(f"{key} = {value!r}" for key, value in record["edit"].items()))
    for kind, words in (("node", ""), ("router", "route "), ("gate", "gate ")):
        if kind in record:
            visit = f" (visit {record['visit']})" if record.get("visit", 1) != 1 else ""
            return _short(f"{words}{record[kind]}{visit} {_came_of(kind, record)}")
    return _short(f"a record of an unknown kind: {record!r}")


def _came_of(kind: str, record: Mapping[str, Any]) -> str:
    if "error" in record:
        return f"failed: {record['error']}"
    if kind == "gate":
        return f"answered {record.get('answer')!r}"
    if kind == "router":
        label = record.get("label")
        return f"-> {', '.join(map(str, label)) if isinstance(label, list) else label}"
    return f"ended, wrote {', '.join(record.get('writes') or {}) or 'nothing'}"


def _short(text: str) -> str:
    return textwrap.shorten(text, 100, placeholder=" ...")


def _cell(value: Any) -> str:
    """A value as a table shows it, on one line."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, Origin):
        return f"{_cell(value.run)}, first {value.records}"
    text = "" if value is None else str(value)
    return text if text.isprintable() else ascii(text)


# ---- rows of the tables


def _number(db: sqlite3.Connection, id: str) -> int | None:
    found = db.execute("SELECT run FROM runs WHERE id = CAST(? AS TEXT)", (to_bytes(id),)).fetchone()
    return found[0] if found else None


def _count(db: sqlite3.Connection, run: int) -> tuple[int, float]:
    """How many whole records a run has, and the time of the last."""
    last = db.execute("SELECT number, at, record FROM records WHERE run = ? ORDER BY number DESC LIMIT 1",
                      (run,)).fetchone()
    return (last[0] - (_read(last[2]) is None), last[1]) if last else (0, 0.0)


def _read(text: str | bytes) -> Record | None:
    """The record, or None for what is none."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at).astimezone()
