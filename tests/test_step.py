"""A finished run, step by step: what the steps are, what each shows, and the slider over them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from helpers import make
from test_frames import Parts, broken, fan, inner, loop, nasty, takes, traced

from minigraph import END, START, emit, resume_graph, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.film import LOOKS, Film
from minigraph.nodes import graph_node, human_node, map_node
from minigraph.panel import LIGHT, css
from minigraph.trace import Trace
from minigraph.widgets import step


def titles(trace: Trace) -> list[str]:
    return [f"{one.t:.1f} {one.title}" for one in Film(trace)]


# ---- what the steps are


def test_a_wave_is_a_step_when_it_begins_and_one_when_it_is_over() -> None:
    """Every end is a step of its own; a lone node's goes with its wave's, and its writes with it."""
    assert titles(traced(fan())) == [
        "0.0 the run begins",
        "0.0 wave 1 begins: slow, quick, middle",
        "0.4 quick is done after 400 ms",
        "1.5 middle is done after 1.500 s",
        "1.9 slow is done after 1.900 s",
        "1.9 wave 1 is over after 1.900 s: web, notes, mail on the blackboard",
        "1.9 wave 2 begins: join",
        "3.9 join is done after 2.000 s: text on the blackboard",
        "3.9 the run is over: done"]


def test_real_time() -> None:
    """Events that belong together are one step, also where the clock has moved on between them."""
    graph = make("START>a a>b,c", a=human_node("a", "Go?", "answer").fn, b=takes(0.05), c=takes(0.2))
    trace = Trace()
    state = run_graph(graph, {}, trace)
    resume_graph(graph, state.journal, {"a": "yes"}, observer=trace)
    assert [one.title.split(" after")[0] for one in Film(trace)] == [
        "the run begins", "wave 1 begins: a", "a asks: Go?", "the run is over: paused", "the run goes on", "a begins",
        "a is done", "wave 2 begins: b, c", "b is done", "c is done", "wave 2 is over", "the run is over: done"]


def test_without_waves_an_end_is_where_the_write_is() -> None:
    """Under "ready" each end puts its writes on the blackboard, and there are no waves to tell of."""
    assert titles(traced(fan(), schedule="ready")) == [
        "0.0 the run begins",
        "0.0 slow, quick, middle begin",
        "0.4 quick is done after 400 ms: notes on the blackboard",
        "1.5 middle is done after 1.500 s: mail on the blackboard",
        "1.9 slow is done after 1.900 s: web on the blackboard",
        "1.9 join begins",
        "3.9 join is done after 2.000 s: text on the blackboard",
        "3.9 the run is over: done"]


def test_routes_refusals_failures() -> None:
    """What a router said, a refusal, a failure, and what it blocks, are steps."""
    assert titles(traced(loop()))[-7:] == [
        "4.0 wave 6 begins: check",
        "4.5 check is done after 500 ms: score on the blackboard",
        "4.5 check says fix: on to revise",
        "4.5 revise is refused: max_visits=2 reached",
        "4.5 wave 7 begins: person",
        "4.6 person is done after 100 ms: who on the blackboard",
        "4.6 the run is over: done"]
    assert titles(traced(broken()))[3:6] == [
        "0.7 fetch fails after 700 ms: TimeoutError: no answer",
        "0.7 wave 1 is over after 700 ms: local, errors on the blackboard",
        "0.7 clean, rank are blocked: a node above it failed or is blocked: fetch"]
    lost = make("START>a b>END", routers={"a": (lambda state: "no", {"yes": "b"})})
    assert "0.0 the router of a fails: ValueError" in " | ".join(titles(traced(lost)))


def test_what_is_inside_a_node() -> None:
    """Of what a node holds the ends are steps; a gate's question is one, and that a resumed run goes on."""
    graph = make("START>nested nested>ask ask>END", nested=graph_node("nested", inner(), [], ["c"]).fn,
                 ask=human_node("ask", "Send it?", "answer").fn)
    trace = Trace()
    with virtual_time():
        state = run_graph(graph, {}, trace)
        resume_graph(graph, state.journal, {"ask": "yes"}, observer=trace)
    assert titles(trace) == [
        "0.0 the run begins",
        "0.0 wave 1 begins: nested",
        "1.0 nested/a is done after 1.000 s",
        "2.0 nested/b is done after 1.000 s",
        "3.0 nested/c is done after 1.000 s",
        "3.0 nested is done after 3.000 s: c on the blackboard",
        "3.0 wave 2 begins: ask",
        "3.0 ask asks: Send it?",
        "3.0 the run is over: paused",
        "3.0 the run goes on",
        "3.0 ask begins",
        "3.0 ask is done after 0 ms: answer on the blackboard",
        "3.0 the run is over: done"]


def test_a_map_of_many() -> None:
    """Names are listed as far as they can be read, and the rest is counted."""
    graph = make("START>" + ",".join(f"n{number}" for number in range(9)))
    assert titles(traced(graph))[1] == "0.0 wave 1 begins: n0, n1, n2, n3 and 5 more"
    graph = make("").add_node(map_node("each", lambda item: item, "items", "all")).add_edge(START, "each")
    assert [title for title in titles(traced(graph, {"items": [1, 2]})) if "each/" in title] == [
        "0.0 each/0 is done after 0 ms", "0.0 each/1 is done after 0 ms"]


# ---- what a step shows


def test_the_blackboard_before_and_after() -> None:
    """A step has the keys it wrote, with what stood there before; a wave's keys come with its end, all of them."""
    film = Film(traced(fan()))
    assert [one.written for one in film[4:8]] == [
        {}, {"web": (None, "3"), "notes": (None, "'n'"), "mail": (None, "[1, 2]")}, {}, {"text": (None, "'done'")}]
    again = Film(traced(make("START>a a>b b>END", a=takes(0, key="old"), b=takes(0, key="new"))))
    assert [one.written for one in again if one.written] == [{"key": (None, "'old'")}, {"key": ("'old'", "'new'")}]


def test_what_a_node_says_is_no_step() -> None:
    """Events of a node's own kind are no steps; they go with the step after, and that is at its own time."""
    def chatty(state: Any) -> dict[str, Any]:
        sleep(2)
        emit("thought", {"text": "hm"})
        sleep(2)
        return {"b": 1}

    film = Film(traced(make("START>a,b", a=takes(1, a=1), b=chatty), schedule="ready"))
    assert [one.title for one in film[2:4]] == ["a is done after 1.000 s: a on the blackboard",
                                                "b is done after 4.000 s: b on the blackboard"]
    assert [(one.t, one.written) for one in film[2:4]] == [(1.0, {"a": (None, "1")}), (4.0, {"b": (None, "1")})]
    assert [event["kind"] for event in film.moments[3].events] == ["thought", "node_end"]
    until_then = Film(Trace(film.trace.events[:film.trace.events.index(film.moments[3].events[1])]))
    assert until_then[-1].title == film[2].title and until_then[-1].written == film[2].written


def cells(html: str) -> list[list[str]]:
    """Return the rows of the blackboard as they are shown."""
    found = re.findall(r'<div data-s="b\d+\.\w" class="(td[^"]*)"[^>]*>([^<]*)</div>', html)
    return [[text + ("*" if "td-new" in kind else "") for kind, text in found[at:at + 4]]
            for at in range(0, len(found), 4) if found[at][1]]


def test_written_keys_are_marked() -> None:
    """The table has every key before and after the step; what it wrote is marked by a sign, colour and weight."""
    film = Film(traced(make("START>a a>b b>END", a=takes(0, key="old"), b=takes(0, key="new")), {"n": 1}))
    number = next(one.number for one in film if one.title.startswith("b is done"))
    assert cells(film.html(number)) == [["n", "1", "1", "at the start"],
                                        ["✎ key*", "&#x27;old&#x27;", "&#x27;new&#x27;*", "b*"]]
    assert cells(film.html(0)) == [["n", "1", "1", "at the start"]]


def test_the_cursor_stands_at_the_moment() -> None:
    """The cursor over the bars stands where the clock is, and what lies to the right of it is veiled."""
    film = Film(traced(fan()))
    places = [re.findall(r'data-s="(?:veil|cursor)" style="left:([\d.]+)%', film.html(number))
              for number in (0, 4, 8)]
    assert places == [["0.00", "0.00"], ["48.72", "48.72"], ["100.00", "100.00"]]


def test_the_bars() -> None:
    """There is a bar a visit, where and as long as it was; waits, failures and refusals are marked and have a title."""
    html = Film(traced(fan())).html(0)
    assert re.findall(r'class="visit visit-node" style="left:([\d.]+)%;width:([\d.]+)%" title="([^"]*)"', html) == [
        ("0.00", "48.72", "slow: 1.900 s · set the pace"), ("0.00", "10.26", "quick: 400 ms"),
        ("0.00", "38.46", "middle: 1.500 s"), ("48.72", "51.28", "join: 2.000 s")]
    assert re.findall(r'class="wait" style="left:([\d.]+)%;width:([\d.]+)%"', html) == [
        ("10.26", "38.46"), ("38.46", "10.26")]
    assert 'class="visit visit-failed"' in Film(traced(broken())).html(0)
    assert Film(traced(broken())).html(0).count(">■</div>") == 2 and ">⊘</div>" in Film(traced(loop())).html(0)


def test_backwards_is_as_forwards() -> None:
    """Whatever step comes after whatever other, it shows the same."""
    film = Film(traced(loop()))
    forwards = [film.html(number) for number in range(len(film))]
    assert [film.html(number) for number in reversed(range(len(film)))] == forwards[::-1]
    assert film.html(3) == forwards[3] and film[-1].text == Film(film.trace)[len(film) - 1].text
    with pytest.raises(IndexError, match="step 99: this run has 22"):
        film[99]


def test_nothing_moves_from_step_to_step() -> None:
    """Every step has the same elements in the same order; only what stands in them differs."""
    film = Film(traced(loop()))
    pages = [film.html(number) for number in range(len(film))]
    assert len({tuple(re.findall(r'<(?!span)\w+|data-s="[^"]*"', page)) for page in pages}) == 1
    assert set(film.slots(0)) <= set(film.template.names)


def test_a_trace_read_from_a_file(tmp_path: Path) -> None:
    """A trace written to a file and read back has the same steps, the graph and the values included."""
    trace = traced(loop(), {"n": [1, 2]})
    trace.to_jsonl(tmp_path / "run.jsonl")
    film, again = Film(trace), Film(Trace.from_jsonl(tmp_path / "run.jsonl"))
    assert [one.text for one in again] == [one.text for one in film]
    assert again.html(5) == film.html(5)


def test_a_trace_without_its_graph() -> None:
    """A trace that does not hold its graph needs it; that of a loop has none, and the message says what to do."""
    trace = traced(fan())
    old = Trace({key: value for key, value in event.items() if key != "graph"} for event in trace.events)
    with pytest.raises(ValueError, match="does not hold the graph that ran: pass graph="):
        step(old)
    assert step(old, fan()).text == step(old, fan().describe()).text == step(trace).text
    with pytest.raises(TypeError, match=r"step\(trace\) takes the Trace .* not a GraphState"):
        step(run_graph(make("START>a a>END"), {}))


def test_a_trace_that_is_not_over() -> None:
    """A trace that ends in the middle has the steps that were."""
    trace = traced(fan())
    film = Film(Trace(trace.events[:6]))
    assert film[-1].frame.status == "running" and len(film) == 3


def test_a_stepper_escapes() -> None:
    """Titles, keys, values and names of a step are text, whatever they hold."""
    film = Film(traced(nasty()))
    for number in range(len(film)):
        page = Parts(film.html(number))
        assert not page.tags & {"script", "img", "b", "i", "u"}
        assert not [name for name in page.attributes if name.startswith("on")]
    assert Parts(film.still(3)).tags == {"div", "span", "img"} and "var(" not in film.still(3)


def test_the_style_sheet_is_complete() -> None:
    """Every class of a step has a style, and every colour is there."""
    assert set(re.findall(r"var\(--([\w-]+)\)", css(LOOKS))) <= LIGHT.keys()
    body = re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", Film(traced(nasty())).html(4), flags=re.S)
    used = {name for names in re.findall(r'class="([^"]*)"', body) for name in names.split()}
    assert used - LOOKS.keys() <= {"mg-panel", "is-idle"}


# ---- the widget


def test_a_stepper_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ipywidgets there is a slider; for where there is none, the last step as a still, and all steps in words."""
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("MINIGRAPH_HEADLESS", raising=False)
    stepper = step(traced(fan()))
    bundle = stepper._repr_mimebundle_()
    assert set(bundle) >= {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"}
    assert bundle["text/plain"] == repr(stepper)
    assert bundle["text/plain"].splitlines()[4] == "  5. 1.900 s  slow is done after 1.900 s"
    assert "step 9 of 9: the run is over: done" in bundle["text/html"] and "<svg" not in bundle["text/html"]


def test_the_slider_shows_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving the slider, by whatever means, shows that step; playing moves the slider."""
    pytest.importorskip("ipywidgets")
    stepper = step(traced(fan()))
    controls = stepper.controls
    assert (controls.slider.min, controls.slider.max, controls.play.max) == (0, 8, 8)
    assert "step 1 of 9" in controls.picture.value
    controls.slider.value = 5
    assert controls.picture.value == stepper.film.html(5) and "step 6 of 9" in controls.picture.value
    assert controls.link.source == (controls.play, "value") and controls.link.target == (controls.slider, "value")


@pytest.mark.parametrize("why", ["headless", "no ipywidgets"])
def test_where_nothing_can_move(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headless and without ipywidgets there is the still and the text; the environment is asked when it is shown."""
    stepper = step(traced(fan()))
    if why == "headless":
        monkeypatch.setenv("MINIGRAPH_HEADLESS", "1")
    else:
        monkeypatch.setattr("minigraph.widgets.where.find_spec", lambda name: None)
    bundle: dict[str, Any] = stepper._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"} and "✓ done · 3.900 s" in bundle["text/html"]
    assert (END in repr(stepper)) is False
