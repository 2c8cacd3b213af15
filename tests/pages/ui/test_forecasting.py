"""Lesson 1's config, series and payload: whatever a link or a file says becomes a forecast that can be shown, or a sentence."""

import json
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data import series as data
from engine.sequences.forecasts import HORIZONS
from engine.trace import Array
from pages.ui import documents, forecasting
from pages.ui.config import from_query, to_query
from pages.ui.forecasting import LIMITS, LONGEST, AutoregressionConfig
from pages.ui.texts import sections
from pages.ui.words import words
from tests.lessons import sound, without_browser

TABS = ("horizons", "loop", "lags", "fit", "markov", "code", "data")
CHARTS = {"horizons": 1, "loop": 2, "fit": 1, "markov": 2}
SIZES = {"series": "stocks", "epochs": "2", "hidden": "3"}


def read(**params: str) -> tuple[AutoregressionConfig, list[str]]:
    config, notes = from_query(AutoregressionConfig, params)
    return config, [note.key for note in notes]


def kept(text: str, **params: str) -> AutoregressionConfig:
    """The config of an uploaded table."""
    return read(series="own", data=documents.keep(text, cut=False), **params)[0]


def sentences(config: AutoregressionConfig) -> list[str]:
    return [words(note.key, **note.values) for note in forecasting.source(config).notes]


def test_a_link_is_read_back_as_it_was_written():
    config = AutoregressionConfig(
        series="stocks",
        company="MSFT",
        model="rnn",
        tau=7,
        noise=3,
        hidden=5,
        epochs=2,
        seed=9,
        start=70,
        step=3,
        head=1,
        cut=9,
    )
    assert read(**to_query(config)) == (config, [])
    assert to_query(AutoregressionConfig()) == {}


def test_what_is_not_there_is_left_out_and_told():
    config, notes = read(
        series="gold", model="cnn", tau="0", noise="101", hidden="x", epochs="99", start="-4", step="999", cut="77"
    )
    assert (config.series, config.model, config.tau, config.noise) == ("noisy_sine", "mlp", 1, 100)
    assert (config.hidden, config.epochs, config.start, config.step, config.cut) == (10, 10, 0, 255, 15)
    assert set(notes) >= {"link.series", "link.forecaster", *(f"link.{name}" for name in ("tau", "noise", "hidden", "epochs"))}
    for key in notes:
        assert words(key, low=0, high=1, used=0)


NAMES = ("series", "company", "data", "column", "model", *LIMITS, "seed", "start", "step", "head", "unit", "cut", "symbol")


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=12)))
def test_any_link_gives_a_config_that_can_be_run(params):
    config, _ = from_query(AutoregressionConfig, params)
    for name, (low, high) in LIMITS.items():
        assert low <= getattr(config, name) <= high
    assert 0 <= config.cut < 2 ** len(HORIZONS)
    source = forecasting.source(config)
    if source.series is None:
        assert source.notes
        return
    given = forecasting.problem(config, source.series)
    assert given.first <= given.start < len(given.values)
    assert given.tau < given.train < len(given.values) <= LONGEST


def test_the_series_are_those_of_the_packages():
    for name, length in (("seattle_temperature", 1461), ("sf_temperature", LONGEST), ("stocks", 105)):
        found = forecasting.source(read(series=name)[0])
        assert found.series is not None
        assert len(found.series) == length
        np.testing.assert_array_equal(found.series.values, data.measured(name).values[:length])
    assert forecasting.source(read(series="sf_temperature")[0]).total == 8759
    assert any("8,759" in text for text in sentences(read(series="sf_temperature")[0]))


def test_a_series_whose_package_is_missing_is_said_plainly(monkeypatch):
    def missing(name: str, company: str) -> None:
        raise data.SeriesMissing(name, "vega_datasets")

    monkeypatch.setattr(forecasting, "measured", missing)
    forecasting._named.clear()
    assert "pip install vega_datasets" in sentences(read(series="seattle_temperature")[0])[0]
    page = without_browser("autoregression", series="seattle_temperature")
    assert any("pip install vega_datasets" in text.value for text in page.text)
    forecasting._named.clear()


NUMBERS = "\n".join(f"{t},{(t * 7) % 11}.5" for t in range(30))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds nothing"),
        ("a,b\nx,y\nz,w", "None of the 2 columns"),
        ("x\n1", "None of the 1 columns"),
        ("x\n" + "\n".join(map(str, range(11))), "11 numbers; 12 are needed"),
        ("x\n" + "\n".join(["1e200"] * 20), "1e+30"),
        ("x;y\n" + "\n".join(f"{t},5;{t}" for t in range(20)), "decimal comma"),
        ("t,x\n" + "\n".join(f"d,{x}" for x in ["1", "2", "", "n/a", *range(20)]), "2 gaps were filled"),
        ("x,y\n" + NUMBERS + "\n1,2,3", "more or fewer cells"),
        ("\n".join(",".join(str(t * k % 7) for k in range(1500)) for t in range(13)), "Of 1,500 columns the first 1,000"),
        ("x\n" + "\n".join(str(t % 9) for t in range(2000)), "Of 2,000 values the first 1,500"),
    ],
)
def test_a_bad_or_odd_file_gets_a_sentence(text: str, told: str):
    config = kept(text)
    assert any(told in sentence for sentence in sentences(config)), sentences(config)
    page = without_browser("autoregression", **to_query(config), model="linear")
    assert any(told in each.value for each in page.text)


def test_a_table_that_is_not_there_any_more_is_said():
    page = without_browser("autoregression", series="own", data="0" * 24)
    assert words("series.lost") in [text.value for text in page.text]
    assert words("series.none") in [text.value for text in without_browser("autoregression", series="own").text]


def test_the_columns_of_a_table_are_numbered_and_keep_their_names():
    text = "日期,<b>x</b>,x,<b>x</b>,,气温\n" + "\n".join(f"d{t},{t},{t % 3},{t % 5},{t % 7},{t / 2}" for t in range(20))
    page = without_browser("autoregression", **to_query(kept(text, column="3")), model="linear")
    (box,) = [box for box in page.selectbox if box.key == "control-column"]
    assert box.options == ["2: <b>x</b>", "3: x", "4: <b>x</b>", "5", "6: 气温"]
    assert box.value == 3
    found = forecasting.source(kept(text, column="3")).series
    assert found is not None
    assert found.values.tolist() == [t % 5 for t in range(20)]
    assert found.labels[0] == "d0"
    sound(box.set_value(5).run())
    assert page.session_state["config"].column == 5
    assert forecasting.source(kept(text, column="0")).series.values.tolist() == list(
        range(20)
    )  # no numbers there: the next one


@pytest.mark.parametrize("model", ["linear", "mlp", "rnn"])
@pytest.mark.parametrize("values", ["constant", "shortest"])
def test_small_and_flat_series_are_shown(model: str, values: str):
    text = "x\n" + "\n".join(["7"] * 30 if values == "constant" else [str(t % 4) for t in range(12)])
    config = kept(text, model=model, tau="9", epochs="1")
    page = without_browser("autoregression", **to_query(config))
    assert len(page.metric) == 7
    assert all("nan" not in metric.value for metric in page.metric)
    header, block = unpacked(config)
    assert header["steps"] == header["sizes"]["T"]
    assert np.isfinite(array(header, block, "run")).all()


def unpacked(config: AutoregressionConfig) -> tuple[dict[str, Any], Array]:
    series = forecasting.source(config).series
    assert series is not None
    payload = forecasting.packed(forecasting.problem(config, series), "en")
    length = int.from_bytes(payload[:4], "little")
    return json.loads(payload[4 : 4 + length]), np.frombuffer(payload[4 + length :], dtype="<f4")


def array(header: dict[str, Any], block: Array, name: str) -> Array:
    place = header["arrays"][name]
    size = int(np.prod(place["shape"]))
    return block[place["offset"] : place["offset"] + size].reshape(place["shape"])


@pytest.mark.parametrize("model", ["linear", "mlp", "rnn"])
def test_the_payload_holds_the_runs_numbers(model: str):
    config = read(model=model, start="70", **SIZES)[0]
    header, block = unpacked(config)
    given = problem_of(model=model, start="70", **SIZES)
    run = forecasting.asked(given)
    np.testing.assert_array_equal(array(header, block, "run"), run.following.predictions.astype(np.float32))
    np.testing.assert_array_equal(array(header, block, "x_hat")[..., 0], array(header, block, "run"))
    np.testing.assert_array_equal(array(header, block, "series"), given.values.astype(np.float32))
    starts = array(header, block, "starts").astype(int)
    at = int(np.argmin(abs(starts - 80)))
    ghost = run.model.ahead(given.values, 5, [starts[at]])[0]
    np.testing.assert_allclose(array(header, block, "ghosts")[at, :5], ghost, rtol=1e-6)
    assert len(block) * 4 < 600_000


def test_fits_are_shared_and_the_seed_decides():
    one, two = (forecasting.fit(problem_of(step=step, **SIZES)) for step in ("0", "7"))
    assert one is two
    other = forecasting.fit(problem_of(seed="1", **SIZES))
    assert one.losses[-1] != other.losses[-1]
    forecasting._fit.clear()
    again = forecasting.fit(problem_of(**SIZES))
    np.testing.assert_array_equal(one.losses, again.losses)


def problem_of(**params: str) -> forecasting.Problem:
    config = read(**params)[0]
    series = forecasting.source(config).series
    assert series is not None
    return forecasting.problem(config, series)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("model", ["linear", "mlp", "rnn"])
def test_every_tab_opens(model: str, lang: str):
    page = without_browser("autoregression", model=model, lang=lang, **SIZES)
    for name in TABS:
        page.session_state["more"] = words(f"tab.{name}", lang=lang)
        sound(page.run())
        charts = len(page.get("vega_lite_chart")) + len(page.get("arrow_vega_lite_chart"))
        assert charts == (0 if name == "fit" and model == "linear" else CHARTS.get(name, 0)), name


@pytest.mark.parametrize("text", ["x", "ab", "abababab", "你好，世界。你好", "<b>a</b> <b>a</b>"])
def test_a_chain_of_any_text(text: str):
    page = without_browser("autoregression", model="linear", text=text, **SIZES)
    page.session_state["more"] = words("tab.markov")
    sound(page.run())
    if len(text) == 1:
        assert words("markov.short") in [each.value for each in page.text]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_question_is_answered_and_every_walk_leads_somewhere(lang: str):
    page = without_browser("autoregression", lang=lang)
    for number in range(1, 8):
        sound(page.pagination(key="question").set_value(number).run())
        sound(page.radio[0].set_value(page.radio[0].options[0]).run())
        reveal = next(button for button in page.button if button.label == words("check.reveal", lang=lang))
        sound(reveal.click().run())
        assert page.radio[0].disabled
    walks = [text for name, text in sections("autoregression", lang).items() if name.startswith("try.")]
    for text in walks:
        link = dict(parse_qsl(text.partition("\n")[0].removeprefix("link:").strip()))
        assert read(**link)[1] == []
