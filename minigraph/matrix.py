"""A matrix is a trace laid over the blackboard: a row a node, a column a key, a mark where the one wrote the other.

    trace = Trace()
    run_graph(graph, {"draft": "..."}, trace)
    matrix_chart(trace)             # in a notebook: who wrote what, and whose word stood at the end
    table(trace).writers["answer"]  # ['ada', 'bob']: who overwrote my answer?

`table` finds it out as plain data; `matrix` puts it on Axes, where tests can read it back; `matrix_chart` is for
showing and saving. A graph inside a node has a blackboard of its own, which is not in this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from .canvas import LARGEST, LEAST, WIDTH, Chart, Pen, cut, fitting, font, letters, own_axes, own_style, short, width
from .palette import BAND, FAILED, FAINT, INK, PAPER, RULE, WORK
from .trace import Trace, Visit
from .words import quoted, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

START = "START"  # the row of the keys that the run began with


@dataclass
class Cell:
    """One node's writes of one key."""

    node: str
    key: str
    visits: list[int] = field(default_factory=list)  # on which visits of the node; none for START
    again: bool = False  # did the node run more than once?

    @property
    def text(self) -> str:
        """ "w", or, of a node that ran more than once, its visits: "1-3 5"."""
        return " ".join(_ranges(self.visits)) if self.again else "w"


@dataclass
class Table:
    """Who wrote what: the rows, the columns, and a cell where a node wrote a key."""

    title: str
    rows: dict[str, str]  # START or node -> what else there is to say of it: "", "failed", "waits for an answer", ...
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)  # (node, key) -> its writes
    writers: dict[str, list[str]] = field(default_factory=dict)  # key -> the nodes that wrote it, write by write
    last: dict[str, str] = field(default_factory=dict)  # key -> whose value stood at the end: a node, or START
    clashes: dict[str, list[str]] = field(default_factory=dict)  # key -> the nodes that wrote it at once

    @property
    def keys(self) -> list[str]:
        """The keys, in the order in which they came to the blackboard."""
        return list(self.writers)

    def fate(self, cell: Cell) -> str:
        """What became of what was written: "last" it stood at the end; "overwritten"; "clash" two branches raced."""
        if cell.node in self.clashes.get(cell.key, ()):
            return "clash"
        return "last" if self.last.get(cell.key) == cell.node else "overwritten"

    def sign(self, key: str) -> str:
        """What stands beside the key's name: "✗" two live branches wrote it, "!" more than one node did, or ""."""
        return "✗" if key in self.clashes else "!" if len(set(self.writers[key])) > 1 else ""


def table(trace: Trace) -> Table:
    """Who wrote which key of the blackboard, in what order, as plain data. TypeError for what is no Trace."""
    if not isinstance(trace, Trace):
        raise TypeError(f"a matrix is drawn from a Trace, not from a {type(trace).__name__}: pass the one that "
                        "observed the run, as in run_graph(graph, state, trace)")
    visits = [visit for visit in trace.visits() if visit.within is None]
    started = next((event for event in trace.of("graph_start") if "node" not in event), {})
    found = Table(f"{trace.name}: {trace.ending}", {START: ""})
    found.rows.update((node, _said(mine)) for node in trace.nodes if (mine := [v for v in visits if v.node == node]))
    for key in started.get("state") or ():
        if key != "errors":  # that one is the engine's
            found.writers[key], found.last[key], found.cells[START, key] = [], START, Cell(START, key)
    often = {visit.node for visit in visits if visit.visit > 1}
    for event in trace.of("node_end"):
        node = event["node"]
        for key in event["keys"] if node in found.rows else ():
            found.cells.setdefault((node, key), Cell(node, key, [], node in often)).visits.append(event["visit"])
            found.writers.setdefault(key, []).append(node)
            found.last[key] = node
    _find_clashes(found, trace)
    if not any(node == START for node, _ in found.cells):
        found.rows[START] = "with nothing"
    return found


def _said(visits: list[Visit]) -> str:
    """What there is to say of a node beside what it wrote."""
    if visits[-1].question is not None:
        return "waits for an answer"
    if any(visit.error for visit in visits):
        return "failed"
    return "" if any(visit.keys for visit in visits) else "wrote nothing"


def _find_clashes(found: Table, trace: Trace) -> None:
    """Notes what a StateCollision tells of: it names the key and its writers, as Python quotes them."""
    errors = [str(event["error"]) for event in trace.of("graph_end") if "node" not in event]
    error = next((error for error in errors if error.startswith("StateCollision: ")), "")
    for key, writers in found.writers.items():
        nodes = [node for node in dict.fromkeys(writers) if repr(node) in error]
        if f"wrote {key!r}" in error and nodes:
            found.clashes[key] = nodes
            del found.last[key]


def _ranges(numbers: Iterable[int]) -> list[str]:
    """Numbers in order, those in a row together: ["1-3", "5"]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]


# ---- in words


def table_text(found: Table) -> str:
    """The text twin: nodes by keys; `w` wrote it, a number on which visit, `*` wrote last; then who wrote in turn."""
    marks = {"last": "*", "overwritten": "", "clash": "✗"}
    lines = [["", *(f"{quoted(key)} {found.sign(key)}".rstrip() for key in found.keys), ""]]
    for node, said in found.rows.items():
        cells = [found.cells.get((node, key)) for key in found.keys]
        lines.append([quoted(node), *(cell.text + marks[found.fate(cell)] if cell else "" for cell in cells), said])
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(cell.ljust(size) for cell, size in zip(line, wide, strict=True)).rstrip() for line in lines]
    told = [_in_turn(found, key) for key in found.keys if found.sign(key)]
    legend = f"({'; '.join(_legend(found, '*'))})"
    return "\n".join([*([*text, legend] if found.keys else ["nothing was written"]), *told, shown(found.title)])


def _in_turn(found: Table, key: str) -> str:
    """Who wrote a key that more than one node wrote, in a sentence."""
    if key in found.clashes:
        nodes = found.clashes[key]
        who = f"{' and '.join(map(quoted, nodes))} both wrote it" if len(nodes) > 1 else (
            f"{quoted(nodes[0])} wrote it on two laps")
        return f"{quoted(key)}: {who}, and neither comes after the other"
    turns = [quoted(node) for node, _ in groupby(found.writers[key])]
    if len(turns) > 6:
        turns[3:-2] = [f"{len(turns) - 5} more"]
    return f"{quoted(key)}: written by {', then '.join(turns)}, which wrote last"


def _legend(found: Table, last: str) -> list[str]:
    """What the marks mean, those that there are; `last` is the mark of whoever wrote last."""
    cells, signs = found.cells.values(), {found.sign(key) for key in found.keys}
    fates = {found.fate(cell) for cell in cells}
    words = {"w: wrote it": any(not cell.again for cell in cells),
             "a number: on which visit": any(cell.again for cell in cells),
             f"{last}: wrote last": "last" in fates,
             "hatched: overwritten": "overwritten" in fates and last != "*",
             "!: more than one node wrote it": "!" in signs,
             "✗: two wrote it, and neither comes after the other": "clash" in fates}
    return [word for word, there in words.items() if there] or ["nothing was written"]


# ---- on Axes

ROW, COLUMN, NARROW = 0.3, 0.6, 0.2  # inches: a row; a column, at least; a column of many


def matrix(trace: Trace, ax: Axes | None = None) -> Axes:
    """The Axes with nodes by keys, who wrote what; a figure of its own, fitting, where `ax` is None."""
    return _paint(table(trace), ax)


def matrix_chart(trace: Trace) -> Chart:
    """The matrix of a run as an object that shows itself in a notebook, with its text twin beside it."""
    found = table(trace)
    return Chart(lambda: _paint(found, None), table_text(found), f"who wrote what in {found.title}")


def _paint(found: Table, ax: Axes | None) -> Axes:
    if ax is not None:
        return _draw(ax, found)
    with own_style():
        return _draw(_figure(found), found)


def _figure(found: Table) -> Axes:
    """Axes in a figure of our own: its rows, its columns, and as much around them as their names need."""
    left = (max(width(_row(found, node), LARGEST) for node in found.rows) + 16) / 72
    names = [width(_column(found, key), LARGEST, bold=True) / 72 for key in found.keys] or [0.0]
    room, flat = WIDTH - left - 0.2, max(*names, COLUMN - 0.2) + 0.2
    upright = flat * len(names) > room
    column = min(COLUMN, max(room / len(names), NARROW)) if upright else flat
    across = max(WIDTH, min(left + column * len(names) + 0.2, 300))
    above = 0.45 + (max(names) if upright else 0.15)
    below = 0.15 + 0.16 * len(fitting(_legend(found, "filled"), (across - left - 0.2) * 72, LARGEST))
    ax = own_axes(min(ROW * len(found.rows), 300) + above + below, left, bottom=below, top=above, width=across)
    box = ax.get_position()
    ax.set_position((box.x0, box.y0, min(box.width, column * len(names) / across), box.height))
    return ax


def _row(found: Table, node: str) -> str:
    signs = {"failed": "✗ failed", "waits for an answer": "? waits for an answer"}
    said = found.rows[node]
    return short(node) + (f" ({signs.get(said, said)})" if said else "")


def _column(found: Table, key: str) -> str:
    return f"{found.sign(key)} {short(key)}".lstrip()


def _draw(ax: Axes, found: Table) -> Axes:
    rows, keys = list(found.rows), found.keys
    ax.set_xlim(0, max(len(keys), 1))
    ax.set_ylim(len(rows), 0)
    ax.set_facecolor(PAPER)
    box, points = ax.get_window_extent(), 72 / ax.figure.dpi
    pen = Pen(ax, max(len(keys), 1), box.height * points / len(rows))
    for y, node in enumerate(rows):
        pen.box(0, max(len(keys), 1), y, y + 1, BAND if y % 2 else PAPER, RULE, 0.4, line=0.4)
        for x, key in enumerate(keys):
            if (node, key) in found.cells:
                _draw_cell(pen, found, found.cells[node, key], x, y)
    names = [_row(found, node) if pen.size >= LEAST else "" for node in rows]
    ax.set_yticks([y + 0.5 for y in range(len(rows))], names, fontproperties=font(pen.size), parse_math=False)
    high = _head(pen, found)
    _above_and_below(pen, found, high)
    ax.tick_params(axis="both", length=0, pad=5)
    ax.spines[:].set_visible(False)
    return ax


def _draw_cell(pen: Pen, found: Table, cell: Cell, x: int, y: int) -> None:
    """Filled: its value stood at the end. Hatched: somebody overwrote it. Crossed: two branches raced."""
    fate = found.fate(cell)
    looks = {"last": (WORK, INK, 3, None), "overwritten": (PAPER, FAINT, 3, "////"),
             "clash": (PAPER, FAILED, 3, "xxxx")}
    pen.box(x + 0.06, 0.88, y + 0.1, y + 0.9, *looks[fate])
    times = len(cell.visits)
    ways = [cell.text, f"{times} visits", f"×{times}"] if cell.again else ["w"]
    pen.within(x, x + 1, y + 0.5, [f"✗ {way}" for way in ways] + ways if fate == "clash" else ways,
               boxed=fate != "last")


def _head(pen: Pen, found: Table) -> float:
    """Writes the keys above their columns, upright where they are wider than those; returns how high that is."""
    names = [_column(found, key) for key in found.keys]
    upright = any(width(name, pen.size, bold=True) + 8 > pen.scale for name in names)
    size = min(pen.size, pen.scale * 0.7) if upright else pen.size
    pen.ax.xaxis.tick_top()
    pen.ax.set_xticks([x + 0.5 for x in range(len(names))], names if size >= LEAST else [""] * len(names),
                      rotation=90 if upright else 0, parse_math=False)
    for label, key in zip(pen.ax.get_xticklabels(), found.keys, strict=True):
        label.set_fontproperties(font(size, bold=bool(found.sign(key))))
    return max((width(name, size, bold=True) for name in names), default=0.0) if upright else size


def _above_and_below(pen: Pen, found: Table, high: float) -> None:
    """The title above the names of the keys, and below it all what the marks mean."""
    right = (pen.ax.figure.bbox.x1 - pen.ax.get_window_extent().x0) * 72 / pen.ax.figure.dpi - 10
    title = cut(shown(found.title), right, LARGEST, bold=True)
    legend = "\n".join(fitting(_legend(found, "filled"), right, LARGEST))
    for text, at, shift, side in ((title, (0, 1), high + 13, "bottom"), (legend, (0, 0), -7, "top")):
        pen.ax.annotate(letters(text), at, (0, shift), xycoords="axes fraction", textcoords="offset points", va=side,
                        color=INK, fontproperties=font(LARGEST, bold=text is title), parse_math=False,
                        annotation_clip=False)
