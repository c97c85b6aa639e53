"""A gate in a notebook: the question, the buttons, and the click that resumes."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import make

from minigraph import Graph, GraphError, resume_graph, run_graph
from minigraph.nodes import graph_node, human_node, key_router
from minigraph.widgets.approve import approve


def asking(**more: Any) -> Graph:
    """draft, then a gate with two choices, then send."""
    return (Graph("g").add_node("draft", lambda s: {"draft": "<b>Dear</b> Ada"})
            .add_node(human_node("ok", "Send {draft}?", "ok", choices=["yes", "no"]))
            .add_node("send", lambda s: {"sent": s["ok"]}).add_edge("START", "draft").add_edge("draft", "ok")
            .add_edge("ok", "send").add_edge("send", "END"))


@pytest.fixture
def headless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIGRAPH_HEADLESS", "1")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("MINIGRAPH_HEADLESS", raising=False)


def test_headless_a_script_answers(headless: None) -> None:
    """Where nobody can click, the answers that are given resume the run at once."""
    desk = approve(run_graph(asking(), {}), {"ok": "yes"})
    assert (desk.state.status, desk.state["sent"]) == ("done", "yes")
    assert repr(desk) == "run done: nobody waits for an answer"


def test_headless_without_a_script_the_question_is_shown(headless: None) -> None:
    """A later cell finds the paused run, and the questions are there as text."""
    desk = approve(run_graph(asking(), {}))
    assert desk.state.status == "paused"
    assert desk._repr_mimebundle_() == {"text/plain": "ok waits for an answer: Send <b>Dear</b> Ada? [yes / no]"}
    assert desk.answer(ok="no")["sent"] == "no"


def test_a_script_for_every_lap(headless: None) -> None:
    """A list answers a gate lap by lap; a function may answer by the question; what runs out leaves the run paused."""
    def laps() -> Any:
        graph = (Graph("laps").add_node("draft", lambda s: {"n": s.get("n", 0) + 1}, max_visits=5)
                 .add_node(human_node("ok", "Draft {n}?", "ok")).add_edge("START", "draft").add_edge("draft", "ok"))
        return run_graph(graph.add_router("ok", key_router("ok"), {"no": "draft", "yes": "END"}), {})
    assert approve(laps(), {"ok": ["no", "no", "yes"]}).state["n"] == 3
    assert approve(laps(), lambda gate, question: "yes" if "2" in question else "no").state["n"] == 2
    assert approve(laps(), {"ok": ["no"], "other": "x"}).state.waiting == {"ok": "Draft 2?"}


def test_the_click_resumes(watched: None) -> None:
    """A button a choice; a click resumes the run, and the buttons make way for how it ended."""
    desk = approve(run_graph(asking(), {}), {"ok": "no"})
    assert desk.state.status == "paused", "the script is only for where nobody can click"
    question, buttons = desk.controls.box.children[0].children
    assert "Send &lt;b&gt;Dear&lt;/b&gt; Ada?" in question.value and "<b>Dear" not in question.value
    assert [button.description for button in buttons.children] == ["yes", "no"]
    buttons.children[0].click()
    assert (desk.state.status, desk.state["sent"]) == ("done", "yes")
    assert "run done" in desk.controls.box.children[0].value
    assert "application/vnd.jupyter.widget-view+json" in desk._repr_mimebundle_()


def test_an_answer_that_is_typed_wrong(watched: None) -> None:
    """The field says why, in one sentence, and the gate waits on."""
    graph = Graph("g").add_node(human_node("n", "How many?", "n", parse=int)).add_edge("START", "n")
    desk = approve(run_graph(graph, {}))
    field, button = desk.controls.box.children[0].children[1].children
    field.value = "three"
    button.click()
    assert desk.state.status == "paused"
    text, inputs = desk.controls.box.children[0].children
    assert "the answer &#x27;three&#x27; to gate &#x27;n&#x27;" in text.value and "still waits" in text.value
    inputs.children[0].value = "3"
    inputs.children[1].click()
    assert desk.state["n"] == 3


def test_several_gates_and_gates_inside(watched: None) -> None:
    """Each has a row of its own, and is answered by itself, in any order."""
    inner = make("START>ask", ask={"fn": human_node("ask", "Inside?", "i", choices=["a"]).fn, "kind": "human"})
    graph = (Graph("g").add_node(human_node("one", "One?", "one", choices=["x"]))
             .add_node(graph_node("two", inner, [], ["i"])).add_edge("START", "one").add_edge("START", "two"))
    desk = approve(run_graph(graph, {}))
    rows = desk.controls.box.children
    assert ["two/ask" in row.children[0].value for row in rows] == [False, True]
    rows[1].children[1].children[0].click()
    assert desk.state.waiting == {"one": "One?"}
    desk.controls.box.children[0].children[1].children[0].click()
    assert (desk.state.status, desk.state["i"], desk.state["one"]) == ("done", "a", "x")


def test_options_and_a_resume_of_ones_own(headless: None) -> None:
    """What resume_graph takes goes to it; `resume` takes its place."""
    records: list[Any] = []
    state = run_graph(asking(), {}, journal=records.append)
    approve(state, {"ok": "yes"}, journal=records.append)
    assert records[-1]["node"] == "send"
    desk = approve(state, {"ok": "yes"},
                   resume=lambda state, given: resume_graph(asking(), state.journal, {"ok": "no"}))
    assert desk.state["sent"] == "no"


def test_what_cannot_be_approved(headless: None) -> None:
    """Not a state, or a wrong answer: one sentence."""
    with pytest.raises(TypeError, match="takes what run_graph or resume_graph returned, not dict"):
        approve({})  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="choose one of 'yes', 'no'"):
        approve(run_graph(asking(), {}), {"ok": "perhaps"})
