"""Counting as a rival: interpolated n-grams held to a computation with dictionaries, and to what they must be."""

import math
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.ngrams import ngram_losses

SIZE = 5
texts = st.lists(st.integers(0, SIZE - 1), min_size=2, max_size=60)


def by_hand(train, held_out, size, highest):
    """Witten-Bell, from the formula, token by token."""
    counts = [defaultdict(Counter) for _ in range(highest)]
    for n in range(1, highest + 1):
        for i in range(n - 1, len(train)):
            counts[n - 1][tuple(train[i - n + 1 : i])][train[i]] += 1

    def probability(token, history, n):
        if n == 0:
            return 1 / size
        lower = probability(token, history, n - 1)
        found = counts[n - 1].get(tuple(history[len(history) - n + 1 :]))
        if len(history) < n - 1 or not found:
            return lower
        return (found[token] + len(found) * lower) / (sum(found.values()) + len(found))

    return [
        -sum(math.log(probability(held_out[i], held_out[:i], n)) for i in range(1, len(held_out))) / (len(held_out) - 1)
        for n in range(1, highest + 1)
    ]


@given(texts, texts)
def test_losses_are_those_of_the_formula(train, held_out):
    assert ngram_losses(train, held_out, SIZE, 4) == pytest.approx(by_hand(train, held_out, SIZE, 4), abs=1e-12)


def test_a_text_that_repeats_is_learnt_by_counting_and_a_uniform_one_is_not():
    repeats, other = [1, 2, 3] * 200, [0, 4, 2, 2, 1, 0, 3, 3]
    losses = ngram_losses(repeats, [1, 2, 3] * 20, SIZE)
    assert losses[0] == pytest.approx(math.log(3), abs=0.02)
    assert losses[1] < 0.02
    assert min(ngram_losses(repeats, other, SIZE)) > math.log(SIZE)


def test_longer_contexts_help_until_there_is_too_little_to_count():
    text = [int(digit) for digit in f"{7**400}"]
    losses = ngram_losses(text, [int(digit) for digit in f"{11**90}"], 10)
    assert losses[0] == pytest.approx(math.log(10), abs=0.05)
    assert losses[4] >= losses[0]


@pytest.mark.parametrize(("train", "held_out"), [([], [1, 2]), ([1, 2], [1]), ([1, 9], [1, 2]), ([1, -1], [1, 2])])
def test_nothing_to_count_or_to_predict_is_refused(train, held_out):
    with pytest.raises(ValueError, match=r"needs|outside"):
        ngram_losses(train, held_out, SIZE)
