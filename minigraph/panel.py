"""A panel shows a frame: the picture, and below it a row of cards in which nothing moves but what the run moves.

    panel = Panel(graph.describe())
    panel.html(frame)           # with a style sheet, for a widget that is set anew many times a second
    panel.still(frame)          # without one, for the notebook: what is taken out of a page nobody trusts is not in it

Everything stands in one template, filled in from the frame's slots; a page that replays a run fills the same template.
A state is said by a sign, a word and a colour. All text is escaped, and what does not fit is cut off by the browser,
never pushed aside: the title of the element has the whole of it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from .palette import BLUE, FAILED, FAINT, GREEN, INK, ORANGE, PAPER, PURPLE, RULE, SKY, VERMILION, YELLOW
from .scene import Scene, Slots, Template, hole, open_group
from .words import shown

if TYPE_CHECKING:
    from .frames import Card, Frame

# ---- colours: by meaning, on light paper, and on dark paper for pages that stand alone


def mix(colour: str, other: str, share: float) -> str:
    """The colour with that share of another mixed in: mix("#000000", "#FFFFFF", 0.5) -> "#808080"."""
    pairs = ((int(colour[i:i + 2], 16), int(other[i:i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(one + (two - one) * share):02X}" for one, two in pairs)


DARK_PAPER, DARK_INK = "#1B1E23", "#ECECEC"
STATES = {  # state -> the colours of its line and its fill; what is not here is as plain as paper
    "queued": (BLUE, None), "running": (BLUE, SKY), "done": (GREEN, GREEN), "failed": (FAILED, FAILED),
    "refused": (VERMILION, ORANGE), "waiting": (PURPLE, YELLOW), "interrupted": (VERMILION, YELLOW)}
LIGHT = {"paper": PAPER, "ink": INK, "faint": FAINT, "rule": RULE, "band": "#EEF0F2", "alarm": VERMILION,
         **{f"{state}-line": mix(line, INK, 0.15) for state, (line, _) in STATES.items()},
         **{f"{state}-fill": mix(fill, PAPER, 0.72) if fill else PAPER for state, (_, fill) in STATES.items()}}
DARK = {"paper": DARK_PAPER, "ink": DARK_INK, "faint": "#A9AFB8", "rule": "#454B54", "band": "#2A2F36",
        "alarm": mix(VERMILION, "#FFFFFF", 0.3),
        **{f"{state}-line": mix(line, "#FFFFFF", 0.35) for state, (line, _) in STATES.items()},
        **{f"{state}-fill": mix(fill, DARK_PAPER, 0.66) if fill else DARK_PAPER for state, (_, fill) in STATES.items()}}

CARDS = 12  # a row of more is cut short, in words

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"
CUT = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap;"
STYLES = {  # class -> how it looks
    "panel": f"background:var(--paper);color:var(--ink);font:13px/18px {FONT};border:1px solid var(--rule);"
             "border-radius:8px;padding:12px 14px;box-sizing:border-box;text-align:left;",
    "head": "display:flex;gap:4px 12px;flex-wrap:wrap;align-items:baseline;",
    "called": f"font-size:15px;font-weight:600;max-width:100%;{CUT}",
    "status": "font-variant-numeric:tabular-nums;white-space:nowrap;",
    "caption": f"color:var(--faint);min-height:18px;margin-bottom:8px;{CUT}",
    "alarm": "color:var(--ink);font-weight:600;",
    "stage": "display:flex;flex-wrap:wrap;gap:12px 20px;align-items:flex-start;",
    "picture": "flex:0 1 auto;max-width:100%;line-height:0;",
    "row": "flex:1 1 420px;min-width:0;max-width:880px;",
    "cards": "display:grid;grid-template-columns:repeat(auto-fill,minmax(200px,1fr));gap:8px;",
    "card": "height:112px;box-sizing:border-box;border:1px solid var(--rule);border-left:5px solid var(--rule);"
            "border-radius:6px;padding:7px 10px;overflow:hidden;background:var(--paper);",
    "ghost": "height:112px;visibility:hidden;",
    **{f"is-{state}": f"border-left-color:var(--{state}-line);" for state in STATES},
    "title": f"font-weight:600;{CUT}",
    "told": f"font-variant-numeric:tabular-nums;{CUT}",
    "track": "height:8px;background:var(--band);border-radius:2px;margin:3px 0;overflow:hidden;",
    "waits": "background-image:repeating-linear-gradient(135deg,var(--faint) 0 1.5px,transparent 1.5px 6px);",
    "bar": "height:8px;",
    **{f"bar-{state}": f"background:var(--{state}-line);" for state in STATES},
    "note": f"color:var(--faint);font-size:12px;min-height:18px;{CUT}",
    "chips": f"height:22px;{CUT}",
    "chip": "display:inline-block;border:1px solid var(--rule);border-radius:9px;padding:0 7px;margin:1px 4px 0 0;"
            "background:var(--band);font:11px/16px ui-monospace,'DejaVu Sans Mono',monospace;max-width:45%;"
            f"box-sizing:border-box;{CUT}",
    "more": "color:var(--faint);",
    "foot": "color:var(--faint);",
}

_THIN, _BOLD = "stroke-width:1.1;", "stroke-width:2.6;"
PICTURE = {  # what in a scene -> how it looks
    "text": "font-family:Helvetica,Arial,'Liberation Sans',sans-serif;fill:var(--ink);",
    ".name, .facts": "text-anchor:middle;",
    ".name": "font-size:13px;font-weight:600;",
    ".facts": "font-size:10.5px;font-variant-numeric:tabular-nums;",
    ".body, .line": "stroke:var(--ink);stroke-width:1.2;fill:none;",
    ".body": "fill:var(--paper);",
    ".start .body, .reached .body": "fill:var(--ink);",
    ".reached .line": "stroke:var(--ink);",
    ".start .name, .reached .name": "fill:var(--paper);",
    ".is-idle .body, .is-idle .line, .end .body, .end .line": "stroke:var(--faint);",
    ".is-idle .facts": "fill:var(--faint);",
    ".is-skipped .body, .is-blocked .body, .is-not-run .body": "stroke:var(--faint);stroke-dasharray:5 4;",
    ".is-skipped text, .is-blocked text, .is-not-run text": "fill:var(--faint);",
    ".way, .head, .hollow": "stroke:var(--ink);" + _THIN,
    ".way": "fill:none;",
    ".head": "fill:var(--ink);",
    ".hollow": "fill:var(--paper);",
    ".router .way, .on_error .way": "stroke-dasharray:6 4;",
    ".on_error .way, .on_error .hollow, .on_error .head": "stroke:var(--alarm);",
    ".on_error .head": "fill:var(--alarm);",
    ".left .way, .left .head, .left .hollow": "stroke:var(--faint);",
    ".left .head, .left text": "fill:var(--faint);",
    ".taken .way": _BOLD,
    ".taken text": "font-weight:600;",
    ".edge text": "font-size:10.5px;paint-order:stroke;stroke:var(--paper);stroke-width:3px;",
    **{f".is-{state} .line": f"stroke:var(--{state}-line);" for state in STATES},
    **{f".is-{state} .body": f"fill:var(--{state}-fill);stroke:var(--{state}-line);"
       f"stroke-width:{1.6 if state in ('queued', 'done') else 2.8};" for state in STATES},
    ".is-queued .body": "fill:var(--paper);stroke:var(--queued-line);stroke-width:1.6;stroke-dasharray:2 3;",
}


def picture_css() -> str:
    """How scenes look, wherever they stand; the colours are variables."""
    return "".join(", ".join(f".mg-scene {one}" for one in what.split(", ")) + f"{{{look}}}\n"
                   for what, look in PICTURE.items())


def css(looks: Mapping[str, str] = STYLES) -> str:
    """How panels look: classes inside a panel, so that the page around is left alone. The colours are variables."""
    plain = "".join(f".mg-panel .{name}{{{look}}}\n" for name, look in looks.items())
    return f".mg-panel{{{looks['panel']}}}\n{plain}.mg-panel svg{{max-width:100%;height:auto;}}\n" + picture_css()


def variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


# ---- the panel


class Panel:
    """What all frames of one graph are shown in: it is laid out when first asked for, and once."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.description = description
        self.places = min(CARDS, widest(description))  # how many cards there is room for from the start
        self.made: Template | None = None

    @cached_property
    def scene(self) -> Scene:
        return Scene(self.description)

    @cached_property
    def style(self) -> str:
        return f"<style>{css()}.mg-panel{{{variables(LIGHT)}}}</style>"

    def svg(self, frame: Frame) -> str:
        """The picture, with its style."""
        picture = self.scene.fill(dict(self.scene.slots(frame)))
        style = f"<style>.mg-scene{{{variables(LIGHT)}}}\n{picture_css()}</style>"
        return picture.replace(">", f">{style}", 1)

    def html(self, frame: Frame) -> str:
        """The picture and the cards, with a style sheet."""
        return self.style + self.template(len(frame.cards)).fill(self.slots(frame))

    def still(self, frame: Frame) -> str:
        """The picture and the cards without style sheet, script and SVG: the picture is an image, with its text."""
        template = self.opened(max(len(frame.cards), 1), self.image(frame, frame.text))
        return inlined(template.fill(self.slots(frame)))

    def image(self, frame: Frame, text: str) -> str:
        """The picture as an image, which needs nobody's trust: it can neither run anything nor ask for anything."""
        if not self.scene.template:
            return self.picture
        data = b64encode(self.svg(frame).encode()).decode()
        return f'<img style="max-width:100%" alt="{escape(text)}" src="data:image/svg+xml;base64,{data}">'

    def template(self, cards: int) -> Template:
        """The template with that many cards, or as many as there is room for: it grows, and never shrinks."""
        if self.made is None or cards > self.places:
            self.places = max(cards, self.places)
            self.made = self.opened(self.places, self.picture)
        return self.made

    @property
    def picture(self) -> str:
        """The picture, its slots open; a sentence where there is none."""
        if self.scene.template is None:
            return f'<div class="foot" style="line-height:18px">(no picture: {escape(self.scene.why)})</div>'
        return "\0".join(self.scene.template.parts)

    def opened(self, cards: int, picture: str, below: str = "") -> Template:
        """The head, a picture, a row of cards, and what is to stand below, their slots open."""
        return Template(f'<div class="mg-panel panel">{HEAD}<div class="stage"><div class="picture">{picture}</div>'
                        f'{row(cards)}</div>{below}</div>')

    def slots(self, frame: Frame) -> Slots:
        """What stands in the open places at one moment."""
        slots = dict(self.scene.slots(frame))
        slots.update(_head(frame))
        for place in range(max(self.places, len(frame.cards))):
            slots.update(_card(f"c{place}", frame.cards[place]) if place < len(frame.cards)
                         else {f"c{place}@class": "ghost"})
        slots["more"] = escape(frame.more)
        return slots


HEAD = (f'<div class="head"><div class="called" data-s="name">{hole("name")}</div>'
        f'<div class="status" data-s="status">{hole("status")}</div></div>'
        f'<div {open_group("caption")}>{hole("caption")}</div>')


def row(cards: int) -> str:
    """The row of cards, its slots open."""
    return (f'<div class="row"><div class="cards">{"".join(map(_open_card, range(cards)))}</div>'
            f'<div class="more" data-s="more">{hole("more")}</div></div>')


def _open_card(number: int) -> str:
    card = f"c{number}"
    return (f"<div {open_group(card)}>"
            f'<div class="title" data-s="{card}.n" title="{hole(f"{card}.n@title")}">{hole(f"{card}.n")}</div>'
            f'<div class="told" data-s="{card}.t">{hole(f"{card}.t")}</div>'
            f'<div {open_group(f"{card}.w")}>'
            f'<div {open_group(f"{card}.b")} style="{hole(f"{card}.b@style")}"></div></div>'
            f'<div class="note" data-s="{card}.o" title="{hole(f"{card}.o@title")}">{hole(f"{card}.o")}</div>'
            f'<div class="chips" data-s="{card}.k" title="{hole(f"{card}.k@title")}">{hole(f"{card}.k")}</div></div>')


def _head(frame: Frame) -> Iterator[tuple[str, str]]:
    yield "name", escape(shown(frame.name))
    yield "status", escape(frame.title)
    yield "caption@class", "caption alarm" if frame.error else "caption"
    yield "caption", escape(shown(frame.caption)) if frame.caption else ""


def _card(place: str, card: Card) -> Iterator[tuple[str, str]]:
    state = card.state.replace(" ", "-")
    note = " · ".join(filter(None, (card.words and shown(card.words), card.inside, card.note)))
    yield f"{place}@class", f"card is-{state}"
    yield f"{place}.n", escape(shown(card.title))
    yield f"{place}.n@title", shown(card.title)
    yield f"{place}.t", escape(card.told)
    yield f"{place}.w@class", "track waits" if card.waits else "track"
    yield f"{place}.b@class", f"bar bar-{state}"
    yield f"{place}.b@style", f"width:{card.share * 100:.0f}%"
    yield f"{place}.o", escape(note)
    yield f"{place}.o@title", note
    yield f"{place}.k", chips(card.keys)
    yield f"{place}.k@title", ", ".join(map(shown, card.keys))


def chips(keys: Sequence[str], most: int = 3) -> str:
    """The keys, each on a chip; of many the first few, and how many more there are."""
    more = f'<span class="foot">+{len(keys) - most}</span>' if len(keys) > most else ""
    return "".join(f'<span class="chip">{escape(shown(key))}</span>' for key in keys[:most]) + more


def widest(description: Mapping[str, Any]) -> int:
    """How many nodes stand side by side at most, where each comes right after the last of those that lead to it."""
    level: dict[str, int] = {}
    edges = [edge for edge in description["edges"] if not edge["backwards"]]
    ins: dict[str, int] = {}
    outs: dict[str, list[str]] = {}
    for edge in edges:
        ins[edge["dst"]] = ins.get(edge["dst"], 0) + 1
        outs.setdefault(edge["src"], []).append(edge["dst"])
    free = [node for node in ["START", *(node["name"] for node in description["nodes"])] if node not in ins]
    while free:
        name = free.pop()
        for dst in outs.get(name, ()):
            level[dst] = max(level.get(dst, 0), level.get(name, 0) + 1)
            ins[dst] -= 1
            if not ins[dst]:
                free.append(dst)
    levels = Counter(level.get(node["name"], 0) for node in description["nodes"])
    return max(levels.values(), default=1)


# ---- stills


def inlined(html: str, looks: Mapping[str, str] = STYLES) -> str:
    """HTML with each class replaced by how it looks, on light paper."""
    def look(found: re.Match[str]) -> str:
        plain = "".join(looks.get(name, "") for name in found[1].split()) + (found[3] or "")
        return f'style="{escape(re.sub(r"var[(]--([a-z-]+)[)]", lambda var: LIGHT[var[1]], plain))}"'

    return re.sub(r'class="([^"]*)"( style="([^"]*)")?', look, re.sub(r' ?data-s="[^"]*"', "", html))
