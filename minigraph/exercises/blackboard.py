"""Who may write what: two agents and one list, and three graphs of which some collide.

    graph, state = writers("C"), {}
    run_graph(graph, state)             # StateCollision: `draft` and `polish` both wrote 'text'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..checks import (
    Exercise,
    Rehearsal,
    Wrong,
    cannot_run,
    first_difference,
    is_graph,
    listed,
    nodes_missing,
    rehearse,
)
from ..engine import END, START, Graph, StateCollision

# ---- two agents answer at once

# What `messages` may hold when a run begins.
QUESTIONS: tuple[list[str], ...] = (["Can you come at nine?"], ["Hello.", "Tea?"], [])


def check_messages(answer: Any) -> str | None:
    """None if `ada` and `bob` run at once and both messages end up in `messages`, after what was there."""
    return (is_graph(answer) or cannot_run(answer) or nodes_missing(answer, ["ada", "bob"])
            or next(filter(None, (_about_messages(answer, before) for before in QUESTIONS)), None))


def _about_messages(graph: Graph, before: list[str]) -> str | None:
    try:
        run = rehearse(graph, {"messages": list(before)}, strict=True)
    except StateCollision as collision:
        return (f"{listed(collision.nodes)} both write {collision.key!r}: one key, two live branches. "
                "Give a key each, then a node that joins")
    return (_about_failure(run) or first_difference([["ada", "bob"]], run.waves[:1]) or _about_keys(run)
            or _about_result(run, before))


def _about_failure(run: Rehearsal) -> str | None:
    for node, error in run.state.errors.items():
        if "in place" in error:
            return (f"{node} changed a value of the blackboard in place; who wrote it? No event says so, and a "
                    "neighbour may be reading it. Return a new list")
        if "'errors' is the engine's" in error:
            return f"{node} returns the whole blackboard: return only what is new"
    return run.trouble


def _about_keys(run: Rehearsal) -> str | None:
    silent = [visit.node for visit in run.trace.visits() if visit.node in ("ada", "bob") and not visit.keys]
    return f"{silent[0]} wrote no key at all: did it forget its return?" if silent else None


def _about_result(run: Rehearsal, before: list[str]) -> str | None:
    """Compares `messages` with what was there, then Ada's, then Bob's, whatever keys those two wrote."""
    found, when = run.state["messages"], f"if `messages` begins as {before!r}"
    ada, bob = _made_by("ada", run, before), _made_by("bob", run, before)
    if not isinstance(found, list):
        return f"{when}, it ends as {found!r}, which is no list"
    if found == before:
        return f"{when}, it ends just so: who puts the two answers into it? Add a node that joins"
    if found[:len(before)] != before:
        return f"{when}, it ends as {found!r}: what was there before is gone. Begin with state['messages']"
    added = found[len(before):]
    if added == [*bob, *ada] and ada != bob:
        return f"{when}, it ends as {found!r}: Ada's message comes before Bob's"
    return None if added == [*ada, *bob] else f"{when}, it should end as {[*before, *ada, *bob]!r}, and is {found!r}"


def _made_by(name: str, run: Rehearsal, before: list[str]) -> list[Any]:
    """The messages a node wrote, under whatever key, alone or in a list that may begin with what was there."""
    made: list[Any] = []
    for value in (run.state[key] for visit in run.trace.visits() if visit.node == name for key in visit.keys):
        listing = value if isinstance(value, list) else [value]
        made += listing[len(before):] if before and listing[:len(before)] == before else listing
    return made


_BEGIN = """
from minigraph import END, START, Graph

def ada(state):
    return {ada}

def bob(state):
    return {bob}

answer = Graph("answers").add_node("ada", ada).add_node("bob", bob)
"""
_AT_ONCE = """answer.add_edge(START, "ada").add_edge(START, "bob")
"""
_JOINED = """
def join(state):
    return {"messages": %s}

answer.add_node("join", join)
answer.add_edge("ada", "join").add_edge("bob", "join").add_edge("join", END)
"""


def _two(ada: str, bob: str) -> str:
    return _BEGIN.replace("{ada}", ada).replace("{bob}", bob)


_OWN_KEYS = _two('{"ada": "Ada: yes"}', '{"bob": "Bob: no"}')
_BOTH = _two('{"messages": state["messages"] + ["Ada: yes"]}', '{"messages": state["messages"] + ["Bob: no"]}')

MESSAGES = Exercise(
    name="blackboard-1",
    statement="""Two agents answer one question at the same time. Make `answer` a graph in which `ada` and `bob` run
together in wave 1. In the end `messages` holds what was there before, then Ada's message, then Bob's.""",
    check=check_messages,
    todo="put a Graph with the nodes ada and bob in place of the three dots",
    hints=["Neither can know what the other writes. So let each return a key of its own.",
           "Add a third node, join, with an edge from ada and an edge from bob: it runs when both are done.",
           'join returns {"messages": state["messages"] + [state["ada"], state["bob"]]}.'],
    solution="""
from minigraph import END, START, Graph

def join(state):
    return {"messages": state["messages"] + [state["ada"], state["bob"]]}

answer = Graph("answers")
answer.add_node("ada", lambda state: {"ada": "Ada: yes"})
answer.add_node("bob", lambda state: {"bob": "Bob: no"})
answer.add_node("join", join)
for name in ["ada", "bob"]:
    answer.add_edge(START, name).add_edge(name, "join")
answer.add_edge("join", END)
""",
    why="Each wrote a key of its own, and join, below both, is the only one to write `messages`.",
    wrong={
        "append in place": Wrong(
            _two('state["messages"].append("Ada: yes")', 'state["messages"].append("Bob: no")') + _AT_ONCE,
            "in place; who wrote it?"),
        "both return messages": Wrong(
            _BOTH + _AT_ONCE, "one key, two live branches. Give a key each, then a node that joins"),
        "{**state}": Wrong(
            _two('{**state, "ada": "Ada: yes"}', '{**state, "bob": "Bob: no"}') + _AT_ONCE
            + _JOINED % 'state["messages"] + [state["ada"], state["bob"]]', "return only what is new"),
        "one after the other": Wrong(
            _BOTH + 'answer.add_edge(START, "ada").add_edge("ada", "bob").add_edge("bob", END)\n',
            "wave 1: expected ada and bob, got ada"),
        "a key each, and nobody joins": Wrong(_OWN_KEYS + _AT_ONCE, "Add a node that joins"),
        "the question lost": Wrong(_OWN_KEYS + _AT_ONCE + _JOINED % '[state["ada"], state["bob"]]',
                                   "what was there before is gone"),
        "join appends in place": Wrong(
            _OWN_KEYS + _AT_ONCE + _JOINED % 'state["messages"].append(state["ada"])', "in place; who wrote it?"),
        "join waits for one only": Wrong(
            _OWN_KEYS + _AT_ONCE + (_JOINED % 'state["messages"] + [state["ada"], state["bob"]]').replace(
                '.add_edge("bob", "join")', ""), "lead an edge from 'bob' to 'join'"),
    },
)

# ---- which of three graphs collide

EDGES = {  # name -> its edges; `draft` and `polish` write 'text'
    "A": [(START, "draft"), ("draft", "polish")],
    "B": [(START, "draft"), (START, "polish")],
    "C": [(START, "draft"), (START, "fetch"), ("fetch", "polish")],
}


def writers(name: str) -> Graph:
    """The graph A, B or C of the exercise."""
    graph = Graph(name)
    for node in dict.fromkeys(dst for _, dst in EDGES[name]):
        key = "source" if node == "fetch" else "text"
        graph.add_node(node, _writes(key))
    for src, dst in EDGES[name]:
        graph.add_edge(src, dst)
    for node in ("draft", "polish"):
        if not graph.edges[node]:
            graph.add_edge(node, END)
    return graph


def _writes(key: str) -> Callable[[Any], dict[str, str]]:
    return lambda state: {key: "..."}


def collides(graph: Graph) -> bool:
    """Does a run of it raise StateCollision?"""
    try:
        rehearse(graph)
    except StateCollision:
        return True
    return False


_MISSED = {"B": "B collides as well: two nodes of one wave write 'text', and which of the two should win?",
           "C": "C collides as well, though in two waves: is there a path from the first writer to the second?"}
_ACCUSED = "{name} runs well, though two nodes write 'text': does the second come after the first?"


def check_which_collide(answer: Any) -> str | None:
    """None if the answer names just those graphs that collide, as a list, or as a text such as "A, B"."""
    if isinstance(answer, str):
        answer = re.findall(r"\w+", answer) if len(answer) > len(EDGES) else list(answer)
    if not isinstance(answer, Iterable) or not all(isinstance(name, str) for name in answer):
        return f"answer is {answer!r}, and a list of names is asked for, as in ['A']"
    named = {name.strip().upper() for name in answer}
    strange = sorted(named - set(EDGES))
    if strange:
        return f"there is no graph {strange[0]!r}: they are called {listed(EDGES)}"
    for name in EDGES:
        happens = collides(writers(name))
        if happens and name not in named:
            return _MISSED[name]
        if name in named and not happens:
            return _ACCUSED.format(name=name)
    return None


WHICH_COLLIDE = Exercise(
    name="blackboard-2",
    statement="""In three graphs `draft` and `polish` both write `text`. Which of them collide? Make `answer` a list of
their names.

- **A**: START → draft → polish
- **B**: START → draft, START → polish
- **C**: START → draft, START → fetch → polish""",
    check=check_which_collide,
    todo="put a list of names in place of the three dots, as in ['A']",
    hints=["Draw the three on paper. The wave in which a node runs does not matter.",
           "Put a finger on `draft`. Can you walk along the arrows to `polish`?",
           "In A you can. In B and C you cannot: there the two are live branches."],
    solution="""
from minigraph import StateCollision, run_graph
from minigraph.exercises.blackboard import writers

answer = []
for name in ["A", "B", "C"]:
    try:
        run_graph(writers(name), {})
    except StateCollision:
        answer.append(name)
""",
    why="Only in A does a path lead from one writer to the other; that is the whole question, and waves are not in it.",
    wrong={
        "different waves are safe": Wrong('answer = ["B"]', "is there a path from the first writer to the second?"),
        "same key always collides": Wrong('answer = ["A", "B", "C"]', "does the second come after the first?"),
        "writing over is the crime": Wrong('answer = ["A"]', "does the second come after the first?"),
        "the last one wins": Wrong("answer = []", "which of the two should win?"),
        "only neighbours of START": Wrong('answer = ["C"]', "two nodes of one wave"),
        "a name from nowhere": Wrong('answer = ["polish"]', "they are called A, B and C"),
    },
)

EXERCISES = [MESSAGES, WHICH_COLLIDE]
