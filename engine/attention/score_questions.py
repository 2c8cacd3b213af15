"""The questions of the lesson on scores, each answered by running the learner's own input, now and changed."""

from __future__ import annotations

import math
from typing import Final

import torch

from engine.attention.saturation import saturation
from engine.attention.scores import SCORES, additive, weights_of_all
from engine.attention.scoring import ScoringRun, bound
from engine.notes import Note
from engine.operations import by_key, by_query, masked_softmax
from engine.recurrent.asking import SEEN, UNDECIDED, Answer, Question, settled

DRAWS = 400  # random queries, with 10 keys each
TIMES = 1000.0
UNEQUAL: Final = Note("question.unequal_widths")


def variance(run: ScoringRun) -> Answer | Note:
    """What the variance of q . k is at this width."""
    d = run.width
    if d < 4:
        return Note("question.wider")
    draw = torch.Generator().manual_seed(run.seed)
    plain, scaled = saturation([d], draw, queries=DRAWS)[0]
    truths = {
        "width": abs(plain.variance / d - 1) < 0.3,
        "root": abs(plain.variance / math.sqrt(d) - 1) < 0.3,
        "one": abs(plain.variance - 1) < 0.3,
    }
    values = {"d": d, "plain": plain.variance, "scaled": scaled.variance, "draws": 10 * DRAWS}
    return settled(dict(truths), values)


def divisor(run: ScoringRun) -> Answer | Note:
    """By what the scaled dot product divides: the root of the width of a key, of the number of keys, or the width."""
    d, count = run.key_width, len(run.tokens)
    if run.width != run.key_width:
        return UNEQUAL
    plain, scaled = run.shares("dot_product")["S"], run.shares("scaled_dot_product")["S"]
    by = float((plain / scaled).mean())
    known = {"width": math.sqrt(d), "keys": math.sqrt(count), "whole": float(d)}
    truths = {
        name: True if abs(by - value) < 1e-6 else False if abs(by - value) > SEEN else None for name, value in known.items()
    }
    return settled(truths, {"by": by, "d": d, "count": count}, prefer="width")


def hidden(run: ScoringRun) -> Answer | Note:
    """What a hidden key gets when its score is set to 0 instead of being left out: the first query, its last key hidden."""
    count = len(run.tokens)
    if count < 3 or not run.fits:
        return Note("question.more_tokens")
    scores = run.shares(run.score)["S"][:1]
    keep = torch.ones(1, count, dtype=torch.bool)
    keep[0, -1] = False
    right, wrong = masked_softmax(scores, keep), weights_of_all(scores * keep)
    share = float(wrong[0, -1])
    if share < SEEN:
        return UNDECIDED
    truths = {"zero": float(right[0, -1]) == 0, "small": False, "equal": abs(float(right[0, -1]) - 1 / count) < SEEN}
    return settled(dict(truths), {"share": share, "count": count})


def empty(run: ScoringRun) -> Answer | Note:
    """What the weights of a query that may attend to nothing are."""
    count = len(run.tokens)
    if not run.fits:
        return UNEQUAL
    scores = run.shares(run.score)["S"][:1]
    got = masked_softmax(scores, torch.zeros(1, count, dtype=torch.bool))
    book = torch.softmax(torch.full_like(scores, -1e6), dim=-1)  # the textbook's fill
    truths = {"zeros": bool((got == 0).all()), "equal": bool((got == 1 / count).all()), "nan": bool(got.isnan().any())}
    return settled(dict(truths), {"total": float(got.sum()), "book": float(book[0, 0]), "count": count})


def cancels(run: ScoringRun) -> Answer | Note:
    """The additive score without its tanh: whether the weights still depend on the query."""
    if len(set(run.tokens)) < 3:
        return Note("question.more_tokens")
    Q, K, _ = run.operands()
    w = run.weights("additive")
    straight = (by_query(Q @ w["W_q"]) + by_key(K @ w["W_k"])) @ w["w_v"]
    without, with_it = weights_of_all(straight), weights_of_all(additive(Q, K, **w))
    apart, before = (float((A - A[:1]).abs().max()) for A in (without, with_it))
    if before < SEEN:
        return UNDECIDED
    truths = {"same": apart < 1e-9, "less": 1e-9 <= apart < before, "more": apart >= before}
    return settled(dict(truths), {"apart": apart, "before": before})


def louder(run: ScoringRun) -> Answer | Note:
    """Queries a thousand times as long: which score stays where it was."""
    if run.width != run.key_width:
        return UNEQUAL
    limit = bound(run)
    largest = {name: float(run.shares(name, TIMES)["S"].abs().max()) for name in SCORES}
    truths = {name: largest[name] <= limit for name in ("additive", "scaled_dot_product", "bilinear")}
    values = {"limit": limit, "times": int(TIMES), "additive": largest["additive"], "scaled": largest["scaled_dot_product"]}
    return settled(dict(truths), values)


def unequal(run: ScoringRun) -> Answer | Note:
    """Keys half as wide as queries: which score is not defined."""
    wide, narrow = max(run.width, 2), max(run.width, 2) // 2
    other = ScoringRun(**{**vars(run), "width": wide, "key_width": narrow})
    refused = {}
    for name in ("scaled_dot_product", "bilinear", "additive"):
        try:
            other.shares(name)
            refused[name] = False
        except ValueError:
            refused[name] = True
    return settled(dict(refused), {"queries": wide, "keys": narrow})


def warmth(run: ScoringRun) -> Answer | Note:
    """What a temperature of 2 does to the largest weight of the chosen query."""
    if not run.fits:
        return UNEQUAL
    scores = run.shares(run.score)["S"][run.step]
    keep = run.mask[run.step]
    if int(keep.sum()) < 2:
        return Note("question.more_tokens")
    before, after = (float(masked_softmax(scores / tau, keep).max()) for tau in (1.0, 2.0))
    truths = {"smaller": after < before - SEEN, "larger": after > before + SEEN, "same": abs(after - before) < 1e-9}
    return settled(dict(truths), {"before": before, "after": after, "step": run.step})


SCORING: Final = tuple(
    Question(id=f"scoring.{name}", ask=ask)
    for name, ask in (
        ("variance", variance),
        ("divisor", divisor),
        ("unequal", unequal),
        ("cancels", cancels),
        ("hidden", hidden),
        ("empty", empty),
        ("louder", louder),
        ("warmth", warmth),
    )
)
