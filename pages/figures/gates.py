"""Gates and states over time, and what an intervention changed in them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.tables import Row, state_rows
from pages.figures.axes import token_axis
from pages.figures.figure import WIDTH, Figure, spec
from pages.figures.heat import HEADING, Strip, strip_layers
from pages.figures.palette import Palette, Theme, palette
from pages.figures.ramps import Array, Scale, gate_scale, signed_scale, symmetric_limit

if TYPE_CHECKING:
    from engine.symbols import Symbol
    from engine.trace import Trace

STRIP = (40.0, 72.0)  # pixels a strip is high, at least and at most


def letter(symbol: "Symbol") -> str:
    """A symbol as its letter, a candidate with a tilde behind it."""
    return symbol.letter + ("~" if symbol.tilde else "")


def scale_of(symbol: "Symbol", values: Array, colours: Palette) -> Scale:
    """The fixed scale of a symbol: a gate 0..1, a bounded state -1..1, a cell up to the power of two that holds it."""
    if symbol.interval[0] == 0:
        return gate_scale(colours, symbol.role)
    return signed_scale(colours, symbol.interval[1] if symbol.bounded else symmetric_limit(values))


def gate_strips(
    trace: "Trace",
    tokens: Sequence[str],
    *,
    names: Mapping[str, str],
    hover: tuple[str, str],
    title: str,
    note: str = "",
    symbols: Sequence[str] | None = None,
    selected: int | None = None,
    unit: int | None = None,
    theme: Theme = "light",
    width: int = WIDTH,
    batch: int = 0,
) -> Figure:
    """A strip of units over steps for each gate and state, all with their fixed scales.

    ``names`` are the symbols' names in the page's language, ``hover`` the words for step and token.
    """
    values = {name: trace[name][:, batch].T for name in _drawn(trace, symbols)}
    return _strips(
        trace, values, tokens, names, hover, title, note, selected, unit, theme, width, lambda: state_rows(trace, tokens)
    )


def difference_strips(
    changed: "Trace",
    baseline: "Trace",
    tokens: Sequence[str],
    *,
    names: Mapping[str, str],
    hover: tuple[str, str],
    title: str,
    note: str = "",
    symbols: Sequence[str] | None = None,
    selected: int | None = None,
    unit: int | None = None,
    theme: Theme = "light",
    width: int = WIDTH,
    batch: int = 0,
) -> Figure:
    """What an intervention changed: changed minus baseline for each symbol, blue for less and vermilion for more."""
    values = {name: (changed[name] - baseline[name])[:, batch].T for name in _drawn(changed, symbols)}

    def table() -> Iterable[Row]:
        return state_rows(changed, tokens, baseline=baseline)

    reach = {name: np.concatenate([run[name][:, batch].T for run in (changed, baseline)]) for name in values}
    return _strips(changed, values, tokens, names, hover, title, note, selected, unit, theme, width, table, reach)


def _drawn(trace: "Trace", symbols: Sequence[str] | None) -> list[str]:
    return [name for name in symbols or trace if trace.symbol(name).axes.endswith("H")]


def _strips(
    trace: "Trace",
    values: Mapping[str, Array],
    tokens: Sequence[str],
    names: Mapping[str, str],
    hover: tuple[str, str],
    title: str,
    note: str,
    selected: int | None,
    unit: int | None,
    theme: Theme,
    width: int,
    table: Callable[[], Iterable[Row]],
    reach: Mapping[str, Array] | None = None,
) -> Figure:
    colours, strips, top = palette(theme), [], HEADING
    if len(tokens) != len(trace):
        raise ValueError(f"{len(tokens)} tokens for a run of {len(trace)} steps")
    for name, matrix in values.items():
        symbol = trace.symbol(name)
        scale = scale_of(symbol, reach[name] if reach else matrix, colours)
        if reach:
            scale = signed_scale(colours, max(map(abs, scale.interval)))
        height = min(max(float(len(matrix)), STRIP[0]), STRIP[1])
        strips.append(
            Strip(
                key=name,
                letter=("Δ" if reach else "") + letter(symbol),
                name=names.get(name, ""),
                role=symbol.role,
                values=matrix,
                scale=scale,
                top=top,
                height=height,
            )
        )
        top += height + HEADING
    axis = token_axis(tokens, width=width - 8, selected=selected)
    layers = strip_layers(strips, axis, colours, height=top - HEADING + 4, width=width, hover=hover, unit=unit)
    absent = {name: int((~np.isfinite(matrix)).sum()) for name, matrix in values.items()}
    return Figure(
        spec=spec(
            layers, colours, height=top - HEADING + 4, title=title, note=note, width=width, params={"tokens": axis.labels}
        ),
        table=table,
        omitted={name: count for name, count in absent.items() if count},
    )
