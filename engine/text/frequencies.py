r"""How often tokens and runs of tokens occur: rank against frequency, and the exponent of Zipf's law.

Zipf: the i-th most frequent item occurs n_i ~ c / i^alpha times, a straight line of slope -alpha on log axes. Fitted here by
least squares of log n on log i, each rank weighted 1/i, so that every stretch of the log axis counts the same (unweighted, the
thousands of rare items at the end would decide alone). Items seen fewer than ``min_count`` times are left out of the fit: at 1
the counts can fall no further, and the line bends into a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FEWEST_RANKS = 3


@dataclass(frozen=True, kw_only=True)
class RankFrequency:
    """The n-grams of a text, most frequent first (equally frequent ones in order of their tokens), with ``counts`` (R,).

    ``exponent`` is alpha and ``scale`` c of the fitted n_i = c / i^alpha over the first ``fitted`` ranks; ``r2`` the share of
    the (weighted) variance of log n that it explains. All three are None when fewer than 3 ranks can be fitted.
    """

    n: int
    ngrams: tuple[tuple[str, ...], ...] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    fitted: int
    exponent: float | None
    scale: float | None
    r2: float | None

    def line(self) -> NDArray[np.float64]:
        """The fitted counts (fitted,) of the ranks 1, 2, ...; empty without a fit."""
        if self.exponent is None or self.scale is None:
            return np.empty(0)
        return np.asarray(self.scale * np.arange(1.0, self.fitted + 1) ** -self.exponent)


def rank_frequency(tokens: Sequence[str], n: int = 1, *, min_count: int = 2) -> RankFrequency:
    """Rank and frequency of the runs of ``n`` tokens. A text with fewer than n tokens has none. Raises ``ValueError``."""
    if n < 1 or min_count < 1:
        raise ValueError(f"n and min_count must be at least 1, not {n} and {min_count}")
    counted = Counter(zip(*(tokens[k:] for k in range(n)), strict=False))
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    counts = np.array([count for _, count in ranked], dtype=np.int64)
    fitted = int((counts >= min_count).sum())
    exponent, scale, r2 = fit_zipf(counts[:fitted]) if fitted >= FEWEST_RANKS else (None, None, None)
    return RankFrequency(
        n=n,
        ngrams=tuple(ngram for ngram, _ in ranked),
        counts=counts,
        fitted=fitted,
        exponent=exponent,
        scale=scale,
        r2=r2,
    )


def fit_zipf(counts: NDArray[np.int64]) -> tuple[float, float, float]:
    """alpha, c and r2 of n_i = c / i^alpha through all the counts (R,), most frequent first; see the module's text."""
    rank = np.arange(1.0, len(counts) + 1)
    x, y, weight = np.log(rank), np.log(counts), 1 / rank / (1 / rank).sum()
    away_x, away_y = x - weight @ x, y - weight @ y
    slope = float(weight @ (away_x * away_y) / (weight @ away_x**2))
    left = away_y - slope * away_x
    spread = float(weight @ away_y**2)
    r2 = 1 - float(weight @ left**2) / spread if spread > 1e-20 else 1.0  # equal counts: the flat line is exact
    return -slope, float(np.exp(weight @ y - slope * (weight @ x))), r2
