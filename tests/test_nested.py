"""A graph in a node, and a node for every item: inside, everything is as it is outside."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers import Heard, make, within

from minigraph import Graph, GraphError, StateCollision, resume_graph, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.nodes import graph_node, human_node, map_node, retry, timeout

SCHEDULES = pytest.mark.parametrize("schedule", ["waves", "ready"])


def around(node: Any, **more: Any) -> Graph:
    """A graph of one node."""
    graph = Graph("outer").add_node(node).add_edge("START", node.name)
    for name, fn in more.items():
        graph.add_node(name, fn)
    return graph


def slow(name: str, seconds: float = 1.0) -> Any:
    def fn(state: Any) -> dict[str, Any]:
        sleep(seconds)
        return {name: True}
    return fn


# ---- graphs


def test_only_named_keys_go_in_and_only_written_ones_come_out() -> None:
    """The inner blackboard begins with in_keys alone; of out_keys, those that inner nodes wrote come out."""
    seen: list[Any] = []
    inner = make("START>a a>END", a=lambda s: seen.append(dict(s)) or {"x": 1, "hidden": 2})
    state = run_graph(around(graph_node("n", inner, ["q"], ["x", "q", "never"])), {"q": 5, "secret": 6})
    assert seen == [{"q": 5, "errors": {}}]
    assert dict(state) == {"q": 5, "secret": 6, "x": 1, "errors": {}}


def test_what_is_missing_is_said() -> None:
    """A key that does not go in for want of it is the KeyError of any node."""
    state = run_graph(around(graph_node("n", make("START>a a>END"), ["topic"], [])), {"topics": 1})
    assert state.errors["n"] == ("KeyError: no 'topic' on the blackboard; it holds 'topics'. Did you mean 'topics'?")


def boom(state: Any) -> Any:
    raise ValueError("no")


@pytest.mark.parametrize(("inner", "words"), [
    (make("START>a,b a>END", a=boom), "in graph 'test': a: ValueError: no"),
    (make("START>a a>b b>END", a=boom), "in graph 'test': a: ValueError: no"),
    (make("START>a a>END", a=lambda s: {"a": s["nope"]}), "in graph 'test': a: KeyError: no 'nope' on the blackboard"),
    (make("START>a", a={"fn": lambda s: {}, "max_visits": 99}, routers={"a": (lambda s: "on", {"on": "a"})}),
     "in graph 'test': max_steps=25 reached: 'a' did not run"),
])
def test_a_failure_names_the_inner_node(inner: Graph, words: str) -> None:
    """What nobody handled inside fails the node outside, in words that say where; on_error goes on from there."""
    state = run_graph(around(graph_node("n", inner, [], [], on_error="h"), h=lambda s: {"handled": True}), {})
    assert state.errors["n"].startswith(f"InnerFailure: {words}")
    assert (state.status, state["handled"]) == ("done", True)


def test_a_failure_handled_inside_is_no_failure() -> None:
    """on_error inside is enough."""
    inner = make("START>a", a={"fn": boom, "on_error": "b"}, b=lambda s: {"x": 1})
    state = run_graph(around(graph_node("n", inner, [], ["x"])), {})
    assert (state.status, dict(state)) == ("done", {"x": 1, "errors": {}})


@pytest.mark.parametrize("wrap", [lambda fn: fn, lambda fn: retry(fn, 2), lambda fn: timeout(fn, 5)])
def test_a_graph_that_is_wrong_is_no_failure_of_a_node(wrap: Any) -> None:
    """A collision inside is raised out of the whole run, whatever on_error says; what can be known before, is."""
    inner = make("START>a,b", a=lambda s: {"x": 1}, b=lambda s: {"x": 2})
    node = graph_node("n", inner, [], ["x"])
    graph = Graph("outer").add_node("n", wrap(node.fn), kind="graph", on_error="END").add_edge("START", "n")
    with pytest.raises(StateCollision) as caught:
        within(10, lambda: run_graph(graph, {}))
    assert (caught.value.key, caught.value.nodes) == ("x", ("a", "b"))
    with pytest.raises(GraphError, match="nothing leads from START to 'lost'"):
        run_graph(around(graph_node("n", make("START>a a>END", lost=boom), [], [])), {})


def test_a_graph_inside_itself() -> None:
    """It would never end, so it is refused, at whatever depth."""
    outer, middle = Graph("outer"), Graph("middle")
    middle.add_node(graph_node("down", outer, [], [])).add_edge("START", "down")
    outer.add_node(graph_node("in", middle, [], [])).add_edge("START", "in")
    for use in (lambda: run_graph(outer, {}), outer.describe):
        with pytest.raises(GraphError, match="inside itself then, without end"):
            use()


@SCHEDULES
@pytest.mark.parametrize(("workers", "seconds"), [(1, 30.0), (2, 10.0), (None, 2.0)])
def test_ten_graphs_at_once_and_a_small_pool(schedule: str, workers: int | None, seconds: float) -> None:
    """Never a deadlock: with one worker everything is in turn, with two, two by two inside two by two."""
    graph = Graph("outer").add_node("first", lambda s: {}).add_edge("START", "first")
    for number in range(10):
        inner = make("START>a,b a>c b>c", a=slow("a"), b=slow("b"), c=slow("c"))
        graph.add_node(graph_node(f"g{number}", inner, [], ["c"] if not number else [])).add_edge("first", f"g{number}")
    with virtual_time() as clock:
        state = within(30, lambda: run_graph(graph, {}, max_workers=workers, schedule=schedule))
        assert (state.status, state["c"], clock.now()) == ("done", True, seconds)
    assert [t.name for t in threading.enumerate() if t.name.startswith("minigraph")] == []


@SCHEDULES
def test_events_of_a_graph_inside(schedule: str) -> None:
    """They reach the observer of the run, named by their path and timed by its clock."""
    inner = make("START>a a>b b>END", a=slow("a"), b=slow("b"))
    heard = Heard()
    with virtual_time():
        run_graph(make("START>wait wait>n n>END", wait=slow("w", 5), n={"fn": graph_node("n", inner, [], []).fn}), {},
                  heard, schedule=schedule)
    assert [(k, e["node"], e["t"]) for k, e in heard.events if k in ("node_start", "node_end")] == [
        ("node_start", "wait", 0), ("node_end", "wait", 5), ("node_start", "n", 5), ("node_start", "n/a", 5),
        ("node_end", "n/a", 6), ("node_start", "n/b", 6), ("node_end", "n/b", 7), ("node_end", "n", 7)]
    starts = [(event["workflow"], event.get("node"), event["t"]) for event in heard["graph_start"]]
    assert starts == [("test", None, 0), ("test", "n", 5)]
    assert [(event.get("node"), event["ms"], event["status"]) for event in heard["graph_end"]] == [
        ("n", 2000, "done"), (None, 7000, "done")]


def counted(calls: Counter[str], name: str, **writes: Any) -> Any:
    def fn(state: Any) -> dict[str, Any]:
        calls[name] += 1
        return writes or {name: calls[name]}
    return fn


@SCHEDULES
def test_gates_inside(schedule: str) -> None:
    """A gate two graphs down pauses the run; its path is its name; an answer goes down, and nothing runs again."""
    calls: Counter[str] = Counter()
    def build() -> Graph:
        leaf = make("START>read read>ask ask>write", read=counted(calls, "read"), write=counted(calls, "write"),
                    ask={"kind": "human",
                         "fn": human_node("ask", "{read} and {topic}?", "ok", choices=["yes", "no"]).fn})
        mid = Graph("mid").add_node(graph_node("leaf", leaf, ["topic"], ["ok"])).add_edge("START", "leaf")
        return make("START>first first>side first>mid side>join mid>join", first=counted(calls, "first", topic="tea"),
                    side=counted(calls, "side"), join=counted(calls, "join"), mid={"fn": graph_node(
                        "mid", mid, ["topic"], ["ok"]).fn, "kind": "graph"})
    records: list[Any] = []
    state = within(10, lambda: run_graph(build(), {}, schedule=schedule, journal=records.append))
    assert (state.status, state.waiting) == ("paused", {"mid/leaf/ask": "1 and tea?"})
    for wrong in ({"mid/leaf/ask": "perhaps"}, {"mid/leaf/aks": "yes"}, {"mid/ask": "yes"}, {"side/ask": "yes"}):
        with pytest.raises(GraphError):
            resume_graph(build(), records, wrong)
    state = within(10, lambda: resume_graph(build(), json.loads(json.dumps(records)), {"mid/leaf/ask": "Yes"},
                                            journal=records.append))
    assert (state.status, state["ok"]) == ("done", "yes")
    assert calls == {"first": 1, "side": 1, "read": 1, "write": 1, "join": 1}
    assert [record["gate"] for record in records[1:] if "gate" in record] == ["mid#1/leaf#1/ask"]
    assert resume_graph(build(), records) == state


@SCHEDULES
def test_every_prefix_resumes_inside(schedule: str) -> None:
    """Cut anywhere, a graph that goes round twice around a nested graph and a map resumes inside the two of them."""
    calls: Counter[str] = Counter()
    def build() -> Graph:
        def item(number: int) -> int:
            calls[f"item {number}"] += 1
            return number * 10
        inner = make("START>a,b a>c b>c", a=counted(calls, "a"), b=counted(calls, "b"), c=counted(calls, "c"))
        graph = make("START>head head>n head>m n>tail m>tail", head={"fn": counted(calls, "head"), "max_visits": 2},
                     tail=counted(calls, "tail"), n={"fn": graph_node("n", inner, [], ["c"]).fn},
                     m={"fn": map_node("m", item, "items", "made").fn})
        return graph.add_router("tail", lambda s: "again" if s["tail"] < 2 else "over",
                                {"again": "head", "over": "END"})
    whole: list[Any] = []
    expected = run_graph(build(), {"items": [1, 2, 3]}, schedule=schedule, journal=whole.append)
    total = Counter(calls)
    assert total == {"head": 2, "tail": 2, "a": 2, "b": 2, "c": 2, "item 1": 2, "item 2": 2, "item 3": 2}
    for cut in range(1, len(whole) + 1):
        calls.clear()
        for record in whole[1:cut]:
            if (name := record.get("node", "").rpartition("/")[2]) in ("head", "tail", "a", "b", "c"):
                calls[name] += 1
            elif name.isdigit():
                calls[f"item {int(name) + 1}"] += 1
        state = within(10, lambda cut=cut: resume_graph(build(), json.loads(json.dumps(whole[:cut]))))
        assert (state, state.status, state.visits, calls) == (expected, "done", expected.visits, total), cut


def test_a_graph_tried_again() -> None:
    """A retry runs the graph anew within one visit; its records are told apart, and resume from the second try."""
    calls: Counter[str] = Counter()
    def build() -> Graph:
        def flaky(state: Any) -> dict[str, Any]:
            calls["flaky"] += 1
            if calls["flaky"] == 1:
                raise ValueError("not yet")
            return {"x": 1}
        inner = make("START>a a>flaky", a=counted(calls, "a"), flaky=flaky)
        return make("START>n n>z", n={"fn": retry(graph_node("n", inner, [], ["x"]).fn, 3)})
    whole = run_graph(build(), {}).journal
    assert [r["node"] for r in whole[1:]] == ["n#1/a", "n#1/flaky", "n#1.2/a", "n#1.2/flaky", "n", "z"]
    for cut in range(1, len(whole)):
        calls["flaky"], calls["a"] = (sum(r["node"].endswith(name) for r in whole[1:cut]) for name in ("flaky", "/a"))
        assert resume_graph(build(), whole[:cut])["x"] == 1
        assert calls == {"a": 2, "flaky": 2}, cut


def test_strict_reaches_inside() -> None:
    """A strict run is strict inside, too: a node that changes what it was given fails there."""
    inner = make("START>a a>END", a=lambda s: s["list"].append(1))
    state = run_graph(around(graph_node("n", inner, ["list"], [])), {"list": []}, strict=True)
    assert "a: TypeError: the node changed 'list' in place" in state.errors["n"]


# ---- maps


def test_a_map() -> None:
    """fn on every item at once, the results in the order of the items; of nothing, nothing."""
    def build(fn: Any) -> Graph:
        return around(map_node("m", fn, "xs", "ys"))
    late = build(lambda x: (sleep(10 - x), x * x)[1])
    with virtual_time() as clock:
        assert run_graph(late, {"xs": [1, 5, 3]})["ys"] == [1, 25, 9]
        assert clock.now() == 9
    assert run_graph(late, {"xs": []})["ys"] == []
    assert run_graph(build(lambda x: None), {"xs": [1, 2]})["ys"] == [None, None]
    assert run_graph(build(str), {"xs": (x for x in "ab")})["ys"] == ["a", "b"]


def test_a_map_of_a_thousand_and_a_pool_of_four() -> None:
    """Four at a time, never more, and every item once."""
    now, most, lock = [0], [0], threading.Lock()
    def fn(x: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        sleep(1)
        with lock:
            now[0] -= 1
        return -x
    with virtual_time() as clock:
        state = within(60, lambda: run_graph(around(map_node("m", fn, "xs", "ys")), {"xs": list(range(1000))},
                                             max_workers=4))
        assert (state["ys"], clock.now(), most[0]) == ([-x for x in range(1000)], 250.0, 4)


def test_items_that_fail_are_named() -> None:
    """All the others are finished first; the text names each item that failed, its place and its value."""
    done: list[int] = []
    def fn(x: int) -> float:
        done.append(x)
        return 1 / x
    state = run_graph(around(map_node("m", fn, "xs", "ys")), {"xs": [1, 0, 2, 0]})
    assert state.errors["m"] == ("InnerFailure: 2 of 4 items failed: item 1 (0): ZeroDivisionError: division by zero; "
                                 "item 3 (0): ZeroDivisionError: division by zero")
    assert sorted(done) == [0, 0, 1, 2]
    many = run_graph(around(map_node("m", fn, "xs", "ys")), {"xs": [0] * 9}).errors["m"]
    assert many.startswith("InnerFailure: 9 of 9 items failed: item 0") and many.endswith("; and 6 more")


@pytest.mark.parametrize(("xs", "words"), [
    ("abc", "state['xs'] is a value of type str, and a map goes over a list: wrap it in one"), (None, "type NoneType"),
    ({"a": 1}, "type dict"), (7, "type int")])
def test_what_is_no_list(xs: Any, words: str) -> None:
    """A string is one value and not a list of letters; a dict has no order that is meant."""
    assert words in run_graph(around(map_node("m", str, "xs", "ys")), {"xs": xs}).errors["m"]


def test_an_async_function_in_a_map() -> None:
    """It is told, as in any node, how to call async code."""
    async def fn(x: int) -> int:
        return x
    assert "your async code with asyncio.run(...)" in run_graph(
        around(map_node("m", fn, "xs", "ys")), {"xs": [1]}).errors["m"]


def test_maps_in_maps_and_gates_in_items() -> None:
    """An item may be a whole graph: its gate asks by the number of the item, and other items go on."""
    calls: Counter[str] = Counter()
    def build() -> Graph:
        one = make("START>work work>ask", work=counted(calls, "work", w=1),
                   ask={"fn": human_node("ask", "Item {x}?", "ok").fn, "kind": "human"})
        each = graph_node("one", one, ["x"], ["ok"]).fn
        return around(map_node("m", each, "xs", "ys"))
    state = run_graph(build(), {"xs": [{"x": "a"}, {"x": "b"}]})
    assert state.waiting == {"m/0/ask": "Item a?", "m/1/ask": "Item b?"}
    state = resume_graph(build(), state.journal, {"m/1/ask": "second"})
    assert state.waiting == {"m/0/ask": "Item a?"}
    state = resume_graph(build(), state.journal, {"m/0/ask": "first"})
    assert (state["ys"], calls) == ([{"ok": "first"}, {"ok": "second"}], {"work": 2})
    rows = around(map_node("rows", map_node("row", abs, "cells", "cells").fn, "table", "out"))
    table = [{"cells": [-1, -2]}, {"cells": []}, {"cells": [3]}]
    for workers in (1, 2, None):
        out = within(20, lambda workers=workers: run_graph(rows, {"table": table}, max_workers=workers))["out"]
        assert out == [{"cells": [1, 2]}, {"cells": []}, {"cells": [3]}]


@pytest.mark.parametrize(("make_it", "words"), [
    (lambda: map_node("m", 5, "a", "b"), "5 cannot be called"),
    (lambda: map_node("m", str, ["a"], "b"), "keys of the blackboard are strings"),
    (lambda: graph_node("n", "graph", [], []), "it runs a Graph, not 'graph'"),
    (lambda: graph_node("n", Graph(), "topic", []), "in_keys='topic' must be a list of keys, as in ['topic']"),
    (lambda: graph_node("n", Graph(), [], [3]), "out_keys=[3] must be a list of keys"),
])
def test_nodes_that_cannot_be_meant(make_it: Any, words: str) -> None:
    """What is wrong with a node is said when it is made."""
    with pytest.raises(TypeError) as caught:
        make_it()
    assert words in str(caught.value)


# ---- elsewhere


def square(x: int) -> int:
    return x * x


def leaf(state: Any) -> dict[str, Any]:
    return {"x": 1}


def test_in_another_process(tmp_path: Path) -> None:
    """A graph or a map runs there as a run of its own, heard when it is over; a gate in it cannot wait there."""
    heard = Heard()
    inner = Graph("in").add_node("leaf", leaf).add_edge("START", "leaf")
    asks = Graph("in").add_node(human_node("ask", "?", "x")).add_edge("START", "ask")
    graph = (Graph("out").add_node(graph_node("n", inner, [], ["x"])).add_node(map_node("m", square, "xs", "ys"))
             .add_node(graph_node("g", asks, [], [])).add_edge("START", "n").add_edge("START", "m")
             .add_edge("START", "g"))
    with ProcessPoolExecutor(2) as pool:
        state = within(60, lambda: run_graph(graph, {"xs": [2, 3]}, heard, executor=pool))
    assert (state["x"], state["ys"]) == (1, [4, 9])
    assert state.errors == {"g": "InnerFailure: in graph 'in': gate 'ask' waits for a person, and cannot wait outside "
                                 "a run or in an executor elsewhere: leave out executor="}
    assert {"n/leaf", "m/0", "m/1"} <= {event["node"] for event in heard["node_end"]}
