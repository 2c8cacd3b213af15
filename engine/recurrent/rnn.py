r"""The plain recurrent network, Elman 1990.

H_t = phi(X_t W_xh + H_{t-1} W_hh + b_h)

with phi tanh, ReLU or the sigmoid. One bias, as in most texts; torch has two, which add up to this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from engine.equation import Circuit, equation
from engine.operations import relu, sigmoid, tanh
from engine.recurrent.stack import RecurrentModel
from engine.symbols import GATE, INFINITY, SIGNED, Symbol, symbol, table


@equation("H")
def H_tanh(X, H_prev, W_xh, W_hh, b_h):
    """Hidden state: what the network remembers."""
    return tanh(X @ W_xh + H_prev @ W_hh + b_h)


@equation("H")
def H_relu(X, H_prev, W_xh, W_hh, b_h):
    """Hidden state: what the network remembers."""
    return relu(X @ W_xh + H_prev @ W_hh + b_h)


@equation("H")
def H_sigmoid(X, H_prev, W_xh, W_hh, b_h):
    """Hidden state: what the network remembers."""
    return sigmoid(X @ W_xh + H_prev @ W_hh + b_h)


STEPS = {name: Circuit(H, carry=("H",)) for name, H in (("tanh", H_tanh), ("relu", H_relu), ("sigmoid", H_sigmoid))}
INTERVALS = {"tanh": SIGNED, "relu": (0.0, INFINITY), "sigmoid": GATE}
TABLES = {
    activation: table(
        symbol("X", "TBD", "input_value"),
        symbol("H", "TBH", "state", interval),
        symbol("W_xh", "DH", "weight"),
        symbol("W_hh", "HH", "weight"),
        symbol("b_h", "H", "weight"),
        carry=("H",),
    )
    for activation, interval in INTERVALS.items()
}


class RNN(RecurrentModel):
    """Plain recurrent network; ``activation`` is tanh, relu or sigmoid. Shapes: see ``RecurrentModel``."""

    kind = "rnn"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
        *,
        activation: str = "tanh",
    ) -> None:
        if activation not in STEPS:
            raise ValueError(f"activation is one of {', '.join(STEPS)}, not {activation!r}")
        self.activation = activation
        super().__init__(input_size, hidden_size, num_layers, bidirectional, generator)

    @property
    def circuit(self) -> Circuit:
        return STEPS[self.activation]

    @property
    def table(self) -> Mapping[str, Symbol]:
        return TABLES[self.activation]

    @property
    def switches(self) -> dict[str, Any]:
        return {"activation": self.activation}

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        hidden = self.hidden_size
        return {"W_xh": (width, hidden), "W_hh": (hidden, hidden), "b_h": (hidden,)}
