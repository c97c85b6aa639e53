"""What two traces of one job say about each other; every figure is computed from them, and none stands here.

    figures = compare(gather_trace, brief_trace)
    figures.ratio, figures.overlap      # how much faster the graph gathers, and how much of that is overlap
    print(figures)                      # a table, and the honest lines under it
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..trace import Trace


@dataclass(frozen=True)
class Comparison:
    """Seconds of a graph and of a loop that did the same job. Gathering ends with the last scan, or tool call."""

    graph_gathering: float
    graph_total: float
    loop_gathering: float
    loop_total: float
    series: float  # how long the scans would take one after another
    graph_asked: tuple[str, ...]  # the sources the graph scanned
    loop_asked: tuple[str, ...]  # the tools the loop called, each once
    loop_calls: int

    @property
    def graph_answering(self) -> float:
        """What is left of the graph's time when everything is gathered."""
        return self.graph_total - self.graph_gathering

    @property
    def loop_answering(self) -> float:
        """What is left of the loop's time when everything is gathered."""
        return self.loop_total - self.loop_gathering

    @property
    def ratio(self) -> float:
        """How many times as long the loop gathers."""
        return _over(self.loop_gathering, self.graph_gathering)

    @property
    def overlap(self) -> float:
        """How much of `ratio` is overlap: the scans in series, over the scans at once."""
        return _over(self.series, self.graph_gathering)

    @property
    def saved(self) -> float:
        """Which part of the loop's total the graph saves, from 0 to 1; below 0 if the graph takes longer."""
        return 1 - _over(self.graph_total, self.loop_total)

    @property
    def gained(self) -> float:
        """Seconds the graph gains while gathering."""
        return self.loop_gathering - self.graph_gathering

    @property
    def given_back(self) -> float:
        """Seconds of that which it gives back while answering."""
        return self.graph_answering - self.loop_answering

    def to_dict(self) -> dict[str, Any]:
        """All figures under their names, for JSON; seconds to the microsecond, a ratio without an end is None."""
        names = ("graph_gathering", "graph_answering", "graph_total", "loop_gathering", "loop_answering", "loop_total",
                 "series", "ratio", "overlap", "saved", "gained", "given_back")
        figures: dict[str, Any] = {name: round(value, 6) if math.isfinite(value := getattr(self, name)) else None
                                   for name in names}
        return {**figures, "graph_asked": list(self.graph_asked), "loop_asked": list(self.loop_asked),
                "loop_calls": self.loop_calls}

    def rows(self) -> list[tuple[str, str, str, str]]:
        """(what, graph, loop, difference) as text, a row a figure."""
        less = "less" if self.saved >= 0 else "more"
        return [
            ("", "graph", "loop", ""),
            ("gathering", _s(self.graph_gathering), _s(self.loop_gathering), f"{self.ratio:.2f} times as fast"),
            ("answering", _s(self.graph_answering), _s(self.loop_answering), ""),
            ("total", _s(self.graph_total), _s(self.loop_total), f"{abs(self.saved):.0%} {less}".replace("%", " %")),
            ("sources", str(len(self.graph_asked)), str(len(self.loop_asked)), f"the loop in {self.loop_calls} calls"),
        ]

    def lines(self) -> list[str]:
        """What an honest reader says about the figures, a sentence each."""
        early, late = round(self.graph_gathering, 1), round(self.loop_gathering, 1)
        published = f"{_over(late, early):.1f}"
        beware = f", not {published}: that comes of dividing rounded figures, {late} by {early}"
        back = "gives back" if self.given_back >= 0 else "gains another"
        sign = "+" if self.given_back >= 0 else "-"
        return [
            f"Gathering is {self.ratio:.2f} times as fast{beware if published != f'{self.ratio:.1f}' else ''}.",
            f"One after another the scans would take {_s(self.series)}: overlap explains a factor of "
            f"{self.overlap:.1f}, and round trips to the model that are not made explain the rest.",
            f"The graph gains {_s(self.gained)} gathering and {back} {_s(abs(self.given_back))} answering "
            f"({self.graph_answering:.2f} against {_s(self.loop_answering)}): {self.loop_total:.2f} "
            f"- {self.gained:.2f} {sign} {abs(self.given_back):.2f} = {_s(self.graph_total)}. "
            f"It has more to write about.",
            f"The graph asked {_listed(self.graph_asked)}, for its shape says so; "
            f"the loop asked {_listed(self.loop_asked)}, and had enough.",
        ]

    def to_text(self) -> str:
        """The table, and the lines under it."""
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        table = [f"{what:{widths[0]}}  {graph:>{widths[1]}}  {loop:>{widths[2]}}  {note}".rstrip()
                 for what, graph, loop, note in rows]
        return "\n".join([*table, "", *self.lines()])

    __str__ = to_text


ASSUMPTIONS = (
    "One run each: how much such figures vary from run to run was not measured.",
    "Measured is when each tool call of the loop was done, and its total. How its time splits between the model and "
    "the tools is an assumption, which decides where its calls begin, and no figure above.",
)  # to be said wherever the recorded times were used


def compare(graph: Trace, loop: Trace) -> Comparison:
    """The figures of a gather's trace beside those of a brief's. ValueError if either is a trace of something else."""
    scans = [visit for visit in graph.visits() if visit.node.startswith("scan_")]
    calls = [call for call in loop.calls() if call.kind == "tool"]
    if not scans:
        raise ValueError(f"the first trace, of {graph.name!r}, has no node named scan_...: it must be of a gather")
    if loop.visits() or not loop.calls():
        raise ValueError(f"the second trace, of {loop.name!r}, is not of a loop: it must be of a brief")
    return Comparison(
        graph_gathering=max(scan.end for scan in scans),
        graph_total=graph.seconds,
        loop_gathering=max((call.end for call in calls), default=0.0),
        loop_total=loop.seconds,
        series=sum(scan.seconds for scan in scans),
        graph_asked=tuple(dict.fromkeys(scan.node.removeprefix("scan_") for scan in scans)),
        loop_asked=tuple(dict.fromkeys(call.name for call in calls)),
        loop_calls=len(calls),
    )


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"


def _over(dividend: float, divisor: float) -> float:
    return dividend / divisor if divisor else math.inf


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else "nothing"
