"""How saturated the gates are: a histogram for each, on one scale."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, Spec, across, data, down, percent, spec, tooltip
from pages.figures.heat import HEADING, OWN_COLOUR, headings
from pages.figures.palette import Theme, palette
from pages.figures.ramps import mix

if TYPE_CHECKING:
    from engine.recurrent.gradients import Saturation

GAP, SHARES, BAR_ROOM = 14.0, 14.0, 64.0  # pixels above a gate's heading, for its two shares, and for its bars


def saturation_bars(
    spreads: Sequence["Saturation"],
    *,
    letters: Mapping[str, str],
    names: Mapping[str, str],
    roles: Mapping[str, str],
    title: str,
    x_title: str,
    below: str,
    above: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """How the values of each gate are spread over 0..1, all on one scale, with the shares below 0.1 and above 0.9 as numbers.

    ``letters``, ``names`` and ``roles`` are by symbol; ``below`` and ``above`` the words after the two shares; ``hover`` the
    words for the interval of a bar and for its share.
    """
    colours = palette(theme)
    largest = max(float(s.counts.max()) / s.count for s in spreads)
    room = GAP + HEADING + SHARES + BAR_ROOM
    height = len(spreads) * room
    bars: list[Spec] = []
    heads: list[Spec] = []
    for place, s in enumerate(spreads):
        floor = (place + 1) * room
        strong, weak = colours.mark[roles[s.name]], mix(colours.paper, colours.mark[roles[s.name]], 0.45)
        for count, low, high in zip(s.counts, s.edges[:-1], s.edges[1:], strict=True):
            share = float(count) / s.count
            outer = high <= 0.1 + 1e-9 or low >= 0.9 - 1e-9
            bars.append(
                {
                    "x": float(low) + 0.002,
                    "x2": float(high) - 0.002,
                    "y": floor,
                    "y2": floor - BAR_ROOM * share / largest,
                    "color": strong if outer else weak,
                    "interval": f"{low:.2f}–{high:.2f}",
                    "share": percent(share),
                }
            )
        heads.append(
            {
                "y": floor - room + GAP + 10,
                "letter": letters[s.name],
                "name": names.get(s.name, ""),
                "color": colours.text[roles[s.name]],
                "low": f"{percent(s.below)} {below}",
                "high": f"{percent(s.above)} {above}",
                "floor": floor,
            }
        )
    axis = {"values": [0, 0.1, 0.5, 0.9, 1], "title": x_title}
    x, y = across("x", [0, 1], axis), down("y", height)
    at = {"x": {"value": 0}, "y": y}
    text: Spec = {"type": "text", "baseline": "middle"}
    layers: list[Spec] = [
        {
            "data": data(*bars),
            "mark": {"type": "rect", "cursor": "default"},
            "encoding": {
                "x": x,
                "x2": {"field": "x2"},
                "y": y,
                "y2": {"field": "y2"},
                "color": OWN_COLOUR,
                "tooltip": tooltip(("interval", hover[0]), ("share", hover[1])),
            },
        },
        {
            "data": data(*({"y": head["floor"]} for head in heads)),
            "mark": {"type": "rule", "stroke": colours.hair},
            "encoding": {"y": y},
        },
        *headings([(h["y"], h["letter"], h["name"], h["color"]) for h in heads], colours, y),
        {
            "data": data(*heads),
            "mark": text | {"align": "left", "dy": 18},
            "encoding": at | {"text": {"field": "low"}},
        },
        {
            "data": data(*heads),
            "mark": text | {"align": "right", "dy": 18},
            "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "high"}},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("symbol", "from", "to", "values", "share")
        for s in spreads:
            for count, low, high in zip(s.counts, s.edges[:-1], s.edges[1:], strict=True):
                yield (s.name, float(low), float(high), int(count), float(count) / s.count)

    return Figure(spec=spec(layers, colours, height=height, title=title, note=note, width=width), table=table)
