"""Config and link are the same thing, and nothing that a link can hold breaks a page."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.reading import read_text
from pages.ui.config import (
    MAX_EDITS,
    SAMPLE,
    WINDOW,
    Edit,
    GRUConfig,
    LSTMConfig,
    RecurrentConfig,
    from_query,
    to_query,
    window,
)
from pages.ui.memory import RNNConfig

KINDS = (LSTMConfig, GRUConfig, RNNConfig)
NAMES = ("text", "model", "seed", "do", "reset", "update", "step", "unit", "symbol")

kinds = st.sampled_from(KINDS)
part_of_do = st.builds(
    "{}={}{}{}".format,
    st.sampled_from(["F", "I", "O", "C", "H", "R", "Z", "C_tilde", "H_tilde", "Q", "X", ""]),
    st.one_of(st.floats().map(str), st.integers().map(str), st.sampled_from(["nan", "inf", "-inf", "1e999", "١", "1_0", ""])),
    st.sampled_from(["", "@0", "@5", "@5-", "@0-", "@5-9", "@9-5", "@5-5", "@99999999999", "@-1", "@", "@5-99999999"]),
    st.sampled_from(["", "#0", "#3.7", "#3.3", "#31.32.64", "#", "#9999", "#1.", "#-1"]),
)
links = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(
        st.text(),
        st.integers().map(str),
        st.floats().map(str),
        st.sampled_from(["trained", "untrained", "recall-bias-2", "before", "after", "keeps", "replaces", "F", "C", "Z", "H"]),
        st.lists(part_of_do, max_size=MAX_EDITS + 3).map(";".join),
        st.text(alphabet="ab \u0301\u200d\n\r\x00\ufeff\ud800👩🇵🇱", max_size=2 * WINDOW),
    ),
)


def assert_sound(config: RecurrentConfig) -> None:
    assert 1 <= len(config.text) <= WINDOW
    assert read_text(config.text).text == config.text
    assert config.model in config.models
    assert 0 <= config.step < len(config.text)
    assert 0 <= config.unit < config.hidden_size
    assert config.symbol in ("", *config.shown)
    assert len(config.do) <= MAX_EDITS
    for edit in config.do:
        low, high = config.editable[edit.symbol]
        assert math.isfinite(edit.value)
        assert low <= edit.value <= high
        assert edit.first is None or 0 <= edit.first < len(config.text)
        assert edit.last is None or (edit.first or 0) <= edit.last < len(config.text)
        assert all(0 <= unit < config.hidden_size for unit in edit.units)


@given(kinds, links)
def test_any_link_gives_a_sound_config_and_its_link_gives_it_again(kind: type[RecurrentConfig], params: dict[str, str]):
    config, _ = from_query(kind, params)
    assert_sound(config)
    again, notes = from_query(kind, to_query(config))
    assert again == config
    assert hash(again) == hash(config)
    assert [note.key for note in notes if note.key.startswith("link.")] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_has_an_empty_link(kind: type[RecurrentConfig]):
    assert to_query(kind()) == {}
    assert from_query(kind, {}) == (kind(), ())


@pytest.mark.parametrize(
    ("link", "edit"),
    [
        ("F=1", Edit(symbol="F", value=1.0)),
        ("F=1@5", Edit(symbol="F", value=1.0, first=5, last=5)),
        ("F=1@5-", Edit(symbol="F", value=1.0, first=5)),
        ("F=1@5-9", Edit(symbol="F", value=1.0, first=5, last=9)),
        ("F=1@5-#3.7", Edit(symbol="F", value=1.0, first=5, units=(3, 7))),
        ("C=-0.125#63", Edit(symbol="C", value=-0.125, units=(63,))),
        ("C_tilde=1e-05@0", Edit(symbol="C_tilde", value=1e-5, first=0, last=0)),
    ],
)
def test_the_forms_of_an_edit(link: str, edit: Edit):
    config, notes = from_query(LSTMConfig, {"do": link})
    assert config.do == (edit,)
    assert not notes
    assert to_query(config) == {"do": link}


def test_ranges_reach_the_engine_with_their_last_step():
    config, _ = from_query(LSTMConfig, {"do": "F=1@5-9;I=0@5;I=1@7-#3;C=2"})
    found = config.interventions()
    assert list(found) == ["F", "I", "C"]
    assert [(one.value, one.step, one.unit) for one in found["F"]] == [(1.0, (5, 10), None)]
    assert [(one.value, one.step, one.unit) for one in found["I"]] == [(0.0, 5, None), (1.0, (7, None), (3,))]
    assert [(one.value, one.step, one.unit) for one in found["C"]] == [(2.0, None, None)]


@pytest.mark.parametrize(
    ("params", "key", "field", "value"),
    [
        ({"step": "9999"}, "link.step", "step", len(SAMPLE) - 1),
        ({"step": "-1"}, "link.step", "step", 0),
        ({"step": "nan"}, "link.step", "step", 0),
        ({"unit": "64"}, "link.unit", "unit", 63),
        ({"unit": "40", "model": "recall-bias-0"}, "link.unit", "unit", 31),
        ({"seed": "1e3"}, "link.seed", "seed", 0),
        ({"seed": "9" * 5000}, "link.seed", "seed", 9999),
        ({"model": "gpt"}, "link.model", "model", "trained"),
        ({"reset": "after"}, "link.reset", "reset", "before"),
        ({"symbol": "<img src=x>"}, "link.symbol", "symbol", ""),
        ({"text": ""}, "text.empty", "text", SAMPLE),
        ({"text": "x" * 12_345}, "text.window", "text", "x" * WINDOW),
        ({"do": "F=1;;rubbish;F"}, "link.do", "do", (Edit(symbol="F", value=1.0),)),
        ({"do": "R=1"}, "link.do", "do", ()),
        ({"do": "F=2"}, "link.do_value", "do", (Edit(symbol="F", value=1.0),)),
        ({"do": "C=1e300"}, "link.do_value", "do", (Edit(symbol="C", value=100.0),)),
        ({"do": "H=nan"}, "link.do_not_finite", "do", ()),
        ({"do": "H=-inf"}, "link.do_not_finite", "do", ()),
        ({"do": "H=1e999"}, "link.do_not_finite", "do", ()),
        ({"do": "H=0@54"}, "link.do_step", "do", ()),
        ({"do": "H=0@9-5"}, "link.do_step", "do", ()),
        ({"do": "H=0#3.64"}, "link.do_unit", "do", (Edit(symbol="H", value=0.0, units=(3,)),)),
        ({"do": ";".join(["F=1"] * 99)}, "link.do_limit", "do", (Edit(symbol="F", value=1.0),) * MAX_EDITS),
    ],
)
def test_what_is_wrong_in_a_link_is_clamped_and_said(params: dict[str, str], key: str, field: str, value: object):
    config, notes = from_query(LSTMConfig, params)
    assert getattr(config, field) == value
    assert key in [note.key for note in notes]


def test_a_window_does_not_cut_a_character_in_two():
    flag = "🏳️‍🌈"
    text = "x" * (WINDOW - 1) + flag
    assert window(text) == "x" * (WINDOW - 1)
    assert window(text, 5) == text[5:]
    assert window("e" + "\u0301" * 1000) == "e" + "\u0301" * (WINDOW - 1)  # nothing whole fits


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_editable_symbols_have_the_intervals_of_the_model(name: str):
    from engine.recurrent.language_model import CELLS

    kind = {"lstm": LSTMConfig, "gru": GRUConfig, "rnn": RNNConfig}[name]
    model = CELLS[name](3, 5)
    for symbol, interval in kind.editable.items():
        engine = model.table[symbol].interval
        assert interval == engine or not math.isfinite(engine[1])
