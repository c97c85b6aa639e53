"""A recording: the same question, the same reply, in a file that a person can read and that holds no secret."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fake_provider import Call, FakeProvider, Say, unset

from minigraph import START, Graph, run_graph
from minigraph.clock import now, virtual_time
from minigraph.loop import run_loop
from minigraph.models import Message, ModelError, Reply, ScriptedModel, ToolCall, ToolSpec
from minigraph.models.base import without_keys
from minigraph.models.openai import openai_model
from minigraph.models.replay import key_of, recorded
from minigraph.nodes import llm_node
from minigraph.workflows import gather

ROOT = Path(__file__).resolve().parent.parent
ADD = ToolSpec("add", "The sum of two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})


def ask(text):
    return [Message("user", text)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replies.jsonl"


def lines(path):
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def miss(recording, messages, tools=None):
    with pytest.raises(ModelError) as caught:
        recording(messages, tools)
    return str(caught.value)


# ---- recording, and replaying


def test_what_was_asked_is_answered_again(path):
    """A live model is asked once for each question; without it the file answers, in any order, as it did."""
    calls = (ToolCall("c1", "add", {"a": [1, None, "ä{x}"]}),)
    live = ScriptedModel(["one", Reply("", calls, usage={"output_tokens": 2}), Reply("cut", stop_reason="max_tokens")])
    recording = recorded(live, path)
    first = [recording(ask("1?")), recording(ask("2?"), [ADD]), recording(ask("3?"))]
    replay = recorded(None, path)
    again = [replay(ask("3?")), replay(ask("2?"), [ADD]), replay(ask("1?"))]
    assert again == first[::-1] == [
        Reply("cut", stop_reason="max_tokens"), Reply("", calls, usage={"output_tokens": 2}), Reply("one")]
    assert len(live.calls) == 3


def test_a_live_model_is_asked_only_what_is_missing(path):
    """What is in the file is not asked again, in the next run."""
    recorded(ScriptedModel(["one"]), path)(ask("1?"))
    live = ScriptedModel(["two"])
    recording = recorded(live, path)
    assert [recording(ask(text)).text for text in ("1?", "2?")] == ["one", "two"]
    assert [asked.messages for asked in live.calls] == [ask("2?")]
    assert len(lines(path)) == 2


def test_one_question_asked_several_times_gets_its_replies_in_order(path):
    """The n-th time gets the n-th reply; a live model is asked for one more; without it the last is given again."""
    recording = recorded(ScriptedModel(["red", "blue"]), path)
    assert [recording(ask("Colour?")).text for _ in range(2)] == ["red", "blue"]
    replay = recorded(None, path)
    assert [replay(ask("Colour?")).text for _ in range(4)] == ["red", "blue", "blue", "blue"]
    recording = recorded(ScriptedModel(["green"]), path)
    assert [recording(ask("Colour?")).text for _ in range(3)] == ["red", "blue", "green"]
    assert [recorded(None, path)(ask("Colour?")).text for _ in range(2)] == ["red", "red"]


def test_a_model_that_fails_is_not_recorded(path):
    """The error goes through, and the question stays open."""
    recording = recorded(ScriptedModel([ModelError("overloaded", "busy"), "now"]), path)
    with pytest.raises(ModelError, match="busy"):
        recording(ask("Now?"))
    assert not path.exists()
    assert recording(ask("Now?")).text == "now"
    assert recorded(None, path)(ask("Now?")).text == "now"
    with pytest.raises(ModelError, match="returned a str; a model returns"):
        recorded(lambda messages, tools=None: "no Reply", path)(ask("Else?"))
    assert len(lines(path)) == 1


def test_a_whole_loop_is_replayed(path):
    """Also when the provider's ids of calls are other ones: what was asked is known by position, not by id."""
    def add(a: int, b: int = 0) -> int:
        return a + b

    calls = (ToolCall("call_x7", "add", {"a": 2, "b": 3}), ToolCall("call_x8", "add", {"a": 1}))
    recording = run_loop(recorded(ScriptedModel([Reply("", calls), "5 and 1"]), path), [add], "Add.")
    path.write_text(path.read_text(encoding="utf-8").replace("call_x7", "call_other"), encoding="utf-8")
    replay = run_loop(recorded(None, path), [add], "Add.")
    assert replay.messages[-1] == recording.messages[-1] == Message("assistant", "5 and 1")
    assert [call.id for call in replay.messages[1].tool_calls] == ["call_other", "call_x8"]


def test_a_recording_goes_by_the_name_of_what_it_recorded(path):
    """So that the events of a replay are those of the run."""
    recording = recorded(ScriptedModel(["one"], name="small"), path)
    recording(ask("1?"))
    assert recording.name == recorded(None, path).name == "small"
    assert repr(recording) == f"Recording({str(path)!r}, 1 replies, else small is asked)"
    assert repr(recorded(None, path)) == f"Recording({str(path)!r}, 1 replies, none is asked)"


def test_a_replay_may_take_its_time(path):
    """timed=True sleeps what the reply took, on the run's clock; otherwise a replay takes none."""
    with virtual_time():
        recorded(ScriptedModel(["one"], latency=2.5), path)(ask("1?"))
    for timed, seconds in [(True, 2.5), (False, 0)]:
        with virtual_time():
            recorded(None, path, timed=timed)(ask("1?"))
            assert now() == seconds


def test_a_copy_goes_on_by_itself(path):
    """A pickled recording stands where the original stood."""
    recording = recorded(ScriptedModel(["red", "blue", "green"]), path)
    recording(ask("Colour?"))
    copy = pickle.loads(pickle.dumps(recording))
    assert copy(ask("Colour?")).text == recording(ask("Colour?")).text == "blue"


# ---- what is the same question


OTHERS = {
    "other words": (ask("What ?"), None), "other role": ([Message("system", "What?")], None),
    "two messages": ([*ask("What?"), *ask("")], None), "tools": (ask("What?"), [ADD]),
    "other schema": (ask("What?"), [ToolSpec("add", ADD.description, {"type": "object"})]),
    "other description": (ask("What?"), [ToolSpec("add", "", ADD.parameters)]),
    "one message of two": ([Message("user", "What?\nuser: ")], None),
}


def test_a_question_is_its_messages_and_its_tools():
    """Any difference in either makes another one; no tools is the same as none given."""
    keys = [key_of(ask("What?"), None), *[key_of(*other) for other in OTHERS.values()]]
    assert len(set(keys)) == len(keys)
    assert key_of(ask("What?"), []) == key_of(tuple(ask("What?")), None)


def test_the_key_does_not_hang_on_order_or_machine():
    """A literal one, so that recordings stay good: sorted keys, escaped letters, SHA-256."""
    assert key_of(ask("Ä?"), None) == "3b6d8dc0944f780f"
    def talk(call, arguments):
        wish = Message("assistant", "", (ToolCall(call, "add", arguments),))
        return [*ask("x"), wish, Message("tool", "3", tool_call_id=call)]

    assert key_of(talk("i", {"a": 1, "b": 2}), [ADD]) == key_of(talk("j", {"b": 2, "a": 1}), [ADD])


# ---- the file


def test_the_file_is_one_readable_line_a_reply(path):
    """Question and reply in clear, beside the key; numbers where they were measured; nothing else."""
    with virtual_time():
        model = ScriptedModel([Reply("Grüße 🙂", usage={"output_tokens": 3})], latency=1.5, name="small")
        recorded(model, path)([Message("system", "Be brief."), *ask("Say {hello}.")], [ADD])
    key = key_of([Message("system", "Be brief."), *ask("Say {hello}.")], [ADD])
    assert lines(path) == [
        f'{{"key": "{key}", "asked": [{{"role": "system", "content": "Be brief."}}, {{"role": "user", "content": "Say '
        '{hello}."}], "tools": ["add"], "reply": {"text": "Grüße 🙂", "stop_reason": "end", "usage": {"output_tokens": '
        '3}}, "model": "small", "seconds": 1.5}']


def test_what_breaks_a_line_or_hides_in_one_is_escaped(path):
    """Ends of lines of every kind, controls, marks that turn the text around, and half characters; all come back."""
    text = "a\nb\r\u2028\u2029\x85\x00\x1b\x7f\u202e\ufeff\ud800 {x} <b>"
    recorded(ScriptedModel([text]), path)(ask(text))
    raw = path.read_bytes()
    assert raw.count(b"\n") == 1 and len(raw.decode("utf-8").splitlines()) == 1
    assert all(sign.isprintable() for sign in raw.decode("utf-8")[:-1])
    assert recorded(None, path)(ask(text)).text == text


KEYS = ["sk-" + "ant-api03-AbCd_1234567890xyz", "sk-" + "proj-0123456789abcdef", "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "0123456789abcdefghij0123456789abcdef"]


def test_a_secret_is_not_stored(path):
    """Neither from a question, nor from a reply, its calls or the messages of tools: "[key]" stands in its place."""
    said = Reply(f"\n{KEYS[0]}\n", (ToolCall("c", "send", {"to": {"list": [KEYS[1]], KEYS[2]: "x"}}),))
    live = ScriptedModel([said, Reply("done")])
    talk = [Message("user", f"My key:\t{KEYS[3]}.")]
    recording = recorded(live, path)
    assert recording(talk).text == said.text
    recording([*talk, Message("assistant", said.text, said.tool_calls), Message("tool", KEYS[0], tool_call_id="c")])
    text = path.read_text(encoding="utf-8")
    assert [key for key in KEYS if key in text] == []
    assert recorded(None, path)(talk).text == "\n[key]\n"


def test_nothing_of_the_request_is_stored_but_the_question(path, monkeypatch):
    """No header, no key and no address of the provider's get into the file of a live run."""
    unset(monkeypatch)
    with FakeProvider(Say("hello", (Call("c1", "add", {"a": 1}),))) as fake:
        live = openai_model("small", api_key="an-unusual-key", base_url=fake.openai, temperature=0.5)
        recorded(live, path)(ask("Hi"), [ADD])
    text = path.read_text(encoding="utf-8")
    assert all(word not in text for word in ("an-unusual-key", "127.0.0.1", "temperature", "authorization", "Bearer"))
    assert set(json.loads(text)) == {"key", "asked", "tools", "reply", "model", "seconds"}


def test_a_folder_is_made_when_there_is_something_to_put_in_it(tmp_path):
    """Not before."""
    path = tmp_path / "a" / "b" / "replies.jsonl"
    recording = recorded(ScriptedModel(["one"]), str(path))
    assert not (tmp_path / "a").exists()
    recording(ask("1?"))
    assert len(lines(path)) == 1


def test_a_megabyte_is_a_line_too(path):
    """Questions and replies of any length."""
    text = "{x}\u2028🙂" * 150_000
    recorded(ScriptedModel([text]), path)(ask(text))
    assert recorded(None, path)(ask(text)).text == text


# ---- runs that write at once, and runs that were killed


def test_nodes_that_run_at_once_may_record(path):
    """Every reply is a whole line, and no question is lost."""
    graph = Graph()
    model = recorded(ScriptedModel(lambda messages, tools: messages[-1].content.upper() * 1000), path)
    for number in range(40):
        graph.add_node(llm_node(f"n{number}", f"word{number}", f"out{number}", model)).add_edge(START, f"n{number}")
    state = run_graph(graph, {}, max_workers=16)
    replay = recorded(None, path)
    for number in range(40):
        assert replay(ask(f"word{number}")).text == state[f"out{number}"] == f"WORD{number}" * 1000
    assert len(lines(path)) == 40


def test_threads_that_ask_the_same_share_the_replies(path):
    """Each reply goes to one of them, and each time is recorded."""
    model = recorded(ScriptedModel([str(number) for number in range(100)]), path)
    with ThreadPoolExecutor(8) as pool:
        first = sorted(pool.map(lambda _: int(model(ask("Number?")).text), range(100)))
        replay = recorded(None, path)
        again = sorted(pool.map(lambda _: int(replay(ask("Number?")).text), range(100)))
    assert first == again == list(range(100))


def test_processes_may_share_a_file(path):
    """Lines are added whole, at the end, whoever else does it at the moment."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from minigraph.models.stub import ScriptedModel
from minigraph.models.replay import recorded
from minigraph.models.base import Message
model = recorded(ScriptedModel(lambda messages, tools: messages[-1].content * 2000), {str(path)!r})
for number in range(50):
    model([Message("user", f"{{sys.argv[1]}}-{{number}} ")])
"""
    running = [subprocess.Popen([sys.executable, "-c", code, name]) for name in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    replay = recorded(None, path)
    assert len(replay.takes) == 150
    assert replay(ask("b-49 ")).text == "b-49 " * 2000


def test_half_a_line_is_left_out_with_a_warning(path):
    """A run that was killed while it wrote costs that reply alone, and the next one begins a line of its own."""
    recording = recorded(ScriptedModel(["one", "two"]), path)
    recording(ask("1?")), recording(ask("2?"))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.warns(UserWarning, match="replies.jsonl, line 2: no recorded reply, or half of one; it is left out"):
        recording = recorded(ScriptedModel(["three", "four"]), path)
    recording(ask("3?")), recording(ask("4?"))
    with pytest.warns(UserWarning, match="line 2: "):
        replay = recorded(None, path)
    assert [replay(ask(text)).text for text in ("1?", "3?", "4?")] == ["one", "three", "four"]
    assert "holds no reply to 'user: 2?'" in miss(replay, ask("2?"))


@pytest.mark.parametrize("line", [
    "<<<<<<< HEAD", "5", "null", "[]", "{}", "\x00\xff", '{"key": "k", "asked": [], "reply": "x"}',
    '{"key": "k", "asked": [], "reply": {"text": "x", "colour": "red"}}',
    '{"key": "k", "asked": 5, "reply": {}}', '{"key": "k", "asked": [{"who": "me"}], "reply": {}}',
    '{"key": "k", "asked": [], "reply": {"tool_calls": [{"name": "add"}]}}',
    '{"key": "k", "asked": [], "reply": {"stop_reason": "stop"}}'])
def test_a_line_that_is_no_record_is_left_out_with_a_warning(path, line):
    """Wherever it stands, as after a merge; the others count."""
    recorded(ScriptedModel(["one"]), path)(ask("1?"))
    path.write_bytes(line.encode("latin-1") + b"\n\n" + path.read_bytes())
    with pytest.warns(UserWarning, match="line 1: no recorded reply"):
        replay = recorded(None, path)
    assert replay(ask("1?")).text == "one"


def test_a_line_without_its_end_counts_if_it_is_whole(path):
    """Editors leave it out."""
    recorded(ScriptedModel(["one"]), path)(ask("1?"))
    path.write_bytes(path.read_bytes()[:-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recording = recorded(ScriptedModel(["two"]), path)
    assert (recording(ask("1?")).text, recording(ask("2?")).text) == ("one", "two")
    assert len(recorded(None, path).takes) == 2


# ---- what was never asked


def test_a_miss_names_the_question_and_the_nearest_one(path):
    """It says where the two differ, in which line, and what to do; and no model is asked."""
    recording = recorded(ScriptedModel(["Paris", "Rome", "42"]), path)
    for text in ("What is the capital of France?", "What is the capital of Italy?", "What is 6 times 7?"):
        recording([Message("system", "Be brief."), *ask(text)])
    assert miss(recorded(None, path), [Message("system", "Be brief."), *ask("What is the capital of Itally?")]) == (
        f"{str(path)!r} holds no reply to 'system: Be brief.\\nuser: What is the capital of Itally?'; the nearest is "
        "in line 2, which has '...capital of Italy?' where this has '...capital of Itally?'; record one with "
        "recorded(model, path)")


def test_a_miss_among_long_questions_shows_the_place(path):
    """Not the whole of them; the place of the first difference is shown."""
    recorded(ScriptedModel(["one"]), path)(ask("a" * 100_000 + " red " + "b" * 500))
    said = miss(recorded(None, path), ask("a" * 100_000 + " blue " + "b" * 500))
    assert "which has '...aaaaaaaaaaaaaa red bbbb" in said and "where this has '...aaaaaaaaaaaaaa blue bbb" in said
    assert len(said) < 500 + len(str(path))


@pytest.mark.parametrize("then, today, says", [
    ([ADD], None, "with these tools; line 1 has one with the tools add;"),
    (None, [ADD], "with these tools; line 1 has one with no tools;"),
    ([ADD], [ToolSpec("add", "", {})], "line 1 has one with tools of these names that are described otherwise;"),
])
def test_a_miss_by_tools_alone_says_so(path, then, today, says):
    """The same words with other tools are another question."""
    recorded(ScriptedModel(["one"]), path)(ask("1?"), then)
    assert says in miss(recorded(None, path), ask("1?"), today)


def test_a_recording_of_nothing_says_that(path):
    """An empty file holds no nearest question; no file at all is an error at once, with the way out."""
    path.touch()
    assert miss(recorded(None, path), ask("1?")) == (
        f"{str(path)!r} holds no reply to 'user: 1?', nor to anything else; record one with recorded(model, path)")
    with pytest.raises(FileNotFoundError, match=r"there is no recording at .*; recorded\(model, path\) makes one"):
        recorded(None, path.with_name("other.jsonl"))


def test_a_miss_in_a_large_recording_is_quick(path):
    """A thousand long questions are compared by their last words."""
    recording = recorded(ScriptedModel(lambda messages, tools: "yes"), path)
    for number in range(300):
        recording(ask("the same long beginning " * 200 + f"question {number}"))
    assert "which has" in miss(recorded(None, path), ask("the same long beginning " * 200 + "question 17b"))
    assert "line 18," in miss(recorded(None, path), ask("the same long beginning " * 200 + "question 17b"))


# ---- what ships


SHIPPED = sorted((ROOT / "data" / "replies").glob("*.jsonl"))


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: path.name)
def test_what_ships_can_be_replayed(shipped):
    """Every line is a record, names its model, and holds no key and no path of a machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        takes = recorded(None, shipped).takes
    text = shipped.read_text(encoding="utf-8")
    assert takes and all(take.model != "recording" and take.reply.text for take in takes)
    assert without_keys(text) == text and str(ROOT) not in text


def test_a_real_model_replayed_writes_the_digest(tmp_path):
    """What the small model once made of the morning. If gather asks otherwise by now: python tests/llm/record.py."""
    model = recorded(None, ROOT / "data" / "replies" / "smollm2.jsonl")
    state, _ = gather.run(model=model, outbox=tmp_path, measured=False)
    assert (state.status, state.errors) == ("done", {})
    assert "Release 2.3" in next(tmp_path.iterdir()).read_text(encoding="utf-8")
