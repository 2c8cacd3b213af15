"""Lesson 11's config and page: whatever a link says becomes a run, masks go through the link, and the walk holds true."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.ui import scoring
from pages.ui.config import from_query, to_query
from pages.ui.scoring import ScoringConfig, hidden_cells
from pages.ui.stage import Touch, parse_touch
from pages.ui.texts import sections
from pages.ui.words import words
from tests.lessons import STRANGE, without_browser
from tests.stage.runs import Payload


def read(**params: str) -> tuple[ScoringConfig, list[str]]:
    config, notes = from_query(ScoringConfig, params)
    return config, [note.key for note in notes]


def test_a_link_is_read_back_as_it_was_written():
    config = ScoringConfig(
        text="one two one three",
        score="additive",
        width=32,
        keys="double",
        hidden=5,
        split="word",
        who="own",
        length=3,
        own=hidden_cells({1, 7}, 4),
        temperature=0.5,
        seed=4,
        step=2,
        key=3,
        symbol="S",
    )
    again, notes = read(**to_query(config))
    assert again == config
    assert again.hides == (1, 7)
    assert notes == []
    assert to_query(ScoringConfig()) == {}


def test_what_is_not_there_is_clamped_and_told():
    config, notes = read(
        text="a b c", width="9999", length="7", temperature="0", score="cosine", keys="x", who="y", own="4.AAA", step="5"
    )
    assert (config.width, config.length, config.temperature, config.score) == (512, 3, 0.1, "scaled_dot_product")
    assert (config.keys, config.who, config.own, config.step) == ("same", "all", "", 2)
    told = {
        "link.width",
        "link.length",
        "scoring.bad.temperature",
        "link.score",
        "link.keys",
        "link.who",
        "link.own",
        "link.step",
    }
    assert told <= set(notes)
    assert read(text="a b c", temperature="nan")[0].temperature == 1


@given(st.sets(st.integers(0, 24)))
def test_any_mask_goes_through_a_link(cells):
    config, notes = read(text="a b c d e", who="own", own=hidden_cells(cells, 5))
    assert set(config.hides) == cells
    assert notes == []
    assert np.flatnonzero(~scoring.asked(config).mask.numpy().ravel()).tolist() == sorted(cells)


@given(
    st.dictionaries(
        st.sampled_from(["text", "own", "width", "length", "temperature", "hidden", "step", "split"]), st.text(max_size=16)
    )
)
def test_any_link_gives_a_run(params):
    config, _ = from_query(ScoringConfig, params)
    assert scoring.asked(config).mask.shape == (len(config.tokens),) * 2
    assert 0 < config.key_width <= 512


def test_a_long_text_is_cut_to_64_tokens():
    config, _ = read(text="the cat saw a dog and " * 12)
    assert len(config.tokens) == 64
    payload = Payload.read(scoring.packed(config, "en"))
    assert payload.header["steps"] == 64


@pytest.mark.parametrize("score", ScoringConfig.choices["score"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_payload_is_the_run_and_has_a_diagram(score, temperature):
    config = ScoringConfig(text="a b a c", score=score, temperature=temperature, who="causal")
    payload, trace = Payload.read(scoring.packed(config, "zh")), scoring.traced(config)
    for name in ("A", "S", "O"):
        entry = payload.header["arrays"][name]
        found = payload.block[entry["offset"] : entry["offset"] + trace[name].size]
        assert found.tolist() == trace[name].astype(np.float32).ravel().tolist()
    carried = {wire["carries"] for wire in payload.header["diagram"]["wires"]}
    assert carried <= set(payload.header["arrays"])
    assert payload.header["scales"]["A"]["interval"] == [0, 1]
    if score == "additive":
        entry = payload.header["arrays"]["S:1"]
        assert (entry["shape"], entry["axes"]) == ([4, 4, 8], "TS_")
    assert payload.header["terms"]["A"] == {"kind": "row", "names": ["S", "A"]}
    left = payload.header["terms"]["S"]["left"]
    assert ("written" in left) == (score in ("bilinear", "additive"))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"text": "x", "score": "additive"},
        {"text": STRANGE["markup"], "split": "character", "lang": "zh", "who": "causal"},
        {"text": STRANGE["Chinese"], "who": "valid", "length": "0", "score": "bilinear"},
        {"keys": "half", "lang": "zh"},
        {"text": STRANGE["256 characters"], "split": "character", "temperature": "0.1"},
    ],
)
def test_the_page_runs_without_a_fault(params):
    page = without_browser("scoring", **params)
    assert page.title[0].value
    assert len(page.tabs) == (6 if params.get("keys") else 8)


def test_what_is_wholly_hidden_still_has_a_scale():
    payload = Payload.read(scoring.packed(ScoringConfig(who="valid", length=0), "en"))
    assert payload.header["scales"]["S"]["interval"][1] >= 1


def test_a_cell_that_is_clicked_is_read_or_left_alone():
    assert parse_touch({"kind": "cell", "row": 2, "at": 1}) == Touch(kind="cell", row=2, at=1)
    for wrong in ({"kind": "cell", "row": -1, "at": 1}, {"kind": "cell", "row": 1.5, "at": 1}, {"kind": "cell", "at": 1}):
        assert parse_touch(wrong) is None


def test_unequal_widths_offer_three_ways_out():
    page = without_browser("scoring", keys="half")
    way_out = next(button for button in page.button if button.label == words("scoring.unfit.equal", lang="en"))
    way_out.click().run()
    assert len(page.tabs) == 8


def test_the_room_on_the_divisor_shows_means_of_the_engine():
    payload = Payload.read(scoring.packed_divisor(0, "en"))
    found = scoring.saturated(0)
    entry = payload.header["arrays"]["variance.plain"]
    shown = payload.block[entry["offset"] : entry["offset"] + len(found)]
    np.testing.assert_allclose(shown, [plain.variance for plain, _ in found], rtol=1e-6)
    assert payload.header["aside"]
    for plain, scaled in found[4:]:
        assert plain.variance == pytest.approx(plain.width, rel=0.15)
        assert scaled.variance == pytest.approx(1, rel=0.15)
        assert plain.jacobian < scaled.jacobian
        assert plain.entropy < scaled.entropy


# ------------------------------------------------------------------------------------------------- the walk holds true


def followed(number: int) -> ScoringConfig:
    """What a step of the walk sets up; its link asks for nothing that is not there, in both languages."""
    texts = {sections("scoring", lang)[f"try.{number}"].partition("\n")[0] for lang in ("en", "zh")}
    assert len(texts) == 1
    config, notes = from_query(ScoringConfig, dict(parse_qsl(texts.pop().removeprefix("link: "), strict_parsing=True)))
    assert notes == ()
    return config


def test_what_the_walk_says_is_so():
    assert scoring.traced(followed(1))["S"].shape == (11, 11)
    wide = scoring.traced(followed(2))
    assert wide["S"].std() == pytest.approx(512**0.5, rel=0.25)
    assert wide["A"].max(-1).mean() > 0.9
    assert not scoring.asked(followed(4)).fits
    valid = scoring.traced(followed(5))["A"]
    assert (valid[:, 6:] == 0).all()
    np.testing.assert_allclose(valid.sum(-1), 1)
    assert scoring.traced(followed(6))["A"][0].tolist() == [1] + [0] * 10
    warm, cold = scoring.traced(ScoringConfig())["A"], scoring.traced(followed(7))["A"]
    assert (cold.max(-1) > warm.max(-1)).all()
    assert scoring.traced(followed(3))["S"].shape == (11, 11)
