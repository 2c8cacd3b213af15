"""A lesson page in a real browser: the stage on it, its widgets, and what it shows held to the engine's own run."""

import re
import time
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from engine.notation import format_number
from pages.ui.config import WINDOW
from pages.ui.words import words
from tests.browsing import LiveServer, settle, watch
from tests.lessons import EngineRun, engine_run, query
from tests.stage.serving import Stage, expected, shown


class LessonPage(Stage):
    """An open lesson; ``cell`` is "lstm" or "gru"."""

    def __init__(self, page: Page, cell: str) -> None:
        super().__init__(page)
        self.cell = cell

    def ready(self) -> None:
        """Wait until the stage stands and nothing moves any more."""
        settle(self.page, quiet=0.25)
        self.root.locator(".diagram .label").first.wait_for(state="attached")

    def run(self) -> EngineRun:
        """The engine's run of what the address says now."""
        return engine_run(self.cell, self.page.url)

    def step(self) -> int:
        return int(self.position().partition(" / ")[0]) - 1

    def unit(self) -> int:
        return int(re.findall(r"\d+", self.find(".transport .unit").inner_text())[0])

    def place(self, step: int, unit: int, symbol: str) -> None:
        """Go to a cell: a click on the strip chooses symbol and step, keys the unit."""
        run = self.run()
        steps, units = len(run.trace), run.trace["H"].shape[-1]
        field = self.find(f'[data-strip-box="{symbol}"]')
        box = field.bounding_box()
        assert box is not None
        field.click(position={"x": (step + 0.5) * box["width"] / steps, "y": (unit + 0.5) * 34 / units})
        for _ in range(units):  # several units share a pixel
            if self.unit() == unit:
                break
            self.page.keyboard.press("ArrowDown" if self.unit() < unit else "ArrowUp")
        assert (self.step(), self.unit()) == (step, unit)

    def holds(self, run: EngineRun) -> None:
        """Assert that every number of the picture, the table, the formula and the bars is the engine's, where we are."""
        step, unit, trace = self.step(), self.unit(), run.trace
        numbers = self.numbers()
        assert len(numbers) > 6
        assert numbers == {carries: expected(trace, carries, step, unit) for carries in numbers}
        table = self.table()
        assert set(table) == {name for name, symbol in trace.symbols.items() if symbol.axes == "TBH"}
        assert table == {name: shown(trace[name][step, 0, unit]) for name in table}
        for slot, text in self.slots():
            value = trace.weights[slot][unit] if slot in trace.weights else None
            wanted = shown(value) if value is not None else expected(trace, slot, step, unit)
            assert text.strip("()").lstrip("−") == wanted.lstrip("−"), slot
        for index, share, _ in self.bars():
            assert share == percent(trace["P"][step, 0, index])
        assert [index for index, *_ in self.bars()][:7] == [index for index, _ in run.next_tokens(step, 7)]
        if run.trace is not run.baseline:
            for index, _, change in self.bars():
                moved = 100 * (float(trace["P"][step, 0, index]) - float(run.baseline["P"][step, 0, index]))
                assert change == ("" if abs(moved) < 0.05 else signed(moved)), index

    def slots(self) -> list[tuple[str, str]]:
        """The numbers plugged into the chosen equation."""
        found = self.find(".plugged [data-slot]").evaluate_all("(all) => all.map((e) => [e.dataset.slot, e.textContent])")
        return [(slot, text) for slot, text in found]

    def bars(self) -> list[tuple[int, str, str]]:
        """The next tokens: index in the vocabulary, percentage, difference to the baseline."""
        found = self.find(".bars-list li").evaluate_all(
            "(all) => all.filter((e) => !e.hidden).map((e) => [Number(e.dataset.index), "
            "e.querySelector('.share').textContent, e.querySelector('.change').textContent])"
        )
        return [(index, share, change) for index, share, change in found]

    def everything(self) -> dict[str, object]:
        """All numbers on the stage."""
        return {
            "numbers": self.numbers(),
            "table": self.table(),
            "slots": self.slots(),
            "bars": self.bars(),
            "place": (self.step(), self.unit(), self.pressed()),
        }

    def until(self, true: Callable[[], bool], seconds: float = 20) -> None:
        """Wait until something is so, asking at every hundredth of a second."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "it did not come to be"
            self.page.wait_for_timeout(10)

    def address_has(self, **params: str) -> None:
        """Wait until the address has these parameters (the stage writes its own a little later)."""
        self.page.wait_for_function(
            """(wanted) => { const here = new URLSearchParams(location.search);
                return Object.entries(wanted).every(([name, value]) => here.get(name) === value); }""",
            arg=params,
        )

    def link(self) -> dict[str, str]:
        return query(self.page.url)

    def change(self, symbol: str, value: float, steps: str, units: str) -> None:
        """Ask for a what-if at the present place: ``steps`` and ``units`` as the buttons call them."""
        count = self.find(".changes li").count()
        if self.find('.equation[aria-pressed="true"]').get_attribute("title") != words(f"stage.name.{symbol}"):
            self.find(f'.equation[title="{words(f"stage.name.{symbol}")}"]').click()
        self.find("button").filter(has_text=steps).click()
        self.find("button").filter(has_text=units).click()
        self.find('input[type="number"]').fill(repr(value))
        self.find(".apply").click()
        self.changes(count + 1)

    def changes(self, count: int) -> None:
        """Wait until so many what-ifs are active and the page rests."""
        expect(self.find(".changes li")).to_have_count(count)
        self.ready()

    def type_text(self, text: str) -> None:
        self.page.locator("textarea").fill(text)
        self.page.locator("textarea").press("Control+Enter")
        self.until(lambda: self.find(".tokens .token").count() == min(len(text), WINDOW))
        self.ready()

    def choose(self, field: str, option: str, box: Locator | None = None) -> None:
        """Choose an option by its words in the select box of a field of the config, or in another one."""
        box = box or self.page.locator(f".st-key-control-{field}").get_by_role("combobox")
        box.scroll_into_view_if_needed()
        self.page.wait_for_timeout(150)  # a list closes when the page scrolls under it
        box.click()
        self.page.get_by_role("option", name=option).click()
        self.ready()

    def sound(self) -> None:
        """Assert that nothing on the page failed."""
        assert self.page.locator("[data-testid=stException]").count() == 0
        assert self.page.locator("[data-testid=stAlert]").count() == 0


def percent(probability: float) -> str:
    """A probability as the bars write it."""
    value = 100 * float(probability)
    return "<0.1" if 0 < value < 0.05 else format_number(value, digits=1, minus="−")


def signed(moved: float) -> str:
    """A difference in percent as the bars write it."""
    return ("+" if moved > 0 else "") + format_number(moved, digits=1, minus="−")


class Visitor:
    """A browser context that many tests share (a page costs seconds), with what went wrong in it written down."""

    def __init__(self, server: LiveServer, chromium: Browser, **options: Any) -> None:
        self.url = server.url
        self.faults: list[str] = []
        self.context = chromium.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        watch(self.context, self.faults)
        self.page = self.context.new_page()

    def at(self, address: str, page: Page | None = None) -> LessonPage:
        """The lesson at an address, opened as a link from outside is, in the visitor's page or another tab."""
        lesson = LessonPage(page or self.page, address.partition("?")[0])
        lesson.page.goto(f"{self.url}/{address}")
        lesson.ready()
        return lesson

    def close(self) -> None:
        """Leave; errors in the browser fail the test."""
        self.context.close()
        assert not self.faults, "errors in the browser:\n" + "\n".join(self.faults[:5])
