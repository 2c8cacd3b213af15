"""Curves over a number line with their spread and levels to beat, and eigenvalues in the complex plane."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, Spec, across, data, number, spec, tooltip, up
from pages.figures.gradients import APART, spread
from pages.figures.heat import OWN_COLOUR
from pages.figures.palette import Palette, Theme, palette
from pages.figures.ramps import Array

HEIGHT = 280.0
PLANE = 300.0  # pixels of the complex plane, square
LABELS = 0.2  # of the width: room for the names at the ends of the curves


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve: ``y`` over ``x`` (n,), and where there is one its spread from ``low`` to ``high`` (n,)."""

    key: str
    label: str
    color: str
    text: str
    x: Array | NDArray[np.int64]
    y: Array
    low: Array | None = None
    high: Array | None = None


def curves(
    lines: Sequence[Curve],
    *,
    title: str,
    x_title: str,
    hover: tuple[str, str],
    note: str = "",
    levels: Sequence[tuple[str, float]] = (),
    zero: bool = False,
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """Curves that share their axes, each with its name at its end; ``levels`` are dashed lines across. ``hover`` names x and y.

    ``zero``: the vertical axis begins at 0. What is no number is a gap, and is counted.
    """
    colours = palette(theme)
    parts = [part for line in lines for part in (line.y, line.low, line.high) if part is not None]
    finite = np.concatenate([np.asarray(part)[np.isfinite(part)] for part in parts] + [np.array([v for _, v in levels])])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    low = min(low, 0.0) if zero else low
    pad = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    low, high = (low if zero and low == 0 else low - pad), high + pad
    first = min(float(line.x[0]) for line in lines)
    last = max(float(line.x[-1]) for line in lines)
    room = (last - first or 1.0) * LABELS / (1 - LABELS)
    x_axis = {"title": x_title, "values": _ticks(first, last), "format": "d", "labelOverlap": "greedy"}
    x = across("x", [first, last + room], x_axis)
    y_axis = {"title": None, "grid": True, "gridColor": colours.hair, "tickCount": 5}
    y = up("y", [low, high], y_axis)
    layers: list[Spec] = []
    rows: list[Spec] = []
    ends: list[Spec] = []
    omitted: dict[str, int] = {}
    for line in lines:
        if line.low is not None and line.high is not None:
            band = [
                {"x": float(at), "y": float(a), "y2": float(b)}
                for at, a, b in zip(line.x, line.low, line.high, strict=True)
                if np.isfinite(a) and np.isfinite(b)
            ]
            mark = {"type": "area", "color": line.color, "opacity": 0.16}
            layers.append({"data": data(*band), "mark": mark, "encoding": {"x": x, "y": y, "y2": {"field": "y2"}}})
    for line in lines:
        mine: list[Spec] = []
        for at, value in zip(line.x, line.y, strict=True):
            there = bool(np.isfinite(value))
            place = {"x": float(at), "y": float(value) if there else None, "at": number(float(at), 0), "label": line.label}
            mine.append(place | {"value": number(float(value))})
        missing = int((~np.isfinite(line.y)).sum())
        if missing:
            omitted[line.key] = missing
        stroke = {"type": "line", "strokeWidth": 2, "color": line.color, "invalid": "break-paths-show-domains"}
        layers.append({"data": data(*mine), "mark": stroke, "encoding": {"x": x, "y": y}})
        known = [row for row in mine if row["y"] is not None]
        if known:
            ends.append({"x": last, "y": known[-1]["y"], "label": line.label, "color": line.text})
        rows += known
    for name, level in levels:
        rule = {"type": "rule", "strokeDash": [2, 4], "strokeWidth": 1.5, "color": colours.muted}
        at = [{"y": level, "x": first, "x2": last}]
        layers.append({"data": data(*at), "mark": rule, "encoding": {"y": y, "x": x, "x2": {"field": "x2"}}})
        ends.append({"x": last, "y": level, "label": name, "color": colours.muted})
    heights = spread([end["y"] for end in ends], low, high, APART * (high - low) / HEIGHT)
    placed = [end | {"place": at} for end, at in zip(ends, heights, strict=True)]
    named = {"type": "text", "align": "left", "baseline": "middle", "dx": 8, "fontWeight": "bold"}
    at = {"x": x, "y": up("place", [low, high], y_axis), "text": {"field": "label", "type": "nominal"}, "color": OWN_COLOUR}
    layers.append({"data": data(*placed), "mark": named, "encoding": at})
    shown = tooltip(("label", " "), ("at", hover[0]), ("value", hover[1]))
    mark = {"type": "point", "size": 120, "opacity": 0, "filled": True}
    layers.append({"name": "hover", "data": data(*rows), "mark": mark, "encoding": {"x": x, "y": y, "tooltip": shown}})

    def table() -> Iterable[Row]:
        yield ("curve", "x", "y", "low", "high")
        for line in lines:
            for place, value in enumerate(line.y):
                ends = (None if part is None else float(part[place]) for part in (line.low, line.high))
                yield (line.key, float(line.x[place]), float(value), *ends)

    whole = spec(layers, colours, height=HEIGHT, title=title, note=note, width=width)
    return Figure(spec=whole, table=table, omitted=omitted)


def _ticks(first: float, last: float, most: int = 8) -> list[float]:
    """Round whole numbers from ``first`` to ``last``, at most about ``most`` of them."""
    span = max(last - first, 1.0)
    step = next(size for power in range(9) for size in (10**power, 2 * 10**power, 5 * 10**power) if span / size <= most)
    return [float(at) for at in range(int(np.ceil(first / step)) * step, int(last) + 1, step)]


def eigenvalues(
    values: Sequence[complex],
    *,
    role: str,
    title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
) -> Figure:
    """Eigenvalues, the largest first (its modulus is written beside it), in the complex plane with the unit circle.

    ``hover`` are the words for an eigenvalue and its modulus.
    """
    colours: Palette = palette(theme)
    reach = max(1.15, 1.1 * max((abs(value) for value in values), default=0.0))
    angles = np.linspace(0, 2 * np.pi, 121)
    circle = [{"x": float(np.cos(a)), "y": float(np.sin(a)), "order": i} for i, a in enumerate(angles)]
    axis = {"title": None, "grid": True, "gridColor": colours.hair, "values": [-1, 0, 1]}
    x, y = across("x", [-reach, reach], axis), up("y", [-reach, reach], axis)
    # However wide the figure is drawn, a unit is as long across as it is upwards: the circle is round.
    x["scale"] = {"nice": False, "zero": False} | {
        f"domain{end}": {"expr": f"{sign * reach!r} * width / height"} for end, sign in (("Min", -1), ("Max", 1))
    }
    points = [
        {"x": value.real, "y": value.imag, "value": _complex(value), "modulus": number(abs(value))}
        for value in map(complex, values)
    ]
    largest = points[:1]
    shown = tooltip(("value", hover[0]), ("modulus", hover[1]))
    dot = {"type": "point", "filled": True, "size": 70, "opacity": 0.85, "color": colours.mark[role]}
    layers: list[Spec] = [
        {
            "data": data(*circle),
            "mark": {"type": "line", "color": colours.muted, "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y, "order": {"field": "order", "type": "quantitative"}},
        },
        {"name": "hover", "data": data(*points), "mark": dot, "encoding": {"x": x, "y": y, "tooltip": shown}},
        {
            "data": data(*largest),
            "mark": {"type": "text", "align": "left", "dx": 9, "dy": -9, "fontWeight": "bold", "color": colours.text[role]},
            "encoding": {"x": x, "y": y, "text": {"field": "modulus", "type": "nominal"}},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("real", "imaginary", "modulus")
        for value in map(complex, values):
            yield (value.real, value.imag, abs(value))

    whole = spec(layers, colours, height=PLANE, title=title, note=note, width=int(PLANE) + 60)
    return Figure(spec=whole, table=table)


def _complex(value: complex) -> str:
    if not value.imag:
        return number(value.real)
    return f"{number(value.real)} {'+' if value.imag > 0 else '−'} {number(abs(value.imag))}i"
