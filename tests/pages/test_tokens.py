"""Lesson 2 without a browser: its config, its rooms, and what they say about every kind of text."""

from urllib.parse import parse_qsl

import pytest

from engine.text.cutting import cut
from engine.text.tokenizers import LEVELS
from pages.ui import cutting, documents
from pages.ui.config import SAMPLE, from_query, to_query
from pages.ui.cutting import TokensConfig
from pages.ui.cutting_rooms import batch_rows, token_rows, vocabulary_rows
from pages.ui.texts import sections
from pages.ui.words import LANGUAGES, words
from tests.lessons import STRANGE, link_of, sound, without_browser

TABS = ("look", "frequencies", "levels", "unknown", "code", "data")
BAD = [
    ({"level": "syllable"}, "a level that there is not"),
    ({"material": "the web"}, "a text that this lesson does not have"),
    ({"size": "0"}, "from 1 to 32"),
    ({"steps": "1e3"}, "from 1 to 64"),
    ({"step": "9999"}, "the nearest one is shown"),
    ({"steps": "٣"}, "from 1 to 64"),
    ({"min_freq": "9" * 30}, "from 1 to 50"),
    ({"pieces": "-5"}, "from 16 to 8192"),
    ({"seed": "x"}, "seed"),
    ({"offset": "5"}, "from 0 to 4"),
    ({"way": "<script>"}, "a way to cut that there is not"),
    ({"view": "back"}, "a stage that there is not"),
    ({"batch": "-1"}, "The minibatch must be"),
    ({"text": ""}, "at least one character"),
    ({"unknown": "1"}, ""),
]


def test_the_levels_are_those_of_the_engine():
    assert set(TokensConfig.choices["level"]) == set(LEVELS)


def test_a_link_holds_everything_that_was_chosen():
    asked = {
        "text": "a b",
        "material": "long",
        "level": "bpe",
        "min_freq": "2",
        "pieces": "99",
        "blanks": "with",
        "reserved": "three",
        "size": "3",
        "steps": "9",
        "seed": "4",
        "view": "batch",
        "way": "random",
        "offset": "8",
        "step": "7",
        "batch": "6",
    }
    config, notes = from_query(TokensConfig, asked)
    assert notes == ()
    assert to_query(config) == asked
    assert to_query(TokensConfig()) == {}
    assert config.run == from_query(TokensConfig, {k: v for k, v in asked.items() if k not in TokensConfig.places})[0]


@pytest.mark.parametrize(("params", "said"), BAD)
def test_a_bad_link_is_said_in_a_sentence_and_never_an_exception(params, said):
    page = without_browser("tokens", **params)
    sentences = [text.value for text in page.text]
    assert any(said in sentence for sentence in sentences) or not said, sentences


@pytest.mark.parametrize("kind", STRANGE)
def test_every_text_opens_at_every_level_with_every_tab(kind):
    for level in LEVELS:
        page = without_browser("tokens", text=STRANGE[kind], level=level)
        if level not in ("character", "word"):
            continue
        for name in TABS:
            page.session_state["more"] = words(f"tab.{name}")
            sound(page.run())
            assert len(page.get("vega_lite_chart")) + len(page.get("arrow_vega_lite_chart")) == int(name == "frequencies")


def test_controls_change_the_link_and_the_numbers():
    page = without_browser("tokens")
    sound(page.selectbox(key="control-level").set_value("word").run())
    sound(page.number_input(key="control-min_freq").set_value(2).run())
    sound(page.selectbox(key="control-reserved").set_value("three").run())
    sound(page.number_input(key="control-size").set_value(1).run())
    assert link_of(page) == {"level": "word", "min_freq": "2", "reserved": "three", "size": "1"}
    found = cut(SAMPLE, "word", min_freq=2, reserved=("<pad>", "<bos>", "<eos>"))
    assert page.metric[0].value == str(len(found.vocabulary)) == "5"
    assert page.metric[1].value == "73%"
    assert page.metric[2].value == "6"


def test_too_little_text_says_what_is_needed():
    page = without_browser("tokens", text="a little", size="8", steps="8")
    assert any("it needs 65 tokens, the text has 8" in caption.value for caption in page.caption)
    packed = cutting.packed(*packing("a little", size="8", steps="8"))
    assert packed["ways"] == {"random": [], "sequential": []}
    assert packed["plan"] == {"batch": 8, "steps": 8, "length": 8, "needed": 65, "largest_steps": 0, "largest_batch": 0}


def packing(text, **params):
    config, _ = from_query(TokensConfig, {"text": text} | params)
    return config, text, {}, 0


def test_the_stage_is_told_what_the_engine_cut():
    text = "The the 1E1 <b> the 👨‍👩‍👧\nend"
    config, _, _, _ = packing(text, level="word", min_freq="2")
    packed = cutting.packed(config, text, {}, 0)
    found = cut(text, "word", min_freq=2)
    assert packed["ids"] == list(found.ids)
    assert packed["tokens"][2:4] == ["1E1", "<"]
    assert "↵" in packed["tokens"]
    assert packed["vocabulary"] == [[0, "<unk>", found.unknown, True], [1, "the", 2, False]]
    assert packed["totals"]["unknown"] == len(found.tokens) - 2


def test_a_long_text_is_counted_whole_and_drawn_in_part():
    long = "word " * 3000
    name = documents.keep(long)
    page = without_browser("tokens", text=long[:256], doc=name, level="word")
    assert any("of 15,000 characters" in caption.value for caption in page.caption)
    config, _ = from_query(TokensConfig, {"text": long[:256], "level": "word"})
    packed = cutting.packed(config, long, {}, 0)
    assert packed["totals"]["tokens"] == 3000
    assert len(packed["tokens"]) == cutting.ON_STAGE == packed["plan"]["length"]


def test_tables_hold_the_text_and_its_minibatches():
    found = cut("b a b a c", "word", min_freq=2)
    assert vocabulary_rows(found) == [("id", "token", "count"), (0, "<unk>", 1), (1, "a", 2), (2, "b", 2)]
    assert token_rows(found)[-1] == (5, "c", 0)
    config, _ = from_query(TokensConfig, {"text": "b a b a c", "level": "word", "size": "1", "steps": "2"})
    rows = batch_rows(found, cutting.placed(config, found), 0)
    assert rows[-2:] == [("sequential", 0, 1, 1, 1, "2 1", "1 2"), ("sequential", 0, 2, 1, 3, "2 1", "1 0")]


STEPS = [name for name in sections("tokens", "en") if name.startswith("try.")]


@pytest.mark.parametrize("name", STEPS)
def test_each_step_of_the_walk_sets_up_what_it_says(name):
    links = {sections("tokens", lang)[name].partition("\n")[0] for lang in LANGUAGES}
    assert len(links) == 1
    params = dict(parse_qsl(links.pop().removeprefix("link: "), strict_parsing=True))
    config, notes = from_query(TokensConfig, params)
    assert notes == ()
    found = cutting.cutting(config, config.text)
    plan = cutting.placed(config, found)
    assert plan.offset == config.offset
    if config.view == "batch":
        assert config.batch < plan.batches
    if name == "try.2":
        assert 0 < found.unknown < len(found.tokens)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_question_is_answered_and_revealed(lang):
    page = without_browser("tokens", lang=lang)
    asked = 0
    for number in range(1, 8):
        sound(page.pagination(key="question").set_value(number).run())
        if not page.radio:
            continue
        asked += 1
        options = page.radio[0].options
        assert len(options) == len(set(options)) >= 3
        sound(page.radio[0].set_value(options[0]).run())
        sound(next(button for button in page.button if button.label == words("check.reveal", lang=lang)).click().run())
        assert page.radio[0].disabled
        verdicts = tuple(f"**{words(f'check.{verdict}', lang=lang)}**" for verdict in ("right", "wrong"))
        assert any(markdown.value.startswith(verdicts) for markdown in page.markdown)
    assert asked >= 5
