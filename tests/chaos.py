"""Runs that are killed with SIGKILL at random instants, and resumed until they are over, end as if nothing had been.

    python tests/chaos.py --runs 300 --seed 0
    python tests/chaos.py --seed 0 --only 17       # one of them alone, with its graph and its journals

Each run is a graph drawn at random: cycles with guards, gates, graphs in nodes, maps, failures and handlers. It runs
undisturbed first; then again, in one process after the other, each killed, the next resuming from the store. All runs
share one SQLite file. Two things are kept outside of those processes: what every call of a node appends to a file when
it starts and when it ends, and the records that the store held after each kill. They tell whether a node ran again
though its end was committed. The script returns 1 if one did, or if a run did not end as the undisturbed one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from hypothesis import HealthCheck, Phase, assume, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from programs import Loop, Program, Retry, Revise, Task, fold, interpret, programs  # noqa: E402

from minigraph import Graph, GraphState, Node, resume_graph, run_graph  # noqa: E402
from minigraph.crew import here  # noqa: E402
from minigraph.nodes import graph_node, human_node, map_node  # noqa: E402
from minigraph.store import RunLog, SqliteStore, StoreError  # noqa: E402

Record = dict[str, Any]
Key = tuple[str, int]  # a visit: the node as the journal names it, and the how-manieth visit of it
Noted = tuple[str, str, int]  # "start" or "end", and the visit
Note = Callable[[str], None]
Outcome = dict[str, Any]  # how a run ended: its status, blackboard, visits and errors

ITEMS = {"0 items": [], "1 items": ["a"], "3 items": ["a", "b", "c"], "9 items": list("abcdefghi")}
INITIAL = {"x": 0, "y": 0, "z": 0, **ITEMS}
PATIENCE = 60  # seconds after which a run is said to hang
BLOCK = 12  # cases that are drawn together
ALWAYS = tuple(range(1, 60))  # visits on which a node fails that can do nothing else

# ---------------------------------------------------------------------------------------------------------------
# what runs
# ---------------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A program, and which of its tasks are something else than a plain function."""

    program: Program
    gates: set[str] = field(default_factory=set)
    maps: dict[str, str] = field(default_factory=dict)  # node -> the key of its items
    inner: dict[str, Case] = field(default_factory=dict)  # node -> what runs inside it
    schedule: str = "waves"
    workers: int | None = None

    def graph(self, note: Note, pace: float) -> Graph:
        """Return the graph; its nodes note what they do, and take `pace` seconds at most."""
        graph, tasks = self.program.graph(), {task.name: task for task in tasks_of(self.program.root)}
        for name, node in list(graph.nodes.items()):
            graph.nodes[name] = self.node(node, Step(tasks[name], note, pace))
        for name, (picks, targets) in list(graph.routers.items()):
            graph.routers[name] = Picks(picks.picks), targets  # type: ignore[attr-defined]
        return graph

    def node(self, node: Node, step: Step) -> Node:
        name, guards = node.name, {"max_visits": node.max_visits, "on_error": node.on_error}
        if name in self.gates:
            return human_node(name, question, name, **guards)  # type: ignore[arg-type]
        if name in self.maps:
            return map_node(name, step.item, self.maps[name], name, **guards)  # type: ignore[arg-type]
        if name in self.inner:
            inside, keys = self.inner[name], list(step.task.folds)
            names = [task.name for task in tasks_of(inside.program.root)]
            nested = graph_node(name, inside.graph(step.note, step.pace), keys + list(ITEMS), keys + names,
                                max_steps=10_000, **guards)  # type: ignore[arg-type]
            return replace(nested, fn=Inside(nested.fn, step.task))
        return replace(node, fn=step)

    def features(self) -> set[str]:
        """Return what is drawn in it, in words."""
        found = {"gates": self.gates, "maps": self.maps, "graphs in nodes": self.inner}
        parts = list(parts_of(self.program.root))
        words = {word for word, names in found.items() if names}
        words |= {"cycles"} if any(isinstance(part, (Loop, Revise, Retry)) for part in parts) else set()
        words |= {"failures"} if interpret(self.program).errors else set()
        words |= {"handlers"} if any(node.on_error for node in self.program.graph().nodes.values()) else set()
        return words.union(*[inside.features() for inside in self.inner.values()])


def whose() -> Key:
    """Return the visit that is under way here, named as in the journal."""
    inside = here.get()
    assert inside is not None
    run, visit = inside
    return run.prefix + visit.node, visit.count


def question(state: Any) -> str:
    return "{}, visit {}: and now?".format(*whose())


@dataclass(frozen=True)
class Step:
    """A task's function. It keeps nothing from one visit to the next: the next may be in another process."""

    task: Task
    note: Note
    pace: float

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        path, visit = whose()
        self.work()
        if visit in self.task.fails:
            raise RuntimeError(f"planned, on visit {visit} of {path}")
        folds = {key: fold(state.get(key, 0), self.task.name) for key in self.task.folds}
        return {self.task.name: "x" * (40_000 if visit == 2 else visit), **folds}

    def item(self, item: str) -> str:
        self.work()
        visit = outer_visit()
        if visit in self.task.fails and item == "a":
            raise ValueError(f"planned, on visit {visit}")
        return item.upper()

    def work(self) -> None:
        self.note("start")
        time.sleep(random.random() * self.pace)
        self.note("end")


def outer_visit() -> int:
    """Return the visit of the node inside which a run is under way: 2 in "outer#2/inner"."""
    return int(whose()[0].rpartition("/")[0].rpartition("#")[2])


@dataclass(frozen=True)
class Inside:
    """The function of a node that runs a graph: all that it wrote goes under the node's own name."""

    run: Callable[[Any], Any]
    task: Task

    @property
    def graph(self) -> Graph:
        return self.run.graph  # type: ignore[attr-defined, no-any-return]

    def __call__(self, state: Any) -> dict[str, Any]:
        wrote = self.run(state)
        if whose()[1] in self.task.fails:
            raise RuntimeError(f"planned, after its graph, on visit {whose()[1]}")
        return {**{key: wrote.pop(key) for key in self.task.folds if key in wrote}, self.task.name: wrote}


@dataclass(frozen=True)
class Picks:
    """A router's function, which knows the visit from where it is asked."""

    picks: Sequence[Any]

    def __call__(self, state: Any) -> Any:
        pick = self.picks[min(whose()[1], len(self.picks)) - 1]
        if pick is None:
            return "no such label"
        return pick[0] if len(pick) == 1 else pick


# ---------------------------------------------------------------------------------------------------------------
# drawing it
# ---------------------------------------------------------------------------------------------------------------


def parts_of(part: Any) -> Iterator[Any]:
    """Yield a part of a program and all parts of it."""
    if isinstance(part, tuple):
        for one in part:
            yield from parts_of(one)
    elif is_dataclass(part):
        yield part
        if not isinstance(part, Task):
            for child in fields(part):
                yield from parts_of(getattr(part, child.name))


def tasks_of(part: Any) -> list[Task]:
    return [one for one in parts_of(part) if isinstance(one, Task)]


def changed(part: Any, change: Mapping[str, Task]) -> Any:
    """Return the part with some of its tasks replaced."""
    if isinstance(part, Task):
        return change.get(part.name, part)
    if isinstance(part, tuple):
        return tuple(changed(one, change) for one in part)
    if is_dataclass(part):
        return type(part)(**{child.name: changed(getattr(part, child.name), change) for child in fields(part)})
    return part


@st.composite
def cases(draw: Any, depth: int = 3, nested: int = 2, keys: tuple[str, ...] = ("x", "y", "z")) -> Case:
    """Draw a case; `nested` says how deep graphs may stand in nodes of graphs, `keys` which keys may be folded."""
    case, change = Case(draw(programs(depth=depth))), {}
    for task in tasks_of(case.program.root):
        task = change[task.name] = replace(task, folds=tuple(key for key in task.folds if key in keys))
        kind = draw(st.sampled_from(["plain"] * 4 + ["gate", "map", "graph" if nested else "plain"]))
        if kind == "gate" and not task.folds and not task.fails:
            case.gates.add(task.name)
        elif kind == "map" and not task.folds:
            case.maps[task.name] = draw(st.sampled_from(list(ITEMS)[1 if task.fails else 0:]))
        elif kind == "graph":
            inside = draw(cases(depth=draw(st.integers(1, 2)), nested=nested - 1, keys=task.folds))
            if interpret(inside.program).status != "done":
                if not task.fails:
                    continue
                change[task.name] = replace(task, fails=ALWAYS)
            case.inner[task.name] = inside
    case.program = replace(case.program, root=changed(case.program.root, change), initial=INITIAL)
    assume(not interpret(case.program).races)  # such a graph is wrong, and says so
    case.schedule = draw(st.sampled_from(["waves", "ready"]))
    case.workers = draw(st.sampled_from([None, 2]))
    return case


def drawn(block: int, from_seed: int) -> list[Case]:
    """Return the cases of a block, the same ones for the same seed."""
    found: list[Case] = []

    @seed(from_seed * 10_000 + block)
    @settings(max_examples=BLOCK + 2, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(cases())
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found[1: BLOCK + 1]  # the first is the simplest there is


# ---------------------------------------------------------------------------------------------------------------
# running it, in a process of its own
# ---------------------------------------------------------------------------------------------------------------


@dataclass
class Stage:
    """Where the runs of a storm take place, and what is kept of them outside their processes."""

    folder: Path

    @property
    def store(self) -> SqliteStore:
        return SqliteStore(self.folder / "runs.db", wait=60)

    def run(self, case: Case, id: str, pace: float, kill: tuple[int, float] | None = None) -> tuple[bool, int]:
        """Run or resume in a new process, which is killed at `kill`: so many seconds after so many records. Return
        whether it came to its end all the same, and how many records it said to be committed."""
        progress, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                self.in_child(case, id, pace, told)
            finally:
                os._exit(0)
        os.close(told)
        records, until, due = 0, time.monotonic() + PATIENCE, False
        while True:
            if kill is not None and records >= kill[0] and not due:
                until, due = time.monotonic() + kill[1], True
            if not select.select([progress], [], [], max(0, until - time.monotonic()))[0]:
                os.kill(pid, signal.SIGKILL)
                break
            if not (news := os.read(progress, 65536)):
                break  # it is over
            records += len(news)
        os.close(progress)
        ended = not os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        if not ended and not due:
            raise TimeoutError(f"{id} is not over after {PATIENCE} s: it hangs")
        return ended, records

    def in_child(self, case: Case, id: str, pace: float, progress: int) -> None:
        random.seed(os.getpid())
        log = os.open(self.folder / f"{id}.notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            state = drive(case, self.store, id, lambda what: note(log, what), pace, progress)
            told = {"status": state.status, "state": dict(state), "visits": state.visits, "errors": state.errors}
        except BaseException:
            told = {"raised": traceback.format_exc()}
        (self.folder / f"{id}.half").write_text(json.dumps(told))
        os.replace(self.folder / f"{id}.half", self.folder / f"{id}.end")

    def records(self, id: str) -> list[Record]:
        return held_by(self.store, id)

    def notes(self, id: str) -> list[Noted]:
        path = self.folder / f"{id}.notes"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(what, node, int(visit)) for what, node, visit in (line.split(" ") for line in lines)]

    def end(self, id: str) -> Outcome:
        return json.loads((self.folder / f"{id}.end").read_text())  # type: ignore[no-any-return]


def note(log: int, what: str) -> None:
    os.write(log, "{} {} {}\n".format(what, *whose()).encode())


def held_by(store: SqliteStore, id: str) -> list[Record]:
    """Return the records of a run; none if it is not there yet."""
    try:
        return store.load(id)
    except StoreError as error:
        if not str(error).startswith(f"no run {id!r}"):
            raise
        return []


@dataclass
class Journal:
    """A journal of the store's, which tells outside how far it has come: a byte for each record."""

    log: RunLog
    progress: int

    def __call__(self, record: Record) -> None:
        self.log(record)
        os.write(self.progress, b".")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)


def drive(case: Case, store: SqliteStore, id: str, note: Note, pace: float, progress: int) -> GraphState:
    """Run or resume, and answer whatever is asked, some of it at a time, until nothing is left. Now and then a limit of
    steps ends a run in between, but not the undisturbed one."""
    graph, journal, records = case.graph(note, pace), Journal(store.run(id), progress), held_by(store, id)
    options = {"max_workers": case.workers, "observer": random.choice([None, lambda kind, event: None])}
    steps = 10_000 if id.endswith("calm") else random.choice([10_000, 10_000, random.randint(1, 30)])
    if records:
        state = resume_graph(graph, records, journal=journal, max_steps=10_000, **options)
    else:
        state = run_graph(graph, INITIAL, schedule=case.schedule, journal=journal, max_steps=steps, **options)
    while state.status in ("paused", "max_steps"):
        asked = random.sample(sorted(state.waiting), random.randint(bool(state.waiting), len(state.waiting)))
        answers = {gate: f"yes to {state.waiting[gate]}" for gate in asked}
        state = resume_graph(graph, store.load(id), answers, journal=journal, max_steps=10_000, **options)
    return state


# ---------------------------------------------------------------------------------------------------------------
# killing it
# ---------------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What became of one case."""

    number: int
    features: list[str]
    kills: dict[str, int] = field(default_factory=dict)  # where the run stood -> how often it was killed there
    calls: int = 0  # of nodes
    repeated: int = 0  # calls made again, because the end of the first was not committed
    records: int = 0
    wrong: list[str] = field(default_factory=list)


def storm(case: Case, number: int, stage: Stage, dice: random.Random) -> Report:
    """Run a case undisturbed, then with kills; return what is to be said of both."""
    report, calm = Report(number, sorted(case.features())), f"{number} calm"
    pace = min(0.015, 0.6 / max(1, interpret(case.program).steps))
    stage.run(case, calm, pace)
    total = len(stage.records(calm))
    held: list[list[Record]] = [[]]  # what the store held when each process began
    seen: list[list[Noted]] = []  # what the nodes noted in each process
    for attempt in range(20):  # one that is over before it is killed does not count
        id, wanted = f"{number} storm {attempt}", dice.choice([1, 1, 2, 3, 4])
        held, seen = [[]], []
        for turn in range(wanted + 1):
            rest = dice.randint(0, max(0, total - len(held[-1]))), dice.random() * 0.01
            kill = (0, dice.random() * 0.1) if dice.random() < 0.2 else rest
            over, told = stage.run(case, id, pace, kill if turn < wanted else None)
            seen.append(stage.notes(id)[sum(map(len, seen)):])
            if over:
                break
            held.append(stage.records(id))
            if len(held[-1]) < len(held[-2]) + told:
                report.wrong.append(f"{told} records were committed, {len(held[-1]) - len(held[-2])} are there")
        if len(held) > 1:
            break
    final = stage.records(id)
    report.kills = dict(Counter(where(records, notes) for records, notes in zip(held[1:], seen, strict=False)))
    report.calls = sum(what == "start" for notes in seen for what, _, _ in notes)
    report.repeated = report.calls - sum(what == "start" for what, _, _ in stage.notes(calm))
    report.records = len(final)
    report.wrong += [*differences(stage.end(calm), stage.end(id)), *journal_faults(held, final, stage.records(calm)),
                     *run_again(held, seen), *program_faults(case.program, stage.end(calm))]
    return report


def where(records: list[Record], notes: list[Noted]) -> str:
    """Return where a run stood when it was killed, after what is recorded, and what its nodes noted last."""
    committed = {key for key, _ in ends(records)}
    started = {(node, visit) for what, node, visit in notes if what == "start"}
    ended = {(node, visit) for what, node, visit in notes if what == "end"}
    if not records:
        return "before the first record"
    if started - ended:
        return "while a node ran"
    if ended - committed:
        return "between a node's end and its commit"
    return "while no node ran"


# ---------------------------------------------------------------------------------------------------------------
# judging it
# ---------------------------------------------------------------------------------------------------------------


def ends(records: list[Record]) -> Iterator[tuple[Key, str]]:
    """Yield each visit that the records say has ended, and how."""
    for record in records:
        if "node" in record:
            yield (record["node"], record["visit"]), json.dumps(record.get("error", record.get("writes")))


def differences(calm: Outcome, end: Outcome) -> list[str]:
    """Return in what a run ended differently from the undisturbed one."""
    if "raised" in end:
        return [f"it raised {end['raised']}"]
    return [f"{what} is {str(end.get(what))[:300]}, undisturbed {str(calm.get(what))[:300]}"
            for what in sorted(calm.keys() | end.keys()) if calm.get(what) != end.get(what)]


def program_faults(program: Program, calm: Outcome) -> list[str]:
    """Return in what the undisturbed run did not do what the program says."""
    if "raised" in calm:
        return [calm["raised"]]
    told = interpret(program)
    want = {"status": told.status, "visits": {name: n for name, n in told.visits.items() if n},
            "errors": sorted(told.errors)}
    did = {"status": calm["status"], "visits": calm["visits"], "errors": sorted(calm["errors"])}
    return [f"undisturbed, {what} is {did[what]}, the program says {want[what]}" for what in want
            if want[what] != did[what]]


def run_again(held: list[list[Record]], seen: list[list[Noted]]) -> list[str]:
    """Return the calls of nodes that were made though their end was committed, or twice in one process."""
    found = []
    for records, notes in zip(held, seen, strict=True):
        committed = {key for key, _ in ends(records)}
        calls = Counter((node, visit) for what, node, visit in notes if what == "start")
        found += [f"{node}, visit {visit}, ran again though its end was committed" for node, visit in calls
                  if (node, visit) in committed]
        found += [f"{node}, visit {visit}, ran {n} times in one process" for (node, visit), n in calls.items() if n > 1]
    return found


def journal_faults(held: list[list[Record]], final: list[Record], calm: list[Record]) -> list[str]:
    """Return what is wrong with the records: some lost or changed after a kill, some there twice, others than calm."""
    found = []
    for before, after in zip(held, [*held[1:], final], strict=True):
        if after[: len(before)] != before:
            found.append(f"of {len(before)} committed records not all are left as they were")
    twice = [key for key, n in Counter(key for key, _ in ends(final)).items() if n > 1]
    found += [f"{node}, visit {visit}, is recorded twice" for node, visit in twice]
    lines = [sorted(json.dumps({key: value for key, value in record.items() if key != "wave"}) for record in records)
             for records in (final, calm)]
    if lines[0] != lines[1]:
        odd = [line[:200] for line in {*lines[0]} ^ {*lines[1]}][:4]
        found.append(f"{len(final)} records, undisturbed {len(calm)}; only in one of the two: {odd}")
    return found


# ---------------------------------------------------------------------------------------------------------------
# the whole storm
# ---------------------------------------------------------------------------------------------------------------


def storms(numbers: Sequence[int], from_seed: int, jobs: int, folder: Path) -> list[Report]:
    """Return the reports of these cases, of which so many run at a time."""
    blocks = sorted({number // BLOCK for number in numbers})

    def work(job: int) -> None:
        with open(folder / f"reports.{job}", "w", encoding="utf-8") as out:
            for block in blocks[job::jobs]:
                for number, case in enumerate(drawn(block, from_seed), block * BLOCK):
                    if number in numbers:
                        print(json.dumps(vars(tried(case, number, from_seed, folder))), file=out, flush=True)

    workers = []
    for job in range(jobs):
        workers.append(os.fork())
        if workers[-1] == 0:
            try:
                work(job)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
    for worker in workers:
        os.waitpid(worker, 0)
    lines = [line for job in range(jobs) for line in (folder / f"reports.{job}").read_text().splitlines()]
    return sorted((Report(**json.loads(line)) for line in lines), key=lambda report: report.number)


def tried(case: Case, number: int, from_seed: int, folder: Path) -> Report:
    """Return the report of a case; what is wrong with this script is told there too."""
    try:
        return storm(case, number, Stage(folder), random.Random(f"{from_seed} {number}"))
    except Exception:
        return Report(number, [], wrong=[traceback.format_exc()])


def summary(reports: list[Report], seconds: float) -> str:
    kills = sum((Counter(report.kills) for report in reports), Counter())  # type: Counter[str]
    features = Counter(feature for report in reports for feature in report.features)
    again = sum(report.repeated for report in reports)
    broken = [report for report in reports if report.wrong]
    lines = [f"{len(reports)} runs, of which with " + ", ".join(f"{word} {n}" for word, n in features.most_common()),
             f"{sum(kills.values())} kills: " + ", ".join(f"{place} {n}" for place, n in kills.most_common()),
             f"{sum(report.calls for report in reports)} calls of nodes, {again} of them made again because the kill "
             f"came before their commit; {sum(report.records for report in reports)} records",
             *(f"run {report.number}: {wrong}" for report in broken for wrong in report.wrong),
             f"{len(broken)} runs went wrong" if broken else
             "every run ended as the undisturbed one, and no node ran again whose end was committed",
             f"{seconds:.0f} s"]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="runs killed at random instants end as if nothing had been")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--only", type=int, help="the number of one run, which is shown")
    options = parser.parse_args(arguments)
    begun, numbers = time.perf_counter(), range(options.runs) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        reports = storms(numbers, options.seed, options.jobs, Path(folder))
        if options.only is not None:
            show(drawn(options.only // BLOCK, options.seed)[options.only % BLOCK], Stage(Path(folder)))
    print(summary(reports, time.perf_counter() - begun))
    return 1 if len(reports) < len(numbers) or any(report.wrong or not report.kills for report in reports) else 0


def show(case: Case, stage: Stage) -> None:
    print(case, case.graph(print, 0).to_text(), sep="\n\n")
    for row in stage.store.list():
        print(f"\n{row.id}: {row.status}", stage.store.history(row.id), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
