"""What this machine has, what it lacks, and the command that brings it; found by trying, not by asking for versions.

    OK       kernel       one started and computed 1+1 in 1.4 s
    missing  pictures     matplotlib is not installed
                          -> python -m pip install -e ".[notebooks]"

It runs on Python alone. The core is what the engine needs: where that works, the rest is a note.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __version__
from .kit import KitError, course_dir, course_files, python_command, quoted

OK, MISSING, BROKEN = "OK", "missing", "broken"

# extra -> what it installs, and which versions will do; pyproject.toml says the same
EXTRAS: dict[str, dict[str, str]] = {
    "calendar": {"icalendar": ">=7", "recurring-ical-events": ">=3.8.1"},
    "pictures": {"matplotlib": ">=3.8", "graphviz": ">=0.20", "graphviz-pure": ">=0.2.2,<0.3"},
    "notebooks": {"jupyterlab": ">=4.2", "ipywidgets": ">=8.1"},
    "test": {"hypothesis": ">=6.100", "mypy": ">=1.10", "nbclient": ">=0.10", "nbval": ">=0.11,<0.12",
             "playwright": ">=1.50", "pytest": ">=8",
             "pytest-xdist": ">=3.6", "ruff": ">=0.6"},
}
INCLUDES = {"notebooks": ["calendar", "pictures"]}  # an extra -> those that come with it


@dataclass
class Finding:
    """One line of the report. `todo` is what to type, or to do, if it is not OK; the core fails only if `core` does."""

    name: str
    status: str  # OK, missing, broken
    detail: str
    todo: str = ""
    core: bool = False


@dataclass
class Report:
    """All findings; `.works` is whether the core does."""

    findings: list[Finding]

    @property
    def works(self) -> bool:
        return all(each.status == OK for each in self.findings if each.core)

    def to_dict(self) -> dict[str, Any]:
        return {"works": self.works, "version": __version__, "findings": [vars(each) for each in self.findings]}

    def __str__(self) -> str:
        width = max(len(each.name) for each in self.findings)
        lines = [f"minigraph {__version__} on {platform.system()} {platform.release()}, {platform.machine()}", ""]
        for each in self.findings:
            first, *more = each.detail.splitlines() or [""]
            lines.append(f"{each.status:7}  {each.name:{width}}  {first}")
            lines += [f"{'':7}  {'':{width}}  {line}" for line in more]
            if each.status != OK and each.todo:
                lines.append(f"{'':7}  {'':{width}}  -> {each.todo}")
        lacking = sum(each.status != OK for each in self.findings)
        if not self.works:
            closing = "The core does not work here: see the lines above that say broken or missing."
        elif lacking:
            closing = f"The core works. {_things(lacking)} to look at, above; each says what to do."
            lacks = {each.name for each in self.findings if each.status != OK}
            if len(lacks & {"calendar", "pictures", "notebooks"}) > 1:
                closing += f"\nMost of that comes with: {install_command('notebooks')}"
        else:
            closing = "All of it works."
        return "\n".join([*lines, "", closing, *([f"Begin with: {_beginning()}"] if self.works else [])])


def examine(seconds: float = 60) -> Report:
    """Looks at everything; returns the report. `seconds` is how long a kernel may take to start and to compute."""
    def kernel() -> Iterator[Finding]:
        yield from _kernel(seconds)

    checks: list[Callable[[], Iterator[Finding]]] = [
        _python, _environment, _engine, _course, _memory, _outbox, _terminal, _extras, _pictures, kernel]
    return Report([finding for check in checks for finding in _guarded(check)])


def _guarded(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:  # a doctor who faints helps nobody
        name = getattr(check, "__name__", "check").strip("_<>")
        yield Finding(name, BROKEN, _told(error), core=name in ("python", "engine"))


# ---- what the core needs


def _python() -> Iterator[Finding]:
    found = f"{platform.python_version()}, {platform.python_implementation()}, {sys.executable}"
    if sys.version_info < (3, 10):  # noqa: UP036 - nobody hinders anyone from running a clone with an older one
        yield Finding("python", BROKEN, f"{found}: too old, minigraph needs 3.10", "install a newer Python", core=True)
    else:
        yield Finding("python", OK, found, core=True)


def _environment() -> Iterator[Finding]:
    venv = "py -m venv .venv" if sys.platform == "win32" else "python3 -m venv .venv"
    activate = ".venv\\Scripts\\Activate.ps1" if sys.platform == "win32" else "source .venv/bin/activate"
    both = f"{venv}, then {activate}"
    managed = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    if os.environ.get("CONDA_PREFIX") and Path(sys.prefix) == Path(os.environ["CONDA_PREFIX"]):
        yield Finding("environment", OK, f"conda, {sys.prefix}")
    elif sys.prefix != sys.base_prefix:
        yield Finding("environment", OK, f"virtual, {sys.prefix}")
    elif managed.exists():
        yield Finding("environment", MISSING, "none: this Python belongs to the system, and pip will not install to it",
                      both)
    else:
        yield Finding("environment", OK, "none: what pip installs is there for all your projects")
    if not _installer():
        yield Finding("pip", MISSING, "neither pip nor uv is here, so nothing can be installed",
                      f"{python_command()} -m ensurepip --upgrade, or make an environment: {both}")


def _engine() -> Iterator[Finding]:
    from . import END, START, Graph, run_graph
    from .clock import sleep, virtual_time
    from .trace import Trace
    graph = Graph("doctor")
    graph.add_node("ask", lambda state: sleep(2) or {"ask": 2})  # type: ignore[func-returns-value]
    graph.add_node("look", lambda state: sleep(1) or {"look": 1})  # type: ignore[func-returns-value]
    graph.add_node("join", lambda state: {"sum": state["ask"] + state["look"]})
    graph.add_edge(START, "ask").add_edge(START, "look")
    graph.add_edge("ask", "join").add_edge("look", "join").add_edge("join", END)
    trace = Trace()
    with virtual_time():
        state = run_graph(graph, {}, trace)
    right = state.status == "done" and state["sum"] == 3 and trace.seconds == 2
    where = Path(__file__).resolve().parent
    detail = f"minigraph {__version__} ran a graph of three nodes in two waves; it is in {where}"
    yield Finding("engine", OK if right else BROKEN, detail if right else f"a graph went wrong: {state!r}",
                  "install minigraph again", core=True)


# ---- what the course needs


def _course() -> Iterator[Finding]:
    from .workflows.sources import data_dir
    again = "take the clone, or the wheel, again"
    try:
        notebooks = [path for path in course_files() if path.suffix == ".ipynb"]
        yield Finding("course", OK if notebooks else MISSING, f"{len(notebooks)} notebooks in {course_dir()}", again)
    except KitError as error:
        yield Finding("course", MISSING, str(error), again)
    there = (data_dir() / "memory.jsonl").is_file()
    yield Finding("data", OK if there else MISSING, f"what the workflows read, in {data_dir()}", again)


def _memory() -> Iterator[Finding]:
    newer = "take a Python from python.org, conda or your system's packages: theirs have it"
    try:
        import sqlite3
    except ImportError as error:
        yield Finding("sqlite", MISSING, f"this Python was built without it: {error}", newer)
        return
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE notes USING fts5(text)")
        database.execute("INSERT INTO notes VALUES ('low tide')")
        found = database.execute("SELECT count(*) FROM notes WHERE notes MATCH 'tide'").fetchone()[0]
        yield Finding("sqlite", OK if found == 1 else BROKEN, f"{sqlite3.sqlite_version}, with full-text search", newer)
    except sqlite3.Error as error:
        yield Finding("sqlite", MISSING, f"{sqlite3.sqlite_version} has no full-text search (FTS5), so the memory "
                                         f"cannot be searched: {error}", newer)
    finally:
        database.close()


def _outbox() -> Iterator[Finding]:
    folder = Path("outbox")
    new = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, encoding="utf-8") as file:
            file.write("\u2713")
        yield Finding("outbox", OK, f"a file can be written to {folder.resolve()}")
    except OSError as error:
        yield Finding("outbox", BROKEN, f"nothing can be written to {folder.resolve()}: {error.strerror or error}",
                      "change to a folder of yours, or name one with --outbox")
    finally:
        if new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _terminal() -> Iterator[Finding]:
    encoding = getattr(sys.stdout, "encoding", None) or "unknown"
    try:
        "\u2713 \u2717 \u2192 \u00e9 \u6f6e".encode(encoding)
        yield Finding("terminal", OK, f"prints {encoding}")
    except (UnicodeError, LookupError):
        setting = '$env:PYTHONUTF8 = "1"' if sys.platform == "win32" else "export PYTHONUTF8=1"
        yield Finding("terminal", BROKEN, f"prints {encoding}, which lacks letters and marks that minigraph writes",
                      setting)


def _extras() -> Iterator[Finding]:
    for extra, packages in EXTRAS.items():
        there, lacking, wrong = [], [], []
        for package, wanted in packages.items():
            try:
                version = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                lacking.append(package)
                continue
            there.append(f"{package} {version}")
            if not will_do(version, wanted):
                wrong.append(f"{package} {version} is there, and {wanted} is needed")
        parts = [*wrong, f"not installed: {', '.join(lacking)}" if lacking else "", ", ".join(there)]
        detail = "; ".join(part for part in parts if part)
        who = " (only for those who change minigraph)" if extra == "test" and lacking else ""
        yield Finding(extra, BROKEN if wrong else MISSING if lacking else OK, detail + who, install_command(extra))


def will_do(version: str, wanted: str) -> bool:
    """Does a version satisfy `>=6`, or `>=0.2.2,<0.3`? Only the numbers before the first letter count."""
    def numbers(text: str) -> list[int]:
        found = re.match(r"\d+(\.\d+)*", text)
        parts = [int(part) for part in found[0].split(".")] if found else []
        return parts + [0] * (6 - len(parts))
    there = numbers(version)
    return all(there >= numbers(bound[2:]) if bound.startswith(">=") else there < numbers(bound[1:])
               for bound in wanted.split(","))


def install_command(extra: str) -> str:
    """What to type for an extra: from the clone where there is one, from its wheelhouse where that is filled."""
    clone = Path(__file__).resolve().parent.parent
    offline = ""
    if (clone / "pyproject.toml").is_file():
        wheels = clone / "wheelhouse"
        offline = f" --no-index --find-links {quoted(wheels)}" if extra != "test" and wheels.is_dir() else ""
        what = f'-e "{"." if clone == Path.cwd() else clone}[{extra}]"'
    else:
        # By name: an index may hold another project that is called minigraph.
        wanted = {key: value for name in [*INCLUDES.get(extra, []), extra] for key, value in EXTRAS[name].items()}
        what = " ".join(f'"{package}{bound}"' for package, bound in wanted.items())
    return f"{_installer() or f'{python_command()} -m pip install'}{offline} {what}"


def _installer() -> str:
    if importlib.util.find_spec("pip") is not None:
        return f"{python_command()} -m pip install"
    return f"uv pip install -p {quoted(sys.executable)}" if shutil.which("uv") else ""


# ---- what is seen


def _pictures() -> Iterator[Finding]:
    from . import END, START, Graph, run_graph
    from .draw import draw
    from .gantt import chart
    from .trace import Trace
    graph = Graph("doctor").add_node("a", lambda state: None).add_edge(START, "a").add_edge("a", END)
    trace = Trace()
    run_graph(graph, {}, trace)
    program = "the system's dot" if shutil.which("dot") else "graphviz-pure"
    yield _drawn("graph drawn", lambda: draw(graph).png(), f"by {program}", "")
    slow = "the first one may take a minute, while matplotlib lists the fonts"
    yield _drawn("chart drawn", lambda: chart(trace).png(), "by matplotlib", slow)


def _drawn(name: str, png: Callable[[], bytes], how: str, note: str) -> Finding:
    todo = install_command("pictures")
    try:
        started = time.perf_counter()
        right = png().startswith(b"\x89PNG")
        seconds = time.perf_counter() - started
        detail = f"{how}, in {seconds:.1f} s" + (f"; {note}" if note and seconds > 5 else "")
        return Finding(name, OK if right else BROKEN, detail if right else "what came out is no PNG", todo)
    except ImportError as error:
        return Finding(name, MISSING, _told(error), todo)
    except Exception as error:
        lacking = importlib.util.find_spec("graphviz") is None
        return Finding(name, MISSING if lacking else BROKEN, _told(error), todo)


# Runs in a Python of its own, so that a kernel which hangs can be given up; its folder is not the clone's.
KERNEL = """
import json, sys, tempfile, time
from jupyter_client.manager import start_new_kernel
seconds, said = float(sys.argv[1]), []
started = time.perf_counter()
with tempfile.TemporaryDirectory() as folder:
    manager, client = start_new_kernel(startup_timeout=seconds, kernel_name="python3", cwd=folder)
    try:
        client.execute_interactive("import sys; print(1 + 1, sys.executable)\\nimport minigraph", timeout=seconds,
                                   allow_stdin=False, output_hook=lambda message: said.append(message["content"]))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
text = "".join(part.get("text", "") for part in said)
wrong = [f"{part['ename']}: {part['evalue']}" for part in said if "ename" in part]
print(json.dumps({"text": text.strip(), "wrong": wrong, "seconds": time.perf_counter() - started}))
"""
HANGS = "a firewall that closes 127.0.0.1 does this, and so does a virus scanner at its first look: try again"


def _kernel(seconds: float) -> Iterator[Finding]:
    todo = install_command("notebooks")
    if importlib.util.find_spec("ipykernel") is None or importlib.util.find_spec("jupyter_client") is None:
        yield Finding("kernel", MISSING, "there is none: ipykernel is not installed", todo)
        return
    try:
        done = subprocess.run([sys.executable, "-c", KERNEL, str(seconds)], capture_output=True, encoding="utf-8",
                              errors="replace", timeout=seconds + 5)
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        yield Finding("kernel", BROKEN, f"it did not answer within {seconds:g} s", HANGS)
        return
    except (ValueError, IndexError):
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        hangs = "respond" in reason or "imeout" in reason
        yield Finding("kernel", BROKEN, f"it did not start: {reason}", HANGS if hangs else todo)
        return
    two, _, its = found["text"].partition(" ")
    if two != "2" or not _same_python(its):
        yield Finding("kernel", BROKEN, f"'python3' is another Python: {its or found['text']}",
                      f"{python_command()} -m ipykernel install --sys-prefix")
    elif found["wrong"]:
        yield Finding("kernel", BROKEN, f"it started, but from another folder minigraph cannot be imported: "
                                        f"{found['wrong'][0]}", todo)
    else:
        yield Finding("kernel", OK, f"one started and computed 1+1, in {found['seconds']:.1f} s")


def _same_python(other: str) -> bool:
    def folder(path: str) -> str:
        return os.path.normcase(os.path.abspath(os.path.dirname(path)))
    return folder(other) == folder(sys.executable)


# ---- words


def _beginning() -> str:
    clone = Path(__file__).resolve().parent.parent
    if clone == Path.cwd() and (clone / "Makefile").is_file() and shutil.which("make"):
        return "make lab"
    if importlib.util.find_spec("jupyterlab") is None:
        return f"{python_command()} -m minigraph gather"
    return f"{python_command()} -m minigraph notebooks my_notebooks --lab"


def _things(count: int) -> str:
    return "One thing" if count == 1 else f"{count} things"


def _told(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
