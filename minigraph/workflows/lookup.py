"""What may be looked up, and nothing else: tools that read local files, for an agent loop that cannot act.

    search_notes, search_web = readers(notes, pages)
    search_notes("Zeebrugge gauge")         # 'Memory (1)\\n- 2025-11-03: Jonas checks the gauge in Zeebrugge ...'

A model is shown these functions, their names, docstrings and arguments; what they return is text, an item a line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import date as Date
from pathlib import Path
from typing import Any

from . import sources
from .digest import as_text

Scan = Callable[[str], "list[Any]"]  # a query, or a date -> what the source has for it
Tool = Callable[..., str]

MOST_WORDS = 40  # of a query: each is a search of its own, and a message may be a book
READS = 20_000  # characters that are looked at; what is longer is not read to its end


# ---- the tools


def readers(notes: Scan, pages: Callable[[], list[Any]]) -> list[Tool]:
    """search_notes and search_web, over what finds notes for a query and what lists all saved pages."""

    def search_notes(query: str) -> str:
        """The notes that hold words of the query, the best first."""
        return as_text({"memory": notes(query)}, {})

    def search_web(query: str) -> str:
        """The saved web pages that hold words of the query, the best first."""
        return as_text({"web": matching(pages(), query)}, {})

    return [search_notes, search_web]


def diary(events: Scan) -> Tool:
    """list_events, over what lists the events of a date."""

    def list_events(day: str) -> str:
        """What the calendar has for a day, YYYY-MM-DD."""
        return as_text({"calendar": events(day)}, {})

    return list_events


def matching(pages: list[Any], query: str) -> list[Any]:
    """The pages whose title or snippet holds words of the query, those with the most of them first."""
    wanted = set(words(query))
    shared = [(len(wanted & set(words(f"{page['title']} {page['snippet']}"))), page) for page in pages]
    return [page for count, page in sorted(shared, key=lambda pair: -pair[0]) if count]


TOOLS = {"list_events": "Calendar", "search_notes": "Memory", "search_web": "Web"}  # tool -> the section it returns


def sections(text: str) -> dict[str, list[str]]:
    """Title -> its items, of what tools returned; a section that is unavailable is left out."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.split("\n"):
        if heading := _HEADING.fullmatch(line):
            title = heading["title"]
            found[title] = []
        elif line.startswith("- ") and title:
            found[title].append(line[2:])
        else:
            title = ""
    return found


_HEADING = re.compile(rf"(?P<title>{'|'.join(TOOLS.values())})(?: \(\d+\)|: nothing)")


# ---- on the files of this machine


def on_files(calendar: sources.PathLike | None = None, memory: sources.PathLike | None = None,
             web: sources.PathLike | None = None) -> tuple[Scan, Scan, Callable[[], list[Any]]]:
    """(events of a date, notes for a query, all pages), read from the named files, or from those in data/."""
    data = sources.data_dir()

    def events(day: str) -> list[Any]:
        return sources.read_calendar(calendar or data / "calendar.ics", Date.fromisoformat(day))

    def notes(query: str) -> list[Any]:
        return sources.read_memory(memory or data / "memory.jsonl", " ".join(words(query)))

    def pages() -> list[Any]:
        return sources.read_web(web or data / "web.json")

    return events, notes, pages


def named(**files: sources.PathLike | None) -> dict[str, str]:
    """Name -> absolute path, of those that are not None: a run notes them down, to be resumed from anywhere."""
    return {name: os.path.abspath(path) for name, path in files.items() if path is not None}


def read_lines(path: sources.PathLike, *keys: str) -> list[dict[str, Any]]:
    """The records of a file with one JSON object a line; SourceError names the first line without text under `keys`."""
    name = Path(path).name
    return [_record(row, f"line {number} of {name!r}", keys) for number, row in _rows(path, name)]


def _rows(path: sources.PathLike, name: str) -> Iterator[tuple[int, Any]]:
    import json
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise sources.SourceError(name, f"{name!r} cannot be read: {why}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise sources.SourceError(name, f"line {number} of {name!r} is not JSON: {error}") from None


def _record(row: Any, where: str, keys: tuple[str, ...]) -> dict[str, Any]:
    for key in keys:
        if not isinstance(row, dict) or not isinstance(row.get(key), str):
            raise sources.SourceError("lines", f"{where} is no object with text under {key!r}")
    return dict(row)


# ---- words


def words(text: str, most: int = MOST_WORDS) -> list[str]:
    """The words worth looking up, in order, each once, `most` at most: no small words, and numbers whole.

    Only the first READS characters are read. Scripts that put no spaces between words give their runs of Han characters
    and of katakana.
    """
    found: dict[str, None] = {}
    for match in _WORD.finditer(text[:READS].casefold()):
        if match[0] not in SMALL:
            found[match[0]] = None
            if len(found) == most:
                break
    return list(found)


_WORD = re.compile(r"[\u4e00-\u9fff]{2,}|[\u30a1-\u30ff]{2,}|[\uac00-\ud7a3]{2,}"
                   r"|\d+(?:[.,:/-]\d+)*|[^\W\d_\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{3,}")

_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")  # no space shows where a word ends


def any_of(listed: str) -> re.Pattern[str]:
    """What finds any of the phrases in a text, which stand between commas here; one with a * goes on as it likes."""
    phrases = [re.escape(" ".join(phrase.split())).replace(r"\*", r"\w*") for phrase in listed.split(",")]
    whole = [phrase if _UNSPACED.search(phrase) else rf"(?<!\w){phrase}(?!\w)" for phrase in phrases]
    return re.compile("|".join(whole), re.IGNORECASE)


SMALL = frozenset("""
    about after again all and any anything are ask asked before but can could does every everything for from had has
    have her him his how instead its just may more most need not nothing once one only other our out over please she
    should some somebody something tell than that the their them then there these they thing this time was were what
    when where which who whom whose why will with would you your
    aber als auch auf aus bei bitte das dass dem den der des die ein eine einen einer für hat ihr ist kann können mit
    nach nicht noch oder schon sie sind und uns vom von wann warum was wer wie wir wird zum zur
    avec ces dans des elle est les leur mais nous par pas plus pour pouvez que quel quelle qui sont sur une vous
    como con del donde dónde cuando cuándo cuál ella las los más para pero por qué quien quién son una
    com está hora mais não onde pelo quando quem são seu sua uma você
    από για και μας μου οτι που πότε πού στη στην στο τη την της τι τις το τον του των
""".split())  # noqa: SIM905 (a list of words is read, and changed, as words)
