"""A graph runs by handing out tickets: a node that holds one runs as soon as no other can still arrive.

    def hello(state):
        return {"text": f"Hello {state['name']}"}

    graph = Graph("hello").add_node("hello", hello).add_edge(START, "hello").add_edge("hello", END)
    run_graph(graph, {"name": "Ada"})["text"]           # 'Hello Ada'

The whole scheduler, in five sentences; the methods of Run stand below in their order:

1. START puts a ticket on each of its targets.
2. A node that holds a ticket runs as soon as no other ticket can still arrive: nothing active (holding a ticket, or
   running) can reach, along forward edges, an in-edge of it that has not delivered. Running takes its tickets.
3. When it has run, it puts a ticket on the target of each static edge, or on the targets its router names; a ticket
   that goes backwards begins a new lap, and waits while anything below can still run without it.
4. A node that fails puts a ticket on its on_error target; without one it hands failed tickets to every forward static
   and router target, and a node that holds one does not run but hands it on.
5. The run ends when no ticket is left, or only waiting gates hold one, or a guard trips.

shape.py is the graph, state.py the blackboard, past.py what came before what, sight.py what a visit may see, crew.py
who makes the calls, voice.py what the observer hears, journal.py what is written down of it all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Any

from . import clock as clocks
from .crew import Crew, emit, here
from .journal import JournalError, Log, Paused, Record, Route, Sink, unplain
from .past import Refused, Visit, Write, described
from .shape import END, START, Graph, GraphError, Node, RouteFn, meant
from .sight import Sight
from .state import GraphState, ReadOnly, untouched, update
from .voice import Observer, Voice

__all__ = ["END", "START", "Graph", "GraphError", "GraphState", "JournalError", "Node", "Observer", "StateCollision",
           "emit", "described", "run_graph", "run_inside"]


class StateCollision(GraphError):
    """Two live branches wrote one key: `.key`, and `.nodes`, the earlier writer and the later."""

    def __init__(self, key: str, nodes: tuple[str, str]) -> None:
        self.key, self.nodes = key, nodes
        if nodes[0] == nodes[1]:
            super().__init__(f"node {nodes[0]!r} wrote {key!r} on two laps, and its second visit does not come after "
                             f"its first: lead an edge from {nodes[0]!r} to the node from which the loop goes back")
        else:
            super().__init__(f"nodes {nodes[0]!r} and {nodes[1]!r} both wrote {key!r}, and neither comes after the "
                             "other: give each a key of its own and let a node below both put them together")

    def __reduce__(self) -> Any:
        return StateCollision, (self.key, self.nodes)


@dataclass
class Settings:
    """How a run is made; runs inside it are made in the same way."""

    observer: Observer | None = None
    max_steps: int | None = None
    schedule: str = "waves"
    executor: Executor | None = None
    max_workers: int | None = None
    clock: clocks.Clock | None = None
    strict: bool = False


def run_graph(graph: Graph, state: Mapping[str, Any], observer: Observer | None = None, max_steps: int | None = None,
              *, schedule: str = "waves", executor: Executor | None = None, max_workers: int | None = None,
              clock: clocks.Clock | None = None, strict: bool = False, journal: Sink | None = None) -> GraphState:
    """Returns the blackboard as the run left it; `state`, where it begins, is not changed.

    observer(kind, event) hears what happens when it happens, one event at a time. max_steps bounds node runs over
    all (default: 25, or the number of nodes where that is more). schedule is "waves" (ready nodes run together, the
    next wave waits for the slowest) or "ready" (a node starts as soon as it is ready). max_workers (256) bounds the
    threads of the run's own pool; an `executor` of yours gets every node instead. clock: where times come from, by
    default the current one (see clock.py). strict hands each node a copy, and fails a node that changes it in place
    or reads what a node beside it wrote. journal(record) takes each record as it is committed: see journal.py; with
    one, a value that JSON does not bring back fails the node that wrote it.

    A node that raises is data: see `.status` and `.errors` of the result. GraphError: the graph or the call is wrong,
    and nothing ran. StateCollision: two live branches wrote one key. JournalError: a record could not be written.
    KeyboardInterrupt passes through.
    """
    settings = Settings(observer, max_steps, schedule, executor, max_workers, clock, strict)
    return Run(graph, state, settings, Log(journal)).go()


def run_inside(graph: Graph, state: Mapping[str, Any], max_steps: int | None = None) -> GraphState:
    """Returns what run_graph would, as a part of the run in which this is called: what a node that runs a graph does.

    The inner nodes are heard by the observer of the run, written to its journal and timed by its clock, and their
    gates pause it. Outside a run, and in an executor elsewhere, it is a run of its own.
    """
    inside = here.get()
    if inside is None:
        return run_graph(graph, state, max_steps=max_steps)
    run, visit = inside
    if hasattr(run, "nest"):
        return run.nest(graph, state, visit, max_steps)  # type: ignore[no-any-return]
    return run_graph(graph, state, lambda kind, event: run.hear(
        kind, {key: value for key, value in event.items() if key != "t"}, visit), max_steps)


class Held:
    """The tickets that a node holds."""

    again: tuple[Visit, ...] = ()  # who sent another one along an in-edge that had delivered
    failed = False  # is one of them a failed ticket?
    lap = False  # did one come backwards?
    search: Iterator[str]  # where the search upstream stands, once there is one
    age = 0  # of that search

    def __init__(self, missing: int) -> None:
        self.arrived: dict[str, Visit] = {}  # in-edge (by its source) -> the visit that sent the ticket
        self.missing = missing  # how many forward in-edges have not delivered


class Run(Voice, Sight):
    """One run of a graph: its blackboard, its tickets, and the loop that turns one into the other."""

    def __init__(self, graph: Graph, state: Mapping[str, Any], settings: Settings, log: Log,
                 prefix: str = "", start: float | None = None) -> None:
        _check_call(graph, state, settings)
        self.graph, self.plan, self.settings = graph, graph.plan(), settings
        self.nodes, self.routers, self.order = self.plan.nodes, self.plan.routers, self.plan.order
        self.strict, self.waves = settings.strict, settings.schedule == "waves"
        self.shared = self.waves and not self.strict  # do all nodes look at one blackboard?
        self.max_steps = max(25, len(self.nodes)) if settings.max_steps is None else settings.max_steps
        self.clock = settings.clock or clocks.current()
        if settings.executor is not None and isinstance(self.clock, clocks.VirtualClock):
            raise ValueError("virtual time needs the run's own pool: it cannot know when another executor is idle")
        self.log, self.prefix = log, prefix  # of its nodes in the journal: "outer#2/"; "" if it is in no other run
        # The blackboard: what it holds, and who wrote it.
        self.begun_with = dict(state)
        self.state = GraphState(state, errors=ReadOnly())
        self.state._held, self.state._explain = True, self.explain
        self.writer: dict[str, Visit] = {}  # key -> the visit that wrote it last; a key of the initial state has none
        self.errors: dict[str, str] = {}  # node -> its last error; the blackboard gets a copy when there are new ones
        self.new_errors = False
        # The tickets.
        self.held: dict[str, Held] = {}  # node -> the tickets it holds
        self.running: dict[str, Visit] = {}  # node -> its visit that has begun and is not over
        self.asking: dict[str, Visit] = {}  # those among them that wait for a person
        self.fresh: set[str] = set()  # nodes to look at: a ticket came, or what they waited for is over
        self.waiters: dict[str, list[str]] = {}  # active node -> the nodes that wait for it
        self.quiet: set[str] = set()  # nodes with nothing active above them: from there no ticket can come
        self.age = 1  # how often a lap has made quiet nodes loud again
        # The guards, and how it went.
        self.steps = self.serial = self.wave_number = 0
        self.tripped = False
        self.refused: set[str] = set()  # nodes that were refused into their on_error
        self.unhandled: list[str] = []
        self.visits: dict[str, int] = {}
        self.path: list[str] = []
        self.exceptions: dict[str, BaseException] = {}
        self.crew = Crew(self, settings.max_workers, settings.executor)
        Sight.__init__(self)
        Voice.__init__(self, settings.observer, self.clock.now(), start)

    def go(self) -> GraphState:
        """Runs to the end, and returns the blackboard. A run in no other run begins and ends the journal."""
        if self.prefix:
            return self.run()
        try:
            self.log.begin(self.first_record)
            return self.run()
        except JournalError as error:
            error.state = self.result("failed")
            raise
        finally:
            self.log.end()

    def run(self) -> GraphState:
        """Tells of the beginning, turns until nothing is left to do, and tells how it ended."""
        self.begin_to_tell()
        status = "failed"
        try:
            with clocks.use(self.clock), self.clock.running():
                try:
                    self.turn()
                finally:
                    self.crew.leave()
            status = ("max_steps" if self.tripped else "paused" if self.asking
                      else "failed" if self.unhandled else "done")
        except BaseException as error:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self.unhandled.insert(0, described(error))
            raise
        finally:
            self.tell_end(status)
        return self.result(status)

    def turn(self) -> None:
        """The loop: run what is ready, merge what it wrote, hand on its tickets; START hands out the first."""
        root = Visit(0, START, 1, ())
        for name in self.plan.next[START]:
            self.held[name] = Held(self.plan.missing[name] + 1)  # START delivers now and never again: no one misses it
        self.hand(root, self.plan.next[START])
        while (ready := self.ready()) or len(self.running) > len(self.asking):
            ended = self.wave(ready)
            if len(ended) > 1:
                ended.sort(key=lambda visit: self.order[visit.node])
            for visit in ended:
                self.merge(visit)
            for visit in ended:
                self.leave(visit)

    # ---- who runs

    def ready(self) -> list[str]:
        """The nodes for which no other ticket can still arrive, in the order of the graph; failed tickets go on."""
        if len(self.held) == 1 and not self.running and not self.tripped:
            (name, only), = self.held.items()
            if not only.failed:  # nobody else is active, so nothing can arrive
                self.fresh.clear()
                return [name]
        ready: set[str] = set()
        while self.fresh and not self.tripped:
            # From the top down: a blocked node hands on what it holds before anything below it is looked at.
            look = self.fresh if len(self.fresh) == 1 else sorted(self.fresh, key=self.plan.rank.__getitem__)
            self.fresh = set()
            for name in look:
                ready.discard(name)  # since it was added, a failed ticket may have come
                held = self.held.get(name)
                if held is None or name in self.running or (held.missing or held.lap) and self.waits(name, held):
                    continue
                if held.failed:
                    self.block(name)
                else:
                    ready.add(name)
        if not ready and self.held and len(self.running) == len(self.asking) and not self.tripped:
            return self.first_lap()
        return list(ready) if len(ready) < 2 else sorted(ready, key=self.order.__getitem__)

    def waits(self, name: str, held: Held) -> bool:
        """True if a ticket can still arrive, or a lap has to wait; for whom is noted, so that no one looks in vain."""
        blocker = next(self.unfinished(name), None) if held.lap else None
        if blocker is None and held.missing:
            if held.age != self.age:
                held.search, held.age = self.upstream(name, held), self.age
            blocker = next(held.search, None)
        if blocker is not None:
            self.waiters.setdefault(blocker, []).append(name)
        return blocker is not None

    def upstream(self, name: str, held: Held) -> Iterator[str]:
        """Active nodes that can still reach a missing in-edge, one at a time; the search goes on where it stood.

        It walks up from each missing in-edge. An active node is the answer as long as it is active; a node with
        nothing active above it is quiet, and is not looked at again.
        """
        for source in self.plan.ins[name]:
            path = [(source, iter(self.plan.ins[source]))] if source not in self.quiet else []
            while path and source not in held.arrived:
                node, above = path[-1]
                if node in self.held or node in self.running:
                    yield node
                elif (higher := next((n for n in above if n not in self.quiet), None)) is not None:
                    path.append((higher, iter(self.plan.ins[higher])))
                else:
                    self.quiet.add(node)
                    path.pop()

    def unfinished(self, head: str) -> Iterator[str]:
        """Active nodes below the head of a loop that can run without its next lap; the lap waits for them."""
        below = self.plan.below(head)
        for name in (self.held.keys() & below) | (self.running.keys() & below):
            held = self.held.get(name)
            if held is None or name in self.running or not any(
                    source not in held.arrived and (source == head or source in below)
                    for source in self.plan.ins[name]):
                yield name

    def first_lap(self) -> list[str]:
        """Laps wait for one another, and nothing else is left: the first of them, in the order of the graph.

        None while it is a person that they wait for, be it by way of others.
        """
        stuck = self.behind_a_gate() if self.asking else ()
        laps = (name for name, held in self.held.items() if held.lap and name not in stuck)
        return [name for name in sorted(laps, key=self.order.__getitem__)
                if next(self.upstream(name, self.held[name]), None) is None][:1]

    def behind_a_gate(self) -> set[str]:
        """The nodes with a ticket that wait for a person, or for somebody who does."""
        waits_for = {name: set(self.unfinished(name)) if held.lap else set() for name, held in self.held.items()}
        for name in self.held.keys() | self.running.keys():
            for below in self.held.keys() & self.plan.below(name):
                if any(source not in self.held[below].arrived and (source == name or source in self.plan.below(name))
                       for source in self.plan.ins[below]):
                    waits_for[below].add(name)
        stuck: set[str] = set()
        more = set(self.asking)
        while more:
            stuck |= more
            more = {name for name, others in waits_for.items() if name not in stuck and others & stuck}
        return stuck

    # ---- running takes tickets

    def wave(self, ready: list[str]) -> list[Visit]:
        """Runs the ready nodes together, and returns the visits that ended.

        The two schedules are one word apart: "waves" waits for all that was started, "ready" for the first to end.
        """
        started, refused = self.begin(ready)
        if refused and not self.waves:
            self.crew.queue.extend(started)  # a refusal has ended already: nobody waits for it
            return refused
        self.wave_number += bool(started)
        ended = self.make(started)
        return ended + refused if refused else ended

    def make(self, started: list[Visit]) -> list[Visit]:
        """Has the calls made, and returns the visits that ended."""
        watched = self.observed and self.waves and bool(started)
        begun = self.wave_starts(started) if watched else 0.0
        ended = self.crew.collect(started, wait_for_all=self.waves)
        if self.asking:  # whoever waits for a person has not ended
            ended = [visit for visit in ended if visit.node not in self.asking]
        if watched:
            self.wave_ends(started, begun)
        return ended

    def begin(self, ready: list[str]) -> tuple[list[Visit], list[Visit]]:
        """The visits to be made, and those that were refused; none at all if together they would pass max_steps."""
        if self.new_errors:
            dict.__setitem__(self.state, "errors", ReadOnly(self.errors))
            self.new_errors = False
        started: list[Visit] = []
        refused: list[Visit] = []
        if self.steps + len(ready) > self.max_steps:
            self.trip(ready)
        else:
            self.steps += len(ready)
            for name in ready:
                visit = self.take(name)
                (started if self.revisit(visit) else refused).append(visit)
        return started, refused

    def take(self, name: str) -> Visit:
        """A visit that has taken the node's tickets: the visits that sent them are its parents."""
        held = self.held.pop(name)
        self.serial += 1
        parents = tuple(held.arrived.values()) + held.again
        self.running[name] = visit = Visit(self.serial, name, self.visits.get(name, 0) + 1, parents)
        return visit

    def revisit(self, visit: Visit) -> bool:
        """May the node run once more? If not, the refused visit is a failure of the node."""
        cap = self.nodes[visit.node].max_visits
        if cap is None or visit.count <= cap:
            self.visits[visit.node] = visit.count
            self.path.append(visit.node)
            return True
        visit.error = Refused(f"max_visits={cap} reached")
        if self.observed:
            self.tell("refused", node=visit.node, why=str(visit.error))
        return False

    def trip(self, ready: list[str]) -> None:
        """These nodes would pass max_steps: none of them starts, nor any other; what runs is the last to run."""
        self.tripped = True
        waiting = ", ".join(map(repr, ready[:8])) + (f" and {len(ready) - 8} more" if len(ready) > 8 else "")
        self.errors["engine"] = (f"max_steps={self.max_steps} reached: {waiting} did not run; "
                                 "pass a higher max_steps= if so many runs are meant")

    def call(self, visit: Visit) -> Visit:
        """Calls the node's function, in whatever thread this is; what came of it is noted on the visit."""
        here.set((self, visit))
        if self.observed:
            visit.began = self.clock.now()
        try:
            state = self.state if self.shared else self.view(visit)
            visit.writes = update(self.nodes[visit.node].fn(state))
            if self.strict:
                untouched(state, state.originals)  # type: ignore[attr-defined]
        except BaseException as error:
            visit.error, visit.writes = error, None
        if self.observed:
            visit.ended = self.clock.now()
        return visit

    # ---- what is written down, and who waits for a person

    def commit(self, visit: Visit) -> None:
        """A visit has ended: that goes to the journal, if it can be read back from there."""
        if self.waves:
            visit.wave = self.wave_number
        if self.log.plain and visit.writes and (wrong := unplain(visit.writes)):
            visit.error, visit.writes = TypeError(wrong), None
        self.log.add(self.prefix, visit)

    def pauses(self, visit: Visit) -> bool:
        """True if the visit waits for a person from now on; it stays active. A run that would be lost fails there."""
        wrong = None if self.log.plain else self.log.unplain()
        if wrong:
            visit.error = TypeError(wrong)
            return False
        self.asking[visit.node] = visit
        question = visit.error.waiting.get("")  # type: ignore[union-attr]
        if self.observed and question is not None:
            self.tell("pause", node=visit.node, question=question, choices=getattr(question, "choices", None))
        return True

    def nest(self, graph: Graph, state: Mapping[str, Any], visit: Visit, max_steps: int | None = None,
             hear: Callable[..., None] | None = None) -> GraphState:
        """Runs a graph inside a visit, as a part of this run: its events, its records and its gates are this run's."""
        visit.inner += 1
        part = f"{visit.node}#{visit.count}" + (f".{visit.inner}" if visit.inner > 1 else "")
        tell = hear or self.hear
        observer = (lambda kind, event: tell(kind, event, visit)) if self.observer is not None else None
        settings = replace(self.settings, observer=observer, max_steps=max_steps, executor=None, clock=self.clock)
        try:
            result = self.part(part, visit, graph, state, settings).go()
        except (GraphError, JournalError):
            visit.grave = True  # no failure of a node: the graph is wrong, or nothing can be written down
            raise
        if result.status == "paused":
            raise Paused(result.waiting)
        return result

    def part(self, name: str, visit: Visit, graph: Graph, state: Mapping[str, Any], settings: Settings) -> Run:
        """A run inside a visit, named in the journal by that visit."""
        return Run(graph, state, settings, self.log, f"{self.prefix}{name}/", self.start)

    # ---- what a visit leaves behind

    def merge(self, visit: Visit) -> None:
        """What a visit wrote goes on the blackboard; if it does not follow the last writer of a key, the two raced."""
        writes = visit.writes
        if not writes:
            return
        last = self.writer
        for key in writes:
            if key in last and not visit.follows(last[key]):
                raise StateCollision(key, (last[key].node, visit.node))
        for key in writes:
            last[key] = visit
        if not self.shared:
            self.remember(visit, writes)
        dict.update(self.state, writes)

    def leave(self, visit: Visit) -> None:
        """A visit is over: its tickets go out, and whoever waited for it looks again."""
        name = visit.node
        if visit.error is not None:
            self.fail(visit, visit.error)
        elif name in self.routers:
            self.route(visit)
        else:
            self.hand(visit, self.plan.next[name])
        del self.running[name]
        if name in self.held:
            self.fresh.add(name)
        if name in self.waiters:
            self.fresh.update(self.waiters.pop(name))

    def hand(self, visit: Visit, targets: Collection[str], failed: bool = False, back: bool = False) -> None:
        """Puts a ticket on each target."""
        src, holders, delivered = visit.node, self.held, 0 if back else 1
        for dst in targets:
            held = holders.get(dst)
            if held is None:
                held = holders[dst] = Held(self.plan.missing[dst])
            if src in held.arrived:
                held.again += (visit,)
            else:
                held.arrived[src] = visit
                held.missing -= delivered
            if failed:
                held.failed = True
            if back:
                self.new_lap(dst, held)
        self.fresh.update(targets)

    def send_on(self, visit: Visit, targets: Iterable[str]) -> None:
        """Puts a ticket on each target of conditional edges, which may point backwards, or to END."""
        for dst in targets:
            if dst != END:
                self.hand(visit, (dst,), back=(visit.node, dst) in self.plan.back)

    def new_lap(self, head: str, held: Held) -> None:
        """A ticket came backwards: it waits for what is below, and what is below can be reached again."""
        held.lap = True
        if head in self.quiet:
            self.quiet -= self.plan.below(head) | {head}
            self.age += 1

    def route(self, visit: Visit) -> None:
        """Asks the node's router, and puts tickets where its labels point."""
        name, (choose, targets) = visit.node, self.routers[visit.node]
        try:
            label = copy_context().run(self.ask, choose, visit)
            ends = ends_of(label, targets, name)
        except Exception as error:
            self.log.add(self.prefix, Route(name, visit.count, None, described(error)))
            if self.observed:
                self.tell("route", router=name, label=None, targets=[], target=None, error=described(error))
            self.fail(visit, error)
            return
        self.log.add(self.prefix, Route(name, visit.count, label, None))
        if self.observed:
            self.tell("route", router=name, label=label if isinstance(label, str) else list(label),
                      targets=list(ends), target=ends[0], error=None)
        self.send_on(visit, ends)

    def ask(self, choose: RouteFn, visit: Visit) -> Any:
        """What a router says of the blackboard as its node left it."""
        here.set((self, visit))
        return choose(self.state if self.shared else self.view(visit))

    # ---- failures

    def fail(self, visit: Visit, error: BaseException) -> None:
        """A failure is data: its text goes to the errors, a ticket to the handler, or failed ones down the graph."""
        name, text, handler = visit.node, described(error), self.nodes[visit.node].on_error
        self.exceptions[name] = error
        self.faults[name] = Write(visit, text, self.faults.get(name))
        self.errors[name], self.new_errors = text, True
        refused = isinstance(error, Refused)
        if handler is None or refused and name in self.refused:
            self.unhandled.append(f"{name}: {text}")
            self.hand(visit, self.plan.spoils[name], failed=True)
            return
        if refused:
            self.refused.add(name)  # into its handler once, or refusals could go round for ever
        self.send_on(visit, [handler])

    def block(self, name: str) -> None:
        """A node that holds a failed ticket does not run; it hands on what it holds."""
        visit = self.take(name)
        if self.observed:
            above = sorted({parent.node for parent in visit.parents}, key=lambda name: self.order.get(name, -1))
            self.tell("blocked", node=name, why="a node above it failed or is blocked: " + ", ".join(above))
        self.hand(visit, self.plan.spoils[name], failed=True)
        del self.running[name]
        self.fresh.update(self.waiters.pop(name, ()))

    # ---- the result

    def result(self, status: str) -> GraphState:
        state = GraphState({key: value for key, value in self.state.items() if key != "errors"}, errors=self.errors)
        state.status, state.path, state.visits, state.exceptions = status, self.path, self.visits, self.exceptions
        state.waiting = {f"{name}/{inner}" if inner else name: question for name, visit in self.asking.items()
                         for inner, question in visit.error.waiting.items()}  # type: ignore[union-attr]
        state._log, state._graph, state._unhandled, state._written = self.log, self.graph, self.unhandled, self.writer
        return state

    def first_record(self) -> Record:
        """With what the journal begins."""
        return {"shape": self.plan.describe(), "schedule": self.settings.schedule, "state": self.begun_with}

    def parcel(self, visit: Visit) -> tuple[Callable[[Any], Any], dict[str, Any]]:
        """What an executor in another process needs to make the call."""
        return self.nodes[visit.node].fn, dict(self.view(visit))


def ends_of(label: Any, targets: Mapping[str, tuple[str, ...]], node: str) -> tuple[str, ...]:
    """The targets of the label, or labels, that a router returned; each once."""
    if type(label) is str and label in targets:
        return targets[label]
    if isinstance(label, Coroutine):
        label.close()
        raise TypeError(f"the router on {node!r} is async; a router is a plain function that reads the state")
    labels = list(label) if isinstance(label, (list, tuple, set, frozenset)) else [label]
    listed = "its labels are " + ", ".join(map(repr, targets))
    if not labels:
        raise ValueError(f"the router on {node!r} returned no label; {listed}. To end the branch, let one name END")
    for one in labels:
        if not isinstance(one, str):
            hint = " (did it forget its return?)" if one is None else ""
            raise TypeError(f"the router on {node!r} returned {one!r}, which is no label{hint}; {listed}")
        if one not in targets:
            raise ValueError(f"the router on {node!r} returned {one!r}, which is none of its labels; {listed}; "
                             f"{meant(one, targets)}".rstrip("; "))
    return tuple(dict.fromkeys(end for one in labels for end in targets[one]))


def _check_call(graph: Any, state: Any, settings: Settings) -> None:
    """GraphError for a call that cannot be meant."""
    observer, schedule, clock = settings.observer, settings.schedule, settings.clock
    if not isinstance(graph, Graph):
        raise GraphError(f"run_graph(graph, state): the graph comes first, and {graph!r} is no Graph")
    if not isinstance(state, Mapping):
        raise GraphError(f"run_graph(graph, state): the state is a dict to begin with, {{}} if empty; got {state!r}")
    for key in state:
        if not isinstance(key, str):
            raise GraphError(f"the key {key!r} of the state is no string: keys of the blackboard are strings")
    if observer is not None and not callable(observer):
        raise GraphError(f"observer={observer!r} must be a function of (kind, event), a Trace for instance")
    if clock is not None and not hasattr(clock, "mailbox"):
        raise GraphError(f"clock={clock!r} is no clock: run it within virtual_time(), or pass RealClock(speed=...)")
    if schedule not in ("waves", "ready"):
        raise GraphError(f"schedule={schedule!r}: there are 'waves' and 'ready'")
    for name, value in (("max_steps", settings.max_steps), ("max_workers", settings.max_workers)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise GraphError(f"{name}={value!r} must be a whole number from 1")
