"""The page around a graph: what it shows, what it writes, and that its text is obeyed in nothing but Markdown."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forecasts import NASTY, Page
from helpers import make

from minigraph import START, Graph, GraphError, GraphState, clock
from minigraph.widgets.dashboard import as_html, dashboard, own_folder

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "dashboard"


def hello() -> Graph:
    """Two nodes; the first takes four seconds of the run's clock, and the text says how fast that is."""
    def greet(state):
        clock.sleep(4)
        return {"text": f"Hello {state['name']}", "speed": clock.current().speed}

    return make("START>greet greet>write", name="hello", greet=greet)


def told(state: GraphState) -> str:
    return f"# {state['text']}\n\nIt was *{state.status}*, {state['speed']:g} times as fast."


# ---- Markdown


def test_markdown_is_shown_as_markdown():
    """Headings, paragraphs, line breaks, lists, rules, links to the web."""
    pytest.importorskip("mistune")
    shown = Page(as_html("# Day\n\none  \ntwo\n\n- **bold** [page](https://example.org/?a=1&b=2)\n\n---\n"))
    assert [tag for tag, _ in shown.tags] == ["h1", "p", "br", "ul", "li", "strong", "a", "hr"]
    assert shown.tags[6][1] == {"href": "https://example.org/?a=1&b=2", "target": "_blank",
                                "rel": "noopener noreferrer"}


@pytest.mark.parametrize("text, tags, says", [
    ("<script>alert(1)</script>", ["p"], "<script>alert(1)</script>"),
    ("a <b onclick=x>b</b>", ["p"], "a <b onclick=x>b</b>"),
    ("<div>\n<img src=x onerror=y>\n</div>", ["p"], "<img src=x onerror=y>"),
    ("![alt](https://example.org/x.png)", ["p"], "alt"),
    ("[go](javascript:alert(1))", ["p"], "go"),
    ("[go](JavaScript:alert(1))", ["p"], "go"),
    ("[go](data:text/html,x)", ["p"], "go"),
    ("[go](//example.org)", ["p"], "go"),
    ("[go](/api/kernels)", ["p"], "go"),
    ("<javascript:alert(1)>", ["p"], "javascript:alert(1)"),
    ("&lt;script> &amp;lt; &#60;", ["p"], "<script> &lt; <"),
    ("`<i>`", ["p", "code"], "<i>"),
    ("    <i>\n", ["pre", "code"], "<i>"),
    ('[a](https://e.org/"onmouseover="x)', ["p", "a"], "a"),
])
def test_nothing_else_is_obeyed(text, tags, says):
    """HTML is text, images are their names, links lead to http and https or are none."""
    pytest.importorskip("mistune")
    shown = Page(as_html(text))
    assert [tag for tag, _ in shown.tags] == tags
    assert says in shown.text
    assert all(set(attrs) <= {"href", "target", "rel"} for _, attrs in shown.tags)
    assert all(attrs.get("href", "https://").startswith("https://") for _, attrs in shown.tags)


def test_without_mistune_the_text_is_shown_as_it_is(monkeypatch):
    """No library, no headings, and still no markup of its own making."""
    monkeypatch.setitem(sys.modules, "mistune", None)
    assert as_html("# <b>Day</b>") == "<pre># &lt;b&gt;Day&lt;/b&gt;</pre>"


# ---- a folder a page


def test_each_page_has_a_folder_of_its_own(tmp_path):
    """The first number that is free; the outbox is made if it is not there."""
    box = tmp_path / "outbox"
    assert [own_folder(box).name for _ in range(3)] == ["dashboard-1", "dashboard-2", "dashboard-3"]
    assert own_folder(box, "page").name == "page-1"
    assert all(path.is_dir() for path in box.iterdir())


def test_folders_asked_for_at_once_are_different(tmp_path):
    """Forty pages opened together: forty folders."""
    with ThreadPoolExecutor(40) as pool:
        found = list(pool.map(lambda _: own_folder(tmp_path), range(40)))
    assert len(set(found)) == 40


# ---- the page


@pytest.fixture
def moving(monkeypatch):
    """As in a notebook that a person looks at."""
    pytest.importorskip("ipywidgets")
    monkeypatch.delenv("MINIGRAPH_HEADLESS", raising=False)


def test_a_run_is_shown_from_beginning_to_end(moving):
    """Before: the graph, not begun, and no text. Then frames, the final state, and the text."""
    controls = dashboard(hello(), {"name": "Ada"}, told).controls
    controls.speed.value = 20.0
    assert "not begun" in controls.picture.value
    assert controls.text.value == ""
    frames, resting = [], []
    controls.picture.observe(lambda change: (frames.append(change["new"]), resting.append(controls.button.disabled)),
                             "value")
    controls.button.click()
    assert "✓ done" in controls.picture.value
    assert frames[-1] == controls.picture.value
    assert any("● running" in frame for frame in frames)
    assert all(resting)  # a click meanwhile would have queued up
    assert not controls.button.disabled
    assert "Hello Ada|It was |done|, 20 times as fast.|" in Page(controls.text.value).text


def test_every_press_is_a_new_run(moving):
    """Nothing is left of the run before."""
    seen = []
    page = dashboard(make("START>a", a=lambda state: seen.append(dict(state)) or {"n": 1}), {"given": 1}, str)
    page.controls.button.click()
    page.controls.button.click()
    assert [state["given"] for state in seen] == [1, 1]
    assert all("n" not in state for state in seen)


def test_the_menu_sets_the_clock(moving):
    """The speed that was asked for is among the choices, and chosen."""
    controls = dashboard(hello(), {"name": "Ada"}, told, speed=7).controls
    assert controls.speed.options == (("real time", 1.0), ("4 times as fast", 4.0), ("7 times as fast", 7),
                                      ("20 times as fast", 20.0))
    assert controls.speed.value == 7


def test_a_failing_run_is_shown_as_such(moving):
    """A node that fails is data, and a text that cannot be told is a sentence, not a traceback in the dark."""
    def fails(state):
        raise OSError("disk <full>")

    controls = dashboard(make("START>a", a=fails), {}, lambda state: state["text"]).controls
    controls.button.click()
    assert "✗ failed" in controls.picture.value
    shown = Page(controls.text.value)
    assert "✗ MissingKey: no 'text' on the blackboard" in shown.text
    assert not controls.button.disabled


def test_a_graph_that_collides_says_so(moving):
    """What run_graph raises stands on the page, escaped."""
    both = make("START>a,b", a=lambda state: {"<k>": 1}, b=lambda state: {"<k>": 2})
    controls = dashboard(both, {}, told).controls
    controls.button.click()
    shown = Page(controls.text.value)
    assert "StateCollision: nodes 'a' and 'b' both wrote '<k>'" in shown.text
    assert {tag for tag, _ in shown.tags} == {"style", "div", "p"}


def test_names_come_through_escaped(moving):
    """Markup in the name of the graph or of a node stays text."""
    graph = Graph(NASTY).add_node(NASTY, lambda state: {}).add_edge(START, NASTY)
    controls = dashboard(graph, {}, lambda state: NASTY).controls
    controls.button.click()
    assert "<script>alert" not in controls.picture.value + controls.text.value


def test_what_cannot_be_meant_is_refused_at_once():
    """A graph that cannot run, a speed of none."""
    with pytest.raises(GraphError, match="no edge out of START"):
        dashboard(Graph("empty"), {}, told)
    with pytest.raises(ValueError, match="speed=0: a run needs a speed above 0"):
        dashboard(hello(), {}, told, speed=0)


def test_headless_shows_the_picture_of_the_graph(monkeypatch):
    """Without widgets nothing runs, and nothing is written."""
    monkeypatch.setenv("MINIGRAPH_HEADLESS", "1")
    page = dashboard(hello(), {}, told)
    data, _ = page._repr_mimebundle_()
    assert data["text/plain"].startswith("hello, a graph of 2 nodes")
    assert repr(page).startswith("a page for hello, a graph of 2 nodes")


# ---- the notebook


def test_the_notebook_is_as_it_was_written():
    """No outputs, no counts, no state of widgets, and no cell longer than a slide."""
    notebook = json.loads((FOLDER / "gather.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert max(len(cell["source"]) for cell in code) <= 15
    assert "widgets" not in notebook["metadata"]


def test_the_notebook_is_no_part_of_the_course():
    """Neither compared, nor copied to students."""
    from minigraph.kit import course_files
    from notebooks import paths
    assert "gather.ipynb" not in {path.name for path in paths()}
    assert "gather.ipynb" not in {path.name for path in course_files(solutions=True)}


def test_the_page_is_for_this_machine_and_asks_no_other():
    """Bound to 127.0.0.1; the browser is told to load nothing from anywhere else."""
    settings = json.loads((FOLDER / "voila.json").read_text(encoding="utf-8"))["Voila"]
    policy = settings["tornado_settings"]["headers"]["Content-Security-Policy"]
    assert settings["ip"] == "127.0.0.1"
    assert policy.startswith("default-src 'self' ")
    assert "http" not in policy
