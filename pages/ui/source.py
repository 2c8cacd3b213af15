"""The learner's own text: typed, pasted or uploaded; read with a report, and cut to a window when it is long."""

import streamlit as st

from engine.notes import Note
from engine.text.reading import LIMIT_BYTES, Reading, read_bytes, read_text
from pages.ui import documents, link
from pages.ui.config import SAMPLE, WINDOW, LessonConfig
from pages.ui.words import words


def text_source(config: LessonConfig) -> None:
    """The text field; below it what is shown of a long text, the way back to the sample, and the file."""
    link.show("text", config.text)
    st.text_area(words("source.label"), key="text", height=72, on_change=_typed, label_visibility="collapsed")
    with st.container(horizontal=True, vertical_alignment="center", key="source"):
        _length(config.text)
        st.space("stretch")
        if config.text != SAMPLE:
            st.button(words("source.sample"), type="tertiary", on_click=lambda: _adopt(SAMPLE, ()))
        with st.popover(words("source.file"), type="tertiary"):
            _file()


def _typed() -> None:
    reading = read_text(st.session_state["text"], first_part=True)
    _adopt(reading.text or "", reading.notes)


def _adopt(text: str, notes: tuple[Note, ...]) -> None:
    """Make ``text`` the page's text; of a long one the first window, and the whole is kept."""
    if len(text) > WINDOW:
        _open(documents.keep(text), 0, notes)
    else:
        link.change(text=text, notes=notes)


def _open(name: str, number: int, notes: tuple[Note, ...] = ()) -> None:
    document = documents.find(name)
    if document is not None:
        link.change(text=document.part(number), notes=notes, source={"doc": name, "from": str(document.starts[number])})


def whole(text: str) -> str:
    """The long text of which ``text`` is the window that the page shows, if this server has it; else ``text``."""
    document, number = _place()
    return document.text if document is not None and document.part(number) == text else text


def _place() -> tuple[documents.Document | None, int]:
    """The long text that the link names, and the number of its window."""
    document, start = documents.find(st.query_params.get("doc", "")), st.query_params.get("from", "0")
    return document, document.number_at(int(start) if start.isdecimal() and len(start) < 12 else 0) if document else 0


def _length(text: str) -> None:
    """How long the text is, or which part of what it is, with the way to the other parts."""
    name = st.query_params.get("doc", "")
    document, number = _place()
    if document is None or document.part(number) != text:
        lost = name and document is None and text != SAMPLE
        st.caption(words("source.lost" if lost else "source.length", count=len(text)))
        return
    first = document.starts[number]
    st.caption(words("source.part", first=first + 1, last=first + len(text), total=len(document.text)))
    link.show("part", number + 1)
    st.pagination(
        len(document.starts), key="part", max_visible_pages=5, on_change=lambda: _open(name, st.session_state["part"] - 1)
    )


def _file() -> None:
    """Upload, and the choice of an encoding where the bytes are not UTF-8."""
    key = f"file-{st.session_state.setdefault('uploads', 0)}"
    upload = st.file_uploader(
        words("source.file.label", limit=LIMIT_BYTES // 2**20), key=key, on_change=lambda: _uploaded(key, None)
    )
    if upload is None:
        return
    reading = read_bytes(upload.getvalue(), first_part=True)
    for note in reading.notes:
        st.text(words(note.key, **note.values))
    for candidate in reading.candidates:
        encoding = candidate.encoding
        with st.container(horizontal=True, vertical_alignment="center"):
            label = encoding.upper().replace("_", "-")
            st.button(label, key=f"encoding-{encoding}", on_click=_uploaded, args=(key, encoding))
            st.text(candidate.preview)


def _uploaded(key: str, encoding: str | None) -> None:
    """Take the file's text, if it can be read; then forget the file (a new key for the uploader lets it go)."""
    upload = st.session_state[key]
    reading = Reading(text=None) if upload is None else read_bytes(upload.getvalue(), encoding=encoding, first_part=True)
    if reading.text is not None:
        st.session_state["uploads"] += 1
        _adopt(reading.text, reading.notes)
