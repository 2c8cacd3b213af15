r"""The smallest recurrent network, one number wide, in which every way of truncating can be seen whole.

h_t = tanh(w h_{t-1} + x_t). The derivative of the last state with respect to w is a sum over the steps at which w was used:
e_t is what step t adds by itself, and j_t = dh_t / dh_{t-1} is the factor of every edge it passes,

    dh_T / dw = e_T + j_T e_{T-1} + j_T j_{T-1} e_{T-2} + ...

Truncated after tau terms it is biased and never varies. With a factor xi_t on each edge, 1/pi with probability pi and 0
otherwise, z_t = e_t + xi_t j_t z_{t-1} is right in the mean (Tallec & Ollivier 2017) and varies, the more the longer the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.equation import Circuit, equation
from engine.operations import tanh
from engine.symbols import SIGNED, Symbol, symbol, table
from engine.trace import Array, frozen


@equation
def h(h_prev, w, x):
    """Hidden state of one unit."""
    return tanh(w * h_prev + x)


@equation
def e(h, h_prev):
    """What this use of w adds by itself."""
    return (1 - h**2) * h_prev


@equation
def j(h, w):
    """How much of a change of the state before arrives in this state."""
    return (1 - h**2) * w


@equation
def z(e, xi, j, z_prev):
    """The derivative of the state with respect to w, gathered step by step."""
    return e + xi * j * z_prev


CHAIN_STEP = Circuit(h, e, j, z, carry=("h", "z"))
CHAIN_TABLE = table(
    symbol("x", "T", "input_value"),
    symbol("h", "T", "state", SIGNED),
    symbol("e", "T", "gradient"),
    symbol("j", "T", "gradient"),
    symbol("z", "T", "gradient"),
    Symbol(name="xi", letter="ξ", axes="T", role="weight"),
    symbol("w", "", "weight"),
    carry=("h", "z"),
)


@dataclass(frozen=True, kw_only=True)
class ScalarChain:
    """One run: ``states`` (T + 1,) from h_0 on, ``own`` (T,) the e_t, ``edges`` (T,) the j_t."""

    weight: float
    inputs: Array = field(repr=False)
    states: Array = field(repr=False)
    own: Array = field(repr=False)
    edges: Array = field(repr=False)

    @property
    def terms(self) -> Array:
        """(T,) what the use of w at each step adds to dh_T/dw, the last step last."""
        ways = np.append(np.cumprod(self.edges[:0:-1])[::-1], 1.0)
        return np.asarray(self.own * ways)

    @property
    def exact(self) -> float:
        """dh_T / dw."""
        return float(self.terms.sum())

    def truncated(self, steps: int) -> float:
        """The last ``steps`` terms alone."""
        if steps < 1:
            raise ValueError(f"a truncated gradient needs at least 1 step, not {steps}")
        return float(self.terms[-steps:].sum())

    def randomized(self, keep: float, draws: int, generator: torch.Generator) -> Array:
        """(draws,) estimates with edges kept with probability ``keep``, run through the equations."""
        kept = torch.rand(len(self.own), draws, generator=generator, dtype=torch.float64) < keep
        return frozen(_run(self.weight, self.inputs, float(self.states[0]), kept.double() / keep)[-1]["z"])

    def deviation(self, keep: float) -> float:
        """The standard deviation of a randomized estimate, exactly: E[z_t^2] runs along the chain as z_t does."""
        mean, square = 0.0, 0.0
        for own, edge in zip(self.own, self.edges, strict=True):
            mean, square = own + edge * mean, own**2 + 2 * own * edge * mean + edge**2 * square / keep
        return float(np.sqrt(max(0.0, square - mean**2)))


def scalar_chain(weight: float, inputs: Sequence[float] | Array | Tensor, start: float = 0.0) -> ScalarChain:
    """Run h_t = tanh(w h_{t-1} + x_t) from ``start``. Raises ``ValueError`` without an input."""
    given = torch.as_tensor(np.asarray(inputs), dtype=torch.float64)
    if given.ndim != 1 or not len(given):
        raise ValueError("the inputs are one row of at least one number")
    results = _run(weight, given, start, torch.ones(len(given), 1, dtype=torch.float64))
    whole = {name: np.array([float(step[name]) for step in results]) for name in ("h", "e", "j")}
    return ScalarChain(
        weight=float(weight),
        inputs=frozen(given),
        states=frozen(np.append(start, whole["h"])),
        own=frozen(whole["e"]),
        edges=frozen(whole["j"]),
    )


def example_inputs(steps: int = 50, scale: float = 0.1, seed: int = 0) -> Tensor:
    """The inputs of the example: ``steps`` numbers from N(0, scale^2), drawn in float32."""
    return (torch.randn(steps, generator=torch.Generator().manual_seed(seed)) * scale).double()


def _run(weight: float, inputs: Array | Tensor, start: float, factors: Tensor) -> list[dict[str, Tensor]]:
    """The equations over all steps; ``factors`` (T, draws) are the xi_t."""
    begin = torch.tensor(float(start), dtype=torch.float64)
    steps = [{"x": x, "xi": xi} for x, xi in zip(torch.tensor(np.asarray(inputs)), factors, strict=True)]
    w = torch.tensor(float(weight), dtype=torch.float64)
    with torch.no_grad():
        results, _ = CHAIN_STEP.unroll(steps, {"w": w}, {"h": begin, "z": torch.zeros_like(factors[0])})
    return results
