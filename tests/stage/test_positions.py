"""The bytes of runs that have all positions at once: each number on the stage is the trace's, found by its axes."""

from itertools import product

import numpy as np
import pytest

from pages.ui.arrays import strides
from pages.ui.positions import Extra, pack
from pages.ui.stage import Change, parse_changes, stage_words
from tests.stage import boards
from tests.stage.runs import Payload

T, N, D = 7, 3, 15
PARTS = {"T": "step", "S": "key", "N": "head", "C": "cut"}


def read(data: bytes) -> Payload:
    return Payload.read(data)


def number(payload: Payload, name: str, **place: int) -> float:
    """A number read as the stage reads it, without its script."""
    entry = payload.header["arrays"][name]
    at = 0
    for axis, size in zip(entry["axes"], entry["shape"], strict=True):
        at = at * size + min(place[PARTS.get(axis, "unit")], size - 1)
    return float(payload.block[entry["offset"] + at])


@pytest.mark.parametrize("kind", ["all", "causal", "empty"])
def test_every_slot_of_every_formula_holds_the_traces_number(kind):
    trace = boards.attention_of(T, N, D, kind)
    payload = read(boards.packed(trace))
    for name, slots in payload.header["cells"].items():
        for slot, array in slots.items():
            wanted = trace.terms[slot] if slot == f"{name}:0" else trace.aligned(name)[slot]
            wanted = np.broadcast_to(wanted, trace[name].shape)
            for index in product(*(range(0, size, 2) for size in trace[name].shape)):
                place = {"head": 0, "step": 0, "key": 0, "unit": 0}
                place |= {PARTS.get(axis, "unit"): i for axis, i in zip(trace.axes(name), index, strict=True)}
                assert number(payload, array, **place) == np.float32(wanted[index])


def test_the_products_add_up_to_the_part_and_are_those_of_the_trace():
    trace = boards.attention_of(T, N, D, "causal")
    payload = read(boards.packed(trace))
    assert set(payload.header["terms"]) == {"Q", "K", "V", "S", "A", "Z", "O_n", "O"}
    for name, terms in payload.header["terms"].items():
        if terms["kind"] == "row":
            assert terms["names"] == ["S", "A"]
            continue
        for index in product(*(range(0, size, 2) for size in trace[name].shape)):
            place = {PARTS.get(axis, "unit"): i for axis, i in zip(trace.axes(name), index, strict=True)}
            rows = []
            for side in (terms["left"], terms["right"]):
                row = sum(stride * place[PARTS.get(axis, "unit")] for axis, stride in side["strides"].items())
                first = payload.header["arrays"][side["array"]]["offset"] + row * terms["length"]
                rows.append(payload.block[first : first + terms["length"]].astype(np.float64))
            whole = number(payload, payload.header["cells"][name][terms["part"]], **{"head": 0, "key": 0, "unit": 0} | place)
            assert rows[0] @ rows[1] == pytest.approx(whole, abs=1e-5)
            if name in ("S", "Z"):
                left, right = trace.products(terms["part"], *index)
                assert np.array_equal(rows[0], left)
                assert np.array_equal(rows[1], right)


def test_heads_add_up_to_the_output():
    trace = boards.attention_of(T, N, D)
    payload = read(boards.packed(trace))
    for step, unit in product(range(T), range(D)):
        parts = sum(number(payload, "O_n", head=head, step=step, unit=unit) for head in range(N))
        assert parts == pytest.approx(number(payload, "O", step=step, unit=unit), abs=1e-5)


def test_a_page_of_64_tokens_and_8_heads_stays_below_a_megabyte():
    """Numbers that stand in several places are sent once."""
    assert len(boards.packed(boards.attention_of(64, 8, 64, "causal"))) < 1_000_000


def test_a_removed_head_is_told_and_the_baseline_is_kept():
    plain, changed = boards.attention_of(T, N, D), boards.attention_of(T, N, D, removed=(1,))
    payload = read(boards.packed(changed, baseline=plain))
    assert payload.header["interventions"] == [
        {"symbol": "Z", "value": 0.0, "from": 0, "to": None, "units": None, "heads": [1]}
    ]
    assert number(payload, "Z", head=1, step=2, unit=3) == 0
    assert number(payload, "Z/Z:0", head=1, step=2, unit=3) == np.float32(plain["Z"][1, 2, 3])
    assert number(payload, "baseline/O", step=2, unit=3) == np.float32(plain["O"][2, 3])
    assert number(payload, "O", step=2, unit=3) == np.float32(changed["O"][2, 3])


def test_a_mask_is_sent_once_for_all_heads_and_hidden_cells_are_not_just_zero():
    payload = read(boards.packed(boards.attention_of(T, N, D, "empty")))
    assert payload.header["mask"] == "M"
    assert payload.header["arrays"]["M"]["shape"] == [1, T, T]
    assert [number(payload, "M", head=2, step=2, key=key) for key in range(T)] == [0] * T
    assert read(boards.packed(boards.attention_of(T, N, D))).header["mask"] == ""


def test_what_the_mask_hides_decides_no_scale():
    trace = boards.attention_of(T, N, D, "causal")
    scale = read(boards.packed(trace)).header["scales"]["S"]
    kept = np.abs(trace["S"][:, np.tril(np.ones((T, T), dtype=bool))]).max()
    assert kept <= scale["interval"][1] < 2 * kept


def test_labels_survive_as_they_are_shown():
    header = read(boards.packed(boards.attention_of())).header
    assert header["labels"]["T"] == header["labels"]["S"] == header["tokens"]
    assert header["tokens"][0] == header["tokens"][3] == "the"
    assert header["tokens"][4] == "<b>cat</b>"
    assert "" not in header["tokens"]


def test_the_same_run_has_the_same_key_wherever_it_opens():
    trace = boards.attention_of()
    keys = {read(boards.packed(trace, start={"step": step})).header["key"] for step in (0, 3)}
    assert len(keys) == 1
    assert read(boards.packed(boards.attention_of(kind="causal"))).header["key"] not in keys


def test_arrays_of_ones_own_keep_their_scale_and_their_gaps():
    payload = read(boards.gradient_map())
    assert payload.header["scales"]["G"] == {"interval": [-6, 0], "role": "state", "unit": "10^", "ramp": "paper"}
    assert np.isnan(number(payload, "G", step=2, key=5))
    assert payload.header["sizes"]["C"] == 10
    assert payload.header["symbols"]["G"]["name"] == "Gradient"
    assert "cosine" not in payload.header["symbols"]


def test_wrong_sizes_are_refused():
    trace = boards.attention_of(T, N, D)
    with pytest.raises(ValueError, match="6 rows"):
        pack(trace, views=(), tokens=["a"] * 6, words=stage_words("en"))
    with pytest.raises(ValueError, match="at most 256"):
        pack(None, views=(), tokens=["a"] * 300, words={}, extra={"G": Extra(np.zeros((300, 300)), "TS", name="G")})


def test_an_uneven_index_has_no_strides():
    assert strides(np.array([[0, 1], [3, 4]]), "TS") == {"T": 3, "S": 1}
    assert strides(np.array([[0, 1], [3, 9]]), "TS") is None


def test_heads_in_a_message_are_checked():
    change = {"symbol": "Z", "value": 0, "from": 0, "to": None, "units": None}
    assert parse_changes({"interventions": [change | {"heads": [2, 0, 2]}]}) == (Change(symbol="Z", value=0.0, heads=(0, 2)),)
    for heads in ([], [-1], ["1"], [True], 3, "2"):
        assert parse_changes({"interventions": [change | {"heads": heads}]}) == ()
