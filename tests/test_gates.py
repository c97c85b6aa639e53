"""A gate asks, the run pauses, and whatever is answered, whenever, nothing that was done is done again."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers import Heard, make, within

from minigraph import Graph, GraphError, JournalError, resume_graph, run_graph
from minigraph.nodes import fallback, human_node, key_router, retry, timeout

ROOT = Path(__file__).resolve().parent.parent
SCHEDULES = pytest.mark.parametrize("schedule", ["waves", "ready"])


class Counted:
    """Nodes that count how often each was called, across every run of a test."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        def fn(state: Any) -> dict[str, Any]:
            self.calls[name] += 1
            return {name: self.calls[name]}
        return fn


def two_gates(n: Counted) -> Graph:
    """before, then two gates and a branch beside them at once, then a join of all three."""
    return make("START>before before>ask,tell,beside beside>more ask,tell>join more>join join>END".replace(
        "ask,tell>join", "ask>join tell>join"), before=n.before, beside=n.beside, more=n.more, join=n.join,
        ask={"fn": human_node("ask", "Send {before}?", "sent", choices=["yes", "no"]).fn, "kind": "human"},
        tell={"fn": human_node("tell", "How many?", "many", parse=int).fn, "kind": "human"})


@SCHEDULES
def test_a_gate_pauses_its_branch_and_no_other(schedule: str) -> None:
    """Others go on; what the gate can still reach waits; the questions stand in `.waiting`, with their choices."""
    n, heard = Counted(), Heard()
    state = within(10, lambda: run_graph(two_gates(n), {}, heard, schedule=schedule))
    assert (state.status, state.waiting) == ("paused", {"ask": "Send 1?", "tell": "How many?"})
    assert state.waiting["ask"].choices == ["yes", "no"]
    assert n.calls == {"before": 1, "beside": 1, "more": 1}
    assert [(event["node"], event["question"], event["choices"]) for event in heard["pause"]] == [
        ("ask", "Send 1?", ["yes", "no"]), ("tell", "How many?", None)]
    assert [event["node"] for event in heard["node_end"]] == ["before", "beside", "more"]
    assert heard["graph_end"][0]["status"] == "paused"


@SCHEDULES
@pytest.mark.parametrize("order", [["ask", "tell"], ["tell", "ask"], ["both"]])
def test_answers_in_any_order(schedule: str, order: list[str]) -> None:
    """Two gates answered in either order, one at a time or together: the same end, and a join that ran once."""
    n, given = Counted(), {"ask": {"ask": " YES"}, "tell": {"tell": "3"}, "both": {"tell": "3", "ask": "yes"}}
    records: list[Any] = []
    state = run_graph(two_gates(n), {}, schedule=schedule, journal=records.append)
    for step in order:
        assert state.status == "paused"
        records = json.loads(json.dumps(records))
        state = within(10, lambda step=step: resume_graph(  # noqa: B023
            two_gates(n), list(records), given[step], journal=records.append))  # noqa: B023
    assert state.status == "done"
    assert dict(state) == {"before": 1, "beside": 1, "more": 1, "sent": "yes", "many": 3, "join": 1, "errors": {}}
    assert n.calls == {"before": 1, "beside": 1, "more": 1, "join": 1}
    assert [r["gate"] for r in records[1:] if "gate" in r] == (["tell", "ask"] if order == ["both"] else order)


@pytest.mark.parametrize(("answers", "words"), [
    ({"aks": "yes"}, "no gate 'aks' waits for an answer; waiting: 'ask', 'tell'"),
    ({"ask": "maybe"}, "the answer 'maybe' to gate 'ask': choose one of 'yes', 'no'; the gate still waits"),
    ({"ask": 7}, "the answer 7 to gate 'ask': choose one of 'yes', 'no'"),
    ({"tell": "three"}, "the answer 'three' to gate 'tell': invalid literal for int()"),
    ({"tell": None}, "the answer None to gate 'tell'"),
    ({"before": "x"}, "no gate 'before' waits for an answer"),
    ({"ask": "yes", "tell": "x"}, "the answer 'x' to gate 'tell'"),
    ({"ask/inner": "yes"}, "no gate 'ask/inner' waits"),
    ({"nowhere/ask": "yes"}, "no gate 'nowhere/ask' waits"),
    (["yes"], "answers=['yes'] must be a dict"),
])
def test_a_wrong_answer_changes_nothing(answers: Any, words: str) -> None:
    """An answer to nobody, or one that is none, is refused in one sentence; no call is made, nothing is written."""
    n, records = Counted(), []  # type: Counted, list[Any]
    state = run_graph(two_gates(n), {}, journal=records.append)
    before, calls = list(records), Counter(n.calls)
    with pytest.raises(GraphError) as caught:
        resume_graph(two_gates(n), list(records), answers, journal=records.append)
    assert words in str(caught.value)
    assert (records, n.calls) == (before, calls)
    assert resume_graph(two_gates(n), state.journal, {"ask": "yes", "tell": "1"}).status == "done"


def test_the_second_answer_is_refused() -> None:
    """A gate is answered once: a second answer finds nobody who waits."""
    n, records = Counted(), []  # type: Counted, list[Any]
    run_graph(two_gates(n), {}, journal=records.append)
    resume_graph(two_gates(n), list(records), {"ask": "yes"}, journal=records.append)
    with pytest.raises(GraphError, match="no gate 'ask' waits for an answer; waiting: 'tell'"):
        resume_graph(two_gates(n), records, {"ask": "no"})


@SCHEDULES
def test_a_gate_in_a_cycle_asks_on_every_lap(schedule: str) -> None:
    """Three laps, three questions; nothing before the gate runs again but by the laps."""
    n = Counted()
    def graph() -> Graph:
        return (Graph("laps").add_node("start", n.start).add_node("draft", n.draft, max_visits=3)
                .add_node(human_node("ok", "Draft {draft}?", "ok", choices=["yes", "no"])).add_node("send", n.send)
                .add_edge("START", "start").add_edge("start", "draft").add_edge("draft", "ok").add_edge("send", "END")
                .add_router("ok", key_router("ok"), {"no": "draft", "yes": "send"}))
    state = run_graph(graph(), {}, schedule=schedule)
    asked = []
    for answer in ("no", "no", "yes"):
        asked.append(dict(state.waiting))
        state = resume_graph(graph(), json.loads(json.dumps(state.journal)), {"ok": answer})
    assert asked == [{"ok": "Draft 1?"}, {"ok": "Draft 2?"}, {"ok": "Draft 3?"}]
    assert (state.status, state.visits) == ("done", {"start": 1, "draft": 3, "ok": 3, "send": 1})
    assert n.calls == {"start": 1, "draft": 3, "send": 1}


def test_a_gate_that_is_refused_or_fails_is_a_failing_node() -> None:
    """max_visits counts questions; a question that cannot be asked fails its node, into on_error like any other."""
    graph = (Graph("g").add_node(human_node("ask", "What of {this}?", "x", on_error="else"))
             .add_node("else", lambda s: {}).add_edge("START", "ask").add_edge("else", "END"))
    state = run_graph(graph, {})
    assert (state.status, state.path) == ("done", ["ask", "else"])
    assert state.errors["ask"].startswith("KeyError: no 'this' on the blackboard")
    loop = (Graph("g").add_node(human_node("ask", "?", "x", max_visits=1)).add_edge("START", "ask")
            .add_router("ask", lambda state: "again", {"again": "ask"}))
    state = resume_graph(loop, run_graph(loop, {}).journal, {"ask": 1})
    assert (state.status, state.errors) == ("failed", {"ask": "max_visits=1 reached"})


def test_a_pause_is_no_failure_for_wrappers() -> None:
    """A retry does not ask again, a fallback does not answer, a timeout lets the question through."""
    asks = human_node("ask", "Well?", "x").fn
    for fn in (retry(asks, attempts=3), fallback(asks, lambda state: {"x": "made up"}), timeout(asks, 5)):
        graph = Graph("g").add_node("ask", fn, kind="human").add_edge("START", "ask")
        state = within(10, lambda graph=graph: run_graph(graph, {}))
        assert (state.status, state.waiting) == ("paused", {"ask": "Well?"})
        assert resume_graph(graph, state.journal, {"ask": "yes"})["x"] == "yes"


def test_laps_wait_for_a_person_too() -> None:
    """A lap does not begin while a gate below its head may still be answered, be there nothing else to do."""
    seen: list[str] = []
    graph = (Graph("g").add_node("a", lambda s: seen.append("a"), max_visits=2)
             .add_node("b", lambda s: {"b": 1}).add_node(human_node("ask", "?", "ask"))
             .add_node("join", lambda s: {"j": 1})
             .add_edge("START", "a").add_edge("a", "b").add_edge("a", "ask").add_edge("ask", "join")
             .add_edge("join", "END"))
    graph.add_router("b", lambda s: ["again", "on"] if len(seen) < 2 else "on", {"again": "a", "on": "join"})
    state = run_graph(graph, {})
    assert (state.status, state.waiting, seen) == ("paused", {"ask": "?"}, ["a"])


@pytest.mark.parametrize("executor", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_a_gate_elsewhere(executor: Any) -> None:
    """A gate asks from whatever executor its run uses, and is answered in the same way."""
    with executor(2) as pool:
        graph = (Graph("g").add_node(human_node("ask", "{a}?", "x")).add_node(human_node("also", "{a}!", "y"))
                 .add_edge("START", "ask").add_edge("START", "also"))
        state = run_graph(graph, {"a": 1}, executor=pool)
        assert (state.status, state.waiting) == ("paused", {"ask": "1?", "also": "1!"})
        state = resume_graph(graph, state.journal, {"ask": 1, "also": 2}, executor=pool)
        assert (state.status, state["x"], state["y"]) == ("done", 1, 2)


def test_a_paused_state_shows_its_questions_and_pickles() -> None:
    """The table of a notebook says who waits, whole and escaped; a pickled state keeps its questions and journal."""
    graph = Graph("g").add_node(human_node("<b>", "Is {x} < 3 & so on?", "y")).add_edge("START", "<b>")
    state = run_graph(graph, {"x": "<script>"})
    assert "? &lt;b&gt; waits for an answer:</b> Is &lt;script&gt; &lt; 3 &amp; so on?" in state._repr_html_()
    again = pickle.loads(pickle.dumps(state))
    assert (again, again.waiting, again.status) == (state, state.waiting, "paused")
    assert resume_graph(graph, again.journal, {"<b>": 1})["y"] == 1


@pytest.mark.parametrize(("wrong", "words"), [
    (lambda: human_node("a", "?", 3), "keys of the blackboard are strings"),
    (lambda: human_node("a", "?", "k", choices="yes"), "must be a list of strings, as in ['yes', 'no']"),
    (lambda: human_node("a", "?", "k", choices=[]), "must be a list of strings"),
    (lambda: human_node("a", "?", "k", choices=[1]), "must be a list of strings"),
    (lambda: human_node("a", "{", "k"), "{"),
])
def test_a_gate_that_cannot_be_meant(wrong: Any, words: str) -> None:
    """What is wrong with a gate is said when it is made."""
    with pytest.raises((TypeError, ValueError)) as caught:
        wrong()
    assert words in str(caught.value)


# ---- the journal


def test_the_records() -> None:
    """One record for each thing that happened, in order, all of them JSON; `.journal` holds the same."""
    records: list[Any] = []
    def boom(state: Any) -> Any:
        raise ValueError("no")
    graph = make("START>a,b b>END", a=lambda s: {"x": [1]}, b={"fn": boom, "on_error": "c"}, c=lambda s: None,
                 routers={"a": (lambda s: ["go", "stop"], {"go": "d", "stop": "END"}),
                          "d": (lambda s: "?", {"ok": "END"})}, d=lambda s: {})
    state = run_graph(graph, {"q": "é"}, journal=records.append)
    assert records[0] == {"shape": graph.describe(), "schedule": "waves", "state": {"q": "é"}}
    assert records[1:] == [
        {"node": "a", "visit": 1, "wave": 1, "writes": {"x": [1]}},
        {"node": "b", "visit": 1, "wave": 1, "error": "ValueError: no"},
        {"router": "a", "visit": 1, "label": ["go", "stop"]},
        {"node": "c", "visit": 1, "wave": 2, "writes": None},
        {"node": "d", "visit": 1, "wave": 2, "writes": {}},
        {"router": "d", "visit": 1, "error": "ValueError: the router on 'd' returned '?', which is none of its labels; "
                                             "its labels are 'ok'"}]
    assert state.journal == records == json.loads(json.dumps(records))
    again = resume_graph(graph, records)
    assert (again, again.status, again.errors, again.path) == (state, "failed", state.errors, state.path)
    assert run_graph(graph, {"q": "é"}).journal == records, "without journal= it is kept all the same"


@pytest.mark.parametrize(("value", "words"), [
    ((1, 2), "(1, 2) comes back as [1, 2]"), ({1: 2}, "{1: 2} comes back as {'1': 2}"),
    ({3, 4}, "not JSON serializable"), (float("nan"), "not JSON compliant"), (b"x", "not JSON serializable"),
])
def test_a_value_that_json_does_not_bring_back(value: Any, words: str) -> None:
    """With journal= it fails the node that wrote it, naming the key; without, any value will do, and a gate says it."""
    node = make("START>a a>END", a=lambda state: {"k": value})
    state = run_graph(node, {}, journal=lambda record: None)
    assert state.errors["a"].startswith("TypeError: 'k' does not come back from JSON as it was")
    assert words in state.errors["a"]
    assert run_graph(node, {}).status == "done"
    gate = Graph("g").add_node("a", lambda s: {"k": value}).add_node(human_node("ask", "?", "x")).add_edge(
        "START", "a").add_edge("a", "ask")
    state = run_graph(gate, {})
    assert state.status == "failed"
    assert state.errors["ask"].startswith("TypeError: the run cannot pause, for what node 'a' wrote would be lost: 'k'")
    with pytest.raises(GraphError, match="the initial state cannot go to the journal: 'k' does not come back"):
        run_graph(node, {"k": value}, journal=lambda record: None)
    assert "what the run began with" in run_graph(gate, {"z": value}).errors["ask"]


def test_after_a_pause_every_value_has_to_last() -> None:
    """What is written beside a gate that waits fails its own node if it could not be kept."""
    graph = (Graph("g").add_node(human_node("ask", "?", "x")).add_node("a", lambda s: {})
             .add_node("b", lambda s: {"k": {1}}).add_edge("START", "ask").add_edge("START", "a").add_edge("a", "b"))
    state = run_graph(graph, {})
    assert (state.status, sorted(state.errors)) == ("paused", ["b"])


class Full:
    """A journal that has room for so many records."""

    def __init__(self, room: int) -> None:
        self.room, self.records, self.begun, self.closed = room, [], [], 0  # type: int, list[Any], list[int], int

    def begin(self, resumed: int) -> None:
        self.begun.append(resumed)

    def __call__(self, record: Any) -> None:
        if len(self.records) == self.room:
            raise OSError("no space left on device")
        self.records.append(record)

    def close(self) -> None:
        self.closed += 1


def test_a_journal_that_cannot_be_written_stops_the_run_with_its_state_in_hand() -> None:
    """JournalError names the record; `.state` holds what the run had, and its journal resumes."""
    n, full = Counted(), Full(2)
    graph = make("START>a a>b b>c c>END", a=n.a, b=n.b, c=n.c)
    with pytest.raises(JournalError) as caught:
        run_graph(graph, {}, journal=full)
    assert str(caught.value) == ("the journal could not take the record of node 'b' (OSError: no space left on "
                                 "device); the run stopped, and .state of this error holds what it had")
    state = caught.value.state
    assert (dict(state), full.closed, full.begun) == ({"a": 1, "errors": {}}, 1, [0])
    done = resume_graph(graph, state.journal)
    assert (dict(done), n.calls) == ({"a": 1, "b": 1, "c": 1, "errors": {}}, {"a": 1, "b": 1, "c": 1})


def test_a_journal_that_is_full_from_the_start() -> None:
    """The first record, too: nothing ran, the state is in hand, and the journal is closed."""
    n, full = Counted(), Full(0)
    with pytest.raises(JournalError, match="could not take the first record") as caught:
        run_graph(make("START>a a>END", a=n.a), {"q": 1}, journal=full)
    assert (dict(caught.value.state), full.closed, n.calls) == ({"q": 1, "errors": {}}, 1, {})


def test_a_journal_that_refuses_to_begin_is_not_closed() -> None:
    """It belongs to another run then, and what it raises comes out as it is."""
    class Taken(Full):
        def begin(self, resumed: int) -> None:
            raise RuntimeError("somebody else writes to it")
    taken = Taken(9)
    with pytest.raises(RuntimeError, match="somebody else"):
        run_graph(make("START>a a>END"), {}, journal=taken)
    assert (taken.closed, taken.records) == (0, [])


def test_a_journal_is_told_where_it_begins() -> None:
    """`begin(resumed)` comes before anything else, with the number of records that are played again; `close` last."""
    full, graph = Full(99), make("START>a a>END")
    run_graph(graph, {}, journal=full)
    resume_graph(graph, list(full.records[:1]), journal=full)
    assert (full.begun, full.closed) == ([0, 1], 2)


# ---- resuming


def test_records_of_another_shape_are_refused() -> None:
    """The sentence says what differs; force=True takes what still fits."""
    before = make("START>a a>b b>END", a=lambda s: {"a": 1})
    records = run_graph(before, {}).journal
    after = make("START>a a>c c>END", a={"fn": lambda s: {"a": 2}, "max_visits": 3}, c=lambda s: {"c": 1})
    with pytest.raises(GraphError) as caught:
        resume_graph(after, records)
    assert str(caught.value) == (
        "these records are of a graph of another shape: node 'b' is gone; node 'c' is new; max_visits of 'a' was None "
        "and is 3; edge 'a' -> 'b' is gone and 3 more. Resume them with the graph they came from, or pass force=True "
        "to use what still fits")
    assert dict(resume_graph(after, records, force=True)) == {"a": 1, "c": 1, "errors": {}}


@pytest.mark.parametrize("records", [[], None, "x", [{}], [{"node": "a"}], [1], {"a": 1}])
def test_what_are_no_records(records: Any) -> None:
    """Anything but a list of records with the first one at its head is refused."""
    with pytest.raises(GraphError, match="records are what a journal took"):
        resume_graph(make("START>a a>END"), records)


def test_records_with_a_hole() -> None:
    """A record in the middle that is missing is noticed, rather than guessed."""
    graph = make("START>a a>b b>c c>END")
    records = run_graph(graph, {}).journal
    with pytest.raises(GraphError, match="these records do not fit together"):
        within(10, lambda: resume_graph(graph, records[:1] + records[2:]))
    assert within(10, lambda: resume_graph(graph, records[:1] + records[2:], force=True)).status == "done"


def test_max_steps_is_no_end() -> None:
    """A run that max_steps stopped goes on with a higher limit, from where it stood."""
    n = Counted()
    graph = make("START>a a>b b>c c>END", a=n.a, b=n.b, c=n.c)
    state = run_graph(graph, {}, max_steps=2)
    assert state.status == "max_steps"
    state = resume_graph(graph, state.journal, max_steps=3)
    assert (state.status, n.calls) == ("done", {"a": 1, "b": 1, "c": 1})
    with pytest.raises(GraphError, match="max_steps=1 is less than the node runs that the records tell of"):
        resume_graph(graph, state.journal, max_steps=1)


def test_edits() -> None:
    """An edit changes the blackboard at any earlier moment, and lies in the past of whatever comes later."""
    def graph() -> Graph:
        return make("START>a a>b c>END", a=lambda s: {"x": 1}, b=lambda s: {"y": s["x"] + s["z"]}, c=lambda s: {"x": 9},
                    routers={"b": (lambda s: "big" if s["y"] > 10 else "small", {"big": "c", "small": "END"})})
    for schedule in ("waves", "ready"):
        whole = run_graph(graph(), {"z": 1}, schedule=schedule).journal
        results = [dict(resume_graph(graph(), whole[:k], edits={"z": 100, "y": 50})) for k in range(1, len(whole) + 1)]
        rerun, routed, over = ({"z": 100, "x": 9, "y": 101, "errors": {}}, {"z": 100, "x": 9, "y": 50, "errors": {}},
                               {"z": 100, "x": 1, "y": 50, "errors": {}})
        assert results == [rerun, rerun, routed, over]
    more: list[Any] = []
    state = resume_graph(graph(), whole[:2], edits={"z": 100}, journal=more.append)
    assert more[0] == {"edit": {"z": 100}}
    assert resume_graph(graph(), whole[:2] + more) == state


@SCHEDULES
def test_an_edit_and_an_answer_together(schedule: str) -> None:
    """The edit comes first: whoever follows the gate sees both."""
    graph = (Graph("g").add_node("a", lambda s: {"x": 1}).add_node(human_node("ask", "{x}?", "ok"))
             .add_node("b", lambda s: {"y": (s["x"], s["ok"])[0]}).add_edge("START", "a").add_edge("a", "ask")
             .add_edge("ask", "b"))
    state = resume_graph(graph, run_graph(graph, {}, schedule=schedule).journal, {"ask": "yes"}, edits={"x": 7})
    assert (state.status, state["ok"], state["y"]) == ("done", "yes", 7)


@pytest.mark.parametrize(("edits", "words"), [
    ({1: 2}, "keys of the blackboard are strings"), ({"errors": {}}, "the engine's"),
    ({"k": {1}}, "does not come back"), ([1], "must be a dict")])
def test_edits_that_cannot_be_made(edits: Any, words: str) -> None:
    """An edit follows the rules of a node's writes."""
    graph = make("START>a a>END")
    with pytest.raises(GraphError) as caught:
        resume_graph(graph, run_graph(graph, {}).journal, edits=edits)
    assert words in str(caught.value)


def test_what_is_played_again_is_not_heard_again() -> None:
    """A resumed run tells of what is new: it begins with the blackboard as it stands, and its gates are whole."""
    n, heard = Counted(), Heard()
    records = run_graph(two_gates(n), {"q": 1}).journal
    resume_graph(two_gates(n), records, {"ask": "yes"}, observer=heard)
    start = heard["graph_start"][0]
    assert (start["state"], start["resumed"]) == ({"q": 1, "before": 1, "beside": 1, "more": 1}, 4)
    assert [(kind, event["node"]) for kind, event in heard.events if kind in ("node_start", "node_end", "pause")] == [
        ("node_start", "tell"), ("pause", "tell"), ("node_start", "ask"), ("node_end", "ask")]
    over = Heard()
    resume_graph(make("START>a a>END"), run_graph(make("START>a a>END"), {}).journal, observer=over)
    assert over.kinds == ["graph_start", "graph_end"]


SCRIPT = """
import json, sys
from minigraph import Graph, resume_graph, run_graph
from minigraph.nodes import human_node
def work(state):
    with open(sys.argv[1] + ".calls", "a") as file: file.write("work\\n")
    return {"draft": "text"}
graph = (Graph("g").add_node("work", work).add_node(human_node("ask", "Send {draft}?", "sent"))
         .add_edge("START", "work").add_edge("work", "ask"))
path = sys.argv[1]
if len(sys.argv) == 2:
    with open(path, "w") as file:
        run_graph(graph, {}, journal=lambda r: print(json.dumps(r), file=file))
else:
    print(resume_graph(graph, [json.loads(line) for line in open(path)], {"ask": sys.argv[2]}))
"""


def test_answered_in_another_process(tmp_path: Path) -> None:
    """Python may end between question and answer: a text file of records is all that is needed."""
    path = str(tmp_path / "run.jsonl")
    for args in ([path], [path, "yes"]):
        out = subprocess.run([sys.executable, "-c", SCRIPT, *args], cwd=ROOT, capture_output=True, text=True,
                             check=True)
    assert out.stdout.strip() == "{'draft': 'text', 'sent': 'yes', 'errors': {}}"
    assert Path(path + ".calls").read_text() == "work\n"
