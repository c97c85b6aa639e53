"""The README says what is true: its example runs, its commands and its files exist."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says():
    """The first Python block, run, prints the block below it."""
    code, output = re.search(r"```python\n(.*?)```\s+```\n(.*?)```", README, re.DOTALL).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


def test_make_targets_exist():
    """Every `make target` that the README names is in the Makefile, with its line of help."""
    targets = set(re.findall(r"make ([a-z-]+)", README))
    assert {"gather", "test", "lab", "bench"} <= targets
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in targets if not re.search(rf"^{name}:.*## ", makefile, re.MULTILINE)] == []


def test_files_and_links_exist():
    """Every file in the table and every link leads somewhere."""
    named = re.findall(r"^\| `([^`]+)` \|", README, re.MULTILINE) + re.findall(r"\]\((?!http)([^)#]+)\)", README)
    assert len(named) > 12
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_module_is_in_the_table():
    """A module without a sentence is a module nobody finds."""
    modules = [path.name for path in (ROOT / "minigraph").glob("*.py") if not path.name.startswith("__")]
    assert [name for name in modules if f"minigraph/{name}`" not in README] == []
