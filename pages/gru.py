"""Lesson 7: the GRU."""

from pages.ui import recurrent
from pages.ui.config import GRUConfig

recurrent.lesson("gru", GRUConfig)
