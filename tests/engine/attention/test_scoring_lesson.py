"""The lesson on scores: its vectors, masks, what it measures, its questions and its script, each by hand in NumPy."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from engine.attention import score_questions as questions
from engine.attention.costs import measure, slope
from engine.attention.saturation import score_cost
from engine.attention.score_export import script
from engine.attention.score_questions import SCORING
from engine.attention.scores import SCORES
from engine.attention.scoring import ScoringRun, bound, growth, mask_of, narrowing, vectors
from engine.notes import Note
from engine.recurrent.asking import Answer

TOKENS = ("the", "cat", "the", "<b>", "7")


def run_of(score="scaled_dot_product", tokens=TOKENS, **changes):
    given = {"width": 6, "key_width": 6, "hidden": 7, "seed": 3, "mask": mask_of("all", len(tokens), 0)}
    return ScoringRun(tokens=tokens, score=score, **(given | changes))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_equal_tokens_have_equal_vectors_and_wider_ones_begin_with_the_narrower():
    Q, K, V = vectors(TOKENS, 16, 32, 5)
    assert (Q.shape, K.shape, V.shape) == ((5, 16), (5, 32), (5, 4))
    for each in (Q, K, V):
        assert torch.equal(each[0], each[2])
        assert not torch.equal(each[0], each[1])
    narrow = vectors(TOKENS, 4, 8, 5)
    assert torch.equal(Q[:, :4], narrow[0])
    assert torch.equal(K[:, :8], narrow[1])
    assert not torch.equal(vectors(TOKENS, 16, 32, 6)[0], Q)


@pytest.mark.parametrize("widths", [(6, 6), (6, 3)])
@pytest.mark.parametrize("score", SCORES)
def test_every_score_and_weight_is_its_formula(score, widths):
    run = run_of(score, width=widths[0], key_width=widths[1], mask=mask_of("causal", 5, 0), temperature=0.5)
    if not run.fits:
        with pytest.raises(ValueError, match="one width"):
            run.trace()
        return
    trace = run.trace()
    Q, K, V = (each.numpy() for each in run.operands())
    w = {name: value.numpy() for name, value in run.weights().items()}
    scores = {
        "dot_product": lambda: Q @ K.T,
        "scaled_dot_product": lambda: Q @ K.T / np.sqrt(6),
        "bilinear": lambda: Q @ w["W"] @ K.T,
        "additive": lambda: np.tanh((Q @ w["W_q"])[:, None] + (K @ w["W_k"])[None]) @ w["w_v"],
    }[score]()
    weights = softmax(np.where(np.tril(np.ones((5, 5), bool)), scores / 0.5, -np.inf))
    by_hand = {"S": scores, "A": weights, "O": weights @ V}
    assert set(trace) == set(by_hand)
    for name, value in by_hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=1e-10, err_msg=name)


def test_masks_are_what_they_are_called():
    assert mask_of("all", 3, 0).all()
    assert mask_of("valid", 4, 3).tolist() == [[True, True, True, False]] * 4
    assert not mask_of("valid", 4, 0).any()
    assert torch.equal(mask_of("causal", 4, 0), torch.ones(4, 4).tril().bool())
    own = mask_of("own", 3, 0, [1, 8])
    assert (~own).nonzero().tolist() == [[0, 1], [2, 2]]


@pytest.mark.parametrize("score", ["dot_product", "additive"])
def test_a_row_without_keys_is_0_and_said(score):
    trace = run_of(score, mask=mask_of("own", 5, 0, range(5, 10))).trace()
    assert (trace["A"][1] == 0).all()
    assert (trace["O"][1] == 0).all()
    assert np.isfinite(trace["O"]).all()
    assert trace.notes[0].values["count"] == 1
    ways = run_of(score).without_keys()
    assert ways is not None
    assert (ways["here"] == 0).all()
    np.testing.assert_allclose(ways["book"], 0.2)
    assert np.isnan(ways["infinity"]).all()


def test_the_additive_score_is_bounded_and_the_products_are_not():
    run = run_of("additive")
    found = growth(run, (1.0, 10.0, 1e6))
    assert max(found["additive"]) <= bound(run) == pytest.approx(np.abs(run.weights()["w_v"].numpy()).sum())
    for name in ("dot_product", "scaled_dot_product", "bilinear"):
        assert found[name][2] == pytest.approx(1e6 * found[name][0])
    assert set(growth(run_of(key_width=3), (1.0,))) == {"bilinear", "additive"}


def test_without_the_divisor_the_softmax_narrows_with_the_width():
    plain, scaled = narrowing((1, 16, 512), 10, 0)
    np.testing.assert_allclose(torch.cat([plain, scaled]).sum(-1), 1, rtol=0, atol=1e-12)
    assert plain[0].tolist() == scaled[0].tolist()
    assert plain[2].max() > 0.9 > scaled[2].max()


def test_what_is_measured_is_what_is_counted():
    for name, least in (("dot_product", 4 * 32 * 32), ("additive", 2 * 4 * 32 * 32 * 8)):
        (found,) = measure(name, [32], width=16, hidden=8)
        assert found.seconds >= 0
        assert least <= found.bytes < 4 * least + 100_000
        assert found.multiplications == score_cost(name, 32, 32, 16, 8).multiplications
    assert slope([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0]) == pytest.approx(2)


# ----------------------------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize("question", SCORING, ids=lambda question: question.id)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("tokens", "key_width"), [(TOKENS, 6), (("x",), 6), (TOKENS, 3), (("a", "a", "a"), 6)])
def test_every_question_has_one_right_option_or_says_why_not(question, score, tokens, key_width):
    answer = question.ask(run_of(score, tokens, key_width=key_width))
    if isinstance(answer, Answer):
        assert answer.choice in answer.options
        assert len(answer.options) == 3
    else:
        assert isinstance(answer, Note)


def test_the_answers_are_true_of_the_run():
    run = run_of(width=64, key_width=64)
    variance = questions.variance(run)
    assert variance.choice == "width"
    assert 45 < variance.values["plain"] < 85
    divisor = questions.divisor(run)
    assert divisor.choice == "width"
    assert divisor.values["by"] == pytest.approx(8)
    assert questions.unequal(run).choice == "scaled_dot_product"
    cancels = questions.cancels(run)
    assert cancels.choice == "same"
    assert cancels.values["apart"] < 1e-12
    assert questions.hidden(run).choice == "zero"
    empty = questions.empty(run)
    assert empty.choice == "zeros"
    assert empty.values["book"] == pytest.approx(0.2)
    assert questions.louder(run).choice == "additive"
    assert questions.warmth(run).choice == "smaller"


def test_the_same_question_is_about_the_same_run():
    assert run_of().same(run_of())
    assert not run_of().same(run_of(seed=4))
    assert not run_of().same(run_of(mask=mask_of("causal", 5, 0)))


# -------------------------------------------------------------------------------------------------------------- script


@pytest.mark.parametrize(("score", "temperature"), [("scaled_dot_product", 1.0), ("additive", 2.0)])
def test_the_script_prints_the_runs_numbers(score, temperature, tmp_path):
    tokens = ("a", "'", "\n", "é", '"""$x{y}')
    trace = run_of(score, tokens, mask=mask_of("causal", 5, 0), temperature=temperature).trace()
    path = tmp_path / "scores.py"
    path.write_text(script(trace, tokens, 3), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=120)
    lines = done.stdout.splitlines()
    printed = np.array([[float(part) for part in line.split()[-2:]] for line in lines[1:6]])
    np.testing.assert_allclose(printed, np.stack([trace["S"][3], trace["A"][3]], axis=1), rtol=0, atol=2e-6)
    if score == "scaled_dot_product":
        assert float(lines[-1].split()[-1]) < 1e-5
    with pytest.raises(IndexError, match="no query 5"):
        script(trace, tokens, 5)
