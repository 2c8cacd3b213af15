"""Runs of a lesson's model: computed once per config, shared read-only by everyone who has the same config.

The cache keys are short strings: a config is its own key (hashing a tuple of 256 numbers costs milliseconds, a string
nothing). Models are shared too; nothing here ever trains or changes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st
import torch

from engine.equation import Circuit
from engine.recurrent.language_model import RecurrentLanguageModel
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
    switches = {"reset": reset, "update": update} if cell == "gru" else {}
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
        assert set(missing) <= {"recurrent.b_hh"} and not unexpected, (missing, unexpected)
        with torch.no_grad():
            for key in missing:
                model.get_parameter(key).zero_()
    return model.eval().requires_grad_(True), vocabulary


def run(cell: str, config: RecurrentConfig) -> Run:
    """The run that ``config`` describes, and its baseline where the config changes something."""
    model, vocabulary = opened(cell, config.model, config.seed, config.reset, config.update)
    plain = replace(config, do=(), step=0, unit=0, symbol="")
    trace = _traced(cell, _key(replace(plain, do=config.do)), config)
    baseline = _traced(cell, _key(plain), plain) if config.do else None
    return Run(cell=cell, model=model, vocabulary=vocabulary, tokens=tuple(config.text), trace=trace, baseline=baseline)


def _key(config: RecurrentConfig) -> str:
    return "&".join(f"{name}={value}" for name, value in to_query(config).items())


@st.cache_resource(max_entries=64, show_spinner=False)
def _traced(cell: str, key: str, _config: RecurrentConfig) -> Trace:
    model, vocabulary = opened(cell, _config.model, _config.seed, _config.reset, _config.update)
    ids = torch.tensor(vocabulary[list(_config.text)]).unsqueeze(1)
    return model.trace(ids, do=_config.interventions())


def packed(run: Run, config: RecurrentConfig, lang: str) -> bytes:
    """The run as bytes for the stage, in the learner's language."""
    start = {"step": config.step, "unit": config.unit} | ({"symbol": config.symbol} if config.symbol else {})
    return _packed(run.cell, _key(config), lang, run, start)


@st.cache_resource(max_entries=64, show_spinner=False)
def _packed(cell: str, key: str, lang: str, _run: Run, _start: Mapping[str, object]) -> bytes:
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
