"""What was found, as text for a model and as Markdown for a person: quoted, whole, and harmless."""

import html
import re
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigraph.workflows.digest import as_markdown, as_paragraphs, as_text, briefing, escape, on_one_line, spelled_out

FOUND = {
    "github": [{"kind": "pull", "number": 7, "title": "Fix it", "author": "mara", "url": "https://example.org/pull/7",
                "draft": True, "reviewers": ["jonas", "ines"], "labels": ["bug"]}],
    "calendar": [{"when": "09:30–09:45", "title": "Stand-up", "where": "Room 2", "problem": None},
                 {"when": "", "title": "Retro", "where": "", "problem": "it has no DTSTART"}],
    "memory": [],
}
UNAVAILABLE = {"web": "'web.json' is empty"}


def test_the_text_for_the_model():
    """A section a source, in the order of the digest, with its count; a source in neither mapping is left out."""
    assert as_text(FOUND, UNAVAILABLE) == (
        "Calendar (2)\n"
        "- 09:30–09:45: Stand-up (Room 2)\n"
        "- Retro (⚠ it has no DTSTART)\n"
        "GitHub (1)\n"
        "- pull request 7: Fix it (by mara, draft, review asked of jonas and ines, bug)\n"
        "Web: unavailable, 'web.json' is empty\n"
        "Memory: nothing")
    assert as_text({"web": []}, {}) == "Web: nothing"


def test_the_markdown_for_a_person():
    """The day, the synthesis, and every source under its name: its items, nothing today, or unavailable and why."""
    assert as_markdown(date(2026, 3, 2), "Quiet.\nAlmost.", FOUND, UNAVAILABLE) == """\
# Monday, 2 March 2026

Quiet.  
Almost.

## Calendar

- **09:30–09:45** Stand-up · Room 2
- Retro · ⚠ it has no DTSTART

## GitHub

- **pull request 7** [Fix it](https://example.org/pull/7) · by mara, draft, review asked of jonas and ines, bug

## Web

*unavailable: 'web.json' is empty*

## Memory

*nothing today*

---

*A proposal, for you to read. Writing this file is all that was done.*
"""  # noqa: W291


def test_days_are_spelled_in_english_everywhere():
    """No locale changes what a digest says."""
    assert spelled_out(date(2026, 12, 27)) == "Sunday, 27 December 2026"


HOSTILE = [
    "<script>alert(1)</script>", "<!-- x -->", "<img src=x onerror=y>", "a | b |", "`code` ``x``", "```", "~~~",
    "# head", "## x", "- item", "+ item", "* item", "1. one", "12) two", "1234. many", "> quote",
    "**bold** _it_ snake_case __init__",
    "[link](javascript:alert(1))", "![img](data:x)", "&lt;b&gt; &amp; R&D AT&T; &#60; &copy", "~~gone~~", "\\*", "\\",
    "$x$ $$y$$", "---", "===", "[ ] task", "[^1] foot", "[a]: https://e.org [a]", "[a][a]",
    "a] b [c", "\\[a](b)", "x [a\\](b)", 'pip install ".[notebooks]"',
    "'single' \"double\"", "{{x}} {key} %s", "👩‍💻 🏳️‍🌈 ❤️",
    "潮見 Sète",
    "10.5 degrees", "-", "#", "1.", "_", "a_", "|---|",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markup_in_a_file_is_shown_and_not_obeyed(text):
    """A Markdown reader shows exactly the characters that stood in the file, and no markup of theirs."""
    assert_shown(text)


PIECES = [*"\\`*_{}[]()<>#+-.!|&~$^:=\"' ax1;/\n",
          "&lt;", "http://e.org", "](", "![", "<b>", "[x]: y", "1. ", "- ", "```"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join).filter(str.strip))
def test_no_markup_that_anyone_could_write_is_obeyed(text):
    """The same for any pieces of markup, put together in any way."""
    assert_shown(on_one_line(text))


def assert_shown(text):
    mistune = pytest.importorskip("mistune")
    plugins = ["table", "strikethrough", "footnotes", "task_lists", "math"]
    render = mistune.create_markdown(escape=False, plugins=plugins)
    markdown = as_markdown(date(2026, 3, 2), text, {"web": [{"title": text, "snippet": text, "url": "https://e.org"}],
                                                    "memory": [{"text": text}], "calendar": []}, {"github": text})
    page = render(markdown)
    assert re.findall(r"<(\w+)", page) == ["h1", "p", "h2", "p", "em", "h2", "p", "em", "h2", "ul", "li", "a",
                                           "h2", "ul", "li", "hr", "p", "em"]
    shown = [" ".join(row.split()) for row in html.unescape(re.sub(r"<[^>]*>", "", page)).split("\n")]
    text = " ".join(text.split())  # HTML shows many spaces as one
    assert shown.count(text) == 2  # the synthesis, and the note
    assert f"{text} · {text}" in shown
    assert f"unavailable: {text}" in shown


def test_an_item_stays_on_its_line():
    """Line breaks cannot make a second item, a heading or a section; control characters are seen."""
    assert on_one_line("a\nb\r\nc\u2028d\te\x85") == "a ⏎ b ⏎ c ⏎ d e"
    assert on_one_line("x\x00y\x1b[31mz\x7f \u202eabc") == "x␀y␛[31mz␡ ⟨U+202E⟩abc"
    found = {"web": [{"title": "a\n\n## Calendar\n- fake", "url": ""}], "calendar": []}
    assert as_text(found, {}).split("\n") == ["Calendar: nothing", "Web (1)", "- a ⏎ ## Calendar ⏎ - fake"]
    assert "- a ⏎ ## Calendar ⏎ - fake" in as_markdown(date(2026, 3, 2), "", found, {}).split("\n")
    assert "\n" not in as_text({}, {"web": "two\nlines"})


@pytest.mark.parametrize("url, markdown", [
    ("https://e.org/a_b?c=d&e=f#g", "- [t](https://e.org/a_b?c=d&e=f#g)"),
    ("https://e.org/a b)c(<x>\n[ü]|`", "- [t](https://e.org/a%20b%29c%28%3Cx%3E%0A%5B%C3%BC%5D%7C%60)"),
    ("javascript:alert(1)", "- t"),
    ("data:text/html,x", "- t"),
    ("//e.org", "- t"),
    ("", "- t"),
])
def test_only_web_addresses_are_links(url, markdown):
    """A link goes to http or https, and nothing in the address can end it."""
    assert markdown in as_markdown(date(2026, 3, 2), "", {"web": [{"title": "t", "url": url}]}, {}).split("\n")


def test_a_reply_keeps_its_lines_and_loses_its_markup():
    """What a model writes is text: paragraphs and lines stay, markup is shown."""
    assert as_paragraphs("  One.\nTwo <b>!\n\n\n# Three\n- four ") == "One.  \nTwo &lt;b>!\n\n\\# Three  \n\\- four"
    assert as_paragraphs("") == ""


def test_escape_leaves_plain_text_alone():
    """Text that is no markup reads the same in the file: a person may open it in an editor."""
    for text in ("Review of R&D, 10:30-11:00 (moved)!", "scan_web -> done", "it's #3 of 5 + 1 = 6",
                 'pip install -e ".[notebooks]"'):
        assert escape(text) == text


@pytest.mark.parametrize("item, line", [
    ("plain", "- plain"), ({"text": "t"}, "- t"), ({"a": 1}, "- {'a': 1}"), (7, "- 7"),
    ({"title": None, "text": "x"}, "- x"),
])
def test_items_of_any_shape_are_told(item, line):
    """A scan of one's own may return what it likes; nothing is dropped."""
    assert line in as_text({"web": [item]}, {}).split("\n")


# ---- the stub's briefing


def test_a_briefing_is_made_of_the_text_and_of_nothing_else():
    """Counts and lines come from the sections; other text around them changes nothing."""
    text = as_text({**FOUND, "memory": [{"date": "2026-01-08", "text": "Call Lena."}]}, UNAVAILABLE)
    expected = ("The calendar has 2 entries.\n"
                "The first appointment is at 09:30–09:45: Stand-up (Room 2).\n"
                "On GitHub 1 pull request and 0 issues are open.\n"
                "Waiting for a review: pull request 7: Fix it.\n"
                "The memory has 1 note about it; the closest is of 2026-01-08: Call Lena.\n"
                "Web is unavailable: 'web.json' is empty.")
    assert briefing(text) == briefing(f"Today is Monday.\n\n{text}\n\nThank you.") == expected


def test_a_briefing_of_nothing_says_so():
    """Nothing, and nothing at all, are told apart."""
    assert briefing(as_text({"calendar": [], "web": []}, {})) == "Calendar has nothing today.\nWeb has nothing today."
    assert briefing("") == "There is nothing to tell."


def test_two_sections_of_one_source_are_one(tmp_path):
    """A loop reads GitHub twice: an empty half does not hide the other."""
    halves = as_text({"github": []}, {}) + "\n" + as_text({"github": FOUND["github"]}, {})
    assert briefing(halves).startswith("On GitHub 1 pull request and 0 issues are open.")
    assert "nothing" not in briefing(halves)
