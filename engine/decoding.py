r"""From scores to text: greedy, sampled, and by beam search. Every function returns its steps, not only its answer.

The model comes in as one function, ``step(ids) -> scores``: given all token numbers so far (a tuple), the scores (logits)
of the next token, shape (V,). ``with_state`` makes such a function from a recurrent model or a key/value cache.

Probabilities are computed in float64, in this order: temperature, top-k, top-p; what is kept is normalised again. Random
numbers come from the generator that is passed in, one per drawn token.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.notes import Note
from engine.text.vocabulary import UNKNOWN, Vocabulary

Ids = tuple[int, ...]
Step = Callable[[Ids], Tensor]

_ROUNDING = 1e-12  # sums of probabilities are compared to this precision


class DeadEnd(ValueError):
    """A place from which no token is allowed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """One generated token and how it was chosen."""

    token: int
    probability: float  # of the token in the distribution it was chosen from
    log_probability: float  # of the token by the model's own scores, natural logarithm
    probabilities: NDArray[np.float64]  # (V,), after temperature, top-k and top-p; read-only
    cumulative: NDArray[np.float64]  # (V,), running sum of the probabilities; read-only
    draw: float | None  # the random number in 0..1: the first token whose running sum exceeds it is taken; None = greedy


@dataclass(frozen=True, kw_only=True, eq=False)
class Generation:
    """A generated continuation: ``prefix`` was given, ``tokens`` were added, one ``Choice`` each."""

    prefix: Ids
    tokens: Ids
    steps: tuple[Choice, ...]
    stopped: bool  # the last token is a stop token
    log_probability: float  # sum over the tokens, by the model's own scores
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One extension that beam search looked at."""

    parent: int  # which of the beam's hypotheses it extends, by rank
    token: int
    log_probability: float  # of the whole hypothesis
    kept: bool
    stopped: bool


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One complete answer of beam search. ``score`` is log-probability / length ** alpha."""

    tokens: Ids
    log_probability: float
    score: float
    stopped: bool


@dataclass(frozen=True, kw_only=True)
class BeamSearch:
    """The answers, best first, and the tree: at each step, the best extensions of each hypothesis, the kept ones marked."""

    prefix: Ids
    hypotheses: tuple[Hypothesis, ...]
    steps: tuple[tuple[Branch, ...], ...]
    notes: tuple[Note, ...] = ()

    @property
    def best(self) -> Hypothesis:
        return self.hypotheses[0]


# From scores to probabilities


def next_token_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """Softmax with temperature, then top-k, then top-p. A new float64 tensor; the scores are not changed.

    Args:
        logits: scores (..., V); minus infinity forbids a token.
        temperature: above 1 flattens, below 1 sharpens, 0 gives the largest score all probability (of equals the first).
        top_k: keep the k most likely, of equals the first; None or more than V keeps all.
        top_p: keep the most likely until their sum reaches p, at least one; None or 1 keeps all.

    Raises:
        ValueError: an option outside its range, a score that is NaN or plus infinity, or no token that is allowed.
    """
    _check_options(temperature, top_k, top_p)
    scores = _checked(logits)
    best = scores.max(dim=-1, keepdim=True).values
    if temperature == 0:
        return torch.zeros_like(scores).scatter(-1, scores.argmax(dim=-1, keepdim=True), 1.0)
    # The largest score is taken off first: dividing by a tiny temperature then gives -inf, never inf - inf.
    probabilities = torch.softmax((scores - best) / temperature, dim=-1)
    if (top_k is None or top_k >= scores.shape[-1]) and (top_p is None or top_p == 1):
        return probabilities
    order = probabilities.argsort(dim=-1, descending=True, stable=True)
    ranked = probabilities.gather(-1, order)
    if top_k is not None:
        ranked[..., top_k:] = 0
        ranked = ranked / ranked.sum(dim=-1, keepdim=True)
    if top_p is not None and top_p < 1:
        before = ranked.cumsum(dim=-1) - ranked
        kept = before < top_p - _ROUNDING
        kept[..., 0] = True  # also where p is less than the precision of the sums
        ranked = torch.where(kept, ranked, 0.0)
        ranked = ranked / ranked.sum(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter(-1, order, ranked)


def _check_options(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if not (math.isfinite(temperature) and temperature >= 0):
        raise ValueError(f"temperature must be a number of at least 0, got {temperature}")
    if top_k is not None and not _whole(top_k, 1):
        raise ValueError(f"top_k must be a whole number of at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be above 0 and at most 1, got {top_p}")


def _whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number from ``least`` on, Python's or NumPy's."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def _next(scores: Tensor, forbidden: Collection[int]) -> Tensor:
    """The scores (V,) that a model gave for the next token, checked."""
    given = torch.as_tensor(scores)
    if given.dim() != 1:
        raise ValueError(f"a step gives one score per token of the vocabulary, (V,), not the shape {tuple(given.shape)}")
    return _checked(given, forbidden)


def _checked(logits: Tensor, forbidden: Collection[int] = ()) -> Tensor:
    """The scores in float64, forbidden tokens at minus infinity; a copy."""
    scores = torch.as_tensor(logits).detach().to(torch.float64, copy=True)
    if scores.dim() < 1 or not scores.shape[-1]:
        raise ValueError(f"scores have one number per token of the vocabulary, got the shape {tuple(scores.shape)}")
    if bool((scores.isnan() | (scores == math.inf)).any()):
        raise ValueError("a score is not a number or plus infinity: the model has diverged")
    if forbidden:
        outside = [token for token in forbidden if not 0 <= token < scores.shape[-1]]
        if outside:
            raise ValueError(f"token number {outside[0]} cannot be forbidden: the vocabulary has {scores.shape[-1]} tokens")
        scores[..., sorted(forbidden)] = -math.inf
    if bool((scores == -math.inf).all(dim=-1).any()):
        raise DeadEnd("no token is allowed: every score is minus infinity")
    return scores


# One token after the other


def greedy(
    step: Step, prefix: Sequence[int], max_tokens: int, *, stop: Collection[int] = (), forbidden: Collection[int] = ()
) -> Generation:
    """Always the most likely token; of equals the first.

    Args:
        step: scores of the next token, see the module.
        prefix: token numbers to begin with, at least one.
        max_tokens: how many tokens to add at most.
        stop: tokens after which generation ends; they are part of the answer.
        forbidden: tokens that are never chosen (``<unk>``, ``<pad>``).
    """
    return _generate(step, prefix, max_tokens, stop, forbidden, None, 0.0, None, None)


def sample(
    step: Step,
    prefix: Sequence[int],
    max_tokens: int,
    generator: torch.Generator,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: Collection[int] = (),
    forbidden: Collection[int] = (),
) -> Generation:
    """Draw each token from ``next_token_probabilities``; the other arguments are those of ``greedy``.

    At temperature 0 nothing is drawn and the generator is not touched; a note says so (``decoding.greedy``). A `top_k`
    beyond the vocabulary keeps everything; a note says so (``decoding.top_k_is_all``: top_k, size).
    """
    return _generate(step, prefix, max_tokens, stop, forbidden, generator, temperature, top_k, top_p)


def _generate(
    step: Step,
    prefix: Sequence[int],
    max_tokens: int,
    stop: Collection[int],
    forbidden: Collection[int],
    generator: torch.Generator | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> Generation:
    _check_options(temperature, top_k, top_p)
    start = _start(prefix, max_tokens)
    notes = [Note("decoding.greedy")] if generator is not None and temperature == 0 else []
    ids = start
    steps: list[Choice] = []
    for _ in range(max_tokens):
        scores = _next(step(ids), forbidden)
        if top_k is not None and top_k > len(scores) and not steps:
            notes.append(Note("decoding.top_k_is_all", {"top_k": top_k, "size": len(scores)}))
        probabilities = next_token_probabilities(scores, temperature, top_k, top_p)
        cumulative = probabilities.cumsum(0)
        if generator is None or temperature == 0:
            draw, token = None, int(probabilities.argmax())
        else:
            draw = float(torch.rand((), generator=generator, dtype=torch.float64))
            token = _drawn(probabilities, cumulative, draw)
        ids = (*ids, token)
        steps.append(
            Choice(
                token=token,
                probability=float(probabilities[token]),
                log_probability=float(torch.log_softmax(scores, 0)[token]),
                probabilities=_frozen(probabilities),
                cumulative=_frozen(cumulative),
                draw=draw,
            )
        )
        if token in stop:
            break
    return Generation(
        prefix=start,
        tokens=ids[len(start) :],
        steps=tuple(steps),
        stopped=bool(steps) and steps[-1].token in stop,
        log_probability=math.fsum(each.log_probability for each in steps),
        notes=tuple(notes),
    )


def _drawn(probabilities: Tensor, cumulative: Tensor, draw: float) -> int:
    """The first token whose running sum exceeds the draw; the last possible one where rounding leaves the sum below it."""
    place = int(torch.searchsorted(cumulative, torch.tensor(draw, dtype=torch.float64), right=True))
    return place if place < len(cumulative) else int(probabilities.nonzero()[-1])


def _start(prefix: Sequence[int], max_tokens: int) -> Ids:
    start = tuple(int(each) for each in prefix)
    if not start:
        raise ValueError("generation needs at least one token to begin with (encode_prefix chooses one)")
    if not _whole(max_tokens, 0):
        raise ValueError(f"max_tokens must be a whole number of at least 0, got {max_tokens}")
    return start


def _frozen(values: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = values.numpy().copy()
    array.flags.writeable = False
    return array


# Several at once


def beam_search(
    step: Step,
    prefix: Sequence[int],
    max_tokens: int,
    width: int,
    *,
    alpha: float = 0.75,
    stop: Collection[int] = (),
    forbidden: Collection[int] = (),
) -> BeamSearch:
    """Keep the `width` most likely continuations at every step (d2l, section 9.8).

    A hypothesis that ends with a stop token is complete and leaves the beam, which gets narrower by one. Answers are
    ranked by log-probability / length ** alpha; alpha 0 ranks by probability alone. Width 1 is greedy search. A width
    beyond the number of possible continuations keeps as many as there are. Equally likely ones are kept in the order of
    their parents' rank, then of their token. A hypothesis after which no token is allowed falls out of the beam; where all
    do and none is complete, a ``DeadEnd`` is raised.

    The other arguments are those of ``greedy``.
    """
    start = _start(prefix, max_tokens)
    if not _whole(width, 1):
        raise ValueError(f"width must be a whole number of at least 1, got {width}")
    if not (math.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a number of at least 0, got {alpha}")
    beam: list[tuple[Ids, float]] = [((), 0.0)]
    complete: list[tuple[Ids, float]] = []
    steps = []
    for _ in range(max_tokens):
        room = width - len(complete)
        if not beam or not room:
            break
        found = _extensions(step, start, beam, room, forbidden)
        if not found and not complete:
            raise DeadEnd("no token is allowed after any of the hypotheses")
        kept = set(sorted(range(len(found)), key=lambda k: -found[k][2])[:room])  # sorted is stable: see the docstring
        steps.append(
            tuple(
                Branch(parent=parent, token=token, log_probability=total, kept=k in kept, stopped=token in stop)
                for k, (parent, token, total) in enumerate(found)
            )
        )
        chosen = [((*beam[found[k][0]][0], found[k][1]), found[k][2]) for k in sorted(kept, key=lambda k: -found[k][2])]
        complete += [each for each in chosen if each[0][-1] in stop]
        beam = [each for each in chosen if each[0][-1] not in stop]
    answers = [
        Hypothesis(
            tokens=tokens,
            log_probability=total,
            score=total / max(1, len(tokens)) ** alpha,
            stopped=bool(tokens) and tokens[-1] in stop,
        )
        for tokens, total in (*complete, *beam)
    ]
    return BeamSearch(prefix=start, hypotheses=tuple(sorted(answers, key=lambda answer: -answer.score)), steps=tuple(steps))


def _extensions(
    step: Step, start: Ids, beam: list[tuple[Ids, float]], room: int, forbidden: Collection[int]
) -> list[tuple[int, int, float]]:
    """The `room` likeliest extensions of each hypothesis: (parent, token, log-probability of the whole); none of a dead end."""
    found = []
    for parent, (tokens, total) in enumerate(beam):
        try:
            gains = torch.log_softmax(_next(step(start + tokens), forbidden), 0)
        except DeadEnd:
            continue
        order = gains.argsort(descending=True, stable=True)[:room].tolist()
        found += [(parent, token, total + float(gains[token])) for token in order if gains[token] > -math.inf]
    return found


# Beginning and continuing


def encode_prefix(tokens: Sequence[str], vocabulary: Vocabulary) -> tuple[Ids, tuple[Note, ...]]:
    """Token numbers to begin with. What the vocabulary lacks becomes ``<unk>``, and nothing becomes its first token.

    Notes: ``prefix.unknown`` (tokens, positions) and ``prefix.empty`` (token: the one that stands in).
    """
    if not tokens:
        stand_in = next((token for token in vocabulary.counts if token in vocabulary and token != UNKNOWN), None)
        if stand_in is None:
            stand_in = vocabulary.tokens[-1]
        return (vocabulary[stand_in],), (Note("prefix.empty", {"token": stand_in}),)
    positions = [k for k, token in enumerate(tokens) if token not in vocabulary]
    unknown = list(dict.fromkeys(tokens[k] for k in positions))
    notes = (Note("prefix.unknown", {"tokens": unknown, "positions": positions}),) if positions else ()
    return tuple(vocabulary[list(tokens)]), notes


def with_state(advance: Callable[[Ids, Any], tuple[Tensor, Any]], keep: int = 64) -> Step:
    """A ``step`` from a model that carries a state, so that each new token costs one step and not the whole prefix again.

    Args:
        advance: ``advance(new_ids, state) -> (scores of the next token (V,), state)``; the first state is None. It must
            not change the state it is given: beam search goes on from one state several times.
        keep: how many prefixes' states are remembered, the latest ones.
    """
    known: OrderedDict[Ids, tuple[Tensor, Any]] = OrderedDict()

    def step(ids: Ids) -> Tensor:
        if ids not in known:
            # The longest prefix that is known; generation asks for one more token than before.
            cut = next((n for n in range(len(ids) - 1, 0, -1) if ids[:n] in known), 0)
            known[ids] = advance(ids[cut:], known[ids[:cut]][1] if cut else None)
            if len(known) > keep:
                known.popitem(last=False)
        known.move_to_end(ids)
        return known[ids][0]

    return step
