"""How a text is read: perplexity by hand, what another order does, and models that go on by themselves."""

import math

import numpy as np
import pytest
import torch

from engine.recurrent.generation import go_on
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.reading import last_prediction, next_losses, order_effects, text_perplexity
from engine.text.order import shuffled
from tests.support import seeded, uniform

V, H, T = 5, 7, 13
IDS = torch.randint(1, V, (T, 1), generator=seeded(8))


def model_of(cell="rnn", scale=1.0, **switches):
    model = RecurrentLanguageModel(cell, V, H, generator=seeded(3), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(scale * uniform(*parameter.shape, seed=300 + number))
    return model


def test_perplexity_is_exp_of_the_mean_loss_of_what_follows():
    trace = model_of().trace(IDS)
    by_hand = [-math.log(trace["P"][t, 0, int(IDS[t + 1, 0])]) for t in range(T - 1)]
    np.testing.assert_allclose(next_losses(trace, IDS), by_hand, rtol=0, atol=1e-10)
    assert text_perplexity(trace, IDS) == pytest.approx(math.exp(sum(by_hand) / len(by_hand)), abs=1e-10)
    assert text_perplexity(model_of().trace(IDS[:1]), IDS[:1]) is None
    assert text_perplexity(model_of(scale=0.0).trace(IDS), IDS) == pytest.approx(V, abs=1e-10), "equal chances"


def test_the_prediction_after_the_last_step():
    trace = model_of().trace(IDS)
    found = last_prediction(trace, 3)
    row = trace["P"][-1, 0]
    assert list(found.tokens) == sorted(range(V), key=lambda i: -row[i])[:3]
    np.testing.assert_array_equal(found.shares, row[list(found.tokens)])


def test_another_order_of_the_past_against_single_runs():
    model = model_of()
    found = order_effects(model, IDS, (1, 4, T - 1, T, 40), seeded(2), orders=3)
    assert [each.keep for each in found] == [1, 4], "one token alone has no other order"
    before, draw = model.trace(IDS)["P"][-1, 0], seeded(2)
    for each in found:
        past, distances = T - each.keep, []
        for _ in range(3):
            ids = torch.cat([IDS[torch.randperm(past, generator=draw)], IDS[past:]])
            distances.append(np.abs(model.trace(ids)["P"][-1, 0] - before).sum() / 2)
        assert each.distance == pytest.approx(np.mean(distances), abs=1e-10)


def test_a_model_without_a_past_does_not_notice_the_order():
    model = model_of()
    with torch.no_grad():
        model.recurrent.get_parameter("W_hh").zero_()
    assert [each.distance for each in order_effects(model, IDS, (1, 3), seeded(0))] == pytest.approx([0, 0], abs=1e-12)


def test_shuffled_keeps_the_end_and_every_token():
    tokens = list("In the beginning God")
    found = shuffled(tokens, 3, keep=4)
    assert list(found[-4:]) == tokens[-4:]
    assert sorted(found) == sorted(tokens)
    assert found == shuffled(tokens, 3, keep=4)
    assert found != shuffled(tokens, 4, keep=4)
    assert shuffled("ab", 1, keep=9) == ("a", "b")
    assert shuffled("", 1) == ()


@pytest.mark.parametrize("bidirectional", [False, True])
def test_going_on_is_the_likeliest_token_of_a_whole_run_each_time(bidirectional):
    model = model_of("gru", num_layers=2, bidirectional=bidirectional)
    text = IDS[:, 0].tolist()
    written = go_on(model, text, 6)
    for token in written:
        scores = model.trace(torch.tensor(text)[:, None])["Y"][-1, 0]
        assert token == 1 + int(scores[1:].argmax()), "<unk> is never written"
        text.append(token)
