"""What a unit follows: a feature of the text above, the unit's state below, on the axis of the tokens."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.symbols import Symbol
from engine.tables import Row
from pages.figures.axes import token_axis
from pages.figures.figure import WIDTH, Figure, spec
from pages.figures.gates import scale_of
from pages.figures.heat import HEADING, Strip, strip_layers
from pages.figures.palette import Theme, palette
from pages.figures.ramps import Array, gate_scale

BAR = 16.0  # pixels of one row


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A feature (T,) with its name, and the state (T,) of the unit that follows it."""

    key: str
    name: str
    feature: Array
    unit: int
    state: Array


def tracking_strips(
    pairs: Sequence[Followed],
    tokens: Sequence[str],
    *,
    state: Symbol,
    unit_names: Mapping[int, str],
    title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """A pair of strips for each feature. A feature runs from 0 to its largest value in this text, a state on its own scale."""
    colours, strips, top = palette(theme), [], HEADING
    for pair in pairs:
        most = max(float(pair.feature.max()), 1.0)
        rows = (
            (f"{pair.key}.feature", "", pair.name, "weights", pair.feature, gate_scale(colours, "weights", most)),
            (pair.key, "H", unit_names[pair.unit], "state", pair.state, scale_of(state, pair.state, colours)),
        )
        for key, letter, name, role, values, scale in rows:
            matrix = np.asarray(values, dtype=np.float64)[None]
            strip = Strip(key=key, letter=letter, name=name, role=role, values=matrix, scale=scale, top=top, height=BAR)
            strips.append(strip)
            top += BAR + HEADING
        top += 8
    axis = token_axis(tokens, width=width - 8)
    height = top - HEADING
    layers = strip_layers(strips, axis, colours, height=height, width=width, hover=hover)

    def table() -> Iterable[Row]:
        yield ("step", "token", *(f"{pair.key}{end}" for pair in pairs for end in ("", f" unit {pair.unit}")))
        for t, token in enumerate(tokens):
            yield (t + 1, token, *(float(v[t]) for pair in pairs for v in (pair.feature, pair.state)))

    return Figure(
        spec=spec(layers, colours, height=height, title=title, note=note, width=width, params={"tokens": axis.labels}),
        table=table,
    )
