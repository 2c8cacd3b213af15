"""Minibatches drawn over their text: which stretch of it is which row of which minibatch, and what is left out.

The numbers are places of tokens in the text, from 0, ends not included. See ``engine.text.batches`` for the two ways to cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.text.batches import Batches


@dataclass(frozen=True, kw_only=True)
class Block:
    """Row ``row`` of minibatch ``batch``: the inputs are the tokens start..end-1, the targets one token later.

    ``continues``: row ``row`` of the minibatch before ended where this one starts, so its state may be carried on.
    """

    start: int
    end: int
    batch: int
    row: int
    continues: bool

    @property
    def targets(self) -> tuple[int, int]:
        """Where Y lies: X shifted by one."""
        return self.start + 1, self.end + 1


@dataclass(frozen=True, kw_only=True)
class Layout:
    """All blocks of an epoch, in the order of the text.

    ``unused``: the stretches that are input of no block: the offset at the front, what is left at the end (its first token is
    still the last target), and in a random cut the pieces that did not fill a minibatch. ``carries``: whether every row of
    every minibatch continues the same row of the one before.
    """

    length: int
    offset: int
    blocks: tuple[Block, ...]
    unused: tuple[tuple[int, int], ...]
    carries: bool

    def at(self, place: int) -> Block | None:
        """The block in which a token is an input, or None. Raises ``IndexError`` for a place outside the text."""
        if not 0 <= place < self.length:
            raise IndexError(f"token {place} is not inside 0 to {self.length - 1}")
        return next((block for block in self.blocks if block.start <= place < block.end), None)

    def row(self, row: int) -> tuple[Block, ...]:
        """One row through all minibatches: the stream that a carried state follows."""
        return tuple(sorted((block for block in self.blocks if block.row == row), key=lambda block: block.batch))


def block_layout(batches: Batches) -> Layout:
    """Where the minibatches of one epoch lie in their text."""
    plan, starts = batches.plan, batches.starts.tolist()
    steps = plan.num_steps
    found = [
        Block(
            start=start,
            end=start + steps,
            batch=batch,
            row=row,
            continues=batch > 0 and starts[batch - 1][row] + steps == start,
        )
        for batch, rows in enumerate(starts)
        for row, start in enumerate(rows)
    ]
    blocks = tuple(sorted(found, key=lambda block: block.start))
    ends = [0, *(block.end for block in blocks)]
    begins = [*(block.start for block in blocks), plan.length]
    return Layout(
        length=plan.length,
        offset=plan.offset,
        blocks=blocks,
        unused=tuple((end, begin) for end, begin in zip(ends, begins, strict=True) if begin > end),
        carries=all(block.continues for block in blocks if block.batch),
    )
