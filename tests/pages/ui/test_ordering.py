"""Lesson 15's config: whatever a link says becomes a run that can be shown, and what was changed is told."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.config import from_query, to_query
from pages.ui.ordering import PositionsConfig, asked, baseline, heads_of, packed, traced
from pages.ui.texts import sections
from tests.lessons import STRANGE, without_browser
from tests.stage.runs import Payload


def read(**params: str) -> tuple[PositionsConfig, list[str]]:
    config, notes = from_query(PositionsConfig, params)
    return config, [note.key for note in notes]


def test_a_link_is_read_back_as_it_was_written():
    config = PositionsConfig(
        text="abcabc",
        kind="rotary",
        model="untrained",
        seed=3,
        where="nowhere",
        scale="root",
        order="shuffled",
        mask="all",
        width=30,
        base=500,
        delta=5,
        step=4,
        key=2,
        head=1,
        unit=7,
        cut=2,
        symbol="Q",
    )
    assert read(**to_query(config)) == (config, [])
    assert to_query(PositionsConfig()) == {}


def test_what_is_not_there_is_left_out_and_told():
    config, notes = read(
        text="abc",
        where="scores",
        width="29",
        base="1",
        delta="99",
        scale="big",
        order="sorted",
        step="9",
        head="7",
        unit="64",
        kind="x",
    )
    assert (config.where, config.width, config.base, config.delta, config.scale, config.order) == (
        "",
        64,
        2,
        63,
        "one",
        "written",
    )
    assert (config.step, config.head, config.unit, config.kind) == (2, 3, 63, "sinusoidal")
    asked_for = {"where", "code_base", "code_delta", "trained_width", "scale", "order", "step", "head", "unit", "kind"}
    assert {f"link.{name}" for name in asked_for} == set(notes)
    assert read(kind="alibi", where="v")[1] == ["link.where"]
    assert read(kind="alibi", where="scores")[1] == []


@given(
    st.dictionaries(
        st.sampled_from(["kind", "where", "order", "scale", "width", "base", "delta", "step", "head", "unit", "model", "seed"]),
        st.text(max_size=12),
    )
)
def test_any_link_gives_a_config(params):
    config, _ = from_query(PositionsConfig, params)
    assert config.width % heads_of(config.width) == 0
    assert config.head < heads_of(config.width)


@pytest.mark.parametrize("kind", ["sinusoidal", "learned", "rotary", "alibi"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_payload_is_the_run(kind, lang):
    config, _ = read(text="abcab", kind=kind, order="reversed", mask="all")
    payload = Payload.read(packed(config, lang))
    trace = traced(config)
    for name in ("A", "O"):
        entry = payload.header["arrays"][name]
        found = payload.block[entry["offset"] : entry["offset"] + trace[name].size]
        assert found.tolist() == trace[name].astype(np.float32).ravel().tolist()
    assert payload.header["has_baseline"]
    assert payload.header["tokens"] == list("bacba")
    assert {view["view"] for view in payload.header["views"]} >= {"matrix", "panel", "readout"}


def test_a_long_text_is_shown_as_far_as_the_models_read():
    config, _ = read(text="ab" * 100, step="99")
    assert len(config.tokens) == 64
    assert config.step == 63
    assert Payload.read(packed(config, "en")).header["steps"] == 64


@pytest.mark.parametrize("width", [1, 2, 3, 29, 128])
@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_every_width_can_be_shown(width, kind):
    config, notes = read(text="abcde", kind=kind, model="untrained", width=str(width), unit="200")
    assert notes == ["link.unit"]
    payload = Payload.read(packed(config, "en"))
    assert payload.header["arrays"]["columns"]["shape"][1] == 5
    assert ("P_d" in payload.header["arrays"]) is (kind == "sinusoidal" and width % 2 == 0)


def test_the_baseline_is_the_run_as_trained_or_the_order_as_written():
    assert baseline(read(text="abcde")[0]) is None
    changed, _ = read(text="abcde", where="nowhere")
    trained = baseline(changed)
    assert trained is not None
    assert np.array_equal(trained["A"], traced(read(text="abcde")[0])["A"])
    assert "X_s" in trained.arrays
    moved, _ = read(text="abcde", where="nowhere", order="shuffled", mask="all", seed="2", model="untrained")
    along = baseline(moved)
    assert along is not None
    assert np.allclose(along["O"], traced(moved)["O"], atol=1e-12)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"text": "x", "kind": "alibi"},
        {"text": STRANGE["markup"], "lang": "zh", "kind": "rotary", "where": "nowhere"},
        {"text": STRANGE["emoji"], "kind": "learned", "order": "shuffled"},
        {"model": "untrained", "width": "29", "base": "50", "where": "qk", "scale": "none"},
    ],
)
def test_the_page_runs_without_a_fault(params):
    page = without_browser("positions", **params)
    assert page.title[0].value
    assert len(page.tabs) == 8


def followed(name: str) -> PositionsConfig:
    """What a step of the walk sets up; its link asks for nothing that is not there, in both languages."""
    links = {sections("positions", lang)[name].partition("\n")[0].removeprefix("link: ") for lang in ("en", "zh")}
    assert len(links) == 1
    config, notes = from_query(PositionsConfig, dict(parse_qsl(links.pop(), strict_parsing=True)))
    assert notes == ()
    return config


@pytest.mark.parametrize("number", range(1, 8))
def test_every_step_of_the_walk_can_be_set_up(number):
    config = followed(f"try.{number}")
    assert config.symbol in traced(config)


def test_the_walk_holds_true():
    turned = traced(followed("try.2"))
    assert np.allclose(turned["P_d"][:-3], turned["P"][3:], atol=1e-12)
    nowhere = followed("try.4")
    before = baseline(nowhere)
    assert before is not None
    assert np.abs(traced(nowhere)["O"] - before["O"]).max() < 1e-12
    values = followed("try.5")
    before = baseline(values)
    assert before is not None
    assert np.abs(traced(values)["A"] - before["A"]).max() < 1e-12
    assert np.abs(traced(values)["O"] - before["O"]).max() > 0.1
    drowned = asked(followed("try.6")).trace()
    assert np.linalg.norm(8 * drowned["E"], axis=-1).min() > 5 * np.linalg.norm(drowned["P"], axis=-1).max()
