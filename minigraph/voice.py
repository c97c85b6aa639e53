"""What a run tells its observer: its own events and those of its nodes, one at a time, when they happen.

    def observer(kind, event):
        print(f"{event['t']:.3f}", kind, event.get("node", ""))

    run_graph(graph, {}, observer)      # 0.000 graph_start, 0.000 node_start hello, ...

Nothing that an observer does reaches the run: it is called outside of everything that decides, and what it raises is
logged.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from . import clock as clocks
from .past import Visit, described
from .shape import Graph, Plan

Observer = Callable[[str, "dict[str, Any]"], None]
log = logging.getLogger("minigraph")


class Voice:
    """The part of a run that speaks."""

    graph: Graph
    plan: Plan
    clock: clocks.Clock
    waves: bool
    wave_number: int
    steps: int
    path: list[str]
    unhandled: list[str]
    begun_with: dict[str, Any]
    running: dict[str, Visit]
    asking: dict[str, Visit]

    def __init__(self, observer: Observer | None, begun: float, start: float | None) -> None:
        self.observer, self.observed = observer, observer is not None  # a Trace with no events yet is falsy
        self.begun = begun
        self.start = begun if start is None else start  # where the times of its events begin
        self.unheard: deque[tuple[str, dict[str, Any]]] = deque()  # events that the observer is still to hear
        self.floor = threading.Lock()  # held by the thread that speaks to it

    def begin_to_tell(self) -> None:
        self.tell_start(self.begun_with)

    def tell_start(self, state: Mapping[str, Any], **more: Any) -> None:
        if self.observer is not None:
            self.tell("graph_start", nodes=list(self.plan.nodes), schedule="waves" if self.waves else "ready",
                      graph=self.plan.describe(), state=state, **more)

    def tell_end(self, status: str) -> None:
        if self.observer is not None:
            self.tell("graph_end", status=status, ms=(self.clock.now() - self.begun) * 1000, steps=self.steps,
                      path=list(self.path), error=self.unhandled[0] if self.unhandled else None)

    def wave_starts(self, visits: list[Visit]) -> float:
        self.tell("wave_start", wave=self.wave_number, nodes=[visit.node for visit in visits])
        return self.clock.now()

    def wave_ends(self, visits: list[Visit], begun: float) -> None:
        visits = [visit for visit in visits if visit.node not in self.asking]
        last = max((visit.ended for visit in visits), default=self.clock.now())
        self.tell("wave_end", last, wave=self.wave_number, nodes=[visit.node for visit in visits],
                  ms=(last - begun) * 1000, waits={visit.node: (last - visit.ended) * 1000 for visit in visits})

    def started(self, visit: Visit) -> None:
        wave = self.wave_number if self.waves and visit.node not in self.asking else None  # an answer comes in none
        self.tell("node_start", node=visit.node, visit=visit.count, wave=wave)

    def ended(self, visit: Visit) -> None:
        error = visit.error
        where = "".join(traceback.format_exception(type(error), error, error.__traceback__)) if error else None
        self.tell("node_end", visit.ended, node=visit.node, visit=visit.count, ms=(visit.ended - visit.began) * 1000,
                  keys=list(visit.writes or ()), writes=visit.writes, error=described(error) if error else None,
                  traceback=where)

    def tell(self, kind: str, at: float | None = None, **event: Any) -> None:
        """Sends an event of the engine's own. Callers ask `observed` first: without an observer no event is built."""
        now = self.clock.now() if at is None else at
        self.send(kind, {"t": now - self.start, "workflow": self.graph.name, **event})

    def hear(self, kind: str, event: Mapping[str, Any], visit: Visit) -> None:
        """Sends an event of a node's own, unless its visit is over: what a timeout left behind is not heard."""
        if self.observed and self.running.get(visit.node) is visit:
            inner = f"{visit.node}/{event['node']}" if "node" in event else visit.node
            self.send(kind, {"t": self.clock.now() - self.start, "workflow": self.graph.name, **event, "node": inner})

    def send(self, kind: str, event: dict[str, Any]) -> None:
        """Hands an event to the observer, one at a time and in order: whoever finds it busy leaves the event to it."""
        self.unheard.append((kind, event))
        while self.unheard and self.floor.acquire(blocking=False):  # to wait here could hold up virtual time for ever
            try:
                while self.unheard:
                    self.observer(*self.unheard.popleft())  # type: ignore[misc]
            except Exception:
                log.exception("the observer raised; the run goes on")
            finally:
                self.floor.release()
