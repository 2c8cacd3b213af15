"""Rank and frequency of n-grams, and the exponent of Zipf's law."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from engine.text.frequencies import fit_zipf, rank_frequency

WORDS = "the cat and the dog and the bird saw the cat".split()


def test_ngrams_are_counted_and_ordered():
    one = rank_frequency(WORDS)
    assert one.ngrams[:3] == (("the",), ("and",), ("cat",))
    assert one.counts.tolist() == [4, 2, 2, 1, 1, 1]
    two = rank_frequency(WORDS, 2)
    counted = Counter(pairwise(WORDS))
    assert dict(zip(two.ngrams, two.counts.tolist(), strict=True)) == counted
    assert two.ngrams[:2] == (("and", "the"), ("the", "cat")), "equals in the order of their tokens"
    assert rank_frequency(WORDS, 3).counts.sum() == len(WORDS) - 2
    assert rank_frequency("abcab").ngrams[0] == ("a",), "a plain text counts as its characters"


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3])
def test_the_exponent_of_an_exact_power_law_is_found(alpha):
    counts = 1e9 * np.arange(1.0, 401) ** -alpha
    exponent, scale, r2 = fit_zipf(counts)
    assert exponent == pytest.approx(alpha, abs=1e-9)
    assert scale == pytest.approx(1e9, rel=1e-6)
    assert r2 == pytest.approx(1, abs=1e-12)


def test_the_fit_leaves_out_what_was_seen_too_seldom_and_draws_its_line():
    tokens = [f"w{i}" for i in range(1, 60) for _ in range(round(500 / i))] + [f"once{i}" for i in range(300)]
    found = rank_frequency(tokens)
    assert found.fitted == 59
    assert len(found.counts) == 359
    assert found.exponent == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(found.line(), found.counts[:59], rtol=0.1)
    everything = rank_frequency(tokens, min_count=1)
    assert everything.fitted == 359
    assert everything.exponent > found.exponent


def test_too_few_ranks_give_no_line():
    for tokens in ([], ["a"], ["a", "a", "b", "b"], list("abcdef")):
        found = rank_frequency(tokens)
        assert found.exponent is found.scale is found.r2 is None
        assert found.line().shape == (0,)
    assert rank_frequency(["a", "b"], 5).ngrams == ()
    with pytest.raises(ValueError, match="at least 1"):
        rank_frequency(WORDS, 0)


def test_equal_counts_are_a_flat_line():
    found = rank_frequency(list("aabbccdd"))
    assert found.exponent == pytest.approx(0, abs=1e-12)
    assert found.r2 == pytest.approx(1)
