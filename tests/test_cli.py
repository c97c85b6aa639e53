"""The command line: each command, its JSON, its files, and one clear sentence for what is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigraph.cli import main

ROOT = Path(__file__).parent.parent


def run(capsys, *argv):
    """(exit code, standard output, standard error) of one command."""
    code = main([str(arg) for arg in argv])
    return (code, *capsys.readouterr())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_gather_shows_graph_waves_loop_and_figures_and_writes_the_digest(capsys, tmp_path):
    """`gather` is the main job: everything in one go, the digest in ./outbox."""
    code, out, err = run(capsys, "gather")
    assert code == 0
    assert "START -> scan_github, scan_web, scan_calendar, scan_memory" in out
    assert "scan_web        0.000 s   1.887 s   1887  set the pace" in out
    assert "tool github_read  4.195 s   5.701 s  1506" in out
    assert "gathering   1.89 s   6.74 s  3.57 times as fast" in out
    assert "total      13.17 s  15.30 s  14 % less" in out
    assert "an assumption" in out
    assert "wrote outbox" in err
    assert (tmp_path / "outbox" / "gather-2026-03-02.md").read_text(encoding="utf-8").startswith("# Monday")


def test_what_is_piped_is_only_the_result(capsys):
    """Where files went is said on standard error: standard output parses as JSON."""
    code, out, _ = run(capsys, "compare", "--json")
    figures = json.loads(out)
    assert code == 0
    assert round(figures["ratio"], 2) == 3.57
    assert (figures["graph_gathering"], figures["loop_gathering"]) == (1.887, 6.74)
    assert (figures["graph_total"], figures["loop_total"]) == (13.166, 15.297)
    assert round(figures["gained"], 2) == 4.85
    assert round(figures["given_back"], 2) == 2.72
    assert (len(figures["graph_asked"]), len(figures["loop_asked"]), figures["loop_calls"]) == (4, 2, 3)


def test_gather_json_holds_visits_and_comparison(capsys):
    """`gather --json` gives every visit in seconds, and the figures."""
    code, out, _ = run(capsys, "gather", "--json")
    found = json.loads(out)
    assert code == 0
    assert [visit["node"] for visit in found["visits"]][:2] == ["scan_github", "scan_web"]
    assert found["visits"][2]["wait"] == pytest.approx(1.885)
    assert found["comparison"]["loop_calls"] == 3


def test_brief_says_what_was_not_read(capsys, tmp_path):
    """The loop's own trace, and what it did not look at."""
    code, out, _ = run(capsys, "brief")
    assert code == 0
    assert "it read github_read and list_events, and not web_search and memory_search" in out
    assert (tmp_path / "outbox" / "brief-2026-03-02.md").exists()


def test_a_saved_trace_is_shown_again_as_it_was(capsys, tmp_path):
    """`--trace FILE` keeps the events; `trace FILE` prints the same table."""
    _, out, _ = run(capsys, "gather", "--alone", "--trace", "run.jsonl")
    code, again, _ = run(capsys, "trace", "run.jsonl")
    assert code == 0
    assert again.strip() in out
    code, out, _ = run(capsys, "trace", "run.jsonl", "--json")
    assert json.loads(out)["seconds"] == pytest.approx(13.166)


@pytest.mark.parametrize("suffix,start", [("png", b"\x89PNG"), ("svg", b"<svg")])
@pytest.mark.parametrize("command", [["gather"], ["brief"], ["draw", "gather"]])
def test_pictures_are_written(capsys, tmp_path, command, suffix, start):
    """`--png` and `--svg` draw what the command shows, into a folder that need not be there yet."""
    pytest.importorskip("matplotlib")
    code, _, err = run(capsys, *command, f"--{suffix}", f"new/picture.{suffix}")
    assert code == 0, err
    assert (tmp_path / "new" / f"picture.{suffix}").read_bytes().startswith(start)
    assert "wrote new/picture" in err


@pytest.mark.parametrize("how,words", [("text", "START -> scan_github"), ("dot", "digraph"),
                                       ("mermaid", "flowchart"), ("json", '"conditional"')])
def test_draw_prints_a_graph_in_four_ways(capsys, how, words):
    """Text is the default; DOT and Mermaid go into other tools, JSON into programs."""
    code, out, _ = run(capsys, "draw", "gather", "--format", how)
    assert code == 0
    assert words in out


def test_draw_takes_a_graph_of_your_own(capsys, tmp_path):
    """module:name is looked up beside where you stand; a function that returns a graph will do too."""
    (tmp_path / "my_flow.py").write_text(
        "from minigraph import *\n"
        "graph = Graph('mine').add_node('a', lambda state: None).add_edge(START, 'a').add_edge('a', END)\n"
        "number = 3\n", encoding="utf-8")
    code, out, _ = run(capsys, "draw", "my_flow:graph")
    assert code == 0
    assert "START -> a" in out
    assert run(capsys, "draw", "my_flow:number") == (1, "", "minigraph: 'my_flow:number' is 3, and no Graph\n")
    code, _, err = run(capsys, "draw", "my_flow:grpah")
    assert code == 1
    assert "has no attribute 'grpah'" in err


BAD = [
    (["gather", "--date", "2026-13-40"], "'2026-13-40' is no date: write it as YYYY-MM-DD"),
    (["draw", "gahter"], "no workflow 'gahter': there is gather"),
    (["trace", "nothing.jsonl"], "nothing.jsonl: No such file"),
    (["trace", "broken.jsonl"], "broken.jsonl: line 2 is no JSON"),
    (["trace", "other.jsonl"], "other.jsonl: line 1 is no event"),
    (["trace", "foreign.jsonl"], "foreign.jsonl is no trace of minigraph's"),
    (["trace", "empty.jsonl"], "empty.jsonl holds no event"),
    (["trace", "binary.jsonl"], "binary.jsonl"),
    (["gather", "--speed", "0"], "above 0"),
    (["gather", "--outbox", "broken.jsonl"], "broken.jsonl"),
]


@pytest.mark.parametrize("argv,words", BAD, ids=[" ".join(argv) for argv, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_1(capsys, tmp_path, argv, words):
    """What is wrong is said on standard error, in a line, without a traceback."""
    (tmp_path / "broken.jsonl").write_text('{"kind": "graph_start", "t": 0, "nodes": []}\n{"kind"', encoding="utf-8")
    (tmp_path / "other.jsonl").write_text('["no", "event"]\n', encoding="utf-8")
    (tmp_path / "foreign.jsonl").write_text('{"kind": "node_start", "t": 0}\n', encoding="utf-8")
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    code, out, err = run(capsys, *argv)
    assert code == 1
    assert words in err
    assert err.startswith("minigraph: ")
    assert len(err.strip().splitlines()) == 1, err


def test_a_source_that_cannot_be_read_is_no_bad_input(capsys, tmp_path):
    """All four files missing: exit code 0, and a digest that names each with its reason."""
    missing = [part for name in ("calendar", "github", "memory", "web") for part in (f"--{name}", "gone.file")]
    code, _, _ = run(capsys, "gather", "--alone", "--date", "2026-03-02", *missing)
    digest = (tmp_path / "outbox" / "gather-2026-03-02.md").read_text(encoding="utf-8")
    assert code == 0
    assert digest.count("*unavailable:") == 4


def test_help_teaches(capsys):
    """`--help` shows examples that can be pasted."""
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "python -m minigraph gather --calendar mine.ics" in out


@pytest.mark.parametrize("command", ["gather", "brief", "compare"])
def test_bare_python_is_enough(command, tmp_path):
    """Without any package installed the commands run; the calendar says why it is unavailable."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c",
                           "import sys; sys.path.insert(0, sys.argv.pop(1)); from minigraph.cli import main; "
                           "sys.exit(main(sys.argv[1:]))", str(ROOT), command],
                          cwd=tmp_path, capture_output=True, text=True, encoding="utf-8",
                          env={**os.environ, "PYTHONUTF8": "1"}, timeout=60)
    assert done.returncode == 0, done.stderr
    if command != "compare":
        assert "the calendar library is not installed" in done.stdout
    assert list((tmp_path / "outbox").iterdir())
