"""The questions of the lesson on positions, each answered by running the learner's own layer on the learner's own text.

==========  ===========================================================================================================
question    what is computed
==========  ===========================================================================================================
moved       the product of two codes, and the same after both places have moved one on
permuted    the text read backwards without positions and without a mask: what becomes of the outputs
values      codes in the values alone, read backwards: do the weights see the order?
slowest     after how many positions the slowest wave repeats, against the whole text
beyond      the trained model of this kind on texts four times as long as in its training
drowned     embeddings at sqrt(d) times their scale: how much of the map do the positions still make
==========  ===========================================================================================================
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
import torch

from engine.attention import order_model
from engine.attention.character_model import LONGEST
from engine.attention.order import ADDED, OrderRun, unpermuted
from engine.attention.order_model import loss_by_position
from engine.attention.positions import sinusoidal, wavelengths
from engine.notes import Note
from engine.recurrent.asking import SEEN, UNDECIDED, Answer, Question, gap, settled, too_short
from engine.training.checkpoints import SHIPPED

ADDED_ONLY: Final = Note("question.added_only")
FAR: Final = 4 * LONGEST


def moved(run: OrderRun) -> Answer | Note:
    """The product of the codes of two places, and after both have moved one on."""
    count, width = len(run.ids), run.model.width
    first, second = sorted((run.step, run.key))
    if first == second:
        first, second = 0, min(3, count - 1)
    if count < 2 or first == second:
        return too_short(2)
    P = sinusoidal(max(count, second + 2), width, base=run.base)
    before, after = float(P[first] @ P[second]), float(P[first + 1] @ P[second + 1])
    change = after - before
    truths = {"same": abs(change) < 1e-9, "larger": change > SEEN, "smaller": change < -SEEN}
    return settled(dict(truths), {"one_step": first, "other_step": second, "before": before, "after": after})


def _backwards(run: OrderRun, where: str) -> tuple[float, float, float, float]:
    """How far weights and output move from their rows when the text is read backwards, and from their places: A, O, A, O."""
    turned = replace(run, order=tuple(range(len(run.ids) - 1, -1, -1)), where=where, causal=False)
    plain, now, along = replace(turned, order=()).trace(), turned.trace(), unpermuted(turned)
    return gap(now["A"], along["A"]), gap(now["O"], along["O"]), gap(now["A"], plain["A"]), gap(now["O"], plain["O"])


def permuted(run: OrderRun) -> Answer | Note:
    """What becomes of the outputs without positions when the text is read backwards."""
    if len(run.ids) < 3:
        return too_short(3)
    _, rows, _, places = _backwards(run, "nowhere")
    if places < SEEN:
        return UNDECIDED
    truths = {"along": rows < 1e-9, "stay": places < 1e-9, "new": rows > SEEN}
    return settled(dict(truths), {"rows": rows, "places": places})


def values(run: OrderRun) -> Answer | Note:
    """Whether weights see the order when the codes are added to the values alone."""
    if run.kind not in ADDED:
        return ADDED_ONLY
    if len(run.ids) < 3:
        return too_short(3)
    weights, output, _, _ = _backwards(run, "v")
    if output < SEEN:
        return UNDECIDED
    truths = {"blind": weights < 1e-9, "see": weights > SEEN, "nothing": weights < 1e-9 and output < 1e-9}
    return settled(dict(truths), {"weights": weights, "output": output}, prefer="blind")


def slowest(run: OrderRun) -> Answer | Note:
    """The longest wavelength against the number of positions."""
    waves, count = wavelengths(run.model.width, run.base), len(run.ids)
    longest, limit = float(waves[-1]), 2 * math.pi * run.base
    truths = {"inside": longest < count, "outside": count <= longest < 0.999 * limit, "limit": longest >= 0.999 * limit}
    return settled(dict(truths), {"longest": longest, "shortest": float(waves[0]), "limit": limit, "count": count})


def beyond(run: OrderRun) -> Answer | Note:
    """The trained model of this kind beyond the length of its training, on text it has not seen."""
    trained = order_model.load(run.kind)
    excerpt = (SHIPPED / "held_out.txt").read_text(encoding="utf-8")
    losses = loss_by_position(trained.model, torch.tensor(trained.vocabulary[list(excerpt)]), FAR)
    inside, outside = losses[:LONGEST], losses[LONGEST:]
    near, refused = float(inside[LONGEST // 2 :].mean()), not np.isfinite(outside).any()
    far = near if refused else float(np.nanmean(outside))
    truths = {"refused": refused, "worse": not refused and far > near + 0.1, "same": not refused and abs(far - near) <= 0.1}
    read = int(np.isfinite(outside).sum())
    return settled(dict(truths), {"near": near, "read": read, "more": len(outside), "length": LONGEST, "longest": FAR})


def drowned(run: OrderRun) -> Answer | Note:
    """How much the map moves when positions are taken away, at the scale of now and at sqrt(d) times it."""
    if run.kind not in ADDED:
        return ADDED_ONLY
    if len(run.ids) < 3:
        return too_short(3)
    factor = math.sqrt(run.model.width)
    moves = []
    for scale in (1.0, factor):
        here = replace(run, order=(), scale=scale)
        with_codes, without = (replace(here, where=where).trace()["A"] for where in ("input", "nowhere"))
        moves.append(float(np.abs(with_codes - without).sum(-1).mean()) / 2)
    truths = {"less": moves[1] < moves[0] - SEEN, "same": abs(moves[1] - moves[0]) < 1e-6, "more": moves[1] > moves[0] + SEEN}
    return settled(dict(truths), {"before": moves[0], "after": moves[1], "factor": factor})


POSITIONS: Final[tuple[Question, ...]] = tuple(
    Question(id=f"positions.{name}", ask=ask)
    for name, ask in {
        "permuted": permuted,
        "moved": moved,
        "values": values,
        "slowest": slowest,
        "beyond": beyond,
        "drowned": drowned,
    }.items()
)
