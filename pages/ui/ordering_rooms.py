"""Lesson 15: what is chosen beside the text, what can be changed below the stage, and the tabs of See more."""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine import tables
from engine.attention import order_export
from engine.attention.character_model import LONGEST
from engine.attention.order import ADDED, OrderRun, likeness_by_distance, places_of
from engine.attention.order_model import KINDS
from engine.attention.positions import alibi, binary_code, frequencies, rotary, shift, sinusoidal, wavelengths
from engine.recurrent.asking import gap
from engine.tables import Row
from engine.trace import Trace
from pages.figures import heat, waves
from pages.figures.figure import Figure
from pages.figures.ramps import Array, gate_scale, signed_scale
from pages.figures.waves import Line
from pages.ui import lesson as rooms
from pages.ui import link, ordering, show
from pages.ui.ordering import LIMITS, PositionsConfig
from pages.ui.ordering_beyond import ROLES, beyond, drowned, shown, whole
from pages.ui.words import words

HEAD_ROLES = ("cell", "update", "candidate", "reset")
WAVES = ("output", "forget", "input", "candidate")
PAIRS = 6  # pairs of columns whose rotation is written out


def choose(config: PositionsConfig) -> None:
    """The two controls beside the text: which positions, and which model."""
    rooms.control("kind", config.choices["kind"])
    rooms.control("model", config.choices["model"])
    if config.model == "untrained":
        rooms.seed()


def what_if(config: PositionsConfig, run: OrderRun, trace: Trace) -> None:
    """Where positions are added, in which order the text is read, how large the embeddings are; and what it comes to."""
    rooms.room("whatif")
    st.markdown(words("positions.whatif"))
    with st.container(horizontal=True, key="switches"):
        _where(config)
        rooms.control("order", config.choices["order"], label=True)
        rooms.control("mask", config.choices["mask"], label=True)
    with st.container(horizontal=True, key="sizes"):
        rooms.control("scale", config.choices["scale"], label=True)
        if config.kind == "sinusoidal":
            _number("delta")
        if config.kind in ("sinusoidal", "rotary"):
            _number("base")
        if config.model == "untrained":
            _number("width")
    added = config.kind in ADDED and config.where != "nowhere"
    embeddings = float(np.linalg.norm(trace["E"] * run.scale, axis=-1).mean())
    with st.container(horizontal=True, key="measures"):
        st.metric(words("positions.embeddings"), shown(embeddings), help=words("positions.embeddings.about"))
        if added:
            codes = float(np.linalg.norm(trace["P"], axis=-1).mean())
            st.metric(words("positions.codes"), shown(codes), help=words("positions.codes.about"))
        st.metric(words("positions.loss"), shown(run.loss(trace)), help=words("positions.loss.about"))
        before = ordering.baseline(config)
        if before is not None:
            st.metric(words("positions.weights"), shown(gap(trace["A"], before["A"])), help=words("positions.weights.about"))
            st.metric(words("positions.output"), shown(gap(trace["O"], before["O"])), help=words("positions.output.about"))
    if config.order != "written":
        st.caption(words("positions.along" if config.changed or config.where else "positions.moved"))
    if config.kind == "sinusoidal" and config.width % 2:
        st.caption(words("positions.odd", width=config.width, last=config.width - 1))


def _where(config: PositionsConfig) -> None:
    """Where positions are put; what there is depends on their kind."""
    options = places_of(config.kind)
    labels = {option: words(f"where.{option}") for option in options}
    link.show("control-where", config.place)
    st.selectbox(
        words("where"),
        options,
        format_func=labels.__getitem__,
        key="control-where",
        on_change=lambda: link.change(where=_stored(config, st.session_state["control-where"])),
    )


def _stored(config: PositionsConfig, place: str) -> str:
    return "" if place == places_of(config.kind)[0] else place


def _number(field: str) -> None:
    low, high, _ = LIMITS[field]
    key = f"control-{field}"
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(
        words(f"positions.{field}"), low, high, key=key, on_change=lambda: link.change(**{field: st.session_state[key]})
    )


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(config: PositionsConfig, trace: Trace) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {
        "waves": lambda: _waves(config),
        "rotation": lambda: _rotation(config),
        "kinds": lambda: _kinds(config),
        "beyond": beyond,
        "drowned": drowned,
        "code": lambda: _code(config, trace),
        "data": lambda: _data(config, trace),
    }


def _waves(config: PositionsConfig) -> None:
    """Columns of the codes as curves, the whole as a heat map beside the binary counter, and the wavelengths."""
    width, base = config.width, float(config.base)
    count = 60
    codes = sinusoidal(count, width, base=base).numpy()
    chosen = [column for column in (6, 7, 8, 9) if column < width] or list(range(width))
    picked = st.multiselect(
        words("positions.columns"),
        range(width),
        default=chosen,
        max_selections=4,
        key=f"columns-{width}",
        persist_state="session",
    )
    if picked:
        lines = [
            Line(name=words("positions.numbered", column=column), role=role, values=codes[:, column], dashed=bool(column % 2))
            for column, role in zip(sorted(picked), WAVES, strict=False)
        ]
        drawn = waves.lines_over(
            lines,
            range(count),
            title=words("figure.waves.title"),
            note=words("figure.waves.note", width=width),
            x_title=words("figure.place"),
            y_title="",
            hover=show.hover("place", "value"),
            limits=(-1.0, 1.0),
            theme=show.theme(),
        )
        show.figure(drawn, "waves")
    places = [str(i) for i in range(32)]
    left, right = st.columns((3, 2))
    with left:
        show.figure(_map(codes[:32], places, "figure.codes", 460), "codes")
    with right:
        bits = binary_code(32, 5).numpy()[:, ::-1].astype(float)
        counter = heat.heat_map(
            bits,
            places,
            [str(2**bit) for bit in range(4, -1, -1)],
            scale=lambda colours: gate_scale(colours, "weights"),
            title=words("figure.counter.title"),
            note=words("figure.counter.note"),
            hover=show.hover("place", "bit"),
            theme=show.theme(),
            width=300,
            cell=14,
        )
        show.figure(counter, "counter")
    found, per_step = wavelengths(width, base), frequencies(width, base)
    rows = [
        {
            words("positions.pair"): str(pair),
            words("positions.frequency"): shown(float(per_step[pair])),
            words("positions.wavelength"): f"{float(found[pair]):,.2f}",
            words("positions.ratio"): shown(float(found[pair] / found[pair - 1])) if pair else "–",
            words("positions.digit"): f"{2 ** (pair + 1):,}",
        }
        for pair in range(len(found))
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", height=260, key="wavelengths")


def _map(values: Array, rows: list[str], name: str, width: int) -> Figure:
    """Codes (positions, columns) as a heat map on the scale of signed numbers."""
    limit = 1.0 if np.abs(values).max() <= 1.0 else float(2.0 ** np.ceil(np.log2(np.abs(values).max())))
    return heat.heat_map(
        values,
        rows,
        [str(column) for column in range(values.shape[1])],
        scale=lambda colours: signed_scale(colours, limit),
        title=words(f"{name}.title"),
        note=words(f"{name}.note"),
        hover=show.hover("place", "column"),
        theme=show.theme(),
        width=width,
        cell=14,
    )


def _rotation(config: PositionsConfig) -> None:
    """One rotation for every position: written out for the chosen place, and checked for all."""
    width, base, delta = config.width, float(config.base), config.delta
    if width % 2:
        st.text(words("positions.odd_rotation", width=width))
        return
    place = whole("positions.from", 0, 1000, config.step, "rotation-from")
    start, end = sinusoidal(torch.tensor([place, place + delta]), width, base=base)
    turned = start @ shift(delta, width, base=base)
    angles = delta * frequencies(width, base)
    rows = [
        {
            words("positions.pair"): str(pair),
            words("positions.angle"): shown(float(angles[pair])),
            words("positions.before", place=place): _couple(start, pair),
            words("positions.turned"): _couple(turned, pair),
            words("positions.there", place=place + delta): _couple(end, pair),
        }
        for pair in range(min(PAIRS, width // 2))
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="rotation")
    places = torch.arange(1000, dtype=torch.float64)
    gaps = sinusoidal(places, width, base=base) @ shift(delta, width, base=base) - sinusoidal(places + delta, width, base=base)
    st.text(words("positions.checked", delta=delta, largest=shown(float(gaps.abs().max()))))


def _couple(code: torch.Tensor, pair: int) -> str:
    return f"({shown(float(code[2 * pair]))}, {shown(float(code[2 * pair + 1]))})"


def _kinds(config: PositionsConfig) -> None:
    """How alike two places are for each kind, on the same axes; and what each kind keeps of the places."""
    lines = []
    for kind in KINDS[:4]:
        model = ordering.opened(kind, config.model, config.seed, config.width)[0]
        found = likeness_by_distance(kind, model, LONGEST, float(config.base))
        for head, values in enumerate(found):
            name = words(f"line.{kind}")
            name = words("line.head", name=name, head=head + 1) if len(found) > 1 else name
            role = HEAD_ROLES[head % len(HEAD_ROLES)] if len(found) > 1 else ROLES[kind]
            lines.append(Line(name=name, role=role, values=values, dashed=len(found) > 1))
    drawn = waves.lines_over(
        lines,
        range(LONGEST),
        title=words("figure.alike.title"),
        note=words("figure.alike.note"),
        x_title=words("figure.distance"),
        y_title="",
        hover=show.hover("distance", "value"),
        theme=show.theme(),
        height=320,
    )
    show.figure(drawn, "alike")
    learned = ordering.opened("learned", config.model, config.seed, config.width)[0]
    turning = ordering.opened("rotary", config.model, config.seed, config.width)[0]
    narrow = turning.attention.head_width
    pairs = (torch.arange(narrow) % 2 == 0).double().expand(LONGEST, narrow)
    bias = alibi(turning.attention.heads, LONGEST)[0].numpy()
    maps = {
        "sinusoidal": sinusoidal(LONGEST, config.width, base=float(config.base)).numpy(),
        "learned": learned.W_p.detach().double().numpy(),
        "rotary": rotary(pairs, base=float(config.base)).numpy(),
        "alibi": bias,
    }
    places = [str(i) for i in range(LONGEST)]
    for left, right in (("sinusoidal", "learned"), ("rotary", "alibi")):
        for column, kind in zip(st.columns(2), (left, right), strict=True):
            with column:
                show.figure(_map(maps[kind], places, f"figure.kind.{kind}", 460), f"kind-{kind}")


def _code(config: PositionsConfig, trace: Trace) -> None:
    script = order_export.script(trace, config.tokens, kind=config.kind, delta=config.delta, head=config.head, row=config.step)
    show.download("download.script", "positions.py", "text/x-python", script.encode)
    st.code(script, language="python", height=460)


def _data(config: PositionsConfig, trace: Trace) -> None:
    if "P" in trace:
        show.download("download.codes", "positions-codes.csv", "text/csv", lambda: tables.to_csv(_code_rows(config, trace)))
        st.caption(words("download.codes.about"))
    show.download("download.weights", "positions-weights.csv", "text/csv", lambda: tables.to_csv(_weight_rows(config, trace)))
    st.caption(words("download.weights.about"))


def _code_rows(config: PositionsConfig, trace: Trace) -> Iterable[Row]:
    yield ("position", "token", "column", "code")
    for (place, column), value in np.ndenumerate(trace["P"]):
        yield (place, config.tokens[place], column, float(value))


def _weight_rows(config: PositionsConfig, trace: Trace) -> Iterable[Row]:
    yield ("head", "query", "query_token", "key", "key_token", "score", "weight")
    for head, (scores, weights) in enumerate(zip(trace["S"], trace["A"], strict=True), start=1):
        for t, query in enumerate(config.tokens):
            for s, key in enumerate(config.tokens):
                yield (head, t + 1, query, s + 1, key, float(scores[t, s]), float(weights[t, s]))
