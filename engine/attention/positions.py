r"""Positions: self-attention alone does not see the order of its input, so each position gets a code.

P_{i,2j} = sin(i / 10000^(2j/d)),  P_{i,2j+1} = cos(i / 10000^(2j/d)),  Vaswani et al. 2017, section 3.5

Here d may be odd: the last column is then a sine without its cosine. Any position has a code, so there is no table that ends;
learned positions do have one, and asking beyond it is refused. ``rotary`` turns queries and keys instead of adding (Su et al.
2021), ``alibi`` takes from each score what grows with the distance (Press et al. 2022).

Departures from other texts: "10000^(2j/d)" runs over the pair number j, not the column. ``rotary`` pairs neighbouring columns
as the paper does; many libraries pair column j with column j + d/2 (``pairs="halves"``), which is the same up to the order of
the columns. ALiBi is written for both directions with |i - j|; under a causal mask that is the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from engine.equation import Circuit, Values, equation
from engine.operations import absolute, cos, interleave, sin, take, turn
from engine.symbols import SIGNED, Symbol, symbol, table
from engine.trace import Trace

BASE = 10000.0


@equation
def P_sin(i, j, base, d):
    """Even columns: a wave over the positions, slower in each next pair."""
    return sin(i / base ** (2 * j / d))


@equation
def P_cos(i, j_full, base, d):
    """Odd columns: the same wave, a quarter ahead."""
    return cos(i / base ** (2 * j_full / d))


@equation
def P(P_sin, P_cos):
    """Position codes: sine and cosine columns in turn."""
    return interleave(P_sin, P_cos)


@equation("P")
def P_learned(W_p, i):
    """Position codes: one learned row for each position."""
    return take(W_p, i)


@equation
def X_r(X, Theta):
    """The input with each pair of columns turned by the angle of its position."""
    return X * cos(Theta) + turn(X) * sin(Theta)


@equation
def B(i, j, m):
    """What a score loses: the head's slope times the distance of query and key."""
    return -(m * absolute(i - j))


SINUSOIDAL = Circuit(P_sin, P_cos, P)
ROTARY = Circuit(X_r)
ALIBI = Circuit(B)


def index_symbol(letter: str, axes: str, name: str = "") -> Symbol:
    """A running number of a formula, written as such although many of its values are computed at once."""
    return Symbol(name=name or letter, letter=letter, axes=axes, role="size", italic=True)


def position_table(base: float = BASE) -> Mapping[str, Symbol]:
    """The symbols of sinusoidal positions; the base stands in the formula as the number it is."""
    return table(
        Symbol(name="P_sin", letter="P", subscript="i,2j", axes="TD", role="position", interval=SIGNED),
        Symbol(name="P_cos", letter="P", subscript="i,2j+1", axes="TD", role="position", interval=SIGNED),
        symbol("P", "TD", "position", SIGNED),
        index_symbol("i", "T1"),
        index_symbol("j", "D"),
        index_symbol("j", "D", "j_full"),
        Symbol(name="base", letter=f"{base:g}", axes="", role="size"),
        symbol("d", "", "size"),
        whole=True,
    )


LEARNED_TABLE = table(symbol("P", "TD", "position"), symbol("W_p", "VD", "weight"), index_symbol("i", "T1"), whole=True)
ROTARY_TABLE = table(
    symbol("X", "TK", "input_value"),
    symbol("X_r", "TK", "input_value"),
    Symbol(name="Theta", letter="Θ", axes="TK", role="size"),
    whole=True,
)
ALIBI_TABLE = table(
    symbol("B", "NTS", "score"), index_symbol("i", "T1"), index_symbol("j", "S"), index_symbol("m", "N11"), whole=True
)


# ------------------------------------------------------------------------------------------------------- sinusoidal


def numbered(positions: int | Tensor | Any) -> Tensor:
    """A count n as the positions 0 to n - 1, or the positions given, as float64 (n,). Raises ``ValueError`` for none."""
    given = torch.as_tensor(positions).to(torch.float64)
    if given.ndim == 0:
        if not 1 <= given < float("inf") or given != given.round():
            raise ValueError(f"the number of positions is a whole number from 1, not {positions}")
        return torch.arange(int(given), dtype=torch.float64)
    if given.ndim != 1 or not bool(given.isfinite().all()):
        raise ValueError(f"positions are a count or a row of numbers, not {tuple(given.shape)}")
    return given


def checked_width(width: int) -> int:
    """A width of at least 1. Raises ``ValueError``."""
    if width < 1:
        raise ValueError(f"a position code has a width of at least 1, not {width}")
    return width


def checked_base(base: float) -> float:
    """The base of the wavelengths, above 0. Raises ``ValueError``."""
    if not 0 < base < math.inf:
        raise ValueError(f"the base of the wavelengths is a number above 0, not {base}")
    return base


def frequencies(width: int, base: float = BASE) -> Tensor:
    """Radians for each step of a position, one number for each pair of columns: base^(-2j/d). (ceil(width / 2),)"""
    pairs = torch.arange((checked_width(width) + 1) // 2, dtype=torch.float64)
    return checked_base(base) ** (-2 * pairs / width)


def wavelengths(width: int, base: float = BASE) -> Tensor:
    """After how many positions each pair of columns repeats: 2 pi to just under 2 pi * base."""
    return 2 * math.pi / frequencies(width, base)


def sinusoidal_inputs(positions: Any, width: int, base: float = BASE) -> Values:
    """What the equations of the codes read, in float64."""
    pairs = torch.arange((checked_width(width) + 1) // 2, dtype=torch.float64)
    return {
        "i": numbered(positions).unsqueeze(-1),
        "j": pairs,
        "j_full": pairs[: width // 2],
        "base": torch.tensor(checked_base(base), dtype=torch.float64),
        "d": torch.tensor(float(width), dtype=torch.float64),
    }


def sinusoidal(positions: int | Tensor | Any, width: int, *, base: float = BASE, dtype: torch.dtype = torch.float64) -> Tensor:
    """The codes P (positions, width) of positions 0, 1, ... or of those given; any width of at least 1, any position."""
    results, _ = SINUSOIDAL.run(sinusoidal_inputs(positions, width, base))
    return results["P"].to(dtype)


def sinusoidal_trace(positions: int | Tensor | Any, width: int, *, base: float = BASE) -> Trace:
    """The codes P with the columns and numbers they are made of."""
    return SINUSOIDAL.trace(sinusoidal_inputs(positions, width, base), {}, {"": position_table(base)})


def shift(delta: float, width: int, *, base: float = BASE) -> Tensor:
    """The matrix R (width, width) that carries every code to the one ``delta`` positions on: P_{i+delta} = P_i R for all i.

    Each pair of columns is turned by delta times its frequency. Raises ``ValueError`` for an odd width, whose last column has
    no partner to turn with.
    """
    if checked_width(width) % 2:
        raise ValueError(f"a rotation turns pairs of columns, and a width of {width} leaves one column over")
    angles = delta * frequencies(width, base)
    R = torch.zeros(width, width, dtype=torch.float64)
    sine = torch.arange(0, width, 2)
    R[sine, sine] = R[sine + 1, sine + 1] = torch.cos(angles)
    R[sine, sine + 1], R[sine + 1, sine] = -torch.sin(angles), torch.sin(angles)
    return R


def binary_code(positions: int | Tensor | Any, bits: int) -> Tensor:
    """Positions as binary numbers (positions, bits), the fastest bit first: what the waves of ``sinusoidal`` do in steps."""
    given = numbered(positions).to(torch.int64)
    return (given.unsqueeze(-1) >> torch.arange(bits)) & 1


# ---------------------------------------------------------------------------------------------------------- learned


def learned(positions: int | Tensor | Any, W_p: Tensor) -> Tensor:
    """Rows of a learned table W_p (size, width) for positions 0, 1, ... or those given.

    Raises ``ValueError`` beyond the table: a learned code exists only for positions that were there in training.
    """
    return P_learned(W_p, table_rows(positions, len(W_p)))


def table_rows(positions: int | Tensor | Any, size: int) -> Tensor:
    """Whole positions (n, 1) inside a table of ``size`` rows. Raises ``ValueError`` with both numbers."""
    given = numbered(positions)
    if bool(((given != given.round()) | (given < 0)).any()):
        raise ValueError("a learned position is a whole number from 0")
    if bool((given >= size).any()):
        raise ValueError(
            f"{int(given.max()) + 1} positions are needed, and the table of learned positions ends after {size}: "
            "nothing was learned about those beyond"
        )
    return given.to(torch.int64).unsqueeze(-1)


class LearnedPositions(nn.Module):
    """A table W_p of learned position codes, drawn from N(0, ``std``^2). Called with positions it gives their rows."""

    def __init__(self, size: int, width: int, std: float = 0.02, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"a table has at least one position, not {size}")
        generator = generator or torch.Generator().manual_seed(0)
        self.W_p = nn.Parameter(torch.empty(size, checked_width(width)).normal_(std=std, generator=generator))

    def forward(self, positions: int | Tensor | Any) -> Tensor:
        return learned(positions, self.W_p)

    def trace(self, positions: int | Tensor | Any) -> Trace:
        """The codes with the table they come from."""
        return Circuit(P_learned).trace({"i": table_rows(positions, len(self.W_p))}, {"W_p": self.W_p}, {"": LEARNED_TABLE})


# ------------------------------------------------------------------------------------------------ rotary and ALiBi


def turning_angles(positions: int | Tensor | Any, width: int, *, base: float = BASE) -> Tensor:
    """The angle (positions, width) by which each column of each position is turned; a last column without partner by 0."""
    of_pairs = frequencies(width, base)[: width // 2].repeat_interleave(2)
    return numbered(positions).unsqueeze(-1) * nn.functional.pad(of_pairs, (0, width % 2))


def rotary(X: Tensor, positions: int | Tensor | Any | None = None, *, base: float = BASE, pairs: str = "neighbours") -> Tensor:
    """X (..., T, K) with each pair of columns turned by the angle of its position (0, 1, ... unless given).

    The dot product of two turned vectors depends on the difference of their positions only. ``pairs``: "neighbours" (0, 1),
    (2, 3), ... or "halves" (0, K/2), (1, K/2 + 1), ... A last column without a partner stays as it is.
    """
    width, length = X.shape[-1], X.shape[-2]
    angles = turning_angles(length if positions is None else positions, width, base=base).to(X.dtype)
    if len(angles) != length:
        raise ValueError(f"{len(angles)} positions for {length} rows")
    if pairs == "neighbours":
        return X_r(X, angles)
    if pairs != "halves":
        raise ValueError(f"pairs is neighbours or halves, not {pairs!r}")
    half = width // 2
    order = torch.cat(
        [torch.stack((torch.arange(half), torch.arange(half) + half), dim=-1).flatten(), torch.arange(2 * half, width)]
    )
    turned: Tensor = X_r(X[..., order], angles)
    return turned[..., torch.argsort(order)]


def rotary_trace(X: Tensor, positions: int | Tensor | Any | None = None, *, base: float = BASE) -> Trace:
    """X (T, K) and what ``rotary`` makes of its neighbouring columns."""
    angles = turning_angles(len(X) if positions is None else positions, X.shape[-1], base=base).to(X.dtype)
    return ROTARY.trace({"X": X, "Theta": angles}, {}, {"": ROTARY_TABLE})


def slopes(heads: int) -> Tensor:
    """How steeply each head's scores fall with the distance: 2^(-8/N), 2^(-16/N), ...

    Where N is no power of 2, those of the next smaller one, then every second one of twice as many heads, as in the paper.
    """
    if heads < 1:
        raise ValueError(f"there is at least one head, not {heads}")
    power = 2 ** int(math.log2(heads))
    steps = torch.arange(1, power + 1, dtype=torch.float64)
    of_power = 2 ** (-8 * steps / power)
    between = 2 ** (-8 * (torch.arange(1, heads - power + 1, dtype=torch.float64) * 2 - 1) / (2 * power))
    return torch.cat([of_power, between])


def alibi(heads: int, queries: int, keys: int | None = None, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """The bias B (heads, queries, keys) that is added to scores: minus the head's slope times the distance.

    Where there are more keys than queries, the last query stands at the last key (the others were cached).
    """
    results, _ = ALIBI.run(_alibi_inputs(heads, queries, keys))
    return results["B"].to(dtype)


def alibi_trace(heads: int, queries: int, keys: int | None = None) -> Trace:
    """The bias B with the numbers it is made of."""
    return ALIBI.trace(_alibi_inputs(heads, queries, keys), {}, {"": ALIBI_TABLE})


def _alibi_inputs(heads: int, queries: int, keys: int | None) -> Values:
    keys = queries if keys is None else keys
    first = max(0, keys - queries)
    return {
        "i": numbered(queries).unsqueeze(-1) + first,
        "j": numbered(keys),
        "m": slopes(heads).reshape(-1, 1, 1),
    }
