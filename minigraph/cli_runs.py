"""The commands whose runs are kept: a message triaged, a text on its way out, a lead; and whatever became of them.

    python -m minigraph triage "When does release 2.4 go out?"
    python -m minigraph content "You IDIOTS. Read the manual."      content-1 waits for a person
    python -m minigraph runs                                        every run, and who waits for whom
    python -m minigraph resume content-1 --answer person=drop

The result is what goes to standard output. Exit code 3: the run waits for a person.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from . import runs
from .engine import GraphError, GraphState, JournalError
from .store import SqliteStore, StoreError
from .terminal import WAITS, Complaint, listed, note, reason, say, say_json, shortened, table
from .trace import Trace

Start = Callable[[Any], "tuple[GraphState, Trace]"]  # the journal -> the run
Save = Callable[[argparse.Namespace, "list[Trace]"], None]


# ---- what can be typed


def add_commands(commands: Any, pictures: Callable[[Any], None], save: Save, own_graph: Callable[[str], Any]) -> None:
    """The commands, added to a parser's. pictures(parser) adds --png and --svg; own_graph: module:name -> Graph.

    save(options, traces) writes the trace and the pictures that were asked for.
    """
    triage = commands.add_parser("triage", help="what a message needs: a friendly word, the agent loop, or a person",
                                 description="Sorts a message and answers it; without one, all of data/inbox.jsonl. "
                                             "The models are stubs that decide from the text.")
    what = triage.add_mutually_exclusive_group()
    what.add_argument("text", metavar="MESSAGE", nargs="?", help="the message; - reads it from standard input")
    what.add_argument("--inbox", metavar="FILE", help="all messages of a file, a JSON object a line: id, from, text")
    triage.add_argument("--sender", metavar="NAME", default="", help="who wrote it")
    _files(triage, "in data/", "calendar", "memory", "web", "date")
    triage.set_defaults(command=_triage)

    content = commands.add_parser("content", help="a text drafted, checked, mended, and saved or shown to a person",
                                  description="Takes a text, or a topic in a few words, through three checks; without "
                                              "one, all of data/drafts.jsonl. The models are stubs that decide from "
                                              "the text. Exit code 3: it waits for a person.")
    what = content.add_mutually_exclusive_group()
    what.add_argument("text", metavar="TEXT", nargs="?", help="the text; - reads it from standard input")
    what.add_argument("--drafts", metavar="FILE", help="all drafts of a file, a JSON object a line: id, text")
    _files(content, "in data/", "memory", "web")
    content.set_defaults(command=_content)

    leads = commands.add_parser("leads", help="is this contact worth a call today?",
                                description="Scores a contact and notes what is to be done; without one, says who "
                                            "there is. A call of the model costs a credit; a new book begins with 20.")
    leads.add_argument("contact", metavar="CONTACT", nargs="?", help="an id, as c01")
    _files(leads, "in data/", "contacts", "companies", "deals", "messages")
    leads.add_argument("--book", metavar="FILE", help="where contacts, actions and credits are kept (default: leads.db "
                                                      "in the outbox)")
    leads.add_argument("--credits", metavar="N", type=int, help="with how many credits a new book begins")
    leads.set_defaults(command=_leads)
    for parser in (triage, content, leads):
        parser.add_argument("--schedule", choices=["waves", "ready"], default="waves",
                            help="waves: all ready nodes together, then a barrier; ready: each as soon as it can")
        _run_options(parser, pictures, save)
    _kept_commands(commands, pictures, save, own_graph)


def _kept_commands(commands: Any, pictures: Callable[[Any], None], save: Save, own_graph: Callable[[str], Any]) -> None:
    found = commands.add_parser("runs", help="the runs that are kept, and which of them wait for a person",
                                description="Lists every run of the store, in the order in which they began.")
    found.set_defaults(command=_runs)
    history = commands.add_parser("history", help="what happened in a run, record by record",
                                  description="Shows the records of a run; `resume --from` takes their numbers.")
    history.add_argument("run", metavar="RUN", help="its id, as content-1")
    history.set_defaults(command=_history)
    for parser in (found, history):
        _store_option(parser)
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    resume = commands.add_parser("resume", help="goes on with a run: answers its question, or tries another way",
                                 description="Goes on with a run that waits for a person, was killed, or is to go "
                                             "another way from an earlier moment. No node that has ended runs again. "
                                             "Exit code 3: it waits for a person.")
    resume.add_argument("run", metavar="RUN", help="its id, as content-1; `runs` lists them")
    resume.add_argument("--answer", metavar="GATE=ANSWER", action="append", default=[], help="what the person says")
    resume.add_argument("--edit", metavar="KEY=VALUE", action="append", default=[],
                        help="change a key of the blackboard first; a VALUE that is JSON is taken as JSON")
    resume.add_argument("--from", metavar="K", dest="upto", type=int,
                        help="a new run that begins with the first K records of this one; `history` numbers them")
    resume.add_argument("--graph", metavar="MODULE:NAME", help="the graph, if it is one of yours")
    resume.add_argument("--max-steps", metavar="N", type=int, help="how many node runs there may be over all")
    _files(resume, "that the run began with", "calendar", "github", "memory", "web", "book")
    _run_options(resume, pictures, save)
    resume.set_defaults(command=_resume, own_graph=own_graph)


KINDS = {"calendar": "a calendar, .ics", "memory": "notes, a JSON object a line: id, date, text, tags",
         "web": "saved search results, JSON", "github": "pulls and issues, as GitHub's REST interface answers",
         "contacts": "CSV", "companies": "CSV", "deals": "CSV", "messages": "a JSON object a line",
         "book": "a book of leads"}


def _files(parser: argparse.ArgumentParser, default: str, *names: str) -> None:
    files = parser.add_argument_group(f"what to read (default: the files {default})")
    for name in names:
        if name == "date":
            files.add_argument("--date", metavar="YYYY-MM-DD", help="the day (default: the day data/ was made for, or "
                                                                    "today with a calendar of yours)")
        else:
            files.add_argument(f"--{name}", metavar="FILE", help=KINDS[name])


def _run_options(parser: argparse.ArgumentParser, pictures: Callable[[Any], None], save: Save) -> None:
    parser.set_defaults(save=save)
    parser.add_argument("--live", action="store_true", help="ask the model that the environment names, ANTHROPIC_MODEL "
                                                            "or OPENAI_MODEL with its key, and not a stub")
    out = parser.add_argument_group("what to write")
    out.add_argument("--outbox", metavar="DIR", help="where files for a person go (default: ./outbox)")
    _store_option(out)
    out.add_argument("--trace", metavar="FILE", help="also save what happened, an event a line")
    out.add_argument("--json", action="store_true", help="print one JSON object: how it ended, and the blackboard")
    pictures(out)


def _store_option(parser: Any) -> None:
    parser.add_argument("--store", metavar="FILE", default=runs.STORE,
                        help=f"where runs are kept (default: {runs.STORE})")


# ---- commands that begin runs


def _triage(options: argparse.Namespace) -> int:
    from .workflows import triage
    model = _model(options)

    def start(text: str, sender: str) -> Start:
        return lambda journal: triage.run(text, options.date, options.calendar, options.memory, options.web,
                                          options.outbox, sender=sender, model=model, schedule=options.schedule,
                                          journal=journal, trace=_trace(options))
    if options.text is None:
        rows = _rows(lambda: triage.inbox(options.inbox))
        return _many(options, "triage", [(row, start(row["text"], row["from"])) for row in rows])
    return _one(options, "triage", start(_typed(options.text, "message"), options.sender))


def _content(options: argparse.Namespace) -> int:
    from .workflows import content
    model = _model(options)

    def start(text: str) -> Start:
        return lambda journal: content.run(text, options.memory, options.web, options.outbox, model=model,
                                           schedule=options.schedule, journal=journal, trace=_trace(options))
    if options.text is None:
        rows = _rows(lambda: content.drafts(options.drafts))
        return _many(options, "content", [(row, start(row["text"])) for row in rows])
    return _one(options, "content", start(_typed(options.text, "text")))


def _leads(options: argparse.Namespace) -> int:
    from .workflows import leads
    from .workflows.leadbook import Book
    path = options.book or runs.book_in(options.outbox or "outbox")
    files = {name: getattr(options, name) for name in ("contacts", "companies", "deals", "messages", "credits")}
    with _complaining(), _folder_of(path), Book(path, **files) as book:
        if options.contact is None:
            return _who(options, book)
        model, who = _model(options), book.known(options.contact)
        return _one(options, "leads", lambda journal: leads.run(
            who, book, model=model, schedule=options.schedule, journal=journal, trace=_trace(options)))


def _who(options: argparse.Namespace, book: Any) -> int:
    """Who there is, and what is noted about them."""
    rows = book.ask("SELECT contacts.*, (SELECT group_concat(action, ', ') FROM actions WHERE contact = contacts.id) "
                    "AS noted FROM contacts ORDER BY id")
    if options.json:
        say_json({"contacts": rows, "credits": book.credits.left})
    else:
        say(table([["id", "name", "company", "noted"],
                   *([row["id"], row["name"], row["company"], row["noted"] or ""] for row in rows)]))
        first = rows[0]["id"] if rows else "ID"
        note(f"{book.credits.left} credits; python -m minigraph leads {first} scores one of them")
    return 0


def _one(options: argparse.Namespace, workflow: str, start: Start) -> int:
    """One run, from its beginning: kept, and told."""
    id, (state, trace) = _kept(options, workflow, start)
    return _told(options, workflow, id, state, trace)


def _many(options: argparse.Namespace, workflow: str, starts: list[tuple[dict[str, Any], Start]]) -> int:
    """A run for each row of a file, and a line for each run."""
    if options.trace or options.png or options.svg:
        raise Complaint(f"--trace, --png and --svg are for one run, and these are {len(starts)}: type one text")
    rows, found = [["run", "of", "ended", "what came of it"]], []
    for row, start in starts:
        id, (state, _) = _kept(options, workflow, start)
        found.append({"id": row["id"], **runs.as_dict(workflow, id, state)})
        came = runs.outcome(workflow, state) or "; ".join(map(str, state.waiting.values()))
        rows.append([id or "not kept", row["id"], f"{state.status}: {state.path[-1]}", shortened(came)])
    say_json(found) if options.json else say(table(rows))
    waiting = [run["run"] for run in found if run["status"] == "paused"]
    if waiting:
        note(f"{listed(waiting)} wait for a person: python -m minigraph resume {waiting[0]} shows the question")
    return 0


def _kept(options: argparse.Namespace, workflow: str, start: Start) -> tuple[str | None, tuple[GraphState, Trace]]:
    """(the run's id, what `start` returned). Where no run can be kept a message is answered all the same."""
    try:
        with _folder_of(options.store):
            return runs.begin(SqliteStore(options.store), workflow, start)
    except (StoreError, JournalError, OSError) as error:
        if workflow != "triage":
            raise Complaint(reason(error)) from None
        note(f"minigraph: this run is not kept: {reason(error)}")
    except ValueError as error:
        raise Complaint(reason(error)) from None
    with _complaining():
        return None, start(None)


# ---- commands about runs


def _runs(options: argparse.Namespace) -> int:
    with _complaining():
        store = _store(options)
        rows = list(store.list()) if store else []
        found = [_described(store, row) for row in rows]
    if options.json:
        say_json(found)
    elif not found:
        note(f"no runs yet in {options.store}; python -m minigraph content \"A text of yours.\" makes one")
    else:
        say(table([["run", "graph", "status", "records", "begun", ""],
                   *([run["run"], run["graph"], run["status"], str(run["records"]), run["begun"][:19].replace("T", " "),
                      run["note"]] for run in found)]))
    return 0


def _described(store: Any, row: Any) -> dict[str, Any]:
    """A run, for the table: `ended` is looked into, where the graph is one of ours."""
    status, words = row.status, list[str]()
    waiting: dict[str, Any] = {}
    if row.status != "running" and row.records and row.workflow in runs.WORKFLOWS:
        try:
            ended, waiting = runs.standing(store.load(row.id))
            status = row.status if ended == "unfinished" and row.status != "ended" else ended
        except StoreError as error:  # the others can be listed all the same
            status, words = "damaged", [reason(error)]
    if row.origin is not None:
        words.append(f"the first {row.origin.records} records of {row.origin.run}")
    words += [f"{gate} asks: {shortened(str(question), 50)}" for gate, question in waiting.items()]
    return {"run": row.id, "graph": row.workflow, "status": status, "records": row.records,
            "begun": row.started.isoformat(), "waiting": waiting, "note": "; ".join(words),
            "origin": row.origin._asdict() if row.origin else None}


def _history(options: argparse.Namespace) -> int:
    with _complaining():
        store = _existing(options)
        rows, records = list(store.history(options.run)), store.load(options.run)
    if options.json:
        say_json([{"number": row.number, "when": row.when.isoformat(), "what": row.what, "record": record}
                  for row, record in zip(rows, records, strict=True)])
    else:
        say(table([["record", "when", "what"],
                   *([str(row.number), f"{row.when:%Y-%m-%d %H:%M:%S}", row.what] for row in rows)]))
    return 0


def _resume(options: argparse.Namespace) -> int:
    answers = dict(_pair(text, "--answer", "person=publish") for text in options.answer)
    edits = {key: _value(text) for key, text in (_pair(text, "--edit", "score=0.9") for text in options.edit)}
    trace = _trace(options) or Trace()
    with _complaining():
        store = _existing(options)
        records = store.load(options.run)
        with _graph_of(options, records) as graph:
            for key, maybe in runs.unknown_keys(records, edits).items():
                note(f"nothing has written {key!r} so far{f'; did you mean {maybe!r}?' if maybe else ''}")
            id, state = runs.go_on(store, options.run, graph, answers, edits=edits or None, upto=options.upto,
                                   observer=trace, max_steps=options.max_steps)
    if id != options.run:
        note(f"{id} begins with the first {options.upto} records of {options.run}")
    return _told(options, graph.name, id, state, trace)


def _graph_of(options: argparse.Namespace, records: list[dict[str, Any]]) -> Any:
    """The graph, for the length of a block: that of the run's first record, or the one that is named."""
    if options.graph:
        return nullcontext(options.own_graph(options.graph))
    try:
        runs.workflow_of(records)
    except LookupError as error:
        way_out = ", --graph module:name" if records else ""
        raise Complaint(f"run {options.run!r} cannot be resumed: {error.args[0]}{way_out}") from None
    files = {name: getattr(options, name) for name in ("calendar", "github", "memory", "web", "book", "outbox")}
    return runs.wired(records, _model(options), **files)


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Complaint(f"{option} {text!r}: it is written as NAME=VALUE, as in {option} {example}")
    return name.strip(), value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# ---- what came of it


def _told(options: argparse.Namespace, workflow: str, id: str | None, state: GraphState, trace: Trace) -> int:
    """Prints what came of a run; returns the exit code."""
    options.save(options, [trace])
    errors = "; ".join(f"{name}: {text}" for name, text in state.errors.items())
    if options.json:
        say_json(runs.as_dict(workflow, id, state))
    elif text := runs.outcome(workflow, state):
        say(text)
    failed = state.status in ("failed", "max_steps") or runs.is_sorry(workflow, state)
    if not options.json and not failed:
        note(f"{id or workflow}: {runs.in_words(workflow, state)}" + (f" ({errors})" if errors else ""))
    if state.status == "paused":
        return _asked(options, id, state)
    if failed:
        way_out = runs.way_out(id, state) if id else ""
        raise Complaint(f"{id or workflow} did not come to its end: {errors}{way_out and '; '}{way_out}")
    return 0


def _asked(options: argparse.Namespace, id: str | None, state: GraphState) -> int:
    """Says what is asked, and how to answer."""
    for gate, question in state.waiting.items():
        choices = getattr(question, "choices", None)
        note(f"\n{question}\n")
        elsewhere = "" if options.store == runs.STORE else f" --store {options.store}"
        answer = choices[0] if choices else '"..."'
        note(f"answer with: python -m minigraph resume {id} --answer {gate}={answer}{elsewhere}"
             + (f"   (or {', '.join(choices[1:])})" if choices else ""))
    return WAITS


# ---- helpers


@contextmanager
def _complaining() -> Iterator[None]:
    """Bad input of any kind becomes a Complaint."""
    try:
        yield
    except GraphError:
        raise  # which is one already
    except (StoreError, JournalError, ValueError, OSError, RuntimeError) as error:
        raise Complaint(reason(error)) from None


@contextmanager
def _folder_of(path: str) -> Iterator[None]:
    """The folder of the file is made, if it is not there."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    yield


def _store(options: argparse.Namespace) -> SqliteStore | None:
    """The store, if it is there: to look is not to make one."""
    return SqliteStore(options.store) if Path(options.store).exists() else None


def _existing(options: argparse.Namespace) -> SqliteStore:
    store = _store(options)
    if store is None:
        raise Complaint(f"there is no store {options.store!r}: `runs` lists the runs of one, --store names another")
    return store


def _typed(text: str, what: str) -> str:
    """What was typed, or piped; a Complaint if that is nothing."""
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise Complaint(f"there is no {what}: type one, in quotation marks, or - to read it from standard input")
    return text


def _rows(read: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    from .workflows.sources import SourceError
    try:
        return read()
    except SourceError as error:
        raise Complaint(str(error)) from None


def _model(options: argparse.Namespace) -> Any:
    """None for the stubs; with --live what the environment names."""
    if not options.live:
        return None
    from .models.base import ModelError
    from .models.env import model_from_env
    from .models.stub import ScriptedModel
    nobody = ScriptedModel([])
    try:
        model = model_from_env(nobody)
    except ModelError as error:
        raise Complaint(str(error)) from None
    if model is nobody:
        raise Complaint("--live: no model is named: set ANTHROPIC_MODEL and ANTHROPIC_API_KEY, or OPENAI_MODEL with "
                        "OPENAI_API_KEY or OPENAI_BASE_URL")
    return model


class _Heard(Trace):
    """A trace that says on standard error which node ended, when it ends."""

    def __call__(self, kind: str, event: dict[str, Any]) -> None:
        super().__call__(kind, event)
        if kind == "node_end":
            note(f"  {event['t']:7.3f} s  {event['node']}")


def _trace(options: argparse.Namespace) -> Trace | None:
    return _Heard() if options.live and sys.stderr.isatty() else None
