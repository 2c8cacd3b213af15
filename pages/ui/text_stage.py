"""The stages of the lessons on text: their data is plain, and where a learner looks is theirs to write into the address."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.ui.stage import bundle, style

_component = st.components.v2.component("unrolled.text", css=style(), js=bundle("text"), isolate_styles=True)
_embedding = st.components.v2.component("unrolled.embedding", css=style(), js=bundle("embedding"), isolate_styles=True)


def mount(data: Mapping[str, Any], *, key: str) -> None:
    """Show the stage of the lesson on tokens."""
    _component(key=key, data=data)


def mount_embedding(data: bytes, *, key: str) -> None:
    """Show the stage of the lesson on embeddings."""
    _embedding(key=key, data=data)
