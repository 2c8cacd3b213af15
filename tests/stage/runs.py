"""Runs for the stage's tests: small seeded models with lively numbers, their payloads, and a reader of their own."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from pages.ui import stage
from pages.ui.payload import pack
from tests.support import seeded

TEXT = "In the beginning God created the heaven."
LETTERS = TEXT + "abcdefghijklmnopqrstuvwxyz,;:!?'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
VOCABULARY = Vocabulary(LETTERS)
MODELS: dict[str, dict[str, Any]] = {
    "rnn": {"cell": "rnn"},
    "rnn-relu": {"cell": "rnn", "activation": "relu"},
    "rnn-sigmoid": {"cell": "rnn", "activation": "sigmoid"},
    "lstm": {"cell": "lstm"},
    "gru": {"cell": "gru"},
    "gru-after": {"cell": "gru", "reset": "after"},
    "gru-replaces": {"cell": "gru", "update": "replaces"},
    "gru-after-replaces": {"cell": "gru", "reset": "after", "update": "replaces"},
}


def model_of(name: str, hidden_size: int = 7) -> RecurrentLanguageModel:
    """A model whose gates differ from step to step: larger weights than a fresh one has."""
    model = RecurrentLanguageModel(
        vocabulary_size=len(VOCABULARY), hidden_size=hidden_size, generator=seeded(5), **MODELS[name]
    )
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.mul_(3 if parameter.ndim == 2 else 1)
            if parameter.ndim == 1:
                parameter.uniform_(-1, 1, generator=seeded(len(key)))
    return model


def ids_of(text: str) -> torch.Tensor:
    return torch.tensor(VOCABULARY[list(text)]).unsqueeze(1)


def trace_of(name: str = "lstm", text: str = TEXT, hidden_size: int = 7, do: Any = None) -> Trace:
    return model_of(name, hidden_size).trace(ids_of(text), do=do)


def packed(trace: Trace, text: str = TEXT, model: str = "lstm", lang: str = "en", **options: Any) -> bytes:
    return pack(
        trace,
        tokens=list(text),
        vocabulary=VOCABULARY,
        words=stage.stage_words(lang),
        names=stage.symbol_names(lang),
        docs=stage.symbol_docs(model, lang),
        model=model,
        **options,
    )


@dataclass(frozen=True)
class Payload:
    """What the bytes say, read without the stage's own script."""

    header: dict[str, Any]
    block: np.ndarray

    @classmethod
    def read(cls, data: bytes) -> "Payload":
        length = int.from_bytes(data[:4], "little")
        assert length % 4 == 0
        return cls(json.loads(data[4 : 4 + length].decode("utf-8")), np.frombuffer(data[4 + length :], dtype="<f4"))

    def array(self, name: str) -> np.ndarray:
        entry = self.header["arrays"][name]
        rows = entry.get("rows")
        shape = (max(rows) + 1, entry["shape"][1]) if rows else tuple(entry["shape"])
        stored = self.block[entry["offset"] : entry["offset"] + int(np.prod(shape))].reshape(shape)
        return stored[rows] if rows else stored
