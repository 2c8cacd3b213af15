"""The link in the address bar: the state of the page one is on, and what travels to the next one.

The address is read when it comes from outside: a first visit, a refresh, the Back button, a followed link. After that
the session is right and the address follows it. (Reading the address at every run would lose a change: when two widgets
change within a few milliseconds, the second rerun still brings the address of before the first.)

The config of a page is changed by ``change`` only, in a widget's callback: so the address is written before the page
runs, and the frame's links to other pages carry what the learner has just done.

The stage keeps ``step``, ``unit`` and ``symbol`` in the address by itself, without telling the server, and must put them
back after every run: Streamlit's browser side sends the address as it last wrote it, so the server knows those three as
they were on arrival, and writes them so.
"""

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.notes import Note
from pages.ui.config import Config, from_query, to_query
from pages.ui.words import LANGUAGES

SHARED = ("lang", "text", "doc", "from")  # travel from lesson to lesson; everything else stays with its page


@contextmanager
def visit(page: str) -> Iterator[None]:
    """One run of ``page``: see first where its address comes from, and take the language from it."""
    context = get_script_run_ctx()
    assert context is not None
    state = st.session_state
    state["arrived"] = context.is_history_navigation or state.get("page") != page
    if context.is_history_navigation and state.get("page") == page:
        _led(page)
    state["page"] = page
    if state["arrived"] and st.query_params.get("lang") in LANGUAGES:
        state["lang"] = st.query_params["lang"]
    state.setdefault("links", {})[page] = st.query_params.to_dict()
    try:
        yield
    finally:
        state["arrived"] = False  # a fragment may run again later, when the address is no news any more


def read(kind: type[Config]) -> tuple[Config, tuple[Note, ...]]:
    """The config of this page, and what had to be changed in what the link or the learner asked for."""
    state = st.session_state
    if state["arrived"] or type(state.get("config")) is not kind:
        state["config"], state["notes"] = from_query(kind, st.query_params.to_dict())
    return state["config"], state["notes"]


def change(*, notes: tuple[Note, ...] = (), source: Mapping[str, str] | None = None, **values: Any) -> None:
    """In a callback: set fields of this page's config, checked as a link is, and write the address.

    ``source`` says of which long text a new ``text`` is a part (``doc``, ``from``). The browser gets a history entry.
    A place that a shorter text or a smaller model no longer has moves without a word: nobody asked for it just now.
    """
    config = st.session_state["config"]
    stays = () if "text" in values else ("doc", "from")
    places = {each.name for each in fields(config) if isinstance(getattr(config, each.name), int)}
    quiet = {f"link.{name}" for name in places - values.keys()}
    _enter(to_query(replace(config, **values)), notes, stays, source or {}, quiet)


def follow(params: Mapping[str, str]) -> None:
    """In a callback: go where a link within this page leads. The learner's text stays unless the link brings one."""
    stays = () if "text" in params else ("doc", "from")
    _enter({"text": st.session_state["config"].text} | dict(params), (), stays, {})
    _led(st.session_state["page"])


def moves() -> int:
    """How often a link on this page, or the Back button, has led to a place of it: only then the stage leaves its own."""
    return int(st.session_state.get("moves", {}).get(st.session_state.get("page"), 0))


def _led(page: str) -> None:
    moves = st.session_state.setdefault("moves", {})
    moves[page] = moves.get(page, 0) + 1


def _enter(
    params: Mapping[str, str],
    notes: tuple[Note, ...],
    stays: tuple[str, ...],
    source: Mapping[str, str],
    quiet: Container[str] = (),
) -> None:
    """Take ``params`` as the config; of what else stands in the address only the language and ``stays`` remain.

    Notes with a key in ``quiet`` are not said.
    """
    state = st.session_state
    state["config"], found = from_query(type(state["config"]), params)
    said = [note for note in found if note.key not in quiet]
    keys = {note.key for note in said}
    state["notes"] = (*(note for note in notes if note.key not in keys), *said)
    here = st.query_params.to_dict()
    address = {name: here[name] for name in ("lang", *stays) if name in here} | dict(source) | to_query(state["config"])
    if address != here:
        st.query_params.from_dict(address)


def show(key: str, value: object) -> None:
    """Make the widget with this key show ``value``, without touching one that does: its learner may be typing.

    On arrival it is always set: the browser has dropped what it knew of a widget that two pages share, the session has not.
    """
    if st.session_state["arrived"] or st.session_state.get(key) != value:
        st.session_state[key] = value


def to(page: str) -> dict[str, str]:
    """The parameters of a link to ``page``: what it was left with, and what the learner has on this page now."""
    links: dict[str, dict[str, str]] = st.session_state["links"]
    left, here = links.get(page, {}), links[st.session_state["page"]]
    own = {name: value for name, value in left.items() if name not in SHARED}
    return own | {name: here[name] for name in SHARED if name in here}


def choose_language(lang: str) -> None:
    """Callback of the language switch."""
    st.session_state["lang"] = lang
    st.query_params["lang"] = lang
