"""The lesson on kernel regression: cues, shapes of kernels, the fits over w, questions and script, by hand in NumPy."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from engine.attention import cues
from engine.attention import kernel_questions as questions
from engine.attention.kernel_export import script
from engine.attention.kernel_questions import KERNELS_ASKED, KernelRun
from engine.attention.kernel_regression import fits, kernel_shape, mean_squared_error, regress, textbook_points, truth
from engine.notes import Note
from engine.recurrent.asking import Answer
from tests.support import seeded

POINTS = textbook_points(seeded(0))


def run_of(kernel="gaussian", width=0.5, query=2.0, w=0.5, points=POINTS):
    return KernelRun(x=points[0], y=points[1], kernel=kernel, width=width, query=query, w=w)


def test_where_one_looks_is_the_softmax_of_what_stands_out_and_what_is_wanted():
    trace, K = cues.look(), np.array(cues.KEYS)
    assert trace["A"].shape == (len(cues.WISHES), len(cues.OBJECTS))
    for wish in range(len(cues.WISHES)):
        q = np.zeros(K.shape[1])
        q[0] = 1
        if wish:
            q[wish] = cues.WILL
        scores = K @ q
        np.testing.assert_allclose(trace["S"][wish], scores, rtol=0, atol=1e-12)
        np.testing.assert_allclose(trace["A"][wish], np.exp(scores) / np.exp(scores).sum(), rtol=0, atol=1e-12)
    seen = [cues.OBJECTS[at] for at in trace["A"].argmax(-1)]
    assert seen == ["cup", "book", "cup", "notebook"]


@pytest.mark.parametrize("kernel", ["average", "gaussian", "boxcar", "triangular"])
def test_the_shape_of_a_kernel_is_1_at_its_top_and_even_on_both_sides(kernel):
    places = torch.linspace(-2, 2, 41, dtype=torch.float64)
    shape = kernel_shape([0.0], places, kernel, 0.5)[0].numpy()
    assert shape[20] == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(shape, shape[::-1], rtol=0, atol=1e-12)
    if kernel == "gaussian":
        np.testing.assert_allclose(shape, np.exp(-((places.numpy() / 0.5) ** 2) / 2), rtol=0, atol=1e-12)


def test_the_fit_of_each_w_is_that_of_its_width():
    queries = torch.linspace(-1, 6, 13, dtype=torch.float64)
    found = fits(*POINTS, [0.5, 2.0, 7.0], queries)
    for row, w in zip(found, (0.5, 2.0, 7.0), strict=True):
        np.testing.assert_allclose(row, regress(queries, *POINTS, "gaussian", 1 / w)["f"], rtol=0, atol=1e-10)
    curve = torch.where(queries >= 0, truth(queries.clamp(min=0)), torch.nan)
    errors = mean_squared_error(found, curve).numpy()
    by_hand = [np.nanmean((row.numpy() - curve.numpy()) ** 2) for row in found]
    np.testing.assert_allclose(errors, by_hand, rtol=0, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize("question", KERNELS_ASKED, ids=lambda question: question.id)
@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "triangular", "average"])
def test_every_question_has_one_right_option_among_those_offered(question, kernel):
    answer = question.ask(run_of(kernel))
    if isinstance(answer, Answer):
        assert answer.choice in answer.options
        assert len(answer.options) == 3
    else:
        assert isinstance(answer, Note)


def test_the_answers_are_true_of_the_run():
    run = run_of()
    assert questions.total(run).choice == "one"
    assert questions.narrower(run).choice == "larger"
    far = questions.far(run)
    assert far.choice == "nearest"
    assert far.values["got"] == pytest.approx(float(POINTS[1][POINTS[0].argmax()]), abs=1e-9)
    averaged = questions.averaged(run)
    assert averaged.choice == "one"
    assert averaged.values["mean"] == pytest.approx(float(POINTS[1].mean()))
    bounded = questions.bounded(run_of("boxcar", 0.5))
    assert bounded.choice == "some"
    assert bounded.values["count"] == int((abs(POINTS[0] - 2.0) > 0.5).sum())
    assert questions.overshoot(run).choice == "beyond"
    assert questions.with_itself(run).choice == "forever"


def test_what_cannot_be_asked_says_why():
    one = (torch.tensor([1.0], dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64))
    twice = (torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64), torch.tensor([2.0, 3.0, 4.0], dtype=torch.float64))
    assert questions.total(run_of(points=one)).key == "question.one_point"
    assert questions.with_itself(run_of(points=twice)).key == "question.few_points"
    assert questions.narrower(run_of("average")).key == "question.needs_kernel"
    assert questions.bounded(run_of("gaussian")).key == "question.needs_bounded"
    for question in KERNELS_ASKED:
        question.ask(run_of(points=one))
        question.ask(run_of(points=twice))


def test_the_same_question_is_about_the_same_run():
    assert run_of().same(run_of())
    assert not run_of().same(run_of(width=0.4))
    assert not run_of().same(run_of(points=textbook_points(seeded(1))))


# -------------------------------------------------------------------------------------------------------------- script


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "average"])
def test_the_script_prints_the_runs_weights(kernel, tmp_path):
    trace = regress([1.7], *POINTS, kernel, 0.3)
    path = tmp_path / "kernel_regression.py"
    path.write_text(script(trace, 1.7), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    assert float(lines[0].split()[-1]) == pytest.approx(float(trace["f"][0]), abs=1e-6)
    printed = [float(line.split()[-1]) for line in lines[2:-1]]
    assert printed == pytest.approx(trace["A"][0].tolist(), abs=1e-6)
    assert lines[-1] == "the weights sum to 1.000000"
