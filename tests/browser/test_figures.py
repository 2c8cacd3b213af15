"""A figure in the running page: every token keeps its place there too (a figure object that is right is not yet a page)."""

import re
from urllib.parse import quote

from engine.text.display import visible

# Repeated, digit-like, date-like and markup characters; the axis is right only if each position answers with its own token.
TEXT = "1 10 1E1 2020 <b>the the</b> 字字 é"


def hovered(page, chart, i, count):
    """What the pointer finds in the first strip over the middle of column i: the step and the token."""
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 4 + (i + 0.5) / count * (box["width"] - 8), box["y"] + 100)
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for()
    page.wait_for_function(
        "step => document.querySelector('#vg-tooltip-element td.value')?.textContent === step", arg=str(i + 1)
    )
    return tip.locator("td.value").all_text_contents()[1]


def test_ax_01_07_08_and_13_tokens_keep_their_places_in_the_running_page(open_page):
    page = open_page(f"gru?text={quote(TEXT)}")
    page.get_by_role("tab", name=re.compile("Gates")).click()
    chart = page.locator(".vega-embed svg").first
    chart.wait_for()
    chart.scroll_into_view_if_needed()
    assert chart.locator(".role-axis-label text").all_text_contents() == [visible(character) for character in TEXT]
    found = [hovered(page, chart, i, len(TEXT)) for i in range(len(TEXT))]
    assert found == [visible(character) for character in TEXT]
    assert page.locator("#vg-tooltip-element b").count() == 0
