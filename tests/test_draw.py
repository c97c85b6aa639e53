"""Pictures of graphs: what is drawn, what a run adds, what text of any kind does to it, and what a notebook shows."""

import re
import shutil
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from html import unescape
from html.parser import HTMLParser

import gallery
import pytest
from helpers import make
from hypothesis import given, settings
from hypothesis import strategies as st
from test_conformance import CASES, build

from minigraph import END, START, Graph, GraphState, run_graph
from minigraph import draw as draw_module
from minigraph.clock import sleep, virtual_time
from minigraph.draw import PictureError, draw, quoted, sheet, shown, spelled, to_dot, to_mermaid, to_text, wrapped
from minigraph.gates import human_node
from minigraph.nested import graph_node, map_node
from minigraph.palette import INSIDE, LETTERS, READABLE, contrast
from minigraph.palette import KINDS as FILLS
from minigraph.resume import resume_graph
from minigraph.shape import KINDS
from minigraph.sheet import ROOM
from minigraph.trace import Trace

DONE = [case for case in CASES if "raises" not in case["expect"]]

try:
    import graphviz
except ImportError:
    graphviz = None
needs_graphviz = pytest.mark.skipif(
    graphviz is None or not (shutil.which("dot") or shutil.which("graphviz-pure", path=sysconfig.get_path("scripts"))),
    reason="no Graphviz here")


# ---- graphs


def gather():
    scans = ["scan_github", "scan_web", "scan_calendar", "scan_memory"]
    graph = Graph("gather")
    for scan in scans:
        graph.add_node(scan, lambda state: {}, kind="tool").add_edge(START, scan)
    graph.add_node("synthesize", lambda state: {}, kind="llm").add_node("draft_digest", lambda state: {})
    for scan in scans:
        graph.add_edge(scan, "synthesize")
    graph.add_router("synthesize", lambda state: "digest", {"digest": "draft_digest", "nothing": END})
    return graph.add_edge("draft_digest", END)


def content(*marks):
    """Draft, two checks, and back again: `marks` are what the router finds, one after another."""
    found = iter(marks)
    graph = Graph("content")
    graph.add_node("draft", takes(2), kind="agent")
    graph.add_node("tone", takes(0.8), kind="llm").add_node("length", takes(0.004), kind="tool")
    graph.add_node("aggregate", takes(0)).add_node("revise", takes(1.4), kind="llm", max_visits=2, on_error="person")
    graph.add_node("save", takes(0.01)).add_node("person", takes(0), kind="human")
    graph.add_edge(START, "draft").add_edge("draft", "tone").add_edge("draft", "length")
    graph.add_edge("tone", "aggregate").add_edge("length", "aggregate")
    graph.add_router("aggregate", lambda state: next(found), {"good": "save", "fine": "save", "fix": "revise"})
    graph.add_router("revise", lambda state: "again", {"again": ["tone", "length"]})
    return graph.add_edge("save", END).add_edge("person", END)


def takes(seconds):
    def work(state):
        sleep(seconds)
    return work


def fails(text="no answer"):
    def work(state):
        raise TimeoutError(text)
    return work


def run(graph, **kwargs):
    """(the final state, the trace), in virtual time."""
    trace = Trace()
    with virtual_time():
        return run_graph(graph, {}, trace, **kwargs), trace


def report():
    """Research, which is a graph of its own with another one and a gate in it; then a map; and back again, once."""
    library = Graph("library").add_node("look up", takes(0.1), kind="tool").add_node("rank", gives(0.2, best="Ada"))
    library.add_edge(START, "look up").add_edge("look up", "rank").add_edge("rank", END)
    research = Graph("research").add_node("plan", takes(0.2), kind="llm")
    research.add_node(graph_node("search", library, [], ["best"])).add_node("ask", fails(), on_error="note")
    research.add_node("note", takes(0)).add_node(human_node("enough", "Is {best} enough?", "ok"))
    research.add_edge(START, "plan").add_edge("plan", "search").add_edge("plan", "ask")
    research.add_edge("search", "enough").add_edge("enough", END).add_edge("note", END)
    graph = Graph("report").add_node("collect", gives(0.3, pages=[1, 2, 3]), kind="tool")
    graph.add_node(graph_node("research", research, [], ["ok"], on_error="sorry", max_visits=3))
    graph.add_node("check", takes(0.1)).add_node("sorry", takes(0)).add_node(map_node("each", slowly, "pages", "read"))
    graph.add_edge(START, "collect").add_edge("collect", "research").add_edge("research", "check")
    graph.add_router("check", lambda state: {"no": "again"}.get(state["ok"], "fine"),
                     {"fine": "each", "again": "research"})
    return graph.add_edge("each", END).add_edge("sorry", END)


def gives(seconds, **writes):
    def work(state):
        sleep(seconds)
        return writes
    return work


def slowly(page):
    sleep(page / 10)
    return page


def without_records(state):
    """The state, as it is where no journal came with it."""
    bare = GraphState(dict(state))
    bare.status, bare.visits = state.status, state.visits
    return bare


# ---- reading DOT back


def read_dot(dot):
    """({name: attributes}, [(src, dst, attributes)]) of a DOT text, the labels as the lines a reader sees."""
    top = read_boxes(dot)
    return top["nodes"], top["edges"]


def read_boxes(dot):
    """{"nodes": {name: attributes}, "edges": [(src, dst, attributes)], "boxes": {name: the same of what is inside}}.

    An edge that stops at the border of a box leads to the box.
    """
    boxes = [{"nodes": {}, "edges": [], "boxes": {}}]
    names = {}  # id of a node or a box -> its name
    statement = re.compile(r" *(?:(subgraph cluster_n\d+) \{|(graph|node|edge|n\d+(?: -> n\d+)?) \[(.*)\];|(\}))")
    for line in dot.splitlines():
        found = statement.fullmatch(line)
        opens, subject, text, closes = found.groups() if found else (None,) * 4
        if opens:
            boxes.append({"nodes": {}, "edges": [], "boxes": {}, "id": opens.removeprefix("subgraph ")})
        elif closes and len(boxes) > 1:
            inner = boxes.pop()
            boxes[-1]["boxes"][names[inner["id"]]] = inner
        elif subject == "graph" and len(boxes) > 1:
            names[boxes[-1]["id"]] = attributes_of(text)["lines"][0]
            boxes[-2]["nodes"][names[boxes[-1]["id"]]] = attributes_of(text)
        elif subject and " -> " in subject:
            attributes, (src, dst) = attributes_of(text), subject.split(" -> ")
            src, dst = attributes.get("ltail", src), attributes.get("lhead", dst)
            boxes[-1]["edges"].append((names[src], names[dst], attributes))
        elif subject and subject.startswith("n") and subject != "node":
            names[subject] = attributes_of(text)["lines"][0]
            boxes[-1]["nodes"][names[subject]] = attributes_of(text)
    assert len(boxes) == 1
    return boxes[0]


def attributes_of(text):
    """The attributes of a statement, and under "lines" those of its label."""
    attributes = dict(re.findall(r'(\w+)="([^"]*)"', text.split(">, ")[-1]))
    label = re.search(r"label=<(.*)>, (?:width|shape|color|style)=", text)
    attributes["lines"] = [unescape(re.sub("<[^>]*>", "", line)).replace("\\\\", "\\")
                           for line in label[1].split("<BR/>")] if label else []
    return attributes


# ---- text


def test_the_text_twin_lists_the_edges_a_source_at_a_time():
    """Kinds stand in brackets, conditional edges carry their label, and every line begins with its source."""
    assert to_text(gather()) == """\
gather, a graph of 6 nodes
  START -> scan_github, scan_web, scan_calendar, scan_memory
  scan_github (tool) -> synthesize
  scan_web (tool) -> synthesize
  scan_calendar (tool) -> synthesize
  scan_memory (tool) -> synthesize
  synthesize (llm) --digest--> draft_digest
    synthesize --nothing--> END
  draft_digest -> END"""


def test_the_text_twin_says_what_points_back_and_what_handles_failure():
    """Backward edges say (back); labels that share a target share a line, targets that share a label too."""
    assert to_text(content()) == """\
content, a graph of 7 nodes
  START -> draft
  draft (agent) -> tone, length
  tone (llm) -> aggregate
  length (tool) -> aggregate
  aggregate --good / fine--> save
    aggregate --fix--> revise
  revise (llm, at most 2 visits) --again--> tone, length (back)
    revise --on_error--> person
  save -> END
  person (human) -> END"""


def test_the_text_twin_of_a_trace_says_what_became_of_every_node_and_way():
    """What ran, how often and how long, which ways were taken, what failed, what was skipped."""
    assert to_text(content("fix", "fix", "fix").describe(), run(content("fix", "fix", "fix"))[1]) == """\
content, a graph of 7 nodes; the run: done, 7.200 s
  START -> draft
  draft (agent, ran, 2.000 s) -> tone, length
  tone (llm, ran 3 times, 2.400 s in all) -> aggregate
  length (tool, ran 3 times, 12 ms in all) -> aggregate
  aggregate (ran 3 times) --good / fine--> save (not taken)
    aggregate --fix--> revise (taken 3 times)
  revise (llm, at most 2 visits, ran 2 times, 2.800 s in all, failed: max_visits=2 reached) \
--again--> tone, length (back, taken 2 times)
    revise --on_error--> person (taken)
  save (skipped) -> END
  person (human, ran) -> END
  END (reached)"""


def test_the_text_twin_of_a_final_state_without_records_says_what_follows_from_it():
    """Such a state has visits and errors; a way is called taken or not taken only where that follows."""
    graph = content("fix", "good")
    assert to_text(graph, without_records(run(graph)[0])) == """\
content, a graph of 7 nodes; the run: done
  START -> draft
  draft (agent, ran) -> tone, length
  tone (llm, ran 2 times) -> aggregate
  length (tool, ran 2 times) -> aggregate
  aggregate (ran 2 times) --good / fine--> save (taken)
    aggregate --fix--> revise (taken)
  revise (llm, at most 2 visits, ran) --again--> tone, length (back, taken)
    revise --on_error--> person (not taken)
  save (ran) -> END
  person (human, skipped) -> END
  END (reached)"""


def test_a_final_state_without_its_records_leaves_open_what_it_cannot_tell():
    """The router may have named END beside draft_digest, or not: the records tell, visits alone do not."""
    graph = gather()
    state, trace = run(graph)
    assert "synthesize --nothing--> END\n" in to_text(graph, without_records(state))
    assert "synthesize (llm, ran) --digest--> draft_digest (taken)\n" in to_text(graph, without_records(state))
    for known in (state, trace):
        assert "synthesize --nothing--> END (not taken)\n" in to_text(graph, known)


def test_two_routers_that_may_both_have_sent_a_ticket_are_left_open():
    """c and d ran, and either router may have named either: no way is called taken, none not taken."""
    choose = {"one": "c", "two": "d"}
    graph = make("START>a,b", routers={"a": (lambda state: "one", choose), "b": (lambda state: "two", choose)})
    state, trace = run(graph)
    assert "taken" not in to_text(graph, without_records(state))
    for known in (state, trace):
        assert "a (ran) --one--> c (taken)\n    a --two--> d (not taken)\n" in to_text(graph, known)


@pytest.mark.parametrize("case", DONE, ids=lambda case: case["id"])
def test_a_final_state_tells_the_same_as_a_trace(case):
    """For every conformance case: nodes, visits, failures and ways taken; blocked, which no record says, aside."""
    state, trace = run(build(case, seed=1), max_steps=case.get("max_steps"))
    told, heard = sheet(build(case), state), sheet(build(case), trace)
    assert told.edges == heard.edges
    for one, other in zip(told.nodes, heard.nodes, strict=True):
        assert (one.name, one.visits, one.alarm) == (other.name, other.visits, other.alarm)
        assert one.state == other.state or (one.state, other.state) == ("skipped", "blocked")


def test_nodes_below_a_failure_are_blocked_and_the_rest_is_skipped():
    """blocked: a failed ticket reached it; skipped: no ticket did; an error is quoted whole."""
    graph = make("START>a,b a>c c>END", a=fails("no\nanswer"),
                 routers={"b": (lambda state: "stop", {"stop": END, "on": "d"})})
    assert to_text(graph, run(graph)[1]) == """\
test, a graph of 4 nodes; the run: failed, 0 ms
  START -> a, b
  a (ran, failed: TimeoutError: no\\nanswer) -> c
  b (ran) --stop--> END (taken)
    b --on--> d (not taken)
  c (blocked) -> END
  d (skipped) -> nothing
  END (reached)"""


def test_a_router_that_fails_fails_its_node():
    """The node ran, its router did not name a label: the mark is the same as for any failure."""
    graph = Graph("g").add_node("a", takes(0), on_error="b").add_node("b", takes(0)).add_node("c", takes(0))
    graph.add_edge(START, "a").add_router("a", lambda state: "nowhere", {"on": "c"})
    text = to_text(graph, run(graph)[1])
    assert re.search(r"a \(ran, failed: .*nowhere.*\) --on--> c \(not taken\)\n", text)
    assert "a --on_error--> b (taken)\n" in text


def test_a_run_that_is_under_way_is_drawn_as_far_as_it_came():
    """A trace without an end: what has started and not ended is running, what has not started has not run yet."""
    graph = make("START>a a>b b>END")
    trace = run(graph)[1]
    begun = [i for i, event in enumerate(trace.events) if event["kind"] == "node_start"]
    assert to_text(graph, Trace(trace.events[:begun[1] + 1])) == """\
test, a graph of 2 nodes; the run: not over
  START -> a
  a (ran) -> b
  b (running) -> END
  END (not reached)"""
    assert "  b (not run) -> END" in to_text(graph, Trace(trace.events[:begun[0] + 1]))
    stopped = {"kind": "graph_end", "t": 0, "workflow": "test", "status": "interrupted", "ms": 0}
    assert "  b (interrupted) -> END" in to_text(graph, Trace([*trace.events[:begun[1] + 1], stopped]))


def test_a_run_that_max_steps_ended_did_not_skip_anything():
    """Nobody decided against the nodes that were still to run: they are `not run`."""
    graph = make("START>a a>b b>END")
    state, trace = run(graph, max_steps=1)
    for known in (state, trace):
        assert "  b (not run) -> END" in to_text(graph, known)
        assert to_text(graph, known).startswith("test, a graph of 2 nodes; the run: max_steps")


def test_a_node_that_waits_for_an_answer_shows_its_question():
    """A gate that waits is neither skipped nor failed."""
    graph = make("START>ask ask>END", ask={"kind": "human"})
    events = [{"kind": "graph_start", "t": 0, "workflow": "test", "nodes": ["ask"]},
              {"kind": "pause", "t": 0, "workflow": "test", "node": "ask", "question": "Send it?"},
              {"kind": "graph_end", "t": 0, "workflow": "test", "status": "paused", "ms": 0}]
    assert "  ask (human, waiting: Send it?) -> END" in to_text(graph, Trace(events))
    nodes, _ = read_dot(to_dot(graph, Trace(events)))
    assert nodes["ask"]["lines"] == ["ask", "human", "? waiting: Send it?"]
    assert (nodes["ask"]["peripheries"], nodes["ask"]["penwidth"]) == ("2", "3")  # a double line, and a bold one
    assert "peripheries" not in read_dot(to_dot(graph))[0]["ask"]


def test_a_nested_graph_says_nothing_about_the_graph_around_it():
    """Events of an inner run carry the outer node's name; they are not the outer run's end, nor its routes."""
    graph = make("START>a b>END", routers={"a": (lambda state: "on", {"on": "b", "x": END})})
    trace = run(graph)[1]
    inner = [{"kind": "route", "t": 0, "workflow": "inner", "router": "a", "label": "x", "node": "a"},
             {"kind": "graph_end", "t": 0, "workflow": "inner", "node": "a", "status": "failed", "ms": 5000.0},
             {"kind": "node_start", "t": 0, "workflow": "inner", "node": "a/b", "visit": 1}]
    assert to_text(graph, Trace([*trace.events, *inner])) == to_text(graph, trace)


def test_a_node_that_is_refused_twice_goes_to_its_handler_once():
    """As the engine does it: the handler leads back, and the second refusal goes nowhere."""
    routers = {"a": (lambda state: "on", {"on": "b"}), "b": (lambda state: "back", {"back": "a", "out": END})}
    graph = make("START>a", a={"max_visits": 1, "on_error": "b"}, routers=routers)
    state, trace = run(graph)
    assert [event["kind"] for event in trace].count("refused") == 2 and state.visits == {"a": 1, "b": 2}
    assert "a --on_error--> b (taken)\n" in to_text(graph, trace)


# ---- DOT


def as_drawn(box):
    """What a picture says of a graph, read back from its DOT: see as_planned."""
    shapes = {(a["shape"], a["style"]) for name, a in box["nodes"].items() if name in (START, END)}
    assert shapes <= {("oval", "filled")}
    caps = {name: [line for line in a["lines"][1:] if "visit" in line] for name, a in box["nodes"].items()}
    forward, back, static, labels, handlers = set(), set(), set(), {}, {}
    for src, dst, a in box["edges"]:
        words = " ".join(a["lines"])
        (back if a.get("constraint") == "false" else forward).add((src, dst))
        if a["style"] == "solid":
            static.add((src, dst))
        if "on_error" in words:
            handlers[src] = dst
        elif a["style"] == "dashed":
            for label in words.split(" / "):
                labels.setdefault((src, label), set()).add(dst)
    return {"nodes": [name for name in box["nodes"] if name not in (START, END)], "caps": {
        name: int(words[0].split()[-2]) for name, words in caps.items() if words},
        "forward": {(s, d) for s, d in forward if d != END}, "back": back, "static": static, "labels": labels,
        "handlers": handlers}


def as_planned(graph):
    """What the engine runs by, in the same words: the plan, and the graph that it was made of."""
    plan = graph.plan()
    forward = {(src, dst) for src, dsts in plan.outs.items() for dst in dsts}
    assert {(src, dst) for src, dst in forward if src != START} == {
        (src, dst) for dst, srcs in plan.ins.items() for src in srcs}
    return {"nodes": list(plan.nodes), "caps": {n.name: n.max_visits for n in plan.nodes.values() if n.max_visits},
            "forward": forward, "back": plan.back,
            "static": {(src, dst) for src, dsts in graph.edges.items() for dst in dsts},
            "labels": {(src, label): set(dsts) for src, (_, labelled) in plan.routers.items()
                       for label, dsts in labelled.items()},
            "handlers": {n.name: n.on_error for n in plan.nodes.values() if n.on_error}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_picture_is_the_plan_that_runs(case):
    """Same-picture proof, for every conformance case: nodes, caps, edges forward and back, routers, handlers."""
    graph = build(case)
    assert as_drawn(read_boxes(to_dot(graph))) == as_planned(graph)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_picture_of_a_graph_inside_a_node_is_its_plan(case):
    """The same in a box, and in a box within: of the outer graphs and of the inner one."""
    inner = build(case)
    middle = make("START>first first>inner inner>END", inner={"fn": graph_node("inner", inner, [], []).fn,
                                                                "kind": "graph"})
    outer = make("START>middle middle>END", middle={"fn": graph_node("middle", middle, [], []).fn, "kind": "graph"})
    read = read_boxes(to_dot(outer, nested=True))
    for box, graph in ((read, outer), (read["boxes"]["middle"], middle),
                       (read["boxes"]["middle"]["boxes"]["inner"], inner)):
        assert as_drawn(box) == as_planned(graph)


@pytest.mark.parametrize("schedule", ["waves", "ready"])
@pytest.mark.parametrize("case", DONE, ids=lambda case: case["id"])
def test_every_way_that_a_run_takes_is_drawn(case, schedule):
    """Routes, handlers and static edges taken, as the events tell, are edges of the picture, and no others are bold."""
    _, trace = run(build(case, seed=2), max_steps=case.get("max_steps"), schedule=schedule)
    graph = build(case)
    ended = {event["node"] for event in trace.of("node_end") if not event["error"]}
    failed = {event["node"] for event in trace.of("node_end", "refused") if event.get("error") or event.get("why")}
    failed |= {event["router"] for event in trace.of("route") if event["error"]}
    ways = {(START, dst) for dst in graph.edges[START]}
    ways |= {(src, dst) for src in ended for dst in graph.edges[src]}
    ways |= {(event["router"], dst) for event in trace.of("route") for dst in event["targets"]}
    ways |= {(name, graph.nodes[name].on_error) for name in failed if graph.nodes[name].on_error}
    _, edges = read_dot(to_dot(graph, trace))
    assert ways <= {(src, dst) for src, dst, _ in edges}
    bold = {(src, dst) for src, dst, a in edges if a["penwidth"] == "2.6"}
    assert bold == ways


def test_edges_differ_by_line_label_and_arrow():
    """Static edges are solid; conditional ones dashed with their label; on_error has a sign and a hollow arrow too."""
    _, edges = read_dot(to_dot(content()))
    found = {(src, dst): a for src, dst, a in edges}
    assert (found["draft", "tone"]["style"], found["draft", "tone"]["lines"]) == ("solid", [])
    assert (found["aggregate", "save"]["style"], found["aggregate", "save"]["lines"]) == ("dashed", ["good / fine"])
    handler = found["revise", "person"]
    assert (handler["style"], handler["lines"], handler["arrowhead"]) == ("dashed", ["! on_error"], "onormal")


def test_an_on_error_that_leads_where_the_node_leads_anyway_shares_its_arrow():
    """Solid, for it always fires, with the sign and the words; taken if either was; in the text they stay two."""
    graph = make("START>a,b a>c b>c c>END", a={"fn": fails(), "on_error": "c"},
                 b={"fn": takes(0), "on_error": "c"})
    for known in (None, *run(graph)):
        _, edges = read_dot(to_dot(graph, known))
        shared = [(src, dst, a["lines"], a["style"]) for src, dst, a in edges if dst == "c"]
        assert shared == [("a", "c", ["! also on_error"], "solid"), ("b", "c", ["! also on_error"], "solid")]
        assert len({a["penwidth"] for *_, a in edges}) == 1  # all taken, or nothing known
    assert to_mermaid(graph).count('-->|"! also on_error"|') == 2
    assert "(ran, failed: TimeoutError: no answer) -> c\n    a --on_error--> c (taken)" in to_text(graph, run(graph)[0])


def test_a_router_label_called_on_error_is_a_label():
    """Only the edge to a node's on_error is marked as one, even where a label of that name leads to the same node."""
    graph = make("START>a", routers={"a": (lambda state: "fine", {"on_error": "b", "fine": END})})
    assert [edge.kind for edge in sheet(graph).edges] == ["static", "router", "router"]
    assert [a["lines"] for *_, a in read_dot(to_dot(graph))[1]] == [[], ["on_error"], ["fine"]]
    both = make("START>a", a={"on_error": "b"}, routers={"a": (lambda state: "on_error", {"on_error": "b"})})
    assert [(edge.kind, edge.taken) for edge in sheet(both, run(both)[1]).edges] == [
        ("static", True), ("router", True), ("on_error", False)]


def test_backward_edges_do_not_turn_the_picture_upside_down():
    """In DOT they keep their direction and do not rank; in the picture they are turned round, arrow at the tail."""
    dot, upright = to_dot(content()), draw(content())._upright
    back = [(src, dst) for src, dst, a in read_dot(dot)[1] if a.get("constraint") == "false"]
    assert back == [("revise", "tone"), ("revise", "length")]
    turned = [(src, dst) for src, dst, a in read_dot(upright)[1] if a.get("dir") == "back"]
    assert turned == [("tone", "revise"), ("length", "revise")]
    assert "constraint" not in upright and ', dir="' not in dot
    again = make("START>a a>b b>END", a={"max_visits": 2}, b={"on_error": "a"})
    ends = [(a.get("arrowhead"), a.get("arrowtail")) for text in (to_dot(again), draw(again)._upright)
            for src, dst, a in read_dot(text)[1] if a["lines"] == ["! on_error"]]
    assert ends == [("onormal", None), (None, "onormal")]


def test_kinds_are_told_apart_by_shape():
    """Seven kinds, seven shapes, and START and END unlike them all and unlike one another."""
    graph = Graph("kinds")
    for kind in KINDS:
        graph.add_node(f"a_{kind}", takes(0), kind=kind).add_edge(START, f"a_{kind}").add_edge(f"a_{kind}", END)
    looks = {name: (a["shape"], a["style"], a.get("peripheries")) for name, a in read_dot(to_dot(graph))[0].items()}
    assert len(looks) == len(KINDS) + 2
    assert len({*looks.values()} - {looks[START]}) == len(KINDS) + 1
    assert read_dot(to_dot(graph))[0][START]["fillcolor"] != read_dot(to_dot(graph))[0][END]["fillcolor"]


def test_a_run_is_drawn_in_lines_and_words_not_in_colour_alone():
    """Ran: bold. Skipped: dashed, and says so. Failed: boldest, a sign and words. Ways: bold, or thin, with counts."""
    nodes, edges = read_dot(to_dot(content("fix", "fix", "fix"), run(content("fix", "fix", "fix"))[1]))
    assert nodes["tone"]["lines"] == ["tone", "llm · ×3 · 2.400 s"]
    assert nodes["revise"]["lines"] == ["revise", "llm · ×2 · 2.800 s", "! failed: max_visits=2 reached"]
    assert nodes["save"]["lines"] == ["save", "skipped"]
    assert [nodes[n]["style"] for n in ("tone", "revise", "save")] == ["filled,rounded", "filled,rounded",
                                                                       "filled,dashed"]
    widths = [float(nodes[n]["penwidth"]) for n in ("save", "tone", "revise")]
    assert widths == sorted(set(widths))
    found = {(src, dst): a for src, dst, a in edges}
    assert found["aggregate", "revise"]["lines"] == ["fix ×3"]
    assert found["revise", "tone"]["lines"] == ["again ×2"]
    assert float(found["aggregate", "save"]["penwidth"]) < float(found["aggregate", "revise"]["penwidth"])


def test_a_long_error_is_cut_in_the_picture_and_whole_in_the_text():
    """The picture keeps its shape; nothing is lost."""
    graph = make("START>a a>END", a=fails("word " * 40))
    picture = draw(graph, run(graph)[1])
    assert "word " * 39 + "word" in picture.text
    assert picture.dot.count("word") < 20 and "…" in picture.dot


def test_identifiers_are_never_the_users_text():
    """n0, n1, ...: names and labels stand in labels alone, so that no keyword or quote can end anything."""
    graph = make("START>end end>graph graph>n0 n0>END")
    assert re.findall(r"^  (\w+)(?: -> (\w+))? \[", to_dot(graph), re.M) == [
        ("graph", ""), ("graph", ""), ("node", ""), ("edge", ""),
        ("n0", ""), ("n1", ""), ("n2", ""), ("n3", ""), ("n4", ""),
        ("n0", "n1"), ("n1", "n2"), ("n2", "n3"), ("n3", "n4")]
    nodes, edges = read_dot(to_dot(graph))
    assert list(nodes) == [START, "end", "graph", "n0", END]
    assert [(src, dst) for src, dst, _ in edges] == [(START, "end"), ("end", "graph"), ("graph", "n0"), ("n0", END)]


def grounds(dot):
    """(letters, what they stand on) of every text in a DOT."""
    inside, found = ["#FFFFFF"], []
    for line in dot.splitlines():
        fill = re.search(r'fillcolor="(#\w{6})"', line)
        if "subgraph" in line:
            inside.append("")
        elif line.strip() == "}":
            inside.pop()
        elif fill and inside[-1] == "":
            inside[-1] = fill[1]
        ground = re.search(r'BGCOLOR="(#\w{6})"', line) or fill
        found += [(letters, ground[1] if ground else inside[-1])
                  for letters in re.findall(r'<FONT COLOR="(#\w{6})">', line)]
    return found


def test_all_letters_have_a_contrast_of_at_least_four_and_a_half():
    """Every text is drawn in a pair that the palette vouches for; and colours have six digits."""
    runs = [(content(), None), *((content("fix", "fix", "fix"), known) for known in run(content("fix", "fix", "fix"))),
            (report(), None), *((report(), known) for known in run(report())), (crowd(), None)]
    pairs = set()
    for graph, known in runs:
        dot = to_dot(graph, known, nested=True)
        assert {len(colour) for colour in re.findall(r"#\w+", dot)} == {7}
        pairs |= set(grounds(dot))
    assert len(pairs) >= 9
    for letters, ground in pairs:
        assert ground in LETTERS[letters] and contrast(letters, ground) >= READABLE, (letters, ground)


# ---- which way it runs, and how close


def crowd(width=8):
    """Four rows, each node before every node of the next: more lines than can pass beside the labels."""
    rows = [[f"{row}{number}" for number in range(width)] for row in "abcd"]
    graph = Graph("crowd")
    for name in sum(rows, []):
        graph.add_node(name, takes(0))
    for name in rows[0]:
        graph.add_edge(START, name)
    for above, below in zip(rows, rows[1:], strict=False):
        for name in above:
            graph.add_router(name, lambda state: "go", {"go": below, "stop": END})
    return graph


def settings_of(graph):
    """The attributes that DOT sets for the whole graph."""
    return dict(re.findall(r'(\w+)="([^"]*)"', " ".join(re.findall(r"^  graph .*$", to_dot(graph), re.M))))


def test_a_picture_runs_down_and_one_that_would_be_too_wide_to_the_right():
    """Forty nodes side by side are a list to be read down; forty in a row, or eight wide and four deep, run down."""
    wide = make("START>" + ",".join(f"scan_source_{i}" for i in range(39)) + " scan_source_0>join join>END")
    deep = make("START>n0 " + " ".join(f"n{i}>n{i + 1}" for i in range(39)))
    for graph, rankdir in ((gather(), "TB"), (wide, "LR"), (deep, "TB"), (crowd(8), "TB"), (crowd(18), "LR")):
        assert settings_of(graph)["rankdir"] == rankdir
        assert to_mermaid(graph).startswith("flowchart LR" if rankdir == "LR" else "flowchart TD")


def test_in_a_deep_picture_ranks_stand_closer():
    """Up to twelve ranks, START and END counted, they have room; with a box, those inside it count."""
    chains = {length: make("START>n0 " + " ".join(f"n{i}>n{i + 1}" for i in range(length - 1)) + f" n{length - 1}>END")
              for length in (10, 11)}
    assert [settings_of(graph)["ranksep"] for graph in chains.values()] == ["0.45", "0.25"]
    inner = make("START>a a>b b>c c>END")
    boxed = make("START>a a>b b>c c>d d>e e>f f>END", a={"fn": graph_node("a", inner, [], []).fn, "kind": "graph"})
    assert settings_of(boxed)["ranksep"] == "0.45"
    boxed.add_node("g", takes(0)).add_edge("f", "g").add_edge("g", END)
    assert settings_of(boxed)["ranksep"] == "0.25"


def test_in_a_crowd_labels_stand_on_slips_of_paper():
    """Lines stand closer, and those that pass a label go under it; in an ordinary picture nothing is covered."""
    assert 'BGCOLOR="#FFFFFF"' in to_dot(crowd())
    assert (settings_of(crowd())["nodesep"], settings_of(gather())["nodesep"]) == ("0.2", "0.3")
    assert "BGCOLOR" not in to_dot(content()) + to_dot(gather())
    box = Graph("g").add_node(graph_node("box", crowd(), [], [])).add_edge(START, "box")
    dot = to_dot(box, nested=True)
    fill = re.search(r'graph \[.*fillcolor="(#\w+)"', dot)[1]
    assert fill != "#FFFFFF" and set(re.findall(r'BGCOLOR="(#\w+)"', dot)) == {fill}  # in a box it is the box's colour


@needs_graphviz
@pytest.mark.parametrize("graph", [crowd(6), crowd(10), make("START>n0 " + " ".join(
    f"n{i}>n{i + 1},n{min(i + 7, 40)}" for i in range(39)) + " n39>n40 n40>END")], ids=["crowd", "wide", "deep"])
def test_a_large_picture_is_readable(graph):
    """Letters keep their size, and no node lies over another, whatever the picture's size."""
    root = ElementTree.fromstring(draw(graph).svg())
    sizes = {float(element.attrib["font-size"]) for element in root.iter() if element.tag.endswith("}text")}
    assert min(sizes) >= 10
    boxes = []
    for node in (element for element in root.iter() if element.attrib.get("class") == "node"):
        shape = next(element for element in node if element.tag.endswith(("}polygon", "}ellipse")))
        if "points" in shape.attrib:
            points = [tuple(map(float, point.split(","))) for point in shape.attrib["points"].split()]
            boxes.append((*map(min, zip(*points, strict=True)), *map(max, zip(*points, strict=True))))
    assert len(boxes) == len(graph.nodes)
    for i, one in enumerate(boxes):
        for other in boxes[i + 1:]:
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


# ---- graphs inside nodes


def test_the_text_twin_tells_what_is_inside_after_the_whole():
    """The graph first; then, indented, a part for each graph inside it, named by its node and by itself."""
    assert to_text(report()) == """\
report, a graph of 5 nodes
  START -> collect
  collect (tool) -> research
  research (graph, at most 3 visits) -> check
    research --on_error--> sorry
  check --fine--> each
    check --again--> research (back)
  sorry -> END
  each (map) -> END
  inside research: research, a graph of 5 nodes
    START -> plan
    plan (llm) -> search, ask
    search (graph) -> enough
    ask --on_error--> note
    note -> END
    enough (human) -> END
    inside search: library, a graph of 2 nodes
      START -> look up
      look up (tool) -> rank
      rank -> END"""


def test_a_closed_node_says_what_is_inside():
    """In words, and by its double line; nothing of the graph inside is drawn."""
    closed = to_text(report(), nested=False)
    assert "  research (graph, 5 nodes inside, at most 3 visits) -> check\n" in closed and "plan" not in closed
    read = read_boxes(to_dot(report(), nested=False))
    assert read["boxes"] == {} and read["nodes"]["research"]["peripheries"] == "2"
    assert read["nodes"]["research"]["lines"] == ["research", "graph · 5 nodes inside", "· at most 3 visits"]
    assert "subgraph" not in to_mermaid(report(), nested=False)


def inside_of(*sizes):
    """A graph of one node that runs a graph of so many nodes, the last of which runs the next, and so on."""
    graph = make("START>n0 n0>END")
    for size in reversed(sizes):
        names = [f"n{i}" for i in range(size)]
        graph = make(f"START>{','.join(names)}", **{names[-1]: {
            "fn": graph_node(names[-1], graph, [], []).fn, "kind": "graph"}})
    return graph


@pytest.mark.parametrize("sizes, boxes", [((24,), 1), ((25,), 0), ((10, 14), 2), ((10, 15), 1), ((30,), 0),
                                          ((1, 30), 0), ((1, 2, 3), 3)])
def test_unasked_graphs_are_opened_while_there_is_room(sizes, boxes):
    """Level by level, as long as there are no more than 25 nodes in all; START and END are not counted."""
    assert ROOM == 25
    graph = inside_of(*sizes)
    assert to_dot(graph).count("subgraph") == to_mermaid(graph).count("subgraph") == boxes
    assert to_text(graph).count("inside n") == boxes
    assert to_dot(graph, nested=True).count("subgraph") == len(sizes)
    assert to_dot(graph, nested=False).count("subgraph") == 0


def paused():
    """(graph, its final state, its trace): the gate inside waits, and so does all that depends on it."""
    graph = report()
    return graph, *run(graph)


def resumed(answer):
    """The same, gone on with after the answer; the trace tells of that part alone."""
    graph, before, _ = paused()
    trace = Trace()
    with virtual_time():
        state = resume_graph(graph, before.journal, {"research/enough": answer}, observer=trace)
    return graph, state, trace


def test_a_run_is_told_inside_and_outside():
    """Inner nodes are marked by the events of the inner run; the outer node that waits names the gate."""
    graph, state, trace = paused()
    text = to_text(graph, trace)
    assert text == """\
report, a graph of 5 nodes; the run: paused, 800 ms
  START -> collect
  collect (tool, ran, 300 ms) -> research
  research (graph, at most 3 visits, waiting: enough) -> check
    research --on_error--> sorry (not taken)
  check (not run) --fine--> each (not taken)
    check --again--> research (back, not taken)
  sorry (not run) -> END
  each (map, not run) -> END
  END (not reached)
  inside research: research, a graph of 5 nodes
    START -> plan
    plan (llm, ran, 200 ms) -> search, ask
    search (graph, ran, 300 ms) -> enough
    ask (ran, failed: TimeoutError: no answer) --on_error--> note (taken)
    note (ran) -> END
    enough (human, waiting: Is Ada enough?) -> END
    END (reached)
    inside search: library, a graph of 2 nodes
      START -> look up
      look up (tool, ran, 100 ms) -> rank
      rank (ran, 200 ms) -> END
      END (reached)"""
    assert to_text(graph, state) == re.sub(r", \d+ ms", "", text)


def test_a_closed_node_asks_what_is_asked_inside():
    """The gate, named by its way in from there, and its question."""
    graph, *known = paused()
    for run_known in known:
        assert "  research (graph, 5 nodes inside, at most 3 visits, waiting: enough: Is Ada enough?) -> check\n" in (
            to_text(graph, run_known, nested=False))
    outer = make("START>report report>END", report={"fn": graph_node("report", graph, [], []).fn, "kind": "graph"})
    for run_known in run(outer):
        assert "waiting: research/enough: Is Ada enough?)" in to_text(outer, run_known, nested=False)


def test_what_may_still_run_when_a_run_pauses_is_not_called_skipped():
    """Skipped is what no answer can bring about any more; what the gate leads to, whichever way, has not run yet."""
    graph = make("START>ask,pick ask>send send>END", ask=human_node("ask", "Send?", "ok").fn,
                 routers={"pick": (lambda state: "stop", {"go": "more", "stop": END})})
    for known in run(graph):
        text = to_text(graph, known)
        assert "  send (not run) -> END" in text and "  more (skipped) -> nothing" in text


def test_a_resumed_trace_knows_from_its_path_what_ran_before():
    """Those nodes ran, and ways follow where they can; nobody knows their times, or what their routers said."""
    graph, state, trace = resumed("yes")
    assert to_text(graph, trace, nested=False) == """\
report, a graph of 5 nodes; the run: done, 400 ms since it was resumed
  START -> collect
  collect (tool, ran) -> research
  research (graph, 5 nodes inside, at most 3 visits, ran) -> check
    research --on_error--> sorry (not taken)
  check (ran, 100 ms) --fine--> each (taken)
    check --again--> research (back, not taken)
  sorry (skipped) -> END
  each (map, ran, 3 items, 300 ms) -> END
  END (reached)"""
    assert "    search (graph, ran) -> enough\n    ask (ran) --on_error--> note (taken)\n" in to_text(graph, trace)
    assert "    ask (ran, failed: TimeoutError: no answer) --on_error--> note (taken)\n" in to_text(graph, state)
    assert "    enough (human, ran) -> END\n" in to_text(graph, state)  # an answer is a record, and so a visit


def test_a_resumed_trace_leaves_open_what_an_earlier_router_said():
    """check ran before and after the pause: what it said the second time is known, and that it said `again` follows
    from nothing that this trace tells."""
    graph, state, _ = resumed("no")
    trace = Trace()
    with virtual_time():
        resume_graph(graph, state.journal, {"research/enough": "yes"}, observer=trace)
    assert "  check (ran 2 times) --fine--> each (taken)\n    check --again--> research (back)\n" in (
        to_text(graph, trace))
    assert "  research (graph, at most 3 visits, ran 2 times) -> check\n" in to_text(graph, trace)


def test_whether_a_node_with_a_handler_failed_before_a_pause_is_left_open():
    """a led to c, or failed into h: c ran either way, as b leads there too, and the trace tells of neither."""
    graph = make("START>a,b,ask a>c b>c ask>h h>c", a={"on_error": "h"}, b={}, ask=human_node("ask", "?", "ok").fn)
    before, trace = run(graph)[0], Trace()
    resume_graph(graph, before.journal, {"ask": "yes"}, observer=trace)
    taken = {(edge.src, edge.dst): edge.taken for edge in sheet(graph, trace).edges}
    assert (taken["a", "c"], taken["a", "h"], taken["b", "c"]) == (None, None, True)


def test_of_two_ways_neither_known_the_one_to_a_node_that_never_ran_was_not_taken():
    """Where a state has no records: what a router did not lead to did not run."""
    graph = make("START>pick c>d", routers={"pick": (lambda state: "on", {"on": ["a", "b"], "off": "c", "out": END})})
    text = to_text(graph, without_records(run(graph)[0]))
    assert "  pick (ran) --on--> a, b (taken)\n    pick --off--> c (not taken)\n    pick --out--> END\n" in text


def test_a_node_that_runs_its_graph_again_is_under_way_again():
    """Its first run was over; in its second, what has not run yet may still, and what runs is running."""
    inner = make("START>a a>b b>END", a=takes(1), b=takes(1))
    graph = Graph("g").add_node(graph_node("sub", inner, [], [], max_visits=2)).add_edge(START, "sub")
    graph.add_router("sub", lambda state: "again", {"again": "sub", "out": END})
    trace = run(graph)[1]
    at = [i for i, event in enumerate(trace.events) if event["kind"] == "node_start"]
    second = Trace(trace.events[:at[-1] + 1])
    assert [event["node"] for event in second.of("node_start")][-1] == "sub/b"
    assert "  sub (graph, at most 2 visits, 2.000 s in all, running) --again--> sub (back, taken)" in (
        to_text(graph, second))
    assert "    b (1.000 s in all, running) -> END" in to_text(graph, second)


def test_a_node_inside_is_refused_into_its_handler_once_in_every_run():
    """Two runs inside, two refusals handed on."""
    inner = make("START>a h>END", a={"max_visits": 1, "on_error": "h"},
                 routers={"a": (lambda state: "again", {"again": "a"})})
    graph = Graph("g").add_node(graph_node("sub", inner, [], [], max_visits=2, on_error="end")).add_edge(START, "sub")
    graph.add_node("end", takes(0)).add_router("sub", lambda state: "again", {"again": "sub", "out": END})
    edges = {edge.kind: edge for edge in sheet(graph, run(graph)[1]).mark["sub"].inner.edges}
    assert (edges["on_error"].times, edges["router"].times) == (2, 2)


def test_a_gate_in_an_item_of_a_map_is_named_without_the_item():
    """Several items may ask; the node names the gate, and a question."""
    page = make("START>ask ask>END", ask=human_node("ask", "Keep {n}?", "ok").fn)
    graph = Graph("g").add_node(map_node("each", graph_node("page", page, ["n"], []).fn, "pages", "out"))
    graph.add_edge(START, "each")
    trace = Trace()
    state = run_graph(graph, {"pages": [{"n": 7}]}, trace)
    assert state.waiting == {"each/0/ask": "Keep 7?"}
    for known in (state, trace):
        assert "waiting: ask: Keep 7?)" in to_text(graph, known, nested=False)
        assert "    ask (waiting: Keep 7?) -> END" in to_text(graph, known)


@pytest.mark.parametrize("case", DONE, ids=lambda case: case["id"])
def test_inside_a_node_a_run_looks_as_it_does_alone(case):
    """For every conformance case: the marks of the graph inside are those of the same graph, run by itself."""
    inner, limit = build(case, seed=3), case.get("max_steps")
    alone = to_text(inner, run(build(case, seed=3), max_steps=limit)[1]).splitlines()[1:]
    node = graph_node("inner", inner, [], [], max_steps=limit)
    outer = make("START>inner inner>END", inner={"fn": node.fn, "kind": "graph"})
    state, trace = run(outer)
    found = to_text(outer, trace, nested=True).splitlines()
    at = next(i for i, line in enumerate(found) if line.startswith("  inside inner: "))
    assert [line.removeprefix("  ") for line in found[at + 1:]] == alone
    heard, told = (sheet(outer, known, nested=True).mark["inner"].inner for known in (trace, state))
    assert [(mark.name, mark.visits) for mark in heard.nodes] == [(mark.name, mark.visits) for mark in told.nodes]
    for one, other in zip(heard.edges, told.edges, strict=True):  # records leave out refusals, so not all follows
        assert other.taken in (one.taken, None) and other.times in (one.times, None)
        assert other.taken is not None or one.kind == "on_error"


def test_a_map_says_how_many_items_it_ran():
    """One node however many there are; over two visits, all of them; a failure names its items."""
    graph = make("START>each each>END", each={"fn": map_node("each", slowly, "pages", "read").fn, "kind": "map"})
    graph.add_node("pages", gives(0, pages=[2, 2, 2, 2, 2]))
    graph.edges[START] = {"pages": None}
    graph.add_edge("pages", "each")
    for known in run(graph):
        assert re.search(r"  each \(map, ran, 5 items(, 200 ms)?\) -> END", to_text(graph, known))
        assert read_dot(to_dot(graph, known))[0]["each"]["lines"][1].startswith("map · ×5 items")
    assert "item" not in to_text(graph)


def test_a_map_that_runs_a_graph_shows_it_once_for_all_items():
    """Visits of all items together; what failed for one is marked, and nothing but the item's number is lost."""
    page = Graph("page").add_node("read", lambda state: sleep(state["n"])).add_node("halve", halves, on_error="skip")
    page.add_node("skip", takes(0)).add_edge(START, "read").add_edge("read", "halve").add_edge("halve", END)
    each = map_node("each", graph_node("page", page, ["n"], ["half"]).fn, "pages", "halves")
    graph = Graph("book").add_node(each).add_edge(START, "each").add_edge("each", END)
    trace = Trace()
    with virtual_time():
        state = run_graph(graph, {"pages": [{"n": 2}, {"n": 3}, {"n": 4}]}, trace)
    text = """\
  each (map, ran, 3 items, 4.000 s) -> END
  END (reached)
  inside each: page, a graph of 3 nodes
    START -> read
    read (ran 3 times, 9.000 s in all) -> halve
    halve (ran 3 times, failed: ValueError: 3 is odd) -> END
      halve --on_error--> skip (taken)
    skip (ran) -> nothing
    END (reached)"""
    assert to_text(graph, trace).split("\n", 2)[2] == text
    assert to_text(graph, state).split("\n", 2)[2] == re.sub(r", \d\.000 s( in all)?", "", text)


def halves(state):
    if state["n"] % 2:
        raise ValueError(f"{state['n']} is odd")
    return {"half": state["n"] // 2}


def test_items_of_a_map_run_as_long_as_one_of_them_does():
    """The same inner node runs in several items at once: that one of them is over is not the end of the others."""
    page = Graph("page").add_node("read", lambda state: sleep(state["n"])).add_edge(START, "read")
    each = map_node("each", graph_node("page", page, ["n"], []).fn, "pages", "out")
    graph = Graph("book").add_node(each).add_edge(START, "each")
    trace = Trace()
    with virtual_time():
        run_graph(graph, {"pages": [{"n": 2}, {"n": 3}]}, trace)
    begun = Trace([event for event in trace.events if event["t"] < 3])
    assert "running) -> nothing" in to_text(graph, begun).splitlines()[-1]
    assert "  each (map, 2 items, running) -> nothing" in to_text(graph, begun)


def test_inside_a_node_that_never_ran_nothing_ran():
    """Skipped, blocked or not run, as the node is; with the same mark on all that is inside, however deep."""
    graph = make("START>pick", routers={"pick": (lambda state: "stop", {"go": "report", "stop": END})},
                 report={"fn": graph_node("report", report(), [], []).fn, "kind": "graph"})
    for known in run(graph):
        marks = sheet(graph, known, nested=True).mark["report"]
        assert marks.state == "skipped"
        assert {mark.state for mark in marks.inner.all_nodes()} == {"skipped"}
        assert {edge.taken for edge in marks.inner.edges} == {False}
    failed = make("START>bad bad>report", bad=fails(), report=graph.nodes["report"].fn)
    marks = sheet(failed, run(failed)[1], nested=True).mark["report"]
    assert {mark.state for mark in marks.inner.all_nodes()} == {"blocked"}


def test_a_state_without_records_says_nothing_of_what_ran_inside():
    """Neither that it ran nor that it did not: the graph inside is drawn as it is without a run."""
    graph, state, _ = resumed("yes")
    marks = sheet(graph, without_records(state)).mark["research"]
    assert marks.state == "ran"
    assert {mark.state for mark in marks.inner.all_nodes()} == {None}
    assert {edge.taken for edge in marks.inner.edges} == {None}


def test_names_with_slashes_are_not_taken_for_ways_inside():
    """A node of the graph itself comes first; what leads nowhere is passed over."""
    inner = make("START>b b>END")
    graph = make("START>a a>a/b a/b>END", a={"fn": graph_node("a", inner, [], []).fn, "kind": "graph"})
    graph.nodes["a"].fn.graph.add_node("c/d", takes(0.5)).add_edge("b", "c/d")
    text = to_text(graph, run(graph)[1])
    assert "  a/b (ran, 500 ms)" not in text and "    c/d (ran, 500 ms) -> nothing" in text
    assert to_text(make("START>a a>END"), run(graph)[1]).splitlines()[1:] == [
        "  START -> a", "  a (ran, 500 ms) -> END", "  END (reached)"]


def test_an_edge_to_an_open_box_ends_at_its_border():
    """In at its START, out at its END, or, where that is not drawn, at the last node; a box within likewise."""
    dot = to_dot(report())
    boxes = dict(re.findall(r"(?s)subgraph (cluster_n\d+) \{\n *graph \[label=<<B><FONT[^>]*>([^<]*)<", dot))
    box = {name: number for number, name in boxes.items()}
    ids = {name: number for number, name in re.findall(r"(n\d+) \[label=<<B><FONT[^>]*>([^<]*)<", dot)}
    ends = re.findall(r'(n\d+) -> (n\d+) \[(?:.*?)(?:, ltail="(\w+)")?(?:, lhead="(\w+)")?\];', dot)
    outer = int(box["research"].removeprefix("cluster_n"))
    assert 'compound="true"' in dot and 'compound' not in to_dot(report(), nested=False)
    assert (ids["collect"], f"n{outer + 1}", "", box["research"]) in ends  # START of the box stands next to it
    into_search = next(end for end in ends if end[3] == box["search"])
    assert into_search[0] == ids["plan"]
    assert (ids["look up"], ids["rank"], "", "") in ends
    out = [end for end in ends if end[2] == box["research"]]
    assert {end[1] for end in out} == {ids["check"], ids["sorry"]} and len({end[0] for end in out}) == 1
    back = next(line for line in draw(report())._upright.splitlines() if "again" in line)
    assert f'ltail="{box["research"]}"' in back and 'dir="back"' in back


def test_a_box_that_is_its_own_target_leads_back_inside():
    """Neither Graphviz nor Mermaid can lead an edge from a box to itself: it goes from its END to its START."""
    inner = make("START>a a>END")
    graph = Graph("g").add_node(graph_node("box", inner, [], [], max_visits=3)).add_edge(START, "box")
    graph.add_router("box", lambda state: "out", {"again": "box", "out": END})
    assert [line.strip() for line in to_mermaid(graph).splitlines() if "again" in line] == ['n4 -.->|"again"| n2']
    again = next(line for line in to_dot(graph).splitlines() if "again" in line)
    assert again.strip().startswith("n4 -> n2 [") and "lhead" not in again and "ltail" not in again


def test_a_box_without_an_end_lets_its_edges_out_at_the_last_node():
    """A graph whose branches end without END is left from its last dead end."""
    inner = graph_node("box", make("START>a a>b,c"), [], [])
    graph = make("START>box box>after", box={"fn": inner.fn, "kind": "graph"})
    edge = next(line.strip() for line in to_dot(graph).splitlines() if "ltail" in line)
    assert edge.startswith("n5 -> n6 [")  # n0 START, n1 the box, n2 its START, n3 a, n4 b, n5 c, n6 after
    around = make("START>b,c c>b", b={"max_visits": 2}, routers={"b": (lambda state: "again", {"again": "c"})})
    graph = make("START>box box>after", box={"fn": graph_node("box", around, [], []).fn, "kind": "graph"})
    edge = next(line.strip() for line in to_dot(graph).splitlines() if "ltail" in line)
    assert edge.startswith("n3 -> n5 [")  # b leads back and nowhere else


def test_boxes_show_the_state_of_their_node():
    """Bold where it ran, dashed where it did not, a sign and words where it failed or waits, as for any node."""
    graph, _, trace = paused()
    attributes = read_boxes(to_dot(graph, trace))["nodes"]["research"]
    assert attributes["lines"] == ["research", "graph", "? waiting: enough"] and attributes["penwidth"] == "3"
    graph, _, trace = resumed("yes")
    read = read_boxes(to_dot(graph, trace))
    assert (read["nodes"]["research"]["penwidth"], read["nodes"]["research"]["style"]) == ("2.2", "filled,rounded")
    assert read["nodes"]["research"]["fillcolor"] == INSIDE["graph"] != FILLS["graph"]
    blocked = make("START>bad bad>box", bad=fails(), box={"fn": graph_node("box", make("START>a"), [], []).fn,
                                                          "kind": "graph"})
    box = read_boxes(to_dot(blocked, run(blocked)[1]))["nodes"]["box"]
    assert (box["lines"], box["style"]) == (["box", "graph · blocked"], "filled,rounded,dashed")
    broken = make("START>box", box={"fn": graph_node("box", make("START>a", a=fails()), [], []).fn, "kind": "graph"})
    lines = read_boxes(to_dot(broken, run(broken)[1]))["nodes"]["box"]["lines"]
    assert lines[2].startswith("! failed: InnerFailure: in graph")


def test_ways_taken_more_than_once_say_how_often():
    """Labelled or not; a way taken once is bold and says nothing."""
    graph = content("fix", "fix", "fix")
    _, edges = read_dot(to_dot(graph, run(content("fix", "fix", "fix"))[1]))
    words = {(src, dst): a["lines"] for src, dst, a in edges}
    assert words["tone", "aggregate"] == ["×3"] and words["draft", "tone"] == []
    assert words["revise", "tone"] == ["again ×2"] and words["revise", "person"] == ["! on_error"]


# ---- Mermaid


def test_mermaid_says_the_same_in_its_own_words():
    """A flowchart with quoted labels: kinds by bracket, conditional edges dotted, on_error with a sign."""
    graph = Graph("g").add_node("a", takes(0), kind="llm", on_error="b").add_node("b", takes(0), kind="tool")
    graph.add_edge(START, "a").add_router("a", lambda state: "on", {"on": END}).add_edge("b", END)
    assert to_mermaid(graph).splitlines()[:9] == [
        "flowchart TD",
        '  n0(["START"])',
        '  n1("a<br/>llm")',
        '  n2[/"b<br/>tool"/]',
        '  n3((("END")))',
        "  n0 --> n1",
        '  n1 -.->|"on"| n3',
        '  n1 -.->|"! on_error"| n2',
        "  n2 --> n3"]


def test_mermaid_draws_graphs_inside_nodes_as_boxes():
    """A subgraph with a title of one line, the edges between its nodes in it, those of its node to and from the box;
    numbers of links count through, as Mermaid counts them."""
    inner = make("START>a a>END", a=fails())
    graph = make("START>box box>c c>END", box={"fn": graph_node("box", inner, [], []).fn, "kind": "graph",
                                                "on_error": "c", "max_visits": 2})
    assert to_mermaid(graph, run(graph)[1]).splitlines()[:16] == [
        "flowchart TD",
        '  n0(["START"])',
        "  subgraph n1 [\"box · graph · ! failed#58; InnerFailure#58; in graph 'test'#58; a#58; T…\"]",
        "    direction TD",
        '    n2(["START"])',
        '    n3["a<br/>! failed#58; TimeoutError#58;<br/>no answer"]',
        '    n4((("END")))',
        "    n2 --> n3",
        "    n3 --> n4",
        "  end",
        '  n5["c"]',
        '  n6((("END")))',
        "  n0 --> n1",
        '  n1 -->|"! also on_error"| n5',
        "  n5 --> n6",
        "  style n0 fill:#1A1A1A,stroke:#1A1A1A,color:#FFFFFF,stroke-width:2.2px"]
    links = re.findall(r"linkStyle (\d) stroke:#\w+,stroke-width:(\d)px", to_mermaid(graph, run(graph)[1]))
    assert links == [("0", "4"), ("1", "1"), ("2", "4"), ("3", "4"), ("4", "4")]
    long = Graph("long").add_node(graph_node("x" * 99, inner, [], [])).add_edge(START, "x" * 99)
    assert f'subgraph n1 ["{"x" * 59}…"]' in to_mermaid(long)


@pytest.mark.parametrize("name, label", [
    ('say "hi"', "say #34;hi#34;"),
    ("<script>", "#60;script#62;"),
    ("a & b; #quot;", "a #38; b#59; #35;quot#59;"),
    ("{a|b}", "#123;a#124;b#125;"),
    ("`x` ] )", "#96;x#96; #93; )"),
    ("1. first", "1#46; first"),  # would become a list
    ("- first", "#45; first"),
    ("__init__", "#95;#95;init#95;#95;"),  # would become bold
    ("scan_github", "scan_github"),
    ("end", "end"),
    ("style:#1;", "style#58;#35;1#59;"),
    ("line\nbreak", "line#92;nbreak"),
])
def test_mermaid_labels_hold_nothing_that_mermaid_would_obey(name, label):
    """What could end the label or be taken for markup is written as an entity."""
    assert f'"{label}"' in to_mermaid(one(name))


def one(name, label=None):
    """A graph of a node with this name, which ends by a router with that label."""
    graph = Graph("one").add_node(name, takes(0)).add_edge(START, name)
    return graph.add_router(name, lambda state: label or "on", {label or "on": END})


# ---- text of any kind

UGLY = ['<script>alert("1")</script>', "back\\slash\\", "line\nbreak", "tab\t", "nul\0", "{a|b}", "ends ] here",
        "end", "🚀 rocket 👩‍💻", "日本語の名前", "a & b; #quot; &amp;", "\u202egnp.exe", "\ud800", r"\N \G \\ \L",
        " padded ", 'say "hi"', "->",
        "a -> b", "a, b", "--x-->", "<BR/>", "]]>", "%%{init}%%", "node [x=y]", "x" * 300, "long_" * 50, "\u2028"]


@pytest.mark.parametrize("name", UGLY)
def test_names_and_labels_of_any_kind_come_through_whole_and_harmless(name):
    """In DOT, Mermaid and text: on the lines where they belong, as text, with nothing left out."""
    graph = one(name, label=name)
    nodes, edges = read_dot(to_dot(graph))
    whole = re.sub(r"\s", "", shown(name))
    assert re.sub(r"\s", "", "".join(next(a["lines"] for n, a in nodes.items() if n not in (START, END)))) == whole
    assert re.sub(r"\s", "", "".join(edges[1][2]["lines"])) == whole
    assert len(to_text(graph).splitlines()) == 3
    assert to_text(graph).splitlines()[1] == f"  START -> {quoted(name)}"
    assert len(to_mermaid(graph).splitlines()) == 9
    assert "<script" not in to_dot(graph) + to_mermaid(graph)
    for written in (to_dot(graph), to_mermaid(graph), to_text(graph)):
        assert written.encode() and not re.search(r"[\0-\x09\x0b-\x1f\u202e\u2028]", written)


@needs_graphviz
@pytest.mark.parametrize("name", UGLY)
def test_names_of_any_kind_come_through_in_boxes_too(name):
    """As the title of a box and inside it: one line in text and Mermaid, well-formed and whole in SVG."""
    graph = Graph(name).add_node(graph_node(name, one(name, label=name), [], [])).add_edge(START, name)
    picture = draw(graph)
    assert f"  inside {quoted(name)}: {quoted('one')}, a graph of 1 node" in picture.text.splitlines()
    root = ElementTree.fromstring(picture.svg())
    letters = re.sub(r"\s", "", "".join(text for element in root.iter() if element.tag.endswith("}text")
                                        for text in element.itertext()))
    assert letters.count(re.sub(r"\s", "", shown(name))) >= 3  # title, node, label
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg", "title", "desc", "g", "polygon", "path", "ellipse", "polyline", "text"}
    assert picture.svg() == draw(graph).svg() and picture.png() == draw(graph).png()
    for written in (picture.dot, picture.mermaid):
        assert "<script" not in written and not re.search(r"[\0-\x09\x0b-\x1f\u202e\u2028]", written)


def test_a_name_in_the_text_twin_is_quoted_where_it_could_be_mistaken():
    """`a -> b` is one name in quotes and two names without."""
    assert [quoted(name) for name in ["scan_web", "two words", "a, b", "a -> b", 'say "hi"', "x\ny", "🚀"]] == [
        "scan_web", "two words", '"a, b"', '"a -> b"', '"say \\"hi\\""', '"x\\ny"', "🚀"]


@needs_graphviz
@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4, unique=True), st.text(max_size=40))
def test_graphviz_draws_whatever_the_names_are(names, label):
    """The SVG is well-formed and has every name in it, whole, as text; nothing in it can be run."""
    names = [name for name in names if name not in (START, END, "engine")] or ["a"]
    graph = Graph(label)
    for name in names:
        graph.add_node(name, takes(0)).add_edge(START, name)
    graph.add_router(names[0], lambda state: label, {label: END})
    svg = draw(graph).svg()
    root = ElementTree.fromstring(svg)
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg", "title", "desc", "g", "polygon", "path", "ellipse", "polyline", "text"}
    letters = re.sub(r"\s", "", "".join(text for element in root.iter() if element.tag.endswith("}text")
                                        for text in element.itertext()))
    for text in [*names, label]:
        assert re.sub(r"\s", "", shown(text)) in letters


def test_wrapped_lines_hold_the_whole_text():
    """Lines of like length; a word too long for a line is broken after _ - / or a dot, or anywhere."""
    assert wrapped("scan_github", 26) == ["scan_github"]
    assert wrapped("a_very_long_name_that_goes_on_and_on", 26) == ["a_very_long_name_", "that_goes_on_and_on"]
    assert wrapped("failed: '/no/such/file' is not there", 26) == ["failed: '/no/such/file'", "is not there"]
    assert wrapped("x" * 60, 26) == ["x" * 26, "x" * 26, "x" * 8]
    assert wrapped("", 26) == ['""']


@needs_graphviz
def test_wide_letters_have_room():
    """Graphviz guesses a Chinese letter narrower than it is; a node is as wide as its name all the same."""
    root = ElementTree.fromstring(draw(one("日" * 20)).svg())
    boxes = [[float(point.split(",")[0]) for point in element.attrib["points"].split()]
             for element in root.iter() if element.tag.endswith("}polygon")]
    assert max(max(box) - min(box) for box in boxes[1:]) > 20 * 13 + 20  # boxes[0] is the paper
    inner = make("START>a")
    svg = draw(Graph("g").add_node(graph_node("日" * 20, inner, [], [])).add_edge(START, "日" * 20)).svg()
    across = re.search(r'class="cluster">\s*<path [^>]*d="([^"]*)"', svg)[1]
    places = [float(x) for x in re.findall(r"(-?[\d.]+),", across)]
    assert max(places) - min(places) > 20 * 13


# ---- the picture


@needs_graphviz
def test_a_picture_is_svg_and_png_by_whatever_graphviz_there_is():
    """SVG with a title and a description for those who cannot see it; PNG as large as asked, the same each time."""
    picture = draw(gather())
    root = ElementTree.fromstring(picture.svg())
    assert root.attrib["role"] == "img" and root.attrib["aria-label"] == "gather"
    assert [element.text for element in root[:2]] == ["gather", picture.text]
    titles = [element for element in root.iter() if element.tag.endswith("}title")]
    assert len(titles) == 1  # none of the tooltips n0, n1 that Graphviz leaves
    png, large = picture.png(1), picture.png(2)
    assert png[:8] == large[:8] == b"\x89PNG\r\n\x1a\n"
    widths = [int.from_bytes(data[16:20], "big") for data in (png, large)]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.02) and 400 < widths[0] < 1000
    assert draw(gather()).png(2) == large


@needs_graphviz
def test_a_notebook_shows_a_sharp_png_with_the_text_beside_it():
    """PNG at two pixels to one, its text as alternative text and as plain text."""
    data, about = draw(gather())._repr_mimebundle_()
    assert sorted(data) == ["image/png", "text/plain"]
    assert data["text/plain"] == about["image/png"]["alt"] == to_text(gather())
    assert about["image/png"]["width"] == int.from_bytes(draw(gather()).png()[16:20], "big") // 2
    svg, about = draw(gather(), format="svg")._repr_mimebundle_()
    assert sorted(svg) == ["image/svg+xml", "text/plain"] and about["image/svg+xml"]["alt"] == svg["text/plain"]
    assert repr(draw(gather())) == to_text(gather())


@needs_graphviz
def test_a_graph_shows_itself():
    """A Graph at the end of a cell is its picture; a graph that cannot run yet is drawn as far as it goes."""
    assert Graph._repr_mimebundle_(gather())[0] == draw(gather())._repr_mimebundle_()[0]
    assert "image/png" in Graph("empty")._repr_mimebundle_()[0]
    assert "image/png" in Graph("half").add_node("lost", takes(0))._repr_mimebundle_()[0]


@needs_graphviz
def test_where_the_png_must_spell_a_name_the_notebook_gets_svg_too():
    """graphviz-pure brings its own fonts: emoji and Chinese are spelled in the PNG, and drawn by a browser in SVG."""
    data, _ = draw(one("🚀"))._repr_mimebundle_()
    assert sorted(data) == ["image/png", "image/svg+xml", "text/plain"]
    assert "🚀" in data["image/svg+xml"]
    assert spelled("日 🚀👩‍💻 é Ж λ × … “q” → x") == "[U+65E5] [rocket][woman][personal computer] é Ж λ × … “q” → x"


@needs_graphviz
@pytest.mark.parametrize("suffix, begins", [(".svg", b"<svg"), (".PNG", b"\x89PNG"), (".dot", b"digraph G {"),
                                            (".mmd", b"flowchart TD"), (".txt", b"gather, a graph of 6 nodes")])
def test_save_writes_what_the_suffix_asks_for(tmp_path, suffix, begins):
    """Five suffixes, and the path comes back."""
    path = tmp_path / f"picture{suffix}"
    assert draw(gather()).save(str(path)) == path
    assert path.read_bytes().startswith(begins)


def test_save_names_the_suffixes_it_knows(tmp_path):
    """Anything else is a ValueError before a file is there."""
    with pytest.raises(ValueError, match=r"cannot save a picture as 'a.pdf': the suffix must be one of .svg .png .dot"):
        draw(gather()).save(tmp_path / "a.pdf")
    assert not list(tmp_path.iterdir())


def test_without_the_extra_the_text_is_shown_and_the_way_out_is_said(monkeypatch):
    """A notebook never sees an exception; svg() and save() say in one sentence what to install."""
    monkeypatch.setitem(sys.modules, "graphviz", None)
    sentence = 'pictures need the extra "notebooks": pip install -e ".[notebooks]"'
    with pytest.raises(PictureError, match=re.escape(sentence)):
        draw(gather()).svg()
    data, about = draw(gather())._repr_mimebundle_()
    assert (data, about) == ({"text/plain": f"{to_text(gather())}\n(no picture: {sentence})"}, {})


@needs_graphviz
def test_without_any_dot_program_the_way_out_is_said(monkeypatch):
    """The graphviz package alone draws nothing."""
    monkeypatch.setattr(draw_module.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(PictureError, match=re.escape('no Graphviz here: pip install -e ".[notebooks]" brings one')):
        draw(gather()).png()


@needs_graphviz
@pytest.mark.skipif(sys.platform == "win32", reason="the broken dot is a shell script")
def test_a_dot_that_fails_is_passed_over_and_nothing_global_is_left_changed(tmp_path, monkeypatch):
    """The machine's own dot comes first; if it cannot draw, graphviz-pure does; the package's setting is put back."""
    from graphviz.backend import dot_command
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho asked >> " + str(tmp_path / "log") + "\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    before = dot_command.DOT_BINARY
    assert draw(gather()).svg().startswith("<svg")
    assert (tmp_path / "log").read_text() == "asked\n"
    assert before == dot_command.DOT_BINARY
    monkeypatch.setattr(draw_module.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(PictureError, match="Graphviz could not draw this: .*exit status 3"):
        draw(gather()).svg()
    assert before == dot_command.DOT_BINARY


def test_a_graph_too_large_to_look_at_is_not_drawn_unasked():
    """A notebook that names a graph of 3,000 nodes gets the words at once."""
    graph = Graph("large").add_node("n0", takes(0)).add_edge(START, "n0")
    for i in range(3000):
        graph.add_node(f"n{i + 1}", takes(0)).add_edge(f"n{i}", f"n{i + 1}")
    data, _ = draw(graph)._repr_mimebundle_()
    assert list(data) == ["text/plain"]
    assert data["text/plain"].endswith("(no picture: 6003 nodes and edges are too many to look at; "
                                       ".save('all.svg') draws them)")


@pytest.mark.parametrize("call, error", [
    (lambda: draw(42), "cannot draw 42: pass a Graph, or what graph.describe() returned"),
    (lambda: draw(gather(), {"a": 1}), "cannot draw a run from {'a': 1}: pass the GraphState that run_graph returned"),
    (lambda: draw(gather(), format="gif"), "format='gif': a notebook shows 'png' or 'svg'"),
    (lambda: draw(gather(), nested="all"), "nested='all': True opens the graphs inside nodes, False closes them"),
    (lambda: draw(gather()).png(scale=0), "scale=0: pixels to a CSS pixel, between 0.1 and 10"),
])
def test_what_cannot_be_drawn_is_named(call, error):
    """One sentence: the thing, the rule, the way out."""
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        call()


def test_what_took_no_time_is_not_labelled_with_it() -> None:
    """0 ms under a node is noise; from half a millisecond on, the time is there."""
    graph = make("START>quick quick>slow slow>END", slow=lambda state: sleep(0.0006))
    _, trace = run(graph)
    assert "quick (ran) -> slow" in to_text(graph, trace)
    assert "slow (ran, 1 ms) -> END" in to_text(graph, trace)
    assert to_dot(graph, trace).count(" ms") == 2  # under the node, and for the whole run


@needs_graphviz
def test_the_gallery_shows_every_kind_of_picture_and_runs_nothing(tmp_path):
    """The exhibit with markup in all its texts: each picture is there with its words, and nothing is an element."""
    pytest.importorskip("matplotlib")
    gallery.main(tmp_path, ["names"])
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    seen = Elements()
    seen.feed(page)
    assert seen.tags.isdisjoint({"script", "iframe", "object", "link"}) and not seen.handlers
    kinds = ("plain", "run", "chart", "compare", "matrix")
    files = {f"names-{kind}.{suffix}" for kind in kinds for suffix in ("png", "svg")}
    assert {image["src"] for image in seen.images} == files
    for image in seen.images:
        assert len(image["alt"]) > 100 and (tmp_path / image["src"]).stat().st_size > 1000
    assert (tmp_path / "sheet.png").stat().st_size > 10_000 and (tmp_path / "names.html").exists()


class Elements(HTMLParser):
    """What elements a page has."""

    def __init__(self):
        super().__init__()
        self.tags, self.images, self.handlers = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.images += [dict(attrs)] if tag == "img" else []
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
