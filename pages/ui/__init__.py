"""Streamlit building blocks: frame, words, link, text input, rooms of a lesson page, stage."""
