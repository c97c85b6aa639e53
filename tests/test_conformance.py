"""Every case in conformance/cases.jsonl comes out as it says, whatever the schedule and whoever finishes first."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from helpers import Heard, within

from minigraph import Graph, GraphState, StateCollision, run_graph
from minigraph import clock as clocks

CASES = [json.loads(line) for line in
         (Path(__file__).parent / "conformance" / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
SCHEDULES = ("waves", "ready")


class Behaviour:
    """A node's function: it counts its visits, sleeps, and fails or writes as its case says."""

    def __init__(self, name: str, spec: dict[str, Any], latency: random.Random | None) -> None:
        self.name, self.spec, self.latency, self.visit = name, spec, latency, 0

    def __call__(self, state: GraphState) -> dict[str, Any]:
        self.visit += 1
        if self.latency is not None:
            clocks.sleep(self.latency.choice([0, 1, 1, 2, 3.5, 8]))
        if self.visit in self.spec.get("fails", ()):
            raise RuntimeError(f"planned failure of {self.name} on visit {self.visit}")
        writes = self.spec.get("writes", {self.name: "visit"})
        return {key: self.visit if value == "visit" else value for key, value in writes.items()}


def build(case: dict[str, Any], seed: int | None = None) -> Graph:
    """Return the graph of a case; with a seed, its nodes take random times on the run's clock."""
    graph, functions = Graph(case["id"]), {}
    for name, spec in case["nodes"].items():
        latency = None if seed is None else random.Random(f"{seed} {name}")
        functions[name] = Behaviour(name, spec, latency)
        graph.add_node(name, functions[name], max_visits=spec.get("max_visits"), on_error=spec.get("on_error"))
    for src, dst in case["edges"]:
        graph.add_edge(src, dst)
    for name, router in case.get("routers", {}).items():
        graph.add_router(name, picker(functions[name], router["picks"]), router["targets"])
    return graph


def picker(function: Behaviour, picks: list[Any]) -> Any:
    return lambda state: picks[min(function.visit, len(picks)) - 1]


def check(case: dict[str, Any], schedule: str, seed: int | None = None, **options: Any) -> None:
    expect, heard = case["expect"], Heard()

    def go() -> GraphState:
        return run_graph(build(case, seed), {}, heard, case.get("max_steps"), schedule=schedule, **options)

    if "raises" in expect:
        with pytest.raises(StateCollision) as caught:
            go()
        assert caught.value.key == expect["key"]
        assert set(caught.value.nodes) <= set(case["nodes"])
        return
    state = go()
    assert state.status == expect["status"]
    assert {key: value for key, value in state.items() if key != "errors"} == expect["state"]
    assert sorted(name for name in state["errors"] if name != "engine") == sorted(expect["errors"])
    assert {name: n for name, n in state.visits.items() if n} == expect["visits"]
    if schedule == "waves":
        assert heard.waves == expect["waves"]
        assert [event["nodes"] for event in heard["wave_start"]] == expect["waves"]


def test_the_cases_are_all_here() -> None:
    """A file that lost its cases would make every other test here pass."""
    assert len(CASES) == len({case["id"] for case in CASES}) == 185


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], schedule: str) -> None:
    """A case has its outcome under either schedule, with real threads; and with two workers only."""
    within(30, lambda: check(case, schedule))
    within(30, lambda: check(case, schedule, max_workers=2))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case_in_any_order(case: dict[str, Any], schedule: str) -> None:
    """A case has the same outcome in whatever order its nodes happen to finish."""
    def go() -> None:
        for seed in range(3):
            with clocks.virtual_time():
                check(case, schedule, seed)
    within(30, go)
