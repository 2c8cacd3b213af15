"""Lesson 15 in a real browser: the page's digits are the engine's, moving is silent, strange texts and odd widths work."""

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page

from engine.attention.order import carried
from engine.attention.positions import wavelengths
from pages.ui.config import from_query
from pages.ui.ordering import PositionsConfig, asked, baseline
from tests.browser.opening import lesson_opener, plugged, shown
from tests.browsing import settle
from tests.lessons import STRANGE
from tests.stage.serving import Stage

pytestmark = pytest.mark.browser

open_lesson = lesson_opener("positions", Stage, lambda stage: stage.find('[data-map=""] .field canvas'))


def config_of(page: Page) -> PositionsConfig:
    return from_query(PositionsConfig, dict(parse_qsl(urlsplit(page.url).query)))[0]


def point_at(stage: Stage, name: str, row: int, column: int, rows: int, columns: int) -> None:
    field = stage.find(f'[data-map="{name}"] .field')
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    x, y = (column + 0.5) * box["width"] / columns, (row + 0.5) * box["height"] / rows
    stage.page.mouse.move(box["x"] + x, box["y"] + y)


def says(stage: Stage, name: str) -> str:
    return stage.find(f'[data-map="{name}"] [data-role=says]').inner_text()


def read(stage: Stage, name: str) -> str:
    return stage.find(f'[data-readout="{name}"]').inner_text()


def test_numbers_of_a_cell_are_the_engines_and_moving_is_silent(open_lesson):
    stage, seen = open_lesson(symbol="P", step="20", key="17", delta="3")
    run = asked(config_of(stage.page))
    trace, length = run.trace(), 54
    before = len(seen)
    for row, column in ((20, 6), (53, 41), (0, 63), (37, 12)):
        point_at(stage, "", row, column, length, 64)
        assert shown(trace["P"][row, column]) in plugged(stage)
        assert shown(trace["P"][row, column]) in stage.find(".tip").inner_text()
        assert read(stage, "places") == str(row)
        assert read(stage, "wave") == shown(float(wavelengths(64)[column // 2]), 2)
        assert read(stage, "gap") == shown(carried(run)[row])
    stage.find(".equation").first.click()  # the even columns count pairs: the curve and the wavelength follow
    point_at(stage, "", 11, 25, length, 32)
    assert shown(trace["P_sin"][11, 25]) in plugged(stage)
    assert shown(25) in plugged(stage)
    assert read(stage, "wave") == shown(float(wavelengths(64)[25]), 2)
    point_at(stage, "G", 30, 7, length, length)
    assert read(stage, "product") == shown(trace["G"][30, 7])
    assert read(stage, "distance") == "23"
    assert shown(trace["G"][30, 7]) in stage.find(".tip").inner_text()
    point_at(stage, "A", 41, 40, length, length)
    assert shown(trace["A"][0, 41, 40]) in stage.find(".tip").inner_text()
    stage.page.mouse.move(2, 2)
    stage.find(".tokens").focus()
    stage.page.keyboard.press("ArrowRight")
    stage.page.keyboard.press("PageDown")
    assert says(stage, "A").endswith(shown(trace["A"][1, 21, 17]))
    assert stage.find(".curve-view .handle").inner_text() == "21"
    assert stage.find('[data-map="bits"] .field').count() == 1
    stage.page.wait_for_timeout(700)
    config = config_of(stage.page)
    assert (config.step, config.key, config.head, config.delta) == (21, 17, 1, 3)
    assert len(seen) == before


def test_read_backwards_without_positions_the_rows_only_change_places(open_lesson):
    stage, _ = open_lesson(where="nowhere", order="reversed", mask="all", symbol="O", step="20", unit="5")
    config = config_of(stage.page)
    trace, before = asked(config).trace(), baseline(config)
    assert before is not None
    assert says(stage, "").endswith(shown(trace["O"][20, 5]))
    stage.find(".compare button").nth(1).click()
    assert says(stage, "").endswith(shown(before["O"][20, 5]))
    stage.find(".compare button").nth(2).click()
    difference = says(stage, "").split()[-1].replace("−", "-").replace("+", "")
    assert abs(float(difference)) < 1e-6
    box = stage.page.locator(".st-key-control-where").get_by_role("combobox")
    box.scroll_into_view_if_needed()
    stage.page.wait_for_timeout(150)  # a list closes when the page scrolls under it
    box.click()
    stage.page.get_by_role("option", name="To V alone").click()
    settle(stage.page)
    config = config_of(stage.page)
    assert (config.where, config.step, config.unit, config.symbol) == ("v", 20, 5, "O")
    changed, before = asked(config).trace(), baseline(config)
    assert before is not None
    stage.find(".compare button").first.click()
    assert says(stage, "").endswith(shown(changed["O"][20, 5]))
    metrics = stage.page.locator("[data-testid=stMetricValue]").all_inner_texts()
    moved = [float(np.abs(changed[name] - before[name]).max()) for name in ("A", "O")]
    assert moved[0] < 1e-12 < 0.1 < moved[1]
    assert metrics[-1] == shown(moved[1])


@pytest.mark.parametrize("name", ["one character", "repeated", "markup", "256 characters"])
def test_strange_texts_keep_their_tokens_and_places(open_lesson, name):
    stage, _ = open_lesson(text=STRANGE[name], step="0", kind="rotary")
    config = config_of(stage.page)
    trace, last = asked(config).trace(), len(config.tokens) - 1
    assert last < 64
    stage.find(".tokens").focus()
    stage.page.keyboard.press("End")
    assert stage.position() == f"{last + 1} / {last + 1}"
    assert says(stage, "").endswith(shown(trace["P"][last, 0]))
    assert says(stage, "A").split(" · ")[0].endswith(shown(trace["A"][0, last, 0]))
    assert stage.find(".tokens .token").count() == last + 1
    assert stage.page.locator("[data-testid=stException]").count() == 0


def test_an_odd_width_ends_with_a_sine_alone(open_lesson):
    stage, _ = open_lesson(model="untrained", width="29", symbol="P", step="7", unit="28", base="200")
    trace = asked(config_of(stage.page)).trace()
    assert trace["P"].shape == (54, 29)
    assert says(stage, "").endswith(shown(trace["P"][7, 28]))
    assert stage.find('[data-readout="gap"]').count() == 0
    assert stage.page.get_by_text("A width of 29 is odd").count() == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_in_the_dark(open_lesson, lang):
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    stage, _ = open_lesson(options=options, lang=lang)
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= 390
    if lang == "zh":
        text = re.sub(r"softmax|heads|concat|interleave|Page|Down", "", stage.root.inner_text())
        assert not re.search(r"[A-Za-z]{4,}", text), re.findall(r"[A-Za-z]{4,}", text)
