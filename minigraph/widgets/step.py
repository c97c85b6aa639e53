"""A finished run, step by step: a slider through the picture, the bars and the blackboard before and after.

    step(trace)                         # in a notebook; arrow keys move the slider
    step(Trace.from_jsonl("monday.jsonl"))
    step(trace).film[3].written         # {'tags': (None, "['tea']")}: the same without a slider

What there is to see at a step is computed by a film (film.py); here are the slider and the button that plays it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..film import Film
from ..trace import Trace
from .where import can_move

INTERVAL = 900  # milliseconds from step to step, when it is played


def step(trace: Trace, graph: Any = None) -> Stepper:
    """The run with a slider through its steps; it shows itself in a notebook.

    `graph`: a Graph or what its describe() says, for a trace that does not hold it. Without ipywidgets, or with
    MINIGRAPH_HEADLESS set, the last step is shown as a still. TypeError for what is no Trace.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"step(trace) takes the Trace that observed the run, not a {type(trace).__name__}: pass one to "
                        "run_graph(graph, state, trace), or read one with Trace.from_jsonl(path)")
    return Stepper(Film(trace, graph))


class Stepper:
    """A film and its controls: `.film`, and `.controls` once they are asked for."""

    def __init__(self, film: Film) -> None:
        self.film = film

    def __repr__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The steps in words, a line each, and how things stand after the last."""
        lines = [f"{one.number + 1:3}. {one.t:.3f} s  {one.title}" for one in self.film]
        return "\n".join([*lines, "", self.film[-1].frame.text])

    @cached_property
    def controls(self) -> Controls:
        """The slider, the play button and the picture. ImportError without ipywidgets."""
        return Controls(self.film)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook shows: the controls, and for where there are none the last step as a still."""
        bundle = {"text/plain": self.text, "text/html": self.film.still(len(self.film) - 1)}
        return {**self.controls.box._repr_mimebundle_(), **bundle} if can_move() else bundle


class Controls:
    """A slider that asks the film. Needs ipywidgets."""

    def __init__(self, film: Film) -> None:
        import ipywidgets as widgets

        self.film, last = film, len(film) - 1
        self.picture = widgets.HTML(film.html(0))
        self.slider = widgets.IntSlider(0, min=0, max=last, description="step", readout=False,
                                        layout={"width": "auto", "flex": "1 1 auto"})
        self.play = widgets.Play(value=0, min=0, max=last, interval=INTERVAL, show_repeat=False)
        self.link = widgets.jslink((self.play, "value"), (self.slider, "value"))
        self.slider.observe(self._moved, "value")
        row = widgets.HBox([self.play, self.slider], layout={"width": "100%"})
        self.box = widgets.VBox([row, self.picture])

    def _moved(self, change: dict[str, Any]) -> None:
        self.picture.value = self.film.html(change["new"])
