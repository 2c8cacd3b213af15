"""The benchmarks compare like with like, and the command line finds them."""

import pytest
import torch

from tests.bench import __main__ as command
from tests.bench import training, transformer
from tests.support import seeded


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("hidden", [13, 300])
def test_all_sides_of_the_training_benchmark_do_the_same_mathematics(cell, hidden):
    """Ours and the textbook's: loss by loss over a few steps, clipping at work.

    torch's layers have a second bias that learns as well, so only their first loss is the same; its GRU is another one.
    """
    weights = {name: value * (30 if hidden == 13 else 4) for name, value in training.fresh(cell, hidden, seeded(1)).items()}
    tokens = torch.randint(training.VOCABULARY, (8, 5), generator=seeded(2))
    losses = {}
    for name, make in training.SIDES.items():
        step = make(cell, weights)
        losses[name] = [step(tokens[:-1], tokens[1:]) for _ in range(4)]
    assert losses["ours"] == pytest.approx(losses["textbook"], rel=1e-4)
    assert losses["ours"][-1] < losses["ours"][0]
    assert losses["torch.nn"][-1] < losses["torch.nn"][0]
    if cell != "gru":
        assert losses["ours"][0] == pytest.approx(losses["torch.nn"][0], rel=1e-5)


def test_every_side_has_its_turn_in_every_round():
    times = training.rounds("rnn", 16, 4, seconds=0)
    assert times.keys() == training.SIDES.keys()
    assert all(len(values) == 4 and min(values) > 0 for values in times.values())


def test_the_command_line_finds_its_benchmarks_and_tells_what_was_missed(monkeypatch, capsys):
    assert "training" in command.names()
    assert command.main(["nothing"]) == 2
    assert "no benchmark called nothing; there are " in capsys.readouterr().out
    for lines, code in ((["x2.00 (target 1.0: reached)"], 0), (["x0.50 (target 1.0: MISSED)"], 1)):
        monkeypatch.setattr(training, "run", lambda lines=lines: lines)
        assert command.main(["training"]) == code
        assert lines[0] in capsys.readouterr().out


def test_both_sides_of_the_transformer_benchmark_do_the_same_mathematics():
    """torch's attention has biases that learn as well, so the losses stay near each other and the first is the same."""
    tokens = torch.randint(transformer.VOCABULARY, (transformer.STEPS + 1, 3), generator=seeded(2))
    losses = {}
    for name, make in transformer.SIDES.items():
        step = make(transformer.model_of(16))
        losses[name] = [step(tokens[:-1], tokens[1:]) for _ in range(4)]
    assert losses["ours"][0] == pytest.approx(losses["torch.nn"][0], rel=1e-5)
    assert losses["ours"] == pytest.approx(losses["torch.nn"], rel=1e-2)
    assert losses["ours"][-1] < losses["ours"][0]
    assert transformer.rounds(8, 2, seconds=0).keys() == transformer.SIDES.keys()
