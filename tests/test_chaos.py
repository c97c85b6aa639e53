"""The short version of chaos.py, and that its judges find what they are there to find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chaos import differences, journal_faults, run_again, where

TESTS = Path(__file__).resolve().parent
NEEDS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here, nor SIGKILL")


def storm(*arguments: str, first: str = "") -> tuple[int, str]:
    """Return how chaos.py ended, and what it said; `first` is done before it begins."""
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); import chaos\n{first}\nsys.exit(chaos.main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


@NEEDS
def test_twelve_runs_killed_and_resumed() -> None:
    """Twelve runs, killed at random instants and resumed, end as the undisturbed ones, and run nothing again whose end
    was committed. `python tests/chaos.py` does three hundred."""
    code, said = storm("--runs", "12", "--seed", "3")
    assert said.startswith("12 runs, ") and "every run ended as the undisturbed one" in said
    assert code == 0


ANEW = """
def drive(case, store, id, note, pace, progress):
    if chaos.held_by(store, id):
        store.delete(id)
    return chaos.run_graph(case.graph(note, pace), chaos.INITIAL, max_steps=10_000, schedule=case.schedule,
                           journal=chaos.Journal(store.run(id), progress))
"""
LAZY = """
class Lazy(chaos.Journal):
    kept = []
    def __call__(self, record):
        self.kept.append(record)
        if len(self.kept) == 3:
            for record in self.kept:
                self.log(record)
            self.kept.clear()
        chaos.os.write(self.progress, b'.')
"""


@NEEDS
@pytest.mark.parametrize(("planted", "found"), [
    (ANEW + "chaos.drive = drive", "ran again though its end was committed"),
    (LAZY + "chaos.Journal = Lazy", "records were committed,"),
    ("chaos.SqliteStore.load = lambda store, id, load=chaos.SqliteStore.load: load(store, id)[:-1]", "runs went wrong"),
    ("chaos.Step.__call__ = lambda step, state: step.work() or {step.task.name: chaos.os.getpid()}",
     "state is {"),
], ids=["begun anew", "not committed at once", "a record lost", "a value that differs"])
def test_a_storm_finds_what_is_wrong(planted: str, found: str) -> None:
    """With a fault planted, a storm says what went wrong, and fails."""
    code, said = storm("--runs", "4", "--seed", "3", first=planted)
    assert found in said and "runs went wrong" in said, said
    assert code == 1


A, B = {"node": "a", "visit": 1, "writes": {"x": 1}}, {"node": "b", "visit": 1, "error": "ValueError: no"}


def test_run_again() -> None:
    """A call is one too many if its visit had ended by the records, or was called in the same process already; one
    that was only begun may be made again."""
    start_a, start_b = ("start", "a", 1), ("start", "b", 1)
    assert run_again([[], [A]], [[start_a, ("end", "a", 1), start_b], [start_b, ("start", "a", 2)]]) == []
    assert run_again([[], [A]], [[start_a], [start_a]]) == ["a, visit 1, ran again though its end was committed"]
    assert run_again([[], [A, B]], [[start_b], [start_b]]) == ["b, visit 1, ran again though its end was committed"]
    assert run_again([[]], [[start_b, start_a, start_b]]) == ["b, visit 1, ran 2 times in one process"]


def test_journal_faults() -> None:
    """What was committed stays as it was, nothing is recorded twice, and in the end the records are the calm ones, in
    whatever order and waves."""
    assert journal_faults([[], [A]], [A, B], [B, {**A, "wave": 3}]) == []
    assert journal_faults([[], [B]], [A, B], [A, B]) == ["of 1 committed records not all are left as they were"]
    assert journal_faults([[]], [A, A], [A])[0] == "a, visit 1, is recorded twice"
    assert journal_faults([[]], [A], [A, B])[0].startswith("1 records, undisturbed 2; only in one of the two: ['{")


def test_differences() -> None:
    """Two ends differ in what either of them says and the other does not."""
    assert differences({"status": "done", "visits": {}}, {"status": "done", "visits": {}}) == []
    assert differences({"status": "done"}, {"status": "failed"}) == ["status is failed, undisturbed done"]
    assert differences({"status": "done"}, {"raised": "KeyError"}) == ["it raised KeyError"]


def test_where() -> None:
    """Where a run stood is told from its records and from what its nodes noted."""
    start, end = ("start", "a", 1), ("end", "a", 1)
    assert where([], [start]) == "before the first record"
    assert where([B], [start]) == "while a node ran"
    assert where([B], [start, end]) == "between a node's end and its commit"
    assert where([A], [start, end]) == "while no node ran"
