"""What computes. Knows no screen: imports nothing of Streamlit, Plotly, Altair or pages."""
