"""What the questions of "Check yourself" share: the run they ask about, and how options are settled by what is true of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from torch import Tensor

from engine.notes import Note
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.trace import Array, Trace

SAME: Final = 1e-6  # two numbers are the same up to rounding in float32
SEEN: Final = 5e-4  # a difference that three decimals show
UNDECIDED: Final = Note("question.undecided")
SHARES: Final = {"under_1": (0.0, 0.01), "to_10": (0.01, 0.1), "to_50": (0.1, 0.5), "over_50": (0.5, 2.0)}

Number = float | int


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the learner is looking at: a model with one layer, ids (T, 1), and the chosen step and unit."""

    model: RecurrentLanguageModel
    ids: Tensor
    step: int
    unit: int

    def same(self, other: Run) -> bool:
        """Whether the other asks about the same: model, tokens and place."""
        place = (self.step, self.unit) == (other.step, other.unit)
        return place and self.model is other.model and self.ids.equal(other.ids)

    @property
    def last(self) -> int:
        """The last step."""
        return self.ids.shape[0] - 1

    def trace(self, do: Mapping[str, Any] | None = None) -> Trace:
        """The run, changed by ``do`` or as it is."""
        return self.model.trace(self.ids[:, :1], do=do)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The right option among those offered in this run, the live numbers to reveal, and the numbers of single options."""

    choice: str
    options: tuple[str, ...]
    values: Mapping[str, Number]
    each: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question. ``ask`` gives its answer for a run, or a note that says why it cannot be asked there.

    What a run is, each lesson says: a ``Run`` of a model here, or anything else that knows whether another is the ``same``.
    """

    id: str
    ask: Callable[[Any], Answer | Note] = field(repr=False)


def alike(gap: Number) -> bool | None:
    """Whether two numbers that far apart are the same; None where a learner could not tell."""
    return True if gap <= SAME else False if gap >= SEEN else None


def settled(
    truths: Mapping[str, bool | None],
    values: Mapping[str, Number],
    *,
    prefer: str = "",
    each: Mapping[str, Mapping[str, Number]] | None = None,
) -> Answer | Note:
    """The answer when every option is known to be true or false of this run; None is left out of the options.

    Where several are true at once, ``prefer`` (or the first) is offered and the others are not.
    """
    true = [option for option, truth in truths.items() if truth]
    if not true:
        return UNDECIDED
    choice = prefer if prefer in true else true[0]
    options = tuple(option for option, truth in truths.items() if option == choice or truth is False)
    if len(options) < 3:
        return UNDECIDED
    return Answer(choice=choice, options=options, values=values, each={o: v for o, v in (each or {}).items() if o in options})


def shares(share: float) -> dict[str, bool | None]:
    """In which of the ranges a share lies; a neighbour that rounding could mean as well is left open."""

    def truth(low: float, high: float) -> bool | None:
        if low <= share < high:
            return True
        return None if min(abs(share - low), abs(share - high)) < SEEN else False

    return {name: truth(*bounds) for name, bounds in SHARES.items()}


def gap(a: Array, b: Array | float) -> float:
    """The largest distance of two arrays."""
    return float(np.abs(a - b).max())


def telling_unit(run: Run, values: Array) -> int:
    """The chosen unit, or the strongest one where the chosen one is too near 0 to show anything. ``values``: (H,)."""
    return run.unit if abs(values[run.unit]) >= SEEN else int(np.abs(values).argmax())


def too_short(steps: int) -> Note:
    """The note that a question needs a text of at least so many tokens."""
    return Note("question.too_short", {"steps": steps})


def floats(values: Mapping[str, Any]) -> dict[str, Number]:
    """Plain numbers of numbers of any kind."""
    return {name: float(value) for name, value in values.items()}
