"""The one axis of tokens that every figure uses.

Identity is the position, a number from 0; a label is only text. So repeated, digit-like, date-like, HTML-like, empty and blank
tokens keep their places. Labels are the tokens made visible (``engine.text.display``), handed to the browser as data and never
as markup or expression; they are thinned so that no two of them overlap at a given width, and the selected token keeps its own.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.text.display import graphemes, shorten, visible

MAX_CELLS = 256  # tokens on one side of a picture
LONGEST = 12  # characters of a label
PITCH = 12.0  # pixels from label to label, at least
GAP = 4.0  # pixels between two labels that stand side by side


@dataclass(frozen=True, kw_only=True)
class TokenAxis:
    """Tokens along one side of a figure.

    ``labels`` (n,) are what every position is called; ``ticks`` the positions that get their label printed: every ``every``-th,
    in step with the selected one, since a label needs ``box`` pixels. ``turned`` labels read upwards. ``first`` and ``total``
    place a window in a longer text: its first position there (from 0) and its length.
    """

    labels: tuple[str, ...]
    ticks: tuple[int, ...]
    every: int
    box: float
    turned: bool
    selected: int | None
    first: int = 0
    total: int | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shown(self) -> tuple[int, int, int]:
        """First and last position shown, counted from 1, and how many there are in all."""
        return self.first + 1, self.first + len(self), len(self) if self.total is None else self.total

    @property
    def domain(self) -> list[float]:
        """The ends of a scale on which position i is the middle of the i-th of n equal columns."""
        return [-0.5, len(self) - 0.5]

    def axis(self, labels: str, extent: str = "width", **more: Any) -> dict[str, Any]:
        """The Vega-Lite axis; ``labels`` is the name of the parameter that holds the label texts.

        Where the browser draws the figure narrower than it was made for, it thins the labels further.
        """
        place = f"(datum.value - {self.selected or 0}) / {self.every}"
        sparser = f"max(1, ceil({self.box * len(self):g} / {extent} / {self.every} - 0.02))"
        chosen = {"test": f"datum.value === {self.selected}"} if self.selected is not None else None
        axis: dict[str, Any] = {
            "values": list(self.ticks),
            "labelExpr": f"{place} % {sparser} === 0 ? {labels}[datum.value] : ''",
            "labelAngle": -90 if self.turned else 0,
            "labelOverlap": False,
            "labelLimit": 0,
            "title": None,
        }
        if chosen:
            axis["labelFontWeight"] = {"condition": {**chosen, "value": "bold"}, "value": "normal"}
        return axis | more


def token_axis(
    tokens: Sequence[str],
    *,
    width: float,
    selected: int | None = None,
    font_size: float = 12,
    down: bool = False,
    first: int = 0,
    total: int | None = None,
) -> TokenAxis:
    """The axis of ``tokens`` over ``width`` pixels (``down``: from top to bottom), with the label of ``selected`` kept.

    Labels across stand side by side while most of them are short, and are turned by 90 degrees where they are words. Raises
    ``ValueError`` for no tokens or more than 256 (cut a window first), ``IndexError`` for a selected position outside.
    """
    if not tokens:
        raise ValueError("an axis needs at least one token")
    if len(tokens) > MAX_CELLS:
        raise ValueError(f"{len(tokens)} tokens are too many for one picture: choose a window of {MAX_CELLS}")
    if selected is not None and not 0 <= selected < len(tokens):
        raise IndexError(f"position {selected} is not inside 0 to {len(tokens) - 1}")
    labels = tuple(shorten(visible(token), LONGEST) for token in tokens)
    lengths = sorted(text_width(label, font_size) for label in labels)
    turned = not down and lengths[len(lengths) // 2] > 2 * font_size
    boxes = [PITCH if turned or down else max(text_width(label, font_size) + GAP, PITCH) for label in labels]
    pitch = width / len(tokens)
    usual = sorted(boxes)[len(boxes) // 2]
    every = max(1, -int(-usual // pitch))
    return TokenAxis(
        labels=labels,
        ticks=_thinned(boxes, pitch, every, selected),
        every=every,
        box=usual,
        turned=turned,
        selected=selected,
        first=first,
        total=total,
    )


def _thinned(boxes: Sequence[float], pitch: float, every: int, selected: int | None) -> tuple[int, ...]:
    """Every n-th position, in step with the selected one, less those whose box would touch a neighbour's."""
    ordered = [] if selected is None else [selected]
    ordered += [i for i in range((selected or 0) % every, len(boxes), every) if i != selected]
    kept: list[int] = []
    for i in ordered:
        if all(abs(i - j) * pitch >= (boxes[i] + boxes[j]) / 2 for j in kept):
            kept.append(i)
    return tuple(sorted(kept))


def text_width(text: str, font_size: float) -> float:
    """About how wide a text is drawn, in pixels: wide characters count 1 em, others 0.6, accents nothing."""
    ems = 0.0
    for cluster in graphemes(text):
        ems += 1.0 if unicodedata.east_asian_width(cluster[0]) in "WF" else 0.6
    return ems * font_size


def window(total: int, selected: int = 0, *, real: int | None = None, limit: int = MAX_CELLS) -> tuple[int, int]:
    """The part (start, end) of ``total`` positions that is drawn: at most ``limit``, around the selected one.

    ``real`` is the length without padding; padding is cut before anything else.
    """
    length = total if real is None else min(real, total)
    start = min(max(selected - limit // 2, 0), max(length - limit, 0))
    return start, min(start + limit, length)


def numbered(tokens: Sequence[str]) -> list[str]:
    """Option texts and column names that never repeat: ``1: the``, ``2: cat``, ``3: the``."""
    return [f"{i}: {visible(token)}" for i, token in enumerate(tokens, 1)]
