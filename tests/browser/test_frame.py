"""The frame in a real browser: home, language, link, Back, refresh, tabs, texts."""

import re
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from pages.catalog import LESSONS
from pages.ui.config import SAMPLE
from tests.browsing import LiveServer, settle

Open = Callable[..., Page]
TEXT = "textarea"
HARMFUL = "a<b<c <img src=x onerror=alert(1)> <script>alert(1)</script> $x$ __pad__ :smile: [d](e)"
PHONE = {"width": 390, "height": 844}


def expect_address(page: Page, **params: str) -> None:
    """The address holds ``params`` and nothing else, now or soon."""
    page.wait_for_function(
        "wanted => JSON.stringify([...new URLSearchParams(location.search)].sort()) === JSON.stringify(wanted)",
        arg=sorted([name, value] for name, value in params.items()),
    )


def expect_state(page: Page, shown: str, **params: str) -> None:
    """The field shows this text and the address holds ``params``, now or soon."""
    expect(page.locator(TEXT)).to_have_value(shown)
    expect_address(page, **params)


def type_text(page: Page, text: str) -> None:
    page.locator(TEXT).fill(text)
    page.locator(TEXT).press("Control+Enter")
    settle(page)


def choose_model(page: Page, name: str) -> None:
    page.locator(".st-key-choice [data-testid=stSelectbox]").first.click()
    page.get_by_role("option", name=name).click()
    settle(page)


def go(page: Page, name: str) -> None:
    page.locator(".st-key-bar, .st-key-road").get_by_role("link", name=name).first.click()
    settle(page)


def test_the_road_shows_twenty_lessons_and_marks_the_coming_ones(open_page: Open):
    page = open_page()
    for lesson in LESSONS:
        stop = page.locator(f".st-key-{'ready' if lesson.ready else 'coming'}-{lesson.key}")
        expect(stop).to_be_visible()
        assert stop.get_by_role("link").count() == int(lesson.ready)
        assert ("coming" in stop.inner_text()) == (not lesson.ready)


def test_every_link_of_the_home_page_opens_the_lesson_it_names(open_page: Open):
    page = open_page()
    links = page.locator("main [data-testid=stPageLink-NavLink], .st-key-road a")
    addresses = {link.get_attribute("href") or "": link.inner_text() for link in links.all()}
    assert len(addresses) > 1
    for href, name in addresses.items():
        page.goto(page.url.split("/", 3)[0] + "//" + urlsplit(page.url).netloc + "/" + href)
        settle(page)
        title = page.locator("h1").first.inner_text()
        assert title in name or href == "", f"{name} leads to {title}"


def test_a_gate_is_stepped_through_within_two_clicks_and_ten_seconds(server: LiveServer, new_context: Callable[..., object]):
    page = new_context().new_page()  # type: ignore[attr-defined]
    start = time.monotonic()
    page.goto(server.url)
    page.locator(".st-key-start a").first.click()
    page.get_by_text(f"1 / {len(SAMPLE)}").wait_for()
    page.keyboard.press("ArrowRight")
    page.get_by_text(f"2 / {len(SAMPLE)}").wait_for()
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(("locale", "name"), [("zh-CN", "学习路线"), ("en-GB", "The road"), ("fr-FR", "The road")])
def test_the_language_is_the_browsers_until_one_is_chosen(open_page: Open, locale: str, name: str):
    page = open_page(locale=locale)
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_the_link_that_the_keyboard_is_at_is_marked(open_page: Open):
    page = open_page("gru")
    link = page.locator(".st-key-bar").get_by_role("link").nth(1)
    for _ in range(12):
        page.keyboard.press("Tab")
        if link.evaluate("(link) => link === document.activeElement"):
            break
    assert link.evaluate("(link) => getComputedStyle(link).outlineStyle") == "solid"


def test_a_chosen_language_stays_on_every_page_and_after_a_refresh(open_page: Open):
    page = open_page()
    page.locator(".st-key-bar").get_by_text("中文").click()
    settle(page)
    expect(page.get_by_role("heading", name="学习路线")).to_be_visible()
    go(page, "LSTM")
    expect_address(page, lang="zh")
    expect(page.locator(".st-key-head")).to_contain_text("三个门")
    page.reload()
    settle(page)
    expect(page.locator(".st-key-head")).to_contain_text("三个门")
    assert page.title().startswith("LSTM")


def test_the_whole_state_is_in_the_link(open_page: Open):
    page = open_page("lstm")
    type_text(page, "hello wörld\n1 2")
    choose_model(page, "Untrained")
    there = open_page(f"lstm?{urlsplit(page.url).query}")
    expect(there.locator(TEXT)).to_have_value("hello wörld\n1 2")
    expect(there.get_by_role("combobox", name="Model")).to_have_value(re.compile("Untrained"))


def test_back_undoes_and_forward_does_again(open_page: Open):
    page = open_page("lstm")
    type_text(page, "hello")
    type_text(page, "there")
    page.go_back()
    settle(page)
    expect_state(page, "hello", text="hello")
    page.go_back()
    settle(page)
    expect_state(page, SAMPLE)
    page.go_forward()
    settle(page)
    expect_state(page, "hello", text="hello")


def test_the_text_travels_and_each_lesson_keeps_its_own_state(open_page: Open):
    page = open_page("lstm")
    choose_model(page, "forget bias 0")
    type_text(page, "hello")
    go(page, "GRU")
    expect_state(page, "hello", text="hello")
    go(page, "Unrolled")
    expect_address(page, text="hello")
    go(page, "LSTM")
    expect_address(page, text="hello", model="recall-bias-0")
    page.go_back()
    settle(page)
    page.go_back()
    settle(page)
    assert urlsplit(page.url).path == "/gru"
    expect(page.locator(TEXT)).to_have_value("hello")


def test_a_text_that_was_just_typed_survives_the_next_click(open_page: Open):
    """Leaving the field commits it; the click comes before the server has answered."""
    page = open_page("lstm")
    page.locator(TEXT).fill("quick")
    page.locator(".st-key-choice [data-testid=stSelectbox]").first.click()
    page.get_by_role("option", name="Untrained").click()
    settle(page)
    expect(page.locator(TEXT)).to_have_value("quick")
    expect_address(page, text="quick", model="untrained")


def test_two_tabs_know_nothing_of_each_other(open_page: Open):
    one = open_page("lstm")
    other = one.context.new_page()
    other.goto(one.url)
    settle(other)
    type_text(one, "one")
    type_text(other, "other")
    one.reload()
    settle(one)
    expect_state(one, "one", text="one")
    expect_state(other, "other", text="other")


def test_any_text_is_shown_as_it_was_typed(open_page: Open):
    page = open_page("lstm")
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    for text in ("👨‍👩‍👧🏳️‍🌈", "你好，世界", "مرحبا بالعالم", "x", "1E1 2A1 2024-01-01", "the the the", HARMFUL):
        type_text(page, text)
        expect(page.locator(TEXT)).to_have_value(text)
        expect_address(page, text=text)
        assert page.locator("[data-testid=stException], img[src=x]").count() == 0
    page.reload()
    settle(page)
    expect(page.locator(TEXT)).to_have_value(HARMFUL)
    assert page.locator("[data-testid=stException], img[src=x]").count() == 0


def test_bad_values_in_a_link_are_said_in_a_sentence(open_page: Open):
    page = open_page("lstm?step=9999&model=gpt&do=F%3Dnan%3Brubbish&seed=1e9&text=")
    notes = page.locator(".st-key-notes")
    for part in ("at least one character", "step 54 is shown", "does not have", "finite number", "could not be read", "seed"):
        expect(notes).to_contain_text(part)
    assert page.locator("[data-testid=stException]").count() == 0


def test_a_long_text_moves_in_windows_and_survives_a_refresh(open_page: Open):
    page = open_page("lstm")
    type_text(page, "".join(chr(0x4E00 + k) for k in range(12_345)))
    source = page.locator(".st-key-source")
    expect(source).to_contain_text("1–256 of 12,345 characters")
    source.get_by_role("button", name="Page 2").click()
    settle(page)
    expect(source).to_contain_text("257–512 of 12,345 characters")
    page.reload()
    settle(page)
    expect(source).to_contain_text("257–512 of 12,345 characters")
    expect(page.locator(TEXT)).to_have_value(re.compile(f"^{chr(0x4E00 + 256)}"))
    assert len(page.url) < 8000


def upload(page: Page, data: bytes) -> None:
    page.get_by_role("button", name="Open a file").click()
    page.locator("input[type=file]").set_input_files({"name": "text.txt", "mimeType": "text/plain", "buffer": data})
    settle(page)


def test_a_file_is_read(open_page: Open):
    page = open_page("lstm")
    upload(page, b"\xef\xbb\xbfab\r\nc")
    expect(page.locator(TEXT)).to_have_value("ab\nc")
    expect(page.locator(".st-key-notes")).to_contain_text("byte-order mark was removed")


def test_a_file_in_another_encoding_asks_which(open_page: Open):
    page = open_page("lstm")
    upload(page, "你好，世界".encode("gb18030"))
    expect(page.get_by_text("Not UTF-8 at byte 0")).to_be_visible()
    page.get_by_role("button", name="GB18030").click()
    settle(page)
    expect(page.locator(TEXT)).to_have_value("你好，世界")
    expect(page.locator(".st-key-notes")).to_contain_text("Read as gb18030")


def test_a_file_beyond_the_limit_is_refused(open_page: Open):
    page = open_page("lstm")
    upload(page, b"x" * 2_200_000)
    expect(page.locator(TEXT)).to_have_value(SAMPLE)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_is_wider_than_a_phone(open_page: Open, lang: str):
    page = open_page(f"?lang={lang}", viewport=PHONE)
    for lesson in ("", "LSTM", "GRU"):
        if lesson:
            go(page, lesson)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.locator("[data-testid=stException]").count() == 0


def test_a_lesson_opened_first_on_a_fresh_server_has_its_frame(tmp_path, new_context: Callable[..., object]):
    live = LiveServer(tmp_path / "server.log")
    try:
        page = new_context().new_page()  # type: ignore[attr-defined]
        page.goto(f"{live.url}/gru?text=hello")
        settle(page)
        expect(page.locator(".st-key-bar")).to_be_visible()
        expect(page.locator(TEXT)).to_have_value("hello")
        assert page.request.get(live.url).headers["referrer-policy"] == "no-referrer"
    finally:
        live.stop()
    assert live.faults() == []
    assert "hello" not in live.log_text(), "the log must not hold what learners type"
