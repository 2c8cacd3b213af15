"""The stage in a real page: its digits are the trace's, it moves without the server, and anyone can work it."""

import random
import re

import pytest

from tests.browsing import settle
from tests.stage.runs import trace_of
from tests.stage.serving import Stage, expected, frames, shown

# ------------------------------------------------------------------------------------------------------------- digits


@pytest.mark.parametrize("name", ["lstm", "gru", "gru-after-replaces", "rnn"])
def test_the_digits_on_the_stage_are_the_traces_at_ten_random_places(open_stage, name):
    trace = trace_of(name)
    stage = open_stage(model=name)
    draw = random.Random(11)
    symbols = [symbol for symbol, it in trace.symbols.items() if it.axes == "TBH"]
    for _ in range(10):
        step, unit, symbol = draw.randrange(40), draw.randrange(7), draw.choice(symbols)
        stage.go(step, unit, symbol, 40, 7)
        assert stage.position() == f"{step + 1} / 40"
        numbers = stage.numbers()
        assert numbers == {carries: expected(trace, carries, step, unit) for carries in numbers}
        assert set(symbols) <= set(numbers)
        assert stage.table() == {one: shown(trace[one][step, 0, unit]) for one in symbols}
        # The plugged-in line: each slot is the number of that part or operand, or its size behind a minus sign.
        for slot, text in stage.find(".plugged [data-slot]").evaluate_all(
            "(all) => all.map((e) => [e.dataset.slot, e.textContent])"
        ):
            wanted = shown(trace.weights[slot][unit]) if slot in trace.weights else expected(trace, slot, step, unit)
            assert text.strip("()").lstrip("−") == wanted.lstrip("−"), slot
            if slot == f"{symbol}:0":
                assert text == wanted


def test_the_next_token_is_read_from_p(open_stage):
    trace = trace_of()
    stage = open_stage()
    for step in (0, 7, 39):
        stage.go(step, 0, "F", 40, 7)
        row = trace["P"][step, 0]
        items = stage.find(".bars-list li").evaluate_all(
            "(all) => all.filter((e) => !e.hidden).map((e) => [Number(e.dataset.index), e.querySelector('.share').textContent])"
        )
        assert items[0][0] == row.argmax()
        assert len(items) == 8
        for index, share in items:
            assert share == f"{100 * row[index]:.1f}"
        marked = stage.find(".bars-list li.actual").count()
        assert marked == (0 if step == 39 else 1)


# ------------------------------------------------------------------------------------------------------------- motion


def test_stepping_sends_nothing_to_the_server(page_server, new_context):
    context = new_context()
    page = context.new_page()
    seen = frames(page)
    page.goto(page_server.url)
    settle(page)
    stage = Stage(page)
    stage.find(".token.current").wait_for()
    page.wait_for_timeout(500)
    assert seen, "the page itself came through a websocket"
    seen.clear()
    stage.find(".tokens").focus()
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home", "ArrowDown", "ArrowUp", " "):
        page.keyboard.press(key)
    page.wait_for_timeout(2000)
    page.keyboard.press(" ")
    stage.find(".equation").nth(3).click()
    stage.find('[data-strip-box="H"]').hover()
    stage.go(20, 3, "C", 40, 7)
    page.wait_for_timeout(600)
    assert seen == []
    assert stage.position() == "21 / 40"
    assert re.search(r"step=20&unit=3&symbol=C", page.url)


def test_play_moves_pauses_and_stops_at_the_end(open_stage):
    stage = open_stage(text="abcd")
    stage.find("select.speed").select_option("4")
    play = stage.find("button.play")
    play.click()
    assert play.get_attribute("aria-label") == "Pause"
    stage.page.wait_for_function("() => !document.querySelector('x-none')")
    stage.find(".position").get_by_text("4 / 4").wait_for()
    stage.page.wait_for_timeout(300)
    assert play.get_attribute("aria-label") == "Play"
    play.click()
    stage.find(".position").get_by_text("2 / 4").wait_for()
    play.click()


def test_dragging_over_the_text_scrubs(open_stage):
    stage = open_stage()
    row = stage.find(".tokens").bounding_box()
    cells = stage.find(".tokens .token")
    first, last = cells.nth(2).bounding_box(), cells.nth(17).bounding_box()
    mouse = stage.page.mouse
    mouse.move(first["x"] + 3, row["y"] + 8)
    mouse.down()
    assert stage.position() == "3 / 40"
    mouse.move(last["x"] + 3, row["y"] + 60, steps=4)
    assert stage.position() == "18 / 40"
    mouse.up()
    mouse.move(first["x"], row["y"] + 8)
    assert stage.position() == "18 / 40"


def test_a_finger_scrubs_too(open_stage):
    stage = open_stage(options={"viewport": {"width": 390, "height": 844}, "has_touch": True})
    cell = stage.find(".tokens .token").nth(9).bounding_box()
    stage.page.touchscreen.tap(cell["x"] + cell["width"] / 2, cell["y"] + 10)
    assert stage.position() == "10 / 40"


def test_keyboard_alone_works_the_whole_stage(open_stage):
    stage = open_stage()
    page = stage.page
    page.keyboard.press("ArrowRight")  # nothing has the focus yet: the page listens
    assert stage.position() == "2 / 40"
    inside = "document.activeElement?.shadowRoot?.activeElement"
    names = []
    for _ in range(60):
        page.keyboard.press("Tab")
        now = page.evaluate(
            f"() => {{ const e = {inside}; return e && [e.className, e.getAttribute('aria-label') ?? e.textContent,"
            " getComputedStyle(e).outlineStyle, parseFloat(getComputedStyle(e).outlineWidth)]; }"
        )
        if now is None:
            if names:
                break
            continue
        assert now[2] == "solid", f"{now[1]} has no visible focus ring"
        assert now[3] >= 2
        names.append(now[1])
        if "tokens" in now[0]:
            page.keyboard.press("End")
            assert stage.position() == "40 / 40"
            page.keyboard.press("Home")
            page.keyboard.press("ArrowDown")
            assert "unit 1" in stage.find(".unit").inner_text()
        if now[1] == "memory cell":
            page.keyboard.press("Enter")
            assert stage.pressed() == "memory cell"
    for name in (
        "Play",
        "One step back",
        "One step forward",
        "Speed",
        "Position in the text",
        "hidden state",
        "New value",
        "Apply",
    ):
        assert name in names


def test_what_a_screen_reader_is_told(open_stage):
    stage = open_stage()
    slider = stage.find('[role="slider"]')
    assert [slider.get_attribute(f"aria-value{end}") for end in ("min", "max", "now")] == ["1", "40", "1"]
    slider.focus()
    stage.page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "step 2 of 40, “n”"
    live = stage.find('[aria-live="polite"]')
    value = shown(trace_of()["F"][1, 0, 0])
    live.get_by_text(f"forget gate {value}, 2 of 40 “n”, unit 0").wait_for(state="attached")
    assert stage.find("table caption").text_content() == "step 2 “n”, unit 0"
    assert stage.find('[role="img"]').get_attribute("aria-label")


# ------------------------------------------------------------------------------------------------------------ linking


@pytest.mark.parametrize("place", ["formula", "label of the strip", "strip", "wire", "number"])
def test_a_symbol_lights_up_everywhere(open_stage, place):
    stage = open_stage()
    spots = {
        "formula": stage.find('.equations [data-symbol="I"]').first,
        "label of the strip": stage.find(".strip-name").nth(1),
        "strip": stage.find('[data-strip-box="I"]'),
        "wire": stage.find('.node[data-node="I:0"]'),
        "number": stage.find('.label[data-label="I"]'),
    }
    spots[place].hover()
    assert stage.find('.wire[data-carries="I"].lit').count() == 1
    assert stage.find('[data-strip-box="I"].lit').count() == 1
    assert stage.find('.equations [data-symbol="I"].lit').count() == 2
    assert stage.find(".wire.lit").count() == 1
    stage.find("table caption").dispatch_event("pointerenter")
    stage.page.mouse.move(2, 2)
    assert stage.find(".lit").count() == 0


def test_the_state_before_belongs_to_its_symbol(open_stage):
    stage = open_stage()
    stage.find('.equations [data-symbol="C_prev"]').hover()
    lit = stage.find(".wire.lit").evaluate_all("(all) => all.map((e) => e.dataset.carries).sort()")
    assert lit == ["C", "C:1", "C:2", "C_prev"]
    stage.find('.equations [data-symbol="C_prev"]').click()
    assert stage.pressed() == "memory cell"
    assert "Memory cell: what is kept of the old" in stage.find(".meaning").inner_text()


def test_a_click_on_a_wire_selects_its_symbol(open_stage):
    stage = open_stage()
    stage.find('.node[data-node="O:0"]').click()
    assert stage.pressed() == "output gate"
    assert stage.find('[data-strip-box="O"].chosen').count() == 1


def test_the_probabilities_have_an_equation_but_no_unit(open_stage):
    stage = open_stage()
    stage.find(".equation").last.click()
    assert stage.pressed() == "probabilities of the next token"
    assert stage.find(".plugged").is_hidden()
    assert "not for each unit" in stage.find(".place").inner_text()
    assert stage.find(".apply").is_hidden()
    assert stage.find(".what-if .note").inner_text() == "Select a gate, the cell or the state to change it."
    stage.find(".equation").nth(6).click()  # the scores are not sent: nothing to select
    assert stage.pressed() == "probabilities of the next token"


def test_a_cell_under_the_pointer_tells_its_number(open_stage):
    stage = open_stage()
    field = stage.find('[data-strip-box="C"]')
    width = field.bounding_box()["width"]
    field.hover(position={"x": 22.5 * width / 40, "y": 4.5 * 34 / 7})
    assert stage.find(".tip").inner_text().replace("\n", " ").startswith(shown(trace_of()["C"][22, 0, 4]))
    assert "step 23" in stage.find(".tip").inner_text()
    assert "unit 4" in stage.find(".tip").inner_text()
    assert stage.position() == "1 / 40", "looking is not going there"


def test_dragging_in_a_strip_scrubs_and_keeps_the_unit(open_stage):
    stage = open_stage()
    stage.find('[data-strip-box="H"]').scroll_into_view_if_needed()
    box = stage.find('[data-strip-box="H"]').bounding_box()
    mouse, column = stage.page.mouse, box["width"] / 40
    mouse.move(box["x"] + 3.5 * column, box["y"] + 6.5 * 34 / 7)
    mouse.down()
    mouse.move(box["x"] + 30.5 * column, box["y"] + 2, steps=3)
    mouse.up()
    assert (stage.position(), stage.pressed()) == ("31 / 40", "hidden state")
    assert stage.find(".unit").inner_text() == "unit 6"
