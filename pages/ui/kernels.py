"""Lesson 10: its config, the run that a config means, and that run as bytes for the stage."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlencode

import streamlit as st
import torch
from torch import Tensor

from engine.attention import cues
from engine.attention.kernel_questions import KernelRun
from engine.attention.kernel_regression import (
    FitStep,
    fit,
    fits,
    kernel_shape,
    losses,
    mean_squared_error,
    optimum,
    regress,
    textbook_points,
    truth,
)
from engine.data.points import LARGEST, MOST, Point, rounded, sort
from engine.notes import Note
from engine.trace import Trace
from pages.ui import link, positions
from pages.ui.config import MAX_SEED, LessonConfig, choice, given_text, number, to_query
from pages.ui.positions import Extra
from pages.ui.stage import stage_words
from pages.ui.words import words

QUERIES = 71  # on the axis, from one width of the data's reach before it to one behind
TEXTBOOK = (-1.0, 6.0)  # for points in 0..5, so that the far side of both ends can be seen
BEYOND = 0.2  # of the reach of one's own points
WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
RATES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
STARTS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
STEEPEST = (0.03, 100.0)  # w that are drawn
WS = 81
NUMBER = re.compile(r"[-+]?(?:[0-9]{1,7}\.?[0-9]{0,9}|\.[0-9]{1,9})(?:[eE][-+]?[0-9]{1,2})?")
SYMBOLS = ("A", "S", "D", "f")


@dataclass(frozen=True, kw_only=True)
class KernelConfig(LessonConfig):
    """Lesson 10. ``points`` are one's own (none: the textbook's, ``count`` of them with ``noise``); ``rate``, ``epochs``,
    ``start`` and ``others`` are those of learning w; step (query), key (point) and symbol say where one looks.
    """

    kernel: str = "gaussian"
    width: float = 0.5
    count: int = 50
    noise: float = 0.5
    seed: int = 0
    points: tuple[Point, ...] = ()
    rate: float = 0.5
    epochs: int = 5
    start: float = 0.5
    others: str = "without"
    step: int = 30
    key: int = 0
    symbol: str = ""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "kernel": ("gaussian", "boxcar", "triangular", "average"),
        "others": ("without", "with"),
        "symbol": ("", *SYMBOLS),
    }
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {
        "width": (0.01, 100.0),
        "noise": (0.0, 3.0),
        "rate": (0.0001, 1.0),
        "start": (0.01, 100.0),
        "count": (1, MOST),
        "epochs": (1, 50),
    }

    @classmethod
    def read(cls, params: Mapping[str, str], notes: list[Note]) -> "KernelConfig":
        chosen: dict[str, Any] = {name: choice(name, params, known, notes) for name, known in cls.choices.items()}
        numbers: dict[str, Any] = {name: _between(name, params, notes) for name in cls.limits}
        points = _points(params.get("points", ""), notes)
        last = (len(points) or numbers["count"]) - 1
        return cls(
            text=given_text(params, notes),
            seed=number("seed", params, MAX_SEED, notes),
            points=points,
            step=number("step", {"step": str(cls.step), **params}, QUERIES - 1, notes, shift=1),
            key=number("key", params, last, notes, shift=1),
            **chosen,
            **numbers,
        )

    @property
    def run(self) -> "KernelConfig":
        """The config of the run alone: where the learner looks, and how w is learned, changes no number of it."""
        shape = type(self)
        return replace(self.data, kernel=self.kernel, width=self.width if self.kernel != "average" else shape.width)

    @property
    def data(self) -> "KernelConfig":
        """The config of the points alone."""
        if self.points:
            return KernelConfig(points=self.points)
        return KernelConfig(count=self.count, noise=self.noise, seed=self.seed)

    @property
    def learning(self) -> "KernelConfig":
        """The config of the points and of learning w on them."""
        return replace(self.data, rate=self.rate, epochs=self.epochs, start=self.start, others=self.others)


def _between(name: str, params: Mapping[str, str], notes: list[Note]) -> float:
    """A number within ``limits``, whole where the default is; the default where none can be read."""
    low, high = KernelConfig.limits[name]
    default = getattr(KernelConfig, name)
    given = params.get(name, str(default))
    asked = float(given) if NUMBER.fullmatch(given) else math.nan
    used = default if math.isnan(asked) else min(max(asked, low), high)
    if used != asked:
        notes.append(Note(f"kernel.bad.{name}", {"low": low, "high": high, "used": used}))
    return int(used) if isinstance(default, int) else float(used)


def _points(given: str, notes: list[Note]) -> tuple[Point, ...]:
    """The points of a link, ``x,y`` joined by semicolons; those that cannot be read are counted."""
    parts = [part for part in given.split(";", 4 * MOST) if part]
    found = []
    for part in parts[:MOST]:
        x, _, y = part.partition(",")
        if NUMBER.fullmatch(x) and NUMBER.fullmatch(y) and max(abs(float(x)), abs(float(y))) <= LARGEST:
            found.append(rounded(float(x), float(y)))
    if len(found) < min(len(parts), MOST):
        notes.append(Note("link.points", {"count": min(len(parts), MOST) - len(found)}))
    if len(parts) > MOST:
        notes.append(Note("points.first", {"kept": MOST, "total": len(parts)}))
    return sort(found)


# ------------------------------------------------------------------------------------------------------------- the run


def points_of(config: KernelConfig) -> tuple[Tensor, Tensor]:
    """Keys and values (S,), keys from left to right."""
    if config.points:
        x, y = zip(*((point.x, point.y) for point in config.points), strict=True)
        return torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    return textbook_points(torch.Generator().manual_seed(config.seed), config.count, config.noise)


def queries_of(config: KernelConfig) -> Tensor:
    """The queries on the axis (T,)."""
    low, high = TEXTBOOK
    if config.points:
        x = points_of(config)[0]
        reach = BEYOND * float(x.max() - x.min()) or 1.0
        low, high = float(x.min()) - reach, float(x.max()) + reach
    return torch.linspace(low, high, QUERIES, dtype=torch.float64)


def query_of(config: KernelConfig) -> float:
    """The query where the learner stands."""
    return float(queries_of(config)[config.step])


def asked(config: KernelConfig) -> KernelRun:
    """What the questions ask about."""
    x, y = points_of(config)
    return KernelRun(x=x, y=y, kernel=config.kernel, width=config.width, query=query_of(config), w=config.start)


def key(config: KernelConfig) -> str:
    """What decides the numbers of a run, as one string."""
    return f"kernel_regression?{urlencode(to_query(config))}"


def traced(config: KernelConfig) -> Trace:
    """The trace of a config's run, computed once."""
    return _traced(key(config.run), config)


@st.cache_resource(max_entries=32, show_spinner=False)
def _traced(key: str, _config: KernelConfig) -> Trace:  # noqa: ARG001 the key is the cache's
    return regress(queries_of(_config), *points_of(_config), _config.kernel, _config.width)


def written(value: float) -> str:
    """A number of the axis as a label."""
    return f"{round(value, 9) + 0.0:.3g}".replace("-", "−")


def packed(config: KernelConfig, lang: str) -> bytes:
    """The run as bytes for the stage, in the learner's language."""
    start: dict[str, Any] = {"step": config.step, "key": config.key, "move": link.moves()}
    start |= {"symbol": config.symbol} if config.symbol else {}
    return _packed(key(config.run), urlencode(start), lang, config, start)


@st.cache_resource(max_entries=32, show_spinner=False)
def _packed(key: str, place: str, lang: str, _config: KernelConfig, _start: Mapping[str, Any]) -> bytes:  # noqa: ARG001 parts of the key
    trace, queries, (x, y) = traced(_config), queries_of(_config), points_of(_config)
    shape = kernel_shape(queries, queries, _config.kernel, _config.width)
    lines = (
        {"array": "f", "label": words("kernel.fit", lang=lang), "role": "output", "marked": True},
        {"array": "truth", "label": words("kernel.truth", lang=lang), "role": "weights", "dashed": True},
    )
    extra = {
        "queries": Extra(queries.numpy(), "T"),
        "keys": Extra(x.numpy(), "S"),
        "values": Extra(y.numpy(), "S"),
        "shape": Extra(shape.numpy(), "TU"),
        "places": Extra(queries.numpy(), "U"),
    }
    if not _config.points:
        extra["truth"] = Extra(torch.where((queries >= 0) & (queries <= 5), truth(queries), torch.nan).numpy(), "T")
    curves = {
        "view": "curves",
        "area": "time",
        "x": "queries",
        "lines": lines,
        "points": {"x": "keys", "y": "values", "weights": "A", "label": words("kernel.points", lang=lang)},
        "shade": {"x": "places", "y": "shape", "label": words("kernel.shape", lang=lang)},
        "axis_x": "x",
        "axis_y": "y",
        "handle_label": words("kernel.handle", lang=lang),
        "editable": True,
    }
    views = (
        curves,
        {"view": "panel", "area": "time"},
        {"view": "matrix", "area": "side", "array": "A", "title": words("kernel.map", lang=lang)},
        {"view": "terms", "area": "side"},
    )
    docs = {name: words(f"kernel.doc.{name}", lang=lang) for name in ("D", "A", "f")}
    return positions.pack(
        trace,
        views=views,
        tokens=[written(value) for value in queries.tolist()],
        keys=[written(value) for value in x.tolist()],
        words=stage_words(lang, lesson="kernel_regression"),
        names={name: words(f"kernel.name.{name}", lang=lang) for name in ("D", "S", "A", "f", "x", "x_i", "y")},
        docs=docs | {"S": words(f"kernel.doc.S.{_config.kernel}", lang=lang)},
        extra=extra,
        first="f",
        shown="A",
        start=_start,
        without=("tokens",),
    )


# ----------------------------------------------------------------------------------------------------------- the cues


@st.cache_resource(max_entries=4, show_spinner=False)
def packed_cues(lang: str) -> bytes:
    """Where one looks, for each wish, as bytes for a stage beside the main one."""
    return positions.pack(
        cues.look(),
        views=({"view": "scene", "area": "what", "label": words("kernel.cues.label", lang=lang)},),
        tokens=cues.WISHES,
        keys=cues.OBJECTS,
        words=stage_words(lang),
        labels={
            "I": cues.OBJECTS,
            "T": [words(f"kernel.wish.{name}", lang=lang) for name in cues.WISHES],
            "S": [words(f"kernel.object.{name}", lang=lang) for name in cues.OBJECTS],
        },
        names={"S": words("kernel.name.S", lang=lang), "A": words("kernel.name.A", lang=lang)},
        first="A",
        shown="A",
        table=("S", "A"),
        aside=True,
        without=("transport",),
    )


# -------------------------------------------------------------------------------------------------------- learning w


@dataclass(frozen=True, kw_only=True)
class Learning:
    """The loss over w, the best w, and the path of the optimiser that the config asks for."""

    ws: Tensor
    losses: Tensor
    path: tuple[FitStep, ...]
    best: float
    least: float
    at_end: bool  # no least loss within reach: it falls for ever


def learned(config: KernelConfig) -> Learning | None:
    """Learning w on a config's points; None where there are too few of them."""
    return _learned(key(config.learning), config) if len(points_of(config)[0]) > 2 else None


@st.cache_resource(max_entries=32, show_spinner=False)
def _learned(key: str, _config: KernelConfig) -> Learning:  # noqa: ARG001 the key is the cache's
    x, y = points_of(_config)
    own = _config.others == "with"
    best, least = optimum(x, y, include_self=own, reach=STEEPEST)
    low, high = (math.log10(end) for end in STEEPEST)
    grid = torch.logspace(low, high, WS, dtype=torch.float64).tolist()
    ws = torch.tensor(sorted({*grid, best}), dtype=torch.float64)  # the best one among them
    path = fit(x, y, _config.start, learning_rate=_config.rate, epochs=_config.epochs, include_self=own)
    found = losses(x, y, ws, include_self=own)
    at_end = best >= 0.99 * STEEPEST[1] or best <= 1.01 * STEEPEST[0]
    return Learning(ws=ws, losses=found, path=tuple(path), best=best, least=least, at_end=at_end)


def packed_learning(config: KernelConfig, lang: str) -> bytes | None:
    """The loss over w with the optimiser's path on it, and the fit of each w, as bytes for a stage beside the main one."""
    found = learned(config)
    return None if found is None else _packed_learning(key(config.learning), lang, config, found)


@st.cache_resource(max_entries=16, show_spinner=False)
def _packed_learning(key: str, lang: str, _config: KernelConfig, _found: Learning) -> bytes:  # noqa: ARG001 a part of the key
    queries, (x, y) = queries_of(_config), points_of(_config)
    found = fits(x, y, _found.ws, queries)
    path = torch.tensor([[min(max(abs(step.w), STEEPEST[0]), STEEPEST[1]), step.loss] for step in _found.path])
    extra = {
        "w": Extra(_found.ws.numpy(), "T", name="w", letter="w"),
        "loss": Extra(_found.losses.numpy(), "T"),
        "width": Extra((1 / _found.ws).numpy(), "T"),
        "path_w": Extra(path[:, 0].numpy(), "S"),
        "path_loss": Extra(path[:, 1].numpy(), "S"),
        "fits": Extra(found.numpy(), "TU"),
        "grid": Extra(queries.numpy(), "U"),
        "keys": Extra(x.numpy(), "P"),
        "values": Extra(y.numpy(), "P"),
    }
    items = [{"array": name, "label": words(f"kernel.readout.{name}", lang=lang)} for name in ("w", "width", "loss")]
    lines: list[dict[str, Any]] = [{"array": "fits", "label": words("kernel.fit_of_w", lang=lang), "role": "output"}]
    if not _config.points:
        inside = (queries >= 0) & (queries <= 5)
        curve = torch.where(inside, truth(queries), torch.nan)
        extra["truth"] = Extra(curve.numpy(), "U")
        extra["error"] = Extra(mean_squared_error(found, curve).numpy(), "T")
        lines.append({"array": "truth", "label": words("kernel.truth", lang=lang), "role": "weights", "dashed": True})
        items.append({"array": "error", "label": words("kernel.readout.error", lang=lang)})
    views = (
        {
            "view": "curves",
            "area": "time",
            "x": "w",
            "log_x": True,
            "lines": [{"array": "loss", "label": words("kernel.loss", lang=lang), "role": "update", "marked": True}],
            "points": {"x": "path_w", "y": "path_loss", "joined": True, "label": words("kernel.path", lang=lang)},
            "axis_x": "w",
            "axis_y": "L",
            "handle_label": words("kernel.handle_w", lang=lang),
        },
        {
            "view": "curves",
            "area": "side",
            "x": "grid",
            "lines": lines,
            "points": {"x": "keys", "y": "values", "label": words("kernel.data", lang=lang)},
            "fixed": True,
            "axis_x": "x",
            "axis_y": "y",
        },
        {"view": "readout", "area": "side", "items": items},
    )
    best = int(torch.argmin((_found.ws - _found.best).abs()))
    return positions.pack(
        None,
        views=views,
        tokens=[written(value) for value in _found.ws.tolist()],
        keys=[str(epoch) for epoch in range(len(_found.path))],
        words=stage_words(lang),
        extra=extra,
        first="w",
        shown="w",
        start={"step": best},
        aside=True,
        without=("tokens",),
    )
