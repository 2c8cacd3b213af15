"""The configs of the lessons on plain and deep networks: what they have beyond the others, clamped and said."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui import runs
from pages.ui.config import from_query, to_query
from pages.ui.memory import DeepConfig, Pin, RNNConfig, named, scopes

anything = st.dictionaries(
    st.sampled_from(["activation", "radius", "shuffle", "keep", "pin", "cell", "layers", "directions", "layer", "model", "do"]),
    st.text(max_size=12),
)


@pytest.mark.parametrize("kind", [RNNConfig, DeepConfig])
@given(params=anything)
def test_whatever_a_link_asks_for_there_is_a_config_that_is_its_own_link(kind, params):
    config, _ = from_query(kind, params)
    assert from_query(kind, to_query(config)) == (config, ())


@pytest.mark.parametrize(
    ("given", "used", "noted"),
    [
        ("", None, 0),
        ("0.5", 0.5, 0),
        ("0", 0.0, 0),
        ("-1", 0.0, 1),
        ("99", 6.0, 1),
        ("inf", 6.0, 1),
        ("nan", None, 1),
        ("x", None, 1),
    ],
)
def test_a_radius_is_a_number_in_its_range(given, used, noted):
    config, notes = from_query(RNNConfig, {"radius": given})
    assert (config.radius, len(notes)) == (used, noted)


def test_pins_are_units_with_names():
    config, notes = from_query(RNNConfig, {"pin": "7:in brackets;63;7:again"})
    assert config.pins == ((7, "again"), (63, ""))
    assert to_query(config)["pin"] == "7:again;63"
    assert [note.key for note in notes] == ["link.pin"], "a unit is pinned once"
    assert from_query(RNNConfig, {"pin": "64"})[0].pins == ()
    assert str(Pin(unit=3, name="a:b")) == "3:a:b"
    assert named(" a;b\n" + 40 * "x") == "ab" + 22 * "x"


def test_where_one_looks_and_what_is_pinned_changes_no_number():
    one, _ = from_query(RNNConfig, {"pin": "7:x", "step": "3", "unit": "5"})
    assert runs.key("rnn", one) == runs.key("rnn", RNNConfig())
    deep, _ = from_query(DeepConfig, {"layer": "1", "step": "3"})
    assert runs.key("gru", deep) == runs.key("gru", DeepConfig())


def test_a_run_that_grows_beyond_all_bounds_ends_before_it_does():
    config, _ = from_query(RNNConfig, {"activation": "relu", "radius": "6", "do": "H=0@50;H=1@2-40"})
    run = runs.run("rnn", config)
    assert run.stopped
    assert 1 <= len(run.tokens) == len(run.trace) == len(run.baseline) < len(config.text)
    assert abs(run.trace["H"]).max() <= runs.BEYOND
    assert math.isfinite(run.trace["P"].sum())
    calm = runs.run("rnn", config.with_switches(radius=0.5, do=()))
    assert not calm.stopped


def test_the_names_of_layers_are_the_engines():
    for layers in (1, 2, 4):
        for directions in ("forward", "both"):
            config, _ = from_query(DeepConfig, {"model": "untrained", "layers": str(layers), "directions": directions})
            assert runs.run("gru", config).model.recurrent.scopes == scopes(layers, directions)
