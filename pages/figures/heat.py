"""Matrices as colour: strips of units over steps, and maps of tokens over tokens.

The colours are painted once, into one image per matrix: a strip of 64 units over 256 steps is one mark and not 16,384. Absent
values are hatched and never get a number. Numbers stand in the cells up to 32 x 32 and where they can be read.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.tables import Row
from pages.figures import ramps
from pages.figures.axes import MAX_CELLS, TokenAxis, token_axis
from pages.figures.figure import WIDTH, Figure, Spec, across, data, down, number, spec, tooltip
from pages.figures.palette import Palette, Theme, palette
from pages.figures.ramps import Array, Scale

MAX_NUMBERS = 32  # cells on a side with a number in each
NUMBER_SIZE = (30.0, 15.0)  # pixels a number needs
MAX_HOVER = 2048  # cells that answer one by one; beyond that a whole step answers
HEADING = 26.0  # pixels above each strip
LEGEND = 64  # pixels of a legend's bar
OWN_COLOUR: Spec = {"field": "color", "type": "nominal", "scale": None}


@dataclass(frozen=True, kw_only=True)
class Strip:
    """One matrix (rows, columns) between two heights, with what stands above it: a letter in its role's colour and a name."""

    key: str
    letter: str  # "C~" is drawn with its tilde above
    name: str
    role: str
    values: Array
    scale: Scale
    top: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height


def strip_layers(
    strips: Sequence[Strip],
    axis: TokenAxis,
    colours: Palette,
    *,
    height: float,
    width: int,
    hover: tuple[str, str],
    unit: int | None = None,
    turned_axis: Spec | None = None,
) -> list[Spec]:
    """The layers of strips that share one axis of tokens. ``hover`` are the words for step and token, ``unit`` a marked row."""
    x, y = across("x", axis.domain, axis.axis("tokens")), down("y", height, turned_axis)
    x_end, y_end = {"field": "x2"}, {"field": "y2"}
    places = [{"x": axis.domain[0], "x2": axis.domain[1], "y": s.top, "y2": s.bottom} for s in strips]
    pictures = [
        {**p, "url": ramps.cells(s.values, s.scale, colours, height=s.height, width=width).url}
        for p, s in zip(places, strips, strict=True)
    ]
    box = {"x": x, "x2": x_end, "y": y, "y2": y_end}
    layers: list[Spec] = [
        {
            "data": data(*pictures),
            "mark": {"type": "image", "aspect": False, "smooth": False},
            "encoding": box | {"url": {"field": "url", "type": "nominal"}},
        },
        {
            "data": data(*places),
            "mark": {"type": "rect", "fill": None, "stroke": colours.hair, "strokeWidth": 1},
            "encoding": box,
        },
        *headings([(s.top - 8, s.letter, s.name, colours.text[s.role]) for s in strips], colours, y),
        *_legends(strips, colours, y),
        *_numbers(strips, colours, width, x, y),
    ]
    if axis.selected is not None:
        outline = [p | {"x": axis.selected - 0.5, "x2": axis.selected + 0.5} for p in places]
        mark = {"type": "rect", "fill": None, "stroke": colours.ink, "strokeWidth": 1.5}
        layers.append({"data": data(*outline), "mark": mark, "encoding": box})
    if unit is not None:
        rows = [{"y": s.top + (unit + 0.5) * s.height / len(s.values)} for s in strips if unit < len(s.values)]
        mark = {"type": "point", "shape": "triangle-right", "size": 30, "filled": True, "opacity": 1, "color": colours.ink}
        layers.append({"data": data(*rows), "mark": mark, "encoding": {"x": {"value": -6}, "y": y}})
    layers.append(_hover(strips, axis, box, hover, unit))
    return layers


def headings(rows: Sequence[tuple[float, str, str, str]], colours: Palette, y: Spec) -> list[Spec]:
    """A letter in its role's colour and a quieter name at the left of each height: rows of (height, letter, name, colour)."""
    wide = 26 if any(len(letter.rstrip("~")) > 1 for _, letter, _, _ in rows) else 20
    named = [{"y": top, "letter": letter.rstrip("~"), "name": name, "color": color} for top, letter, name, color in rows]
    tildes = [{"y": top, "color": color} for top, letter, _, color in rows if letter.endswith("~")]
    at = {"x": {"value": 0}, "y": y}
    text: Spec = {"type": "text", "align": "left", "baseline": "middle"}
    bold = text | {"fontWeight": "bold"}
    layers = [
        {
            "data": data(*named),
            "mark": bold,
            "encoding": at | {"text": {"field": "letter", "type": "nominal"}, "color": OWN_COLOUR},
        },
        {
            "data": data(*named),
            "mark": text | {"dx": wide, "color": colours.muted},
            "encoding": at | {"text": {"field": "name", "type": "nominal"}},
        },
    ]
    if tildes:  # few faces carry a C with a tilde: it is set above the letter
        mark = bold | {"text": "˜", "align": "center", "dx": wide - 16, "dy": -4}
        layers.append({"data": data(*tildes), "mark": mark, "encoding": at | {"color": OWN_COLOUR}})
    return layers


def _legends(strips: Sequence[Strip], colours: Palette, y: Spec) -> list[Spec]:
    """At the right above each strip its scale, with both ends."""
    low, high = {"value": {"expr": f"width - {34 + LEGEND}"}}, {"value": {"expr": "width - 34"}}
    bars = [{"y": s.top - 12, "y2": s.top - 4, "url": ramps.bar(s.scale, LEGEND).url} for s in strips]
    ends = [{"y": s.top - 8, "low": _end(s.scale.interval[0]), "high": _end(s.scale.interval[1])} for s in strips]
    text: Spec = {"type": "text", "baseline": "middle", "color": colours.muted}
    return [
        {
            "data": data(*bars),
            "mark": {"type": "image", "aspect": False, "smooth": True},
            "encoding": {"x": low, "x2": high, "y": y, "y2": {"field": "y2"}, "url": {"field": "url", "type": "nominal"}},
        },
        {
            "data": data(*ends),
            "mark": text | {"align": "right", "dx": -6},
            "encoding": {"x": low, "y": y, "text": {"field": "low", "type": "nominal"}},
        },
        {
            "data": data(*ends),
            "mark": text | {"align": "left", "dx": 6},
            "encoding": {"x": high, "y": y, "text": {"field": "high", "type": "nominal"}},
        },
    ]


def _end(value: float) -> str:
    """An end of a scale, as short as it is exact."""
    return f"{value:g}".replace("-", "−")


def _numbers(strips: Sequence[Strip], colours: Palette, width: int, x: Spec, y: Spec) -> list[Spec]:
    """A number in each cell, in ink or paper, whichever can be read on its colour; none where there is no value."""
    rows = []
    for s in strips:
        count, columns = s.values.shape
        if max(count, columns) > MAX_NUMBERS or width / columns < NUMBER_SIZE[0] or s.height / count < NUMBER_SIZE[1]:
            continue
        painted = s.scale.paint(s.values)
        for (r, c), value in np.ndenumerate(s.values):
            if np.isfinite(value):
                cell = ramps.hexadecimal(painted[r, c])
                readable = max((colours.ink, colours.paper), key=lambda colour: ramps.contrast(colour, cell))
                place = {"x": c, "y": s.top + (r + 0.5) * s.height / count}
                rows.append(place | {"text": number(float(value), 2), "color": readable})
    if not rows:
        return []
    mark = {"type": "text", "baseline": "middle", "align": "center"}
    return [{"data": data(*rows), "mark": mark, "encoding": {"x": x, "y": y, "text": {"field": "text"}, "color": OWN_COLOUR}}]


def _hover(strips: Sequence[Strip], axis: TokenAxis, box: Spec, words: tuple[str, str], unit: int | None) -> Spec:
    """Unseen marks that say the number under the pointer: each cell, or each step where the cells are too many."""
    rows: list[dict[str, Any]] = []
    step = axis.shown[0]
    single = sum(s.values.size for s in strips) <= MAX_HOVER
    for t, label in enumerate(axis.labels):
        place = {"x": t - 0.5, "x2": t + 0.5, "step": str(step + t), "token": label}
        if single:
            for s in strips:
                high = s.height / len(s.values)
                for r, value in enumerate(s.values[:, t]):
                    where = {"y": s.top + r * high, "y2": s.top + (r + 1) * high, "unit": str(r)}
                    rows.append(place | where | {"value": f"{s.letter}  {number(float(value))}"})
        else:
            for s in strips:
                column = s.values[:, t] if unit is None else s.values[unit : unit + 1, t]
                shown = number(float(np.nanmean(column))) if np.isfinite(column).any() else number(float("nan"))
                rows.append(place | {"y": s.top, "y2": s.bottom, "value": f"{s.letter}  {shown}"})
    mark = {"type": "rect", "opacity": 0}
    shown_fields = tooltip(("step", words[0]), ("token", words[1]), *([("unit", "#")] if single else []), ("value", " "))
    return {"name": "hover", "data": data(*rows), "mark": mark, "encoding": box | {"tooltip": shown_fields}}


def heat_map(
    values: Array,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    scale: Callable[[Palette], Scale],
    title: str,
    note: str = "",
    hover: tuple[str, str],
    theme: Theme = "light",
    width: int = WIDTH,
    cell: float = 24.0,
    selected: int | None = None,
) -> Figure:
    """A matrix of row tokens over column tokens, for instance attention weights: NaN is hatched, 0 is a colour.

    ``scale`` makes the fixed scale (``lambda p: gate_scale(p, "query")``). Raises ``ValueError`` when rows and columns are not
    as many as the matrix has, or more than 256: a wrong label is worse than none.
    """
    if values.shape != (len(rows), len(columns)) or not values.size:
        raise ValueError(f"{len(rows)} row labels and {len(columns)} column labels do not fit a matrix of {values.shape}")
    if max(values.shape) > MAX_CELLS:
        raise ValueError(f"a matrix of {values.shape} is too large for one picture: choose a window of {MAX_CELLS}")
    colours = palette(theme)
    height = 24 + max(len(rows) * min(cell, 480 / len(rows)), 8)
    across_axis = token_axis(columns, width=width - 80, selected=selected)
    down_axis = token_axis(rows, width=height - 24, down=True)
    pitch = (height - 24) / len(rows)
    side = {
        "values": [24 + (i + 0.5) * pitch for i in down_axis.ticks],
        "labelExpr": f"rows[floor((datum.value - 24) / {pitch})]",
        "labelOverlap": "greedy",
        "title": None,
    }
    strip = Strip(
        key="map", letter="", name="", role="weights", values=values, scale=scale(colours), top=24, height=height - 24
    )
    layers = strip_layers([strip], across_axis, colours, height=height, width=width - 80, hover=hover, turned_axis=side)

    def table() -> Iterable[Row]:
        yield ("row", "row_token", "column", "column_token", "value")
        for (r, c), value in np.ndenumerate(values):
            yield (r + 1, rows[r], c + 1, columns[c], float(value))

    params = {"tokens": across_axis.labels, "rows": down_axis.labels}
    absent = int((~np.isfinite(values)).sum())
    whole = spec(layers, colours, height=height, title=title, note=note, width=width, params=params)
    return Figure(spec=whole, table=table, omitted={"absent": absent} if absent else {})
