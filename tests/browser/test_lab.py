"""The widgets in a real JupyterLab: driven by mouse and keyboard, read back from the page.

Each test has a notebook of its own; the tab and the kernel are the same for all.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

CROSSED = '''
from minigraph import END, START, Graph
from minigraph.widgets import live, predict, step, whatif

graph = Graph("crossed")
for name in ("slow_a", "quick_b", "quick_a", "slow_b", "$x$ & $y$", "<b>bold</b>", "join"):
    graph.add_node(name, lambda state: {})
for src, dst in [(START, "slow_a"), ("slow_a", "quick_a"), (START, "quick_b"), ("quick_b", "slow_b"),
                 (START, "$x$ & $y$"), (START, "<b>bold</b>"), ("quick_a", "join"), ("slow_b", "join"), ("join", END)]:
    graph.add_edge(src, dst)
'''

MORNING = '''
from pathlib import Path
from time import perf_counter, sleep as rest
from minigraph import END, START, Graph, emit, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.nodes import human_node
from minigraph.trace import Trace
from minigraph.widgets import live, step, whatif

def scan(seconds, **found):
    def node(state):
        sleep(seconds)
        return found
    return node

def until_told(state):
    while not Path("go").exists():
        rest(0.02)
    return {"told": True}

HOSTILE = "<script>document.title = 'run'</script>"
morning = Graph("morning").add_node("web", scan(1.2, web=HOSTILE)).add_node("mail", scan(0.4, mail=3))
morning.add_node("write", scan(0.2, text="done & dusted"))
morning.add_edge(START, "web").add_edge(START, "mail").add_edge("web", "write").add_edge("mail", "write")
None
'''


def until(what: Any, text: str) -> None:
    """Waits until one of the elements shows this text."""
    what.filter(has_text=re.compile(text)).first.wait_for()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_whatif(lab, context, picture, dark):
    """Arrow keys on a slider redraw both schedules; names are text, no markup and no formula; nothing leaves."""
    book = lab.open(CROSSED, "whatif(graph, {'slow_a': 3, 'slow_b': 3})", dark=dark)
    book.run()
    head, labels = book.outputs.locator(".mg-bars .head"), book.outputs.locator(".widget-label")
    head.nth(1).wait_for()
    assert head.all_inner_texts() == ["waves: 7.00 s · 1.57 × as fast as in series (11.00 s)",
                                      "ready: 5.00 s · 2.20 × as fast as in series (11.00 s)"]
    assert list(filter(None, labels.all_inner_texts())) == [
        "slow_a", "quick_b", "quick_a", "slow_b", "$x$ & $y$", "<b>bold</b>", "join"]
    handle = book.outputs.locator(".noUi-handle").first
    for _ in range(10):
        handle.press("ArrowLeft")  # 0.1 s each
    until(head, "waves: 6.00 s")
    assert head.all_inner_texts() == ["waves: 6.00 s · 1.67 × as fast as in series (10.00 s)",
                                      "ready: 5.00 s · 2.00 × as fast as in series (10.00 s)"]
    picture(book.page, f"whatif-{'dark' if dark else 'light'}")
    book.page.get_by_role("button", name="Back to the beginning").click()
    until(head, "waves: 7.00 s")
    assert context.left == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_predict(lab, picture, dark):
    """No wave is shown before each node has one; then the first difference, and the real waves."""
    book = lab.open(CROSSED, "predict(graph)", dark=dark)
    book.run()
    menus, waves = book.outputs.locator("select"), book.outputs.locator(".mg-waves")
    check = book.page.get_by_role("button", name="Check", exact=True)
    check.wait_for()
    assert waves.count() == 0
    check.click()
    until(waves, "say something about 'slow_a', ")
    assert waves.locator(".wave").count() == 0
    for number, wave in enumerate("1122122"):
        menus.nth(number).select_option(f"in wave {wave}")
    check.click()
    until(waves, "You said '<b>bold</b>' runs in wave 2; it runs in wave 1, because START leads to it")
    assert waves.locator(".chip").all_inner_texts() == [
        "✓ slow_a", "✓ quick_b", "✓ $x$ & $y$", "✗ <b>bold</b> (you said 2)", "✓ quick_a", "✓ slow_b",
        "✗ join (you said 2)"]
    picture(book.page, f"predict-{'dark' if dark else 'light'}")


@pytest.fixture
def go(lab):
    """A file in the notebook's folder: a node that runs `until_told` waits for it."""
    path = lab.folder / "go"
    path.unlink(missing_ok=True)
    yield path
    path.touch()  # whatever happened, nothing waits on


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_live(lab, go, picture, dark):
    """The picture changes while the cell runs, and what the notebook keeps is a still without a widget in it."""
    book = lab.open(MORNING, "morning.add_node('wait', until_told).add_edge(START, 'wait').add_edge('wait', 'write')\n"
                    "state = live(morning, {})", dark=dark)
    book.start()
    cards = book.outputs.locator(".mg-panel .card")
    until(cards, r"mail.*✓ done · 4\d\d ms")
    until(cards, r"web.*✓ done · 1\.[2-9]\d\d s")
    assert book.busy
    first = cards.filter(has_text="wait").inner_text()
    book.page.wait_for_function("text => document.querySelectorAll('.mg-panel .card')[2].innerText !== text", arg=first)
    assert re.search(r"wait\s+● running · \d+\.\d s", first)  # and it ticks
    picture(book.page, f"live-running-{'dark' if dark else 'light'}")
    go.touch()
    until(book.outputs, "✓ done · ")
    book.wait_for_kernel()
    assert cards.count() == 0  # the widget is gone
    picture(book.page, f"live-done-{'dark' if dark else 'light'}")
    (still,) = book.saved(1)
    assert set(still["data"]) == {"text/plain", "text/html"}
    assert "<style" not in still["data"]["text/html"]
    assert "morning: ✓ done · " in "".join(still["data"]["text/plain"])
    assert book.ask("print(state.status, state['text'])") == "done done & dusted"
    assert book.page.title() != "run"


def test_an_interrupt_ends_a_live_run(lab, picture):
    """The stop button, while a node sleeps for a minute: interrupted at once, and the picture says so."""
    book = lab.open(MORNING, "morning.add_node('long', scan(60)).add_edge('write', 'long')\nlive(morning, {}, speed=2)")
    book.start()
    until(book.outputs.locator(".mg-panel .card"), r"long.*● running · ")
    book.interrupt()
    until(book.outputs, r"◼ interrupted · \d")
    until(book.outputs, "KeyboardInterrupt")
    book.wait_for_kernel()
    picture(book.page, "live-interrupted")
    said = "".join(book.saved(1)[0]["data"]["text/plain"])
    assert "morning: ◼ interrupted · " in said
    assert "  long: ◼ interrupted" in said
    assert "minigraph" not in book.ask("import threading; print([t.name for t in threading.enumerate()])")


STORM = """
def storm(state):
    begun, number = perf_counter(), 0
    while not Path("go").exists():
        emit("tool", {"name": "tick", "ms": 1.0})
        number += 1
        rest(max(0.0, begun + number / 500 - perf_counter()))
    return {"ticks": number, "a_second": number / (perf_counter() - begun)}

busy = Graph("busy").add_node("storm", storm).add_edge(START, "storm")
state = live(busy, {})"""


def test_five_hundred_events_a_second(lab, go, picture):
    """While a run tells 500 events a second the kernel answers other requests; the last frame is the final state."""
    book = lab.open(MORNING, STORM)
    book.start()
    cards = book.outputs.locator(".mg-panel .card")
    until(cards, r"storm.*● running · .*\d{3,} calls")
    for number in range(5):
        assert book.ask(f"print({number} * 7)", beside=True) == str(number * 7)
    assert book.busy
    until(cards, r"storm.*● running · .*[1-9]\d{3,} calls")
    picture(book.page, "live-storm")
    go.touch()
    until(book.outputs, "✓ done · ")
    book.wait_for_kernel()
    said = "".join(book.saved(1)[0]["data"]["text/plain"])
    assert "storm: ✓" in said
    ticks = book.ask("print(state['ticks'])")
    assert f"ticks = {ticks} (storm" in said
    assert float(book.ask("print(state['a_second'])")) > 200  # 500 are meant; a busy machine may do less


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_step(lab, picture, dark):
    """Arrow keys move through a finished run, and the picture follows."""
    book = lab.open(MORNING, "trace = Trace()\nwith virtual_time():\n    run_graph(morning, {}, trace)\nstep(trace)",
                    dark=dark)
    book.run()
    handle = book.outputs.locator(".noUi-handle")
    handle.wait_for()
    seen = []
    for _ in range(4):
        handle.press("ArrowRight")
        book.page.wait_for_timeout(250)
        seen.append(book.outputs.locator(".widget-html").inner_text())
    assert len(set(seen)) == 4
    picture(book.page, f"step-{'dark' if dark else 'light'}")
    handle.press("End")
    until(book.outputs, r"✓ done · 1\.400 s")
    assert book.page.title() != "run"


def test_approve(lab, picture):
    """The run waits, the notebook does not; a click resumes it, and a later cell sees the answer."""
    book = lab.open(MORNING, "from minigraph.widgets.approve import approve\n"
                    "letter = Graph('letter').add_node('draft', lambda s: {'draft': 'Dear <i>Ada</i>'})\n"
                    "letter.add_node(human_node('ask', 'Send {draft}?', 'sent', choices=['yes', 'no']))\n"
                    "letter.add_edge(START, 'draft').add_edge('draft', 'ask')\n"
                    "desk = approve(run_graph(letter, {}))\ndesk", "print(desk.state.status)")
    book.run()
    until(book.outputs, "Send Dear <i>Ada</i>[?]")
    until(book.outputs, "paused")
    picture(book.page, "approve", cell=-2)
    book.page.get_by_role("button", name="yes").click()
    until(book.outputs, "run done: nobody waits for an answer")
    assert book.ask("print(desk.state['sent'])") == "yes"


HOSTILE = """
from minigraph.widgets.dashboard import dashboard
text = '''# Today <script>document.title = 'run'</script>

<img src=x onerror="document.title = 'run'"> ![x](http://192.0.2.1/x.png) [a](javascript:alert(1)) **bold**

<iframe srcdoc="<script>top.document.title = 'run'</script>"></iframe>'''
dashboard(morning, {}, lambda state: text, speed=20)
"""


def test_nothing_in_a_digest_is_obeyed_but_markdown(lab, context, picture):
    """A page shows what it is told as Markdown: no script, no image, no frame, no link that is not to the web."""
    book = lab.open(MORNING, HOSTILE)
    book.run()
    book.page.get_by_role("button", name="Run", exact=True).click()
    sheet = book.outputs.locator(".mg-sheet")
    until(sheet, "bold")
    picture(book.page, "dashboard-hostile")
    assert sheet.locator("script, img, iframe, a").count() == 0
    assert sheet.locator("h1").inner_text() == "Today <script>document.title = 'run'</script>"
    assert sheet.locator("strong").inner_text() == "bold"
    assert book.page.title() != "run"
    assert context.left == []
