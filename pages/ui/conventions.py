"""The two switches of a GRU, and the numbers of all four combinations side by side on the same weights."""

from itertools import product

import streamlit as st

from engine.notation import format_number
from engine.trace import largest_difference
from pages.ui import lesson as rooms
from pages.ui import runs
from pages.ui.config import GRUConfig
from pages.ui.runs import Run
from pages.ui.texts import token
from pages.ui.words import words

SWITCHES = ("reset", "update")


def room(run: Run, config: GRUConfig) -> None:
    """The switches (the stage shows the formulas they choose), and the table."""
    rooms.room("conventions")
    with st.container(horizontal=True, key="switches"):
        for field in SWITCHES:
            rooms.control(field, GRUConfig.choices[field], label=True)
    with st.container(key="conventions"):
        st.markdown(_table(run, config))


def _table(run: Run, config: GRUConfig) -> str:
    """A row for each combination: this cell's numbers, and how far its states are from those on the stage.

    Markdown: the grid of ``st.dataframe`` would bring two megabytes of script for four rows, and no screen reader reads it.
    """
    last, unit = len(run.tokens) - 1, config.unit
    head = [words(f"conventions.{name}") for name in ("reset", "update", "candidate")]
    head += [words("conventions.state", step=last + 1, unit=unit), words("conventions.next"), words("conventions.difference")]
    rows = [head, ["---"] * len(head)]
    for reset, update in product(*(GRUConfig.choices[field] for field in SWITCHES)):
        other = runs.run(run.cell, config.with_switches(reset=reset, update=update))
        here = (reset, update) == (config.reset, config.update)
        rows.append(
            [
                words(f"reset.{reset}"),
                words(f"update.{update}"),
                _shown(float(other.trace["H_tilde"][last, 0, unit])),
                _shown(float(other.trace["H"][last, 0, unit])),
                token(other.vocabulary.tokens[int(other.trace["P"][last, 0].argmax())]).shown,
                words("conventions.here") if here else _shown(largest_difference(other.trace, run.trace, "H")),
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _shown(number: float) -> str:
    return format_number(number, minus="−")
