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
from typing import TYPE_CHECKING, Any, Protocol

from .trace import Trace, one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mark = tuple[str, float]  # what happened, and when in seconds


class Figures(Protocol):
    """What a waterfall is drawn from, in seconds; workflows.comparison computes it from two traces."""

    @property
    def loop_total(self) -> float: ...
    @property
    def gained(self) -> float: ...
    @property
    def given_back(self) -> float: ...
    @property
    def graph_total(self) -> float: ...


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

    @property
    def over(self) -> float:
        """When the wait was over, too."""
        return self.end + self.wait


def rows(trace: Trace) -> list[Bar]:
    """The bars of a chart, lane by lane in the order of the graph: a bar a visit, or, for a loop, a bar a call."""
    nodes = trace.nodes
    if not nodes:
        bars = [Bar("model" if call.kind == "llm" else call.name, call.start, call.end, call.kind, error=call.error)
                for call in trace.calls()]
        return _by_lane(bars, ["model"])
    visits, paces = trace.visits(), trace.paces()
    thinkers = {call.node for call in trace.calls() if call.kind == "llm"}
    bars_of: dict[str, list[Bar]] = {}  # node -> its bars, in order
    for visit in visits:
        notes = [f"{visit.retries + 1} attempts"] if visit.retries else []
        notes += ["set the pace"] if (visit.node, visit.visit) in paces else []
        bars_of.setdefault(visit.node, []).append(
            Bar(visit.node, visit.start, visit.end, "llm" if visit.node in thinkers else "node", visit.wait,
                visit.visit, visit.wave, visit.error, notes))
    for event in trace.of("route"):
        before = (bar for bar in reversed(bars_of.get(event["router"], [])) if bar.end <= event["t"])
        bar = next(before, None) if "node" not in event else None  # with a node it is a nested graph's
        if bar is not None and event.get("error"):
            bar.error = bar.error or event["error"]
        elif bar is not None:
            labels = event["label"] if isinstance(event["label"], (list, tuple)) else [event["label"]]
            bar.notes.append("→ " + ", ".join(map(str, labels)))
    bars = [bar for mine in bars_of.values() for bar in mine]
    bars += [Bar(event["node"], event["t"], event["t"], event["kind"], error=event["why"])
             for event in trace.of("refused", "blocked")]
    return _by_lane(bars, nodes)


def _by_lane(bars: list[Bar], order: list[str]) -> list[Bar]:
    """Sorted by lane: the order of the graph, what a nested graph ran below the node that holds it, then by time."""
    place = {name: number for number, name in enumerate(order)}
    first: dict[str, float] = {}
    for bar in bars:
        first[bar.lane] = min(bar.start, first.get(bar.lane, bar.start))

    def key(bar: Bar) -> tuple[Any, ...]:
        top = bar.lane if bar.lane in place else bar.lane.split("/")[0]
        return place.get(top, len(place)), first[bar.lane], bar.lane, bar.start

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
    runs = _runs([traces] if isinstance(traces, Trace) else traces, labels, marks)
    text = "\n\n".join(f"{run.label}\n{waves_text(run.trace)}" if run.label else waves_text(run.trace) for run in runs)
    return Chart(lambda: _paint(runs, None), text, "; ".join(run.title for run in runs))


def waterfall(figures: Figures) -> Chart:
    """How the loop's total becomes the graph's: what is gained gathering, and what is given back answering.

    figures: a comparison of two traces, with `loop_total`, `gained`, `given_back` and `graph_total` in seconds.
    """
    steps = [("the loop", figures.loop_total), ("gathering", -figures.gained), ("answering", figures.given_back),
             ("the graph", figures.graph_total)]
    text = "\n".join(f"{name:10} {_signed(seconds, whole=name.startswith('the'))}" for name, seconds in steps)
    return Chart(lambda: _paint_steps(steps), text, "from the loop's total to the graph's")


@dataclass
class _Run:
    trace: Trace
    label: str | None = None
    marks: Sequence[Mark] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.trace, Trace):
            raise TypeError(f"a chart is drawn from a Trace, not from a {type(self.trace).__name__}: pass the one that "
                            "observed the run, as in run_graph(graph, state, trace)")

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
        title = escape(one_line(self.title))
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
LEAST = 3.5  # points: the smallest letters; where lanes are closer, nothing is written
THIN = 2.0  # points: a bar that would be narrower is drawn as a mark of this width


def _paint_steps(steps: Sequence[tuple[str, float]]) -> Axes:
    """Bars from one total to another: what is taken away is hatched, what is given back is crossed."""
    with _own_style():
        ax = _own_axes(height=2.6, left=(max(_width(name, 10) for name, _ in steps) + 16) / 72)
        ax.set_xlim(0, max(seconds for _, seconds in steps) * 1.02)
        ax.set_ylim(len(steps) - 0.4, -0.6)
        level = 0.0
        for row, (name, seconds) in enumerate(steps):
            whole = name.startswith("the")
            left, right = sorted((0.0 if whole else level, seconds if whole else level + seconds))
            look = (MODEL, None) if whole else (PAPER, WAITED) if seconds < 0 else (PAPER, CROSSED)
            ax.barh(row, right - left, 0.62, left, color=look[0], hatch=look[1], edgecolor=INK, linewidth=1)
            slip = None if whole else {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
            ax.text((left + right) / 2, row, _signed(seconds, whole), ha="center", va="center_baseline", color=INK,
                    fontproperties=_font(10, bold=True), bbox=slip)
            level = seconds if whole else level + seconds
            if row + 1 < len(steps):
                ax.plot([level, level], [row, row + 1], color=FAINT, linewidth=0.8, linestyle=":")
        ax.set_yticks(range(len(steps)), [name for name, _ in steps], fontproperties=_font(10))
        ax.set_xlabel("seconds; hatched: gained, crossed: given back", fontproperties=_font(9))
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        for label in ax.get_xticklabels():
            label.set_fontproperties(_font(9))
        return ax


def _signed(seconds: float, whole: bool) -> str:
    return f"{seconds:.2f} s" if whole else f"{'-' if seconds < 0 else '+'} {abs(seconds):.2f} s"


@dataclass
class _Lane:
    title: str  # the name, and how often; "" where a lane goes on because bars overlap
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
    """A lane a name, and one more wherever two bars of a name overlap, as calls of one tool may."""
    named: dict[str, list[Bar]] = {}
    for bar in bars:
        named.setdefault(bar.lane, []).append(bar)
    lanes = []
    for name, mine in named.items():
        runs = sum(bar.kind in _RAN for bar in mine)
        rest = [_Lane(_short(name) + (f" ×{runs}" if runs > 1 else ""), [])]
        for bar in mine:
            free = [lane for lane in rest if not lane.bars or lane.bars[-1].over <= bar.start + 1e-9]
            if not free:
                free = [_Lane("", [])]
                rest += free
            free[0].bars.append(bar)
        lanes += rest
    return lanes


@contextmanager
def _own_style() -> Iterator[None]:
    """Matplotlib's defaults, whatever style the notebook has set, so that a chart is the same everywhere."""
    try:
        from matplotlib import style
    except ImportError:
        raise ImportError('charts need the extra "notebooks": pip install -e ".[notebooks]"') from None
    with style.context(["default", {"svg.hashsalt": "minigraph", "hatch.linewidth": 0.8}]):
        yield


def _paint(runs: list[_Run], ax: Axes | None) -> Axes:
    if ax is not None:
        _draw(ax, _blocks(runs))
        return ax
    with _own_style():
        blocks = _blocks(runs)
        ax = _figure(blocks)
        _draw(ax, blocks)
        return ax


def _figure(blocks: list[_Block]) -> Axes:
    """Axes in a figure of our own: as high as its lanes, with a margin as wide as their names."""
    lanes = [lane for block in blocks for lane in block.lanes]
    unit = 0.34 if len(lanes) <= 40 else min(0.26, 80 / len(lanes))
    height = blocks[-1].bottom * unit + 0.75
    return _own_axes(height, (max((_width(lane.title, 9) for lane in lanes), default=0) + 16) / 72)


def _own_axes(height: float, left: float) -> Axes:
    """Axes in a new figure of this height, with this margin for names; both in inches. Nothing global knows of it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=96, facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes: Axes = figure.add_axes((left / WIDTH, 0.62 / height, 1 - (left + 0.2) / WIDTH, 1 - 0.75 / height))
    return axes


def _draw(ax: Axes, blocks: list[_Block]) -> None:
    span = max(*(block.run.trace.seconds for block in blocks), 1e-6) * 1.02
    ax.set_xlim(0, span)
    ax.set_ylim(blocks[-1].bottom, 0)
    ax.set_facecolor(PAPER)
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    size = min(9.0, box.height * points / blocks[-1].bottom * 0.52)
    pen = _Pen(ax, span, box.width * points, size)
    for block in blocks:
        _draw_block(pen, block)
    lanes = [lane for block in blocks for lane in block.lanes]
    titles = [lane.title if size >= LEAST else "" for lane in lanes]
    ax.set_yticks([lane.y for lane in lanes], titles, fontproperties=_font(size), parse_math=False)
    bars = [bar for lane in lanes for bar in lane.bars]
    legend = ["seconds since the start", *["hatched: waited at the barrier"] * any(bar.wait for bar in bars),
              *["crossed: failed"] * any(bar.error and bar.kind in _RAN for bar in bars)]
    ax.set_xlabel("; ".join(legend), fontproperties=_font(9))
    ax.tick_params(axis="x", labelsize=9)
    ax.tick_params(axis="y", length=0, pad=5)
    ax.grid(axis="x", color="#D0D0D0", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)


def _draw_block(pen: _Pen, block: _Block) -> None:
    pen.box(0, pen.room / pen.scale, block.top, block.waves_y, PAPER, "none", 0.8)  # no grid behind the title
    title = one_line(block.run.title)
    titles = (_shortened(title, most) for most in range(len(title), 0, -1))
    pen.write(0, block.top + 0.5, next((text for text in titles if pen.fits(text, pen.room, bold=True)), ""), bold=True)
    named = 0
    for number, (wave, start, end) in enumerate(block.waves):
        pen.box(start, end - start, block.waves_y, block.bottom, PAPER if number % 2 else BAND, "#C8C8C8", 0.4)
        named += bool(pen.within(start, end, block.waves_y + 0.4, [f"wave {wave}", str(wave)]))
    if block.waves and not named:
        pen.write(0, block.waves_y + 0.4, f"{len(block.waves)} waves", shift=3, boxed=True)
    pen.rules = [at * pen.scale for _, at in block.run.marks]
    for lane in block.lanes:
        for bar in lane.bars:
            pen.bar(bar, lane.y)
        _label_lane(pen, lane)
    if not block.lanes:
        pen.write(0, block.bottom - 0.1, "nothing ran")
    taken: list[tuple[float, float]] = []
    for label, at in sorted(block.run.marks, key=lambda mark: mark[1]):
        pen.rule(at, block.marks_y + 0.2, block.bottom)
        pen.beside(at * pen.scale, at * pen.scale, taken, block.marks_y + 0.45,
                   [f"{one_line(label)}: {at:.2f} s", f"{at:.2f} s"], colour=MARK, bold=True)


# ---- labels: inside a bar, beside it, or not at all; never over one another. The table has what there is no room for.

_RAN = ("node", "llm", "tool")


def _label_lane(pen: _Pen, lane: _Lane) -> None:
    taken = [pen.extent(bar) for bar in lane.bars]  # what is not free, in points from the left edge
    repeated = len({bar.visit for bar in lane.bars}) > 1
    for bar in sorted(lane.bars, key=lambda bar: (bar.error is None, bar.wait == 0, bar.start)):
        left, right = pen.extent(bar)
        waited = [f"waited {_seconds(bar.wait)}", *_times(bar.wait)] if bar.wait >= 0.0005 else []
        said = "" if bar.error else pen.within(bar.start, bar.end, lane.y, _ways(bar, repeated))
        if said:
            rest = [note for note in map(one_line, bar.notes) if note not in said]
            if pen.within(bar.end, bar.over, lane.y, waited, boxed=True):
                waited = []
            pen.beside(left, right, taken, lane.y, [_joined([*waited[:1], *rest]), *waited, *rest])
        else:  # all in one place, wherever most of it can be said
            places = [(bar.start, bar.end), (bar.end, bar.over)]
            pen.beside(left, right, taken, lane.y, [*_ways(bar, repeated, waited[:1]), *waited[1:]], places)


def _ways(bar: Bar, repeated: bool, waited: Sequence[str] = ()) -> list[str]:
    """Shorter and shorter ways to say what there is to say of a bar."""
    reasons = list(dict.fromkeys(_shortened(one_line(bar.error or ""), most) for most in (80, 50, 30, 18)))
    if bar.kind not in _RAN:
        return [*(f"{bar.kind}: {reason}" for reason in reasons), bar.kind]
    lasted, *briefer = _times(bar.seconds)
    longer = f"visit {bar.visit}: {lasted}" if repeated else lasted
    failed = [[f"✗ failed: {reason}"] for reason in reasons] if bar.error else [[]]
    ways = [[longer, *map(one_line, bar.notes), *failed[0], *waited], *([longer, *why, *waited] for why in failed),
            [lasted, *failed[-1], *waited]]
    if bar.error:
        ways += [["✗ failed", *waited], ["✗ failed"]]
    else:
        ways += [[*waited]] if waited else [[text] for text in briefer]
    return list(dict.fromkeys(map(_joined, ways)))


def _joined(parts: Sequence[str]) -> str:
    return " · ".join(parts).replace(" · →", " →")


class _Pen:
    """Draws on Axes, and knows how much room there is: `room` points from left to right, `scale` of them a second."""

    def __init__(self, ax: Axes, span: float, room: float, size: float) -> None:
        self.ax, self.room, self.size, self.scale = ax, room, size, room / span
        self.rules: list[float] = []  # where a mark's line passes, in points

    def fits(self, text: str, room: float, bold: bool = False) -> bool:
        return self.size >= LEAST and _width(text, self.size, bold) + 6 <= room

    def extent(self, bar: Bar) -> tuple[float, float]:
        """From where to where a bar and its wait reach, in points; at least as much as its mark."""
        left, least = bar.start * self.scale, THIN / 2 if bar.kind in _RAN else 5.0
        return left - least, max(bar.over * self.scale, left + least)

    def write(self, x: float, y: float, text: str, *, across: str = "left", bold: bool = False, boxed: bool = False,
              shift: float = 0.0, colour: str = INK) -> None:
        """Text at x seconds and `shift` points; `boxed` on a slip of paper, where there are lines behind it."""
        if text:
            slip = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if boxed else None
            self.ax.annotate(_letters(text), (x, y), (shift, 0), textcoords="offset points", ha=across,
                             va="center_baseline", color=colour, fontproperties=_font(self.size, bold),
                             parse_math=False, bbox=slip, zorder=5, annotation_clip=False)

    def within(self, start: float, end: float, y: float, ways: Sequence[str], boxed: bool = False) -> str:
        """Writes the first of `ways` that fits between two moments, and returns it; "" if none does."""
        text = next((text for text in ways if self.fits(text, (end - start) * self.scale)), "")
        if text:
            self.write((start + end) / 2, y, text, across="center", boxed=boxed)
        return text

    def beside(self, left: float, right: float, taken: list[tuple[float, float]], y: float, ways: Sequence[str],
               places: Sequence[tuple[float, float]] = (), *, colour: str = INK, bold: bool = False) -> None:
        """Writes the first of `ways` that finds room: in one of the places, right of all, or else left of it."""
        for text in filter(None, ways):
            if any(self.within(start, end, y, [text], boxed=True) for start, end in places):
                return
            width = _width(text, self.size, bold) + 8
            for low, high in ((right, right + width), (left - width, left)):
                free = all(high <= begin or end <= low for begin, end in taken if (begin, end) != (left, right))
                if free and low >= 0 and high <= self.room + 8 and self.size >= LEAST:
                    crossed = any(low + 3 < rule < high for rule in self.rules) and not bold
                    self.write(low / self.scale, y, text, shift=4, colour=colour, bold=bold, boxed=crossed)
                    taken.append((low, high))
                    return

    def bar(self, bar: Bar, y: float) -> None:
        """A bar as long as it took, its wait hatched behind it; what is too short to see gets a thin mark as well."""
        colour = FAILED if bar.error else INK
        if bar.kind not in _RAN:
            self.ax.plot([bar.start], [y], marker="X", markersize=8, color=FAILED, markeredgecolor=INK, zorder=4)
            return
        fill = PAPER if bar.error else MODEL if bar.kind == "llm" else WORK
        self.box(bar.start, bar.seconds, y - 0.31, y + 0.31, fill, colour, 3, CROSSED if bar.error else None)
        if bar.wait > 0:
            self.box(bar.end, bar.wait, y - 0.31, y + 0.31, PAPER, FAINT, 2.5, WAITED)
        if bar.seconds * self.scale < THIN:
            self.ax.plot([bar.start] * 2, [y - 0.36, y + 0.36], color=colour, linewidth=THIN, solid_capstyle="butt",
                         zorder=4, clip_on=False)

    def box(self, x: float, width: float, top: float, bottom: float, fill: str, edge: str, zorder: float,
            hatch: str | None = None) -> None:
        from matplotlib.patches import Rectangle

        self.ax.add_artist(Rectangle((x, top), width, bottom - top, facecolor=fill, edgecolor=edge, linewidth=0.8,
                                     hatch=hatch, zorder=zorder))

    def rule(self, x: float, top: float, bottom: float) -> None:
        self.ax.plot([x, x], [top, bottom], color=MARK, linewidth=1.8, linestyle=(0, (4, 2)), marker="v", markevery=[0],
                     markersize=6, zorder=3.5)


# ---- words and letters


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:.3f} s" if seconds < 100 else f"{seconds:.0f} s"


def _times(seconds: float) -> list[str]:
    """A length of time, to the millisecond and then with fewer digits: ["1.885 s", "1.9 s"]."""
    brief = f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2f} s"
    return [_seconds(seconds), brief] if seconds >= 0.1 else [_seconds(seconds)]


def _short(name: str, most: int = 34) -> str:
    """A lane's name; the middle of a very long one is left out, as both its ends tell it apart."""
    name = _letters(one_line(name))
    return name if len(name) <= most else f"{name[:most * 2 // 3]}…{name[-most // 3 + 1:]}"


def _shortened(text: str, most: int) -> str:
    """The text, or as much of its beginning as fits in `most` characters, with dots."""
    return text if len(text) <= most else text[:max(0, most - 2)].rstrip() + " …"


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


@lru_cache(maxsize=2)
def _measure(bold: bool) -> Any:
    """A copy of the font for measuring: what is drawn with sets sizes of its own."""
    from matplotlib.ft2font import FT2Font

    font = FT2Font(_font_file(bold))
    font.set_size(100, 72)
    return font


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    return frozenset(_measure(False).get_charmap())


@lru_cache(maxsize=4096)
def _advance(char: str, bold: bool) -> float:
    """How wide a letter of one point is, in points."""
    return float(_measure(bold).load_char(ord(char)).linearHoriAdvance) / 65536 / 100


def _width(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is, in points."""
    return sum(_advance(char, bold) for char in _letters(text)) * size
