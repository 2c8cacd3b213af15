"""Lesson 14: what is chosen beside the text, what can be changed below the stage, and the tabs of See more."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pandas as pd
import streamlit as st
import torch

from engine import tables
from engine.attention import export
from engine.attention.character_model import HEADS, load
from engine.attention.heads_at_work import Run, convolution_as_heads, likeness, output_rank, worths
from engine.attention.spectra import head_spectra
from engine.notation import format_number
from engine.tables import Row
from engine.trace import Trace
from pages.figures import manyheads as figures
from pages.figures.heat import heat_map
from pages.figures.ramps import gate_scale
from pages.ui import lesson as rooms
from pages.ui import show
from pages.ui.manyheads import MultiheadConfig, opened
from pages.ui.words import words

KERNEL = 3


def choose(config: MultiheadConfig) -> None:
    """The two controls beside the text: which model, and how many heads."""
    rooms.control("model", MultiheadConfig.choices["model"])
    rooms.control("heads", tuple(str(n) for n in HEADS))
    if config.model == "untrained":
        rooms.seed()


def what_if(config: MultiheadConfig, run: Run, trace: Trace) -> None:
    """The mask and the blocks, and what each head is worth on this text."""
    rooms.room("whatif")
    st.markdown(words("multihead.whatif"))
    with st.container(horizontal=True, key="switches"):
        rooms.control("mask", MultiheadConfig.choices["mask"], label=True)
        rooms.control("blocks", MultiheadConfig.choices["blocks"], label=True)
    if config.blocks == "shared":
        st.text(words("multihead.shared", rank=output_rank(trace), width=run.attention.width))
    st.dataframe(_worth(config, run), hide_index=True, width="stretch", key="worth")
    st.caption(words("multihead.worth.about"))


def _worth(config: MultiheadConfig, run: Run) -> pd.DataFrame:
    """A row for each head, and one for the whole layer."""
    whole = run.loss(run.trace(()))
    rows = [
        {
            words("multihead.head"): words("multihead.numbered", head=worth.head + 1)
            + (f" ({words('multihead.out')})" if worth.head in config.off else ""),
            words("multihead.share"): _shown(worth.share),
            words("multihead.change"): _shown(worth.change),
            words("multihead.loss"): _shown(worth.loss),
            words("multihead.rise"): _shown(worth.loss - whole),
            words("multihead.back"): _shown(worth.back),
            words("multihead.sharpness"): _shown(worth.sharpness),
        }
        for worth in worths(run)
    ]
    last = dict.fromkeys(rows[0], "")
    last |= {words("multihead.head"): words("multihead.whole"), words("multihead.loss"): _shown(whole)}
    return pd.DataFrame([*rows, last])


def _shown(number: float) -> str:
    return "–" if number != number else format_number(number, minus="−")


# ----------------------------------------------------------------------------------------------------------------- tabs


def tabs(config: MultiheadConfig, run: Run, trace: Trace) -> dict[str, Callable[[], None]]:
    """See more, by name."""
    return {
        "head_blocks": lambda: _blocks(run),
        "head_spectra": lambda: _spectra(run),
        "head_likeness": lambda: _likeness(run, trace),
        "convolution": lambda: _convolution(config, run),
        "head_numbers": lambda: _numbers(config, run),
        "code": lambda: _code(config, trace),
        "data": lambda: _data(config, trace),
    }


def _names(run: Run) -> list[str]:
    return [words("multihead.numbered", head=head + 1) for head in range(run.attention.heads)]


def _blocks(run: Run) -> None:
    """One matrix, as it is kept and as the heads read it."""
    matrices = {name: run.attention.get_parameter(name).detach().numpy() for name in ("W_q", "W_k", "W_v", "W_o")}
    with st.container(horizontal=True):
        name = st.segmented_control(words("multihead.matrix"), tuple(matrices), default="W_q", required=True, key="matrix")
        coloured = st.toggle(words("multihead.recolour"), value=True, key="recolour")
    drawn = figures.column_blocks(
        matrices[name],
        run.attention.heads,
        rows_are_heads=name == "W_o",
        coloured=coloured,
        title=words("figure.blocks.title", name=name),
        note=words("figure.blocks.rows" if name == "W_o" else "figure.blocks.columns", width=run.attention.head_width),
        names=_names(run),
        hover=show.hover("head", "value"),
        theme=show.theme(),
    )
    with st.columns((3, 2))[0]:
        show.figure(drawn, "blocks")


def _spectra(run: Run) -> None:
    found = head_spectra(run.attention)
    drawn = figures.head_spectra(
        found.singular.numpy(),
        found.effective_rank.tolist(),
        names=_names(run),
        title=words("figure.spectra.title"),
        note=words("figure.spectra.note", own=run.attention.head_width, width=run.attention.width),
        x_title=words("figure.spectra.x"),
        y_title=words("figure.spectra.y"),
        hover=show.hover("head", "value"),
        theme=show.theme(),
    )
    show.figure(drawn, "spectra")
    st.dataframe(
        pd.DataFrame(
            {
                words("multihead.head"): _names(run),
                words("multihead.largest"): [_shown(float(values[0])) for values in found.singular],
                words("multihead.effective"): [_shown(rank) for rank in found.effective_rank.tolist()],
                words("multihead.participation"): [_shown(ratio) for ratio in found.participation_ratio.tolist()],
                words("multihead.most"): [str(run.attention.head_width)] * run.attention.heads,
            }
        ),
        hide_index=True,
        width="stretch",
        key="ranks",
    )


def _likeness(run: Run, trace: Trace) -> None:
    if run.attention.heads == 1:
        st.text(words("question.one_head"))
        return
    numbers = [str(head + 1) for head in range(run.attention.heads)]
    drawn = heat_map(
        likeness(trace),
        numbers,
        numbers,
        scale=lambda colours: gate_scale(colours, "query"),
        title=words("figure.likeness.title"),
        note=words("figure.likeness.note"),
        hover=show.hover("head", "head"),
        theme=show.theme(),
        width=480,
        cell=48,
    )
    with st.columns(2)[0]:
        show.figure(drawn, "likeness")


def _convolution(config: MultiheadConfig, run: Run) -> None:
    """A convolution is attention whose weights depend on the distance alone."""
    found = convolution_as_heads(run.model.vectors(run.ids), KERNEL, torch.Generator().manual_seed(config.seed))
    st.text(words("multihead.convolution", kernel=KERNEL, largest=format_number(found.largest, 3, minus="−")))
    for back, (column, weights) in enumerate(zip(st.columns(KERNEL), found.weights, strict=False)):
        drawn = heat_map(
            weights,
            config.tokens,
            config.tokens,
            scale=lambda colours: gate_scale(colours, "weights"),
            title=words("figure.convolution.title", back=back),
            hover=show.hover("step", "token"),
            theme=show.theme(),
            width=360,
            cell=5,
        )
        with column:
            show.figure(drawn, f"convolution-{back}")


def _numbers(config: MultiheadConfig, run: Run) -> None:
    """The same width split into 1, 2, 4 and 8 heads: parameters, and losses after the same training."""
    rows = []
    for heads in HEADS:
        trained, (model, _) = load(heads), opened(config.model, heads, config.seed, config.blocks)
        other = replace(run, model=model, removed=(), head=0)
        rows.append(
            {
                words("heads"): str(heads),
                words("multihead.own_width"): str(model.attention.head_width),
                words("multihead.parameters"): f"{sum(p.numel() for p in model.attention.parameters()):,}",
                words("multihead.loss"): _shown(other.loss(other.trace(()))),
                words("multihead.held_out"): _shown(float(trained.losses["held_out"])),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="numbers")


def _code(config: MultiheadConfig, trace: Trace) -> None:
    script = export.script(trace, config.tokens, head=config.head, query=config.step)
    show.download("download.script", "multihead.py", "text/x-python", script.encode)
    st.code(script, language="python", height=460)


def _data(config: MultiheadConfig, trace: Trace) -> None:
    show.download("download.weights", "multihead-weights.csv", "text/csv", lambda: tables.to_csv(_weight_rows(config, trace)))
    st.caption(words("download.weights.about"))
    show.download("download.parts", "multihead-parts.csv", "text/csv", lambda: tables.to_csv(_part_rows(config, trace)))
    st.caption(words("download.parts.about"))


def _weight_rows(config: MultiheadConfig, trace: Trace) -> Iterable[Row]:
    yield ("head", "query", "query_token", "key", "key_token", "score", "weight")
    for head, (scores, weights) in enumerate(zip(trace["S"], trace["A"], strict=True), start=1):
        for t, query in enumerate(config.tokens):
            for s, key in enumerate(config.tokens):
                yield (head, t + 1, query, s + 1, key, float(scores[t, s]), float(weights[t, s]))


def _part_rows(config: MultiheadConfig, trace: Trace) -> Iterable[Row]:
    heads = len(trace["O_n"])
    yield ("query", "token", "unit", *(f"head_{n + 1}" for n in range(heads)), "output")
    for t, token in enumerate(config.tokens):
        for unit in range(trace["O"].shape[-1]):
            parts = (float(trace["O_n"][n, t, unit]) for n in range(heads))
            yield (t + 1, token, unit, *parts, float(trace["O"][t, unit]))
