"""The command line: each command, its JSON, its files, and one clear sentence for what is wrong."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minigraph import JournalError, runs
from minigraph.cli import main
from minigraph.store import RunLog, SqliteStore, StoreError
from minigraph.terminal import note, say, shortened, table
from minigraph.workflows.triage import SORRY

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
    (["draw", "gahter"], "no workflow 'gahter': there is gather, triage, content, leads"),
    (["draw", "gather", "--trace", "empty.jsonl"], "empty.jsonl holds no event"),
    (["trace", "nothing.jsonl"], "nothing.jsonl: No such file"),
    (["trace", "broken.jsonl"], "broken.jsonl: line 2 is no JSON"),
    (["trace", "other.jsonl"], "other.jsonl: line 1 is no event"),
    (["trace", "foreign.jsonl"], "foreign.jsonl is no trace of minigraph's"),
    (["trace", "empty.jsonl"], "empty.jsonl holds no event"),
    (["trace", "binary.jsonl"], "binary.jsonl"),
    (["gather", "--speed", "0"], "above 0"),
    (["gather", "--outbox", "broken.jsonl"], "broken.jsonl"),
    (["triage", ""], "there is no message: type one"),
    (["triage", "Hi", "--date", "today"], "'today' is no date"),
    (["triage", "--inbox", "gone.jsonl"], "'gone.jsonl' cannot be read: No such file"),
    (["triage", "--inbox", "broken.jsonl"], "line 1 of 'broken.jsonl' is no object with text under 'id'"),
    (["triage", "--png", "all.png"], "--trace, --png and --svg are for one run, and these are 16"),
    (["triage", "Hi", "--live"], "--live: no model is named: set ANTHROPIC_MODEL"),
    (["content", " \n"], "there is no text: type one"),
    (["content", "Words.", "--store", "broken.jsonl"], "'broken.jsonl' is not a database"),
    (["content", "Words.", "--store", "broken.jsonl/runs.db"], "broken.jsonl"),
    (["leads", "c99"], "there is no contact 'c99'; did you mean 'c09'?"),
    (["leads", "--contacts", "gone.csv"], "gone.csv"),
    (["history", "content-1"], "there is no store 'outbox/runs.db'"),
    (["resume", "content-1", "--store", "broken.jsonl"], "'broken.jsonl' is not a database"),
    (["resume", "x", "--answer", "person"], "--answer 'person': it is written as NAME=VALUE, as in --answer person="),
    (["resume", "x", "--edit", "=3"], "--edit '=3': it is written as NAME=VALUE"),
]


@pytest.mark.parametrize("argv,words", BAD, ids=[" ".join(argv) for argv, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_1(capsys, tmp_path, monkeypatch, argv, words):
    """What is wrong is said on standard error, in a line, without a traceback."""
    for name in ("ANTHROPIC_MODEL", "OPENAI_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
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


@pytest.mark.parametrize("command", ["gather", "brief", "compare", "triage", "content", "leads c01"])
def test_bare_python_is_enough(command, tmp_path):
    """Without any package installed the commands run; the calendar says why it is unavailable."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c",
                           "import sys; sys.path.insert(0, sys.argv.pop(1)); from minigraph.cli import main; "
                           "sys.exit(main(sys.argv[1:]))", str(ROOT), *command.split()],
                          cwd=tmp_path, capture_output=True, text=True, encoding="utf-8",
                          env={**os.environ, "PYTHONUTF8": "1"}, timeout=60)
    assert done.returncode == 0, done.stderr
    if command in ("gather", "brief"):
        assert "the calendar library is not installed" in done.stdout
    assert list((tmp_path / "outbox").iterdir())


# ---- a message, a text, a lead


TRIAGED = [
    ("Merci, à bientôt !", "Je vous en prie. À bientôt !\n", "social, answered by quick_reply"),
    ("What does the toaster weigh?", "I found nothing about it in the calendar, the notes or the saved pages.\n",
     "question, answered by full_agent"),
    ("Move the toaster.", "That needs a person: I can look things up, and nothing else.\n",
     "task, answered by full_agent"),
    ("The toaster is on fire!!", "This looks urgent. There is a note for a person in outbox/urgent-d3953529.md; "
     "nothing was sent.\n", "urgent, answered by notify_now"),
]


@pytest.mark.parametrize(("message", "answer", "how"), TRIAGED)
def test_triage_prints_the_answer_and_says_who_gave_it(capsys, tmp_path, message, answer, how):
    """Standard output is the answer; beside it stand the run's id and its way."""
    assert run(capsys, "triage", message) == (0, answer, f"triage-1: {how}\n")
    assert run(capsys, "triage", message)[2] == f"triage-2: {how}\n"
    assert [row.id for row in SqliteStore(runs.STORE).list()] == ["triage-1", "triage-2"]


def test_triage_without_a_message_goes_through_the_inbox(capsys):
    """A line for each message: the run, who answered, and the answer, shortened; or the same as JSON."""
    code, out, err = run(capsys, "triage")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 17)
    assert lines[1].split() == ["triage-1", "i01", "done:", "quick_reply", "Hello!"]
    assert lines[10].startswith("triage-10  i10  done: full_agent   Memory: ")
    found = json.loads(run(capsys, "triage", "--json")[1])
    assert [(each["id"], each["run"]) for each in found][-1] == ("i16", "triage-32")
    assert found[0]["state"]["answer"] == "Hello!"


def test_what_is_piped_in_is_read(capsys, monkeypatch):
    """`-` reads standard input; what is no UTF-8 in it does not stop anybody."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Danke {x} <b> \xff".encode("latin-1"))))
    assert run(capsys, "triage", "-") == (0, "Gern geschehen.\n", "triage-1: social, answered by quick_reply\n")


def broken_store(how, monkeypatch):
    """Options under which no run can be kept."""
    if how == "folder":
        Path("file").write_text("")
        return ["--store", "file/runs.db"]
    if how == "begin":
        monkeypatch.setattr(RunLog, "begin", lambda self, resumed=0: (_ for _ in ()).throw(StoreError("disk full")))
    else:
        monkeypatch.setattr(RunLog, "__call__", lambda self, record: (_ for _ in ()).throw(StoreError("disk full")))
    return []


@pytest.mark.parametrize("how", ["folder", "begin", "record"])
def test_a_run_that_cannot_be_kept(capsys, monkeypatch, how):
    """A message is answered all the same; a text is not begun, for nobody could be asked about it."""
    options = broken_store(how, monkeypatch)
    code, out, err = run(capsys, "triage", "Hello", *options)
    assert (code, out) == (0, "Hello!\n")
    assert err.startswith("minigraph: this run is not kept: ")
    code, out, err = run(capsys, "content", "A calm text about nothing.", *options)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert err.startswith("minigraph: ") and not Path("outbox").exists() or not list(Path("outbox").glob("*.md"))


def test_when_nothing_can_answer_the_exit_code_says_so(capsys, monkeypatch):
    """The plain sentence is printed, the reason stands beside it."""
    def dead(messages, tools=None):
        raise ValueError("no model")
    monkeypatch.setattr("minigraph.workflows.triage.stub_models", lambda: dict.fromkeys(
        ("classify", "quick_reply", "full_agent"), dead))
    code, out, err = run(capsys, "triage", "Hello")
    assert (code, out) == (1, SORRY + "\n")
    assert err == ("minigraph: triage-1 did not come to its end: classify: ValueError: no model; full_agent: "
                   "ValueError: no model; python -m minigraph resume triage-1 --from 6 tries again from before that\n")


CALM, INSULT = "The gauge of Ostend is new. Use it.", "You idiots, read the manual."


def test_content_that_passes(capsys):
    """Standard output is the text; beside it stands where it was saved."""
    path = "outbox/content-the-gauge-of-ostend-is-6d2f1a17.md"
    assert run(capsys, "content", CALM) == (0, CALM + "\n", f"content-1: saved as {path}\n")
    assert Path(path).read_text() == CALM + "\n"
    code, out, err = run(capsys, "content", "The gauge of Ostend is NEW NOW!!! Use it.")
    assert (code, out) == (0, "The gauge of Ostend is new now. Use it.\n")
    assert err.endswith(", revised once\n")


def test_content_that_waits(capsys):
    """Exit code 3, nothing on standard output; beside it the question, and what to type."""
    code, out, err = run(capsys, "content", INSULT)
    assert (code, out) == (3, "")
    assert err == ("content-1: waits for an answer at person\n\nPublish, rewrite or drop? No revision will mend it.\n"
                   "- tone 0.10: it insults: idiots\n- facts 1.00: there is no number to look up\n"
                   f"- length 1.00: 28 characters\n\n{INSULT}\n\n"
                   "answer with: python -m minigraph resume content-1 --answer person=publish   (or rewrite, drop)\n")
    assert run(capsys, "resume", "content-1") == (3, "", err)  # it only asks again
    found = json.loads(run(capsys, "resume", "content-1", "--json")[1])
    assert (found["status"], list(found["waiting"]), found["state"]["rough"]) == ("paused", ["person"], INSULT)


def test_content_without_a_text_goes_through_the_drafts(capsys):
    """A line for each draft, and who waits."""
    code, out, err = run(capsys, "content")
    assert (code, len(out.splitlines())) == (0, 11)
    assert err == ("content-4, content-5 and content-6 wait for a person: python -m minigraph resume content-4 shows "
                   "the question\n")


@pytest.mark.parametrize(("answers", "out", "err"), [
    (["person=publish"], INSULT + "\n", "saved as outbox/content-you-idiots-read-the-manual-f3578815.md"),
    (["person= DROP "], "", "dropped, as the person decided"),
])
def test_resume_acts_on_the_answer(capsys, answers, out, err):
    """publish saves, drop does not; a second answer is refused; to resume a finished run is to see its end again."""
    run(capsys, "content", INSULT)
    options = [part for answer in answers for part in ("--answer", answer)]
    assert run(capsys, "resume", "content-1", *options) == (0, out, f"content-1: {err}\n")
    assert run(capsys, "resume", "content-1") == (0, out, f"content-1: {err}\n")
    assert run(capsys, "resume", "content-1", *options) == (
        1, "", "minigraph: no gate 'person' waits for an answer; none does\n")


def test_resume_refuses_what_is_no_answer(capsys):
    """A wrong word, a wrong gate, blank words: one sentence, and the gate waits on."""
    run(capsys, "content", INSULT)
    for answer, words in (("person=maybe", "choose one of 'publish', 'rewrite', 'drop'; the gate still waits"),
                          ("preson=drop", "no gate 'preson' waits for an answer; waiting: 'person'")):
        code, _, err = run(capsys, "resume", "content-1", "--answer", answer)
        assert code == 1 and words in err and len(err.splitlines()) == 1
    assert run(capsys, "resume", "content-1", "--answer", "person=rewrite")[0] == 3
    assert run(capsys, "resume", "content-1", "--answer", "rewrite= ")[0] == 1
    assert run(capsys, "resume", "content-1", "--answer", "rewrite=Read the manual = please.")[:2] == (
        0, "Read the manual = please.\n")


def typed(tmp_path, *argv):
    """A command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "minigraph", *argv], cwd=tmp_path, capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}, timeout=60)


def test_a_pause_outlives_its_process(tmp_path):
    """Asked in one process, answered in a second and a third, with another folder for files and another store."""
    done = typed(tmp_path, "content", INSULT, "--outbox", "posts", "--store", "kept/my.db")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("resume content-1 --answer person=publish --store kept/my.db   (or rewrite, drop)\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = typed(elsewhere, "resume", "content-1", "--answer", "person=rewrite", "--store", "../kept/my.db")
    assert done.returncode == 3, done.stderr
    done = typed(elsewhere, "resume", "content-1", "--answer", "rewrite=Ça va 🌊", "--store", "../kept/my.db")
    assert (done.returncode, done.stdout) == (0, "Ça va 🌊\n"), done.stderr
    [file] = (tmp_path / "posts").iterdir()  # where the run was told to write, not where it was resumed
    assert file.read_text(encoding="utf-8") == "Ça va 🌊\n"
    assert not (elsewhere / "outbox").exists()


KILLED = """
import os, signal, sys
from minigraph.store import SqliteStore
from minigraph.workflows import content
log = SqliteStore("runs.db").run("content-7")
class Cut:
    begin, close = log.begin, log.close
    def __call__(self, record):
        log(record)
        if record.get("node") == "aggregate":
            os.kill(os.getpid(), signal.SIGKILL)
content.run("A calm text about nothing!!!", journal=Cut())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a way to kill that Windows has not")
def test_a_killed_run_goes_on(capsys, tmp_path):
    """`runs` says that it was killed, `resume` comes to its end, and no node whose end was kept ran again."""
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    [row] = json.loads(run(capsys, "runs", "--store", "runs.db", "--json")[1])
    assert (row["run"], row["status"], row["records"]) == ("content-7", "killed", 6)
    assert run(capsys, "resume", "content-7", "--store", "runs.db")[:2] == (0, "A calm text about nothing.\n")
    whats = [entry.what for entry in SqliteStore("runs.db").history("content-7")]
    assert whats[6:8] == ["route aggregate -> fixable", "revise ended, wrote text, tone, facts, length"]
    assert len([what for what in whats if what.startswith("draft")]) == 1
    assert run(capsys, "content", CALM, "--store", "runs.db")[2].startswith("content-8: ")


def test_another_way_from_an_earlier_moment(capsys):
    """`--from K` begins a new run with the first K records; `--edit` changes the blackboard there, also as JSON."""
    run(capsys, "content", INSULT)
    code, out, err = run(capsys, "resume", "content-1", "--from", 2, "--edit", f"text={CALM}", "--edit", "txet=1")
    assert (code, out) == (0, CALM + "\n")
    assert err.splitlines()[:2] == ["nothing has written 'txet' so far; did you mean 'text'?",
                                    "content-2 begins with the first 2 records of content-1"]
    code, _, err = run(capsys, "resume", "content-1", "--from", 6, "--edit", "score=0.9")
    assert code == 0 and "content-3: saved as" in err  # the router asks the score
    code, _, err = run(capsys, "resume", "content-1", "--from", 6, "--edit", 'score="high"')
    assert code == 3 and "The checks could not be put together (TypeError: " in err
    code, _, err = run(capsys, "resume", "content-1", "--from", 99)
    assert (code, len(err.splitlines())) == (1, 1) and "has 7 records" in err
    assert [(row.id, row.origin and tuple(row.origin)) for row in SqliteStore(runs.STORE).list()][:3] == [
        ("content-1", None), ("content-2", ("content-1", 2)), ("content-3", ("content-1", 6))]


def test_runs_and_history(capsys):
    """Every run with its status, what it waits for and where it comes from; every record of one, numbered."""
    code, out, err = run(capsys, "runs")
    assert (code, out) == (0, "") and err.startswith("no runs yet in outbox/runs.db; python -m minigraph content ")
    assert not Path("outbox").exists()  # to look is not to make one
    run(capsys, "content", INSULT)
    run(capsys, "content", CALM)
    run(capsys, "resume", "content-1", "--from", 7)
    run(capsys, "triage", "Hello")
    rows = json.loads(run(capsys, "runs", "--json")[1])
    assert [(row["run"], row["graph"], row["status"], row["records"]) for row in rows] == [
        ("content-1", "content", "paused", 7), ("content-2", "content", "done", 8),
        ("content-3", "content", "paused", 7), ("triage-1", "triage", "done", 7)]
    code, out, _ = run(capsys, "runs")
    assert (code, len(out.splitlines())) == (0, 5)
    assert "person asks: Publish, rewrite or drop? No revision will mend i…" in out.splitlines()[1]
    assert "the first 7 records of content-1; person asks: " in out.splitlines()[3]
    code, out, _ = run(capsys, "history", "content-2")
    assert [line.split("  ")[-1] for line in out.splitlines()[1:]][:2] == ["content began with rough",
                                                                           "draft ended, wrote text"]
    assert out.splitlines()[-1].startswith("8 ") and out.splitlines()[-1].endswith("save ended, wrote saved")
    entries = json.loads(run(capsys, "history", "content-2", "--json")[1])
    assert [entry["number"] for entry in entries] == [1, 2, 3, 4, 5, 6, 7, 8]
    code, _, err = run(capsys, "history", "content-9")
    assert code == 1 and "no run 'content-9' in 'outbox/runs.db'; did you mean" in err


def test_a_graph_of_ones_own_is_resumed(capsys, tmp_path):
    """A run that a program began: its graph has to be named; the blackboard is the result."""
    (tmp_path / "flow.py").write_text(
        "from minigraph import *\nfrom minigraph.nodes import human_node\n"
        "graph = Graph('mine').add_node(human_node('ask', 'How many?', 'number', parse=int))\n"
        "graph.add_edge(START, 'ask').add_edge('ask', END)\n", encoding="utf-8")
    (tmp_path / "begin.py").write_text(
        "from flow import graph\nfrom minigraph import run_graph\nfrom minigraph.store import SqliteStore\n"
        "run_graph(graph, {}, journal=SqliteStore('runs.db').run('monday'))\n", encoding="utf-8")
    subprocess.run([sys.executable, "begin.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    code, _, err = run(capsys, "resume", "monday", "--store", "runs.db")
    assert (code, err) == (1, "minigraph: run 'monday' cannot be resumed: its graph is 'mine', which is none of "
                              "gather, triage, content, leads: say which one it is, --graph module:name\n")
    options = ["resume", "monday", "--store", "runs.db", "--graph", "flow:graph"]
    assert run(capsys, *options, "--answer", "ask=three")[0] == 1
    code, out, err = run(capsys, *options, "--answer", "ask=3")
    assert (code, json.loads(out)["number"], err) == (0, 3, "monday: done, 1 node runs\n")
    other = "minigraph.workflows.content:shape"
    code, _, err = run(capsys, "resume", "monday", "--store", "runs.db", "--graph", other)
    assert code == 1 and "these records are of a graph of another shape" in err
    [row] = json.loads(run(capsys, "runs", "--store", "runs.db", "--json")[1])
    assert row["status"] == "ended"


def test_leads(capsys):
    """Who there is; a score with its reasons; what was noted, and what it cost, stay in the book."""
    code, out, err = run(capsys, "leads")
    assert (code, len(out.splitlines())) == (0, 12)
    assert err == "20 credits; python -m minigraph leads c01 scores one of them\n"
    code, out, err = run(capsys, "leads", "c01")
    assert (code, out.splitlines()[0], err) == (0, "hot (0.95): draft_followup", "leads-1: done, 7 node runs\n")
    code, out, err = run(capsys, "leads")
    assert "draft_followup" in out.splitlines()[1] and err.startswith("17 credits")
    assert json.loads(run(capsys, "leads", "c10", "--json")[1])["state"]["result"]["action_taken"] == "add_to_nurture"
    code, out, err = run(capsys, "resume", "leads-1", "--from", 1)
    assert (code, out.splitlines()[0]) == (0, "hot (0.95): draft_followup")


def test_a_gather_that_was_kept_is_resumed(capsys):
    """A program may keep a gather, too; `resume` knows its graph."""
    from minigraph import run_graph
    from minigraph.workflows import gather, sources
    store = SqliteStore("runs.db")
    graph = gather.build(gather.default_scans(), gather.stub_model(),
                         lambda name, text: sources.write_outbox("o", name, text))
    whole = run_graph(graph, {"date": "2026-03-02"}, journal=store.run("whole"))
    code, out, err = run(capsys, "resume", "whole", "--from", 4, "--store", "runs.db")
    assert (code, out.strip()) == (0, whole["synthesis"].strip()), err
    assert Path("outbox/gather-2026-03-02.md").read_bytes() == Path("o/gather-2026-03-02.md").read_bytes()


@pytest.mark.parametrize("command", [["triage", "Where is the gauge?"], ["content", INSULT], ["leads", "c01"]])
def test_traces_and_pictures_of_a_run(capsys, command):
    """--trace keeps the events, --png draws the chart, and `draw --trace` the graph with what ran in it."""
    pytest.importorskip("matplotlib")
    code, _, err = run(capsys, *command, "--trace", "run.jsonl", "--png", "chart.png")
    assert code in (0, 3) and "wrote run.jsonl\nwrote chart.png\n" in err
    assert Path("chart.png").read_bytes().startswith(b"\x89PNG")
    assert run(capsys, "trace", "run.jsonl")[0] == 0
    plain, ran = (run(capsys, "draw", command[0], *more)[1] for more in ([], ["--trace", "run.jsonl"]))
    assert plain != ran and ("skipped" in ran or "not run" in ran)
    code, _, err = run(capsys, "draw", command[0], "--trace", "run.jsonl", "--png", "graph.png")
    assert (code, err) == (0, "wrote graph.png\n")


def test_on_a_terminal_control_characters_are_not_obeyed(monkeypatch):
    """In a pipe text goes as it is; on a terminal, and beside the result, an escape sequence is written out."""
    class Screen(io.StringIO):
        encoding = "utf-8"
        tty = True

        def isatty(self):
            return self.tty
    text = "a\x1b[31mred\n\u202eb é"
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    say(text)
    note(text)
    screen.tty = False
    say(text)
    note(text)
    shown = "a\\x1b[31mred\n\\u202eb é\n"
    assert screen.getvalue() == shown + shown + text + "\n" + shown


def test_a_terminal_that_has_not_all_letters(monkeypatch):
    """A letter that the terminal has not, or half of an emoji, is spelled, and stops nobody."""
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", screen)
    say("é\ud800")
    screen.flush()
    assert screen.buffer.getvalue() == b"\\xe9\\ud800\n"


def test_tables():
    """Columns stand under one another, also where a letter is two columns wide; a long text is cut on one line."""
    assert table([["a", "b"], ["潮位", "c"], ["long er", ""]]) == "a        b\n潮位     c\nlong er"
    assert shortened("a\n b") == "a b" and shortened("x" * 71) == "x" * 69 + "…" and len(shortened("x " * 900)) == 70


# ---- runs, for a program


def test_whoever_is_faster_gets_the_number(tmp_path):
    """A run whose number somebody else took in the meantime takes the next; any other trouble is raised."""
    store, taken = SqliteStore("runs.db"), []

    def start(journal):
        if not taken:
            taken.append(journal.id)
            with store.run(journal.id) as other:
                other({"shape": {"name": "content"}, "schedule": "waves", "state": {}})
        journal.begin()
        journal.close()
        return "ran"
    assert runs.begin(store, "content", start) == ("content-2", "ran")
    assert taken == ["content-1"]

    def full(journal):
        raise StoreError("disk full")
    with pytest.raises(StoreError, match="disk full"):
        runs.begin(store, "content", full)

    def half(journal):
        journal.begin()
        raise JournalError("disk full")
    with pytest.raises(JournalError):
        runs.begin(store, "content", half)


def test_how_a_run_stands_is_found_out_without_running_it(capsys, tmp_path):
    """From every record of a run: unfinished until nothing is left to be called, then what it ended with."""
    run(capsys, "content", INSULT)
    records = SqliteStore(runs.STORE).load("content-1")
    before = sorted(Path("outbox").iterdir())
    found = [runs.standing(records[:count])[0] for count in range(len(records) + 1)]
    assert found == ["unfinished"] * 6 + ["paused", "paused"]
    assert runs.standing(records)[1]["person"].startswith("Publish, rewrite or drop?")
    assert sorted(Path("outbox").iterdir()) == before


def test_what_cannot_be_done_leaves_no_run_behind(capsys):
    """An answer that is refused at a fork is no new run."""
    run(capsys, "content", INSULT)
    assert run(capsys, "resume", "content-1", "--from", 7, "--answer", "person=maybe")[0] == 1
    assert [row.id for row in SqliteStore(runs.STORE).list()] == ["content-1"]


def test_a_damaged_run_does_not_hide_the_others(capsys):
    """`runs` lists it as damaged, says what to do, and lists the rest."""
    import sqlite3
    run(capsys, "content", CALM)
    run(capsys, "content", INSULT)
    with sqlite3.connect(runs.STORE) as db:
        db.execute("UPDATE records SET record = '{' WHERE run = 1 AND number = 3")
    db.close()
    one, two = json.loads(run(capsys, "runs", "--json")[1])
    assert (one["status"], two["status"]) == ("damaged", "paused")
    assert "record 3 of run 'content-1'" in one["note"] and "keeps what comes before it" in one["note"]
