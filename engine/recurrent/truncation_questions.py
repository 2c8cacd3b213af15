"""Questions on back-propagation through time, each answered by running the learner's own model on the learner's own text.

==========  ===========================================================================================================
question    what is computed
==========  ===========================================================================================================
horizon     chunks of 8: how many steps, its own included, the loss at ``step`` reaches
fading      the length of what the last loss sends to the first state, as a share of what it sends to its own
direction   chunks of 8: the cosine of what is left with the full gradient
draws       randomized truncation, 200 draws with 0.5 and with 0.9: whose estimates spread more
radius      the matrices between states at twice their spectral radius: does more or less arrive at the first state
clip        the gradient clipped to half its length: what becomes of the early steps' part in it
==========  ===========================================================================================================

Steps are numbers from 0.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch import Tensor

from engine.metrics import clip_by_norm
from engine.notes import Note
from engine.recurrent.asking import SEEN, UNDECIDED, Answer, Question, settled, too_short
from engine.recurrent.cuts import between_states
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.truncated import compare
from engine.recurrent.truncation import FULL, GradientFlow, chunks, gradient_flow, randomized, shares

CHUNK: Final = 8
DRAWS: Final = 200
FADED: Final = {"tenth": (0.1, np.inf), "thousandth": (1e-3, 0.1), "millionth": (1e-6, 1e-3), "less": (-1.0, 1e-6)}
COSINES: Final = {"over_99": (0.99, 2.0), "to_99": (0.9, 0.99), "to_90": (0.5, 0.9), "under_50": (-2.0, 0.5)}


@dataclass(frozen=True, kw_only=True)
class FlowRun:
    """What the learner is looking at: a model, ids (T + 1,), the full gradient on them, and the chosen step of a loss."""

    model: RecurrentLanguageModel
    ids: Tensor
    flow: GradientFlow = field(repr=False)
    step: int

    def same(self, other: FlowRun) -> bool:
        """Whether the other asks about the same."""
        return self.flow is other.flow and self.step == other.step

    @property
    def steps(self) -> int:
        """How many losses there are."""
        return len(self.flow)


def horizon(run: FlowRun) -> Answer | Note:
    """How far back a loss reaches when training cuts the text into pieces."""
    if run.steps <= CHUNK + 1:
        return too_short(CHUNK + 3)
    step = run.step if run.step >= CHUNK and (run.step + 1) % CHUNK else CHUNK + 1
    reached = int((shares(chunks(CHUNK), run.steps)[0, step] > 0).sum())
    truths = {"all": reached == step + 1, "length": reached == CHUNK, "rest": reached == step % CHUNK + 1}
    return settled(truths, {"step": step, "length": CHUNK, "reached": reached, "whole": step + 1})


def fading(run: FlowRun) -> Answer | Note:
    """How much of the last loss's gradient is left at the first state."""
    if run.steps < 2:
        return too_short(3)
    norms = run.flow.full_norms["H"][-1]
    if not norms[-1] > 0:
        return UNDECIDED
    share = float(norms[0] / norms[-1])
    truths = {name: _between(share, low, high, apart=0.02 * max(low, 1e-7)) for name, (low, high) in FADED.items()}
    return settled(truths, {"share": share, "first": float(norms[0]), "own": float(norms[-1]), "steps": run.steps - 1})


def direction(run: FlowRun) -> Answer | Note:
    """How far the gradient turns when the text is cut into chunks."""
    if run.steps <= CHUNK:
        return too_short(CHUNK + 2)
    found = compare(run.flow, chunks(CHUNK))
    truths = {name: _between(found.cosine, low, high, apart=SEEN) for name, (low, high) in COSINES.items()}
    return settled(truths, {"length": CHUNK, "cosine": found.cosine, "size": found.length})


def draws(run: FlowRun) -> Answer | Note:
    """Whether short or long random chains vary more from draw to draw."""
    if run.steps < 8:
        return too_short(9)
    often, seldom = (
        compare(run.flow, randomized(keep), draws=DRAWS, generator=torch.Generator().manual_seed(0)) for keep in (0.5, 0.9)
    )
    ratio = often.spread / seldom.spread if seldom.spread > 0 else 1.0
    truths = {"half": ratio > 1.2, "nine": ratio < 1 / 1.2, "same": 1 / 1.2 <= ratio <= 1.2}
    values = {"half": often.spread, "nine": seldom.spread, "count": DRAWS, "bias": seldom.bias, "error": seldom.error}
    return settled(dict(truths), values)


def radius(run: FlowRun) -> Answer | Note:
    """Whether a spectral radius twice as large sends more back to the first state."""
    if run.steps < 4:
        return too_short(5)
    names = between_states(run.flow)
    changed = copy.deepcopy(run.model)
    with torch.no_grad():
        for name in names:
            changed.recurrent.get_parameter(name).mul_(2)
    before, after = (flow.full_norms["H"][-1] for flow in (run.flow, gradient_flow(changed, run.ids)))
    if not min(before[0], before[-1], after[-1]) > 0:
        return UNDECIDED
    shares_left = float(before[0] / before[-1]), float(after[0] / after[-1])
    ratio = shares_left[1] / shares_left[0]
    truths = {"more": ratio > 2, "less": ratio < 0.5, "same": 0.5 <= ratio <= 2}
    return settled(dict(truths), {"before": shares_left[0], "after": shares_left[1], "count": len(names)})


def clip(run: FlowRun) -> Answer | Note:
    """What clipping the whole gradient does to the part of the early steps."""
    if run.steps < 4:
        return too_short(5)
    name = between_states(run.flow)[0]
    parts = run.flow.under(FULL).contributions(name)
    early, whole = parts[: len(parts) // 2].sum(0), parts.sum(0)
    norm = float(np.linalg.norm(whole))
    if not norm > 0:
        return UNDECIDED
    (clipped,), _ = clip_by_norm([torch.tensor(whole)], norm / 2)
    assert clipped is not None
    factor = float(clipped.norm()) / norm
    before = float(np.linalg.norm(early)) / norm
    after = float(np.linalg.norm(early * factor)) / float(clipped.norm())
    truths = {
        "more": after > before * 1.01,
        "same": abs(after - before) <= 1e-6 * max(before, 1e-30),
        "less": after < before * 0.99,
    }
    return settled(
        dict(truths), {"before": before, "after": after, "norm": norm, "limit": norm / 2, "half_step": len(parts) // 2 - 1}
    )


def _between(value: float, low: float, high: float, *, apart: float) -> bool | None:
    """Whether a value lies in a range; None where it lies outside but too close to tell."""
    if low <= value < high:
        return True
    return None if min(abs(value - low), abs(value - high)) < apart else False


TRUNCATION: Final[tuple[Question, ...]] = tuple(
    Question(id=f"truncation.{name}", ask=ask)
    for name, ask in {
        "horizon": horizon,
        "fading": fading,
        "direction": direction,
        "draws": draws,
        "radius": radius,
        "clip": clip,
    }.items()
)
