"""A gradient of two entries and what clipping makes of it: by its length, and entry by entry."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.tables import Row
from pages.figures.figure import Figure, Spec, across, data, number, spec, tooltip, up
from pages.figures.palette import Theme, palette

if TYPE_CHECKING:
    from engine.recurrent.clipping import ClippedVector

SIDE = 320  # pixels
ROLES = {"gradient": "weights", "by_value": "forget", "by_norm": "output"}


def clipped_arrows(
    vector: "ClippedVector",
    *,
    names: Sequence[str],
    title: str,
    note: str,
    hover: tuple[str, str],
    theme: Theme = "light",
) -> Figure:
    """The three arrows from the origin, the circle of the threshold and the square of the entries. ``names``: of the arrows."""
    colours = palette(theme)
    limit, ends = vector.max_norm, dict(zip(ROLES, (vector.gradient, vector.by_value, vector.by_norm), strict=True))
    reach = 1.3 * max(limit, *(abs(part) for end in ends.values() for part in end))
    arrows = [
        {
            "x": 0.0, "y": 0.0, "x2": end[0], "y2": end[1], "name": name, "color": colours.mark[ROLES[key]],
            "text": colours.text[ROLES[key]], "value": f"({number(end[0])}, {number(end[1])})",
            "angle": float(90 - np.degrees(np.arctan2(end[1], end[0]))),
        }
        for (key, end), name in zip(ends.items(), names, strict=True)
    ]  # fmt: skip
    labels = [{**arrow, "place": 6 + 18 * n} for n, arrow in enumerate(arrows)]
    turn = np.linspace(0, 2 * np.pi, 73)
    circle = [{"x": limit * float(np.cos(a)), "y": limit * float(np.sin(a)), "order": n} for n, a in enumerate(turn)]
    grid: Spec = {"grid": True, "gridColor": colours.hair, "tickCount": 5, "title": None}
    x, y = across("x", (-reach, reach), grid), up("y", (-reach, reach), grid)
    # However wide the figure is drawn, a unit is as long across as it is upwards: a circle is round.
    x["scale"] = {"nice": False, "zero": False} | {
        f"domain{end}": {"expr": f"{sign * reach!r} * width / height"} for end, sign in (("Min", -1), ("Max", 1))
    }
    x2, y2 = {"field": "x2"}, {"field": "y2"}
    own: Spec = {"field": "color", "type": "nominal", "scale": None}
    said = tooltip(("name", hover[0]), ("value", hover[1]))
    layers: list[Spec] = [
        {
            "data": data(*circle),
            "mark": {"type": "line", "color": colours.ink, "strokeDash": [4, 3], "strokeWidth": 1},
            "encoding": {"x": x, "y": y, "order": {"field": "order", "type": "quantitative"}},
        },
        {
            "data": data({"x": -limit, "y": -limit, "x2": limit, "y2": limit}),
            "mark": {"type": "rect", "fill": None, "stroke": colours.muted, "strokeDash": [2, 3]},
            "encoding": {"x": x, "y": y, "x2": x2, "y2": y2},
        },
        {
            "data": data(*arrows),
            "mark": {"type": "rule", "strokeWidth": 2.5},
            "encoding": {"x": x, "y": y, "x2": x2, "y2": y2, "color": own, "tooltip": said},
        },
        {
            "data": data(*arrows),
            "mark": {"type": "point", "shape": "triangle-up", "filled": True, "size": 90, "opacity": 1},
            "encoding": {
                "x": x | {"field": "x2"},
                "y": y | {"field": "y2"},
                "color": own,
                "angle": {"field": "angle", "type": "quantitative", "scale": None},
                "tooltip": said,
            },
        },
        {
            "data": data(*labels),
            "mark": {"type": "text", "align": "left", "baseline": "top", "fontWeight": "bold"},
            "encoding": {
                "x": {"value": 8},
                "y": {"field": "place", "type": "quantitative", "scale": None},
                "text": {"field": "name", "type": "nominal"},
                "color": {"field": "text", "type": "nominal", "scale": None},
            },
        },
    ]

    def table() -> Iterable[Row]:
        yield ("vector", "x", "y")
        for key, end in ends.items():
            yield (key, end[0], end[1])

    whole = spec(layers, colours, height=SIDE, title=title, note=note, width=SIDE + 60)
    return Figure(spec=whole, table=table)
