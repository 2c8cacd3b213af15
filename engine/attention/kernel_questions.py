"""The questions of the lesson on kernel regression, each answered by running the learner's own points and kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from engine.attention.kernel_regression import BOUNDED, fit, optimum, regress
from engine.notes import Note
from engine.recurrent.asking import SEEN, UNDECIDED, Answer, Question, settled

FAR_IN_WIDTHS = 100.0
BOOK_RATE = 0.5
HIGHEST = 100.0  # of a w that is looked for


@dataclass(frozen=True, kw_only=True)
class KernelRun:
    """What the learner is looking at: points (S,), a kernel with its width, and a query."""

    x: Tensor
    y: Tensor
    kernel: str
    width: float
    query: float
    w: float  # where learning begins

    def same(self, other: KernelRun) -> bool:
        """Whether the other asks about the same points, kernel and place."""
        place = (self.kernel, self.width, self.query, self.w)
        return (
            place == (other.kernel, other.width, other.query, other.w)
            and torch.equal(self.x, other.x)
            and torch.equal(self.y, other.y)
        )


def far(run: KernelRun) -> Answer | Note:
    """What is predicted far to the right of all points."""
    if run.kernel == "average":
        return Note("question.needs_kernel")
    query = float(run.x.max()) + FAR_IN_WIDTHS * run.width
    got = float(regress([query], run.x, run.y, run.kernel, run.width)["f"][0])
    at = run.x == run.x.max()
    nearest, mean = float(run.y[at].mean()), float(run.y.mean())
    if abs(nearest - mean) < SEEN or abs(nearest) < SEEN:
        return UNDECIDED
    truths = {name: abs(got - value) < SEEN for name, value in {"nearest": nearest, "mean": mean, "zero": 0.0}.items()}
    return settled(dict(truths), {"query": query, "got": got, "nearest": nearest, "widths": int(FAR_IN_WIDTHS)})


def total(run: KernelRun) -> Answer | Note:
    """What the weights of the chosen query sum to."""
    weights = regress([run.query], run.x, run.y, run.kernel, run.width)["A"][0]
    got, count = float(weights.sum()), len(run.x)
    if count == 1:
        return Note("question.one_point")
    truths = {"one": abs(got - 1) < 1e-9, "count": abs(got - count) < 1e-9, "kernel": False}
    return settled(dict(truths), {"got": got, "largest": float(weights.max()), "query": run.query, "count": count})


def narrower(run: KernelRun) -> Answer | Note:
    """What half the width does to the largest weight of the chosen query."""
    if run.kernel == "average":
        return Note("question.needs_kernel")
    before, after = (
        float(regress([run.query], run.x, run.y, run.kernel, width)["A"].max()) for width in (run.width, run.width / 2)
    )
    truths = {"larger": after > before + SEEN, "smaller": after < before - SEEN, "same": abs(after - before) <= 1e-9}
    return settled(dict(truths), {"before": before, "after": after, "width": run.width, "half": run.width / 2})


def with_itself(run: KernelRun) -> Answer | Note:
    """Where w goes when each point may look at itself."""
    if len(run.x) < 3 or len(torch.unique(run.x)) < len(run.x):
        return Note("question.few_points")
    own, loss = optimum(run.x, run.y, include_self=True, reach=(0.01, HIGHEST))
    others, other_loss = optimum(run.x, run.y, reach=(0.01, HIGHEST))
    truths = {"forever": own >= 0.99 * HIGHEST, "same": abs(own - others) < 1e-6, "zero": own <= 0.011}
    values = {"own": own, "others": others, "loss": loss, "other_loss": other_loss, "highest": int(HIGHEST)}
    return settled(dict(truths), values)


def overshoot(run: KernelRun) -> Answer | Note:
    """Where the first step of the textbook's learning rate lands."""
    if len(run.x) < 3:
        return Note("question.few_points")
    path = fit(run.x, run.y, run.w, learning_rate=BOOK_RATE, epochs=1)
    best, least = optimum(run.x, run.y, reach=(0.01, HIGHEST))
    if len(path) < 2:
        return UNDECIDED
    landed = abs(path[1].w)
    if not 0.02 < best < 0.98 * HIGHEST:
        return UNDECIDED
    low, high = sorted((run.w, best))
    truths = {
        "beyond": (landed > 1.2 * best) if run.w < best else (landed < best / 1.2),
        "between": low <= landed <= high and abs(landed - best) > 0.2 * best,
        "at": abs(landed - best) <= 0.2 * best,
    }
    values = {"w": run.w, "landed": landed, "best": best, "rate": BOOK_RATE, "loss": path[1].loss, "least": least}
    return settled(dict(truths), values)


def averaged(run: KernelRun) -> Answer | Note:
    """How many different predictions the average makes."""
    if len(run.x) < 2:
        return Note("question.one_point")
    queries = torch.linspace(float(run.x.min()) - 1, float(run.x.max()) + 1, 71, dtype=torch.float64)
    found = regress(queries, run.x, run.y, "average")["f"]
    spread = float(found.max() - found.min())
    truths = {"one": spread < 1e-9, "each": spread > SEEN, "points": False}
    return settled(dict(truths), {"mean": float(run.y.mean()), "queries": len(queries), "spread": spread})


def bounded(run: KernelRun) -> Answer | Note:
    """How many points get exactly no weight from the chosen query: with a bell curve, and with a box of the same width."""
    if len(run.x) < 4 or run.kernel not in BOUNDED:
        return Note("question.needs_bounded")
    weights = regress([run.query], run.x, run.y, run.kernel, run.width)["A"][0]
    none, count = int((weights == 0).sum()), len(run.x)
    truths = {"none": none == 0, "some": 0 < none < count, "all": none == count}
    return settled(dict(truths), {"count": none, "points": count, "width": run.width, "query": run.query})


KERNELS_ASKED: Final = tuple(
    Question(id=f"kernel_regression.{name}", ask=ask)
    for name, ask in (
        ("total", total),
        ("narrower", narrower),
        ("far", far),
        ("averaged", averaged),
        ("bounded", bounded),
        ("overshoot", overshoot),
        ("self", with_itself),
    )
)
