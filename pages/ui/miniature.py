"""The small model on the home page: the trained LSTM's real run on the sample text, playing by itself.

It needs torch, so the home page imports it last, when everything else is painted.
"""

import streamlit as st

from pages.ui import payload, runs, stage
from pages.ui.config import LSTMConfig
from pages.ui.words import language


def show(link: str) -> None:
    """Mount it; as a whole it leads to ``link``."""
    stage.mount(_packed(language(), link), key="miniature")


@st.cache_resource(max_entries=16, show_spinner=False)
def _packed(lang: str, link: str) -> bytes:
    run = runs.run("lstm", LSTMConfig())
    return payload.pack(
        run.trace,
        tokens=run.tokens,
        vocabulary=run.vocabulary,
        words=stage.stage_words(lang),
        names=stage.symbol_names(lang),
        model=run.cell,
        mini=True,
        link=link,
    )
