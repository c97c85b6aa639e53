"""Every exercise of every notebook: its solution passes, and each planted mistake is told what it is.

An exercise stands here as soon as its module is in minigraph/exercises.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import within

from minigraph import START, Graph, Node, run_graph
from minigraph.checks import TOPICS, Exercise, answer_of, check, exercises

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"


def made() -> Any:
    """The module notebooks/make_solutions.py."""
    spec = importlib.util.spec_from_file_location("make_solutions", NOTEBOOKS / "make_solutions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = made()
PRESENT: list[str] = MADE.topics()
TASKS: list[Exercise] = [task for topic in PRESENT for task in exercises(topic)]
each = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
each_wrong = pytest.mark.parametrize(("task", "mistake"), [(task, mistake) for task in TASKS for mistake in task.wrong],
                                     ids=lambda value: value if isinstance(value, str) else value.name)


def verdict(task: Exercise, answer: Any) -> str:
    """The verdict's text, having made sure that it is one line, soon there, and no traceback."""
    said = within(20, lambda: check(task.name, answer))
    assert repr(said) == said.text and "\n" not in said.text and "Traceback" not in said.text
    assert said.text.startswith(f"✓ {task.name}: right." if said.right else f"✗ {task.name}: ")
    assert len(said.text) < 400, "too long to be read"
    return str(said.text)


# ---- what an exercise is


def test_every_module_is_a_topic() -> None:
    """A module of exercises that no topic names would never be found."""
    found = {path.stem for path in (ROOT / "minigraph" / "exercises").glob("*.py")} - {"__init__"}
    assert found <= set(TOPICS)


@pytest.mark.parametrize("topic", PRESENT)
def test_a_topic_has_two_exercises(topic: str) -> None:
    """One for the room and one to take home, numbered."""
    assert [task.name for task in exercises(topic)][:2] == [f"{topic}-1", f"{topic}-2"]


@each
def test_an_exercise_is_complete(task: Exercise) -> None:
    """A statement, what to do with an empty cell, hints, why the answer is right, and three mistakes at least."""
    assert task.statement.strip() and task.todo.strip() and task.why.strip()
    assert task.hints and all(text.strip() for text in task.hints)
    assert len(set(task.hints)) == len(task.hints)
    assert len(task.wrong) >= 3
    assert len({wrong.hint for wrong in task.wrong.values()}) >= 3, "three mistakes, and each has words of its own"
    assert all(len(wrong.hint.split()) >= 2 for wrong in task.wrong.values()), "one word is found anywhere"


@each
def test_answers_can_be_typed(task: Exercise) -> None:
    """A solution fits into a cell, and it and all wrong answers import from minigraph alone."""
    assert len(task.solution.strip().splitlines()) <= 15
    for code in (task.solution, *(wrong.code for wrong in task.wrong.values())):
        for node in ast.walk(ast.parse(code)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [])
            assert all(name.split(".")[0] == "minigraph" for name in names), code


# ---- how it is judged


@each
def test_the_solution_passes(task: Exercise) -> None:
    """And is told why it is right."""
    assert verdict(task, answer_of(task.solution)) == f"✓ {task.name}: right. {task.why}"


@each
def test_an_answer_can_be_checked_twice(task: Exercise) -> None:
    """Checking changes nothing of the answer."""
    answer = answer_of(task.solution)
    assert verdict(task, answer) == verdict(task, answer)


@each_wrong
def test_a_wrong_answer_draws_its_hint(task: Exercise, mistake: str) -> None:
    """Every planted mistake fails, and the verdict contains the words that help."""
    wrong = task.wrong[mistake]
    said = verdict(task, answer_of(wrong.code))
    assert said.startswith("✗") and wrong.hint in said
    assert "could not be checked" not in said


@each
@pytest.mark.parametrize("answer", [None, ..., ""], ids=repr)
def test_an_empty_answer_is_told_what_to_do(task: Exercise, answer: Any) -> None:
    """The cell as it stands in the notebook is no mistake."""
    assert verdict(task, answer) == (f"✗ {task.name}: no answer yet: {task.todo}, and run the cell again. "
                                     f"A first step is in hint({task.name!r}).")


GARBAGE: dict[str, Callable[[], Any]] = {
    "42": lambda: 42,
    "-1": lambda: -1,
    "nan": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "a huge number": lambda: 10**30,
    "x": lambda: "x",
    "[]": list,
    "{}": dict,
    "lists in lists": lambda: [[["x"]]],
    "keys that are no text": lambda: {1: 2, None: ...},
    "True": lambda: True,
    "a set": lambda: {1, 2},
    "a function that raises": lambda: lambda: 1 / 0,
    "a function that raises for any state": lambda: lambda *args: 1 / 0,
    "a function that returns nothing": lambda: lambda *args: None,
    "the class Graph": lambda: Graph,
    "an empty graph": lambda: Graph("mine"),
    "a graph that goes nowhere": lambda: Graph("mine").add_node("a", lambda state: None),
    "a graph that raises": lambda: Graph("mine").add_node("a", lambda state: 1 / 0).add_edge(START, "a"),
    "a graph without an end": lambda: (
        Graph("mine").add_node("a", lambda state: None, max_visits=10**9).add_edge(START, "a")
        .add_router("a", lambda state: "on", {"on": "a"})),
    "what a run returns": lambda: run_graph(Graph("mine").add_node("a", lambda state: {"a": 1}).add_edge(START, "a"),
                                            {"b": 2}),
}


@each
@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_answered(task: Exercise, garbage: str) -> None:
    """Anything at all gets a verdict: wrong, in a sentence that is about the answer and not about the checker."""
    said = verdict(task, GARBAGE[garbage]())
    assert said.startswith("✗")
    if not garbage.startswith("a function"):
        assert "could not be checked" not in said, "the checker stumbled over it: ask is_graph() and the like first"


def broken(graph: Graph, fn: Callable[[Any], Any]) -> Graph:
    """The same graph, every node of which does something else."""
    copy = Graph(graph.name)
    for node in graph.nodes.values():
        copy.add_node(Node(node.name, fn, node.kind, node.max_visits, node.on_error))
    for src, targets in graph.edges.items():
        for dst in targets:
            copy.add_edge(src, dst)
    for src, (route, targets) in graph.routers.items():
        copy.add_router(src, route, {label: list(ends) for label, ends in targets.items()})
    return copy


NODES: dict[str, Callable[[Any], Any]] = {
    "raise": lambda state: 1 / 0, "return nothing": lambda state: None, "return garbage": lambda state: 42,
    "exit": lambda state: exit(), "all write one key": lambda state: {"x": 1},
}


GRAPHS = [task for task in TASKS if isinstance(answer_of(task.solution), Graph)]


@pytest.mark.parametrize("task", GRAPHS, ids=lambda task: task.name)
@pytest.mark.parametrize("nodes", NODES)
def test_the_right_shape_is_not_enough(task: Exercise, nodes: str) -> None:
    """A graph shaped like the solution, whose nodes do something else, is wrong too, and is told so in a sentence."""
    assert verdict(task, broken(answer_of(task.solution), NODES[nodes])).startswith("✗")


# ---- where it stands


def words(text: str) -> str:
    return " ".join(text.split()).casefold()


@pytest.mark.parametrize("topic", PRESENT)
def test_the_notebook_states_its_exercises(topic: str) -> None:
    """The statement in the notebook is the exercise's own, and a cell below checks the answer."""
    nbformat = pytest.importorskip("nbformat")
    path = NOTEBOOKS / f"{TOPICS[topic]}.ipynb"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    cells = nbformat.read(path, as_version=4).cells
    text = words(" ".join(cell.source for cell in cells if cell.cell_type == "markdown"))
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    for task in exercises(topic):
        assert words(task.statement) in text, f"{task.name}: {task.statement}"
        cell = next((cell for cell in code if f'check("{task.name}", answer)' in cell), None)
        assert cell is not None and re.search(r"^answer = ", cell, re.MULTILINE), task.name
        # What stands in the cell before anybody has typed is no answer that passes.
        assert not check(task.name, answer_of("from minigraph.checks import *\n" + _imports(code) + cell)).right


def _imports(code: list[str]) -> str:
    """The first code cell, which imports; without it the cell of the exercise knows no name."""
    return code[0] + "\n"


@pytest.mark.parametrize("topic", PRESENT)
def test_the_solutions_are_those_of_the_exercises(topic: str) -> None:
    """notebooks/solutions/ is made, not written: after a change, run notebooks/make_solutions.py."""
    nbformat = pytest.importorskip("nbformat")
    path = MADE.path_of(topic)
    assert path.exists(), "run notebooks/make_solutions.py"
    cells = nbformat.read(path, as_version=4).cells
    assert [(cell.cell_type, cell.source) for cell in cells] == MADE.cells(topic), "run notebooks/make_solutions.py"
    shown = [output.data.get("text/plain") for cell in cells for output in cell.get("outputs", []) if "data" in output]
    assert [text for text in shown if "✓" in text] == [
        f"✓ {task.name}: right. {task.why}" for task in exercises(topic)]


def test_no_solution_is_left_over() -> None:
    """Every notebook in solutions/ belongs to a topic that has exercises."""
    assert {path.name for path in (NOTEBOOKS / "solutions").glob("*.ipynb")} == {
        MADE.path_of(topic).name for topic in PRESENT}


# ---- the numbers that two exercises ask for are those of the real runs


def test_what_each_engine_reads(tmp_path: Path) -> None:
    """start-2 counts what gather and brief really read."""
    pytest.importorskip("icalendar")
    from minigraph.exercises.start import READ
    from minigraph.workflows import brief, gather
    state, trace = brief.run(outbox=tmp_path)
    assert len(state["read"]) == READ["loop"] and len([call for call in trace.calls() if call.kind == "tool"]) == 3
    _, trace = gather.run(outbox=tmp_path)
    assert len([node for node in trace.nodes if node.startswith("scan_")]) == READ["graph"]
    assert len(trace.nodes) == 6


def test_the_figures_of_the_honest_sentence(tmp_path: Path) -> None:
    """loops-2 asks for what the traces of the real runs say."""
    pytest.importorskip("icalendar")
    from minigraph.exercises.loops import figures
    from minigraph.workflows import brief, comparison, gather
    traces = [engine.run(outbox=tmp_path)[1] for engine in (gather, brief)]
    real, ours = comparison.compare(*traces), figures()
    assert ours == pytest.approx({
        "at_once": real.graph_gathering, "series": real.series, "graph": real.graph_total,
        "loop_gathering": real.loop_gathering, "loop": real.loop_total, "gathering": real.ratio,
        "overlap": real.overlap, "overall": 100 * real.saved})
