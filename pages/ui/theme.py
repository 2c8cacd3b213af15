"""Look: role colours that stage and figures share, and the frame's style sheet. Palette and fonts: .streamlit/config.toml."""

import json
from functools import cache
from pathlib import Path

import streamlit as st

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "theme"
ICON = FOLDER / "icon.png"
SIDEBAR = 232  # pixels


@cache
def roles() -> dict[str, dict[str, str]]:
    """Colours by role: ``light`` and ``dark`` for marks (3:1 on the page), ``lightText`` and ``darkText`` for text (4.5:1)."""
    found: dict[str, dict[str, str]] = json.loads((FOLDER / "roles.json").read_text(encoding="utf-8"))
    return found


def role_color(role: str, *, text: bool = False) -> str:
    """The colour of ``role`` in the theme this visitor sees."""
    shade = st.context.theme.type or "light"
    return roles()[role][f"{shade}Text" if text else shade]


def apply() -> None:
    """Add the frame's style sheet to the page."""
    st.html(FOLDER / "frame.css")
