"""Notebook 14: borders that are exact, and a credit that is never lost."""

from __future__ import annotations

from typing import Any

from ..checks import Exercise, Wrong, first_wrong_row, is_function

# ---- leads-1


class Purse:
    """So many credits: `take()` takes one, or raises if there is none; `give_back()` returns one."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self) -> None:
        if self.left < 1:
            raise RuntimeError("no credits are left")
        self.left -= 1

    def give_back(self) -> None:
        self.left += 1


def _tried(answer: Any, credits: int, fails: bool) -> tuple[Purse, int, int, str | None, Any]:
    """What a paid call did: the purse, calls made, credits at the moment of the call, what was raised, the result."""
    purse, seen = Purse(credits), list[int]()

    def call() -> str:
        seen.append(purse.left)
        if fails:
            raise ConnectionError("no answer")
        return "reply"
    try:
        result, error = answer(purse, call), None
    except Exception as raised:
        result, error = None, type(raised).__name__
    return purse, len(seen), seen[0] if seen else -1, error, result


def check_paid(answer: Any) -> str | None:
    if wrong := is_function(answer):
        return wrong
    purse, calls, then, error, result = _tried(answer, 3, fails=False)
    if error or calls != 1:
        return f"with three credits and a model that answers: called {calls} times, raised {error or 'nothing'}"
    if result != "reply":
        return f"the model said 'reply', and paid returns {result!r}: did it forget its return?"
    if purse.left != 2:
        return f"three credits, one call, and {purse.left} are left: a call that worked costs one"
    if then != 2:
        return "during the call nothing had been taken yet: two calls at once would share one credit; take it before"
    purse, calls, _, error, _ = _tried(answer, 3, fails=True)
    if purse.left != 3:
        return f"the call failed, and {purse.left} of three credits are left: who gives it back?"
    if error is None:
        return "the call failed, and paid raised nothing: the failure is data for the graph, let it out"
    purse, calls, _, error, _ = _tried(answer, 0, fails=False)
    if calls:
        return "there was no credit, and the model was called all the same"
    if purse.left != 0:
        return f"there was no credit and no call, and now there are {purse.left}: what was not taken is not given back"
    return None if error else "there was no credit, and paid raised nothing: whoever asked must hear of it"


PAID = Exercise(
    name="leads-1",
    statement="""\
A `purse` has `take()`, which raises if it is empty, and `give_back()`. Write `paid(purse, call)`: it takes a credit
*before* `call()`, returns what `call()` returns, and gives the credit back if the call fails. A failure comes out of
`paid`.""",
    todo="write a function of purse and call, and put it into answer",
    check=check_paid,
    why="Taken before, given back after a failure, and never given back what was not taken.",
    hints=[
        "take() comes first, outside of any try: if it raises, there is nothing to give back.",
        "Then try: return call(). What belongs into the except?",
        "except Exception: purse.give_back(), and then raise, so that the failure comes out.",
    ],
    solution="""\
def paid(purse, call):
    purse.take()
    try:
        return call()
    except Exception:
        purse.give_back()
        raise

answer = paid
""",
    wrong={
        "after the call": Wrong("""\
def answer(purse, call):
    result = call()
    purse.take()
    return result
""", "nothing had been taken yet"),
        "never given back": Wrong("""\
def answer(purse, call):
    purse.take()
    return call()
""", "who gives it back?"),
        "always given back": Wrong("""\
def answer(purse, call):
    purse.take()
    try:
        return call()
    finally:
        purse.give_back()
""", "a call that worked costs one"),
        "swallowed": Wrong("""\
def answer(purse, call):
    purse.take()
    try:
        return call()
    except Exception:
        purse.give_back()
""", "let it out"),
        "take inside the try": Wrong("""\
def answer(purse, call):
    try:
        purse.take()
        return call()
    except Exception:
        purse.give_back()
        raise
""", "what was not taken is not given back"),
        "no return": Wrong("""\
def answer(purse, call):
    purse.take()
    call()
""", "did it forget its return?"),
    })


# ---- leads-2

ROWS = [({"score": 0.95}, "hot"), ({"score": 0.8}, "hot"), ({"score": 0.7999999}, "warm"), ({"score": 0.5}, "warm"),
        ({"score": 0.4999}, "cold"), ({"score": 0.0}, "cold"), ({"score": 1.0}, "hot")]


def check_band(answer: Any) -> str | None:
    if wrong := is_function(answer):
        return wrong
    for row, words in (({"score": 0.8}, "0.8 is hot: at least means that the border is in"),
                       ({"score": 0.5}, "0.5 is warm: at least means that the border is in"),
                       ({"score": 0.7999999}, "0.7999999 is below 0.8: rounding moves the border")):
        want = next(band for known, band in ROWS if known == row)
        if wrong := first_wrong_row(answer, [(row, want)]):
            return f"{wrong}: {words}"
    return first_wrong_row(answer, ROWS)




BAND = Exercise(
    name="leads-2",
    statement="""\
Write `band(state)`: `"hot"` for a `state["score"]` of at least 0.8, `"warm"` from 0.5 up to that, `"cold"` below.""",
    todo="write a function of the state that returns a label, or let band_router make one, and put it into answer",
    check=check_band,
    why="A number decides, the borders belong to the better band, and nothing is rounded.",
    hints=[
        "Begin with the highest band, and compare with >=.",
        "Do not round: 0.7999999 is not 0.8.",
        'band_router("score", {"hot": 0.8, "warm": 0.5}, below="cold") is such a function.',
    ],
    solution="""\
from minigraph.nodes import band_router

answer = band_router("score", {"hot": 0.8, "warm": 0.5}, below="cold")
""",
    wrong={
        "more than": Wrong("""\
def answer(state):
    return "hot" if state["score"] > 0.8 else "warm" if state["score"] >= 0.5 else "cold"
""", "0.8 is hot"),
        "the other border": Wrong("""\
def answer(state):
    return "hot" if state["score"] >= 0.8 else "warm" if state["score"] > 0.5 else "cold"
""", "0.5 is warm"),
        "rounded": Wrong("""\
def answer(state):
    score = round(state["score"], 2)
    return "hot" if score >= 0.8 else "warm" if score >= 0.5 else "cold"
""", "rounding moves the border"),
        "the wrong way round": Wrong("""\
def answer(state):
    return "cold" if state["score"] >= 0.8 else "warm" if state["score"] >= 0.5 else "hot"
""", "expected 'hot', got 'cold'"),
    })

EXERCISES = [PAID, BAND]
