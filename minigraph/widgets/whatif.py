"""What if a node took longer? A slider a node, and both schedules are run anew at every move of it.

    whatif(graph, {"scan_web": 1.9, "write": 11.3})     # in a notebook: sliders, and the bars of "waves" and "ready"
    foretell(graph, {"scan_web": 0.1}, "waves").seconds  # the same without a slider

The runs are real ones, in virtual time, of the graph's shape with nodes that sleep; see foretell.py. Without widgets
the chart of the times given is shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from html import escape
from typing import Any

from ..engine import Graph
from ..gantt import Chart, chart
from ..trace import one_line
from .bars import round_steps, side_by_side
from .foretell import Choice, Forecast, checked_choices, checked_latencies, foretell, labels_back, usual_choice
from .where import can_move

__all__ = ["Forecast", "WhatIf", "foretell", "whatif"]

SCHEDULES = ("waves", "ready")


def whatif(graph: Graph, latencies: Mapping[str, float] | None = None, *, choices: Mapping[str, Choice] | None = None,
           most: float | None = None) -> WhatIf:
    """The graph with a latency slider a node; it shows itself in a notebook.

    latencies: node -> seconds to begin with (default 1). choices: node -> the label its router says, as `foretell`
    takes it. most: where the sliders end, in seconds (default: twice the longest, at least 3).
    """
    return WhatIf(graph, latencies, choices, most)


class WhatIf:
    """Latencies and what follows from them: `.forecasts`, which `set` and `choose` make anew."""

    def __init__(self, graph: Graph, latencies: Mapping[str, float] | None, choices: Mapping[str, Choice] | None,
                 most: float | None) -> None:
        self.graph = graph
        self.latencies = checked_latencies(graph, latencies)  # node -> seconds
        self.choices = checked_choices(graph, choices)  # node -> what its router says
        self.begun_with = dict(self.latencies), dict(self.choices)
        longest = max(self.latencies.values(), default=0.0)
        self.most = max(3.0, 2 * longest) if most is None else most
        if not 0 < self.most < math.inf or self.most < longest:
            raise ValueError(f"most={most!r}: the sliders end at a time above 0, and not below the {longest:g} s given")
        self.forecasts: dict[str, Forecast] = {}  # schedule -> its forecast
        self._foretell()

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The text twin: a line a schedule."""
        return "\n".join(map(str, self.forecasts.values()))

    @property
    def html(self) -> str:
        """The bars of both schedules."""
        return side_by_side([self.forecasts[schedule] for schedule in SCHEDULES], list(self.graph.nodes))

    @property
    def still(self) -> Chart:
        """The chart of both schedules, for where nothing moves."""
        named = [f"{schedule}, critical path {_path(self.forecasts[schedule])}" for schedule in SCHEDULES]
        return chart([self.forecasts[schedule].trace for schedule in SCHEDULES], labels=named)

    def set(self, node: str, seconds: float) -> None:
        """Gives one node another latency."""
        self.latencies = checked_latencies(self.graph, {**self.latencies, node: seconds})
        self._foretell()

    def choose(self, node: str, choice: Choice) -> None:
        """Lets one router say something else."""
        self.choices = checked_choices(self.graph, {**self.choices, node: choice})
        self._foretell()

    def reset(self) -> None:
        """Back to what it began with."""
        self.latencies, self.choices = dict(self.begun_with[0]), dict(self.begun_with[1])
        self._foretell()

    def _foretell(self) -> None:
        self.forecasts = {schedule: foretell(self.graph, self.latencies, schedule, choices=self.choices)
                          for schedule in SCHEDULES}

    @cached_property
    def controls(self) -> Controls:
        """Sliders, menus and the picture, made when first asked for. ImportError without ipywidgets."""
        return Controls(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if not can_move():
            return self.still._repr_mimebundle_(include, exclude)
        return {**self.controls.box._repr_mimebundle_(), "text/plain": self.text}


def _path(forecast: Forecast) -> str:
    return " -> ".join(name for name, _ in forecast.critical)


# ---- the controls


class Controls:
    """A slider a node and a menu a router, which ask `what`, and the picture of what it says. Needs ipywidgets."""

    def __init__(self, what: WhatIf) -> None:
        import ipywidgets as widgets

        self.what = what
        self.sliders = {name: self._slider(name) for name in what.graph.nodes}
        self.menus = {name: self._menu(name) for name in what.graph.routers}
        self.picture = widgets.HTML(what.html)
        back = widgets.Button(description="Back to the beginning", layout={"width": "auto"})
        back.on_click(self._restore)
        settings = widgets.GridBox([*self.sliders.values(), *self.menus.values(), back], layout={
            "grid_template_columns": "repeat(auto-fill, minmax(300px, 1fr))", "grid_gap": "0 16px"})
        self.box = widgets.VBox([settings, self.picture])

    def _slider(self, name: str) -> Any:
        import ipywidgets as widgets

        most = self.what.most
        step = next(step for step in round_steps() if most / step <= 60)
        slider = widgets.FloatSlider(self.what.latencies[name], min=0, max=most, step=step, readout_format=".2f",
                                     **labelled(name))
        slider.observe(partial(self._moved, name), "value")
        return slider

    def _menu(self, name: str) -> Any:
        import ipywidgets as widgets

        menu = widgets.Dropdown(options=_options(self.what, name), value=_fixed(self.what.choices[name]),
                                **labelled(f"{name} says"))
        menu.observe(partial(self._chosen, name), "value")
        return menu

    def _moved(self, name: str, event: Mapping[str, Any]) -> None:
        if event["new"] != self.what.latencies[name]:  # after a reset it is what it is already
            self.what.set(name, event["new"])
            self.picture.value = self.what.html

    def _chosen(self, name: str, event: Mapping[str, Any]) -> None:
        if event["new"] != _fixed(self.what.choices[name]):
            self.what.choose(name, event["new"])
            self.picture.value = self.what.html

    def _restore(self, _: Any) -> None:
        self.what.reset()
        for name, slider in self.sliders.items():
            slider.value = self.what.latencies[name]
        for name, menu in self.menus.items():
            menu.value = _fixed(self.what.choices[name])
        self.picture.value = self.what.html


def labelled(text: str) -> dict[str, Any]:
    """How a control is named: with the text as it is, cut off where there is no room, and whole in the tooltip."""
    shown = one_line(text)
    # The class keeps MathJax from making a formula of a name with dollar signs in it.
    return {"description": f'<span class="mathjax_ignore">{escape(shown)}</span>', "description_allow_html": True,
            "tooltip": shown, "style": {"description_width": "90px"}, "layout": {"width": "auto"}}


def _options(what: WhatIf, name: str) -> list[tuple[str, Choice]]:
    """What a router can be told to say: each label; for one that leads back also once, and then on."""
    onward, back = usual_choice(what.graph, name), labels_back(what.graph, name)
    options: list[Choice] = list(what.graph.routers[name][1])
    options += [(label, onward) for label in back if label != onward]
    if _fixed(what.choices[name]) not in options:
        options.append(_fixed(what.choices[name]))
    return [(_said(choice, back), choice) for choice in options]


def _said(choice: Choice, back: Sequence[str]) -> str:
    if not isinstance(choice, str):
        return one_line(", then ".join(choice))
    return one_line(f"{choice}, every time" if choice in back else choice)


def _fixed(choice: Choice) -> Choice:
    return choice if isinstance(choice, str) else tuple(choice)
