"""Questions on autoregression, each answered with the learner's own series and the model that was fitted to it.

=========  ============================================================================================================
question   what is computed
=========  ============================================================================================================
own        how many of the values that step 3 of a free run reads are the model's own predictions
pairs      how many pairs of window and next value the training part gives
mean       at which horizon the model's test error passes that of always saying the training mean
teacher    the error of the free run against that of the run with a teacher, over the same steps
end        how the closed loop ends
pace       in how many steps a small distance from the fixed point is halved
lags       whose one-step test error is the smallest: a linear model of 1, 4 or 16 past values
=========  ============================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from engine.notes import Note
from engine.recurrent.asking import UNDECIDED, Answer, Number, Question, settled
from engine.sequences.autoregression import Model, WindowModel
from engine.sequences.comparing import errors_after, errors_of_mean, lags, possible
from engine.sequences.following import Following, follow
from engine.sequences.forecasts import ClosedLoop, closed_loop
from engine.trace import Array

STEPS: Final = 256
APART: Final = 0.02  # relative difference that counts
HALVED: Final = {"to_5": (0.0, 5.0), "to_20": (5.0, 20.0), "to_100": (20.0, 100.0), "over_100": (100.0, np.inf)}


@dataclass(frozen=True, kw_only=True)
class ForecastRun:
    """What the learner is looking at: a fitted model, the series, its training part, and the start of the forecast."""

    model: Model
    values: Array = field(repr=False)
    train: int
    start: int

    def same(self, other: ForecastRun) -> bool:
        """Whether the other asks about the same."""
        return self.model is other.model and self.values is other.values and self.start == other.start

    @cached_property
    def following(self) -> Following:
        """The forecast from the start, with a teacher and without."""
        return follow(self.model, self.values, self.start, STEPS)

    @cached_property
    def loop(self) -> ClosedLoop:
        """The closed loop from the start."""
        return closed_loop(self.model, self.values, self.start)

    @property
    def width(self) -> int:
        """How many values a prediction reads."""
        return self.model.tau if isinstance(self.model, WindowModel) else 1


def own(run: ForecastRun) -> Answer | Note:
    """Where the inputs of a later step come from."""
    step = 2
    count = min(step, run.width)
    truths = {"none": count == 0, "some": 0 < count < run.width, "all": count == run.width}
    return settled(dict(truths), {"k": step + 1, "count": run.width, "own": count, "measured": run.width - count})


def pairs(run: ForecastRun) -> Answer | Note:
    """How many examples the training part gives."""
    reach = run.model.context
    counts = {"values": run.train, "pairs": run.train - reach, "windows": run.train - reach + 1}
    each: dict[str, dict[str, Number]] = {name: {"pairs_here": count} for name, count in counts.items()}
    truths: dict[str, bool | None] = {name: name == "pairs" for name in counts}
    return settled(truths, {"train": run.train, "reach": reach, "found": counts["pairs"]}, each=each)


def mean(run: ForecastRun) -> Answer | Note:
    """From which horizon on the mean of the training part would have been the better forecast."""
    horizons = possible(run.values, run.train)
    if len(horizons) < 2:
        return UNDECIDED
    errors, constant = errors_after(run.model, run.values, run.train), errors_of_mean(run.values, run.train)
    rms = [float(errors.rms[k - 1]) for k in horizons]
    passed = [k for k, error in zip(horizons, rms, strict=True) if error > constant]
    truths: dict[str, bool | None] = {f"k{k}": bool(passed) and k == passed[0] for k in horizons}
    if any(abs(error - constant) < APART * constant for error in rms):
        return UNDECIDED
    values: dict[str, Number] = {"constant": constant, "near": rms[0], "far": rms[-1], "longest": horizons[-1]}
    return settled(truths | {"never": not passed}, values)


def teacher(run: ForecastRun) -> Answer | Note:
    """What a teacher is worth."""
    if len(run.following.truth) < 8:
        return UNDECIDED
    free, taught = (float(np.sqrt(np.mean(np.square(row)))) for row in run.following.errors)
    if not taught > 0:
        return UNDECIDED
    ratio = free / taught
    truths: dict[str, bool | None] = {"less": ratio < 1 - APART, "to_2": 1 - APART <= ratio <= 2, "over_2": ratio > 2}
    if min(abs(ratio - 2), abs(ratio - 1 + APART)) < APART:
        return UNDECIDED
    return settled(truths, {"free": free, "taught": taught, "ratio": ratio, "steps": len(run.following.truth)})


def end(run: ForecastRun) -> Answer | Note:
    """How the closed loop ends."""
    names = {"fixed point": "point", "cycle": "cycle", "unbounded": "unbounded", "moving": "moving"}
    truths: dict[str, bool | None] = {option: names[run.loop.end] == option for option in names.values()}
    last = float(run.loop.path[-1])
    return settled(truths, {"steps": len(run.loop.path), "last": last, "period": run.loop.period or 0})


def pace(run: ForecastRun) -> Answer | Note:
    """How fast the fixed point draws."""
    points = run.loop.fixed_points
    point = run.loop.reached or (points[0] if points else None)
    if point is None or not point.radius > 0:
        return UNDECIDED
    half = float(np.log(0.5) / np.log(point.radius)) if point.radius < 1 else np.inf
    truths: dict[str, bool | None] = {name: low <= half < high for name, (low, high) in HALVED.items()}
    truths["never"] = not point.stable
    return settled(truths, {"value": point.value, "radius": point.radius, "half": half if np.isfinite(half) else 0})


def reach(run: ForecastRun) -> Answer | Note:
    """How many past values a linear model needs."""
    found = {each.tau: each.rms[0] for each in lags(run.values, run.train, (1, 4, 16)) if each.rms}
    if len(found) < 3:
        return UNDECIDED
    best = min(found, key=found.__getitem__)
    second = sorted(found.values())[1]
    if second - found[best] <= 0.002 * second:
        return UNDECIDED
    truths: dict[str, bool | None] = {f"t{tau}": tau == best for tau in found}
    return settled(truths, {f"t{tau}": error for tau, error in found.items()} | {"best": best})


AUTOREGRESSION: Final[tuple[Question, ...]] = tuple(
    Question(id=f"autoregression.{name}", ask=ask)
    for name, ask in {
        "own": own,
        "teacher": teacher,
        "mean": mean,
        "end": end,
        "pace": pace,
        "pairs": pairs,
        "lags": reach,
    }.items()
)
