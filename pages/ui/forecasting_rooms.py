"""Lesson 1: what stands above and below its stage."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from engine import tables
from engine.notation import format_number
from engine.sequences import comparing, script
from engine.sequences.autoregression import Model, WindowModel
from engine.sequences.following import k_step_lines
from engine.sequences.forecasts import HORIZONS, ClosedLoop, compared_starts
from engine.trace import Array
from pages.figures import curves
from pages.figures.curves import Curve
from pages.figures.palette import palette
from pages.ui import forecasting, link, markov_room, show
from pages.ui import lesson as rooms
from pages.ui.config import MAX_SEED
from pages.ui.forecasting import LIMITS, MODELS, AutoregressionConfig, Problem, most_lags
from pages.ui.words import words

ROLES = {"linear": "weights", "mlp": "output", "rnn": "cell"}
SHOWN = 1000  # steps of a closed loop


def choose(config: AutoregressionConfig) -> None:
    """Beside the series: the model."""
    key = "control-forecaster"
    labels = {name: words(f"forecaster.{name}") for name in MODELS}
    link.show(key, config.model)
    st.selectbox(
        words("forecaster"),
        MODELS,
        format_func=labels.__getitem__,
        key=key,
        on_change=lambda: link.change(model=st.session_state[key]),
        label_visibility="collapsed",
    )


def started(start: int) -> None:
    """Callback of the stage: the forecast starts elsewhere."""
    link.change(start=start)


# --------------------------------------------------------------------------------------------------------------- what if


def what_if(given: Problem) -> None:
    """The sizes and the noise, and what they come to."""
    config = given.config
    rooms.room("whatif")
    st.markdown(words("autoregression.whatif"))
    with st.container(horizontal=True, key="switches", vertical_alignment="bottom"):
        if config.model != "rnn":
            _slider("tau", given.tau, 1, most_lags(given.train))
        if config.series == "noisy_sine":
            _slider("noise", config.noise, *LIMITS["noise"])
        _slider("start", given.start + 1, given.first + 1, len(given.values), shift=1)
        if config.series == "stocks":
            rooms.control("company", config.choices["company"], label=True)
        if config.model != "linear":
            _number("hidden", *LIMITS["hidden"])
            _number("epochs", *LIMITS["epochs"])
        if config.model != "linear" or config.series == "noisy_sine":
            _number("seed", 0, MAX_SEED)
    found, run, loop = forecasting.errors(given), forecasting.asked(given), forecasting.loop(given)
    free, taught = (float(np.sqrt(np.mean(np.square(row)))) for row in run.following.errors)
    point = loop.reached or next(iter(loop.fixed_points), None)
    with st.container(horizontal=True, key="measures"):
        st.metric(words("autoregression.one"), _shown(float(found.rms[0])), help=words("autoregression.one.about"))
        constant = comparing.errors_of_mean(given.values, given.train)
        st.metric(words("autoregression.mean"), _shown(constant), help=words("autoregression.mean.about"))
        st.metric(words("autoregression.taught"), _shown(taught))
        st.metric(words("autoregression.free"), _shown(free))
        st.metric(words("autoregression.ends"), _ends(loop))
        st.metric(words("autoregression.point"), "–" if point is None else _shown(point.value))
        st.metric(words("autoregression.radius"), "–" if point is None else _shown(point.radius))


def _slider(field: str, value: int, low: int, high: int, shift: int = 0) -> None:
    if low >= high:  # a slider needs two places
        return
    key = f"control-{field}"
    link.show(key, min(max(value, low), high))
    st.slider(
        words(field), low, high, key=key, width=260, on_change=lambda: link.change(**{field: st.session_state[key] - shift})
    )


def _number(field: str, low: int, high: int) -> None:
    key = f"control-{field}"
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(
        words(field), low, high, key=key, width=140, on_change=lambda: link.change(**{field: st.session_state[key]})
    )


def _shown(number: float) -> str:
    return "–" if number != number else format_number(number, minus="−")


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(given: Problem) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {
        "horizons": lambda: _horizons(given),
        "loop": lambda: _loop(given),
        "lags": lambda: _lags(given),
        "fit": lambda: _fit(given),
        "markov": markov_room.tab,
        "code": lambda: _code(given),
        "data": lambda: _data(given),
    }


def _curve(kind: str, y: Array, x: NDArray[np.int64], low: Array | None = None, high: Array | None = None) -> Curve:
    colours, role, label = palette(show.theme()), ROLES[kind], words(f"forecaster.{kind}")
    return Curve(key=kind, label=label, color=colours.mark[role], text=colours.text[role], x=x, y=y, low=low, high=high)


def _ends(loop: ClosedLoop) -> str:
    return words(f"autoregression.end.{loop.end.replace(' ', '_')}", period=loop.period or 0)


def _horizons(given: Problem) -> None:
    """Errors against k for the three models, from the same start points, with the spread of the chosen one."""
    models = {kind: forecasting.fit(given, kind).model for kind in MODELS}
    found = dict(zip(MODELS, comparing.errors_of_models(list(models.values()), given.values, given.train), strict=True))
    steps = np.arange(1, found["linear"].rms.size + 1)
    lines = []
    for kind, errors in found.items():
        low, _, high = errors.quantiles if kind == given.config.model else (None, None, None)
        lines.append(_curve(kind, errors.rms, steps, low, high))
    first = compared_starts(list(models.values()))
    constant = comparing.errors_of_mean(given.values, given.train, first=first)
    levels = [(words("autoregression.line.mean"), constant)]
    if given.config.series == "noisy_sine" and given.config.noise:
        levels.append((words("autoregression.line.noise"), given.config.noise / 100))
    drawn = curves.curves(
        lines,
        levels=levels,
        title=words("figure.horizons.title"),
        note=words("figure.horizons.note", count=len(found["linear"].starts)),
        x_title="k",
        hover=("k", words("figure.value")),
        zero=True,
        theme=show.theme(),
    )
    show.figure(drawn, "horizons")
    rows = []
    for kind, errors in found.items():
        row = {words("forecaster"): words(f"forecaster.{kind}"), words("autoregression.parameters"): _parameters(models[kind])}
        row |= {f"k = {k}": _shown(float(errors.rms[k - 1])) for k in HORIZONS if k <= len(steps)}
        rows.append(row)
    rows.append(
        {words("forecaster"): words("autoregression.line.mean"), words("autoregression.parameters"): "1"}
        | {f"k = {k}": _shown(constant) for k in HORIZONS if k <= len(steps)}
    )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="horizons")


def _parameters(model: Model) -> str:
    return f"{sum(each.numel() for each in model.parameters()):,}"


def _loop(given: Problem) -> None:
    """Where the three closed loops end, and the eigenvalues of their maps there."""
    found = {kind: forecasting.loop(given, kind) for kind in MODELS}
    lines = [_curve(kind, loop.path[:SHOWN], np.arange(1, len(loop.path[:SHOWN]) + 1)) for kind, loop in found.items()]
    drawn = curves.curves(
        lines,
        title=words("figure.loop.title"),
        note=words("figure.loop.note", start=given.start + 1),
        x_title=words("figure.loop.x"),
        hover=(words("figure.step"), words("figure.value")),
        theme=show.theme(),
    )
    show.figure(drawn, "loop")
    rows, points = [], []
    for kind, loop in found.items():
        end = _ends(loop)
        if not loop.fixed_points:
            rows.append([words(f"forecaster.{kind}"), end, "–", "–", "–"])
        for point in loop.fixed_points:
            here = point is loop.reached
            rows.append(
                [
                    words(f"forecaster.{kind}"),
                    end if here or loop.reached is None else words("autoregression.not_reached"),
                    _shown(point.value),
                    _shown(point.radius),
                    words("yes" if point.stable else "no"),
                ]
            )
        chosen = loop.reached or next(iter(loop.fixed_points), None)
        if chosen is not None and kind == given.config.model:
            points = list(chosen.eigenvalues)
    columns = [words(f"autoregression.{name}") for name in ("model", "ends", "point", "radius", "stable")]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch", key="points")
    if points:
        picture = curves.eigenvalues(
            points,
            role=ROLES[given.config.model],
            title=words("figure.eigenvalues.title"),
            note=words("figure.eigenvalues.note", model=words(f"forecaster.{given.config.model}")),
            hover=(words("figure.eigenvalue"), words("figure.modulus")),
            theme=show.theme(),
        )
        show.figure(picture, "eigenvalues")


@st.cache_resource(max_entries=32, show_spinner=False)
def _compared_lags(key: str, _given: Problem) -> list[comparing.Lags]:  # noqa: ARG001 the key is the cache's
    return comparing.lags(_given.values, _given.train)


def _lags(given: Problem) -> None:
    """How many past values a linear model needs: errors, weights, and the largest eigenvalue."""
    rows = []
    for each in _compared_lags(given.key, given):
        row = {words("tau"): str(each.tau)}
        row |= {f"k = {k}": _shown(error) for k, error in zip(each.horizons, each.rms, strict=True)}
        row |= {
            words("autoregression.radius"): "–" if each.radius is None else _shown(each.radius),
            words("autoregression.weights"): "  ".join(_shown(float(w)) for w in each.weights[:4])
            + (" …" if each.tau > 4 else ""),
        }
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="lags")
    st.caption(words("autoregression.lags.about"))


def _fit(given: Problem) -> None:
    """How the chosen model was fitted, and to how many pairs."""
    config, found = given.config, forecasting.fit(given)
    model, scale = found.model, found.model.scale
    losses = found.losses * scale.deviation**2
    pairs = given.train - model.context
    st.text(words(f"autoregression.fit.{config.model}", train=given.train, pairs=pairs, epochs=config.epochs))
    floor = [(words("autoregression.line.variance"), (config.noise / 100) ** 2)] if config.series == "noisy_sine" else []
    if len(losses) > 1:
        drawn = curves.curves(
            [_curve(config.model, losses, np.arange(1, len(losses) + 1))],
            levels=floor,
            title=words("figure.fitting.title"),
            note=words(f"figure.fitting.note.{config.model}"),
            x_title=words("figure.fitting.x" if config.model == "mlp" else "figure.fitting.tenths"),
            hover=(words("figure.fitting.x" if config.model == "mlp" else "figure.fitting.tenths"), words("figure.value")),
            zero=True,
            theme=show.theme(),
        )
        show.figure(drawn, "losses")
    else:
        st.text(words("autoregression.fit.loss", loss=_shown(float(losses[-1]))))
    if isinstance(model, WindowModel) and model.hidden is None:
        weights = model.get_parameter("W_xy").detach().numpy()[:, 0]
        names = [words("autoregression.back", count=len(weights) - at) for at in range(len(weights))]
        st.dataframe(
            pd.DataFrame({words("autoregression.value"): names, words("autoregression.weight"): [_shown(w) for w in weights]}),
            hide_index=True,
            width="stretch",
            key="weights",
        )


def _code(given: Problem) -> None:
    run = forecasting.asked(given)
    written = script.script(run.model, given.values, given.train, given.start)
    st.caption(words("autoregression.code.about"))
    show.download("download.script", "autoregression.py", "text/x-python", written.encode)
    st.code(written, language="python", height=460)


def _data(given: Problem) -> None:
    made = {
        "forecast": lambda: tables.to_csv(_forecast_rows(given)),
        "errors": lambda: tables.to_csv(_error_rows(given)),
    }
    for name, make in made.items():
        show.download(f"download.{name}", f"{name}.csv", "text/csv", make)
        st.caption(words(f"download.{name}.about"))


def _forecast_rows(given: Problem) -> list[tables.Row]:
    """A row for each value: what was measured, its k-step predictions, and the free run."""
    found, values = forecasting.asked(given).following, given.values
    lines = k_step_lines(forecasting.fit(given).model, values, HORIZONS)
    free: list[float | None] = [None] * len(values)
    free[given.start : given.start + len(found.truth)] = map(float, found.predictions[0])
    rows: list[tables.Row] = [("place", "label", "part", "value", *(f"predicted_{k}_steps" for k in HORIZONS), "free_run")]
    for at, value in enumerate(values):
        label = given.series.labels[at] if given.series.labels else ""
        said = [None if line[at] != line[at] else float(line[at]) for line in lines]
        rows.append((at + 1, label, "training" if at < given.train else "test", float(value), *said, free[at]))
    return rows


def _error_rows(given: Problem) -> list[tables.Row]:
    """A row for each horizon: the chosen model's error and its spread."""
    found = forecasting.errors(given)
    rows: list[tables.Row] = [("k", "rms", "absolute_error_10", "absolute_error_50", "absolute_error_90", "start_points")]
    for at, error in enumerate(found.rms):
        rows.append((at + 1, float(error), *(float(q) for q in found.quantiles[:, at]), len(found.starts)))
    return rows
