"""What every command says in the same way: the result on standard output, all else beside it, a complaint in a line.

    say(state["answer"])                    # what is piped is only this
    note("triage-3: answered by full_agent")
    raise Complaint("there is no message")  # exit code 1

Text from elsewhere may hold anything. On a terminal, where a control character would be obeyed, it is written as an
escape; into a pipe text goes as it is.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any
from unicodedata import combining, east_asian_width

from . import words
from .words import shown

WAITS = 3  # the exit code of a run that waits for a person


class Complaint(Exception):
    """Bad input: the one sentence that says so."""


def say(text: str) -> None:
    """Prints a result."""
    _print(text, sys.stdout, obeyed=sys.stdout.isatty())


def note(text: str) -> None:
    """Prints what is not the result."""
    _print(text, sys.stderr, obeyed=True)


def _print(text: str, to: Any, obeyed: bool) -> None:
    if obeyed:
        text = "\n".join(line if line.isprintable() else shown(line) for line in text.split("\n"))
    known = to.encoding or "utf-8"  # half of an emoji, or a letter that this terminal has not
    print(text.encode(known, "backslashreplace").decode(known), file=to)


def say_json(value: Any) -> None:
    """Prints a result for a program."""
    _print(json.dumps(value, indent=2, ensure_ascii=False, default=str), sys.stdout, obeyed=False)


def say_where(path: str | None, otherwise: str = "") -> None:
    """On standard error, so that what is piped is only the result."""
    note(f"wrote {path}" if path else otherwise)


def listed(names: Sequence[str]) -> str:
    """'a, b and c', or 'nothing'."""
    return words.listed(names) or "nothing"


def table(rows: Sequence[Sequence[str]]) -> str:
    """The rows in columns, the last of which is as wide as it likes."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    padded = ((cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def _width(text: str) -> int:
    """How many columns a terminal gives it: two to a letter of Chinese, Japanese or Korean, and to most emoji."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def shortened(text: str, most: int = 70) -> str:
    """The text on one line, cut where it is long."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - 1] + "…"


def reason(error: BaseException) -> str:
    """What an error says, for a person."""
    if isinstance(error, OSError) and error.strerror:
        return f"{os.fspath(error.filename)}: {error.strerror}" if error.filename else error.strerror
    return str(error)
