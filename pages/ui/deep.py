"""The lesson on several layers and both directions: its rooms, and what stands in its tabs."""

import pandas as pd
import streamlit as st

from engine import export, export_layers, tables
from engine.notation import format_number
from engine.recurrent.asking import Run as Asked
from engine.recurrent.generation import go_on
from engine.recurrent.reach import LayerInfluence, Leak, layer_influence, leak
from engine.text.display import visible
from pages.figures import gates, reach
from pages.figures.figure import percent
from pages.ui import lesson as rooms
from pages.ui import link, runs, show, stage
from pages.ui.check import check_yourself
from pages.ui.memory import TRAINED, DeepConfig, scopes
from pages.ui.recurrent import changed, placed, unknown
from pages.ui.runs import Run
from pages.ui.stage import symbol_names
from pages.ui.words import language, words

LONG = 60  # characters that a model adds by itself


def lesson() -> None:
    """Build the page."""
    config = rooms.head(DeepConfig)
    cell, layers, directions = config.shape
    run = runs.run(cell, config)
    unknown(run)
    stage.mount(
        runs.packed(run, config, language(), link.moves()), key=f"stage-deep-{cell}", on_change=changed, on_place=placed
    )
    rooms.room("shape")
    if config.model in TRAINED:
        st.caption(words("deep.trained"))
    else:
        with st.container(horizontal=True, key="switches"):
            for field in ("cell", "layers", "directions"):
                rooms.control(field, DeepConfig.choices[field], label=True)
    st.dataframe(_layers(run, layers, directions), hide_index=True, width="stretch", key="layers")
    rooms.room("try")
    rooms.things_to_try(run.trace)
    rooms.see_more(
        {
            "influence": lambda: _influence(run, config),
            "leak": lambda: _leak(run, config),
            "generate": lambda: _generate(config),
            "states": lambda: _states(run),
            "code": lambda: _code(run, config),
            "data": lambda: _data(run),
        },
        run.trace,
    )
    rooms.room("check")
    if config.do:
        st.caption(words("check.baseline"))
    asked = Asked(model=run.model, ids=run.ids, step=config.step, unit=config.unit)
    check_yourself("deep_rnn", asked, run.trace, run.vocabulary.tokens.__getitem__)
    rooms.notes_on(run.trace)


def _name(scope: str) -> str:
    """A layer and direction in words; a single one has no name of its own."""
    if not scope:
        return words("deep.layer", layer=1)
    _, depth, direction, _ = scope.split(".")
    return f"{words('deep.layer', layer=int(depth) + 1)}, {words(f'deep.{direction}')}"


def _layers(run: Run, layers: int, directions: str) -> pd.DataFrame:
    """What each layer reads, counted from its parameters."""
    both, weights, rows = directions == "both", run.model.recurrent.weights(), []
    for scope in scopes(layers, directions):
        depth = int(scope.split(".")[1]) if scope else 0
        width = next(value.shape[0] for name, value in weights[scope].items() if name.startswith("W_x"))
        reads = words("deep.reads.tokens") if not depth else words(f"deep.reads.{'both' if both else 'one'}", layer=depth)
        rows.append(
            {
                words("deep.which"): _name(scope),
                words("deep.reads"): reads,
                words("deep.inputs"): str(width),
                words("deep.parameters"): f"{sum(value.numel() for value in weights[scope].values()):,}",
            }
        )
    return pd.DataFrame(rows)


def _influence(run: Run, config: DeepConfig) -> None:
    """How strongly the state of each layer follows the text, by distance; and its half-life."""
    if len(run.tokens) < 2:
        st.text(words("figure.empty.no_earlier"))
        return
    last, both = len(run.tokens), len(run.model.recurrent.directions) > 1
    begin = (last + 1) // 2 if both else last  # in the middle both directions have something to look back at
    key = f"step-influence-{last}-{both}"
    step = int(st.number_input(words("more.step", last=last), 1, last, begin, key=key, width=220, persist_state="session")) - 1
    found = _influences(runs.key(run.cell, config), step, run)
    rows, norms = [], {}
    for scope in found.scopes:
        row = found.norms[found.scopes.index(scope)]
        norms[scope] = row[step:] if "backward" in scope else row[step::-1]
        half = found.half_life(scope)
        rows.append(
            {
                words("deep.which"): _name(scope),
                words("deep.half_life"): "–" if half is None else format_number(half, digits=1),
                words("deep.own"): format_number(float(row[step])),
            }
        )
    figure = reach.influence_lines(
        norms,
        {scope: int(scope.split(".")[1]) if scope else 0 for scope in norms},
        names={scope: _name(scope) for scope in norms},
        title=words("figure.influence.title"),
        note=words("figure.influence.note", step=step + 1),
        x_title=words("figure.influence.x", step=step + 1),
        hover=show.hover("back", "value"),
        theme=show.theme(),
    )
    show.figure(figure, "influence")
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="half-lives")


@st.cache_resource(max_entries=32, show_spinner=False)
def _influences(key: str, step: int, _run: Run) -> LayerInfluence:  # noqa: ARG001 the cache's
    return layer_influence(_run.model, _run.ids, step)


def _leak(run: Run, config: DeepConfig) -> None:
    """What the model knows of the answer, and what is left of its predictions when the text ends where one asks."""
    if len(run.tokens) < 2:
        st.text(words("deep.too_short"))
        return
    models = {name: config.with_switches(model=name, do=()) for name in TRAINED}
    if config.model not in models:
        models[config.model] = config.plain()
    rows = []
    for name, other in models.items():
        seen = runs.run(other.shape[0], other)
        found = _leaks(runs.key(seen.cell, other), seen)
        rows.append(
            {
                words("model"): words(f"model.{name}"),
                words("deep.seen"): percent(float(found.seen_right.mean())),
                words("deep.blind"): percent(float(found.blind_right.mean())),
                words("deep.seen_perplexity"): _fit(found.seen_perplexity),
                words("deep.blind_perplexity"): _fit(found.blind_perplexity),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="leaks")
    found = _leaks(runs.key(run.cell, config.plain()), run)
    strips = {f"moved.{way}": row for way, row in found.moved.items()} | {"seen": found.seen, "blind": found.blind}
    figure = reach.step_strips(
        strips,
        run.tokens[:-1],
        names={key: words(f"figure.leak.{key}") for key in strips},
        roles={key: "update" if key.startswith("moved") else "weights" for key in strips},
        title=words("figure.leak.title"),
        note=words("figure.leak.note", model=words(f"model.{config.model}")),
        hover=show.hover("step", "token"),
        theme=show.theme(),
    )
    show.figure(figure, "leak")


@st.cache_resource(max_entries=32, show_spinner=False)
def _leaks(key: str, _run: Run) -> Leak:  # noqa: ARG001 the cache's
    return leak(_run.model, _run.ids[:, 0])


def _fit(perplexity: float) -> str:
    return format_number(perplexity, digits=2) if perplexity <= 1e6 else "> 1,000,000"


def _generate(config: DeepConfig) -> None:
    """Every model goes on from the same text, by itself; always the likeliest character."""
    names = [*TRAINED] if config.model in TRAINED else [*TRAINED, config.model]
    for name in names:
        other = config.with_switches(model=name, do=()) if name != config.model else config.plain()
        seen = runs.run(other.shape[0], other)
        written = _written(runs.key(seen.cell, other), seen)
        st.caption(words(f"model.{name}"))
        st.code("".join(map(visible, seen.tokens[-24:])) + " ▸ " + "".join(map(visible, written)), language=None)
    st.caption(words("deep.generate.about", count=LONG))


@st.cache_resource(max_entries=32, show_spinner=False)
def _written(key: str, _run: Run) -> tuple[str, ...]:  # noqa: ARG001 the cache's
    return tuple(_run.vocabulary.to_tokens(list(go_on(_run.model, _run.ids[:, 0].tolist(), LONG))))


def _states(run: Run) -> None:
    """H of every layer and direction over the text."""
    names = [scope + "H" for scope in run.model.recurrent.scopes]
    figure = gates.gate_strips(
        run.trace,
        run.tokens,
        names={name: _name(name.removesuffix("H")) for name in names} | symbol_names(),
        symbols=names,
        hover=show.hover("step", "token"),
        title=words("figure.layers.title"),
        note=words("figure.strips.note", units=run.trace[names[0]].shape[-1], steps=len(run.trace)),
        theme=show.theme(),
    )
    show.figure(figure, "layers")


def _code(run: Run, config: DeepConfig) -> None:
    several = run.model.recurrent.scopes != [""]
    write = export_layers.script if several else export.script
    step = min(config.step, len(run.tokens) - 1)
    script = write(run.trace, run.tokens, run.vocabulary.tokens, model=run.cell, unit=config.unit, step=step)
    show.download("download.script", f"{run.cell}-layers.py", "text/x-python", script.encode)
    st.code(script, language="python", height=460)


def _data(run: Run) -> None:
    """Everything the stage shows, as two tables."""
    trace, tokens, vocabulary, baseline = run.trace, run.tokens, run.vocabulary.tokens, run.baseline

    def states() -> bytes:
        return tables.to_csv(tables.state_rows(trace, tokens, baseline=baseline))

    def predictions() -> bytes:
        return tables.to_csv(tables.token_rows(trace, tokens, vocabulary, baseline=baseline))

    for name, made in (("states", states), ("predictions", predictions)):
        show.download(f"download.{name}", f"deep-{name}.csv", "text/csv", made)
        st.caption(words(f"download.{name}.about"))
