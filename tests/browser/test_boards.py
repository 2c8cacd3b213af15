"""Attention on the stage, in a real browser: maps, formulas and sums show the trace's digits, and nothing asks the server."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from engine.notation import format_number
from tests.browsing import settle
from tests.stage import boards
from tests.stage.serving import Stage, StageServer, frames

pytestmark = pytest.mark.browser

Open = Callable[..., Stage]


@pytest.fixture(scope="module")
def board_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageServer]:
    live = StageServer(tmp_path_factory.mktemp("board") / "server.log", "board_page.py")
    yield live
    live.stop()


@pytest.fixture
def open_board(board_server: StageServer, new_context: Callable[..., Any]) -> Open:
    def visit(options: dict[str, Any] | None = None, **link: Any) -> Stage:
        page = new_context(**(options or {})).new_page()
        seen = frames(page)
        page.goto(f"{board_server.url}/?{'&'.join(f'{name}={value}' for name, value in link.items())}")
        settle(page)
        stage = Stage(page)
        stage.root.locator(".view").first.wait_for(state="attached")
        stage.frames = seen  # type: ignore[attr-defined]
        return stage

    return visit


def shown(value: float) -> str:
    return format_number(float(np.float32(value)), digits=3, minus="−")


def point_at(stage: Stage, row: int, column: int, rows: int, columns: int, click: bool = False) -> None:
    box = stage.find(".map .field").bounding_box()
    assert box is not None
    at = (box["x"] + (column + 0.5) * box["width"] / columns, box["y"] + (row + 0.5) * box["height"] / rows)
    if click:
        stage.page.mouse.click(*at)
    else:
        stage.page.mouse.move(*at)


def plugged(stage: Stage) -> str:
    return stage.find("[data-role=plugged]").inner_text().replace("\n", "").replace(" ", "")


def test_hover_shows_the_numbers_of_that_very_cell(open_board):
    stage = open_board(length=11, kind="causal")
    trace = boards.attention_of(11, 3, 15, "causal")
    for head, query, key in ((0, 4, 2), (1, 10, 10), (2, 7, 0)):
        stage.find(f'[data-head="{head}"] .multiple').click()
        stage.find(".equation").nth(4).click()
        point_at(stage, query, key, 11, 11)
        assert shown(trace["A"][head, query, key]) in plugged(stage)
        assert shown(trace["S"][head, query, key]) in plugged(stage)
        assert stage.find(".tip strong").inner_text() == shown(trace["A"][head, query, key])
        stage.find(".equation").nth(3).click()
        point_at(stage, query, key, 11, 11)
        assert shown(trace.terms["S:1"][head, query, key]) in plugged(stage)
        left, right = trace.products("S:1", head, query, key)
        for side, row in (("left", left), ("right", right)):
            digits = stage.find(f'[data-term="{side}"] .digits span').all_inner_texts()
            assert digits == [shown(number) for number in row]
        assert stage.find(".term-sum").inner_text().endswith(shown(trace.terms["S:1"][head, query, key]))


def test_moving_sends_nothing_and_everything_follows(open_board):
    stage = open_board(length=11, kind="causal", step=3)
    trace = boards.attention_of(11, 3, 15, "causal")
    before = len(stage.frames)
    assert stage.position() == "4 / 11"
    stage.page.keyboard.press("ArrowRight")
    assert stage.position() == "5 / 11"
    point_at(stage, 8, 3, 11, 11, click=True)
    stage.page.mouse.move(0, 0)
    assert stage.position() == "9 / 11"
    assert stage.find("[data-role=says]").inner_text().endswith(shown(trace["A"][0, 8, 3]))
    assert stage.number("A") == shown(trace["A"][0, 8, 3])
    assert stage.find(".row-labels .current").get_attribute("data-at") == "8"
    stage.page.keyboard.press("ArrowUp")
    stage.page.keyboard.press("PageDown")
    assert stage.position() == "8 / 11"
    assert stage.find("[data-role=says]").inner_text().endswith(shown(trace["A"][1, 7, 3]))
    stage.page.wait_for_timeout(600)
    assert "head=1" in stage.page.url
    assert "key=3" in stage.page.url
    assert len(stage.frames) == before


def test_the_mean_of_the_heads_is_a_choice_and_never_the_default(open_board):
    stage = open_board(length=11, kind="causal", step=8, key=3)
    weights = boards.attention_of(11, 3, 15, "causal")["A"]
    assert stage.find("[data-role=says]").inner_text().endswith(shown(weights[0, 8, 3]))
    stage.find(".map-title .choice button").nth(1).click()
    mean = weights.mean(axis=0, dtype=np.float64)[8, 3]
    assert stage.find("[data-role=says]").inner_text().endswith(shown(mean))
    stage.find('[data-head="1"] .multiple').click()
    stage.find(".map-title .choice button").nth(0).click()
    assert stage.find("[data-role=says]").inner_text().endswith(shown(weights[1, 8, 3]))


def test_heads_are_added_up_with_their_numbers(open_board):
    stage = open_board(length=11, kind="all", symbol="O", unit=6, step=5)
    trace = boards.attention_of(11, 3, 15, "all")
    for head in range(3):
        assert stage.find(f'[data-part="{head}"]').inner_text() == shown(trace["O_n"][head, 5, 6])
    assert stage.find('[data-part="whole"]').inner_text() == shown(trace["O"][5, 6])
    assert stage.find("[data-role=equality]").inner_text().endswith(f"= {shown(trace['O'][5, 6])}")


def test_a_head_is_taken_out_and_comes_back(open_board):
    stage = open_board(length=11, kind="causal", symbol="O", unit=2, step=9)
    plain = boards.attention_of(11, 3, 15, "causal")
    stage.find('[data-head="1"] .switch').first.click()
    stage.page.get_by_text("heads [1]").wait_for()
    settle(stage.page)
    changed = boards.attention_of(11, 3, 15, "causal", (1,))
    assert stage.find('[data-part="whole"]').inner_text() == shown(changed["O"][9, 2])
    assert stage.find('[data-part="1"]').inner_text() == "0.000"
    assert shown(plain["O"][9, 2]) in stage.find(".sum .note").inner_text()
    assert stage.position() == "10 / 11"
    stage.find('[data-head="2"] .switch').nth(1).click()
    stage.page.get_by_text("heads [0, 1]").wait_for()
    stage.find(".heads .reset").click()
    stage.page.get_by_text("heads []").wait_for()
    settle(stage.page)
    assert stage.find('[data-part="whole"]').inner_text() == shown(plain["O"][9, 2])


@pytest.mark.parametrize("length", [1, 64])
def test_one_token_and_sixty_four(open_board, length):
    stage = open_board(length=length, heads=8, width=64)
    trace = boards.attention_of(length, 8, 64, "causal")
    point_at(stage, length - 1, 0, length, length, click=True)
    assert stage.find("[data-role=says]").inner_text().endswith(shown(trace["A"][0, length - 1, 0]))
    assert stage.find(".head-box").count() == 8
    assert stage.find(".row-labels .current").get_attribute("data-at") == str(length - 1)


def test_an_empty_row_says_so(open_board):
    stage = open_board(length=11, kind="empty", step=2)
    assert "nothing to attend to" in stage.find(".empty-row").inner_text()
    assert "nothing to attend to" in stage.find("[data-role=says]").inner_text()
    point_at(stage, 4, 8, 11, 11)
    assert "masked" in stage.find(".tip").inner_text()


def test_tokens_that_are_alike_or_look_like_markup_keep_their_places(open_board):
    stage = open_board(length=11)
    rows = stage.find(".row-labels [data-at]").evaluate_all("(all) => all.map((e) => [Number(e.dataset.at), e.textContent])")
    visible = [text for _, text in sorted(rows)]
    assert visible[0] == visible[3] == "the"
    assert visible[4] == "<b>cat</b>"
    assert visible[5] == "7"
    assert len(visible) == 11


def test_a_line_is_dragged_and_its_place_is_read_in_the_browser(open_board):
    stage = open_board(show="gradient_map")
    before = len(stage.frames)
    assert stage.find('[data-readout="cosine"]').inner_text() == "0.000"
    field = stage.find(".field").bounding_box()
    knob = stage.find(".cutter").bounding_box()
    stage.page.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + 40)
    stage.page.mouse.down()
    stage.page.mouse.move(field["x"] + field["width"] * 4 / 9, field["y"] + 60, steps=4)
    stage.page.mouse.up()
    assert stage.find('[data-readout="cosine"]').inner_text() == shown(4 / 9)
    stage.find(".cutter").focus()
    stage.page.keyboard.press("ArrowRight")
    assert stage.find('[data-readout="cosine"]').inner_text() == shown(5 / 9)
    stage.page.wait_for_timeout(500)
    assert "cut=5" in stage.page.url
    assert len(stage.frames) == before


def test_the_query_is_dragged_along_the_curves(open_board):
    stage = open_board(show="curves")
    before = len(stage.frames)
    box = stage.find(".curve-box").bounding_box()
    stage.page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 120)
    stage.page.mouse.down()
    stage.page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + 100, steps=4)
    stage.page.mouse.up()
    assert 18 < int(stage.position().split(" ")[0]) < 26
    assert stage.find(".row-labels .current").inner_text() == stage.find(".handle").inner_text()[:4]
    assert len(stage.frames) == before


def test_vectors_in_steps(open_board):
    stage = open_board(show="vectors")
    assert stage.find("[data-vector-row]").count() >= 4
    stage.find('[data-vector-row="X_hat"] .vector').click(position={"x": 5, "y": 20})
    assert "=" in plugged(stage)


def test_a_phone_and_chinese(open_board):
    stage = open_board(options={"viewport": {"width": 390, "height": 844}}, length=11, lang="zh")
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= 390
    text = re.sub(r"<b>cat</b>|the|cat|saw|softmax|heads|concat|blocks", "", stage.root.inner_text())
    assert not re.search(r"[A-Za-z]{4,}", text), re.findall(r"[A-Za-z]{4,}", text)
