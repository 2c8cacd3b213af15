"""Colours: enough contrast in both themes, told apart also by colour-blind eyes, and the same everywhere."""

import math
import re
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from engine.recurrent.gru import GRU_TABLE
from engine.recurrent.lstm import LSTM_TABLE
from pages.ui.stage import ALIASES
from pages.ui.theme import FOLDER, roles

ROOT = Path(__file__).resolve().parents[3]
CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
SHADES = ("light", "dark")
# Colours that stand side by side on one picture.
TOGETHER = (
    ("forget", "input", "output", "candidate", "cell", "state"),
    ("reset", "update", "candidate", "state"),
    ("query", "key", "value"),
)
# Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
EYES = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red cones": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green cones": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue cones": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour: str) -> list[float]:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio."""
    low, high = sorted(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(each), strict=True)) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb: list[float]) -> list[float]:
    """Ottosson 2020."""
    to_lms = (
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    )
    to_lab = (
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    )
    roots = [max(sum(a * b for a, b in zip(row, rgb, strict=True)), 0) ** (1 / 3) for row in to_lms]
    return [sum(a * b for a, b in zip(row, roots, strict=True)) for row in to_lab]


def distance(one: str, other: str, eye: str) -> float:
    """How far apart two colours look (OKLab) to such an eye."""
    seen = [
        [min(1, max(0, sum(a * b for a, b in zip(row, linear(each), strict=True)))) for row in EYES[eye]]
        for each in (one, other)
    ]
    return math.dist(*map(oklab, seen))


@pytest.mark.parametrize("shade", SHADES)
@pytest.mark.parametrize("role", sorted(roles()))
def test_contrast_against_the_page(role: str, shade: str):
    page, colours = CONFIG[shade]["backgroundColor"], roles()[role]
    assert contrast(colours[shade], page) >= 3
    assert contrast(colours[f"{shade}Text"], page) >= 4.5


@pytest.mark.parametrize("shade", SHADES)
@pytest.mark.parametrize("together", TOGETHER)
@pytest.mark.parametrize("eye", EYES)
def test_colours_of_one_picture_are_told_apart(together: tuple[str, ...], shade: str, eye: str):
    for one, other in combinations(together, 2):
        assert distance(roles()[one][shade], roles()[other][shade], eye) > 0.1, f"{one} and {other}"


def test_every_role_of_a_model_has_a_colour():
    used = {symbol.role for table in (LSTM_TABLE, GRU_TABLE) for symbol in table.values()}
    assert {ALIASES.get(role, role) for role in used} <= roles().keys()


@pytest.mark.parametrize("shade", SHADES)
def test_text_of_the_page_is_readable(shade: str):
    theme = CONFIG[shade]
    for ground in (theme["backgroundColor"], theme["secondaryBackgroundColor"]):
        assert contrast(theme["textColor"], ground) >= 7


@pytest.mark.parametrize("shade", SHADES)
def test_charts_use_role_colours(shade: str):
    known = {colours[shade] for colours in roles().values()}
    theme = CONFIG[shade]
    assert set(theme["chartCategoricalColors"]) <= known
    assert theme["chartSequentialColors"][-1] == roles()["output"][shade]
    diverging = theme["chartDivergingColors"]
    assert (diverging[0], diverging[-1]) == (roles()["output"][shade], roles()["forget"][shade])
    assert len(diverging) == len(theme["chartSequentialColors"]) == 10


def test_the_style_sheet_uses_the_palette():
    sheet = (FOLDER / "frame.css").read_text(encoding="utf-8")
    known = {colour.lower() for shade in SHADES for colour in (CONFIG[shade]["textColor"], CONFIG[shade]["backgroundColor"])}
    known |= {colour.lower() for colours in roles().values() for colour in colours.values()}
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", sheet)) <= known
