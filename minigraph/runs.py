"""Runs that are kept: begun under an id that nobody has, looked at, and gone on with, by what their first record says.

    store = SqliteStore("outbox/runs.db")
    id, (state, trace) = begin(store, "content", lambda journal: content.run("Hm", journal=journal))    # 'content-1'
    with wired(store.load(id)) as graph:                        # the graph that its first record names
        go_on(store, id, graph, {"person": "drop"})

A workflow notes which files it was given in state["files"], so that a run can be resumed from anywhere.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from .engine import Graph, GraphError, GraphState
from .resume import resume_graph
from .store import SqliteStore, StoreError
from .workflows.measured import on_clock

WORKFLOWS = ("gather", "triage", "content", "leads")
STORE = "outbox/runs.db"

Record = dict[str, Any]


# ---- a new run


def begin(store: SqliteStore, workflow: str, start: Callable[[Any], Any]) -> tuple[str, Any]:
    """(its id, what `start(journal)` returned): a run under the first number that is free, as in content-1."""
    number = next_number(store, workflow)
    while True:
        try:
            return f"{workflow}-{number}", start(store.run(f"{workflow}-{number}"))
        except StoreError:
            if next_number(store, workflow) <= number:  # not that somebody else was faster
                raise
            number += 1


def next_number(store: SqliteStore, workflow: str) -> int:
    """One more than the highest number that a run of the workflow has."""
    ends = (row.id.removeprefix(f"{workflow}-") for row in store.list() if row.id.startswith(f"{workflow}-"))
    return 1 + max((int(end) for end in ends if end.isascii() and end.isdigit()), default=0)


# ---- a run as it stands


def standing(records: Sequence[Record]) -> tuple[str, dict[str, Any]]:
    """(status, gate -> question) of a run of a workflow: done, failed, paused, or unfinished if more would have run.

    The records are played to their end, and nothing is called.
    """
    try:
        state = resume_graph(_stilled(shape_of(workflow_of(records))), records)
    except (_MoreToDo, GraphError, LookupError):
        return "unfinished", {}
    return state.status, dict(state.waiting)


class _MoreToDo(BaseException):
    """Raised by a node that would really have run: no Exception, for a handler would take it for a failure."""


def _stilled(graph: Graph) -> Graph:
    """The graph, in which no node does anything but those that ask a person."""
    def more_to_do(state: Any) -> None:
        raise _MoreToDo

    still = Graph(graph.name)
    for node in graph.nodes.values():
        still.add_node(node if node.gate() else replace(node, fn=more_to_do))
    for src, ends in graph.edges.items():
        for dst in ends:
            still.add_edge(src, dst)
    for src, (route, targets) in graph.routers.items():
        still.add_router(src, route, {label: list(ends) for label, ends in targets.items()})
    return still


def unknown_keys(records: Sequence[Record], edits: Mapping[str, Any]) -> dict[str, str]:
    """Key -> the key that was perhaps meant, or "", for edits of what nothing has written so far."""
    known = set(records[0].get("state", {})).union(*(record.get("writes") or () for record in records))
    return {key: next(iter(difflib.get_close_matches(key, known, n=1)), "") for key in edits if key not in known}


# ---- what came of it


def outcome(workflow: str, state: GraphState) -> str:
    """What the run was for: an answer, a text, a score with its reasons; "" if it did not come to that."""
    if workflow == "content":
        return str(state["text"] if "text" in state else state["rough"]) if "saved" in state else ""
    if workflow == "leads":
        return _lead(state["result"]) if "result" in state else ""
    key = {"triage": "answer", "gather": "synthesis"}.get(workflow)
    return str(state.get(key, "")) if key else json.dumps(state, indent=2, ensure_ascii=False, default=str)


def _lead(result: Mapping[str, Any]) -> str:
    score = "not scored" if result["score"] is None else f"{result['band']} ({result['score']:.2f})"
    lines = [f"{score}: {result['action_taken']}", *(f"- {why}" for why in result["reasons"])]
    return "\n".join([*lines, *(["", result["drafted_message"]] if result.get("drafted_message") else [])])


def in_words(workflow: str, state: GraphState) -> str:
    """How the run went, in a few words."""
    if state.status != "done":
        return f"waits for an answer at {', '.join(state.waiting)}" if state.status == "paused" else state.status
    if workflow == "triage":
        return f"{state.get('intent', 'unknown')}, answered by {state.path[-1]}"
    if workflow == "content":
        times = ["", ", revised once", ", revised twice"][state.visits.get("revise", 0)]
        return f"saved as {state['saved']}{times}" if "saved" in state else "dropped, as the person decided"
    return f"done, {len(state.path)} node runs"


def is_sorry(workflow: str, state: GraphState) -> bool:
    """Could nothing answer the message?"""
    from .workflows.triage import SORRY
    return workflow == "triage" and state.get("answer", SORRY) == SORRY


def way_out(id: str, state: GraphState) -> str:
    """What can be typed after a failure."""
    if state.status == "max_steps":
        return f"python -m minigraph resume {id} --max-steps N goes on"
    upto = max((number for number, record in enumerate(state.journal) if "error" in record), default=0)
    return f"python -m minigraph resume {id} --from {upto} tries again from before that" if upto else ""


def as_dict(workflow: str, id: str | None, state: GraphState) -> dict[str, Any]:
    """How the run ended, and the blackboard, for a program."""
    return {"run": id, "workflow": workflow, "status": state.status, "waiting": dict(state.waiting),
            "path": state.path, "state": {**state}}


# ---- going on


def go_on(store: SqliteStore, id: str, graph: Graph, answers: Mapping[str, Any] | None = None, *,
          edits: Mapping[str, Any] | None = None, upto: int | None = None, **options: Any) -> tuple[str, GraphState]:
    """(id, state): the run, resumed; with `upto` a new run that begins with so many of its records.

    options: for resume_graph. GraphError or StoreError: it cannot be done; a new run is not left behind then.
    """
    if upto is None:
        return id, resume_graph(graph, store.load(id), answers, edits=edits, journal=store.run(id), **options)
    new = f"{graph.name}-{next_number(store, graph.name)}"
    journal = store.fork(id, upto, new)
    try:
        return new, resume_graph(graph, store.load(new), answers, edits=edits, journal=journal, **options)
    except GraphError:
        if len(store.load(new)) == upto:  # nothing ran
            store.delete(new)
        raise


@contextmanager
def wired(records: Sequence[Record], model: Any = None, **files: Any) -> Iterator[Graph]:
    """The graph of the workflow that these records are of, wired to the files it was given, and the clock it runs on.

    files: name -> path, in place of those. model: as in `run` of the workflow. LookupError: none of the WORKFLOWS.
    """
    name, state = workflow_of(records), records[0]["state"]
    given = {**state.get("files", {}), **{key: path for key, path in files.items() if path is not None}}
    with on_clock(None if model is None else 1.0), _WIRED[name](state, model, given) as graph:
        yield graph


def workflow_of(records: Sequence[Record]) -> str:
    """Which of the WORKFLOWS these records are of; LookupError if they are of none."""
    if not records:
        raise LookupError("it holds no records, so it never began: start it anew")
    name = str((records[0].get("shape") or {}).get("name"))
    if name not in WORKFLOWS:
        raise LookupError(f"its graph is {name!r}, which is none of {', '.join(WORKFLOWS)}: say which one it is")
    return name


def shape_of(workflow: str) -> Graph:
    """The graph of a workflow, wired to nothing."""
    graph: Graph = import_module(f".workflows.{workflow}", __package__).shape()
    return graph


@contextmanager
def _gather(state: Mapping[str, Any], model: Any, files: Mapping[str, Any]) -> Iterator[Graph]:
    from .workflows import gather, sources
    places = {name: files.get(name) for name in gather.SOURCES}
    yield gather.build(gather.default_scans(**places), model or gather.stub_model(),
                       partial(sources.write_outbox, files.get("outbox", "outbox")))


@contextmanager
def _triage(state: Mapping[str, Any], model: Any, files: Mapping[str, Any]) -> Iterator[Graph]:
    from .workflows import triage
    yield triage.wired(**_only(files, "calendar", "memory", "web", "outbox"), model=model)


@contextmanager
def _content(state: Mapping[str, Any], model: Any, files: Mapping[str, Any]) -> Iterator[Graph]:
    from .workflows import content
    yield content.wired(**_only(files, "memory", "web", "outbox"), model=model)


@contextmanager
def _leads(state: Mapping[str, Any], model: Any, files: Mapping[str, Any]) -> Iterator[Graph]:
    from .workflows import leads
    from .workflows.leadbook import Book
    with Book(files.get("book") or book_in(files.get("outbox", "outbox"))) as book:
        yield leads.build({name: getattr(book, name) for name in leads.READS}, model or leads.stub_model(),
                          partial(book.credits.one, state["contact_id"]), book.act)


_WIRED = {"gather": _gather, "triage": _triage, "content": _content, "leads": _leads}


def book_in(outbox: str) -> str:
    """Where the contacts, and what was done about them, are kept unless somebody says otherwise."""
    return str(Path(outbox) / "leads.db")


def _only(files: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: files[name] for name in names if name in files}
