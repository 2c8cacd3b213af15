r"""Word vectors of a learner's own text in a second, without training by steps.

How much more often two tokens stand near each other than chance would have it, max(0, log P(a, b) / P(a) P(b)), is a matrix of
the vocabulary by itself; its leading eigenvectors are vectors in which tokens of like company lie together. Skip-gram with
negative sampling is trained towards a factorisation of such a matrix (Levy & Goldberg 2014); here it is factorised directly. So
this is what an embedding learns, and nothing in it is drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

LARGEST = 2000  # tokens: a matrix of this size is factorised in seconds
SMOOTHING = 0.75  # power of the context counts, which keeps rare contexts from weighing too much


def cooccurrence(ids: Sequence[int] | Tensor, size: int, window: int = 5) -> NDArray[np.float64]:
    """How often tokens a and b stand at most ``window`` places apart, (size, size), symmetric; numbers below 0 are left out."""
    numbers = np.asarray(ids, dtype=np.int64)
    if not 1 <= size <= LARGEST or window < 1:
        raise ValueError(f"1 to {LARGEST} tokens and a window of at least 1 are needed, not {size} and {window}")
    if numbers.size and numbers.max() >= size:
        raise ValueError(f"token number {numbers.max()} is outside the vocabulary of {size} tokens")
    counts = np.zeros(size * size)
    for distance in range(1, min(window, len(numbers) - 1) + 1):
        one, other = numbers[:-distance], numbers[distance:]
        known = (one >= 0) & (other >= 0)
        counts += np.bincount(one[known] * size + other[known], minlength=size * size)
    table = counts.reshape(size, size)
    return table + table.T


def surprise(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positive pointwise mutual information (V, V), made symmetric; 0 where two tokens never meet or one never occurs."""
    rows = counts.sum(axis=1)
    smoothed = rows**SMOOTHING
    expected = np.outer(rows, smoothed / max(smoothed.sum(), 1.0))
    met = (counts > 0) & (expected > 0)
    found = np.zeros_like(counts)
    found[met] = np.maximum(0.0, np.log(counts[met] / expected[met]))
    return (found + found.T) / 2


def word_vectors(ids: Sequence[int] | Tensor, size: int, width: int = 32, window: int = 5) -> NDArray[np.float64]:
    """Vectors (size, width) of the tokens of a text; tokens without company have a row of zeros.

    ``width`` is at most ``size``. Of the two directions of an axis the one is taken whose largest entry is positive.
    """
    if not 1 <= width <= size:
        raise ValueError(f"the width must be from 1 to the number of tokens, {size}, not {width}")
    values, vectors = np.linalg.eigh(surprise(cooccurrence(ids, size, window)))
    chosen = np.argsort(-np.abs(values), kind="stable")[:width]
    axes = vectors[:, chosen]
    signs = np.sign(axes[np.argmax(np.abs(axes), axis=0), np.arange(width)])
    return np.asarray(axes * np.where(signs == 0, 1, signs) * np.sqrt(np.abs(values[chosen])))
