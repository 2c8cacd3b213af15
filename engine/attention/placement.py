r"""Where positions are added, and what attention then sees of them.

X_p = s X + P goes to queries, keys and values ("input", as in the paper), to queries and keys alone ("qk"), to the values alone
("v") or nowhere. Added to the values alone, positions leave the weights blind to the order.

``s`` is the embeddings' scale. The paper multiplies embeddings by sqrt(d), which belongs to embeddings of size 1/sqrt(d); with
embeddings drawn from N(0, 1) the codes, whose length is sqrt(d/2), are drowned.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from engine.attention.heads import multihead_table
from engine.attention.multihead import MultiHeadAttention
from engine.equation import Circuit, Interventions, equation
from engine.symbols import Symbol, symbol, table
from engine.trace import Trace

# Which of the three sequences carries positions.
PLACES: Mapping[str, str] = {"input": "qkv", "qk": "qk", "v": "v", "nowhere": ""}


@equation
def X_p(X, P, s):
    """Input with positions: the embeddings at their scale, and the position codes."""
    return s * X + P


@equation
def X_s(X, s):
    """Input without positions: the embeddings at their scale."""
    return s * X


def placement_table(lead: str) -> Mapping[str, Symbol]:
    """The symbols around the attention."""
    inputs = [symbol(name, f"{lead}TD", "input_value") for name in ("X", "X_p", "X_s")]
    return table(*inputs, symbol("P", "TD", "position"), symbol("s", "", "size"), symbol("O", f"{lead}TD", "state"), whole=True)


@cache
def placement_circuit(where: str, attention: Circuit) -> Circuit:
    """The attention's equations behind the sum of embeddings and positions. Raises ``ValueError`` for an unknown place."""
    if where not in PLACES:
        raise ValueError(f"positions are added to one of {', '.join(PLACES)}, not {where!r}")
    with_positions = PLACES[where]
    reads = {f"X_{of}": "X_p" if of in with_positions else "X_s" for of in "qkv"}
    needed = [e for e in (X_p, X_s) if e.name in reads.values()]
    return Circuit(*needed, attention.inside("attention", reads=reads, gives={"O": "O"}))


def trace_with_positions(
    attention: MultiHeadAttention,
    X: Tensor,
    P: Tensor,
    where: str = "input",
    *,
    scale: float = 1.0,
    mask: Any = None,
    do: Interventions | None = None,
) -> Trace:
    """Self-attention on X (B, T, D) or (T, D) with positions P (T, D). The attention's symbols are named ``attention.A``."""
    X, _, _ = attention.checked(X, None, None)
    if tuple(P.shape) != tuple(X.shape[-2:]):
        raise ValueError(f"each position has one code of the input's width: {tuple(X.shape[-2:])}, not {tuple(P.shape)}")
    inner = attention.circuit(cross=True, masked=mask is not None)
    circuit, scope = placement_circuit(where, inner), "attention."
    inputs = {"X": X, "P": P.to(X.dtype), "s": torch.tensor(scale, dtype=X.dtype)}
    if not PLACES[where]:
        del inputs["P"]
    inputs |= {scope + name: size for name, size in attention.sizes().items()}
    if mask is not None:
        inputs[f"{scope}M"] = attention.fitted_mask(mask, X, X)
    weights = {scope + name: weight for name, weight in attention.weights().items()}
    lead = "B" if X.ndim == 3 else ""
    return circuit.trace(inputs, weights, {"": placement_table(lead), scope: multihead_table(lead)}, do=do)
