"""Lesson 14: multi-head attention."""

import streamlit as st

from pages.ui import lesson, link, manyheads, manyheads_rooms, stage
from pages.ui.check import check_yourself
from pages.ui.manyheads import MultiheadConfig
from pages.ui.words import language, words


def changed(changes: tuple[stage.Change, ...]) -> None:
    """Callback of the stage: the heads that are taken out become part of the config, and of the link."""
    link.change(off=tuple(sorted({head for change in changes for head in change.heads or ()})))


config = lesson.head(MultiheadConfig, manyheads_rooms.choose)
run, trace = manyheads.asked(config), manyheads.traced(config)
if len(config.text) > len(config.tokens):
    st.text(words("multihead.window", shown=len(config.tokens), total=len(config.text)))
stage.mount(manyheads.packed(config, language()), key="stage-multihead", on_change=changed)
manyheads_rooms.what_if(config, run, trace)
lesson.room("try")
lesson.things_to_try(trace)
lesson.see_more(manyheads_rooms.tabs(config, run, trace), trace)
lesson.room("check")
vocabulary = manyheads.opened(config.model, int(config.heads), config.seed, config.blocks)[1]
check_yourself("multihead", run, trace, vocabulary.tokens.__getitem__)
lesson.notes_on(trace)
