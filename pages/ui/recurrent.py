"""A lesson about one recurrent cell: the rooms under its head, for the plain network, the LSTM and the GRU alike.

A page script draws its head first and imports this afterwards: what computes takes seconds to load on a fresh server.
"""

import streamlit as st

from engine.recurrent.asking import Run as Asked
from engine.text.display import visible
from pages.ui import conventions, link, more, plain, runs, stage
from pages.ui import lesson as rooms
from pages.ui.check import check_yourself
from pages.ui.config import Edit, GRUConfig, RecurrentConfig
from pages.ui.memory import RNNConfig
from pages.ui.runs import Run
from pages.ui.words import language, words


def lesson(cell: str, config: RecurrentConfig) -> None:
    """Build the page of a cell ("lstm", "gru", "rnn") from its stage on."""
    run = runs.run(cell, config)
    unknown(run)
    stage.mount(runs.packed(run, config, language(), link.moves()), key=f"stage-{cell}", on_change=changed, on_place=placed)
    if isinstance(config, GRUConfig):
        conventions.room(run, config)
    if isinstance(config, RNNConfig):
        plain.room(run, config)
    rooms.room("try")
    rooms.things_to_try(run.trace)
    rooms.see_more(more.tabs(run, config), run.trace)
    rooms.room("check")
    if config.do:
        st.caption(words("check.baseline"))
    asked = Asked(model=run.model, ids=run.ids, step=min(config.step, len(run.tokens) - 1), unit=config.unit)
    check_yourself(cell, asked, run.trace, run.vocabulary.tokens.__getitem__)
    rooms.notes_on(run.trace)


def changed(changes: tuple[stage.Change, ...]) -> None:
    """Callback of the stage: what the learner wants changed becomes part of the config, and of the link."""
    link.change(
        do=tuple(
            Edit(
                symbol=change.symbol,
                value=change.value,
                first=None if change.first == 0 and change.end is None else change.first,
                last=None if change.end is None else change.end - 1,
                units=change.units or (),
            )
            for change in changes
        )
    )


def placed(place: stage.Place) -> None:
    """Callback of the stage: what stands below it is about this place from now on."""
    link.change(step=place.step, unit=place.unit, symbol=place.symbol)


def unknown(run: Run) -> None:
    """Say which characters the model has never seen. Plain text: they are the learner's."""
    if run.unknown:
        shown = " ".join(map(visible, run.unknown[:8])) + (" …" if len(run.unknown) > 8 else "")
        st.text(words("run.unknown", count=len(run.unknown), tokens=shown))
