"""The same morning as an agent loop: the model decides what to look at, one call after another, and when to stop.

    state, trace = run()                # in virtual time, on the files in data/
    print(trace)                        # five calls: the model, three tool calls one by one, the model
    state["read"], state["not_read"]    # ['github_read', 'list_events'], ['web_search', 'memory_search']

It was offered four tools, and nothing failed: it had enough, and stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date as Date
from functools import partial, wraps
from typing import Any, Literal

from ..engine import END, START, Graph, GraphState
from ..loop import Tool, run_loop
from ..models.base import Message, Model, Reply, ToolCall
from ..models.stub import ScriptedModel
from ..trace import Trace
from . import sources
from .digest import TITLES, as_paragraphs, as_text, briefing, on_one_line, spelled_out
from .gather import INSTRUCTIONS, Scan, When, Where, Write, day_for, default_scans
from .measured import ahead, call_seconds, on_clock, taking

READS = {"github_read": "github", "list_events": "calendar", "web_search": "web", "memory_search": "memory"}


# ---- the wiring


def brief(scans: Mapping[str, Scan], model: Model, write: Write, date: str,
          observer: Callable[[str, dict[str, Any]], None] | None = None,
          pace: Mapping[str, Iterable[float]] | None = None) -> dict[str, Any]:
    """{date, synthesis, read, not_read, digest}: the loop's last words, the tools it used and left, and its file.

    The scans are the ones a gather has, offered as tools. pace: tool -> how many seconds each call of it takes.
    """
    tools = tools_over(scans, date, pace or {})
    day = Date.fromisoformat(date)
    loop = run_loop(model, tools, f"Today is {spelled_out(day)}. Brief me.", observer=observer, system=INSTRUCTIONS,
                    name="brief", max_workers=1)  # as the loop that was measured: one tool after another
    read = list(dict.fromkeys(call.name for call in loop.tool_calls))
    left = [tool.name for tool in tools if tool.name not in read]
    looked = f"*Looked at: {', '.join(read) or 'nothing'}. Not looked at: {', '.join(left) or 'nothing'}.*"
    text = "\n\n".join([f"# {spelled_out(day)}", as_paragraphs(loop.text), "---", looked]) + "\n"
    return {"date": date, "synthesis": loop.text, "read": read, "not_read": left,
            "digest": str(write(f"brief-{date}.md", text))}


def shape() -> Graph:
    """The loop as a graph would be drawn: the model names a tool or is done, and every tool leads back to it."""
    graph = Graph("brief")
    graph.add_node("model", _nothing, kind="agent", max_visits=10)
    for tool in READS:
        graph.add_node(tool, _nothing, kind="tool").add_router(tool, _nothing, {"result": "model"})
    graph.add_edge(START, "model")
    return graph.add_router("model", _nothing, {**{tool: tool for tool in READS}, "done": END})


def as_run(trace: Trace) -> GraphState:
    """A loop's trace as the run of that graph: how often each tool was called, and the model."""
    run = GraphState()
    run.path = ["model" if call.kind == "llm" else call.name for call in trace.calls()]
    run.visits = dict(Counter(run.path))
    return run


def _nothing(state: Any) -> None:
    """What the nodes of `shape` do: it is there to be drawn."""


def tools_over(scans: Mapping[str, Scan], date: str, pace: Mapping[str, Iterable[float]]) -> list[Tool]:
    """The four sources as tools; what they return is text, in the form in which a gather puts it to its model."""

    def github_read(kind: Literal["pulls", "issues"]) -> str:
        """The open pull requests, or the open issues."""
        return as_text({"github": [item for item in scans["github"](date) if f"{item['kind']}s" == kind]}, {})

    def list_events() -> str:
        """What is on the calendar today."""
        return as_text({"calendar": scans["calendar"](date)}, {})

    def web_search() -> str:
        """What the saved web searches found."""
        return as_text({"web": scans["web"](date)}, {})

    def memory_search() -> str:
        """Notes on what today is about."""
        return as_text({"memory": scans["memory"](date)}, {})

    found = (github_read, list_events, web_search, memory_search)
    return [Tool(fn.__name__, paced(fn, pace.get(fn.__name__, ()))) for fn in found]


def paced(fn: Callable[..., str], seconds: Iterable[float]) -> Callable[..., str]:
    """`fn`, whose first call takes the first of `seconds`, and so on; later calls take no time of their own."""
    times = iter(seconds)

    @wraps(fn)  # a tool's schema is read from its signature
    def call(*args: Any, **kwargs: Any) -> Any:
        return taking(next(times, 0.0), fn)(*args, **kwargs)

    return call


# ---- with the sources, the clock and the outbox of this machine


def run(date: When = None, calendar: Where = None, github: Where = None, memory: Where = None, web: Where = None,
        outbox: sources.PathLike = "outbox", *, query: str | None = None, model: Model | None = None,
        measured: bool = True, speed: float | None = None,
        trace: Trace | None = None) -> tuple[dict[str, Any], Trace]:
    """(what `brief` returns, the trace of the loop): the loop run on the files that gather's `run` reads.

    The arguments are those of gather's `run`. The scripted model takes the times in data/measured/; how they split
    between the model and the tools is an assumption. A model that fails is a ModelError: there is no brief then.
    """
    day = day_for(date, calendar)
    scans = default_scans(calendar, github, memory, web, query)
    if measured and speed is not None:
        scans = {source: ahead(scan, day.isoformat()) for source, scan in scans.items()}
    calls = call_seconds("brief") if measured else []
    pace = {tool: [seconds for name, seconds in calls if name == tool] for tool in READS}
    trace = Trace() if trace is None else trace
    sources.warm_up()
    with on_clock(1.0 if speed is None and not measured else speed):
        state = brief(scans, model or stub_model([seconds for name, seconds in calls if name == "model"] or 0.0),
                      partial(sources.write_outbox, outbox), day.isoformat(), trace, pace)
    return state, trace


def stub_model(seconds: float | Sequence[float] = 0.0) -> ScriptedModel:
    """A stand-in for a model that looks at GitHub twice and at the calendar, and then has enough."""
    return ScriptedModel(decide, seconds, name="stub")


def decide(messages: Sequence[Message], _: Any = None) -> Reply:
    """The reply of the stub model: three tool calls at first, and then what their results hold."""
    results = [message.content for message in messages if message.role == "tool"]
    if not results:
        return Reply("", (ToolCall("1", "github_read", {"kind": "pulls"}),
                          ToolCall("2", "github_read", {"kind": "issues"}),
                          ToolCall("3", "list_events", {})))
    return Reply(briefing("\n".join(map(_or_unavailable, results))))


def _or_unavailable(result: str) -> str:
    """A tool's result; if the tool failed, the line that says so of its source."""
    if not result.startswith("error: "):
        return result
    tool, _, reason = result.removeprefix("error: ").partition(" raised ")
    title = TITLES.get(READS.get(tool, ""), tool)
    return f"{title}: unavailable, {on_one_line(reason.removeprefix('SourceError: '))}"
