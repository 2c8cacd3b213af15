"""Lesson 16: what is chosen beside the text, what can be changed below the stage, and the tabs of See more."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine import tables
from engine.notation import format_number
from engine.tables import Row
from engine.trace import Trace
from engine.transformer import depth_export
from engine.transformer.depth import ARRANGEMENTS, DepthRun, averaged_with, leak
from engine.transformer.norms import norm_trace
from pages.figures import waves
from pages.figures.blocks import shared_cells
from pages.figures.heat import heat_map
from pages.figures.ramps import gate_scale, symmetric_limit
from pages.figures.waves import Line
from pages.ui import depths, link, show
from pages.ui import lesson as rooms
from pages.ui.depths import LIMITS, ROLES, SHOWN, DepthConfig
from pages.ui.words import words

FIRST = "1, 0, 0, 0"  # the vector for which two definitions give 1.732 and 1.5
MOST_NUMBERS = 16
NUMBER = re.compile(r"[-+−]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
OVER = ("D", "BT", "T", "TD", "BTD")
BLOCK = (3, 5, 8)  # sequences, tokens, features of the block that is averaged over
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
FEW = 16  # tokens in the sweep over depths


def choose(config: DepthConfig) -> None:
    """The two controls beside the text: how a block is arranged, and which norm it has."""
    rooms.control("arrangement", config.choices["arrangement"])
    if config.normed:
        rooms.control("norm", config.choices["norm"])


def what_if(config: DepthConfig) -> None:
    """Depth, width, first weights, activation, input; and what they come to at both ends of the stack."""
    rooms.room("whatif")
    st.markdown(words("depth.whatif"))
    with st.container(horizontal=True, key="switches"):
        _number("depth")
        _number("width")
        _number("percent")
    with st.container(horizontal=True, key="sizes"):
        rooms.control("activation", config.choices["activation"], label=True)
        rooms.control("given", config.choices["given"], label=True)
        rooms.seed()
    flow = depths.flows(config)[config.arrangement]
    with st.container(horizontal=True, key="measures"):
        st.metric(words("depth.start"), shown(flow.forward[0]), help=words("depth.start.about"))
        st.metric(words("depth.end"), shown(flow.forward[-1]), help=words("depth.end.about"))
        st.metric(words("depth.above"), shown(flow.backward[-1]), help=words("depth.above.about"))
        st.metric(words("depth.below"), shown(flow.backward[0]), help=words("depth.below.about"))
        st.metric(words("depth.first"), shown(flow.weights[0]), help=words("depth.first.about"))
    if flow.overflow is not None:
        st.text(words("depth.overflow", block=flow.overflow))
    elif not flow.weights[0] > 0:
        st.text(words("depth.nothing"))
    _compare(config)


def _compare(config: DepthConfig) -> None:
    """A row for each arrangement of the same matrices, this one among them."""
    found = depths.flows(config)
    rows = [
        {
            words("arrangement"): words(f"arrangement.{name}"),
            words("depth.end"): shown(flow.forward[-1]),
            words("depth.above"): shown(flow.backward[-1]),
            words("depth.below"): shown(flow.backward[0]),
            words("depth.share"): shown(flow.backward[0] / flow.backward[-1] if flow.backward[-1] > 0 else math.nan),
            words("depth.first"): shown(flow.weights[0]),
        }
        for name, flow in found.items()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="arrangements")


def _number(field: str) -> None:
    low, high, _ = LIMITS[field]
    key, label = f"control-{field}", words(f"depth.{field}")
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(label, low, high, key=key, on_change=lambda: link.change(**{field: st.session_state[key]}))


def shown(size: float) -> str:
    """A size, however large or small it is; a dash where there is none."""
    if size != size:
        return "–"
    if math.isinf(size) or abs(size) < 1e5:
        return format_number(size, minus="−")
    mantissa, exponent = f"{size:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(config: DepthConfig, run: DepthRun, trace: Trace) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {
        "one_vector": _one_vector,
        "axes": lambda: _axes(run),
        "depths": lambda: _depths(config, run),
        "code": lambda: _code(run),
        "data": lambda: _data(config, trace),
    }


def numbers_of(text: str) -> list[float]:
    """The numbers in a text, at most 16, each finite; what is no number is passed over."""
    found = [float(part.replace("−", "-")) for part in NUMBER.findall(text)]
    return [number for number in found if math.isfinite(number) and abs(number) <= 1e12][:MOST_NUMBERS]


def _one_vector() -> None:
    """A vector of the learner's own through a norm, every number written out; and what other definitions would give."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="own-vector"):
        text = st.text_input(words("depth.vector"), FIRST, max_chars=200, key="vector", width=420, persist_state="session")
        labels = {name: words(f"norm.{name}") for name in ("layer", "rms")}
        norm = st.segmented_control(
            words("norm"), tuple(labels), format_func=labels.__getitem__, default="layer", required=True, key="vector-norm"
        )
        gamma = float(st.number_input("γ", -10.0, 10.0, 1.0, 0.1, key="vector-gamma", width=130))
        beta = float(st.number_input("β", -10.0, 10.0, 0.0, 0.1, key="vector-beta", width=130, disabled=norm == "rms"))
    vector = numbers_of(text)
    if not vector:
        st.text(words("depth.no_numbers"))
        return
    given = torch.tensor(vector, dtype=torch.float64)
    trace = norm_trace(given, str(norm), torch.tensor(gamma), None if norm == "rms" else torch.tensor(beta))
    for name in trace:
        st.latex(trace.latex(name))
        units = range(trace[name].shape[-1]) if trace[name].shape[-1] > 1 else range(1)
        lines = [trace.plugged(name, unit=unit, digits=4, expand=MOST_NUMBERS).replace("-", "−") for unit in units]
        st.code("\n".join(lines), language=None)
    if norm == "layer":
        st.dataframe(_definitions(given), hide_index=True, width="stretch", key="definitions")


def _definitions(given: torch.Tensor) -> pd.DataFrame:
    """The same vector by the definitions that widely copied code has."""
    eps, mean = 1e-5, given.mean()
    biased = given.var(unbiased=False)
    rows = {"right": (given - mean) / (biased + eps).sqrt()}
    if len(given) > 1:
        rows["n_minus_1"] = (given - mean) / (given.var() + eps).sqrt()
        rows["outside"] = (given - mean) / (given.std() + eps)
    return pd.DataFrame(
        [
            {words("depth.definition"): words(f"depth.definition.{name}")}
            | {str(unit): _rounded(float(value)) for unit, value in enumerate(values)}
            for name, values in rows.items()
        ]
    )


def _rounded(value: float) -> str:
    return "–" if value != value else format_number(value, 4, minus="−")


def _axes(run: DepthRun) -> None:
    """Which numbers share a mean, in a block of sequences, tokens and features; and what a norm over positions gives away."""
    labels = {over: words(f"over.{over}") for over in OVER}
    over = st.selectbox(
        words("depth.over"), OVER, format_func=labels.__getitem__, key="over", width=380, persist_state="session"
    )
    together = int(averaged_with(over, BLOCK, (0, 0, 0)).sum())
    st.text(words("depth.together", count=together, total=math.prod(BLOCK)))
    drawn = shared_cells(
        BLOCK,
        over,
        title=words("figure.block.title"),
        note=words("figure.block.note"),
        names=(words("depth.axis.B"), words("depth.axis.T"), words("depth.axis.D")),
        theme=show.theme(),
    )
    show.figure(drawn, "block")
    vectors = replace(run, given="normal").vectors()[:12]
    names = [str(token + 1) for token in range(len(vectors))]
    moved = leak(vectors, over if "B" not in over else over.replace("B", "") or "D")
    drawn = heat_map(
        moved,
        names,
        names,
        scale=lambda colours: gate_scale(colours, "forget", symmetric_limit(moved)),
        title=words("figure.norm_leak.title"),
        note=words("figure.norm_leak.note"),
        hover=show.hover("token", "token"),
        theme=show.theme(),
        width=560,
        cell=30,
    )
    others = moved[~np.eye(len(vectors), dtype=bool)]
    largest = float(others.max()) if others.size else 0.0
    st.text(words("depth.leaks" if largest > 1e-9 else "depth.tight", largest=shown(largest)))
    with st.columns((3, 2))[0]:
        show.figure(drawn, "leak")


def _depths(config: DepthConfig, run: DepthRun) -> None:
    """The gradient of the first block's matrix and the size of the output, over the depth of the stack."""
    found = _sweep(depths.key(replace(config, depth=1, arrangement="pre")), run)
    for quantity in ("first", "end"):
        lines = [
            Line(name=words(f"line.{name}"), role=ROLES[name], values=depths.logarithm(found[name][quantity]))
            for name in dict.fromkeys((*SHOWN, config.arrangement))
        ]
        drawn = waves.lines_over(
            lines,
            DEPTHS,
            title=words(f"figure.depths.{quantity}.title"),
            note=words("figure.depths.note"),
            x_title=words("depth.depth"),
            y_title=words("figure.power"),
            hover=show.hover("depth", "value"),
            points=True,
            theme=show.theme(),
        )
        show.figure(drawn, f"depths-{quantity}")
        if not any(np.isfinite(line.values).any() for line in lines):
            st.text(words("depth.nothing"))


@st.cache_resource(max_entries=16, show_spinner=False)
def _sweep(key: str, _run: DepthRun) -> dict[str, dict[str, list[float]]]:  # noqa: ARG001 the key is the cache's
    """Sizes at both ends of stacks of several depths, by arrangement."""
    few, found = _run.ids[:FEW], {}
    for name in ARRANGEMENTS:
        flows = [replace(_run, ids=few, depth=depth).flow(name) for depth in DEPTHS]
        found[name] = {"first": [flow.weights[0] for flow in flows], "end": [flow.forward[-1] for flow in flows]}
    return found


def _code(run: DepthRun) -> None:
    script = depth_export.script(run)
    show.download("download.script", "residual_norm.py", "text/x-python", script.encode)
    st.code(script, language="python", height=460)


def _data(config: DepthConfig, trace: Trace) -> None:
    show.download("download.sizes", "stack-sizes.csv", "text/csv", lambda: tables.to_csv(_size_rows(config)))
    st.caption(words("download.sizes.about"))
    show.download("download.layers", "stack-layers.csv", "text/csv", lambda: tables.to_csv(_layer_rows(config, trace)))
    st.caption(words("download.layers.about"))


def _size_rows(config: DepthConfig) -> Iterable[Row]:
    yield ("arrangement", "layer", "size", "gradient", "gradient_of_matrix")
    for name, flow in depths.flows(config).items():
        for layer, (size, gradient) in enumerate(zip(flow.forward, flow.backward, strict=True)):
            yield (name, layer, size, gradient, flow.weights[layer - 1] if layer else "")


def _layer_rows(config: DepthConfig, trace: Trace) -> Iterable[Row]:
    symbols = [name for name in trace if trace[name].shape[-1] == config.width]
    yield ("block", "token", "text", "feature", "X", *symbols)
    given = trace.inputs["X"]
    for (layer, token, feature), value in np.ndenumerate(given):
        row = (float(np.broadcast_to(trace[name], given.shape)[layer, token, feature]) for name in symbols)
        yield (layer + 1, token + 1, config.tokens[token], feature, float(value), *row)
