"""The models that can be trained live, by name: how they are made, how many parameters they have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import torch

from engine.language_models import TRANSFORMER, LanguageModel, language_model

RECURRENT: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "rnn": {"cell": "rnn"},
        "gru": {"cell": "gru"},
        "lstm": {"cell": "lstm"},
        "relu": {"cell": "rnn", "activation": "relu"},  # without bounds of its own: what clipping is for
    }
)
KINDS = (*RECURRENT, TRANSFORMER)
HEADS = 4


def config_of(kind: str, width: int, layers: int, size: int, context: int) -> dict[str, Any]:
    """What makes a model of a kind, as a checkpoint stores it. ``context``: the length of the pieces it is trained on.

    Raises:
        ValueError: there is no such kind.
    """
    if kind == TRANSFORMER:
        heads = HEADS if width % HEADS == 0 else 1
        return {
            "cell": TRANSFORMER,
            "vocabulary_size": size,
            "width": width,
            "num_layers": layers,
            "heads": heads,
            "context": context,
        }
    if kind not in RECURRENT:
        raise ValueError(f"a model is one of {', '.join(KINDS)}, not {kind!r}")
    return {**RECURRENT[kind], "vocabulary_size": size, "hidden_size": width, "num_layers": layers}


def build(config: Mapping[str, Any], generator: torch.Generator) -> LanguageModel:
    """The untrained model of a config; its weights are drawn from the generator."""
    return language_model(**config, generator=generator)


@cache
def count(kind: str, width: int, layers: int, size: int) -> int:
    """The number of parameters, without giving them a place in memory."""
    with torch.device("meta"):
        model = build(config_of(kind, width, layers, size, 1), torch.Generator())
    return sum(parameter.numel() for parameter in model.parameters())
