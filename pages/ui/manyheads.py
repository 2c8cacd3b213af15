"""Lesson 14: its config, the run that a config means, and that run as bytes for the stage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

import streamlit as st
import torch

from engine.attention import character_model
from engine.attention.character_model import HEADS, LONGEST, WIDTH, CharacterModel
from engine.attention.heads_at_work import Run, mean_weights, with_shared_blocks
from engine.notes import Note
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from pages.ui import link, positions
from pages.ui.config import MAX_SEED, WHOLE, LessonConfig, choice, given_text, number, to_query
from pages.ui.stage import position_names, stage_words, symbol_docs

VIEWS: tuple[dict[str, str], ...] = (
    {"view": "matrix", "area": "time"},
    {"view": "panel", "area": "side"},
    {"view": "terms", "area": "side"},
    {"view": "multiples", "area": "next"},
    {"view": "diagram", "area": "next"},
    {"view": "sum", "area": "more", "whole": "O", "parts": "O_n"},
)
SYMBOLS = ("A", "S", "Q", "K", "V", "Z", "O_n", "O", "X", "M")


@dataclass(frozen=True, kw_only=True)
class MultiheadConfig(LessonConfig):
    """Lesson 14. ``off`` are the heads that are taken out; step (query), key, head, unit and symbol say where one looks."""

    model: str = "trained"
    heads: str = "4"
    seed: int = 0
    mask: str = "causal"
    blocks: str = "own"
    off: tuple[int, ...] = ()
    step: int = 0
    key: int = 0
    head: int = 0
    unit: int = 0
    symbol: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "model": ("trained", "untrained"),
        "heads": ("4", *(str(n) for n in HEADS if n != 4)),
        "mask": ("causal", "all"),
        "blocks": ("own", "shared"),
        "symbol": ("", *SYMBOLS),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "MultiheadConfig":
        text = given_text(params, notes)
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        heads, last = int(chosen["heads"]), min(len(text), LONGEST) - 1
        return cls(
            text=text,
            seed=number("seed", params, MAX_SEED, notes),
            off=_heads(params.get("off", ""), heads, notes),
            step=number("step", params, last, notes, shift=1),
            key=number("key", params, last, notes, shift=1),
            head=number("head", params, heads - 1, notes, shift=1),
            unit=number("unit", params, WIDTH - 1, notes),
            **chosen,
        )

    @property
    def run(self) -> "MultiheadConfig":
        """The config of the run alone: where the learner looks does not change a number of it."""
        return replace(self, step=0, key=0, head=0, unit=0, symbol="")

    @property
    def tokens(self) -> tuple[str, ...]:
        """What is fed in: the first characters, as many as the trained models know positions."""
        return tuple(self.text[:LONGEST])


def _heads(given: str, count: int, notes: list[Note]) -> tuple[int, ...]:
    """The heads of a link that there are, each once."""
    parts = [part for part in given.split(";", 4 * LONGEST) if part]
    found = {int(part) for part in parts if WHOLE.fullmatch(part) and int(part) < count}
    if len(found) < len(parts):
        notes.append(Note("link.off", {"heads": count}))
    return tuple(sorted(found))


@st.cache_resource(max_entries=32, show_spinner=False)
def opened(model: str, heads: int, seed: int, blocks: str) -> tuple[CharacterModel, Vocabulary]:
    """A model and its vocabulary: trained or not, each head with projections of its own or all with the first head's."""
    trained = character_model.load(heads)
    found = trained.model if model == "trained" else character_model.untrained(heads, seed, trained.vocabulary)
    if blocks == "shared":
        made = character_model.untrained(heads, seed, trained.vocabulary)
        made.load_state_dict(found.state_dict())
        made.attention = with_shared_blocks(found.attention)
        found = made.eval().requires_grad_(False)
    return found, trained.vocabulary


def asked(config: MultiheadConfig) -> Run:
    """The run that a config means."""
    model, vocabulary = opened(config.model, int(config.heads), config.seed, config.blocks)
    return Run(
        model=model,
        ids=torch.tensor(vocabulary[list(config.tokens)]),
        causal=config.mask == "causal",
        removed=config.off,
        step=config.step,
        key=config.key,
        head=config.head,
        unit=config.unit,
    )


def key(config: MultiheadConfig) -> str:
    """What decides the numbers of a run, as one string."""
    return f"multihead?{urlencode(to_query(config.run))}"


def traced(config: MultiheadConfig) -> Trace:
    """The trace of a config's run, computed once."""
    return _traced(key(config), config)


@st.cache_resource(max_entries=32, show_spinner=False)
def _traced(key: str, _config: MultiheadConfig) -> Trace:  # noqa: ARG001 the key is the cache's
    return asked(_config).trace()


def packed(config: MultiheadConfig, lang: str) -> bytes:
    """The run as bytes for the stage, in the learner's language, with its baseline where heads are taken out."""
    start: dict[str, Any] = {name: getattr(config, name) for name in ("step", "key", "head", "unit")}
    start |= {"move": link.moves()} | ({"symbol": config.symbol} if config.symbol else {})
    return _packed(key(config), urlencode(start), lang, config, start)


@st.cache_resource(max_entries=32, show_spinner=False)
def _packed(key: str, place: str, lang: str, _config: MultiheadConfig, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    trace = traced(_config)
    return positions.pack(
        trace,
        views=VIEWS,
        tokens=_config.tokens,
        words=stage_words(lang),
        names=position_names(lang),
        docs=symbol_docs("attention", lang),
        extra={"A.mean": positions.Extra(mean_weights(trace), "TS", role="probability", interval=(0.0, 1.0))},
        means={"A": "A.mean"} if int(_config.heads) > 1 else {},
        baseline=traced(replace(_config, off=())) if _config.off else None,
        heads_symbol="Z",
        first="A",
        shown="A",
        start=_start,
    )
