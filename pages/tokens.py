"""Lesson 2: from text to tokens."""

import streamlit as st

from engine.text.questions import Run
from pages.ui import cutting, cutting_rooms, lesson, link, text_stage
from pages.ui.check import check_yourself
from pages.ui.cutting import TokensConfig
from pages.ui.stage import stage_words
from pages.ui.words import words

config = lesson.head(TokensConfig, cutting_rooms.choose)
text = cutting.material(config)
found = cutting.cutting(config, text.text)
if len(text.text) < text.total:
    st.text(words("tokens.cut", kept=len(text.text), total=text.total))
text_stage.mount(cutting.packed(config, text.text, stage_words(), link.moves()), key="stage-tokens")
cutting_rooms.what_if(config, found)
lesson.room("try")
lesson.things_to_try()
lesson.see_more(cutting_rooms.tabs(config, text, found))
lesson.room("check")
asked = Run(cutting=found, plan=cutting.placed(config, found), seed=config.seed, pieces=config.pieces)
check_yourself("tokens", asked, None, found.vocabulary.tokens.__getitem__)
lesson.notes_on()
