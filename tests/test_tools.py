"""Tools: what a registry says whatever goes wrong, schemas read from signatures, and arguments held to them."""

import inspect
import json
import sys
import threading
import typing  # noqa: F401 (an annotation names it)
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from helpers import within

from minigraph.clock import RealClock, now, sleep, virtual_time
from minigraph.models import ToolCall
from minigraph.nodes import retry, timeout
from minigraph.tools import Tool, ToolRegistry, faults, in_words, schema_of, together


def add(a: int, b: int = 0) -> int:
    """The sum of two numbers."""
    return a + b


def slow_add(a: int) -> int:
    sleep(0.5)
    return a


# ---- the registry


def test_a_registry_runs_a_call():
    """Text comes back as it is, anything else as JSON, and what JSON cannot say as str."""
    class Odd:
        def __str__(self):
            return "odd"

    for result, text in [("ä{x}", "ä{x}"), (3, "3"), ({"ä": [1, None]}, '{"ä": [1, null]}'), (None, "null"),
                         (True, "true"), (Odd(), "odd"), ({1, }, "{1}")]:
        registry = ToolRegistry([Tool("get", lambda result=result: result, parameters={})])
        assert registry.execute(ToolCall("c", "get", {})) == text


def boom(kind: str):
    """Goes wrong."""
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    class Unspeakable:
        def __str__(self):
            raise ValueError("unspeakable")

    if kind == "unspeakable":
        return Unspeakable()
    raise {"value": ValueError("no"), "empty": ValueError(), "key": KeyError("k"), "mute": Mute(),
           "deep": RecursionError("deep"), "exit": SystemExit(2)}[kind]


async def later(text: str):
    """Comes later."""
    return text


@pytest.mark.parametrize("name, arguments, says", [
    ("ad", {}, "no tool 'ad'; did you mean 'add'? (there are: add, boom, later)"),
    ("zzz", {}, "no tool 'zzz' (there are: add, boom, later)"),
    ("", {}, "no tool '' (there are: add, boom, later)"),
    (None, {}, "no tool None (there are: add, boom, later)"),
    ("add", {}, "add: missing 'a'; it takes a (integer), b (integer)"),
    ("add", {"a": 1, "c": 2}, "add: unexpected 'c'; it takes a (integer), b (integer)"),
    ("add", {"a": "1"}, "add: 'a' must be integer, not '1'; it takes a (integer), b (integer)"),
    ("add", {"a": True}, "add: 'a' must be integer, not True; it takes a (integer), b (integer)"),
    ("add", {"a": 1.5, "b": None}, "add: 'a' must be integer, not 1.5; 'b' must be integer, not None; it takes"),
    ("add", '{"a": 1}', "add: the arguments must be an object, not '{\"a\": 1}'"),
    ("add", None, "add: the arguments must be an object, not None"),
    ("add", '{"a": 1', "add: the arguments must be an object, not '{\"a\": 1', which is not even JSON (Expecting ',' "
     "delimiter: line 1 column 8 (char 7))"),
    ("add", "[1]", "add: the arguments must be an object, not '[1]'"),
    ("add", [1], "add: the arguments must be an object, not [1]"),
    ("boom", {"kind": "value"}, "boom raised ValueError: no"),
    ("boom", {"kind": "empty"}, "boom raised ValueError"),
    ("boom", {"kind": "key"}, "boom raised KeyError: 'k'"),
    ("boom", {"kind": "mute"}, "boom raised Mute"),
    ("boom", {"kind": "deep"}, "boom raised RecursionError: deep"),
    ("boom", {"kind": "unspeakable"}, "boom raised ValueError: unspeakable"),
    ("boom", {"kind": "exit"}, "boom raised SystemExit: 2"),
    ("later", {"text": "x"}, "later is async, and a tool is a plain function: call asyncio.run(...) inside one"),
])
def test_a_registry_never_raises(name, arguments, says):
    """An unknown tool, arguments that do not fit, and whatever a tool does wrong become text for the model."""
    text = ToolRegistry([add, boom, later]).execute(ToolCall("c", name, arguments))
    assert text.startswith("error: " + says)


def test_a_coroutine_that_a_tool_returned_is_closed():
    """Nobody will await it, and Python would complain about that much later, somewhere else."""
    made = []

    def forgets_to_run(text: str):
        made.append(later(text))
        return made[0]

    ToolRegistry([forgets_to_run]).execute(ToolCall("c", "forgets_to_run", {"text": "x"}))
    assert inspect.getcoroutinestate(made[0]) == inspect.CORO_CLOSED


def test_an_argument_that_does_not_fit_is_shortened():
    """A megabyte in the wrong place is not sent back to the model."""
    text = ToolRegistry([add]).execute(ToolCall("c", "add", {"a": "x" * 1_000_000}))
    assert text.startswith("error: add: 'a' must be integer, not 'xxx") and len(text) < 120


def test_an_empty_registry_says_that_it_is_empty():
    """No tools, no suggestion."""
    assert ToolRegistry([]).execute(ToolCall("c", "add", {})) == "error: no tool 'add' (there are: none)"
    assert (ToolRegistry([]).specs(), repr(ToolRegistry([]))) == ([], "ToolRegistry(no tools)")


def test_a_tool_that_takes_nothing_says_so():
    """An argument too many is named."""
    def ping() -> str:
        return "pong"

    registry = ToolRegistry([ping])
    assert registry.execute(ToolCall("c", "ping", {})) == "pong"
    assert registry.execute(ToolCall("c", "ping", {"x": 1})) == "error: ping: unexpected 'x'; it takes no arguments"


def test_tools_may_be_wrapped():
    """retry and timeout keep the name, the docstring and the signature."""
    (spec,) = ToolRegistry([retry(timeout(add, 2))]).specs()
    assert (spec.name, spec.description, list(spec.parameters["properties"])) == (
        "add", "The sum of two numbers.", ["a", "b"])
    registry = ToolRegistry([timeout(slow_add, 0.1)])
    with virtual_time():
        assert within(20, lambda: registry.execute(ToolCall("c", "slow_add", {"a": 1}))) == (
            "error: slow_add raised TimeoutError: `slow_add` took longer than 0.1 s; it was left running, not stopped")


# ---- tools and their schemas


def test_a_tool_describes_itself():
    """Name and docstring of the function, unless the Tool says otherwise."""
    (spec, named) = ToolRegistry([add, Tool("plus", add, "Adds.", {"type": "object"})]).specs()
    assert (spec.name, spec.description) == ("add", "The sum of two numbers.")
    assert spec.parameters == {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 0}},
        "required": ["a"], "additionalProperties": False}
    assert (named.name, named.description, named.parameters) == ("plus", "Adds.", {"type": "object"})
    assert repr(Tool("plus", add)) == "<Tool plus: a (integer), b (integer)>"


@pytest.mark.parametrize("annotation, schema, fits, misfits", [
    (str, {"type": "string"}, ["", "x"], [1, None]),
    (int, {"type": "integer"}, [0, -1], [1.0, "1", True]),
    (float, {"type": "number"}, [0, 1.5], ["1", True]),
    (bool, {"type": "boolean"}, [True, False], [0, "true"]),
    (list, {"type": "array"}, [[], [1, "a"]], ["ab", {}]),
    (dict, {"type": "object"}, [{}, {"a": 1}], [[], "a"]),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [[], [1]], ["1", {}]),
    (Sequence[int], {"type": "array", "items": {"type": "integer"}}, [[], [1]], ["1", {}]),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [[], [1]], ["1"]),
    (tuple[int, str], {"type": "array"}, [[1, "a"]], ["1"]),
    (tuple, {"type": "array"}, [[1, "a"]], ["1"]),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}], [[]]),
    (Mapping[str, Any], {"type": "object"}, [{"a": None}], [[]]),
    (set[int], {}, [[1]], []),  # JSON has none
    (Annotated[int, "how many"], {"type": "integer", "description": "how many"}, [1], ["1"]),
    (Annotated[int, 5], {"type": "integer"}, [1], ["1"]),
    (int | None, {"type": ["integer", "null"]}, [1, None], ["1"]),
    (Optional[int], {"type": ["integer", "null"]}, [1, None], ["1"]),  # noqa: UP045 (the older spelling)
    (int | str, {"type": ["integer", "string"]}, [1, "1"], [None, 1.5]),
    (list[int] | None, {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
     [[1], None], [["1"], 1]),
    (Literal["up", "down"], {"enum": ["up", "down"]}, ["up"], ["UP", 1, ["up"]]),
    (Literal[1], {"enum": [1]}, [1, 1.0], [True]),  # which is 1 to Python, and not to JSON
    (Literal[True], {"enum": [True]}, [True], [1, False]),
    ("int", {"type": "integer"}, [1], ["1"]),
    (object, {}, [1, "1", None, [1]], []),
    (object | None, {}, [1, None], []),
])
def test_a_schema_is_read_from_the_signature(annotation, schema, fits, misfits):
    """An annotation becomes JSON Schema, and arguments are held to it; what JSON has no word for takes anything."""
    def fn(x):
        return "fine"

    fn.__annotations__["x"] = annotation
    tool = Tool("fn", fn)
    assert tool.parameters["properties"] == {"x": schema}
    json.dumps(tool.parameters)
    assert [tool.misfit({"x": value}) for value in fits] == [""] * len(fits)
    assert all(tool.misfit({"x": value}).startswith("'x' must be ") for value in misfits)


def test_the_words_for_a_type_are_words():
    """What a model reads names alternatives, items and the parts of objects."""
    def fn(a: list[int], b: Literal["x", "y"], c: int | None, d: list[int] | str, e, f: Where, g: dict[str, int]):
        return ""

    assert Tool("fn", fn).misfit({}).endswith(
        "it takes a (array of integer), b (one of 'x', 'y'), c (integer or null), d (array of integer or string), "
        "e (anything), f (object with city, zones), g (object of integer)")


def test_defaults_and_open_ends():
    """A default makes an argument optional and stands in the schema; None as default allows null; ** takes the rest."""
    def fn(a, b: int = 5, c: str = None, d=object, **rest):
        return ""

    assert Tool("fn", fn).parameters == {
        "type": "object", "required": ["a"], "additionalProperties": True,
        "properties": {"a": {}, "b": {"type": "integer", "default": 5}, "c": {"type": ["string", "null"]}, "d": {}}}
    assert Tool("fn", fn).misfit({"a": 1, "c": None, "other": 2}) == ""


@pytest.mark.parametrize("annotation, schema", [
    (int, {"type": ["integer", "null"]}),
    (int | None, {"type": ["integer", "null"]}),
    (Literal["a"], {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
    (list[int], {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
    (Annotated[int, "x"], {"type": ["integer", "null"], "description": "x"}),
    (object, {}),
])
def test_none_as_a_default_allows_null(annotation, schema):
    """Whatever the annotation says: `limit: int = None` means that None will do."""
    def fn(x=None):
        return ""

    fn.__annotations__["x"] = annotation
    tool = Tool("fn", fn)
    assert tool.parameters["properties"] == {"x": schema}
    assert tool.misfit({"x": None}) == ""


class Where(TypedDict):
    city: str
    zones: "list[int]"


class Filters(TypedDict, total=False):
    where: "Where"
    above: "Filters"  # of itself


class Broken(TypedDict):
    a: "NotImported"  # noqa: F821


def test_a_typed_dict_is_an_object_with_parts():
    """Parts in parts, optional with total=False; one within itself, or that cannot be resolved, is any object."""
    def fn(filters: Filters, broken: Broken):
        return ""

    where = {"type": "object", "properties": {"city": {"type": "string"},
                                              "zones": {"type": "array", "items": {"type": "integer"}}},
             "required": ["city", "zones"], "additionalProperties": False}
    assert schema_of(fn)["properties"] == {
        "filters": {"type": "object", "properties": {"where": where, "above": {"type": "object"}}, "required": [],
                    "additionalProperties": False},
        "broken": {"type": "object"}}


class Part(TypedDict):
    a: int
    b: "typing.NotRequired[int]"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="NotRequired came with Python 3.11")
def test_parts_may_be_optional_one_by_one():
    """NotRequired counts, also where the annotation is text."""
    def fn(part: Part):
        return ""

    assert schema_of(fn)["properties"]["part"] == {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"],
        "additionalProperties": False}


@pytest.mark.parametrize("doc", [
    """Looks it up.

    Args:
        word: what to look for,
            in any script
        limit (int): how many: at most
        *more: not a parameter

    Returns:
        word: no parameter either
    """,
    """Looks it up.

    :param word: what to look for,
        in any script
    :param int limit: how many: at most
    :returns: text
    """,
])
def test_a_docstring_describes_parameters(doc):
    """In two usual forms: a line in the schema for each parameter, and the whole docstring as description."""
    def look_up(word: str, limit: int = 3, flag: bool = False):
        return ""

    look_up.__doc__ = doc
    tool = Tool("look_up", look_up)
    assert tool.parameters["properties"] == {
        "word": {"type": "string", "description": "what to look for, in any script"},
        "limit": {"type": "integer", "default": 3, "description": "how many: at most"},
        "flag": {"type": "boolean", "default": False}}
    assert tool.description == inspect.cleandoc(doc)


def test_prose_is_no_list_of_parameters():
    """A colon in a sentence describes nothing."""
    def fn(word):
        """Looks it up. Note: word: by word.

        Word: a sentence.
        word: a sentence too, since no "Args:" stands above it.
        """

    assert schema_of(fn)["properties"] == {"word": {}}


NESTED = {"type": "object", "required": ["ids"], "additionalProperties": False, "properties": {
    "ids": {"type": "array", "items": {"type": "integer"}},
    "filter": {"type": "object", "required": ["city"], "additionalProperties": False, "properties": {
        "city": {"type": "string"}, "kind": {"enum": ["a", "b"]},
        "days": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}},
    "counts": {"type": "object", "additionalProperties": {"type": "number"}},
    "free": {"type": "object"}}}


@pytest.mark.parametrize("value, wrong", [
    ({"ids": []}, []),
    ({"ids": [1, 2], "filter": {"city": "x", "days": [{"n": 1, "m": 2}, {}]}, "counts": {"a": 1.5}, "free": {"a": 1}},
     []),
    ({}, ["missing 'ids'"]),
    ({"ids": None}, ["'ids' must be array of integer, not None"]),
    ({"ids": [1, "2", True]}, ["'ids[1]' must be integer, not '2'", "'ids[2]' must be integer, not True"]),
    ({"ids": [], "filter": {}}, ["missing 'filter.city'"]),
    ({"ids": [], "filter": []}, ["'filter' must be object with city, kind, days, not []"]),
    ({"ids": [], "filter": {"city": 1, "kind": "c", "town": "x"}},
     ["'filter.city' must be string, not 1", "'filter.kind' must be one of 'a', 'b', not 'c'",
      "unexpected 'filter.town'"]),
    ({"ids": [], "filter": {"city": "x", "days": [{}, {"n": "1"}]}},
     ["'filter.days[1].n' must be integer, not '1'"]),
    ({"ids": [], "counts": {"a": 1, "b": "2"}}, ["'counts.b' must be number, not '2'"]),
    ({"ids": [], "counts": 5}, ["'counts' must be object of number, not 5"]),
    ({"ids": [], "other": 1, "more": 2}, ["unexpected 'other'", "unexpected 'more'"]),
])
def test_what_does_not_fit_is_named_by_its_place(value, wrong):
    """Parts of parts and items by their path; missing and unexpected ones too."""
    assert list(faults(value, NESTED)) == wrong
    tool = Tool("fn", lambda **all_of_it: "fine", parameters=NESTED)
    assert tool.misfit(value) == ("; ".join(wrong) and "; ".join(wrong) + (
        "; it takes ids (array of integer), filter (object with city, kind, days), counts (object of number), "
        "free (object)"))


def test_many_things_wrong_are_counted():
    """Five are told, for a model's context is dear."""
    def fn(ids: list[int]):
        return ""

    assert " more" not in Tool("fn", fn).misfit({"ids": ["x"] * 5})
    assert "; and 1 more; it takes" in Tool("fn", fn).misfit({"ids": ["x"] * 6})
    assert Tool("fn", fn).misfit({"ids": ["x"] * 1000}) == (
        "'ids[0]' must be integer, not 'x'; 'ids[1]' must be integer, not 'x'; 'ids[2]' must be integer, not 'x'; "
        "'ids[3]' must be integer, not 'x'; 'ids[4]' must be integer, not 'x'; and 995 more; "
        "it takes ids (array of integer)")


def test_words_beyond_the_subset_are_not_checked():
    """A schema of your own may say more; the model reads it, and nobody is refused for it."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x$", "maxLength": 1, "$ref": "#"}}}
    assert Tool("fn", lambda a: "", parameters=schema).misfit({"a": "abc", "b": 1}) == ""
    assert in_words({"type": ["string", "null"]}) == "string or null"


@pytest.mark.parametrize("parameters", [{"type": "array"}, [], "object", {"type": ["object"]}])
def test_a_schema_of_your_own_is_one_of_an_object(parameters):
    """Arguments are given by name; what describes no object is refused where the tool is made."""
    with pytest.raises(TypeError, match="tool 'fn': parameters=.* is no JSON schema of type object: write"):
        Tool("fn", add, parameters=parameters)


def test_an_annotation_that_cannot_be_resolved_takes_anything():
    """A tool is not refused for a type that is only there for type checkers."""
    def fn(a: "NotImported", b: int = 1):  # noqa: F821
        return ""

    assert Tool("fn", fn).parameters["properties"]["a"] == {}


@pytest.mark.parametrize("make, error, says", [
    (lambda: Tool("get me", add), ValueError, "tool name 'get me': models take 1 to 64 letters, digits, _ and -"),
    (lambda: ToolRegistry([lambda: 1]), ValueError, r"tool name '<lambda>': .* give the function one, as in Tool\("),
    (lambda: Tool("x", 5), TypeError, "tool 'x': a tool is a function, not 5"),
    (lambda: Tool("x", lambda *args: 1), TypeError, r"models give arguments by name, and '\*args' takes none"),
    (lambda: Tool("x", lambda a, /: a), TypeError, "models give arguments by name, and 'a' takes none"),
    (lambda: Tool("x", max), ValueError, r"no signature found .*; say what it takes: Tool\(name, fn, parameters="),
])
def test_a_tool_that_no_model_could_call_is_refused(make, error, says):
    """Names, positional parameters and builtins without a signature, where the tool is made."""
    with pytest.raises(error, match=says):
        make()


# ---- several calls at once


def left_over():
    """The threads of tools that are still there."""
    return [thread for thread in threading.enumerate() if thread.name == "minigraph-tool"]


def timed(seconds, ended):
    """What `together` does with calls that take so many seconds: (its place, when it ended) in the order heard."""
    def job(number, length):
        sleep(length)
        return number, now()
    return [lambda number=number, length=length: job(number, length) for number, length in enumerate(seconds)], ended


@pytest.mark.parametrize("seconds, workers, heard", [
    ([], 4, []),
    ([1], 4, [(0, 1)]),
    ([3, 1, 2], 4, [(1, 1), (2, 2), (0, 3)]),
    ([1, 1, 1], 4, [(0, 1), (1, 1), (2, 1)]),
    ([0, 0, 0, 0], 4, [(0, 0), (1, 0), (2, 0), (3, 0)]),
    ([3, 1, 1], 2, [(1, 1), (2, 2), (0, 3)]),  # the third waits for a worker
    ([1, 2], 1, [(0, 1), (1, 3)]),  # one after another
])
def test_calls_run_together_in_virtual_time(seconds, workers, heard):
    """Each is heard when it ends, those of one moment in their order; never more at once than there are workers."""
    for _ in range(5):
        found = []
        with virtual_time():
            jobs, ended = timed(seconds, found.append)
            within(20, lambda: together(jobs, workers, ended))  # noqa: B023
        assert found == heard


def test_calls_run_together_in_real_time():
    """Three that wait for one another get through, and none of the threads is left."""
    barrier, found = threading.Barrier(3, timeout=10), []
    within(20, lambda: together([barrier.wait] * 3, 3, found.append))
    assert sorted(found) == [0, 1, 2]
    assert left_over() == []


def test_no_thread_is_left_that_has_delivered_its_result(monkeypatch):
    """It is waited for to the very end, however long it takes to leave."""
    class Slow(type(RealClock().mailbox())):
        def work(self, fn, *args):
            super().work(fn, *args)
            threading.Event().wait(0.1)

    monkeypatch.setattr(RealClock, "mailbox", lambda self: Slow(self.speed))
    together([lambda: 1, lambda: 2], 2, lambda result: None)
    assert left_over() == []


def test_one_after_another_needs_no_thread():
    """Nor does a single call: they are made on the thread of the caller, in order."""
    for jobs, max_workers in (([threading.get_ident], 16), ([threading.get_ident] * 3, 1)):
        found = []
        together(jobs, max_workers, found.append)
        assert found == [threading.get_ident()] * len(jobs)


def test_what_runs_is_waited_for():
    """ended() that raises stops the rest; what is under way comes to its end first, and no thread is left."""
    seen = []

    def ended(result):
        raise KeyError(result)

    with virtual_time(), pytest.raises(KeyError, match="0"):
        jobs = [lambda: 0, lambda: sleep(5) or seen.append("long"), lambda: seen.append("never begun")]
        within(20, lambda: together(jobs, 2, ended))
    assert seen == ["long"]
    assert left_over() == []


def test_without_threads_calls_run_in_turn(monkeypatch):
    """Where none can be started, as in a browser: the same is heard, at the same times of virtual time."""
    def start(self):
        raise RuntimeError("can't start new thread")

    with virtual_time() as clock:
        found = []
        jobs, ended = timed([3, 1, 2, 1], lambda pair: found.append((*pair, now())))
        monkeypatch.setattr(threading.Thread, "start", start)
        together(jobs, 4, ended)
        monkeypatch.undo()
        assert found == [(1, 1, 1), (3, 1, 1), (2, 2, 2), (0, 3, 3)]
        assert clock.now() == 3


def test_where_threads_run_out_the_rest_waits(monkeypatch):
    """Two can be started, no more: the others follow when one of them is over."""
    real, alive = threading.Thread.start, []

    def start(self):
        if len([thread for thread in alive if thread.is_alive()]) >= 2:
            raise RuntimeError("can't start new thread")
        alive.append(self)
        real(self)

    barrier, found = threading.Barrier(2, timeout=10), []

    def work():
        together([barrier.wait] * 6, 6, found.append)
    monkeypatch.setattr(threading.Thread, "start", start)
    work()
    monkeypatch.undo()
    assert sorted(found) == [0, 0, 0, 1, 1, 1]
