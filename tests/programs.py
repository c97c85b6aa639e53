"""A structured program says what it does without any scheduler: it can be interpreted directly, and it can be
compiled to a graph. Whatever the graph does must be what the interpreter did.

    program = Program(Seq((Task("a"), Par((Task("b"), Task("c"))), Task("d"))))
    interpret(program).visits          # {"a": 1, "b": 1, "c": 1, "d": 1}
    run_graph(program.graph(), {})     # must visit the same nodes as often, and leave the same blackboard

Five ideas are behind the interpreter: parts of a sequence follow one another; parallel branches all finish before
what stands below them; a router picks branches; a loop comes back until it is let out; a failure goes to the handler
of the `try` around it, or else spoils everything below. None of them mentions tickets, waves or edges.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, fields, replace
from typing import Any

from hypothesis import strategies as st

from minigraph import END, START, Graph, Node
from minigraph import clock as clocks

# ---------------------------------------------------------------------------------------------------------------
# the language
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One node. It fails on the visits in `fails`, folds its number into the keys in `folds`, sets those in `sets`."""

    name: str
    fails: tuple[int, ...] = ()
    folds: tuple[str, ...] = ()  # keys read and written again: the value tells in which order tasks touched them
    sets: tuple[str, ...] = ()  # keys written blindly
    cap: int | None = None  # a max_visits that is meant to trip
    swallow: bool = False  # on_error=END

    def __repr__(self) -> str:
        """Only what is not as usual: a program that fails a test is read by a person."""
        told = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Task({', '.join([repr(self.name), *told[1:]])})"


@dataclass(frozen=True)
class Seq:
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Par:
    branches: tuple[Any, ...]


@dataclass(frozen=True)
class If:
    """A router: on visit k it takes the branches in `picks[k - 1]`; a branch None goes straight on, a pick None is a
    label that is not there."""

    at: Task
    branches: tuple[Any, ...]
    picks: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True)
class Loop:
    """head, body, tail; on its visit k the tail goes back to the head (or to the body) if `picks[k - 1]`."""

    head: Task | None
    body: Any
    tail: Task
    picks: tuple[bool, ...]
    giveup: Task | None = None  # the head's own handler
    shield: bool = True  # a handler further out does not catch what fails in here


@dataclass(frozen=True)
class Revise:
    """body, then a judge: on its visit k it sends the work to `revise` and through the body again if `picks[k - 1]`."""

    body: Any
    judge: Task
    revise: Task
    picks: tuple[bool, ...]
    giveup: Task | None = None  # the reviser's own handler
    shield: bool = True


@dataclass(frozen=True)
class Retry:
    """prep, then call; a call that fails goes back to prep."""

    prep: Task
    call: Task
    shield: bool = True


@dataclass(frozen=True)
class Tolerate:
    """A task that may fail; what follows runs either way."""

    task: Task
    then: Task


@dataclass(frozen=True)
class Try:
    body: Any
    first: Task  # of the handler
    rest: Any = None


@dataclass(frozen=True)
class Program:
    """A program and the choices that must not matter: caps that do not trip, the order of nodes, edges and labels."""

    root: Any
    caps: dict[str, int] = field(default_factory=dict)
    initial: dict[str, Any] = field(default_factory=dict)
    shuffle: int = 0

    def graph(self, latency: dict[str, float] | None = None) -> Graph:
        """Return the program as a graph; with `latency`, each node sleeps that long on the run's clock."""
        return _Compiler(self).graph(latency or {})

    def ways_back(self) -> set[tuple[str, str]]:
        """Return the edges that point backwards, known from the program's own structure."""
        compiler = _Compiler(self)
        compiler.graph({})
        return compiler.back


# ---------------------------------------------------------------------------------------------------------------
# what it does: the interpreter
# ---------------------------------------------------------------------------------------------------------------

OK, NONE, FAILED = "ok", "none", "failed"  # what a part hands on: go ahead, nothing at all, or a failure
Handed = tuple[str, frozenset]  # and the runs that led to it


@dataclass
class Outcome:
    visits: dict[str, int] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    errors: set[str] = field(default_factory=set)
    status: str = "done"
    steps: int = 0
    races: set[str] = field(default_factory=set)  # keys that two runs wrote, neither of them after the other


def fold(old: int, name: str) -> int:
    """Return a number that depends on `old`, on the task, and on the order of the two."""
    return (old * 31 + sum(map(ord, name))) % 99991


def interpret(program: Program) -> Outcome:
    """Return what the program does."""
    interpreter = _Interpreter(program)
    interpreter.do(program.root, (OK, frozenset()), None)
    return interpreter.outcome()


def both(*handed: Handed) -> Handed:
    """Return what a join sees of its branches: a failure spoils it, else one arrival is enough."""
    for kind in (FAILED, OK):
        if any(k == kind for k, _ in handed):
            return kind, frozenset().union(*(past for k, past in handed if k == kind))
    return NONE, frozenset()


class _Interpreter:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.visits: dict[str, int] = {}
        self.errors: set[str] = set()
        self.unhandled = False
        self.refused: set[str] = set()
        self.steps = 0
        self.writes: list[tuple[tuple[str, int], frozenset, str, Any]] = []  # run, its past, key, value

    # -- one node

    def node(self, task: Task, past: frozenset, handler: list | None) -> Handed:
        """Run a task: OK with itself added to the past, NONE if a handler takes over, else FAILED."""
        self.steps += 1
        handler = [] if task.swallow else handler
        cap = task.cap if task.cap is not None else self.program.caps.get(task.name)
        if cap is not None and self.visits.get(task.name, 0) >= cap:
            again = task.name in self.refused
            self.refused.add(task.name)
            return self.failure(task.name, past, None if again else handler)
        visit = self.visits[task.name] = self.visits.get(task.name, 0) + 1
        run = (task.name, visit)
        if visit in task.fails:
            return self.failure(task.name, past | {run}, handler)
        self.write(run, past, task.name, visit)
        for key in task.sets:
            self.write(run, past, key, task.name)
        for key in task.folds:
            self.write(run, past, key, fold(self.read(past, key), task.name))
        return OK, past | {run}

    def failure(self, name: str, past: frozenset, handler: list | None) -> Handed:
        self.errors.add(name)
        if handler is None:
            self.unhandled = True
            return FAILED, past
        handler.append(past)
        return NONE, frozenset()

    def write(self, run: tuple[str, int], past: frozenset, key: str, value: Any) -> None:
        self.writes.append((run, past, key, value))

    def read(self, past: frozenset, key: str) -> Any:
        """Return the last value of a key among the runs in `past` (the tasks that touch a folded key are in a row)."""
        for run, _, written, value in reversed(self.writes):
            if written == key and run in past:
                return value
        return self.program.initial.get(key, 0)

    # -- the constructs

    def do(self, part: Any, come: Handed, handler: list | None) -> Handed:
        if part is None or come[0] != OK:
            return come
        return getattr(self, "run_" + type(part).__name__.lower())(part, come[1], handler)

    def run_task(self, p: Task, past: frozenset, handler: list | None) -> Handed:
        return self.node(p, past, handler)

    def run_seq(self, p: Seq, past: frozenset, handler: list | None) -> Handed:
        come: Handed = (OK, past)
        for part in p.parts:
            come = self.do(part, come, handler)
        return come

    def run_par(self, p: Par, past: frozenset, handler: list | None) -> Handed:
        return both(*[self.do(branch, (OK, past), handler) for branch in p.branches])

    def run_if(self, p: If, past: frozenset, handler: list | None) -> Handed:
        come = self.node(p.at, past, handler)
        if come[0] != OK:
            return come
        pick = p.picks[min(self.visits[p.at.name], len(p.picks)) - 1]
        if pick is None:
            return self.failure(p.at.name, come[1], [] if p.at.swallow else handler)
        return both(*[self.do(p.branches[i], come, handler) for i in pick])

    def run_loop(self, p: Loop, past: frozenset, handler: list | None) -> Handed:
        handler = None if p.shield else handler
        gave_up: list = []
        while True:
            come: Handed = (OK, past)
            if p.head is not None:
                come = self.node(p.head, past, gave_up if p.giveup else handler)
            come = self.do(p.tail, self.do(p.body, come, handler), handler)
            if come[0] != OK or not p.picks[min(self.visits[p.tail.name], len(p.picks)) - 1]:
                return both(come, self.caught(p.giveup, gave_up, handler))
            past = come[1]

    def run_revise(self, p: Revise, past: frozenset, handler: list | None) -> Handed:
        handler = None if p.shield else handler
        gave_up: list = []
        come: Handed = (OK, past)
        while True:
            come = self.do(p.judge, self.do(p.body, come, handler), handler)
            if come[0] != OK or not p.picks[min(self.visits[p.judge.name], len(p.picks)) - 1]:
                return both(come, self.caught(p.giveup, gave_up, handler))
            come = self.node(p.revise, come[1], gave_up if p.giveup else handler)

    def caught(self, first: Any, failures: list, handler: list | None) -> Handed:
        if not failures:
            return NONE, frozenset()
        return self.do(first, (OK, frozenset().union(*failures)), handler)

    def run_retry(self, p: Retry, past: frozenset, handler: list | None) -> Handed:
        handler = None if p.shield else handler
        while True:
            failures: list = []
            come = self.do(p.call, self.node(p.prep, past, handler), failures)
            if not failures:
                return come
            past = frozenset().union(*failures)

    def run_tolerate(self, p: Tolerate, past: frozenset, handler: list | None) -> Handed:
        failures: list = []
        come = self.node(p.task, past, failures)
        if failures:
            come = (OK, failures[0])
        return self.do(p.then, come, handler)

    def run_try(self, p: Try, past: frozenset, handler: list | None) -> Handed:
        failures: list = []
        come = self.do(p.body, (OK, past), failures)
        return both(come, self.caught(Seq((p.first, p.rest)), failures, handler))

    # -- the result

    def outcome(self) -> Outcome:
        out = Outcome(self.visits, dict(self.program.initial), self.errors, steps=self.steps)
        out.status = "failed" if self.unhandled else "done"
        by_key: dict[str, list] = {}
        for write in self.writes:
            by_key.setdefault(write[2], []).append(write)
        for key, writes in by_key.items():
            for i, (run, past, _, _) in enumerate(writes):
                if any(run not in p and r not in past for r, p, _, _ in writes[i + 1 :]):
                    out.races.add(key)
            last = max(writes, key=lambda w: sum(w2[0] in w[1] for w2 in writes))
            out.state[key] = last[3]
        return out


# ---------------------------------------------------------------------------------------------------------------
# the same as a graph: the compiler
# ---------------------------------------------------------------------------------------------------------------

Exit = tuple[str, "str | None"]  # a node, and the label of its router that leads out (None: a static edge)


class _Compiler:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.tasks: dict[str, Task] = {}
        self.on_error: dict[str, str] = {}
        self.edges: list[tuple[str, str]] = []
        self.routers: dict[str, tuple[dict[str, list[str]], Any]] = {}  # node -> targets, picks
        self.back: set[tuple[str, str]] = set()

    def node(self, task: Task, handler: str | None) -> str:
        self.tasks[task.name] = task
        target = END if task.swallow else handler
        if target is not None:
            self.on_error[task.name] = target
        return task.name

    def router(self, name: str, labels: list[str], picks: Any) -> None:
        self.routers[name] = ({label: [] for label in labels}, picks)

    def connect(self, exits: list[Exit], entries: list[str]) -> None:
        for node, label in exits:
            for entry in entries:
                if label is None:
                    self.edges.append((node, entry))
                else:
                    self.routers[node][0][label].append(entry)

    def part(self, p: Any, handler: str | None) -> tuple[list[str], list[Exit]]:
        """Add a part's nodes; return the nodes it starts with and its ways out."""
        return getattr(self, "add_" + type(p).__name__.lower())(p, handler)

    def add_task(self, p: Task, handler: str | None) -> tuple[list[str], list[Exit]]:
        name = self.node(p, handler)
        return [name], [(name, None)]

    def add_seq(self, p: Seq, handler: str | None) -> tuple[list[str], list[Exit]]:
        entries: list[str] = []
        exits: list[Exit] = []
        for part in p.parts:
            if part is None:
                continue
            first, last = self.part(part, handler)
            self.connect(exits, first)
            entries, exits = entries or first, last
        return entries, exits

    def add_par(self, p: Par, handler: str | None) -> tuple[list[str], list[Exit]]:
        entries: list[str] = []
        exits: list[Exit] = []
        for branch in p.branches:
            first, last = self.part(branch, handler)
            entries, exits = entries + first, exits + last
        return entries, exits

    def add_if(self, p: If, handler: str | None) -> tuple[list[str], list[Exit]]:
        name = self.node(p.at, handler)
        labels = [str(i) for i in range(len(p.branches))]
        self.router(name, labels, [None if pick is None else [str(i) for i in pick] for pick in p.picks])
        exits: list[Exit] = []
        for label, branch in zip(labels, p.branches, strict=True):
            if branch is None:
                exits.append((name, label))
                continue
            first, last = self.part(branch, handler)
            self.connect([(name, label)], first)
            exits += last
        return [name], exits

    def add_loop(self, p: Loop, handler: str | None) -> tuple[list[str], list[Exit]]:
        handler = None if p.shield else handler
        outs: list[Exit] = []
        if p.giveup:
            outs = self.part(p.giveup, handler)[1]
        first, last = self.part(p.body, handler)
        if p.head:
            head = self.node(p.head, p.giveup.name if p.giveup else handler)
            self.connect([(head, None)], first)
            first = [head]
        tail = self.node(p.tail, handler)
        self.connect(last, [tail])
        self.router(tail, ["again", "out"], [["again" if back else "out"] for back in p.picks])
        self.connect([(tail, "again")], first)
        self.back |= {(tail, entry) for entry in first}
        return first, [(tail, "out"), *outs]

    def add_revise(self, p: Revise, handler: str | None) -> tuple[list[str], list[Exit]]:
        handler = None if p.shield else handler
        outs: list[Exit] = []
        if p.giveup:
            outs = self.part(p.giveup, handler)[1]
        first, last = self.part(p.body, handler)
        judge = self.node(p.judge, handler)
        revise = self.node(p.revise, p.giveup.name if p.giveup else handler)
        self.connect(last, [judge])
        self.router(judge, ["again", "out"], [["again" if back else "out"] for back in p.picks])
        self.connect([(judge, "again")], [revise])
        self.connect([(revise, None)], first)
        self.back.add((judge, revise))
        return first, [(judge, "out"), *outs]

    def add_retry(self, p: Retry, handler: str | None) -> tuple[list[str], list[Exit]]:
        prep = self.node(p.prep, None if p.shield else handler)
        call = self.node(p.call, prep)
        self.connect([(prep, None)], [call])
        self.back.add((call, prep))
        return [prep], [(call, None)]

    def add_tolerate(self, p: Tolerate, handler: str | None) -> tuple[list[str], list[Exit]]:
        task, then = self.node(p.task, p.then.name), self.node(p.then, handler)
        self.connect([(task, None)], [then])
        return [task], [(then, None)]

    def add_try(self, p: Try, handler: str | None) -> tuple[list[str], list[Exit]]:
        first, outs = self.part(Seq((p.first, p.rest)), handler)
        entries, exits = self.part(p.body, first[0])
        return entries, exits + outs

    def graph(self, latency: dict[str, float]) -> Graph:
        dice = random.Random(self.program.shuffle)
        entries, exits = self.part(self.program.root, None)
        self.edges += [(START, entry) for entry in entries]
        for name, label in exits:
            if label is not None:
                self.routers[name][0][label].append(END)
            elif dice.random() < 0.5:  # the other half are nodes without an edge out
                self.edges.append((name, END))
        graph = Graph("program")
        for name in dice.sample(list(self.tasks), len(self.tasks)):
            task = self.tasks[name]
            cap = task.cap if task.cap is not None else self.program.caps.get(name)
            function = _Function(task, latency.get(name))
            graph.add_node(Node(name, function, max_visits=cap, on_error=self.on_error.get(name)))
        for src, dst in dice.sample(self.edges, len(self.edges)):
            graph.add_edge(src, dst)
        for name in dice.sample(list(self.routers), len(self.routers)):
            targets, picks = self.routers[name]
            labels = dice.sample(list(targets), len(targets))
            graph.add_router(name, _Picks(name, picks), {label: targets[label] for label in labels})
        return graph


class _Function:
    """The node's function. It counts its own visits, so that a graph built once is run once."""

    def __init__(self, task: Task, latency: float | None) -> None:
        self.task, self.latency, self.visit = task, latency, 0

    def __call__(self, state: Any) -> dict[str, Any]:
        self.visit += 1
        if self.latency is not None:
            clocks.sleep(self.latency)
        if self.visit in self.task.fails:
            raise RuntimeError(f"planned, on visit {self.visit}")
        update: dict[str, Any] = {self.task.name: self.visit}
        update.update(dict.fromkeys(self.task.sets, self.task.name))
        update.update({key: fold(state.get(key, 0), self.task.name) for key in self.task.folds})
        return update


class _Picks:
    """The router's function: it knows the visit from what its node has just written."""

    def __init__(self, name: str, picks: list[list[str] | None]) -> None:
        self.name, self.picks = name, picks

    def __call__(self, state: Any) -> Any:
        pick = self.picks[min(state[self.name], len(self.picks)) - 1]
        if pick is None:
            return "no such label"
        return pick[0] if len(pick) == 1 else pick


# ---------------------------------------------------------------------------------------------------------------
# drawing programs
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Where:
    """What may stand in a place. Two limits keep the outcome one that does not hang on timing: a handler outside a
    loop catches failures from inside it only where nothing runs beside them, and a key is folded by tasks in a row."""

    depth: int
    keys: tuple[str, ...] = ()
    parallel: bool = True
    in_loop: bool = False
    shield: bool = True


class _Generator:
    def __init__(self, draw: Any, wild: tuple[str, ...], failures: bool) -> None:
        self.draw, self.wild, self.failures = draw, wild, failures
        self.count = 0
        self.budget = 28  # tasks; what is drawn after that is small

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent  # shrinks to False

    def task(self, where: _Where, stem: str = "t", may_fail: bool = True) -> Task:
        self.count += 1
        self.budget -= 1
        fails: tuple[int, ...] = ()
        if self.failures and may_fail and self.chance(14):
            fails = tuple(self.draw(st.sampled_from([(1,), (2,), (1, 2), (3,)])))
        swallow = bool(fails) and not where.in_loop and self.chance(20)
        folds = tuple(key for key in where.keys if self.chance(35))
        sets = tuple(key for key in self.wild if self.chance(12))
        return Task(f"{stem}{self.count}", fails, folds, sets, swallow=swallow)

    def part(self, where: _Where) -> Any:
        if where.depth <= 0 or self.budget <= 0:
            return self.task(where)
        kinds = ["task", "seq", "seq", "if", "loop", "revise"]
        if self.failures:
            kinds += ["try", "retry", "tolerate"]
        if where.parallel:
            kinds += ["par", "par"]
        return getattr(self, "g_" + self.draw(st.sampled_from(kinds)))(replace(where, depth=where.depth - 1))

    def g_task(self, where: _Where) -> Any:
        return self.task(where)

    def g_seq(self, where: _Where) -> Any:
        return Seq(tuple(self.part(where) for _ in range(self.draw(st.integers(2, 3)))))

    def split(self, where: _Where, ways: int) -> list[_Where]:
        """Give each key to one branch."""
        owner = {key: self.draw(st.integers(0, ways - 1)) for key in where.keys}
        return [replace(where, keys=tuple(k for k in where.keys if owner[k] == i)) for i in range(ways)]

    def g_par(self, where: _Where) -> Any:
        ways = self.draw(st.integers(2, 4))
        return Par(tuple(self.part(own) for own in self.split(where, ways)))

    def g_if(self, where: _Where) -> Any:
        ways = self.draw(st.integers(1, 3))
        inclusive = where.parallel and self.chance(40)
        places = self.split(where, ways) if inclusive else [where] * ways
        at = self.task(where, "r")
        branches: list[Any] = [self.part(place) for place in places]
        if ways == 1 or self.chance(40):
            branches.append(None)
        indices = st.integers(0, len(branches) - 1)
        pick: Any = indices.map(lambda i: (i,))
        if inclusive:
            pick = st.lists(indices, min_size=1, max_size=len(branches), unique=True).map(tuple)
        picks = self.draw(st.lists(pick, min_size=1, max_size=4))
        if self.failures and self.chance(10):
            picks[self.draw(st.integers(0, len(picks) - 1))] = None
        return If(at, tuple(branches), tuple(picks))

    def picks(self) -> tuple[bool, ...]:
        """Draw a tail's choices: a few laps for each time the loop is entered; the last choice is the way out."""
        entries = self.draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
        return tuple(pick for laps in entries for pick in [True] * laps + [False])

    def g_loop(self, where: _Where) -> Any:
        inner = replace(where, in_loop=True)
        body = self.part(inner)
        trips = self.failures and self.chance(25)
        headless = not trips and self.chance(50) and (_one_entry(body) or _plain(body))
        head = None if headless else self.task(inner, "head")
        giveup = None
        if trips and head:
            head = replace(head, cap=self.draw(st.integers(1, 3)))
            giveup = self.task(inner, "giveup") if self.chance(60) else None
        picks = (True,) if trips else self.picks()
        return Loop(head, body, self.task(inner, "tail"), picks, giveup, where.shield)

    def g_revise(self, where: _Where) -> Any:
        inner = replace(where, in_loop=True)
        body = self.part(inner)
        revise, giveup = self.task(inner, "revise"), None
        trips = self.failures and self.chance(40)
        if trips:
            revise = replace(revise, cap=self.draw(st.integers(1, 2)))
            giveup = self.task(inner, "giveup") if self.chance(60) else None
        return Revise(body, self.task(inner, "judge"), revise, (True,) if trips else self.picks(), giveup, where.shield)

    def g_retry(self, where: _Where) -> Any:
        prep, call = self.task(where, "prep", may_fail=False), self.task(where, "call", may_fail=False)
        call = replace(call, fails=tuple(range(1, 1 + self.draw(st.integers(0, 3)))))
        if self.chance(30):
            cap = self.draw(st.integers(1, 3))
            prep, call = (replace(prep, cap=cap), call) if self.chance(50) else (prep, replace(call, cap=cap))
        return Retry(prep, call, where.shield)

    def g_tolerate(self, where: _Where) -> Any:
        return Tolerate(replace(self.task(where), swallow=False), self.task(where))

    def g_try(self, where: _Where) -> Any:
        alone = not where.parallel or self.chance(50)
        inside = replace(where, parallel=not alone, shield=not alone)
        own, part = replace(self.task(inside), swallow=False), self.part(inside)  # one task that leads to the handler
        body = Seq((own, part) if self.chance(50) else (part, own))
        # beside a parallel body the handler may run while the rest of it does, so it folds nothing
        place = replace(where, keys=where.keys if alone else ())
        return Try(body, self.task(place, "h"), self.part(place) if self.chance(25) else None)


def _one_entry(part: Any) -> bool:
    if isinstance(part, Seq):
        return _one_entry(part.parts[0])
    if isinstance(part, Loop):
        return part.head is not None or _one_entry(part.body)
    if isinstance(part, (Try, Revise)):
        return _one_entry(part.body)
    return not isinstance(part, Par)


def _plain(part: Any) -> bool:
    """Whether a part is joined by static edges alone."""
    if isinstance(part, (Seq, Par)):
        return all(map(_plain, part.parts if isinstance(part, Seq) else part.branches))
    return isinstance(part, Task)


@st.composite
def programs(draw: Any, *, depth: int = 3, wild: tuple[str, ...] = (), failures: bool = True) -> Program:
    """Draw a program. Keys in `wild` are set by tasks anywhere, so they may race."""
    keys = ("x", "y", "z")
    generator = _Generator(draw, wild, failures)
    where = _Where(depth, keys)
    root = Seq((generator.part(where), generator.part(where)))
    initial = {key: draw(st.integers(0, 9)) for key in keys if draw(st.booleans())}
    program = Program(root, initial=initial, shuffle=draw(st.integers(0, 999)))
    return replace(program, caps=_caps(program, draw))


def _caps(program: Program, draw: Any) -> dict[str, int]:
    """Draw caps that do not trip: on one node of each cycle at least, and on some others."""
    visits = interpret(program).visits
    caps = {}
    for name, cyclic in _tasks(program.root):
        if cyclic or draw(st.integers(0, 3)) == 0:
            caps[name] = max(1, visits.get(name, 0)) + draw(st.integers(0, 1))
    return caps


def _tasks(part: Any) -> list[tuple[str, bool]]:
    """Return every task of a part, and whether it is the one that the cap of a cycle stands on."""
    if part is None:
        return []
    if isinstance(part, Task):
        return [(part.name, False)]
    if isinstance(part, Loop):
        return [*_tasks(part.head), *_tasks(part.body), (part.tail.name, True), *_tasks(part.giveup)]
    if isinstance(part, Revise):
        return [*_tasks(part.body), (part.judge.name, True), *_tasks(part.revise), *_tasks(part.giveup)]
    if isinstance(part, Retry):
        return [(part.prep.name, part.prep.cap is None and part.call.cap is None), *_tasks(part.call)]
    if isinstance(part, Try):
        return [*_tasks(part.body), *_tasks(part.first), *_tasks(part.rest)]
    if isinstance(part, If):
        return [*_tasks(part.at), *[task for branch in part.branches for task in _tasks(branch)]]
    if isinstance(part, Tolerate):
        return [*_tasks(part.task), *_tasks(part.then)]
    return [task for p in (part.parts if isinstance(part, Seq) else part.branches) for task in _tasks(p)]
