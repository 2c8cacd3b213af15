"""The lesson on layers and directions without a browser: every shape, tab, question and step of the walk."""

from urllib.parse import parse_qsl

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.recurrent.generation import go_on
from engine.recurrent.questions import QUESTIONS
from engine.recurrent.reach import leak
from engine.text.display import visible
from engine.training import checkpoints
from pages.figures.figure import percent
from pages.ui import runs, texts
from pages.ui.config import from_query, to_query
from pages.ui.memory import TRAINED, DeepConfig
from pages.ui.words import LANGUAGES, words
from tests.lessons import STRANGE, link_of, sound, without_browser

TABS = ("look", "influence", "leak", "generate", "states", "code", "data")
SHAPES = [
    {"model": "deep-gru"},
    {"model": "bidirectional-gru"},
    {"model": "untrained"},
    {"model": "untrained", "layers": "1"},
    {"model": "untrained", "layers": "3", "directions": "both", "cell": "lstm"},
    {"model": "untrained", "layers": "4", "cell": "rnn"},
]
TEXT = "And God said, Let there be light"


def opened(page: AppTest, tab: str) -> AppTest:
    page.session_state["more"] = words(f"tab.{tab}")
    return sound(page.run())


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_opens_with_every_tab(shape: dict[str, str]):
    page = without_browser("deep_rnn", text=TEXT, **shape)
    assert [tab.label for tab in page.tabs] == [words(f"tab.{name}") for name in TABS]
    for name in TABS:
        opened(page, name)
        charts = len(page.get("vega_lite_chart")) + len(page.get("arrow_vega_lite_chart"))
        assert charts == (name in ("influence", "leak", "states")), name


@pytest.mark.parametrize("kind", STRANGE)
def test_every_text_opens_with_every_tab(kind: str):
    page = without_browser("deep_rnn", text=STRANGE[kind], model="bidirectional-gru")
    for name in ("influence", "leak", "generate", "states"):
        opened(page, name)
    assert page.text_area(key="text").value == STRANGE[kind]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("shape", SHAPES[:3])
def test_questions_are_answered_in_both_languages(shape: dict[str, str], lang: str):
    page = without_browser("deep_rnn", lang=lang, **shape)
    asked = 0
    for number in range(1, len(QUESTIONS["deep_rnn"]) + 1):
        sound(page.pagination(key="question").set_value(number).run())
        if not page.radio:
            continue
        asked += 1
        sound(page.radio[0].set_value(page.radio[0].options[0]).run())
        reveal = next(button for button in page.button if button.label == words("check.reveal", lang=lang))
        sound(reveal.click().run())
        assert page.radio[0].disabled
    assert asked >= 4


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_step_of_the_walk_sets_the_page_up(lang: str):
    page = without_browser("deep_rnn", lang=lang, text=TEXT)
    steps = [text for name, text in texts.sections("deep_rnn", lang).items() if name.startswith("try.")]
    assert len(steps) >= 4
    for number, text in enumerate(steps, start=1):
        sound(page.pagination(key="try").set_value(number).run())
        sound(next(button for button in page.button if button.label == words("try.set", lang=lang)).click().run())
        asked = dict(parse_qsl(text.partition("\n")[0].removeprefix("link:").strip()))
        config, notes = from_query(DeepConfig, {"text": TEXT} | asked)
        assert notes == ()
        assert page.session_state["config"] == config
        assert {name: value for name, value in link_of(page).items() if name != "lang"} == {"text": TEXT} | asked


def test_bad_links_are_said_and_survived():
    for params, said in [
        ({"model": "untrained", "layers": "9"}, "number of layers"),
        ({"model": "untrained", "cell": "cnn"}, "cell"),
        ({"model": "untrained", "directions": "up"}, "directions"),
        ({"layer": "2"}, "layer"),
        ({"do": "H=0@3"}, "could not be read"),
        ({"do": "layers.7.forward.H=0"}, "could not be read"),
        ({"do": "layers.1.forward.H=7"}, "nearest bound"),
        ({"do": "layers.1.backward.H=0"}, "could not be read"),
    ]:
        page = without_browser("deep_rnn", text=TEXT, **params)
        assert any(said in text.value for text in page.text), params


def test_a_config_is_its_link():
    params = {
        "text": TEXT,
        "model": "untrained",
        "cell": "lstm",
        "layers": "3",
        "directions": "both",
        "layer": "5",
        "do": "layers.2.backward.C=-2.5@3-9#1",
    }
    config, notes = from_query(DeepConfig, params)
    assert (to_query(config), notes) == (params, ())
    assert list(config.interventions()) == ["layers.2.backward.C"]
    trained, _ = from_query(DeepConfig, {"model": "bidirectional-gru", "layers": "4"})
    assert trained.shape == ("gru", 1, "both"), "a trained model has a shape of its own"


def test_the_table_of_the_leak_holds_the_engines_numbers():
    page = opened(without_browser("deep_rnn", text=TEXT), "leak")
    table = page.dataframe[-1].value.to_dict("records")
    assert len(table) == len(TRAINED)
    for row, name in zip(table, TRAINED, strict=True):
        checkpoint = checkpoints.load(name)
        found = leak(checkpoint.model, torch.tensor(checkpoint.vocabulary[list(TEXT)]))
        assert list(row.values())[1:3] == [percent(float(found.seen_right.mean())), percent(float(found.blind_right.mean()))]
    found = leak(checkpoint.model, torch.tensor(checkpoint.vocabulary[list(TEXT)]))
    assert found.seen_right.mean() > 0.9, "it has read the answer"
    assert found.seen_right.mean() - found.blind_right.mean() > 0.3, "it hardly had to learn to predict"


def test_what_is_written_is_what_the_engine_writes():
    page = opened(without_browser("deep_rnn", text=TEXT), "generate")
    assert len(page.code) == len(TRAINED)
    for block, name in zip(page.code, TRAINED, strict=True):
        checkpoint = checkpoints.load(name)
        written = go_on(checkpoint.model, checkpoint.vocabulary[list(TEXT)], 60)
        assert block.value.endswith("".join(map(visible, checkpoint.vocabulary.to_tokens(list(written)))))


def test_the_upper_layer_reads_the_lower_ones_states():
    config, _ = from_query(DeepConfig, {"text": TEXT})
    run = runs.run("gru", config)
    lower, upper = (run.trace[f"layers.{layer}.forward.H"] for layer in (0, 1))
    weights = run.trace.weights["layers.1.forward.W_xz"]
    assert run.trace.terms["layers.1.forward.Z:2"] == pytest.approx(lower @ weights, abs=1e-5)
    assert upper.shape == lower.shape
