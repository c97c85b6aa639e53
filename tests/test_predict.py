"""A guess at the waves is judged by a real run: the first difference is named, with its reason; then all is shown."""

from __future__ import annotations

import sys

import pytest
from forecasts import NASTY, Page, crossed, lap
from helpers import make

from minigraph import END, START, Graph
from minigraph.widgets.foretell import foretell
from minigraph.widgets.predict import Predict, judge, parsed, predict, waves_by_node

RIGHT = {"slow_a": 1, "quick_b": 1, "quick_a": 2, "slow_b": 2, "join": 3}


@pytest.fixture
def moving(monkeypatch):
    """As in a notebook that a person looks at."""
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("MINIGRAPH_HEADLESS", raising=False)


# ---- judging


def test_a_right_guess():
    """Every node in its wave."""
    said = predict(crossed()).check(RIGHT)
    assert said
    assert repr(said) == "✓ Right: 5 nodes in 3 waves."


@pytest.mark.parametrize("wrong, says", [
    ({"join": 2}, "You said 'join' runs in wave 2; it runs in wave 3, because it waits for 'quick_a' and 'slow_b', "
                  "which run in wave 2."),
    ({"quick_a": 1}, "You said 'quick_a' runs in wave 1; it runs in wave 2, because it waits for 'slow_a', "
                     "which runs in wave 1."),
    ({"join": 4}, "You said 'join' runs in wave 4; it runs in wave 3, because all it waits for is over when "
                  "'quick_a' and 'slow_b' of wave 2 are done."),
    ({"join": None}, "You said 'join' does not run; it runs in wave 3, because all it waits for is over when "
                     "'quick_a' and 'slow_b' of wave 2 are done."),
    ({"slow_a": 2}, "You said 'slow_a' runs in wave 2; it runs in wave 1, because START leads to it, and there is "
                    "nothing else to wait for."),
    ({"quick_a": [2, 3]}, "You said 'quick_a' runs in waves 2 and 3; it runs in wave 2, because nothing leads to it "
                          "again."),
    ({"quick_a": []}, "You said 'quick_a' does not run; it runs in wave 2, because all it waits for is over when "
                      "'slow_a' of wave 1 is done."),
])
def test_the_first_difference_is_named_with_its_reason(wrong, says):
    """One sentence: what was said, what is, and why."""
    said = predict(crossed()).check({**RIGHT, **wrong})
    assert not said
    assert said.text == says
    assert said.nodes == list(wrong)


def test_the_earliest_wave_comes_first():
    """Of several mistakes, that of the earliest wave; of one wave, the first in the graph."""
    both = predict(crossed()).check({**RIGHT, "join": 2, "quick_a": 1})
    assert both.text.startswith("You said 'quick_a'")
    assert both.nodes == ["quick_a", "join"]
    assert predict(crossed()).check(dict.fromkeys(RIGHT, 1)).text.startswith("You said 'quick_a' runs in wave 1")
    assert predict(crossed()).check({**RIGHT, "slow_a": 2, "quick_b": 2}).text.startswith("You said 'slow_a'")


def test_the_order_of_the_graph_does_not_matter():
    """`b` was added first and runs second: the mistake about `a` comes first in time."""
    graph = make("b>END a>b START>a")
    assert predict(graph).check({"b": None, "a": 2}).text.startswith("You said 'a' runs in wave 2")


@pytest.mark.parametrize("choice, guess, says", [
    ("good", {"draft": 1, "check": 2, "save": 3, "person": 3},
     "You said 'person' runs in wave 3; it does not run, because the router on 'check' says 'good'."),
    (["again", "good"], {"draft": 1, "check": 2, "save": 3, "person": None},
     "You said 'draft' runs in wave 1; it runs in waves 1 and 3, because all it waits for is over when 'check' of "
     "wave 2 is done."),
    (["again", "good"], {"draft": [1, 3], "check": [2, 4], "save": 3, "person": None},
     "You said 'save' runs in wave 3; it runs in wave 5, because it waits for 'check', which runs in wave 4."),
    ("again", {"draft": [1, 3, 5, 7], "check": [2, 4, 6], "save": None, "person": None},
     "You said 'draft' runs in waves 1, 3, 5 and 7; it runs in waves 1, 3 and 5, because max_visits=3 reached."),
    ("again", {"draft": [1, 3, 5], "check": [2, 4, 6], "save": 7, "person": None},
     "You said 'save' runs in wave 7; it does not run, because the router on 'check' says 'again'."),
])
def test_loops_and_routers(choice, guess, says):
    """A node may run in several waves, or in none, and a router is the reason."""
    assert predict(lap(), choices={"check": choice}).check(guess).text == says


def test_a_handler_is_for_failures():
    """Nothing fails in a forecast, so that a node which only on_error leads to does not run."""
    graph = make("START>a a>b", a={"on_error": "c"}, c={})
    assert predict(graph).check({"a": 1, "b": 2, "c": 2}).text == (
        "You said 'c' runs in wave 2; it does not run, because only a failure leads to it.")


def test_a_router_keeps_from_running_what_lies_further_below():
    """`c` is two edges below the label that was not said."""
    graph = make("START>a b>c", routers={"a": (lambda state: "end", {"end": END, "on": "b"})})
    assert predict(graph).check({"a": 1, "b": None, "c": 2}).text.endswith("because the router on 'a' says 'end'.")


def test_a_blocked_node():
    """What is below a refusal that nobody handles is blocked, and the reason says so."""
    graph = make("START>a a>b", a={"max_visits": 1}, b={}, routers={"b": (lambda state: "x", {"x": "a"})})
    assert predict(graph).check({"a": 1, "b": [2, 4]}).text == (
        "You said 'b' runs in waves 2 and 4; it runs in wave 2, because a node above it failed or is blocked: a.")


def test_a_lap_is_waited_for():
    """A reason is there also where no edge leads from the wave before: the wave is named whole."""
    graph = make("START>a,x a>b", b={}, x={}, y={}, a={"max_visits": 2},
                 routers={"b": (lambda s: "on", {"again": "a", "on": END}), "x": (lambda s: "y", {"y": "y"})})
    right = waves_by_node(foretell(graph, choices={"b": ["again", "on"]}), graph)
    assert right == {"a": [1, 3], "x": [1], "b": [2, 4], "y": [2]}
    assert "it waits for 'b', which runs in wave 2" in judge(
        {**right, "a": [1, 2]}, foretell(graph, choices={"b": ["again", "on"]}), graph).text


@pytest.mark.parametrize("guess, says", [
    ({}, "say something about 'slow_a', 'quick_b', 'quick_a', 'slow_b' and 'join' too"),
    ({**RIGHT, "jion": 3}, "no such node 'jion'; did you mean 'join'?"),
    ({**RIGHT, "zzz": 3}, "no such node 'zzz'"),
    ({**RIGHT, "join": 0}, "'join': 0 is no wave; waves are numbered from 1"),
    ({**RIGHT, "join": [2, "3"]}, "is no wave"),
    ({**RIGHT, "join": "3"}, "is no wave"),
    ({**RIGHT, "join": 2.5}, "is no wave"),
    ({**RIGHT, "join": True}, "is no wave"),
])
def test_a_guess_has_to_say_something_about_every_node(guess, says):
    """A ValueError names what is missing, unknown or no wave."""
    with pytest.raises(ValueError) as error:
        predict(crossed()).check(guess)
    assert says in str(error.value)


@pytest.mark.parametrize("text, means", [("2", [2]), (" 2, 4 ", [2, 4]), ("2 4", [2, 4]), ("2;4", [2, 4]),
                                         ("-", None), ("not at all", None), ("Never", None)])
def test_a_field_is_read(text, means):
    """Numbers, however they are parted, or a dash."""
    assert parsed(text) == means


@pytest.mark.parametrize("text", ["two", "2.5", "-1", "2,", "1e3", "٣x"])
def test_a_field_that_says_no_wave(text):
    """What cannot be read is quoted."""
    with pytest.raises(ValueError, match="is no wave: write its number, or several as in 2, 4, or - for not at all"):
        parsed(text)


# ---- asking first


def test_the_question_does_not_give_the_answer_away():
    """In words: the question, what is supposed of routers, how to answer, and the graph."""
    assert predict(lap()).text.splitlines() == [
        "In which wave does each node of 'lap' run?",
        "Suppose the router on 'check' says 'good'.",
        "Answer with .check({'draft': ..., 'check': ..., ...}): the number of the wave, a list of them, or None for "
        "not at all.",
        *lap().to_text().splitlines()]
    assert repr(predict(crossed())) == predict(crossed()).text
    assert "Suppose" not in predict(crossed()).text


def test_what_is_supposed_of_routers():
    """Visit by visit, where it changes."""
    assert predict(lap(), choices={"check": ["again", "good"]}).supposed == (
        "Suppose the router on 'check' says 'again', then 'good'.")


def test_headless_shows_the_question_and_the_graph(monkeypatch):
    """Without widgets there is the picture of the graph, and the question in words; no wave is shown."""
    monkeypatch.setenv("MINIGRAPH_HEADLESS", "1")
    data, about = predict(crossed())._repr_mimebundle_()
    assert data["text/plain"] == predict(crossed()).text
    assert "application/vnd.jupyter.widget-view+json" not in data
    monkeypatch.delenv("MINIGRAPH_HEADLESS")
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert "application/vnd.jupyter.widget-view+json" not in predict(crossed())._repr_mimebundle_()[0]


# ---- the widget, without a browser


def test_nothing_is_shown_before_it_is_asked(moving):
    """A menu a node, nothing chosen, nothing revealed; pressing the button too early asks for the rest."""
    controls = predict(crossed()).controls
    assert {name: field.value for name, field in controls.fields.items()} == dict.fromkeys(RIGHT, "")
    assert controls.fields["join"].options[0] == ("in wave ...", "")
    assert controls.fields["join"].options[-2:] == (("in wave 5", "5"), ("not at all", "not at all"))
    assert controls.verdict.value == ""
    controls.fields["join"].value = "3"
    controls.button.click()
    shown = Page(controls.verdict.value)
    assert "say something about 'slow_a', 'quick_b', 'quick_a' and 'slow_b' too" in shown.text
    assert not shown.of("wave")


def guessed(quiz: Predict, **guess: str) -> Page:
    """What is shown when these are filled in and the button is pressed."""
    for name, value in guess.items():
        quiz.controls.fields[name].value = value
    quiz.controls.button.click()
    return Page(quiz.controls.verdict.value)


def test_the_verdict_and_the_real_waves(moving):
    """The sentence, then each wave; a sign and words beside each name, not a colour alone."""
    shown = guessed(predict(crossed()), slow_a="1", quick_b="1", quick_a="1", slow_b="2", join="3")
    assert shown.text == (
        "✗ You said 'quick_a' runs in wave 1; it runs in wave 2, because it waits for 'slow_a', which runs in wave 1.|"
        "wave 1|✓ slow_a|✓ quick_b|wave 2|✗ quick_a |(you said 1)|✓ slow_b|wave 3|✓ join|")
    assert len(shown.of("wrong")) == 1


def test_a_graph_with_a_loop_has_fields_for_several_waves(moving):
    """Each wave of a node is right or wrong by itself; what does not run has a column of its own."""
    shown = guessed(predict(lap(), choices={"check": ["again", "good"]}), draft="1", check="2, 4", save="5", person="-")
    assert shown.text.partition("wave 1|")[2] == (
        "✓ draft|wave 2|✓ check|wave 3|✗ draft |(you said 1)|wave 4|✓ check|wave 5|✓ save|not at all|✓ person|")
    shown = guessed(predict(lap()), draft="1, 3", check="2", save="-", person="3")
    assert shown.text.partition("wave 1|")[2] == (
        "✗ draft |(you said 1 and 3)|wave 2|✓ check|wave 3|✗ save |(you said not at all)|not at all|✗ person |"
        "(you said 3)|")


def test_a_field_that_cannot_be_read_is_said_so(moving):
    """No traceback in the air: the sentence stands where the verdict would."""
    shown = guessed(predict(lap()), draft="first <b>", check="2", save="3", person="-")
    assert "'first <b>' is no wave: write its number" in shown.text
    assert {tag for tag, _ in shown.tags} == {"style", "div"}


def test_names_come_through_escaped_and_whole(moving):
    """Markup in names of nodes, graphs and labels is text: in the question, the fields and the verdict."""
    graph = Graph(NASTY).add_node(NASTY, lambda state: {}).add_node("b", lambda state: {}).add_edge(START, NASTY)
    graph.add_router(NASTY, lambda state: NASTY, {NASTY: "b", "other": END})
    quiz = predict(graph)
    question = Page(quiz.controls.box.children[0].value)
    assert {tag for tag, _ in question.tags} <= {"style", "div", "img", "p", "b", "pre"}
    assert "says '<script>alert(1)</script> & " in question.text
    shown = guessed(quiz, **{NASTY: "2", "b": "1"})
    assert {tag for tag, _ in shown.tags} == {"style", "div", "b", "i"}
    assert "✗ <script>alert(1)</script> & " in shown.text


def test_a_notebook_gets_the_widget_and_the_question(moving):
    """The text twin is the question."""
    bundle = predict(crossed())._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert bundle["text/plain"].startswith("In which wave does each node of 'crossed' run?")
