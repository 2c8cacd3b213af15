"""Every kind of text on a lesson page: typed, too long, uploaded in any encoding, refused in words."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, expect

from engine.text.display import visible
from engine.text.reading import LIMIT_BYTES
from pages.ui.config import SAMPLE
from pages.ui.words import words
from tests.browser.lesson_page import LessonPage, Visitor
from tests.browsing import LiveServer, settle
from tests.lessons import STRANGE


@pytest.fixture(scope="module")
def visitor(server: LiveServer, chromium: Browser) -> Iterator[Visitor]:
    one = Visitor(server, chromium)
    dialogs: list[str] = []

    def refuse(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    one.page.on("dialog", refuse)
    yield one
    one.close()
    assert dialogs == [], "a script in a text ran"


def shows(lesson: LessonPage, text: str) -> None:
    """Assert that a text is on the stage token by token, in the field letter for letter, and that it is only text."""
    assert lesson.find(".tokens .token").all_text_contents() == [visible(character) for character in text]
    assert lesson.find(".tokens *:not(.token)").count() == 0
    assert lesson.page.locator("textarea").input_value() == text
    assert lesson.page.locator("img[src=x], main script").count() == 0
    lesson.sound()


def test_every_text_is_shown_letter_for_letter_and_read_by_the_engine(visitor: Visitor):
    lesson = visitor.at("lstm")
    for kind, text in STRANGE.items():
        lesson.type_text(text)
        shows(lesson, text)
        lesson.address_has(text=text)
        lesson.find(".tokens").focus()
        lesson.page.keyboard.press("End")
        assert lesson.position() == f"{len(text)} / {len(text)}", kind
        run = lesson.run()
        lesson.holds(run)
        unknown = list(dict.fromkeys(character for character in text if character not in run.vocabulary))
        sentence = lesson.page.locator("[data-testid=stText]").filter(has_text="has never seen")
        assert sentence.count() == bool(unknown)
        if unknown:
            said = sentence.inner_text()
            assert all(visible(character) in said for character in unknown[:8]), kind
        marked = lesson.find(".token.unknown").all_text_contents()
        assert marked == [visible(character) for character in text if character in unknown]


def test_harmful_text_is_only_text_in_every_tab(visitor: Visitor):
    text = STRANGE["markup"]
    lesson = visitor.at("gru")
    lesson.type_text(text)
    for name in ("gates", "gradients", "code", "data"):
        lesson.page.get_by_role("tab", name=words(f"tab.{name}"), exact=True).click()
        settle(lesson.page, quiet=0.3)
        assert lesson.page.locator("img[src=x], main script").count() == 0
        lesson.sound()
    shows(lesson, text)


def test_one_token_has_one_step_and_no_slider(visitor: Visitor):
    lesson = visitor.at("lstm?text=x&step=5")
    assert lesson.position() == "1 / 1"
    expect(lesson.page.locator(".st-key-notes")).to_contain_text("A single character")
    expect(lesson.page.locator(".st-key-notes")).to_contain_text("step 1 is shown")
    assert lesson.find("button.play").is_disabled()
    for key in ("ArrowRight", "End", "Home", " "):
        lesson.page.keyboard.press(key)
        assert lesson.position() == "1 / 1"
    lesson.change("F", 0.0, "all steps", "all units")
    lesson.holds(lesson.run())
    for name in ("gates", "gradients", "path", "compare", "recall", "code", "data"):
        lesson.page.get_by_role("tab", name=words(f"tab.{name}"), exact=True).click()
        settle(lesson.page, quiet=0.3)
        lesson.sound()


def test_ten_thousand_characters_move_in_windows(visitor: Visitor):
    text = "".join(f"{k:04d}," for k in range(2000))
    lesson = visitor.at("lstm")
    lesson.type_text(text)
    shows(lesson, text[:256])
    source = lesson.page.locator(".st-key-source")
    for page, first in ((2, 256), (40, 39 * 256)):
        if page == 40:
            source.get_by_role("button", name="Page 40").click()
        else:
            source.get_by_role("button", name="Page 2", exact=True).click()
        lesson.ready()
        part = text[first : first + 256]
        expect(source).to_contain_text(f"{first + 1:,}–{first + len(part):,} of 10,000 characters")
        shows(lesson, part)
        lesson.holds(lesson.run())
    lesson.page.reload()
    lesson.ready()
    shows(lesson, text[39 * 256 :])
    expect(source).to_contain_text("of 10,000 characters")


def upload(lesson: LessonPage, data: bytes, name: str = "text.txt") -> None:
    popover = lesson.page.locator("input[type=file]")
    if popover.count() == 0:
        lesson.page.get_by_role("button", name=words("source.file")).click()
    popover.set_input_files({"name": name, "mimeType": "text/plain", "buffer": data})
    lesson.ready()


def test_a_file_beyond_the_limit_is_refused_in_words(visitor: Visitor):
    lesson = visitor.at("lstm")
    lesson.page.get_by_role("button", name=words("source.file")).click()
    expect(lesson.page.get_by_text(words("source.file.label", limit=LIMIT_BYTES // 2**20))).to_be_visible()
    upload(lesson, b"x" * 2_200_000)
    expect(lesson.page.get_by_text("2.0MB or smaller").or_(lesson.page.get_by_text("2MB or smaller"))).to_be_visible()
    shows(lesson, SAMPLE)


@pytest.mark.parametrize(
    ("data", "byte", "encoding", "text"),
    [
        (bytes.fromhex("74656d70203235b04320b56d"), 7, "LATIN-1", "temp 25°C µm"),
        (bytes.fromhex("c4e3bac3a3accac0bde7"), 0, "GB18030", "你好，世界"),
    ],
)
def test_a_file_that_is_not_utf8_offers_encodings_with_previews(
    visitor: Visitor, data: bytes, byte: int, encoding: str, text: str
):
    lesson = visitor.at("lstm")
    upload(lesson, data)
    expect(lesson.page.get_by_text(words("text.not_utf8", byte=byte))).to_be_visible()
    expect(lesson.page.get_by_text(text, exact=True).first).to_be_visible()
    shows(lesson, SAMPLE)  # nothing is guessed in silence
    lesson.page.get_by_role("button", name=encoding, exact=True).click()
    lesson.ready()
    shows(lesson, text)
    expect(lesson.page.locator(".st-key-notes")).to_contain_text("not UTF-8")
    lesson.holds(lesson.run())


def test_a_long_file_is_windowed_and_let_go(visitor: Visitor, tmp_path: Path):
    data = ("In the beginning was the Word. " * 40_000).encode()
    lesson = visitor.at("lstm")
    upload(lesson, data)
    shows(lesson, data.decode()[:256])
    expect(lesson.page.locator(".st-key-source")).to_contain_text("1–256 of 1,240,000 characters")
