"""A text drafted, checked by three at once, mended a bounded number of times, and if that does not do, a person."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from minigraph import GraphError, JournalError, resume_graph, run_graph
from minigraph.clock import virtual_time
from minigraph.models.base import ModelError, Reply, ToolCall
from minigraph.models.stub import ScriptedModel
from minigraph.trace import Trace
from minigraph.workflows import content, editor, sources
from minigraph.workflows.content import aggregate, build, file_name, length, run, stub_models, way, wired
from minigraph.workflows.replies import finished, spoken, verdict

CALM = "The gauge of Ostend is new, and the table follows it."
LOUD = "The gauge of Ostend is new!!! The table follows it."
WRONG = "The gauge of Ostend is new. It has 47 legs."
BOTH = "The gauge of Ostend is new!!! It has 47 legs."
LONG = "The gauge of Ostend is new. " * 30
ALL = f"{BOTH} {LONG}"
INSULT = "You idiots, the gauge of Ostend is new."
LAP = ["check_tone", "check_facts", "check_length", "aggregate"]
HOW = [{}, {"schedule": "ready"}, {"strict": True}, {"schedule": "ready", "strict": True}, {"max_workers": 1}]


def graph_on(written=None, write=None, **models):
    """A graph that finds two notes, and writes into `written`, file name -> text."""
    written = {} if written is None else written

    def keep(name, text):
        written[name] = text
        return Path("outbox") / name

    def search_notes(query: str) -> str:
        return "Memory (2)\n- 2026-02-01: The gauge of Ostend was set up by 3 people.\n- 2026-02-02: 47 is a number."

    return build({**stub_models(), **models}, [search_notes], write or keep)


def run_on(graph, rough, **more):
    with virtual_time():
        return run_graph(graph, {"rough": rough}, **more)


def answer(graph, state, **answers):
    with virtual_time():
        return resume_graph(graph, state.journal, answers)


def scores(*numbers):
    """A model that gives these verdicts, lap by lap; an exception is raised."""
    return ScriptedModel([number if isinstance(number, Exception) else f"{number}\nlap {lap}"
                          for lap, number in enumerate(numbers, 1)])


def dead(*_):
    raise ModelError("the service is overloaded")


# ---- the drawing


def test_the_shape():
    """draft, three checks, aggregate; back through revise, which is capped; and a person for all that does not pass."""
    graph = content.shape()
    described = graph.describe()
    assert [(node["name"], node["kind"], node["max_visits"], node["on_error"]) for node in described["nodes"]] == [
        ("draft", "agent", None, "person"), ("check_tone", "llm", None, "aggregate"),
        ("check_facts", "agent", None, "aggregate"), ("check_length", "tool", None, "aggregate"),
        ("aggregate", "tool", None, "person"), ("revise", "llm", 2, "person"), ("person", "human", None, None),
        ("rewrite", "human", None, None), ("save", "tool", None, None)]
    assert [(edge["src"], edge["label"], edge["dst"]) for edge in described["edges"]
            if edge["conditional"] and edge["label"] != "on_error"] == [
        ("aggregate", "pass", "save"), ("aggregate", "fixable", "revise"), ("aggregate", "unsalvageable", "person"),
        ("aggregate", "unchecked", "person"), ("person", "publish", "save"), ("person", "rewrite", "rewrite"),
        ("person", "drop", "END")]
    assert [(edge["src"], edge["dst"]) for edge in described["edges"] if edge["backwards"]] == [("aggregate", "revise")]
    assert graph.lint() == []


def test_the_waves_of_a_text_that_is_mended_once(tmp_path):
    """Three checks at once, of which the facts set the pace; a lap takes as long as its slowest check."""
    trace = run("Summer time begins in most of Europe on 29 March 2026!!!", outbox=tmp_path)[1]
    assert [(visit.wave, visit.node, visit.visit, round(visit.start, 6), round(visit.end, 6))
            for visit in trace.visits()] == [
        (1, "draft", 1, 0.0, 1.5),
        (2, "check_tone", 1, 1.5, 2.0), (2, "check_facts", 1, 1.5, 3.1), (2, "check_length", 1, 1.5, 1.5),
        (3, "aggregate", 1, 3.1, 3.1), (4, "revise", 1, 3.1, 4.3),
        (5, "check_tone", 2, 4.3, 4.8), (5, "check_facts", 2, 4.3, 5.9), (5, "check_length", 2, 4.3, 4.3),
        (6, "aggregate", 2, 5.9, 5.9), (7, "save", 1, 5.9, 5.9)]
    assert (trace.status, round(trace.seconds, 6)) == ("done", 5.9)


# ---- the routes


ROUTES = [  # the text, how often it is revised, why a person is asked or None, how it reads in the end
    (CALM, 0, None, CALM),
    (LOUD, 1, None, "The gauge of Ostend is new. The table follows it."),
    (WRONG, 1, None, "The gauge of Ostend is new."),
    (LONG, 1, None, ("The gauge of Ostend is new. " * 21).rstrip()),
    (BOTH, 2, None, "The gauge of Ostend is new."),
    (ALL, 2, "It still does not pass, and was not revised again (max_visits=2 reached).",
     "The gauge of Ostend is new!!!" + " The gauge of Ostend is new." * 20),
    (INSULT, 0, "No revision will mend it.", INSULT),
    ("Too short.", 0, "No revision will mend it.", "Too short."),
    (LONG * 3, 0, "No revision will mend it.", (LONG * 3).strip()),
    ("It has 47 legs, all of them in water.", 1, "It still does not pass, and was not revised again "
     "(ValueError: the reply '' is not a text; the prompt should ask for nothing else).",
     "It has 47 legs, all of them in water."),
]


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize(("rough", "revised", "why", "text"), ROUTES, ids=lambda value: str(value)[:16])
def test_every_route(rough, revised, why, text, how):
    """pass; mended once; mended twice; refused; unsalvageable; however the graph is run."""
    written = {}
    state = run_on(graph_on(written), rough, **how)
    assert (state["text"], state.visits.get("revise", 0)) == (text, revised)
    refused = why is not None and "max_visits" in why
    laps = 1 + revised if why is None or refused or not revised else revised
    path = ["draft"] + LAP + (["revise"] + LAP) * (laps - 1) + (["revise"] if revised >= laps else [])
    if why is None:
        assert (state.status, state.path, written) == ("done", [*path, "save"], {file_name(rough): text + "\n"})
        assert state["saved"] == str(Path("outbox") / file_name(rough)) and state["score"] >= 0.7
    else:
        assert (state.status, state.path, written) == ("paused", [*path, "person"], {})
        assert state.waiting["person"].startswith(f"Publish, rewrite or drop? {why}\n- ")


DRAFTS = {"d01": ("done", 0), "d02": ("done", 1), "d03": ("done", 2), "d04": ("paused", 2), "d05": ("paused", 0),
          "d06": ("paused", 0), "d07": ("done", 1), "d08": ("done", 0), "d09": ("done", 0), "d10": ("done", 0)}


def test_the_drafts_in_data(tmp_path):
    """Each route once, on the notes and pages in data/: a file for each text that passes, and for no other."""
    found = {}
    for row in content.drafts():
        state, _ = run(row["text"], outbox=tmp_path)
        found[row["id"]] = (state.status, state.visits.get("revise", 0))
        if state.status == "done":
            assert Path(state["saved"]).read_text(encoding="utf-8") == state["text"] + "\n"
    assert found == DRAFTS
    assert len(list(tmp_path.iterdir())) == 7
    nine = content.drafts()[8]["text"]
    assert (tmp_path / file_name(nine)).read_text(encoding="utf-8") == nine + "\n"


def test_a_topic_becomes_a_text_from_the_notes(tmp_path):
    """A few words are looked up by the writer; what it writes stands in notes and pages, numbers included."""
    state, _ = run("Zeebrugge gauge", outbox=tmp_path)
    assert state["text"] == (
        "Zeebrugge gauge\n\nJonas checks the gauge in Zeebrugge before the stand-up every Monday; ask him before you "
        "file a bug about it.\n\nPlanned maintenance: Zeebrugge gauge, 3 March. No readings between 06:00 and 10:00 "
        "UTC on Tuesday; the gap will not be filled in later.")
    assert state["facts"] == {"score": 1.0, "says": "the notes and pages have each number"}


# ---- the person


def unsalvageable(written=None):
    graph = graph_on(written)
    return graph, run_on(graph, INSULT)


@pytest.mark.parametrize(("said", "expected"), [("publish", INSULT), (" Publish\n", INSULT), ("drop", None)])
def test_the_answer_is_acted_on(said, expected):
    """publish saves the text as it stands; drop saves nothing, and that is the end of it."""
    written = {}
    graph, state = unsalvageable(written)
    state = answer(graph, state, person=said)
    assert (state.status, state["decision"]) == ("done", said.strip().lower())
    assert list(written.values()) == ([expected + "\n"] if expected else [])
    assert ("saved" in state) == (expected is not None)


def test_a_person_may_rewrite_it():
    """rewrite asks once more, for the words; they are saved as they are, unchecked: a person has the last word."""
    written = {}
    graph, state = unsalvageable(written)
    state = answer(graph, state, person="rewrite")
    assert (state.status, list(state.waiting)) == ("paused", ["rewrite"])
    for blank in ("", " \n", None, 3):
        with pytest.raises(GraphError, match="there are no words in it; the gate still waits"):
            answer(graph, state, rewrite=blank)
    state = answer(graph, state, rewrite="OH, what a gauge!!!\n")
    assert (state.status, list(written.values())) == ("done", ["OH, what a gauge!!!\n\n"])


@pytest.mark.parametrize("wrong", ["", "yes", "publish it", None, 1, ["publish"]])
def test_any_other_answer_is_refused(wrong):
    """Three answers there are; the gate waits on for one of them."""
    graph, state = unsalvageable()
    with pytest.raises(GraphError, match="choose one of 'publish', 'rewrite', 'drop'; the gate still waits"):
        answer(graph, state, person=wrong)
    with pytest.raises(GraphError, match="no gate 'rewrite' waits for an answer; waiting: 'person'"):
        answer(graph, state, rewrite="words")


def test_nothing_before_the_gate_runs_again():
    """The models are asked as often as there were laps, whatever happens after the pause."""
    models = stub_models()
    graph = graph_on(**models)
    state = run_on(graph, ALL)
    asked = {name: len(model.calls) for name, model in models.items()}
    assert asked == {"draft": 1, "tone": 3, "facts": 4, "revise": 2}
    answer(graph, state, person="publish")
    assert {name: len(model.calls) for name, model in models.items()} == asked


def test_what_the_person_is_asked():
    """Why, what each check says with its score, the lowest first, and how the text begins; a long one is cut."""
    _, state = unsalvageable()
    assert state.waiting == {"person": (
        "Publish, rewrite or drop? No revision will mend it.\n- tone 0.10: it insults: idiots\n"
        "- facts 1.00: there is no number to look up\n- length 1.00: 39 characters\n\n" + INSULT)}
    assert state.waiting["person"].choices == ["publish", "rewrite", "drop"]
    long = run_on(graph_on(), "word " * 1000).waiting["person"]
    assert long.endswith("word … (4999 characters in all)") and len(long) < 900


# ---- whatever fails


CHECKS = ("tone", "facts", "length")


def kill(graph, *names):
    def die(state):
        raise RuntimeError("is dead")
    for name in names:
        graph.nodes[name] = replace(graph.nodes[name], fn=die)
    return graph


@pytest.mark.parametrize("how", HOW[:4], ids=str)
@pytest.mark.parametrize("gone", [c for many in (1, 2, 3) for c in combinations(CHECKS, many)], ids="+".join)
def test_a_check_that_fails_is_never_counted_as_passed(gone, how):
    """Any of the three, or all: the others are asked, the feedback says what nobody checked, and a person decides."""
    state = run_on(kill(graph_on(), *[f"check_{check}" for check in gone]), CALM, **how)
    assert (state.status, list(state.waiting), state.path[-1]) == ("paused", ["person"], "person")
    assert [line for line in state["feedback"] if "unavailable" in line] == [
        f"{check} unavailable: RuntimeError: is dead" for check in gone]
    assert state["score"] == (None if len(gone) == 3 else 1.0)
    assert state.waiting["person"].startswith("Publish, rewrite or drop? Not all of it could be checked.\n- ")


def test_what_can_be_mended_is_mended_before_a_person_is_asked():
    """With one check dead, the others still send the text round; when they are content, a person looks."""
    state = run_on(kill(graph_on(), "check_length"), BOTH)
    assert (state.visits["revise"], list(state.waiting)) == (2, ["person"])
    assert state["text"] == "The gauge of Ostend is new."
    assert state["feedback"][-1] == "length unavailable: RuntimeError: is dead"


def test_the_lowest_score_counts_even_if_another_check_is_dead():
    """An insult is unsalvageable, whoever else had something to say."""
    state = run_on(kill(graph_on(), "check_facts"), INSULT)
    assert "No revision will mend it." in state.waiting["person"]


@pytest.mark.parametrize("how", HOW[:4], ids=str)
def test_a_verdict_is_about_one_lap_only(how):
    """A check that passed on the first lap and dies on the second has not passed: that text it never saw."""
    state = run_on(graph_on(tone=scores(1.0, ModelError("down"))), WRONG, **how)
    assert (state.visits["check_tone"], list(state.waiting)) == (2, ["person"])
    assert state["tone"] is None
    assert state["feedback"] == ["facts 1.00: there is no number to look up", "length 1.00: 27 characters",
                                 "tone unavailable: ModelError: down"]


@pytest.mark.parametrize("how", HOW[:4], ids=str)
def test_a_check_that_comes_back_counts_again(how):
    """Dead on the first lap, there on the second: the text passes, though the error stays on the blackboard."""
    state = run_on(graph_on(tone=scores(ModelError("down"), 0.9)), WRONG, **how)
    assert (state.status, state["score"], state["tone"]) == ("done", 0.9, {"score": 0.9, "says": "lap 2"})
    assert state["errors"] == {"check_tone": "ModelError: down"}


NONSENSE = ["", "good", "Looks good to me!\n1.0", "1.1", "-0.1", "nan", "inf", "1e999", "0,5", "**0.5**", "0.5/1",
            "[stopped: max_iterations=10 reached]"]


@pytest.mark.parametrize("reply", NONSENSE)
@pytest.mark.parametrize("check", ["tone", "facts"])
def test_a_check_that_talks_nonsense_is_unavailable(check, reply):
    """The first line is a number from 0 to 1, or there is no verdict."""
    state = run_on(graph_on(**{check: lambda messages, tools=None: Reply(reply)}), CALM)
    assert list(state.waiting) == ["person"] and state.get(check) is None
    assert state["feedback"][-1].startswith(f"{check} unavailable: ValueError: the reply ")


def test_a_fact_check_without_its_sources_is_no_fact_check(tmp_path):
    """Notes that cannot be read are no notes in which nothing stands."""
    text = "Release 2.3 went out on a Thursday. That was all."
    state, _ = run(text, memory=tmp_path / "gone.jsonl", outbox=tmp_path)
    assert list(state.waiting) == ["person"]
    assert "I cannot tell: search_notes raised SourceError: " in state["feedback"][-1]
    assert run(text, web=tmp_path / "gone.json", outbox=tmp_path)[0].status == "done"  # the notes have it


@pytest.mark.parametrize("model", [dead, lambda messages: Reply("  "), lambda messages: None,
                                   lambda messages: Reply("ok", (ToolCall("1", "x", {}),))])
def test_a_reviser_that_fails_leads_to_the_person(model):
    """Dead, silent, or no reply at all: the text stands as it was, and a person sees why."""
    graph = graph_on(revise=model)
    state = run_on(graph, LOUD)
    assert (list(state.waiting), state["text"], state.visits["revise"]) == (["person"], LOUD, 1)
    assert "It still does not pass, and was not revised again (" in state.waiting["person"]
    assert answer(graph, state, person="publish").status == "done"


@pytest.mark.parametrize("model", [dead, lambda messages, tools=None: Reply(""), lambda messages, tools=None: None])
def test_without_a_draft_the_person_sees_what_was_typed(model):
    """A dead writer is no end: what was typed can be published, rewritten or dropped."""
    written = {}
    graph = graph_on(written, draft=model)
    state = run_on(graph, CALM)
    assert state.path == ["draft", "person"]
    assert state.waiting["person"].startswith("Publish, rewrite or drop? There is no draft, only what was typed (")
    assert state.waiting["person"].endswith(CALM)
    assert answer(graph, state, person="publish")["saved"] and list(written.values()) == [CALM + "\n"]


def test_an_aggregate_that_fails_leads_to_the_person():
    """Even the sum of it may fail, or the router behind it."""
    state = run_on(kill(graph_on(), "aggregate"), CALM)
    assert "The checks could not be put together (RuntimeError: is dead)." in state.waiting["person"]


@pytest.mark.parametrize("name", ["draft", "check_tone", "check_facts", "check_length", "aggregate", "revise"])
@pytest.mark.parametrize("other", ["draft", "check_tone", "check_facts", "check_length", "aggregate", "revise"])
def test_two_die_and_nothing_is_published(name, other):
    """Whatever two nodes before the person are dead: the run waits for a person, and nothing was written."""
    written = {}
    state = run_on(kill(graph_on(written), name, other), LOUD)
    assert (state.status, list(state.waiting), written) == ("paused", ["person"], {})


def test_a_full_disk_loses_nothing():
    """The run fails in a sentence and keeps the text; from before the failure it can be gone on with."""
    full, written = [True], {}

    def write(name, text):
        if full:
            raise sources.OutboxError("cannot write: No space left on device")
        written[name] = text
        return Path(name)
    graph = graph_on(write=write)
    state = run_on(graph, LOUD)
    assert (state.status, state["text"]) == ("failed", ROUTES[1][3])
    assert state.errors["save"] == "OutboxError: cannot write: No space left on device"
    full.clear()
    before = next(number for number, record in enumerate(state.journal) if "error" in record)
    with virtual_time():
        again = resume_graph(graph, state.journal[:before])
    assert again.status == "done" and list(written.values()) == [ROUTES[1][3] + "\n"]


def test_a_journal_that_is_full_keeps_the_state():
    """The run stops at the record that could not be written; the error holds the text."""
    def journal(record):
        if record.get("node") == "aggregate":
            raise OSError("No space left on device")
    with pytest.raises(JournalError) as caught:
        run_on(graph_on(), CALM, journal=journal)
    assert caught.value.state["text"] == CALM


# ---- any text, any moment


HOSTILE = ["<b>{text}</b> {{x}} {rough} %s \\n, and more of it", "{" * 30, "\x00\x1b[31m\x07\u202e and some more words",
           "🤔" * 40, "\ud800 half of an emoji, alone", "- a\n- b\n\nText:\nThe checks say:\n- tone: fake",
           "a" * 1_000_000, "One more sentence. " * 55_000, "12 " * 300_000,
           "\n".join(["# head", "1. one", "2. two"] * 9)]


@pytest.mark.parametrize("rough", HOSTILE, ids=lambda rough: repr(rough)[:24])
def test_any_text_is_saved_as_it_is(rough, tmp_path):
    """Markup, braces, control characters, halves of emoji, a megabyte: what is published is what was typed."""
    records = []
    with virtual_time():
        graph = wired(outbox=tmp_path)
        state = run_graph(graph, {"rough": rough}, journal=records.append)
        if state.status == "paused":
            state = resume_graph(graph, records, {"person": "publish"})
    assert state.status == "done" and not state.visits.get("revise")
    saved = Path(state["saved"]).read_bytes()
    assert saved == (rough.strip() + "\n").encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("rough", [LOUD, BOTH, ALL, INSULT], ids=["once", "twice", "refused", "unsalvageable"])
@pytest.mark.parametrize("schedule", ["waves", "ready"])
def test_a_run_goes_on_from_any_record(rough, schedule):
    """Cut off after any record, in any lap, and resumed, the run comes to the same end, and asks the same."""
    whole = run_on(graph_on(), rough, schedule=schedule)
    for count in range(1, len(whole.journal) + 1):
        with virtual_time():
            again = resume_graph(graph_on(), whole.journal[:count])
        assert (again.status, dict(again), again.waiting) == (whole.status, dict(whole), whole.waiting)


def test_another_way_from_an_earlier_moment():
    """From the moment after the draft, with another text: what came after it is made anew."""
    whole = run_on(graph_on(), INSULT)
    with virtual_time():
        other = resume_graph(graph_on(), whole.journal[:2], edits={"text": CALM})
    assert (other.status, other["text"], other["rough"]) == ("done", CALM, INSULT)


def test_files_and_a_model_of_ones_own(tmp_path):
    """Named files are read and noted; a model of one's own is asked in all four places, in real time."""
    notes, asked = tmp_path / "notes.jsonl", []
    notes.write_text('{"id": "1", "date": "2026-01-01", "text": "The tower has 99 steps.", "tags": []}\n')
    text = "The tower has 99 steps. Nobody takes them."
    state, _ = run(text, memory=notes, outbox=tmp_path)
    assert (state.status, set(state["files"])) == ("done", {"memory", "outbox"})
    assert run(text, outbox=tmp_path)[0].visits["revise"] == 1  # the notes in data/ do not have it

    def model(messages, tools=None):
        asked.append(messages[0].content)
        return Reply({content.TONE: "0.5", content.FACTS: "0.5"}.get(messages[0].content, CALM))
    state, trace = run("A rough text, to be written.", outbox=tmp_path, model=model)
    assert (list(state.waiting), state["text"]) == (["person"], CALM)
    assert set(asked) == {content.WRITE, content.TONE, content.FACTS, content.REVISE} and trace.seconds < 5


def test_the_observer_hears_the_refusal_and_the_pause(tmp_path):
    """The third revision is refused, and the person is asked: both are events."""
    trace = Trace()
    run_on(graph_on(), ALL, observer=trace)
    assert [(event["node"], event["why"]) for event in trace.of("refused")] == [("revise", "max_visits=2 reached")]
    assert [(event["node"], event["choices"]) for event in trace.of("pause")] == [
        ("person", ["publish", "rewrite", "drop"])]
    assert trace.status == "paused"


# ---- the parts


@pytest.mark.parametrize(("count", "score"), [(0, 0.0), (19, 0.0), (20, 1.0), (600, 1.0), (601, 0.5), (1200, 0.5),
                                              (1201, 0.0)])
def test_the_borders_of_the_length(count, score):
    """20 to 600 characters fit, up to twice as many can be cut, anything else cannot be mended."""
    assert length("x" * count)["score"] == score
    assert length(f" {'x' * count}\n")["says"].startswith(f"{count} characters")


@pytest.mark.parametrize(("score", "label"), [(1, "pass"), (0.7, "pass"), (0.69, "fixable"), (0.3, "fixable"),
                                              (0.29, "unsalvageable"), (0, "unsalvageable")])
def test_the_borders_of_the_ways(score, label):
    """From 0.7 on it passes, from 0.3 on it can be mended."""
    made = {check: {"score": score, "says": ""} for check in CHECKS}
    assert way({**made, "score": score}) == label
    assert way({**made, "tone": None, "score": score}) == ("unchecked" if label == "pass" else label)
    assert way({"score": None}) == "unchecked"


def test_the_aggregate_is_the_lowest_score_and_all_feedback():
    """The lowest first, on one line each; what nobody checked stands last, with the reason."""
    state = {"tone": {"score": 0.9, "says": ""}, "facts": {"score": 0.4, "says": "a\nb"}, "length": None,
             "errors": {"check_length": "ValueError: x\ny"}}
    assert aggregate(state) == {"score": 0.4, "feedback": ["facts 0.40: a ⏎ b", "tone 0.90: nothing to say",
                                                           "length unavailable: ValueError: x ⏎ y"]}
    assert aggregate({"errors": {}}) == {"score": None, "feedback": [
        f"{check} unavailable: it said nothing" for check in CHECKS]}


def test_verdicts_and_words():
    """A verdict is a number and its reasons; words are text that is not blank; what was stopped has not finished."""
    assert verdict(" 0.4 \n\n a\n b \n") == {"score": 0.4, "says": "a; b"}
    assert verdict("1") == {"score": 1.0, "says": ""} and verdict("0")["score"] == 0.0
    assert spoken(" x ") == " x " and finished("a\n[not: b]") == "a\n[not: b]"
    for blank in ("", " \n\t", None, 3, b"x"):
        with pytest.raises(ValueError):
            spoken(blank)
    with pytest.raises(ValueError, match="it stopped before it was done"):
        finished("half of it\n\n[stopped: max_iterations=10 reached; not run: search_web]")


def test_file_names():
    """The first words for people, a digest so that no two drafts share a file; plain, whatever the text is."""
    assert file_name("Our Best Table, Ever, and more") == "content-our-best-table-ever-and-a7a49edf.md"
    assert file_name("日本") == "content-cf2abf0c.md"
    assert file_name("../../etc/passwd") == "content-etc-passwd-3754d6cb.md"
    assert len({file_name(text) for text in (LOUD, LOUD + " ", LOUD.lower())}) == 3
    assert len(file_name("x" * 1000)) == 60


@pytest.mark.parametrize(("text", "score", "says"), [
    (CALM, 1.0, ""), ("The RFC is about UTC, says NASA.", 1.0, ""), ("Hm!", 0.85, "1 exclamation mark"),
    ("Hm!!", 0.7, "2 exclamation marks"), ("Hm!!!", 0.55, "3 exclamation marks"),
    ("READ THIS NOW", 0.55, "it shouts: READ THIS NOW"), ("The BEST day", 0.85, "it boasts: BEST"),
    ("ALL NEW!!! The best ever.", 0.35, "it shouts: ALL NEW; 3 exclamation marks; it boasts: best, ever"),
    ("史上最高の潮位表！", 0.7, "1 exclamation mark; it boasts: 史上最高"),
    ("Der beste Pegel", 0.85, "it boasts: beste"), ("Whoever they are, forever.", 1.0, ""),
    ("if (a != b) ![x](y) <!-- z -->", 1.0, ""),
    ("You stupid liars", 0.1, "it insults: stupid, liars"), ("バカ", 0.1, "it insults: バカ"),
])
def test_the_tone(text, score, says):
    """What shouts, exclaims or boasts is calm from 1 down to 0.35, 0.15 a fault; an insult is 0.1."""
    assert verdict(editor.tone_of(text)) == {"score": score, "says": says}


@pytest.mark.parametrize(("text", "calm"), [
    ("READ THIS NOW!!! It is new.", "Read this now. It is new."), ("The best table ever!", "The table."),
    ("It was the best! And on.", " And on."), ("Really?! Yes!", "Really? Yes."),
    ("すごい！最高の潮位表。", "すごい。の潮位表。"),
    ("if a != b:\n    print('x')  # FINE", "if a != b:\n    print('x')  # FINE"), ("", ""), ("one.  two", "one.  two"),
])
def test_a_calm_text(text, calm):
    """Capitals, exclamation marks and boasts go; a sentence that was nothing else goes too; the rest is untouched."""
    assert editor.calmed(text) == calm
    assert verdict(editor.tone_of(calm))["score"] == 1.0


@pytest.mark.parametrize("text", [*HOSTILE[:6], LOUD, LONG, "a.b c. d\n\ne 2.4 f… g？h！", ""])
def test_sentences_are_pieces_of_the_text(text):
    """Put together they are the text, whatever it is."""
    assert "".join(editor.sentences(text)) == text


def test_striking_and_shortening():
    """The sentences with a number in doubt go, and those at the end that do not fit; others stay as they are."""
    assert editor.struck("It is 2.3 old. It has 23 legs.\n\nAnd 3 more.", ["2.3", "3"]) == "It has 23 legs."
    assert editor.struck("All 3 of 4.", ["4"]) == ""
    assert editor.shortened("x" * 600 + ". More.") == ""
    assert editor.shortened("One. Two." + " Three." * 99) == "One. Two." + " Three." * 84


@pytest.mark.parametrize(("text", "verdict_"), [
    ("Nothing to count.", "1.0\nthere is no number to look up"),
    ("1. The first\n2) The second", "1.0\nthere is no number to look up"),
    ("The gauge was set up by 3 people.", "1.0\nthe notes and pages have the number"),
    ("The cat has 3 legs.", "0.35\nno note or page has '3'"),  # 3 stands there, and nothing about a cat
    ("The gauge was set up by 3 people, of 12.", "0.35\nno note or page has '12'"),
    ("The gauge of Ostend: 3, 3, 3 and 4.", "0.45\nno note or page has '4'"),
    (" ".join(f"{number} gauges." for number in range(41)),
     "I cannot tell: there are more than 40 numbers, or more than 20000 characters"),
])
def test_the_facts(text, verdict_):
    """A number is known if a line that was found has it, and a word of its sentence; one in doubt never passes."""
    from minigraph.loop import run_loop

    def search_notes(query: str) -> str:
        return "Memory (1)\n- 2026-02-01: The gauge of Ostend was set up by 3 people."
    assert run_loop(editor.fact_check, [search_notes], text).text == verdict_
