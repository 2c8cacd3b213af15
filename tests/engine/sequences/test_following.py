"""A forecast as a trace: every number against a plain loop, with a teacher and without; and the script that forecasts again."""

import re
import runpy

import numpy as np
import pytest
import torch

from engine.data.series import noisy_sine
from engine.notes import Note
from engine.sequences.autoregression import LatentModel, WindowModel, fit_linear, fit_mlp
from engine.sequences.comparing import errors_after, errors_of_mean, fitted, lags, possible, train_length
from engine.sequences.following import follow, k_step_lines, kind_of, runs_from
from engine.sequences.forecasts import HORIZONS
from engine.sequences.questions import AUTOREGRESSION, ForecastRun
from engine.sequences.script import SHOWN, script
from tests.support import seeded

SERIES = noisy_sine(90, 0.2, generator=seeded(7)).values
TRAIN = 50
KINDS = ("linear", "mlp", "rnn")


def model_of(kind: str):
    return fitted(kind, SERIES[:TRAIN], tau=5, hidden=7, epochs=2, seed=3).model


def by_hand(kind, model, known, read):
    """One prediction in NumPy: its window, hidden numbers, scaled prediction and prediction."""
    mean, deviation = SERIES[:TRAIN].mean(), SERIES[:TRAIN].std()
    if kind == "rnn":
        w = {name.rpartition(".")[2]: p.detach().numpy() for name, p in model.named_parameters()}
        h = np.zeros(7)
        for value in [*known, read[-1]]:
            h = np.tanh((value - mean) / deviation * w["W_xh"][0] + h @ w["W_hh"] + w["b_h"])
        x, y = read[-1:], float((h @ w["W_hy"] + w["b_y"])[0])
    else:
        w = {name: p.detach().numpy() for name, p in model.named_parameters()}
        x = read[-5:]
        scaled = (np.array(x) - mean) / deviation
        h = np.maximum(scaled @ w["W_xh"] + w["b_h"], 0) if kind == "mlp" else None
        y = float((h @ w["W_hy"] + w["b_y"])[0]) if kind == "mlp" else float((scaled @ w["W_xy"] + w["b_y"])[0])
    return {"x": np.array(x), "X": (np.array(x) - mean) / deviation, "H": h, "Y": y, "x_hat": y * deviation + mean}


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_of_a_forecast_equals_a_plain_loop(kind):
    """Series 1.1: k steps ahead feed on their own output only after step 1; with a teacher never."""
    model, start, steps = model_of(kind), 53, 11
    found = follow(model, SERIES, start, steps)
    assert kind_of(model) == kind
    assert set(found.trace.symbols) == {"X", "Y", "x_hat"} | ({"H"} if kind != "linear" else set())
    for teacher in (0, 1):
        read = list(SERIES[:start])
        for k in range(steps):
            expected = by_hand(kind, model, read[:-1], read)
            for name, value in expected.items():
                if value is not None:
                    got = found.trace[name][teacher, k] if name in ("x", "X", "H") else found.trace[name][teacher, k, 0]
                    np.testing.assert_allclose(got, value, atol=1e-10, err_msg=f"{name} {teacher} {k}")
            read.append(SERIES[start + k] if teacher else expected["x_hat"])
    np.testing.assert_array_equal(found.truth, SERIES[start : start + steps])
    width = 1 if kind == "rnn" else 5
    assert found.own[0].tolist() == [min(k, width) for k in range(steps)]
    assert not found.own[1].any()


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_teacher_nothing_after_the_start_is_read(kind):
    model, other = model_of(kind), SERIES.copy()
    other[60:] += 5
    before, after = (follow(model, values, 60, 9).predictions for values in (SERIES, other))
    np.testing.assert_array_equal(before[0], after[0])
    assert before[1, 0] == after[1, 0]
    assert np.all(before[1, 1:] != after[1, 1:])


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_has_not_seen_the_test_part(kind):
    other = SERIES.copy()
    other[TRAIN:] = 0
    one, two = (fitted(kind, values[:TRAIN], tau=5, hidden=7, epochs=2, seed=3).model for values in (SERIES, other))
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    errors = errors_after(one, SERIES, TRAIN)
    assert errors.starts.min() == TRAIN


def test_lines_and_runs_are_placed_on_what_they_predict():
    model = model_of("mlp")
    lines = k_step_lines(model, SERIES, HORIZONS)
    for row, k in zip(lines, HORIZONS, strict=True):
        for place in (5 + k - 1, 70, 89):
            if place - k + 1 >= 5:
                assert row[place] == pytest.approx(model.ahead(SERIES, k, [place - k + 1])[0, k - 1], abs=1e-12)
        assert np.isnan(row[: 5 + k - 1]).all()
    runs = runs_from(model, SERIES, [5, 40, 89], 20)
    np.testing.assert_allclose(runs[1], model.ahead(SERIES, 20, [40])[0], atol=1e-12)
    assert np.isfinite(runs[2]).sum() == 1
    assert np.isnan(k_step_lines(model, SERIES[:30], (64,))).all()


def test_a_run_that_grows_without_bounds_is_followed_as_far_as_it_stays_near():
    growing = 1.3 ** np.arange(60.0)
    model = fit_linear(growing[:36], 2).model
    found = follow(model, growing, 36, 24)
    assert found.wild
    assert 1 <= len(found.truth) < 24
    assert np.isfinite(found.predictions).all()


def test_a_start_without_anything_before_or_after_it_is_refused():
    for start in (4, 90):
        with pytest.raises(ValueError, match="starts at 5 to 89"):
            follow(model_of("linear"), SERIES, start, 3)


def test_a_constant_series_is_predicted_as_it_is():
    flat = np.full(40, 7.5)
    for kind in KINDS:
        found = follow(fitted(kind, flat[:24], tau=3, epochs=1).model, flat, 24, 10)
        assert np.isfinite(found.predictions).all()
    linear = follow(fitted("linear", flat[:24], tau=3).model, flat, 24, 10)
    np.testing.assert_allclose(linear.predictions, 7.5, atol=1e-12)


def test_two_lags_are_enough_without_noise():
    """x_t = 2 cos(0.01) x_{t-1} - x_{t-2} (REFERENCE of the textbook's exercise: how many lags without noise)."""
    clean = noisy_sine(1000, 0.0, generator=seeded(0)).values
    one, two, *_ = lags(clean, train_length(clean), (1, 2, 4))
    np.testing.assert_allclose(two.weights, [2 * np.cos(0.01), -1], atol=1e-8)
    assert two.rms[-1] < 1e-8 < one.rms[-1]
    assert two.radius == pytest.approx(1, abs=1e-8)
    assert one.horizons == HORIZONS


def test_only_horizons_with_start_points_are_compared():
    assert possible(SERIES[:60], 50) == (1, 4)
    assert possible(SERIES, TRAIN) == (1, 4, 16)
    errors = errors_after(model_of("linear"), SERIES, TRAIN)
    assert errors.rms.shape == (16,)
    constant = errors_of_mean(SERIES, TRAIN)
    assert constant == pytest.approx(np.sqrt(np.mean((SERIES[50:] - SERIES[:50].mean()) ** 2)), abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_script_prints_the_numbers_of_the_page(kind, tmp_path, capsys):
    model, start = model_of(kind), 57
    path = tmp_path / "autoregression.py"
    path.write_text(script(model, SERIES, TRAIN, start), encoding="utf-8")
    runpy.run_path(str(path))
    printed = dict(zip(("measured", "free", "taught", "rms"), capsys.readouterr().out.splitlines(), strict=True))
    found = follow(model, SERIES, start, SHOWN)
    for name, numbers in (("measured", found.truth), ("free", found.predictions[0]), ("taught", found.predictions[1])):
        assert re.findall(r"-?\d+\.\d{3}", printed[name]) == [f"{number:.3f}" for number in numbers], name
    errors = errors_after(model, SERIES, TRAIN)
    assert re.findall(r"k=(\d+): (\d+\.\d{3})", printed["rms"]) == [(str(k), f"{errors.rms[k - 1]:.3f}") for k in (1, 4, 16)]


def test_every_question_is_answered_by_the_run():
    series = noisy_sine(1000, 0.2, generator=seeded(0))
    fit = fit_mlp(series.values[:600], generator=seeded(0))
    run = ForecastRun(model=fit.model, values=series.values, train=600, start=600)
    answers = {question.id.partition(".")[2]: question.ask(run) for question in AUTOREGRESSION}
    assert not [name for name, answer in answers.items() if isinstance(answer, Note)]
    assert answers["own"].choice == "some"
    assert answers["own"].values["own"] == 2
    assert answers["pairs"].choice == "pairs"
    assert answers["pairs"].values["found"] == 596
    assert answers["end"].choice == "point"
    free, taught = np.sqrt(np.square(run.following.errors).mean(axis=1))
    assert answers["teacher"].values["ratio"] == pytest.approx(free / taught)
    assert answers["teacher"].choice == "over_2"
    half = answers["pace"].values
    assert half["half"] == pytest.approx(np.log(0.5) / np.log(half["radius"]))
    errors = {f"t{tau}": answers["lags"].values[f"t{tau}"] for tau in (1, 4, 16)}
    assert min(errors, key=errors.get) == answers["lags"].choice
    assert run.same(ForecastRun(model=fit.model, values=series.values, train=600, start=600))
    assert not run.same(ForecastRun(model=fit.model, values=series.values, train=600, start=601))


@pytest.mark.parametrize("kind", KINDS)
def test_every_question_has_an_answer_or_a_reason_on_a_tiny_series(kind):
    values = np.arange(12.0) % 5
    model = fitted(kind, values[:7], tau=3, epochs=1).model
    assert isinstance(model, WindowModel | LatentModel)
    for question in AUTOREGRESSION:
        question.ask(ForecastRun(model=model, values=values, train=7, start=7))
