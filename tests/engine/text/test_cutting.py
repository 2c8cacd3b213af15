"""The three stages of a text, the questions about them, and the script that does the same without this program."""

import subprocess
import sys

import pytest

from engine.notes import Note
from engine.questions import QUESTIONS
from engine.recurrent.asking import Answer
from engine.text.batches import Plan, TooLittleText
from engine.text.cutting import RESERVED, WAYS, batches, cut, every_start
from engine.text.questions import TOKENS, Run
from engine.text.script import script
from engine.text.tokenizers import tokenize, tokenize_like

TEXT = "In the beginning God created the heaven and the earth. And the earth was without form."


def run(text: str = TEXT, level: str = "character", rows: int = 2, steps: int = 5) -> Run:
    found = cut(text, level, pieces=40)
    plan = Plan(length=len(found.tokens), batch_size=rows, num_steps=steps)
    return Run(cutting=found, plan=plan, seed=3, pieces=40)


def ask(name: str, about: Run) -> Answer | Note:
    (question,) = (each for each in TOKENS if each.id == f"tokens.{name}")
    return question.ask(about)


def test_splitting_and_numbering_are_two_steps():
    found = cut("b a b a c", "word", min_freq=2, reserved=RESERVED)
    assert found.tokens == ("b", "a", "b", "a", "c")
    assert found.vocabulary.tokens == ("<unk>", *RESERVED, "a", "b")
    assert found.ids == (5, 4, 5, 4, 0)
    assert (found.unknown, found.distinct, found.left_out) == (1, 3, 1)


@pytest.mark.parametrize("way", WAYS)
def test_every_offset_that_may_be_drawn_is_there_and_is_what_a_training_would_get(way):
    ids = cut(TEXT, "character").ids
    plan = Plan(length=len(ids), batch_size=3, num_steps=7)
    starts = every_start(ids, way, plan, seed=5)
    assert len(starts) == len(plan.offsets) == 7
    for offset, found in enumerate(starts):
        own = Plan(length=len(ids), batch_size=3, num_steps=7, offset=offset)
        made = batches(ids, way, own, seed=5)
        assert found == made.starts.tolist()
        assert len(found) == own.batches
        for (X, Y), rows in zip(made, found, strict=True):
            for row, start in enumerate(rows):
                assert X[row].tolist() == list(ids[start : start + 7])
                assert Y[row].tolist() == list(ids[start + 1 : start + 8])


@pytest.mark.parametrize("other", ["In the end", "naïve 你好 figs", "", "the\nthe", "👨‍👩‍👧 the"])
def test_another_text_is_cut_with_the_byte_pairs_of_this_one_and_nothing_is_lost(other):
    pieces = tokenize_like(other, TEXT, "bpe", vocabulary_size=40)
    assert "".join(pieces) == other
    if other.startswith("In the"):
        assert pieces == ["I", "n", " the", " ", "e", "nd"]
    assert tokenize_like(TEXT, TEXT, "bpe", vocabulary_size=40) == tokenize(TEXT, "bpe", vocabulary_size=40)
    assert tokenize_like(other, "", "bpe") == list(other)
    assert tokenize_like(other, TEXT, "word") == tokenize(other, "word")


def test_too_little_text_has_no_offset_and_says_so():
    ids = cut("ab", "character").ids
    plan = Plan(length=2, batch_size=2, num_steps=5)
    assert every_start(ids, "random", plan, seed=0) == []
    with pytest.raises(TooLittleText, match="need 11 tokens, the text has 2"):
        batches(ids, "sequential", plan, seed=0)
    with pytest.raises(ValueError, match="sideways"):
        batches(ids, "sideways", plan, seed=0)


def test_each_question_is_about_this_text():
    about = run()
    assert QUESTIONS["tokens"] == TOKENS
    answers = {question.id.partition(".")[2]: question.ask(about) for question in TOKENS}
    right = {name: answer.choice for name, answer in answers.items() if isinstance(answer, Answer)}
    assert len(right) >= 6
    assert right["number"] == "token:1"
    assert right["fewest"] == "word"
    assert right["needed"] == "count:11"
    assert right["carry"] == "sequential"
    assert right["shift"] == f"token:{about.cutting.ids[5]}"
    assert right["grams"] == "slower"
    for answer in answers.values():
        assert isinstance(answer, Answer)
        assert answer.choice in answer.options
        assert len(set(answer.options)) == len(answer.options) >= 3


def test_the_share_of_rare_tokens_is_counted():
    answer = ask("rare", run("a a b b c d", "word"))
    assert isinstance(answer, Answer)
    assert answer.choice == "to_50"
    assert answer.values["once"] == 2
    assert answer.values["percent"] == pytest.approx(100 / 3)


@pytest.mark.parametrize("text", ["", "a", "aa", "ab"])
def test_a_short_text_gets_a_note_or_an_answer_and_never_an_error(text):
    for level in ("character", "word", "bpe", "chinese", "grapheme"):
        for question in TOKENS:
            assert isinstance(question.ask(run(text, level)), Answer | Note)
    assert isinstance(ask("shift", run(text)), Note)


def test_runs_are_the_same_or_not():
    assert run().same(run())
    assert not run().same(run(steps=6))
    assert not run().same(run(level="word"))


@pytest.mark.parametrize(("level", "offset", "reserved"), [("character", 0, ()), ("word", 2, RESERVED)])
def test_the_script_prints_the_numbers_of_the_page(level, offset, reserved):
    found = cut(TEXT, level, min_freq=2, reserved=reserved)
    plan = Plan(length=len(found.tokens), batch_size=2, num_steps=3, offset=offset)
    done = subprocess.run(
        [sys.executable, "-I", "-"], input=script(found, plan, 2, reserved), capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == f"{len(found.tokens)} tokens, {len(found.vocabulary)} numbers, {found.unknown} unknown"
    assert lines[1].split()[1:] == [str(index) for index in found.ids[:20]]
    made = [line.split() for line in lines[2:] if line.startswith(" ")]
    expected = []
    for X, Y in batches(found.ids, "sequential", plan, seed=0):
        for x, y in zip(X.tolist(), Y.tolist(), strict=True):
            expected += [["X", *map(str, x)], ["Y", *map(str, y)]]
    assert made == expected
