"""An agent loop calls the model, runs the tools it picks, and goes on until it stops or the cap is met.

    def add(a: int, b: int) -> int:
        "The sum of two numbers."
        return a + b

    result = run_loop(model, [add], "What is 2 + 3?")
    result.text, result.stop_reason, result.iterations      # ('5', 'end', 2)

A loop discovers what to do next; a graph knows it. `agent_node` makes a whole loop one step of a graph.
"""

from __future__ import annotations

import difflib
import inspect
import json
import logging
import re
import reprlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import clock
from .engine import Node, described, emit
from .models.base import Message, Model, Reply, Template, ToolCall, ToolSpec, checked, name_of, render, well_formed

__all__ = ["LoopResult", "Tool", "ToolRegistry", "agent_node", "run_loop"]

Send = Callable[[str, "dict[str, Any]"], None]  # emit, or what stands in for it: (kind, event)
log = logging.getLogger("minigraph")


# ---- the loop


@dataclass
class LoopResult:
    """How a loop ended: its last words, the whole conversation, why it stopped, and what was done on the way.

    stop_reason: "end" (the model wanted nothing more), "max_iterations" (the cap was met while it wanted tools) or
    "max_tokens" (its last reply was cut off). iterations counts model calls; tool_calls are the calls that were run.
    """

    text: str
    messages: list[Message]
    stop_reason: str
    iterations: int
    tool_calls: list[ToolCall] = field(default_factory=list)

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        called = ", ".join(call.name for call in self.tool_calls)
        return (f"LoopResult({text!r}, stop_reason={self.stop_reason!r}, iterations={self.iterations}, "
                f"tool_calls=[{called}])")


def run_loop(model: Model, tools: ToolRegistry | Iterable[Tool | Callable[..., Any]],
             messages: str | Sequence[Message], max_iterations: int = 10, *, observer: Send | None = None,
             system: str = "", name: str = "loop") -> LoopResult:
    """What came of it: the model is called, and the tools it picks are run in order, until it picks none.

    `messages` is the user's text, or a conversation, which is not changed. max_iterations caps the model calls: if the
    last of them still wants tools, these are not run, for nobody would read what they return, and the text says
    what was left undone. A tool that fails is told to the model; a model that fails is a ModelError.

    Every call is an event, `llm` or `tool`, sent when it ends: to the run's observer in a node of a graph, or else to
    `observer`, with `t` in seconds from the start of the loop, between `loop_start` and `loop_end`.
    """
    registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
    talk, called = _opening(messages, system), list[ToolCall]()
    _check_cap(max_iterations)
    with _telling(observer, name) as (send, end):
        for iteration in range(1, max_iterations + 1):
            end["iterations"] = iteration
            reply = _ask(model, talk, registry, send)
            talk.append(Message("assistant", reply.text, reply.tool_calls))
            if reply.stop_reason == "max_tokens" or not reply.tool_calls or iteration == max_iterations:
                break
            for call in reply.tool_calls:
                talk.append(_use(registry, call, send))
                called.append(call)
        stop_reason = "max_iterations" if reply.stop_reason == "tool_use" else reply.stop_reason
        end["status"] = "done" if stop_reason == "end" else stop_reason
    note = ""
    if stop_reason != "end":
        why = f"max_iterations={max_iterations} reached" if stop_reason == "max_iterations" else "the reply was cut off"
        undone = ", ".join(call.name for call in reply.tool_calls)
        note = f"[stopped: {why}" + (f"; not run: {undone}]" if undone else "]")
        # Every call gets an answer, so that the conversation can be taken up again.
        talk += [Message("tool", f"error: not run: {why}", tool_call_id=call.id) for call in reply.tool_calls]
    text = "\n\n".join(part for part in (reply.text, note) if part)
    return LoopResult(text, talk, stop_reason, iteration, called)


def _check_cap(cap: Any) -> None:
    if not isinstance(cap, int) or isinstance(cap, bool) or cap < 1:
        raise ValueError(f"max_iterations={cap!r} must be a whole number from 1: it caps the model calls")


def _opening(messages: str | Sequence[Message], system: str) -> list[Message]:
    """The conversation to begin with: a new list."""
    talk = [Message("user", messages)] if isinstance(messages, str) else list(messages)
    if not talk or not all(isinstance(message, Message) for message in talk):
        raise TypeError(f"messages are the user's text, or a list of Message with at least one; got {messages!r}")
    return [Message("system", system), *talk] if system else talk


def _ask(model: Model, talk: list[Message], registry: ToolRegistry, send: Send) -> Reply:
    with _reported(send, "llm", name=name_of(model), stop_reason=None, usage={}) as event:
        reply = checked(model(list(talk), registry.specs() or None), model)
        event.update(stop_reason=reply.stop_reason, usage=reply.usage)
        return reply


def _use(registry: ToolRegistry, call: ToolCall, send: Send) -> Message:
    with _reported(send, "tool", name=call.name, arguments=call.arguments) as event:
        text = registry.execute(call)
        event["error"] = text.removeprefix("error: ") if text.startswith("error: ") else None
        return Message("tool", text, tool_call_id=call.id)


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


def agent_node(name: str, model: Model, tools: ToolRegistry | Iterable[Tool | Callable[..., Any]], out_key: str,
               system: Template = "", max_iterations: int = 10, prompt: Template | None = None, *,
               max_visits: int | None = None, on_error: str | None = None) -> Node:
    """A node that runs a whole loop, with a registry and a conversation of its own, and writes its text to `out_key`.

    `prompt`, what the user says, and `system` are templates with `{key}`, or functions of the blackboard; without a
    prompt the model is told all that is on the blackboard. Every visit begins a new conversation.

    A loop that meets its cap is no failure: what it found out is kept, and the text ends in "[stopped: ...]", for
    people and models to read. Where half an answer is worse than none, let a router look for that.
    """
    own = tuple(tools.tools.values() if isinstance(tools, ToolRegistry) else tools)
    ToolRegistry(own)  # what is wrong with the tools is reported here, not in the middle of a run
    _check_cap(max_iterations)
    agent = RunAgent(model, own, out_key, well_formed(system), max_iterations, well_formed(prompt or all_of_it))
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

    def __repr__(self) -> str:
        return f"<loop of {name_of(self.model)} with {ToolRegistry(self.tools)!r} -> {self.out_key}>"

    def __call__(self, state: Mapping[str, Any]) -> dict[str, Any]:
        system, prompt = render(self.system, state), render(self.prompt, state)
        return {self.out_key: run_loop(self.model, self.tools, prompt, self.max_iterations, system=system).text}


def all_of_it(state: Mapping[str, Any]) -> str:
    """The blackboard as text, a line for each key."""
    return "\n".join(f"{key}: {state[key]}" for key in state if key != "errors")


# ---- tools


@dataclass
class Tool:
    """A function that a model may call by `name`, with arguments that fit `parameters`, a JSON schema of type object.

    Without `parameters` the schema is read from the function's signature, without a description its docstring is
    used. In a list of tools a plain function stands for `Tool(its name, it)`.
    """

    name: str
    fn: Callable[..., Any]
    description: str = ""
    parameters: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise TypeError(f"tool {self.name!r}: a tool is a function, not {self.fn!r}")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            raise ValueError(f"tool name {self.name!r}: models take 1 to 64 letters, digits, _ and -; "
                             "give the function one, as in Tool('search', fn)")
        if not self.description:
            self.description = inspect.getdoc(inspect.unwrap(self.fn)) or ""
        if self.parameters is None:
            self.parameters = schema_of(self.fn)

    def __repr__(self) -> str:
        return f"<Tool {self.name}: {self._takes()}>"

    def spec(self) -> ToolSpec:
        """What a model is told about this tool."""
        return ToolSpec(self.name, self.description, self.parameters or {})

    def misfit(self, arguments: Any) -> str:
        """What is wrong with the arguments, naming each; "" if they fit `parameters`."""
        if not isinstance(arguments, Mapping):
            return f"the arguments must be an object, not {reprlib.repr(arguments)}"
        schema = self.parameters or {}
        known = schema.get("properties", {})
        wrong = [f"missing {name!r}" for name in schema.get("required", ()) if name not in arguments]
        for name, value in arguments.items():
            if name in known and not _fits(value, known[name]):
                wrong.append(f"{name!r} must be {_in_words(known[name])}, not {reprlib.repr(value)}")
            elif name not in known and schema.get("additionalProperties") is False:
                wrong.append(f"unexpected {name!r}")
        return f"{'; '.join(wrong)}; it takes {self._takes()}" if wrong else ""

    def _takes(self) -> str:
        known = (self.parameters or {}).get("properties", {})
        return ", ".join(f"{name} ({_in_words(schema)})" for name, schema in known.items()) or "no arguments"


class ToolRegistry:
    """The tools of one loop, by name; whatever goes wrong with them becomes text that a model can read."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            tool = tool if isinstance(tool, Tool) else Tool(name_of(tool), tool)
            if tool.name in self.tools:
                raise ValueError(f"there are two tools named {tool.name!r}, and a model calls them by name")
            self.tools[tool.name] = tool

    def __repr__(self) -> str:
        return f"ToolRegistry({', '.join(self.tools) or 'no tools'})"

    def specs(self) -> list[ToolSpec]:
        """What a model is told about the tools."""
        return [tool.spec() for tool in self.tools.values()]

    def execute(self, call: ToolCall) -> str:
        """What the tool returned (text as it is, the rest as JSON), or "error: " and what went wrong. Never raises."""
        try:
            tool = self.tools.get(call.name)
            if tool is None:
                return f"error: {self._no_such(call.name)}"
            if wrong := tool.misfit(call.arguments):
                return f"error: {call.name}: {wrong}"
            result = tool.fn(**call.arguments)
            if inspect.iscoroutine(result):
                result.close()
                return f"error: {call.name} is async, and a tool is a plain function: call asyncio.run(...) inside one"
            return result if isinstance(result, str) else _as_json(result)
        except Exception as error:
            return f"error: {call.name} raised {_said(error)}"

    def _no_such(self, name: str) -> str:
        close = difflib.get_close_matches(str(name), self.tools, n=1)
        there = ", ".join(self.tools) or "none"
        return f"no tool {name!r}{f'; did you mean {close[0]!r}?' if close else ''} (there are: {there})"


def _as_json(result: Any) -> str:
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(result)


def _said(error: Exception) -> str:
    try:
        return described(error)
    except Exception:  # an exception whose own __str__ raises
        return type(error).__name__


# ---- schemas: as much of JSON Schema as a function signature can say

_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object",
          type(None): "null"}
_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
                          "array": (list, tuple), "object": Mapping, "null": type(None)}


def schema_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """The JSON schema of a function's arguments; TypeError for a parameter that cannot be given by name."""
    try:
        signature = inspect.signature(fn, eval_str=True)
    except NameError:  # an annotation that names what is not there: any value will do
        signature = inspect.signature(fn)
    except ValueError as error:
        raise ValueError(f"{error}; say what it takes: Tool(name, fn, parameters={{...}})") from None
    properties, required, open_ended = {}, [], False
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(f"tool {name_of(fn)!r}: models give arguments by name, and {str(parameter)!r} takes none")
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        properties[name] = schema = _schema(parameter.annotation)
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is None and isinstance(schema.get("type"), str):
            schema.update(type=[schema["type"], "null"])  # `limit: int = None` means that None will do
        elif isinstance(parameter.default, (str, int, float, bool, list, dict)):
            schema.update(default=parameter.default)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": open_ended}


def _schema(annotation: Any) -> dict[str, Any]:
    """The schema of one annotation; {}, which anything fits, for what JSON has no word for."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        options = [_schema(part) for part in parts]
        if {} in options:
            return {}
        if all(option.keys() == {"type"} for option in options):
            return {"type": [option["type"] for option in options]}
        return {"anyOf": options}
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin is list and parts:
        return {"type": "array", "items": _schema(parts[0])}
    kind = origin or annotation
    return {"type": _KINDS[kind]} if isinstance(kind, type) and kind in _KINDS else {}


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if "anyOf" in schema:
        return any(_fits(value, option) for option in schema["anyOf"])
    kinds = schema.get("type", [])
    if kinds and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    return not isinstance(value, list) or all(_fits(item, schema.get("items", {})) for item in value)


def _is(value: Any, kind: str) -> bool:
    # To Python True is an int; to JSON it is not.
    return isinstance(value, _TYPES.get(kind, object)) and (kind == "boolean" or not isinstance(value, bool))


def _in_words(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(repr, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_in_words, schema["anyOf"]))
    kinds = schema.get("type", "anything")
    if kinds == "array" and schema.get("items"):
        return f"array of {_in_words(schema['items'])}"
    return kinds if isinstance(kinds, str) else " or ".join(kinds)
