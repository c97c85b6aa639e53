"""An agent loop calls the model, runs the tools it picks, and goes on until it stops or the cap is met.

    def add(a: int, b: int) -> int:
        "The sum of two numbers."
        return a + b

    result = run_loop(model, [add], "What is 2 + 3?")
    result.text, result.stopped_by, result.iterations       # ('5', 'end', 2)

A loop discovers what to do next; a graph knows it. `agent_node` makes a whole loop one step of a graph.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import clock
from .engine import Node, described, emit
from .models.base import Message, Model, Reply, Template, ToolCall, checked, name_of, render, well_formed
from .tools import Tool, ToolRegistry, together

__all__ = ["LoopResult", "Tool", "ToolRegistry", "agent_node", "run_loop"]

Send = Callable[[str, "dict[str, Any]"], None]  # emit, or what stands in for it: (kind, event)
Tools = ToolRegistry | Iterable[Tool | Callable[..., Any]]
log = logging.getLogger("minigraph")


# ---- the loop


@dataclass
class LoopResult:
    """How a loop ended: the last reply, the whole conversation, what was done on the way, and why it stopped.

    stopped_by: "end" (the model wanted nothing more), "max_iterations" (the cap was met while it wanted tools),
    "max_tokens" (its last reply was cut off), "refusal" (it would not answer) or "cancelled". iterations counts model
    calls, `calls` are the tool calls that were run, `undone` those that were not, and usage is that of all replies.
    """

    reply: Reply
    iterations: int
    calls: list[ToolCall]
    messages: list[Message]
    usage: dict[str, int]
    stopped_by: str
    undone: list[ToolCall] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The last words; after them, if the loop was stopped, why, and what was left undone."""
        undone = ", ".join(str(call.name) for call in self.undone)
        note = f"[stopped: {self.why}" + (f"; not run: {undone}]" if undone else "]")
        return "\n\n".join(filter(None, [self.reply.text, note if self.why else ""]))

    @property
    def why(self) -> str:
        """Why the loop was stopped, in words; "" if it came to its end."""
        words = {"max_iterations": f"max_iterations={self.iterations} reached", "max_tokens": "the reply was cut off",
                 "refusal": "the model refused", "cancelled": "it was cancelled"}
        return words.get(self.stopped_by, "")

    @property
    def stop_reason(self) -> str:
        """The same as stopped_by."""
        return self.stopped_by

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The same as calls."""
        return self.calls

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        called = ", ".join(str(call.name) for call in self.calls)
        return f"LoopResult({text!r}, stopped_by={self.stopped_by!r}, iterations={self.iterations}, calls=[{called}])"


def run_loop(model: Model, tools: Tools, messages: str | Sequence[Message], max_iterations: int = 10, *,
             observer: Send | None = None, system: str = "", name: str = "loop", max_workers: int = 16,
             cancelled: Callable[[], bool] | None = None) -> LoopResult:
    """What came of it: the model is called, and the tools it picks are run, until it picks none.

    `messages` is the user's text, or a conversation, which is not changed. max_iterations caps the model calls: if the
    last of them still wants tools, these are not run, for nobody would read what they return, and the text says
    what was left undone. A tool that fails is told to the model; a model that fails is a ModelError.

    The tools of one reply run together, at most `max_workers` at once, and their results go back in the order of the
    calls; with max_workers=1 they run one after another. A call that was made before, with the same arguments, is
    made again, and the model is told. cancelled(), if given, is asked before every call, of the model or of a tool:
    once it says True no other is made. What is under way is waited for.

    Every call is an event, `llm` or `tool`, sent when it ends: to the run's observer in a node of a graph, or else to
    `observer`, with `t` in seconds from the start of the loop, between `loop_start` and `loop_end`.
    """
    registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
    cancelled = cancelled or _never
    _check_call(max_iterations, max_workers, cancelled)
    result = LoopResult(Reply(""), 0, [], _opening(messages, system), {}, "")
    turns = Turns(registry, max_workers, cancelled)
    with _telling(observer, name) as (send, end):
        while not result.stopped_by and not cancelled():
            result.iterations = end["iterations"] = result.iterations + 1
            _ask(model, registry, result, send)
            result.stopped_by = _over(result.reply, result.iterations == max_iterations)
            if result.stopped_by:
                _leave_undone(result)
            else:
                turns.take(result, send)
        result.stopped_by = result.stopped_by or "cancelled"
        end["status"] = "done" if result.stopped_by == "end" else result.stopped_by
    return result


def _over(reply: Reply, last: bool) -> str:
    """Why the loop ends with this reply; "" if it goes on."""
    if reply.stop_reason in ("max_tokens", "refusal"):  # what it asks for may be half a call
        return reply.stop_reason
    if not reply.tool_calls:
        return "end"
    return "max_iterations" if last else ""


def _ask(model: Model, registry: ToolRegistry, result: LoopResult, send: Send) -> None:
    """One call of the model: its reply is added to the conversation, and its tokens to the usage."""
    with _reported(send, "llm", name=name_of(model), stop_reason=None, usage={}) as event:
        result.reply = reply = checked(model(list(result.messages), registry.specs() or None), model)
        event.update(stop_reason=reply.stop_reason, usage=reply.usage)
    result.messages.append(Message("assistant", reply.text, reply.tool_calls))
    for kind, tokens in reply.usage.items():
        result.usage[kind] = result.usage.get(kind, 0) + tokens


def _leave_undone(result: LoopResult) -> None:
    """Every call gets an answer, so that the conversation can be taken up again."""
    result.undone = list(result.reply.tool_calls)
    result.messages += [Message("tool", f"error: not run: {result.why}", tool_call_id=call.id)
                        for call in result.undone]


def _opening(messages: str | Sequence[Message], system: str) -> list[Message]:
    """The conversation to begin with: a new list."""
    talk = [Message("user", messages)] if isinstance(messages, str) else list(messages)
    if not talk or not all(isinstance(message, Message) for message in talk):
        raise TypeError(f"messages are the user's text, or a list of Message with at least one; got {messages!r}")
    return [Message("system", system), *talk] if system else talk


def _check_call(cap: Any, workers: Any, cancelled: Any) -> None:
    for name, value, why in (("max_iterations", cap, "it caps the model calls"),
                             ("max_workers", workers, "so many tools run at once")):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name}={value!r} must be a whole number from 1: {why}")
    if not callable(cancelled):
        raise TypeError(f"cancelled={cancelled!r} must be a function that says whether to stop, as event.is_set does")


def _never() -> bool:
    return False


# ---- the tools of one reply


@dataclass
class Use:
    """One call of a tool, and what came of it."""

    call: ToolCall
    times: int  # how often it has been called in this way, this time included
    text: str | None = None  # what the tool says; None as long as it was not run
    ms: float = 0.0
    grave: BaseException | None = None  # what is no failure of a tool: an interrupt, say


class Turns:
    """Runs the tools that replies ask for, and remembers what was asked for and what came of it."""

    def __init__(self, registry: ToolRegistry, max_workers: int, cancelled: Callable[[], bool]) -> None:
        self.registry, self.max_workers, self.cancelled = registry, max_workers, cancelled
        self.times: dict[str, int] = {}  # a call and its arguments -> how often
        self.latest: dict[str, str] = {}  # -> what it said the last time

    def take(self, result: LoopResult, send: Send) -> None:
        """Runs the tools of the last reply together, and adds what they say to the conversation, in its order."""
        uses = [self.planned(call) for call in result.reply.tool_calls]
        together([partial(self.use, use) for use in uses], self.max_workers, lambda use: _told(use, send))
        for use in uses:
            if use.text is None:
                result.stopped_by = "cancelled"
                result.undone.append(use.call)
            else:
                result.calls.append(use.call)
        result.messages += [Message("tool", self.answer(use, result), tool_call_id=use.call.id) for use in uses]

    def planned(self, call: ToolCall) -> Use:
        key = _key(call)
        self.times[key] = self.times.get(key, 0) + 1
        return Use(call, self.times[key])

    def use(self, use: Use) -> Use:
        """Makes the call, in whatever thread this is."""
        started = clock.now()
        try:
            if not self.cancelled():
                use.text = self.registry.execute(use.call)
        except BaseException as error:  # it may be another thread that has to hear of it
            use.grave = error
        use.ms = 1000 * (clock.now() - started)
        return use

    def answer(self, use: Use, result: LoopResult) -> str:
        """What the model reads: what the tool said, and whether it had asked for that before."""
        if use.text is None:
            return f"error: not run: {result.why}"
        key = _key(use.call)
        before, self.latest[key] = self.latest.get(key), use.text
        if before is None:
            return use.text
        news = "nothing new came of it" if before == use.text else "the result has changed"
        return f"{use.text}\n\n[call {use.times} of {use.call.name!r} with the same arguments: {news}]"


def _key(call: ToolCall) -> str:
    """The same for two calls that ask for the same."""
    try:
        return json.dumps([call.name, call.arguments], sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr([call.name, call.arguments])


def _told(use: Use, send: Send) -> None:
    """Sends the event of a call that was made; what was no failure of a tool is raised."""
    if use.grave is not None:
        error: str | None = described(use.grave)
    elif use.text is None:
        return
    else:
        error = use.text.removeprefix("error: ") if use.text.startswith("error: ") else None
    again = {"times": use.times} if use.times > 1 else {}
    send("tool", {"name": use.call.name, "arguments": use.call.arguments, "error": error, **again, "ms": use.ms})
    if use.grave is not None:
        raise use.grave


# ---- what is told of it


@contextmanager
def _reported(send: Send, kind: str, **event: Any) -> Iterator[dict[str, Any]]:
    """The event of a call, to be added to; it is sent when the call ends, with `ms` and how it failed."""
    started = clock.now()
    event["error"] = None
    try:
        yield event
    except BaseException as error:
        event["error"] = described(error)
        raise
    finally:
        send(kind, {**event, "ms": 1000 * (clock.now() - started)})


@contextmanager
def _telling(observer: Send | None, name: str) -> Iterator[tuple[Send, dict[str, Any]]]:
    """Where events go, and the event that ends the loop; without an observer `emit`, and nothing of the loop's own."""
    if observer is None:
        yield emit, {}
        return
    started = clock.now()

    def send(kind: str, event: dict[str, Any]) -> None:
        try:
            observer(kind, {"t": clock.now() - started, "workflow": name, **event})
        except Exception:
            log.exception("the observer raised on %r; the loop goes on", kind)

    send("loop_start", {})
    with _reported(send, "loop_end", status="failed", iterations=0) as end:
        try:
            yield send, end
        except KeyboardInterrupt:
            end["status"] = "interrupted"
            raise


# ---- a loop as one node


def agent_node(name: str, model: Model, tools: Tools, out_key: str, system: Template = "", max_iterations: int = 10,
               prompt: Template | None = None, *, max_workers: int = 16, cancelled: Callable[[], bool] | None = None,
               max_visits: int | None = None, on_error: str | None = None) -> Node:
    """A node that runs a whole loop, with a registry and a conversation of its own, and writes its text to `out_key`.

    `prompt`, what the user says, and `system` are templates with `{key}`, or functions of the blackboard; without a
    prompt the model is told all that is on the blackboard. Every visit begins a new conversation. max_workers and
    cancelled are those of run_loop.

    A loop that meets its cap is no failure: what it found out is kept, and the text ends in "[stopped: ...]", for
    people and models to read. Where half an answer is worse than none, let a router look for that.
    """
    own = tuple(tools.tools.values() if isinstance(tools, ToolRegistry) else tools)
    ToolRegistry(own)  # what is wrong with the tools is reported here, not in the middle of a run
    _check_call(max_iterations, max_workers, cancelled or _never)
    agent = RunAgent(model, own, out_key, well_formed(system), max_iterations, well_formed(prompt or all_of_it),
                     max_workers, cancelled)
    return Node(name, agent, "agent", max_visits, on_error)


@dataclass(frozen=True)
class RunAgent:
    """The function of an agent_node."""

    model: Model
    tools: tuple[Tool | Callable[..., Any], ...]
    out_key: str
    system: Template
    max_iterations: int
    prompt: Template
    max_workers: int = 16
    cancelled: Callable[[], bool] | None = None

    def __repr__(self) -> str:
        return f"<loop of {name_of(self.model)} with {ToolRegistry(self.tools)!r} -> {self.out_key}>"

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        system, prompt = render(self.system, state), render(self.prompt, state)
        result = run_loop(self.model, self.tools, prompt, self.max_iterations, system=system,
                          max_workers=self.max_workers, cancelled=self.cancelled)
        return {self.out_key: result.text}


def all_of_it(state: Mapping[str, Any]) -> str:
    """The blackboard as text, a line for each key."""
    return "\n".join(f"{key}: {state[key]}" for key in state if key != "errors")
