"""The link in the address bar: the state of the page one is on, and what travels to the next one.

The address is read when it comes from outside: a first visit, a refresh, the Back button, a followed link. After that
the session is right and the address follows it. (Reading the address at every run would lose a change: when two widgets
change within a few milliseconds, the second rerun still brings the address of before the first.)

The stage keeps ``step``, ``unit`` and ``symbol`` in the address by itself, without telling the server, and puts them
back when the server has written. So the server knows them as they were when the link was opened.
"""

from collections.abc import Mapping

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui.words import LANGUAGES

SHARED = ("lang", "text", "doc", "from")  # travel from lesson to lesson; everything else stays with its page


def begin(page: str) -> None:
    """Call once in every run, before anything reads words: see where this run's address of ``page`` comes from."""
    context = get_script_run_ctx()
    assert context is not None
    state = st.session_state
    state["arrived"] = context.is_history_navigation or state.get("page") != page
    state["page"] = page
    if state["arrived"] and st.query_params.get("lang") in LANGUAGES:
        state["lang"] = st.query_params["lang"]
    state.setdefault("links", {})[page] = st.query_params.to_dict()


def arrived() -> bool:
    """Whether this run's address came from outside and must be read."""
    return bool(st.session_state["arrived"])


def write(params: Mapping[str, str], *, keep: tuple[str, ...] = ("lang", "step", "unit", "symbol")) -> None:
    """Put ``params`` into the address; of what stood there only ``keep`` stays. The browser gets a new history entry."""
    kept = {name: value for name, value in st.query_params.to_dict().items() if name in keep}
    wanted = kept | dict(params)
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)


def to(page: str) -> dict[str, str]:
    """The parameters of a link to ``page``: what it was left with, and what the learner has on this page now."""
    links: dict[str, dict[str, str]] = st.session_state["links"]
    left, here = links.get(page, {}), links[st.session_state["page"]]
    own = {name: value for name, value in left.items() if name not in SHARED}
    return own | {name: here[name] for name in SHARED if name in here}


def choose_language() -> None:
    """Callback of the language switch."""
    chosen = st.session_state["language"]
    if chosen in LANGUAGES:
        st.session_state["lang"] = chosen
        st.query_params["lang"] = chosen
