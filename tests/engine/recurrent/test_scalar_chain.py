"""The scalar experiment: exact 1.232, what truncation leaves of it, and chance that is right in the mean."""

import numpy as np
import pytest
import torch

from engine import notation
from engine.recurrent.scalar_chain import CHAIN_TABLE, e, example_inputs, h, j, scalar_chain, z
from tests.engine.recurrent.models import ATOL, seeded


@pytest.fixture(scope="module")
def chain():
    return scalar_chain(0.9, example_inputs())


def test_the_figures_of_the_example(chain):
    assert len(chain.own) == 50
    assert chain.exact == pytest.approx(1.232, abs=5e-4)
    measured = [chain.truncated(tau) for tau in (1, 5, 10, 20)]
    assert measured == pytest.approx([0.042, 0.662, 1.018, 1.237], abs=5e-4)
    assert chain.truncated(50) == chain.truncated(99) == pytest.approx(chain.exact, abs=ATOL)


def test_the_randomized_mean_is_the_exact_value_within_its_error(chain):
    draws = 20_000
    estimates = chain.randomized(0.8, draws, seeded(1))
    assert estimates.shape == (draws,)
    error = chain.deviation(0.8) / draws**0.5
    assert error == pytest.approx(0.0114, abs=5e-4)
    assert abs(estimates.mean() - chain.exact) < 3 * error
    assert estimates.std() == pytest.approx(chain.deviation(0.8), rel=0.1)
    # With pi = 0.5 the factors 1/pi outgrow the edges: the true deviation is beyond what any sample shows.
    assert chain.deviation(0.5) > 1000
    assert chain.randomized(0.5, draws, seeded(1)).std() < 0.1 * chain.deviation(0.5)
    np.testing.assert_allclose(chain.randomized(1.0, 3, seeded(1)), chain.exact, atol=ATOL)


def test_the_chain_against_autograd_and_against_its_own_definition(chain):
    w, state, x = torch.tensor(0.9, dtype=torch.float64, requires_grad=True), torch.zeros((), dtype=torch.float64), chain.inputs
    for value in x:
        state = torch.tanh(w * state + float(value))
    (expected,) = torch.autograd.grad(state, w)
    assert chain.exact == pytest.approx(expected.item(), abs=ATOL)
    states = [0.0]
    for value in x:
        states.append(np.tanh(0.9 * states[-1] + value))
    np.testing.assert_allclose(chain.states, states, atol=ATOL)
    slope = 1 - np.array(states[1:]) ** 2
    np.testing.assert_allclose(chain.own, slope * states[:-1], atol=ATOL)
    np.testing.assert_allclose(chain.edges, 0.9 * slope, atol=ATOL)
    way = [np.prod(chain.edges[t + 1 :]) for t in range(50)]
    np.testing.assert_allclose(chain.terms, chain.own * way, atol=ATOL)


def test_the_deviation_is_exact_on_a_chain_short_enough_to_count():
    chain = scalar_chain(1.3, [0.4, -0.2, 0.7], start=0.5)
    keep, outcomes = 0.6, []
    for kept in np.ndindex(2, 2):  # the two edges that matter
        xi = np.array(kept) / keep
        value = chain.own[2] + xi[1] * chain.edges[2] * (chain.own[1] + xi[0] * chain.edges[1] * chain.own[0])
        outcomes.append((np.prod(np.where(kept, keep, 1 - keep)), value))
    chances, values = np.array(outcomes).T
    mean = chances @ values
    assert mean == pytest.approx(chain.exact, abs=ATOL)
    assert chain.deviation(keep) == pytest.approx(np.sqrt(chances @ (values - mean) ** 2), abs=ATOL)


def test_the_formulas_are_the_programs():
    assert [notation.latex(each, CHAIN_TABLE) for each in (h, e, j, z)] == [
        r"\mathbf h_t = \tanh(w\, \mathbf h_{t-1} + \mathbf x_t)",
        r"\mathbf e_t = (1 - \mathbf h_t^{2}) \odot \mathbf h_{t-1}",
        r"\mathbf j_t = (1 - \mathbf h_t^{2})\, w",
        r"\mathbf z_t = \mathbf e_t + \mathbf ξ_t \odot \mathbf j_t \odot \mathbf z_{t-1}",
    ]


def test_what_makes_no_chain_is_refused():
    with pytest.raises(ValueError, match="at least one number"):
        scalar_chain(0.9, [])
    with pytest.raises(ValueError, match="at least 1 step"):
        scalar_chain(0.9, [0.1]).truncated(0)
