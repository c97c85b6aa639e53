"""Every model keeps one contract; a scripted one also keeps to its script."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from fake_provider import Call, Fail, FakeProvider, Say, unset

from minigraph import START, Graph, run_graph
from minigraph.clock import now, virtual_time
from minigraph.models import Message, ModelError, Reply, ScriptedModel, ToolCall, ToolSpec
from minigraph.models.anthropic import anthropic_model
from minigraph.models.base import KINDS, STOP_REASONS, checked, look_up, render, well_formed, without_keys
from minigraph.models.openai import openai_model
from minigraph.models.replay import recorded
from minigraph.nodes import llm_node

ASK = [Message("system", "Be brief."), Message("user", "What is 2 + 3?")]
ADD = ToolSpec("add", "The sum of two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})


# ---- the contract: one function a model, which makes it ready to do what a case says


REPLIES = {
    "text": Reply("five"),
    "tool": Reply("", (ToolCall("c1", "add", {"a": 2}),)),
    "tools": Reply("Both.", (ToolCall("c1", "add", {"a": 2}), ToolCall("c2", "add", {"a": 3}))),
    "length": Reply("fi", stop_reason="max_tokens"),
    "refusal": Reply("I would rather not.", stop_reason="refusal"),
}
CASES = [*REPLIES, "failure", "echo"]  # echo: it says what the last message says


def scripted_list(case, stack, folder):
    if case == "echo":
        return scripted_function(case, stack, folder)
    return ScriptedModel([REPLIES[case]] if case in REPLIES else [])


def scripted_function(case, stack, folder):
    def answer(messages, tools):
        if case == "failure":
            raise ModelError("overloaded", "the model is on holiday: ask again tomorrow")
        return messages[-1].content if case == "echo" else REPLIES[case]

    return ScriptedModel(answer)


class replayed:
    """A recording of the scripted model; it is played from the file alone."""

    def __init__(self, case, stack, folder):
        self.case, self.path = case, folder / f"{case}.jsonl"
        self.model = scripted_function(case, stack, folder)
        self.path.touch()

    def __call__(self, messages, tools=None):
        if self.case != "failure":
            recorded(self.model, self.path)(messages, tools)
        return recorded(None, self.path)(messages, tools)


def provider(case, stack):
    def said(asked):
        if case == "failure":
            return Fail(529, "Overloaded")
        if case == "echo":
            content = asked.body["messages"][-1]["content"]
            return Say(content if isinstance(content, str) else content[-1]["text"])
        reply = REPLIES[case]
        return Say(reply.text, tuple(Call(call.id, call.name, call.arguments) for call in reply.tool_calls),
                   reply.stop_reason)

    return stack.enter_context(FakeProvider(said))


def remote(make, stream):
    def ready(case, stack, folder):
        fake = provider(case, stack)
        url = fake.anthropic if make is anthropic_model else fake.openai
        return make("small", api_key="a-key", base_url=url, retries=0, stream=stream)

    return ready


MODELS = {"scripted list": scripted_list, "scripted function": scripted_function, "replay": replayed,
          "anthropic": remote(anthropic_model, False), "anthropic, streamed": remote(anthropic_model, True),
          "openai": remote(openai_model, False), "openai, streamed": remote(openai_model, True)}


@pytest.fixture(params=MODELS)
def ready(request, tmp_path, monkeypatch):
    """The function that makes one model ready: ready("text"), ready("tool"), ready("failure")."""
    unset(monkeypatch)
    with ExitStack() as stack:
        yield lambda case: MODELS[request.param](case, stack, tmp_path)


def test_a_model_answers_in_text(ready):
    """Without a tools argument, and with tools=None, the reply is text that ended."""
    for reply in (ready("text")(ASK), ready("text")(ASK, None), ready("text")(ASK, tools=None)):
        assert isinstance(reply, Reply)
        assert (reply.text, reply.tool_calls, reply.stop_reason) == ("five", (), "end")


def test_a_model_may_answer_in_text_though_it_has_tools(ready):
    """Tools are an offer."""
    assert ready("text")(ASK, [ADD]).text == "five"


def test_a_model_asks_for_tools(ready):
    """A reply with tool calls gives each an id, a name and arguments by name, and stopped for tool_use."""
    reply = ready("tool")(ASK, [ADD])
    assert reply.stop_reason == "tool_use"
    (call,) = reply.tool_calls
    assert (call.name, call.arguments) == ("add", {"a": 2})
    assert isinstance(call.id, str) and call.id


def test_a_model_may_ask_for_several_tools_in_one_turn(ready):
    """The calls come in the model's order, each with an id of its own, beside what it said."""
    reply = ready("tools")(ASK, [ADD])
    assert (reply.text, reply.stop_reason) == ("Both.", "tool_use")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", {"a": 2}), ("add", {"a": 3})]
    assert len({call.id for call in reply.tool_calls}) == 2


@pytest.mark.parametrize("case, text, stop_reason", [
    ("length", "fi", "max_tokens"), ("refusal", "I would rather not.", "refusal")])
def test_a_reply_says_why_it_stopped(ready, case, text, stop_reason):
    """A reply that was cut off, or that refuses, is a reply: what there is of it is kept."""
    reply = ready(case)(ASK)
    assert (reply.text, reply.stop_reason) == (text, stop_reason)


@pytest.mark.parametrize("case", list(REPLIES))
def test_a_reply_has_usage_and_a_stop_reason_of_ours(ready, case):
    """usage is a dict of counts, text a str, and stop_reason one of four words, whichever provider spoke."""
    reply = ready(case)(ASK, [ADD])
    assert isinstance(reply.text, str)
    assert isinstance(reply.usage, dict)
    assert all(isinstance(kind, str) and isinstance(count, int) for kind, count in reply.usage.items())
    assert reply.stop_reason in ("end", "tool_use", "max_tokens", "refusal")


@pytest.mark.parametrize("case", ["text", "tool"])
def test_a_model_leaves_what_it_was_asked_alone(ready, case):
    """Neither the messages nor the tools are changed."""
    messages, tools = list(ASK), [ADD]
    ready(case)(messages, tools)
    assert (messages, tools) == (ASK, [ADD])


def test_a_model_reads_a_whole_conversation(ready):
    """System, user, assistant with tool calls, and tool messages are all taken, and the talk goes on."""
    talk = [*ASK, Message("assistant", "", (ToolCall("c0", "add", {"a": 1}), ToolCall("c1", "add", {}))),
            Message("tool", "1", tool_call_id="c0"), Message("tool", "", tool_call_id="c1")]
    model = ready("text")
    assert model(talk, [ADD]).text == "five"
    talk += [Message("assistant", "five"), Message("user", "Sure?"), Message("user", "Really?")]
    assert ready("text")(talk, [ADD]).text == "five"


def test_a_model_that_fails_says_so_in_one_sentence(ready):
    """Failure is a ModelError for a person, one line and no dump of a response, of a kind for a program."""
    with pytest.raises(ModelError) as caught:
        ready("failure")(ASK)
    sentence = str(caught.value)
    assert 10 < len(sentence) < 250
    assert "\n" not in sentence and "{" not in sentence
    assert caught.value.kind in KINDS


NASTY = [
    "{x} {{y}} {state.__class__} {0} %s $x }{",
    '{"a": [1, {"b": "}\\n"}], "c": null}',
    "<script>alert('x')</script> & <b>&amp;</b> <!-- [link](javascript:x) -->",
    "\x00\x01\x08\x1b[31m\x7f\x85\u2028\u202e\ufeff",
    "🙂 e\u0301 日本語 \U0001d54f",
    " \t leading, trailing, \r\n\r\n lines \n",
    "data: [DONE]\n\nevent: message_stop\ndata: {}\n\n",
]


@pytest.mark.parametrize("text", [*NASTY, "{x}<b>\x00🙂é" * 100_000], ids=[*(text[:12] for text in NASTY), "1 MB"])
def test_text_comes_through_whole(ready, text):
    """Braces, JSON, markup, control characters, a megabyte: what goes in comes out, in a node too, never evaluated."""
    model = ready("echo")
    assert model([Message("user", text)]).text == text
    graph = Graph().add_node(llm_node("say", "{text}", "said", model)).add_edge(START, "say")
    assert run_graph(graph, {"text": text, "x": "filled in"})["said"] == text


def test_a_model_is_asked_by_many_at_once(ready):
    """Sixteen threads share one model, and each gets the answer to its own question."""
    model = ready("echo")
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(lambda number: model([Message("user", f"number {number}")]).text, range(48)))
    assert texts == [f"number {number}" for number in range(48)]


# ---- what is said


def test_a_reply_with_tool_calls_has_not_ended():
    """The stop reason "end" becomes "tool_use" when there are tool calls; a cut-off reply stays cut off."""
    calls = [ToolCall("c1", "add", {})]
    assert Reply("", calls).stop_reason == "tool_use"
    assert Reply("", calls, "max_tokens").stop_reason == "max_tokens"
    assert Reply("", calls).tool_calls == (ToolCall("c1", "add", {}),)


def test_messages_and_replies_refuse_words_that_are_not_ours():
    """A role and a stop reason are checked where they are written."""
    with pytest.raises(ValueError, match="message role 'usr': a role is one of system, user, assistant, tool"):
        Message("usr", "hello")
    with pytest.raises(ValueError, match="kind 'nope': a ModelError is of one of the kinds auth, rate_limit, overload"):
        ModelError("nope", "it failed")
    with pytest.raises(ValueError, match="stop_reason 'stop': a reply stops for one of end, tool_use, max_tokens, ref"):
        Reply("hello", stop_reason="stop")
    assert STOP_REASONS == ("end", "tool_use", "max_tokens", "refusal")


@pytest.mark.parametrize("error, kind", [
    (ModelError("it failed"), "other"), (ModelError("auth", "it failed"), "auth")])
def test_a_model_error_is_a_sentence_and_a_kind(error, kind):
    """Its text is the sentence alone; the kind survives a pickle; a sentence alone is of the kind "other"."""
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert (str(one), one.kind, one.args) == ("it failed", kind, ("it failed",))


@pytest.mark.parametrize("text, shown", [  # in two parts, so that nobody who looks for keys finds some here
    ("sk-" + "ant-api03-AbCd_1234567890xyz.", "[key]."),
    ("key=sk-" + "proj-0123456789abcdef&x", "key=[key]&x"),
    ("\nghp_" + "0123456789abcdefghij0123456789abcdef\n", "\n[key]\n"),
    ("Authorization: Bearer " + "abcdefghijklmnop.qrs", "Authorization: [key]"),
    ("AKIA" + "IOSFODNN7EXAMPLE hf_" + "abcdefghijklmnopqrstuv", "[key] [key]"),
    *[(text, text) for text in ("a task-force", "sk-learn-extension", "the bearer of news", "risk-0123456789012")],
])
def test_what_looks_like_a_key_is_not_shown(text, shown):
    """The usual forms of secret keys become "[key]", and words do not."""
    assert without_keys(text) == shown


def test_what_is_said_is_said():
    """Messages, replies, calls and specs are frozen; they compare and pickle."""
    message = Message("assistant", "hm", (ToolCall("c1", "add", {"a": 1}),))
    assert pickle.loads(pickle.dumps(message)) == message
    for said in (message, Reply("x"), ToolCall("i", "n", {}), ADD):
        with pytest.raises(AttributeError):
            said.name = "other"


def test_a_callable_that_returns_no_reply_is_named():
    """A model that returns text where a Reply belongs is told what to return."""
    def parrot(messages, tools=None):
        return "squawk"

    with pytest.raises(ModelError, match=r"model 'parrot' returned a str; a model returns Reply\(text\)"):
        checked(parrot(ASK), parrot)


# ---- templates


@pytest.mark.parametrize("template, text", [
    ("say {word}", "say hello"),
    ("{word}{word}", "hellohello"),
    ("", ""),
    ("{{word}}", "{word}"),
    ("{{{word}}}", "{hello}"),
    ('{{"a": {number}}}', '{"a": 3}'),
    ("{größe}", "XL"),
    ("{secret}", "{word} {word.__class__} }{"),  # a value is not a template
    ("{nothing}", "None"),
])
def test_a_template_fills_in_keys_and_nothing_else(template, text):
    """{key} becomes str(value), doubled braces become single ones, and values are never parsed again."""
    state = {"word": "hello", "number": 3, "größe": "XL", "secret": "{word} {word.__class__} }{", "nothing": None}
    assert render(template, state) == text


@pytest.mark.parametrize("template, says", [
    ("{a.b}", "{a.b} is refused: '.b' asks for an attribute, and a template only looks up keys, as in {key}"),
    ("{a.__class__.x}", "{a.__class__.x} is refused: '.__class__.x' asks for an attribute"),
    ("{a[0]}", "{a[0]} is refused: '[0]' asks for an index"),
    ("{x!r}", "{x!r} is refused: '!r' asks for a conversion"),
    ("{x:>10}", "{x:>10} is refused: ':>10' asks for a format"),
    ("{0}", "{0} is refused: keys go by name, not by position, as in {key}"),
    ("{}", "{} is refused: keys go by name, not by position, as in {key}"),
    ("{ word }", "{ word } is refused: it is no name of a key; if it is text, double its braces: {{ and }}"),
    ('{"a": 1}', '{"a": 1} is refused: it is no name of a key; if it is text, double its braces'),
    ("{a\n}", "{a\n} is refused: it is no name of a key"),
    ("a } b", "the } in 'a } b' has no partner; if it is text, double it: }}"),
    ("a { b", "the { in 'a { b' has no partner; if it is text, double it: {{"),
    ("{word}}", "the } in '{word}}' has no partner"),
    ("{{word}", "the } in '{{word}' has no partner"),
    ("{a{b}}", "the { in '{a{b}}' has no partner"),
])
def test_a_template_that_asks_for_more_is_refused(template, says):
    """Attributes, indices, conversions, formats, positions and loose braces are errors that say which part and why."""
    for use in (well_formed, lambda text: render(text, {"a": 1, "word": 2})):
        with pytest.raises(ValueError) as caught:
            use(template)
        assert str(caught.value).startswith(f"template: {says}")


def test_a_missing_key_is_named_beside_the_keys_there_are():
    """A KeyError lists what is on the blackboard; one that already explains itself is left alone."""
    with pytest.raises(KeyError, match="no 'wrod' on the blackboard; it holds 'word', 'number'."):
        render("say {wrod}", {"word": "hello", "number": 3})
    with pytest.raises(KeyError, match="no 'word' on the blackboard; it holds nothing."):
        look_up({}, "word")

    class Knows(dict):
        def __missing__(self, key):
            raise KeyError("ask the neighbour")

    with pytest.raises(KeyError, match="ask the neighbour"):
        look_up(Knows(), "word")


def test_a_template_may_be_a_function_of_the_state():
    """What a function returns is the prompt, braces and all."""
    assert render(lambda state: f"{{{state['word']}}}", {"word": "hello"}) == "{hello}"
    assert callable(well_formed(lambda state: "{"))


def test_a_prompt_is_text_or_makes_text():
    """A function that forgot its return, and a prompt of another type, are TypeErrors that say so."""
    def forgetful(state):
        state.get("topic")

    with pytest.raises(TypeError, match="prompt function 'forgetful' returned None; it returns the prompt, as text"):
        render(forgetful, {})
    with pytest.raises(TypeError, match="a prompt is text with {key} in it, or a function of the state, not None"):
        well_formed(None)


def test_long_templates_and_values_come_through_whole():
    """A megabyte of braces and control characters is inserted as it is."""
    value = "{}\x00\x1b[31m\u202e🙂" * 100_000
    assert render("{{{value}}}" * 2, {"value": value}) == f"{{{value}}}" * 2


# ---- the scripted model


def test_a_script_is_answered_in_order_and_remembers_what_was_asked():
    """A str becomes a Reply, a Reply is given as it is, an Exception is raised; calls lists the questions."""
    model = ScriptedModel(["one", Reply("two", usage={"output_tokens": 1}), TimeoutError("three")], name="small")
    messages = list(ASK)
    assert model(messages) == Reply("one")
    messages.append(Message("user", "more"))
    assert model(messages, [ADD]) == Reply("two", usage={"output_tokens": 1})
    with pytest.raises(TimeoutError, match="three"):
        model(ASK)
    assert model.calls == [(ASK, None), ([*ASK, Message("user", "more")], [ADD]), (ASK, None)]
    assert model.calls[1].tools == [ADD]


def test_a_script_that_has_run_out_says_what_to_do():
    """Exhaustion is a ModelError with the number of replies, and it does not take the latency of a reply."""
    model = ScriptedModel(["one", "two"], latency=5)
    with virtual_time():
        model(ASK), model(ASK)
        with pytest.raises(ModelError) as caught:
            model(ASK)
        assert now() == 10
    assert str(caught.value) == ("model 'stub' ran out of replies: there were 2, and this is call 3; "
                                 "add to the list, or give a function instead")


def test_a_script_may_be_a_function():
    """It is given the messages and the tools; what it returns is treated as an entry of a list."""
    model = ScriptedModel(lambda messages, tools: messages[-1].content.upper() if tools else ValueError("no tools"))
    assert model(ASK, [ADD]).text == "WHAT IS 2 + 3?"
    with pytest.raises(ValueError, match="no tools"):
        model(ASK)
    with pytest.raises(ModelError, match=r"model 'stub' returned a int; a model returns Reply\(text\)"):
        ScriptedModel(lambda messages, tools: 5)(ASK)


@pytest.mark.parametrize("latency, times", [
    (1.5, [1.5, 3.0]), (0, [0, 0]), ([2, 0.25], [2, 2.25]), (lambda messages: len(messages), [2, 4])])
def test_latency_is_slept_on_the_current_clock(latency, times):
    """A number, a list with one for each call, or a function of the messages: exact in virtual time."""
    model, seen = ScriptedModel(["one", "two"], latency), []
    with virtual_time():
        for _ in times:
            model(ASK)
            seen.append(now())
    assert seen == times


def test_a_list_of_latencies_that_has_run_out_says_so():
    """One latency for two calls of a function is a ModelError at the second."""
    model = ScriptedModel(lambda messages, tools: "yes", latency=[0.0])
    model(ASK)
    with pytest.raises(ModelError, match="model 'stub' ran out of latencies: there were 1, and this is call 2"):
        model(ASK)


@pytest.mark.parametrize("script, says", [
    ("hello", r"model 'stub': a script is a list or a function; for one reply write \['hello'\]"),
    (Reply("x"), r"model 'stub': a script is a list or a function; for one reply write \[Reply"),
    (["one", 2], r"model 'stub': script\[1\] is 2; a reply is a str, a Reply or an Exception"),
    ([ValueError], r"model 'stub': script\[0\] is <class 'ValueError'>; a reply is"),
])
def test_a_script_nobody_can_answer_from_is_refused_at_once(script, says):
    """What no call could use is a TypeError where the model is made."""
    with pytest.raises(TypeError, match=says):
        ScriptedModel(script)


@pytest.mark.parametrize("latency", [-1, float("nan"), float("inf"), True, "2", [0, -1], [None]])
def test_a_latency_is_a_number_of_seconds(latency):
    """Negative, infinite and other latencies are refused where the model is made, or when a function returns one."""
    with pytest.raises(ValueError, match="a latency is a number of seconds, 0 or more"):
        ScriptedModel(["one", "two"], latency)
    with pytest.raises(ValueError, match="a latency is a number of seconds, 0 or more"):
        ScriptedModel(["one"], lambda messages: latency)(ASK)


def test_a_script_is_shared_by_threads_without_loss():
    """Each reply is given once, however many threads ask."""
    model = ScriptedModel([str(number) for number in range(500)])
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: model(ASK).text, range(500)))
    assert sorted(replies, key=int) == [str(number) for number in range(500)]
    assert len(model.calls) == 500


def test_a_scripted_model_shows_where_it_stands():
    """The repr counts replies given, or calls; a model over its end shows no more replies than it has."""
    model = ScriptedModel(["one", "two"], name="small")
    assert repr(model) == "ScriptedModel('small', 0 of 2 replies given)"
    model(ASK)
    assert repr(model) == "ScriptedModel('small', 1 of 2 replies given)"

    def decide(messages, tools):
        return "yes"

    model = ScriptedModel(decide)
    model(ASK)
    assert repr(model) == "ScriptedModel('stub', answers from decide, calls so far: 1)"


def test_a_pickled_copy_goes_on_by_itself():
    """The copy stands where the original stood, and neither disturbs the other."""
    model = ScriptedModel(["one", "two"])
    model(ASK)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy(ASK).text, model(ASK).text) == ("two", "two")
    assert len(copy.calls) == len(model.calls) == 2
