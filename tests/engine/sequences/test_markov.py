"""Markov chains on characters: rows, powers, the stationary distribution and what is forgotten."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.sequences.markov import DENSE_STATES, markov_chain
from tests.support import seeded

TEXT = "the theme of the thesis is the theory of the other thing"


def test_a_chain_by_hand():
    chain = markov_chain("aab", 1)  # the ring: a a b (a)
    assert chain.states == (("a",), ("b",))
    np.testing.assert_allclose(chain.matrix(), [[0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(chain.matrix(2), [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(chain.stationary(), [2 / 3, 1 / 3])
    assert chain.second_eigenvalue() == pytest.approx(0.5)
    np.testing.assert_allclose(chain.tokens_ahead(chain.state("b"), 3), [[1, 0], [0.5, 0.5], [0.75, 0.25]])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_rows_sum_to_1_and_n_steps_are_the_nth_power(order):
    chain = markov_chain(TEXT, order)
    assert len(chain) <= DENSE_STATES
    matrix = chain.matrix()
    np.testing.assert_allclose(matrix.sum(1), 1, atol=1e-12)
    for steps in (0, 1, 5):
        power = np.linalg.matrix_power(matrix, steps)
        np.testing.assert_allclose(chain.matrix(steps), power, atol=1e-12)
        for state in (0, len(chain) - 1):
            np.testing.assert_allclose(chain.ahead(state, steps)[steps], power[state], atol=1e-12)
    said = chain.tokens_ahead(0, 4)
    np.testing.assert_allclose(said.sum(1), 1, atol=1e-12)
    # The token n steps ahead is the last one of the state n steps ahead.
    last = np.array([chain.tokens.index(state[-1]) for state in chain.states])
    for n in range(1, 5):
        np.testing.assert_allclose(said[n - 1], np.bincount(last, chain.ahead(0, n)[n], len(chain.tokens)), atol=1e-12)


@given(st.text(alphabet="abc ", min_size=4, max_size=40), st.integers(1, 3))
def test_a_step_leaves_the_stationary_distribution_as_it_is(text, order):
    chain = markov_chain(text, order)
    share = chain.stationary()
    np.testing.assert_allclose(share @ chain.matrix(), share, atol=1e-12)
    for state, part in zip(chain.states, share, strict=True):
        ring = text + text[:order]
        assert part == pytest.approx(sum(tuple(ring[t : t + order]) == state for t in range(len(text))) / len(text))


def test_an_ordinary_chain_forgets_and_a_periodic_one_does_not():
    chain = markov_chain(TEXT, 1)
    away = chain.forgetting(0, 400)
    assert np.all(np.diff(away) <= 1e-12)
    assert away[400] < 1e-6
    assert 0 < chain.second_eigenvalue() < 1
    periodic = markov_chain("abab", 1)
    np.testing.assert_allclose(periodic.forgetting(0, 9), 0.5)
    assert periodic.second_eigenvalue() == pytest.approx(1)


def test_samples_follow_the_chain_and_the_generator():
    chain = markov_chain(TEXT, 2)
    said = chain.sample(4000, seeded(1), chain.state("th"))
    assert said == chain.sample(4000, seeded(1), chain.state("th"))
    assert said != chain.sample(4000, seeded(2), chain.state("th"))
    ring = TEXT + TEXT[:2]
    seen = {ring[t : t + 3] for t in range(len(TEXT))}
    whole = ["t", "h", *said]
    assert {"".join(whole[t : t + 3]) for t in range(len(said))} <= seen
    share = np.array([said.count(token) for token in chain.tokens]) / len(said)
    expected = markov_chain(TEXT, 1).stationary()
    np.testing.assert_allclose(share, expected, atol=0.03)


def test_the_loss_counts_what_cannot_be_predicted():
    chain = markov_chain("aab", 1)
    loss, unknown = chain.log_loss("aabba")  # aa .5, ab .5, bb never, ba 1
    assert loss == pytest.approx(2 * np.log(2) / 3)
    assert unknown == 1
    losses = [markov_chain(TEXT, order).log_loss(TEXT)[0] for order in (1, 2, 3)]
    assert losses == sorted(losses, reverse=True), "a longer memory fits its own text better"


def test_refusals_say_what_is_needed():
    with pytest.raises(ValueError, match="at least 3 tokens, not 2"):
        markov_chain("ab", 2)
    with pytest.raises(ValueError, match="at least 1"):
        markov_chain("ab", 0)
    with pytest.raises(KeyError, match="'zz' is no run of 2"):
        markov_chain(TEXT, 2).state("zz")
    large = markov_chain([str(n) for n in range(DENSE_STATES + 1)], 1)
    with pytest.raises(ValueError, match="not written out"):
        large.matrix()
    assert large.ahead(0, 2).shape == (3, DENSE_STATES + 1)
