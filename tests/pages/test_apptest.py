"""Every page, in both languages, with every model and every link, run without a browser."""

import html
import subprocess
import sys
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from engine.recurrent.questions import QUESTIONS
from engine.text.display import visible
from pages.catalog import LESSONS
from pages.ui import more, texts
from pages.ui.config import SAMPLE, from_query
from pages.ui.words import LANGUAGES, words
from tests.browsing import ROOT
from tests.lessons import KINDS, STRANGE, engine_run, link_of, shown, sound, without_browser

CHOICES = [(cell, model) for cell, kind in KINDS.items() for model in kind.models]
TABS: dict[str, tuple[str, ...]] = {"lstm": ("look", "gates", "gradients", "path", "compare", "recall", "code", "data")}
TABS["gru"] = tuple(name for name in TABS["lstm"] if name != "recall")
TABS["rnn"] = ("look", "states", "gradients", "product", "compare", "units", "code", "data")


def opened(page: AppTest, tab: str) -> AppTest:
    page.session_state["more"] = words(f"tab.{tab}")
    return sound(page.run())


def charts(page: AppTest) -> int:
    return len(page.get("vega_lite_chart")) + len(page.get("arrow_vega_lite_chart"))


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("key", ["", *(lesson.key for lesson in LESSONS if lesson.ready)])
def test_every_page_opens_in_every_language(key: str, lang: str):
    page = without_browser(key, lang=lang)
    assert [title.value for title in page.title] == [words(f"lesson.{key}.title" if key else "home.title", lang=lang)]
    assert page.markdown[0].value


HEAD = """
import sys
from pages.ui import lesson

class Drawn(BaseException):
    pass

def head(*given):
    raise Drawn(sorted({"torch", "altair", "pandas", "plotly.graph_objs._figure"} & sys.modules.keys()))

lesson.head = head
try:
    import pages.CELL
except Drawn as drawn:
    print(drawn)
"""


@pytest.mark.parametrize("cell", KINDS)
def test_the_head_of_a_lesson_is_drawn_before_anything_heavy_is_loaded(cell: str):
    code = HEAD.replace("CELL", cell)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("cell", "model"), CHOICES)
def test_every_model_opens_with_every_tab(cell: str, model: str):
    page = without_browser(cell, model=model, text="In the beginning God", do="H=0.5@3")
    assert page.selectbox(key="control-model").value == model
    assert [tab.label for tab in page.tabs] == [words(f"tab.{name}") for name in TABS[cell]]
    for name in TABS[cell]:
        opened(page, name)
        files = [button.label for button in page.download_button]
        assert charts(page) == {"look": 0, "states": 2, "gates": 3, "recall": 2, "code": 0, "data": 0}.get(name, 1), name
        assert len(files) == {"code": 1, "data": 2}.get(name, 3 * charts(page)), name


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("kind", STRANGE)
def test_every_text_opens_with_every_tab(cell: str, kind: str):
    page = without_browser(cell, text=STRANGE[kind])
    assert page.text_area(key="text").value == STRANGE[kind]
    for name in TABS[cell]:
        opened(page, name)
    if len(STRANGE[kind]) == 1:
        opened(page, "product" if cell == "rnn" else "path")
        assert words("figure.empty.no_earlier") in [text.value for text in page.text]
        assert charts(page) == 0


@pytest.mark.parametrize("cell", KINDS)
def test_every_gradient_can_be_asked_for(cell: str):
    page = opened(without_browser(cell, text="In the beginning"), "gradients")
    for target in page.selectbox(key=f"target-{cell}").options:
        sound(page.selectbox(key=f"target-{cell}").select(target).run())
        assert charts(page) == 1
        steps = next(box for box in page.number_input if box.key and box.key.startswith("step-"))
        sound(steps.set_value(1).run())


def test_two_figures_with_the_same_numbers_are_both_shown():
    """A change that changes nothing: the strips of run and baseline are equal, and so are the values of two figures."""
    equal = repr(float(engine_run("lstm", {"text": "ab"}).trace["H"][1, 0, 3]))
    page = opened(without_browser("lstm", text="ab", do=f"H={equal}@1#3"), "gates")
    assert charts(page) == 3


# Several bad values in each link, and what is said of each.
BAD: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (
        {"step": "9999", "unit": "64", "seed": "1e9", "model": "gpt", "symbol": "__class__", "do": "H=nan;rubbish"},
        ("step 54 is shown", "unit 63 is shown", "seed", "does not have", "finite number", "could not be read"),
    ),
    (
        {"step": "-3", "unit": "9" * 400, "model": "../../etc/passwd", "reset": "never", "update": "never", "do": "H=7"},
        ("step 1 is shown", "unit 63 is shown", "does not have", "reset convention", "update convention", "nearest bound"),
    ),
    (
        {"step": "٣", "do": "H=inf@3;H=1@99;H=1@9-3;H=1#64;W_hh=1;<script>", "from": "x" * 5000, "unknown": "1"},
        ("must be a whole number", "finite number", "outside the text", "has 64 units", "2 changes could not be read"),
    ),
    (
        {"step": "1e3", "do": ";".join(f"H=0@{k}" for k in range(20)), "text": "x" * 400},
        ("must be a whole number", "At most 16 changes", "1–256 of 400"),
    ),
    ({"text": "", "lang": "<b>", "do": "H=1e999"}, ("at least one character", "finite number")),
    ({"text": "abc", "doc": "0" * 24, "from": "7"}, ()),
]


@pytest.mark.parametrize("cell", KINDS)
def test_a_bad_link_is_said_in_a_sentence_and_never_an_exception(cell: str):
    for params, said in BAD:
        page = without_browser(cell, **params)
        sentences = "\n".join(text.value for text in page.text)
        assert [each for each in said if each not in sentences] == [], sentences
        config, _ = from_query(KINDS[cell], params)
        assert page.text_area(key="text").value == config.text
        assert page.selectbox(key="control-model").value == config.model


@pytest.mark.parametrize(("cell", "model"), CHOICES)
def test_every_question_is_answered_and_revealed(cell: str, model: str):
    lang = "en" if model == "trained" else "zh"
    page = without_browser(cell, model=model, lang=lang, text=SAMPLE if model != "recall-bias-2" else "Dbhagcefadbhgecafdbhc?")
    asked = 0
    for number in range(1, len(QUESTIONS[cell]) + 1):
        sound(page.pagination(key="question").set_value(number).run())
        if not page.radio:
            assert words("question.undecided", lang=lang) in [text.value for text in page.text]
            continue
        asked += 1
        reveal = next(button for button in page.button if button.label == words("check.reveal", lang=lang))
        assert reveal.disabled, "predict first"
        options = page.radio[0].options
        assert len(options) == len(set(options)) >= 3
        sound(page.radio[0].set_value(page.radio[0].options[0]).run())
        before = {markdown.value for markdown in page.markdown}
        reveal = next(button for button in page.button if button.label == words("check.reveal", lang=lang))
        sound(reveal.click().run())
        verdicts = {f"**{words(f'check.{verdict}', lang=lang)}**" for verdict in ("right", "wrong")}
        new = [markdown.value for markdown in page.markdown if markdown.value not in before]
        assert any(value.startswith(tuple(verdicts)) for value in new)
        assert len(new) == 2, "the right option, and why"
        assert page.radio[0].disabled
    assert asked >= 4


def test_a_short_text_gets_a_sentence_instead_of_a_question():
    page = without_browser("lstm", text="x")
    found = 0
    for number in range(1, len(QUESTIONS["lstm"]) + 1):
        sound(page.pagination(key="question").set_value(number).run())
        found += any("needs a text of at least" in text.value for text in page.text)
    assert found > 0


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("cell", KINDS)
def test_every_step_of_the_walk_sets_the_page_up(cell: str, lang: str):
    page = without_browser(cell, lang=lang, text="Let there be light: and there was light.")
    steps = [text for name, text in texts.sections(cell, lang).items() if name.startswith("try.")]
    assert len(steps) >= 4
    for number, text in enumerate(steps, start=1):
        sound(page.pagination(key="try").set_value(number).run())
        button = next(button for button in page.button if button.label == words("try.set", lang=lang))
        kept = link_of(page)["text"]
        sound(button.click().run())
        asked = dict(parse_qsl(text.partition("\n")[0].removeprefix("link:").strip()))
        config, notes = from_query(KINDS[cell], {"text": kept} | asked)
        assert notes == (), "the walk fits the learner's own text"
        assert page.session_state["config"] == config
        assert {name: value for name, value in link_of(page).items() if name != "lang"} == {"text": kept} | asked
        assert page.selectbox(key="control-model").value == config.model


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    return [[html.unescape(cell.strip()) for cell in line.strip("|").split("|")] for line in markdown.splitlines()[2:]]


def test_the_conventions_stand_side_by_side_on_the_same_weights():
    page = without_browser("gru", text="In the beginning", unit="5")
    tables = [next(markdown.value for markdown in page.markdown if "|" in markdown.value)]
    sound(page.selectbox(key="control-reset").set_value("after").run())
    sound(page.selectbox(key="control-update").set_value("replaces").run())
    assert link_of(page) == {"text": "In the beginning", "unit": "5", "reset": "after", "update": "replaces"}
    tables.append(next(markdown.value for markdown in page.markdown if "|" in markdown.value))
    for table, here in zip(tables, (0, 3), strict=True):
        runs = [
            engine_run("gru", {"text": "In the beginning", "reset": reset, "update": update})
            for reset in ("before", "after")
            for update in ("keeps", "replaces")
        ]
        rows = rows_of(table)
        assert len(rows) == len(runs)
        for at, (row, run) in enumerate(zip(rows, runs, strict=True)):
            gap = abs(run.trace["H"] - runs[here].trace["H"]).max()
            assert row[2:] == [
                shown(run.trace["H_tilde"][15, 0, 5]),
                shown(run.trace["H"][15, 0, 5]),
                f"“{visible(run.vocabulary.tokens[run.next_tokens(15, 1)[0][0]])}”",
                words("conventions.here") if at == here else shown(gap),
            ]


def test_the_recall_experiment_fails_at_bias_0_and_works_at_bias_2():
    page = opened(without_browser("lstm"), "recall")
    assert charts(page) == 2
    for noise in (5, 10, 20, 40):
        sound(page.segmented_control(key="noise").set_value(noise).run())
        assert charts(page) == 2
    assert set(more.RECALL) < set(KINDS["lstm"].models)
