"""Parameters as blocks of one size: a plain network has one, a GRU three, an LSTM four."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.tables import Row
from pages.figures.figure import WIDTH, Figure, Spec, across, data, down, grouped, spec, tooltip
from pages.figures.heat import OWN_COLOUR
from pages.figures.palette import Theme, palette
from pages.figures.ramps import contrast, mix

ROW, BLOCK = 62.0, 30.0  # pixels from model to model, and of a block's height


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """One model: a block for each (letter, role), each of ``size`` parameters, and ``extra`` ones beside them."""

    name: str
    blocks: tuple[tuple[str, str], ...]
    size: int
    extra: int = 0

    @property
    def total(self) -> int:
        return self.size * len(self.blocks) + self.extra


def parameter_blocks(
    models: Sequence[Blocks],
    *,
    title: str,
    hover: tuple[str, str],
    note: str = "",
    theme: Theme = "light",
    width: int = WIDTH,
) -> Figure:
    """A row of blocks for each model, as wide as it has parameters, all on one scale, with the sum written out.

    ``hover`` are the words for a block's symbol and its number of parameters.
    """
    colours = palette(theme)
    most = max(model.total for model in models)
    tiles: list[Spec] = []
    heads: list[Spec] = []
    for place, model in enumerate(models):
        top = place * ROW + 22
        for number, (letter, role) in enumerate(model.blocks):
            color = mix(colours.paper, colours.mark[role], 0.85)
            tiles.append(
                {
                    "x": number * model.size + 0.002 * most,
                    "x2": (number + 1) * model.size - 0.002 * most,
                    "middle": (number + 0.5) * model.size,
                    "y": top,
                    "y2": top + BLOCK,
                    "center": top + BLOCK / 2,
                    "letter": letter.rstrip("~"),
                    "tilde": "˜" if letter.endswith("~") else "",
                    "color": color,
                    "ink": max((colours.ink, colours.paper), key=lambda ink, tile=color: contrast(ink, tile)),  # type: ignore[misc]
                    "count": grouped(model.size),
                }
            )
        count = len(model.blocks)
        extra = f" + {grouped(model.extra)}" if model.extra else ""
        product = f"{count} × {grouped(model.size)}{extra} = " if count > 1 or extra else ""
        heads.append({"y": top - 10, "name": model.name, "sum": f"{product}{grouped(model.total)}"})
    height = ROW * len(models) - 6
    x, y = across("x", [0, most]), down("y", height)
    text: Spec = {"type": "text", "baseline": "middle"}
    layers: list[Spec] = [
        {
            "data": data(*tiles),
            "mark": {"type": "rect"},
            "encoding": {
                "x": x,
                "x2": {"field": "x2"},
                "y": y,
                "y2": {"field": "y2"},
                "color": OWN_COLOUR,
                "tooltip": tooltip(("letter", hover[0]), ("count", hover[1])),
            },
        },
        *(
            {
                "data": data(*tiles),
                "mark": text | {"align": "center", "fontWeight": "bold", "dy": lift},
                "encoding": {
                    "x": across("middle", [0, most]),
                    "y": down("center", height),
                    "text": {"field": sign, "type": "nominal"},
                    "color": OWN_COLOUR | {"field": "ink"},
                },
            }
            for sign, lift in (("letter", 0), ("tilde", -4))
        ),
        {
            "data": data(*heads),
            "mark": text | {"align": "left", "fontWeight": "bold"},
            "encoding": {"x": {"value": 0}, "y": y, "text": {"field": "name", "type": "nominal"}},
        },
        {
            "data": data(*heads),
            "mark": text | {"align": "right", "color": colours.muted},
            "encoding": {"x": {"value": "width"}, "y": y, "text": {"field": "sum", "type": "nominal"}},
        },
    ]

    def table() -> Iterable[Row]:
        yield ("model", "blocks", "parameters_each", "extra", "total")
        for model in models:
            yield (model.name, len(model.blocks), model.size, model.extra, model.total)

    return Figure(spec=spec(layers, colours, height=height, title=title, note=note, width=width), table=table)
