"""What tests of charts share: runs in virtual time, and all that is written on a figure, read back from its Axes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from minigraph import END, START, Graph, GraphError, GraphState, emit, resume_graph, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.nodes import graph_node, human_node, map_node, retry
from minigraph.palette import contrast
from minigraph.trace import Trace

ODD = ["$x^2$", "$\\frac{1}{2", "<script>alert('&')</script>", 'a "quoted" name', "line\nbreak", "🚀 go 👩\u200d🚀",
       "日本語の名前", "nul\0", "x" * 90, "a_name_that_goes_on_and_on_and_on_and_never_really_stops", "שלום", "ﷺ",
       "e\u0301\u0301\u0301"]


def takes(seconds: float, error: Exception | None = None, **writes: Any) -> Any:
    """Return a node function that sleeps, then raises or writes."""
    def work(state: Any) -> dict[str, Any]:
        sleep(seconds)
        if error:
            raise error
        return writes
    return work


def run(graph: Graph, state: dict[str, Any] | None = None, **options: Any) -> Trace:
    """Return the trace of a run in virtual time, be it one that a collision ends."""
    trace = Trace()
    with virtual_time():
        try:
            run_graph(graph, state or {}, trace, **options)
        except GraphError:
            assert trace.status == "failed"
    return trace


def run_then_resume(graph: Graph, answers: dict[str, Any], trace: Trace, again: Trace) -> GraphState:
    """Return the state of a run that paused and was resumed; `trace` hears the first part, `again` the second."""
    with virtual_time():
        state = run_graph(graph, {}, trace)
    with virtual_time():
        return resume_graph(graph, state.journal, answers, observer=again)


def research() -> Graph:
    """Two nodes at once, one of which waits 0.6 s for the other, and one below them with a router."""
    graph = Graph("research").add_node("search", takes(1, pages=2)).add_node("recall", takes(0.4, memory=1))
    graph.add_node("rank", takes(0.3, ranked=1)).add_edge(START, "search").add_edge(START, "recall")
    graph.add_edge("search", "rank").add_edge("recall", "rank")
    return graph.add_router("rank", lambda state: "good", {"good": END})


def nested(laps: int = 2) -> Graph:
    """A graph inside a node, beside a plain one; it runs `laps` times."""
    graph = Graph("report").add_node("plan", takes(0.5, topic="tea"))
    graph.add_node(graph_node("research", research(), [], ["ranked"], max_visits=laps))
    graph.add_node("weather", takes(0.7, weather="wet")).add_node("write", takes(1, text="x"))
    for src, dst in [(START, "plan"), ("plan", "research"), ("plan", "weather"), ("research", "write"),
                     ("weather", "write")]:
        graph.add_edge(src, dst)
    left = iter([*["again"] * (laps - 1), "done"])
    return graph.add_router("write", lambda state: next(left), {"again": "research", "done": END})


def mapped(items: int, failing: frozenset[int] = frozenset()) -> Graph:
    """A map of this many items, that take 0.05 to 0.55 s."""
    def fetch(item: int) -> int:
        sleep(0.05 + item * 37 % 11 / 20)
        if item in failing:
            raise ValueError(f"no page {item}")
        return item

    graph = Graph("mapped").add_node("list", takes(0.2, pages=list(range(items))))
    graph.add_node(map_node("fetch", fetch, "pages", "texts", on_error="join")).add_node("join", takes(0.3))
    return graph.add_edge(START, "list").add_edge("list", "fetch").add_edge("fetch", "join")


def letter() -> Graph:
    """A gate below a draft, beside a branch that goes on."""
    graph = Graph("letter").add_node("draft", takes(1, text="Dear Ada")).add_node("facts", takes(3, facts=1))
    graph.add_node(human_node("approve", "Send this? {text}", "approved")).add_node("send", takes(0.2, sent=True))
    return (graph.add_edge(START, "draft").add_edge("draft", "facts").add_edge("draft", "approve")
            .add_edge("approve", "send"))


def letter_inside() -> Graph:
    """The same in a node of another graph."""
    graph = Graph("outer").add_node("begin", takes(0.5)).add_node(graph_node("mail", letter(), [], ["sent"]))
    graph.add_node("other", takes(6)).add_edge(START, "begin")
    return graph.add_edge("begin", "mail").add_edge("begin", "other")


def odd() -> Graph:
    """Nodes and keys of any text there is, failing ones and a nested one among them."""
    inner = Graph("🚀 & <inner>")
    for name in ODD[:4]:
        inner.add_node(name, takes(0.5, **{name: 1})).add_edge(START, name)
    graph = Graph("a title that is too long for any figure, & <b>bold</b> $x$ 🚀 " * 4)
    for number, name in enumerate(ODD):
        graph.add_node(name, takes(1 + number / 7, ValueError(f"$y_1$ 🚀 {name}\n") if number % 3 == 1 else None,
                                   **{f"key of {name}": 1})).add_edge(START, name)
    graph.add_node(graph_node("holds 日本", inner, [], [])).add_edge(START, "holds 日本")
    graph.add_node(human_node("ask <b>", "Send & sign? 🚀 " * 9, "answer")).add_edge(START, "ask <b>")
    return graph


def everything() -> Graph:
    """A graph that has all there is to mark: a wait, a model, a failure, a retry, a gate, a map of many."""
    def think(state: Any) -> None:
        sleep(2)
        emit("llm", {"name": "stub", "ms": 2000.0, "error": None})

    answers = iter([ValueError("busy"), None])

    def flaky(state: Any) -> None:
        sleep(0.5)
        if error := next(answers):
            raise error

    graph = mapped(40, frozenset({3}))
    graph.add_node("a node whose name is very long", think, kind="llm").add_node("flaky", retry(flaky, attempts=2))
    graph.add_node(human_node("ask", "Well?", "answer"))
    return graph.add_edge(START, "a node whose name is very long").add_edge(START, "flaky").add_edge(START, "ask")


# ---- reading the Axes back


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


Box = tuple[float, float, float, float]  # left, bottom, right, top, in pixels


def _box(artist: Any) -> Box:
    box = artist.get_window_extent()
    return float(box.x0), float(box.y0), float(box.x1), float(box.y1)


def _letters(ax: Any) -> list[Any]:
    ax.figure.draw_without_rendering()
    low, high = sorted(ax.get_xlim())
    ticks = [text for text in ax.get_xticklabels() if low <= text.get_position()[0] <= high]
    return [text for text in [*ax.texts, *ax.get_yticklabels(), *ticks, ax.xaxis.label] if text.get_text()]


def written(ax: Any) -> list[tuple[str, Box]]:
    """Return (text, where it is) of all that is written on the figure."""
    return [(text.get_text(), _box(text)) for text in _letters(ax)]


def _over(one: Box, other: Box, aside: float = 0.5, above: float = 1.5) -> bool:
    return (one[2] > other[0] + aside and other[2] > one[0] + aside
            and one[3] > other[1] + above and other[3] > one[1] + above)


def faults(ax: Any) -> list[str]:
    """Return what overlaps, and what is not whole on the figure, a line each: as it is shown, and twice as sharp."""
    found = []
    for dpi in (96, 192):
        ax.figure.set_dpi(dpi)
        there = written(ax)
        wide, high = ax.figure.bbox.width, ax.figure.bbox.height
        found += [f"{text!r} is cut off" for text, (left, low, right, top) in there
                  if left < 0 or low < 0 or right > wide or top > high]
        found += [f"{one!r} lies over {other!r}" for (one, a), (other, b) in combinations(there, 2) if _over(a, b)]
    ax.figure.set_dpi(96)
    return found


def palest(ax: Any) -> float:
    """Return the least contrast of any text on the Axes with its slip of paper, or with what is drawn where it is."""
    from matplotlib.colors import to_hex

    texts, paper = _letters(ax), ax.figure.get_facecolor()
    patches = [(_box(patch), patch.get_facecolor()) for patch in ax.patches]
    found = set()
    for text in texts:
        box, slip = _box(text), text.get_bbox_patch()
        grounds = [slip.get_facecolor()] if slip else [paper, *(fill for at, fill in patches if _over(at, box, 0, 0))]
        found |= {(to_hex(text.get_color()), to_hex(ground)) for ground in set(grounds)}
    return min(contrast(*pair) for pair in found)


def see_through(png: bytes) -> bool:
    """Return True if any pixel of the picture lets a dark page through."""
    import io

    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png), format="png")
    return pixels.shape[2] == 4 and bool((pixels[:, :, 3] < 1).any())
