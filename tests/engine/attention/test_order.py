"""Attention with positions: every place they can be put, against the model itself; and the shipped models."""

import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from engine.attention import order_export, order_model, reversing
from engine.attention.bake_order import CHARACTER_PLAN, DIGIT_PLAN, NAMES, bake_digits, excerpt_ids
from engine.attention.character_model import LONGEST, held_out_loss, loss_of
from engine.attention.order import OrderRun, carried, likeness_by_distance, order_circuit, places_of, unpermuted
from engine.attention.order_model import KINDS, OrderModel, loss_by_position
from engine.attention.order_questions import POSITIONS
from engine.attention.positions import alibi, rotary, sinusoidal
from engine.attention.reversing import ReversingModel
from engine.recurrent.asking import Answer
from engine.training.bake import elsewhere
from engine.training.checkpoints import CheckpointError
from tests.support import seeded

V, T, D, N = 11, 7, 12, 3
IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2])
BACKWARDS = tuple(range(T - 1, -1, -1))
EVERY = [(kind, where) for kind in KINDS[:4] for where in places_of(kind)]


def model_of(kind: str, width: int = D, heads: int = N) -> OrderModel:
    return OrderModel(V, heads, width, kind=kind, generator=seeded(2)).eval().requires_grad_(False)


def run_of(kind: str = "sinusoidal", **changes) -> OrderRun:
    where = changes.pop("where", places_of(kind)[0])
    return OrderRun(model=model_of(kind), ids=IDS, where=where, **changes)


def gap(a, b) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


def by_hand(run: OrderRun) -> dict[str, np.ndarray]:
    """The whole run in NumPy, written out."""
    model, ids = run.model, run.read
    weights = {name: weight.double().numpy() for name, weight in model.attention.weights().items()}
    length, width, heads = len(ids), model.width, model.attention.heads
    P = {
        "sinusoidal": lambda: sinusoidal(length, width).numpy(),
        "learned": lambda: model.W_p[:length].double().numpy(),
    }.get(run.kind, lambda: np.zeros((length, width)))()
    E = run.scale * model.E[ids].double().numpy()
    seen = {"input": "qkv", "qk": "qk", "v": "v"}.get(run.where, "")

    def split(name: str) -> np.ndarray:
        given: np.ndarray = (E + P if name in seen else E) @ weights[f"W_{name}"]
        return given.reshape(length, heads, -1).transpose(1, 0, 2)

    Q, K, values = (split(name) for name in "qkv")
    bias = np.zeros((heads, length, length))
    if run.where == "scores" and run.kind == "rotary":
        Q, K = (rotary(torch.tensor(each)).numpy() for each in (Q, K))
    if run.where == "scores" and run.kind == "alibi":
        bias = alibi(heads, length).numpy()
    S = Q @ K.transpose(0, 2, 1) / math.sqrt(width / heads) + bias
    kept = np.where(np.tril(np.ones((length, length))) if run.causal else 1, S, -np.inf)
    A = np.exp(kept - kept.max(-1, keepdims=True))
    A = A / A.sum(-1, keepdims=True)
    Z = A @ values
    return {"S": S, "A": A, "Z": Z, "O": Z.transpose(1, 0, 2).reshape(length, -1) @ weights["W_o"]}


@pytest.mark.parametrize(("kind", "where"), EVERY)
@pytest.mark.parametrize("causal", [True, False])
def test_every_place_is_its_equations(kind, where, causal):
    run = run_of(kind, where=where, causal=causal, scale=1.5, order=(2, 0, 1, 6, 5, 4, 3))
    trace = run.trace()
    for name, value in by_hand(run).items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_the_run_is_the_models_own(kind):
    run = run_of(kind)
    trace = run.trace()
    scores = run.model(IDS)
    assert run.loss(trace) == pytest.approx(float(loss_of(scores, IDS)), abs=1e-5)
    X = trace["X_p" if "X_p" in trace else "X_s"]
    assert gap(X, run.model.vectors(IDS)) < 1e-6


@pytest.mark.parametrize(("kind", "where"), EVERY)
def test_pe_07_order_matters_exactly_where_positions_are(kind, where):
    """Read backwards without a mask: weights see it unless queries and keys know no positions, outputs unless none do."""
    run = run_of(kind, where=where, causal=False, order=BACKWARDS)
    now, along = run.trace(), unpermuted(run)
    assert (gap(now["A"], along["A"]) > 1e-3) is (where in ("input", "qk") or (where == "scores" and kind == "rotary"))
    blind = where == "nowhere" or kind == "alibi"  # its distances are the same backwards
    assert (gap(now["O"], along["O"]) > 1e-3) is not blind
    if blind:
        assert gap(now["O"], along["O"]) < 1e-12


def test_a_mask_gives_order_away():
    run = run_of(where="nowhere", causal=True, order=BACKWARDS)
    assert gap(run.trace()["O"], unpermuted(run)["O"]) > 1e-3


def test_codes_and_rotation_of_the_stage():
    run = run_of(delta=3)
    trace = run.trace()
    P = sinusoidal(T + 3, D).numpy()
    assert gap(trace["P"], P[:T]) < 1e-12
    assert gap(trace["P_d"], P[3:]) < 1e-12
    assert gap(trace["G"], P[:T] @ P[:T].T) < 1e-12
    assert carried(run).shape == (T,)
    assert carried(run).max() < 1e-12
    for width in (1, 3, 29):
        odd = OrderRun(model=model_of("sinusoidal", width, 1), ids=IDS)
        assert "P_d" not in odd.trace()
        assert gap(odd.trace()["P"], sinusoidal(T, width)) < 1e-12


def test_places_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="rotary positions go into"):
        order_circuit("rotary", "v", False, True)
    with pytest.raises(ValueError, match="one of"):
        order_circuit("sinusoidal", "scores", False, True)
    with pytest.raises(ValueError, match="positions are one of"):
        OrderModel(V, kind="none of these", generator=seeded(1))


def test_likeness_by_distance():
    for kind in KINDS[:4]:
        found = likeness_by_distance(kind, model_of(kind), T)
        assert np.allclose(found[:, 0], 1.0)
    P = sinusoidal(T, D)
    assert np.allclose(likeness_by_distance("sinusoidal", model_of("sinusoidal"), T)[0], (P @ P.T)[0] / (D / 2))


# ------------------------------------------------------------------------------------------------------- the shipped models


@pytest.mark.parametrize("kind", order_model.BAKED)
def test_the_loss_in_the_file_is_the_models(kind):
    trained = order_model.load(kind)
    found = held_out_loss(trained.model, excerpt_ids(trained.vocabulary))
    assert found == pytest.approx(trained.losses["excerpt"], abs=1e-4)
    assert trained.training == dataclasses.asdict(CHARACTER_PLAN)


@pytest.mark.parametrize("variant", reversing.VARIANTS)
def test_the_reversing_loss_in_the_file_is_the_models(variant):
    trained = reversing.load(variant)
    assert reversing.fixed_loss(trained.model) == pytest.approx(trained.losses["fixed"], abs=1e-4)
    assert trained.training == dataclasses.asdict(DIGIT_PLAN)


def test_question_9_beyond_the_length_of_the_training():
    """The figures of the reference: 1.00 up to 10 digits, .27 to .72 at 11, about chance at 12; a learned table ends."""
    model = reversing.load("sinusoidal").model
    assert min(reversing.accuracy(model, n) for n in range(3, 11)) > 0.99
    assert 0.2 < reversing.accuracy(model, 11) < 0.75
    assert reversing.accuracy(model, 12) < 0.2
    for variant in ("rotary", "alibi"):  # they know distances only: not yet right within the lengths of the training
        assert 0.2 < reversing.accuracy(reversing.load(variant).model, 10) < 0.9
    learned = reversing.load("learned").model
    assert min(reversing.accuracy(learned, n) for n in range(3, 11)) > 0.99
    assert math.isnan(reversing.accuracy(learned, 11))
    assert reversing.answer(learned, [1] * 11) is None
    with pytest.raises(ValueError, match="12 positions are needed"):
        learned(torch.ones(1, 11, dtype=torch.int64))


def test_d4_scaled_embeddings_drown_the_codes():
    """Embeddings from N(0, 1) times sqrt(d): at 8 digits as good as none at all (.29 in the reference), without it 1.00."""
    plain, scaled, none = (reversing.accuracy(reversing.load(name).model, 8) for name in ("sinusoidal", "scaled", "none"))
    assert plain > 0.99
    assert scaled == pytest.approx(none, abs=0.05)
    assert scaled < 0.4


def test_characters_beyond_the_training():
    losses = {}
    for kind in KINDS:
        trained = order_model.load(kind)
        losses[kind] = loss_by_position(trained.model, excerpt_ids(trained.vocabulary)[:10_240], 4 * LONGEST)
    near = {kind: float(each[32:63].mean()) for kind, each in losses.items()}
    far = {kind: float(np.nanmean(each[128:])) if np.isfinite(each[128:]).any() else math.nan for kind, each in losses.items()}
    assert far["sinusoidal"] > near["sinusoidal"] + 0.1
    assert math.isnan(far["learned"])
    assert np.isfinite(losses["learned"][: LONGEST - 1]).all()
    assert far["alibi"] < near["alibi"] + 0.1
    soon = {kind: float(losses[kind][64:80].mean()) for kind in ("sinusoidal", "rotary")}
    assert soon["sinusoidal"] > near["sinusoidal"] + 0.5
    assert soon["rotary"] < near["rotary"] + 0.15
    assert far["rotary"] > near["rotary"] + 0.5
    assert near["none"] > max(near[kind] for kind in KINDS[:3])


def test_a_changed_file_is_refused(tmp_path):
    for load, name in ((order_model.load, "rotary"), (reversing.load, "none")):
        stem = name if load is order_model.load else f"reverse-{name}"
        with pytest.raises(CheckpointError, match=stem):
            load(name, tmp_path)
        for end in ("json", "safetensors"):
            (tmp_path / f"{stem}.{end}").write_bytes((order_model.FOLDER / f"{stem}.{end}").read_bytes())
        with (tmp_path / f"{stem}.safetensors").open("ab") as file:
            file.write(b"x")
        with pytest.raises(CheckpointError, match="not those"):
            load(name, tmp_path)


def test_every_shipped_model_can_be_baked_again(tmp_path):
    assert set(NAMES) <= set(elsewhere())
    shipped = {path.stem for path in order_model.FOLDER.glob("*.json")}
    assert shipped == {name.removeprefix("positions-") for name in NAMES}
    bake_digits("none", dataclasses.replace(DIGIT_PLAN, steps=2), tmp_path)
    made = reversing.load("none", tmp_path)
    assert made.training["steps"] == 2
    assert made.losses["fixed"] > 2


def test_reversing_reads_what_it_says():
    model = ReversingModel("sinusoidal", generator=seeded(1))
    assert model(torch.tensor([[1, 2, 3]])).shape == (1, 3, 10)
    with pytest.raises(ValueError, match="variant"):
        ReversingModel("other", generator=seeded(1))


# ----------------------------------------------------------------------------------------------------- script and questions


@pytest.mark.parametrize(("kind", "where"), [("sinusoidal", "input"), ("alibi", "scores")])
def test_the_script_prints_the_pages_numbers(tmp_path, kind, where):
    trace = run_of(kind, where=where, delta=2).trace()
    tokens = ["a", '"', "\\", "的", " ", "a", "\n"]
    path = tmp_path / "positions.py"
    path.write_text(order_export.script(trace, tokens, kind=kind, delta=2, head=1, row=4), encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, encoding="utf-8")
    printed = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("   ") and ("'" in line or '"' in line)]
    expected = [f"{value:.6f}" for value in trace["A"][1, 4]]
    assert printed[-T:] == expected
    assert float(done.stdout.split()[-1]) < 1e-5
    if kind == "sinusoidal":
        assert "those 2 on" in done.stdout
    with pytest.raises(ValueError, match="tokens"):
        order_export.script(trace, ["a"], kind=kind)
    with pytest.raises(IndexError, match="head 9"):
        order_export.script(trace, tokens, kind=kind, head=9)


RIGHT = {
    "permuted": "along",
    "moved": "same",
    "values": "blind",
    "slowest": "outside",
    "beyond": "worse",
    "drowned": "less",
}


@pytest.mark.parametrize("name", RIGHT)
def test_questions_are_answered_by_the_run(name):
    question = next(q for q in POSITIONS if q.id == f"positions.{name}")
    answer = question.ask(run_of(step=2, key=5))
    assert isinstance(answer, Answer), answer
    assert answer.choice == RIGHT[name]
    assert len(answer.options) == 3


@pytest.mark.parametrize("kind", KINDS[1:4])
def test_other_kinds_answer_or_say_why_not(kind):
    for question in POSITIONS:
        answer = question.ask(run_of(kind))
        if question.id.endswith(".beyond"):
            assert isinstance(answer, Answer)
            assert answer.choice == {"learned": "refused", "rotary": "worse", "alibi": "same"}[kind]
    one = OrderRun(model=model_of(kind), ids=IDS[:1], where=places_of(kind)[0])
    for question in POSITIONS:
        question.ask(one)
