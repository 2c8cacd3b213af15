"""Lesson 5 in a real browser: the numbers beside the map are the engine's, and the cut moves without a message."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page

from engine.recurrent.cuts import cuts
from pages.ui.config import from_query
from pages.ui.horizon import TruncationConfig, flow_of
from tests.browser.opening import lesson_opener, shown
from tests.browsing import settle
from tests.lessons import STRANGE
from tests.stage.serving import Stage

pytestmark = pytest.mark.browser

open_lesson = lesson_opener("truncation", Stage, lambda stage: stage.find(".map .field canvas").first)


def config_of(page: Page) -> TruncationConfig:
    return from_query(TruncationConfig, dict(parse_qsl(urlsplit(page.url).query)))[0]


def read(stage: Stage, name: str) -> str:
    return stage.find(f'[data-readout="{name}"]').inner_text()


def place(stage: Stage, row: float, column: float, length: int) -> tuple[float, float]:
    box = stage.find('[data-map="G"] .field').bounding_box()
    assert box is not None
    return box["x"] + column * box["width"] / length, box["y"] + row * box["height"] / length


def test_the_chain_and_the_dragged_cut_are_the_engines_and_silent(open_lesson):
    stage, seen = open_lesson(network="lstm", step="40", key="30", cut="24")
    flow, length = flow_of(config_of(stage.page)), 53
    found, norms = cuts(flow), flow.norms["H"]
    before = len(seen)
    for row, column in ((40, 30), (52, 0), (12, 12)):
        stage.page.mouse.move(*place(stage, row + 0.5, column + 0.5, length))
        assert read(stage, "norm") == shown(norms[row, column])
        assert read(stage, "share") == shown(norms[row, column] / norms[row, row])
        assert read(stage, "loss") == shown(flow.losses[row])
    stage.page.mouse.click(*place(stage, 40.5, 30.5, length))
    handle = stage.find('[data-map="G"] .cutter').bounding_box()
    assert handle is not None
    stage.page.mouse.move(place(stage, 5, 24, length)[0], place(stage, 5, 24, length)[1])
    stage.page.mouse.down()
    for at in (20, 12, 10):
        stage.page.mouse.move(*place(stage, 5, at, length))
    stage.page.mouse.up()
    stage.page.mouse.move(2, 2)
    assert stage.find('[data-map="G"] .cutter').get_attribute("aria-valuenow") == "10"
    assert read(stage, "cosine") == shown(found.cosines[10])
    assert read(stage, "length") == shown(found.lengths[10])
    assert read(stage, "crossing") == shown(found.crossing[40, 10])
    stage.find('[data-map="G"] .cutter').focus()
    stage.page.keyboard.press("ArrowRight")
    assert read(stage, "cosine") == shown(found.cosines[11])
    stage.page.wait_for_timeout(700)
    assert config_of(stage.page).cut == 11
    assert len(seen) == before


def test_another_truncation_empties_cells_and_keeps_the_place(open_lesson):
    stage, _ = open_lesson(step="30", key="20", truncation="chunks", length="8")
    flow = flow_of(config_of(stage.page))
    assert flow.norms["H"][30, 20] == 0
    assert read(stage, "norm") == "0.000"
    stage.page.get_by_label(re.compile("^Length in steps")).fill("31")
    stage.page.keyboard.press("Enter")
    settle(stage.page)
    config = config_of(stage.page)
    assert (config.length, config.step, config.key) == (31, 30, 20)
    assert read(stage, "norm") == shown(flow_of(config).norms["H"][30, 20])


@pytest.mark.parametrize("name", ["markup", "256 characters"])
def test_strange_texts_keep_their_tokens(open_lesson, name):
    stage, _ = open_lesson(text=STRANGE[name])
    count = len(config_of(stage.page).tokens)
    assert stage.find(".tokens .token").count() == count
    assert stage.page.locator("[data-testid=stException]").count() == 0


def test_a_phone_in_the_dark_in_chinese(open_lesson):
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    stage, _ = open_lesson(options=options, lang="zh", network="gru")
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= 390
    text = stage.root.inner_text()
    assert not re.search(r"[A-Za-z]{4,}", re.sub(r"\s", "", "".join(re.findall(r"[一-鿿].*", text)))), text
