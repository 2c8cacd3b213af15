"""The axis of tokens: the cases of public bug reports (kind AX) that an axis decides, each with its right values."""

import html
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.figures.axes import MAX_CELLS, numbered, text_width, token_axis, window
from pages.figures.heat import heat_map
from pages.figures.ramps import gate_scale
from tests.pages.figures.drawing import WORDS, cells, checked, hovered, pictures, rendered, texts, written


def attention(palette):
    return gate_scale(palette, "query")


def drawn(values, rows, columns, **more):
    values = np.array(values, dtype=float)
    return heat_map(values, rows, columns, scale=attention, title="", hover=WORDS, **more)


def test_a_map_of_tokens_is_what_altair_would_write():
    checked(drawn([[0.5, float("nan")], [0.0, 1.0]], ["p", "q"], ["a", "<b>"], selected=1, note="half"))


def test_ax_01_a_word_that_occurs_twice_keeps_its_column():
    z = [[1, 20, 30, 50, 1], [20, 1, 60, 80, 30], [30, 60, 1, -10, 20]]
    figure = drawn(z, ["X", "Y", "Z"], ["A", "B", "B", "C", "D"])
    assert figure.spec["params"][0] == {"name": "tokens", "value": ("A", "B", "B", "C", "D")}
    axis = figure.spec["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [0, 1, 2, 3, 4]
    assert [row[-1] for row in figure.rows[1:]] == [float(v) for row in z for v in row]
    assert written(figure)[:5] == ["A", "B", "B", "C", "D"]


def test_ax_02_repeated_labels_on_both_axes():
    z = [[-0.504, -0.554], [-0.527, 1.005], [-1.441, 0.508]]
    figure = drawn(z, ["a", "b", "a"], ["d", "d"])
    cell_rows = hovered(figure)
    assert len(cell_rows) == 6
    assert [row["value"].strip() for row in cell_rows if row["x"] == -0.5] == ["−0.504", "−0.527", "−1.441"]
    (picture,) = pictures(figure)
    assert cells(picture, 3, 2).shape[:2] == (3, 2)
    assert written(figure)[:5] == ["d", "d", "a", "b", "a"]


def test_ax_03_cells_drawn_are_cells_given():
    figure = drawn([[1, 2, 3]], ["row"], ["Mon", "Tue", "Mon"])
    assert len(hovered(figure)) == 3
    assert len(figure.rows) == 4


def test_ax_04_and_18_padding_is_cut_by_length_and_not_by_label():
    axis = token_axis(["the", "cat", "<pad>", "<pad>", "<pad>"], width=700)
    assert (len(axis), axis.ticks) == (5, (0, 1, 2, 3, 4))
    start, end = window(512, real=30)
    assert (end - start) ** 2 == 900


def test_ax_06_labels_are_the_tokens_and_nothing_is_added():
    assert token_axis(["a", "b", "a"], width=700).labels == ("a", "b", "a")
    assert "\u200b" not in "".join(token_axis(["x"] * 40, width=700).labels)


@pytest.mark.parametrize(
    "tokens", [["1", "2", "10"], ["1E1", "2A1", "3E2", "2A2"], ["2020-01-01", "3/4", "Infinity", "NaN", ""]]
)
def test_ax_07_and_08_digits_and_dates_are_labels_on_equal_columns(tokens):
    figure = drawn([list(range(len(tokens)))], ["row"], tokens)
    encoding = figure.spec["layer"][0]["encoding"]
    assert encoding["x"]["type"] == "quantitative"
    assert encoding["x"]["scale"]["domain"] == [-0.5, len(tokens) - 0.5]
    assert written(figure)[: len(tokens)] == [token or "∅" for token in tokens]
    edges = sorted({row["x"] for row in hovered(figure)})
    assert np.ptp(np.diff(edges)) == 0


def test_ax_10_and_11_a_cell_without_a_value_carries_no_number_and_looks_like_none():
    figure = drawn([[0.5, None], [float("nan"), 0.0]], ["p", "q"], ["a", "b"])
    assert [text for text in texts(figure) if "." in text] == ["0.50", "0.00"]
    assert figure.omitted == {"absent": 2}
    looks = drawn([[0.0, None, 1.0]], ["p"], ["a", "b", "c"])
    zero, absent, one = cells(pictures(looks)[0], 1, 3)[0]
    assert len(np.unique(zero.reshape(-1, 3), axis=0)) == len(np.unique(one.reshape(-1, 3), axis=0)) == 1
    hatching = {tuple(colour) for colour in absent.reshape(-1, 3)}
    assert len(hatching) == 2
    assert not hatching & {tuple(zero[0, 0]), tuple(one[0, 0])}
    assert [row["value"].strip() for row in hovered(looks)] == ["0.000", "–", "1.000"]


def test_ax_13_text_of_the_user_is_text_and_no_element():
    nasty = "a<b<c <img src=x onerror=alert(1)> <script>alert(1)</script> \"'`${1+1}"
    short = "<i>&amp;</i>"
    figure = drawn([[0.1, 0.2]], [nasty], [short, "b"])
    tags = {element.tag.rpartition("}")[2] for element in rendered(figure).iter()}
    assert not tags & {"img", "script", "i", "foreignObject", "a"}
    assert short in written(figure)
    assert "a<b<c␣<img␣…" in written(figure)
    assert html.escape(short, quote=False) == "&lt;i&gt;&amp;amp;&lt;/i&gt;"
    expressions = [layer["encoding"]["x"].get("axis", {}) for layer in figure.spec["layer"] if "axis" in layer["encoding"]["x"]]
    assert all(nasty not in str(axis) and short not in str(axis) for axis in expressions)


def test_ax_14_labels_that_do_not_fit_are_refused():
    weights = [[0.1, 0.7, 0.2], [0.6, 0.2, 0.2]]
    figure = drawn(weights, ["x", "y"], ["p", "q", "r"])
    best = {}
    for _, row, _, column, value in figure.rows[1:]:
        if value > best.get(row, ("", 0.0))[1]:
            best[row] = (column, value)
    assert {row: column for row, (column, _) in best.items()} == {"x": "q", "y": "p"}
    with pytest.raises(ValueError, match="do not fit"):
        heat_map(np.array(weights), list("abcde"), ["p", "q", "r"], scale=attention, title="", hover=WORDS)
    for nothing in ((0, 1), (1, 0), (0, 0)):
        with pytest.raises(ValueError, match="do not fit"):
            drawn(np.zeros(nothing), ["x"] * nothing[0], ["y"] * nothing[1])


def test_ax_15_rows_are_the_tokens_that_were_produced():
    figure = drawn(np.eye(3), ["il", "est", "<eos>"], ["he", "is", "."])
    assert [row[1] for row in figure.rows[1::3]] == ["il", "est", "<eos>"]


def test_ax_17_and_28_what_is_too_long_is_a_window_that_knows_its_place():
    with pytest.raises(ValueError, match="window of 256"):
        token_axis(["x"] * 512, width=700)
    with pytest.raises(ValueError, match="window of 256"):
        heat_map(np.zeros((2, 512)), ["a", "b"], ["x"] * 512, scale=attention, title="", hover=WORDS)
    assert window(512, 300) == (172, 428)
    assert [window(512, at) for at in (0, 511)] == [(0, 256), (256, 512)]
    assert window(17, 5) == (0, 17)
    axis = token_axis(["x"] * 200, width=700, first=0, total=176814)
    assert axis.shown == (1, 200, 176814)
    assert token_axis(["x"] * 10, width=700, first=40, total=90).shown == (41, 50, 90)


def test_ax_20_numbers_in_cells_only_while_they_can_be_read():
    assert len([t for t in texts(drawn(np.zeros((8, 8)), list("abcdefgh"), list("abcdefgh"))) if t == "0.00"]) == 64
    assert "0.00" not in texts(drawn(np.zeros((33, 8)), list("x" * 33), list("abcdefgh")))
    assert "0.00" not in texts(drawn(np.zeros((8, 32)), list("abcdefgh"), list("x" * 32)))  # too narrow at this width


def test_ax_24_and_25_and_26_names_and_options_never_repeat():
    assert numbered(["the", "cat", "the", "mat"]) == ["1: the", "2: cat", "3: the", "4: mat"]
    assert numbered(["", " ", "\n"]) == ["1: ∅", "2: ␣", "3: ↵"]


def overlaps(axis, width, size=12):
    pitch = width / len(axis)
    boxes = [(i * pitch, 12.0 if axis.turned else text_width(axis.labels[i], size)) for i in axis.ticks]
    return any(b - a < (wide_a + wide_b) / 2 for (a, wide_a), (b, wide_b) in pairwise(boxes))


def test_ax_30_labels_are_thinned_until_none_overlap():
    axis = token_axis(["word"] * 60, width=700)
    assert len(axis.ticks) <= 58
    assert set(np.diff(axis.ticks)) == {2}
    assert axis.turned
    assert not overlaps(axis, 700)
    assert token_axis(list("x" * 60), width=700).ticks == tuple(range(0, 60, 2))


@pytest.mark.parametrize("selected", [0, 1, 7, 58, 59])
def test_ax_30_the_selected_token_keeps_its_label(selected):
    for width in (90, 300, 700, 5000):
        axis = token_axis(["word"] * 60, width=width, selected=selected)
        assert selected in axis.ticks
        weight = axis.axis("tokens")["labelFontWeight"]
        assert weight["condition"] == {"test": f"datum.value === {selected}", "value": "bold"}


@given(st.lists(st.text(max_size=20), min_size=1, max_size=80), st.floats(40, 2000), st.data())
def test_any_tokens_get_places_and_labels_that_do_not_touch(tokens, width, data):
    selected = data.draw(st.none() | st.integers(0, len(tokens) - 1))
    axis = token_axis(tokens, width=width, selected=selected)
    assert len(axis.labels) == len(tokens)
    assert all(axis.labels)
    assert not overlaps(axis, width)
    assert selected is None or selected in axis.ticks
    assert axis.ticks


def test_labels_across_are_thinned_further_where_the_browser_is_narrower():
    """The expression that the browser evaluates, worked out by hand for a narrow and a wide window."""
    axis = token_axis(list("x" * 60), width=700, selected=5)
    expression = axis.axis("tokens")["labelExpr"].split(" ? ")[0].replace("===", "==")

    def kept(width):
        names = {"ceil": lambda x: int(np.ceil(x)), "max": max, "width": width}
        values = [type("Datum", (), {"value": tick})() for tick in axis.ticks]
        return [v.value for v in values if eval(expression, names | {"datum": v})]

    assert kept(695) == kept(700) == kept(2000) == list(axis.ticks)
    for width in (250, 340, 500):
        assert 5 in kept(width)
        assert min(np.diff(kept(width))) * width / 60 >= 0.98 * 12


def test_wide_characters_count_as_wide_and_joined_ones_once():
    assert text_width("字", 12) == 12
    assert text_width("e\u0301", 12) == pytest.approx(7.2)
    assert text_width("👩‍👩‍👧", 12) == 12


def test_an_axis_needs_tokens_and_a_position_that_is_there():
    with pytest.raises(ValueError, match="at least one"):
        token_axis([], width=700)
    with pytest.raises(IndexError):
        token_axis(["a"], width=700, selected=1)
    assert token_axis(["a"] * MAX_CELLS, width=700).shown == (1, 256, 256)


def test_one_token_is_enough():
    assert written(drawn([[0.3]], ["q"], ["k"]))[:2] == ["k", "q"]
