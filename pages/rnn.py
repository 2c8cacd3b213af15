"""Lesson 4: the plain recurrent network."""

from pages.ui import recurrent
from pages.ui.memory import RNNConfig

recurrent.lesson("rnn", RNNConfig)
