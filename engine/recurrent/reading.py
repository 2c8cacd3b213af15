"""How well a model reads a text: the loss of every token that follows, and what its order is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.metrics import perplexity
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.trace import Array, Trace, frozen


def next_losses(trace: Trace, ids: Tensor, *, batch: int = 0) -> Array:
    """-log P of each token that follows, (T - 1,) nats, from the scores of a run on ids (T, B); in float64."""
    scores = torch.tensor(trace["Y"][:-1, batch], dtype=torch.float64)
    log_p = torch.log_softmax(scores, dim=-1)
    return frozen(-log_p.gather(-1, ids[1:, batch : batch + 1])[:, 0])


def text_perplexity(trace: Trace, ids: Tensor, *, batch: int = 0) -> float | None:
    """exp of the mean loss over a text; None for a text of one token, where nothing follows.

    A model that gives every token the same probability has the size of the vocabulary.
    """
    losses = next_losses(trace, ids, batch=batch)
    return perplexity(float(losses.mean())) if len(losses) else None


@dataclass(frozen=True, kw_only=True)
class OrderEffect:
    """What the prediction after the last token loses when the tokens before the last ``keep`` stand in another order.

    ``distance`` is the mean over the orders of the total variation, half the sum of |P - P'|: 0 the same prediction, 1 an
    entirely different one. ``changed``: the share of orders in which another token is the likeliest.
    """

    keep: int
    distance: float
    changed: float


def order_effects(
    model: RecurrentLanguageModel, ids: Tensor, keeps: Sequence[int], generator: torch.Generator, orders: int = 16
) -> tuple[OrderEffect, ...]:
    """The effect for each number of last tokens that keep their place; those that leave nothing to reorder are left out."""
    text, found = ids[:, 0], []
    with torch.no_grad():
        before = _prediction(model, text[:, None])
        for keep in keeps:
            past = len(text) - keep
            if past < 2:
                continue
            rows = torch.stack([text[:past][torch.randperm(past, generator=generator)] for _ in range(orders)])
            after = _prediction(model, torch.cat([rows, text[past:].expand(orders, -1)], dim=1).t())
            distance = (after - before).abs().sum(-1) / 2
            changed = (after.argmax(-1) != before.argmax(-1)).double().mean()
            found.append(OrderEffect(keep=keep, distance=float(distance.mean()), changed=float(changed)))
    return tuple(found)


def _prediction(model: RecurrentLanguageModel, ids: Tensor) -> Tensor:
    scores, _ = model(ids.contiguous())
    return torch.softmax(scores[-1].double(), dim=-1)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The likeliest tokens after the last step: numbers in the vocabulary and their probabilities, largest first."""

    tokens: tuple[int, ...]
    shares: Array = field(repr=False)


def last_prediction(trace: Trace, count: int, *, batch: int = 0) -> Prediction:
    """What a run predicts after its last step."""
    row = trace["P"][-1, batch]
    order = np.argsort(-row, kind="stable")[:count]
    return Prediction(tokens=tuple(int(i) for i in order), shares=frozen(row[order]))
