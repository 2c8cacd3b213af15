"""Shared fixtures. Server and browser start when the first test asks for them, so unit tests alone stay fast."""

import os

# One thread each, before torch is imported anywhere: two threads on a busy machine wait for each other.
for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"

import atexit  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# Live runs of the tests, those of the served app among them, have a folder of their own.
if "UNROLLED_RUNS" not in os.environ:
    os.environ["UNROLLED_RUNS"] = tempfile.mkdtemp(prefix="unrolled-tests-")
    atexit.register(shutil.rmtree, os.environ["UNROLLED_RUNS"], ignore_errors=True)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from tests.browsing import LiveServer

# No deadlines (a shared machine is slow at times); in CI the same examples every time.
hypothesis.settings.register_profile("unrolled", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("unrolled")

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands under tests/browser and tests/load, and run it after everything else."""
    for item in items:
        for folder in ("browser", "load"):
            if ROOT / "tests" / folder in item.path.parents:
                item.add_marker(folder)
    items.sort(key=lambda item: any(item.get_closest_marker(name) for name in ("browser", "load")))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator["LiveServer"]:
    """The app served as learners get it: ``server.url``, ``server.log_text()``. Its log must end free of tracebacks."""
    from tests.browsing import LiveServer

    live = LiveServer(tmp_path_factory.mktemp("server") / "server.log")
    try:
        yield live
        faults = live.faults()
    finally:
        live.stop()
    assert not faults, "the server's log holds tracebacks:\n" + "\n".join(faults[:3])


@pytest.fixture(scope="session")
def chromium() -> Iterator["Browser"]:
    """One Chromium for the whole session; each test opens its own context in it."""
    from playwright.sync_api import sync_playwright

    from tests.browsing import FLAGS, find_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_context(chromium: "Browser") -> Iterator[Callable[..., "BrowserContext"]]:
    """Open a browser context (a visitor of one's own): ``new_context(viewport=..., color_scheme="dark")``.

    When the test ends, script errors and error messages of every page opened in it fail the test.
    """
    from tests.browsing import watch

    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def make(**options: Any) -> "BrowserContext":
        context = chromium.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        watch(context, faults)
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()
    assert not faults, "errors in the browser:\n" + "\n".join(faults[:5])


@pytest.fixture
def open_page(server: "LiveServer", new_context: Callable[..., "BrowserContext"]) -> Callable[..., "Page"]:
    """Open a page of the served app and wait until it rests: ``open_page("lstm?text=hello", color_scheme="dark")``."""
    from tests.browsing import settle

    def opened(path: str = "", **options: Any) -> "Page":
        page = new_context(**options).new_page()
        page.goto(f"{server.url}/{path.lstrip('/')}")
        settle(page)
        return page

    return opened
