"""Gather proposes and cannot act, because of what it can import and what it passes to its model.

The check reads source, not promises: it follows every import from the gather workflow through the project, those
inside functions and in package __init__s included, and looks at each module it reaches. Then the check is checked:
each violation planted in a copy of the package must turn it red.
"""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from minigraph.models.base import Message, Reply, ToolCall
from minigraph.workflows import gather

ROOT = Path(__file__).resolve().parent.parent
GATHER = "minigraph.workflows.gather"

# What the modules may import from outside. A name that is missing here is refused, not overlooked.
HARMLESS = {
    "__future__", "base64", "collections", "contextlib", "contextvars", "copy", "dataclasses", "datetime", "difflib",
    "functools", "hashlib", "heapq", "html", "inspect", "io", "itertools", "json", "logging", "math", "numbers",
    "operator", "os", "pathlib", "pickle", "queue", "re", "reprlib", "shutil", "sqlite3", "string",
    "sys", "sysconfig", "textwrap", "threading",
    "time", "traceback", "types", "typing", "unicodedata", "warnings", "weakref", "xml.etree", "xml.sax", "zoneinfo",
    "concurrent.futures",
    "icalendar", "recurring_ical_events",  # the calendar
    "graphviz",  # a graph that is shown in a notebook draws itself
}
LOOP = {"agent_node", "run_loop", "ToolRegistry", "RunAgent"}
WAYS_AROUND = {"__import__", "import_module", "eval", "exec", "compile", "__builtins__", "__subclasses__",
               "__globals__", "ProcessPoolExecutor", "load_extension", "enable_load_extension"}
PROCESSES = re.compile(r"system|popen|fork|forkpty|kill|killpg|startfile|posix_spawnp?|(exec|spawn)(l|v)p?e?")
ONLY = {"shutil": {"which"}, "sys": {"version_info", "platform", "stdout", "stderr", "maxsize", "getrecursionlimit"}}


# ---- the check


def problems(root: Path) -> list[str]:
    """What stands against "gather cannot act" in the package under `root`; [] if nothing does."""
    return [f"{module}: {problem}" for module, file in reachable(root).items()
            for problem in _problems_in(_nodes(file.read_text(encoding="utf-8")), module, root)]


@cache
def _nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def reachable(root: Path) -> dict[str, Path]:
    """Module -> its file, for gather and all project modules that it can import, directly or not."""
    found: dict[str, Path] = {}
    todo = [GATHER]
    while todo:
        module = todo.pop()
        parts = module.split(".")
        for end in range(1, len(parts) + 1):  # importing a.b.c runs a and a.b too
            name = ".".join(parts[:end])
            file = _file(root, name)
            if file and name not in found:
                found[name] = file
                todo += [target for target, _ in _imports(_nodes(file.read_text(encoding="utf-8")), name, root)
                         if target.split(".")[0] == "minigraph"]
    return found


def _file(root: Path, module: str) -> Path | None:
    path = root.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _imports(nodes: list[ast.AST], module: str, root: Path) -> Iterator[tuple[str, str]]:
    """(module, the name taken from it or '') for every import statement, wherever it stands."""
    file = _file(root, module)
    package = module if file and file.name == "__init__.py" else module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield (inner, "") if _file(root, inner) else (base, alias.name)


def _problems_in(nodes: list[ast.AST], module: str, root: Path) -> Iterator[str]:
    if module == "minigraph.loop":
        yield "the loop can be imported"
    for target, name in _imports(nodes, module, root):
        outside = target.split(".")[0] != "minigraph"
        if outside and target.split(".")[0] not in HARMLESS and target not in HARMLESS:
            yield f"imports {target}"
        if name in LOOP | WAYS_AROUND | {"*"} or (outside and PROCESSES.fullmatch(name)):
            yield f"imports {name} from {target}"
        if target in ONLY and name and name not in ONLY[target]:
            yield f"imports {name} from {target}"
    for node in nodes:
        where = f" (line {getattr(node, 'lineno', '?')})"
        named = {ast.Name: "id", ast.Attribute: "attr", ast.FunctionDef: "name", ast.ClassDef: "name"}.get(type(node))
        name = getattr(node, named) if named else ""
        if name in LOOP | WAYS_AROUND and not (name == "compile" and _is_on(node, "re")):
            yield f"names {name}" + where
        if isinstance(node, ast.Attribute):
            if PROCESSES.fullmatch(node.attr) and ast.unparse(node) != "self.system":  # an llm_node's system prompt
                yield f"names .{node.attr}" + where
            for guarded, allowed in ONLY.items():
                if _is_on(node, guarded) and node.attr not in allowed:
                    yield f"uses {guarded}.{node.attr}" + where
        if isinstance(node, ast.Constant) and node.value == "tools":
            yield "holds the word 'tools' as a key" + where
        if isinstance(node, ast.Call):
            yield from (problem + where for problem in _problems_of_call(node))


def _problems_of_call(call: ast.Call) -> Iterator[str]:
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if any(keyword.arg == "tools" for keyword in call.keywords):
        yield "passes tools="
    if called == "model" and (len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred)):
        yield "calls a model with more than messages"
    if called == "getattr" and call.args and getattr(call.args[0], "id", "") in ("os", "sys", "shutil"):
        yield "looks up what a module can do by name"


def _is_on(node: ast.AST, module: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == module


# ---- the proof


def test_gather_cannot_act():
    """No loop, registry, process or socket in any project module gather can import, and no call that passes tools."""
    assert problems(ROOT) == []


def test_the_walk_reaches_every_module_that_a_run_loads(tmp_path):
    """What Python really imports for a run of gather is what the check looked at: it overlooks no way in."""
    code = ("import sys; from minigraph.workflows.gather import run; run(outbox=sys.argv[1]); "
            "print(*[name for name in sys.modules if name.split('.')[0] == 'minigraph'])")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert GATHER in loaded, done.stderr
    assert loaded <= set(reachable(ROOT))
    assert "minigraph.loop" not in loaded


def test_the_model_is_given_messages_and_nothing_else(tmp_path):
    """One call, one argument: a list of messages none of which carries a tool call."""
    calls = []

    def model(*args, **kwargs):
        calls.append((args, kwargs))
        return Reply("Good morning.")

    state, _ = gather.run(outbox=tmp_path, model=model)
    [(args, kwargs)] = calls
    assert kwargs == {}
    [messages] = args
    assert [type(message) for message in messages] == [Message, Message]
    assert [(message.role, message.tool_calls, message.tool_call_id) for message in messages] == [
        ("system", (), None), ("user", (), None)]
    assert state["synthesis"] == "Good morning."


def test_a_model_that_asks_for_a_tool_gets_none(tmp_path):
    """A reply that wants a tool run is a failure of the synthesis; the digest comes, and nothing else happens."""
    state, _ = gather.run(outbox=tmp_path, model=lambda messages: Reply("", (ToolCall("1", "send_mail", {}),)))
    assert "send_mail" in state["errors"]["synthesize"]
    assert [file.name for file in tmp_path.iterdir()] == ["gather-2026-03-02.md"]


# ---- the proof of the proof: what must turn it red

PLANTS = {
    "an agent_node in gather": ("workflows/gather.py", """
        from ..loop import agent_node
        def sneak(model):
            return agent_node("smarter", model, [], "digest")
        """, "minigraph.loop: the loop can be imported"),
    "an agent_node that is named without an import": ("workflows/gather.py", """
        def sneak(loop, model):
            return loop.agent_node("smarter", model, [], "digest")
        """, "minigraph.workflows.gather: names agent_node"),
    "a subprocess import two modules away": ("workflows/digest.py", """
        def sneak():
            from . import helper
        """, "minigraph.workflows.helper: imports subprocess"),
    "a tools= argument": ("nodes.py", """
        def sneak(model, messages):
            return model(messages, tools=[])
        """, "minigraph.nodes: passes tools="),
    "tools in second place": ("nodes.py", """
        def sneak(model, messages, specs):
            return model(messages, specs)
        """, "minigraph.nodes: calls a model with more than messages"),
    "tools in a dict": ("nodes.py", """
        def sneak(ask, messages):
            return ask(messages, **{"tools": []})
        """, "minigraph.nodes: holds the word 'tools' as a key"),
    "the loop in a package __init__": ("workflows/__init__.py", """
        from ..loop import run_loop
        """, "minigraph.loop: the loop can be imported"),
    "the loop, late, in the package's __init__": ("__init__.py", """
        def __getattr__(name):
            from . import loop
            return getattr(loop, name)
        """, "minigraph.loop: the loop can be imported"),
    "the loop by its full name": ("workflows/measured.py", """
        import minigraph.loop as later
        """, "minigraph.loop: the loop can be imported"),
    "importlib": ("workflows/sources.py", """
        import importlib
        """, "minigraph.workflows.sources: imports importlib"),
    "__import__": ("workflows/sources.py", """
        def sneak(name):
            return __import__(name)
        """, "minigraph.workflows.sources: names __import__"),
    "eval": ("clock.py", """
        def sneak(text):
            return eval(text)
        """, "minigraph.clock: names eval"),
    "os.system": ("workflows/sources.py", """
        def sneak():
            return os.system("true")
        """, "minigraph.workflows.sources: names .system"),
    "os.system, by another name": ("workflows/sources.py", """
        def sneak():
            it = os
            return it.system("true")
        """, "minigraph.workflows.sources: names .system"),
    "everything from os": ("workflows/sources.py", """
        from os import *
        """, "minigraph.workflows.sources: imports * from os"),
    "os.execv, imported": ("workflows/sources.py", """
        from os import execv
        """, "minigraph.workflows.sources: imports execv from os"),
    "os.system, spelled in pieces": ("workflows/sources.py", """
        def sneak():
            return getattr(os, "sys" + "tem")("true")
        """, "minigraph.workflows.sources: looks up what a module can do by name"),
    "sys.modules": ("clock.py", """
        import sys
        def sneak():
            return sys.modules["os"]
        """, "minigraph.clock: uses sys.modules"),
    "a folder deleted": ("workflows/sources.py", """
        import shutil
        def sneak(path):
            shutil.rmtree(path)
        """, "minigraph.workflows.sources: uses shutil.rmtree"),
    "a pool of processes": ("workflows/measured.py", """
        from concurrent.futures import ProcessPoolExecutor
        """, "minigraph.workflows.measured: imports ProcessPoolExecutor"),
    "a registry of its own": ("workflows/digest.py", """
        class ToolRegistry:
            pass
        """, "minigraph.workflows.digest: names ToolRegistry"),
    **{f"import {module}": ("workflows/sources.py", f"""
        def sneak():
            import {module}
        """, f"minigraph.workflows.sources: imports {module}")
       for module in ("subprocess", "socket", "ctypes", "multiprocessing", "pty", "asyncio", "urllib.request",
                      "http.client", "smtplib", "webbrowser", "runpy", "signal", "anthropic")},
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_violation_turns_the_check_red(plant, tmp_path):
    """Each way to act, planted in a copy of the package, is found, and named with its module."""
    place, code, expected = PLANTS[plant]
    package = tmp_path / "minigraph"
    shutil.copytree(ROOT / "minigraph", package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    (package / "workflows" / "helper.py").write_text("import subprocess\n", encoding="utf-8")
    with open(package / place, "a", encoding="utf-8") as file:
        file.write("\n" + "\n".join(line[8:] for line in code.split("\n")) + "\n")
    found = problems(tmp_path)
    assert any(problem.startswith(expected) for problem in found), found
