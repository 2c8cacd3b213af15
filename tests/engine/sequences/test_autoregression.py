"""Series predicted from their past: models against their equations, pairs that do not overlap, fits that are right."""

import numpy as np
import pytest
import torch

from engine.data.series import noisy_sine
from engine.sequences.autoregression import (
    LatentModel,
    Scale,
    WindowModel,
    fit_latent,
    fit_linear,
    fit_mlp,
    pairs,
    split,
)
from tests.engine.recurrent.by_hand import numpy_gru, numpy_lstm, numpy_rnn
from tests.support import seeded, uniform

SERIES = uniform(41, seed=5).numpy()
SCALE = Scale(mean=0.3, deviation=1.7)


def window_model(tau=5, hidden=7, seed=3):
    model = WindowModel(tau, hidden, scale=SCALE, generator=seeded(seed))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=60 + number))
    return model


def weights(model):
    return {name.removeprefix("recurrent.").removeprefix("output."): p.detach().numpy() for name, p in model.named_parameters()}


def test_pairs_by_hand_and_parts_that_share_no_value():
    features, labels = pairs(np.arange(7.0), 3)
    assert features.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5]]
    assert labels.tolist() == [3, 4, 5, 6]
    train, test = split(np.arange(11.0), 6)
    used = [set(np.concatenate([part.ravel() for part in pairs(half, 2)])) for half in (train, test)]
    assert used[0] == set(range(6))
    assert used[1] == set(range(6, 11))
    for values, tau in ((np.arange(3.0), 3), (np.arange(3.0), 0)):
        with pytest.raises(ValueError, match="past value"):
            pairs(values, tau)
    with pytest.raises(ValueError, match="at most 10"):
        split(np.arange(11.0), 11)


def test_the_window_models_are_their_equations():
    model = window_model()
    w, X = weights(model), (pairs(SERIES, 5)[0] - 0.3) / 1.7
    hidden = np.maximum(X.dot(w["W_xh"]) + w["b_h"], 0)
    said = hidden.dot(w["W_hy"]) + w["b_y"]
    trace = model.trace(SERIES)
    assert set(trace.symbols) == {"H", "Y"}
    np.testing.assert_allclose(trace["X"][:, 0], X, atol=1e-12)
    np.testing.assert_allclose(trace["H"][:, 0], hidden, atol=1e-10)
    np.testing.assert_allclose(trace["Y"][:, 0], said, atol=1e-10)
    np.testing.assert_allclose(model.ahead(SERIES, 1, range(5, 41))[:, 0], said[:, 0] * 1.7 + 0.3, atol=1e-10)
    linear = window_model(hidden=None)
    v = weights(linear)
    np.testing.assert_allclose(linear.trace(SERIES)["Y"][:, 0], X.dot(v["W_xy"]) + v["b_y"], atol=1e-10)
    assert linear.trace(SERIES).latex("Y") == r"\mathbf Y_t = \mathbf X_t\mathbf W_{xy} + b_y"
    assert model.trace(SERIES).latex("H") == r"\mathbf H_t = \operatorname{ReLU}(\mathbf X_t\mathbf W_{xh} + \mathbf b_h)"
    plugged = model.trace(SERIES).plugged("H", 3, unit=2, digits=3)
    assert plugged.startswith("relu(")
    assert f"{trace['H'][3, 0, 2]:.3f}" in plugged


@pytest.mark.parametrize(("cell", "by_hand"), [("rnn", numpy_rnn), ("gru", numpy_gru), ("lstm", numpy_lstm)])
def test_the_latent_model_is_its_equations_and_reads_only_the_past(cell, by_hand):
    model = LatentModel(cell, 7, scale=SCALE, generator=seeded(2))
    w = weights(model)
    X = ((SERIES - 0.3) / 1.7)[:, None, None]
    zero = np.zeros((1, 7))
    expected = by_hand(w, X, zero, zero) if cell == "lstm" else by_hand(w, X, zero)
    trace = model.trace(SERIES)
    for name, value in expected.items():
        np.testing.assert_allclose(trace[name], value, atol=1e-10, err_msg=name)
    said = expected["H"].dot(w["W_hy"]) + w["b_y"]
    np.testing.assert_allclose(trace["Y"], said, atol=1e-10)
    ahead = model.ahead(SERIES, 1, range(1, 41))[:, 0]
    np.testing.assert_allclose(ahead, said[:-1, 0, 0] * 1.7 + 0.3, atol=1e-10)
    changed = SERIES.copy()
    changed[20:] += 9
    np.testing.assert_array_equal(model.ahead(changed, 3, [7, 20]), model.ahead(SERIES, 3, [7, 20]))


def test_two_lags_suffice_for_a_pure_sine():
    clean = noisy_sine(1000, 0.0, generator=seeded(1)).values
    fit = fit_linear(clean[:604], 2)
    np.testing.assert_allclose(fit.model.W_xy.detach()[:, 0], [-1, 2 * np.cos(0.01)], atol=1e-9)
    assert fit.losses[0] < 1e-20


def test_the_linear_fit_is_least_squares():
    train = noisy_sine(300, 0.2, generator=seeded(2)).values
    model = fit_linear(train, 4).model
    features, labels = pairs(train, 4)
    answer = np.linalg.lstsq(np.column_stack([features, np.ones(len(labels))]), labels, rcond=None)[0]
    np.testing.assert_allclose(model.W_xy.detach()[:, 0], answer[:4], atol=1e-9)
    constant = fit_linear(np.full(9, 2.5), 3).model
    np.testing.assert_allclose(constant.ahead(np.full(9, 2.5), 4, [9]), 2.5, atol=1e-12)


@pytest.mark.parametrize("kind", ["mlp", "latent"])
def test_training_comes_near_the_noise_and_follows_its_generator(kind):
    series = noisy_sine(1000, 0.2, generator=seeded(3))
    train, _ = split(series.values, 604)

    def fitted(seed):
        return (
            fit_mlp(train, generator=seeded(seed)) if kind == "mlp" else fit_latent(train, updates=120, generator=seeded(seed))
        )

    fit = fitted(4)
    floor = fit.losses * fit.model.scale.deviation**2
    assert floor[-1] < floor[0]
    assert 0.035 < floor[-1] < 0.07, "the noise alone is 0.04"
    again, other = fitted(4), fitted(5)
    np.testing.assert_array_equal(again.losses, fit.losses)
    assert not np.array_equal(other.losses, fit.losses)


def test_the_scale_is_that_of_the_training_part():
    train = np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
    assert fit_linear(train, 2).model.scale == Scale(mean=6.0, deviation=float(np.std(train)))
    assert Scale.of(np.full(4, 2.0)) == Scale(mean=2.0, deviation=1.0)


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.1, -1e300, 0.0])
def test_ln_05_kind_a_training_part_of_equal_values_is_not_divided_by_its_rounding(value):
    scale = Scale.of(np.full(1000, value))
    assert (scale.mean, scale.deviation) == (value, 1.0)


def test_ln_05_kind_values_of_every_size_have_a_deviation():
    for size in (1e-200, 1.0, 1e200):
        assert Scale.of(np.array([-size, size])).deviation == pytest.approx(size, rel=1e-12)
    with pytest.raises(ValueError, match="largest number"):
        Scale.of(np.array([-1.5e308, 1.5e308]))


def test_opt_08_a_rate_of_0_changes_nothing_and_one_without_value_is_refused():
    still = fit_mlp(SERIES, learning_rate=0.0, epochs=2, generator=seeded(1))
    assert still.losses[0] == pytest.approx(still.losses[1], abs=1e-12)
    for rate in (float("nan"), float("inf"), -0.1):
        for fit in (fit_mlp, fit_latent):
            with pytest.raises(ValueError, match="finite number of at least 0"):
                fit(SERIES, learning_rate=rate, generator=seeded(1))


def test_refusals_say_what_is_needed():
    model = window_model()
    for starts in ([4], [42], []):
        with pytest.raises(ValueError, match="may start at 5 to 41"):
            model.ahead(SERIES, 2, starts)
    with pytest.raises(ValueError, match="at least 1"):
        WindowModel(0, 3, scale=SCALE, generator=seeded(1))
    with pytest.raises(ValueError, match="cell is one of"):
        LatentModel("mamba", 3, scale=SCALE, generator=seeded(1))
    with pytest.raises(ValueError, match="more than 20 values"):
        fit_latent(SERIES[:20], num_steps=20, generator=seeded(1))
    with pytest.raises(ArithmeticError, match="no longer a number"):
        fit_mlp(SERIES, learning_rate=1e300, epochs=9, generator=seeded(1))
