"""Notebook 04: a loop that ends after two revisions, and the way back that closes a cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..checks import Exercise, Rehearsal, Wrong, cannot_run, edges_of, is_function, listed, rehearse
from ..engine import END, START, Graph, Node
from ..models.stub import ScriptedModel
from ..nodes import band_router, key_router, llm_node

# check -> what its model says, always, and how many seconds it takes to say it
CHECKS = {"tone": ("0.6", 1.0), "facts": ("0.9", 2.5), "length": ("0.9", 0.1)}
WAYS = {"good": "save", "nearly": "revise", "hopeless": "human"}  # label -> target


def content(again: Iterable[str] = tuple(CHECKS)) -> Graph:
    """A new graph that drafts a text, has it checked three times at once, and joins the scores; the lowest decides.

    After a revision the checks named in `again` run again. All models are stubs, and the tone is never good enough.
    """
    graph = Graph("content")
    graph.add_node(llm_node("draft", "Write a letter.", "text", _says("Dear all", 2.0)))
    for key, (score, seconds) in CHECKS.items():
        graph.add_node(llm_node(f"check_{key}", f"From 0 to 1, how good is the {key}? {{text}}", key,
                                _says(score, seconds), parse=float))
    graph.add_node("aggregate", lambda state: {"score": min(state[key] for key in CHECKS)})
    better = ScriptedModel(lambda messages, tools: messages[-1].content + "!", latency=1.5)
    graph.add_node(llm_node("revise", "{text}", "text", better, max_visits=2, on_error="human"))
    graph.add_node("save", lambda state: {"saved": state["text"]})
    graph.add_node("human", lambda state: {"asked": state["text"]}, kind="human")
    graph.add_edge(START, "draft").add_edge("save", END).add_edge("human", END)
    for key in CHECKS:
        graph.add_edge("draft", f"check_{key}").add_edge(f"check_{key}", "aggregate")
    for key in again:
        graph.add_edge("revise", f"check_{key}")
    return graph.add_router("aggregate", band_router("score", {"good": 0.8, "nearly": 0.5}, below="hopeless"), WAYS)


def _says(text: str, seconds: float) -> ScriptedModel:
    return ScriptedModel(lambda messages, tools: text, latency=seconds)


# ---- cycles-1


def letter(bound: Node, good_at: int | None = None) -> Graph:
    """A letter that is drafted, reviewed and revised; `bound` takes the place of the node of its name.

    The reviewer says "good" at review number `good_at`, or never, and else "nearly".
    """
    reviews: list[str] = []

    def review(state: Mapping[str, Any]) -> dict[str, Any]:
        reviews.append(state["text"])
        return {"verdict": "good" if len(reviews) == good_at else "nearly"}

    nodes = {"draft": Node("draft", lambda state: {"text": "Dear all"}), "review": Node("review", review),
             "revise": Node("revise", lambda state: {"text": state["text"] + "!"}),
             "save": Node("save", lambda state: {"saved": state["text"]}),
             "human": Node("human", lambda state: {"asked": state["text"]}, kind="human")}
    # Whichever node is bounded, draft, review, save and human stay ours, so that only `revise` is the student's.
    nodes[bound.name] = bound if bound.name == "revise" else replace(bound, fn=nodes[bound.name].fn)
    graph = Graph("letter")
    for node in nodes.values():
        graph.add_node(node)
    graph.add_edge(START, "draft").add_edge("draft", "review").add_edge("revise", "review")
    graph.add_router("review", key_router("verdict"), WAYS)
    return graph.add_edge("save", END).add_edge("human", END)


def check_bound(answer: Any) -> str | None:
    if isinstance(answer, Graph):
        return 'answer is a graph, and one node of it is asked for: answer = Node("revise", ...)'
    if not isinstance(answer, Node):
        return 'answer is no Node, and one is asked for: answer = Node("revise", function, ...)'
    if answer.name not in ("draft", "review", "revise", "save", "human"):
        return f"the loop has no node {answer.name!r}; the one that is missing is called 'revise'"
    graph = letter(answer)
    if answer.name == "revise" and answer.max_visits is None:
        return f"{cannot_run(graph)}"
    if wrong := cannot_run(graph):
        return f"you bounded {answer.name!r}, and {wrong}"
    never = rehearse(graph)
    return _wrong_bound(answer, never) if answer.name == "revise" else _wrong_node(answer, never)


def _wrong_bound(answer: Node, never: Rehearsal) -> str | None:
    """What is wrong with the node `revise`, judged by a run in which the reviewer is never content."""
    runs, cap = never.visits.get("revise", 0), answer.max_visits
    error = str(never.state.errors.get("revise", ""))
    if error and not error.startswith("max_visits"):
        return f"a revision failed: {error}. The node reads 'text' and returns a new 'text'"
    if "save" in never.visits:
        return 'a letter that nobody approved was saved; the refused visit leads to the person: on_error="human"'
    if "human" not in never.visits:
        where = f"on_error leads to {answer.on_error}: nobody sees it" if answer.on_error else "it has no on_error"
        return f"revise was refused; to where? {where}, and the letter is lost"
    if runs > 2:
        return (f"revise ran {runs} times before the person was asked, and two revisions are asked for; a refused "
                f"visit is no run: max_visits={cap} lets {cap} of them run and refuses the next")
    if runs < 2:
        return f"two revisions are asked for, and max_visits={cap} lets one visit run and refuses the second"
    if str(never.state.get("asked")) == "Dear all":
        return "revise ran twice, and the text is still the draft: its function returns the new 'text'"
    third = rehearse(letter(answer, good_at=3))
    if "saved" not in third.state:
        return "the second revision was good, and was not saved: " + (third.trouble or "the person got it")
    return None


def _wrong_node(answer: Node, never: Rehearsal) -> str:
    runs, reviews = never.visits.get("revise", 0), never.visits.get("review", 0)
    if answer.name != "review":
        return f"you wrote {answer.name!r}; the node that is missing is 'revise'"
    if "human" not in never.visits:
        return f"after {reviews} reviews a visit of 'review' was refused; to where? And it is 'revise' that is missing"
    unread = f", the last of them unread: {reviews} reviews, one of the draft" if runs == reviews else ""
    return (f"you bounded 'review'; count the laps: review is on the way of the draft too, and with "
            f"max_visits={answer.max_visits} there are {runs} revisions{unread}. Bound 'revise'")


BOUND = Exercise(
    name="cycles-1",
    statement="""\
In the letter graph the node `revise` is missing. Write it: it reads `text` and returns a better `text`, at most **two**
times. If the reviewer still says "nearly" after that, the letter goes to the node `human`.""",
    todo='write answer = Node("revise", function, ...)',
    check=check_bound,
    why="Three reviews, two revisions, and the third visit of revise is refused into the arms of a person.",
    hints=[
        "A node is a name and a function; any function will do: lambda state: {'text': state['text'] + '!'}.",
        "max_visits says how many visits run. The next one is refused, and a refused visit is a failure.",
        "What happens to a failure is said by on_error=: the name of the node that goes on.",
    ],
    solution="""\
from minigraph import Node

answer = Node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=2, on_error="human")
""",
    wrong={
        "max_visits=3": Wrong("""\
from minigraph import Node
answer = Node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=3, on_error="human")
""", "a refused visit is no run"),
        "no on_error": Wrong("""\
from minigraph import Node
answer = Node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=2)
""", "refused; to where?"),
        "on_error to END": Wrong("""\
from minigraph import END, Node
answer = Node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=2, on_error=END)
""", "nobody sees it"),
        "cap on the wrong node": Wrong("""\
from minigraph import Node
answer = Node("review", lambda state: {"verdict": "nearly"}, max_visits=2, on_error="human")
""", "count the laps"),
        "no cap": Wrong("""\
from minigraph import Node
answer = Node("revise", lambda state: {"text": state["text"] + "!"}, on_error="human")
""", "has no bound"),
        "saved all the same": Wrong("""\
from minigraph import Node
answer = Node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=2, on_error="save")
""", "nobody approved"),
        "nothing revised": Wrong("""\
from minigraph import Node
answer = Node("revise", lambda state: None, max_visits=2, on_error="human")
""", "still the draft"),
        "one revision": Wrong("""\
from minigraph import Node
answer = Node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=1, on_error="human")
""", "two revisions are asked for"),
    })


# ---- cycles-2


def open_cycle(first_score: float = 0.6, step: float = 0.1) -> Graph:
    """A new graph that drafts a text, has it checked twice at once, and joins the scores; nothing follows them yet.

    `revise` (two visits, then the person), `save` and `human` stand ready. A check says how good the text is:
    `first_score` for the draft, `step` more after each revision.
    """
    def score(state: Mapping[str, Any]) -> float:
        return round(first_score + step * str(state["text"]).count("!"), 3)

    graph = Graph("content").add_node("draft", lambda state: {"text": "Dear all"})
    graph.add_node("check_tone", lambda state: {"tone": score(state), "read_by_tone": state["text"]})
    graph.add_node("check_facts", lambda state: {"facts": score(state), "read_by_facts": state["text"]})
    graph.add_node("aggregate", lambda state: {"score": min(state["tone"], state["facts"])})
    graph.add_node("revise", lambda state: {"text": state["text"] + "!"}, max_visits=2, on_error="human")
    graph.add_node("save", lambda state: {"saved": state["text"]})
    graph.add_node("human", lambda state: {"asked": state["text"]}, kind="human")
    graph.add_edge(START, "draft").add_edge("draft", "check_tone").add_edge("draft", "check_facts")
    return graph.add_edge("check_tone", "aggregate").add_edge("check_facts", "aggregate")


def check_closed(answer: Any) -> str | None:
    if isinstance(answer, Graph):
        return "answer is a graph, and a function is asked for: it is given the graph, and adds the edges to it"
    if wrong := is_function(answer):
        return wrong
    graph = _closed(answer)
    edges = edges_of(graph)
    back_to_draft = [src for src, dst in edges if dst == "draft" and src != START]
    if back_to_draft:
        return f"{back_to_draft[0]} leads back to draft, and that throws the revision away: draft writes the text anew"
    if edges == edges_of(open_cycle()):
        return "no edge was added: where does aggregate lead, and where does revise lead back to?"
    if "aggregate" in graph.nodes and graph.edges["aggregate"]:
        return "a static edge leads on from aggregate, and it always fires; who decides to stop? Let a router choose"
    if ("aggregate", "revise") not in edges:
        return "no label leads from aggregate to revise: what happens to a text that is not good yet?"
    checks = [name for name in ("check_tone", "check_facts") if ("revise", name) not in edges]
    if ("revise", "aggregate") in edges:
        return "revise leads to aggregate, which then joins the scores of the old text: who reads the revision?"
    if checks:
        return f"no edge leads from revise to {listed(checks)}: who reads the revision?"
    if wrong := cannot_run(graph):
        return wrong
    return _wrong_laps(answer)


def _wrong_laps(answer: Callable[[Graph], Any]) -> str | None:
    """What is wrong with a cycle that goes the right way round, judged by three runs."""
    for first_score, step, revisions, end in ((0.8, 0, 0, "save"), (0.6, 0.1, 2, "save"), (0.1, 0, 2, "human")):
        run = rehearse(_closed(answer, first_score, step))
        before = f"the draft scores {first_score} and each revision adds {step}"
        if run.trouble:
            return f"{before}: {run.trouble}"
        ran = run.visits.get("revise", 0)
        if ran != revisions or end not in run.visits:
            ended = listed(name for name in ("save", "human") if name in run.visits) or "nowhere"
            return (f"{before}: expected {revisions} revisions, then {end}; got {ran}, then {ended}. "
                    "A text that scores 0.8 or more is saved, any other is revised")
    return None


def _closed(answer: Callable[[Graph], Any], *scores: float) -> Graph:
    graph = open_cycle(*scores)
    returned = answer(graph)
    return returned if isinstance(returned, Graph) else graph


CLOSED = Exercise(
    name="cycles-2",
    statement="""\
`open_cycle()` is a graph that drafts a text and checks it twice at once; `aggregate` writes the `score`. `revise`,
`save` and `human` stand ready, not yet reached. Write a function of the graph that closes the cycle: a text that
scores 0.8 or more is saved, any other is revised; after a revision both checks read the new text.""",
    todo="write a function of the graph that adds a router and two edges to it, and let answer be that function",
    check=check_closed,
    why="One router decides to stop, one node is capped, and both checks read every text.",
    hints=[
        "Static edges alone never make a cycle: somebody must decide to stop. Which node knows the score?",
        'graph.add_router("aggregate", route, {"good": "save", "nearly": "revise"}); the route reads the score.',
        'The way back leads from revise to all that must read the new text: graph.add_edge("revise", "check_tone"), '
        "and one more.",
    ],
    solution="""\
from minigraph.nodes import band_router

def answer(graph):
    by_score = band_router("score", {"good": 0.8}, below="nearly")
    graph.add_router("aggregate", by_score, {"good": "save", "nearly": "revise"})
    graph.add_edge("revise", "check_tone").add_edge("revise", "check_facts")
""",
    wrong={
        "static edge": Wrong("""\
def answer(graph):
    graph.add_edge("aggregate", "revise").add_edge("revise", "check_tone").add_edge("revise", "check_facts")
    graph.add_edge("aggregate", "save")
""", "who decides to stop?"),
        "back to draft": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: "good" if state["score"] >= 0.8 else "nearly",
                     {"good": "save", "nearly": "revise"})
    graph.add_edge("revise", "draft")
""", "that throws the revision away"),
        "draft in place of revise": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: "good" if state["score"] >= 0.8 else "nearly",
                     {"good": "save", "nearly": "draft"})
""", "that throws the revision away"),
        "back to the join": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: "good" if state["score"] >= 0.8 else "nearly",
                     {"good": "save", "nearly": "revise"})
    graph.add_edge("revise", "aggregate")
""", "joins the scores of the old text"),
        "one check only": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: "good" if state["score"] >= 0.8 else "nearly",
                     {"good": "save", "nearly": "revise"})
    graph.add_edge("revise", "check_tone")
""", "no edge leads from revise to check_facts"),
        "labels the wrong way round": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: "good" if state["score"] >= 0.8 else "nearly",
                     {"good": "revise", "nearly": "save"})
    graph.add_edge("revise", "check_tone").add_edge("revise", "check_facts")
""", "0.8 or more is saved"),
        "> 0.8": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: "good" if state["score"] > 0.8 else "nearly",
                     {"good": "save", "nearly": "revise"})
    graph.add_edge("revise", "check_tone").add_edge("revise", "check_facts")
""", "0.8 or more is saved"),
        "a label that leads nowhere": Wrong("""\
def answer(graph):
    graph.add_router("aggregate", lambda state: state["score"] >= 0.8, {"good": "save", "nearly": "revise"})
    graph.add_edge("revise", "check_tone").add_edge("revise", "check_facts")
""", "which is no label"),
    })


EXERCISES = [BOUND, CLOSED]
