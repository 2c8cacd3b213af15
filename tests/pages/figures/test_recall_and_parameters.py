"""The recall experiment and the blocks of parameters."""

import numpy as np
import pytest

from engine.recurrent.gru import GRU
from engine.recurrent.lstm import LSTM
from pages.figures.figure import number, percent
from pages.figures.palette import palette
from pages.figures.parameters import Blocks, parameter_blocks
from pages.figures.recall import recall_accuracy, recall_gates
from tests.pages.figures.drawing import checked, hovered, layers, texts, written

NAMES = {"0": "bias 0", "2": "bias +2"}
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])


@THEMES
def test_accuracy_is_a_length_on_a_fixed_scale(theme):
    figure = checked(
        recall_accuracy(
            {"0": 0.12, "2": 0.9975}, names=NAMES, chance=0.125, chance_label="1 in 8", title="Recalled", theme=theme
        )
    )
    (bars,) = layers(figure, "rect")
    assert [row["x"] for row in bars["data"]["values"]] == [0.12, 0.9975]
    assert bars["encoding"]["x"]["scale"]["domain"] == [0, 1]
    assert [row["color"] for row in bars["data"]["values"]] == [palette(theme).mark["weights"], palette(theme).mark["forget"]]
    assert layers(figure, "rule")[0]["data"]["values"][0]["x"] == 0.125
    assert {"12%", ">99%", "1 in 8", "bias 0", "bias +2"} <= set(written(figure))
    assert figure.rows[1:] == (("0", 0.12, 0.125), ("2", 0.9975, 0.125))


@THEMES
def test_gates_over_the_noise_keep_their_places(theme):
    tokens = list("abcab")
    gates = {"0": np.array([0.5, 0.52, np.nan, 0.49, 0.5]), "2": np.full(5, 0.9)}
    figure = checked(recall_gates(gates, tokens, names=NAMES, title="Gates", hover=("step", "F"), theme=theme))
    (first, second) = layers(figure, "line")
    assert [row["y"] for row in first["data"]["values"]] == [0.5, 0.52, None, 0.49, 0.5]
    assert [row["y"] for row in second["data"]["values"]] == [0.9] * 5
    assert first["encoding"]["y"]["scale"]["domain"] == [0, 1]
    assert len(hovered(figure)) == 9
    assert figure.rows[4][:2] == (4, "a")
    assert "bias +2" in texts(figure)
    with pytest.raises(ValueError, match="tokens"):
        recall_gates(gates, tokens[:-1], names=NAMES, title="", hover=("", ""))


@THEMES
def test_blocks_are_as_wide_as_their_parameters(theme):
    gru, lstm = (kind(5, 7) for kind in (GRU, LSTM))
    size = 5 * 7 + 7 * 7 + 7
    models = [
        Blocks(name="GRU", blocks=(("R", "reset"), ("Z", "update"), ("H~", "candidate")), size=size),
        Blocks(name="LSTM", blocks=(("F", "forget"), ("I", "input"), ("O", "output"), ("C~", "candidate")), size=size),
    ]
    for blocks, model in zip(models, (gru, lstm), strict=True):
        assert blocks.total == sum(p.numel() for p in model.parameters())
    figure = checked(parameter_blocks(models, title="Parameters", hover=("block", "parameters"), theme=theme))
    tiles = layers(figure, "rect")[0]["data"]["values"]
    assert len(tiles) == 7
    np.testing.assert_allclose([row["x2"] - row["x"] for row in tiles], size - 0.004 * 4 * size)
    assert {"3 × 91 = 273", "4 × 91 = 364"} <= set(written(figure))
    extra = Blocks(name="GRU", blocks=models[0].blocks, size=1234, extra=64)
    assert "3 × 1,234 + 64 = 3,766" in texts(checked(parameter_blocks([extra], title="", hover=("", ""), theme=theme)))


def test_numbers_and_shares_are_written_exactly():
    assert [percent(s) for s in (0.0, 0.001, 0.125, 0.5, 0.996, 1.0)] == ["0%", "<1%", "13%", "50%", ">99%", "100%"]
    assert [number(x) for x in (-0.5, float("nan"), 1e-5)] == ["−0.500", "–", "1.0e−5"]
