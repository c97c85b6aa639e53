"""Notebook 11: a seam that falls open, and what a gate before the loop saves."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..checks import Exercise, Wrong, cannot_run, is_graph, is_number, nodes_missing, rehearse
from ..engine import END, START, Graph

# ---- triage-1

HEALTHY, DEAD, NONSENSE = "healthy", "dead", "nonsense"


def desk(on_error: str | None = None, health: str = HEALTHY) -> Graph:
    """classify, quick and loop, of which `classify` falls to on_error; how they are wired is the student's."""
    def look(state: Any) -> dict[str, Any]:
        if health == DEAD:
            raise ConnectionError("no model today")
        return {"intent": "social" if health == HEALTHY else "bananas"}
    graph = Graph("desk").add_node("classify", look, kind="llm", on_error=on_error)
    graph.add_node("quick", lambda state: {"answer": "Good morning!"}, kind="llm")
    graph.add_node("loop", lambda state: {"answer": "I looked it up."}, kind="agent")
    return graph.add_edge(START, "classify").add_edge("quick", END).add_edge("loop", END)


def check_open(answer: Any) -> str | None:
    if not callable(answer) or isinstance(answer, Graph):
        return is_graph(answer) or "answer is one graph, and a function is asked for: it gets desk, and makes one of it"
    for health in (HEALTHY, DEAD, NONSENSE):
        graph = answer(partial(desk, health=health))
        wrong = is_graph(graph) or nodes_missing(graph, ["classify", "quick", "loop"]) or cannot_run(graph)
        if wrong:
            return wrong
        run = rehearse(graph)
        if wrong := _what_is_wrong(health, run.state):
            return wrong
    return None


def _what_is_wrong(health: str, state: Any) -> str | None:
    if health == HEALTHY:
        if "quick" not in state.path:
            return "a friendly word went past `quick`: the label 'social' leads there"
        return "a friendly word had the loop run as well: one of the two answers" if "loop" in state.path else None
    if "answer" not in state:
        seam = "classify fails" if health == DEAD else "classify says 'bananas'"
        fault = next(iter(state.errors.values()), "nobody ran")
        return f"{seam}, and nobody answers ({fault}): where does it fall? desk(on_error=...) says it"
    if "quick" in state.path:
        return f"{health} at the desk, and `quick` answers all the same: what is not understood belongs to the loop"
    return None


OPEN = Exercise(
    name="triage-1",
    statement="""\
`desk(on_error=...)` makes a graph of `classify`, `quick` and `loop`. Write `wire(desk)`: it makes one, adds a router
and returns it. `"social"` goes to `quick`, everything else to `loop`; and when `classify` **fails**, or says something
**unheard of**, the message still falls to `loop`.""",
    todo="write a function that gets desk, makes a graph and wires it, and put the function into answer",
    check=check_open,
    why="A dead classifier and a babbling one both end at the loop, and a friendly word never wakes it.",
    hints=[
        "A router after classify reads state['intent']. Which labels can it return?",
        "Let the router return 'other' for all but 'social'. That takes care of the nonsense.",
        "A node that fails asks no router: it falls to its on_error, as in desk(on_error='loop').",
    ],
    solution="""\
def wire(desk):
    graph = desk(on_error="loop")
    route = lambda state: "social" if state["intent"] == "social" else "other"
    return graph.add_router("classify", route, {"social": "quick", "other": "loop"})

answer = wire
""",
    wrong={
        "no on_error": Wrong("""\
def answer(desk):
    route = lambda state: "social" if state["intent"] == "social" else "other"
    return desk().add_router("classify", route, {"social": "quick", "other": "loop"})
""", "classify fails, and nobody answers"),
        "falls to END": Wrong("""\
from minigraph import END
def answer(desk):
    route = lambda state: "social" if state["intent"] == "social" else "other"
    return desk(on_error=END).add_router("classify", route, {"social": "quick", "other": "loop"})
""", "where does it fall?"),
        "falls to quick": Wrong("""\
def answer(desk):
    route = lambda state: "social" if state["intent"] == "social" else "other"
    return desk(on_error="quick").add_router("classify", route, {"social": "quick", "other": "loop"})
""", "what is not understood belongs to the loop"),
        "friendly words wake the loop": Wrong("""\
def answer(desk):
    return desk(on_error="loop").add_router("classify", lambda state: "any", {"any": "loop", "social": "quick"})
""", "went past `quick`"),
        "both at once": Wrong("""\
def answer(desk):
    return desk(on_error="loop").add_edge("classify", "quick").add_edge("classify", "loop")
""", "both wrote 'answer'"),
    })


# ---- triage-2


def check_saved(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of seconds")
    if wrong:
        return wrong
    if abs(answer - 44) < 1e-6:
        return None
    if abs(answer - 54) < 1e-6:
        return "54 is what ten loops would take; the friendly words still take a second each"
    if abs(answer - 4.4) < 1e-6:
        return "4.4 s is saved by one friendly word, and there are ten of them"
    if abs(answer - 10) < 1e-6:
        return "10 is what the friendly words take now; what would they have taken?"
    return f"not {answer:g}: a loop takes 5.4 s and a friendly word 1.0 s, and there are ten of those"


SAVED = Exercise(
    name="triage-2",
    statement="""\
Of thirty messages ten are friendly words: 1.0 s each by `quick_reply`, where the loop would take 5.4 s. How many
seconds of work does triage save on the thirty, if the others go to the loop either way?""",
    todo="put a number of seconds in place of the three dots",
    check=check_saved,
    why="Ten times 4.4 s; the twenty others pay nothing for being classified, for the look-ups run beside it.",
    hints=[
        "The twenty others take what they took.",
        "What does one friendly word save?",
        "10 * (5.4 - 1.0)",
    ],
    solution="answer = 10 * (5.4 - 1.0)\n",
    wrong={
        "all of it": Wrong("answer = 54", "still take a second each"),
        "one word": Wrong("answer = 4.4", "there are ten of them"),
        "what is left": Wrong("answer = 10", "what would they have taken?"),
        "all thirty": Wrong("answer = 132", "there are ten of those"),
    })

EXERCISES = [OPEN, SAVED]
