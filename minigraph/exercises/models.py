"""Notebook 07: a reply is checked before code believes it, and a recording knows what it has heard."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..checks import Exercise, Wrong, is_function, is_number, listed
from ..engine import START, Graph, GraphState, Node, run_graph
from ..models.base import Message
from ..models.replay import recorded
from ..models.stub import ScriptedModel

# ---- models-1

MAIL = 'The printer is on fire. {"room": 4, "from": {name}}'


def asked(answer: Any, says: str) -> tuple[GraphState, ScriptedModel] | str:
    """The run of a graph of the student's node alone, and the model it was given; or what is wrong with the node."""
    model = ScriptedModel(lambda messages, tools: says)
    node = answer(model)
    if not isinstance(node, Node):
        return f"answer(model) returned a {type(node).__name__}, and a node is asked for: return llm_node(...)"
    return run_graph(Graph("mail").add_node(node).add_edge(START, node.name), {"mail": MAIL, "name": "Ada"}), model


def check_rate(answer: Any) -> str | None:
    if wrong := is_function(answer):
        return wrong
    result = asked(answer, "0.8")
    if isinstance(result, str):
        return result
    state, model = result
    wrong = wrong_prompt(model, state) or wrong_value(state)
    if wrong:
        return wrong
    for says in ("From 0 to 1, I would say 1", "0.2, or 0.9 if it burns", "urgent", "7", "-0.5", "nan"):
        result = asked(answer, says)
        if not isinstance(result, str) and not result[0].errors:
            return refused_nothing(says, result[0])
    return None


def wrong_prompt(model: ScriptedModel, state: GraphState) -> str | None:
    """What is wrong with what the model was asked."""
    if not model.calls:
        if state.errors:
            return (f"the model is never asked, for the prompt cannot be made of a mail with braces in it "
                    f"({listed(state.errors.values())}): only render, or {{mail}}, leaves a value alone")
        return "the model that answer(model) was given is not asked: hand it on to llm_node"
    prompt = "\n".join(message.content for message in model.calls[0].messages)
    if "The printer is on fire." not in prompt:
        return f"the model was asked {prompt[:60]!r}, and has not seen the mail: {{mail}} puts it there"
    if MAIL not in prompt:
        return "braces of the mail were filled in or lost: a value is no template, and {mail} leaves it alone"
    return None


def wrong_value(state: GraphState) -> str | None:
    """What is wrong with what the reply "0.8" became."""
    if state.errors:
        return f"the model said '0.8', and the node failed: {listed(state.errors.values())}"
    if "score" not in state:
        keys = [key for key in state if key not in ("mail", "name", "errors")]
        return f"the node writes {listed(map(repr, keys)) or 'nothing'}, and 'score' is asked for: that is the out_key"
    if isinstance(state["score"], str):
        return f"score is the text {state['score']!r}, which no code can compare with 0.5: parse= makes a number of it"
    return None if state["score"] == 0.8 else f"the model said '0.8', and score is {state['score']!r}"


def refused_nothing(says: str, state: GraphState) -> str:
    score = state.get("score")
    if isinstance(score, float) and str(score) == says or score in (7, -0.5) or says == "nan":
        return f"the model said {says!r}, and that was taken for a score: a score lies from 0 to 1, so look, and raise"
    return (f"the model said {says!r}, and score became {score!r}, as if it had said so: what is no plain number "
            "must fail, aloud")


RATE = Exercise(
    name="models-1",
    statement="""\
Write `answer(model)`: it returns an `llm_node` named `rate` that shows the model the `mail` on the blackboard, and
writes a number to `score`. If the reply is anything but a plain number **from 0 to 1**, the node fails.""",
    todo="write answer = lambda model: llm_node(...), or a def",
    check=check_rate,
    why="The mail goes in as a value, and what is no score from 0 to 1 is an error that quotes the reply.",
    hints=[
        'llm_node("rate", prompt, "score", model, parse=...): the prompt is plain text with {mail} in it, no f-string.',
        "parse may be any function of the reply's text. What it returns is written; if it raises, the node fails.",
        "def score(text): number = float(text); raise ValueError(text) unless 0 <= number <= 1; return number",
    ],
    solution="""\
from minigraph.nodes import llm_node

def score(text):
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("a score lies from 0 to 1")
    return number

def answer(model):
    return llm_node("rate", "From 0 to 1, how urgent is this? {mail}", "score", model, parse=score)
""",
    wrong={
        "no parse": Wrong("""\
from minigraph.nodes import llm_node
answer = lambda model: llm_node("rate", "From 0 to 1, how urgent is this? {mail}", "score", model)
""", "score is the text '0.8'"),
        "any number": Wrong("""\
from minigraph.nodes import llm_node
answer = lambda model: llm_node("rate", "How urgent is this? {mail}", "score", model, parse=float)
""", "a score lies from 0 to 1"),
        "silence": Wrong("""\
from minigraph.nodes import llm_node
def score(text):
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
answer = lambda model: llm_node("rate", "How urgent is this? {mail}", "score", model, parse=score)
""", "must fail, aloud"),
        "the last word": Wrong("""\
from minigraph.nodes import llm_node
def score(text):
    number = float(text.split()[-1])
    if not 0 <= number <= 1:
        raise ValueError(text)
    return number
answer = lambda model: llm_node("rate", "How urgent is this? {mail}", "score", model, parse=score)
""", "as if it had said so"),
        "no mail": Wrong("""\
from minigraph.nodes import llm_node
answer = lambda model: llm_node("rate", "From 0 to 1, how urgent is this mail?", "score", model, parse=float)
""", "has not seen the mail"),
        "the mail as a template": Wrong("""\
from minigraph.nodes import llm_node
def prompt(state):
    return ("How urgent is this? " + state["mail"]).format(**state)
answer = lambda model: llm_node("rate", prompt, "score", model, parse=float)
""", "leaves a value alone"),
        "a model of its own": Wrong("""\
from minigraph.models import ScriptedModel
from minigraph.nodes import llm_node
answer = lambda model: llm_node("rate", "How urgent is this? {mail}", "score", ScriptedModel(["0.8"]), parse=float)
""", "hand it on to llm_node"),
        "another key": Wrong("""\
from minigraph.nodes import llm_node
answer = lambda model: llm_node("rate", "How urgent is this? {mail}", "urgency", model, parse=float)
""", "'score' is asked for"),
    })


# ---- models-2


def times_asked(first: Sequence[str], second: Sequence[str]) -> int:
    """How often the model is asked in the second of two runs that share a recording."""
    with tempfile.TemporaryDirectory() as folder:
        for questions in (first, second):
            model = ScriptedModel(lambda messages, tools: "well ...")
            recording = recorded(model, Path(folder) / "replies.jsonl")
            for question in questions:
                recording([Message("user", question)])
        return len(model.calls)


def check_times(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of calls")
    if wrong:
        return wrong
    if answer == 2:
        return None
    if answer == 0:
        return "0 calls: nobody has ever asked C, so the file holds no reply to it; who gives one?"
    if answer == 1:
        return "1 call is the one for C; and A is asked three times, with two replies to it in the file"
    if answer == 3:
        return "3 calls: what the first run wrote down is still there; which of the three A find a reply in the file?"
    if answer == 5:
        return "5 calls: then the recording would be of no use; what does it hold after the first run?"
    return f"{answer:g} calls: there are five questions; for each, is a reply left in the file?"


TIMES = Exercise(
    name="models-2",
    statement="""\
A run with `recorded(model, path)` asks A, B and A again. The n-th time that a question is asked, it gets the n-th reply
recorded to it; when none is left, the model is asked. Tomorrow a run with the same path asks A, A, A, B and C. How
often is the model asked tomorrow?""",
    todo="put a number in place of the three dots",
    check=check_times,
    why="Two replies to A and one to B are in the file; the third A and C are new.",
    hints=[
        "What is in the file tonight? Three replies: to which questions?",
        "Go through tomorrow's five questions and cross out a reply for each. Who is left over?",
        'Try it: times_asked("ABA", ...) with tomorrow\'s five letters, from minigraph.exercises.models.',
    ],
    solution="""\
from minigraph.exercises.models import times_asked

answer = times_asked("ABA", "AAABC")
""",
    wrong={
        "all is known": Wrong("answer = 0", "nobody has ever asked C"),
        "each question once": Wrong("answer = 1", "two replies to it in the file"),
        "one reply a question": Wrong("answer = 3", "still there"),
        "every time": Wrong("answer = 5", "of no use"),
    })

EXERCISES = [RATE, TIMES]
