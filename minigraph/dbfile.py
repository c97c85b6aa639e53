"""A SQLite file that several processes share: how it is opened and locked, and what to do when it cannot be.

    file = DatabaseFile("runs.db", ["CREATE TABLE ..."])
    with file.open(changes=True) as db:
        db.execute("INSERT ...")                    # all of the block, or nothing of it
    door = file.lock("monday")                      # StoreError while another has it; door.close() lets go

The file is made at the first change; until then it looks like one in which nothing is. What is committed survives
`kill -9`: it stands in the write-ahead log, and that belongs to the operating system. The log is not forced to the disk
with every commit (synchronous=NORMAL; with FULL each would wait for the disk): a power cut may take the last commits
with it, and never damages what was there before.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext

MARK, VERSION = 0x6D677275, 1  # "mgru": how a file says that it is one of ours, and of which make

# What SQLite and the file system say -> what that means, and what to do.
KEPT = "what is committed stays, and the run can be resumed"
READ_ONLY = "is read-only for you, or its folder is: copy it to a folder you may write to, or choose another file"
ADVICE = {
    "disk is full": f"cannot grow, the disk is full: make room; {KEPT}",
    "no space left": f"cannot grow, the disk is full: make room; {KEPT}",
    "disk i/o": f"could not be read or written, as when a disk or a quota is full: make room; {KEPT}",
    "readonly": READ_ONLY,
    "read-only": READ_ONLY,
    "permission": READ_ONLY,
    "unable to open": READ_ONLY,
    "not a database": "is not a database: choose another file for the store",
    "malformed": "is damaged: choose another file for the store; the sqlite3 program's .recover may save what it has",
    "locked": "has been locked by another program for {wait:g} s: close that program, then try again",
}


class StoreError(RuntimeError):
    """A journal cannot be read, written or begun; the text says which, why, and the way out."""


class DatabaseFile:
    """One SQLite file, and beside it the folder `path + ".locks"`. Nothing stays open that is not in use.

    tables: the statements that make what an empty file needs. wait: seconds to wait for others who write.
    """

    def __init__(self, path: str | os.PathLike[str], tables: Sequence[str], wait: float = 10.0) -> None:
        self.name, self.path, self.tables, self.wait = os.fspath(path), os.path.abspath(path), tables, wait
        folder = os.path.dirname(self.path)
        if self.name == ":memory:":
            raise StoreError("a store is a file, and ':memory:' is none: a run without a store has its records in "
                             "state.journal")
        if os.path.isdir(self.path):
            raise StoreError(f"{self.name!r} is a folder: name a file in it, as {os.path.join(self.name, 'runs.db')!r}")
        if not os.path.isdir(folder):
            raise StoreError(f"{self.name!r} cannot be made, there is no folder {folder!r}: make that first")

    @contextmanager
    def open(self, changes: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for the length of a block: to read, or for changes that are made together or not at all."""
        with self.told(), closing(self.connect(create=False)) as db:
            if not changes:
                yield db
                return
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # SQLite ends it by itself when the disk is full
                    db.execute("ROLLBACK")
                raise

    def connect(self, create: bool = True) -> sqlite3.Connection:
        """A connection, for any thread, with its tables in place; without `create` a missing file stays missing."""
        there = create or os.path.exists(self.path)
        with self.told():
            db = _connect(self.path if there else ":memory:", self.wait)
            try:
                db.execute("PRAGMA synchronous = NORMAL")
                if not self._is_ours(db):
                    with closing(self.lock("", self.wait)) if there else nullcontext():  # one makes it, others wait
                        self._make(db)
            except BaseException:
                db.close()
                raise
        return db

    def _make(self, db: sqlite3.Connection) -> None:
        if self._is_ours(db):  # by now
            return
        db.execute("PRAGMA journal_mode = WAL")
        for statement in ("BEGIN IMMEDIATE", *self.tables, f"PRAGMA application_id = {MARK}",
                          f"PRAGMA user_version = {VERSION}", "COMMIT"):
            db.execute(statement)

    def _is_ours(self, db: sqlite3.Connection) -> bool:
        """True for a file with our tables, False for an empty one; StoreError for any other."""
        # The tables first: whoever makes them at this moment sets the mark together with them.
        things, mark, version = (db.execute(query).fetchone()[0] for query in (
            "SELECT COUNT(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version"))
        if mark == MARK and version > VERSION:
            raise StoreError(f"{self.name!r} is from a newer minigraph: update this one, or choose another file")
        if mark != MARK and things:
            raise StoreError(f"{self.name!r} is a database of another program: choose another file for the store")
        return bool(mark == MARK)

    # ---- locks: who may write what

    def lock(self, name: str, wait: float = 0.2) -> sqlite3.Connection:
        """A lock of this name, to be closed; StoreError while anybody else has it, in this process or another.

        It is the operating system's, on a small file of its own, and is taken through SQLite: in one way on every
        system. It dies with the process; and what the process has forked (the workers of a pool, say, which outlive
        a killed parent) does not hold it on, as it would hold flock's.
        """
        with self.told():
            os.makedirs(self.path + ".locks", exist_ok=True)
            door = _connect(self._lock_file(name), wait)
            try:
                door.execute("PRAGMA journal_mode = MEMORY")  # or there would be a second small file
                door.execute("BEGIN EXCLUSIVE")
            except BaseException:
                door.close()
                raise
        return door

    def is_locked(self, name: str) -> bool:
        """Has anybody the lock of this name? Asking does not take it."""
        if not os.path.exists(self._lock_file(name)):
            return False
        with closing(_connect(self._lock_file(name), 0)) as door:
            try:
                door.execute("SELECT 1 FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:
                return True
        return False

    def _lock_file(self, name: str) -> str:
        return os.path.join(self.path + ".locks", hashlib.sha256(to_bytes(name)).hexdigest()[:32])

    # ---- what can go wrong

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whatever SQLite or the file system raises in the block becomes a StoreError that says what to do."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            text = str(error)
            advice = next((advice for words, advice in ADVICE.items() if words in text.casefold()), "failed: {text}")
            raise StoreError(f"{self.name!r} {advice.format(wait=self.wait, text=text)}") from error


def _connect(path: str, wait: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    db.text_factory = _text
    return db


# Text may hold halves of surrogate pairs: SQLite keeps them, the module that talks to it refuses them as strings.


def to_bytes(text: str) -> bytes:
    """Text as a statement takes it, in CAST(? AS TEXT)."""
    return text.encode("utf-8", "surrogatepass")


def _text(stored: bytes) -> str:
    try:
        return str(stored, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return str(stored, "utf-8", "backslashreplace")  # no JSON: the record is seen to be damaged
