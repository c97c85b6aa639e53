"""The gallery: every kind of picture of ten graphs, from 1 node to 40, with texts of every kind; to be looked at.

    .venv/bin/python tests/gallery.py gallery          # writes gallery/index.html, the pictures, and gallery/sheet.png

The page has two switches, for dark paper and for grey; it loads nothing but what lies beside it, and runs no script.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from helpers import make

from minigraph import END, START, Graph, GraphState, Node, emit, run_graph
from minigraph.clock import sleep, virtual_time
from minigraph.draw import draw
from minigraph.film import Film
from minigraph.gantt import chart
from minigraph.gates import human_node
from minigraph.matrix import matrix_chart
from minigraph.nested import graph_node, map_node
from minigraph.nodes import retry
from minigraph.trace import Trace

LONG = "summarise_everything_that_was_said_in_the_meeting_of_the_third_working_group_on_Tuesday"
SCRIPT = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
UGLY = ["🚀 launch 👩‍💻", 'say "hello" & \'bye\'', SCRIPT, "日本語の名前", "naïve café", "line\nbreak\ttab", LONG,
        "right\u202eto left", r"a | b {c} [d] \N </b>"]
UGLY_LABELS = ["go & <b>on</b>", '🚀 "quoted" label', LONG[:60], "</text><script>window.pwned = 3</script>"]


# ---- ten graphs


@dataclass
class Exhibit:
    """A graph, and how it is run: twice, so that the two schedules can be compared."""

    name: str
    says: str
    build: Callable[[], Graph]


def does(seconds: float, kind: str = "fn", **writes: Any) -> dict[str, Any]:
    """A node that takes so long and writes that; one of kind "llm" asks a model once, as far as a trace can tell."""
    def work(state: GraphState) -> dict[str, Any]:
        sleep(seconds)
        if kind == "llm":
            emit("llm", {"name": "stub", "ms": seconds * 1000})
        return writes
    return {"fn": work, "kind": kind}


def fails(seconds: float, text: str, kind: str = "fn", on_error: str | None = None) -> dict[str, Any]:
    def work(state: GraphState) -> dict[str, Any]:
        sleep(seconds)
        raise TimeoutError(text)
    return {"fn": work, "kind": kind, "on_error": on_error}


def as_spec(node: Node) -> dict[str, Any]:
    """What a factory made, for a graph that names its nodes itself."""
    return {"fn": node.fn, "kind": node.kind, "on_error": node.on_error, "max_visits": node.max_visits}


def in_turn(*results: Any) -> Callable[[Any], Any]:
    """A route that says one label after the other, or a node that calls one function after the other."""
    rest = iter(results)

    def take(state: GraphState) -> Any:
        result = next(rest)
        return result(state) if callable(result) else result
    return take


def one() -> Graph:
    return make("START>only only>END", name="one", only=does(0.4, "tool", answer=42))


def two() -> Graph:
    return make("START>ask ask>answer", name="two & <two>", ask=does(1.2, "llm", question="How?"),
                answer=does(0.3, answer="So."))


def gather() -> Graph:
    return make("START>github,web,calendar,memory github>synthesize web>synthesize calendar>synthesize "
                "memory>synthesize digest>END", name="gather", github=does(1.506, "tool", issues=3),
                web=does(1.887, "tool", pages=5), calendar=does(0.002, "tool", events=2),
                memory=does(0.001, "tool", notes=4), synthesize=does(11.279, "llm", text="..."),
                digest=does(0.02, draft="..."),
                routers={"synthesize": (lambda state: "something", {"something": "digest", "nothing": END})})


def content() -> Graph:
    revise = {**does(1.4, "llm", text="better"), "max_visits": 2, "on_error": "person"}
    return make("START>draft draft>tone,length tone>aggregate length>aggregate save>END person>END", name="content",
                draft=does(2, "agent", text="..."), tone=does(0.8, "llm", tone=0.4),
                length=does(0.004, "tool", length=900), aggregate=does(0, score=0.4), revise=revise, save=does(0.01),
                person=does(0.1, "human"),
                routers={"aggregate": (in_turn("fix", "fix", "fix"), {"good": "save", "fine": "save", "fix": "revise"}),
                         "revise": (in_turn("again", "again"), {"again": ["tone", "length"]})})


def names() -> Graph:
    graph = Graph(f"names of every kind: {SCRIPT} & more")
    first, *others, unwell, last = UGLY
    for number, name in enumerate(UGLY):
        spec = does(0.2 + number / 5, ["tool", "llm", "agent", "fn"][number % 4], **{UGLY[number - 1]: f"{name} & <i>"})
        graph.add_node(name, **(fails(0.5, f'{SCRIPT} said "no" & left', "human", last) if name == unwell else spec))
    graph.add_edge(START, first).add_router(first, lambda state: UGLY_LABELS[:2], dict(zip(
        UGLY_LABELS, [others[:4], others[4], others[5], END], strict=True)))
    for name in others[:4]:
        graph.add_edge(name, unwell)
    return graph.add_edge(unwell, END).add_edge(last, END)


def failures() -> Graph:
    flaky = retry(in_turn(fails(0.3, "busy")["fn"], fails(0.3, "busy")["fn"], does(0.2, late=True)["fn"]), 3, delay=0.1)
    return make("START>begin begin>flaky,broken,handled,pick,loop broken>below below>far_below far_below>END flaky>END "
                "handled>END sorry>END left>END", name="what went wrong", begin=does(0.1, day="Monday"),
                flaky=flaky, broken=fails(0.7, "no answer from https://example.org after 700 ms, nor before", "tool"),
                below=does(1), far_below=does(1), handled=fails(0.2, "no", on_error="sorry"), pick=does(0.1),
                sorry=does(0.05, sorry=True), left=does(1),
                loop={**does(0.3, lap=1), "max_visits": 2, "on_error": "sorry"},
                routers={"pick": (lambda state: "nowhere", {"left": "left", "out": END}),
                         "loop": (lambda state: "again", {"again": "loop", "out": END})})


def gates() -> Graph:
    question = f"Send {{letter}}? {SCRIPT} \"yes\" & 'no', dear reader: take your time"
    approve = human_node("approve", question, "approved", choices=["yes", "no"])
    return make("START>draft,price draft>approve price>budget,log approve>send budget>send send>END log>archive "
                "archive>END", name="two gates", draft=does(1.1, "llm", letter="Dear Ada"),
                price=does(0.5, "tool", price=12), approve=as_spec(approve),
                budget=as_spec(human_node("budget", "Is {price} fine?", "budget")), send=does(0.1),
                log=does(0.2, log="x"), archive=does(0.1, kept=True))


def nested() -> Graph:
    library = Graph("library").add_node("look up", **does(0.3, "tool", found=3))
    library.add_node("rank & <sort>", **does(0.6, "llm", best="Ada")).add_edge(START, "look up")
    library.add_edge("look up", "rank & <sort>").add_edge("rank & <sort>", END)
    research = make("START>plan plan>search,side search>enough enough>END note>END", name="research",
                    plan=does(0.5, "llm", plan=1), search=as_spec(graph_node("search", library, [], ["best"])),
                    side=fails(0.9, "no", on_error="note"), note=does(0),
                    enough=as_spec(human_node("enough", "Is {best} enough?", "ok")))
    inner = graph_node("research", research, [], ["ok"], on_error="sorry", max_visits=2)
    return make("START>collect collect>research research>check report>END sorry>END",
                name="a graph in a graph in a graph", collect=does(0.3, "tool", pages=[1, 2]), research=as_spec(inner),
                check=does(0.1), report=does(0.4), sorry=does(0),
                routers={"check": (lambda state: "fine", {"fine": "report", "again": "research"})})


def maps() -> Graph:
    read = {"fn": lambda state: sleep(state["n"] / 10), "kind": "tool"}
    page = make("START>read read>halve halve>END odd>END", name="page", read=read,
                halve={"fn": halves, "on_error": "odd"}, odd=does(0.1, half=None))
    pages = map_node("pages", graph_node("page", page, ["n"], ["half"]).fn, "numbers", "halves")
    return make("START>split split>pages,words pages>bind words>bind bind>END", name="maps", pages=as_spec(pages),
                split=does(0.2, numbers=[{"n": n} for n in range(2, 9)], letters=["a", "b", "c"]),
                words=as_spec(map_node("words", spell, "letters", "spelled")), bind=does(0.8, "llm", book=1))


def halves(state: GraphState) -> dict[str, Any]:
    sleep(0.2)
    if state["n"] % 2:
        raise ValueError(f"{state['n']} is odd")
    return {"half": state["n"] // 2}


def spell(word: str) -> str:
    sleep(0.3)
    return word.upper()


def forty() -> Graph:
    """Forty nodes, every third a router, with ways back: the same ones each time."""
    dice, graph = random.Random(3), Graph("forty nodes, and ways back")
    nodes = [f"{verb}_{what}" for verb in ("read", "check", "merge", "rank", "write")
             for what in ("mail", "news", "notes", "plans", "tasks", "texts", "votes", "words")]
    for number, name in enumerate(nodes):
        spec = does(dice.choice([0.1, 0.4, 1.1]), dice.choice(["fn", "llm", "tool"]), **{name: number})
        spec["fn"] = in_turn(spec["fn"], *[does(0.1)["fn"]] * 9)  # it writes its key once
        graph.add_node(name, **spec, max_visits=9)
    for number, name in enumerate(nodes):
        ahead = [nodes[min(39, number + step)] for step in (dice.randint(1, 4), dice.randint(3, 9))]
        back = nodes[max(0, number - dice.randint(3, 6))]
        if number < 3:
            graph.add_edge(START, name)
        if number == 39:
            graph.add_edge(name, END)
        elif number % 3 == 2:
            route = in_turn(*["back"] * (number % 9 == 2), *["on"] * 9)
            graph.add_router(name, route, {"on": [*ahead, nodes[number + 1]], "back": back, "out": END})
        else:
            for dst in dict.fromkeys([*ahead, nodes[number + 1]]):
                graph.add_edge(name, dst)
    return graph


def wide() -> Graph:
    sources = {f"source_{number}": does(0.05 * (number * 7 % 23 + 1), "tool", **{f"found_{number}": number})
               for number in range(1, 40)}
    return make(f"START>{','.join(sources)} {' '.join(f'{name}>collect' for name in sources)} collect>END",
                name="forty side by side", **sources, collect=does(0.3, found=39))


EXHIBITS = [
    Exhibit("one", "one node", one),
    Exhibit("two", "a chain without an END", two),
    Exhibit("gather", "four sources, a model, a router", gather),
    Exhibit("content", "a loop that reaches its cap", content),
    Exhibit("names", "long names, emoji, quotes, markup and other scripts", names),
    Exhibit("failures", "retried, failed, handled, blocked, refused, left out", failures),
    Exhibit("gates", "two gates that wait", gates),
    Exhibit("nested", "graphs within graphs, and a gate inside", nested),
    Exhibit("maps", "a map of a function, a map of a graph", maps),
    Exhibit("forty", "forty nodes, and ways back", forty),
    Exhibit("wide", "forty side by side", wide)]


# ---- their pictures


@dataclass
class Picture:
    """One picture: what it shows, the file it is in, and the same in words."""

    title: str
    file: str
    text: str


def pictures(exhibit: Exhibit, folder: Path) -> Iterator[Picture]:
    """Every kind of picture of one graph, written to the folder."""
    (graph, waves), (_, ready) = (ran(exhibit, schedule) for schedule in ("waves", "ready"))
    drawings: list[tuple[str, str, Any]] = [
        ("draw(graph)", "plain", draw(graph)), ("draw(graph, trace)", "run", draw(graph, waves)),
        ("draw(graph, trace, nested=False)", "closed", draw(graph, waves, nested=False)),
        ("chart(trace)", "chart", chart(waves)),
        ("chart([waves, ready])", "compare", chart([waves, ready], labels=["waves", "ready"])),
        ("matrix_chart(trace)", "matrix", matrix_chart(waves))]
    for title, kind, drawn in drawings:
        if kind == "closed" and drawn.dot == drawings[1][2].dot:
            continue
        for suffix in ("png", "svg"):
            file = f"{exhibit.name}-{kind}.{suffix}"
            drawn.save(folder / file)
            yield Picture(f"{title}, {suffix.upper()}", file, drawn.text)


def ran(exhibit: Exhibit, schedule: str) -> tuple[Graph, Trace]:
    graph, trace = exhibit.build(), Trace()
    with virtual_time():
        run_graph(graph, {}, trace, max_steps=200, schedule=schedule)
    return graph, trace


def moments(exhibit: Exhibit) -> Iterator[tuple[str, str, str]]:
    """Three moments of the run as (title, HTML, the same in words)."""
    graph, trace = ran(exhibit, "waves")
    film = Film(trace, graph)
    for number in sorted({0, len(film) // 2, len(film) - 1}):
        yield f"moment {number + 1} of {len(film)}", film.html(number), film[number].text


# ---- the page

STYLE = """
body { margin: 0; padding: 1rem; font: 15px/1.4 system-ui, sans-serif; background: #fff; color: #1a1a1a; }
body:has(#dark:checked) { background: #111; color: #eee; }
body:has(#grey:checked) main { filter: grayscale(1); }
header { position: sticky; top: 0; padding: .5rem; background: inherit; z-index: 9; }
figure { display: inline-block; vertical-align: top; margin: .5rem 1rem 1.5rem 0; max-width: 100%; }
figcaption { font-size: 13px; margin-bottom: .3rem; }
img { max-width: min(100%, 900px); display: block; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }
.moment { background: #fff; color: #1a1a1a; padding: .5rem; max-width: 1000px; overflow: auto; }
"""


def page(exhibits: list[Exhibit], folder: Path) -> tuple[str, list[Picture]]:
    """The page as HTML, and the pictures that it shows."""
    parts, shown = [], []
    for exhibit in exhibits:
        graph = exhibit.build()
        parts.append(f'<section id="{exhibit.name}"><h2>{escape(exhibit.name)}: {escape(exhibit.says)}, '
                     f"{len(graph.nodes)} node{'s'[:len(graph.nodes) > 1]}</h2>")
        for picture in pictures(exhibit, folder):
            shown.append(picture)
            image = f'<img src="{picture.file}"{size(folder / picture.file)} alt="{escape(picture.text)}">'
            parts.append(f"<figure><figcaption>{escape(picture.title)}</figcaption>{image}</figure>")
        for title, html, text in moments(exhibit):
            parts.append(f'<figure><figcaption>{escape(title)}</figcaption><div class="moment">{html}</div>'
                         f"<details><summary>in words</summary><pre>{escape(text)}</pre></details></figure>")
        drawn = draw(*ran(exhibit, "waves"))
        for title, text in (("text", drawn.text), ("DOT", drawn.dot), ("Mermaid", drawn.mermaid)):
            parts.append(f"<details><summary>{title}</summary><pre>{escape(text)}</pre></details>")
        replayed = f"{exhibit.name}.html"
        ran(exhibit, "waves")[1].to_html(folder / replayed)
        parts.append(f'<p><a href="{replayed}">the run, to be replayed</a></p></section>')
    switches = "".join(f'<label><input type="checkbox" id="{name}"> {name}</label> ' for name in ("dark", "grey"))
    return (f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Gallery</title><style>{STYLE}</style>'
            f"</head><body><header>{switches}</header><main>{''.join(parts)}</main></body></html>"), shown


def size(path: Path) -> str:
    """How wide to show a PNG, which has two pixels to one; an SVG knows."""
    return f' width="{int.from_bytes(path.read_bytes()[16:20], "big") // 2}"' if path.suffix == ".png" else ""


def sheet(found: list[Picture], folder: Path) -> None:
    """A contact sheet of every PNG, six in a row."""
    from PIL import Image, ImageDraw

    wide, tall, across = 420, 360, 6
    files = [picture for picture in found if picture.file.endswith(".png")]
    whole = Image.new("RGB", (across * wide, -(-len(files) // across) * tall), "#808080")
    pen = ImageDraw.Draw(whole)
    for number, picture in enumerate(files):
        x, y = number % across * wide, number // across * tall
        with Image.open(folder / picture.file) as image:
            small = image.convert("RGB")
            small.thumbnail((wide - 12, tall - 30))
        whole.paste(small, (x + 6, y + 24))
        pen.text((x + 6, y + 6), picture.file, fill="#ffffff")
    whole.save(folder / "sheet.png")


def main(folder: Path, only: list[str] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    html, found = page([exhibit for exhibit in EXHIBITS if not only or exhibit.name in only], folder)
    (folder / "index.html").write_text(html, encoding="utf-8")
    sheet(found, folder)
    print(f"{len(found)} pictures; open {folder / 'index.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gallery"), sys.argv[2:])
