"""A store keeps journals in one SQLite file: whole after kill -9, one writer a run, a sentence for what goes wrong."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers import make

from minigraph import run_graph
from minigraph.dbfile import DatabaseFile
from minigraph.engine import JournalError
from minigraph.resume import resume_graph
from minigraph.store import Origin, SqliteStore, StoreError, in_words

ROOT = Path(__file__).resolve().parent.parent
FIRST: dict[str, Any] = {"shape": {"name": "letters", "nodes": [], "edges": []}, "schedule": "waves", "state": {"n": 1}}
HEAD = f"""
import json, os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from minigraph.store import SqliteStore, StoreError
def say(*what): os.write(1, (" ".join(map(str, what)) + chr(10)).encode())  # whole, or not at all
"""


def note(number: int, text: str = "") -> dict[str, Any]:
    return {"node": "a", "visit": number, "writes": {"text": text}}


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "runs.db")


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python on a piece of code, in the folder of the store; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HEAD + textwrap.dedent(code), *map(str, arguments)]
        started.append(subprocess.Popen(command, cwd=tmp_path, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def filled(store: SqliteStore, id: str, records: int) -> SqliteStore:
    """Return the store, with a run of so many records in it."""
    with store.run(id) as log:
        for number in range(records):
            log(note(number) if number else FIRST)
    return store


def refusal(call: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(StoreError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- what goes in comes out


AWKWARD = ["", "a\nb\t\x00\x1b[31m\x7f\u2028", "é 漢字 🦜", "half \ud83d, other half \ude00",
           "\ud83d\ude00 as two halves", '"quoted" \\ \'single\' <b>&amp;</b>', "x" * 100_000]


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_a_record_comes_back_as_it_was(store: SqliteStore, text: str) -> None:
    """Any text survives, as a value, as a key and as the id of the run: control characters, halves of surrogates."""
    record = {"node": text, "visit": 1, "writes": {text: [text, {"deep": [1, 2.5, -0.0, 10**30, True, None]}]}}
    with store.run(text or "empty") as log:
        log(FIRST)
        log(record)
    assert store.load(text or "empty") == [FIRST, record]
    assert list(store.load(text or "empty")[1]) == ["node", "visit", "writes"]
    assert store.list()[0].id == (text or "empty")
    assert str(store.list()).count("\n") == 1 == str(store.history(text or "empty")).count("\n") - 1


def test_records_are_text_that_anybody_can_read(store: SqliteStore) -> None:
    """A record is JSON in a table, not a pickle, and accents in it are themselves."""
    with store.run("monday") as log:
        log({"node": "a", "visit": 1, "writes": {"name": "Žofie"}})
    with sqlite3.connect(store.file.path) as db:
        stored = db.execute("SELECT typeof(record), record FROM records").fetchall()
    db.close()
    assert stored == [("text", '{"node": "a", "visit": 1, "writes": {"name": "Žofie"}}')]


@pytest.mark.parametrize("id", ["", None, 7, b"monday", ["monday"]])
def test_an_id_is_a_string_with_something_in_it(store: SqliteStore, id: Any) -> None:
    """Other ids are refused at once."""
    assert refusal(store.run, id) == f"the id of a run is a string that is not empty, as in 'monday'; got {id!r}"
    assert refusal(store.load, id) == f"the id of a run is a string that is not empty, as in 'monday'; got {id!r}"


def test_ids_are_told_apart(store: SqliteStore) -> None:
    """Ids that differ in case, a space, a NUL or a way to write a letter are different runs; none is a path."""
    ids = ["monday", "Monday", "monday ", "monday\0", "../monday", "caf\u00e9", "cafe\u0301", "%", "_"]
    for number, id in enumerate(ids):
        with store.run(id) as log:
            log(note(number))
    assert [store.load(id) for id in ids] == [[note(number)] for number in range(len(ids))]
    assert sorted(path.name for path in Path(store.file.path).parent.iterdir()) == ["runs.db", "runs.db.locks"]


def test_an_unknown_run_is_an_error_that_names_those_there_are(store: SqliteStore) -> None:
    """load, history, fork and delete say what there is, and what was perhaps meant; asking makes no file."""
    for call in (store.load, store.history, store.delete, lambda id: store.fork(id, 1, "new")):
        assert refusal(call, "mondey") == f"no run 'mondey' in {store.file.name!r}; it holds no runs yet"
    assert store.list() == [] and str(store.list()) == "(none)" and store.origin("mondey") is None
    assert not os.listdir(Path(store.file.path).parent)
    filled(store, "tuesday", 1)
    assert refusal(store.load, "x") == f"no run 'x' in {store.file.name!r}; there is 'tuesday'"
    filled(store, "monday", 1)
    assert refusal(store.history, "mondey") == (
        f"no run 'mondey' in {store.file.name!r}; did you mean 'monday'? there are 'tuesday', 'monday'")
    for number in range(8):
        filled(store, f"run {number}", 1)
    assert refusal(store.load, "x").endswith("'run 7' and 2 earlier")


def test_records_may_come_from_any_thread(store: SqliteStore) -> None:
    """Records of many threads at once are all kept, each once, from the first on; the store starts no thread."""
    before, together = threading.active_count(), threading.Barrier(8)

    def write(number: int) -> None:
        if number < 8:
            together.wait(10)
        log(note(number))

    with store.run("monday") as log, ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))
    assert sorted(record["visit"] for record in store.load("monday")) == list(range(200))
    assert threading.active_count() == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="it is /proc that tells which files are open")
def test_nothing_stays_open(store: SqliteStore, tmp_path: Path) -> None:
    """A file is open while a run is written, and not after: not after close(), not after an error, not when the
    journal is thrown away."""
    def still_open() -> list[str]:
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return [target for link in links if os.path.islink(link) and str(tmp_path) in (target := os.readlink(link))]

    filled(store, "monday", 3)
    store.list(), store.load("monday"), store.history("monday"), store.fork("monday", 2, "b"), store.delete("b")
    refusal(store.run("monday").begin, 0)
    refusal(store.load, "nobody")
    log = store.run("monday")
    log.begin(3)
    assert len(still_open()) > 0
    refusal(store.run("monday").begin, 3)
    log.close()
    assert still_open() == []
    store.run("monday")(note(3))
    gc.collect()
    assert still_open() == []


def test_a_record_costs_its_own_size(store: SqliteStore) -> None:
    """After a state of 2 MB, a record of 200 bytes still adds a page or two to the file, and no more."""
    with store.run("monday") as log:
        log({**FIRST, "state": {"text": "x" * 2_000_000}})
        log(note(1))
        before = os.path.getsize(store.file.path + "-wal")
        for number in range(2, 102):
            log(note(number, "y" * 150))
        assert os.path.getsize(store.file.path + "-wal") - before < 100 * 2.5 * 4096


# ---- kill -9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here, nor SIGKILL")
def test_killed_in_the_middle_of_writing(store: SqliteStore, child: Callable[..., subprocess.Popen[str]]) -> None:
    """A process killed with SIGKILL while it writes, 20 times, leaves a whole beginning: every record that it was told
    is committed, in order, without a gap, and at most the one that it was writing."""
    forks_writers = child("""
        for line in sys.stdin:
            pid = os.fork()
            if pid == 0:
                log, number = SqliteStore("runs.db").run("monday"), int(line)
                log.begin(number)
                while True:
                    log({"node": "a", "visit": number, "writes": {"text": "x" * (number % 7 * 5_000)}})
                    say(number)
                    number += 1
            say("process", pid)
            os.waitpid(pid, 0)
            say("over")
    """)
    assert forks_writers.stdin is not None and forks_writers.stdout is not None
    dice, stored, grown = random.Random(5), 0, []
    for _ in range(20):
        forks_writers.stdin.write(f"{stored}\n")
        forks_writers.stdin.flush()
        said = [forks_writers.stdout.readline()]
        while len({line.startswith("process") for line in said}) < 2:  # it lives, and has committed a record
            said.append(forks_writers.stdout.readline())
        writer = next(int(line.split()[1]) for line in said if line.startswith("process"))
        threading.Event().wait(dice.random() * 0.02)  # a random instant of real time is the point here
        os.kill(writer, signal.SIGKILL)
        while said[-1] != "over\n":
            said.append(forks_writers.stdout.readline())
        confirmed = max(int(line) for line in said if line.strip().isdigit())
        visits = [record["visit"] for record in store.load("monday")]
        assert visits == list(range(len(visits)))
        assert len(visits) - 1 in (confirmed, confirmed + 1)
        assert store.list()[0].status == "killed"
        grown.append(len(visits) - stored)
        stored = len(visits)
    assert all(len(record["writes"]["text"]) == record["visit"] % 7 * 5_000 for record in store.load("monday"))
    assert min(grown) >= 1 and max(grown) > 3


HOLD = """
    log = SqliteStore("runs.db").run("monday")
    log.begin(int(sys.argv[1]))
    say("begun")
    time.sleep(60)
"""


def test_a_run_has_one_process(store: SqliteStore, child: Callable[..., subprocess.Popen[str]]) -> None:
    """While a process runs a run, another may read it and may not write to it; killed, the first holds nothing."""
    filled(store, "monday", 2)
    assert store.list()[0].status == "ended"
    process = child(HOLD, 2)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    sentence = f"run 'monday' is being run by process {process.pid}: wait until it ends, or end it, then resume"
    log = store.run("monday")
    assert refusal(log.begin, 2) == refusal(log, note(2)) == refusal(store.delete, "monday") == sentence
    assert store.list()[0].status == "running" and len(store.load("monday")) == 2
    filled(store, "tuesday", 1)  # another run is nobody's business
    process.kill()
    process.wait()
    assert store.list()[0].status == "killed"
    log.begin(2)
    assert store.list()[0].status == "running"
    log.close()
    assert store.list()[0].status == "ended"


def test_two_processes_race_for_a_run(store: SqliteStore, child: Callable[..., subprocess.Popen[str]]) -> None:
    """Of several processes that begin one run in a file that none has made yet, one has it."""
    race = """
        say("ready"), sys.stdin.readline()
        try:
            log = SqliteStore("runs.db").run("monday")
            log.begin(0)
            say("mine")
        except StoreError as error:
            say(error)
        sys.stdin.readline()
    """
    racers = [child(race) for _ in range(4)]
    assert [racer.stdout.readline() for racer in racers if racer.stdout] == ["ready\n"] * 4
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.stdout.readline().strip() for racer in racers if racer.stdout]
    assert sorted("is being run by" in line for line in said) == [False, True, True, True], said
    assert said.count("mine") == 1


def test_a_file_is_made_once(tmp_path: Path) -> None:
    """Many that begin at the same moment, in files that are not there yet, make each file once, and wait for it."""
    together = threading.Barrier(6)

    def begin(number: int) -> None:
        for turn in range(15):
            together.wait(10)
            with SqliteStore(tmp_path / f"{turn}.db").run(f"run {number}") as log:
                log(note(number))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(begin, range(6)))
    for turn in range(15):
        assert sorted(row.id for row in SqliteStore(tmp_path / f"{turn}.db").list()) == [f"run {n}" for n in range(6)]


def test_two_processes_write_to_one_file(store: SqliteStore, child: Callable[..., subprocess.Popen[str]]) -> None:
    """Two runs of two processes share a file at the same time, which one of them makes, and disturb neither."""
    writer = """
        with SqliteStore("runs.db").run(sys.argv[1]) as log:
            for number in range(150):
                log({"node": sys.argv[1], "visit": number, "writes": {}})
        say("done")
    """
    processes = [child(writer, id) for id in ("a", "b", "c")]
    assert [process.communicate()[0] for process in processes] == ["done\n"] * 3
    for id in ("a", "b", "c"):
        assert store.load(id) == [{"node": id, "visit": number, "writes": {}} for number in range(150)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_what_a_run_forks_does_not_hold_its_lock(store: SqliteStore, tmp_path: Path,
                                                 child: Callable[..., subprocess.Popen[str]]) -> None:
    """A worker that outlives its killed parent does not keep the run; nor may it write through the parent's journal."""
    process = child("""
        log = SqliteStore("runs.db").run("monday")
        log.begin(0)
        pid = os.fork()
        if pid == 0:
            for call in (lambda: log({"node": "a"}), lambda: log.begin(0)):
                try:
                    call()
                except StoreError as error:
                    say(error)
            log.close()
            say(os.getpid())
        time.sleep(60)
    """)
    assert process.stdout is not None
    said = [process.stdout.readline().strip() for _ in range(3)]
    worker = int(said.pop())
    try:
        assert said == [f"run 'monday' is being run by process {process.pid}: wait until it ends, or end it, "
                        "then resume"] * 2
        assert store.list()[0].status == "running"  # its close() was not the parent's
        process.kill()
        process.wait()
        os.kill(worker, 0)  # it lives
        assert store.list()[0].status == "new"
        filled(store, "monday", 2)
    finally:
        os.kill(worker, signal.SIGKILL)
    assert len(store.load("monday")) == 2


# ---- who may begin


def test_a_journal_is_taken_when_the_run_begins(store: SqliteStore) -> None:
    """Asking for a journal takes nothing; a run begun twice in one process is refused, also through the same object;
    close(), and throwing the journal away, let go."""
    store.run("monday"), store.run("monday")
    one, two = store.run("monday"), store.run("monday")
    assert not os.path.exists(store.file.path)
    one.begin(0)
    sentence = "run 'monday' is being run by this very process: wait until it ends, or end it, then resume"
    assert refusal(two.begin, 0) == refusal(two, FIRST) == refusal(one.begin, 0) == sentence
    one(FIRST)
    one.close()
    one.close()
    two.begin(1)
    del two
    gc.collect()
    assert store.list()[0].status == "ended"
    one.begin(1)
    one.close()
    assert len(store.load("monday")) == 1


def test_a_fresh_run_needs_a_fresh_id(store: SqliteStore) -> None:
    """A run that exists is not begun again: the sentence says how to resume it. Nothing is lost by the attempt."""
    filled(store, "monday", 3)
    sentence = ("run 'monday' exists: resume it with resume_graph(graph, store.load('monday'), "
                "journal=store.run('monday')), or choose another id")
    assert refusal(store.run("monday").begin, 0) == sentence
    assert refusal(store.run("monday"), FIRST) == sentence  # the engine's first record, without begin()
    assert len(store.load("monday")) == 3
    store.run("monday").begin(3)


@pytest.mark.parametrize(("stored", "resumed", "advice"), [
    (5, 3, "resume all of store.load('monday'), or go on from an earlier moment in a run of its own, "
           "store.fork('monday', 3, 'a new id')"),
    (5, 7, "resume all of store.load('monday'), or go on from an earlier moment in a run of its own, "
           "store.fork('monday', 7, 'a new id')"),
    (0, 3, "first copy them into it, with store.fork('the run they are from', 3, 'monday')"),
])
def test_what_is_replayed_is_what_is_stored(store: SqliteStore, stored: int, resumed: int, advice: str) -> None:
    """A run resumes from all of its own records, or the next record would stand after others than those replayed."""
    filled(store, "monday", stored)
    held = f"{stored} records" if stored else "no records"
    assert refusal(store.run("monday").begin, resumed) == (
        f"run 'monday' holds {held}, and {resumed} are to be replayed: {advice}")
    assert len(store.list()) == (1 if stored else 0)


def test_a_refused_attempt_leaves_the_status(store: SqliteStore, child: Callable[..., subprocess.Popen[str]]) -> None:
    """A run whose process was killed stays `killed` when somebody tries to begin it anew."""
    process = child(HOLD, 0)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.kill()
    process.wait()
    assert store.list()[0].status == "new"
    filled(store, "monday", 2)
    process = child(HOLD, 2)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.kill()
    process.wait()
    refusal(store.run("monday").begin, 0)
    assert store.list()[0].status == "killed"


def test_to_ask_whether_a_run_runs_disturbs_nobody(store: SqliteStore) -> None:
    """Whoever lists the runs again and again keeps no run from being begun."""
    filled(store, "monday", 1)
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            store.file.is_locked("monday")

    with ThreadPoolExecutor(2) as pool:
        lookers = [pool.submit(look) for _ in range(2)]
        try:
            for _ in range(30):
                with store.run("monday") as log:
                    log.begin(1)
        finally:
            stop.set()
    assert [looker.result() for looker in lookers] == [None, None]


# ---- damage


def meddle(store: SqliteStore, statement: str, *values: Any) -> None:
    db = sqlite3.connect(store.file.path)
    with db:
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize("torn", ['{"node": "a", "vis', "", "12", "[]", b'{"node": "a", "text": "caf\xc3'])
def test_a_torn_last_record_is_left_out(store: SqliteStore, torn: Any) -> None:
    """Of a last record only half of which is there nothing is read, and the next record takes its place."""
    filled(store, "monday", 4)
    meddle(store, "UPDATE records SET record = CAST(? AS TEXT) WHERE number = 4", torn)
    assert store.load("monday") == [FIRST, note(1), note(2)]
    assert store.list()[0].records == 3 == len(store.history("monday"))
    refusal(store.run("monday").begin, 4)
    with store.run("monday") as log:
        log.begin(3)
        log(note(7))
    assert store.load("monday") == [FIRST, note(1), note(2), note(7)]


@pytest.mark.parametrize(("statement", "what"), [
    ("UPDATE records SET record = '{\"node\": ' WHERE number = 3", "damaged"),
    ("UPDATE records SET record = CAST(X'7B226B223A2022C3227D' AS TEXT) WHERE number = 3", "damaged"),  # {"k": "\xc3"}
    ("DELETE FROM records WHERE number = 3", "missing"),
])
def test_a_damaged_record_in_the_middle_is_an_error(store: SqliteStore, statement: str, what: str) -> None:
    """What comes after a record that cannot be read must not be replayed without it: the error says which it is, and
    that what comes before can go on in a run of its own."""
    filled(store, "monday", 6)
    meddle(store, statement)
    assert refusal(store.load, "monday") == refusal(store.history, "monday") == (
        f"record 3 of run 'monday' in {store.file.name!r} is {what}: "
        "store.fork('monday', 2, 'a new id') keeps what comes before it")
    store.fork("monday", 2, "saved")
    assert store.load("saved") == [FIRST, note(1)]
    refusal(store.fork, "monday", 4, "more")
    assert [row.id for row in store.list()] == ["monday", "saved"]


def test_a_damaged_first_record(store: SqliteStore) -> None:
    """Without its first record nothing of a run can be resumed, and the error says so; the list shows the others."""
    filled(store, "monday", 3), filled(store, "tuesday", 1)
    meddle(store, "UPDATE records SET record = '{' WHERE run = 1 AND number = 1")
    assert "record 1 of run 'monday'" in refusal(store.load, "monday")
    assert "run the graph under another id" in refusal(store.load, "monday")
    assert [(row.id, row.workflow) for row in store.list()] == [("monday", "?"), ("tuesday", "letters")]


# ---- the list, the history, forks


def test_list(store: SqliteStore) -> None:
    """A row a run, in the order in which they began: what it runs, what the store knows of its state, since when."""
    clock = iter(range(1_000_000_000, 1_000_000_100))
    store = SqliteStore(store.file.path, now=lambda: float(next(clock)))
    filled(store, "monday", 2)
    store.fork("monday", 1, "what if")
    store.run("empty").begin(0)
    log = store.run("what if")
    log.begin(1)
    rows = store.list()
    assert [(row.id, row.workflow, row.status, row.records, row.origin) for row in rows] == [
        ("monday", "letters", "ended", 2, None),
        ("what if", "letters", "running", 1, Origin("monday", 1)),
        ("empty", "?", "new", 0, None)]
    assert [(row.started.timestamp(), row.updated.timestamp()) for row in rows] == [
        (1e9, 1e9 + 2), (1e9 + 3, 1e9 + 3), (1e9 + 4, 1e9 + 4)]
    lines = str(rows).splitlines()
    assert lines[0].split() == ["id", "workflow", "status", "records", "started", "updated", "origin"]
    assert re.fullmatch(r"what if  letters +running  1 +20\d\d-\d\d-\d\d [\d:]{8}  20.{17}  monday, first 1", lines[2])
    log.close()
    assert [row.status for row in store.list()] == ["ended", "new", "new"]
    store.run("what if")(note(1))
    assert [row.status for row in store.list()] == ["ended", "ended", "new"]


@pytest.mark.parametrize(("record", "words"), [
    ({"shape": {"name": "content"}, "schedule": "waves", "state": {"topic": "tea", "n": 1}},
     "content began with topic, n"),
    ({"shape": {"name": "content"}, "schedule": "waves", "state": {}}, "content began with nothing"),
    ({"node": "draft", "visit": 1, "wave": 1, "writes": {"text": "...", "n": 2}}, "draft ended, wrote text, n"),
    ({"node": "draft", "visit": 2, "writes": None}, "draft (visit 2) ended, wrote nothing"),
    ({"node": "outer#2/inner", "visit": 1, "writes": {"a": 1}}, "outer#2/inner ended, wrote a"),
    ({"node": "draft", "visit": 1, "error": "ValueError: no\nsuch thing"}, "draft failed: ValueError: no such thing"),
    ({"router": "review", "visit": 1, "label": "fix"}, "route review -> fix"),
    ({"router": "review", "visit": 3, "label": ["fix", "ask"]}, "route review (visit 3) -> fix, ask"),
    ({"router": "review", "visit": 1, "error": "KeyError: 'x'"}, "route review failed: KeyError: 'x'"),
    ({"gate": "approve", "visit": 1, "answer": "yes"}, "gate approve answered 'yes'"),
    ({"edit": {"tone": "kind", "n": 2}}, "edit tone = 'kind', n = 2"),
    ({"surprise": 1}, "a record of an unknown kind: {'surprise': 1}"),
])
def test_history_in_words(store: SqliteStore, record: dict[str, Any], words: str) -> None:
    """Each kind of record reads as what happened."""
    assert in_words(record) == words
    with store.run("monday") as log:
        log(record)
    assert [(entry.number, entry.what) for entry in store.history("monday")] == [(1, words)]


def test_history_is_one_line_a_record(store: SqliteStore) -> None:
    """Long values are cut short, and control characters do not reach the terminal."""
    with store.run("monday") as log:
        log({"gate": "approve", "visit": 1, "answer": "x " * 5000})
        log({"node": "\x1b[31mred", "visit": 1, "writes": {"a\nb": 1}})
    assert all(len(entry.what) <= 100 for entry in store.history("monday"))
    assert str(store.history("monday")).count("\n") == 2 and "\x1b" not in str(store.history("monday"))


def test_fork(store: SqliteStore) -> None:
    """A fork is a run of its own that begins with the first records of another: each goes on alone, and the fork
    remembers where it comes from, also when that is gone."""
    filled(store, "monday", 4)
    log = store.fork("monday", records=2, new_id="b")
    assert (log.id, log.origin, store.run("monday").origin) == ("b", ("monday", 2), None)
    log.begin(2)
    log(note(9))
    log.close()
    assert store.load("b") == [FIRST, note(1), note(9)]
    assert store.load("monday") == [FIRST, note(1), note(2), note(3)]
    assert [entry.when for entry in store.history("b")[:2]] == [entry.when for entry in store.history("monday")[:2]]
    store.delete("monday")
    assert [(row.id, row.origin) for row in store.list()] == [("b", Origin("monday", 2))]


@pytest.mark.parametrize("records", [0, -1, 5, 2.0, None])
def test_fork_of_records_that_are_not_there(store: SqliteStore, records: Any) -> None:
    """A fork has from one to all of the records; the refusal says how many there are, and makes no run."""
    filled(store, "monday", 4)
    assert refusal(store.fork, "monday", records, "b") == (
        f"run 'monday' has 4 records, and a fork begins with the first of them, from 1 to all; not with {records!r}")
    assert len(store.list()) == 1


def test_fork_to_an_id_that_is_taken(store: SqliteStore) -> None:
    """A fork never writes over a run; a run that is being run can be forked."""
    filled(store, "monday", 4), filled(store, "b", 2)
    assert refusal(store.fork, "monday", 1, "b") == (
        "there is a run 'b' already: choose another id for the fork of 'monday'")
    assert len(store.load("b")) == 2
    with store.run("monday") as log:
        log.begin(4)
        store.fork("monday", 4, "c")
        log(note(4))
    assert len(store.load("c")) == 4


def test_changes_are_made_together_or_not_at_all(store: SqliteStore) -> None:
    """A block of changes that fails, of itself or for want of room, changes nothing."""
    filled(store, "monday", 20)
    with pytest.raises(ZeroDivisionError), store.file.open(changes=True) as db:
        db.execute("DELETE FROM records")
        raise ZeroDivisionError
    with pytest.raises(StoreError, match="the disk is full"), store.file.open(changes=True) as db:
        db.execute("UPDATE runs SET id = 'tuesday'")
        db.execute("PRAGMA max_page_count = 1")
        db.execute("INSERT INTO records VALUES (1, 1000, 0, HEX(ZEROBLOB(1000000)))")
    assert len(store.load("monday")) == 20


# ---- what can go wrong with the file


def test_places_where_no_store_can_be(tmp_path: Path) -> None:
    """A folder, a missing folder, and memory are refused when the store is made."""
    assert refusal(SqliteStore, str(tmp_path)).startswith(f"{str(tmp_path)!r} is a folder: name a file in it")
    assert refusal(SqliteStore, tmp_path / "no" / "runs.db") == (
        f"{str(tmp_path / 'no' / 'runs.db')!r} cannot be made, there is no folder {str(tmp_path / 'no')!r}: "
        "make that first")
    assert "a store is a file" in refusal(SqliteStore, ":memory:")
    assert os.listdir(tmp_path) == []


def test_a_store_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path means the folder in which the store was made, wherever the program goes afterwards."""
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("runs.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    filled(store, "monday", 2)
    assert len(SqliteStore(tmp_path / "runs.db").load("monday")) == 2


def test_files_that_are_no_store(tmp_path: Path) -> None:
    """A file that is no database, another program's, or a newer minigraph's is left as it is, and the error says so."""
    text, other, newer = (tmp_path / name for name in ("text.db", "other.db", "newer.db"))
    text.write_text("dear diary, " * 200)
    for path, statement in ((other, "CREATE TABLE cookies (a)"), (newer, "PRAGMA user_version = 2")):
        if path == newer:
            filled(SqliteStore(path), "monday", 1)
        db = sqlite3.connect(path)
        db.execute(statement)
        db.commit()
        db.close()
    for path, why in ((text, "is not a database: choose another file for the store"),
                      (other, "is a database of another program: choose another file for the store"),
                      (newer, "is from a newer minigraph: update this one, or choose another file")):
        before, store = path.read_bytes(), SqliteStore(path)
        assert refusal(store.list) == refusal(store.run("monday"), FIRST) == f"{str(path)!r} {why}"
        assert path.read_bytes() == before


def test_a_file_that_another_program_keeps(store: SqliteStore) -> None:
    """A file that stays locked is waited for, and then the error says for how long; the run can go on afterwards."""
    store = SqliteStore(store.file.path, wait=0.05)
    filled(store, "monday", 1)
    other = sqlite3.connect(store.file.path, isolation_level=None)
    log = store.run("monday")
    log.begin(1)
    other.execute("BEGIN IMMEDIATE")
    sentence = (f"{store.file.name!r} has been locked by another program for 0.05 s: close that program, "
                "then try again")
    assert refusal(log, note(1)) == sentence
    other.execute("ROLLBACK")
    other.close()
    assert refusal(log, note(2)) == sentence  # a record is missing: what comes after it is not kept
    log.close()
    log.begin(1)
    log(note(1))
    log.close()
    assert len(store.load("monday")) == 2


def test_a_full_disk(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full, the record that did not fit is an error that says what to do; all before it are there,
    no later one is let in, and with more room the run goes on."""
    connect, limit = DatabaseFile.connect, [30]

    def small(file: DatabaseFile, create: bool = True) -> sqlite3.Connection:
        db = connect(file, create)
        db.execute(f"PRAGMA max_page_count = {limit[0]}")
        return db

    monkeypatch.setattr(DatabaseFile, "connect", small)
    log, kept = store.run("monday"), 0
    log.begin(0)
    with pytest.raises(StoreError) as caught:
        for kept in range(1000):
            log(note(kept, "x" * 1000))
    assert str(caught.value) == (f"{store.file.name!r} cannot grow, the disk is full: make room; "
                                 "what is committed stays, and the run can be resumed")
    assert refusal(log, note(0)) == str(caught.value)
    log.close()
    assert kept > 10 and store.load("monday") == [note(number, "x" * 1000) for number in range(kept)]
    limit[0] = 3000
    log.begin(kept)
    log(note(kept))
    log.close()
    assert len(store.load("monday")) == kept + 1


@pytest.mark.skipif(sys.platform == "win32", reason="file sizes have no limit here")
def test_a_file_that_may_not_grow(store: SqliteStore, child: Callable[..., subprocess.Popen[str]]) -> None:
    """The same with a limit of the operating system's, in a process that does not survive it."""
    process = child("""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        log = SqliteStore("runs.db").run("monday")
        try:
            for number in range(1000):
                log({"node": "a", "visit": number, "writes": {"text": "x" * 1000}})
        except StoreError as error:
            say(number, error)
            os._exit(1)
    """)
    number, error = process.communicate()[0].strip().split(" ", 1)
    assert error == ("'runs.db' could not be read or written, as when a disk or a quota is full: make room; "
                     "what is committed stays, and the run can be resumed")
    assert [record["visit"] for record in store.load("monday")] == list(range(int(number)))
    with store.run("monday") as log:
        log.begin(int(number))
        log(note(0))
    assert len(store.load("monday")) == int(number) + 1


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter here")
@pytest.mark.parametrize("which", ["folder", "file", "new file"])
def test_a_read_only_place(tmp_path: Path, which: str) -> None:
    """Where nothing may be written, one sentence says so, for a run and for reading, and nothing is changed."""
    folder = tmp_path / "course"
    folder.mkdir()
    if which != "new file":
        filled(SqliteStore(folder / "runs.db"), "monday", 2)
    for path in (*folder.rglob("*"), folder) if which != "file" else [folder / "runs.db"]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    for path in [tmp_path, *tmp_path.parents]:  # somebody else must be able to come here
        if not path.stat().st_mode & stat.S_IXOTH:
            path.chmod(path.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    code = HEAD + textwrap.dedent("""
        if os.geteuid() == 0:  # root may write anywhere
            os.setgid(65534), os.setuid(65534)
        for call in (lambda: SqliteStore(sys.argv[1]).run("tuesday")({"node": "a"}),):
            try:
                say(call())
            except StoreError as error:
                say(error)
    """)
    done = subprocess.run([sys.executable, "-c", code, folder / "runs.db"], capture_output=True, text=True)
    assert done.stdout == (f"{str(folder / 'runs.db')!r} is read-only for you, or its folder is: copy it to a folder "
                           "you may write to, or choose another file\n"), done
    folder.chmod(0o755)
    if which != "new file":
        (folder / "runs.db").chmod(0o644)
        assert len(SqliteStore(folder / "runs.db").load("monday")) == 2


# ---- with the engine


def test_a_run_of_the_engine(store: SqliteStore) -> None:
    """A run writes what its state shows as its journal; resumed when it is over, it returns its result and runs
    nothing; begun anew under the same id, it is refused before anything runs."""
    calls: list[str] = []
    graph = make("START>a a>b b>END", a=lambda state: calls.append("a") or {"x": 1},
                 b=lambda state: calls.append("b") or {"y": state["x"] + 1})
    state = run_graph(graph, {"n": 0}, journal=store.run("monday"))
    assert store.load("monday") == json.loads(json.dumps(state.journal)) and len(state.journal) == 3
    again = resume_graph(graph, store.load("monday"), journal=store.run("monday"))
    assert (again, again.visits, again.status) == (state, state.visits, "done") and calls == ["a", "b"]
    assert "run 'monday' exists" in refusal(lambda: run_graph(graph, {"n": 0}, journal=store.run("monday")))
    assert calls == ["a", "b"] and store.list()[0].status == "ended"


def test_time_travel(store: SqliteStore) -> None:
    """A fork goes on from an earlier moment with the blackboard changed; the trace is told which run it comes from."""
    graph = make("START>a a>b b>END", a=lambda state: {"x": 1}, b=lambda state: {"y": state["x"] * state["n"]})
    assert run_graph(graph, {"n": 2}, journal=store.run("monday"))["y"] == 2
    starts: list[dict[str, Any]] = []
    log = store.fork("monday", 2, "what if")
    state = resume_graph(graph, store.load("what if"), edits={"n": 5}, journal=log,
                         observer=lambda kind, event: starts.append(event) if kind == "graph_start" else None)
    assert state["y"] == 5 and store.load("monday")[-1]["writes"] == {"y": 2}
    assert [(event["run"], tuple(event["origin"])) for event in starts] == [("what if", ("monday", 2))]
    assert [entry.what for entry in store.history("what if")] == [
        "test began with n", "a ended, wrote x", "edit n = 5", "b ended, wrote y"]


def test_a_run_on_a_full_disk(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a record cannot be written the run stops, with its state in hand, and what is stored resumes."""
    graph = make("START>a a>b b>c c>END", b=lambda state: {"text": "x" * 200_000})
    connect = DatabaseFile.connect

    def small(file: DatabaseFile, create: bool = True) -> sqlite3.Connection:
        db = connect(file, create)
        db.execute("PRAGMA max_page_count = 20")
        return db

    monkeypatch.setattr(DatabaseFile, "connect", small)
    with pytest.raises(JournalError, match="node 'b'.*the disk is full: make room") as caught:
        run_graph(graph, {}, journal=store.run("monday"))
    assert caught.value.state["a"] is True and [r["node"] for r in store.load("monday")[1:]] == ["a"]
    monkeypatch.undo()
    state = resume_graph(graph, store.load("monday"), journal=store.run("monday"))
    assert (state.status, state.visits) == ("done", {"a": 1, "b": 1, "c": 1})


def test_paused_in_one_process_answered_in_another(store: SqliteStore,
                                                   child: Callable[..., subprocess.Popen[str]]) -> None:
    """A run that waits for a person is answered by another process, which knows the file and the graph alone."""
    program = """
        from minigraph import START, END, Graph, run_graph
        from minigraph.gates import human_node
        from minigraph.resume import resume_graph
        graph = Graph("letter")
        graph.add_node("draft", lambda state: say("draft runs") or {"text": "Dear Ada"})
        graph.add_node(human_node("approve", "Send {text}?", "answer", choices=["yes", "no"]))
        graph.add_node("send", lambda state: {"sent": state["answer"]})
        graph.add_edge(START, "draft").add_edge("draft", "approve").add_edge("approve", "send").add_edge("send", END)
        store, answer = SqliteStore("runs.db"), sys.argv[1:]
        if answer:
            state = resume_graph(graph, store.load("monday"), {"approve": answer[0]}, journal=store.run("monday"))
        else:
            state = run_graph(graph, {}, journal=store.run("monday"))
        say(state.status, dict(state.waiting), state.get("sent"))
    """
    assert child(program).communicate()[0] == "draft runs\npaused {'approve': 'Send Dear Ada?'} None\n"
    assert store.list()[0].status == "ended"
    assert child(program, "yes").communicate()[0] == "done {} yes\n"
    assert [entry.what for entry in store.history("monday")][2:] == ["gate approve answered 'yes'",
                                                                    "send ended, wrote sent"]
