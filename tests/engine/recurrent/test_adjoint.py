"""Derivatives read off syntax trees: every kind of part against autograd, and what is refused."""

import numpy as np
import pytest
import torch

from engine.equation import add_to, equation, scale_by, set_to
from engine.operations import exp, relu, sigmoid, softmax, tanh
from engine.recurrent.adjoint import compiled, pull, through, weight_terms
from tests.support import uniform


@equation
def G(X, H_prev, W, b):
    """Every kind of part that a recurrent cell may have."""
    return -tanh(X @ W + H_prev * exp(2 * X) - b) * sigmoid(H_prev - X * X) * relu(X) + (1 - H_prev) * X


def test_every_kind_of_part_against_autograd():
    T, B, width, rows = 3, 2, 5, 7
    values = {"X": uniform(T, B, width, seed=1), "H_prev": uniform(T, B, width, seed=2)}
    weights = {"W": uniform(width, width, seed=3), "b": uniform(width, seed=4)}
    parts = {}

    def record(place, value):
        parts[place] = value
        return value

    leaves = {name: value.clone().requires_grad_() for name, value in values.items()}
    biases = weights["b"].clone().requires_grad_()
    result = G.recorded(leaves["X"], leaves["H_prev"], weights["W"], biases, record)
    (term,) = weight_terms({"G": G}, ["b"])
    assert (term.left, term.sign) == (None, -1)
    known = {name: value.detach() for name, value in (values | weights | parts).items()}
    tree = compiled(G, known, {"X", "H_prev"}, {term.place})
    adjoints = uniform(rows, T, B, width, seed=5)
    for n in range(rows):
        expected = torch.autograd.grad(
            result, [leaves["X"], leaves["H_prev"], parts[term.place]], adjoints[n], retain_graph=True
        )
        for t in range(T):
            arrived, kept = {}, {}
            pull(tree, adjoints[:, t], t, arrived, kept)
            np.testing.assert_allclose(arrived["X"][n], expected[0][t], atol=1e-12)
            np.testing.assert_allclose(arrived["H_prev"][n], expected[1][t], atol=1e-12)
            np.testing.assert_allclose(kept[term.place][n], expected[2][t], atol=1e-12)


def test_interventions_are_differentiated_in_the_order_in_which_they_act():
    value = uniform(2, 5, seed=6).requires_grad_()
    acting = [scale_by(3.0, unit=(0, 2)), add_to(1.0), set_to(0.5, unit=2)]
    result = value
    for intervention in acting:
        result = intervention(result)
    adjoint = uniform(2, 5, seed=7)
    (expected,) = torch.autograd.grad(result, value, adjoint)
    np.testing.assert_allclose(through(acting, adjoint), expected, atol=1e-12)


def test_what_no_recurrent_cell_has_is_refused_by_name():
    @equation
    def S(H_prev):
        """A function of a whole row."""
        return softmax(H_prev)

    with pytest.raises(ValueError, match="S: no derivative of a call softmax"):
        compiled(S, {"H_prev": torch.ones(1, 1, 2), "S:0": torch.ones(1, 1, 2)}, {"H_prev"}, set())
