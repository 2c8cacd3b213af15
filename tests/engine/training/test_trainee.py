"""Every way to train a model gives the same loss, gradients and weights; each model gets the way that is its fastest."""

import pytest
import torch

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.training.batch import IGNORED, Batch, TextBatches
from engine.training.loop import TrainingConfig, train
from engine.training.trainee import Parts, Whole, mean_loss_of, trainee
from tests.support import seeded

V, H, T, B = 11, 7, 5, 3


def model_of(cell="lstm", dtype=torch.float32, **shape):
    return RecurrentLanguageModel(cell, V, H, generator=seeded(3), **shape).to(dtype)


def batch_of(seed=1):
    tokens = torch.randint(V, (T + 1, B), generator=seeded(seed))
    Y = tokens[1:].clone()
    Y[2, 1] = IGNORED
    return Batch(X=tokens[:-1], Y=Y, carries=False)


@pytest.mark.parametrize(
    ("cell", "shape", "kind"),
    [
        ("rnn", {}, Parts),
        ("gru", {"num_layers": 2, "bidirectional": True}, Parts),
        ("lstm", {}, Whole),
        ("lstm", {"num_layers": 2}, Parts),
        ("lstm", {"bidirectional": True}, Parts),
    ],
)
@pytest.mark.parametrize("begin", ["zeros", "state"])
def test_loss_state_and_gradients_are_those_of_scores_and_cross_entropy(cell, shape, kind, begin):
    def loss_of(way, batch, state):
        scores, state = way.scores(batch.X, state)
        return mean_loss_of(scores, batch), state

    plain, own = Parts(model_of(cell, **shape)), trainee(model_of(cell, **shape))
    assert type(own) is kind
    state = None if begin == "zeros" else loss_of(plain, batch_of(2), None)[1]
    state = tuple(part.detach() for part in state) if isinstance(state, tuple) else state if state is None else state.detach()
    (loss, end), (own_loss, own_end) = loss_of(plain, batch_of(), state), loss_of(own, batch_of(), state)
    torch.testing.assert_close(own_loss, loss, rtol=1e-6, atol=1e-6)
    for one, other in zip(*((each if isinstance(each, tuple) else (each,)) for each in (own_end, end)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    norms = [
        torch.cat([gradient.flatten() for gradient in torch.autograd.grad(value, way.parameters)]).norm()
        for value, way in ((loss, plain), (own_loss, own))
    ]
    torch.testing.assert_close(norms[0], norms[1], rtol=1e-5, atol=1e-6)


def test_a_model_trained_whole_ends_with_the_weights_of_one_trained_in_parts(monkeypatch):
    source = TextBatches(ids=torch.randint(1, V, (500,), generator=seeded(1)), batch_size=B, num_steps=T, sampling="sequential")
    config = TrainingConfig(steps=20, learning_rate=0.01, schedule="cosine", warmup=3, max_norm=0.5)
    models, norms = [model_of(), model_of()], []
    for model, way in zip(models, (Whole, Parts), strict=True):
        monkeypatch.setattr("engine.training.loop.trainee", way)
        norms.append([event.gradient_norm for event in train(model, source, config, seeded(5))])
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)
    for (name, one), other in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


def test_a_run_can_follow_another_on_the_same_model():
    source = TextBatches(ids=torch.randint(1, V, (500,), generator=seeded(1)), batch_size=B, num_steps=T)
    once, twice = model_of(), model_of()
    for count in (4, 3):
        list(train(twice, source, TrainingConfig(steps=count, optimizer="sgd", learning_rate=0.1), seeded(count)))
        list(train(once, source, TrainingConfig(steps=count, optimizer="sgd", learning_rate=0.1), seeded(count)))
        assert all(torch.equal(a, b) for a, b in zip(once.parameters(), twice.parameters(), strict=True))
    assert not torch.equal(once.recurrent.W_hi, model_of().recurrent.W_hi)


def test_what_is_frozen_stays_as_it_is():
    model = model_of()
    model.recurrent.W_xi.requires_grad_(False)
    way = trainee(model)
    assert type(way) is Parts
    assert len(way.parameters) == len(list(model.parameters())) - 1
    before = model.recurrent.W_xi.clone()
    source = TextBatches(ids=torch.randint(1, V, (500,), generator=seeded(1)), batch_size=B, num_steps=T)
    list(train(model, source, TrainingConfig(steps=3), seeded(2)))
    assert torch.equal(model.recurrent.W_xi, before)


@pytest.mark.parametrize(("dtype", "hidden"), [(torch.float64, 7), (torch.float32, 300)])
def test_what_torchs_kernel_is_not_faster_for_is_trained_in_parts(dtype, hidden):
    model = RecurrentLanguageModel("lstm", V, hidden, generator=seeded(3)).to(dtype)
    assert type(trainee(model)) is Parts
    assert type(trainee(torch.nn.Linear(2, 3))) is Parts


def test_a_token_outside_the_vocabulary_is_refused():
    for cell in ("gru", "lstm"):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            trainee(model_of(cell)).scores(torch.full((T, B), V), None)
