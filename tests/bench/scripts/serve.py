"""``uvicorn tests.bench.scripts.serve:app`` serves the script that $SCRIPT names, in the same way as the app is served."""

import os
from pathlib import Path

import streamlit as st

app = st.App(Path(__file__).resolve().parent / f"{os.environ['SCRIPT']}.py")
