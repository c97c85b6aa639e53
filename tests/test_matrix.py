"""The matrix of a run: who wrote what and whose word stood at the end, as data, as words, and on Axes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from charts import faults, letter, mapped, nested, odd, palest, run, run_then_resume, see_through, takes, texts
from helpers import make

from minigraph import END, START, Graph
from minigraph.clock import sleep
from minigraph.matrix import Table, matrix, matrix_chart, table, table_text
from minigraph.trace import Trace

pytest.importorskip("matplotlib")


def writes(**keys: Any) -> Callable[[Any], dict[str, Any]]:
    return lambda state: keys


def answers() -> Trace:
    """Ada answers, and Bob overwrites it; both the question and a first draft were there."""
    graph = make("START>ada ada>bob bob>END", name="answers", ada=writes(answer="yes", draft=2),
                 bob=writes(answer="no"))
    return run(graph, {"question": "?", "draft": 1})


def at_once() -> Trace:
    """Two branches write one key: a collision."""
    graph = make("START>tone,facts", name="at once", tone=writes(notes=1), facts=writes(notes=2, source=3))
    return run(graph, {"notes": []})


def laps() -> Trace:
    """A writer and a reviewer that take turns with one key."""
    turns = iter(["again", "again", "done"])
    graph = make("START>write write>review", name="laps", write={"fn": writes(text=1), "max_visits": 3},
                 review=lambda state: {"score": 1} if sleep(1) else {"text": 2},
                 routers={"review": (lambda state: next(turns), {"again": "write", "done": END})})
    return run(graph)


def marks(found: Table) -> dict[tuple[str, str], tuple[str, str]]:
    """Return {(node, key): (what the cell says, what became of it)}."""
    return {place: (cell.text, found.fate(cell)) for place, cell in found.cells.items()}


# ---- as data


def test_who_overwrote_my_answer() -> None:
    """A row a node, a column a key; the cell of whoever wrote last, and those that were overwritten."""
    found = table(answers())
    assert found.rows == {"START": "", "ada": "", "bob": ""}
    assert found.keys == ["question", "draft", "answer"]
    assert found.writers == {"question": [], "draft": ["ada"], "answer": ["ada", "bob"]}
    assert found.last == {"question": "START", "draft": "ada", "answer": "bob"}
    assert marks(found) == {
        ("START", "question"): ("w", "last"), ("START", "draft"): ("w", "overwritten"),
        ("ada", "draft"): ("w", "last"), ("ada", "answer"): ("w", "overwritten"), ("bob", "answer"): ("w", "last")}
    assert [found.sign(key) for key in found.keys] == ["", "", "!"]


def test_a_collision_shows_both_writers_and_no_last_one() -> None:
    """The run ended by an exception; its trace still has what both wrote."""
    found = table(at_once())
    assert found.clashes == {"notes": ["tone", "facts"]}
    assert marks(found) == {
        ("START", "notes"): ("w", "overwritten"), ("tone", "notes"): ("w", "clash"), ("facts", "notes"): ("w", "clash"),
        ("facts", "source"): ("w", "last")}
    assert (found.sign("notes"), found.last) == ("✗", {"source": "facts"})


def test_a_collision_on_two_laps_of_one_node_is_one_too() -> None:
    """The message names the node once, and the key."""
    error = ("StateCollision: node 'a' wrote 'x' on two laps, and its second visit does not come after its first: lead "
             "an edge from 'a' to the node from which the loop goes back")
    events: list[dict[str, Any]] = [{"kind": "graph_start", "t": 0, "workflow": "w", "nodes": ["a"],
                                     "schedule": "ready", "state": {"y": 1}}]
    for visit in (1, 2):
        events += [{"kind": "node_start", "t": visit, "node": "a", "visit": visit, "wave": None},
                   {"kind": "node_end", "t": visit, "node": "a", "visit": visit, "ms": 0, "keys": ["x", "z"],
                    "error": None}]
    found = table(Trace([*events, {"kind": "graph_end", "t": 2, "status": "failed", "error": error}]))
    assert (found.clashes, found.last) == ({"x": ["a"]}, {"y": "START", "z": "a"})
    assert "x: a wrote it on two laps, and neither comes after the other" in matrix_chart(
        Trace([*events, {"kind": "graph_end", "t": 2, "status": "failed", "error": error}])).text


def test_a_node_that_runs_again_says_on_which_visits_it_wrote() -> None:
    """In ranges; whoever wrote last in time is the last, not whoever stands last in the graph."""
    found = table(laps())
    assert marks(found) == {("write", "text"): ("1-3", "overwritten"), ("review", "text"): ("1-3", "last")}
    assert found.writers["text"] == ["write", "review"] * 3
    now_and_then = iter([{"x": 1}, None, {"x": 1}, {"x": 1}])
    turns = iter(["again"] * 3 + ["done"])
    graph = make("START>a", a={"fn": lambda state: next(now_and_then), "max_visits": 4},
                 routers={"a": (lambda state: next(turns), {"again": "a", "done": END})})
    assert marks(table(run(graph))) == {("a", "x"): ("1 3-4", "last")}


def test_what_there_is_to_say_of_a_row() -> None:
    """It failed, it waits, it wrote nothing; what did not run has no row; errors are the engine's key, not a node's."""
    graph = make("START>a,b a>c b>END", a=takes(1, ValueError("no")), b=lambda state: None)
    assert table(run(graph, {"errors": {}})).rows == {"START": "with nothing", "a": "failed", "b": "wrote nothing"}
    assert table(run(letter())).rows["approve"] == "waits for an answer"


def test_the_blackboard_of_an_inner_graph_is_another() -> None:
    """What comes out of the node is what the node wrote."""
    found = table(run(nested(2)))
    assert list(found.rows) == ["START", "plan", "research", "weather", "write"]
    assert found.keys == ["topic", "weather", "ranked", "text"]
    assert marks(found)["research", "ranked"] == ("1-2", "last")
    assert table(run(mapped(3))).keys == ["pages", "texts"]


def test_a_resumed_run_begins_with_what_was_there() -> None:
    """Alone it has that in the row START; in the trace of both, the nodes that wrote it have it."""
    first, again, both = Trace(), Trace(), Trace()
    run_then_resume(letter(), {"approve": "yes"}, first, again)
    run_then_resume(letter(), {"approve": "yes"}, both, both)
    after = [("approve", "approved"), ("send", "sent")]
    assert list(table(again).cells) == [("START", "text"), ("START", "facts"), *after]
    assert list(table(both).cells) == [("draft", "text"), ("facts", "facts"), *after]


def test_a_trace_from_a_file_gives_the_same_matrix(tmp_path: Path) -> None:
    """JSONL holds all that a matrix needs."""
    for trace in (answers(), at_once(), laps(), run(nested())):
        trace.to_jsonl(tmp_path / "trace.jsonl")
        assert table(Trace.from_jsonl(tmp_path / "trace.jsonl")) == table(trace)


def test_a_long_run_is_read_in_linear_time() -> None:
    """20,000 writes of one key are a moment's work."""
    events: list[dict[str, Any]] = [{"kind": "graph_start", "t": 0, "workflow": "w", "nodes": ["a"]}]
    for visit in range(20_000):
        events += [{"kind": "node_start", "t": visit, "node": "a", "visit": visit + 1, "wave": None},
                   {"kind": "node_end", "t": visit, "node": "a", "visit": visit + 1, "ms": 0, "keys": ["x"],
                    "error": None}]
    assert table(Trace(events)).cells["a", "x"].text == "1-20000"


# ---- as words


def test_the_text_twin_has_it_all() -> None:
    """The table, what the marks mean, who wrote in turn, and how the run ended."""
    assert matrix_chart(answers()).text.splitlines() == [
        "       question  draft  answer !",
        "START  w*        w",
        "ada              w*     w",
        "bob                     w*",
        "(w: wrote it; *: wrote last; !: more than one node wrote it)",
        "answer: written by ada, then bob, which wrote last",
        "answers: done after 0.000 s"]
    assert matrix_chart(at_once()).text.splitlines() == [
        "       notes ✗  source",
        "START  w",
        "tone   w✗",
        "facts  w✗       w*",
        "(w: wrote it; *: wrote last; ✗: two wrote it, and neither comes after the other)",
        "notes: tone and facts both wrote it, and neither comes after the other",
        "at once: failed after 0.000 s"]


def test_many_turns_are_told_in_short() -> None:
    """The first, the last, and how many between."""
    found = table(laps())
    assert ("text: written by write, then review, then write, then review, then write, then review, which wrote last"
            in table_text(found).splitlines())
    found.writers["text"] *= 10
    assert ("text: written by write, then review, then write, then 55 more, then write, then review, which wrote last"
            in table_text(found).splitlines())


def test_nothing_written_is_said() -> None:
    """Of a run of nothing, and of a loop, which has no blackboard."""
    assert matrix_chart(run(make("START>END"))).text.splitlines() == ["nothing was written", "test: done after 0.000 s"]
    loop = Trace([{"kind": "loop_start", "t": 0, "workflow": "brief"}])
    assert matrix_chart(loop).text.startswith("nothing was written")
    assert "nothing was written" in texts(matrix(loop))


# ---- on Axes


def cells(ax: Any) -> dict[tuple[str, str], tuple[str | None, str]]:
    """Return {(row, column): (hatch, what is written in it)} of the cells, read back from the Axes."""
    rows = [label.get_text() for label in ax.get_yticklabels()]
    columns = [label.get_text() for label in ax.get_xticklabels()]
    said = {(int(text.xy[0]), int(text.xy[1])): text.get_text() for text in ax.texts if text.xycoords == "data"}
    return {(rows[int(patch.get_y())], columns[int(patch.get_x())]):
            (patch.get_hatch(), said.get((int(patch.get_x()), int(patch.get_y())), ""))
            for patch in ax.patches if patch.get_height() < 0.9}


def test_a_key_that_two_nodes_wrote_stands_out_without_colour() -> None:
    """By the sign beside its name, in bold, and by the hatching of what was overwritten."""
    ax = matrix(answers())
    assert cells(ax) == {
        ("START", "question"): (None, "w"), ("START", "draft"): ("////", "w"), ("ada", "draft"): (None, "w"),
        ("ada", "! answer"): ("////", "w"), ("bob", "! answer"): (None, "w")}
    assert [label.get_fontproperties().get_file().endswith("Bold.ttf") for label in ax.get_xticklabels()] == [
        False, False, True]
    assert texts(ax)[-2:] == [
        "answers: done after 0.000 s",
        "w: wrote it; filled: wrote last; hatched: overwritten; !: more than one node wrote it"]


def test_two_branches_that_raced_are_crossed() -> None:
    """With a sign in the cell and beside the key."""
    found = cells(matrix(at_once()))
    assert found["tone", "✗ notes"] == found["facts", "✗ notes"] == ("xxxx", "✗ w")
    assert found["START", "✗ notes"] == ("////", "w")
    assert "neither comes after the other" in texts(matrix(at_once()))[-1]


def test_rows_say_in_signs_and_words_what_became_of_them() -> None:
    """Beside the name of the node."""
    graph = make("START>a,b", a=takes(1, ValueError("no")), b=lambda state: None)
    names = [label.get_text() for label in matrix(run(graph)).get_yticklabels()]
    assert names == ["START (with nothing)", "a (✗ failed)", "b (wrote nothing)"]
    assert "approve (? waits for an answer)" in [label.get_text() for label in matrix(run(letter())).get_yticklabels()]


def wide(nodes: int) -> Trace:
    """Return a run of this many nodes, each writing a key of its own, one that a few share, and one that all do."""
    graph = Graph("wide")
    for i in range(nodes):
        graph.add_node(f"step_{i}", writes(**{f"key_number_{i}": 1, f"shared_{i // 5}": 1, "log": i}))
        graph.add_edge(f"step_{i - 1}" if i else START, f"step_{i}")
    return run(graph, {"topic": 1}, max_steps=nodes)


def tall() -> Trace:
    """Return a run whose one node wrote on many visits, but not on all."""
    turns = iter(["again"] * 39 + ["done"])
    graph = make("START>a", a={"fn": lambda state: {"x": 1} if len(state) % 3 else {f"k{len(state)}": 1},
                               "max_visits": 40},
                 routers={"a": (lambda state: next(turns), {"again": "a", "done": END})})
    return run(graph, max_steps=100)


FAMILY: dict[str, Callable[[], Trace]] = {
    "answers": answers, "a collision": at_once, "laps": laps, "text of any kind": lambda: run(odd()),
    "nested": lambda: run(nested()), "a gate": lambda: run(letter()), "nothing": lambda: run(make("START>END")),
    "one": lambda: run(make("START>a")), "12 nodes": lambda: wide(12), "40 nodes": lambda: wide(40),
    "100 nodes": lambda: wide(100), "visits": tall}


@pytest.mark.parametrize("trace", FAMILY.values(), ids=FAMILY)
def test_labels_never_overlap_or_clip(trace: Callable[[], Trace]) -> None:
    """Whatever is written stands on the figure, whole, over no other words, and with a contrast of 4.5 at least."""
    ax = matrix(trace())
    assert faults(ax) == []
    assert palest(ax) >= 4.5


@pytest.mark.parametrize("name", ["answers", "a collision", "text of any kind", "40 nodes"])
def test_drawn_twice_it_is_the_same_to_the_pixel_and_hides_the_page(name: str) -> None:
    """The same run gives the same pixels, none of them transparent."""
    first = matrix_chart(FAMILY[name]()).png(1)
    assert first == matrix_chart(FAMILY[name]()).png(1)
    assert not see_through(first)


def test_names_are_letters_not_markup() -> None:
    """Dollars are not mathematics, newlines are escapes, and what the font lacks is spelled; nothing warns."""
    graph = make("START>a", name="cost: $5 & $6", a=writes(**{"$x^2$": 1, "line\nbreak": 2, "🚀": 3}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = matrix_chart(run(graph))
        assert [label.get_text() for label in made.axes.get_xticklabels()] == ["$x^2$", "line\\nbreak", "[rocket]"]
        assert not any(text.get_parse_math() for text in [*made.axes.texts, *made.axes.get_xticklabels(),
                                                          *made.axes.get_yticklabels()])
        assert "cost: $5 & $6: done after 0.000 s" in texts(made.axes)
        assert made.png(1)[:4] == b"\x89PNG"
    assert made.text.splitlines()[0].split() == ["$x^2$", '"line\\nbreak"', "🚀"]


def test_axes_that_are_given_are_drawn_on_and_returned() -> None:
    """The figure, its size and the saving are the caller's; on small Axes names stand upright, then not at all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    left, right = figure.subplots(1, 2)
    assert matrix(answers(), left) is left
    assert cells(left) == cells(matrix(answers()))
    assert list(figure.get_size_inches()) == [6, 4]
    assert {label.get_rotation() for label in matrix(wide(12), right).get_xticklabels()} == {90}
    narrow = Figure(figsize=(1, 1)).subplots()
    assert {label.get_text() for label in matrix(wide(40), narrow).get_xticklabels()} == {""}


def test_what_is_no_trace_is_named() -> None:
    """One sentence: the thing, the rule, the way out."""
    sentence = "a matrix is drawn from a Trace, not from a dict: pass the one that observed the run"
    for draw in (matrix, matrix_chart, table):
        with pytest.raises(TypeError, match=re.escape(sentence)):
            draw({"a": 1})  # type: ignore[arg-type]
