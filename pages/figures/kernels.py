"""Figures of the lesson on kernel regression: the fits of several kernels over the points, and where learning w has ended."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, Spec, across, data, key_above, number, power, spec, tooltip, up
from pages.figures.heat import OWN_COLOUR
from pages.figures.palette import Theme, palette

Array = NDArray[np.floating[Any]]
HEIGHT = 300.0
OPEN = {"field": "color"} | OWN_COLOUR


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A line over the queries: its name, the role whose colour it has, and whether it is dashed."""

    name: str
    values: Array
    role: str
    dashed: bool = False


def kernel_fits(
    queries: Array,
    lines: Sequence[Fit],
    points: tuple[Array, Array],
    *,
    title: str,
    note: str,
    hover: tuple[str, str],
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """Several fits over the same points; NaN interrupts a line. ``hover`` are the words for query and value."""
    colours = palette(theme)
    low, high = float(queries.min()), float(queries.max())
    seen = np.concatenate([points[1], *(line.values[np.isfinite(line.values)] for line in lines)])
    pad = 0.05 * (float(seen.max() - seen.min()) or 1.0)
    grid = {"grid": True, "gridColor": colours.hair}
    colour = key_above([line.name for line in lines], [colours.mark[line.role] for line in lines], colours)
    x = across("x", (low, high), grid | {"title": "x", "tickCount": 7})
    y = up("y", (float(seen.min()) - pad, float(seen.max()) + pad), grid | {"title": "y", "tickCount": 5})
    layers: list[Spec] = [
        {
            "data": data(*({"x": float(a), "y": float(b)} for a, b in zip(*points, strict=True))),
            "mark": {"type": "point", "filled": True, "size": 24, "opacity": 0.8, "color": colours.mark["key"]},
            "encoding": {"x": x, "y": y},
        }
    ]
    for line in lines:
        rows = [
            {"x": float(a), "y": float(b) if np.isfinite(b) else None, "name": line.name, "value": number(float(b))}
            for a, b in zip(queries, line.values, strict=True)
        ]
        dash = {"strokeDash": [5, 4]} if line.dashed else {}
        layers.append(
            {
                "data": data(*rows),
                "mark": {
                    "type": "line",
                    "strokeWidth": 2,
                    "invalid": "break-paths-show-domains",
                }
                | dash,
                "encoding": {"x": x, "y": y, "color": colour},
            }
        )
        shown = [row | {"query": number(float(at), 2)} for row, at in zip(rows, queries, strict=True) if row["y"] is not None]
        layers.append(
            {
                "data": data(*shown),
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0},
                "encoding": {"x": x, "y": y, "tooltip": tooltip(("name", " "), ("query", hover[0]), ("value", hover[1]))},
            }
        )

    def table() -> Iterable[Row]:
        yield ("x", *(line.name for line in lines))
        for place, query in enumerate(queries):
            yield (float(query), *(float(line.values[place]) for line in lines))

    whole = spec(layers, colours, height=HEIGHT, title=title, note=note, width=width)
    return Figure(spec=whole, table=table)


def learned_widths(
    found: Sequence[tuple[str, Array, str]],
    *,
    title: str,
    note: str,
    x_title: str,
    hover: tuple[str, str],
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """Rows of (name, w of each seed, role): a mark a seed on one logarithmic axis. What is 0 stands at its lower end."""
    colours = palette(theme)
    least = 0.01
    values = [np.maximum(np.abs(row), least) for _, row, _ in found]
    high = max(2, int(np.ceil(np.log10(max(float(v.max()) for v in values)))))
    powers = list(range(-2, high + 1))
    x = across(
        "x",
        (-2, high),
        {"grid": True, "gridColor": colours.hair, "values": powers, "labelExpr": "powers[datum.value + 2]", "title": x_title},
    )
    y = {"field": "row", "type": "quantitative", "scale": {"domain": [len(found) - 0.4, -0.6], "nice": False}, "axis": None}
    rows, names = [], []
    for place, (name, _, role) in enumerate(found):
        rows += [
            {"x": float(np.log10(w)), "row": place, "color": colours.mark[role], "seed": str(seed), "w": number(float(w))}
            for seed, w in enumerate(values[place])
        ]
        names.append({"row": place - 0.32, "name": name, "color": colours.text[role]})
    layers = [
        {
            "data": data(*rows),
            "mark": {"type": "tick", "thickness": 2, "size": 26, "orient": "vertical"},
            "encoding": {"x": x, "y": y, "color": OPEN, "tooltip": tooltip(("seed", hover[0]), ("w", hover[1]))},
        },
        {
            "data": data(*names),
            "mark": {"type": "text", "align": "left", "baseline": "bottom", "fontWeight": "bold"},
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name", "type": "nominal"}, "color": OPEN},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("seed", *(name for name, _, _ in found))
        for seed in range(len(found[0][1])):
            yield (seed, *(float(row[seed]) for _, row, _ in found))

    params = {"powers": [power(k) for k in powers]}
    whole = spec(layers, colours, height=64 * len(found), title=title, note=note, width=width, params=params)
    return Figure(spec=whole, table=table)
