"""The figures of the measurement, computed from two traces that two engines really made."""

import dataclasses

import pytest

from minigraph import Graph, run_graph
from minigraph.models.base import Reply
from minigraph.trace import Trace
from minigraph.workflows import brief, gather
from minigraph.workflows.comparison import ASSUMPTIONS, Comparison, compare


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    outbox = tmp_path_factory.mktemp("outbox")
    return gather.run(outbox=outbox)[1], brief.run(outbox=outbox)[1]


def test_the_figures(traces):
    """1.887 against 6.740 s gathering, 13.166 against 15.297 s in all, four sources against two in three calls."""
    assert compare(*traces).to_dict() == {
        "graph_gathering": 1.887, "graph_answering": 11.279, "graph_total": 13.166,
        "loop_gathering": 6.74, "loop_answering": 8.557, "loop_total": 15.297,
        "series": 3.396, "ratio": 3.571807, "overlap": 1.799682, "saved": 0.139308,
        "gained": 4.853, "given_back": 2.722,
        "graph_asked": ["github", "web", "calendar", "memory"], "loop_asked": ["github_read", "list_events"],
        "loop_calls": 3}


def test_the_text(traces):
    """The table and the honest lines, as they are read."""
    assert str(compare(*traces)) == """\
             graph     loop
gathering   1.89 s   6.74 s  3.57 times as fast
answering  11.28 s   8.56 s
total      13.17 s  15.30 s  14 % less
sources          4        2  the loop in 3 calls

Gathering is 3.57 times as fast, not 3.5: that comes of dividing rounded figures, 6.7 by 1.9.
One after another the scans would take 3.40 s: overlap explains a factor of 1.8, \
and round trips to the model that are not made explain the rest.
The graph gains 4.85 s gathering and gives back 2.72 s answering (11.28 against 8.56 s): \
15.30 - 4.85 + 2.72 = 13.17 s. It has more to write about.
The graph asked github, web, calendar and memory, for its shape says so; \
the loop asked github_read and list_events, and had enough."""
    assert "assumption" in ASSUMPTIONS[1] and "One run each" in ASSUMPTIONS[0]


def test_no_figure_stands_in_the_code(traces):
    """Another pair of traces gives other figures, in every line: slower events, other calls, a loop that wins."""
    graph, loop = traces
    slower = Trace({**event, "t": 2 * event["t"], "ms": 2 * event.get("ms", 0)} for event in graph)
    figures = compare(slower, loop)
    assert (round(figures.ratio, 3), round(figures.overlap, 3), round(figures.saved, 3)) == (1.786, 1.8, -0.721)
    assert "72 % more" in str(figures) and "not 3.5" not in str(figures)
    quick = dataclasses.replace(figures, loop_total=40.0)
    assert "and gains another" in str(quick) and f"{quick.loop_total:.2f} - " in str(quick)


def test_real_time_agrees_with_virtual_time(traces, tmp_path):
    """A trace in real time is compared by the same function."""
    figures = compare(gather.run(outbox=tmp_path, speed=2000)[1], brief.run(outbox=tmp_path, speed=2000)[1])
    assert figures.loop_calls == 3 and figures.graph_gathering >= 1.887 and figures.loop_gathering >= 6.74


def test_a_trace_comes_back_from_a_file(traces, tmp_path):
    """Traces that were saved are compared as well."""
    again = []
    for number, trace in enumerate(traces):
        trace.to_jsonl(tmp_path / f"{number}.jsonl")
        again.append(Trace.from_jsonl(tmp_path / f"{number}.jsonl"))
    assert compare(*again) == compare(*traces)


def test_a_loop_that_calls_nothing_is_compared(tmp_path, traces):
    """No tool call: nothing gathered, at once."""
    lazy = brief.run(outbox=tmp_path, model=lambda messages, tools=None: Reply("Sunny."))[1]
    figures = compare(traces[0], lazy)
    assert (figures.loop_gathering, figures.loop_calls, figures.ratio) == (0.0, 0, 0.0)
    assert "the loop asked nothing" in str(figures)


def test_a_ratio_without_an_end_is_none_in_json():
    """Unmeasured runs in virtual time take no time: infinite ratios do not become invalid JSON."""
    figures = Comparison(0.0, 0.0, 1.0, 1.0, 0.0, ("web",), ("x",), 1)
    assert figures.to_dict()["ratio"] is None and "inf times" in str(figures)


def test_other_traces_are_refused(traces):
    """The wrong trace in either place is a ValueError that says what belongs there."""
    graph, loop = traces
    with pytest.raises(ValueError, match="the first trace, of 'brief', has no node named scan_.*must be of a gather"):
        compare(loop, graph)
    with pytest.raises(ValueError, match="the second trace, of 'gather', is not of a loop: it must be of a brief"):
        compare(graph, graph)
    with pytest.raises(ValueError, match="it must be of a gather"):
        compare(Trace(), Trace())
    other = Trace()
    run_graph(Graph("g").add_node("a", lambda state: None).add_edge("START", "a"), {}, other)
    with pytest.raises(ValueError, match="the first trace, of 'g'"):
        compare(other, loop)
