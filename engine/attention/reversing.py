r"""Reversing a row of digits: a task that only positions can solve, and whose lengths can be left behind.

A small encoder reads n digits and an end sign and must say at place i the digit at place n - 1 - i. Two layers, each with
attention and a feed-forward part in the post-norm form of the paper (X <- norm(X + f(X))). It is trained on 3 to 10 digits and
then asked for more. The same model is trained with sinusoidal, learned, rotary and ALiBi positions, with none, and with
embeddings drawn from N(0, 1) that are multiplied by sqrt(d) as if they were small ("scaled"): there the codes are drowned.

Unlike the textbook's, a digit's score is taken at every place at once: no decoder, so nothing but positions knows the order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import load as read_tensors
from torch import Tensor, nn
from torch.nn import functional

from engine.attention.multihead import MultiHeadAttention
from engine.attention.positions import learned, sinusoidal
from engine.training.checkpoints import SHIPPED, read_files

FOLDER = SHIPPED / "positions"
VARIANTS: Final = ("sinusoidal", "learned", "rotary", "alibi", "none", "scaled")
DIGITS: Final = 10
END: Final = DIGITS
WIDTH: Final = 32
HEADS: Final = 4
INNER: Final = 64
LAYERS: Final = 2
SHORTEST, LONGEST = 3, 10  # lengths of the training
FARTHEST: Final = 16  # lengths that may be asked for


class _Layer(nn.Module):
    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(WIDTH, HEADS, generator=generator)
        bound = math.sqrt(6 / (WIDTH + INNER))
        self.W_1 = nn.Parameter(torch.empty(WIDTH, INNER).uniform_(-bound, bound, generator=generator))
        self.b_1 = nn.Parameter(torch.zeros(INNER))
        self.W_2 = nn.Parameter(torch.empty(INNER, WIDTH).uniform_(-bound, bound, generator=generator))
        self.b_2 = nn.Parameter(torch.zeros(WIDTH))
        self.gammas = nn.Parameter(torch.ones(2, WIDTH))
        self.betas = nn.Parameter(torch.zeros(2, WIDTH))

    def forward(self, X: Tensor, relative: str | None) -> Tensor:
        X = self.norm(0, X + self.attention(X, relative=relative))
        return self.norm(1, X + torch.relu(X @ self.W_1 + self.b_1) @ self.W_2 + self.b_2)

    def norm(self, which: int, X: Tensor) -> Tensor:
        return functional.layer_norm(X, (WIDTH,), self.gammas[which], self.betas[which])


class ReversingModel(nn.Module):
    """Digits (B, n) int64 -> scores (B, n, 10) of the reversed row's digits. ``variant`` is one of ``VARIANTS``."""

    def __init__(self, variant: str, *, generator: torch.Generator) -> None:
        if variant not in VARIANTS:
            raise ValueError(f"a variant is one of {', '.join(VARIANTS)}, not {variant!r}")
        super().__init__()
        self.variant = variant
        self.scale = math.sqrt(WIDTH) if variant == "scaled" else 1.0
        self.relative = variant if variant in ("rotary", "alibi") else None
        self.E = nn.Parameter(torch.empty(DIGITS + 1, WIDTH).normal_(generator=generator))
        if variant == "learned":
            self.W_p = nn.Parameter(torch.empty(LONGEST + 1, WIDTH).normal_(std=0.7, generator=generator))
        self.layers = nn.ModuleList(_Layer(generator) for _ in range(LAYERS))
        bound = math.sqrt(6 / (WIDTH + DIGITS))
        self.W_y = nn.Parameter(torch.empty(WIDTH, DIGITS).uniform_(-bound, bound, generator=generator))

    @property
    def reach(self) -> int:
        """How many digits it can read at all: a learned table ends, everything else goes on."""
        return LONGEST if self.variant == "learned" else FARTHEST

    def codes(self, length: int) -> Tensor | None:
        """What is added to the embeddings; None where nothing is."""
        if self.variant == "learned":
            return learned(length, self.W_p)
        return sinusoidal(length, WIDTH).to(self.E.dtype) if self.variant in ("sinusoidal", "scaled") else None

    def forward(self, digits: Tensor) -> Tensor:
        ids = functional.pad(digits, (0, 1), value=END)
        X, codes = self.scale * self.E[ids], self.codes(ids.shape[-1])
        X = X if codes is None else X + codes
        for layer in self.layers:
            X = layer(X, self.relative)
        return X[..., :-1, :] @ self.W_y


def rows_of(length: int, count: int, generator: torch.Generator) -> Tensor:
    """Random rows of digits (count, length)."""
    return torch.randint(DIGITS, (count, length), generator=generator)


def loss_of(model: ReversingModel, digits: Tensor) -> Tensor:
    """Mean negative log-likelihood, in nats, of the reversed digits."""
    return functional.cross_entropy(model(digits).flatten(0, 1), digits.flip(-1).flatten())


def train(model: ReversingModel, *, steps: int, batch: int, rate: float, generator: torch.Generator) -> Iterator[float]:
    """Train in place on rows of 3 to 10 digits, one length a step; the learning rate rises at first and falls to 0."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 200) * (1 - step / steps)
        length = int(torch.randint(SHORTEST, LONGEST + 1, (1,), generator=generator))
        loss = loss_of(model, rows_of(length, batch, generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield float(loss.detach())


@torch.no_grad()
def accuracy(model: ReversingModel, length: int, count: int = 256, seed: int = 1) -> float:
    """The share of digits that are right in ``count`` fixed rows; NaN where the model cannot read so many."""
    if length > model.reach:
        return math.nan
    digits = rows_of(length, count, torch.Generator().manual_seed(1000 * seed + length))
    return float((model(digits).argmax(-1) == digits.flip(-1)).double().mean())


@torch.no_grad()
def answer(model: ReversingModel, digits: list[int]) -> list[int] | None:
    """What the model makes of one row; None where it cannot read so many."""
    if len(digits) > model.reach:
        return None
    return [int(digit) for digit in model(torch.tensor([digits])).argmax(-1)[0]]


@torch.no_grad()
def fixed_loss(model: ReversingModel, seed: int = 1) -> float:
    """The mean loss over fixed rows of every length of the training."""
    lengths = range(SHORTEST, LONGEST + 1)
    rows = (rows_of(n, 256, torch.Generator().manual_seed(1000 * seed + n)) for n in lengths)
    return sum(float(loss_of(model, digits)) for digits in rows) / len(lengths)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, shared read-only; ``losses`` and ``training`` as stored."""

    model: ReversingModel = field(repr=False)
    losses: Mapping[str, Any]
    training: Mapping[str, Any]


@cache
def load(variant: str, folder: Path = FOLDER) -> Trained:
    """The shipped model of a variant. Raises ``CheckpointError`` where its files are missing or changed."""
    content, weights = read_files(folder / f"reverse-{variant}.json")
    model = ReversingModel(**content["config"], generator=torch.Generator().manual_seed(0))
    model.load_state_dict(read_tensors(weights))
    return Trained(model=model.eval().requires_grad_(False), losses=content["losses"], training=content["training"])
