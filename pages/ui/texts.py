"""Lesson texts: assets/lessons/<language>/<lesson>.md, read as sections, with what the engine knows put in.

A text has headed sections (``## gates``), whose headings are names for the page, not words for the learner. It holds no
formula and no number: ``{{F}}`` becomes a symbol, ``{{F:latex}}`` its equation, both printed from the functions that run,
and any other ``{{name}}`` a number, or a token of the learner's text, that the page gives. What comes out is Markdown. A
string cannot be put in; a token goes in as character references, which never begin markup.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from engine.text.display import graphemes, shorten, visible
from pages.ui.words import language

if TYPE_CHECKING:
    from engine.symbols import Symbol
    from engine.trace import Trace

Values = Mapping[str, "float | Token"]

LESSONS = Path(__file__).resolve().parents[2] / "assets" / "lessons"
HEADING = re.compile(r"^## +(\S+) *$", re.MULTILINE)
TICKS = re.compile(r"`+")
PLACE = re.compile(r"\{\{([^{}]*)\}\}")


@cache
def sections(lesson: str, lang: str) -> dict[str, str]:
    """The sections of a lesson's text by heading. Raises ``ValueError`` for a heading that stands twice."""
    before, *rest = HEADING.split((LESSONS / lang / f"{lesson}.md").read_text(encoding="utf-8"))
    names, bodies = rest[::2], rest[1::2]
    if before.strip() or len(set(names)) < len(names):
        raise ValueError(f"{lang}/{lesson}.md: every text stands under a heading of its own, '## name'")
    return {name: body.strip() for name, body in zip(names, bodies, strict=True)}


class Token:
    """A single token in the form in which it is shown, safe in Markdown."""

    def __init__(self, raw: str) -> None:
        if len(graphemes(raw)) > 1:
            raise ValueError("one token, not a text")
        self.shown = "“" + "".join(f"&#{ord(character)};" for character in visible(raw)) + "”"


class Piece(Token):
    """A token of several characters: as code, in which nothing is markup, an emoji's name or an address."""

    LONGEST = 24  # characters

    def __init__(self, raw: str) -> None:
        written = shorten(visible(raw), self.LONGEST)
        fence = "`" * (1 + max(map(len, TICKS.findall(written)), default=0))
        edge = " " if written.startswith("`") or written.endswith("`") else ""
        self.shown = f"{fence}{edge}{written}{edge}{fence}"


def token(raw: str) -> Token:
    """A token of any length, safe in Markdown."""
    return Token(raw) if len(graphemes(raw)) <= 1 else Piece(raw)


def fill(text: str, trace: "Trace | None" = None, values: "Values | None" = None) -> str:
    """``text`` with symbols and equations of ``trace`` and with ``values`` in their places.

    Raises ``KeyError`` for a place that nothing fills and ``ValueError`` for a value that is neither number nor token.
    """
    from engine.notation import format_number

    given = values or {}

    def put(place: re.Match[str]) -> str:
        name, _, form = place[1].partition(":")
        if name in given:
            value = given[name]
            if isinstance(value, Token):
                return value.shown
            return f"{value:,}" if isinstance(value, int) else format_number(float(value), minus="−")
        if trace is None or form not in ("", "latex"):
            raise KeyError(place[1])
        return f"$${trace.latex(name)}$$" if form else symbol(trace.symbol(name))

    return PLACE.sub(put, text)


def symbol(one: "Symbol") -> str:
    """A symbol within a sentence: bold letter and Unicode index, so that no formula library is needed for it; else LaTeX."""
    from engine.notation import symbol_latex, symbol_text

    plain = symbol_text(one)
    return f"**{plain[0]}**{plain[1]}" if plain else f"${symbol_latex(one)}$"


def show(lesson: str, section: str, trace: "Trace | None" = None, values: "Values | None" = None) -> None:
    """Write a section of a lesson's text in the learner's language."""
    st.markdown(fill(sections(lesson, language())[section], trace, values))
