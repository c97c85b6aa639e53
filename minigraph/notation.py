"""One sheet of marks, written down three ways: as text to be read aloud, as DOT for Graphviz, as Mermaid for web pages.

    print(text(sheet(graph)))            # START -> draft, aggregate --fix--> revise (back)
    dot(sheet(graph, trace))             # digraph G { ... n1 -> n2 [style="dashed", ...]; ... }
    mermaid(sheet(graph))                # flowchart TD ... n1 -.->|"fix"| n2

What they say in colour they also say in shape, line or words.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from .engine import END, START
from .palette import ABSENT, FAILED, FAINT, INK, INSIDE, KINDS, PAPER, RUNNING, WAITING
from .sheet import EdgeMark, NodeMark, Sheet
from .words import duration, quoted, shown, wrapped

LEAST_SHOWN = 0.0005  # seconds: what took no time, as nodes that only compute do in virtual time, is not labelled 0 ms

# ---- as text


def text(drawn: Sheet) -> str:
    """The edges as indented lines that can be read aloud, a source at a time."""
    return "\n".join([_headline(drawn), *_lines(drawn, "  ")])


def _headline(drawn: Sheet) -> str:
    run = "" if drawn.caption is None else f"; the run: {drawn.caption}"
    return f"{quoted(drawn.name)}, a graph of {_plural(drawn.size, 'node')}{run}"


def _lines(drawn: Sheet, tab: str) -> Iterator[str]:
    leaving: dict[str, list[EdgeMark]] = {mark.name: [] for mark in drawn.nodes}
    for edge in drawn.edges:
        leaving[edge.src].append(edge)
    for mark in drawn.nodes:
        name, words = quoted(mark.name), _spoken(mark)
        head = f"{tab}{name} ({', '.join(words)})" if words else f"{tab}{name}"
        static = ", ".join(quoted(edge.dst) for edge in leaving[mark.name] if edge.kind == "static")
        ways = [f"-> {static}"] if static else []
        ways += _spoken_ways([edge for edge in leaving[mark.name] if edge.kind != "static"])
        if mark.kind != END:
            yield f"{head} {ways[0] if ways else '-> nothing'}"
            yield from (f"{tab}  {name} {way}" for way in ways[1:])
        elif words:
            yield head
    for mark in drawn.nodes:
        if mark.inner and mark.open:
            yield f"{tab}inside {quoted(mark.name)}: {_headline(mark.inner)}"
            yield from _lines(mark.inner, tab + "  ")


def _spoken(mark: NodeMark) -> list[str]:
    """What is said of a node in brackets: ["llm", "ran 2 times", "2.400 s in all"]."""
    if mark.kind in (START, END):
        return [] if mark.kind == START or mark.state is None else ["reached" if mark.state == "ran" else "not reached"]
    words = [] if mark.kind == "fn" else [mark.kind]
    if mark.inner and not mark.open:
        words.append(f"{_plural(mark.inner.size, 'node')} inside")
    if mark.cap is not None:
        words.append(f"at most {_plural(mark.cap, 'visit')}")
    if mark.visits and not mark.unfinished:
        words.append("ran" if mark.visits == 1 else f"ran {mark.visits} times")
    if mark.items:
        words.append(_plural(mark.items, "item"))
    if mark.seconds is not None and mark.seconds >= LEAST_SHOWN:
        words.append(duration(mark.seconds) + (" in all" if mark.visits > 1 else ""))
    if mark.alarm or mark.absent or mark.unfinished:
        words.append(mark.alarm or str(mark.state))
    return words


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _spoken_ways(edges: list[EdgeMark]) -> list[str]:
    """The conditional ways out of a node, one for each label: ["--fix--> revise (back, taken 2 times)"]."""
    targets: dict[tuple[str, str], list[str]] = {}  # (label, what is said of it) -> where it leads
    for edge in edges:
        words = ["back"] if edge.backwards else []
        if edge.taken is not None:
            often = f" {edge.times} times" if (edge.times or 0) > 1 else ""
            words.append(f"taken{often}" if edge.taken else "not taken")
        label = " / ".join(map(quoted, edge.labels))
        targets.setdefault((label, f" ({', '.join(words)})" if words else ""), []).append(quoted(edge.dst))
    return [f"--{label}--> {', '.join(names)}{words}" for (label, words), names in targets.items()]


# ---- how marks look, in DOT and in Mermaid


@dataclass(frozen=True)
class _Shape:
    dot: str
    brackets: tuple[str, str]  # in Mermaid
    style: str = "filled"
    lines: int = 1  # around it


_SHAPES = {  # kind -> its shape: shapes alone tell kinds apart
    "fn": _Shape("box", ("[", "]")),
    "tool": _Shape("component", ("[/", "/]")),
    "llm": _Shape("box", ("(", ")"), "filled,rounded"),
    "agent": _Shape("hexagon", ("{{", "}}")),
    "human": _Shape("octagon", ("[/", "\\]")),
    "graph": _Shape("box", ("[[", "]]"), lines=2),
    "map": _Shape("box3d", ("[(", ")]")),
    START: _Shape("oval", ("([", "])")),
    END: _Shape("oval", ("(((", ")))"), lines=2),
}
_LINES = {"failed": FAILED, "waiting": WAITING, "running": RUNNING}  # state -> the line around it


@dataclass(frozen=True)
class _Look:
    """How a node looks: what it is filled with, its line and how wide that is, its letters."""

    fill: str
    line: str
    width: float
    letters: str


def _shape(mark: NodeMark) -> _Shape:
    return _SHAPES.get(mark.kind, _SHAPES["fn"])


def _look(mark: NodeMark) -> _Look:
    width = 3.0 if mark.alarm or mark.unfinished else 2.2 if mark.state == "ran" else 1.2
    if mark.absent:
        return _Look(PAPER, ABSENT, width, FAINT)
    fill = INK if mark.kind == START else (INSIDE if mark.open else KINDS).get(mark.kind, PAPER)
    return _Look(fill, _LINES.get(mark.state or "", INK), width, PAPER if mark.kind == START else INK)


def _facts_line(mark: NodeMark) -> str:
    """The small line under a name: "llm · ×2 · 2.400 s"."""
    facts = [] if mark.kind in ("fn", START, END) else [mark.kind]
    if mark.inner and not mark.open:
        facts.append(f"{_plural(mark.inner.size, 'node')} inside")
    if mark.state is None and mark.cap is not None:
        facts.append(f"at most {_plural(mark.cap, 'visit')}")
    if mark.visits > 1:
        facts.append(f"×{mark.visits}")
    if mark.items:
        facts.append(f"×{_plural(mark.items, 'item')}")
    if mark.seconds is not None and mark.seconds >= LEAST_SHOWN:
        facts.append(duration(mark.seconds))
    if (mark.absent and mark.kind not in (START, END)) or mark.unfinished:
        facts.append(str(mark.state))
    return " · ".join(facts)


def _alarm_line(mark: NodeMark) -> str:
    """What went wrong, or what is asked, cut short: the whole of it is in the text."""
    sign = "?" if mark.state == "waiting" else "!"
    return "" if mark.alarm is None else f"{sign} {textwrap.shorten(mark.alarm, 72, placeholder=' …')}"


def _arrows(edges: list[EdgeMark]) -> list[EdgeMark]:
    """The edges as they are drawn: an on_error that leads where a static edge leads anyway shares its arrow."""
    static = {(edge.src, edge.dst) for edge in edges if edge.kind == "static"}
    handlers = {(edge.src, edge.dst): edge for edge in edges if edge.kind == "on_error"}
    arrows = []
    for edge in edges:
        handler = handlers.get((edge.src, edge.dst))
        if handler is None or (edge.src, edge.dst) not in static:
            arrows.append(edge)
        elif edge.kind == "static":
            taken = True if handler.taken else edge.taken
            arrows.append(EdgeMark(edge.src, edge.dst, "either", handler.labels, taken=taken))
    return arrows


def _arrow_words(edge: EdgeMark) -> str:
    times = f"×{edge.times}" if (edge.times or 0) > 1 else ""
    label = {"static": "", "either": "! also on_error", "on_error": f"! {edge.label}"}.get(edge.kind, edge.label)
    return f"{label} {times}".strip()


def _arrow_line(edge: EdgeMark) -> str:
    return ABSENT if edge.taken is False else FAILED if edge.kind == "on_error" else INK


# ---- as DOT


def dot(drawn: Sheet, upright: bool = False, slips: bool = False) -> str:
    """The sheet as DOT. Upright, backward edges are turned round and get their arrow at the tail: Graphviz then keeps
    its ranks and leads them back beside the way down, where they would wind through it otherwise. slips: where many
    lines cross, labels stand on slips of paper, which hide what passes under them."""
    marks = list(drawn.all_nodes())
    below = "" if drawn.caption is None else f", label=<{_html(f'{shown(drawn.name)}: {drawn.caption}', FAINT, 60)}>"
    boxes = ', compound="true"' if any(mark.open for mark in marks) else ""
    direction, ranks = _layout(drawn)
    beside, between = 0.2 if drawn.total > CROWDED else 0.3, 0.25 if ranks > DEEP else 0.45
    return "\n".join([
        "digraph G {",
        f'  graph [bgcolor="{PAPER}", fontname="Helvetica", fontsize="10.5", labelloc="b"{below}{boxes}];',
        f'  graph [nodesep="{beside}", pad="0.15", rankdir="{direction}", ranksep="{between}"];',
        '  node [fontname="Helvetica", fontsize="13", height="0.42", margin="0.16,0.08"];',
        '  edge [arrowsize="0.8", fontname="Helvetica", fontsize="10.5"];',
        *_dot_lines(drawn, upright, "  ", PAPER if slips and drawn.total > CROWDED else ""), "}", ""])


def _dot_lines(drawn: Sheet, upright: bool, tab: str, slip: str) -> Iterator[str]:
    """The nodes and the edges of one graph; a node that is open is a box with those of the graph inside it.

    slip: the colour of the slips of paper that labels of edges stand on, over lines that pass there; "" for none.
    """
    for mark in drawn.nodes:
        if mark.inner and mark.open:
            yield f"{tab}subgraph cluster_{mark.id} {{"
            yield f"{tab}  graph [{', '.join(_dot_box(mark))}];"
            yield from _dot_lines(mark.inner, upright, tab + "  ", slip and _look(mark).fill)
            yield f"{tab}}}"
        else:
            yield f"{tab}{mark.id} [{', '.join(_dot_node(mark))}];"
    for edge in _arrows(drawn.edges):
        turned = edge.backwards and upright
        back = [] if not edge.backwards else ['dir="back"'] if turned else ['constraint="false"']
        (src, out), (dst, into) = _ends(drawn.mark[edge.src], drawn.mark[edge.dst])
        if turned:
            (src, out), (dst, into) = (dst, into), (src, out)
        borders = [f'{side}="cluster_{box}"' for side, box in (("ltail", out), ("lhead", into)) if box]
        yield f"{tab}{src} -> {dst} [{', '.join(_dot_edge(edge, turned, slip) + back + borders)}];"


def _ends(src: NodeMark, dst: NodeMark) -> tuple[tuple[str, str], tuple[str, str]]:
    """Where an edge begins and ends, each a node's id and the id of the box at whose border it stops, or ""."""
    borders = ("", "") if src is dst else (src.id if src.open else "", dst.id if dst.open else "")
    entry = dst
    while entry.inner and entry.open:
        entry = entry.inner.nodes[0]
    return (_exit(src).id, borders[0]), (entry.id, borders[1])


def _exit(mark: NodeMark) -> NodeMark:
    """The node that edges out of a mark leave from: its own, or the last one in its box."""
    while mark.inner and mark.open:
        leading = {edge.src for edge in mark.inner.edges if not edge.backwards}
        mark = next((last for last in reversed(mark.inner.nodes) if last.name not in leading), mark.inner.nodes[-1])
    return mark


def _dot_label(mark: NodeMark, width: int = 30) -> str:
    letters = _look(mark).letters
    label = f"<B>{_html(mark.name, letters)}</B>"
    for words in (_facts_line(mark), _alarm_line(mark)):
        if words:
            label += f'<BR/><FONT POINT-SIZE="10.5">{_html(words, letters, width)}</FONT>'
    return label


def _dot_node(mark: NodeMark) -> list[str]:
    look, shape, room = _look(mark), _shape(mark), _room(mark.name, 13)
    lines = shape.lines + (mark.state == "waiting")
    return [f"label=<{_dot_label(mark)}>", *([f'width="{room / 72 + 0.32:.2f}"'] if room else []),
            f'shape="{shape.dot}"', f'style="{shape.style}{",dashed" if mark.absent else ""}"',
            f'fillcolor="{look.fill}"', f'color="{look.line}"', f'penwidth="{look.width:g}"',
            *(['height="0.3"', 'margin="0.05,0.01"'] if mark.kind in (START, END, "agent", "human") else []),
            *([f'peripheries="{lines}"'] if lines > 1 else [])]


def _dot_box(mark: NodeMark) -> list[str]:
    look, label, room = _look(mark), _dot_label(mark, 60), _room(mark.name, 13)
    if room:
        label = _cell(label, 0, f' WIDTH="{room:.0f}"')
    return [f"label=<{label}>", f'style="filled,rounded{",dashed" if mark.absent else ""}"',
            f'fillcolor="{look.fill}"', f'color="{look.line}"', f'penwidth="{look.width:g}"', 'labelloc="t"',
            'labeljust="l"', 'fontsize="13"', 'margin="12"']


def _dot_edge(edge: EdgeMark, turned: bool, slip: str) -> list[str]:
    faint, words = edge.taken is False, _arrow_words(edge)
    label = f"<B>{_html(words, INK)}</B>" if edge.taken else _html(words, FAINT if faint else INK)
    if slip:
        label = _cell(label, 1, f' BGCOLOR="{slip}"')
    # The cell's padding keeps the letters clear of the line beside them.
    room = _room(words, 10.5)
    cell = _cell(label, 3 if slip else 4, f' WIDTH="{room + 8:.0f}"' if room else "")
    return [*([f"label=<{cell}>"] if words else []),
            f'color="{_arrow_line(edge)}"', f'penwidth="{2.6 if edge.taken else 1.1:g}"',
            f'style="{"solid" if edge.kind in ("static", "either") else "dashed"}"',
            *([f'arrow{"tail" if turned else "head"}="onormal"', 'arrowsize="1.1"'] if edge.kind == "on_error" else [])]


def _cell(content: str, padding: int, more: str) -> str:
    """A table of one cell, for an HTML-like label of Graphviz."""
    return ('<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" '
            f'CELLPADDING="{padding}"><TR><TD{more}>{content}</TD></TR></TABLE>')


def _room(words: str, size: float) -> float:
    """How many points a text with wide letters needs, which graphviz-pure takes to be narrower; 0 without any."""
    lines = [[unicodedata.east_asian_width(char) in "WF" for char in line] for line in wrapped(words, 26)]
    return max(sum(1.1 if wide else 0.6 for wide in line) * size for line in lines) if any(map(any, lines)) else 0.0


def _html(words: str, colour: str, width: int = 26) -> str:
    """Text for an HTML-like label of Graphviz: wrapped, escaped, coloured."""
    body = "<BR/>".join(escape(line) for line in wrapped(words, width))
    body = body.replace("\\", "\\\\")  # Graphviz takes \N for the node's identifier here, too
    return f'<FONT COLOR="{colour}">{body}</FONT>'


# ---- which way the picture runs: down, or to the right where it would be too wide

PAGE = 1000  # points: a picture that would be wider runs to the right, if that makes it narrower
DEEP = 12  # ranks: in a picture of more, they stand closer
CROWDED = 60  # nodes and edges: in a picture of more, lines stand closer, and pass under the labels of others


def _layout(drawn: Sheet) -> tuple[str, int]:
    """TB or LR, and how many ranks there are."""
    across, along, ranks = _spread(drawn)
    return "LR" if across > PAGE and along < across else "TB", ranks


def _spread(drawn: Sheet) -> tuple[float, float, int]:
    """About how many points wide a picture is that runs down, and one that runs to the right; and its ranks."""
    across = along = ranks = 0.0
    for rank in _ranks(drawn):
        sizes = [_spread(mark.inner) if mark.inner and mark.open else (*[_width(mark)] * 2, 1) for mark in rank]
        across = max(across, sum(size[0] + 22 for size in sizes))
        along += max(size[1] for size in sizes) + 40
        ranks += max(size[2] for size in sizes)
    return across, along, int(ranks)


def _width(mark: NodeMark) -> float:
    return 24 + 7.5 * max(map(len, wrapped(mark.name, 26)))


def _ranks(drawn: Sheet) -> list[list[NodeMark]]:
    """The nodes by the longest way that leads to them, backward edges left out."""
    forward = {(edge.src, edge.dst) for edge in drawn.edges if not edge.backwards}
    after: dict[str, list[str]] = {mark.name: [] for mark in drawn.nodes}
    missing = dict.fromkeys(after, 0)
    for src, dst in sorted(forward):
        after[src].append(dst)
        missing[dst] += 1
    rank = [mark.name for mark in drawn.nodes if not missing[mark.name]]
    ranks = []
    while rank:
        ranks.append([drawn.mark[name] for name in rank])
        rank, before = [], rank
        for dst in (dst for name in before for dst in after[name]):
            missing[dst] -= 1
            if not missing[dst]:
                rank.append(dst)
    return ranks


# ---- as Mermaid


def mermaid(drawn: Sheet) -> str:
    """The sheet as a Mermaid flowchart, for pages that draw one."""
    edges: list[EdgeMark] = []  # in the order of their lines: Mermaid gives them numbers
    direction = _layout(drawn)[0].replace("TB", "TD")
    lines = [f"flowchart {direction}", *_mermaid_lines(drawn, "  ", direction, edges)]
    for mark in drawn.all_nodes():
        look = _look(mark)
        lines.append(f"  style {mark.id} fill:{look.fill},stroke:{look.line},color:{look.letters},"
                     f"stroke-width:{look.width:g}px" + (",stroke-dasharray:5 4" if mark.absent else ""))
    for number, edge in enumerate(edges):
        if edge.taken is not None or edge.kind == "on_error":
            lines.append(f"  linkStyle {number} stroke:{_arrow_line(edge)},stroke-width:{4 if edge.taken else 1}px")
    return "\n".join([*lines, ""])


def _mermaid_lines(drawn: Sheet, tab: str, direction: str, edges: list[EdgeMark]) -> Iterator[str]:
    for mark in drawn.nodes:
        said = [mark.name, _facts_line(mark), _alarm_line(mark)]
        label = _entities(*said)
        if mark.inner and mark.open:  # Mermaid leaves room for a title of one line
            title = shown(" · ".join(filter(None, said)))
            yield f'{tab}subgraph {mark.id} ["{_entities(title if len(title) <= 60 else title[:59] + "…", width=60)}"]'
            yield f"{tab}  direction {direction}"
            yield from _mermaid_lines(mark.inner, tab + "  ", direction, edges)
            yield f"{tab}end"
        else:
            opening, closing = _shape(mark).brackets
            yield f'{tab}{mark.id}{opening}"{label}"{closing}'
    for edge in _arrows(drawn.edges):
        edges.append(edge)
        arrow, words = "-->" if edge.kind in ("static", "either") else "-.->", _arrow_words(edge)
        label = f'|"{_entities(words)}"|' if words else ""
        src, dst = drawn.mark[edge.src], drawn.mark[edge.dst]
        inward = src is dst and src.open  # Mermaid cannot lead an edge from a box to itself
        ends = (_ends(src, dst)[0][0], _ends(src, dst)[1][0]) if inward else (src.id, dst.id)
        yield f"{tab}{ends[0]} {arrow}{label} {ends[1]}"


def _entities(*parts: str, width: int = 30) -> str:
    """Text for a quoted label of Mermaid: all that could end the label, or be taken for markup, as an entity."""
    lines = [line for part in parts if part for line in wrapped(part, width)]
    plain = re.compile(r"[^0-9A-Za-z ,()/!?'=\u00a0-\U0010ffff_.-]"      # quotes, brackets, #, &, ;, :, backticks
                       r"|(?<![0-9A-Za-z])[_.-]|[_.-](?![0-9A-Za-z])"      # emphasis and lists begin or end with these
                       r"|(?<=^\d)[.)]|(?<=^\d\d)[.)]")                    # as a numbered list does
    return "<br/>".join(plain.sub(lambda found: f"#{ord(found[0])};", line) for line in lines)
