"""The map of who receives gradient from whom: against autograd, finite differences and sums; truncations as weights on it."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from engine.equation import Circuit, add_to, equation, set_to
from engine.recurrent.adjoint import weight_terms
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.truncation import (
    chunks,
    cut_at,
    full,
    gradient_flow,
    randomized,
    shares,
    window,
)
from tests.engine.recurrent.models import ATOL, seeded, uniform

V, HIDDEN, STEPS, BATCH = 5, 7, 11, 2
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("rnn", {}),
    ("rnn", {"activation": "relu"}),
    ("lstm", {}),
    ("gru", {"reset": "before"}),
    ("gru", {"reset": "after", "update": "replaces"}),
    ("lstm", {"num_layers": 2}),
    ("gru", {"num_layers": 2, "bidirectional": True}),
]
NAMES = [" ".join([cell, *map(str, switches.values())]) for cell, switches in MODELS]


def language_model(cell, **switches):
    model = RecurrentLanguageModel(cell, V, HIDDEN, generator=seeded(1), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=50 + number) * 0.7)
    return model


def text(steps=STEPS, batch=BATCH, seed=3):
    return torch.randint(0, V, (steps + 1, batch), generator=seeded(seed))


def mean_loss(model, ids, state=None):
    scores, _ = model(ids[:-1], state)
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), ids[1:].flatten())


@pytest.mark.parametrize(("cell", "switches"), MODELS, ids=NAMES)
def test_the_contributions_of_all_steps_sum_to_autograds_gradient_of_every_weight(cell, switches):
    model, ids = language_model(cell, **switches), text()
    mean_loss(model, ids).backward()
    flow = gradient_flow(model, ids)
    assert set(flow.weights) == {name for name, _ in model.recurrent.named_parameters()}
    for name, parameter in model.recurrent.named_parameters():
        np.testing.assert_allclose(flow.gradient(name), parameter.grad, rtol=0, atol=ATOL, err_msg=name)
        assert flow.contributions(name).shape == (STEPS, *parameter.shape)
        np.testing.assert_allclose(flow.contributions(name).sum(0), parameter.grad, rtol=0, atol=ATOL, err_msg=name)
    assert flow.losses.mean() == pytest.approx(mean_loss(model, ids).item(), abs=ATOL)


@pytest.mark.parametrize(("cell", "switches"), MODELS, ids=NAMES)
def test_every_entry_of_the_map_is_one_backward_pass(cell, switches):
    model, ids = language_model(cell, **switches), text()
    flow = gradient_flow(model, ids)
    passes, outputs, _ = model.unroll(ids[:-1])
    for k in (0, 4, STEPS - 1):
        loss = torch.nn.functional.cross_entropy(outputs[k]["Y"], ids[k + 1])
        for p, name in itertools.product(passes, model.recurrent.circuit.carry):
            states = [step[name] for step in p.results]
            grads = torch.autograd.grad(loss, states, retain_graph=True, allow_unused=True, materialize_grads=True)
            expected = torch.stack(grads)
            np.testing.assert_allclose(flow.gradients[p.scope + name][k], expected, rtol=0, atol=ATOL, err_msg=p.scope + name)
            np.testing.assert_allclose(flow.norms[p.scope + name][k], expected.norm(dim=(1, 2)), rtol=0, atol=ATOL)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_map_equals_finite_differences(cell):
    model, ids, step = language_model(cell), text(steps=5, batch=1), 1e-5
    flow = gradient_flow(model, ids)

    def losses(change):
        P = model.trace(ids[:-1], do=change)["P"][:, 0]
        return -np.log(P[np.arange(5), ids[1:, 0]])

    for name, t, unit in itertools.product(model.recurrent.circuit.carry, (0, 2, 4), (0, 6)):
        up, down = (losses({name: add_to(sign * step, step=t, unit=unit)}) for sign in (1, -1))
        np.testing.assert_allclose(flow.gradients[name][:, t, 0, unit], (up - down) / (2 * step), rtol=0, atol=1e-9)


def test_a_state_and_an_intervention_are_taken_into_account():
    model, ids = language_model("lstm"), text()
    state = (uniform(1, BATCH, HIDDEN, seed=8), uniform(1, BATCH, HIDDEN, seed=9))
    mean_loss(model, ids, state).backward()
    flow = gradient_flow(model, ids, state=state)
    np.testing.assert_allclose(flow.gradient("W_hf"), model.recurrent.W_hf.grad, rtol=0, atol=ATOL)
    shut = gradient_flow(model, ids, do={"F": set_to(0.0, step=6)})
    _, outputs, _ = model.unroll(ids[:-1], do={"F": set_to(0.0, step=6)})
    loss = sum(torch.nn.functional.cross_entropy(out["Y"], ids[t + 1]) for t, out in enumerate(outputs)) / STEPS
    (expected,) = torch.autograd.grad(loss, model.recurrent.W_hf)
    np.testing.assert_allclose(shut.gradient("W_hf"), expected, rtol=0, atol=ATOL)
    with pytest.raises(KeyError, match="not a result"):
        gradient_flow(model, ids, do={"Y": set_to(0.0)})


def test_no_loss_reaches_a_later_state_except_in_a_bidirectional_model():
    flow = gradient_flow(language_model("gru"), text())
    assert np.all(np.triu(flow.norms["H"], 1) == 0)
    assert np.all(np.diag(flow.norms["H"]) > 0)
    both = gradient_flow(language_model("gru", bidirectional=True), text())
    assert np.all(np.triu(both.norms["layers.0.forward.H"], 1) == 0)
    assert np.all(np.tril(both.norms["layers.0.backward.H"], -1) == 0)
    assert np.all(np.triu(both.norms["layers.0.backward.H"])[np.triu_indices(STEPS)] > 0)
    with pytest.raises(ValueError, match="both ends"):
        both.under(window(3))


def test_one_text_may_come_as_one_row_or_with_its_own_targets():
    model, ids = language_model("rnn"), text(batch=1)
    flow = gradient_flow(model, ids)
    for other in (gradient_flow(model, ids[:, 0]), gradient_flow(model, ids[:-1], targets=ids[1:])):
        np.testing.assert_array_equal(other.gradients["H"], flow.gradients["H"])
    with pytest.raises(ValueError, match="at least 2"):
        gradient_flow(model, ids[:1])
    assert gradient_flow(model, ids[:2]).norms["H"].shape == (1, 1)


def test_what_is_recorded_is_read_only_and_the_model_is_left_alone():
    model = language_model("rnn")
    flow = gradient_flow(model, text())
    with pytest.raises(ValueError, match="read-only"):
        flow.gradients["H"][0, 0, 0, 0] = 1
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


# ------------------------------------------------------------------------------------------------------ truncations


def test_shares_by_hand():
    assert shares(full(), 3)[0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert shares(window(2), 4)[0].tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert shares(chunks(2), 5)[0].tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert shares(cut_at(1), 3)[0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert torch.equal(shares(cut_at(2, 4), 5), shares(chunks(2), 5))
    assert torch.equal(shares(window(9), 5), shares(full(), 5))


def test_randomized_shares_are_products_of_their_edges_and_right_in_the_mean():
    steps, draws, keep = 7, 20_000, 0.75
    left = shares(randomized(keep), steps, draws=draws, generator=seeded(2))
    edge = torch.stack([left[:, t, t - 1] for t in range(1, steps)], dim=1)
    assert set(edge.unique().tolist()) == {0.0, 1 / keep}
    for k, t in ((6, 0), (4, 2), (3, 3)):
        np.testing.assert_allclose(left[:, k, t], edge[:, t:k].prod(1), rtol=1e-12)
    exact = shares(full(), steps)[0]
    distance = torch.arange(steps)[:, None] - torch.arange(steps)
    deviation = (keep ** -distance.clamp_min(0).double() - 1).sqrt()
    assert torch.all((left.mean(0) - exact).abs() <= 4 * deviation / draws**0.5 + 1e-12)
    assert torch.equal(shares(randomized(1.0), steps, generator=seeded(1)), exact[None])


@pytest.mark.parametrize("truncation", [window(1), window(4), chunks(3), cut_at(5, 7), randomized(0.6)])
def test_a_truncation_weighs_the_map_and_nothing_is_run_again(truncation):
    flow = gradient_flow(language_model("lstm"), text())
    cut = flow.under(truncation, seeded(4))
    left = shares(truncation, STEPS, generator=seeded(4))[0].numpy()
    np.testing.assert_array_equal(cut.shares, left)
    np.testing.assert_allclose(cut.norms["C"], left * flow.norms["C"], rtol=1e-12)
    np.testing.assert_array_equal(cut.full_norms["C"], flow.norms["C"])
    direct = gradient_flow(language_model("lstm"), text(), truncation, generator=seeded(4))
    np.testing.assert_array_equal(direct.gradient("W_hc"), cut.gradient("W_hc"))
    np.testing.assert_array_equal(cut.under(full()).gradient("W_hc"), flow.gradient("W_hc"))


def test_a_draw_needs_a_generator_and_numbers_must_make_sense():
    flow = gradient_flow(language_model("rnn"), text())
    with pytest.raises(ValueError, match="generator"):
        flow.under(randomized(0.5))
    for wrong in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="probability"):
            randomized(wrong)
    with pytest.raises(ValueError, match="at least 1 step"):
        window(0)


def test_weights_are_found_in_the_equations_or_it_is_said():
    @equation
    def G(X, W, W_other):
        """A weight that is no term of a sum."""
        return (X @ W) * W_other + X

    with pytest.raises(ValueError, match="W, W_other"):
        weight_terms(Circuit(G).equations, ["W", "W_other"])
