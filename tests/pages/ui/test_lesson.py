"""The rooms of a lesson page, on a small model, without a browser."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui.config import LSTMConfig, from_query
from pages.ui.texts import sections
from pages.ui.words import words

PAGE = """
import streamlit as st
import torch
from engine.recurrent.asking import Run
from engine.recurrent.language_model import RecurrentLanguageModel
from pages.ui import check, lesson, link
from pages.ui.config import LSTMConfig

@st.cache_resource
def model():
    return RecurrentLanguageModel("lstm", 11, 7, generator=torch.Generator().manual_seed(2))

with link.visit("lstm"):
    config = lesson.head(LSTMConfig)
    ids = torch.arange(20).remainder(11).unsqueeze(1)
    trace = model().trace(ids)
    lesson.things_to_try(trace)
    lesson.see_more({"gates": lambda: st.session_state.__setitem__("filled", True)}, trace)
    asked = Run(model=model(), ids=ids, step=st.session_state.get("step", 5), unit=3)
    check.check_yourself("lstm", asked, trace, "*_`$<&[:~ab".__getitem__)
    lesson.notes_on(trace)
    st.session_state["seen"] = config
"""


@pytest.fixture
def page() -> AppTest:
    return sound(AppTest.from_string(PAGE, default_timeout=60).run())


def sound(page: AppTest) -> AppTest:
    assert not page.exception
    return page


def test_no_tab_is_filled_before_it_is_opened(page: AppTest):
    assert "filled" not in page.session_state
    assert [tab.label for tab in page.tabs] == [words("tab.look"), words("tab.gates")]


def test_setting_up_a_thing_to_try_takes_the_link_of_its_text(page: AppTest):
    first = sections("lstm", "en")["try.1"]
    address = dict(part.split("=") for part in first.partition("\n")[0].removeprefix("link: ").split("&"))
    button = next(button for button in page.button if button.label == words("try.set"))
    sound(button.click().run())
    assert page.session_state["seen"] == from_query(LSTMConfig, address)[0]
    assert dict(page.query_params) == address


def ask(page: AppTest, guess: int) -> list[str]:
    """Predict option number ``guess`` of the first question and reveal; what is written then and was not before."""
    before = [markdown.value for markdown in page.markdown]
    reveal = next(button for button in page.button if button.label == words("check.reveal"))
    assert reveal.disabled, "predict first"
    (radio,) = page.radio
    sound(radio.set_value(radio.options[guess]).run())
    reveal = next(button for button in page.button if button.label == words("check.reveal"))
    assert not reveal.disabled
    sound(reveal.click().run())
    return [markdown.value for markdown in page.markdown if markdown.value not in before]


def test_predict_then_reveal(page: AppTest):
    verdict, reason = ask(page, 1)
    assert verdict.startswith(f"**{words('check.right')}** It keeps the value")
    assert "after 15 steps" in reason
    assert page.radio[0].disabled


def test_a_wrong_prediction_is_told_the_right_answer(page: AppTest):
    verdict, _ = ask(page, 0)
    assert verdict.startswith(f"**{words('check.wrong')}** It keeps the value")


def test_another_run_asks_anew(page: AppTest):
    ask(page, 1)
    page.session_state["step"] = 9
    sound(page.run())
    assert not page.radio[0].disabled
    assert page.radio[0].value is None
