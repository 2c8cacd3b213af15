"""The figures of the lesson on scores: what is drawn is what was given."""

import numpy as np
import pytest

from pages.figures.images import svg
from pages.figures.scores import Series, size_lines
from tests.pages.figures.drawing import checked, hovered


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_over_sizes_hold_every_number_also_0(theme):
    sizes = (0.1, 8, 64)
    lines = [
        Series(name="grows", values=np.array([1.0, 64.0, 4096.0]), role="output"),
        Series(name="<i>0</i>", values=np.array([0.5, 0.0, 2.0]), role="forget", dashed=True),
    ]
    figure = checked(size_lines(sizes, lines, title="t", note="n", x_title="x", y_title="y", hover=("n", "v"), theme=theme))
    assert figure.rows == (("size", "grows", "<i>0</i>"), (0.1, 1.0, 0.5), (8.0, 64.0, 0.0), (64.0, 4096.0, 2.0))
    assert figure.spec["layer"][0]["encoding"]["color"]["scale"]["domain"] == ["grows", "<i>0</i>"]
    assert "&lt;i&gt;0&lt;/i&gt;" in svg(figure).decode()
    assert [row["value"] for row in hovered(figure)][4] == "0.000"
    assert svg(figure)
    labels = figure.spec["params"]
    assert next(each["value"] for each in labels if each["name"] == "sizes")["0.0000"] == "0.1"
    assert ">0.1<" in svg(figure).decode()
    first = figure.spec["layer"][0]
    assert [row["x"] for row in first["data"]["values"]] == pytest.approx([0, np.log10(80), np.log10(640)])
    assert first["encoding"]["x"]["axis"]["values"] == pytest.approx([0, np.log10(80), np.log10(640)])
