"""Influence by layer, what a backward direction knows, and units beside the features they follow: every number in its place."""

import numpy as np
import pytest

from pages.figures.reach import influence_lines, step_strips
from pages.figures.tracking import Followed, tracking_strips
from tests.pages.figures.drawing import WORDS, checked, layers, pictures, run, texts, written

SCOPES = ("layers.0.forward.", "layers.0.backward.", "layers.1.forward.")


def influence(theme="light"):
    norms = {scope: np.array([2.0, 0.5, 1e-3]) / (1 + at) for at, scope in enumerate(SCOPES)}
    names = {scope: f"row {at}" for at, scope in enumerate(SCOPES)}
    depths = {scope: int(scope.split(".")[1]) for scope in SCOPES}
    words = {"title": "Influence", "x_title": "steps away", "hover": ("steps", "value")}
    return checked(influence_lines(norms, depths, names=names, theme=theme, **words))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_layer_has_its_colour_and_a_backward_direction_is_dashed(theme):
    lines = layers(influence(theme), "line")
    dashes = [line["mark"]["strokeDash"] for line in lines]
    colours = [line["mark"]["color"] for line in lines]
    assert dashes == [[1, 0], [4, 3], [1, 0]]
    assert colours[0] == colours[1] != colours[2]
    heights = [row["y"] for row in lines[2]["data"]["values"]]
    assert heights == pytest.approx(np.log10(np.array([2.0, 0.5, 1e-3]) / 3))
    assert {"row 0", "row 1", "row 2"} <= set(texts(influence(theme)))


def test_rows_of_one_role_share_a_scale_and_the_table_has_every_number():
    rows = {"a": np.array([0.0, 0.5, 3.0]), "b": np.array([1.0, 0.0, 0.0]), "c": np.array([0.25, 0.0, 0.125])}
    figure = checked(
        step_strips(
            rows,
            ["x", "<b>", " "],
            names={"a": "first", "b": "second", "c": "third"},
            roles={"a": "update", "b": "update", "c": "weights"},
            title="Strips",
            hover=WORDS,
        )
    )
    assert figure.rows == (
        ("step", "token", "a", "b", "c"),
        (1, "x", 0.0, 1.0, 0.25),
        (2, "<b>", 0.5, 0.0, 0.0),
        (3, " ", 3.0, 0.0, 0.125),
    )
    assert len(pictures(figure)) == 3
    found = texts(figure)
    assert [found.count(end) for end in ("4", "1")] == [2, 1], "a power of two above 3, twice, and 1"
    assert {"first", "second", "third"} <= set(found)


def test_a_feature_stands_above_the_unit_that_follows_it():
    trace, tokens = run("rnn", "(a) b")
    feature = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    pair = Followed(key="depth", name="brackets", feature=feature, unit=4, state=trace["H"][:, 0, 4])
    figure = checked(
        tracking_strips([pair], tokens, state=trace.symbol("H"), unit_names={4: "unit 4"}, title="Units", hover=WORDS)
    )
    assert figure.rows[0] == ("step", "token", "depth", "depth unit 4")
    assert [row[2] for row in figure.rows[1:]] == feature.tolist()
    assert [row[3] for row in figure.rows[1:]] == pytest.approx(trace["H"][:, 0, 4].tolist())
    assert {"brackets", "unit 4"} <= set(written(figure))
    assert len(pictures(figure)) == 2
