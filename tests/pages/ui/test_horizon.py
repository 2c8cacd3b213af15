"""Lesson 5's config and payload: whatever a link says becomes a map that can be shown, and its numbers are the engine's."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.config import from_query, to_query
from pages.ui.horizon import TruncationConfig, flow_of, full_flow
from pages.ui.texts import sections
from pages.ui.words import words
from tests.lessons import STRANGE, sound, without_browser

TABS = ("truncations", "growth", "scalar", "clipping", "data")


def read(**params: str) -> tuple[TruncationConfig, list[str]]:
    config, notes = from_query(TruncationConfig, params)
    return config, [note.key for note in notes]


def test_a_link_is_read_back_as_it_was_written():
    config = TruncationConfig(
        text="abcabc", network="gru", model="untrained", seed=3, truncation="window", length=3, percent=50, step=4, key=0, cut=2
    )
    assert read(**to_query(config)) == (config, [])
    assert to_query(TruncationConfig()) == {}
    assert read(text="abc") == (TruncationConfig(text="abc", step=1, key=1, cut=1), [])


def test_what_is_not_there_is_left_out_and_told():
    config, notes = read(text="abc", network="cnn", truncation="half", length="0", percent="200", step="9", cut="-1")
    assert (config.network, config.truncation, config.length, config.percent) == ("rnn", "full", 1, 100)
    assert (config.step, config.cut) == (1, 0)
    assert {"link.network", "link.truncation", "link.percent", "link.step", "link.cut"} <= set(notes)


NAMES = ("network", "model", "seed", "truncation", "length", "percent", "step", "key", "cut")


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=12)))
def test_any_link_gives_a_config_that_can_be_run(params):
    config, _ = from_query(TruncationConfig, params)
    assert max(config.step, config.key, config.cut) < len(config.tokens)
    assert config.chosen.kind == config.truncation


@pytest.mark.parametrize("kind", STRANGE)
def test_every_text_opens(kind: str):
    page = without_browser("truncation", text=STRANGE[kind], truncation="chunks", length="4")
    if kind == "one character":
        assert words("truncation.nothing") in [text.value for text in page.text]
        return
    measures = {metric.label: metric.value for metric in page.metric}
    config, _ = read(text=STRANGE[kind], truncation="chunks", length="4")
    connected = int((flow_of(config).shares > 0).sum())
    assert measures[words("truncation.pairs")] == f"{connected:,}"
    assert len(config.tokens) == min(len(STRANGE[kind]), 128) - 1


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("network", ["rnn", "lstm"])
def test_every_tab_opens(network: str, lang: str):
    page = without_browser("truncation", network=network, truncation="randomized", text="In the beginning God", lang=lang)
    for name in TABS:
        page.session_state["more"] = words(f"tab.{name}", lang=lang)
        sound(page.run())
        charts = len(page.get("vega_lite_chart")) + len(page.get("arrow_vega_lite_chart"))
        assert charts == {"growth": 1, "clipping": 1}.get(name, 0), name


def test_two_characters_have_a_map_but_nothing_to_truncate():
    page = without_browser("truncation", text="xy")
    assert words("truncation.no_past") in [text.value for text in page.text]
    page.session_state["more"] = words("tab.truncations")
    assert [text.value for text in sound(page.run()).text].count(words("truncation.no_past")) == 2


def test_the_scalar_example_is_that_of_the_reference():
    page = without_browser("truncation", text="In the beginning")
    page.session_state["more"] = words("tab.scalar")
    table = next(frame.value for frame in sound(page.run()).dataframe if len(frame.value) == 8)
    shown = dict(zip(table[words("truncation")], table[words("truncation.mean")], strict=True))
    assert shown[words("truncation.exact")] == "1.232"
    assert shown[words("truncation.last", count=5)] == "0.662"
    randomized = float(shown[words("truncation.row.randomized", percent=80)])
    assert abs(randomized - 1.232) < 0.04


def test_the_full_gradient_is_taken_once_for_all_truncations():
    one, other = (read(truncation=kind, text="in the")[0] for kind in ("full", "window"))
    assert full_flow(one) is full_flow(other)
    assert np.all(flow_of(other).shares <= flow_of(one).shares)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_question_is_answered_and_every_walk_leads_somewhere(lang: str):
    page = without_browser("truncation", network="gru", lang=lang)
    for number in range(1, 7):
        sound(page.pagination(key="question").set_value(number).run())
        sound(page.radio[0].set_value(page.radio[0].options[0]).run())
        reveal = next(button for button in page.button if button.label == words("check.reveal", lang=lang))
        sound(reveal.click().run())
        assert page.radio[0].disabled
    walks = [text for name, text in sections("truncation", lang).items() if name.startswith("try.")]
    for text in walks:
        link = dict(parse_qsl(text.partition("\n")[0].removeprefix("link:").strip()))
        assert read(**link)[1] == []
