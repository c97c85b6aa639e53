"""A page around one graph: its picture, a button that runs it, the cards while it runs, and what came of it as text.

    dashboard(graph, {"date": "2026-03-02"}, lambda state: Path(state["digest"]).read_text())

The last argument makes Markdown of the blackboard as the run left it. It is shown with everything escaped that is not
Markdown, and whatever the file says, nothing in it is run or asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from html import escape, unescape
from pathlib import Path
from typing import Any

from ..draw import draw
from ..engine import Graph, GraphState
from ..frames import Frame, Reel
from .live import Watched
from .where import can_move

Tell = Callable[[GraphState], str]  # the blackboard as the run left it -> Markdown

SPEEDS = (1.0, 4.0, 20.0)
log = logging.getLogger("minigraph")


def dashboard(graph: Graph, state: Mapping[str, Any], tell: Tell, *, speed: float = 4.0) -> Dashboard:
    """The page; it shows itself in a notebook, and in one that voila serves.

    Each press of its button is a new run of `graph` on `state`, `speed` times as fast as real time to begin with.
    tell: the blackboard -> Markdown. Without widgets the picture of the graph is shown.
    """
    return Dashboard(graph, state, tell, speed)


def own_folder(outbox: str | Path, name: str = "dashboard") -> Path:
    """A new folder in `outbox` that nobody else has: dashboard-1, or the first number that is free.

    Two pages that ask at the same moment get two folders: whoever makes a folder first has it.
    """
    number = 1
    while True:
        folder = Path(outbox) / f"{name}-{number}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


class Dashboard:
    """A graph and where to run it from; `.controls` are its widgets, once they are asked for."""

    def __init__(self, graph: Graph, state: Mapping[str, Any], tell: Tell, speed: float) -> None:
        graph.plan()
        if not speed > 0:
            raise ValueError(f"speed={speed!r}: a run needs a speed above 0; 1 is real time, 10 is ten times as fast")
        self.graph, self.state, self.tell, self.speed = graph, state, tell, speed

    def __repr__(self) -> str:
        return f"a page for {draw(self.graph).text}"

    @cached_property
    def controls(self) -> Controls:
        """The button and what it changes. ImportError without ipywidgets."""
        return Controls(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if can_move():
            return {**self.controls.box._repr_mimebundle_(), "text/plain": repr(self)}
        return draw(self.graph)._repr_mimebundle_()


class Controls:
    """A button, a menu for the speed, the picture with its cards, and the text. Needs ipywidgets."""

    def __init__(self, page: Dashboard) -> None:
        import ipywidgets as widgets

        self.page = page
        speeds = sorted({*SPEEDS, page.speed})
        self.speed = widgets.Dropdown(options=[(_fast(speed), speed) for speed in speeds], value=page.speed,
                                      description="Clock", layout={"width": "220px"})
        self.button = widgets.Button(description="Run", button_style="primary", tooltip=f"run {page.graph.name}")
        self.button.on_click(self._run)
        self.picture = widgets.HTML(Reel(page.graph.describe()).frame().html())
        self.text = widgets.HTML()
        self.box = widgets.VBox([widgets.HBox([self.button, self.speed]), self.picture, self.text])

    def _run(self, _: Any) -> None:
        """One run, from the first event to the text. The button rests meanwhile, or clicks would queue up behind it."""
        self.button.disabled, self.text.value = True, ""
        try:
            state = Watched(self.page.graph, self.page.state, self.speed.value, None, {}).run(self)
            self.text.value = _sheet(as_html(self.page.tell(state)))
        except Exception as error:  # there is no cell under a page in which a traceback could stand
            log.exception("a run of the dashboard ended with an exception")
            self.text.value = _sheet(f"<p>✗ {escape(f'{type(error).__name__}: {error}')}</p>")
        finally:
            self.button.disabled = False

    # It is the screen of what it watches, too.

    def show(self, html: str) -> None:
        self.picture.value = html

    def end(self, frame: Frame | None) -> None:
        if frame is not None:
            self.picture.value = frame.html()


def _fast(speed: float) -> str:
    return "real time" if speed == 1 else f"{speed:g} times as fast"


# ---- Markdown, of which nothing but Markdown is obeyed


def as_html(markdown: str) -> str:
    """The Markdown as HTML: no element of its own making, no image, and no link but to http and https.

    Without mistune, which every notebook server brings along, it is shown as it is written.
    """
    try:
        import mistune
    except ImportError:
        return f"<pre>{escape(markdown)}</pre>"

    class Careful(mistune.HTMLRenderer):
        def text(self, text: str) -> str:
            return escape(unescape(text))

        def link(self, text: str, url: str, title: str | None = None) -> str:
            if not url.startswith(("http://", "https://")):
                return text
            return f'<a href="{escape(unescape(url))}" target="_blank" rel="noopener noreferrer">{text}</a>'

        def image(self, text: str, url: str, title: str | None = None) -> str:
            return text  # an image would be asked for, somewhere, at once

    return str(mistune.create_markdown(renderer=Careful(escape=True))(markdown))


def _sheet(html: str) -> str:
    return f"{STYLE}<div class='mg-sheet'>{html}</div>"


STYLE = """<style>
.mg-sheet { background: #FFFFFF; color: #1A1A1A; font: 14px/1.5 system-ui, sans-serif; max-width: 860px;
  border: 1px solid #C8C8C8; border-radius: 8px; padding: 12px 20px; margin-top: 10px; overflow-wrap: anywhere; }
.mg-sheet h1 { font-size: 20px; margin: 0 0 8px; }
.mg-sheet h2 { font-size: 16px; margin: 14px 0 4px; }
.mg-sheet ul { margin: 0; padding-left: 20px; }
.mg-sheet a { color: #0072B2; }
</style>"""
