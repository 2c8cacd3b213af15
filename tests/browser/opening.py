"""What the browser tests of lessons without time steps share: opening one by its link, and digits as a page shows them."""

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from engine.notation import format_number
from tests.browsing import LiveServer, settle
from tests.stage.serving import Stage, frames

Opened = TypeVar("Opened")
Visit = Callable[..., tuple[Opened, list[str]]]


def lesson_opener(lesson: str, made: Callable[[Page], Opened], ready: Callable[[Opened], Locator]) -> Any:
    """A fixture that opens a lesson: ``open_lesson(options, **link)`` gives what is ``made`` of its page, and the frames sent.

    ``options`` are those of the browser's context; the lesson stands when ``ready`` is there.
    """

    @pytest.fixture
    def open_lesson(server: LiveServer, new_context: Callable[..., Any]) -> Visit[Opened]:
        def visit(options: dict[str, Any] | None = None, **link: str) -> tuple[Opened, list[str]]:
            page = new_context(**(options or {})).new_page()
            seen = frames(page)
            page.goto(f"{server.url}/{lesson}?{urlencode(link)}")
            settle(page)
            opened = made(page)
            ready(opened).wait_for()
            settle(page)
            return opened, seen

        return visit

    return open_lesson


def shown(value: float, digits: int = 3) -> str:
    """A number of a trace as the stage shows it: it was sent in float32."""
    return format_number(float(np.float32(value)), digits=digits, minus="−")


def plugged(stage: Stage | Locator) -> str:
    """The formula with its numbers, without blanks."""
    find = stage.find if isinstance(stage, Stage) else stage.locator
    return re.sub(r"\s", "", find("[data-role=plugged]").inner_text())
