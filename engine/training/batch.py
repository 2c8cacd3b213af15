"""Minibatches as the training loop takes them: time first, and said whether a state may be carried into them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from engine.text.batches import random_sampling, sequential_partition

IGNORED = -100  # a target that does not count; the value that torch's cross-entropy leaves out
UNKNOWN_ID = 0

Sampling = Literal["random", "sequential"]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """X and Y (T, B) of int64, Y the token after each token of X, ``IGNORED`` where no answer is wanted.

    ``carries``: row i goes on where row i of the batch before ended, so the state may be carried on.
    """

    X: Tensor
    Y: Tensor
    carries: bool


@dataclass(frozen=True, kw_only=True)
class TextBatches:
    """Minibatches of a text for ever, epoch after epoch.

    ids: the text (N,); sampling: as in ``engine.text.batches``; unknown_share: this share of the inputs, drawn at random, is
    read as ``<unk>``, so that the model learns to live with characters it has never seen. Targets stay what they are.
    """

    ids: Tensor
    batch_size: int = 32
    num_steps: int = 35
    sampling: Sampling = "random"
    unknown_share: float = 0.0

    def __post_init__(self) -> None:
        if self.sampling not in ("random", "sequential"):
            raise ValueError(f"sampling is random or sequential, not {self.sampling!r}")
        if not 0 <= self.unknown_share < 1:
            raise ValueError(f"unknown_share must lie in 0 <= share < 1, not {self.unknown_share}")

    def __call__(self, generator: torch.Generator) -> Iterator[Batch]:
        cut = random_sampling if self.sampling == "random" else sequential_partition
        while True:
            for number, (X, Y) in enumerate(cut(self.ids, self.batch_size, self.num_steps, generator)):
                read = X
                if self.unknown_share:
                    read = X.masked_fill(torch.rand(X.shape, generator=generator) < self.unknown_share, UNKNOWN_ID)
                yield Batch(X=read.t(), Y=Y.t(), carries=self.sampling == "sequential" and number > 0)
