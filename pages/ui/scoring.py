"""Lesson 11: its config, the run that a config means, and that run as bytes for the stage."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import streamlit as st
import torch

from engine.attention.saturation import Saturation, saturation
from engine.attention.scores import SCORES
from engine.attention.scoring import MASKS, ScoringRun, mask_of, narrowing
from engine.notes import Note
from engine.text.tokenizers import tokenize
from engine.trace import Trace
from pages.ui import link, positions
from pages.ui.config import MAX_SEED, LessonConfig, choice, given_text, number, to_query
from pages.ui.kernels import NUMBER, written
from pages.ui.positions import Extra
from pages.ui.stage import position_names, stage_words
from pages.ui.words import words

LONGEST = 64  # tokens
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TEMPERATURES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
KEYS = 10  # of the random query in the room on the divisor
DRAWS = 400  # random queries in that room
SYMBOLS = ("A", "S", "Q", "K", "V", "O", "M")
PARTS = {"same": (1, 1), "half": (1, 2), "double": (2, 1)}  # of the width of a query, the width of a key


@dataclass(frozen=True, kw_only=True)
class ScoringConfig(LessonConfig):
    """Lesson 11. ``keys`` is how wide keys are beside queries, ``own`` the cells that one's own mask hides, as ``hidden_cells``
    writes them; step (query), key, unit and symbol say where one looks.
    """

    score: str = "scaled_dot_product"
    width: int = 16
    keys: str = "same"
    hidden: int = 8
    split: str = "word"
    who: str = "all"
    length: int = 6
    own: str = ""
    temperature: float = 1.0
    seed: int = 0
    step: int = 0
    key: int = 0
    unit: int = 0
    symbol: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "score": ("scaled_dot_product", "dot_product", "bilinear", "additive"),
        "keys": tuple(PARTS),
        "split": ("word", "character"),
        "who": MASKS,
        "symbol": ("", *SYMBOLS),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "ScoringConfig":
        text = given_text(params, notes)
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        count = len(_tokens(text, chosen["split"]))
        own = params.get("own", "")
        if own and (_cells(own) is None or own.partition(".")[0] != str(count)):
            notes.append(Note("link.own", {"count": count}))
            own = ""
        width = number("width", {"width": str(cls.width), **params}, max(WIDTHS), notes)
        return cls(
            text=text,
            width=max(width, 1),
            hidden=max(number("hidden", {"hidden": str(cls.hidden), **params}, 64, notes), 1),
            length=number("length", params, count, notes) if "length" in params else min(cls.length, count),
            own=own,
            temperature=_temperature(params, notes),
            seed=number("seed", params, MAX_SEED, notes),
            step=number("step", params, count - 1, notes, shift=1),
            key=number("key", params, count - 1, notes, shift=1),
            unit=number("unit", params, max(WIDTHS) - 1, notes),
            **chosen,
        )

    @property
    def run(self) -> "ScoringConfig":
        """The config of the run alone: where the learner looks does not change a number of it."""
        return replace(self, step=0, key=0, unit=0, symbol="")

    @cached_property
    def all_tokens(self) -> tuple[str, ...]:
        """The tokens of the whole text."""
        return _tokens(self.text, self.split, longest=10**6)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens that are read."""
        return self.all_tokens[:LONGEST]

    @property
    def key_width(self) -> int:
        """How many numbers a key has."""
        times, part = PARTS[self.keys]
        return min(max(self.width * times // part, 1), max(WIDTHS))

    @property
    def hides(self) -> tuple[int, ...]:
        """The cells that one's own mask hides."""
        return _cells(self.own) or ()


def _tokens(text: str, level: str, longest: int = LONGEST) -> tuple[str, ...]:
    """The words or characters of a text; a text of blanks alone is read as it is."""
    found = tokenize(text, level="word") if level == "word" else list(text)
    return tuple((found or list(text))[:longest])


def _temperature(params: Mapping[str, str], notes: list[Note]) -> float:
    low, high = TEMPERATURES[0], TEMPERATURES[-1]
    given = params.get("temperature", "1")
    asked = float(given) if NUMBER.fullmatch(given) else None
    used = 1.0 if asked is None else min(max(asked, low), high)
    if used != asked:
        notes.append(Note("scoring.bad.temperature", {"low": low, "high": high, "used": used}))
    return used


def hidden_cells(cells: set[int], count: int) -> str:
    """Cells of a mask of ``count`` tokens for a link: the count and, where there are any, their bits."""
    if not cells:
        return ""
    bits = np.zeros(count * count, dtype=bool)
    bits[sorted(cells)] = True
    return f"{count}.{base64.urlsafe_b64encode(np.packbits(bits).tobytes()).decode().rstrip('=')}"


def _cells(given: str) -> tuple[int, ...] | None:
    """The cells that a link hides; None where it cannot be read."""
    count, _, code = given.partition(".")
    if not given:
        return ()
    if not (count.isascii() and count.isdecimal() and 0 < len(count) < 3 and code.isascii()):
        return None
    try:
        packed = np.frombuffer(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)), dtype=np.uint8)
    except (binascii.Error, ValueError):
        return None
    size = int(count) ** 2
    if len(packed) != -(-size // 8):
        return None
    return tuple(np.flatnonzero(np.unpackbits(packed)[:size]).tolist())


# ------------------------------------------------------------------------------------------------------------- the run


def asked(config: ScoringConfig) -> ScoringRun:
    """The run that a config means."""
    return ScoringRun(
        tokens=config.tokens,
        score=config.score,
        width=config.width,
        key_width=config.key_width,
        hidden=config.hidden,
        seed=config.seed,
        mask=mask_of(config.who, len(config.tokens), config.length, config.hides),
        temperature=config.temperature,
        step=config.step,
        key=config.key,
    )


def key(config: ScoringConfig) -> str:
    """What decides the numbers of a run, as one string."""
    return f"scoring?{urlencode(to_query(config.run))}"


def traced(config: ScoringConfig) -> Trace:
    """The trace of a config's run, computed once. Raises ``ValueError`` where the widths do not fit the score."""
    return _traced(key(config), config)


@st.cache_resource(max_entries=32, show_spinner=False)
def _traced(key: str, _config: ScoringConfig) -> Trace:  # noqa: ARG001 the key is the cache's
    return asked(_config).trace()


def packed(config: ScoringConfig, lang: str) -> bytes:
    """The run as bytes for the stage, in the learner's language."""
    start: dict[str, Any] = {name: getattr(config, name) for name in ("step", "key", "unit")} | {"move": link.moves()}
    start |= {"symbol": config.symbol} if config.symbol else {}
    return _packed(key(config), urlencode(start), lang, config, start)


@st.cache_resource(max_entries=24, show_spinner=False)
def _packed(key: str, place: str, lang: str, _config: ScoringConfig, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    run = asked(_config)
    four = {}
    for name, score in SCORES.items():
        if not score.equal_widths or run.width == run.key_width:
            called = words(f"score.{name}", lang=lang)
            weights = run.shares(name)["A"].numpy()
            four[f"A.{name}"] = Extra(weights, "TS", name=called, letter="A", role="probability", interval=(0.0, 1.0))
    views: tuple[dict[str, Any], ...] = (
        {"view": "matrix", "area": "time", "editable": True},
        {"view": "panel", "area": "side"},
        {"view": "terms", "area": "side"},
        {"view": "diagram", "area": "side"},
        *({"view": "matrix", "area": "four", "array": name, "title": one.name} for name, one in four.items()),
    )
    docs = {name: words(f"scoring.doc.{name}", lang=lang) for name in ("A", "O")}
    return positions.pack(
        traced(_config),
        views=views,
        tokens=_config.tokens,
        words=stage_words(lang, lesson="scoring"),
        names=position_names(lang) | {"O": words("scoring.name.O", lang=lang)},
        docs=docs | {"S": words(f"scoring.doc.S.{_config.score}", lang=lang)},
        extra=four,
        table=("Q", "K", "S", "A", "O"),
        first="A",
        shown="A",
        start=_start,
    )


@st.cache_resource(show_spinner=False)
def example() -> Trace:
    """A run whose symbols the texts can name where the learner's has none."""
    return traced(ScoringConfig())


# ------------------------------------------------------------------------------------------------------- the divisor


@st.cache_resource(max_entries=16, show_spinner=False)
def saturated(seed: int) -> tuple[tuple[Saturation, Saturation], ...]:
    """The plain and the scaled dot product of random vectors, for each width."""
    return tuple(saturation(WIDTHS, torch.Generator().manual_seed(seed), keys=KEYS, queries=DRAWS))


@st.cache_resource(max_entries=16, show_spinner=False)
def packed_divisor(seed: int, lang: str) -> bytes:
    """One random query over ten random keys, at every width with and without the divisor; and the means over many."""
    found, (plain, scaled) = saturated(seed), narrowing(WIDTHS, KEYS, seed)
    columns = {
        f"{name}.{way}": Extra(np.array([getattr(pair[at], name) for pair in found]), "T")
        for at, way in enumerate(("plain", "scaled"))
        for name in ("variance", "largest_weight", "entropy", "jacobian")
    }
    extra: dict[str, Extra] = columns | {
        "d": Extra(np.array(WIDTHS, dtype=float), "T"),
        "plain": Extra(plain.numpy(), "TS", name=words("scoring.plain", lang=lang), letter="A", interval=(0.0, 1.0)),
        "scaled": Extra(scaled.numpy(), "TS", name=words("scoring.scaled", lang=lang), letter="A", interval=(0.0, 1.0)),
    }
    entropies = [
        {
            "array": f"entropy.{way}",
            "label": words(f"scoring.entropy.{way}", lang=lang),
            "role": role,
            "marked": True,
            "dashed": way == "scaled",
        }
        for way, role in (("plain", "forget"), ("scaled", "output"))
    ]

    def told(way: str) -> dict[str, Any]:
        names = ("variance", "largest_weight", "entropy", "jacobian")
        items = [
            {"array": f"{name}.{way}", "label": words(f"scoring.{name}", lang=lang), "digits": 4 if name == "jacobian" else 3}
            for name in names
        ]
        return {"view": "readout", "area": "side", "title": words(f"scoring.{way}", lang=lang), "items": items}

    views = (
        {
            "view": "curves",
            "area": "time",
            "x": "d",
            "log_x": True,
            "lines": entropies,
            "axis_x": "d",
            "digits": 0,
            "axis_y": words("scoring.entropy", lang=lang),
            "handle_label": words("scoring.handle", lang=lang),
        },
        told("plain"),
        told("scaled"),
        {"view": "matrix", "area": "next", "array": "plain", "title": words("scoring.plain", lang=lang)},
        {"view": "matrix", "area": "more", "array": "scaled", "title": words("scoring.scaled", lang=lang)},
    )
    return positions.pack(
        None,
        views=views,
        tokens=[written(width) for width in WIDTHS],
        keys=[str(at + 1) for at in range(KEYS)],
        words=stage_words(lang, lesson="divisor"),
        extra=extra,
        first="plain",
        shown="plain",
        start={"step": WIDTHS.index(64), "symbol": "plain"},
        aside=True,
        without=("tokens",),
    )
