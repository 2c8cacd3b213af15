"""The lesson pages in Chinese, in the dark, on a phone, and worked with the keyboard alone."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.ui.words import messages, words
from tests.browser.lesson_page import LessonPage, Visitor
from tests.browsing import LiveServer, settle

ROOMS = {"lstm": ("try", "more", "check"), "gru": ("conventions", "try", "more", "check")}
FOCUS = """() => {
    let e = document.activeElement;
    while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    if (!e || e === document.body) return null;
    const labels = [...(e.labels ?? [])].map((label) => label.textContent).join(' ');
    const tag = e.tagName.toLowerCase();
    const words = ['a', 'button', 'summary'].includes(tag) || e.getAttribute('role') === 'tab' ? e.textContent : '';
    return [tag, e.getAttribute('aria-label') || labels || words];
}"""


def wide(page: Page) -> list[str]:
    """What makes the page scroll sideways: the page itself, and elements that stick out without a scrolling box around."""
    sideways: list[str] = page.evaluate(
        """() => {
            const main = document.querySelector('[data-testid=stMain]');
            const found = [document.documentElement, main].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.tagName);
            for (const e of main.querySelectorAll('*')) {
                const box = e.getBoundingClientRect();
                if (!box.width || !box.height || box.right <= innerWidth + 1) continue;
                let up = e.parentElement;
                while (up && up !== main && getComputedStyle(up).overflowX === 'visible') up = up.parentElement;
                if (up === main || !up) found.push(`${e.tagName} ${e.className} ${box.right}`);
            }
            return found;
        }"""
    )
    return sideways


def tab(lesson: LessonPage, name: str, lang: str = "en") -> None:
    lesson.page.get_by_role("tab", name=words(f"tab.{name}", lang=lang), exact=True).click()
    settle(lesson.page, quiet=0.3)


def reading(lesson: LessonPage) -> str:
    """All the words on the page and on its stage."""
    stage: str = lesson.root.evaluate("(e) => e.textContent")
    return lesson.page.locator("[data-testid=stMain]").inner_text() + stage


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_chinese_in_every_room(server: LiveServer, chromium: Browser, cell: str):
    visitor = Visitor(server, chromium, locale="zh-CN")
    lesson = visitor.at(f"{cell}?do=H%3D0.5%40-1%3BH%3D0.5%405&step=9")
    lesson.holds(lesson.run())
    assert "H=0.5@5" in str(lesson.run().config.do[0])
    for room in ROOMS[cell]:
        expect(lesson.page.get_by_role("heading", name=words(f"room.{room}", lang="zh"), exact=True)).to_be_visible()
    english, chinese = (messages(lang).by_key for lang in ("en", "zh"))
    only_english = {
        form: key
        for key, forms in english.items()
        for form in forms
        if "{" not in form and len(form) > 8 and form not in chinese[key] and " " in form
    }
    for name in ("look", "gates", "gradients", "path", "compare", "data"):
        tab(lesson, name, "zh")
        seen = reading(lesson)
        assert not {key for form, key in only_english.items() if form in seen}
        lesson.sound()
    visitor.close()


def test_the_dark_theme_is_the_pages_and_the_stages(server: LiveServer, chromium: Browser):
    visitor = Visitor(server, chromium, color_scheme="dark")
    lesson = visitor.at("lstm")
    assert lesson.root.get_attribute("data-theme") == "dark"
    ground = lesson.page.locator("[data-testid=stApp]").evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert ground == "rgb(21, 23, 27)"
    tab(lesson, "gates")
    figure = lesson.page.locator("[data-testid=stVegaLiteChart]").first
    figure.locator("canvas, svg").first.wait_for()
    lesson.holds(lesson.run())
    # The learner may switch: the stage follows, in its place.
    lesson.place(7, 3, "H")
    lesson.page.emulate_media(color_scheme="light")
    lesson.until(lambda: lesson.root.get_attribute("data-theme") == "light")
    assert (lesson.step(), lesson.unit()) == (7, 3)
    visitor.close()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_nothing_is_wider_than_a_phone_in_any_room(server: LiveServer, chromium: Browser, cell: str):
    visitor = Visitor(server, chromium, viewport={"width": 390, "height": 844}, has_touch=True)
    lesson = visitor.at(f"{cell}?do=H%3D0.5%405-%233.7&text={'x' * 256}")
    assert wide(lesson.page) == []
    for name in ("gates", "gradients", "path", "compare", *(["recall"] if cell == "lstm" else []), "code", "data"):
        tab(lesson, name)
        assert wide(lesson.page) == [], name
        lesson.sound()
    lesson.page.locator(".st-key-check [data-testid=stRadio] label").filter(has=lesson.page.locator("input")).first.click()
    settle(lesson.page)
    lesson.page.get_by_role("button", name=words("check.reveal")).click()
    settle(lesson.page)
    assert wide(lesson.page) == []
    lesson.find("button.forward").tap()
    assert lesson.step() == 1
    visitor.close()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_keyboard_reaches_everything(new_context: Callable[..., object], server: LiveServer, cell: str):
    page = new_context().new_page()  # type: ignore[attr-defined]
    page.goto(f"{server.url}/{cell}?text=hello+there")
    lesson = LessonPage(page, cell)
    lesson.ready()
    page.keyboard.press("ArrowRight")  # nothing has the focus yet
    assert lesson.step() == 1
    names: list[str] = []
    for _ in range(120):
        page.keyboard.press("Tab")
        now = page.evaluate(FOCUS)
        if now is None:
            break
        names.append(now[1].strip())
    reached = "\n".join(names)
    wanted = ["Unrolled", "中文", words("source.label"), words("model"), words("source.sample"), words("source.file")]
    wanted += ["Play", "One step back", "One step forward", "Speed", "Position in the text", "New value", "Apply"]
    wanted += [words("reset"), words("update")] if cell == "gru" else []
    wanted += ["1", words("try.set"), words("tab.look"), words("room.notes")]
    assert [name for name in wanted if name not in reached] == []
    along = (words("source.label"), "Play", "Apply", words("try.set"), words("tab.look"))
    order = [next(at for at, name in enumerate(names) if name.endswith(wanted)) for wanted in along]
    assert order == sorted(order), "the order of the page"


def test_the_keyboard_alone_is_enough(new_context: Callable[..., object], server: LiveServer):
    page = new_context().new_page()  # type: ignore[attr-defined]
    page.goto(f"{server.url}/lstm?text=hello+there")
    lesson = LessonPage(page, "lstm")
    lesson.ready()
    key = page.keyboard.press

    def to(name: str, limit: int = 130) -> None:
        for _ in range(limit):
            now = page.evaluate(FOCUS)
            if now is not None and name in now[1]:
                return
            key("Tab")
        raise AssertionError(f"Tab does not lead to {name}")

    to(words("source.label"))
    key("Control+a")
    page.keyboard.type("Let there be light")
    key("Control+Enter")
    lesson.until(lambda: lesson.position().endswith("/ 18"))
    lesson.ready()
    to("Position in the text")
    for name in ("End", "ArrowLeft", "ArrowDown"):
        key(name)
    assert (lesson.position(), lesson.unit()) == ("17 / 18", 1)
    to("cell")  # a formula
    key("Enter")
    to("from here on")
    key("Enter")
    to("Apply")
    key("Enter")
    lesson.changes(1)
    lesson.holds(lesson.run())
    to(words("try.set"))
    key("Enter")
    lesson.changes(0)
    to(words("tab.look"))
    key("ArrowRight")
    key("Enter")
    settle(page)
    expect(page.get_by_role("tab", name=words("tab.gates"))).to_have_attribute("aria-selected", "true")
    lesson.page.locator("[data-testid=stVegaLiteChart]").first.wait_for()
    page.locator(".st-key-check").get_by_role("button", name="Page 1").focus()
    for _ in range(12):
        key("Tab")
        if page.evaluate(FOCUS)[0] == "input":
            break
    key("Space")
    settle(page)
    to(words("check.reveal"))
    key("Enter")
    settle(page)
    expect(page.locator(".st-key-check strong").filter(has_text="predicted")).to_have_count(1)


def test_the_pages_are_there_for_every_reader(server: LiveServer, chromium: Browser):
    """One heading of the first rank, rooms under it, names for every control."""
    visitor = Visitor(server, chromium)
    for cell in ROOMS:
        lesson = visitor.at(cell)
        assert lesson.page.locator("h1").count() == 1
        nameless = lesson.page.evaluate(
            """() => [...document.querySelectorAll('main button, main input, main textarea, main a, main [role=tab]')]
                .filter((e) => e.getClientRects().length && !e.getAttribute('aria-label') && !e.textContent.trim()
                    && !e.labels?.length && !e.getAttribute('aria-labelledby') && !e.title)
                .map((e) => e.outerHTML.slice(0, 200))"""
        )
        assert nameless == []
    visitor.close()


@pytest.fixture(autouse=True)
def _slow_machine(request: pytest.FixtureRequest) -> Iterator[None]:
    expect.set_options(timeout=15_000)
    yield
    expect.set_options(timeout=5_000)
