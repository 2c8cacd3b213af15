"""A trace: everything one run of a model computed, by symbol, detached and read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engine import notation
from engine.symbols import Symbol

if TYPE_CHECKING:
    from engine.equation import Equation, Intervention

Array = NDArray[np.floating[Any]]


def frozen(value: Tensor | Array) -> Array:
    """A read-only array of its own memory, in the dtype of ``value``."""
    array = np.array(value.detach().cpu().numpy() if isinstance(value, Tensor) else value, order="C")
    array.flags.writeable = False
    return array


def stacked(steps: Sequence[Mapping[str, Tensor]]) -> dict[str, Array]:
    """Per-step tensors (B, ...) as one read-only array (T, B, ...) for each name."""
    return {name: frozen(np.stack([step[name].detach().cpu().numpy() for step in steps])) for name in steps[0]}


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One run of a model. ``trace["F"]`` is the array (T, B, units) of that symbol after interventions.

    ``terms["F:2"]`` are the parts of equation F in reading order (``F:0`` is what it gave before interventions),
    ``inputs`` what was fed in, ``weights`` the parameters, ``start`` the carried values before the first step. Names of
    deeper models nest with dots: ``layers.1.backward.F``. Arrays keep the model's dtype and are read-only.
    """

    arrays: Mapping[str, Array] = field(repr=False)
    terms: Mapping[str, Array] = field(repr=False)
    inputs: Mapping[str, Array] = field(repr=False)
    weights: Mapping[str, Array] = field(repr=False)
    start: Mapping[str, Array] = field(repr=False)
    equations: Mapping[str, Equation] = field(repr=False)
    tables: Mapping[str, Mapping[str, Symbol]] = field(repr=False)  # by scope: "" or "layers.0.forward."
    interventions: Mapping[str, Sequence[Intervention]] = field(default_factory=dict)
    backward: frozenset[str] = frozenset()  # scopes that run from the last step to the first

    def __getitem__(self, name: str) -> Array:
        if name in self.arrays:
            return self.arrays[name]
        if name in self.inputs:
            return self.inputs[name]
        raise KeyError(f"{name} is not in this trace; it has {', '.join(self.arrays)}")

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        """The number of steps T."""
        return len(next(iter(self.arrays.values())))

    @property
    def symbols(self) -> dict[str, Symbol]:
        """What each traced symbol is, in the order in which the equations run."""
        return {name: self.symbol(name) for name in self.arrays}

    @staticmethod
    def scope(name: str) -> str:
        """The dotted path before a name, with its last dot, or nothing."""
        return name[: name.rfind(".") + 1]

    def symbol(self, name: str) -> Symbol:
        """The symbol of a traced name, an operand or a ``*_prev``."""
        scope = self.scope(name)
        return self.tables[scope][name.removeprefix(scope)]

    def latex(self, name: str) -> str:
        """The equation of a symbol as LaTeX."""
        return notation.latex(self.equations[name], self.tables[self.scope(name)])

    def mathml(self, name: str) -> str:
        """The equation of a symbol as MathML; each symbol is an element with ``data-symbol`` and ``data-role``."""
        return notation.mathml(self.equations[name], self.tables[self.scope(name)])

    def plugged_mathml(self, name: str) -> str:
        """The equation as MathML with an empty slot for each number of one cell; a reader of the trace fills them."""
        return notation.plugged_mathml(self.equations[name], self.tables[self.scope(name)])

    def plugged(self, name: str, step: int, batch: int = 0, unit: int = 0, digits: int = 2) -> str:
        """The equation with this cell's numbers in it, as text: ``sigmoid(2.07 + 2.63 - 0.07) = 0.99``.

        Step, batch and unit count from 0. Where an intervention replaced the result, the text goes on with what it was set to.
        """
        scope = self.scope(name)

        def value(leaf: str) -> float:
            return self.operand(scope, leaf, step, batch, unit)

        text = notation.plugged(self.equations[name], value, digits)
        given, kept = float(self.terms[f"{name}:0"][step, batch, unit]), float(self.arrays[name][step, batch, unit])
        text = f"{text} = {notation.format_number(given, digits)}"
        return text if given == kept else f"{text} -> {notation.format_number(kept, digits)}"

    def operand(self, scope: str, name: str, step: int, batch: int, unit: int) -> float:
        """The number that stood for an operand or a part (``F:2``) in one cell."""
        if ":" in name:
            return float(self.terms[scope + name][step, batch, unit])
        symbol = self.tables[scope][name]
        if symbol.lag:
            past = step + 1 if scope in self.backward else step - 1
            base = scope + name.removesuffix("_prev")
            if 0 <= past < len(self):
                return float(self.arrays[base][past, batch, unit])
            return float(self.start[base][batch, unit])
        if symbol.timed:
            return float(self[scope + name][step, batch, unit])
        weight = self.weights[scope + name]
        return float(weight[unit] if weight.ndim else weight)
