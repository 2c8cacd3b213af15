"""A model that goes on by itself: each guess is appended and read. A bidirectional model is asked, too, and fails honestly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.decoding import greedy, with_state
from engine.recurrent.language_model import RecurrentLanguageModel

UNKNOWN = 0  # is never written


def go_on(model: RecurrentLanguageModel, prefix: Sequence[int], count: int) -> tuple[int, ...]:
    """The ``count`` tokens that a model adds to a text, always the likeliest.

    A forward model carries its state and reads one token a time. A backward cell has to read the whole text again from its new
    end, and at that end it has read nothing: just what is missing is what it was trained to look at.
    """

    def advance(ids: tuple[int, ...], state: Any) -> tuple[Tensor, Any]:
        with torch.no_grad():
            scores, state = model(torch.tensor(ids)[:, None], state)
        return scores[-1, 0], state

    def again(ids: tuple[int, ...]) -> Tensor:
        return advance(ids, None)[0]

    both = len(model.recurrent.directions) > 1
    written = greedy(again if both else with_state(advance), prefix, count, forbidden=(UNKNOWN,))
    return tuple(written.tokens)
