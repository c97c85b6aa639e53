"""The layers stand as they are drawn: who may import whom, and that the package needs the standard library alone.

Read from the source with `ast`: a forbidden import is found wherever it hides, in a function too. Extras are the only
exception: they may be imported inside functions, and only there.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "minigraph"

# One layer: the engine, and the files it is made of.
ENGINE = {"engine", "shape", "state", "past", "crew", "journal", "resume", "sight", "voice"}

# module -> the modules of the package that it may import; "engine" stands for all of ENGINE
WITHIN: dict[str, set[str]] = {
    "clock": set(),
    "shape": set(),
    "state": set(),
    "past": {"state"},
    "journal": {"past", "shape", "state"},
    "resume": {"clock", "engine"},
    "sight": {"crew", "past", "shape", "state"},
    "voice": {"clock", "past", "shape"},
    "crew": {"clock", "journal", "past", "state"},
    "engine": {"clock", "engine"},
    "moments": set(),
    "trace": {"engine", "moments"},
    "dbfile": set(),
    "store": {"engine", "dbfile"},
    "models.base": set(),
    "models.stub": {"models.base", "clock"},
    "models.replay": {"models.base", "clock"},
    "models.border": {"models.base"},
    "models.service": {"models.base", "models.border", "crew"},  # crew, for what streams in is emitted
    "models.anthropic": {"models.base", "models.border", "models.service"},
    "models.openai": {"models.base", "models.border", "models.service"},
    "models.env": {"models.base", "models.stub", "models.anthropic", "models.openai"},
    "gates": {"engine", "models.base"},
    "nested": {"engine", "models.base"},
    "nodes": {"engine", "clock", "models.base", "gates", "nested"},
    "tools": {"engine", "clock", "models.base"},
    "loop": {"engine", "clock", "models.base", "tools"},
    # pictures of a graph: words and colours, facts, marks, and what is made of them
    "palette": set(),
    "words": set(),
    "facts": set(),
    "sheet": {"engine", "facts", "words"},
    "notation": {"engine", "palette", "sheet", "words"},
    "draw": {"notation", "sheet", "words"},
    # charts of a trace
    "canvas": {"palette", "words"},
    "lanes": {"trace"},
    "gantt": {"trace", "canvas", "lanes", "palette", "words"},
    "matrix": {"trace", "canvas", "palette", "words"},
    # what moves: a run at one moment, and moment by moment
    "scene": {"engine", "draw", "notation", "sheet", "words"},
    "panel": {"palette", "scene", "words"},
    "moment": {"panel", "words"},
    "frames": {"engine", "moment", "panel", "sheet", "words"},
    "strip": {"trace", "lanes", "palette", "scene", "words"},
    "film": {"trace", "frames", "panel", "scene", "strip", "words"},
    "playback": {"trace", "film", "panel", "words"},
    "checks": {"engine", "clock", "trace", "models.stub"},
    "kit": set(),
    "pages": {"kit"},
    "workflows.sources": set(),
    "workflows.comparison": {"trace"},
    "terminal": {"words"},
}
# And one another, but for LOOPS_TOO.
WORKFLOW = {"engine", "clock", "nodes", "gates", "nested", "models.base", "models.stub", "trace"}
LOOPS_TOO = {"workflows.brief", "workflows.triage", "workflows.content"}  # they say that they run an agent loop
WIDGET = {"clock", "engine", "trace", "draw", "gantt", "matrix", "frames", "film", "palette", "words"}
EXERCISE = {"checks", "engine", "clock", "trace", "nodes", "gates", "nested", "loop", "tools", "models.base",
            "models.stub", "models.replay"}
WHATEVER_IT_NEEDS = {"cli", "cli_runs", "runs", "__main__", "doctor"}  # but only when it runs: inside functions
# A graph shows itself, a trace writes itself as a page: drawing is loaded when it is asked for.
ON_DEMAND = {("shape", "draw"), ("trace", "playback")}

# module -> what may be imported from outside, inside functions
EXTRAS: dict[str, set[str]] = {
    "models.anthropic": {"anthropic"},
    "models.openai": {"openai"},
    "draw": {"graphviz", "IPython"},
    "canvas": {"matplotlib"},
    "gantt": {"matplotlib"},
    "matrix": {"matplotlib"},
    "pages": {"nbconvert", "nbformat", "pygments", "traitlets"},
    "workflows.sources": {"icalendar", "recurring_ical_events"},
}

FOLDERS = ("workflows.", "exercises.", "widgets.")  # whose modules need no entry of their own

FILES = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))}


def allowed(module: str) -> set[str]:
    """Return the modules of the package that `module` may import."""
    if module.startswith("workflows.") and module not in WITHIN:
        siblings = {name for name in FILES if name.startswith("workflows.")}
        found = WORKFLOW | (siblings | {"loop"} if module in LOOPS_TOO else siblings - LOOPS_TOO)
    elif module.startswith("widgets."):
        found = WIDGET | {name for name in FILES if name.startswith("widgets.")}
    elif module.startswith("exercises."):
        found = EXERCISE | {name for name in FILES if name.startswith(("exercises.", "workflows."))}
    else:
        found = WITHIN[module]
    return found | ENGINE if "engine" in found else found


def extras(module: str) -> set[str]:
    """Return what `module` may import from outside the package and the standard library, inside functions."""
    return {"ipywidgets", "IPython", "mistune"} if module.startswith("widgets.") else EXTRAS.get(module, set())


def imports(source: str, module: str) -> Iterator[tuple[str, bool, int]]:
    """Yield what a module imports, as (name, inside a function?, line); names within the package begin with a dot."""
    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                continue  # never happens when the program runs
            deeper = inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield name_of(alias.name), inside, child.lineno
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    yield from_import(child, alias.name), inside, child.lineno
            else:
                yield from walk(child, deeper)

    def name_of(full: str) -> str:
        return full[len("minigraph"):] or ".__init__" if full.split(".")[0] == "minigraph" else full

    def from_import(node: ast.ImportFrom, name: str) -> str:
        base = node.module or ""
        if node.level:
            package = module.split(".")[:-1] if not module.endswith("__init__") else module.split(".")[:-1]
            above = package[: len(package) - (node.level - 1)]
            base = ".".join(["minigraph", *above, *([base] if base else [])])
        if base.split(".")[0] != "minigraph":
            return base
        inner = base[len("minigraph") + 1:]
        longer = f"{inner}.{name}" if inner else name
        return "." + (longer if longer in FILES or f"{longer}.__init__" in FILES else inner or "__init__")

    yield from walk(ast.parse(source), False)


def complaints(module: str, source: str) -> list[str]:
    """Return what is wrong with the imports of a module, a line each."""
    found = []
    for name, inside, line in imports(source, module):
        where = f"{module}.py, line {line}: imports {name}"
        if not name.startswith("."):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in extras(module):
                found.append(f"{where}, which is not in the standard library")
            elif top not in sys.stdlib_module_names and not inside:
                found.append(f"{where} when it is loaded; import an extra inside the function that needs it")
            continue
        other = name[1:]
        if module in WHATEVER_IT_NEEDS:
            continue
        if other not in allowed(module) and not (inside and (module, other) in ON_DEMAND):
            found.append(f"{where}, which stands above it or beside it")
    return found


def modules() -> list[str]:
    return [module for module in FILES if not module.endswith("__init__")]


@pytest.mark.parametrize("module", modules())
def test_layer(module: str) -> None:
    """A module imports what its layer may, and nothing else; a new module has to be given its place first."""
    assert module in WITHIN or module in WHATEVER_IT_NEEDS or module.startswith(FOLDERS), (
        f"minigraph/{module.replace('.', '/')}.py has no place in the layers yet")
    assert complaints(module, FILES[module].read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", [m for m in FILES if m.endswith("__init__")])
def test_packages(module: str) -> None:
    """A package's own file loads little: the top one the engine's names, that of models the two that need nothing."""
    may = {"__init__": {".clock", *("." + name for name in ENGINE)},
           "models.__init__": {".models.base", ".models.stub"},
           "widgets.__init__": {name for name in map(".{}".format, FILES) if name.startswith(".widgets.")}}
    names = {name for name, _, _ in imports(FILES[module].read_text(encoding="utf-8"), module)}
    inside = {name for name in names if name.startswith(".")}
    assert inside <= may.get(module, set())
    assert {name.split(".")[0] for name in names - inside} <= sys.stdlib_module_names


def test_no_module_lies_in_a_circle() -> None:
    """Whatever is loaded when a module is loaded never leads back to it."""
    edges = {module: {name[1:] for name, inside, _ in imports(path.read_text(encoding="utf-8"), module)
                      if name.startswith(".") and not inside} for module, path in FILES.items()}
    seen: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above, module])
        if module not in seen:
            seen.add(module)
            for other in edges.get(module, ()):
                visit(other, (*above, module))

    for module in FILES:
        visit(module, ())


@pytest.mark.parametrize(("module", "line", "words"), [
    ("clock", "from . import engine", "imports .engine"),
    ("nodes", "from .loop import run_loop", "imports .loop"),
    ("nodes", "def f():\n    import minigraph.loop", "imports .loop"),
    ("engine", "import numpy", "standard library"),
    ("engine", "from .models import stub", "imports .models.stub"),
    ("models.stub", "from ..engine import emit", "imports .engine"),
    ("draw", "import graphviz", "inside the function"),
    ("gantt", "def f():\n    import graphviz", "standard library"),
    ("workflows.gather", "class A:\n    def f(self):\n        from ..loop import run_loop", "imports .loop"),
    ("workflows.gather", "from .brief import brief", "imports .workflows.brief"),
    ("workflows.sources", "from .. import engine", "imports .engine"),
    ("shape", "from .draw import draw", "imports .draw"),
    ("trace", "if True:\n    from minigraph import draw", "imports .draw"),
])
def test_the_test_finds_it(module: str, line: str, words: str) -> None:
    """A forbidden import is found wherever it stands; this is what such an import looks like."""
    assert any(words in complaint for complaint in complaints(module, line)), complaints(module, line)


def test_the_test_lets_pass_what_may_pass() -> None:
    """And what is allowed is not complained about."""
    assert complaints("nodes", "import json\nfrom . import clock\nfrom .models.base import Model") == []
    assert complaints("draw", "def f():\n    import graphviz.backend") == []
    assert complaints("shape", "def f():\n    from . import draw") == []
    assert complaints("workflows.brief", "from ..loop import run_loop") == []


LOADED = """
import sys
sys.path.insert(0, {root!r})
before = set(sys.modules)
{statement}
new = {{name.split(".")[0] for name in set(sys.modules) - before}}
print(sorted(new - set(sys.stdlib_module_names) - {{"minigraph"}}))
print(sorted(name for name in sys.modules if name.startswith("minigraph.")))
"""


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("statement", ["import minigraph", "from minigraph import *", "import minigraph.trace",
                                       "import minigraph.nodes, minigraph.loop, minigraph.models.stub",
                                       "import minigraph.draw, minigraph.gantt", "import minigraph.workflows.gather",
                                       "import minigraph.workflows.brief", "import minigraph.cli"])
def test_loading_needs_the_standard_library_alone(statement: str) -> None:
    """In a Python without any installed package, everything can be loaded, and nothing else is loaded with it."""
    out = python(LOADED.format(root=str(ROOT), statement=statement))
    assert out.startswith("[]\n"), out


def test_loading_the_package_loads_the_engine_and_no_more() -> None:
    """`import minigraph` loads the engine and what it stands on: no nodes, models, loops, pictures or workflows."""
    out = python(LOADED.format(root=str(ROOT), statement="import minigraph"))
    loaded = {name.removeprefix("minigraph.") for name in ast.literal_eval(out.splitlines()[1])}
    assert loaded <= {"clock", *ENGINE}


def test_loading_reads_no_environment_and_starts_nothing() -> None:
    """Loading the package reads no environment variable and starts no thread."""
    out = python(f"""
import os, sys, threading
class Watched(dict):
    def __getitem__(self, key): raise SystemExit(f"read {{key}}")
    get = __contains__ = lambda self, key, default=None: self[key]
sys.path.insert(0, {str(ROOT)!r})
import concurrent.futures.thread, logging, inspect, contextvars, copy, pickle, difflib, html, json, queue, heapq
import traceback
os.environ = Watched()
import minigraph
print(threading.active_count())
""")
    assert out.strip() == "1"
