"""The machinery of the exercises: verdicts, hints, predictions, and what checkers are made of."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from helpers import make

from minigraph import END, START, Graph, checks, run_graph
from minigraph.checks import (
    Exercise,
    Wrong,
    answer_of,
    cannot_run,
    check,
    compared,
    edges_missing,
    edges_of,
    extra_edges,
    first_difference,
    first_wrong_row,
    hint,
    is_function,
    is_graph,
    is_number,
    listed,
    nodes_missing,
    predict,
    rehearse,
    show_source,
    solution,
    waves_of,
)
from minigraph.clock import now, sleep, virtual_time


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: with it `check("waves-9", answer)` asks the checker it is given."""
    def put(checker: Any, **fields: Any) -> None:
        made = Exercise("waves-9", "Do it.", checker, ["look", "think", "write 4"], "answer = 4\n",
                        {"three": Wrong("answer = 3", "more")}, **fields)
        monkeypatch.setattr(checks, "exercise", lambda name: made)
        monkeypatch.setattr(checks, "_hints_given", {})
    return put


# ---- verdicts


def test_a_right_answer(task: Any) -> None:
    """None from the checker means right: the verdict is true, and adds the sentence why."""
    task(lambda answer: None, why="Two and two.")
    verdict = check("waves-9", 4)
    assert (verdict.right, bool(verdict), repr(verdict)) == (True, True, "✓ waves-9: right. Two and two.")


def test_a_wrong_answer(task: Any) -> None:
    """A sentence from the checker means wrong: the verdict is false, and is that sentence on one line."""
    task(lambda answer: "wave 2: expected b and c,\n   got b")
    verdict = check("waves-9", 3)
    assert (verdict.right, bool(verdict), repr(verdict)) == (
        False, False, "✗ waves-9: wave 2: expected b and c, got b")


@pytest.mark.parametrize("answer", [None, ..., "", "  \n", {"a": ..., "b": None}, [..., ...], (...,)])
def test_an_empty_answer(task: Any, answer: Any) -> None:
    """What is still empty is no mistake: the checker is not asked, and the student is told what to do."""
    task(lambda answer: pytest.fail("it was asked"), todo="write a number")
    assert repr(check("waves-9", answer)) == (
        "✗ waves-9: no answer yet: write a number, and run the cell again. A first step is in hint('waves-9').")


@pytest.mark.parametrize("answer", [[], {}, 0, False, {"a": ..., "b": 1}])
def test_an_answer_that_only_looks_empty(task: Any, answer: Any) -> None:
    """Nothing, as in an empty list, zero or no, can be an answer: the checker decides."""
    task(lambda answer: "asked")
    assert repr(check("waves-9", answer)) == "✗ waves-9: asked"


def test_a_verdict_in_html(task: Any) -> None:
    """In a notebook the verdict is the same text, escaped."""
    task(lambda answer: "expected <b> & c")
    assert "✗ waves-9: expected &lt;b&gt; &amp; c</div>" in check("waves-9", 1)._repr_html_()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(("error", "words"), [
    (ZeroDivisionError("division by zero"), "something in it raised ZeroDivisionError: division by zero"),
    (KeyError("score"), "raised KeyError: 'score'"),
    (SystemExit(0), "raised SystemExit: 0"),
    (KeyboardInterrupt(), "raised KeyboardInterrupt"),
    (RecursionError("too deep"), "raised RecursionError: too deep"),
    (ValueError("two\nlines"), "raised ValueError: two lines"),
    (Unspeakable(), "raised Unspeakable"),
])
def test_what_a_checker_raises_is_a_sentence(task: Any, error: BaseException, words: str) -> None:
    """A student's function may raise anything at all, and the verdict is still one line."""
    def raise_it(answer: Any) -> None:
        raise error
    task(raise_it)
    verdict = check("waves-9", 1)
    assert not verdict.right and verdict.text.endswith(words) and "\n" not in verdict.text


def test_a_graph_that_is_refused_or_collides(task: Any) -> None:
    """The engine's own sentences come through as they are."""
    task(waves_of)
    assert repr(check("waves-9", Graph("mine"))) == (
        "✗ waves-9: the graph is refused before anything runs: graph 'mine' has no edge out of START; "
        "begin it with add_edge(START, 'first node')")
    both = make("START>a,b", a=lambda state: {"x": 1}, b=lambda state: {"x": 2})
    assert repr(check("waves-9", both)).startswith("✗ waves-9: nodes 'a' and 'b' both wrote 'x', and neither comes")


def test_what_never_comes_back_is_given_up(task: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that never ends does not hang the notebook."""
    over = threading.Event()
    monkeypatch.setattr(checks, "MOST_SECONDS", 0.05)
    task(lambda answer: answer())
    begun = time.monotonic()
    try:
        verdict = check("waves-9", over.wait)
    finally:
        over.set()
    assert "is there a loop in it that never ends" in verdict.text and time.monotonic() - begun < 2


# ---- hints, solutions, names


def test_hints_come_one_at_a_time(task: Any) -> None:
    """Each call gives the next hint; after the last one, the last one, and where the solution is."""
    task(lambda answer: None)
    given = [repr(hint("waves-9")) for _ in range(4)]
    assert given[:2] == ["Hint 1 of 3: look", "Hint 2 of 3: think"]
    assert given[2] == given[3] == "Hint 3 of 3: write 4 (That was the last one; there is solution('waves-9').)"


def test_a_solution_shows_itself_as_code(task: Any) -> None:
    """The source, without quotes; in a notebook as Python."""
    task(lambda answer: None)
    assert repr(solution("waves-9")) == "answer = 4"
    assert solution("waves-9")._repr_markdown_() == "```python\nanswer = 4\n```"


@pytest.mark.parametrize(("name", "words"), [
    ("start-9", "no exercise 'start-9'; did you mean 'start-2'?"),
    ("sart-1", "no exercise 'sart-1'; did you mean 'start-1'?"),
    ("7", "no exercise '7'; there are start-1, blackboard-1, waves-1, routers-1, cycles-1, errors-1, loops-1,"),
    (None, "no exercise None; there are start-1,"),
])
def test_an_exercise_that_there_is_not(name: Any, words: str) -> None:
    """A wrong name is a mistake of whoever wrote the cell: LookupError, with the way out."""
    for ask in (check, hint, solution):
        with pytest.raises(LookupError) as caught:
            ask(name)
        assert str(caught.value).startswith(words)


def test_a_topic_that_there_is_not() -> None:
    """Topics are the modules of minigraph.exercises; others are named with a way out."""
    with pytest.raises(LookupError, match="no exercises about 'loop'; did you mean 'loops'?"):
        checks.exercises("loop")


def test_a_topic_whose_module_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic without its module says so; a module that is there and misses something is not taken for that."""
    monkeypatch.setitem(checks.TOPICS, "nowhere", "99_nowhere")
    with pytest.raises(LookupError, match="the exercises about 'nowhere' are not in this copy"):
        check("nowhere-1", 1)

    def broken(name: str, package: str) -> None:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(checks.importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="numpy"):
        check("start-1", 1)


def test_a_checker_sees_the_clock_around_the_check(task: Any) -> None:
    """What the caller made current, virtual time for instance, is current in the checker."""
    def nap(answer: Any) -> None:
        sleep(20)

    task(nap)
    began = time.monotonic()
    with virtual_time() as clock:
        assert check("waves-9", 1).right
    assert clock.now() == 20 and time.monotonic() - began < 5


def test_the_functions_of_an_answer_show_their_source() -> None:
    """Source that is run as an answer can be shown and read, as that of a notebook cell can."""
    import inspect
    answer = answer_of("""
        def answer(state):
            return {"text": "hi"}
    """)
    assert inspect.getsource(answer) == 'def answer(state):\n    return {"text": "hi"}\n'
    assert answer_of("answer = 3") == 3


def test_show_source(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints what stands in the file, without the indentation of a method, an empty line between two."""
    show_source(first, Stands.at)
    assert capsys.readouterr().out == (
        "def first() -> int:\n    return 1\n\ndef at(self) -> int:\n    return 2\n")


def first() -> int:
    return 1


class Stands:
    def at(self) -> int:
        return 2


# ---- predictions


@pytest.mark.parametrize(("guess", "happened", "what", "said"), [
    (3, 1.887, "seconds", "You said 3 seconds; it was 1.887: your guess is 1.6 times that."),
    (1.887, 1.887, "seconds", "You said 1.887 seconds, and so it was."),
    (1.9, 1.887, "seconds", "You said 1.9 seconds; it was 1.887: as good as right."),
    (1.7, 1.887, "seconds", "You said 1.7 seconds; it was 1.887: 0.187 more."),
    (4.4, 13.167, "seconds in all", "You said 4.4 seconds in all; it was 13.167: 3 times your guess."),
    ("2 s", 1.887, "seconds", "You said 2 seconds; it was 1.887: 0.113 less."),
    (0, 0.5, "seconds", "You said 0 seconds; it was 0.5: 0.5 more."),
    (4, 2, "sources that the loop read", "You said 4 sources that the loop read; it was 2: 2 less."),
    (4, 4, "", "You said 4, and so it was."),
    (-1, 1, "", "You said -1; it was 1: 2 more."),
    ("many", 4, "nodes", "You said many; it was 4 nodes."),
    (True, 1, "runs", "You said yes; it was 1 runs."),
    (float("nan"), 4, "nodes", "You said nan; it was 4 nodes."),
    ("slower", "faster", "the graph", "The graph: you said slower; it was faster."),
    ("Faster ", "faster", "", "You said Faster, and so it was."),
    (True, False, "", "You said yes; it was no."),
    (False, False, "does it wait", "Does it wait: you said no, and so it was."),
    (0, False, "", "You said 0; it was no."),
    (None, None, "", "You made no guess, and guessing is half the fun. It was nothing."),
    (..., 1.887, "seconds", "You made no guess, and guessing is half the fun. It was 1.887 seconds."),
    (..., [["a"], ["b"]], "waves", "Waves: you made no guess, and guessing is half the fun. It was a, then b."),
    ([["a"], ["b"]], [["a"], ["b", "c"]], "waves",
     "Waves: for wave 2 you said b; it was b and c. All of them: a, then b and c."),
    ([["a"], ["b"], ["c"]], [["a"], ["b"]], "",
     "For wave 3 you said c; there is none. All of them: a, then b."),
    ([["a"]], [["a"], ["b"]], "", "For wave 2 you said that there is none; it was b. All of them: a, then b."),
    ([["a"], ["c", "b"]], [["a"], ["b", "c"]], "", "You said a, then b and c, and so it was."),
    (["b", "a"], ["a", "b"], "", "You said b and a; it was a and b."),
    (["a", "b"], ("a", "b"), "", "You said a and b, and so it was."),
    (["a", "b"], {"b", "a"}, "", "You said a and b, and so it was."),
    ({"graph": 4, "loop": 4}, {"graph": 4, "loop": 2}, "sources read", "Sources read: for loop you said 4; it was 2."),
    ({"graph": 4}, {"graph": 4, "loop": 2}, "", "For loop you said nothing; it was 2."),
    ({"a": 1, "b": 2}, {"a": 2, "b": 3}, "", "For a you said 1; it was 2. For b you said 2; it was 3."),
    ({"a": 1}, {"a": 1}, "", "You said a 1, and so it was."),
    ("a", [["a"], ["b"]], "", "You said a; it was a, then b."),
])
def test_a_prediction(guess: Any, happened: Any, what: str, said: str) -> None:
    """A guess and what happened are compared in a sentence or two, whatever they are."""
    assert compared(guess, happened, what) == said


class Odd:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_prediction_never_raises() -> None:
    """A guess that can neither be compared nor shown is still answered."""
    assert compared(Odd(), {"a": 1}) == "You said an Odd; it was {'a': 1}."
    assert compared(Odd(), Odd()) == "You said an Odd; it was an Odd."


def test_predict_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints, so that it may stand anywhere in a cell."""
    assert predict(3, 4, "waves") is None
    assert capsys.readouterr().out == "You said 3 waves; it was 4: 1 more.\n"


# ---- questions about a graph


@pytest.mark.parametrize(("answer", "words"), [
    (42, "answer is the number 42, and a graph is asked for"),
    ("x", "answer is the text 'x', and a graph is asked for"),
    ([], "answer is a list, and a graph"),
    ({}, "answer is a dictionary, and a graph"),
    (True, "answer is True, and a graph"),
    (Graph, "answer is the class Graph itself: make a graph of it"),
    (lambda: 1, "answer is a function, and a graph is asked for: call it"),
    (Odd(), "answer is an Odd, and a graph"),
])
def test_is_graph(answer: Any, words: str) -> None:
    """Says what the answer is, and what is asked for."""
    assert (is_graph(answer) or "").startswith(words)


def test_is_graph_of_what_a_run_returns() -> None:
    """The run in place of the graph is a likely slip, and is named in the workshop's word."""
    assert "answer is a blackboard (what a run returns)" in (is_graph(run_graph(make("START>a"), {})) or "")
    assert is_graph(Graph()) is None


def test_cannot_run() -> None:
    """The engine's reason, or None."""
    assert cannot_run(make("START>a")) is None
    assert cannot_run(make("START>a", b=lambda state: None)) == (
        "the graph is refused before anything runs: "
        "nothing leads from START to 'b': add an edge to it, or leave 'b' out")


def a_fork() -> Graph:
    return make("START>a b>END c>END", routers={"a": (lambda state: "b", {"b": "b", "c": ["c", END]})},
                b={"on_error": "c"})


def test_edges() -> None:
    """Edges of routers count as edges; the way to a handler only if it is asked for."""
    assert edges_of(a_fork()) == [
        (START, "a"), ("b", END), ("c", END), ("a", "b"), ("a", "c"), ("a", END)]
    assert edges_of(a_fork(), on_error=True)[-1] == ("b", "c")
    assert edges_missing(a_fork(), [("a", "b"), ("b", "c"), ("c", "a")]) == [("b", "c"), ("c", "a")]
    assert extra_edges(a_fork(), [(START, "a"), ("a", "b")]) == [("a", "c")]


def test_nodes_missing() -> None:
    """Names the first node that is missing, and which name stands in its place."""
    graph = make("START>scan_mails scan_mails>synth")
    assert nodes_missing(graph, ["synth"]) is None
    assert nodes_missing(graph, ["synth", "scan_mail"]) == (
        "the graph has no node 'scan_mail'; yours is called 'scan_mails'")
    assert nodes_missing(graph, ["x"]) == "the graph has no node 'x'; it has scan_mails and synth"
    assert nodes_missing(Graph(), ["x"]) == "the graph has no node 'x'; it has none"


# ---- runs


def test_waves_of() -> None:
    """The waves of a run by name, in virtual time; the state it begins with may be given."""
    began = time.monotonic()
    graph = make("START>a,b a>c b>c", a=lambda state: sleep(20), b=lambda state: {"b": state["x"]})
    assert waves_of(graph, {"x": 1}) == [["a", "b"], ["c"]]
    assert time.monotonic() - began < 5


def test_a_rehearsal_tells_how_it_went() -> None:
    """State, seconds of virtual time, visits; trouble is what nobody took care of."""
    run = rehearse(make("START>a a>b", a=lambda state: sleep(2), b=lambda state: {"at": now()}))
    assert (run.seconds, run.state["at"], run.visits, run.trouble) == (2, 2, {"a": 1, "b": 1}, None)
    failed = rehearse(make("START>a a>b", a=lambda state: 1 / 0))
    assert failed.trouble == "node 'a' failed and nothing took care of it: ZeroDivisionError: division by zero"
    handled = rehearse(make("START>a a>b", a={"fn": lambda state: 1 / 0, "on_error": "b"}))
    assert (handled.trouble, handled.waves) == (None, [["a"], ["b"]])


def test_a_rehearsal_is_bounded() -> None:
    """A loop that never ends is ended, and the trouble says so; the caller's own dictionary is not changed."""
    graph = make("START>a a>b", routers={"b": (lambda state: "on", {"on": "a", "off": END})}, a={"max_visits": 10**9})
    given = {"x": 1}
    run = rehearse(graph, given)
    assert run.trouble == ("the run did not end by itself (max_steps=100 reached: 'a' did not run): "
                           "what ends its loop?")
    assert given == {"x": 1} and run.visits == {"a": 50, "b": 50}


@pytest.mark.parametrize(("expected", "got", "words"), [
    ([["a"], ["b", "c"]], [["a"], ["c", "b"]], None),
    ([["b", "a"]], [["a", "b"]], None),
    ([["a"], ["b", "c"]], [["a"], ["b"]], "wave 2: expected b and c, got b"),
    ([["a"], ["b"]], [["a"]], "wave 2: expected b, got no such wave"),
    ([["a"]], [["a"], ["b"]], "wave 2: expected no such wave, the run is over by then, got b"),
    ([["a", "a"]], [["a"]], "wave 1: expected a and a, got a"),
    ([], [], None),
])
def test_first_difference(expected: Any, got: Any, words: str | None) -> None:
    """The first wave that differs, by name; the order within a wave does not count."""
    assert first_difference(expected, got) == words


@pytest.mark.parametrize(("fn", "words"), [
    (lambda state: "hot" if state["score"] >= 0.8 else "cold", None),
    (lambda state: "hot" if state["score"] > 0.8 else "cold", "for {'score': 0.8}: expected 'hot', got 'cold'"),
    (lambda state: "Hot", "for {'score': 0.9}: expected 'hot', got 'Hot'"),
    (lambda state: 1 / 0, "for {'score': 0.9}: expected 'hot', got ZeroDivisionError: division by zero"),
    (lambda: "hot", "for {'score': 0.9}: expected 'hot', got TypeError: "),
    (lambda state: state.pop("score") and "hot", "for {'score': 0.1}: expected 'cold', got 'hot'"),
])
def test_first_wrong_row(fn: Any, words: str | None) -> None:
    """A table of states tests a router; the first row that does not hold is named, exceptions included."""
    rows = [({"score": 0.9}, "hot"), ({"score": 0.8}, "hot"), ({"score": 0.1}, "cold")]
    said = first_wrong_row(fn, rows)
    assert said is None if words is None else said is not None and said.startswith(words)


def test_first_wrong_row_tells_numbers_from_truth() -> None:
    """1 and 1.0 are the same answer; 1 and True are not."""
    assert first_wrong_row(lambda n: 1.0, [(0, 1)]) is None
    assert first_wrong_row(lambda n: True, [(0, 1)]) == "for 0: expected 1, got True"


def test_other_answers() -> None:
    """Functions and numbers are told from what is none."""
    assert is_function(len) is None
    assert is_function(3) == "answer is the number 3, and a function is asked for: its name alone, without calling it"
    assert is_number(3.5) is None
    assert is_number(True, "seconds") == "answer is True, and seconds is asked for"
    assert is_number(float("nan")) is not None
    assert [listed(names) for names in ([], ["a"], "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
