"""Notebook 13: what a check that failed is worth, and how often the checks run."""

from __future__ import annotations

from typing import Any

from ..checks import Exercise, Wrong, first_wrong_row, is_function, is_number

# ---- content-1

ROWS = [
    ({"tone": 1.0, "facts": 0.9, "length": 0.8}, "pass"),
    ({"tone": 0.7, "facts": 0.7, "length": 0.7}, "pass"),
    ({"tone": 0.5, "facts": 1.0, "length": 1.0}, "fixable"),
    ({"tone": 0.3, "facts": 1.0, "length": 1.0}, "fixable"),
    ({"tone": 0.1, "facts": 1.0, "length": 1.0}, "person"),
    ({"tone": 1.0, "facts": None, "length": 1.0}, "person"),
    ({"tone": 0.5, "facts": None, "length": 1.0}, "fixable"),
    ({"tone": 0.1, "facts": None, "length": 1.0}, "person"),
    ({"tone": None, "facts": None, "length": None}, "person"),
]
WHY = [  # scores -> what whoever gets them wrong has to think of
    ({"tone": 0.1, "facts": 1.0, "length": 1.0}, "an insult with good facts is an insult: the lowest score decides"),
    ({"tone": 0.7, "facts": 0.7, "length": 0.7}, "0.7 passes: the border belongs to the better side"),
    ({"tone": 0.3, "facts": 1.0, "length": 1.0}, "0.3 is fixable: the border belongs to the better side"),
    ({"tone": 1.0, "facts": None, "length": 1.0}, "nobody checked the facts: a check that failed has not passed"),
    ({"tone": 0.5, "facts": None, "length": 1.0}, "the tone can be mended while the facts wait to be checked"),
]


def check_way(answer: Any) -> str | None:
    wrong = is_function(answer)
    if wrong:
        return wrong
    for scores, words in WHY:
        want = next(way for row, way in ROWS if row == scores)
        if first_wrong_row(answer, [(scores, want)]):
            return f"{first_wrong_row(answer, [(scores, want)])}: {words}"
    return first_wrong_row(answer, ROWS)


WAY = Exercise(
    name="content-1",
    statement="""\
Write `way(scores)`: it gets a dict, check -> score, with `None` for a check that failed, and returns a label:
`"pass"` if all three were made and the lowest is at least 0.7; `"fixable"` if the lowest that was made is at least 0.3
and below 0.7; else `"person"`.""",
    todo='write a function that returns "pass", "fixable" or "person", and put it into answer',
    check=check_way,
    why="The lowest score decides, the borders belong to the better side, and what nobody checked has not passed.",
    hints=[
        "Begin with the scores that were made: [score for score in scores.values() if score is not None].",
        "If there are none, or the lowest is below 0.3, a person decides. If it is below 0.7, it is fixable.",
        "What is left has no low score. It passes only if all three were made: None not in scores.values().",
    ],
    solution="""\
def way(scores):
    made = [score for score in scores.values() if score is not None]
    if not made or min(made) < 0.3:
        return "person"
    if min(made) < 0.7:
        return "fixable"
    return "pass" if len(made) == len(scores) else "person"

answer = way
""",
    wrong={
        "the average": Wrong("""\
def answer(scores):
    made = [score for score in scores.values() if score is not None]
    if not made or len(made) < 3 and sum(made) / len(made) >= 0.7:
        return "person"
    mean = sum(made) / len(made)
    return "pass" if mean >= 0.7 else "fixable" if mean >= 0.3 else "person"
""", "the lowest score decides"),
        "a failed check passes": Wrong("""\
def answer(scores):
    low = min(1.0 if score is None else score for score in scores.values())
    return "pass" if low >= 0.7 else "fixable" if low >= 0.3 else "person"
""", "a check that failed has not passed"),
        "a failed check is a bad text": Wrong("""\
def answer(scores):
    low = min(0.0 if score is None else score for score in scores.values())
    return "pass" if low >= 0.7 else "fixable" if low >= 0.3 else "person"
""", "can be mended while the facts wait"),
        "the border": Wrong("""\
def answer(scores):
    made = [score for score in scores.values() if score is not None]
    if not made or min(made) < 0.3:
        return "person"
    if min(made) <= 0.7:
        return "fixable"
    return "pass" if len(made) == len(scores) else "person"
""", "0.7 passes"),
        "the other border": Wrong("""\
def answer(scores):
    made = [score for score in scores.values() if score is not None]
    if not made or min(made) <= 0.3:
        return "person"
    if min(made) < 0.7:
        return "fixable"
    return "pass" if len(made) == len(scores) else "person"
""", "0.3 is fixable"),
    })


# ---- content-2


def check_runs(answer: Any) -> str | None:
    wrong = is_number(answer, "a number of visits")
    if wrong:
        return wrong
    if answer == 9:
        return None
    if answer == 6:
        return "6 leaves a lap out: the first draft is checked, and so is the text after each of two revisions"
    if answer == 3:
        return "3 is what one lap takes: how many laps are there?"
    if answer == 2:
        return "2 is how often it was revised: what comes after each revision, and before the first?"
    return f"not {answer:g}: run it on content.drafts()[2], and add up the visits of the three checks"


RUNS = Exercise(
    name="content-2",
    statement="""\
A text passes after its second revision. How many visits do the three checks have, all together?""",
    todo="put a number in place of the three dots",
    check=check_runs,
    why="Three laps, of which each asks all three checks: a mended sentence may have broken something else.",
    hints=[
        "After a revision, which checks run again: the one that complained, or all?",
        "Follow the edges out of revise. Then count the laps: draft, revision, revision.",
        'content.run(content.drafts()[2]["text"]) is such a text; state.visits has the counts.',
    ],
    solution="""\
from minigraph.workflows import content

state, trace = content.run(content.drafts()[2]["text"])
answer = sum(state.visits[f"check_{check}"] for check in content.CHECKS)
""",
    wrong={
        "the revisions alone": Wrong("answer = 6", "leaves a lap out"),
        "one lap": Wrong("answer = 3", "how many laps"),
        "the revisions": Wrong("answer = 2", "how often it was revised"),
        "one check again": Wrong("answer = 5", "add up the visits"),
    })

EXERCISES = [WAY, RUNS]
