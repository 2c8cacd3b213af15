"""Lines over positions: every value is there, gaps stay gaps, names do not touch."""

import numpy as np
import pytest

from pages.figures.waves import PITCH, Line, lines_over


def drawn(*values: list[float], **more):
    lines = [Line(name=f"line {at}", role="output", values=np.array(each)) for at, each in enumerate(values)]
    options = {"title": "t", "note": "n", "x_title": "x", "y_title": "y", "hover": ("a", "b")} | more
    return lines_over(lines, range(len(values[0])), **options)


def test_every_value_is_drawn_and_a_gap_is_a_gap():
    figure = drawn([1.0, float("nan"), 3.0], [0.0, 1.0, 2.0])
    rows = figure.spec["layer"][0]["data"]["values"]
    assert [row["y"] for row in rows] == [1.0, None, 3.0, 0.0, 1.0, 2.0]
    assert len(figure.spec["layer"][1]["data"]["values"]) == 5
    assert figure.rows[0] == ("x", "line 0", "line 1")
    assert figure.rows[3] == (2.0, 3.0, 2.0)


def test_names_of_lines_that_end_together_stand_apart_and_inside():
    height = 200
    figure = drawn(*[[0.0, 1.0 + 1e-3 * at] for at in range(5)], *[[1.0, 0.0]] * 3, height=height)
    low, high = figure.spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    places = sorted(height * (high - row["y"]) / (high - low) for row in figure.spec["layer"][2]["data"]["values"])
    assert min(np.diff(places)) > PITCH - 1e-6
    assert places[-1] <= height


def test_lines_without_any_number_are_an_empty_figure():
    figure = drawn([float("nan")] * 3)
    assert figure.spec["layer"][1]["data"]["values"] == []
    assert figure.rows[0] == ("x", "line 0")


def test_a_mark_and_fixed_limits():
    figure = drawn([0.5, 0.6], limits=(0.0, 1.0), mark=(1, "end"))
    assert figure.spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0.0, 1.0]
    assert figure.spec["layer"][4]["data"]["values"] == [{"x": 1.0, "word": "end"}]
    with pytest.raises(ValueError, match="every line"):
        lines_over(
            [Line(name="a", role="output", values=np.ones(3))],
            [0, 1],
            title="",
            note="",
            x_title="",
            y_title="",
            hover=("", ""),
        )
