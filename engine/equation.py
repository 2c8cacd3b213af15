"""The equation is the program.

An ``Equation`` is a small pure function whose parameters are the names of its operands. From its one source come the
number (it runs), the printed formula (``engine.notation``), the wires of the diagram (``engine.diagram``) and the parts
with their values. A ``Circuit`` runs equations in order over a dictionary of names; names in ``carry`` are fed to the next
step as ``*_prev``. ``do`` replaces a result after its equation has run, and everything after it follows. Circuits nest: a
block holds an attention circuit, whose names stand in the trace as ``attention.A``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, overload

import torch
from torch import Tensor

from engine.interventions import Intervention, Interventions, add_to, by_symbol, scale_by, set_to
from engine.notes import Note
from engine.symbols import Symbol
from engine.syntax import EquationError, Node, operand_names, parse
from engine.trace import Trace, frozen

__all__ = [
    "Circuit",
    "Equation",
    "EquationError",
    "Intervention",
    "Interventions",
    "Nested",
    "Trace",
    "Values",
    "add_to",
    "by_symbol",
    "equation",
    "scale_by",
    "set_to",
]

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


@dataclass(frozen=True)
class Nested:
    """A circuit inside another one. Made by ``Circuit.inside``."""

    name: str
    circuit: Circuit
    reads: Mapping[str, str]  # operand of the inner circuit -> name outside
    gives: Mapping[str, str]  # name outside -> result of the inner circuit


class Circuit:
    """Equations in the order they run; ``carry`` names the results that the next step reads as ``*_prev``.

    A member may be a circuit of its own (``inside``): its names stand in ``equations`` with its name and a dot before them, and
    ``aliases`` says which names mean the same value.
    """

    def __init__(self, *members: Equation | Nested, carry: Sequence[str] = ()) -> None:
        self.members = {member.name: member for member in members}
        self.carry = tuple(carry)
        if len(self.members) != len(members):
            raise EquationError("two equations define the same symbol")
        self.equations: dict[str, Equation] = {}
        self.aliases: dict[str, str] = {}
        for member in members:
            self._add(member)
        missing = set(self.carry) - self.equations.keys()
        if missing:
            raise EquationError(f"carried names that no equation defines: {sorted(missing)}")
        self.operands = {name: self._resolved(name, e) for name, e in self.equations.items()}
        defined: set[str] = set()
        for name, operands in self.operands.items():
            late = set(operands) & (self.equations.keys() - defined)
            if late:
                raise EquationError(f"{name} reads {sorted(late)} before they are defined")
            defined.add(name)

    def _add(self, member: Equation | Nested) -> None:
        if isinstance(member, Equation):
            self.equations[member.name] = member
            return
        inner, scope = member.circuit, f"{member.name}."
        unknown = (set(member.gives.values()) - inner.equations.keys() - inner.aliases.keys()) | (
            set(member.reads) - set(inner.inputs)
        )
        if unknown:
            raise EquationError(f"{member.name} has nothing called {sorted(unknown)}")
        self.equations |= {scope + name: e for name, e in inner.equations.items()}
        self.aliases |= {scope + name: scope + other for name, other in inner.aliases.items()}
        self.aliases |= {scope + name: self.canonical(outside) for name, outside in member.reads.items()}
        self.aliases |= {outside: self.canonical(scope + name) for outside, name in member.gives.items()}
        self.aliases = {name: self.canonical(other) for name, other in self.aliases.items()}

    def inside(self, name: str, *, reads: Mapping[str, str], gives: Mapping[str, str]) -> Nested:
        """This circuit as a member ``name`` of another one.

        ``reads={"X": "Y"}`` feeds the outer Y to its X, ``gives={"F": "O"}`` calls its result O F outside. Operands that
        are not read from outside are named with a dot: ``attention.W_q``.
        """
        return Nested(name, self, dict(reads), dict(gives))

    def canonical(self, name: str) -> str:
        """The name under which a value is found: the result, input or weight that an alias stands for."""
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def _resolved(self, name: str, e: Equation) -> tuple[str, ...]:
        scope = Trace.scope(name)
        return tuple(self.canonical(scope + operand) for operand in e.operands)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The operands that no equation of the circuit defines: inputs, weights and ``*_prev``."""
        seen = dict.fromkeys(name for operands in self.operands.values() for name in operands)
        return tuple(name for name in seen if name not in self.equations)

    def run(
        self,
        values: Mapping[str, Tensor],
        *,
        change: Mapping[str, Sequence[Intervention]] | None = None,
        record: bool = False,
        axes: Mapping[str, str] | None = None,
    ) -> tuple[Values, Values]:
        """Run every equation once. Returns the results by symbol and, with ``record``, every part by its id.

        ``axes`` names the axes of each result that ``change`` acts on, where it is more than one step (batch, units).
        """
        known: Values = dict(values)
        results: Values = {}
        parts: Values = {}
        scope = ""

        def note(place: str, value: Tensor) -> Tensor:
            parts[scope + place] = value
            return value

        for name, e in self.equations.items():
            scope = Trace.scope(name)
            operands = [known[operand] for operand in self.operands[name]]
            result = e.recorded(*operands, note) if record else e(*operands)
            for intervention in (change or {}).get(name, ()):
                result = intervention(result, axes[name][-result.ndim :] if axes else "")
            known[name] = results[name] = result
        return results, parts

    def trace(
        self,
        inputs: Mapping[str, Tensor],
        weights: Mapping[str, Tensor],
        tables: Mapping[str, Mapping[str, Symbol]],
        *,
        do: Interventions | None = None,
        notes: Sequence[Note] = (),
    ) -> Trace:
        """Run the circuit once on all positions and keep every result and part, detached and read-only.

        ``tables`` holds the symbols of each scope: ``""`` and, for nested circuits, ``"attention."``.
        """
        changes = by_symbol({self.canonical(name): given for name, given in (do or {}).items()}, list(self.equations))
        axes = {name: tables[Trace.scope(name)][e.name].axes for name, e in self.equations.items()}
        with torch.no_grad():
            results, parts = self.run({**inputs, **weights}, change=changes, record=True, axes=axes)
        return Trace(
            arrays={name: frozen(value) for name, value in results.items()},
            terms={place: frozen(value) for place, value in parts.items()},
            inputs={name: frozen(value) for name, value in inputs.items()},
            weights={name: frozen(value) for name, value in weights.items()},
            start={},
            equations=self.equations,
            tables=tables,
            interventions=changes,
            aliases=self.aliases,
            notes=tuple(notes),
        )

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
