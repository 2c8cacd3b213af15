"""A text on its way into a model, in three stages that are often taken for one: split, number, batch.

Split makes tokens of a text, number gives each token its number in a vocabulary, batch cuts the row of numbers into
minibatches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from engine.text.batches import Batches, Plan, random_sampling, sequential_partition
from engine.text.tokenizers import tokenize
from engine.text.vocabulary import UNKNOWN, Vocabulary

RESERVED = ("<pad>", "<bos>", "<eos>")
WAYS = ("random", "sequential")


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """``tokens`` (n) of a text, the ``vocabulary`` made from them, and their ``ids`` (n) in it."""

    text: str = field(repr=False)
    level: str
    tokens: tuple[str, ...] = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)
    ids: tuple[int, ...] = field(repr=False)

    @property
    def unknown(self) -> int:
        """How many tokens of the text are read as ``<unk>``."""
        return self.ids.count(0)

    @property
    def distinct(self) -> int:
        """How many different tokens the text has."""
        return len(self.vocabulary.counts)

    @property
    def left_out(self) -> int:
        """How many different tokens of the text have no number of their own."""
        return sum(token not in self.vocabulary or token == UNKNOWN for token in self.vocabulary.counts)


def cut(
    text: str, level: str, *, min_freq: int = 1, reserved: tuple[str, ...] = (), pieces: int = 512, keep_blanks: bool = False
) -> Cutting:
    """Split a text at ``level`` and number its tokens. See ``tokenize`` and ``Vocabulary``, which also say what they raise."""
    tokens = tuple(tokenize(text, level, vocabulary_size=pieces, keep_blanks=keep_blanks))
    vocabulary = Vocabulary(tokens, min_freq=min_freq, reserved=reserved)
    return Cutting(text=text, level=level, tokens=tokens, vocabulary=vocabulary, ids=tuple(vocabulary[list(tokens)]))


def batches(ids: tuple[int, ...], way: str, plan: Plan, seed: int) -> Batches:
    """The minibatches of an epoch, cut in one of the two ways at the plan's offset. Raises ``TooLittleText``."""
    if way not in WAYS:
        raise ValueError(f"there are {' and '.join(WAYS)}, not {way!r}")
    size = (torch.tensor(ids, dtype=torch.int64), plan.batch_size, plan.num_steps)
    if way == "sequential":
        return sequential_partition(*size, offset=plan.offset)
    return random_sampling(*size, torch.Generator().manual_seed(seed), offset=plan.offset)


def every_start(ids: tuple[int, ...], way: str, plan: Plan, seed: int) -> list[list[list[int]]]:
    """Where each row of each minibatch begins, for every offset that may be drawn: (offsets, batches, B); empty if none is."""
    size = {"length": plan.length, "batch_size": plan.batch_size, "num_steps": plan.num_steps}
    return [batches(ids, way, Plan(**size, offset=offset), seed).starts.tolist() for offset in plan.offsets]
