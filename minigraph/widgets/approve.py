"""A gate in a notebook: the question with its buttons, and the click resumes the run.

    desk = approve(run_graph(graph, {"draft": "Dear Ada"}))     # a cell that ends so shows the question
    desk.state["approved"]                                      # in a later cell; until the click it is not there

The cell does not wait for the click: a notebook that waits can run no further cell. Where nobody can click, headless or
without ipywidgets, `answers` speaks for the person, and without it the questions are shown as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape
from typing import Any

from ..engine import GraphState
from ..journal import JournalError
from ..palette import FAINT, INK, PAPER, RULE
from ..resume import resume_graph
from ..shape import GraphError
from .where import can_move

Resume = Callable[[GraphState, "dict[str, Any]"], GraphState]  # the paused state, the answers -> the state after them
Asked = Callable[[str, str], Any]  # gate, question -> the answer


def approve(state: GraphState, answers: Mapping[str, Any] | Asked | None = None, *, resume: Resume | None = None,
            **options: Any) -> Desk:
    """The questions that a paused run asks, with a button for each choice; it shows itself in a notebook.

    answers: what a person would say where nobody can click: gate -> answer (a list of them for a gate that asks again
    on every lap), or a function of gate and question. `options` go to resume_graph: journal=, observer= and the like;
    `resume` replaces it, for a workflow that resumes in a way of its own. `.state` of what is returned is the run as it
    stands. TypeError for what is no state of a run.
    """
    if not isinstance(state, GraphState) or state._graph is None and resume is None:
        raise TypeError(f"approve(state) takes what run_graph or resume_graph returned, not {type(state).__name__}"
                        + ("; an unpickled state no longer knows its graph: resume_graph(graph, state.journal) does"
                           if isinstance(state, GraphState) else ""))
    desk = Desk(state, resume or (lambda state, given: resume_graph(state._graph, state.journal, given, **options)))
    if answers is not None and not can_move():
        desk.speak(answers)
    return desk


class Desk:
    """Where a run and a person meet: `.state` is the run as it stands, `answer(gate=...)` what a click does."""

    def __init__(self, state: GraphState, resume: Resume) -> None:
        self.state, self._resume = state, resume
        self.trouble = ""  # why the last answer was refused

    def answer(self, **answers: Any) -> GraphState:
        """Resumes the run with these answers, gate -> answer; GraphError for a refused one, and the gate waits."""
        return self.give(answers)

    def give(self, answers: Mapping[str, Any]) -> GraphState:
        """The same, for gates whose names are no Python names, as "outer/ask" is."""
        self.state = self._resume(self.state, dict(answers))
        return self.state

    def speak(self, answers: Mapping[str, Any] | Asked) -> None:
        """Gives one answer after another, until the run is over or nobody knows an answer."""
        script = {gate: list(said) if isinstance(said, (list, tuple)) else [said]
                  for gate, said in answers.items()} if isinstance(answers, Mapping) else None
        while self.state.status == "paused":
            for gate, question in self.state.waiting.items():
                if script is None:
                    self.give({gate: answers(gate, question)})  # type: ignore[operator]
                elif script.get(gate):
                    self.give({gate: script[gate].pop(0)})
                else:
                    continue
                break
            else:
                return

    def __repr__(self) -> str:
        if not self.state.waiting:
            return f"run {self.state.status}: nobody waits for an answer"
        return "\n".join(f"{gate} waits for an answer: {question}" + _listed(question)
                         for gate, question in self.state.waiting.items())

    @cached_property
    def controls(self) -> Controls:
        """The questions and the buttons. ImportError without ipywidgets."""
        return Controls(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {"text/plain": repr(self)}
        return {**self.controls.box._repr_mimebundle_(), **bundle} if can_move() else bundle


def _listed(question: Any) -> str:
    choices = getattr(question, "choices", None)
    return f" [{' / '.join(choices)}]" if choices else ""


class Controls:
    """A row for each question: its text, then a button a choice, or a field and a button. Needs ipywidgets."""

    def __init__(self, desk: Desk) -> None:
        import ipywidgets as widgets

        self.desk, self.widgets = desk, widgets
        self.box = widgets.VBox()
        self.draw()

    def draw(self, refused: str = "", why: str = "") -> None:
        """Shows the run as it stands; `refused` is the gate whose answer was none, and why."""
        state = self.desk.state
        rows = [self.row(gate, question, why if gate == refused else "") for gate, question in state.waiting.items()]
        if not rows:
            rows = [self.widgets.HTML(_card(f"<b>run {escape(state.status)}</b>: nobody waits for an answer"))]
        elif why and refused not in state.waiting:
            rows.append(self.widgets.HTML(_card(f"✗ {escape(why)}")))
        self.box.children = rows

    def row(self, gate: str, question: Any, why: str) -> Any:
        text = f"<b>{escape(gate)}</b> asks<div class='mg-question'>{escape(str(question))}</div>"
        text += f"<div>✗ {escape(why)}</div>" if why else ""
        choices = getattr(question, "choices", None)
        if choices:
            inputs = [self.button(choice, gate, _says(choice)) for choice in choices]
        else:
            field = self.widgets.Text(placeholder="your answer", continuous_update=False)
            inputs = [field, self.button("answer", gate, lambda: field.value)]
        return self.widgets.VBox([self.widgets.HTML(_card(text)), self.widgets.HBox(inputs)])

    def button(self, label: str, gate: str, answer: Callable[[], Any]) -> Any:
        button = self.widgets.Button(description=label, tooltip=f"answer {gate}: {label}")
        button.on_click(lambda _: self.clicked(gate, answer()))
        return button

    def clicked(self, gate: str, answer: Any) -> None:
        """The click: no button can be pressed again while the run goes on."""
        for row in self.box.children:
            for control in row.children[1].children:
                control.disabled = True
        try:
            self.desk.give({gate: answer})
        except (GraphError, JournalError) as error:
            self.draw(gate, str(error))
        else:
            self.draw()


def _says(choice: str) -> Callable[[], str]:
    return lambda: choice


def _card(html: str) -> str:
    return f"{_STYLE}<div class='mg-ask'>{html}</div>"


_STYLE = f"""<style>
.mg-ask {{ background: {PAPER}; color: {INK}; border: 1px solid {RULE}; border-left: 4px solid {FAINT};
  border-radius: 4px; padding: 6px 12px; font: 13px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }}
.mg-ask .mg-question {{ white-space: pre-wrap; font-size: 15px; }}
</style>"""
