"""A picture is drawn from what `graph.describe()` says and from nothing else, so it cannot drift from what runs.

    print(to_text(graph))                # the edges as words: START -> draft, aggregate --fix--> revise (back)
    draw(graph)                          # in a notebook: the picture, with those words beside it
    draw(graph, run).save("run.svg")     # what ran, how often, what was skipped, what failed

One sheet of marks is computed first (`sheet`); text, DOT and Mermaid are three ways to write that sheet down, and
Graphviz makes the picture from the DOT. What a picture says in colour it also says in shape, line or words.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sysconfig
import textwrap
import threading
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from .engine import END, START

# ---- what is drawn


@dataclass
class NodeMark:
    """One node on the sheet: what it is, and, given a run, what became of it."""

    name: str
    kind: str  # START, END, or a node's kind
    cap: int | None = None  # its max_visits
    state: str | None = None  # ran, failed, waiting; running, interrupted; blocked, skipped, not run; None: unknown
    visits: int = 0
    seconds: float | None = None  # of its calls, all visits together; None: not recorded
    alarm: str | None = None  # "failed: TimeoutError: no answer"

    @property
    def absent(self) -> bool:
        return self.state in ("blocked", "skipped", "not run")

    @property
    def unfinished(self) -> bool:
        return self.state in ("running", "interrupted")


@dataclass
class EdgeMark:
    """One edge on the sheet; the labels of one router that name one target share it."""

    src: str
    dst: str
    kind: str  # static, router, on_error; of an arrow also either, a static edge and an on_error in one
    labels: list[str] = field(default_factory=list)
    backwards: bool = False
    taken: bool | None = None  # None without a run, or unknown
    times: int | None = None  # how often, where that is known

    @property
    def label(self) -> str:
        return " / ".join(shown(label) for label in self.labels)


@dataclass
class Sheet:
    """All the marks of one picture, in the order of the graph."""

    name: str
    nodes: list[NodeMark]
    edges: list[EdgeMark]
    caption: str | None = None  # "done, 13.170 s"; None without a run


def sheet(graph: Any, run: Any = None) -> Sheet:
    """The marks of a picture, computed before anything is drawn.

    `graph` is a Graph or what its `describe()` returned; `run` a GraphState (what ran, how often, what failed) or a
    Trace (also how long it took, and which ways were taken). Anything else is a TypeError.
    """
    described = graph if isinstance(graph, Mapping) else graph.describe() if hasattr(graph, "describe") else None
    if not isinstance(described, Mapping):
        raise TypeError(f"cannot draw {graph!r}: pass a Graph, or what graph.describe() returned")
    edges = _edge_marks(described)
    nodes = [NodeMark(START, START)]
    nodes += [NodeMark(node["name"], node["kind"], node["max_visits"]) for node in described["nodes"]]
    if any(edge.dst == END for edge in edges):
        nodes.append(NodeMark(END, END))
    drawn = Sheet(described["name"], nodes, edges)
    if run is not None:
        _mark_run(drawn, _facts(run))
    return drawn


def _edge_marks(described: Mapping[str, Any]) -> list[EdgeMark]:
    handlers = {(node["name"], node["on_error"]) for node in described["nodes"]}
    marks: dict[tuple[str, str, str], EdgeMark] = {}  # (src, dst, kind) -> its mark
    for edge in described["edges"]:
        src, dst, label = edge["src"], edge["dst"], edge["label"]
        handles = edge["conditional"] and label == "on_error" and (src, dst) in handlers
        kind = "on_error" if handles else "router" if edge["conditional"] else "static"
        mark = marks.setdefault((src, dst, kind), EdgeMark(src, dst, kind, backwards=bool(edge["backwards"])))
        if edge["conditional"] and label not in mark.labels:
            mark.labels.append(label)
    return list(marks.values())


# ---- what a run adds


@dataclass
class _Facts:
    """What a run tells about itself, be it a GraphState or a Trace."""

    status: str | None
    visits: dict[str, int]
    errors: dict[str, str]
    waiting: dict[str, Any]
    traced: bool = False  # only a Trace tells what follows
    seconds: float | None = None  # of the whole run
    running: set[str] = field(default_factory=set)
    blocked: set[str] = field(default_factory=set)
    spent: dict[str, float] = field(default_factory=dict)  # node -> seconds of its calls
    handled: dict[str, int] = field(default_factory=dict)  # node -> how many failures its on_error was handed
    failed: dict[str, int] = field(default_factory=dict)  # node -> how many of its calls failed
    routes: dict[tuple[str, str], int] = field(default_factory=dict)  # (router, label) -> how often


def _facts(run: Any) -> _Facts:
    if isinstance(getattr(run, "events", None), list):
        return _facts_of_events(run.events)
    if isinstance(getattr(run, "visits", None), Mapping):
        return _Facts(run.status, dict(run.visits), dict(run.errors), dict(run.waiting))
    raise TypeError(f"cannot draw a run from {run!r}: pass the GraphState that run_graph returned, or a Trace")


def _facts_of_events(events: list[dict[str, Any]]) -> _Facts:
    facts = _Facts(None, {}, {}, {}, traced=True)
    refused = set()
    for event in events:
        kind: str = event["kind"]
        node: Any = event.get("node")
        if kind == "graph_end" and node is None:  # with a node it is the end of a nested graph
            facts.status, facts.seconds = event["status"], event["ms"] / 1000
        elif kind == "route" and node is None:
            named = event["label"]
            for label in named if isinstance(named, (list, tuple)) else [] if named is None else [named]:
                _count(facts.routes, (event["router"], label))
            if event.get("error"):
                facts.errors[event["router"]] = event["error"]
                _count(facts.handled, event["router"])
        elif kind == "node_start":
            _count(facts.visits, node)
            facts.running.add(node)
        elif kind == "node_end":
            facts.spent[node] = facts.spent.get(node, 0.0) + event["ms"] / 1000
            facts.running.discard(node)
            facts.waiting.pop(node, None)
            if event["error"]:
                facts.errors[node] = event["error"]
                _count(facts.failed, node)
                _count(facts.handled, node)
        elif kind == "refused":
            facts.errors[node] = event["why"]
            if node not in refused:  # a node is refused into its on_error only once
                _count(facts.handled, node)
            refused.add(node)
        elif kind == "blocked":
            facts.blocked.add(node)
        elif kind == "pause":
            facts.waiting[node] = event["question"]
            facts.running.discard(node)
    return facts


def _count(counts: dict[Any, int], key: Any) -> None:
    counts[key] = counts.get(key, 0) + 1


def _mark_run(drawn: Sheet, facts: _Facts) -> None:
    for edge in drawn.edges:
        edge.taken, edge.times = _way(edge, facts)
    if not facts.traced:
        _conclude_routes(drawn, facts)
    never = "skipped" if facts.status in ("done", "failed", "paused") else "not run"
    to_end = [edge.taken for edge in drawn.edges if edge.dst == END]
    for mark in drawn.nodes:
        name = mark.name
        mark.visits, mark.seconds = facts.visits.get(name, 0), facts.spent.get(name)
        if mark.kind == START:
            mark.state = "ran"
        elif mark.kind == END:
            mark.state = "ran" if any(to_end) else None if None in to_end else never
        elif name in facts.waiting:
            mark.state, mark.alarm = "waiting", f"waiting: {shown(str(facts.waiting[name]))}"
        elif name in facts.running:
            mark.state = "running" if facts.status is None else "interrupted"
        elif name in facts.errors:
            mark.state, mark.alarm = "failed", f"failed: {shown(facts.errors[name])}"
        else:
            mark.state = "ran" if mark.visits else "blocked" if name in facts.blocked else never
    drawn.caption = (facts.status or "not over") + ("" if facts.seconds is None else f", {duration(facts.seconds)}")


def _way(edge: EdgeMark, facts: _Facts) -> tuple[bool | None, int | None]:
    """Did a ticket go along this edge, and how often? None where the run does not tell."""
    src, dst, visits = edge.src, edge.dst, facts.visits.get(edge.src, 0)
    if src == START:
        return True, 1
    if edge.kind == "on_error":
        times = facts.handled.get(src, 0) if facts.traced or src not in facts.errors else None
    elif edge.kind == "router" and facts.traced:
        times = sum(facts.routes.get((src, label), 0) for label in edge.labels)
    elif not visits:
        times = 0
    elif edge.kind == "static":
        failed = facts.failed.get(src, 0) if facts.traced else int(src in facts.errors)
        times = visits - failed - (src in facts.running) if facts.traced or not failed or visits == 1 else None
    elif facts.status in ("done", "failed") and dst != END and dst not in facts.visits and dst not in facts.errors:
        times = 0
    else:
        return None, None
    return (True if times is None and edge.kind == "on_error" else None if times is None else times > 0), times


def _conclude_routes(drawn: Sheet, facts: _Facts) -> None:
    """A GraphState does not tell what routers chose, but some of it follows: a node that ran and has one way in was
    sent there, and where all labels but one are ruled out it was that one."""
    ways_in: dict[str, int] = {}
    unclear: dict[str, list[EdgeMark]] = {}
    for edge in drawn.edges:
        _count(ways_in, edge.dst)
        if edge.kind == "router" and edge.taken is None:
            unclear.setdefault(edge.src, []).append(edge)
    for src, ways in unclear.items():
        labels = {label for way in ways for label in way.labels}
        sure = len(labels) == 1 and src not in facts.errors and facts.status in ("done", "failed")
        for way in ways:
            if sure or (way.dst in facts.visits and ways_in[way.dst] == 1):
                way.taken, way.times = True, facts.visits[src] if sure else facts.visits[way.dst]


# ---- as text


def to_text(graph: Any, run: Any = None) -> str:
    """The edges as indented lines that can be read aloud, a source at a time."""
    return _text(sheet(graph, run))


def _text(drawn: Sheet) -> str:
    count = sum(mark.kind not in (START, END) for mark in drawn.nodes)
    run = "" if drawn.caption is None else f"; the run: {drawn.caption}"
    lines = [f"{quoted(drawn.name)}, a graph of {count} node{'' if count == 1 else 's'}{run}"]
    leaving: dict[str, list[EdgeMark]] = {mark.name: [] for mark in drawn.nodes}
    for edge in drawn.edges:
        leaving[edge.src].append(edge)
    for mark in drawn.nodes:
        name, words = quoted(mark.name), _spoken(mark)
        head = f"  {name} ({', '.join(words)})" if words else f"  {name}"
        static = ", ".join(quoted(edge.dst) for edge in leaving[mark.name] if edge.kind == "static")
        ways = [f"-> {static}"] if static else []
        ways += _spoken_ways([edge for edge in leaving[mark.name] if edge.kind != "static"])
        if mark.kind != END:
            lines.append(f"{head} {ways[0] if ways else '-> nothing'}")
            lines += [f"    {name} {way}" for way in ways[1:]]
        elif words:
            lines.append(head)
    return "\n".join(lines)


def _spoken(mark: NodeMark) -> list[str]:
    """What is said of a node in brackets: ["llm", "ran 2 times", "2.400 s in all"]."""
    if mark.kind in (START, END):
        return [] if mark.kind == START or mark.state is None else ["reached" if mark.state == "ran" else "not reached"]
    words = [] if mark.kind == "fn" else [mark.kind]
    if mark.cap is not None:
        words.append(f"at most {mark.cap} visit{'' if mark.cap == 1 else 's'}")
    if mark.visits and not mark.unfinished:
        words.append("ran" if mark.visits == 1 else f"ran {mark.visits} times")
    if mark.seconds is not None and mark.seconds >= LEAST_SHOWN:
        words.append(duration(mark.seconds) + (" in all" if mark.visits > 1 else ""))
    if mark.alarm or mark.absent or mark.unfinished:
        words.append(mark.alarm or str(mark.state))
    return words


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


# ---- as DOT

# The palette of Okabe and Ito (2008), told apart by every kind of colour vision; and ink, faint ink and paper.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
INK, FAINT, PAPER = "#1A1A1A", "#595959", "#FFFFFF"
LEAST_SHOWN = 0.0005  # seconds: what took no time, as nodes that only compute do in virtual time, is not labelled 0 ms


def tint(colour: str, paper: float = 0.75) -> str:
    """The colour mixed with that much white, light enough for ink on it: tint("#0072B2") -> "#BFDCEC"."""
    parts = (int(colour[i:i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * paper):02X}" for part in parts)


@dataclass(frozen=True)
class _Look:
    shape: str  # in DOT
    fill: str
    brackets: tuple[str, str]  # in Mermaid
    style: str = "filled"


_LOOKS = {  # kind -> how it looks; the shapes alone tell them apart
    "fn": _Look("box", PAPER, ("[", "]")),
    "tool": _Look("component", tint(SKY), ("[/", "/]")),
    "llm": _Look("box", tint(ORANGE), ("(", ")"), "filled,rounded"),
    "agent": _Look("hexagon", tint(PURPLE), ("{{", "}}")),
    "human": _Look("octagon", tint(YELLOW), ("[/", "\\]")),
    "graph": _Look("box", tint(GREEN), ("[[", "]]")),
    "map": _Look("box3d", tint(BLUE), ("[(", ")]")),
    START: _Look("oval", INK, ("([", "])")),
    END: _Look("oval", PAPER, ("(((", ")))")),
}


def _look(mark: NodeMark) -> tuple[_Look, str, str, float]:
    """How a node looks: its kind's look, then the colours of its line and its letters, and the line's width."""
    look = _LOOKS.get(mark.kind, _LOOKS["fn"])
    line = FAINT if mark.absent else VERMILION if mark.state == "failed" else INK
    width = 3.0 if mark.alarm or mark.unfinished else 2.2 if mark.state == "ran" else 1.2
    return look, line, FAINT if mark.absent else PAPER if mark.kind == START else INK, width


def _facts_line(mark: NodeMark) -> str:
    """The small line under a name: "llm · ×2 · 2.400 s"."""
    facts = [] if mark.kind in ("fn", START, END) else [mark.kind]
    if mark.state is None and mark.cap is not None:
        facts.append(f"at most {mark.cap} visit{'' if mark.cap == 1 else 's'}")
    if mark.visits > 1:
        facts.append(f"×{mark.visits}")
    if mark.seconds is not None and mark.seconds >= LEAST_SHOWN:
        facts.append(duration(mark.seconds))
    if (mark.absent and mark.kind != END) or mark.unfinished:
        facts.append(str(mark.state))
    return " · ".join(facts)


def _alarm_line(mark: NodeMark) -> str:
    """What went wrong, or what is asked, cut short: the whole of it is in the text."""
    return "" if mark.alarm is None else "! " + textwrap.shorten(mark.alarm, 72, placeholder=" …")


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


def _edge_words(edge: EdgeMark) -> str:
    if edge.kind in ("static", "either"):
        return "! also on_error" if edge.kind == "either" else ""
    times = f" ×{edge.times}" if (edge.times or 0) > 1 else ""
    return ("! " if edge.kind == "on_error" else "") + edge.label + times


def to_dot(graph: Any, run: Any = None) -> str:
    """The picture as DOT, for Graphviz. Identifiers are n0, n1, ...; names and labels stand escaped in the labels."""
    return _dot(sheet(graph, run))


def _dot(drawn: Sheet, upright: bool = False) -> str:
    """The sheet as DOT. Upright, backward edges are turned round and get their arrow at the tail: Graphviz then keeps
    its ranks and leads them back beside the way down, where they would wind through it otherwise."""
    ids = {mark.name: f"n{number}" for number, mark in enumerate(drawn.nodes)}
    below = "" if drawn.caption is None else f", label=<{_html(f'{shown(drawn.name)}: {drawn.caption}', FAINT, 60)}>"
    lines = ["digraph G {",
             f'  graph [bgcolor="{PAPER}", fontname="Helvetica", fontsize="10.5", labelloc="b"{below}];',
             '  graph [nodesep="0.3", pad="0.15", rankdir="TB", ranksep="0.45"];',
             '  node [fontname="Helvetica", fontsize="13", height="0.42", margin="0.16,0.08"];',
             '  edge [arrowsize="0.8", fontname="Helvetica", fontsize="10.5"];']
    lines += [f"  {ids[mark.name]} [{', '.join(_dot_node(mark))}];" for mark in drawn.nodes]
    for edge in _arrows(drawn.edges):
        turned, more = edge.backwards and upright, []
        if edge.backwards:
            more = ['dir="back"'] if turned else ['constraint="false"']
        ends = (edge.dst, edge.src) if turned else (edge.src, edge.dst)
        lines.append(f"  {ids[ends[0]]} -> {ids[ends[1]]} [{', '.join(_dot_edge(edge, turned) + more)}];")
    return "\n".join([*lines, "}", ""])


def _dot_node(mark: NodeMark) -> list[str]:
    look, line, letters, width = _look(mark)
    label = f"<B>{_html(mark.name, letters)}</B>"
    for words in (_facts_line(mark), _alarm_line(mark)):
        if words:
            label += f'<BR/><FONT POINT-SIZE="10.5">{_html(words, letters, 30)}</FONT>'
    room = _room(mark.name, 13)
    return [f"label=<{label}>", *([f'width="{room / 72 + 0.32:.2f}"'] if room else []),
            f'shape="{look.shape}"', f'style="{look.style}{",dashed" if mark.absent else ""}"',
            f'fillcolor="{PAPER if mark.absent else look.fill}"', f'color="{line}"', f'penwidth="{width:g}"',
            *(['height="0.3"', 'margin="0.05,0.01"'] if mark.kind in (START, END, "agent", "human") else []),
            *(['peripheries="2"'] if mark.kind in (END, "graph") else [])]


def _dot_edge(edge: EdgeMark, turned: bool) -> list[str]:
    faint, words = edge.taken is False, _edge_words(edge)
    label = f"<B>{_html(words, INK)}</B>" if edge.taken else _html(words, FAINT if faint else INK)
    # The cell's padding keeps the letters clear of the line beside them.
    room = _room(words, 10.5)
    cell = f'<TD WIDTH="{room + 8:.0f}">' if room else "<TD>"
    cell = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="4"><TR>{cell}{label}</TD></TR></TABLE>'
    return [*([f"label=<{cell}>"] if words else []),
            f'color="{FAINT if faint else VERMILION if edge.kind == "on_error" else INK}"',
            f'penwidth="{2.6 if edge.taken else 1.1:g}"',
            f'style="{"solid" if edge.kind in ("static", "either") else "dashed"}"',
            *([f'arrow{"tail" if turned else "head"}="onormal"', 'arrowsize="1.1"'] if edge.kind == "on_error" else [])]


def _room(text: str, size: float) -> float:
    """How many points a text with wide letters needs, which graphviz-pure takes to be narrower; 0 without any."""
    lines = [[unicodedata.east_asian_width(char) in "WF" for char in line] for line in wrapped(text, 26)]
    return max(sum(1.1 if wide else 0.6 for wide in line) * size for line in lines) if any(map(any, lines)) else 0.0


def _html(text: str, colour: str, width: int = 26) -> str:
    """Text for an HTML-like label of Graphviz: wrapped, escaped, coloured."""
    body = "<BR/>".join(escape(line) for line in wrapped(text, width))
    body = body.replace("\\", "\\\\")  # Graphviz takes \N for the node's identifier here, too
    return f'<FONT COLOR="{colour}">{body}</FONT>'


# ---- as Mermaid


def to_mermaid(graph: Any, run: Any = None) -> str:
    """The picture as a Mermaid flowchart, for pages that draw one. Identifiers are n0, n1, ... here too."""
    return _mermaid(sheet(graph, run))


def _mermaid(drawn: Sheet) -> str:
    ids = {mark.name: f"n{number}" for number, mark in enumerate(drawn.nodes)}
    lines = ["flowchart TD"]
    for mark in drawn.nodes:
        opening, closing = _look(mark)[0].brackets
        label = _entities(mark.name, _facts_line(mark), _alarm_line(mark))
        lines.append(f'  {ids[mark.name]}{opening}"{label}"{closing}')
    for edge in _arrows(drawn.edges):
        arrow, words = "-->" if edge.kind in ("static", "either") else "-.->", _edge_words(edge)
        label = f'|"{_entities(words)}"|' if words else ""
        lines.append(f"  {ids[edge.src]} {arrow}{label} {ids[edge.dst]}")
    for mark in drawn.nodes:
        look, line, letters, width = _look(mark)
        lines.append(f"  style {ids[mark.name]} fill:{PAPER if mark.absent else look.fill},stroke:{line},"
                     f"color:{letters},stroke-width:{width:g}px" + (",stroke-dasharray:5 4" if mark.absent else ""))
    for number, edge in enumerate(_arrows(drawn.edges)):
        if edge.taken is not None or edge.kind == "on_error":
            colour = FAINT if edge.taken is False else VERMILION if edge.kind == "on_error" else INK
            lines.append(f"  linkStyle {number} stroke:{colour},stroke-width:{4 if edge.taken else 1}px")
    return "\n".join([*lines, ""])


def _entities(*parts: str) -> str:
    """Text for a quoted label of Mermaid: all that could end the label, or be taken for markup, as an entity."""
    lines = [line for part in parts if part for line in wrapped(part, 30)]
    plain = re.compile(r"[^0-9A-Za-z ,()/!?'=\u00a0-\U0010ffff_.-]"      # quotes, brackets, #, &, ;, :, backticks
                       r"|(?<![0-9A-Za-z])[_.-]|[_.-](?![0-9A-Za-z])"      # emphasis and lists begin or end with these
                       r"|(?<=^\d)[.)]|(?<=^\d\d)[.)]")                    # as a numbered list does
    return "<br/>".join(plain.sub(lambda found: f"#{ord(found[0])};", line) for line in lines)


# ---- words


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
        self.name, self.format, self.size = drawn.name, format, len(drawn.nodes) + len(drawn.edges)
        self.text, self.dot, self.mermaid = _text(drawn), _dot(drawn), _mermaid(drawn)
        self._upright = _dot(drawn, upright=True)

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


def draw(graph: Any, run: Any = None, *, format: str = "png") -> Picture:
    """The picture of a Graph (or of what `describe()` returned), and, given its GraphState or Trace, of a run."""
    return Picture(sheet(graph, run), format)


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
