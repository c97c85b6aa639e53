"""A scene is a graph's picture laid out once: what changes from frame to frame is left open, and filled in each time.

    scene = Scene(graph.describe())
    scene.fill(scene.slots(frame))          # SVG; no node moves between two frames

Graphviz decides where everything stands, and with what shape; colours come from a style sheet, by classes. A slot is an
open place, named after what stands there: "n3.f" is the line of facts in node 3, "n3@class" an attribute of its group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from . import notation
from .draw import PictureError, _graphviz
from .engine import END, START
from .sheet import EdgeMark, sheet
from .words import shown

if TYPE_CHECKING:
    from .frames import Frame

LARGEST = 150  # nodes: more are too many to be looked at in motion
TALLEST = 600  # pixels: a picture that would be taller is made smaller, as long as it can be read
Slots = dict[str, str]


class Template:
    """Text with open places: `hole("n3.f")` opens one, and `fill` puts in what the slots say."""

    def __init__(self, text: str) -> None:
        self.parts = text.split("\0")  # text, a slot's name, text, ...
        self.names = self.parts[1::2]

    def fill(self, slots: Mapping[str, str]) -> str:
        """The text with the slots filled. Content is escaped already; what goes into an attribute is escaped here."""
        filled = self.parts.copy()
        for place, name in enumerate(self.names):
            value = slots.get(name, "")
            filled[2 * place + 1] = escape(value) if "@" in name else value
        return "".join(filled)


def hole(name: str) -> str:
    """An open place; no text that is shown holds a NUL, so that nothing else can be taken for one."""
    return f"\0{name}\0"


def open_group(name: str) -> str:
    """The attributes of an element whose class changes, and which a script can find again."""
    return f'data-s="{name}" class="{hole(f"{name}@class")}"'


class Scene:
    """The picture of one graph, laid out; `why` says why there is none, where there is none."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        drawn = sheet(description, nested=False)
        self.name, self.why = drawn.name, ""
        self.ids = {mark.name: mark.id for mark in drawn.nodes}
        self.arrows: list[EdgeMark] = notation._arrows(drawn.edges)
        self.width = self.height = 0.0  # points
        self.template: Template | None = None
        if drawn.size > LARGEST:
            self.why = f"{drawn.size} nodes are too many to be looked at in motion; draw(graph) draws them"
            return
        _make_room(drawn.nodes, drawn.edges)
        try:
            svg = ElementTree.fromstring(_graphviz(notation.dot(drawn, upright=True), "svg"))
            self.template = Template(self.opened(svg, {mark.id: mark.name for mark in drawn.nodes}))
        except Exception as error:  # whoever watches a run sees the cards rather than a traceback
            self.why = str(error) if isinstance(error, PictureError) else f"Graphviz drew what cannot be read: {error}"

    def fill(self, slots: Mapping[str, str]) -> str:
        """The picture as SVG; "" where there is none."""
        return self.template.fill(slots) if self.template else ""

    def slots(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """What stands in the open places at one moment."""
        if self.template is None:
            return
        yield "title@aria-label", f"{frame.name}: {frame.title}"
        yield from self._node_slots(frame)
        over = frame.status not in ("running", "not begun")
        for number, arrow in enumerate(self.arrows):
            kinds = ("static", "on_error") if arrow.kind == "either" else (arrow.kind,)
            times = sum(frame.edges.get((arrow.src, arrow.dst, kind), 0) for kind in kinds)
            taken = "taken" if times else "left" if over else "open"
            yield f"e{number}@class", f"edge {arrow.kind} {taken}"
            if arrow.kind != "static":  # the only ones without a label
                yield f"e{number}.x", f" ×{times}" if times > 1 else ""

    def _node_slots(self, frame: Frame) -> Iterator[tuple[str, str]]:
        reached = any(times for (_, dst, _), times in frame.edges.items() if dst == END)
        for name, place in self.ids.items():
            node = frame.nodes.get(name)
            if node is None:
                yield f"{place}@class", "node start" if name == START else "node end reached" if reached else "node end"
                continue
            yield f"{place}@class", f"node is-{node.state.replace(' ', '-')}"
            yield f"{place}.f", escape(shown(node.facts)) if node.facts else ""
            yield f"{place}.t", escape(": ".join(map(shown, filter(None, (name, node.state, node.words)))))

    # ---- from Graphviz's picture to ours

    def opened(self, svg: ElementTree.Element, names: Mapping[str, str]) -> str:
        """The SVG with its colours taken out, and with open places for what changes."""
        left, top, self.width, self.height = map(float, svg.attrib["viewBox"].split())
        scale = min(1.2, max(0.9, TALLEST / self.height))
        whole = next(child for child in svg if _tag(child) == "g")
        arrows: dict[str, list[int]] = {}  # "n0->n3" -> the numbers of the arrows between the two
        for number, arrow in enumerate(self.arrows):
            ends = (arrow.dst, arrow.src) if arrow.backwards else (arrow.src, arrow.dst)
            arrows.setdefault("->".join(self.ids[end] for end in ends), []).append(number)
        nodes, edges = "", ""
        for group in whole:
            title = "".join(text.text or "" for text in group if _tag(text) == "title")
            if group.get("class") == "node":
                nodes += _node(group, title, names[title] not in (START, END))
            elif group.get("class") == "edge":
                edges += _edge(group, arrows[title].pop(0))
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {top:g} {self.width:g} {self.height:g}" '
                f'width="{self.width * scale:.0f}" height="{self.height * scale:.0f}" class="mg-scene" role="img" '
                f'data-s="title" aria-label="{hole("title@aria-label")}"><g transform="{whole.attrib["transform"]}">'
                f"{edges}{nodes}</g></svg>")


def _make_room(nodes: Iterable[Any], edges: Iterable[EdgeMark]) -> None:
    """Marks everything as a busy run would, so that Graphviz leaves room for what frames will say."""
    loops = any(edge.backwards for edge in edges)
    for mark in nodes:
        if mark.kind not in (START, END):
            mark.cap, mark.inner, mark.visits, mark.seconds = None, None, 88, 88.888
    for edge in edges:
        edge.times = 88 if loops and edge.labels else None


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _all(group: ElementTree.Element, *tags: str) -> list[ElementTree.Element]:
    return [element for element in group.iter() if _tag(element) in tags]


_SHAPES = ("polygon", "polyline", "path", "ellipse")
_GEOMETRY = ("points", "d", "cx", "cy", "rx", "ry")


def _shape(element: ElementTree.Element, kind: str) -> str:
    where = " ".join(f'{name}="{escape(element.attrib[name])}"' for name in _GEOMETRY if name in element.attrib)
    return f'<{_tag(element)} class="{kind}" {where}/>'


def _node(group: ElementTree.Element, place: str, has_facts: bool) -> str:
    shapes, texts = _all(group, *_SHAPES), _all(group, "text")
    middle = _middle(shapes[0])
    names = [text for text in texts if float(text.attrib["font-size"]) > 11]
    facts = [text for text in texts if float(text.attrib["font-size"]) <= 11]
    drawn = "".join(_shape(shape, "line" if number else "body") for number, shape in enumerate(shapes))
    for text in names:
        y = _down(text, -1 if has_facts else 0)
        drawn += f'<text class="name" x="{middle:.1f}" y="{y}">{escape(text.text or "")}</text>'
    if has_facts and facts:
        drawn += (f'<text class="facts" x="{middle:.1f}" y="{_down(facts[0], 1.5)}" data-s="{place}.f">'
                  f'{hole(f"{place}.f")}</text>')
    title = f'<title data-s="{place}.t">{hole(f"{place}.t")}</title>' if has_facts else ""
    return f"<g {open_group(place)}>{title}{drawn}</g>"


def _down(text: ElementTree.Element, points: float) -> str:
    return f'{float(text.attrib["y"]) + points:.1f}'


def _edge(group: ElementTree.Element, number: int) -> str:
    place, shapes, texts = f"e{number}", _all(group, *_SHAPES), _all(group, "text")
    drawn = "".join(_shape(shape, "way" if _tag(shape) == "path" else
                           "hollow" if shape.get("fill") in ("none", "#ffffff", "white") else "head")
                    for shape in shapes)
    for text in texts:
        words = re.sub(" ?×88$", "", text.text or "")
        times = f'<tspan data-s="{place}.x">{hole(f"{place}.x")}</tspan>' if text is texts[-1] else ""
        drawn += (f'<text class="label" x="{text.attrib["x"]}" y="{text.attrib["y"]}">'
                  f"{escape(words)}{times}</text>")
    return f"<g {open_group(place)}>{drawn}</g>"


def _middle(shape: ElementTree.Element) -> float:
    """Where the middle of a shape is, from left to right."""
    if _tag(shape) == "ellipse":
        return float(shape.attrib["cx"])
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", shape.get("points") or shape.get("d") or "")]
    across = numbers[::2]
    return (min(across) + max(across)) / 2
