"""Rank against frequency on two logarithmic axes, with the fitted line of Zipf's law for each length of run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.tables import Row
from engine.text.display import shorten, visible
from engine.text.frequencies import RankFrequency
from pages.figures.figure import WIDTH, Figure, Spec, across, data, grouped, number, power, spec, tooltip, up
from pages.figures.heat import OWN_COLOUR
from pages.figures.palette import Theme, palette

HEIGHT = 340.0
MOST_POINTS = 160  # of one line: ranks evenly apart on the logarithmic axis
ROLES = ("output", "forget", "input", "cell")
LONGEST = 28


@dataclass(frozen=True, kw_only=True)
class Named:
    """One line: what it counts, and what it is called."""

    found: RankFrequency
    name: str


def rank_lines(
    lines: Sequence[Named],
    *,
    title: str,
    x_title: str,
    y_title: str,
    exponent: str,
    hover: tuple[str, str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """Points are measured counts, dashed lines the fits. ``exponent`` names the slope, ``hover`` what, rank and count.

    Of many ranks those evenly apart on the axis are drawn, always the first and the last; the table has them all.
    """
    colours = palette(theme)
    ranks = max((len(line.found.counts) for line in lines), default=1)
    most = max((int(line.found.counts[0]) for line in lines if len(line.found.counts)), default=1)
    right = max(int(np.ceil(np.log10(max(ranks, 2)))), 1)
    high = max(int(np.ceil(np.log10(max(most, 2)))), 1)
    axis = {"grid": True, "gridColor": colours.hair}
    x = across(
        "x",
        [0, right],
        axis | {"values": list(range(right + 1)), "labelExpr": "powers[datum.value]", "title": x_title},
    )
    y = up("y", [0, high], axis | {"values": list(range(high + 1)), "labelExpr": "powers[datum.value]", "title": y_title})
    points: list[Spec] = []
    fits: list[Spec] = []
    names: list[Spec] = []
    for place, line in enumerate(lines):
        found, color = line.found, colours.mark[ROLES[place]]
        points += [
            {
                "x": float(np.log10(rank)),
                "y": float(np.log10(found.counts[rank - 1])),
                "color": color,
                "what": shorten(" · ".join(visible(token) for token in found.ngrams[rank - 1]), LONGEST),
                "rank": grouped(rank),
                "count": grouped(int(found.counts[rank - 1])),
            }
            for rank in _drawn(len(found.counts))
        ]
        fitted = found.line()
        if len(fitted):
            ends = (0, len(fitted) - 1)
            fits += [
                {"x": float(np.log10(i + 1)), "y": max(float(np.log10(fitted[i])), 0.0), "color": color, "line": str(place)}
                for i in ends
            ]
        slope = "" if found.exponent is None else f"{exponent} {number(found.exponent, 2)}"
        names.append({"y": 12 + 18 * place, "name": f"{line.name}   {slope}".rstrip(), "color": colours.text[ROLES[place]]})
    colour = OWN_COLOUR | {"field": "color"}
    shown = tooltip(*zip(("what", "rank", "count"), hover, strict=True))
    layers: list[Spec] = [
        {
            "data": data(*points),
            "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.75},
            "encoding": {"x": x, "y": y, "color": colour},
        },
        *(
            {
                "data": data(*(row for row in fits if row["line"] == str(place))),
                "mark": {"type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5, "color": colours.mark[ROLES[place]]},
                "encoding": {"x": x, "y": y},
            }
            for place in sorted({int(row["line"]) for row in fits})
        ),
        *(
            {
                "data": data(row),
                "mark": {"type": "text", "align": "right", "baseline": "middle", "fontWeight": "bold", "color": row["color"]},
                "encoding": {"x": {"value": {"expr": "width - 6"}}, "y": {"value": row["y"]}, "text": {"field": "name"}},
            }
            for row in names
        ),
        {
            "name": "hover",
            "data": data(*points),
            "mark": {"type": "point", "filled": True, "size": 120, "opacity": 0},
            "encoding": {"x": x, "y": y, "tooltip": shown},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("n", "rank", "tokens", "count", "fitted")
        for line in lines:
            fitted = line.found.line()
            for i, (ngram, count) in enumerate(zip(line.found.ngrams, line.found.counts, strict=True)):
                yield (line.found.n, i + 1, " ".join(ngram), int(count), float(fitted[i]) if i < len(fitted) else None)

    params = {"powers": [power(k) for k in range(max(right, high) + 1)]}
    whole = spec(layers, colours, height=HEIGHT, title=title, note=note, width=width, params=params)
    return Figure(spec=whole, table=table)


def _drawn(ranks: int) -> list[int]:
    """The ranks, from 1, that are drawn."""
    if ranks <= MOST_POINTS:
        return list(range(1, ranks + 1))
    return sorted({round(float(rank)) for rank in np.geomspace(1, ranks, MOST_POINTS)})
