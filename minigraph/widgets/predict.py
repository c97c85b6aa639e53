"""In which wave does each node run? The guess comes first, and only then the waves.

    quiz = predict(graph)                           # in a notebook: a menu a node, and a button
    quiz.check({"slow_a": 1, "join": 2})            # the same without widgets
    # ✗ You said 'join' runs in wave 2; it runs in wave 3, for it waits for 'slow_b', which runs in wave 2.

The waves are those of a run, in virtual time, of the graph's shape with nodes that sleep; see foretell.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Union

from ..draw import draw
from ..engine import Graph
from ..palette import BAND, FAILED, FAINT, GREEN, INK, PAPER, RULE
from ..shape import meant
from ..trace import one_line
from ..words import listed
from .bars import FONT
from .foretell import Choice, Forecast, checked_choices, foretell
from .whatif import labelled
from .where import can_move

__all__ = ["Judgement", "Predict", "judge", "predict"]

Guess = Union[int, Sequence[int], None]  # the wave; the waves, of a node that runs again; or None, for not at all
NEVER = "not at all"


def predict(graph: Graph, *, choices: Mapping[str, Choice] | None = None) -> Predict:
    """A question about the waves of `graph`; it shows itself in a notebook.

    choices: node -> the label its router says, as `foretell` takes it; the question says what is supposed.
    """
    return Predict(graph, choices)


@dataclass(frozen=True)
class Judgement:
    """What is said of a guess: true if it is right; `nodes` are those that were guessed wrong."""

    text: str
    nodes: list[str]

    def __bool__(self) -> bool:
        return not self.nodes

    def __repr__(self) -> str:
        return f"{'✗' if self.nodes else '✓'} {self.text}"


# ---- judging


def judge(guess: Mapping[str, Guess], forecast: Forecast, graph: Graph) -> Judgement:
    """The first difference between the waves guessed and those of the forecast, in one sentence, with the reason.

    The first is that of the earliest wave in which a node was expected and did not run, or the other way round.
    """
    was, said = waves_by_node(forecast, graph), {name: _waves(guess.get(name)) for name in graph.nodes}
    wrong = [name for name in graph.nodes if said[name] != was[name]]
    if not wrong:
        ran = sum(map(bool, was.values()))
        return Judgement(f"Right: {_count(ran, 'node')} in {_count(len(forecast.trace.waves()), 'wave')}.", [])
    first = min(wrong, key=lambda name: min(_parting(said[name], was[name])))  # the first of the graph, of several
    return Judgement(_told(first, said[first], was[first], forecast, graph), wrong)


def _is_guess(guess: object) -> bool:
    waves = guess if isinstance(guess, (list, tuple)) else [] if guess is None else [guess]
    return all(type(wave) is int and wave > 0 for wave in waves)


def waves_by_node(forecast: Forecast, graph: Graph) -> dict[str, list[int]]:
    """Node -> the waves it ran in; [] for one that did not run."""
    found: dict[str, list[int]] = {name: [] for name in graph.nodes}
    for number, wave in enumerate(forecast.trace.waves(), 1):
        for visit in wave:
            found[visit.node].append(number)
    return found


def _waves(guess: Guess) -> list[int]:
    return [] if guess is None else [guess] if isinstance(guess, int) else sorted(guess)


def _parting(said: Sequence[int], was: Sequence[int]) -> set[int]:
    """The waves that only one of the two has."""
    return set(said) ^ set(was) or {0}  # the same wave twice is wrong from the beginning


def _told(name: str, said: list[int], was: list[int], forecast: Forecast, graph: Graph) -> str:
    where = min(_parting(said, was))
    supposed = f"You said {name!r} {_runs(said)}; it {_runs(was)}"
    if where in was:
        return f"{supposed}, because {_what_leads(name, where, forecast, graph)}."
    if later := [wave for wave in was if wave > where]:
        return f"{supposed}, because {_waits_for(name, later[0], forecast, graph)}."
    return f"{supposed}, because {_why_not(name, forecast, graph)}."


def _runs(waves: Sequence[int]) -> str:
    return f"runs in wave{'s' * (len(waves) > 1)} {listed(list(map(str, waves)))}" if waves else "does not run"


def _waits_for(name: str, wave: int, forecast: Forecast, graph: Graph) -> str:
    """Why a node cannot run before this wave: what it waits for in the one before."""
    before = _leading(name, wave - 1, forecast, graph)
    return f"it waits for {_names(before)}, which {'run' if len(before) > 1 else 'runs'} in wave {wave - 1}"


def _what_leads(name: str, wave: int, forecast: Forecast, graph: Graph) -> str:
    """Why a node runs in this wave already."""
    if wave == 1:
        return "START leads to it, and there is nothing else to wait for"
    before = _leading(name, wave - 1, forecast, graph)
    done = "are done" if len(before) > 1 else "is done"
    return f"all it waits for is over when {_names(before)} of wave {wave - 1} {done}"


def _leading(name: str, wave: int, forecast: Forecast, graph: Graph) -> list[str]:
    """Who in a wave has an edge to the node, else who leads to it, else all of the wave."""
    plan = graph.plan()
    ran = [visit.node for visit in forecast.trace.waves()[wave - 1]]
    direct = [node for node in ran if name in plan.outs[node] or (node, name) in plan.back]
    return direct or [node for node in ran if name in plan.below(node)] or ran


def _why_not(name: str, forecast: Forecast, graph: Graph) -> str:
    """Why a node does not run (again): it was refused, or a router says something else, or what is above failed."""
    reasons = [str(event["why"]) for event in forecast.trace.of("refused") if event["node"] == name]
    for event in forecast.trace.of("route"):
        targets = graph.routers[event["router"]][1]
        elsewhere = [dst for label, ends in targets.items() if label != event["label"] for dst in ends]
        if any(dst == name or dst in graph.nodes and name in graph.plan().below(dst) for dst in elsewhere):
            reasons.append(f"the router on {event['router']!r} says {event['label']!r}")
    reasons += [str(event["why"]) for event in forecast.trace.of("blocked") if event["node"] == name]
    ran = waves_by_node(forecast, graph)[name]
    return [*reasons, "nothing leads to it again" if ran else "only a failure leads to it"][0]


# ---- the question


class Predict:
    """A question about the waves of a graph. `.supposed` is what is given; `.check(guess)` judges and reveals."""

    def __init__(self, graph: Graph, choices: Mapping[str, Choice] | None) -> None:
        self.graph, self.choices = graph, checked_choices(graph, choices)
        self._forecast = foretell(graph, schedule="waves", choices=self.choices)

    def __repr__(self) -> str:
        return self.text

    @property
    def supposed(self) -> str:
        """What the routers say in this run: "Suppose the router on 'classify' says 'task'."; "" without routers."""
        says = [f"the router on {name!r} says {choice!r}" if isinstance(choice, str) else
                f"the router on {name!r} says {', then '.join(map(repr, choice))}"
                for name, choice in self.choices.items()]
        return f"Suppose {listed(says)}." if says else ""

    @property
    def text(self) -> str:
        """The question, and not the answer."""
        sample = ", ".join(f"{name!r}: ..." for name in list(self.graph.nodes)[:2])
        more = ", ..." if len(self.graph.nodes) > 2 else ""
        return "\n".join(filter(None, [
            f"In which wave does each node of {self.graph.name!r} run?", self.supposed,
            f"Answer with .check({{{sample}{more}}}): the number of the wave, a list of them, or None for not at all.",
            draw(self.graph).text]))

    def check(self, guess: Mapping[str, Guess]) -> Judgement:
        """What is to be said of the guess. ValueError for a node there is not, or of which nothing is said."""
        for name in guess:
            if name not in self.graph.nodes:
                raise ValueError(f"no such node {name!r}; {meant(str(name), self.graph.nodes)}".rstrip("; "))
        missing = [name for name in self.graph.nodes if name not in guess]
        if missing:
            raise ValueError(f"say something about {_names(missing)} too: a wave, or None for not at all")
        for name in guess:
            if not _is_guess(guess[name]):
                raise ValueError(f"{name!r}: {guess[name]!r} is no wave; waves are numbered from 1")
        return judge(guess, self._forecast, self.graph)

    def reveal(self, guess: Mapping[str, Guess]) -> str:
        """The verdict on a guess and the real waves, as HTML."""
        judgement = self.check(guess)
        was = waves_by_node(self._forecast, self.graph)
        columns = [(f"wave {number}", [_chip(name, _hit(number, _waves(guess[name]), was[name]), guess[name])
                                       for name in was if number in was[name]])
                   for number in range(1, len(self._forecast.trace.waves()) + 1)]
        columns.append((NEVER, [_chip(name, not _waves(guess[name]), guess[name]) for name in was if not was[name]]))
        shown = "".join(f'<div class="wave"><b>{title}</b>{"".join(chips)}</div>' for title, chips in columns if chips)
        return f'{STYLE}<div class="mg-waves"><div class="said">{escape(repr(judgement))}</div>{shown}</div>'

    @cached_property
    def controls(self) -> Controls:
        """The question as widgets, made when first asked for. ImportError without ipywidgets."""
        return Controls(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if can_move():
            return {**self.controls.box._repr_mimebundle_(), "text/plain": self.text}
        data, about = draw(self.graph)._repr_mimebundle_()
        return {**data, "text/plain": self.text}, about


STYLE = f"""<style>
.mg-waves {{ background: {PAPER}; color: {INK}; font: {FONT}; padding: 10px 12px; border: 1px solid {RULE};
  border-radius: 4px; display: flex; flex-wrap: wrap; gap: 8px 14px; align-items: flex-start; }}
.mg-waves .said {{ flex: 1 0 100%; }}
.mg-waves .wave {{ background: {BAND}; border-left: 3px solid {FAINT}; padding: 4px 8px; max-width: 100%;
  box-sizing: border-box; }}
.mg-waves .chip {{ background: {PAPER}; border: 2px solid {GREEN}; border-radius: 4px; padding: 2px 8px; margin: 4px 0;
  overflow-wrap: anywhere; }}
.mg-waves .wrong {{ border: 2px dashed {FAILED}; }}
.mg-quiz {{ background: {PAPER}; color: {INK}; font: {FONT}; padding: 10px 12px; border: 1px solid {RULE};
  border-radius: 4px; }}
.mg-quiz img {{ max-width: 100%; height: auto; display: block; }}
</style>"""


def _hit(wave: int, said: Sequence[int], was: Sequence[int]) -> bool:
    """Is a wave of a node as it was said? Not if it was said of too many waves."""
    return wave in said and not set(said) - set(was)


def _chip(name: str, right: bool, guess: Guess) -> str:
    """One node of one wave: what is right, and what was said instead of it."""
    shown, said = escape(one_line(name)), _waves(guess)
    if right:
        return f'<div class="chip">✓ {shown}</div>'
    you = listed(list(map(str, said))) or NEVER
    return f'<div class="chip wrong">✗ {shown} <i>(you said {you})</i></div>'


# ---- the controls


class Controls:
    """A field a node, a button, and what is revealed when it is pressed. Needs ipywidgets."""

    def __init__(self, quiz: Predict) -> None:
        import ipywidgets as widgets

        self.quiz = quiz
        again = bool(quiz.graph.plan().back)  # then a node may run in several waves
        self.fields = {name: _text_field(name) if again else _menu(name, len(quiz.graph.nodes))
                       for name in quiz.graph.nodes}
        self.button = widgets.Button(description="Check", button_style="primary")
        self.button.on_click(self._checked)
        self.verdict = widgets.HTML()
        fields = widgets.GridBox(list(self.fields.values()), layout={
            "grid_template_columns": "repeat(auto-fill, minmax(260px, 1fr))", "grid_gap": "0 16px"})
        self.box = widgets.VBox([widgets.HTML(_question(quiz)), fields, self.button, self.verdict])

    def _checked(self, _: Any) -> None:
        try:
            guess = {name: parsed(field.value) for name, field in self.fields.items() if field.value.strip()}
            self.verdict.value = self.quiz.reveal(guess)
        except ValueError as error:
            self.verdict.value = f'{STYLE}<div class="mg-waves">{escape(str(error))}</div>'


def parsed(text: str) -> Guess:
    """The waves in a text: "2" or "2, 4", or "-" for none. ValueError for anything else."""
    if text.strip().casefold() in ("-", "–", "never", "none", NEVER):
        return None
    if not re.fullmatch(r"\s*\d+(\s*[,; ]\s*\d+)*\s*", text):
        raise ValueError(f"{text!r} is no wave: write its number, or several as in 2, 4, or - for not at all")
    return [int(number) for number in re.findall(r"\d+", text)]


def _menu(name: str, most: int) -> Any:
    import ipywidgets as widgets

    waves = [(f"in wave {number}", str(number)) for number in range(1, most + 1)]
    return widgets.Dropdown(options=[("in wave ...", ""), *waves, (NEVER, NEVER)], value="", **labelled(name))


def _text_field(name: str) -> Any:
    import ipywidgets as widgets

    return widgets.Text(placeholder="2, or 2, 4, or -", **labelled(name))


def _question(quiz: Predict) -> str:
    data, about = draw(quiz.graph)._repr_mimebundle_()
    text = escape(data["text/plain"])
    picture = f"<pre>{text}</pre>" if "image/png" not in data else (
        f'<img alt="{text}" width="{about["image/png"]["width"]}" src="data:image/png;base64,{data["image/png"]}">')
    return (f'{STYLE}<div class="mg-quiz">{picture}<p><b>In which wave does each node run?</b> '
            f"{escape(quiz.supposed)}</p></div>")


# ---- words


def _names(names: Sequence[str]) -> str:
    return listed(list(map(repr, names)))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
