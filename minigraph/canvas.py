"""A canvas is what all charts share: one style, one font, one width, letters that never lie over one another.

    with own_style():
        ax = own_axes(height=2.0, left=1.2)         # inches; no figure that anything global knows of
        pen = Pen(ax, span=13.2, unit=16)           # seconds from left to right, points from lane to lane
        pen.within(0, 1.9, 0.5, ["1.887 s, set the pace", "1.887 s", "1.9 s"])      # the first that fits

A chart draws itself on Axes with these, and is shown by a `Chart`: picture, alternative text and text twin in one.
Nothing here imports pyplot, touches matplotlib's backend or asks this machine which fonts it has.
"""

from __future__ import annotations

import io
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .palette import INK, PAPER
from .words import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 9.0  # inches of a figure of our own
LARGEST, LEAST = 9.0, 3.5  # points: letters; where there is no room for the smallest, nothing is written


class Chart:
    """A chart that shows itself in a notebook, saves itself to a file, and prints as text, its text twin.

    `.axes` is there to be read or drawn on. In a notebook nothing is ever raised: without matplotlib the text is shown.
    """

    def __init__(self, paint: Callable[[], Axes], text: str, title: str) -> None:
        self._paint, self._axes = paint, None  # type: Callable[[], Axes], Axes | None
        self.text, self.title = text, title

    def __repr__(self) -> str:
        return self.text

    @property
    def axes(self) -> Axes:
        """The Axes, drawn when first asked for."""
        if self._axes is None:
            self._axes = self._paint()
        return self._axes

    def png(self, scale: float = 2) -> bytes:
        """The chart as PNG; `scale` is pixels to a CSS pixel, so that 2 is sharp on a dense screen."""
        if not 0.1 <= scale <= 10:
            raise ValueError(f"scale={scale!r}: pixels to a CSS pixel, between 0.1 and 10")
        return self._written("png", dpi=96 * scale)

    def svg(self) -> str:
        """The chart as SVG; title and description are its title and its text."""
        svg = self._written("svg", dpi=72).decode()
        opening, body = svg[svg.index("<svg"):].split(">", 1)
        title = escape(shown(self.title))
        return (f'{opening} role="img" aria-label="{title}">\n<title>{title}</title>\n'
                f"<desc>{escape(self.text)}</desc>{body}")

    def save(self, path: str | Path) -> Path:
        """Writes the file its suffix asks for (.png .svg .txt) and returns its path."""
        path = Path(path)
        writers: dict[str, Callable[[], str | bytes]] = {
            ".png": self.png, ".svg": self.svg, ".txt": lambda: self.text + "\n"}
        if path.suffix.lower() not in writers:
            raise ValueError(f"cannot save a chart as {path.name!r}: the suffix must be one of {' '.join(writers)}")
        content = writers[path.suffix.lower()]()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def _written(self, format: str, dpi: float) -> bytes:
        file = io.BytesIO()
        figure: Any = self.axes.figure
        with own_style():
            metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
            figure.savefig(file, format=format, dpi=dpi, facecolor=PAPER, metadata=metadata)
        return file.getvalue()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        data: dict[str, Any] = {"text/plain": self.text}
        about: dict[str, Any] = {}
        try:
            png = self.png()
            data["image/png"] = b64encode(png).decode()
            about["image/png"] = {"width": int.from_bytes(png[16:20], "big") // 2, "alt": self.text}
        except Exception as error:  # a notebook shows the text rather than a traceback
            data["text/plain"] += f"\n(no picture: {error})"
        return data, about


# ---- where a chart is drawn


@contextmanager
def own_style() -> Iterator[None]:
    """Matplotlib's defaults, whatever style the notebook has set, so that a chart is the same everywhere."""
    try:
        from matplotlib import style
    except ImportError:
        raise ImportError('charts need the extra "notebooks": pip install -e ".[notebooks]"') from None
    with style.context(["default", {"svg.hashsalt": "minigraph", "hatch.linewidth": 0.8}]):
        yield


def own_axes(height: float, left: float, *, bottom: float = 0.62, top: float = 0.13, width: float = WIDTH) -> Axes:
    """Axes in a new figure: its size and the margins, for names and numbers, in inches. Nothing global knows of it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=96, facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes: Axes = figure.add_axes((left / width, bottom / height, 1 - (left + 0.2) / width,
                                  1 - (bottom + top) / height))
    return axes


# ---- letters inside a bar, beside it, or not at all; never over one another


class Pen:
    """Draws on Axes, and knows how much room there is: `room` points from left to right, `scale` of them to a unit.

    span: what the Axes show from left to right. unit: points from one row of letters to the next.
    """

    def __init__(self, ax: Axes, span: float, unit: float) -> None:
        self.ax, self.size = ax, min(LARGEST, unit * 0.52)
        self.room = ax.get_window_extent().width * 72 / ax.figure.dpi
        self.scale = self.room / span
        self.rules: list[float] = []  # where a vertical line passes, in points

    def fits(self, text: str, room: float, bold: bool = False) -> bool:
        """True if the text, and a little air around it, is no wider than this many points."""
        return self.size >= LEAST and width(text, self.size, bold) + 6 <= room

    def write(self, x: float, y: float, text: str, *, across: str = "left", bold: bool = False, boxed: bool = False,
              shift: float = 0.0, colour: str = INK) -> None:
        """Text at x and `shift` points; `boxed` on a slip of paper, where there are lines behind it."""
        if text:
            slip = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if boxed else None
            self.ax.annotate(letters(text), (x, y), (shift, 0), textcoords="offset points", ha=across,
                             va="center_baseline", color=colour, fontproperties=font(self.size, bold),
                             parse_math=False, bbox=slip, zorder=5, annotation_clip=False)

    def within(self, start: float, end: float, y: float, ways: Sequence[str], boxed: bool = False) -> str:
        """Writes the first of `ways` that fits between start and end, and returns it; "" if none does."""
        text = next((text for text in ways if self.fits(text, (end - start) * self.scale)), "")
        if text:
            self.write((start + end) / 2, y, text, across="center", boxed=boxed)
        return text

    def spot(self, left: float, right: float, taken: Sequence[tuple[float, float]], text: str, *, behind: bool = True,
             bold: bool = False) -> tuple[float, float] | None:
        """From where to where the text would stand right of left..right, or else left of it; None if there is no room.

        All in points; `taken` is where something stands already. Without `behind` only the right is tried.
        """
        wide = width(text, self.size, bold) + 8
        for low, high in ((right, right + wide), (left - wide, left))[:2 if behind else 1]:
            free = all(high <= begin or end <= low for begin, end in taken if (begin, end) != (left, right))
            if free and low >= 0 and high <= self.room + 8 and self.size >= LEAST:
                return low, high
        return None

    def beside(self, left: float, right: float, taken: list[tuple[float, float]], y: float, ways: Sequence[str],
               places: Sequence[tuple[float, float]] = (), *, behind: bool = True, colour: str = INK,
               bold: bool = False) -> str:
        """Writes the first of `ways` that finds room, in one of the places or beside left..right, and returns it."""
        for text in filter(None, ways):
            if any(self.within(start, end, y, [text], boxed=True) for start, end in places):
                return text
            if spot := self.spot(left, right, taken, text, behind=behind, bold=bold):
                low, high = spot
                crossed = any(low + 3 < rule < high for rule in self.rules) and not bold
                self.write(low / self.scale, y, text, shift=4, colour=colour, bold=bold, boxed=crossed)
                taken.append(spot)
                return text
        return ""

    def box(self, x: float, wide: float, top: float, bottom: float, fill: str, edge: str, zorder: float,
            hatch: str | None = None, line: float = 0.8) -> None:
        from matplotlib.patches import Rectangle

        self.ax.add_artist(Rectangle((x, top), wide, bottom - top, facecolor=fill, edgecolor=edge, linewidth=line,
                                     hatch=hatch, zorder=zorder))


# ---- words


def short(name: str, most: int = 34) -> str:
    """A name as it is written; the middle of a very long one is left out, as both its ends tell it apart."""
    parts = [letters(char) for char in shown(name)]
    if sum(map(len, parts)) <= most:
        return "".join(parts)
    return "".join(_first(parts, most * 2 // 3)) + "…" + "".join(_first(parts[::-1], most - most * 2 // 3 - 1)[::-1])


def _first(parts: Sequence[str], most: int) -> list[str]:
    """As many of the first parts as have at most so many characters."""
    ends = accumulate(map(len, parts))
    return [part for part, end in zip(parts, ends, strict=True) if end <= most]


def shortened(text: str, most: int) -> str:
    """The text, or as much of its beginning as fits in `most` characters, with dots."""
    return text if len(text) <= most else text[:max(0, most - 2)].rstrip() + " …"


def cut(text: str, points: float, size: float, bold: bool = False) -> str:
    """As much of the text's beginning as is at most this wide, with dots if that is not all."""
    ways = (shortened(text, most) for most in range(len(text), 0, -1))
    return next((way for way in ways if width(way, size, bold) <= points), "")


def fitting(parts: Sequence[str], points: float, size: float) -> list[str]:
    """The parts in lines of at most this many points, with "; " between them."""
    lines: list[str] = []
    for part in parts:
        if lines and width(f"{lines[-1]}; {part}", size) <= points:
            lines[-1] += f"; {part}"
        else:
            lines.append(part)
    return lines


# ---- letters, the same on every machine


def letters(text: str) -> str:
    """The text with each character that the font has no letter for spelled out: [rocket], [U+65E5]."""
    return text if text.isascii() else "".join(map(_letter, text))


@lru_cache(maxsize=4096)
def _letter(char: str) -> str:
    if char in "\u200d\ufe0f":  # they join or dress the emoji beside them
        return ""
    if ord(char) in _glyphs():
        return char
    name = unicodedata.name(char, "") if unicodedata.category(char) in ("So", "Sk", "Sm") else ""
    return f"[{name.lower() or f'U+{ord(char):04X}'}]"


def _font_file(bold: bool = False) -> str:
    """The font that matplotlib brings along: the same letters, of the same width, on every machine."""
    import matplotlib

    return str(Path(matplotlib.get_data_path(), "fonts", "ttf", f"DejaVuSans{'-Bold' if bold else ''}.ttf"))


def font(size: float, bold: bool = False) -> Any:
    """The font as matplotlib wants it named."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(fname=_font_file(bold), size=size)


@lru_cache(maxsize=2)
def _measure(bold: bool) -> Any:
    """A copy of the font for measuring: what is drawn with sets sizes of its own."""
    from matplotlib.ft2font import FT2Font

    found = FT2Font(_font_file(bold))
    found.set_size(100, 72)
    return found


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    return frozenset(_measure(False).get_charmap())


@lru_cache(maxsize=4096)
def _advance(char: str, bold: bool) -> float:
    """How wide a letter of one point is, in points."""
    return float(_measure(bold).load_char(ord(char)).linearHoriAdvance) / 65536 / 100


def width(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is, in points."""
    return sum(_advance(char, bold) for char in letters(text)) * size
