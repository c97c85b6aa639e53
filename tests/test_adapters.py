"""The real SDKs against a provider that does what it is told: what is sent, what comes back, and every way to fail."""

from __future__ import annotations

import ast
import gc
import json
import os
import pickle
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from time import monotonic

import pytest
from fake_provider import Call, Drip, Fail, FakeProvider, Raw, Say, unset
from helpers import Heard, within

from minigraph import START, Graph, run_graph
from minigraph.clock import virtual_time
from minigraph.loop import run_loop
from minigraph.models import Message, ModelError, Reply, ScriptedModel, ToolCall, ToolSpec, border, service
from minigraph.models.anthropic import anthropic_model
from minigraph.models.base import without_keys
from minigraph.models.env import model_from_env
from minigraph.models.openai import openai_model
from minigraph.nodes import llm_node

ROOT = Path(__file__).resolve().parent.parent
KEY = "sk-" + "test-0123456789abcdef"
ASK = [Message("user", "What is 2 + 3?")]
ADD = ToolSpec("add", "The sum of two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
BOTH = pytest.mark.parametrize("maker", [anthropic_model, openai_model], ids=["anthropic", "openai"])
EITHER_WAY = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch):
    unset(monkeypatch)
    monkeypatch.setattr(service, "PAUSE", 0.01)


def at(fake, maker, **options):
    """A model of the fake provider's, reached by the maker's SDK."""
    url = fake.anthropic if maker is anthropic_model else fake.openai
    return maker("small", **{"api_key": KEY, "base_url": url, "timeout": 5.0, **options})


def failure(model, messages=ASK):
    """The ModelError of a question, or the assertion that there is none."""
    with pytest.raises(ModelError) as caught:
        model(messages)
    return caught.value


# ---- what is sent


TALK = [
    Message("system", "Be brief."),
    Message("user", "Add."),
    Message("assistant", "Both.", (ToolCall("c1", "add", {"a": 1}), ToolCall("c2", "add", {"a": "ä"}))),
    Message("tool", "1", tool_call_id="c1"),
    Message("tool", "error: no", tool_call_id="c2"),
    Message("user", "Go on."),
    Message("system", "In English."),
    Message("assistant", ""),
    Message("user", "Please."),
]


def test_a_conversation_as_anthropic_is_told_it():
    """One system prompt; the results of one turn together and first; turns of one side joined, none of them empty."""
    with FakeProvider(Say("ok")) as fake:
        at(fake, anthropic_model, max_tokens=100)(TALK, [ADD])
    assert fake.requests[0].body == {
        "model": "small", "max_tokens": 100, "system": "Be brief.\n\nIn English.",
        "tools": [{"name": "add", "description": "The sum of two numbers.", "input_schema": ADD.parameters}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Add."}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Both."},
                {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
                {"type": "tool_use", "id": "c2", "name": "add", "input": {"a": "ä"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "error: no"},
                {"type": "text", "text": "Go on."}, {"type": "text", "text": "Please."}]},
        ]}


def test_a_conversation_as_openai_is_told_it():
    """Every message stands for itself, in its place; arguments are JSON in a string."""
    with FakeProvider(Say("ok")) as fake:
        at(fake, openai_model)(TALK, [ADD])
    assert fake.requests[0].body == {
        "model": "small",
        "tools": [{"type": "function", "function": {
            "name": "add", "description": "The sum of two numbers.", "parameters": ADD.parameters}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Add."},
            {"role": "assistant", "content": "Both.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a": "ä"}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {"role": "tool", "tool_call_id": "c2", "content": "error: no"},
            {"role": "user", "content": "Go on."},
            {"role": "system", "content": "In English."},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "Please."},
        ]}


@BOTH
@EITHER_WAY
def test_nothing_is_sent_that_was_not_asked_for(maker, stream):
    """Without tools and system prompt the request has none; options go in as they are; the key is in a header alone."""
    with FakeProvider(Say("ok")) as fake:
        at(fake, maker, stream=stream, extra_body={"top_k": 5})(ASK, [])
    (asked,) = fake.requests
    assert {"system", "tools", "temperature"}.isdisjoint(asked.body)
    assert asked.body["top_k"] == 5
    assert KEY not in json.dumps(asked.body)
    assert [name for name, value in asked.headers.items() if KEY in value] in (["authorization"], ["x-api-key"])


def test_a_limit_goes_by_the_name_the_server_knows():
    """OpenAI says max_completion_tokens; the servers that speak like it say max_tokens; Anthropic wants one always."""
    assert openai_model("x", api_key=KEY, max_tokens=5).options == {"max_completion_tokens": 5}
    assert openai_model("x", api_key=KEY, max_tokens=5, base_url="http://127.0.0.1:1/v1").options == {"max_tokens": 5}
    assert openai_model("x", api_key=KEY, temperature=0).options == {"temperature": 0}
    assert anthropic_model("x", api_key=KEY).options == {"max_tokens": 4096}


@BOTH
def test_a_misspelt_option_is_the_programs_mistake(maker):
    """It is the TypeError that Python makes of it, not a failure of the provider's, and nothing is tried again."""
    with FakeProvider(Say("ok")) as fake, pytest.raises(TypeError, match="max_tokenz"):
        at(fake, maker, max_tokenz=3)(ASK)
    assert fake.requests == []


# ---- what comes back


STOPS = [("end_turn", "end"), ("stop_sequence", "end"), ("max_tokens", "max_tokens"), ("refusal", "refusal"),
         ("model_context_window_exceeded", "max_tokens"), ("pause_turn", "max_tokens"), ("something_new", "end")]
FINISHES = [("stop", "end"), ("length", "max_tokens"), ("content_filter", "refusal"), ("something_new", "end")]


@EITHER_WAY
@pytest.mark.parametrize("maker, theirs, ours", [
    *[(anthropic_model, *pair) for pair in STOPS], *[(openai_model, *pair) for pair in FINISHES]])
def test_stop_reasons_are_in_our_words(maker, theirs, ours, stream):
    """Each provider's words for why a reply ended become one of four."""
    with FakeProvider(Say("so", stop=theirs)) as fake:
        assert at(fake, maker, stream=stream)(ASK) == Reply("so", stop_reason=ours, usage=usage(7, 3))


def usage(put, got):
    return {"input_tokens": put, "output_tokens": got}


@BOTH
@EITHER_WAY
def test_usage_counts_all_that_went_in(maker, stream):
    """Tokens that a cache had are among the input tokens, whichever provider counts, and are counted beside."""
    with FakeProvider(Say("so", tokens=(100, 3, 80))) as fake:
        assert at(fake, maker, stream=stream)(ASK).usage == {**usage(100, 3), "cached_tokens": 80}


@EITHER_WAY
def test_a_refusal_in_its_own_field_is_the_text(stream):
    """OpenAI has a field for it; what stands there is what the model said."""
    with FakeProvider(Say(refusal="I can't help with that.")) as fake:
        reply = at(fake, openai_model, stream=stream)(ASK)
    assert (reply.text, reply.stop_reason) == ("I can't help with that.", "refusal")


@BOTH
@EITHER_WAY
def test_tools_without_arguments_and_several_at_once(maker, stream):
    """No arguments are an empty mapping; calls keep their order and their ids."""
    calls = (Call("c1", "ping", "" if maker is openai_model else {}), Call("c2", "add", {"a": 1, "b": [None, "{x}"]}))
    with FakeProvider(Say("", calls)) as fake:
        reply = at(fake, maker, stream=stream)(ASK, [ADD])
    assert reply.tool_calls == (ToolCall("c1", "ping", {}), ToolCall("c2", "add", {"a": 1, "b": [None, "{x}"]}))
    assert reply.stop_reason == "tool_use"


@EITHER_WAY
@pytest.mark.parametrize("text", ['{"a": 1', "[1]", "5", "add 1"])
def test_arguments_that_are_no_object_are_told_to_the_model(stream, text):
    """They stay text; the loop answers with what is wrong, the provider takes that, and nothing crashes."""
    def add(a: int) -> int:
        return a

    with FakeProvider(Say("", (Call("c1", "add", text),)), Say("Sorry.")) as fake:
        model = at(fake, openai_model, stream=stream)
        assert model(ASK, [ADD]).tool_calls[0].arguments == text
        fake.requests.clear()
        result = run_loop(model, [add], "Add 1.")
    assert result.messages[-1].content == "Sorry."
    assert "must be an object" in fake.requests[1].body["messages"][-1]["content"]
    assert fake.requests[1].body["messages"][1]["tool_calls"][0]["function"]["arguments"] == text


def test_a_talk_with_such_arguments_can_go_on_with_another_provider():
    """Anthropic takes objects only: the text is shown inside one."""
    talk = [*ASK, Message("assistant", "", (ToolCall("c1", "add", "{oops"),)), Message("tool", "no", tool_call_id="c1")]
    with FakeProvider(Say("ok")) as fake:
        at(fake, anthropic_model)(talk, [ADD])
    assert fake.requests[0].body["messages"][1]["content"][0]["input"] == {"invalid": "{oops"}


@EITHER_WAY
def test_a_server_that_gives_no_ids_and_counts_nothing(stream):
    """Calls are numbered then, and usage is empty: many small servers do no more."""
    whole = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None,
             "tool_calls": [{"function": {"name": "add", "arguments": "{}"}}] * 2}}]}
    piece = {"choices": [{"index": 0, "finish_reason": None, "delta": {"tool_calls": [
             {"index": 0, "function": {"name": "add", "arguments": ""}},
             {"index": 1, "function": {"name": "add", "arguments": "{}"}}]}}]}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    sse = "".join(f"data: {json.dumps(event)}\n\n" for event in (piece, last)) + "data: [DONE]\n\n"
    said = Raw(sse.encode(), type="text/event-stream") if stream else Raw(json.dumps(whole).encode())
    with FakeProvider(said) as fake:
        reply = at(fake, openai_model, stream=stream)(ASK, [ADD])
    assert reply.tool_calls == (ToolCall("call_1", "add", {}), ToolCall("call_2", "add", {}))
    assert reply.usage == {}


@BOTH
@EITHER_WAY
def test_a_whole_loop_over_the_wire(maker, stream):
    """Two calls in one turn are run and answered in one; the second request holds both results."""
    def add(a: int, b: int = 0) -> int:
        return a + b

    calls = (Call("c1", "add", {"a": 2, "b": 3}), Call("c2", "add", {"a": 1}))
    with FakeProvider(Say("Let me see.", calls), Say("5 and 1")) as fake:
        result = run_loop(at(fake, maker, stream=stream), [add], "Add.", system="Be brief.")
    assert result.messages[-1] == Message("assistant", "5 and 1")
    said = json.dumps(fake.requests[1].body["messages"])
    assert all(f'"{word}"' in said for word in ("c1", "c2", "5", "1"))


# ---- streaming


@BOTH
def test_a_stream_is_heard_in_pieces_and_returned_whole(maker):
    """The pieces together are the text, in order, and the reply is the one that would have come at once."""
    pieces, said = [], Say("Forty-two is the answer, {x}\n\n🙂.", (Call("c1", "add", {"a": 1}),), tokens=(9, 8, 2))
    with FakeProvider(said) as fake:
        streamed, whole = at(fake, maker, stream=pieces.append)(ASK, [ADD]), at(fake, maker)(ASK, [ADD])
    assert streamed == whole
    assert "".join(pieces) == whole.text and len(pieces) > 3
    assert [asked.body.get("stream", False) for asked in fake.requests] == [True, False]


@BOTH
def test_the_pieces_are_events_of_the_node(maker):
    """stream=True sends each as `text`, before the `llm` event that ends the call."""
    heard = Heard()
    with FakeProvider(Say("One two three.")) as fake:
        graph = Graph().add_node(llm_node("say", "Count.", "said", at(fake, maker, stream=True))).add_edge(START, "say")
        assert run_graph(graph, {}, heard)["said"] == "One two three."
    assert [event["text"] for event in heard["text"]] == ["One tw", "o thre", "e."]
    assert {event["node"] for event in heard["text"]} == {"say"}
    assert heard.kinds.index("llm") > max(n for n, kind in enumerate(heard.kinds) if kind == "text")


@BOTH
def test_a_listener_that_raises_is_logged(maker, caplog):
    """The reply is not affected: whoever looks on does not take part."""
    def listener(piece):
        raise ValueError(f"cannot show {piece}")

    with FakeProvider(Say("hello")) as fake:
        assert at(fake, maker, stream=listener)(ASK).text == "hello"
    assert [record.name for record in caplog.records if record.levelname == "ERROR"] == ["minigraph"]


@BOTH
@pytest.mark.parametrize("said, says", [
    (Say("One two three.", cut=4), "broke off in the middle of its reply"),
    (Say("One two three.", cut=4, crash=True), "the connection to the server 127.0.0.1:* broke off"),
    (Say("One two three.", cut=4, error="overloaded_error"), "is overloaded (529): try again in a minute"),
], ids=["ends", "breaks", "error"])
def test_a_stream_that_breaks_off_is_no_reply(maker, said, says):
    """Half a reply is a failure, and not begun again: what was heard cannot be unsaid."""
    pieces = []
    with FakeProvider(said) as fake:
        error = failure(at(fake, maker, stream=pieces.append))
        assert says.replace("*", fake.openai.split(":")[2][:-3]) in str(error)
    assert error.kind == ("overloaded" if said.error else "connection")
    assert pieces and len(fake.requests) == 1


@BOTH
@pytest.mark.parametrize("first", [Say("One", cut=0, crash=True), Say("One", cut=1, error="overloaded_error"),
                                   Raw(b"<html>", type="text/html"), Say("One", cut=0)])
def test_a_stream_that_said_nothing_is_tried_again(maker, first):
    """As long as nobody has heard a piece."""
    pieces = []
    with FakeProvider(first, Say("One two.")) as fake:
        assert at(fake, maker, stream=pieces.append)(ASK).text == "One two."
    assert "".join(pieces) == "One two." and len(fake.requests) == 2


@BOTH
def test_a_stream_that_goes_on_and_on_ends_with_the_timeout(maker):
    """Every piece comes in time, and all of them together do not."""
    with FakeProvider(Say("x" * 300, pause=0.1)) as fake:
        started = monotonic()
        error = failure(at(fake, maker, stream=True, timeout=0.2))
    assert (error.kind, monotonic() - started < 3) == ("timeout", True)
    assert str(error).endswith("did not answer within 0.2 s")


@BOTH
@EITHER_WAY
def test_signs_of_life_are_no_reply(maker, stream):
    """Some servers send spaces or comments while their model thinks: for a timeout of silence that would go on."""
    with FakeProvider(Drip(times=100, pause=0.05)) as fake:
        started = monotonic()
        error = failure(at(fake, maker, stream=stream, timeout=0.3))
    assert (error.kind, monotonic() - started < 3) == ("timeout", True)
    assert str(error).endswith("did not answer within 0.3 s")
    with FakeProvider(Drip(times=3, pause=0.01)) as fake:
        assert failure(at(fake, maker, stream=stream, retries=0)).kind == "connection"


# ---- every status, and what a person reads


EXPLAINED = "max_tokens: 99999 > 8192, which is the maximum"
STATUSES = [
    (400, "bad_request", f"WHO could not use the request (400): {EXPLAINED}"),
    (401, "auth", "WHO does not accept the key (401): check api_key="),
    (402, "auth", "WHO wants to be paid first (402): the account behind api_key= has no credit"),
    (403, "auth", f"WHO does not allow this with the key (403): {EXPLAINED}: check api_key=, and what its account may "
                  "use"),
    (404, "bad_request", "WHO knows no model 'small' (404): check its name, and base_url= if you gave one"),
    (408, "overloaded", "WHO gave up waiting (408): try again"),
    (409, "overloaded", "WHO is busy with another request (409): try again"),
    (413, "bad_request", "the question is too long for WHO (413): shorten it"),
    (418, "bad_request", f"WHO refused the request (418): {EXPLAINED}"),
    (422, "bad_request", f"WHO could not use the request (422): {EXPLAINED}"),
    (429, "rate_limit", "WHO takes no more requests for now (429): wait a little, or ask less often"),
    (500, "overloaded", "WHO is out of order (500): try again in a minute"),
    (502, "overloaded", "WHO is out of order (502): try again in a minute"),
    (503, "overloaded", "WHO is overloaded (503): try again in a minute"),
    (504, "overloaded", "WHO took too long (504): try again in a minute"),
    (529, "overloaded", "WHO is overloaded (529): try again in a minute"),
]


@BOTH
@EITHER_WAY
@pytest.mark.parametrize("status, kind, sentence", STATUSES)
def test_each_status_is_a_sentence(maker, stream, status, kind, sentence):
    """One sentence for a person and one word for a program, the same for both SDKs, streamed or not."""
    with FakeProvider(Fail(status, f"{EXPLAINED}. See the {{docs}}.")) as fake:
        error = failure(at(fake, maker, stream=stream, retries=0))
    assert (error.kind, str(error)) == (kind, sentence.replace("WHO", f"the server {fake.anthropic[7:]}"))


@pytest.mark.parametrize("code, kind, sentence", [
    ("insufficient_quota", "auth", "the account behind api_key= has no credit left at WHO: add some"),
    ("context_length_exceeded", "bad_request", "the question is too long for 'small': shorten it"),
    ("content_filter", "refused", "WHO will not answer this question: its content filter stopped it"),
    ("content_policy_violation", "refused", "WHO will not answer this question: it breaks its content policy"),
])
def test_some_codes_say_more_than_their_status(code, kind, sentence):
    """And none of them is tried again."""
    with FakeProvider(Fail(429 if code == "insufficient_quota" else 400, code=code)) as fake:
        error = failure(at(fake, openai_model, retries=2))
    assert (error.kind, str(error)) == (kind, sentence.replace("WHO", f"the server {fake.anthropic[7:]}"))
    assert len(fake.requests) == 1


@BOTH
def test_a_provider_is_called_by_its_name(maker):
    """Anthropic and OpenAI by theirs; another server by host and port, without what else an address may hold."""
    for url, who in [(None, {"anthropic_model": "Anthropic", "openai_model": "OpenAI"}[maker.__name__]),
                     ("https://me:secret@llm.example.org/v1?x=secret", "the server llm.example.org"),
                     ("http://127.0.0.1:8080/v1", "the server 127.0.0.1:8080")]:
        model = maker("small", api_key=KEY, base_url=url)
        assert model.where.who == who
        assert repr(model) == f"{type(model).__name__}('small', {who})"


MALFORMED = {
    "a page": Raw(b"<html>{hello}</html>", type="text/html"), "half": Raw(b'{"content": ['), "nothing": Raw(b""),
    "a list": Raw(b"[1]"), "null": Raw(b"null"), "an empty object": Raw(b"{}"), "no UTF-8": Raw(b'{"\xff": 1}'),
    "wrong types": Raw(b'{"content": 5, "choices": 7, "usage": "x"}'),
    "wrong inside": Raw(b'{"content": [{"type": "text"}], "choices": [{"message": 3}], "usage": {}}'),
    "no JSON in a stream": Raw(b"event: message_start\ndata: {nope\n\n", type="text/event-stream"),
    "nonsense in a stream": Raw(b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 7}\n\n'
                                b"data: [1]\n\n", type="text/event-stream"),
}


@BOTH
@EITHER_WAY
@pytest.mark.parametrize("said", MALFORMED.values(), ids=MALFORMED)
def test_a_body_that_is_no_reply_is_said_to_be_none(maker, stream, said):
    """The SDKs check nothing, or fail in many ways; a person reads one sentence."""
    with FakeProvider(said) as fake:
        error = failure(at(fake, maker, stream=stream, retries=0))
    assert error.kind == "connection"
    assert str(error) == (f"the server {fake.anthropic[7:]} sent something that is no reply of a model: is it one, "
                          "at this address?")


@BOTH
@pytest.mark.parametrize("body", [b"", b"<html>oops {key}</html>", b'{"error": 5}', b'{"error": {"message": {"a": 1}}}',
                                  b"[]", b'{"error": {"message": "{\\"json\\": true}"}}'])
def test_an_error_without_an_explanation_has_none(maker, body):
    """Whatever the body is, nothing of it gets into the sentence but words."""
    with FakeProvider(Raw(body, 400, "text/html" if b"html" in body else "application/json")) as fake:
        error = failure(at(fake, maker))
    assert str(error) == f"the server {fake.anthropic[7:]} could not use the request (400)"


def test_an_explanation_is_words_of_one_sentence():
    """Control characters and all after the first sentence are left out; it is shortened; a plain text will do."""
    for body, shown in [
        ({"error": "model 'x' not found, try pulling it first"}, ": model 'x' not found, try pulling it first"),
        ({"error": {"message": "No\x1b[31m such\u202e tool.\nSecond sentence."}}, ": No"),
        ({"error": {"message": "a" * 500}}, ": " + "a" * 157 + "..."),
        ({"error": {"message": "Prompt is too long: 21 > 20. Shorten it."}}, ": Prompt is too long: 21 > 20"),
    ]:
        with FakeProvider(Raw(json.dumps(body).encode(), 400)) as fake:
            assert str(failure(at(fake, openai_model))).partition("(400)")[2] == shown


# ---- keys


@BOTH
@EITHER_WAY
@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
def test_a_key_is_never_said(maker, stream, status):
    """Not in the sentence, nor in what hangs on to the error, though the provider says it in body and headers."""
    said = f"Incorrect API key provided: {KEY} (Bearer {KEY})"
    with FakeProvider(Fail(status, said, headers={"x-key": KEY})) as fake:
        model = at(fake, maker, stream=stream, retries=0)
        error = failure(model)
    assert (error.__cause__, error.__context__) == (None, None)
    shown = [str(error), repr(error), repr(vars(error)), repr(model), repr(model.where),
             "".join(traceback.format_exception(error))]
    assert [text for text in shown if KEY in text] == []
    if status == 400:
        assert "Incorrect API key provided: [key] ([key])" in str(error)


@BOTH
def test_a_key_of_any_form_is_taken_out(maker):
    """The model's own, whatever it looks like; one too short to be a key might be a word, and is left."""
    with FakeProvider(Fail(400, "No unusual secret for max_tokens")) as fake:
        assert str(failure(at(fake, maker, api_key="unusual secret"))).endswith("(400): No [key] for max_tokens")
        assert str(failure(at(fake, maker, api_key="max"))).endswith("(400): No unusual secret for max_tokens")


@BOTH
def test_a_model_that_was_given_a_key_does_not_pickle(maker, monkeypatch):
    """A key must not lie in a file: what travels reads its key from the environment where it arrives."""
    with pytest.raises(TypeError, match="a key must not get into a pickle: set [A-Z]*_API_KEY instead") as caught:
        pickle.dumps(maker("small", api_key=KEY))
    assert KEY not in str(caught.value)
    with FakeProvider(Say("hello")) as fake:
        variable = maker("small", api_key=KEY).variable
        monkeypatch.setenv(variable, KEY)
        packed = pickle.dumps(at(fake, maker, api_key=None))
        assert KEY.encode() not in packed
        assert pickle.loads(packed)(ASK).text == "hello"
        assert KEY in json.dumps(fake.requests[0].headers)


# ---- when nobody answers


@BOTH
@EITHER_WAY
def test_a_slow_answer_is_a_timeout(maker, stream):
    """Within the time asked for, with the time named, and not asked again: there is none left."""
    with FakeProvider(Say("late", delay=5)) as fake:
        started = monotonic()
        error = failure(at(fake, maker, stream=stream, timeout=0.1))
    assert (error.kind, str(error)) == ("timeout", f"the server {fake.anthropic[7:]} did not answer within 0.1 s")
    assert monotonic() - started < 3


@BOTH
def test_a_host_that_takes_no_connection_is_a_timeout(maker):
    """A packet that is never answered, as behind a firewall: a sentence within the time asked for, retries included."""
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for waiting in (first, second):  # the queue is full then, and the system answers nobody else
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        started = monotonic()
        error = failure(maker("small", api_key="wrong", timeout=0.3, base_url=f"http://127.0.0.1:{full.getsockname()[1]}"))
    assert (error.kind, str(error).endswith("did not answer within 0.3 s")) == ("timeout", True)
    assert monotonic() - started < 3


@BOTH
def test_a_host_that_refuses_is_a_sentence(maker):
    """Nothing runs at that port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    error = failure(maker("small", api_key="wrong", base_url=f"http://127.0.0.1:{port}"))
    assert (error.kind, str(error)) == ("connection", f"no connection to the server 127.0.0.1:{port}: nothing answers "
                                                      "there; is it running? (tried 3 times)")


@BOTH
def test_a_machine_without_a_network_is_a_sentence(maker, monkeypatch):
    """The real host cannot be looked up: the provider by name, and no stack of five exceptions."""
    def nowhere(*args, **kwargs):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    started = monotonic()
    error = failure(maker("small", api_key="wrong", timeout=2))
    name = {"anthropic_model": "Anthropic", "openai_model": "OpenAI"}[maker.__name__]
    assert str(error) == (f"no connection to {name}: its address was not found; is there a network? (tried 3 times)")
    assert monotonic() - started < 3


@pytest.mark.parametrize("cause, says", [
    (ssl.SSLCertVerificationError("self-signed"), "no safe connection to X: its certificate is not trusted; is there a "
                                                  "proxy in between?"),
    (ConnectionResetError("by peer"), "the connection to X broke off"),
    (OSError("no route"), "the connection to X broke off"),
    (type("ConnectError", (Exception,), {})("no"), "no connection to X: is there a network, and is base_url= right if "
                                                   "you gave one?"),
])
def test_other_reasons_for_no_connection(cause, says):
    """A certificate that is not trusted, as behind a school's proxy, and the rest."""
    error = type("APIConnectionError", (Exception,), {})()
    error.__context__ = cause
    assert str(border.translated(error, border.Where("X", "small", 1, "api_key="))) == says


def test_a_circle_of_causes_is_walked_once():
    """An exception may be its own cause's cause."""
    error, other = type("APIConnectionError", (Exception,), {})(), ValueError()
    error.__context__, other.__context__ = other, error
    assert within(5, lambda: border.translated(error, border.Where("X", "small", 1, "api_key="))).kind == "connection"


@BOTH
def test_half_a_character_cannot_be_sent(maker):
    """A lone surrogate, as in a file name that is no UTF-8, is a sentence and no request."""
    with FakeProvider(Say("ok")) as fake:
        error = failure(at(fake, maker), [Message("user", "a\ud800b")])
    assert (error.kind, fake.requests) == ("bad_request", [])
    assert str(error) == "the question holds half a character (a lone surrogate), which cannot be sent"


# ---- asking again


@BOTH
@EITHER_WAY
@pytest.mark.parametrize("first", [Fail(429), Fail(500), Fail(529), Fail(408), Raw(b"{")], ids=str)
def test_what_may_be_gone_is_tried_again(maker, stream, first):
    """A busy or broken server is asked up to twice more; each time is an event `retry` of the node."""
    heard = Heard()
    with FakeProvider(first, first, Say("hello")) as fake:
        graph = Graph().add_node(llm_node("say", "Hi", "said", at(fake, maker, stream=stream))).add_edge(START, "say")
        assert run_graph(graph, {}, heard)["said"] == "hello"
    assert len(fake.requests) == 3
    assert [(event["node"], event["attempt"], event["attempts"], event["delay"]) for event in heard["retry"]] == [
        ("say", 1, 3, 0.01), ("say", 2, 3, 0.02)]
    assert heard["retry"][0]["error"].startswith("ModelError: the server 127.0.0.1")


@BOTH
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_what_will_not_be_gone_is_not(maker, status):
    """A wrong key is as wrong the second time."""
    with FakeProvider(Fail(status)) as fake:
        failure(at(fake, maker))
    assert len(fake.requests) == 1


@BOTH
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_the_number_of_retries_is_an_argument(maker, retries):
    """The SDK adds none of its own, and the sentence counts the tries."""
    with FakeProvider(Fail(529)) as fake:
        error = failure(at(fake, maker, retries=retries))
    assert len(fake.requests) == retries + 1
    assert str(error).endswith(f" (tried {retries + 1} times)" if retries else "in a minute")


@pytest.fixture
def pauses(monkeypatch):
    """The pauses between tries, which nobody waits for."""
    slept = []
    monkeypatch.setattr(service, "sleep", slept.append)
    return slept


@BOTH
@pytest.mark.parametrize("headers, seconds", [
    ({"retry-after": "1.5"}, 1.5), ({"retry-after-ms": "250", "retry-after": "1"}, 0.25), ({}, 0.01),
    ({"retry-after": "Thu, 01 Jan 2026 00:00:00 GMT"}, 0.01), ({"retry-after": "soon"}, 0.01),
    ({"retry-after": "0"}, 0.01), ({"retry-after": "-1"}, 0.01), ({"retry-after": "inf"}, 0.01),
    ({"retry-after": "nan"}, 0.01)])
def test_a_server_may_say_when(maker, headers, seconds, pauses):
    """`retry-after` is kept to, in seconds, milliseconds or as a date; nonsense counts for nothing."""
    with FakeProvider(Fail(429, headers=headers), Say("hello")) as fake:
        assert at(fake, maker)(ASK).text == "hello"
    assert pauses == [seconds]


def test_a_date_is_a_time_to_wait_until(pauses):
    """In whole seconds from now."""
    later = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=100), usegmt=True)
    with FakeProvider(Fail(429, headers={"retry-after": later}), Say("hello")) as fake:
        assert at(fake, openai_model, timeout=500)(ASK).text == "hello"
    assert 50 < pauses[0] <= 100


@BOTH
def test_a_server_that_asks_for_longer_is_not_waited_for(maker):
    """What lies beyond the timeout is said at once; the SDKs would sleep for it."""
    with FakeProvider(Fail(429, headers={"retry-after": "9"})) as fake:
        started = monotonic()
        error = failure(at(fake, maker, timeout=5))
    assert monotonic() - started < 5
    assert str(error).endswith("or ask less often (it asks to be left alone for 9 s)")
    assert (error.kind, len(fake.requests)) == ("rate_limit", 1)


@BOTH
def test_all_tries_together_keep_the_timeout(maker, monkeypatch):
    """No pause begins that would not end in time, however many tries there may be."""
    monkeypatch.setattr(service, "PAUSE", 0.1)
    with FakeProvider(Fail(500)) as fake:
        started = monotonic()
        error = failure(at(fake, maker, retries=5, timeout=0.5))
    assert monotonic() - started < 5
    assert (error.kind, len(fake.requests) <= 3) == ("overloaded", True)


@BOTH
def test_pauses_are_real_in_virtual_time(maker, pauses):
    """A server is not less busy because nobody waited: the virtual clock stands still."""
    with FakeProvider(Fail(429, headers={"retry-after": "2"}), Say("hello")) as fake, virtual_time() as clock:
        assert at(fake, maker)(ASK).text == "hello"
        assert (clock.now(), pauses) == (0, [2])


# ---- making a model


@pytest.mark.parametrize("maker, name, variable", [
    (anthropic_model, "Anthropic", "ANTHROPIC"), (openai_model, "OpenAI", "OPENAI")])
def test_without_a_key_one_sentence_says_which(maker, name, variable, monkeypatch):
    """And that the stub needs none; the SDK is not even loaded."""
    monkeypatch.setitem(sys.modules, name.lower(), None)
    with pytest.raises(ModelError) as caught:
        maker("small")
    assert (caught.value.kind, str(caught.value)) == (
        "auth", f"no key for {name}: set {variable}_API_KEY, or use the stub, which needs none")
    with pytest.raises(ModelError, match=f"which model of {name}\\? Give its name, or set {variable}_MODEL"):
        maker(api_key=KEY)
    with pytest.raises(ImportError, match=rf'{name}\'s models need the extra "llm": pip install -e "\.\[llm\]"'):
        maker("small", api_key=KEY)


@pytest.mark.parametrize("options, says", [
    ({"timeout": 0}, "timeout=0: a timeout is a number of seconds above 0"),
    ({"timeout": None}, "timeout=None: a timeout"), ({"timeout": float("inf")}, "timeout=inf"),
    ({"timeout": True}, "timeout=True"), ({"retries": -1}, "retries=-1: it counts further tries, 0 or more"),
    ({"retries": 1.5}, "retries=1.5"), ({"retries": True}, "retries=True"),
    ({"stream": "yes"}, "stream='yes': it is True, False, or a function that takes the pieces of a reply"),
    ({"base_url": "localhost:8080"}, "base_url='localhost:8080': an address begins with http:// or https://"),
])
@BOTH
def test_what_no_model_could_work_with_is_refused_at_once(maker, options, says):
    """Times, counts and addresses, where the model is made."""
    with pytest.raises((TypeError, ValueError), match=says):
        maker("small", api_key=KEY, **options)


@BOTH
def test_a_server_of_ones_own_needs_no_key(maker):
    """The SDKs want one, and get one that opens nothing."""
    with FakeProvider(Say("hello")) as fake:
        assert at(fake, maker, api_key=None)(ASK).text == "hello"
    assert fake.requests[0].headers["authorization"] == "Bearer none"


@BOTH
def test_a_model_that_is_gone_holds_no_connection(maker):
    """The HTTP client it opened is closed with it."""
    with FakeProvider(Say("hello")) as fake:
        model = at(fake, maker)
        assert model(ASK).text == "hello"
        http = model.client._client
        del model
        gc.collect()
    assert http.is_closed


@BOTH
def test_a_client_of_ones_own_is_used_as_it_is(maker):
    """Its key, its address and its headers stand; it is only told not to try again by itself."""
    import anthropic
    import openai
    with FakeProvider(Fail(401, "no"), Fail(500)) as fake:
        sdk, url = ((anthropic.Anthropic, fake.anthropic) if maker is anthropic_model else (openai.OpenAI, fake.openai))
        client = sdk(api_key=KEY, base_url=url, default_headers={"x-class": "7b"})
        model = maker("small", client=client, retries=0)
        assert str(failure(model)).endswith("(401): check the key of your client")
        assert failure(model).kind == "overloaded"
        assert [asked.headers["x-class"] for asked in fake.requests] == ["7b"] * 2


def test_an_error_in_a_stream_may_say_what_it_is_by_its_code():
    """OpenAI's types are vague, and its codes are not."""
    error = type("APIError", (Exception,), {"type": "tokens", "code": "rate_limit_exceeded", "body": None})()
    assert border.translated(error, border.Where("X", "small", 1, "api_key=")).kind == "rate_limit"


def test_a_client_may_be_a_stand_in():
    """Whatever has the SDK's one method will do."""
    class Stand:
        def __init__(self):
            self.chat = self.completions = self

        def create(self, **request):
            raise TimeoutError

    assert str(failure(openai_model("small", client=Stand()))) == "OpenAI did not answer within 60 s"


@BOTH
def test_the_environment_is_read_when_a_model_is_made(maker, monkeypatch):
    """Name, key and address, when they are not given; what is given comes first."""
    with FakeProvider(Say("hello")) as fake:
        prefix, url = ("ANTHROPIC", fake.anthropic) if maker is anthropic_model else ("OPENAI", fake.openai)
        monkeypatch.setenv(f"{prefix}_API_KEY", KEY)
        monkeypatch.setenv(f"{prefix}_MODEL", "tiny")
        monkeypatch.setenv(f"{prefix}_BASE_URL", url)
        assert maker()(ASK).text == maker("small", api_key="another-key")(ASK).text == "hello"
    assert [asked.body["model"] for asked in fake.requests] == ["tiny", "small"]
    assert [KEY in json.dumps(asked.headers) for asked in fake.requests] == [True, False]


def test_loading_the_adapters_loads_no_sdk_and_reads_no_environment():
    """The SDK is imported when a model is made; keys are read then too."""
    code = f"""
import sys, os
sys.path.insert(0, {str(ROOT)!r})
import logging, ssl, socket, email.utils, urllib.parse, difflib, hashlib, threading, warnings, collections, pathlib
class Watched(dict):
    def __getitem__(self, key): raise SystemExit(f"read {{key}}")
    get = __contains__ = lambda self, key, default=None: self[key]
os.environ = Watched()
import minigraph.models.anthropic, minigraph.models.openai, minigraph.models.env, minigraph.models.replay
print(sorted({{"anthropic", "openai", "httpx2", "pydantic"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    assert (ast.literal_eval(done.stdout or "None"), done.stderr) == ([], "")


# ---- which model this machine is set up for


STUB = "ScriptedModel('stub', answers from _stubbed, calls so far: 0)"


@pytest.mark.parametrize("environment, made", [
    ({}, STUB),
    ({"ANTHROPIC_MODEL": "a", "ANTHROPIC_API_KEY": KEY}, "AnthropicModel('a', Anthropic)"),
    ({"OPENAI_MODEL": "o", "OPENAI_API_KEY": KEY}, "OpenAIModel('o', OpenAI)"),
    ({"OPENAI_MODEL": "o", "OPENAI_BASE_URL": "http://127.0.0.1:81/v1"}, "OpenAIModel('o', the server 127.0.0.1:81)"),
    ({"ANTHROPIC_MODEL": "a", "ANTHROPIC_API_KEY": KEY, "OPENAI_MODEL": "o", "OPENAI_API_KEY": KEY},
     "AnthropicModel('a', Anthropic)"),
    ({"ANTHROPIC_API_KEY": KEY, "OPENAI_MODEL": "o", "OPENAI_API_KEY": KEY}, "OpenAIModel('o', OpenAI)"),
    ({"ANTHROPIC_MODEL": "", "OPENAI_MODEL": "", "OPENAI_API_KEY": ""}, STUB),
])
def test_the_environment_picks_the_model(environment, made, monkeypatch):
    """The provider whose model is named, the first of two; with nothing set, the stub."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert repr(model_from_env()) == made


@pytest.mark.parametrize("environment, says", [
    ({"OPENAI_API_KEY": KEY}, "OPENAI_API_KEY is set, but no model is named: set OPENAI_MODEL too, or unset the key, "
                              "and the stub answers"),
    ({"ANTHROPIC_MODEL": "a"}, "no key for Anthropic: set ANTHROPIC_API_KEY, or use the stub, which needs none"),
])
def test_half_a_setup_is_a_sentence(environment, says, monkeypatch):
    """A run that looks live and is not would be worse than an error."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ModelError) as caught:
        model_from_env()
    assert str(caught.value) == says


def test_the_stub_may_be_ones_own():
    """A notebook has its script ready; the default says what it is."""
    mine = ScriptedModel(["yes"])
    assert model_from_env(mine, timeout=5, stream=True) is mine
    assert model_from_env()(ASK).text == "This is the stub, which understands nothing. It was asked: What is 2 + 3?"


def test_options_go_to_the_model_that_is_made(monkeypatch):
    """As arguments of its maker."""
    monkeypatch.setenv("OPENAI_MODEL", "o")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = model_from_env(timeout=5, retries=1, temperature=0)
    assert (model.timeout, model.retries, model.options) == (5, 1, {"temperature": 0})


# ---- in the room


def test_the_suite_asks_nobody_else():
    """No key is in the environment of these tests, and none of them leaves a thread of the SDKs behind."""
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
    assert [thread.name for thread in threading.enumerate() if "httpx" in thread.name.lower()] == []


def test_no_key_lies_in_the_tree():
    """Nothing in the repository has the form of a secret key, recordings and notebooks included."""
    folders = [ROOT / name for name in ("minigraph", "tests", "data", "notebooks", "docs")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in [*files, *ROOT.glob("*.*")]
             if path.is_file()}
    assert len(texts) > 50
    assert [str(path) for path, text in texts.items() if without_keys(text) != text] == []
