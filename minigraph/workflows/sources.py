"""Four readers, one promise: a list of plain dicts, or a SourceError that says in one sentence why there is none.

    read_github("github.json")      # [{"kind": "pull", "number": 148, "title": "Read station names ...", ...}, ...]
    read_github("github.jsn")       # SourceError: 'github.jsn' does not exist

An empty list means that there is nothing to tell. A file that is missing, empty or broken is never an empty list.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Union

Item = dict[str, Any]  # what a reader finds: strings, numbers, booleans, None, and lists of them
PathLike = Union[str, "os.PathLike[str]"]

SHIPPED_DAY = date(2026, 3, 2)  # the Monday on which the files in data/ are "today"


class SourceError(Exception):
    """Why a source cannot be read: `name` is the source, `reason` one sentence, which is also the text."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = " ".join(reason.split())  # libraries put line breaks into their messages

    def __str__(self) -> str:
        return self.reason


class OutboxError(OSError):
    """A file could not be put into the outbox."""


def data_dir() -> Path:
    """The folder of the files that ship with minigraph: inside the package if installed, else beside it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "data"
    return inside if inside.is_dir() else package.parent / "data"


def warm_up() -> None:
    """Loads what the readers need, if it is there, so that no run measures an import."""
    with suppress(ImportError):
        import icalendar  # noqa: F401
        import recurring_ical_events  # noqa: F401
    with suppress(ImportError):
        import sqlite3  # noqa: F401


# ---- the calendar


def read_calendar(path: PathLike, day: date) -> list[Item]:
    """What happens on `day`: [{title, when, start, end, all_day, where, problem}], all-day events first, then by time.

    The file is iCalendar (RFC 5545). `day` is a day in the calendar's own zone (X-WR-TIMEZONE) or, where it names
    none, in this machine's. `start` and `end` are ISO 8601 in that zone, `when` is the same for a person. Cancelled
    events are left out. An event that cannot be expanded is in the list too, last, without times. `problem` says
    what could not be read of an event, and is None for all others. SourceError if there is no calendar to read.
    """
    try:
        import icalendar
        import recurring_ical_events
    except ImportError:
        raise SourceError("calendar", 'the calendar library is not installed: pip install -e ".[notebooks]"') from None
    lines = list(_content_lines(path))
    _check_nesting(lines, _shown(path))
    try:
        calendars = icalendar.Calendar.from_ical("\r\n".join(line for _, line in lines) + "\r\n", multiple=True)
        for calendar in calendars:
            _use_own_zones(calendar)
    except Exception as error:  # the library raises whatever its parts raise
        raise SourceError("calendar", f"{_shown(path)} cannot be read as iCalendar: {_short(error)}") from error
    zone, items = _home(calendars)
    for calendar in calendars:
        for series in _series(calendar.walk("VEVENT")):
            items += _on_day(series, day, zone, icalendar, recurring_ical_events)
    unique = {json.dumps(item, sort_keys=True): item for item in items}  # an export may hold an event twice
    return sorted(unique.values(), key=_by_time)


def _content_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """(line number, unfolded line) of an iCalendar file.

    Lines are put together as bytes, before they are decoded: RFC 5545, 3.1 lets a fold split a character.
    """
    raw = _read_bytes(path, "calendar")
    physical = raw.replace(b"\r\n", b"\n").split(b"\n" if b"\n" in raw else b"\r")
    logical: list[tuple[int, list[bytes]]] = []  # (number of the first line, the pieces)
    for number, line in enumerate(physical, 1):
        if line[:1] in (b" ", b"\t") and logical:
            logical[-1][1].append(line[1:])
        elif line.strip():
            logical.append((number, [line]))
    for number, pieces in logical:
        yield number, _decoded(b"".join(pieces), path, "calendar", number)


def _check_nesting(lines: list[tuple[int, str]], shown: str) -> None:
    """SourceError unless every BEGIN has its END: the parser silently drops a component that is cut off."""
    if lines[0][1].strip().upper() != "BEGIN:VCALENDAR":
        raise SourceError("calendar", f"{shown} is not an iCalendar file: "
                                      f"it begins with {_short(lines[0][1], 30)!r}, not with BEGIN:VCALENDAR")
    opened: list[tuple[int, str]] = []  # (line, component) that wait for their END
    for number, line in lines:
        word, _, component = line.strip().upper().partition(":")
        if word == "BEGIN":
            opened.append((number, component))
        elif word == "END":
            if not opened or opened[-1][1] != component:
                expected = f"END:{opened[-1][1]}" if opened else "the end of the file"
                raise SourceError("calendar", f"{shown} is broken at line {number}: "
                                              f"expected {expected}, found {_short(line.strip(), 30)!r}")
            opened.pop()
        elif not opened:
            raise SourceError("calendar", f"{shown} is broken at line {number}: "
                                          f"{_short(line, 30)!r} stands outside BEGIN:VCALENDAR and END:VCALENDAR")
    if opened:
        number, component = opened[-1]
        raise SourceError("calendar", f"{shown} is cut off: the BEGIN:{component} of line {number} has no END")


def _home(calendars: list[Any]) -> tuple[tzinfo | None, list[Item]]:
    """(the zone whose days count, problems): None is this machine's zone."""
    from zoneinfo import ZoneInfo

    for calendar in calendars:
        for name in _values(calendar, "X-WR-TIMEZONE"):
            try:
                return ZoneInfo(str(name)), []
            except Exception:  # KeyError, ValueError or OSError, depending on what is wrong with the name
                return None, [_problem("the calendar's time zone", f"{_short(name, 40)!r} is unknown, "
                                                                   f"so times are shown in this machine's zone")]
    return None, []


def _use_own_zones(calendar: Any) -> None:
    """Puts the calendar's own VTIMEZONE in place where a TZID is no name of the tz database.

    The library remembers the first definition of such a name for the whole process, so a second file that
    defines "Customized Time Zone" would be read with the zone of the first.
    """
    from zoneinfo import ZoneInfo

    zones = {str(zone["TZID"]): zone.to_tz(lookup_tzid=False) for zone in calendar.walk("VTIMEZONE")}
    for event in calendar.walk("VEVENT"):
        for name in ("DTSTART", "DTEND", "RECURRENCE-ID", "EXDATE", "RDATE"):
            for value in _values(event, name):
                tzid = getattr(value, "params", {}).get("TZID")
                if tzid is None:
                    continue
                for stamp in getattr(value, "dts", [value]):
                    moment = getattr(stamp, "dt", None)
                    if isinstance(moment, datetime) and not isinstance(moment.tzinfo, ZoneInfo):
                        stamp.dt = moment.replace(tzinfo=zones.get(str(tzid)))
                        if str(tzid) not in zones:
                            event.errors.append((None, f"its time zone {str(tzid)!r} is unknown: "
                                                       f"the time is as written"))


def _series(events: Iterable[Any]) -> Iterator[list[Any]]:
    """The events, put together by UID: an event and what overrides single occurrences of it.

    Two events may share a UID without one overriding the other; the library would drop one of them.
    """
    by_uid: dict[str, list[Any]] = {}
    for position, event in enumerate(events):
        by_uid.setdefault(str(event.get("UID", f"no UID {position}")), []).append(event)
    for group in by_uid.values():
        overrides = [event for event in group if "RECURRENCE-ID" in event]
        masters = [event for event in group if "RECURRENCE-ID" not in event]
        latest = max((_sequence(event) for event in masters), default=0)
        masters = [event for event in masters if _sequence(event) == latest]
        yield masters[:1] + overrides
        for event in masters[1:]:
            yield [event]


def _on_day(series: list[Any], day: date, zone: tzinfo | None, icalendar: Any, recurring: Any) -> list[Item]:
    """The occurrences of one series on `day`, or its problem; other series are not affected."""
    try:
        for event in series:
            _check_event(event)
        alone = icalendar.Calendar()
        alone.subcomponents = series
        found = recurring.of(alone).between(_midnight(day, zone), _midnight(day + timedelta(days=1), zone))
        problem = next((_short(text) for event in series for _, text in event.errors), None)
        return [_event(event, day, zone, problem) for event in found if _first(event, "STATUS").upper() != "CANCELLED"]
    except Exception as error:  # whatever is wrong in it, the event is named and the others go on
        return [_problem(_first(series[0], "SUMMARY") or "an event without a title", _short(error))]


def _check_event(event: Any) -> None:
    """Mends what can be mended; ValueError for what the library would misread or never finish."""
    wrong = [(name, text) for name, text in event.errors if name in _TIMES]
    if wrong:
        raise ValueError(f"its {wrong[0][0]} cannot be read: {wrong[0][1]}")
    for name in ("DTSTART", "DTEND", "DURATION", "RECURRENCE-ID"):
        if len(_values(event, name)) > 1:
            raise ValueError(f"it has {len(_values(event, name))} times {name}")
    if "DTSTART" not in event and "RECURRENCE-ID" in event:
        event.add("DTSTART", event["RECURRENCE-ID"].dt)  # as sent by METHOD:CANCEL, RFC 5546, 3.2.5
    if "DTSTART" not in event:
        raise ValueError("it has no DTSTART")
    for rule in _values(event, "RRULE"):
        for pace in _values(rule, "FREQ"):
            if pace in ("SECONDLY", "MINUTELY"):
                raise ValueError(f"it repeats {pace.lower()}, too often to expand")


_TIMES = ("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")


def _event(event: Any, day: date, zone: tzinfo | None, problem: str | None) -> Item:
    """One occurrence as plain data."""
    start, end = _local(event["DTSTART"].dt, zone), _local(event["DTEND"].dt, zone)
    all_day = not isinstance(start, datetime)
    return {
        "title": _first(event, "SUMMARY") or "(no title)",
        "when": _days(start, end, day) if all_day else _hours(start, end, day),
        "start": start.isoformat(),
        "end": end.isoformat(),
        "all_day": all_day,
        "where": _first(event, "LOCATION"),
        "problem": problem,
    }


def _problem(title: str, reason: str) -> Item:
    return {"title": title, "when": "", "start": None, "end": None, "all_day": False, "where": "", "problem": reason}


def _local(moment: Any, zone: tzinfo | None) -> Any:
    """A date as it is, a time in `zone`; a time without a zone means the zone of whoever reads it."""
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return moment.astimezone(zone)


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return _local(datetime(day.year, day.month, day.day), zone)  # type: ignore[no-any-return]


def _days(start: date, end: date, day: date) -> str:
    """An all-day event: 'all day', or 'all day, day 2 of 3'."""
    length = max((end - start).days, 1)
    return "all day" if length == 1 else f"all day, day {(day - start).days + 1} of {length}"


def _hours(start: datetime, end: datetime, day: date) -> str:
    """'09:30–09:45', with the days where they differ from `day`."""
    def at(moment: datetime) -> str:
        return f"{moment:%H:%M}" if moment.date() == day else f"{moment.day} {_MONTHS[moment.month - 1]} {moment:%H:%M}"

    return at(start) if start == end else f"{at(start)}–{at(end)}"


# strftime would follow the machine's language.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _by_time(item: Item) -> tuple[Any, ...]:
    start = item["start"] or ""
    # Times of one zone may differ in their offset, so they are compared as moments.
    moment = datetime.fromisoformat(start).timestamp() if start and not item["all_day"] else 0.0
    return not start, not item["all_day"], moment, start, item["end"] or "", item["title"]


def _values(component: Any, name: str) -> list[Any]:
    """All values of a property, which the library gives as None, one, or a list."""
    value = component.get(name)
    return [] if value is None else value if isinstance(value, list) else [value]


def _first(component: Any, name: str) -> str:
    """The first value of a text property, or ''."""
    return next((_string(str(value)) for value in _values(component, name)), "")


def _sequence(event: Any) -> int:
    try:
        return int(event.get("SEQUENCE", 0))
    except (TypeError, ValueError):
        return 0


# ---- GitHub


def read_github(path: PathLike) -> list[Item]:
    """What is open: [{kind, number, title, author, url, labels, draft, reviewers, created, updated}], pulls first.

    The file is {"pulls": [...], "issues": [...]}, with what GitHub's REST API answers to GET /repos/OWNER/REPO/pulls
    and /issues, or one such answer as it is. GitHub lists each pull request among the issues as well, marked
    by the key "pull_request"; it is counted once. Newest change first. SourceError if there is none to read.
    """
    shown, answer = _shown(path), _read_json(path, "github")
    if isinstance(answer, list):
        answer = {"": answer}
    elif not isinstance(answer, dict) or not {"pulls", "issues"} & set(answer):
        said = f", and says {_short(answer['message'], 80)!r}" if _is_text(answer, "message") else ""
        raise SourceError("github", f'{shown} has the wrong shape: expected a list of pulls or issues, or '
                                    f'{{"pulls": [...], "issues": [...]}}, and this is {_kind(answer)}{said}')
    rows = [(_github_item(row, where, shown, is_pull=key == "pulls"), row)
            for key in ("pulls", "issues", "") for where, row in _rows(answer.get(key, []), key, shown)]
    repositories = {_repository(item) for item, _ in rows} - {""}
    found: dict[Any, Item] = {}  # number, or (repository, number) -> item
    for item, row in rows:
        if row.get("state") != "closed":
            # Pulls come first: there a pull request knows its reviewers, among the issues it does not.
            found.setdefault((_repository(item), item["number"]) if len(repositories) > 1 else item["number"], item)
    by_number = sorted(found.values(), key=lambda item: (item["number"], item["url"]))
    newest_first = sorted(by_number, key=lambda item: item["updated"], reverse=True)
    return sorted(newest_first, key=lambda item: item["kind"] != "pull")


def _rows(rows: Any, where: str, shown: str) -> Iterator[tuple[str, Item]]:
    """(where it stands, the row); lists of lists are opened: `gh api --paginate --slurp` saves a list of pages."""
    if not isinstance(rows, list):
        raise SourceError("github", f"{shown} has the wrong shape: {where} is {_kind(rows)}, expected a list")
    for position, row in enumerate(rows):
        if isinstance(row, list):
            yield from _rows(row, f"{where}[{position}]", shown)
        else:
            yield f"{where}[{position}]", _object(row, "github", f"{where}[{position}]", shown)


def _github_item(row: Item, where: str, shown: str, is_pull: bool) -> Item:
    number = row.get("number")
    if not isinstance(number, int) or isinstance(number, bool):
        raise SourceError("github", f"{shown} has the wrong shape: {where} has no whole number under 'number'")
    is_pull = is_pull or "pull_request" in row or {"head", "base"} <= set(row)  # only pulls have branches
    return {
        "kind": "pull" if is_pull else "issue",
        "number": number,
        "title": _required(row, "title", "github", where, shown),
        "author": _name(row.get("user"), "login") or "ghost",  # as GitHub shows whoever deleted the account
        "url": _string(row.get("html_url")),
        "labels": [label for label in map(_label, _listed(row, "labels")) if label],
        "draft": row.get("draft") is True,
        "reviewers": [name for name in (*(_name(user, "login") for user in _listed(row, "requested_reviewers")),
                                        *(_name(team, "slug") for team in _listed(row, "requested_teams"))) if name],
        "created": _string(row.get("created_at")),
        "updated": _string(row.get("updated_at")),
    }


def _repository(item: Item) -> str:
    """The repository's address, or '': a number is unique within one, and an answer may mix several."""
    found = re.fullmatch(r"(.*)/(?:pull|issues)/\d+", item["url"])
    return found[1] if found else ""


def _name(person: Any, key: str) -> str:
    return _string(person.get(key)) if isinstance(person, dict) else ""


def _label(label: Any) -> str:
    return _string(label) if isinstance(label, str) else _name(label, "name")


def _listed(row: Item, key: str) -> list[Any]:
    value = row.get(key)
    return value if isinstance(value, list) else []


# ---- the memory


def read_memory(path: PathLike, query: str, limit: int = 20) -> list[Item]:
    """The notes that hold words of `query`: [{id, date, text, tags}], at most `limit`, best first.

    The file has one JSON record a line. Notes with every word of the query come before notes with some, then the
    better match (bm25), then the newer note. Case and accents do not matter; a word of Chinese, Japanese or
    Korean is found inside a sentence; nothing in a query is an operator. A query without words finds nothing.
    SourceError names the first line that is no record: a memory with a hole in it is not searched.
    """
    records = list(_records(path))
    phrases = [f'"{" ".join(words)}"' for words in map(_words, query.split()) if words]
    if not phrases:
        return []
    try:
        import sqlite3
    except ImportError:
        raise SourceError("memory", "this Python was built without sqlite3, "
                                    "which the memory is searched with") from None
    try:
        found, complete = _search(sqlite3.connect(":memory:"), records, list(dict.fromkeys(phrases)))
    except sqlite3.OperationalError as error:
        if "fts5" not in str(error):
            raise SourceError("memory", f"{_shown(path)} cannot be searched: {error}") from error
        raise SourceError("memory", "the SQLite of this Python was built without FTS5, "
                                    "which the memory is searched with") from error
    newest = sorted(found, key=lambda row: records[row]["date"], reverse=True)
    best = sorted(newest, key=lambda row: (row not in complete, found[row]))
    return [records[row] for row in best[:limit]]


def _search(db: Any, records: list[Item], phrases: list[str]) -> tuple[dict[int, float], set[int]]:
    """(row -> rank, rows that hold every phrase): rows are positions in `records`, a smaller rank is better."""
    try:
        # What `_words` gives are ASCII letters, digits, letters of other scripts, and _ before a code point.
        db.execute("CREATE VIRTUAL TABLE notes USING fts5(words, tokenize = \"unicode61 tokenchars '_'\")")
        db.executemany("INSERT INTO notes (rowid, words) VALUES (?, ?)",
                       ((row, " ".join(_words(" ".join([record["text"], *record["tags"]]))))
                        for row, record in enumerate(records)))
        ask = "SELECT rowid, round(rank, 6) FROM notes WHERE notes MATCH ? ORDER BY rowid"
        every: set[int] | None = None
        found: dict[int, float] = {}
        for phrase in phrases:
            # One phrase at a time: FTS5 limits how large an expression may be, a query may be of any length.
            ranks = dict(db.execute(ask, (phrase,)).fetchall())
            for row, rank in ranks.items():
                found[row] = found.get(row, 0.0) + rank
            every = set(ranks) if every is None else every & set(ranks)
        return found, every or set()
    finally:
        db.close()


def _words(text: str) -> list[str]:
    """The words of `text` as the index and the query spell them.

    Letters and digits make words, without case and accents: 'Café' is 'cafe'. Scripts that put no spaces between
    words give one word a character, so that a phrase finds 東京 inside a sentence. So do emoji, and the signs
    that belong to names such as C++ and C#. Such a character is written as its code point: '_6771'.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (ch for ch in plain if unicodedata.category(ch) != "Mn" or ch in "\u3099\u309a")  # が is か and U+3099
    words, run = [], ""
    for ch in unicodedata.normalize("NFKC", "".join(kept)):
        if unicodedata.category(ch)[0] in "LN" and not _UNSPACED.match(ch) or unicodedata.category(ch) == "Mc":
            run += ch
            continue
        if run:
            words.append(run)
            run = ""
        if _UNSPACED.match(ch) or ch in "+#" or unicodedata.category(ch) in ("So", "Sc"):
            words.append(f"_{ord(ch):x}")
    return [*words, run] if run else words


_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u3105-\u312f"
                       "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
                       "\U00020000-\U0003ffff]")  # Thai, Lao, Burmese, Khmer, kana, bopomofo, Han, Hangul


def _records(path: PathLike) -> Iterator[Item]:
    text, shown = _read_text(path, "memory"), _shown(path)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        row = _object(_parsed(line, "memory", shown, number), "memory", f"line {number}", shown)
        day, where = row.get("date", ""), f"line {number}"
        if not isinstance(day, str) or (day and not _is_date(day)):
            raise SourceError("memory", f"{shown} has the wrong shape: {where} has the date {_short(day, 30)!r}, "
                                        f"expected YYYY-MM-DD")
        if isinstance(row.get("id"), bool) or not isinstance(row.get("id"), (str, int)):
            raise SourceError("memory", f"{shown} has the wrong shape: {where} has no 'id'")
        note = _required(row, "text", "memory", where, shown)
        tags = [_string(tag) for tag in _listed(row, "tags") if isinstance(tag, str)]
        yield {"id": _string(str(row["id"])), "date": day, "text": note, "tags": tags}


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text[:10]) is not None
    except ValueError:
        return False


# ---- the web


def read_web(path: PathLike) -> list[Item]:
    """What saved searches found: [{query, title, url, snippet}], in the order of the file, each page once.

    The file is [{"query": ..., "results": [{"title": ..., "url": ..., "snippet": ...}]}]. SourceError if not.
    """
    shown, searches = _shown(path), _read_json(path, "web")
    if not isinstance(searches, list):
        raise SourceError("web", f'{shown} has the wrong shape: expected [{{"query": ..., "results": [...]}}], '
                                 f"and this is {_kind(searches)}")
    found: dict[str, Item] = {}  # address -> item
    for position, search in enumerate(searches):
        where = f"[{position}]"
        query = _required(_object(search, "web", where, shown), "query", "web", where, shown)
        results = search.get("results")
        if not isinstance(results, list):
            raise SourceError("web", f"{shown} has the wrong shape: {where} has no list under 'results'")
        for place, row in enumerate(results):
            spot = f"{where}.results[{place}]"
            url = _required(_object(row, "web", spot, shown), "url", "web", spot, shown)
            found.setdefault(url, {"query": query, "title": _required(row, "title", "web", spot, shown), "url": url,
                                   "snippet": _string(row.get("snippet"))})
    return list(found.values())


# ---- files


def _read_bytes(path: PathLike, name: str) -> bytes:
    """What the file holds; SourceError if there is no such file, nothing in it, or no text."""
    shown = _shown(path)
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise SourceError(name, f"{shown} does not exist") from None
    except IsADirectoryError:
        raise SourceError(name, f"{shown} is a folder, expected a file") from None
    except PermissionError as error:
        # Windows answers so for a folder too.
        why = "is a folder, expected a file" if Path(path).is_dir() else "may not be read: permission denied"
        raise SourceError(name, f"{shown} {why}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = _short(getattr(error, "strerror", None) or error)
        raise SourceError(name, f"{shown} cannot be read: {why}") from error
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(name, f"{shown} is UTF-16, expected UTF-8: save it as UTF-8")
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise SourceError(name, f"{shown} is empty")
    if b"\0" in raw:
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        raise SourceError(name, f"{shown} holds a NUL byte at line {line}: it is damaged, or no text file")
    return raw


def _read_text(path: PathLike, name: str) -> str:
    """The file's text, with \\n at the end of each line."""
    return _decoded(_read_bytes(path, name), path, name).replace("\r\n", "\n")


def _decoded(raw: bytes, path: PathLike, name: str, line: int | None = None) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = line or raw.count(b"\n", 0, error.start) + 1
        raise SourceError(name, f"{_shown(path)} is not UTF-8: line {line} holds the byte "
                                f"0x{raw[error.start]:02x}; save it as UTF-8") from None


def _read_json(path: PathLike, name: str) -> Any:
    return _parsed(_read_text(path, name), name, _shown(path))


def _parsed(text: str, name: str, shown: str, line: int | None = None) -> Any:
    """The value; SourceError names the line, which is `line` if the text is one line of a file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise SourceError(name, f"{shown} is not JSON at line {line or error.lineno}: {error.msg}") from None
    except RecursionError:
        raise SourceError(name, f"{shown} cannot be read: its JSON is nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise SourceError(name, f"{shown} cannot be read: {_short(error)}") from None


def _shown(path: PathLike) -> str:
    """The path as messages quote it; a shipped file is called data/..., wherever that folder lies."""
    try:
        return repr((Path("data") / Path(path).relative_to(data_dir())).as_posix())
    except ValueError:
        return repr(os.fspath(path))


# ---- values


def _object(value: Any, name: str, where: str, shown: str) -> Item:
    if isinstance(value, dict):
        return value
    raise SourceError(name, f"{shown} has the wrong shape: {where} is {_kind(value)}, expected an object")


def _required(row: Item, key: str, name: str, where: str, shown: str) -> str:
    if _is_text(row, key):
        return _string(row[key])
    raise SourceError(name, f"{shown} has the wrong shape: {where} has no text under {key!r}")


def _is_text(value: Any, key: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(key), str)


def _string(value: Any) -> str:
    """A string that UTF-8 can write: JSON may spell half a surrogate pair, as in "\\ud800". '' for anything else."""
    if not isinstance(value, str):
        return ""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _kind(value: Any) -> str:
    """What JSON calls it."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _short(value: Any, length: int = 160) -> str:
    """The text of `value` on one line, cut where it is long; a KeyError's quotes are taken off."""
    text = " ".join(str(value.args[0] if isinstance(value, KeyError) and value.args else value).split())
    return text if len(text) <= length else text[: length - 1] + "…"


# ---- the outbox


def write_outbox(folder: PathLike, filename: str, text: str) -> Path:
    """The path of the new file in `folder`, which is made if it is not there; a file of that name is replaced.

    At every instant the file is the old one or the new one, whole. Nothing is written outside the folder: a
    filename with a path in it is a ValueError, and a link in the place of the file is replaced, not followed.
    OutboxError (an OSError) if the disk refuses.
    """
    if filename in ("", ".", "..") or re.search(r"[/\\:\x00-\x1f]", filename):
        raise ValueError(f"{filename!r} is no plain file name: a file goes into the outbox, and nowhere else")
    target = Path(folder) / filename
    temporary = target.with_name(f".{filename}.{os.urandom(6).hex()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "x", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                file.write(text)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutboxError(f"cannot write {filename!r} into the outbox {os.fspath(folder)!r}: "
                          f"{error.strerror or error}") from error
    return target
