"""A crew makes the calls of a run: on the caller's thread, in a pool of the run's own, or in an executor of yours.

    crew = Crew(run)
    crew.collect([visit], wait_for_all=True)        # has run.call(visit) made, and returns the visits that ended

One ready node needs no thread. Several share one pool, started when it is first needed and kept to the end of the
run. The engine decides what is called and when; nothing here knows about graphs.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, Protocol

from . import clock as clocks
from .journal import Paused
from .past import Visit
from .state import GraphState, update

here: ContextVar[tuple[Any, Visit] | None] = ContextVar("minigraph.here", default=None)  # the run and visit we are in


def emit(kind: str, event: Mapping[str, Any]) -> None:
    """Sends an event of a node's own to the observer of its run, with `t` and `node` added; outside a run, nothing."""
    inside = here.get()
    if inside is not None:
        inside[0].hear(kind, event, inside[1])


class Work(Protocol):
    """What a crew needs of a run: to make a call, to hear of both its ends, and what to send to another process."""

    clock: clocks.Clock
    observed: bool

    def call(self, visit: Visit) -> Visit: ...
    def hear(self, kind: str, event: Mapping[str, Any], visit: Visit) -> None: ...
    def started(self, visit: Visit) -> None: ...
    def ended(self, visit: Visit) -> None: ...
    def commit(self, visit: Visit) -> None: ...
    def pauses(self, visit: Visit) -> bool: ...
    def parcel(self, visit: Visit) -> tuple[Callable[[Any], Any], dict[str, Any]]: ...


class Crew:
    """Makes calls, and knows which are under way."""

    def __init__(self, run: Work, max_workers: int | None = None, executor: Executor | None = None) -> None:
        self.run = run
        self.pool = executor  # the run's own is made when it is needed
        self.foreign = executor is not None
        self.size = max_workers or (1_000_000 if self.foreign else 256)  # calls under way at once
        self.box = run.clock.mailbox()
        self.queue: deque[Visit] = deque()  # visits that wait for a free worker
        self.out: dict[Visit, Future[Any] | None] = {}  # visits under way
        self.heard: dict[Visit, list[tuple[str, dict[str, Any]]]] = {}  # what visits emitted in another process
        self.threadless = False  # no thread can be started here
        self.early: list[Visit] = []  # without threads: visits whose end lies in the future of virtual time

    def collect(self, visits: list[Visit], wait_for_all: bool) -> list[Visit]:
        """Begins these calls, waits, and returns the visits that ended: all that are under way, or the first ones."""
        done: list[Visit] = []
        if len(visits) == 1 and not (self.out or self.queue or self.foreign or self.early):
            self.end(self.at_once(visits[0]))
            return visits
        self.queue.extend(visits)
        while self.queue or self.out or self.early:
            self.fill()
            found = self.one_by_one(wait_for_all) if self.threadless else self.arrivals(wait_for_all)
            done += [self.end(visit) for visit in found]
            if not wait_for_all:
                break
        return done

    def at_once(self, visit: Visit, begun: bool = False) -> Visit:
        """The visit, its call made on this thread, in a context of its own."""
        if self.run.observed and not begun:
            self.run.started(visit)
        return copy_context().run(self.run.call, visit)

    def fill(self) -> None:
        """Hands calls to the pool, never more than it has workers: a call that only queued would hold virtual time."""
        while self.queue and len(self.out) < self.size and not self.threadless:
            visit = self.queue.popleft()
            if self.run.observed:
                self.run.started(visit)
            self.out[visit] = None
            self.box.expect()
            if self.foreign and not isinstance(self.pool, ThreadPoolExecutor):
                self.send_away(visit)
            else:
                self.submit(visit)

    def submit(self, visit: Visit) -> None:
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.size, thread_name_prefix="minigraph")
        try:
            self.pool.submit(copy_context().run, self.box.work, self.run.call, visit)
        except RuntimeError as error:
            if self.foreign:
                self.box.work(_failed, visit, error)  # it was shut down
            elif len(self.out) == 1:  # no thread can be started; if there are some, one of them will come to it
                self.threadless = True
                self.box.expect(-1)

    def arrivals(self, wait_for_all: bool = False) -> list[Visit]:
        """Waits, and returns the visits that arrived, in the order in which they were begun."""
        together = wait_for_all and not self.queue and not self.run.observed  # nobody asks when each of them ended
        found: list[Visit] = self.box.take(count=len(self.out) if together else 1)
        found.sort(key=lambda visit: visit.number)
        for visit in found:
            del self.out[visit]
        return found

    def end(self, visit: Visit) -> Visit:
        """The visit, its end written down and reported. What is no failure of a node, an interrupt say, is raised."""
        run = self.run
        if self.heard:
            for kind, event in self.heard.pop(visit, ()):
                run.hear(kind, event, visit)
        if visit.error is not None:
            if isinstance(visit.error, Paused) and run.pauses(visit):
                return visit
            if visit.grave or not isinstance(visit.error, Exception):
                if run.observed:
                    run.ended(visit)
                raise visit.error
        run.commit(visit)
        if run.observed:
            run.ended(visit)
        return visit

    def leave(self) -> None:
        """The run is over, well or not: what is queued is dropped, what runs is waited for, the pool is gone."""
        self.queue.clear()
        for future in self.out.values():
            if future is not None:
                future.cancel()
        while self.out and not self.threadless:
            self.arrivals()
        if self.pool is not None and not self.foreign:
            self.pool.shutdown(wait=not self.threadless)

    # An executor in another process: what goes there and comes back must be picklable.

    def send_away(self, visit: Visit) -> None:
        visit.began = self.run.clock.now()
        try:
            self.out[visit] = future = self.pool.submit(_far_away, *self.run.parcel(visit))  # type: ignore[union-attr]
        except Exception as error:  # it was shut down, or refuses
            self.box.work(_failed, visit, error)
        else:
            future.add_done_callback(lambda future: self.box.work(self.come_back, visit, future))

    def come_back(self, visit: Visit, future: Future[Any]) -> Visit:
        visit.ended = self.run.clock.now()
        try:
            visit.writes, visit.error, self.heard[visit] = future.result()
        except BaseException as error:
            _failed(visit, error if isinstance(error, Exception) else RuntimeError(f"the call was lost: {error!r}"))
        return visit

    # No threads at all (a browser): one call after another, and virtual time turned back between them.

    def one_by_one(self, wait_for_all: bool) -> list[Visit]:
        clock, now = self.run.clock, self.run.clock.now()
        begun = list(self.out)  # the one that found out that there are no threads
        self.out.clear()
        for visit in [*begun, *self.queue]:
            _turn_back(clock, now)
            self.early.append(self.at_once(visit, begun=visit in begun))
            visit.ended = clock.now()
        self.queue.clear()
        until = (max if wait_for_all else min)(visit.ended for visit in self.early)
        _turn_back(clock, until)
        done = [visit for visit in self.early if visit.ended <= until]
        self.early = [visit for visit in self.early if visit.ended > until]
        return done


def _turn_back(clock: clocks.Clock, to: float) -> None:
    if isinstance(clock, clocks.VirtualClock):
        clock.turn_back(to)


def _failed(visit: Visit, error: Exception) -> Visit:
    visit.error = error
    return visit


class _Recorder:
    """Stands in for the run in another process: it keeps what a node emits."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def hear(self, kind: str, event: Mapping[str, Any], visit: Visit) -> None:
        self.heard.append((kind, dict(event)))


def _far_away(fn: Callable[[Any], Any], state: dict[str, Any]) -> tuple[Any, BaseException | None, list[Any]]:
    """What happens in the other process: the call; what it wrote, its error, and what it emitted."""
    recorder, seen = _Recorder(), GraphState(state)
    here.set((recorder, Visit(0, "", 0, ())))
    seen._held = True
    try:
        return update(fn(seen)), None, recorder.heard
    except (Exception, Paused) as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # it could not travel; its words can
            return None, RuntimeError(f"{type(error).__name__}: {error}"), recorder.heard
        return None, error, recorder.heard
