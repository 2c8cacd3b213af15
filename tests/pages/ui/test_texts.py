"""Lesson texts: sections, the engine's formulas in their places, and no way for a learner's text to become markup."""

import re
from typing import Any

import pytest
import torch

from engine.attention.kernel_regression import regress
from engine.attention.multihead import MultiHeadAttention
from engine.attention.scores import attend
from engine.questions import QUESTIONS
from engine.recurrent.gru import GRU
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.lstm import LSTM
from engine.text.display import shorten, visible
from engine.trace import Trace
from pages.ui import depths, ordering
from pages.ui.check import Wording
from pages.ui.texts import LESSONS, PLACE, Token, fill, sections, token
from pages.ui.words import LANGUAGES

WRITTEN = sorted(path.stem for path in (LESSONS / "en").glob("*.md"))
# Lessons whose texts name no symbol of a run.
PLAIN = ("autoregression", "tokens", "embeddings", "truncation", "language_model")


def trace_of(lesson: str) -> Trace | None:
    if lesson in PLAIN:
        return None
    generator = torch.Generator().manual_seed(1)
    if lesson == "scoring":
        return attend(*(torch.rand(3, 2, generator=generator) for _ in range(3)))
    if lesson == "kernel_regression":
        return regress([0.5], [0.0, 1.0], [2.0, 3.0])
    if lesson == "residual_norm":
        return depths.reference()
    if lesson == "positions":
        return ordering.reference()
    if lesson == "multihead":
        return MultiHeadAttention(6, 2, generator=generator).trace(torch.rand(4, 6, generator=generator))
    if lesson in ("rnn", "deep_rnn"):
        deep: dict[str, Any] = {"num_layers": 2, "bidirectional": True} if lesson == "deep_rnn" else {}
        cell = "gru" if deep else "rnn"
        return RecurrentLanguageModel(cell, 3, 5, generator=generator, **deep).trace(torch.tensor([[0], [2], [1]]))
    model: LSTM | GRU = {"lstm": LSTM, "gru": GRU}[lesson](3, 5, generator=generator)
    return model.trace(torch.rand(4, 1, 3, generator=generator))


def write(tmp_path, monkeypatch, text: str) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "made_up.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("pages.ui.texts.LESSONS", tmp_path)
    sections.cache_clear()


def test_sections_by_heading(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, "## one\n\nText.\n\n### A title\n\nMore.\n\n## two.b\n\nOther.\n")
    assert sections("made_up", "en") == {"one": "Text.\n\n### A title\n\nMore.", "two.b": "Other."}


@pytest.mark.parametrize("text", ["## one\n\na\n\n## one\n\nb\n", "Before all headings.\n\n## one\n\na\n"])
def test_a_text_without_a_heading_of_its_own_is_refused(tmp_path, monkeypatch, text: str):
    write(tmp_path, monkeypatch, text)
    with pytest.raises(ValueError, match=r"made_up\.md"):
        sections("made_up", "en")


def test_formulas_are_those_of_the_functions_that_run():
    trace = trace_of("lstm")
    assert trace is not None
    assert fill("{{C:latex}}", trace) == f"$${trace.latex('C')}$$"
    # A symbol that Unicode can write needs no formula library; one that it cannot is LaTeX.
    assert fill("{{C_prev}} {{C_tilde}} {{b_f}}", trace) == r"**C**ₜ₋₁ **C̃**ₜ $\mathbf b_f$"


def test_numbers():
    assert fill("{{a}} {{b}} {{c}}", values={"a": 12345, "b": -0.25, "c": 1e-9}) == "12,345 −0.250 1.0e−9"


@pytest.mark.parametrize("text", ["{{Q}}", "{{nothing}}", "{{C:html}}"])
def test_a_place_that_nothing_fills_is_an_error(text: str):
    with pytest.raises(KeyError):
        fill(text, trace_of("lstm"))


def test_a_string_cannot_be_put_in():
    with pytest.raises(ValueError, match="could not convert"):
        fill("{{a}}", values={"a": "**bold**"})


@pytest.mark.parametrize("raw", ["*", "_", "`", "$", "<", "&", "[", ":", "\\", "~", "é", "你", " ", "\n", "\u202e", "👩‍👩‍👧"])
def test_a_token_goes_in_as_character_references(raw: str):
    shown = fill("{{t}}", values={"t": Token(raw)})
    assert shown.startswith("“&#")
    assert set(shown[1:-1]) <= set("&#;0123456789")


@pytest.mark.parametrize("raw", ["the", "a`b", "``", "`x", ":smile:", "http://a.b", "$x$", "<b>", " 你好", "x" * 99, "\n\n"])
def test_a_longer_token_goes_in_as_code(raw: str):
    shown = token(raw).shown
    fence = re.match("`+", shown)
    assert fence
    inside = shown[fence.end() : -fence.end()]
    assert shown.endswith(fence[0])
    assert fence[0] not in re.findall("`+", inside)
    assert inside.strip(" ") == shorten(visible(raw), 24)


def test_a_whole_text_is_no_token():
    with pytest.raises(ValueError, match="one token"):
        Token("ab")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", WRITTEN)
def test_every_place_outside_questions_is_a_symbol(lesson: str, lang: str):
    trace = trace_of(lesson)
    for name, text in sections(lesson, lang).items():
        if not name.startswith("ask-"):
            assert not PLACE.search(fill(text, trace)), name


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("lesson", WRITTEN)
def test_every_question_has_its_words(lesson: str, lang: str):
    for question in QUESTIONS[lesson]:
        wording = Wording.read(sections(lesson, lang)[f"ask-{question.id.partition('.')[2]}"])
        assert wording.question
        assert wording.because
