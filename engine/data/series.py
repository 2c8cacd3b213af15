"""Series of numbers to predict: a made one, measured ones that an installation brings, and a learner's own column.

===================  ==============================================================  =============================
name                 values                                                          from
===================  ==============================================================  =============================
noisy_sine           sin(0.01 t) and noise                                           made here
seattle_temperature  highest temperature of each day, 2012 to 2015 (deg C)           package ``vega_datasets``
sf_temperature       temperature of each hour of 2010 in San Francisco (deg F)       package ``vega_datasets``
stocks               closing prices by week, 2018 and 2019, 1 = the first week       package ``plotly``
===================  ==============================================================  =============================

The packages' data files are read, their code is not run.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from engine.trace import Array, frozen

STOCKS = ("GOOG", "AAPL", "AMZN", "FB", "NFLX", "MSFT")
MEASURED = ("seattle_temperature", "sf_temperature", "stocks")
SINE_STEP = 0.01  # radians from one value to the next: a period of 628 steps


class SeriesMissing(LookupError):
    """A series whose package is not installed. ``package`` is the name to install."""

    def __init__(self, name: str, package: str) -> None:
        super().__init__(f"the series {name!r} needs the package {package}")
        self.name, self.package = name, package


@dataclass(frozen=True, kw_only=True)
class Series:
    """``values`` (n,) float64, read-only and finite. ``labels`` name the steps (dates), or nothing.

    ``clean`` (n,) is the part without noise, where it is known. ``unit`` is what a value is measured in.
    """

    name: str
    values: Array = field(repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)
    unit: str = ""
    clean: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or not np.isfinite(self.values).all():
            raise ValueError("a series is one row of finite numbers")
        if self.labels and len(self.labels) != len(self.values):
            raise ValueError(f"{len(self.values)} values have {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.values)


def noisy_sine(length: int = 1000, noise: float = 0.2, *, generator: torch.Generator) -> Series:
    """x_t = sin(0.01 t) + N(0, noise^2) for t = 1, ..., length; ``clean`` is the sine. Raises ``ValueError``."""
    if length < 1 or not (math.isfinite(noise) and noise >= 0):
        raise ValueError(f"a length of at least 1 and a noise of at least 0 are needed, not {length} and {noise}")
    clean = torch.sin(SINE_STEP * torch.arange(1, length + 1, dtype=torch.float64))
    drawn = torch.randn(length, generator=generator, dtype=torch.float64)
    return Series(name="noisy_sine", values=frozen(clean + noise * drawn), clean=frozen(clean))


@lru_cache(maxsize=8)
def measured(name: str, company: str = STOCKS[0]) -> Series:
    """One of the measured series.

    Raises ``ValueError`` for an unknown name or company, ``SeriesMissing`` when its package is not installed.
    """
    if name == "seattle_temperature":
        rows = _rows(name, "vega_datasets", "_data/seattle-weather.csv")
        return _series(name, rows, "temp_max", "°C", lambda date: date.replace("/", "-"))
    if name == "sf_temperature":
        rows = _rows(name, "vega_datasets", "_data/sf-temps.csv")
        return _series(name, rows, "temp", "°F", lambda date: date.replace("/", "-").removesuffix(":00"))
    if name == "stocks":
        if company not in STOCKS:
            raise ValueError(f"the company is one of {', '.join(STOCKS)}, not {company!r}")
        return _series(f"stocks {company}", _rows(name, "plotly", "package_data/datasets/stocks.csv.gz"), company, "", str)
    raise ValueError(f"a measured series is one of {', '.join(MEASURED)}, not {name!r}")


def _rows(name: str, package: str, place: str) -> list[dict[str, str]]:
    """The rows of a package's CSV file, found without importing the package."""
    spec = importlib.util.find_spec(package)
    path = None if spec is None or spec.origin is None else Path(spec.origin).parent / place
    if path is None or not path.is_file():
        raise SeriesMissing(name, package)
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def _series(name: str, rows: list[dict[str, str]], column: str, unit: str, date: Callable[[str], str]) -> Series:
    values = np.array([float(row[column]) for row in rows])
    return Series(name=name, values=frozen(values), labels=tuple(date(row["date"]) for row in rows), unit=unit)
