"""The recall experiment: the same LSTM trained from two forget biases, what it remembers and how its forget gate lets it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.tables import Row
from pages.figures.axes import token_axis
from pages.figures.figure import WIDTH, Figure, Spec, across, data, down, number, percent, spec, tooltip, up
from pages.figures.gradients import APART, spread
from pages.figures.heat import OWN_COLOUR
from pages.figures.palette import Palette, Theme, palette
from pages.figures.ramps import Array

ROW = 34.0  # pixels of one model's line
HEIGHT = 180.0


def recall_accuracy(
    accuracy: Mapping[str, float],
    *,
    names: Mapping[str, str],
    chance: float,
    chance_label: str,
    title: str,
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """The share of symbols recalled by each model, on 0..1, with the share that guessing gets (``chance_label`` names it)."""
    colours = palette(theme)
    height = ROW * len(accuracy) + 26
    rows: list[Spec] = [
        {"y": 26 + ROW * (i + 0.5), "x": share, "name": names.get(key, key), "share": percent(share)}
        | _colours(key, accuracy, colours)
        for i, (key, share) in enumerate(accuracy.items())
    ]
    x = across("x", [0, 1], {"values": [0, 0.25, 0.5, 0.75, 1], "format": ".0%", "title": None})
    y = down("y", height)
    middle: Spec = {"type": "text", "baseline": "middle"}
    layers: list[Spec] = [
        {
            "data": data({"x": chance, "y": 20, "y2": height}),
            "mark": {"type": "rule", "stroke": colours.muted, "strokeDash": [3, 3]},
            "encoding": {"x": x, "y": y, "y2": {"field": "y2"}},
        },
        {
            "data": data({"x": chance, "y": 8, "text": chance_label}),
            "mark": middle | {"align": "center", "color": colours.muted},
            "encoding": {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}},
        },
        {
            "data": data(*(row | {"zero": 0, "top": row["y"] + 3, "bottom": row["y"] + 9} for row in rows)),
            "mark": {"type": "rect"},
            "encoding": {
                "x": x | {"field": "zero"},
                "x2": {"field": "x"},
                "y": down("top", height),
                "y2": {"field": "bottom"},
                "color": OWN_COLOUR,
            },
        },
        {
            "data": data(*rows),
            "mark": middle | {"align": "left", "dy": -7},
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name", "type": "nominal"}},
        },
        {
            "data": data(*rows),
            "mark": middle | {"align": "right", "dy": -7, "fontWeight": "bold"},
            "encoding": {
                "x": {"value": "width"},
                "y": y,
                "text": {"field": "share", "type": "nominal"},
                "color": OWN_COLOUR | {"field": "text"},
            },
        },
    ]

    def table() -> Iterable[Row]:
        yield ("model", "accuracy", "chance")
        yield from ((key, float(share), float(chance)) for key, share in accuracy.items())

    return Figure(spec=spec(layers, colours, height=height, title=title, note=note, width=width), table=table)


def recall_gates(
    gates: Mapping[str, Array],
    tokens: Sequence[str],
    *,
    names: Mapping[str, str],
    title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
    selected: int | None = 0,
) -> Figure:
    """The mean forget gate of each model at each step, from the symbol to remember over the noise; ``gates[model]`` (T,).

    ``hover`` are the words for step and value. Raises ``ValueError`` where tokens and steps are not as many.
    """
    colours = palette(theme)
    for key, values in gates.items():
        if values.shape != (len(tokens),):
            raise ValueError(f"{len(tokens)} tokens for the {values.shape} values of {key}")
    axis = token_axis(tokens, width=width - 160, selected=selected)
    x = across("x", axis.domain, axis.axis("tokens"))
    y = up("y", [0, 1], {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "grid": True, "gridColor": colours.hair, "title": None})
    layers: list[Spec] = []
    rows: list[Spec] = []
    for key, values in gates.items():
        paint = _colours(key, gates, colours)
        mine: list[Spec] = [
            {
                "x": t,
                "y": float(v) if np.isfinite(v) else None,
                "step": str(t + 1),
                "value": number(float(v)),
                "name": names.get(key, key),
            }
            for t, v in enumerate(values)
        ]
        rows += mine
        line = {"type": "line", "strokeWidth": 2, "invalid": "break-paths-show-domains", "color": paint["color"]}
        dots = {"type": "point", "filled": True, "size": 16, "opacity": 1, "invalid": "filter", "color": paint["color"]}
        layers += [{"data": data(*mine), "mark": mark, "encoding": {"x": x, "y": y}} for mark in (line, dots)]
    heights = spread([float(v[-1]) if np.isfinite(v[-1]) else 0.0 for v in gates.values()], 0, 1, APART / HEIGHT)
    ends = [
        {"x": len(tokens) - 1, "y": height, "name": names.get(key, key)} | _colours(key, gates, colours)
        for (key, height) in zip(gates, heights, strict=True)
    ]
    layers += [
        {
            "data": data(*ends),
            "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 10, "fontWeight": "bold"},
            "encoding": {"x": x, "y": y, "text": {"field": "name", "type": "nominal"}, "color": OWN_COLOUR | {"field": "text"}},
        },
        {
            "name": "hover",
            "data": data(*(row for row in rows if row["y"] is not None)),
            "mark": {"type": "point", "size": 160, "opacity": 0, "filled": True},
            "encoding": {"x": x, "y": y, "tooltip": tooltip(("name", " "), ("step", hover[0]), ("value", hover[1]))},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("step", "token", *gates)
        for t, token in enumerate(tokens):
            yield (t + 1, token, *(float(values[t]) for values in gates.values()))

    whole = spec(layers, colours, height=HEIGHT, title=title, note=note, width=width, params={"tokens": axis.labels})
    return Figure(spec=whole, table=table)


def _colours(key: str, among: Mapping[str, Any], colours: Palette) -> dict[str, str]:
    """The last model is the one to look at: it has the forget gate's colour, the others are grey."""
    role = "forget" if key == list(among)[-1] else "weights"
    return {"color": colours.mark[role], "text": colours.text[role]}
