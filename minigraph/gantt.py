"""A chart is a trace laid along the clock: a bar a visit, a lane a node, and the wait at the barrier hatched.

    trace = Trace()
    run_graph(graph, {}, trace)
    chart(trace)                        # in a notebook: the picture, with the table of waves beside it
    compare([trace, other])             # Axes: two runs on one scale, one above the other

`rows` computes the bars as plain data; `gantt` and `compare` put them on Axes, where tests can read them back; `chart`
is for showing and saving. Nothing here imports pyplot or touches matplotlib's backend.
"""

from __future__ import annotations

import io
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mark = tuple[str, float]  # what happened, and when in seconds

# ---- what is drawn


@dataclass
class Bar:
    """One visit of a node or one call of a loop, or, of no length, a visit that did not take place. In seconds."""

    lane: str
    start: float
    end: float
    kind: str = "node"  # node, llm, tool; refused, blocked
    wait: float = 0.0  # how long it stood at the barrier afterwards
    visit: int = 1
    wave: int | None = None
    error: str | None = None
    notes: list[str] = field(default_factory=list)  # ["→ digest", "3 attempts"]

    @property
    def seconds(self) -> float:
        return self.end - self.start


def rows(trace: Trace) -> list[Bar]:
    """The bars of a chart, lane by lane in the order of the graph: a bar a visit, or, for a loop, a bar a call."""
    if not trace.nodes:
        bars = [Bar("model" if call.kind == "llm" else call.name, call.start, call.end, call.kind, error=call.error)
                for call in trace.calls()]
        return _by_lane(bars, ["model"])
    paces = {id(max(wave, key=lambda visit: visit.end)) for wave in trace.waves() if len(wave) > 1}
    thinkers = {call.node for call in trace.calls() if call.kind == "llm"}
    bars = [Bar(visit.node, visit.start, visit.end, "llm" if visit.node in thinkers else "node", visit.wait,
                visit.visit, visit.wave, visit.error,
                [f"{visit.retries + 1} attempts"] * bool(visit.retries) + ["set the pace"] * (id(visit) in paces))
            for visit in trace.visits()]
    for event in trace.of("route"):
        chosen = [bar for bar in bars if bar.lane == event["router"] and bar.end <= event["t"] and "node" not in event]
        if chosen and event.get("error"):
            chosen[-1].error = chosen[-1].error or event["error"]
        elif chosen:
            labels = event["label"] if isinstance(event["label"], (list, tuple)) else [event["label"]]
            chosen[-1].notes.append("→ " + ", ".join(map(str, labels)))
    bars += [Bar(event["node"], event["t"], event["t"], event["kind"], error=event["why"])
             for event in trace.of("refused", "blocked")]
    return _by_lane(bars, trace.nodes)


def _by_lane(bars: list[Bar], order: list[str]) -> list[Bar]:
    """Sorted by lane: the order of the graph, what a nested graph ran below the node that holds it, then by time."""
    place = {name: number for number, name in enumerate(order)}
    first: dict[str, float] = {}
    for bar in bars:
        first[bar.lane] = min(bar.start, first.get(bar.lane, bar.start))

    def key(bar: Bar) -> tuple[Any, ...]:
        top = bar.lane if bar.lane in place else bar.lane.split("/")[0]
        return place.get(top, len(place)), top != bar.lane, first[bar.lane], bar.lane, bar.start

    return sorted(bars, key=key)


def waves_of(trace: Trace) -> list[tuple[int, float, float]]:
    """The waves of a run as (number, start, end) in seconds; [] for a run without waves."""
    begun = {event["wave"]: event["t"] for event in trace.of("wave_start") if "node" not in event}
    ended = {event["wave"]: event["t"] for event in trace.of("wave_end") if "node" not in event}
    return [(wave, start, ended.get(wave, trace.seconds)) for wave, start in begun.items()]


def waves_text(trace: Trace) -> str:
    """The text twin of a chart: the table of the trace."""
    return trace.to_text()


# ---- on Axes


def gantt(trace: Trace, ax: Axes | None = None, *, label: str | None = None, marks: Sequence[Mark] = ()) -> Axes:
    """The Axes with the chart of one run; a figure of its own, fitting, where `ax` is None.

    `label` replaces the name of the workflow; `marks` are moments to point out: [("gathered", 1.887)].
    """
    return _paint([_Run(trace, label, marks)], ax)


def compare(traces: Sequence[Trace], ax: Axes | None = None, *, labels: Sequence[str] | None = None,
            marks: Sequence[Sequence[Mark]] | None = None) -> Axes:
    """The Axes with several runs on one time scale, one above the other; `labels` and `marks` hold one entry a run."""
    return _paint(_runs(traces, labels, marks), ax)


def chart(traces: Trace | Sequence[Trace], *, labels: Sequence[str] | None = None,
          marks: Sequence[Sequence[Mark]] | None = None) -> Chart:
    """The chart of one run, or of several on one time scale, as an object that shows itself in a notebook."""
    return Chart(_runs([traces] if isinstance(traces, Trace) else traces, labels, marks))


@dataclass
class _Run:
    trace: Trace
    label: str | None = None
    marks: Sequence[Mark] = ()

    @property
    def title(self) -> str:
        return f"{self.label or self.trace.name}: {self.trace.status or 'not ended'} after {self.trace.seconds:.3f} s"


def _runs(traces: Sequence[Trace], labels: Sequence[str] | None, marks: Sequence[Sequence[Mark]] | None) -> list[_Run]:
    if not traces:
        raise ValueError("there is nothing to draw: pass at least one trace")
    for what, given in (("labels", labels), ("marks", marks)):
        if given is not None and len(given) != len(traces):
            raise ValueError(f"{what}={given!r}: give one entry for each of the {len(traces)} traces")
    return [_Run(trace, labels[i] if labels else None, marks[i] if marks else ()) for i, trace in enumerate(traces)]


class Chart:
    """A chart that shows itself in a notebook, saves itself to a file, and prints as text, the table of the trace.

    `.axes` is there to be read or drawn on. In a notebook nothing is ever raised: without matplotlib the text is shown.
    """

    def __init__(self, runs: list[_Run]) -> None:
        self._drawn_runs = runs
        self._axes: Axes | None = None
        self.text = "\n\n".join(f"{run.label}\n{waves_text(run.trace)}" if run.label else waves_text(run.trace)
                                for run in runs)

    def __repr__(self) -> str:
        return self.text

    @property
    def axes(self) -> Axes:
        """The Axes, drawn when first asked for."""
        if self._axes is None:
            self._axes = _paint(self._drawn_runs, None)
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
        title = escape("; ".join(_line(run.title) for run in self._drawn_runs))
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
        with _own_style():
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


# ---- painting

# Colours by meaning, from the palette of Okabe and Ito (2008); ink on paper. Hatching says the same without colour.
WORK, MODEL, FAILED, MARK = "#56B4E9", "#E69F00", "#D55E00", "#0072B2"
INK, FAINT, BAND, PAPER = "#1A1A1A", "#595959", "#F0F0F0", "#FFFFFF"
WAITED, CROSSED = "////", "xxxx"
WIDTH = 9.0  # inches of a figure of our own
THIN = 2.0  # points: a bar that would be narrower is drawn as a mark of this width


@dataclass
class _Lane:
    name: str  # "" where a lane goes on because bars overlap
    bars: list[Bar]
    y: float = 0.0


@dataclass
class _Block:
    """One run on the Axes: a row for its title, one for its waves, one for its marks, then its lanes."""

    run: _Run
    lanes: list[_Lane]
    waves: list[tuple[int, float, float]]
    top: float = 0.0
    bottom: float = 0.0
    waves_y: float = 0.0
    marks_y: float = 0.0


def _blocks(runs: list[_Run]) -> list[_Block]:
    """The runs laid out from y=0 downwards, a unit a lane."""
    blocks, y = [], 0.0
    for run in runs:
        block = _Block(run, _lanes(rows(run.trace)), waves_of(run.trace), top=y)
        y += 1.0
        block.waves_y, y = y, y + (0.8 if block.waves else 0.0)
        block.marks_y, y = y, y + (0.9 if run.marks else 0.0)
        for lane in block.lanes:
            lane.y, y = y + 0.5, y + 1.0
        block.bottom, y = y, y + 0.4
        blocks.append(block)
    return blocks


def _lanes(bars: list[Bar]) -> list[_Lane]:
    lanes: dict[str, list[_Lane]] = {}
    for bar in bars:
        mine = lanes.setdefault(bar.lane, [])
        free = next((lane for lane in mine if lane.bars[-1].end + lane.bars[-1].wait <= bar.start + 1e-9), None)
        if free is None:
            mine.append(_Lane("" if mine else bar.lane, [bar]))
        else:
            free.bars.append(bar)
    return [lane for mine in lanes.values() for lane in mine]


@contextmanager
def _own_style() -> Iterator[None]:
    """Matplotlib's defaults, whatever the notebook's style is, so that a chart is the same everywhere."""
    try:
        from matplotlib import style
    except ImportError:
        raise ImportError('charts need the extra "notebooks": pip install -e ".[notebooks]"') from None
    with style.context(["default", {"svg.hashsalt": "minigraph", "hatch.linewidth": 0.8}]):
        yield


def _paint(runs: list[_Run], ax: Axes | None) -> Axes:
    blocks = _blocks(runs)
    if ax is not None:
        _draw(ax, blocks)
        return ax
    with _own_style():
        ax = _figure(blocks)
        _draw(ax, blocks)
    return ax


def _figure(blocks: list[_Block]) -> Axes:
    """Axes in a figure of our own: as high as its lanes, with a margin as wide as their names."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lanes = [lane for block in blocks for lane in block.lanes]
    unit = 0.34 if len(lanes) <= 40 else 0.26
    height = blocks[-1].bottom * unit + 0.75
    figure = Figure(figsize=(WIDTH, height), dpi=96, facecolor=PAPER)
    FigureCanvasAgg(figure)
    left = (max((_width(_short(lane.name), 9) for lane in lanes), default=0) + 16) / 72
    axes: Axes = figure.add_axes((left / WIDTH, 0.62 / height, 1 - (left + 0.2) / WIDTH, 1 - 0.75 / height))
    return axes


def _draw(ax: Axes, blocks: list[_Block]) -> None:
    span = max(*(block.run.trace.seconds for block in blocks), 1e-6) * 1.02
    ax.set_xlim(0, span)
    ax.set_ylim(blocks[-1].bottom, 0)
    ax.set_facecolor(PAPER)
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    size = min(9.0, max(4.0, box.height * points / blocks[-1].bottom * 0.52))
    pen = _Pen(ax, span, box.width * points, size)
    for block in blocks:
        _draw_block(pen, block)
    lanes = [lane for block in blocks for lane in block.lanes]
    ax.set_yticks([lane.y for lane in lanes], [_short(lane.name) for lane in lanes],
                  fontproperties=_font(size), parse_math=False)
    bars = [bar for lane in lanes for bar in lane.bars]
    legend = ["seconds since the start", *["hatched: waited at the barrier"] * any(bar.wait for bar in bars),
              *["crossed: failed"] * any(bar.error and bar.kind in _RAN for bar in bars)]
    ax.set_xlabel("; ".join(legend), fontproperties=_font(9))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#D0D0D0", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)


def _draw_block(pen: _Pen, block: _Block) -> None:
    title = _shortened(_line(block.run.title), lambda text: pen.fits(text, pen.room, bold=True))
    pen.write(0, block.top + 0.5, title, bold=True)
    for number, (wave, start, end) in enumerate(block.waves):
        pen.box(start, end - start, block.waves_y, block.bottom, BAND if number % 2 == 0 else PAPER)
        label = next((text for text in (f"wave {wave}", str(wave)) if pen.fits(text, (end - start) * pen.scale)), "")
        pen.write((start + end) / 2, block.waves_y + 0.4, label, across="center")
    for lane in block.lanes:
        for bar in lane.bars:
            pen.bar(bar, lane.y)
        _label_lane(pen, lane)
    if not block.lanes:
        pen.write(0, block.bottom - 0.1, "nothing ran")
    _draw_marks(pen, block)


def _draw_marks(pen: _Pen, block: _Block) -> None:
    taken: list[tuple[float, float]] = []
    for label, at in sorted(block.run.marks, key=lambda mark: mark[1]):
        x, text = at * pen.scale, f"{label}: {at:.2f} s"
        pen.rule(at, block.marks_y + 0.2, block.bottom)
        pen.write_beside(x, x, taken, block.marks_y + 0.45, [text, f"{at:.2f} s"], colour=MARK, bold=True)


# ---- labels: inside a bar, beside it, or not at all; never over one another

_RAN = ("node", "llm", "tool")


def _label_lane(pen: _Pen, lane: _Lane) -> None:
    """Writes what fits: inside a bar if there is room, else beside it; what no room is left for stands in the text."""
    taken = [pen.extent(bar) for bar in lane.bars]  # points from the left edge that are not free
    repeated = len({bar.visit for bar in lane.bars}) > 1
    for bar in lane.bars:
        parts = _parts(bar, repeated)
        inside = next((n for n in range(len(parts), 0, -1)
                       if pen.fits(" · ".join(parts[:n]), bar.seconds * pen.scale)), 0)
        if inside:
            pen.write(bar.start + bar.seconds / 2, lane.y, " · ".join(parts[:inside]), across="center",
                      boxed=bool(bar.error))
        rest = parts[inside:]
        waited = f"waited {_seconds(bar.wait)}"
        if bar.wait >= 0.0005:
            if not rest and pen.fits(waited, bar.wait * pen.scale):
                pen.write(bar.end + bar.wait / 2, lane.y, waited, across="center", boxed=True)
                continue
            rest.append(waited)
        if rest:
            left, right = pen.extent(bar)
            pen.write_beside(left, right, taken, lane.y, _shorter(rest, bool(bar.error)))


def _parts(bar: Bar, repeated: bool) -> list[str]:
    """What there is to say of a bar, the most important last: ["visit 2: 0.900 s", "→ fix", "✗ failed: ValueError"]."""
    if bar.kind not in _RAN:
        return [f"✗ {bar.kind}: {_shortened(_line(str(bar.error)), lambda text: len(text) <= 60)}"]
    lasted = (f"visit {bar.visit}: " if repeated else "") + _seconds(bar.seconds)
    failed = [f"✗ failed: {_shortened(_line(bar.error), lambda text: len(text) <= 60)}"] if bar.error else []
    return [lasted, *(_line(note) for note in bar.notes), *failed]


def _shorter(parts: list[str], failed: bool) -> list[str]:
    """Ever shorter ways to say it: all, then without the notes, then the last alone, then a sign."""
    brief = [part.split(":")[0] if part.startswith("✗") else part.removeprefix("visit ") for part in parts]
    ways = [parts, brief, [brief[0], brief[-1]], brief[-1:], [brief[-1].removeprefix("waited ")]]
    return list(dict.fromkeys(" · ".join(dict.fromkeys(way)) for way in ways)) + (["✗"] if failed else [])


class _Pen:
    """Draws on Axes, and knows how much room there is: lengths in points, `scale` of them a second."""

    def __init__(self, ax: Axes, span: float, room: float, size: float) -> None:
        self.ax, self.room, self.size = ax, room, size
        self.scale = room / span

    def fits(self, text: str, room: float, bold: bool = False) -> bool:
        return _width(text, self.size, bold) + 6 <= room

    def extent(self, bar: Bar) -> tuple[float, float]:
        """From where to where a bar and its wait reach, in points; not less than can be seen."""
        left = bar.start * self.scale
        least = THIN / 2 if bar.kind in _RAN else 4.0
        return left - least, max((bar.end + bar.wait) * self.scale, left + least)

    def write(self, x: float, y: float, text: str, *, across: str = "left", bold: bool = False, boxed: bool = False,
              shift: float = 0.0, colour: str = INK) -> None:
        """Text at x seconds, `shift` points to the right of it."""
        if text:
            box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.2} if boxed else None
            self.ax.annotate(_letters(text), (x, y), (shift, 0), textcoords="offset points", ha=across, va="center",
                             color=colour, fontproperties=_font(self.size, bold), parse_math=False, bbox=box, zorder=5,
                             annotation_clip=False)

    def write_beside(self, left: float, right: float, taken: list[tuple[float, float]], y: float, ways: list[str], *,
                     colour: str = INK, bold: bool = False) -> None:
        """The first way to say it that finds room, right of `right` or else left of `left`; its place is taken then."""
        for text in ways:
            width = _width(text, self.size, bold) + 6
            for low, high in ((right, right + width), (left - width, left)):
                free = all(high <= begin or end <= low for begin, end in taken if (begin, end) != (left, right))
                if free and low >= 0 and high <= self.room + 8:
                    self.write(low / self.scale, y, text, shift=3, colour=colour, bold=bold)
                    taken.append((low, high))
                    return

    def bar(self, bar: Bar, y: float) -> None:
        """A bar as long as it took, its wait hatched behind it; what is too short to see gets a thin mark as well."""
        colour = FAILED if bar.error else INK
        if bar.kind not in _RAN:
            self.ax.plot([bar.start], [y], marker="X", markersize=8, color=FAILED, markeredgecolor=INK, zorder=4)
            return
        fill = PAPER if bar.error else MODEL if bar.kind == "llm" else WORK
        self.ax.barh(y, bar.seconds, 0.62, bar.start, facecolor=fill, edgecolor=colour, linewidth=0.9,
                     hatch=CROSSED if bar.error else None, zorder=3)
        if bar.wait > 0:
            self.ax.barh(y, bar.wait, 0.62, bar.end, facecolor=PAPER, edgecolor=FAINT, linewidth=0.9, hatch=WAITED,
                         zorder=2.5)
        if bar.seconds * self.scale < THIN:
            self.ax.plot([bar.start] * 2, [y - 0.36, y + 0.36], color=colour, linewidth=THIN, solid_capstyle="butt",
                         zorder=4)

    def box(self, x: float, width: float, top: float, bottom: float, fill: str) -> None:
        self.ax.bar(x, bottom - top, width, top, align="edge", facecolor=fill, edgecolor="#C8C8C8", linewidth=0.6,
                    zorder=0.4)

    def rule(self, x: float, top: float, bottom: float) -> None:
        self.ax.plot([x, x], [top, bottom], color=MARK, linewidth=1.8, linestyle=(0, (4, 2)), marker="v", markevery=[0],
                     markersize=6, zorder=3.5)


# ---- words and letters


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:.3f} s" if seconds < 100 else f"{seconds:.0f} s"


def _line(text: str) -> str:
    """The text on one line, what cannot be seen written as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _short(name: str, most: int = 34) -> str:
    """A lane's name; the middle of a very long one is left out, as both its ends tell it apart."""
    name = _letters(_line(name))
    return name if len(name) <= most else f"{name[:most * 2 // 3]}…{name[-most // 3 + 1:]}"


def _shortened(text: str, fits: Callable[[str], bool]) -> str:
    """The text, or as much of its beginning as fits, with dots."""
    if fits(text):
        return text
    beginnings = (text[:end].rstrip() + " …" for end in range(len(text) - 1, 0, -1))
    return next((beginning for beginning in beginnings if fits(beginning)), "")


def _letters(text: str) -> str:
    """The text with each character that the font has no letter for spelled out: [rocket], [U+65E5]."""
    has = _glyphs()
    return "".join(char if ord(char) in has else _spelled(char) for char in text)


def _spelled(char: str) -> str:
    if char in "\u200d\ufe0f":  # they join or dress the emoji beside them
        return ""
    name = unicodedata.name(char, "") if unicodedata.category(char) in ("So", "Sk", "Sm") else ""
    return f"[{name.lower() or f'U+{ord(char):04X}'}]"


def _font_file(bold: bool = False) -> str:
    """The font that matplotlib brings along: the same letters, of the same width, on every machine."""
    import matplotlib

    return str(Path(matplotlib.get_data_path(), "fonts", "ttf", f"DejaVuSans{'-Bold' if bold else ''}.ttf"))


def _font(size: float, bold: bool = False) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(fname=_font_file(bold), size=size)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset(get_font(_font_file()).get_charmap())


def _width(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is, in points."""
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(_letters(text), _font(size, bold), False)[0])
