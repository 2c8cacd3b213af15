"""The browser and the served app of the browser tests.

``python -m tests.browsing`` makes sure that a Chromium and a Chinese font are there; `make test` calls it. The fixtures
that use this stand in ``tests/conftest.py``.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
STAMP = Path(sys.prefix) / ".browser-ready"
# What the browser's own window would draw with pages of its own, for each visitor again: a second of computing that no test
# needs. The last list given counts, so Playwright's own stands in it too.
WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxAimPopup", "PreloadTopChromeWebUI", "WebUITabStrip"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable"),
    *("HttpsUpgrades", "LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding"),
    *("PreconnectToSearch", "ThirdPartyStoragePartitioning"),
)
FLAGS = [
    f"--disable-features={','.join(WITHOUT)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_LIMIT = 90.0  # seconds until the served app must answer


def candidates() -> Iterator[str]:
    """Where a Chromium may be: named by $CHROMIUM (then nowhere else), on the PATH, Playwright's own."""
    named = os.environ.get("CHROMIUM")
    if named:
        yield named
        return
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        found = shutil.which(name)
        if found:
            yield found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    if Path(own).exists():
        yield own


def find_chromium() -> str | None:
    """The Chromium to use: what ``prepare`` has found to start, or else the first there is; None where there is none."""
    if not os.environ.get("CHROMIUM") and STAMP.exists():
        known = STAMP.read_text(encoding="utf-8")
        if Path(known).exists():
            return known
    return next(candidates(), None)


def starts(executable: str) -> bool:
    """Whether this Chromium really opens a page (it may lack system libraries, or only point to a store)."""
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
            browser.new_page().close()
            browser.close()
    except Error as error:
        print(f"{executable} does not start: {str(error).splitlines()[0]}")
        return False
    return True


def _run(*command: str) -> bool:
    """Run one set-up command; False, with its last words, when it is missing or fails."""
    print("$", *command, flush=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"  {error}")
        return False
    if done.returncode:
        print("  " + "\n  ".join((done.stdout + done.stderr).strip().splitlines()[-3:]))
    return done.returncode == 0


def install_packages(apt: tuple[str, ...], dnf: tuple[str, ...], brew: tuple[str, ...]) -> bool:
    """Install with the system's package manager, as root or through a password-free sudo."""
    sudo = () if os.name != "posix" or os.geteuid() == 0 else ("sudo", "-n")
    if shutil.which("apt-get"):
        _run(*sudo, "apt-get", "update", "-q")
        return _run(*sudo, "apt-get", "install", "-q", "-y", "--no-install-recommends", *apt)
    if shutil.which("dnf"):
        return _run(*sudo, "dnf", "install", "-y", *dnf)
    if shutil.which("brew"):
        return _run("brew", "install", *brew)
    return False


def has_chinese_font() -> bool:
    """Whether fontconfig knows a font with Chinese characters."""
    if not shutil.which("fc-list"):
        return False
    return bool(subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=False).stdout.strip())


def prepare() -> str:
    """Install what is missing, once; returns the Chromium's path. SystemExit names the cure if none can be had."""
    known = find_chromium()
    if known and STAMP.exists() and STAMP.read_text(encoding="utf-8") == known:
        return known
    cures = (
        lambda: _run(sys.executable, "-m", "playwright", "install", "chromium"),
        lambda: install_packages(("chromium",), ("chromium",), ("--cask", "chromium")),
    )
    chromium = next(filter(starts, candidates()), None)
    for cure in cures:
        if chromium is None and not os.environ.get("CHROMIUM"):
            cure()
            chromium = next(filter(starts, candidates()), None)
    if chromium is None:
        raise SystemExit("The browser tests need Chromium: install it, or name one with CHROMIUM=/path/to/chromium.")
    if not has_chinese_font():  # without one, Chinese is drawn as boxes; every test still holds
        install_packages(("fontconfig", "fonts-noto-cjk"), ("google-noto-sans-cjk-fonts",), ("font-noto-sans-cjk",))
    STAMP.write_text(chromium, encoding="utf-8")
    return chromium


class LiveServer:
    """The app as it is served to learners (``uvicorn app:app``), on a free port, with its log kept in a file."""

    def __init__(self, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        environment = os.environ | {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
        command = [sys.executable, "-m", "uvicorn", "app:app", "--host", "127.0.0.1", "--port", str(self.port)]
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2):
                return
            time.sleep(0.1)
        raise RuntimeError(f"the app did not come up:\n{self.log_text()[-4000:]}")

    def log_text(self) -> str:
        """Everything the server has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def faults(self) -> list[str]:
        """Tracebacks in the log, each with the lines that follow it."""
        return re.findall(r"Traceback \(most recent call last\)(?:.*\n){1,40}", self.log_text())

    def stop(self) -> None:
        """End the server; kill it if it does not end by itself."""
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def served(log: Path | None = None) -> Iterator[LiveServer]:
    """A served app for the length of a ``with``; for programs that are not tests (bench)."""
    if log is None:
        with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "server.log") as server:
            yield server
            return
    server = LiveServer(log)
    try:
        yield server
    finally:
        server.stop()


def settle(page: Page, timeout: float = 30.0, quiet: float = 0.4) -> None:
    """Wait until Streamlit is connected, its script has run, and the page has not changed for `quiet` seconds."""
    page.wait_for_selector("[data-testid=stApp]", timeout=timeout * 1000)
    page.wait_for_function(
        """() => {
            const app = document.querySelector('[data-testid=stApp]');
            return app && app.getAttribute('data-test-script-state') !== 'running'
                && app.getAttribute('data-test-connection-state') !== 'CONNECTING';
        }""",
        timeout=timeout * 1000,
    )
    page.evaluate(
        """([quiet, limit]) => new Promise(done => {
            const start = performance.now();
            let last = start;
            const watch = new MutationObserver(() => { last = performance.now(); });
            watch.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
            const tick = () => {
                const now = performance.now();
                const app = document.querySelector('[data-testid=stApp]');
                const busy = app && app.getAttribute('data-test-script-state') === 'running';
                if ((!busy && now - last > quiet) || now - start > limit) { watch.disconnect(); done(); }
                else setTimeout(tick, 30);
            };
            tick();
        })""",
        [quiet * 1000, 10_000],
    )


def watch(context: BrowserContext, faults: list[str]) -> None:
    """Write down the script errors and error messages of every page that is opened in a browser context."""

    def heard(page: Page, message: Any) -> None:
        # Streamlit finds its base path by trying addresses that may answer 404.
        if message.type == "error" and "Failed to load resource" not in message.text:
            faults.append(f"{page.url}: {message.text}")

    def listen(page: Page) -> None:
        page.on("pageerror", lambda error: faults.append(f"{page.url}: {error}"))
        page.on("console", lambda message: heard(page, message))

    context.on("page", listen)


if __name__ == "__main__":
    prepare()
