"""The two switches of a GRU, and the numbers of all four combinations side by side on the same weights."""

from itertools import product

import pandas as pd
import streamlit as st

from engine.notation import format_number
from engine.text.display import visible
from engine.trace import largest_difference
from pages.ui import lesson as rooms
from pages.ui import runs
from pages.ui.config import GRUConfig
from pages.ui.runs import Run
from pages.ui.words import words

SWITCHES = ("reset", "update")


def room(run: Run, config: GRUConfig) -> None:
    """The switches (the stage shows the formulas they choose), and the table."""
    rooms.room("conventions")
    with st.container(horizontal=True, key="switches"):
        for field in SWITCHES:
            rooms.control(field, GRUConfig.choices[field], label=True)
    st.dataframe(_table(run, config), hide_index=True, width="stretch", key="conventions")


def _table(run: Run, config: GRUConfig) -> pd.DataFrame:
    """A row for each combination: this cell's numbers, and how far its states are from those on the stage."""
    last, unit = len(run.tokens) - 1, config.unit
    at = words("conventions.state", step=last + 1, unit=unit)
    rows = []
    for reset, update in product(*(GRUConfig.choices[field] for field in SWITCHES)):
        other = runs.run(run.cell, config.with_switches(reset=reset, update=update))
        apart = largest_difference(other.trace, run.trace, "H")
        following = visible(other.vocabulary.tokens[int(other.trace["P"][last, 0].argmax())])
        rows.append(
            {
                words("conventions.reset"): words(f"reset.{reset}"),
                words("conventions.update"): words(f"update.{update}"),
                words("conventions.candidate"): _shown(float(other.trace["H_tilde"][last, 0, unit])),
                at: _shown(float(other.trace["H"][last, 0, unit])),
                words("conventions.next"): following,
                words("conventions.difference"): words("conventions.here")
                if (reset, update) == (config.reset, config.update)
                else _shown(apart),
            }
        )
    return pd.DataFrame(rows)


def _shown(number: float) -> str:
    return format_number(number, minus="−")
