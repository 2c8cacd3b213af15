"""Lesson 8: several layers, and both directions."""

from pages.ui import deep

deep.lesson()
