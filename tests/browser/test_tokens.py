"""Lesson 2 in a real browser: what the stage shows is what the engine cut, and it moves without the server."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from engine.text.cutting import batches, cut
from engine.text.display import visible
from pages.ui import cutting
from pages.ui.config import SAMPLE, from_query
from pages.ui.cutting import TokensConfig
from tests.browsing import LiveServer, settle
from tests.lessons import STRANGE, query
from tests.stage.serving import frames

Open = Callable[..., Page]


def at(page: Page) -> TokensConfig:
    """The config of the address, which the stage writes a moment after it has moved."""
    page.wait_for_timeout(400)
    return from_query(TokensConfig, query(page.url))[0]


def shown_rows(page: Page) -> list[list[list[str]]]:
    """The rows on the stage: X and Y of each."""
    found: list[list[list[str]]] = page.locator(".batch-row").evaluate_all(
        "rows => rows.map(row => ['.tok.x', '.tok.y'].map(one => [...row.querySelectorAll(one)].map(e => e.textContent)))"
    )
    return found


def holds(page: Page) -> None:
    """Assert that the minibatch on the stage is the engine's for the address."""
    config = at(page)
    found = cut(config.text, config.level, min_freq=config.min_freq, pieces=config.pieces)
    made = batches(found.ids, config.way, cutting.plan(config, found, config.offset), config.seed)
    starts = made.starts[config.batch].tolist()
    tokens = [visible(token) for token in found.tokens]
    expected = [[tokens[start + shift : start + shift + config.steps] for shift in (0, 1)] for start in starts]
    assert shown_rows(page) == expected
    coloured = page.locator(".page .tok.now").evaluate_all("all => all.map(e => Number(e.dataset.at))")
    assert coloured == sorted(place for start in starts for place in range(start, start + config.steps))
    before = made.starts[config.batch - 1].tolist() if config.batch else None
    carried = [before is not None and before[row] + config.steps == start for row, start in enumerate(starts)]
    assert page.locator(".batch-row").evaluate_all("all => all.map(e => e.dataset.carried === 'true')") == carried


def test_minibatches_are_the_engines_and_moving_sends_nothing(
    open_page: Open, new_context: Callable[..., Any], server: LiveServer
):
    page = new_context().new_page()
    seen = frames(page)
    page.goto(f"{server.url}/tokens?view=batch")
    settle(page)
    holds(page)
    page.wait_for_timeout(500)
    assert seen
    seen.clear()
    page.locator(".page").focus()
    page.keyboard.press("ArrowRight")
    holds(page)
    assert at(page).batch == 1
    page.keyboard.press("ArrowDown")
    page.locator("input.offset").fill("3")
    holds(page)
    assert at(page).offset == 3
    page.get_by_role("button", name="Random sampling").click()
    holds(page)
    page.locator("select.speed").select_option("4")
    page.locator("button.play").click()
    page.locator(".position").get_by_text("5 / 5").wait_for()
    holds(page)
    page.locator('.pipe[data-view="number"]').click()
    page.locator(".page .tok").nth(7).click()
    found = cut(SAMPLE, "character")
    assert page.locator(".page .tok").all_inner_texts() == [str(index) for index in found.ids]
    assert page.locator("tr[aria-selected] .id").inner_text() == str(found.ids[7])
    page.locator('tr[data-id="3"]').click()
    assert found.ids[at(page).step] == 3
    assert seen == []
    address = page.url
    page.reload()
    settle(page)
    assert page.url == address
    assert page.locator(".page .tok.current").get_attribute("data-at") == str(at(page).step)


def test_every_token_keeps_its_place_and_its_text(server: LiveServer, open_page: Open):
    page = open_page("tokens")
    for kind in ("repeated", "digits", "markup", "emoji", "Chinese", "one character", "right to left"):
        text = STRANGE[kind]
        page.goto(f"{server.url}/tokens?{urlencode({'text': text, 'level': 'word'})}")
        expected = [visible(token) for token in cut(text, "word").tokens]
        page.locator(".page .tok").nth(len(expected) - 1).wait_for()
        assert page.locator(".page .tok").evaluate_all("all => all.map(e => e.textContent)") == expected
        assert page.locator(".stage img, .stage script").count() == 0
        page.locator('.pipe[data-view="batch"]').click()
        if len(expected) < 11:
            assert f"needs 11 tokens, the text has {len(expected)}" in page.locator('[data-role="short"]').inner_text()
        else:
            holds(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_in_chinese_nothing_is_wider_than_the_screen(open_page: Open, scheme: str):
    page = open_page("tokens?lang=zh&view=batch", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator(".stage").get_attribute("data-theme") == scheme
    for view in ("split", "number", "batch"):
        page.locator(f'.pipe[data-view="{view}"]').click()
        written = page.locator(".stage .pipeline, .stage .side").all_inner_texts()
        words = " ".join(written).replace("<unk>", "").replace("UTF-8", "")
        assert not [part for part in words.split() if part.isascii() and len(part) > 2 and part.isalpha()]


def test_a_change_on_the_server_keeps_the_place(open_page: Open):
    page = open_page("tokens?view=batch")
    page.locator("button.forward").click()
    page.wait_for_timeout(400)
    page.get_by_label("Rows (batch size)").fill("3")
    page.get_by_label("Rows (batch size)").press("Enter")
    settle(page)
    page.wait_for_timeout(1600)
    config = at(page)
    assert (config.size, config.view, config.batch) == (3, "batch", 1)
    holds(page)
