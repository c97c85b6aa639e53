"""A browser and a JupyterLab of our own: one of each for all tests in this folder, both on this machine alone.

Without Playwright or without a Chromium these tests are skipped, and say why.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"]
SETTINGS = {  # what a test needs of JupyterLab: every cell in the page, and no question to a server elsewhere
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
}
HERE = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:", "about:")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A Chromium, driven by Playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install -e '.[test]' brings it")
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    program = next(filter(None, found), None)
    with sync_api.sync_playwright() as playwright:
        if program is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no Chromium: install the system's chromium, or run `playwright install chromium`")
        chromium = playwright.chromium.launch(executable_path=program, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def context(browser: Any) -> Iterator[Any]:
    """A browser window; `.left` holds each address outside this machine that a page in it went to, or tried to."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    context.left = []

    def note(request: Any) -> None:
        if not request.url.startswith(HERE) and request.failure != "csp":  # what the page's own policy held back
            context.left.append(request.url)

    context.on("requestfinished", note)
    context.on("requestfailed", note)
    yield context
    context.close()


@contextmanager
def serving(command: list[str], port: int, ready: str, folder: Path, cwd: Path) -> Iterator[str]:
    """The address of a server, which is started, waited for until it answers at `ready`, and ended."""
    env = {name: value for name, value in os.environ.items() if name != "MINIGRAPH_HEADLESS"}
    for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
                 "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"):
        env[name] = str(folder / name.lower())
    log = folder / "log"
    with open(log, "wb") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file, env=env, cwd=cwd)
    try:
        _wait_for(f"http://127.0.0.1:{port}{ready}", server, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer:\n{log.read_text(errors='replace')[-3000:]}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Lab:
    """A JupyterLab in a browser tab, the folder it shows, and one kernel for all notebooks that are opened in it."""

    def __init__(self, page: Any, address: str, folder: Path) -> None:
        self.page, self.folder, self.opened = page, folder, 0
        self.page.goto(f"{address}/lab?reset")
        self.page.wait_for_function("() => window.jupyterapp?.started.then(() => true)", timeout=60_000)
        self.page.evaluate("() => jupyterapp.restored.then(() => jupyterapp.commands.execute("
                           "'application:toggle-left-area'))")

    def open(self, *cells: str, dark: bool = False) -> Notebook:
        """A new notebook of these code cells, opened instead of the one before, with the kernel ready."""
        self.opened += 1
        name = f"nb{self.opened}.ipynb"
        (self.folder / name).write_text(json.dumps(_notebook(cells)), encoding="utf-8")
        self.page.evaluate(f"""async ([path, theme]) => {{
            const before = {PANEL}, left = before?.context?.sessionContext?.session?.kernel, kernel = left?.id;
            if (left?.status === 'busy') await left.interrupt();  // a test that failed may have left a cell running
            before?.dispose();  // first, for of two notebooks with one kernel only the older one gets its widgets
            const panel = await jupyterapp.commands.execute(
                'docmanager:open', kernel ? {{path, kernel: {{id: kernel}}}} : {{path}});
            await panel.context.sessionContext.ready;
            await jupyterapp.commands.execute('apputils:change-theme', {{theme}});
        }}""", [name, f"JupyterLab {'Dark' if dark else 'Light'}"])
        notebook = Notebook(self.page)
        self.page.wait_for_function(f"path => {PANEL}?.context?.path === path", arg=name)
        notebook.wait_for_kernel()
        return notebook


def _notebook(cells: tuple[str, ...]) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": KERNEL}, "cells": [
        {"cell_type": "code", "id": f"c{number}", "metadata": {}, "source": source, "outputs": [],
         "execution_count": None} for number, source in enumerate(cells)]}


PANEL = "window.jupyterapp?.shell?.currentWidget"


class Notebook:
    """An open notebook: `.page` is Playwright's, `.outputs` where to look for what cells showed."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.outputs = page.locator(".jp-OutputArea-output")

    def wait_for_kernel(self) -> None:
        self.page.wait_for_function(
            f"() => {{ const s = {PANEL}?.context?.sessionContext, k = s?.session?.kernel;"
            " return s?.isReady && k?.connectionStatus === 'connected' && k?.status === 'idle' }", timeout=60_000)

    def start(self) -> None:
        """Runs all cells, and does not wait."""
        self.page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells') }")

    def run(self) -> None:
        """Runs all cells, and waits until each has run."""
        self.start()
        self.page.wait_for_function(
            f"() => [...{PANEL}.content.model.cells].every(c => c.type !== 'code' || c.executionCount)")
        self.wait_for_kernel()

    @property
    def busy(self) -> bool:
        """Is a cell running?"""
        return bool(self.page.evaluate(f"() => {PANEL}.content.widgets.some(c => c.promptNode?.innerText === '[*]:')"))

    def interrupt(self) -> None:
        """What the stop button does."""
        self.page.evaluate(f"() => {{ {PANEL}.context.sessionContext.session.kernel.interrupt() }}")

    def saved(self, cell: int) -> list[dict[str, Any]]:
        """The outputs of a cell, as the notebook would be saved now."""
        found: list[dict[str, Any]] = self.page.evaluate(
            f"cell => {PANEL}.content.model.cells.get(cell).outputs.toJSON()", cell)
        return found

    def ask(self, code: str, *, beside: bool = False) -> str:
        """What the kernel prints when it runs this code, outside any cell; `beside` one that is running, in a subshell.

        Without subshells, as in ipykernel 6, nothing can be asked beside a cell: the test is skipped.
        """
        said = self.page.evaluate(f"""async ([code, beside]) => {{
            const kernel = {PANEL}.context.sessionContext.session.kernel, side = kernel.clone();
            if (beside && !kernel.supportsSubshells) return null;
            if (beside) side.subshellId = (await kernel.requestCreateSubshell({{}}).done).content.subshell_id;
            const future = side.requestExecute({{code, store_history: false}});
            let text = '';
            future.onIOPub = m => {{
                if (m.header.msg_type === 'stream') text += m.content.text;
                if (m.header.msg_type === 'error') text += m.content.ename + ': ' + m.content.evalue;
            }};
            const late = new Promise((_, reject) => setTimeout(() => reject(new Error('no answer')), 20000));
            await Promise.race([future.done, late]);
            if (beside) await kernel.requestDeleteSubshell({{subshell_id: side.subshellId}}).done;
            side.subshellId = null;
            side.dispose();
            return text;
        }}""", [code, beside])
        if said is None:
            pytest.skip("this kernel has no subshells, so that nothing can be asked while a cell runs")
        return str(said).strip()


@pytest.fixture(scope="package")
def lab(context: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab on loopback, with settings, home and runtime of its own."""
    pytest.importorskip("jupyterlab")
    pytest.importorskip("ipywidgets")
    folder = tmp_path_factory.mktemp("lab")
    shown = folder / "notebooks"
    shown.mkdir()
    for name, setting in SETTINGS.items():
        path = folder / "jupyterlab_settings_dir" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.token=",
               "--ServerApp.password=", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}",
               "--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True", str(shown)]
    with serving(command, port, "/api", folder, ROOT) as address:
        yield Lab(context.new_page(), address, shown)


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[Any, str], Path]:
    """Saves a picture of a page, of a notebook from one of its cells on; MINIGRAPH_PICTURES names a folder for them."""
    folder = Path(os.environ.get("MINIGRAPH_PICTURES") or tmp_path)

    def take(page: Any, name: str, cell: int = -1) -> Path:
        path = folder / f"{name}.png"
        page.evaluate("cell => [...document.querySelectorAll('.jp-CodeCell')].at(cell)?.scrollIntoView()", cell)
        page.wait_for_timeout(100)
        page.screenshot(path=str(path))
        assert path.stat().st_size > 5_000
        return path

    return take
