"""Gradients against distance on one logarithmic axis: three cells side by side, the direct path beside the full Jacobian."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, Spec, across, data, number, power, spec, tooltip, up
from pages.figures.heat import OWN_COLOUR
from pages.figures.palette import MODELS, Palette, Theme, palette
from pages.figures.ramps import Array

HEIGHT = 280.0
APART = 15.0  # pixels between two labels at the ends of lines
DECADES = 16  # powers of ten that are drawn at most, below the largest value


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: ``values`` (n,) at distance 0, 1, ... back from the chosen step; ``color`` for it, ``text`` for its label."""

    key: str
    label: str
    color: str
    text: str
    values: Array
    dash: tuple[int, int] = (1, 0)


def gradient_lines(
    norms: Mapping[str, Array],
    *,
    names: Mapping[str, str],
    title: str,
    x_title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """How strongly a prediction depends on the state so many steps earlier, for LSTM, GRU and RNN on the same text.

    ``norms["lstm"]`` (steps + 1,) ends with the chosen step, as ``Sensitivity.norms[...][: step + 1]``; ``norms["lstm.C"]`` is
    that of another state of the same model, which is dashed. ``names`` are the lines' labels by the same keys, ``hover`` the
    words for distance and value.
    """
    colours = palette(theme)
    lines = [
        Line(
            key=key,
            label=names.get(key, key),
            color=colours.mark[MODELS[key.partition(".")[0]]],
            text=colours.text[MODELS[key.partition(".")[0]]],
            values=np.asarray(values, dtype=np.float64)[::-1],
            dash=(4, 3) if "." in key else (1, 0),
        )
        for key, values in norms.items()
    ]
    return decay(lines, colours, title=title, note=note, x_title=x_title, hover=hover, width=width)


def path_lines(
    *,
    direct: Array | None,
    diagonal: Array,
    norm: Array,
    labels: tuple[str, str, str],
    role: str,
    title: str,
    x_title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """The memory's direct path beside its full Jacobian (diagonal and spectral norm), each (step + 1,) as in ``MemoryPath``.

    ``role`` is that of the gate whose product the direct path is; ``labels`` name direct, diagonal and norm. ``direct`` is None
    for a plain network, which has none.
    """
    colours = palette(theme)
    parts = [
        ("direct", direct, colours.mark[role], colours.text[role], (1, 0)),
        ("diagonal", diagonal, colours.mark["cell"], colours.text["cell"], (1, 0)),
        ("norm", norm, colours.mark["weights"], colours.text["weights"], (4, 3)),
    ]
    lines = [
        Line(key=key, label=label, color=color, text=text, values=np.asarray(values, dtype=np.float64)[::-1], dash=dash)
        for (key, values, color, text, dash), label in zip(parts, labels, strict=True)
        if values is not None
    ]
    return decay(lines, colours, title=title, note=note, x_title=x_title, hover=hover, width=width)


def decay(
    lines: Sequence[Line],
    colours: Palette,
    *,
    title: str,
    note: str,
    x_title: str,
    hover: tuple[str, str],
    width: int,
) -> Figure:
    """Lines over the distance with powers of ten upwards. What is 0, no number, or too small for the axis is a gap."""
    logs = {line.key: _logs(line.values) for line in lines}
    finite = np.concatenate([values[np.isfinite(values)] for values in logs.values()])
    high = int(np.ceil(finite.max() - 1e-9)) if finite.size else 0
    low = max(int(np.floor(finite.min() + 1e-9)), high - DECADES) if finite.size else -1
    low = min(low, high - 1)
    longest = max(len(line.values) for line in lines)
    rows: list[Spec] = []
    ends: list[Spec] = []
    omitted: dict[str, int] = {}
    for line in lines:
        drawn = np.where(logs[line.key] >= low, logs[line.key], np.nan)
        missing = int(np.isnan(drawn).sum())
        if missing:
            omitted[line.key] = missing
        for distance, (y, value) in enumerate(zip(drawn, line.values, strict=True)):
            place = {"key": line.key, "x": distance, "y": None if np.isnan(y) else float(y)}
            rows.append(place | {"label": line.label, "back": str(distance), "value": number(float(value))})
        last = np.flatnonzero(np.isfinite(drawn))
        if last.size:
            at = {"x": int(last[-1]), "y": float(drawn[last[-1]])}
            ends.append(at | {"label": line.label, "color": line.text})
    every = max(1, -int(-(high - low) // 8))
    powers = list(range(high, low - 1, -every))
    y_axis = {
        "values": powers,
        "labelExpr": f"powers[{high} - datum.value]",
        "grid": True,
        "gridColor": colours.hair,
        "title": None,
    }
    x = across("x", [0, max(longest - 1, 1)], _distance_axis(longest, x_title))
    y = up("y", [low, high], y_axis)
    heights = spread([end["y"] for end in ends], low, high, APART * (high - low) / HEIGHT)
    placed = [end | {"place": height} for end, height in zip(ends, heights, strict=True)]
    layers = _line_layers(lines, rows, placed, x, y, hover)

    def table() -> Iterable[Row]:
        yield ("line", "steps_back", "value")
        for line in lines:
            for distance, value in enumerate(line.values):
                yield (line.key, distance, float(value))

    params = {"powers": [power(k) for k in range(high, low - 1, -1)]}
    whole = spec(layers, colours, height=HEIGHT, title=title, note=note, width=width, params=params)
    return Figure(spec=whole, table=table, omitted=omitted)


def _logs(values: Array) -> Array:
    """Powers of ten; NaN for 0 and for what is no number."""
    logs = np.full(values.shape, np.nan)
    np.log10(values, out=logs, where=np.isfinite(values) & (values > 0))
    return logs


def _distance_axis(length: int, title: str) -> Spec:
    """Whole distances, at most about ten of them, at round numbers."""
    every = next(step for step in (1, 2, 5, 10, 20, 25, 50) if step == 50 or length / step <= 10)
    return {"values": list(range(0, length, every)), "format": "d", "title": title}


def spread(heights: Sequence[float], low: float, high: float, apart: float) -> list[float]:
    """Heights for labels near the given ones, in the same order, at least ``apart`` from each other and from low on."""
    order = sorted(range(len(heights)), key=lambda i: -heights[i])
    placed = list(heights)
    at = high + apart
    for i in order:
        at = placed[i] = min(heights[i], at - apart)
    at = low - apart
    for i in reversed(order):
        at = placed[i] = max(placed[i], at + apart)
    return placed


def _line_layers(
    lines: Sequence[Line],
    rows: Sequence[Spec],
    ends: Sequence[Spec],
    x: Spec,
    y: Spec,
    hover: tuple[str, str],
) -> list[Spec]:
    layers: list[Spec] = []
    for line in lines:
        mine = [row for row in rows if row["key"] == line.key]
        stroke = {"type": "line", "strokeWidth": 2, "strokeDash": list(line.dash), "invalid": "break-paths-show-domains"}
        dots = {"type": "point", "filled": True, "size": 14, "opacity": 1, "invalid": "filter"}
        layers += [
            {"data": data(*mine), "mark": stroke | {"color": line.color}, "encoding": {"x": x, "y": y}},
            {"data": data(*mine), "mark": dots | {"color": line.color}, "encoding": {"x": x, "y": y}},
        ]
    named = {"text": {"field": "label", "type": "nominal"}, "color": OWN_COLOUR}
    layers.append(
        {
            "data": data(*ends),
            "mark": {"type": "text", "align": "left", "baseline": "middle", "dx": 10, "fontWeight": "bold"},
            "encoding": {"x": x, "y": up("place", y["scale"]["domain"], y["axis"])} | named,
        }
    )
    shown = tooltip(("label", " "), ("back", hover[0]), ("value", hover[1]))
    layers.append(
        {
            "name": "hover",
            "data": data(*(row for row in rows if row["y"] is not None)),
            "mark": {"type": "point", "size": 160, "opacity": 0, "filled": True},
            "encoding": {"x": x, "y": y, "tooltip": shown},
        }
    )
    return layers
