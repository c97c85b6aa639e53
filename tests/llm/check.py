"""Both SDKs against a small real model, by `make llm-test`: what is proved is the path, not the wisdom at its end.

It is not a part of `make test`: it installs about 200 MB, and takes a minute or two, more on a busy machine. What was
asked and answered is printed.
"""

from __future__ import annotations

import time

import pytest
from small_model import CONTEXT, KEY, NAME, serving

from minigraph import START, Graph, run_graph
from minigraph.models import Message, ModelError, Reply
from minigraph.models.anthropic import anthropic_model
from minigraph.models.openai import openai_model
from minigraph.models.replay import recorded
from minigraph.nodes import llm_node
from minigraph.trace import Trace
from minigraph.workflows import gather

COLOURS = [Message("system", "You are brief."), Message("user", "Name three colours.")]


@pytest.fixture(scope="module")
def url():
    with serving() as address:
        print(f"\n{NAME} at {address}")
        yield address


@pytest.fixture(params=[openai_model, anthropic_model], ids=["openai", "anthropic"])
def make(request, url):
    """make(...) is a model reached by one of the SDKs; what it is asked and says is printed."""
    def make(**options):
        base = f"{url}/v1" if request.param is openai_model else url
        model = request.param(NAME, **{"api_key": KEY, "base_url": base, "timeout": 300, "max_tokens": 30, **options})
        return Told(request.node.callspec.id, model)

    return make


class Told:
    """A model that tells what passes."""

    def __init__(self, sdk, model):
        self.sdk, self.model, self.name = sdk, model, model.name

    def __call__(self, messages, tools=None):
        started = time.monotonic()
        reply = self.model(messages, tools)
        asked = messages[-1].content
        shown = asked if len(asked) < 200 else f"{asked[:90]} ... {asked[-90:]}"
        print(f"\n[{self.sdk}, {time.monotonic() - started:.1f} s, {reply.stop_reason}, {reply.usage}]\n"
              f"  asked: {shown!r}\n  said:  {reply.text!r}")
        return reply


def test_it_answers(make):
    """Text, a stop reason of ours, tokens counted; the same question gets the same reply."""
    first, second = make()(COLOURS), make()(COLOURS)
    assert first.text and first.text == second.text
    assert first.stop_reason in ("end", "max_tokens")
    assert first.usage["input_tokens"] > 10 and 0 < first.usage["output_tokens"] <= 30


def test_a_limit_is_kept(make):
    """A reply that is cut off says so."""
    reply = make(max_tokens=4)([Message("user", "Tell me a long story.")])
    assert (reply.stop_reason, reply.usage["output_tokens"]) == ("max_tokens", 4)


def test_it_streams(make):
    """Word by word, and in the end what it says without a stream."""
    pieces = []
    assert make(stream=pieces.append)(COLOURS).text == "".join(pieces) == make()(COLOURS).text
    assert len(pieces) > 5


def test_a_node_streams_into_the_trace(make):
    """An llm_node's pieces are its events; the blackboard holds the whole."""
    trace = Trace()
    graph = Graph().add_node(llm_node("name", "Name three {what}.", "said", make(stream=True)))
    state = run_graph(graph.add_edge(START, "name"), {"what": "colours"}, trace)
    assert "".join(event["text"] for event in trace.of("text")) == state["said"] != ""
    assert trace.of("llm")[0]["usage"]["output_tokens"] > 5


def test_parsing_may_fail(make):
    """A model of this size does not keep to a format: the failure is the node's, and quotes what it said."""
    rate = llm_node("rate", "From 0 to 1, how urgent is this? Only the number. {text}", "score", make(), parse=float)
    graph = Graph().add_node(rate).add_edge(START, "rate")
    state = run_graph(graph, {"text": "The printer is on fire."})
    assert isinstance(state.get("score"), float) or "is not a plain number" in state.errors["rate"]


def test_gather_writes_its_digest(make, tmp_path):
    """The morning routine with a real model: one call, one file, and in it what the model said."""
    state, trace = gather.run(model=make(max_tokens=40), outbox=tmp_path, measured=False)
    (digest,) = tmp_path.iterdir()
    assert state.status == "done" and len(trace.of("llm")) == 1
    first_words = state["synthesis"].split()[:3]
    assert first_words and all(word in digest.read_text(encoding="utf-8") for word in first_words)


def test_a_recording_answers_in_its_place(make, tmp_path):
    """What it said once is said again without it."""
    live = recorded(make(), tmp_path / "replies.jsonl")(COLOURS)
    again = recorded(None, tmp_path / "replies.jsonl")(COLOURS)
    assert isinstance(again, Reply) and again == live


@pytest.mark.parametrize("options, text, kind, says", [
    ({"api_key": "wrong"}, "Hello", "auth", "does not accept the key (401): check api_key="),
    ({}, "word " * (CONTEXT + 1000), "bad_request", "could not use the request (400): request ("),
])
def test_it_fails_in_sentences(make, options, text, kind, says):
    """A wrong key, a question that is too long: the server's own errors, in our words."""
    with pytest.raises(ModelError) as caught:
        make(**options)([Message("user", text)])
    print(f"\n{caught.value.kind}: {caught.value}")
    assert caught.value.kind == kind and says in str(caught.value)
