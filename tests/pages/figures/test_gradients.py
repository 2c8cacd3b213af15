"""Lines on a logarithmic axis: exact heights, gaps for what is not there, labels that do not touch."""

import numpy as np
import pytest
import torch

from engine.recurrent.gradients import memory_path, sensitivity
from engine.recurrent.language_model import RecurrentLanguageModel
from pages.figures.figure import power
from pages.figures.gradients import gradient_lines, path_lines, spread
from tests.pages.figures.drawing import checked, hovered, layers, texts, written
from tests.support import seeded

NAMES = {"lstm": "LSTM", "gru": "GRU", "rnn": "RNN"}


def lines(norms, **more):
    words = {"title": "Gradients", "x_title": "steps back", "hover": ("steps back", "gradient")}
    return checked(gradient_lines(norms, names=NAMES, **words, **more))


def heights(figure):
    """By line: the height (power of ten) at each distance, None where there is a gap."""
    return {
        layer["data"]["values"][0]["label"]: [row["y"] for row in layer["data"]["values"]] for layer in layers(figure, "line")
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_heights_are_powers_of_ten_and_distance_counts_back(theme):
    figure = lines({"lstm": np.array([1e-3, 1e-2, 0.5]), "rnn": np.array([1e-7, 1e-4, 2.0])}, theme=theme)
    assert heights(figure)["LSTM"] == pytest.approx([np.log10(0.5), -2, -3])
    assert heights(figure)["RNN"] == pytest.approx([np.log10(2), -4, -7])
    assert [row["x"] for row in layers(figure, "line")[0]["data"]["values"]] == [0, 1, 2]
    assert figure.rows[1:4] == (("lstm", 0, 0.5), ("lstm", 1, 1e-2), ("lstm", 2, 1e-3))
    assert layers(figure, "line")[0]["encoding"]["y"]["scale"]["domain"] == [-7, 1]
    assert {"LSTM", "RNN", "1", "1e−7"} <= set(written(figure))


def test_ax_29_zero_and_what_is_no_number_are_gaps_that_are_counted():
    figure = lines({"gru": np.array([0.0, np.nan, 1e-3, np.inf, 1.0])})
    assert heights(figure)["GRU"] == [0.0, None, -3.0, None, None]
    assert figure.omitted == {"gru": 3}
    assert [row["back"] for row in hovered(figure)] == ["0", "2"]
    assert [row[2] for row in figure.rows[1:]][-1] == 0.0  # the table keeps what the axis cannot show


def test_what_is_below_the_axis_is_a_gap():
    figure = lines({"rnn": 10.0 ** -np.arange(40.0)[::-1]})
    assert layers(figure, "line")[0]["encoding"]["y"]["scale"]["domain"] == [-16, 0]
    assert figure.omitted == {"rnn": 23}
    assert heights(figure)["RNN"][16:18] == [-16.0, None]


def test_nothing_to_draw_is_an_empty_axis_and_says_so():
    figure = lines({"rnn": np.zeros(3)})
    assert figure.omitted == {"rnn": 3}
    assert hovered(figure) == []
    assert written(figure)


def test_one_step_is_enough():
    assert heights(lines({"lstm": np.array([0.25])}))["LSTM"] == pytest.approx([np.log10(0.25)])


def test_another_state_of_the_same_model_is_dashed_in_its_colour():
    figure = lines({"lstm": np.array([0.1, 1.0]), "lstm.C": np.array([0.2, 1.0])})
    first, second = layers(figure, "line")
    assert first["mark"]["color"] == second["mark"]["color"]
    assert (first["mark"]["strokeDash"], second["mark"]["strokeDash"]) == ([1, 0], [4, 3])


def test_the_three_cells_of_a_real_run():
    ids = torch.randint(5, (12, 1), generator=seeded(4))
    norms = {}
    for cell in NAMES:
        found = sensitivity(RecurrentLanguageModel(cell, 5, 7, generator=seeded(3)), ids, 9)
        norms[cell] = found.norms["H"][:10]
    drawn = heights(lines(norms))
    for cell, name in NAMES.items():
        np.testing.assert_allclose(drawn[name], np.log10(norms[cell])[::-1], atol=1e-12)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_the_path_of_a_real_run(cell):
    ids = torch.randint(5, (12, 1), generator=seeded(4))
    path = memory_path(RecurrentLanguageModel(cell, 5, 7, generator=seeded(3)), ids, 9)
    figure = checked(
        path_lines(
            direct=path.direct_mean,
            diagonal=path.diagonal_mean,
            norm=path.norm,
            labels=("direct", "diagonal", "norm"),
            role="forget",
            title="Path",
            x_title="steps back",
            hover=("steps back", "value"),
        )
    )
    drawn = heights(figure)
    assert ("direct" in drawn) == (cell != "rnn")
    np.testing.assert_allclose(drawn["norm"], np.log10(path.norm)[::-1], atol=1e-12)
    if path.direct_mean is not None:
        np.testing.assert_allclose(drawn["direct"], np.log10(path.direct_mean)[::-1], atol=1e-12)
        assert drawn["direct"][0] == 0.0


def test_labels_keep_their_order_and_do_not_touch():
    placed = spread([0.5, 0.52, 0.1, 0.0, 0.02], 0.0, 1.0, 0.1)
    assert [sorted(placed).index(p) for p in placed] == [3, 4, 2, 0, 1]
    assert np.diff(sorted(placed)).min() >= 0.1 - 1e-12
    assert min(placed) >= 0.0
    assert spread([0.9, 0.1], 0.0, 1.0, 0.1) == [0.9, 0.1]
    assert spread([], 0.0, 1.0, 0.1) == []


def test_each_line_is_named_at_its_end_and_needs_no_legend():
    figure = lines({"lstm": np.array([1e-3, 1.0]), "gru": np.array([1.1e-3, 1.0]), "rnn": np.array([0.9e-3, 1.0])})
    assert texts(figure) == ["LSTM", "GRU", "RNN"]
    (labels,) = layers(figure, "text")
    places = [row["place"] for row in labels["data"]["values"]]
    assert np.diff(sorted(places)).min() >= 15 * 3 / 280 - 1e-9
    assert "legend" not in str(figure.spec)


def test_powers_are_written_as_numbers_are_on_the_page():
    assert [power(k) for k in (4, 3, 1, 0, -1, -3, -4, -12)] == ["1e4", "1000", "10", "1", "0.1", "0.001", "1e−4", "1e−12"]
