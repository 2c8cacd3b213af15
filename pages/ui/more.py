"""See more: what stands in the tabs of a recurrent cell's lesson. Each is filled only when it is opened."""

from collections.abc import Callable

import streamlit as st

from engine import export, tables
from engine.data import recall
from engine.recurrent import gradients
from engine.trace import Array
from pages.figures import gates, parameters
from pages.figures import gradients as lines
from pages.figures import recall as recalls
from pages.figures import saturation as spreads
from pages.ui import plain, runs, show, units
from pages.ui.config import RecurrentConfig
from pages.ui.memory import RNNConfig
from pages.ui.runs import Run
from pages.ui.stage import symbol_names
from pages.ui.words import words

CELLS = ("lstm", "gru", "rnn")
OPEN = {"lstm": "forget", "gru": "update"}  # the gate whose product is the direct path
RECALL = ("recall-bias-0", "recall-bias-2")
Tabs = dict[str, Callable[[], None]]


def tabs(run: Run, config: RecurrentConfig) -> Tabs:
    """The tabs of the lesson that shows ``run``, by name."""
    shown: Tabs = {
        "gates": lambda: _gates(run),
        "gradients": lambda: _gradients(run, config),
        "path": lambda: _path(run, config),
        "compare": lambda: _compare(run, config),
    }
    if run.cell == "lstm":
        shown["recall"] = _recall
    if isinstance(config, RNNConfig):
        shown = {"states": shown["gates"], "product": shown["path"]} | shown | {"units": lambda: units.tab(run, config)}
        shown = {name: shown[name] for name in ("states", "gradients", "product", "compare", "units")}
    return shown | {"code": lambda: _code(run, config), "data": lambda: _data(run)}


def _step(run: Run, name: str, *, last: int) -> int:
    """Which step to look back from, 0 to ``last``; shown from 1. No choice where there is only one step."""
    if last < 1:
        return 0
    label = words("more.step", last=last + 1)
    key = f"step-{run.cell}-{name}-{last}"
    return int(st.number_input(label, 1, last + 1, last + 1, key=key, width=220, persist_state="session")) - 1


def _gates(run: Run) -> None:
    trace, names, theme = run.trace, symbol_names(), show.theme()
    note = words("figure.strips.note", units=trace["H"].shape[-1], steps=len(trace))
    hover = show.hover("step", "token")
    title = words("figure.strips.title")
    show.figure(gates.gate_strips(trace, run.tokens, names=names, hover=hover, title=title, note=note, theme=theme), "gates")
    if run.baseline is not None:
        difference = gates.difference_strips(
            trace,
            run.baseline,
            run.tokens,
            names=names,
            hover=hover,
            title=words("figure.difference.title"),
            note=words("figure.difference.note"),
            theme=theme,
        )
        show.figure(difference, "difference")
    found = [name for name in trace if trace.symbol(name).role in gradients.GATES]
    if not found:
        return
    bars = spreads.saturation_bars(
        [gradients.saturation(trace, name) for name in found],
        letters={name: trace.symbol(name).letter for name in found},
        names=names,
        roles={name: trace.symbol(name).role for name in found},
        title=words("figure.saturation.title"),
        x_title=words("figure.saturation.x"),
        below=words("figure.saturation.below"),
        above=words("figure.saturation.above"),
        hover=show.hover("interval", "share"),
        note=words("figure.saturation.note", units=trace["H"].shape[-1], steps=len(trace)),
        theme=theme,
    )
    show.figure(bars, "saturation")


def _gradients(run: Run, config: RecurrentConfig) -> None:
    """The gradient of a chosen number with respect to every earlier state: this cell's H (and C), and the other cells' H."""
    targets = ["P", *run.circuit.carry]
    with st.container(horizontal=True, vertical_alignment="bottom", key="gradient-target"):
        names = {"P": words("more.target.P")} | {name: words("more.target.unit", symbol=name) for name in run.circuit.carry}
        target = st.selectbox(
            words("more.target"),
            targets,
            format_func=names.__getitem__,
            key=f"target-{run.cell}",
            width=300,
            persist_state="session",
        )
        step = _step(run, f"gradients-{target}", last=len(run.tokens) - (2 if target == "P" else 1))
        unit = 0
        if target != "P":
            units = run.trace["H"].shape[-1]
            unit = int(
                st.number_input(
                    words("more.unit", last=units - 1), 0, units - 1, key=f"unit-{run.cell}", width=160, persist_state="session"
                )
            )
    if len(run.tokens) < 2:
        st.text(words("figure.empty.no_earlier"))
        return
    found = _sensitivities(runs.key(run.cell, config), target, step, unit, run, config)
    figure = lines.gradient_lines(
        found,
        names={name: words(f"more.line.{name}") for name in found},
        title=words("figure.gradients.title"),
        note=words(f"figure.gradients.note.{'P' if target == 'P' else 'unit'}", step=step + 1, symbol=target, unit=unit),
        x_title=words("figure.gradients.x", step=step + 1),
        hover=show.hover("back", "value"),
        theme=show.theme(),
    )
    show.figure(figure, "gradients")


@st.cache_resource(max_entries=64, show_spinner=False)
def _sensitivities(
    key: str,  # noqa: ARG001 the cache's
    target: str,
    step: int,
    unit: int,
    _run: Run,
    _config: RecurrentConfig,
) -> dict[str, Array]:
    """The norms by line: each cell's H, and the C of an LSTM. Another cell joins where it has the same kind of model."""
    found: dict[str, Array] = {}
    for cell in (_run.cell, *(other for other in CELLS if other != _run.cell)):
        if cell != _run.cell and (_config.model in RECALL or target == "C"):
            continue
        other = _run if cell == _run.cell else runs.run(cell, _config.plain())
        number = gradients.next_token() if target == "P" else gradients.unit_of(target, unit)
        do = _config.interventions(len(_run.tokens)) if cell == _run.cell else None
        seen = gradients.sensitivity(other.model, other.ids, step, number, do)
        for symbol, norms in seen.norms.items():
            found[cell if symbol == "H" else f"{cell}.{symbol}"] = norms[: step + 1]
    return found


def _path(run: Run, config: RecurrentConfig) -> None:
    step = _step(run, "path", last=len(run.tokens) - 1)
    if len(run.tokens) < 2:
        st.text(words("figure.empty.no_earlier"))
        return
    path = _memory_path(runs.key(run.cell, config), step, run, config)
    direct = f"figure.path.direct.{run.cell}"  # a plain network has no direct path
    labels = (words(direct) if run.cell in OPEN else "", words("figure.path.diagonal"), words("figure.path.norm"))
    figure = lines.path_lines(
        direct=path.direct_mean if run.cell in OPEN else None,
        diagonal=path.diagonal_mean,
        norm=path.norm,
        labels=labels,
        role=OPEN.get(run.cell, "state"),
        title=words("figure.path.title"),
        note=words("figure.path.note", step=step + 1),
        x_title=words("figure.path.x", step=step + 1),
        hover=show.hover("back", "value"),
        theme=show.theme(),
    )
    show.figure(figure, "path")


@st.cache_resource(max_entries=32, show_spinner=False)
def _memory_path(
    key: str,  # noqa: ARG001 the cache's
    step: int,
    _run: Run,
    _config: RecurrentConfig,
) -> gradients.MemoryPath:
    return gradients.memory_path(_run.model, _run.ids, step, _config.interventions(len(_run.tokens)))


def _compare(run: Run, config: RecurrentConfig) -> None:
    """The three cells side by side: what they are made of, counted from the parameters themselves."""
    inputs, units = run.model.vocabulary_size, run.trace["H"].shape[-1]
    blocks = [
        parameters.Blocks(name=words(f"kind.{cell}"), blocks=found.blocks, size=found.size, extra=found.extra)
        for cell in CELLS
        for found in [runs.blocks(cell, inputs, units)]
    ]
    figure = parameters.parameter_blocks(
        blocks,
        title=words("figure.parameters.title"),
        hover=show.hover("block", "parameters"),
        note=words("figure.parameters.note", inputs=inputs, units=units),
        theme=show.theme(),
    )
    show.figure(figure, "parameters")
    if isinstance(config, RNNConfig):
        st.dataframe(plain.side_by_side(config, CELLS), hide_index=True, width="stretch", key="fits")


def _recall() -> None:
    """The forget-bias experiment: both checkpoints on new lines, and their forget gates on one of them."""
    noise = st.segmented_control(
        words("more.noise"), (5, 10, 20, 40), default=20, required=True, key="noise", persist_state="session"
    )
    result = runs.recalled(RECALL, int(noise))
    names = {name: words(f"model.{name}") for name in RECALL}
    show.figure(
        recalls.recall_accuracy(
            result.accuracy,
            names=names,
            chance=1 / len(recall.SYMBOLS),
            chance_label=words("figure.recall.chance"),
            title=words("figure.recall.title"),
            note=words("figure.recall.note", lines=result.lines, noise=noise),
            theme=show.theme(),
        ),
        "recall",
    )
    show.figure(
        recalls.recall_gates(
            result.forget,
            result.tokens,
            names=names,
            title=words("figure.recall_gates.title"),
            note=words("figure.recall_gates.note"),
            hover=show.hover("step", "value"),
            theme=show.theme(),
        ),
        "recall-gates",
    )


def _code(run: Run, config: RecurrentConfig) -> None:
    place = {"unit": config.unit, "step": config.step}
    script = export.script(run.trace, run.tokens, run.vocabulary.tokens, model=run.cell, **place)
    show.download("download.script", f"{run.cell}.py", "text/x-python", script.encode)
    st.code(script, language="python", height=460)


def _data(run: Run) -> None:
    """Everything the stage shows, as two tables; each figure has its own files below it."""
    trace, tokens, vocabulary, baseline = run.trace, run.tokens, run.vocabulary.tokens, run.baseline

    def states() -> bytes:
        return tables.to_csv(tables.state_rows(trace, tokens, baseline=baseline))

    def predictions() -> bytes:
        return tables.to_csv(tables.token_rows(trace, tokens, vocabulary, baseline=baseline))

    for name, made in (("states", states), ("predictions", predictions)):
        show.download(f"download.{name}", f"{run.cell}-{name}.csv", "text/csv", made)
        st.caption(words(f"download.{name}.about"))
