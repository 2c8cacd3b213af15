"""Home: what Unrolled is, a model at work, and the road of lessons."""

import streamlit as st

from pages import catalog
from pages.ui import link
from pages.ui.words import words

st.title(words("home.title"), anchor=False)
st.write(words("home.idea"))
