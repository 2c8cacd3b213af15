r"""The model of the lesson on many heads with other positions: learned, rotary, ALiBi, or none at all.

X_t = E_{i_t} + P_t with a learned row P_t for each position; X_t = E_{i_t} for the others, whose positions stand in the scores
(rotary turns queries and keys, ALiBi takes away what grows with the distance) or nowhere. The rest is
``engine.attention.character_model``: one attention over the past, and a linear layer. All are trained alike on windows of 64
characters, the sinusoidal one is the shipped model with four heads; so what differs between them is how they see the order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load as read_tensors
from torch import Tensor, nn
from torch.nn import functional

from engine.attention import character_model
from engine.attention.character_model import LONGEST, WIDTH, CharacterModel
from engine.attention.masks import keep_past
from engine.attention.positions import alibi, learned, rotary, sinusoidal
from engine.text.vocabulary import Vocabulary
from engine.training.checkpoints import SHIPPED, read_files

FOLDER = SHIPPED / "positions"
HEADS: Final = 4
KINDS: Final = ("sinusoidal", "learned", "rotary", "alibi", "none")
BAKED: Final = KINDS[1:]  # the first is the shipped model of the lesson on many heads
RELATIVE: Final[Mapping[str, str | None]] = {"rotary": "rotary", "alibi": "alibi"}


class OrderModel(CharacterModel):
    """``CharacterModel`` with a choice of positions, one of ``KINDS``. A learned table has ``size`` rows."""

    def __init__(
        self,
        vocabulary_size: int,
        heads: int = HEADS,
        width: int = WIDTH,
        *,
        kind: str = "sinusoidal",
        size: int = LONGEST,
        generator: torch.Generator,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"positions are one of {', '.join(KINDS)}, not {kind!r}")
        super().__init__(vocabulary_size, heads, width, generator=generator)
        self.kind = kind
        if kind == "learned":
            self.W_p = nn.Parameter(torch.empty(size, width).normal_(std=0.1, generator=generator))

    @property
    def relative(self) -> str | None:
        """What the scores know of the positions."""
        return RELATIVE.get(self.kind)

    def codes(self, length: int) -> Tensor | None:
        """What is added to the vectors of ``length`` characters; None where nothing is. Raises beyond a learned table."""
        if self.kind == "learned":
            return learned(length, self.W_p)
        return sinusoidal(length, self.width).to(self.E.dtype) if self.kind == "sinusoidal" else None

    def vectors(self, ids: Tensor) -> Tensor:
        codes = self.codes(ids.shape[-1])
        return self.E[ids] if codes is None else self.E[ids] + codes

    def forward(self, ids: Tensor) -> Tensor:
        X = self.vectors(ids)
        if self.relative is None:
            return self.scores(X, self.attention(X, mask=keep_past(ids.shape[-1])))
        return self.scores(X, self._relative(X))

    def _relative(self, X: Tensor) -> Tensor:
        """The fast path where positions stand in the scores: the numbers of the equations without the parts."""
        layer, length = self.attention, X.shape[-2]
        Q, K, V = ((X @ W).unflatten(-1, (layer.heads, -1)).transpose(-3, -2) for W in (layer.W_q, layer.W_k, layer.W_v))
        kept = keep_past(length)
        if self.kind == "rotary":
            read = functional.scaled_dot_product_attention(rotary(Q), rotary(K), V, attn_mask=kept)
        else:
            bias = alibi(layer.heads, length, dtype=X.dtype).masked_fill(~kept, float("-inf"))
            read = functional.scaled_dot_product_attention(Q, K, V, attn_mask=bias)
        return read.transpose(-3, -2).flatten(-2) @ layer.W_o


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A trained model, shared read-only; ``losses`` and ``training`` as stored."""

    model: OrderModel = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)
    losses: Mapping[str, Any]
    training: Mapping[str, Any]


@cache
def load(kind: str, folder: Path = FOLDER) -> Trained:
    """The shipped model with these positions. Raises ``CheckpointError`` where its files are missing or changed."""
    if kind == "sinusoidal":
        found = character_model.load(HEADS)
        model = OrderModel(len(found.vocabulary), generator=torch.Generator().manual_seed(0))
        model.load_state_dict(found.model.state_dict())
        vocabulary, losses, training = found.vocabulary, found.losses, found.training
    else:
        content, weights = read_files(folder / f"{kind}.json")
        model = OrderModel(**content["config"], generator=torch.Generator().manual_seed(0))
        model.load_state_dict(read_tensors(weights))
        vocabulary = Vocabulary.from_tokens(content["vocabulary"])
        losses, training = content["losses"], content["training"]
    return Trained(model=model.eval().requires_grad_(False), vocabulary=vocabulary, losses=losses, training=training)


@torch.no_grad()
def loss_by_position(model: OrderModel, ids: Tensor, length: int) -> NDArray[np.float64]:
    """The mean loss of each next character at positions 0 to ``length`` - 2, over all whole windows of ids. (length - 1,)

    NaN from where a learned table has ended.
    """
    able = min(length, len(model.W_p)) if model.kind == "learned" else length
    windows = ids[: len(ids) // length * length].reshape(-1, length)
    found = np.full(length - 1, np.nan)
    scores = model(windows[:, :able])
    wanted = windows[:, 1 : able + 1]
    each = functional.cross_entropy(scores[:, : wanted.shape[1]].flatten(0, 1), wanted.flatten(), reduction="none").reshape(
        wanted.shape
    )
    found[: wanted.shape[1]] = each.double().mean(0).numpy()
    return found
