"""Colour scales: fixed by role, 0 in the middle of a signed one, the same colours as the stage's."""

import json

import numpy as np
import pytest

from pages.figures.palette import ROOT, palette
from pages.figures.ramps import Image, Scale, bar, cells, contrast, gate_scale, mix, parse, signed_scale, symmetric_limit
from tests.pages.figures.drawing import pixels

THEMES = pytest.mark.parametrize("theme", ["light", "dark"])


@THEMES
def test_colours_are_those_of_the_one_file(theme):
    colours = palette(theme)
    roles = json.loads((ROOT / "assets" / "theme" / "roles.json").read_text(encoding="utf-8"))
    assert colours.mark["forget"] == roles["forget"][theme]
    assert colours.text["forget"] == roles["forget"][f"{theme}Text"]
    assert colours.mark.keys() == roles.keys()
    assert (colours.negative, colours.positive) == (colours.mark["output"], colours.mark["forget"])


@THEMES
def test_text_can_be_read_and_marks_be_seen(theme):
    colours = palette(theme)
    assert all(contrast(color, colours.paper) >= 4.5 for color in [*colours.text.values(), colours.ink, colours.muted])
    assert all(contrast(color, colours.paper) >= 3 for color in colours.mark.values())


def test_ax_21_a_value_has_its_colour_whatever_else_is_shown():
    scale = gate_scale(palette(), "forget")
    assert scale.position(np.array([0.1, 0.3])).tolist() == [0.1, 0.3]
    np.testing.assert_array_equal(scale.paint(np.array([0.1, 0.3]))[0], scale.paint(np.array([0.1, 0.9]))[0])
    assert (scale.paint(np.array([0.3])) != scale.paint(np.array([0.9]))).any()


def test_ax_22_zero_is_in_the_middle_of_a_signed_scale():
    scale = signed_scale(palette(), 0.9)
    np.testing.assert_allclose(scale.position(np.array([-0.1, 0.0, 0.9])), [0.444444444444, 0.5, 1.0], atol=1e-9)
    middle = scale.paint(np.array([0.0]))[0].astype(int)
    assert np.abs(middle - parse(palette().paper)).max() <= 3


def test_limits_of_unbounded_values_are_powers_of_two():
    assert [symmetric_limit(np.array(v)) for v in ([0.2], [1.0], [-1.01], [2.0, np.nan], [3.0, -5.0], [])] == [1, 1, 2, 2, 8, 1]
    assert symmetric_limit(np.array([1e308])) == 2.0**1023


@THEMES
def test_the_ends_of_a_scale_are_paper_and_the_full_colour(theme):
    colours = palette(theme)
    scale = gate_scale(colours, "input")
    ends = scale.paint(np.array([-1.0, 0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(ends[[0, 2]], ends[[1, 3]])
    np.testing.assert_array_equal(ends[1:3], [parse(colours.paper), parse(colours.mark["input"])])
    assert mix(colours.paper, colours.ink, 0.0) == colours.paper.lower()


@pytest.mark.parametrize(
    ("ends", "stage"),
    [
        (
            ("#FDFCFA", "#B9440F"),
            [[253, 252, 250], [243, 216, 205], [232, 180, 161], [218, 144, 117], [202, 108, 73], [185, 68, 15]],
        ),
        (
            ("#15171B", "#4F80D6"),
            [[21, 23, 27], [32, 42, 60], [44, 62, 95], [55, 83, 133], [67, 105, 173], [79, 128, 214]],
        ),
    ],
)
def test_colours_are_mixed_as_on_the_stage(ends, stage):
    """Printed by ``createRamp([0, 1], ends).css(share)`` of assets/stage/scales.js at 0, 0.2, ... 1."""
    mixed = [parse(mix(*ends, share)).tolist() for share in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    np.testing.assert_allclose(mixed, stage, atol=1)
    painted = Scale(interval=(0.0, 1.0), colours=ends).paint(np.array([0, 0.2, 0.4, 0.6, 0.8, 1]))
    np.testing.assert_allclose(painted, stage, atol=2)


@THEMES
def test_an_image_holds_every_cell_in_the_colour_of_its_value(theme):
    colours = palette(theme)
    values = np.linspace(-1, 1, 15).reshape(3, 5)
    scale = signed_scale(colours, 1.0)
    image = cells(values, scale, colours, height=60, width=200)
    assert image.pixels.shape == (60, 200, 3)
    np.testing.assert_array_equal(pixels(image.url), image.pixels)
    np.testing.assert_array_equal(image.pixels[10::20, 20::40], scale.paint(values))
    np.testing.assert_array_equal(image.pixels[::19, ::39][0, 0], image.pixels[0, 0])


def test_a_large_image_is_small():
    rng = np.random.Generator(np.random.PCG64(1))
    image = cells(rng.random((64, 256)), gate_scale(palette(), "forget"), palette(), height=64, width=720)
    assert len(image.png) < 40_000


def test_a_bar_shows_its_scale_from_end_to_end():
    scale = Scale(interval=(0.0, 1.0), colours=("#000000", "#ffffff"))
    strip = bar(scale, 9).pixels[0]
    assert strip[0].tolist() == [0, 0, 0]
    assert strip[-1].tolist() == [255, 255, 255]
    assert (np.diff(strip[:, 0].astype(int)) > 0).all()


def test_the_colours_of_absent_cells_are_in_the_images_own_table():
    image = cells(np.array([[np.nan, 0.5]]), gate_scale(palette("dark"), "forget"), palette("dark"))
    assert isinstance(image, Image)
    assert image.table.shape == (256, 3)
    assert image.places[:, :8].min() >= 254
    assert image.places[:, 8:].max() < 254
