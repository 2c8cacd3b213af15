"""The input of the lesson on scores: a query, a key and a value for each token of a text, drawn at random, and the weights of
the scores that have some.

Every distinct token has vectors of its own, from N(0, 1): equal tokens have equal queries and keys, and a wider vector begins
with the narrower one. So q . k has the variance d, which is what the division by sqrt(d) is there for. Weights are drawn at a
size at which a score neither grows nor shrinks with its width: W from N(0, 1/(d_q d_k)), W_q and W_k from N(0, 1/d), w_v from
N(0, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from engine.attention.masks import keep_all_of, keep_past, keep_valid
from engine.attention.scores import SCORES, attend, attention
from engine.equation import Values
from engine.operations import masked_softmax
from engine.trace import Array, Trace

WIDEST: Final = 512
VALUES: Final = 4  # numbers of a value
MASKS: Final = ("all", "valid", "causal", "own")
_APART = 100_003  # between the seeds of two draws


def _drawn(shape: Sequence[int], seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def vectors(tokens: Sequence[str], width: int, key_width: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Q (n, width), K (n, key_width) and V (n, 4) of a text's tokens."""
    numbers = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    whole = [_drawn((2 * WIDEST + VALUES,), seed * _APART + 1 + number) for number in range(len(numbers))]
    drawn = torch.stack([whole[numbers[token]] for token in tokens])
    return drawn[:, :width], drawn[:, WIDEST : WIDEST + key_width], drawn[:, 2 * WIDEST :]


def weights(score: str, width: int, key_width: int, hidden: int, seed: int) -> Values:
    """The weights of a score, by name; none for the products."""
    own = -(seed * _APART + 1)
    if score == "bilinear":
        return {"W": _drawn((width, key_width), own % 2**31) / (width * key_width) ** 0.5}
    if score == "additive":
        return {
            "W_q": _drawn((width, hidden), (own - 1) % 2**31) / width**0.5,
            "W_k": _drawn((key_width, hidden), (own - 2) % 2**31) / key_width**0.5,
            "w_v": _drawn((hidden,), (own - 3) % 2**31),
        }
    return {}


def mask_of(kind: str, count: int, length: int, hidden: Sequence[int] = ()) -> Tensor:
    """Who sees whom (T, S) among ``count`` tokens. ``length`` of them are real where it is "valid"; ``hidden`` are the cells
    t * count + s that one's own mask hides.
    """
    if kind == "valid":
        return keep_valid(length, count).expand(count, count)
    if kind == "causal":
        return keep_past(count)
    keep = torch.ones(count, count, dtype=torch.bool)
    if kind == "own" and hidden:
        keep.view(-1)[list(hidden)] = False
    return keep_all_of(keep)


@dataclass(frozen=True, kw_only=True)
class ScoringRun:
    """What the learner is looking at: vectors, a score with its weights, a mask, a temperature, and a place."""

    tokens: tuple[str, ...]
    score: str
    width: int
    key_width: int
    hidden: int
    seed: int
    mask: Tensor = field(repr=False)
    temperature: float = 1.0
    step: int = 0
    key: int = 0

    def same(self, other: ScoringRun) -> bool:
        """Whether the other asks about the same run and place."""
        mine, its = ({k: v for k, v in vars(run).items() if k != "mask"} for run in (self, other))
        return mine == its and torch.equal(self.mask, other.mask)

    @property
    def fits(self) -> bool:
        """Whether the score is defined for these widths."""
        return not SCORES[self.score].equal_widths or self.width == self.key_width

    def operands(self) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K and V."""
        return vectors(self.tokens, self.width, self.key_width, self.seed)

    def weights(self, score: str = "") -> Values:
        """The weights of the run's score, or of another one."""
        return weights(score or self.score, self.width, self.key_width, self.hidden, self.seed)

    def trace(self) -> Trace:
        """The run. Raises ``ValueError`` where the widths do not fit the score."""
        temperature = None if self.temperature == 1 else self.temperature
        learned: dict[str, Any] = dict(self.weights())
        return attend(*self.operands(), self.score, self.mask, temperature=temperature, **learned)

    def shares(self, score: str, scale: float = 1.0) -> Values:
        """S, A and O of another score on the same input, queries ``scale`` times as long."""
        Q, K, V = self.operands()
        learned: dict[str, Any] = dict(self.weights(score))
        return attention(scale * Q, K, V, score, self.mask, **learned)

    def without_keys(self) -> dict[str, Array] | None:
        """The first query's weights if it may attend to nothing: here, and with the textbook's -1e6 or minus infinity in place
        of its scores. None where the widths do not fit the score.
        """
        if not self.fits:
            return None
        scores = self.shares(self.score)["S"][:1]
        nothing = torch.zeros_like(scores, dtype=torch.bool)
        ways = {
            "here": masked_softmax(scores, nothing),
            "book": torch.softmax(torch.full_like(scores, -1e6), dim=-1),
            "infinity": torch.softmax(torch.full_like(scores, -float("inf")), dim=-1),
        }
        return {name: weights[0].numpy() for name, weights in ways.items()}


def bound(run: ScoringRun) -> float:
    """What no additive score of the run exceeds, in either direction: the sum of the sizes in w_v."""
    return float(run.weights("additive")["w_v"].abs().sum())


def growth(run: ScoringRun, factors: Sequence[float]) -> dict[str, list[float]]:
    """The largest size of a score, for queries so many times as long: by score, of those that fit the widths."""
    found = {}
    for name, score in SCORES.items():
        if not score.equal_widths or run.width == run.key_width:
            found[name] = [float(run.shares(name, factor)["S"].abs().max()) for factor in factors]
    return found


def narrowing(widths: Sequence[int], keys: int, seed: int) -> tuple[Tensor, Tensor]:
    """One random query over random keys: the softmax of q . k, and of q . k / sqrt(d), for each width d. (G, keys) each."""
    q, K = _drawn((1, max(widths)), seed * _APART + 50_000), _drawn((keys, max(widths)), seed * _APART + 50_001)
    plain, scaled = (
        torch.cat([attention(q[:, :d], K[:, :d], K[:, :1], score)["A"] for d in widths])
        for score in ("dot_product", "scaled_dot_product")
    )
    return plain, scaled
