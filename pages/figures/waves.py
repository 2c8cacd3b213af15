"""Lines over positions, distances and lengths: waves, how alike two positions are, and what happens beyond the training."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, across, data, number, spec, tooltip, up
from pages.figures.palette import Theme, palette

Array = NDArray[np.floating[Any]]
KEY = 0.28  # share of the width that the names of the lines take
PITCH = 17.0  # pixels between two names


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line (n,) with its name and its role's colour; NaN is a gap. ``dashed`` for what is there to compare with."""

    name: str
    role: str
    values: Array
    dashed: bool = False


def lines_over(
    lines: Sequence[Line],
    x: Sequence[float],
    *,
    title: str,
    note: str,
    x_title: str,
    y_title: str,
    hover: tuple[str, str],
    limits: tuple[float, float] | None = None,
    mark: tuple[float, str] | None = None,
    points: bool = False,
    theme: Theme = "light",
    height: int = 260,
) -> Figure:
    """Lines over ``x`` with their names at the right, each in its line's colour, in the order of their last values.

    ``mark`` is a place on x with a word (where the training ended); ``limits`` fix the vertical scale. Raises ``ValueError``
    for a line that does not have a number for each x.
    """
    if any(len(line.values) != len(x) for line in lines):
        raise ValueError(f"every line has {len(x)} values")
    colours = palette(theme)
    finite = np.concatenate([line.values[np.isfinite(line.values)] for line in lines])
    low, high = limits or ((float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0))
    room = 0.0 if limits else 0.05 * (high - low or 1.0)
    first, last = float(x[0]), float(x[-1])
    span = last - first or 1.0
    end = first + span / (1 - KEY)
    rows = [
        {
            "x": float(at),
            "y": float(value) if np.isfinite(value) else None,
            "where": f"{at:g}",
            "line": line.name,
            "value": f"{line.name}  {number(float(value))}",
            "color": colours.mark[line.role],
            "dash": line.dashed,
        }
        for line in lines
        for at, value in zip(x, line.values, strict=True)
    ]
    edges = [low - room, high + room]
    ticks = sorted({first, *(t for t in _ticks(first, last) if t - first > 0.06 * span), last})
    across_axis = {
        "title": x_title,
        "titleAnchor": "start",
        "format": "~g",
        "values": [t for t in ticks if t == last or last - t > 0.05 * span],
    }
    across_x = across("x", (first - 0.01 * span, end), across_axis)
    up_y = up("y", edges, {"title": y_title, "grid": True, "tickCount": 5})
    own = {"field": "color", "type": "nominal", "scale": None}
    dash = {"condition": {"test": "datum.dash", "value": [5, 4]}, "value": [1, 0]}
    line_layer = {
        "data": data(*rows),
        "mark": {"type": "line", "strokeWidth": 2, "point": False, "interpolate": "linear"},
        "encoding": {"x": across_x, "y": up_y, "color": own, "detail": {"field": "line"}, "strokeDash": dash},
    }
    point_layer = {
        "data": data(*(row for row in rows if row["y"] is not None)),
        "mark": {"type": "point", "filled": True, "size": 36, "opacity": 1 if points else 0},
        "encoding": {"x": across_x, "y": up_y, "color": own, "tooltip": tooltip(("where", hover[0]), ("value", hover[1]))},
    }
    names = {
        "data": data(*_names(lines, colours.text, edges, height)),
        "mark": {"type": "text", "align": "left", "baseline": "middle", "fontWeight": "bold", "dx": 10, "clip": False},
        "encoding": {
            "x": {"datum": last, "type": "quantitative"},
            "y": up_y,
            "text": {"field": "label", "type": "nominal"},
            "color": own,
        },
    }
    layers = [line_layer, point_layer, names]
    if mark is not None:
        place = [{"x": float(mark[0]), "word": mark[1]}]
        layers += [
            {
                "data": data(*place),
                "mark": {"type": "rule", "color": colours.muted, "strokeDash": [3, 3]},
                "encoding": {"x": across_x},
            },
            {
                "data": data(*place),
                "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 6, "dy": -4, "color": colours.muted},
                "encoding": {"x": across_x, "y": {"value": 0}, "text": {"field": "word", "type": "nominal"}},
            },
        ]

    def table() -> Iterable[Row]:
        yield ("x", *(line.name for line in lines))
        for at, values in zip(x, zip(*(line.values for line in lines), strict=True), strict=True):
            yield (float(at), *(float(value) for value in values))

    return Figure(spec=spec(layers, colours, height=height, title=title, note=note, width=WIDTH), table=table)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers inside an interval, about eight."""
    raw = (high - low or 1.0) / 8
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    step = max(step, 1.0) if float(low).is_integer() and float(high).is_integer() else step
    return [float(t) for t in np.arange(np.ceil(low / step) * step, high + 1e-9, step)]


def _names(lines: Sequence[Line], colours: Any, edges: Sequence[float], height: int) -> list[dict[str, Any]]:
    """A name beside the last value of each line; names that would touch are moved apart."""
    span = edges[1] - edges[0]

    def pixels(line: Line) -> float:
        known = line.values[np.isfinite(line.values)]
        at = float(known[-1]) if known.size else edges[0]
        return height * (1 - (min(max(at, edges[0]), edges[1]) - edges[0]) / span)

    ordered = sorted(lines, key=pixels)
    places = [pixels(line) for line in ordered]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + PITCH)
    limit = height - 4.0
    for at in reversed(range(len(places))):  # what has left the plot is pushed back, with those above it
        places[at] = min(places[at], limit)
        limit = places[at] - PITCH
    return [
        {"y": edges[0] + span * (1 - place / height), "label": line.name, "color": colours[line.role]}
        for place, line in zip(places, ordered, strict=True)
    ]
