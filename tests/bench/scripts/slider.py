"""The least that a page can do at each step with a rerun: a slider and a number."""

import streamlit as st

st.title("Slider")
step = st.slider("step", 0, 53)
st.write(f"step {step}")
