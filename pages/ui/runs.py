"""Runs of a lesson's model: computed once per config, shared read-only by everyone who has the same config.

The cache keys are short strings: a config is its own key (hashing a tuple of 256 numbers costs milliseconds, a string
nothing). Models are shared too; nothing here ever trains or changes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray

from engine.data import recall
from engine.equation import Circuit
from engine.recurrent.language_model import CELLS, RecurrentLanguageModel
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from engine.training import checkpoints
from pages.ui import payload
from pages.ui.config import RecurrentConfig, to_query
from pages.ui.stage import stage_words, symbol_docs, symbol_names

UNTRAINED = "untrained"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model on one text: the traces, and what is needed to show them. ``baseline`` is None where nothing is changed."""

    cell: str
    model: RecurrentLanguageModel
    vocabulary: Vocabulary
    tokens: tuple[str, ...]
    trace: Trace
    baseline: Trace | None

    @property
    def ids(self) -> torch.Tensor:
        """The tokens' numbers (T, 1)."""
        return torch.tensor(self.vocabulary[list(self.tokens)]).unsqueeze(1)

    @property
    def circuit(self) -> Circuit:
        """The equations of the cell."""
        return self.model.recurrent.circuit

    @property
    def unknown(self) -> tuple[str, ...]:
        """The characters of the text that the model has never seen, each once."""
        return tuple(dict.fromkeys(token for token in self.tokens if token not in self.vocabulary))


@st.cache_resource(max_entries=32, show_spinner=False)
def opened(cell: str, name: str, seed: int, reset: str, update: str) -> tuple[RecurrentLanguageModel, Vocabulary]:
    """A model and its vocabulary. ``name``: trained, untrained (with ``seed``), or a checkpoint of its own."""
    checkpoint = checkpoints.load(cell if name in ("trained", UNTRAINED) else name)
    vocabulary = checkpoint.vocabulary
    switches: dict[str, Any] = {"reset": reset, "update": update} if cell == "gru" else {}
    model = RecurrentLanguageModel(
        cell,
        len(vocabulary),
        checkpoint.model.recurrent.hidden_size,
        generator=torch.Generator().manual_seed(seed),
        **switches,
    )
    if name != UNTRAINED:
        # Reset after the product has one bias more; with it at 0 the weights are the same under both conventions.
        missing, unexpected = model.load_state_dict(checkpoint.model.state_dict(), strict=False)
        assert not unexpected, unexpected
        assert set(missing) <= {"recurrent.b_hh"}, missing
        with torch.no_grad():
            for key in missing:
                model.get_parameter(key).zero_()
    return model.eval().requires_grad_(True), vocabulary


def run(cell: str, config: RecurrentConfig) -> Run:
    """The run that ``config`` describes, and its baseline where the config changes something."""
    model, vocabulary = opened(cell, config.model, config.seed, config.reset, config.update)
    plain = config.plain()
    trace = _traced(key(cell, config), config)
    baseline = _traced(key(cell, plain), plain) if config.do else None
    return Run(cell=cell, model=model, vocabulary=vocabulary, tokens=tuple(config.text), trace=trace, baseline=baseline)


def key(cell: str, config: RecurrentConfig) -> str:
    """What decides the numbers of a run, as one string: where one looks does not."""
    return f"{cell}?{urlencode(to_query(config.run))}"


@st.cache_resource(max_entries=64, show_spinner=False)
def _traced(key: str, _config: RecurrentConfig) -> Trace:
    cell = key.partition("?")[0]
    model, vocabulary = opened(cell, _config.model, _config.seed, _config.reset, _config.update)
    ids = torch.tensor(vocabulary[list(_config.text)]).unsqueeze(1)
    return model.trace(ids, do=_config.interventions())


def packed(run: Run, config: RecurrentConfig, lang: str, move: int = 0) -> bytes:
    """The run as bytes for the stage, in the learner's language; with another ``move`` the stage goes to the config's place."""
    start = {"step": config.step, "unit": config.unit, "move": move} | ({"symbol": config.symbol} if config.symbol else {})
    return _packed(key(run.cell, config), urlencode(start), lang, run, start)


@st.cache_resource(max_entries=64, show_spinner=False)
def _packed(key: str, start: str, lang: str, _run: Run, _start: Mapping[str, object]) -> bytes:  # noqa: ARG001 start is part of the key
    cell = key.partition("?")[0]
    return payload.pack(
        _run.trace,
        tokens=_run.tokens,
        vocabulary=_run.vocabulary,
        words=stage_words(lang),
        names=symbol_names(lang),
        docs=symbol_docs(cell, lang),
        model=cell,
        start=_start,
        baseline=_run.baseline,
    )


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The parameters of one layer: a block of ``size`` for each (letter, role), and ``extra`` ones beside them."""

    blocks: tuple[tuple[str, str], ...]
    size: int
    extra: int


@st.cache_resource(max_entries=16, show_spinner=False)
def blocks(cell: str, inputs: int, units: int) -> Counted:
    """Count the blocks of a cell in its own parameters: each equation that reads X has two matrices and a bias."""
    model = CELLS[cell](inputs, units)
    reading = [e for e in model.circuit.equations.values() if "X" in e.operands]
    table = model.table
    letters = tuple((table[e.name].letter + ("~" if table[e.name].tilde else ""), table[e.name].role) for e in reading)
    total = sum(parameter.numel() for parameter in model.parameters())
    return Counted(blocks=letters, size=total // len(letters), extra=total % len(letters))


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """What the recall checkpoints do on new lines: the share they answer, and the mean forget gate on one line (T,)."""

    lines: int
    accuracy: Mapping[str, float]
    tokens: tuple[str, ...]
    forget: Mapping[str, NDArray[np.float64]]


@st.cache_resource(max_entries=16, show_spinner=False)
def recalled(names: tuple[str, ...], noise: int, seed: int = 0, lines: int = 1000) -> Recalled:
    """Ask each checkpoint for the first letter of new random lines with ``noise`` letters between."""
    accuracy: dict[str, float] = {}
    forget: dict[str, NDArray[np.float64]] = {}
    ids, _ = recall.lines(1, noise, torch.Generator().manual_seed(seed))
    for name in names:
        model = checkpoints.load(name).model
        accuracy[name] = recall.accuracy(model, noise, torch.Generator().manual_seed(seed), lines)
        forget[name] = model.trace(ids)["F"][:, 0].mean(-1, dtype=np.float64)
    tokens = tuple(recall.vocabulary().to_tokens(ids[:, 0].tolist()))
    return Recalled(lines=lines, accuracy=accuracy, tokens=tokens, forget=forget)
