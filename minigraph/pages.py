"""The course as pages to read and slides to show: HTML that asks no network for anything.

    write_site("site")        # a page for each notebook, the glossary, the translation, and index.html
    write_slides("slides")    # a deck for each notebook: its cells tagged `slide`

Both are made from the committed notebooks, with the outputs that stand in them. nbconvert turns cells into HTML; its
own page asks a CDN for require.js, MathJax and Mermaid, so the page around the cells is written here.
"""

from __future__ import annotations

import importlib.util
import json
import posixpath
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from pathlib import Path
from typing import Any

from .kit import KitError, course_dir, course_files

GLOSSARY, TRANSLATION, GUIDE = "GLOSSARY.md", "TRANSLATION.md", "README.md"


@dataclass
class Written:
    """What was written, and what is wrong with it, a sentence each."""

    folder: Path
    files: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@dataclass
class Lesson:
    """What index.html says about a notebook; all of it is read from the notebook."""

    name: str  # 02_waves.ipynb
    title: str
    question: str  # as HTML, as are the others
    remember: str
    minutes: int


# ---- the site


def write_site(folder: str | Path, *, solutions: bool = False) -> Written:
    """Writes the course as HTML pages; returns what was written. With `solutions`, those and the guide too."""
    _need_nbconvert()
    folder, course = _new_folder(folder), course_dir()
    written = Written(folder)
    names = [path.as_posix() for path in course_files(solutions=solutions)]
    notebooks = [name for name in names if name.endswith(".ipynb")]
    texts = [name for name in names if name.endswith(".md")]
    lessons = [lesson(name, json.loads((course / name).read_text(encoding="utf-8")))
               for name in notebooks if "/" not in name]
    pages = {name: _notebook_html(course / name, name, written.complaints) for name in notebooks}
    pages |= {name: _markdown((course / name).read_text(encoding="utf-8")) for name in texts}
    pages["index"] = _index(lessons, pages)
    for name, body in pages.items():
        body = _linked(name, body, pages, names, written.complaints)
        html = _page(name, body, lessons)
        written.complaints += [f"{name}: it loads {url} from the network" for url in loaded(html)]
        _save(written, _address(name), html)
    for name in set(names) - set(pages):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((course / name).read_bytes())
        written.files.append(name)
    return written


def lesson(name: str, notebook: dict[str, Any]) -> Lesson:
    """What the notebook says about itself: title, question, minutes (of the cell tags), remembered sentence."""
    cells = [(cell, "".join(cell["source"])) for cell in notebook["cells"]]
    prose = [text for cell, text in cells if cell["cell_type"] == "markdown"]
    title = re.search(r"^# (.+)$", prose[0] if prose else "", re.MULTILINE)
    questions = [text for text in (prose[0] if prose else "").split("\n\n") if re.search(r"\?\*\*", text)]
    remember = re.findall(r"\*\*Remember:?\*\*:?\s*(.+?)(?:\n\s*\n|\Z)", "\n\n".join(prose), re.DOTALL)
    minutes = sum(int(tag.removeprefix("minutes:")) for cell, _ in cells
                  for tag in cell.get("metadata", {}).get("tags", []) if re.fullmatch(r"minutes:\d+", tag))
    return Lesson(name, title[1].strip() if title else name, _inline(_end_of(questions[0])) if questions else "",
                  _inline(remember[0]) if remember else "", minutes)


def _end_of(paragraph: str, most: int = 220) -> str:
    """A paragraph, or its last two sentences if it is long."""
    text = " ".join(paragraph.split())
    return text if len(text) <= most else " ".join(re.split(r"(?<=[.!?:]) ", text)[-2:])


def _notebook_html(path: Path, name: str, complaints: list[str]) -> str:
    import nbformat
    from nbconvert import HTMLExporter
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    if not any(cell.get("outputs") for cell in notebook.cells):
        complaints.append(f"{name}: it has no outputs; run it before it becomes a page")
    exporter = HTMLExporter(template_name="basic")  # type: ignore[no-untyped-call]
    body: str = exporter.from_notebook_node(notebook)[0]
    return body


def _markdown(text: str) -> str:
    from nbconvert.filters import markdown2html
    html: str = markdown2html(text)
    return f'<div class="text_cell_render">{html}</div>'


def _inline(text: str) -> str:
    """A sentence of Markdown as HTML, without a paragraph around it."""
    found = re.search(r"<p>(.*?)</p>", _markdown(" ".join(text.split())), re.DOTALL)
    return found[1] if found else escape(text)


def _index(lessons: Sequence[Lesson], pages: dict[str, str]) -> str:
    rows = "".join(
        f'<tr><td><a href="{each.name}">{escape(each.name[:2])} {escape(each.title)}</a><br>{each.question}</td>'
        f"<td class=\"number\">{each.minutes or ''}</td><td>{each.remember}</td></tr>\n" for each in lessons)
    more = {GLOSSARY: "what the words mean", TRANSLATION: "what they are called in LangGraph, asyncio and Airflow",
            GUIDE: "for the instructor"}
    links = "".join(f'<li><a href="{name}">{_title_of(pages[name])}</a>: {words}</li>\n'
                    for name, words in more.items() if name in pages)
    return (f'<div class="text_cell_render"><h1>Agent graphs, one concept at a time</h1>\n'
            f"<p>The course as pages: every picture and number on them was computed by the code above it. To run and "
            f"change it, and to have exercises answer, open the notebooks.</p>\n<table class=\"course\"><thead><tr>"
            f"<th>Notebook</th><th>Minutes</th><th>Remember</th></tr></thead>\n<tbody>{rows}</tbody></table>\n"
            f"<ul>{links}</ul></div>")


def _title_of(body: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)(?:<a class=\"anchor-link\"|</h1>)", body, re.DOTALL)
    return found[1].strip() if found else "minigraph"


def _page(name: str, body: str, lessons: Sequence[Lesson]) -> str:
    up = "../" * name.count("/")
    names = [each.name for each in lessons]
    steps = [f'<a href="{up}index.html">The course</a>']
    if name in names:
        at = names.index(name)
        steps += [f'<a rel="{rel}" href="{up}{_address(other.name)}">{words}</a>' for rel, words, other in [
            ("prev", f"&larr; {escape(lessons[at - 1].title)}", lessons[at - 1] if at else None),
            ("next", f"{escape(lessons[at + 1].title) if at + 1 < len(names) else ''} &rarr;",
             lessons[at + 1] if at + 1 < len(names) else None)] if other]
    steps += [f'<a href="{up}{_address(text)}">{words}</a>' for text, words in
              [(GLOSSARY, "Glossary"), (TRANSLATION, "Translation")] if text != name]
    nav = " ".join(steps) if name != "index" else ""
    bar = '<nav aria-label="{}">' + nav + "</nav>\n" if nav else ""
    title = re.sub(r"<[^>]+>", "", _title_of(body))
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title} - minigraph</title>\n<style>{STYLE}{_code_style()}</style>\n</head>\n"
            f"<body>\n{bar.format('course')}<main>\n{body}\n</main>\n"
            f"{bar.format('course, again')}</body>\n</html>\n")


def _address(name: str) -> str:
    return re.sub(r"\.(ipynb|md)$", "", name) + ".html"


def _linked(page: str, body: str, pages: dict[str, str], files: Sequence[str], complaints: list[str]) -> str:
    """The page with links to notebooks and texts turned to their pages; says which lead nowhere."""
    def link(found: re.Match[str]) -> str:
        href = unescape(found[2])
        if re.match(r"[a-z][a-z0-9+.-]*:|//", href, re.IGNORECASE):
            return found[0]
        path, _, anchor = href.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if target not in pages and target not in files:
            complaints.append(f"{page}: {href!r} leads nowhere in the course")
        elif anchor and target in pages and anchor not in _anchors(pages[target]):
            complaints.append(f"{page}: {href!r}: there is no heading {anchor!r} in {target}")
        if target not in pages or not path:
            return found[0]
        return f'{found[1]}"{escape(_address(path) + ("#" + anchor if anchor else ""))}"'
    return re.sub(r'(\s(?:href|src)=)"([^"]*)"', link, body)


def _anchors(body: str) -> set[str]:
    return {unescape(name) for name in re.findall(r'\sid="([^"]*)"', body)}


def loaded(html: str) -> list[str]:
    """The addresses on other machines that a browser would ask when it shows this page; links do not count."""
    code = re.sub(r"<pre.*?</pre>", "", html, flags=re.DOTALL)
    tags = re.findall(r"<(?:script|link|img|iframe|source|video|audio|embed|object|track|use|image)\b[^>]*>", code)
    found = re.findall(r"""(?:src|href|data|srcset|poster)\s*=\s*["']?\s*((?:https?:)?//[^"'\s>]+)""", "\n".join(tags))
    styles = "\n".join(re.findall(r"<style.*?</style>", code, re.DOTALL))
    styles = re.sub(r"/\*.*?\*/", "", styles, flags=re.DOTALL)
    found += re.findall(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')\s;]+)""", styles)
    scripts = "\n".join(re.findall(r"<script.*?</script>", code, re.DOTALL))
    return found + re.findall(r"""(?:\bfrom|\bimport\(?|require\()\s*["']((?:https?:)?//[^"']+)""", scripts)


def _code_style() -> str:
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
    css: str = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    return re.sub(r"background: #[0-9a-f]+;", "", css, count=1)


STYLE = """
body { margin: 0 auto; max-width: 50rem; padding: 1rem; color: #1a1a1a; background: #fff; line-height: 1.55;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: .4rem 0; font-size: .9rem; }
a { color: #00517d; }
h1, h2, h3 { line-height: 1.25; margin: 2rem 0 .6rem; }
a.anchor-link { visibility: hidden; text-decoration: none; padding-left: .4rem; }
:hover > a.anchor-link { visibility: visible; }
.prompt { display: none; }
.highlight, .output_area { overflow-x: auto; }
pre { margin: 0; font: .86rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; }
.input_area { background: #f4f6f8; border-left: 3px solid #56b4e9; padding: .6rem .8rem; margin: .8rem 0 .2rem; }
.text_cell_render pre { background: #f4f6f8; padding: .6rem .8rem; overflow-x: auto; }
.output_subarea { padding: .4rem .8rem; }
.output_area img { max-width: 100%; height: auto; }
.output_stderr, .output_error { border-left: 3px solid #d55e00; }
table { border-collapse: collapse; margin: .8rem 0; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem; border-bottom: 1px solid #d0d7de; }
.number { text-align: right; }
td p { margin: 0; }
td code { overflow-wrap: anywhere; }
@media print { nav { display: none; } }
"""


# ---- slides


def write_slides(folder: str | Path, *, reveal: str | Path | None = None) -> Written:
    """Writes a deck for each notebook that has cells tagged `slide`; returns what was written.

    reveal: a copy of reveal.js (the folder with `dist` in it); None: the one that the package sphinx-revealjs ships,
    if it is installed. Each deck is one file.
    """
    _need_nbconvert()
    parts, folder, course = _reveal_parts(reveal), _new_folder(folder), course_dir()
    written, decks = Written(folder), []
    for name in [path.as_posix() for path in course_files() if path.suffix == ".ipynb"]:
        notebook = json.loads((course / name).read_text(encoding="utf-8"))
        html = _deck(course / name, parts)
        if not html:
            written.complaints.append(f"{name}: no cell is tagged `slide`, so it has no slides")
            continue
        written.complaints += [f"{name}: its slides load {url} from the network" for url in loaded(html)]
        decks.append((lesson(name, notebook).title, name.replace(".ipynb", ".slides.html")))
        _save(written, decks[-1][1], html)
    links = "".join(f'<li><a href="{address}">{escape(address[:2])} {escape(title)}</a></li>\n'
                    for title, address in decks)
    _save(written, "index.html", _page("index", (
        f'<div class="text_cell_render"><h1>Slides</h1>\n<ul>{links}</ul>\n<p>Space goes on, Shift+Space goes back, '
        f"Esc shows all, S opens the speaker's view, and ?print-pdf in the address prints.</p></div>"), []))
    return written


def _deck(path: Path, parts: dict[str, str]) -> str:
    """The slides of a notebook; empty if no cell is tagged."""
    import nbformat
    from nbconvert import SlidesExporter
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    notebook.cells = [cell for cell in notebook.cells if "slide" in cell.metadata.get("tags", [])]
    if not notebook.cells:
        return ""
    for cell in notebook.cells:  # prose opens a new slide, code goes below it
        cell.metadata["slideshow"] = {"slide_type": "slide" if cell.cell_type == "markdown" else "subslide"}
    notebook.cells[0].metadata["slideshow"]["slide_type"] = "slide"
    exporter = SlidesExporter(  # type: ignore[no-untyped-call]
        raw_template=DECK, exclude_input_prompt=True, exclude_output_prompt=True, exclude_anchor_links=True)
    html: str = exporter.from_notebook_node(notebook, {"deck": parts})[0]
    html = re.sub(r'href="([^"/:#]+)\.ipynb(?:#[^"]*)?"', r'href="\1.slides.html"', html)
    return re.sub(r'<a href="[^":]+\.md(?:#[^"]*)?">(.*?)</a>', r"\1", html)  # texts have no slides


def _reveal_parts(reveal: str | Path | None) -> dict[str, str]:
    """reveal.js as texts to be put into a page."""
    folder = Path(reveal) if reveal is not None else _installed_reveal()
    try:
        parts = {"css": "dist/reveal.css", "js": "dist/reveal.js", "notes": "plugin/notes/notes.js"}
        texts = {part: (folder / name).read_text(encoding="utf-8") for part, name in parts.items()}
    except OSError as error:
        raise KitError(f"{folder} is no copy of reveal.js 4 or newer: it has no {Path(error.filename).name}") from None
    return {part: text.replace("</script", "<\\/script") for part, text in texts.items()}


def _installed_reveal() -> Path:
    beside = Path(sys.prefix) / "reveal" / "sphinx_revealjs"  # where `make slides` puts it, away from the packages
    spec = importlib.util.find_spec("sphinx_revealjs")
    inside = Path(spec.origin).parent if spec and spec.origin else beside
    for package in (beside, inside):
        if (package / "_static" / "revealjs").is_dir():
            return package / "_static" / "revealjs"
    raise KitError('slides need reveal.js, and nbconvert ships none; this brings it: pip install --no-deps --target '
                   f'"{Path(sys.prefix) / "reveal"}" "sphinx-revealjs==3.2.1"')


# The slides of nbconvert, less what they load: no jQuery, require.js, MathJax, Mermaid or theme from elsewhere.
DECK = """
{%- extends 'reveal/index.html.j2' -%}
{%- block header -%}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ resources.metadata.name | escape_html }} - slides</title>
<style>{{ resources.deck.css }}</style>
{% for css in resources.inlining.css %}<style>{{ css }}</style>{% endfor %}
{{ resources.include_css("static/index.css") }}
{{ resources.include_css("static/theme-light.css") }}
<style>
html, body, main { height: 100%; margin: 0; background: #fff; }
a.anchor-link, .jp-Collapser { display: none; }
.jp-Notebook { padding: 0; }
:root { --jp-ui-font-size1: 20px; --jp-content-font-size1: 22px; --jp-code-font-size: 18px; }
.reveal .slides { text-align: left; }
.reveal .slides section { max-height: 100%; overflow-y: auto; }
.reveal .slides > section.stack { overflow: visible; }
.reveal .jp-OutputArea-output img { max-height: 400px; width: auto; height: auto; max-width: 100%; }
.reveal .slide-number { right: auto; left: 8px; }
.reveal h1 { font-size: 2em; } .reveal h2 { font-size: 1.5em; }
</style>
</head>
{%- endblock header -%}
{%- block footer_js -%}
<script>{{ resources.deck.js }}</script>
<script>{{ resources.deck.notes }}</script>
<script>
Reveal.initialize({ controls: true, progress: true, hash: true, slideNumber: "c/t", transition: "none", center: false,
  width: 1100, height: 720, margin: 0.04, plugins: [RevealNotes] });
</script>
{%- endblock footer_js -%}
"""


# ---- helpers


def _need_nbconvert() -> None:
    if importlib.util.find_spec("nbconvert") is None:
        raise KitError('pages need nbconvert: the extra "notebooks" brings it, in a clone with '
                       'pip install -e ".[notebooks]"')


def _new_folder(folder: str | Path) -> Path:
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise KitError(f"{folder} is a file; name a folder to write to")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _save(written: Written, name: str, html: str) -> None:
    path = written.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html, encoding="utf-8", newline="\n")
    written.files.append(name)
