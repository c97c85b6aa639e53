"""What tests of forecasts and of their pages use: two graphs, a name that is all markup, and a reader of HTML."""

from __future__ import annotations

from html.parser import HTMLParser

from helpers import make

from minigraph import Graph

CROSSED = "START>slow_a,quick_b slow_a>quick_a quick_b>slow_b quick_a>join slow_b>join join>END"
TIMES = {"slow_a": 3.0, "quick_b": 1.0, "quick_a": 1.0, "slow_b": 3.0, "join": 1.0}


def crossed() -> Graph:
    """Two chains, one slow then quick, one quick then slow; the barrier holds both up."""
    return make(CROSSED, name="crossed")


def lap(**more: object) -> Graph:
    """draft -> check, which says again, good or help; draft runs three times at most, and then a person takes over."""
    return make("START>draft draft>check", name="lap", draft={"max_visits": 3, **more}, person={}, save={},
                routers={"check": (lambda state: "good", {"again": "draft", "good": "save", "help": "person"})})


NASTY = '<script>alert(1)</script> & "quotes" \' $x$ \n\u202e 🚀 {brace}'


class Page(HTMLParser):
    """The elements and the text of a piece of HTML; an element that is not closed is an error."""

    VOID = ("img", "br", "hr")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in self.VOID or self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open and data.strip():
            self.text += data + "|"

    def of(self, kind: str) -> list[dict]:
        return [attrs for _, attrs in self.tags if kind in attrs.get("class", "").split()]
