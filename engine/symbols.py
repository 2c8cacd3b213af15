"""What each symbol of a lesson is: how it is written, its axes, the interval of its values, and its role.

Axes have one key for the whole project: T time or query position, B batch, D input width, H hidden width, V vocabulary,
L layer, N head, S source or key position, K head width of queries and keys, U of values; 1 is an axis of size 1 that a mean
has left. A symbol with a T axis is written with the index t, unless its model works on all positions at once (``whole``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

INFINITY = float("inf")


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """One symbol. ``interval`` are the open bounds its values lie in; ``role`` decides colour and colour scale."""

    name: str
    letter: str
    axes: str
    role: str
    interval: tuple[float, float] = (-INFINITY, INFINITY)
    tilde: bool = False
    subscript: str = ""
    lag: int = 0  # 1 for the value of the step before
    whole: bool = False  # all positions at once (attention), not one step after the other
    hat: bool = False
    superscript: str = ""
    italic: bool = False  # written as a plain number although it has axes: a position i, a row's mean

    @property
    def timed(self) -> bool:
        """Whether it has one value per step."""
        return "T" in self.axes and not self.whole

    @property
    def bold(self) -> bool:
        """Whether it is written as a vector or matrix."""
        return bool(self.axes) and not self.italic

    @property
    def bounded(self) -> bool:
        """Whether its values have two finite bounds."""
        return self.interval[0] > -INFINITY and self.interval[1] < INFINITY


GATE = (0.0, 1.0)
SIGNED = (-1.0, 1.0)


def symbol(name: str, axes: str, role: str, interval: tuple[float, float] = (-INFINITY, INFINITY)) -> Symbol:
    """A symbol whose spelling follows from its name: ``C_tilde`` has a tilde, ``X_hat`` a hat, ``W_xf`` the index xf."""
    letter, _, rest = name.partition("_")
    if rest == "tilde":
        return Symbol(name=name, letter=letter, axes=axes, role=role, interval=interval, tilde=True)
    if rest == "hat":
        return Symbol(name=name, letter=letter, axes=axes, role=role, interval=interval, hat=True)
    return Symbol(name=name, letter=letter, axes=axes, role=role, interval=interval, subscript=rest)


def table(*symbols: Symbol, carry: tuple[str, ...] = (), whole: bool = False) -> Mapping[str, Symbol]:
    """The symbols of one model by name, with a ``*_prev`` for each carried one; ``whole``: its symbols hold all positions."""
    by_name = {s.name: replace(s, whole=s.whole or whole) for s in symbols}
    for name in carry:
        by_name[f"{name}_prev"] = replace(by_name[name], name=f"{name}_prev", lag=1)
    return by_name
