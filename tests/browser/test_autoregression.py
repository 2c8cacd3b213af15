"""Lesson 1 in a real browser: every number of a forecast is the engine's, it grows without a message, and files are read."""

import re
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from engine.sequences.comparing import errors_after
from engine.sequences.questions import ForecastRun
from pages.ui import forecasting
from pages.ui.config import from_query
from pages.ui.forecasting import AutoregressionConfig
from pages.ui.words import words
from tests.browser.opening import lesson_opener, shown
from tests.browsing import settle
from tests.stage.serving import Stage

pytestmark = pytest.mark.browser

open_lesson = lesson_opener("autoregression", Stage, lambda stage: stage.find(".series.near .now").first)


def config_of(page: Page) -> AutoregressionConfig:
    return from_query(AutoregressionConfig, dict(parse_qsl(urlsplit(page.url).query)))[0]


def run_of(config: AutoregressionConfig) -> ForecastRun:
    """The engine's own run of a config (not of an uploaded file: those are on the server)."""
    series = forecasting.source(config).series
    assert series is not None
    return forecasting.asked(forecasting.problem(config, series))


def read(stage: Stage, name: str) -> str:
    return stage.find(f'[data-readout="{name}"]').inner_text()


def holds(stage: Stage, run: ForecastRun, step: int, teacher: int) -> None:
    """Assert that what the page shows of a step is the engine's."""
    found = run.following
    assert read(stage, "run") == shown(found.predictions[teacher, step])
    assert read(stage, "truth") == shown(found.truth[step])
    assert read(stage, "error") == shown(found.errors[teacher, step])
    own = 0 if teacher else min(step, run.width)
    assert read(stage, "own") == str(own)
    assert stage.find(".series.near text.value").text_content() == shown(found.predictions[teacher, step])
    assert stage.find(".series.near .said.read").count() == own
    assert stage.find(".series.near .seen.read").count() == run.width - own
    slots = stage.find(".plugged [data-slot]").evaluate_all("(all) => all.map((e) => [e.dataset.slot, e.textContent])")
    trace = found.trace
    for slot, text in slots:
        value = trace.weights[slot] if slot in trace.weights else trace["Y" if slot == "Y" else "x_hat"][teacher, step, 0]
        assert text.strip("()").lstrip("−") == shown(float(value)).lstrip("−"), slot


def test_a_forecast_grows_step_by_step_with_the_engines_numbers_and_no_message(open_lesson):
    stage, seen = open_lesson()
    page, run = stage.page, run_of(config_of(stage.page))
    errors = errors_after(run.model, run.values, run.train).rms
    for k in (1, 4, 16, 64):
        assert stage.find(f'[data-rms="{k}"]').inner_text() == shown(errors[k - 1])
    before = len(seen)
    holds(stage, run, 0, 0)
    stage.find(".transport .forward").focus()
    for step in range(1, 6):
        page.keyboard.press("ArrowRight")
        holds(stage, run, step, 0)
    stage.find(".series-controls button").filter(has_text="Teacher on").click()
    holds(stage, run, 5, 1)
    box = stage.find(".series.whole").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 46 + (600 + 200) / 999 * (box["width"] - 60), box["y"] + 60)
    step = int(stage.find(".transport .position").inner_text().split(" / ")[0]) - 1
    assert abs(step - 200) <= 1
    holds(stage, run, step, 1)
    stage.find(".series-controls button").filter(has_text="own predictions").click()
    holds(stage, run, step, 0)
    drawn = stage.find(".series.whole .run").get_attribute("d")
    assert drawn.count("L") == step
    for k in (4, 64):
        stage.find(f'.ksteps [data-k="{k}"]').click()
    assert stage.find(".series.whole .kstep.on").count() == 2
    stage.find(".series.near .said.read").first.click()
    holds(stage, run, step - run.width, 0)
    stage.find(".transport .play").click()
    page.wait_for_timeout(600)
    stage.find(".transport .play").click()
    played = int(stage.find(".transport .position").inner_text().split(" / ")[0]) - 1
    assert played > step - run.width
    holds(stage, run, played, 0)
    page.wait_for_timeout(700)
    assert len(seen) == before
    config = config_of(page)
    assert (config.step, config.head, config.cut) == (played, 0, 0b1010)


def test_the_equation_of_a_prediction_is_written_out_in_numbers(open_lesson):
    stage, _ = open_lesson(model="linear", step="2", symbol="Y")
    run = run_of(config_of(stage.page))
    trace = run.following.trace
    X, W = trace["X"][0, 2], trace.weights["W_xy"][:, 0]
    rows = stage.find(".terms .term-row").evaluate_all(
        "(all) => all.map((row) => [...row.querySelectorAll('.digits span')].map((e) => e.textContent))"
    )
    assert rows == [
        [shown(x) for x in X],
        [shown(w) for w in W],
        [shown(np.float32(x) * np.float32(w)) for x, w in zip(X, W, strict=True)],
    ]
    assert stage.find(".term-sum").inner_text().endswith(shown(trace.terms["Y:1"][0, 2, 0]))


def test_the_start_is_dragged_without_a_message_and_the_run_follows_where_it_is_let_go(open_lesson):
    stage, seen = open_lesson(series="stocks", model="linear", tau="3")
    page, before = stage.page, len(seen)
    handle = stage.find(".start-handle")
    box, picture = handle.bounding_box(), stage.find(".series.whole").bounding_box()
    assert box is not None
    assert picture is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 8)
    page.mouse.down()
    for share in (0.7, 0.8, 0.5):
        page.mouse.move(picture["x"] + 46 + share * (picture["width"] - 60), box["y"] + 8)
    assert stage.find(".series.whole .ghost").get_attribute("d").startswith("M")
    assert len(seen) == before
    page.mouse.up()
    expect(stage.find(".series-view.trying")).to_have_count(0)
    settle(page)
    config = config_of(page)
    assert abs(config.start - 52) <= 2
    holds(stage, run_of(config), 0, 0)
    expect(page.locator(".st-key-control-start")).to_contain_text(str(config.start + 1))


def upload(page: Page, name: str, content: bytes) -> None:
    if not page.locator("[data-testid=stFileUploader]").is_visible():
        page.get_by_role("button", name=words("series.file")).click()
    page.locator("[data-testid=stFileUploader] input").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )
    settle(page)


def test_a_table_in_gbk_with_odd_names_is_asked_about_shown_and_comes_back_by_its_link(open_lesson, new_context):
    stage, _ = open_lesson(model="linear", tau="2")
    page = stage.page
    table = "日期,气温,<img src=x onerror=alert(1)>,气温\n" + "\n".join(f"第{t}天,{20 + t % 5},{t},{t % 7}" for t in range(40))
    upload(page, "weather.csv", table.encode("gbk"))
    preview = page.locator("[data-testid=stText]", has_text="气温").first
    expect(preview).to_be_visible()
    page.get_by_role("button", name="GB18030").click()
    settle(page)
    config = config_of(page)
    assert (config.series, config.column) == ("own", 1)
    assert page.locator("img[src=x]").count() == 0
    assert "GB18030".lower() in page.locator(".st-key-notes").inner_text().lower()
    assert "40 values" in page.locator(".st-key-series-source").inner_text()
    assert "第" in stage.find(".reads").inner_text()
    box = page.locator(".st-key-control-column").get_by_role("combobox")
    box.click()
    options = page.get_by_role("option")
    assert options.all_inner_texts() == ["2: 气温", "3: <img src=x onerror=alert(1)>", "4: 气温"]
    options.nth(2).click()
    settle(page)
    measured = read(stage, "truth")
    assert measured == f"{24 % 7:.3f}"
    for again in (page, new_context().new_page()):
        again.goto(page.url)
        settle(again)
        other = Stage(again)
        other.find(".series.near .now").first.wait_for()
        assert read(other, "truth") == measured
        assert config_of(again).column == 3


def test_files_that_hold_no_series_get_a_sentence_and_flat_ones_a_forecast(open_lesson):
    stage, _ = open_lesson(model="linear")
    page = stage.page
    for content, told in (
        (b"x\n5\n", "None of the 1 columns"),
        (b"x\n1\n2\n3\n", "3 numbers; 12 are needed"),
        (b"", "holds nothing"),
    ):
        upload(page, "short.csv", content)
        expect(page.locator(".st-key-series-notes")).to_contain_text(told)
        assert stage.root.count() == 0
        assert page.get_by_text(words("text.empty")).count() == 0, "nobody asked for a sample of a text"
    upload(page, "flat.csv", b"x\n" + b"7\n" * 30)
    stage.find(".series.near .now").first.wait_for()
    settle(page)
    assert [read(stage, name) for name in ("run", "truth", "error")] == ["7.000", "7.000", "0.000"]
    assert page.locator("[data-testid=stException]").count() == 0


def test_a_phone_in_the_dark_in_chinese(open_lesson):
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    stage, _ = open_lesson(options=options, lang="zh", series="seattle_temperature", model="linear", cut="15")
    assert stage.page.evaluate("document.documentElement.scrollWidth") <= 390
    for part in (".series-controls button", ".start-handle", ".series.whole"):
        for box in stage.find(part).evaluate_all(
            "(all) => all.map((e) => e.getBoundingClientRect()).map((b) => [b.left, b.right])"
        ):
            assert box[0] >= 0
            assert box[1] <= 390
    text = stage.root.inner_text()
    assert not re.search(r"[A-Za-z]{4,}", re.sub(r"\s", "", "".join(re.findall(r"[一-鿿].*", text)))), text
