"""Clipping as a picture (cases OPT-04 and OPT-05), and the wall it was made for."""

import numpy as np
import pytest
import torch

from engine import notation
from engine.recurrent.clipping import CLIFF_TABLE, cliff, cliff_surface, clipped_vector, descend, h
from tests.engine.recurrent.models import ATOL


def test_by_the_norm_the_direction_stays_by_value_it_turns():
    picture = clipped_vector((3.0, 0.4), 1.0)
    assert picture.by_norm == pytest.approx((0.991227900683, 0.132163720091), abs=1e-9)
    assert picture.by_value == (1.0, 0.4)
    assert picture.norm == pytest.approx(np.hypot(3, 0.4))
    assert picture.factor == pytest.approx(1 / picture.norm)
    assert picture.unit == pytest.approx((3 / picture.norm, 0.4 / picture.norm))
    assert picture.turned == pytest.approx(np.degrees(np.arctan2(0.4, 1) - np.arctan2(0.4, 3)))
    assert picture.changed


def test_clipping_does_nothing_for_a_vanishing_gradient():
    picture = clipped_vector((0.0003, 0.0004), 1.0)
    assert picture.by_norm == picture.by_value == (0.0003, 0.0004)
    assert picture.norm == pytest.approx(0.0005)
    assert picture.factor == 1.0
    assert not picture.changed
    assert picture.turned == pytest.approx(0, abs=1e-12)


def test_a_zero_gradient_is_drawn_and_one_without_direction_is_not():
    nothing = clipped_vector((0.0, 0.0), 1.0)
    assert (nothing.norm, nothing.factor, nothing.unit) == (0.0, 1.0, (0.0, 0.0))
    with pytest.raises(ValueError, match="no direction"):
        clipped_vector((float("inf"), 0.0), 1.0)
    with pytest.raises(ValueError, match="above 0"):
        clipped_vector((1.0, 0.0), 0.0)


def test_the_surface_is_the_run_of_one_unit():
    w, b = np.linspace(2, 7, 5), np.linspace(-3, -1, 3)
    surface = cliff_surface(w, b)
    assert surface.shape == (3, 5)
    for row, column in ((0, 0), (1, 3), (2, 4)):
        state = 0.0
        for _ in range(50):
            state = w[column] / (1 + np.exp(-state)) + b[row]
        assert surface[row, column] == pytest.approx((state - 0.7) ** 2, abs=ATOL)
    assert notation.latex(h, CLIFF_TABLE) == r"\mathbf h_t = w\, \sigma(\mathbf h_{t-1}) + b"


def test_at_the_wall_a_free_step_flies_off_and_a_clipped_one_does_not():
    free = descend(4.6, -2.3, rate=0.05, steps=200)
    kept = descend(4.6, -2.3, rate=0.05, steps=200, max_norm=1.0)
    assert free.norms[0] == kept.norms[0] > 1e4
    assert np.abs(free.path[1] - free.path[0]).max() > 500
    assert np.all(np.linalg.norm(np.diff(kept.path, axis=0), axis=1) <= 0.05 * (1 + 1e-12))
    assert kept.errors[-1] < 0.05 * kept.errors[0]
    assert len(kept.path) == len(kept.errors) == 201
    leaf = torch.tensor([4.0, -2.0], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(cliff(leaf[0], leaf[1]), leaf)
    one = descend(4.0, -2.0, rate=0.1, steps=1)
    np.testing.assert_allclose(one.path[1], leaf.detach() - 0.1 * gradient, atol=ATOL)


def test_a_run_that_stops_being_a_number_stops_and_says_when():
    gone = descend(6.0, -3.0, rate=1e300, steps=9)
    assert gone.stopped is not None
    assert len(gone.path) == gone.stopped + 1
    assert np.isfinite(gone.norms).all()
