"""What overlap makes faster: a total to work out, and two crossed chains to shorten.

    seconds_of([(START, "slow_a"), ("slow_a", "quick_a"), (START, "quick_b"), ("quick_b", "slow_b")])     # 6.0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..checks import Exercise, Wrong, edges_of, is_number, rehearse
from ..clock import sleep
from ..engine import START, Graph
from ..workflows.measured import node_seconds

SCANS = ("scan_github", "scan_web", "scan_calendar", "scan_memory")


def _waits(name: str, seconds: float, reads: Iterable[str] = ()) -> Callable[[Mapping[str, Any]], dict[str, str]]:
    """The function of a node that looks at keys, waits, and writes a key of its own name."""
    def node(state: Mapping[str, Any]) -> dict[str, str]:
        for key in reads:
            state[key]
        sleep(seconds)
        return {name: "done"}
    return node


# ---- what if the web were free?


def total(**changed: float) -> float:
    """Seconds that the scans and the synthesis take together, some of them changed: total(scan_web=0)."""
    seconds = {**node_seconds("gather"), **changed}
    graph = Graph("gather").add_node("synthesize", _waits("synthesize", seconds["synthesize"], SCANS))
    for name in SCANS:
        graph.add_node(name, _waits(name, seconds[name])).add_edge(START, name).add_edge(name, "synthesize")
    return rehearse(graph).seconds


def check_free_web(answer: Any) -> str | None:
    """None if the answer is the total without the web scan, give or take the rounding."""
    if isinstance(answer, str):
        found = re.fullmatch(r"\s*(\d+(?:[.,]\d+)?)\s*(?:s|sec|seconds)?\s*", answer)
        answer = float(found[1].replace(",", ".")) if found else answer
    if (wrong := is_number(answer, "a number of seconds")) is not None:
        return wrong
    seconds, right, before = node_seconds("gather"), total(scan_web=0), total()
    in_series = sum(seconds.values()) - seconds["scan_web"]
    if _about(answer, in_series, 0.0005):
        return f"{answer} s is everything laid end to end; where do the bars of the scans begin?"
    if _about(answer, right, 0.0151):
        return None
    if _about(answer, right * 1000, 15):
        return f"{answer} is in milliseconds, and seconds are asked for"
    if _about(answer, seconds["scan_github"], 0.02):
        return f"{answer} s is the wave alone: how much lies outside the wave?"
    if _about(answer, before, 0.02):
        return f"{answer} s is what it takes now: who waited for the web, and would no longer?"
    if _about(answer, seconds["synthesize"], 0.15):
        return f"{answer} s is the synthesis, as if the other scans were free too: who sets the pace now?"
    if answer < seconds["synthesize"]:
        return f"{answer} s is less than the synthesis takes alone: how much lies outside the wave?"
    return f"{answer} s is too {'much' if answer > right else 'little'}: who sets the pace now, and what comes after?"


def _about(answer: float, value: float, off: float) -> bool:
    return abs(answer - value) <= off


FREE_WEB = Exercise(
    name="waves-1",
    statement="""Suppose the web answered at once: `scan_web` takes 0 s. What is the new total, from the start to the
end of the synthesis, in seconds?""",
    check=check_free_web,
    todo="put a number of seconds in place of the three dots",
    hints=["Look at the chart: take the bar of scan_web away, and see which bar of wave 1 is the longest now.",
           "Wave 1 ends with scan_github. Wave by wave, what comes after it has not changed.",
           "Add the seconds of scan_github and those of synthesize."],
    solution="""
from minigraph.workflows.measured import node_seconds

seconds = node_seconds("gather")
answer = seconds["scan_github"] + seconds["synthesize"]
""",
    why="Now scan_github sets the pace: 1.887 s saved in one scan are 0.381 s saved in all.",
    wrong={
        "the wave becomes free": Wrong("answer = 11.3", "who sets the pace now?"),
        "half": Wrong("answer = 13.166 / 2", "how much lies outside the wave?"),
        "nothing changes": Wrong("answer = 13.166", "who waited for the web"),
        "the wave alone": Wrong("answer = 1.506", "how much lies outside the wave?"),
        "end to end": Wrong("answer = 1.506 + 0.002 + 0.001 + 11.279", "where do the bars of the scans begin?"),
        "milliseconds": Wrong("answer = 12785", "seconds are asked for"),
        "in words": Wrong('answer = "faster"', "a number of seconds is asked for"),
    },
)

# ---- two crossed chains

TAKES = {"slow_a": 3, "quick_a": 1, "quick_b": 1, "slow_b": 3}  # node -> seconds
READS = {"quick_a": ["slow_a"], "slow_b": ["quick_b"]}  # node -> whose results it reads
CROSSED = [(START, "slow_a"), ("slow_a", "quick_a"), (START, "quick_b"), ("quick_b", "slow_b")]


def chains(edges: Iterable[tuple[str, str]]) -> Graph:
    """The four nodes of the crossed chains, joined by these edges. GraphError if they cannot be."""
    graph = Graph("chains")
    for name, seconds in TAKES.items():
        graph.add_node(name, _waits(name, seconds, READS.get(name, ())))
    for src, dst in edges:
        graph.add_edge(src, dst)
    return graph


def seconds_of(edges: Iterable[tuple[str, str]], schedule: str = "waves") -> float:
    """How long the chains take with these edges."""
    return rehearse(chains(edges), schedule=schedule).seconds


def check_shorter(answer: Any) -> str | None:
    """None if the edges keep both chains and take 5 s in waves; a graph is taken for its edges."""
    edges = edges_of(answer) if isinstance(answer, Graph) else answer
    if not isinstance(edges, (list, tuple)) or not all(
            isinstance(edge, (list, tuple)) and len(edge) == 2 and all(isinstance(end, str) for end in edge)
            for edge in edges):
        return f"answer is {answer!r}, and a list of edges is asked for, as in [(START, 'slow_a'), ...]"
    for reader, sources in READS.items():
        for source in sources:
            if reader not in _below(source, edges):
                return (f"no path leads from {source!r} to {reader!r} any more, which reads what it made: "
                        "whose result is now missing?")
    run, before = rehearse(chains(edges)), seconds_of(CROSSED)
    if run.trouble is not None:
        return run.trouble
    if run.seconds < before:
        return None
    waves = ", then ".join(" with ".join(wave) for wave in run.waves)
    if all(len(wave) == 1 for wave in run.waves):
        return f"{run.seconds:g} s, and it was {before:g}: no bars share a left edge"
    if run.seconds == before:
        return f"{before:g} s, as before ({waves}): which two bars would fill one wave without a hatched part?"
    return f"{run.seconds:g} s, and it was {before:g} ({waves}): do the two slow ones share a wave?"


def _below(source: str, edges: Iterable[Iterable[str]]) -> set[str]:
    """All that a path leads to."""
    found: set[str] = set()
    todo = [source]
    while todo:
        here = todo.pop()
        new = {dst for src, dst in edges if src == here} - found
        found |= new
        todo += new
    return found


SHORTER = Exercise(
    name="waves-2",
    statement="""Shorten the two crossed chains, in waves: 6 s is what they take, and 5 s can be done. `answer` is the
list of edges. `quick_a` must still run after `slow_a`, whose result it reads, and `slow_b` after `quick_b`.""",
    check=check_shorter,
    todo="put the list of edges in place of the three dots",
    hints=["A wave is as slow as its slowest node. Two slow nodes in one wave cost as much as one.",
           "The edges that are there must stay. An edge more can make a node start a wave later.",
           "Let slow_a start one wave later, beside slow_b: it has to wait for quick_b."],
    solution="""
from minigraph import START

answer = [(START, "slow_a"), ("slow_a", "quick_a"), (START, "quick_b"), ("quick_b", "slow_b"),
          ("quick_b", "slow_a")]
""",
    why="The two slow ones share a wave. schedule=\"ready\" takes 4 s with the edges as they were, and needs no trick.",
    wrong={
        "everything chained": Wrong(
            """
from minigraph import START
answer = [(START, "slow_a"), ("slow_a", "quick_a"), ("quick_a", "quick_b"), ("quick_b", "slow_b")]
""", "no bars share a left edge"),
        "an edge dropped": Wrong(
            """
from minigraph import START
answer = [(START, "slow_a"), (START, "quick_a"), (START, "quick_b"), ("quick_b", "slow_b")]
""", "whose result is now missing?"),
        "as it was": Wrong(
            """
from minigraph import START
answer = [(START, "slow_a"), ("slow_a", "quick_a"), (START, "quick_b"), ("quick_b", "slow_b")]
""", "which two bars would fill one wave"),
        "the wrong one waits": Wrong(
            """
from minigraph import START
answer = [(START, "slow_a"), ("slow_a", "quick_a"), ("slow_a", "quick_b"), ("quick_b", "slow_b")]
""", "do the two slow ones share a wave?"),
        "a circle": Wrong(
            """
from minigraph import START
answer = [(START, "slow_a"), ("slow_a", "quick_a"), ("quick_a", "slow_a"), (START, "quick_b"), ("quick_b", "slow_b")]
""", "make a cycle that nothing can stop"),
        "names without edges": Wrong('answer = ["quick_b", "slow_a"]', "a list of edges is asked for"),
    },
)

EXERCISES = [FREE_WEB, SHORTER]
