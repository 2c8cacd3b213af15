"""k-step forecasts against a plain loop, and where the closed loop ends."""

import numpy as np
import pytest
import torch

from engine.data.series import measured, noisy_sine
from engine.sequences.autoregression import LatentModel, fit_linear, fit_mlp, split
from engine.sequences.forecasts import (
    HORIZONS,
    closed_loop,
    companion,
    ending,
    feature_matrix,
    free_run,
    horizon_errors,
    window_fixed_points,
)
from tests.engine.sequences.test_autoregression import SCALE, SERIES, window_model
from tests.support import seeded


def said(model, window):
    """One prediction of the window model, by hand."""
    w = {name: p.detach().numpy() for name, p in model.named_parameters()}
    scaled = (np.array(window) - SCALE.mean) / SCALE.deviation
    hidden = np.maximum(scaled @ w["W_xh"] + w["b_h"], 0)
    return float((hidden @ w["W_hy"] + w["b_y"])[0]) * SCALE.deviation + SCALE.mean


def test_k_step_features_equal_a_plain_loop():
    model, tau, longest = window_model(), 5, 9
    features = feature_matrix(model, SERIES, longest)
    assert features.shape == (41 - tau - longest + 1, tau + longest)
    for i, row in enumerate(features):
        expected = list(SERIES[i : i + tau])
        for _ in range(longest):
            expected.append(said(model, expected[-tau:]))
        np.testing.assert_allclose(row, expected, atol=1e-10)


def test_a_latent_forecast_equals_reading_the_series_anew():
    for cell in ("rnn", "lstm"):
        model = LatentModel(cell, 7, scale=SCALE, generator=seeded(2))
        found = model.ahead(SERIES, 6, [1, 13, 41])
        for start, row in zip([1, 13, 41], found, strict=True):
            read = list(SERIES[:start])
            for value in row:
                scores = model.trace(np.array(read))["Y"][-1, 0, 0] * SCALE.deviation + SCALE.mean
                assert value == pytest.approx(scores, abs=1e-10)
                read.append(value)


def test_only_the_first_step_reads_what_came():
    """Changing a value changes the one-step forecasts after it, and no forecast that started before it."""
    model = window_model()
    other = SERIES.copy()
    other[20] += 3
    before, after = (model.ahead(values, 8, range(5, 33)) for values in (SERIES, other))
    starts = np.arange(5, 33)
    np.testing.assert_array_equal(before[starts <= 20], after[starts <= 20])
    assert np.all(before[starts == 21] != after[starts == 21])


def test_errors_by_horizon_are_placed_on_the_values_they_predict():
    model = window_model()
    found = horizon_errors(model, SERIES, 8, first=6)
    assert found.starts.tolist() == list(range(6, 34))
    assert found.predictions.shape == found.truth.shape == (28, 8)
    predictions, places = found.at(8)
    np.testing.assert_array_equal(found.truth[:, 7], SERIES[places])
    np.testing.assert_array_equal(predictions, model.ahead(SERIES, 8, range(6, 34))[:, 7])
    np.testing.assert_allclose(found.rms, np.sqrt(np.mean((found.predictions - found.truth) ** 2, axis=0)))
    assert found.quantiles.shape == (3, 8)
    assert np.all(np.diff(found.quantiles, axis=0) >= 0)
    with pytest.raises(ValueError, match="need 45 values, not 41"):
        horizon_errors(model, SERIES, 40)


def test_the_textbooks_experiment():
    """REFERENCE 1.1: errors against the clean sine grow with k, and the free run is worse than saying 0."""
    k_step, free = [], []
    for seed in range(5):
        series = noisy_sine(1000, 0.2, generator=seeded(seed))
        model = fit_mlp(split(series.values, 604)[0], generator=seeded(seed + 10)).model
        errors = horizon_errors(model, series.values, 64, truth=series.clean)
        k_step.append([errors.rms[k - 1] ** 2 for k in HORIZONS])
        loop = closed_loop(model, series.values, 604)
        free.append(np.mean((free_run(model, series.values, 604, 396) - series.clean[604:]) ** 2))
        assert loop.end == "fixed point"
        assert loop.reached.stable
        assert loop.path[-1] == pytest.approx(loop.reached.value, abs=1e-2)
    one, four, sixteen, sixty_four = np.median(k_step, axis=0)
    assert 0.008 < one < 0.025
    assert one < four < 0.05
    assert four < sixteen < 0.2
    assert 0.2 < sixty_four < 1.2
    assert np.median(free) > 0.45, "the constant 0 has 0.5"


def test_the_noise_free_sine_is_followed_for_ever_by_two_lags():
    clean = noisy_sine(1000, 0.0, generator=seeded(1)).values
    model = fit_linear(clean[:604], 2).model
    assert horizon_errors(model, clean, 64).rms.max() < 1e-9
    loop = closed_loop(model, clean, 604)
    assert loop.end == "moving"
    (point,) = loop.fixed_points
    np.testing.assert_allclose(point.eigenvalues, np.exp([0.01j, -0.01j]), atol=1e-9)
    assert point.radius == pytest.approx(1, abs=1e-9)


def test_the_eigenvalues_of_the_linear_loop_are_the_roots_of_its_polynomial():
    series = measured("seattle_temperature")
    model = fit_linear(series.values[:876], 5).model
    weights = model.W_xy.detach().numpy()[:, 0]
    (point,) = window_fixed_points(model)
    roots = np.roots([1, *-weights[::-1]])
    np.testing.assert_allclose(np.sort(np.abs(point.eigenvalues)), np.sort(np.abs(roots)), atol=1e-9)
    b = float(model.b_y.detach())
    expected = b / (1 - weights.sum()) * model.scale.deviation + model.scale.mean
    assert point.value == pytest.approx(expected, abs=1e-9)
    loop = closed_loop(model, series.values, 876)
    assert loop.end == "fixed point"
    distance = np.abs(loop.path - point.value)
    assert (distance[120] / distance[60]) ** (1 / 60) == pytest.approx(point.radius, abs=0.02)
    assert companion(np.array([1.0, 2.0, 3.0])).tolist() == [[0, 1, 0], [0, 0, 1], [1, 2, 3]]


def test_fixed_points_of_an_mlp_stand_still_and_their_eigenvalues_are_those_of_the_jacobian():
    series = noisy_sine(1000, 0.2, generator=seeded(1))
    model = fit_mlp(series.values[:604], generator=seeded(1)).model
    points = window_fixed_points(model)
    assert points
    for point in points:
        values = np.full(9, point.value)
        assert model.ahead(values, 1, [9])[0, 0] == pytest.approx(point.value, abs=1e-9)

        def moved(window):
            return torch.cat([window[1:], model(window)[None]])

        scaled = model.scale.to(values[:4])
        jacobian = torch.autograd.functional.jacobian(moved, scaled).numpy()
        expected = np.sort(np.abs(np.linalg.eigvals(jacobian)))
        np.testing.assert_allclose(np.sort(np.abs(point.eigenvalues)), expected, atol=1e-9)


def test_the_fixed_point_of_a_latent_model():
    model = LatentModel("gru", 7, scale=SCALE, generator=seeded(2))
    loop = closed_loop(model, SERIES, 41, steps=300)
    assert loop.end == "fixed point"
    (point,) = loop.fixed_points
    assert len(point.eigenvalues) == 7
    assert loop.path[-1] == pytest.approx(point.value, abs=1e-6)
    np.testing.assert_allclose(loop.path, free_run(model, SERIES, 41, 300), atol=1e-10)
    distance = np.abs(loop.path - point.value)
    late = distance[20:60]
    late = late[late > 1e-12]
    assert np.all(late < distance[0])


def test_ways_to_end():
    t = np.arange(1000)
    assert ending(0.9**t, [0.0]) == ("fixed point", None)
    assert ending(0.9**t + 5, [0.0]) != ("fixed point", None)
    assert ending(np.sin(2 * np.pi * t / 6)) == ("cycle", 6)
    assert ending(np.sin(t * 0.1)) == ("moving", None)
    growing = fit_linear(1.1 ** np.arange(40.0), 1).model
    loop = closed_loop(growing, 1.1 ** np.arange(40.0), 40, steps=500)
    assert loop.end == "unbounded"
    assert np.isfinite(loop.path).all()
    assert loop.reached is None
