"""Rank against frequency: measured points, fitted lines, and labels that keep to their places."""

import numpy as np
import pytest

from engine.text.frequencies import rank_frequency
from pages.figures.zipf import MOST_POINTS, Named, rank_lines
from tests.pages.figures.drawing import checked, hovered, layers, texts

WORDS = {"title": "Rank", "x_title": "rank", "y_title": "count", "exponent": "α", "hover": ("token", "rank", "count")}


def drawn(tokens, grams=(1, 2), theme="light"):
    return checked(rank_lines([Named(found=rank_frequency(tokens, n), name=f"{n}-grams") for n in grams], theme=theme, **WORDS))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_points_and_fits_are_the_counts(theme):
    tokens = [name for count, name in ((64, "a"), (32, "b"), (16, "1"), (8, "<b>"), (1, " ")) for _ in range(count)]
    figure = drawn(tokens, (1,), theme)
    points = layers(figure, "point")[0]["data"]["values"]
    assert [round(10 ** row["x"]) for row in points] == [1, 2, 3, 4, 5]
    assert [round(10 ** row["y"]) for row in points] == [64, 32, 16, 8, 1]
    assert [row["what"] for row in hovered(figure)] == ["a", "b", "1", "<b>", "␣"]
    (line,) = layers(figure, "line")
    found = rank_frequency(tokens)
    ends = [10 ** row["y"] for row in line["data"]["values"]]
    np.testing.assert_allclose(ends, found.line()[[0, -1]])
    assert any(f"α {found.exponent:.2f}" in text for text in texts(figure))


def test_many_ranks_are_thinned_and_all_are_in_the_table():
    tokens = [str(i % 900) for i in range(4000)]
    figure = drawn(tokens, (1,))
    points = layers(figure, "point")[0]["data"]["values"]
    assert 10 < len(points) <= MOST_POINTS
    assert (points[0]["rank"], points[-1]["rank"]) == ("1", "900")
    assert len(figure.rows) == 901


@pytest.mark.parametrize("tokens", [["a"], ["a", "b"], ["a"] * 5])
def test_a_short_text_is_drawn_without_a_line(tokens):
    figure = drawn(tokens, (1,))
    assert layers(figure, "line") == []
    assert len(figure.rows) == 1 + len(set(tokens))
