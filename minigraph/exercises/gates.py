"""Notebook 09: a gate before what cannot be undone, and which moment to go back to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import Exercise, Wrong, cannot_run, edges_of, is_graph, is_number, listed, nodes_missing
from ..engine import START, Graph, GraphState, run_graph
from ..resume import resume_graph

# ---- gates-1


def write(state: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the letter."""
    return {"letter": f"Dear {state['to']}, the room is booked."}


def send(state: Mapping[str, Any]) -> dict[str, Any]:
    """Sends it; nobody can take that back."""
    return {"sent": state["letter"]}


def letters() -> Graph:
    """A graph with `write` and `send` in it, and an edge from START; what lies between is the student's."""
    return Graph("letters").add_node("write", write).add_node("send", send).add_edge(START, "write")


def check_gate(answer: Any) -> str | None:
    wrong = is_graph(answer) or nodes_missing(answer, ["write", "send"]) or cannot_run(answer)
    if wrong:
        return wrong
    gates = [name for name, node in answer.nodes.items() if node.gate()]
    if not gates:
        return "nobody is asked: the graph has no gate; human_node(name, question, out_key) makes one"
    asked = run_graph(answer, {"to": "Ada"})
    if "sent" in asked:
        beside = ": the gate can stop only what lies below it" if ("write", "send") in edges_of(answer) else ""
        return f"the letter is sent before anybody answers{beside}"
    if asked.status != "paused":
        return f"the run does not pause, it is {asked.status}: {listed(asked.errors.values()) or 'no gate is reached'}"
    gate, question = next(iter(asked.waiting.items()))
    if "Dear Ada" not in question:
        return f"the question is {str(question)!r}: whoever answers has not seen the letter; {{letter}} shows it"
    yes, no = (_answered(answer, asked, gate, word) for word in ("yes", "no"))
    if isinstance(yes, str):
        return yes
    if "sent" not in yes:
        return "the answer is yes, and nothing is sent: which label leads to send?"
    if not isinstance(no, str) and "sent" in no:
        return "the answer is no, and the letter is sent all the same: who reads the answer? An edge always fires"
    if isinstance(no, str) or no.status != "done":
        return "the answer is no, and the run does not end well: let the label 'no' lead to END"
    return None


def _answered(graph: Graph, asked: GraphState, gate: str, word: str) -> GraphState | str:
    try:
        return resume_graph(graph, asked.journal, {gate: word})
    except ValueError as error:
        return f"{word!r} is refused: {error}"


GATE = Exercise(
    name="gates-1",
    statement="""\
`letters()` has a node `write` and a node `send`. Put a gate between them: it shows the letter, takes *yes* or *no*, and
only after a *yes* is anything sent. After a *no* the run ends.""",
    todo="add a human_node to letters(), edges to it, a router after it, and put the graph into answer",
    check=check_gate,
    why="send lies below the gate, the router reads the answer, and a no leads to END.",
    hints=[
        'human_node("approve", "Send this? {letter}", "approved", choices=["yes", "no"]) writes the answer to a key.',
        "The gate comes after write. What comes after the gate depends on the answer: that is a router.",
        'graph.add_router("approve", key_router("approved"), {"yes": "send", "no": END})',
    ],
    solution="""\
from minigraph import END
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node, key_router

answer = letters().add_node(human_node("approve", "Send this? {letter}", "approved", choices=["yes", "no"]))
answer.add_edge("write", "approve").add_edge("send", END)
answer.add_router("approve", key_router("approved"), {"yes": "send", "no": END})
""",
    wrong={
        "the gate beside": Wrong("""\
from minigraph import END
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node
answer = letters().add_node(human_node("approve", "Send this? {letter}", "approved", choices=["yes", "no"]))
answer.add_edge("write", "approve").add_edge("write", "send")
""", "the gate can stop only what lies below it"),
        "the gate after": Wrong("""\
from minigraph import END
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node
answer = letters().add_node(human_node("approve", "Sent: {letter}", "approved", choices=["yes", "no"]))
answer.add_edge("write", "send").add_edge("send", "approve")
""", "sent before anybody answers"),
        "nobody reads the answer": Wrong("""\
from minigraph import END
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node
answer = letters().add_node(human_node("approve", "Send this? {letter}", "approved", choices=["yes", "no"]))
answer.add_edge("write", "approve").add_edge("approve", "send")
""", "who reads the answer?"),
        "a blind question": Wrong("""\
from minigraph import END
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node, key_router
answer = letters().add_node(human_node("approve", "Send it?", "approved", choices=["yes", "no"]))
answer.add_edge("write", "approve").add_router("approve", key_router("approved"), {"yes": "send", "no": END})
""", "has not seen the letter"),
        "no way out": Wrong("""\
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node, key_router
answer = letters().add_node(human_node("approve", "Send this? {letter}", "approved"))
answer.add_edge("write", "approve").add_router("approve", key_router("approved"), {"yes": "send"})
""", "let the label 'no' lead to END"),
        "labels the wrong way round": Wrong("""\
from minigraph import END
from minigraph.exercises.gates import letters
from minigraph.nodes import human_node, key_router
answer = letters().add_node(human_node("approve", "Send this? {letter}", "approved", choices=["yes", "no"]))
answer.add_edge("write", "approve").add_router("approve", key_router("approved"), {"no": "send", "yes": END})
""", "which label leads to send?"),
        "no gate": Wrong("""\
from minigraph.exercises.gates import letters
answer = letters().add_edge("write", "send")
""", "nobody is asked"),
    })


# ---- gates-2


def trip() -> Graph:
    """look (which costs money), then plan, then book."""
    graph = Graph("trip").add_node("look", lambda state: {"trains": ["8:10", "9:40"]})
    graph.add_node("plan", lambda state: {"plan": f"the {state['trains'][state['wish']]} train"})
    graph.add_node("book", lambda state: {"booked": state["plan"]})
    return graph.add_edge(START, "look").add_edge("look", "plan").add_edge("plan", "book")


def check_moment(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of records")
    if wrong:
        return wrong
    if answer == 2:
        return None
    if answer == 1:
        return "1 keeps only how the run began, so look runs again, and it costs money: its record is worth keeping"
    if answer == 3:
        return "3 keeps the old plan, so plan does not run again, and the wish is read by nobody: who reads it?"
    if answer == 4:
        return "4 keeps everything: the run is over, and nothing runs again"
    return f"{answer:g} records cannot be kept: the journal has four, the first of which says how the run began"


MOMENT = Exercise(
    name="gates-2",
    statement="""\
`trip()` ran with `{"wish": 0}` and left four records: how it began, then `look`, `plan` and `book`. You would rather
have the later train. `look` costs money and must not run again. How many records do you keep, in
`resume_graph(trip(), records[:answer], edits={"wish": 1})`?""",
    todo="put a number in place of the three dots",
    check=check_moment,
    why="The beginning and look are kept; plan runs again, reads the new wish, and book follows.",
    hints=[
        "What has a record does not run again. Which node must run again, and which must not?",
        "plan reads the wish. So plan must have no record, and book, which reads the plan, has none either then.",
        "Try it: print the 'booked' of resume_graph(trip(), records[:k], edits={'wish': 1}) for each k.",
    ],
    solution="""\
from minigraph import resume_graph, run_graph
from minigraph.exercises.gates import trip

records = run_graph(trip(), {"wish": 0}).journal
answer = 2
assert resume_graph(trip(), records[:answer], edits={"wish": 1})["booked"] == "the 9:40 train"
""",
    wrong={
        "from the start": Wrong("answer = 1", "it costs money"),
        "one too many": Wrong("answer = 3", "keeps the old plan"),
        "all of them": Wrong("answer = 4", "nothing runs again"),
        "none": Wrong("answer = 0", "0 records cannot be kept"),
    })

EXERCISES = [GATE, MOMENT]
