"""Lesson 6: the LSTM."""

from pages.ui import recurrent
from pages.ui.config import LSTMConfig

recurrent.lesson("lstm", LSTMConfig)
