"""Masks say who may attend to whom: True keeps a pair of query and key, False hides it. Nothing else is called a mask here.

Texts and libraries differ: the fused attention of torch keeps where True (as here), its ``MultiheadAttention`` hides where
True. A mask is never added to the scores and never multiplied with them: a hidden key has the weight 0, whatever the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.notes import Note


def kept(mask: Any) -> Tensor:
    """A mask as booleans. Raises ``ValueError`` for numbers other than 0 and 1, such as summands or lengths."""
    given = torch.as_tensor(mask)
    if given.dtype == torch.bool:
        return given
    keep: Tensor = given == 1
    if not bool((keep | (given == 0)).all()):
        raise ValueError(
            "a mask says True (keep) or False, or 1 and 0; keep_valid makes one of lengths; one that is to be added to scores "
            "(0 and minus infinity) becomes one by mask == 0"
        )
    return keep


def keep_valid(lengths: int | Sequence[Any] | Tensor, keys: int) -> Tensor:
    """The first ``lengths`` of ``keys`` keys are kept: (), (B,) or (B, T) lengths give (S,), (B, 1, S) or (B, T, S).

    A length of 0 keeps nothing. Raises ``ValueError`` for a length below 0, above ``keys`` or not whole.
    """
    given = torch.as_tensor(lengths)
    if given.ndim > 2:
        raise ValueError(f"lengths are one number, (batch) or (batch, queries), not {tuple(given.shape)}")
    if given.is_floating_point() and not bool((given == given.round()).all()):
        raise ValueError("a length is a whole number of keys")
    wrong = given[(given < 0) | (given > keys)]
    if wrong.numel():
        raise ValueError(f"a length of {int(wrong[0])} is not between 0 and the {keys} keys")
    mask: Tensor = torch.arange(keys) < given.unsqueeze(-1)
    return mask.unsqueeze(-2) if given.ndim == 1 else mask


def keep_past(queries: int, keys: int | None = None, offset: int | None = None) -> Tensor:
    """The causal mask (T, S): query t may attend to keys 0 to ``offset`` + t, itself included.

    ``offset`` is the number of keys that came before the first query (a cache); without it the last query meets the last key.
    """
    keys = queries if keys is None else keys
    offset = keys - queries if offset is None else offset
    mask: Tensor = torch.arange(keys) <= torch.arange(queries).unsqueeze(-1) + offset
    return mask


def keep_all_of(*masks: Any) -> Tensor:
    """What every one of the masks keeps; they are broadcast against each other."""
    together = kept(masks[0])
    for mask in masks[1:]:
        together = together & kept(mask)
    return together


def fitted(mask: Any, shape: Sequence[int]) -> Tensor:
    """A mask broadcast to scores of ``shape``. Raises ``ValueError`` where it does not fit."""
    keep = kept(mask)
    try:
        fits = torch.broadcast_shapes(keep.shape, tuple(shape)) == torch.Size(shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"a mask {tuple(keep.shape)} does not fit scores {tuple(shape)}: its last axes are (queries, keys)")
    return keep.expand(tuple(shape))


def empty_rows(A: Tensor) -> Tensor:
    """The queries that have nothing to attend to: all their weights are 0. (..., T, S) -> (..., T)."""
    rows: Tensor = (A == 0).all(dim=-1)
    return rows


def empty_rows_note(A: Tensor) -> tuple[Note, ...]:
    """What is to be said about rows of weights (..., T, S) that have nothing to attend to: the places of the first of them."""
    empty = empty_rows(A)
    count = int(empty.sum())
    if not count:
        return ()
    return (Note("attention.empty_rows", {"count": count, "rows": [tuple(row) for row in empty.nonzero()[:64].tolist()]}),)
