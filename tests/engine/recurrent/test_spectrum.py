"""Eigenvalues, singular values and the growth of products of Jacobians."""

import numpy as np
import pytest
import torch

from engine.recurrent.gradients import memory_path
from engine.recurrent.spectrum import (
    growth,
    non_normal,
    power_alignment,
    power_norms,
    rotation,
    scaled_to_radius,
    spectrum,
    step_jacobians,
    tanh_run,
    with_radius,
)
from tests.engine.recurrent.models import ATOL, seeded, uniform
from tests.engine.recurrent.test_truncation import language_model, text

W = uniform(7, 7, seed=2).numpy()


def test_the_spectrum_against_numpy_and_its_invariants():
    found = spectrum(W)
    assert found.radius == pytest.approx(max(abs(np.linalg.eigvals(W))), abs=ATOL)
    assert np.all(np.diff(np.abs(found.eigenvalues)) <= 1e-9)
    assert np.prod(found.eigenvalues).real == pytest.approx(np.linalg.det(W), abs=ATOL)
    assert np.prod(found.singular_values) == pytest.approx(abs(np.linalg.det(W)), abs=ATOL)
    assert found.largest_step == pytest.approx(np.linalg.norm(W, ord=2), abs=ATOL)
    symmetric = W + W.T
    assert spectrum(symmetric).departure == pytest.approx(0, abs=1e-6)
    assert spectrum(torch.tensor(symmetric)).radius == pytest.approx(spectrum(symmetric).largest_step, abs=ATOL)


def test_scaling_to_a_radius_keeps_the_directions():
    scaled = scaled_to_radius(W, 1.25)
    assert spectrum(scaled).radius == pytest.approx(1.25, abs=ATOL)
    np.testing.assert_allclose(scaled / W, 1.25 / spectrum(W).radius, atol=ATOL)
    with pytest.raises(ValueError, match="all eigenvalues are 0"):
        scaled_to_radius(np.array([[0.0, 1.0], [0.0, 0.0]]), 1.0)
    with pytest.raises(ValueError, match="at least 0"):
        scaled_to_radius(W, float("nan"))
    with pytest.raises(ValueError, match="square"):
        spectrum(W[:3])
    with pytest.raises(ValueError, match="not finite"):
        spectrum(np.array([[np.inf]]))


@pytest.mark.parametrize(("cell", "names"), [("rnn", ["W_hh"]), ("lstm", ["W_hi", "W_hf", "W_ho", "W_hc"])])
def test_a_model_with_a_radius_is_a_copy(cell, names):
    model = language_model(cell)
    before = {name: parameter.clone() for name, parameter in model.state_dict().items()}
    changed = with_radius(model, 0.5)
    for name in names:
        assert spectrum(changed.recurrent.get_parameter(name)).radius == pytest.approx(0.5, abs=ATOL)
    for name, parameter in model.state_dict().items():
        assert torch.equal(parameter, before[name])
        if name.rpartition(".")[2] not in names:
            assert torch.equal(changed.state_dict()[name], parameter)


def test_below_1_a_non_normal_matrix_grows_a_gradient_first():
    """Radius .9 and yet a growth of 19.4 at its peak (9 and 10 steps); 13.5 after 20."""
    matrix = non_normal()
    assert spectrum(matrix).radius == pytest.approx(0.9, abs=1e-7)
    norms = power_norms(matrix, 200)
    assert norms.max() == pytest.approx(19.4, abs=0.05)
    assert set(np.argsort(norms)[-2:]) == {9, 10}
    assert norms[20] == pytest.approx(13.51, abs=0.01)
    assert norms[200] < 1e-5
    np.testing.assert_allclose(norms[20], np.linalg.norm(np.linalg.matrix_power(matrix, 20), ord=2), rtol=1e-12)
    normal = power_norms(scaled_to_radius(W + W.T, 0.9), 20)
    np.testing.assert_allclose(normal, 0.9 ** np.arange(21), rtol=1e-9)


def test_above_1_a_saturated_tanh_fades_where_the_linear_network_explodes():
    matrix = rotation(16, 1.5, seeded(0))
    np.testing.assert_allclose(np.abs(spectrum(matrix).eigenvalues), 1.5, rtol=1e-10)
    inputs = torch.randn(30, 16, generator=seeded(5), dtype=torch.float64).numpy() * 2
    states, jacobians = tanh_run(matrix, np.zeros(16), 30, inputs)
    assert states.shape == (31, 16)
    driven = growth(jacobians)
    assert power_norms(matrix, 30)[30] == pytest.approx(1.5**30, rel=1e-9)
    assert driven.products[30] < 1e-3
    assert np.all(driven.products <= driven.bound * (1 + 1e-9))
    # Near 0 nothing saturates: there tanh grows as the linear network does.
    _, small = tanh_run(matrix, np.full(16, 1e-6), 5)
    assert growth(small).products[5] == pytest.approx(1.5**5, rel=1e-6)


def test_the_jacobians_of_a_tanh_run_against_autograd():
    start = uniform(7, seed=3).numpy()
    _, jacobians = tanh_run(W, start, 3)
    state = torch.tensor(start)
    for expected in jacobians:
        found = torch.autograd.functional.jacobian(lambda s: torch.tanh(s @ torch.tensor(W)), state)
        np.testing.assert_allclose(expected, found, atol=ATOL)
        state = torch.tanh(state @ torch.tensor(W))


@pytest.mark.parametrize(
    ("cell", "switches"),
    [("rnn", {}), ("gru", {"reset": "after"}), ("lstm", {}), ("lstm", {"num_layers": 2}), ("rnn", {"bidirectional": True})],
)
def test_step_jacobians_and_their_product_are_the_memorys_full_path(cell, switches):
    model, ids = language_model(cell, **switches), text()[:11]
    jacobians = step_jacobians(model, ids, batch=1)
    width = 7 * len(model.recurrent.circuit.carry)
    assert jacobians.shape == (11, width, width)
    path = memory_path(model, ids, 10, batch=1)
    # Of the top layer's own way only; the path of a deep model also counts the way through the layer below.
    block = slice(7, 14) if cell == "lstm" else slice(0, 7)
    product = np.eye(width)
    for t in range(10, 0, -1):
        product = product @ jacobians[t]
        if cell == "lstm":
            # d C_T / d C_t with H_t free to follow: through H_t the change of C_t goes on as well.
            H_of_C = model.trace(ids)["O" if not switches else "layers.1.forward.O"][t - 1, 1]
            C = model.trace(ids)["C" if not switches else "layers.1.forward.C"][t - 1, 1]
            follows = np.concatenate([np.diag(H_of_C * (1 - np.tanh(C) ** 2)), np.eye(7)])
            found = product[block] @ follows
        else:
            found = product[block]
        np.testing.assert_allclose(found, path.full[t - 1], atol=ATOL)


def test_step_jacobians_against_finite_differences_and_layers_by_name():
    model, ids, step = language_model("gru", num_layers=2), text()[:4], 1e-6
    found = step_jacobians(model, ids, scope="layers.0.forward.")
    start = torch.zeros(2, 2, 7, dtype=torch.float64)
    for unit in (0, 6):
        moved = [start.clone() for _ in range(2)]
        moved[0][0, 0, unit], moved[1][0, 0, unit] = step, -step
        up, down = (model.trace(ids, state)["layers.0.forward.H"][0, 0] for state in moved)
        np.testing.assert_allclose(found[0][:, unit], (up - down) / (2 * step), atol=1e-8)
    with pytest.raises(KeyError, match="no layer"):
        step_jacobians(model, ids, scope="layers.9.forward.")


def test_powers_turn_every_vector_to_the_leading_direction():
    symmetric = W + W.T
    cosines = power_alignment(symmetric, uniform(7, seed=4).numpy(), 200)
    assert cosines[-1] == pytest.approx(1, abs=1e-6)
    assert cosines[0] < 0.9
    turning = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.3]])
    assert power_alignment(turning, np.array([1.0, 2.0, 3.0]), 60)[-1] == pytest.approx(1, abs=ATOL)
