r"""One block of a Transformer: attention between the positions, then a small network at each position by itself.

R = X + Attention(norm(X)),  Y = R + phi(norm(R) W_1 + b_1) W_2 + b_2

The norms stand before what they serve (pre-norm); the paper of 2017 has them after the sum, where deep stacks are harder to
train. Attention has no biases (torch's has, unless asked not to), there is no dropout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.attention.heads import multihead_circuit, multihead_table
from engine.attention.multihead import MultiHeadAttention
from engine.equation import Circuit, Equation, equation
from engine.operations import gelu, relu
from engine.symbols import Symbol, symbol, table
from engine.transformer.norms import LAYER_NORM, norm_table


@equation("U")
def U_relu(X, W_1, b_1):
    """What each position makes of its own vector: wider, and nothing below 0."""
    return relu(X @ W_1 + b_1)


@equation("U")
def U_gelu(X, W_1, b_1):
    """What each position makes of its own vector: wider, and next to nothing below 0."""
    return gelu(X @ W_1 + b_1)


@equation
def F(U, W_2, b_2):
    """Output of the feed-forward network: back to the width of the model."""
    return U @ W_2 + b_2


@equation
def R(X, O):
    """The block's input as it came in, and what attention adds to it."""
    return X + O


@equation
def Y(R, F):
    """Output of the block: the sum so far, and what the feed-forward network adds to it."""
    return R + F


ACTIVATIONS: Mapping[str, Equation] = {"relu": U_relu, "gelu": U_gelu}
FEED_FORWARD: Mapping[str, Circuit] = {name: Circuit(hidden, F) for name, hidden in ACTIVATIONS.items()}


@cache
def block_circuit(activation: str) -> Circuit:
    """The equations of one block: ``norm_1.Y``, ``attention.A``, ``norm_2.Y``, ``feed_forward.U`` inside."""
    return Circuit(
        LAYER_NORM.inside("norm_1", reads={"X": "X", "eps": "eps"}, gives={"X_n": "Y"}),
        multihead_circuit(masked=True).inside(
            "attention", reads={"X": "X_n", "M": "M", "N": "N", "d_k": "d_k"}, gives={"O": "O"}
        ),
        R,
        LAYER_NORM.inside("norm_2", reads={"X": "R", "eps": "eps"}, gives={"R_n": "Y"}),
        FEED_FORWARD[activation].inside("feed_forward", reads={"X": "R_n"}, gives={"F": "F"}),
        Y,
    )


FEED_FORWARD_TABLE = table(
    symbol("X", "BTD", "input_value"),
    symbol("U", "BTH", "state"),
    symbol("F", "BTD", "state"),
    *(symbol("W_1", "DH", "weight"), symbol("b_1", "H", "weight")),
    *(symbol("W_2", "HD", "weight"), symbol("b_2", "D", "weight")),
    whole=True,
)
BLOCK_TABLE = table(
    *(symbol(name, "BTD", "state") for name in ("X", "X_n", "O", "R", "R_n", "F", "Y")),
    symbol("M", "BNTS", "mask", (0.0, 1.0)),
    *(symbol("N", "", "size"), symbol("d_k", "", "size")),
    Symbol(name="eps", letter="ε", axes="", role="size"),
    whole=True,
)


def block_tables(scope: str) -> Mapping[str, Mapping[str, Symbol]]:
    """The symbols of a block and of what it holds, by scope; ``scope`` ends with a dot."""
    return {
        scope: BLOCK_TABLE,
        f"{scope}norm_1.": norm_table(),
        f"{scope}attention.": multihead_table(),
        f"{scope}norm_2.": norm_table(),
        f"{scope}feed_forward.": FEED_FORWARD_TABLE,
    }


class Norm(nn.Module):
    """The learned scale gamma and shift beta (D,) of a LayerNorm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))
        self.beta = nn.Parameter(torch.zeros(width))

    def forward(self, X: Tensor, eps: float) -> Tensor:
        return functional.layer_norm(X, self.gamma.shape, self.gamma, self.beta, eps)


class FeedForward(nn.Module):
    """Two layers at each position: W_1 (width, hidden), b_1, W_2 (hidden, width), b_2. Weights as Glorot and Bengio 2010."""

    def __init__(self, width: int, hidden: int, activation: str, generator: torch.Generator) -> None:
        super().__init__()
        bound = math.sqrt(6 / (width + hidden))
        self.W_1 = nn.Parameter(torch.empty(width, hidden).uniform_(-bound, bound, generator=generator))
        self.b_1 = nn.Parameter(torch.zeros(hidden))
        self.W_2 = nn.Parameter(torch.empty(hidden, width).uniform_(-bound, bound, generator=generator))
        self.b_2 = nn.Parameter(torch.zeros(width))
        self.activation = functional.relu if activation == "relu" else functional.gelu

    def forward(self, X: Tensor) -> Tensor:
        """X (rows, width) -> the same shape."""
        return torch.addmm(self.b_2, self.activation(torch.addmm(self.b_1, X, self.W_1)), self.W_2)


class Block(nn.Module):
    """The fast path of a block in which every position sees itself and what came before."""

    def __init__(self, width: int, heads: int, hidden: int, activation: str, generator: torch.Generator) -> None:
        super().__init__()
        self.norm_1 = Norm(width)
        self.attention = MultiHeadAttention(width, heads, generator=generator)
        self.norm_2 = Norm(width)
        self.feed_forward = FeedForward(width, hidden, activation, generator)

    def forward(self, X: Tensor, shape: tuple[int, int], eps: float) -> Tensor:
        """X (B * T, width), the positions of a sequence one after the other; ``shape`` is (B, T)."""
        R = X + self.attend(self.norm_1(X, eps), shape)
        Y: Tensor = R + self.feed_forward(self.norm_2(R, eps))
        return Y

    def attend(self, X: Tensor, shape: tuple[int, int]) -> Tensor:
        """What attention adds. One product for queries, keys and values, and torch's fused attention."""
        own = self.attention
        QKV = (X @ torch.cat((own.W_q, own.W_k, own.W_v), dim=1)).view(*shape, 3, own.heads, own.head_width)
        Q, K, V = QKV.permute(2, 0, 3, 1, 4)
        Z = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return Z.transpose(1, 2).reshape(X.shape) @ own.W_o
