"""Figures of the lesson on many heads: spectra, one matrix in column blocks, and what each head adds."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.tables import Row
from pages.figures.figure import Figure, Spec, across, data, number, spec, tooltip, up
from pages.figures.palette import Palette, Theme, palette

Array = NDArray[np.floating[Any]]
# Eight colours that differ for every eye; a head's number stands beside its colour.
HEAD_ROLES = ("output", "forget", "input", "candidate", "cell", "reset", "update", "weights")
MOST = 64  # rows and columns of a matrix that is drawn cell by cell


def head_colour(colours: Palette, head: int) -> str:
    """The colour of a head in this lesson's figures."""
    return colours.mark[HEAD_ROLES[head % len(HEAD_ROLES)]]


def head_spectra(
    singular: Array,
    ranks: Sequence[float],
    *,
    names: Sequence[str],
    title: str,
    note: str,
    x_title: str,
    y_title: str,
    hover: tuple[str, str],
    theme: Theme = "light",
) -> Figure:
    """The singular values (N, K) of each head's W_q W_k^T as lines; at the end of each its name and effective rank."""
    colours = palette(theme)
    count = singular.shape[-1]
    top = float(singular.max())
    rows = [
        {"x": i + 1, "y": float(value), "head": names[head], "value": number(float(value)), "color": head_colour(colours, head)}
        for head, line in enumerate(singular)
        for i, value in enumerate(line)
    ]
    keys = [
        {"y": top * (1 - 0.075 * head), "label": f"{name}  {number(ranks[head], 1)}", "color": head_colour(colours, head)}
        for head, name in enumerate(names)
    ]
    x = across(
        "x",
        (0.5, count * 1.3 + 0.5),
        {"title": x_title, "values": sorted({1, *range(4, count + 1, max(4, count // 8))}), "titleAnchor": "start"},
    )
    y = up("y", (0, top * 1.05), {"title": y_title, "grid": True, "tickCount": 5})
    own = {"field": "color", "type": "nominal", "scale": None}
    layers = [
        {
            "data": data(*rows),
            "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y, "color": own, "detail": {"field": "head"}},
        },
        {
            "data": data(*rows),
            "mark": {"type": "point", "filled": True, "size": 28, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": own, "tooltip": tooltip(("head", hover[0]), ("value", hover[1]))},
        },
        {
            "data": data(*keys),
            "mark": {"type": "text", "align": "left", "baseline": "top", "fontWeight": "bold"},
            "encoding": {
                "x": {"value": {"expr": f"width * {(count + 0.6) / (count * 1.3):g}"}},
                "y": y,
                "text": {"field": "label", "type": "nominal"},
                "color": own,
            },
        },
    ]

    def table() -> Iterable[Row]:
        yield ("head", "number", "singular_value")
        for (head, i), value in np.ndenumerate(singular):
            yield (head + 1, i + 1, float(value))

    return Figure(spec=spec(layers, colours, height=260, title=title, note=note), table=table)


def _cells(name: str, count: int, *, reverse: bool = False) -> Spec:
    """A scale on which cell i lies between i and i + 1."""
    scale = {"domain": [0, count], "nice": False, "reverse": reverse}
    return {"field": name, "type": "quantitative", "scale": scale, "axis": None}


def column_blocks(
    matrix: Array,
    heads: int,
    *,
    rows_are_heads: bool,
    coloured: bool,
    title: str,
    note: str,
    names: Sequence[str],
    hover: tuple[str, str],
    theme: Theme = "light",
) -> Figure:
    """One matrix cell by cell with its blocks marked: of columns, or of rows for W_o. ``coloured``: each block in its head's
    colour, as strong as the number is large; else blue to vermilion. Raises ``ValueError`` above 64 rows or columns.
    """
    if max(matrix.shape) > MOST:
        raise ValueError(f"a matrix of {matrix.shape} is too large to be drawn cell by cell")
    colours = palette(theme)
    reach = float(np.abs(matrix).max()) or 1.0
    count = matrix.shape[0 if rows_are_heads else 1]
    cells = []
    for (r, c), value in np.ndenumerate(matrix):
        head = (r if rows_are_heads else c) * heads // count
        plain = colours.positive if value > 0 else colours.negative
        cells.append(
            {
                "x": c, "x2": c + 1, "y": r, "y2": r + 1,
                "color": head_colour(colours, head) if coloured else plain,
                "strength": float(abs(value)) / reach,
                "head": names[head], "value": number(float(value)),
            }
        )  # fmt: skip
    size = count / heads
    bands = [
        {"a": head * size, "b": (head + 1) * size, "name": names[head], "color": head_colour(colours, head)}
        for head in range(heads)
    ]
    x = _cells("x", matrix.shape[1])
    y = _cells("y", matrix.shape[0], reverse=True)
    own = {"field": "color", "type": "nominal", "scale": None}
    along, other, scale = ("y", "x", y) if rows_are_heads else ("x", "y", x)
    edge: tuple[Spec, Spec] = ({"value": -9}, {"value": -3})
    if rows_are_heads:
        edge = ({"value": {"expr": "width + 3"}}, {"value": {"expr": "width + 9"}})
    strength = {"field": "strength", "type": "quantitative", "scale": {"domain": [0, 1], "range": [0, 1]}, "legend": None}
    ends = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}
    said = tooltip(("head", hover[0]), ("value", hover[1]))
    band = {along: scale | {"field": "a"}, f"{along}2": {"field": "b"}, other: edge[0], f"{other}2": edge[1]}
    layers = [
        {
            "data": data(*cells),
            "mark": {"type": "rect", "strokeWidth": 0},
            "encoding": ends | {"color": own, "opacity": strength, "tooltip": said},
        },
        {"data": data(*bands), "mark": {"type": "rect", "clip": False}, "encoding": band | {"color": own}},
        {
            "data": data(*bands[1:]),
            "mark": {"type": "rule", "color": colours.paper, "strokeWidth": 2},
            "encoding": {along: scale | {"field": "a"}},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("row", "column", "head", "value")
        for (r, c), value in np.ndenumerate(matrix):
            yield (r, c, (r if rows_are_heads else c) * heads // count + 1, float(value))

    return Figure(spec=spec(layers, colours, height=420, title=title, note=note, width=480), table=table)
