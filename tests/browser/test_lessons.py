"""The lesson pages in a real browser: their digits are the engine's, they move without the server, what-ifs are true."""

import random
from collections.abc import Callable, Iterator
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.lesson_page import LessonPage, Visitor
from tests.browsing import LiveServer, settle
from tests.lessons import engine_run, shown
from tests.stage.serving import frames

TEXT = "And the evening and the morning were the first day."


@pytest.fixture(scope="module")
def visitor(server: LiveServer, chromium: Browser) -> Iterator[Visitor]:
    one = Visitor(server, chromium)
    yield one
    one.close()


# ------------------------------------------------------------------------------------------------------------- digits


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_digits_are_the_engines_at_ten_random_places_and_in_a_fresh_browser(
    cell: str, visitor: Visitor, server: LiveServer, new_context: Callable[..., object]
):
    lesson = visitor.at(f"{cell}?{urlencode({'text': TEXT})}")
    run = lesson.run()
    symbols = [name for name, symbol in run.trace.symbols.items() if symbol.axes == "TBH"]
    draw = random.Random(20)
    for _ in range(10):
        step, unit, symbol = draw.randrange(len(TEXT)), draw.randrange(64), draw.choice(symbols)
        lesson.place(step, unit, symbol)
        lesson.holds(run)
    lesson.address_has(text=TEXT, step=str(step), unit=str(unit), symbol=symbol)

    page = new_context().new_page()  # type: ignore[attr-defined]
    page.goto(lesson.page.url)
    there = LessonPage(page, cell)
    there.ready()
    assert there.everything() == lesson.everything()
    there.sound()


@pytest.mark.parametrize("link", ["lstm?model=untrained&seed=7", "lstm?model=recall-bias-0", "gru?reset=after&update=replaces"])
def test_every_kind_of_model_shows_its_own_digits(visitor: Visitor, link: str):
    lesson = visitor.at(f"{link}&step=20&unit=9&symbol=H")
    lesson.holds(lesson.run())


# ------------------------------------------------------------------------------------------------------------- motion


def test_stepping_playing_and_scrubbing_send_nothing_to_the_server(visitor: Visitor):
    page = visitor.context.new_page()
    seen = frames(page)
    lesson = visitor.at("lstm", page)
    page.wait_for_timeout(500)
    assert seen, "the page itself came through a websocket"
    seen.clear()
    lesson.find(".tokens").focus()
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    lesson.find("select.speed").select_option("4")
    lesson.find("button.play").click()
    lesson.until(lambda: lesson.step() >= 4)
    lesson.find("button.play").click()
    cells = lesson.find(".tokens .token")
    cells.nth(3).hover()
    page.mouse.down()
    box = cells.nth(30).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 4, box["y"] + 4, steps=10)
    page.mouse.up()
    assert lesson.step() == 30
    lesson.find('.equations [data-symbol="C"]').first.hover()
    lesson.find('[data-strip-box="O"]').hover()
    lesson.place(40, 12, "C")
    lesson.address_has(step="40", unit="12", symbol="C")
    page.wait_for_timeout(2000)  # longer than the stage may still write its place
    assert seen == []
    page.close()


# ------------------------------------------------------------------------------------------------------------ what if


def test_a_clamped_gate_is_run_linked_compared_and_taken_back(visitor: Visitor):
    lesson = visitor.at("lstm?unit=3&symbol=F")
    lesson.place(12, 3, "F")
    lesson.change("F", 1.0, "from here on", "this unit")
    lesson.address_has(do="F=1@12-#3", step="12", unit="3")
    changed = lesson.run()
    assert [str(edit) for edit in changed.config.do] == ["F=1@12-#3"]
    for step in (5, 12, 30):
        lesson.place(step, 3, "C")
        lesson.holds(changed)
        before, after = changed.baseline["C"][step, 0, 3], changed.trace["C"][step, 0, 3]
        assert lesson.find('[data-label="C"] .base').inner_text() == ("" if before == after else shown(before))
    assert changed.next_tokens(30) != changed.next_tokens(30 - 1)
    assert lesson.find(".distribution.compared .before").first.is_visible()

    # The strips in all three views, and a second change on top: C edited at one step, all units.
    for view in ("baseline", "difference", "changed"):
        lesson.find(".compare button").filter(has_text=view).click()
        assert lesson.find('.compare [aria-pressed="true"]').inner_text() == view
    lesson.place(20, 3, "C")
    lesson.change("C", -2.5, "this step", "all units")
    lesson.address_has(do="F=1@12-#3;C=-2.5@20", step="20", symbol="C")
    both = lesson.run()
    for step in (20, 21, 53):
        lesson.place(step, 3, "C")
        lesson.holds(both)
    lesson.place(20, 3, "C")
    assert lesson.number("C") == "−2.500"
    given = shown(both.trace.terms["C:0"][20, 0, 3])
    assert lesson.find(".clamped-note").inner_text() == f"The equation gives {given}; you set it to -2.5.".replace("-", "−")

    # Refresh, remove one, back to the baseline.
    lesson.address_has(step="20", unit="3", symbol="C")
    everything = lesson.everything()
    lesson.page.reload()
    lesson.ready()
    assert lesson.everything() == everything
    lesson.find(".drop").first.click()
    lesson.changes(1)
    lesson.address_has(do="C=-2.5@20")
    lesson.holds(lesson.run())
    lesson.find(".reset").click()
    lesson.changes(0)
    lesson.place(30, 3, "C")
    assert "do" not in lesson.link()
    lesson.holds(engine_run("lstm"))
    assert lesson.find(".compare").is_hidden()
    assert lesson.find('[data-label="C"] .base').inner_text() == ""


def test_a_clamped_update_gate_of_the_gru(visitor: Visitor):
    lesson = visitor.at("gru?step=12&unit=5&symbol=Z")
    lesson.change("Z", 1.0, "all steps", "all units")
    lesson.address_has(do="Z=1", step="12")
    run = lesson.run()
    lesson.holds(run)
    lesson.place(53, 5, "H")
    lesson.holds(run)
    assert lesson.number("H") == "0.000", "nothing is ever taken in"


# ------------------------------------------------------------------------------------------------ refresh, pages, tabs


def test_a_refresh_keeps_everything(visitor: Visitor):
    lesson = visitor.at(f"gru?{urlencode({'text': TEXT})}")
    lesson.choose("reset", "Reset after the product")
    lesson.choose("update", "Z replaces the old state")
    lesson.place(17, 40, "Z")
    lesson.change("Z", 0.25, "from here on", "all units")
    lesson.address_has(text=TEXT, reset="after", update="replaces", do="Z=0.25@17-", step="17", unit="40", symbol="Z")
    before, table = lesson.everything(), lesson.page.locator("textarea").input_value()
    lesson.page.reload()
    lesson.ready()
    assert (lesson.everything(), lesson.page.locator("textarea").input_value()) == (before, table)
    assert lesson.find(".changes li").count() == 1
    for field, value in (("reset", "Reset after the product"), ("update", "Z replaces the old state")):
        expect(lesson.page.locator(f".st-key-control-{field}").get_by_role("combobox")).to_have_value(value)
    lesson.holds(lesson.run())


def test_the_place_on_the_stage_survives_a_change_of_page(visitor: Visitor):
    lesson = visitor.at("lstm?text=hello+there")
    lesson.place(7, 21, "O")
    lesson.address_has(step="7", unit="21", symbol="O")
    bar = lesson.page.locator(".st-key-bar")
    bar.get_by_role("link", name="GRU").click()
    lesson.page.wait_for_url("**/gru?*")
    settle(lesson.page)
    assert lesson.page.locator("textarea").input_value() == "hello there"
    lesson.page.go_back()
    lesson.page.wait_for_url("**/lstm?*")
    lesson.ready()
    assert urlsplit(lesson.page.url).path == "/lstm"
    assert (lesson.step(), lesson.unit(), lesson.pressed()) == (7, 21, "output gate")
    lesson.holds(lesson.run())
