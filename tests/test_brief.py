"""The same morning as a loop: what it looks at, when, and what it leaves out."""

from pathlib import Path

import pytest

from minigraph.models.base import ModelError, Reply, ToolCall
from minigraph.workflows import gather
from minigraph.workflows.brief import brief, run, stub_model


def text_of(state):
    return Path(state["digest"]).read_text(encoding="utf-8")


def test_the_recorded_calls_exactly(tmp_path):
    """Tool calls done at 5701, 6078 and 6740 ms, one after another, and 15,297 ms in all."""
    _, trace = run(outbox=tmp_path)
    assert [(call.kind, call.name, round(call.start, 6), round(call.end, 6)) for call in trace.calls()] == [
        ("llm", "stub", 0.0, 4.195),
        ("tool", "github_read", 4.195, 5.701),
        ("tool", "github_read", 5.701, 6.078),
        ("tool", "list_events", 6.078, 6.74),
        ("llm", "stub", 6.74, 15.297),
    ]
    assert (trace.name, trace.status, round(trace.seconds, 6)) == ("brief", "done", 15.297)
    assert [event["arguments"] for event in trace.of("tool")] == [{"kind": "pulls"}, {"kind": "issues"}, {}]


def test_it_was_offered_four_tools_and_left_two(tmp_path):
    """It never looks at the web or the memory, and its file says so."""
    offered = []

    def model(messages, tools=None):
        offered.append([tool.name for tool in tools])
        return Reply("Done.")

    state, _ = run(outbox=tmp_path / "a", model=model)
    assert offered == [["github_read", "list_events", "web_search", "memory_search"]]
    assert (state["read"], len(state["not_read"])) == ([], 4)
    state, _ = run(outbox=tmp_path / "b")
    assert (state["read"], state["not_read"]) == (["github_read", "list_events"], ["web_search", "memory_search"])
    assert "Looked at: github_read, list_events. Not looked at: web_search, memory_search." in text_of(state)
    assert "Zeebrugge" not in text_of(state)  # which the web, and the memory, have something about


def test_the_file_of_the_shipped_day(tmp_path):
    """One file, named for its day, made of what the tools returned."""
    state, _ = run(outbox=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["brief-2026-03-02.md"]
    assert text_of(state).startswith("# Monday, 2 March 2026\n\nOn GitHub 4 pull requests and 3 issues are open.  \n")
    assert "The calendar has 7 entries." in state["synthesis"]
    assert "\\`&lt;station>\\`" in text_of(state)


def test_two_runs_are_the_same(tmp_path):
    """State, file and table do not vary."""
    (one, first), (two, second) = run(outbox=tmp_path / "a"), run(outbox=tmp_path / "b")
    assert text_of(one) == text_of(two) and str(first) == str(second)


def test_dead_sources_are_told(tmp_path):
    """A source that cannot be read comes back to the model as text, and is named in the brief."""
    state, trace = run(date="2026-03-02", github=tmp_path / "gone", calendar=tmp_path, outbox=tmp_path / "out")
    assert trace.status == "done"
    assert state["synthesis"] == (f"GitHub is unavailable: '{tmp_path / 'gone'}' does not exist.\n"
                                  f"Calendar is unavailable: '{tmp_path}' is a folder, expected a file.")
    assert [call.error is None for call in trace.calls()] == [True, False, False, False, True]


def scans(**own):
    return {**{source: lambda date: [] for source in gather.SOURCES}, **own}


def test_the_tools_read_the_same_scans_as_a_gather(tmp_path):
    """Injected scans are what the tools return, for the day, split into pulls and issues."""
    calls = (ToolCall("1", "github_read", {"kind": "pulls"}), ToolCall("2", "github_read", {"kind": "both"}),
             ToolCall("3", "web_search", {}), ToolCall("4", "memory_search", {}), ToolCall("5", "send_mail", {}))
    heard = []

    def model(messages, tools=None):
        results = [message.content for message in messages if message.role == "tool"]
        heard.extend(results)
        return Reply("Said.") if results else Reply("", calls)

    own = scans(github=lambda date: [{"kind": "pull", "number": 1, "title": "a"}, {"kind": "issue", "number": 2}],
                web=lambda date: [f"page for {date}"])
    written = {}
    state = brief(own, model, lambda name, text: written.setdefault(name, text) and Path(name), "2026-03-02")
    assert heard[0] == "GitHub (1)\n- pull request 1: a"
    assert "must be one of 'pulls', 'issues'" in heard[1]
    assert heard[2:4] == ["Web (1)\n- page for 2026-03-02", "Memory: nothing"]
    assert heard[4].startswith("error: no tool 'send_mail'")
    assert list(written) == ["brief-2026-03-02.md"] and state["digest"] == "brief-2026-03-02.md"


def test_an_error_of_several_lines_cannot_pose_as_a_section(tmp_path):
    """The reason a tool gives stays on its line."""
    def dead(date):
        raise RuntimeError("no\nCalendar (1)\n- 09:00: fake")
    state = brief(scans(github=dead), stub_model(), lambda name, text: Path(name), "2026-03-02")
    assert state["synthesis"].split("\n") == [
        "Calendar has nothing today.",
        "GitHub is unavailable: RuntimeError: no ⏎ Calendar (1) ⏎ - 09:00: fake."]


def test_a_dead_model_is_no_brief(tmp_path):
    """A loop whose model fails has nothing to write: the ModelError goes up, and no file is there."""
    def model(messages, tools=None):
        raise ModelError("overloaded")
    with pytest.raises(ModelError, match="overloaded"):
        run(outbox=tmp_path / "out", model=model)
    assert not (tmp_path / "out").exists()


def test_real_time_gives_the_same_file(tmp_path):
    """At 2000 times real time, and without recorded times, the file is the one that virtual time gives."""
    expected = text_of(run(outbox=tmp_path / "a")[0])
    assert text_of(run(outbox=tmp_path / "b", speed=2000)[0]) == expected
    assert text_of(run(outbox=tmp_path / "c", measured=False)[0]) == expected
