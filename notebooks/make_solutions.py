"""solutions/ is made of the exercises: for each its statement, an answer that passes, and the check that says so.

    python notebooks/make_solutions.py              make and run the solutions of every topic there is
    python notebooks/make_solutions.py start loops  of these topics
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent)]

from minigraph import checks  # noqa: E402


def topics() -> list[str]:
    """The topics whose exercises are here, in the order of the course."""
    return [topic for topic in checks.TOPICS if (HERE.parent / "minigraph" / "exercises" / f"{topic}.py").exists()]


def path_of(topic: str) -> Path:
    return HERE / "solutions" / f"{checks.TOPICS[topic]}.ipynb"


def cells(topic: str) -> list[tuple[str, str]]:
    """("markdown" or "code", source) of each cell."""
    title = checks.TOPICS[topic].replace("_", " ")
    found = [("markdown", f"# Solutions: {title}\n\nOne answer each that passes; yours may differ and be as good. "
                          f"The exercises stand in [{title}](../{checks.TOPICS[topic]}.ipynb)."),
             ("code", "from minigraph.checks import check")]
    for task in checks.exercises(topic):
        found += [("markdown", f"## {task.name}\n\n{task.statement.strip()}"),
                  ("code", str(checks.solution(task.name))),
                  ("code", f'check("{task.name}", answer)'),
                  ("markdown", "\n".join(["Answers that do not pass, and what they are told:", "",
                                          *(f"- {mistake}: *{wrong.hint}*" for mistake, wrong in task.wrong.items())]))]
    return found


def notebook(topic: str) -> Any:
    """The notebook, before it has run."""
    from nbformat import v4
    make = {"markdown": v4.new_markdown_cell, "code": v4.new_code_cell}
    return v4.new_notebook(cells=[make[kind](source) for kind, source in cells(topic)])


def main(names: list[str]) -> int:
    import nbformat

    import notebooks  # tests/notebooks.py

    os.environ["PYTHONPATH"] = str(HERE.parent)  # the kernels' too: the package need not be installed
    bad = 0
    for topic in names or topics():
        path = path_of(topic)
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook(topic), path)
        complaints = notebooks.run(path)
        print(f"{path.name}: {'ok' if not complaints else ''}", *complaints, sep="\n  " if complaints else "")
        bad += bool(complaints)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
