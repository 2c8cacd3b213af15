"""The recall task, and what it shows: an LSTM remembers for twenty steps only if its forget gates start open."""

import pytest
import torch

from engine.data import recall
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.training import bake, checkpoints
from engine.training.batch import IGNORED
from engine.training.loop import TrainingConfig, train
from tests.support import seeded


def test_lines_are_a_symbol_noise_and_the_cue():
    X, answers = recall.lines(500, 20, seeded(1))
    vocabulary = recall.vocabulary()
    assert X.shape == (22, 500)
    assert answers.shape == (500,)
    for number in range(500):
        first, *noise, cue = vocabulary.to_tokens(X[:, number])
        assert first in recall.SYMBOLS
        assert set(noise) <= {"<unk>", *recall.NOISE}
        assert cue == recall.CUE
        assert vocabulary.to_tokens(answers)[number] == first
    assert set(vocabulary.to_tokens(answers)) == set(recall.SYMBOLS)
    assert set(X[1:-1].unique().tolist()) == {0, *range(9, 17)}


def test_only_the_answer_counts():
    batch = next(recall.RecallBatches(batch_size=3, noise=5)(seeded(2)))
    assert batch.X.shape == batch.Y.shape == (7, 3)
    assert (batch.Y[:-1] == IGNORED).all()
    assert torch.equal(batch.Y[-1], batch.X[0])
    assert not batch.carries


def test_accuracy_counts_right_answers():
    class Parrot(torch.nn.Module):
        """Answers with the first symbol, or always with the same one."""

        def __init__(self, knows: bool):
            super().__init__()
            self.knows = knows

        def forward(self, X, state=None):
            answer = X[0] if self.knows else torch.ones_like(X[0])
            return torch.nn.functional.one_hot(answer, 18).double().expand(len(X), -1, -1), state

    assert recall.accuracy(Parrot(knows=True), 4, seeded(3)) == 1.0
    assert 0.09 < recall.accuracy(Parrot(knows=False), 4, seeded(3), count=10_000) < 0.16


@pytest.mark.parametrize(("name", "low", "high"), [("recall-bias-0", 0.05, 0.2), ("recall-bias-2", 0.95, 1.0)])
def test_the_shipped_pair_shows_what_the_forget_bias_decides(name, low, high):
    checkpoint = checkpoints.load(name)
    assert checkpoint.config["forget_bias"] == float(name[-1])
    accuracy = bake.recall_accuracy(checkpoint.model)
    assert accuracy == checkpoint.losses["accuracy"]
    assert low <= accuracy <= high
    # A learner's own noise, of characters the model has never seen.
    ids = torch.tensor([checkpoint.vocabulary[[symbol, *("x1 é漢" * 4), "?"]] for symbol in recall.SYMBOLS]).T
    right = (checkpoint.model(ids)[0][-1].argmax(-1) == ids[0]).double().mean()
    assert (right >= 0.75) == (name == "recall-bias-2")


def test_recall_is_learnt_in_a_few_steps_when_there_is_little_noise():
    generator = seeded(4)
    model = RecurrentLanguageModel("lstm", len(recall.vocabulary()), 32, generator=generator, forget_bias=2.0)
    source = recall.RecallBatches(batch_size=32, noise=3)
    *_, last = train(model, source, TrainingConfig(steps=150, learning_rate=1e-2), generator)
    assert last.tokens == 150 * 32
    assert recall.accuracy(model, 3, seeded(5)) > 0.95
