"""Lesson 5: what is chosen beside the text, what can be changed below the stage, and the tabs of See more."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine import tables
from engine.notation import format_number
from engine.recurrent import clipping, spectrum
from engine.recurrent.scalar_chain import example_inputs, scalar_chain
from engine.recurrent.truncated import Comparison, compare, truncated_run
from engine.recurrent.truncation import FULL, GradientFlow, Truncation, chunks, randomized, window
from engine.tables import Row
from pages.figures.clipping import clipped_arrows
from pages.figures.gradients import Line, decay
from pages.figures.palette import palette
from pages.ui import horizon, link, show
from pages.ui import lesson as rooms
from pages.ui.horizon import MAX_LENGTH, TruncationConfig
from pages.ui.words import words

DRAWS = 60  # of a randomized truncation in the comparison
CHAIN_DRAWS = 20_000
SHORT, LONG = 4, 16
STEPS_BACK = 30
WIDTH = 16  # units of the matrices whose powers are drawn
KICK = 2.0  # size of the inputs that saturate a tanh
CLIFF = {"w": 4.6, "b": -2.3, "rate": 0.05, "steps": 200}


def choose(config: TruncationConfig) -> None:
    """The two controls beside the text: which cell, and trained or not."""
    rooms.control("network", TruncationConfig.choices["network"])
    known = TruncationConfig.choices["model"]
    rooms.control("model", known if config.model in known else (*known, config.model))
    if config.model == "untrained":
        rooms.seed()


def what_if(config: TruncationConfig, flow: GradientFlow) -> None:
    """Which truncation the map is under, and what is left of the gradient."""
    rooms.room("whatif")
    st.markdown(words("truncation.whatif"))
    with st.container(horizontal=True, key="switches"):
        rooms.control("truncation", TruncationConfig.choices["truncation"], label=True)
        if config.truncation in ("window", "chunks"):
            _number("length", 1, MAX_LENGTH)
        if config.truncation == "randomized":
            _number("percent", 5, 100)
            if config.model == "trained":
                rooms.seed()
    if not horizon.comparable(config):
        st.text(words("truncation.no_past"))
        return
    found = _compared(horizon.key(config), config.chosen, config)
    share = flow.shares > 0
    with st.container(horizontal=True, key="measures"):
        st.metric(words("truncation.cosine"), _shown(found.cosine))
        st.metric(words("truncation.length"), _shown(found.length))
        st.metric(words("truncation.spread"), _shown(found.spread) if found.draws > 1 else "–")
        st.metric(words("truncation.pairs"), f"{int(share.sum()):,}", help=words("truncation.pairs.about"))


def _number(field: str, low: int, high: int) -> None:
    key = f"control-{field}"
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(words(field), low, high, key=key, on_change=lambda: link.change(**{field: st.session_state[key]}))


def _shown(number: float) -> str:
    return "–" if number != number else format_number(number, minus="−")


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(config: TruncationConfig, flow: GradientFlow) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {
        "truncations": lambda: _truncations(config),
        "growth": lambda: _growth(config),
        "scalar": _scalar,
        "clipping": lambda: _clipping(config),
        "data": lambda: _data(config, flow),
    }


@st.cache_resource(max_entries=64, show_spinner=False)
def _compared(key: str, _asked: Truncation, _config: TruncationConfig) -> Comparison:  # noqa: ARG001 the key is the cache's
    draw = torch.Generator().manual_seed(_config.seed)
    return compare(horizon.full_flow(_config), _asked, draws=DRAWS, generator=draw)


@dataclass(frozen=True)
class Cost:
    """A truncation by name beside the full gradient, with what carrying it out costs."""

    name: str
    found: Comparison
    seconds: float
    kilobytes: float


@st.cache_resource(max_entries=12, show_spinner=False)
def _costs(key: str, lang: str, _config: TruncationConfig) -> tuple[Cost, ...]:  # noqa: ARG001 the key is the cache's
    """Every kind of truncation, with the learner's own length and probability among them."""
    lengths = sorted({SHORT, _config.length, LONG})
    keeps = sorted({50, _config.percent, 90})
    asked = {words("truncation.full"): FULL}
    asked |= {words("truncation.row.window", length=n): window(n) for n in lengths}
    asked |= {words("truncation.row.chunks", length=n): chunks(n) for n in lengths}
    asked |= {words("truncation.row.randomized", percent=n): randomized(n / 100) for n in keeps}
    model, ids, found = horizon.opened(_config)[0], horizon.ids_of(_config)[:, None], []
    for name, each in asked.items():
        draw = torch.Generator().manual_seed(_config.seed)
        run = truncated_run(model, ids, each, generator=draw)
        comparison = compare(horizon.full_flow(_config), each, draws=DRAWS, generator=draw)
        found.append(Cost(name, comparison, run.seconds, run.saved_bytes / 1024))
    return tuple(found)


def _truncations(config: TruncationConfig) -> None:
    if not horizon.comparable(config):
        st.text(words("truncation.no_past"))
        return
    rows = [
        {
            words("truncation"): cost.name,
            words("truncation.cosine"): _shown(cost.found.cosine),
            words("truncation.length"): _shown(cost.found.length),
            words("truncation.bias"): _shown(cost.found.bias),
            words("truncation.chance"): _shown(cost.found.error) if cost.found.draws > 1 else "–",
            words("truncation.spread"): _shown(cost.found.spread) if cost.found.draws > 1 else "–",
            words("truncation.seconds"): f"{1000 * cost.seconds:.1f}",
            words("truncation.memory"): f"{cost.kilobytes:,.0f}",
        }
        for cost in _costs(horizon.key(config), words("truncation.full"), config)
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="truncations")
    st.caption(words("truncation.about", draws=DRAWS))


def _growth(config: TruncationConfig) -> None:
    """Products of Jacobians against distance: four matrices of one spectral radius, and the learner's own run."""
    radius = st.slider(words("truncation.radius"), 0.5, 2.0, 0.9, 0.05, key="growth-radius")
    draw = torch.Generator().manual_seed(config.seed)
    normal = spectrum.rotation(WIDTH, radius, draw)
    inputs = torch.randn(STEPS_BACK, WIDTH, generator=draw, dtype=torch.float64).numpy() * KICK
    _, driven = spectrum.tanh_run(normal, np.zeros(WIDTH), STEPS_BACK, inputs)
    values = {
        "normal": (spectrum.power_norms(normal, STEPS_BACK), "output", (1, 0)),
        "non_normal": (spectrum.power_norms(spectrum.non_normal(radius), STEPS_BACK), "forget", (1, 0)),
        "saturated": (spectrum.growth(driven).products, "input", (1, 0)),
        "own": (_own_product(config)[: STEPS_BACK + 1], "weights", (4, 3)),
    }
    colours = palette(show.theme())
    lines = [
        Line(
            key=key,
            label=words(f"truncation.line.{key}"),
            color=colours.mark[role],
            text=colours.text[role],
            values=line,
            dash=dash,
        )
        for key, (line, role, dash) in values.items()
    ]
    drawn = decay(
        lines,
        colours,
        title=words("figure.growth.title"),
        note=words("figure.growth.note"),
        x_title=words("figure.growth.x"),
        hover=show.hover("growth.x", "value"),
        width=720,
    )
    show.figure(drawn, "growth")
    matrices = {"normal": normal, "non_normal": spectrum.non_normal(radius)}
    model = horizon.opened(config)[0]
    matrices |= {
        name: weight.detach().numpy() for name, weight in model.recurrent.weights()[""].items() if name.startswith("W_h")
    }
    rows = []
    for name, matrix in matrices.items():
        found = spectrum.spectrum(matrix)
        called = words(f"truncation.line.{name}") if name in values else name
        rows.append(
            {
                words("truncation.matrix"): called,
                words("truncation.radius"): _shown(found.radius),
                words("truncation.singular"): _shown(found.largest_step),
                words("truncation.departure"): _shown(found.departure),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="spectra")


def _own_product(config: TruncationConfig) -> np.ndarray:
    """Norms of the products of the run's own Jacobians, back from the chosen step."""
    ids = horizon.ids_of(config)[: config.step + 1, None]
    return np.asarray(spectrum.growth(spectrum.step_jacobians(horizon.opened(config)[0], ids)).products)


def _scalar() -> None:
    """One unit, fifty steps: the exact derivative, what truncation leaves of it, and chance that is right in the mean."""
    weight = st.slider(words("truncation.weight"), 0.1, 1.5, 0.9, 0.05, key="scalar-weight")
    chain = scalar_chain(weight, example_inputs())
    rows = [(words("truncation.exact"), chain.exact, 0.0, 0.0)]
    rows += [(words("truncation.last", count=tau), chain.truncated(tau), 0.0, 0.0) for tau in (1, 5, 10, 20)]
    draw = torch.Generator().manual_seed(1)
    for percent in (90, 80, 50):
        estimates = chain.randomized(percent / 100, CHAIN_DRAWS, draw)
        spread = chain.deviation(percent / 100)
        name = words("truncation.row.randomized", percent=percent)
        rows.append((name, float(estimates.mean()), spread / CHAIN_DRAWS**0.5, spread))
    shown = [
        {
            words("truncation"): name,
            words("truncation.mean"): _shown(mean),
            words("truncation.off"): _shown(mean - chain.exact),
            words("truncation.chance"): _shown(error) if spread else "–",
            words("truncation.spread.one"): _shown(spread) if spread else "–",
        }
        for name, mean, error, spread in rows
    ]
    st.dataframe(pd.DataFrame(shown), hide_index=True, width="stretch", key="scalar")
    st.caption(words("truncation.scalar.about", draws=CHAIN_DRAWS))


def _clipping(config: TruncationConfig) -> None:
    """Three arrows; then a wall where a free step flies off; then the learner's own gradient, whose early part stays small."""
    picture, sliders = st.columns((3, 2))
    with sliders:
        size = st.slider(words("truncation.size"), 0.1, 4.0, 3.0, 0.1, key="clip-size")
        angle = st.slider(words("truncation.angle"), 0, 355, 20, 5, key="clip-angle")
        limit = st.slider(words("truncation.limit"), 0.1, 4.0, 1.0, 0.1, key="clip-limit")
        turn = np.radians(angle)
        vector = clipping.clipped_vector((float(size * np.cos(turn)), float(size * np.sin(turn))), limit)
        st.text(words("truncation.factor", factor=_shown(vector.factor)))
        st.text(words("truncation.turned", turned=format_number(vector.turned, 1)))
    with picture:
        drawn = clipped_arrows(
            vector,
            names=[words(f"truncation.arrow.{name}") for name in ("gradient", "by_value", "by_norm")],
            title=words("figure.clipping.title"),
            note=words("figure.clipping.note"),
            hover=show.hover("arrow", "value"),
            theme=show.theme(),
        )
        show.figure(drawn, "clipping")
    free, kept = (
        clipping.descend(CLIFF["w"], CLIFF["b"], rate=CLIFF["rate"], steps=int(CLIFF["steps"]), max_norm=most)
        for most in (None, 1.0)
    )
    rows = [
        {
            words("truncation.steps"): words(name),
            words("truncation.first_norm"): _shown(float(run.norms[0])),
            words("truncation.first_step"): _shown(float(np.linalg.norm(run.path[1] - run.path[0]))),
            words("truncation.end"): ", ".join(_shown(float(part)) for part in run.path[-1]),
        }
        for name, run in (("truncation.free", free), ("truncation.kept", kept))
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="cliff")
    st.caption(words("truncation.cliff.about", steps=int(CLIFF["steps"])))
    norms = horizon.full_flow(config).full_norms["H"][-1]
    st.text(words("truncation.vanishing", first=_shown(float(norms[0])), own=_shown(float(norms[-1]))))


def _data(config: TruncationConfig, flow: GradientFlow) -> None:
    show.download("download.map", "gradient-map.csv", "text/csv", lambda: tables.to_csv(_map_rows(config, flow)))
    st.caption(words("download.map.about"))
    show.download("download.contributions", "contributions.csv", "text/csv", lambda: tables.to_csv(_use_rows(config, flow)))
    st.caption(words("download.contributions.about"))


def _map_rows(config: TruncationConfig, flow: GradientFlow) -> Iterable[Row]:
    full, left = flow.full_norms, flow.norms
    yield ("loss_step", "token", "state_step", "state_token", *(f"full_{n}" for n in full), *(f"truncated_{n}" for n in left))
    for k, token in enumerate(config.tokens):
        for t in range(k + 1):
            numbers = (float(each[k, t]) for norms in (full, left) for each in norms.values())
            yield (k + 1, token, t + 1, config.tokens[t], *numbers)


def _use_rows(config: TruncationConfig, flow: GradientFlow) -> Iterable[Row]:
    parts = {name: flow.contributions(name) for name in flow.weights}
    yield ("state_step", "token", *parts)
    for t, token in enumerate(config.tokens):
        yield (t + 1, token, *(float(np.linalg.norm(each[t])) for each in parts.values()))
