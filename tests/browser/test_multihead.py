"""Lesson 14 in a real browser: the page's digits are the engine's, heads go and come back, strange texts work."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page

from pages.ui.config import from_query
from pages.ui.manyheads import MultiheadConfig, asked
from tests.browser.opening import lesson_opener, plugged, shown
from tests.browsing import settle
from tests.lessons import STRANGE
from tests.stage.serving import Stage

pytestmark = pytest.mark.browser

open_lesson = lesson_opener("multihead", Stage, lambda stage: stage.find(".map .field canvas"))


def config_of(page: Page) -> MultiheadConfig:
    return from_query(MultiheadConfig, dict(parse_qsl(urlsplit(page.url).query)))[0]


def point_at(stage: Stage, row: int, column: int, length: int) -> None:
    box = stage.find(".map .field").bounding_box()
    assert box is not None
    stage.page.mouse.move(box["x"] + (column + 0.5) * box["width"] / length, box["y"] + (row + 0.5) * box["height"] / length)


def test_numbers_of_a_cell_are_the_engines_and_moving_is_silent(open_lesson):
    stage, seen = open_lesson(step="20", head="1")
    trace, length = asked(config_of(stage.page)).trace(), 54
    before = len(seen)
    stage.find(".map").scroll_into_view_if_needed()
    for query, key in ((20, 19), (53, 4), (9, 9)):
        point_at(stage, query, key, length)
        for value in (trace["A"][1, query, key], trace["S"][1, query, key]):
            assert shown(value) in plugged(stage)
    stage.find(".equation").nth(3).click()
    point_at(stage, 30, 7, length)
    assert shown(trace.terms["S:1"][1, 30, 7]) in plugged(stage)
    assert stage.find(".term-sum").inner_text().endswith(shown(trace.terms["S:1"][1, 30, 7]))
    stage.find(".round.play").click()
    stage.page.wait_for_timeout(1700)
    stage.find(".round.play").click()
    assert int(stage.position().split(" ")[0]) > 21
    assert len(seen) == before


def test_parts_add_up_and_a_head_goes_and_comes_back(open_lesson):
    stage, _ = open_lesson(step="30", symbol="O", unit="5")
    plain = asked(config_of(stage.page)).trace()
    numbers = [stage.find(f'[data-part="{head}"]').inner_text() for head in range(4)]
    assert numbers == [shown(part) for part in plain["O_n"][:, 30, 5]]
    assert stage.find('[data-part="whole"]').inner_text() == shown(plain["O"][30, 5])
    stage.find('[data-head="2"] .switch').first.click()
    stage.find('[data-head="2"].out').wait_for()
    settle(stage.page)
    assert config_of(stage.page).off == (2,)
    changed = asked(config_of(stage.page)).trace()
    assert stage.find('[data-part="whole"]').inner_text() == shown(changed["O"][30, 5])
    assert shown(plain["O"][30, 5]) in stage.find(".sum .note").inner_text()
    stage.find(".compare button").nth(2).click()
    difference = changed["O"][30, 5] - plain["O"][30, 5]
    assert shown(difference) in stage.find("[data-role=says]").inner_text()
    stage.find(".heads .reset").click()
    stage.find('[data-head="2"]:not(.out)').wait_for()
    settle(stage.page)
    assert config_of(stage.page).off == ()
    assert config_of(stage.page).step == 30


@pytest.mark.parametrize("name", ["one character", "markup", "Chinese", "256 characters"])
def test_strange_texts_keep_their_tokens_and_places(open_lesson, name):
    stage, _ = open_lesson(text=STRANGE[name], step="0")
    config = config_of(stage.page)
    trace = asked(config).trace()
    last = len(config.tokens) - 1
    stage.page.keyboard.press("End")
    stage.find(".token[data-at].current").first.wait_for()
    stage.find(".tokens").focus()
    stage.page.keyboard.press("End")
    assert stage.position() == f"{last + 1} / {last + 1}"
    assert stage.find("[data-role=says]").inner_text().split(" · ")[0].endswith(shown(trace["A"][0, last, 0]))
    assert stage.find(".tokens .token").count() == last + 1
    assert stage.page.locator("[data-testid=stException]").count() == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_in_the_dark(open_lesson, lang):
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    stage, _ = open_lesson(options=options, lang=lang, heads="8")
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= 390
    rows = stage.find(".transport .round:visible").evaluate_all(
        "(all) => all.map((e) => Math.round(e.getBoundingClientRect().top / 12))"
    )
    assert len(set(rows)) <= 2
    if lang == "zh":
        text = re.sub(r"softmax|heads|concat|blocks|Page|Down", "", stage.root.inner_text())
        assert not re.search(r"[A-Za-z]{4,}", text), re.findall(r"[A-Za-z]{4,}", text)
