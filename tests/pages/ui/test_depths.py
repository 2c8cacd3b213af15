"""Lesson 16's config: whatever a link says becomes a stack that can be shown, and what was changed is told."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.config import from_query, to_query
from pages.ui.depths import DepthConfig, asked, flows, logarithm, packed, traced
from pages.ui.depths_rooms import numbers_of, shown
from pages.ui.texts import sections
from tests.lessons import STRANGE, without_browser
from tests.stage.runs import Payload


def read(**params: str) -> tuple[DepthConfig, list[str]]:
    config, notes = from_query(DepthConfig, params)
    return config, [note.key for note in notes]


def test_a_link_is_read_back_as_it_was_written():
    config = DepthConfig(
        text="abcabc",
        arrangement="post",
        norm="rms",
        depth=7,
        width=9,
        percent=150,
        activation="gelu",
        given="far",
        seed=3,
        step=6,
        key=2,
        unit=8,
        symbol="Y",
    )
    assert read(**to_query(config)) == (config, [])
    assert to_query(DepthConfig()) == {}


def test_what_is_not_there_is_left_out_and_told():
    wrong = {"arrangement": "both", "norm": "none", "depth": "65", "width": "1", "percent": "x", "given": "nothing"}
    config, notes = read(text="abc", step="99", key="7", unit="64", symbol="Q", activation="swish", **wrong)
    assert (config.arrangement, config.norm, config.depth, config.width, config.percent) == ("pre", "layer", 64, 2, 100)
    assert (config.step, config.key, config.unit, config.given) == (63, 2, 1, "normal")
    told = {
        "arrangement",
        "norm",
        "stack_depth",
        "stack_width",
        "stack_percent",
        "given",
        "step",
        "key",
        "unit",
        "symbol",
        "activation",
    }
    assert {f"link.{name}" for name in told} == set(notes)


@given(
    st.dictionaries(
        st.sampled_from(["arrangement", "norm", "depth", "width", "percent", "given", "step", "key", "unit", "seed"]),
        st.text(max_size=12),
    )
)
def test_any_link_gives_a_config(params):
    config, _ = from_query(DepthConfig, params)
    assert 1 <= config.depth <= 64
    assert 1 <= config.seen <= len(config.tokens)
    assert config.seen * config.depth * config.width <= 2**16 or config.seen == 1


@pytest.mark.parametrize("arrangement", ["pre", "post", "residual", "plain", "norm"])
@pytest.mark.parametrize("norm", ["layer", "rms", "batch"])
def test_the_payload_is_the_run(arrangement, norm):
    config, _ = read(text="abcab", arrangement=arrangement, norm=norm, depth="5", width="7")
    payload = Payload.read(packed(config, "zh"))
    trace = traced(config)

    def stored(name: str, size: int) -> list[float]:
        offset = payload.header["arrays"][name]["offset"]
        found: list[float] = payload.block[offset : offset + size].tolist()
        return found

    for name in trace:
        assert stored(name, trace[name].size) == trace[name].astype(np.float32).ravel().tolist()
    assert stored("out", 5) == np.float32(flows(config)[arrangement].forward[1:]).tolist()
    assert payload.header["steps"] == 5
    assert payload.header["labels"]["S"] == list("abcab")


@pytest.mark.parametrize(("depth", "width", "seen"), [("64", "64", 16), ("64", "16", 64), ("1", "2", 64)])
def test_a_large_stack_shows_fewer_tokens(depth, width, seen):
    config, _ = read(text="ab" * 40, depth=depth, width=width)
    assert len(config.tokens) == 64
    assert config.seen == seen
    if depth == "1":
        assert Payload.read(packed(config, "en")).header["labels"]["S"] == list("ab" * 32)


def test_sizes_no_number_on_the_stage_can_hold_are_read_from_their_powers():
    config, _ = read(text="abc", arrangement="residual", depth="64", percent="300", width="32")
    payload = Payload.read(packed(config, "en"))
    arrays, flow = payload.header["arrays"], flows(config)["residual"]
    assert flow.backward[0] > 1e38
    assert payload.block[arrays["leaving"]["offset"]] == np.inf
    assert payload.block[arrays["log.leaving"]["offset"]] == pytest.approx(np.log10(flow.backward[0]), abs=1e-4)
    assert np.isnan(logarithm([0.0, float("inf"), float("nan")])).all()


def test_numbers_are_found_in_what_somebody_writes():
    assert numbers_of("1, 0, 0, 0") == [1, 0, 0, 0]
    assert numbers_of("[−1.5; 2e3] x .5 1e999") == [-1.5, 2000, 0.5]
    assert numbers_of("nothing") == []
    assert len(numbers_of("1 " * 40)) == 16
    assert [shown(x) for x in (2.8e7, -3.0, float("nan"), 0.0, 1e-9)] == ["2.8e7", "−3.000", "–", "0.000", "1.0e−9"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"text": "x", "depth": "1", "norm": "batch"},
        {"text": STRANGE["markup"], "lang": "zh", "arrangement": "post", "norm": "rms"},
        {"text": STRANGE["emoji"], "arrangement": "residual", "depth": "64", "percent": "300"},
        {"given": "constant", "arrangement": "plain", "percent": "0", "lang": "zh"},
    ],
)
def test_the_page_runs_without_a_fault(params):
    page = without_browser("residual_norm", **params)
    assert page.title[0].value
    assert len(page.tabs) == 6


def followed(name: str) -> DepthConfig:
    """What a step of the walk sets up; its link asks for nothing that is not there, in both languages."""
    links = {sections("residual_norm", lang)[name].partition("\n")[0].removeprefix("link: ") for lang in ("en", "zh")}
    assert len(links) == 1
    config, notes = from_query(DepthConfig, dict(parse_qsl(links.pop(), strict_parsing=True)))
    assert notes == ()
    return config


@pytest.mark.parametrize("number", range(1, 7))
def test_every_step_of_the_walk_can_be_set_up(number):
    config = followed(f"try.{number}")
    assert not config.symbol or config.symbol in traced(config)


def test_the_walk_holds_true():
    plain = flows(followed("try.1"))["plain"]
    assert plain.backward[0] < 0.1 * plain.backward[-2]
    residual = flows(followed("try.2"))["residual"]
    assert residual.forward[-1] > 100 * residual.forward[0]
    assert residual.backward[0] > 100 * residual.backward[-2]
    post = flows(followed("try.4"))["post"]
    assert max(abs(size - 1) for size in post.forward[1:]) < 0.01
    constant = traced(followed("try.5"))
    assert np.array_equal(constant["variance"][0], np.zeros_like(constant["variance"][0]))
    assert np.array_equal(constant["X_hat"][0], np.zeros_like(constant["X_hat"][0]))
    assert traced(followed("try.6"))["mean"].shape == (24, 1, 16)
    assert asked(followed("try.3")).arrangement == "pre"
