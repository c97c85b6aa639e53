"""Notebook 06: which jobs want a graph, and what the traces say, in one honest sentence."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from ..checks import Exercise, Wrong
from ..workflows.measured import call_seconds, node_seconds

# ---- loops-1

KINDS = ("skill", "loop", "graph")
BRIEFING = "brief me every morning from the same four sources"
REVIEW = "work on a pull request until its reviewers are happy"
REPORT = "write the Friday report, done differently every week"
LEADS = "answer a lead: three look-ups, a score, one of three replies"
BUILD = "find out why last night's build failed"
COMMITS = "word commit messages the way our team does"

JOBS = {  # job -> what it is, and what is said of the other two
    BRIEFING: ("graph", {"loop": "a loop may have enough after two sources; can this job afford one that forgets?",
                         "skill": "it no longer changes, and a skill only asks for all four; who sees to it?"}),
    REVIEW: ("loop", {"graph": "can you draw step three yet?",
                      "skill": "words say how to begin; who looks at what came back, and goes on from there?"}),
    REPORT: ("skill", {"graph": "it changes every week; harden what has stopped changing",
                       "loop": "the steps are known on the day, and need writing down; where would you change them?"}),
    LEADS: ("graph", {"loop": "you can draw it already, branches and all; what is left for a model to decide?",
                      "skill": "three look-ups want to run at once, and words run nothing; you can draw this one"}),
    BUILD: ("loop", {"graph": "what to read second depends on what the first log says: can you draw step three yet?",
                     "skill": "somebody must look, think and look again; words alone do not go round"}),
    COMMITS: ("skill", {"loop": "there is nothing to look up and no call to repeat; which words would do?",
                        "graph": "one call, one step: that is a graph of one node; which words would do?"}),
}


def check_jobs(answer: Any) -> str | None:
    if not isinstance(answer, Mapping):
        return 'answer is to be a dictionary, from each job to "skill", "loop" or "graph"'
    said = {}  # job -> what it was said to be
    for name, kind in answer.items():
        close = difflib.get_close_matches(str(name).strip().lower(), JOBS, n=1)
        if not close:
            return f"{name!r} is none of the six jobs; copy them from the exercise"
        said[close[0]] = str(kind).strip().lower() if isinstance(kind, str) else kind
    for job, (right, otherwise) in JOBS.items():
        kind = said.get(job, ...)
        if kind is ... or kind is None or kind == "":
            return f"one job is still to be sorted: {job!r}"
        if kind not in KINDS:
            return f'for {job!r} the answer is "skill", "loop" or "graph", not {answer_in(kind)}'
        if kind != right:
            return f"{job!r} as a {kind}: {otherwise[kind]}"
    return None


def answer_in(kind: Any) -> str:
    return repr(kind) if len(repr(kind)) < 60 else type(kind).__name__


def sorted_as(**changes: str) -> str:
    """Source of an answer in which the named jobs (by the name of their constant) are sorted otherwise."""
    kinds = {job: changes.get(name, JOBS[job][0]) for name, job in NAMES.items()}
    return "answer = {\n" + "".join(f'    "{job}": "{kind}",\n' for job, kind in kinds.items()) + "}\n"


NAMES = {"briefing": BRIEFING, "review": REVIEW, "report": REPORT, "leads": LEADS, "build": BUILD, "commits": COMMITS}

SORT = Exercise(
    name="loops-1",
    statement='Sort six jobs: is each a `"skill"`, a `"loop"` or a `"graph"`?',
    todo='write "skill", "loop" or "graph" beside each job',
    check=check_jobs,
    why="Words where they change, a loop where you cannot draw step three, a graph where nothing may be forgotten.",
    hints=[
        "Ask two questions of each job: can I draw all its steps today? Will the drawing be right next month?",
        "What you cannot draw, because each step depends on what the last one found, is a loop. There are two of them.",
        "What changes every week, or is a matter of words alone, is a skill. There are two of each kind.",
    ],
    solution=sorted_as(),
    wrong={
        "PR work as a graph": Wrong(sorted_as(review="graph"), "can you draw step three yet?"),
        "a routine that changes weekly as a graph": Wrong(sorted_as(report="graph"),
                                                          "harden what has stopped changing"),
        "the briefing as a loop": Wrong(sorted_as(briefing="loop"), "one that forgets"),
        "the briefing as a skill": Wrong(sorted_as(briefing="skill"), "only asks"),
        "everything is a graph": Wrong(sorted_as(**dict.fromkeys(NAMES, "graph")), "can you draw step three yet?"),
        "one job left out": Wrong(f'answer = {{"{BRIEFING}": "graph", "{REVIEW}": ...}}', "still to be sorted"),
        "another word": Wrong(sorted_as(leads="workflow"), '"skill", "loop" or "graph"'),
    },
)


# ---- loops-2


def figures() -> dict[str, float]:
    """What the recorded times say: seconds, and the three numbers of the sentence."""
    nodes, calls = node_seconds("gather"), call_seconds("brief")
    scans = [seconds for name, seconds in nodes.items() if name.startswith("scan_")]
    ends = list(accumulate(seconds for _, seconds in calls))
    gathered = max(end for (name, _), end in zip(calls, ends, strict=True) if name != "model")
    at_once, total = max(scans), max(scans) + nodes["synthesize"]
    return {"at_once": at_once, "series": sum(scans), "graph": total, "loop_gathering": gathered, "loop": ends[-1],
            "gathering": gathered / at_once, "overlap": sum(scans) / at_once, "overall": 100 * (1 - total / ends[-1])}


def check_sentence(answer: Any) -> str | None:
    f = figures()
    if isinstance(answer, (list, tuple)) and len(answer) == 3:
        answer = dict(zip(("gathering", "overlap", "overall"), answer, strict=True))
    if not isinstance(answer, Mapping):
        return 'three numbers are asked for: answer = {"gathering": ..., "overlap": ..., "overall": ...}'
    for name in ("gathering", "overlap", "overall"):
        said = answer.get(name, ...)
        if said is ... or said is None:
            return f"the number for {name!r} is still missing"
        if isinstance(said, bool) or not isinstance(said, (int, float)) or said != said:
            return f"{name!r} is to be a plain number, without a sign or a word, not {answer_in(said)}"
    return (gathering_wrong(answer["gathering"], f) or overlap_wrong(answer["overlap"], f)
            or overall_wrong(answer["overall"], f))


def gathering_wrong(said: float, f: Mapping[str, float]) -> str | None:
    if abs(said - f["gathering"]) <= 0.05:
        return None
    if abs(said - 3.5) <= 0.03:
        return (f"gathering {said:g} times as fast comes of dividing rounded figures, 6.7 by 1.9; "
                "divide what the traces say, and round afterwards")
    if abs(said - f["loop"] / f["graph"]) <= 0.05:
        return f"gathering {said:g} times as fast: that divides the totals; when does the last source arrive in each?"
    return f"gathering {said:g} times as fast: divide when the loop has its last source by when the graph has"


def overlap_wrong(said: float, f: Mapping[str, float]) -> str | None:
    if abs(said - f["overlap"]) <= 0.05:
        return None
    if abs(said - f["gathering"]) <= 0.1:
        return (f"overlap {said:g}: is all of it parallelism? But the scans in series take {f['series']:.1f} s, "
                f"and the loop gathers for {f['loop_gathering']:.1f} s: what else does the graph not wait for?")
    return f"overlap {said:g}: the scans in series take {f['series']:.1f} s; how long do they take at once?"


def overall_wrong(said: float, f: Mapping[str, float]) -> str | None:
    if min(abs(said - f["overall"]), abs(100 * said - f["overall"])) <= 0.6:
        return None
    if any(abs(said - number) <= 0.1 for number in (f["gathering"], 3.5, f["overlap"])) or abs(
            said - 100 * (1 - 1 / f["gathering"])) <= 1:
        return f"overall {said:g}: that is gathering only; what do the two totals say, answering included?"
    if abs(said - 100 * (f["loop_gathering"] - f["at_once"]) / f["loop"]) <= 1:
        return (f"overall {said:g} %: that is what it gains gathering; how many seconds does it give back "
                "while answering?")
    if abs(said - 100 * (f["loop"] / f["graph"] - 1)) <= 0.6 or abs(said - f["loop"] / f["graph"]) <= 0.01:
        return f"overall {said:g}: that is how much longer the loop takes; how many per cent less does the graph take?"
    return f"overall {said:g} %: compare the totals, {f['graph']:.2f} s beside {f['loop']:.2f} s"


SENTENCE = Exercise(
    name="loops-2",
    statement="""\
Write the honest sentence from the traces: "The graph gathers ... times as fast; overlap explains a factor of ... of
that; overall it takes ... per cent less." Give its three numbers:
`answer = {"gathering": ..., "overlap": ..., "overall": ...}`.""",
    todo='give the three numbers of the sentence: answer = {"gathering": how many times as fast, "overlap": the factor '
         'that overlap explains, "overall": how many per cent less}',
    check=check_sentence,
    why="3.57 times gathering, 1.8 of it overlap, 14 % overall; and all four sources read, which is why one builds it.",
    hints=[
        "All you need stands in print(figures): seconds of gathering and answering, totals, and the scans in series.",
        "gathering: the loop's seconds of it over the graph's. overlap: the scans in series over the scans at once.",
        "overall: 100 times (1 - the graph's total / the loop's total). A speed-up of one part is none of the whole.",
    ],
    solution='answer = {"gathering": 3.57, "overlap": 1.8, "overall": 14}\n',
    wrong={
        "3.5x overall": Wrong('answer = {"gathering": 3.57, "overlap": 1.8, "overall": 3.5}', "gathering only"),
        "72 % overall": Wrong('answer = {"gathering": 3.57, "overlap": 1.8, "overall": 72}', "gathering only"),
        "all parallelism": Wrong('answer = {"gathering": 3.57, "overlap": 3.57, "overall": 14}',
                                 "the scans in series take 3.4 s"),
        "rounded figures divided": Wrong('answer = {"gathering": 3.5, "overlap": 1.8, "overall": 14}',
                                         "dividing rounded figures"),
        "what is given back left out": Wrong('answer = {"gathering": 3.57, "overlap": 1.8, "overall": 32}',
                                             "give back"),
        "the totals divided": Wrong('answer = {"gathering": 1.16, "overlap": 1.8, "overall": 14}', "the totals"),
        "16 % overall": Wrong('answer = {"gathering": 3.57, "overlap": 1.8, "overall": 16}', "per cent less"),
    },
)

EXERCISES = [SORT, SENTENCE]
