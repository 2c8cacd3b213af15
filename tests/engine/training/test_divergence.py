"""Runs that break: when they end, with which weights, and what is said of them (cases of kind OPT)."""

import math

import pytest
import torch
from torch import nn

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.training.batch import IGNORED, Batch, TextBatches
from engine.training.loop import Training, TrainingConfig, mean_loss, train
from tests.support import seeded

TEXT = torch.randint(1, 11, (500,), generator=seeded(1))
CELLS = ["rnn", "gru", "lstm"]


def model_of(cell="gru", seed=3):
    return RecurrentLanguageModel(cell, 11, 7, generator=seeded(seed))


def source():
    return TextBatches(ids=TEXT, batch_size=3, num_steps=5, sampling="sequential")


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one.keys() | other.keys())


class Breaking(nn.Module):
    """Scores from one weight; what is broken, and when, is chosen: a loss that is NaN, or a gradient that is infinite."""

    def __init__(self, breaks="", at=0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, -0.25]))
        self.breaks, self.at, self.calls, self.seen = breaks, at, 0, []

    def forward(self, X, state=None):
        self.calls += 1
        self.seen.append(self.w.detach().clone())
        scores = 3 * self.w.expand(*X.shape, 2)
        if self.calls >= self.at and self.breaks == "loss":
            scores = scores * float("nan")
        if self.calls == self.at and self.breaks == "gradient":
            scores = scores + (self.w - self.w.detach()).sqrt()  # 0 with an infinite slope
        return scores, state


def bits(batch_size=2):
    return lambda _generator: iter(
        lambda: Batch(X=torch.zeros(3, batch_size).long(), Y=torch.ones(3, batch_size).long(), carries=False), None
    )


def test_a_loss_that_is_no_number_ends_the_run_at_the_weights_that_still_had_one():
    model = Breaking("loss", at=5)
    events = list(train(model, bits(), TrainingConfig(steps=20, optimizer="sgd", learning_rate=0.1), seeded(1)))
    assert [event.step for event in events] == [1, 2, 3, 4, 5]
    assert [event.diverged for event in events] == ["", "", "", "", "loss"]
    assert math.isnan(events[-1].loss)
    assert torch.equal(model.w.detach(), model.seen[3])  # the weights of step 4, the last with a loss
    assert not torch.equal(model.seen[3], model.seen[4])


def test_opt_03_09_and_11_a_broken_run_does_not_skip_on_and_on_and_its_first_bad_step_is_named():
    """One bad step ends a run: with the weights that do not change the next one would be as bad."""
    for what in ("loss", "gradient"):
        model = Breaking(what, at=3)
        events = list(train(model, bits(), TrainingConfig(steps=2000, optimizer="sgd", learning_rate=0.1), seeded(1)))
        assert [bool(event.diverged) for event in events] == [False, False, True]
        assert events[-1].step == 3
        assert events[-1].diverged == what
        assert bool(model.w.isfinite().all())


def test_ppl_07_kind_a_minibatch_of_nothing_but_padding_is_no_divergence():
    padding = Batch(X=torch.zeros(3, 2).long(), Y=torch.full((3, 2), IGNORED), carries=False)
    run = Training(Breaking(), lambda _: iter([padding]), TrainingConfig(steps=2), seeded(1))
    with pytest.raises(ValueError, match="step 1 has no target that counts"):
        run.advance()


def test_bat_10_kind_a_run_ends_with_its_minibatches():
    batch = next(bits()(seeded(1)))
    events = list(train(Breaking(), lambda _: iter([batch, batch]), TrainingConfig(steps=20), seeded(1)))
    assert [event.step for event in events] == [1, 2]


def test_a_gradient_that_is_no_number_is_not_stepped_on():
    model = Breaking("gradient", at=3)
    events = list(train(model, bits(), TrainingConfig(steps=20, learning_rate=0.1), seeded(1)))
    assert [event.diverged for event in events] == ["", "", "gradient"]
    assert math.isfinite(events[-1].loss)
    assert not math.isfinite(events[-1].gradient_norm)
    assert torch.equal(model.w.detach(), model.seen[2])


def test_weights_broken_by_the_last_step_are_taken_back():
    model = Breaking()
    config = TrainingConfig(steps=1, optimizer="sgd", learning_rate=3e38, max_norm=math.inf)
    events = list(train(model, bits(), config, seeded(1)))
    assert [event.diverged for event in events] == ["weights"]
    assert torch.equal(model.w.detach(), model.seen[0])


@pytest.mark.parametrize("cell", CELLS)
def test_a_learning_rate_that_is_far_too_high_leaves_finite_weights(cell):
    model = model_of(cell)
    config = TrainingConfig(steps=50, optimizer="sgd", learning_rate=3e38, max_norm=math.inf)
    events = list(train(model, source(), config, seeded(5)))
    assert events[-1].diverged
    assert all(not event.diverged for event in events[:-1])
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
    assert math.isfinite(mean_loss(model, TEXT, rows=3))


def spoilt(model, name, value):
    """The model with one entry of a parameter set to a value."""
    with torch.no_grad():
        parameter = dict(model.named_parameters())[name]
        parameter[(-1,) * parameter.dim()] = value
    return model


@pytest.mark.parametrize(
    ("cell", "name", "tensor"),
    [
        ("rnn", "recurrent.W_hh", "W_hh"),
        ("gru", "recurrent.b_z", "b_z"),
        ("lstm", "recurrent.W_hf", "W_hf"),
        ("lstm", "recurrent.b_c", "b_c"),
        ("gru", "output.W_hq", "W_hq"),
    ],
)
def test_the_tensor_that_was_broken_first_is_named(cell, name, tensor):
    model = model_of(cell)
    run = Training(model, source(), TrainingConfig(steps=5), seeded(5))
    run.advance()
    spoilt(model, name, math.nan)
    event = run.advance()
    assert (event.diverged, event.tensor, event.step) == ("loss", tensor, 2)
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
    assert run.advance() is None


def test_scores_that_leave_the_numbers_while_all_weights_are_finite_are_named():
    model = model_of("gru")
    run = Training(model, source(), TrainingConfig(steps=5), seeded(5))
    with torch.no_grad():
        model.output.W_hq.fill_(3e38)
        model.output.b_q.fill_(3e38)
    event = run.advance()
    assert (event.diverged, event.tensor) == ("loss", "Y")


class Steep(nn.Module):
    """Scores whose slope is infinite at the beginning."""

    def __init__(self):
        super().__init__()
        self.flat, self.steep = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

    def forward(self, X, state=None):
        return (self.flat + self.steep.sqrt()).expand(*X.shape, 2), state


def test_a_gradient_that_is_no_number_is_named():
    event = next(train(Steep(), bits(), TrainingConfig(steps=5), seeded(1)))
    assert (event.diverged, event.tensor) == ("gradient", "steep")


def test_opt_10_a_bump_is_no_end():
    """A loss five times the first one is a bump; only what is no number ends a run."""
    model = model_of("gru")
    run = Training(model, source(), TrainingConfig(steps=6, learning_rate=1e-6), seeded(5))
    first = run.advance()
    with torch.no_grad():
        model.output.W_hq.mul_(400)
    events = list(iter(run.advance, None))
    assert max(event.loss for event in events) > 5 * first.loss
    assert [event.diverged for event in events] == [""] * 5


def test_opt_08_a_rate_of_0_changes_no_weight():
    model = model_of()
    before = weights(model)
    list(train(model, source(), TrainingConfig(steps=3, learning_rate=0.0), seeded(5)))
    assert same(before, weights(model))
