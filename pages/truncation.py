"""Lesson 5: back-propagation through time, and what cutting it costs."""

import streamlit as st

from pages.ui import horizon, horizon_rooms, lesson, stage
from pages.ui.check import check_yourself
from pages.ui.horizon import TruncationConfig
from pages.ui.words import language, words

config = lesson.head(TruncationConfig, horizon_rooms.choose)
if len(config.text) > len(config.read_in):
    st.text(words("truncation.window_of", shown=len(config.read_in), total=len(config.text)))
if config.tokens:
    flow = horizon.flow_of(config)
    stage.mount(horizon.packed(config, language()), key="stage-truncation")
    horizon_rooms.what_if(config, flow)
    lesson.room("try")
    lesson.things_to_try()
    lesson.see_more(horizon_rooms.tabs(config, flow))
    lesson.room("check")
    check_yourself("truncation", horizon.asked(config), None, horizon.opened(config)[1].tokens.__getitem__)
else:
    st.text(words("truncation.nothing"))
lesson.notes_on()
