"""A learner's CSV file: what is found, what is missing, and what is said about it."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.tables import column_series, read_table, to_number


def keys(notes):
    return [note.key for note in notes]


def test_a_plain_table():
    table = read_table("day,temp,wind\n2020-01-01,1.5,3\n2020-01-02,-2,4\n2020-01-03,.5,1e1\n")
    assert [column.name for column in table.columns] == ["day", "temp", "wind"]
    assert [column.number for column in table.numeric] == [1, 2]
    assert table.columns[1].values.tolist() == [1.5, -2.0, 0.5]
    assert table.columns[2].values.tolist() == [3.0, 4.0, 10.0]
    assert table.notes == ()
    series, notes = column_series(table, 1)
    assert notes == ()
    assert series.name == "temp"
    assert series.labels == ("2020-01-01", "2020-01-02", "2020-01-03")


def test_missing_values_are_named_and_gaps_are_filled_on_the_line():
    table = read_table("x\nNA\n1\n\n?\n4\nn/a\n6\nnull\n")
    series, notes = column_series(table, 0)
    assert series.values.tolist() == [1, 2.5, 4, 5, 6]
    by_key = {note.key: note.values for note in notes}
    assert by_key["series.missing"] == {"count": 4, "rows": "2, 5, 7, 9", "first": "NA"}
    assert by_key["series.cut"] == {"start": 1, "end": 1}
    assert by_key["series.filled"] == {"count": 2}


def test_an_empty_cell_of_a_row_is_missing_but_an_empty_line_is_no_row():
    table = read_table("a,b\n1,2\n,3\n\n5,6\n")
    assert table.columns[0].rows == (2, 3, 5)
    assert np.isnan(table.columns[0].values[1])
    series, _ = column_series(table, 0)
    assert series.values.tolist() == [1, 3, 5]


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("1\n2\n3", [1, 2, 3], []),
        ("x\n1\n2", [1, 2], []),
        ("a;b\n1,5;9\n2,5;8\n", [1.5, 2.5], ["table.separator", "table.decimal_comma"]),
        ("1,5;2,5\n3,5;4,5\n", [1.5, 3.5], ["table.separator", "table.decimal_comma"]),
        ("a\tb\n1.5\t2\n2.5\t3", [1.5, 2.5], ["table.separator"]),
        ('"price"\n"1,234.5"\n"2,000"\n', [1234.5, 2000], []),
        ("1.234,5;1\n2.000,0;2\n", [1234.5, 2000], ["table.separator", "table.decimal_comma"]),
        ("x\r\n1\r\n2\r\n", [1, 2], []),
        ("−1\n+2\n", [-1, 2], []),
        ("温度\n1\n2\n", [1, 2], []),
    ],
)
def test_ways_to_write_numbers(text, values, said):
    table = read_table(text)
    assert table.columns[0].values.tolist() == values
    assert keys(table.notes) == said


def test_repeated_and_missing_names_are_kept_apart_by_number():
    table = read_table("x,x,\n1,2,3\n4,5,6\n")
    assert [(column.number, column.name) for column in table.numeric] == [(0, "x"), (1, "x"), (2, "")]
    assert column_series(table, 1)[0].values.tolist() == [2, 5]
    assert column_series(table, 2)[0].name == "column 3"
    with pytest.raises(IndexError, match="column 3 does not exist: the table has 3"):
        column_series(table, 3)


@pytest.mark.parametrize("text", ["", "\n\n", " \n\t\n"])
def test_an_empty_file_says_so(text):
    table = read_table(text)
    assert table.columns == ()
    assert keys(table.notes) == ["table.empty"]


def test_a_table_without_numbers_and_a_column_too_short():
    assert keys(read_table("a,b\nc,d\n").notes) == ["table.no_numbers"]
    table = read_table("x,y\n1,5\nfoo,6\nbar,7\n")
    series, notes = column_series(table, 1, needed=9)
    assert series is None
    assert notes[-1].values == {"length": 3, "needed": 9}
    assert column_series(table, 0)[0] is None


def test_uneven_rows_are_named():
    table = read_table("a,b\n1,2\n3\n4,5,6\n7,8\n")
    assert table.notes[0].values == {"rows": "3, 4"}
    assert table.columns[1].values.tolist()[::2] == [2, 5]
    assert np.isnan(table.columns[1].values[1])


def test_infinity_is_no_number():
    assert np.isnan([to_number(cell) for cell in ("inf", "-inf", "nan", "1e999", "0x10", "1_000", "")]).all()
    assert to_number("٣") == 3, "digits of other scripts are digits"


def test_a_quote_that_never_closes_does_not_swallow_the_file():
    table = read_table('x,y\n1,"a\n' + "2,b\n" * 5000)
    assert len(table.columns[0].values) == 5001
    assert read_table('"a\n1\n2').columns[0].values.tolist() == [1, 2]
    closed = read_table('a,"x\ny"\n1,2\n3,4')
    assert [column.name for column in closed.columns] == ["a", "x\ny"]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text):
    table = read_table(text)
    for column in table.numeric:
        series, _ = column_series(table, column.number)
        assert series is not None
        assert np.isfinite(series.values).all()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=2, max_size=30))
def test_numbers_come_back_as_written(values):
    series, notes = column_series(read_table("x\n" + "\n".join(map(repr, values))), 0)
    assert notes == ()
    np.testing.assert_array_equal(series.values, values)


@pytest.mark.parametrize("cell", ["a" * 300_000, '"' + "a" * 300_000, "1" * 300_000])
def test_a_cell_as_long_as_the_file_is_read(cell):
    before = csv.field_size_limit(1000)  # as in a process that has read no table yet
    try:
        assert [note.key for note in read_table(cell).notes] == ["table.no_numbers"]
        assert [column.cells for column in read_table(f"x,y\n1,2\n{cell},3").columns][1] == ("2", "3")
    finally:
        csv.field_size_limit(before)
