r"""Why scores are divided by sqrt(d): what their size does to the softmax.

With q and k drawn from N(0, 1), q . k has the variance d. Scores of that size leave one weight near 1 and the others near 0,
and there the softmax hardly answers to a change of the scores: its Jacobian diag(a) - a a^T goes to 0, and with it every
gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attention.scores import attention, dot_product, scaled_dot_product


def entropy(A: Tensor) -> Tensor:
    """The entropy of rows of weights (..., S) in nats: 0 for a single key, log S for equal weights. A row of zeros has 0."""
    return -torch.where(A > 0, A * torch.log(torch.where(A > 0, A, 1.0)), 0.0).sum(dim=-1)


def softmax_jacobian(A: Tensor) -> Tensor:
    """diag(a) - a a^T: how each weight (row) answers to each score (column). (..., S) -> (..., S, S)."""
    return torch.diag_embed(A) - A.unsqueeze(-1) * A.unsqueeze(-2)


def jacobian_size(A: Tensor) -> Tensor:
    """The mean absolute entry of ``softmax_jacobian`` without forming it. (..., S) -> (...)."""
    total, squares = A.sum(dim=-1), A.square().sum(dim=-1)
    return (total - squares + total.square() - squares).clamp(min=0.0) / A.shape[-1] ** 2


@dataclass(frozen=True, kw_only=True)
class Saturation:
    """Dot products of width ``width``: their variance, and the softmax over them (means over queries)."""

    width: int
    scaled: bool
    variance: float
    largest_weight: float
    entropy: float  # in nats
    jacobian: float  # mean absolute entry


def saturation(
    widths: Sequence[int], generator: torch.Generator, *, keys: int = 10, queries: int = 1000
) -> list[tuple[Saturation, Saturation]]:
    """The plain and the scaled dot product of random queries and keys, for each width."""
    found = []
    for width in widths:
        Q = torch.randn(queries, 1, width, generator=generator, dtype=torch.float64)
        K = torch.randn(queries, keys, width, generator=generator, dtype=torch.float64)
        pair = []
        for score in (dot_product, scaled_dot_product):
            results = attention(Q, K, K, score)
            A = results["A"]
            pair.append(
                Saturation(
                    width=width,
                    scaled=score is scaled_dot_product,
                    variance=float(results["S"].var()),
                    largest_weight=float(A.amax(dim=-1).mean()),
                    entropy=float(entropy(A).mean()),
                    jacobian=float(jacobian_size(A).mean()),
                )
            )
        found.append((pair[0], pair[1]))
    return found


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the scores of one head cost: multiplications, and numbers held at once beside queries and keys."""

    multiplications: int
    numbers: int


def score_cost(score: str, queries: int, keys: int, width: int, hidden: int = 0) -> Cost:
    """The cost of one set of scores. The additive score holds queries x keys x hidden numbers, the products queries x keys.

    Raises ``ValueError`` for a score that is not known.
    """
    pairs = queries * keys
    if score in ("dot_product", "scaled_dot_product"):
        return Cost(multiplications=pairs * width, numbers=pairs)
    if score == "bilinear":
        return Cost(multiplications=queries * width * width + pairs * width, numbers=pairs + queries * width)
    if score == "additive":
        projected = (queries + keys) * hidden
        return Cost(multiplications=projected * width + pairs * hidden, numbers=pairs * hidden + pairs + projected)
    raise ValueError(f"no score is called {score!r}")
