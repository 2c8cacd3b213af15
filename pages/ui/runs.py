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
from engine.recurrent.spectrum import with_radius
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from engine.training import checkpoints
from pages.ui import opened as outside
from pages.ui import payload
from pages.ui.config import RecurrentConfig, to_query
from pages.ui.stage import stage_words, symbol_docs, symbol_names

UNTRAINED = "untrained"
BEYOND = 1e6  # a state larger than this is no memory any more: the run ends before it


@dataclass(frozen=True, kw_only=True)
class Run:
    """One model on one text: the traces, and what is needed to show them. ``baseline`` is None where nothing is changed.

    ``stopped``: the states left all bounds, and the run ends with the last step before that.
    """

    cell: str
    model: RecurrentLanguageModel
    vocabulary: Vocabulary
    tokens: tuple[str, ...]
    trace: Trace
    baseline: Trace | None
    stopped: bool = False

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
def opened(
    cell: str, name: str, seed: int, units: int, switches: tuple[tuple[str, Any], ...], radius: float | None = None
) -> tuple[RecurrentLanguageModel, Vocabulary]:
    """A model and its vocabulary. ``name``: trained, untrained (with ``seed``), or a checkpoint of its own.

    With ``radius`` its matrix from state to state is scaled to that spectral radius.
    """
    if outside.NAME.fullmatch(name):
        trained, vocabulary = outside.find(name)
    else:
        checkpoint = checkpoints.load(cell if name in ("trained", UNTRAINED) else name)
        trained, vocabulary = checkpoint.model, checkpoint.vocabulary
    model = RecurrentLanguageModel(
        cell,
        len(vocabulary),
        units,
        generator=torch.Generator().manual_seed(seed),
        **dict(switches),
    )
    if name != UNTRAINED:
        # Reset after the product has one bias more; with it at 0 the weights are the same under both conventions.
        missing, unexpected = model.load_state_dict(trained.state_dict(), strict=False)
        assert not unexpected, unexpected
        assert set(missing) <= {"recurrent.b_hh"}, missing
        with torch.no_grad():
            for key in missing:
                model.get_parameter(key).zero_()
    if radius is not None:
        model = with_radius(model, radius)
    return model.eval().requires_grad_(True), vocabulary


def model_of(cell: str, config: RecurrentConfig) -> tuple[RecurrentLanguageModel, Vocabulary]:
    """The model that a config describes, and its vocabulary."""
    switches = tuple(config.switches(cell).items())
    return opened(cell, config.model, config.seed, config.hidden_size, switches, config.radius_of(cell))


def run(cell: str, config: RecurrentConfig) -> Run:
    """The run that ``config`` describes, and its baseline where the config changes something."""
    model, vocabulary = model_of(cell, config)
    plain = config.plain()
    both = [config, plain] if config.do else [config]
    traces = [_traced(key(cell, each), each, None) for each in both]
    steps = min(map(sound_steps, traces))
    if steps < len(traces[0]):
        traces = [_traced(key(cell, each), each, steps) for each in both]
    return Run(
        cell=cell,
        model=model,
        vocabulary=vocabulary,
        tokens=config.tokens[:steps],
        trace=traces[0],
        baseline=traces[1] if config.do else None,
        stopped=steps < len(config.tokens),
    )


def sound_steps(trace: Trace) -> int:
    """The steps before the states leave all bounds: only a cell without bounds of its own (ReLU) can. At least 1."""
    sizes = [np.abs(trace[name]).max(axis=(1, 2)) for name, symbol in trace.symbols.items() if symbol.axes == "TBH"]
    beyond = np.flatnonzero(~(np.max(sizes, axis=0) <= BEYOND))  # what is no number is beyond as well
    return max(int(beyond[0]), 1) if len(beyond) else len(trace)


def key(cell: str, config: RecurrentConfig) -> str:
    """What decides the numbers of a run, as one string: where one looks does not.

    The kind of config is part of it: a link leaves defaults out, and two lessons need not have the same ones.
    """
    return f"{cell}?{type(config).__name__}&{urlencode(to_query(config.run))}"


@st.cache_resource(max_entries=64, show_spinner=False)
def _traced(key: str, _config: RecurrentConfig, steps: int | None) -> Trace:
    model, vocabulary = model_of(key.partition("?")[0], _config)
    ids = torch.tensor(vocabulary[list(_config.tokens)]).unsqueeze(1)[:steps]
    return model.trace(ids, do=_config.interventions(steps))


def packed(run: Run, config: RecurrentConfig, lang: str, move: int = 0) -> bytes:
    """The run as bytes for the stage, in the learner's language; with another ``move`` the stage goes to the config's place."""
    start = config.looks | {"move": move, "follows": True}
    place = urlencode(start | {"pins": config.pins})
    return _packed(key(run.cell, config), place, lang, run, start, config)


@st.cache_resource(max_entries=64, show_spinner=False)
def _packed(
    key: str,
    place: str,  # noqa: ARG001 the cache's
    lang: str,
    _run: Run,
    _start: Mapping[str, object],
    _config: RecurrentConfig,
) -> bytes:
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
        chain=_config.chain,
        pins=_config.pins,
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
