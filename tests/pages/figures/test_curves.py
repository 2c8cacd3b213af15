"""Curves with their spread and levels, and eigenvalues in their circle: what is drawn is what was given."""

import json

import numpy as np
import pytest

from pages.figures import curves
from pages.figures.curves import Curve, _ticks


def curve(y, **more):
    y = np.asarray(y, dtype=float)
    return Curve(key="a", label="<b>a</b>", color="#000000", text="#000000", x=np.arange(1, len(y) + 1), y=y, **more)


def drawn(*lines, **more):
    return curves.curves(lines, title="t", x_title="k", hover=("k", "v"), **more)


def test_a_figure_holds_the_numbers_and_is_plain_data():
    spread = {"low": np.array([0.5, 1.0, 1.5]), "high": np.array([2.0, 3.0, 4.0])}
    figure = drawn(curve([1, 2, 3], **spread), levels=[("mean", 2.5)], zero=True)
    assert figure.rows == (
        ("curve", "x", "y", "low", "high"),
        ("a", 1.0, 1.0, 0.5, 2.0),
        ("a", 2.0, 2.0, 1.0, 3.0),
        ("a", 3.0, 3.0, 1.5, 4.0),
    )
    json.dumps(figure.spec, allow_nan=False)
    assert [layer["mark"]["type"] for layer in figure.spec["layer"]] == ["area", "line", "rule", "text", "point"]
    assert {row["label"] for row in figure.spec["layer"][3]["data"]["values"]} == {"<b>a</b>", "mean"}
    (low, high) = figure.spec["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert low == 0
    assert high > 4


@pytest.mark.parametrize("values", [[np.nan, np.inf, 2.0], [np.nan], [5.0], [0.0, 0.0]])
def test_what_is_no_number_is_a_gap_and_is_counted(values):
    figure = drawn(curve(values))
    json.dumps(figure.spec, allow_nan=False)
    missing = int((~np.isfinite(values)).sum())
    assert sum(figure.omitted.values()) == missing


def test_ticks_are_whole_and_end_with_the_data():
    assert _ticks(1, 5) == [1, 2, 3, 4, 5]
    assert _ticks(1, 64) == [10, 20, 30, 40, 50, 60]
    assert _ticks(1, 1000) == [200, 400, 600, 800, 1000]
    assert _ticks(0, 0) == [0]


def test_eigenvalues_stand_where_they_are_in_a_round_circle():
    values = np.array([0.9, 0.3 + 0.4j, 0.3 - 0.4j])
    figure = curves.eigenvalues(list(values), role="output", title="t", hover=("value", "modulus"))
    json.dumps(figure.spec, allow_nan=False)
    assert figure.rows[1:] == ((0.9, 0.0, 0.9), (0.3, 0.4, 0.5), (0.3, -0.4, 0.5))
    points = figure.spec["layer"][1]["data"]["values"]
    assert [point["value"] for point in points] == ["0.900", "0.300 + 0.400i", "0.300 − 0.400i"]
    scale = figure.spec["layer"][0]["encoding"]["x"]["scale"]
    assert "width / height" in scale["domainMax"]["expr"]
    assert figure.spec["layer"][2]["data"]["values"] == [points[0]]
