"""Units that track something a reader can name: inside quotes, inside brackets, the place in the line.

Each feature is one number for each token of the text, made from the text alone. A unit is held against it by correlation over
all steps (Pearson). With hundreds of units some correlate by chance: ``by_chance`` says how large the largest would be then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from types import MappingProxyType

import numpy as np

from engine.trace import Array, frozen

OPENING, CLOSING = "([{<（［｛《【", ")]}>）］｝》】"
# What closes each opening mark.
QUOTES = MappingProxyType({'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "『": "』"})
WORD_SIGNS = "'’-"


def in_quotes(text: str) -> list[float]:
    """1 from the character after an opening quotation mark up to the closing one. A plain mark opens and closes in turn.

    A quotation that is not closed ends with its paragraph (an empty line): a forgotten mark would turn the rest inside out.
    """
    closing, found = "", []
    for place, sign in enumerate(text):
        opens = "" if closing else QUOTES.get(sign, "")
        if closing and sign in closing:
            closing = ""
        found.append(float(bool(closing)))
        closing = opens or closing
        if sign == "\n" and text[place + 1 : place + 2] == "\n":
            closing = ""
    return found


def bracket_depth(text: str) -> list[float]:
    """How many brackets are open around each character; the brackets themselves stand outside. Never below 0."""
    depth, found = 0, []
    for sign in text:
        if sign in CLOSING:
            depth = max(0, depth - 1)
        found.append(float(depth))
        if sign in OPENING:
            depth += 1
    return found


def line_position(text: str) -> list[float]:
    """Characters since the line began: 0 for its first; the line's end counts as the line's last character."""
    place, found = 0, []
    for sign in text:
        found.append(float(place))
        place = 0 if sign == "\n" else place + 1
    return found


def word_position(text: str) -> list[float]:
    """Characters since the word began: 1 for its first letter, 0 outside words."""
    place, found = 0, []
    for sign in text:
        place = place + 1 if sign.isalnum() or (place and sign in WORD_SIGNS) else 0
        found.append(float(place))
    return found


def capital(text: str) -> list[float]:
    """1 for a capital letter."""
    return [float(sign.isupper()) for sign in text]


FEATURES: Mapping[str, Callable[[str], list[float]]] = MappingProxyType(
    {
        "in_quotes": in_quotes,
        "bracket_depth": bracket_depth,
        "line_position": line_position,
        "word_position": word_position,
        "capital": capital,
    }
)


def token_features(tokens: Sequence[str]) -> dict[str, Array]:
    """Each feature at the last character of each token, (T,); tokens joined must give the text."""
    text = "".join(tokens)
    ends = np.cumsum([len(token) for token in tokens]) - 1
    if not text or any(not token for token in tokens):
        raise ValueError("features need tokens that hold at least one character each")
    return {name: frozen(np.array(feature(text))[ends]) for name, feature in FEATURES.items()}


@dataclass(frozen=True, kw_only=True)
class UnitCorrelation:
    """Every unit against one feature: ``correlations`` (H,), -1 to 1; a unit that never moves has 0.

    ``by_chance``: the largest absolute correlation to expect among this many units that have nothing to do with it, from the
    number of steps alone (95 %, steps taken as independent, which flatters: states change slowly).
    """

    feature: str
    correlations: Array = field(repr=False)
    by_chance: float

    @property
    def unit(self) -> int:
        """The unit that follows the feature most closely, up or down."""
        return int(np.argmax(np.abs(self.correlations)))

    @property
    def best(self) -> float:
        """Its correlation."""
        return float(self.correlations[self.unit])

    def ranked(self) -> list[int]:
        """The units by absolute correlation, largest first."""
        return [int(unit) for unit in np.argsort(-np.abs(self.correlations), kind="stable")]


def correlate(states: Array, tokens: Sequence[str]) -> tuple[dict[str, UnitCorrelation], tuple[str, ...]]:
    """States (T, H) of one text against every feature of its tokens, and the features that this text cannot show.

    A feature that is the same at all steps (a text without brackets) correlates with nothing. Raises ``ValueError``.
    """
    values = np.asarray(states, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(tokens):
        raise ValueError(f"states must be ({len(tokens)}, units), one row a token, not {values.shape}")
    away = values - values.mean(axis=0)
    sizes = np.linalg.norm(away, axis=0)
    chance = NormalDist().inv_cdf(1 - 0.025 / values.shape[1]) / math.sqrt(len(tokens))
    found, constant = {}, []
    for name, feature in token_features(tokens).items():
        centred = feature - feature.mean()
        size = float(np.linalg.norm(centred))
        if size < 1e-12:
            constant.append(name)
            continue
        moving = sizes > 1e-12
        correlations = np.where(moving, (centred @ away) / (size * np.where(moving, sizes, 1)), 0.0)
        found[name] = UnitCorrelation(feature=name, correlations=frozen(correlations), by_chance=min(1.0, chance))
    return found, tuple(constant)
