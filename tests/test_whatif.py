"""A forecast is a real run of the graph's shape: what it takes, what decides that, and how a slider changes it."""

from __future__ import annotations

import re
import sys
import time

import pytest
from forecasts import NASTY, TIMES, Page, crossed, lap
from helpers import make
from hypothesis import given, settings
from hypothesis import strategies as st

from minigraph import END, START, Graph, GraphError
from minigraph.nodes import graph_node, human_node, map_node
from minigraph.widgets.bars import round_steps, side_by_side
from minigraph.widgets.foretell import critical_path, foretell, labels_back, usual_choice
from minigraph.widgets.whatif import WhatIf, whatif


def nodes(forecast) -> list[str]:
    return [name for name, _ in forecast.critical]


# ---- foretell


@pytest.mark.parametrize("schedule, seconds, speed_up, critical", [
    ("waves", 7.0, 9 / 7, ["slow_a", "slow_b", "join"]),
    ("ready", 5.0, 9 / 5, ["slow_a", "quick_a", "join"]),
])
def test_both_schedules_are_run(schedule, seconds, speed_up, critical):
    """Crossed chains take 3 + 3 + 1 s in waves, 4 + 1 s without a barrier, 9 s in series."""
    forecast = foretell(crossed(), TIMES, schedule)
    assert (forecast.seconds, forecast.in_series) == (seconds, 9.0)
    assert forecast.speed_up == pytest.approx(speed_up)
    assert nodes(forecast) == critical
    assert forecast.trace.status == "done"


def test_the_graphs_own_functions_are_not_called():
    """Nodes and routers of the graph itself stay where they are: they might cost money."""
    def never(state):
        raise AssertionError("called")

    graph = make("START>a", a=never, b=never, routers={"a": (never, {"go": "b"})})
    assert foretell(graph).seconds == 2.0


def test_a_node_takes_a_second_unless_told_otherwise():
    """Latencies may leave nodes out."""
    assert foretell(make("START>a a>b"), {"b": 0.5}).seconds == 1.5


def test_nothing_takes_time():
    """All at 0 s: no division by zero, and a critical path all the same."""
    forecast = foretell(make("START>a a>b"), {"a": 0, "b": 0})
    assert (forecast.seconds, forecast.speed_up, nodes(forecast)) == (0.0, 1.0, ["a", "b"])


def test_a_forecast_in_words():
    """The text twin says what the bars say."""
    assert str(foretell(crossed(), TIMES, "waves")) == (
        "waves: 7.000 s, 1.29 times as fast as in series (9.000 s); critical path slow_a -> slow_b -> join")


def test_an_empty_branch_has_no_critical_path():
    """START -> END is a run of nothing."""
    forecast = foretell(Graph("nothing").add_edge(START, END))
    assert (forecast.seconds, forecast.critical) == (0.0, [])
    assert "critical path none" in str(forecast)


@pytest.mark.parametrize("latencies, choices, says", [
    ({"jion": 1}, None, "latencies: no such node 'jion'; did you mean 'join'?"),
    ({"slow_a": -1}, None, "latencies: 'slow_a' takes -1, and a time is a number of seconds from 0"),
    ({"slow_a": float("nan")}, None, "'slow_a' takes nan"),
    ({"slow_a": float("inf")}, None, "'slow_a' takes inf"),
    ({"slow_a": True}, None, "'slow_a' takes True"),
    ({"slow_a": "3"}, None, "'slow_a' takes '3'"),
    (None, {"join": "x"}, "choices: there is no router on 'join'; there are none"),
])
def test_what_cannot_be_meant_is_named(latencies, choices, says):
    """A name, a time or a router that is not there is a ValueError that says which."""
    with pytest.raises(ValueError, match=re.escape(says)):
        foretell(crossed(), latencies, choices=choices)


@pytest.mark.parametrize("choice", ["god", ["again", "god"], []])
def test_a_label_that_is_not_there_is_named(choice):
    """Also within a list; a list of nothing says nothing."""
    with pytest.raises(ValueError, match="choices: the router on 'check' has no label '(god'; did you mean 'good'|';)"):
        foretell(lap(), choices={"check": choice})


def test_a_graph_is_asked_for():
    """A description, a trace, a None: a TypeError says what is wanted."""
    with pytest.raises(TypeError, match="a forecast is made of a Graph, not of None"):
        foretell(None)


def test_a_graph_that_cannot_run_says_why():
    """GraphError comes through as it is."""
    with pytest.raises(GraphError, match="no edge out of START"):
        foretell(Graph("empty"))


# ---- routers and laps


def test_a_router_says_what_leads_on():
    """By default the first label that does not lead backwards, else the first."""
    assert usual_choice(lap(), "check") == "good"
    assert labels_back(lap(), "check") == ["again"]
    assert nodes(foretell(lap())) == ["draft", "check", "save"]
    only = make("START>a", a={"max_visits": 2}, routers={"a": (lambda state: "more", {"more": "a"})})
    assert usual_choice(only, "a") == "more"


def test_choices_visit_by_visit():
    """A list is what the router says on each visit; its last label stays."""
    forecast = foretell(lap(), choices={"check": ["again", "good"]})
    assert forecast.critical == [("draft", 1), ("check", 1), ("draft", 2), ("check", 2), ("save", 1)]
    assert forecast.seconds == 5.0
    assert str(forecast).endswith("draft -> check -> draft (visit 2) -> check (visit 2) -> save")


def test_a_loop_is_bounded_by_max_visits():
    """A router that always says again: the fourth draft is refused, and that is a failure, or the way out."""
    refused = foretell(lap(), choices={"check": "again"})
    assert (refused.seconds, refused.trouble) == (6.0, "draft: max_visits=3 reached")
    handled = foretell(lap(on_error="person"), choices={"check": "again"})
    assert (handled.seconds, handled.trouble, nodes(handled)[-1]) == (7.0, None, "person")


def test_a_loop_without_end_is_given_up():
    """A cap of a million laps cannot be waited for: the forecast says that it was given up."""
    graph = make("START>a", a={"max_visits": 10**6}, routers={"a": (lambda state: "on", {"on": "a", "off": END})})
    forecast = foretell(graph, choices={"a": "on"})
    assert forecast.seconds == 250.0
    assert forecast.trouble == "given up after 250 node runs: the loop goes on"


def test_a_label_with_several_targets():
    """Both run, as the engine has it."""
    graph = make("START>a", routers={"a": (lambda state: "both", {"both": ["b", "c"]})})
    assert [len(wave) for wave in foretell(graph).trace.waves()] == [1, 2]


def test_a_gate_a_nested_graph_and_a_map_take_one_time_each():
    """A forecast asks nobody, runs nothing inside, and needs no list to map over."""
    graph = Graph("outer").add_node(human_node("ask", "Send it?", "sent")).add_edge(START, "ask")
    graph.add_node(graph_node("inner", make("START>x x>y"), [], ["x"])).add_edge("ask", "inner")
    graph.add_node(map_node("each", len, "items", "sizes")).add_edge("inner", "each")
    forecast = foretell(graph, {"ask": 5, "inner": 2, "each": 1})
    assert (forecast.seconds, forecast.trouble) == (8.0, None)
    assert nodes(forecast) == ["ask", "inner", "each"]


# ---- the critical path, against an oracle


@st.composite
def dags(draw):
    """A graph of static edges, and a latency a node."""
    size = draw(st.integers(1, 8))
    above = [sorted(draw(st.sets(st.integers(0, n - 1), max_size=3))) if n else [] for n in range(size)]
    seconds = [draw(st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.5, 3.3])) for _ in range(size)]
    edges = [f"n{a}>n{n}" for n in range(size) for a in above[n]] + [f"START>n{n}" for n in range(size) if not above[n]]
    return above, seconds, make(" ".join(edges))


@settings(max_examples=120, deadline=None)
@given(dags())
def test_the_length_of_a_run_is_that_of_its_critical_path(drawn):
    """In both schedules: its visits follow one another without a gap, from 0 to the end, and take what the run takes.

    Without waves the longest path through the graph is what it takes; with them, the slowest node of each level.
    """
    above, seconds, graph = drawn
    times = {f"n{n}": seconds[n] for n in range(len(above))}
    over, level = [], []
    for n, sources in enumerate(above):
        over.append(seconds[n] + max((over[a] for a in sources), default=0.0))
        level.append(1 + max((level[a] for a in sources), default=0))
    slowest = {at: max(s for s, lv in zip(seconds, level, strict=True) if lv == at) for at in level}
    for schedule, expected in (("ready", max(over)), ("waves", sum(slowest.values()))):
        forecast = foretell(graph, times, schedule)
        assert forecast.seconds == pytest.approx(expected)
        path = critical_path(forecast.trace, graph)
        assert sum(visit.seconds for visit in path) == pytest.approx(expected)
        assert path[0].start == 0.0
        assert path[-1].end == pytest.approx(expected)
        for one, other in zip(path, path[1:], strict=False):
            assert one.end == pytest.approx(other.start)
            direct = any(f"n{a}" == one.node for a in above[int(other.node[1:])])
            assert direct or schedule == "waves"
        assert forecast.in_series == pytest.approx(sum(seconds))


def test_shortening_a_node_off_the_critical_path_changes_nothing():
    """And shortening one on it does, as long as it stays the slowest."""
    assert foretell(crossed(), {**TIMES, "quick_b": 0.2}, "waves").seconds == 7.0
    assert foretell(crossed(), {**TIMES, "slow_b": 2.9}, "waves").seconds == pytest.approx(6.9)


def test_the_path_goes_through_the_edges_where_several_ended_together():
    """`b` waits for `a2`; that `a1` and `a2` end at once does not make `a1` its cause."""
    forecast = foretell(make("START>a1,a2 a1>c a2>b"), {"a1": 2, "a2": 2, "b": 2, "c": 1}, "ready")
    assert nodes(forecast) == ["a2", "b"]


def test_a_router_that_leads_elsewhere_can_be_what_a_join_waited_for():
    """`join` waits until `x` has said that `y` will not come: x is on the path, without an edge to it."""
    graph = make("START>a,x a>join y>join", routers={"x": (lambda state: "no", {"yes": "y", "no": END})})
    forecast = foretell(graph, {"a": 1, "x": 3}, "ready", choices={"x": "no"})
    assert nodes(forecast) == ["x", "join"]


# ---- the bars


def page(graph, latencies=None, **how) -> Page:
    both = [foretell(graph, latencies, schedule, **how) for schedule in ("waves", "ready")]
    return Page(side_by_side(both, list(graph.nodes)))


def test_the_bars_are_as_long_as_the_visits():
    """One scale for both schedules: 7 s are the whole width."""
    bars = page(crossed(), TIMES).of("bar")
    widths = [float(re.search(r"width:([\d.]+)%", bar["style"])[1]) for bar in bars]
    lefts = [float(re.search(r"left:([\d.]+)%", bar["style"])[1]) for bar in bars]
    assert widths == pytest.approx([100 * s / 7 for s in [3, 1, 1, 3, 1] * 2], abs=0.01)
    assert lefts == pytest.approx([100 * s / 7 for s in [0, 0, 3, 3, 6] + [0, 0, 3, 1, 4]], abs=0.01)


def test_the_critical_path_is_marked_twice():
    """A thick edge, and a mark beside the name: not by colour."""
    shown = page(crossed(), TIMES)
    critical = [bar["title"] for bar in shown.of("critical")]
    assert critical == ["slow_a, visit 1: 3.00 s", "slow_b, visit 1: 3.00 s", "join, visit 1: 1.00 s",
                        "slow_a, visit 1: 3.00 s", "quick_a, visit 1: 1.00 s", "join, visit 1: 1.00 s"]
    assert re.findall(r"◆ (\w+)\|", shown.text) == ["slow_a", "slow_b", "join", "slow_a", "quick_a", "join"]


def test_the_wait_at_the_barrier_is_shown_in_waves_alone():
    """quick_b and quick_a wait two seconds each."""
    waits = page(crossed(), TIMES).of("wait")
    assert [wait["title"] for wait in waits] == ["quick_b, visit 1: 1.00 s, then waits 2.00 s at the barrier",
                                                 "quick_a, visit 1: 1.00 s, then waits 2.00 s at the barrier"]


def test_what_it_comes_to_stands_above():
    """Seconds, and how many times as fast as in series; the same in words for those who do not see the bars."""
    shown = page(crossed(), TIMES)
    assert "waves: 7.00 s| |· 1.29 × as fast as in series (9.00 s)" in shown.text.replace(" ·", " |·")
    assert [one["aria-label"] for one in shown.of("one")] == [str(foretell(crossed(), TIMES, "waves")),
                                                              str(foretell(crossed(), TIMES, "ready"))]


def test_what_does_not_run_says_so():
    """A lane without a bar, a refusal, a blocked node."""
    assert "person|does not run|" in page(lap()).text
    loud = page(lap(), choices={"check": "again"})
    assert [said["title"] for said in loud.of("said") if "refused" in said["title"]] == (
        ["refused: max_visits=3 reached"] * 2)
    assert "✗|" in loud.text  # there is no room for a word between the last bar and the edge
    assert "draft: max_visits=3 reached|" in loud.text
    assert "✗ refused|" in page(lap(on_error="person"), {"person": 5}, choices={"check": "again"}).text
    graph = make("START>a a>b,c", a={"max_visits": 1}, c={}, routers={"b": (lambda s: "x", {"x": "a", "y": END})})
    assert "✗ refused|" in page(graph, choices={"b": "x"}).text


def test_names_come_through_escaped_and_whole():
    """Markup in a name is text, in the bars and in their titles; a line break is shown and not obeyed."""
    graph = Graph(NASTY).add_node(NASTY, lambda state: {}).add_edge(START, NASTY)
    graph.add_node("b", lambda state: {}).add_router(NASTY, lambda state: NASTY, {NASTY: "b"})
    shown = page(graph)
    assert {tag for tag, _ in shown.tags} == {"style", "div", "b"}
    assert """<script>alert(1)</script> & "quotes" ' $x$ \\n\\u202e 🚀 {brace}""" in shown.text
    assert any("<script>" in attrs.get("title", "") for _, attrs in shown.tags)


def test_the_scale_has_round_numbers():
    """0.001, 0.002, 0.005, 0.01 ..."""
    assert [step for step in round_steps() if 0.004 < step < 30] == [
        0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]


# ---- the widget, without a browser


@pytest.fixture
def moving(monkeypatch):
    """As in a notebook that a person looks at."""
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("MINIGRAPH_HEADLESS", raising=False)


def test_a_slider_redraws_both_schedules(moving):
    """slow_a from 3 s to 1 s: 5 s in waves, and still 5 s without, where the other chain decides."""
    what = whatif(crossed(), TIMES)
    before = what.controls.picture.value
    what.controls.sliders["slow_a"].value = 1.0
    assert {name: forecast.seconds for name, forecast in what.forecasts.items()} == {"waves": 5.0, "ready": 5.0}
    assert "waves: 5.00 s" in what.controls.picture.value
    assert what.controls.picture.value == what.html != before


def test_the_sliders_begin_with_the_latencies(moving):
    """A slider a node, in the order of the graph, up to twice the longest latency."""
    sliders = whatif(crossed(), {**TIMES, "slow_b": 3.37}).controls.sliders
    assert {name: slider.value for name, slider in sliders.items()} == {**TIMES, "slow_b": 3.37}
    assert {slider.max for slider in sliders.values()} == {2 * 3.37}
    assert whatif(make("START>a")).controls.sliders["a"].max == 3.0
    assert whatif(make("START>a"), most=20).controls.sliders["a"].max == 20


@pytest.mark.parametrize("most", [0, -1, 2.9, float("nan"), float("inf")])
def test_sliders_that_could_not_show_a_latency_are_refused(most):
    """most below a latency that is given."""
    with pytest.raises(ValueError, match="the sliders end at a time above 0, and not below the 3 s given"):
        whatif(crossed(), TIMES, most=most)


def test_a_menu_chooses_what_a_router_says(moving):
    """Each label, and for one that leads back also: once, and then on."""
    what = whatif(lap())
    menu = what.controls.menus["check"]
    assert menu.options == (("again, every time", "again"), ("good", "good"), ("help", "help"),
                            ("again, then good", ("again", "good")))
    menu.value = ("again", "good")
    assert what.forecasts["waves"].seconds == 5.0
    menu.value = "again"
    assert "draft: max_visits=3 reached" in what.controls.picture.value


def test_a_choice_of_ones_own_is_in_the_menu(moving):
    """Two laps were asked for; the menu can come back to them."""
    what = whatif(lap(), choices={"check": ["again", "again", "good"]})
    menu = what.controls.menus["check"]
    assert menu.label == "again, then again, then good"
    menu.value = "good"
    menu.value = ("again", "again", "good")
    assert what.forecasts["ready"].seconds == 7.0


def test_back_to_the_beginning(moving):
    """The button puts sliders and menus back, and the picture with them, drawn once."""
    what = whatif(lap(), {"draft": 2.0}, choices={"check": ["again", "good"]})
    controls, html = what.controls, what.html
    controls.sliders["draft"].value = 0.5
    controls.sliders["save"].value = 0.1
    controls.menus["check"].value = "good"
    drawn, asked = [], []
    controls.picture.observe(drawn.append, "value")
    what.set = what.choose = lambda *change: asked.append(change)
    controls.box.children[0].children[-1].click()
    assert (controls.sliders["draft"].value, controls.sliders["save"].value) == (2.0, 1.0)
    assert controls.menus["check"].value == ("again", "good")
    assert controls.picture.value == html
    assert (len(drawn), asked) == (1, [])


def test_labels_of_sliders_are_escaped(moving):
    """A name with markup is text, and no formula."""
    graph = Graph("g").add_node(NASTY, lambda state: {}).add_edge(START, NASTY)
    slider = whatif(graph).controls.sliders[NASTY]
    label = Page(slider.description)
    assert [tag for tag, _ in label.tags] == ["span"]
    assert label.of("mathjax_ignore")
    assert label.text.startswith("<script>alert(1)</script> & ")


def test_a_notebook_gets_the_widget_and_the_text(moving):
    """The text twin is beside the widget, as it is beside a picture."""
    bundle = whatif(crossed(), TIMES)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert bundle["text/plain"].startswith("waves: 7.000 s")


def test_headless_shows_the_still(monkeypatch):
    """With MINIGRAPH_HEADLESS, or without ipywidgets, the chart of the times given, both schedules on one scale."""
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MINIGRAPH_HEADLESS", "1")
    data, about = whatif(crossed(), TIMES)._repr_mimebundle_()
    assert data["image/png"]
    assert "waves, critical path slow_a -> slow_b -> join" in data["text/plain"]
    assert "ready, critical path slow_a -> quick_a -> join" in about["image/png"]["alt"]
    monkeypatch.delenv("MINIGRAPH_HEADLESS")
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert "image/png" in whatif(crossed(), TIMES)._repr_mimebundle_()[0]


def test_without_anything_it_is_text():
    """print() and the plain prompt."""
    what = whatif(crossed(), TIMES)
    assert isinstance(what, WhatIf)
    assert repr(what) == "\n".join(str(foretell(crossed(), TIMES, schedule)) for schedule in ("waves", "ready"))


def test_a_redraw_feels_immediate(moving):
    """Ten nodes, both schedules: well under a tenth of a second. The fastest of ten, as the machine may be busy."""
    names = [f"n{n}" for n in range(8)]
    graph = make(" ".join([*(f"START>{name} {name}>join" for name in names), "join>last"]))
    what = whatif(graph)
    slider, times = what.controls.sliders["n3"], []
    for number in range(10):
        begun = time.perf_counter()
        slider.value = 0.1 * (number + 1)
        times.append(time.perf_counter() - begun)
    assert min(times) < 0.1
