"""What a run costs, as ratios: beside the same functions without an engine, and beside a graph a quarter the size.

    python tests/bench/bench.py              # or: make bench
    python tests/bench/bench.py --quick      # a small run, to see that it works

Every figure is the best of several rounds, and what is compared is measured in turns in the same round, so that a busy
machine slows both. The nodes do almost nothing: what is measured is the engine. Nothing is asserted: a machine that
does other work can slow a round, and no test should fail for that.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from minigraph import END, START, Graph, run_graph  # noqa: E402

WIDTH = 50  # nodes in a layer, and workers: the run's pool and the raw one have as many
SCHEDULES = ("waves", "ready")

LEGEND = """\
us/node   microseconds a node, in a run of a graph that has run before
bare      the same functions called without an engine, microseconds a node: a `for` or `while` loop that updates a dict;
          for layers, a ThreadPoolExecutor of {width} that is given a layer, waits for it, and goes on to the next
ratio     the first divided by the second
growth    time of the whole run divided by that of a graph a quarter the size: 4.0 is linear
build     adding nodes and edges, microseconds a node (once a graph)
check     what the first run costs more than others, for checking the graph, microseconds a node (once a graph)
To reach: chain and loop at most 30 times the bare loop, layers at most 1.5 times the raw pool, growth at most 4.4.
"""

Fn = Callable[[Any], Any]
timer = time.perf_counter


def step(state: Any) -> dict[str, Any]:
    """A node that reads a key and writes it again."""
    return {"n": state["n"] + 1}


def writer(key: str) -> Fn:
    """A node that writes a key of its own."""
    return lambda state: {key: 1}


def nothing(state: Any) -> None:
    """A node that writes nothing."""


def fail(state: Any) -> None:
    raise ValueError("planned")


@dataclass
class Case:
    """A kind of graph: how to build one of a size, and the same work without an engine."""

    name: str
    size: int
    build: Callable[[int], Graph]
    bare: Callable[[int], Callable[[], Any]]
    begin: dict[str, Any]
    max_steps: int | None = None


# ---- the graphs


def chain(size: int, fn: Fn = step, graph: Graph | None = None, **options: Any) -> Graph:
    graph = graph or Graph("chain")
    for i in range(size):
        graph.add_node(f"n{i}", fn, **options)
        graph.add_edge(f"n{i - 1}" if i else START, f"n{i}")
    return graph


def bare_chain(size: int, fn: Fn = step) -> Callable[[], Any]:
    functions = [fn] * size

    def go() -> dict[str, Any]:
        state: dict[str, Any] = {"n": 0}
        for function in functions:
            state.update(function(state) or {})
        return state
    return go


def router(size: int) -> Fn:
    return lambda state: "again" if state["n"] < size else "out"


def loop(size: int) -> Graph:
    graph = Graph("loop")
    graph.add_node("work", step, max_visits=size + 1)
    graph.add_edge(START, "work")
    graph.add_router("work", router(size), {"again": "work", "out": END})
    return graph


def bare_loop(size: int) -> Callable[[], Any]:
    route = router(size)

    def go() -> dict[str, Any]:
        state: dict[str, Any] = {"n": 0}
        while True:
            state.update(step(state))
            if route(state) != "again":
                return state
    return go


def rows(size: int) -> Iterator[list[str]]:
    for layer in range(size // WIDTH):
        yield [f"{layer}.{i}" for i in range(WIDTH)]


def layers_with_joins(size: int) -> Graph:
    graph, before = Graph("layers with joins"), START
    for layer, names in enumerate(rows(size)):
        join = f"join {layer}"
        graph.add_node(join, nothing)
        for name in names:
            graph.add_node(name, writer(name))
            graph.add_edge(before, name)
            graph.add_edge(name, join)
        before = join
    return graph


def full_layers(size: int) -> Graph:
    graph, before = Graph("full layers"), [START]
    for names in rows(size):
        for name in names:
            graph.add_node(name, writer(name))
            for src in before:
                graph.add_edge(src, name)
        before = names
    return graph


def raw_pool(size: int, joins: bool) -> Callable[[], Any]:
    functions = [[writer(name) for name in names] for names in rows(size)]

    def go() -> dict[str, Any]:
        state: dict[str, Any] = {}
        with ThreadPoolExecutor(WIDTH) as pool:
            for layer in functions:
                for future in [pool.submit(function, state) for function in layer]:
                    state.update(future.result())
                if joins:
                    nothing(state)
        return state
    return go


def short_branch(size: int) -> Graph:
    graph = chain(size)
    graph.add_node("short", nothing)
    graph.add_node("join", nothing)
    graph.add_edge(START, "short")
    graph.add_edge("short", "join")
    graph.add_edge(f"n{size - 1}", "join")
    return graph


def shared_handler(size: int) -> Graph:
    """One node fails at once; the handler waits for all the others, any of which might still fail into it."""
    graph = chain(size, on_error="handler")
    graph.add_node("broken", fail, on_error="handler")
    graph.add_edge(START, "broken")
    graph.add_node("handler", nothing)
    return graph


def cases(scale: float) -> list[Case]:
    def size(n: int) -> int:
        return max(4 * WIDTH, int(n * scale) // (4 * WIDTH) * (4 * WIDTH))

    begin = {"n": 0}
    return [
        Case("chain", size(10_000), chain, bare_chain, begin),
        Case("loop", size(10_000), loop, bare_loop, begin, max_steps=10**9),
        Case("layers, a join each", size(2_000), layers_with_joins, lambda n: raw_pool(n, True), {}),
        Case("layers, fully joined", size(2_000), full_layers, lambda n: raw_pool(n, False), {}),
        Case("short branch, long chain", size(8_000), short_branch, bare_chain, begin),
        Case("one handler for all", size(4_000), shared_handler, bare_chain, begin),
    ]


# ---- measuring


def seconds(fn: Callable[[], Any]) -> float:
    gc.collect()
    begun = timer()
    fn()
    return timer() - begun


def measure(case: Case, rounds: int) -> Iterator[list[str]]:
    """Yield a row of the table for each schedule."""
    small, large = case.size // 4, case.size
    graphs: dict[int, Graph] = {}

    def run(size: int, schedule: str) -> float:
        return seconds(lambda: run_graph(graphs[size], case.begin, None, case.max_steps, schedule=schedule,
                                         max_workers=WIDTH))

    build = check = float("inf")
    for _ in range(min(rounds, 3)):
        for size in (small, large):
            built = seconds(lambda size=size: graphs.__setitem__(size, case.build(size)))
            first = run(size, "waves")
        build, check = min(build, built), min(check, first)
    best: dict[Any, float] = {}
    bare = {size: case.bare(size) for size in (small, large)}
    for _ in range(rounds):
        for size in (small, large):
            for schedule in SCHEDULES:
                best[size, schedule] = min(best.get((size, schedule), 9e9), run(size, schedule))
            best[size, "bare"] = min(best.get((size, "bare"), 9e9), seconds(bare[size]))
    for schedule in SCHEDULES:
        run_time, bare_time = best[large, schedule], best[large, "bare"]
        yield [case.name, schedule, f"{large:,}", f"{run_time / large * 1e6:.1f}", f"{bare_time / large * 1e6:.2f}",
               f"{run_time / bare_time:.2f}" if "layers" in case.name else f"{run_time / bare_time:.1f}",
               f"{run_time / best[small, schedule]:.2f}", f"{build / large * 1e6:.1f}",
               f"{max(0.0, check - best[large, 'waves']) / large * 1e6:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small graphs and few rounds")
    parser.add_argument("--rounds", type=int, default=0, help="how often everything is measured (default 7, quick 2)")
    parser.add_argument("--scale", type=float, default=0, help="multiplies every size (default 1, quick 0.1)")
    parser.add_argument("--only", default="", help="only the graphs with this in their name")
    parser.add_argument("--cpu", action="store_true", help="count processor time: steadier while other programs run")
    options = parser.parse_args()
    if options.cpu:
        global timer
        timer = time.process_time
    rounds = options.rounds or (2 if options.quick else 7)
    scale = options.scale or (0.1 if options.quick else 1)
    print(f"minigraph on {platform.python_implementation()} {platform.python_version()}, best of {rounds}"
          f"{', processor time' if options.cpu else ''}\n")
    print(LEGEND.format(width=WIDTH))
    line = "{:<25} {:<9} {:>7} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7}".format
    print(line("graph", "schedule", "nodes", "us/node", "bare", "ratio", "growth", "build", "check"))
    for case in cases(scale):
        if options.only in case.name:
            for row in measure(case, rounds):
                print(line(*row), flush=True)


if __name__ == "__main__":
    main()
