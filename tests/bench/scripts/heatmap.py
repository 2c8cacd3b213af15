"""A heat map of a gate at each step, as dashboards draw it: a slider and a Plotly figure."""

import numpy as np
import plotly.graph_objects as go
import streamlit as st

st.title("Heat map")
step = st.slider("step", 0, 53)
gate = np.random.default_rng(0).random((64, 54), dtype=np.float32)
figure = go.Figure(go.Heatmap(z=gate, zmin=0, zmax=1))
figure.add_vline(x=step)
figure.update_layout(title=f"step {step}")
st.plotly_chart(figure, key="gate")
