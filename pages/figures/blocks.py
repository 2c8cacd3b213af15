"""A block of sequences, tokens and features cell by cell: a click on one shows which share its mean, all in the browser."""

from collections.abc import Iterable

import numpy as np

from engine.tables import Row
from pages.figures.figure import Figure, Spec, data, spec, tooltip
from pages.figures.palette import Theme, palette

GAP = 1.5  # cells between two sequences
CELL = 26  # pixels
AXES = "BTD"


def shared_cells(
    shape: tuple[int, int, int],
    over: str,
    *,
    title: str,
    note: str,
    names: tuple[str, str, str],
    theme: Theme = "light",
) -> Figure:
    """The cells of a block (B, T, D), sequences side by side; those that a norm over the axes ``over`` averages with the one
    that is clicked are dark. ``names`` are the words for sequence, token and feature.

    Raises ``ValueError`` for an axis that is not there.
    """
    if not over or not set(over) <= set(AXES):
        raise ValueError(f"a norm averages over some of {', '.join(AXES)}, not over {over!r}")
    colours = palette(theme)
    sequences, tokens, features = shape
    pitch = features + GAP
    cells = [
        {
            "x": b * pitch + d, "x2": b * pitch + d + 1, "y": t, "y2": t + 1,
            "B": b + 1, "T": t + 1, "D": d + 1,
            "where": f"{names[0]} {b + 1}, {names[1]} {t + 1}, {names[2]} {d + 1}",
        }
        for b, t, d in np.ndindex(shape)
    ]  # fmt: skip
    kept = [f"datum.{axis} === picked.{axis}[0]" for axis in AXES if axis not in over]
    test = " && ".join(["isDefined(picked.B)", *kept])
    own = "isDefined(picked.B) && " + " && ".join(f"datum.{axis} === picked.{axis}[0]" for axis in AXES)
    x: Spec = {
        "field": "x",
        "type": "quantitative",
        "scale": {"domain": [0, sequences * pitch - GAP], "nice": False},
        "axis": None,
    }
    y: Spec = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [0, tokens], "nice": False, "reverse": True},
        "axis": None,
    }
    box = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}
    picked = {
        "name": "picked",
        "select": {"type": "point", "fields": list(AXES), "on": "click", "clear": False, "toggle": False},
        "value": [dict.fromkeys(AXES, 1)],
    }
    titles = [{"x": b * pitch, "text": f"{names[0]} {b + 1}"} for b in range(sequences)]
    layers: list[Spec] = [
        {
            "data": data(*cells),
            "params": [picked],
            "mark": {"type": "rect", "cursor": "pointer", "stroke": colours.hair, "strokeWidth": 1},
            "encoding": box
            | {
                "fill": {"condition": {"test": test, "value": colours.mark["output"]}, "value": colours.paper},
                "tooltip": tooltip(("where", " ")),
            },
        },
        {
            "data": data(*cells),
            "mark": {"type": "rect", "fill": None, "stroke": colours.ink},
            "encoding": box | {"strokeWidth": {"condition": {"test": own, "value": 2.5}, "value": 0}},
        },
        {
            "data": data(*titles),
            "mark": {"type": "text", "align": "left", "baseline": "bottom", "color": colours.muted},
            "encoding": {"x": x, "y": {"value": -6}, "text": {"field": "text", "type": "nominal"}},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("sequence", "token", "feature", "shares_with_the_first")
        for b, t, d in np.ndindex(shape):
            first = all(at == 0 for axis, at in zip(AXES, (b, t, d), strict=True) if axis not in over)
            yield (b + 1, t + 1, d + 1, int(first))

    return Figure(spec=spec(layers, colours, height=CELL * tokens, title=title, note=note), table=table)
