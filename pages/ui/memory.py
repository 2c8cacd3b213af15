"""The configs of the lessons on plain and on deep networks: what they have beyond those of the other cells."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from engine.notes import Note
from engine.symbols import GATE, SIGNED
from pages.ui.config import MAX_SEED, RecurrentConfig, choice, number

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
        units = cls.models.get(params.get("model", ""), 64)
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
