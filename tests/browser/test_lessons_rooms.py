"""The rooms below the stage in a real browser: the walk, the tabs and their files, the questions, the conventions."""

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlencode
from xml.etree import ElementTree

import pytest
from PIL.Image import open as read_image
from playwright.sync_api import Browser, Locator, expect

from engine.recurrent.questions import QUESTIONS
from engine.tables import unprotected
from pages.ui import texts
from pages.ui.words import words
from tests.browser.lesson_page import LessonPage, Visitor
from tests.browsing import LiveServer, settle
from tests.lessons import shown

TABS = ("look", "gates", "gradients", "path", "compare", "recall", "code", "data")
TEXT = "Let there be light: and there was light."


@pytest.fixture(scope="module")
def visitor(server: LiveServer, chromium: Browser) -> Iterator[Visitor]:
    one = Visitor(server, chromium, accept_downloads=True)
    yield one
    one.close()


def turn(lesson: LessonPage, key: str, number: int) -> Locator:
    """Turn a pager to a page; returns the pager."""
    pager = lesson.page.locator(f".st-key-{key}").last
    pager.get_by_role("button", name=f"Page {number}").click()
    settle(lesson.page, quiet=0.2)
    return pager


def opened(lesson: LessonPage, name: str) -> Locator:
    lesson.page.get_by_role("tab", name=words(f"tab.{name}"), exact=True).click()
    settle(lesson.page, quiet=0.3)
    lesson.sound()
    return lesson.page.get_by_role("tabpanel").filter(visible=True)


def taken(lesson: LessonPage, button: Locator) -> tuple[str, bytes]:
    """The name and content of the file behind a button."""
    with lesson.page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def rows_of(content: bytes) -> list[dict[str, str]]:
    assert content.startswith(b"\xef\xbb\xbf")
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def is_a_file(name: str, content: bytes) -> None:
    """Assert that a file is what its name says."""
    if name.endswith(".csv"):
        rows = rows_of(content)
        assert rows
        assert all(None not in row and None not in row.values() for row in rows), "every row has every column"
    elif name.endswith(".png"):
        with read_image(io.BytesIO(content)) as image:
            assert image.format == "PNG"
            assert min(image.size) > 50
    elif name.endswith(".svg"):
        assert ElementTree.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
    else:
        assert name.endswith(".py")
        compile(content, name, "exec")


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_every_tab_opens_and_every_file_arrives(visitor: Visitor, cell: str):
    lesson = visitor.at(f"{cell}?{urlencode({'text': TEXT, 'do': 'H=0.5@3'})}")
    names = [name for name in TABS if (cell, name) != ("gru", "recall")]
    expect(lesson.page.get_by_role("tab")).to_have_text([words(f"tab.{name}") for name in names])
    seen = set()
    for name in names:
        panel = opened(lesson, name)
        for button in panel.locator("[data-testid=stDownloadButton] button").all():
            file, content = taken(lesson, button)
            is_a_file(file, content)
            seen.add(file)
        pictures = panel.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)")
        assert pictures.count() == {"look": 0, "gates": 3, "recall": 2, "code": 0, "data": 0}.get(name, 1)
    figures = {"gates", "difference", "saturation", "gradients", "path", "parameters"}
    figures |= {"recall", "recall-gates"} if cell == "lstm" else set()
    wanted = {f"unrolled-{figure}.{ending}" for figure in figures for ending in ("png", "svg", "csv")}
    assert seen == wanted | {f"unrolled-{cell}{ending}" for ending in (".py", "-states.csv", "-predictions.csv")}


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_tables_and_script_give_the_numbers_of_the_stage(visitor: Visitor, cell: str, tmp_path: Path):
    params = {"text": TEXT, "do": "H=0.5@3#2", "unit": "2", "step": "5"} | ({"reset": "after"} if cell == "gru" else {})
    lesson = visitor.at(f"{cell}?{urlencode(params)}")
    run = lesson.run()
    panel = opened(lesson, "data")
    states, predictions = (
        rows_of(taken(lesson, button)[1]) for button in panel.locator("[data-testid=stDownloadButton] button").all()
    )
    assert len(states) == len(TEXT) * 64
    names = [name for name, symbol in run.trace.symbols.items() if symbol.axes == "TBH"]
    for row in states[:: 64 * 7 + 5]:
        t, unit = int(row["step"]) - 1, int(row["unit"])
        assert unprotected(row["token"]) == TEXT[t]
        for name in names:
            assert shown(float(row[name])) == shown(run.trace[name][t, 0, unit])
            assert shown(float(row[f"{name}_baseline"])) == shown(run.baseline[name][t, 0, unit])
    assert {name: shown(float(states[5 * 64 + 2][name])) for name in names} == lesson.table()
    size = len(run.vocabulary)
    assert [unprotected(row["next"]) for row in predictions[:size]] == list(run.vocabulary.tokens)
    assert float(predictions[5 * size + 9]["probability"]) == pytest.approx(run.trace["P"][5, 0, 9], rel=1e-6)

    panel = opened(lesson, "code")
    name, script = taken(lesson, panel.locator("[data-testid=stDownloadButton] button"))
    assert panel.locator("[data-testid=stCode] code").inner_text().strip() == script.decode().strip()
    (tmp_path / name).write_bytes(script)
    done = subprocess.run(
        [sys.executable, "-I", name], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True
    )
    head, *lines = done.stdout.splitlines()
    assert head.split()[:2] == ["unit", "2"]
    printed = lines[5].split()[-len(names) :]
    assert head.split()[2:] == names
    assert {one: shown(float(number)) for one, number in zip(names, printed, strict=True)} == lesson.table()
    shares = done.stdout.partition("next token after step 6 ")[2].splitlines()[1:9]
    assert [f"{100 * float(line.split()[-1]):.1f}" for line in shares][:5] == [share for _, share, _ in lesson.bars()][:5]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_every_question_is_answered_and_revealed(visitor: Visitor, cell: str):
    lesson = visitor.at(f"{cell}?step=20")
    room = lesson.page.locator(".st-key-check")
    for number in range(1, len(QUESTIONS[cell]) + 1):
        turn(lesson, "question", number)
        reveal = room.get_by_role("button", name=words("check.reveal"))
        if reveal.count() == 0:
            expect(room).to_contain_text(words("question.undecided"))
            continue
        expect(reveal).to_be_disabled()
        room.locator("[data-testid=stRadio] label").filter(has=lesson.page.locator("input")).nth(number % 3).click()
        expect(reveal).to_be_enabled()
        reveal.click()
        expect(room.locator("strong").filter(has_text="predicted")).to_have_count(1)
        lesson.sound()
    # What was answered is still so when one comes back, and nothing on the stage has moved.
    turn(lesson, "question", 1)
    expect(room.locator("strong").filter(has_text="predicted")).to_have_count(1)
    assert lesson.step() == 20


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_every_step_of_the_walk_sets_the_page_up(visitor: Visitor, cell: str):
    lesson = visitor.at(f"{cell}?{urlencode({'text': TEXT})}")
    steps = [text for name, text in texts.sections(cell, "en").items() if name.startswith("try.")]
    for number, text in enumerate(steps, start=1):
        turn(lesson, "try", number)
        lesson.page.get_by_role("button", name=words("try.set")).click()
        link = dict(parse_qsl(text.partition("\n")[0].removeprefix("link:").strip()))
        lesson.address_has(**link)
        lesson.changes(len(link["do"].split(";")) if "do" in link else 0)
        assert lesson.step() == int(link["step"])
        assert lesson.pressed() == words(f"stage.name.{link['symbol']}")
        assert lesson.link().get("text") == link.get("text", TEXT if number < 6 or cell == "gru" else link.get("text"))
        lesson.holds(lesson.run())


def test_the_conventions_stand_side_by_side(visitor: Visitor):
    lesson = visitor.at(f"gru?{urlencode({'text': TEXT, 'unit': 7})}")
    formulas = lesson.find(".equations .equation")
    rows = lesson.page.locator(".st-key-conventions tbody tr")
    before = formulas.all_text_contents()
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text(words("conventions.here"))
    lesson.choose("reset", "Reset after the product")
    lesson.address_has(reset="after", unit="7")
    run = lesson.run()
    lesson.holds(run)
    after = formulas.all_text_contents()
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, True, False, True, True, True]
    cells = rows.nth(2).locator("td").all_inner_texts()
    last = len(TEXT) - 1
    assert cells[2:4] == [shown(run.trace["H_tilde"][last, 0, 7]), shown(run.trace["H"][last, 0, 7])]
    assert cells[5] == words("conventions.here")
    lesson.sound()
