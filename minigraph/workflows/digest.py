"""What was found, twice: as plain lines for a model to read, and as Markdown for a person.

    found = {"web": [{"title": "Clocks go <forward>", "url": "https://time.example.org", "snippet": ""}]}
    as_text(found, {"github": "'github.json' is empty"})    # Web (1) / - Clocks go <forward> / GitHub: unavailable, ...
    as_markdown(date(2026, 3, 2), "A quiet day.", found, {})  # # Monday, 2 March 2026 ... [Clocks go &lt;forward>](...)

File contents are quoted, never obeyed: an item stays on its line, and its markup is shown as the signs it is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

TITLES = {"calendar": "Calendar", "github": "GitHub", "web": "Web", "memory": "Memory"}  # in the order of the digest

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June",
           "July", "August", "September", "October", "November", "December")


def spelled_out(day: date) -> str:
    """'Monday, 2 March 2026', in English on every machine."""
    return f"{_DAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"


# ---- one item


class Line(NamedTuple):
    """An item, taken apart: what stands before the title, the title, its address, and what stands behind."""

    lead: str
    title: str
    url: str
    tail: str


def line(source: str, item: Any) -> Line:
    """The item of `source` as a Line; an item of another shape shows its title, its text, or all of it."""
    if not isinstance(item, Mapping):
        return Line("", str(item), "", "")
    text = {key: "" if value is None else str(value) for key, value in item.items()}
    title = text.get("title") or text.get("text") or str(dict(item))
    if source == "calendar":
        problem = f"⚠ {text['problem']}" if text.get("problem") else ""
        return Line(text.get("when", ""), title, "", _joined([text.get("where", ""), problem]))
    if source == "github":
        what = {"pull": "pull request", "issue": "issue"}.get(text.get("kind", ""), "")
        lead = " ".join(part for part in (what, text.get("number", "")) if part)
        return Line(lead, title, text.get("url", ""), _joined(_about(item)))
    if source == "memory":
        return Line(text.get("date", ""), title, "", ", ".join(map(str, item.get("tags") or ())))
    return Line("", title, text.get("url", ""), text.get("snippet", ""))


def _about(item: Mapping[str, Any]) -> Iterator[str]:
    """What else is to be said about a pull request or an issue."""
    yield f"by {item['author']}" if item.get("author") else ""
    yield "draft" if item.get("draft") else ""
    yield f"review asked of {' and '.join(map(str, item['reviewers']))}" if item.get("reviewers") else ""
    yield from map(str, item.get("labels") or ())


def _joined(parts: Any) -> str:
    return ", ".join(part for part in parts if part)


# ---- for the model


def as_text(found: Mapping[str, Any], unavailable: Mapping[str, str]) -> str:
    """A section a source: 'Web (2)' and a line an item, 'Web: nothing', or 'Web: unavailable, REASON'.

    found: source -> its items; unavailable: source -> why it has none. A source in neither is left out.
    """
    lines: list[str] = []
    for source, title in TITLES.items():
        if source in unavailable:
            lines.append(f"{title}: unavailable, {on_one_line(unavailable[source])}")
        elif source in found:
            items = found[source]
            lines.append(f"{title} ({len(items)})" if items else f"{title}: nothing")
            lines += [f"- {_plain(line(source, item))}" for item in items]
    return "\n".join(lines)


def _plain(item: Line) -> str:
    lead, title, _, tail = map(on_one_line, item)
    return (f"{lead}: " if lead else "") + title + (f" ({tail})" if tail else "")


# ---- the stub model's briefing


def briefing(text: str) -> str:
    """What a reader of `text` (the sections of `as_text`, more may stand around them) would tell a busy person.

    A stand-in for a model: a function of the text it is given, which looks at counts and lines and at nothing else.
    """
    sections: dict[str, list[str]] = {}  # title -> its lines
    missing: dict[str, str] = {}  # title -> why it is not there
    title = ""
    for row in text.split("\n"):
        if heading := _HEADING.fullmatch(row):
            title = heading["title"]
            if heading["reason"]:
                missing[title] = heading["reason"]
            else:
                sections.setdefault(title, [])
        elif row.startswith("- ") and title in sections:
            sections[title].append(row[2:])
    told = [sentence for title, lines in sections.items() if lines for sentence in _TELL[title](lines)]
    told += [f"{title} has nothing today." for title, lines in sections.items() if not lines]
    told += [f"{title} is unavailable: {reason}." for title, reason in missing.items()]
    return "\n".join(told) or "There is nothing to tell."


_HEADING = re.compile(rf"(?P<title>{'|'.join(TITLES.values())})(?: \(\d+\)|: nothing|: unavailable, (?P<reason>.*))")


def _tell_calendar(lines: list[str]) -> Iterator[str]:
    all_day = [row.partition(": ")[2] for row in lines if row.startswith("all day")]
    timed = [row.partition(": ")[::2] for row in lines if row[:1].isdigit()]
    yield f"The calendar has {_count(len(lines), 'entry', 'entries')}."
    if all_day:
        yield f"All day: {'; '.join(all_day)}."
    if timed:
        yield f"The first appointment is at {timed[0][0]}: {timed[0][1]}."


def _tell_github(lines: list[str]) -> Iterator[str]:
    pulls = sum(row.startswith("pull request ") for row in lines)
    yield (f"On GitHub {_count(pulls, 'pull request', 'pull requests')} and "
           f"{_count(len(lines) - pulls, 'issue', 'issues')} are open.")
    waiting = [row.partition(" (")[0] for row in lines if "review asked of" in row]
    if waiting:
        yield f"Waiting for a review: {'; '.join(waiting)}."


def _tell_web(lines: list[str]) -> Iterator[str]:
    yield f"The web has {_count(len(lines), 'page', 'pages')}: {'; '.join(row.partition(' (')[0] for row in lines)}."


def _tell_memory(lines: list[str]) -> Iterator[str]:
    yield f"The memory has {_count(len(lines), 'note', 'notes')} about it; the closest is of {lines[0]}"


_TELL = {"Calendar": _tell_calendar, "GitHub": _tell_github, "Web": _tell_web, "Memory": _tell_memory}


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# ---- for a person


def as_markdown(day: date, synthesis: str, found: Mapping[str, Any], unavailable: Mapping[str, str]) -> str:
    """The digest of `day`: the synthesis, then a section a source: its items, *nothing today*, or *unavailable*."""
    parts = [f"# {spelled_out(day)}", as_paragraphs(synthesis)]
    for source, title in TITLES.items():
        parts.append(f"## {title}")
        if source in unavailable:
            parts.append(f"*unavailable: {escape(unavailable[source])}*")
        elif found.get(source):
            parts.append("\n".join(_bullet(line(source, item)) for item in found[source]))
        else:
            parts.append("*nothing today*")
    parts.append("---\n\n*A proposal, for you to read. Writing this file is all that was done.*")
    return "\n\n".join(parts) + "\n"


def as_paragraphs(text: str) -> str:
    """A model's reply as Markdown: its paragraphs and lines are kept, its markup is not obeyed."""
    return "\n\n".join("  \n".join(_not_a_block(escape(row)) for row in paragraph.split("\n"))
                       for paragraph in re.split(r"\n\s*\n", text.strip()))


def _bullet(item: Line) -> str:
    lead, title, tail = escape(item.lead), escape(item.title), escape(item.tail)
    if re.match(r"https?://", item.url):
        # In the text of a link every bracket counts, and [^ would begin a footnote.
        inner = escape(item.title, brackets=r"[][]|^\^")
        title = f"[{inner}]({_address(item.url)})"
    body = (f"**{lead}** " if lead else "") + title + (f" · {tail}" if tail else "")
    return "- " + _not_a_block(body)


def escape(text: str, brackets: str = r"\](?=[(\[:])|^\[|\[(?=\^)") -> str:
    """`text` on one line, such that Markdown and HTML show every character of it and obey none.

    brackets: which of them to escape. Those that could make a link or a footnote do; the rest read better as they are.
    """
    text = re.sub(r"&(?=#?\w+;)", "&amp;", on_one_line(text)).replace("<", "&lt;")
    return re.sub(rf"[\\`*|~$]|{brackets}|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)


def _not_a_block(text: str) -> str:
    """`text` with what would make a heading, a quotation, a rule or a list of its first characters made harmless."""
    return re.sub(r"^(?:(?=[#>+=-])|\d+(?=[.)](?:\s|$)))", r"\g<0>\\", text)


def _address(url: str) -> str:
    """The address with everything percent-encoded that could end a Markdown link."""
    return "".join(ch if re.match(r"[\w\-.~:/?#@!$&'*+,;=%]", ch, re.ASCII)
                   else "".join(f"%{byte:02X}" for byte in ch.encode("utf-8", "replace")) for ch in url)


def on_one_line(text: str) -> str:
    """`text` with line breaks shown as ⏎ and control characters, which could hide or reorder text, made visible."""
    text = re.sub(r"\s*(?:\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])\s*", " ⏎ ", text.strip())
    return _INVISIBLE.sub(lambda found: _visible(found[0]), text.replace("\t", " "))


_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def _visible(ch: str) -> str:
    """The picture Unicode has of a control character, else its number."""
    code = ord(ch)
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
