"""Notebook 10: three runs that went wrong without an error, and what their traces say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import Exercise, Wrong, is_number
from ..clock import sleep, virtual_time
from ..engine import START, Graph, run_graph
from ..nodes import retry
from ..trace import Trace


def traced(graph: Graph, state: Mapping[str, Any]) -> Trace:
    trace = Trace()
    with virtual_time():
        run_graph(graph, state, trace)
    return trace


def _taking(seconds: float, **writes: Any) -> Any:
    def fn(state: Any) -> dict[str, Any]:
        sleep(seconds)
        return writes
    return fn


def _chain(name: str, **nodes: Any) -> Graph:
    graph, above = Graph(name), START
    for node, fn in nodes.items():
        graph.add_node(node, fn).add_edge(above, node)
        above = node
    return graph


def run_a() -> Trace:
    """Every message is filed under "general", whatever it is about."""
    def file(state: Any) -> dict[str, Any]:
        return {"folder": state.get("topic", "general")}
    return traced(_chain("a", fetch=_taking(1, message="The invoice is wrong."), classify=_taking(2, topik="billing"),
                         file=file), {})


def run_b() -> Trace:
    """The report shows yesterday's price, though today's was fetched."""
    def report(state: Any) -> dict[str, Any]:
        sleep(1)
        return {"report": f"tea costs {state['price']}"}
    graph = Graph("b").add_node("fetch", _taking(3, price=5)).add_node("report", report)
    graph.add_node("mail", _taking(1, mailed=True))
    for src, dst in [(START, "fetch"), (START, "report"), ("fetch", "mail"), ("report", "mail")]:
        graph.add_edge(src, dst)
    return traced(graph, {"price": 4})


def run_c() -> Trace:
    """It takes eleven seconds; it took five."""
    busy = iter([True, True, False])

    def load(state: Any) -> dict[str, Any]:
        sleep(1)
        if next(busy):
            raise ConnectionError("busy")
        return {"rows": 3}
    render = _taking(4, page="three rows")
    return traced(_chain("c", load=retry(load, attempts=3, delay=2, backoff=1), render=render), {})


# ---- traces-1

BUGS = {"a": "classify", "b": "report", "c": "load"}
SAYS = {
    ("a", "file"): "a: file did what it was told: it looked for `topic`, and found none; who should have written it?",
    ("a", "fetch"): "a: fetch wrote `message`, and that is right; which key is written that nobody reads?",
    ("b", "fetch"): "b: fetch wrote today's price, and in time for mail; in which wave did the report run?",
    ("b", "mail"): "b: mail came last and sent what there was; who read the old price?",
    ("c", "render"): "c: render takes four seconds, as it always did; where do the other seven go?",
}


def check_bugs(answer: Any) -> str | None:
    if not isinstance(answer, Mapping):
        return 'answer is a dict, run -> node, as in {"a": "fetch", "b": ..., "c": ...}'
    for run, node in BUGS.items():
        said = answer.get(run)
        if said is ... or said is None:
            return f"{run}: no node named yet; print(run_{run}()) shows its trace"
        if said != node:
            nodes = {"a": run_a, "b": run_b, "c": run_c}[run]().nodes
            known = isinstance(said, str) and said in nodes
            return SAYS[run, said] if known else f"{run}: it has no node {said!r}, but {', '.join(nodes)}"
    return None


FIND = Exercise(
    name="traces-1",
    statement="""\
Three runs ended `done`, and all three are wrong. `run_a()` files every message under *general*. `run_b()` reports
yesterday's price. `run_c()` takes eleven seconds and used to take five. In each, **one node** is to blame: which?""",
    todo='put a node for each run into the dict, as in {"a": "fetch", ...}',
    check=check_bugs,
    why="A key that nobody reads, a node a wave too early, a node with three attempts: all of it stands in the trace.",
    hints=[
        "print(run_a()), and ask of each node which keys it wrote: [(v.node, v.keys) for v in run_a().visits()].",
        "In run_b, look at the waves: who runs beside whom, and who should have waited?",
        "In run_c, the last column says what the seconds do not: how many attempts?",
    ],
    solution="""\
answer = {"a": "classify",  # it writes topik, and file looks for topic
          "b": "report",    # it runs in the wave of fetch: an edge is missing
          "c": "load"}      # three attempts, with pauses between
""",
    wrong={
        "who reads is to blame": Wrong('answer = {"a": "file", "b": "report", "c": "load"}',
                                       "who should have written it?"),
        "who writes is to blame": Wrong('answer = {"a": "classify", "b": "fetch", "c": "load"}', "in which wave"),
        "the longest bar": Wrong('answer = {"a": "classify", "b": "report", "c": "render"}',
                                 "where do the other seven go?"),
        "the last one": Wrong('answer = {"a": "classify", "b": "mail", "c": "load"}', "who read the old price?"),
        "the first one": Wrong('answer = {"a": "fetch", "b": "report", "c": "load"}', "which key is written"),
        "half an answer": Wrong('answer = {"a": "classify"}', "b: no node named yet"),
        "a typo": Wrong('answer = {"a": "clasify", "b": "report", "c": "load"}', "it has no node 'clasify'"),
    })


# ---- traces-2


def check_wait(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of seconds")
    if wrong:
        return wrong
    if abs(answer - 2) < 1e-6:
        return None
    if abs(answer - 4) < 1e-6:
        return "4 is how long the whole run took; how much of it did a node stand at the barrier?"
    if abs(answer - 1) < 1e-6:
        return "1 second is how long report worked; it then waited for the slowest of its wave"
    if abs(answer - 3) < 1e-6:
        return "3 seconds is the length of the wave; report worked for one of them"
    return f"not {answer:g}: add up visit.wait over run_b().visits()"


WAIT = Exercise(
    name="traces-2",
    statement="""\
For how many seconds did nodes stand at the barrier in `run_b()`, all waits added up? Compute it from the trace.""",
    todo="compute a number from run_b().visits() and put it into answer",
    check=check_wait,
    why="report was done after one second and waited two for fetch; nobody else waited.",
    hints=[
        "A visit knows how long it waited: visit.wait, in seconds.",
        "Add it up over all the visits.",
        "answer = sum(visit.wait for visit in run_b().visits())",
    ],
    solution="""\
from minigraph.exercises.traces import run_b

answer = sum(visit.wait for visit in run_b().visits())
""",
    wrong={
        "the whole run": Wrong("from minigraph.exercises.traces import run_b\nanswer = run_b().seconds",
                               "how long the whole run took"),
        "the work": Wrong("answer = 1", "how long report worked"),
        "the wave": Wrong("answer = 3", "the length of the wave"),
        "milliseconds": Wrong("answer = 2000", "add up visit.wait"),
    })

EXERCISES = [FIND, WAIT]
