"""The student's kit: copies of the course, a project of one's own, the doctor, pages and slides, the glossary.

What takes minutes or the network (wheels, an install without a network, a real kernel) runs with MINIGRAPH_SLOW=1.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import webbrowser
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import minigraph
from minigraph import doctor, kit, pages
from minigraph.cli import main

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "notebooks"
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
slow = pytest.mark.skipif(os.environ.get("MINIGRAPH_SLOW") != "1", reason="takes minutes; MINIGRAPH_SLOW=1 runs it")


def run(capsys, *argv):
    """(exit code, standard output, standard error) of one command."""
    code = main([str(arg) for arg in argv])
    return (code, *capsys.readouterr())


def python(*argv, cwd, **env):
    """A finished `python ...` in another folder, with this clone on its path."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **env}
    return subprocess.run([sys.executable, *map(str, argv)], cwd=cwd, capture_output=True, encoding="utf-8",
                          timeout=120, env=env)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def code_cell(source, *tags, outputs=(), count=None):
    return {"cell_type": "code", "id": f"c{len(source)}", "metadata": {"tags": list(tags)}, "source": source,
            "outputs": list(outputs), "execution_count": count}


def prose(source, *tags):
    return {"cell_type": "markdown", "id": f"m{len(source)}", "metadata": {"tags": list(tags)}, "source": source}


def notebook(*cells):
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=False)


ANSWER = {"output_type": "execute_result", "data": {"text/plain": "42"}, "metadata": {}, "execution_count": 1}


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A small course: two notebooks, a picture, a glossary, an instructor's guide, solutions, and litter."""
    folder = tmp_path / "the course"
    files = {
        "00_one.ipynb": notebook(
            prose("# One & only\n\n**You need** nothing.\n\nHalf a week went by. **Who knows?**", "minutes:3", "slide"),
            code_cell("6 * 7", "slide", outputs=[ANSWER], count=1),
            code_cell("'not shown'", outputs=[ANSWER], count=2),
            prose("See [wave](GLOSSARY.md#wave), [two](02_two.ipynb) and ![a picture](images/p.svg).", "minutes:4"),
            prose("**Remember:** return *only* what\nyou made.\n\n**Next:** [two](02_two.ipynb)")),
        "02_two.ipynb": notebook(prose("# Two"), code_cell("1", outputs=[ANSWER], count=1)),
        "GLOSSARY.md": "# Glossary\n\n### wave\n\nAll at once: [one](00_one.ipynb).\n",
        "README.md": "# For the instructor\n\nThe answers: 42.\n",
        "images/p.svg": "<svg/>",
        "solutions/00_one.ipynb": notebook(prose("# Solutions, of [one](../00_one.ipynb)"),
                                           code_cell("answer = 42", outputs=[ANSWER], count=1)),
        "make_solutions.py": "print()", ".ipynb_checkpoints/00_one.ipynb": "{}", "outbox/digest.md": "", "._x.md": "",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(kit, "course_dir", lambda: folder)
    monkeypatch.setattr(pages, "course_dir", lambda: folder)
    return folder


# ---- copies of the course


def test_a_copy_has_no_outputs_no_counts_and_no_answers(course, tmp_path):
    """Nothing of what ran is left; sources, tags and pictures are; the guide and the solutions stay behind."""
    copied = kit.copy_course("mine")
    assert copied.written == ["00_one.ipynb", "02_two.ipynb", "GLOSSARY.md", "images/p.svg"]
    copy = json.loads((tmp_path / "mine/00_one.ipynb").read_text(encoding="utf-8"))
    assert [cell["outputs"] for cell in copy["cells"] if cell["cell_type"] == "code"] == [[], []]
    assert [cell["execution_count"] for cell in copy["cells"] if cell["cell_type"] == "code"] == [None, None]
    assert copy["cells"][1]["source"] == "6 * 7"
    assert copy["cells"][1]["metadata"] == {"tags": ["slide"]}
    assert copy["metadata"]["kernelspec"]["name"] == "python3"


def test_an_instructor_gets_the_solutions_and_the_guide(course):
    """--solutions: those too, without outputs as well."""
    copied = kit.copy_course("mine", solutions=True)
    assert {"README.md", "solutions/00_one.ipynb"} <= set(copied.written)
    assert "42" not in Path("mine/solutions/00_one.ipynb").read_text(encoding="utf-8").replace("answer = 42", "")


def test_a_students_work_is_never_overwritten(course, capsys):
    """What is there and differs is kept and named; what is missing is copied; --force replaces."""
    run(capsys, "notebooks", "mine")
    assert run(capsys, "notebooks", "mine")[1] == "mine holds the course already\n"
    Path("mine/02_two.ipynb").write_text("my work", encoding="utf-8")
    Path("mine/GLOSSARY.md").unlink()
    code, out, _ = run(capsys, "notebooks", "mine")
    assert code == 0
    assert "copied to mine: GLOSSARY.md\n" in out
    assert "kept as it is, because of what you may have written there: 02_two.ipynb (--force replaces)" in out
    assert Path("mine/02_two.ipynb").read_text(encoding="utf-8") == "my work"
    assert "copied to mine: 02_two.ipynb\n" in run(capsys, "notebooks", "mine", "--force")[1]
    assert "my work" not in Path("mine/02_two.ipynb").read_text(encoding="utf-8")


def test_the_course_itself_is_no_place_for_a_copy(course, capsys):
    """--force on the committed notebooks would take their outputs away."""
    before = (course / "00_one.ipynb").read_bytes()
    for folder in (course, course / "mine"):
        code, _, err = run(capsys, "notebooks", folder, "--force")
        assert code == 1
        assert err.endswith("lies in the course itself; name a folder elsewhere to copy it to\n")
    assert (course / "00_one.ipynb").read_bytes() == before


def test_a_file_is_no_folder(course, capsys):
    """One sentence, no traceback."""
    Path("mine").write_text("", encoding="utf-8")
    assert run(capsys, "notebooks", "mine") == (
        1, "", "minigraph: mine is a file; name a folder to copy the course to\n")


def test_for_colab_a_first_cell_installs(course):
    """--install puts a %pip cell first, tagged skip, which every check of notebooks leaves alone."""
    kit.copy_course("mine", install="minigraph[pictures] @ git+https://example.org/it")
    first = json.loads(Path("mine/00_one.ipynb").read_text(encoding="utf-8"))["cells"][0]
    assert "".join(first["source"]) == '%pip install -q "minigraph[pictures] @ git+https://example.org/it"'
    assert first["metadata"] == {"tags": ["skip"]}
    assert "%pip" not in (course / "00_one.ipynb").read_text(encoding="utf-8")


def test_the_real_course_is_copied_with_links_that_work(capsys):
    """Every relative link and anchor in a student's copy leads to a file, and a heading, in that copy."""
    assert run(capsys, "notebooks", "mine")[0] == 0
    files = sorted(Path("mine").rglob("*.ipynb")) + sorted(Path("mine").rglob("*.md"))
    assert len(files) >= 3
    assert not any(path.name == "README.md" or "solutions" in path.parts for path in files)
    for path in files:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        for link in LINK.findall(text):
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            assert target.is_file(), f"{path}: {link}"
            if anchor:
                assert anchor in headings(target.read_text(encoding="utf-8")), f"{path}: {link}"


def headings(text):
    return [title.replace(" ", "-") for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]


def test_the_course_is_found_in_an_installed_package(tmp_path, monkeypatch):
    """A wheel carries the notebooks inside the package; a clone has them beside it; else a sentence says what to do."""
    monkeypatch.setattr(kit, "__file__", str(tmp_path / "lib" / "minigraph" / "kit.py"))
    with pytest.raises(kit.KitError, match="install minigraph again, from a clone"):
        kit.course_dir()
    for folder in (tmp_path / "lib" / "notebooks", tmp_path / "lib" / "minigraph" / "notebooks"):
        folder.mkdir(parents=True)
        assert kit.course_dir() == folder


# ---- JupyterLab


def test_lab_starts_without_a_browser_and_as_root(monkeypatch):
    """Where no browser can start, JupyterLab is told so, and prints its address; root, as in a container, may."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert kit.lab_command("mine") == [sys.executable, "-m", "jupyterlab", "mine", "--allow-root", "--no-browser"]
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    monkeypatch.setattr(webbrowser, "get", lambda: "a browser")
    assert kit.lab_command("mine") == [sys.executable, "-m", "jupyterlab", "mine"]

    def none():
        raise webbrowser.Error("could not locate runnable browser")
    monkeypatch.setattr(webbrowser, "get", none)
    assert kit.lab_command("mine")[-1] == "--no-browser"


def test_lab_ends_with_the_exit_code_of_jupyterlab(course, monkeypatch, capfd):
    """`notebooks DIR --lab` waits for it; without a browser it says where to look."""
    command = [sys.executable, "-c", "raise SystemExit(7)", "--no-browser"]
    monkeypatch.setattr(kit, "lab_command", lambda folder: command)
    monkeypatch.setattr(kit.importlib.util, "find_spec", lambda name: "there")
    assert main(["notebooks", "mine", "--lab"]) == 7
    assert "open the address that JupyterLab prints below" in capfd.readouterr().out


def test_without_jupyterlab_a_sentence_says_what_brings_it(course, monkeypatch, capsys):
    """The extra is named, with the command; the copy was made all the same."""
    monkeypatch.setattr(kit.importlib.util, "find_spec", lambda name: None)
    code, out, err = run(capsys, "notebooks", "mine", "--lab")
    assert code == 1
    assert err.startswith("minigraph: JupyterLab is not installed")
    assert 'pip install -e ".[notebooks]"' in err
    assert "copied to mine" in out


# ---- a project of one's own

NAMES = [  # the folder -> the package in it
    ("my_project", "my_project"),
    ("my-project", "my_project"),
    ("Tide Tables!", "tide_tables"),
    ("2nd try", "project_2nd_try"),
    ("données", "donnees"),
    ("проект", "my_project"),
    ("class", "class_project"),
    ("json", "json_project"),
    ("minigraph", "minigraph_project"),
    ("pytest", "pytest_project"),
    ("test_flow", "test_flow_project"),
    ("PACKAGE", "package"),
    ('say "hi" & <b>', "say_hi_b"),
]


@pytest.mark.parametrize("name,package", NAMES, ids=[package for _, package in NAMES])
def test_any_name_becomes_a_project_that_compiles(name, package):
    """The folder keeps the name; the package can be imported and hides nothing; nothing is left to fill in."""
    project = kit.new_project(name)
    assert project.package == package
    assert sorted(project.files) == sorted(path.relative_to(name).as_posix()
                                           for path in Path(name).rglob("*") if path.is_file())
    for path in Path(name).rglob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"))
    cells = json.loads(Path(name, "flow.ipynb").read_text(encoding="utf-8"))["cells"]
    assert f"from {package}.flow import graph" in "".join(cells[1]["source"])
    everything = "".join(path.read_text(encoding="utf-8") for path in Path(name).rglob("*") if path.is_file())
    assert "TITLE" not in everything
    assert ("PACKAGE" in everything) == (name == "PACKAGE")


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_what_is_no_name_is_refused(name, capsys):
    """One sentence, and nothing is written."""
    code, _, err = run(capsys, "new", name)
    assert code == 1
    assert err.startswith("minigraph: ")
    assert err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_an_existing_folder_is_refused_untouched(capsys):
    """Even an empty one, a file, or a link to nowhere: they are somebody's."""
    Path("mine").mkdir()
    Path("file").write_text("text", encoding="utf-8")
    Path("link").symlink_to("nowhere")
    for name in ("mine", "file", "link"):
        assert run(capsys, "new", name) == (1, "", f"minigraph: {name} exists already, and nothing in it was touched; "
                                                   "name a folder that does not\n")
    assert list(Path("mine").iterdir()) == []


def test_the_project_runs_at_once(capsys):
    """Its test passes with plain Python and with pytest, and its README's commands work, from its own folder."""
    code, out, _ = run(capsys, "new", "below/my-tides")
    project = Path("below/my-tides")
    assert code == 0
    assert f"  cd {project}\n" in out
    assert "-m minigraph draw my_tides.flow:graph" in out
    assert python("test_flow.py", cwd=project).stdout == "1 passed\n"
    done = python("-m", "pytest", "-p", "no:cacheprovider", cwd=project, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    readme = (project / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    python (.*)$", readme, re.MULTILINE)
    assert len(commands) == 4
    draws = [command.split() for command in commands if " draw " in command]
    assert "START -> search, remember" in python(*draws[0], cwd=project).stdout
    pytest.importorskip("graphviz")
    assert python(*draws[1], cwd=project).returncode == 0
    assert (project / "flow.png").read_bytes().startswith(b"\x89PNG")


def test_the_projects_test_can_fail():
    """Take an edge away, make a chain of it, or let a look-up take longer, and it goes red."""
    kit.new_project("mine")
    flow = Path("mine/mine/flow.py")
    good = flow.read_text(encoding="utf-8")
    for before, after in [('.add_edge("remember", "answer")', ""), ('(START, "remember")', '("search", "remember")'),
                          ("sleep(0.2)", "sleep(2)")]:
        assert before in good
        flow.write_text(good.replace(before, after), encoding="utf-8")
        done = python("-B", "test_flow.py", cwd="mine")
        assert "AssertionError" in done.stderr, after


def test_the_projects_notebook_runs():
    """Its cells run in order, in plain Python too; and it is a valid notebook."""
    kit.new_project("mine")
    text = Path("mine/flow.ipynb").read_text(encoding="utf-8")
    source = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    done = python("-c", source, cwd="mine")
    assert done.returncode == 0, done.stderr
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.reads(text, as_version=4))


@slow
def test_the_projects_notebook_runs_in_a_kernel(monkeypatch):
    """In a real kernel, with pictures."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kit.new_project("mine")
    book = nbformat.read("mine/flow.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": "mine"}}).execute()
    shown = [list(output.get("data", {})) for cell in book.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in kinds for kinds in shown) == 2


# ---- the doctor


def found(report, name):
    return next(each for each in report.findings if each.name == name)


@pytest.fixture
def no_kernel(monkeypatch):
    """The doctor without the kernel, which takes seconds."""
    monkeypatch.setattr(doctor, "_kernel", lambda seconds: iter([doctor.Finding("kernel", doctor.OK, "not asked")]))


def test_the_doctor_speaks_in_lines(no_kernel, capsys):
    """Each line says OK, missing or broken; what is not OK says what to do; the core works here."""
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert re.search(r"^OK       engine       minigraph .* ran a graph of three nodes in two waves", out, re.MULTILINE)
    assert re.search(r"^OK       python       3\.", out, re.MULTILINE)
    assert "Begin with: " in out
    body = out.split("\n\n")[1]
    assert all(re.match(r"(OK     |missing|broken )  \S|        ", line) for line in body.splitlines()), body


def test_the_doctor_speaks_json(no_kernel, capsys):
    """The same findings, for a program."""
    code, out, _ = run(capsys, "doctor", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["works"] is True
    assert {"python", "engine", "sqlite", "outbox", "terminal", "kernel", "graph drawn"} <= {
        each["name"] for each in report["findings"]}


def test_what_is_missing_comes_with_the_command(no_kernel, monkeypatch):
    """A package that is not installed is named, with the command for the clone; an unfit version is broken."""
    def version(name):
        if name == "ipywidgets":
            raise metadata.PackageNotFoundError(name)
        return {"graphviz-pure": "0.3.0"}.get(name, "99.0")
    monkeypatch.setattr(doctor.importlib.metadata, "version", version)
    monkeypatch.setattr(doctor.Path, "is_dir", lambda self: False)  # no wheelhouse
    report = doctor.examine()
    widgets, pictures = found(report, "notebooks"), found(report, "pictures")
    assert (widgets.status, widgets.detail) == ("missing", "not installed: ipywidgets; jupyterlab 99.0")
    assert widgets.todo.endswith(f'install -e "{ROOT}[notebooks]"')
    assert pictures.status == "broken"
    assert pictures.detail.startswith("graphviz-pure 0.3.0 is there, and >=0.2.2,<0.3 is needed")
    assert report.works


def test_a_wheelhouse_is_used_and_an_installed_package_names_packages(tmp_path, monkeypatch):
    """Without Wi-Fi pip must not ask the network; without a clone no index may choose what minigraph is."""
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "minigraph" / "doctor.py"))
    monkeypatch.setattr(doctor, "EXTRAS", {"calendar": {"icalendar": ">=7"}, "pictures": {"matplotlib": ">=3.8"},
                                           "notebooks": {"jupyterlab": ">=4.2"}})
    assert doctor.install_command("calendar").endswith('pip install "icalendar>=7"')
    three = 'pip install "icalendar>=7" "matplotlib>=3.8" "jupyterlab>=4.2"'
    assert doctor.install_command("notebooks").endswith(three)
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    assert doctor.install_command("notebooks").endswith('pip install -e ".[notebooks]"')
    (tmp_path / "wheelhouse").mkdir()
    assert doctor.install_command("notebooks").endswith(
        f'pip install --no-index --find-links {tmp_path}/wheelhouse -e ".[notebooks]"')
    assert "wheelhouse" not in doctor.install_command("test")


def test_a_broken_engine_is_exit_code_1(no_kernel, monkeypatch, capsys):
    """Only the core decides; and the doctor never faints."""
    def broken(*args, **more):
        raise RuntimeError("no threads\nhere")
    monkeypatch.setattr(minigraph, "run_graph", broken)
    code, out, _ = run(capsys, "doctor")
    assert code == 1
    assert "broken   engine       RuntimeError: no threads here" in out
    assert "The core does not work here" in out
    assert "Begin with" not in out


def test_an_outbox_that_cannot_be_written_is_a_note(no_kernel, capsys):
    """It is a matter of where one stands; nothing is left behind where it can."""
    assert "OK       outbox" in run(capsys, "doctor")[1]
    assert list(Path().iterdir()) == []
    Path("outbox").write_text("a file", encoding="utf-8")
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert re.search(r"broken   outbox +nothing can be written to .*outbox: File exists\n +-> change to a folder", out)


def test_a_bare_python_in_a_poor_terminal_is_told_everything(tmp_path):
    """Without site-packages and with ASCII: no traceback, the core works, the rest says what brings it."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from minigraph.cli import main; sys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-E", "-S", "-c", code], cwd=tmp_path, capture_output=True, timeout=120,
                          env={**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"})
    (tmp_path / "marée").mkdir()
    ascii_too = subprocess.run([sys.executable, "-S", "-c", code], cwd=tmp_path / "marée", capture_output=True,
                               timeout=120, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    for out in (done, ascii_too):
        assert out.returncode == 0, out.stderr
        assert out.stderr == b""
        text = out.stdout.decode()
        assert "Most of that comes with: " in text
        for name in ("calendar", "pictures", "notebooks", "graph drawn", "chart drawn", "kernel"):
            assert re.search(rf"^missing  {name} .*\n.*\n? +-> .*install", text, re.MULTILINE), text
    assert re.search(r"^broken   terminal +prints ascii", ascii_too.stdout.decode(), re.MULTILINE)
    assert b"mar?e/outbox" in ascii_too.stdout


@pytest.mark.parametrize("script,status,words", [
    ("import time; time.sleep(60)", "broken", "it did not answer within"),
    ("raise RuntimeError('Kernel died before replying')", "broken", "RuntimeError: Kernel died before replying"),
    ("raise SystemExit(3)", "broken", "exit code 3"),
    ("import json; print(json.dumps({'text': '2 /other/bin/python', 'wrong': [], 'seconds': 1}))", "broken",
     "'python3' is another Python: /other/bin/python"),
    ("import json, sys; print(json.dumps({'text': '2 ' + sys.executable, 'wrong': ['ModuleNotFoundError: x'], "
     "'seconds': 1}))", "broken", "from another folder minigraph cannot be imported: ModuleNotFoundError: x"),
    ("import json, sys; print(json.dumps({'text': '2 ' + sys.executable, 'wrong': [], 'seconds': 1}))", "OK",
     "one started and computed 1+1, in 1.0 s"),
], ids=["hangs", "dies", "ends", "another", "import", "works"])
def test_what_a_kernel_may_do(monkeypatch, script, status, words):
    """It is given up when it hangs, and what went wrong is one line."""
    monkeypatch.setattr(doctor, "KERNEL", script)
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: "there")
    finding = next(doctor._kernel(-4.0 if "sleep" in script else 20))
    assert (finding.status, words in finding.detail) == (status, True), finding


@slow
def test_a_real_kernel_starts():
    """One is started, computes 1+1, and is this Python."""
    pytest.importorskip("ipykernel")
    finding = next(doctor._kernel(60))
    assert finding.status == "OK", finding


@pytest.mark.parametrize("version,wanted,fits", [
    ("6.0", ">=6", True), ("6", ">=6.0", True), ("5.9.9", ">=6", False), ("10.0", ">=6", True),
    ("0.2.2", ">=0.2.2,<0.3", True),
    ("0.3.0rc1", ">=0.2.2,<0.3", False), ("3.8.0.post1", ">=3.8", True), ("unknown", ">=1", False),
])
def test_versions_are_compared_as_numbers(version, wanted, fits):
    """10 comes after 6, and a letter ends the number."""
    assert doctor.will_do(version, wanted) is fits


def test_the_doctor_knows_the_extras_of_pyproject():
    """What the doctor looks for is what pip would install."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra, packages in doctor.EXTRAS.items():
        block = re.search(rf"^{extra} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)[1]
        listed = [re.match(r"([\w-]+)(.*)", part).groups() for part in re.findall(r'"([^"]+)"', block)]
        same = {name: bound.replace("==0.11.*", ">=0.11,<0.12") for name, bound in listed if name != "minigraph"}
        assert packages == same
        parts = [part.strip() for part in re.findall(r"minigraph\[([^\]]*)", block) for part in part.split(",")]
        assert doctor.INCLUDES.get(extra, []) == (parts if extra != "test" else [])


# ---- pages and slides


@pytest.fixture
def nbconvert():
    return pytest.importorskip("nbconvert")


def test_a_site_has_a_page_each_and_links_between_them(course, nbconvert, capsys):
    """Outputs are shown, links lead to pages, pictures come along; the guide and the solutions do not."""
    code, out, err = run(capsys, "site", "out")
    assert (code, err) == (0, "")
    names = sorted(path.relative_to("out").as_posix() for path in Path("out").rglob("*") if path.is_file())
    assert names == ["00_one.html", "02_two.html", "GLOSSARY.html", "images/p.svg", "index.html"]
    page = Path("out/00_one.html").read_text(encoding="utf-8")
    assert "42" in page
    assert '<a href="GLOSSARY.html#wave">wave</a>' in page
    assert '<a href="02_two.html">two</a>' in page
    assert 'src="images/p.svg"' in page
    assert '<a rel="next" href="02_two.html">Two &rarr;</a>' in page
    assert 'href="00_one.html"' in Path("out/GLOSSARY.html").read_text(encoding="utf-8")


def test_the_index_tells_title_minutes_question_and_what_to_remember(course, nbconvert):
    """All of it is read from the notebooks: minutes are those of the cell tags."""
    pages.write_site("out")
    index = Path("out/index.html").read_text(encoding="utf-8")
    row = re.search(r"<tr><td><a href=\"00_one.html\">00 One &amp; only</a>.*?</tr>", index, re.DOTALL)[0]
    assert "Half a week went by. <strong>Who knows?</strong>" in row
    assert '<td class="number">7</td>' in row
    assert "<td>return <em>only</em> what you made.</td>" in row
    assert '<a href="GLOSSARY.html">Glossary</a>' in index


def test_with_solutions_the_guide_comes_too(course, nbconvert):
    """--solutions; their links lead one folder up."""
    written = pages.write_site("out", solutions=True)
    assert written.complaints == []
    assert {"README.html", "solutions/00_one.html"} <= set(written.files)
    page = Path("out/solutions/00_one.html").read_text(encoding="utf-8")
    assert '<a href="../00_one.html">one</a>' in page
    assert '<a href="../index.html">' in page


def test_a_link_that_leads_nowhere_is_told(course, nbconvert, capsys):
    """A missing file, a missing heading, a notebook that never ran: exit code 1, and each is named."""
    (course / "02_two.ipynb").write_text(notebook(
        prose("# Two\n\n[a](03_gone.ipynb) [b](GLOSSARY.md#tide) [c](https://example.org) [d](#nowhere)"),
        code_cell("1")), encoding="utf-8")
    code, _, err = run(capsys, "site", "out")
    assert code == 1
    assert "02_two.ipynb: '03_gone.ipynb' leads nowhere in the course" in err
    assert "02_two.ipynb: 'GLOSSARY.md#tide': there is no heading 'tide' in GLOSSARY.md" in err
    assert "02_two.ipynb: '#nowhere': there is no heading 'nowhere'" in err
    assert "02_two.ipynb: it has no outputs" in err
    assert "example.org" not in err


LOADED = [
    '<script src="https://cdn.example/require.js"></script>', "<script src='//cdn.example/x.js'></script>",
    '<link rel="stylesheet" href="https://cdn.example/a.css">', '<img alt="x" src=http://example.org/a.png>',
    "<style>@import url(https://fonts.example/css);</style>", "<style>a { background: url('//e.org/a.png') }</style>",
    "<script type=module>import m from 'https://cdn.example/m.mjs';</script>", '<iframe src="https://e.org"></iframe>',
]


@pytest.mark.parametrize("html", LOADED)
def test_what_a_page_would_load_is_found(html):
    """Whatever a browser would ask another machine for."""
    assert len(pages.loaded(f"<p>{html}</p>")) == 1


def test_a_link_loads_nothing():
    """Links are followed by people; code is read by them; comments by nobody."""
    assert pages.loaded('<a href="https://e.org">x</a> <img src="data:image/png;base64,AA=="> <img src="images/p.svg">'
                        '<pre>&lt;script src="https://e.org"&gt; <script src="https://e.org"></pre>'
                        "<style>/* url(https://e.org) */</style><script>var x = 'https://e.org';</script>") == []


def test_the_real_site_stands_alone(nbconvert):
    """The committed course becomes pages without a complaint: every link leads somewhere, nothing asks the network."""
    written = pages.write_site("out", solutions=True)
    assert written.complaints == []
    assert {"index.html", "GLOSSARY.html", "TRANSLATION.html"} <= set(written.files)
    for path in Path("out").rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert pages.loaded(html) == []
        assert "<script" not in html
        assert re.search(r"<img(?![^>]*\balt=)", html) is None, f"{path}: a picture that cannot be read aloud"


@pytest.fixture
def reveal(tmp_path):
    """A stand-in for reveal.js."""
    for name in ("dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js"):
        (tmp_path / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "reveal" / name).write_text(f"/* {name} </script> */", encoding="utf-8")
    return tmp_path / "reveal"


def test_slides_hold_the_tagged_cells_and_nothing_from_elsewhere(course, nbconvert, reveal):
    """Cells without the tag are skipped; reveal.js lies in the file; a notebook without tags is told."""
    written = pages.write_slides("out", reveal=reveal)
    assert written.complaints == ["02_two.ipynb: no cell is tagged `slide`, so it has no slides"]
    assert written.files == ["00_one.slides.html", "index.html"]
    deck = Path("out/00_one.slides.html").read_text(encoding="utf-8")
    assert "One &amp; only" in deck
    assert "not shown" not in deck
    assert len(re.findall(r"<section", deck)) == 3  # one slide, and two cells one below the other
    assert "/* dist/reveal.js <\\/script> */" in deck
    assert pages.loaded(deck) == []
    assert "cdn" not in deck.lower()


def test_links_in_slides_lead_to_slides(course, nbconvert, reveal):
    """To other decks; texts have none, so there the words stay and the link goes."""
    (course / "02_two.ipynb").write_text(notebook(
        prose("# Two\n\n[one](00_one.ipynb), [wave](GLOSSARY.md#wave), [x](https://example.org/a.md)", "slide")),
        encoding="utf-8")
    pages.write_slides("out", reveal=reveal)
    deck = Path("out/02_two.slides.html").read_text(encoding="utf-8")
    assert '<a href="00_one.slides.html">one</a>, wave, <a href="https://example.org/a.md">x</a>' in deck


def test_without_reveal_a_sentence_says_what_brings_it(course, nbconvert, tmp_path, monkeypatch, capsys):
    """nbconvert ships none; a folder that is none is told apart."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(pages.importlib.util, "find_spec", lambda name: "there" if name == "nbconvert" else None)
    code, _, err = run(capsys, "slides", "out")
    assert code == 1
    assert f'pip install --no-deps --target "{tmp_path / "reveal"}" "sphinx-revealjs==3.2.1"' in err
    assert run(capsys, "slides", "out", "--reveal", tmp_path)[2].endswith(
        "is no copy of reveal.js 4 or newer: it has no reveal.css\n")


def test_without_nbconvert_a_sentence_says_what_brings_it(course, monkeypatch, capsys):
    """Pages are made with the extra notebooks."""
    monkeypatch.setattr(pages.importlib.util, "find_spec", lambda name: None)
    for command in ("site", "slides"):
        code, _, err = run(capsys, command)
        assert code == 1
        assert 'pip install -e ".[notebooks]"' in err


# ---- the words

NOUNS = ["blackboard", "state", "node", "edge", "static-edge", "conditional-edge", "router", "label", "wave", "ticket",
         "lap", "visit", "guard", "gate", "run", "trace", "journal", "collision", "causal-past", "barrier", "fan-out",
         "fan-in", "join", "virtual-time", "cycle", "failure", "handler", "loop"]


def test_the_glossary_has_an_anchor_for_each_noun():
    """The workshop's nouns, each under its own heading, in the same letters wherever the page is shown."""
    titles = [title for title in headings((COURSE / "GLOSSARY.md").read_text(encoding="utf-8")) if title.islower()]
    assert [noun for noun in NOUNS if noun not in titles] == []
    assert len(titles) == len(set(titles))


def test_the_glossary_is_short():
    """A few sentences each; and the list above names every entry once, in order."""
    text = (COURSE / "GLOSSARY.md").read_text(encoding="utf-8")
    entries = re.findall(r"^### (.+)\n\n(.*(?:\n.+)*)", text, re.MULTILINE)
    assert [title for title, body in entries if not 8 <= len(body.split()) <= 75] == []
    listed = re.findall(r"\[([^\]]+)\]\(#", text.split("\n## ")[0])
    assert listed == [title for title, _ in entries]


def test_the_translation_has_four_columns_and_links_every_word_of_ours():
    """A table row has a cell for each of the four; our words lead to the glossary."""
    text = (COURSE / "TRANSLATION.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) > 20
    assert {row.count("|") for row in rows} == {5}
    linked = set(re.findall(r"GLOSSARY\.md#([\w-]+)", text))
    assert {"graph", "node", "run", "state", "wave", "barrier", "join", "collision", "router", "guard"} <= linked


# ---- the machine around it


def test_what_is_made_is_not_committed():
    """Copies, pages, slides and wheels are git-ignored."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"my_notebooks/", "site/", "slides/", "wheelhouse/", "outbox/"} <= set(ignored)


def test_make_knows_the_kit():
    """Each target has its line of help, and does what the command does."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target, command in [("lab", "notebooks my_notebooks --lab"), ("site", "site site"), ("doctor", "doctor"),
                            ("slides", "slides slides"), ("wheelhouse", "$(call wheels)")]:
        recipe = re.search(rf"^{target}:.*?## .+\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
        assert command in recipe


def test_environment_yml_installs_this_clone():
    """What conda and Binder read: a Python, pip, Graphviz, and the clone with everything."""
    lines = [line.strip() for line in (ROOT / "environment.yml").read_text(encoding="utf-8").splitlines()]
    assert {"- conda-forge", "- pip", "- graphviz", "- python-graphviz", "- -e .[all]"} <= set(lines)
    assert any(re.fullmatch(r"- python=3\.1\d", line) for line in lines)


REPO2DOCKER = os.environ.get("REPO2DOCKER") or shutil.which("jupyter-repo2docker")


@pytest.mark.skipif(not REPO2DOCKER, reason="jupyter-repo2docker is not installed; REPO2DOCKER=path names one")
def test_binder_can_read_the_repository(tmp_path):
    """repo2docker makes a Dockerfile of it: conda, from environment.yml, with the clone copied in before pip runs."""
    for name in ("environment.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run([REPO2DOCKER, "--no-build", "--debug", "--no-run", "."], cwd=tmp_path, capture_output=True,
                          encoding="utf-8", timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "Building conda environment for python=3.1" in text
    assert text.index("COPY --chown=0:0 src/ ${REPO_DIR}/") < text.index('--file "environment.yml"')


def clone(folder):
    """A copy of this clone as a fresh one would be: only what is committed or will be."""
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "outbox", "site", "slides", "wheelhouse",
                                     ".*_cache", "my_notebooks", ".hypothesis", ".ipynb_checkpoints", "build", "dist")
    return shutil.copytree(ROOT, folder, ignore=ignored)


@slow
def test_a_wheel_carries_the_course_and_an_editable_install_finds_it(tmp_path):
    """`pip wheel .` has notebooks and data inside; installed, without the clone, the course can be copied."""
    folder = clone(tmp_path / "clone")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", ".", str(folder)], check=True)
    wheel = next(tmp_path.glob("minigraph-*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    assert {"minigraph/notebooks/GLOSSARY.md", "minigraph/data/memory.jsonl"} <= set(names)
    for what in ([str(wheel)], ["-e", str(folder)]):
        shutil.rmtree(tmp_path / "venv", ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
        bin = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([str(bin / "python"), "-m", "pip", "install", "-q", *what], check=True)
        done = subprocess.run([str(bin / "minigraph"), "notebooks", f"mine-{len(what)}"], cwd=tmp_path,
                              capture_output=True, encoding="utf-8", check=True)
        assert "GLOSSARY.md" in done.stdout
        assert (tmp_path / f"mine-{len(what)}" / "00_start_here.ipynb").is_file()


@slow
@pytest.mark.skipif(not shutil.which("make"), reason="no make here")
def test_a_wheelhouse_is_enough_without_an_index(tmp_path):
    """`make wheelhouse`, then a fresh environment installs the clone and the notebooks with --no-index."""
    folder = clone(tmp_path / "clone")
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "wheelhouse"], cwd=folder, env=env, check=True)
    shutil.rmtree(folder / ".venv")
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=folder, check=True)
    bin = folder / ".venv" / "bin"
    subprocess.run([str(bin / "python"), "-m", "pip", "install", "-q", "--no-index", "--find-links", "wheelhouse", "-e",
                    ".[notebooks]"], cwd=folder, check=True)
    done = subprocess.run([str(bin / "python"), "-m", "minigraph", "doctor", "--json"], cwd=folder, capture_output=True,
                          encoding="utf-8", check=True)
    status = {each["name"]: each["status"] for each in json.loads(done.stdout)["findings"]}
    assert {status[name] for name in ("calendar", "pictures", "notebooks", "kernel", "graph drawn")} == {"OK"}
