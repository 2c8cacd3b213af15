"""Lesson 16 in a real browser: the page's digits are the engine's, moving is silent, strange texts and hard stacks work."""

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page

from pages.ui.config import from_query
from pages.ui.depths import DepthConfig, asked
from tests.browser.opening import lesson_opener, plugged, shown
from tests.browsing import settle
from tests.lessons import STRANGE
from tests.stage.serving import Stage

pytestmark = pytest.mark.browser

open_lesson = lesson_opener("residual_norm", Stage, lambda stage: stage.find(".map .field canvas"))


def config_of(page: Page) -> DepthConfig:
    return from_query(DepthConfig, dict(parse_qsl(urlsplit(page.url).query)))[0]


def point_at(stage: Stage, row: int, column: int, rows: int, columns: int) -> None:
    field = stage.find(".map .field")
    field.scroll_into_view_if_needed()
    box = field.bounding_box()
    assert box is not None
    x, y = (column + 0.5) * box["width"] / columns, (row + 0.5) * box["height"] / rows
    stage.page.mouse.move(box["x"] + x, box["y"] + y)


def says(stage: Stage) -> str:
    return stage.find(".map [data-role=says]").inner_text()


def read(stage: Stage, name: str) -> str:
    return stage.find(f'[data-readout="{name}"]').inner_text()


def test_numbers_of_a_cell_are_the_engines_and_moving_is_silent(open_lesson):
    stage, seen = open_lesson(step="10", symbol="X_hat", key="4", unit="2")
    run = asked(config_of(stage.page))
    trace, flow = run.trace(), run.flow()
    before = len(seen)
    for token, feature in ((4, 2), (53, 15), (0, 0), (31, 9)):
        point_at(stage, token, feature, 54, 16)
        for value in (
            trace["X_hat"][10, token, feature],
            trace["mean"][10, token, 0],
            trace["variance"][10, token, 0],
            abs(trace.inputs["X"][10, token, feature]),
        ):
            assert shown(value) in plugged(stage)
        assert shown(trace["X_hat"][10, token, feature]) in stage.find(".tip").inner_text()
    stage.page.mouse.move(2, 2)
    for name in trace:
        width = trace[name].shape[-1]
        assert stage.find(f'[data-vector="{name}"]').inner_text() == shown(trace[name][10, 4, min(2, width - 1)])
    assert read(stage, "out") == shown(flow.forward[11])
    assert read(stage, "leaving") == shown(flow.backward[10])
    stage.find('[data-vector-row="F"] .strip-name').click()
    point_at(stage, 7, 3, 54, 16)
    assert shown(trace.terms["F:1"][10, 7, 3]) in plugged(stage)
    assert stage.find(".term-sum").inner_text().endswith(shown(trace.terms["F:1"][10, 7, 3]))
    stage.page.mouse.move(2, 2)
    stage.find(".curve-box").first.scroll_into_view_if_needed()
    box = stage.find(".curve-box").first.bounding_box()
    assert box is not None
    stage.page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 80)
    stage.page.mouse.down()
    for share in (0.7, 0.4, 0.02):
        stage.page.mouse.move(box["x"] + box["width"] * share, box["y"] + 80)
    stage.page.mouse.up()
    assert stage.position() == "1 / 24"
    stage.find(".tokens").focus()
    for _ in range(3):
        stage.page.keyboard.press("ArrowRight")
    stage.page.mouse.move(2, 2)
    assert says(stage).endswith(shown(trace["F"][3, 4, 2]))
    assert read(stage, "in") == shown(flow.forward[3])
    assert read(stage, "weights") == shown(flow.weights[3])
    stage.page.wait_for_timeout(700)
    config = config_of(stage.page)
    assert (config.step, config.key, config.unit, config.symbol) == (3, 4, 2, "F")
    assert len(seen) == before


def test_another_arrangement_keeps_the_place_and_large_sizes_are_powers(open_lesson):
    stage, _ = open_lesson(step="23", key="3", unit="5", symbol="Y")
    assert says(stage).endswith(shown(asked(config_of(stage.page)).trace()["Y"][23, 3, 5]))
    box = stage.page.locator(".st-key-control-arrangement").get_by_role("combobox")
    box.scroll_into_view_if_needed()
    stage.page.wait_for_timeout(150)  # a list closes when the page scrolls under it
    box.click()
    stage.page.get_by_role("option", name="Residual without a norm").click()
    settle(stage.page)
    config = config_of(stage.page)
    assert (config.arrangement, config.step, config.key, config.unit, config.symbol) == ("residual", 23, 3, 5, "Y")
    run = asked(config)
    flow = run.flow()
    assert says(stage).endswith(shown(run.trace()["Y"][23, 3, 5]))
    assert flow.weights[23] > 1e5
    mantissa, exponent = f"{float(np.float32(flow.weights[23])):.1e}".split("e")
    assert read(stage, "weights") == f"{mantissa}e{int(exponent)}"
    metrics = stage.page.locator("[data-testid=stMetricValue]").all_inner_texts()
    assert metrics[0] == shown(flow.forward[0])


@pytest.mark.parametrize(
    ("name", "depth"), [("one character", "64"), ("markup", "2"), ("Chinese", "1"), ("256 characters", "9")]
)
def test_strange_texts_keep_their_tokens_and_places(open_lesson, name, depth):
    stage, _ = open_lesson(text=STRANGE[name], depth=depth, width="7", norm="batch", symbol="Y")
    config = config_of(stage.page)
    trace, last = asked(config).trace(), len(config.tokens) - 1
    assert last < 64
    stage.find(".tokens").focus()
    stage.page.keyboard.press("End")
    assert stage.position() == f"{depth} / {depth}"
    field = stage.find(".map .field")
    box = field.bounding_box()
    assert box is not None
    field.click(position={"x": 2, "y": box["height"] - 2})
    stage.page.mouse.move(2, 2)
    assert says(stage).endswith(shown(trace["Y"][-1, last, 0]))
    assert stage.find(".tokens .token").count() == int(depth)
    assert stage.page.locator("[data-testid=stException]").count() == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_in_the_dark(open_lesson, lang):
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    stage, _ = open_lesson(options=options, lang=lang, arrangement="post", norm="rms")
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= 390
    if lang == "zh":
        text = re.sub(r"ReLU|RMSNorm|mean|Page|Down", "", stage.root.inner_text())
        assert not re.search(r"[A-Za-z]{4,}", text), re.findall(r"[A-Za-z]{4,}", text)
