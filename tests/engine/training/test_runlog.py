"""The log of a run: read while it grows, torn lines, what is taken back, and the curves made of it."""

import json
import math

import numpy as np
import pytest

from engine.training.files import RunFolder
from engine.training.runlog import RunLog


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def step(number, *losses, took=10.0):
    return {"s": number, "t": number / 100, "l": list(losses), "g": [2.0] * len(losses), "d": [took] * len(losses)}


def test_what_is_appended_is_read_once_and_in_order(folder):
    log = RunLog(folder.log, 2)
    assert not log.update()
    folder.append([step(1, 4.0, 3.0), step(2, 3.5, 2.5)])
    assert log.update()
    assert not log.update()
    folder.append([step(3, 3.0, None), {"k": "held", "s": 3, "h": [3.25, None], "n": 70}])
    log.update()
    assert list(log.steps) == [1, 2, 3]
    assert list(log.losses[0]) == [4.0, 3.5, 3.0]
    assert math.isnan(log.losses[1][2])
    assert (list(log.held[0]), log.measured) == ([3.25], 70)
    assert log.best(1) is None


def test_a_line_that_is_being_written_waits_and_a_torn_one_is_passed_over(folder):
    log = RunLog(folder.log, 1)
    half = json.dumps(step(2, 2.0))
    folder.log.write_text(json.dumps(step(1, 3.0)) + "\n" + half[:20], encoding="utf-8")
    log.update()
    assert list(log.steps) == [1]
    folder.append([{"k": "resume", "s": 1}, step(2, 1.5)])
    log.update()
    assert list(log.losses[0]) == [3.0, 1.5]


def test_what_came_after_the_step_that_is_gone_back_to_is_forgotten(folder):
    log = RunLog(folder.log, 1)
    folder.append([step(n, 5.0 - n) for n in range(1, 5)])
    folder.append([{"k": "held", "s": n, "h": [9.0 - n], "n": 7} for n in (2, 4)])
    folder.append([{"k": "end", "s": 4, "state": "finished", "reason": ""}, {"k": "rewind", "s": 2}, step(3, 8.0)])
    log.update()
    assert list(log.steps) == [1, 2, 3]
    assert log.losses[0][-1] == 8.0
    assert list(log.held_steps) == [2]
    assert [one.kind for one in log.happened] == ["rewind"]


@pytest.mark.parametrize("count", [0, 1, 7, 240, 241, 1000])
def test_curves_are_means_over_whole_widths_and_never_many_points(folder, count):
    log = RunLog(folder.log, 1)
    losses = [math.sin(n) + 2 for n in range(1, count + 1)]
    folder.append([step(n, losses[n - 1]) for n in range(1, count + 1)])
    log.update()
    curve = log.curve(0, most=100)
    assert len(curve.steps) == len(curve.losses) == len(curve.norms) <= 101
    for place, (last, mean) in enumerate(zip(curve.steps, curve.losses, strict=True)):
        first = place * curve.width
        assert mean == pytest.approx(np.mean(losses[first : int(last)]))
    if count:
        assert curve.steps[-1] == count


def test_a_point_stays_as_it_is_while_the_run_goes_on(folder):
    log = RunLog(folder.log, 1)
    folder.append([step(n, 1 / n) for n in range(1, 150)])
    log.update()
    before = log.curve(0, most=100)
    folder.append([step(n, 1 / n) for n in range(150, 200)])
    log.update()
    after = log.curve(0, most=100)
    assert before.width == after.width == 2
    assert list(after.losses[:74]) == list(before.losses[:74])


def test_where_held_out_loss_turns_is_found_and_a_bump_is_no_turn(folder):
    log = RunLog(folder.log, 2)
    falling = [3 - 0.1 * n for n in range(20)]
    turning = [3 - 0.1 * n for n in range(10)] + [2.2 + 0.05 * n for n in range(10)]
    rows = zip(falling, turning, strict=True)
    folder.append([{"k": "held", "s": 10 * n, "h": list(row), "n": 7} for n, row in enumerate(rows)])
    log.update()
    assert log.turned(0) is None
    assert log.turned(1) == 90
    assert log.best(1) == (90, pytest.approx(2.1))
    assert log.turned(1, patience=30) is None


def test_speed_and_time_left_follow_the_latest_steps(folder):
    log = RunLog(folder.log, 1)
    assert (log.speed(0, 100), log.left(50)) == (None, None)
    folder.append([step(n, 1.0, took=10.0 if n > 20 else 99.0) for n in range(1, 41)])
    log.update()
    assert log.speed(0, 100, recent=150) == pytest.approx(10_000)
    assert log.left(100) == pytest.approx(0.6)


def test_the_whole_log_can_be_taken_home(folder):
    log = RunLog(folder.log, 2)
    folder.append([step(1, 4.0, 3.0), step(2, 3.5, None), {"k": "held", "s": 2, "h": [3.3, None], "n": 7}])
    log.update()
    header, *rows = log.rows()
    assert header == ("step", "seconds", "model", "loss", "gradient_norm", "held_out")
    assert rows[2] == (2, 0.02, 0, 3.5, 2.0, 3.3)
    assert rows[3] == (2, 0.02, 1, None, 2.0, None)
