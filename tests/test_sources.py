"""The four readers and the outbox: real formats, and for every way to be unreadable one clear sentence."""

import json
import os
import sqlite3
import sys
from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from minigraph.workflows import sources
from minigraph.workflows.sources import (
    SHIPPED_DAY,
    OutboxError,
    SourceError,
    data_dir,
    read_calendar,
    read_github,
    read_memory,
    read_web,
    write_outbox,
)

DATA = Path(__file__).resolve().parent.parent / "data"
MONDAY = date(2026, 3, 2)
READERS = {
    "calendar": lambda path: read_calendar(path, MONDAY),
    "github": read_github,
    "memory": lambda path: read_memory(path, "word"),
    "web": read_web,
}


@pytest.fixture
def file(tmp_path):
    """Writes a file and returns its path: file(text or bytes)."""
    def write(content, name="file"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
    return write


def reason(reader, path):
    """The one sentence that `reader` gives for `path`, with the folder taken out of it."""
    with pytest.raises(SourceError) as caught:
        READERS[reader](path)
    assert caught.value.name == reader
    assert str(caught.value) == caught.value.reason
    assert "\n" not in caught.value.reason
    return caught.value.reason.replace(f"{path.parent}{os.sep}", "")


# ---- what every reader says


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content, expected", [
    (b"", "'file' is empty"),
    (b" \r\n\t\n", "'file' is empty"),
    (b"\xef\xbb\xbf", "'file' is empty"),
    (b"\xff\xfe{\x00}\x00", "'file' is UTF-16, expected UTF-8: save it as UTF-8"),
    (b"one\ntwo\nthr\x00ee", "'file' holds a NUL byte at line 3: it is damaged, or no text file"),
])
def test_a_file_that_is_no_text_is_a_source_error(reader, content, expected, file):
    """Empty files, UTF-16 and NUL bytes are told apart, and never read as "nothing today"."""
    assert reason(reader, file(content)) == expected


@pytest.mark.parametrize("reader", READERS)
def test_a_missing_file_and_a_folder_are_told_apart(reader, tmp_path):
    """A path to nothing, to a folder, through a file, or that no system could open: one sentence each."""
    assert reason(reader, tmp_path / "gone") == "'gone' does not exist"
    (tmp_path / "folder").mkdir()
    assert reason(reader, tmp_path / "folder") == "'folder' is a folder, expected a file"
    (tmp_path / "plain").write_text("x")
    assert reason(reader, tmp_path / "plain" / "x").endswith("'x' cannot be read: Not a directory")
    assert "cannot be read: embedded null byte" in reason(reader, tmp_path / "a\0b")
    assert "cannot be read: File name too long" in reason(reader, tmp_path / ("x" * 5000))


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_may_not_be_read_says_so(reader, file, monkeypatch):
    """Permission denied is a reason; on Windows a folder answers with it, and is called a folder."""
    path = file("x")

    def denied(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert reason(reader, path) == "'file' may not be read: permission denied"
    assert "is a folder" in reason(reader, path.parent)


def test_latin_1_is_named_with_its_line(file):
    """A file in another encoding is not guessed at: the line and the byte are named."""
    bad = b"caf\xe9"
    assert reason("github", file(b"[\n1,\n" + bad)) == (
        "'file' is not UTF-8: line 3 holds the byte 0xe9; save it as UTF-8")
    assert "line 2 holds the byte 0xe9" in reason("memory", file(b"\n" + bad))
    assert "line 2 holds the byte 0xe9" in reason("calendar", file(b"BEGIN:VCALENDAR\r\nX:" + bad + b"\r\n"))


@pytest.mark.parametrize("reader", ["github", "web"])
@pytest.mark.parametrize("content, expected", [
    ('{"a": 1,\n "b" 2}', "'file' is not JSON at line 2: Expecting ':' delimiter"),
    ("<html>\n", "'file' is not JSON at line 1: Expecting value"),
    ('["a\x01"]', "'file' is not JSON at line 1: Invalid control character at"),
    ("[" * 200_000, "'file' cannot be read: its JSON is nested too deeply"),
    ('"text"', "'file' has the wrong shape: "),
    ("12", "'file' has the wrong shape: "),
    ("null", "'file' has the wrong shape: "),
    ("{}", "'file' has the wrong shape: "),
    ("[1]", "'file' has the wrong shape: [0] is a number, expected an object"),
    ("[null]", "'file' has the wrong shape: [0] is null, expected an object"),
])
def test_broken_json_is_named_by_line_or_place(reader, content, expected, file):
    """What is no JSON is named by its line, what is JSON of another shape by its place and what was expected."""
    assert reason(reader, file(content)).startswith(expected)


def test_a_number_of_thousands_of_digits_is_a_reason_or_a_wrong_shape(file):
    """A number too long for Python to convert does not escape as a ValueError."""
    assert reason("github", file('[{"number": ' + "9" * 10_000 + "}]")).startswith("'file' ")


@pytest.mark.parametrize("reader, name", [("calendar", "calendar.ics"), ("github", "github.json"),
                                          ("memory", "memory.jsonl"), ("web", "web.json")])
def test_bom_and_line_ends_make_no_difference(reader, name, file):
    """A byte order mark, CRLF, and no line end at the end: the items are the same."""
    raw = (DATA / name).read_bytes().replace(b"\r\n", b"\n")
    read = READERS[reader] if reader != "memory" else lambda path: read_memory(path, "release")
    items = read(file(raw))
    assert items
    for variant in (b"\xef\xbb\xbf" + raw, raw.replace(b"\n", b"\r\n"), raw.rstrip(b"\n")):
        assert read(file(variant)) == items


@pytest.mark.parametrize("reader", READERS)
def test_items_are_plain_json(reader):
    """What a reader returns comes back equal from JSON."""
    name = {"calendar": "calendar.ics", "memory": "memory.jsonl"}.get(reader, f"{reader}.json")
    items = READERS[reader](DATA / name) if reader != "memory" else read_memory(DATA / name, "release")
    assert items and json.loads(json.dumps(items)) == items


def test_a_shipped_file_is_called_data_wherever_it_lies(monkeypatch, tmp_path):
    """Messages about the files of the kit hold no path of this machine; one's own file is called as it was named."""
    assert data_dir() == DATA
    with pytest.raises(SourceError) as caught:
        read_web(data_dir() / "gone.json")
    assert str(caught.value) == "'data/gone.json' does not exist"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError) as caught:
        read_web("mine/gone.json")
    assert str(caught.value) == "'mine/gone.json' does not exist"


def test_an_installed_package_has_its_data_inside(monkeypatch, tmp_path):
    """data_dir() is minigraph/data if that is there, else data/ beside the package."""
    (tmp_path / "minigraph" / "workflows").mkdir(parents=True)
    monkeypatch.setattr(sources, "__file__", str(tmp_path / "minigraph" / "workflows" / "sources.py"))
    assert data_dir() == tmp_path / "data"
    (tmp_path / "minigraph" / "data").mkdir()
    assert data_dir() == tmp_path / "minigraph" / "data"


# ---- the calendar


def ics(*lines, head=("X-WR-TIMEZONE:Europe/Vienna",)):
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", *head, *lines, "END:VCALENDAR", ""])


def event(*lines, uid="1"):
    return ["BEGIN:VEVENT", f"UID:{uid}", *lines, "END:VEVENT"]


def told(path, day=MONDAY):
    """(when, title) of each event, and the problem of those that have one."""
    return [(item["when"], item["title"], *([item["problem"]] if item["problem"] else []))
            for item in read_calendar(path, day)]


def test_the_shipped_calendar_on_its_day():
    """All that makes a calendar hard, on 2 March: recurrence, an override, two zones, all-day events, folded lines."""
    assert read_calendar(DATA / "calendar.ics", SHIPPED_DAY)[3] == {
        "title": "Stand-up", "when": "09:30–09:45", "start": "2026-03-02T09:30:00+01:00",
        "end": "2026-03-02T09:45:00+01:00", "all_day": False, "where": "Video room 1", "problem": None}
    assert told(DATA / "calendar.ics") == [
        ("all day, day 2 of 3", "Ines: Jornadas de Hidrografia, Lisboa"),  # began on 1 March
        ("all day", "Feature freeze for release 2.4"),
        ("07:30–08:00", "Call with the Seattle mirror"),  # on 1 March, 22:30, in Los Angeles
        ("09:30–09:45", "Stand-up"),  # MO,WE,FR since 5 January
        ("14:30–15:00", "Jonas and Mara (moved, the train is late)"),  # an override of 11:00
        ("16:00–17:00", "Release meeting 2.4: what is in, what waits, and who writes to the harbour offices "
                        "before Thursday"),  # folded
        ("21:00–21:45", "潮位データの確認 (Aiko)"),  # on 3 March, 05:00, in a zone that only the file defines
    ]  # not there: choir (EXDATE), the cancelled lunch, Auckland's 2 March, tomorrow's retrospective


def test_the_shipped_calendar_on_other_days():
    """The exception is an exception: the stand-up is there on Wednesday, and not on the Friday that EXDATE names."""
    assert "Stand-up" in [title for _, title in told(DATA / "calendar.ics", date(2026, 3, 4))]
    assert told(DATA / "calendar.ics", date(2026, 2, 27)) == []
    assert told(DATA / "calendar.ics", date(2026, 3, 9)) == [
        ("09:30–09:45", "Stand-up"), ("11:00–11:30", "Jonas and Mara"), ("19:00–20:30", "Choir practice")]


def test_escapes_and_parameters_are_read(file):
    r"""\, \; \n and \\ are text; parameters such as LANGUAGE, and the order of properties, change nothing."""
    path = file(ics("BEGIN:VEVENT", r"SUMMARY;LANGUAGE=de;X-A=\"b:c\":a\, b\; c\nd \\n".replace(r'\"', '"'),
                    r"LOCATION:Hall\, 2", "DTEND:20260302T110000", "DTSTART:20260302T100000", "UID:1", "END:VEVENT"))
    [item] = read_calendar(path, MONDAY)
    assert (item["title"], item["where"]) == ("a, b; c\nd \\n", "Hall, 2")


def test_a_fold_may_split_a_character(file):
    """RFC 5545 folds octets, not characters: é cut in half by a fold is é, and so with a tab or a bare LF."""
    whole = ics(*event("DTSTART:20260302T100000", "SUMMARY:café au lait")).encode()
    for fold in (b"\r\n ", b"\n ", b"\r\n\t"):
        cut = whole.replace("é".encode(), b"\xc3" + fold + b"\xa9")
        assert told(file(cut)) == [("10:00", "café au lait")]


def test_days_have_the_borders_of_the_calendars_own_zone(file):
    """An event belongs to the day on which it happens here; one that ends at midnight is not on the day that begins."""
    path = file(ics(
        *event("DTSTART:20260301T230000Z", "DTEND:20260302T000000Z", "SUMMARY:midnight here", uid="1"),
        *event("DTSTART:20260302T225900Z", "DTEND:20260302T235900Z", "SUMMARY:late", uid="2"),
        *event("DTSTART:20260302T230000Z", "SUMMARY:tomorrow", uid="3"),
        *event("DTSTART:20260301T220000", "DTEND:20260302T000000", "SUMMARY:ended", uid="4"),
        *event("DTSTART;VALUE=DATE:20260302", "SUMMARY:all day without an end", uid="5"),
        *event("DTSTART;VALUE=DATE:20260301", "DTEND;VALUE=DATE:20260302", "SUMMARY:yesterday", uid="6"),
        *event("DTSTART:20260301T200000", "DURATION:PT30H", "SUMMARY:long", uid="7"),
    ))
    assert told(path) == [
        ("all day", "all day without an end"), ("1 Mar 20:00–3 Mar 02:00", "long"), ("00:00–01:00", "midnight here"),
        ("23:59–3 Mar 00:59", "late")]


def test_without_a_zone_of_its_own_the_calendar_is_read_in_this_machines(file, monkeypatch):
    """No X-WR-TIMEZONE: a day begins when it begins here; a time without a zone is a time here."""
    path = file(ics(*event("DTSTART:20260302T070000Z", "SUMMARY:utc"),
                    *event("DTSTART:20260302T100000", "SUMMARY:floating", uid="2"), head=()))
    hour = datetime(2026, 3, 2, 7, tzinfo=timezone.utc).astimezone()
    assert ("10:00", "floating") in told(path)
    assert (f"{hour:%H:%M}", "utc") in told(path, hour.date())


def test_the_order_does_not_hang_on_the_file(file):
    """All-day events, then by time, then by title; however the file is ordered."""
    events = [event("DTSTART:20260302T100000", "SUMMARY:b", uid="1"),
              event("DTSTART:20260302T100000", "SUMMARY:a", uid="2"),
              event("DTSTART:20260302T090000", "SUMMARY:z", uid="3"),
              event("DTSTART;VALUE=DATE:20260302", "SUMMARY:y", uid="4")]
    expected = [("all day", "y"), ("09:00", "z"), ("10:00", "a"), ("10:00", "b")]
    assert told(file(ics(*sum(events, [])))) == expected
    assert told(file(ics(*sum(reversed(events), [])))) == expected


def test_cancelled_is_cancelled_alone_or_in_a_series(file):
    """STATUS:CANCELLED hides an event, or one occurrence, also one sent as METHOD:CANCEL sends it, without a start."""
    series = event("DTSTART:20260223T100000", "RRULE:FREQ=WEEKLY", "SUMMARY:weekly")
    for gone in (["STATUS:CANCELLED", "DTSTART:20260302T100000"], ["STATUS:cancelled", "DTSTART:20260302T120000"],
                 ["STATUS:CANCELLED"]):
        path = file(ics(*series, *event("RECURRENCE-ID:20260302T100000", *gone)))
        assert told(path) == []
        assert told(path, date(2026, 3, 9)) == [("10:00", "weekly")]


def test_two_files_may_define_one_zone_name_differently(file):
    """A zone that only the file defines is that file's: it is not remembered for the next, and needs no TZNAME."""
    def zoned(offset):
        return ics("BEGIN:VTIMEZONE", "TZID:Customized", "BEGIN:STANDARD", "DTSTART:19700101T000000",
                   f"TZOFFSETFROM:{offset}", f"TZOFFSETTO:{offset}", "END:STANDARD", "END:VTIMEZONE",
                   *event("DTSTART;TZID=Customized:20260302T080000", "SUMMARY:x"))
    assert told(file(zoned("-0500"))) == [("14:00", "x")]
    assert told(file(zoned("+0530"))) == [("03:30", "x")]
    assert told(file(zoned("+1000"))) == []  # at 23:00 on 1 March


def test_a_zone_nobody_knows_is_reported_with_the_event(file):
    """The event stays, at the time that is written, with a problem that names the zone; Windows names are known."""
    path = file(ics(*event("DTSTART;TZID=Mars/Base:20260302T080000", "SUMMARY:x"),
                    *event("DTSTART;TZID=Pacific Standard Time:20260301T223000", "SUMMARY:y", uid="2")))
    assert told(path) == [("07:30", "y"),
                          ("08:00", "x", "its time zone 'Mars/Base' is unknown: the time is as written")]
    path = file(ics(*event("DTSTART:20260302T080000", "SUMMARY:x"), head=("X-WR-TIMEZONE:Mars/Base",)))
    assert told(path) == [
        ("08:00", "x"),
        ("", "the calendar's time zone", "'Mars/Base' is unknown, so times are shown in this machine's zone")]


@pytest.mark.parametrize("lines, problem", [
    (["DTSTART:soon"], "its DTSTART cannot be read: Expected "),
    (["DTSTART:20200101T100000", "RRULE:FREQ=SOMETIMES"], "its RRULE cannot be read: Expected frequency"),
    (["DTSTART:20200101T100000", "RRULE:FREQ=WEEKLY", "EXDATE:junk"], "its EXDATE cannot be read: "),
    (["DTSTART:20260302T100000", "DTEND:junk"], "its DTEND cannot be read: "),
    (["DESCRIPTION:nothing else"], "it has no DTSTART"),
    (["DTSTART:20200101T100000", "RRULE:FREQ=SECONDLY"], "it repeats secondly, too often to expand"),
    (["DTSTART:20260302T100000", "DTSTART:20260303T100000"], "it has 2 times DTSTART"),
])
def test_one_bad_event_hides_no_other(lines, problem, file):
    """An event that cannot be expanded is reported by its title, and the others are there."""
    path = file(ics(*event("SUMMARY:bad", *lines), *event("DTSTART:20260302T090000", "SUMMARY:good", uid="2")))
    good, bad = read_calendar(path, MONDAY)
    assert good["title"] == "good" and good["problem"] is None
    assert (bad["title"], bad["start"], bad["when"]) == ("bad", None, "")
    assert bad["problem"] and bad["problem"].startswith(problem)


def test_a_line_that_cannot_be_read_is_reported_with_its_event(file):
    """The event is shown with what could be read, and the line is named."""
    [item] = read_calendar(file(ics(*event("DTSTART:20260302T090000", "SUMMARY no colon"))), MONDAY)
    assert (item["when"], item["title"]) == ("09:00", "(no title)")
    assert "'SUMMARY no colon'" in item["problem"]


def test_events_that_share_a_uid_are_all_there(file):
    """Two events with one UID, of which neither overrides the other, are two events; the same event twice is one."""
    twice = event("DTSTART:20260302T100000", "SUMMARY:a") + event("DTSTART:20260302T110000", "SUMMARY:b")
    assert told(file(ics(*twice))) == [("10:00", "a"), ("11:00", "b")]
    assert told(file(ics(*twice, *twice))) == [("10:00", "a"), ("11:00", "b")]
    newer = event("DTSTART:20260302T120000", "SUMMARY:a", "SEQUENCE:1")
    assert told(file(ics(*twice, *newer))) == [("12:00", "a")]
    anonymous = ["BEGIN:VEVENT", "DTSTART:20260302T100000", "SUMMARY:c", "END:VEVENT"]
    assert len(told(file(ics(*anonymous, *[line.replace(":c", ":d") for line in anonymous])))) == 2


def test_two_calendars_in_one_file_are_both_read(file):
    """A file may hold several VCALENDAR objects, RFC 5545, 3.4."""
    assert told(file(ics(*event("DTSTART:20260302T100000", "SUMMARY:a"))
                     + ics(*event("DTSTART:20260302T110000", "SUMMARY:b")))) == [("10:00", "a"), ("11:00", "b")]


def test_a_calendar_without_events_is_an_empty_day(file):
    """No events is [], not an error."""
    assert read_calendar(file(ics()), MONDAY) == []


def test_a_very_long_line_is_a_line(file):
    """A line of a megabyte is read, unfolded as some programs write it or in thousands of folds."""
    for fold in ("", "\r\n "):
        path = file(ics(*event("DTSTART:20260302T100000", "SUMMARY:" + ("x" * 50 + fold) * 20_000 + "x")))
        [item] = read_calendar(path, MONDAY)
        assert len(item["title"]) == 1_000_001


@pytest.mark.parametrize("content, expected", [
    ('{"a": 1}', """'file' is not an iCalendar file: it begins with '{"a": 1}', not with BEGIN:VCALENDAR"""),
    ("<html>Sign in</html>", "'file' is not an iCalendar file: it begins with '<html>Sign in</html>', not with "),
    (ics(*event("DTSTART:20260302T100000"))[:-17], "'file' is cut off: the BEGIN:VCALENDAR of line 1 has no END"),
    (ics(*event("DTSTART:20260302T100000"))[:80], "'file' is cut off: the BEGIN:VEVENT of line 4 has no END"),
    (ics("BEGIN:VEVENT", "UID:1"), "'file' is broken at line 6: expected END:VEVENT, found 'END:VCALENDAR'"),
    (ics("END:VEVENT"), "'file' is broken at line 4: expected END:VCALENDAR, found 'END:VEVENT'"),
    (ics() + "SUMMARY:x", "'file' is broken at line 5: 'SUMMARY:x' stands outside BEGIN:VCALENDAR and END:VCALENDAR"),
    (ics() + "END:VCALENDAR", "'file' is broken at line 5: expected the end of the file, found 'END:VCALENDAR'"),
    (ics("BEGIN:VTIMEZONE", "TZID:x", "END:VTIMEZONE"), "'file' cannot be read as iCalendar: "),
])
def test_a_broken_calendar_is_never_an_empty_day(content, expected, file):
    """What is no calendar, or only the beginning of one, says so with the line; the parser alone would find nothing."""
    assert reason("calendar", file(content)).startswith(expected)


@pytest.mark.parametrize("library", ["icalendar", "recurring_ical_events"])
def test_without_the_calendar_library_the_calendar_says_how_to_get_it(library, monkeypatch):
    """From a bare clone the calendar is unavailable, and the reason holds the command that mends it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SourceError) as caught:
        read_calendar(DATA / "calendar.ics", MONDAY)
    assert str(caught.value) == 'the calendar library is not installed: pip install -e ".[notebooks]"'
    sources.warm_up()  # does not mind


# ---- GitHub


def test_the_shipped_answer():
    """Four pull requests and three issues: the issue list holds all seven, and none is counted twice."""
    raw = json.loads((DATA / "github.json").read_text(encoding="utf-8"))
    assert (len(raw["pulls"]), len(raw["issues"])) == (4, 7)
    items = read_github(DATA / "github.json")
    assert [(item["kind"], item["number"]) for item in items] == [
        ("pull", 148), ("pull", 145), ("pull", 147), ("pull", 139), ("issue", 149), ("issue", 146), ("issue", 131)]
    assert items[2] == {
        "kind": "pull", "number": 147, "title": "Escape `<station>` tags and | pipes in the tide table",
        "author": "jonas", "url": "https://example.org/tideline/tideline/pull/147", "labels": ["bug", "release 2.4"],
        "draft": False, "reviewers": ["mara", "ines"], "created": "2026-02-24T15:30:00Z",
        "updated": "2026-02-27T09:05:31Z"}
    assert [item["number"] for item in items if item["draft"]] == [145]


def short(items):
    return [(item["kind"], item["number"]) for item in items]


ISSUE = {"number": 7, "title": "a"}
PULL = {"number": 8, "title": "b", "pull_request": {"url": "..."}}


def test_a_bare_list_is_read_as_gh_api_saves_it(file):
    """`gh api` saves one answer, a list of issues or of pulls; with --paginate --slurp a list of pages."""
    assert short(read_github(file(json.dumps([ISSUE, PULL])))) == [("pull", 8), ("issue", 7)]
    assert short(read_github(file(json.dumps([[ISSUE], [PULL], []])))) == [("pull", 8), ("issue", 7)]
    assert short(read_github(file(json.dumps([{"number": 9, "title": "c", "head": {}, "base": {}}])))) == [("pull", 9)]
    assert read_github(file("[]")) == read_github(file('{"issues": []}')) == []
    assert short(read_github(file(json.dumps({"pulls": [{"number": 9, "title": "c"}]})))) == [("pull", 9)]


def test_a_pull_request_is_counted_once(file):
    """By its number within a repository, whichever fields the two lists have; a number may recur in another."""
    pull = {"number": 8, "title": "b", "html_url": "https://example.org/a/b/pull/8",
            "requested_reviewers": [{"login": "mara"}], "requested_teams": [{"slug": "docs"}]}
    [item] = read_github(file(json.dumps({"issues": [PULL], "pulls": [pull, pull]})))
    assert item["reviewers"] == ["mara", "docs"]
    other = {**ISSUE, "number": 8, "html_url": "https://example.org/a/c/issues/8"}
    assert len(read_github(file(json.dumps({"issues": [other], "pulls": [pull]})))) == 2


def test_closed_items_and_missing_fields(file):
    """What is closed is not told; a deleted author is called ghost, as GitHub does; null and absence are alike."""
    bare = {"number": 1, "title": "x", "user": None, "labels": None, "requested_reviewers": None}
    rows = [{**ISSUE, "state": "closed"}, bare, {**ISSUE, "number": 2, "labels": ["a", {}]}]
    items = read_github(file(json.dumps(rows)))
    assert [(item["number"], item["author"], item["labels"]) for item in items] == [
        (1, "ghost", []), (2, "ghost", ["a"])]


def test_half_a_surrogate_pair_can_be_written(file):
    """JSON may spell half a character; what is read is text that UTF-8 can hold."""
    [item] = read_github(file(r'[{"number": 1, "title": "a\ud800b \ud83d\ude80"}]'))
    assert item["title"] == "a\ufffdb 🚀"
    assert item["title"].encode()


@pytest.mark.parametrize("content, expected", [
    ('{"message": "Bad credentials", "status": "401"}', "'file' has the wrong shape: expected a list of pulls or "
     """issues, or {"pulls": [...], "issues": [...]}, and this is an object, and says 'Bad credentials'"""),
    ('{"pulls": {}}', "'file' has the wrong shape: pulls is an object, expected a list"),
    ('{"pulls": null}', "'file' has the wrong shape: pulls is null, expected a list"),
    ('{"issues": [{"title": "x"}]}', "'file' has the wrong shape: issues[0] has no whole number under 'number'"),
    ('{"issues": [{"number": true, "title": "x"}]}', "'file' has the wrong shape: issues[0] has no whole number"),
    ('[{"number": 1, "title": "x"}, {"number": 2}]', "'file' has the wrong shape: [1] has no text under 'title'"),
    ('[[], [{"number": 2}]]', "'file' has the wrong shape: [1][0] has no text under 'title'"),
])
def test_an_answer_of_another_shape_says_what_was_expected(content, expected, file):
    """An error answer, or a row without a number or title, fails the source and is named by its place."""
    assert reason("github", file(content)).startswith(expected)


# ---- the memory


NOTES = [
    ("1", "Café Müller, naïve résumé"), ("2", "来週の東京での打ち合わせは日本語で行う"), ("3", "C++ and C# bindings"),
    ("4", "the C bindings"), ("5", "🚀 launch on Friday"), ("6", "서울에서 온 자료"), ("7", "Η Ελένη στον Πειραιά"),
    ("8", "ราคาน้ำมันวันนี้"), ("9", "NOT this AND that"), ("10", "price: 5€"), ("11", "ガスの料金"), ("12", "𠮷野家"),
    ("13", "Straße in Łódź"), ("14", "a-b_c.d"),
]


@pytest.fixture
def notes(file):
    return file("".join(json.dumps({"id": key, "text": text}, ensure_ascii=False) + "\n" for key, text in NOTES))


@pytest.mark.parametrize("query, expected", [
    ("café naïve", ["1"]),
    ("CAFE", ["1"]),
    ("cafe\u0301", ["1"]),
    ("résumé!", ["1"]),
    ("日本語", ["2"]),
    ("東京", ["2"]),
    ("京", ["2"]),
    ("京東", []),
    ("C++", ["3"]),
    ("C#", ["3"]),
    ("🚀", ["5"]),
    ("서울", ["6"]),
    ("ελενη", ["7"]),
    ("ΠΕΙΡΑΙΆ", ["7"]),
    ("น้ำมัน", ["8"]),
    ("AND", ["3", "9"]),
    ("NOT", ["9"]),
    ("€", ["10"]),
    ("ガス", ["11"]),
    ("ｶﾞｽ", ["11"]),
    ("カス", []),
    ("𠮷", ["12"]),
    ("STRASSE", ["13"]),
    ("a-b", ["14"]),
    ('C++ "quoted" AND (x OR -y)*', ["3", "9"]),
    ("", []),
    ("   ", []),
    ('"', []),
    ("?!*()", []),
    ("\x00\ud800", []),
    ("near(a b, 2) text:x ^y {z}", ["14"]),
    ("word " * 5000 + "launch", ["5"]),
    ("あ" * 5000, []),
])
def test_a_query_is_words_and_none_is_lost(query, expected, notes):
    """Accents, case, CJK, emoji and punctuation: every word is looked for, and nothing is an operator."""
    assert sorted(item["id"] for item in read_memory(notes, query)) == expected


def test_notes_with_every_word_come_first_then_the_newer(file):
    """All words before some; of equals the newer first; at most `limit`."""
    rows = [("1", "2026-01-01", "release notes"), ("2", "2026-02-01", "release plan"),
            ("3", "2025-01-01", "plan release"), ("4", "2026-03-01", "plan plan plan"), ("5", "", "other")]
    path = file("\n".join(json.dumps({"id": key, "date": day, "text": text}) for key, day, text in rows))
    assert [item["id"] for item in read_memory(path, "release plan")] == ["2", "3", "4", "1"]
    assert [item["id"] for item in read_memory(path, "release plan", limit=1)] == ["2"]
    far = [{"id": "long", "text": "tide gauge " + "and much else " * 99}, {"id": "short", "text": "gauge gauge gauge"}]
    path = file("\n".join(map(json.dumps, [*far, *({"id": str(n), "text": "tide"} for n in range(9))])))
    assert [item["id"] for item in read_memory(path, "tide gauge")][:2] == ["long", "short"]


def test_tags_are_searched_and_returned(file):
    """A record is {id, date, text, tags}; date and tags may be missing, and blank lines are nothing."""
    path = file('{"id": 1, "text": "x", "tags": ["Über", 3]}\n\n{"id": "b", "date": "2026-03-02", "text": "y"}\n')
    assert read_memory(path, "uber y") == [
        {"id": "b", "date": "2026-03-02", "text": "y", "tags": []},
        {"id": "1", "date": "", "text": "x", "tags": ["Über"]}]


@pytest.mark.parametrize("line, expected", [
    ('{"id": 2, "text": "b"', "'file' is not JSON at line 2: Expecting ',' delimiter"),
    ("plain words", "'file' is not JSON at line 2: Expecting value"),
    ("[]", "'file' has the wrong shape: line 2 is a list, expected an object"),
    ('{"text": "b"}', "'file' has the wrong shape: line 2 has no 'id'"),
    ('{"id": true, "text": "b"}', "'file' has the wrong shape: line 2 has no 'id'"),
    ('{"id": 2}', "'file' has the wrong shape: line 2 has no text under 'text'"),
    ('{"id": 2, "text": "b", "date": "soon"}',
     "'file' has the wrong shape: line 2 has the date 'soon', expected YYYY-MM-DD"),
    ('{"id": 2, "text": "b", "date": 20260302}',
     "'file' has the wrong shape: line 2 has the date '20260302', expected YYYY-MM-DD"),
])
def test_one_bad_line_fails_the_memory_and_is_named(line, expected, file):
    """A memory with a hole in it would forget without saying so; also when nothing is asked."""
    path = file('{"id": 1, "text": "word"}\n' + line + "\n")
    assert reason("memory", path).startswith(expected)
    with pytest.raises(SourceError):
        read_memory(path, "")


def test_without_fts5_the_memory_says_so(notes, monkeypatch):
    """A SQLite without FTS5, or a Python without SQLite, is a reason and not a crash."""
    class Bare:
        def execute(self, statement, *_):
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self):
            pass

    monkeypatch.setattr(sqlite3, "connect", lambda path: Bare())
    assert reason("memory", notes) == (
        "the SQLite of this Python was built without FTS5, which the memory is searched with")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert reason("memory", notes) == "this Python was built without sqlite3, which the memory is searched with"


# ---- the web


def test_the_shipped_searches():
    """Each page once, in the order of the file, with the search that found it first."""
    assert [(item["query"], item["title"]) for item in read_web(DATA / "web.json")] == [
        ("daylight saving Europe 2026", "Clocks go forward on 29 March 2026"),
        ("daylight saving Europe 2026", "Summer time: a proposal, again"),
        ("tide gauge data outage", "Planned maintenance: Zeebrugge gauge, 3 March")]


@pytest.mark.parametrize("content, expected", [
    ("{}", """'file' has the wrong shape: expected [{"query": ..., "results": [...]}], and this is an object"""),
    ('[{"results": []}]', "'file' has the wrong shape: [0] has no text under 'query'"),
    ('[{"query": "q"}]', "'file' has the wrong shape: [0] has no list under 'results'"),
    ('[{"query": "q", "results": [7]}]', "'file' has the wrong shape: [0].results[0] is a number, expected an object"),
    ('[{"query": "q", "results": [{"title": "t"}]}]',
     "'file' has the wrong shape: [0].results[0] has no text under 'url'"),
    ('[{"query": "q", "results": [{"url": "u"}]}]',
     "'file' has the wrong shape: [0].results[0] has no text under 'title'"),
])
def test_searches_of_another_shape_say_what_was_expected(content, expected, file):
    """The place that does not fit is named."""
    assert reason("web", file(content)) == expected


def test_a_result_without_a_snippet_is_a_result(file):
    """A snippet may be missing; no results is []."""
    assert read_web(file('[{"query": "q", "results": [{"title": "t", "url": "u"}]}]')) == [
        {"query": "q", "title": "t", "url": "u", "snippet": ""}]
    assert read_web(file('[{"query": "q", "results": []}]')) == []


# ---- the outbox


def test_the_outbox_is_made_and_a_file_replaced(tmp_path):
    """The folder comes into being; a second file of the name takes the place of the first; nothing else is left."""
    path = write_outbox(tmp_path / "a" / "b", "x.md", "one\n")
    assert path == tmp_path / "a" / "b" / "x.md"
    write_outbox(tmp_path / "a" / "b", "x.md", "två\n")
    assert path.read_bytes() == "två\n".encode()
    assert [file.name for file in path.parent.iterdir()] == ["x.md"]


@pytest.mark.parametrize("name", ["", ".", "..", "../x.md", "a/x.md", "/etc/x.md", "a\\x.md", "..\\x.md", "C:x.md",
                                  "x\0.md", "x\n.md"])
def test_a_name_with_a_path_in_it_is_refused(name, tmp_path):
    """A file goes into the outbox and nowhere else."""
    outbox = tmp_path / "outbox"
    with pytest.raises(ValueError, match="is no plain file name: a file goes into the outbox, and nowhere else"):
        write_outbox(outbox, name, "x")
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_replaced_and_not_followed(tmp_path):
    """A link that lies in the outbox under the file's name cannot lead the writing outside."""
    outside, outbox = tmp_path / "outside.md", tmp_path / "outbox"
    outside.write_text("mine")
    outbox.mkdir()
    (outbox / "x.md").symlink_to(outside)
    write_outbox(outbox, "x.md", "new")
    assert outside.read_text() == "mine"
    assert (outbox / "x.md").read_text() == "new" and not (outbox / "x.md").is_symlink()


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path, monkeypatch):
    """Until the new file is complete the old one stands; what was half written is taken away."""
    path = write_outbox(tmp_path, "x.md", "old")

    def full(source, target):
        assert Path(target).read_text() == "old"
        assert Path(source).parent == tmp_path and Path(source).read_text() == "new"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutboxError) as caught:
        write_outbox(tmp_path, "x.md", "new")
    assert str(caught.value) == f"cannot write 'x.md' into the outbox {str(tmp_path)!r}: No space left on device"
    assert [file.name for file in tmp_path.iterdir()] == ["x.md"] and path.read_text() == "old"


def test_an_outbox_that_is_a_file_says_so(tmp_path):
    """The folder's name is taken by a file: an OutboxError, which is an OSError, with one sentence."""
    (tmp_path / "outbox").write_text("")
    with pytest.raises(OSError, match="cannot write 'x.md' into the outbox .*: File exists"):
        write_outbox(tmp_path / "outbox", "x.md", "x")


# ---- the recorded times


def test_the_recorded_times_agree_with_themselves():
    """The assumed split of the loop's time adds up to what was measured: the end of each tool call, and the total."""
    brief = json.loads((DATA / "measured" / "brief.json").read_text(encoding="utf-8"))
    done, now = [], 0
    for name, ms in brief["calls"]:
        now += ms
        done += [[name, now]] if name != "model" else []
    assert done == brief["done"] == [["github_read", 5701], ["github_read", 6078], ["list_events", 6740]]
    assert now == brief["total"] == 15297
    gather = json.loads((DATA / "measured" / "gather.json").read_text(encoding="utf-8"))
    assert gather["nodes"] == {"scan_github": 1506, "scan_web": 1887, "scan_calendar": 2, "scan_memory": 1,
                               "synthesize": 11279}
    assert gather["runs"] == brief["runs"] == 1
    assert gather["assumed"] is None and "how the time splits" in brief["assumed"]
