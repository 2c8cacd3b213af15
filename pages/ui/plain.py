"""What can be changed in a plain recurrent network: activation, spectral radius, the order of the past."""

from dataclasses import replace

import pandas as pd
import streamlit as st
import torch

from engine.notation import format_number
from engine.recurrent.reading import OrderEffect, last_prediction, order_effects, text_perplexity
from engine.recurrent.spectrum import spectrum
from engine.text.display import visible
from engine.trace import largest_difference
from pages.figures.figure import percent
from pages.ui import lesson as rooms
from pages.ui import link, runs
from pages.ui.config import MAX_SEED
from pages.ui.memory import MAX_KEEP, MAX_RADIUS, RNNConfig
from pages.ui.runs import Run
from pages.ui.words import words

KEEPS = (1, 2, 4, 8, 16, 32)
LIKELIEST = 3


def room(run: Run, config: RNNConfig) -> None:
    """The controls, what they come to in numbers, and the tables."""
    rooms.room("network")
    if run.stopped:
        st.text(words("plain.stopped", step=len(run.tokens)))
    with st.container(horizontal=True, key="switches"):
        rooms.control("activation", RNNConfig.choices["activation"], label=True)
        _number("radius", 0.0, MAX_RADIUS, 0.1)
        _number("shuffle", 0, MAX_SEED, 1)
        if config.shuffle:
            _number("keep", 1, MAX_KEEP, 1)
    _measures(run)
    st.dataframe(_activations(run, config), hide_index=True, width="stretch", key="activations")
    if len(run.tokens) < 3:
        return
    st.subheader(words("plain.order"), anchor=False)
    st.caption(words("plain.order.about"))
    st.dataframe(_order(config), hide_index=True, width="stretch", key="order")
    st.dataframe(_reach(run, config), hide_index=True, width="stretch", key="reach")


def _number(field: str, low: float, high: float, step: float) -> None:
    """A number bound to a field of the config; empty is what the model has of itself."""
    key = f"control-{field}"
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(
        words(field),
        low,
        high,
        value=None if field == "radius" else "min",  # only what begins empty can be emptied again
        step=step,
        key=key,
        placeholder=words("plain.as_it_is"),
        help=words(f"{field}.about"),
        on_change=lambda: link.change(**{field: st.session_state[key]}),
    )


def _measures(run: Run) -> None:
    """The matrix in two numbers, the fit to the text in two."""
    found = spectrum(run.model.recurrent.get_parameter("W_hh"))
    fit = text_perplexity(run.trace, run.ids)
    with st.container(horizontal=True, key="measures"):
        st.metric(words("plain.radius"), _shown(found.radius))
        st.metric(words("plain.singular"), _shown(found.largest_step))
        st.metric(words("plain.perplexity"), _fit(fit), help=words("plain.perplexity.about"))
        st.metric(words("plain.uniform"), str(len(run.vocabulary)))


def _activations(run: Run, config: RNNConfig) -> pd.DataFrame:
    """A row for each activation on the same weights."""
    rows = []
    for activation in RNNConfig.choices["activation"]:
        other = runs.run("rnn", config.with_switches(activation=activation))
        last, here = len(other.tokens) - 1, activation == config.activation
        fit = text_perplexity(other.trace, other.ids)
        stopped = "" if not other.stopped else words("plain.until", step=last + 1)
        same = not here and len(other.tokens) == len(run.tokens)
        rows.append(
            {
                words("activation"): words(f"activation.{activation}") + stopped,
                words("plain.state", unit=config.unit): _shown(float(other.trace["H"][last, 0, config.unit])),
                words("plain.largest"): _shown(float(abs(other.trace["H"]).max())),
                words("plain.next"): visible(other.vocabulary.tokens[last_prediction(other.trace, 1).tokens[0]]),
                words("plain.perplexity"): _fit(fit),
                words("plain.difference"): words("conventions.here")
                if here
                else _shown(largest_difference(other.trace, run.trace, "H"))
                if same
                else "–",
            }
        )
    return pd.DataFrame(rows)


def _order(config: RNNConfig) -> pd.DataFrame:
    """What the network predicts at the end, with the past as written and in another order."""
    rows = []
    for seed in (0, config.shuffle or 1):
        other = runs.run("rnn", config.with_switches(shuffle=seed))
        found = last_prediction(other.trace, LIKELIEST)
        tokens = (visible(other.vocabulary.tokens[i]) for i in found.tokens)
        row = {words("plain.past"): words("plain.past.shuffled" if seed else "plain.past.written")}
        shown = "".join(visible(token) for token in other.tokens[-24:])
        row[words("plain.text")] = ("…" if len(other.tokens) > 24 else "") + shown
        for place, (token, share) in enumerate(zip(tokens, found.shares, strict=True), start=1):
            row[words("plain.likeliest", place=place)] = f"{token}  {percent(float(share))}"
        rows.append(row)
    return pd.DataFrame(rows)


def _reach(run: Run, config: RNNConfig) -> pd.DataFrame:
    """How much of the order is noticed, by how many of the last characters stay in place."""
    written = replace(config.plain(), shuffle=0, keep=1)
    found = _effects(runs.key("rnn", written), config.shuffle, run, written)
    return pd.DataFrame(
        {
            words("plain.keep"): [str(each.keep) for each in found],
            words("plain.distance"): [_shown(each.distance) for each in found],
            words("plain.changed"): [percent(each.changed) for each in found],
        }
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _effects(
    key: str,  # noqa: ARG001 the cache's
    seed: int,
    _run: Run,
    _written: RNNConfig,
) -> tuple[OrderEffect, ...]:
    """Nearly a hundred runs of the text: once for each text, model and seed, not at every rerun."""
    ids = runs.run("rnn", _written).ids
    return order_effects(_run.model, ids, KEEPS, torch.Generator().manual_seed(seed))


def _fit(perplexity: float | None) -> str:
    """A perplexity; one that is beyond all measure is only said to be large."""
    return "–" if perplexity is None else _shown(perplexity) if perplexity <= 1e6 else "> 1,000,000"


def _shown(number: float) -> str:
    return format_number(number, minus="−")


def side_by_side(config: RNNConfig, cells: tuple[str, ...]) -> pd.DataFrame:
    """The cells as trained, on this very text: parameters and perplexity."""
    trained, rows = RNNConfig(text=config.text), []
    for cell in cells:
        other = runs.run(cell, trained)
        fit = text_perplexity(other.trace, other.ids)
        count = sum(parameter.numel() for parameter in other.model.recurrent.parameters())
        rows.append(
            {
                words("plain.cell"): words(f"kind.{cell}"),
                words("plain.parameters"): f"{count:,}",
                words("plain.perplexity"): _fit(fit),
            }
        )
    return pd.DataFrame(rows)
