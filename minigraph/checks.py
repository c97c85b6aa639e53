"""An exercise is data: what to do, what a wrong answer is told, and an answer that passes.

    check("waves-1", answer)        # ✗ waves-1: wave 2: expected b and c, got b
    hint("waves-1")                 # Hint 1 of 3: ...; the next call gives the next one
    solution("waves-1")             # the source of an answer that passes

A module of minigraph.exercises lists exercises in EXERCISES. A checker is a function of the answer: it returns None
if the answer is right, or one sentence, the first difference, in the workshop's words:

    def check_two_waves(answer):
        return is_graph(answer) or first_difference([["a"], ["b", "c"]], waves_of(answer))

It need not guard against anything: what it raises becomes a sentence, a run is bounded and in virtual time, and what
does not come back is given up.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import linecache
import math
import textwrap
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from html import escape
from typing import Any

from .clock import virtual_time
from .engine import END, Graph, GraphError, GraphState, StateCollision, run_graph
from .trace import Trace

__all__ = ["Exercise", "Rehearsal", "Verdict", "Wrong", "answer_of", "cannot_run", "check", "compared",
           "edges_missing", "edges_of",
           "exercise", "exercises", "extra_edges", "first_difference", "first_wrong_row", "hint", "is_function",
           "is_graph", "is_number", "listed", "nodes_missing", "predict", "rehearse", "show_source", "solution",
           "waves_of"]

Checker = Callable[[Any], "str | None"]

# topic -> the notebook it belongs to, in the order of the course
TOPICS = {"start": "00_start_here", "blackboard": "01_blackboard", "waves": "02_waves", "routers": "03_routers",
          "cycles": "04_cycles", "errors": "05_errors", "loops": "06_loop_vs_graph", "models": "07_models",
          "agents": "08_agent_loop", "gates": "09_gates", "traces": "10_traces", "triage": "11_triage",
          "gather": "12_gather", "content": "13_content", "leads": "14_leads"}
MOST_STEPS = 100  # of a run that a checker makes
MOST_SECONDS = 10.0  # of real time, for one check


@dataclass(frozen=True)
class Wrong:
    """A planted wrong answer: source that defines `answer`, and words that the verdict on it must contain."""

    code: str
    hint: str


@dataclass(frozen=True)
class Exercise:
    """What to do, and how an answer is judged.

    check: answer -> None if it is right, else one sentence. hints: a step each, the last nearly the answer.
    solution: source that defines `answer`. wrong: name of a mistake -> Wrong; at least three. why: one sentence that
    a right answer is told. todo: what an answer that is still empty is told to do.
    """

    name: str
    statement: str
    check: Checker
    hints: Sequence[str]
    solution: str
    wrong: Mapping[str, Wrong]
    why: str = ""
    todo: str = "put your answer in place of the three dots"

    def __repr__(self) -> str:
        return f"<Exercise {self.name}: {len(self.hints)} hints, {len(self.wrong)} wrong answers>"


@dataclass(frozen=True)
class Verdict:
    """What is said about an answer; it shows itself as the text, and is true if the answer is right."""

    name: str
    right: bool
    text: str

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return self.right

    def _repr_html_(self) -> str:
        return _as_html(self.text, "#009E73" if self.right else "#D55E00")


class Hint(str):
    """A text that shows itself without quotes."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return _as_html(self, "#0072B2")


class Source(str):
    """A piece of Python that shows itself as it is written."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}\n```"


def _as_html(text: str, colour: str) -> str:
    # As plain text a notebook would break a long line in the middle of a word.
    return f"<div style='border-left: 4px solid {colour}; padding: 2px 10px'>{escape(text)}</div>"


# ---- what a student calls


def check(name: str, answer: Any = ...) -> Verdict:
    """The verdict on an answer: right, or its first difference. Whatever the answer is, it is never a traceback."""
    task = exercise(name)
    if _is_empty(answer):
        return Verdict(name, False, f"✗ {name}: no answer yet: {task.todo}, and run the cell again. "
                                    f"A first step is in hint({name!r}).")
    wrong = _judged(task, answer)
    if wrong is None:
        return Verdict(name, True, f"✓ {name}: right. {task.why}".rstrip())
    return Verdict(name, False, f"✗ {name}: {wrong}")


def hint(name: str) -> Hint:
    """The next hint, one more each time it is asked for; after the last one, the last one."""
    task = exercise(name)
    number = _hints_given[name] = min(_hints_given.get(name, 0) + 1, len(task.hints))
    more = "" if number < len(task.hints) else f" (That was the last one; there is solution({name!r}).)"
    return Hint(f"Hint {number} of {len(task.hints)}: {task.hints[number - 1]}{more}")


_hints_given: dict[str, int] = {}  # exercise -> how many of its hints this process has given


def solution(name: str) -> Source:
    """The source of an answer that passes."""
    return Source(textwrap.dedent(exercise(name).solution).strip())


def show_source(*things: Any) -> None:
    """Prints the source of functions, methods, classes or modules, as it stands in the file."""
    for number, thing in enumerate(things):
        print(("\n" if number else "") + textwrap.dedent(inspect.getsource(thing)).rstrip())


def predict(guess: Any, happened: Any, what: str = "") -> None:
    """Prints a guess beside what happened, in words, as `compared` puts it."""
    print(compared(guess, happened, what))


def compared(guess: Any, happened: Any, what: str = "") -> str:
    """"You said 3 seconds; it was 1.887: your guess is 1.6 times that." `what` is a unit, or what was guessed.

    Numbers within 2 % of each other agree. Lists of lists of names are compared as waves.
    """
    try:
        said = _compared(guess, happened, what)
    except Exception:  # a guess can be anything, and a prediction is never an error
        said = f"you said {_short(guess)}; it was {_short(happened)}."
    if what and not _number(happened):
        said = f"{what}: {said}"
    return said[:1].upper() + said[1:]


# ---- where exercises are


def exercises(topic: str) -> list[Exercise]:
    """The exercises of a topic, in order; LookupError for a topic that there is not."""
    if topic not in TOPICS:
        raise LookupError(f"no exercises about {topic!r}; {_instead(topic, TOPICS)}")
    try:
        module = importlib.import_module(f".exercises.{topic}", __package__)
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}.exercises.{topic}":
            raise
        raise LookupError(f"the exercises about {topic!r} are not in this copy of minigraph") from None
    return list(module.EXERCISES)


def exercise(name: str) -> Exercise:
    """The exercise of this name; LookupError if there is none."""
    topic = str(name).rpartition("-")[0]
    if topic not in TOPICS:
        raise LookupError(f"no exercise {name!r}; {_instead(str(name), [f'{topic}-1' for topic in TOPICS])}")
    found = {task.name: task for task in exercises(topic)}
    if name not in found:
        raise LookupError(f"no exercise {name!r}; {_instead(name, found)}")
    return found[name]


def answer_of(code: str, name: str = "answer") -> Any:
    """The `answer` that a piece of source defines, run in a namespace of its own."""
    code = textwrap.dedent(code).strip() + "\n"
    filename = f"<{name} {abs(hash(code))}>"
    # Functions defined in it show their source, as those of a notebook cell do.
    linecache.cache[filename] = len(code), None, code.splitlines(keepends=True), filename
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(code, filename, "exec"), namespace)
    return namespace["answer"]


# ---- what checkers are made of: questions about a graph


def is_graph(answer: Any) -> str | None:
    """None if the answer is a graph; else a sentence that says what it is and what is asked for."""
    if isinstance(answer, Graph):
        return None
    if answer is Graph:
        return "answer is the class Graph itself: make a graph of it, with Graph(\"name\")"
    if callable(answer):
        return f"answer is {_a_kind(answer)}, and a graph is asked for: call it, and keep what it returns"
    return f"answer is {_a_kind(answer)}, and a graph is asked for: begin with Graph(\"name\"), or with the one given"


def cannot_run(graph: Graph) -> str | None:
    """Why the graph is refused before anything runs, or None."""
    try:
        graph.plan()
    except GraphError as error:
        return f"the graph is refused before anything runs: {error}"
    return None


def edges_of(graph: Graph, *, on_error: bool = False) -> list[tuple[str, str]]:
    """Every edge as (source, target), from START, to END and those of routers included; on_error's if asked for."""
    edges = [(src, dst) for src, targets in graph.edges.items() for dst in targets]
    edges += [(src, dst) for src, (_, labels) in graph.routers.items() for ends in labels.values() for dst in ends]
    if on_error:
        edges += [(node.name, node.on_error) for node in graph.nodes.values() if node.on_error is not None]
    return list(dict.fromkeys(edges))


def edges_missing(graph: Graph, edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of `edges` that the graph does not have."""
    there = edges_of(graph)
    return [edge for edge in edges if edge not in there]


def extra_edges(graph: Graph, edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The graph's edges that are not among `edges`; edges to END do not count."""
    expected = set(edges)
    return [edge for edge in edges_of(graph) if edge[1] != END and edge not in expected]


def nodes_missing(graph: Graph, names: Iterable[str]) -> str | None:
    """"the graph has no node 'web'", and which it has instead; None if all are there."""
    for name in names:
        if name not in graph.nodes:
            extra = [node for node in graph.nodes if node not in names]
            close = difflib.get_close_matches(name, extra, n=1)
            there = f"yours is called {close[0]!r}" if close else f"it has {listed(graph.nodes) or 'none'}"
            return f"the graph has no node {name!r}; {there}"
    return None


# ---- what checkers are made of: runs


@dataclass(frozen=True)
class Rehearsal:
    """A run in virtual time, with bounded steps: `state` as it left it, and its `trace`."""

    state: GraphState
    trace: Trace

    @property
    def waves(self) -> list[list[str]]:
        """The names in each wave."""
        return [[visit.node for visit in wave] for wave in self.trace.waves()]

    @property
    def seconds(self) -> float:
        return self.trace.seconds

    @property
    def visits(self) -> dict[str, int]:
        """Node -> how often it ran; nodes that did not run are not in it."""
        return dict(self.state.visits)

    @property
    def trouble(self) -> str | None:
        """Why the run did not end well, a sentence; None if it did. A failure that was handled is no trouble."""
        if self.state.status == "max_steps":
            tripped = self.state["errors"]["engine"].partition(";")[0]  # its advice, more steps, is none here
            return f"the run did not end by itself ({tripped}): what ends its loop?"
        if self.state.status == "failed":
            node, _, why = str(self.trace.of("graph_end")[0]["error"]).partition(": ")
            return f"node {node!r} failed and nothing took care of it: {_on_one_line(why)}"
        return None


def rehearse(graph: Graph, state: Mapping[str, Any] | None = None, *, max_steps: int = MOST_STEPS,
             schedule: str = "waves", strict: bool = False) -> Rehearsal:
    """Runs the graph in virtual time. GraphError and StateCollision come through: `check` makes sentences of them."""
    trace = Trace()
    with virtual_time():
        return Rehearsal(run_graph(graph, state or {}, trace, max_steps, schedule=schedule, strict=strict), trace)


def waves_of(graph: Graph, state: Mapping[str, Any] | None = None, *, max_steps: int = MOST_STEPS) -> list[list[str]]:
    """The names in each wave of a run in virtual time, wave by wave."""
    return rehearse(graph, state, max_steps=max_steps).waves


def first_difference(expected: Sequence[Iterable[str]], got: Sequence[Iterable[str]]) -> str | None:
    """"wave 2: expected b and c, got b", or None if the waves agree; the order within a wave does not count."""
    wants, haves = [sorted(wave) for wave in expected], [sorted(wave) for wave in got]
    for number in range(max(len(wants), len(haves))):
        want = wants[number] if number < len(wants) else []
        have = haves[number] if number < len(haves) else []
        if want != have:
            return (f"wave {number + 1}: expected {listed(want) or 'no such wave, the run is over by then'}, "
                    f"got {listed(have) or 'no such wave'}")
    return None


def first_wrong_row(fn: Callable[..., Any], rows: Iterable[tuple[Any, Any]]) -> str | None:
    """"for {'score': 0.8}: expected 'hot', got 'warm'" of a table of (state, result), or None if all rows hold.

    An exception of `fn` is a wrong row too. Each call gets a copy of its state.
    """
    for state, want in rows:
        given = dict(state) if isinstance(state, Mapping) else state
        try:
            got = fn(given)
        except Exception as error:
            return f"for {_short(state)}: expected {_short(want)}, got {_said(error)}"
        if type(got) is not type(want) and not (_number(got) and _number(want)) or got != want:
            return f"for {_short(state)}: expected {_short(want)}, got {_short(got)}"
    return None


# ---- what checkers are made of: other answers


def is_function(answer: Any) -> str | None:
    """None if the answer can be called; else a sentence."""
    if callable(answer):
        return None
    return f"answer is {_a_kind(answer)}, and a function is asked for: its name alone, without calling it"


def is_number(answer: Any, what: str = "a number") -> str | None:
    """None if the answer is a number; else a sentence. True and nan are none."""
    return None if _number(answer) else f"answer is {_a_kind(answer)}, and {what} is asked for"


def listed(names: Iterable[Any]) -> str:
    """"a", "a and b", or "a, b and c"; "" for none."""
    names = [str(name) for name in names]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


# ---- judging


def _is_empty(answer: Any) -> bool:
    if isinstance(answer, (dict, list, tuple)) and answer:
        parts = answer.values() if isinstance(answer, dict) else answer
        return all(part is None or part is ... for part in parts)
    return answer is None or answer is ... or isinstance(answer, str) and not answer.strip()


def _judged(task: Exercise, answer: Any) -> str | None:
    """What the checker says; what it raises is put into a sentence, and what does not come back is given up."""
    said: list[str | None] = []

    def judge() -> None:
        try:
            said.append(task.check(answer))
        except GraphError as error:
            said.append(str(error) if isinstance(error, StateCollision)
                        else f"the graph is refused before anything runs: {error}")
        except BaseException as error:  # exit() in a student's function too
            said.append(f"your answer could not be checked, for something in it raised {_said(error)}")

    thread = threading.Thread(target=copy_context().run, args=(judge,), daemon=True, name="minigraph-check")
    try:
        thread.start()
    except RuntimeError:  # where no thread can be started, nobody can stop waiting
        judge()
    else:
        thread.join(MOST_SECONDS)
    if not said:
        return (f"your code was not done after {MOST_SECONDS:g} s: is there a loop in it that never ends, or a "
                "time.sleep? Nodes wait with minigraph.clock.sleep; restart the kernel to stop what still runs")
    return None if said[0] is None else _short_text(_on_one_line(said[0]), 600)


# ---- comparing a guess


def _compared(guess: Any, happened: Any, what: str) -> str:
    if _is_empty(guess):
        unit = f" {what}" if _number(happened) and what else ""
        return f"you made no guess, and guessing is half the fun. It was {_plain(happened)}{unit}."
    if _number(happened):
        return _compared_numbers(_as_number(guess), happened, f" {what}".rstrip(), guess)
    if isinstance(happened, bool) or isinstance(guess, bool):
        return _told(guess == happened and type(guess) is type(happened), guess, happened)
    if isinstance(happened, str):
        return _told(str(guess).strip().casefold() == happened.strip().casefold(), guess, happened)
    if _are_waves(happened) and _are_waves(guess):
        return _compared_waves(guess, happened)
    if isinstance(happened, Mapping) and isinstance(guess, Mapping):
        return _compared_mappings(guess, happened)
    if isinstance(happened, (set, frozenset)) and isinstance(guess, (set, frozenset, list, tuple)):
        return _told(set(guess) == happened, guess, happened)
    if isinstance(happened, (list, tuple)) and isinstance(guess, (list, tuple)):
        return _told(list(guess) == list(happened), guess, happened)
    return _told(bool(guess == happened), guess, happened)


def _compared_numbers(guess: float | None, happened: float, unit: str, said: Any) -> str:
    if guess is None:
        return f"you said {_plain(said)}; it was {_figure(happened)}{unit}."
    if guess == happened or _figure(guess) == _figure(happened):
        return f"you said {_figure(guess)}{unit}, and so it was."
    both = f"you said {_figure(guess)}{unit}; it was {_figure(happened)}"
    if isinstance(guess, int) and isinstance(happened, int):
        return f"{both}: {_figure(abs(guess - happened))} {'less' if guess > happened else 'more'}."
    if abs(guess - happened) <= 0.02 * abs(happened):
        return f"{both}: as good as right."
    if guess > 0 and happened >= 1.5 * guess:
        return f"{both}: {_figure(round(happened / guess, 1))} times your guess."
    if happened > 0 and guess >= 1.5 * happened:
        return f"{both}: your guess is {_figure(round(guess / happened, 1))} times that."
    return f"{both}: {_figure(abs(guess - happened))} {'less' if guess > happened else 'more'}."


def _compared_waves(guess: Sequence[Sequence[str]], happened: Sequence[Sequence[str]]) -> str:
    for number in range(max(len(guess), len(happened))):
        said = sorted(guess[number]) if number < len(guess) else []
        was = sorted(happened[number]) if number < len(happened) else []
        if said != was:
            return (f"for wave {number + 1} you said {listed(said) or 'that there is none'}; "
                    f"{f'it was {listed(was)}' if was else 'there is none'}. All of them: {_as_waves(happened)}.")
    return f"you said {_as_waves(happened)}, and so it was."


def _compared_mappings(guess: Mapping[Any, Any], happened: Mapping[Any, Any]) -> str:
    said = []
    for key in [*happened, *(key for key in guess if key not in happened)]:
        one, other = guess.get(key, "nothing"), happened.get(key, "nothing")
        if one != other:
            said.append(f"for {_plain(key)} you said {_plain(one)}; it was {_plain(other)}.")
    return " ".join(text if not n else text[:1].upper() + text[1:] for n, text in enumerate(said)) or _told(
        True, guess, happened)


def _told(same: bool, guess: Any, happened: Any) -> str:
    said, was = _plain(guess), _plain(happened)
    return f"you said {said}, and so it was." if same else f"you said {said}; it was {was}."


def _are_waves(value: Any) -> bool:
    return (isinstance(value, (list, tuple)) and bool(value) and all(
        isinstance(wave, (list, tuple, set)) and all(isinstance(name, str) for name in wave) for wave in value))


def _as_waves(waves: Iterable[Iterable[str]]) -> str:
    return ", then ".join(listed(wave) or "nothing" for wave in waves)


# ---- values in words


def _plain(value: Any) -> str:
    """A value as one would say it: names without quotes, yes and no, lists with an "and"."""
    if _number(value):
        return _figure(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return _short_text(_on_one_line(value))
    if _are_waves(value):
        return _as_waves(value)
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple)):
        return listed(_plain(item) for item in value) or "nothing"
    if isinstance(value, Mapping):
        return ", ".join(f"{_plain(key)} {_plain(item)}" for key, item in value.items()) or "nothing"
    return _short(value)


def _figure(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:.3f}".rstrip("0").rstrip(".")


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and math.isfinite(value)


def _as_number(value: Any) -> float | None:
    if _number(value):
        return value  # type: ignore[no-any-return]
    try:
        number = float(str(value).split()[0].rstrip("s"))
    except (ValueError, IndexError):
        return None
    return number if _number(number) else None


def _a_kind(value: Any) -> str:
    """What a value is, in words: "the number 42", "a list", "a function"."""
    if _number(value):
        return f"the number {_short(value)}" if abs(value) < 1e15 else "a huge number"
    if isinstance(value, str):
        return f"the text {_short(value)}"
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if inspect.isfunction(value) or inspect.ismethod(value) or inspect.isbuiltin(value):
        return "a function"
    if isinstance(value, bool):
        return str(value)
    name = type(value).__name__
    kind = {"dict": "dictionary", "GraphState": "blackboard (what a run returns)"}.get(name, name)
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _said(error: BaseException) -> str:
    """An exception in words: its type and its message."""
    try:
        text = _on_one_line(str(error))
    except Exception:  # an exception whose own __str__ raises
        text = ""
    name = type(error).__name__
    return _short_text(f"{name}: {text}" if text else name, 300)


def _short(value: Any) -> str:
    try:
        return _short_text(_on_one_line(repr(value)))
    except Exception:  # a value whose own __repr__ raises, a number too long to be written
        return _a_kind(value)


def _short_text(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _instead(name: str, names: Iterable[str]) -> str:
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {listed(names)}"
