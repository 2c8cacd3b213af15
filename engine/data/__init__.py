"""Texts and tasks to train on. Everything comes from installed packages or is made here; nothing is downloaded at run time."""
