"""Node factories, routers and wrappers: what they return, what they refuse, and in which words."""

import json
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest
from helpers import within

from minigraph import END, START, Graph, Node, emit, run_graph
from minigraph.clock import now, sleep, virtual_time
from minigraph.models import ModelError, Reply, ScriptedModel, ToolCall
from minigraph.nodes import band_router, fallback, key_router, llm_node, render, retry, timeout, tool_node
from minigraph.trace import Trace


def run(node, state=(), **kwargs):
    """(the final state, the trace) of a graph of this one node, in virtual time."""
    trace, graph = Trace(), Graph("one").add_node(node).add_edge(START, node.name)
    with virtual_time():
        return within(20, lambda: run_graph(graph, dict(state), trace, **kwargs)), trace


def add(a, b):
    return a + b


def split(text):
    first, _, rest = text.partition(" ")
    return {"first": first, "rest": rest}


# ---- tool_node


@pytest.mark.parametrize("fn, in_keys, out_key, writes", [
    (add, ["one", "two"], "sum", {"sum": 3}),
    (pow, ("two", "three"), "power", {"power": 8}),  # positional, in the order of in_keys
    (pow, ("three", "two"), "power", {"power": 9}),
    (len, "text", "length", {"length": 11}),  # a string is one key, not its letters
    (list, [], "empty", {"empty": []}),
    (split, "text", None, {"first": "hello", "rest": "world"}),  # without out_key fn returns the mapping
])
def test_a_tool_node_calls_a_function_with_the_values_of_its_keys(fn, in_keys, out_key, writes):
    """Values go in by position; the result goes to out_key, or is the mapping to merge."""
    given = {"one": 1, "two": 2, "three": 3, "text": "hello world"}
    state, _ = run(tool_node("tool", fn, in_keys, out_key), given)
    assert state == {**given, **writes, "errors": {}}


def test_factories_make_nodes_of_their_kind():
    """kind, max_visits and on_error are the node's."""
    node = tool_node("t", len, "text", "n", max_visits=3, on_error="save")
    assert (node.name, node.kind, node.max_visits, node.on_error) == ("t", "tool", 3, "save")
    node = llm_node("l", "hi", "out", ScriptedModel(["x"]), max_visits=2, on_error=END)
    assert (node.name, node.kind, node.max_visits, node.on_error) == ("l", "llm", 2, "END")
    assert all(isinstance(node, Node) for node in (node, tool_node("t", len, "text", "n")))


@pytest.mark.parametrize("args, says", [
    ((add, "one", "sum"), r"tool_node 't': add cannot be called with the values of \('one',\): missing a required arg"),
    ((add, ["a", "b", "c"], "sum"), r"tool_node 't': add cannot be called .*: too many positional arguments"),
    ((5, "one", "sum"), r"tool_node 't': 5 cannot be called with .*: 5 is not a callable object"),
    ((len, [1], "n"), r"tool_node 't': keys of the blackboard are strings; got \[1\] and 'n'"),
    ((len, "a", 2), r"tool_node 't': keys of the blackboard are strings; got 'a' and 2"),
])
def test_a_tool_node_that_cannot_be_called_is_refused_when_it_is_built(args, says):
    """A TypeError names the node, the function and the keys."""
    with pytest.raises(TypeError, match=says):
        tool_node("t", *args)


def test_a_builtin_that_tells_no_signature_is_taken_on_trust():
    """`max` does not say what it takes; the call will."""
    state, _ = run(tool_node("t", max, ["a", "b"], "most"), {"a": 1, "b": 2})
    assert state["most"] == 2


def test_a_tool_node_names_a_missing_key_and_who_forgot_it():
    """The failure lists the keys there are, and the engine adds who returned nothing."""
    graph = Graph().add_node("classify", lambda state: None).add_node(tool_node("t", len, "label", "n"))
    graph.add_edge(START, "classify").add_edge("classify", "t")
    assert run_graph(graph, {"text": "hi"}).errors == {
        "t": "KeyError: no 'label' on the blackboard; it holds 'text'. Did 'classify' forget its return?"}
    with pytest.raises(KeyError, match="no 'label' on the blackboard; it holds 'text'."):
        tool_node("t", len, "label", "n").fn({"text": "hi"})


def test_a_tool_node_hands_a_coroutine_to_the_engine():
    """An async function is a failure that says how to call it, with out_key or without."""
    async def fetch(text):
        return text

    for out_key in ("page", None):
        state, _ = run(tool_node("t", fetch, "text", out_key), {"text": "hi"})
        assert "asyncio.run" in state.errors["t"]


# ---- llm_node


def test_an_llm_node_makes_one_call_without_tools():
    """The model gets messages and nothing else: even a model that takes no tools will do."""
    model = ScriptedModel(["A haiku."])
    state, _ = run(llm_node("write", "Write about {topic}.", "text", model, system="You are {who}."),
                   {"topic": "{secret} & <tea>", "who": "brief"})
    assert state["text"] == "A haiku."
    ((messages, tools),) = model.calls
    assert [(message.role, message.content) for message in messages] == [
        ("system", "You are brief."), ("user", "Write about {secret} & <tea>.")]
    assert tools is None
    only = llm_node("write", "hi", "text", lambda messages: Reply(messages[-1].content))
    assert run(only)[0]["text"] == "hi"


def test_an_llm_prompt_may_be_a_function_of_the_blackboard():
    """Prompt and system alike; without a system prompt there is one message."""
    model = ScriptedModel(["ok", "ok"])
    node = llm_node("a", lambda state: "{" + state["x"], "out", model, system=lambda state: "as " + state["x"])
    run(node, {"x": "1"})
    run(llm_node("a", "plain", "out", model))
    assert [[message.content for message in asked.messages] for asked in model.calls] == [["as 1", "{1"], ["plain"]]


def test_an_llm_call_is_an_event_with_its_latency():
    """`llm` is sent when the call ends: name, ms, stop_reason, usage, error; t is its end."""
    model = ScriptedModel([Reply("cut", stop_reason="max_tokens", usage={"output_tokens": 1})], latency=1.5, name="big")
    state, trace = run(llm_node("write", "hi", "text", model))
    assert trace.of("llm") == [{"kind": "llm", "t": 1.5, "workflow": "one", "node": "write", "name": "big",
                                "ms": 1500, "stop_reason": "max_tokens", "usage": {"output_tokens": 1}, "error": None}]
    assert state["text"] == "cut"  # a reply that was cut off is kept


def test_a_model_that_fails_fails_the_node():
    """The ModelError is the node's failure, and stands in the event."""
    model = ScriptedModel([ModelError("the model is overloaded; try again in a minute")], latency=2)
    state, trace = run(llm_node("write", "hi", "text", model))
    assert state.errors == {"write": "ModelError: the model is overloaded; try again in a minute"}
    (event,) = trace.of("llm")
    assert (event["t"], event["ms"], event["stop_reason"], event["error"]) == (
        2, 2000, None, "ModelError: the model is overloaded; try again in a minute")


def test_a_model_that_returns_no_reply_fails_the_node():
    """A plain string from a model is an error that says what a model returns."""
    state, _ = run(llm_node("write", "hi", "text", lambda messages: "hi"))
    assert state.errors == {"write": "ModelError: model '<lambda>' returned a str; a model returns Reply(text)"}


def test_a_reply_with_tool_calls_fails_an_llm_node():
    """An llm_node has no tools, and says which node has."""
    model = ScriptedModel([Reply("", (ToolCall("1", "send_mail", {}),))])
    state, _ = run(llm_node("write", "hi", "text", model))
    assert state.errors == {"write": "ModelError: model 'stub' asked for the tool 'send_mail', and an llm_node has no "
                                     "tools; an agent_node has"}
    assert "text" not in state


@pytest.mark.parametrize("prompt", ["{a.b}", "{a[0]}", "{0}", "{}", "{x!r}", "{x:>10}", "{", "}"])
def test_an_llm_node_refuses_a_malformed_template_when_it_is_built(prompt):
    """In the prompt and in the system prompt."""
    with pytest.raises(ValueError, match="template: "):
        llm_node("a", prompt, "out", ScriptedModel(["x"]))
    with pytest.raises(ValueError, match="template: "):
        llm_node("a", "fine", "out", ScriptedModel(["x"]), system=prompt)


def test_an_llm_node_with_a_missing_key_fails_before_it_asks():
    """The failure lists the keys there are; the model is not called."""
    model = ScriptedModel(["x"])
    state, _ = run(llm_node("a", "about {topic}", "out", model), {"topics": 1})
    assert state.errors["a"].startswith("KeyError: no 'topic' on the blackboard; it holds 'topics'.")
    assert model.calls == []


def test_an_llm_node_needs_a_model():
    """What cannot be called is refused when the node is built."""
    with pytest.raises(TypeError, match="llm_node 'a': a model is a callable .* not 'gpt'"):
        llm_node("a", "hi", "out", "gpt")


def test_render_is_public():
    """`from minigraph.nodes import render` fills in a template as llm_node does."""
    assert render("{{{a}}}", {"a": "{b}"}) == "{{b}}"


# ---- parse


def shout(text):
    if not text.isupper():
        raise ValueError("say it louder")
    return text + "!"


def parsed(reply, parse):
    state, _ = run(llm_node("ask", "?", "out", ScriptedModel([reply]), parse=parse))
    return state.errors["ask"] if state.errors else state["out"]


@pytest.mark.parametrize("reply, parse, value", [
    (" 0.85\n", float, 0.85),
    ("1e-3", float, 0.001),
    ("-7", int, -7),
    ('{"score": 1, "why": ["{a}"]}', json.loads, {"score": 1, "why": ["{a}"]}),
    (" HOT ", ["Hot", "Cold"], "Hot"),  # as declared
    ("STRASSE", ("straße",), "straße"),
    ("b", {"a", "b"}, "b"),
    ("HEY", shout, "HEY!"),
    (" as it is ", None, " as it is "),
])
def test_a_reply_is_parsed(reply, parse, value):
    """float, int, json.loads, a list, tuple or set of labels, a function, or nothing."""
    found = parsed(reply, parse)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("reply, parse, says", [
    ("about 0.7", float, "the reply 'about 0.7' is not a plain number"),
    ("nan", float, "the reply 'nan' is not a plain number"),
    ("-Infinity", float, "the reply '-Infinity' is not a plain number"),
    ("1e999", float, "the reply '1e999' is not a plain number"),
    ("0.7", int, "the reply '0.7' is not a whole number"),
    ("Sure! {}", json.loads, "the reply 'Sure! {}' is not JSON"),
    ("[NaN]", json.loads, "the reply '[NaN]' is not JSON"),
    ("warm", ["hot", "cold"], "the reply 'warm' is not one of 'hot', 'cold'"),
    ("hot!", {"hot", "cold"}, "the reply 'hot!' is not one of 'cold', 'hot'"),
    ("", ["hot"], "the reply '' is not one of 'hot'"),
    ("hey", shout, "the reply 'hey' is not what shout takes (ValueError: say it louder)"),
    ("x" * 500, float, f"the reply '{'x' * 77}...' is not a plain number"),
])
def test_a_reply_that_does_not_parse_fails_the_node(reply, parse, says):
    """The ValueError quotes the reply, shortened, and says what was wanted and where to ask for it."""
    assert parsed(reply, parse) == f"ValueError: {says}; the prompt should ask for nothing else"


@pytest.mark.parametrize("parse, error, says", [
    (bool, TypeError, r"parse=bool takes every reply for True; parse=\['yes', 'no'\] returns one of the two"),
    ("float", TypeError, "parse='float': parse is a function of the reply, or a list of labels, which are strings"),
    ([1, 2], TypeError, r"parse=\[1, 2\]: parse is a function of the reply, or a list of labels"),
    ([], ValueError, r"parse=\[\]: there must be labels, and no two alike but for case and space"),
    (["Hot", "hot "], ValueError, "there must be labels, and no two alike but for case and space"),
])
def test_a_parse_that_cannot_be_meant_is_refused_when_the_node_is_built(parse, error, says):
    """Wrong labels and the trap bool("no") are caught before any model is paid."""
    with pytest.raises(error, match=says):
        llm_node("ask", "?", "out", ScriptedModel(["x"]), parse=parse)


# ---- routers


@pytest.mark.parametrize("state, default, label", [
    ({"intent": "task"}, None, "task"),
    ({"intent": "task"}, "chat", "task"),
    ({"intent": None}, "chat", "chat"),
    ({}, "chat", "chat"),
    ({"intent": ""}, "chat", ""),  # only a missing key and None are nothing
    ({"intent": ["task", "chat"]}, None, ["task", "chat"]),
])
def test_a_key_router_reads_its_label(state, default, label):
    """state[key], or the default if that is missing or None."""
    assert key_router("intent", default)(state) == label


def test_a_key_router_without_a_label_says_what_is_missing():
    """A KeyError names the key: missing, with the keys there are, or None, with the way out."""
    with pytest.raises(KeyError, match="no 'intent' on the blackboard; it holds 'text'."):
        key_router("intent")({"text": "hi"})
    with pytest.raises(KeyError) as caught:
        key_router("intent")({"intent": None})
    assert str(caught.value) == ("state['intent'] is None, and key_router(key='intent', default=None) has no default= "
                                 "to go to instead")


BANDS = {"warm": 0.5, "hot": 0.8}


@pytest.mark.parametrize("score, label", [
    (1, "hot"), (0.8, "hot"), (0.7999999, "warm"), (0.5, "warm"), (0.49, "cold"), (-3, "cold"),
    (float("inf"), "hot"), (float("-inf"), "cold")])
def test_a_band_router_picks_the_highest_band_that_is_reached(score, label):
    """A threshold belongs to its band, in whatever order the bands are declared."""
    assert band_router("score", BANDS, below="cold")({"score": score}) == label


@pytest.mark.parametrize("value", ["0.9", None, True, [0.9], float("nan"), 1j])
def test_a_band_router_refuses_what_is_no_number(value):
    """A string, a bool or nan is a TypeError that names the key and the value."""
    with pytest.raises(TypeError) as caught:
        band_router("score", BANDS, below="cold")({"score": value})
    assert str(caught.value) == (f"state['score'] is {value!r}, and bands are for numbers; "
                                 "does the node that wrote it say parse=float?")


def test_a_band_router_names_a_missing_key():
    """A KeyError lists the keys there are."""
    with pytest.raises(KeyError, match="no 'score' on the blackboard; it holds 'text'."):
        band_router("score", BANDS, below="cold")({"text": "hi"})


@pytest.mark.parametrize("bands, below, says", [
    ({}, "cold", "band_router('score'): bands say label -> lowest number, as in {'hot': 0.8}; got none"),
    ({"hot": "0.8"}, "cold", "bands say label -> lowest number, as in {'hot': 0.8}; got 'hot': '0.8'"),
    ({"hot": True, "b": float("nan")}, "cold", "got 'hot': True, 'b': nan"),
    ({"hot": 0.5, "warm": 0.5}, "cold", "two bands begin at the same number: {'hot': 0.5, 'warm': 0.5}"),
    ({"hot": 0.5}, "hot", "below='hot' is a band already; what lies below all bands needs a label of its own"),
])
def test_bands_are_checked_when_the_router_is_built(bands, below, says):
    """Thresholds are numbers, there is at least one, no two are equal, and `below` is a label of its own."""
    with pytest.raises(ValueError, match=re.escape(says)):
        band_router("score", bands, below=below)


def test_routers_show_and_pickle_themselves():
    """A repr says how it was made, bands from the highest; labels lists what it can return."""
    router = band_router("score", BANDS, below="cold")
    assert repr(router) == "band_router(key='score', bands={'hot': 0.8, 'warm': 0.5}, below='cold')"
    assert router.labels == ["hot", "warm", "cold"]
    assert pickle.loads(pickle.dumps(router)) == router
    assert repr(key_router("intent", default="chat")) == "key_router(key='intent', default='chat')"
    assert pickle.loads(pickle.dumps(key_router("intent"))) == key_router("intent")
    assert BANDS == {"warm": 0.5, "hot": 0.8}


def test_routers_route():
    """In a graph a router's error is a failure of its node, and its label leads on."""
    def routed(score):
        graph = Graph().add_node("score", lambda state: {"score": score}).add_node("hot", lambda state: None)
        graph.add_node("rest", lambda state: None).add_edge(START, "score")
        bands = band_router("score", BANDS, below="cold")
        graph.add_router("score", bands, {"hot": "hot", "warm": "rest", "cold": END})
        return run_graph(graph, {})

    assert [routed(score).path for score in (0.8, 0.5, 0.1)] == [["score", "hot"], ["score", "rest"], ["score"]]
    assert routed("high").errors["score"].startswith("TypeError: state['score'] is 'high', and bands are for numbers")


# ---- retry


def failing(*outcomes):
    """A node function that goes through these outcomes, one a call: an exception is raised, a dict returned."""
    left = list(outcomes)

    def step(state):
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return step


def test_retry_calls_again_within_one_visit():
    """Three calls, one visit: waits of 1 s and 3 s on the run's clock, and an event before each."""
    step = failing(OSError("first"), OSError("second"), {"x": 1})
    state, trace = run(Node("fetch", retry(step, attempts=3, delay=1, backoff=3)))
    assert (state["x"], state.visits, state.errors) == (1, {"fetch": 1}, {})
    assert [{key: event[key] for key in ("t", "attempt", "attempts", "error", "delay", "node")}
            for event in trace.of("retry")] == [
        {"t": 0, "attempt": 1, "attempts": 3, "error": "OSError: first", "delay": 1, "node": "fetch"},
        {"t": 1, "attempt": 2, "attempts": 3, "error": "OSError: second", "delay": 3, "node": "fetch"}]
    (visit,) = trace.visits()
    assert (visit.seconds, visit.retries) == (4, 2)


def test_retry_raises_the_last_error_as_it_is():
    """After the last attempt there is no wait and no event."""
    last = OSError("third")
    state, trace = run(Node("fetch", retry(failing(OSError("first"), OSError("second"), last), delay=1)))
    assert state.exceptions["fetch"] is last
    assert (len(trace.of("retry")), trace.visits()[0].seconds) == (2, 3)


def test_retry_by_default_tries_three_times_at_once():
    """attempts=3, delay=0."""
    state, trace = run(Node("fetch", retry(failing(OSError(), OSError(), {"x": 1}))))
    assert (state["x"], trace.seconds) == (1, 0)


def test_retry_only_retries_what_it_is_told_to():
    """Another error, and a person's interrupt, come through at once."""
    for on in (OSError, (OSError, ValueError)):
        state, trace = run(Node("fetch", retry(failing(KeyError("other"), {"x": 1}), on=on)))
        assert (list(state.errors), trace.of("retry")) == (["fetch"], [])
    with pytest.raises(KeyboardInterrupt):
        retry(failing(KeyboardInterrupt(), {"x": 1}))({})


@pytest.mark.parametrize("kwargs, error, says", [
    ({"attempts": 0}, ValueError, "retry: attempts=0 must be a whole number from 1: it counts the calls"),
    ({"attempts": 2.5}, ValueError, "retry: attempts=2.5 must be"),
    ({"attempts": True}, ValueError, "retry: attempts=True must be"),
    ({"delay": -1}, ValueError, "retry: delay=-1 must be a number from 0"),
    ({"delay": "1"}, ValueError, "retry: delay='1' must be a number from 0"),
    ({"backoff": 0.5}, ValueError, "retry: backoff=0.5 must be a number from 1"),
    ({"backoff": float("inf")}, ValueError, "retry: backoff=inf must be a number from 1"),
    ({"on": BaseException}, TypeError, "must be a type of Exception, or a tuple of them; KeyboardInterrupt is none"),
    ({"on": (OSError, KeyboardInterrupt)}, TypeError, "must be a type of Exception"),
    ({"on": ()}, TypeError, r"retry: on=\(\) must be"),
    ({"on": OSError("x")}, TypeError, "must be a type of Exception"),
])
def test_retry_validates_its_arguments(kwargs, error, says):
    """What cannot be meant is refused when the wrapper is made."""
    with pytest.raises(error, match=says):
        retry(len, **kwargs)


# ---- timeout


def slow(seconds, **writes):
    """A node function that takes so many seconds, and says so when it begins and when it ends."""
    def work(state):
        emit("text", {"piece": "begin"})
        sleep(seconds)
        emit("text", {"piece": "end"})
        return writes

    return work


def end_of(trace):
    """When the one visit ended."""
    return trace.of("node_end")[0]["t"]


def test_a_timeout_stops_waiting():
    """After 2 s the node fails, in words that claim no more than happened."""
    state, trace = run(Node("fetch", timeout(slow(5, x=1), 2)))
    assert state.errors == {"fetch": "TimeoutError: `work` took longer than 2.0 s; it was left running, not stopped"}
    assert "x" not in state
    assert (end_of(trace), trace.seconds) == (2, 2)  # the run does not wait for what was left running


@pytest.mark.parametrize("seconds", [0, 1, 2])
def test_a_call_that_ends_in_time_is_not_touched(seconds):
    """Also one that takes all the time it has: it took no longer."""
    for _ in range(20):
        state, trace = run(Node("fetch", timeout(slow(seconds, x=1), 2)))
        assert (state["x"], end_of(trace)) == (1, seconds)
        assert [event["piece"] for event in trace.of("text")] == ["begin", "end"]


def test_what_an_abandoned_call_emits_is_dropped():
    """Also while its visit still goes on: the second call's words are not mixed with the first's."""
    state, trace = run(Node("fetch", fallback(timeout(slow(5), 2), slow(9, x=1))))
    assert state["x"] == 1
    assert [(event["t"], event["piece"]) for event in trace.of("text")] == [(0, "begin"), (2, "begin"), (11, "end")]


def test_an_abandoned_call_inside_another_is_dropped_too():
    """The outer timeout also silences what the inner one still waits for."""
    state, trace = run(Node("fetch", fallback(timeout(timeout(slow(3), 8), 1), slow(9, x=1))))
    assert [event["t"] for event in trace.of("text")] == [0, 1, 10]


def test_a_timeout_passes_on_what_its_call_raises():
    """An exception of the call, SystemExit included, is raised where the call was waited for."""
    state, _ = run(Node("fetch", timeout(failing(ValueError("no")), 2)))
    assert state.errors == {"fetch": "ValueError: no"}
    with pytest.raises(SystemExit):
        timeout(failing(SystemExit()), 2)({})


def test_timeouts_run_side_by_side():
    """Six nodes of 0 to 5 s under timeouts of 3 s: the same result with any number of workers, in both schedules."""
    graph = Graph()
    for seconds in range(6):
        graph.add_node(f"n{seconds}", timeout(slow(seconds, **{f"k{seconds}": 1}), 3)).add_edge(START, f"n{seconds}")
    for schedule in ("waves", "ready"):
        for workers in (1, 2, 256):
            with virtual_time():
                state = within(20, lambda s=schedule, w=workers: run_graph(graph, {}, schedule=s, max_workers=w))
            assert (list(state.errors), sorted(state)) == (["n4", "n5"], ["errors", "k0", "k1", "k2", "k3"])


def test_a_timeout_in_real_time():
    """Outside a run, on the real clock, a call that never ends is left behind at once."""
    from threading import Event

    never = Event()
    with pytest.raises(TimeoutError, match="`wait` took longer than 0.01 s; it was left running, not stopped"):
        timeout(never.wait, 0.01)()
    never.set()


def test_a_timeout_outside_a_run_in_virtual_time():
    """The caller need not be in a graph."""
    with virtual_time():
        with pytest.raises(TimeoutError):
            within(20, lambda: timeout(slow(5), 2)({}))
        assert now() == 2
        assert within(20, lambda: timeout(slow(5, x=1), 6)({})) == {"x": 1}


def test_a_timeout_without_threads_fails_and_does_not_hang(monkeypatch):
    """Where no thread can be started the node fails; virtual time does not wait for the call that never began."""
    def no_threads(self):
        raise RuntimeError("can't start new thread")

    graph = Graph().add_node("fetch", timeout(len, 2), on_error="next").add_node("next", slow(3))
    graph.add_edge(START, "fetch").add_edge("fetch", "next")

    def with_no_threads():
        monkeypatch.setattr("threading.Thread.start", no_threads)
        try:
            return run_graph(graph, {}), now()
        finally:
            monkeypatch.undo()

    with virtual_time():
        state, seconds = within(20, with_no_threads)
    assert (state.errors, seconds) == ({"fetch": "RuntimeError: can't start new thread"}, 3)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "2", None, True])
def test_a_timeout_is_a_number_of_seconds(seconds):
    """Anything else is refused when the wrapper is made."""
    with pytest.raises(ValueError, match="timeout: seconds=.* must be a number from 0"):
        timeout(len, seconds)


# ---- fallback


def test_fallback_tries_each_in_turn():
    """The first result is the result; each step down is an event."""
    live, cached, guess = failing(OSError("down")), failing(ValueError("old")), failing({"x": 3})
    state, trace = run(Node("weather", fallback(live, cached, guess)))
    assert (state["x"], state.errors) == (3, {})
    assert [(event["failed"], event["error"]) for event in trace.of("fallback")] == [
        ("step", "OSError: down"), ("step", "ValueError: old")]


def test_fallback_names_all_that_failed():
    """The error has the last one's type, where a text can make one, and the last one is its cause."""
    last = ConnectionError("also down")

    def live(state):
        raise OSError("down")

    def cached(state):
        raise last

    with pytest.raises(ConnectionError) as caught:
        fallback(live, cached)({})
    assert str(caught.value) == "all 2 failed: `live` raised OSError: down; `cached` raised ConnectionError: also down"
    assert caught.value.__cause__ is last and str(last) == "also down"

    def undecodable(state):
        b"\xff".decode("utf-8")

    with pytest.raises(RuntimeError, match="all 2 failed: `live` raised .*; `undecodable` raised UnicodeDecodeError"):
        fallback(live, undecodable)({})


def test_fallback_is_for_failures_not_for_people():
    """KeyboardInterrupt is nobody's failure."""
    with pytest.raises(KeyboardInterrupt):
        fallback(failing(KeyboardInterrupt()), failing({"x": 1}))({})


def test_fallback_needs_something_to_fall_back_on():
    """One function is no choice."""
    with pytest.raises(TypeError, match="fallback: there is nothing to fall back on; name a second function after"):
        fallback(len)


# ---- all three


def test_wrappers_compose():
    """retry(timeout(fn, 2), 3): two slow calls are given up after 2 s each, the third is quick."""
    began = []

    def flaky(state):
        began.append(now())
        sleep(10 if len(began) < 3 else 1)
        return {"calls": len(began)}

    state, trace = run(Node("fetch", retry(timeout(flaky, 2), 3, delay=1)))
    assert (state["calls"], began, end_of(trace)) == (3, [0, 3, 7], 8)


def test_wrappers_take_any_function():
    """Positional arguments of a tool, and the messages of a model, go through."""
    state, _ = run(tool_node("sum", retry(timeout(add, 2)), ["a", "b"], "sum"), {"a": 1, "b": 2})
    assert state["sum"] == 3
    model = ScriptedModel([ModelError("busy"), "hello"], latency=1)
    state, trace = run(llm_node("write", "hi", "text", retry(model, attempts=2)))
    assert (state["text"], trace.of("llm")[0]["name"], trace.of("llm")[0]["ms"]) == ("hello", "stub", 2000)


def test_wrappers_go_by_the_name_of_what_they_wrap():
    """__name__ and the signature are the function's; the repr says what is wrapped in what, without addresses."""
    wrapped = retry(timeout(add, 2), attempts=2)
    assert wrapped.__name__ == "add"
    assert fallback(add, len).__name__ == "add"
    assert repr(wrapped) == "retry(timeout(add, seconds=2), attempts=2, delay=0.0, backoff=2.0, on=Exception)"
    assert repr(fallback(wrapped, len)) == f"fallback({wrapped!r}, len)"
    assert repr(tool_node("sum", wrapped, ["a", "b"], "sum").fn) == f"<{wrapped!r}(a, b) -> sum>"
    assert repr(llm_node("l", "hi", "out", retry(ScriptedModel(["x"], name="small"))).fn) == "<ask small -> out>"
    with pytest.raises(TypeError, match="cannot be called with"):
        tool_node("sum", wrapped, ["a", "b", "c"], "sum")


@pytest.mark.parametrize("wrap", [retry, lambda fn: timeout(fn, 2), lambda fn: fallback(len, fn)])
def test_wrappers_wrap_functions(wrap):
    """A Node, or what is no function, is refused in words that say what to wrap."""
    with pytest.raises(TypeError, match=r"(retry|timeout|fallback) wraps a function, and 'n' is a Node: wrap what it "
                                        r"calls, the function or the model, as in tool_node\('n', "):
        wrap(tool_node("n", len, "text", "n"))
    with pytest.raises(TypeError, match=r"(retry|timeout|fallback) wraps a function, not 5"):
        wrap(5)


def test_a_wrapped_async_function_is_the_engines_business():
    """The coroutine passes through, and the failure says how to call async code."""
    async def fetch(state):
        return {}

    for wrapped in (retry(fetch), timeout(fetch, 2), fallback(fetch, fetch)):
        assert "asyncio.run" in run(Node("n", wrapped))[0].errors["n"]


# ---- other processes


MADE = [
    tool_node("t", add, ["a", "b"], "sum"),
    tool_node("t", retry(timeout(fallback(add, len), 5), 2), ["a", "b"], "sum"),
    llm_node("l", "{a} and {b}", "sum", ScriptedModel(["3"]), parse=int, system="count"),
    llm_node("l", "{a} and {b}", "sum", ScriptedModel(["3.0"]), parse=float),
    llm_node("l", "{a} and {b}", "sum", ScriptedModel([" 3 "]), parse=["3", "4"]),
    llm_node("l", "{a} and {b}", "sum", ScriptedModel(["3"]), parse=json.loads),
]


@pytest.mark.parametrize("node", MADE, ids=lambda node: repr(node.fn))
def test_node_functions_pickle(node):
    """A copy that went through pickle does the same."""
    copy = pickle.loads(pickle.dumps(node))
    assert copy.fn({"a": 1, "b": 2}) in ({"sum": 3}, {"sum": "3"})


def test_a_process_pool_runs_what_factories_make():
    """Events come back with the result."""
    trace, graph = Trace(), Graph()
    for number, node in enumerate(MADE[:3]):
        name = f"n{number}"
        graph.add_node(replace(node, name=name, fn=_Into(f"out{number}", node.fn))).add_edge(START, name)
    with ProcessPoolExecutor(1) as pool:
        state = within(60, lambda: run_graph(graph, {"a": 1, "b": 2}, trace, executor=pool))
    assert (state.errors, state["out0"], state["out1"], state["out2"]) == ({}, 3, 3, 3)
    assert [(event["node"], event["name"]) for event in trace.of("llm")] == [("n2", "stub")]


class _Into:
    """A node function whose result goes to another key."""

    def __init__(self, key, fn):
        self.key, self.fn = key, fn

    def __call__(self, state):
        return {self.key: self.fn(state)["sum"]}


def test_a_refusal_is_no_answer():
    """A model that refuses fails its node, in its own words, and nothing is written."""
    refuses = lambda messages, tools=None: Reply("I would rather not.", stop_reason="refusal")  # noqa: E731
    graph = Graph("g").add_node(llm_node("ask", "?", "answer", refuses)).add_edge(START, "ask")
    state = run_graph(graph, {})
    assert "answer" not in state
    assert state.errors["ask"].startswith("ModelError: model ")
    assert state.errors["ask"].endswith("refused to answer: I would rather not.")
    assert state.exceptions["ask"].kind == "refused"
