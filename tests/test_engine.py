"""The engine keeps its rules: a test for each of them, a literal graph beside its literal outcome."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import copy
import inspect
import json
import logging
import os
import pickle
import signal
import sys
import threading
import types
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from helpers import Heard, make, note, nothing_left_unawaited, within

import minigraph
from minigraph import END, START, Graph, GraphError, GraphState, Node, StateCollision, emit, run_graph
from minigraph import clock as clocks

both = pytest.mark.parametrize("schedule", ["waves", "ready"])


def boom(state: Any) -> dict[str, Any]:
    raise ValueError("boom")


def plain(state: GraphState) -> dict[str, Any]:
    """Return the blackboard without the errors."""
    return {key: value for key, value in state.items() if key != "errors"}


def sleeper(name: str, seconds: float) -> Callable[[Any], dict[str, Any]]:
    def node(state: Any) -> dict[str, Any]:
        clocks.sleep(seconds)
        return {name: clocks.now()}
    return node


def times(graph: Graph, schedule: str, **options: Any) -> dict[str, tuple[float, float]]:
    """Return node -> (start, end) of its last visit, in virtual time."""
    heard = Heard()
    with clocks.virtual_time():
        within(20, lambda: run_graph(graph, {}, heard, schedule=schedule, **options))
    started = {e["node"]: e["t"] for e in heard["node_start"]}
    return {e["node"]: (started[e["node"]], e["t"]) for e in heard["node_end"]}


# ---- the API as it is written down


def test_the_package_says_what_it_has() -> None:
    """Every public name of the engine can be imported from the package itself."""
    for name in ("START", "END", "Graph", "Node", "GraphState", "run_graph", "emit", "GraphError", "StateCollision"):
        assert hasattr(minigraph, name), name
    assert (START, END) == ("START", "END")


def test_signatures() -> None:
    """run_graph takes observer and max_steps by position, everything else by keyword, with these defaults."""
    parameters = inspect.signature(run_graph).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    assert list(parameters)[:4] == ["graph", "state", "observer", "max_steps"]
    expected = {"observer": None, "max_steps": None, "schedule": "waves", "executor": None, "max_workers": None,
                "clock": None, "strict": False}
    assert {name: defaults[name] for name in expected} == expected
    assert all(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(expected)[2:])


def test_node_is_a_dataclass() -> None:
    """A Node compares and prints by its fields, and has defaults for all but name and function."""
    assert Node("a", len) == Node("a", len, kind="fn", max_visits=None, on_error=None)
    assert "'a'" in repr(Node("a", len))


def test_a_node_by_name_or_as_an_object() -> None:
    """add_node takes a Node, or what a Node is made of."""
    one, other = Graph("g"), Graph("g")
    one.add_node(Node("a", len, kind="tool", max_visits=2, on_error=END))
    other.add_node("a", len, kind="tool", max_visits=2, on_error=END)
    for graph in (one, other):
        graph.add_edge(START, "a")
    assert one.describe() == other.describe()


def test_objects_print() -> None:
    """A graph has a repr with its name in it, and a state prints as the dict it is."""
    graph = make("START>a a>END", name="morning")
    assert "morning" in repr(graph)
    assert repr(run_graph(graph, {"x": 1})) == "{'x': 1, 'a': True, 'errors': {}}" or \
        eval(repr(run_graph(graph, {"x": 1}))) == {"x": 1, "a": True, "errors": {}}


def test_describe() -> None:
    """describe() is the whole graph as data: nodes in order, every edge, and which way it points."""
    graph = make("START>draft draft>check", name="writing", draft={"kind": "llm", "max_visits": 3},
                 check={"on_error": "person"}, person={"kind": "human"},
                 routers={"check": (len, {"again": "draft", "ok": END, "both": ["draft", "person"]})})
    assert json.loads(json.dumps(graph.describe())) == {
        "name": "writing",
        "nodes": [
            {"name": "draft", "kind": "llm", "max_visits": 3, "on_error": None},
            {"name": "check", "kind": "fn", "max_visits": None, "on_error": "person"},
            {"name": "person", "kind": "human", "max_visits": None, "on_error": None},
        ],
        "edges": [
            {"src": "START", "dst": "draft", "conditional": False, "label": None, "backwards": False},
            {"src": "draft", "dst": "check", "conditional": False, "label": None, "backwards": False},
            {"src": "check", "dst": "draft", "conditional": True, "label": "again", "backwards": True},
            {"src": "check", "dst": "END", "conditional": True, "label": "ok", "backwards": False},
            {"src": "check", "dst": "draft", "conditional": True, "label": "both", "backwards": True},
            {"src": "check", "dst": "person", "conditional": True, "label": "both", "backwards": False},
            {"src": "check", "dst": "person", "conditional": True, "label": "on_error", "backwards": False},
        ],
    }


@pytest.mark.parametrize(("labels", "backwards"), [
    (["in", "out"], {("j", "i"), ("k", "o")}),
    (["out", "in"], {("j", "i"), ("k", "o")}),
])
def test_directions_do_not_hang_on_labels(labels: list[str], backwards: set[tuple[str, str]]) -> None:
    """In a loop within a loop both ways back are found, however the labels stand."""
    targets = {"in": "i", "out": "k"}
    graph = make("START>o o>i i>j", i={"max_visits": 9},
                 k={"max_visits": 3}, routers={"j": (len, {label: targets[label] for label in labels}),
                                               "k": (len, {"outer": "o", "end": END})})
    assert {(e["src"], e["dst"]) for e in graph.describe()["edges"] if e["backwards"]} == backwards


@pytest.mark.parametrize(("edges", "labels", "backwards"), [
    # both a and b lead to the other; the one that is nearer to START comes first
    ("START>s,p s>a p>q q>b", {}, ("b", "a")),
    ("START>p,s p>q q>b s>a", {}, ("b", "a")),
    ("START>s,p s>b p>q q>a", {}, ("a", "b")),
    # at the same distance: the one whose edge, or whose label, was declared first
    ("START>a START>b", {}, ("b", "a")),
    ("START>b START>a", {}, ("a", "b")),
    ("START>r", {"x": "a", "y": "b"}, ("b", "a")),
    ("START>r", {"y": "b", "x": "a"}, ("a", "b")),
    ("START>r", {"both": ["b", "a"]}, ("a", "b")),
])
def test_directions_are_breadth_first(edges: str, labels: dict[str, Any], backwards: tuple[str, str]) -> None:
    """Conditional edges get their direction one after the other: those of nodes nearer to START first, labels in the
    order in which they were declared."""
    routers = {"a": (len, {"on": "b", "out": END}), "b": (len, {"on": "a", "out": END})}
    graph = make(edges, a={"max_visits": 2}, routers=routers | ({"r": (len, labels)} if labels else {}))
    assert [(e["src"], e["dst"]) for e in graph.describe()["edges"] if e["backwards"]] == [backwards]


def test_on_error_gets_its_direction_last() -> None:
    """A router's targets come before on_error, wherever it was written; static edges come before both."""
    routers = {"a": (len, {"on": "b"}), "b": (len, {"on": "a"}), "r": (len, {"x": "a"})}
    graph = make("START>r", r={"on_error": "b"}, a={"max_visits": 2}, routers=routers)
    assert [(e["src"], e["dst"]) for e in graph.describe()["edges"] if e["backwards"]] == [("b", "a")]
    graph = make("START>r b>a", r={"on_error": "b"}, a={"max_visits": 2},
                 routers={"a": (len, {"on": "b"}), "r": (len, {"x": "a"})})
    assert [(e["src"], e["dst"]) for e in graph.describe()["edges"] if e["backwards"]] == [("a", "b")]


# ---- the five sentences


@both
def test_start_puts_a_ticket_on_each_target(schedule: str) -> None:
    """START puts a ticket on each of its targets, and on nothing else."""
    graph = make("START>a START>b b>c", c={"max_visits": 1})
    assert run_graph(graph, {}, schedule=schedule).visits == {"a": 1, "b": 1, "c": 1}


def test_waves_wait_for_the_slowest() -> None:
    """Under "waves" the next wave starts when the slowest node of this one has ended."""
    graph = make("START>a,b a>a2 b>b2", a=sleeper("a", 1), b=sleeper("b", 5), a2=sleeper("a2", 2), b2=sleeper("b2", 1))
    assert times(graph, "waves") == {"a": (0, 1), "b": (0, 5), "a2": (5, 7), "b2": (5, 6)}


def test_ready_waits_for_nobody_else() -> None:
    """Under "ready" a node starts as soon as no other ticket can arrive at it."""
    graph = make("START>a,b a>a2 b>b2 a2>j b2>j", a=sleeper("a", 1), b=sleeper("b", 5), a2=sleeper("a2", 2),
                 b2=sleeper("b2", 1), j=sleeper("j", 1))
    assert times(graph, "ready") == {"a": (0, 1), "b": (0, 5), "a2": (1, 3), "b2": (5, 6), "j": (6, 7)}


def test_ready_takes_a_choice_at_once() -> None:
    """A join below a choice does not wait for the branch that was left out, only for the one beside it."""
    graph = make("START>r START>s x>j y>j s>j", r=sleeper("r", 1), x=sleeper("x", 1), y=sleeper("y", 9),
                 s=sleeper("s", 3), j=sleeper("j", 1), routers={"r": (lambda state: "x", {"x": "x", "y": "y"})})
    assert times(graph, "ready") == {"r": (0, 1), "x": (1, 2), "s": (0, 3), "j": (3, 4)}


def test_ready_starts_a_handler_at_once() -> None:
    """A failure, and a refused visit, reach their handler at that moment, not when a neighbour ends."""
    graph = make("START>slow START>work h>after", slow=sleeper("slow", 100), h=sleeper("h", 1),
                 after=sleeper("after", 1), work={"fn": sleeper("work", 1), "max_visits": 2, "on_error": "h"},
                 routers={"work": (lambda state: "again", {"again": "work"})})
    assert times(graph, "ready") == {"work": (1, 2), "h": (2, 3), "after": (3, 4), "slow": (0, 100)}


def test_a_lap_waits_for_what_is_below() -> None:
    """The new lap of a loop begins when nothing of the old one can still run, under either schedule."""
    for schedule in ("waves", "ready"):
        turns = iter([True, False])
        graph = make("START>h h>r h>x x>y", h={"fn": sleeper("h", 1), "max_visits": 2}, r=sleeper("r", 1),
                     x=sleeper("x", 5), y=sleeper("y", 5),
                     routers={"r": (lambda state, turns=turns: "back" if next(turns) else "out",
                                    {"back": "h", "out": END})})
        heard = Heard()
        with clocks.virtual_time(), pytest.raises(StateCollision):  # y#1 led to nothing that y#2 follows
            within(20, lambda graph=graph, schedule=schedule, heard=heard:
                   run_graph(graph, {}, heard, schedule=schedule))
        assert [e["t"] for e in heard["node_start"] if e["node"] == "h"] == [0, 11]


@both
def test_tickets_of_one_node_are_taken_together(schedule: str) -> None:
    """However many tickets a node holds, it runs once."""
    graph = make("START>a,b,c a>j b>j c>j START>j")
    assert run_graph(graph, {}, schedule=schedule).visits == {"a": 1, "b": 1, "c": 1, "j": 1}


@both
def test_failed_tickets_go_on_past_routers(schedule: str) -> None:
    """A node that holds a failed ticket does not run, its router is not asked, and all its targets are blocked."""
    asked = []
    graph = make("START>a a>r x>x2", a=boom,
                 routers={"r": (lambda state: asked.append(1) or "x", {"x": "x", "y": "y"})})
    heard = Heard()
    state = run_graph(graph, {}, heard, schedule=schedule)
    assert (state.visits, state.status, asked) == ({"a": 1}, "failed", [])
    assert {e["node"] for e in heard["blocked"]} == {"r", "x", "x2", "y"}


@both
def test_a_ticket_and_a_failed_ticket(schedule: str) -> None:
    """One failed ticket among several blocks the node, also where another came from START itself."""
    graph, heard = make("START>a,b,j a>j b>j j>k", a=boom), Heard()
    for observer in (None, heard):
        state = run_graph(graph, {}, observer, schedule=schedule)
        assert (state.visits, state.status) == ({"a": 1, "b": 1}, "failed")
    assert [e["node"] for e in heard["blocked"]] == ["j", "k"]
    assert "failed" in json.dumps(heard["blocked"][0])


@both
def test_failed_tickets_go_all_the_way_first(schedule: str) -> None:
    """Failed tickets have gone as far as they go before the next nodes start: `end` holds a ticket of one lap and gets
    a failed one of the next, and does not run. Whatever the names: sets of names have an order of their own."""
    for i in range(24):
        again, work, back, end = (f"{name}{i}" for name in ("again", "work", "back", "end"))
        graph = make(f"START>{again} {back}>{work} {back}>{again} {work}>{end}", **{again: {"max_visits": 1}},
                     routers={again: (lambda state: "both", {"both": [work, back]})})
        state = run_graph(graph, {}, schedule=schedule)
        assert (state.visits, state.status) == ({again: 1, back: 1, work: 1}, "failed")


@both
def test_names_do_not_matter(schedule: str) -> None:
    """Two nodes are blocked at one moment, one of them below the other, and a ticket comes later: however the names are
    shuffled in a set, it is the same run."""
    def visits(i: int) -> list[int]:
        a, b, c, d, other = (f"{name}{i}" for name in "abcd?")
        graph = make(f"START>{d} START>{other}", **{
            a: lambda state: None, b: {}, c: {"max_visits": 1, "on_error": b}, d: {"max_visits": 3, "on_error": c}},
            routers={c: (lambda state: ["self", "b", "d"], {"self": c, "b": b, "d": d}),
                     d: (lambda state: "on", {"b": b, "on": [a, d]}), a: (lambda state: "b", {"b": b})})
        state = run_graph(graph, {}, schedule=schedule)
        return [state.visits.get(name, 0) for name in (a, b, c, d)]

    assert len({tuple(visits(i)) for i in range(40)}) == 1


@both
def test_a_branch_that_ends_is_not_waited_for(schedule: str) -> None:
    """END ends a branch, and a node without an edge out ends its own; the others go on."""
    graph = make("START>a START>b START>c b>END c>c2 c2>c3")
    assert run_graph(graph, {}, schedule=schedule).visits == dict.fromkeys(["a", "b", "c", "c2", "c3"], 1)


# ---- the blackboard


@both
def test_none_merges_nothing(schedule: str) -> None:
    """A node that returns None has run, and written nothing."""
    state = run_graph(make("START>a a>END", a=lambda state: None), {"x": 1}, schedule=schedule)
    assert (plain(state), state.visits, state.status) == ({"x": 1}, {"a": 1}, "done")


@both
@pytest.mark.parametrize("result", [{"k": 1}, types.MappingProxyType({"k": 1}), GraphState({"k": 1})])
def test_a_mapping_is_merged(schedule: str, result: Any) -> None:
    """Any mapping is merged."""
    assert plain(run_graph(make("START>a", a=lambda state: result), {}, schedule=schedule)) == {"k": 1}


@both
@pytest.mark.parametrize("result", [42, "text", ["k"], {"k"}, ("k", 1), True, object])
def test_anything_else_is_a_failure(schedule: str, result: Any) -> None:
    """A node that returns something else has failed with a TypeError that says what it returned."""
    state = run_graph(make("START>a", a=lambda state: result), {}, schedule=schedule)
    assert state.status == "failed"
    assert state["errors"]["a"].startswith("TypeError: ")
    assert isinstance(state.exceptions["a"], TypeError)


@both
@pytest.mark.parametrize("key", [1, None, ("a",), b"k"])
def test_keys_are_strings(schedule: str, key: Any) -> None:
    """A key that is no string is a failure, and nothing of that update is merged."""
    state = run_graph(make("START>a", a=lambda state: {"good": 1, key: 2}), {}, schedule=schedule)
    assert (state.status, plain(state)) == ("failed", {})
    assert repr(key) in state["errors"]["a"]


@both
def test_errors_is_reserved(schedule: str) -> None:
    """A node that writes the key "errors" has failed, also by returning the whole state."""
    for update in ({"errors": {}}, {"good": 1, "errors": {"a": "x"}}):
        state = run_graph(make("START>a", a=lambda state, update=update: update), {}, schedule=schedule)
        assert (state.status, plain(state)) == ("failed", {})
        assert "'errors'" in state["errors"]["a"]
    state = run_graph(make("START>a", a=lambda state: {**state, "k": 1}), {"x": 1}, schedule=schedule)
    assert (state.status, plain(state)) == ("failed", {"x": 1})


@both
def test_errors_are_reset(schedule: str) -> None:
    """errors starts empty in every run, is there in every result, and the old run's dict is left alone."""
    first = run_graph(make("START>a", a=boom), {}, schedule=schedule)
    second = run_graph(make("START>b"), first, schedule=schedule)
    assert first["errors"] == {"a": "ValueError: boom"}
    assert (second["errors"], second.errors, second.status, second.exceptions) == ({}, {}, "done", {})


@both
def test_the_initial_state_is_untouched(schedule: str) -> None:
    """The run returns its own blackboard; the one it was given stays as it was, whatever kind of mapping it is."""
    for initial in ({"x": 1}, types.MappingProxyType({"x": 1}), GraphState({"x": 1})):
        state = run_graph(make("START>a", a=lambda state: {"x": 2, "y": 3}), initial, schedule=schedule)
        assert (plain(state), dict(initial)) == ({"x": 2, "y": 3}, {"x": 1})
        assert state is not initial
        assert "errors" not in initial


WRITES: dict[str, Callable[[Any], Any]] = {
    "state['k'] = 1": lambda state: state.__setitem__("k", 1),
    "del state['x']": lambda state: state.__delitem__("x"),
    "state.update(k=1)": lambda state: state.update(k=1),
    "state.setdefault('k', 1)": lambda state: state.setdefault("k", 1),
    "state.pop('x')": lambda state: state.pop("x"),
    "state.popitem()": lambda state: state.popitem(),
    "state.clear()": lambda state: state.clear(),
    "state |= {'k': 1}": lambda state: state.__ior__({"k": 1}),
    "state['errors']['k'] = 1": lambda state: state["errors"].__setitem__("k", "1"),
    "state['errors'].clear()": lambda state: state["errors"].clear(),
}


@both
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_nodes_do_not_write_to_the_state(schedule: str, strict: bool, write: Callable[[Any], Any]) -> None:
    """However a node tries to write to the state it was given: a TypeError, a failure, and nothing has changed."""
    graph = make("START>a,b a>c b>c", a={"fn": write, "on_error": "c"}, c=lambda state: {"seen": dict(state["errors"])})
    state = run_graph(graph, {"x": 1}, schedule=schedule, strict=strict)
    assert state["errors"]["a"].startswith("TypeError: ")
    assert plain(state) == {"x": 1, "b": True, "seen": {"a": state["errors"]["a"]}}


@both
def test_a_router_does_not_write_either(schedule: str) -> None:
    """The state that a router is given is read-only too."""
    graph = make("START>a", routers={"a": (lambda state: state.update(k=1) or "end", {"end": END})})
    state = run_graph(graph, {}, schedule=schedule)
    assert (state.status, plain(state)) == ("failed", {"a": True})


@both
def test_the_result_may_be_written_to(schedule: str) -> None:
    """When the run is over, the blackboard is the caller's: an ordinary dict."""
    state = run_graph(make("START>a"), {}, schedule=schedule)
    state["k"] = 1
    state["errors"]["k"] = "mine"
    state.update(m=2)
    assert state == {"a": True, "k": 1, "m": 2, "errors": {"k": "mine"}}
    assert del_and_return(state, "k") == {"a": True, "m": 2, "errors": {"k": "mine"}}


def del_and_return(state: GraphState, key: str) -> GraphState:
    del state[key]
    return state


@both
def test_nested_values_are_shared(schedule: str) -> None:
    """A value is handed on as it is: no copy."""
    value = {"deep": [1]}
    graph = make("START>a a>b", a=lambda state: {"v": value}, b=lambda state: {"same": state["v"] is value})
    state = run_graph(graph, {"w": value}, schedule=schedule)
    assert state["same"] is True
    assert state["w"] is value


@both
def test_reading_as_a_dict(schedule: str) -> None:
    """A node may read the state in every way in which one reads a dict, and sees the same in all of them."""
    def reader(state: Any) -> dict[str, Any]:
        return {"read": {
            "[]": state["a"], "get": state.get("a"), "default": state.get("none", 7),
            "in": ("a" in state, "q" in state), "len": len(state), "iter": sorted(state),
            "keys": sorted(state.keys()), "items": sorted(state.items(), key=str),
            "values": len(list(state.values())), "dict": dict(state), "unpack": {**state}, "copy": state.copy(),
            "or": state | {"k": 1}, "format": "{a}".format_map(state), "equal": state == dict(state),
            "json": json.loads(json.dumps(state)), "deepcopy": copy.deepcopy(state), "bool": bool(state),
            "repr": eval(repr(state)), "isinstance": isinstance(state, dict), "list": len(list(reversed(list(state)))),
        }}
    state = run_graph(make("START>a a>b", b=reader), {"x": 1}, schedule=schedule)
    everything = {"x": 1, "a": True, "errors": {}}
    assert state.status == "done", state["errors"]
    assert state["read"] == {
        "[]": True, "get": True, "default": 7, "in": (True, False), "len": 3, "iter": ["a", "errors", "x"],
        "keys": ["a", "errors", "x"], "items": [("a", True), ("errors", {}), ("x", 1)], "values": 3, "dict": everything,
        "unpack": everything, "copy": everything, "or": everything | {"k": 1}, "format": "True", "equal": True,
        "json": everything, "deepcopy": everything, "bool": True, "repr": everything, "isinstance": True, "list": 3,
    }


@both
def test_a_missing_key(schedule: str) -> None:
    """The KeyError for a key that is not there lists the keys that are."""
    graph = make("START>a a>b", a=lambda state: {"score": 1, "text": "t"}, b=lambda state: {"c": state["socre"]})
    state = run_graph(graph, {"seed": 1}, schedule=schedule)
    error = state["errors"]["b"]
    assert error.startswith("KeyError: ")
    assert all(repr(key) in error for key in ("socre", "score", "text", "seed"))
    assert isinstance(state.exceptions["b"], KeyError)


@both
def test_a_missing_key_and_a_forgotten_return(schedule: str) -> None:
    """It also names the nodes upstream that returned nothing, and no others."""
    def classify(state: Any) -> None:
        {"label": "question"}  # noqa: B018

    graph = make("START>classify,other,side classify>answer other>answer", classify=classify, side=lambda state: None,
                 answer=lambda state: {"text": state["label"]})
    error = run_graph(graph, {}, schedule=schedule)["errors"]["answer"]
    assert "'label'" in error
    assert "'classify'" in error
    assert "return" in error
    assert "'side'" not in error
    assert "'other' forget" not in error


def test_state_is_a_dict_with_an_ending() -> None:
    """The result compares, dumps, pickles and copies as a dict, and says beside it how the run ended."""
    graph = make("START>a,b a>c", b=boom)
    state = run_graph(graph, {"x": 1})
    as_dict = {"x": 1, "a": True, "c": True, "errors": {"b": "ValueError: boom"}}
    assert isinstance(state, dict)
    assert state == as_dict
    assert as_dict == state
    assert state != {"x": 1}
    assert json.loads(json.dumps(state)) == as_dict
    assert dict(state) == as_dict
    assert (state.status, state.errors, state.visits) == ("failed", {"b": "ValueError: boom"}, {"a": 1, "b": 1, "c": 1})
    assert state.path == ["a", "b", "c"]
    assert str(state.exceptions["b"]) == "boom"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_state_pickles(protocol: int) -> None:
    """A pickled state comes back equal, with how the run ended."""
    state = run_graph(make("START>a,b", b=boom), {"x": 1})
    back = pickle.loads(pickle.dumps(state, protocol))
    assert back == state
    assert (type(back), back.status, back.path, back.visits) == (type(state), "failed", ["a", "b"], {"a": 1, "b": 1})
    for twin in (copy.copy(state), copy.deepcopy(state)):
        assert twin == state
        assert twin.status == "failed"


def test_state_shows_itself() -> None:
    """In Jupyter a state is a table that says what failed, with every text escaped."""
    def bad(state: Any) -> None:
        raise ValueError("<script>alert('é')</script>")

    html = run_graph(make("START>a,b", a=lambda state: {"<k>": "<b>bold</b> & {braces}\n"}, b=bad), {})._repr_html_()
    assert "<script>" not in html
    assert "<b>bold" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;k&gt;" in html
    assert "failed" in html
    assert "boom" not in run_graph(make("START>a"), {})._repr_html_()


# ---- what a node may see


def test_ready_shows_the_causal_past_only() -> None:
    """Under "ready" a node sees the value that its own past wrote, though a neighbour has long written another one."""
    graph = make("START>quick START>a a>b b>c", quick=lambda state: {"k": "new"}, a=sleeper("a", 1), b=sleeper("b", 1),
                 c=lambda state: {"seen": state["k"], "has": "k" in state, "all": dict(state)["k"],
                                  "get": state.get("k")})
    with clocks.virtual_time():
        state = within(20, lambda: run_graph(graph, {"k": "old"}, schedule="ready"))
    assert (state["seen"], state["has"], state["all"], state["get"], state["k"]) == ("old", True, "old", "old", "new")


def test_ready_shows_the_value_before_a_neighbours() -> None:
    """What a branch overwrites is kept for the branches beside it, however often it is overwritten."""
    graph = make("START>a a>q1 q1>q2 q2>j a>slow slow>b b>j", a=lambda state: {"k": 1},
                 q1=lambda state: {"k": state["k"] + 10}, q2=lambda state: {"k": state["k"] + 100},
                 slow=sleeper("slow", 1), b=lambda state: {"seen": [state["k"], dict(state)["k"]]},
                 j=lambda state: {"last": state["k"]})
    with clocks.virtual_time():
        state = within(20, lambda: run_graph(graph, {"k": 0}, schedule="ready"))
    assert (state["seen"], state["last"], state["k"]) == ([1, 1], 111, 111)


def test_ready_hides_what_a_neighbour_wrote() -> None:
    """Reading a key that only a concurrent node writes is a KeyError that says so."""
    graph = make("START>quick START>a a>b", quick=lambda state: {"k": "new"}, a=sleeper("a", 1),
                 b=lambda state: {"seen": state["k"]})
    with clocks.virtual_time():
        state = within(20, lambda: run_graph(graph, {}, schedule="ready"))
    error = state["errors"]["b"]
    assert error.startswith("KeyError: ")
    assert all(repr(name) in error for name in ("k", "quick", "b"))


def test_ready_hides_it_in_every_way_of_reading() -> None:
    """What is hidden is hidden from len, in, get, iteration and copies as well."""
    graph = make("START>quick START>a a>b", quick=lambda state: {"k": "new"}, a=sleeper("a", 1),
                 b=lambda state: {"seen": ["k" in state, state.get("k", 0), sorted(state), len(state),
                                           sorted({**state}), json.loads(json.dumps(state)) == dict(state)]})
    with clocks.virtual_time():
        state = within(20, lambda: run_graph(graph, {}, schedule="ready"))
    assert state["seen"] == [False, 0, ["a", "errors"], 2, ["a", "errors"], True]


@both
def test_a_join_sees_all_its_branches(schedule: str) -> None:
    """Below a join every key of every branch can be read, and the newest value of each."""
    graph = make("START>a a>b,c b>j c>c2 c2>j", a=lambda state: {"k": 1}, b=lambda state: {"k": state["k"] + 1},
                 c=lambda state: {"c": 1}, c2=lambda state: {"c": 2}, j=lambda state: {"j": [state["k"], state["c"]]})
    assert run_graph(graph, {}, schedule=schedule)["j"] == [2, 2]


@both
def test_a_router_sees_what_its_node_wrote(schedule: str) -> None:
    """A router reads the blackboard after its node's writes."""
    graph = make("START>a", a=lambda state: {"score": 0.9},
                 routers={"a": (lambda state: "hot" if state["score"] > state["limit"] else "cold",
                                {"hot": "h", "cold": "c"})}, h={}, c={})
    assert run_graph(graph, {"limit": 0.5}, schedule=schedule).visits == {"a": 1, "h": 1}


def test_routers_are_asked_when_the_wave_is_merged() -> None:
    """Under "waves" first everything is merged, in the order of the graph, and then the routers are asked, in that
    order too."""
    asked = []

    def route(name: str) -> Callable[[Any], str]:
        return lambda state: asked.append((name, sorted(plain(state)))) or "end"

    graph = make("START>a,b,c", routers={"c": (route("c"), {"end": END}), "a": (route("a"), {"end": END})})
    assert list(plain(run_graph(graph, {}))) == ["a", "b", "c"]
    assert asked == [("a", ["a", "b", "c"]), ("c", ["a", "b", "c"])]


@both
def test_a_handler_sees_the_error(schedule: str) -> None:
    """The handler finds the failure in state["errors"]."""
    graph = make("START>a h>END", a={"fn": boom, "on_error": "h"}, h=lambda state: {"why": state["errors"]["a"]})
    assert run_graph(graph, {}, schedule=schedule)["why"] == "ValueError: boom"


@both
def test_strict_passes_a_clean_graph(schedule: str) -> None:
    """A graph whose nodes read only what led to them does the same under strict."""
    graph = make("START>a a>b,c b>j c>j", a=lambda state: {"list": [1]}, b=lambda state: {"b": [*state["list"], 2]},
                 j=lambda state: {"all": state["b"] + [state["c"]]})
    assert run_graph(graph, {}, schedule=schedule, strict=True) == run_graph(graph, {}, schedule=schedule)


@both
@pytest.mark.parametrize("change", [
    lambda state: state["items"].append(3),
    lambda state: state["deep"]["a"]["b"].add(2),
    lambda state: state["deep"].pop("a") and None,
    lambda state: state["items"].append(3) or {"items": state["items"]},
], ids=["append", "nested", "pop", "returned"])
def test_strict_catches_a_change_in_place(schedule: str, change: Callable[[Any], Any]) -> None:
    """Under strict a node that changes a value in place has failed, and nobody else sees the change."""
    graph = make("START>a a>END", a={"fn": change, "on_error": "b"}, b=lambda state: {
        "seen": [list(state["items"]), {"a": {"b": set(state["deep"]["a"]["b"])}}]})
    initial = {"items": [1, 2], "deep": {"a": {"b": {1}}}}
    state = run_graph(graph, initial, schedule=schedule, strict=True)
    assert state["errors"]["a"].startswith("TypeError: ")
    assert "'items'" in state["errors"]["a"] or "'deep'" in state["errors"]["a"]
    assert state["seen"] == [[1, 2], {"a": {"b": {1}}}]
    assert initial == {"items": [1, 2], "deep": {"a": {"b": {1}}}}


@both
def test_strict_reports_reads_beside_the_past(schedule: str) -> None:
    """Under strict, reading what no run in the causal past wrote fails the node, under either schedule."""
    graph = make("START>quick START>a a>b", quick=lambda state: {"k": "new"}, a=sleeper("a", 1),
                 b=lambda state: {"seen": state["k"]})
    for initial in ({}, {"k": "old"}):
        with clocks.virtual_time():
            state = within(20, lambda initial=initial: run_graph(graph, initial, schedule=schedule, strict=True))
        assert state.status == "failed"
        assert all(repr(name) in state["errors"]["b"] for name in ("k", "quick", "b"))
        assert "seen" not in state


@both
def test_strict_reports_a_value_that_is_out_of_date(schedule: str) -> None:
    """Under strict a key may not be read either while a neighbour has written it anew."""
    graph = make("START>a a>quick a>slow slow>b", a=lambda state: {"k": 1}, quick=lambda state: {"k": 2},
                 slow=sleeper("slow", 1), b=lambda state: {"seen": state["k"]})
    with clocks.virtual_time():
        state = within(20, lambda: run_graph(graph, {}, schedule=schedule, strict=True))
    assert state.status == "failed"
    assert all(repr(name) in state["errors"]["b"] for name in ("k", "quick", "b"))


@both
def test_strict_takes_what_cannot_be_copied(schedule: str) -> None:
    """A value that cannot be copied or compared is handed on as it is."""
    class Odd:
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("one of a kind")

        def __eq__(self, other: object) -> bool:
            raise TypeError("no comparing")

        __hash__ = None  # type: ignore[assignment]

    graph = make("START>a a>b", b=lambda state: {"ok": isinstance(state["odd"], Odd)})
    state = run_graph(graph, {"odd": Odd(), "lock": threading.Lock()}, schedule=schedule, strict=True)
    assert (state.status, state["ok"]) == ("done", True)


# ---- collisions


@both
def test_collision(schedule: str) -> None:
    """Two live branches that write one key: StateCollision names the key and both nodes."""
    graph = make("START>left,right", left=lambda state: {"same": 1}, right=lambda state: {"same": 2})
    with pytest.raises(StateCollision) as caught:
        run_graph(graph, {}, schedule=schedule)
    assert caught.value.key == "same"
    assert sorted(caught.value.nodes) == ["left", "right"]
    assert all(repr(name) in str(caught.value) for name in ("same", "left", "right"))


@both
def test_equal_values_collide_too(schedule: str) -> None:
    """It is the writing that collides, not the value."""
    with pytest.raises(StateCollision):
        run_graph(make("START>a,b", a=lambda state: {"k": 1}, b=lambda state: {"k": 1}), {}, schedule=schedule)


@both
def test_an_initial_key_may_be_written_once_by_a_branch(schedule: str) -> None:
    """A key that came with the initial state is everybody's; two live branches that write it collide all the same."""
    assert run_graph(make("START>a,b", a=lambda state: {"k": 1}), {"k": 0}, schedule=schedule)["k"] == 1
    with pytest.raises(StateCollision):
        run_graph(make("START>a,b", a=lambda state: {"k": 1}, b=lambda state: {"k": 2}), {"k": 0}, schedule=schedule)


@both
def test_a_handler_may_write_what_came_before_the_failure(schedule: str) -> None:
    """A failed run is in the past of its handler, and so is everything before it."""
    graph = make("START>a a>b b>END h>END", a=lambda state: {"k": 1}, b={"fn": boom, "on_error": "h"},
                 h=lambda state: {"k": 2})
    assert run_graph(graph, {}, schedule=schedule)["k"] == 2


@both
def test_every_ticket_counts_for_the_past(schedule: str) -> None:
    """An in-edge that delivers on two laps hands on two pasts: `j` may write what `x` wrote on either of them."""
    def x(state: Any) -> dict[str, Any]:
        return {f"lap {len(laps)}": "x"}

    def h(state: Any) -> None:
        laps.append(1)

    laps: list[int] = []
    graph = make("START>h h>r,x x>j", h={"fn": h, "max_visits": 2}, x=x,
                 j=lambda state: {"lap 1": "j", "lap 2": "j"},
                 routers={"r": (lambda state: "back" if len(laps) < 2 else "out", {"back": "h", "out": "j"})})
    state = run_graph(graph, {}, schedule=schedule)
    assert (state.status, state.visits) == ("done", {"h": 2, "r": 2, "x": 2, "j": 1})
    assert (state["lap 1"], state["lap 2"]) == ("j", "j")


@both
def test_nothing_of_a_colliding_write_is_merged(schedule: str) -> None:
    """Not even its other keys; and graph_end is sent all the same."""
    held, heard = [], Heard()
    graph = make("START>left START>right", left=lambda state: held.append(state) or {"same": 1},
                 right=lambda state: clocks.sleep(1) or {"other": 3, "same": 2, "third": 4})
    with clocks.virtual_time(), pytest.raises(StateCollision):
        within(20, lambda: run_graph(graph, {}, heard, schedule=schedule))
    assert "other" not in held[0]
    assert "third" not in held[0]
    assert heard.kinds[-1] == "graph_end"
    assert "same" in heard["graph_end"][0]["error"]


def test_collision_is_found_far_away() -> None:
    """A long way between the two writers makes no difference."""
    length = 300
    edges = " ".join(["START>n0", "START>end", *(f"n{i}>n{i + 1}" for i in range(length))])
    graph = make(edges, end=lambda state: {"k": 1}, **{f"n{length}": lambda state: {"k": 2}})
    with pytest.raises(StateCollision):
        run_graph(graph, {}, max_steps=1000)
    edges = " ".join(["START>n0", *(f"n{i}>n{i + 1}" for i in range(length))])
    assert run_graph(make(edges, n0=lambda state: {"k": 1}, **{f"n{length}": lambda state: {"k": 2}}), {})["k"] == 2


# ---- guards


@both
def test_max_visits(schedule: str) -> None:
    """max_visits=3 lets a node run three times; the fourth visit is its failure."""
    graph = make("START>work", work={"max_visits": 3},
                 routers={"work": (lambda state: "again", {"again": "work"})})
    heard = Heard()
    state = run_graph(graph, {}, heard, schedule=schedule)
    assert (state.visits, state.status) == ({"work": 3}, "failed")
    assert state["errors"] == {"work": "max_visits=3 reached"}
    assert heard["refused"][0]["node"] == "work"
    assert "max_visits=3" in json.dumps(heard["refused"][0])
    assert len(heard["node_start"]) == 3


@both
def test_a_refused_visit_costs_a_step(schedule: str) -> None:
    """Three runs, a refusal and a handler are five steps: with four the run stops."""
    def graph() -> Graph:
        return make("START>work h>END", work={"max_visits": 3, "on_error": "h"},
                    routers={"work": (lambda state: "again", {"again": "work"})})
    heard = Heard()
    assert run_graph(graph(), {}, heard, 5, schedule=schedule).status == "done"
    assert heard["graph_end"][0]["steps"] == 5
    state = run_graph(graph(), {}, None, 4, schedule=schedule)
    assert (state.status, "h" in state.visits) == ("max_steps", False)


@both
def test_max_steps(schedule: str) -> None:
    """A wave that would pass max_steps does not start; errors["engine"] says so, and who was waiting."""
    graph = make("START>a a>b,c b>d c>d")
    state = run_graph(graph, {}, None, 2, schedule=schedule)
    assert (state.status, state.visits) == ("max_steps", {"a": 1})
    assert "max_steps=2 reached" in state["errors"]["engine"]
    assert "'b'" in state["errors"]["engine"]
    assert "'c'" in state["errors"]["engine"]
    assert "'d'" not in state["errors"]["engine"]
    assert run_graph(graph, {}, None, 3, schedule=schedule).visits == {"a": 1, "b": 1, "c": 1}
    assert run_graph(graph, {}, None, 4, schedule=schedule).status == "done"


@both
def test_max_steps_default_is_25(schedule: str) -> None:
    """Without max_steps a small cyclic graph stops after 25 runs."""
    graph = make("START>work", work={"max_visits": 99},
                 routers={"work": (lambda state: "again", {"again": "work"})})
    state = run_graph(graph, {}, schedule=schedule)
    assert (state.status, state.visits) == ("max_steps", {"work": 25})
    assert "max_steps=25 reached" in state["errors"]["engine"]


@both
def test_max_steps_default_grows_with_the_graph(schedule: str) -> None:
    """A graph without cycles never trips the default, however large."""
    edges = " ".join(["START>n0", *(f"n{i}>n{i + 1}" for i in range(39))])
    assert run_graph(make(edges), {}, schedule=schedule).status == "done"


@both
def test_what_runs_when_max_steps_trips_is_merged(schedule: str) -> None:
    """Under "ready" a node that is running when the limit trips ends, and its writes count."""
    graph = make("START>slow START>a a>b b>c", slow=sleeper("slow", 9))
    with clocks.virtual_time():
        state = within(20, lambda: run_graph(graph, {}, None, 3, schedule=schedule))
    assert (state.status, "slow" in state, state.visits) == ("max_steps", True, {"slow": 1, "a": 1, "b": 1})


@both
def test_status_is_the_first_that_applies(schedule: str) -> None:
    """max_steps comes before failed, failed before done; an error that was handled is no failure."""
    failed_and_stopped = make("START>a,b b>c c>d", a=boom)
    assert run_graph(failed_and_stopped, {}, None, 3, schedule=schedule).status == "max_steps"
    assert run_graph(failed_and_stopped, {}, schedule=schedule).status == "failed"
    handled = run_graph(make("START>a h>END", a={"fn": boom, "on_error": "h"}), {}, schedule=schedule)
    assert (handled.status, handled["errors"]) == ("done", {"a": "ValueError: boom"})
    assert run_graph(make("START>a"), {}, schedule=schedule).status == "done"


# ---- failures


@both
def test_a_failure_is_data(schedule: str) -> None:
    """errors has `TypeName: message`; the exception with its traceback is on the result and in the event."""
    heard = Heard()
    state = run_graph(make("START>a a>b", a=boom), {}, heard, schedule=schedule)
    assert (state["errors"], state.errors) == ({"a": "ValueError: boom"}, {"a": "ValueError: boom"})
    error = state.exceptions["a"]
    assert isinstance(error, ValueError)
    assert error.__traceback__ is not None
    end = heard["node_end"][0]
    assert (end["node"], end["error"], end["keys"]) == ("a", "ValueError: boom", [])
    assert "Traceback" in end["traceback"]
    assert "boom" in end["traceback"]
    assert type(state["errors"]["a"]) is str


@both
@pytest.mark.parametrize("observer", [None, Heard()])
def test_a_failure_that_cannot_be_told(schedule: str, observer: Any) -> None:
    """An exception whose own text fails is a failure like any other."""
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def mute(state: Any) -> None:
        raise Mute

    state = run_graph(make("START>a,b a>c", a=mute), {}, observer, schedule=schedule)
    assert (state.status, state.visits) == ("failed", {"a": 1, "b": 1})
    assert state["errors"]["a"].startswith("Mute")


@both
def test_errors_that_a_node_kept_stay_as_they_were(schedule: str) -> None:
    """What a node read from the errors and wrote under a key of its own does not change when others fail later."""
    graph = make("START>a a>b b>c", a={"fn": boom, "on_error": "b"}, b=lambda state: {"until now": state["errors"]},
                 c=boom)
    state = run_graph(graph, {}, schedule=schedule)
    assert state["until now"] == {"a": "ValueError: boom"}
    assert state["errors"] == {"a": "ValueError: boom", "c": "ValueError: boom"}


@both
def test_siblings_of_a_failure_merge(schedule: str) -> None:
    """The failure of one node takes nothing from its neighbours or from independent branches."""
    state = run_graph(make("START>a,b,c b>b2 a>a2", a=boom), {}, schedule=schedule)
    assert plain(state) == {"b": True, "c": True, "b2": True}


@both
def test_a_router_that_raises(schedule: str) -> None:
    """It is a failure of its node, whose writes stay; on_error takes it."""
    for spec, status in (({}, "failed"), ({"on_error": "h"}, "done")):
        graph = make("START>a h>END" if spec else "START>a", a=spec, x={}, routers={"a": (boom, {"x": "x"})})
        state = run_graph(graph, {}, schedule=schedule)
        assert (state.status, state["errors"], state["a"]) == (status, {"a": "ValueError: boom"}, True)
        assert "x" not in state.visits


@both
@pytest.mark.parametrize("label", ["nope", [], ["a", "nope"], None, 7, True, ["a", None], {"a": 1}.get, b"a"])
def test_a_wrong_label(schedule: str, label: Any) -> None:
    """An unknown label, an empty list, and anything that is no string are failures of the node."""
    state = run_graph(make("START>r", a={}, routers={"r": (lambda state: label, {"a": "a"})}), {}, schedule=schedule)
    assert (state.status, list(state["errors"]), state.visits) == ("failed", ["r"], {"r": 1})


@both
@pytest.mark.parametrize("labels", [["a", "c"], ("a", "c")])
def test_several_labels(schedule: str, labels: Any) -> None:
    """A router may return several labels: all their targets run."""
    graph = make("START>r a>j b>j c>j", routers={"r": (lambda state: labels, {"a": "a", "b": "b", "c": ["c", "a"]})})
    assert run_graph(graph, {}, schedule=schedule).visits == {"r": 1, "a": 1, "c": 1, "j": 1}


@both
def test_on_error_naming_the_successor(schedule: str) -> None:
    """It tolerates the failure: the successor runs either way, once."""
    for fn in (boom, note("a")):
        state = run_graph(make("START>a a>b", a={"fn": fn, "on_error": "b"}), {}, schedule=schedule)
        assert (state.status, state.visits) == ("done", {"a": 1, "b": 1})


@both
def test_on_error_end(schedule: str) -> None:
    """It ends the branch and is handled."""
    state = run_graph(make("START>a a>b", a={"fn": boom, "on_error": END}), {}, schedule=schedule)
    assert (state.status, state.visits) == ("done", {"a": 1})


@both
def test_an_async_function(schedule: str) -> None:
    """Its coroutine is closed, so nothing warns, and the error says how to call async code."""
    async def node(state: Any) -> dict[str, Any]:
        return {}

    async def route(state: Any) -> str:
        return "x"

    with nothing_left_unawaited():
        state = run_graph(make("START>a,b", a=node, routers={"b": (route, {"x": "x"})}), {}, schedule=schedule)
        assert "asyncio.run" in state["errors"]["a"]
        assert state["errors"]["b"].startswith("TypeError")
        del state
    asyncio.run(node({}))  # called as the message says


# ---- interrupts


@both
def test_keyboard_interrupt_in_a_lone_node(schedule: str) -> None:
    """It is raised again; graph_end says interrupted; nothing after it ran."""
    def press(state: Any) -> None:
        raise KeyboardInterrupt

    heard, ran = Heard(), []
    graph = make("START>a a>b b>c", b=press, c=lambda state: ran.append(1))
    with pytest.raises(KeyboardInterrupt):
        run_graph(graph, {}, heard, schedule=schedule)
    assert heard.kinds[-1] == "graph_end"
    assert heard["graph_end"][0]["status"] == "interrupted"
    assert ran == []


@both
def test_keyboard_interrupt_cancels_what_is_queued(schedule: str) -> None:
    """With one worker, the nodes behind the interrupted one never run, and what they would write is not there."""
    def press(state: Any) -> None:
        raise KeyboardInterrupt

    heard, ran = Heard(), []
    graph = make("START>a,b,c,d", a=press, **{n: (lambda state, n=n: ran.append(n)) for n in "bcd"})
    with pytest.raises(KeyboardInterrupt):
        within(20, lambda: run_graph(graph, {}, heard, schedule=schedule, max_workers=1))
    assert len(ran) <= 1  # one may have been handed to the worker before the interrupt was seen
    assert heard["graph_end"][0]["status"] == "interrupted"


@both
def test_keyboard_interrupt_merges_nothing_more(schedule: str) -> None:
    """What a neighbour returns after the interrupt does not reach the blackboard."""
    held = []
    pressed = threading.Event()

    def press(state: Any) -> None:
        held.append(state)
        pressed.set()
        raise KeyboardInterrupt

    graph = make("START>a,b a>END", a=press, b=lambda state: pressed.wait(10) and {"late": 1})
    with pytest.raises(KeyboardInterrupt):
        within(20, lambda: run_graph(graph, {}, schedule=schedule))
    assert "late" not in held[0]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
@both
def test_ctrl_c_while_the_run_waits(schedule: str) -> None:
    """A real SIGINT reaches a run that waits for its nodes, and passes through it."""
    release, heard = threading.Event(), Heard()

    def observer(kind: str, event: dict[str, Any]) -> None:
        heard(kind, event)

    def press(state: Any) -> None:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        threading.Timer(0.3, release.set).start()
        release.wait(10)

    with pytest.raises(KeyboardInterrupt):
        run_graph(make("START>a,b b>c", a=press, b=lambda state: release.wait(10) and None), {}, observer,
                  schedule=schedule)
    assert heard["graph_end"][0]["status"] == "interrupted"
    assert "c" not in [e["node"] for e in heard["node_start"]]


# ---- events


def test_events_of_a_run() -> None:
    """Every event of a small run, in order, with all it says (virtual time makes them exact)."""
    heard = Heard()
    graph = make("START>a,b b>r", name="small", a=sleeper("a", 1), b=sleeper("b", 3),
                 r=lambda state: emit("note", {"said": "hi"}), x=boom,
                 routers={"r": (lambda state: ["go", "stop"], {"go": ["x"], "stop": END})})
    with clocks.virtual_time():
        within(20, lambda: run_graph(graph, {}, heard))
    told = [(kind, {key: value for key, value in event.items() if key != "traceback"}) for kind, event in heard.events]
    w = {"workflow": "small"}

    def started(t: float, node: str, wave: int) -> tuple[str, dict[str, Any]]:
        return "node_start", {"t": t, **w, "node": node, "visit": 1, "wave": wave}

    def ended(t: float, node: str, ms: float, keys: list[str], error: str | None = None) -> tuple[str, dict[str, Any]]:
        return "node_end", {"t": t, **w, "node": node, "visit": 1, "ms": ms, "keys": keys, "error": error}

    expected = [
        ("graph_start", {"t": 0, **w, "nodes": ["a", "b", "r", "x"], "schedule": "waves"}),
        ("wave_start", {"t": 0, "wave": 1, "nodes": ["a", "b"]}),
        started(0, "a", 1), started(0, "b", 1), ended(1, "a", 1000, ["a"]), ended(3, "b", 3000, ["b"]),
        ("wave_end", {"t": 3, "wave": 1, "nodes": ["a", "b"], "ms": 3000, "waits": {"a": 2000, "b": 0}}),
        ("wave_start", {"t": 3, "wave": 2, "nodes": ["r"]}),
        started(3, "r", 2), ("note", {"t": 3, "said": "hi", "node": "r"}), ended(3, "r", 0, []),
        ("wave_end", {"t": 3, "wave": 2, "nodes": ["r"], "ms": 0, "waits": {"r": 0}}),
        ("route", {"t": 3, **w, "router": "r", "label": ["go", "stop"], "targets": ["x", "END"], "target": "x"}),
        ("wave_start", {"t": 3, "wave": 3, "nodes": ["x"]}),
        started(3, "x", 3), ended(3, "x", 0, [], "ValueError: boom"),
        ("wave_end", {"t": 3, "wave": 3, "nodes": ["x"], "ms": 0, "waits": {"x": 0}}),
        ("graph_end", {"t": 3, **w, "status": "failed", "ms": 3000, "steps": 4, "path": ["a", "b", "r", "x"]}),
    ]
    assert [kind for kind, _ in told] == [kind for kind, _ in expected]
    for (kind, event), (_, fields) in zip(told, expected, strict=True):
        assert {key: event[key] for key in fields} == fields, kind
    assert "boom" in heard["graph_end"][0]["error"]
    assert all(e["traceback"] is None for e in heard["node_end"][:-1])


def test_events_under_ready() -> None:
    """Without waves there are no wave events, and the starts say no wave."""
    heard = Heard()
    run_graph(make("START>a a>b"), {}, heard, schedule="ready")
    assert heard.kinds == ["graph_start", "node_start", "node_end", "node_start", "node_end", "graph_end"]
    assert heard["graph_start"][0]["schedule"] == "ready"
    assert [e["wave"] for e in heard["node_start"]] == [None, None]


@both
def test_events_come_when_things_happen(schedule: str) -> None:
    """A node's end is reported when it ends, not when the wave is over."""
    heard, seen = Heard(), []

    def slow(state: Any) -> None:
        clocks.sleep(5)
        seen.extend(e["node"] for e in heard["node_end"])

    graph = make("START>quick,slow", quick=sleeper("quick", 1), slow=slow)
    with clocks.virtual_time():
        within(20, lambda: run_graph(graph, {}, heard, schedule=schedule))
    assert seen == ["quick"]


@both
def test_events_come_one_at_a_time(schedule: str) -> None:
    """The observer is never called while it is being called, however many nodes emit at once."""
    inside, clashes, count = [0], [], [0]

    def observer(kind: str, event: dict[str, Any]) -> None:
        inside[0] += 1
        count[0] += 1
        for _ in range(50):
            if inside[0] != 1:
                clashes.append(kind)
        inside[0] -= 1

    barrier = threading.Barrier(8)

    def chatty(state: Any) -> None:
        barrier.wait(10)
        for i in range(100):
            emit("tick", {"i": i})

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        within(60, lambda: run_graph(make("START>a,b,c,d,e,f,g,h", **dict.fromkeys("abcdefgh", chatty)), {}, observer,
                                     schedule=schedule))
    finally:
        sys.setswitchinterval(switch)
    assert clashes == []
    assert count[0] >= 800 + 2 + 16


@both
def test_no_event_is_built_without_an_observer(schedule: str) -> None:
    """Nobody listens, so nothing is made to be heard. What events need is asked for by nobody: the time, the name of
    the workflow, the text of a traceback, the contents of what a node emits."""
    class CountingClock(clocks.RealClock):
        asked = 0

        def now(self) -> float:
            CountingClock.asked += 1
            return super().now()

    class CountingGraph(Graph):
        asked = 0

        @property
        def name(self) -> str:  # type: ignore[override]
            CountingGraph.asked += 1
            return "counted"

        @name.setter
        def name(self, name: str) -> None:
            pass

    class Touchy(dict):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            raise AssertionError("somebody looked")

        keys = items = __getitem__ = __iter__

    def asked(length: int, observer: Any) -> tuple[int, int]:
        CountingClock.asked = CountingGraph.asked = 0
        graph = CountingGraph("counted")
        for i in range(length):
            graph.add_node(f"n{i}", lambda state: None if observer else emit("touchy", Touchy()))
            graph.add_edge(f"n{i - 1}" if i else START, f"n{i}")
            graph.add_node(f"m{i}", lambda state: None)
            graph.add_edge(f"n{i}", f"m{i}")
        state = run_graph(graph, {}, observer, 1000, schedule=schedule, clock=CountingClock())
        assert state.status == "done"
        return CountingClock.asked, CountingGraph.asked

    assert asked(40, None) == asked(10, None)
    assert asked(40, Heard())[0] > asked(10, Heard())[0] + 30  # the counters do count


@both
def test_an_observer_that_raises(schedule: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged on the logger "minigraph", every time; the run is not affected."""
    def observer(kind: str, event: dict[str, Any]) -> None:
        raise RuntimeError(f"no {kind}")

    with caplog.at_level(logging.WARNING, logger="minigraph"):
        state = run_graph(make("START>a,b a>c"), {}, observer, schedule=schedule)
    assert state == run_graph(make("START>a,b a>c"), {}, schedule=schedule)
    logged = [record for record in caplog.records if record.name == "minigraph"]
    assert len(logged) >= 8
    assert any("graph_start" in record.getMessage() or "graph_start" in (record.exc_text or "") for record in logged)


@both
def test_emit(schedule: str) -> None:
    """emit sends an event of the node's own to the observer of its run, with the node's name; the event it was given
    is not changed."""
    heard, mine = Heard(), {"tokens": 7}
    graph = make("START>a,b", a=lambda state: emit("llm", mine), b=lambda state: emit("llm", {"tokens": 8}))
    run_graph(graph, {}, heard, schedule=schedule)
    assert sorted((e["node"], e["tokens"]) for e in heard["llm"]) == [("a", 7), ("b", 8)]
    assert all(e["t"] >= 0 for e in heard["llm"])
    assert mine == {"tokens": 7}


def test_emit_outside_a_run() -> None:
    """It does nothing."""
    emit("llm", {"tokens": 7})
    run_graph(make("START>a"), {}, Heard())
    emit("llm", {"tokens": 7})


@both
def test_emit_from_what_a_node_left_behind(schedule: str) -> None:
    """A thread that a node started may emit while the node runs; when the visit is over, it is not heard."""
    heard, over, done, early = Heard(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        emit("early", {})
        early.set()
        over.wait(10)
        emit("late", {})
        done.set()

    def leave(state: Any) -> None:
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(work,), daemon=True).start()
        early.wait(10)

    def later(state: Any) -> None:
        over.set()
        done.wait(10)

    within(20, lambda: run_graph(make("START>a a>b", a=leave, b=later), {}, heard, schedule=schedule))
    assert [e["node"] for e in heard["early"]] == ["a"]
    assert heard["late"] == []


# ---- threads


def test_a_lone_node_runs_on_the_callers_thread() -> None:
    """A chain starts no thread, under either schedule."""
    for schedule in ("waves", "ready"):
        nodes = {n: (lambda state, n=n: {n: threading.get_ident()}) for n in "abc"}
        state = run_graph(make("START>a a>b b>c", **nodes), {}, schedule=schedule)
        assert plain(state) == dict.fromkeys("abc", threading.get_ident())


def meet(barrier: threading.Barrier) -> None:
    barrier.wait(20)


@both
def test_ready_nodes_run_at_once(schedule: str) -> None:
    """Nodes that are ready together really run together: each of them waits here for the others."""
    barrier = threading.Barrier(40)
    nodes = {f"n{i}": (lambda state: meet(barrier)) for i in range(40)}
    state = within(40, lambda: run_graph(make("START>" + ",".join(nodes), **nodes), {}, schedule=schedule))
    assert state.status == "done"


@both
def test_one_pool_a_run(schedule: str) -> None:
    """Three waves of four are run by the same four threads, and when the run is over the threads are gone."""
    seen, before = [], threading.active_count()

    def waves(barriers: list[threading.Barrier]) -> Graph:
        nodes = {f"{w}{i}": (lambda state, w=w: seen.append(threading.current_thread()) or meet(barriers[w]))
                 for w in range(3) for i in range(4)}
        edges = ["START>" + ",".join(f"0{i}" for i in range(4))]
        edges += [f"{w}{i}>" + ",".join(f"{w + 1}{j}" for j in range(4)) for w in range(2) for i in range(4)]
        return make(" ".join(edges), **nodes)

    graph = waves([threading.Barrier(4) for _ in range(3)])
    state = within(40, lambda: run_graph(graph, {}, schedule=schedule, max_workers=4))
    assert state.status == "done"
    assert len(seen) == 12
    assert len(set(seen)) <= 5  # four of the pool, and perhaps the caller's
    assert threading.active_count() <= before
    assert not any(thread.is_alive() for thread in set(seen) if thread is not threading.main_thread())


@both
def test_threads_are_gone_after_a_failure(schedule: str) -> None:
    """Also when the run ends in an exception."""
    before = set(threading.enumerate())
    with pytest.raises(StateCollision):
        run_graph(make("START>a,b,c", a=lambda state: {"k": 1}, b=lambda state: {"k": 2}), {}, schedule=schedule)
    assert set(threading.enumerate()) <= before


@both
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_fewer_workers_than_nodes(schedule: str, workers: int) -> None:
    """A pool smaller than the fan-out runs everything, never more at once than it has workers."""
    lock, at_once, most = threading.Lock(), [0], [0]

    def node(state: Any) -> None:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        threading.Event().wait(0.001)
        with lock:
            at_once[0] -= 1

    nodes = {f"n{i}": node for i in range(12)}
    graph = make("START>" + ",".join(nodes) + " " + " ".join(f"{n}>j" for n in nodes), **nodes)
    state = within(30, lambda: run_graph(graph, {}, schedule=schedule, max_workers=workers))
    assert state.visits == {**dict.fromkeys(nodes, 1), "j": 1}
    assert most[0] <= workers


@both
@pytest.mark.parametrize("virtual", [False, True])
def test_nested_runs_do_not_deadlock(schedule: str, virtual: bool) -> None:
    """A node may run a graph, whose nodes run graphs, all with one worker."""
    def nest(depth: int) -> Graph:
        def inner(state: Any) -> dict[str, Any]:
            clocks.sleep(0.001)
            if depth == 0:
                return {"n": 1}
            state = run_graph(nest(depth - 1), {}, schedule=schedule, max_workers=1)
            return {"n": 1 + state["total"]}
        nodes = {name: (lambda state, name=name: {name: inner(state)["n"]}) for name in "abc"}
        return make("START>a,b,c a>j b>j c>j", j=lambda state: {"total": sum(state[n] for n in "abc")}, **nodes)

    def go() -> int:
        total = run_graph(nest(2), {}, schedule=schedule, max_workers=1)["total"]
        assert isinstance(total, int)
        return total

    if virtual:
        with clocks.virtual_time():
            assert within(60, go) == 39
    else:
        assert within(60, go) == 39


NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


@both
def test_contextvars(schedule: str) -> None:
    """Every node sees the caller's context variables; what it sets stays its own."""
    def node(state: Any) -> str:
        name = NAME.get()
        NAME.set("changed")
        return name

    token = NAME.set("ada")
    try:
        graph = make("START>a,b a>c", **{n: (lambda state, n=n: {n: node(state)}) for n in "abc"})
        state = run_graph(graph, {}, schedule=schedule)
        assert NAME.get() == "ada"
    finally:
        NAME.reset(token)
    assert plain(state) == {"a": "ada", "b": "ada", "c": "ada"}


@both
def test_one_graph_in_two_threads(schedule: str) -> None:
    """A run keeps its own data: one Graph may be run by many threads at once."""
    start = threading.Barrier(6)
    graph = make("START>a a>b,c b>j c>j", a={"fn": lambda state: {"n": state.get("n", 0) + 1}, "max_visits": 5},
                 b=lambda state: {"b": (state["who"], state["n"])}, c=lambda state: {"c": (state["who"], state["n"])},
                 routers={"j": (lambda state: "again" if state["n"] < 5 else "out", {"again": "a", "out": END})})
    states: dict[int, GraphState] = {}

    def run(who: int) -> None:
        start.wait(10)
        for _ in range(10):
            states[who] = run_graph(graph, {"who": who}, schedule=schedule)

    def all_of_them() -> None:
        threads = [threading.Thread(target=run, args=(who,), daemon=True) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    within(60, all_of_them)
    for who in range(6):
        assert plain(states[who]) == {"who": who, "n": 5, "b": (who, 5), "c": (who, 5), "j": True}
        assert states[who].visits == dict.fromkeys("abcj", 5)


def test_a_graph_can_be_changed_between_runs() -> None:
    """What was checked once is checked again when the graph has changed."""
    graph = make("START>a")
    assert run_graph(graph, {}).visits == {"a": 1}
    graph.add_node("b", note("b"))
    with pytest.raises(GraphError):
        run_graph(graph, {})
    graph.add_edge("a", "b")
    assert run_graph(graph, {}).visits == {"a": 1, "b": 1}


# ---- executors of one's own


def write_pid(state: Any) -> dict[str, Any]:
    emit("pid", {"pid": os.getpid()})
    return {f"pid{len(state)}": os.getpid()}


def write_sum(state: Any) -> dict[str, Any]:
    return {"sum": state["x"] + 1}


def fail_far_away(state: Any) -> None:
    raise ValueError("far away")


class Unpicklable(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__("told")
        self.lock = threading.Lock()


def fail_unpicklably(state: Any) -> None:
    raise Unpicklable(1, 2)


def choose_b(state: Any) -> str:
    return "b"


@pytest.fixture(scope="module")
def processes() -> Any:
    import multiprocessing

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@both
def test_a_thread_pool_of_ones_own(schedule: str) -> None:
    """Every node goes to the executor that was given, and the run leaves it open."""
    with ThreadPoolExecutor(2, thread_name_prefix="mine") as pool:
        seen = set()
        graph = make("START>a a>b,c,d b>e c>e d>e", **{
            n: (lambda state, n=n: seen.add(threading.current_thread().name[:4]) or {n: 1}) for n in "abcde"})
        state = within(20, lambda: run_graph(graph, {}, schedule=schedule, executor=pool))
        assert plain(state) == dict.fromkeys("abcde", 1)
        assert seen == {"mine"}
        assert pool.submit(lambda: 5).result() == 5


@both
def test_a_process_pool(schedule: str, processes: Any) -> None:
    """Every node runs in another process, and what it emits comes back with its result."""
    heard = Heard()
    graph = make("START>a a>b a>c", a=write_pid, b=write_pid, c=write_sum)
    state = within(60, lambda: run_graph(graph, {"x": 1}, heard, schedule=schedule, executor=processes))
    assert state.status == "done", state["errors"]
    assert state["sum"] == 2
    assert os.getpid() not in [value for key, value in state.items() if key.startswith("pid")]
    assert sorted(e["node"] for e in heard["pid"]) == ["a", "b"]
    assert heard.kinds.index("pid") < heard.kinds.index("node_end")


@both
def test_failures_in_a_process_pool(schedule: str, processes: Any) -> None:
    """An exception comes back as text, also one that cannot be pickled; routers are asked here."""
    graph = make("START>a,u h>r", a={"fn": fail_far_away, "on_error": "h"}, u=fail_unpicklably, h=write_sum,
                 r=write_pid, b=write_pid, routers={"r": (choose_b, {"b": "b"})})
    state = within(60, lambda: run_graph(graph, {"x": 1}, schedule=schedule, executor=processes))
    assert state["errors"]["a"] == "ValueError: far away"
    assert "told" in state["errors"]["u"]
    assert (state.status, state.visits) == ("failed", dict.fromkeys("auhrb", 1))


@both
def test_what_cannot_be_pickled_is_a_failure(schedule: str, processes: Any) -> None:
    """A lambda, or a value, that cannot go to another process fails its node, and nothing hangs."""
    graph = make("START>a,c", a=lambda state: {"k": 1}, c=write_sum)
    state = within(60, lambda: run_graph(graph, {"x": 1}, schedule=schedule, executor=processes))
    assert (state.status, list(state["errors"]), state["sum"]) == ("failed", ["a"], 2)


def test_a_foreign_executor_has_no_virtual_time() -> None:
    """It is a ValueError, before anything runs."""
    ran = []
    with ThreadPoolExecutor(1) as pool, clocks.virtual_time(), pytest.raises(ValueError, match="virtual"):
        run_graph(make("START>a", a=lambda state: ran.append(1)), {}, executor=pool)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="virtual"):
        run_graph(make("START>a", a=lambda state: ran.append(1)), {}, executor=pool, clock=clocks.VirtualClock())
    assert ran == []


def test_nested_runs_do_not_inherit_the_executor() -> None:
    """A graph that a node runs has a pool of its own, so a pool of one cannot wait for itself."""
    def node(state: Any) -> dict[str, Any]:
        names = []
        run_graph(make("START>x,y", **{n: (lambda s: names.append(threading.current_thread().name)) for n in "xy"}), {})
        return {"inner": names}

    with ThreadPoolExecutor(1, thread_name_prefix="mine") as pool:
        state = within(20, lambda: run_graph(make("START>a", a=node), {}, executor=pool))
    assert len(state["inner"]) == 2
    assert not any(name.startswith("mine") for name in state["inner"])


@both
def test_an_executor_that_is_shut_down(schedule: str) -> None:
    """Nodes that cannot be handed over have failed; nothing hangs."""
    pool = ThreadPoolExecutor(1)
    pool.shutdown()

    def go() -> Any:
        try:
            return run_graph(make("START>a,b"), {}, schedule=schedule, executor=pool).status
        except RuntimeError as error:
            return str(error)

    outcome = within(20, go)
    assert outcome == "failed" or "shutdown" in outcome


@both
def test_without_threads(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no thread can be started (a browser), the nodes of a wave run one after another, and come out the same."""
    graph = make("START>a,b,c a>j b>j c>j")
    expected = run_graph(graph, {}, schedule=schedule)

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    state = run_graph(graph, {}, schedule=schedule)
    assert (state, state.visits, state.status) == (expected, expected.visits, "done")


@both
def test_without_threads_virtual_time_is_the_same(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And in virtual time the trace is the one that threads would have made."""
    graph = make("START>a,b a>a2 b>j a2>j", a=sleeper("a", 1), b=sleeper("b", 5), a2=sleeper("a2", 2),
                 j=sleeper("j", 1))

    def traced() -> list[tuple[str, str, float]]:
        heard = Heard()
        with clocks.virtual_time():
            run_graph(graph, {}, heard, schedule=schedule)
        return sorted((k, e["node"], e["t"]) for k, e in heard.events if k in ("node_start", "node_end"))

    expected = traced()

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert traced() == expected


# ---- misuse: GraphError, and nothing has run


def raises_graph_error(build: Callable[[], Any]) -> str:
    with pytest.raises(GraphError) as caught:
        build()
    return str(caught.value)


def test_unknown_ends_at_once() -> None:
    """An edge to or from a node that is not there is refused when it is added."""
    graph = make("START>draft draft>review")
    for build in (lambda: graph.add_edge("draft", "reveiw"), lambda: graph.add_edge("reveiw", "draft"),
                  lambda: graph.add_router("reveiw", len, {"a": "draft"}),
                  lambda: graph.add_router("review", len, {"a": "reveiw"})):
        message = raises_graph_error(build)
        assert "'reveiw'" in message
        assert "did you mean 'review'" in message


def test_names_at_once() -> None:
    """A name that is taken, reserved or no string is refused when the node is added."""
    graph = make("START>a")
    assert "'a'" in raises_graph_error(lambda: graph.add_node("a", len))
    assert "'a'" in raises_graph_error(lambda: graph.add_node(Node("a", len)))
    for name in (START, END):
        assert repr(name) in raises_graph_error(lambda name=name: graph.add_node(name, len))
    for odd in (None, 7, ""):
        with pytest.raises((GraphError, TypeError)):
            graph.add_node(odd, len)  # type: ignore[arg-type]


@pytest.mark.parametrize(("graph", "words"), [
    (lambda: make("START>a a>b b>c c>a"), ["'a'", "'b'", "'c'", "cycle"]),
    (lambda: make("START>a a>a"), ["'a'", "cycle"]),
    (lambda: make("START>a b>a"), ["'b'", "START"]),
    (lambda: make("START>a", lost={}), ["'lost'", "START"]),
    (lambda: make("START>a b>c c>END", b={}, c={}), ["'b'", "START"]),
    (lambda: make("START>a", a={"on_error": "hanlder"}, handler={"on_error": END}),
     ["'hanlder'", "did you mean 'handler'"]),
    (lambda: Graph("empty"), ["START"]),
    (lambda: make("START>a", routers={"a": (len, {"again": "a"})}), ["'a'", "max_visits"]),
    (lambda: make("START>a a>b b>c", routers={"c": (len, {"again": "a", "out": END})}),
     ["'a'", "'b'", "'c'", "max_visits"]),
    (lambda: make("START>a a>b", b={"on_error": "a"}), ["'a'", "'b'", "max_visits"]),
    (lambda: make("START>a", a={"on_error": "a"}), ["'a'", "max_visits"]),
], ids=["static cycle", "static self-loop", "not reached", "alone", "two not reached", "on_error to nowhere", "empty",
        "loop without a cap", "long loop without a cap", "retry without a cap", "self-retry without a cap"])
def test_wrong_graphs(graph: Callable[[], Graph], words: list[str]) -> None:
    """What only the whole graph can show is a GraphError before any node runs, naming what is wrong."""
    heard = Heard()

    def go() -> None:
        run_graph(graph(), {}, heard)

    message = raises_graph_error(go)
    for word in words:
        assert word in message
    assert heard["node_start"] == []


def test_wrong_routers() -> None:
    """A second router, a router beside static edges, a label that is no string, an empty target list."""
    one = make("START>a", b={}, routers={"a": (len, {"b": "b"})})
    assert "'a'" in raises_graph_error(lambda: one.add_router("a", len, {"x": "b"}))
    assert "'a'" in raises_graph_error(lambda: one.add_edge("a", "b"))
    both_kinds = make("START>a a>b")
    assert "'a'" in raises_graph_error(lambda: both_kinds.add_router("a", len, {"x": "b"}))
    for label in (True, 1, None):
        graph = make("START>a a>b")
        message = raises_graph_error(lambda graph=graph, label=label: graph.add_router("b", len, {label: "a"}))
        assert repr(label) in message


def test_start_and_end_have_one_side() -> None:
    """Nothing leads to START and nothing comes after END."""
    graph = make("START>a")
    raises_graph_error(lambda: graph.add_edge("a", START))
    raises_graph_error(lambda: graph.add_edge(END, "a"))
    raises_graph_error(lambda: graph.add_router("a", len, {"back": START}))
    raises_graph_error(lambda: (graph.add_router(END, len, {"a": "a"}), run_graph(graph, {})))


def test_one_cap_bounds_a_cycle() -> None:
    """A cap on any node of a cycle is enough; two cycles need one each."""
    for capped in "abc":
        graph = make("START>a a>b b>c", **{capped: {"max_visits": 2}},
                     routers={"c": (lambda state: "out", {"again": "a", "out": END})})
        assert run_graph(graph, {}).status == "done"
    graph = make("START>a a>b b>c", a={"max_visits": 2}, routers={"c": (len, {"again": "a", "inner": "b"})})
    message = raises_graph_error(lambda: run_graph(graph, {}))
    assert "'b'" in message
    assert "'c'" in message


def test_nothing_is_wrong_with_start_to_end() -> None:
    """START -> END alone is a run of nothing."""
    heard, graph = Heard(), Graph("nothing")
    graph.add_edge(START, END)
    state = run_graph(graph, {"x": 1}, heard)
    assert (state, state.status, state.visits, state.path) == ({"x": 1, "errors": {}}, "done", {}, [])
    assert heard.kinds == ["graph_start", "graph_end"]


def test_duplicate_edges_are_ignored() -> None:
    """An edge that is there already changes nothing."""
    graph = make("START>a START>a a>b a>b a>c b>j c>j b>j")
    assert len(graph.describe()["edges"]) == 5
    assert run_graph(graph, {}).visits == {"a": 1, "b": 1, "c": 1, "j": 1}


@pytest.mark.parametrize("options", [
    {"schedule": "wave"}, {"max_steps": 0}, {"max_steps": -1}, {"max_workers": 0}, {"max_steps": "many"},
    {"state": None}, {"state": 7}, {"graph": "morning"}, {"graph": None}, {"state": {1: 2}},
], ids=str)
def test_wrong_calls(options: dict[str, Any]) -> None:
    """A call that cannot be meant is an exception that names what was given, before any node runs."""
    ran: list[int] = []
    arguments = {"graph": make("START>a", a=lambda state: ran.append(1)), "state": {}, **options}
    with pytest.raises((GraphError, ValueError, TypeError)) as caught:
        run_graph(arguments.pop("graph"), arguments.pop("state"), **arguments)
    shown = next(iter(options.values()))
    assert repr(next(iter(shown)) if isinstance(shown, dict) else shown) in str(caught.value)
    assert ran == []


@pytest.mark.parametrize("spec", [{"max_visits": 0}, {"max_visits": "two"}, {"kind": "llmm"}, {"fn": "text"},
                                  {"fn": None}], ids=str)
def test_wrong_nodes(spec: dict[str, Any]) -> None:
    """A node that cannot work is refused when it is added."""
    message = raises_graph_error(lambda: make("START>a", a=spec))
    assert "'a'" in message


def test_graph_error_is_a_value_error_too() -> None:
    """Whoever expects the builtin catches it as well."""
    assert issubclass(GraphError, Exception)
    assert issubclass(StateCollision, Exception)


# ---- advice


def test_lint_has_nothing_to_say() -> None:
    """A tidy graph gets no advice."""
    graph = make("START>a a>b,c b>j c>j j>END")
    assert graph.lint() == []
    loop = make("START>a a>b", a={"max_visits": 3}, routers={"b": (len, {"again": "a", "out": END})})
    assert loop.lint() == []


def test_lint_mentions_dead_ends() -> None:
    """A node without an edge out is named."""
    advice = make("START>a,b b>END").lint()
    assert len(advice) == 1
    assert "'a'" in advice[0]


def test_lint_mentions_directions_that_hang_on_labels() -> None:
    """Two branches that point at each other: the order of the labels alone decides which way is back."""
    graph = make("START>r", r={}, a={"max_visits": 2}, b={"max_visits": 2},
                 routers={"r": (len, {"a": "a", "b": "b"}), "a": (len, {"b": "b", "out": END}),
                          "b": (len, {"a": "a", "out": END})})
    assert any("'a'" in line and "'b'" in line for line in graph.lint())


def test_lint_mentions_branches_out_of_a_loop() -> None:
    """A branch that leaves a loop while it may still go round is named."""
    graph = make("START>h h>work h>log log>j j>END", h={"max_visits": 3},
                 routers={"work": (len, {"again": "h", "out": "j"})})
    assert any("'log'" in line for line in graph.lint())


def test_lint_returns_sentences() -> None:
    """Advice is a list of sentences, and asking for it runs nothing and changes nothing."""
    graph = make("START>a,b")
    before = graph.describe()
    assert all(isinstance(line, str) and " " in line for line in graph.lint())
    assert graph.describe() == before


# ---- sizes


@both
def test_a_chain_of_ten_thousand(schedule: str) -> None:
    """Nothing recurses, and the default max_steps lets it through."""
    graph = Graph("chain")
    for i in range(10_000):
        graph.add_node(f"n{i}", lambda state, i=i: {"last": i})
        graph.add_edge(f"n{i - 1}" if i else START, f"n{i}")
    state = within(120, lambda: run_graph(graph, {}, schedule=schedule))
    assert (state["last"], state.status, len(state.path)) == (9999, "done", 10_000)
    assert graph.describe()["edges"][-1]["src"] == "n9998"


@both
def test_a_loop_of_five_thousand(schedule: str) -> None:
    """A loop may go round as often as its cap allows."""
    graph = make("START>a", a={"fn": lambda state: {"n": state.get("n", 0) + 1}, "max_visits": 5001},
                 routers={"a": (lambda state: "again" if state["n"] < 5000 else "out", {"again": "a", "out": END})})
    state = within(120, lambda: run_graph(graph, {}, None, 10_000, schedule=schedule))
    assert (state["n"], state.status) == (5000, "done")


@both
def test_two_thousand_in_layers(schedule: str) -> None:
    """Forty layers of fifty, each joined to all of the next."""
    graph = Graph("layers")
    for layer in range(40):
        for i in range(50):
            graph.add_node(f"{layer}.{i}", lambda state: None)
            for j in range(50 if layer else 1):
                graph.add_edge(f"{layer - 1}.{j}" if layer else START, f"{layer}.{i}")
    state = within(120, lambda: run_graph(graph, {}, schedule=schedule))
    assert (len(state.path), state.status) == (2000, "done")


@both
def test_a_handler_for_four_thousand(schedule: str) -> None:
    """A handler that many nodes share waits for all of them, and runs once."""
    graph = Graph("shared")
    graph.add_node("h", lambda state: {"seen": list(state["errors"])})
    for i in range(4000):
        graph.add_node(f"n{i}", boom if i == 1000 else lambda state: None, on_error="h")
        graph.add_edge(f"n{i - 1}" if i and i != 1001 else START, f"n{i}")
    state = within(120, lambda: run_graph(graph, {}, schedule=schedule))
    assert (state["seen"], state.visits["h"], len(state.path)) == (["n1000"], 1, 4001)


def test_futures_are_all_that_an_executor_needs() -> None:
    """Any concurrent.futures.Executor will do, also one that runs a call when it is submitted."""
    class Here(concurrent.futures.Executor):
        calls = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            Here.calls += 1
            future: concurrent.futures.Future[Any] = concurrent.futures.Future()
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            return future

    state = within(20, lambda: run_graph(make("START>a,b a>c b>c"), {}, executor=Here()))
    assert (plain(state), Here.calls) == ({"a": True, "b": True, "c": True}, 3)
