"""A tool is a function that a model may call: its signature says what it takes, and what goes wrong becomes text.

    def add(a: int, b: int = 0) -> int:
        "The sum of two numbers."
        return a + b

    registry = ToolRegistry([add])
    registry.execute(ToolCall("c1", "add", {"a": 2, "b": 3}))       # '5'
    registry.execute(ToolCall("c2", "add", {"a": "2"}))             # "error: add: 'a' must be integer, not '2'; ..."

A model reads schemas, and its mistakes are many: every answer to one names the thing, the rule and what there is.
"""

from __future__ import annotations

import collections.abc
import difflib
import inspect
import json
import re
import reprlib
import threading
import types
import typing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from . import clock
from .engine import described
from .models.base import ToolCall, ToolSpec, name_of

Schema = dict[str, Any]


@dataclass
class Tool:
    """A function that a model may call by `name`, with arguments that fit `parameters`, a JSON schema of type object.

    Without `parameters` the schema is read from the function's signature and docstring, without a description its
    docstring is used. In a list of tools a plain function stands for `Tool(its name, it)`. Wrappers keep all that:
    `timeout(fn, 5)` of nodes.py for one that may hang, `retry(fn)` for one that may fail.
    """

    name: str
    fn: Callable[..., Any]
    description: str = ""
    parameters: Schema | None = None

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
        if not isinstance(self.parameters, Mapping) or self.parameters.get("type", "object") != "object":
            raise TypeError(f"tool {self.name!r}: parameters={self.parameters!r} is no JSON schema of type object: "
                            "write {'type': 'object', 'properties': {...}}")

    def __repr__(self) -> str:
        return f"<Tool {self.name}: {self._takes()}>"

    def spec(self) -> ToolSpec:
        """What a model is told about this tool."""
        return ToolSpec(self.name, self.description, self.parameters or {})

    def misfit(self, arguments: Any) -> str:
        """What is wrong with the arguments, naming each; "" if they fit `parameters`."""
        if not isinstance(arguments, Mapping):
            return f"the arguments must be an object, not {_no_object(arguments)}"
        wrong = list(faults(arguments, {**(self.parameters or {}), "type": "object"}))
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        return f"{'; '.join(wrong[:5])}{more}; it takes {self._takes()}" if wrong else ""

    def _takes(self) -> str:
        known = (self.parameters or {}).get("properties", {})
        return ", ".join(f"{name} ({in_words(schema)})" for name, schema in known.items()) or "no arguments"


def _no_object(arguments: Any) -> str:
    """What came in place of an object; where it is text that should have been JSON, what is wrong with it."""
    try:
        if isinstance(arguments, str):
            json.loads(arguments)
    except ValueError as error:
        return f"{reprlib.repr(arguments)}, which is not even JSON ({error})"
    return reprlib.repr(arguments)


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
        except (Exception, SystemExit) as error:  # SystemExit is how argparse, say, refuses its arguments
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


def _said(error: BaseException) -> str:
    try:
        return described(error)
    except Exception:  # an exception whose own __str__ raises
        return type(error).__name__


# ---- several calls at once


def together(jobs: Sequence[Callable[[], Any]], max_workers: int, ended: Callable[[Any], None]) -> None:
    """Makes the calls, at most `max_workers` at once, and hands what each returns to ended(), on this thread.

    In the order in which they end; those that end at the same moment, in their own. A single one, and one after
    another, need no thread. Time is that of the current clock, virtual time included.
    """
    if len(jobs) == 1 or max_workers == 1:
        for job in jobs:
            ended(job())
        return
    crew, queue, out = _Crew(), deque(enumerate(jobs)), 0
    with clock.current().running():
        try:
            while queue or out:
                while queue and out < max_workers and crew.started(*queue[0]):
                    queue.popleft()
                    out += 1
                if not out:  # no thread can be started here
                    _one_by_one(queue, ended)
                    return
                found = crew.box.take()
                out -= len(found)
                for _, result in sorted(found, key=lambda pair: pair[0]):
                    ended(result)
        finally:
            crew.leave()


class _Crew:
    """The threads that make the calls."""

    def __init__(self) -> None:
        self.box = clock.current().mailbox()
        self.threads: list[threading.Thread] = []
        self.over: list[int] = []  # the calls that have ended

    def started(self, number: int, job: Callable[[], Any]) -> bool:
        """Could a thread be started that puts (number, what the job returns) into the box?"""
        thread = threading.Thread(target=copy_context().run, args=(self.box.work, self.work, number, job),
                                  daemon=True, name="minigraph-tool")
        self.box.expect()
        self.threads.append(thread)
        try:
            thread.start()
        except RuntimeError:
            self.threads.pop()
            self.box.expect(-1)
            return False
        return True

    def work(self, number: int, job: Callable[[], Any]) -> tuple[int, Any]:
        try:
            return number, job()
        finally:
            self.over.append(number)

    def leave(self) -> None:
        """What runs cannot be stopped, only waited for. An interrupt may have lost what was in the box already."""
        while len(self.over) < len(self.threads):
            self.box.take()
        for thread in self.threads:
            thread.join()


def _one_by_one(queue: Iterable[tuple[int, Callable[[], Any]]], ended: Callable[[Any], None]) -> None:
    """Without threads: one call after another; in virtual time each begins at the same moment all the same."""
    now, done = clock.now(), []
    for number, job in queue:
        _turn_back(now)
        result = job()
        done.append((clock.now(), number, result))
    for at, _, result in sorted(done, key=lambda one: one[:2]):
        _turn_back(at)
        ended(result)


def _turn_back(to: float) -> None:
    if isinstance(time := clock.current(), clock.VirtualClock):
        time.turn_back(to)


# ---- from a signature to a schema: as much of JSON Schema as a function can say

_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", tuple: "array",
          dict: "object", type(None): "null", collections.abc.Sequence: "array", collections.abc.Iterable: "array",
          collections.abc.Mapping: "object"}
_QUALIFIERS = tuple(getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly") if hasattr(typing, name))


def schema_of(fn: Callable[..., Any]) -> Schema:
    """The JSON schema of a function's arguments; TypeError for a parameter that cannot be given by name.

    What the docstring says of a parameter, in a line `name: text` under "Args:" or in `:param name: text`, becomes
    its description; so does text in Annotated[int, "text"].
    """
    try:
        signature = inspect.signature(fn, eval_str=True)
    except NameError:  # an annotation that names what is not there: any value will do
        signature = inspect.signature(fn)
    except ValueError as error:
        raise ValueError(f"{error}; say what it takes: Tool(name, fn, parameters={{...}})") from None
    told = _told_by(inspect.getdoc(inspect.unwrap(fn)) or "")
    properties, required, open_ended = {}, [], False
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(f"tool {name_of(fn)!r}: models give arguments by name, and {str(parameter)!r} takes none")
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        properties[name] = {**_with_default(_schema(parameter.annotation), parameter.default),
                            **({"description": told[name]} if name in told else {})}
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": open_ended}


def _with_default(schema: Schema, default: Any) -> Schema:
    """The schema of a parameter that has this default; `limit: int = None` means that None will do."""
    if default is None and schema and next(faults(None, schema), None):
        if isinstance(schema.get("type"), str) and schema.keys() <= {"type", "description"}:
            return {**schema, "type": [schema["type"], "null"]}
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "default": default} if isinstance(default, (str, int, float, bool, list, dict)) else schema


def _schema(annotation: Any, above: tuple[Any, ...] = ()) -> Schema:
    """The schema of one annotation; {}, which anything fits, for what JSON has no word for."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated or origin in _QUALIFIERS:
        said = [part for part in parts[1:] if isinstance(part, str)]
        return {**_schema(parts[0], above), **({"description": said[0]} if said else {})}
    if origin in (typing.Union, types.UnionType):
        return _any_of([_schema(part, above) for part in parts])
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if typing.is_typeddict(annotation):
        return {"type": "object"} if annotation in above else _typed_dict(annotation, (*above, annotation))
    kind = origin or annotation
    found: Schema = {"type": _KINDS[kind]} if isinstance(kind, type) and kind in _KINDS else {}
    of = _schema(parts[-1 if kind is not tuple else 0], above) if parts else {}  # of the items, or of the values
    if found.get("type") == "array" and of and (kind is not tuple or parts[1:] == (...,)):
        found["items"] = of
    elif found.get("type") == "object" and of:
        found["additionalProperties"] = of
    return found


def _any_of(options: list[Schema]) -> Schema:
    if {} in options:
        return {}
    if all(option.keys() == {"type"} and isinstance(option["type"], str) for option in options):
        return {"type": [option["type"] for option in options]}
    return {"anyOf": options}


def _typed_dict(annotation: Any, above: tuple[Any, ...]) -> Schema:
    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except NameError:
        return {"type": "object"}
    # Its own list does not know what `from __future__ import annotations` has turned into text.
    optional = {name for name, hint in hints.items() if _NOT_REQUIRED.match(str(hint))} | annotation.__optional_keys__
    return {"type": "object", "properties": {name: _schema(hint, above) for name, hint in hints.items()},
            "required": [name for name in hints if name not in optional], "additionalProperties": False}


_NOT_REQUIRED = re.compile(r"typing(?:_extensions)?\.NotRequired\[")
_ARGS = re.compile(r"^(?:Args|Arguments|Parameters):\s*\n((?:[ \t]+\S.*\n?|[ \t]*\n)+)", re.MULTILINE)


def _told_by(doc: str) -> dict[str, str]:
    """Parameter -> what the docstring says of it, on one line."""
    listed = _ARGS.search(doc + "\n")
    indented = inspect.cleandoc("\n" + listed[1]) if listed else ""
    found = re.findall(r"^\*{0,2}(\w+)\s*(?:\([^)\n]*\))?:\s*(.+(?:\n[ \t]+.+)*)", indented, re.MULTILINE)
    found += re.findall(r"^:param (?:[\w\[\], .|]+ )?(\w+):\s*(.+(?:\n[ \t]+.+)*)", doc, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


# ---- from a schema to what is wrong with a value: types, required, enum, anyOf, arrays and objects in one another

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
                          "array": (list, tuple), "object": Mapping, "null": type(None)}


def faults(value: Any, schema: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """What does not fit, a few words for each thing; `where` is the value's name, as in filters.city or ids[2].

    What else a schema of your own may say (patterns, lengths, limits) is for the model to read, and is not checked.
    """
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if ("enum" in schema and not any(_same(value, option) for option in schema["enum"])
            or "anyOf" in schema and all(any(faults(value, option)) for option in schema["anyOf"])
            or kinds and not any(_is(value, kind) for kind in kinds)):
        yield f"{where!r} must be {in_words(schema)}, not {reprlib.repr(value)}"
    elif isinstance(value, Mapping):
        yield from _faults_of_object(value, schema, where)
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{where}[{position}]")


def _faults_of_object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    dot = f"{where}." if where else ""
    for name in schema.get("required", ()):
        if name not in value:
            yield f"missing {dot + name!r}"
    for name, part in value.items():
        if name in known:
            yield from faults(part, known[name], f"{dot}{name}")
        elif others is False:
            yield f"unexpected {f'{dot}{name}'!r}"
        elif isinstance(others, Mapping):
            yield from faults(part, others, f"{dot}{name}")


def _same(value: Any, option: Any) -> bool:
    return bool(value == option) and isinstance(value, bool) == isinstance(option, bool)


def _is(value: Any, kind: str) -> bool:
    # To Python True is an int; to JSON it is not.
    return isinstance(value, _TYPES.get(kind, object)) and (kind == "boolean" or not isinstance(value, bool))


def in_words(schema: Mapping[str, Any]) -> str:
    """A schema in a few words, as in 'array of integer or null'."""
    if "enum" in schema:
        return "one of " + ", ".join(map(repr, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(in_words, schema["anyOf"]))
    kinds, others = schema.get("type", "anything"), schema.get("additionalProperties")
    if kinds == "array" and schema.get("items"):
        return f"array of {in_words(schema['items'])}"
    if kinds == "object" and schema.get("properties"):
        return f"object with {', '.join(schema['properties'])}"
    if kinds == "object" and isinstance(others, Mapping) and others:
        return f"object of {in_words(others)}"
    return kinds if isinstance(kinds, str) else " or ".join(kinds)
