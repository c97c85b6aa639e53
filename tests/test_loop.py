"""The agent loop: what it asks, runs, tells and returns; and a loop as one node."""

import pickle
import signal
import threading
from contextlib import suppress

import pytest
from helpers import within

from minigraph import END, START, Graph, run_graph
from minigraph.clock import RealClock, now, sleep, use, virtual_time
from minigraph.loop import LoopResult, Tool, ToolRegistry, agent_node, run_loop
from minigraph.models import Message, ModelError, Reply, ScriptedModel, ToolCall
from minigraph.nodes import Node, timeout
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


def left_over():
    """The threads of tools that are still there."""
    return [thread for thread in threading.enumerate() if thread.name == "minigraph-tool"]


# ---- the loop


def test_a_loop_runs_tools_until_the_model_stops():
    """Each tool's result goes back under the id of its call, in the order of the calls."""
    model = ScriptedModel([asks(("add", {"a": 2, "b": 3}), ("read", {"path": "x"}), text="let me see"), "5, and x"])
    result = run_loop(model, [add, read], "What is 2 + 3?", system="Be brief.")
    assert (result.text, result.stopped_by, result.iterations) == ("5, and x", "end", 2)
    assert (result.reply, result.undone) == (Reply("5, and x"), [])
    assert result.calls == [ToolCall("c1", "add", {"a": 2, "b": 3}), ToolCall("c2", "read", {"path": "x"})]
    assert result.messages == [
        Message("system", "Be brief."), Message("user", "What is 2 + 3?"),
        Message("assistant", "let me see", tuple(result.calls)),
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
    assert repr(result) == f"LoopResult('{'x' * 57}...', stopped_by='end', iterations=2, calls=[add])"
    assert repr(LoopResult(Reply("hi"), 1, [], [], {}, "end")) == (
        "LoopResult('hi', stopped_by='end', iterations=1, calls=[])")


def test_a_model_that_refuses_ends_the_loop():
    """What it says is kept, and no tool is run that it may have asked for on the way."""
    result = run_loop(ScriptedModel([Reply("I would rather not.", stop_reason="refusal")]), [add], "go")
    assert (result.text, result.stopped_by) == ("I would rather not.\n\n[stopped: the model refused]", "refusal")
    result = run_loop(ScriptedModel([asks(("add", {"a": 1}), stop_reason="refusal")]), [add], "go")
    assert (result.text, result.calls) == ("[stopped: the model refused; not run: add]", [])
    assert result.messages[-1] == Message("tool", "error: not run: the model refused", tool_call_id="c1")


def test_a_model_that_waits_for_nothing_is_at_its_end():
    """stop_reason "tool_use" without a call: there is nothing to run, and the cap was not met."""
    result = run_loop(ScriptedModel([Reply("well", stop_reason="tool_use")]), [add], "go")
    assert (result.text, result.stopped_by, result.undone) == ("well", "end", [])


def test_usage_is_that_of_all_replies():
    """Summed by kind; a reply that counts nothing adds nothing."""
    first = Reply("", asks(("add", {"a": 1})).tool_calls, usage={"input_tokens": 10, "output_tokens": 3})
    model = ScriptedModel([first, asks(("add", {"a": 2})), Reply("3", usage={"input_tokens": 20, "cached": 5})])
    assert run_loop(model, [add], "go").usage == {"input_tokens": 30, "output_tokens": 3, "cached": 5}
    assert run_loop(ScriptedModel(["x"]), [], "go").usage == {}


def test_the_older_names_say_the_same():
    """stop_reason and tool_calls."""
    result = run_loop(ScriptedModel([asks(("add", {"a": 1}))]), [add], "go", 1)
    assert (result.stop_reason, result.tool_calls) == (result.stopped_by, result.calls) == ("max_iterations", [])
    assert result.undone == [ToolCall("c1", "add", {"a": 1})]


# ---- several tools in one turn


def takes(seconds: float) -> str:
    """Takes its time."""
    sleep(seconds)
    return f"{seconds:g} at {now():g}"


def spans(trace):
    return [(call.name, call.start, call.end) for call in trace.calls() if call.kind == "tool"]


def said(result):
    return [message.content for message in result.messages if message.role == "tool"]


@pytest.mark.parametrize("max_workers, results, tools", [
    (16, ["3 at 3", "1 at 1", "2 at 2"], [("takes", 0, 1), ("takes", 0, 2), ("takes", 0, 3)]),
    (2, ["3 at 3", "1 at 1", "2 at 3"], [("takes", 0, 1), ("takes", 0, 3), ("takes", 1, 3)]),
    (1, ["3 at 3", "1 at 4", "2 at 6"], [("takes", 0, 3), ("takes", 3, 4), ("takes", 4, 6)]),
])
def test_the_tools_of_one_turn_run_together(max_workers, results, tools):
    """At most max_workers at once, in virtual time too; results go back in the order of the calls, under their ids."""
    for _ in range(5):
        model = ScriptedModel([asks(*(("takes", {"seconds": seconds}) for seconds in (3, 1, 2))), "done"])
        trace = Trace()
        with virtual_time():
            result = within(20, lambda: run_loop(model, [takes], "go", observer=trace, max_workers=max_workers))  # noqa: B023
        assert said(result) == results
        assert [message.tool_call_id for message in result.messages if message.role == "tool"] == ["c1", "c2", "c3"]
        assert [call.arguments["seconds"] for call in result.calls] == [3, 1, 2]
        assert spans(trace) == tools
        assert trace.seconds == tools[-1][2]


def test_they_run_together_in_real_time():
    """Each waits for the others; none of their threads is left."""
    barrier = threading.Barrier(3, timeout=10)

    def meet(name: str) -> str:
        barrier.wait()
        return name

    model = ScriptedModel([asks(("meet", {"name": "a"}), ("meet", {"name": "b"}), ("meet", {"name": "c"})), "done"])
    trace = Trace()
    with use(RealClock(speed=1000)):
        result = within(20, lambda: run_loop(model, [meet], "go", observer=trace))
    assert said(result) == ["a", "b", "c"]
    assert len(trace.of("tool")) == 3
    assert left_over() == []


def test_every_failure_of_a_turn_comes_back_in_its_place():
    """Unknown, misfitting, broken and late ones among the others, which are not disturbed."""
    def broken():
        raise OSError("gone")

    model = ScriptedModel([asks(("takes", {"seconds": 9}), ("broken", {}), ("nobody", {}), ("takes", {"seconds": "x"}),
                                ("takes", '{"seconds": '), ("takes", {"seconds": 1})), "done"])
    with virtual_time():
        result = within(20, lambda: run_loop(model, [timeout(takes, 2), broken], "go"))
    assert [text.partition(";")[0] for text in said(result)] == [
        "error: takes raised TimeoutError: `takes` took longer than 2.0 s", "error: broken raised OSError: gone",
        "error: no tool 'nobody' (there are: takes, broken)", "error: takes: 'seconds' must be number, not 'x'",
        "error: takes: the arguments must be an object, not '{\"seconds\": ', which is not even JSON (Expecting value: "
        "line 1 column 13 (char 12))", "1 at 1"]
    assert len(result.calls) == 6


def test_an_interrupt_beside_other_tools_goes_through():
    """The others come to their end first; the loop says that it was interrupted."""
    ended = []

    def stop():
        sleep(1)
        raise KeyboardInterrupt

    def long(n: int):
        sleep(n)
        ended.append(n)

    trace = Trace()
    with virtual_time(), pytest.raises(KeyboardInterrupt):
        within(20, lambda: run_loop(ScriptedModel([asks(("long", {"n": 5}), ("stop", {}), ("long", {"n": 2}))]),
                                    [stop, long], "go", observer=trace))
    assert sorted(ended) == [2, 5]
    assert trace.status == "interrupted"
    assert [(event["name"], event["error"]) for event in trace.of("tool")] == [("stop", "KeyboardInterrupt")]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal can be sent to one thread here")
def test_ctrl_c_while_tools_run_goes_through():
    """The interrupt reaches the thread that waits for them; they are waited for, those that wait are not begun."""
    ended, both, main = [], threading.Barrier(2, timeout=10), threading.get_ident()

    def work(n: int):
        if both.wait() == 0:
            signal.pthread_kill(main, signal.SIGINT)
        threading.Event().wait(0.1)
        ended.append(n)

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us without one
    try:
        with pytest.raises(KeyboardInterrupt):
            run_loop(ScriptedModel([asks(*(("work", {"n": n}) for n in range(5)))]), [work], "go", max_workers=2)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert sorted(ended) == [0, 1]
    assert left_over() == []


def test_after_an_interrupt_no_other_tool_begins():
    """One after another: those behind it are left."""
    begun = []

    def stop(n: int):
        begun.append(n)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_loop(ScriptedModel([asks(("stop", {"n": 1}), ("stop", {"n": 2}))]), [stop], "go", max_workers=1)
    assert begun == [1]


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, None])
def test_workers_are_counted_in_whole_numbers(workers):
    """From 1; in a node it is checked when the node is built."""
    for call in (lambda: run_loop(ScriptedModel(["x"]), [], "hi", max_workers=workers),
                 lambda: agent_node("a", ScriptedModel(["x"]), [], "out", max_workers=workers)):
        with pytest.raises(ValueError, match=f"max_workers={workers!r} must be a whole number from 1: so many tools"):
            call()


# ---- the same call again


def test_a_call_that_is_made_again_is_noticed():
    """It is made, and the model is told how often, and whether anything new came of it; other arguments are another."""
    counted = []

    def count(of: str) -> str:
        counted.append(of)
        return str(counted.count(of)) if of == "visits" else "one"

    same, other, visits = ("count", {"of": "x"}), ("count", {"of": "y"}), ("count", {"of": "visits"})
    trace = Trace()
    result = run_loop(ScriptedModel([asks(same), asks(same, other), asks(visits), asks(visits, same), "done"]), [count],
                      "go", observer=trace, max_workers=1)
    assert said(result) == [
        "one", "one\n\n[call 2 of 'count' with the same arguments: nothing new came of it]", "one", "1",
        "2\n\n[call 2 of 'count' with the same arguments: the result has changed]",
        "one\n\n[call 3 of 'count' with the same arguments: nothing new came of it]"]
    assert counted == ["x", "x", "y", "visits", "visits", "x"]
    assert [event.get("times") for event in trace.of("tool")] == [None, 2, None, None, 2, 3]


def test_the_same_call_twice_in_one_turn_is_noticed():
    """And so is a failure that comes again; the order of the keys makes no difference, true and 1 do."""
    model = ScriptedModel([asks(("add", {"a": 1, "b": 2}), ("add", {"b": 2, "a": 1}), ("add", {"a": True, "b": 2}),
                                ("nobody", {}), ("nobody", {})), "done"])
    again = "[call 2 of {!r} with the same arguments: nothing new came of it]"
    assert said(run_loop(model, [add], "go")) == [
        "3", "3\n\n" + again.format("add"),
        "error: add: 'a' must be integer, not True; it takes a (integer), b (integer)",
        "error: no tool 'nobody' (there are: add)",
        "error: no tool 'nobody' (there are: add)\n\n" + again.format("nobody")]


def test_arguments_that_json_cannot_say_are_compared_all_the_same():
    """A scripted model may pass anything."""
    model = ScriptedModel([asks(("add", {"a": {1}}), ("add", {"a": {1}}), ("add", {1: 2, "a": 3})), "done"])
    texts = said(run_loop(model, [add], "go"))
    assert [text.endswith("nothing new came of it]") for text in texts] == [False, True, False]


def test_another_loop_knows_nothing_of_it():
    """What was called before is remembered for one loop, also where two share a registry."""
    registry = ToolRegistry([add])
    for _ in range(2):
        assert said(run_loop(ScriptedModel([asks(("add", {"a": 1})), "1"]), registry, "go")) == ["1"]


# ---- cancellation


def test_a_loop_that_is_cancelled_makes_no_call():
    """Not even the first; it says so."""
    model, trace = ScriptedModel(["x"]), Trace()
    result = run_loop(model, [add], "go", observer=trace, cancelled=lambda: True)
    assert (result.text, result.stopped_by, result.iterations) == ("[stopped: it was cancelled]", "cancelled", 0)
    assert model.calls == [] and result.messages == [Message("user", "go")]
    assert [(event["kind"], event.get("status")) for event in trace] == [
        ("loop_start", None), ("loop_end", "cancelled")]


def test_a_loop_that_is_cancelled_while_the_model_speaks_runs_no_tool():
    """What it asked for is answered, and named as left undone."""
    stop = threading.Event()

    def model(messages, tools=None):
        stop.set()
        return asks(("add", {"a": 1}), ("read", {"path": "x"}), text="let me see")

    result = run_loop(model, [add, read], "go", cancelled=stop.is_set)
    assert result.text == "let me see\n\n[stopped: it was cancelled; not run: add, read]"
    assert (result.calls, [call.name for call in result.undone]) == ([], ["add", "read"])
    assert said(result) == ["error: not run: it was cancelled"] * 2
    assert run_loop(lambda messages, tools=None: Reply("done"), [], "go", cancelled=lambda: False).stopped_by == "end"


@pytest.mark.parametrize("max_workers, ran", [(1, ["one"]), (2, ["one", "two"]), (3, ["one", "two", "three"])])
def test_a_loop_that_is_cancelled_while_tools_run_begins_no_other(max_workers, ran):
    """Those under way are waited for, and what they say is kept; the rest is left undone."""
    stop = threading.Event()

    def work(name: str) -> str:
        sleep(1)
        stop.set()
        return name

    calls = [("work", {"name": name}) for name in ("one", "two", "three")]
    model, trace = ScriptedModel([asks(*calls), "never asked for"]), Trace()
    with virtual_time():
        result = within(20, lambda: run_loop(model, [work], "go", observer=trace, max_workers=max_workers,
                                             cancelled=stop.is_set))
    left = ["one", "two", "three"][len(ran):]
    assert said(result) == ran + ["error: not run: it was cancelled"] * len(left)
    assert [call.arguments["name"] for call in result.calls] == ran
    assert [call.arguments["name"] for call in result.undone] == left
    assert (result.stopped_by, result.iterations, len(trace.of("tool"))) == ("cancelled", 1, len(ran))
    assert result.text == {0: "[stopped: it was cancelled]", 1: "[stopped: it was cancelled; not run: work]",
                           2: "[stopped: it was cancelled; not run: work, work]"}[len(left)]


def test_what_says_whether_to_stop_is_a_function():
    """An event is none, but has one; one that raises is heard, and hangs nothing."""
    with pytest.raises(TypeError, match="cancelled=<threading.Event.*> must be a function .*, as event.is_set does"):
        run_loop(ScriptedModel(["x"]), [], "hi", cancelled=threading.Event())
    answers = iter([False])  # before the model; the two tools find none
    model = ScriptedModel([asks(("add", {"a": 1}), ("add", {"a": 2}))])
    with virtual_time(), pytest.raises(StopIteration):
        within(20, lambda: run_loop(model, [add], "go", cancelled=lambda: next(answers)))


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
        {"kind": "tool", "t": 1.5, **frame, "name": "sub", "arguments": {}, "ms": 0,
         "error": "no tool 'sub' (there are: slow_add)"},
        {"kind": "tool", "t": 2, **frame, "name": "slow_add", "arguments": {"a": 1}, "ms": 500, "error": None},
        {"kind": "llm", "t": 4, **reply, "ms": 2000, "stop_reason": "end"},
        {"kind": "loop_end", "t": 4, **frame, "ms": 4000, "status": "done", "iterations": 2, "error": None}]
    assert (trace.name, trace.status, trace.seconds) == ("brief", "done", 4)
    assert [(call.kind, call.name, call.start, call.end) for call in trace.calls()] == [
        ("llm", "big", 0, 1.5), ("tool", "sub", 1.5, 1.5), ("tool", "slow_add", 1.5, 2), ("llm", "big", 2, 4)]


@pytest.mark.parametrize("reply, status, error", [
    (asks(("add", {"a": 1})), "max_iterations", None),
    (Reply("cut", stop_reason="max_tokens"), "max_tokens", None),
    (Reply("no", stop_reason="refusal"), "refusal", None),
    (ModelError("busy"), "failed", "ModelError: busy"),
])
def test_the_end_of_a_loop_says_how_it_went(reply, status, error):
    """status is done, what stopped the loop, failed or interrupted; an error is in the call and in the end."""
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


def test_the_tools_of_an_agent_run_together():
    """On the clock of the run, beside other nodes, under both schedules and with one worker; events name the node."""
    for schedule in ("waves", "ready"):
        for max_workers in (None, 1):
            model = ScriptedModel([asks(("takes", {"seconds": 3}), ("takes", {"seconds": 1})), "done"], latency=1)
            graph = agent_graph(model, [takes], "answer")
            graph.add_node("beside", lambda state: sleep(2)).add_edge(START, "beside")
            trace = Trace()
            with virtual_time():
                run = lambda: run_graph(graph, {}, trace, schedule=schedule, max_workers=max_workers)  # noqa: B023, E731
                assert within(20, run)["answer"] == "done"
            start = trace.visits()[0].start
            assert [(call.name, call.node, call.start - start, call.end - start) for call in trace.calls()] == [
                ("stub", "agent", 0, 1), ("takes", "agent", 1, 2), ("takes", "agent", 1, 4), ("stub", "agent", 4, 5)]


def test_what_tools_emit_is_heard_as_the_nodes():
    """A loop in a tool, in a thread of its own, too."""
    def ask(n: int) -> str:
        return run_loop(ScriptedModel([f"inner {n}"], latency=n, name="inner"), [], "go").text

    trace = Trace()
    model = ScriptedModel([asks(("ask", {"n": 2}), ("ask", {"n": 1})), "done"])
    with virtual_time():
        within(20, lambda: run_graph(agent_graph(model, [ask], "answer"), {}, trace))
    assert [(event["kind"], event["name"], event["node"], event["t"]) for event in trace.of("llm", "tool")] == [
        ("llm", "stub", "agent", 0), ("llm", "inner", "agent", 1), ("tool", "ask", "agent", 1),
        ("llm", "inner", "agent", 2), ("tool", "ask", "agent", 2), ("llm", "stub", "agent", 2)]


def test_an_agent_one_call_after_another():
    """max_workers=1 is what the node hands on, and cancelled too."""
    model = ScriptedModel([asks(("takes", {"seconds": 3}), ("takes", {"seconds": 1})), "done"])
    trace = Trace()
    with virtual_time():
        within(20, lambda: run_graph(agent_graph(model, [takes], "answer", max_workers=1), {}, trace))
    assert spans(trace) == [("takes", 0, 3), ("takes", 3, 4)]
    state = run_graph(agent_graph(model, [takes], "answer", cancelled=lambda: True), {})
    assert (state.status, state["answer"]) == ("done", "[stopped: it was cancelled]")


def test_what_a_timeout_left_behind_can_be_cancelled():
    """A loop that is late runs on, unless it is told to stop: then it makes no other call."""
    stop = threading.Event()
    model = ScriptedModel([asks(("takes", {"seconds": 5})), asks(("takes", {"seconds": 1})), "never asked for"])
    agent = agent_node("agent", model, [takes], "answer", cancelled=stop.is_set)
    graph = Graph().add_node(Node("agent", timeout(agent.fn, 2), "agent", on_error="late"))
    graph.add_node("late", lambda state: stop.set() or sleep(10)).add_edge(START, "agent").add_edge("late", END)
    graph.add_edge("agent", END)
    with virtual_time():
        state = within(20, lambda: run_graph(graph, {}))
    assert state.errors["agent"].startswith("TimeoutError: ")
    assert len(model.calls) == 1
