"""The questions of the lesson on embeddings, answered on the matrix that the learner looks at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from engine.embedded import Embedded, dimensions, nearest, unit_rows
from engine.embeddings import one_hot_product
from engine.notes import Note
from engine.recurrent.asking import UNDECIDED, Answer, Question, settled

FEW: Final = "question.few_tokens"
ALIKE: Final = 0.02  # cosines that a learner could not tell apart


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the learner is looking at: an embedding, and which token of the text is chosen."""

    found: Embedded = field(repr=False)
    step: int

    def same(self, other: Run) -> bool:
        """Whether the other asks about the same matrix, text and token."""
        return (self.found.key, self.found.ids, self.step) == (other.found.key, other.found.ids, other.step)

    @property
    def id(self) -> int:
        """The number of the chosen token."""
        return self.found.ids[min(self.step, len(self.found.ids) - 1)]


def lookup(run: Run) -> Answer | Note:
    """How far the product of a one-hot row with the matrix is from the row itself."""
    if not run.found.ids:
        return Note(FEW, {"count": 1})
    difference = one_hot_product([run.id], run.found.after).difference
    values = {"difference": difference, "rows": len(run.found.tokens), "width": run.found.width, "token": run.id}
    return settled({"nothing": difference == 0, "rounding": 0 < difference < 1e-5, "much": difference >= 1e-5}, values)


def zeros(run: Run) -> Answer | Note:
    """How many of the product's multiplications are with 0."""
    rows, width = run.found.after.shape
    if rows < 3:
        return Note(FEW, {"count": 3})
    right = (rows - 1) * width
    offers = dict.fromkeys((right, width, rows * width // 2))
    if len(offers) < 3:
        return UNDECIDED
    return Answer(
        choice=f"count:{right}",
        options=tuple(f"count:{count}" for count in sorted(offers)),
        values={"rows": rows, "width": width, "all": rows * width, "zeros": right},
        each={f"count:{count}": {"count": count} for count in offers},
    )


def nextdoor(run: Run) -> Answer | Note:
    """Whether tokens with neighbouring numbers are nearer to each other than any two tokens."""
    rows = unit_rows(run.found.after[1:])
    if len(rows) < 8:
        return Note(FEW, {"count": 8})
    beside = float(np.mean(np.sum(rows[1:] * rows[:-1], axis=1)))
    total = np.sum(rows, axis=0, dtype=np.float64)
    pairs = len(rows) * (len(rows) - 1)
    any_two = (float(np.square(total).sum()) - float(np.square(rows).sum())) / pairs
    gap = beside - any_two
    truths = {"nearer": gap > 0.1, "alike": abs(gap) <= 0.1, "farther": gap < -0.1}
    if abs(abs(gap) - 0.1) < ALIKE:
        return UNDECIDED
    return settled(truths, {"beside": beside, "any": any_two})


def neighbour(run: Run) -> Answer | Note:
    """Which of three tokens is nearest to the chosen one after training."""
    if not run.found.ids or len(run.found.tokens) < 5:
        return Note(FEW, {"count": 5})
    order, cosines = nearest(run.found.after, [run.id], len(run.found.tokens) - 1)
    ranks = (0, len(order[0]) // 2, len(order[0]) - 1)
    offered = [(int(order[0, rank]), float(cosines[0, rank])) for rank in ranks]
    if offered[0][1] - offered[1][1] < ALIKE:
        return UNDECIDED
    return Answer(
        choice=f"token:{offered[0][0]}",
        options=tuple(f"token:{index}" for index, _ in sorted(offered)),
        values={"token_chosen": run.id, "best": offered[0][1], "middle": offered[1][1], "last": offered[2][1]},
        each={f"token:{index}": {"token": index} for index, _ in offered},
    )


def effective(run: Run) -> Answer | Note:
    """Whether training has made the rows use more or fewer dimensions."""
    if len(run.found.tokens) < 5:
        return Note(FEW, {"count": 5})
    before, after = (dimensions(run.found.matrix(state)).effective for state in ("before", "after"))
    truths = {"fewer": after < 0.95 * before, "same": abs(after - before) <= 0.05 * before, "more": after > 1.05 * before}
    values = {"before": before, "after": after, "width": run.found.width, "rows": len(run.found.tokens)}
    return settled(truths, values)


def corners(run: Run) -> Answer | Note:
    """How far apart two different one-hot rows are."""
    if len(run.found.tokens) < 3:
        return Note(FEW, {"count": 3})
    first, last = 1, len(run.found.tokens) - 1
    one_hot = one_hot_product([first, last], np.zeros((last + 1, 1), dtype=np.float32))  # any matrix: the rows are wanted
    distance = float(np.linalg.norm(one_hot.one_hot[0] - one_hot.one_hot[1]))
    truths = {"same": True, "numbers": False, "meaning": False}
    return settled(truths, {"distance": distance, "token_first": first, "token_last": last})


EMBEDDINGS: Final = tuple(
    Question(id=f"embeddings.{name}", ask=ask)
    for name, ask in {
        "lookup": lookup,
        "zeros": zeros,
        "corners": corners,
        "nextdoor": nextdoor,
        "neighbour": neighbour,
        "effective": effective,
    }.items()
)
