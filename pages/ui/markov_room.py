"""Lesson 1: Markov chains of order k on the characters of the learner's text."""

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine.notation import format_number
from engine.sequences.markov import DENSE_STATES, MarkovChain, markov_chain
from engine.text.display import visible
from pages.figures import curves, heat
from pages.figures.curves import Curve
from pages.figures.palette import palette
from pages.figures.ramps import gate_scale
from pages.ui import show
from pages.ui.source import text_source, whole
from pages.ui.words import words

MOST = 20_000  # characters of a long text are counted
ORDERS = (1, 2, 3, 4)
DRAWN = 28  # states of the matrix that is drawn
FURTHEST = 50
SAID = 160  # characters that a chain says
HELD_OUT = 0.8  # of the text is counted where the rest is to be predicted


def tab() -> None:
    """The learner's text, a chain of its characters, and where it is n steps later."""
    config = st.session_state["config"]
    with st.container(key="markov-text"):
        text_source(config)
    text = whole(config.text)[:MOST]
    orders = [order for order in ORDERS if order < len(text)]
    if not orders:
        st.text(words("markov.short"))
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="markov-controls"):
        order = st.segmented_control(
            words("markov.order"), orders, default=1, key="markov-order", required=True, persist_state="session"
        )
        order = order if order in orders else 1
        chain = _chain(text, order)
        steps = st.slider(words("markov.steps"), 1, FURTHEST, 1, key="markov-steps", width=260, persist_state="session")
        numbers = list(range(min(len(chain), DRAWN)))
        labels = {at: f"{at + 1}: {_name(chain, at)}" for at in numbers}
        state = st.selectbox(
            words("markov.state"), numbers, format_func=labels.__getitem__, key=f"markov-state-{order}", width=200
        )
    st.text(words("markov.says", states=len(chain), tokens=len(chain.tokens), possible=len(chain.tokens) ** order))
    if len(chain) > DENSE_STATES:
        st.text(words("markov.too_many", states=len(chain), most=DENSE_STATES))
    else:
        _matrix(chain, steps)
    _ahead(chain, state or 0, steps)
    _forgetting(chain, state or 0)
    _said(chain, text, orders)


@st.cache_resource(max_entries=32, show_spinner=False)
def _chain(text: str, order: int) -> MarkovChain:
    return markov_chain(list(text), order)


def _name(chain: MarkovChain, state: int) -> str:
    return "".join(visible(token) for token in chain.states[state])


def _matrix(chain: MarkovChain, steps: int) -> None:
    """The n-step transition matrix of the most frequent states."""
    shown = min(len(chain), DRAWN)
    names = [_name(chain, at) for at in range(shown)]
    drawn = heat.heat_map(
        chain.matrix(steps)[:shown, :shown],
        names,
        names,
        scale=lambda p: gate_scale(p, "query"),
        title=words("figure.transitions.title", steps=steps),
        note=words("figure.transitions.note", shown=shown, states=len(chain)),
        hover=(words("figure.transitions.to"), words("figure.token")),
        theme=show.theme(),
        cell=14,
    )
    show.figure(drawn, "transitions")


def _ahead(chain: MarkovChain, state: int, steps: int) -> None:
    """The likeliest characters n steps after a state, beside their share in the text."""
    row = chain.tokens_ahead(state, steps)[-1]
    share = np.bincount(chain.next_token, weights=chain.stationary()[chain.source] * chain.chance, minlength=len(row))
    order = np.argsort(-row, kind="stable")[:8]
    table = {
        words("markov.after", steps=steps): [f"{place + 1}: {visible(chain.tokens[at])}" for place, at in enumerate(order)],
        words("markov.chance"): [format_number(float(row[at]), minus="−") for at in order],
        words("markov.share"): [format_number(float(share[at]), minus="−") for at in order],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", key="markov-ahead")


def _forgetting(chain: MarkovChain, state: int) -> None:
    """How long the chain still knows where it stood."""
    colours = palette(show.theme())
    left = chain.forgetting(state, FURTHEST)
    line = Curve(
        key="known",
        label=words("markov.known"),
        color=colours.mark["query"],
        text=colours.text["query"],
        x=np.arange(FURTHEST + 1),
        y=left,
    )
    drawn = curves.curves(
        [line],
        title=words("figure.forgetting.title"),
        note=words("figure.forgetting.note"),
        x_title="n",
        hover=("n", words("figure.value")),
        zero=True,
        theme=show.theme(),
    )
    show.figure(drawn, "forgetting")


def _said(chain: MarkovChain, text: str, orders: list[int]) -> None:
    """What the chain says, and what each order costs on a part of the text that it has not counted."""
    said = chain.sample(SAID, torch.Generator().manual_seed(0))
    st.caption(words("markov.sample", count=SAID))
    st.text("".join(visible(token) for token in said))
    cut = int(HELD_OUT * len(text))
    rows = []
    for order in orders:
        if cut <= order or len(text) - cut <= order:
            continue
        counted = _chain(text[:cut], order)
        loss, unseen = counted.log_loss(list(text[cut:]))
        own, _ = counted.log_loss(list(text[:cut]))
        rows.append(
            {
                words("markov.order"): str(order),
                words("markov.states"): f"{len(counted):,}",
                words("markov.loss.own"): format_number(own, minus="−"),
                words("markov.loss.new"): "–" if loss != loss else format_number(loss, minus="−"),
                words("markov.unseen"): f"{unseen:,} / {len(text) - cut - order:,}",
            }
        )
    if rows:
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="markov-orders")
        st.caption(words("markov.loss.about"))
