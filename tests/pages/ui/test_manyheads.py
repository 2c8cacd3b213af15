"""Lesson 14's config: whatever a link says becomes a run that can be shown, and what was changed is told."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui.config import from_query, to_query
from pages.ui.manyheads import MultiheadConfig, asked, packed
from pages.ui.texts import sections
from tests.lessons import without_browser
from tests.stage.runs import Payload


def read(**params: str) -> tuple[MultiheadConfig, list[str]]:
    config, notes = from_query(MultiheadConfig, params)
    return config, [note.key for note in notes]


def test_a_link_is_read_back_as_it_was_written():
    config = MultiheadConfig(
        text="abcabc",
        model="untrained",
        heads="8",
        seed=3,
        mask="all",
        blocks="shared",
        off=(1, 3),
        step=4,
        key=2,
        head=5,
        symbol="O",
    )
    again, notes = read(**to_query(config))
    assert again == config
    assert notes == []
    assert to_query(MultiheadConfig()) == {}


def test_what_is_not_there_is_left_out_and_told():
    config, notes = read(text="abc", heads="2", off="0;7;x", step="9", key="-1", head="2", unit="64", mask="future", symbol="W")
    assert (config.off, config.step, config.key, config.head, config.unit, config.mask) == ((0,), 2, 0, 1, 63, "causal")
    assert {"link.off", "link.step", "link.key", "link.head", "link.unit", "link.mask", "link.symbol"} <= set(notes)


@given(
    st.dictionaries(
        st.sampled_from(["heads", "off", "step", "key", "head", "unit", "seed", "model", "blocks"]), st.text(max_size=12)
    )
)
def test_any_link_gives_a_config(params):
    config, _ = from_query(MultiheadConfig, params)
    assert all(head < int(config.heads) for head in config.off)
    assert config.head < int(config.heads)


def test_a_long_text_is_shown_as_far_as_the_model_reads():
    config, _ = read(text="ab" * 100, step="99")
    assert len(config.tokens) == 64
    assert config.step == 63
    payload = Payload.read(packed(config, "en"))
    assert payload.header["steps"] == 64


@pytest.mark.parametrize("blocks", ["own", "shared"])
def test_the_payload_is_the_run(blocks):
    config = MultiheadConfig(text="abcab", blocks=blocks, off=(2,))
    payload = Payload.read(packed(config, "zh"))
    trace = asked(config).trace()
    entry = payload.header["arrays"]["A"]
    size = trace["A"].size
    assert payload.block[entry["offset"] : entry["offset"] + size].tolist() == trace["A"].ravel().tolist()
    assert payload.header["interventions"][0]["heads"] == [2]
    assert payload.header["has_baseline"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"text": "x", "heads": "1"},
        {"text": "1 2 10 007 <b>x</b> $x$ 你好 👨‍👩‍👧", "lang": "zh", "mask": "all", "heads": "8"},
        {"model": "untrained", "blocks": "shared", "off": "0;1;2;3"},
    ],
)
def test_the_page_runs_without_a_fault(params):
    page = without_browser("multihead", **params)
    assert page.title[0].value
    assert len(page.tabs) == 8


# ------------------------------------------------------------------------------------------------- the walk holds true


def followed(name: str) -> MultiheadConfig:
    """What a step of the walk sets up; its link asks for nothing that is not there, in both languages."""
    links = {sections("multihead", lang)[name].partition("\n")[0].removeprefix("link: ") for lang in ("en", "zh")}
    assert len(links) == 1
    config, notes = from_query(MultiheadConfig, dict(parse_qsl(links.pop(), strict_parsing=True)))
    assert notes == ()
    return config


@pytest.mark.parametrize("number", range(1, 7))
def test_every_step_of_the_walk_can_be_set_up(number):
    config = followed(f"try.{number}")
    assert asked(config).trace()["O"].shape == (54, 64)
    assert config.symbol


def test_without_a_head_the_maps_stay_and_its_part_is_missing():
    run = asked(followed("try.4"))
    plain, changed = run.trace(()), run.trace()
    assert np.array_equal(plain["A"], changed["A"])
    assert np.allclose(plain["O"] - plain["O_n"][0], changed["O"], atol=1e-5)


def test_shared_projections_give_the_same_map_in_every_head():
    weights = asked(followed("try.5")).trace()["A"]
    assert all(np.array_equal(weights[0], other) for other in weights[1:])


def test_trained_heads_are_narrower_than_untrained_ones():
    untrained = asked(followed("try.6")).trace()["A"]
    trained = asked(MultiheadConfig()).trace()["A"]
    assert trained.max(-1).mean(-1).min() > untrained.max(-1).mean(-1).max()
