"""Every block of a stack at once, against the stack that runs block after block; what a norm averages over; the questions."""

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from engine.recurrent.asking import Answer
from engine.transformer.depth import ARRANGEMENTS, INPUTS, DepthRun, averaged_with, layers_circuit, leak
from engine.transformer.depth_export import script
from engine.transformer.depth_questions import RESIDUALS
from engine.transformer.norms import NORMS, norm_over
from engine.transformer.residual_norm import ACTIVATIONS

IDS = (3, 1, 4, 1, 5, 9, 2)
L, T, D = 5, 7, 11


def run_of(**changes) -> DepthRun:
    options: dict[str, Any] = {"ids": IDS, "depth": L, "width": D, "seed": 3}
    return DepthRun(**(options | changes))


def gap(a, b) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


@pytest.mark.parametrize(("arrangement", "norm"), list(itertools.product(ARRANGEMENTS, NORMS)))
def test_every_block_at_once_is_the_stack_block_after_block(arrangement, norm):
    run = run_of(arrangement=arrangement, norm=norm, activation="gelu")
    trace, stack = run.trace(), run.stack()
    layers = [layer.detach().numpy() for layer in stack.layers(run.vectors())]
    assert trace["Y"].shape == (L, T, D)
    assert gap(trace.inputs["X"], layers[:-1]) == 0
    assert gap(trace["Y"], layers[1:]) < 1e-12
    alone = stack.trace(run.vectors())
    for name in trace:
        for block in range(L):
            inner = f"blocks.{block}.{name}"
            if inner in alone:
                assert gap(trace[name][block], alone[inner]) < 1e-12, name


def test_the_norm_of_every_block_by_hand():
    for arrangement in ("pre", "post"):
        trace = run_of(arrangement=arrangement).trace()
        given = trace.inputs["X"] if arrangement == "pre" else trace["R"]
        mean, variance = given.mean(-1, keepdims=True), given.var(-1, keepdims=True)
        assert gap(trace["mean"], mean) < 1e-12
        assert gap(trace["variance"], variance) < 1e-12
        assert gap(trace["X_hat"], (given - mean) / np.sqrt(variance + 1e-5)) < 1e-12
    batch = run_of(norm="batch").trace()
    assert batch["mean"].shape == (L, 1, D)
    assert gap(batch["mean"], batch.inputs["X"].mean(1, keepdims=True)) < 1e-12


def test_the_figures_of_the_reference_on_the_pages_own_stack():
    """24 ReLU blocks, width 16: plain 3.6e-6, residual without norm 2.8e7, post .42, pre 11, each within the seeds' spread."""
    figures = {"plain": 3.6e-6, "residual": 2.8e7, "post": 0.42, "pre": 11}
    runs = [run_of(depth=24, width=16, ids=tuple(range(54)), seed=seed) for seed in range(8)]
    found = {name: sorted(run.flow(name).weights[0] for run in runs) for name in figures}
    for name, figure in figures.items():
        assert found[name][0] / 10 < figure < found[name][-1] * 10, name
    middle = {name: sizes[4] for name, sizes in found.items()}
    assert middle["plain"] < 1e-3 < 0.1 < middle["post"] < middle["pre"] < 100 < 1e6 < middle["residual"]


def test_a_residual_alone_grows_and_a_plain_stack_vanishes_on_the_way_back():
    flows = {name: run_of(depth=24, width=16).flow(name) for name in ARRANGEMENTS}
    assert flows["plain"].backward[0] < 0.1 * flows["plain"].backward[-2]
    assert flows["residual"].backward[0] > 10 * flows["residual"].backward[-2]
    assert flows["residual"].forward[-1] > 100 * flows["residual"].forward[0]
    assert all(abs(size - 1) < 0.05 for size in flows["post"].forward[1:])


@pytest.mark.parametrize("given", INPUTS)
def test_hard_inputs_stay_numbers(given):
    run = run_of(given=given, depth=64)
    trace = run.trace()
    assert all(np.isfinite(trace[name]).all() for name in trace)
    if given == "constant":
        assert gap(trace["X_hat"][0], 0) == 0
    if given == "far":
        plain = run_of(given="normal", depth=64).trace()
        assert gap(trace["X_hat"][0], plain["X_hat"][0]) < 1e-9


def test_equal_tokens_have_equal_vectors_and_arrangements_equal_matrices():
    run = run_of()
    X = run.vectors()
    assert torch.equal(X[1], X[3])
    assert not torch.equal(X[0], X[1])
    first, other = (run.stack(name).blocks[2].get_parameter("W") for name in ("pre", "plain"))
    assert torch.equal(first, other)
    assert run.trace(3)["Y"].shape == (L, 3, D)
    assert run_of(norm="batch").trace(3)["Y"].shape == (L, T, D)
    with pytest.raises(ValueError, match="arrangement"):
        layers_circuit("both", "layer", "relu")


# --------------------------------------------------------------------------------------------- what a norm averages over


@pytest.mark.parametrize(("over", "count"), [("D", 7), ("BT", 15), ("T", 5), ("TD", 35), ("BTD", 105)])
def test_the_cells_that_share_a_mean(over, count):
    shape, place = (3, 5, 7), (1, 2, 4)
    together = averaged_with(over, shape, place)
    assert together.sum() == count
    assert together[place]
    X = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    moved = np.zeros(shape, dtype=bool)
    for cell in np.ndindex(shape):
        changed = X.clone()
        changed[cell] += 1
        moved[cell] = abs(float((norm_over(changed, over) - norm_over(X, over))[place])) > 1e-9
    assert (moved == together).all()


def test_d9_a_norm_over_positions_tells_each_token_of_every_other():
    X = run_of().vectors()
    tight = leak(X, "D")
    assert gap(tight[~np.eye(T, dtype=bool)], 0) == 0
    assert (np.diagonal(tight) > 0.1).all()
    open_ = leak(X, "TD")
    assert (open_ > 1e-6).all()
    large = leak(X, "TD", size=100.0)
    assert large[2, 0] > 0.5  # the reference: changing token 2 moves token 0 by 1.5


# ----------------------------------------------------------------------------------------------------- script and questions


@pytest.mark.parametrize(("arrangement", "norm", "given"), [("post", "batch", "far"), ("pre", "layer", "constant")])
def test_the_script_prints_the_pages_sizes(tmp_path, arrangement, norm, given):
    path = tmp_path / "residual_norm.py"
    run = run_of(arrangement=arrangement, norm=norm, given=given, init_scale=1.5)
    path.write_text(script(run), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()[1 : L + 1]]
    flow = run.flow()
    assert [row[1] for row in rows] == [f"{size:.6e}" for size in flow.forward[1:]]
    assert [row[2] for row in rows] == [f"{size:.6e}" for size in flow.weights]
    assert float(done.stdout.split()[-1]) < 1e-9


RIGHT = {"first": "less", "alone": "grows", "bypass": "input", "constant": "zeros", "thousand": "same", "leak": "all"}


@pytest.mark.parametrize("name", RIGHT)
def test_questions_are_answered_by_the_run(name):
    question = next(q for q in RESIDUALS if q.id == f"residual_norm.{name}")
    answer = question.ask(run_of(depth=24, width=16, step=3))
    assert isinstance(answer, Answer), answer
    assert answer.choice == RIGHT[name]
    assert len(answer.options) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"ids": (0,)},
        {"depth": 1},
        {"given": "constant"},
        {"init_scale": 0.0},
        {"activation": "sigmoid"},
        {"norm": "batch", "given": "far"},
    ],
)
def test_every_question_answers_or_says_why_not(changes):
    for question in RESIDUALS:
        question.ask(run_of(**changes))
    assert set(ACTIVATIONS) == {"relu", "gelu", "tanh", "sigmoid", "linear"}
