"""A reel takes the events of a run, in the order they come in, and makes frames: what is known at one moment.

    reel = Reel(graph.describe())
    run_graph(graph, {}, reel)          # a reel is an observer
    print(reel.frame().text)            # gather: ✓ done · 13.170 s ... and every node, card and key

Under "waves" what a wave wrote is on the blackboard, and its tickets on their way, when the wave is over, not before.
An event of a graph inside a node has a `node` that is none of the run's own, and moves the card of the node it is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from reprlib import Repr
from typing import Any

from .engine import START
from .moment import Card, Frame, NodeNow, Value, counted
from .panel import CARDS, Panel
from .sheet import EdgeMark, sheet
from .words import duration, shown

__all__ = ["Card", "Frame", "NodeNow", "Reel", "Value", "short"]

ROW = 4  # without waves, what is over keeps its card as long as there are not more
ROWS = 12  # keys of the blackboard that are shown at once
UNREAD = "(not recorded)"
AT_BARRIER = "at the barrier"

# ---- from events to frames


@dataclass(eq=False)
class _Call:
    """One visit, as its card will show it: it changes as long as it lasts."""

    node: str
    visit: int = 0
    state: str = "queued"
    begun: float | None = None  # while it runs
    seconds: float = 0.0
    ended: float = 0.0
    note: str = ""
    words: str = ""
    keys: tuple[str, ...] = ()

    def so_far(self, now: float) -> float:
        return self.seconds if self.begun is None else max(0.0, now - self.begun)


@dataclass
class _Inside:
    """How far what runs inside a node has come."""

    names: frozenset[str] = frozenset()  # the nodes of its graph; a map's items are known when they begin
    begun: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    calls: int = 0  # of models and tools
    attempts: int = 1
    asks: dict[str, str] = field(default_factory=dict)  # gate -> its question, as long as nobody has answered

    def __str__(self) -> str:
        count = len(self.names) or len(self.begun)
        parts = [f"{len(self.done)} of {count} done"] if count else []
        parts += [f"{self.calls} call{'' if self.calls == 1 else 's'}"] if self.calls and not count else []
        return " · ".join([*parts, *([f"attempt {self.attempts}"] if self.attempts > 1 else [])])


class Reel:
    """Takes the events of one run, one at a time and in order, and makes frames. An observer, as a Trace is.

    `description` is what graph.describe() says; `state` the blackboard to begin with, if it is known already. Reels of
    one graph can share a panel, so that its picture is laid out once.
    """

    def __init__(self, description: Mapping[str, Any], state: Mapping[str, Any] | None = None, *,
                 panel: Panel | None = None) -> None:
        self.name, self.panel = str(description["name"]), panel or Panel(description)
        self.kinds = {node["name"]: node["kind"] for node in description["nodes"]}
        self.order = {name: place for place, name in enumerate(self.kinds)}
        self.ways: dict[str, list[EdgeMark]] = {}  # node -> the marks of the edges out of it
        for edge in sheet(description, nested=False).edges:
            self.ways.setdefault(edge.src, []).append(edge)
        self.heard = {
            "graph_start": self.hear_graph_start, "graph_end": self.hear_graph_end, "wave_start": self.hear_wave_start,
            "wave_end": self.hear_wave_end, "node_start": self.hear_node_start, "node_end": self.hear_node_end,
            "refused": self.hear_refused, "blocked": self.hear_blocked, "pause": self.hear_pause,
            "route": self.hear_route}
        self.notice = ""
        self.clear(state or {})

    def clear(self, state: Mapping[str, Any]) -> None:
        """Nothing has happened yet, and this is on the blackboard."""
        self.nodes = {name: NodeNow(name, kind) for name, kind in self.kinds.items()}
        self.edges: dict[tuple[str, str, str], int] = {}
        self.status, self.error, self.t = "not begun", None, 0.0  # type: str, str | None, float
        self.wave: int | None = None
        self.waves = self.in_wave = False  # are there waves? is one under way?
        self.open = False  # do new cards join those in the row?
        self.row: list[_Call] = []
        self.calls: dict[str, _Call] = {}  # node -> its visit that is under way
        self.inside: dict[str, _Inside] = {}
        self.refused: set[str] = set()
        self.pending: list[tuple[_Call, Mapping[str, Any], str | None]] = []  # what the wave wrote, until it is over
        self.errors: dict[str, str] = {}
        self.unsaid = False  # are there errors that the blackboard does not hold yet?
        self.board: dict[str, Value] = {}
        self.fresh: dict[str, str | None] = {}
        self.rows: list[str] = []
        self.written: dict[str, None] = {}  # the same keys, in the order of their last writing
        self.put_up(state)
        self.earlier = dict(self.board)  # before the last writes

    def __call__(self, kind: str, event: Mapping[str, Any]) -> None:
        self.t = max(self.t, event.get("t", 0.0))
        if self.fresh:
            self.fresh = {}
        node = event.get("node")
        if node is None or node in self.nodes and kind in OF_A_NODE:
            if kind in self.heard:
                self.heard[kind](event)
        else:
            self.hear_inside(kind, str(node), event)

    def frame(self, now: float | None = None) -> Frame:
        """The frame of this moment: at the last event, or at `now`, seconds since the start, in between."""
        running = self.status == "running"
        now = self.t if now is None or not running else max(now, self.t)
        nodes = dict(self.nodes)
        for name, call in self.calls.items():
            if call.begun is not None:
                nodes[name] = replace(nodes[name], seconds=call.so_far(now), inside=str(self.inside.get(name, "")))
        slowest = max((call.so_far(now) for call in self.row), default=0.0)
        cards = tuple(self.card(call, call.so_far(now), slowest) for call in self.row[:CARDS])
        rest = self.row[CARDS:]
        more = f"and {len(rest)} more: {counted(call.state for call in rest)}" if rest else ""
        return Frame(self.name, self.status, now, self.wave, nodes, dict(self.edges), cards, more, dict(self.board),
                     dict(self.fresh), tuple(self.rows), self.error, self.notice, self.panel)

    def card(self, call: _Call, seconds: float, slowest: float) -> Card:
        inside = str(self.inside.get(call.node, "")) if call.begun is not None else ""
        return Card(call.node, call.visit, call.state, seconds, seconds / slowest if slowest else 0.0, call.note,
                    call.keys, call.words, inside, call.note.startswith(("waited", AT_BARRIER)))

    # ---- the run as a whole

    def hear_graph_start(self, event: Mapping[str, Any]) -> None:
        state, before = event.get("state") or {}, self.t
        if event.get("resumed") and self.status != "not begun":
            self.go_on(state)
        else:
            self.clear(state)
            for edge in self.ways.get(START, ()):
                self.count(edge)
        self.status, self.error, self.waves, self.t = "running", None, event.get("schedule") == "waves", before

    def go_on(self, state: Mapping[str, Any]) -> None:
        """The same run is resumed: what was heard of it still holds, but for what was edited."""
        for name, node in self.nodes.items():
            if node.state in ("not run", "interrupted"):
                self.change(name, state="idle")
        self.put_up({key: value for key, value in state.items()
                     if key not in self.board or self.board[key].text != short(value)})

    def hear_graph_end(self, event: Mapping[str, Any]) -> None:
        self.status, self.error = event["status"], event.get("error")
        if self.error is not None and self.error.startswith("StateCollision: "):
            self.board, self.fresh = self.earlier, {}  # nothing of that write was merged
            self.rows = [key for key in self.rows if key in self.board]
            self.written = {key: None for key in self.written if key in self.board}
        for call in self.calls.values():  # they have not ended, and will not in this run
            asks = self.inside[call.node].asks if call.node in self.inside else {}
            call.seconds, call.begun, call.state = call.so_far(self.t), None, "waiting" if asks else "interrupted"
            call.words = "; ".join(f"{gate}: {question}" for gate, question in asks.items())
            self.change(call.node, state=call.state, words=call.words,
                        seconds=self.nodes[call.node].seconds + call.seconds)
        self.calls, self.pending, self.in_wave, self.open = {}, [], False, False
        self.conclude("skipped" if self.status in ("done", "failed") else "not run", Counter(event.get("path", ())))

    def conclude(self, never: str, path: Counter[str]) -> None:
        """What has not happened by now never will; what a resumed run had done before, it tells in its path alone."""
        for name, node in self.nodes.items():
            if node.state in ("idle", "queued"):
                self.change(name, state="done" if path[name] else never, visits=path[name])
        for call in self.row:
            call.state = never if call.state == "queued" else call.state
            call.note = "not merged" if call.note == AT_BARRIER else call.note  # its wave was never over

    # ---- waves

    def hear_wave_start(self, event: Mapping[str, Any]) -> None:
        self.wave, self.in_wave = event["wave"], True
        self.new_row()
        for name in event["nodes"]:
            self.row.append(_Call(name))
            self.change(name, state="queued")

    def hear_wave_end(self, event: Mapping[str, Any]) -> None:
        waits = event["waits"]
        pace = min(waits, key=waits.__getitem__) if len(waits) > 1 else None
        for call in self.row:
            if call.node == pace:
                call.note = "set the pace"
            elif waits.get(call.node, 0) >= 0.5:
                call.note = f"waited {_about(waits[call.node] / 1000)} at the barrier"
            else:
                call.note = ""
        self.in_wave = self.open = False
        self.settle()

    def new_row(self) -> None:
        if not self.open:
            self.row, self.open = [], True

    # ---- nodes

    def hear_node_start(self, event: Mapping[str, Any]) -> None:
        name = event["node"]
        call = next((call for call in self.row if call.node == name and call.state == "queued"), None) or self.add(name)
        call.visit, call.state, call.begun = event["visit"], "running", event["t"]
        self.calls[name] = call
        self.inside.pop(name, None)
        self.change(name, state="running", visits=event["visit"], words="")

    def hear_node_end(self, event: Mapping[str, Any]) -> None:
        name, error = event["node"], event["error"]
        call = self.calls.pop(name, None) or self.add(name, event["visit"])
        stopped = bool(error) and error.startswith("KeyboardInterrupt")
        call.seconds, call.begun, call.ended, call.keys = event["ms"] / 1000, None, event["t"], tuple(event["keys"])
        call.state = "interrupted" if stopped else "failed" if error else "done"
        call.words = "" if stopped or not error else error
        call.note = AT_BARRIER if self.waves and any(other.node in self.calls for other in self.row) else ""
        self.change(name, state=call.state, seconds=self.nodes[name].seconds + call.seconds, words=call.words,
                    visits=event["visit"], inside="")
        writes = event["writes"] if "writes" in event else dict.fromkeys(call.keys, _NOT_RECORDED)
        if not stopped:
            self.pending.append((call, writes or {}, error))
        if not self.in_wave:  # without waves; or a gate that was answered, at the beginning of a resumed run
            self.settle()

    def hear_refused(self, event: Mapping[str, Any]) -> None:
        name = event["node"]
        self.add(name, self.nodes[name].visits + 1, state="refused", words=event["why"])
        self.change(name, state="refused", words=event["why"])
        self.fail(name, event["why"], handled=name not in self.refused)  # into its on_error it is refused only once
        self.refused.add(name)
        self.note_errors()

    def hear_blocked(self, event: Mapping[str, Any]) -> None:
        self.change(event["node"], state="blocked", words=event["why"])

    def hear_pause(self, event: Mapping[str, Any]) -> None:
        name, question = event["node"], str(event["question"])
        call = self.calls.pop(name, None) or self.add(name)
        call.state, call.begun, call.words = "waiting", None, question
        self.change(name, state="waiting", words=question)

    def hear_route(self, event: Mapping[str, Any]) -> None:
        name, label = event["router"], event["label"]
        if event.get("error"):
            self.change(name, state="failed", words=event["error"])
            for call in self.row:
                if call.node == name:
                    call.state, call.words = "failed", event["error"]
            self.fail(name, event["error"])
            self.note_errors()
            return
        for one in label if isinstance(label, (list, tuple)) else [label]:
            for edge in self.ways.get(name, ()):
                if edge.kind == "router" and one in edge.labels:
                    self.count(edge)

    def hear_inside(self, kind: str, path: str, event: Mapping[str, Any]) -> None:
        """What happens inside a node moves that node's card: its graph, its map, its calls, its attempts."""
        name = path
        while name not in self.nodes and "/" in name:
            name = name.rpartition("/")[0]
        if name not in self.calls:
            return
        child, inside = path[len(name) + 1:], self.inside.setdefault(name, _Inside())
        if kind == "pause":
            inside.asks[child] = str(event["question"])
        elif kind == "node_end":
            inside.asks.pop(child, None)
        if kind == "graph_start" and not child:
            inside.names = frozenset(event["nodes"])
        elif kind in ("llm", "tool", "retry") and not child:
            inside.calls += kind != "retry"
            inside.attempts += kind == "retry"
        elif child in inside.names or not inside.names and child.isdecimal():
            if kind == "node_start":
                inside.begun.add(child)
            elif kind == "node_end":
                inside.done.add(child)

    # ---- what comes of it

    def add(self, name: str, visit: int = 1, **more: Any) -> _Call:
        """A new call in the row: at its end, or, without waves, in the place of what was over first."""
        if self.waves:
            self.new_row()
        call = _Call(name, visit, ended=self.t, **more)
        over = [other for other in self.row if other.node not in self.calls]
        if self.waves or not over or len(self.row) < ROW:
            self.row.append(call)
        else:
            self.row[self.row.index(min(over, key=lambda other: other.ended))] = call
        return call

    def change(self, name: str, **what: Any) -> None:
        self.nodes[name] = replace(self.nodes[name], **what)

    def settle(self) -> None:
        """What ended is merged, in the order of the graph, and its tickets go out."""
        self.earlier = dict(self.board)
        written: set[str] = set()
        for call, writes, error in sorted(self.pending, key=lambda ended: self.order[ended[0].node]):
            if written & writes.keys():  # a collision: the run ends here, and nothing of this is merged
                break
            written |= writes.keys()
            self.put_up(writes, call)
            if error is not None:
                self.fail(call.node, error)
        for call, _, error in self.pending:
            for edge in self.ways.get(call.node, ()) if error is None else ():
                if edge.kind == "static":
                    self.count(edge)
        self.pending = []
        self.note_errors()

    def put_up(self, writes: Mapping[str, Any], call: _Call | None = None) -> None:
        for key, value in writes.items():
            self.put(key, Value(short(value), call.node, call.visit) if call else Value(short(value)))

    def put(self, key: str, value: Value) -> None:
        before = self.board.get(key)
        if value.by is not None:
            self.fresh[key] = None if before is None else before.text
        self.board[key] = value
        new = key not in self.written
        self.written.pop(key, None)
        if new and len(self.rows) < ROWS:
            self.rows.append(key)
        elif new:  # it gets the place of the key that was written first
            oldest = next(iter(self.written))
            self.rows[self.rows.index(oldest)] = key
            del self.written[oldest]
        self.written[key] = None

    def fail(self, name: str, error: str, handled: bool = True) -> None:
        self.errors[name], self.unsaid = error, True
        for edge in self.ways.get(name, ()) if handled else ():
            if edge.kind == "on_error":
                self.count(edge)

    def note_errors(self) -> None:
        """The errors stand on the blackboard, too."""
        if self.unsaid:
            self.put("errors", Value(short(self.errors), "the engine"))
            self.unsaid = False

    def count(self, edge: EdgeMark) -> None:
        key = (edge.src, edge.dst, edge.kind)
        self.edges[key] = self.edges.get(key, 0) + 1


OF_A_NODE = frozenset(["node_start", "node_end", "refused", "blocked", "pause"])


def _about(seconds: float) -> str:
    return duration(seconds) if seconds < 1 else f"{seconds:.1f} s"


class _NotRecorded:
    def __repr__(self) -> str:
        return UNREAD


_NOT_RECORDED = _NotRecorded()
_short = Repr()
_short.maxstring = _short.maxother = 160
_short.maxdict = _short.maxlist = _short.maxtuple = _short.maxset = 8
_short.maxlevel = 4


def short(value: Any) -> str:
    """A value on one line, cut short where it is long, without looking at all of it."""
    return shown(_short.repr(value))
