"""Which part of the text a state depends on: influence by layer, and what a backward direction knows of the answer."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from engine.tables import Row
from pages.figures.axes import token_axis
from pages.figures.figure import WIDTH, Figure, spec
from pages.figures.gradients import Line, decay
from pages.figures.heat import HEADING, Strip, strip_layers
from pages.figures.palette import Theme, palette
from pages.figures.ramps import Array, gate_scale, symmetric_limit

LAYERS = ("input", "update", "cell", "query")  # the colours of layers, lowest first
BAR = 18.0


def influence_lines(
    norms: Mapping[str, Array],
    depths: Mapping[str, int],
    *,
    names: Mapping[str, str],
    title: str,
    x_title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """A line for each layer and direction: ``norms`` by scope, from the chosen step away into what the direction has read.

    Layers have their colours (``depths``), a backward direction is dashed.
    """
    colours = palette(theme)
    lines = [
        Line(
            key=scope,
            label=names[scope],
            color=colours.mark[LAYERS[depths[scope]]],
            text=colours.text[LAYERS[depths[scope]]],
            values=np.asarray(values, dtype=np.float64),
            dash=(4, 3) if "backward" in scope else (1, 0),
        )
        for scope, values in norms.items()
    ]
    return decay(lines, colours, title=title, note=note, x_title=x_title, hover=hover, width=width)


def step_strips(
    rows: Mapping[str, Array],
    tokens: Sequence[str],
    *,
    names: Mapping[str, str],
    roles: Mapping[str, str],
    title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """One strip for each row (T,) of numbers of at least 0; rows of one role share their scale, from 0 to a power of two."""
    colours, strips, top = palette(theme), [], HEADING
    limits = {
        role: symmetric_limit(np.concatenate([rows[key] for key in rows if roles[key] == role])) for role in set(roles.values())
    }
    for key, values in rows.items():
        strips.append(
            Strip(
                key=key,
                letter="",
                name=names[key],
                role="weights",
                values=np.asarray(values, dtype=np.float64)[None],
                scale=gate_scale(colours, roles[key], limits[roles[key]]),
                top=top,
                height=BAR,
            )
        )
        top += BAR + HEADING
    axis = token_axis(tokens, width=width - 8)
    height = top - HEADING
    layers = strip_layers(strips, axis, colours, height=height, width=width, hover=hover)

    def table() -> Iterable[Row]:
        yield ("step", "token", *rows)
        for t, token in enumerate(tokens):
            yield (t + 1, token, *(float(values[t]) for values in rows.values()))

    return Figure(
        spec=spec(layers, colours, height=height, title=title, note=note, width=width, params={"tokens": axis.labels}),
        table=table,
    )
