"""Lesson 16: its config, the stack that a config means, and that stack as bytes for the stage."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from engine.notes import Note
from engine.trace import Trace
from engine.transformer.depth import ARRANGEMENTS, INPUTS, DepthRun
from engine.transformer.residual_norm import ACTIVATIONS, StackFlow
from pages.ui import link, positions
from pages.ui.config import MAX_SEED, WHOLE, LessonConfig, choice, given_text, number, to_query
from pages.ui.positions import Extra
from pages.ui.stage import position_names, stage_words, symbol_docs
from pages.ui.words import words

SYMBOLS = ("X", "mean", "variance", "square", "X_hat", "X_n", "F", "R", "Y", "W")
TOKENS = 64  # that go through the stack
LARGEST = 1e38  # what a number on the stage can hold
MOST = 2**16  # numbers of one symbol on the stage
LIMITS = {"depth": (1, 64, 24), "width": (2, 64, 16), "percent": (0, 300, 100)}
ROLES = {"pre": "output", "post": "cell", "residual": "forget", "plain": "weights", "norm": "update"}
SHOWN = ("pre", "post", "residual", "plain")  # lines that are always there, to compare with


@dataclass(frozen=True, kw_only=True)
class DepthConfig(LessonConfig):
    """Lesson 16. ``percent`` scales the first weights; step is a block, key a token, unit a feature: where one looks."""

    arrangement: str = "pre"
    norm: str = "layer"
    depth: int = LIMITS["depth"][2]
    width: int = LIMITS["width"][2]
    percent: int = LIMITS["percent"][2]
    activation: str = "relu"
    given: str = "normal"
    seed: int = 0
    step: int = 0
    key: int = 0
    unit: int = 0
    symbol: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "arrangement": tuple(ARRANGEMENTS),
        "norm": ("layer", "rms", "batch"),
        "activation": tuple(ACTIVATIONS),
        "given": INPUTS,
        "symbol": ("", *SYMBOLS),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "DepthConfig":
        text = given_text(params, notes)
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        numbers: dict[str, Any] = {name: _between(name, params, notes) for name in LIMITS}
        return cls(
            text=text,
            seed=number("seed", params, MAX_SEED, notes),
            step=number("step", params, numbers["depth"] - 1, notes, shift=1),
            key=number("key", params, min(len(text), TOKENS) - 1, notes, shift=1),
            unit=number("unit", params, numbers["width"] - 1, notes),
            **chosen,
            **numbers,
        )

    @property
    def run(self) -> "DepthConfig":
        """The config of the run alone: where the learner looks does not change a number of it."""
        return replace(self, step=0, key=0, unit=0, symbol="")

    @property
    def tokens(self) -> tuple[str, ...]:
        """What goes through the stack."""
        return tuple(self.text[:TOKENS])

    @property
    def seen(self) -> int:
        """How many tokens stand on the stage: all, unless the stack is so large that they would be too many numbers."""
        return min(len(self.tokens), max(1, MOST // (self.depth * self.width)))

    @property
    def normed(self) -> bool:
        """Whether there is a norm in a block."""
        return "norm" not in ARRANGEMENTS[self.arrangement]


def _between(name: str, params: Mapping[str, str], notes: list[Note]) -> int:
    """A whole number within ``LIMITS``, its default where none is asked for."""
    low, high, default = LIMITS[name]
    given = params.get(name, str(default))
    asked_for = int(given) if WHOLE.fullmatch(given) else None
    used = default if asked_for is None else min(max(asked_for, low), high)
    if used != asked_for:
        notes.append(Note(f"link.stack_{name}", {"low": low, "high": high, "used": used}))
    return used


def asked(config: DepthConfig) -> DepthRun:
    """The run that a config means."""
    known = {token: place for place, token in enumerate(dict.fromkeys(config.tokens))}
    return DepthRun(
        ids=tuple(known[token] for token in config.tokens),
        arrangement=config.arrangement,
        norm=config.norm,
        depth=config.depth,
        width=config.width,
        activation=config.activation,
        init_scale=config.percent / 100,
        given=config.given,
        seed=config.seed,
        step=config.step,
        key=config.key,
        unit=config.unit,
    )


def key(config: DepthConfig) -> str:
    """What decides the numbers of a run, as one string."""
    return f"residual_norm?{urlencode(to_query(config.run))}"


def traced(config: DepthConfig) -> Trace:
    """The trace of all blocks, computed once."""
    return _traced(key(config), config)


@st.cache_resource(max_entries=16, show_spinner=False)
def _traced(key: str, _config: DepthConfig) -> Trace:  # noqa: ARG001 the key is the cache's
    return asked(_config).trace(_config.seen)


def flows(config: DepthConfig) -> dict[str, StackFlow]:
    """Sizes and gradients of this stack and of those it is compared with, all with the same matrices and the same text."""
    return _flows(key(config), config)


@st.cache_resource(max_entries=16, show_spinner=False)
def _flows(key: str, _config: DepthConfig) -> dict[str, StackFlow]:  # noqa: ARG001 the key is the cache's
    run = asked(_config)
    return {name: run.flow(name) for name in dict.fromkeys((*SHOWN, _config.arrangement))}


def reference() -> Trace:
    """A small run with every symbol that the texts speak of, for their formulas."""
    return DepthRun(ids=(0, 1, 0), depth=2, width=3).trace()


# ------------------------------------------------------------------------------------------------------------ the stage


def logarithm(sizes: list[float]) -> NDArray[np.float64]:
    """Powers of ten; a gap where there is nothing, or no number."""
    given = np.array(sizes, dtype=np.float64)
    good = np.isfinite(given) & (given > 0)
    found: NDArray[np.float64] = np.where(good, np.log10(np.where(good, given, 1.0)), np.nan)
    return found


def packed(config: DepthConfig, lang: str) -> bytes:
    """The run as bytes for the stage, in the learner's language."""
    start: dict[str, Any] = {name: getattr(config, name) for name in ("step", "key", "unit")}
    start |= {"move": link.moves()} | ({"symbol": config.symbol} if config.symbol else {})
    return _packed(key(config), urlencode(start), lang, config, start)


@st.cache_resource(max_entries=16, show_spinner=False)
def _packed(key: str, place: str, lang: str, _config: DepthConfig, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    trace = traced(_config)
    return positions.pack(
        trace,
        views=_views(_config, trace),
        tokens=[str(layer + 1) for layer in range(_config.depth)],
        keys=_config.tokens[: _config.seen],
        words=stage_words(lang, "residual_norm"),
        names=position_names(lang) | _names(lang),
        docs=symbol_docs("residual_norm", lang),
        extra=_extras(_config),
        first="X",
        shown="X",
        start=_start,
    )


def _names(lang: str) -> dict[str, str]:
    return {name: words(f"depth.name.{name}", lang=lang) for name in SYMBOLS}


def _extras(config: DepthConfig) -> dict[str, Extra]:
    """The sizes of every layer, as powers of ten for the curves and as they are for the readout."""
    found, own = flows(config), flows(config)[config.arrangement]
    extra = {"blocks": Extra(np.arange(1, config.depth + 1), "T")}
    for name, flow in found.items():
        extra[f"size.{name}"] = Extra(logarithm(flow.forward[1:]), "T")
        extra[f"gradient.{name}"] = Extra(logarithm(flow.backward[:-1]), "T")
    read = {"in": own.forward[:-1], "out": own.forward[1:], "arriving": own.backward[1:], "leaving": own.backward[:-1]}
    for name, sizes in (read | {"weights": own.weights}).items():
        within = [size if abs(size) < LARGEST else math.inf for size in sizes]
        extra[name] = Extra(np.array(within), "T")
        extra[f"log.{name}"] = Extra(logarithm(sizes), "T")  # what float32 cannot hold is read from its power of ten
    return extra


def _views(config: DepthConfig, trace: Trace) -> list[dict[str, Any]]:
    """Curves of sizes and gradients over the blocks; formulas; one layer's tokens; one token's vector step by step."""
    names = list(dict.fromkeys((*SHOWN, config.arrangement)))

    def lines(start: str) -> list[dict[str, Any]]:
        shown = []
        for name in names:
            line = {"array": f"{start}.{name}", "label": words(f"line.{name}"), "role": ROLES[name]}
            chosen = name == config.arrangement
            shown.append(line | ({"marked": True} if chosen else {"dashed": True}))
        return shown

    shared = {"view": "curves", "area": "time", "x": "blocks", "digits": 0}
    items = [
        {"array": name, "label": words(f"depth.read.{name}"), "power": f"log.{name}"}
        for name in ("in", "out", "arriving", "leaving", "weights")
    ]
    symbols = [name for name in ("X", *trace.equations) if name in trace or name == "X"]
    return [
        shared | {"lines": lines("size"), "axis_y": words("depth.size"), "label": words("depth.sizes")},
        shared | {"lines": lines("gradient"), "axis_y": words("depth.gradient"), "label": words("depth.gradients")},
        {"view": "matrix", "area": "time"},
        {"view": "panel", "area": "side"},
        {"view": "terms", "area": "side"},
        {"view": "readout", "area": "side", "items": items},
        {"view": "vectors", "area": "side", "symbols": symbols},
    ]
