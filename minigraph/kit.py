"""What a student takes along: the course without its answers, and a project of their own that runs at once.

    copy_course("my_notebooks")     # Copied(written=['00_start_here.ipynb', ...], kept=[])
    new_project("my_project")       # Project(folder=my_project, package='my_project', files=[...])

Nothing here overwrites what is there, unless it is told to: a student's work is worth more than a fresh copy.
"""

from __future__ import annotations

import importlib.util
import json
import keyword
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class KitError(ValueError):
    """What was asked for cannot be done; the sentence says why, and the way out."""


# ---- the course, to be written in


@dataclass
class Copied:
    """What a copy of the course did: names of files, relative to the folder."""

    folder: Path
    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # there already, and different: somebody's work


def course_dir() -> Path:
    """The folder of the notebooks: inside the package when it was installed, beside it in a clone."""
    package = Path(__file__).resolve().parent
    inside = package / "notebooks"
    found = inside if inside.is_dir() else package.parent / "notebooks"
    if not found.is_dir():
        raise KitError(f"the course is not here: there is no folder {found}; install minigraph again, from a clone")
    return found


def course_files(*, solutions: bool = False) -> list[Path]:
    """The files of the course, relative to its folder: what a student gets, or what an instructor gets."""
    course = course_dir()
    files = [path.relative_to(course) for path in course.rglob("*") if path.is_file()]
    return sorted(path for path in files if _belongs(path, solutions))


def _belongs(path: Path, solutions: bool) -> bool:
    if path.suffix in (".py", ".pyc") or path.parts[0] == "outbox" or any(part[0] in "._" for part in path.parts):
        return False  # what made the course, and what running it left behind
    # README.md is the instructor's guide: the answers stand in it.
    return solutions or not (path.parts[0] == "solutions" or path.name == "README.md")


def copy_course(folder: str | Path, *, solutions: bool = False, force: bool = False,
                install: str | None = None) -> Copied:
    """Copies the course to `folder` without outputs; returns what was written, and what was kept as it is.

    solutions: the solutions and the instructor's guide too. force: replace files that differ. install: what a first
    cell `%pip install ...` should install, for places like Colab; None: no such cell.
    """
    folder, course = Path(folder), course_dir()
    if folder.exists() and not folder.is_dir():
        raise KitError(f"{folder} is a file; name a folder to copy the course to")
    if course in (folder.resolve(), *folder.resolve().parents):
        raise KitError(f"{folder} lies in the course itself; name a folder elsewhere to copy it to")
    copied = Copied(folder)
    for name in course_files(solutions=solutions):
        content = (course / name).read_bytes()
        if name.suffix == ".ipynb":
            content = _to_be_run(content.decode("utf-8"), install).encode("utf-8")
        _put(folder / name, content, name.as_posix(), copied, force)
    return copied


def _put(path: Path, content: bytes, name: str, copied: Copied, force: bool) -> None:
    if path.exists() and path.read_bytes() == content:
        return
    if path.exists() and not force:
        copied.kept.append(name)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    copied.written.append(name)


def _to_be_run(source: str, install: str | None = None) -> str:
    """A notebook as it was before anybody ran it: no outputs, no counts, no times."""
    notebook = json.loads(source)
    for cell in notebook["cells"]:
        cell.get("metadata", {}).pop("execution", None)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    notebook.setdefault("metadata", {}).setdefault("kernelspec", KERNEL)
    notebook["metadata"].pop("widgets", None)
    if install:
        notebook["cells"].insert(0, {**_cell("code", f'%pip install -q "{install}"', "install"),
                                     "metadata": {"tags": ["skip"]}})
    return _written(notebook)


def _cell(kind: str, source: str, name: str) -> dict[str, Any]:
    more: dict[str, Any] = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source.splitlines(keepends=True), **more}


def _written(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


# ---- JupyterLab


def open_lab(folder: str | Path) -> int:
    """Opens JupyterLab in `folder` and waits for it to end; returns its exit code."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise KitError('JupyterLab is not installed: the extra "notebooks" brings it, in a clone with '
                       'pip install -e ".[notebooks]"')
    command = lab_command(folder)
    if "--no-browser" in command:
        print("no browser here: open the address that JupyterLab prints below, the one with token=", flush=True)
    lab = subprocess.Popen(command)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is JupyterLab's: it asks before it ends
    try:
        return lab.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def lab_command(folder: str | Path) -> list[str]:
    """The command that opens JupyterLab here: also for root, as in a container, and where no browser can start."""
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [sys.executable, "-m", "jupyterlab", str(folder), *as_root, *([] if _has_browser() else ["--no-browser"])]


def _has_browser() -> bool:
    import webbrowser
    if sys.platform not in ("win32", "darwin") and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ):
        return False  # without a screen, Python would pick a text browser, and that takes the terminal
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


# ---- a project of one's own


@dataclass
class Project:
    """A new project: where it is, and what to import."""

    folder: Path
    package: str
    files: list[str]


def new_project(folder: str | Path) -> Project:
    """Writes a small project that runs at once; returns where. KitError if the folder is there already."""
    folder = Path(folder)
    if not folder.name or folder.name == "..":
        raise KitError(f"{str(folder)!r} is no name for a project: name a new folder, such as my_project")
    if os.path.lexists(folder):
        raise KitError(f"{folder} exists already, and nothing in it was touched; name a folder that does not")
    package = package_name(folder.name)
    title = " ".join(re.sub(r"[^\w.,!?()&'\"-]", " ", folder.name).split()) or package  # without markup
    files = {name.replace("PACKAGE", package): text for name, text in FILES.items()}
    for name, text in files.items():
        shown = json.dumps(title, ensure_ascii=False)[1:-1] if name.endswith(".ipynb") else title
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n").replace("PACKAGE", package).replace("TITLE", shown),
                        encoding="utf-8", newline="\n")
    return Project(folder, package, list(files))


def package_name(name: str) -> str:
    """A name that Python can import, and that hides nothing: `My tides!` is my_tides, `json` is json_project."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    found = re.sub(r"\W+", "_", plain).strip("_").lower() or "my_project"
    if found[0].isdigit():
        found = f"project_{found}"
    return f"{found}_project" if _taken(found) else found


def _taken(name: str) -> bool:
    """Would a package of this name hide another one? (A folder of this name where one stands does not count.)"""
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or name in ("minigraph", "tests", "test_flow"):
        return True
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True
    return spec is not None and spec.origin is not None


FLOW = '''
"""Two look-ups at once, and one model call that joins them: replace each function with one of yours.

    python -m minigraph draw PACKAGE.flow:graph
"""

from minigraph import END, START, Graph
from minigraph.clock import sleep
from minigraph.models.stub import ScriptedModel
from minigraph.nodes import llm_node


def search(state):
    sleep(1.5)  # stands for a slow service; in virtual time nobody waits
    return {"found": f"three pages about {state['topic']}"}


def remember(state):
    sleep(0.2)
    return {"notes": f"{state['topic']}: asked last week too"}


def build(model):
    """The graph, around any model: a stub in the test, a live one when you are ready."""
    graph = Graph("PACKAGE")
    graph.add_node("search", search)
    graph.add_node("remember", remember)
    graph.add_node(llm_node("answer", "What about {topic}? Use {found} and {notes}.", "answer", model))
    graph.add_edge(START, "search").add_edge(START, "remember")
    graph.add_edge("search", "answer").add_edge("remember", "answer")
    return graph.add_edge("answer", END)


graph = build(ScriptedModel(lambda messages, tools: "The moon pulls, the water follows.", latency=2.0))
'''

TEST = '''
"""What the graph promises. Run it with `python test_flow.py`, or with pytest."""

from minigraph import run_graph
from minigraph.clock import virtual_time
from minigraph.trace import Trace
from PACKAGE.flow import graph


def test_the_look_ups_run_at_once_and_the_answer_waits_for_both():
    """Two waves; the slower look-up (1.5 s) and the model (2 s) set the time."""
    trace = Trace()
    with virtual_time():  # strict: a node may read only what the edges say comes before it
        state = run_graph(graph, {"topic": "tides"}, trace, strict=True)
    assert state.errors == {}
    assert [[visit.node for visit in wave] for wave in trace.waves()] == [["search", "remember"], ["answer"]]
    assert trace.seconds == 3.5
    assert state["answer"] == "The moon pulls, the water follows."


if __name__ == "__main__":
    test_the_look_ups_run_at_once_and_the_answer_waits_for_both()
    print("1 passed")
'''

README = '''
# TITLE

A graph of three nodes, made with minigraph: two look-ups run at once, and one model call joins what they found.

| File | Holds |
|---|---|
| `PACKAGE/flow.py` | the nodes, and `build(model)`, which joins them to a graph |
| `test_flow.py` | what the graph promises, checked in virtual time: nobody waits |
| `flow.ipynb` | the graph drawn, run and timed |

`python` is the one in which minigraph is installed: activate its environment first. Then, in this folder:

    python test_flow.py
    python -m minigraph draw PACKAGE.flow:graph
    python -m minigraph draw PACKAGE.flow:graph --png flow.png
    python -m jupyterlab flow.ipynb

`python -m pytest` runs the test too, where pytest is installed. If something is missing, `python -m minigraph doctor`
says what, and the command that brings it.

Next: put a function of yours in the place of `search`, then change the test until it says what you want.
'''

# minigraph stands in no list of dependencies: it is installed from a clone, and a package index may hold another
# project of that name.
PYPROJECT = '''
[project]
name = "PACKAGE"
version = "0.1.0"
description = "An agent graph, made with minigraph"
requires-python = ">=3.10"
dependencies = []  # minigraph is installed from its clone: pip install -e path/to/minigraph

[tool.pytest.ini_options]
addopts = "-q"
'''

NOTEBOOK = _written({
    "cells": [
        _cell("markdown", "# TITLE\n\nTwo look-ups run at once; the answer waits for both.", "title"),
        _cell("code", "from minigraph import run_graph\nfrom minigraph.clock import virtual_time\n"
                      "from minigraph.draw import draw\nfrom minigraph.gantt import chart\n"
                      "from minigraph.trace import Trace\nfrom PACKAGE.flow import graph", "imports"),
        _cell("code", "draw(graph)", "graph"),
        _cell("code", "trace = Trace()\nwith virtual_time():\n"
                      "    state = run_graph(graph, {\"topic\": \"tides\"}, trace)\nstate", "run"),
        _cell("markdown", "The chart shows who waited for whom. Without `virtual_time()` the same run takes 3.5 s.",
              "waiting"),
        _cell("code", "chart(trace)", "chart"),
    ],
    "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}},
    "nbformat": 4, "nbformat_minor": 5,
})

FILES = {  # where it goes -> what stands in it; PACKAGE and TITLE are filled in
    "README.md": README,
    "pyproject.toml": PYPROJECT,
    "PACKAGE/__init__.py": '"""An agent graph: see flow.py."""\n',
    "PACKAGE/flow.py": FLOW,
    "test_flow.py": TEST,
    "flow.ipynb": NOTEBOOK,
}


# ---- commands to type


def python_command(*, elsewhere: bool = False) -> str:
    """How this Python is called in the terminal: `python` where that is it, else its path.

    elsewhere: the command will be typed in another folder, so a relative path will not do.
    """
    for name in ("python", "python3"):
        found = shutil.which(name)
        if found and _same(found, sys.executable):
            return name
    path = sys.executable if elsewhere or not _near(sys.executable) else os.path.relpath(sys.executable)
    return f"& {quoted(path)}" if sys.platform == "win32" and " " in path else quoted(path)


def quoted(path: str | Path) -> str:
    """A path as one word of the terminal: PowerShell's on Windows, a POSIX shell's elsewhere."""
    if sys.platform != "win32":
        return shlex.quote(str(path))
    return f'"{path}"' if re.search(r"[^\w\\/.:~-]", str(path)) else str(path)


def _same(one: str, other: str) -> bool:
    # Not resolved: the python of a virtual environment is a link to one outside of it.
    return os.path.normcase(os.path.abspath(one)) == os.path.normcase(os.path.abspath(other))


def _near(path: str) -> bool:
    return os.path.normcase(os.path.abspath(path)).startswith(os.path.normcase(os.getcwd()) + os.sep)
