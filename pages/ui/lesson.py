"""The rooms of a lesson page: head (text and model), things to try, See more (tabs filled when opened), notes.

A page reads ``config = head(LSTMConfig)`` first and mounts its stage next. Check yourself is in ``pages.ui.check``.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import streamlit as st

from engine.notes import Note
from pages.ui import link, opened, texts
from pages.ui.config import MAX_SEED, Config, RecurrentConfig
from pages.ui.source import text_source
from pages.ui.words import language, words

if TYPE_CHECKING:
    from engine.trace import Trace


def head(
    kind: type[Config], choose: Callable[[Config], None] | None = None, feed: Callable[[Config], None] = text_source
) -> Config:
    """Room 1: title, idea, the text that is fed in, the model. Returns the page's config.

    ``choose`` draws what is chosen beside the text (at most two controls) where that is not a recurrent model; ``feed`` draws
    what is fed in where that is no text: a control, and a line below it.
    """
    config, notes = link.read(kind)
    lesson = st.session_state["page"]
    with st.container(key="head"):
        st.title(words(f"lesson.{lesson}.title"), anchor=False)
        st.markdown(words(f"lesson.{lesson}.idea"))
    with st.container(key="feed"):
        feed(config)
        with st.container(key="choice", gap="xsmall"):
            if choose is not None:
                choose(config)
            elif isinstance(config, RecurrentConfig):
                _model(config)
    say(notes)
    return config


def _model(config: RecurrentConfig) -> None:
    outside = () if config.model in config.models else (config.model,)
    control("model", (*config.models, *outside))
    if config.model == "untrained":
        seed()


def control(field: str, options: tuple[str, ...], *, label: bool = False) -> None:
    """A choice bound to a field of the page's config; its words are ``<field>`` and ``<field>.<option>``."""
    key = f"control-{field}"
    labels = {option: _label(field, option) for option in options}
    link.show(key, getattr(st.session_state["config"], field))
    st.selectbox(
        words(field),
        options,
        format_func=labels.__getitem__,
        key=key,
        on_change=lambda: link.change(**{field: st.session_state[key]}),
        label_visibility="visible" if label else "collapsed",
    )


def _label(field: str, option: str) -> str:
    """What an option is called; a model from outside by where it comes from."""
    shape = opened.shape_of(option) if field == "model" else None
    if shape is None:
        return words(f"{field}.{option}")
    return words("model.recorded" if option.startswith("recorded.") else "model.run", step=shape.step)


def seed() -> None:
    """The seed of the untrained model's weights."""
    key = "control-seed"
    link.show(key, st.session_state["config"].seed)
    st.number_input(words("seed"), 0, MAX_SEED, key=key, on_change=lambda: link.change(seed=st.session_state[key]))


def say(notes: tuple[Note, ...], key: str = "notes") -> None:
    """A sentence for each note. Plain text: nothing from outside becomes markup."""
    if notes:
        with st.container(key=key, gap=None):
            for sentence in dict.fromkeys(words(note.key, **note.values) for note in notes):
                st.text(sentence)


def room(name: str) -> None:
    """The heading of a room; its words are ``room.<name>``."""
    st.header(words(f"room.{name}"), anchor=name)


def pager(name: str, count: int) -> int:
    """A pager with ``count`` pages. Every lesson keeps its own page of it while one is elsewhere."""
    kept = _kept()
    if st.session_state["arrived"]:
        st.session_state[name] = min(kept.get(name, 1), count)
    kept[name] = st.pagination(count, key=name, max_visible_pages=count)
    return int(kept[name])


def things_to_try(trace: "Trace | None" = None) -> None:
    """The lesson's sections ``try.1``, ``try.2``, ...: one at a time, with a button that sets the page up for it."""
    _walk(trace)


@st.fragment
def _walk(trace: "Trace | None") -> None:
    found = _named("try.")
    address, _, text = found[f"try.{pager('try', len(found))}"].partition("\n")
    params = dict(parse_qsl(address.removeprefix("link:").strip()))
    st.markdown(texts.fill(text, trace))
    if st.button(words("try.set"), on_click=link.follow, args=(params,), icon=":material/arrow_upward:"):
        st.rerun()  # the whole page, not this part of it alone


def see_more(tabs: Mapping[str, Callable[[], None]], trace: "Trace | None" = None) -> None:
    """Room 4: a tab for each name (words ``tab.<name>``, introduced by section ``room.<name>``), filled when it is opened.

    The first tab is the section ``look``, plain words: no chart, and no chart library, comes with the page's first paint.
    """
    room("more")
    _tabs(tabs, trace)


@st.fragment
def _tabs(tabs: Mapping[str, Callable[[], None]], trace: "Trace | None") -> None:
    names, kept, state = ["look", *tabs], _kept(), st.session_state
    labels = [words(f"tab.{name}") for name in names]
    if state["arrived"] or state.get("more") not in labels:  # another page, or another language
        state["more"] = labels[names.index(kept.get("more", "look"))]
    introductions = _named("room.") | {"room.look": _named("look")["look"]}
    for tab, name in zip(st.tabs(labels, key="more", on_change="rerun"), names, strict=True):
        if tab.open:
            kept["more"] = name
            with tab:
                if f"room.{name}" in introductions:
                    st.markdown(texts.fill(introductions[f"room.{name}"], trace))
                if name in tabs:
                    tabs[name]()


def notes_on(trace: "Trace | None" = None) -> None:
    """The lesson's sections ``note.*``: conventions, limits, history."""
    _notes(trace)


@st.fragment
def _notes(trace: "Trace | None") -> None:
    notes = st.expander(words("room.notes"), key="notes-of-lesson", on_change="rerun")
    if notes.open:  # not before: its formulas bring a library with them
        with notes:
            for text in _named("note.").values():
                st.markdown(texts.fill(text, trace))


def _kept() -> dict[str, Any]:
    """What this visitor has opened in this lesson: pages of pagers, a tab."""
    kept: dict[str, Any] = st.session_state.setdefault("kept", {}).setdefault(st.session_state["page"], {})
    return kept


def _named(start: str) -> dict[str, str]:
    """The sections of this lesson's text whose names begin with ``start``."""
    found = texts.sections(st.session_state["page"], language())
    return {name: text for name, text in found.items() if name.startswith(start)}
