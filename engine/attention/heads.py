"""The equations of multi-head attention and what their symbols are; ``engine.attention.multihead`` runs them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from engine.attention.scores import dot_scores, scaled_scores, weights_of_all, weights_of_kept
from engine.equation import Circuit, Equation, equation
from engine.operations import blocks, concat, cos, heads, sin, sqrt, turn
from engine.symbols import GATE, Symbol, symbol, table


@equation
def Q(X, W_q, N):
    """Queries: what each position looks for, in each head."""
    return heads(X @ W_q, N)


@equation
def K(X, W_k, N):
    """Keys: what each position is found by, in each head."""
    return heads(X @ W_k, N)


@equation
def V(X, W_v, N):
    """Values: what each position has to give, in each head."""
    return heads(X @ W_v, N)


@equation("Q")
def Q_biased(X, W_q, b_q, N):
    """Queries: what each position looks for, in each head."""
    return heads(X @ W_q + b_q, N)


@equation("K")
def K_biased(X, W_k, b_k, N):
    """Keys: what each position is found by, in each head."""
    return heads(X @ W_k + b_k, N)


@equation("V")
def V_biased(X, W_v, b_v, N):
    """Values: what each position has to give, in each head."""
    return heads(X @ W_v + b_v, N)


@equation("Q")
def Q_cross(X_q, W_q, N):
    """Queries: what each position looks for, in each head."""
    return heads(X_q @ W_q, N)


@equation("K")
def K_cross(X_k, W_k, N):
    """Keys: what each position of the other sequence is found by, in each head."""
    return heads(X_k @ W_k, N)


@equation("V")
def V_cross(X_v, W_v, N):
    """Values: what each position of the other sequence has to give, in each head."""
    return heads(X_v @ W_v, N)


@equation("Q")
def Q_cross_biased(X_q, W_q, b_q, N):
    """Queries: what each position looks for, in each head."""
    return heads(X_q @ W_q + b_q, N)


@equation("K")
def K_cross_biased(X_k, W_k, b_k, N):
    """Keys: what each position of the other sequence is found by, in each head."""
    return heads(X_k @ W_k + b_k, N)


@equation("V")
def V_cross_biased(X_v, W_v, b_v, N):
    """Values: what each position of the other sequence has to give, in each head."""
    return heads(X_v @ W_v + b_v, N)


@equation
def Q_r(Q, Theta_q):
    """Queries, each pair of columns turned by the angle of its position."""
    return Q * cos(Theta_q) + turn(Q) * sin(Theta_q)


@equation
def K_r(K, Theta_k):
    """Keys, each pair of columns turned by the angle of its position."""
    return K * cos(Theta_k) + turn(K) * sin(Theta_k)


@equation("S")
def S_rotary(Q_r, K_r, d_k):
    """Scores: each turned query with each turned key; only the difference of their angles counts."""
    return Q_r @ K_r.mT / sqrt(d_k)


@equation("S")
def S_alibi(Q, K, d_k, B):
    """Scores: each query with each key, less the farther they are apart."""
    return Q @ K.mT / sqrt(d_k) + B


@equation
def Z(A, V):
    """What each head reads: the values, each with its weight."""
    return A @ V


@equation
def O_n(Z, W_o, N):
    """What each head adds to the output. All heads' parts, and the bias, add up to O."""
    return Z @ blocks(W_o, N)


@equation
def O(Z, W_o):
    """Output: the heads side by side, mixed by one matrix."""
    return concat(Z) @ W_o


@equation("O")
def O_biased(Z, W_o, b_o):
    """Output: the heads side by side, mixed by one matrix."""
    return concat(Z) @ W_o + b_o


PROJECTIONS: dict[tuple[bool, bool], tuple[Equation, ...]] = {
    (False, False): (Q, K, V),
    (False, True): (Q_biased, K_biased, V_biased),
    (True, False): (Q_cross, K_cross, V_cross),
    (True, True): (Q_cross_biased, K_cross_biased, V_cross_biased),
}
RELATIVE: dict[str | None, tuple[Equation, ...]] = {
    None: (scaled_scores,),
    "rotary": (Q_r, K_r, S_rotary),
    "alibi": (S_alibi,),
}


@cache
def multihead_circuit(
    cross: bool = False, bias: bool = False, masked: bool = False, scaled: bool = True, relative: str | None = None
) -> Circuit:
    """The equations of one multi-head attention. Raises ``ValueError`` for positions it does not know."""
    if relative not in RELATIVE:
        raise ValueError(f"relative is one of {', '.join(str(name) for name in RELATIVE)}, not {relative!r}")
    if not scaled and relative is not None:
        raise ValueError("relative positions come with scaled scores")
    scores = RELATIVE[relative] if scaled else (dot_scores,)
    weights = weights_of_kept if masked else weights_of_all
    return Circuit(*PROJECTIONS[cross, bias], *scores, weights, Z, O_n, O_biased if bias else O)


@cache
def multihead_table(lead: str = "B") -> Mapping[str, Symbol]:
    """The symbols of multi-head attention; ``lead`` is ``B``, or nothing for a single sequence."""
    heads_of = {"Q": ("NTK", "query"), "K": ("NSK", "key"), "V": ("NSU", "value"), "Z": ("NTU", "state")}
    return table(
        symbol("X", f"{lead}TD", "input_value"),
        symbol("X_q", f"{lead}TD", "input_value"),
        *(symbol(name, f"{lead}SD", "input_value") for name in ("X_k", "X_v")),
        *(symbol(name, f"{lead}{axes}", role) for name, (axes, role) in heads_of.items()),
        *(symbol(f"{name}_r", f"{lead}{axes}", role) for name, (axes, role) in heads_of.items() if name in "QK"),
        symbol("S", f"{lead}NTS", "score"),
        symbol("B", "NTS", "score"),
        symbol("M", f"{lead}NTS", "mask", GATE),
        symbol("A", f"{lead}NTS", "probability", GATE),
        symbol("O_n", f"{lead}NTD", "state"),
        symbol("O", f"{lead}TD", "state"),
        *(
            Symbol(name=f"Theta_{of}", letter="Θ", subscript=of, axes=f"{a}K", role="size")
            for of, a in (("q", "T"), ("k", "S"))
        ),
        *(symbol(f"W_{of}", "DK", "weight") for of in "qkvo"),
        *(symbol(f"b_{of}", "K", "weight") for of in "qkvo"),
        symbol("N", "", "size"),
        symbol("d_k", "", "size"),
        whole=True,
    )
