"""Lesson 3 in a real browser: the digits of both ways are the engine's, and the stage moves without the server."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from engine.embedded import maps
from engine.embeddings import neighbours, one_hot_product
from engine.notation import format_number
from engine.text.display import visible
from pages.ui import embedding
from pages.ui.config import from_query
from pages.ui.embedding import EmbeddingsConfig
from tests.browsing import LiveServer, settle
from tests.lessons import STRANGE, query
from tests.stage.serving import frames

Open = Callable[..., Page]


def holds(page: Page) -> EmbeddingsConfig:
    """Assert that digits, neighbours and map are the engine's for the address; the stage writes it a moment after it moved."""
    page.wait_for_timeout(400)
    config, _ = from_query(EmbeddingsConfig, query(page.url))
    found = embedding.embedded(config)
    matrix, index = found.matrix(config.state), found.ids[config.step]
    units = [int(text) for text in page.locator('[data-line="unit"] td').all_inner_texts()]
    assert config.unit in units
    product = one_hot_product([index], matrix)
    for line, values in (("product", product.product[0]), ("row", matrix[index])):
        expected = [format_number(float(values[unit]), 6, minus="−") for unit in units]
        assert page.locator(f'[data-line="{line}"] td').all_inner_texts() == expected
    near = neighbours(matrix, index, embedding.NEAREST)
    assert page.locator(".near .tok").evaluate_all("all => all.map(e => e.textContent)") == [
        visible(found.tokens[each.index]) for each in near
    ]
    assert page.locator(".near .cosine").all_inner_texts() == [format_number(each.cosine, 2, minus="−") for each in near]
    assert page.locator('[data-role="same"]').inner_text().endswith(": 0")
    points = maps(found)[config.state].shares[: int(config.dims)]
    assert f"{100 * float(points.sum()):.1f} %" in page.locator('[data-role="shares"]').inner_text()
    return config


def test_product_and_lookup_are_the_engines_and_moving_sends_nothing(new_context: Callable[..., Any], server: LiveServer):
    page = new_context().new_page()
    seen = frames(page)
    page.goto(f"{server.url}/embeddings?step=3")
    page.locator(".near .tok").first.wait_for()
    settle(page)
    holds(page)
    page.wait_for_timeout(500)
    assert seen
    seen.clear()
    page.locator(".chips").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert (holds(page).step, holds(page).unit) == (4, 1)
    page.get_by_role("button", name="before training").click()
    assert holds(page).state == "before"
    page.get_by_role("button", name="after training").click()
    page.get_by_role("button", name="3D").click()
    box = page.locator(".points").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 180, box["y"] + 140, steps=4)
    page.mouse.up()
    assert holds(page).dims == "3"
    page.locator(".weights-field").click(position={"x": 200, "y": 30})
    holds(page)
    page.locator("select.speed").select_option("4")
    page.locator("button.play").click()
    expect(page.locator(".position")).to_have_text(re.compile(r"^([89]|[1-5]\d) / 54"))
    page.locator("button.play").click()
    holds(page)
    assert seen == []
    address = page.url
    page.reload()
    page.locator(".near .tok").first.wait_for()
    settle(page)
    assert page.url == address
    holds(page)


def test_every_token_keeps_its_place_in_both_kinds_of_embedding(server: LiveServer, open_page: Open):
    page = open_page("embeddings")
    for source in ("gru", "words"):
        for kind in ("repeated", "markup", "emoji", "Chinese", "one character"):
            params = {"text": STRANGE[kind], "embedding": source, "material": "own"}
            page.goto(f"{server.url}/embeddings?{urlencode(params)}")
            found = embedding.embedded(from_query(EmbeddingsConfig, params)[0])
            expected = [visible(token) for token in found.text[: embedding.SHOWN]]
            page.locator(".chips .tok").nth(len(expected) - 1).wait_for()
            assert page.locator(".chips .tok").evaluate_all("all => all.map(e => e.textContent)") == expected
            assert page.locator(".stage img, .stage script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_in_chinese_nothing_is_wider_than_the_screen(open_page: Open, scheme: str):
    page = open_page("embeddings?lang=zh&dims=3", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.locator(".near .tok").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator(".stage").get_attribute("data-theme") == scheme
    written = " ".join(page.locator(".stage h3, .stage .note, .stage .place, .stage button, .stage dt").all_inner_texts())
    assert not [part for part in written.split() if part.isascii() and len(part) > 2 and part.isalpha()]
