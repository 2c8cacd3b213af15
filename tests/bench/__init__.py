"""Measurements of speed: ``make bench``. Not tests: they need a quiet machine, and their numbers are for reading."""
