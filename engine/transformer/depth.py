r"""A stack of equal blocks, every block at once: the equations of one block over all layers and tokens.

Arrangements of a block, with phi an activation:
    plain       Y = phi(X W)
    norm        Y = phi(norm(X) W)
    residual    Y = X + phi(X W)
    pre         Y = X + phi(norm(X) W)
    post        Y = norm(X + phi(X W)), as in the paper of 2017

``engine.transformer.residual_norm`` runs the stack block after block; here the inputs of all its blocks are set side by side
(layers, tokens, features), so that one circuit holds each number of each layer. It runs in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.equation import Circuit, Equation, Values, equation
from engine.operations import mean, sqrt, variance
from engine.symbols import Symbol, symbol, table
from engine.trace import Trace
from engine.transformer.norms import (
    EPS,
    NORM_OVER,
    NORMS,
    RMS_NORM,
    axes_over,
    norm_over,
    norm_table,
)
from engine.transformer.residual_norm import ACTIVATIONS, R, ResidualStack, StackFlow, Y_plain, Y_residual

Array = NDArray[np.float64]
ARRANGEMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "pre": {"residual": True, "place": "pre"},
    "post": {"residual": True, "place": "post"},
    "residual": {"residual": True, "norm": None},
    "plain": {"residual": False, "norm": None},
    "norm": {"residual": False, "place": "pre"},
}
INPUTS: Final = ("normal", "constant", "far")
FAR: Final = 10_000.0


@equation("X_n")
def X_n_shifted(X_hat, gamma, beta):
    """The norm's output: each feature with a scale and a shift of its own."""
    return gamma * X_hat + beta


@equation("X_n")
def X_n_scaled(X_hat, gamma):
    """The norm's output: each feature with a scale of its own."""
    return gamma * X_hat


@equation("mean")
def mean_of_sum(R):
    """Mean of each token's features."""
    return mean(R)


@equation("variance")
def variance_of_sum(R):
    """Variance of each token's features: the mean squared distance from their mean."""
    return variance(R)


@equation("mean")
def mean_of_sums(R, over):
    """Mean over the axes that are named."""
    return mean(R, over)


@equation("variance")
def variance_of_sums(R, over):
    """Variance over the axes that are named: the mean squared distance from their mean."""
    return variance(R, over)


@equation("square")
def square_of_sum(R):
    """Mean square of each token's features."""
    return mean(R * R)


@equation("X_hat")
def X_hat_of_sum(R, mean, variance, eps):
    """The sum with mean 0 and variance 1."""
    return (R - mean) / sqrt(variance + eps)


@equation("X_hat")
def X_hat_of_sum_rms(R, square, eps):
    """The sum with mean square 1."""
    return R / sqrt(square + eps)


STATISTICS: Final[Mapping[str, tuple[Equation, ...]]] = {
    "layer": tuple(NORMS["layer"].equations[name] for name in ("mean", "variance", "X_hat")),
    "batch": tuple(NORM_OVER.equations[name] for name in ("mean", "variance", "X_hat")),
    "rms": tuple(RMS_NORM.equations[name] for name in ("square", "X_hat")),
}
OF_SUM: Final[Mapping[str, tuple[Equation, ...]]] = {
    "layer": (mean_of_sum, variance_of_sum, X_hat_of_sum),
    "batch": (mean_of_sums, variance_of_sums, X_hat_of_sum),
    "rms": (square_of_sum, X_hat_of_sum_rms),
}


@cache
def layers_circuit(arrangement: str, norm: str, activation: str) -> Circuit:
    """The equations of one block. Raises ``ValueError`` for an arrangement that is not known."""
    if arrangement not in ARRANGEMENTS:
        raise ValueError(f"an arrangement is one of {', '.join(ARRANGEMENTS)}, not {arrangement!r}")
    plain, normed = ACTIVATIONS[activation]
    if arrangement == "plain":
        return Circuit(plain, Y_plain)
    if arrangement == "residual":
        return Circuit(plain, Y_residual)
    if arrangement == "post":
        return Circuit(plain, R, *OF_SUM[norm], NORMS["rms" if norm == "rms" else "layer"].equations["Y"])
    output = X_n_scaled if norm == "rms" else X_n_shifted
    return Circuit(*STATISTICS[norm], output, normed, Y_residual if arrangement == "pre" else Y_plain)


@cache
def layers_table(norm: str) -> Mapping[str, Symbol]:
    """The symbols of all blocks at once: T counts layers, S tokens."""
    of_norm = norm_table("S" if norm == "batch" else "D", "TSD")
    statistics = {name: replace(one, role="reset") if one.role == "statistic" else one for name, one in of_norm.items()}
    statistics["over"] = replace(of_norm["over"], axes="1", italic=True)
    roles = {"X": "input_value", "X_hat": "output", "X_n": "output", "F": "candidate", "R": "cell", "Y": "cell"}
    own = table(
        *(symbol(name, "TSD", role) for name, role in roles.items()),
        symbol("W", "TDD", "weight"),
        whole=True,
    )
    return statistics | dict(own)


@dataclass(frozen=True, kw_only=True)
class DepthRun:
    """What the learner looks at: a stack, and the tokens (T,) that go through it, as numbers.

    Each different token is a vector drawn from N(0, 1) with ``seed``; ``given`` "constant" has all features of a token equal,
    "far" adds 10,000 to every number. ``step`` is a layer, ``key`` a token.
    """

    ids: tuple[int, ...] = field(repr=False)
    arrangement: str = "pre"
    norm: str = "layer"
    depth: int = 24
    width: int = 16
    activation: str = "relu"
    init_scale: float = 1.0
    given: str = "normal"
    seed: int = 0
    step: int = 0
    key: int = 0
    unit: int = 0

    def same(self, other: DepthRun) -> bool:
        """Whether the other asks about the same."""
        return self == other

    @property
    def normed(self) -> bool:
        """Whether there is a norm in a block."""
        return "norm" not in ARRANGEMENTS[self.arrangement]

    def vectors(self) -> Tensor:
        """The input X (tokens, width) in float64; equal tokens have equal vectors."""
        known = {token: place for place, token in enumerate(dict.fromkeys(self.ids))}
        drawn = torch.randn(len(known), self.width, generator=torch.Generator().manual_seed(self.seed), dtype=torch.float64)
        if self.given == "constant":
            drawn = drawn[:, :1].expand(-1, self.width)
        X = drawn[[known[token] for token in self.ids]]
        return X + FAR if self.given == "far" else X

    def stack(self, arrangement: str | None = None) -> ResidualStack:
        """The blocks; all arrangements have the same matrices."""
        options = {"norm": self.norm, **ARRANGEMENTS[arrangement or self.arrangement]}
        generator = torch.Generator().manual_seed(self.seed + 1)
        made = ResidualStack(
            self.width,
            self.depth,
            activation=self.activation,
            init_scale=self.init_scale,
            generator=generator,
            **options,
        )
        return made.double()

    def flow(self, arrangement: str | None = None) -> StackFlow:
        """Sizes and gradients of every layer, for a target drawn from N(0, 1)."""
        return self.stack(arrangement).flow(self.vectors(), generator=torch.Generator().manual_seed(self.seed + 2))

    def trace(self, tokens: int | None = None) -> Trace:
        """Every equation of every block, for the first ``tokens`` tokens (None: all; a batch norm always averages over all)."""
        stack, X = self.stack(), self.vectors()
        with torch.no_grad():
            layers = torch.stack(stack.layers(X)[:-1])
        count = len(X) if tokens is None or self.norm == "batch" else tokens
        circuit = layers_circuit(self.arrangement, self.norm, self.activation)
        inputs: Values = {"X": layers[:, :count]}
        if self.normed:
            inputs["eps"] = torch.tensor(EPS, dtype=torch.float64)
        if self.normed and self.norm == "batch":
            inputs["over"] = axes_over("S", "TSD")
        weights: Values = {"W": torch.stack([block.get_parameter("W").detach() for block in stack.blocks])}
        ones = {"gamma": torch.ones(self.width).double(), "beta": torch.zeros(self.width).double()}
        weights |= {name: value for name, value in ones.items() if name in circuit.inputs}
        return circuit.trace(inputs, weights, {"": layers_table(self.norm)})


# -------------------------------------------------------------------------------------------- what a norm averages over


def averaged_with(over: str, shape: tuple[int, int, int], place: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Which cells of a block (B, T, D) share mean and variance with that at ``place``, for a norm over the axes ``over``."""
    found = np.ones(shape, dtype=bool)
    grid = np.indices(shape)
    for at, axis in enumerate("BTD"):
        if axis not in over:
            found &= grid[at] == place[at]
    return found


def leak(X: Tensor, over: str, size: float = 1.0) -> Array:
    """How far each token's output moves when another token's first feature grows by ``size``: (changed, moved), (T, T).

    ``over`` as in ``norm_over``: "D" each token alone; "TD" over positions too, and every token learns of every other.
    """
    given = X.double().unsqueeze(0)
    before = norm_over(given, over)[0]
    rows = []
    for token in range(len(X)):
        changed = given.clone()
        changed[0, token, 0] += size
        rows.append((norm_over(changed, over)[0] - before).abs().amax(-1))
    return torch.stack(rows).numpy()
