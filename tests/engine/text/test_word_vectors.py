"""Word vectors from the company that tokens keep."""

import numpy as np
import pytest
import torch

from engine.embeddings import neighbours
from engine.text.vocabulary import Vocabulary
from engine.text.word_vectors import SMOOTHING, cooccurrence, surprise, word_vectors
from tests.support import seeded

IDS = torch.randint(0, 7, (60,), generator=seeded(3)).tolist()


def test_counts_against_a_plain_loop():
    expected = np.zeros((7, 7))
    for i, one in enumerate(IDS):
        for other in IDS[max(0, i - 3) : i] + IDS[i + 1 : i + 4]:
            expected[one, other] += 1
    np.testing.assert_array_equal(cooccurrence(IDS, 7, 3), expected)
    np.testing.assert_array_equal(cooccurrence(torch.tensor(IDS), 7, 3), expected)


def test_surprise_against_its_definition():
    counts = cooccurrence(IDS, 7, 2)
    total = counts.sum()
    context = counts.sum(0) ** SMOOTHING / (counts.sum(0) ** SMOOTHING).sum()
    found = surprise(counts)
    for a, b in ((0, 1), (2, 5), (6, 6)):
        one, other = (
            max(0.0, np.log(counts[a, b] / total / (counts[x].sum() / total * context[y]))) if counts[a, b] else 0.0
            for x, y in ((a, b), (b, a))
        )
        assert found[a, b] == pytest.approx((one + other) / 2, abs=1e-12)


def test_all_axes_together_hold_the_matrix_and_few_hold_the_most_of_it():
    matrix = surprise(cooccurrence(IDS, 7, 2))
    values = np.linalg.eigvalsh(matrix)
    np.testing.assert_allclose(np.square(word_vectors(IDS, 7, 7, 2)).sum(0), np.sort(np.abs(values))[::-1], atol=1e-10)
    few = word_vectors(IDS, 7, 2, 2)
    np.testing.assert_array_equal(few, word_vectors(IDS, 7, 7, 2)[:, :2])
    assert np.all(few[np.abs(few).argmax(0), range(2)] > 0)


def test_tokens_of_like_company_lie_together():
    order = torch.randint(0, 4, (400,), generator=seeded(5)).tolist()
    sentences = ["the cat eats fish", "the dog eats meat", "a car needs fuel", "a bus needs oil"]
    tokens = [word for n in order for word in [*sentences[n].split(), "\n"]]
    vocabulary = Vocabulary(tokens)
    vectors = word_vectors(vocabulary[tokens], len(vocabulary), 4, 3)
    for word, near in (("cat", "dog"), ("car", "bus"), ("fuel", "oil")):
        best = neighbours(vectors, vocabulary[word], 1)[0]
        group = {"cat": {"dog", "fish", "meat", "eats"}, "car": {"bus", "fuel", "oil", "needs"}}.get(
            word, {"car", "bus", "oil", "needs"}
        )
        assert vocabulary.to_tokens(best.index) in group
        assert near in group
    assert np.all(vectors[0] == 0), "<unk> never occurs"


def test_edges():
    assert word_vectors([], 3, 2).tolist() == [[0, 0]] * 3
    assert word_vectors([-1, -1, 1], 3, 2).tolist() == [[0, 0]] * 3
    for size, width, window in ((0, 1, 1), (3, 4, 1), (3, 2, 0), (5000, 2, 1)):
        with pytest.raises(ValueError, match=r"needed|width"):
            word_vectors(IDS, size, width, window)
    with pytest.raises(ValueError, match="outside the vocabulary of 5"):
        word_vectors(IDS, 5, 2)
