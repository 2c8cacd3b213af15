"""Figures: pure functions from traces and results to Vega-Lite specifications, the format that Altair writes.

They are written as dictionaries because a dictionary costs 3 ms where Altair's own checking costs over 100; the tests hold
every one of them to Altair's schema. A page draws ``figure.spec`` with ``st.vega_lite_chart(figure.spec, theme=None)``;
``images.png`` and ``images.svg`` make files of it without a browser; ``figure.rows`` is what it shows, as a table.

Words come as arguments (they live in assets), colours from the one palette of ``assets/theme/roles.json``. Nothing here knows
Streamlit, torch or a session.
"""
