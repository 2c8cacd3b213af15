r"""Long short-term memory, Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000.

F_t = sigma(X_t W_xf + H_{t-1} W_hf + b_f),  I_t and O_t likewise,
C~_t = tanh(X_t W_xc + H_{t-1} W_hc + b_c),  C_t = F_t * C_{t-1} + I_t * C~_t,  H_t = O_t * tanh(C_t)

Departures from other texts: one bias for each gate (torch has two, which add up to this one), no peepholes. torch keeps the
four blocks in the order i, f, g, o in one matrix, where g is the candidate. H lies in (-1, 1); C has no bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import torch
from torch import nn

from engine.equation import Circuit, equation
from engine.operations import sigmoid, tanh
from engine.recurrent.stack import RecurrentModel
from engine.symbols import GATE, SIGNED, Symbol, symbol, table


@equation
def F(X, H_prev, W_xf, W_hf, b_f):
    """Forget gate: how much of each memory cell is kept."""
    return sigmoid(X @ W_xf + H_prev @ W_hf + b_f)


@equation
def I(X, H_prev, W_xi, W_hi, b_i):
    """Input gate: how much of the candidate is written."""
    return sigmoid(X @ W_xi + H_prev @ W_hi + b_i)


@equation
def O(X, H_prev, W_xo, W_ho, b_o):
    """Output gate: how much of the memory is shown."""
    return sigmoid(X @ W_xo + H_prev @ W_ho + b_o)


@equation
def C_tilde(X, H_prev, W_xc, W_hc, b_c):
    """Candidate memory: what could be written."""
    return tanh(X @ W_xc + H_prev @ W_hc + b_c)


@equation
def C(F, C_prev, I, C_tilde):
    """Memory cell: what is kept of the old, and what is written of the new."""
    return F * C_prev + I * C_tilde


@equation
def H(O, C):
    """Hidden state: what the memory shows to the outside."""
    return O * tanh(C)


LSTM_STEP = Circuit(F, I, O, C_tilde, C, H, carry=("H", "C"))

# (letter of the weights, symbol) in the order of the state_dict: input, forget, output gate, candidate.
BLOCKS = ("i", "f", "o", "c")

LSTM_TABLE = table(
    symbol("X", "TBD", "input_value"),
    symbol("F", "TBH", "forget", GATE),
    symbol("I", "TBH", "input", GATE),
    symbol("O", "TBH", "output", GATE),
    symbol("C_tilde", "TBH", "candidate", SIGNED),
    symbol("C", "TBH", "cell"),
    symbol("H", "TBH", "state", SIGNED),
    *(symbol(f"W_{side}{block}", f"{'D' if side == 'x' else 'H'}H", "weight") for block, side in product(BLOCKS, "xh")),
    *(symbol(f"b_{block}", "H", "weight") for block in BLOCKS),
    carry=("H", "C"),
)


class LSTM(RecurrentModel):
    """Long short-term memory. ``forget_bias`` is the start value of b_f (Jozefowicz et al. 2015 advise 1 or more).

    Shapes: see ``RecurrentModel``; the state is the pair (H, C).
    """

    kind = "lstm"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
        *,
        forget_bias: float = 0.0,
    ) -> None:
        self.forget_bias = forget_bias
        super().__init__(input_size, hidden_size, num_layers, bidirectional, generator)

    @property
    def circuit(self) -> Circuit:
        return LSTM_STEP

    @property
    def table(self) -> Mapping[str, Symbol]:
        return LSTM_TABLE

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        hidden = self.hidden_size
        return {
            name: shape
            for block in BLOCKS
            for name, shape in (
                (f"W_x{block}", (width, hidden)),
                (f"W_h{block}", (hidden, hidden)),
                (f"b_{block}", (hidden,)),
            )
        }

    def initial(self, width: int, generator: torch.Generator) -> dict[str, nn.Parameter]:
        parameters = super().initial(width, generator)
        parameters["b_f"].data.fill_(self.forget_bias)
        return parameters
