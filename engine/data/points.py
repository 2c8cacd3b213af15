"""Points (x, y) from what a learner typed or uploaded: two columns of numbers, with a sentence for all that was left out.

======================  =============================  =================================================================
key                     values                         meaning
======================  =============================  =================================================================
points.none             (none)                         nothing was given
points.two_columns      columns                        there are no two columns of numbers
points.left_out         count, rows                    rows without two numbers, by their line numbers
points.too_large        count, limit                   points with a coordinate beyond the limit, left out
points.first            kept, total                    more points than are taken: the first ones are
points.columns          columns                        more than two columns: the first two with numbers are taken
======================  =============================  =================================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from engine.data.tables import read_table
from engine.notes import Note

MOST = 100  # points
LARGEST = 1e6  # of a coordinate
DIGITS = 6  # of a coordinate that a link carries
_BLANKS = re.compile(r"(?<=\S)[ \t]+(?=\S)")


@dataclass(frozen=True, order=True)
class Point:
    """A point of data. As text, ``1.5,-2``."""

    x: float
    y: float

    def __str__(self) -> str:
        return f"{self.x:.{DIGITS}g},{self.y:.{DIGITS}g}"


def rounded(x: float, y: float) -> Point:
    """The point that a link can carry."""
    return Point(float(f"{x:.{DIGITS}g}") + 0.0, float(f"{y:.{DIGITS}g}") + 0.0)


def sort(points: list[Point] | tuple[Point, ...]) -> tuple[Point, ...]:
    """Points from left to right; those above one another stay in the order in which they came."""
    return tuple(sorted(points, key=lambda point: point.x))


def read_points(text: str) -> tuple[tuple[Point, ...], tuple[Note, ...]]:
    """Points from CSV text, from left to right, and what had to be said about it. No points: the last note says why."""
    if not text.strip():
        return (), (Note("points.none"),)
    lines = text.strip().splitlines()
    known = any(sign in text for sign in ",;\t|")
    if not known:  # two numbers with a blank between them
        text = "\n".join(_BLANKS.sub("\t", line.strip()) for line in lines)
    table = read_table(text)
    notes = [note for note in table.notes if known and note.key in ("table.separator", "table.decimal_comma")]
    columns = [column for column in table.columns if column.count and 2 * column.count >= len(column.values)]
    if len(columns) < 2:
        return (), (Note("points.two_columns", {"columns": len(columns)}),)
    if len(columns) > 2:
        notes.append(Note("points.columns", {"columns": len(columns)}))
    x, y = columns[0].values, columns[1].values
    whole = np.isfinite(x) & np.isfinite(y)
    if not whole.all():
        rows = [str(row) for row, there in zip(columns[0].rows, whole, strict=True) if not there]
        listed = ", ".join(rows[:10]) + (" ..." if len(rows) > 10 else "")
        notes.append(Note("points.left_out", {"count": len(rows), "rows": listed}))
    near = whole & (np.abs(x) <= LARGEST) & (np.abs(y) <= LARGEST)
    if near.sum() < whole.sum():
        notes.append(Note("points.too_large", {"count": int(whole.sum() - near.sum()), "limit": LARGEST}))
    found = [rounded(float(a), float(b)) for a, b in zip(x[near], y[near], strict=True)]
    if not found:
        return (), (*notes, Note("points.two_columns", {"columns": 0}))
    if len(found) > MOST:
        notes.append(Note("points.first", {"kept": MOST, "total": len(found)}))
    return sort(found[:MOST]), tuple(notes)
