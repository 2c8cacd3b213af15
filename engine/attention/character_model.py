r"""One layer of attention that predicts the next character: what the lesson on many heads looks into.

X_t = E_{i_t} + P_t,  O = MultiHead(X) with each position seeing itself and what came before,  Y = (X + O) W_y + b_y

Attention alone, no feed-forward part and no norm: whatever the model has learned of the text beyond single characters, its
heads have learned. E has a row for each character, P are the sinusoidal positions (``engine.attention.positions``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as read_tensors
from torch import Tensor, nn
from torch.nn import functional

from engine.attention.masks import keep_past
from engine.attention.multihead import MultiHeadAttention
from engine.attention.positions import sinusoidal
from engine.text.vocabulary import Vocabulary
from engine.training.checkpoints import SHIPPED, read_files

FOLDER = SHIPPED / "attention"
WIDTH = 64
HEADS = (1, 2, 4, 8)
LONGEST = 64  # characters that the trained models have seen at once


class CharacterModel(nn.Module):
    """Embedding, positions, one multi-head attention, a linear layer.

    Shape:
        ids (T,) or (B, T) int64 -> scores of the next character (..., T, vocabulary_size).
    """

    def __init__(self, vocabulary_size: int, heads: int, width: int = WIDTH, *, generator: torch.Generator) -> None:
        super().__init__()
        self.width = width
        self.E = nn.Parameter(torch.empty(vocabulary_size, width).normal_(std=0.7, generator=generator))
        self.attention = MultiHeadAttention(width, heads, generator=generator)
        bound = (6 / (width + vocabulary_size)) ** 0.5
        self.W_y = nn.Parameter(torch.empty(width, vocabulary_size).uniform_(-bound, bound, generator=generator))
        self.b_y = nn.Parameter(torch.zeros(vocabulary_size))

    def vectors(self, ids: Tensor) -> Tensor:
        """What attention reads (..., T, width): each character's own vector, and its position's added to it."""
        return self.E[ids] + sinusoidal(ids.shape[-1], self.width).to(self.E.dtype)

    def scores(self, X: Tensor, O: Tensor) -> Tensor:
        """Scores of the next character from the vectors and what attention adds to them."""
        return (X + O) @ self.W_y + self.b_y

    def forward(self, ids: Tensor) -> Tensor:
        X = self.vectors(ids)
        return self.scores(X, self.attention(X, mask=keep_past(ids.shape[-1])))


def loss_of(scores: Tensor, ids: Tensor) -> Tensor:
    """Mean negative log-likelihood, in nats, of each next character of ids (..., T) under scores (..., T, V)."""
    return functional.cross_entropy(scores[..., :-1, :].flatten(0, -2), ids[..., 1:].flatten())


def train(
    model: CharacterModel, ids: Tensor, *, steps: int, batch: int, rate: float, generator: torch.Generator
) -> Iterator[float]:
    """Train in place on random windows of ids (length,), one loss a step; the learning rate falls to 0."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (step + 1) / 100) * (1 - step / steps)
        first = torch.randint(len(ids) - LONGEST, (batch, 1), generator=generator)
        window = ids[first + torch.arange(LONGEST)]
        loss = loss_of(model(window), window)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield float(loss.detach())


@torch.no_grad()
def held_out_loss(model: CharacterModel, ids: Tensor) -> float:
    """The loss on all whole windows of a text."""
    windows = ids[: len(ids) // LONGEST * LONGEST].reshape(-1, LONGEST)
    return float(loss_of(model(windows), windows))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, shared read-only; ``losses`` and ``training`` as stored."""

    model: CharacterModel
    vocabulary: Vocabulary
    losses: Mapping[str, Any]
    training: Mapping[str, Any]


@cache
def load(heads: int, folder: Path = FOLDER) -> Trained:
    """The shipped model with so many heads. Raises ``CheckpointError`` where its files are missing or changed."""
    content, weights = read_files(folder / f"heads-{heads}.json")
    vocabulary = Vocabulary.from_tokens(content["vocabulary"])
    model = CharacterModel(**content["config"], generator=torch.Generator().manual_seed(0))
    model.load_state_dict(read_tensors(weights))
    return Trained(
        model=model.eval().requires_grad_(False),
        vocabulary=vocabulary,
        losses=content["losses"],
        training=content["training"],
    )


def untrained(heads: int, seed: int, vocabulary: Vocabulary) -> CharacterModel:
    """The same model before any training: projections and vectors drawn with ``seed``."""
    made = CharacterModel(len(vocabulary), heads, generator=torch.Generator().manual_seed(seed))
    return made.eval().requires_grad_(False)
