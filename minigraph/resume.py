"""To resume is to run once more on what the journal says, and to go on where it ends.

    state = run_graph(graph, {"topic": "tea"})      # state.status: 'paused'; state.waiting: {'approve': 'Send it?'}
    resume_graph(graph, state.journal, {"approve": "yes"})

The scheduler is the one of engine.py, with recorded outcomes in the place of calls: the same tickets fall in the same
order, so whatever was under way is under way again. Answers and edits are lines of the script like the recorded ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from . import clock as clocks
from .engine import Observer, Run, Settings, ends_of
from .journal import Log, Paused, Record, Script, Sink, check_records, unplain
from .past import Recorded, Visit
from .shape import Graph, GraphError
from .state import GraphState, update


def resume_graph(graph: Graph, records: Sequence[Record], answers: Mapping[str, Any] | None = None, *,
                 edits: Mapping[str, Any] | None = None, force: bool = False, journal: Sink | None = None,
                 observer: Observer | None = None, max_steps: int | None = None, executor: Executor | None = None,
                 max_workers: int | None = None, clock: clocks.Clock | None = None,
                 strict: bool = False) -> GraphState:
    """Returns the blackboard as the run left it that `records` tell of, gone on with from where they end.

    records: what a journal took, `.journal` of a result for instance, or the first so many of them: any earlier moment.
    answers: gate -> answer, for any of the gates in `.waiting`. edits: keys of the blackboard to change first.
    No node that the records say has ended runs again. journal(record) takes what comes after `records`. force uses
    what still fits of the records of a graph that has changed. Everything else is as in run_graph.

    GraphError: these records belong to another graph, or nobody waits for such an answer; nothing ran.
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"resume_graph(graph, records): the graph comes first, and {graph!r} is no Graph")
    for name, given in (("answers", answers), ("edits", edits)):
        if given is not None and not isinstance(given, Mapping):
            raise GraphError(f"{name}={given!r} must be a dict, as in {name}={{'name': 'value'}}")
    first = check_records(records, graph.plan().describe(), force)
    script = Script(records[1:], answers or {}, edits or {}, graph.nodes, force)
    settings = Settings(observer, max_steps, first["schedule"], executor, max_workers, clock, strict)
    return Resumed(graph, first["state"], settings, Log(journal, records), script).go()


class Resumed(Run):
    """A run that plays a script to its end, unheard, and then goes on without one."""

    def __init__(self, graph: Graph, state: Mapping[str, Any], settings: Settings, log: Log, script: Script,
                 prefix: str = "", start: float | None = None) -> None:
        super().__init__(graph, state, settings, log, prefix, start)
        self.script = script
        self.live = self.over = self.observed = False  # live: calls are made, and heard; over: no line is left
        self.known: dict[int, Visit] = {}  # under "ready": line -> the visit whose end it tells
        self.later: list[Visit] = []  # visits whose end is not told: they are called once the run is live
        self.recalled: list[Visit] = []  # those of this wave whose end is told

    def turn(self) -> None:
        super().turn()
        if not self.tripped:
            self.go_on()
            self.check_inner(())

    def ready(self) -> list[str]:
        """As ever; but first come the edits and the answers whose turn it is."""
        if not self.over:
            self.edit()
            while self.answer():
                self.edit()
            if self.script.at == len(self.script.lines) and not self.known:
                self.over = True
                self.go_on()
        return super().ready()

    def leave(self, visit: Visit) -> None:
        """As ever; an edit lies between what was merged and what the routers are asked."""
        if not self.over:
            self.edit()
        super().leave(visit)

    def wave(self, ready: list[str]) -> list[Visit]:
        """As ever, but for the visits whose end the script tells; those of which it does not are called after it."""
        started, refused = self.begin(ready)
        begun = self.later + [visit for visit in started if not self.answered(visit)]
        if self.waves:
            next_line = self.script.next("node")
            self.wave_number += bool(started) or self.live and bool(begun) or next_line is not None and not ready
            told = [(n, visit) for visit in begun if (n := self.script.line("node", visit)) is not None
                    and self.script.lines[n].get("wave") == self.wave_number]
        else:
            self.known.update((n, visit) for visit in begun if (n := self.script.line("node", visit)) is not None)
            told = sorted(self.known.items())[:1]  # one by one, in the order in which they ended
            self.known.pop(told[0][0] if told else -1, None)
        self.recalled = [self.recall(number, visit) for number, visit in told]
        self.later = [visit for visit in begun if visit not in self.recalled and visit not in self.known.values()]
        going = bool(ready or self.recalled)  # if not, no line fits any more
        if self.known or going and (not self.later or self.script.at < self.script.new or self.awaited()):
            return self.recalled + refused
        self.go_on()
        calls, self.later = self.later, []
        return self.recalled + refused + self.make(calls)

    def make(self, visits: list[Visit]) -> list[Visit]:
        self.check_inner(self.running)
        return super().make(visits)

    def awaited(self) -> bool:
        """Is an answer here for somebody who has not asked yet? Then the run had come further than the lines tell."""
        gates = [line["gate"] for line in self.script.lines[self.script.new:] if "gate" in line]
        return not self.live and not (self.asking.keys() >= set(gates) and
                                      self.running.keys() >= self.script.answers.keys())

    def trip(self, ready: list[str]) -> None:
        """As ever; a limit below what has run already is not meant."""
        if self.script.at < self.script.new:
            raise GraphError(f"max_steps={self.max_steps} is less than the node runs that the records tell of: "
                             "pass a higher max_steps= to resume this run")
        super().trip(ready)

    def recall(self, number: int, visit: Visit) -> Visit:
        """The visit, as the line tells it."""
        line = self.script.play(number)
        visit.writes = line.get("writes")
        if "error" in line:
            visit.error = Recorded(line["error"])
        return visit

    def route(self, visit: Visit) -> None:
        """As ever, but for a route that the script tells."""
        number = self.script.line("router", visit)
        if number is None:
            super().route(visit)
            return
        line = self.script.play(number)
        if "error" in line:
            self.fail(visit, Recorded(line["error"]))
        else:
            self.send_on(visit, ends_of(line["label"], self.routers[visit.node][1], visit.node))

    def part(self, name: str, visit: Visit, graph: Graph, state: Mapping[str, Any], settings: Settings) -> Run:
        """A run inside a visit: it plays the lines that tell of it."""
        script = self.script.part(name, visit.node, graph.nodes)
        if script is None:
            return super().part(name, visit, graph, state, settings)
        return Resumed(graph, state, settings, self.log, script, f"{self.prefix}{name}/", self.start)

    def go_on(self) -> None:
        """From here on calls are made, heard and written down."""
        if self.live:
            return
        lost = next(self.script.left(), None)
        if lost is not None and not self.script.force:
            raise GraphError(f"these records do not fit together, for {lost!r} is never reached: pass them whole, or "
                             "the first so many of them; force=True leaves out what does not fit")
        for line in self.script.lines[self.script.new:]:
            self.check(line)
        self.live, self.observed = True, self.observer is not None
        self.tell_live()

    def begin_to_tell(self) -> None:
        """Told when the run is live, and what the blackboard holds is known."""

    def tell_live(self) -> None:
        sink, state = self.log.sink, {key: value for key, value in self.state.items() if key != "errors"}
        for visit in self.recalled:
            state.update(visit.writes or {})
        names = {"run": getattr(sink, "id", None), "origin": getattr(sink, "origin", None)}
        self.tell_start(state, resumed=len(self.log.entries), **{k: v for k, v in names.items() if v})

    def tell_end(self, status: str) -> None:
        if not self.live:
            self.tell_live()
        super().tell_end(status)

    # ---- edits and answers

    def edit(self) -> None:
        """Makes the edits whose turn it is: a key then has the new value as if the run had begun with it."""
        while (number := self.script.next("edit")) is not None and not self.known:
            if number >= self.script.new:
                if self.awaited():
                    return  # an answer comes with it, and its gate has not asked yet
                self.go_on()
            edit = self.script.play(number)["edit"]
            for key, value in edit.items():
                self.begun_with[key] = value
                self.writer.pop(key, None)
                self.written.pop(key, None)
            dict.update(self.state, edit)
            if number >= self.script.new:
                self.log.add(self.prefix, {"edit": edit})

    def answered(self, visit: Visit) -> bool:
        """True if a line answers this visit of a gate: until its turn comes, the gate waits."""
        if self.over or self.script.line("gate", visit) is None or self.nodes[visit.node].gate() is None:
            return False
        visit.error = Paused({"": ""})
        self.asking[visit.node] = visit
        return True

    def answer(self) -> bool:
        """Plays the answer whose turn it is, once its gate waits; with new ones, once all their gates do."""
        number = self.script.next("gate")
        if number is None or self.script.lines[number]["gate"] not in self.asking:
            return False
        new = number >= self.script.new
        if new and not self.live:
            if self.awaited():
                return False
            self.go_on()
        line = self.script.play(number)
        visit = self.asking[line["gate"]]
        if new and self.observed:
            self.started(visit)
        del self.asking[visit.node]
        visit.error, visit.writes = None, update(self.nodes[visit.node].gate().accept(line["answer"]))
        if new:
            self.log.add(self.prefix, {**line, "visit": visit.count})
        if new and self.observed:
            visit.began = visit.ended = self.clock.now()
            self.ended(visit)
        self.merge(visit)
        self.leave(visit)
        return True

    def check(self, line: Record) -> None:
        """Raises GraphError for an edit or an answer that cannot be made."""
        if "edit" in line:
            try:
                wrong = unplain(update(line["edit"]) or {})
            except (TypeError, ValueError) as error:
                wrong = str(error)
            if wrong:
                raise GraphError(f"edits={line['edit']!r}: {wrong}")
            return
        name, answer = line["gate"], line["answer"]
        if name not in self.asking:
            raise self.nobody(name)
        try:
            self.nodes[name].gate().accept(answer)
        except (TypeError, ValueError) as error:
            raise GraphError(f"the answer {answer!r} to gate {self.as_asked(name)!r}: {error}; "
                             "the gate still waits") from None
        if wrong := unplain({self.as_asked(name): answer}):
            raise GraphError(f"the answer to gate {wrong}")

    def check_inner(self, nodes: Collection[str]) -> None:
        """Raises GraphError for an answer to a gate inside a node that is none of these."""
        for outer, answers in self.script.answers.items():
            if outer not in nodes:
                raise self.nobody(f"{outer}/{next(iter(answers))}")

    def nobody(self, name: str) -> GraphError:
        maybe = [self.nodes[name] for name in self.running if name not in self.asking]
        names = [*self.asking, *(node.name for node in maybe if node.gate()),
                 *(f"{node.name}/..." for node in maybe if node.inner() or node.kind == "map")]
        waiting = ", ".join(repr(self.as_asked(name)) for name in names)
        return GraphError(f"no gate {self.as_asked(name)!r} waits for an answer; "
                          + (f"waiting: {waiting}" if waiting else "none does"))

    def as_asked(self, name: str) -> str:
        """A gate as its question and its answer name it: "outer/ask"."""
        return re.sub(r"#\d+(\.\d+)?/", "/", self.prefix) + name
