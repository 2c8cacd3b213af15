"""The picture of a clipped gradient: its arrows end where the engine says, in both themes."""

import pytest

from engine.recurrent.clipping import clipped_vector
from pages.figures.clipping import clipped_arrows
from pages.figures.images import svg

NAMES = ("whole", "entries", "length")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("gradient", [(3.0, 0.4), (-0.2, 0.1), (0.0, 0.0)])
def test_arrows_end_where_the_engine_says(gradient, theme):
    vector = clipped_vector(gradient, 1.0)
    figure = clipped_arrows(vector, names=NAMES, title="t", note="n", hover=("arrow", "value"), theme=theme)
    assert figure.rows[1:] == (("gradient", *gradient), ("by_value", *vector.by_value), ("by_norm", *vector.by_norm))
    drawn = svg(figure)
    assert all(name.encode() in drawn for name in NAMES)
