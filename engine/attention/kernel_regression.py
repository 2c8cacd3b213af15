r"""Kernel regression, Nadaraya 1964 and Watson 1964: a prediction is a weighted mean of known values.

f(x) = sum_i softmax_i(-(w (x - x_i))^2 / 2) y_i

These are the three lines of attention: a query x, keys x_i, values y_i. The score is the logarithm of a kernel, so that every
kernel becomes weights by the same softmax: they sum to 1 also far from all keys, where the kernel itself rounds to 0. A kernel
of bounded reach may truly have no key within it; then the nearest key answers alone (what a Gaussian does, too), and
``trace.notes`` says so.

Departures from the textbook: it learns w with a learning rate of 0.5 on the summed squared error, which jumps over the minimum
in one step; ``optimum`` finds it. Its "constant kernel" is called average here, its "Epanechikov kernel" is the triangular one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.attention.scores import weights_of_all, weights_of_kept
from engine.equation import Circuit, Equation, Values, equation
from engine.notes import Note
from engine.operations import absolute, log, masked_softmax, or_nearest, relu, total, within
from engine.symbols import GATE, Symbol, symbol, table
from engine.trace import Trace


@equation
def D(x, x_i):
    """How far each query is from each key."""
    return x - x_i


@equation("S")
def average_scores(D):
    """Scores: all equal."""
    return 0 * D


@equation("S")
def gaussian_scores(D, h):
    """Scores: the logarithm of a bell curve of width h."""
    return -((D / h) ** 2 / 2)


@equation("S")
def boxcar_scores(D, h):
    """Scores: the logarithm of 1 up to a distance of h, and of 0 beyond."""
    return log(within(D, h))


@equation("S")
def triangular_scores(D, h):
    """Scores: the logarithm of a tip that falls to 0 at a distance of h."""
    return log(relu(1 - absolute(D) / h))


@equation("S")
def learned_scores(D, w):
    """Scores: the logarithm of a bell curve of width 1/w, with w to be learned."""
    return -((w * D) ** 2 / 2)


@equation("A")
def weights_within_reach(S, D):
    """Weights: positive shares that sum to 1; the nearest key's alone where no key is within reach."""
    return or_nearest(masked_softmax(S), D)


@equation("A")
def weights_of_kept_within_reach(S, D, M):
    """Weights: positive shares that sum to 1, over what the mask keeps; the nearest key's where none is within reach."""
    return or_nearest(masked_softmax(S, M), D, M)


@equation
def f(A, y):
    """Prediction: the known values, each with its weight."""
    return A @ y


@equation
def L(f, y):
    """Loss: the sum of squared errors."""
    return total((f - y) ** 2)


KERNELS: dict[str, Equation] = {
    "average": average_scores,
    "gaussian": gaussian_scores,
    "boxcar": boxcar_scores,
    "triangular": triangular_scores,
}
BOUNDED = ("boxcar", "triangular")  # kernels that are 0 beyond their width
FAR = 1e50  # so that the square of a distance in widths is still a number
LEARNED = {
    True: Circuit(D, learned_scores, weights_of_kept, f, L),  # each point is predicted from all others
    False: Circuit(D, learned_scores, weights_of_all, f, L),
}

KERNEL_TABLE = table(
    Symbol(name="x", letter="x", axes="T1", role="query", italic=True),
    Symbol(name="x_i", letter="x", subscript="i", axes="S", role="key", italic=True),
    symbol("y", "S", "value"),
    symbol("D", "TS", "state"),
    symbol("S", "TS", "score"),
    symbol("M", "TS", "mask", GATE),
    symbol("A", "TS", "probability", GATE),
    symbol("f", "T", "state"),
    *(symbol(name, "", "size") for name in "hw"),
    symbol("L", "", "score"),
    whole=True,
)


def truth(x: Tensor) -> Tensor:
    """The textbook's curve 2 sin(x) + x^0.8, for x from 0."""
    return 2 * torch.sin(x) + x**0.8


def textbook_points(generator: torch.Generator, count: int = 50, noise: float = 0.5) -> tuple[Tensor, Tensor]:
    """Points (x, y) with x sorted in 0..5 and y the textbook's curve with normal noise, float64."""
    x = torch.sort(torch.rand(count, generator=generator, dtype=torch.float64) * 5).values
    return x, truth(x) + noise * torch.randn(count, generator=generator, dtype=torch.float64)


def points(keys: Any, values: Any) -> tuple[Tensor, Tensor]:
    """Keys and values as float64 rows. Raises ``ValueError`` unless both are finite and equally many, at least one."""
    x, y = (torch.as_tensor(given, dtype=torch.float64) for given in (keys, values))
    if x.ndim != 1 or x.shape != y.shape or not len(x):
        raise ValueError(f"each key has one value, and there is at least one: keys {tuple(x.shape)}, values {tuple(y.shape)}")
    if not bool(((x.abs() <= FAR) & y.isfinite()).all()):
        raise ValueError(f"keys and values are finite numbers, keys up to {FAR}")
    return x, y


def regress(
    queries: Any, keys: Any, values: Any, kernel: str = "gaussian", width: float = 1.0, *, leave_one_out: bool = False
) -> Trace:
    """Predict at the queries (T,) from keys and values (S,): D, S, A (T, S) and f (T,).

    ``leave_one_out`` hides each point from itself; queries must then be the keys. Queries without a key in reach stand in
    ``trace.notes``. Raises ``ValueError`` for a width that is not above 0, an unknown kernel, or points that do not fit.
    """
    x, y = points(keys, values)
    asked = torch.as_tensor(queries, dtype=torch.float64).reshape(-1)
    if kernel not in KERNELS:
        raise ValueError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}")
    if not 1 / FAR <= width <= FAR:
        raise ValueError(f"a kernel's width is between {1 / FAR} and {FAR}, not {width}")
    if not bool((asked.abs() <= FAR).all()):
        raise ValueError(f"queries are finite numbers up to {FAR}")
    inputs = {"x": asked.unsqueeze(-1), "x_i": x, "y": y}
    bounded = kernel in BOUNDED
    weights = {
        (False, False): weights_of_all,
        (False, True): weights_of_kept,
        (True, False): weights_within_reach,
        (True, True): weights_of_kept_within_reach,
    }[bounded, leave_one_out]
    if leave_one_out:
        inputs["M"] = _others(x)
        if not torch.equal(asked, x):
            raise ValueError("each point is hidden from itself: the queries are the keys")
    if kernel != "average":
        inputs["h"] = torch.tensor(width, dtype=torch.float64)
    trace = Circuit(D, KERNELS[kernel], weights, f).trace(inputs, {}, {"": KERNEL_TABLE})
    return replace(trace, notes=_out_of_reach(trace) if bounded else ())


def _others(x: Tensor) -> Tensor:
    """The mask that hides each of the points from itself. Raises ``ValueError`` where nothing would be left."""
    if len(x) < 2:
        raise ValueError("to predict each point from the others takes at least two")
    return ~torch.eye(len(x), dtype=torch.bool)


def _out_of_reach(trace: Trace) -> tuple[Note, ...]:
    seen = trace["S"] > -float("inf")
    if "M" in trace.inputs:
        seen = seen & trace["M"].astype(bool)
    alone = [place for place, row in enumerate(seen) if not row.any()]
    return (Note("kernel.out_of_reach", {"count": len(alone), "queries": alone[:64]}),) if alone else ()


# -------------------------------------------------------------------------------------------------- learning the width


def learned_inputs(keys: Any, values: Any, include_self: bool) -> Values:
    """What the loss over w reads beside w."""
    x, y = points(keys, values)
    inputs = {"x": x.unsqueeze(-1), "x_i": x, "y": y}
    return inputs if include_self else inputs | {"M": _others(x)}


def learned_trace(keys: Any, values: Any, w: float, *, include_self: bool = False) -> Trace:
    """The prediction of each point with the width 1/w, from the others unless ``include_self``, and its loss L."""
    inputs = learned_inputs(keys, values, include_self)
    return LEARNED[not include_self].trace(inputs, {"w": torch.tensor(w, dtype=torch.float64)}, {"": KERNEL_TABLE})


def losses(keys: Any, values: Any, w: Any, *, include_self: bool = False) -> Tensor:
    """The summed squared error (G,) for each w (G,): the curve on which w is learned."""
    inputs = learned_inputs(keys, values, include_self)
    many = torch.as_tensor(w, dtype=torch.float64).reshape(-1, 1, 1)
    results, _ = LEARNED[not include_self].run({**inputs, "w": many})
    return results["L"]


@dataclass(frozen=True, kw_only=True)
class FitStep:
    """One point of the optimiser's path: w before the step, its loss and the gradient there."""

    epoch: int
    w: float
    loss: float
    gradient: float


def fit(
    keys: Any, values: Any, w: float, *, learning_rate: float = 0.5, epochs: int = 5, include_self: bool = False
) -> list[FitStep]:
    """Gradient descent on the summed squared error from ``w``: the path, its last point after the last step.

    Stops early where w has run away beyond all measure.
    """
    inputs, circuit = learned_inputs(keys, values, include_self), LEARNED[not include_self]
    path = []
    for epoch in range(epochs + 1):
        at = torch.tensor(w, dtype=torch.float64, requires_grad=True)
        loss = circuit.run({**inputs, "w": at})[0]["L"]
        (gradient,) = torch.autograd.grad(loss, at)
        path.append(FitStep(epoch=epoch, w=w, loss=float(loss.detach()), gradient=float(gradient)))
        w -= learning_rate * float(gradient)
        if not abs(w) < FAR:
            break
    return path


def optimum(
    keys: Any, values: Any, *, include_self: bool = False, reach: Sequence[float] = (0.01, 100.0), grid: int = 400
) -> tuple[float, float]:
    """The w in ``reach`` with the least loss, and that loss: the best of a grid, then refined to 1e-9 of itself.

    With each point among its own neighbours the loss falls for ever: w is then the upper end of the reach.
    """
    tried = torch.logspace(math.log10(reach[0]), math.log10(reach[1]), grid, dtype=torch.float64)
    tried[0], tried[-1] = reach[0], reach[-1]
    best = int(losses(keys, values, tried, include_self=include_self).argmin())
    low, high = tried[max(0, best - 1)].item(), tried[min(grid - 1, best + 1)].item()
    golden = (5**0.5 - 1) / 2
    while high - low > 1e-9 * high:
        inner = [high - golden * (high - low), low + golden * (high - low)]
        left, right = losses(keys, values, inner, include_self=include_self).tolist()
        low, high = (low, inner[1]) if left < right else (inner[0], high)
    ends = [low, high, tried[best].item()]
    found = losses(keys, values, ends, include_self=include_self)
    return ends[int(found.argmin())], float(found.min())


# ------------------------------------------------------------------------------------------------------------- pictures


def kernel_shape(queries: Any, places: Any, kernel: str, width: float) -> Tensor:
    """The kernel itself around each query (T, U), 1 at its top: exp of the scores at any ``places`` (U,) of a key."""
    found = regress(queries, places, torch.zeros(len(places)), kernel, width)
    return torch.exp(torch.tensor(found["S"]))


def fits(keys: Any, values: Any, w: Any, queries: Any) -> Tensor:
    """The prediction at the queries (U,) for each w (G,), from all points: (G, U)."""
    x, y = points(keys, values)
    scores = learned_scores(
        D(torch.as_tensor(queries, dtype=torch.float64).unsqueeze(-1), x),
        torch.as_tensor(w, dtype=torch.float64).reshape(-1, 1, 1),
    )
    found: Tensor = f(weights_of_all(scores), y)
    return found


def mean_squared_error(predicted: Tensor, wanted: Tensor) -> Tensor:
    """The mean squared error over the last axis, of the places where both are numbers; NaN where there are none."""
    difference = (predicted - wanted).square()
    return torch.nanmean(difference, dim=-1)
