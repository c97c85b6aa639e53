"""Frames: what is known of a run at one moment, in data, in words, as a picture and as a piece of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from helpers import make
from test_conformance import CASES, build

from minigraph import END, START, Graph, GraphState, StateCollision, emit, resume_graph, run_graph
from minigraph import scene as scenes
from minigraph.clock import sleep, virtual_time
from minigraph.draw import PictureError
from minigraph.frames import Frame, Reel, short
from minigraph.nodes import graph_node, human_node, map_node, retry
from minigraph.palette import READABLE, VISIBLE, contrast
from minigraph.panel import DARK, LIGHT, STATES, STYLES, css, widest
from minigraph.sheet import sheet
from minigraph.trace import Trace

SCHEDULES = ("waves", "ready")


def takes(seconds: float, fail: Exception | None = None, **writes: Any) -> Callable[[Any], dict[str, Any]]:
    """Return a node function that sleeps, then fails or writes."""
    def work(state: Any) -> dict[str, Any]:
        sleep(seconds)
        if fail is not None:
            raise fail
        return writes
    return work


def traced(graph: Graph, state: Mapping[str, Any] | None = None, **options: Any) -> Trace:
    trace = Trace()
    with virtual_time():
        run_graph(graph, state or {}, trace, **options)
    return trace


def reel_of(graph: Graph, trace: Trace, until: float = 1e9, kind: str = "") -> Reel:
    """Return a reel that has heard what happened until then, or up to the first event of a kind."""
    reel = Reel(graph.describe())
    for event in trace.events:
        if event["t"] > until:
            break
        reel(event["kind"], event)
        if event["kind"] == kind:
            break
    return reel


def at(graph: Graph, seconds: float, state: Mapping[str, Any] | None = None, **options: Any) -> Frame:
    """Return the frame of that moment of a run, or of its end."""
    return reel_of(graph, traced(graph, state, **options), seconds).frame(seconds)


def last(graph: Graph, **options: Any) -> Frame:
    return reel_of(graph, traced(graph, **options)).frame()


def fan() -> Graph:
    return make("START>slow,quick,middle slow>join quick>join middle>join join>END", name="morning",
                slow=takes(1.9, web=3), quick=takes(0.4, notes="n"), middle=takes(1.5, mail=[1, 2]),
                join=takes(2, text="done"))


def loop() -> Graph:
    """A cycle that is refused its third lap, and a way out by on_error."""
    return make("START>draft draft>check save>END person>END", name="loop", draft=takes(1, draft="d"),
                check={"fn": takes(0.5, score=1)}, save=takes(0.1),
                revise={"fn": takes(1, draft="e"), "max_visits": 2, "on_error": "person"}, person=takes(0.1, who="p"),
                routers={"check": (lambda state: "fix", {"fix": "revise", "good": "save"}),
                         "revise": (lambda state: "again", {"again": "check"})})


def broken() -> Graph:
    return make("START>fetch,local fetch>clean clean>rank local>report rank>END report>END", name="broken",
                fetch=takes(0.7, TimeoutError("no answer")), local=takes(0.3, local=3), report=takes(0.1, report="r"))


# ---- in words


def test_a_wave_in_the_middle() -> None:
    """A frame tells of each node how far it is, and of each card of the wave; the blackboard has nothing of it."""
    assert at(fan(), 1.2, {"day": "2026-11-30"}).text == """\
morning: ● running · wave 1 · 1.2 s
  slow: ● running · 1.2 s
  quick: ✓ 400 ms
  middle: ● running · 1.2 s
  card slow: ● running · 1.2 s
  card quick: ✓ done · 400 ms; at the barrier; wrote notes
  card middle: ● running · 1.2 s
  day = '2026-11-30' (at the start)"""


def test_a_wave_that_is_over() -> None:
    """With the wave its writes are on the blackboard, with who wrote them, and the cards say who waited for whom."""
    graph = fan()
    frame = reel_of(graph, traced(graph), kind="wave_end").frame()
    assert frame.text == """\
morning: ● running · wave 1 · 1.9 s
  slow: ✓ 1.900 s
  quick: ✓ 400 ms
  middle: ✓ 1.500 s
  card slow: ✓ done · 1.900 s; set the pace; wrote web
  card quick: ✓ done · 400 ms; waited 1.5 s at the barrier; wrote notes
  card middle: ✓ done · 1.500 s; waited 400 ms at the barrier; wrote mail
  web = 3 (slow; new)
  notes = 'n' (quick; new)
  mail = [1, 2] (middle; new)"""
    assert [card.share for card in frame.cards] == [1.0, 0.4 / 1.9, 1.5 / 1.9]
    assert [card.waits for card in frame.cards] == [False, True, True]


def test_a_run_that_is_over() -> None:
    """At the end the frame says how it ended and when, and what a node's last visit left."""
    assert last(loop()).text == """\
loop: ✓ done · 4.600 s
  draft: ✓ 1.000 s
  check: ✓ ×3 · 1.500 s
  save: – skipped
  person: ✓ 100 ms
  revise: ⊘ refused · ×2: max_visits=2 reached
  card "revise (visit 3)": ⊘ refused
  card person: ✓ done · 100 ms; wrote who
  draft = 'e' (revise (visit 2))
  score = 1 (check (visit 3))
  errors = {'revise': 'max_visits=2 reached'} (the engine)
  who = 'p' (person)"""


def test_a_failure() -> None:
    """A failure is told with its error, what it blocks is blocked, and the errors stand on the blackboard."""
    assert last(broken()).text == """\
broken: ✗ failed · 800 ms
  fetch: TimeoutError: no answer
  fetch: ✗ failed: TimeoutError: no answer
  local: ✓ 300 ms
  clean: ■ blocked: a node above it failed or is blocked: fetch
  rank: ■ blocked: a node above it failed or is blocked: clean
  report: ✓ 100 ms
  card report: ✓ done · 100 ms; wrote report
  local = 3 (local)
  errors = {'fetch': 'TimeoutError: no answer'} (the engine)
  report = 'r' (report)"""
    frame = at(broken(), 0.75)
    assert [(card.node, card.state, card.words) for card in frame.cards] == [("report", "running", "")]
    frame = at(broken(), 0.69)
    assert frame.caption == "1 running, 1 done" and "errors" not in frame.board


def test_without_waves() -> None:
    """Under "ready" a write is on the blackboard at once, nobody waits at a barrier, and there is no wave."""
    frame = at(fan(), 1.2, schedule="ready")
    assert frame.title == "● running · 1.2 s"
    assert {key: value.text for key, value in frame.board.items()} == {"notes": "'n'"}
    assert [card.note for card in frame.cards] == ["", "", ""]


def test_queued() -> None:
    """A node of the wave that has no worker yet is queued, in the picture and on its card."""
    frame = at(fan(), 0.2, max_workers=2)
    assert [(card.node, card.told) for card in frame.cards] == [
        ("slow", "● running · 0.2 s"), ("quick", "● running · 0.2 s"), ("middle", "○ queued")]
    assert frame.nodes["middle"].facts == "○ queued" and frame.caption == "1 queued, 2 running"


def test_before_it_begins() -> None:
    """A reel that has heard nothing has a frame, with the state it was given."""
    reel = Reel(fan().describe(), {"day": 1})
    assert reel.frame().text == "morning: ○ not begun · 0.0 s\n  day = 1 (at the start)"
    assert reel.frame().nodes["slow"].facts == ""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_frame_agrees_with_the_run(case: dict[str, Any], schedule: str) -> None:
    """The last frame holds what the run returned: status, blackboard, visits, errors; and the ways that draw shows."""
    graph, trace, state = build(case, seed=3), Trace(), None
    with virtual_time():
        try:
            state = run_graph(graph, {}, trace, case.get("max_steps"), schedule=schedule)
        except StateCollision as collision:
            assert last_of(graph, trace).error == f"StateCollision: {collision}"
            return
    frame = last_of(graph, trace)
    assert frame.status == state.status
    assert {key: value.text for key, value in frame.board.items() if key != "errors"} == {
        key: repr(value) for key, value in state.items() if key != "errors"}
    assert {node.name: node.visits for node in frame.nodes.values() if node.visits} == state.visits
    assert ("errors" in frame.board) == bool(state["errors"].keys() - {"engine"})
    assert frame.edges == {(edge.src, edge.dst, edge.kind): edge.times for edge in sheet(graph, trace, False).edges
                           if edge.times}
    for mark in sheet(graph, trace, False).nodes:
        if mark.state in ("skipped", "not run", "waiting"):
            assert mark.name in (START, END) or frame.nodes[mark.name].state == mark.state


def last_of(graph: Graph, trace: Trace) -> Frame:
    return reel_of(graph, trace).frame()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_collision_leaves_nothing(schedule: str) -> None:
    """Nothing of the write that collided is on the blackboard, and the caption says who collided over what."""
    graph, trace = make("START>a,b", a=takes(1, key=1, a=1), b=takes(2, key=2, b=2)), Trace()
    with virtual_time(), pytest.raises(StateCollision):
        run_graph(graph, {}, trace, schedule=schedule)
    frame = last_of(graph, trace)
    assert frame.caption.startswith("✗ StateCollision: nodes 'a' and 'b' both wrote 'key'")
    assert list(frame.board) == list(frame.rows) == ([] if schedule == "waves" else ["key", "a"])
    assert frame.html().count("StateCollision") == 1


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_interrupt(schedule: str) -> None:
    """An interrupted run says so; what had not ended is interrupted, what waited is not run, and nothing was merged."""
    def interrupt(state: Any) -> None:
        sleep(1)
        raise KeyboardInterrupt

    graph, trace = make("START>a,b,c a>d b>d c>d", a=interrupt, b=takes(2, b=1), c=takes(0.5, c=1)), Trace()
    with virtual_time(), pytest.raises(KeyboardInterrupt):
        run_graph(graph, {}, trace, schedule=schedule)
    frame = last_of(graph, trace)
    assert frame.title.startswith("◼ interrupted") and frame.caption == "1 done, 1 not run, 2 interrupted"
    assert [node.state for node in frame.nodes.values()] == ["interrupted", "interrupted", "done", "not run"]
    assert list(frame.board) == ([] if schedule == "waves" else ["c"])
    assert [card.note for card in frame.cards if card.node == "c"] == ["not merged" if schedule == "waves" else ""]
    assert ("a", "d", "on_error") not in frame.edges


def test_max_steps() -> None:
    """What a guard kept from running has not run; it was not skipped."""
    frame = last(make("START>a a>b b>c c>END"), max_steps=2)
    assert frame.title == "◼ max_steps · 0 ms" and frame.nodes["c"].facts == "– not run"


# ---- nodes inside nodes, gates, attempts


def inner() -> Graph:
    return make("START>a a>b b>c c>END", name="inner", a=takes(1, a=1), b=takes(1, b=1), c=takes(1, c=1))


def test_what_is_inside_moves_the_card_outside() -> None:
    """A nested graph, a map and an agent say on their own card how far they are; none of it is on the blackboard."""
    def agent(state: Any) -> dict[str, Any]:
        for _ in range(3):
            sleep(0.4)
            emit("llm", {"ms": 400})
            emit("tool", {"name": "look", "ms": 0})
        return {"reply": 1}

    graph = make("", name="outer", agent={"fn": agent, "kind": "agent"})
    graph.add_node(graph_node("nested", inner(), [], ["c"]))
    graph.add_node(map_node("each", lambda item: sleep(item) or item, "items", "all"))
    for name in graph.nodes:
        graph.add_edge(START, name)
    frame = at(graph, 1.0, {"items": [0.1, 0.2, 3.0]})
    assert [(card.node, card.inside, card.state) for card in frame.cards] == [
        ("agent", "4 calls", "running"), ("nested", "1 of 3 done", "running"), ("each", "2 of 3 done", "running")]
    assert [node.facts for node in frame.nodes.values()] == ["● 4 calls · 1.0 s", "● 1 of 3 done · 1.0 s",
                                                            "● 2 of 3 done · 1.0 s"]
    assert list(frame.board) == ["items"] and frame.wave == 1
    over = last_of(graph, traced(graph, {"items": [1]}))
    assert [card.inside for card in over.cards] == ["", "", ""]


def test_only_what_is_right_inside_counts() -> None:
    """What is deeper inside counts for the node that holds it; and every visit of a node begins to count anew."""
    middle = make("", name="middle")
    middle.add_node(graph_node("deep", inner(), [], ["c"])).add_node("y", takes(1)).add_edge(START, "deep")
    middle.add_edge("deep", "y")
    graph = make("", name="outer").add_node(graph_node("out", middle, [], ["c"], max_visits=2))
    graph.add_node("rest", takes(1)).add_edge(START, "out")
    laps = iter(["again", "on"])
    graph.add_router("out", lambda state: next(laps), {"again": "out", "on": "rest"})
    trace = traced(graph)
    assert [reel_of(graph, trace, moment).frame(moment).cards[0].inside for moment in (2.5, 3.5, 4.5, 7.5)] == [
        "0 of 2 done", "1 of 2 done", "0 of 2 done", "1 of 2 done"]


def test_a_name_that_looks_like_a_path() -> None:
    """A node whose name has a slash in it is a node of the run itself, whatever is inside the other."""
    graph = make("")
    graph.add_node(graph_node("nested", inner(), [], ["c"])).add_node("nested/x", takes(0.5, x=1))
    graph.add_edge(START, "nested").add_edge(START, "nested/x")
    frame = at(graph, 1.5)
    assert [node.facts for node in frame.nodes.values()] == ["● 1 of 3 done · 1.5 s", "✓ 500 ms"]


def test_attempts() -> None:
    """A node that is tried again says which attempt this is."""
    tries = iter([ValueError("one"), ValueError("two"), None])

    def flaky(state: Any) -> dict[str, Any]:
        sleep(1)
        if (error := next(tries)) is not None:
            raise error
        return {"a": 1}

    frame = at(make("START>a a>END", a=retry(flaky)), 2.5)
    assert frame.nodes["a"].facts == "● attempt 3 · 2.5 s" and frame.cards[0].inside == "attempt 3"


def test_a_gate_and_the_answer() -> None:
    """A gate waits with its question; a trace that hears the rest as well goes on from there, edits included."""
    graph, trace = make("START>a a>ask ask>b b>END", ask=human_node("ask", "Send it?", "answer").fn), Trace()
    with virtual_time():
        state = run_graph(graph, {"n": 1}, trace)
        paused = last_of(graph, trace)
        edited = resume_graph(graph, state.journal, edits={"n": 2}, observer=trace)
        resume_graph(graph, edited.journal, {"ask": "yes"}, observer=trace)
    assert paused.title == "? paused · 0 ms" and paused.caption == "ask asks: Send it?"
    assert [node.facts for node in paused.nodes.values()] == ["✓ done", "? waiting", "– not run"]
    goes_on = next(at for at, event in enumerate(trace.events) if event.get("resumed"))
    frame = last_of(graph, Trace(trace.events[:goes_on + 1]))
    assert [node.state for node in frame.nodes.values()] == ["done", "waiting", "idle"] and frame.status == "running"
    frame = last_of(graph, trace)
    assert frame.title == "✓ done · 0 ms"
    assert [node.state for node in frame.nodes.values()] == ["done", "done", "done"]
    assert {key: (value.text, value.source) for key, value in frame.board.items()} == {
        "n": ("2", "at the start"), "a": ("True", "a"), "answer": ("'yes'", "ask"), "b": ("True", "b")}
    assert frame.edges[START, "a", "static"] == 1


def test_a_gate_inside_a_node() -> None:
    """A node that holds a gate waits, and says which gate and what it asks."""
    inside = make("START>ask,other", name="inside", other=takes(2), ask=human_node("ask", "Really?", "answer").fn)
    graph = make("")
    graph.add_node(graph_node("holder", inside, [], ["answer"])).add_edge(START, "holder")
    trace = Trace()
    with virtual_time():
        state = run_graph(graph, {}, trace)
        paused = last_of(graph, trace)
        resume_graph(graph, state.journal, {"holder/ask": "yes"}, observer=trace)
    assert (paused.nodes["holder"].state, paused.nodes["holder"].words) == ("waiting", "ask: Really?")
    assert last_of(graph, trace).nodes["holder"].state == "done"


def test_a_resumed_run_heard_alone() -> None:
    """Of what a resumed run had done before only its path tells; that is done, too, and not skipped."""
    graph, trace = make("START>a a>ask ask>b b>END", ask=human_node("ask", "Send it?", "answer").fn), Trace()
    state = run_graph(graph, {})
    resume_graph(graph, state.journal, {"ask": "yes"}, observer=trace)
    assert [(node.state, node.visits) for node in last_of(graph, trace).nodes.values()] == [("done", 1)] * 3


def test_a_second_run_begins_anew() -> None:
    """A reel that hears another run forgets the first one."""
    graph = broken()
    reel = reel_of(graph, traced(graph))
    for event in traced(graph).events[:2]:
        reel(event["kind"], event)
    frame = reel.frame()
    assert frame.status == "running" and frame.board == {} and frame.caption == "2 queued" and frame.error is None
    assert frame.edges == {(START, "fetch", "static"): 1, (START, "local", "static"): 1}


# ---- cards keep their place


def test_a_long_row_is_cut_short() -> None:
    """Of a wave of many nodes the first twelve have cards, and the rest is counted."""
    names = ",".join(f"n{number}" for number in range(30))
    frame = at(make(f"START>{names}", n0=takes(1), n20=takes(1), n21=takes(2)), 0.5)
    assert [card.node for card in frame.cards] == [f"n{number}" for number in range(12)]
    assert frame.more == "and 18 more: 2 running, 16 done"


def test_without_waves_a_card_stays_until_its_place_is_needed() -> None:
    """Under "ready" what runs keeps its place in the row; a new card takes the place of what was over first."""
    graph = make("START>a,long a>b b>c c>d d>e e>END", a=takes(1), b=takes(1), c=takes(1), d=takes(1), e=takes(1),
                 long=takes(9))
    rows = [[card.node for card in at(graph, moment, schedule="ready").cards] for moment in (0.5, 2.5, 3.5, 4.5)]
    assert rows == [["a", "long"], ["a", "long", "b", "c"], ["d", "long", "b", "c"], ["d", "long", "e", "c"]]


def test_many_keys() -> None:
    """Twelve keys are shown, those written last; a new one takes the place of the one written first, others stay."""
    edges = "START>n0 " + " ".join(f"n{number}>n{number + 1}" for number in range(14))
    graph = make(edges)
    frame = last(graph)
    assert list(frame.rows) == ["n12", "n13", "n14", *(f"n{number}" for number in range(3, 12))]
    assert len(frame.board) == 15
    graph = make("START>a a>again again>n12 n12>END", a=takes(0, **{f"k{number}": 1 for number in range(12)}),
                 again=takes(0, k0=2))
    assert last(graph).rows == ("k0", "n12", *(f"k{number}" for number in range(2, 12)))


def test_widest() -> None:
    """There is room from the start for as many cards as nodes can stand side by side, so that no row pushes others."""
    assert [widest(graph.describe()) for graph in (fan(), loop(), broken(), make("START>a a>END"))] == [3, 2, 2, 1]
    frame = last(fan())
    assert frame.html().count('class="card ') == 1 and frame.html().count('class="ghost"') == 2


# ---- as a picture


def test_the_picture_is_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphviz is asked once for all frames of a run, and from frame to frame nothing moves."""
    asked = []
    monkeypatch.setattr(scenes, "_graphviz", lambda *args, ask=scenes._graphviz: asked.append(1) or ask(*args))
    graph = loop()
    trace, reel, places = traced(graph), Reel(graph.describe()), set()
    for event in trace.events:
        reel(event["kind"], event)
        svg = reel.frame().svg()
        places.add(tuple(re.findall(r' (?:points|d|cx|cy|rx|ry|x|y|viewBox|width|height)="[^"]*"', svg)))
    assert len(asked) == 1 and len(places) == 1


def states_in(svg: str) -> dict[str, tuple[str, str]]:
    """Return name -> (class, line of facts) of the nodes in a picture."""
    groups = re.findall(r'<g data-s="n\d+" class="(node [^"]*)"><title[^>]*>([^<]*)</title>(.*?)</g>', svg)
    return {title.split(":")[0]: (kind, re.findall(r'class="facts"[^>]*>([^<]*)<', body)[0])
            for kind, title, body in groups}


def test_a_state_is_said_by_class_sign_and_word() -> None:
    """A node's state is a class of its group, for the colour, and stands in it as a sign with a word or a time."""
    assert states_in(at(fan(), 1.2).svg()) == {
        "slow": ("node is-running", "● running · 1.2 s"), "quick": ("node is-done", "✓ 400 ms"),
        "middle": ("node is-running", "● running · 1.2 s"), "join": ("node is-idle", "")}
    assert states_in(last(broken()).svg()) == {
        "fetch": ("node is-failed", "✗ failed"), "local": ("node is-done", "✓ 300 ms"),
        "clean": ("node is-blocked", "■ blocked"), "rank": ("node is-blocked", "■ blocked"),
        "report": ("node is-done", "✓ 100 ms")}
    svg = last(loop()).svg()
    assert 'class="node end reached"' in svg and 'class="node start"' in svg
    assert ("node is-refused", "⊘ refused · ×2") in states_in(svg).values()


def test_edges() -> None:
    """An edge that was taken is bold, with a count from the second time on; when all is over the rest is faint."""
    svg = last(loop()).svg()
    edges = [(kind, re.sub("<[^>]*>", "", body)) for kind, body in
             re.findall(r'<g data-s="e\d+" class="edge (\w+ \w+)">(.*?)</g>', svg)]
    assert sorted(edges) == [
        ("on_error taken", "! on_error"), ("router left", "good"), ("router taken", "again ×2"),
        ("router taken", "fix ×3"), ("static left", ""), ("static taken", ""), ("static taken", ""),
        ("static taken", "")]
    assert "edge router open" in at(loop(), 0.5).svg()


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Graphviz there are the cards, the words, and a sentence that says why there is no picture."""
    def none(*args: Any) -> bytes:
        raise PictureError("no Graphviz here: <b>install</b> it")

    monkeypatch.setattr(scenes, "_graphviz", none)
    frame = at(fan(), 1.2)
    assert frame.svg() == ""
    for html in (frame.html(), frame.panel.still(frame)):
        assert "(no picture: no Graphviz here: &lt;b&gt;install&lt;/b&gt; it)" in html and "● running · 1.2 s" in html


def test_a_graphviz_that_draws_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Graphviz drew cannot be read: there are the cards, and a sentence."""
    for drawn in (b"no SVG", b"<svg viewBox='0 0 1 1'/>", b"<svg/>"):
        monkeypatch.setattr(scenes, "_graphviz", lambda *args, drawn=drawn: drawn)
        frame = at(fan(), 1.2)
        assert frame.svg() == "" and "(no picture: Graphviz drew what cannot be read: " in frame.html()


def test_too_large_for_a_picture() -> None:
    """A graph of more than 150 nodes has cards and no picture."""
    frame = last(make("START>" + ",".join(f"n{number}" for number in range(151))))
    assert frame.svg() == "" and "151 nodes are too many" in frame.html()


# ---- as HTML: escaped, self-contained, readable

NASTY = ['</script><script>alert(1)</script>', '<img src=x onerror=alert(2)>', '"\' onmouseover="alert(3)',
         "a & b &amp; c", "🚀 日本語", "\x00\x1b[31m", "]]>--><!--", "{braces} {0} %s", "\ud83d", "line\nbreak"]


def nasty() -> Graph:
    """A graph with markup in every name, label, key, value, error and question."""
    graph = Graph(NASTY[0])
    for name in NASTY:
        graph.add_node(name, takes(0.1, **{f"key {name}": name}))
        graph.add_edge(START, name)
    graph.add_node("fails <i>", takes(0.2, ValueError("<svg onload=alert(4)> & \"\n"))).add_edge(START, "fails <i>")
    graph.add_node(human_node("ask <i>", "<u>Really?</u>", "answer <i>")).add_edge(START, "ask <i>")
    graph.add_router(NASTY[0], lambda state: "<label> &", {"<label> &": END, "other \"": "ask <i>"})
    return graph


class Parts(HTMLParser):
    """The tags, the attributes and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.titles: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.titles += [value or "" for name, value in attrs if name in ("title", "alt", "aria-label")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def frames_of(graph: Graph) -> Iterator[Frame]:
    reel = Reel(graph.describe())
    for event in traced(graph).events:
        reel(event["kind"], event)
        yield reel.frame()


def test_nothing_that_comes_from_a_run_is_markup() -> None:
    """Whatever names, keys, values, labels, errors and questions hold, it is text; and it is there, whole."""
    said = ""
    for frame in frames_of(nasty()):
        page = Parts(frame.html())
        assert page.tags <= {"style", "div", "span", "svg", "g", "text", "tspan", "title", "path", "polygon",
                             "polyline", "ellipse"}
        assert not [name for name in page.attributes if name.startswith("on") or name in ("href", "src")]
        said += "".join(page.text + page.titles)
        assert "\x00" not in frame.html() and "\x1b" not in frame.html()
        ElementTree.fromstring(frame.svg())
        frame.html().encode()
    for text in [*NASTY[:5], "\\x00\\x1b[31m", *NASTY[6:8], "\\ud83d", "line\\nbreak", '<svg onload=alert(4)> & "\\n',
                 "<u>Really?</u>", "<label> &"]:
        assert text in said, text


def test_a_still_needs_no_trust() -> None:
    """What a notebook keeps has no script, style sheet, class or inline SVG: an image, plain styles, and the text."""
    graph = nasty()
    frame = reel_of(graph, traced(graph), kind="wave_end").frame()
    bundle = frame._repr_mimebundle_()
    assert bundle["text/plain"] == frame.text == repr(frame)
    page = Parts(bundle["text/html"])
    assert page.tags == {"div", "span", "img"} and page.attributes == {"style", "title", "alt", "src"}
    assert frame.text in page.titles
    assert "var(" not in bundle["text/html"] and "background:#FFFFFF" in bundle["text/html"]
    assert re.search(r'src="data:image/svg\+xml;base64,[\w+/=]+"', bundle["text/html"])


def test_a_still_keeps_the_widths_of_the_bars() -> None:
    """The styles that a frame gives an element of its own stay when classes become styles."""
    graph = fan()
    still = reel_of(graph, traced(graph), kind="wave_end").frame()._repr_mimebundle_()["text/html"]
    assert re.findall(r";width:(\d+)%\"", still) == ["100", "21", "79"]


def test_contrast() -> None:
    """Letters reach 4.5:1 on everything they stand on, lines that mean something 3:1, on light and on dark paper."""
    for colours in (LIGHT, DARK):
        fills = [colours["paper"], colours["band"], *(colours[f"{state}-fill"] for state in STATES)]
        assert min(contrast(colours["ink"], fill) for fill in fills) >= READABLE
        assert min(contrast(colours["faint"], colours[on]) for on in ("paper", "band")) >= READABLE
        assert min(contrast(colours[line], colours["paper"]) for line in colours
                   if line.endswith("-line") or line == "alarm") >= VISIBLE


def test_the_style_sheet_is_complete() -> None:
    """Every colour that a style names is there in both sets, and every class of a panel has a style."""
    assert LIGHT.keys() == DARK.keys()
    assert set(re.findall(r"var\(--([\w-]+)\)", css())) <= LIGHT.keys()
    frame = last(nasty())
    body = re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", frame.html(), flags=re.S)
    used = {name for names in re.findall(r'class="([^"]*)"', body) for name in names.split()}
    assert used - STYLES.keys() <= {"mg-panel", "is-idle"}


# ---- values


def test_a_value_is_cut_short_without_looking_at_all_of_it() -> None:
    """Of a long list a few items are asked for their text; a long string, a broken repr and a newline are one line."""
    asked = []

    class Item:
        def __repr__(self) -> str:
            asked.append(1)
            return "item"

    class Broken:
        def __repr__(self) -> str:
            raise ValueError

    assert short([Item() for _ in range(100_000)]).startswith("[item, item, ") and len(asked) < 20
    assert len(short("x" * 10_000_000)) < 200
    assert "Broken" in short(Broken()) and short("a\nb") == "'a\\nb'"


def test_a_trace_that_holds_no_values() -> None:
    """Traces that tell the keys a node wrote and not what it wrote say so."""
    graph = make("START>a a>END")
    reel = Reel(graph.describe())
    for event in traced(graph).events:
        reel(event["kind"], {key: value for key, value in event.items() if key not in ("writes", "state", "graph")})
    assert reel.frame().board["a"].text == "(not recorded)"


def test_frames_do_not_change_afterwards() -> None:
    """A frame is what was known then; what the run does later is in later frames."""
    graph = fan()
    trace = traced(graph)
    reel = Reel(graph.describe())
    frames, texts = [], []
    for event in trace.events:
        reel(event["kind"], event)
        frames.append(reel.frame())
        texts.append(frames[-1].text)
    assert [frame.text for frame in frames] == texts


def test_a_reel_is_an_observer() -> None:
    """A run can be watched by a reel directly, and the state it was given is on the blackboard of the first frame."""
    graph = make("START>a a>END")
    reel = Reel(graph.describe())
    state: GraphState = run_graph(graph, {"n": 1}, reel)
    assert {key: value.text for key, value in reel.frame().board.items()} == {"n": "1", "a": "True"}
    assert state.status == reel.frame().status == "done"
