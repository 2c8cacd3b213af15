"""Words a learner reads: gettext catalogs in assets/locale, keyed by meaning, and the language they are read in.

Every ``assets/locale/<language>/*.po`` is read, so each part of the house can keep a file of its own; all languages have
the same keys. A value is put in as ``{name}``; a message with plural forms is chosen by the value called ``count``.
"""

import gettext
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import streamlit as st
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from streamlit.runtime.scriptrunner import get_script_run_ctx

LOCALE = Path(__file__).resolve().parents[2] / "assets" / "locale"
LANGUAGES = {"en": "English", "zh": "中文"}
DEFAULT = "en"


@dataclass(frozen=True)
class Messages:
    """All messages of one language, by key; several forms where the message depends on a count."""

    by_key: dict[str, tuple[str, ...]]
    plural: Callable[[int], int]


@cache
def messages(lang: str) -> Messages:
    """Read a language once per process. Raises ``ValueError`` for a key that two files define."""
    by_key: dict[str, tuple[str, ...]] = {}
    for path in sorted((LOCALE / lang).glob("*.po")):
        with path.open("rb") as file:
            po = read_po(file, locale=lang, charset="utf-8")
        for message in po:
            if not message.id:
                continue
            key = message.id if isinstance(message.id, str) else message.id[0]
            if key in by_key:
                raise ValueError(f"{path.name} defines {key} a second time")
            by_key[key] = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
    return Messages(by_key, gettext.c2py(Catalog(locale=lang).plural_expr))


def language() -> str:
    """The language of this visitor: chosen in the frame or by the link, else the browser's, else English."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return DEFAULT
    chosen = st.session_state.get("lang")
    browser = (st.context.locale or DEFAULT).split("-")[0].lower()
    return chosen if chosen in LANGUAGES else browser if browser in LANGUAGES else DEFAULT


def words(key: str, /, *, lang: str | None = None, **values: object) -> str:
    """The message of ``key`` with ``values`` put in. Raises ``KeyError`` for an unknown key or a value left out."""
    found = messages(lang or language())
    forms = found.by_key[key]
    count = values.get("count")
    form = found.plural(count) if len(forms) > 1 and isinstance(count, int) else 0
    return forms[form].format(**values)
