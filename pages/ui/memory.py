"""The configs of the lessons on plain and on deep networks: what they have beyond those of the other cells."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from engine.notes import Note
from engine.symbols import GATE, SIGNED
from pages.ui import opened
from pages.ui.config import MAX_SEED, GRUConfig, LSTMConfig, RecurrentConfig, choice, number

MAX_PINS = 8
MAX_NAME = 24  # characters of a pinned unit's name
MAX_RADIUS = 6.0
MAX_KEEP = 64
RELU = (0.0, 100.0)  # a state of this cell has no upper bound of its own; what may be set has one
PIN = re.compile(r"(?P<unit>[0-9]{1,9})(?::(?P<name>.*))?")


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A unit that the learner wants to find again, and what it is called: ``17:brackets`` in a link."""

    unit: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.unit}:{self.name}" if self.name else str(self.unit)


def named(text: str) -> str:
    """A name as it may stand in a link and on the stage: one line, not too long, without the sign between two pins."""
    return "".join(sign for sign in text if sign.isprintable() and sign != ";").strip()[:MAX_NAME]


@dataclass(frozen=True, kw_only=True)
class RNNConfig(RecurrentConfig):
    """Lesson 4. ``radius`` None leaves W_hh as it is; ``shuffle`` is the seed of an order of the past, 0 leaves it."""

    activation: str = "tanh"
    radius: float | None = None
    shuffle: int = 0
    keep: int = 1
    pin: tuple[Pin, ...] = ()

    chain: ClassVar[bool] = True
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {**RecurrentConfig.choices, "activation": ("tanh", "relu", "sigmoid")}

    @property
    def run(self) -> "RNNConfig":
        """Without where the learner looks; a pin is that, too."""
        return replace(self, step=0, unit=0, symbol="", pin=())

    def plain(self) -> "RNNConfig":
        """The same run without its edits."""
        return replace(self.run, do=())

    @property
    def tokens(self) -> tuple[str, ...]:
        """The text, its past in another order where that is asked for."""
        if not self.shuffle:
            return tuple(self.text)
        from engine.text.order import shuffled

        return shuffled(tuple(self.text), self.shuffle, self.keep)

    @property
    def pins(self) -> tuple[tuple[int, str], ...]:
        return tuple((pin.unit, pin.name) for pin in self.pin)

    def switches(self, cell: str) -> dict[str, Any]:
        return {"activation": self.activation} if cell == "rnn" else super().switches(cell)

    def radius_of(self, cell: str) -> float | None:
        return self.radius if cell == "rnn" else None

    @classmethod
    def more(cls, params: Mapping[str, str], notes: list[Note]) -> dict[str, Any]:
        units = cls.units_of(params.get("model", cls.model))
        return {
            "activation": choice("activation", params, cls.choices["activation"], notes),
            "radius": _radius(params.get("radius", ""), notes),
            "shuffle": number("shuffle", params, MAX_SEED, notes),
            "keep": max(number("keep", {"keep": params.get("keep", "1")}, MAX_KEEP, notes), 1),
            "pin": _pins(params.get("pin", ""), units, notes),
        }

    @classmethod
    def bounds(cls, fields: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
        return {"H": {"tanh": SIGNED, "sigmoid": GATE, "relu": RELU}[fields["activation"]]}


def _radius(given: str, notes: list[Note]) -> float | None:
    """A spectral radius from 0 to ``MAX_RADIUS`` with two decimals; None where none is asked for."""
    if not given:
        return None
    try:
        asked = float(given)
    except ValueError:
        asked = math.nan
    if math.isnan(asked):
        notes.append(Note("link.radius", {"high": MAX_RADIUS}))
        return None
    used = round(min(max(asked, 0.0), MAX_RADIUS), 2) + 0.0
    if abs(used - asked) > 0.005:
        notes.append(Note("link.radius", {"high": MAX_RADIUS}))
    return used


def _pins(given: str, units: int, notes: list[Note]) -> tuple[Pin, ...]:
    found: dict[int, Pin] = {}
    parts = [part for part in given.split(";", 4 * MAX_PINS) if part]
    for part in parts[:MAX_PINS]:
        match = PIN.fullmatch(part)
        if match is not None and int(match["unit"]) < units:
            unit = int(match["unit"])
            found[unit] = Pin(unit=unit, name=named(match["name"] or ""))
    if len(found) < len(parts):
        notes.append(Note("link.pin", {"limit": MAX_PINS, "high": units - 1}))
    return tuple(found.values())


CELLS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "gru": GRUConfig.editable,
    "lstm": LSTMConfig.editable,
    "rnn": RecurrentConfig.editable,
}
TRAINED: Mapping[str, tuple[str, int, str]] = {"deep-gru": ("gru", 2, "forward"), "bidirectional-gru": ("gru", 1, "both")}


@dataclass(frozen=True, kw_only=True)
class DeepConfig(RecurrentConfig):
    """Lesson 8. ``cell``, ``layers`` and ``directions`` belong to an untrained model; a trained one has a shape of its own.

    ``layer`` is the layer and direction that the stage shows, from 0: layer 0 forward, layer 0 backward, layer 1 forward, ...
    """

    model: str = "deep-gru"
    cell: str = "gru"
    layers: str = "2"
    directions: str = "forward"
    layer: int = 0

    chain: ClassVar[bool] = True
    opens: ClassVar[tuple[str, ...]] = tuple(opened.CELLS)
    open_layers: ClassVar[int | None] = None
    models: ClassVar[Mapping[str, int]] = {"deep-gru": 48, "bidirectional-gru": 48, "untrained": 24}
    shown: ClassVar[tuple[str, ...]] = tuple(dict.fromkeys(name for each in CELLS.values() for name in each))
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **RecurrentConfig.choices,
        "cell": ("gru", "lstm", "rnn"),
        "layers": ("2", "1", "3", "4"),
        "directions": ("forward", "both"),
    }

    @property
    def run(self) -> "DeepConfig":
        """Without where the learner looks."""
        return replace(self, step=0, unit=0, symbol="", layer=0)

    def plain(self) -> "DeepConfig":
        """The same run without its edits."""
        return replace(self.run, do=())

    @property
    def looks(self) -> dict[str, Any]:
        return super().looks | {"layer": self.layer}

    def switches(self, cell: str) -> dict[str, Any]:  # noqa: ARG002 the shape is that of any cell
        _, layers, directions = self.shape
        outside = opened.shape_of(self.model)
        activation = {"activation": "relu"} if outside is not None and outside.kind == "relu" else {}
        return {"num_layers": layers, "bidirectional": directions == "both", **activation}

    @property
    def shape(self) -> tuple[str, int, str]:
        """Cell, layers and directions of the model that is chosen."""
        return _shape(self.model, {"cell": self.cell, "layers": self.layers, "directions": self.directions})

    @classmethod
    def more(cls, params: Mapping[str, str], notes: list[Note]) -> dict[str, Any]:
        model = params.get("model", cls.model)
        own: dict[str, Any] = {"cell": cls.cell, "layers": cls.layers, "directions": cls.directions}
        if model not in TRAINED and model in cls.models:  # a trained one has its own
            own["cell"] = choice("cell", params, cls.choices["cell"], notes)
            own["layers"] = choice("layers", params, cls.choices["layers"], notes)
            own["directions"] = choice("directions", params, cls.choices["directions"], notes)
        _, layers, directions = _shape(model, own)
        return own | {"layer": number("layer", params, len(scopes(layers, directions)) - 1, notes)}

    @classmethod
    def bounds(cls, fields: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
        cell, layers, directions = _shape(fields["model"], fields)
        return {scope + name: interval for scope in scopes(layers, directions) for name, interval in CELLS[cell].items()}


def _shape(model: str, fields: Mapping[str, Any]) -> tuple[str, int, str]:
    if (outside := opened.shape_of(model)) is not None:
        return outside.cell or "gru", outside.layers, "forward"
    return TRAINED.get(model, (fields["cell"], int(fields["layers"]), fields["directions"]))


def scopes(layers: int, directions: str) -> list[str]:
    """The names of layers and directions, as the engine has them."""
    if layers == 1 and directions == "forward":
        return [""]
    ways = ("forward", "backward") if directions == "both" else ("forward",)
    return [f"layers.{layer}.{way}." for layer in range(layers) for way in ways]
