"""Lesson 1: a series predicted from its own past."""

import streamlit as st

from pages.ui import columns, forecasting, forecasting_rooms, lesson, stage
from pages.ui.check import check_yourself
from pages.ui.forecasting import AutoregressionConfig
from pages.ui.words import language

config = lesson.head(AutoregressionConfig, forecasting_rooms.choose, columns.series_source)
source = forecasting.source(config)
lesson.say(source.notes, "series-notes")
if source.series is not None:
    given = forecasting.problem(config, source.series)
    lesson.say(given.notes, "sizes-notes")
    stage.mount(
        forecasting.packed(given, language()),
        key="stage-autoregression",
        on_place=lambda place: forecasting_rooms.started(place.step),
    )
    forecasting_rooms.what_if(given)
    lesson.room("try")
    lesson.things_to_try()
    lesson.see_more(forecasting_rooms.tabs(given))
    lesson.room("check")
    check_yourself("autoregression", forecasting.asked(given), None, str)
else:
    st.space("small")
lesson.notes_on()
