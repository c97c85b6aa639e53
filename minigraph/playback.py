"""A run as one file: a page replays its film, with slider, keyboard and a play button, and asks nobody for anything.

    write(trace, "monday.html")         # no server, no network: for slides, and for people without Jupyter

The picture is in the page once; of each step there is what it changes, as numbers of slots and of texts. Nothing that
comes from the run is ever code: it stands, escaped, in a block of data, and the page's own policy lets the browser run
one script, the one below, and load nothing.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from .film import LOOKS, Film
from .panel import DARK, LIGHT, css, variables
from .trace import Trace
from .words import shown

_SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("film").textContent);
const slider = document.getElementById("slider"), play = document.getElementById("play");
const places = {};
document.querySelectorAll("[data-s]").forEach(element => { places[element.dataset.s] = element; });
const last = data.steps.length - 1;
let at = -1, timer = 0;

// What stands in every slot at a step: all that was set up to it.
function slotsAt(step) {
  const slots = new Map();
  for (let number = 0; number <= step; number++) {
    const changes = data.steps[number];
    for (let i = 0; i < changes.length; i += 2) slots.set(changes[i], changes[i + 1]);
  }
  return slots;
}

let shown = new Map();
function show(step) {
  const slots = slotsAt(step);
  slots.forEach((text, slot) => {
    if (shown.get(slot) === text) return;
    const [place, attribute] = data.slots[slot].split("@"), element = places[place];
    if (!element) return;
    if (attribute) element.setAttribute(attribute, data.texts[text]); else element.innerHTML = data.texts[text];
  });
  shown = slots;
  at = step;
  slider.value = step;
  slider.setAttribute("aria-valuetext", places.caption.textContent);
}

function stop() {
  clearTimeout(timer);
  timer = 0;
  play.textContent = "Play";
}

// A long while takes longer than a short one, but nobody waits for seconds.
function next() {
  if (at >= last) { stop(); return; }
  show(at + 1);
  const seconds = at < last ? data.times[at + 1] - data.times[at] : 0;
  timer = setTimeout(next, Math.min(1600, Math.max(450, seconds * 1000)));
}

play.addEventListener("click", () => {
  if (timer) { stop(); return; }
  if (at >= last) show(0);
  play.textContent = "Pause";
  timer = setTimeout(next, 450);
});
slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last}[event.key];
  if (to !== undefined && event.target !== slider) {
    event.preventDefault();
    stop();
    show(Math.min(last, Math.max(0, to)));
  } else if (event.key === " " && event.target !== play) {
    event.preventDefault();
    play.click();
  }
});
slider.max = last;
show(0);
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src '{hash}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
body {{ margin: 0; padding: 16px; background: var(--band); }}
main {{ max-width: 1160px; margin: 0 auto; }}
{css}
.controls {{ display: flex; gap: 12px; align-items: center; margin-bottom: 12px; position: sticky; top: 0; z-index: 1;
  padding: 8px 0; background: var(--band); }}
#slider {{ flex: 1; min-width: 0; }}
#play {{ font: 600 14px/20px system-ui, sans-serif; width: 84px; padding: 6px 0; color: var(--ink);
  background: var(--paper); border: 1px solid var(--faint); border-radius: 6px; cursor: pointer; }}
:focus-visible {{ outline: 3px solid var(--running-line); outline-offset: 2px; }}
details {{ margin-top: 12px; color: var(--ink); font: 13px/18px system-ui, sans-serif; }}
pre {{ overflow: auto; font: 12px/17px ui-monospace, monospace; }}
</style>
</head>
<body>
<main>
<div class="controls">
<button id="play" type="button">Play</button>
<input id="slider" type="range" min="0" max="0" value="0" step="1" aria-label="step of the run">
</div>
{body}
<details><summary>The run as text</summary><pre>{text}</pre></details>
<noscript><p>Without JavaScript this page shows how the run ended.</p></noscript>
</main>
<script type="application/json" id="film">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def write(trace: Trace, path: str | os.PathLike[str] | None = None, graph: Any = None) -> Path:
    """The path of the page, written; without one, outbox/ and the name of the workflow. UTF-8."""
    content = page(trace, graph)
    where = Path(path) if path is not None else Path("outbox", f"{_file_name(trace.name)}.html")
    if path is None:
        where.parent.mkdir(exist_ok=True)
    where.write_text(content, encoding="utf-8", errors="xmlcharrefreplace")
    return where


def page(trace: Trace, graph: Any = None) -> str:
    """The page, as one string. `graph` is for a trace that does not hold it; ValueError where there is none at all."""
    film = Film(trace, graph)
    fingerprint = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    return _PAGE.format(
        hash=f"sha256-{fingerprint}", title=escape(shown(f"{trace.name}: the run")), css=css(LOOKS),
        light=variables(LIGHT), dark=variables(DARK), body=film.template.fill(film.slots(len(film) - 1)),
        text=escape("\n".join(map(shown, trace.to_text().splitlines()))), data=_harmless(changes(film)), script=_SCRIPT)


def changes(film: Film) -> dict[str, Any]:
    """The film as data: `steps` holds for each step the slots that change, [slot, text, slot, text, ...], by number."""
    slots: dict[str, int] = {}
    texts: dict[str, int] = {}
    steps: list[list[int]] = []
    times: list[float] = []
    before: dict[int, int] = {}  # slot -> what stands there, by number
    for number in range(len(film)):
        now = {slots.setdefault(slot, len(slots)): texts.setdefault(text, len(texts))
               for slot, text in film.slots(number).items()}
        gone = {slot: texts.setdefault("", len(texts)) for slot in before.keys() - now.keys()}
        step = {slot: text for slot, text in {**now, **gone}.items() if before.get(slot) != text}
        steps.append([number for pair in step.items() for number in pair])
        times.append(round(film[number].t, 6))
        before.update(step)
    return {"slots": list(slots), "texts": list(texts), "steps": steps, "times": times}


def _harmless(data: Any) -> str:
    """JSON that can stand in a page: nothing in it can end the block it stands in, or begin another."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _file_name(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:80] or "run"
