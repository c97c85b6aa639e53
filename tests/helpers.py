"""What several tests use: a graph from one line, a limit on how long something may take, an observer that remembers."""

from __future__ import annotations

import contextvars
import faulthandler
import gc
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from minigraph import END, START, Graph


def within(seconds: float, fn: Callable[[], Any]) -> Any:
    """Return `fn()`, called in a thread of its own; a hang fails the test, and shows where every thread stands."""
    box: dict[str, Any] = {}

    def work() -> None:
        try:
            box["result"] = fn()
        except BaseException as error:  # handed to the caller, whatever it is
            box["error"] = error

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        faulthandler.dump_traceback(file=sys.__stderr__)
        raise AssertionError(f"not over after {seconds} s: it hangs")
    if "error" in box:
        raise box["error"]
    return box.get("result")


@contextmanager
def nothing_left_unawaited() -> Iterator[None]:
    """Fail if within the block a coroutine is thrown away that was neither awaited nor closed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in caught if "never awaited" in str(warning.message)] == []


class Heard:
    """An observer: the events in the order in which they came, as (kind, event)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, kind: str, event: dict[str, Any]) -> None:
        self.events.append((kind, event))

    def __getitem__(self, kind: str) -> list[dict[str, Any]]:
        return [event for k, event in self.events if k == kind]

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]

    @property
    def waves(self) -> list[list[str]]:
        """The nodes of each wave, from the starts of nodes alone."""
        found: dict[int, list[str]] = {}
        for event in self["node_start"]:
            found.setdefault(event["wave"], []).append(event["node"])
        return [found[wave] for wave in sorted(found)]


def note(name: str) -> Callable[[Any], dict[str, Any]]:
    """Return a node function that writes its own name."""
    return lambda state: {name: True}


def make(edges: str, *, routers: dict[str, Any] | None = None, name: str = "test", **nodes: Any) -> Graph:
    """Return a graph from one line, as in `make("START>a a>b,c b>END", b=function)`.

    A node is a function, or a dict with what add_node takes; without one it writes its own name. Nodes are added in the
    order in which the edges name them, then those of the keywords and the routers. routers: node -> (route, targets).
    """
    graph, pairs = Graph(name), [pair.split(">") for pair in edges.split()]
    named = [end for src, dsts in pairs for end in (src, *dsts.split(","))]
    labels = [ends for _, targets in (routers or {}).values() for ends in targets.values()]
    targets = [end for ends in labels for end in ([ends] if isinstance(ends, str) else ends)]
    for node in dict.fromkeys([*named, *nodes, *targets]):
        if node in (START, END):
            continue
        spec = nodes.get(node, {})
        spec = dict(spec) if isinstance(spec, dict) else {"fn": spec}
        graph.add_node(node, spec.pop("fn", note(node)), **spec)
    for src, dsts in pairs:
        for dst in dsts.split(","):
            graph.add_edge(src, dst)
    for src, (route, labelled) in (routers or {}).items():
        graph.add_router(src, route, labelled)
    return graph
