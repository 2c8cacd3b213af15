"""The figures of the lesson on kernel regression: what is drawn is what was given."""

import numpy as np
import pytest

from pages.figures.images import svg
from pages.figures.kernels import Fit, kernel_fits, learned_widths
from tests.pages.figures.drawing import checked


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_fits_hold_every_number_and_gaps_stay_gaps(theme):
    queries, gap = np.linspace(-1, 6, 8), np.array([np.nan, 0, 1, 2, 3, 2, 1, np.nan])
    lines = [Fit(name="one", values=queries**2, role="output"), Fit(name="<b>", values=gap, role="state", dashed=True)]
    points = (np.array([0.0, 1.0]), np.array([3.0, -4.0]))
    figure = checked(kernel_fits(queries, lines, points, title="t", note="n", hover=("x", "y"), theme=theme))
    assert figure.rows[0] == ("x", "one", "<b>")
    np.testing.assert_array_equal(np.array(figure.rows[1:]), np.stack([queries, queries**2, gap], axis=1))
    assert "&lt;b&gt;" in svg(figure).decode()


def test_widths_of_every_seed_are_drawn_also_those_that_are_0():
    found = [("book", np.array([0.0, 3.0, -29.7]), "update"), ("best", np.array([4.1, 3.0, 5.0]), "output")]
    figure = checked(learned_widths(found, title="t", note="n", x_title="x", hover=("seed", "w")))
    assert figure.rows[1:] == ((0, 0.0, 4.1), (1, 3.0, 3.0), (2, -29.7, 5.0))
    marks = figure.spec["layer"][0]["data"]["values"]
    assert [mark["x"] for mark in marks[:3]] == pytest.approx([-2.0, np.log10(3), np.log10(29.7)])
    assert svg(figure)
