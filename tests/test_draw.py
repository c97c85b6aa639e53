"""Pictures of graphs: what is drawn, what a run adds, what text of any kind does to it, and what a notebook shows."""

import json
import re
import shutil
import sys
import sysconfig
import xml.etree.ElementTree as ElementTree
from html import unescape
from pathlib import Path

import pytest
from helpers import make
from hypothesis import given, settings
from hypothesis import strategies as st

from minigraph import END, START, Graph, run_graph
from minigraph import draw as draw_module
from minigraph.clock import sleep, virtual_time
from minigraph.draw import PictureError, draw, quoted, sheet, shown, spelled, to_dot, to_mermaid, to_text, wrapped
from minigraph.shape import KINDS
from minigraph.trace import Trace

CASES = [json.loads(line) for line in
         (Path(__file__).parent / "conformance" / "cases.jsonl").read_text(encoding="utf-8").splitlines()]

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


def built(case):
    """The graph of a conformance case, as far as it can be drawn."""
    graph = Graph(case["id"])
    for name, spec in case["nodes"].items():
        graph.add_node(name, lambda state: None, max_visits=spec.get("max_visits"), on_error=spec.get("on_error"))
    for src, dst in case["edges"]:
        graph.add_edge(src, dst)
    for src, router in case.get("routers", {}).items():
        graph.add_router(src, lambda state: None, router["targets"])
    return graph


# ---- reading DOT back


def read_dot(dot):
    """({name: attributes}, [(src, dst, attributes)]) of a DOT text, the labels as the lines a reader sees."""
    nodes, names, edges = {}, {}, []
    for subject, text in re.findall(r"^  (n\d+(?: -> n\d+)?) \[(.*)\];$", dot, re.M):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', text.split(">, ")[-1]))
        label = re.search(r"label=<(.*)>, (?:width|shape|color)=", text)
        attributes["lines"] = [unescape(re.sub("<[^>]*>", "", line)).replace("\\\\", "\\")
                               for line in label[1].split("<BR/>")] if label else []
        if " -> " in subject:
            src, dst = subject.split(" -> ")
            edges.append((names[src], names[dst], attributes))
        else:
            names[subject] = attributes["lines"][0]
            nodes[names[subject]] = attributes
    return nodes, edges


def drawn_edges(graph):
    """(src, dst, label, dashed, backwards) of each edge in the DOT."""
    return sorted((src, dst, " ".join(a["lines"]), a["style"] == "dashed", a.get("constraint") == "false")
                  for src, dst, a in read_dot(to_dot(graph))[1])


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


def test_the_text_twin_of_a_final_state_says_what_follows_from_it():
    """A state has visits and errors; a way is called taken or not taken only where that follows."""
    graph = content("fix", "good")
    assert to_text(graph, run(graph)[0]) == """\
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


def test_a_way_that_a_final_state_leaves_open_is_not_called_anything():
    """The router may have named END beside draft_digest, or not: the state cannot tell, the trace can."""
    graph = gather()
    state, trace = run(graph)
    assert "synthesize --nothing--> END\n" in to_text(graph, state)
    assert "synthesize (llm, ran) --digest--> draft_digest (taken)\n" in to_text(graph, state)
    assert "synthesize --nothing--> END (not taken)\n" in to_text(graph, trace)


def test_two_routers_that_may_both_have_sent_a_ticket_are_left_open():
    """c and d ran, and either router may have named either: no way is called taken, none not taken."""
    choose = {"one": "c", "two": "d"}
    graph = make("START>a,b", routers={"a": (lambda state: "one", choose), "b": (lambda state: "two", choose)})
    assert "taken" not in to_text(graph, run(graph)[0])
    assert "a (ran) --one--> c (taken)\n    a --two--> d (not taken)\n" in to_text(graph, run(graph)[1])


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
    assert nodes["ask"]["lines"] == ["ask", "human", "! waiting: Send it?"]


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_picture_has_the_edges_that_run(case):
    """Same-picture proof: the DOT, read back, is what describe() says, for every conformance case."""
    graph = built(case)
    expected = {}
    for edge in graph.describe()["edges"]:
        handles = edge["label"] == "on_error"
        labels = expected.setdefault((edge["src"], edge["dst"], edge["conditional"], handles), ([], edge["backwards"]))
        labels[0].extend([("! " if handles else "") + edge["label"]] if edge["conditional"] else [])
    for src, dst, conditional, handles in list(expected):
        if handles and (src, dst, False, False) in expected:  # the two share an arrow
            del expected[src, dst, conditional, handles]
            expected[src, dst, False, False] = ["! also on_error"], False
    assert drawn_edges(graph) == sorted(
        (src, dst, " / ".join(labels), conditional, back)
        for (src, dst, conditional, _), (labels, back) in expected.items())


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
    """Only the edge to a node's on_error is marked as one."""
    graph = make("START>a", routers={"a": (lambda state: "fine", {"on_error": "b", "fine": END})})
    assert [edge.kind for edge in sheet(graph).edges] == ["static", "router", "router"]
    assert [a["lines"] for *_, a in read_dot(to_dot(graph))[1]] == [[], ["on_error"], ["fine"]]


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


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_all_letters_have_a_contrast_of_at_least_four_and_a_half():
    """By WCAG 2's formula, for each pair of letters and ground that is drawn; and colours have six digits."""
    graph = content("fix", "fix", "fix")
    nodes, edges = [], []
    for known in (None, *run(content("fix", "fix", "fix"))):
        dot = to_dot(graph, known)
        assert {len(colour) for colour in re.findall(r"#\w+", dot)} == {7}
        nodes += re.findall(r'<FONT COLOR="(#\w{6})">.*fillcolor="(#\w{6})"', dot)
        edges += [(colour, "#FFFFFF") for colour in re.findall(r'<TD>(?:<B>)?<FONT COLOR="(#\w{6})">', dot)]
        edges += [(colour, "#FFFFFF") for colour in re.findall(r'graph .*COLOR="(#\w{6})"', dot)]
    assert len(nodes) > 20 and len(edges) > 10
    for letters, ground in {*nodes, *edges}:
        light, dark = sorted([luminance(letters), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (letters, ground)


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
