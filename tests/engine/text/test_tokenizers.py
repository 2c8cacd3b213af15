"""Tokenizers: what a token is at each level, and that the text can be put together again."""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.tokenizers import LEVELS, tokenize

ROOT = Path(__file__).resolve().parents[3]
FAMILY, FLAG, DETECTIVE, RAINBOW = "👨\u200d👩\u200d👧", "🇵🇱", "🕵🏿", "🏳\ufe0f\u200d🌈"
any_text = st.text(st.characters(codec="utf-8"), max_size=60)


@given(any_text)
def test_character_tokens_join_to_the_text(text):
    assert "".join(tokenize(text, "character")) == text


@given(any_text)
def test_grapheme_tokens_join_to_the_text(text):
    assert "".join(tokenize(text, "grapheme")) == text


@given(any_text)
def test_word_tokens_with_blanks_join_to_the_text(text):
    assert "".join(tokenize(text, "word", keep_blanks=True)) == text


@given(any_text.filter(bool))
def test_byte_pair_tokens_join_to_the_text(text):
    assert "".join(tokenize(text, "bpe")) == text


@given(any_text)
def test_words_without_blanks_lose_only_blanks(text):
    kept, dropped = tokenize(text, "word", keep_blanks=True), tokenize(text, "word")
    # Information separators count as space for str.isspace only; they are no blanks.
    blank = [piece != "\n" and piece.isspace() and not set(piece) & set("\x1c\x1d\x1e\x1f") for piece in kept]
    assert [piece for piece, left_out in zip(kept, blank, strict=True) if not left_out] == dropped


@pytest.mark.parametrize("level", LEVELS)
def test_bat_16_the_empty_text_has_no_tokens(level):
    assert tokenize("", level) == []


def test_txt_11_joined_emoji_are_one_grapheme_and_several_characters():
    texts = (FAMILY, FLAG, DETECTIVE, RAINBOW)
    assert [len(tokenize(text, "grapheme")) for text in texts] == [1, 1, 1, 1]
    assert [len(tokenize(text, "character")) for text in texts] == [5, 2, 2, 4]


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        ("e\u0302\u0301", ["e\u0302\u0301"]),
        ("👩🏽\u200d🚀!", ["👩🏽\u200d🚀", "!"]),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", None),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("각", ["각"]),
        ("1️⃣2", ["1️⃣", "2"]),
        ("a\r\nb", ["a", "\r\n", "b"]),
    ],
)
def test_txt_11_kind_graphemes_are_what_a_reader_counts(text, clusters):
    assert tokenize(text, "grapheme") == (clusters or [text])


def test_txt_06_newline_ends_are_characters_of_their_own():
    assert tokenize("a\nb\n") == ["a", "\n", "b", "\n"]


def test_txt_13_letters_beyond_ascii_are_single_characters():
    assert tokenize("café") == ["c", "a", "f", "é"]
    assert len("café".encode()) == 5


def test_txt_19_a_newline_is_a_token_at_every_level():
    for level in LEVELS:
        assert any("\n" in token for token in tokenize("a\nb", level)), level
    assert tokenize("a\n\n b", "word") == ["a", "\n", "\n", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, world! I can't pay 3.14", ["Hello", ",", "world", "!", "I", "can't", "pay", "3.14"]),
        ("time-traveller's", ["time", "-", "traveller's"]),
        ("你好，世界", ["你", "好", "，", "世", "界"]),
        ("שלום עולם", ["שלום", "עולם"]),
        (f"a {FAMILY} b", ["a", FAMILY, "b"]),
        ("<b>&amp;</b>", ["<", "b", ">", "&", "amp", ";", "<", "/", "b", ">"]),
        ("a\u00a0b\tc", ["a", "b", "c"]),
        ("y\u1ebfu ye\u0302\u0301u", ["y\u1ebfu", "ye\u0302\u0301u"]),
    ],
)
def test_words_follow_the_unicode_word_boundaries(text, words):
    assert tokenize(text, "word") == words


def test_lower_case_is_asked_for():
    assert tokenize("The END", "word", lower=True) == ["the", "end"]
    assert tokenize("The END", "word") == ["The", "END"]


def test_byte_pairs_merge_the_most_frequent_neighbours_first():
    text = "low lower lowest low low"
    assert "low" in tokenize(text, "bpe", vocabulary_size=16)
    assert tokenize(text, "bpe", vocabulary_size=1) == list(text), "no merge left: the characters remain"


def test_byte_pairs_are_the_same_in_every_process():
    code = "from engine.text.tokenizers import tokenize; import sys; print(tokenize('ab ba ab ba cd dc xy yx ' * 4, 'bpe'))"
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1, [hashlib.sha256(each.encode()).hexdigest() for each in answers]


def test_byte_pairs_name_a_lone_surrogate():
    with pytest.raises(ValueError, match="lone surrogate at character 1"):
        tokenize("a\ud800b", "bpe")


def test_an_unknown_level_names_the_known_ones():
    with pytest.raises(ValueError, match="'sentence'; there are character, grapheme, word, bpe"):
        tokenize("a", "sentence")


def test_chinese_by_character_and_by_word():
    text = "我来到北京清华大学，学习自然语言处理。The end's 3.14\n好"
    words = ["我", "来到", "北京", "清华大学", "，", "学习", "自然语言", "处理", "。", "The", "end's", "3.14", "\n", "好"]
    assert tokenize(text, "chinese") == words
    assert tokenize("北京大学", "word") == list("北京大学")
    assert tokenize("plain words, no Chinese", "chinese") == tokenize("plain words, no Chinese", "word")
    assert "".join(tokenize(text, "chinese", keep_blanks=True)) == text


@given(any_text)
def test_chinese_words_with_blanks_give_the_text_back(text):
    assert "".join(tokenize(text, "chinese", keep_blanks=True)) == text


@pytest.mark.parametrize("word", ["a", "abcdefgh", " ", "\n", "1", "x\u0301", "🏳️‍🌈"])
def test_byte_pairs_of_one_endless_word_take_no_longer_than_others(word):
    text = word * (100_000 // len(word))
    start = time.process_time()
    tokens = tokenize(text, "bpe", vocabulary_size=300)
    assert time.process_time() - start < 5
    assert "".join(tokens) == text
    assert 1 < max(map(len, tokens)) <= 64
