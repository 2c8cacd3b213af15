"""The log of a run, read as it grows: losses and norms of every step, what was measured, and what happened.

A worker that takes a run up again goes on from its last state, and a run that is taken back goes on from an earlier step; the
log says so (``resume``, ``rewind``), and what was written of later steps is forgotten.
"""

from __future__ import annotations

import json
import math
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
WIDTHS = tuple(m * 10**e for e in range(6) for m in (1, 2, 5))


@dataclass(frozen=True)
class Happened:
    """A line of the log that is no step: "diverged", "turned", "end", "resume", "rewind"."""

    kind: str
    step: int
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Curve:
    """One member's curves. Training losses are means over ``width`` steps, each given at its last step."""

    width: int
    steps: Numbers
    losses: Numbers
    norms: Numbers
    held_steps: Numbers
    held: Numbers


class RunLog:
    """Read with ``update``; everything is per member, in the order of the run."""

    def __init__(self, path: Path, members: int) -> None:
        self.path, self.members = path, members
        self._offset = 0
        self._file: tuple[int, int] | None = None
        self._reset()

    def _reset(self) -> None:
        self._offset = 0
        self.steps, self.seconds = array("d"), array("d")
        self.losses, self.norms, self.took = ([array("d") for _ in range(self.members)] for _ in range(3))
        self.held_steps = array("d")
        self.held = [array("d") for _ in range(self.members)]
        self.measured = 0  # predictions on which the held-out loss is a mean
        self.uniform: float | None = None
        self.ngrams: tuple[float, ...] = ()
        self.happened: list[Happened] = []

    def update(self) -> bool:
        """Read what is new; whether there was anything. An unfinished last line waits for the next time."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return False
        end = data.rfind(b"\n") + 1
        for line in data[:end].splitlines():
            try:
                found = json.loads(line)
            except ValueError:  # a killed worker left it unfinished
                continue
            self._take(found)
        self._offset += end
        return end > 0

    def _take(self, line: dict[str, Any]) -> None:
        kind, step = line.pop("k", ""), int(line.pop("s", 0))
        if not kind:
            self.steps.append(step)
            self.seconds.append(line["t"])
            for name, rows in (("l", self.losses), ("g", self.norms), ("d", self.took)):
                for place, row in enumerate(rows):
                    value = line[name][place]
                    row.append(math.nan if value is None else value)
        elif kind == "held":
            self.held_steps.append(step)
            self.measured = line["n"]
            for place, row in enumerate(self.held):
                value = line["h"][place]
                row.append(math.nan if value is None else value)
        elif kind == "lines":
            self.uniform, self.ngrams = line["uniform"], tuple(line["ngrams"])
        else:
            if kind in ("resume", "rewind"):
                self._forget(step)
            self.happened.append(Happened(kind, step, line))

    def _forget(self, step: int) -> None:
        """Drop what was written of steps after this one."""
        count = bisect_right(self.steps, step)
        for row in (self.steps, self.seconds, *self.losses, *self.norms, *self.took):
            del row[count:]
        count = bisect_right(self.held_steps, step)
        for row in (self.held_steps, *self.held):
            del row[count:]
        self.happened = [one for one in self.happened if one.step <= step and one.kind != "end"]

    # ---------------------------------------------------------------------------------------------------- what it says

    @property
    def step(self) -> int:
        return int(self.steps[-1]) if self.steps else 0

    def curve(self, member: int, most: int = 240) -> Curve:
        """At most ``most`` points; a point once there stays as it is while the run goes on, until the width doubles."""
        count = len(self.steps)
        last = self.step
        width = next((width for width in WIDTHS if last <= width * most), WIDTHS[-1])
        steps = np.frombuffer(self.steps, dtype=np.float64) if count else np.zeros(0)
        bins = np.ceil(steps / width).astype(np.int64)
        starts = np.flatnonzero(np.diff(bins, prepend=-1)) if count else np.zeros(0, dtype=np.int64)
        losses, norms = (_means(row, starts) for row in (self.losses[member], self.norms[member]))
        ends = np.append(starts[1:], count) - 1 if len(starts) else starts
        held, held_steps = np.array(self.held[member]), np.array(self.held_steps)
        every = max(1, -(-len(held) // most))
        places = np.unique(np.append(np.arange(0, len(held), every), max(len(held) - 1, 0))) if len(held) else np.zeros(0, int)
        return Curve(width, steps[ends] if count else steps, losses, norms, held_steps[places], held[places])

    def speed(self, member: int, tokens: int, recent: float = 1500.0) -> float | None:
        """Tokens per second of this member's own time over its latest steps of together at least ``recent`` milliseconds."""
        row = self.took[member]
        spent, steps = 0.0, 0
        for value, loss in zip(reversed(row), reversed(self.losses[member]), strict=True):
            if loss == loss:
                spent, steps = spent + value, steps + 1
            if spent > recent or steps >= 500:
                break
        return tokens * steps / spent * 1000 if spent else None

    def left(self, steps: int) -> float | None:
        """Seconds until the last of ``steps`` steps, at the pace of the latest ones."""
        if len(self.steps) < 3:
            return None
        back = min(len(self.steps) - 1, 200)
        pace = (self.seconds[-1] - self.seconds[-1 - back]) / back
        return pace * (steps - self.step)

    def best(self, member: int) -> tuple[int, float] | None:
        """The step of the lowest held-out loss, and that loss."""
        row = np.array(self.held[member])
        if not len(row) or np.isnan(row).all():
            return None
        place = int(np.nanargmin(row))
        return int(self.held_steps[place]), float(row[place])

    def turned(self, member: int, patience: int = 8, rise: float = 0.01) -> int | None:
        """The step of the best held-out loss where it has turned since: ``patience`` later ones, the last well above it."""
        best = self.best(member)
        if best is None:
            return None
        row = np.array(self.held[member])
        later = row[np.array(self.held_steps) > best[0]]
        later = later[~np.isnan(later)]
        return best[0] if len(later) >= patience and later[-3:].mean() > best[1] + rise else None

    def last(self, kind: str) -> Happened | None:
        """The latest thing of a kind that happened."""
        return next((one for one in reversed(self.happened) if one.kind == kind), None)

    def rows(self) -> list[tuple[str | int | float | None, ...]]:
        """The whole log as a table, its header first."""
        table: list[tuple[str | int | float | None, ...]] = [("step", "seconds", "model", "loss", "gradient_norm", "held_out")]
        held = {int(step): place for place, step in enumerate(self.held_steps)}
        for at, step in enumerate(self.steps):
            for member in range(self.members):
                place = held.get(int(step))
                values = (self.losses[member][at], self.norms[member][at], None if place is None else self.held[member][place])
                shown = [None if value is None or value != value else value for value in values]
                table.append((int(step), self.seconds[at], member, *shown))
        return table


def _means(row: array[float], starts: NDArray[np.int64]) -> Numbers:
    """Means of the parts of a row that begin at ``starts``."""
    values = np.array(row)
    if not len(starts):
        return values
    return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))
