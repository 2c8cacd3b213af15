"""Lesson 10 in a real browser: digits and points are the engine's, dragging is silent, points come and go by a click."""

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from engine.attention import cues
from pages.ui import kernels
from pages.ui.config import from_query
from pages.ui.kernels import KernelConfig
from tests.browser.opening import lesson_opener, plugged, shown
from tests.browsing import settle

pytestmark = pytest.mark.browser

TWINS = "0,0;1,2;1,2;1,-1;2,3;4,0.5"


class Board:
    """The page's three stages: the cues, the curves, and learning w."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.cues, self.main, self.learning = (page.locator(".stage").nth(at) for at in range(3))

    def config(self) -> KernelConfig:
        return from_query(KernelConfig, dict(parse_qsl(urlsplit(self.page.url).query)))[0]

    def step(self) -> int:
        return int(self.main.locator(".position").inner_text().split(" ")[0]) - 1

    def drag(self, stage: Locator, start: float, end: float) -> None:
        """Drag the query from one share of the plot's width to another."""
        plot = stage.locator(".curve-box:not(.fixed)")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        assert box is not None
        self.page.mouse.move(box["x"] + start * box["width"], box["y"] + 130)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + end * box["width"], box["y"] + 110, steps=5)
        self.page.mouse.up()


open_lesson = lesson_opener("kernel_regression", Board, lambda board: board.main.locator(".map .field canvas"))


def test_the_query_is_dragged_and_every_number_follows_without_a_message(open_lesson):
    board, seen = open_lesson(kernel="gaussian", width="0.4", symbol="A", key="10")
    trace = kernels.traced(board.config())
    before = len(seen)
    board.drag(board.main, 0.3, 0.62)
    step = board.step()
    assert step > 35
    assert shown(trace["A"][step, 10]) in plugged(board.main)
    assert shown(trace["S"][step, 10]) in plugged(board.main)
    assert board.main.locator(".handle").inner_text() == shown(kernels.queries_of(board.config())[step])
    sizes = [float(r) for r in board.main.locator("[data-point]").evaluate_all("(all) => all.map((e) => e.getAttribute('r'))")]
    expected = 2.5 + 7 * np.sqrt(trace["A"][step] / trace["A"][step].max())
    assert sizes == pytest.approx(expected.tolist(), abs=0.01)
    board.main.locator(".equation").nth(3).click()
    assert shown(trace["f"][step]) in plugged(board.main)
    assert board.main.locator(".term-sum").inner_text().endswith(shown(trace["f"][step]))
    field = board.main.locator(".map .field").bounding_box()
    assert field is not None
    for row, column in ((3, 2), (50, 31), (70, 49)):
        board.page.mouse.move(
            field["x"] + (column + 0.5) * field["width"] / 50, field["y"] + (row + 0.5) * field["height"] / 71
        )
        assert board.main.locator(".tip").inner_text().split("\n")[0] == shown(trace["A"][row, column])
    board.main.locator(".round.play").click()
    board.page.wait_for_timeout(900)
    board.main.locator(".round.play").click()
    assert board.step() != step
    assert len(seen) == before


def test_the_cues_and_the_learning_board_show_the_engines_numbers(open_lesson):
    board, seen = open_lesson(rate="0.1", epochs="8")
    trace, before = cues.look(), len(seen)
    for wish in (2, 1):
        board.cues.locator(".scene .choice button").nth(wish).click()
        found = [board.cues.locator(f'[data-weight="{at}"]').inner_text() for at in range(5)]
        assert found == [shown(weight) for weight in trace["A"][wish]]
        assert shown(trace["S"][wish, 3]) in board.cues.locator('[data-score="3"]').inner_text()
    learned = kernels.learned(board.config())
    assert learned is not None
    assert board.learning.locator(".curve-box:not(.fixed) .handle").inner_text() == shown(learned.best)
    assert board.learning.locator(".stop[data-point]").count() == 9
    path = board.learning.locator('[data-line="fits"]').get_attribute("d")
    board.drag(board.learning, 0.6, 0.3)
    at = int(board.learning.locator(".position").inner_text().split(" ")[0]) - 1
    assert board.learning.locator('[data-readout="loss"]').inner_text() == shown(learned.losses[at])
    assert board.learning.locator('[data-line="fits"]').get_attribute("d") != path
    board.page.wait_for_timeout(500)
    assert len(seen) == before
    assert "step=" not in board.page.url  # a stage beside the main one keeps its place to itself


def test_points_come_and_go_by_a_click_and_stay_in_the_link(open_lesson):
    board, _ = open_lesson(points=TWINS, width="0.5")
    page, main = board.page, board.main
    twins = kernels.traced(board.config())["A"]
    assert (twins[:, 1] == twins[:, 2]).all()
    main.locator(".edit-points").click()
    plot = main.locator(".curve-box")
    plot.click(position={"x": 300, "y": 60})
    page.wait_for_function("() => new URL(location.href).searchParams.get('points').split(';').length === 7")
    settle(page)
    assert main.locator("[data-point]").count() == 7
    config = board.config()
    added = next(point for point in config.points if str(point) not in TWINS.split(";"))
    dot = main.locator(f'[data-point="{config.points.index(added)}"]')
    assert abs(float(dot.get_attribute("cx") or 0) - 300) < 2
    dot.click()
    page.wait_for_function("() => new URL(location.href).searchParams.get('points').split(';').length === 6")
    settle(page)
    assert [str(point) for point in board.config().points] == TWINS.split(";")
    page.reload()
    settle(page)
    main.locator(".map .field canvas").wait_for()
    assert main.locator("[data-point]").count() == 6


def test_a_bad_file_says_what_is_needed_and_a_good_one_is_taken(open_lesson):
    board, _ = open_lesson()
    page = board.page
    page.get_by_role("button", name="Your own points").click()
    chooser = page.locator("input[type=file]")
    chooser.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": b"a,b\n<b>x</b>,y\n"})
    page.get_by_text("Two columns of numbers are needed").wait_for()
    assert board.main.locator("[data-point]").count() == 50
    page.locator("input[type=file]").set_input_files(
        {"name": "good.csv", "mimeType": "text/csv", "buffer": b"\xef\xbb\xbfx,y\n3,1\n1,2\nx,2\n"}
    )
    page.wait_for_function("() => new URL(location.href).searchParams.get('points') === '1,2;3,1'")
    settle(page)
    assert board.main.locator("[data-point]").count() == 2
    assert page.get_by_text("1 row without two numbers is left out: line 4.").count() == 1


@pytest.mark.parametrize(
    ("link", "count"), [({"points": "2,3"}, 1), ({"count": "64", "kernel": "boxcar", "width": "0.05"}, 64)]
)
def test_one_point_and_64(open_lesson, link, count):
    board, _ = open_lesson(step="70", symbol="A", **link)
    trace = kernels.traced(board.config())
    assert board.main.locator("[data-point]").count() == count
    assert shown(trace["A"][70, 0]) in plugged(board.main)
    assert board.page.locator("[data-testid=stException]").count() == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_phone_in_the_dark(open_lesson, lang):
    board, _ = open_lesson(options={"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}, lang=lang)
    assert board.page.evaluate("document.documentElement.scrollWidth") <= 390
    if lang == "zh":
        text = re.sub(r"softmax|nearest", "", "".join(stage.inner_text() for stage in (board.cues, board.main, board.learning)))
        assert not re.search(r"[A-Za-z]{4,}", text), re.findall(r"[A-Za-z]{4,}", text)
        assert "**" not in board.page.locator("[data-testid=stMain]").inner_text()
