"""The bytes that the stage receives hold the trace's own numbers, all that is shown, and little else."""

import json
import re

import numpy as np
import pytest

from engine.equation import set_to
from pages.ui import layouts
from pages.ui.payload import SLOT
from tests.stage.runs import MODELS, TEXT, VOCABULARY, Payload, packed, trace_of

NAMES = tuple(MODELS)


def kind(name: str) -> str:
    return name.partition("-")[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_packed_number_is_the_traces(name):
    trace = trace_of(name)
    payload = Payload.read(packed(trace, model=kind(name)))
    checked = 0
    for key in payload.header["arrays"]:
        if key.startswith("start."):
            wanted = trace.start[key.removeprefix("start.")][0]
        elif ":" in key:
            wanted = trace.terms[key][:, 0]
        else:
            wanted = trace.weights[key] if key in trace.weights else trace[key][:, 0]
        np.testing.assert_array_equal(payload.array(key), wanted.astype(np.float32), err_msg=key)
        checked += 1
    assert checked >= len(trace.equations)
    assert set(payload.header["symbols"]) == set(trace.symbols)


@pytest.mark.parametrize("name", NAMES)
def test_every_slot_and_every_wire_finds_its_number(name):
    header = Payload.read(packed(trace_of(name), model=kind(name))).header

    def found(key: str) -> bool:
        return key in header["arrays"] or (key in header["slots"] and found(header["slots"][key]["of"]))

    slots = {slot for equation in header["equations"] for slot in SLOT.findall(equation["plugged"])}
    carried = {wire["carries"] for wire in header["diagram"]["wires"]} - {"X"}
    assert slots
    assert carried
    assert {key for key in slots | carried if not found(key)} == set()
    # What is only summed up inside a function's box is not sent.
    assert {key for key in header["arrays"] if ":" in key} <= slots | carried


@pytest.mark.parametrize("name", NAMES)
def test_a_layout_places_all_that_is_drawn(name):
    header = Payload.read(packed(trace_of(name), model=kind(name))).header
    layout, diagram = header["layout"], header["diagram"]
    assert {node["id"]: node["kind"] for node in diagram["nodes"]} == {k: place[2] for k, place in layout["nodes"].items()}
    signals = {wire["carries"] for wire in diagram["wires"]} - {"X"}
    assert set(layout["labels"]) == signals, "every signal with a number shows it once"
    assert {dot["carries"] for dot in layout["dots"]} <= signals
    assert set(layout["strips"]) == {name for name, symbol in header["symbols"].items() if symbol["axes"] == "TH"}
    inside = [(x, y) for x, y, *_ in [*layout["nodes"].values(), *layout["labels"].values()]]
    assert all(0 <= x <= layout["width"] and 0 <= y <= layout["height"] for x, y in inside)
    assert set(header["scales"]) >= signals - {f"{symbol}_prev" for symbol in "HC"}


def test_every_layout_file_is_used():
    used = {
        json.dumps(Payload.read(packed(trace_of(name), model=kind(name))).header["layout"], sort_keys=True) for name in NAMES
    }
    every = [layouts.read(path.stem) for path in layouts.FOLDER.glob("*.json")]
    assert used == {json.dumps(layout, sort_keys=True) for layout in every if "H" in layout["strips"]}


def test_a_model_without_a_layout_is_refused():
    from engine.diagram import Diagram, DiagramNode

    with pytest.raises(LookupError, match="Q:0"):
        layouts.layout_of(Diagram(nodes=(DiagramNode(id="Q:0", kind="function", label="σ"),), wires=()))


@pytest.mark.parametrize(
    ("symbol", "scale"),
    [("F", [0.0, 1.0]), ("C_tilde", [-1.0, 1.0]), ("H", [-1.0, 1.0]), ("H:1", [-1.0, 1.0])],
)
def test_bounded_values_keep_their_interval_as_scale(symbol, scale):
    assert Payload.read(packed(trace_of())).header["scales"][symbol]["interval"] == scale


def test_the_cells_scale_is_a_power_of_two_that_holds_every_value():
    held = trace_of(do={"F": set_to(1.0), "I": set_to(1.0)})
    for trace in (trace_of(), held):
        low, high = Payload.read(packed(trace)).header["scales"]["C"]["interval"]
        most = np.abs(trace["C"]).max()
        assert low == -high
        assert high == 1 or high / 2 < most
        assert most <= high
        assert np.log2(high) == int(np.log2(high))
    assert np.abs(held["C"]).max() > 1


def test_one_minus_z_is_drawn_on_the_gates_scale_in_its_colour():
    assert Payload.read(packed(trace_of("gru"), model="gru")).header["scales"]["H:3"] == {
        "interval": [0.0, 1.0],
        "role": "update",
    }


def test_what_the_equation_gave_is_packed_where_a_change_replaced_it():
    plain, changed = trace_of(), trace_of(do={"F": set_to(1.0, step=(5, None), unit=(3, 5))})
    assert "F:0" not in Payload.read(packed(plain)).header["arrays"]
    payload = Payload.read(packed(changed, baseline=plain))
    np.testing.assert_array_equal(payload.array("F:0"), changed.terms["F:0"][:, 0])
    assert (payload.array("F")[5:, [3, 5]] == 1).all()
    assert payload.header["interventions"] == [{"symbol": "F", "value": 1.0, "from": 5, "to": None, "units": [3, 5]}]
    for name in (*payload.header["layout"]["strips"], "P"):
        np.testing.assert_array_equal(payload.array(f"baseline/{name}"), plain[name][:, 0], err_msg=name)


@pytest.mark.parametrize(
    ("step", "span"), [(None, (0, None)), (2, (2, 3)), ((2, 6), (2, 6)), ((4, None), (4, None)), ((0, None), (0, None))]
)
def test_the_steps_of_a_change_are_told(step, span):
    header = Payload.read(packed(trace_of(do={"I": set_to(0.0, step=step, unit=2)}), baseline=trace_of())).header
    (change,) = header["interventions"]
    assert (change["from"], change["to"], change["units"]) == (*span, [2])


def test_the_payload_is_small():
    """40 tokens, hidden 64: under 260 kB; a baseline adds the symbols and P once, and nothing where it is the same."""
    plain = trace_of(hidden_size=64)
    alone = len(packed(plain))
    assert alone < 260_000
    changed = trace_of(hidden_size=64, do={"F": set_to(1.0)})
    assert len(packed(changed, baseline=plain)) - alone < 4 * 40 * (7 * 64 + len(VOCABULARY)) + 2_000
    assert len(packed(plain, baseline=plain)) - alone < 2_000
    assert len(packed(plain, mini=True)) < 20_000


def test_rows_that_repeat_are_packed_once():
    payload = Payload.read(packed(trace_of(text="abababab"), "abababab"))
    assert max(payload.header["arrays"]["F:2"]["rows"]) == 1
    assert "rows" not in payload.header["arrays"]["C"]


def test_the_key_follows_the_numbers_and_not_the_place():
    trace = trace_of()
    keys = [
        Payload.read(data).header["key"]
        for data in (
            packed(trace),
            packed(trace, start={"step": 5, "unit": 2, "symbol": "H"}),
            packed(trace_of(do={"F": set_to(1.0)})),
            packed(trace, lang="zh"),
        )
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_the_miniature_holds_one_unit():
    trace = trace_of()
    payload = Payload.read(packed(trace, mini=True, start={"unit": 4, "symbol": "C"}, link="lstm"))
    header = payload.header
    assert (header["units"], header["start"]["unit"], header["link"], header["equations"]) == (1, 0, "lstm", [])
    np.testing.assert_array_equal(payload.array("C"), trace["C"][:, 0, 4:5])
    np.testing.assert_array_equal(payload.array("C:1"), trace.terms["C:1"][:, 0, 4:5])


def test_tokens_are_shown_in_a_form_that_can_be_seen():
    text = "a \n\t<b>\u200d你\u0301\ud800"
    header = Payload.read(packed(trace_of(text=text), text)).header
    assert header["tokens"] == ["a", "␣", "↵", "⇥", "<", "b", ">", "‹ZWJ›", "你", "◌\u0301", "‹U+D800›"]
    assert header["unknown"] == [False, False, True, True, True, False, True, True, True, True, True]
    assert header["ids"] == VOCABULARY[list(text)]
    assert len(header["vocabulary"]) == len(VOCABULARY)


def test_a_list_of_tokens_of_another_length_is_refused():
    with pytest.raises(ValueError, match="3 tokens for a run of 40 steps"):
        packed(trace_of(), TEXT[:3])


def test_formulas_come_from_the_engine():
    trace = trace_of()
    header = Payload.read(packed(trace)).header
    assert [equation["name"] for equation in header["equations"]] == list(trace.equations)
    for equation in header["equations"]:
        assert equation["mathml"] == trace.mathml(equation["name"])
        assert bool(equation["plugged"]) == (equation["name"] not in ("Y", "P")), "no unit, no plugged-in numbers"
        assert re.search(r"\w", equation["doc"])


def test_a_symbol_without_words_keeps_the_engines():
    from pages.ui.payload import pack

    header = Payload.read(pack(trace_of(), tokens=list(TEXT), vocabulary=VOCABULARY, words={})).header
    assert header["symbols"]["F"]["name"] == "Forget gate"
    assert header["equations"][0]["doc"] == "Forget gate: how much of each memory cell is kept."


def test_numbers_that_are_not_finite_do_not_stop_the_page():
    header = Payload.read(packed(trace_of("rnn-relu", do={"H": set_to(3e38)}), model="rnn")).header
    assert header["scales"]["H"]["interval"][1] == 2.0**128
