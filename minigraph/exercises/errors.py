"""Notebook 05: a digest that still comes when a source is dead, and what a retry counts as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..checks import Exercise, Wrong, cannot_run, is_graph, is_number, nodes_missing, rehearse
from ..engine import END, START, Graph, Node

# ---- errors-1


def dead_web(state: Mapping[str, Any]) -> dict[str, Any]:
    """A source that does not answer."""
    raise ConnectionError("no route to the web")


def morning(scan_web: Node, digest: Callable[[Any], Any]) -> Graph:
    """Two scans and a digest that reads both; the web's node and the digest's function are the student's."""
    graph = Graph("morning")
    graph.add_node("scan_github", lambda state: {"github": ["a pull request"]})
    graph.add_node(scan_web)
    graph.add_node("digest", digest)
    for scan in ("scan_github", scan_web.name):
        graph.add_edge(START, scan).add_edge(scan, "digest")
    return graph.add_edge("digest", END)


def check_digest(answer: Any) -> str | None:
    wrong = is_graph(answer) or nodes_missing(answer, ["scan_github", "scan_web", "digest"]) or cannot_run(answer)
    if wrong:
        return wrong
    dead = rehearse(answer)
    errors, text = dead.state.errors, dead.state.get("digest")
    if "scan_web" not in errors:
        return "scan_web did not fail, though its source is dead: quiet, or dead? Let the exception out of the node"
    if "digest" in errors:
        return f"the digest failed: {errors['digest']} What is on the blackboard when the web is dead?"
    if "digest" not in dead.visits:
        return "the digest never ran: it holds a failed ticket from scan_web, and nothing took care of the failure"
    if not isinstance(text, str):
        return f"the digest returns {{'digest': text}}, and on the blackboard stands {text!r}"
    quiet = rehearse(_with_quiet_web(answer)).state.get("digest")
    if text == quiet:
        if answer.nodes["scan_web"].on_error == END:
            return "on_error=END swallows the failure, and the digest runs as if none were: what does the reader learn?"
        return f"a dead web and a quiet one read the same: {text!r}. The digest can look into state['errors']"
    if "web" not in text.lower():
        return f"the reader learns that something is wrong and not what: {text!r} does not name the web"
    return None


def _with_quiet_web(graph: Graph) -> Graph:
    web = replace(graph.nodes["scan_web"], fn=lambda state: {"web": []})
    return morning(web, graph.nodes["digest"].fn)


DIGEST = Exercise(
    name="errors-1",
    statement="""\
The web is dead: `dead_web` raises. See to it that the digest still comes, and that its reader learns the web is
*unavailable*. Change the node and the function; `morning` wires them.""",
    todo='choose on_error for the node, let `digest` look at state["errors"], and put morning(...) into answer',
    check=check_digest,
    why="The failure is on the blackboard as data, the digest runs either way, and it says what it could not read.",
    hints=[
        "Which node should go on when scan_web fails? on_error may name a normal successor: it then runs either way.",
        'What failed stands in state["errors"], a dict from node to text. Is "scan_web" in it?',
        'Node("scan_web", dead_web, on_error="digest"), and a digest that says "web unavailable" if "scan_web" is in '
        'state["errors"].',
    ],
    solution="""\
from minigraph import Node
from minigraph.exercises.errors import dead_web, morning

def digest(state):
    web = "unavailable" if "scan_web" in state["errors"] else f"{len(state['web'])} pages"
    return {"digest": f"github: {len(state['github'])}, web: {web}"}

answer = morning(Node("scan_web", dead_web, on_error="digest"), digest)
""",
    wrong={
        "return {}": Wrong("""\
from minigraph import Node
from minigraph.exercises.errors import morning
def scan_web(state):
    try:
        raise ConnectionError("no route")
    except ConnectionError:
        return {}
answer = morning(Node("scan_web", scan_web), lambda state: {"digest": f"web: {state.get('web', [])}"})
""", "quiet, or dead?"),
        "on_error=END": Wrong("""\
from minigraph import END, Node
from minigraph.exercises.errors import dead_web, morning
answer = morning(Node("scan_web", dead_web, on_error=END), lambda state: {"digest": "no web"})
""", "what does the reader learn?"),
        "no on_error": Wrong("""\
from minigraph import Node
from minigraph.exercises.errors import dead_web, morning
answer = morning(Node("scan_web", dead_web), lambda state: {"digest": "no web"})
""", "failed ticket"),
        "reads what is not there": Wrong("""\
from minigraph import Node
from minigraph.exercises.errors import dead_web, morning
answer = morning(Node("scan_web", dead_web, on_error="digest"), lambda state: {"digest": f"web: {state['web']}"})
""", "the digest failed: KeyError"),
        "dead reads as quiet": Wrong("""\
from minigraph import Node
from minigraph.exercises.errors import dead_web, morning
answer = morning(Node("scan_web", dead_web, on_error="digest"),
                 lambda state: {"digest": f"web: {len(state.get('web', []))} pages"})
""", "read the same"),
        "does not say what": Wrong("""\
from minigraph import Node
from minigraph.exercises.errors import dead_web, morning
answer = morning(Node("scan_web", dead_web, on_error="digest"),
                 lambda state: {"digest": "Sorry." if state["errors"] else "All is well."})
""", "does not name the web"),
    })


# ---- errors-2


def check_visits(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of visits")
    if wrong:
        return wrong
    if answer == 1:
        return None
    if answer == 3:
        return "3 is how often the function was called, and a retry stays inside a visit"
    if answer == 0:
        return "0 would mean that it never ran, and a failed visit counts: it had its turn"
    if answer == 2:
        return "2 is how often it was tried again, and a retry stays inside a visit"
    return f"not {answer:g}; print(state.visits) after a run of retry(dead_web, attempts=3)"


VISITS = Exercise(
    name="errors-2",
    statement="""\
A node's function is `retry(dead_web, attempts=3)`, and every attempt fails. How many **visits** does the node have?""",
    todo="put a number in place of the three dots",
    check=check_visits,
    why="Three calls, one visit, one failure: the engine sees the node run once, and fail once.",
    hints=[
        "A visit is one run of a node. Does the engine know what goes on inside the function?",
        "retry wraps the function: it is called once by the engine, and calls dead_web itself.",
        "Run it and look: run_graph(graph, {}).visits",
    ],
    solution="""\
from minigraph import START, Graph, run_graph
from minigraph.exercises.errors import dead_web
from minigraph.nodes import retry

graph = Graph("try").add_node("scan_web", retry(dead_web, attempts=3)).add_edge(START, "scan_web")
answer = run_graph(graph, {}).visits["scan_web"]
""",
    wrong={
        "every attempt": Wrong("answer = 3", "a retry stays inside a visit"),
        "a failure is no visit": Wrong("answer = 0", "a failed visit counts"),
        "only the retries": Wrong("answer = 2", "tried again"),
    })

EXERCISES = [DIGEST, VISITS]
