r"""Counting as a rival: n-gram models with Witten-Bell interpolation, the line that a trained network has to beat.

.. math:: P_n(w \mid h) = \frac{c(h w) + t(h)\, P_{n-1}(w \mid h')}{c(h) + t(h)}, \qquad P_0(w) = \frac1V

c counts in the training text, t(h) is the number of different tokens seen after the context h, and h' is h without its oldest
token. A context that was never seen says nothing: :math:`P_n = P_{n-1}`. (Witten and Bell 1991; Chen and Goodman 1998, 2.5.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
HIGHEST = 5


def ngram_losses(train: Sequence[int], held_out: Sequence[int], size: int, highest: int = HIGHEST) -> tuple[float, ...]:
    """Mean negative log-probability of a held-out text, nats per token, for n = 1, 2, ... ``highest``.

    Args:
        train: token numbers that are counted.
        held_out: token numbers that are predicted, each from those before it in this text; the first one is only read.
        size: V, the number of different tokens there may be.

    Raises:
        ValueError: nothing to count, nothing to predict, or a number outside 0..size-1.
    """
    counted, asked = (np.asarray(ids, dtype=np.int64) for ids in (train, held_out))
    if not len(counted) or len(asked) < 2:
        raise ValueError("counting needs a text to count in, and one of at least two tokens to predict")
    every = np.concatenate([counted, asked])
    if every.min() < 0 or every.max() >= size:
        raise ValueError(f"a token number is outside 0 to {size - 1}")
    probability = np.full(len(asked), 1.0 / size)
    context = np.zeros(len(every), dtype=np.int64)  # a number for the n - 1 tokens before each place
    border, losses = len(counted), []
    for n in range(1, highest + 1):
        if n > 1:
            context = _longer(context, every, n, size)
        grams = context * size + every
        known = np.arange(len(every)) >= n - 1
        known[border : border + n - 1] = False  # these contexts would reach from one text into the other
        _interpolate(probability, grams[:border][known[:border]], grams[border:], known[border:], size)
        losses.append(float(-np.log(probability[1:]).mean()))
    return tuple(losses)


def _longer(context: Numbers, every: Numbers, n: int, size: int) -> Numbers:
    """Numbers of contexts of n - 1 tokens from those of n - 2: the token n - 1 places back is added, the numbers stay small."""
    longer = context * size
    longer[n - 1 :] += every[: len(every) - (n - 1)]
    return np.unique(longer, return_inverse=True)[1].astype(np.int64)


def _interpolate(
    probability: NDArray[np.float64], counted: Numbers, asked: Numbers, known: NDArray[np.bool_], size: int
) -> None:
    """One order more, in place: ``probability`` is P_{n-1} of the asked tokens and becomes P_n."""
    grams, times = np.unique(counted, return_counts=True)
    heads = grams // size
    after, kinds = np.unique(heads, return_counts=True)  # t(h)
    total = np.bincount(np.searchsorted(after, heads), weights=times, minlength=len(after))  # c(h)
    own = np.minimum(np.searchsorted(grams, asked), max(len(grams) - 1, 0))
    place = np.minimum(np.searchsorted(after, asked // size), max(len(after) - 1, 0))
    if not len(grams):
        return
    seen = known & (after[place] == asked // size)
    count = np.where(grams[own] == asked, times[own], 0)
    mixed = (count + kinds[place] * probability) / (total[place] + kinds[place])
    np.copyto(probability, mixed, where=seen)
