"""The blackboard is one dict: every node reads all of it, and none writes to it.

    state = GraphState({"text": "hi"})
    state["text"]               # 'hi'
    state["txet"]               # KeyError: no 'txet' on the blackboard; it holds 'text'. Did you mean 'text'?

A node returns the keys it made and the engine merges them; while a node holds the state, writing is a TypeError.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from html import escape
from inspect import isawaitable
from typing import Any, NoReturn


class MissingKey(KeyError):
    """A KeyError whose text is a sentence; KeyError itself would print it in quotes."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class GraphState(dict):  # type: ignore[type-arg]
    """The blackboard, and how the run ended beside it.

    A dict in every way (it prints, compares, dumps to JSON and pickles as one), with these attributes:
    `status` (done, failed, paused, max_steps or interrupted), `errors` (node -> text), `exceptions`
    (node -> exception), `path` (the nodes that ran, in order), `visits` (node -> how often), `waiting`
    (gate -> question) and `journal` (the records so far, for resume_graph).
    """

    status: str = "done"
    path: list[str]
    visits: dict[str, int]
    exceptions: dict[str, BaseException]
    waiting: dict[str, Any]
    _held = False  # True while nodes hold it
    _explain: Callable[[str], str] | None = None  # what else to say about a missing key
    _log: Any = None  # of the run: its records
    _graph: Any = None  # that ran
    _unhandled: Sequence[str] = ()  # "node: text" of each failure that was not handled
    _written: Collection[str] = ()  # the keys that nodes wrote

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.path, self.visits, self.exceptions, self.waiting = [], {}, {}, {}

    @property
    def errors(self) -> dict[str, str]:
        """Node -> what went wrong in it, handled errors included; the same dict as state["errors"]."""
        found: dict[str, str] = self.get("errors", {})
        return found

    @property
    def journal(self) -> list[dict[str, Any]]:
        """What happened, record by record: see journal.py. A value in it is the one that was written, not a copy."""
        return list(self._log) if isinstance(self._log, (list, tuple)) else self._log.records() if self._log else []

    def __missing__(self, key: str) -> Any:
        raise MissingKey(missing(key, self) + (self._explain(key) if self._explain else ""))

    def __getstate__(self) -> dict[str, Any]:
        """What pickle keeps beside the keys: all but the exceptions, which need not be picklable."""
        return {"status": self.status, "path": self.path, "visits": self.visits, "waiting": self.waiting,
                "exceptions": {}, "_log": self.journal}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (dict(self),), self.__getstate__()

    def _repr_html_(self) -> str:
        """A small table for Jupyter, which says loudly what failed."""
        loud = "".join(f"<p><b>✗ {escape(str(node))} failed:</b> {escape(str(text))}</p>"
                       for node, text in self.errors.items())
        rows = "".join(f"<tr><td style='text-align:left'><b>{escape(str(key))}</b></td>"
                       f"<td style='text-align:left'>{escape(short(value))}</td></tr>"
                       for key, value in self.items() if key != "errors")
        asked = "".join(f"<p><b>? {escape(gate)} waits for an answer:</b> {escape(str(question))}</p>"
                        for gate, question in self.waiting.items())
        return f"<p>run {escape(self.status)}</p>{loud}{asked}<table>{rows}</table>"

    # Writing: the engine merges with dict's own methods, everybody else is told the rule.

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"a node may not write to the blackboard ({what}): "
                        "return the keys it made instead, as in return {'key': value}")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._refuse(f"state[{key!r}] = ...") if self._held else super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        self._refuse(f"del state[{key!r}]") if self._held else super().__delitem__(key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        self._refuse("state.update(...)") if self._held else super().update(*args, **kwargs)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self._refuse(f"state.setdefault({key!r}, ...)") if self._held else super().setdefault(key, default)

    def pop(self, *args: Any) -> Any:
        return self._refuse("state.pop(...)") if self._held else super().pop(*args)

    def popitem(self) -> Any:
        return self._refuse("state.popitem()") if self._held else super().popitem()

    def clear(self) -> None:
        self._refuse("state.clear()") if self._held else super().clear()

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        return self._refuse("state |= ...") if self._held else super().__ior__(other)


class PastView(GraphState):
    """The blackboard as one visit may see it: what its causal past wrote. Nothing is copied; every look finds its key.

    It asks `run.find(key, visit)` for one key, and `run.past(visit)` for all that there are.
    """

    _held = True

    def __init__(self, run: Any, visit: Any) -> None:
        # One key for dict's own C code: json takes an empty dict for {} without asking its methods.
        dict.__init__(self, errors=None)
        self._run, self._visit = run, visit

    def _all_there(self) -> dict[str, Any]:
        return self._run.past(self._visit)  # type: ignore[no-any-return]

    def __getitem__(self, key: str) -> Any:
        return self._run.find(key, self._visit)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all_there())

    def __len__(self) -> int:
        return len(self._all_there())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._all_there())

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except KeyError:
            return False
        return True

    # dict's own methods read dict's own table; Mapping's read the methods above.
    keys, values, items, get = Mapping.keys, Mapping.values, Mapping.items, Mapping.get  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return dict(self) == other

    def __ne__(self, other: object) -> bool:
        return dict(self) != other

    def __repr__(self) -> str:
        return repr(dict(self))

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return GraphState, (dict(self),)


def missing(key: object, there: Mapping[str, Any] | list[str]) -> str:
    """A sentence about a key that is not on the blackboard: what is, and which of it was perhaps meant."""
    names = [name for name in there if name != "errors"]
    listed = ", ".join(map(repr, names[:12])) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    close = difflib.get_close_matches(str(key), names, n=1)
    return (f"no {key!r} on the blackboard; it holds {listed or 'nothing'}."
            + (f" Did you mean {close[0]!r}?" if close else ""))


class ReadOnly(dict):  # type: ignore[type-arg]
    """The errors, as nodes see them."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a node may not write to the errors: raise an exception instead, and the engine notes it")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


class OwnCopy(GraphState):
    """A copy for one visit of a strict run: even asking for a key that a visit beside it wrote is an error."""

    def __init__(self, originals: dict[str, Any], explain: Callable[[str], str], known: Callable[[str], bool]) -> None:
        super().__init__({key: value if key == "errors" else _copied(value) for key, value in originals.items()})
        self.originals, self._explain, self._known, self._held = originals, explain, known, True

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self or self._known(key) else default


def update(result: Any) -> dict[str, Any] | None:
    """What a node returned, checked: the keys to merge, or None for nothing."""
    if result is None:
        return None
    if type(result) is not dict:
        result = _as_dict(result)
    for key in result:
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is no string: keys of the blackboard are strings, as in {str(key)!r}")
    if "errors" in result:
        raise ValueError("the key 'errors' is the engine's: return only the keys the node made, "
                         "not the whole state, and raise an exception to report an error")
    return result  # type: ignore[no-any-return]


def _as_dict(result: Any) -> dict[str, Any]:
    if isawaitable(result):
        if isinstance(result, Coroutine):
            result.close()
        raise TypeError("the function is async and returned a coroutine; nodes are plain functions that run in "
                        "threads: call your async code with asyncio.run(...) inside one")
    if not isinstance(result, Mapping):
        raise TypeError(f"a node returns a dict of the keys it made, or None, and not {type(result).__name__}: "
                        f"return {{'some_key': {short(result)}}}")
    return dict(result)


def _copied(value: Any) -> Any:
    """A deep copy, or the value itself where there can be none (a lock, a connection)."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def untouched(given: GraphState, before: Mapping[str, Any]) -> None:
    """Raises TypeError if a node changed, in place, a value that it was given."""
    for key, value in before.items():
        try:
            same = key in given and bool(given[key] == value)
            comparable = same or bool(_copied(value) == value)
        except Exception:  # a value that cannot be compared cannot be checked
            continue
        if not same and comparable:
            raise TypeError(f"the node changed {key!r} in place, where others may be reading it: "
                            f"copy it, change the copy and return {{{key!r}: ...}}")


def short(value: Any, limit: int = 200) -> str:
    """The value as it shows itself, cut to so many characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
