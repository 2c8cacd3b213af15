"""Lesson 5: its config, the flow of gradients that a config means, and that flow as bytes for the stage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import streamlit as st
import torch

from engine.notes import Note
from engine.recurrent import truncation
from engine.recurrent.cuts import between_states, cuts, step_factors
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.truncation import GradientFlow, Truncation
from engine.recurrent.truncation_questions import FlowRun
from engine.text.vocabulary import Vocabulary
from engine.trace import Array
from pages.ui import link, positions, runs
from pages.ui import opened as opened_models
from pages.ui.config import MAX_SEED, LessonConfig, choice, given_text, number, to_query
from pages.ui.stage import stage_words
from pages.ui.words import words

LONGEST = 128  # characters: a map of 127 losses over 127 states
UNITS = 64
MAX_LENGTH = 64
DECADES = (-10.0, 1.0)  # the fixed scale of the map, powers of ten
FACTORS = (-1.0, 1.0)  # of the factors of single steps


@dataclass(frozen=True, kw_only=True)
class TruncationConfig(LessonConfig):
    """Lesson 5. ``length`` is that of a window or chunk, ``percent`` how often a random chain goes on; step (loss), key (state)
    and cut say where one looks.
    """

    network: str = "rnn"
    model: str = "trained"
    seed: int = 0
    truncation: str = "full"
    length: int = 8
    percent: int = 80
    step: int = 40
    key: int = 30
    cut: int = 24

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "network": ("rnn", "lstm", "gru"),
        "model": ("trained", "untrained"),
        "truncation": ("full", "window", "chunks", "randomized"),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "TruncationConfig":
        text = given_text(params, notes)
        chosen: dict[str, Any] = {
            name: choice(name, params, known, notes) for name, known in cls.choices.items() if name != "model"
        }
        asked = params.get("model", cls.model)
        chosen["model"] = opened_models.choose(asked, cls.choices["model"], (chosen["network"],), notes)
        last = max(min(len(text), LONGEST) - 2, 0)
        opening = {"step": cls.step, "key": cls.key, "cut": cls.cut}
        places: dict[str, Any] = {
            name: number(name, params, last, notes, shift=1) if name in params else min(value, last)
            for name, value in opening.items()
        }
        return cls(
            text=text,
            seed=number("seed", params, MAX_SEED, notes),
            length=max(number("length", {"length": str(cls.length), **params}, MAX_LENGTH, notes), 1),
            percent=max(number("percent", {"percent": str(cls.percent), **params}, 100, notes), 5),
            **chosen,
            **places,
        )

    @property
    def run(self) -> "TruncationConfig":
        """The config of the run alone: where the learner looks does not change a number of it."""
        return replace(self, step=type(self).step, key=type(self).key, cut=type(self).cut)

    @property
    def whole(self) -> "TruncationConfig":
        """The same model and text without a truncation."""
        shape = type(self)
        return replace(self.run, truncation="full", length=shape.length, percent=shape.percent)

    @property
    def read_in(self) -> str:
        """The characters of the run."""
        return self.text[:LONGEST]

    @property
    def tokens(self) -> tuple[str, ...]:
        """The characters that are read; the last one of the run is only predicted."""
        return tuple(self.read_in[:-1])

    @property
    def chosen(self) -> Truncation:
        """The truncation that the config asks for."""
        return {
            "full": truncation.full(),
            "window": truncation.window(self.length),
            "chunks": truncation.chunks(self.length),
            "randomized": truncation.randomized(self.percent / 100),
        }[self.truncation]


def opened(config: TruncationConfig) -> tuple[RecurrentLanguageModel, Vocabulary]:
    """The model of a config, and its vocabulary."""
    seed = config.seed if config.model == "untrained" else 0
    outside = opened_models.shape_of(config.model)
    return runs.opened(config.network, config.model, seed, UNITS if outside is None else outside.width, ())


def ids_of(config: TruncationConfig) -> torch.Tensor:
    """The characters' numbers (T + 1,)."""
    return torch.tensor(opened(config)[1][list(config.read_in)])


def key(config: TruncationConfig) -> str:
    """What decides the numbers of a run, as one string."""
    return f"truncation?{urlencode(to_query(config.run))}"


def full_flow(config: TruncationConfig) -> GradientFlow:
    """The full gradient of a config's model on its text, computed once."""
    return _full(key(config.whole), config)


@st.cache_resource(max_entries=12, show_spinner=False)
def _full(key: str, _config: TruncationConfig) -> GradientFlow:  # noqa: ARG001 the key is the cache's
    return truncation.gradient_flow(opened(_config)[0], ids_of(_config))


def flow_of(config: TruncationConfig) -> GradientFlow:
    """The gradient under the truncation that is asked for; a random one is the draw with the config's seed."""
    return full_flow(config).under(config.chosen, torch.Generator().manual_seed(config.seed))


def comparable(config: TruncationConfig) -> bool:
    """Whether the weights between states have a gradient at all: the first step has no state before it."""
    flow = full_flow(config)
    return any(flow.gradient(name).any() for name in between_states(flow))


def asked(config: TruncationConfig) -> FlowRun:
    """What the questions ask about."""
    return FlowRun(model=opened(config)[0], ids=ids_of(config), flow=full_flow(config), step=config.step)


def packed(config: TruncationConfig, lang: str) -> bytes:
    """The map as bytes for the stage, in the learner's language."""
    start: dict[str, Any] = {name: getattr(config, name) for name in ("step", "key", "cut")} | {"move": link.moves()}
    return _packed(key(config), urlencode(start), lang, config, start)


def _logs(values: Array) -> Array:
    """Powers of ten; NaN, which is an empty cell, for what is 0."""
    logs = np.full(values.shape, np.nan)
    np.log10(values, out=logs, where=values > 0)
    return logs


@st.cache_resource(max_entries=16, show_spinner=False)
def _packed(key: str, place: str, lang: str, _config: TruncationConfig, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    flow = flow_of(_config)
    full, left, cut = flow.full_norms, flow.norms, cuts(flow)
    losses = np.arange(len(flow))
    own = full["H"][losses, losses]
    share = np.divide(left["H"], own[:, None], out=np.zeros_like(left["H"]), where=own[:, None] > 0)
    maps = {
        "G": positions.Extra(
            _logs(left["H"]), "TS", name=words("truncation.map.H"), letter="G", interval=DECADES, paper=True, unit="10^"
        ),
        "J": positions.Extra(
            _logs(step_factors(full["H"])), "TS", name=words("truncation.map.factor"), letter="J", interval=FACTORS, unit="10^"
        ),
    }
    views: list[dict[str, Any]] = [
        {
            "view": "matrix",
            "area": "time",
            "array": "G",
            "title": words("truncation.map.H"),
            "cut": "columns",
            "cut_label": words("truncation.cut"),
        },
        _readout("truncation.chain", {"loss": "loss", "own": "own", "share": "share", "norm": "arrives"}),
        _readout("truncation.at_cut", {"crossing": "crosses", "cosine": "cosine", "length": "length"}),
        {"view": "matrix", "area": "side", "array": "J", "title": words("truncation.map.factor")},
    ]
    if "C" in left:
        maps["GC"] = positions.Extra(
            _logs(left["C"]),
            "TS",
            name=words("truncation.map.C"),
            letter="C",
            role="cell",
            interval=DECADES,
            paper=True,
            unit="10^",
        )
        views.append({"view": "matrix", "area": "next", "array": "GC", "title": words("truncation.map.C")})
    numbers = {
        "loss": positions.Extra(flow.losses, "T"),
        "own": positions.Extra(own, "T"),
        "share": positions.Extra(share, "TS"),
        "norm": positions.Extra(left["H"], "TS"),
        "crossing": positions.Extra(cut.crossing, "TC"),
        "cosine": positions.Extra(cut.cosines, "C"),
        "length": positions.Extra(cut.lengths, "C"),
    }
    return positions.pack(
        None,
        views=views,
        tokens=_config.tokens,
        words=stage_words(lang, lesson="truncation"),
        extra=maps | numbers,
        first="G",
        shown="G",
        start=_start,
    )


def _readout(title: str, items: Mapping[str, str]) -> dict[str, Any]:
    """Numbers that follow the place, each with its label."""
    found = [{"array": array, "label": words(f"truncation.readout.{label}")} for array, label in items.items()]
    return {"view": "readout", "area": "side", "title": words(title), "items": found}
