"""The block that a norm averages over: every cell is drawn, and what is said of the first is what the engine says."""

import pytest

from engine.transformer.depth import averaged_with
from pages.figures import images
from pages.figures.blocks import shared_cells

SHAPE = (2, 3, 5)


@pytest.mark.parametrize("over", ["D", "BT", "T", "TD", "BTD"])
def test_every_cell_is_there_and_the_first_ones_company_is_the_engines(over):
    figure = shared_cells(SHAPE, over, title="t", note="n", names=("a", "b", "c"))
    cells = figure.spec["layer"][0]["data"]["values"]
    assert len(cells) == 30
    assert len({(cell["x"], cell["y"]) for cell in cells}) == 30
    together = averaged_with(over, SHAPE, (0, 0, 0))
    assert [row[3] for row in figure.rows[1:]] == together.astype(int).ravel().tolist()
    test = figure.spec["layer"][0]["encoding"]["fill"]["condition"]["test"]
    assert {axis for axis in "BTD" if f"datum.{axis}" in test} == set("BTD") - set(over)


def test_it_can_be_taken_home_and_refuses_other_axes():
    assert images.svg(shared_cells(SHAPE, "D", title="t", note="n", names=("a", "b", "c"), theme="dark")).startswith(b"<svg")
    with pytest.raises(ValueError, match="some of"):
        shared_cells(SHAPE, "X", title="", note="", names=("", "", ""))
