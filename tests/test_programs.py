"""Random structured programs do as graphs what they do when they are simply interpreted.

The programs are the same ones in every run of the suite. `pytest tests/test_programs.py --hypothesis-profile=search`
looks for new ones, and takes its time.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from helpers import Heard, within
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import If, Loop, Par, Program, Retry, Revise, Seq, Task, Tolerate, Try, fold, interpret, programs
from programs import Outcome as Done

from minigraph import END, START, Graph, GraphState, StateCollision, run_graph
from minigraph import clock as clocks

HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("search", max_examples=5000, deadline=None, suppress_health_check=HEALTH)
SEARCH = "search" in settings.get_current_profile_name()


def steady(examples: int) -> settings:
    """Return settings under which the same programs are drawn every time; the profile "search" overrules them."""
    if SEARCH:
        return settings.get_profile("search")
    return settings(max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=HEALTH)


Outcome = dict[str, Any]


def outcome(program: Program, done: Done, *, schedule: str, seed: int | None = None, **options: Any) -> Outcome:
    """Return what the program does as a graph, in as many steps as the interpreter took; with a seed, in virtual time,
    its nodes taking random times."""
    dice = random.Random(seed)
    latency = {name: dice.choice([0, 1, 2, 2, 3.5, 7]) for name in sorted(done.visits)}

    def go() -> GraphState:
        return run_graph(program.graph(latency if seed is not None else None), program.initial,
                         max_steps=max(1, done.steps), schedule=schedule, **options)

    def in_time() -> GraphState:
        if seed is None:
            return go()
        with clocks.virtual_time():
            return go()

    state = within(30, in_time)
    return {"visits": state.visits, "errors": set(state["errors"]), "status": state.status,
            "state": {key: value for key, value in state.items() if key != "errors"}}


def expected(done: Done) -> Outcome:
    return {"visits": done.visits, "errors": done.errors, "status": done.status, "state": done.state}


# ---- the interpreter itself, on programs whose outcome one can see

T = Task


@pytest.mark.parametrize(("root", "visits", "errors", "status"), [
    (Seq((T("a"), Par((T("b"), T("c"))), T("d"))), {"a": 1, "b": 1, "c": 1, "d": 1}, set(), "done"),
    (Seq((If(T("r"), (T("a"), T("b")), ((1,),)), T("j"))), {"r": 1, "b": 1, "j": 1}, set(), "done"),
    (Seq((If(T("r"), (T("a"), T("b"), None), ((0, 1, 2),)), T("j"))), {"r": 1, "a": 1, "b": 1, "j": 1}, set(), "done"),
    (Seq((If(T("r"), (T("a"),), (None,)), T("j"))), {"r": 1}, {"r"}, "failed"),
    (Seq((Loop(T("h"), T("b"), T("t"), (True, False)), T("j"))), {"h": 2, "b": 2, "t": 2, "j": 1}, set(), "done"),
    (Seq((Loop(T("h", cap=2), T("b"), T("t"), (True,), T("g")), T("j"))),
     {"h": 2, "b": 2, "t": 2, "g": 1, "j": 1}, {"h"}, "done"),
    (Seq((Revise(Par((T("b"), T("c"))), T("judge"), T("rev"), (True, False)), T("j"))),
     {"b": 2, "c": 2, "judge": 2, "rev": 1, "j": 1}, set(), "done"),
    (Seq((Revise(T("b"), T("judge"), T("rev", cap=1), (True,)), T("j"))),
     {"b": 2, "judge": 2, "rev": 1}, {"rev"}, "failed"),
    (Seq((Retry(T("p"), T("c", fails=(1,))), T("j"))), {"p": 2, "c": 2, "j": 1}, {"c"}, "done"),
    (Seq((Tolerate(T("a", fails=(1,)), T("b")), T("j"))), {"a": 1, "b": 1, "j": 1}, {"a"}, "done"),
    (Seq((Try(Seq((T("a", fails=(1,)), T("b"))), T("h")), T("j"))), {"a": 1, "h": 1, "j": 1}, {"a"}, "done"),
    (Seq((Try(Par((T("a", fails=(1,)), T("b", fails=(1,)))), T("h")), T("j"))),
     {"a": 1, "b": 1, "h": 1, "j": 1}, {"a", "b"}, "done"),
    (Seq((Par((T("a", fails=(1,)), T("b"))), T("j"))), {"a": 1, "b": 1}, {"a"}, "failed"),
])
def test_interpreter(root: Any, visits: dict[str, int], errors: set[str], status: str) -> None:
    """Each construct of the language does what its name says, interpreted and as a graph."""
    caps = dict.fromkeys(("t", "judge", "p"), 9)
    for program in (Program(root, caps), Program(root, caps, shuffle=5)):
        done = interpret(program)
        assert ({n: v for n, v in done.visits.items() if v}, done.errors, done.status) == (visits, errors, status)
        for schedule in ("waves", "ready"):
            assert outcome(program, done, schedule=schedule) == expected(done)


def test_interpreter_sees_races() -> None:
    """Two runs race for a key if neither is in the other's past; runs in a row do not."""
    race = Program(Seq((Par((T("a", sets=("k",)), Seq((T("b"), T("c", sets=("k",)))))), T("d", sets=("k",)))))
    row = Program(Seq((T("a", sets=("k",)), Par((T("b"), T("c", sets=("k",)))), T("d", sets=("k",)))))
    assert interpret(race).races == {"k"}
    assert interpret(row).races == set()
    assert interpret(row).state["k"] == "d"


def test_interpreter_folds_in_order() -> None:
    """A folded key tells in which order the tasks came."""
    there, back = Seq((T("a", folds=("x",)), T("b", folds=("x",)))), Seq((T("b", folds=("x",)), T("a", folds=("x",))))
    assert interpret(Program(there, initial={"x": 4})).state["x"] == fold(fold(4, "a"), "b")
    assert interpret(Program(there)).state["x"] != interpret(Program(back)).state["x"]


# ---- random programs


@steady(100)
@given(programs(), st.integers(0, 99))
def test_program(program: Program, seed: int) -> None:
    """Visits, blackboard, errors, status and steps are those of the interpreter: under both schedules, with real
    threads, in virtual time with nodes that finish in any order, with two workers, and under strict."""
    done = interpret(program)
    want = expected(done)
    assert outcome(program, done, schedule="waves") == want
    assert outcome(program, done, schedule="ready") == want
    assert outcome(program, done, schedule="waves", seed=seed, strict=True) == want
    assert outcome(program, done, schedule="ready", seed=seed, max_workers=2) == want
    assert outcome(program, done, schedule="ready", seed=seed + 1, strict=True) == want


@steady(70)
@given(programs(wild=("w",)), st.integers(0, 99))
def test_races(program: Program, seed: int) -> None:
    """A key is written by runs of one another's past, or StateCollision names it: never silence, never a false alarm,
    under both schedules and whoever is first."""
    done = interpret(program)
    for schedule, order in itertools.product(("waves", "ready"), (None, seed)):
        if done.races:
            with pytest.raises(StateCollision) as caught:
                outcome(program, done, schedule=schedule, seed=order)
            assert {caught.value.key} == done.races
        else:
            assert outcome(program, done, schedule=schedule, seed=order) == expected(done)


@steady(25)
@given(programs(depth=2, failures=False), programs(depth=2, failures=False), st.integers(0, 99))
def test_planted_race(left: Program, right: Program, seed: int) -> None:
    """Two branches that both write a key collide, whatever stands before and beside the writers."""
    def renamed(part: Any, prefix: str) -> Any:
        return _map_tasks(part, lambda task: Task(prefix + task.name))

    race = Par((Seq((renamed(left.root, "l"), T("a", sets=("same",)))),
                Seq((renamed(right.root, "r"), T("b", sets=("same",))))))
    caps = {"l" + k: v for k, v in left.caps.items()} | {"r" + k: v for k, v in right.caps.items()}
    program = Program(Seq((race, T("join"))), caps, shuffle=seed)
    done = interpret(program)
    assert done.races == {"same"}
    for schedule, order in itertools.product(("waves", "ready"), (None, seed)):
        with pytest.raises(StateCollision) as caught:
            outcome(program, done, schedule=schedule, seed=order)
        assert caught.value.key == "same"
        assert set(caught.value.nodes) == {"a", "b"}


@steady(60)
@given(programs())
def test_ways_back(program: Program) -> None:
    """describe() calls exactly those edges backward that close the program's loops, in whatever order things came."""
    edges = program.graph().describe()["edges"]
    assert {(e["src"], e["dst"]) for e in edges if e["backwards"]} == program.ways_back()
    assert all(e["conditional"] for e in edges if e["backwards"])


@steady(40)
@given(programs(), st.integers(0, 99))
def test_events_tell_the_whole_run(program: Program, seed: int) -> None:
    """Every visit has a start and an end in the events, refused visits have neither; the end of the graph counts the
    steps; and in virtual time nothing is told before what happened earlier."""
    want, heard = interpret(program), Heard()
    outcome(program, want, schedule="ready", seed=seed, observer=heard)
    started = [(e["node"], e["visit"]) for e in heard["node_start"]]
    assert sorted(started) == sorted((node, k + 1) for node, n in want.visits.items() for k in range(n))
    assert sorted((e["node"], e["visit"]) for e in heard["node_end"]) == sorted(started)
    assert len(heard["refused"]) == want.steps - len(started)
    assert heard["graph_end"][0]["steps"] == want.steps
    assert heard["graph_end"][0]["path"] == [node for node, _ in started]
    assert [e["t"] for _, e in heard.events] == sorted(e["t"] for _, e in heard.events)


def _map_tasks(part: Any, change: Callable[[Task], Task]) -> Any:
    """Return the part with every task changed."""
    if isinstance(part, Task):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_map_tasks(p, change) for p in part)
    if hasattr(part, "__dataclass_fields__"):
        return type(part)(**{name: _map_tasks(getattr(part, name), change) for name in part.__dataclass_fields__})
    return part


# ---- any order


@pytest.mark.parametrize("schedule", ["waves", "ready"])
def test_any_order_of_finishing(schedule: str) -> None:
    """However the four nodes of a wave finish, the blackboard is the same, down to the order of its keys."""
    def once(times: tuple[int, ...]) -> str:
        graph = Graph("four")
        for name, seconds in zip("dbac", times, strict=True):
            graph.add_node(name, lambda state, n=name, s=seconds: clocks.sleep(s) or {n: 1, f"{n}_too": n})
            graph.add_edge(START, name)
        graph.add_node("join", lambda state: {"all": [state[n + "_too"] for n in "abcd"]})
        for name in "abcd":
            graph.add_edge(name, "join")
        graph.add_edge("join", END)
        with clocks.virtual_time() as clock:
            state = run_graph(graph, {"first": 1}, schedule=schedule)
            assert clock.now() == max(times)
        keys = list(state) if schedule == "waves" else sorted(state)
        return json.dumps([keys, sorted(state.items()), state.visits, state.status])

    assert len({once(times) for times in itertools.permutations((1, 2, 3, 4))}) == 1
    assert len({once(times) for times in itertools.product((0, 1), repeat=4) if any(times) and max(times) == 1}) == 1
