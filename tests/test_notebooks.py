"""The committed notebooks keep the form of the course, and the second check catches what nbval cannot see.

The course itself is run by `make test` (nbval compares every output); here each notebook runs once more under the
second check, and small broken notebooks show that each of its questions is really asked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output  # noqa: E402

from notebooks import ROOT, check, complaints, execute, normalise, paths, run  # noqa: E402

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize("path", paths(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_committed_notebook_passes_the_second_check(path):
    """Run anew from the top: nothing to complain of."""
    assert check(path) == []


@pytest.mark.parametrize("path", [path for path in paths() if path.parent.name == "notebooks"], ids=lambda p: p.stem)
def test_a_notebook_of_the_course_has_its_parts(path):
    """It opens with what you will be able to do, imports from minigraph alone, and ends with a sentence to remember."""
    cells = nbformat.read(path, 4).cells
    first_code = next(cell for cell in cells if cell.cell_type == "code")
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    tags = [tag for cell in cells for tag in cell.metadata.get("tags", [])]
    assert cells[0].source.startswith("# ")
    for part in ("**You will be able to**", "**You need**", "**Minutes**"):
        assert part in cells[0].source
    assert all(line.startswith(("from minigraph", " ", ")"))
               for line in first_code.source.splitlines())
    assert text.count("**Remember:**") == 1
    assert "core" in tags
    assert "home" in tags
    assert any(tag.startswith("minutes:") for tag in tags)


def notebook(tmp_path, *cells, name="small"):
    """A small notebook on disk, run once and saved as the course's are."""
    path = tmp_path / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    saved = normalise(execute(path), name)
    nbformat.write(saved, path)
    return path, saved


def found(saved, fresh=None):
    return " | ".join(complaints(saved, saved if fresh is None else fresh))


def test_a_sound_notebook_is_not_complained_of(tmp_path):
    """Two lines of code and a sentence, run from the top."""
    path, _ = notebook(tmp_path, new_markdown_cell("A sum."), new_code_cell("1 + 1"))
    assert run(path) == []
    assert check(path) == []


def test_execution_counts_must_be_1_to_n(tmp_path):
    """A cell that was run twice, or alone."""
    _, saved = notebook(tmp_path, new_code_cell("1"), new_code_cell("2"))
    saved.cells[1].execution_count = 7
    assert "execution counts are [1, 7]" in found(saved)


def test_a_promised_exception_must_come(tmp_path):
    """raises-exception on a cell that raises nothing passes nbval."""
    quiet = new_code_cell("1", metadata={"tags": ["raises-exception"]})
    loud = new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    _, saved = notebook(tmp_path, quiet, loud)
    assert found(saved) == "cell 1: it promises an exception (raises-exception) and raised none"


def test_an_exception_that_nobody_promised_is_named(tmp_path):
    """An error in a committed output may be the same error every time, and is an error."""
    _, saved = notebook(tmp_path, new_code_cell("{}['x']"))
    assert "it raised KeyError" in found(saved)


def test_a_magic_is_named(tmp_path):
    """An unknown %magic passes nbval, and a known one only works in Jupyter."""
    _, saved = notebook(tmp_path, new_code_cell("%nosuchmagic\n1"))
    assert "it uses a magic" in found(saved)


def test_widget_state_is_named(tmp_path):
    """Saved widgets would show what no kernel stands behind."""
    _, saved = notebook(tmp_path, new_code_cell("1"))
    saved.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    assert "widget state is saved in it" in found(saved)


@pytest.mark.parametrize("source", ["print('/ho' + 'me/ada/notes.txt')", "print('C:' + '\\\\Users\\\\ada')"])
def test_a_path_of_one_machine_is_named(tmp_path, source):
    """Wherever it stands: in an output as well."""
    _, saved = notebook(tmp_path, new_code_cell(source))
    assert "a path of one machine stands in it" in found(saved)


def test_when_it_was_run_is_not_kept(tmp_path):
    """Jupyter notes the time of every cell, which differs in every run."""
    _, saved = notebook(tmp_path, new_code_cell("1"))
    saved.cells[0].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
    assert "it keeps when it was run" in found(saved)


def test_a_picture_needs_words(tmp_path):
    """Alternative text for those who do not see it, and a text twin that says something, for the comparison."""
    _, saved = notebook(tmp_path, new_code_cell("1"))
    data = {"image/png": PIXEL, "text/plain": "<Figure 1>"}
    saved.cells[0].outputs = [new_output("display_data", data)]
    assert "a picture without alternative text" in found(saved)
    assert "whose text twin says nothing" in found(saved)
    saved.cells[0].outputs = [new_output("display_data", {**data, "text/plain": "START -> a, b and a -> END"},
                                         metadata={"image/png": {"alt": "START -> a"}})]
    assert found(saved) == ""


@pytest.mark.parametrize("cells,words", [
    ([new_code_cell("\n".join(["1"] * 16))], "a code cell of 16 lines"),
    ([new_code_cell("1\n2\n3\n4\n5")], "code cells of 5 lines in the median"),
    ([new_markdown_cell("x") for _ in range(21)], "21 cells"),
    ([new_markdown_cell("word " * 901)], "901 words"),
], ids=["lines", "median", "cells", "words"])
def test_one_idea_a_cell(tmp_path, cells, words):
    """A notebook is read in a room: limits for cells, lines and words."""
    _, saved = notebook(tmp_path, *cells)
    assert words in found(saved)


@pytest.mark.parametrize("source", [
    "import socket; socket.create_connection(('192.0.2.1', 80), timeout=2)",
    "import urllib.request; urllib.request.urlopen('http://example.org', timeout=2)",
    "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 53))",
], ids=["address", "name", "datagram"])
def test_a_notebook_that_tries_the_network_is_caught(tmp_path, source):
    """Sockets other than those of this machine are refused while a notebook runs, and the cell is named."""
    path, saved = notebook(tmp_path, new_code_cell(source))
    assert "everything in the course runs offline" in found(saved)
    assert "everything in the course runs offline" in " ".join(check(path))


def test_no_key_is_in_the_environment(tmp_path, monkeypatch):
    """Whatever keys this machine has, no notebook sees them."""
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    source = "import os\n[name for name in os.environ if name.endswith(('_API_KEY', '_TOKEN'))]"
    _, saved = notebook(tmp_path, new_code_cell(source))
    assert saved.cells[0].outputs[0].data["text/plain"] == "[]"


COMPARED = """
from minigraph import END, START, Graph
from minigraph.draw import draw
graph = Graph("small").add_node("a", lambda state: None).add_edge(START, "a").add_edge("a", END)
draw(graph)
"""


@pytest.mark.parametrize("old,new", [
    ("6 * 7 is 42", "6 * 7 is 43"), ("small, a graph of 1 node", "little, a graph of 1 node"),
    ("a -> END", "a -> START")], ids=["number", "caption", "edge"])
def test_what_nbval_compares(tmp_path, old, new):
    """A number, a caption or an edge that was changed in a committed output turns the comparison red."""
    path, saved = notebook(tmp_path, new_code_cell(COMPARED.strip()), new_code_cell("print('6 * 7 is', 6 * 7)"))
    text = path.read_text(encoding="utf-8")
    assert old in text
    changed = tmp_path / "changed.ipynb"
    changed.write_text(text.replace(f'"{old}', f'"{new}').replace(f"  {old}", f"  {new}"), encoding="utf-8")
    assert changed.read_text(encoding="utf-8") != text
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider",
               "--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg"), "--rootdir", str(tmp_path)]
    done = subprocess.run([*command, str(path), str(changed)], capture_output=True, text=True, cwd=tmp_path,
                          timeout=120)
    assert done.returncode == 1, done.stdout
    assert "1 failed, 3 passed" in done.stdout


def test_the_runner_names_what_is_wrong(tmp_path):
    """`python tests/notebooks.py check FILE` prints a line a complaint, and its exit code is 1."""
    path, _ = notebook(tmp_path, new_code_cell("1 / 0"))
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("notebooks.py")), "check", str(path)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "cell 1: it raised ZeroDivisionError" in done.stdout
