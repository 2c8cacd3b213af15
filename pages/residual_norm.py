"""Lesson 16: residual connections and norms."""

import streamlit as st

from pages.ui import depths, depths_rooms, lesson, stage
from pages.ui.check import check_yourself
from pages.ui.depths import DepthConfig
from pages.ui.words import language, words

config = lesson.head(DepthConfig, depths_rooms.choose)
run, trace, reference = depths.asked(config), depths.traced(config), depths.reference()
if len(config.text) > len(config.tokens):
    st.text(words("depth.window", shown=len(config.tokens), total=len(config.text)))
if config.seen < len(config.tokens):
    st.text(words("depth.seen", shown=config.seen, total=len(config.tokens)))
stage.mount(depths.packed(config, language()), key="stage-residual-norm")
depths_rooms.what_if(config)
lesson.room("try")
lesson.things_to_try(reference)
lesson.see_more(depths_rooms.tabs(config, run, trace), reference)
lesson.room("check")
check_yourself("residual_norm", run, reference, str)
lesson.notes_on(reference)
