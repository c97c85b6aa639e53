"""Forecasts as bars of HTML: light enough to be drawn anew at every move of a slider.

    side_by_side([foretell(graph, {}, "waves"), foretell(graph, {}, "ready")], list(graph.nodes))

A lane a node, in the order of the graph, and one scale for all forecasts. The critical path has a thick lower edge and
a mark beside its names; the wait at the barrier is hatched. Every name is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..palette import BAND, FAILED, FAINT, INK, PAPER, RULE, WORK
from ..trace import Visit, one_line
from .foretell import Forecast

FONT = "13px/1.4 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
ROOM = 0.2  # of a track: a bar as long as this has room for its seconds

STYLE = f"""<style>
.mg-bars {{ background: {PAPER}; color: {INK}; font: {FONT}; padding: 10px 12px; border: 1px solid {RULE};
  border-radius: 4px; box-sizing: border-box; }}
.mg-bars .two {{ display: flex; flex-wrap: wrap; gap: 10px 24px; }}
.mg-bars .one {{ flex: 1 1 280px; min-width: 0; }}
.mg-bars .head {{ font-size: 15px; }}
.mg-bars .row {{ display: grid; grid-template-columns: minmax(48px, 28%) 1fr; align-items: center; height: 24px; }}
.mg-bars .name {{ overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding-right: 6px;
  text-align: right; }}
.mg-bars .track {{ position: relative; height: 24px; border-left: 1px solid {FAINT}; }}
.mg-bars .track > div {{ position: absolute; box-sizing: border-box; white-space: nowrap; }}
.mg-bars .wave {{ top: 2px; height: 20px; background: {BAND}; border-left: 1px solid {FAINT}; padding-left: 3px;
  overflow: hidden; font-size: 11px; line-height: 20px; }}
.mg-bars .tick {{ top: 0; height: 24px; border-left: 1px solid {RULE}; }}
.mg-bars .bar {{ top: 3px; height: 18px; min-width: 3px; background: {WORK}; border: 1px solid {INK}; font-size: 11px;
  line-height: 15px; text-align: center; }}
.mg-bars .critical {{ border-bottom-width: 4px; line-height: 13px; }}
.mg-bars .wait {{ top: 3px; height: 18px; border: 1px solid {FAINT}; border-left: 0;
  background: repeating-linear-gradient(135deg, {FAINT} 0 1px, {PAPER} 1px 5px); }}
.mg-bars .wait span {{ background: {PAPER}; padding: 0 4px 0 3px; font-size: 11px; line-height: 16px; display: block;
  width: fit-content; }}
.mg-bars .said {{ top: 3px; height: 18px; line-height: 18px; font-size: 11px; padding: 0 3px; }}
.mg-bars .not {{ color: {FAINT}; font-style: italic; }}
.mg-bars .trouble {{ border-left: 4px solid {FAILED}; padding-left: 6px; }}
.mg-bars .foot {{ color: {FAINT}; margin-top: 6px; }}
</style>"""


def side_by_side(forecasts: Sequence[Forecast], names: Sequence[str]) -> str:
    """The forecasts as one piece of HTML, on one scale; `names` are the lanes, from the top down."""
    span = max((forecast.seconds for forecast in forecasts), default=0.0) or 1.0
    panels = "".join(panel(forecast, names, span) for forecast in forecasts)
    refused = " ✗: refused." if any(forecast.trace.of("refused") for forecast in forecasts) else ""
    return (f'{STYLE}<div class="mg-bars"><div class="two">{panels}</div>'
            '<div class="foot">◆ and a thick edge: the critical path, which alone decides how long it takes. '
            f"Hatched: waits at the barrier.{refused}</div></div>")


def panel(forecast: Forecast, names: Sequence[str], span: float) -> str:
    """One forecast: what it comes to, its waves, a lane a node, and the scale."""
    visits: dict[str, list[Visit]] = {name: [] for name in names}
    for visit in forecast.trace.visits():
        visits[visit.node].append(visit)
    trouble = f'<div class="trouble">{_text(forecast.trouble)}</div>' if forecast.trouble else ""
    return "".join([
        f'<div class="one" role="img" aria-label="{_text(forecast)}">{_head(forecast)}',
        _row("", "".join(_waves(forecast, span))),
        *(_lane(name, visits[name], forecast, span) for name in names),
        _row("", "".join(_scale(span))), trouble, "</div>"])


def _head(forecast: Forecast) -> str:
    return (f'<div class="head"><b>{_text(forecast.trace.schedule or "")}: {_seconds(forecast.seconds)}</b> '
            f"· {forecast.speed_up:.2f} × as fast as in series ({_seconds(forecast.in_series)})</div>")


def _row(name: str, track: str, title: str = "") -> str:
    return f'<div class="row"><div class="name" title="{title}">{name}</div><div class="track">{track}</div></div>'


def _waves(forecast: Forecast, span: float) -> Iterable[str]:
    waves = forecast.trace.waves()
    for number, wave in enumerate(waves, 1):
        start, end = min(visit.start for visit in wave), max(visit.end for visit in wave)
        if end > start:
            named = f"wave {number}" if (end - start) / span >= ROOM else str(number)
            yield _box("wave", start, end, span, named, f"wave {number}: {_seconds(end - start)}")
    if not waves:
        yield _box("said not", 0, 0, span, "no waves: each as soon as it can")


def _lane(name: str, visits: Sequence[Visit], forecast: Forecast, span: float) -> str:
    """The bars of one node. Its seconds stand in a bar or beside it; with several bars, only where there is room."""
    critical = [visit for visit in visits if (visit.node, visit.visit) in forecast.critical]
    shown = _text(one_line(name))
    named = f"<b>◆ {shown}</b>" if critical else shown
    track: list[str] = []
    for visit in visits:
        track += _bar(visit, visit in critical, alone=len(visits) == 1, span=span)
    for event in forecast.trace.of("refused"):
        if event["node"] == name:
            free = max(span - event["t"], event["t"] - visits[-1].end if visits else 0.0)
            mark = "✗ refused" if free / span >= ROOM else "✗"
            track.append(_beside(event["t"], span, mark, _text(f"refused: {event['why']}")))
    if not track:
        blocked = any(event["node"] == name for event in forecast.trace.of("blocked"))
        track.append(_box("said not", 0, 0, span, "blocked: does not run" if blocked else "does not run"))
    return _row(named, "".join(track), shown)


def _bar(visit: Visit, critical: bool, alone: bool, span: float) -> Iterable[str]:
    over, lasted = visit.end + visit.wait, _seconds(visit.seconds)
    inside, wide = visit.seconds / span >= ROOM, visit.wait / span >= ROOM
    waited = f", then waits {_seconds(visit.wait)} at the barrier" if visit.wait else ""
    title = _text(f"{one_line(visit.node)}, visit {visit.visit}: {lasted}{waited}")
    yield _box("bar critical" if critical else "bar", visit.start, visit.end, span, lasted if inside else "", title)
    if visit.wait:
        yield _box("wait", visit.end, over, span, f"<span>{lasted}</span>" if wide and not inside else "", title)
    if alone and not (wide or inside):
        yield _beside(over, span, lasted, title, visit.start)


def _beside(at: float, span: float, text: str, title: str, before: float | None = None) -> str:
    """Text to the right of a moment; where there is no room, to the left of it, or of `before`."""
    if 1 - at / span >= ROOM:
        return _box("said", at, at, span, text, title)
    before = at if before is None else before
    return f'<div class="said" style="right:{100 * (1 - before / span):.2f}%" title="{title}">{text}</div>'


def _box(kind: str, start: float, end: float, span: float, text: str = "", title: str = "") -> str:
    width = f"width:{100 * (end - start) / span:.2f}%" if end > start else ""
    return f'<div class="{kind}" style="left:{100 * start / span:.2f}%;{width}" title="{title}">{text}</div>'


def _scale(span: float) -> Iterable[str]:
    step = next(step for step in round_steps() if span / step <= 4.5)
    for number in range(int(span / step + 1e-9) + 1):
        at = number * step
        unit = " s" if number == 0 else ""
        yield _box("tick", at, at, span)
        if at / span < 0.95:
            yield _box("said", at, at, span, f"{at:g}{unit}")


def round_steps() -> Iterable[float]:
    """0.01, 0.02, 0.05, 0.1, ...: how far apart the marks of a scale may stand."""
    for power in range(-3, 308):
        for digit in (1, 2, 5):
            yield float(f"{digit}e{power}")


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _text(value: object) -> str:
    return escape(str(value))
