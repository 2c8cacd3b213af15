r"""Cut a long text of token numbers into minibatches, in the two ways of the textbook (d2l, section 8.3).

* ``random_sampling``: pieces of the text in random order. A state must not be carried from one minibatch to the next.
* ``sequential_partition``: the text is laid in B rows, read in step. Row i of a minibatch continues row i of the one
  before, so its state may be carried on, detached (``carry``).

Both leave out the first ``offset`` tokens (0 <= offset < T), so that pieces begin at other places in every epoch. Two
departures from the textbook: its sequential offset may also be T, which is offset 0 with a whole piece thrown away; and
near the least possible length an offset is only drawn among those that still leave a minibatch.

Shape:
    a text of n numbers -> minibatches X, Y of (B, T), Y one token later. The recurrent models take time first: ``X.T``.
"""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar

import torch
from torch import Tensor

Piece = TypeVar("Piece", bound=Sized)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an epoch over a text of `length` tokens consists of; shown beside the controls while they are moved."""

    length: int
    batch_size: int
    num_steps: int
    offset: int = 0

    def __post_init__(self) -> None:
        for name, least in (("length", 0), ("batch_size", 1), ("num_steps", 1), ("offset", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
            object.__setattr__(self, name, int(value))  # NumPy's numbers overflow where Python's do not

    @property
    def batches(self) -> int:
        """Minibatches in an epoch. The last token is only ever a target, hence the 1."""
        return max(0, self.length - self.offset - 1) // (self.batch_size * self.num_steps)

    @property
    def used(self) -> int:
        """Tokens that are inputs in an epoch."""
        return self.batches * self.batch_size * self.num_steps

    @property
    def unused(self) -> int:
        """Tokens that are no input in this epoch: the offset and the rest at the end."""
        return self.length - self.used

    @property
    def needed(self) -> int:
        """Tokens that one minibatch needs (at offset 0)."""
        return self.batch_size * self.num_steps + 1

    @property
    def enough(self) -> bool:
        return self.batches > 0

    @property
    def largest_steps(self) -> int:
        """The longest piece possible with this batch size; 0 if there is none."""
        return max(0, self.length - 1) // self.batch_size

    @property
    def largest_batch(self) -> int:
        """The largest batch possible with this piece length; 0 if there is none."""
        return max(0, self.length - 1) // self.num_steps

    @property
    def offsets(self) -> range:
        """The offsets that may be drawn: below one piece, and leaving at least one minibatch."""
        return range(min(self.num_steps, self.length - self.needed + 1) if self.length >= self.needed else 0)


class TooLittleText(ValueError):
    """A text from which no minibatch can be cut. ``plan`` says what is needed and what would be possible."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(
            f"{plan.batch_size} pieces of {plan.num_steps} tokens need {plan.needed} tokens, the text has {plan.length}; "
            f"the longest piece at this batch size is {plan.largest_steps}, "
            f"the largest batch at this length {plan.largest_batch}"
        )
        self.plan = plan


class Batches:
    """The minibatches of one epoch: iterate for (X, Y), or read where they lie.

    ``plan`` holds the counts, ``starts`` the place in the text at which each row of each minibatch begins, (batches, B).
    """

    def __init__(self, ids: Tensor, plan: Plan, starts: Tensor) -> None:
        self.plan = plan
        self.starts = starts
        self._ids = ids

    def __len__(self) -> int:
        return self.plan.batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        steps = torch.arange(self.plan.num_steps)
        for starts in self.starts:
            places = starts[:, None] + steps
            yield self._ids[places], self._ids[places + 1]


def random_sampling(
    ids: Sequence[int] | Tensor,
    batch_size: int,
    num_steps: int,
    generator: torch.Generator,
    *,
    offset: int | None = None,
) -> Batches:
    """Pieces of the text in random order; each piece at most once an epoch, none overlapping another.

    Raises:
        TooLittleText: not even one minibatch fits.
    """
    ids, plan = _plan(ids, batch_size, num_steps, generator, offset)
    pieces = (plan.length - plan.offset - 1) // num_steps
    order = torch.randperm(pieces, generator=generator)[: plan.batches * batch_size]
    return Batches(ids, plan, plan.offset + order.reshape(plan.batches, batch_size) * num_steps)


def sequential_partition(
    ids: Sequence[int] | Tensor,
    batch_size: int,
    num_steps: int,
    generator: torch.Generator | None = None,
    *,
    offset: int | None = None,
) -> Batches:
    """The text in `batch_size` rows read in step: row i of a minibatch goes on where row i of the last one ended.

    Without a generator and without an offset the offset is 0.

    Raises:
        TooLittleText: not even one minibatch fits.
    """
    ids, plan = _plan(ids, batch_size, num_steps, generator, 0 if generator is None and offset is None else offset)
    row = (plan.length - plan.offset - 1) // batch_size
    first = plan.offset + torch.arange(batch_size) * row
    return Batches(ids, plan, first + torch.arange(plan.batches)[:, None] * num_steps)


def _plan(
    ids: Sequence[int] | Tensor, batch_size: int, num_steps: int, generator: torch.Generator | None, offset: int | None
) -> tuple[Tensor, Plan]:
    given = torch.as_tensor(ids)
    if given.numel() and given.is_floating_point():
        raise ValueError("token numbers are whole numbers, these are fractions")
    numbers = given.to(torch.int64)
    if numbers.dim() != 1:
        raise ValueError(f"the text is one row of token numbers, got the shape {tuple(numbers.shape)}")
    plan = Plan(length=len(numbers), batch_size=batch_size, num_steps=num_steps)
    if not plan.enough:
        raise TooLittleText(plan)
    if offset is None:
        offset = int(torch.randint(len(plan.offsets), (), generator=generator))
    elif offset not in plan.offsets:
        raise ValueError(f"the offset must be one of 0 to {len(plan.offsets) - 1}, got {offset}")
    return numbers, Plan(length=len(numbers), batch_size=batch_size, num_steps=num_steps, offset=offset)


def carry(state: Any, batch_size: int) -> Any:
    """The state that the next minibatch may begin with: cut off from the graph, or None when its rows do not fit.

    Row i of a state belongs to row i of the text. A minibatch of another size has other rows, so it starts from zeros
    (None), and the caller says so. Also the one place where back-propagation is truncated.

    Args:
        state: a tensor (layers * directions, B, H), a tuple or list of such (LSTM), or None.
        batch_size: B of the minibatch to come.
    """
    if state is None:
        return None
    parts = (state,) if isinstance(state, Tensor) else tuple(state)
    if any(part.shape[-2] != batch_size for part in parts):
        return None
    return state.detach() if isinstance(state, Tensor) else tuple(part.detach() for part in parts)


def minibatches(
    count: int, batch_size: int, generator: torch.Generator | None = None, *, drop_last: bool = False
) -> list[Tensor]:
    """Numbers 0..count-1 of examples (sentence pairs) in minibatches, shuffled when a generator is given.

    ``drop_last`` leaves out a smaller last minibatch, but never the only one: an epoch is not empty unless there is
    nothing at all.
    """
    if count < 0 or batch_size < 1:
        raise ValueError(f"cannot cut {count} examples into batches of {batch_size}")
    order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
    cut = [order[start : start + batch_size] for start in range(0, count, batch_size)]
    return cut[:-1] if drop_last and len(cut) > 1 and len(cut[-1]) < batch_size else cut


def without_empty(sequences: Sequence[Piece]) -> tuple[list[Piece], int]:
    """The sequences that hold something, and how many were left out: a length of 0 cannot be packed or predicted."""
    kept = [sequence for sequence in sequences if len(sequence)]
    return kept, len(sequences) - len(kept)


def last_valid(values: Tensor, lengths: Sequence[int] | Tensor) -> Tensor:
    """What stands at the last real step of each row, at index length - 1.

    Shape:
        values (T, B, H), lengths (B,) each 1..T -> (B, H)
    """
    return values[_lengths(values, lengths) - 1, torch.arange(values.shape[1])]


def reverse_valid(values: Tensor, lengths: Sequence[int] | Tensor) -> Tensor:
    """Each row read backwards from its last real step; the padding stays behind it, so a backward pass never starts there.

    Shape:
        values (T, B, ...), lengths (B,) each 1..T -> the same shape. Twice gives the input back.
    """
    real = _lengths(values, lengths)
    step = torch.arange(values.shape[0])[:, None]
    source = torch.where(step < real, real - 1 - step, step)
    return values[source, torch.arange(values.shape[1])]


def _lengths(values: Tensor, lengths: Sequence[int] | Tensor) -> Tensor:
    """The lengths (B,) as int64. Raises ``ValueError`` unless there is one for each row, whole and between 1 and T."""
    given = torch.as_tensor(lengths)
    whole = given.to(torch.int64)
    fits = given.shape == values.shape[1:2] and bool(((whole == given) & (whole >= 1) & (whole <= values.shape[0])).all())
    if not fits:
        raise ValueError(
            f"{values.shape[1]} rows of {values.shape[0]} steps need as many lengths between 1 and {values.shape[0]}, "
            f"got {given.tolist()}"
        )
    return whole
