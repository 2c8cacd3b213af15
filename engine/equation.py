"""The equation is the program.

An ``Equation`` is a small pure function whose parameters are the names of its operands. From its one source come the
number (it runs), the printed formula (``engine.notation``), the wires of the diagram (``engine.diagram``) and the parts
with their values. A ``Circuit`` runs equations in order over a dictionary of names; names in ``carry`` are fed to the next
step as ``*_prev``. ``do`` replaces a result after its equation has run, and everything after it follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, overload

import torch
from torch import Tensor

from engine.syntax import EquationError, Node, operand_names, parse
from engine.trace import Trace

__all__ = ["Circuit", "Equation", "EquationError", "Intervention", "Trace", "add_to", "equation", "scale_by", "set_to"]

Values = dict[str, Tensor]
Recorder = Callable[[str, Tensor], Tensor]


@dataclass(frozen=True)
class Equation:
    """One equation: the function that runs, its operands, and the tree of what it returns."""

    name: str  # the symbol it defines
    function: FunctionType = field(repr=False)
    operands: tuple[str, ...]
    tree: Node = field(repr=False)
    recorded: Callable[..., Tensor] = field(repr=False)

    @property
    def doc(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().split("\n")[0]

    def __call__(self, *arguments: Tensor, **operands: Tensor) -> Tensor:
        result: Tensor = self.function(*arguments, **operands)
        return result


@overload
def equation(function: Callable[..., Any]) -> Equation: ...


@overload
def equation(function: str) -> Callable[[Callable[..., Any]], Equation]: ...


def equation(function: Callable[..., Any] | str) -> Equation | Callable[[Callable[..., Any]], Equation]:
    """Make an equation of a function with one return expression. Raises ``EquationError`` if it cannot be printed.

    The function's name is the symbol it defines; where two conventions define the same symbol, ``@equation("H_tilde")``
    names it.
    """
    if isinstance(function, str):
        return lambda given: _equation(given, function)
    return _equation(function, function.__name__)


def _equation(function: Callable[..., Any], symbol: str) -> Equation:
    if not isinstance(function, FunctionType):
        raise EquationError("an equation is a plain function")
    tree, recorded = parse(function, symbol)
    return Equation(symbol, function, operand_names(function), tree, recorded)


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """Replace a result after its equation has run: ``value * old`` or ``value + old`` or ``value`` alone.

    ``step``: None for all, a number, or (first, end) with end not included and None for "to the end".
    ``unit``: None for all, a number, or several. Steps and units count from 0.
    """

    value: float
    how: str = "set"
    step: int | tuple[int, int | None] | None = None
    unit: int | tuple[int, ...] | None = None

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
        if self.unit is None:
            return list(range(width))
        units = [self.unit] if isinstance(self.unit, int) else list(self.unit)
        if not units or not all(0 <= unit < width for unit in units):
            raise IndexError(f"units {units} are not all inside 0 to {width - 1}")
        return units

    def __call__(self, result: Tensor) -> Tensor:
        """The changed copy of a result (..., units); gradients flow through what is left of the old value."""
        chosen = torch.zeros(result.shape[-1], dtype=torch.bool)
        chosen[self.units(result.shape[-1])] = True
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


def _intervention(how: str, value: float, step: Step, unit: Unit) -> Intervention:
    return Intervention(
        value=float(value), how=how, step=step, unit=unit if unit is None or isinstance(unit, int) else tuple(unit)
    )


def set_to(value: float, step: Step = None, unit: Unit = None) -> Intervention:
    """Set a result to ``value`` (all steps and units, or the chosen ones)."""
    return _intervention("set", value, step, unit)


def scale_by(factor: float, step: Step = None, unit: Unit = None) -> Intervention:
    """Multiply a result by ``factor``."""
    return _intervention("scale", factor, step, unit)


def add_to(amount: float, step: Step = None, unit: Unit = None) -> Intervention:
    """Add ``amount`` to a result."""
    return _intervention("add", amount, step, unit)


def by_symbol(do: Interventions | None, known: Sequence[str]) -> dict[str, tuple[Intervention, ...]]:
    """``do`` with a tuple per symbol. Raises ``KeyError`` for a symbol that no equation defines."""
    found: dict[str, tuple[Intervention, ...]] = {}
    for name, given in (do or {}).items():
        if name not in known:
            raise KeyError(f"{name} is not a result of this model; it has {', '.join(known)}")
        found[name] = (given,) if isinstance(given, Intervention) else tuple(given)
    return found


class Circuit:
    """Equations in the order they run; ``carry`` names the results that the next step reads as ``*_prev``."""

    def __init__(self, *equations: Equation, carry: Sequence[str] = ()) -> None:
        self.equations = {e.name: e for e in equations}
        self.carry = tuple(carry)
        if len(self.equations) != len(equations):
            raise EquationError("two equations define the same symbol")
        missing = set(self.carry) - self.equations.keys()
        if missing:
            raise EquationError(f"carried names that no equation defines: {sorted(missing)}")
        defined: set[str] = set()
        for e in equations:
            late = set(e.operands) & (self.equations.keys() - defined)
            if late:
                raise EquationError(f"{e.name} reads {sorted(late)} before they are defined")
            defined.add(e.name)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The operands that no equation of the circuit defines: inputs, weights and ``*_prev``."""
        seen = dict.fromkeys(name for e in self.equations.values() for name in e.operands)
        return tuple(name for name in seen if name not in self.equations)

    def run(
        self,
        values: Mapping[str, Tensor],
        *,
        change: Mapping[str, Sequence[Intervention]] | None = None,
        record: bool = False,
    ) -> tuple[Values, Values]:
        """Run every equation once. Returns the results by symbol and, with ``record``, every part by its id."""
        known: Values = dict(values)
        results: Values = {}
        parts: Values = {}

        def note(place: str, value: Tensor) -> Tensor:
            parts[place] = value
            return value

        for name, e in self.equations.items():
            operands = [known[operand] for operand in e.operands]
            result = e.recorded(*operands, note) if record else e(*operands)
            for intervention in (change or {}).get(name, ()):
                result = intervention(result)
            known[name] = results[name] = result
        return results, parts

    def unroll(
        self,
        inputs: Sequence[Mapping[str, Tensor]],
        weights: Mapping[str, Tensor],
        start: Mapping[str, Tensor],
        *,
        do: Mapping[str, Sequence[Intervention]] | None = None,
        record: bool = False,
    ) -> tuple[list[Values], list[Values]]:
        """Run the circuit at each step, feeding each carried name back as ``*_prev``.

        ``inputs`` holds the inputs of each step, ``start`` the carried names before the first step. Returns, per step, the
        results and the parts: live tensors, on which gradients can be taken.
        """
        acting = {name: [(i, i.steps(len(inputs))) for i in given] for name, given in (do or {}).items()}
        carried = {f"{name}_prev": start[name] for name in self.carry}
        results: list[Values] = []
        parts: list[Values] = []
        for t, given in enumerate(inputs):
            change = {name: [i for i, steps in pairs if t in steps] for name, pairs in acting.items()}
            now, pieces = self.run({**weights, **given, **carried}, change=change, record=record)
            carried = {f"{name}_prev": now[name] for name in self.carry}
            results.append(now)
            parts.append(pieces)
        return results, parts
