"""Truncations carried out as training does, against the map; and what they do to the gradient."""

import numpy as np
import pytest
import torch

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.truncated import compare, detached, truncated_run
from engine.recurrent.truncation import chunks, cut_at, full, gradient_flow, randomized, shares, window
from tests.engine.recurrent.models import ATOL, seeded
from tests.engine.recurrent.test_truncation import BATCH, HIDDEN, STEPS, V, language_model, mean_loss, text

TRUNCATIONS = [full(), window(1), window(3), chunks(4), cut_at(2, 5), randomized(0.7)]


@pytest.mark.parametrize("truncation", TRUNCATIONS, ids=lambda t: f"{t.kind} {t.length or t.cuts or t.keep or ''}")
@pytest.mark.parametrize(("cell", "layers"), [("rnn", 1), ("lstm", 1), ("gru", 2)])
def test_cutting_states_off_gives_what_the_map_gives(cell, layers, truncation):
    model, ids = language_model(cell, num_layers=layers), text()
    run = truncated_run(model, ids, truncation, generator=seeded(5))
    flow = gradient_flow(model, ids, truncation, generator=seeded(5))
    for name in flow.weights:
        np.testing.assert_allclose(run.gradients[f"recurrent.{name}"], flow.gradient(name), rtol=0, atol=ATOL, err_msg=name)
    mean_loss(model, ids).backward()  # the output layer stands outside every truncation
    np.testing.assert_allclose(run.gradients["output.W_hq"], model.output.W_hq.grad, rtol=0, atol=ATOL)
    assert run.loss == pytest.approx(flow.losses.mean(), abs=ATOL)


def test_a_chunk_keeps_less_memory_and_a_window_takes_more_steps():
    model = RecurrentLanguageModel("lstm", 29, 31, generator=seeded(1))
    ids = text(steps=64, batch=1) % 29
    whole, cut, windows = (truncated_run(model, ids, t) for t in (full(), chunks(16), window(16)))
    assert whole.steps == cut.steps == 64
    assert windows.steps == sum(min(k + 1, 16) for k in range(64))
    # Four chunks of the same size: a quarter of the states and gates, beside the start of each.
    assert 0.2 * whole.saved_bytes < cut.saved_bytes < 0.35 * whole.saved_bytes
    per_step = 31 * 8 * 8  # four gates, C, tanh C and H, and the scores' H, in float64
    assert 0.8 * 64 * per_step < whole.saved_bytes < 1.7 * 64 * per_step
    assert whole.seconds > 0


def test_the_window_is_nearer_the_longer_it_is_and_chance_is_right_in_the_mean():
    flow = gradient_flow(language_model("rnn"), text())
    results = [compare(flow, window(tau)) for tau in (1, 3, 6, STEPS)]
    assert [r.bias for r in results] == sorted((r.bias for r in results), reverse=True)
    assert results[-1].bias < ATOL
    assert results[-1].cosine == pytest.approx(1)
    assert results[-1].length == pytest.approx(1)
    assert all(r.draws == 1 and r.spread == 0 for r in results)
    chance = compare(flow, randomized(0.8), draws=600, generator=seeded(7))
    assert chance.draws == 600 == len(chance.cosines) == len(chance.lengths)
    assert chance.bias < 3 * chance.error
    assert chance.error == pytest.approx(chance.spread / 600**0.5)
    assert chance.spread > 0.05


def test_the_comparison_by_hand():
    flow = gradient_flow(language_model("gru"), text())
    names = ["W_hr", "W_hz", "W_hh"]

    def vector(left):
        return np.concatenate([flow.uses[n].gradient(left[None] / STEPS)[0].flatten().numpy() for n in names])

    exact = np.concatenate([flow.gradient(n).ravel() for n in names])
    drawn = shares(randomized(0.7), STEPS, draws=30, generator=seeded(9))
    # Drawn 25 at a time: the same numbers in the same order.
    first, rest = (shares(randomized(0.7), STEPS, draws=n, generator=g) for g in [seeded(9)] for n in (25, 5))
    np.testing.assert_array_equal(torch.cat([first, rest]).shape, drawn.shape)
    vectors = np.stack([vector(left) for left in torch.cat([first, rest])])
    result = compare(flow, randomized(0.7), draws=30, generator=seeded(9))
    size = np.linalg.norm(exact)
    lengths = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(result.cosines, vectors @ exact / (size * lengths), atol=ATOL)
    np.testing.assert_allclose(result.lengths, lengths / size, atol=ATOL)
    assert result.bias == pytest.approx(np.linalg.norm(vectors.mean(0) - exact) / size, abs=ATOL)
    assert result.spread == pytest.approx(np.sqrt(vectors.var(axis=0, ddof=1).sum()) / size, abs=1e-9)


def test_what_detaching_changes_and_what_it_does_not():
    """Case BAT-04: same loss, the recurrent gradient differs, the output gradient does not."""
    model = RecurrentLanguageModel("rnn", 3, 2).double()
    given = {
        "recurrent.W_xh": [[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]],
        "recurrent.W_hh": [[0.5, 0.1], [-0.3, 0.6]],
        "recurrent.b_h": [0.1, -0.1],
        "output.W_hq": [[0.7, -0.4, 0.2], [0.1, 0.5, -0.6]],
        "output.b_q": [0.0, 0.0, 0.0],
    }
    model.load_state_dict({name: torch.tensor(value, dtype=torch.float64) for name, value in given.items()})
    ids, targets = torch.tensor([0, 1, 2, 1]), torch.tensor([1, 2, 1, 0])
    grad_full = [[0.0631855913511, 0.00810769510783], [-0.0323486365679, -0.0387773227997]]
    grad_cut = [[0.057417808045, 0.0279825919529], [-0.0279263899246, -0.0540157066284]]
    grad_out = [
        [0.063897654981, -0.00882807952858, -0.0550695754524],
        [-0.0582734913104, 0.0725007089336, -0.0142272176233],
    ]
    flow = gradient_flow(model, ids, targets=targets)
    runs = {name: truncated_run(model, ids, t, targets=targets) for name, t in (("full", full()), ("cut", chunks(2)))}
    np.testing.assert_allclose(flow.gradient("W_hh"), grad_full, rtol=0, atol=1e-9)
    np.testing.assert_allclose(flow.under(chunks(2)).gradient("W_hh"), grad_cut, rtol=0, atol=1e-9)
    for name, expected in (("full", grad_full), ("cut", grad_cut)):
        np.testing.assert_allclose(runs[name].gradients["recurrent.W_hh"], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(runs[name].gradients["output.W_hq"], grad_out, rtol=0, atol=1e-9)
        assert runs[name].loss == pytest.approx(1.15564809437, abs=1e-9)
    norms_full = [0.20949119785, 0.100736878322, 0.0864107981401, 0.141467596308]
    norms_cut = [0.193251047874, 0.150236473086, 0.0864107981401, 0.141467596308]
    for cut, expected in ((flow, norms_full), (flow.under(chunks(2)), norms_cut)):
        arriving = np.einsum("kt,ktbh->tbh", cut.shares / 4, cut.gradients["H"])
        np.testing.assert_allclose(np.linalg.norm(arriving, axis=(1, 2)), expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(cut.received["H"], expected, rtol=0, atol=1e-9)


def test_a_carried_state_without_its_past_keeps_the_cost_of_a_minibatch():
    """Case BAT-05: a second backward pass works, and no minibatch is dearer than the first."""
    model, state, kept = language_model("lstm"), None, []
    for _ in range(3):
        ids = text()
        scores, state = model(ids[:-1], detached(state))
        saved = 0

        def count(tensor):
            nonlocal saved
            saved += tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            again, _ = model(ids[:-1], detached(state))
        (scores.square().mean() + again.square().mean()).backward()
        kept.append(saved)
    assert kept[0] == kept[1] == kept[2]
    assert detached(None) is None
    assert isinstance(detached(torch.zeros(1, BATCH, HIDDEN, requires_grad=True) * 2), torch.Tensor)


def test_refusals_name_the_reason():
    both = language_model("rnn", bidirectional=True)
    with pytest.raises(ValueError, match="both ends"):
        truncated_run(both, text(), full())
    with pytest.raises(ValueError, match="both ends"):
        compare(gradient_flow(both, text()), window(2))
    with pytest.raises(ValueError, match="generator"):
        truncated_run(language_model("rnn"), text(), randomized(0.5))
    silent = language_model("rnn")
    with torch.no_grad():
        silent.output.W_hq.zero_()
    with pytest.raises(ValueError, match="is 0"):
        compare(gradient_flow(silent, text()), window(2))
    assert V < 6
