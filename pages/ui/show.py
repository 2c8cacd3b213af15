"""Figures on a page, with the ways to take them home."""

from collections.abc import Callable

import streamlit as st

from engine import tables
from pages.figures import images
from pages.figures.figure import Figure
from pages.figures.palette import Theme
from pages.ui.words import words


def theme() -> Theme:
    """The theme that the learner's browser shows now."""
    return "dark" if st.context.theme.type == "dark" else "light"


def hover(*names: str) -> tuple[str, str]:
    """The two words that a figure says at the pointer."""
    first, second = (words(f"figure.{name}") for name in names)
    return first, second


def figure(drawn: Figure, name: str) -> None:
    """A figure with what it left out, and the ways to take it home."""
    st.vega_lite_chart(drawn.spec, width="stretch", theme=None, key=f"figure-{name}")
    if drawn.omitted:
        st.caption(words("figure.omitted", count=sum(drawn.omitted.values())))
    with st.container(horizontal=True, key=f"downloads-{name}"):
        download("download.png", f"{name}.png", "image/png", lambda: images.png(drawn))
        download("download.svg", f"{name}.svg", "image/svg+xml", lambda: images.svg(drawn))
        download("download.table", f"{name}.csv", "text/csv", lambda: tables.to_csv(drawn.rows))


def download(word: str, file: str, mime: str, made: Callable[[], bytes]) -> None:
    """A file that is made when somebody asks for it."""
    st.download_button(words(word), made, f"unrolled-{file}", mime, on_click="ignore", type="tertiary", key=f"take-{file}")
