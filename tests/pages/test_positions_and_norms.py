"""Lessons 15 and 16 without a browser: every tab opens whatever is chosen, every question can be answered and revealed."""

import pytest
from streamlit.testing.v1 import AppTest

from engine.questions import QUESTIONS
from pages.ui.words import words
from tests.lessons import STRANGE, sound, without_browser

TABS = {
    "positions": ("look", "waves", "rotation", "kinds", "beyond", "drowned", "code", "data"),
    "residual_norm": ("look", "one_vector", "axes", "depths", "code", "data"),
}
CHARTS = {"waves": 3, "kinds": 5, "beyond": 2, "drowned": 1, "axes": 2, "depths": 2}


def opened(page: AppTest, tab: str, lang: str) -> AppTest:
    page.session_state["more"] = words(f"tab.{tab}", lang=lang)
    return sound(page.run())


def charts(page: AppTest) -> int:
    return len(page.get("vega_lite_chart")) + len(page.get("arrow_vega_lite_chart"))


@pytest.mark.parametrize(
    ("lesson", "params"),
    [
        ("positions", {}),
        ("positions", {"model": "untrained", "width": "29", "kind": "rotary", "text": "x", "lang": "zh"}),
        ("positions", {"model": "untrained", "width": "3", "kind": "learned", "text": STRANGE["markup"], "order": "reversed"}),
        ("positions", {"kind": "alibi", "text": STRANGE["emoji"], "delta": "9"}),
        ("residual_norm", {}),
        ("residual_norm", {"text": "x", "depth": "1", "arrangement": "norm", "norm": "batch", "lang": "zh"}),
        (
            "residual_norm",
            {"text": STRANGE["markup"], "depth": "3", "arrangement": "plain", "given": "constant", "percent": "0"},
        ),
    ],
)
def test_every_tab_opens(lesson, params):
    page, lang = without_browser(lesson, **params), params.get("lang", "en")
    assert [tab.label for tab in page.tabs] == [words(f"tab.{name}", lang=lang) for name in TABS[lesson]]
    for name in TABS[lesson]:
        opened(page, name, lang)
        assert charts(page) == CHARTS.get(name, 0), name


@pytest.mark.parametrize("lesson", TABS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_question_is_answered_and_revealed(lesson, lang):
    page = without_browser(lesson, lang=lang)
    for number in range(1, len(QUESTIONS[lesson]) + 1):
        sound(page.pagination(key="question").set_value(number).run())
        assert page.radio, number
        sound(page.radio[0].set_value(page.radio[0].options[0]).run())
        before = {markdown.value for markdown in page.markdown}
        next(button for button in page.button if button.label == words("check.reveal", lang=lang)).click()
        sound(page.run())
        new = [markdown.value for markdown in page.markdown if markdown.value not in before]
        assert len(new) == 2, "the right option, and why"
        assert page.radio[0].disabled


def test_a_row_of_digits_can_be_asked_for_and_a_vector_written():
    page = opened(without_browser("positions"), "beyond", "en")
    page.selectbox(key="digits-kind").set_value("learned")
    sound(page.run())
    assert any("table of learned positions ends after 10" in text.value for text in page.text)
    page.number_input(key="digits-length").set_value(10)
    sound(page.run())
    assert not any("table of learned positions" in text.value for text in page.text)
    norm = opened(without_browser("residual_norm"), "one_vector", "en")
    assert any("= 1.7320" in code.value for code in norm.code)
    norm.text_input(key="vector").set_value("no number")
    sound(norm.run())
    assert any("No number can be read" in text.value for text in norm.text)
    norm.text_input(key="vector").set_value("5, 5, 5")
    sound(norm.run())
    assert any(code.value.endswith("= 0.0000") for code in norm.code)
