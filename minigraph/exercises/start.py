"""Notebook 00: a fifth source for the morning, and what the two engines read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..checks import (
    Exercise,
    Wrong,
    edges_missing,
    extra_edges,
    first_difference,
    is_graph,
    listed,
    nodes_missing,
    rehearse,
)
from ..engine import END, START, Graph

FOUND = {"github": "4 pulls", "web": "gauge maintenance", "calendar": "stand-up", "memory": "freeze today"}
SCANS = [f"scan_{source}" for source in FOUND]


def morning() -> Graph:
    """A new graph that scans four sources at once, puts what they found together, and drafts a digest of it."""
    graph = Graph("morning")
    for source, found in FOUND.items():
        graph.add_node(f"scan_{source}", scan(source, found))
    graph.add_node("synthesize", synthesize).add_node("draft_digest", draft_digest)
    for name in SCANS:
        graph.add_edge(START, name).add_edge(name, "synthesize")
    return graph.add_edge("synthesize", "draft_digest").add_edge("draft_digest", END)


def scan(source: str, found: str) -> Callable[[Any], dict[str, str]]:
    """A node function that finds the same every time."""
    return lambda state: {source: found}


def synthesize(state: Mapping[str, Any]) -> dict[str, str]:
    """Reads whatever was found; it need not be told how many sources there are."""
    return {"synthesis": "; ".join(f"{source}: {found}" for source, found in state.items() if source != "errors")}


def draft_digest(state: Mapping[str, Any]) -> dict[str, str]:
    return {"digest": f"Good morning. {state['synthesis']}."}


# ---- start-1

EDGES = [*((START, name) for name in SCANS), *((name, "synthesize") for name in SCANS), ("synthesize", "draft_digest")]


def check_mail(answer: Any) -> str | None:
    wrong = is_graph(answer) or nodes_missing(answer, [*SCANS, "synthesize", "draft_digest", "scan_mail"])
    if wrong:
        return wrong
    if gone := edges_missing(answer, EDGES):
        return f"the edge {gone[0][0]} -> {gone[0][1]} was there before and is gone: begin again with morning()"
    before = [src for src, dst in extra_edges(answer, EDGES) if dst == "scan_mail" and src != START]
    if edges_missing(answer, [(START, "scan_mail")]):
        after = f": it runs only when {listed(before)} is done" if before else ""
        return f"no edge leads from START to scan_mail{after}; what starts it?"
    if before:
        return f"scan_mail waits for {listed(before)}; it is to be scanned with the others: wave 1 has room for five"
    if edges_missing(answer, [("scan_mail", "synthesize")]):
        return "no edge leads from scan_mail to synthesize; who reads it?"
    if extra := extra_edges(answer, [*EDGES, (START, "scan_mail"), ("scan_mail", "synthesize")]):
        return (f"the edge {extra[0][0]} -> {extra[0][1]} is one too many; the join already waits: "
                "synthesize runs when all that lead into it have arrived, and the digest comes after it")
    run = rehearse(answer)
    expected = [[*SCANS, "scan_mail"], ["synthesize"], ["draft_digest"]]
    if wrong := run.trouble or first_difference(expected, run.waves):
        return wrong
    if "mail" not in run.state:
        return "scan_mail ran and left no key 'mail' on the blackboard; what does its function return?"
    if "mail: " not in str(run.state.get("synthesis")):
        return "synthesize does not tell of the mail; leave it as it is in morning(): it reads every key there is"
    return None


MAIL = Exercise(
    name="start-1",
    statement="""\
`morning()` is a graph that scans four sources. Add a node `scan_mail` that returns `{"mail": "2 letters"}`, so that it
is scanned with the others and `synthesize` waits for it too.""",
    todo="begin with answer = morning(), and add a node and its edges to it",
    check=check_mail,
    why="Two edges: one that starts it, one that somebody waits for. No other node had to change.",
    hints=[
        "A node is added with answer.add_node(name, function); its function takes the state and returns a dict.",
        "Look at any other scan in draw(answer): how many edges does it have, and between what?",
        'Two edges: answer.add_edge(START, "scan_mail") starts it. Which one makes synthesize wait for it?',
    ],
    solution="""\
from minigraph import START
from minigraph.exercises.start import morning

answer = morning()
answer.add_node("scan_mail", lambda state: {"mail": "2 letters"})
answer.add_edge(START, "scan_mail").add_edge("scan_mail", "synthesize")
""",
    wrong={
        "no node yet": Wrong("""\
from minigraph.exercises.start import morning
answer = morning()
""", "no node 'scan_mail'"),
        "no edge from START": Wrong("""\
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: {"mail": "2 letters"})
answer.add_edge("scan_mail", "synthesize")
""", "what starts it?"),
        "after another scan": Wrong("""\
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: {"mail": "2 letters"})
answer.add_edge("scan_web", "scan_mail").add_edge("scan_mail", "synthesize")
""", "only when scan_web is done; what starts it?"),
        "started and kept waiting": Wrong("""\
from minigraph import START
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: {"mail": "2 letters"}).add_edge(START, "scan_mail")
answer.add_edge("scan_memory", "scan_mail").add_edge("scan_mail", "synthesize")
""", "with the others"),
        "not joined": Wrong("""\
from minigraph import END, START
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: {"mail": "2 letters"})
answer.add_edge(START, "scan_mail").add_edge("scan_mail", END)
""", "who reads it?"),
        "joined twice": Wrong("""\
from minigraph import START
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: {"mail": "2 letters"}).add_edge(START, "scan_mail")
answer.add_edge("scan_mail", "synthesize").add_edge("scan_mail", "draft_digest")
""", "the join already waits"),
        "a join of its own": Wrong("""\
from minigraph import START
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: {"mail": "2 letters"}).add_node("wait", lambda state: None)
answer.add_edge(START, "scan_mail").add_edge("scan_mail", "synthesize")
answer.add_edge("scan_mail", "wait").add_edge("wait", "synthesize")
""", "the join already waits"),
        "returns nothing": Wrong("""\
from minigraph import START
from minigraph.exercises.start import morning
answer = morning().add_node("scan_mail", lambda state: None)
answer.add_edge(START, "scan_mail").add_edge("scan_mail", "synthesize")
""", "no key 'mail'"),
    },
)


# ---- start-2

READ = {"loop": 2, "graph": 4}
INSTEAD = {  # engine -> a count that is often given -> what to say of it
    "loop": {3: "it made three tool calls, and github_read was two of them: two calls, one source",
             4: "four tools were offered to it; offered is not read",
             5: "five calls, two of them to the model, and the model is no source"},
    "graph": {5: "five nodes run before the digest is drafted, but synthesize reads no source",
              6: "six nodes run, but synthesize reads no source, nor does draft_digest: they read the blackboard",
              3: "a scan that takes 1 ms is easy to miss on the chart; count the nodes named scan_..."},
}


def check_sources(answer: Any) -> str | None:
    if isinstance(answer, (list, tuple)) and len(answer) == 2:
        answer = dict(zip(READ, answer, strict=True))
    if not isinstance(answer, Mapping) or not set(READ) <= set(answer):
        return 'two numbers are asked for: answer = {"loop": ..., "graph": ...}'
    if (answer["loop"], answer["graph"]) == (READ["graph"], READ["loop"]):
        return "it is the other way round: which of them decides for itself what comes next, and when it has enough?"
    for engine, count in READ.items():
        said = answer[engine]
        if said is None or said is ...:
            return f"the number for the {engine} is still missing"
        if isinstance(said, bool) or not isinstance(said, (int, float)):
            return f"for the {engine} a number is asked for, not {said!r}"
        if said != count:
            why = INSTEAD[engine].get(int(said) if said == said and abs(said) < 100 else 0)
            return f"the {engine} did not read {said:g} sources: " + (
                why or "count each source once, however often it was called")
    return None


SOURCES = Exercise(
    name="start-2",
    statement="How many **sources** did each engine read?",
    todo='give two numbers: answer = {"loop": ..., "graph": ...}',
    check=check_sources,
    why="The loop had enough after two, in three calls; the graph's shape says four.",
    hints=[
        "A source is where something is read: github, web, calendar or memory. A call is not a source, nor is a node.",
        'briefing["read"] names the tools that the loop used, each once.',
        "On the graph's chart, count the bars named scan_...; on the loop's, count the different tools.",
    ],
    solution='answer = {"loop": 2, "graph": 4}\n',
    wrong={
        "calls counted": Wrong('answer = {"loop": 3, "graph": 4}', "two calls, one source"),
        "nodes counted": Wrong('answer = {"loop": 2, "graph": 5}', "synthesize reads no source"),
        "all nodes counted": Wrong("answer = 2, 6", "synthesize reads no source"),
        "what was offered": Wrong('answer = {"loop": 4, "graph": 4}', "offered is not read"),
        "swapped": Wrong('answer = {"loop": 4, "graph": 2}', "the other way round"),
        "half an answer": Wrong('answer = {"loop": 2, "graph": ...}', "for the graph is still missing"),
    },
)

EXERCISES = [MAIL, SOURCES]
