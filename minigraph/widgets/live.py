"""A run that is watched while it runs: the picture, and the cards of the wave, until it is over and a still remains.

    state = live(graph, {"day": "2026-11-30"})              # what run_graph would return
    live(graph, {}, speed=10)                               # ten times as fast: nodes that sleep on the run's clock

The graph runs in a thread. Whatever happens is put on a list; the thread of the notebook reads on from where it stands
and sets the one HTML value of one widget, at most twenty times a second. So no node ever waits for the picture, and the
interrupt of the kernel, which comes to the thread of the notebook, finds it awake: it stops the run at its next event.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextvars import copy_context
from time import perf_counter
from typing import Any, Protocol

from .. import clock as clocks
from ..engine import Graph, GraphState, Observer, run_graph
from ..frames import Frame, Reel
from .where import can_move, in_a_kernel, show

PAUSE = 0.05  # seconds between two pictures, at least
log = logging.getLogger("minigraph")


def live(graph: Graph, state: Mapping[str, Any], *, speed: float = 1.0, observer: Observer | None = None,
         **run_options: Any) -> GraphState:
    """Returns the blackboard as the run left it, as run_graph does, and shows the run while it lasts.

    speed: how many times as fast as real time the run's clock goes. observer and run_options are run_graph's. What
    run_graph raises is raised here; KeyboardInterrupt ends the run as `interrupted`. It ends as a still picture in the
    output of the cell; without ipywidgets, or with MINIGRAPH_HEADLESS set, there is that still and no more.
    """
    if not isinstance(graph, Graph) or not isinstance(state, Mapping):
        return run_graph(graph, state)  # which says what is wrong
    watched = Watched(graph, state, speed, observer, run_options)
    return watched.run(WidgetScreen()) if can_move() and in_a_kernel() else watched.run_unseen()


class Screen(Protocol):
    """Where a run is shown while it lasts, and what is left there in the end; None: nothing."""

    def show(self, html: str) -> None: ...
    def end(self, frame: Frame | None) -> None: ...


class WidgetScreen:
    """One HTML widget in the output of the cell, and in the end a still in its place."""

    def __init__(self) -> None:
        from IPython.display import display
        from ipywidgets import HTML

        self.widget = HTML()
        bundle = {**self.widget._repr_mimebundle_(), "text/plain": "(a run, while it is watched)"}
        self.output = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def show(self, html: str) -> None:
        self.widget.value = html

    def end(self, frame: Frame | None) -> None:
        self.output.update(frame if frame is not None else {"text/plain": ""}, raw=frame is None)
        self.widget.close()


class Watched:
    """One run of a graph in a thread, and the thread that watches it."""

    def __init__(self, graph: Graph, state: Mapping[str, Any], speed: float, observer: Observer | None,
                 options: dict[str, Any]) -> None:
        self.graph, self.state, self.observer = graph, state, observer
        self.stop = threading.Event()  # set by the interrupt: the run is to end
        self.clock = _clock(speed, options.pop("clock", None), self.stop)
        self.options = options
        # What the run tells, from whatever thread it is in. Read, and not taken away as from a queue: an interrupt
        # between the taking of an event and the noting of it would lose it.
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.news, self.over = threading.Event(), threading.Event()
        self.begun = 0.0  # when the run began, on its clock
        self.result: GraphState | None = None
        self.error: BaseException | None = None
        self.reel = Reel(graph.describe())
        self.read = 0  # how many events the reel has taken
        self.due = 0.0  # when the next frame may be shown

    def run(self, screen: Screen) -> GraphState:
        """Runs the graph in a thread, shows it, and leaves a still."""
        self.try_to_show(screen)  # Graphviz takes its time before the run begins, not while it lasts
        self.due = perf_counter() + PAUSE
        runner = threading.Thread(target=copy_context().run, args=(self.work,), name="minigraph-live", daemon=True)
        try:
            runner.start()
        except RuntimeError:  # no thread can be started here
            screen.end(None)
            return self.run_unseen()
        try:
            interrupted = self.watch_and_stop(screen)
        finally:
            self.stop.set()  # whatever happened here, nothing new starts there
            screen.end(self.last())
            if self.over.is_set():
                runner.join()
        if interrupted:
            raise KeyboardInterrupt
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result

    def run_unseen(self) -> GraphState:
        """Runs the graph on this thread, and shows a still when it is over."""
        try:
            return run_graph(self.graph, self.state, self.hear, clock=self.clock, **self.options)
        finally:
            self.catch_up()
            if (frame := self.last()) is not None:
                show(frame)

    # ---- in the thread of the run

    def work(self) -> None:
        try:
            self.result = run_graph(self.graph, self.state, self.hear, clock=self.clock, **self.options)
        except BaseException as error:  # handed to the thread that watches, whatever it is
            self.error = error
        finally:
            self.over.set()
            self.news.set()

    def hear(self, kind: str, event: dict[str, Any]) -> None:
        """The run's observer. Once the run is to stop it raises what an interrupt raises; the engine does the rest."""
        if not self.events:
            self.begun = self.clock.now() - event["t"]
        self.events.append((kind, event))
        self.news.set()
        try:
            if self.observer is not None:
                self.observer(kind, event)
        finally:
            if self.stop.is_set():
                raise KeyboardInterrupt

    # ---- in the thread of the notebook

    def watch_and_stop(self, screen: Screen) -> bool:
        """Watches until the run is over; was it interrupted? A second interrupt does not wait for nodes that run."""
        try:
            self.watch(screen)
            return False
        except KeyboardInterrupt:
            self.stop.set()
            self.begin_again("interrupted; nodes that run are waited for, a second interrupt leaves them")
            try:
                self.watch(screen)
            except KeyboardInterrupt:
                self.begin_again("interrupted; nodes that still run were left alone")
            return True

    def watch(self, screen: Screen) -> None:
        """Shows frame after frame, until the run is over."""
        while True:
            self.wait()
            over = self.over.is_set()
            self.catch_up()
            if over:
                return
            self.try_to_show(screen)

    def wait(self) -> None:
        """Waits until the next frame is due, and on as long as nothing happens and no node is running."""
        self.over.wait(max(0.0, self.due - perf_counter()))
        if not self.reel.calls and not self.over.is_set():
            self.news.wait(0.5)
        self.news.clear()

    def catch_up(self) -> None:
        """The reel takes the events that it has not taken."""
        while self.read < len(self.events):
            try:
                self.reel(*self.events[self.read])
            except Exception:  # an event of a node's own that looks like one of the engine's: the run goes on
                log.exception("an event of the run could not be shown")
            self.read += 1

    def try_to_show(self, screen: Screen) -> None:
        """Shows how things stand; the next frame is due in 50 ms, or later: no more than a quarter of the time is for
        pictures."""
        began = perf_counter()
        try:
            screen.show(self.reel.frame(self.clock.now() - self.begun if self.events else None).html())
        except Exception:  # the run goes on, watched or not
            log.exception("a picture of the run could not be shown")
        over = perf_counter()
        self.due = over + max(PAUSE, 3 * (over - began))

    def begin_again(self, notice: str) -> None:
        """A new reel: the interrupt may have hit the old one in the middle of an event."""
        self.reel, self.read = Reel(self.graph.describe(), panel=self.reel.panel), 0
        self.reel.notice = notice
        self.catch_up()

    def last(self) -> Frame | None:
        """The frame that remains; None where nothing ever began."""
        self.catch_up()
        if self.reel.status != "running":
            self.reel.notice = ""
        else:
            self.reel("graph_end", {"t": self.clock.now() - self.begun, "status": "interrupted", "error": None})
        return self.reel.frame() if self.events else None


class InterruptibleClock(clocks.RealClock):
    """Real time, in which an interrupt wakes those who sleep."""

    def __init__(self, speed: float, stop: threading.Event) -> None:
        super().__init__(speed)
        self.stop = stop

    def sleep(self, seconds: float) -> None:
        """Returns after `seconds` of this clock; KeyboardInterrupt if the run is to stop before."""
        if not seconds > 0:
            super().sleep(seconds)  # which says what is wrong
        elif self.stop.wait(seconds / self.speed):
            raise KeyboardInterrupt


def _clock(speed: float, given: clocks.Clock | None, stop: threading.Event) -> clocks.Clock:
    """The clock of the run: the one that was given, the one of the `with` block we are in, or real time at a speed."""
    current = given or clocks.current()
    if type(current) is clocks.RealClock and given is None:
        return InterruptibleClock(speed if speed != 1 else current.speed, stop)
    if speed != 1:
        raise ValueError(f"speed={speed!r}: the run has a clock of its own already, {current!r}; leave out one of them")
    return current
