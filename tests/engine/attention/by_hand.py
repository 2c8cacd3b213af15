"""Attention once more, in plain NumPy float64 and written apart from the engine: what the engine is held to."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def softmax_over_kept(scores: Array, keep: Any = None) -> Array:
    """Row by row: the exponentials of what is kept, divided by their sum; zeros where nothing is."""
    scores = np.asarray(scores, dtype=np.float64)
    keep = np.broadcast_to(np.ones(scores.shape, dtype=bool) if keep is None else np.asarray(keep, dtype=bool), scores.shape)
    weights = np.zeros(scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        chosen = [s for s in range(scores.shape[-1]) if keep[row][s] and scores[row][s] > -np.inf]
        if chosen:
            shifted = [np.exp(scores[row][s] - max(scores[row][c] for c in chosen)) for s in chosen]
            for s, value in zip(chosen, shifted, strict=True):
                weights[row][s] = value / sum(shifted)
    return weights


def scores_by_hand(kind: str, Q: Array, K: Array, **w: Array) -> Array:
    """Every pair of query and key on its own."""
    S = np.zeros((*Q.shape[:-1], K.shape[-2]))
    for place in np.ndindex(S.shape):
        q, k = Q[place[:-1]], K[(*place[:-2], place[-1])]
        if kind == "dot_product":
            S[place] = sum(q * k)
        elif kind == "scaled_dot_product":
            S[place] = sum(q * k) / len(q) ** 0.5
        elif kind == "bilinear":
            S[place] = q.dot(w["W"]).dot(k)
        else:
            S[place] = np.tanh(q.dot(w["W_q"]) + k.dot(w["W_k"])).dot(w["w_v"])
    return S


def numpy_multihead(w: dict[str, Array], X_q: Array, X_k: Array, X_v: Array, heads: int, keep: Any = None) -> dict[str, Array]:
    """Multi-head attention, head by head, each with its own column block. X (B, T, D)."""
    kept: dict[str, list[Array]] = {name: [] for name in ("Q", "K", "V", "S", "A", "Z", "O_n")}
    zero = np.zeros(1)
    for n in range(heads):
        columns = slice(n * w["W_q"].shape[1] // heads, (n + 1) * w["W_q"].shape[1] // heads)
        given = {"Q": (X_q, "q"), "K": (X_k, "k"), "V": (X_v, "v")}
        Q, K, V = (
            X.dot(w[f"W_{of}"][:, columns]) + (w[f"b_{of}"][columns] if f"b_{of}" in w else zero) for X, of in given.values()
        )
        S = np.stack([Q[b].dot(K[b].T) for b in range(len(Q))]) / np.sqrt(Q.shape[-1])
        A = softmax_over_kept(S, None if keep is None else np.broadcast_to(keep, (len(Q), *S.shape[1:])))
        Z = np.stack([A[b].dot(V[b]) for b in range(len(Q))])
        for name, value in zip(kept, (Q, K, V, S, A, Z, Z.dot(w["W_o"][columns])), strict=True):
            kept[name].append(value)
    found = {name: np.stack(values, axis=1) for name, values in kept.items()}
    return found | {"O": found["O_n"].sum(axis=1) + w.get("b_o", zero)}
