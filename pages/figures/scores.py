"""Figures of the lesson on scores: numbers against a size, on two logarithmic axes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, Spec, across, data, key_above, number, power, spec, tooltip, up
from pages.figures.palette import Theme, palette

Array = NDArray[np.floating[Any]]
HEIGHT = 260.0
LEAST = 1e-12  # what is 0 stands at the lower end of a logarithmic axis


@dataclass(frozen=True, kw_only=True)
class Series:
    """Numbers at each size: a name, the role whose colour they have, and whether their line is dashed."""

    name: str
    values: Array
    role: str
    dashed: bool = False


def size_lines(
    sizes: Sequence[float],
    lines: Sequence[Series],
    *,
    title: str,
    note: str,
    x_title: str,
    y_title: str,
    hover: tuple[str, str],
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """Lines over sizes, both axes logarithmic: a straight line is a power. ``hover`` are the words for size and number."""
    colours = palette(theme)
    logs = [np.log10(np.maximum(np.asarray(line.values, dtype=np.float64), LEAST)) for line in lines]
    low, high = int(np.floor(min(float(each.min()) for each in logs))), int(np.ceil(max(float(each.max()) for each in logs)))
    high = max(high, low + 1)
    along = [float(np.log10(size / sizes[0])) for size in sizes]  # from 0: no minus sign in the keys of the labels
    grid = {"grid": True, "gridColor": colours.hair}
    every = max(1, len(sizes) // 6)
    ticks = along[::every]
    named = {f"{tick:.4f}": f"{size:g}" for tick, size in zip(ticks, sizes[::every], strict=True)}
    x = across(
        "x",
        (0.0, along[-1] or 1.0),
        grid | {"values": ticks, "labelExpr": "sizes[format(datum.value, '.4f')]", "title": x_title},
    )
    powers = list(range(low, high + 1))
    step = max(1, len(powers) // 6)
    y = up(
        "y",
        (low, high),
        grid | {"values": powers[::step], "labelExpr": f"powers[datum.value - {low}]", "title": y_title},
    )
    colour = key_above([line.name for line in lines], [colours.mark[line.role] for line in lines], colours)
    layers: list[Spec] = []
    hovered: list[Spec] = []
    for line, each in zip(lines, logs, strict=True):
        rows = [
            {
                "x": place_x,
                "y": float(value),
                "name": line.name,
                "size": f"{size:g}",
                "value": number(float(real)),
            }
            for place_x, size, value, real in zip(along, sizes, each, line.values, strict=True)
        ]
        dash = {"strokeDash": [5, 4]} if line.dashed else {}
        mark = {"type": "line", "strokeWidth": 2, "point": {"size": 24, "filled": True}}
        layers.append({"data": data(*rows), "mark": mark | dash, "encoding": {"x": x, "y": y, "color": colour}})
        hovered += rows
    layers.append(
        {
            "name": "hover",
            "data": data(*hovered),
            "mark": {"type": "point", "filled": True, "size": 120, "opacity": 0},
            "encoding": {"x": x, "y": y, "tooltip": tooltip(("name", " "), ("size", hover[0]), ("value", hover[1]))},
        }
    )

    def table() -> Iterable[Row]:
        yield ("size", *(line.name for line in lines))
        for place, size in enumerate(sizes):
            yield (float(size), *(float(line.values[place]) for line in lines))

    params: dict[str, Any] = {"sizes": named, "powers": [power(k) for k in powers]}
    whole = spec(layers, colours, height=HEIGHT, title=title, note=note, width=width, params=params)
    return Figure(spec=whole, table=table)
