r"""Numbers that judge a model: loss and perplexity, BLEU, the norm of a gradient.

Loss is in nats per token: the mean negative natural logarithm of the probability of each real next token. Perplexity is
its exponential, the geometric mean of 1/p. Sums and counts are kept (``TokenLoss``), never means of means.

BLEU has two definitions that must not be compared (``definition=``):

* ``"textbook"`` (d2l, section 9.7): :math:`\exp(\min(0, 1 - r/c)) \prod_{n=1}^{k} p_n^{1/2^n}`, in 0..1, for one sentence.
  A candidate shorter than k has no n-grams of length k; k is then its length (the book's code divides by zero there).
* ``"standard"`` (Papineni et al. 2002, as sacrebleu computes it): geometric mean of the precisions with equal weights
  times the brevity penalty, in 0..100. Sentences without a 4-gram score 0, unless ``effective_order``.
"""

import math
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

_READABLE = 1e6  # a larger perplexity is written as a power of ten

Tokens = Sequence[Hashable]


# Loss and perplexity


def perplexity(mean_nll: float) -> float:
    """exp of the mean negative log-likelihood in nats per token; infinity when that is no float64."""
    try:
        return math.exp(mean_nll)
    except OverflowError:
        return math.inf


def perplexity_text(mean_nll: float, digits: int = 2) -> str:
    """Perplexity for reading: ``54.60``, and ``10^434.29`` where it has too many digits or is no float64."""
    if math.isnan(mean_nll) or math.isinf(mean_nll):
        return {math.inf: "∞", -math.inf: f"{0:.{digits}f}"}.get(mean_nll, "NaN")
    value = perplexity(mean_nll)
    return f"{value:.{digits}f}" if value < _READABLE else f"10^{mean_nll / math.log(10):.{digits}f}"


def bits_per_token(mean_nll: float) -> float:
    """The same loss in bits: nats divided by ln 2."""
    return mean_nll / math.log(2)


def predictions(tokens: int, start_mark: bool = False) -> int:
    """How many tokens of a text are predicted: all but the first, or all when a start mark stands before them."""
    return tokens if start_mark else max(0, tokens - 1)


@dataclass(frozen=True)
class TokenLoss:
    """A sum of negative log-likelihoods and the number of real tokens it runs over. Add them up; divide once."""

    total: float = 0.0  # nats
    tokens: int = 0

    @classmethod
    def of(cls, nll: Any, lengths: Iterable[int] | None = None) -> "TokenLoss":
        """From rows of negative log-likelihoods, of which the first ``lengths[i]`` of row i count; the rest is padding.

        Shape:
            nll: B rows of T (a list of lists, rows of different length allowed, or a tensor (B, T)); lengths (B,)
        """
        rows = _numbers(nll)
        limits = [len(row) for row in rows] if lengths is None else list(_numbers(lengths))
        if len(limits) != len(rows) or any(not 0 <= limit <= len(row) for limit, row in zip(limits, rows, strict=True)):
            raise ValueError(f"{len(rows)} rows of {[len(row) for row in rows]} steps do not have the lengths {limits}")
        # Padding is cut off, not multiplied by 0: 0 times infinity is not 0.
        real = [value for row, limit in zip(rows, limits, strict=True) for value in row[:limit]]
        return cls(_sum(real), len(real))

    @classmethod
    def of_mean(cls, mean: float, tokens: int) -> "TokenLoss":
        """From the mean loss of a chunk and the number of tokens it is the mean of; of no token, whatever the mean, nothing."""
        if tokens < 0:
            raise ValueError(f"a chunk has at least 0 tokens, not {tokens}")
        return cls(mean * tokens, tokens) if tokens else cls()

    def __add__(self, other: "TokenLoss") -> "TokenLoss":
        return TokenLoss(self.total + other.total, self.tokens + other.tokens)

    @property
    def mean(self) -> float | None:
        """Nats per token; None when there was nothing to predict."""
        return self.total / self.tokens if self.tokens else None

    @property
    def perplexity(self) -> float | None:
        """Per token, over all of the text; None (not defined) when there was nothing to predict."""
        return perplexity(self.total / self.tokens) if self.tokens else None


def mean_of_sequence_perplexities(nll: Any, lengths: Iterable[int] | None = None) -> float | None:
    """The other mean, which must be named where it is shown: each sequence has its own perplexity, all weigh alike."""
    rows = _numbers(nll)
    limits = [len(row) for row in rows] if lengths is None else list(_numbers(lengths))
    each = [TokenLoss.of([row], [limit]).perplexity for row, limit in zip(rows, limits, strict=True)]
    defined = [value for value in each if value is not None]
    return _sum(defined) / len(defined) if defined else None


def textbook_sequence_loss(nll: Any, lengths: Iterable[int]) -> float | None:
    """The loss that the textbook's training prints (d2l, section 9.7): too small by the factor T.

    Each masked row is averaged over all T steps, padding included, and the sum of those is then divided by the number of
    real tokens. ``TokenLoss`` is the right value; this one is shown beside it.
    """
    loss, steps = TokenLoss.of(nll, lengths), max((len(row) for row in _numbers(nll)), default=0)
    return loss.mean / steps if loss.mean is not None and steps else None


def _sum(values: Iterable[float]) -> float:
    """The sum rounded once; infinity beyond float64, NaN for infinities of both signs."""
    numbers = list(values)
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return sum(numbers)


def _numbers(values: Any) -> list[Any]:
    """Lists of Python numbers from lists, arrays or tensors."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    return [each.tolist() if hasattr(each, "tolist") else each for each in values]


# BLEU


@dataclass(frozen=True, kw_only=True)
class BleuScore:
    """A BLEU score and what it is made of. Everything indexed by n - 1 for n-grams of length n."""

    score: float
    matches: tuple[int, ...]  # n-grams of the candidate found in a reference, clipped to how often they stand there
    totals: tuple[int, ...]  # n-grams of the candidate
    precisions: tuple[float, ...]  # per cent, after smoothing
    brevity_penalty: float
    candidate_length: int
    reference_length: int


def bleu(
    candidate: Tokens,
    reference: Tokens | Sequence[Tokens],
    max_n: int = 4,
    definition: Literal["textbook", "standard"] = "textbook",
    *,
    smoothing: Literal["none", "exp"] = "none",
    effective_order: bool = False,
) -> float:
    """BLEU of one sentence: in 0..1 as the textbook defines it, in 0..100 by the standard (see the module).

    Args:
        candidate: the tokens of the prediction; none gives 0.
        reference: the tokens of the reference, or a list of several references.
        max_n: longest n-gram that counts; the textbook uses 2, the standard 4.
        smoothing: standard only. ``exp`` counts the i-th n without a match as 1 / 2^i matches.
        effective_order: standard only. Leave out n for which the candidate has no n-gram at all.

    Raises:
        TypeError: a text where a list of tokens belongs (its letters would be compared).
    """
    if definition == "textbook":
        return bleu_textbook(candidate, reference, max_n).score
    if definition == "standard":
        return corpus_bleu([candidate], [reference], max_n, smoothing=smoothing, effective_order=effective_order).score
    raise ValueError(f"definition is 'textbook' or 'standard', got {definition!r}")


def bleu_textbook(candidate: Tokens, reference: Tokens | Sequence[Tokens], max_n: int = 2) -> BleuScore:
    """The textbook's BLEU with its parts; ``score`` in 0..1."""
    matches, totals, length, wanted = _count(candidate, reference, max_n)
    if not length:
        return BleuScore(
            score=0.0,
            matches=matches,
            totals=totals,
            precisions=(0.0,) * max_n,
            brevity_penalty=0.0,
            candidate_length=0,
            reference_length=wanted,
        )
    penalty = math.exp(min(0.0, 1 - wanted / length))
    shares = [match / total for match, total in zip(matches, totals, strict=True) if total]
    return BleuScore(
        score=penalty * math.prod(share ** (0.5**n) for n, share in enumerate(shares, 1)),
        matches=matches,
        totals=totals,
        precisions=tuple(100 * match / total if total else 0.0 for match, total in zip(matches, totals, strict=True)),
        brevity_penalty=penalty,
        candidate_length=length,
        reference_length=wanted,
    )


def corpus_bleu(
    candidates: Sequence[Tokens],
    references: Sequence[Tokens | Sequence[Tokens]],
    max_n: int = 4,
    *,
    smoothing: Literal["none", "exp"] = "none",
    effective_order: bool = False,
) -> BleuScore:
    """The standard BLEU of a corpus with its parts: matches and lengths are summed over sentences, then divided.

    ``references[i]`` belongs to ``candidates[i]``: the tokens of one reference, or a list of several.
    """
    if len(candidates) != len(references):
        raise ValueError(f"{len(candidates)} candidates cannot be compared with the references of {len(references)}")
    if smoothing not in ("none", "exp"):
        raise ValueError(f"smoothing is 'none' or 'exp', got {smoothing!r}")
    counted = [_count(candidate, reference, max_n) for candidate, reference in zip(candidates, references, strict=True)]
    matches = tuple(sum(each[0][n] for each in counted) for n in range(max_n))
    totals = tuple(sum(each[1][n] for each in counted) for n in range(max_n))
    length, wanted = sum(each[2] for each in counted), sum(each[3] for each in counted)
    penalty = 1.0 if length >= wanted else math.exp(1 - wanted / length) if length else 0.0
    shares, halving = [], 1.0
    for match, total in zip(matches, totals, strict=True):
        if total and not match and smoothing == "exp" and any(matches):
            halving /= 2
            shares.append(halving / total)
        else:
            shares.append(match / total if total else 0.0)
    counting = [share for share, total in zip(shares, totals, strict=True) if total] if effective_order else shares
    score = 0.0
    if counting and min(counting) > 0:  # one n without a match makes the geometric mean 0
        score = 100 * penalty * math.exp(math.fsum(map(math.log, counting)) / len(counting))
    return BleuScore(
        score=score,
        matches=matches,
        totals=totals,
        precisions=tuple(100 * share for share in shares),
        brevity_penalty=penalty,
        candidate_length=length,
        reference_length=wanted,
    )


def _count(
    candidate: Tokens, reference: Tokens | Sequence[Tokens], max_n: int
) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """Clipped matches and totals per n, the candidate's length, and the reference length nearest to it (the shorter of two)."""
    if max_n < 1:
        raise ValueError(f"max_n must be at least 1, got {max_n}")
    candidate, reference = _listed(candidate), _listed(reference)
    several: list[Tokens] = list(reference) if reference and isinstance(reference[0], (list, tuple)) else [reference]  # type: ignore[arg-type]
    if isinstance(candidate, str) or any(isinstance(each, str) for each in several):
        raise TypeError("BLEU compares lists of tokens, got a text: tokenize it first")
    matches, totals = [], []
    for n in range(1, max_n + 1):
        found = _ngrams(candidate, n)
        allowed: Counter[Tokens] = Counter()
        for each in several:
            allowed |= _ngrams(each, n)
        matches.append((found & allowed).total())
        totals.append(found.total())
    length = len(candidate)
    return tuple(matches), tuple(totals), length, min((abs(len(each) - length), len(each)) for each in several)[1]


def _listed(tokens: Any) -> Any:
    """Tokens of an array or a tensor as a list."""
    return tokens.tolist() if hasattr(tokens, "tolist") else tokens


def _ngrams(tokens: Tokens, n: int) -> Counter[Tokens]:
    """N-grams as tuples: joined text would find "he" in "they" and take "ab c" for "a bc"."""
    return Counter(tuple(tokens[k : k + n]) for k in range(len(tokens) - n + 1))


# Clipping of gradients


def clip_by_norm(gradients: Iterable[Any], max_norm: float) -> tuple[list[Tensor | None], float]:
    """Scale all gradients together so that their one norm is at most `max_norm`: g <- min(1, max_norm / |g|) g.

    The norm is taken in float64 on scaled numbers, so 1e20 in float32 or 1e200 in float64 does not overflow. Below the
    threshold nothing changes: clipping cures explosion, not vanishing.

    When a gradient holds an infinity or NaN there is no direction to go: the returned norm is not finite and the returned
    gradients are all zero. The caller must skip the step (an optimiser with momentum moves on zeros too) and say so.

    Args:
        gradients: tensors, arrays or lists of numbers; None for a parameter without gradient, which stays None.
        max_norm: above 0; infinity leaves everything as it is and still reports the norm.

    Returns:
        New tensors in the order given, nothing is changed in place; and the norm before clipping, 0 for no gradients.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be above 0, got {max_norm}")
    tensors = [None if each is None else _tensor(each) for each in gradients]
    wide = [each.detach().to(torch.float64) for each in tensors if each is not None and each.numel()]
    largest = max((float(each.abs().max()) for each in wide), default=0.0)
    if not all(bool(each.isfinite().all()) for each in wide):
        norm = math.nan if any(bool(each.isnan().any()) for each in wide) else math.inf
        return [None if each is None else torch.zeros_like(each) for each in tensors], norm
    if largest == 0:
        return [None if each is None else each.detach().clone() for each in tensors], 0.0
    scaled_norm = math.sqrt(math.fsum(float((each / largest).square().sum()) for each in wide))
    # Beyond the largest float64 the norm is reported as that number: infinity is kept for gradients without a direction.
    norm = min(largest * scaled_norm, sys.float_info.max)
    if norm <= max_norm:
        return [None if each is None else each.detach().clone() for each in tensors], norm
    factor = max_norm / scaled_norm
    return [
        None if each is None else (each.detach().to(torch.float64) / largest * factor).to(each.dtype) for each in tensors
    ], norm


def clip_by_value(gradients: Iterable[Any], limit: float) -> list[Tensor | None]:
    """Cut each entry to -limit..limit on its own. Not clipping by norm: the direction may turn."""
    if not limit > 0:
        raise ValueError(f"limit must be above 0, got {limit}")
    return [None if each is None else _tensor(each).detach().clamp(-limit, limit) for each in gradients]


def _tensor(values: Any) -> Tensor:
    """A tensor of a floating dtype: whole numbers would lose what clipping leaves of them."""
    given = values if isinstance(values, Tensor) else torch.as_tensor(values, dtype=torch.float64)
    return given if given.is_floating_point() else given.to(torch.float64)
