"""The stage's Python side: joining the modules, the words, and reading what a browser sends."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.equation import set_to
from pages.ui import stage
from pages.ui.stage import (
    MOST_CHANGES,
    Change,
    Touch,
    bundle,
    parse_changes,
    parse_touch,
    stage_words,
    style,
    symbol_docs,
    symbol_names,
)
from pages.ui.theme import roles
from tests.stage.runs import MODELS, trace_of

ENTRIES = ("main", "text", "embedding", "training")
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in stage.FOLDER.glob("*.js")}


def test_every_module_is_joined_once_and_before_it_is_needed():
    reached = set()
    for entry in ENTRIES:
        joined = bundle(entry)
        places = {name: joined.index(start) for name in SOURCES if (start := f"const module_{name} = ") in joined}
        reached |= set(places)
        for name, place in places.items():
            assert joined.count(f"const module_{name} = ") == 1
            for _, other in stage.IMPORT.findall(SOURCES[name]):
                assert places[other] < place
        assert joined.rstrip().endswith(f"export default module_{entry}.main;")
        assert not re.search(r"^import ", joined, re.MULTILINE)
    assert reached == set(SOURCES)


def test_every_export_is_imported_somewhere():
    imported = {
        name.strip() for source in SOURCES.values() for names, _ in stage.IMPORT.findall(source) for name in names.split(",")
    }
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    unused = {name for source in SOURCES.values() for name in stage.EXPORT.findall(source)} - imported
    assert {name for name in unused if name not in tests} == set()


def test_an_import_that_cannot_be_joined_is_refused(tmp_path, monkeypatch):
    (tmp_path / "main.js").write_text('import * as all from "./other.js";\n', encoding="utf-8")
    monkeypatch.setattr(stage, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"main\.js"):
        bundle()


def test_the_style_sheet_has_every_role_in_both_shades():
    sheet = style()
    for role, colours in roles().items():
        for colour in colours.values():
            assert colour in sheet
        assert f"--role-{role}:" in sheet
    used = set(re.findall(r"var\((--(?:role|text)-[\w]+)\)", sheet))
    assert used <= set(re.findall(r"(--(?:role|text)-\w+):", sheet))
    assert {path.stem for path in stage.FOLDER.glob("*.css")} == set(stage.SHEETS)


def test_every_role_of_every_model_has_a_colour():
    named = set(re.findall(r"--role-(\w+):", style()))
    for name in MODELS:
        for table in trace_of(name).tables.values():
            assert {symbol.role for symbol in table.values()} <= named


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_script_uses_exactly_the_words_there_are(lang):
    used = {word for source in SOURCES.values() for word in re.findall(r"\bwords\.(\w+)", source)}
    assert used == set(stage_words(lang))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_every_symbol_has_a_name_and_a_sentence(name, lang):
    symbols = set(trace_of(name).symbols)
    assert symbols <= set(symbol_names(lang))
    assert symbols == set(symbol_docs(name, lang))


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_the_english_sentences_are_the_engines(name):
    docs = symbol_docs(name, "en")
    for symbol, equation in trace_of(name).equations.items():
        assert docs[symbol].replace("’", "'") == equation.doc


def test_a_change_is_read_and_run():
    (change,) = parse_changes(
        {"key": "x", "interventions": [{"symbol": "F", "value": 1, "from": 5, "to": None, "units": [7, 3]}]}
    )
    assert change == Change(symbol="F", value=1.0, first=5, end=None, units=(3, 7))
    assert change.intervention() == set_to(1.0, step=(5, None), unit=(3, 7))
    assert Change(symbol="H", value=0.0).intervention() == set_to(0.0)
    assert parse_changes({"interventions": []}) == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["symbol", "value", "from", "to", "units", "interventions", "x"]), inner)
    ),
    max_leaves=12,
)


@given(json_values)
def test_whatever_a_browser_sends_is_read_without_a_fault(value):
    for sent in (value, {"interventions": value}, {"interventions": [value]}):
        for change in parse_changes(sent):
            assert change.value == change.value  # not NaN
            assert change.first >= 0
            assert change.end is None or change.end > change.first
            assert change.units is None or change.units == tuple(sorted(set(change.units)))
            change.intervention()


@given(json_values)
def test_a_click_is_read_or_left_alone(value):
    for sent in (value, {"kind": "add", "x": value, "y": 1}, {"kind": "remove", "at": value}):
        touch = parse_touch(sent)
        assert touch is None or (touch.at >= 0 and abs(touch.x) < 1e100)
    assert parse_touch({"kind": "add", "x": 1, "y": -2.5}) == Touch(kind="add", x=1.0, y=-2.5)
    assert parse_touch({"kind": "remove", "at": 3}) == Touch(kind="remove", at=3)
    assert parse_touch({"kind": "add", "x": float("nan"), "y": 1}) is None


def test_no_more_changes_are_read_than_a_page_can_want():
    one = {"symbol": "F", "value": 1, "from": 0, "to": None, "units": None}
    assert len(parse_changes({"interventions": [one] * 1000})) == MOST_CHANGES
