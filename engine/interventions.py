"""Changes to a run: replace a result after its equation has run, and see what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from engine.trace import WORDS

WORD_OF = {axis: word for word, axis in WORDS.items() if word != "query"} | {"1": ""}


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """Replace a result after its equation has run: ``value * old`` or ``value + old`` or ``value`` alone.

    ``step`` (or query): None for all, a number, or (first, end) with end not included and None for "to the end".
    ``unit``, ``head``, ``key``, ``batch``: None for all, a number, or several. All count from 0.
    """

    value: float
    how: str = "set"
    step: int | tuple[int, int | None] | None = None
    unit: int | tuple[int, ...] | None = None
    head: int | tuple[int, ...] | None = None
    key: int | tuple[int, ...] | None = None
    batch: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"an intervention needs a finite number, not {self.value}")

    def steps(self, length: int) -> range:
        """The steps it acts on in a run of ``length`` steps. Raises ``IndexError`` where there is none."""
        if self.step is None:
            return range(length)
        first, end = self.step if isinstance(self.step, tuple) else (self.step, self.step + 1)
        end = length if end is None else end
        if not 0 <= first < end <= length:
            raise IndexError(f"steps {first} to {end - 1} are not all inside 0 to {length - 1}")
        return range(first, end)

    def units(self, width: int) -> list[int]:
        """The units it acts on. Raises ``IndexError`` for a unit that is not there."""
        return self.several("unit", width)

    def several(self, word: str, size: int) -> list[int]:
        """The units, heads, keys or sequences it acts on. Raises ``IndexError`` for one that is not there."""
        given: int | tuple[int, ...] | None = getattr(self, word)
        if given is None:
            return list(range(size))
        chosen = [given] if isinstance(given, int) else list(given)
        if not chosen or not all(0 <= each < size for each in chosen):
            raise IndexError(f"{word}s {chosen} are not all inside 0 to {size - 1}")
        return chosen

    def chosen(self, shape: Sequence[int], axes: str) -> Tensor:
        """Which cells of a result it acts on, to be broadcast. Raises ``ValueError`` where the result has no such axis."""
        words = [WORD_OF.get(axis, "unit") for axis in axes]
        mask = torch.ones((1,) * len(shape), dtype=torch.bool)
        for place, (word, size) in enumerate(zip(words, shape, strict=True)):
            if getattr(self, word, None) is not None:
                along = torch.zeros(size, dtype=torch.bool)
                along[list(self.steps(size)) if word == "step" else self.several(word, size)] = True
                mask = mask & along.reshape(-1, *(1,) * (len(shape) - place - 1))
        absent = [w for w in ("step", "unit", "head", "key", "batch") if w not in words and getattr(self, w) is not None]
        if absent:
            raise ValueError(f"a result with the axes {axes} has no {' and no '.join(absent)} to choose")
        return mask

    def __call__(self, result: Tensor, axes: str = "") -> Tensor:
        """The changed copy of a result; gradients flow through what is left of the old value.

        Without ``axes`` the result is one step (batch, units) of an unrolled run, whose steps the caller has chosen. Raises
        ``ValueError`` for a number that the result's dtype cannot hold.
        """
        if abs(self.value) > torch.finfo(result.dtype).max:
            raise ValueError(f"{self.value:g} is too large a number for {result.dtype}")
        whole = self if axes else replace(self, step=None)
        chosen = whole.chosen(result.shape, axes or ("1" * result.ndim + "BH")[-result.ndim :])
        if self.how == "scale":
            changed = result * self.value
        elif self.how == "add":
            changed = result + self.value
        else:
            changed = torch.full_like(result, self.value)
        return torch.where(chosen, changed, result)


Step = int | tuple[int, int | None] | None
Unit = int | Sequence[int] | None
Interventions = Mapping[str, Intervention | Sequence[Intervention]]


def _intervention(how: str, value: float, step: Step, unit: Unit, where: Mapping[str, Any]) -> Intervention:
    def several(given: Unit) -> int | tuple[int, ...] | None:
        return given if given is None or isinstance(given, int) else tuple(given)

    others = {word: several(given) for word, given in where.items() if word != "query"}
    if where.get("query") is not None:
        if step is not None:
            raise ValueError("a step and a query are the same axis: give one of them")
        step = where["query"]
    return Intervention(value=float(value), how=how, step=step, unit=several(unit), **others)


def set_to(value: float, step: Step = None, unit: Unit = None, **where: Any) -> Intervention:
    """Set a result to ``value`` (everywhere, or at the chosen steps and units; ``query``, ``key``, ``head``, ``batch``)."""
    return _intervention("set", value, step, unit, where)


def scale_by(factor: float, step: Step = None, unit: Unit = None, **where: Any) -> Intervention:
    """Multiply a result by ``factor``."""
    return _intervention("scale", factor, step, unit, where)


def add_to(amount: float, step: Step = None, unit: Unit = None, **where: Any) -> Intervention:
    """Add ``amount`` to a result."""
    return _intervention("add", amount, step, unit, where)


def by_symbol(do: Interventions | None, known: Sequence[str]) -> dict[str, tuple[Intervention, ...]]:
    """``do`` with a tuple per symbol. Raises ``KeyError`` for a symbol that no equation defines."""
    found: dict[str, tuple[Intervention, ...]] = {}
    for name, given in (do or {}).items():
        if name not in known:
            raise KeyError(f"{name} is not a result of this model; it has {', '.join(known)}")
        found[name] = (given,) if isinstance(given, Intervention) else tuple(given)
    return found
