"""Where the numbers behind one cell stand.

A cell of a result is made of cells of its operands: for an elementwise operation of the same cell (an axis of size 1 counts
for all), for ``heads`` and the like of a cell that moved, for a product of matrices of a row and a column. This module finds
them from the syntax tree and the recorded values, for every equation alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.notation import Terms, main_arguments, slot_of
from engine.operations import FUNCTIONS, OPERATIONS
from engine.syntax import Node

if TYPE_CHECKING:
    from engine.equation import Equation

Array = NDArray[Any]
Lookup = Callable[[str], Array]  # the value of an operand ("X") or a part ("F:2")
Carry = Callable[[Array], Array]  # from a part's own shape to one that is broadcast against the result
Index = tuple[int, ...]


def name_of(node: Node) -> str:
    """The name under which the value of a part is recorded."""
    return node.id or node.text


def pick(array: Array, index: Sequence[int]) -> Any:
    """The number of ``array``, broadcast against a result, in the cell ``index`` of that result."""
    own = index[len(index) - array.ndim :]
    return array[tuple(0 if size == 1 else i for i, size in zip(own, array.shape, strict=True))]


def slots(equation: Equation, lookup: Lookup) -> Iterator[tuple[Node, Carry]]:
    """Every part that stands as a number in the plugged-in formula, and how its cells lie in the result."""

    def walk(node: Node, carry: Carry) -> Iterator[tuple[Node, Carry]]:
        if slot_of(node) is not None:
            yield node, carry
        elif node.kind == "call" and OPERATIONS[node.text].cells == "move":
            main, index = main_arguments(node, OPERATIONS[node.text])
            for place, child in enumerate(main):
                yield from walk(child, _after(carry, node, place, lookup))
            for child in index:
                yield from walk(child, lambda array: array)
        else:
            for child in node.children:
                yield from walk(child, carry)

    yield from walk(equation.tree, lambda array: array)


def _after(carry: Carry, node: Node, place: int, lookup: Lookup) -> Carry:
    return lambda array: carry(_moved(node, place, array, lookup))


def _moved(node: Node, place: int, array: Array, lookup: Lookup) -> Array:
    """What becomes of one argument's numbers when an operation puts them elsewhere; other arguments' cells are NaN."""
    main, index = main_arguments(node, OPERATIONS[node.text])
    given = []
    for i, child in enumerate(main):
        shape = lookup(name_of(child)).shape
        values = np.broadcast_to(array, shape) if i == place else np.full(shape, np.nan)
        given.append(torch.tensor(np.ascontiguousarray(values)))
    given += [torch.tensor(lookup(name_of(child))) for child in index]
    return np.asarray(FUNCTIONS[node.text](*given).numpy())


def aligned(equation: Equation, lookup: Lookup) -> dict[str, Array]:
    """Each slot of the plugged-in formula as an array that is broadcast against the result.

    The number in the result's cell (b, n, t, s) is the slot's number in that cell: axes count from the right, an axis of size 1
    is read at 0. NaN where a cell owes nothing to the slot.
    """
    found: dict[str, Array] = {}
    for node, carry in slots(equation, lookup):
        slot = slot_of(node)
        assert slot is not None
        if slot not in found:
            found[slot] = carry(lookup(name_of(node)))
    return found


def place(node: Node, carry: Carry, index: Index, lookup: Lookup) -> Index:
    """The cell of a part from which the cell ``index`` of the result comes."""
    shape = lookup(name_of(node)).shape
    numbered = carry(np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape))
    return tuple(int(i) for i in np.unravel_index(int(pick(numbered, index)), shape))


def row_and_column(node: Node, index: Index, lookup: Lookup) -> tuple[Array, Array]:
    """The two vectors whose products add up to the cell ``index`` of a product of matrices."""
    left, right = (lookup(name_of(child)) for child in node.children)
    if right.ndim == 1:
        return left[index] if left.ndim > 1 else left, right
    if left.ndim == 1:
        return left, _row(np.swapaxes(right, -1, -2), index[:-1], index[-1])
    *batch, t, s = index
    return _row(left, batch, t), _row(np.swapaxes(right, -1, -2), batch, s)


def _row(array: Array, batch: Sequence[int], row: int) -> Array:
    """Row ``row`` of a matrix of a batch, which may be broadcast."""
    own = batch[len(batch) - (array.ndim - 2) :]
    index = [0 if size == 1 else i for i, size in zip(own, array.shape, strict=False)]
    return np.asarray(array[(*index, row)])


def terms(node: Node, index: Index, lookup: Lookup, limit: int) -> Terms | None:
    """What the cell ``index`` of a part is a sum over, at most ``limit`` of it; None for what is no sum."""
    if node.kind == "matmul":
        row, column = row_and_column(node, index, lookup)
        return [(float(a), float(b)) for a, b in zip(row[:limit], column[:limit], strict=True)], len(row) > limit
    if node.kind == "call" and node.text in ("mean", "variance"):
        argument = lookup(name_of(node.children[0]))
        over = lookup(name_of(node.children[1])).tolist() if len(node.children) > 1 else [-1]
        chosen: list[int | slice] = list(index)
        for axis in over:
            chosen[axis] = slice(None)
        numbers = argument[tuple(chosen)].ravel()
        return [(number,) for number in numbers[:limit].tolist()], numbers.size > limit
    return None
