"""Look: the role colours that stage and figures share. Palette and fonts: .streamlit/config.toml; the frame: frame.css."""

import json
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "theme"


@cache
def roles() -> dict[str, dict[str, str]]:
    """Colours by role: ``light`` and ``dark`` for marks (3:1 on the page), ``lightText`` and ``darkText`` for text (4.5:1)."""
    found: dict[str, dict[str, str]] = json.loads((FOLDER / "roles.json").read_text(encoding="utf-8"))
    return found
