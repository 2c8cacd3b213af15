"""Lesson 4: the plain recurrent network."""

from pages.ui.lesson import head
from pages.ui.memory import RNNConfig

config = head(RNNConfig)

from pages.ui import recurrent  # noqa: E402 what computes is loaded when the head is on the screen

recurrent.lesson("rnn", config)
