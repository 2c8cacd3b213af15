r"""How much each head can see: singular values and effective rank of W_q W_k^T.

The score of two positions is x_t W_q W_k^T x_s^T / sqrt(d_k): head n reads the input through that one matrix, whose rank is at
most the width of the head. How many of its directions count is measured by the entropy of the singular values (Roy and Vetterli
2007) and by their participation ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attention.multihead import MultiHeadAttention


def effective_rank(singular: Tensor) -> Tensor:
    """exp of the entropy of singular values (..., n) that are made to sum to 1: between 1 and n; 0 where all are 0."""
    total = singular.sum(dim=-1, keepdim=True)
    shares = singular / torch.where(total > 0, total, 1.0)
    entropy = -torch.where(shares > 0, shares * torch.log(torch.where(shares > 0, shares, 1.0)), 0.0).sum(dim=-1)
    return torch.where(total.squeeze(-1) > 0, entropy.exp(), 0.0)


def participation_ratio(singular: Tensor) -> Tensor:
    """(sum s^2)^2 / sum s^4: how many of the singular values (..., n) carry the variance; 0 where all are 0."""
    top = singular.amax(dim=-1, keepdim=True)
    squares = (singular / torch.where(top > 0, top, 1.0)).square()
    fourth = squares.square().sum(dim=-1)
    return squares.sum(dim=-1).square() / torch.where(fourth > 0, fourth, 1.0)


@dataclass(frozen=True)
class HeadSpectra:
    """For each head: the singular values (N, K) of W_q W_k^T, largest first, and two measures of its rank (N,)."""

    singular: Tensor
    effective_rank: Tensor
    participation_ratio: Tensor


def head_spectra(attention: MultiHeadAttention) -> HeadSpectra:
    """The spectrum of each head's W_q W_k^T. Of the width x width matrix only the values that can differ from 0 are given."""
    with torch.no_grad():
        left, right = (
            weight.double().reshape(len(weight), attention.heads, -1).transpose(0, 1)
            for weight in (attention.W_q, attention.W_k)
        )
        # W_q = U R and W_k = V R' with orthonormal columns: R R'^T is small and has the same singular values.
        small = torch.linalg.qr(left)[1] @ torch.linalg.qr(right)[1].mT
        singular = torch.linalg.svdvals(small)
    return HeadSpectra(singular, effective_rank(singular), participation_ratio(singular))


def head_columns(attention: MultiHeadAttention) -> Tensor:
    """Which head each column of W_q, W_k and W_v (and each row of W_o) belongs to."""
    return torch.arange(attention.heads).repeat_interleave(attention.head_width)
