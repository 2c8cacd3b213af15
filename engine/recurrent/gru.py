r"""Gated recurrent unit, Cho et al. 2014, eq. 5-8.

R_t = sigma(X_t W_xr + H_{t-1} W_hr + b_r),  Z_t likewise,
H~_t = tanh(X_t W_xh + (R_t * H_{t-1}) W_hh + b_h),  H_t = Z_t * H_{t-1} + (1 - Z_t) * H~_t

Departures of other texts, both switchable:
* ``reset="before"`` (here and in the paper) resets the state before the product with ``W_hh``; ``reset="after"`` (the first
  version of the paper, torch and cuDNN) resets the product, with a bias ``b_hh`` of its own inside the reset.
* ``update="keeps"``: Z near 1 keeps the old state (here, in the paper and in torch); ``update="replaces"``: Z near 1 puts the
  candidate in its place (Chung et al. 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import torch

from engine.equation import Circuit, equation
from engine.operations import sigmoid, tanh
from engine.recurrent.stack import RecurrentModel
from engine.symbols import GATE, SIGNED, Symbol, symbol, table


@equation
def R(X, H_prev, W_xr, W_hr, b_r):
    """Reset gate: how much of the old state the candidate may read."""
    return sigmoid(X @ W_xr + H_prev @ W_hr + b_r)


@equation
def Z(X, H_prev, W_xz, W_hz, b_z):
    """Update gate: the balance of old state and candidate."""
    return sigmoid(X @ W_xz + H_prev @ W_hz + b_z)


@equation("H_tilde")
def H_tilde_reset_before(X, R, H_prev, W_xh, W_hh, b_h):
    """Candidate state: what could take the old state's place."""
    return tanh(X @ W_xh + (R * H_prev) @ W_hh + b_h)


@equation("H_tilde")
def H_tilde_reset_after(X, R, H_prev, W_xh, W_hh, b_h, b_hh):
    """Candidate state: what could take the old state's place."""
    return tanh(X @ W_xh + b_h + R * (H_prev @ W_hh + b_hh))


@equation("H")
def H_update_keeps(Z, H_prev, H_tilde):
    """Hidden state: a balance of the old state and the candidate."""
    return Z * H_prev + (1 - Z) * H_tilde


@equation("H")
def H_update_replaces(Z, H_prev, H_tilde):
    """Hidden state: a balance of the old state and the candidate."""
    return (1 - Z) * H_prev + Z * H_tilde


RESETS = {"before": H_tilde_reset_before, "after": H_tilde_reset_after}
UPDATES = {"keeps": H_update_keeps, "replaces": H_update_replaces}
GRU_STEPS = {
    (reset, update): Circuit(R, Z, candidate, state, carry=("H",))
    for (reset, candidate), (update, state) in product(RESETS.items(), UPDATES.items())
}
BLOCKS = ("r", "z", "h")

GRU_TABLE = table(
    symbol("X", "TBD", "input_value"),
    symbol("R", "TBH", "reset", GATE),
    symbol("Z", "TBH", "update", GATE),
    symbol("H_tilde", "TBH", "candidate", SIGNED),
    symbol("H", "TBH", "state", SIGNED),
    *(symbol(f"W_{side}{block}", f"{'D' if side == 'x' else 'H'}H", "weight") for block, side in product(BLOCKS, "xh")),
    *(symbol(f"b_{block}", "H", "weight") for block in (*BLOCKS, "hh")),
    carry=("H",),
)


class GRU(RecurrentModel):
    """Gated recurrent unit with both conventions of each switch. Shapes: see ``RecurrentModel``."""

    kind = "gru"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
        *,
        reset: str = "before",
        update: str = "keeps",
    ) -> None:
        if reset not in RESETS or update not in UPDATES:
            raise ValueError(f"reset is one of {', '.join(RESETS)} and update one of {', '.join(UPDATES)}")
        self.reset, self.update = reset, update
        super().__init__(input_size, hidden_size, num_layers, bidirectional, generator)

    @property
    def circuit(self) -> Circuit:
        return GRU_STEPS[self.reset, self.update]

    @property
    def table(self) -> Mapping[str, Symbol]:
        return GRU_TABLE

    @property
    def switches(self) -> dict[str, Any]:
        return {"reset": self.reset, "update": self.update}

    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        hidden = self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {}
        for block in BLOCKS:
            shapes |= {f"W_x{block}": (width, hidden), f"W_h{block}": (hidden, hidden), f"b_{block}": (hidden,)}
        return shapes | ({"b_hh": (hidden,)} if self.reset == "after" else {})
