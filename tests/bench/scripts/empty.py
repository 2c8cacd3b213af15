"""An empty page: the one widget that the rerun is measured with, and what it says."""

import streamlit as st

st.title("Empty")
st.text(st.pagination(6, key="try", max_visible_pages=6))
