"""Lesson 1: where its series comes from. One of those that are there, or a column of the learner's own CSV file."""

import streamlit as st

from engine.data.tables import read_table
from engine.notes import Note
from engine.text.display import shorten
from engine.text.reading import Reading, read_bytes
from pages.ui import documents, forecasting, link
from pages.ui.forecasting import AutoregressionConfig
from pages.ui.words import words

LIMIT_BYTES = 512 * 1024
NAME = 40  # characters of a column's name
OF_TEXTS = ("text.empty", "text.blank", "text.one_character")  # a table without numbers has sentences of its own
PREVIEWED = 2  # lines of a table, for each encoding


def series_source(config: AutoregressionConfig) -> None:
    """The choice of a series; below it what it is, the column of an uploaded table, and the file."""
    names = {name: words(f"series.{name}") for name in config.choices["series"]}
    link.show("control-series", config.series)
    st.selectbox(
        words("series"),
        list(names),
        format_func=names.__getitem__,
        key="control-series",
        label_visibility="collapsed",
        # A start is a place in one series.
        on_change=lambda: link.change(series=st.session_state["control-series"], start=0),
    )
    with st.container(horizontal=True, vertical_alignment="center", key="series-source"):
        found = forecasting.source(config)
        st.caption(_about(config, found))
        st.space("stretch")
        table = forecasting.table(config.data) if config.series == "own" else None
        if table is not None and len(table.numeric) > 1:
            _columns(config, {each.number: each.name for each in table.numeric})
        with st.popover(words("series.file"), type="tertiary"):
            _file()


def _about(config: AutoregressionConfig, found: forecasting.Source) -> str:
    if found.series is None:
        return words("series.about.none")
    count, train = len(found.series), forecasting.problem(config, found.series).train
    return words(f"series.about.{config.series}", count=count, train=train, test=count - train)


def _columns(config: AutoregressionConfig, names: dict[int, str]) -> None:
    """Which column: each is numbered as in the file, for names may repeat or be missing."""
    numbers = list(names)
    labels = {at: f"{at + 1}: {shorten(' '.join(names[at].split()), NAME)}" if names[at] else str(at + 1) for at in numbers}
    link.show("control-column", config.column if config.column in numbers else numbers[0])
    st.selectbox(
        words("series.which"),
        numbers,
        format_func=labels.__getitem__,
        key="control-column",
        width=240,
        label_visibility="collapsed",
        on_change=lambda: link.change(column=st.session_state["control-column"], start=0),
    )


def _file() -> None:
    """Upload, and the choice of an encoding where the bytes are not UTF-8."""
    key = f"table-{st.session_state.setdefault('uploads', 0)}"
    upload = st.file_uploader(
        words("series.file.label", limit=LIMIT_BYTES // 1024), key=key, on_change=lambda: _uploaded(key, None)
    )
    if upload is None:
        return
    reading = _read(key, None)
    for note in reading.notes:
        st.text(words(note.key, **note.values))
    for candidate in reading.candidates:
        with st.container(horizontal=True, vertical_alignment="center"):
            label = candidate.encoding.upper().replace("_", "-")
            st.button(label, key=f"table-{candidate.encoding}", on_click=_uploaded, args=(key, candidate.encoding))
            st.text("\n".join(candidate.preview.split("\n")[:PREVIEWED]))


def _read(key: str, encoding: str | None) -> Reading:
    return read_bytes(st.session_state[key].getvalue(), encoding=encoding, limit=LIMIT_BYTES, first_part=True)


def _uploaded(key: str, encoding: str | None) -> None:
    """Take the file's table, if it can be read; then forget the file (a new key for the uploader lets it go)."""
    if st.session_state[key] is None:
        return
    reading = _read(key, encoding)
    if reading.text is None:
        return  # the sentence and the encodings that fit stand below the file
    st.session_state["uploads"] += 1
    text = reading.text
    if any(note.key == "text.first_part" for note in reading.notes):
        text = text[: text.rfind("\n") + 1] or text  # the last line is half a line
    table = read_table(text)
    notes: tuple[Note, ...] = tuple(note for note in reading.notes if note.key not in OF_TEXTS)
    column = table.numeric[0].number if table.numeric else 0
    link.change(series="own", data=documents.keep(text, cut=False), column=column, start=0, notes=notes)
