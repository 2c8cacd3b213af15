"""Lesson 11: attention scores."""

import streamlit as st

from pages.ui import lesson, scoring, scoring_rooms, stage
from pages.ui.check import check_yourself
from pages.ui.scoring import ScoringConfig
from pages.ui.words import language, words

config = lesson.head(ScoringConfig, scoring_rooms.choose)
if len(config.all_tokens) > len(config.tokens):
    st.text(words("scoring.window", shown=len(config.tokens), total=len(config.all_tokens)))
run = scoring.asked(config)
trace = scoring.traced(config) if run.fits else None
if trace is None:
    scoring_rooms.unfit(config)
else:
    stage.mount(scoring.packed(config, language()), key="stage-scoring", on_touch=scoring_rooms.touched)
scoring_rooms.what_if(config, trace)
scoring_rooms.divisor(config)
lesson.room("try")
shown = trace or scoring.example()
lesson.things_to_try(shown)
lesson.see_more(scoring_rooms.tabs(config, run, trace), shown)
lesson.room("check")
check_yourself("scoring", run, shown, str)
lesson.notes_on(shown)
