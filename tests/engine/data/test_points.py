"""Points from text: what is read, what is left out, and that each refusal says why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.points import LARGEST, MOST, Point, read_points, rounded


def read(text):
    points, notes = read_points(text)
    return [(point.x, point.y) for point in points], {note.key: dict(note.values) for note in notes}


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("1,2\n3,4", [(1, 2), (3, 4)]),
        ("x,y\n3,4\n1,2\n", [(1, 2), (3, 4)]),
        ("3 4\n1  2", [(1, 2), (3, 4)]),
        ("1\t2\n3\t4", [(1, 2), (3, 4)]),
        ("1;2,5\n2;3,5", [(1, 2.5), (2, 3.5)]),
        ("1,2\r\n1,2\r\n", [(1, 2), (1, 2)]),
        ("-1.5e-3,7", [(-0.0015, 7)]),
    ],
)
def test_two_columns_of_numbers_are_points(text, points):
    assert read(text)[0] == points


def test_what_is_left_out_is_told():
    points, notes = read("x,y\n1,2\n3,nan\n4,inf\n5,2e9\n6,x\n7,8")
    assert points == [(1, 2), (7, 8)]
    assert notes["points.left_out"] == {"count": 3, "rows": "3, 4, 6"}
    assert notes["points.too_large"] == {"count": 1, "limit": LARGEST}
    points, notes = read("\n".join(f"{i},{i}" for i in range(150)))
    assert len(points) == MOST
    assert notes["points.first"] == {"kept": MOST, "total": 150}
    assert read("1,2,3\n4,5,6") == ([(1, 2), (4, 5)], {"points.columns": {"columns": 3}})


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "points.none"), (" \n ", "points.none"), ("a\nb", "points.two_columns"), ("1\n2", "points.two_columns")],
)
def test_a_text_without_points_says_what_is_needed(text, why):
    points, notes = read(text)
    assert points == []
    assert list(notes)[-1] == why


@given(st.text(max_size=60))
def test_any_text_gives_points_or_a_reason(text):
    points, notes = read_points(text)
    assert points or notes
    assert all(abs(point.x) <= LARGEST and abs(point.y) <= LARGEST for point in points)


@given(st.floats(-LARGEST, LARGEST), st.floats(-LARGEST, LARGEST))
def test_a_point_is_what_its_text_says(x, y):
    point = rounded(x, y)
    again = tuple(float(part) for part in str(point).split(","))
    assert Point(*again) == point
