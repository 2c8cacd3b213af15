r"""Residual connections and norms: what keeps a deep stack in a size that can be learned.

Each block computes F = phi(X W) and hands on
    F (plain),  X + F (residual),  X + phi(norm(X) W) (pre-norm),  norm(X + phi(X W)) (post-norm, as in the paper of 2017)

The residual adds the input as it came in, never its norm. A residual keeps gradients from vanishing; without a norm activations
and gradients grow with depth instead. All of it is measured: ``ResidualStack.flow`` gives the sizes layer by layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.equation import Circuit, Equation, Interventions, Nested, Values, equation
from engine.operations import gelu, relu, sigmoid, tanh
from engine.symbols import Symbol, symbol, table
from engine.trace import Trace
from engine.transformer.norms import (
    EPS,
    NORMS,
    RunningStatistics,
    batch_norm,
    checked_eps,
    layer_norm,
    norm_over,
    norm_table,
    norm_trace,
    rms_norm,
)

__all__ = [
    "ResidualStack",
    "RunningStatistics",
    "StackFlow",
    "add_norm",
    "batch_norm",
    "layer_norm",
    "norm_over",
    "norm_trace",
    "rms_norm",
]

MAX_DEPTH = 64


@equation("F")
def F_relu(X, W):
    """What the block computes."""
    return relu(X @ W)


@equation("F")
def F_gelu(X, W):
    """What the block computes."""
    return gelu(X @ W)


@equation("F")
def F_tanh(X, W):
    """What the block computes."""
    return tanh(X @ W)


@equation("F")
def F_sigmoid(X, W):
    """What the block computes."""
    return sigmoid(X @ W)


@equation("F")
def F_linear(X, W):
    """What the block computes."""
    return X @ W


@equation("F")
def F_relu_normed(X_n, W):
    """What the block computes, of the norm of its input."""
    return relu(X_n @ W)


@equation("F")
def F_gelu_normed(X_n, W):
    """What the block computes, of the norm of its input."""
    return gelu(X_n @ W)


@equation("F")
def F_tanh_normed(X_n, W):
    """What the block computes, of the norm of its input."""
    return tanh(X_n @ W)


@equation("F")
def F_sigmoid_normed(X_n, W):
    """What the block computes, of the norm of its input."""
    return sigmoid(X_n @ W)


@equation("F")
def F_linear_normed(X_n, W):
    """What the block computes, of the norm of its input."""
    return X_n @ W


@equation("Y")
def Y_plain(F):
    """Output of the block: what it computed."""
    return F


@equation("Y")
def Y_residual(X, F):
    """Output of the block: its input as it came in, and what the block adds to it."""
    return X + F


@equation
def R(X, F):
    """The block's input as it came in, and what the block adds to it."""
    return X + F


ACTIVATIONS: Mapping[str, tuple[Equation, Equation]] = {
    "relu": (F_relu, F_relu_normed),
    "gelu": (F_gelu, F_gelu_normed),
    "tanh": (F_tanh, F_tanh_normed),
    "sigmoid": (F_sigmoid, F_sigmoid_normed),
    "linear": (F_linear, F_linear_normed),
}
PLACES = ("pre", "post")


@cache
def block_circuit(activation: str, residual: bool, norm: str | None, place: str) -> Circuit:
    """The equations of one block."""
    plain, normed = ACTIVATIONS[activation]
    if norm is None:
        return Circuit(plain, Y_residual if residual else Y_plain)
    if place == "pre":
        before = NORMS[norm].inside("norm", reads={"X": "X"}, gives={"X_n": "Y"})
        return Circuit(before, normed, Y_residual if residual else Y_plain)
    after = NORMS[norm].inside("norm", reads={"X": "R" if residual else "F"}, gives={"Y": "Y"})
    return Circuit(plain, R, after) if residual else Circuit(plain, after)


@cache
def stack_circuit(depth: int, activation: str, residual: bool, norm: str | None, place: str) -> Circuit:
    """``depth`` equal blocks, ``blocks.0`` reading X and each next one the output of the one before: X_1, X_2, ..."""
    block = block_circuit(activation, residual, norm, place)
    members: list[Nested] = []
    for layer in range(depth):
        reads = {"X": f"X_{layer}" if layer else "X"}
        members.append(block.inside(f"blocks.{layer}", reads=reads, gives={f"X_{layer + 1}": "Y"}))
    return Circuit(*members)


@cache
def stack_tables(depth: int, norm: str | None, axes: str) -> Mapping[str, Mapping[str, Symbol]]:
    """The symbols of a stack, by scope."""
    block = table(
        *(symbol(name, axes, "state") for name in ("X", "X_n", "F", "R", "Y")), symbol("W", "DD", "weight"), whole=True
    )
    inner = norm_table(axes[:-1] if norm == "batch" else "D", axes)
    scopes = {"": table(symbol("X", axes, "state"), *(symbol(f"X_{n + 1}", axes, "state") for n in range(depth)), whole=True)}
    for layer in range(depth):
        scopes |= {f"blocks.{layer}.": block, f"blocks.{layer}.norm.": inner}
    return scopes


def add_norm(
    X: Tensor, f: Callable[[Tensor], Tensor], place: str = "post", norm: Callable[[Tensor], Tensor] | None = layer_norm
) -> Tensor:
    """A sublayer f with its residual: "post" is norm(X + f(X)), "pre" is X + f(norm(X)); without a norm X + f(X).

    Raises ``ValueError`` where f changes the shape: it could then only be added to something else than its input.
    """
    if place not in PLACES:
        raise ValueError(f"place is one of {', '.join(PLACES)}, not {place!r}")
    added = f(norm(X) if norm is not None and place == "pre" else X)
    if added.shape != X.shape:
        raise ValueError(f"a residual adds what has the input's shape: {tuple(X.shape)} and {tuple(added.shape)}")
    return norm(X + added) if norm is not None and place == "post" else X + added


@dataclass(frozen=True, kw_only=True)
class StackFlow:
    """Sizes layer by layer: index 0 is the input, index l the output of block l - 1.

    ``forward`` and ``backward`` (L + 1) are root mean squares of the activations and of the loss's gradient there, ``spread``
    the activations' standard deviation, ``gradients`` (L + 1) the length of the gradient, ``weights`` (L) that of each block's
    W. They are taken in float64: over many layers they leave what float32 can hold. ``overflow`` is the first layer whose
    activations left even that, None where none did; its gradients are then no numbers either.
    """

    forward: list[float]
    spread: list[float]
    backward: list[float]
    gradients: list[float]
    weights: list[float]
    loss: float
    overflow: int | None = None


class _Norm(nn.Module):
    def __init__(self, width: int, shift: bool) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        if shift:
            self.beta = nn.Parameter(torch.zeros(width))


class _Block(nn.Module):
    def __init__(self, W: Tensor, norm: str | None) -> None:
        super().__init__()
        self.W = nn.Parameter(W)
        if norm is not None:
            self.norm = _Norm(len(W), norm != "rms")


class ResidualStack(nn.Module):
    """1 to 64 equal blocks, each with one matrix W (width, width) drawn from N(0, ``init_scale``^2 / width).

    ``norm`` is "layer", "rms", "batch" or None, ``place`` "pre" or "post", ``activation`` "relu", "gelu", "tanh", "sigmoid" or
    "linear". Raises ``ValueError`` for other choices.

    Shape:
        X (B, T, width) or (T, width) -> the same. In the trace: ``blocks.3.F``, ``blocks.3.norm.mean``, X_1, X_2, ...
    """

    def __init__(
        self,
        width: int,
        depth: int,
        *,
        residual: bool = True,
        norm: str | None = "layer",
        place: str = "pre",
        activation: str = "relu",
        init_scale: float = 1.0,
        eps: float = EPS,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if width < 1 or not 1 <= depth <= MAX_DEPTH:
            raise ValueError(f"a stack has 1 to {MAX_DEPTH} blocks of at least one feature, not {depth} of {width}")
        for name, value, known in (
            ("norm", norm, (None, *NORMS)),
            ("place", place, PLACES),
            ("activation", activation, tuple(ACTIVATIONS)),
        ):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(map(str, known))}, not {value!r}")
        if not 0 <= init_scale < math.inf:
            raise ValueError(f"the scale of the first weights is a finite number from 0, not {init_scale}")
        self.width, self.depth, self.norm, self.eps = width, depth, norm, checked_eps(eps)
        generator = generator or torch.Generator().manual_seed(0)
        deviation = init_scale / math.sqrt(width)
        self.blocks = nn.ModuleList(
            _Block(torch.randn(width, width, generator=generator) * deviation, norm) for _ in range(depth)
        )
        self.circuit = stack_circuit(depth, activation, residual, norm, place)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return next(self.parameters()).dtype

    def weights(self) -> Values:
        """The parameters by their dotted names, as the equations read them."""
        return dict(self.named_parameters())

    def given(self, X: Tensor) -> Values:
        """X and the sizes that the norms read. Raises ``ValueError`` unless X fits."""
        if X.ndim not in (2, 3) or X.shape[-1] != self.width or not X.numel():
            raise ValueError(f"X must be (batch, positions, {self.width}) or (positions, {self.width}), not {tuple(X.shape)}")
        inputs = {"X": X}
        for layer in range(self.depth if self.norm else 0):
            inputs[f"blocks.{layer}.norm.eps"] = torch.tensor(self.eps, dtype=X.dtype)
            if self.norm == "batch":
                inputs[f"blocks.{layer}.norm.over"] = torch.arange(-X.ndim, -1)
        return inputs

    def layers(self, X: Tensor, weights: Values | None = None) -> list[Tensor]:
        """X and the output of every block, as live tensors on which gradients can be taken."""
        results, _ = self.circuit.run({**self.given(X), **(self.weights() if weights is None else weights)})
        return [X, *(results[self.circuit.canonical(f"X_{layer + 1}")] for layer in range(self.depth))]

    def forward(self, X: Tensor) -> Tensor:
        """The output of the last block."""
        return self.layers(X.to(self.dtype))[-1]

    def trace(self, X: Tensor, do: Interventions | None = None) -> Trace:
        """Run every block and keep every result and part."""
        tables = stack_tables(self.depth, self.norm, "BTD"[-X.ndim :])
        return self.circuit.trace(self.given(X.to(self.dtype)), self.weights(), tables, do=do)

    def flow(self, X: Tensor, target: Tensor | None = None, *, generator: torch.Generator | None = None) -> StackFlow:
        """How large activations and gradients are in every layer, for the mean squared error against a target.

        Without one the target is drawn from N(0, 1): what a stack must learn at the beginning.
        """
        if target is None:
            generator = generator or torch.Generator().manual_seed(0)
            target = torch.randn(X.shape, generator=generator)
        live = X.detach().double().requires_grad_()
        weights = {name: weight.detach().double().requires_grad_() for name, weight in self.named_parameters()}
        layers = self.layers(live, weights)
        loss = functional.mse_loss(layers[-1], target.double())
        gradients = torch.autograd.grad(loss, [*layers, *(weights[f"blocks.{n}.W"] for n in range(self.depth))])
        to_layers, to_weights = gradients[: len(layers)], gradients[len(layers) :]
        sizes = [root_mean_square(layer) for layer in layers]
        return StackFlow(
            forward=sizes,
            spread=[root_mean_square(layer - layer.mean()) for layer in layers],
            backward=[root_mean_square(gradient) for gradient in to_layers],
            gradients=[length(gradient) for gradient in to_layers],
            weights=[length(gradient) for gradient in to_weights],
            loss=float(loss.detach()),
            overflow=next((n for n, size in enumerate(sizes) if not math.isfinite(size)), None),
        )


def length(tensor: Tensor) -> float:
    """The Euclidean length of all numbers together, also where their squares would be too large for any float."""
    top = float(tensor.detach().abs().max())
    return top * float((tensor.detach() / top).norm()) if 0 < top < math.inf else top


def root_mean_square(tensor: Tensor) -> float:
    """The root of the mean square of all numbers."""
    return length(tensor) / math.sqrt(tensor.numel())
