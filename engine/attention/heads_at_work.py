"""What each head does in a run: how much it adds, what is lost without it, how alike the heads are, and what they share.

Everything is measured on the learner's own text; the layer is ``engine.attention.multihead``, the model around it
``engine.attention.character_model``.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from engine.attention.character_model import CharacterModel, loss_of
from engine.attention.masks import keep_past
from engine.attention.multihead import MultiHeadAttention, without_heads
from engine.trace import Trace

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the learner is looking at: a model, ids (T,), whether each position sees only its past, and a place."""

    model: CharacterModel = field(repr=False)
    ids: Tensor = field(repr=False)
    causal: bool = True
    removed: tuple[int, ...] = ()
    step: int = 0
    key: int = 0
    head: int = 0
    unit: int = 0

    def same(self, other: Run) -> bool:
        """Whether the other asks about the same: model, tokens, mask, heads and place."""
        where = (self.causal, self.removed, self.step, self.key, self.head, self.unit)
        there = (other.causal, other.removed, other.step, other.key, other.head, other.unit)
        return where == there and self.model is other.model and self.ids.equal(other.ids)

    @property
    def attention(self) -> MultiHeadAttention:
        """The layer."""
        return self.model.attention

    @property
    def mask(self) -> Tensor | None:
        """Who may attend to whom (T, T)."""
        return keep_past(len(self.ids)) if self.causal else None

    def trace(self, removed: tuple[int, ...] | None = None) -> Trace:
        """The layer's run without the ``removed`` heads (None: without those that the learner has taken out)."""
        gone = self.removed if removed is None else removed
        do: Mapping[str, Any] | None = without_heads(*gone) if gone else None
        return self.attention.trace(self.model.vectors(self.ids), mask=self.mask, do=do)

    def loss(self, trace: Trace) -> float:
        """Nats per next character when attention gives the output of ``trace``; NaN for a text of one character."""
        if len(self.ids) < 2:
            return float("nan")
        scores = self.model.scores(torch.tensor(trace["X"]), torch.tensor(trace["O"]))
        return float(loss_of(scores, self.ids))


def mean_weights(trace: Trace) -> Array:
    """The mean of the heads' weights (T, S): what many pictures show, and what no head does."""
    mean: Array = trace["A"].mean(axis=-3, dtype=np.float64)
    return mean


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What one head does in a run.

    ``share`` is the mean length of what it adds, as a share of the sum over the heads; ``change`` how far the output moves
    without it, relative to its length; ``loss`` the nats per character then; ``back`` how many positions back it looks on
    average; ``sharpness`` the mean of its largest weights.
    """

    head: int
    share: float
    change: float
    loss: float
    back: float
    sharpness: float


def worths(run: Run) -> tuple[Worth, ...]:
    """Each head of the whole layer, one after the other taken out alone."""
    trace = run.trace(())
    lengths = np.linalg.norm(trace["O_n"].astype(np.float64), axis=-1).mean(axis=-1)
    whole = np.linalg.norm(trace["O"].astype(np.float64))
    places = np.arange(len(run.ids))
    distance = np.abs(places[:, np.newaxis] - places)
    found = []
    for head in range(run.attention.heads):
        without = run.trace((head,))
        moved = np.linalg.norm(without["O"].astype(np.float64) - trace["O"])
        weights = trace["A"][head].astype(np.float64)
        found.append(
            Worth(
                head=head,
                share=float(lengths[head] / lengths.sum()),
                change=float(moved / whole),
                loss=run.loss(without),
                back=float((weights * distance).sum(axis=-1).mean()),
                sharpness=float(weights.max(axis=-1).mean()),
            )
        )
    return tuple(found)


def likeness(trace: Trace) -> Array:
    """The cosine of each two heads' weights over all pairs of positions (N, N): 1 where both look at the same."""
    rows = trace["A"].astype(np.float64).reshape(len(trace["A"]), -1)
    unit = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300)
    cosines: Array = np.clip(unit @ unit.T, -1.0, 1.0)
    return cosines


def with_shared_blocks(attention: MultiHeadAttention) -> MultiHeadAttention:
    """A copy in which every head has the query, key and value weights of the first one."""
    shared = copy.deepcopy(attention)
    with torch.no_grad():
        for weight in (shared.W_q, shared.W_k, shared.W_v):
            weight.copy_(weight[:, : attention.head_width].repeat(1, attention.heads))
    return shared


def output_rank(trace: Trace) -> int:
    """How many independent directions the heads, side by side, have."""
    return int(np.linalg.matrix_rank(np.concatenate(list(trace["Z"].astype(np.float64)), axis=-1), tol=1e-5))


def map_rank(attention: MultiHeadAttention, head: int) -> int:
    """The rank of one head's W_q W_k^T, a width x width matrix."""
    columns = slice(head * attention.head_width, (head + 1) * attention.head_width)
    with torch.no_grad():
        product = attention.W_q[:, columns].double() @ attention.W_k[:, columns].double().mT
    return int(torch.linalg.matrix_rank(product, rtol=1e-10))


@dataclass(frozen=True, kw_only=True)
class AsConvolution:
    """A convolution and heads that do the same: one head for each place of the kernel, with weights that never change.

    ``weights`` (kernel, T, T) are the heads' maps, ``largest`` is the largest distance of the two results.
    """

    weights: Array
    largest: float


def convolution_as_heads(X: Tensor, kernel: int, generator: torch.Generator) -> AsConvolution:
    """A causal convolution of X (T, D) with a random kernel, and the same from attention with fixed weights.

    Head j gives all its weight to the position j back (Cordonnier et al. 2020), and its W_v W_o is what the kernel has there.
    """
    given = X.double()
    length, width = given.shape
    W = torch.randn(kernel, width, width, generator=generator, dtype=torch.float64) / width**0.5
    padded = functional.pad(given.mT.unsqueeze(0), (kernel - 1, 0))
    convolved = functional.conv1d(padded, W.permute(2, 1, 0).flip(-1)).squeeze(0).mT
    maps = torch.stack([torch.diag(torch.ones(length - j, dtype=torch.float64), -j) for j in range(min(kernel, length))])
    attended = sum(weights @ given @ matrix for weights, matrix in zip(maps, W, strict=False))
    return AsConvolution(weights=maps.numpy(), largest=float((convolved - attended).abs().max()))
