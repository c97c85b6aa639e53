"""The agent loop, its tools, and a loop as one node."""

import inspect
import json
import pickle
from contextlib import suppress
from typing import Literal, Optional

import pytest
from helpers import within

from minigraph import END, START, Graph, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.loop import LoopResult, Tool, ToolRegistry, agent_node, run_loop
from minigraph.models import Message, ModelError, Reply, ScriptedModel, ToolCall
from minigraph.nodes import retry, timeout
from minigraph.trace import Trace


def add(a: int, b: int = 0) -> int:
    """The sum of two numbers."""
    return a + b


def read(path: str) -> str:
    """A file's text."""
    return f"text of {path}"


def asks(*calls, text="", stop_reason="tool_use"):
    """A reply that asks for these tools: asks(("add", {"a": 1}), ...); the ids are c1, c2, ..."""
    made = [ToolCall(f"c{number}", name, arguments) for number, (name, arguments) in enumerate(calls, 1)]
    return Reply(text, tuple(made), stop_reason)


# ---- the loop


def test_a_loop_runs_tools_until_the_model_stops():
    """Each tool's result goes back under the id of its call, in the order of the calls."""
    model = ScriptedModel([asks(("add", {"a": 2, "b": 3}), ("read", {"path": "x"}), text="let me see"), "5, and x"])
    result = run_loop(model, [add, read], "What is 2 + 3?", system="Be brief.")
    assert (result.text, result.stop_reason, result.iterations) == ("5, and x", "end", 2)
    assert result.tool_calls == [ToolCall("c1", "add", {"a": 2, "b": 3}), ToolCall("c2", "read", {"path": "x"})]
    assert result.messages == [
        Message("system", "Be brief."), Message("user", "What is 2 + 3?"),
        Message("assistant", "let me see", tuple(result.tool_calls)),
        Message("tool", "5", tool_call_id="c1"), Message("tool", "text of x", tool_call_id="c2"),
        Message("assistant", "5, and x")]
    assert [asked.messages for asked in model.calls] == [result.messages[:2], result.messages[:5]]
    assert [[spec.name for spec in asked.tools] for asked in model.calls] == [["add", "read"]] * 2


def test_a_loop_without_tools_is_one_call():
    """tools=[] gives the model None."""
    model = ScriptedModel(["hello"])
    assert run_loop(model, [], "hi").iterations == 1
    assert model.calls[0].tools is None


def test_the_callers_messages_are_not_changed():
    """A conversation goes in as a list and comes out as a longer one; the model gets a list of its own, too."""
    def greedy(messages, tools=None):
        messages.clear()
        return Reply("mine")

    messages = [Message("user", "hi")]
    result = run_loop(greedy, [], messages)
    assert messages == [Message("user", "hi")]
    assert result.messages == [Message("user", "hi"), Message("assistant", "mine")]
    again = run_loop(ScriptedModel(["yes"]), [], [*result.messages, Message("user", "sure?")])
    assert [message.content for message in again.messages] == ["hi", "mine", "sure?", "yes"]


def test_the_cap_says_what_was_left_undone():
    """The last call's tools are not run; the text, stop_reason and the conversation say so."""
    model = ScriptedModel(lambda messages, tools: asks(("add", {"a": 1}), ("read", {"path": "x"}), text="one more"))
    result = run_loop(model, [add, read], "go", 3)
    assert result.text == "one more\n\n[stopped: max_iterations=3 reached; not run: add, read]"
    assert (result.stop_reason, result.iterations) == ("max_iterations", 3)
    assert (len(model.calls), len(result.tool_calls)) == (3, 4)
    assert result.messages[-2:] == [Message("tool", "error: not run: max_iterations=3 reached", tool_call_id="c1"),
                                    Message("tool", "error: not run: max_iterations=3 reached", tool_call_id="c2")]
    assert run_loop(ScriptedModel([asks(("add", {"a": 1}))]), [add], "go", 1).text == (
        "[stopped: max_iterations=1 reached; not run: add]")


def test_an_answer_in_the_last_iteration_is_an_answer():
    """The cap is only met by a model that wants to go on."""
    result = run_loop(ScriptedModel([asks(("add", {"a": 1})), "1"]), [add], "go", 2)
    assert (result.text, result.stop_reason, result.iterations) == ("1", "end", 2)


def test_a_reply_that_was_cut_off_ends_the_loop():
    """Its tool calls may be half a call, so none is run; every call is answered all the same."""
    result = run_loop(ScriptedModel([Reply("Once upon", stop_reason="max_tokens")]), [add], "go")
    assert (result.text, result.stop_reason) == ("Once upon\n\n[stopped: the reply was cut off]", "max_tokens")
    result = run_loop(ScriptedModel([asks(("add", {}), stop_reason="max_tokens")]), [add], "go")
    assert (result.text, result.tool_calls) == ("[stopped: the reply was cut off; not run: add]", [])
    assert result.messages[-1] == Message("tool", "error: not run: the reply was cut off", tool_call_id="c1")


def test_a_tool_that_fails_is_told_to_the_model():
    """The loop goes on; the model reads what went wrong."""
    def broken(path: str):
        raise OSError(f"no such file: {path}")

    model = ScriptedModel([asks(("broken", {"path": "x"}), ("red", {}), ("read", {"file": "x"})), "sorry"])
    assert run_loop(model, [broken, read], "go").text == "sorry"
    assert [message.content for message in model.calls[1].messages[2:]] == [
        "error: broken raised OSError: no such file: x",
        "error: no tool 'red'; did you mean 'read'? (there are: broken, read)",
        "error: read: missing 'path'; unexpected 'file'; it takes path (string)"]


def test_a_model_that_fails_ends_the_loop():
    """A ModelError propagates, and so does a reply that is none."""
    with pytest.raises(ModelError, match="overloaded"):
        run_loop(ScriptedModel([ModelError("overloaded")]), [], "hi")
    with pytest.raises(ModelError, match=r"model '<lambda>' returned a str; a model returns Reply\(text\)"):
        run_loop(lambda messages, tools: "hi", [], "hi")


@pytest.mark.parametrize("cap", [0, -1, 2.0, True, None])
def test_the_cap_is_a_whole_number(cap):
    """Of model calls, at least one; in a node it is checked when the node is built."""
    with pytest.raises(ValueError, match=f"max_iterations={cap!r} must be a whole number from 1: it caps the"):
        run_loop(ScriptedModel(["x"]), [], "hi", cap)
    with pytest.raises(ValueError, match=f"max_iterations={cap!r} must be"):
        agent_node("a", ScriptedModel(["x"]), [], "out", max_iterations=cap)


@pytest.mark.parametrize("messages", [[], ["hi"], [{"role": "user"}]])
def test_messages_are_text_or_messages(messages):
    """An empty list and a list of something else are refused."""
    with pytest.raises(TypeError, match="messages are the user's text, or a list of Message with at least one; got"):
        run_loop(ScriptedModel(["x"]), [], messages)


def test_a_result_shows_itself_in_a_line():
    """The repr leaves the conversation out and shortens the text."""
    result = run_loop(ScriptedModel([asks(("add", {"a": 1})), "x" * 100]), [add], "go")
    assert repr(result) == f"LoopResult('{'x' * 57}...', stop_reason='end', iterations=2, tool_calls=[add])"
    assert repr(LoopResult("hi", [], "end", 1)) == "LoopResult('hi', stop_reason='end', iterations=1, tool_calls=[])"


# ---- events


def slow_add(a: int) -> int:
    sleep(0.5)
    return a


def test_a_loop_tells_an_observer_what_it_does():
    """Calls are events when they end, with t from the start of the loop, framed by loop_start and loop_end."""
    trace = Trace()
    model = ScriptedModel([asks(("slow_add", {"a": 1}), ("sub", {})), "1"], latency=[1.5, 2], name="big")
    with virtual_time():
        sleep(100)  # t is not the clock's
        result = run_loop(model, [slow_add], "go", observer=trace, name="brief")
    assert result.stop_reason == "end"
    frame = {"workflow": "brief"}
    reply = {**frame, "name": "big", "usage": {}, "error": None}
    assert trace.events == [
        {"kind": "loop_start", "t": 0, **frame},
        {"kind": "llm", "t": 1.5, **reply, "ms": 1500, "stop_reason": "tool_use"},
        {"kind": "tool", "t": 2, **frame, "name": "slow_add", "arguments": {"a": 1}, "ms": 500, "error": None},
        {"kind": "tool", "t": 2, **frame, "name": "sub", "arguments": {}, "ms": 0,
         "error": "no tool 'sub' (there are: slow_add)"},
        {"kind": "llm", "t": 4, **reply, "ms": 2000, "stop_reason": "end"},
        {"kind": "loop_end", "t": 4, **frame, "ms": 4000, "status": "done", "iterations": 2, "error": None}]
    assert (trace.name, trace.status, trace.seconds) == ("brief", "done", 4)
    assert [(call.kind, call.name, call.start, call.end) for call in trace.calls()] == [
        ("llm", "big", 0, 1.5), ("tool", "slow_add", 1.5, 2), ("tool", "sub", 2, 2), ("llm", "big", 2, 4)]


@pytest.mark.parametrize("reply, status, error", [
    (asks(("add", {"a": 1})), "max_iterations", None),
    (Reply("cut", stop_reason="max_tokens"), "max_tokens", None),
    (ModelError("busy"), "failed", "ModelError: busy"),
])
def test_the_end_of_a_loop_says_how_it_went(reply, status, error):
    """status is done, max_iterations, max_tokens, failed or interrupted; an error is in the call and in the end."""
    trace = Trace()
    with suppress(ModelError):
        run_loop(ScriptedModel([reply]), [add], "go", 1, observer=trace)
    end = trace.of("loop_end")[0]
    assert (end["status"], end["error"], end["iterations"]) == (status, error, 1)
    assert trace.of("llm")[0]["error"] == error


def test_an_interrupted_loop_says_so():
    """KeyboardInterrupt in a tool is no tool result: it goes through, and the events are complete."""
    def wait():
        raise KeyboardInterrupt

    trace = Trace()
    with pytest.raises(KeyboardInterrupt):
        run_loop(ScriptedModel([asks(("wait", {}))]), [wait], "go", observer=trace)
    assert [event["kind"] for event in trace] == ["loop_start", "llm", "tool", "loop_end"]
    assert (trace.status, trace.of("tool")[0]["error"]) == ("interrupted", "KeyboardInterrupt")


def test_an_observer_that_raises_is_logged(caplog):
    """The loop goes on without it."""
    def observer(kind, event):
        raise ValueError(f"cannot draw {kind}")

    assert run_loop(ScriptedModel(["hi"]), [], "hi", observer=observer).text == "hi"
    assert [record.name for record in caplog.records] == ["minigraph"] * 3
    assert "the observer raised on 'llm'; the loop goes on" in caplog.text


# ---- a loop as one node


def agent_graph(model, *args, **kwargs):
    return Graph("agents").add_node(agent_node("agent", model, *args, **kwargs)).add_edge(START, "agent")


def test_an_agent_node_is_a_whole_loop():
    """Its text goes to out_key; calls are events of the node, without a frame of their own."""
    model = ScriptedModel([asks(("slow_add", {"a": 1})), "one"], latency=1)
    trace = Trace()
    graph = agent_graph(model, [slow_add], "answer", system="You are {who}.", prompt="Count {what}")
    with virtual_time():
        state = within(20, lambda: run_graph(graph, {"who": "brief", "what": "{who}"}, trace))
    assert state == {"who": "brief", "what": "{who}", "answer": "one", "errors": {}}
    assert model.calls[0].messages == [Message("system", "You are brief."), Message("user", "Count {who}")]
    heard = trace.of("llm", "tool", "loop_start", "loop_end")
    assert [(event["kind"], event["node"], event["t"]) for event in heard] == [
        ("llm", "agent", 1), ("tool", "agent", 1.5), ("llm", "agent", 2.5)]
    assert graph.nodes["agent"].kind == "agent"


def test_an_agent_without_a_prompt_is_told_the_blackboard():
    """A line for each key, the errors left out; no system prompt, no system message."""
    model = ScriptedModel(["ok"])
    run_graph(agent_graph(model, [], "answer"), {"task": "plan a day", "date": "2026-01-05"})
    assert model.calls[0].messages == [Message("user", "task: plan a day\ndate: 2026-01-05")]


def test_every_visit_of_an_agent_begins_anew():
    """A second visit has a conversation of its own."""
    model = ScriptedModel(["one", "two"])
    graph = Graph().add_node(agent_node("agent", model, [add], "answer", prompt="go", max_visits=2))
    graph.add_edge(START, "agent").add_router("agent", lambda state: state["answer"], {"one": "agent", "two": END})
    assert run_graph(graph, {})["answer"] == "two"
    assert [len(asked.messages) for asked in model.calls] == [1, 1]


def test_an_agent_that_meets_its_cap_keeps_what_it_has():
    """That is no failure: the text says what was left undone, and a router can look for it."""
    state = run_graph(agent_graph(ScriptedModel([asks(("add", {"a": 1}), text="so far 0")]), [add], "answer",
                                  max_iterations=1), {})
    assert (state.status, state["answer"]) == ("done", "so far 0\n\n[stopped: max_iterations=1 reached; not run: add]")


def test_an_agents_model_error_is_the_nodes_failure():
    """It takes on_error like any other."""
    graph = Graph().add_node(agent_node("agent", ScriptedModel([ModelError("busy")]), [], "answer", on_error="sorry"))
    graph.add_node("sorry", lambda state: {"answer": "later"}).add_edge(START, "agent").add_edge("agent", END)
    state = run_graph(graph, {})
    assert (state["answer"], state.errors) == ("later", {"agent": "ModelError: busy"})


def test_what_is_wrong_with_an_agent_is_said_when_it_is_built():
    """A malformed template, two tools of one name, a tool that is none."""
    model = ScriptedModel(["x"])
    for kwargs in ({"system": "{a.b}"}, {"prompt": "{"}):
        with pytest.raises(ValueError, match="template: "):
            agent_node("a", model, [], "out", **kwargs)
    with pytest.raises(ValueError, match="there are two tools named 'add', and a model calls them by name"):
        agent_node("a", model, [add, Tool("add", read)], "out")
    with pytest.raises(TypeError, match="tool 'int': a tool is a function, not 5"):
        agent_node("a", model, [5], "out")


def test_an_agent_node_takes_a_registry_and_pickles():
    """It holds the tools, not the registry; its repr names them."""
    model = ScriptedModel([asks(("add", {"a": 1})), "1"])
    node = agent_node("agent", model, ToolRegistry([add, Tool("r", read)]), "out")
    assert repr(node.fn) == "<loop of stub with ToolRegistry(add, r) -> out>"
    assert pickle.loads(pickle.dumps(node)).fn({"x": 1}) == {"out": "1"}


# ---- the registry


def test_a_registry_runs_a_call():
    """Text comes back as it is, anything else as JSON, and what JSON cannot say as str."""
    class Odd:
        def __str__(self):
            return "odd"

    for result, text in [("ä{x}", "ä{x}"), (3, "3"), ({"ä": [1, None]}, '{"ä": [1, null]}'), (None, "null"),
                         (True, "true"), (Odd(), "odd"), ({1, }, "{1}")]:
        registry = ToolRegistry([Tool("get", lambda result=result: result, parameters={})])
        assert registry.execute(ToolCall("c", "get", {})) == text


def boom(kind: str):
    """Goes wrong."""
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    class Unspeakable:
        def __str__(self):
            raise ValueError("unspeakable")

    if kind == "unspeakable":
        return Unspeakable()
    raise {"value": ValueError("no"), "empty": ValueError(), "key": KeyError("k"), "mute": Mute(),
           "deep": RecursionError("deep")}[kind]


async def later(text: str):
    """Comes later."""
    return text


@pytest.mark.parametrize("name, arguments, says", [
    ("ad", {}, "no tool 'ad'; did you mean 'add'? (there are: add, boom, later)"),
    ("zzz", {}, "no tool 'zzz' (there are: add, boom, later)"),
    ("", {}, "no tool '' (there are: add, boom, later)"),
    (None, {}, "no tool None (there are: add, boom, later)"),
    ("add", {}, "add: missing 'a'; it takes a (integer), b (integer)"),
    ("add", {"a": 1, "c": 2}, "add: unexpected 'c'; it takes a (integer), b (integer)"),
    ("add", {"a": "1"}, "add: 'a' must be integer, not '1'; it takes a (integer), b (integer)"),
    ("add", {"a": True}, "add: 'a' must be integer, not True; it takes a (integer), b (integer)"),
    ("add", {"a": 1.5, "b": None}, "add: 'a' must be integer, not 1.5; 'b' must be integer, not None; it takes"),
    ("add", '{"a": 1}', "add: the arguments must be an object, not '{\"a\": 1}'"),
    ("add", None, "add: the arguments must be an object, not None"),
    ("boom", {"kind": "value"}, "boom raised ValueError: no"),
    ("boom", {"kind": "empty"}, "boom raised ValueError"),
    ("boom", {"kind": "key"}, "boom raised KeyError: 'k'"),
    ("boom", {"kind": "mute"}, "boom raised Mute"),
    ("boom", {"kind": "deep"}, "boom raised RecursionError: deep"),
    ("boom", {"kind": "unspeakable"}, "boom raised ValueError: unspeakable"),
    ("later", {"text": "x"}, "later is async, and a tool is a plain function: call asyncio.run(...) inside one"),
])
def test_a_registry_never_raises(name, arguments, says):
    """An unknown tool, arguments that do not fit, and whatever a tool does wrong become text for the model."""
    text = ToolRegistry([add, boom, later]).execute(ToolCall("c", name, arguments))
    assert text.startswith("error: " + says)


def test_a_coroutine_that_a_tool_returned_is_closed():
    """Nobody will await it, and Python would complain about that much later, somewhere else."""
    made = []

    def forgets_to_run(text: str):
        made.append(later(text))
        return made[0]

    ToolRegistry([forgets_to_run]).execute(ToolCall("c", "forgets_to_run", {"text": "x"}))
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_an_argument_that_does_not_fit_is_shortened():
    """A megabyte in the wrong place is not sent back to the model."""
    text = ToolRegistry([add]).execute(ToolCall("c", "add", {"a": "x" * 1_000_000}))
    assert text.startswith("error: add: 'a' must be integer, not 'xxx") and len(text) < 120


def test_an_empty_registry_says_that_it_is_empty():
    """No tools, no suggestion."""
    assert ToolRegistry([]).execute(ToolCall("c", "add", {})) == "error: no tool 'add' (there are: none)"
    assert (ToolRegistry([]).specs(), repr(ToolRegistry([]))) == ([], "ToolRegistry(no tools)")


def test_a_tool_that_takes_nothing_says_so():
    """An argument too many is named."""
    def ping() -> str:
        return "pong"

    registry = ToolRegistry([ping])
    assert registry.execute(ToolCall("c", "ping", {})) == "pong"
    assert registry.execute(ToolCall("c", "ping", {"x": 1})) == "error: ping: unexpected 'x'; it takes no arguments"


def test_tools_may_be_wrapped():
    """retry and timeout keep the name, the docstring and the signature."""
    (spec,) = ToolRegistry([retry(timeout(add, 2))]).specs()
    assert (spec.name, spec.description, list(spec.parameters["properties"])) == (
        "add", "The sum of two numbers.", ["a", "b"])
    registry = ToolRegistry([timeout(slow_add, 0.1)])
    with virtual_time():
        assert within(20, lambda: registry.execute(ToolCall("c", "slow_add", {"a": 1}))) == (
            "error: slow_add raised TimeoutError: `slow_add` took longer than 0.1 s; it was left running, not stopped")


# ---- tools and their schemas


def test_a_tool_describes_itself():
    """Name and docstring of the function, unless the Tool says otherwise."""
    (spec, named) = ToolRegistry([add, Tool("plus", add, "Adds.", {"type": "object"})]).specs()
    assert (spec.name, spec.description) == ("add", "The sum of two numbers.")
    assert spec.parameters == {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 0}},
        "required": ["a"], "additionalProperties": False}
    assert (named.name, named.description, named.parameters) == ("plus", "Adds.", {"type": "object"})
    assert repr(Tool("plus", add)) == "<Tool plus: a (integer), b (integer)>"


@pytest.mark.parametrize("annotation, schema, fits, misfits", [
    (str, {"type": "string"}, ["", "x"], [1, None]),
    (int, {"type": "integer"}, [0, -1], [1.0, "1", True]),
    (float, {"type": "number"}, [0, 1.5], ["1", True]),
    (bool, {"type": "boolean"}, [True, False], [0, "true"]),
    (list, {"type": "array"}, [[], [1, "a"]], ["ab", {}]),
    (dict, {"type": "object"}, [{}, {"a": 1}], [[], "a"]),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [[], [1]], [["1"], [1, None]]),
    (dict[str, int], {"type": "object"}, [{"a": 1}], [[]]),
    (int | None, {"type": ["integer", "null"]}, [1, None], ["1"]),
    (Optional[int], {"type": ["integer", "null"]}, [1, None], ["1"]),  # noqa: UP045 (the older spelling)
    (int | str, {"type": ["integer", "string"]}, [1, "1"], [None, 1.5]),
    (list[int] | None, {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
     [[1], None], [["1"], 1]),
    (Literal["up", "down"], {"enum": ["up", "down"]}, ["up"], ["UP", 1]),
    ("int", {"type": "integer"}, [1], ["1"]),
    (object, {}, [1, "1", None, [1]], []),
    (object | None, {}, [1, None], []),
])
def test_a_schema_is_read_from_the_signature(annotation, schema, fits, misfits):
    """An annotation becomes JSON Schema, and arguments are held to it; what JSON has no word for takes anything."""
    def fn(x):
        return "fine"

    fn.__annotations__["x"] = annotation
    tool = Tool("fn", fn)
    assert tool.parameters["properties"] == {"x": schema}
    json.dumps(tool.parameters)
    assert [tool.misfit({"x": value}) for value in fits] == [""] * len(fits)
    assert all(tool.misfit({"x": value}).startswith("'x' must be ") for value in misfits)


def test_the_words_for_a_type_are_words():
    """What a model reads names alternatives and items."""
    def fn(a: list[int], b: Literal["x", "y"], c: int | None, d: list[int] | str, e):
        return ""

    assert Tool("fn", fn).misfit({}).endswith(
        "it takes a (array of integer), b (one of 'x', 'y'), c (integer or null), d (array of integer or string), "
        "e (anything)")


def test_defaults_and_open_ends():
    """A default makes an argument optional and stands in the schema; None as default allows null; ** takes the rest."""
    def fn(a, b: int = 5, c: str = None, d=object, **rest):
        return ""

    assert Tool("fn", fn).parameters == {
        "type": "object", "required": ["a"], "additionalProperties": True,
        "properties": {"a": {}, "b": {"type": "integer", "default": 5}, "c": {"type": ["string", "null"]}, "d": {}}}
    assert Tool("fn", fn).misfit({"a": 1, "c": None, "other": 2}) == ""


def test_an_annotation_that_cannot_be_resolved_takes_anything():
    """A tool is not refused for a type that is only there for type checkers."""
    def fn(a: "NotImported", b: int = 1):  # noqa: F821
        return ""

    assert Tool("fn", fn).parameters["properties"]["a"] == {}


@pytest.mark.parametrize("make, error, says", [
    (lambda: Tool("get me", add), ValueError, "tool name 'get me': models take 1 to 64 letters, digits, _ and -"),
    (lambda: ToolRegistry([lambda: 1]), ValueError, r"tool name '<lambda>': .* give the function one, as in Tool\("),
    (lambda: Tool("x", 5), TypeError, "tool 'x': a tool is a function, not 5"),
    (lambda: Tool("x", lambda *args: 1), TypeError, r"models give arguments by name, and '\*args' takes none"),
    (lambda: Tool("x", lambda a, /: a), TypeError, "models give arguments by name, and 'a' takes none"),
    (lambda: Tool("x", max), ValueError, r"no signature found .*; say what it takes: Tool\(name, fn, parameters="),
])
def test_a_tool_that_no_model_could_call_is_refused(make, error, says):
    """Names, positional parameters and builtins without a signature, where the tool is made."""
    with pytest.raises(error, match=says):
        make()
