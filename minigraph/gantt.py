"""A chart is a trace laid along the clock: a bar a visit, a lane a node, and the wait at the barrier hatched.

    trace = Trace()
    run_graph(graph, {}, trace)
    chart(trace)                        # in a notebook: the picture, with the table of waves beside it
    compare([trace, other])             # Axes: two runs on one scale, one above the other

`rows` computes the bars as plain data (lanes.py); `gantt` and `compare` put them on Axes, where tests can read them
back; `chart` is for showing and saving. What a chart says in colour it also says in a hatch, a sign or words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .canvas import LARGEST, LEAST, WIDTH, Chart, Pen, cut, fitting, font, own_axes, own_style, short, shortened, width
from .lanes import RAN, Bar, Lane, lanes_of, resumed_at, rows, waves_of
from .palette import BAND, FAILED, FAINT, INK, KINDS, MARK, MODEL, PAPER, RULE, WORK
from .trace import Trace
from .words import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Bar", "Chart", "Figures", "chart", "compare", "gantt", "rows", "waterfall", "waves_of", "waves_text"]

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
        return f"{self.label or self.trace.name}: {self.trace.ending}"


def _runs(traces: Sequence[Trace], labels: Sequence[str] | None, marks: Sequence[Sequence[Mark]] | None) -> list[_Run]:
    if not traces:
        raise ValueError("there is nothing to draw: pass at least one trace")
    for what, given in (("labels", labels), ("marks", marks)):
        if given is not None and len(given) != len(traces):
            raise ValueError(f"{what}={given!r}: give one entry for each of the {len(traces)} traces")
    return [_Run(trace, labels[i] if labels else None, marks[i] if marks else ()) for i, trace in enumerate(traces)]


# ---- painting

WAITED, CROSSED, DOTTED, STRIPED = "////", "xxxx", "....", "----"
THIN = 2.0  # points: a bar that would be narrower is drawn as a mark of this width


@dataclass
class _Block:
    """One run on the Axes: a row for its title, one for its waves, one for its marks, then its lanes."""

    run: _Run
    lanes: list[Lane]
    waves: list[tuple[int, float, float]]
    marks: list[Mark]
    top: float = 0.0
    bottom: float = 0.0
    waves_y: float = 0.0
    marks_y: float = 0.0


def _blocks(runs: list[_Run]) -> list[_Block]:
    """The runs laid out from y=0 downwards, a unit a lane."""
    blocks, y = [], 0.0
    for run in runs:
        marks = [*run.marks, *(("resumed", at) for at in resumed_at(run.trace))]
        block = _Block(run, lanes_of(rows(run.trace)), waves_of(run.trace), sorted(marks, key=lambda mark: mark[1]), y)
        y += 1.0
        block.waves_y, y = y, y + (0.8 if block.waves else 0.0)
        block.marks_y, y = y, y + (0.9 if marks else 0.0)
        for lane in block.lanes:
            lane.y, y = y + 0.5, y + 1.0
        block.bottom, y = y, y + 0.4
        blocks.append(block)
    return blocks


def _paint(runs: list[_Run], ax: Axes | None) -> Axes:
    if ax is not None:
        _draw(ax, _blocks(runs))
        return ax
    with own_style():
        blocks = _blocks(runs)
        ax = _figure(blocks)
        _draw(ax, blocks)
        return ax


def _figure(blocks: list[_Block]) -> Axes:
    """Axes in a figure of our own: as high as its lanes, with a margin as wide as their names."""
    lanes = [lane for block in blocks for lane in block.lanes]
    unit = 0.34 if len(lanes) <= 40 else min(0.26, 80 / len(lanes))
    left = (max((width(_title(lane), LARGEST) for lane in lanes), default=0) + 16) / 72
    bottom = 0.46 + 0.16 * len(fitting(_legend(blocks), (WIDTH - left - 0.2) * 72, LARGEST))
    return own_axes(blocks[-1].bottom * unit + bottom + 0.13, left, bottom=bottom)


def _title(lane: Lane) -> str:
    return short(lane.name) + (f" ×{lane.times}" if lane.times > 1 else "") if lane.name else ""


def _legend(blocks: list[_Block]) -> list[str]:
    """What the hatches mean, those that there are."""
    bars = [bar for block in blocks for lane in block.lanes for bar in lane.bars]
    found = {"hatched: waited at the barrier": any(bar.wait for bar in bars),
             "underlined: a model": any(bar.kind == "llm" for bar in bars),
             "crossed: failed": any(bar.error and bar.kind in RAN for bar in bars),
             "notched: tried again": any(bar.tries for bar in bars),
             "dotted: waits for an answer": any(bar.kind == "gate" for bar in bars),
             "striped: many items": any(bar.kind == "items" for bar in bars)}
    return ["seconds since the start", *(words for words, there in found.items() if there)]


def _draw(ax: Axes, blocks: list[_Block]) -> None:
    span = max(*(block.run.trace.seconds for block in blocks), 1e-6) * 1.02
    ax.set_xlim(0, span)
    ax.set_ylim(blocks[-1].bottom, 0)
    ax.set_facecolor(PAPER)
    pen = Pen(ax, span, ax.get_window_extent().height * 72 / ax.figure.dpi / blocks[-1].bottom)
    for block in blocks:
        _draw_block(pen, block)
    lanes = [lane for block in blocks for lane in block.lanes]
    titles = [_title(lane) if pen.size >= LEAST else "" for lane in lanes]
    ax.set_yticks([lane.y for lane in lanes], titles, fontproperties=font(pen.size), parse_math=False)
    ax.set_xlabel("\n".join(fitting(_legend(blocks), pen.room, LARGEST)), fontproperties=font(LARGEST))
    ax.tick_params(axis="x", labelsize=9)
    ax.tick_params(axis="y", length=0, pad=5)
    ax.grid(axis="x", color=RULE, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)


def _draw_block(pen: Pen, block: _Block) -> None:
    pen.box(0, pen.room / pen.scale, block.top, block.waves_y, PAPER, "none", 0.8)  # no grid behind the title
    title = cut(shown(block.run.title), pen.room - 6, pen.size, bold=True) if pen.size >= LEAST else ""
    pen.write(0, block.top + 0.5, title, bold=True)
    _draw_waves(pen, block)
    pen.rules = [at * pen.scale for _, at in block.marks]
    for lane in block.lanes:
        for bar in lane.bars:
            _draw_bar(pen, bar, lane.y)
        _label_lane(pen, lane)
    if not block.lanes:
        pen.write(0, block.bottom - 0.1, "nothing ran")
    taken: list[tuple[float, float]] = []
    for label, at in block.marks:
        _draw_rule(pen, at, block.marks_y + 0.2, block.bottom)
        pen.beside(at * pen.scale, at * pen.scale, taken, block.marks_y + 0.45,
                   [f"{shown(label)}: {at:.2f} s", f"{at:.2f} s"], colour=MARK, bold=True)


def _draw_waves(pen: Pen, block: _Block) -> None:
    """A band a wave, with its number where there is room, or with how many there are."""
    named = 0
    for number, (wave, start, end) in enumerate(block.waves):
        pen.box(start, end - start, block.waves_y, block.bottom, PAPER if number % 2 else BAND, RULE, 0.4)
        named += bool(pen.within(start, end, block.waves_y + 0.4, [f"wave {wave}", str(wave)]))
    if block.waves and not named:
        pen.write(0, block.waves_y + 0.4, f"{len(block.waves)} waves", shift=3, boxed=True)


def _draw_rule(pen: Pen, at: float, top: float, bottom: float) -> None:
    """The line of a mark, down through the lanes."""
    pen.ax.plot([at, at], [top, bottom], color=MARK, linewidth=1.8, linestyle=(0, (4, 2)), marker="v", markevery=[0],
                markersize=6, zorder=3.5)


def _draw_bar(pen: Pen, bar: Bar, y: float) -> None:
    """A bar as long as it took, its wait hatched behind it; what is too short to see gets a mark as well."""
    if bar.kind not in RAN:
        pen.ax.plot([bar.start], [y], marker="X", markersize=8, color=FAILED, markeredgecolor=INK, zorder=4)
        return
    half = 0.23 if bar.depth else 0.31  # what is inside a node is slimmer than the node
    fill, hatch = _look(bar)
    colour = FAILED if bar.error else INK
    pen.box(bar.start, bar.seconds, y - half, y + half, fill, colour, 3, hatch)
    if bar.wait > 0:
        pen.box(bar.end, bar.wait, y - half, y + half, PAPER, FAINT, 2.5, WAITED)
    if bar.kind == "llm":
        pen.ax.plot([bar.start, bar.end], [y + half - 0.05] * 2, color=INK, linewidth=2.4, solid_capstyle="butt",
                    zorder=3.1)
    if bar.tries:
        pen.ax.plot(bar.tries, [y + half] * len(bar.tries), color=INK, linestyle="none", marker="^", markersize=4,
                    zorder=3.2)
    if bar.seconds * pen.scale < THIN and bar.kind == "gate":
        pen.ax.plot([bar.start], [y], marker="D", markersize=6, color=fill, markeredgecolor=INK, zorder=4,
                    clip_on=False)
    elif bar.seconds * pen.scale < THIN:
        pen.ax.plot([bar.start] * 2, [y - half - 0.05, y + half + 0.05], color=colour, linewidth=THIN,
                    solid_capstyle="butt", zorder=4, clip_on=False)


def _look(bar: Bar) -> tuple[str, str | None]:
    """What a bar is filled with, and its hatch."""
    if bar.kind == "items":
        return (PAPER if bar.error else WORK), STRIPED
    if bar.error:
        return PAPER, CROSSED
    return {"llm": (MODEL, None), "gate": (KINDS["human"], DOTTED)}.get(bar.kind, (WORK, None))


def _reach(pen: Pen, bar: Bar) -> tuple[float, float]:
    """From where to where a bar and its wait reach, in points; at least as much as its mark."""
    left, least = bar.start * pen.scale, THIN / 2 if bar.kind in RAN and bar.kind != "gate" else 5.0
    return left - least, max(bar.over * pen.scale, left + least)


# ---- labels: inside a bar, beside it, or not at all; never over one another. The table has what there is no room for.


def _label_lane(pen: Pen, lane: Lane) -> None:
    taken = [_reach(pen, bar) for bar in lane.bars]  # what is not free, in points from the left edge
    repeated = len({bar.visit for bar in lane.bars}) > 1
    for bar in sorted(lane.bars, key=lambda bar: (bar.error is None, bar.wait == 0, bar.start)):
        left, right = _reach(pen, bar)
        waited = [f"waited {_seconds(bar.wait)}", *_times(bar.wait)] if bar.wait >= 0.0005 else []
        plain = not bar.error and bar.kind in ("node", "llm", "tool")
        apart = any(pen.fits(text, bar.wait * pen.scale) or pen.spot(left, right, taken, text, behind=False)
                    for text in waited)  # is there room for the wait outside the bar?
        ways = [*_ways(bar, repeated, waited[:1] if not apart else ()), *_ways(bar, repeated)]
        said = pen.within(bar.start, bar.end, lane.y, ways) if plain else ""
        if said:
            rest = [note for note in map(shown, bar.notes) if note not in said]
            if "waited" in said or pen.within(bar.end, bar.over, lane.y, waited, boxed=True):
                waited = []
            pen.beside(left, right, taken, lane.y, [_joined([*waited[:1], *rest]), *waited, *rest], behind=False)
        else:  # all in one place, wherever most of it can be said
            places = [(bar.start, bar.end), (bar.end, bar.over)]
            pen.beside(left, right, taken, lane.y, [*_ways(bar, repeated, waited[:1]), *waited[1:]], places)


def _ways(bar: Bar, repeated: bool, waited: Sequence[str] = ()) -> list[str]:
    """Shorter and shorter ways to say what there is to say of a bar."""
    reasons = list(dict.fromkeys(shortened(shown(bar.error or "-"), most) for most in (80, 50, 30, 18)))
    if bar.kind not in RAN:
        return [*(f"{bar.kind}: {reason}" for reason in reasons), bar.kind]
    if bar.kind == "items":
        signs = [f"✗ {bar.error}"] if bar.error else []
        return [_joined(parts) for parts in ([*bar.notes, *signs], [bar.notes[0], *signs], bar.notes[:1])]
    if bar.kind == "gate":
        asks = dict.fromkeys(f"? {shortened(shown(bar.notes[0]), most)}" for most in (90, 60, 40))
        return [*asks, "? waits for an answer", "? waits"]
    lasted, *briefer = _times(bar.seconds)
    named = f"item {bar.item}: " if bar.item else f"visit {bar.visit}: " if repeated else ""
    notes = [*map(shown, bar.notes)]
    failed = [[f"✗ failed: {reason}"] for reason in reasons] if bar.error else [[]]
    ways = [[named + lasted, *notes, *failed[0], *waited], [lasted, *notes, *failed[0], *waited],
            *([named + lasted, *why, *waited] for why in failed), [lasted, *failed[-1], *waited]]
    if bar.error:
        ways += [["✗ failed", *waited], ["✗ failed"]]
    else:
        ways += [[*waited]] if waited else [[text] for text in briefer]
    return list(dict.fromkeys(map(_joined, ways)))


def _joined(parts: Sequence[str]) -> str:
    return " · ".join(parts).replace(" · →", " →")


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:.3f} s" if seconds < 100 else f"{seconds:.0f} s"


def _times(seconds: float) -> list[str]:
    """A length of time, to the millisecond and then with fewer digits: ["1.885 s", "1.9 s"]."""
    brief = f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2f} s"
    return [_seconds(seconds), brief] if seconds >= 0.1 else [_seconds(seconds)]


# ---- the waterfall


def _paint_steps(steps: Sequence[tuple[str, float]]) -> Axes:
    """Bars from one total to another: what is taken away is hatched, what is given back is crossed."""
    with own_style():
        ax = own_axes(height=2.6, left=(max(width(name, 10) for name, _ in steps) + 16) / 72)
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
                    fontproperties=font(10, bold=True), bbox=slip)
            level = seconds if whole else level + seconds
            if row + 1 < len(steps):
                ax.plot([level, level], [row, row + 1], color=FAINT, linewidth=0.8, linestyle=":")
        ax.set_yticks(range(len(steps)), [name for name, _ in steps], fontproperties=font(10))
        ax.set_xlabel("seconds; hatched: gained, crossed: given back", fontproperties=font(9))
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        for label in ax.get_xticklabels():
            label.set_fontproperties(font(9))
        return ax


def _signed(seconds: float, whole: bool) -> str:
    return f"{seconds:.2f} s" if whole else f"{'-' if seconds < 0 else '+'} {abs(seconds):.2f} s"
