"""A picture is drawn from what `graph.describe()` says and from nothing else, so it cannot drift from what runs.

    print(to_text(graph))                # the edges as words: START -> draft, aggregate --fix--> revise (back)
    draw(graph)                          # in a notebook: the picture, with those words beside it
    draw(graph, run).save("run.svg")     # what ran, how often, what was skipped, what failed, what waits for an answer
    draw(graph, run, nested=False)       # graphs inside nodes closed; True opens them all

One sheet of marks is computed first (sheet.py); text, DOT and Mermaid are three ways to write that sheet down
(notation.py), and Graphviz makes the picture from the DOT. What a picture says in colour it also says in shape, line or
words. It brings its own paper along: it looks the same in a light notebook and in a dark one.
"""

from __future__ import annotations

import re
import shutil
import sysconfig
import threading
import unicodedata
from base64 import b64encode
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from . import notation
from .sheet import Sheet, sheet
from .words import duration, quoted, shown, wrapped

__all__ = ["Picture", "PictureError", "draw", "duration", "quoted", "sheet", "shown", "spelled", "to_dot", "to_mermaid",
           "to_text", "wrapped"]


def draw(graph: Any, run: Any = None, *, nested: bool | None = None, format: str = "png") -> Picture:
    """The picture of a Graph (or of what `describe()` returned), and, given its GraphState or Trace, of a run.

    nested: are the graphs that nodes run drawn too, in boxes? True: all of them, however deep; False: none; None: level
    by level, as long as the picture has at most 25 nodes. format: what a notebook shows, "png" or "svg".
    """
    return Picture(sheet(graph, run, nested), format)


def to_text(graph: Any, run: Any = None, *, nested: bool | None = None) -> str:
    """The picture as words: its edges as indented lines that can be read aloud, a source at a time."""
    return notation.text(sheet(graph, run, nested))


def to_dot(graph: Any, run: Any = None, *, nested: bool | None = None) -> str:
    """The picture as DOT, for Graphviz. Identifiers are n0, n1, ...; names and labels stand escaped in the labels."""
    return notation.dot(sheet(graph, run, nested), slips=True)


def to_mermaid(graph: Any, run: Any = None, *, nested: bool | None = None) -> str:
    """The picture as a Mermaid flowchart, for pages that draw one. Identifiers are n0, n1, ... here too."""
    return notation.mermaid(sheet(graph, run, nested))


# ---- the picture

LARGEST = 2000  # nodes and edges that a notebook draws unasked


class Picture:
    """A drawn graph: shows itself in a notebook, saves itself to a file, prints as text.

    `.text`, `.dot` and `.mermaid` are there at once; `.svg()` and `.png()` need a Graphviz, and PictureError says
    how to get one. In a notebook nothing is ever raised: without a Graphviz the text is shown.
    """

    def __init__(self, drawn: Sheet, format: str = "png") -> None:
        if format not in ("png", "svg"):
            raise ValueError(f"format={format!r}: a notebook shows 'png' or 'svg'")
        self.name, self.format, self.size = drawn.name, format, drawn.total
        self.text, self.mermaid = notation.text(drawn), notation.mermaid(drawn)
        self.dot = notation.dot(drawn, slips=True)
        self._upright = notation.dot(drawn, upright=True, slips=True)

    def __repr__(self) -> str:
        return self.text

    def svg(self) -> str:
        """The picture as SVG, to be put in a page or a file; title and description are the name and the text."""
        return _accessible(_graphviz(self._upright, "svg").decode(), self.name, self.text)

    def png(self, scale: float = 2) -> bytes:
        """The picture as PNG; `scale` is pixels to a CSS pixel, so that 2 is sharp on a dense screen."""
        if not 0.1 <= scale <= 10:
            raise ValueError(f"scale={scale!r}: pixels to a CSS pixel, between 0.1 and 10")
        return _graphviz(self._upright.replace("graph [", f'graph [dpi="{96 * scale:g}", ', 1), "png")

    def save(self, path: str | Path) -> Path:
        """Writes the file its suffix asks for (.svg .png .dot .mmd .txt) and returns its path."""
        path = Path(path)
        writers: dict[str, Callable[[], str | bytes]] = {
            ".svg": self.svg, ".png": self.png, ".dot": lambda: self.dot, ".mmd": lambda: self.mermaid,
            ".txt": lambda: self.text + "\n"}
        if path.suffix.lower() not in writers:
            raise ValueError(f"cannot save a picture as {path.name!r}: the suffix must be one of {' '.join(writers)}")
        content = writers[path.suffix.lower()]()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a notebook shows: PNG or SVG, and always the text; SVG as well where the PNG had to spell something."""
        data: dict[str, Any] = {"text/plain": self.text}
        about: dict[str, Any] = {}
        try:
            if self.size > LARGEST:
                raise PictureError(f"{self.size} nodes and edges are too many to look at; .save('all.svg') draws them")
            if self.format == "png":
                png = self.png()
                data["image/png"] = b64encode(png).decode()
                about["image/png"] = {"width": int.from_bytes(png[16:20], "big") // 2, "alt": self.text}
            if self.format == "svg" or spelled(self.dot) != self.dot:
                data["image/svg+xml"] = self.svg()
                about["image/svg+xml"] = {"alt": self.text}
        except Exception as error:  # a notebook shows the text rather than a traceback
            data["text/plain"] += f"\n(no picture: {error})"
        return data, about


class PictureError(RuntimeError):
    """No program that can draw was found, or the one there is failed; says in one sentence what to do."""


_one_at_a_time = threading.Lock()  # the graphviz package keeps the program's name in a global


def _graphviz(dot: str, format: str) -> bytes:
    """DOT as a picture, by the machine's own `dot` or else by graphviz-pure, which pip installs."""
    try:
        import graphviz
        from graphviz.backend import dot_command
    except ImportError:
        raise PictureError('pictures need the extra "notebooks": pip install -e ".[notebooks]"') from None
    programs = [shutil.which("dot"), shutil.which("graphviz-pure", path=sysconfig.get_path("scripts"))
                or shutil.which("graphviz-pure")]
    reason: Exception | None = None
    for program in filter(None, programs):
        # graphviz-pure draws with fonts of its own, whatever else the machine has.
        source = spelled(dot) if format == "png" and program == programs[1] else dot
        with _one_at_a_time:
            before, dot_command.DOT_BINARY = dot_command.DOT_BINARY, Path(program)
            try:
                picture: bytes = graphviz.pipe("dot", format, source.encode(), quiet=True)
                return picture
            except Exception as error:  # a dot without plugins, say: the next one may do
                reason = error
            finally:
                dot_command.DOT_BINARY = before
    if reason is not None:
        raise PictureError(f"Graphviz could not draw this: {reason}") from reason
    raise PictureError('no Graphviz here: pip install -e ".[notebooks]" brings one, the extra "notebooks"')


def spelled(dot: str) -> str:
    """The DOT with each character that graphviz-pure has no letter for spelled out: [rocket], [U+65E5]."""
    return re.sub("[^\n -\u024f\u0300-\u036f\u0370-\u052f\u05d0-\u05ea\u1e00-\u1eff\u2010-\u2026\u20ac\u2190-\u2193]",
                  _spell, dot)


def _spell(found: re.Match[str]) -> str:
    char = found[0]
    if char in "\u200d\ufe0f":  # they join or dress the emoji beside them
        return ""
    name = unicodedata.name(char, "") if unicodedata.category(char) in ("So", "Sk", "Sm") else ""
    return f"[{name.lower() or f'U+{ord(char):04X}'}]"


def _accessible(svg: str, name: str, text: str) -> str:
    """The SVG from its root on, with a role, a title and a description, and without Graphviz's tooltips n0, n1."""
    svg = re.sub(r"<title>.*?</title>\n?", "", svg[svg.index("<svg"):])
    title, description = escape(shown(name)), "\n".join(escape(shown(line)) for line in text.splitlines())
    opening, body = svg.split(">", 1)
    return (f'{opening} role="img" aria-label="{title}">\n'
            f"<title>{title}</title>\n<desc>{description}</desc>{body}")
