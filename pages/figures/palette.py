"""The colours of a figure: roles from assets/theme/roles.json, paper and ink from the theme in .streamlit/config.toml."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Theme = Literal["light", "dark"]
ROOT = Path(__file__).resolve().parents[2]

# A model's line has the colour of what carries its memory.
MODELS = {"lstm": "cell", "gru": "update", "rnn": "weights"}


@dataclass(frozen=True, kw_only=True)
class Palette:
    """``mark`` and ``text`` are colours by role, for areas and lines and for letters; the rest has no meaning."""

    theme: Theme
    paper: str
    wash: str
    hair: str
    ink: str
    muted: str
    mark: Mapping[str, str]
    text: Mapping[str, str]

    @property
    def negative(self) -> str:
        """The full colour of a value far below 0."""
        return self.mark["output"]

    @property
    def positive(self) -> str:
        """The full colour of a value far above 0."""
        return self.mark["forget"]


@cache
def palette(theme: Theme = "light") -> Palette:
    """The colours of the light or the dark theme."""
    roles = json.loads((ROOT / "assets" / "theme" / "roles.json").read_text(encoding="utf-8"))
    page = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"][theme]
    return Palette(
        theme=theme,
        paper=page["backgroundColor"],
        wash=page["secondaryBackgroundColor"],
        hair=page["borderColor"],
        ink=page["textColor"],
        muted=roles["weights"][f"{theme}Text"],
        mark={role: shades[theme] for role, shades in roles.items()},
        text={role: shades[f"{theme}Text"] for role, shades in roles.items()},
    )
