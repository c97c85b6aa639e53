"""Text of any kind made fit to be shown: on one line, in quotes where it needs them, in lines that fit, harmless.

    shown("no\\nanswer")                 # no\\nanswer, the line's end written out
    quoted("a -> b")                     # "a -> b", in quotes: one name, not two
    wrapped("scan_the_whole_calendar", 14)      # ["scan_the_", "whole_calendar"]
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence


def shown(text: str) -> str:
    """The text on one line, whole and harmless: what no one could see, or XML may not hold, is written as an escape."""
    return "".join(char if char.isprintable() or char == "\u200d" else char.encode("unicode_escape").decode()
                   for char in text) or '""'


def quoted(name: str) -> str:
    """The name as the text twin writes it: in quotes where it could be mistaken for the words around it."""
    whole = shown(name)
    odd = whole != name or name != name.strip() or re.search(r'[",\\()]|--|->', name)
    return shown(json.dumps(name, ensure_ascii=False)) if odd else name


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters and of like length, words whole where they can be."""
    whole = shown(text)
    fewest = math.ceil(len(whole) / width)
    tries = (_filled(whole, limit, width) for limit in range(math.ceil(len(whole) / fewest), width))
    return next((lines for lines in tries if len(lines) == fewest), _filled(whole, width, width))


def _filled(text: str, limit: int, width: int) -> list[str]:
    """Lines of at most `limit` characters, but for words longer than that; those longer than `width` are broken."""
    lines = [""]
    for word in re.findall(r"\S*\s*", text):
        for piece in [word] if len(word.rstrip()) <= width else re.findall(r"[^_/.-]*[_/.-]?", word):
            if len(lines[-1]) + len(piece.rstrip()) > limit:
                lines.append("")
            while len(piece.rstrip()) > width:
                lines[-1:] = [piece[:width], ""]
                piece = piece[width:]
            lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()] or [text]


def duration(seconds: float) -> str:
    """1 ms, 662 ms, 1.887 s, 250 s."""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    return f"{seconds:.3f} s" if seconds < 100 else f"{seconds:.0f} s"


def listed(names: Sequence[str]) -> str:
    """'a', 'a and b', or 'a, b and c'; '' for none."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
