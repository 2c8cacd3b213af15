"""What a figure is, and what all figures share: one size of text, one way to write numbers, one look."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.notation import format_number
from engine.tables import Row
from pages.figures.palette import Palette

Spec = dict[str, Any]
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
FONT = (
    '"Source Sans", "Source Sans 3", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", '
    '"Segoe UI", Helvetica, Arial, sans-serif'
)
TEXT, TITLE = 12, 14  # pixels: everything is TEXT, but for the title
WIDTH = 720


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A Vega-Lite specification, what it shows as a table, and what its limits left out.

    ``omitted`` counts the values that could not be drawn (zero on a logarithmic axis, no number), by what they belong to: the
    page says so.
    """

    spec: Spec = field(repr=False)
    table: Callable[[], Iterable[Row]] = field(repr=False)  # made only when somebody takes it home
    omitted: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[Row, ...]:
        """What the figure shows, as a table with its header first."""
        return tuple(self.table())


def number(value: float, digits: int = 3) -> str:
    """A number as everywhere on the page: true minus sign, ties away from zero; an absent one as a dash."""
    return "–" if value != value else format_number(value, digits, minus="−")


def percent(share: float) -> str:
    """A share as a whole percentage; what is not quite 0 or 100 is not shown as such."""
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{int(100 * share + 0.5)}%"


def power(exponent: int) -> str:
    """A power of ten as a tick of a logarithmic axis: 1000, 0.01, 1e−6."""
    if -3 <= exponent <= 3:
        return f"{10.0**exponent:.{max(-exponent, 0)}f}"
    return f"1e{exponent}".replace("-", "−")


def grouped(count: int) -> str:
    """A whole number with its thousands apart."""
    return f"{count:,}"


def spec(
    layers: Sequence[Spec],
    palette: Palette,
    *,
    height: float,
    title: str,
    note: str = "",
    width: int = WIDTH,
    params: Mapping[str, Any] | None = None,
    description: str = "",
) -> Spec:
    """A whole specification from its layers: transparent, ``width`` pixels wide all in all, ``height`` inside the axes.

    ``title`` and ``note`` (one quieter line below it) are drawn; ``description`` is for screen readers, the title if left out.
    ``params`` are named values that expressions read: text reaches the browser as data.
    """
    heading: Spec = {"text": title} | ({"subtitle": note} if note else {})
    return {
        "$schema": SCHEMA,
        "description": description or title,
        "background": "transparent",
        "width": width,
        "height": round(height),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 4, "top": 4, "right": 4, "bottom": 4},  # Streamlit writes into it: a number would stop it
        "title": heading,
        "params": [{"name": name, "value": value} for name, value in (params or {}).items()],
        "layer": list(layers),
        "config": {
            "font": FONT,
            "view": {"stroke": None},
            "axis": {
                "domain": False,
                "ticks": False,
                "grid": False,
                "gridColor": palette.hair,
                "labelColor": palette.muted,
                "labelFontSize": TEXT,
                "labelPadding": 6,
                "titleColor": palette.muted,
                "titleFontSize": TEXT,
                "titleFontWeight": "normal",
                "titlePadding": 8,
            },
            "title": {
                "anchor": "start",
                "frame": "bounds",
                "color": palette.ink,
                "fontSize": TITLE,
                "fontWeight": "bold",
                "subtitleColor": palette.muted,
                "subtitleFontSize": TEXT,
                "subtitlePadding": 4,
                "offset": 14,
            },
            "text": {"fontSize": TEXT, "color": palette.ink},
        },
    }


def data(*rows: Mapping[str, Any]) -> Spec:
    """Rows of a layer."""
    return {"values": [dict(row) for row in rows]}


def across(name: str, domain: Sequence[float], axis: Spec | None = None) -> Spec:
    """A field on the horizontal scale that all layers of a figure share."""
    return {
        "field": name,
        "type": "quantitative",
        "scale": {"domain": list(domain), "nice": False, "zero": False},
        "axis": axis,
    }


def key_above(names: Sequence[str], colors: Sequence[str], palette: Palette) -> Spec:
    """The colour of a line by its ``name``, and the key of all lines above the picture: one below another on a phone."""
    return {
        "field": "name",
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(colors)},
        "legend": {
            "orient": "top",
            "title": None,
            "columns": {"expr": "width < 420 ? 1 : 3"},
            "labelColor": palette.ink,
            "labelFontSize": TEXT,
            "labelLimit": 320,
            "symbolType": "stroke",
            "symbolStrokeWidth": 2.5,
        },
    }


def down(name: str, height: float, axis: Spec | None = None) -> Spec:
    """A field on the vertical scale in pixels from the top."""
    return {
        "field": name,
        "type": "quantitative",
        "scale": {"domain": [0, round(height)], "nice": False, "zero": False, "reverse": True},
        "axis": axis,
    }


def up(name: str, domain: Sequence[float], axis: Spec | None = None) -> Spec:
    """A field on a vertical scale that grows upwards."""
    return across(name, domain, axis)


def tooltip(*pairs: tuple[str, str]) -> list[Spec]:
    """What is shown on hover: (field, title) pairs of texts."""
    return [{"field": name, "title": title, "type": "nominal"} for name, title in pairs]
