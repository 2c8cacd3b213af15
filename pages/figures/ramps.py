"""Colour scales and pixels. A scale is fixed by the role of a symbol and never by the values in view.

Gates and probabilities go from paper to their role's colour on 0..1, signed values from blue over paper to vermilion with 0 in
the middle: the scales of the stage (assets/stage/scales.js), mixed in Oklab as there.
"""

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pages.figures.palette import Palette

Array = NDArray[np.floating[Any]]
Pixels = NDArray[np.uint8]
STEPS = 254  # colours of a scale: with the two of the hatching they are the 256 of an indexed image
CELL = (8, 96)  # pixels of an image per cell and side, so that a smoothing viewer blurs only edges, and at most
STRIPE = 8  # pixels from stripe to stripe of the hatching

_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Evenly spaced colours (hex) over a fixed interval; values beyond its ends have the colours of the ends."""

    interval: tuple[float, float]
    colours: tuple[str, ...]

    def position(self, values: Array) -> Array:
        """Where values lie on the scale, 0..1; NaN stays NaN."""
        low, high = self.interval
        place: Array = np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
        return place

    def places(self, values: Array) -> Pixels:
        """The number of each value's colour on the scale; what is no number gets that of the lower end."""
        where = np.nan_to_num(self.position(values))
        places: Pixels = np.floor((STEPS - 1) * where + 0.5).astype(np.uint8)
        return places

    def paint(self, values: Array) -> Pixels:
        """The colour (..., 3) of each value."""
        return _table(self.colours)[self.places(values)]


def gate_scale(palette: Palette, role: str, high: float = 1.0) -> Scale:
    """0..1 (or 0..high) from paper to the role's colour."""
    return Scale(interval=(0.0, high), colours=(palette.paper, palette.mark[role]))


def signed_scale(palette: Palette, limit: float) -> Scale:
    """-limit..limit from blue over paper to vermilion: 0 is always in the middle."""
    return Scale(interval=(-limit, limit), colours=(palette.negative, palette.paper, palette.positive))


def symmetric_limit(values: Array) -> float:
    """The next power of two at or above the largest size: a fixed limit for values that have no bound; at least 1."""
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max()) if finite.size else 1.0
    return 2.0 ** min(math.ceil(math.log2(max(largest, 1.0))), 1023)


@cache
def _table(colours: tuple[str, ...]) -> Pixels:
    stops = np.stack([_lab(parse(colour)) for colour in colours])
    along = np.linspace(0, len(colours) - 1, STEPS)
    first = np.minimum(along.astype(int), len(colours) - 2)
    share = (along - first)[:, None]
    return _rgb(stops[first] * (1 - share) + stops[first + 1] * share)


def parse(colour: str) -> Array:
    """``#rrggbb`` as three numbers 0..255."""
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.float64)


def hexadecimal(rgb: Sequence[int] | Pixels) -> str:
    """Three numbers 0..255 as ``#rrggbb``."""
    return "#" + "".join(f"{int(part):02x}" for part in rgb)


def mix(one: str, other: str, share: float) -> str:
    """The colour a share of the way from one colour to another."""
    a, b = _lab(parse(one)), _lab(parse(other))
    return hexadecimal(_rgb((a + (b - a) * share)[None]).ravel())


def luminance(colour: str) -> float:
    """Relative luminance as in WCAG, 0 black .. 1 white."""
    return float(_linear(parse(colour)) @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours as in WCAG, 1..21."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _linear(rgb: Array) -> Array:
    part = rgb / 255
    linear: Array = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear


def _lab(rgb: Array) -> Array:
    lab: Array = _TO_LAB @ np.cbrt(_TO_LMS @ _linear(rgb))
    return lab


def _rgb(lab: Array) -> Pixels:
    linear = np.clip((lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T, 0, 1)
    part = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.floor(255 * part + 0.5).astype(np.uint8)


# -------------------------------------------------------------------------------------------------------------- images


@dataclass(frozen=True, kw_only=True)
class Image:
    """An indexed image: ``places`` (height, width) into ``table`` (up to 256, 3)."""

    places: Pixels
    table: Pixels

    @property
    def pixels(self) -> Pixels:
        """The colours (height, width, 3)."""
        return self.table[self.places]

    @property
    def png(self) -> bytes:
        """The image as a PNG file; each row is written as its difference to the row above, which repeats."""
        height, width = self.places.shape
        above = np.vstack([np.zeros((1, width), np.uint8), self.places[:-1]])
        rows = np.hstack([np.full((height, 1), 2, np.uint8), self.places - above])

        def chunk(kind: bytes, data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        parts = {
            b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
            b"PLTE": self.table.tobytes(),
            b"IDAT": zlib.compress(rows.tobytes(), 9),
            b"IEND": b"",
        }
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, content) for kind, content in parts.items())

    @property
    def url(self) -> str:
        """The image as a data address."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")


def cells(values: Array, scale: Scale, palette: Palette, *, height: float = 0, width: float = 0) -> Image:
    """A matrix as an image, to be drawn ``height`` x ``width`` pixels large: each cell in one colour, absent ones hatched."""

    def enlarged(matrix: Any) -> Any:
        for axis, room in enumerate((height, width)):
            matrix = np.repeat(matrix, int(np.clip(room / values.shape[axis], *CELL)), axis=axis)
        return matrix

    big: Pixels = enlarged(scale.places(values))
    absent: NDArray[np.bool_] = enlarged(~np.isfinite(values))
    y, x = np.ogrid[: absent.shape[0], : absent.shape[1]]
    big[absent] = np.where((x + y)[absent] % STRIPE < 2, STEPS + 1, STEPS)  # the last two colours of the table
    hatching = [parse(palette.wash), parse(mix(palette.paper, palette.ink, 0.45))]
    return Image(places=big, table=np.vstack([_table(scale.colours), *hatching]).astype(np.uint8))


def bar(scale: Scale, length: int = 64) -> Image:
    """A scale's own colours from its lower end to its upper end, one pixel high."""
    return Image(places=scale.places(np.linspace(*scale.interval, length))[None], table=_table(scale.colours))
