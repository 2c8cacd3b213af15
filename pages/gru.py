"""Lesson 7: the GRU."""

from pages.ui.config import GRUConfig
from pages.ui.lesson import head

config = head(GRUConfig)

from pages.ui import recurrent  # noqa: E402 what computes is loaded when the head is on the screen

recurrent.lesson("gru", config)
