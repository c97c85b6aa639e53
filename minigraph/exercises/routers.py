"""Notebook 03: a router that passes a table of states, and how often a join below a choice runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union
from unittest import mock

from ..checks import Exercise, Wrong, first_wrong_row, is_function, is_number, rehearse
from ..clock import virtual_time
from ..engine import END, START, Graph
from ..models.stub import ScriptedModel

# ---- routers-1

LABELS = ("urgent", "hot", "warm", "cold")
# What the text says is not what counts: a model has read it, and wrote what it made of it.
TABLE: list[tuple[dict[str, Any], str]] = [
    ({"text": "I'd like fifty.", "intent": "order", "score": 0.95}, "hot"),
    ({"text": "URGENT!!! Buy our shoes!", "intent": "chat", "score": 0.1}, "cold"),
    ({"text": "The shop is on fire.", "intent": "urgent", "score": 0.1}, "urgent"),
    ({"text": "Fifty, and by tonight.", "intent": "urgent", "score": 0.9}, "urgent"),
    ({"text": "Twenty, please.", "intent": "order", "score": 0.8}, "hot"),
    ({"text": "Perhaps ten?", "intent": "order", "score": 0.79}, "warm"),
    ({"text": "Do you sell one?", "intent": "order", "score": 0.5}, "warm"),
    ({"text": "I collect catalogues.", "intent": "chat", "score": 0.49}, "cold"),
    ({"text": "Nice weather.", "intent": "chat", "score": 0}, "cold"),
]


def check_router(answer: Any) -> str | None:
    if wrong := is_function(answer):
        return wrong
    with _models_asked() as asked, virtual_time():
        rows = ((row, first_wrong_row(answer, [row])) for row in TABLE)
        (state, _), wrong = next(((row, wrong) for row, wrong in rows if wrong), (({}, ""), None))
        label = _label(answer, state) if wrong else ""
    if asked:
        return ("your router asks a model: models write, code reads. The node before it has asked already, and wrote "
                "'intent' and 'score'; read those")
    return wrong and f"{wrong}{_rule(state, label)}"


def _rule(state: dict[str, Any], label: Any) -> str:
    """What a wrong label for a state forgets."""
    if label is None:
        return "; a router returns its label: is a return missing?"
    if isinstance(label, Exception):
        return ""
    if label not in LABELS:
        return f"; the labels are 'urgent', 'hot', 'warm' and 'cold': {label!r} leads nowhere"
    if label == "urgent":
        return "; its intent is not urgent, whatever the text says: models write, code reads"
    if state["intent"] == "urgent":
        return "; an urgent intent goes first, whatever the score"
    return {0.8: "; 0.8 is hot: what reaches 0.8 is >= 0.8", 0.5: "; 0.5 is warm: what reaches 0.5 is >= 0.5"}.get(
        state["score"], "")


def _label(route: Callable[..., Any], state: dict[str, Any]) -> Any:
    try:
        return route(dict(state))
    except Exception as error:  # the table has told of it
        return error


@contextmanager
def _models_asked() -> Iterator[list[Any]]:
    """The scripted models that are asked meanwhile, whoever asks."""
    asked: list[Any] = []
    real = ScriptedModel.__call__

    def heard(model: ScriptedModel, *args: Any, **kwargs: Any) -> Any:
        asked.append(model)
        return real(model, *args, **kwargs)

    with mock.patch.object(ScriptedModel, "__call__", heard):
        yield asked


ROUTER = Exercise(
    name="routers-1",
    statement="""\
A model has read a mail and wrote `intent` (a word) and `score` (0 to 1, how keen). Write the router: a function of the
state that returns `"urgent"` for the intent `"urgent"`, whatever the score; else `"hot"` if the score reaches 0.8,
`"warm"` if it reaches 0.5, and `"cold"` below that.""",
    todo="write def answer(state): ... in place of the line with the three dots",
    check=check_router,
    why="Nine rows, no graph, no model: a router is the part of an agent that can be tested completely.",
    hints=[
        "A router is a plain function: def route(state): ... return a label. It reads state['intent'] and "
        "state['score'], and nothing else.",
        "Ask for the intent first; an urgent mail must not get as far as the score.",
        "def route(state): if state['intent'] == 'urgent': return 'urgent'. Then the bands from the top: "
        ">= 0.8, >= 0.5, and what is left.",
    ],
    solution="""\
def answer(state):
    if state["intent"] == "urgent":
        return "urgent"
    if state["score"] >= 0.8:
        return "hot"
    return "warm" if state["score"] >= 0.5 else "cold"
""",
    wrong={
        "a model inside": Wrong("""\
from minigraph.models.base import Message
from minigraph.models.stub import ScriptedModel
model = ScriptedModel(lambda messages, tools: "urgent" if "URGENT" in messages[0].content else "hot", latency=1.0)

def answer(state):
    return model([Message("user", "urgent, hot, warm or cold? " + state["text"])]).text
""", "models write, code reads"),
        "> 0.8": Wrong("""\
def answer(state):
    if state["intent"] == "urgent":
        return "urgent"
    return "hot" if state["score"] > 0.8 else "warm" if state["score"] >= 0.5 else "cold"
""", "0.8 is hot"),
        "> 0.5": Wrong("""\
def answer(state):
    if state["intent"] == "urgent":
        return "urgent"
    return "hot" if state["score"] >= 0.8 else "warm" if state["score"] > 0.5 else "cold"
""", "0.5 is warm"),
        '"Urgent"': Wrong("""\
def answer(state):
    if state["intent"] == "urgent":
        return "Urgent"
    return "hot" if state["score"] >= 0.8 else "warm" if state["score"] >= 0.5 else "cold"
""", "the labels are 'urgent', 'hot', 'warm' and 'cold'"),
        "the score before the intent": Wrong("""\
def answer(state):
    if state["score"] >= 0.8:
        return "hot"
    if state["intent"] == "urgent":
        return "urgent"
    return "warm" if state["score"] >= 0.5 else "cold"
""", "an urgent intent goes first"),
        "reads the text again": Wrong("""\
def answer(state):
    if "urgent" in state["text"].lower():
        return "urgent"
    return "hot" if state["score"] >= 0.8 else "warm" if state["score"] >= 0.5 else "cold"
""", "whatever the text says: models write, code reads"),
        "no return": Wrong("""\
def answer(state):
    if state["intent"] == "urgent":
        return "urgent"
    "hot" if state["score"] >= 0.8 else "warm" if state["score"] >= 0.5 else "cold"
""", "is a return missing?"),
        "called": Wrong("""\
def route(state):
    return "hot" if state["score"] >= 0.8 else "cold"
answer = route({"intent": "order", "score": 0.9})
""", "its name alone, without calling it"),
    })


# ---- routers-2

Label = Union[str, "list[str]"]
ROUTES: tuple[Label, ...] = ("left", ["left", "right"], "stop")  # what the router says in each of the three runs


def fork(label: Label = "left") -> Graph:
    """A new graph with a short way and a long way to `join`, and a way past it; its router returns `label`."""
    graph = Graph("fork").add_node("ask", _nothing).add_node("left", _nothing).add_node("right", _nothing)
    graph.add_node("more", _nothing).add_node("join", _nothing).add_edge(START, "ask")
    graph.add_router("ask", lambda state: label, {"left": "left", "right": "right", "stop": END})
    return graph.add_edge("left", "join").add_edge("right", "more").add_edge("more", "join").add_edge("join", END)


def _nothing(state: Any) -> dict[str, Any]:
    return {}


def check_join(answer: Any) -> str | None:
    said = list(answer.values()) if isinstance(answer, dict) else answer
    if not isinstance(said, (list, tuple)) or len(said) != len(ROUTES):
        return "three numbers are asked for, one for each run, in their order: answer = [..., ..., ...]"
    for number, (guess, label) in enumerate(zip(said, ROUTES, strict=True), 1):
        if guess is ... or guess is None:
            return f"run {number}: no number yet"
        if is_number(guess):
            return f"run {number}: how often does join run? a number is asked for, not {guess!r}"
        if guess != rehearse(fork(label)).visits.get("join", 0):
            return f"run {number}, the router says {_named(label)}: not {_times(guess)}; {_why(guess, label)}"
    return None


def _named(label: Label) -> str:
    return repr(label) if isinstance(label, str) else " and ".join(map(repr, label))


def _times(number: Any) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _why(guess: Any, label: Label) -> str:
    if label == "stop":
        return "END ends the branch, and no ticket goes on from there: what could bring one to join?"
    if guess > 1:
        return "it waits as long as another ticket can still arrive, and then it takes all its tickets at once"
    return "who can still reach it, once the tickets under way have come in? Nobody: then it need not wait"


JOIN = Exercise(
    name="routers-2",
    statement="""\
`draw(fork("left"))` shows two ways to `join`: a short one by `left`, a long one by `right` and `more`. How often does
`join` run if the router of `ask` returns (1) `"left"`, (2) `["left", "right"]`, (3) `"stop"`, which leads to END?
Answer with a list of three numbers.""",
    todo="put three numbers in place of the dots: answer = [..., ..., ...]",
    check=check_join,
    why="Nobody told join how many to wait for: it asks who can still arrive, takes what came, and runs once.",
    hints=[
        "Walk the tickets by hand in draw(fork('left')): who holds one after ask has run?",
        "A node that holds a ticket waits for those that can still arrive, and for no others. After 'left', "
        "can right still get a ticket?",
        "Running takes all the tickets a node holds, so two that came by two ways make one visit. And a ticket "
        "that goes to END is over.",
    ],
    solution="answer = [1, 1, 0]",
    wrong={
        "never": Wrong("answer = [0, 1, 0]", "who can still reach it"),
        "twice": Wrong("answer = [1, 2, 0]", "it takes all its tickets at once"),
        "past END": Wrong("answer = [1, 1, 1]", "END ends the branch"),
        "waits for ever": Wrong("answer = ['never', 1, 0]", "a number is asked for"),
        "one number": Wrong("answer = 1", "three numbers are asked for"),
    })


EXERCISES = [ROUTER, JOIN]
