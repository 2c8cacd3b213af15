r"""Attention with positions, every equation in one circuit: the codes, where they are added, and what attention makes of it.

X_p = s E + P,  Q = heads(X_p W_q), ...,  S = Q K^T / sqrt(d_k),  A = softmax(S)

``where``: the codes are added to the "input", hence to queries, keys and values; to queries and keys alone ("qk"); to the
values alone ("v"); or "nowhere". Rotary and ALiBi positions stand in the "scores" or nowhere. Beside that ``G`` is the product
of each two codes, and ``P_d`` every code carried ``delta`` positions on by one rotation.

Everything runs in float64: at the first columns of the codes float32 would show its own rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.attention.character_model import loss_of
from engine.attention.heads import RELATIVE, O, Z, multihead_table
from engine.attention.masks import keep_past
from engine.attention.order_model import OrderModel
from engine.attention.positions import (
    ALIBI,
    BASE,
    LEARNED_TABLE,
    SINUSOIDAL,
    P_learned,
    frequencies,
    position_table,
    shift,
    sinusoidal,
    slopes,
    turning_angles,
)
from engine.attention.scores import weights_of_all, weights_of_kept
from engine.equation import Circuit, Equation, Values, equation
from engine.operations import cos, heads, sin, turn
from engine.symbols import SIGNED, Symbol, symbol, table
from engine.trace import Trace

Array = NDArray[np.floating[Any]]
ADDED: Final = ("sinusoidal", "learned")
# Which of queries, keys and values read the codes.
PLACES: Final[Mapping[str, str]] = {"input": "qkv", "qk": "qk", "v": "v", "nowhere": "", "scores": ""}


@equation
def P_d(P, R):
    """Codes moved on: every code, turned by one and the same rotation."""
    return P @ R


@equation
def G(P):
    """Products of codes: how alike the codes of each two positions are."""
    return P @ P.mT


@equation("P")
def P_turned(U, Theta_q):
    """Turned pairs: what the rotation makes of the pair (1, 0) at each position."""
    return U * cos(Theta_q) + turn(U) * sin(Theta_q)


@equation
def X_p(E, P, s):
    """Input with positions: the embeddings at their scale, and the codes."""
    return s * E + P


@equation
def X_s(E, s):
    """Input without positions: the embeddings at their scale."""
    return s * E


@equation("Q")
def Q_p(X_p, W_q, N):
    """Queries: what each position looks for, in each head."""
    return heads(X_p @ W_q, N)


@equation("Q")
def Q_s(X_s, W_q, N):
    """Queries: what each position looks for, in each head."""
    return heads(X_s @ W_q, N)


@equation("K")
def K_p(X_p, W_k, N):
    """Keys: what each position is found by, in each head."""
    return heads(X_p @ W_k, N)


@equation("K")
def K_s(X_s, W_k, N):
    """Keys: what each position is found by, in each head."""
    return heads(X_s @ W_k, N)


@equation("V")
def V_p(X_p, W_v, N):
    """Values: what each position has to give, in each head."""
    return heads(X_p @ W_v, N)


@equation("V")
def V_s(X_s, W_v, N):
    """Values: what each position has to give, in each head."""
    return heads(X_s @ W_v, N)


PROJECTIONS: Final = {"q": (Q_p, Q_s), "k": (K_p, K_s), "v": (V_p, V_s)}


def places_of(kind: str) -> tuple[str, ...]:
    """Where positions of a kind can be put: the first place is the one the models are trained with."""
    return ("input", "qk", "v", "nowhere") if kind in ADDED else ("scores", "nowhere")


@cache
def order_circuit(kind: str, where: str, masked: bool, even: bool) -> Circuit:
    """The equations in force. Raises ``ValueError`` for a place that this kind of positions does not have."""
    if where not in places_of(kind):
        raise ValueError(f"{kind} positions go into one of {', '.join(places_of(kind))}, not {where!r}")
    codes: tuple[Equation, ...] = {
        "sinusoidal": tuple(SINUSOIDAL.equations.values()),
        "learned": (P_learned,),
        "rotary": (P_turned,),
        "alibi": tuple(ALIBI.equations.values()),
    }[kind]
    if kind != "alibi":
        codes = (*codes, *((P_d,) if kind == "sinusoidal" and even else ()), G)
    given = PLACES[where]
    sums = tuple(e for e, used in ((X_p, bool(given)), (X_s, len(given) < 3)) if used)
    reads = tuple(PROJECTIONS[of][0 if of in given else 1] for of in "qkv")
    scores = RELATIVE[kind if where == "scores" else None]
    return Circuit(*codes, *sums, *reads, *scores, weights_of_kept if masked else weights_of_all, Z, O)


@cache
def order_table(kind: str, base: float = BASE) -> Mapping[str, Symbol]:
    """The symbols of a run."""
    own = dict(position_table(base) if kind == "sinusoidal" else LEARNED_TABLE if kind == "learned" else {})
    if kind == "rotary":
        own |= table(symbol("P", "TK", "position", SIGNED), symbol("U", "TK", "size"), whole=True)
    if kind == "alibi":
        index = (("i", "T1"), ("j", "S"), ("m", "N11"))
        own |= table(*(Symbol(name=n, letter=n, axes=a, role="size", italic=True) for n, a in index), whole=True)
    more = table(
        Symbol(name="P_d", letter="P", subscript="i+δ", axes="TD", role="position", interval=SIGNED),
        symbol("R", "DD", "weight", SIGNED),
        symbol("G", "TS", "score"),
        *(symbol(name, "TD", "input_value") for name in ("E", "X_p", "X_s")),
        symbol("s", "", "size"),
        whole=True,
    )
    return dict(multihead_table("")) | own | dict(more)


@dataclass(frozen=True, kw_only=True)
class OrderRun:
    """What the learner looks at: a model, ids (T,) in the order in which they are read, and where positions go.

    ``order`` (T,) says which place of the learner's text each read token has come from. ``scale`` multiplies the embeddings,
    ``delta`` is how far the rotation carries a code; ``step``, ``key``, ``head`` and ``unit`` are a place.
    """

    model: OrderModel = field(repr=False)
    ids: Tensor = field(repr=False)
    order: tuple[int, ...] = ()
    where: str = "input"
    scale: float = 1.0
    causal: bool = True
    delta: int = 1
    base: float = BASE
    step: int = 0
    key: int = 0
    head: int = 0
    unit: int = 0

    def same(self, other: OrderRun) -> bool:
        """Whether the other asks about the same."""
        names = ("order", "where", "scale", "causal", "delta", "base", "step", "key", "head", "unit")
        alike = all(getattr(self, name) == getattr(other, name) for name in names)
        return alike and self.model is other.model and self.ids.equal(other.ids)

    @property
    def kind(self) -> str:
        """Which positions the model has."""
        return self.model.kind

    @property
    def read(self) -> Tensor:
        """The ids in the order in which they are read."""
        return self.ids[list(self.order)] if self.order else self.ids

    def trace(self) -> Trace:
        """Every equation on the text as it is read."""
        model, ids, width = self.model, self.read, self.model.width
        length = len(ids)
        circuit = order_circuit(self.kind, self.where, self.causal, width % 2 == 0)
        given = self._inputs(length) | {"E": model.E[ids].double(), "s": torch.tensor(self.scale, dtype=torch.float64)}
        given |= {"N": torch.tensor(model.attention.heads), "d_k": torch.tensor(float(model.attention.head_width)).double()}
        if self.causal:
            given["M"] = keep_past(length).expand(model.attention.heads, length, length)
        needed = set(circuit.inputs)
        weights = {name: weight.detach().double() for name, weight in model.attention.weights().items()}
        if self.kind == "learned":
            weights["W_p"] = model.W_p.detach().double()
        return circuit.trace(
            {name: value for name, value in given.items() if name in needed},
            {name: value for name, value in weights.items() if name in needed},
            {"": order_table(self.kind, self.base)},
        )

    def _inputs(self, length: int) -> Values:
        """What the equations of the codes read."""
        width, places = self.model.width, torch.arange(length, dtype=torch.float64)
        pairs = torch.arange((width + 1) // 2, dtype=torch.float64)
        narrow = self.model.attention.head_width
        angles = turning_angles(length, narrow, base=self.base)
        found: Values = {"i": places.unsqueeze(-1), "Theta_q": angles, "Theta_k": angles}
        if self.kind == "sinusoidal":
            found |= {"j": pairs, "j_full": pairs[: width // 2], "base": torch.tensor(self.base).double()}
            found |= {"d": torch.tensor(float(width)).double()}
            if width % 2 == 0:
                found["R"] = shift(self.delta, width, base=self.base)
        if self.kind == "rotary":
            found["U"] = (torch.arange(narrow) % 2 == 0).double().expand(length, narrow)
        if self.kind == "alibi":
            found |= {"j": places, "m": slopes(self.model.attention.heads).reshape(-1, 1, 1)}
        return found

    def loss(self, trace: Trace) -> float:
        """Nats per next character of the text as it is read; NaN for a text of one character."""
        if len(self.ids) < 2:
            return float("nan")
        X = torch.tensor(trace["X_p" if "X_p" in trace else "X_s"])
        scores = (X + torch.tensor(trace["O"])) @ self.model.W_y.double() + self.model.b_y.double()
        return float(loss_of(scores, self.read))


def unpermuted(run: OrderRun) -> Trace:
    """The run on the text as it was written, each row put where its token stands in the order that is read.

    Codes stay: they belong to the places. Where positions play no part, all other rows are those of ``run.trace()``.
    """
    trace = replace(run, order=()).trace()
    if not run.order:
        return trace
    order = list(run.order)
    moved = {}
    for name, given in trace.arrays.items():
        array, axes = given, trace.axes(name)
        if name not in ("P_sin", "P_cos", "P", "P_d", "G", "B"):
            for axis in "TS":
                if axis in axes:
                    array = np.take(array, order, axis=axes.index(axis) - len(axes) + array.ndim)
        moved[name] = array
    return replace(trace, arrays=moved)


def carried(run: OrderRun) -> Array:
    """How far the turned codes P_i R are from the codes at i + delta, the largest number of each row (T,)."""
    width, length = run.model.width, len(run.ids)
    places = torch.arange(length, dtype=torch.float64)
    turned = sinusoidal(places, width, base=run.base) @ shift(run.delta, width, base=run.base)
    gaps: Array = (turned - sinusoidal(places + run.delta, width, base=run.base)).abs().amax(-1).numpy()
    return gaps


def likeness_by_distance(kind: str, model: OrderModel, length: int, base: float = BASE) -> Array:
    """How alike two positions are, by how far they stand apart: (lines, length), 1 at distance 0.

    Added codes: the mean cosine of the codes of all pairs at that distance. Rotary: the same of the turned pairs. ALiBi: the
    factor exp(-m k) by which a weight is smaller than it would be beside its query, a line for each head.
    """
    if kind == "alibi":
        return torch.exp(-slopes(model.attention.heads).unsqueeze(-1) * torch.arange(length)).numpy()
    if kind == "rotary":
        angles = frequencies(model.attention.head_width, base).unsqueeze(-1) * torch.arange(length)
        return torch.cos(angles).mean(0, keepdim=True).numpy()
    P = model.W_p[:length].double() if kind == "learned" else sinusoidal(length, model.width, base=base)
    unit = P / P.norm(dim=-1, keepdim=True)
    cosines = unit @ unit.mT
    return np.array([[float(cosines.diagonal(k).mean()) if k < len(P) else float("nan") for k in range(length)]])
