"""The numbers of a run as tables, and tables as CSV files: positions are keys, tokens are data.

A cell of text that a spreadsheet would run as a formula gets an apostrophe in front, which spreadsheets show as text;
``unprotected`` takes it away again. Numbers are numbers and are never changed. An absent value is an empty cell, never 0.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from engine.trace import Trace

Cell = str | int | float | None
Row = Sequence[Cell]

# What makes a spreadsheet read a cell as a formula or a command, in ASCII and in the full-width forms.
DANGEROUS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def state_rows(trace: Trace, tokens: Sequence[str], *, baseline: Trace | None = None, batch: int = 0) -> Iterator[Row]:
    """A header, then a row for each step (from 1) and unit (from 0): the token and every symbol with units.

    With ``baseline``, the unchanged run, its value of each symbol stands beside it. Raises ``ValueError`` where the tokens are
    not as many as the steps.
    """
    _fitting(trace, tokens)
    names = [name for name in trace if trace.symbol(name).axes.endswith("H")]
    runs = [(trace, "")] + ([(baseline, "_baseline")] if baseline else [])
    yield ("step", "token", "unit", *(name + ending for name in names for _, ending in runs))
    columns = [run[name][:, batch] for name in names for run, _ in runs]
    for t, token in enumerate(tokens):
        for unit in range(columns[0].shape[-1]):
            yield (t + 1, token, unit, *(number(column[t, unit]) for column in columns))


def token_rows(
    trace: Trace, tokens: Sequence[str], vocabulary: Sequence[str], *, baseline: Trace | None = None, batch: int = 0
) -> Iterator[Row]:
    """A header, then a row for each step and each token that could come next, with its probability."""
    _fitting(trace, tokens)
    runs = [trace] + ([baseline] if baseline else [])
    if len(vocabulary) != trace["P"].shape[-1]:
        raise ValueError(f"{len(vocabulary)} names for {trace['P'].shape[-1]} columns of P")
    yield ("step", "token", "next", "probability", *(["probability_baseline"] if baseline else []))
    for t, token in enumerate(tokens):
        for v, following in enumerate(vocabulary):
            yield (t + 1, token, following, *(number(run["P"][t, batch, v]) for run in runs))


def to_csv(rows: Iterable[Row]) -> bytes:
    """A CSV file as spreadsheets read it: UTF-8 with a mark, lines ending in CR LF, text quoted where needed.

    A lone surrogate, which UTF-8 cannot hold, becomes U+FFFD.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    clean = text.getvalue().encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.encode("utf-8-sig")


def protected(text: str) -> str:
    """Text that no spreadsheet runs."""
    return f"'{text}" if text.startswith((*DANGEROUS, "'")) else text


def unprotected(text: str) -> str:
    """The text that ``protected`` was given."""
    return text[1:] if text.startswith("'") else text


def number(value: np.floating | float) -> float:
    """A number with as many digits as its own precision has: 0.1 of float32 is 0.1, not 0.10000000149."""
    return float(str(value))


def _cell(value: Cell | np.generic) -> str:
    if isinstance(value, np.generic):
        value = number(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, str):
        return protected(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value)


def _fitting(trace: Trace, tokens: Sequence[str]) -> None:
    if len(tokens) != len(trace):
        raise ValueError(f"{len(tokens)} tokens for a run of {len(trace)} steps")
