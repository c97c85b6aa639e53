"""A run that is watched while it runs: what is shown, how it ends, and that watching never changes the run."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from helpers import Heard, make, within
from test_frames import fan, loop, takes

from minigraph import GraphError, StateCollision, emit, run_graph
from minigraph.clock import RealClock, sleep, use, virtual_time
from minigraph.frames import Frame
from minigraph.nodes import graph_node
from minigraph.widgets import live
from minigraph.widgets.live import Watched


class Screen:
    """A screen that remembers what it was shown, and when; `act(number)` is called with each picture."""

    def __init__(self, act: Callable[[int], None] = lambda number: None) -> None:
        self.act, self.pictures, self.times, self.ended, self.still = act, [], [], 0, None
        self.threads: set[str] = set()

    def show(self, html: str) -> None:
        self.pictures.append(html)
        self.times.append(time.perf_counter())
        self.threads.add(threading.current_thread().name)
        self.act(len(self.pictures))

    def end(self, frame: Frame | None) -> None:
        self.ended += 1
        self.still = frame


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """No thread outlives its run."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive(), thread


def watch(graph: Any, state: Any = None, screen: Screen | None = None, *, speed: float = 1.0, observer: Any = None,
          **options: Any) -> Any:
    return Watched(graph, state or {}, speed, observer, options).run(screen or Screen())


# ---- what is shown


def test_it_returns_what_run_graph_returns() -> None:
    """The result is that of run_graph, and the last frame is the final state; in virtual time, to the millisecond."""
    screen = Screen()
    with virtual_time():
        state = watch(fan(), {"day": 1}, screen)
    with virtual_time():
        plain = run_graph(fan(), {"day": 1})
    assert state == plain and (state.status, state.path, state.visits) == (plain.status, plain.path, plain.visits)
    assert screen.still is not None and screen.still.title == "✓ done · 3.900 s"
    assert {key: value.text for key, value in screen.still.board.items()} == {
        key: repr(value) for key, value in state.items() if key != "errors"}


def test_seconds_tick() -> None:
    """While a node runs, be it a lone one, picture after picture shows how long it has been running."""
    screen = Screen()
    watch(make("START>a a>b b>END", a=takes(4), b=takes(4)), screen=screen, speed=10)
    shown = [html.split('data-s="c0.t">')[1].split("<")[0] for html in screen.pictures if 'data-s="c0.t"' in html]
    ticks = [text for text in shown if text.startswith("● running")]
    assert len(set(ticks)) >= 5 and ticks[:3] == sorted(ticks[:3])
    assert screen.threads == {threading.current_thread().name}


def test_at_most_twenty_pictures_a_second() -> None:
    """500 events a second, from two threads: no more than twenty pictures a second, and the last has everything."""
    def flood(state: Any) -> dict[str, Any]:
        begun, sent = time.perf_counter(), 0
        while (passed := time.perf_counter() - begun) < 1.5:
            while sent < passed * 250:
                emit("llm", {"number": sent})
                sent += 1
            time.sleep(0.004)
        return {}

    screen, heard = Screen(), Heard()
    cpu = time.thread_time()
    watch(make("START>a,b", a=flood, b=flood), screen=screen, observer=heard)
    assert len(heard["llm"]) >= 700
    assert min(after - before for before, after in zip(screen.times, screen.times[1:], strict=False)) >= 0.049
    assert time.thread_time() - cpu < 0.75, "the thread of the notebook has no time left"
    assert screen.still is not None and screen.still.status == "done"


def test_nobody_waits_for_the_picture() -> None:
    """A slow screen makes for fewer pictures; the nodes run as fast as they do unwatched."""
    screen = Screen(lambda number: time.sleep(0.2))
    began = time.perf_counter()
    state = watch(make("START>a a>b b>c c>d d>e e>END"), screen=screen)
    assert state.status == "done" and time.perf_counter() - began < 3 and len(screen.pictures) <= 3


def test_a_picture_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be shown is logged, and the run goes on to its end."""
    def fail(number: int) -> None:
        raise OSError("the screen is gone")

    with caplog.at_level(logging.ERROR, "minigraph"):
        assert watch(make("START>a a>END"), screen=Screen(fail))["a"] is True
    assert "could not be shown" in caplog.text and "the screen is gone" in caplog.text


def test_an_event_that_looks_like_the_engines(caplog: pytest.LogCaptureFixture) -> None:
    """A node may emit whatever it likes; what cannot be shown is logged, and the run is not affected."""
    graph = make("START>a a>END", a=lambda state: emit("node_end", {"ms": "?"}) or {"a": 1})
    with virtual_time(), caplog.at_level(logging.ERROR, "minigraph"):
        assert watch(graph)["a"] == 1
    assert "an event of the run could not be shown" in caplog.text


def test_the_callers_observer_hears_everything(caplog: pytest.LogCaptureFixture) -> None:
    """An observer hears what it would hear without a screen; one that raises is logged, and the run goes on."""
    heard, plain = Heard(), Heard()
    with virtual_time():
        watch(loop(), observer=heard)
    with virtual_time():
        run_graph(loop(), {}, plain)
    assert [(kind, event["t"]) for kind, event in heard.events] == [(kind, event["t"]) for kind, event in plain.events]

    def broken(kind: str, event: Any) -> None:
        raise ValueError("the observer is broken")

    with virtual_time(), caplog.at_level(logging.ERROR, "minigraph"):
        assert watch(loop(), observer=broken).status == "done"
    assert "the observer is broken" in caplog.text


def test_the_callers_context_is_seen() -> None:
    """Context variables of the caller are visible in every node."""
    who = ContextVar("who", default="nobody")
    who.set("Ada")
    assert watch(make("START>a,b", a=lambda state: {"a": who.get()}, b=lambda state: {"b": who.get()})) == {
        "a": "Ada", "b": "Ada", "errors": {}}


def test_options_are_run_graphs() -> None:
    """What run_graph takes is handed on."""
    with virtual_time():
        assert watch(fan(), max_steps=2).status == "max_steps"
        screen = Screen()
        watch(fan(), screen=screen, schedule="ready")
    assert screen.still is not None and screen.still.wave is None
    with pytest.raises(TypeError, match="sped"):
        watch(fan(), sped=3)


# ---- time


def test_speed() -> None:
    """At speed 20 two seconds take a tenth, and the times that are told are those of the run's clock."""
    screen, began = Screen(), time.perf_counter()
    watch(make("START>a a>END", a=takes(4)), screen=screen, speed=20)
    assert time.perf_counter() - began < 3.5 and screen.still is not None
    assert 3.9 <= screen.still.nodes["a"].seconds < 70


def test_one_clock() -> None:
    """The clock is the one that was given, or that of the block we are in; a speed beside that is a mistake."""
    with use(RealClock(50)):
        assert watch(make("START>a a>END", a=lambda state: sleep(5) or {"a": 1}))["a"] == 1
    assert watch(make("START>a a>END"), clock=RealClock(2))["a"] is True
    with virtual_time(), pytest.raises(ValueError, match=r"speed=3: the run has a clock of its own already, Virtual"):
        watch(fan(), speed=3)
    with pytest.raises(ValueError, match=r"speed=3: .*RealClock\(speed=2\); leave out one"):
        watch(fan(), speed=3, clock=RealClock(2))
    with pytest.raises(ValueError, match="a clock needs a speed above 0"):
        watch(fan(), speed=0)


def test_a_node_that_sleeps_wrongly_is_told_so() -> None:
    """A sleep of less than nothing is the same mistake as without a screen."""
    state = watch(make("START>a a>END", a=lambda state: sleep(-1)))
    assert state.errors["a"] == "ValueError: sleep(-1): seconds must be 0 or more"
    assert watch(make("START>a a>END", a=lambda state: sleep(0) or {"a": 1}))["a"] == 1


# ---- how it ends


def test_a_collision_comes_out() -> None:
    """A collision is raised as it is, and the still says what collided."""
    screen = Screen()
    with virtual_time(), pytest.raises(StateCollision) as caught:
        watch(make("START>a,b", a=takes(1, key=1), b=takes(2, key=2)), screen=screen)
    assert (caught.value.key, caught.value.nodes) == ("key", ("a", "b"))
    assert screen.ended == 1 and screen.still is not None and screen.still.caption.startswith("✗ StateCollision: ")


def test_a_wrong_call_shows_nothing() -> None:
    """What is wrong with the graph or the call is said as run_graph says it, and no picture is left."""
    with pytest.raises(GraphError, match="the graph comes first"):
        live("no graph", {})  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="no edge out of START"):
        live(make(""), {})
    screen = Screen()
    with pytest.raises(GraphError, match="schedule='wave'"):
        watch(fan(), screen=screen, schedule="wave")
    assert screen.ended == 1 and screen.still is None


def interrupt(at: int) -> Screen:
    """Return a screen that interrupts the thread that shows the picture of that number."""
    def act(number: int) -> None:
        if number == at:
            raise KeyboardInterrupt
    return Screen(act)


def test_an_interrupt_wakes_those_who_sleep() -> None:
    """The interrupt of the kernel ends the run at once where nodes sleep on its clock; the still says interrupted."""
    screen, began = interrupt(at=4), time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        watch(make("START>a,b a>c b>c", a=takes(60), b=takes(60)), screen=screen)
    assert time.perf_counter() - began < 30
    assert screen.still is not None and screen.still.title.startswith("◼ interrupted · ")
    assert [node.state for node in screen.still.nodes.values()] == ["interrupted", "interrupted", "not run"]
    assert screen.still.caption == "1 not run, 2 interrupted" and screen.still.board == {}


@pytest.mark.parametrize("edges", ["START>a a>b b>END", "START>a,c a>b c>b b>END"])
def test_an_interrupt_starts_nothing_more(edges: str) -> None:
    """A node that is under way is waited for, and told of; nothing is merged after that, and no other node begins."""
    began: list[str] = []
    go_on = threading.Event()

    def slow(state: Any) -> dict[str, Any]:
        began.append("a")
        go_on.wait(20)
        return {"a": 1}

    def act(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt
        if number > 5:
            go_on.set()

    screen = Screen(act)
    graph = make(edges, a=slow, b=lambda state: began.append("b"))
    with pytest.raises(KeyboardInterrupt):
        watch(graph, screen=screen)
    assert began == ["a"] and screen.still is not None and screen.still.board == {}
    assert any("interrupted; nodes that run are waited for, a second interrupt leaves them" in html
               for html in screen.pictures)
    assert screen.still.status == "interrupted" and screen.still.nodes["b"].state == "not run"


def test_a_second_interrupt_leaves_what_runs() -> None:
    """Whoever interrupts twice has the notebook back; the node that runs is left alone, and none begins after it."""
    began: list[str] = []
    go_on = threading.Event()

    def slow(state: Any) -> dict[str, Any]:
        began.append("a")
        go_on.wait(20)
        return {"a": 1}

    def act(number: int) -> None:
        if number in (3, 6):
            raise KeyboardInterrupt

    screen = Screen(act)
    with pytest.raises(KeyboardInterrupt):
        within(10, lambda: watch(make("START>a a>b b>END", a=slow, b=lambda state: began.append("b")), screen=screen))
    assert screen.still is not None and screen.still.status == "interrupted"
    assert screen.still.caption == "interrupted; nodes that still run were left alone"
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "minigraph-live":
            thread.join(10)
    assert began == ["a"]


def test_an_interrupt_reaches_nodes_that_emit_and_graphs_inside() -> None:
    """A node that goes on telling what it does is interrupted where it tells it; a graph inside is, too."""
    told = []

    def busy(state: Any) -> None:
        for number in range(10_000):
            time.sleep(0.005)
            told.append(number)
            emit("llm", {"number": number})

    inside = make("START>x x>y y>END", x=busy)
    for graph in (make("START>a,b", a=busy), make("", b={}).add_node(graph_node("in", inside, [], []))):
        if "in" in graph.nodes:
            graph.add_edge("START", "in").add_edge("START", "b")
        told.clear()
        screen = interrupt(at=4)
        with pytest.raises(KeyboardInterrupt):
            within(20, lambda graph=graph, screen=screen: watch(graph, screen=screen))
        assert 0 < len(told) < 5000 and screen.still is not None and screen.still.status == "interrupted"


def test_an_interrupt_of_a_nodes_own() -> None:
    """A node that raises KeyboardInterrupt interrupts the run, as it does without a screen."""
    def stop(state: Any) -> None:
        raise KeyboardInterrupt

    screen = Screen()
    with pytest.raises(KeyboardInterrupt):
        watch(make("START>a a>b b>END", a=stop), screen=screen)
    assert screen.still is not None and screen.still.nodes["a"].state == "interrupted"


# ---- where nothing can move


@pytest.mark.parametrize("why", ["headless", "no ipywidgets", "no kernel"])
def test_a_still_and_no_more(why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Headless, without ipywidgets and outside Jupyter the run is run on this thread, and the end of it is shown."""
    module = sys.modules["minigraph.widgets.live"]  # the package's `live` is the function
    if why == "headless":
        monkeypatch.setenv("MINIGRAPH_HEADLESS", "1")
        monkeypatch.setattr(module, "in_a_kernel", lambda: True)
    elif why == "no ipywidgets":
        monkeypatch.setattr("minigraph.widgets.where.find_spec", lambda name: None)
        monkeypatch.setattr(module, "in_a_kernel", lambda: True)
    threads = []
    with virtual_time():
        state = live(make("START>a a>END", a=lambda state: threads.append(threading.current_thread()) or {"a": 1}), {})
    assert state["a"] == 1 and threads == [threading.current_thread()]
    assert capsys.readouterr().out == """\
test: ✓ done · 0 ms
  a: ✓ done
  card a: ✓ done · 0 ms; wrote a
  a = 1 (a)
"""


def test_a_still_is_shown_of_a_run_that_raised(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where nothing moves the still of a collision or an interrupt is shown before it is raised."""
    with virtual_time(), pytest.raises(StateCollision):
        live(make("START>a,b", a=takes(1, key=1), b=takes(2, key=2)), {})
    assert "✗ failed · 2.000 s\n  StateCollision: nodes 'a' and 'b'" in capsys.readouterr().out
    with virtual_time(), pytest.raises(GraphError):
        live(fan(), {}, schedule="wave")
    assert capsys.readouterr().out == ""


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without threads the run is run on this one, with the still in the end."""
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    screen = Screen()
    with virtual_time(), monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert watch(make("START>a a>b b>END"), screen=screen).status == "done"
    assert screen.ended == 1 and screen.still is None and capsys.readouterr().out.startswith("test: ✓ done")


# ---- in a kernel


def test_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel there is one output: the widget while the run lasts, and in its place the still, which is saved."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("MINIGRAPH_HEADLESS", raising=False)
    cell = ("from minigraph import START, Graph\nfrom minigraph.clock import sleep\n"
            "from minigraph.widgets import live\n"
            "graph = Graph('g').add_node('a', lambda state: sleep(10) or {'a': 1}).add_edge(START, 'a')\n"
            "print(live(graph, {}, speed=10)['a'])")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    seen = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc,name-defined]
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            seen.append(msg)
            return super().process_message(msg, cell, cell_index)

    Client(notebook, timeout=60).execute()
    outputs = notebook.cells[0].outputs
    assert [output.output_type for output in outputs] == ["display_data", "stream"] and outputs[1].text == "1\n"
    assert set(outputs[0].data) == {"text/html", "text/plain"} and "✓ done · 10." in outputs[0].data["text/html"]
    updates = [msg for msg in seen if msg["msg_type"] == "comm_msg"
               and "value" in msg["content"]["data"].get("state", {})]
    assert 3 <= len(updates) <= 25
    assert [msg["msg_type"] for msg in seen if "display" in msg["msg_type"]] == ["display_data", "update_display_data"]
    assert any(msg["msg_type"] == "comm_close" for msg in seen)
