r"""LayerNorm, RMSNorm and BatchNorm, and what each of them averages over.

X^ = (X - mu) / sqrt(sigma^2 + epsilon),  Y = gamma * X^ + beta

LayerNorm (Ba et al. 2016) takes mean and variance over the features of each token; BatchNorm (Ioffe and Szegedy 2015) takes
them for each feature over all tokens of all sequences, and keeps running ones for later; RMSNorm (Zhang and Sennrich 2019)
divides by the root of the mean square and leaves the mean alone. Features are the last axis.

The variance is the biased one (divided by n), and epsilon stands inside the root; both differ in widely copied code. Only the
running variance of BatchNorm is unbiased, as in torch. torch's ``BatchNorm1d`` wants features second, here they are last. Equal
values give exactly 0, however large they are: mean and variance are measured from one of the values, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.equation import Circuit, Interventions, Values, equation
from engine.operations import mean, sqrt, variance
from engine.symbols import Symbol, symbol, table
from engine.trace import Trace

EPS = 1e-5


@equation("mean")
def mean_of_features(X):
    """Mean of each token's features."""
    return mean(X)


@equation("variance")
def variance_of_features(X):
    """Variance of each token's features: the mean squared distance from their mean."""
    return variance(X)


@equation("mean")
def mean_over(X, over):
    """Mean over the axes that are named."""
    return mean(X, over)


@equation("variance")
def variance_over(X, over):
    """Variance over the axes that are named: the mean squared distance from their mean."""
    return variance(X, over)


@equation("square")
def mean_square(X):
    """Mean square of each token's features."""
    return mean(X * X)


@equation
def X_hat(X, mean, variance, eps):
    """The input with mean 0 and variance 1."""
    return (X - mean) / sqrt(variance + eps)


@equation("X_hat")
def X_hat_rms(X, square, eps):
    """The input with mean square 1."""
    return X / sqrt(square + eps)


@equation
def Y(X_hat, gamma, beta):
    """Output: each feature with a scale and a shift of its own, which are learned."""
    return gamma * X_hat + beta


@equation("Y")
def Y_rms(X_hat, gamma):
    """Output: each feature with a scale of its own, which is learned."""
    return gamma * X_hat


LAYER_NORM = Circuit(mean_of_features, variance_of_features, X_hat, Y)
NORM_OVER = Circuit(mean_over, variance_over, X_hat, Y)
RMS_NORM = Circuit(mean_square, X_hat_rms, Y_rms)
RUNNING_NORM = Circuit(X_hat, Y)  # mean and variance come from earlier batches
NORMS: Mapping[str, Circuit] = {"layer": LAYER_NORM, "rms": RMS_NORM, "batch": NORM_OVER}


def norm_table(over: str = "D", axes: str = "BTD") -> Mapping[str, Symbol]:
    """The symbols of a norm over some of the axes of X; what is averaged over keeps the size 1."""
    left = "".join("1" if axis in over else axis for axis in axes)

    def single(name: str, letter: str, superscript: str = "") -> Symbol:
        return Symbol(name=name, letter=letter, superscript=superscript, axes=left, role="statistic", italic=True)

    return table(
        symbol("X", axes, "input_value"),
        single("mean", "μ"),
        single("variance", "σ", "2"),
        single("square", "q"),
        symbol("X_hat", axes, "state"),
        symbol("Y", axes, "state"),
        Symbol(name="gamma", letter="γ", axes="D", role="weight"),
        Symbol(name="beta", letter="β", axes="D", role="weight"),
        Symbol(name="eps", letter="ε", axes="", role="size"),
        Symbol(name="over", letter=over, axes="", role="size"),
        whole=True,
    )


# ---------------------------------------------------------------------------------------------------------- functions


def checked_eps(eps: float) -> float:
    """Epsilon, above 0: with 0 a row of equal values would be 0/0. Raises ``ValueError``."""
    if not 0 < eps < math.inf:
        raise ValueError(f"epsilon is above 0, not {eps}: equal values have the variance 0")
    return eps


def _inputs(X: Any, gamma: Any, beta: Any, eps: float) -> tuple[Values, torch.dtype]:
    """What every norm reads, in float64, and the dtype to give back. Raises ``ValueError`` for what does not fit."""
    given = torch.as_tensor(X)
    dtype = given.dtype if given.is_floating_point() else torch.get_default_dtype()
    if not given.ndim or not given.numel():
        raise ValueError(f"X is (..., features) with at least one number, not {tuple(given.shape)}")
    width = given.shape[-1]
    inputs = {"X": given.double(), "eps": torch.tensor(checked_eps(eps), dtype=torch.float64)}
    for name, value, neutral in (("gamma", gamma, 1.0), ("beta", beta, 0.0)):
        weight = torch.full((width,), neutral) if value is None else torch.as_tensor(value)
        if weight.shape not in ((width,), ()):
            raise ValueError(f"{name} has one number for each of {width} features, not {tuple(weight.shape)}")
        inputs[name] = weight.double()
    return inputs, dtype


def _output(circuit: Circuit, inputs: Values, dtype: torch.dtype) -> Tensor:
    """Y. Raises ``FloatingPointError`` where numbers are too large to be squared: their norm would be 0, or none."""
    results, _ = circuit.run(inputs)
    for name in ("variance", "square"):
        if name in results and not bool(results[name].isfinite().all()) and bool(inputs["X"].isfinite().all()):
            raise FloatingPointError("the numbers are too large for a norm: their squares leave what float64 holds")
    return results["Y"].to(dtype)


def layer_norm(X: Any, gamma: Any = None, beta: Any = None, eps: float = EPS) -> Tensor:
    """LayerNorm over the last axis of X (..., D), with gamma and beta (D,), 1 and 0 where not given."""
    inputs, dtype = _inputs(X, gamma, beta, eps)
    return _output(LAYER_NORM, inputs, dtype)


def rms_norm(X: Any, gamma: Any = None, eps: float = EPS) -> Tensor:
    """RMSNorm over the last axis of X (..., D), with gamma (D,), 1 where not given."""
    inputs, dtype = _inputs(X, gamma, None, eps)
    return _output(RMS_NORM, inputs, dtype)


@dataclass(frozen=True, kw_only=True)
class RunningStatistics:
    """Mean and unbiased variance (D,) of earlier batches, as BatchNorm uses them when it no longer learns."""

    mean: Tensor
    variance: Tensor
    batches: int = 0

    @classmethod
    def start(cls, width: int) -> RunningStatistics:
        """Before the first batch: mean 0 and variance 1."""
        return cls(mean=torch.zeros(width, dtype=torch.float64), variance=torch.ones(width, dtype=torch.float64))

    def after(self, X: Any, momentum: float = 0.1) -> RunningStatistics:
        """The statistics after one more batch X (..., D), which counts with the weight ``momentum``.

        The variance of one single value cannot be estimated: such a batch leaves the variance as it is.
        """
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum is a weight between 0 and 1, not {momentum}")
        given = torch.as_tensor(X).detach().double()
        over = _all_but_features(given)
        count = given[..., 0].numel()
        new_mean = mean(given, over).reshape(-1)
        unbiased = variance(given, over).reshape(-1) * count / (count - 1) if count > 1 else self.variance
        return RunningStatistics(
            mean=(1 - momentum) * self.mean + momentum * new_mean,
            variance=(1 - momentum) * self.variance + momentum * unbiased,
            batches=self.batches + 1,
        )


def batch_norm(
    X: Any, gamma: Any = None, beta: Any = None, eps: float = EPS, *, running: RunningStatistics | None = None
) -> Tensor:
    """BatchNorm of X (..., D), each feature over all other axes, or with the ``running`` statistics of earlier batches.

    A single token has itself as its mean: its output is beta. Raises ``ValueError`` for X without an axis of tokens.
    """
    inputs, dtype = _inputs(X, gamma, beta, eps)
    if running is not None:
        inputs |= {"mean": running.mean.double(), "variance": running.variance.double()}
        return _output(RUNNING_NORM, inputs, dtype)
    return _output(NORM_OVER, {**inputs, "over": _all_but_features(inputs["X"])}, dtype)


def _all_but_features(X: Tensor) -> Tensor:
    """The places of all axes but the last one."""
    if X.ndim < 2:
        raise ValueError(f"a batch norm takes X (..., tokens, features), not {tuple(X.shape)}")
    return torch.arange(-X.ndim, -1)


def axes_over(over: str, axes: str) -> Tensor:
    """The places (from the end) of the named axes. Raises ``ValueError`` for none or for one that is not there."""
    places = [axes.index(axis) - len(axes) for axis in axes if axis in over]
    if not places or not set(over) <= set(axes):
        raise ValueError(f"a norm averages over some of the axes {', '.join(axes)}, not over {over!r}")
    return torch.tensor(places)


def norm_over(X: Any, over: str, gamma: Any = None, beta: Any = None, eps: float = EPS, *, axes: str = "BTD") -> Tensor:
    """X with mean 0 and variance 1 over the axes ``over``: "D" is LayerNorm, "BT" BatchNorm, "T" InstanceNorm.

    "TD" is the textbook's slip: averaged over positions too, every token learns something of every other, later ones included.
    """
    inputs, dtype = _inputs(X, gamma, beta, eps)
    return _output(NORM_OVER, {**inputs, "over": axes_over(over, axes)}, dtype)


def norm_trace(
    X: Any,
    norm: str = "layer",
    gamma: Any = None,
    beta: Any = None,
    eps: float = EPS,
    *,
    over: str | None = None,
    do: Interventions | None = None,
) -> Trace:
    """A norm step by step: mean, variance, X_hat and Y of X (B, T, D), (T, D) or (D,), in float64.

    ``over`` names the axes to average over, for the layer norm only. Raises ``ValueError`` for a norm that is not known.
    """
    if norm not in NORMS:
        raise ValueError(f"norm is one of {', '.join(NORMS)}, not {norm!r}")
    inputs, _ = _inputs(X, gamma, beta, eps)
    if not 1 <= inputs["X"].ndim <= 3 or not bool(inputs["X"].isfinite().all()):
        raise ValueError(f"X is (batch, positions, features) at most, of finite numbers, not {tuple(inputs['X'].shape)}")
    axes = "BTD"[-inputs["X"].ndim :]
    if norm == "batch":
        over = axes[:-1]
    circuit = NORMS[norm] if over is None else NORM_OVER
    if circuit is NORM_OVER:
        inputs["over"] = axes_over(over or "", axes)
    if norm == "rms":
        del inputs["beta"]
    weights: Values = {name: inputs.pop(name) for name in ("gamma", "beta") if name in inputs}
    _output(circuit, {**inputs, **weights}, torch.float64)
    return circuit.trace(inputs, weights, {"": norm_table(over or "D", axes)}, do=do)
