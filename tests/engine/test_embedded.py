"""An embedding before and after training: rows, neighbours, dimensions, the last layer, and the questions about them."""

import numpy as np
import pytest
import torch

from engine.embedded import (
    CELLS,
    Embedded,
    dimensions,
    input_matrix,
    last_layer,
    maps,
    nearest,
    of_model,
    of_pretrained,
    of_words,
    one_hot_dimensions,
    unit_rows,
)
from engine.embedding_questions import EMBEDDINGS, Run
from engine.embeddings import Pretrained, neighbours, participation_ratio
from engine.notes import Note
from engine.questions import QUESTIONS
from engine.recurrent.asking import Answer
from engine.training import checkpoints
from tests.support import uniform

TEXT = "In the beginning God created the heaven and the earth."


def trained(cell: str, text: str = TEXT) -> Embedded:
    stored = checkpoints.load(cell)
    return of_model("key", cell, stored.model, stored.vocabulary, tuple(text), seed=0)


@pytest.mark.parametrize(("cell", "blocks"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_a_row_is_all_that_a_token_adds_to_the_gates(cell, blocks):
    stored = checkpoints.load(cell)
    units = stored.model.recurrent.hidden_size
    matrix = input_matrix(stored.model)
    assert matrix.shape == (len(stored.vocabulary), blocks * units)
    named = dict(stored.model.recurrent.named_parameters())
    pieces = [value for name, value in named.items() if name.startswith("W_x")]
    for at, piece in enumerate(pieces):
        np.testing.assert_array_equal(matrix[:, at * units : (at + 1) * units], piece.detach().numpy())
    found = trained(cell)
    assert found.before.shape == found.after.shape == matrix.shape
    assert np.abs(found.before - found.after).max() > 0.5
    assert [found.tokens[index] for index in found.ids] == list(TEXT)


def test_nearest_is_the_same_as_asking_one_by_one():
    matrix = np.asarray(uniform(23, 5, seed=4))
    order, cosines = nearest(matrix, [3, 0, 22], 6)
    for row, index in enumerate((3, 0, 22)):
        one = neighbours(matrix, index, 6)
        assert order[row].tolist() == [each.index for each in one]
        np.testing.assert_allclose(cosines[row], [each.cosine for each in one], atol=1e-12)
    assert nearest(matrix[:3], [1], 6)[0].shape == (1, 2)


@pytest.mark.parametrize("size", [1, 2, 9])
def test_one_hot_rows_use_every_direction_but_the_mean(size):
    by_formula = one_hot_dimensions(size)
    if size > 1:
        eye = dimensions(np.eye(size))
        assert by_formula.effective == pytest.approx(eye.effective) == pytest.approx(size - 1)
        np.testing.assert_allclose(by_formula.shares, eye.shares, atol=1e-12)
        assert participation_ratio(np.eye(size)) == pytest.approx(size)
    else:
        assert by_formula.effective == 0


@pytest.mark.parametrize("cell", CELLS)
def test_training_finds_fewer_dimensions(cell):
    found = trained(cell)
    before, after = dimensions(found.before).effective, dimensions(found.after).effective
    assert after < 0.85 * before < 0.85 * one_hot_dimensions(len(found.tokens)).effective
    points = maps(found)
    assert points["after"].coordinates.shape == (len(found.tokens), 3)
    assert points["after"].shares.sum() > points["before"].shares.sum()


@pytest.mark.parametrize("cell", CELLS)
def test_marks_of_punctuation_have_found_each_other(cell):
    """What the walk says: they lie together, capitals a little; before training nobody does."""
    found = trained(cell)

    def mean(matrix, signs):
        rows = unit_rows(matrix)[[found.index(sign) for sign in signs]]
        cosines = rows @ rows.T
        return cosines[~np.eye(len(signs), dtype=bool)].mean()

    capitals = "ABCDEGHIJKLMNPST"
    assert mean(found.after, ".,;:?!") > 0.4
    assert 0.05 < mean(found.after, capitals) < 0.3
    assert abs(mean(found.before, ".,;:?!")) < 0.1
    assert abs(mean(found.before, capitals)) < 0.05


def test_words_of_a_text_and_words_of_a_pretrained_matrix():
    tokens = ["a", "b"] * 10 + ["c", "d"] * 10 + ["e"]
    found = of_words("key", tokens, width=9, window=1, seed=1, largest=5)
    assert found.tokens == ("<unk>", "a", "b", "c", "d")
    assert found.after.shape == found.before.shape == (5, 5)
    assert found.ids[-1] == 0
    matrix = np.asarray(uniform(4, 3, seed=2), dtype=np.float32)
    given = Pretrained(tokens=("the", "king", "queen", "1"), matrix=matrix)
    some = of_pretrained("key", given, ["The", "King", "sleeps", "1"], seed=0)
    assert (some.text, some.ids) == (("The", "King", "1"), (0, 1, 3))
    np.testing.assert_array_equal(some.after, matrix)


@pytest.mark.parametrize("cell", CELLS)
def test_the_last_layer_is_that_of_the_trace(cell):
    stored = checkpoints.load(cell)
    ids = stored.vocabulary[list(TEXT)]
    trace = stored.model.trace(torch.tensor(ids)[:, None])
    layer = last_layer(stored.model, ids, 9)
    np.testing.assert_allclose(layer.scores, trace["Y"][9, 0], atol=2e-5)
    np.testing.assert_allclose(layer.shares, trace["P"][9, 0], atol=2e-6)
    assert layer.shares.sum() == pytest.approx(1)
    assert layer.formulas == (trace.latex("Y"), trace.latex("P"))


@pytest.mark.parametrize("cell", CELLS)
def test_each_question_is_about_this_matrix(cell):
    assert QUESTIONS["embeddings"] == EMBEDDINGS
    about = Run(found=trained(cell), step=7)
    answers = {question.id.partition(".")[2]: question.ask(about) for question in EMBEDDINGS}
    right = {name: answer.choice for name, answer in answers.items() if isinstance(answer, Answer)}
    assert len(right) >= 5
    assert right["lookup"] == "nothing"
    assert right["corners"] == "same"
    assert right["effective"] == "fewer"
    rows, width = about.found.after.shape
    assert right["zeros"] == f"count:{(rows - 1) * width}"
    if "neighbour" in right:
        assert right["neighbour"] == f"token:{neighbours(about.found.after, about.id, 1)[0].index}"
    for answer in answers.values():
        if isinstance(answer, Answer):
            assert answer.choice in answer.options
            assert len(set(answer.options)) == len(answer.options) >= 3


@pytest.mark.parametrize("tokens", [["a"], ["a", "a"], ["a", "b"], ["a", "b", "c", "a"]])
def test_a_small_vocabulary_gets_a_note_or_an_answer_and_never_an_error(tokens):
    found = of_words("key", tokens, width=8, window=2, seed=0)
    for question in EMBEDDINGS:
        assert isinstance(question.ask(Run(found=found, step=99)), Answer | Note)
