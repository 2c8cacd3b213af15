"""Lesson 15: positions."""

import streamlit as st

from pages.ui import lesson, ordering, ordering_rooms, stage
from pages.ui.check import check_yourself
from pages.ui.ordering import PositionsConfig
from pages.ui.words import language, words

config = lesson.head(PositionsConfig, ordering_rooms.choose)
run, trace, reference = ordering.asked(config), ordering.traced(config), ordering.reference()
if len(config.text) > len(config.tokens):
    st.text(words("positions.window", shown=len(config.tokens), total=len(config.text)))
stage.mount(ordering.packed(config, language()), key="stage-positions")
ordering_rooms.what_if(config, run, trace)
lesson.room("try")
lesson.things_to_try(reference)
lesson.see_more(ordering_rooms.tabs(config, trace), reference)
lesson.room("check")
vocabulary = ordering.opened(config.kind, config.model, config.seed, config.width)[1]
check_yourself("positions", run, reference, vocabulary.tokens.__getitem__)
lesson.notes_on(reference)
