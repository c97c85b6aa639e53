"""Who we know, what was said, and what was done about it: one SQLite database, in memory or in a file.

    with Book() as book:                                        # in memory, on the files in data/
        book.history("c01", now)                                # {"contact": {...}, "deals": [...], "messages": [...]}
        book.act("c05", "add_to_nurture", "", now)              # noted, and nothing else: nobody is written to
        with book.credits.one("c05", "score"):                  # taken now, and given back if the block raises
            ...

The files are only read; the database is where everything is asked, and the one thing that is written.
"""

from __future__ import annotations

import difflib
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from statistics import median
from typing import Any

from .leadfiles import BookError, Cell, Row, moment, read_all, shipped
from .sources import PathLike

MARK = 0x6D676C64  # "mgld": how a file says that it is one of ours
SHIPPED, OWN = 1, 2  # and whose contacts are in it
TABLES = """
    CREATE TABLE IF NOT EXISTS companies (name TEXT PRIMARY KEY, country TEXT, sector TEXT, employees INT, note TEXT);
    CREATE TABLE IF NOT EXISTS contacts  (id TEXT PRIMARY KEY, name TEXT, role TEXT, company TEXT);
    CREATE TABLE IF NOT EXISTS deals     (id TEXT PRIMARY KEY, contact TEXT, title TEXT, value_eur REAL, stage TEXT,
                                          updated TEXT);
    CREATE TABLE IF NOT EXISTS messages  (id TEXT PRIMARY KEY, contact TEXT, at TEXT, seconds REAL, channel TEXT,
                                          sender TEXT, text TEXT);
    CREATE TABLE IF NOT EXISTS actions   (contact TEXT, action TEXT, detail TEXT, at TEXT, UNIQUE (contact, action));
    CREATE TABLE IF NOT EXISTS ledger    (id INTEGER PRIMARY KEY, amount INT, contact TEXT, purpose TEXT);
"""


class UnknownContact(BookError, LookupError):
    """There is no contact of that id."""


class NoCredits(RuntimeError):
    """There was no credit to take, so the call was not made."""


# ---- the book


class Book:
    """A database of contacts, companies, deals, messages, actions and credits. Any number of threads may use it.

    path: the file; None keeps all of it in memory. A new one is filled from the files, those in data/ unless any are
    named (then a kind that is not named is empty), and its ledger begins with `credits`. In one that was filled
    before, actions and ledger go on, and naming files replaces what those had brought.
    """

    def __init__(self, path: PathLike | None = None, *, contacts: PathLike | None = None,
                 companies: PathLike | None = None, deals: PathLike | None = None, messages: PathLike | None = None,
                 credits: int | None = None) -> None:
        self.name = "memory" if path is None else os.fspath(path)
        self.turn = threading.RLock()
        named = {"contacts": contacts, "companies": companies, "deals": deals, "messages": messages}
        rows = read_all(named) if any(path is not None for path in named.values()) else None
        with self.told():
            self.db = sqlite3.connect(":memory:" if path is None else self.name, timeout=10, isolation_level=None,
                                      check_same_thread=False)
            try:
                self._open(rows)
                self.credits = Credits(self, 20 if credits is None else credits)
            except BaseException:
                self.db.close()
                raise

    def __repr__(self) -> str:
        return f"<Book in {self.name}: {len(self.contacts())} contacts, {self.credits.left} credits>"

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the file. What was in memory is gone."""
        self.db.close()

    @property
    def shipped(self) -> bool:
        """Are its contacts those in data/?"""
        return self.ask("PRAGMA user_version") == [{"user_version": SHIPPED}]

    def contacts(self) -> list[str]:
        """The ids of all contacts, in order."""
        return [row["id"] for row in self.ask("SELECT id FROM contacts ORDER BY id")]

    def known(self, contact_id: str) -> str:
        """The id, if there is such a contact; UnknownContact if not."""
        ids = self.contacts()
        if contact_id in ids:
            return contact_id
        close = difflib.get_close_matches(str(contact_id), ids, n=1)
        raise UnknownContact(f"there is no contact {contact_id!r}; "
                             + (f"did you mean {close[0]!r}? " if close else "")
                             + (f"There are {', '.join(ids[:12])}{', ...' * (len(ids) > 12)}" if ids else
                                "There are none at all"))

    # ---- what is read

    def history(self, contact_id: str, now: str) -> Row:
        """{contact, deals, messages}: who it is, all deals, and the last 20 messages until `now`, oldest first."""
        (contact,) = self.ask("SELECT name, role, company FROM contacts WHERE id = ?", self.known(contact_id))
        deals = self.ask("SELECT title, value_eur, stage, updated FROM deals WHERE contact = ? "
                         "ORDER BY updated DESC, id", contact_id)
        messages = self.ask("SELECT at, channel, sender, text FROM messages WHERE contact = ? AND seconds <= ? "
                            "ORDER BY seconds DESC, id DESC LIMIT 20", contact_id, moment(now).timestamp())
        return {"contact": contact, "deals": deals, "messages": messages[::-1]}

    def company(self, contact_id: str, now: str) -> Row | None:
        """{name, country, sector, employees, note} of the company that the contact works for; None if unknown."""
        found = self.ask("SELECT companies.* FROM companies JOIN contacts ON companies.name = contacts.company "
                         "WHERE contacts.id = ?", self.known(contact_id))
        return found[0] if found else None

    def activity(self, contact_id: str, now: str) -> Row:
        """{heard_days_ago, channel, answers_within_hours} until `now`; None for what no message tells.

        The channel is the one on which the contact writes most. An answer is a message of theirs that follows one of
        ours, and takes the time between the two; of all answers, the median.
        """
        until = self.known(contact_id), moment(now).timestamp()
        theirs = self.ask("SELECT channel, MAX(seconds) AS latest FROM messages WHERE contact = ? AND seconds <= ? AND "
                          "sender = 'contact' GROUP BY channel ORDER BY COUNT(*) DESC, latest DESC", *until)
        answers = self.ask("SELECT seconds - asked AS took FROM (SELECT sender, seconds, LAG(sender) OVER w AS asker, "
                           "LAG(seconds) OVER w AS asked FROM messages WHERE contact = ? AND seconds <= ? "
                           "WINDOW w AS (ORDER BY seconds, id)) WHERE sender = 'contact' AND asker = 'us'", *until)
        heard = max((row["latest"] for row in theirs), default=None)
        return {"heard_days_ago": None if heard is None else round((until[1] - heard) / 86400, 2),
                "channel": theirs[0]["channel"] if theirs else None,
                "answers_within_hours": round(median(row["took"] for row in answers) / 3600, 2) if answers else None}

    # ---- what is written

    def act(self, contact_id: str, action: str, detail: str, now: str) -> None:
        """Notes that this is to be done about the contact; a note of the same kind is replaced."""
        self.write("INSERT OR REPLACE INTO actions VALUES (?, ?, ?, ?)", self.known(contact_id), action, detail, now)

    def actions(self) -> list[Row]:
        """[{contact, action, detail, at}]: everything that was noted, by contact."""
        return self.ask("SELECT * FROM actions ORDER BY contact, at, action")

    # ---- how it is asked

    def ask(self, query: str, *values: Cell) -> list[Row]:
        """The rows that a query finds, as dicts."""
        with self.told(), self.turn, closing(self.db.execute(query, tuple(map(_storable, values)))) as found:
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def write(self, statement: str, *values: Cell) -> int:
        """How many rows the statement changed."""
        with self.told(), self.turn, closing(self.db.execute(statement, tuple(map(_storable, values)))) as done:
            return done.rowcount

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whatever SQLite raises in the block becomes a BookError."""
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:  # OverflowError: a whole number of more than 64 bits
            raise BookError(f"the contacts in {self.name!r} cannot be used: {error}; is it a file of ours, in a folder "
                            "you may write to?") from error

    def _open(self, rows: dict[str, list[tuple[Cell, ...]]] | None) -> None:
        """Makes the tables where there are none, and fills them where they are empty or something else was named."""
        (mark,), (things,) = (self.db.execute(query).fetchone() for query in (
            "PRAGMA application_id", "SELECT COUNT(*) FROM sqlite_master"))
        if mark != MARK and things:
            raise BookError(f"{self.name!r} is a database of another program: choose another file for the contacts")
        self.db.executescript(f"BEGIN IMMEDIATE; PRAGMA application_id = {MARK}; {TABLES} COMMIT")
        own = rows is not None
        if rows is None and not self.contacts():
            rows = read_all(shipped())
        if rows is not None:
            self._fill(rows, own)

    def _fill(self, rows: dict[str, list[tuple[Cell, ...]]], own: bool) -> None:
        """Replaces what the files had brought, all of it or nothing."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.execute(f"PRAGMA user_version = {OWN if own else SHIPPED}")
            for table, filled in rows.items():
                self.db.execute(f"DELETE FROM {table}")
                for row in filled:
                    self.db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})",
                                    tuple(map(_storable, row)))
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise


class Credits:
    """A ledger: what was granted, what each call took, and what came back. Nothing in it is ever changed or removed.

    It is never below zero, whoever takes at once, in this process or another. A process that is killed during a call
    leaves its credit taken.
    """

    def __init__(self, book: Book, granted: int) -> None:
        if not isinstance(granted, int) or isinstance(granted, bool) or granted < 0:
            raise BookError(f"credits={granted!r} must be a whole number from 0: one is a call of the model")
        self.book = book
        book.write("INSERT INTO ledger (amount, purpose) SELECT ?, 'granted' WHERE NOT EXISTS (SELECT 1 FROM ledger)",
                   granted)

    def __repr__(self) -> str:
        return f"<Credits: {self.left} left>"

    @property
    def left(self) -> int:
        """The sum of the ledger."""
        (row,) = self.book.ask("SELECT COALESCE(SUM(amount), 0) AS left FROM ledger")
        return int(row["left"])

    def entries(self) -> list[Row]:
        """[{amount, contact, purpose}], the oldest first."""
        return self.book.ask("SELECT amount, contact, purpose FROM ledger ORDER BY id")

    def grant(self, amount: int) -> None:
        """Adds this many credits."""
        if not isinstance(amount, int) or isinstance(amount, bool) or amount < 1:
            raise BookError(f"grant({amount!r}): credits are granted in whole numbers from 1")
        self._write(amount, None, "granted")

    @contextmanager
    def one(self, contact_id: str, purpose: str) -> Iterator[None]:
        """Takes a credit, and gives it back if the block raises; NoCredits, and no block, if there is none to take."""
        if not self._write(-1, contact_id, purpose):
            raise NoCredits(f"no credits are left, so the model was not called for {purpose!r}; grant some first")
        try:
            yield
        except BaseException:
            self._write(1, contact_id, f"{purpose} failed, given back")
            raise

    def _write(self, amount: int, contact_id: str | None, purpose: str) -> bool:
        """Was the entry written? One statement looks and writes, so that no two can take the last credit."""
        return self.book.write("INSERT INTO ledger (amount, contact, purpose) SELECT ?1, ?2, ?3 WHERE "
                               "?1 + (SELECT COALESCE(SUM(amount), 0) FROM ledger) >= 0",
                               amount, contact_id, purpose) == 1


def _storable(value: Cell) -> Cell:
    """Text that UTF-8 can write: JSON may spell half of an emoji, as in "\\ud83d", and SQLite takes no halves."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
