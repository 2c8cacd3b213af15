"""What a learner has set stays: over pages, refreshes and tabs; and every link leads where it says."""

from collections.abc import Callable, Iterator
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from pages import catalog
from pages.ui.words import words
from tests.browser.lesson_page import LessonPage, Visitor
from tests.browsing import LiveServer, settle


@pytest.fixture(scope="module")
def visitor(server: LiveServer, chromium: Browser) -> Iterator[Visitor]:
    one = Visitor(server, chromium)
    yield one
    one.close()


def go(lesson: LessonPage, name: str, cell: str) -> None:
    # The bar leads to the lessons around; from the home page, where there are none, the road leads everywhere.
    place = ".st-key-bar" if lesson.cell else ".st-key-road"
    lesson.page.locator(place).get_by_role("link", name=name, exact=not lesson.cell).click()
    lesson.page.wait_for_function("(cell) => location.pathname === `/${cell}`", arg=cell)
    lesson.cell = cell
    settle(lesson.page, quiet=0.3)
    if cell:
        lesson.ready()


def tab(lesson: LessonPage, name: str) -> None:
    lesson.page.get_by_role("tab", name=words(f"tab.{name}"), exact=True).click()
    settle(lesson.page, quiet=0.3)


def turn(lesson: LessonPage, key: str, number: int) -> None:
    lesson.page.locator(f".st-key-{key}").last.get_by_role("button", name=f"Page {number}").click()
    settle(lesson.page, quiet=0.2)


def page_of(lesson: LessonPage, key: str) -> str:
    current = lesson.page.locator(f".st-key-{key}").last.locator("[aria-current]")
    return current.first.inner_text()


def chosen(lesson: LessonPage, label: str) -> str:
    return lesson.page.get_by_role("combobox", name=label).first.input_value()


def test_every_control_is_as_it_was_when_one_comes_back(visitor: Visitor):
    lesson = visitor.at("lstm")
    lesson.type_text("a time to keep")
    lesson.choose("model", "Untrained, random weights")
    seed = lesson.page.get_by_role("spinbutton", name=words("seed"))
    seed.fill("7")
    seed.press("Enter")
    lesson.ready()
    lesson.place(5, 33, "I")
    lesson.change("I", 0.25, "from here on", "this unit")
    turn(lesson, "try", 3)
    turn(lesson, "question", 8)  # how many parameters: that can always be asked
    lesson.page.locator(".st-key-check [data-testid=stRadio] label").filter(has=lesson.page.locator("input")).nth(1).click()
    settle(lesson.page, quiet=0.2)
    lesson.page.get_by_role("button", name=words("check.reveal")).click()
    settle(lesson.page, quiet=0.2)
    tab(lesson, "recall")
    lesson.page.locator(".st-key-noise").get_by_text("10", exact=True).click()
    settle(lesson.page, quiet=0.2)
    tab(lesson, "gradients")
    lesson.choose("", words("more.target.unit", symbol="H"), box=lesson.page.get_by_role("combobox", name=words("more.target")))
    numbers = {"at step": "9", "unit (": "12"}
    for label, value in numbers.items():
        box = lesson.page.get_by_role("spinbutton", name=label)
        box.fill(value)
        box.press("Enter")
        settle(lesson.page, quiet=0.3)
    lesson.address_has(step="5", unit="33", symbol="I")

    def state() -> dict[str, object]:
        page = lesson.page
        tab(lesson, "gradients")
        found: dict[str, object] = {
            "text": page.locator("textarea").input_value(),
            "model": chosen(lesson, words("model")),
            "seed": seed.input_value(),
            "stage": lesson.everything(),
            "changes": lesson.find(".changes li").all_inner_texts(),
            "walk": page_of(lesson, "try"),
            "question": page_of(lesson, "question"),
            "guess": page.locator(".st-key-check input:checked").count(),
            "verdict": page.locator(".st-key-check strong").all_inner_texts(),
            "tab": page.locator("[role=tab][aria-selected=true]").all_inner_texts(),
            "gradient": chosen(lesson, words("more.target")),
            "numbers": {label: page.get_by_role("spinbutton", name=label).input_value() for label in numbers},
            "link": lesson.link(),
        }
        tab(lesson, "recall")
        found["noise"] = page.locator(".st-key-noise [aria-checked=true]").all_inner_texts()
        tab(lesson, "gradients")
        return found

    before = state()
    assert before["noise"] == ["10"]
    assert (before["walk"], before["question"], before["seed"], before["numbers"]) == ("3", "8", "7", numbers)
    go(lesson, "GRU", "gru")
    assert lesson.page.locator("textarea").input_value() == "a time to keep"
    lesson.choose("reset", "Reset after the product")
    lesson.choose("update", "Z replaces the old state")
    go(lesson, "Unrolled", "")
    go(lesson, "LSTM", "lstm")
    assert page_of(lesson, "question") == "8"
    assert state() == before
    go(lesson, "GRU", "gru")
    assert chosen(lesson, words("reset")) == "Reset after the product"
    assert chosen(lesson, words("update")) == "Z replaces the old state"
    lesson.holds(lesson.run())


def test_two_tabs_are_two_visitors(visitor: Visitor):
    one = visitor.at("lstm?text=one+and+two")
    other = visitor.at("lstm?text=one+and+two", visitor.context.new_page())
    assert one.everything() == other.everything()
    before = other.everything()
    one.place(6, 9, "F")
    one.change("F", 0.0, "all steps", "all units")
    one.choose("model", "Untrained, random weights")
    assert one.everything() != before
    assert other.everything() == before
    other.page.reload()
    other.ready()
    assert other.everything() == before
    other.type_text("quite another")
    one.page.reload()
    one.ready()
    assert one.page.locator("textarea").input_value() == "one and two"
    one.holds(one.run())
    other.holds(other.run())
    other.page.close()


def links_of(page: Page) -> dict[str, str]:
    """The links of a page, the stage's included: name by address."""
    found: list[tuple[str, str]] = page.evaluate(
        """() => {
            const roots = [document, ...[...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean)];
            return roots.flatMap((root) => [...root.querySelectorAll('a[href]')])
                .map((a) => [a.href, a.textContent.trim() || a.getAttribute('aria-label') || '']);
        }"""
    )
    return dict(found)


def test_every_link_of_every_page_leads_where_it_says(visitor: Visitor):
    page = visitor.page
    titles = {f"/{lesson.key}": words(f"lesson.{lesson.key}.title") for lesson in catalog.LESSONS if lesson.ready}
    titles["/"] = words("home.title")
    seen: dict[str, str] = {}
    for start in titles:
        page.goto(urljoin(visitor.url, start))
        settle(page)
        for address, name in links_of(page).items():
            if urlsplit(address).fragment:  # a place on this page
                assert page.locator(f"#{urlsplit(address).fragment}, [data-testid=stMain]").count() > 0
                continue
            assert urlsplit(address).netloc == urlsplit(visitor.url).netloc, f"{name} leads away from here"
            path = urlsplit(address).path
            assert path in titles, f"{name} leads to {path}"
            general = {words("name"): "/", words("stage.mini_label"): path}  # the stage of the home page names no lesson
            assert titles[path] in name or general.get(name) == path, f"{name} leads to {path}"
            seen[address] = path
    assert {urlsplit(address).path for address in seen} == set(titles)
    for address, path in seen.items():
        page.goto(address)
        settle(page, quiet=0.2)
        assert page.locator("h1").first.inner_text() == titles[path]
        assert page.title().startswith(titles[path])


def test_a_bad_link_is_said_in_a_sentence_in_the_browser_too(visitor: Visitor):
    lesson = visitor.at("lstm?step=9999&unit=64&model=gpt&do=F%3D7%3Brubbish&symbol=__proto__&seed=-1")
    notes = lesson.page.locator(".st-key-notes")
    for said in ("step 54 is shown", "unit 63 is shown", "does not have", "nearest bound", "could not be read", "seed"):
        expect(notes).to_contain_text(said)
    assert (lesson.step(), lesson.unit()) == (53, 63)
    lesson.holds(lesson.run())
    lesson.sound()


def test_a_lost_server_is_found_again(server: LiveServer, new_context: Callable[..., object]):
    """The connection breaks for a moment: the stage goes on by itself, and the page is as it was when it is back."""
    context = new_context()
    page = context.new_page()  # type: ignore[attr-defined]
    page.goto(f"{server.url}/lstm?text=hello+there")
    lesson = LessonPage(page, "lstm")
    lesson.ready()
    context.set_offline(True)  # type: ignore[attr-defined]
    lesson.find(".tokens").focus()
    page.keyboard.press("End")
    assert lesson.step() == 10
    lesson.holds(lesson.run())
    context.set_offline(False)  # type: ignore[attr-defined]
    lesson.ready()
    lesson.type_text("good bye")
    assert lesson.find(".tokens .token").all_text_contents() == list("good␣bye")
