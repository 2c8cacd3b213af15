r"""What becomes of a prediction that feeds on itself: errors by horizon, and where the closed loop ends.

A forecast k steps ahead reads the model's own output from its second step on. Its error grows with k for two reasons that are
often confused: errors accumulate, and the closed loop falls into a *fixed point* of the fitted map and stays there. Whether it
does is decided by eigenvalues: for a model of the last tau values those of the companion matrix (the window moves by one, the
prediction enters), for a latent model those of the state's map, taken at the fixed point. All inside the unit circle: it is
reached, at the pace of the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.sequences.autoregression import LatentModel, Model, Numbers, WindowModel, pairs
from engine.trace import Array, frozen

HORIZONS = (1, 4, 16, 64)
QUANTILES = (0.1, 0.5, 0.9)
NEAR = 1e-3  # deviations of the series from a fixed point, within which the loop has reached it
STILL = 1e-9  # deviations by which the rounds of a cycle may differ
LONGEST_CYCLE = 64
UNBOUNDED = 1e3  # deviations from the mean beyond which a loop is taken to grow for ever


# -------------------------------------------------------------------------------------------------- errors by horizon


@dataclass(frozen=True, kw_only=True)
class HorizonErrors:
    """Forecasts from every start point, against what came.

    ``starts`` (S,): values known before each forecast. ``predictions`` and ``truth`` (S, K) for the horizons 1, ..., K.
    ``rms`` (K,): the root mean squared error over the start points; ``quantiles`` (3, K): the 10, 50 and 90 % quantiles of the
    absolute error.
    """

    starts: Numbers = field(repr=False)
    predictions: Array = field(repr=False)
    truth: Array = field(repr=False)

    @property
    def errors(self) -> Array:
        return self.predictions - self.truth

    @property
    def rms(self) -> Array:
        return np.asarray(np.sqrt(np.square(self.errors).mean(axis=0)))

    @property
    def quantiles(self) -> Array:
        return np.asarray(np.quantile(np.abs(self.errors), QUANTILES, axis=0))

    def at(self, k: int) -> tuple[Array, Numbers]:
        """The k-step predictions and the places (from 0) of the values that they predict."""
        return self.predictions[:, k - 1], self.starts + k - 1


def horizon_errors(
    model: Model, values: Array, longest: int = HORIZONS[-1], *, first: int | None = None, truth: Array | None = None
) -> HorizonErrors:
    """Forecast 1 to ``longest`` steps from every point that has that many values after it.

    ``first``: values known before the first forecast (so that models of different reach share their start points). ``truth``:
    what to compare with, for instance the part without noise. Raises ``ValueError`` when the series is too short.
    """
    first = model.context if first is None else first
    if first < model.context or len(values) < first + longest:
        raise ValueError(
            f"forecasts of {longest} steps after {max(first, model.context)} known values need "
            f"{max(first, model.context) + longest} values, not {len(values)}"
        )
    starts = np.arange(first, len(values) - longest + 1)
    compared = values if truth is None else truth
    return HorizonErrors(
        starts=starts,
        predictions=model.ahead(values, longest, starts.tolist()),
        truth=frozen(np.lib.stride_tricks.sliding_window_view(compared, longest)[first:]),
    )


def feature_matrix(model: WindowModel, values: Array, longest: int) -> Array:
    """The textbook's k-step features (n - tau - k + 1, tau + k): the last tau values, then the 1-step, ..., k-step prediction.

    Row i begins with x_i; column tau + k - 1 holds the k-step prediction of x_{i + tau + k - 1}.
    """
    windows, _ = pairs(values, model.tau)
    rows = len(values) - model.tau - longest + 1
    if rows < 1:
        raise ValueError(f"{model.tau} past values and {longest} steps need more than {len(values)} values")
    starts = range(model.tau, model.tau + rows)
    return frozen(np.concatenate([windows[:rows], model.ahead(values, longest, starts)], axis=1))


def free_run(model: Model, values: Array, start: int, steps: int) -> Array:
    """``steps`` predictions (steps,) after values[:start], each fed back as if it had come."""
    return frozen(model.ahead(values, steps, [start])[0])


# ----------------------------------------------------------------------------------------------------- the closed loop


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """A value at which the closed loop stands still, in the series' units, and the eigenvalues there, largest modulus first."""

    value: float
    eigenvalues: NDArray[np.complex128] = field(repr=False)

    @property
    def radius(self) -> float:
        """By how much a small distance from it is multiplied at each step, in the long run."""
        return float(np.abs(self.eigenvalues).max())

    @property
    def stable(self) -> bool:
        return self.radius < 1


@dataclass(frozen=True, kw_only=True)
class ClosedLoop:
    """Where a model ends when it reads nothing but itself.

    ``path`` (n,): its values. ``end``: "fixed point" (it comes to rest), "cycle" (it repeats with ``period``), "unbounded"
    (the path is shown as far as it stays near) or "moving" (none of these within the steps that were run). ``fixed_points``:
    all that were found, whether or not this run reaches them.
    """

    path: Array = field(repr=False)
    end: str
    period: int | None
    fixed_points: tuple[FixedPoint, ...]

    @property
    def reached(self) -> FixedPoint | None:
        """The fixed point that this run has ended in."""
        if self.end != "fixed point" or not self.fixed_points:
            return None
        return min(self.fixed_points, key=lambda point: abs(point.value - self.path[-1]))


def closed_loop(model: Model, values: Array, start: int, steps: int = 1000) -> ClosedLoop:
    """Run the closed loop after values[:start], and find its fixed points and their eigenvalues."""
    if isinstance(model, WindowModel):
        path = np.asarray(model.scale.to(free_run(model, values, start, steps)))
        points = window_fixed_points(model)
    else:
        path, points = _latent_loop(model, values, start, steps)
    wild = np.flatnonzero(~(np.abs(path) <= UNBOUNDED))
    if len(wild):
        path = path[: max(1, wild[0])]
    end, period = ("unbounded", None) if len(wild) else ending(path, [_scaled(model, p) for p in points if p.stable])
    return ClosedLoop(path=model.scale.back(torch.tensor(path)), end=end, period=period, fixed_points=points)


def _scaled(model: Model, point: FixedPoint) -> float:
    return float(model.scale.to(np.array(point.value)))


def ending(path: Array, stable: Sequence[float] = ()) -> tuple[str, int | None]:
    """How a scaled path ends, given the stable fixed points: "fixed point", "cycle" with its period, or "moving".

    It ends in a fixed point when its last values all lie within ``NEAR`` of one, in a cycle when they repeat within ``STILL``.
    """
    tail = path[-3 * LONGEST_CYCLE :]
    if any(np.abs(path[-LONGEST_CYCLE:] - point).max() < NEAR for point in stable):
        return "fixed point", None
    for period in range(2, LONGEST_CYCLE + 1):
        if len(tail) > 2 * period and np.abs(tail[period:] - tail[:-period]).max() < STILL:
            return "cycle", period
    return "moving", None


def companion(weights: Array) -> Array:
    """The matrix (tau, tau) that moves a window by one: ones above the diagonal, the weights (tau,) in the last row."""
    matrix = np.eye(len(weights), k=1)
    matrix[-1] = weights
    return matrix


def window_fixed_points(model: WindowModel, reach: float = 10.0) -> tuple[FixedPoint, ...]:
    """Every constant c with f(c, ..., c) = c, found by its change of sign within ``reach`` deviations of the mean.

    A fixed point of a closed loop of windows is a constant window, so it is one number; the linear model has at most one.
    """

    def gap(constant: Tensor) -> Tensor:
        with torch.no_grad():
            said: Tensor = model(constant[:, None].expand(-1, model.tau))
        return said - constant

    if model.hidden is None:
        slope = float(gap(torch.tensor([1.0]).double()) - gap(torch.tensor([0.0]).double()))
        found = [float(-gap(torch.tensor([0.0]).double())) / slope] if abs(slope) > 1e-12 else []
    else:
        grid = torch.linspace(-reach, reach, 4001, dtype=torch.float64)
        below = gap(grid) < 0
        found = []
        for place in torch.nonzero(below[1:] != below[:-1])[:, 0].tolist():
            low, high = grid[place], grid[place + 1]
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if bool(gap(middle[None])[0] < 0) == bool(below[place]) else (low, middle)
            found.append(float((low + high) / 2))
    points = []
    for value in found:
        window = torch.full((model.tau,), value, dtype=torch.float64, requires_grad=True)
        with torch.enable_grad():
            (weights,) = torch.autograd.grad(model(window), window)
        points.append(_point(model, value, companion(weights.numpy())))
    return tuple(points)


def _latent_loop(model: LatentModel, values: Array, start: int, steps: int) -> tuple[Array, tuple[FixedPoint, ...]]:
    """The scaled path of a latent model's closed loop, and the fixed point it runs into, sharpened by Newton's method."""
    circuit, size = model.recurrent.circuit, model.recurrent.hidden_size
    weights = model.recurrent.weights()[""]

    def follow(joined: Tensor) -> Tensor:
        parts = dict(zip((f"{name}_prev" for name in circuit.carry), joined.split(size), strict=True))
        X = model.readout(parts["H_prev"][None])
        results, _ = circuit.run({**weights, "X": X[:, None], **{name: part[None] for name, part in parts.items()}})
        return torch.cat([results[name][0] for name in circuit.carry])

    path = []
    with torch.no_grad():
        state = model.states(values, [start])
        joined = torch.cat([part[0, 0] for part in ((state,) if isinstance(state, Tensor) else state)])
        for _ in range(steps):
            path.append(float(model.readout(joined[None, :size])))
            joined = follow(joined)
    eye = torch.eye(len(joined), dtype=joined.dtype)
    for _ in range(20):
        away = follow(joined).detach() - joined
        if float(away.abs().max()) < 1e-13:
            break
        step, fault = torch.linalg.solve_ex(torch.autograd.functional.jacobian(follow, joined) - eye, away)
        if int(fault) or not bool(step.isfinite().all()):
            return np.array(path), ()
        joined = joined - step
    if not float((follow(joined).detach() - joined).abs().max()) < STILL:
        return np.array(path), ()
    value = float(model.readout(joined[None, :size]).detach())
    return np.array(path), (_point(model, value, torch.autograd.functional.jacobian(follow, joined).numpy()),)


def _point(model: Model, value: float, matrix: Array) -> FixedPoint:
    eigenvalues = np.linalg.eigvals(matrix).astype(np.complex128)
    order = np.lexsort((-eigenvalues.imag, -eigenvalues.real, -np.round(np.abs(eigenvalues), 12)))
    return FixedPoint(value=float(model.scale.back(torch.tensor(value, dtype=torch.float64))), eigenvalues=eigenvalues[order])


def compared_starts(models: Sequence[Model]) -> int:
    """The first start point that all models can share."""
    return max(model.context for model in models)
