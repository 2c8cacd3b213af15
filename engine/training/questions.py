"""Questions on a training, answered from the curves of the learner's own run (or of a recorded one).

==============  =====================================  ==========================================================
question        options                                values
==============  =====================================  ==========================================================
nothing         vocabulary, half, square               size, perplexity, loss
ahead           model:0, model:1, ...                  perplexity of each, step
counting        far, close, beaten                     perplexity, ngram, n, step
memory          same, some, much                       train, held, difference
clipped         never, seldom, often                   share, limit, steps
half            early, quarter, late                   half_step, last_step
==============  =====================================  ==========================================================

nothing: which perplexity has the model before its first step? ahead: which model has the lowest held-out perplexity?
counting: how does the best one stand to the best n-gram? memory: how far is training loss below held-out loss? clipped: how
often was the gradient clipped? half: when was half of the fall of the held-out loss done? Members are numbers from 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from engine.notes import Note
from engine.recurrent.asking import UNDECIDED, Answer, Question

Row = NDArray[np.float64]
NOT_YET: Final = Note("question.training.not_yet")
CLOSE: Final = 0.1  # nats within which two losses are called close
TAIL: Final = 20  # steps whose mean is the training loss of a moment


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The curves of a run at a moment. ``limit``: of the gradient's norm, None for none. ``held_steps`` begin with 0."""

    run: str
    size: int  # of the vocabulary
    losses: Sequence[Row]  # of each step, by member
    norms: Sequence[Row]
    held_steps: Row
    held: Sequence[Row]
    ngrams: tuple[float, ...] = ()
    limit: float | None = None

    @property
    def step(self) -> int:
        return len(self.losses[0])

    def same(self, other: Progress) -> bool:
        """Whether the other is the same run at the same measurement."""
        return self.run == other.run and len(self.held_steps) == len(other.held_steps)

    def best(self) -> tuple[int, float] | None:
        """The member with the lowest latest held-out loss, and that loss."""
        latest = [(float(row[-1]), place) for place, row in enumerate(self.held) if len(row) and np.isfinite(row[-1])]
        return (min(latest)[1], min(latest)[0]) if latest else None


def nothing(run: Progress) -> Answer | Note:
    """The held-out perplexity before the first step."""
    if not len(run.held_steps) or run.held_steps[0] != 0 or not np.isfinite(run.held[0][0]):
        return NOT_YET
    loss, uniform = float(run.held[0][0]), math.log(run.size)
    candidates = {"vocabulary": uniform, "half": uniform - math.log(2), "square": uniform / 2}
    choice = min(candidates, key=lambda name: abs(candidates[name] - loss))
    if abs(candidates[choice] - loss) > 0.3:
        return UNDECIDED
    each = {name: {"size": round(math.exp(value))} for name, value in candidates.items()}
    values = {"size": run.size, "perplexity": math.exp(loss), "loss": loss}
    return Answer(choice=choice, options=tuple(candidates), values=values, each=each)


def ahead(run: Progress) -> Answer | Note:
    """The model with the lowest held-out perplexity now."""
    found = run.best()
    if found is None or len(run.held_steps) < 3:
        return NOT_YET
    if len(run.held) < 2:
        return Note("question.training.one_model")
    place, loss = found
    latest = {f"model:{member}": float(row[-1]) for member, row in enumerate(run.held) if np.isfinite(row[-1])}
    ordered = sorted(latest.values())
    if len(ordered) < 2 or ordered[1] - ordered[0] < 0.002:
        return UNDECIDED
    each = {name: {"token": int(name[6:]), "perplexity": _perplexity(value)} for name, value in latest.items()}
    values = {"token_best": place, "perplexity": _perplexity(loss), "last_step": int(run.held_steps[-1]) - 1}
    return Answer(choice=f"model:{place}", options=tuple(latest), values=values, each=each)


def counting(run: Progress) -> Answer | Note:
    """The best model beside the best n-gram."""
    found = run.best()
    if found is None or not run.ngrams or len(run.held_steps) < 3:
        return NOT_YET
    loss, (ngram, n) = found[1], min((value, n) for n, value in enumerate(run.ngrams, 1))
    choice = "beaten" if loss < ngram else "close" if loss < ngram + CLOSE else "far"
    values = {"perplexity": _perplexity(loss), "ngram": _perplexity(ngram), "n": n, "last_step": int(run.held_steps[-1]) - 1}
    return Answer(choice=choice, options=("far", "close", "beaten"), values=values)


def memory(run: Progress) -> Answer | Note:
    """How far the training loss of the best model is below its held-out loss."""
    found = run.best()
    if found is None or run.step < 2 * TAIL:
        return NOT_YET
    place, held = found
    tail = run.losses[place][-TAIL:]
    train = float(tail[np.isfinite(tail)].mean()) if np.isfinite(tail).any() else math.nan
    if train != train:
        return UNDECIDED
    gap = held - train
    choice = "same" if gap < 0.1 else "some" if gap < 0.4 else "much"
    values = {"train": _perplexity(train), "held": _perplexity(held), "difference": gap, "token_best": place}
    return Answer(choice=choice, options=("same", "some", "much"), values=values)


def clipped(run: Progress) -> Answer | Note:
    """The share of the steps whose gradient was longer than the limit."""
    if run.step < TAIL:
        return NOT_YET
    if run.limit is None:
        return Note("question.training.no_limit")
    norms = run.norms[0][np.isfinite(run.norms[0])]
    share = float((norms > run.limit).mean())
    choice = "never" if share < 0.01 else "seldom" if share < 0.25 else "often"
    values = {"share": share, "limit": run.limit, "steps": len(norms), "token_best": 0}
    return Answer(choice=choice, options=("never", "seldom", "often"), values=values)


def half(run: Progress) -> Answer | Note:
    """After which part of the run half of the fall of the held-out loss was done."""
    row = run.held[0]
    good = np.isfinite(row)
    if good.sum() < 6:
        return NOT_YET
    steps, losses = run.held_steps[good], row[good]
    middle = (losses[0] + losses.min()) / 2
    step, last = float(steps[np.flatnonzero(losses <= middle)[0]]), float(steps[-1])
    if last <= 0 or losses[0] - losses.min() < 0.05:
        return UNDECIDED
    share = step / last
    choice = "early" if share < 0.1 else "quarter" if share < 0.35 else "late"
    values = {"half_step": int(step) - 1, "last_step": int(last) - 1, "token_best": 0}
    return Answer(choice=choice, options=("early", "quarter", "late"), values=values)


def _perplexity(loss: float) -> float:
    return math.exp(min(loss, 700.0))


def progress_of(log: Any, run: str, size: int, limit: float) -> Progress:
    """What a log says now (``engine.training.runlog.RunLog``)."""
    return Progress(
        run=run,
        size=size,
        losses=[np.array(row) for row in log.losses],
        norms=[np.array(row) for row in log.norms],
        held_steps=np.array(log.held_steps),
        held=[np.array(row) for row in log.held],
        ngrams=log.ngrams,
        limit=limit if math.isfinite(limit) else None,
    )


ASKED: Final[Mapping[str, Any]] = {
    "nothing": nothing,
    "counting": counting,
    "ahead": ahead,
    "memory": memory,
    "clipped": clipped,
    "half": half,
}
LANGUAGE_MODEL: Final = tuple(Question(id=f"language_model.{name}", ask=ask) for name, ask in ASKED.items())
