"""Tables of a run: read back as they were written, and no cell that a spreadsheet would run."""

import csv
import io

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.equation import set_to
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.tables import DANGEROUS, number, protected, state_rows, to_csv, token_rows, unprotected
from tests.support import seeded

TOKENS = [
    "=1+1",
    "the",
    "the",
    "",
    " ",
    "\n",
    '"',
    ",",
    "1",
    "1E1",
    "@x",
    "-2",
    "+3",
    "'",
    "\t",
    "<b>",
    "字",
    "👩‍👩‍👧",
    "\r",
    "=cmd|' /C calc'!A0",
]
VOCABULARY = ["<unk>", "=", "a", "1"]
H = 3


@pytest.fixture(scope="module")
def runs():
    model = RecurrentLanguageModel("lstm", len(VOCABULARY), H, generator=seeded(3))
    ids = torch.randint(len(VOCABULARY), (len(TOKENS), 1), generator=seeded(4))
    return model.trace(ids), model.trace(ids, do={"F": set_to(1.0, step=(2, None))})


def read(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_states_come_back_number_for_number(runs):
    base, changed = runs
    header, *rows = read(to_csv(state_rows(changed, TOKENS, baseline=base)))
    symbols = ["F", "I", "O", "C_tilde", "C", "H"]
    assert header == ["step", "token", "unit", *(n for s in symbols for n in (s, f"{s}_baseline"))]
    assert len(rows) == len(TOKENS) * H
    for i, row in enumerate(rows):
        t, unit = divmod(i, H)
        assert row[0] == str(t + 1)
        assert unprotected(row[1]) == TOKENS[t]
        assert row[2] == str(unit)
        for name, text in zip(header[3:], row[3:], strict=True):
            trace = base if name.endswith("_baseline") else changed
            assert np.float32(text) == trace[name.removesuffix("_baseline")][t, 0, unit]


def test_next_tokens_come_back(runs):
    header, *rows = read(to_csv(token_rows(runs[0], TOKENS, VOCABULARY)))
    assert header == ["step", "token", "next", "probability"]
    assert [unprotected(row[2]) for row in rows[: len(VOCABULARY)]] == VOCABULARY
    for i, row in enumerate(rows):
        t, v = divmod(i, len(VOCABULARY))
        assert unprotected(row[1]) == TOKENS[t]
        assert np.float32(row[3]) == runs[0]["P"][t, 0, v]
    header, *rows = read(to_csv(token_rows(runs[1], TOKENS, VOCABULARY, baseline=runs[0])))
    assert header[-1] == "probability_baseline"
    assert np.float32(rows[5][4]) == runs[0]["P"][1, 0, 1]


def test_pandas_and_a_spreadsheet_read_the_same_rows(runs):
    import pandas as pd

    table = pd.read_csv(io.BytesIO(to_csv(state_rows(runs[0], TOKENS))), keep_default_na=False, dtype={"token": str})
    assert table["token"][::H].map(unprotected).tolist() == TOKENS
    np.testing.assert_array_equal(table["C"].to_numpy(np.float32).reshape(-1, H), runs[0]["C"][:, 0])


def test_no_cell_of_text_is_a_formula(runs):
    for row in read(to_csv(state_rows(runs[0], TOKENS)))[1:]:
        assert not row[1].startswith(DANGEROUS)
    assert read(to_csv([("=SUM(A1)", "-1", -1.0, -2)])) == [["'=SUM(A1)", "'-1", "-1.0", "-2"]]


@given(st.lists(st.lists(st.text(), min_size=1, max_size=3), min_size=1, max_size=4))
def test_any_text_comes_back(rows):
    back = read(to_csv(rows))
    expected = [[cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for cell in row] for row in rows]
    assert [[unprotected(cell) for cell in row] for row in back] == expected
    assert all(unprotected(protected(cell)) == cell for row in rows for cell in row)


def test_an_absent_value_is_an_empty_cell_and_zero_is_zero():
    assert read(to_csv([(0.0, None, float("nan"), float("inf"), 0)])) == [["0.0", "", "", "inf", "0"]]
    numpys = (np.float32(0.1), np.float64("nan"), np.int64(3), np.str_("=1"))
    assert read(to_csv([numpys])) == [["0.1", "", "3", "'=1"]]
    assert number(np.float32(0.1)) == 0.1
    assert number(np.float64(0.1)) == 0.1


def test_what_does_not_fit_is_refused(runs):
    with pytest.raises(ValueError, match="tokens for a run"):
        list(state_rows(runs[0], TOKENS[:-1]))
    with pytest.raises(ValueError, match="columns of P"):
        list(token_rows(runs[0], TOKENS, VOCABULARY[:-1]))
