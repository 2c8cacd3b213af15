"""The language models by name: one way to make any of them from a config, as checkpoints store it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from engine.recurrent.language_model import CELLS, RecurrentLanguageModel
from engine.transformer.language_model import TransformerLanguageModel

LanguageModel = RecurrentLanguageModel | TransformerLanguageModel
TRANSFORMER = "transformer"
KINDS: Sequence[str] = (*CELLS, TRANSFORMER)


def language_model(cell: str, vocabulary_size: int, *, generator: torch.Generator | None = None, **sizes: Any) -> LanguageModel:
    """A new model: ``cell`` "rnn", "gru", "lstm" with the sizes of ``RecurrentLanguageModel``, or "transformer" with those of
    ``TransformerLanguageModel``.

    Raises:
        ValueError: there is no such kind. TypeError: sizes that the model does not have.
    """
    if cell == TRANSFORMER:
        return TransformerLanguageModel(vocabulary_size, generator=generator, **sizes)
    if cell not in CELLS:
        raise ValueError(f"cell is one of {', '.join(KINDS)}, not {cell!r}")
    return RecurrentLanguageModel(cell, vocabulary_size, generator=generator, **sizes)
