"""Strips of gates and states: every cell is the trace's number on the symbol's fixed scale."""

import numpy as np
import pytest

from engine.equation import set_to
from engine.recurrent.gradients import saturation
from pages.figures.gates import difference_strips, gate_strips
from pages.figures.palette import palette
from pages.figures.ramps import gate_scale, signed_scale
from pages.figures.saturation import saturation_bars
from tests.pages.figures.drawing import WORDS, cells, checked, hovered, layers, pictures, run, texts, written

NAMES = {"F": "forget gate", "C_tilde": "candidate"}
ROLES = {"F": "forget", "I": "input", "O": "output", "Z": "update", "R": "reset"}
CHANGE = (("F", set_to(1.0, step=(3, None))), ("I", set_to(0.0, step=5, unit=2)))


def strips(trace, tokens, **more):
    return gate_strips(trace, tokens, names=NAMES, hover=WORDS, title="Gates", **more)


def test_strips_are_what_altair_would_write():
    checked(strips(*run(), selected=1, unit=2, note="all units"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_cell_has_the_colour_of_its_value(theme):
    trace, tokens = run()
    figure = strips(trace, tokens, theme=theme)
    colours = palette(theme)
    wanted = {name: gate_scale(colours, ROLES[name]) for name in "FIO"}
    largest = np.abs(trace["C"]).max()
    limit = 2.0 ** max(np.ceil(np.log2(largest)), 0)
    wanted |= {"C_tilde": signed_scale(colours, 1.0), "C": signed_scale(colours, limit), "H": signed_scale(colours, 1.0)}
    drawn = pictures(figure)
    assert len(drawn) == 6
    for name, picture in zip(["F", "I", "O", "C_tilde", "C", "H"], drawn, strict=True):
        painted = wanted[name].paint(trace[name][:, 0].T)
        np.testing.assert_array_equal(cells(picture, 7, len(tokens))[:, :, 0, 0], painted, err_msg=name)


def test_each_cell_answers_with_its_number():
    trace, tokens = run("gru")
    rows = hovered(strips(trace, tokens, symbols=["Z"]))
    assert len(rows) == 7 * len(tokens)
    for row in rows:
        t, unit = int(row["step"]) - 1, int(row["unit"])
        assert row["x"] == t - 0.5
        assert row["token"] == tokens[t].replace(" ", "␣")
        assert row["value"] == f"Z  {trace['Z'][t, 0, unit]:.3f}"


def test_where_cells_are_too_many_a_step_answers_with_its_mean_or_with_the_chosen_unit():
    trace, tokens = run(tokens="the cat sat on the mat " * 4, hidden=31)
    rows = hovered(strips(trace, tokens, symbols=["F", "H"]))
    assert len(rows) == 2 * len(tokens)
    assert rows[10]["value"] == f"F  {trace['F'][5, 0].mean():.3f}"
    rows = hovered(strips(trace, tokens, symbols=["F", "H"], unit=9))
    assert rows[10]["value"] == f"F  {trace['F'][5, 0, 9]:.3f}"


def test_the_table_is_the_trace():
    trace, tokens = run()
    figure = strips(trace, tokens)
    assert figure.rows[0] == ("step", "token", "unit", "F", "I", "O", "C_tilde", "C", "H")
    assert figure.rows[1 + 7 * 2 + 4][:4] == (3, "e", 4, pytest.approx(trace["F"][2, 0, 4], abs=1e-7))


def test_names_letters_and_ends_of_scales_stand_above_each_strip():
    figure = strips(*run())
    found = texts(figure)
    assert [found.count(letter) for letter in ("F", "I", "O", "C", "H")] == [1, 1, 1, 2, 1]
    assert "˜" in written(figure)
    assert "forget gate" in found
    assert found.count("0") == 3  # gates run from 0
    assert found.count("−1") >= 2  # states and candidates are signed


def test_the_selected_step_is_outlined_and_the_unit_marked():
    figure = strips(*run(), selected=2, unit=5)
    outlines = [layer for layer in layers(figure, "rect") if layer["mark"].get("strokeWidth") == 1.5]
    assert {(row["x"], row["x2"]) for row in outlines[0]["data"]["values"]} == {(1.5, 2.5)}
    assert len(layers(figure, "point")[0]["data"]["values"]) == 6


def test_the_largest_text_is_drawn_in_time_and_in_few_bytes():
    import json

    trace, tokens = run(tokens="abcdefgh" * 32, hidden=64)
    figure = strips(trace, tokens, selected=200)
    assert len(json.dumps(figure.spec)) < 600_000
    with pytest.raises(ValueError, match="window of 256"):
        gate_strips(*run(tokens="abcdefgh" * 33), names={}, hover=WORDS, title="")


def test_one_step_and_one_unit_are_enough():
    trace, tokens = run("gru", "x", hidden=1)
    assert written(strips(trace, tokens, selected=0, unit=0))[0] == "x"


def test_tokens_must_be_as_many_as_steps():
    trace, tokens = run()
    with pytest.raises(ValueError, match="tokens for a run"):
        gate_strips(trace, tokens[:-1], names={}, hover=WORDS, title="")


def test_what_is_no_number_is_hatched_and_counted():
    trace, tokens = run()
    broken = trace["F"].copy()
    broken[2, 0, 3] = np.nan
    from dataclasses import replace

    figure = strips(replace(trace, arrays={**trace.arrays, "F": broken}), tokens, symbols=["F"])
    assert figure.omitted == {"F": 1}
    cell = cells(pictures(figure)[0], 7, len(tokens))[3, 2]
    assert len(np.unique(cell.reshape(-1, 3), axis=0)) == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_differences_are_changed_minus_baseline_around_zero(theme):
    base, tokens = run()
    changed, _ = run(do=CHANGE)
    figure = checked(difference_strips(changed, base, tokens, names=NAMES, hover=WORDS, title="Difference", theme=theme))
    colours = palette(theme)
    reach = np.abs(np.stack([base["C"], changed["C"]])).max()
    limits = {"F": 1.0, "I": 1.0, "O": 1.0, "C_tilde": 1.0, "C": 2.0 ** max(np.ceil(np.log2(reach)), 0), "H": 1.0}
    for (name, limit), picture in zip(limits.items(), pictures(figure), strict=True):
        change = (changed[name] - base[name])[:, 0].T
        painted = signed_scale(colours, limit).paint(change)
        np.testing.assert_array_equal(cells(picture, 7, len(tokens))[:, :, 0, 0], painted, err_msg=name)
    first = cells(pictures(figure)[0], 7, len(tokens))[:, :3]
    assert len(np.unique(first.reshape(-1, 3), axis=0)) == 1  # before the change there is no difference
    assert figure.rows[0][3:5] == ("F", "F_baseline")
    assert "ΔF" in texts(figure)


@pytest.mark.parametrize(("cell", "gates"), [("lstm", "FIO"), ("gru", "RZ")])
def test_saturation_bars_are_the_counts(cell, gates):
    trace, _ = run(cell, "in the beginning", scale=8.0)
    spreads = [saturation(trace, name) for name in gates]
    figure = checked(
        saturation_bars(
            spreads,
            letters={name: name for name in gates},
            names=NAMES,
            roles=ROLES,
            title="Saturation",
            x_title="value",
            below="below 0.1",
            above="above 0.9",
            hover=("interval", "share"),
        )
    )
    counts = [row[3] for row in figure.rows[1:]]
    assert counts == [int(c) for s in spreads for c in s.counts]
    assert sum(counts) == len(gates) * trace["H"].size
    bars = layers(figure, "rect")[0]["data"]["values"]
    heights = [row["y"] - row["y2"] for row in bars]
    np.testing.assert_allclose(np.array(heights) / max(heights), np.array(counts) / max(counts), atol=1e-12)
    for s in spreads:
        low, high = int(100 * s.below + 0.5), int(100 * s.above + 0.5)
        assert any(t.endswith("% below 0.1") and (t.startswith(f"{low}%") or low in (0, 100)) for t in texts(figure))
        assert any(t.endswith("% above 0.9") and (t.startswith(f"{high}%") or high in (0, 100)) for t in texts(figure))
    outer = {row["color"] for row in bars if row["x2"] < 0.11 or row["x"] > 0.89}
    assert outer == {palette().mark[ROLES[name]] for name in gates}
