"""What charts share: the object that shows itself, a style of its own, letters measured before they are drawn."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from charts import nested, run, see_through, texts, written

from minigraph.canvas import LARGEST, Chart, Pen, cut, fitting, font, letters, own_axes, own_style, short, width
from minigraph.gantt import chart, gantt
from minigraph.matrix import matrix_chart

pytest.importorskip("matplotlib")


def small(text: str = "a square: 1 s", title: str = "a & <b>") -> Chart:
    """Return a chart of one box with a word in it."""
    def paint() -> Any:
        with own_style():
            ax = own_axes(height=1, left=0.5)
            ax.set_xlim(0, 10)
            pen = Pen(ax, 10, 20)
            pen.box(2, 4, 0.2, 0.8, "#FFFFFF", "#000000", 3, "////")
            pen.within(2, 6, 0.5, ["a square"])
            return ax
    return Chart(paint, text, title)


# ---- a chart shows itself


def test_a_chart_drawn_twice_is_the_same_to_the_pixel() -> None:
    """The same object twice, a fresh one, and one beside somebody's style."""
    import matplotlib

    trace = run(nested())
    for made in (chart, matrix_chart):
        first = made(trace)
        png = first.png(1)
        assert png == first.png(1) == made(trace).png(1)
        assert first.svg() == made(trace).svg()
        taste = {"font.size": 30, "axes.facecolor": "black", "savefig.bbox": "tight", "hatch.color": "red",
                 "text.color": "white", "savefig.transparent": True}
        with matplotlib.rc_context(taste):
            assert made(trace).png(1) == png


def test_no_pixel_is_transparent_and_no_letter_takes_the_pages_colour() -> None:
    """On a dark page a chart is a white card: as PNG, and as SVG, which begins with a white ground."""
    assert not see_through(small().png())
    root = ElementTree.fromstring(small().svg())
    ground = next(element for element in root.iter() if element.get("style"))
    assert "fill: #ffffff" in (ground.get("style") or "")
    assert "currentColor" not in small().svg()


def test_a_notebook_shows_a_sharp_png_with_the_text_beside_it() -> None:
    """The text is the alternative text, the plain text and the repr; the width is in CSS pixels, two to one."""
    data, about = small()._repr_mimebundle_()
    assert sorted(data) == ["image/png", "text/plain"]
    assert data["text/plain"] == about["image/png"]["alt"] == repr(small()) == "a square: 1 s"
    assert about["image/png"]["width"] == 864


def test_svg_has_a_title_and_a_description() -> None:
    """For those who cannot see it, escaped and well-formed."""
    root = ElementTree.fromstring(small("1 < 2 & <script>", "a & <b>\n").svg())
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", "a & <b>\\n")
    assert [element.text for element in root[:2]] == ["a & <b>\\n", "1 < 2 & <script>"]


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<svg"), (".PNG", b"\x89PNG"), (".txt", b"a square")])
def test_save_writes_what_the_suffix_asks_for(tmp_path: Path, suffix: str, begins: bytes) -> None:
    """Three suffixes, and the path comes back; any other is a ValueError."""
    path = tmp_path / f"chart{suffix}"
    assert small().save(str(path)) == path
    assert path.read_bytes().startswith(begins)
    with pytest.raises(ValueError, match="cannot save a chart as 'chart.gif': the suffix must be one of .png"):
        small().save(tmp_path / "chart.gif")


def test_a_scale_that_cannot_be_meant_is_named() -> None:
    """Between 0.1 and 10 pixels to a CSS pixel."""
    with pytest.raises(ValueError, match="scale=99: pixels to a CSS pixel, between 0.1 and 10"):
        small().png(scale=99)


def test_nothing_global_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pyplot, no backend chosen, no setting changed: in a fresh interpreter, from import to PNG."""
    run(nested()).to_jsonl(tmp_path / "trace.jsonl")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    code = """if True:
        import sys, matplotlib
        def settings():
            return {key: repr(dict.__getitem__(matplotlib.rcParams, key)) for key in matplotlib.rcParams}
        before = settings()
        from minigraph.gantt import chart, compare
        from minigraph.matrix import matrix, matrix_chart
        from minigraph.trace import Trace
        trace = Trace.from_jsonl(sys.argv[1])
        chart(trace).png(1), chart(trace).svg(), compare([trace, trace]), matrix(trace), matrix_chart(trace).png(1)
        assert "matplotlib.pyplot" not in sys.modules
        assert before == settings(), {key for key in before if before[key] != settings()[key]}
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "trace.jsonl")], check=True,
                   cwd=Path(__file__).parent.parent)


def test_without_matplotlib_the_text_is_shown_and_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook never sees an exception; Axes asked for say in one sentence what to install."""
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"] or ["matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    sentence = 'charts need the extra "notebooks": pip install -e ".[notebooks]"'
    with pytest.raises(ImportError, match=re.escape(sentence)):
        gantt(run(nested()))
    assert small()._repr_mimebundle_() == ({"text/plain": f"a square: 1 s\n(no picture: {sentence})"}, {})


# ---- letters are measured before they are drawn


def drawn(text: str, size: float = LARGEST, bold: bool = False) -> float:
    """Return how wide matplotlib draws a text, in points."""
    ax = own_axes(1, 0.5)
    ax.text(0, 0, text, fontproperties=font(size, bold), parse_math=False)
    (_, (left, _, right, _)), *_ = written(ax)
    return (right - left) * 72 / 96


@pytest.mark.parametrize("text", ["waited 1.885 s", "WWWiiillli…", "✗ failed: TypeError", "Ελληνικά, Кириллица"])
def test_a_width_is_what_matplotlib_will_draw(text: str) -> None:
    """But for a few hundredths, light and bold: what is measured as fitting does fit."""
    for bold in (False, True):
        assert width(text, LARGEST, bold) == pytest.approx(drawn(text, bold=bold), rel=0.04)


def test_letters_that_the_font_lacks_are_spelled() -> None:
    """Signs by name, others by number; what joins emoji goes with them."""
    assert letters("a 🚀 日 👩\u200d🚀 ✗ é") == "a [rocket] [U+65E5] [woman][rocket] ✗ é"


@pytest.mark.parametrize(("name", "shown"), [
    ("scan_web", "scan_web"), ("x" * 34, "x" * 34), ("x" * 35, "x" * 22 + "…" + "x" * 11),
    ("a_name_that_goes_on_and_on_and_on_and_stops", "a_name_that_goes_on_an…n_and_stops"), ("a\nb", "a\\nb"),
    ("日本語の名前は", "[U+65E5][U+672C]…[U+306F]")])
def test_a_long_name_loses_its_middle(name: str, shown: str) -> None:
    """Both its ends tell it apart; no letter that is spelled out is cut in two."""
    assert short(name) == shown
    assert len(shown) <= 34


def test_text_is_cut_to_fit() -> None:
    """As much as there is room for, with dots, or all, or nothing."""
    whole = "a title that is much too long"
    assert cut(whole, 500, 9) == whole
    part = cut(whole, 80, 9)
    assert part.endswith(" …") and whole.startswith(part[:-2]) and 60 < width(part, 9) <= 80
    assert cut(whole, 1, 9) == ""


def test_parts_are_broken_into_lines_that_fit() -> None:
    """At most so wide, in their order; a part that is wider has a line of its own."""
    assert fitting(["one", "two", "three"], 500, 9) == ["one; two; three"]
    assert fitting(["one", "two", "three"], width("one; two", 9), 9) == ["one; two", "three"]
    assert fitting(["one", "two"], 1, 9) == ["one", "two"]
    assert fitting([], 500, 9) == []


# ---- the pen


def pen(unit: float = 20) -> Pen:
    """Return a pen on Axes of 10 units, 590 points wide."""
    ax = own_axes(2, 0.6)
    ax.set_xlim(0, 10)
    return Pen(ax, 10, unit)


def test_within_writes_the_first_way_that_fits() -> None:
    """Centred between both ends; nothing where none fits."""
    one = pen()
    wide = (width("brief", 9) + 7) / one.scale
    assert one.within(1, 1 + wide, 0.5, ["much too long for it", "brief", "b"]) == "brief"
    assert one.within(3, 3.01, 0.5, ["b"]) == ""
    assert [(text.get_text(), text.get_ha(), text.xy[0]) for text in one.ax.texts] == [
        ("brief", "center", pytest.approx(1 + wide / 2))]


def test_beside_goes_right_else_left_else_nowhere() -> None:
    """Never over what is taken, never off the Axes; what is written is taken from then on; `behind=False`: no left."""
    one = pen()
    taken = [(100.0, 150.0), (155.0, 200.0)]
    assert one.beside(100, 150, taken, 0.5, ["label"], behind=False) == ""
    assert one.beside(100, 150, taken, 0.5, ["label"]) == "label"
    low, high = taken[-1]
    assert high == 100 and low > 50
    assert one.beside(100, 150, taken, 0.5, ["label"]) == ""  # the left is taken now
    assert one.beside(155, 200, taken, 0.5, ["label"]) == "label" and taken[-1][0] == 200
    assert one.beside(one.room - 1, one.room, taken, 0.5, ["right of the Axes"], behind=False) == ""
    assert texts(one.ax) == ["label", "label"]


def test_where_rows_are_too_close_nothing_is_written() -> None:
    """Letters smaller than 3.5 points are no help; up to that they shrink with the rows."""
    assert (pen(20).size, pen(10).size) == (LARGEST, 5.2)
    tiny = pen(5)
    assert tiny.within(0, 10, 0.5, ["a"]) == tiny.beside(0, 1, [], 0.5, ["a"]) == ""


def test_a_label_across_a_mark_has_a_slip_of_paper() -> None:
    """So that the line of the mark does not run through its letters."""
    one = pen()
    one.rules = [20.0]
    one.beside(0, 5, [], 0.5, ["crossed by it"])
    one.beside(300, 305, [], 0.5, ["not crossed"])
    assert [bool(text.get_bbox_patch()) for text in one.ax.texts] == [True, False]
