"""Lesson 15: its config, the run that a config means, and that run as bytes for the stage."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import streamlit as st
import torch

from engine.attention import order_model
from engine.attention.character_model import LONGEST, WIDTH
from engine.attention.order import OrderRun, carried, places_of, unpermuted
from engine.attention.order_model import KINDS, OrderModel
from engine.attention.positions import binary_code, wavelengths
from engine.notes import Note
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from pages.ui import link, positions
from pages.ui.config import MAX_SEED, WHOLE, LessonConfig, choice, given_text, number, to_query
from pages.ui.positions import Extra
from pages.ui.stage import position_names, stage_words, symbol_docs
from pages.ui.words import words

SYMBOLS = (
    *("P", "P_sin", "P_cos", "P_d", "G", "bits", "B", "E", "X_p", "X_s"),
    *("Q", "K", "V", "Q_r", "K_r", "S", "M", "A", "Z", "O"),
)
LIMITS = {"width": (1, 128, WIDTH), "base": (2, 100_000, 10_000), "delta": (1, 63, 1)}
DIGITS = {"places": 0, "distance": 0, "wave": 2}
FACTORS = {"one": 1.0, "root": WIDTH**0.5, "inverse": WIDTH**-0.5, "none": 0.0}


@dataclass(frozen=True, kw_only=True)
class PositionsConfig(LessonConfig):
    """Lesson 15. Only untrained models have another ``width``; step, key, head, unit, cut (a binary digit), symbol: a place."""

    kind: str = "sinusoidal"
    model: str = "trained"
    seed: int = 0
    where: str = ""
    scale: str = "one"
    order: str = "written"
    mask: str = "causal"
    width: int = WIDTH
    base: int = LIMITS["base"][2]
    delta: int = 1
    step: int = 0
    key: int = 0
    head: int = 0
    unit: int = 0
    cut: int = 0
    symbol: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "kind": KINDS[:4],
        "model": ("trained", "untrained"),
        "scale": tuple(FACTORS),
        "order": ("written", "reversed", "shuffled"),
        "mask": ("causal", "all"),
        "symbol": ("", *SYMBOLS),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "PositionsConfig":
        text = given_text(params, notes)
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        numbers: dict[str, Any] = {name: _between(name, params, notes) for name in LIMITS}
        if chosen["model"] == "trained" and numbers["width"] != WIDTH:
            notes.append(Note("link.trained_width", {"used": WIDTH}))
            numbers["width"] = WIDTH
        places, asked = places_of(chosen["kind"]), params.get("where", "")
        if asked and asked not in places:
            notes.append(Note("link.where"))
        last = min(len(text), LONGEST) - 1
        return cls(
            text=text,
            seed=number("seed", params, MAX_SEED, notes),
            where=asked if asked in places[1:] else "",
            step=number("step", params, last, notes, shift=1),
            key=number("key", params, last, notes, shift=1),
            head=number("head", params, heads_of(numbers["width"]) - 1, notes, shift=1),
            unit=number("unit", params, numbers["width"] - 1, notes),
            cut=number("cut", params, bits_of(last + 1) - 1, notes),
            **chosen,
            **numbers,
        )

    @property
    def run(self) -> "PositionsConfig":
        """The config of the run alone: where the learner looks does not change a number of it."""
        return replace(self, step=0, key=0, head=0, unit=0, cut=0, symbol="")

    @property
    def place(self) -> str:
        """Where positions are put: as the model was trained, unless another place is chosen."""
        return self.where or places_of(self.kind)[0]

    @property
    def changed(self) -> bool:
        """Whether anything differs from the run that the model was trained for, apart from the order."""
        return bool(self.where) or self.scale != "one" or self.base != LIMITS["base"][2]

    @property
    def permutation(self) -> tuple[int, ...]:
        """Which place of the text each read token comes from; nothing where the text is read as it was written."""
        count = min(len(self.text), LONGEST)
        if self.order == "reversed":
            return tuple(range(count - 1, -1, -1))
        if self.order == "shuffled":
            return tuple(torch.randperm(count, generator=torch.Generator().manual_seed(self.seed)).tolist())
        return ()

    @property
    def written(self) -> tuple[str, ...]:
        """The first tokens of the text, as many as the trained models know positions."""
        return tuple(self.text[:LONGEST])

    @property
    def tokens(self) -> tuple[str, ...]:
        """The same in the order in which they are read."""
        return tuple(self.written[at] for at in self.permutation) or self.written


def bits_of(count: int) -> int:
    """How many binary digits count so many positions from 0."""
    return max((count - 1).bit_length(), 1)


def heads_of(width: int) -> int:
    """How many heads a model of this width has: the trained ones' number, or the next smaller one that divides it."""
    return next(count for count in (order_model.HEADS, 2, 1) if width % count == 0)


def _between(name: str, params: Mapping[str, str], notes: list[Note]) -> int:
    """A whole number within ``LIMITS``, its default where none is asked for."""
    low, high, default = LIMITS[name]
    given = params.get(name, str(default))
    asked = int(given) if WHOLE.fullmatch(given) else None
    used = default if asked is None else min(max(asked, low), high)
    if used != asked:
        notes.append(Note(f"link.code_{name}", {"low": low, "high": high, "used": used}))
    return used


@st.cache_resource(max_entries=32, show_spinner=False)
def opened(kind: str, model: str, seed: int, width: int) -> tuple[OrderModel, Vocabulary]:
    """A model and its vocabulary: trained, or drawn with a seed at any width."""
    trained = order_model.load(kind)
    if model == "trained":
        return trained.model, trained.vocabulary
    generator = torch.Generator().manual_seed(seed)
    made = OrderModel(len(trained.vocabulary), heads_of(width), width, kind=kind, generator=generator)
    return made.eval().requires_grad_(False), trained.vocabulary


def asked(config: PositionsConfig) -> OrderRun:
    """The run that a config means."""
    model, vocabulary = opened(config.kind, config.model, config.seed, config.width)
    return OrderRun(
        model=model,
        ids=torch.tensor(vocabulary[list(config.written)]),
        order=config.permutation,
        where=config.place,
        scale=FACTORS[config.scale],
        causal=config.mask == "causal",
        delta=config.delta,
        base=float(config.base),
        step=config.step,
        key=config.key,
        head=config.head,
        unit=config.unit,
    )


def key(config: PositionsConfig) -> str:
    """What decides the numbers of a run, as one string."""
    return f"positions?{urlencode(to_query(config.run))}"


def traced(config: PositionsConfig) -> Trace:
    """The trace of a config's run, computed once."""
    return _traced(key(config), config)


@st.cache_resource(max_entries=32, show_spinner=False)
def _traced(key: str, _config: PositionsConfig) -> Trace:  # noqa: ARG001 the key is the cache's
    return asked(_config).trace()


def baseline(config: PositionsConfig) -> Trace | None:
    """What the run is compared with: the order as it was written, each row moved along; or the model as it was trained."""
    return _baseline(key(config), config)


@st.cache_resource(max_entries=32, show_spinner=False)
def _baseline(key: str, _config: PositionsConfig) -> Trace | None:  # noqa: ARG001 the key is the cache's
    if _config.order != "written":
        return unpermuted(asked(_config))
    if not _config.changed:
        return None
    trained = traced(replace(_config.run, where="", scale="one", base=LIMITS["base"][2]))
    same = {"X_s": trained.arrays.get("X_p", trained.arrays.get("X_s"))}
    return replace(trained, arrays={**trained.arrays, **{name: array for name, array in same.items() if array is not None}})


def reference() -> Trace:
    """A small run with every symbol that the texts speak of, for their formulas."""
    model = OrderModel(3, 1, 4, generator=torch.Generator().manual_seed(0))
    return OrderRun(model=model, ids=torch.tensor([0, 1, 2])).trace()


# ------------------------------------------------------------------------------------------------------------ the stage


def packed(config: PositionsConfig, lang: str) -> bytes:
    """The run as bytes for the stage, in the learner's language, with what it is compared with."""
    start: dict[str, Any] = {name: getattr(config, name) for name in ("step", "key", "head", "unit", "cut")}
    start |= {"move": link.moves()} | ({"symbol": config.symbol} if config.symbol else {})
    return _packed(key(config), urlencode(start), lang, config, start)


@st.cache_resource(max_entries=32, show_spinner=False)
def _packed(key: str, place: str, lang: str, _config: PositionsConfig, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    trace, count = traced(_config), len(_config.tokens)
    extra = _extras(_config, trace)
    opening = "P" if "P" in trace else "B"
    return positions.pack(
        trace,
        views=_views(_config, extra),
        tokens=_config.tokens,
        words=stage_words(lang, "positions"),
        names=position_names(lang) | {"bits": words("positions.bits")},
        docs=symbol_docs("attention", lang) | symbol_docs("positions", lang),
        labels={"C": [str(2**bit) for bit in range(bits_of(count))]},
        extra=extra,
        baseline=baseline(_config),
        first=opening,
        shown=opening,
        start=_start,
    )


def _views(config: PositionsConfig, extra: Mapping[str, Extra]) -> list[dict[str, Any]]:
    """What is shown: the codes, the waves of one column, the binary counter; formulas; products of codes, and weights."""
    views: list[dict[str, Any]] = [{"view": "matrix", "area": "time"}]
    if "columns" in extra:
        pairs = "columns.sin" in extra  # the two formulas count pairs of columns: their unit is another one
        lines: list[dict[str, Any]] = [
            {"array": "columns", "label": words("positions.column"), "role": "output", "marked": True}
        ]
        lines[0] |= {"when": {"P_sin": "columns.sin", "P_cos": "columns.cos"}} if pairs else {}
        if "partners" in extra:
            lines.append({"array": "partners", "label": words("positions.partner"), "role": "forget", "dashed": True})
            lines[1] |= {"when": {"P_sin": "columns.cos", "P_cos": "columns.sin"}} if pairs else {}
        views.append(
            {"view": "curves", "area": "time", "x": "places", "lines": lines, "axis_x": words("positions.place"), "digits": 0}
        )
    views += [{"view": "panel", "area": "side"}, {"view": "terms", "area": "side"}]
    labels = ("places", "wave", "distance", "product", "bias", "gap")
    items: list[dict[str, Any]] = [
        {"array": name, "label": words(f"positions.read.{name}", delta=config.delta), "digits": DIGITS.get(name, 3)}
        for name in labels
        if name in extra
    ]
    for item in items:
        if item["array"] == "wave" and "wave.pairs" in extra:
            item["when"] = {"P_sin": "wave.pairs", "P_cos": "wave.pairs"}
    views.append({"view": "readout", "area": "side", "items": items})
    views.append({"view": "matrix", "area": "side", "array": "bits"})
    bias = config.kind == "alibi"
    views.append({"view": "matrix", "area": "next", "array": "A", "instead": "B" if bias else "P"})
    views.append({"view": "matrix", "area": "more", "array": "B" if bias else "G", "instead": "S" if bias else "P"})
    return views


def _extras(config: PositionsConfig, trace: Trace) -> dict[str, Extra]:
    """The arrays beside the equations' own: places, distances, wavelengths, and the columns of the codes as curves."""
    count = len(config.tokens)
    places = np.arange(count)
    extra = {
        "places": Extra(places, "T"),
        "distance": Extra(np.abs(places[:, None] - places), "TS"),
        "bits": Extra(
            binary_code(count, bits_of(count)).numpy().T,
            "CT",
            name=words("positions.bits"),
            letter="b",
            role="weights",
            interval=(0, 1),
        ),
    }
    if "B" in trace:
        low = min(float(trace["B"].min()), -1.0)
        return extra | {"bias": Extra(trace["B"], "NTS"), "B": Extra(trace["B"], "NTS", interval=(low, -low), role="score")}
    codes, products = trace["P"], trace["G"]
    extra |= {"columns": Extra(codes.T, "DT"), "product": Extra(products, "TS")}
    top = float((codes.shape[-1] + 1) // 2)  # each pair of columns adds 1 to the product of a code with itself
    if config.kind != "learned" and float(products.min()) >= -0.05 * top:  # only ripples below 0: from paper to full
        extra["G"] = Extra(products, "TS", interval=(0.0, top), role="candidate")
    if config.kind in ("sinusoidal", "rotary"):
        width = codes.shape[-1]
        partners = np.full_like(codes, np.nan)
        for column in range(width - width % 2):
            partners[:, column] = codes[:, column ^ 1]
        extra["partners"] = Extra(partners.T, "DT")
        waves = wavelengths(width, float(config.base)).numpy()
        extra["wave"] = Extra(waves.repeat(2)[:width], "D")
        if "P_sin" in trace:
            missing = np.full((width % 2, count), np.nan)
            extra["columns.sin"] = Extra(trace["P_sin"].T, "DT")
            extra["columns.cos"] = Extra(np.concatenate([trace["P_cos"].T, missing]), "DT")
            extra["wave.pairs"] = Extra(waves, "D")
    if "P_d" in trace:
        extra["gap"] = Extra(carried(asked(config)), "T")
    return extra
