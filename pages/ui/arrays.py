"""Arrays on their way to the stage: one float32 block, the scale of a symbol, and how cells of a result find their row."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.symbols import Symbol

Array = NDArray[Any]
Header = dict[str, Any]


class Block:
    """The float32 block under construction. Numbers that are already there, in any shape, are not packed again."""

    def __init__(self) -> None:
        self.arrays: dict[str, Header] = {}
        self._chunks: list[bytes] = []
        self._length = 0
        self._places: dict[bytes, int] = {}

    def add(self, name: str, array: Array, axes: str) -> None:
        """Pack an array whose axes have these keys."""
        assert array.ndim == len(axes), (name, array.shape, axes)
        content = np.ascontiguousarray(array, dtype="<f4").tobytes()
        if content not in self._places:
            self._places[content] = self._length
            self._chunks.append(content)
            self._length += len(content) // 4
        self.arrays[name] = {"offset": self._places[content], "shape": list(array.shape), "axes": axes}

    def to_bytes(self) -> bytes:
        return b"".join(self._chunks)


def single(array: Array, axes: str, batch: int) -> tuple[Array, str]:
    """One sequence of a batch: the array without its B axis."""
    if "B" not in axes:
        return array, axes
    at = axes.index("B")
    return array.take(batch, axis=at), axes[:at] + axes[at + 1 :]


def alike(array: Array, axes: str) -> Array:
    """One head of an array that is the same in all of them (a mask), as an axis of size 1."""
    if "N" not in axes:
        return array
    first = array.take([0], axis=axes.index("N"))
    return first if np.array_equal(np.broadcast_to(first, array.shape), array, equal_nan=True) else array


def reach(arrays: Iterable[Array]) -> float:
    """The fixed limit of an unbounded symbol: the power of two that all its values lie within."""
    finite = [float(np.abs(a[np.isfinite(a)]).max()) for a in arrays if a.size and np.isfinite(a).any()]
    top = max([2.0**-10, *finite])
    return float(2.0 ** math.ceil(math.log2(top)))


def scale_of(symbol: Symbol, arrays: Sequence[Array]) -> Header:
    """Interval and role of a symbol: its own bounds, or its reach in place of infinity."""
    limit = reach(arrays)
    low, high = symbol.interval
    ends = [low if math.isfinite(low) else -limit, high if math.isfinite(high) else limit]
    return {"interval": ends, "role": symbol.role}


def strides(index: Array, axes: str) -> dict[str, int] | None:
    """How an index grows along each axis of a result, from 0; None where it does not grow evenly."""
    origin = (0,) * index.ndim
    found = {}
    for at, axis in enumerate(axes):
        one = tuple(1 if i == at else 0 for i in range(index.ndim))
        found[axis] = int(index[one] - index[origin]) if index.shape[at] > 1 else 0
    grid = sum(found[axis] * np.arange(size).reshape([-1 if i == at else 1 for i in range(index.ndim)])
               for at, (axis, size) in enumerate(zip(axes, index.shape, strict=True)))  # fmt: skip
    return found if np.array_equal(np.broadcast_to(grid, index.shape), index) else None
