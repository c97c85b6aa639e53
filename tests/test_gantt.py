"""Charts of runs: the rows, what stands on the Axes, and that nothing overlaps, clips, lies or leaves a trace."""

import random
import re
import warnings
from dataclasses import dataclass

import pytest
from charts import (
    everything,
    faults,
    letter,
    letter_inside,
    mapped,
    nested,
    odd,
    palest,
    run,
    run_then_resume,
    see_through,
    takes,
    texts,
    written,
)
from helpers import make

from minigraph import END, START, Graph, emit
from minigraph.clock import sleep
from minigraph.gantt import Bar, chart, compare, gantt, rows, waterfall, waves_of, waves_text
from minigraph.nodes import graph_node, human_node, map_node, retry
from minigraph.trace import Trace

pytest.importorskip("matplotlib")

# ---- runs


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


def told(trace):
    """(lane, depth, start, end, wait, notes) of each bar, in ms."""
    return [(bar.lane, bar.depth, *(round(at * 1000) for at in (bar.start, bar.end, bar.wait)), bar.notes)
            for bar in rows(trace)]


def test_a_nested_graph_has_its_lanes_waits_and_routes_below_its_node():
    """Twice, because its node runs twice; the waves of the chart are those of the graph itself."""
    trace = run(nested(2))
    assert told(trace) == [
        ("plan", 0, 0, 500, 0, []),
        ("research", 0, 500, 1800, 0, ["set the pace"]), ("research", 0, 2800, 4100, 0, []),
        ("research/search", 1, 500, 1500, 0, ["set the pace"]), ("research/search", 1, 2800, 3800, 0, ["set the pace"]),
        ("research/recall", 1, 500, 900, 600, []), ("research/recall", 1, 2800, 3200, 600, []),
        ("research/rank", 1, 1500, 1800, 0, ["→ good"]), ("research/rank", 1, 3800, 4100, 0, ["→ good"]),
        ("weather", 0, 500, 1200, 600, []),
        ("write", 0, 1800, 2800, 0, ["→ again"]), ("write", 0, 4100, 5100, 0, ["→ done"])]
    assert [(wave, round(start, 3), round(end, 3)) for wave, start, end in waves_of(trace)] == [
        (1, 0, 0.5), (2, 0.5, 1.8), (3, 1.8, 2.8), (4, 2.8, 4.1), (5, 4.1, 5.1)]
    ax = gantt(trace)
    assert list(lanes(ax).values()) == ["plan", "research ×2", "research/search ×2", "research/recall ×2",
                                        "research/rank ×2", "weather", "write ×2"]
    tall = {round(patch.get_y() + patch.get_height() / 2 - 2.3): round(patch.get_height(), 2) for patch in ax.patches
            if patch.get_height() < 0.7}
    assert tall == {0: 0.62, 1: 0.62, 2: 0.46, 3: 0.46, 4: 0.46, 5: 0.62, 6: 0.62}  # slimmer inside a node


def test_lanes_follow_the_graphs_however_deep():
    """What a node holds stands right below it, each graph in its own order, also when an inner name is an outer one."""
    deep = Graph("deep").add_node("a", takes(1)).add_node("z", takes(1)).add_edge(START, "z").add_edge("z", "a")
    mid = Graph("mid").add_node(graph_node("b", deep, [], [])).add_node("c", takes(5)).add_edge(START, "c")
    mid.add_edge(START, "b")
    outer = Graph("outer").add_node("c", takes(9)).add_node(graph_node("a", mid, [], [])).add_node("b", takes(1))
    outer.add_edge(START, "a").add_edge("a", "b").add_edge(START, "c")
    assert [(bar.lane, bar.depth) for bar in rows(run(outer))] == [
        ("c", 0), ("a", 0), ("a/b", 1), ("a/b/a", 2), ("a/b/z", 2), ("a/c", 1), ("b", 0)]


def test_a_map_of_few_items_has_a_lane_for_each():
    """In the order of the items, with their waits for the slowest."""
    assert told(run(mapped(4)))[2:6] == [
        ("fetch/0", 1, 200, 250, 400, []), ("fetch/1", 1, 200, 450, 200, []),
        ("fetch/2", 1, 200, 650, 0, ["set the pace"]), ("fetch/3", 1, 200, 300, 350, [])]


def test_a_map_of_many_items_is_folded_into_a_few_lanes_with_a_count():
    """The failed and the slowest have bars of their own, in turn; one bar stands for the rest and says how many."""
    trace = run(mapped(200, frozenset({4, 5})))
    found = [bar for bar in rows(trace) if bar.lane == "fetch/…"]
    assert [(bar.kind, bar.item, bar.count, bar.error) for bar in found] == [
        ("node", "5", 1, "ValueError: no page 5"), ("node", "4", 1, "ValueError: no page 4"), ("node", "8", 1, None),
        ("node", "19", 1, None), ("node", "30", 1, None), ("items", None, 195, None)]
    assert found[-1].notes == ["195 more", "0.050 to 0.550 s"]
    assert [(round(bar.start, 3), round(bar.end, 3)) for bar in found[-1:]] == [(0.2, 0.75)]
    ax = gantt(trace)
    assert list(lanes(ax).values()) == ["list", "fetch", "fetch/… ×200", "", "", "", "", "", "join"]
    assert "195 more · 0.050 to 0.550 s" in texts(ax)
    assert "striped: many items" in ax.get_xlabel() and "----" in {patch.get_hatch() for patch in ax.patches}


def test_failures_that_no_bar_of_their_own_shows_are_counted():
    """In words, with a sign and in the colour and paper of a failure."""
    ax = gantt(run(mapped(200, frozenset(range(20)))))
    assert "180 more" not in texts(ax)
    assert [text for text in texts(ax) if "more" in text] == ["195 more · 0.050 to 0.550 s · ✗ 15 failed"]


def test_items_that_follow_one_another_share_lanes():
    """Four workers, four lanes, forty bars; a bar says which item it is where there is room."""
    trace = run(mapped(40), max_workers=4)
    items = [bar for bar in rows(trace) if bar.item]
    assert len(items) == 40 and {bar.kind for bar in items} == {"node"}
    ax = gantt(trace)
    assert list(lanes(ax).values()) == ["list", "fetch", "fetch/… ×40", "", "", "", "join"]
    assert any(text.startswith("item ") for text in texts(ax))


def test_two_visits_of_a_map_are_folded_apart():
    """Each visit has its own rest, though the second begins when the first ends."""
    graph = Graph("twice").add_node(map_node("each", lambda i: sleep(i / 10), "pages", "out", max_visits=2))
    graph.add_router("each", lambda state: next(ways), {"again": "each", "done": END})
    ways = iter(["again", "done"])
    trace = run(graph.add_edge(START, "each"), {"pages": list(range(10))})
    assert [(bar.count, round(bar.start, 3), round(bar.end, 3)) for bar in rows(trace) if bar.kind == "items"] == [
        (5, 0, 0.4), (5, 0.9, 1.3)]


@pytest.mark.parametrize("items, names", [
    (3, ["m", "m/0", "m/0/… ×8", *[""] * 5, "m/1", "m/1/… ×8", *[""] * 5, "m/2", "m/2/… ×8", *[""] * 5]),
    (8, ["m", "m/… ×8", *[""] * 5])])
def test_a_map_in_each_item_of_a_map(items, names):
    """It is folded below its item; below a folded item nothing is drawn."""
    each = map_node("each", lambda i: sleep(i), "pages", "out").fn
    graph = Graph("maps").add_node(map_node("m", lambda i: each({"pages": list(range(8))}), "pages", "out"))
    assert list(lanes(gantt(run(graph.add_edge(START, "m"), {"pages": list(range(items))}))).values()) == names


def test_rows_of_many_items_are_found_in_linear_time():
    """20,000 items of a map, and as many refusals, are a moment's work."""
    events = [{"kind": "graph_start", "t": 0, "workflow": "w", "nodes": ["m"], "schedule": "waves"},
              {"kind": "node_start", "t": 0, "node": "m", "visit": 1, "wave": 1}]
    events += [{"kind": "node_start", "t": 0, "node": f"m/{i}", "visit": 1, "wave": 1} for i in range(20_000)]
    events += [{"kind": "refused", "t": 1, "node": "m", "why": "max_visits=1 reached"}] * 20_000
    assert len(rows(Trace(events))) == 1 + 6 + 20_000


def test_a_visit_that_did_not_end_says_so():
    """An interrupted run, or one that goes on: the bar reaches the last event, and no wave has its pace yet."""
    ran = run(make("START>a,b", a=takes(1), b=takes(3))).events
    broken = Trace([event for event in ran if event["t"] < 2])
    assert told(broken) == [("a", 0, 0, 1000, 0, []), ("b", 0, 0, 1000, 0, ["has not ended"])]


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
    assert ax.get_xlabel() == "seconds since the start; hatched: waited at the barrier; underlined: a model"
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


def test_a_gate_that_waits_is_dotted_and_asks():
    """From when it asked until the run was over, with its question; so is the node that holds it."""
    ax = gantt(run(letter()))
    assert bars(ax) == [("draft", 0, 1, None), ("facts", 1, 3, None), ("approve", 1, 3, "....")]
    assert "? waits for an answer: Send this? Dear Ada" in texts(ax)
    assert texts(ax)[0] == "letter: paused after 4.000 s" and "dotted: waits for an answer" in ax.get_xlabel()
    found = {bar.lane: (bar.kind, bar.notes) for bar in rows(run(letter_inside()))}
    assert found["mail"] == found["mail/approve"] == ("gate", ["waits for an answer: Send this? Dear Ada"])


def test_a_gate_that_ends_the_run_at_once_has_a_sign():
    """No time passes while nobody else runs: a diamond stands where it asked, with its question beside it."""
    graph = Graph("quiet").add_node("draft", takes(1, text="Dear Ada"))
    graph.add_node(human_node("approve", "Send this? {text}", "approved")).add_edge(START, "draft")
    ax = gantt(run(graph.add_edge("draft", "approve")))
    signs = [line for line in ax.lines if line.get_marker() == "D"]
    assert [(line.get_xdata()[0], lanes(ax)[line.get_ydata()[0]]) for line in signs] == [(1, "approve")]
    assert "? waits for an answer: Send this? Dear Ada" in texts(ax)


def test_a_resumed_run_stands_alone_and_after_the_first():
    """Alone it says what it was resumed from; in the trace of both, a mark tells when, and a gate is one visit."""
    first, again = Trace(), Trace()
    run_then_resume(letter(), {"approve": "yes"}, first, again)
    assert told(again) == [("approve", 0, 0, 0, 0, []), ("send", 0, 0, 200, 0, [])]
    assert texts(gantt(again))[0] == "letter: done after 0.200 s, resumed from 3 records"
    ax = gantt(resumed(letter(), "approve"))
    assert list(lanes(ax).values()) == ["draft", "facts", "approve", "send"]
    assert bars(ax) == [("draft", 0, 1, None), ("facts", 1, 3, None), ("approve", 1, 3, "...."),
                        ("approve", 4, 0, None), ("send", 4, 0.2, None)]
    assert "resumed: 4.00 s" in texts(ax) and texts(ax)[0] == "letter: done after 4.200 s"


def test_attempts_are_counted_and_notched():
    """A notch where one had failed, and how many there were."""
    answers = iter([ValueError("busy"), ValueError("busy"), None])

    def flaky(state):
        sleep(1)
        if error := next(answers):
            raise error

    ax = gantt(run(make("START>a a>END", a=retry(flaky, attempts=3, delay=0.5))))
    notches = [line for line in ax.lines if line.get_marker() == "^"]
    assert [list(line.get_xdata()) for line in notches] == [[1, 2.5]]
    assert "4.500 s · 3 attempts" in texts(ax) and "notched: tried again" in ax.get_xlabel()


def test_a_model_is_told_by_more_than_a_colour():
    """The bars of a model are underlined from end to end, and the axis says what that means."""
    for trace, lines in [(gather(), [(1.887, 13.166)]), (loop(), [(0, 4.195), (6.74, 15.297)])]:
        ax = gantt(trace)
        drawn = [line for line in ax.lines if line.get_linewidth() == 2.4]
        assert [tuple(round(at, 3) for at in line.get_xdata()) for line in drawn] == lines
        assert "underlined: a model" in ax.get_xlabel()
    assert "underlined" not in gantt(failing()).get_xlabel()


def test_a_label_of_a_lap_stands_in_its_bar_or_right_of_it_never_in_the_wave_before():
    """What is left to say of a bar goes to its right; the pace is told before the number of the visit."""
    ax = gantt(revisions())
    assert texts(ax).count("1.000 s · set the pace") == 3
    assert texts(ax).count("→ again") == 2
    bar = next(patch for patch in ax.patches if patch.get_x() == pytest.approx(1.301))
    for text, box in written(ax):
        if text == "→ again":
            assert box[0] > bar.get_window_extent().x1
    lasts, ways = iter([4, 1, 1]), iter(["a very long way back"] * 2 + ["done"])
    graph = make("START>a a>b", a={"fn": lambda state: sleep(next(lasts)), "max_visits": 3}, b=takes(0.6),
                 routers={"b": (lambda state: next(ways), {"a very long way back": "a", "done": END})})
    assert "→ a very long way back" not in texts(gantt(run(graph)))  # there would be room left of the first lap's bar


def test_a_wait_that_finds_no_room_of_its_own_is_told_in_the_bar():
    """Hatched and in seconds: where the hatched part is too narrow and the chart ends, the bar has it."""
    ax = gantt(run(make("START>a,b", a=takes(9.5), b=takes(10))))
    assert "9.500 s · waited 0.500 s" in texts(ax)


def test_a_long_legend_is_broken_into_lines():
    """Each line fits, and the margin below grows by it."""
    one, two = gantt(gather()), gantt(run(everything()))
    assert len(one.get_xlabel().splitlines()) == 1
    assert two.get_xlabel().splitlines() == [
        "seconds since the start; hatched: waited at the barrier; underlined: a model; crossed: failed",
        "notched: tried again; dotted: waits for an answer; striped: many items"]
    margins = [ax.get_window_extent().y0 / 96 for ax in (one, two)]
    assert margins[1] - margins[0] == pytest.approx(0.16)


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


def resumed(graph, gate):
    """One trace of a run that paused and of what came after the answer."""
    trace = Trace()
    run_then_resume(graph, {gate: "yes"}, trace, trace)
    return trace


FAMILY = {
    "a graph": lambda: [gather()], "a loop": lambda: [loop()], "both": lambda: [gather(), loop()],
    "a cycle": lambda: [revisions()], "failures": lambda: [failing()], "3 bars": lambda: [many(3)],
    "20 bars": lambda: [many(20, 1)], "60 bars": lambda: [many(60, 2)], "300 bars": lambda: [many(300, 3)],
    "3 laps": lambda: [laps(3)], "12 laps": lambda: [laps(12)], "150 laps": lambda: [laps(150)],
    "long names": lambda: [run(LONG)], "three runs": lambda: [revisions(), many(30, 4), failing()],
    "tight": lambda: [TIGHT], "text of any kind": lambda: [run(odd())], "nested": lambda: [run(nested())],
    "nested, ready": lambda: [run(nested(), schedule="ready")], "a map of 5": lambda: [run(mapped(5))],
    "a map of 300": lambda: [run(mapped(300, frozenset(range(0, 300, 7))))],
    "a map of 40 by 4": lambda: [run(mapped(40, frozenset({3})), max_workers=4)], "a gate": lambda: [run(letter())],
    "a gate inside": lambda: [run(letter_inside())], "resumed": lambda: [resumed(letter(), "approve")],
    "all there is": lambda: [run(everything())], "resumed inside": lambda: [resumed(letter_inside(), "mail/approve")],
}


@pytest.mark.parametrize("traces", FAMILY.values(), ids=FAMILY)
def test_labels_never_overlap_or_clip(traces):
    """Whatever is written stands on the figure, whole, over no other words, and with a contrast of 4.5 at least."""
    made = traces()
    ax = compare(made, marks=[[("gathered", trace.seconds / 2)] for trace in made])
    assert faults(ax) == []
    assert palest(ax) >= 4.5


@pytest.mark.parametrize("name", ["a graph", "a cycle", "text of any kind", "a map of 300", "resumed inside"])
def test_drawn_twice_it_is_the_same_to_the_pixel_and_hides_the_page(name):
    """The same run gives the same pixels, none of them transparent: on a dark page a chart is a white card."""
    first = chart(FAMILY[name]()).png(1)
    assert first == chart(FAMILY[name]()).png(1)
    assert not see_through(first)


def test_the_measure_of_overlap_finds_it():
    """A text over another, one that leaves the figure, and one too pale are found: the test above can fail."""
    ax = gantt(gather())
    assert faults(ax) == []
    ax.text(0, 0.5, "over the title")
    ax.text(13, 3.5, "far too far to the right")
    ax.texts[2].set_color("#BBBBBB")
    assert [fault for fault in faults(ax) if "over the title" in fault] == [
        "'gather: done after 13.170 s' lies over 'over the title'"] * 2  # at both sizes
    assert "'far too far to the right' is cut off" in faults(ax)
    assert palest(ax) < 4.5


@pytest.mark.parametrize("traces", [[gather()], [revisions()], [failing()], [many(60, 2)], [laps(12)]], ids=range(5))
def test_labels_beside_a_bar_stand_over_no_other_bar(traces):
    """A label is in its bar, or on free ground."""
    ax = compare(traces)
    found = written(ax)[:len(texts(ax))]
    drawn = [patch.get_window_extent() for patch in ax.patches if patch.get_height() == pytest.approx(0.62)]
    for bar in drawn:
        for text, (left, low, right, top) in found:
            inside = bar.x0 <= left and right <= bar.x1
            apart = right <= bar.x0 + 0.5 or bar.x1 <= left + 0.5 or top <= bar.y0 + 1 or bar.y1 <= low + 1
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


def test_a_trace_from_a_file_gives_the_same_chart(tmp_path):
    """JSONL holds all that a chart needs."""
    for trace in (gather(), loop(), revisions(), failing(), run(nested()), run(mapped(40)), run(letter_inside()),
                  resumed(letter(), "approve")):
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


def test_axes_that_are_given_are_drawn_on_and_returned():
    """The figure, its size and the saving are the caller's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    above, below = figure.subplots(2)
    assert gantt(gather(), above) is above and compare([loop()], below) is below
    assert len(figure.axes) == 2 and list(figure.get_size_inches()) == [6, 4]
    assert bars(above) == bars(gantt(gather()))


@pytest.mark.parametrize("call, error", [
    (lambda: gantt({"a": 1}), "a chart is drawn from a Trace, not from a dict: pass the one that observed the run"),
    (lambda: chart([]), "there is nothing to draw: pass at least one trace"),
    (lambda: compare([loop()], labels=["a", "b"]), "labels=['a', 'b']: give one entry for each of the 1 traces"),
])
def test_what_cannot_be_drawn_is_named(call, error):
    """One sentence: the thing, the rule, the way out."""
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        call()


def test_a_bar_is_plain_data():
    """Rows can be printed and compared, and made without a run."""
    bar = Bar("a", 1.0, 3.0, wait=0.5)
    assert (bar.seconds, bar.over) == (2.0, 3.5)
    assert bar == Bar("a", 1.0, 3.0, wait=0.5)


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
