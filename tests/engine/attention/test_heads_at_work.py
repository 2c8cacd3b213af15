"""What each head does: measured against sums and runs written out here."""

import dataclasses
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.attention import character_model, export
from engine.attention.character_model import CharacterModel, held_out_loss, loss_of, train, untrained
from engine.attention.head_questions import HEADS, later, parameters, sharing, strongest, window
from engine.attention.heads_at_work import (
    Run,
    convolution_as_heads,
    likeness,
    map_rank,
    mean_weights,
    output_rank,
    with_shared_blocks,
    worths,
)
from engine.notes import Note
from engine.recurrent.asking import Answer
from engine.text.vocabulary import Vocabulary
from engine.training.checkpoints import CheckpointError
from tests.support import seeded

V, T, D, N = 11, 7, 12, 3


def model_of(heads: int = N, seed: int = 2) -> CharacterModel:
    return CharacterModel(V, heads, D, generator=seeded(seed)).eval().requires_grad_(False)


def run_of(heads: int = N, **changes: Any) -> Run:
    ids = torch.tensor([3, 1, 4, 1, 5, 9, 2])
    return dataclasses.replace(Run(model=model_of(heads), ids=ids), **changes)


def test_the_model_is_its_equations():
    model, ids = model_of(), torch.tensor([3, 1, 4, 1])
    X = model.E[ids] + torch.tensor(
        [
            [math.sin(i / 10000 ** (j / D)) if j % 2 == 0 else math.cos(i / 10000 ** ((j - 1) / D)) for j in range(D)]
            for i in range(4)
        ]
    )
    assert torch.allclose(model.vectors(ids), X, atol=1e-6)
    O = model.attention(X, mask=torch.ones(4, 4, dtype=torch.bool).tril())
    assert torch.allclose(model(ids), (X + O) @ model.W_y + model.b_y, atol=1e-6)
    scores = model(ids)
    by_hand = -functional.log_softmax(scores[:-1], dim=-1)[torch.arange(3), ids[1:]].mean()
    assert float(loss_of(scores, ids)) == pytest.approx(float(by_hand), abs=1e-6)


def test_it_learns_and_learns_the_same_again():
    ids = torch.arange(400) % 5
    losses = []
    for _ in range(2):
        model = CharacterModel(V, 2, 8, generator=seeded(1))
        losses.append(list(train(model, ids, steps=60, batch=4, rate=5e-2, generator=seeded(3))))
    assert losses[0] == losses[1]
    assert losses[0][-1] < 0.5 * losses[0][0]
    assert held_out_loss(model, ids) < 0.5 * losses[0][0]


@pytest.mark.parametrize("heads", character_model.HEADS)
def test_the_shipped_models_know_their_text(heads):
    trained = character_model.load(heads)
    text = "In the beginning God created the heaven and the earth."
    ids = torch.tensor(trained.vocabulary[list(text)])
    uniform = math.log(len(trained.vocabulary))
    assert float(loss_of(trained.model(ids), ids)) < 0.6 * uniform
    assert trained.losses["held_out"] < 2.0
    assert trained.model.attention.heads == heads
    counts = {sum(p.numel() for p in character_model.load(n).model.parameters()) for n in character_model.HEADS}
    assert len(counts) == 1


def test_a_checkpoint_that_is_missing_or_changed_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="heads-4"):
        character_model.load(4, tmp_path)
    for name in ("heads-4.json", "heads-4.safetensors"):
        (tmp_path / name).write_bytes((character_model.FOLDER / name).read_bytes())
    with (tmp_path / "heads-4.safetensors").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match="not those"):
        character_model.load(4, tmp_path)


def test_untrained_models_follow_their_seed():
    vocabulary = Vocabulary("abcabc")
    one, same, other = (untrained(2, seed, vocabulary).attention.W_q for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_worth_of_each_head_by_hand():
    run = run_of()
    trace = run.trace(())
    lengths = [np.linalg.norm(trace["O_n"][head], axis=-1).mean() for head in range(N)]
    found = worths(run)
    assert [worth.head for worth in found] == list(range(N))
    for head, worth in enumerate(found):
        assert worth.share == pytest.approx(lengths[head] / sum(lengths), abs=1e-6)
        change = np.linalg.norm(trace["O_n"][head]) / np.linalg.norm(trace["O"])
        assert worth.change == pytest.approx(change, abs=1e-6)
        without = torch.tensor(trace["O"] - trace["O_n"][head])
        scores = run.model.scores(torch.tensor(trace["X"]), without)
        assert worth.loss == pytest.approx(float(loss_of(scores, run.ids)), abs=1e-5)
        back = sum(trace["A"][head, t, s] * (t - s) for t in range(T) for s in range(t + 1)) / T
        assert worth.back == pytest.approx(back, abs=1e-6)
        assert 1 / T <= worth.sharpness <= 1
    assert sum(worth.share for worth in found) == pytest.approx(1)


def test_a_single_character_has_no_loss_and_no_fault():
    run = run_of(ids=torch.tensor([3]))
    assert math.isnan(run.loss(run.trace()))
    assert all(math.isnan(worth.loss) for worth in worths(run))


def test_likeness_and_mean_by_hand():
    trace = run_of().trace(())
    cosines = likeness(trace)
    a, b = trace["A"][0].ravel(), trace["A"][2].ravel()
    assert cosines[0, 2] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-6)
    assert np.allclose(np.diag(cosines), 1)
    assert np.allclose(mean_weights(trace), (trace["A"][0] + trace["A"][1] + trace["A"][2]) / 3, atol=1e-7)


def test_shared_blocks_make_all_maps_one():
    run = run_of()
    shared = with_shared_blocks(run.attention)
    trace = shared.trace(run.model.vectors(run.ids), mask=run.mask)
    assert np.array_equal(trace["A"][0], trace["A"][1])
    assert np.array_equal(trace["A"][0], run.trace(())["A"][0])
    assert output_rank(trace) <= D // N < output_rank(run.trace(()))
    assert not torch.equal(run.attention.W_q[:, :4], run.attention.W_q[:, 4:8])


def test_a_head_reads_through_a_window_as_wide_as_itself():
    run = run_of()
    assert [map_rank(run.attention, head) for head in range(N)] == [D // N] * N


def test_a_convolution_is_attention_with_fixed_maps():
    found = convolution_as_heads(torch.randn(9, 5, generator=seeded(1)), 3, seeded(2))
    assert found.largest < 1e-12
    assert np.array_equal(found.weights[1], np.eye(9, k=-1))
    assert convolution_as_heads(torch.randn(2, 5, generator=seeded(1)), 3, seeded(2)).largest < 1e-12


def test_every_question_is_answered_for_every_number_of_heads():
    vocabulary = Vocabulary("abcdefghij" * 2)
    for heads in (1, 2, 3, 4, 8):
        model = CharacterModel(len(vocabulary), heads, 24, generator=seeded(heads)).requires_grad_(False)
        for ids in ([1], [1, 2, 3, 1, 2], list(range(1, 11))):
            run = Run(model=model, ids=torch.tensor(ids), step=len(ids) - 1, head=heads - 1)
            for question in HEADS:
                answer = question.ask(run)
                assert isinstance(answer, Answer | Note)
                if isinstance(answer, Answer):
                    assert answer.choice in answer.options
                    assert len(answer.options) >= 3


def test_answers_are_what_the_run_says():
    run = run_of(causal=True)
    assert isinstance(answer := later(run), Answer)
    assert answer.choice == "last"
    assert isinstance(answer := later(dataclasses.replace(run, causal=False)), Answer)
    assert answer.choice == "all"
    assert isinstance(answer := parameters(run), Answer)
    assert answer.values["before"] == answer.values["after"] == 4 * D * D
    assert isinstance(answer := window(run), Answer)
    assert answer.values["rank"] == D // N
    assert isinstance(answer := sharing(run), Answer)
    assert answer.choice == "identical"
    assert isinstance(answer := strongest(run), Answer)
    assert answer.choice == f"head:{max(worths(run), key=lambda worth: worth.change).head}"


def test_the_script_prints_the_traces_numbers_and_agrees_with_torch(tmp_path):
    run = run_of()
    tokens = ["a", "'", "\n", "é", "{x}", "$y", '"""']
    for removed in ((), (1,)):
        trace = run.trace(removed)
        path = tmp_path / "multihead.py"
        path.write_text(export.script(trace, tokens, head=2, query=5), encoding="utf-8")
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True, timeout=120)
        lines = done.stdout.splitlines()
        printed = [float(line.split()[-1]) for line in lines[1 : 1 + T]]
        assert printed == pytest.approx(trace["A"][2, 5].tolist(), abs=1e-6)
        output = next(line for line in lines if line.startswith("output  ")).split()[1:]
        assert [float(x) for x in output] == pytest.approx(trace["O"][5, :8].tolist(), abs=2e-6)
        if not removed:
            assert all(float(line.split()[-1]) < 1e-5 for line in lines[-2:])


def test_a_script_for_other_tokens_or_places_is_refused():
    trace = run_of().trace()
    with pytest.raises(ValueError, match="2 tokens"):
        export.script(trace, ["a", "b"])
    with pytest.raises(IndexError, match="head 3"):
        export.script(trace, ["a"] * T, head=3)
