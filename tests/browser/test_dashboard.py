"""The gather page, served by voila and used by a person with two tabs."""

from __future__ import annotations

import re
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, free_port, serving


class Site:
    """The page's address, the folder it is served from, and its tabs."""

    def __init__(self, address: str, folder: Path, context: Any) -> None:
        self.address, self.folder, self.context = address, folder, context

    def tab(self) -> Any:
        """A new tab with the page, ready to be used."""
        page = self.context.new_page()
        page.goto(self.address)
        page.get_by_role("button", name="Run", exact=True).wait_for(timeout=60_000)
        return page

    @property
    def files(self) -> list[str]:
        """What stands in the folder now, by name."""
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def site(context: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The page as `make dashboard` serves it, from a folder of its own."""
    pytest.importorskip("voila", reason="no voila: pip install -e '.[dashboard]' brings it")
    folder, home = tmp_path_factory.mktemp("dashboard"), tmp_path_factory.mktemp("home")
    for name in ("gather.ipynb", "voila.json"):
        shutil.copy(ROOT / "dashboard" / name, folder)
    port = free_port()
    command = [sys.executable, "-m", "voila", "gather.ipynb", "--no-browser", f"--port={port}",
               "--Voila.port_retries=0"]
    with serving(command, port, "/voila/static/voila.js", home, folder) as address:
        yield Site(address, folder, context)


def run(page: Any) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def test_the_page_is_served_to_this_machine_alone(site):
    """On 127.0.0.1: at another address of this machine nobody answers."""
    port = int(site.address.rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), 5).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way_out:
        way_out.connect(("192.0.2.1", 9))  # sends nothing; it tells which of our addresses would be used
        mine = way_out.getsockname()[0]
    if mine.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError):
        socket.create_connection((mine, port), 5)


def test_two_tabs(site, picture):
    """Picture, button, cards, digest; and what is run in one tab is neither seen nor overwritten by the other."""
    ours, theirs = site.tab(), site.tab()
    status, cards = ours.locator(".mg-panel .status"), ours.locator(".mg-panel .card:visible")
    assert status.inner_text().startswith("○ not begun")
    for name in ("scan_github", "scan_web", "scan_calendar", "scan_memory", "synthesize", "draft_digest"):
        assert ours.locator(".mg-panel svg").get_by_text(name, exact=True).is_visible()
    picture(ours, "dashboard-before")
    run(ours)
    cards.filter(has_text=re.compile("synthesize.*● running")).wait_for()
    picture(ours, "dashboard-running")
    assert ours.get_by_role("button", name="Run", exact=True).is_disabled()
    assert theirs.locator(".mg-panel .status").inner_text().startswith("○ not begun")
    ours.locator(".mg-sheet h1").filter(has_text="Monday, 2 March 2026").wait_for()
    assert re.fullmatch(r"✓ done · 1\d\.\d+ s", status.inner_text())
    picture(ours, "dashboard-done")
    assert ours.locator(".mg-sheet h2").all_inner_texts() == ["Calendar", "GitHub", "Web", "Memory"]
    assert ours.locator(".mg-sheet code").last.inner_text() == "outbox/dashboard-1/gather-2026-03-02.md"
    first = site.folder / "outbox" / "dashboard-1" / "gather-2026-03-02.md"
    before = first.stat().st_mtime_ns, first.read_bytes()

    theirs.get_by_label("Clock").select_option("20 times as fast")
    run(theirs)
    theirs.locator(".mg-sheet h1").wait_for()
    assert theirs.locator(".mg-sheet code").last.inner_text() == "outbox/dashboard-2/gather-2026-03-02.md"
    assert (first.stat().st_mtime_ns, first.read_bytes()) == before
    assert site.files == ["gather.ipynb", "outbox/dashboard-1/gather-2026-03-02.md",
                          "outbox/dashboard-2/gather-2026-03-02.md", "voila.json"]

    run(theirs)  # once more in this tab: its picture begins anew, and its digest is replaced
    theirs.locator(".mg-panel .status").filter(has_text="running").wait_for()
    assert theirs.locator(".mg-sheet").count() == 0
    theirs.locator(".mg-sheet h1").wait_for()
    assert len(site.files) == 4
    assert site.context.left == []
