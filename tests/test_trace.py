"""A trace is what happened: rows and tables that are exact in virtual time, and a file that comes back as it was."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from charts import letter, letter_inside, mapped, nested, research, run_then_resume
from helpers import make, within

from minigraph import END, START, Graph, GraphError, emit, run_graph
from minigraph import clock as clocks
from minigraph.nodes import graph_node, human_node, map_node
from minigraph.trace import Trace

both = pytest.mark.parametrize("schedule", ["waves", "ready"])


def nap(seconds: float, **update: Any) -> Callable[[Any], dict[str, Any]]:
    def node(state: Any) -> dict[str, Any]:
        clocks.sleep(seconds)
        return update
    return node


def fail(state: Any) -> None:
    clocks.sleep(0.5)
    raise ValueError("no such page")


def morning() -> Graph:
    """Return a graph with a wave of three, one of them failing, and an answer below."""
    return make("START>github,web,calendar github>answer calendar>answer web>answer answer>END", name="morning",
                github=nap(1.5, github=3), web={"fn": fail, "on_error": "answer"}, calendar=nap(2, calendar=[], days=1),
                answer=nap(10, text="hi"))


def traced(graph: Graph, **options: Any) -> Trace:
    """Return the trace of a run in virtual time."""
    trace = Trace()

    def go() -> None:
        with clocks.virtual_time():
            run_graph(graph, {}, trace, **options)

    within(30, go)
    return trace


def rows(trace: Trace) -> list[tuple[Any, ...]]:
    return [(v.node, v.visit, v.wave, v.start, v.end, v.wait, v.error) for v in trace.visits()]


def test_what_a_trace_knows_of_its_run() -> None:
    """Name, nodes in the order of the graph, schedule, status and seconds."""
    trace = traced(morning())
    assert trace.name == "morning"
    assert trace.nodes == ["github", "web", "calendar", "answer"]
    assert (trace.schedule, trace.status, trace.seconds) == ("waves", "done", 12)
    assert traced(morning(), schedule="ready").schedule == "ready"
    assert traced(make("START>a", a=fail)).status == "failed"


def test_events() -> None:
    """Events are dicts with kind and t and what the event says; len and iteration are theirs, of() picks a kind."""
    trace = traced(make("START>a a>b", name="two", a=nap(1, x=1), b=nap(2)))
    assert [(e["kind"], e["t"]) for e in trace.events] == [
        ("graph_start", 0), ("wave_start", 0), ("node_start", 0), ("node_end", 1), ("wave_end", 1),
        ("wave_start", 1), ("node_start", 1), ("node_end", 3), ("wave_end", 3), ("graph_end", 3)]
    assert len(trace) == 10
    assert list(trace) == trace.events
    assert [e["node"] for e in trace.of("node_end")] == ["a", "b"]
    assert trace.of("node_end")[0]["keys"] == ["x"]
    assert trace.of("never") == []


def test_visits_of_waves() -> None:
    """A visit has its times, its wave, and how long it stood at the barrier: the slowest of a wave not at all."""
    trace = traced(morning())
    assert rows(trace) == [
        ("github", 1, 1, 0, 1.5, 0.5, None),
        ("web", 1, 1, 0, 0.5, 1.5, "ValueError: no such page"),
        ("calendar", 1, 1, 0, 2, 0, None),
        ("answer", 1, 2, 2, 12, 0, None)]
    assert [v.keys for v in trace.visits()] == [["github"], [], ["calendar", "days"], ["text"]]
    assert [v.retries for v in trace.visits()] == [0, 0, 0, 0]


def test_visits_without_waves() -> None:
    """Under "ready" there are no waves and no barrier."""
    graph = make("START>a,b a>a2 b>b2", a=nap(1), b=nap(4), a2=nap(1), b2=nap(1))
    assert rows(traced(graph, schedule="ready")) == [
        ("a", 1, None, 0, 1, 0, None), ("b", 1, None, 0, 4, 0, None), ("a2", 1, None, 1, 2, 0, None),
        ("b2", 1, None, 4, 5, 0, None)]


@both
def test_laps(schedule: str) -> None:
    """Each visit of a node is a row of its own."""
    picks = iter(["again", "out"])
    graph = make("START>a a>b", a={"fn": nap(1), "max_visits": 3}, b=nap(2),
                 routers={"b": (lambda state: next(picks), {"again": "a", "out": END})})
    assert [row[:2] + row[3:5] for row in rows(traced(graph, schedule=schedule))] == [
        ("a", 1, 0, 1), ("b", 1, 1, 3), ("a", 2, 3, 4), ("b", 2, 4, 6)]


def test_retries_are_counted() -> None:
    """An event "retry" of a node counts for the visit it falls in."""
    def node(state: Any) -> None:
        clocks.sleep(1)
        emit("retry", {"why": "ValueError: once"})
        emit("retry", {"why": "ValueError: twice"})

    trace = traced(make("START>a a>b", a=node, b=nap(1)))
    assert [(v.node, v.retries) for v in trace.visits()] == [("a", 2), ("b", 0)]


def test_calls() -> None:
    """Model and tool calls are rows of their own: a call ends when its event comes, and its ms say when it began."""
    def think(state: Any) -> None:
        clocks.sleep(1)
        emit("llm", {"name": "stub", "ms": 1000, "error": None, "stop_reason": "tool_use"})
        clocks.sleep(0.25)
        emit("tool", {"name": "look_up", "ms": 250, "error": None, "arguments": {"q": "tea"}})

    calls = traced(make("START>a,b a>c b>c", a=nap(2), b=think, c=think)).calls()
    assert [(c.kind, c.name, c.node, c.start, c.end) for c in calls] == [
        ("llm", "stub", "b", 0, 1), ("tool", "look_up", "b", 1, 1.25),
        ("llm", "stub", "c", 2, 3), ("tool", "look_up", "c", 3, 3.25)]


def test_a_loop_without_a_graph() -> None:
    """The events of an agent loop alone make a trace too: calls, and no visits."""
    trace = Trace()
    for kind, event in [("loop_start", {"t": 0.0}), ("llm", {"t": 2.0, "ms": 2000, "name": "stub", "error": None}),
                        ("tool", {"t": 2.5, "ms": 500, "name": "look_up", "error": "no tea"}),
                        ("llm", {"t": 3.5, "ms": 1000, "name": "stub", "error": None}), ("loop_end", {"t": 3.5})]:
        trace(kind, event)
    assert [(c.kind, c.name, c.node, c.start, c.end) for c in trace.calls()] == [
        ("llm", "stub", None, 0, 2), ("tool", "look_up", None, 2, 2.5), ("llm", "stub", None, 2.5, 3.5)]
    assert trace.visits() == []
    assert trace.seconds == 3.5
    assert "look_up" in trace.to_text()
    assert "no tea" in trace.to_text()


@both
def test_the_same_every_time(schedule: str) -> None:
    """In virtual time the events and the table of a run do not hang on which thread is first."""
    def chatty(seconds: float) -> Callable[[Any], None]:
        def node(state: Any) -> None:
            emit("hello", {"n": 1})
            clocks.sleep(seconds)
            emit("hello", {"n": 2})
        return node

    names = [f"{layer}{i}" for layer in range(3) for i in range(6)]
    edges = ["START>" + ",".join(names[:6])]
    edges += [f"{layer}{i}>{layer + 1}{i},{layer + 1}{5 - i}" for layer in range(2) for i in range(6)]
    nodes = {name: chatty(int(name[1]) % 3) for name in names}
    first = traced(make(" ".join(edges), **nodes), schedule=schedule)
    for _ in range(20):
        again = traced(make(" ".join(edges), **nodes), schedule=schedule)
        assert again.events == first.events
        assert again.to_text() == first.to_text()


def test_ties_follow_the_graph() -> None:
    """What happened at one moment stands in the order of the graph, in whatever order it was heard."""
    start = ("graph_start", {"t": 0.0, "workflow": "g", "nodes": ["z", "y", "x"], "schedule": "ready"})
    starts = [("node_start", {"t": 0.0, "workflow": "g", "node": n, "visit": 1, "wave": None}) for n in "zyx"]
    ends = [("node_end", {"t": 1.0, "workflow": "g", "node": n, "visit": 1, "ms": 1000.0, "keys": [], "error": None,
                          "traceback": None}) for n in "zyx"]
    for seed in range(10):
        dice, trace = random.Random(seed), Trace()
        for kind, event in [start, *dice.sample(starts, 3), *dice.sample(ends, 3)]:
            trace(kind, event)
        assert [(e["kind"], e.get("node")) for e in trace.events] == [
            ("graph_start", None), *(("node_start", n) for n in "zyx"), *(("node_end", n) for n in "zyx")]


@both
def test_a_file_comes_back(schedule: str, tmp_path: Path) -> None:
    """to_jsonl writes an event a line, from_jsonl reads them: the same events, rows and table."""
    trace = traced(morning(), schedule=schedule)
    path = tmp_path / "trace.jsonl"
    trace.to_jsonl(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(trace)
    assert all({"kind", "t"} <= json.loads(line).keys() for line in lines)
    back = Trace.from_jsonl(path)
    assert back.events == trace.events
    assert (back.visits(), back.calls(), back.to_text()) == (trace.visits(), trace.calls(), trace.to_text())
    assert Trace.from_jsonl(str(path)).name == "morning"


def test_any_text_comes_back(tmp_path: Path) -> None:
    """Line ends of every kind, quotes, emoji and control characters in names and events are not lost."""
    odd = 'a\nb\r\u2028\u0085 "q" {x} <b> ☃ 🎉 \x07 \x00 é'

    def node(state: Any) -> None:
        emit("llm", {"name": odd, "ms": 0})
        raise ValueError(odd)

    graph = make("START>a")
    graph.add_node(odd, node)
    graph.add_edge("a", odd)
    trace = traced(graph)
    trace.to_jsonl(tmp_path / "odd.jsonl")
    back = Trace.from_jsonl(tmp_path / "odd.jsonl")
    assert back.events == trace.events
    assert back.visits()[1].node == odd
    assert back.calls()[0].name == odd
    lines = trace.to_text().splitlines()
    assert lines == trace.to_text().split("\n")  # nothing in a name breaks a row in two
    assert sum("☃" in line for line in lines) == 1


def test_what_is_no_json_is_written_all_the_same(tmp_path: Path) -> None:
    """A value that JSON does not know does not stop the file from being written."""
    odd = {"set": {1, 2}, "object": object(), "nan": float("nan")}
    trace = traced(make("START>a", a=lambda state: emit("odd", odd)))
    trace.to_jsonl(tmp_path / "odd.jsonl")
    assert [e["kind"] for e in Trace.from_jsonl(tmp_path / "odd.jsonl")] == [e["kind"] for e in trace]


@pytest.mark.parametrize("line", ["no json", '{"kind": "llm"}', '{"t": 1}', "[1, 2]", "7",
                                  '{"kind": "llm", "t": "late"}'])
def test_a_broken_file(line: str, tmp_path: Path) -> None:
    """A line that is no event is a ValueError that names the file and the line."""
    path = tmp_path / "broken.jsonl"
    first = '{"kind": "graph_start", "t": 0, "workflow": "g", "nodes": [], "schedule": "waves"}'
    path.write_text(f"{first}\n{line}\n")
    with pytest.raises(ValueError, match=r"broken\.jsonl.*2"):
        Trace.from_jsonl(path)


def test_the_table() -> None:
    """The table says who ran when, who waited at the barrier how long, who set the pace, and what failed."""
    text = str(traced(morning()))
    assert text == traced(morning()).to_text()
    row = {line.split()[1]: line for line in text.splitlines() if len(line.split()) > 1}
    assert "waited 0.500 s at the barrier" in row["github"]
    assert "waited 1.500 s at the barrier" in row["web"]
    assert "no such page" in row["web"]
    assert "set the pace" in row["calendar"]
    assert "waited" not in row["calendar"] + row["answer"]
    assert "set the pace" not in row["github"] + row["web"] + row["answer"]
    for name, numbers in {"github": ("0.000", "1.500", "1500"), "calendar": ("0.000", "2.000", "2000"),
                          "answer": ("2.000", "12.000", "10000")}.items():
        assert all(number in row[name] for number in numbers), row[name]


def test_the_table_has_no_barrier_under_ready() -> None:
    """Where nobody waits, nobody is said to have waited."""
    text = traced(morning(), schedule="ready").to_text()
    assert "barrier" not in text
    assert "set the pace" not in text


def test_the_table_tells_refused_and_blocked_nodes() -> None:
    """What did not run, and why, is in the table as well."""
    text = traced(make("START>a,b a>c", a=fail, b={"max_visits": 1},
                       routers={"b": (lambda state: "again", {"again": "b"})})).to_text()
    assert "max_visits=1" in text
    assert any("c" in line.split() and "blocked" in line for line in text.splitlines())


def test_a_run_that_has_not_ended() -> None:
    """A trace can be asked while the run goes on: a visit without an end lasts until now."""
    trace, found = Trace(), []

    def look(state: Any) -> None:
        clocks.sleep(3)
        emit("look", {})
        found.extend((v.node, v.start, v.end) for v in trace.visits())
        found.append(trace.status)
        assert trace.to_text()

    def go() -> None:
        with clocks.virtual_time():
            state = run_graph(make("START>a,b", a=nap(1), b=look), {}, trace)
            assert state.status == "done", state["errors"]

    within(20, go)
    assert found == [("a", 0, 1), ("b", 0, 3), None]


def test_an_empty_trace() -> None:
    """A trace that has heard nothing says so without failing."""
    trace = Trace()
    assert (len(trace), trace.visits(), trace.calls(), trace.nodes, trace.seconds) == (0, [], [], [], 0)
    assert (trace.status, trace.schedule) == (None, None)
    assert isinstance(trace.to_text(), str)
    assert repr(trace)


def test_a_run_of_nothing() -> None:
    """START -> END alone has a trace too."""
    trace = traced(make("START>END", name="nothing"))
    assert (trace.name, trace.status, trace.seconds, trace.visits()) == ("nothing", "done", 0, [])


def test_a_trace_is_large_and_quick() -> None:
    """Asking a trace of many visits costs what the trace is long, not its square."""
    trace = Trace()
    n = 20_000
    trace("graph_start", {"t": 0.0, "workflow": "g", "nodes": ["a"], "schedule": "ready"})
    for i in range(n):
        trace("node_start", {"t": float(i), "workflow": "g", "node": "a", "visit": i + 1, "wave": None})
        trace("retry", {"t": i + 0.25, "workflow": "g", "node": "a", "why": "x"})
        trace("node_end", {"t": i + 0.5, "workflow": "g", "node": "a", "visit": i + 1, "ms": 500.0, "keys": [],
                           "error": None, "traceback": None})
    visits = within(20, trace.visits)
    assert len(visits) == n
    assert {v.retries for v in visits} == {1}


# ---- runs inside nodes


def test_what_a_trace_knows_is_of_the_run_itself() -> None:
    """Not of a graph or a loop inside a node, be it heard before the run's own end, and ended otherwise."""
    def agent(state: Any) -> None:
        emit("loop_start", {"workflow": "loop"})
        emit("loop_end", {"workflow": "loop", "status": "max_iterations"})

    inner = make("START>x", name="inner", x=fail)
    graph = make("START>a a>b b>c", name="outer", a=agent, c=nap(1),
                 b={"fn": graph_node("b", inner, [], []).fn, "kind": "graph", "on_error": "c"})
    trace = traced(graph)
    assert [(e["kind"], e.get("node"), e["status"]) for e in trace.of("loop_end", "graph_end")] == [
        ("loop_end", "a", "max_iterations"), ("graph_end", "b", "failed"), ("graph_end", None, "done")]
    assert (trace.name, trace.nodes, trace.schedule, trace.status) == ("outer", ["a", "b", "c"], "waves", "done")
    half = Trace(trace.events[: trace.events.index(trace.of("graph_end")[0]) + 1])
    assert half.status is None  # the inner run is over, the run is not


def test_the_table_of_nested_graphs() -> None:
    """Inner nodes go by the path to them, and their waves by the wave they ran in; a second visit has its own rows."""
    assert traced(nested(2)).to_text().splitlines() == [
        "wave  node                  start      end    ms",
        "1     plan                0.000 s  0.500 s   500",
        "2     research            0.500 s  1.800 s  1300  set the pace",
        "2.1   research/search     0.500 s  1.500 s  1000  set the pace",
        "2.1   research/recall     0.500 s  0.900 s   400  waited 0.600 s at the barrier",
        "2     weather             0.500 s  1.200 s   700  waited 0.600 s at the barrier",
        "2.2   research/rank       1.500 s  1.800 s   300  → good",
        "3     write               1.800 s  2.800 s  1000  → again",
        "4     research (visit 2)  2.800 s  4.100 s  1300",
        "4.1   research/search     2.800 s  3.800 s  1000  set the pace",
        "4.1   research/recall     2.800 s  3.200 s   400  waited 0.600 s at the barrier",
        "4.2   research/rank       3.800 s  4.100 s   300  → good",
        "5     write (visit 2)     4.100 s  5.100 s  1000  → done",
        "report: done after 5.100 s"]
    assert "." not in "".join(line.split()[0] for line in traced(nested(2), schedule="ready").to_text().splitlines())


def test_waves_and_paces_are_those_of_the_graph_itself() -> None:
    """An inner wave has numbers from 1, too; nothing of it gets into the outer waves, nor the other way round."""
    trace = traced(nested(2))
    assert [[visit.node for visit in wave] for wave in trace.waves()] == [
        ["plan"], ["research", "weather"], ["write"], ["research"], ["write"]]
    assert trace.paces() == {("research", 1)}
    assert [(v.within, v.node, v.visit, v.wave) for v in trace.visits() if v.within] == [
        ("research", "research/search", 1, 1), ("research", "research/recall", 1, 1),
        ("research", "research/rank", 1, 2)] * 2


def test_waits_and_routes_of_an_inner_graph_are_its_own() -> None:
    """Also where it has nodes of the same names as the outer one, at the same time and in the same wave."""
    inner = make("START>a,b", name="inner", a=nap(1), b=nap(4),
                 routers={"b": (lambda state: "inside", {"inside": END})})
    graph = make("START>a,b", name="outer", a=nap(9), b={"fn": graph_node("b", inner, [], []).fn, "kind": "graph"},
                 routers={"b": (lambda state: "outside", {"outside": END})})
    assert [(v.node, v.wait, v.labels) for v in traced(graph).visits()] == [
        ("a", 0, []), ("b", 5, ["outside"]), ("b/a", 3, []), ("b/b", 0, ["inside"])]


def test_the_items_of_a_map_are_visits() -> None:
    """Named by their number, in order, and held by the map's node."""
    trace = traced(mapped(3, frozenset({1})))
    assert [(v.node, v.within, round(v.wait, 3), v.error) for v in trace.visits()[2:5]] == [
        ("fetch/0", "fetch", 0.4, None), ("fetch/1", "fetch", 0.2, "ValueError: no page 1"),
        ("fetch/2", "fetch", 0, None)]


@both
def test_nested_runs_read_the_same_every_time(schedule: str) -> None:
    """Two graphs and two maps at once, in threads, some of them again in the moment in which they ended."""
    def items(item: int) -> None:
        emit("hello", {"item": item})
        clocks.sleep(item % 3)

    def graph() -> Graph:
        turns = iter(["again", "done"] * 2)
        found = Graph("all").add_node(map_node("m", items, "pages", "out", max_visits=2))
        found.add_node(map_node("n", items, "pages", "out2")).add_node(graph_node("g", research(), [], []))
        found.add_node(graph_node("h", nested(1), [], []))
        for name in ("m", "n", "g", "h"):
            found.add_edge(START, name)
        return found.add_router("m", lambda state: next(turns), {"again": "m", "done": END})

    def once() -> Trace:
        trace = Trace()
        with clocks.virtual_time():
            run_graph(graph(), {"pages": list(range(9))}, trace, schedule=schedule)
        return trace

    def bare(trace: Trace) -> list[dict[str, Any]]:
        return [{key: value for key, value in event.items() if key not in ("graph", "state")} for event in trace]

    first = within(60, once)
    assert [v.visit for v in first.visits() if v.node == "m"] == [1, 2]
    starts = [(v.node, v.within) for v in first.visits()]
    second = starts.index(("m", None), starts.index(("m", None)) + 1)
    assert starts[second + 1:second + 10] == [(f"m/{i}", "m") for i in range(9)]
    for _ in range(10):
        again = within(60, once)
        assert bare(again) == bare(first)
        assert again.to_text() == first.to_text()


# ---- people, and runs that go on


def test_a_gate_waits_until_the_run_is_over() -> None:
    """The row says for what; so does that of the node that holds it; nobody waits for a gate at the barrier."""
    assert traced(letter()).to_text().splitlines() == [
        "wave  node       start      end    ms",
        "1     draft    0.000 s  1.000 s  1000",
        "2     facts    1.000 s  4.000 s  3000",
        "2     approve  1.000 s  4.000 s  3000  waits for an answer: Send this? Dear Ada",
        "letter: paused after 4.000 s"]
    visits = {v.node: v for v in traced(letter_inside()).visits()}
    assert visits["mail"].question == visits["mail/approve"].question == "Send this? Dear Ada"
    assert (visits["mail/approve"].start, visits["mail/approve"].end, visits["mail/approve"].ended) == (1.5, 6.5, False)
    assert (visits["mail/facts"].question, visits["mail/facts"].ended) == (None, True)


def test_a_resumed_run_stands_alone() -> None:
    """Its table begins with the gate that was answered, and says how much had been done before."""
    first, again = Trace(), Trace()
    run_then_resume(letter(), {"approve": "yes"}, first, again)
    *table, ending = again.to_text().splitlines()
    assert [row[6:] for row in table] == [
        "node       start      end   ms",
        "approve  0.000 s  0.000 s    0",
        "send     0.000 s  0.200 s  200"]
    assert ending == "letter: done after 0.200 s, resumed from 3 records"
    assert (again.status, again.schedule) == ("done", "waves")


def test_one_trace_may_hear_a_run_and_what_came_after_the_answer(tmp_path: Path) -> None:
    """The second part lies after the first; its status is the run's, its waves are waves of their own."""
    trace = Trace()
    run_then_resume(letter_inside(), {"mail/approve": "yes"}, trace, trace)
    assert [(v.node, v.start, v.end, v.question) for v in trace.visits()] == [
        ("begin", 0, 0.5, None), ("mail", 0.5, 6.5, "Send this? Dear Ada"), ("mail/draft", 0.5, 1.5, None),
        ("other", 0.5, 6.5, None), ("mail/facts", 1.5, 4.5, None),
        ("mail/approve", 1.5, 6.5, "Send this? Dear Ada"),
        ("mail", 6.5, 6.7, None), ("mail/approve", 6.5, 6.5, None), ("mail/send", 6.5, 6.7, None)]
    assert trace.to_text().splitlines()[-1] == "outer: done after 6.700 s"
    assert [[v.node for v in wave] for wave in trace.waves()] == [["begin"], ["mail", "other"], ["mail"]]
    trace.to_jsonl(tmp_path / "both.jsonl")
    back = Trace.from_jsonl(tmp_path / "both.jsonl")
    assert (back.visits(), back.to_text()) == (trace.visits(), trace.to_text())


def test_two_parts_that_meet_in_one_moment_do_not_mix() -> None:
    """The question was asked in the moment in which the run ended, and was answered, and is still told of the first."""
    quiet = make("START>draft", name="quiet", draft=nap(1)).add_node(human_node("ask", "Well?", "answer"))
    outer = make("START>mail", mail={"fn": graph_node("mail", quiet.add_edge("draft", "ask"), [], []).fn})
    trace = Trace()
    run_then_resume(outer, {"mail/ask": "yes"}, trace, trace)
    assert [(v.node, v.start, v.end, v.question) for v in trace.visits()] == [
        ("mail", 0, 1, "Well?"), ("mail/draft", 0, 1, None), ("mail/ask", 1, 1, "Well?"), ("mail", 1, 1, None),
        ("mail/ask", 1, 1, None)]


def test_a_visit_that_was_cut_off_says_so() -> None:
    """In a run that goes on, or whose inner graph raced: it lasts until the inner run was over, and set no pace."""
    inner = make("START>a,b", name="inner", a=nap(1, x=1), b=nap(1, x=2))
    graph = make("START>g,h", name="outer", g={"fn": graph_node("g", inner, [], []).fn, "kind": "graph"}, h=nap(5))
    trace = Trace()
    with clocks.virtual_time(), pytest.raises(GraphError):
        run_graph(graph, {}, trace)
    half = Trace([event for event in trace.events if event["t"] < 1])
    assert [line.split("  ")[-1] for line in half.to_text().splitlines()[1:-1]] == ["has not ended"] * 4
    assert half.paces() == set()
    cut = Trace([event for event in trace.events if event["kind"] != "node_end"])
    assert [(v.node, v.end, v.ended) for v in cut.visits() if v.within] == [("g/a", 1, False), ("g/b", 1, False)]


def test_a_node_called_like_a_part_of_the_reader_is_a_node() -> None:
    """Kinds of events that nodes invent are not taken for the engine's."""
    trace = traced(make("START>a", a=lambda state: [emit(kind, {"x": 1}) for kind in (
        "close", "asks", "holder", "__init__")] and None))
    assert [v.node for v in trace.visits()] == ["a"]


def test_what_nodes_wrote_can_be_anything_and_the_file_is_written(tmp_path: Path) -> None:
    """Keys that are no strings, circles, halves of emoji: written as text, or as they were."""
    circle: dict[str, Any] = {}
    circle["self"] = circle
    odd = {"pairs": {(1, 2): 3}, "circle": circle, "half": "\ud83d", "plain": [1, 2]}
    trace = traced(make("START>a", a=lambda state: odd))
    trace.to_jsonl(tmp_path / "odd.jsonl")
    [end] = Trace.from_jsonl(tmp_path / "odd.jsonl").of("node_end")
    assert end["keys"] == list(odd)
    assert end["writes"] == {"pairs": "{(1, 2): 3}", "circle": "{'self': {...}}", "half": "\ud83d", "plain": [1, 2]}
