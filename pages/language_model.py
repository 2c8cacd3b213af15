"""Lesson 9: small models, trained while one looks."""

from pages.ui import lesson, training_rooms, training_tabs
from pages.ui.training import LanguageModelConfig

config = lesson.head(LanguageModelConfig, training_rooms.choose)
training_rooms.stage(config)
training_rooms.what_if(config)
lesson.room("try")
lesson.things_to_try()
lesson.see_more(training_tabs.tabs(config))
lesson.room("check")
training_tabs.check(config)
lesson.notes_on()
