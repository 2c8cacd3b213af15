"""What a state depends on: influence by layer against autograd, and the bidirectional leak."""

import numpy as np
import pytest
import torch

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.reach import LayerInfluence, layer_influence, leak
from tests.engine.recurrent.models import ATOL, seeded
from tests.engine.recurrent.test_truncation import V, language_model, text


@pytest.mark.parametrize(
    ("cell", "switches"),
    [("rnn", {"num_layers": 3}), ("lstm", {"num_layers": 2}), ("gru", {"num_layers": 2, "bidirectional": True})],
)
def test_the_influence_of_every_token_is_the_full_jacobian(cell, switches):
    model, ids = language_model(cell, **switches), text()
    found = layer_influence(model, ids, 7, batch=1)
    assert found.scopes == tuple(model.recurrent.scopes)
    for row, scope in zip(found.norms, found.scopes, strict=True):

        def state(X, scope=scope):
            (chosen,) = [p for p in model.recurrent.unroll(X) if p.scope == scope]
            return chosen.results[7]["H"][0]

        jacobian = torch.autograd.functional.jacobian(state, model.one_hot(ids)[:, 1:2])
        np.testing.assert_allclose(row, jacobian.square().sum((0, 2, 3)).sqrt(), rtol=0, atol=ATOL)
    np.testing.assert_allclose(found.kept[:, 7], 1)


def test_influence_before_and_after_the_step():
    model, ids = language_model("lstm", num_layers=2), text()
    found = layer_influence(model, ids, 4)
    assert np.all(found.norms[:, 5:] == 0)
    assert np.all(found.norms[:, :5] > 0)
    both = layer_influence(language_model("rnn", bidirectional=True), ids, 4)
    forward, backward = both.norms
    assert np.all(forward[5:] == 0)
    assert np.all(backward[:4] == 0)
    assert np.all(backward[4:] > 0)
    assert len(layer_influence(model, ids).norms[0]) == len(ids)
    with pytest.raises(IndexError, match="step 12"):
        layer_influence(model, ids, 12)


def test_the_half_life_of_an_exact_decay():
    distance = np.abs(np.arange(21) - 20)
    rows = np.stack([0.5 ** (distance / 3.0), 0.9**distance, np.ones(21)])
    found = LayerInfluence(step=20, scopes=("layers.0.forward.", "layers.1.forward.", "layers.2.forward."), norms=rows)
    assert found.half_life("layers.0.forward.") == pytest.approx(3)
    assert found.half_life("layers.1.forward.") == pytest.approx(np.log(2) / -np.log(0.9))
    assert found.half_life("layers.2.forward.") is None
    ahead = LayerInfluence(step=0, scopes=("layers.0.backward.",), norms=0.5 ** np.arange(9.0)[None])
    assert ahead.half_life("layers.0.backward.") == pytest.approx(1)


@pytest.mark.parametrize(("cell", "layers"), [("rnn", 1), ("lstm", 2), ("gru", 2)])
def test_the_backward_cell_has_read_the_answer_and_the_forward_cell_has_not(cell, layers):
    model, ids = language_model(cell, num_layers=layers, bidirectional=True), text(batch=1)
    found = leak(model, ids)
    assert np.all(found.moved["backward"] > 1e-6)
    if layers == 1:
        assert np.all(found.moved["forward"] == 0)
    for t in (0, 5, 10):
        prefix, whole = (model(given)[0] for given in (ids[: t + 1], ids))
        for scores, expected in ((prefix[-1, 0], found.blind[t]), (whole[t, 0], found.seen[t])):
            loss = torch.nn.functional.cross_entropy(scores, ids[t + 1, 0])
            assert expected == pytest.approx(loss.item(), abs=ATOL)


def test_the_change_of_a_state_by_hand():
    model, ids = language_model("rnn", bidirectional=True), text(batch=1)
    found = leak(model, ids)
    other = []
    for shift in (1, 2, 3, 4):
        changed = ids.clone()
        changed[6] = (changed[6] + shift) % V
        away = model.recurrent(changed)[0][5, 0] - model.recurrent(ids)[0][5, 0]
        assert torch.all(away[:7] == 0)
        other.append(away[7:].norm().item())
    assert found.moved["backward"][5] == pytest.approx(np.mean(other), abs=ATOL)


def test_a_forward_model_knows_no_more_than_it_is_told():
    found = leak(language_model("gru", num_layers=2), text(batch=1)[:, 0])
    assert set(found.moved) == {"forward"}
    assert np.all(found.moved["forward"] == 0)
    np.testing.assert_allclose(found.seen, found.blind, atol=ATOL)
    with pytest.raises(ValueError, match="at least 2 tokens"):
        leak(language_model("rnn"), torch.tensor([1]))


def test_on_dice_a_bidirectional_model_predicts_what_nobody_can():
    """Trained on random tokens it reads the answers off the page: perplexity near 1; without them it is worse than guessing."""
    sides, generator = 5, seeded(4)
    model = RecurrentLanguageModel("rnn", sides, 12, bidirectional=True, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(150):
        ids = torch.randint(0, sides, (13, 16), generator=generator)
        scores, _ = model(ids)
        loss = torch.nn.functional.cross_entropy(scores[:-1].flatten(0, 1), ids[1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = leak(model, torch.randint(0, sides, (61,), generator=generator))
    assert found.seen_perplexity < 1.5
    assert found.blind_perplexity > sides
