"""The instructor's guide says what the notebooks say: minutes come from cell tags, exercises are those there are."""

import json
import re
from pathlib import Path

import pytest

from minigraph.checks import TOPICS, exercises

COURSE = Path(__file__).parent.parent / "notebooks"
GUIDE = (COURSE / "README.md").read_text(encoding="utf-8")


def sections(name):
    """Title of a section -> its minutes, from the tags of a notebook's cells."""
    found = {}
    for cell in json.loads((COURSE / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        for tag in cell["metadata"].get("tags", []):
            if tag.startswith("minutes:"):
                titles = re.findall(r"^#+ (.*)$", "".join(cell["source"]), re.MULTILINE)
                found[titles[-1] if titles else "Your turn"] = int(tag.removeprefix("minutes:"))
    return found


def route(minutes):
    """The rows of one route: (part, minutes)."""
    table = re.search(rf"### {minutes} minutes\n\n(.*?)\n\n", GUIDE, re.DOTALL).group(1)
    return [(part.strip(), int(number)) for part, number in re.findall(r"^\| (.*?) \| (\d+) \|$", table, re.MULTILINE)]


@pytest.mark.parametrize("minutes", [45, 90, 180, 220])
def test_a_route_adds_up(minutes):
    """The parts of a route are as long as their sections, and together as long as it says."""
    rows = route(minutes)
    assert sum(number for _, number in rows) == minutes
    for part, number in rows:
        name, _, named = part.partition(": ")
        if name in TOPICS.values():
            there = sections(name)
            wanted = named.split("; ") if named else list(there)
            assert number == sum(there[title] for title in wanted), part


def test_the_two_long_routes_hold_the_whole_course():
    """Every notebook, in order: the first seven on one day, the others on a second."""
    parts = [part for minutes in (180, 220) for part, _ in route(minutes)]
    assert [part for part in parts if part in TOPICS.values()] == list(TOPICS.values())


def test_every_exercise_is_in_the_table_of_answers():
    """The table names each exercise once, and no other."""
    named = re.findall(r"^\| ([a-z]+-\d) \|", GUIDE, re.MULTILINE)
    assert named == [task.name for topic in TOPICS for task in exercises(topic)]


def test_every_notebook_has_its_page():
    """Misconception, whiteboard and question for each."""
    assert len(re.findall(r"^### [01]\d ", GUIDE, re.MULTILINE)) == len(TOPICS)
    for part in ("**They believe**", "**On the whiteboard:**", "**They ask**"):
        assert GUIDE.count(part) == len(TOPICS)
