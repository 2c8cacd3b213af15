"""Gradients through time: against finite differences by interventions, autograd's sums, and NumPy's chain of Jacobians."""

import numpy as np
import pytest
import torch

from engine.equation import add_to, scale_by, set_to
from engine.recurrent.gradients import memory, memory_path, next_token, saturation, sensitivity, unit_of
from engine.recurrent.language_model import RecurrentLanguageModel
from tests.engine.recurrent.by_hand import sigma
from tests.support import seeded, uniform

V, H, T, B = 5, 7, 11, 2
IDS = torch.randint(V, (T, B), generator=seeded(8))
STEP, BATCH = 8, 1
ATOL = 1e-10


def language_model(cell, **switches):
    model = RecurrentLanguageModel(cell, V, H, generator=seeded(3), **switches).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(uniform(*parameter.shape, seed=200 + number))
    return model


MODELS = {
    "rnn": language_model("rnn"),
    "lstm": language_model("lstm"),
    "gru": language_model("gru"),
    "gru after replaces": language_model("gru", reset="after", update="replaces"),
}
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
CHANGES = {"F": set_to(0.7, step=(5, None), unit=(0, 3)), "C": scale_by(0.5, step=4, unit=2), "O": set_to(1.0, step=6)}


def value_of(model, target, do):
    trace = model.trace(IDS, do=do)
    if target.symbol == "P":
        token = int(IDS[STEP + 1, BATCH]) if target.index is None else target.index
        return np.log(trace["P"][STEP, BATCH, token])
    return trace[target.symbol][STEP, BATCH, target.index]


@EACH
@pytest.mark.parametrize("target", [next_token(), next_token(3), unit_of("H", 4)], ids=["next", "token", "unit"])
def test_sensitivity_equals_finite_differences_by_intervention(model, target):
    found = sensitivity(model, IDS, STEP, target, batch=BATCH)
    assert found.value == pytest.approx(value_of(model, target, None), abs=ATOL)
    eps = 1e-5
    for name, gradient in found.gradients.items():
        for t, unit in ((0, 1), (3, 6), (STEP, 4), (STEP - 1, 0)):
            up, down = (value_of(model, target, {name: add_to(s * eps, step=t, unit=unit)}) for s in (1, -1))
            assert gradient[t, unit] == pytest.approx((up - down) / (2 * eps), abs=1e-8), (name, t, unit)


def test_sensitivity_in_a_changed_run_is_that_of_the_changed_run():
    model = MODELS["lstm"]
    found = sensitivity(model, IDS, STEP, unit_of("C", 2), CHANGES, batch=BATCH)
    eps = 1e-5
    for name, t, unit in (("C", 3, 2), ("C", 4, 2), ("H", 5, 1), ("C", 7, 0)):
        ends = []
        for sign in (1, -1):
            do = {symbol: [given] for symbol, given in CHANGES.items()}
            do.setdefault(name, []).append(add_to(sign * eps, step=t, unit=unit))
            ends.append(model.trace(IDS, do=do)["C"][STEP, BATCH, 2])
        assert found.gradients[name][t, unit] == pytest.approx((ends[0] - ends[1]) / (2 * eps), abs=1e-8)


@EACH
def test_the_gradient_of_the_states_gives_autograds_gradient_of_the_weights(model):
    """A bias is read at every step: its gradient is the sum over steps of the state's gradient times that step's own slope."""
    found = sensitivity(model, IDS, STEP, next_token(2), batch=BATCH)
    model.zero_grad()
    Y, _ = model(IDS)
    torch.log_softmax(Y[STEP, BATCH], dim=-1)[2].backward()
    trace = model.trace(IDS)
    if model.recurrent.kind == "rnn":
        through = found.gradients["H"] * (1 - trace["H"][:, BATCH] ** 2)
        np.testing.assert_allclose(through.sum(0), model.recurrent.b_h.grad, rtol=0, atol=ATOL)
    elif model.recurrent.kind == "lstm":
        own = trace["I"][:, BATCH] * (1 - trace["C_tilde"][:, BATCH] ** 2)
        np.testing.assert_allclose((found.gradients["C"] * own).sum(0), model.recurrent.b_c.grad, rtol=0, atol=ATOL)
        shown = trace["O"][:, BATCH] * (1 - trace["O"][:, BATCH]) * np.tanh(trace["C"][:, BATCH])
        np.testing.assert_allclose((found.gradients["H"] * shown).sum(0), model.recurrent.b_o.grad, rtol=0, atol=ATOL)
    else:
        Z = trace["Z"][:, BATCH]
        taken = Z if model.recurrent.update == "replaces" else 1 - Z
        own = taken * (1 - trace["H_tilde"][:, BATCH] ** 2)
        np.testing.assert_allclose((found.gradients["H"] * own).sum(0), model.recurrent.b_h.grad, rtol=0, atol=ATOL)


@EACH
def test_what_comes_later_has_no_influence_and_norms_are_lengths(model):
    found = sensitivity(model, IDS, STEP, batch=BATCH)
    assert found.gradients.keys() == set(model.recurrent.circuit.carry)
    for name, gradient in found.gradients.items():
        assert gradient.shape == (T, H)
        assert found.start[name].shape == (H,)
        assert not gradient.flags.writeable
        assert (gradient[STEP + 1 :] == 0).all()
        np.testing.assert_allclose(found.norms[name], np.sqrt((gradient**2).sum(-1)), rtol=0, atol=1e-14)
    assert (found.norms["H"][: STEP + 1] > 0).all()


def test_the_gradient_of_the_start_state_equals_finite_differences():
    model = MODELS["lstm"]
    H0, C0 = (uniform(1, B, H, seed=seed) for seed in (31, 32))
    found = sensitivity(model, IDS, 2, unit_of("C", 5), state=(H0, C0), batch=BATCH)
    eps = 1e-5
    moved = torch.zeros_like(C0)
    moved[0, BATCH, 3] = eps
    up, down = (model.trace(IDS, (H0, C0 + sign * moved))["C"][2, BATCH, 5] for sign in (1, -1))
    assert found.start["C"][3] == pytest.approx((up - down) / (2 * eps), abs=1e-8)


def test_a_deep_model_names_its_layers():
    model = RecurrentLanguageModel("lstm", V, H, num_layers=2, generator=seeded(5)).double()
    target = unit_of("layers.1.forward.H", 3)
    found = sensitivity(model, IDS, STEP, target, batch=BATCH)
    name, eps = "layers.0.forward.C", 1e-5
    up, down = (
        model.trace(IDS, do={name: add_to(sign * eps, step=2, unit=6)})[target.symbol][STEP, BATCH, 3] for sign in (1, -1)
    )
    assert found.gradients[name][2, 6] == pytest.approx((up - down) / (2 * eps), abs=1e-8)


def test_a_model_whose_weights_are_frozen_gives_the_same_gradients_and_stays_as_it_was():
    model = language_model("gru").requires_grad_(False).float()
    with torch.no_grad():
        frozen = sensitivity(model, IDS, STEP, batch=BATCH)
    live = sensitivity(language_model("gru").float(), IDS, STEP, batch=BATCH)
    np.testing.assert_array_equal(frozen.gradients["H"], live.gradients["H"])
    assert model.recurrent.dtype is torch.float32
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(
    ("step", "target", "error"),
    [
        (T, None, IndexError),
        (-1, None, IndexError),
        (T - 1, None, ValueError),
        (0, next_token(V), IndexError),
        (0, unit_of("H", H), IndexError),
        (0, unit_of("Q", 0), KeyError),
    ],
)
def test_what_is_not_there_is_refused(step, target, error):
    with pytest.raises(error):
        sensitivity(MODELS["lstm"], IDS, step, target)


# ------------------------------------------------------------------------------------------------- the memory's path


def lstm_jacobians(model, do=None):
    """By hand: the memory's full Jacobian from every t to STEP, a product of 2H x 2H step Jacobians of (H, C)."""
    w = {name: p.detach().numpy() for name, p in model.recurrent.named_parameters()}
    trace = model.trace(IDS, do=do)
    s = {name: trace[name][:, BATCH] for name in trace}
    given = {name: trace.terms[f"{name}:0"][:, BATCH] for name in trace}
    held = {name: given[name] == s[name] for name in s}  # where an intervention set a gate, nothing flows through it
    full = [None] * (STEP + 1)
    product = np.eye(2 * H)
    for t in range(STEP, -1, -1):
        seen = np.concatenate([np.diag(s["O"][t] * (1 - np.tanh(s["C"][t]) ** 2)), np.eye(H)])
        full[t] = (product @ seen)[H:]
        if t:
            slope = {g: s[n][t] * (1 - s[n][t]) * held[n][t] for g, n in (("f", "F"), ("i", "I"), ("o", "O"))}
            slope["c"] = 1 - s["C_tilde"][t] ** 2
            gate = {g: np.diag(slope[g]) @ w[f"W_h{g}"].T for g in "fioc"}
            scale = np.where(held["C"][t], 1.0, 0.5)  # CHANGES halves C
            dC_dH = np.diag(scale) @ (
                np.diag(s["C"][t - 1]) @ gate["f"] + np.diag(s["C_tilde"][t]) @ gate["i"] + np.diag(s["I"][t]) @ gate["c"]
            )
            dC_dC = np.diag(scale * s["F"][t])
            inner = np.diag(s["O"][t] * (1 - np.tanh(s["C"][t]) ** 2))
            dH_dH = np.diag(np.tanh(s["C"][t])) @ gate["o"] + inner @ dC_dH
            product = product @ np.block([[dH_dH, inner @ dC_dC], [dC_dH, dC_dC]])
    return np.stack(full), s


@pytest.mark.parametrize("do", [None, CHANGES], ids=["baseline", "changed"])
def test_lstm_path_equals_the_chain_of_jacobians_by_hand(do):
    model = MODELS["lstm"]
    by_hand, s = lstm_jacobians(model, do)
    path = memory_path(model, IDS, STEP, do, batch=BATCH)
    assert path.symbol == "C"
    np.testing.assert_allclose(path.full, by_hand, rtol=0, atol=ATOL)
    kept = s["F"].copy()
    if do:
        kept[4, 2] *= 0.5
    for t in range(STEP + 1):
        np.testing.assert_allclose(path.direct[t], kept[t + 1 : STEP + 1].prod(0), rtol=0, atol=ATOL)
    np.testing.assert_allclose(path.kept, kept[: STEP + 1], rtol=0, atol=ATOL)


@pytest.mark.parametrize("name", ["gru", "gru after replaces"])
@pytest.mark.parametrize(
    "do", [None, {"Z": set_to(0.9, step=(3, 6), unit=1), "R": set_to(0.0, step=5)}], ids=["run", "changed"]
)
def test_gru_path_equals_the_chain_of_jacobians_by_hand(name, do):
    model = MODELS[name]
    w = {key: p.detach().numpy() for key, p in model.recurrent.named_parameters()}
    trace = model.trace(IDS, do=do)
    s = {symbol: trace[symbol][:, BATCH] for symbol in trace}
    held = {symbol: trace.terms[f"{symbol}:0"][:, BATCH] == s[symbol] for symbol in ("R", "Z")}
    replaces = model.recurrent.update == "replaces"
    kept = 1 - s["Z"] if replaces else s["Z"]
    by_hand, product = [None] * (STEP + 1), np.eye(H)
    for t in range(STEP, -1, -1):
        by_hand[t] = product
        if t:
            old, sign = s["H"][t - 1], -1 if replaces else 1
            dZ = np.diag(s["Z"][t] * (1 - s["Z"][t]) * held["Z"][t]) @ w["W_hz"].T
            dR = np.diag(s["R"][t] * (1 - s["R"][t]) * held["R"][t]) @ w["W_hr"].T
            if model.recurrent.reset == "before":
                inside = w["W_hh"].T @ (np.diag(s["R"][t]) + np.diag(old) @ dR)
            else:
                inside = np.diag(s["R"][t]) @ w["W_hh"].T + np.diag(old @ w["W_hh"] + w["b_hh"]) @ dR
            candidate = np.diag(1 - s["H_tilde"][t] ** 2) @ inside
            step = np.diag(kept[t]) + sign * np.diag(old - s["H_tilde"][t]) @ dZ + np.diag(1 - kept[t]) @ candidate
            product = product @ step
    path = memory_path(model, IDS, STEP, do, batch=BATCH)
    assert path.symbol == "H"
    np.testing.assert_allclose(path.full, np.stack(by_hand), rtol=0, atol=ATOL)
    for t in range(STEP + 1):
        np.testing.assert_allclose(path.direct[t], kept[t + 1 : STEP + 1].prod(0), rtol=0, atol=ATOL)


def test_rnn_has_a_full_jacobian_and_no_direct_path():
    model = MODELS["rnn"]
    trace, W = model.trace(IDS), model.recurrent.W_hh.detach().numpy()
    path = memory_path(model, IDS, STEP, batch=BATCH)
    assert (path.symbol, path.direct, path.kept, path.direct_mean) == ("H", None, None, None)
    product = np.eye(H)
    for t in range(STEP, -1, -1):
        np.testing.assert_allclose(path.full[t], product, rtol=0, atol=ATOL)
        product = product @ np.diag(1 - trace["H"][t, BATCH] ** 2) @ W.T


def test_a_forget_gate_clamped_to_one_makes_the_direct_path_a_straight_road():
    path = memory_path(MODELS["lstm"], IDS, STEP, {"F": set_to(1.0)}, batch=BATCH)
    np.testing.assert_array_equal(path.direct, np.ones((STEP + 1, H)))
    cut = memory_path(MODELS["lstm"], IDS, STEP, {"C": set_to(0.3, step=5)}, batch=BATCH)
    assert (cut.direct[:5] == 0).all()
    assert (cut.direct[5:] > 0).all()


def test_the_summaries_are_what_they_say():
    path = memory_path(MODELS["gru"], IDS, STEP, batch=BATCH)
    assert path.distances.tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    for t in range(STEP + 1):
        assert path.direct_mean[t] == pytest.approx(sum(abs(path.direct[t, u]) for u in range(H)) / H, abs=1e-15)
        assert path.diagonal_mean[t] == pytest.approx(sum(abs(path.full[t, u, u]) for u in range(H)) / H, abs=1e-15)
        assert path.norm[t] == pytest.approx(np.linalg.svd(path.full[t], compute_uv=False)[0], abs=1e-12)


def test_a_hundred_steps_do_not_underflow():
    model = RecurrentLanguageModel("lstm", V, 3, generator=seeded(1))
    ids = torch.randint(V, (220, 1), generator=seeded(2))
    path = memory_path(model, ids, 219)
    assert 0 < path.direct_mean[0] < 1e-45  # smaller than anything float32 can hold
    np.testing.assert_allclose(np.log(path.direct[0]), np.log(path.kept[1:]).sum(0), rtol=1e-12)


def test_one_step_is_enough():
    for model in MODELS.values():
        path = memory_path(model, IDS[:1], 0, batch=BATCH)
        np.testing.assert_array_equal(path.full, np.eye(H)[None])
        found = sensitivity(model, IDS[:1], 0, next_token(1), batch=BATCH)
        assert found.gradients["H"].shape == (1, H)


def test_the_memory_of_each_cell_is_found_in_its_equations():
    assert [memory(model.recurrent.circuit) for model in MODELS.values()] == [
        ("H", False),
        ("C", True),
        ("H", True),
        ("H", True),
    ]


def test_a_deep_models_path_is_that_of_the_chosen_layer():
    model = RecurrentLanguageModel("gru", V, H, num_layers=2, generator=seeded(5)).double()
    Z = model.trace(IDS)["layers.0.forward.Z"][:, BATCH]
    path = memory_path(model, IDS, STEP, batch=BATCH, scope="layers.0.forward.")
    np.testing.assert_allclose(path.direct[2], Z[3 : STEP + 1].prod(0), rtol=0, atol=ATOL)
    with pytest.raises(KeyError):
        memory_path(model, IDS, STEP, scope="layers.2.forward.")


# ---------------------------------------------------------------------------------------------------------- saturation


def test_saturation_counts_by_hand():
    model = MODELS["lstm"]
    trace = model.trace(IDS, do={"F": (set_to(1.0, step=2), set_to(0.0, step=3, unit=4), set_to(0.5, step=4))})
    found = saturation(trace, "F", batch=BATCH)
    values = [float(v) for row in trace["F"][:, BATCH] for v in row]
    assert found.count == len(values) == T * H
    assert found.below == sum(v < 0.1 for v in values) / len(values)
    assert found.above == sum(v > 0.9 for v in values) / len(values)
    by_hand = [0] * 20
    for v in values:
        by_hand[min(int(v * 20), 19)] += 1
    assert found.counts.tolist() == by_hand
    assert sigma(np.float64(0.0)) in values
    np.testing.assert_allclose(found.edges, np.arange(21) / 20, rtol=0, atol=1e-15)
    column = trace["F"][:, BATCH, 4]
    assert found.below_by_unit[4] == np.mean(column < 0.1) > 0
    assert found.above_by_unit.mean() == pytest.approx(found.above)


@pytest.mark.parametrize("name", ["C", "H", "C_tilde", "P", "Y"])
def test_only_gates_saturate(name):
    with pytest.raises(ValueError, match="no gate"):
        saturation(MODELS["lstm"].trace(IDS), name)
