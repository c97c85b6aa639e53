"""Everybody makes these mistakes. Each test makes one, shows the sentence it is answered with, and asserts what matters
in it: the thing by name, the rule, and the way out.

The sentence above each assertion is the whole answer as it stood when the test was written; only the listed words must
stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from helpers import make, nothing_left_unawaited, within

from minigraph import END, START, Graph, GraphError, GraphState, Node, StateCollision, run_graph
from minigraph import clock as clocks


def answer(message: str, *words: str) -> None:
    """Assert that a message has the words in it, and is fit to be read: short, on one line, no addresses."""
    for word in words:
        assert word in message, message
    assert "\n" not in message
    assert " at 0x" not in message
    assert len(message) < 320, message


def refused(mistake: Callable[[], Any], *words: str, error: type[BaseException] = GraphError) -> None:
    """Assert that the mistake raises, with these words."""
    with pytest.raises(error) as caught:
        within(20, mistake)
    answer(str(caught.value), *words)


def failed(graph: Graph, node: str, *words: str, state: dict[str, Any] | None = None, **options: Any) -> None:
    """Assert that in a run of the graph this node, and no other, fails with these words, under both schedules."""
    for schedule in ("waves", "ready"):
        options["schedule"] = schedule
        result: GraphState = within(20, lambda: run_graph(graph, state or {}, **options))
        assert result.status == "failed"
        assert list(result["errors"]) == [node]
        answer(result["errors"][node], *words)


def article() -> Graph:
    """Return a graph to make mistakes with."""
    return make("START>draft draft>review")


def no_label(state: Any) -> None:
    """A router that forgot its return."""


# ---- names


def test_a_typo_in_an_edge() -> None:
    """The end of an edge is misspelt."""
    # edge 'draft' -> 'reveiw': no such node 'reveiw'; did you mean 'review'?
    refused(lambda: article().add_edge("draft", "reveiw"),
            "'draft' -> 'reveiw'", "no such node", "did you mean 'review'?")


def test_an_edge_before_its_node() -> None:
    """The end of an edge has not been added yet."""
    # edge 'draft' -> 'publish': no such node 'publish'; add it first: the graph has 'draft', 'review'
    refused(lambda: article().add_edge("draft", "publish"), "'publish'", "add it first", "'draft'", "'review'")


def test_edges_before_all_nodes() -> None:
    """The edges are written before any node."""
    # edge 'START' -> 'draft': no such node 'draft'; add its nodes first
    refused(lambda: Graph().add_edge(START, "draft"), "'draft'", "add", "first")


def test_a_typo_in_a_routers_target() -> None:
    """A label's target is misspelt."""
    # router on 'review', label 'no': no such node 'darft'; did you mean 'draft'?
    refused(lambda: article().add_router("review", no_label, {"no": "darft"}),
            "'review'", "'no'", "did you mean 'draft'?")


def test_a_typo_in_on_error() -> None:
    """on_error is misspelt: found out when the graph is first used, and before any node runs."""
    ran: list[int] = []
    graph = make("START>draft help>END", draft={"fn": lambda state: ran.append(1), "on_error": "hepl"})
    # on_error of 'draft': no such node 'hepl'; did you mean 'help'?
    refused(lambda: run_graph(graph, {}), "on_error", "'draft'", "'hepl'", "did you mean 'help'?")
    assert ran == []


def test_start_in_small_letters() -> None:
    """"start" is not START."""
    # edge 'start' -> 'draft': no such node 'start'; did you mean 'START'?
    refused(lambda: article().add_edge("start", "draft"), "'start'", "START")
    refused(lambda: article().add_edge("draft", "end"), "'end'", "END")


def test_two_nodes_of_one_name() -> None:
    """A name is used twice."""
    # node 'draft': there is one of this name already; every node has a name of its own
    refused(lambda: article().add_node("draft", no_label), "'draft'", "already", "name of its own")


def test_a_node_called_start() -> None:
    """A reserved name is used."""
    # node 'START': this name is reserved; choose another
    refused(lambda: article().add_node("START", no_label), "'START'", "reserved", "choose another")


# ---- edges


def test_an_edge_to_start() -> None:
    """START is treated as a node to go back to."""
    # edge 'review' -> 'START': START only begins edges and END only ends them
    refused(lambda: article().add_edge("review", START), "'review' -> 'START'", "START only begins edges")
    refused(lambda: article().add_edge(END, "draft"), "'END' -> 'draft'", "END only ends them")


def test_several_targets_in_one_edge() -> None:
    """A list is given where one name belongs."""
    refused(lambda: article().add_edge(START, ["draft", "review"]), "['draft', 'review']")  # type: ignore[arg-type]


def test_a_function_where_its_name_belongs() -> None:
    """The function itself is given as the end of an edge."""
    # edge 'START' -> <built-in function len>: no such node <built-in function len>; add it first: the graph has
    # 'draft', 'review'
    refused(lambda: article().add_edge(START, len), "START", "no such node")  # type: ignore[arg-type]


def test_nothing_begins() -> None:
    """The edge from START is forgotten."""
    graph = make("draft>review", name="article")
    # graph 'article' has no edge out of START; begin it with add_edge(START, 'first node')
    refused(lambda: run_graph(graph, {}), "'article'", "START", "add_edge(START, ")


def test_a_node_that_nothing_leads_to() -> None:
    """A node is added and never joined to anything."""
    graph = make("START>draft draft>END", publish=no_label)
    # nothing leads from START to 'publish': add an edge to it, or leave 'publish' out
    refused(lambda: run_graph(graph, {}), "'publish'", "START", "add an edge", "leave 'publish' out")


def test_a_circle_of_static_edges() -> None:
    """A way back is drawn as an edge that always fires."""
    graph = make("START>draft draft>review review>draft")
    # the static edges 'draft' -> 'review' -> 'draft' make a cycle that nothing can stop: let a router decide whether to
    # go back
    refused(lambda: run_graph(graph, {}), "'draft'", "'review'", "static edges", "cycle", "router")


def test_a_loop_without_a_bound() -> None:
    """A router may go back, and nothing says how often."""
    graph = make("START>draft draft>review", routers={"review": (no_label, {"again": "draft", "good": END})})
    # the cycle 'draft' -> 'review' -> 'draft' has no bound: give one of its nodes max_visits=, as in
    # add_node('draft', ..., max_visits=3)
    refused(lambda: run_graph(graph, {}), "'draft'", "'review'", "cycle", "no bound", "max_visits=")


def test_a_retry_without_a_bound() -> None:
    """on_error goes back, and nothing says how often."""
    graph = make("START>draft draft>review", review={"on_error": "draft"})
    # the cycle 'draft' -> 'review' -> 'draft' has no bound: give one of its nodes max_visits=, as in
    # add_node('draft', ..., max_visits=3)
    refused(lambda: run_graph(graph, {}), "'draft'", "'review'", "cycle", "max_visits=")


def test_a_second_router() -> None:
    """A node gets a second router."""
    graph = make("START>review", routers={"review": (no_label, {"good": END})})
    # router on 'review': it has one already, and a node has one router; give that one more labels
    refused(lambda: graph.add_router("review", no_label, {"bad": END}), "'review'", "one router", "labels")


def test_a_router_beside_an_edge() -> None:
    """A node has a router and static edges, in either order."""
    # router on 'draft': it has static edges, and a node has a router or static edges, not both; remove
    # 'draft' -> 'review' or name it under a label
    refused(lambda: article().add_router("draft", no_label, {"good": END}),
            "'draft'", "not both", "'draft' -> 'review'")
    graph = make("START>draft", routers={"draft": (no_label, {"good": "review"})})
    # edge 'draft' -> 'review': 'draft' has a router, and a node has a router or static edges, not both; let a label of
    # the router name 'review' too
    refused(lambda: graph.add_edge("draft", "review"), "'draft' -> 'review'", "not both", "label")


# ---- routers


def test_a_label_that_is_not_there() -> None:
    """The router returns a label it has no target for."""
    graph = make("START>sort", routers={"sort": (lambda state: "Urgent", {"urgent": "call", "calm": "wait"})})
    # ValueError: the router on 'sort' returned 'Urgent', which is none of its labels; its labels are 'urgent', 'calm'
    failed(graph, "sort", "router on 'sort'", "'Urgent'", "its labels are 'urgent', 'calm'")


def test_a_router_that_forgets_its_return() -> None:
    """The router returns None."""
    graph = make("START>sort", routers={"sort": (no_label, {"urgent": "call", "calm": "wait"})})
    # TypeError: the router on 'sort' returned None, which is no label (did it forget its return?); its labels are
    # 'urgent', 'calm'
    failed(graph, "sort", "router on 'sort'", "None", "forget its return", "'urgent', 'calm'")


def test_a_router_that_returns_a_truth() -> None:
    """The router returns True where a label belongs."""
    graph = make("START>sort", routers={"sort": (lambda state: True, {"urgent": "call", "calm": "wait"})})
    # TypeError: the router on 'sort' returned True, which is no label; its labels are 'urgent', 'calm'
    failed(graph, "sort", "router on 'sort'", "True", "no label", "'urgent', 'calm'")


def test_true_and_false_as_labels() -> None:
    """The labels themselves are no strings."""
    # router on 'review': the label True is no string; labels are strings, as in 'True'
    refused(lambda: article().add_router("review", no_label, {True: "draft"}), "'review'", "True", "no string")  # type: ignore[dict-item]


def test_a_router_that_chooses_nothing() -> None:
    """The router returns an empty list to say "none of them"."""
    graph = make("START>sort", routers={"sort": (lambda state: [], {"urgent": "call", "calm": "wait"})})
    # ValueError: the router on 'sort' returned no label; its labels are 'urgent', 'calm'. To end the branch, let one
    # name END
    failed(graph, "sort", "router on 'sort'", "no label", "END")


def test_targets_without_labels() -> None:
    """The targets are a list."""
    # router on 'review': targets must say label -> node, as in {'yes': 'save', 'no': END}; got ['draft']
    refused(lambda: article().add_router("review", no_label, ["draft"]), "'review'", "label -> node", "['draft']")  # type: ignore[arg-type]


def test_a_label_without_a_target() -> None:
    """A label names None, or nothing, to say that the branch ends."""
    # router on 'review', label 'no': no such node None; add it first: the graph has 'draft', 'review'
    refused(lambda: article().add_router("review", no_label, {"no": None}), "'review'", "'no'", "None")  # type: ignore[dict-item]
    # router on 'review': label 'no' names no target; name END to end the branch
    refused(lambda: article().add_router("review", no_label, {"no": []}), "'review'", "'no'", "END")


def test_a_key_where_a_function_belongs() -> None:
    """The route is the name of a key, not a function that reads it."""
    # router on 'review': the route must be a function of the state, not 'score'
    refused(lambda: article().add_router("review", "score", {"no": "draft"}), "'review'", "function", "'score'")  # type: ignore[arg-type]


def test_an_async_router() -> None:
    """The router is an async function; nothing is left that was never awaited."""
    async def route(state: Any) -> str:
        return "urgent"

    graph = make("START>sort", routers={"sort": (route, {"urgent": "call", "calm": "wait"})})
    with nothing_left_unawaited():
        # TypeError: the router on 'sort' is async; a router is a plain function that reads the state
        failed(graph, "sort", "router on 'sort'", "async", "plain function")


# ---- nodes


def test_a_forgotten_return() -> None:
    """A node makes its keys and returns nothing; the node below is the one that notices."""
    def classify(state: Any) -> None:
        update = {"label": "question"}
        update["sure"] = True  # and then no return

    graph = make("START>classify classify>reply", classify=classify, reply=lambda state: {"text": state["label"]})
    # KeyError: no 'label' on the blackboard; it holds 'mail'. Did 'classify' forget its return?
    failed(graph, "reply", "no 'label'", "'mail'", "'classify'", "forget its return", state={"mail": "hi"})


def test_a_typo_in_a_key() -> None:
    """A node reads a key that is written differently."""
    graph = make("START>rate rate>reply", rate=lambda state: {"score": 1}, reply=lambda state: {"text": state["scroe"]})
    # KeyError: no 'scroe' on the blackboard; it holds 'mail', 'score'. Did you mean 'score'?
    failed(graph, "reply", "no 'scroe'", "'mail'", "'score'", "Did you mean 'score'?", state={"mail": "hi"})


def test_writing_to_the_state() -> None:
    """A node writes into the state, as one would into a dict."""
    def draft(state: Any) -> None:
        state["text"] = "hello"

    # TypeError: a node may not write to the blackboard (state['text'] = ...): return the keys it made instead, as in
    # return {'key': value}
    failed(make("START>draft", draft=draft), "draft", "may not write", "state['text']", "return", "{'key': value}")


def test_updating_the_state() -> None:
    """A node updates the state and returns it."""
    def draft(state: Any) -> Any:
        state.update(text="hello")
        return state

    # TypeError: a node may not write to the blackboard (state.update(...)): return the keys it made instead, as in
    # return {'key': value}
    failed(make("START>draft", draft=draft), "draft", "may not write", "update", "return")


def test_returning_the_whole_state() -> None:
    """A node returns everything, with its own keys added."""
    # ValueError: the key 'errors' is the engine's: return only the keys the node made, not the whole state, and raise
    # an exception to report an error
    failed(make("START>draft", draft=lambda state: {**state, "text": "hello"}), "draft", "'errors'", "only the keys")


def test_returning_the_value_alone() -> None:
    """A node returns a text, and no key for it."""
    # TypeError: a node returns a dict of the keys it made, or None, and not str: return {'some_key': 'hello'}
    failed(make("START>draft", draft=lambda state: "hello"), "draft", "dict", "str", "return {", "'hello'")


def test_a_set_for_a_dict() -> None:
    """A comma stands where a colon belongs."""
    # TypeError: a node returns a dict of the keys it made, or None, and not set: return {'some_key': {'text'}}
    failed(make("START>draft", draft=lambda state: {"text"}), "draft", "dict", "set")


def test_numbers_as_keys() -> None:
    """A node returns keys that are no strings."""
    # TypeError: the key 1 is no string: keys of the blackboard are strings, as in '1'
    failed(make("START>draft", draft=lambda state: {1: "hello"}), "draft", "key 1", "strings", "'1'")


def test_an_async_node() -> None:
    """A node is an async function; nothing is left that was never awaited."""
    async def draft(state: Any) -> dict[str, Any]:
        return {"text": "hello"}

    with nothing_left_unawaited():
        # TypeError: the function is async and returned a coroutine; nodes are plain functions that run in threads: call
        # your async code with asyncio.run(...) inside one
        failed(make("START>draft", draft=draft), "draft", "async", "asyncio.run(")


def test_calling_the_function() -> None:
    """The function is called where it should be handed over."""
    # node 'draft': its function must be callable, not {'text': 'hello'}; as in
    # add_node('draft', lambda state: {'key': 'value'})
    refused(lambda: Graph().add_node("draft", {"text": "hello"}), "'draft'", "callable", "{'text': 'hello'}")  # type: ignore[arg-type]


def test_a_name_without_a_function() -> None:
    """add_node gets no function."""
    # node 'draft': its function must be callable, not None; as in add_node('draft', lambda state: {'key': 'value'})
    refused(lambda: Graph().add_node("draft"), "'draft'", "callable", "add_node('draft', ")


def test_a_function_without_a_name() -> None:
    """add_node gets the function alone."""
    # a node's name must be a string that is not empty, not <built-in function len>
    refused(lambda: Graph().add_node(len), "name", "string")  # type: ignore[arg-type]


def test_a_function_that_takes_nothing() -> None:
    """The function has no parameter for the state."""
    # TypeError: draft() takes 0 positional arguments but 1 was given
    def draft() -> dict[str, Any]:
        return {}

    failed(make("START>draft", draft=draft), "draft", "TypeError", "draft() takes 0 positional arguments")


def test_a_cap_of_nought() -> None:
    """max_visits=0, or a text."""
    # node 'draft': max_visits=0 must be a whole number from 1, or None for no cap
    refused(lambda: Graph().add_node(Node("draft", len, max_visits=0)), "'draft'", "max_visits=0", "from 1")
    refused(lambda: Graph().add_node("draft", len, max_visits="2"), "'draft'", "max_visits='2'", "whole number")  # type: ignore[arg-type]


def test_an_unknown_kind() -> None:
    """The kind of a node is misspelt."""
    # node 'draft': kind 'lmm' is none of fn, tool, llm, agent, human, graph, map
    refused(lambda: Graph().add_node("draft", len, kind="lmm"), "'draft'", "'lmm'", "llm")


# ---- the blackboard


def test_two_branches_write_one_key() -> None:
    """Two agents write their answers into the same key."""
    graph = make("START>poet,critic", poet=lambda state: {"answer": 1}, critic=lambda state: {"answer": 2})
    # nodes 'poet' and 'critic' both wrote 'answer', and neither comes after the other: give each a key of its own and
    # let a node below both put them together
    refused(lambda: run_graph(graph, {}), "'poet'", "'critic'", "'answer'", "key of its own", error=StateCollision)


def test_reading_what_a_neighbour_writes() -> None:
    """A node reads a key of a branch beside it: with "ready", or under strict, it is told."""
    graph = make("START>news,wait wait>write", news=lambda state: {"headline": "!"}, wait=lambda state: clocks.sleep(1),
                 write=lambda state: {"text": state["headline"]})
    for options in ({"schedule": "ready"}, {"strict": True}):
        with clocks.virtual_time():
            state = within(20, lambda options=options: run_graph(graph, {}, **options))
        # KeyError: no 'headline' on the blackboard; it holds nothing. 'news' writes 'headline', but beside 'write', not
        # before it: lead an edge from 'news' to 'write', or do not read 'headline' there.
        answer(state["errors"]["write"], "'headline'", "'news'", "beside 'write'", "edge from 'news' to 'write'")


def test_appending_in_place() -> None:
    """A node appends to a list that others read: strict finds it."""
    graph = make("START>add", add=lambda state: state["messages"].append("hi"))
    # TypeError: the node changed 'messages' in place, where others may be reading it: copy it, change the copy and
    # return {'messages': ...}
    failed(graph, "add", "'messages'", "in place", "copy", "return {'messages': ", state={"messages": []}, strict=True)


def test_writing_to_the_errors() -> None:
    """A node reports an error by writing it down."""
    def draft(state: Any) -> None:
        state["errors"]["draft"] = "no idea"

    # TypeError: a node may not write to the errors: raise an exception instead, and the engine notes it
    failed(make("START>draft", draft=draft), "draft", "errors", "raise")


# ---- running


def test_a_misspelt_schedule() -> None:
    """There are two schedules."""
    # schedule='wave': there are 'waves' and 'ready'
    refused(lambda: run_graph(article(), {}, schedule="wave"), "'wave'", "'waves'", "'ready'")


def test_state_and_graph_swapped() -> None:
    """The state comes first, or the class instead of a graph, or no state at all."""
    # run_graph runs a Graph, not {}
    refused(lambda: run_graph({}, article()), "Graph", "{}")  # type: ignore[arg-type]
    refused(lambda: run_graph(Graph, {}), "Graph", "class")  # type: ignore[arg-type]
    # run_graph(graph, state): the state is a dict to begin with, {} if empty; got 'hello'
    refused(lambda: run_graph(article(), "hello"), "state", "dict", "'hello'")  # type: ignore[arg-type]
    refused(lambda: run_graph(article(), None), "state", "dict", "None")  # type: ignore[arg-type]


def test_an_observer_that_cannot_be_called() -> None:
    """max_steps, or a file name, stands where the observer belongs."""
    refused(lambda: run_graph(article(), {}, 10), "observer", "10")  # type: ignore[arg-type]
    refused(lambda: run_graph(article(), {}, "trace.jsonl"), "observer", "'trace.jsonl'")  # type: ignore[arg-type]


def test_a_loop_that_runs_out_of_steps() -> None:
    """A generous cap meets the default limit of the run."""
    graph = make("START>draft draft>review", draft={"max_visits": 99},
                 routers={"review": (lambda state: "again", {"again": "draft", "good": END})})
    state = within(20, lambda: run_graph(graph, {}))
    assert state.status == "max_steps"
    # max_steps=25 reached: 'review' did not run
    answer(state["errors"]["engine"], "max_steps=25 reached", "'review'")


def test_a_loop_that_meets_its_cap() -> None:
    """The cap ends the loop, and nothing takes over."""
    graph = make("START>draft", draft={"max_visits": 2}, routers={"draft": (lambda state: "again", {"again": "draft"})})
    # max_visits=2 reached
    failed(graph, "draft", "max_visits=2 reached")


def test_virtual_time_with_a_pool_of_ones_own() -> None:
    """Virtual time cannot see into another executor."""
    def mistake() -> None:
        with clocks.virtual_time(), ThreadPoolExecutor(1) as pool:
            run_graph(article(), {}, executor=pool)

    # virtual time needs the run's own pool: it cannot know when another executor is idle
    refused(mistake, "virtual time", "pool", error=ValueError)


def test_sleeping_backwards() -> None:
    """A delay is computed, and comes out negative."""
    # sleep(-1): seconds must be 0 or more
    refused(lambda: clocks.sleep(-1), "-1", "0 or more", error=ValueError)
    # ValueError: sleep(-2): seconds must be 0 or more
    failed(make("START>draft", draft=lambda state: clocks.sleep(-2)), "draft", "ValueError", "sleep(-2)")


def test_an_observer_with_a_bug(caplog: pytest.LogCaptureFixture) -> None:
    """The observer raises: the log says so, with the traceback, and the run goes on."""
    def observer(kind: str, event: dict[str, Any]) -> None:
        print(event["duration"])

    with caplog.at_level(logging.WARNING, logger="minigraph"):
        assert run_graph(article(), {}, observer).status == "done"
    # the observer raised; the run goes on
    answer(caplog.records[0].getMessage(), "observer", "raised")
    assert "KeyError: 'duration'" in caplog.text


def test_names_and_texts_come_through_whole() -> None:
    """Quotes, braces, markup, newlines, emoji and control characters in a name are shown so that one sees them."""
    for name in ("it's", 'say "hi"', "{x}", "<b>&", "a\nb", "naïve ☃ 🎉", "tab\there", "bell\a", "%s %(x)s", "\\"):
        graph = make("START>a")
        graph.add_node(name, lambda state, name=name: {name: name})
        graph.add_edge("a", name)
        with pytest.raises(GraphError) as caught:
            graph.add_node(name, len)
        answer(str(caught.value), repr(name))
        state = run_graph(graph, {})
        assert (state.status, state[name], state.visits[name]) == ("done", name, 1)
        with pytest.raises(GraphError) as caught:
            graph.add_edge(name, name + "?")
        answer(str(caught.value), repr(name), repr(name + "?"))
