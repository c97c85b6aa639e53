"""The palette: what is written can be read, what is told apart by colour can be told apart without, and each name is a
meaning."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from minigraph import palette, shape
from minigraph.palette import (
    BAND,
    INK,
    INSIDE,
    KINDS,
    LETTERS,
    PAPER,
    READABLE,
    VISIBLE,
    contrast,
    tint,
)

PACKAGE = Path(palette.__file__).parent
OKABE_ITO = {"orange": (230, 159, 0), "sky": (86, 180, 233), "green": (0, 158, 115), "yellow": (240, 228, 66),
             "blue": (0, 114, 178), "vermilion": (213, 94, 0), "purple": (204, 121, 167)}  # as they published them
COLOURS = {name: value for name, value in vars(palette).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("letters, ground", [(letters, ground) for letters, grounds in LETTERS.items()
                                             for ground in dict.fromkeys(grounds)])
def test_whatever_is_written_can_be_read(letters: str, ground: str) -> None:
    """Each pair of letters and what they may stand on has a contrast of at least 4.5 to 1."""
    assert READABLE == 4.5
    assert contrast(letters, ground) >= READABLE


def test_every_fill_may_be_written_on() -> None:
    """Whatever a node, a box or a band is filled with, ink may stand on it; no fill is forgotten in the test above."""
    assert {*KINDS.values(), *INSIDE.values(), PAPER, BAND} <= set(LETTERS[INK])


@pytest.mark.parametrize("line", ["DONE", "RUNNING", "WAITING", "FAILED", "ABSENT", "MARK"])
def test_lines_that_mean_something_can_be_seen(line: str) -> None:
    """Lines and borders need 3 to 1 on paper; bars, which have an outline of ink, need none."""
    assert contrast(COLOURS[line], PAPER) >= VISIBLE == 3.0


@pytest.mark.parametrize("one, other, ratio", [
    ("#000000", "#FFFFFF", 21.0), ("#FFFFFF", "#FFFFFF", 1.0), ("#777777", "#FFFFFF", 4.48),
    ("#333333", "#FFFFFF", 12.63), ("#0000FF", "#FFFFFF", 8.59), ("#FF0000", "#FFFFFF", 4.0),
    ("#000080", "#C0C0C0", 8.80)])
def test_contrast_is_that_of_the_standard(one: str, other: str, ratio: float) -> None:
    """Known ratios, and the order of the two colours does not matter."""
    assert contrast(one, other) == pytest.approx(ratio, abs=0.01) == contrast(other, one)


def test_the_seven_colours_are_those_that_were_published() -> None:
    """Okabe and Ito's, digit for digit: no shade of our own among them."""
    for name, parts in OKABE_ITO.items():
        assert COLOURS[name.upper()] == "#" + "".join(f"{part:02X}" for part in parts)


def test_a_tint_is_the_colour_with_white_in_it() -> None:
    """None of it, some of it, nothing else."""
    assert [tint("#0072B2", paper) for paper in (0, 0.75, 1)] == ["#0072B2", "#BFDCEC", "#FFFFFF"]


def test_every_kind_of_node_has_its_fill() -> None:
    """No two kinds share one, and those that hold a graph have a lighter one for the box around it."""
    assert set(KINDS) == set(shape.KINDS)
    assert len(set(KINDS.values())) == len(KINDS)
    assert set(INSIDE) == {"graph", "map"}
    assert all(contrast(INK, INSIDE[kind]) > contrast(INK, KINDS[kind]) for kind in INSIDE)


def test_the_palette_imports_nothing() -> None:
    """It lies below everything that draws."""
    tree = ast.parse((PACKAGE / "palette.py").read_text(encoding="utf-8"))
    imported = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [node.module for node in imported if isinstance(node, ast.ImportFrom)] == ["__future__"]
    assert len(imported) == 1


DARK_TOO = {"panel"}  # has paper for dark pages beside this palette's, and tests of its own for what stands on it
DRAWING = [path for path in sorted(PACKAGE.rglob("*.py"))
           if "palette import" in path.read_text(encoding="utf-8") and path.stem not in DARK_TOO]


@pytest.mark.parametrize("path", DRAWING, ids=lambda path: path.stem)
def test_what_draws_has_no_colours_of_its_own(path: Path) -> None:
    """A colour in six digits stands in palette.py and nowhere else; in a docstring it may be quoted."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {id(node.body[0].value) for node in ast.walk(tree)
             if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body
             and isinstance(node.body[0], ast.Expr)}
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
             and id(node) not in prose and re.search(r"#[0-9A-Fa-f]{6}\b", node.value)]
    assert len(DRAWING) >= 3
    assert found == []
