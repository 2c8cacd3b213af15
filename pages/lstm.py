"""Lesson 6: the LSTM."""

from pages.ui.config import LSTMConfig
from pages.ui.lesson import head

config = head(LSTMConfig)

from pages.ui import recurrent  # noqa: E402 what computes is loaded when the head is on the screen

recurrent.lesson("lstm", config)
