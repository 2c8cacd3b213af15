"""How the lesson compares its models: the same training part, the same start points, and the error of saying the mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch

from engine.sequences.autoregression import Fit, Model, fit_latent, fit_linear, fit_mlp
from engine.sequences.forecasts import HORIZONS, HorizonErrors, closed_loop, compared_starts, horizon_errors
from engine.trace import Array

TRAIN_SHARE: Final = 0.6  # of the values, from the beginning
LEAST: Final = 12  # values of a series of which both parts are of use
UPDATES: Final = 30  # of the latent model for each epoch that the MLP gets
PIECE: Final = 32  # steps through which the latent model is trained
LAGS: Final = (1, 2, 3, 4, 8, 16, 32)


def train_length(values: Array) -> int:
    """How many values are for training; the others are for the test. The two parts have no value in common."""
    return int(TRAIN_SHARE * len(values))


def fitted(kind: str, train: Array, *, tau: int = 4, hidden: int = 10, epochs: int = 5, seed: int = 0) -> Fit:
    """Fit "linear", "mlp" or "rnn" to the training part alone. The same seed gives the same weights."""
    draw = torch.Generator().manual_seed(seed)
    if kind == "linear":
        return fit_linear(train, tau)
    if kind == "mlp":
        return fit_mlp(train, tau, hidden, epochs=epochs, generator=draw)
    steps = min(PIECE, len(train) - 1)
    return fit_latent(train, "rnn", hidden, updates=UPDATES * epochs, num_steps=steps, generator=draw)


def possible(values: Array, train: int, horizons: Sequence[int] = HORIZONS) -> tuple[int, ...]:
    """The horizons that at least two start points of the test part have."""
    return tuple(k for k in horizons if train + k < len(values))


def errors_after(model: Model, values: Array, train: int, longest: int | None = None, *, first: int = 0) -> HorizonErrors:
    """Forecasts from every start point of the test part, 1 to ``longest`` steps (the largest possible horizon) ahead."""
    longest = max(possible(values, train)) if longest is None else longest
    return horizon_errors(model, values, longest, first=max(train, model.context, first))


def errors_of_mean(values: Array, train: int, *, first: int = 0) -> float:
    """The root mean squared error of always saying the mean of the training part, over the values after ``first``."""
    return float(np.sqrt(np.mean(np.square(values[max(train, first) :] - values[:train].mean()))))


def errors_of_models(models: Sequence[Model], values: Array, train: int) -> list[HorizonErrors]:
    """The same start points for all of them."""
    first = compared_starts(models)
    return [errors_after(model, values, train, first=first) for model in models]


@dataclass(frozen=True, kw_only=True)
class Lags:
    """What a linear model of ``tau`` past values comes to. ``rms`` at each of ``horizons``; ``radius`` None: no fixed point."""

    tau: int
    weights: Array = field(repr=False)
    loss: float
    horizons: tuple[int, ...]
    rms: tuple[float, ...]
    radius: float | None


def lags(values: Array, train: int, taus: Sequence[int] = LAGS) -> list[Lags]:
    """Linear models of different reach on the same series, compared at the same start points."""
    taus = [tau for tau in taus if 2 * tau < train]
    horizons = possible(values, train)
    found = []
    for tau in taus:
        fit = fit_linear(values[:train], tau)
        errors = errors_after(fit.model, values, train, first=max(taus))
        (point, *_) = [*closed_loop(fit.model, values, train, 1).fixed_points, None]
        found.append(
            Lags(
                tau=tau,
                weights=fit.model.get_parameter("W_xy").detach().numpy()[::-1, 0].copy(),
                loss=float(fit.losses[-1]) * fit.model.scale.deviation**2,
                horizons=horizons,
                rms=tuple(float(errors.rms[k - 1]) for k in horizons),
                radius=None if point is None else point.radius,
            )
        )
    return found
