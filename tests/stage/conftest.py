"""The stage's modules one by one, imported as they stand into Chromium: no build step, no node."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pages.ui.stage import FOLDER

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def run(chromium) -> Iterator[Run]:
    """``run("numbers", "(m, x) => m.clamp(x, 0, 1)", 3)``: call a function with a module and one argument."""
    page = chromium.new_page()

    def serve(route):
        name = route.request.url.rsplit("/", 1)[-1]
        if name == "":
            route.fulfill(content_type="text/html", body="<!doctype html><title>modules</title>")
        else:
            route.fulfill(content_type="text/javascript; charset=utf-8", body=(FOLDER / name).read_text(encoding="utf-8"))

    page.route("http://stage.test/**", serve)
    page.goto("http://stage.test/")

    def called(module: str, function: str, argument: Any = None) -> Any:
        return page.evaluate(
            f"async (argument) => {{ const m = await import('/{module}.js'); return ({function})(m, argument); }}", argument
        )

    yield called
    page.close()
