"""A run as one file: opened from the disk, replayed by keyboard, and asking nobody for anything."""

from __future__ import annotations

import pytest

from minigraph import START, Graph, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.trace import Trace

HOSTILE = "</script><script>document.title = 'run'</script><img src=http://192.0.2.1/x onerror=\"document.title = ''\">"


def morning() -> Trace:
    """Two nodes and what they wrote, all of it hostile."""
    def node(name, seconds):
        def fn(state):
            sleep(seconds)
            return {name: HOSTILE}
        return fn

    graph = Graph(f"morning {HOSTILE}")
    graph.add_node("web", node("web", 2)).add_node("mail", node(HOSTILE, 1)).add_node(HOSTILE, node("text", 1))
    graph.add_edge(START, "web").add_edge(START, "mail").add_edge("web", HOSTILE).add_edge("mail", HOSTILE)
    trace = Trace()
    with virtual_time():
        run_graph(graph, {"given": HOSTILE}, trace)
    return trace


@pytest.fixture
def page(context, tmp_path):
    """The file, open in a tab; `.said` is what the browser's console said."""
    path = morning().to_html(tmp_path / "run.html")
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.goto(path.as_uri())
    yield page
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_is_replayed_by_keyboard(page, context, picture, scheme):
    """Home, arrows and End move through the run; the space bar plays it. No request leaves, no data becomes code."""
    page.emulate_media(color_scheme=scheme)
    status, slider = page.locator(".status"), page.locator("#slider")
    page.keyboard.press("Home")
    assert slider.input_value() == "0"
    at_start = page.locator("main").inner_text()
    assert "● running" in status.inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert slider.input_value() == "1"
    assert page.locator("main").inner_text() != at_start
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    picture(page, f"page-{scheme}")
    page.keyboard.press("End")
    assert status.inner_text() == "✓ done · 3.000 s"
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == slider.get_attribute("max")
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.wait_for_function("() => Number(document.getElementById('slider').value) >= 2")
    page.keyboard.press(" ")
    assert page.locator("main img, main script, main iframe").count() == 0
    assert page.locator("body > script").count() == 2
    assert page.evaluate("() => document.title") == f"morning {HOSTILE}: the run"
    assert page.said == []
    assert context.left == []


def test_the_slider_can_be_dragged(page):
    """The mouse works as well: the middle of the slider is the middle of the run."""
    box = page.locator("#slider").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    last = int(page.locator("#slider").get_attribute("max"))
    assert abs(int(page.locator("#slider").input_value()) - last / 2) <= 1
    assert "● running" in page.locator(".status").inner_text()
