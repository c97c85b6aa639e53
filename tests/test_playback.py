"""A run as one file: what is in it, that it is whole and harmless, and that a browser replays it."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest
from helpers import make
from test_frames import NASTY, Parts, fan, loop, nasty, takes, traced

from minigraph.film import Film
from minigraph.playback import changes, page
from minigraph.trace import Trace

ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"]


def data_in(html: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.findall(r'<script type="application/json" id="film">(.*?)</script>', html)[0])
    return found


def test_the_page_holds_every_step() -> None:
    """Put together, the changes up to a step are what stands in the slots at that step: no more and no less."""
    film = Film(traced(loop()))
    data, slots = data_in(page(film.trace)), {}
    assert len(data["steps"]) == len(film) == len(data["times"])
    for number, step in enumerate(data["steps"]):
        slots.update({data["slots"][slot]: data["texts"][text]
                      for slot, text in zip(step[::2], step[1::2], strict=True)})
        assert {slot: text for slot, text in slots.items() if text} == {
            slot: text for slot, text in film.slots(number).items() if text}
        assert data["times"][number] == round(film[number].t, 6)
    assert set(data["slots"]) <= set(film.template.names)


def test_a_step_costs_what_it_changes() -> None:
    """The picture is in the page once, and a run of 300 visits fits into less than a megabyte."""
    laps = iter(range(150))
    graph = make("START>work work>check", work={"fn": takes(0.1, a=1), "max_visits": 150}, check=takes(0.1, b=2),
                 rest=takes(0.1), routers={"check": (lambda state: "again" if next(laps) < 149 else "out",
                                                     {"again": "work", "out": "rest"})})
    trace = traced(graph, max_steps=1000)
    html = page(trace)
    assert len(trace.visits()) == 301 and len(html.encode()) < 600_000 and html.count("<svg") == 1
    names = ",".join(f"n{number}" for number in range(30))
    wide = make(f"START>{names} " + " ".join(f"n{number}>n{number + 30}" for number in range(270)))
    trace = traced(wide)
    assert len(trace.visits()) == 300 and len(page(trace).encode()) < 1_000_000


def test_nothing_is_asked_for_and_one_script_may_run() -> None:
    """The page names no address but SVG's own name, and its policy allows the one script that is in it, by its hash."""
    html = page(traced(nasty()))
    assert set(re.findall(r"\w+://[^\s\"']*", unescape(html))) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href|srcset|action)=", re.sub(r">[^<]*<|\"[^\"]*\"", "", html))
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)[0]
    script = re.findall(r"<script>(.*?)</script>", html, re.S)[0]
    fingerprint = b64encode(sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{fingerprint}'"


def test_what_comes_from_the_run_is_text() -> None:
    """Markup in names and values ends no block of data, begins no element, and comes back whole."""
    html = page(traced(nasty()))
    assert html.count("<script") == html.count("</script>") == 2
    assert not Parts(html).tags & {"img", "i", "b", "u"}
    block = re.findall(r'id="film">(.*?)</script>', html)[0]
    assert not set(block) & set("<>&\u2028\u2029")
    texts = data_in(html)["texts"]
    for name in NASTY[:5]:
        assert escape(name) in texts and any(escape(repr(name)) in text for text in texts)
    assert f"<title>{escape(NASTY[0])}: the run</title>" in html


def test_it_reads_without_scripts() -> None:
    """Without JavaScript the page shows how the run ended, and has the table of the run as text."""
    trace = traced(fan())
    html = page(trace)
    body = html[html.index("<main>"):html.index('<script type="application/json"')]
    assert "step 9 of 9: the run is over: done" in body
    assert f"<pre>{escape(trace.to_text())}</pre>" in body


def test_where_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of the file comes back; without one it is in the outbox, under a name that every system takes."""
    trace = traced(fan())
    path = trace.to_html(tmp_path / "run.html")
    assert path == tmp_path / "run.html" and path.read_text(encoding="utf-8") == page(trace)
    assert trace.to_html(str(tmp_path / "run.html")) == path
    monkeypatch.chdir(tmp_path)
    assert trace.to_html() == Path("outbox") / "morning.html" and (tmp_path / "outbox" / "morning.html").exists()
    assert traced(nasty()).to_html() == Path("outbox") / "script_script_alert_1_script.html"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["outbox", "run.html"]


def test_a_trace_without_a_graph() -> None:
    """The trace of a loop has no graph to replay, and the message names what there is instead."""
    with pytest.raises(ValueError, match="does not hold the graph that ran: .*look at chart"):
        Trace([{"kind": "loop_start", "t": 0.0, "workflow": "brief"}]).to_html("never.html")
    assert not Path("never.html").exists()


def test_twice_the_same() -> None:
    """The same run makes the same page, to the byte."""
    assert page(traced(loop())) == page(traced(loop()))
    assert changes(Film(traced(loop()))) == changes(Film(traced(loop())))


# ---- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="no Playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=ARGS)
        yield chromium
        chromium.close()


class Opened:
    """A page in a browser, and what it did that it should not have done."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page, self.wrong = browser.new_page(**options), []
        self.page.on("request", lambda request: self.wrong.append(request.url))
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri())
        assert self.wrong.pop(0) == path.as_uri()

    @property
    def caption(self) -> str:
        return str(self.page.inner_text("[data-s=caption]"))

    def press(self, *keys: str) -> str:
        for key in keys:
            self.page.keyboard.press(key)
        return self.caption.split(":")[0]

    def shown(self, place: str) -> str:
        return str(self.page.evaluate("place => document.querySelector(`[data-s='${place}']`).textContent", place))


def test_the_keyboard(browser: Any, tmp_path: Path) -> None:
    """Arrow keys, Home and End move through the steps, wherever the focus is, and stop at the ends."""
    opened = Opened(browser, traced(fan()).to_html(tmp_path / "run.html"))
    assert opened.caption == "step 1 of 9: the run begins"
    assert opened.press("ArrowRight", "ArrowRight") == "step 3 of 9"
    assert opened.press("ArrowLeft") == "step 2 of 9" and opened.press("ArrowLeft", "ArrowLeft") == "step 1 of 9"
    assert opened.press("ArrowRight") == "step 2 of 9"
    assert opened.press("End") == "step 9 of 9" and opened.press("ArrowRight") == "step 9 of 9"
    assert opened.press("Home") == "step 1 of 9"
    opened.page.focus("#slider")
    assert opened.press("ArrowRight") == "step 2 of 9" and opened.press("End") == "step 9 of 9"
    assert opened.page.get_attribute("#slider", "aria-valuetext") == opened.caption
    assert opened.wrong == []


def test_every_step_shows_what_the_film_shows(browser: Any, tmp_path: Path) -> None:
    """In the browser each slot holds, forwards and backwards, what the film says it holds."""
    film = Film(traced(loop()))
    opened = Opened(browser, film.trace.to_html(tmp_path / "run.html"))
    for number in [*range(len(film)), 7, 3, 15]:
        opened.page.fill("#slider", str(number))
        for slot, content in film.slots(number).items():
            if "@" not in slot:
                assert opened.shown(slot) == unescape(re.sub("<[^>]*>", "", content)), (number, slot)
        found = opened.page.evaluate("""() => [...document.querySelectorAll('g.node, g.edge')].map(
            group => [group.dataset.s + '@class', group.getAttribute('class')])""")
        assert dict(found) == {slot: content for slot, content in film.slots(number).items()
                               if re.fullmatch(r"[ne]\d+@class", slot)}
    assert opened.wrong == []


def test_it_plays(browser: Any, tmp_path: Path) -> None:
    """The button and the space bar play and pause; it stops at the end, and begins again from there."""
    opened = Opened(browser, traced(make("START>a a>END")).to_html(tmp_path / "run.html"))
    opened.page.clock.install(time=0)
    opened.page.clock.pause_at(3_600_000)  # from here on time passes only where the test says so
    opened.page.click("#play")
    assert opened.page.inner_text("#play") == "Pause" and opened.caption.startswith("step 1 of 4")
    opened.page.clock.run_for(460)
    assert opened.caption.startswith("step 2 of 4")
    opened.page.focus("body")
    opened.press(" ")
    opened.page.clock.run_for(5000)
    assert opened.caption.startswith("step 2 of 4") and opened.page.inner_text("#play") == "Play"
    opened.page.click("#play")
    opened.page.clock.run_for(5000)
    assert opened.caption.startswith("step 4 of 4") and opened.page.inner_text("#play") == "Play"
    opened.page.click("#play")
    assert opened.caption.startswith("step 1 of 4")
    opened.page.fill("#slider", "1")
    opened.page.clock.run_for(5000)
    assert opened.caption.startswith("step 2 of 4") and opened.page.inner_text("#play") == "Play"
    assert opened.wrong == []


def test_nothing_runs_but_the_one_script(browser: Any, tmp_path: Path) -> None:
    """With markup in every name and value nothing opens a dialog, writes to the console, or leaves the machine."""
    opened = Opened(browser, traced(nasty()).to_html(tmp_path / "run.html"))
    for _ in range(12):
        opened.press("ArrowRight")
    opened.page.hover("[data-s=name]")
    assert opened.wrong == []
    assert opened.page.locator("script").count() == 2 and opened.page.locator("main img, main script").count() == 0
    assert opened.page.inner_text("[data-s=name]") == NASTY[0]


def test_light_and_dark(browser: Any, tmp_path: Path) -> None:
    """The page follows the reader's preference: dark ink on light paper, or light on dark."""
    path = traced(fan()).to_html(tmp_path / "run.html")
    colours = []
    for scheme in ("light", "dark"):
        opened = Opened(browser, path, color_scheme=scheme)
        opened.press("ArrowRight")
        colours.append(opened.page.evaluate("""() => ['.mg-panel', '.mg-scene .facts'].map((what, number) =>
            getComputedStyle(document.querySelector(what))[number ? 'fill' : 'backgroundColor'])"""))
    assert colours == [["rgb(255, 255, 255)", "rgb(26, 26, 26)"], ["rgb(27, 30, 35)", "rgb(236, 236, 236)"]]


def test_without_javascript(browser: Any, tmp_path: Path) -> None:
    """Where scripts are off, the end of the run is shown and a sentence says why nothing moves."""
    opened = Opened(browser, traced(fan()).to_html(tmp_path / "run.html"), java_script_enabled=False)
    assert opened.page.locator("[data-s=caption]").inner_text() == "step 9 of 9: the run is over: done"
    assert "Without JavaScript" in opened.page.locator("noscript").inner_text()
