"""Lesson 15: what lies beyond the length of the training, and what the scale of the embeddings does to the codes.

Both are measured on small shipped models when the tab is opened for the first time.
"""

import numpy as np
import pandas as pd
import streamlit as st
import torch

from engine.attention import order_model, reversing
from engine.attention.character_model import LONGEST
from engine.attention.order_model import KINDS, loss_by_position
from engine.notation import format_number
from engine.training.checkpoints import SHIPPED
from pages.figures import waves
from pages.figures.figure import Figure
from pages.figures.ramps import Array
from pages.figures.waves import Line
from pages.ui import show
from pages.ui.words import words

ROLES = {"sinusoidal": "output", "learned": "forget", "rotary": "input", "alibi": "cell", "none": "weights", "scaled": "update"}
FARTHEST = 4 * LONGEST  # characters at which the trained models are asked
BLOCK = 8  # positions whose losses are taken together


def shown(number: float) -> str:
    """A number in a table; a dash where there is none."""
    return "–" if number != number else format_number(number, minus="−")


def whole(word: str, low: int, high: int, first: int, key: str) -> int:
    """A whole number that belongs to a tab."""
    return int(st.number_input(words(word), low, high, first, key=key, width=200, persist_state="session"))


@st.cache_resource(show_spinner=False)
def _lengths() -> dict[str, Array]:
    """The share of digits that each model reverses rightly, by length."""
    lengths = range(reversing.SHORTEST, reversing.FARTHEST + 1)
    return {
        name: np.array([reversing.accuracy(reversing.load(name).model, length) for length in lengths])
        for name in reversing.VARIANTS
    }


@st.cache_resource(show_spinner=False)
def _losses() -> dict[str, Array]:
    """The loss of each trained model of characters by position, in blocks, on text it has not seen."""
    excerpt = (SHIPPED / "held_out.txt").read_text(encoding="utf-8")
    found = {}
    for kind in KINDS:
        trained = order_model.load(kind)
        each = loss_by_position(trained.model, torch.tensor(trained.vocabulary[list(excerpt)]), FARTHEST)
        found[kind] = each[: len(each) // BLOCK * BLOCK].reshape(-1, BLOCK).mean(-1)
    return found


def beyond() -> None:
    """Beyond the length of the training: rows of digits to be reversed, and texts of characters."""
    accuracy = _lengths()
    names = [name for name in reversing.VARIANTS if name != "scaled"]
    lengths = list(range(reversing.SHORTEST, reversing.FARTHEST + 1))
    show.figure(_reversed_lines(names, accuracy, lengths, "figure.reverse"), "reverse")
    with st.container(horizontal=True, vertical_alignment="bottom", key="digits"):
        labels = {name: words(f"kind.{name}") for name in names}
        name = st.selectbox(
            words("kind"), names, format_func=labels.__getitem__, key="digits-kind", width=260, persist_state="session"
        )
        length = whole("positions.length", lengths[0], lengths[-1], reversing.LONGEST + 1, "digits-length")
        seed = whole("positions.row", 0, 99, 0, "digits-seed")
    given = reversing.rows_of(length, 1, torch.Generator().manual_seed(seed))[0].tolist()
    answered = reversing.answer(reversing.load(name).model, given)
    if answered is None:
        st.text(words("positions.table_ends", size=reversing.LONGEST, length=length))
    else:
        wanted = given[::-1]
        marks = ["✓" if one == other else "✗" for one, other in zip(answered, wanted, strict=True)]
        columns = [str(place) for place in range(length)]
        rows = [map(str, given), map(str, wanted), map(str, answered), marks]
        index = [words(f"positions.digits.{row}") for row in ("given", "wanted", "answered", "right")]
        st.dataframe(pd.DataFrame([list(row) for row in rows], columns=columns, index=index), width="stretch", key="digits-row")
    losses = _losses()
    places = [BLOCK * block for block in range(len(losses["sinusoidal"]))]
    drawn = waves.lines_over(
        [_line(kind, losses[kind]) for kind in KINDS],
        places,
        title=words("figure.losses.title"),
        note=words("figure.losses.note", block=BLOCK),
        x_title=words("figure.place"),
        y_title=words("figure.losses.y"),
        hover=show.hover("place", "value"),
        mark=(LONGEST, words("figure.trained_to", length=LONGEST)),
        theme=show.theme(),
    )
    show.figure(drawn, "losses")


def _line(kind: str, values: Array) -> Line:
    """A kind's line; where it ends early, its name says so."""
    name = words(f"line.{kind}")
    name = name if np.isfinite(values[-1]) else words("line.ends", name=name)
    return Line(name=name, role=ROLES[kind], values=values, dashed=kind in ("none", "scaled"))


def _reversed_lines(names: list[str], accuracy: dict[str, Array], lengths: list[int], figure: str) -> Figure:
    lines, ends = [_line(name, accuracy[name]) for name in names], words("figure.trained_to", length=reversing.LONGEST)
    return waves.lines_over(
        lines,
        lengths,
        title=words(f"{figure}.title"),
        note=words(f"{figure}.note", shortest=reversing.SHORTEST, longest=reversing.LONGEST),
        x_title=words("figure.length"),
        y_title=words("figure.right_share"),
        hover=show.hover("length", "value"),
        limits=(0.0, 1.0),
        mark=(reversing.LONGEST, ends) if lengths[-1] > reversing.LONGEST else None,
        points=True,
        theme=show.theme(),
    )


def drowned() -> None:
    """Embeddings from N(0, 1) times sqrt(d): the same model, trained alike, cannot see the codes any more."""
    accuracy, width = _lengths(), reversing.WIDTH
    rows = []
    for name in ("sinusoidal", "scaled", "none"):
        model = reversing.load(name).model
        codes = model.codes(8)
        rows.append(
            {
                words("kind"): words(f"kind.{name}"),
                words("positions.before_training"): shown(model.scale * width**0.5),
                words("positions.embeddings"): shown(float((model.scale * model.E).norm(dim=-1).mean())),
                words("positions.codes"): "–" if codes is None else shown(float(codes.norm(dim=-1).mean())),
                words("positions.eight"): shown(float(accuracy[name][8 - reversing.SHORTEST])),
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch", key="drowned")
    lengths = list(range(reversing.SHORTEST, reversing.LONGEST + 1))
    short = {name: values[: len(lengths)] for name, values in accuracy.items()}
    show.figure(_reversed_lines(["sinusoidal", "scaled", "none"], short, lengths, "figure.drowned"), "drowned")
