"""A strip is the chart of a run made light: a bar a visit, drawn once, and a cursor that is moved along the clock.

    strip = Strip(trace)
    strip.html                          # lanes and bars; what lies right of the cursor has not happened yet
    strip.slots(1.887)                  # where the cursor stands

It has the colours and the hatching of the charts, whose bars it takes (lanes.py): what waited at the barrier is
hatched, what failed is crossed.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .lanes import RAN, Bar, Lane, lanes_of, rows, waves_of
from .palette import FAILED, INK, MODEL, WORK
from .scene import hole
from .trace import Trace
from .words import duration, shown

HEIGHT, TALL = 440, 18  # pixels: of all lanes at most, and of one
LEAST = 9  # pixels: in lower lanes names are left out
THIN = 6  # pixels: in lower lanes bars have no edge
NAMES = 22  # per cent of the width, for the names

_HATCHED = "repeating-linear-gradient(135deg,var(--faint) 0 1.5px,transparent 1.5px 6px)"
_CROSSED = (f"repeating-linear-gradient(45deg,{INK} 0 1.5px,transparent 1.5px 6px),"
            f"repeating-linear-gradient(135deg,{INK} 0 1.5px,transparent 1.5px 6px)")
STYLES = {  # class -> how it looks
    "strip": "position:relative;margin-top:12px;overflow:hidden;",
    "lane": "position:relative;white-space:nowrap;",
    "lane-name": f"position:absolute;left:0;width:{NAMES - 1}%;overflow:hidden;text-overflow:ellipsis;"
                 "text-align:right;box-sizing:border-box;",
    "field": f"position:absolute;left:{NAMES}%;right:1%;top:0;bottom:0;",
    "wave": "position:absolute;top:0;bottom:0;border-left:1px solid var(--rule);box-sizing:border-box;",
    "wave-odd": "background:var(--band);",
    "visit": f"position:absolute;top:15%;bottom:15%;min-width:3px;box-sizing:border-box;border:1px solid {INK};",
    "visit-thin": "border:0;",
    "visit-node": f"background-color:{WORK};",
    "visit-llm": f"background-color:{MODEL};",
    "visit-gate": "background-color:var(--waiting-fill);border-style:dashed;border-color:var(--ink);",
    "visit-failed": f"background-color:{FAILED};background-image:{_CROSSED};",
    "wait": f"position:absolute;top:15%;bottom:15%;background-image:{_HATCHED};border-right:1px solid var(--faint);",
    "mark": "position:absolute;top:0;bottom:0;margin-left:-5px;font-size:11px;",
    "cursor": "position:absolute;top:0;bottom:0;width:0;margin-left:-1px;border-left:2px solid var(--ink);",
    "veil": "position:absolute;top:0;bottom:0;right:0;background:var(--paper);opacity:.62;",
    "scale": "position:relative;height:16px;color:var(--faint);font-size:11px;",
}


class Strip:
    """The bars of one run: `html` has them, and an open place for the cursor."""

    def __init__(self, trace: Trace) -> None:
        self.span = max(trace.seconds, 1e-9)
        lanes = lanes_of(rows(trace))
        self.tall = max(2.0, min(TALL, HEIGHT / max(1, len(lanes))))  # pixels
        bands = "".join(f'<div class="wave{" wave-odd" if number % 2 else ""}" style="{self._place(start, end)}" '
                        f'title="wave {number}"></div>' for number, start, end in waves_of(trace))
        self.html = (
            f'<div class="strip" role="img" aria-label="a bar a visit, and where in time we are"><div class="field">'
            f'{bands}</div>{"".join(self._lane(lane) for lane in lanes)}<div class="field">'
            f'<div class="veil" data-s="veil" style="{hole("veil@style")}"></div>'
            f'<div class="cursor" data-s="cursor" style="{hole("cursor@style")}"></div></div></div>'
            f'<div class="scale"><div class="field">0 s<div style="position:absolute;right:0;top:0">'
            f"{duration(trace.seconds)}</div></div></div>")

    def slots(self, t: float) -> Iterator[tuple[str, str]]:
        """Where the cursor stands at `t` seconds."""
        left = min(100.0, t / self.span * 100)
        yield "veil@style", f"left:{left:.2f}%"
        yield "cursor@style", f"left:{left:.2f}%"

    def _lane(self, lane: Lane) -> str:
        tall = self.tall
        name = f"{shown(lane.name)}{f' ×{lane.times}' if lane.times > 1 else ''}" if lane.name else ""
        told, size = escape(name) if tall >= LEAST else "", min(11.0, tall * 0.82)
        indent = f"padding-left:{12 * lane.bars[0].depth}px;" if lane.bars and lane.bars[0].depth else ""
        return (f'<div class="lane" style="height:{tall:.1f}px"><div class="lane-name" style="{indent}'
                f'font-size:{size:.1f}px;line-height:{tall:.1f}px" title="{escape(name)}">{told}</div>'
                f'<div class="field">{"".join(map(self._bar, lane.bars))}</div></div>')

    def _bar(self, bar: Bar) -> str:
        left, title = bar.start / self.span * 100, escape(_said(bar))
        if bar.kind not in RAN:
            sign = "⊘" if bar.kind == "refused" else "■"
            return f'<div class="mark" style="left:{left:.2f}%" title="{title}">{sign}</div>'
        thin = " visit-thin" if self.tall < THIN else ""
        look = "failed" if bar.error else bar.kind if bar.kind in ("llm", "gate") else "node"
        wait = (f'<div class="wait" style="{self._place(bar.end, bar.over)}" title="waited at the barrier"></div>'
                if bar.wait >= 0.0005 else "")
        return (f'<div class="visit visit-{look}{thin}" style="{self._place(bar.start, bar.end)}" title="{title}">'
                f"</div>{wait}")

    def _place(self, start: float, end: float) -> str:
        return f"left:{start / self.span * 100:.2f}%;width:{(end - start) / self.span * 100:.2f}%"


def _said(bar: Bar) -> str:
    """What the title of a bar says: "draft, visit 2: 1.500 s · failed: TimeoutError"."""
    visit = f", visit {bar.visit}" if bar.visit > 1 else ""
    why = [f"failed: {bar.error}" if bar.kind in RAN else f"{bar.kind}: {bar.error}"] if bar.error else []
    lasted = [duration(bar.seconds)] if bar.kind in RAN else []
    return shown(f"{bar.lane}{visit}: " + " · ".join([*lasted, *bar.notes, *why]))
