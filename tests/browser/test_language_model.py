"""Lesson 9 in a real browser: a training seen from its first step to its end, by two tabs and after a refresh."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from engine.metrics import bits_per_token, perplexity
from engine.notation import format_number
from engine.training.files import RunFolder
from engine.training.runlog import RunLog
from pages.ui.words import words
from tests.browsing import LiveServer, settle, watch
from tests.lessons import query
from tests.stage.serving import frames

pytestmark = pytest.mark.browser

SMALL = {
    "members": "gru.16.1;lstm.8.1",
    "rows": "8",
    "piece": "16",
    "corpus": "python_topics",
    "text": "A short <b>text</b> 你好",
}
LONG = 90_000  # ms: a busy machine may take them to load torch for the first time


class TrainingPage:
    """An open page of the lesson."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.frames = frames(page)
        page.set_default_timeout(LONG)
        page.goto(address)
        self.stage.wait_for()

    @property
    def stage(self) -> Locator:
        return self.page.locator(".stage.training")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=words(f"training.{name}"), exact=True)

    def step(self) -> int:
        return int(self.stage.get_attribute("data-step") or -1)

    def run(self) -> str:
        return query(self.page.url).get("run", "")

    def says(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=LONG)

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + LONG / 1000
        while not true():
            assert time.monotonic() < end, "it did not come to be"
            self.page.wait_for_timeout(50)

    def number(self, name: str) -> str:
        return self.page.locator(f'[data-number="{name}"]').inner_text()


def log_of(run: str) -> RunLog:
    log = RunLog(RunFolder(Path(os.environ["UNROLLED_RUNS"]) / run).log, 2)
    log.update()
    return log


@pytest.fixture(scope="module")
def visit(server: LiveServer, chromium: Browser) -> Iterator[Callable[..., TrainingPage]]:
    faults: list[str] = []
    contexts = []

    def opened(options: dict[str, Any] | None = None, **link: str) -> TrainingPage:
        context = chromium.new_context(**({"viewport": {"width": 1440, "height": 900}} | (options or {})))
        watch(context, faults)
        contexts.append(context)
        return TrainingPage(context.new_page(), f"{server.url}/language_model?{urlencode(link)}")

    yield opened
    for context in contexts:
        context.close()
    assert not faults, "errors in the browser:\n" + "\n".join(faults[:5])


def test_a_training_from_its_first_step_on_two_tabs_and_after_a_refresh(visit, server):
    first = visit(**SMALL, total="50000")
    first.button("train").click()
    first.until(
        lambda: first.run() != "" and 0 < first.step() < 8000 and not first.page.locator(".training-transport").is_visible()
    )
    begun = first.step()
    drawn = first.page.locator(".training-curves .trained").first
    before = drawn.get_attribute("d")
    first.until(lambda: first.step() > begun + 5)
    assert drawn.get_attribute("d") != before
    first.button("pause").click()
    first.says(words("training.state.paused"))
    first.until(lambda: first.step() == log_of(first.run()).step)
    at = first.step()

    # The digits on the page are those of the log.
    log = log_of(first.run())
    for place in range(2):
        curve, held = log.curve(place), log.held[place][-1]
        assert first.number(f"{place}-train") == format_number(perplexity(float(curve.losses[-1])), 2)
        assert first.number(f"{place}-held") == format_number(perplexity(held), 2)
        assert first.number(f"{place}-bits") == format_number(bits_per_token(held), 2)
        norm = float(curve.norms[-1])
        assert first.number(f"{place}-norm") == f"{format_number(norm, 2)} → {format_number(min(norm, 1.0), 2)}"

    second = TrainingPage(first.page.context.new_page(), first.page.url)
    second.until(lambda: second.step() == at)
    first.button("step").click()
    for tab in (first, second):
        tab.until(lambda tab=tab: tab.step() == at + 1)
    first.page.reload()
    first.stage.wait_for()
    first.until(lambda: first.step() == at + 1)
    first.button("resume").click()
    second.until(lambda: second.step() > at + 3)

    # It goes on while one is elsewhere; the way back leads to it.
    first.page.get_by_role("link", name=re.compile("^8 ")).click()
    first.page.locator(".stage .diagram").first.wait_for()
    first.page.get_by_role("link", name=re.compile("^9 ")).click()
    first.stage.wait_for()
    first.until(lambda: first.step() > at + 3)
    first.button("stop").click()
    first.says(words("training.state.stopped"))
    second.says(words("training.state.stopped"))
    assert first.page.locator("[data-testid=stException]").count() == 0
    expect(first.button("anew")).to_be_visible()


def test_bad_input_and_the_way_out_of_it(visit):
    page = visit(corpus="own", text="Fifty characters, or some more than that, are few.", members="gru.8.1")
    expect(page.button("train")).to_be_disabled()
    page.button("fit").click()
    expect(page.button("train")).to_be_enabled()
    rate = page.page.get_by_label(words("rate"))
    rate.fill("-1")
    rate.press("Enter")
    page.says(words("training.rate_negative"))
    expect(page.button("train")).to_be_disabled()


def test_a_recorded_training_is_played_without_a_message(visit):
    page = visit(lang="en")
    settle(page.page, timeout=LONG / 1000)
    before = len(page.frames)
    assert before > 0
    page.page.locator(".training-transport input").fill("0")
    page.until(lambda: page.step() == 0)
    early = page.page.locator(".training-added").first.inner_text()
    page.page.get_by_role("button", name=words("stage.play")).click()
    page.until(lambda: page.step() > 0)
    assert page.page.locator(".training-added").first.inner_text() != early
    assert len(page.frames) == before


def test_a_phone_in_the_dark_in_chinese(visit):
    page = visit({"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}, lang="zh")
    settle(page.page, timeout=LONG / 1000)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.stage.get_attribute("data-theme") == "dark"
    titles = page.page.locator(".training-numbers thead th").all_inner_texts()
    assert all(re.search("[一-鿿]", title) for title in titles)
