"""Notebooks are run from the top, kept as they ran, and checked for what a comparison of outputs cannot see.

    python tests/notebooks.py run [FILE ...]        run each in place and save its outputs (default: the whole course)
    python tests/notebooks.py check [FILE ...]      run each, save nothing, and print what is wrong with it

`check` is the second check beside nbval: nbval compares outputs and never asks whether a cell that promises to raise
raised, whether a number was typed over, or whether a picture can be read aloud.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
COURSE = ROOT / "notebooks"
MOST_CELLS, MOST_WORDS, MOST_LINES, MEDIAN_LINES = 20, 900, 15, 4
KEYS = re.compile(r"(API_KEY|_TOKEN|_SECRET|_MODEL|_BASE_URL)$")

# Runs in the kernel before the first cell: no socket may leave the machine, whatever a cell tries.
GUARD = """
import socket as _socket
def _local_only(self, address, _connect=_socket.socket.connect):
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(address, tuple) and host not in ("127.0.0.1", "::1", "localhost"):
        raise PermissionError(f"a notebook may not open a socket to {host}: everything in the course runs offline")
    return _connect(self, address)
def _no_lookup(host, *args, _ask=_socket.getaddrinfo, **kwargs):
    if host not in (None, "", "127.0.0.1", "::1", "localhost"):
        raise PermissionError(f"a notebook may not look up {host}: everything in the course runs offline")
    return _ask(host, *args, **kwargs)
_socket.socket.connect, _socket.getaddrinfo = _local_only, _no_lookup
del _socket
"""


def paths() -> list[Path]:
    """The committed notebooks, solutions included."""
    return sorted(COURSE.glob("[0-9]*.ipynb")) + sorted(COURSE.glob("solutions/*.ipynb"))


def load(path: Path) -> Any:
    import nbformat
    return nbformat.read(path, as_version=4)


def execute(path: Path, timeout: int = 120) -> Any:
    """The notebook as it ran just now: all cells in order, in a new kernel, offline, without keys."""
    from nbclient import NotebookClient
    from nbclient.util import run_sync
    notebook = load(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(notebook, timeout=timeout, kernel_name="python3", allow_errors=True,
                            resources={"metadata": {"path": str(path.parent)}})
    env = {name: value for name, value in os.environ.items() if not KEYS.search(name)}
    env["MINIGRAPH_HEADLESS"] = "1"
    with client.setup_kernel(env=env, cwd=str(path.parent)):
        run_sync(client.kc.execute_interactive)(GUARD, silent=True, store_history=False,
                                                output_hook=lambda message: None)
        for index, cell in enumerate(notebook.cells):
            written = cell.source
            if "lecturer" in cell.metadata.get("tags", []):
                cell.source = "pass"  # it is to be watched, and takes the time that takes
            client.execute_cell(cell, index)
            cell.source = written
    return notebook


def normalise(notebook: Any, name: str) -> Any:
    """The notebook without what differs from machine to machine."""
    notebook.metadata = type(notebook.metadata)(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python", "pygments_lexer": "ipython3"})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for index, cell in enumerate(notebook.cells):
        cell.id = hashlib.sha256(f"{name}:{index}".encode()).hexdigest()[:8]
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[Any]) -> list[Any]:
    """The outputs, with neighbouring pieces of one stream as one: where a kernel cuts them is chance."""
    joined: list[Any] = []
    for output in outputs:
        output.pop("transient", None)
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last is not None and last.get("name") == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def run(path: Path) -> list[str]:
    """Runs a notebook in place; returns what is wrong with it now."""
    import nbformat
    notebook = normalise(execute(path), path.stem)
    nbformat.write(notebook, path)
    return complaints(notebook, notebook)


def check(path: Path) -> list[str]:
    """What is wrong with a committed notebook, found by reading it and by running it anew."""
    return complaints(load(path), execute(path))


def complaints(committed: Any, fresh: Any) -> list[str]:
    """What is wrong, a sentence each: in the committed notebook, and in what its cells did just now."""
    found = [*_about_form(committed), *_about_metadata(committed)]
    counts = [cell.execution_count for cell in committed.cells if cell.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        found.append(f"execution counts are {counts}: run it from the top, once")
    for number, (cell, now) in enumerate(zip(committed.cells, fresh.cells, strict=True), 1):
        if cell.cell_type == "code":
            found += [f"cell {number}: {what}" for what in _about_cell(cell, now)]
    return found


def _about_form(notebook: Any) -> list[str]:
    cells = [cell for cell in notebook.cells if "extra" not in cell.metadata.get("tags", [])]
    words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
    lines = [len(cell.source.splitlines()) for cell in cells if cell.cell_type == "code"]
    found = []
    if len(cells) > MOST_CELLS:
        found.append(f"{len(cells)} cells; {MOST_CELLS} are enough for one concept")
    if words > MOST_WORDS:
        found.append(f"{words} words; {MOST_WORDS} are enough for one concept")
    if lines and max(lines) > MOST_LINES:
        found.append(f"a code cell of {max(lines)} lines; {MOST_LINES} fit on a slide")
    if lines and statistics.median(lines) > MEDIAN_LINES:
        found.append(f"code cells of {statistics.median(lines)} lines in the median; {MEDIAN_LINES} is one idea a cell")
    return found


def _about_metadata(notebook: Any) -> list[str]:
    text = json.dumps([notebook.metadata, [cell.metadata for cell in notebook.cells]])
    everything = json.dumps(notebook)
    found = []
    if "widgets" in notebook.metadata:
        found.append("widget state is saved in it: it would show a stale widget")
    if "execution" in text:
        found.append("it keeps when it was run: normalise it")
    if re.search(r"/(home|root|Users|work|tmp)/\w|[A-Z]:\\{1,4}Users", everything):
        found.append("a path of one machine stands in it")
    return found


def _about_cell(cell: Any, now: Any) -> list[str]:
    found = []
    errors = [output for output in now.outputs if output.output_type == "error"]
    promised = "raises-exception" in cell.metadata.get("tags", [])
    if promised and not errors:
        found.append("it promises an exception (raises-exception) and raised none")
    if errors and not promised:
        found.append(f"it raised {errors[0].ename}: {errors[0].evalue}")
    if re.search(r"^\s*[%!]", cell.source, re.MULTILINE) and "skip" not in cell.metadata.get("tags", []):
        found.append("it uses a magic or a shell line, which only works in some places")
    for output in cell.outputs:
        found += _about_picture(output)
    return found


def _about_picture(output: Any) -> list[str]:
    data = output.get("data", {})
    kinds = [kind for kind in data if kind.startswith("image/")]
    if not kinds:
        return []
    text = data.get("text/plain", "")
    about = output.get("metadata", {})
    found = [] if all(about.get(kind, {}).get("alt") for kind in kinds) else ["a picture without alternative text"]
    if len(text) < 20 or text.startswith("<"):
        found.append(f"a picture whose text twin says nothing: {text!r}")
    return found


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in ("run", "check"):
        print(__doc__)
        return 2
    bad = 0
    for path in [Path(name) for name in argv[1:]] or paths():
        wrong = {"run": run, "check": check}[argv[0]](path)
        print(f"{path.name}: {'ok' if not wrong else ''}", *wrong, sep="\n  " if wrong else "")
        bad += bool(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
