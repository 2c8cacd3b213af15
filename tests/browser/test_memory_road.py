"""The lessons on plain, deep and bidirectional networks in a real browser: digits, motion without the server, what-ifs."""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Browser, expect

from engine.notation import format_number
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.trace import Trace
from engine.training import checkpoints
from pages.ui.config import from_query
from pages.ui.memory import DeepConfig, RNNConfig
from tests.browser.lesson_page import LessonPage, Visitor, percent
from tests.browsing import LiveServer, settle
from tests.lessons import STRANGE, engine_run, query
from tests.stage.serving import expected, frames, shown

TEXT = "And the evening (and the morning) were the first day."
ODD = ["one character", "repeated", "digits", "markup", "emoji", "Chinese", "256 characters"]


@pytest.fixture(scope="module")
def visitor(server: LiveServer, chromium: Browser) -> Iterator[Visitor]:
    one = Visitor(server, chromium)
    yield one
    one.close()


def deep_trace(address: str) -> Trace:
    """What a link to the deep lesson describes, run by the engine alone."""
    config, _ = from_query(DeepConfig, query(address))
    cell, layers, directions = config.shape
    checkpoint = checkpoints.load(cell if config.model == "untrained" else config.model)
    model = checkpoint.model
    if config.model == "untrained":
        draw = torch.Generator().manual_seed(config.seed)
        size = len(checkpoint.vocabulary)
        model = RecurrentLanguageModel(cell, size, 24, layers, directions == "both", generator=draw)
    ids = torch.tensor(checkpoint.vocabulary[list(config.text)]).unsqueeze(1)
    return model.trace(ids, do=config.interventions())


def put(lesson: LessonPage, trace: Trace, step: int, unit: int, symbol: str) -> None:
    """Go to a cell of the layer that is shown: a click on the strip, keys for units that share a pixel."""
    name = next(name for name in trace if name.endswith(f".{symbol}"))
    steps, units = trace[name].shape[0], trace[name].shape[-1]
    field = lesson.find(f'[data-strip-box="{symbol}"]')
    box = field.bounding_box()
    assert box is not None
    field.click(position={"x": (step + 0.5) * box["width"] / steps, "y": (unit + 0.5) * 34 / units})
    for _ in range(units):
        if lesson.unit() == unit:
            break
        lesson.page.keyboard.press("ArrowDown" if lesson.unit() < unit else "ArrowUp")
    assert (lesson.step(), lesson.unit()) == (step, unit)


def chain(lesson: LessonPage) -> dict[tuple[int, int], str]:
    """The numbers in the boxes of the unrolled model, by row and column."""
    found = lesson.find("[data-chain]").evaluate_all("(all) => all.map((e) => [e.dataset.chain, e.textContent])")
    return {(int(at.split(":")[0]), int(at.split(":")[1])): text for at, text in found}


def chain_holds(lesson: LessonPage, trace: Trace, rows: list[str]) -> None:
    """Assert that every box holds the state of the chosen unit, and every column its token and its likeliest next token."""
    step, unit, steps = lesson.step(), lesson.unit(), len(trace)
    boxes = chain(lesson)
    count = 1 + max(column for _, column in boxes)
    first = min(max(step - count // 2, 0), steps - count)
    assert len(boxes) == count * len(rows)
    for (row, column), text in boxes.items():
        assert text == format_number(float(trace[rows[row] + "H"][first + column, 0, unit]), 2, minus="−")
    shares = lesson.find(".chain-share").all_inner_texts()
    assert shares == [percent(trace["P"][t, 0].max()) + "%" for t in range(first, first + count)]


def test_every_digit_of_the_plain_network_is_the_engines(visitor: Visitor):
    lesson = visitor.at(f"rnn?{urlencode({'text': TEXT})}")
    run = engine_run("rnn", lesson.page.url)
    for step, unit in ((0, 0), (12, 7), (30, 63), (len(TEXT) - 1, 31)):
        lesson.place(step, unit, "H")
        assert lesson.numbers() == {name: expected(run.trace, name, step, unit) for name in ("H_prev", "H")}
        assert lesson.table() == {"H": shown(run.trace["H"][step, 0, unit])}
        assert [index for index, *_ in lesson.bars()][:7] == [index for index, _ in run.next_tokens(step, 7)]
        chain_holds(lesson, run.trace, [""])


def test_activation_radius_and_order_are_run_and_linked(visitor: Visitor):
    lesson = visitor.at(f"rnn?{urlencode({'text': TEXT, 'radius': 0.9, 'activation': 'relu', 'shuffle': 3, 'keep': 5})}")
    config, notes = from_query(RNNConfig, query(lesson.page.url))
    assert notes == ()
    run = engine_run("rnn", lesson.page.url)
    tokens = lesson.find(".tokens .token").all_inner_texts()
    assert "".join(tokens).replace("␣", " ") == "".join(config.tokens)
    lesson.place(20, 11, "H")
    chain_holds(lesson, run.trace, [""])
    measures = lesson.page.locator("[data-testid=stMetricValue]").all_inner_texts()
    assert measures[0] == "0.900"
    assert measures[3] == str(len(run.vocabulary))


def test_the_radius_can_be_emptied_again_and_a_pin_of_the_tab_stands_on_the_stage(visitor: Visitor):
    lesson = visitor.at("rnn?radius=0.5")
    field = lesson.page.locator(".st-key-control-radius input")
    field.fill("")
    field.press("Enter")
    settle(lesson.page)
    assert "radius" not in lesson.page.url
    assert field.input_value() == ""
    lesson.page.get_by_role("tab", name="Units", exact=True).click()
    settle(lesson.page)
    lesson.page.locator(".st-key-pin-own").get_by_role("button", name="Pin", exact=True).click()
    lesson.find(".pin").first.wait_for()
    lesson.page.locator(".st-key-pins button").click()
    lesson.find(".pin").first.wait_for(state="detached")


def test_a_pinned_unit_is_found_again(visitor: Visitor):
    lesson = visitor.at(f"rnn?{urlencode({'text': TEXT, 'pin': '12:brackets <b>;40'})}")
    pins = lesson.find(".pin")
    assert pins.all_inner_texts() == ["unit 12 · brackets <b>", "unit 40"]
    seen = frames(lesson.page)
    pins.nth(1).click()
    assert lesson.unit() == 40
    pins.nth(0).click()
    assert lesson.unit() == 12
    assert pins.nth(0).get_attribute("aria-pressed") == "true"
    assert seen == []


def test_layers_and_time_move_without_the_server(visitor: Visitor):
    page = visitor.context.new_page()
    seen = frames(page)
    lesson = visitor.at(f"deep_rnn?{urlencode({'text': TEXT})}", page)
    trace = deep_trace(page.url)
    page.wait_for_timeout(500)
    seen.clear()
    rows = ["layers.0.forward.", "layers.1.forward."]
    for layer, step, unit in ((1, 20, 5), (0, 33, 47), (1, 0, 0)):
        lesson.find(".layers .choice button").nth(layer).click()
        put(lesson, trace, step, unit, "Z")
        own = {name: trace[rows[layer] + name] for name in ("R", "Z", "H_tilde", "H")}
        assert lesson.table() == {name: shown(values[step, 0, unit]) for name, values in own.items()}
        for slot, text in lesson.slots():
            value = trace.operand(rows[layer], slot, step, 0, unit) if slot != "Z" else trace[rows[layer] + "Z"][step, 0, unit]
            assert text.strip("()").lstrip("−") == shown(value).lstrip("−"), slot
        chain_holds(lesson, trace, rows)
        expect(lesson.find(".diagram .node.token")).to_have_text("H of layer 1" if layer else re.compile("^.$"))
    lesson.find('[data-chain="0:2"]').click()
    assert lesson.find(".layers [aria-pressed=true]").inner_text() == "layer 1"
    lesson.address_has(layer="0", symbol="H")
    page.wait_for_timeout(1700)
    assert seen == []
    page.close()


def test_a_backward_direction_is_read_from_the_end(visitor: Visitor):
    lesson = visitor.at(f"deep_rnn?{urlencode({'text': TEXT, 'model': 'bidirectional-gru', 'layer': 1, 'step': 9, 'unit': 3})}")
    trace = deep_trace(lesson.page.url)
    back = trace["layers.0.backward.H"]
    assert lesson.numbers()["H_prev"] == shown(back[10, 0, 3]), "the step before of one that reads from the end"
    assert re.sub(r"\s", "", lesson.find('.diagram [data-node="H_prev"]').inner_text()) == "Ht+1"
    put(lesson, trace, len(TEXT) - 1, 3, "H")
    assert lesson.numbers()["H_prev"] == "0.000"
    chain_holds(lesson, trace, ["layers.0.forward.", "layers.0.backward."])


def test_a_change_in_one_layer_is_run_in_that_layer(visitor: Visitor):
    lesson = visitor.at(f"deep_rnn?{urlencode({'text': TEXT, 'layer': 1, 'step': 9, 'unit': 3, 'symbol': 'H'})}")
    lesson.change("H", 0.5, "this step", "all units")
    lesson.address_has(do="layers.1.forward.H=0.5@9", layer="1")
    trace = deep_trace(lesson.page.url)
    assert lesson.numbers()["H"] == "0.500"
    assert "layer 2" in lesson.find(".changes li").inner_text()
    put(lesson, trace, 12, 3, "H")
    assert lesson.numbers()["H"] == shown(trace["layers.1.forward.H"][12, 0, 3])
    lesson.find(".layers .choice button").nth(0).click()
    assert lesson.find(".clamped").count() == 0, "the other layer is not changed"


@pytest.mark.parametrize("kind", ODD)
def test_strange_texts_stand_in_the_unrolled_model(visitor: Visitor, kind: str):
    lesson = visitor.at(f"deep_rnn?{urlencode({'text': STRANGE[kind], 'model': 'bidirectional-gru', 'step': 4})}")
    trace = deep_trace(lesson.page.url)
    chain_holds(lesson, trace, ["layers.0.forward.", "layers.0.backward."])
    lesson.sound()


def test_on_a_phone_nothing_is_wider_than_the_page(server: LiveServer, chromium: Browser):
    phone = Visitor(server, chromium, viewport={"width": 390, "height": 844}, color_scheme="dark", locale="zh-CN")
    for address in ("rnn?lang=zh&pin=12", "deep_rnn?lang=zh&model=untrained&layers=4&directions=both"):
        lesson = phone.at(address)
        assert lesson.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert lesson.find("[data-chain]").count() >= 3
        lesson.sound()
    phone.close()
