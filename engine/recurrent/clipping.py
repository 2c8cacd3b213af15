r"""Gradient clipping as a picture: what it cures and what it does not.

g <- min(1, theta / |g|) g, where |g| is one norm over all parameters together. The direction stays; a gradient shorter than
theta stays as it is, so clipping does nothing for a vanishing one. Clipping each entry on its own is another thing: it turns
the gradient.

``cliff`` is the error of Pascanu et al. 2013 (figure 6): a network of one unit, h_t = w sigma(h_{t-1}) + b, run 50 steps and
asked for 0.7 at the end. Its surface over (w, b) has a wall where the run changes over. A step taken there without clipping
flies off to anywhere (from w = 4.6, b = -2.3 over a distance of 500); with it, no step is longer than rate * theta.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.equation import Circuit, equation
from engine.metrics import clip_by_norm, clip_by_value
from engine.operations import sigmoid
from engine.symbols import symbol, table
from engine.trace import Array, frozen


@dataclass(frozen=True, kw_only=True)
class ClippedVector:
    """A gradient of two entries, clipped both ways. ``factor`` = min(1, theta / norm); ``unit`` = g / norm is another thing.

    ``turned`` is the angle in degrees by which clipping each entry turns the gradient; by the norm it never turns.
    """

    gradient: tuple[float, float]
    max_norm: float
    norm: float
    factor: float
    by_norm: tuple[float, float]
    by_value: tuple[float, float]
    unit: tuple[float, float]
    turned: float

    @property
    def changed(self) -> bool:
        """Whether clipping by the norm did anything."""
        return self.norm > self.max_norm


def clipped_vector(gradient: tuple[float, float], max_norm: float) -> ClippedVector:
    """The picture of one gradient under the threshold ``max_norm``. Raises ``ValueError`` for numbers that are not finite."""
    if not all(np.isfinite(gradient)):
        raise ValueError("a gradient that is not finite has no direction: such a step is left out")
    (scaled,), norm = clip_by_norm([list(gradient)], max_norm)
    (cut,) = clip_by_value([list(gradient)], max_norm)
    assert scaled is not None
    assert cut is not None
    turned = 0.0
    if norm > 0:
        across = gradient[0] * float(cut[1]) - gradient[1] * float(cut[0])
        along = gradient[0] * float(cut[0]) + gradient[1] * float(cut[1])
        turned = float(np.degrees(np.arctan2(abs(across), along)))
    return ClippedVector(
        gradient=gradient,
        max_norm=max_norm,
        norm=norm,
        factor=min(1.0, max_norm / norm) if norm > 0 else 1.0,
        by_norm=(float(scaled[0]), float(scaled[1])),
        by_value=(float(cut[0]), float(cut[1])),
        unit=(gradient[0] / norm, gradient[1] / norm) if norm > 0 else (0.0, 0.0),
        turned=turned,
    )


# --------------------------------------------------------------------------------------------------------- the cliff


@equation
def h(w, h_prev, b):
    """State of the one unit."""
    return w * sigmoid(h_prev) + b


CLIFF_STEP = Circuit(h, carry=("h",))
CLIFF_TABLE = table(symbol("h", "T", "state"), symbol("w", "", "weight"), symbol("b", "", "weight"), carry=("h",))
CLIFF_STEPS, CLIFF_TARGET = 50, 0.7


def cliff(w: Tensor, b: Tensor) -> Tensor:
    """(h_50 - 0.7)^2 for every pair of w and b, tensors of one shape, starting at h_0 = 0."""
    results, _ = CLIFF_STEP.unroll([{}] * CLIFF_STEPS, {"w": w, "b": b}, {"h": torch.zeros_like(w)})
    return (results[-1]["h"] - CLIFF_TARGET) ** 2


def cliff_surface(w: Array, b: Array) -> Array:
    """The error over a grid, (len(b), len(w))."""
    with torch.no_grad():
        rows, columns = torch.meshgrid(torch.tensor(np.asarray(b)), torch.tensor(np.asarray(w)), indexing="ij")
        return frozen(cliff(columns.double(), rows.double()))


@dataclass(frozen=True, kw_only=True)
class Descent:
    """Steps down the error: ``path`` (n + 1, 2) of (w, b), ``errors`` (n + 1,), ``norms`` (n,) of gradients before clipping.

    ``stopped`` is the step at which a number was no longer finite, None for none.
    """

    path: Array = field(repr=False)
    errors: Array = field(repr=False)
    norms: Array = field(repr=False)
    stopped: int | None = None


def descend(w: float, b: float, *, rate: float, steps: int, max_norm: float | None = None) -> Descent:
    """Gradient descent on ``cliff`` from (w, b), with or without clipping."""
    place = torch.tensor([w, b], dtype=torch.float64)
    path, errors, norms, stopped = [place], [], [], None
    for n in range(steps + 1):
        leaf = path[-1].clone().requires_grad_()
        with torch.enable_grad():
            error = cliff(leaf[0], leaf[1])
            (gradient,) = torch.autograd.grad(error, leaf)
        errors.append(float(error.detach()))
        if n == steps:
            break
        (clipped,), norm = clip_by_norm([gradient], np.inf if max_norm is None else max_norm)
        assert clipped is not None
        if not np.isfinite(norm):
            stopped = n
            break
        norms.append(norm)
        path.append(path[-1] - rate * clipped)
    return Descent(path=frozen(torch.stack(path)), errors=np.array(errors), norms=np.array(norms), stopped=stopped)
