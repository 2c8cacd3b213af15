"""Lesson 11: what is chosen beside the text, what can be changed below the stage, why scores are divided, and the tabs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from engine import tables
from engine.attention.costs import Measured, measure, slope
from engine.attention.saturation import score_cost
from engine.attention.score_export import script
from engine.attention.scores import SCORES
from engine.attention.scoring import ScoringRun, bound, growth
from engine.notation import format_number
from engine.tables import Row
from engine.trace import Trace
from pages.figures import scores as figures
from pages.figures.heat import heat_map
from pages.figures.ramps import gate_scale
from pages.figures.scores import Series
from pages.ui import lesson as rooms
from pages.ui import link, scoring, show, stage
from pages.ui.config import MAX_SEED
from pages.ui.kernels import written
from pages.ui.scoring import TEMPERATURES, WIDTHS, ScoringConfig
from pages.ui.stage import Touch
from pages.ui.words import language, words

ROLES = {"scaled_dot_product": "output", "dot_product": "forget", "bilinear": "cell", "additive": "input"}
FACTORS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LENGTHS = (16, 32, 64, 128, 256, 512)
COST = {"width": 64, "hidden": 32}


def choose(config: ScoringConfig) -> None:
    """The two controls beside the text: which score, and how wide a query is."""
    rooms.control("score", config.choices["score"])
    _choice("width", WIDTHS)


def _choice(field: str, offered: Sequence[float], key: str = "") -> None:
    """One of several numbers; what the link asks for is among them."""
    value, key = getattr(st.session_state["config"], field), f"control-scoring-{field}"
    link.show(key, value)
    st.select_slider(
        words(f"scoring.{field}"),
        sorted({*offered, value}),
        format_func=written,
        key=key,
        on_change=lambda: link.change(**{field: st.session_state[key]}),
    )


def unfit(config: ScoringConfig) -> None:
    """In place of the stage: what a dot product of unequal widths is, and the two ways out."""
    st.markdown(words("scoring.unfit", width=config.width, keys=config.key_width))
    with st.container(horizontal=True):
        st.button(words("scoring.unfit.equal"), on_click=link.change, kwargs={"keys": "same"})
        st.button(words("scoring.unfit.bilinear"), on_click=link.change, kwargs={"score": "bilinear"})
        st.button(words("scoring.unfit.additive"), on_click=link.change, kwargs={"score": "additive"})


def touched(touch: Touch) -> None:
    """Callback of the stage: a cell of one's own mask is turned; it begins as the mask that is there."""
    config: ScoringConfig = st.session_state["config"]
    count = len(config.tokens)
    if touch.kind != "cell" or max(touch.row, touch.at) >= count:
        return
    hidden = set(np.flatnonzero(~scoring.asked(config).mask.numpy().ravel()).tolist())
    hidden ^= {touch.row * count + touch.at}
    link.change(who="own", own=scoring.hidden_cells(hidden, count), step=touch.row, key=touch.at)


# --------------------------------------------------------------------------------------------------------------- what if


def what_if(config: ScoringConfig, trace: Trace | None) -> None:
    """Who sees whom, and how sharp the softmax is."""
    rooms.room("whatif")
    st.markdown(words("scoring.whatif"))
    with st.container(horizontal=True, key="switches", vertical_alignment="bottom"):
        rooms.control("who", config.choices["who"], label=True)
        if config.who == "valid":
            _number("length", 0, len(config.tokens))
        rooms.control("keys", config.choices["keys"], label=True)
        if config.score == "additive":
            _number("hidden", 1, 64)
        rooms.control("split", config.choices["split"], label=True)
        _number("seed", 0, MAX_SEED)
        _choice("temperature", TEMPERATURES)
    if config.who == "own":
        st.caption(words("scoring.own", count=len(config.hides)))
    if trace is None:
        return
    for note in trace.notes:
        st.text(words(note.key, count=note.values["count"]))
    weights = trace["A"]
    seen = weights.sum(-1) > 0
    shares = weights[seen]
    entropies = -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1)), 0).sum(-1)
    with st.container(horizontal=True, key="measures"):
        st.metric(words("scoring.spread"), _shown(float(trace["S"].std())))
        st.metric(words("scoring.largest"), _shown(float(shares.max(-1).mean())) if len(shares) else "–")
        st.metric(words("scoring.entropy"), _shown(float(entropies.mean())) if len(shares) else "–")
        st.metric(words("scoring.empty"), str(int((~seen).sum())))


def _number(field: str, low: int, high: int) -> None:
    key = f"control-scoring-{field}"
    link.show(key, getattr(st.session_state["config"], field))

    def told() -> None:
        link.change(**{field: st.session_state[key]})

    st.number_input(words(f"scoring.{field}"), low, high, key=key, on_change=told)


def _shown(value: float, digits: int = 3) -> str:
    return "–" if value != value else format_number(value, digits, minus="−")


def divisor(config: ScoringConfig) -> None:
    """Why scores are divided by the root of the width: one query at every width."""
    rooms.room("divisor")
    st.markdown(words("scoring.divisor"))
    stage.mount(scoring.packed_divisor(config.seed, language()), key="stage-divisor")


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(config: ScoringConfig, run: ScoringRun, trace: Trace | None) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    found: dict[str, Callable[[], None]] = {
        "variance": lambda: _variance(config),
        "bounded": lambda: _bounded(run),
        "empty_row": lambda: _empty(config, run),
        "sizes": lambda: _sizes(config, run),
        "score_cost": _cost,
    }
    if trace is not None:
        found |= {"code": lambda: _code(config, trace), "data": lambda: _data(config, trace)}
    return found


def _variance(config: ScoringConfig) -> None:
    """Variance of q . k, entropy and Jacobian against the width, both on logarithmic axes."""
    found = scoring.saturated(config.seed)
    for name in ("variance", "jacobian"):
        lines = [
            Series(
                name=words(f"scoring.{way}"),
                values=np.array([getattr(pair[at], name) for pair in found]),
                role=role,
                dashed=at == 1,
            )
            for at, (way, role) in enumerate((("plain", "forget"), ("scaled", "output")))
        ]
        drawn = figures.size_lines(
            WIDTHS,
            lines,
            title=words(f"figure.{name}.title"),
            note=words(f"figure.{name}.note", draws=scoring.DRAWS, keys=scoring.KEYS),
            x_title=words("figure.width"),
            y_title=words(f"scoring.{name}"),
            hover=show.hover("width", "value"),
            theme=show.theme(),
        )
        show.figure(drawn, name)
    rows = [
        {
            words("figure.width"): str(plain.width),
            **{
                f"{words(f'scoring.{name}')} · {words(f'scoring.{way}')}": _shown(getattr(one, name), 4)
                for name in ("variance", "largest_weight", "entropy", "jacobian")
                for way, one in (("plain", plain), ("scaled", scaled))
            },
        }
        for plain, scaled in found
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="variance")


def _bounded(run: ScoringRun) -> None:
    """The largest score against the length of the queries: products grow with it, the additive score cannot."""
    found = growth(run, FACTORS)
    lines = [Series(name=words(f"score.{name}"), values=np.array(each), role=ROLES[name]) for name, each in found.items()]
    lines.append(Series(name=words("scoring.bound"), values=np.full(len(FACTORS), bound(run)), role="state", dashed=True))
    drawn = figures.size_lines(
        FACTORS,
        lines,
        title=words("figure.bounded.title"),
        note=words("figure.bounded.note", bound=_shown(bound(run))),
        x_title=words("figure.factor"),
        y_title=words("figure.largest_score"),
        hover=show.hover("factor", "value"),
        theme=show.theme(),
    )
    show.figure(drawn, "bounded")


def _empty(config: ScoringConfig, run: ScoringRun) -> None:
    """The first query with nothing to attend to: what is done here, and what a large negative number in its place does."""
    found = run.without_keys()
    if found is None:
        st.text(words("question.unequal_widths"))
        return
    rows = [
        {
            words("scoring.way"): words(f"scoring.way.{name}"),
            words("scoring.weights"): "  ".join("NaN" if w != w else _shown(w) for w in weights[:6].tolist())
            + (" …" if len(weights) > 6 else ""),
            words("scoring.total"): "NaN" if np.isnan(weights).any() else _shown(float(weights.sum())),
        }
        for name, weights in found.items()
    ]
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="empty")
    st.caption(words("scoring.way.about", token=config.tokens[0]))


def _sizes(config: ScoringConfig, run: ScoringRun) -> None:
    """Which score is defined for these widths, tried; and what it costs."""
    rows = []
    for name in SCORES:
        try:
            run.shares(name)
            defined = words("scoring.defined")
        except ValueError:
            defined = words("scoring.undefined", width=run.width, keys=run.key_width)
        learned = sum(weight.numel() for weight in run.weights(name).values())
        count = len(config.tokens)
        cost = score_cost(name, count, count, run.width, run.hidden)
        rows.append(
            {
                words("score"): words(f"score.{name}"),
                words("scoring.sizes"): words("scoring.shape", width=run.width, keys=run.key_width),
                words("scoring.works"): defined,
                words("scoring.learned"): f"{learned:,}",
                words("scoring.multiplications"): f"{cost.multiplications:,}",
                words("scoring.numbers"): f"{cost.numbers:,}",
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="sizes")


@st.cache_data(ttl=3600, max_entries=4, show_spinner=False)
def _measured(again: int) -> dict[str, list[dict[str, Any]]]:  # noqa: ARG001 another number measures again
    names = ("scaled_dot_product", "additive")
    return {name: [vars(one) for one in measure(name, LENGTHS, **COST)] for name in names}


def _cost() -> None:
    """Time and memory of two scores against the number of tokens, measured now."""
    again = st.session_state.setdefault("measured-again", 0)
    found = {name: [Measured(**one) for one in rows] for name, rows in _measured(again).items()}
    for field, unit in (("seconds", 1e3), ("bytes", 1 / 2**20)):
        lines = []
        for name, rows in found.items():
            values = np.array([getattr(one, field) * unit for one in rows])
            label = words("scoring.power", name=words(f"score.{name}"), slope=_shown(slope(LENGTHS, values.tolist()), 2))
            lines.append(Series(name=label, values=values, role=ROLES[name]))
        drawn = figures.size_lines(
            LENGTHS,
            lines,
            title=words(f"figure.cost.{field}"),
            note=words("figure.cost.note", width=COST["width"], hidden=COST["hidden"]),
            x_title=words("figure.tokens"),
            y_title=words(f"figure.cost.{field}.y"),
            hover=show.hover("tokens", "value"),
            theme=show.theme(),
        )
        show.figure(drawn, f"cost-{field}")
    st.button(
        words("scoring.again"),
        icon=":material/speed:",
        on_click=lambda: st.session_state.update({"measured-again": again + 1}),
    )


def _code(config: ScoringConfig, trace: Trace) -> None:
    made = script(trace, config.tokens, config.step)
    show.download("download.script", "scores.py", "text/x-python", made.encode)
    st.code(made, language="python", height=460)


def _data(config: ScoringConfig, trace: Trace) -> None:
    show.download("download.scores", "scores.csv", "text/csv", lambda: tables.to_csv(_rows(config, trace)))
    st.caption(words("download.scores.about"))
    drawn = heat_map(
        np.where(trace["M"], trace["A"], np.nan),
        config.tokens,
        config.tokens,
        scale=lambda colours: gate_scale(colours, "state"),
        title=words("figure.weights.title"),
        note=words("figure.weights.note"),
        hover=show.hover("step", "token"),
        theme=show.theme(),
        width=560,
    )
    show.figure(replace(drawn, omitted={}), "weights")  # what is hidden is hatched, and the note says so


def _rows(config: ScoringConfig, trace: Trace) -> Iterable[Row]:
    yield ("query", "query_token", "key", "key_token", "seen", "score", "weight")
    for t, query in enumerate(config.tokens):
        for s, token in enumerate(config.tokens):
            seen = int(trace["M"][t, s])
            yield (t + 1, query, s + 1, token, seen, float(trace["S"][t, s]), float(trace["A"][t, s]))
