"""A run is what its journal says: cut anywhere, resumed anywhere, it comes out as if nobody had touched it."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from helpers import within
from test_conformance import CASES, SCHEDULES, build

from minigraph import Graph, GraphState, StateCollision, resume_graph, run_graph
from minigraph import clock as clocks
from minigraph.nodes import human_node

Record = dict[str, Any]
IDS = [case["id"] for case in CASES]


def outcome(run: Any) -> Any:
    """What a run came to: its state and the rest, or what it raised."""
    try:
        state: GraphState = run()
    except StateCollision as error:
        return "collision", error.key
    return state.status, dict(state), state.visits, sorted(state.exceptions)


def resumed(case: Record, records: list[Record], **options: Any) -> tuple[Any, Counter[str], list[Record]]:
    """The outcome of a case resumed from records, how often each node was called, and the records it added."""
    graph, more = build(case), []  # type: Graph, list[Record]
    ended = Counter(record["node"] for record in records[1:] if "node" in record)
    for name, node in graph.nodes.items():
        node.fn.visit = ended[name]
    found = outcome(lambda: resume_graph(graph, json.loads(json.dumps(records)), max_steps=case.get("max_steps"),
                                         journal=more.append, **options))
    calls = Counter({name: node.fn.visit - ended[name] for name, node in graph.nodes.items()})
    return found, +calls, more


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_prefix_resumes_to_the_same_end(case: Record, schedule: str) -> None:
    """From any earlier moment a run comes to the same end, and nothing that had ended is called again."""
    whole: list[Record] = []
    expected = outcome(lambda: run_graph(build(case), {}, max_steps=case.get("max_steps"), schedule=schedule,
                                         journal=whole.append))
    ends = Counter(record["node"] for record in whole if "node" in record)
    for cut in range(1, len(whole) + 1):
        found, calls, more = within(30, lambda cut=cut: resumed(case, whole[:cut]))
        before = Counter(record["node"] for record in whole[:cut] if "node" in record)
        assert found == expected, cut
        if expected[0] != "collision":  # what runs beside a collision is anybody's guess
            assert calls == ends - before, cut
            key = json.dumps
            assert sorted(map(key, whole[:cut] + more)) == sorted(map(key, whole)), cut


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_records_in_any_order_of_ending(case: Record, schedule: str) -> None:
    """Whoever ended first, and wherever it was cut: the run plays on in the order that was written down."""
    for seed in range(2):
        whole: list[Record] = []
        with clocks.virtual_time():
            expected = outcome(lambda: run_graph(build(case, seed), {}, max_steps=case.get("max_steps"),  # noqa: B023
                                                 schedule=schedule, journal=whole.append))  # noqa: B023
        for cut in random.Random(seed).sample(range(1, len(whole) + 1), min(4, len(whole))):
            assert within(30, lambda cut=cut: resumed(case, whole[:cut]))[0] == expected, (seed, cut)  # noqa: B023


# ---- gates: a node whose outcome comes from elsewhere, and later


def gated(case: Record, gates: set[str], visits: Counter[str]) -> Graph:
    """The graph of a case, some of its nodes turned into gates; their answers are what the nodes would write."""
    graph = build(case)
    for name, node in list(graph.nodes.items()):
        if name in gates:
            graph.nodes[name] = human_node(name, f"{name}?", name, max_visits=node.max_visits, on_error=node.on_error)
        else:
            node.fn.visit = visits[name]
    for name, (_, targets) in list(graph.routers.items()):
        if name in gates:  # picks go by the number of the visit, which the answer is
            picks = case["routers"][name]["picks"]
            graph.routers[name] = (lambda state, n=name, p=picks: p[min(state[n], len(p)) - 1]), targets
    return graph


def human_case(case: Record) -> list[str]:
    """The nodes of a case that a person may stand in for: they write their visit under their own name, and end well."""
    return [name for name, spec in case["nodes"].items() if not spec.get("fails") and "writes" not in spec]


GATED = [case for case in CASES if human_case(case) and "raises" not in case["expect"] and "max_steps" not in case]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", GATED, ids=[case["id"] for case in GATED])
def test_a_gate_is_a_node_that_takes_its_time(case: Record, schedule: str) -> None:
    """Any nodes may be people, answering in any order, one at a time or together, the process ended in between."""
    expect = case["expect"]
    for seed in range(3):
        dice, records, visits = random.Random(f"{seed} {case['id']}"), [], Counter()  # type: Any, list[Record], Any
        gates = set(dice.sample(human_case(case), dice.randint(1, min(3, len(human_case(case))))))
        state = within(30, lambda: run_graph(gated(case, gates, visits), {}, schedule=schedule,  # noqa: B023
                                             journal=records.append))  # noqa: B023
        for _ in range(100):
            if state.status != "paused":
                break
            chosen = dice.sample(sorted(state.waiting), dice.randint(1, len(state.waiting)))
            answers = {name: state.visits[name] for name in chosen}
            visits = Counter(record["node"] for record in records[1:] if "node" in record)
            state = within(30, lambda: resume_graph(gated(case, gates, visits), list(records), answers,  # noqa: B023
                                                    journal=records.append))  # noqa: B023
            records[:] = json.loads(json.dumps(records))
        assert state.status == expect["status"], (seed, gates, state.errors)
        assert {key: value for key, value in state.items() if key != "errors"} == expect["state"], (seed, gates)
        assert {name: n for name, n in state.visits.items() if n} == expect["visits"], (seed, gates)
        again = resume_graph(gated(case, gates, Counter()), records)
        assert (again, again.status, again.path) == (state, state.status, state.path)
