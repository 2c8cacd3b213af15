"""Lesson 10: what is chosen beside the points, the cues above the stage, learning the width below it, and the tabs."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine import tables
from engine.attention.kernel_export import script
from engine.attention.kernel_regression import (
    KERNELS,
    fit,
    mean_squared_error,
    optimum,
    regress,
    textbook_points,
    truth,
)
from engine.notation import format_number
from engine.tables import Row
from engine.trace import Trace
from pages.figures import kernels as figures
from pages.figures.kernels import Fit
from pages.ui import kernels, link, show, stage
from pages.ui import lesson as rooms
from pages.ui.kernels import RATES, STARTS, STEEPEST, WIDTHS, KernelConfig
from pages.ui.words import language, words

ROLES = {"gaussian": "output", "boxcar": "forget", "triangular": "input", "average": "weights", "learned": "cell"}
SEEDS = 20
FAR = (0.0, 1.0, 2.0, 5.0, 10.0, 38.0, 39.0, 100.0, 1000.0)  # widths from the nearest point
BOOK = {"count": 50, "noise": 0.5, "rate": 0.5, "epochs": 5}


def choose(config: KernelConfig) -> None:
    """The two controls beside the points: which kernel, and its width."""
    rooms.control("kernel", KernelConfig.choices["kernel"])
    if config.kernel == "average":
        st.caption(words("kernel.no_width"))
        return
    _choice("width", WIDTHS, slider=True)


def _choice(field: str, offered: Sequence[float], *, slider: bool = False) -> None:
    """One of several numbers; what the link asks for is among them."""
    value, key = getattr(st.session_state["config"], field), f"control-kernel-{field}"
    options = sorted({*offered, value}, reverse=field == "rate")
    link.show(key, value)

    def told() -> None:
        link.change(**{field: st.session_state[key]})

    label = words(f"kernel.{field}")
    if slider:
        st.select_slider(label, options, format_func=kernels.written, key=key, on_change=told)
    else:
        st.selectbox(label, options, format_func=kernels.written, key=key, on_change=told)


def cues() -> None:
    """What draws the eye by itself, and what one looks for."""
    with st.container(key="cues"):
        told, seen = st.columns((2, 5), gap="medium", vertical_alignment="center")
        with told:
            st.markdown(words("kernel.cues"))
            st.caption(words("kernel.cues.about"))
        with seen:
            stage.mount(kernels.packed_cues(language()), key="stage-cues")


def notes(trace: Trace) -> None:
    """What the run had to do where no point is within reach."""
    for note in trace.notes:
        st.caption(words(note.key, count=note.values["count"]))


# ----------------------------------------------------------------------------------------------------------- what if


def what_if(config: KernelConfig) -> None:
    """The width learned: the loss over w, the optimiser's path on it, and the fit of each w."""
    rooms.room("whatif")
    st.markdown(words("kernel.whatif"))
    with st.container(horizontal=True, key="switches", vertical_alignment="bottom"):
        _choice("rate", RATES)
        _choice("start", STARTS)
        link.show("control-kernel-epochs", config.epochs)
        st.number_input(
            words("kernel.epochs"),
            1,
            50,
            key="control-kernel-epochs",
            on_change=lambda: link.change(epochs=st.session_state["control-kernel-epochs"]),
        )
        rooms.control("others", KernelConfig.choices["others"], label=True)
    found = kernels.learned(config)
    packed = kernels.packed_learning(config, language())
    if found is None or packed is None:
        st.text(words("question.few_points"))
        return
    stage.mount(packed, key="stage-learning")
    last = found.path[-1]
    with st.container(horizontal=True, key="measures"):
        st.metric(words("kernel.best"), _shown(found.best), help=words("kernel.best.about"))
        st.metric(words("kernel.least"), _shown(found.least))
        st.metric(words("kernel.ended"), _shown(abs(last.w)), help=words("kernel.ended.about", steps=len(found.path) - 1))
        st.metric(words("kernel.last_loss"), _shown(last.loss))
    if found.at_end:
        st.caption(words("kernel.at_end", most=STEEPEST[1]))
    elif not config.points:
        st.caption(words("kernel.at_best"))
    st.button(
        words("kernel.use"),
        icon=":material/arrow_upward:",
        on_click=link.change,
        kwargs={"kernel": "gaussian", "width": float(f"{1 / found.best:.4g}")},
        disabled=found.at_end,
    )


def _shown(value: float, digits: int = 3) -> str:
    return "–" if value != value else format_number(value, digits, minus="−")


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(config: KernelConfig, trace: Trace) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {
        "kernels": lambda: _kernels(config),
        "far": lambda: _far(config),
        "path_of_w": lambda: _path(config),
        "spread": _spread,
        "code": lambda: _code(config, trace),
        "data": lambda: _data(config, trace),
    }


def _kernels(config: KernelConfig) -> None:
    """The four kernels at one width, and the learned one, on the same points."""
    x, y = kernels.points_of(config)
    queries = kernels.queries_of(config)
    curve = torch.where((queries >= 0) & (queries <= 5), truth(queries), torch.nan) if not config.points else None
    found = {name: regress(queries, x, y, name, config.width) for name in KERNELS}
    labels = {name: words(f"kernel.{name}") for name in KERNELS}
    learning = kernels.learned(config)
    if learning is not None and not learning.at_end:
        found["learned"] = regress(queries, x, y, "gaussian", 1 / learning.best)
        labels["learned"] = words("kernel.learned", width=kernels.written(1 / learning.best))
    lines = [Fit(name=labels[name], values=each["f"], role=ROLES[name]) for name, each in found.items()]
    if curve is not None:
        lines.append(Fit(name=words("kernel.truth"), values=curve.numpy(), role="state", dashed=True))
    drawn = figures.kernel_fits(
        queries.numpy(),
        lines,
        (x.numpy(), y.numpy()),
        title=words("figure.kernels.title"),
        note=words("figure.kernels.note", width=kernels.written(config.width)),
        hover=show.hover("query", "value"),
        theme=show.theme(),
    )
    show.figure(drawn, "kernels")
    rows = []
    for name, each in found.items():
        weights = each["A"]
        row = {
            words("kernel"): labels[name],
            words("kernel.sharpness"): _shown(float(weights.max(-1).mean())),
            words("kernel.zeros"): f"{100 * float((weights == 0).mean()):.0f}%",
        }
        if curve is not None:
            row[words("kernel.readout.error")] = _shown(float(mean_squared_error(torch.tensor(each["f"]), curve)))
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="kernels")


def _far(config: KernelConfig) -> None:
    """Far from all points: the kernel's own numbers round to 0, the softmax of their logarithms does not."""
    x, y = kernels.points_of(config)
    queries = float(x.max()) + torch.tensor(FAR, dtype=torch.float64) * config.width
    found = regress(queries, x, y, "gaussian", config.width)
    kernel = np.exp(found["S"])
    with np.errstate(invalid="ignore", divide="ignore"):
        naive = kernel @ y.numpy() / kernel.sum(-1)
    rows = [
        {
            words("kernel.away"): f"{FAR[at]:g}",
            words("kernel.sum"): f"{float(kernel[at].sum()):.3g}".replace("-", "−"),
            words("kernel.naive"): "0/0" if np.isnan(naive[at]) else _shown(float(naive[at])),
            words("kernel.weights_sum"): _shown(float(found["A"][at].sum())),
            words("kernel.softmax"): _shown(float(found["f"][at])),
        }
        for at in range(len(FAR))
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="far")


def _path(config: KernelConfig) -> None:
    """The optimiser's path, step by step."""
    found = kernels.learned(config)
    if found is None:
        st.text(words("question.few_points"))
        return
    rows = [
        {
            words("kernel.step"): str(step.epoch),
            "w": _shown(step.w),
            words("kernel.loss"): _shown(step.loss),
            words("kernel.gradient"): _shown(step.gradient),
            words("kernel.next"): "" if step is found.path[-1] else _shown(-config.rate * step.gradient),
        }
        for step in found.path
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="path")


@st.cache_resource(show_spinner=False)
def _seeds() -> tuple[np.ndarray, np.ndarray]:
    """|w| after the textbook's training, and the best w, on the points of each seed."""
    ended, best = [], []
    for seed in range(SEEDS):
        draw = torch.Generator().manual_seed(seed)
        x, y = textbook_points(draw, int(BOOK["count"]), BOOK["noise"])
        begin = float(torch.rand((), generator=draw, dtype=torch.float64))
        path = fit(x, y, begin, learning_rate=BOOK["rate"], epochs=int(BOOK["epochs"]))
        ended.append(abs(path[-1].w))
        best.append(optimum(x, y)[0])
    return np.array(ended), np.array(best)


def _spread() -> None:
    ended, best = _seeds()
    drawn = figures.learned_widths(
        [(words("kernel.book"), ended, "update"), (words("kernel.optima"), best, "output")],
        title=words("figure.spread.title", seeds=SEEDS),
        note=words("figure.spread.note", rate=BOOK["rate"], epochs=int(BOOK["epochs"])),
        x_title=words("figure.spread.x"),
        hover=show.hover("seed", "w"),
        theme=show.theme(),
    )
    show.figure(drawn, "spread")
    st.caption(words("kernel.spread", median=_shown(float(np.median(best))), low=_shown(ended.min()), high=_shown(ended.max())))


def _code(config: KernelConfig, trace: Trace) -> None:
    made = script(trace, kernels.query_of(config))
    show.download("download.script", "kernel_regression.py", "text/x-python", made.encode)
    st.code(made, language="python", height=460)


def _data(config: KernelConfig, trace: Trace) -> None:
    show.download("download.points", "points.csv", "text/csv", lambda: tables.to_csv(_point_rows(config)))
    st.caption(words("download.points.about"))
    show.download("download.kernel", "kernel-weights.csv", "text/csv", lambda: tables.to_csv(_weight_rows(trace)))
    st.caption(words("download.kernel.about"))


def _point_rows(config: KernelConfig) -> Iterable[Row]:
    x, y = kernels.points_of(config)
    yield ("x", "y")
    yield from zip(x.tolist(), y.tolist(), strict=True)


def _weight_rows(trace: Trace) -> Iterable[Row]:
    keys = trace.inputs["x_i"]
    yield ("query", "prediction", "point", "x", "score", "weight")
    for t, query in enumerate(trace.inputs["x"][:, 0]):
        for s, at in enumerate(keys):
            row = (float(query), float(trace["f"][t]), s + 1, float(at), float(trace["S"][t, s]), float(trace["A"][t, s]))
            yield row
