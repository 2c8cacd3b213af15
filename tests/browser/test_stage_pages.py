"""The stage with every kind of text, at every width, in both themes, through reruns and what-ifs."""

import re

import pytest

from engine.equation import set_to
from engine.text.display import visible
from tests.browsing import settle
from tests.stage.runs import MODELS, TEXT, trace_of
from tests.stage.serving import Stage, expected, frames, shown

TEXTS = {
    "one character": "a",
    "repeated": "aaaa aaaa the the the",
    "digits": "1 2 10 007 1E1 3E2",
    "markup": "a<b <img src=x onerror=alert(1)> <script>alert(1)</script> $x$ **b** :smile:",
    "emoji": "ok 👩‍👩‍👧 🇵🇱 🏳️‍🌈",
    "Chinese": "你好，世界。你好",
    "right to left": "שלום עולם مرحبا",
    "combining marks": "ye\u0302\u0301u e\u0301 \u0301",
    "256 characters": (TEXT + " ") * 6 + "In the beg",
}
TEXTS["256 characters"] = TEXTS["256 characters"][:256]


# --------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize("kind", TEXTS)
def test_every_text_is_shown_letter_for_letter(open_stage, kind):
    text = TEXTS[kind]
    stage = open_stage(text=text)
    tokens = stage.find(".tokens .token").all_text_contents()
    assert tokens == [visible(character) for character in text]
    assert stage.find(".tokens *:not(.token)").count() == 0
    assert stage.page.locator("img[src=x]").count() == 0
    stage.find(".tokens").focus()
    stage.page.keyboard.press("End")
    assert stage.position() == f"{len(text)} / {len(text)}"
    trace, last = trace_of(text=text), len(text) - 1
    assert stage.table() == {name: shown(trace[name][last, 0, 0]) for name in ("F", "I", "C_tilde", "C", "O", "H")}
    current = stage.find(".token.current").bounding_box()
    box = stage.find(".token-box").bounding_box()
    assert box["x"] - 1 <= current["x"] <= box["x"] + box["width"]


def test_unknown_characters_are_marked(open_stage):
    stage = open_stage(text="a你b")
    assert stage.find(".token.unknown").all_text_contents() == ["你"]
    assert "<unk>" in (stage.find(".token.unknown").get_attribute("title") or "")


def clashes(stage: Stage, width: int) -> list[str]:
    """Labels and nodes of the diagram that overlap or leave the page."""
    boxes = stage.find(".diagram .label, .diagram .node").evaluate_all(
        """(all) => all.map((e) => { const {left, right, top, bottom} = e.getBoundingClientRect();
            return [e.dataset.label ?? e.dataset.node, left, right, top, bottom]; })"""
    )
    found = [name for name, left, right, *_ in boxes if left < 0 or right > width]
    for i, (one, left, right, top, bottom) in enumerate(boxes):
        for other, a, b, c, d in boxes[:i]:
            if not (right <= a + 1 or b <= left + 1 or bottom <= c + 1 or d <= top + 1):
                found.append(f"{one} and {other}")
    return found


WIDTHS = (390, 820, 1440)


def at_every_width(stage: Stage) -> dict[int, list[str]]:
    """What clashes, by width; the page itself must not scroll sideways either."""
    found = {}
    for width in WIDTHS:
        stage.page.set_viewport_size({"width": width, "height": 900})
        stage.page.wait_for_timeout(400)
        wide = stage.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found[width] = clashes(stage, width) + (["the page"] if wide > 0 else [])
    return {width: names for width, names in found.items() if names}


@pytest.mark.parametrize("name", ["lstm", "gru", "gru-after-replaces"])
def test_every_formula_fits_into_its_place(open_stage, name):
    """At the width that is left beside the sidebar, where the column of formulas is at its narrowest."""
    stage = open_stage(model=name, options={"viewport": {"width": 1140, "height": 900}})
    stage.page.evaluate("document.fonts.ready")
    for at in range(stage.find(".equation").count()):
        stage.find(".equation").nth(at).click()
        for box in (".equation >> nth=" + str(at), ".large", ".plugged"):
            assert stage.find(box).evaluate("(e) => e.scrollWidth - e.clientWidth") <= 0, (at, box)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_nothing_overlaps_and_nothing_runs_over(open_stage, name):
    assert at_every_width(open_stage(model=name, step=12, unit=3)) == {}


@pytest.mark.parametrize("name", ["lstm", "gru", "gru-replaces"])
def test_nothing_overlaps_with_a_baseline_either(open_stage, name):
    stage = open_stage(model=name, step=12, unit=3)
    stage.find("button").filter(has_text="all units").click()
    stage.find(".apply").click()
    stage.wait_for_changes(1)
    assert stage.find(".base:not(:empty)").count() > 2
    assert at_every_width(stage) == {}


# ------------------------------------------------------------------------------------------------- reruns and what-ifs


def test_a_rerun_keeps_the_place(open_stage):
    stage = open_stage()
    stage.go(14, 5, "C", 40, 7)
    stage.page.get_by_role("button", name="again").click()
    stage.page.get_by_text("run 2").wait_for()
    settle(stage.page)
    assert (stage.position(), stage.pressed()) == ("15 / 40", "memory cell")
    assert stage.find(".unit").inner_text() == "unit 5"


def test_another_text_keeps_the_place_where_it_can(open_stage):
    stage = open_stage()
    stage.go(14, 5, "C", 40, 7)
    field = stage.page.get_by_role("textbox", name="text")
    field.fill("In the beginning God")
    field.press("Enter")
    stage.find(".position").get_by_text("15 / 20").wait_for()
    assert stage.pressed() == "memory cell"
    field.fill("In")
    field.press("Enter")
    stage.find(".position").get_by_text("2 / 2").wait_for()
    assert stage.numbers()["C"] == shown(trace_of(text="In")["C"][1, 0, 5])


def test_another_language_keeps_the_place(open_stage):
    stage = open_stage()
    stage.go(14, 5, "C", 40, 7)
    stage.page.get_by_text("zh", exact=True).click()
    stage.find(".meaning").get_by_text("记忆元：").wait_for()
    assert stage.position() == "15 / 40"
    assert stage.root.count() == 1
    stage.page.keyboard.press("Escape")
    stage.find(".tokens").focus()
    stage.page.keyboard.press("ArrowRight")
    assert stage.position() == "16 / 40", "one key, one step: the stage before it listens no more"


def test_the_place_comes_back_into_an_address_that_the_server_has_written(open_stage):
    stage = open_stage()
    stage.go(14, 5, "C", 40, 7)
    stage.page.wait_for_function("() => location.search.includes('step=14')")
    entries = stage.page.evaluate("history.length")
    stage.go(15, 5, "C", 40, 7)
    stage.page.wait_for_function("() => location.search.includes('step=15')")
    assert stage.page.evaluate("history.length") == entries, "a step is no entry of the history"
    stage.page.get_by_role("button", name="write").click()
    stage.page.wait_for_function("() => location.search.includes('model=lstm') && location.search.includes('step=15')")
    assert re.search(r"step=15&unit=5&symbol=C", stage.page.url)


def test_an_untouched_stage_leaves_the_address_alone(open_stage):
    stage = open_stage(step=9)
    stage.page.wait_for_timeout(600)
    assert stage.page.url.endswith("?step=9")


def test_a_link_opens_at_its_place(open_stage):
    stage = open_stage(step=9, unit=4, symbol="H")
    assert (stage.position(), stage.pressed()) == ("10 / 40", "hidden state")
    assert open_stage(step=999, unit=999, symbol="H").position() == "40 / 40"


def test_a_change_is_run_shown_beside_the_baseline_and_taken_back(open_stage):
    stage = open_stage()
    seen = frames(stage.page)
    plain = trace_of()
    changed = trace_of(do={"F": (set_to(1.0, step=(10, None)),)})
    stage.go(10, 2, "F", 40, 7)
    stage.find(
        "button",
    ).filter(has_text="from here on").click()
    stage.find("button").filter(has_text="all units").click()
    stage.find(".apply").click()
    stage.wait_for_changes(1)
    assert seen == [], "no second connection"
    stage.go(20, 2, "F", 40, 7)
    numbers = stage.numbers()
    assert numbers == {carries: expected(changed, carries, 20, 2) for carries in numbers}
    assert stage.find('[data-label="C"] .base').inner_text() == shown(plain["C"][20, 0, 2])
    note = stage.find(".clamped-note").inner_text()
    assert note == f"The equation gives {shown(changed.terms['F:0'][20, 0, 2])}; you set it to 1."
    assert stage.find(".changes li").all_inner_texts()[0].startswith("F")
    assert "from step 11 on, all units" in stage.find(".changes .scope").inner_text()
    assert stage.find('[data-strip-box="F"] .clamped').count() == 1
    for view in ("baseline", "difference", "changed"):
        stage.find(".compare button").filter(has_text=view).click()
        assert stage.find('.compare [aria-pressed="true"]').inner_text() == view
    assert stage.find(".distribution.compared .before").first.is_visible()
    stage.go(5, 2, "F", 40, 7)
    assert stage.find(".clamped-note").is_hidden()
    assert stage.find('[data-label="C"] .base').inner_text() == ""
    stage.find(".reset").click()
    stage.wait_for_changes(0)
    stage.go(20, 2, "F", 40, 7)
    assert stage.number("C") == shown(plain["C"][20, 0, 2])
    assert stage.find(".compare").is_hidden()


def test_several_changes_on_chosen_units(open_stage):
    stage = open_stage()
    stage.find("button").filter(has_text="chosen").click()
    stage.find("input.units").fill("9")
    stage.find(".apply").click()
    assert "from 0 to 6" in stage.find(".problem").inner_text()
    stage.find("input.units").fill("1, 3-4")
    stage.find('input[type="number"]').fill("0.25")
    stage.find(".apply").click()
    stage.wait_for_changes(1)
    assert stage.find('[data-strip-box="F"] .clamped').count() == 2
    stage.find('input[type="number"]').fill("0.25")
    stage.find(".apply").click()  # the same again: nothing to wait for
    assert stage.find(".waiting").count() == 0
    stage.find(".equation").nth(4).click()
    stage.find('input[type="number"]').fill("-0.5")
    stage.find("button").filter(has_text="this step").click()
    stage.find("button").filter(has_text="this unit").click()
    stage.find(".apply").click()
    stage.wait_for_changes(2)
    assert stage.number("C") == "−0.500"
    stage.find(".drop").first.click()
    stage.wait_for_changes(1)
    assert "C" in stage.find(".changes li").inner_text()


# ----------------------------------------------------------------------------------------------------- dark, miniature


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_themes(open_stage, scheme):
    stage = open_stage(options={"color_scheme": scheme})
    assert stage.root.get_attribute("data-theme") == scheme
    ground = stage.find(".speed").evaluate("(e) => getComputedStyle(e).backgroundColor")
    for selector in (
        ".number",
        ".position",
        ".meaning",
        ".place",
        ".share",
        ".note",
        ".equations [data-symbol]",
        ".label .name",
    ):
        for colour in set(stage.find(selector).evaluate_all("(all) => all.map((e) => getComputedStyle(e).color)")):
            assert contrast(colour, ground) >= 4.5, f"{selector} {colour} on {ground}"


def test_the_miniature_plays_by_itself_and_is_a_link(open_stage):
    stage = open_stage(mini=1)
    assert stage.find(".panel, .strips, .what-if, .distribution").count() == 0
    stage.page.wait_for_function(
        """() => { const host = [...document.querySelectorAll('*')].find((e) => e.shadowRoot?.querySelector('.stage'));
            return Number(host.shadowRoot.querySelector('.tokens').getAttribute('aria-valuenow')) > 2; }"""
    )
    assert stage.find("a.cover").get_attribute("href") == "?model=gru"
    assert "step=" not in stage.page.url


def test_with_less_motion_the_miniature_rests(open_stage):
    stage = open_stage(mini=1, options={"reduced_motion": "reduce"})
    stage.page.wait_for_timeout(1500)
    assert stage.find(".tokens").get_attribute("aria-valuenow") == "1"
    assert stage.find(".node").first.evaluate("(e) => getComputedStyle(e).transitionDuration") in ("0s", "")
