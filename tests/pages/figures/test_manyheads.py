"""The figures of the lesson on many heads: what is drawn is what was given."""

import numpy as np
import pytest

from pages.figures.images import svg
from pages.figures.manyheads import HEAD_ROLES, column_blocks, head_colour, head_spectra
from pages.figures.palette import palette

NAMES = ("Head 1", "Head 2")


def test_eight_heads_have_eight_colours():
    for theme in ("light", "dark"):
        assert len({head_colour(palette(theme), head) for head in range(len(HEAD_ROLES))}) == 8


def test_spectra_hold_every_singular_value():
    singular = np.array([[3.0, 1.0, 0.5, 0.0], [2.0, 2.0, 1.0, 0.25]])
    figure = head_spectra(
        singular, (2.1, 3.2), names=NAMES, title="t", note="n", x_title="x", y_title="y", hover=("head", "value")
    )
    assert figure.rows[1:] == tuple((h + 1, i + 1, float(v)) for (h, i), v in np.ndenumerate(singular))
    assert b"Head 2  3.2" in svg(figure)


@pytest.mark.parametrize("rows_are_heads", [False, True])
@pytest.mark.parametrize("coloured", [False, True])
def test_blocks_belong_to_their_heads(rows_are_heads, coloured):
    matrix = np.arange(24.0).reshape(4, 6) - 10
    figure = column_blocks(
        matrix, 2, rows_are_heads=rows_are_heads, coloured=coloured, title="t", note="n", names=NAMES, hover=("head", "value")
    )
    for row, column, head, value in figure.rows[1:]:
        assert value == matrix[row, column]
        assert head == (row // 2 if rows_are_heads else column // 3) + 1
    cells = figure.spec["layer"][0]["data"]["values"]
    colours = palette("light")
    for cell in cells:
        head = NAMES.index(cell["head"])
        signed = colours.positive if matrix[cell["y"], cell["x"]] > 0 else colours.negative
        assert cell["color"] == (head_colour(colours, head) if coloured else signed)
    assert svg(figure)


def test_a_matrix_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="too large"):
        column_blocks(np.zeros((65, 4)), 2, rows_are_heads=False, coloured=True, title="", note="", names=NAMES, hover=("", ""))
