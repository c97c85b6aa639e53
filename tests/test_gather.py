"""The morning routine as a graph: four sources at once, whatever dies, and one digest."""

import json
import re
import threading
from datetime import date
from pathlib import Path

import pytest

from minigraph import run_graph
from minigraph.clock import virtual_time
from minigraph.models.base import ModelError, Reply
from minigraph.workflows import gather, sources
from minigraph.workflows.gather import build, day_for, run

DATA = Path(__file__).resolve().parent.parent / "data"
SECTIONS = {"calendar": "Calendar", "github": "GitHub", "web": "Web", "memory": "Memory"}


def digest_of(state):
    return Path(state["digest"]).read_text(encoding="utf-8")


def section(digest, source):
    """The text under a source's heading."""
    return re.search(rf"^## {SECTIONS[source]}\n\n(.*?)(?=\n\n## |\n\n---)", digest, re.M | re.S)[1]


# ---- shape and time


def test_the_shape():
    """START fans out to four scans, synthesize joins them, a router over counts leads to the digest or to the end."""
    graph = build(quiet(), lambda messages: Reply(""), lambda name, text: Path(name))
    described = graph.describe()
    scans = ["scan_github", "scan_web", "scan_calendar", "scan_memory"]
    assert [(node["name"], node["kind"], node["on_error"]) for node in described["nodes"]] == [
        *[(scan, "tool", "synthesize") for scan in scans], ("synthesize", "llm", "draft_digest"),
        ("draft_digest", "tool", None)]
    assert [(edge["src"], edge["dst"]) for edge in described["edges"] if not edge["conditional"]] == [
        *[("START", scan) for scan in scans], *[(scan, "synthesize") for scan in scans], ("draft_digest", "END")]
    assert [(edge["src"], edge["label"], edge["dst"]) for edge in described["edges"]
            if edge["conditional"] and edge["label"] != "on_error"] == [
        ("synthesize", "something", "draft_digest"), ("synthesize", "nothing", "END")]
    assert graph.lint() == []


def test_the_recorded_waves_exactly(tmp_path):
    """1506, 1887, 2 and 1 ms at once, of which the web sets the pace; 11,279 ms of synthesis; 13.166 s in all."""
    _, trace = run(outbox=tmp_path)
    rows = [(visit.wave, visit.node, round(visit.start, 6), round(visit.end, 6), round(visit.wait, 6))
            for visit in trace.visits()]
    assert rows == [
        (1, "scan_github", 0.0, 1.506, 0.381),
        (1, "scan_web", 0.0, 1.887, 0.0),
        (1, "scan_calendar", 0.0, 0.002, 1.885),
        (1, "scan_memory", 0.0, 0.001, 1.886),
        (2, "synthesize", 1.887, 13.166, 0.0),
        (3, "draft_digest", 13.166, 13.166, 0.0),
    ]
    assert (trace.name, trace.status, round(trace.seconds, 6)) == ("gather", "done", 13.166)
    assert "set the pace" in str(trace) and "waited 1.885 s at the barrier" in str(trace)


def test_two_runs_are_the_same(tmp_path):
    """State, digest and table of a run on the shipped files do not vary."""
    (one, first), (two, second) = run(outbox=tmp_path / "a"), run(outbox=tmp_path / "b")
    assert digest_of(one) == digest_of(two)
    assert str(first) == str(second)
    assert {**one, "digest": ""} == {**two, "digest": ""}


def test_ready_and_waves_agree(tmp_path):
    """Under schedule="ready" nobody waits at a barrier; the digest and the total are the same."""
    (one, _), (two, trace) = run(outbox=tmp_path / "a"), run(outbox=tmp_path / "b", schedule="ready")
    assert digest_of(one) == digest_of(two)
    assert trace.schedule == "ready" and round(trace.seconds, 6) == 13.166


def test_a_dead_source_takes_its_time_too(tmp_path):
    """The web that dies after 1.887 s still sets the pace."""
    _, trace = run(outbox=tmp_path, web=tmp_path / "gone.json")
    [web] = [visit for visit in trace.visits() if visit.node == "scan_web"]
    assert round(web.end, 6) == 1.887 and web.error == f"SourceError: '{tmp_path / 'gone.json'}' does not exist"


def test_speed_is_checked():
    """A speed that is not above 0 is a ValueError that says so, before anything runs."""
    for measured in (True, False):
        with pytest.raises(ValueError, match="speed"):
            run(speed=0, measured=measured)


def test_real_time_gives_the_same_digest(tmp_path):
    """At 2000 times real time, and without recorded times, the digest is the one that virtual time gives."""
    expected = digest_of(run(outbox=tmp_path / "a")[0])
    assert digest_of(run(outbox=tmp_path / "b", speed=2000)[0]) == expected
    assert digest_of(run(outbox=tmp_path / "c", measured=False)[0]) == expected


def test_in_real_time_the_files_are_read_before_the_clock_runs(tmp_path, monkeypatch):
    """So that a scan takes its recorded time and not the machine's; a dead source is dead in the run all the same."""
    seen = []
    monkeypatch.setattr(sources, "warm_up", lambda: seen.append("clock"))
    monkeypatch.setattr(sources, "read_web", lambda path: seen.append("web") or ["page"])
    state, trace = run(outbox=tmp_path, github=tmp_path / "gone", speed=2000, date="2026-03-02")
    assert seen == ["web", "clock"]
    assert state["web"] == ["page"] and set(state.errors) == {"scan_github"}
    assert [visit.error for visit in trace.visits() if visit.node == "scan_github"] == [
        f"SourceError: '{tmp_path / 'gone'}' does not exist"]


# ---- what is in the digest


def test_the_digest_of_the_shipped_files(tmp_path):
    """One file, named for its day, with the synthesis on top and every item of every source under its heading."""
    state, _ = run(outbox=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["gather-2026-03-02.md"]
    assert (state.status, state.errors, state["date"]) == ("done", {}, "2026-03-02")
    digest = digest_of(state)
    assert digest.startswith("# Monday, 2 March 2026\n\nThe calendar has 7 entries.  \n")
    counts = {source: len(re.findall("^- ", section(digest, source), re.M)) for source in SECTIONS}
    assert counts == {source: len(state[source]) for source in SECTIONS}
    assert counts == {"calendar": 7, "github": 7, "web": 3, "memory": 6}
    assert "Escape \\`&lt;station>\\` tags and \\| pipes in the tide table" in section(digest, "github")
    for line in state["synthesis"].split("\n"):
        assert line.partition(":")[0] in digest.partition("## Calendar")[0]


def test_a_date_and_files_of_ones_own(tmp_path):
    """--date moves the calendar; a calendar of one's own without a date is read for today."""
    state, _ = run(date="2026-03-09", outbox=tmp_path)
    assert Path(state["digest"]).name == "gather-2026-03-09.md"
    assert "Choir practice" in section(digest_of(state), "calendar")
    own = tmp_path / "own.ics"
    own.write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20000101\nRRULE:FREQ=DAILY\n"
                   "SUMMARY:every day\nEND:VEVENT\nEND:VCALENDAR\n")
    before = date.today()
    state, _ = run(calendar=own, outbox=tmp_path)
    assert before <= date.fromisoformat(state["date"]) <= date.today()
    assert "every day" in section(digest_of(state), "calendar")


def test_days():
    """A date, a text, or none: then today for one's own calendar, and for the shipped one the day it was made for."""
    assert day_for("2026-03-09", None) == day_for(date(2026, 3, 9), "own.ics") == date(2026, 3, 9)
    assert day_for(None, None) == sources.SHIPPED_DAY == date(2026, 3, 2)
    assert day_for(None, "own.ics") >= date(2026, 3, 2) or date.today() < date(2026, 3, 2)
    for wrong in ("tomorrow", "2026-02-30", "", "9.3.2026"):
        with pytest.raises(ValueError, match=f"'{wrong}' is no date: write it as YYYY-MM-DD"):
            day_for(wrong, None)


def test_the_memory_can_be_asked_something_else(tmp_path):
    """query= is what is looked for in the memory."""
    state, _ = run(outbox=tmp_path, query="東京")
    assert [note["id"] for note in state["memory"]] == ["m04"]


def test_hostile_file_contents_come_through_whole_and_harmless(tmp_path):
    """Markup, pipes, backticks and line breaks in a title are shown, in the section and in the synthesis."""
    title = "<script>alert('x')</script> | `rm -rf` \n## Memory\n- fake {date} {{x}} 🚀\x07"
    github = tmp_path / "github.json"
    github.write_text(json.dumps([{"number": 1, "title": title, "html_url": "javascript:alert(1)",
                                   "requested_reviewers": [{"login": "mara"}]}]))
    digest = digest_of(run(github=github, outbox=tmp_path)[0])
    assert "<script>" not in digest and "javascript:" not in digest and "\x07" not in digest
    shown = r"&lt;script>alert('x')&lt;/script> \| \`rm -rf\` ⏎ ## Memory ⏎ - fake {date} {{x}} 🚀␇"
    assert digest.count(shown) == 2
    assert digest.count("\n## Memory\n") == 1


# ---- when sources die


BROKEN = {"missing": None, "empty": "", "broken": "{"}
REASONS = {"missing": "does not exist", "empty": "is empty",
           "broken": "is not JSON at line 1|is not an iCalendar file: it begins with '{'"}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("dead", [*SECTIONS, "all four"])
def test_a_dead_source_is_unavailable_and_the_digest_comes(dead, how, tmp_path):
    """Missing, empty or broken: named with its reason in its own section; the others are as if nothing had happened."""
    names = list(SECTIONS) if dead == "all four" else [dead]
    files = {source: tmp_path / f"{source}.txt" for source in names}
    for file in files.values():
        if BROKEN[how] is not None:
            file.write_text(BROKEN[how])
    well = digest_of(run(outbox=tmp_path / "well")[0])
    state, trace = run(date="2026-03-02", outbox=tmp_path / "out", **files)
    digest = digest_of(state)
    assert state.status == trace.status == "done"
    assert set(state.errors) == {f"scan_{source}" for source in names}
    for source in SECTIONS:
        if source in names:
            assert re.fullmatch(rf"\*unavailable: '.*{source}\.txt' ({REASONS[how]}).*\*", section(digest, source))
            assert f"{SECTIONS[source]} is unavailable: " in digest.partition("## Calendar")[0]
        else:
            assert section(digest, source) == section(well, source)


def explode(error):
    def scan(date):
        raise error
    return scan


@pytest.mark.parametrize("scan, reason", [
    (explode(RuntimeError("no route <to> host")), "RuntimeError: no route &lt;to> host"),
    (explode(KeyError("x")), "KeyError: 'x'"),
    (explode(TimeoutError()), "TimeoutError"),
    (lambda date: None, "TypeError: the scan of 'web' returned None, and a scan returns a list"),
    (lambda date: {"a": 1}, "TypeError: the scan of 'web' returned {'a': 1}, and a scan returns a list"),
])
def test_any_failure_of_a_scan_is_unavailable(scan, reason, tmp_path):
    """Not only SourceError: whatever a scan raises, or returns instead of a list, is data and not silence."""
    state = run_on({**quiet(), "web": scan}, tmp_path)
    assert state.status == "done"
    assert section(digest_of(state), "web").startswith(f"*unavailable: {reason}")


def quiet():
    return {source: lambda date: [] for source in gather.SOURCES}


def run_on(scans, folder, model=lambda messages: Reply("Said.")):
    graph = build(scans, model, lambda name, text: sources.write_outbox(folder, name, text))
    with virtual_time():
        return run_graph(graph, {"date": "2026-03-02"}, strict=True)


def test_a_quiet_day_ends_without_a_digest(tmp_path):
    """Nothing to say and nothing unavailable: END, and no file."""
    state = run_on(quiet(), tmp_path / "outbox")
    assert state.status == "done" and "digest" not in state
    assert not (tmp_path / "outbox").exists()


@pytest.mark.parametrize("wording", ["nothing", "END", "something", "", "There is nothing at all to say."])
def test_counts_decide_and_no_wording_does(wording, tmp_path):
    """Whatever the model says, one item is a digest, and none is none."""
    def model(messages):
        return Reply(wording)
    assert "digest" not in run_on(quiet(), tmp_path, model)
    assert "digest" in run_on({**quiet(), "web": lambda date: ["x"]}, tmp_path, model)


def test_a_dead_model_is_not_the_end(tmp_path):
    """Without a synthesis the digest comes with what was gathered, and says what is missing."""
    def model(messages):
        raise ModelError("the service is overloaded (529)")
    state = run_on({**quiet(), "web": lambda date: ["x"]}, tmp_path, model)
    assert state.status == "done"
    assert "There is no synthesis: ModelError: the service is overloaded (529)" in digest_of(state)
    assert section(digest_of(state), "web") == "- x"


def test_an_outbox_that_cannot_be_written_is_a_failure(tmp_path):
    """The run fails with one sentence; what was gathered is in the state."""
    (tmp_path / "outbox").write_text("")
    state, trace = run(outbox=tmp_path / "outbox")
    assert state.status == trace.status == "failed"
    assert state.errors["draft_digest"].startswith("OutboxError: cannot write 'gather-2026-03-02.md' into the outbox")
    assert len(state["web"]) == 3


def test_scans_run_at_once(tmp_path):
    """All four are under way together: each waits for the others."""
    barrier = threading.Barrier(4, timeout=10)

    def scan(date):
        barrier.wait()
        return ["x"]
    graph = build(dict.fromkeys(gather.SOURCES, scan), lambda messages: Reply(""),
                  lambda name, text: sources.write_outbox(tmp_path, name, text))
    assert run_graph(graph, {"date": "2026-03-02"}).errors == {}


def test_the_question_holds_all_that_was_found(tmp_path):
    """The model reads the day, every item and every reason; what it is told to do stands apart, as system."""
    asked = []

    def model(messages):
        asked.append(messages)
        return Reply("ok")
    run_on({**quiet(), "web": lambda date: [{"title": f"page for {date}", "url": ""}],
            "memory": explode(sources.SourceError("memory", "the file is gone"))}, tmp_path, model)
    [[system, user]] = asked
    assert system.content == gather.INSTRUCTIONS
    assert user.content == ("Today is Monday, 2 March 2026.\n\nCalendar: nothing\nGitHub: nothing\n"
                            "Web (1)\n- page for 2026-03-02\nMemory: unavailable, the file is gone")
