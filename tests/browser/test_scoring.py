"""Lesson 11 in a real browser: digits are the engine's, cells of a mask are switches, strange texts work."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page

from pages.ui import scoring
from pages.ui.config import from_query
from pages.ui.scoring import ScoringConfig
from tests.browser.opening import lesson_opener, plugged, shown
from tests.browsing import settle
from tests.lessons import STRANGE

pytestmark = pytest.mark.browser


class Board:
    """The page's two stages: the scores, and why they are divided."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.main, self.divisor = (page.locator(".stage").nth(at) for at in range(2))
        self.field = self.main.locator('.map[data-map=""] .field')

    def config(self) -> ScoringConfig:
        return from_query(ScoringConfig, dict(parse_qsl(urlsplit(self.page.url).query)))[0]

    def at(self, row: int, column: int) -> tuple[float, float]:
        """The middle of a cell of the large map, on the page."""
        box, count = self.field.bounding_box(), len(self.config().tokens)
        assert box is not None
        return box["x"] + (column + 0.5) * box["width"] / count, box["y"] + (row + 0.5) * box["height"] / count

    def says(self) -> str:
        return self.main.locator("[data-role=says]").first.inner_text()


open_lesson = lesson_opener("scoring", Board, lambda board: board.field)


def test_numbers_of_a_cell_are_the_engines_and_moving_is_silent(open_lesson):
    board, seen = open_lesson(symbol="S", score="additive", hidden="5", step="1", key="4")
    trace, before = scoring.traced(board.config()), len(seen)
    board.field.scroll_into_view_if_needed()
    for row, column in ((3, 7), (8, 2), (10, 10)):
        board.page.mouse.move(*board.at(row, column))
        assert board.main.locator(".tip").inner_text().split("\n")[0] == shown(trace["S"][row, column])
        assert shown(trace["S"][row, column]) in plugged(board.main)
        digits = board.main.locator('[data-term="left"] .digits span').all_inner_texts()
        assert digits == [shown(number) for number in trace.terms["S:1"][row, column]]
        assert board.main.locator(".term-sum").inner_text().endswith(shown(trace["S"][row, column]))
    board.main.locator(".equation").nth(1).click()
    board.page.mouse.move(*board.at(6, 6))
    assert shown(trace["A"][6, 6]) in plugged(board.main)
    assert board.main.locator('[data-value="A"]').inner_text() == shown(trace["A"][6, 6])
    board.page.mouse.move(2, 2)
    run = scoring.asked(board.config())
    for at, name in enumerate(("dot_product", "scaled_dot_product", "bilinear", "additive")):
        small = board.main.locator(f'.map[data-map="A.{name}"] [data-role=says]').inner_text()
        assert small.endswith(shown(float(run.shares(name)["A"][1, 4]))), at
    plot = board.divisor.locator(".curve-box")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    board.page.mouse.click(box["x"] + box["width"] - 15, box["y"] + 120)
    plain, scaled = scoring.saturated(0)[-1]
    for name in ("variance", "entropy", "largest_weight"):
        assert board.divisor.locator(f'[data-readout="{name}.plain"]').inner_text() == shown(getattr(plain, name))
        assert board.divisor.locator(f'[data-readout="{name}.scaled"]').inner_text() == shown(getattr(scaled, name))
    assert len(seen) == before


def test_cells_of_a_mask_are_switches_and_an_empty_row_is_said(open_lesson):
    board, _ = open_lesson(text="the cat the mat", who="causal", symbol="A")
    page = board.page
    board.main.locator(".edit-points").first.click()
    page.mouse.click(*board.at(0, 0))
    page.wait_for_function("() => new URL(location.href).searchParams.get('who') === 'own'")
    settle(page)
    config = board.config()
    assert set(config.hides) == {0, 1, 2, 3, 6, 7, 11}
    trace = scoring.traced(config)
    assert (trace["A"][0] == 0).all()
    assert "0.000" in board.says()
    assert "nothing to attend to" in board.says()
    assert page.get_by_text("1 query has nothing to attend to").count() == 1
    page.mouse.click(*board.at(2, 3))
    page.wait_for_timeout(200)
    settle(page)
    assert 11 not in board.config().hides
    page.reload()
    settle(page)
    board.field.wait_for()
    trace = scoring.traced(board.config())
    page.mouse.move(*board.at(2, 3))
    assert board.main.locator(".tip").inner_text().split("\n")[0] == shown(trace["A"][2, 3])
    assert page.locator("[data-testid=stException]").count() == 0


def test_unequal_widths_have_ways_out(server, new_context):
    page = new_context().new_page()
    page.goto(f"{server.url}/scoring?keys=half")
    settle(page)
    page.get_by_text("have no dot product").wait_for()
    page.get_by_role("button", name="A matrix in between: bilinear").click()
    board = Board(page)
    board.field.wait_for()
    settle(page)
    assert (board.config().score, board.config().keys) == ("bilinear", "half")
    trace = scoring.traced(board.config())
    assert board.says().endswith(shown(trace["A"][0, 0]))


@pytest.mark.parametrize(
    ("text", "split"),
    [("x", "word"), (STRANGE["repeated"], "word"), (STRANGE["markup"], "word"), ("的" * 80, "character")],
    ids=["one token", "repeated", "markup", "80 characters"],
)
def test_strange_texts_keep_their_tokens(open_lesson, text, split):
    board, _ = open_lesson(text=text, split=split, symbol="A")
    config = board.config()
    trace, last = scoring.traced(config), len(config.tokens) - 1
    assert last == {"x": 0, STRANGE["repeated"]: 3}.get(text, last)
    assert last <= 63
    board.main.locator(".tokens").focus()
    board.page.keyboard.press("End")
    assert board.main.locator(".position").inner_text() == f"{last + 1} / {last + 1}"
    assert board.says().endswith(shown(trace["A"][last, 0]))
    assert board.main.locator(".tokens .token").count() == last + 1
    assert board.page.locator("[data-testid=stException]").count() == 0


def test_a_phone_in_the_dark_in_chinese(open_lesson):
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    board, _ = open_lesson(options=options, lang="zh", score="additive", temperature="2")
    assert board.page.evaluate("document.documentElement.scrollWidth") <= 390
    text = "".join(stage.inner_text() for stage in (board.main, board.divisor))
    for token in board.config().tokens:
        text = text.replace(token, "")
    text = re.sub(r"softmax|tanh", "", text)
    assert not re.search(r"[A-Za-z]{4,}", text), re.findall(r"[A-Za-z]{4,}", text)
    assert "**" not in board.page.locator("[data-testid=stMain]").inner_text()
