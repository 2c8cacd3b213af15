r"""Scores, and what becomes of them: how well each query fits each key, the weights, and what is read.

S = Q K^T / sqrt(d_k),  A = softmax_M(S),  O = A V

Four scores: the plain and the scaled dot product, the bilinear form Q W K^T and the additive score
tanh(q W_q + k W_k) w_v. The products need queries and keys of equal width; the other two do not. ``d_k`` is the width of a
query and of a key (in a head: of that head), neither the number of keys nor the width of the model.

Departures from other texts: a query that may attend to nothing has weights 0 and reads 0. The textbook fills hidden scores
with -1e6 instead, which gives such a query equal weights on all padding, and hides nothing from scores below -1e6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.attention.masks import empty_rows, empty_rows_note, fitted, keep_all_of, keep_past, keep_valid, kept
from engine.equation import Circuit, Equation, Interventions, Values, equation
from engine.operations import by_key, by_query, masked_softmax, sqrt, tanh
from engine.symbols import GATE, Symbol, symbol, table
from engine.trace import Trace

__all__ = [
    "SCORES",
    "Score",
    "additive",
    "attend",
    "attention",
    "bilinear",
    "dot_product",
    "empty_rows",
    "keep_all_of",
    "keep_past",
    "keep_valid",
    "kept",
    "masked_softmax",
    "scaled_dot_product",
]


@equation("S")
def dot_scores(Q, K):
    """Scores: the dot product of each query with each key."""
    return Q @ K.mT


@equation("S")
def scaled_scores(Q, K, d_k):
    """Scores: the dot product of each query with each key, at a size that does not grow with their width."""
    return Q @ K.mT / sqrt(d_k)


@equation("S")
def bilinear_scores(Q, K, W):
    """Scores: a dot product after the query has been carried into the keys' space."""
    return Q @ W @ K.mT


@equation("S")
def additive_scores(Q, K, W_q, W_k, w_v):
    """Scores: a small network reads query and key together."""
    return tanh(by_query(Q @ W_q) + by_key(K @ W_k)) @ w_v


@equation("A")
def weights_of_all(S):
    """Weights: positive shares of each query's attention that sum to 1."""
    return masked_softmax(S)


@equation("A")
def weights_of_kept(S, M):
    """Weights: positive shares of each query's attention that sum to 1, over what the mask keeps."""
    return masked_softmax(S, M)


@equation("A")
def tempered_weights_of_all(S, tau):
    """Weights at a temperature: sharper below 1, flatter above."""
    return masked_softmax(S / tau)


@equation("A")
def tempered_weights_of_kept(S, tau, M):
    """Weights at a temperature: sharper below 1, flatter above; over what the mask keeps."""
    return masked_softmax(S / tau, M)


@equation
def O(A, V):
    """What is read: the values, each with its weight."""
    return A @ V


@dataclass(frozen=True)
class Score:
    """How well queries fit keys. Called with Q (..., T, K), K (..., S, K) and its weights, it gives S (..., T, S)."""

    name: str
    equation: Equation = field(repr=False)
    weights: tuple[str, ...] = ()  # what is learned: operands after Q and K
    equal_widths: bool = False  # whether queries and keys must be equally wide

    def __call__(self, Q: Any, K: Any, *weights: Any, **named: Any) -> Tensor:
        given = dict(zip(self.weights, weights, strict=False)) | named
        inputs, learned = self.operands(Q, K, given)
        return self.equation(**inputs, **learned)

    def operands(self, Q: Any, K: Any, given: Mapping[str, Any]) -> tuple[Values, Values]:
        """The operands of its equation: inputs and weights. Raises ``ValueError`` for what does not fit."""
        if set(given) != set(self.weights):
            wanted = ", ".join(self.weights) or "no weights"
            raise ValueError(f"the {self.name} score has {wanted}, not {', '.join(sorted(given)) or 'none'}")
        Q, K, *learned = numbers(Q, K, *(given[name] for name in self.weights))
        weights = dict(zip(self.weights, learned, strict=True))
        for name, tensor in (("queries", Q), ("keys", K)):
            if tensor.ndim < 2 or tensor.shape[-1] < 1:
                raise ValueError(f"{name} are (..., number, width), not {tuple(tensor.shape)}")
        if self.equal_widths and Q.shape[-1] != K.shape[-1]:
            raise ValueError(
                f"a dot product needs queries and keys of one width, not {Q.shape[-1]} and {K.shape[-1]}; "
                "the additive and the bilinear score do not"
            )
        self._check(Q.shape[-1], K.shape[-1], weights)
        inputs = {"Q": Q, "K": K}
        if "d_k" in self.equation.operands:
            inputs["d_k"] = torch.tensor(float(K.shape[-1]), dtype=K.dtype)
        return inputs, weights

    def _check(self, query_width: int, key_width: int, weights: Values) -> None:
        hidden = weights["w_v"].shape[-1] if "w_v" in weights else 0
        wanted = {"W": (query_width, key_width), "W_q": (query_width, hidden), "W_k": (key_width, hidden), "w_v": (hidden,)}
        for name, weight in weights.items():
            if tuple(weight.shape) != wanted[name]:
                raise ValueError(f"{name} of the {self.name} score must be {wanted[name]} here, not {tuple(weight.shape)}")


dot_product = Score("dot_product", dot_scores, equal_widths=True)
scaled_dot_product = Score("scaled_dot_product", scaled_scores, equal_widths=True)
bilinear = Score("bilinear", bilinear_scores, ("W",))
additive = Score("additive", additive_scores, ("W_q", "W_k", "w_v"))
SCORES = {score.name: score for score in (dot_product, scaled_dot_product, bilinear, additive)}


def numbers(*given: Any) -> list[Tensor]:
    """Tensors of one floating dtype, the widest of those given; whole numbers become the default dtype."""
    tensors = [torch.as_tensor(value) for value in given]
    dtype = torch.get_default_dtype()
    floating = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    if floating:
        dtype = floating[0]
        for other in floating[1:]:
            dtype = torch.promote_types(dtype, other)
    return [tensor.to(dtype) for tensor in tensors]


@cache
def score_table(lead: str, score: str = "") -> Mapping[str, Symbol]:
    """The symbols of attention with the leading axes ``lead``: nothing, ``B``, or ``BN``."""
    scores = symbol("S", f"{lead}TS", "score")
    if score == "additive":  # the formula speaks of query t and key s
        scores = replace(scores, subscript="ts")
    return table(
        symbol("Q", f"{lead}TK", "query"),
        symbol("K", f"{lead}SK", "key"),
        symbol("V", f"{lead}SU", "value"),
        scores,
        symbol("M", f"{lead}TS", "mask", GATE),
        symbol("A", f"{lead}TS", "probability", GATE),
        symbol("O", f"{lead}TU", "state"),
        symbol("d_k", "", "size"),
        Symbol(name="tau", letter="τ", axes="", role="size"),
        *(symbol(name, axes, "weight") for name, axes in {"W": "KK", "W_q": "KH", "W_k": "KH", "w_v": "H"}.items()),
        whole=True,
    )


@cache
def attention_circuit(score: Score | None, masked: bool, tempered: bool) -> Circuit:
    """The equations of one attention; without a score, S is an input."""
    weights = {
        (False, False): weights_of_all,
        (True, False): weights_of_kept,
        (False, True): tempered_weights_of_all,
        (True, True): tempered_weights_of_kept,
    }[masked, tempered]
    return Circuit(*([score.equation] if score else []), weights, O)


def _prepared(
    Q: Any, K: Any, V: Any, score: Any, mask: Any, temperature: float | None, weights: Mapping[str, Any]
) -> tuple[Circuit, Values, Values, Mapping[str, Symbol]]:
    """The circuit of one attention and all that it reads. Raises ``ValueError`` for what does not fit together."""
    chosen = SCORES.get(score, score) if isinstance(score, str) else score
    if isinstance(chosen, str):
        raise ValueError(f"score is one of {', '.join(SCORES)}, not {chosen!r}")
    if isinstance(chosen, Score):
        inputs, learned = chosen.operands(Q, K, weights)
        Q, K, V = numbers(inputs["Q"], inputs["K"], V)
        shape = (*torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2]), Q.shape[-2], K.shape[-2])
        inputs |= {"Q": Q, "K": K}
    else:  # a function of one's own: its scores come in as they are
        chosen, (Q, K, V) = None, numbers(Q, K, V)
        S = score(Q, K, **weights)
        inputs, learned, shape = {"S": S}, {}, tuple(S.shape)
    if V.ndim < 2 or V.shape[-2] != shape[-1]:
        raise ValueError(f"each key has one value: {shape[-1]} keys, values {tuple(V.shape)}")
    if len(shape) > 4:
        raise ValueError(f"attention has at most the axes (batch, heads, queries, keys), not {len(shape)}")
    if mask is not None:
        inputs["M"] = M = fitted(mask, shape)
        V = _readable(V, M.any(dim=-2))
        if "K" in inputs:
            inputs |= {"Q": _readable(Q, M.any(dim=-1)), "K": _readable(K, M.any(dim=-2))}
    if temperature is not None:
        if not 0 < temperature < float("inf"):
            raise ValueError(f"a temperature is above 0, not {temperature}")
        inputs["tau"] = torch.tensor(temperature, dtype=V.dtype)
    inputs["V"] = V
    names = score_table(("", "B", "BN")[len(shape) - 2], chosen.name if chosen else "")
    return attention_circuit(chosen, mask is not None, temperature is not None), inputs, learned, names


def _readable(rows: Tensor, used: Tensor) -> Tensor:
    """Queries, keys or values (..., n, width), with 0 for what is no number in rows that take no part (``used`` False).

    0 times NaN would be NaN, in what is read or in the gradients.
    """
    finite = rows.isfinite()
    return rows if bool(finite.all()) else torch.where(finite | used.unsqueeze(-1), rows, 0.0)


def attention(
    Q: Any,
    K: Any,
    V: Any,
    score: Any = scaled_dot_product,
    mask: Any = None,
    *,
    temperature: float | None = None,
    **weights: Any,
) -> Values:
    """S, A and O of one attention as live tensors, on which gradients can be taken. Arguments as for ``attend``."""
    circuit, inputs, learned, _ = _prepared(Q, K, V, score, mask, temperature, weights)
    results, _ = circuit.run({**inputs, **learned})
    return results


def attend(
    Q: Any,
    K: Any,
    V: Any,
    score: Any = scaled_dot_product,
    mask: Any = None,
    *,
    temperature: float | None = None,
    do: Interventions | None = None,
    **weights: Any,
) -> Trace:
    """One attention, with everything that was computed: S, A (..., T, S) and O (..., T, U).

    Q (..., T, K), K (..., S, K) and V (..., S, U) have no leading axes, a batch, or batch and heads. ``score`` is one of this
    module's (or its name), with its weights by name (``W_q=...``), or any function of Q and K. ``mask`` is True where a query
    may attend to a key, broadcast to S. Rows that have nothing to attend to are 0 and stand in ``trace.notes``.

    Raises ``ValueError`` for sizes that do not fit and ``FloatingPointError`` where a score or value that counts is no number.
    """
    circuit, inputs, learned, names = _prepared(Q, K, V, score, mask, temperature, weights)
    trace = circuit.trace(inputs, learned, {"": names}, do=do)
    wrong = np.argwhere(~np.isfinite(trace["O"]))
    if len(wrong):
        raise FloatingPointError(f"what query {wrong[0][-2]} reads is no number: its scores or values are not finite")
    return replace(trace, notes=empty_rows_note(torch.tensor(trace["A"])))
