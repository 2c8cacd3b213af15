"""The recall task: name the first symbol of a line after a stretch of noise.

A line is one of eight capitals, ``noise`` random small letters, and a question mark: ``Ddbhagcefadbhgecafdb?``. The answer
is the capital it began with. Nothing between helps, so whatever answers better than one in eight has carried the capital
through the noise. One letter of noise in nine is unknown (``<unk>``), so that any other character serves as noise as well.
With twenty letters of noise an LSTM whose forget gates start half open (bias 0) fails, and one whose gates start open
(bias +2) succeeds: Jozefowicz et al. 2015, "An Empirical Exploration of Recurrent Network Architectures".

All characters can be typed, so a learner can ask a trained model with a line of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.text.vocabulary import UNKNOWN, Vocabulary
from engine.training.batch import IGNORED, Batch

SYMBOLS = "ABCDEFGH"
NOISE = "abcdefgh"
CUE = "?"


def vocabulary() -> Vocabulary:
    """``<unk>``, the symbols, the letters of noise and the cue, in this order."""
    return Vocabulary.from_tokens([UNKNOWN, *SYMBOLS, *NOISE, CUE])


def lines(count: int, noise: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Ids (noise + 2, count) of random lines, and the ids (count,) of their answers."""
    first = torch.randint(1, 1 + len(SYMBOLS), (1, count), generator=generator)
    letter = torch.randint(1 + len(NOISE), (noise, count), generator=generator)
    between = torch.where(letter > 0, len(SYMBOLS) + letter, 0)
    cue = torch.full((1, count), 1 + len(SYMBOLS) + len(NOISE))
    return torch.cat([first, between, cue]), first[0]


@dataclass(frozen=True, kw_only=True)
class RecallBatches:
    """Fresh random lines for ever; only the answer after the cue counts."""

    batch_size: int
    noise: int

    def __call__(self, generator: torch.Generator) -> Iterator[Batch]:
        while True:
            X, answers = lines(self.batch_size, self.noise, generator)
            Y = torch.full_like(X, IGNORED)
            Y[-1] = answers
            yield Batch(X=X, Y=Y, carries=False)


def accuracy(model: torch.nn.Module, noise: int, generator: torch.Generator, count: int = 1_000) -> float:
    """The share of random lines to which the model gives the right answer."""
    X, answers = lines(count, noise, generator)
    with torch.no_grad():
        scores, _ = model(X)
    return float((scores[-1].argmax(-1) == answers).double().mean())
