"""The questions of the lesson on residuals and norms, each answered by running the learner's own stack.

==========  ===========================================================================================================
question    what is computed
==========  ===========================================================================================================
first       the gradient that comes down to the first block of a stack without residual and norm, against the last block's
alone       the residual kept and the norm left out: how much larger the vectors are at the end than at the beginning
bypass      pre-norm: whether what the block adds to is its input or the norm of it
constant    a token whose features are all equal, through the norm
thousand    an input a thousand times as large, through the norm
leak        a norm over positions too: how many outputs move when the last token changes
==========  ===========================================================================================================
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import torch

from engine.notes import Note
from engine.recurrent.asking import SEEN, UNDECIDED, Answer, Question, gap, settled
from engine.transformer.depth import DepthRun, leak
from engine.transformer.norms import layer_norm, rms_norm

SHALLOW: Final = Note("question.shallow", {"depth": 4})
ONE_TOKEN: Final = Note("question.too_short", {"steps": 3})


def first(run: DepthRun) -> Answer | Note:
    """How much of the gradient comes down to the first block where nothing helps it through."""
    if run.depth < 4:
        return SHALLOW
    sizes = run.flow("plain").backward[:-1]
    if not sizes[-1] > 0:
        return UNDECIDED
    share = sizes[0] / sizes[-1]
    truths = {"less": share < 0.1, "same": 0.1 <= share <= 10, "more": share > 10}
    return settled(dict(truths), {"first": sizes[0], "last": sizes[-1], "share": share, "depth": run.depth})


def alone(run: DepthRun) -> Answer | Note:
    """What becomes of the vectors' size when the residual stays and the norm goes."""
    if run.depth < 4:
        return SHALLOW
    sizes = run.flow("residual").forward
    if not sizes[0] > 0:
        return UNDECIDED
    times = sizes[-1] / sizes[0]
    truths = {"grows": times > 3, "stays": 1 / 3 <= times <= 3, "shrinks": times < 1 / 3}
    return settled(dict(truths), {"before": sizes[0], "after": sizes[-1], "times": times, "depth": run.depth})


def bypass(run: DepthRun) -> Answer | Note:
    """What the block of the chosen layer adds to, in pre-norm."""
    trace = replace(run, arrangement="pre").trace()
    layer = min(run.step, run.depth - 1)
    base = trace["Y"][layer] - trace["F"][layer]
    to_input, to_norm = gap(base, trace["X"][layer]), gap(base, trace["X_n"][layer])
    if to_norm < SEEN:
        return UNDECIDED
    truths = {"input": to_input < 1e-6 * max(1.0, float(np.abs(base).max())), "norm": to_norm < 1e-9, "both": False}
    return settled(dict(truths), {"input": to_input, "norm": to_norm, "layer_step": layer})


def constant(run: DepthRun) -> Answer | Note:
    """A token of equal features through LayerNorm."""
    given = torch.full((run.width,), 7.0, dtype=torch.float64)
    found = layer_norm(given)
    largest = float(found.abs().max())
    truths = {"zeros": largest == 0.0, "ones": bool((found == 1).all()), "nan": bool(found.isnan().any())}
    return settled(dict(truths), {"largest": largest, "width": run.width, "rms": float(rms_norm(given)[0])})


def thousand(run: DepthRun) -> Answer | Note:
    """A token a thousand times as large through LayerNorm."""
    token = run.vectors()[min(run.key, len(run.ids) - 1)]
    before, after = layer_norm(token), layer_norm(1000 * token)
    if float(before.abs().max()) < SEEN:
        return UNDECIDED
    moved = gap(before.numpy(), after.numpy())
    times = float(after.norm() / before.norm())
    truths = {"same": moved < 0.01, "larger": times > 2, "smaller": times < 0.5}
    return settled(dict(truths), {"moved": moved, "times": times})


def leaks(run: DepthRun) -> Answer | Note:
    """A norm over positions and features: whose output moves when the last token changes."""
    X = replace(run, given="normal").vectors()
    if len(X) < 3:
        return ONE_TOKEN
    over_all, alone_ = leak(X, "TD")[-1], leak(X, "D")[-1]
    moved, own = int((over_all > 1e-9).sum()), int((alone_ > 1e-9).sum())
    truths = {"last": moved == 1, "all": moved == len(X), "none": moved == 0}
    values = {"moved": moved, "count": len(X), "own": own, "first": float(over_all[0])}
    return settled(dict(truths), values)


RESIDUALS: Final[tuple[Question, ...]] = tuple(
    Question(id=f"residual_norm.{name}", ask=ask)
    for name, ask in {
        "first": first,
        "alone": alone,
        "bypass": bypass,
        "constant": constant,
        "thousand": thousand,
        "leak": leaks,
    }.items()
)
