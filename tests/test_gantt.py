"""Charts of runs: the rows, what stands on the Axes, and that nothing overlaps, clips, lies or leaves a trace."""

import json
import random
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import make

from minigraph import END, START, Graph, emit, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.gantt import Bar, chart, compare, gantt, rows, waterfall, waves_of, waves_text
from minigraph.trace import Trace

pytest.importorskip("matplotlib")

# ---- runs


def takes(seconds, error=None):
    def work(state):
        sleep(seconds)
        if error:
            raise error
    return work


def run(graph, **kwargs):
    trace = Trace()
    with virtual_time():
        run_graph(graph, {}, trace, **kwargs)
    return trace


def gather(**kwargs):
    """Four sources at once, then a model: the recorded latencies."""
    def synthesize(state):
        sleep(11.279)
        emit("llm", {"name": "stub", "ms": 11279.0, "error": None})

    scans = {"scan_github": 1.506, "scan_web": 1.887, "scan_calendar": 0.002, "scan_memory": 0.001}
    graph = make("START>" + ",".join(scans), name="gather", **{name: takes(s) for name, s in scans.items()})
    graph.add_node("synthesize", synthesize, kind="llm")
    for name in scans:
        graph.add_edge(name, "synthesize")
    graph.add_node("draft", takes(0.004))
    graph.add_router("synthesize", lambda state: "digest", {"digest": "draft", "nothing": END})
    return run(graph.add_edge("draft", END), **kwargs)


def loop():
    """A model that calls three tools, one after another, and then answers."""
    events, t = [{"kind": "loop_start", "t": 0.0, "workflow": "brief"}], 0.0
    for kind, name, ms in [("llm", "stub", 4195), ("tool", "github_read", 1506), ("tool", "github_read", 377),
                           ("tool", "list_events", 662), ("llm", "stub", 8557)]:
        t += ms / 1000
        events.append({"kind": kind, "t": t, "workflow": "brief", "name": name, "ms": ms, "error": None})
    return Trace([*events, {"kind": "loop_end", "t": t, "workflow": "brief", "status": "done", "ms": t * 1000}])


def revisions():
    """A cycle of three laps, whose last visit is refused, and a handler."""
    graph = Graph("revisions").add_node("check", takes(1)).add_node("length", takes(0.004))
    graph.add_node("join", takes(0.001)).add_node("revise", takes(0.5), max_visits=2, on_error="person")
    graph.add_node("person", takes(0.2)).add_node("begin", takes(0.3))
    graph.add_edge(START, "begin").add_edge("begin", "check").add_edge("begin", "length")
    graph.add_edge("check", "join").add_edge("length", "join")
    graph.add_router("join", lambda state: "fix", {"fix": "revise", "good": END})
    graph.add_router("revise", lambda state: "again", {"again": ["check", "length"]})
    return run(graph.add_edge("person", END))


def failing():
    """One node fails, and what is below it is blocked."""
    graph = make("START>a,b a>c b>c c>END", name="failing", a=takes(1, ValueError("no such day")), b=takes(0.25))
    return run(graph)


def many(count, seed=0):
    """A graph of this many nodes in random layers, with times from 1 ms to 3 s."""
    dice = random.Random(seed)
    graph = Graph("many")
    for i in range(count):
        graph.add_node(f"step_{i:03}", takes(dice.choice([0.001, 0.01, 0.2, 0.7, 3])))
        above = [j for j in range(max(0, i - 12), i) if dice.random() < 0.2]
        for j in above:
            graph.add_edge(f"step_{j:03}", f"step_{i:03}")
        if not above:
            graph.add_edge(START, f"step_{i:03}")
    return run(graph)


def laps(count):
    """Two nodes that run this often."""
    graph = Graph("laps").add_node("work", takes(0.2), max_visits=count).add_node("check", takes(0.1), max_visits=count)
    graph.add_edge(START, "work").add_edge("work", "check")
    left = iter(range(count - 1, -1, -1))
    graph.add_router("check", lambda state: "again" if next(left) else "done", {"again": "work", "done": END})
    return run(graph, max_steps=2 * count)


# ---- reading the Axes back


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def lanes(ax):
    return {round(y, 6): label.get_text() for y, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}


def bars(ax):
    """(lane, start, length, hatch) of each bar, as numbers in seconds."""
    names = lanes(ax)
    found = []
    for patch in ax.patches:
        middle = round(patch.get_y() + patch.get_height() / 2, 6)
        if patch.get_height() == pytest.approx(0.62):
            found.append((names[middle], round(patch.get_x(), 6), round(patch.get_width(), 6), patch.get_hatch()))
    return found


def boxes(ax):
    """[(text, its extent in pixels)] of all that is written on the figure."""
    renderer = ax.figure.canvas.get_renderer()
    ax.figure.canvas.draw()
    written = [*ax.texts, *ax.get_yticklabels(), *ax.get_xticklabels(), ax.xaxis.label]
    low, high = ax.get_xlim()
    return [(text.get_text(), text.get_window_extent(renderer)) for text in written if text.get_text()
            and (text not in ax.get_xticklabels() or low <= text.get_position()[0] <= high)]


# ---- rows


def test_rows_are_a_bar_a_visit_in_the_order_of_the_graph():
    """Start, end and wait in seconds; the route taken and who set the pace stand in the notes."""
    assert [(b.lane, b.kind, round(b.start, 3), round(b.end, 3), round(b.wait, 3), b.wave, b.notes)
            for b in rows(gather())] == [
        ("scan_github", "node", 0, 1.506, 0.381, 1, []),
        ("scan_web", "node", 0, 1.887, 0, 1, ["set the pace"]),
        ("scan_calendar", "node", 0, 0.002, 1.885, 1, []),
        ("scan_memory", "node", 0, 0.001, 1.886, 1, []),
        ("synthesize", "llm", 1.887, 13.166, 0, 2, ["→ digest"]),
        ("draft", "node", 13.166, 13.17, 0, 3, [])]
    assert [(wave, round(start, 3), round(end, 3)) for wave, start, end in waves_of(gather())] == [
        (1, 0, 1.887), (2, 1.887, 13.166), (3, 13.166, 13.17)]


def test_rows_of_a_loop_are_a_bar_a_call_the_model_first():
    """One lane for the model, and one for each tool."""
    assert [(b.lane, b.kind, round(b.start, 3), round(b.end, 3)) for b in rows(loop())] == [
        ("model", "llm", 0, 4.195), ("model", "llm", 6.74, 15.297),
        ("github_read", "tool", 4.195, 5.701), ("github_read", "tool", 5.701, 6.078),
        ("list_events", "tool", 6.078, 6.74)]
    assert waves_of(loop()) == []


def test_rows_tell_failures_refusals_blocks_and_retries():
    """What did not run has a bar of no length, with the reason."""
    found = {(b.lane, b.kind): b for b in rows(failing())}
    assert found["a", "node"].error == "ValueError: no such day"
    assert found["c", "blocked"].seconds == 0 and "a" in found["c", "blocked"].error
    refused = [b for b in rows(revisions()) if b.kind == "refused"]
    assert [(b.lane, b.error, b.seconds) for b in refused] == [("revise", "max_visits=2 reached", 0)]
    assert [b.visit for b in rows(revisions()) if b.lane == "check"] == [1, 2, 3]
    trace = run(make("START>a a>END", a=takes(1)))
    retried = Trace([*trace.events, {"kind": "retry", "t": 0.5, "node": "a", "workflow": "test"}])
    assert [b.notes for b in rows(retried)] == [["2 attempts"]]


def test_a_router_that_fails_marks_the_bar_of_its_node():
    """The node ran; its router is what failed."""
    trace = run(make("START>a", a=takes(1), routers={"a": (lambda state: "nowhere", {"on": END})}))
    [bar] = rows(trace)
    assert "nowhere" in bar.error and bar.seconds == 1


def test_what_a_nested_graph_ran_stands_below_the_node_that_holds_it():
    """Visits named outer/inner follow the lane of outer; the inner waves and routes are not the outer graph's."""
    trace = run(make("START>a b>END", a=takes(1), b=takes(1), routers={"a": (lambda state: "on", {"on": "b"})}))
    inner = [{"kind": "wave_start", "t": 0, "wave": 7, "nodes": ["z"], "node": "a", "workflow": "in"},
             {"kind": "node_start", "t": 0, "node": "a/z", "visit": 1, "wave": 1, "workflow": "in"},
             {"kind": "node_end", "t": 0.4, "node": "a/z", "visit": 1, "ms": 400, "keys": [], "error": None},
             {"kind": "node_start", "t": 0.4, "node": "a/x", "visit": 1, "wave": 2, "workflow": "in"},
             {"kind": "node_end", "t": 0.9, "node": "a/x", "visit": 1, "ms": 500, "keys": [], "error": None},
             {"kind": "route", "t": 1.5, "router": "a", "label": "inner", "node": "a", "workflow": "in"},
             {"kind": "wave_end", "t": 3, "wave": 2, "nodes": ["x"], "waits": {}, "node": "a", "workflow": "in"}]
    nested = Trace([*trace.events, *inner])
    assert [(b.lane, b.notes) for b in rows(nested)] == [("a", ["→ on"]), ("a/z", []), ("a/x", []), ("b", [])]
    assert waves_of(nested) == waves_of(trace) == [(1, 0, 1), (2, 1, 2)]


# ---- on the Axes


def test_a_bar_is_as_long_as_its_visit_and_its_wait_is_hatched():
    """Seconds on the axis, a lane a node, bars and hatched waits where they were."""
    ax = gantt(gather())
    assert list(lanes(ax).values()) == [
        "scan_github", "scan_web", "scan_calendar", "scan_memory", "synthesize", "draft"]
    assert bars(ax) == [
        ("scan_github", 0, 1.506, None), ("scan_github", 1.506, 0.381, "////"), ("scan_web", 0, 1.887, None),
        ("scan_calendar", 0, 0.002, None), ("scan_calendar", 0.002, 1.885, "////"),
        ("scan_memory", 0, 0.001, None), ("scan_memory", 0.001, 1.886, "////"),
        ("synthesize", 1.887, 11.279, None), ("draft", 13.166, 0.004, None)]
    assert ax.get_xlabel() == "seconds since the start; hatched: waited at the barrier"
    assert ax.get_xlim()[0] == 0 and 13.17 < ax.get_xlim()[1] < 14


def test_the_labels_say_how_long_and_who_waited():
    """In the bar, or beside it where it is too short."""
    assert texts(gantt(gather())) == [
        "gather: done after 13.170 s", "wave 1", "wave 2", "1.506 s", "waited 0.381 s", "1.887 s", "set the pace",
        "2 ms · waited 1.885 s", "1 ms · waited 1.886 s", "11.279 s → digest", "4 ms"]


def test_a_bar_too_short_to_see_gets_a_thin_mark_and_keeps_its_length():
    """The bar says how long it was, the mark that it was."""
    ax = gantt(gather())
    thin = [line for line in ax.lines if line.get_linewidth() == 2.0]
    assert [line.get_xdata()[0] for line in thin] == [0, 0, pytest.approx(13.166)]
    assert ("scan_memory", 0, 0.001, None) in bars(ax)


def test_waves_are_bands_with_their_number():
    """From the start of a wave to its end, over all lanes; under "ready" there are none."""
    ax = gantt(gather())
    bands = [p for p in ax.patches if p.get_height() > 4]
    assert [(round(p.get_x(), 3), round(p.get_width(), 3)) for p in bands] == [(0, 1.887), (1.887, 11.279),
                                                                             (13.166, 0.004)]
    ready = gantt(gather(schedule="ready"))
    assert not any(text.startswith("wave") for text in texts(ready))
    assert [p for p in ready.patches if p.get_height() > 4] == []
    assert texts(gantt(laps(50)))[1] == "100 waves"  # too narrow to name one by one


def test_visits_of_a_cycle_stand_on_one_lane():
    """One lane a node, with how often; the refused visit is a cross on it, in words."""
    ax = gantt(revisions())
    assert list(lanes(ax).values()) == ["check ×3", "length ×3", "join ×3", "revise ×2", "person", "begin"]
    assert [start for lane, start, _, hatch in bars(ax) if lane == "check ×3" and not hatch] == [0.3, 1.801, 3.302]
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    assert [(round(line.get_xdata()[0], 3), lanes(ax)[line.get_ydata()[0]]) for line in crosses] == [
        (4.303, "revise ×2")]
    assert [text for text in texts(ax) if text.startswith("refused")] == ["refused"]
    assert "refused: max_visits=2 reached" in waves_text(revisions())


def test_failures_have_a_sign_words_and_a_hatch_of_their_own():
    """Not by colour alone: crossed hatching, ✗ and the error."""
    ax = gantt(failing())
    assert bars(ax) == [("a", 0, 1, "xxxx"), ("b", 0, 0.25, None), ("b", 0.25, 0.75, "////")]
    assert "1.000 s · set the pace · ✗ failed: ValueError: no such day" in texts(ax)
    assert any(text.startswith("blocked: ") for text in texts(ax))
    assert "crossed: failed" in ax.get_xlabel()


def test_the_error_is_told_where_there_is_room_for_it():
    """A failed bar too short for its error has it beside it; where there is no room at all, the sign is in the bar."""
    short = run(make("START>a a>b b>END", a={"fn": takes(1, ValueError("no such day")), "on_error": "b"}, b=takes(9)))
    assert "1.000 s · ✗ failed: ValueError: no such day" in texts(gantt(short))
    tight = make("START>a a>END", a={"fn": takes(1, ValueError("no such day")), "max_visits": 30, "on_error": "b"})
    tight.add_node("b", takes(0.05)).add_router("b", lambda state: "again", {"again": "a"})
    assert texts(gantt(run(tight, max_steps=24))).count("✗ failed") == 12


def test_a_loop_has_a_lane_for_the_model_and_one_for_each_tool():
    """Calls of a loop are bars too."""
    ax = gantt(loop())
    assert bars(ax) == [("model ×2", 0, 4.195, None), ("model ×2", 6.74, 8.557, None),
                        ("github_read ×2", 4.195, 1.506, None), ("github_read ×2", 5.701, 0.377, None),
                        ("list_events", 6.078, 0.662, None)]
    assert texts(ax) == ["brief: done after 15.297 s", "4.195 s", "8.557 s", "1.506 s", "0.377 s", "0.662 s"]


def test_calls_of_one_tool_that_overlap_get_lanes_of_their_own():
    """No bar hides another; only the first lane carries the name."""
    calls = [{"kind": "tool", "t": end, "name": "read", "ms": 1000 * ms, "error": None, "workflow": "w"}
             for end, ms in [(2, 2), (2, 2), (3, 1)]]
    ax = gantt(Trace([{"kind": "loop_start", "t": 0, "workflow": "w"}, *calls]))
    assert list(lanes(ax).values()) == ["read ×3", ""]
    assert [(start, length) for _, start, length, _ in bars(ax)] == [(0, 2), (2, 1), (0, 2)]


def test_compare_puts_two_runs_on_one_scale_with_their_marks():
    """One above the other, seconds shared, each with its title and its vertical marks with words."""
    ax = compare([gather(), loop()], labels=["the graph", "the loop"],
                 marks=[[("gathered", 1.887)], [("gathered", 6.74)]])
    assert ax.get_xlim()[1] == pytest.approx(15.297 * 1.02)
    assert [text for text in texts(ax) if "after" in text or "gathered" in text] == [
        "the graph: done after 13.170 s", "gathered: 1.89 s", "the loop: done after 15.297 s", "gathered: 6.74 s"]
    rules = [line for line in ax.lines if line.get_marker() == "v"]
    assert [list(line.get_xdata()) for line in rules] == [[1.887] * 2, [6.74] * 2]
    assert rules[0].get_ydata()[1] < rules[1].get_ydata()[0]  # each over its own lanes
    assert list(lanes(ax).values())[:2] == ["scan_github", "scan_web"]
    assert list(lanes(ax).values())[-3:] == ["model ×2", "github_read ×2", "list_events"]


def test_a_run_of_nothing_says_so():
    """START -> END: no bars, and a sentence."""
    ax = gantt(run(make("START>END")))
    assert texts(ax) == ["test: done after 0.000 s", "nothing ran"] and bars(ax) == []


LONG = make(f"START>{'x' * 90},a_name_that_goes_on_and_on_and_on_and_never_really_stops,🚀 🚀>END",
            name="a title that is too long for any figure " * 8, **{"🚀": takes(0.1), "x" * 90: takes(1)})


TIGHT = Trace([{"kind": "loop_start", "t": 0, "workflow": "tight"},  # both calls of read want the gap between them
               *({"kind": "tool", "t": end, "name": name, "ms": ms, "error": None, "workflow": "tight"}
                 for name, end, ms in [("other", 7.8, 7800), ("read", 7.9, 100), ("read", 9, 50)])])


def test_a_title_too_long_is_cut_with_dots():
    """What there is room for, and a sign that there is more."""
    title = texts(gantt(run(LONG)))[0]
    assert title.startswith("a title that is too long") and title.endswith(" …") and len(title) > 60


@pytest.mark.parametrize("traces", [
    [gather()], [loop()], [gather(), loop()], [revisions()], [failing()], [many(3)], [many(20, 1)], [many(60, 2)],
    [many(100, 3)], [laps(3)], [laps(12)], [laps(50)], [run(LONG)], [revisions(), many(30, 4), failing()], [TIGHT],
], ids=range(15))
def test_labels_never_overlap_or_clip(traces):
    """Whatever is written stands on the figure, whole, and over no other words."""
    ax = compare(traces, marks=[[("gathered", trace.seconds / 2)] for trace in traces])
    width, height = ax.figure.canvas.get_width_height()
    written = boxes(ax)
    for i, (text, box) in enumerate(written):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text
        for other, there in written[i + 1:]:
            apart = (box.x1 <= there.x0 + 0.5 or there.x1 <= box.x0 + 0.5
                     or box.y1 <= there.y0 + 1.5 or there.y1 <= box.y0 + 1.5)
            assert apart, (text, other)


@pytest.mark.parametrize("traces", [[gather()], [revisions()], [failing()], [many(60, 2)], [laps(12)]], ids=range(5))
def test_labels_beside_a_bar_stand_over_no_other_bar(traces):
    """A label is in its bar, or on free ground."""
    ax = compare(traces)
    drawn = [patch.get_window_extent() for patch in ax.patches if patch.get_height() == pytest.approx(0.62)]
    for text, box in boxes(ax)[:len(texts(ax))]:
        for bar in drawn:
            inside = bar.x0 <= box.x0 and box.x1 <= bar.x1
            apart = (box.x1 <= bar.x0 + 0.5 or bar.x1 <= box.x0 + 0.5 or box.y1 <= bar.y0 + 1 or bar.y1 <= box.y0 + 1)
            assert inside or apart, text


def test_every_wait_has_its_label_when_there_are_few():
    """Three laps with waits: each is told, in full or short."""
    assert len([text for text in texts(gantt(revisions())) if text.startswith("waited") or "· waited" in text]) == 3


# ---- text of any kind


def test_names_are_letters_not_markup():
    """Dollars are not mathematics, newlines are escapes, and what the font lacks is spelled; nothing warns."""
    names = ["$x^2$", "$\\frac{1}{2", "<script>", "line\nbreak", "🚀 go", "日本", "nul\0"]
    graph = Graph("cost: $5 & $6")
    for name in names:
        graph.add_node(name, takes(1, ValueError("$y_1$ 🚀\n"))).add_edge(START, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = chart(run(graph))
        assert list(lanes(shown.axes).values()) == ["$x^2$", "$\\frac{1}{2", "<script>", "line\\nbreak", "[rocket] go",
                                                    "[U+65E5][U+672C]", "nul\\x00"]
        assert texts(shown.axes)[0].startswith("cost: $5 & $6: failed after 1.000 s")
        assert not any(text.get_parse_math() for text in [*shown.axes.texts, *shown.axes.get_yticklabels()])
        assert "1.000 s · ✗ failed: ValueError: $y_1$ [rocket]\\n" in texts(shown.axes)
        assert shown.png()[:4] == b"\x89PNG"
        assert "<script" not in shown.svg()


# ---- the chart


def test_a_chart_drawn_twice_is_the_same_to_the_pixel():
    """The same object twice, a fresh one, one from a file, and one beside somebody's style."""
    import matplotlib

    first = chart(gather())
    assert first.png() == first.png() == chart(gather()).png()
    assert first.svg() == chart(gather()).svg()
    taste = {"font.size": 30, "axes.facecolor": "black", "savefig.bbox": "tight", "hatch.color": "red"}
    with matplotlib.rc_context(taste):
        assert chart(gather()).png() == first.png()


def test_a_trace_from_a_file_gives_the_same_chart(tmp_path):
    """JSONL holds all that a chart needs."""
    for trace in (gather(), loop(), revisions(), failing()):
        trace.to_jsonl(tmp_path / "trace.jsonl")
        assert chart(Trace.from_jsonl(tmp_path / "trace.jsonl")).png(1) == chart(trace).png(1)


def test_a_notebook_shows_a_sharp_png_with_the_table_beside_it():
    """The table of the trace is the alternative text, the plain text and the repr."""
    data, about = chart(gather())._repr_mimebundle_()
    assert sorted(data) == ["image/png", "text/plain"]
    assert data["text/plain"] == about["image/png"]["alt"] == repr(chart(gather())) == waves_text(gather())
    assert about["image/png"]["width"] == 864  # CSS pixels, two to one
    assert waves_text(gather()) == gather().to_text()
    both = chart([gather(), loop()], labels=["the graph", "the loop"])
    assert both.text == f"the graph\n{gather().to_text()}\n\nthe loop\n{loop().to_text()}"


def test_svg_has_a_title_and_a_description():
    """For those who cannot see it; and it is well-formed."""
    root = ElementTree.fromstring(chart(gather()).svg())
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "gather: done after 13.170 s")
    assert [element.text for element in root[:2]] == ["gather: done after 13.170 s", gather().to_text()]


@pytest.mark.parametrize("suffix, begins", [(".svg", b"<svg"), (".PNG", b"\x89PNG"), (".txt", b"wave  node")])
def test_save_writes_what_the_suffix_asks_for(tmp_path, suffix, begins):
    """Three suffixes, and the path comes back; any other is a ValueError."""
    path = tmp_path / f"chart{suffix}"
    assert chart(gather()).save(str(path)) == path
    assert path.read_bytes().startswith(begins)
    with pytest.raises(ValueError, match="cannot save a chart as 'chart.gif': the suffix must be one of .png"):
        chart(gather()).save(tmp_path / "chart.gif")


def test_axes_that_are_given_are_drawn_on_and_returned():
    """The figure, its size and the saving are the caller's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    above, below = figure.subplots(2)
    assert gantt(gather(), above) is above and compare([loop()], below) is below
    assert len(figure.axes) == 2 and list(figure.get_size_inches()) == [6, 4]
    assert bars(above) == bars(gantt(gather()))


def test_nothing_global_is_touched(tmp_path, monkeypatch):
    """No pyplot, no backend chosen, no setting changed: in a fresh interpreter, from import to PNG."""
    loop().to_jsonl(tmp_path / "trace.jsonl")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    code = """if True:
        import sys, matplotlib
        def settings():
            return {key: repr(dict.__getitem__(matplotlib.rcParams, key)) for key in matplotlib.rcParams}
        before = settings()
        from minigraph.gantt import chart, compare
        from minigraph.trace import Trace
        trace = Trace.from_jsonl(sys.argv[1])
        chart(trace).png(), chart(trace).svg(), compare([trace, trace])
        assert "matplotlib.pyplot" not in sys.modules
        assert before == settings(), {key for key in before if before[key] != settings()[key]}
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "trace.jsonl")], check=True,
                   cwd=Path(__file__).parent.parent)


def test_without_matplotlib_the_table_is_shown_and_the_way_out_is_said(monkeypatch):
    """A notebook never sees an exception; png() says in one sentence what to install."""
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"] or ["matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    sentence = 'charts need the extra "notebooks": pip install -e ".[notebooks]"'
    with pytest.raises(ImportError, match=re.escape(sentence)):
        gantt(gather())
    data, about = chart(gather())._repr_mimebundle_()
    assert (data, about) == ({"text/plain": f"{gather().to_text()}\n(no picture: {sentence})"}, {})


def luminance(colour):
    parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in colour[:3]]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_all_letters_have_a_contrast_of_at_least_four_and_a_half():
    """By WCAG 2's formula, against everything that may be behind them: bars, bands, paper."""
    from matplotlib.colors import to_rgb

    ax = compare([gather(), loop(), failing()], marks=[[("gathered", 1.887)], [], []])
    grounds = {to_rgb(patch.get_facecolor()) for patch in ax.patches}
    marks = {to_rgb(text.get_color()) for text in ax.texts if text.get_text().startswith("gathered")}
    letters = {to_rgb(text.get_color()) for text in ax.texts} - marks
    bands = {to_rgb(patch.get_facecolor()) for patch in ax.patches if patch.get_height() != pytest.approx(0.62)}
    assert len(grounds) >= 4 and marks and letters and len(bands) == 2
    for words, behind in [(letters, grounds), (marks, bands)]:
        for ink in words:
            for ground in behind:
                light, dark = sorted([luminance(ink), luminance(ground)], reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


@pytest.mark.parametrize("call, error", [
    (lambda: gantt({"a": 1}), "a chart is drawn from a Trace, not from a dict: pass the one that observed the run"),
    (lambda: chart([]), "there is nothing to draw: pass at least one trace"),
    (lambda: compare([loop()], labels=["a", "b"]), "labels=['a', 'b']: give one entry for each of the 1 traces"),
    (lambda: chart(loop()).png(scale=99), "scale=99: pixels to a CSS pixel, between 0.1 and 10"),
])
def test_what_cannot_be_drawn_is_named(call, error):
    """One sentence: the thing, the rule, the way out."""
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        call()


def test_a_bar_is_plain_data():
    """Rows can be printed and compared, and made without a run."""
    bar = Bar("a", 1.0, 3.0, wait=0.5)
    assert (bar.seconds, bar.over) == (2.0, 3.5)
    assert json.dumps(bar.__dict__)


# ---- the waterfall


@dataclass(frozen=True)
class Total:
    """Figures of two runs, as a comparison has them."""

    loop_total: float = 15.0
    gained: float = 5.0
    given_back: float = 3.0
    graph_total: float = 13.0


def test_a_waterfall_leads_from_one_total_to_the_other() -> None:
    """Each bar begins where the one above it ended, and the last is the graph's total; the text twin says the same."""
    made = waterfall(Total())
    bars = [(round(bar.get_x(), 9), round(bar.get_width(), 9)) for bar in made.axes.patches]
    assert bars == [(0, 15), (10, 5), (10, 3), (0, 13)]
    assert made.text.splitlines() == ["the loop   15.00 s", "gathering  - 5.00 s", "answering  + 3.00 s",
                                      "the graph  13.00 s"]
    assert [text.get_text() for text in made.axes.texts] == ["15.00 s", "- 5.00 s", "+ 3.00 s", "13.00 s"]


def test_a_waterfall_means_the_same_without_colour() -> None:
    """What is gained is hatched, what is given back is crossed, totals are plain; the axis says so."""
    axes = waterfall(Total()).axes
    hatches = [bar.get_hatch() for bar in axes.patches]
    assert hatches[0] is None
    assert hatches[3] is None
    assert len({*hatches[1:3], None}) == 3
    assert "hatched: gained, crossed: given back" in axes.get_xlabel()
