"""A learner's CSV file as columns of numbers. What was guessed and what was filled in is reported, never silent.

The report is a tuple of ``Note`` (a key and its values; the words stand in assets/locale):

======================  =============================  =================================================================
key                     values                         meaning
======================  =============================  =================================================================
table.empty             (none)                         no row with anything in it
table.no_numbers        columns                        no column holds at least two numbers
table.separator         separator                      the cells are separated by something other than a comma
table.decimal_comma     (none)                         numbers are written 3,14
table.uneven            rows                           rows (numbered as in the file) with more or fewer cells than usual
table.wide              used, total                    only the first ``used`` of the columns are read
series.missing          count, rows, first             cells without a number; ``first`` is what stands in the first one
series.filled           count                          cells filled on the line between their neighbours
series.cut              start, end                     cells without a number at the start or the end, left out
series.too_short        length, needed                 fewer values than the model needs
======================  =============================  =================================================================
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from engine.data.series import Series
from engine.notes import Note
from engine.trace import Array, frozen

SEPARATORS = (",", ";", "\t", "|")
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "#n/a"})
MOST_COLUMNS = 1000
ROWS_NAMED = 20  # row numbers listed in a note
# 1,234.5 and 1.234,5: marks between thousands
_THOUSANDS = {".": re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?"), ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+(,\d*)?")}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: ``values`` (rows,) with NaN where there is no number, ``cells`` as they were written.

    ``number`` counts from 0 and is the column's key: names may repeat or be missing. ``rows`` are the line numbers in the file.
    """

    number: int
    name: str
    values: Array = field(repr=False)
    cells: tuple[str, ...] = field(repr=False)
    rows: tuple[int, ...] = field(repr=False)

    @property
    def count(self) -> int:
        """How many numbers it holds."""
        return int(np.isfinite(self.values).sum())


@dataclass(frozen=True, kw_only=True)
class Table:
    """A file's columns. ``numeric`` are those with at least two numbers, and numbers in most of their filled cells."""

    columns: tuple[Column, ...]
    notes: tuple[Note, ...] = ()

    @cached_property
    def numeric(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if _is_numeric(column))


def read_table(text: str) -> Table:
    """Read CSV text (``engine.text.reading`` makes text of bytes): separator, header and decimal sign are found.

    A first row is a header when one of its cells stands over numbers without being one itself.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    csv.field_size_limit(10_000_000)  # of the whole process; a cell may be as long as the file
    separator = _separator(text)
    # A quote that is never closed swallows the rest as one cell: then quotes are taken as letters.
    rows = _cells(text, separator, csv.QUOTE_MINIMAL)
    if _unclosed(text, separator) or any(len(cell) > 10_000 for _, row in rows for cell in row):
        rows = _cells(text, separator, csv.QUOTE_NONE)
    if not rows:
        return Table(columns=(), notes=(Note("table.empty"),))
    notes = []
    if separator != ",":
        notes.append(Note("table.separator", {"separator": separator}))
    width = Counter(len(row) for _, row in rows).most_common(1)[0][0]
    uneven = [line for line, row in rows if len(row) != width]
    if width > MOST_COLUMNS:
        notes.append(Note("table.wide", {"used": MOST_COLUMNS, "total": width}))
        width, rows = MOST_COLUMNS, [(line, row[:MOST_COLUMNS]) for line, row in rows]
    if uneven:
        notes.append(Note("table.uneven", {"rows": _listed(uneven)}))
    cells = [(line, (*row[:width], *[""] * (width - len(row)))) for line, row in rows]
    sign = "," if separator != "," and _comma_is_decimal(cells) else "."
    if sign == ",":
        notes.append(Note("table.decimal_comma"))
    head = _has_header([row for _, row in cells], sign)
    body = cells[1:] if head else cells
    columns = []
    for number in range(width):
        written = tuple(row[number] for _, row in body)
        name = cells[0][1][number] if head else ""
        values = np.array([to_number(cell, sign) for cell in written])
        lines = tuple(line for line, _ in body)
        columns.append(Column(number=number, name=name, values=frozen(values), cells=written, rows=lines))
    table = Table(columns=tuple(columns), notes=tuple(notes))
    if not table.numeric:
        return Table(columns=table.columns, notes=(*notes, Note("table.no_numbers", {"columns": width})))
    return table


def column_series(table: Table, number: int, *, needed: int = 2) -> tuple[Series | None, tuple[Note, ...]]:
    """A column as a series without gaps, and what was done to get it; None when it has fewer than ``needed`` values.

    Cells without a number at either end are left out; those in between are filled on the straight line between their
    neighbours. The labels are those of the first column that holds no numbers. Raises ``IndexError`` for another number.
    """
    if not 0 <= number < len(table.columns):
        raise IndexError(f"column {number} does not exist: the table has {len(table.columns)}")
    column = table.columns[number]
    found = np.flatnonzero(np.isfinite(column.values))
    notes = []
    if len(found) < len(column.values):
        without = np.flatnonzero(~np.isfinite(column.values))
        rows = _listed([column.rows[place] for place in without])
        notes.append(Note("series.missing", {"count": len(without), "rows": rows, "first": column.cells[without[0]]}))
    if len(found) < needed:
        return None, (*notes, Note("series.too_short", {"length": len(found), "needed": needed}))
    start, end = int(found[0]), int(found[-1]) + 1
    if start or end < len(column.values):
        notes.append(Note("series.cut", {"start": start, "end": len(column.values) - end}))
    filled = end - start - len(found)
    if filled:
        notes.append(Note("series.filled", {"count": filled}))
    values = np.interp(np.arange(start, end), found, column.values[found])
    names = next((c.cells for c in table.columns if c is not column and not _is_numeric(c)), ())
    series = Series(name=column.name or f"column {number + 1}", values=frozen(values), labels=tuple(names[start:end]))
    return series, tuple(notes)


def to_number(cell: str, sign: str = ".") -> float:
    """The number written in a cell; NaN for none. Infinity is no number, blanks and marks between thousands are no matter."""
    written = cell.strip().replace("−", "-").replace("\u00a0", "").replace("\u202f", "")
    if written.lower() in MISSING:
        return float("nan")
    if _THOUSANDS[sign].fullmatch(written):
        written = written.replace("," if sign == "." else ".", "")
    if sign == ",":
        written = written.replace(",", ".") if written.count(",") == 1 and "." not in written else written
    if not _NUMBER.fullmatch(written):
        return float("nan")
    value = float(written)
    return value if np.isfinite(value) else float("nan")


def _separator(text: str) -> str:
    """The separator that cuts the most lines into the same number of cells, at least two; a comma where none does."""
    lines = [line for line in text.split("\n")[:200] if line.strip()]
    best, most = ",", 1
    for separator in SEPARATORS:
        widths = Counter(len(row) for row in csv.reader(lines, delimiter=separator))
        width, agreeing = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        if width > 1 and agreeing > most:
            best, most = separator, agreeing
        elif width > 1 and agreeing == most and separator == ";":
            best = separator  # 1,5;2,5: the comma cuts as evenly, inside the numbers
    return best


def _cells(text: str, separator: str, quoting: int) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, quoting=quoting)  # type: ignore[arg-type]
    return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(cell.strip() for cell in row)]


def _unclosed(text: str, separator: str) -> bool:
    """Whether a cell begins with a quote that nothing closes."""
    try:
        for _ in csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True):
            pass
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _comma_is_decimal(rows: Sequence[tuple[int, Sequence[str]]]) -> bool:
    cells = [cell for _, row in rows[:200] for cell in row]
    with_comma = sum("," in cell and np.isfinite(to_number(cell, ",")) for cell in cells)
    with_point = sum("." in cell and np.isfinite(to_number(cell, ".")) for cell in cells)
    return with_comma > with_point


def _has_header(rows: Sequence[Sequence[str]], sign: str) -> bool:
    if len(rows) < 2:
        return False
    for place, cell in enumerate(rows[0]):
        below = [np.isfinite(to_number(row[place], sign)) for row in rows[1:200] if row[place].lower() not in MISSING]
        if cell.lower() not in MISSING and not np.isfinite(to_number(cell, sign)) and sum(below) * 2 > len(below):
            return True
    return False


def _listed(rows: Sequence[int]) -> str:
    """Row numbers as a note shows them."""
    return ", ".join(map(str, rows[:ROWS_NAMED])) + (" ..." if len(rows) > ROWS_NAMED else "")


def _is_numeric(column: Column) -> bool:
    filled = sum(cell.strip().lower() not in MISSING for cell in column.cells)
    return column.count >= 2 and 2 * column.count > filled
