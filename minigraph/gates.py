"""A gate is a node that asks a person: its branch waits, the others go on, and the answer is one key.

    graph.add_node(human_node("approve", "Send this? {draft}", "approved", choices=["yes", "no"]))
    state = run_graph(graph, {"draft": "Dear Ada"})         # state.waiting: {'approve': 'Send this? Dear Ada'}
    resume_graph(graph, state.journal, {"approve": "yes"})["approved"]          # 'yes'

Whoever asks in another way, in a chat say, answers in the same: `resume_graph` takes the answer, whenever it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from .journal import Paused, Question
from .models.base import Template, render, well_formed
from .shape import Node


def human_node(name: str, question: Template, out_key: str, *, choices: Sequence[str] | None = None,
               parse: Callable[[Any], Any] | None = None, max_visits: int | None = None,
               on_error: str | None = None) -> Node:
    """A gate: it asks `question` (a template with `{key}`, or a function of the blackboard) and writes the answer.

    choices: the answers there are, compared without regard to case and the space around; any other is refused. parse:
    makes a value of the answer (float, int, any function); a ValueError or TypeError of it refuses the answer, and
    the gate waits on. An answer is text or any other value that JSON knows.
    """
    if not isinstance(out_key, str):
        raise TypeError(f"human_node {name!r}: keys of the blackboard are strings; got {out_key!r}")
    if choices is not None and (isinstance(choices, str) or not choices
                                or not all(isinstance(choice, str) for choice in choices)):
        raise TypeError(f"human_node {name!r}: choices={choices!r} must be a list of strings, as in ['yes', 'no']")
    return Node(name, Ask(well_formed(question), out_key, tuple(choices) if choices else None, parse), "human",
                max_visits, on_error)


@dataclass(frozen=True)
class Ask:
    """The function of a human_node: to call it is to pause; `accept` makes what is written of an answer."""

    question: Template
    out_key: str
    choices: tuple[str, ...] | None = None
    parse: Callable[[Any], Any] | None = None

    def __repr__(self) -> str:
        return f"<ask a person -> {self.out_key}>"

    def __call__(self, state: Mapping[str, Any]) -> NoReturn:
        question = Question(render(self.question, state))
        question.choices = list(self.choices) if self.choices else None
        raise Paused({"": question})

    def accept(self, answer: Any) -> dict[str, Any]:
        """The keys to merge; ValueError or TypeError, in words for whoever answered, if this is no answer."""
        if self.choices:
            known = {choice.strip().casefold(): choice for choice in self.choices}
            if not isinstance(answer, str) or answer.strip().casefold() not in known:
                raise ValueError(f"choose one of {', '.join(map(repr, self.choices))}")
            answer = known[answer.strip().casefold()]
        return {self.out_key: self.parse(answer) if self.parse else answer}
