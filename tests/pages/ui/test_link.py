"""Config, widgets and address of a lesson page stay one: run without a browser."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import documents
from pages.ui.config import SAMPLE, WINDOW, Edit, LSTMConfig

PAGE = """
import streamlit as st
from pages.ui import lesson, link
from pages.ui.config import Edit, LSTMConfig

with link.visit(st.session_state.get("go", "lstm")):
    config = lesson.head(LSTMConfig)
    st.button("clamp", key="clamp", on_click=lambda: link.change(do=(Edit(symbol="F", value=1.0),)))
    st.button("follow", key="follow", on_click=lambda: link.follow({"do": "O=0@3", "symbol": "H", "step": "3"}))
    st.session_state["seen"] = config
    st.session_state["way"] = link.to("gru")
"""


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_string(PAGE, default_timeout=60)


def opened(page: AppTest, **params: str) -> AppTest:
    for name, value in params.items():
        page.query_params[name] = value
    return sound(page.run())


def sound(page: AppTest) -> AppTest:
    assert not page.exception
    return page


def address(page: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in page.query_params.items()}


def seen(page: AppTest) -> LSTMConfig:
    config = page.session_state["seen"]
    assert isinstance(config, LSTMConfig)
    return config


def test_an_empty_link_gives_the_default(page: AppTest):
    opened(page)
    assert seen(page) == LSTMConfig()
    assert page.text_area(key="text").value == SAMPLE
    assert address(page) == {}


def test_a_link_sets_config_and_widgets(page: AppTest):
    opened(page, text="hello", model="recall-bias-2", do="F=1@2-")
    assert seen(page) == LSTMConfig(text="hello", model="recall-bias-2", do=(Edit(symbol="F", value=1.0, first=2),))
    assert page.text_area(key="text").value == "hello"
    assert page.selectbox(key="control-model").value == "recall-bias-2"


def test_a_typed_text_is_in_the_address_and_a_default_is_not(page: AppTest):
    opened(page, step="7")
    sound(page.text_area(key="text").set_value("a\r\nb").run())
    assert seen(page).text == "a\nb"
    assert address(page) == {"text": "a\nb", "step": "2"}
    assert [text.value for text in page.text] == ["A Windows line end became a newline."]
    sound(page.text_area(key="text").set_value(SAMPLE).run())
    assert "text" not in address(page)


def test_two_changes_before_the_address_has_come_back(page: AppTest):
    """The second rerun still brings the address of before the first: what was typed must not be lost."""
    opened(page)
    page.text_area(key="text").set_value("hello")
    sound(page.run())
    page.query_params.clear()  # the browser does not know the new address yet
    sound(page.selectbox(key="control-model").set_value("untrained").run())
    assert (seen(page).text, seen(page).model) == ("hello", "untrained")
    assert address(page) == {"text": "hello", "model": "untrained"}


def test_an_empty_text_brings_the_sample_back_and_says_so(page: AppTest):
    opened(page)
    sound(page.text_area(key="text").set_value("").run())
    assert seen(page).text == page.text_area(key="text").value == SAMPLE
    assert [text.value for text in page.text] == ["A text needs at least one character. Here is the sample again."]


def test_a_place_that_a_shorter_text_does_not_have_moves_without_a_word(page: AppTest):
    opened(page, step="40", do="F=1@30-")
    sound(page.text_area(key="text").set_value("abc").run())
    assert seen(page) == LSTMConfig(text="abc", step=2)
    said = [text.value for text in page.text]
    assert [line for line in said if "step must be" in line] == []
    assert [line for line in said if "outside the text" in line], "a change that is lost is said"


def test_a_long_text_is_shown_in_windows(page: AppTest):
    text = "".join(chr(0x4E00 + k) for k in range(12_345))
    opened(page)
    sound(page.text_area(key="text").set_value(text).run())
    assert seen(page).text == text[:WINDOW]
    name = address(page)["doc"]
    assert documents.find(name) is not None
    assert "1–256 of 12,345 characters" in [caption.value for caption in page.caption]
    # a refresh: a new session with the same address
    again = opened(AppTest.from_string(PAGE, default_timeout=60), **(address(page) | {"text": text[256:512], "from": "256"}))
    assert "257–512 of 12,345 characters" in [caption.value for caption in again.caption]
    # another server: the window is in the link, the rest is not here
    other = opened(AppTest.from_string(PAGE, default_timeout=60), **(address(page) | {"doc": "0" * 24}))
    assert seen(other).text == text[:WINDOW]
    assert "256 characters of a longer text. The rest of it is not on this server." in [c.value for c in other.caption]


def test_typing_over_a_window_leaves_the_long_text(page: AppTest):
    opened(page)
    sound(page.text_area(key="text").set_value("x" * 1000).run())
    sound(page.text_area(key="text").set_value("short").run())
    assert address(page) == {"text": "short"}


@pytest.mark.parametrize("start", ["-1", "٣", "9" * 40, "abc", ""])
def test_any_start_in_a_link_is_borne(page: AppTest, start: str):
    name = documents.keep("y" * 1000)
    opened(page, doc=name, text="y" * WINDOW, **{"from": start})
    assert seen(page).text == "y" * WINDOW


def test_a_change_keeps_text_and_language(page: AppTest):
    opened(page, text="hello", lang="zh")
    sound(page.button(key="clamp").click().run())
    assert address(page) == {"text": "hello", "lang": "zh", "do": "F=1"}


def test_a_followed_link_keeps_the_text_and_drops_the_rest(page: AppTest):
    opened(page, text="hello", model="untrained", do="F=1")
    sound(page.button(key="follow").click().run())
    assert seen(page) == LSTMConfig(text="hello", do=(Edit(symbol="O", value=0.0, first=3, last=3),), symbol="H", step=3)
    assert address(page) == {"text": "hello", "do": "O=0@3", "symbol": "H", "step": "3"}


def test_the_text_travels_and_the_rest_stays_with_its_page(page: AppTest):
    opened(page, text="hello", model="untrained", lang="zh")
    assert page.session_state["way"] == {"text": "hello", "lang": "zh"}
    page.session_state["links"]["gru"] = {"reset": "after", "text": "old", "lang": "en"}
    sound(page.run())
    assert page.session_state["way"] == {"reset": "after", "text": "hello", "lang": "zh"}


def test_another_page_reads_its_own_address(page: AppTest):
    opened(page, text="hello", model="untrained")
    page.session_state["go"] = "gru"
    page.query_params.clear()
    page.query_params["text"] = "there"
    sound(page.run())
    assert seen(page) == LSTMConfig(text="there")
    assert page.text_area(key="text").value == "there"


@pytest.mark.parametrize("params", [{"text": "\x00\x00"}, {"do": "F=1e999"}, {"lang": "<b>"}, {"unit": "-1"}])
def test_bad_links_open_with_a_sentence(page: AppTest, params: dict[str, str]):
    opened(page, **params)
    assert seen(page).text
    if "lang" not in params:
        assert page.text


def test_a_note_is_plain_text(page: AppTest):
    opened(page, text="a\x01b")
    assert [text.value for text in page.text] == ["A control character is kept and shown by its name."]
    assert not [markdown for markdown in page.markdown if "control character" in markdown.value]
