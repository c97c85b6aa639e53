"""Contacts, companies, deals and messages as files: a row a line, and BookError names the line that is none.

    rows = read_all(shipped())
    rows["deals"][0]            # ('d01', 'c01', 'Tide feed for nine ferries', 18000.0, 'negotiation', '2026-02-26')

A file that is missing or broken is never taken for one in which nothing is.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Union

from .sources import PathLike, data_dir

Row = dict[str, Any]
Cell = Union[str, int, float, None]

COLUMNS = {"contacts": ("id", "name", "role", "company"),
           "companies": ("name", "country", "sector", "employees", "note"),
           "deals": ("id", "contact", "title", "value_eur", "stage", "updated"),
           "messages": ("id", "contact", "at", "channel", "from", "text")}
STAGES = ("new", "proposal", "negotiation", "won", "lost")
SENDERS = ("contact", "us")


class BookError(ValueError):
    """A file or a database that cannot be read or written, in one sentence."""


def shipped() -> dict[str, Path]:
    """Table -> its file in data/."""
    return {table: data_dir() / f"{table}.{'jsonl' if table == 'messages' else 'csv'}" for table in COLUMNS}


def read_all(files: Mapping[str, PathLike | None]) -> dict[str, list[tuple[Cell, ...]]]:
    """Table -> its rows, none for a table without a file; BookError names the file and the line of what is no row."""
    found: dict[str, list[tuple[Cell, ...]]] = {}
    contacts: set[Cell] = set()
    for table, columns in COLUMNS.items():
        path, rows = files.get(table), dict[Cell, "tuple[Cell, ...]"]()  # what tells them apart -> the row
        for line, row in (_jsonl if table == "messages" else _csv)(path, columns) if path is not None else ():
            try:
                cells = _CELLS[table](row)
                _check(columns, cells, rows, contacts)
            except ValueError as error:
                raise BookError(f"{_shown(path)}, line {line}: {error}") from None
            rows[cells[0]] = cells
        contacts |= set(rows) if table == "contacts" else set()
        found[table] = list(rows.values())
    return found


def _check(columns: Sequence[str], cells: tuple[Cell, ...], earlier: Mapping[Cell, Any], contacts: set[Cell]) -> None:
    """ValueError for a row that is there twice, or speaks of a contact who is not."""
    if not cells[0]:
        raise ValueError(f"there is nothing under {columns[0]!r}")
    if cells[0] in earlier:
        raise ValueError(f"{cells[0]!r} is there twice")
    if columns[1] == "contact" and cells[1] not in contacts:
        raise ValueError(f"there is no contact {cells[1]!r}")


def _csv(path: PathLike | None, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """(line, row) of a CSV file whose first line names at least these columns."""
    with _opened(path) as file:
        rows = csv.DictReader(file, strict=True)
        try:
            if lacking := [column for column in columns if column not in (rows.fieldnames or ())]:
                raise BookError(f"{_shown(path)} has no column {lacking[0]!r}: the first line is {','.join(columns)}")
            for row in rows:
                if None in row or None in row.values():
                    raise csv.Error("it has more or fewer fields than the first line")
                yield rows.line_num, row
        except csv.Error as error:
            raise BookError(f"{_shown(path)}, line {rows.reader.line_num}: {error}") from None


def _jsonl(path: PathLike | None, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
    """(line, row) of a file with one JSON object a line, which holds text under each of these keys."""
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BookError(f"{_shown(path)}, line {number}: no JSON: {error}") from None
            lacking = [key for key in columns if not isinstance(row, dict) or not isinstance(row.get(key), str)]
            if lacking:
                raise BookError(f"{_shown(path)}, line {number}: no text under {lacking[0]!r}")
            yield number, row


@contextmanager
def _opened(path: Any) -> Iterator[Any]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BookError(f"{_shown(path)} cannot be read: {why}") from None


def _shown(path: Any) -> str:
    """The path as messages quote it; a shipped file is called data/..., wherever that folder lies."""
    try:
        return repr((Path("data") / Path(path).relative_to(data_dir())).as_posix())
    except ValueError:
        return repr(os.fspath(path))


# ---- one row


def _deal(row: Row) -> tuple[Cell, ...]:
    return (row["id"], row["contact"], row["title"], _number(row["value_eur"], "value_eur"),
            _one_of(STAGES, row["stage"], "stage"), row["updated"])


def _message(row: Row) -> tuple[Cell, ...]:
    return (row["id"], row["contact"], row["at"], moment(row["at"]).timestamp(), row["channel"],
            _one_of(SENDERS, row["from"], "from"), row["text"])


def moment(text: Any) -> datetime:
    """A time in ISO 8601; without an offset it is UTC. ValueError for anything else."""
    try:
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"{text!r} is no time: write it as 2026-03-02T09:00:00+01:00") from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _number(text: str, column: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{column} is {text!r}, and no number")
    return found


def _one_of(words: Sequence[str], word: str, column: str) -> str:
    if word not in words:
        raise ValueError(f"{column} is {word!r}, and not one of {', '.join(words)}")
    return word


_CELLS: dict[str, Callable[[Row], tuple[Cell, ...]]] = {
    "contacts": lambda row: (row["id"], row["name"], row["role"], row["company"]),
    "companies": lambda row: (row["name"], row["country"], row["sector"],
                              int(_number(row["employees"], "employees")) if row["employees"] else None, row["note"]),
    "deals": _deal,
    "messages": _message,
}
