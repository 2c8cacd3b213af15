"""A trace: everything one run of a model computed, by symbol, detached and read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engine import cells, notation
from engine.notes import Note
from engine.symbols import Symbol
from engine.syntax import Node

if TYPE_CHECKING:
    from engine.equation import Equation, Intervention

Array = NDArray[np.floating[Any]]

# What a cell's axes are called by those who ask for it; its unit is on whatever axis is left.
WORDS = {"step": "T", "query": "T", "batch": "B", "head": "N", "key": "S", "layer": "L"}
PLACES = frozenset("TBNSL1")


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

    Models that work on all positions at once (attention) have arrays with the axes that their symbols name, the scores for
    instance ``BNTS``; leading axes that a run does not have are left out.
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
    aliases: Mapping[str, str] = field(default_factory=dict, repr=False)  # other names of results, inputs and weights
    notes: tuple[Note, ...] = ()  # what is to be said about the run: rows that have nothing to attend to

    def __getitem__(self, name: str) -> Array:
        name = self.aliases.get(name, name)
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
        """The number of steps T, or of query positions."""
        for name, array in self.arrays.items():
            if "T" in (axes := self.axes(name)):
                return int(array.shape[axes.index("T")])
        return 1

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

    def axes(self, name: str) -> str:
        """The keys of the axes of a traced array: ``BNTS``, or ``TS`` where there is neither batch nor head."""
        axes = self.symbol(name).axes
        return axes[len(axes) - self[name].ndim :]

    def index(self, name: str, **where: int) -> tuple[int | slice, ...]:
        """Where in its array the cells of a symbol stand: ``index("S", head=1, query=3)``; an axis not asked for is whole.

        Words are step or query, key, head, batch, layer and unit; those of axes that the symbol does not have are passed over,
        so that one place in a head serves Q, K, S and A. Raises ``IndexError`` outside it, ``TypeError`` for other words.
        """
        found: list[int | slice] = []
        if unknown := where.keys() - {*WORDS, "unit"}:
            raise TypeError(f"a cell is found by {', '.join(WORDS)} and unit, not by {', '.join(sorted(unknown))}")
        for axis, size in zip(self.axes(name), self[name].shape, strict=True):
            words = [word for word, key in WORDS.items() if key == axis] if axis in PLACES else ["unit"]
            given = [where[word] for word in words if word in where]
            if axis == "1":
                given = [0]
            if given and not -size <= given[0] < size:
                raise IndexError(f"{name} has no {words[0]} {given[0]}: it has {size}")
            found.append(given[0] % size if given else slice(None))
        return tuple(found)

    def at(self, name: str, **where: int) -> Array:
        """The numbers of a symbol at a place: ``at("Q", head=1, query=3)`` is a vector, with its unit a single number."""
        return self[name][self.index(name, **where)]

    def _cell(self, name: str, where: Mapping[str, int]) -> tuple[int, ...]:
        """The cell of a symbol; axes not asked for are read at 0."""
        return tuple(0 if isinstance(i, slice) else i for i in self.index(name, **where))

    def aligned(self, name: str) -> dict[str, Array]:
        """The numbers behind each slot of ``plugged_mathml(name)``, as arrays that are broadcast against ``trace[name]``.

        A slot's number in a cell of the result is found with that cell's own index: axes count from the right, and an axis of
        size 1 is read at 0.
        """
        return cells.aligned(self.equations[name], self._lookup(self.scope(name)))

    def products(self, part: str, *index: int) -> tuple[Array, Array]:
        """The row and the column whose products add up to the cell ``index`` of a product of matrices, such as ``"S:2"``."""
        name, _, _ = part.partition(":")
        scope = self.scope(name)
        node = next(n for n in self.equations[name].tree.walk() if scope + n.id == part)
        if node.kind != "matmul":
            raise ValueError(f"{part} is no product of matrices")
        return cells.row_and_column(node, index, self._lookup(scope))

    def plugged(
        self, name: str, step: int = 0, batch: int = 0, unit: int = 0, digits: int = 2, *, expand: int = 0, **where: int
    ) -> str:
        """The equation with this cell's numbers in it, as text: ``sigmoid(2.07 + 2.63 - 0.07) = 0.99``.

        Step, batch and unit count from 0, as do ``query``, ``key``, ``head`` (see ``index``). Where an intervention replaced
        the result, the text goes on with what it was set to. With ``expand``, sums are written out up to so many terms.
        """
        equation, lookup = self.equations[name], self._lookup(self.scope(name))
        if "query" not in where:
            where["step"] = step
        index = self._cell(name, {**where, "batch": batch, "unit": unit})
        numbers: dict[str, float] = {}
        carries: dict[int, cells.Carry] = {}
        for node, carry in cells.slots(equation, lookup):
            slot = notation.slot_of(node)
            assert slot is not None
            carries[id(node)] = carry
            numbers.setdefault(slot, float(cells.pick(carry(lookup(cells.name_of(node))), index)))

        def terms(node: Node) -> notation.Terms | None:
            if not expand or not notation.contraction(node):
                return None
            return cells.terms(node, cells.place(node, carries[id(node)], index, lookup), lookup, expand)

        text = notation.plugged(equation, numbers.__getitem__, digits, terms)
        given, kept = float(self.terms[f"{name}:0"][index]), float(self.arrays[name][index])
        text = f"{text} = {notation.format_number(given, digits)}"
        return text if given == kept else f"{text} -> {notation.format_number(kept, digits)}"

    def _lookup(self, scope: str) -> cells.Lookup:
        """How the equations of a scope find the values of their operands and parts."""

        def lookup(name: str) -> Array:
            return self.values_of(scope, name)

        return lookup

    def values_of(self, scope: str, name: str) -> Array:
        """The array of an operand or a part in a scope: all steps of a result, what was carried over, an input or a weight."""
        if ":" in name:
            return self.terms[scope + name]
        whole = self.aliases.get(scope + name, scope + name)
        symbol = self.tables[scope].get(name)
        if symbol is not None and symbol.lag and whole not in self.inputs:  # all positions at once: it was fed in
            base = scope + name.removesuffix("_prev")
            before, states = self.start[base][np.newaxis], self.arrays[base]
            past = [states[1:], before] if scope in self.backward else [before, states[:-1]]
            return np.concatenate(past)
        for known in (self.arrays, self.inputs, self.weights):
            if whole in known:
                return known[whole]
        raise KeyError(f"{whole} is not in this trace")

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


def largest_difference(one: Trace, other: Trace, name: str) -> float:
    """The largest distance between the two runs' values of a symbol, over all steps, samples and units."""
    return float(np.abs(one[name] - other[name]).max())
