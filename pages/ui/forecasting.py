"""Lesson 1: its config, the series that a config means, the fitted model, and the forecast as bytes for the stage."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

import numpy as np
import streamlit as st
import torch

from engine.data.series import STOCKS, Series, SeriesMissing, measured, noisy_sine
from engine.data.tables import Table, column_series, read_table
from engine.notes import Note
from engine.sequences import comparing, following
from engine.sequences.autoregression import Fit, Model, WindowModel
from engine.sequences.forecasts import HORIZONS, ClosedLoop, HorizonErrors, closed_loop
from engine.sequences.questions import STEPS, ForecastRun
from engine.text.display import shorten, visible
from engine.trace import Array, frozen
from pages.ui import documents, link, positions
from pages.ui.config import MAX_SEED, WHOLE, LessonConfig, choice, given_text, number
from pages.ui.stage import stage_words
from pages.ui.words import words

LONGEST = 1500  # values of a series are used
LARGEST = 1e30  # a value beyond it has no place on the stage
STARTS = 48  # start points whose free runs come with the page
LABEL = 18  # characters
TICK = 110  # milliseconds a step
LIMITS = {"tau": (1, 32), "noise": (0, 100), "hidden": (1, 32), "epochs": (1, 10)}
MODELS = ("mlp", "linear", "rnn")


@dataclass(frozen=True, kw_only=True)
class AutoregressionConfig(LessonConfig):
    """Lesson 1. ``noise`` in hundredths; ``start`` 0: where the training part ends; ``cut``: which k-step lines, as bits.

    ``data`` names an uploaded table that this server keeps, ``column`` (from 0) the column of it.
    """

    series: str = "noisy_sine"
    company: str = STOCKS[0]
    data: str = ""
    column: int = 0
    model: str = "mlp"
    tau: int = 4
    noise: int = 20
    hidden: int = 10
    epochs: int = 5
    seed: int = 0
    start: int = 0
    step: int = 0
    head: int = 0
    unit: int = 0
    cut: int = 0
    symbol: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "series": ("noisy_sine", "seattle_temperature", "sf_temperature", "stocks", "own"),
        "company": STOCKS,
        "symbol": ("", "x_hat", "Y", "H", "X", "x"),
    }
    models: ClassVar[tuple[str, ...]] = MODELS
    places: ClassVar[tuple[str, ...]] = ("step", "head", "unit", "cut", "symbol")

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "AutoregressionConfig":
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        numbers: dict[str, Any] = {name: _between(name, params, notes) for name in LIMITS}
        model = params.get("model", cls.model)
        if model not in MODELS:
            notes.append(Note("link.forecaster"))
        data = params.get("data", "")
        return cls(
            text=given_text(params, notes),
            data=data if data.isalnum() and len(data) <= 32 else "",
            column=number("column", params, 999, notes, shift=1),
            model=model if model in MODELS else cls.model,
            seed=number("seed", params, MAX_SEED, notes),
            start=number("start", params, LONGEST - 1, notes, shift=1),
            step=number("step", params, STEPS - 1, notes, shift=1, said="link.place"),
            head=number("head", params, 1, notes),
            unit=number("unit", params, LIMITS["tau"][1] - 1, notes),
            cut=number("cut", {"cut": str(cls.cut), **params}, 2 ** len(HORIZONS) - 1, notes),
            **chosen,
            **numbers,
        )

    @property
    def run(self) -> "AutoregressionConfig":
        """The config of the run alone: where the learner looks does not change a number of it."""
        elsewhere: dict[str, Any] = {each.name: each.default for each in fields(self) if each.name in self.places}
        return replace(self, **elsewhere)


def _between(name: str, params: Mapping[str, str], notes: list[Note]) -> int:
    """A whole number within ``LIMITS``, the config's default where none is asked for."""
    low, high = LIMITS[name]
    default = int(getattr(AutoregressionConfig, name))
    given = params.get(name, str(default))
    asked = int(given) if WHOLE.fullmatch(given) else None
    used = default if asked is None else min(max(asked, low), high)
    if used != asked:
        notes.append(Note(f"link.{name}", {"low": low, "high": high, "used": used}))
    return used


# ------------------------------------------------------------------------------------------------------------ the series


@dataclass(frozen=True, kw_only=True)
class Source:
    """The series of a config, or None, and what is to be said about it. ``total``: values that there were."""

    series: Series | None
    notes: tuple[Note, ...] = ()
    total: int = 0


def table(data: str) -> Table | None:
    """The uploaded table with this name, if this server has it."""
    document = documents.find(data)
    return None if document is None else _table(data, document.text)


@st.cache_resource(max_entries=8, show_spinner=False)
def _table(data: str, _text: str) -> Table:  # noqa: ARG001 the name is the cache's
    return read_table(_text)


def source(config: AutoregressionConfig) -> Source:
    """The series that a config means."""
    if config.series == "own":
        return _own(config)
    try:
        return _named(config.series, config.company, config.noise, config.seed)
    except SeriesMissing as missing:
        return Source(series=None, notes=(Note("series.package", {"package": missing.package}),))


@st.cache_resource(max_entries=64, show_spinner=False)
def _named(name: str, company: str, noise: int, seed: int) -> Source:
    if name == "noisy_sine":
        draw = torch.Generator().manual_seed(seed)
        return _cut(noisy_sine(noise=noise / 100, generator=draw), ())
    return _cut(measured(name, company), ())


def _own(config: AutoregressionConfig) -> Source:
    found = table(config.data) if config.data else None
    if found is None:
        return Source(series=None, notes=(Note("series.lost" if config.data else "series.none"),))
    return _column(config.data, config.column, found)


@st.cache_resource(max_entries=64, show_spinner=False)
def _column(data: str, column: int, _found: Table) -> Source:  # noqa: ARG001 the name is the cache's
    numeric = [each.number for each in _found.numeric]
    if not numeric:
        return Source(series=None, notes=_found.notes)
    used = column if column in numeric else numeric[0]
    series, notes = column_series(_found, used, needed=comparing.LEAST)
    notes = (*_found.notes, *map(_told, notes))
    if used != column:
        notes = (*notes, Note("series.column", {"used": used + 1}))
    return Source(series=None, notes=notes) if series is None else _cut(series, notes)


def _told(note: Note) -> Note:
    """A note in which a learner's cell can be seen, also an empty one."""
    return note if "first" not in note.values else Note(note.key, {**note.values, "first": visible(str(note.values["first"]))})


def _cut(series: Series, notes: tuple[Note, ...]) -> Source:
    """The first values, as many as are used. Numbers too large to draw are refused."""
    total = len(series)
    if np.abs(series.values).max() > LARGEST:
        return Source(series=None, notes=(*notes, Note("series.too_large", {"limit": LARGEST})), total=total)
    if total > LONGEST:
        notes = (*notes, Note("series.first", {"used": LONGEST, "total": total}))
        series = replace(
            series,
            values=frozen(series.values[:LONGEST]),
            labels=series.labels[:LONGEST],
            clean=None if series.clean is None else frozen(series.clean[:LONGEST]),
        )
    return Source(series=series, notes=notes, total=total)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is fitted: the series, how much of it is for training, the sizes as they fit to it. ``key`` decides all numbers."""

    series: Series = field(repr=False)
    train: int
    tau: int
    start: int
    config: AutoregressionConfig
    key: str
    notes: tuple[Note, ...] = ()

    @property
    def values(self) -> Array:
        return self.series.values

    @property
    def first(self) -> int:
        """The earliest start: so many values must be known."""
        return 1 if self.config.model == "rnn" else self.tau


def most_lags(train: int) -> int:
    """How many past values a model of so many training values may read."""
    return max(1, min(LIMITS["tau"][1], train // 2))


def problem(config: AutoregressionConfig, series: Series) -> Problem:
    """The sizes of a config brought to those of the series, with a note for what had to be changed."""
    train, notes = comparing.train_length(series.values), []
    tau = min(config.tau, most_lags(train))
    if tau < config.tau and config.model != "rnn":
        notes.append(Note("series.tau", {"asked": config.tau, "used": tau, "train": train}))
    lowest, highest = 1 if config.model == "rnn" else tau, len(series) - 1
    start = min(max(config.start or train, lowest), highest)
    if config.start and start != config.start:
        notes.append(Note("series.start", {"low": lowest + 1, "high": highest + 1, "used": start + 1}))
    asked = {name: value for name, value in asdict(config.run).items() if name not in ("text", "start")}
    return Problem(
        series=series,
        train=train,
        tau=tau,
        start=start,
        config=config,
        key=f"autoregression?{urlencode(asked)}",
        notes=tuple(notes),
    )


# --------------------------------------------------------------------------------------------------------------- the runs


def fit(given: Problem, kind: str = "") -> Fit:
    """A model fitted to the training part: the chosen kind or another one of the same sizes. Computed once."""
    kind = kind or given.config.model
    return _fit(f"{given.key} {kind}", kind, given)


@st.cache_resource(max_entries=64, show_spinner=False)
def _fit(key: str, kind: str, _given: Problem) -> Fit:  # noqa: ARG001 the key is the cache's
    config = _given.config
    train = _given.values[: _given.train]
    return comparing.fitted(kind, train, tau=_given.tau, hidden=config.hidden, epochs=config.epochs, seed=config.seed)


def asked(given: Problem) -> ForecastRun:
    """What the questions ask about, and the runs that the rooms share."""
    return _run(f"{given.key} {given.start}", given)


@st.cache_resource(max_entries=32, show_spinner=False)
def _run(key: str, _given: Problem) -> ForecastRun:  # noqa: ARG001 the key is the cache's
    return ForecastRun(model=fit(_given).model, values=_given.values, train=_given.train, start=_given.start)


@st.cache_resource(max_entries=64, show_spinner=False)
def _errors(key: str, _model: Model, _values: Array, _train: int) -> HorizonErrors:  # noqa: ARG001 the key is the cache's
    return comparing.errors_after(_model, _values, _train)


def errors(given: Problem) -> HorizonErrors:
    """The chosen model's errors over the start points of the test part."""
    return _errors(given.key, fit(given).model, given.values, given.train)


@st.cache_resource(max_entries=64, show_spinner=False)
def _loop(key: str, _model: Model, _values: Array, _start: int) -> ClosedLoop:  # noqa: ARG001 the key is the cache's
    return closed_loop(_model, _values, _start)


def loop(given: Problem, kind: str = "") -> ClosedLoop:
    """The closed loop of a model from the learner's start; a model that needs more before it starts as soon as it can."""
    model = fit(given, kind).model
    start = max(given.start, model.context)
    return _loop(f"{given.key} {kind} {start}", model, given.values, start)


# -------------------------------------------------------------------------------------------------------------- the stage


def packed(given: Problem, lang: str) -> bytes:
    """The series and the forecast as bytes for the stage, in the learner's language."""
    config = given.config
    start: dict[str, Any] = {name: getattr(config, name) for name in ("step", "head", "unit", "cut")}
    start |= {"move": link.moves()} | ({"symbol": config.symbol} if config.symbol else {})
    return _packed(f"{given.key} {given.start}", urlencode(start), lang, given, start)


@st.cache_resource(max_entries=24, show_spinner=False)
def _packed(key: str, place: str, lang: str, _given: Problem, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    given, run = _given, asked(_given)
    model, values, found = run.model, given.values, run.following
    steps = len(found.truth)
    starts = np.unique(np.linspace(given.first, len(values) - 1, STARTS).round().astype(int))
    rms = np.full(len(HORIZONS), np.nan)
    test = errors(given).rms
    possible = comparing.possible(values, given.train)
    rms[: len(possible)] = [test[k - 1] for k in possible]
    extra = {
        "series": positions.Extra(values, "I"),
        "ksteps": positions.Extra(following.k_step_lines(model, values, HORIZONS), "KI"),
        "starts": positions.Extra(starts.astype(np.float64), "S"),
        "ghosts": positions.Extra(following.runs_from(model, values, starts.tolist(), STEPS), "SF"),
        "rms": positions.Extra(rms, "K"),
        "lines": positions.Extra(np.arange(2.0 ** len(HORIZONS)), "C"),
        "run": positions.Extra(found.predictions, "NT"),
        "truth": positions.Extra(found.truth, "T"),
        "error": positions.Extra(found.errors, "NT"),
        "own": positions.Extra(found.own, "NT"),
    }
    if given.series.clean is not None and given.config.noise:
        extra["clean"] = positions.Extra(given.series.clean, "I")
    sizes = [given.start, given.train, run.width, not isinstance(model, WindowModel), *_range(values, found.predictions)]
    extra["sizes"] = positions.Extra(np.array(sizes, dtype=np.float64), "Q")
    readout = {
        "view": "readout",
        "area": "next",
        "title": words("autoregression.numbers"),
        "items": [
            {"array": array, "label": words(f"autoregression.readout.{array}"), **({"digits": 0} if array == "own" else {})}
            for array in ("run", "truth", "error", "own")
        ],
    }
    views = (
        {"view": "series", "area": "time", "horizons": list(HORIZONS)},
        {"view": "panel", "area": "side"},
        {"view": "terms", "area": "next"},
        readout,
    )
    return positions.pack(
        found.trace,
        views=views,
        tokens=[str(at + 1) for at in range(given.start, given.start + steps)],
        keys=[str(at + 1) for at in starts],
        words=stage_words(lang, lesson="autoregression"),
        names={name: words(f"autoregression.symbol.{name}") for name in following.TABLES["rnn"]},
        docs={name: words(f"autoregression.doc.{name}") for name in found.trace},
        labels={
            "N": (words("stage.series_free"), words("stage.series_taught")),
            "T": [_called(given.series, at) for at in range(given.start, given.start + steps)],
            "I": [_label(given.series, at) for at in range(len(values))] if given.series.labels else (),
            "Q": (given.series.unit,),
        },
        extra=extra,
        first="x_hat",
        shown="x_hat",
        table=("x_hat", "Y"),
        start=_start,
        without=("tokens",),
        wide=True,
        tick=TICK,
    )


def _called(series: Series, at: int) -> str:
    """What a value is called: its date, or whatever stands beside it in the table, or its number."""
    return _label(series, at) if series.labels else words("stage.series_value", at=at + 1)


def _label(series: Series, at: int) -> str:
    """The label of a value, short enough for an axis; its number where the cell is empty."""
    return shorten(series.labels[at].strip(), LABEL) or str(at + 1)


def _range(values: Array, predictions: Array) -> list[float]:
    """The fixed limits of the pictures: what was measured and what is said, but no further than one span beyond."""
    low, high = float(values.min()), float(values.max())
    span = high - low or max(abs(high), 1.0)
    said = predictions[np.isfinite(predictions)]
    low, high = (max(min(low, said.min()), low - span), min(max(high, said.max()), high + span))
    pad = 0.05 * (high - low) or 0.5 * span
    return [float(low - pad), float(high + pad)]
