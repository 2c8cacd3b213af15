"""Cases of public bug reports on recurrent conventions (kind RNN), each with its right values."""

import math

import numpy as np
import pytest
import torch

from engine.equation import set_to
from engine.recurrent.gru import GRU
from engine.recurrent.lstm import LSTM
from engine.recurrent.rnn import RNN

X = torch.tensor([[1.0], [-0.5]], dtype=torch.float64).unsqueeze(1)
H0 = torch.tensor([[0.5, -0.25]], dtype=torch.float64)
Wx = torch.tensor([[0.5, -0.3, 0.2, 0.4, 1.0, -1.0]], dtype=torch.float64)
Wh = torch.tensor([[0.6, -0.4, -0.2, 0.3, 0.7, -0.9], [0.1, 0.8, 0.5, -0.1, 1.1, 0.4]], dtype=torch.float64)
BIAS = torch.tensor([0.3, -0.2], dtype=torch.float64)


def reported_gru(reset="before", update="keeps"):
    model = GRU(1, 2, reset=reset, update=update).double()
    with torch.no_grad():
        for number, block in enumerate("rzh"):
            model.get_parameter(f"W_x{block}").copy_(Wx[:, 2 * number : 2 * number + 2])
            model.get_parameter(f"W_h{block}").copy_(Wh[:, 2 * number : 2 * number + 2])
        (model.b_hh if reset == "after" else model.b_h).copy_(BIAS)
    return model


def test_rnn_01_reset_before_or_after_the_product():
    before, after = (reported_gru(reset).trace(X, H0)["H"][:, 0] for reset in ("before", "after"))
    np.testing.assert_allclose(before, [[0.700155195552, -0.488494549393], [0.180651730078, -0.303147246142]], atol=1e-9)
    np.testing.assert_allclose(after, [[0.677267809376, -0.465317003997], [0.0475925830477, -0.179012605669]], atol=1e-9)
    assert np.abs(before - after).max() == pytest.approx(0.133059147031, abs=1e-9)


def test_rnn_02_the_hidden_bias_is_reset_or_not():
    values = {}
    for reset in ("before", "after"):
        model = GRU(1, 1, reset=reset).double()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
            model.W_hh.fill_(1.0)
            (model.b_hh if reset == "after" else model.b_h).fill_(2.0)
        trace = model.trace(torch.zeros(1, 1, 1), torch.tensor([[0.5]]))
        values[reset] = (trace["H_tilde"].item(), trace["H"].item())
    assert values["before"] == pytest.approx((0.978026114739, 0.739013057369), abs=1e-9)
    assert values["after"] == pytest.approx((0.848283639958, 0.674141819979), abs=1e-9)


def test_rnn_03_z_keeps_or_replaces():
    keep, take = (reported_gru(update=update).trace(X, H0)["H"][:, 0] for update in ("keeps", "replaces"))
    np.testing.assert_allclose(keep, [[0.700155195552, -0.488494549393], [0.180651730078, -0.303147246142]], atol=1e-9)
    np.testing.assert_allclose(take, [[0.695213346166, -0.673835944229], [0.375415124793, -0.386030255905]], atol=1e-9)


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_rnn_05_and_06_parameters_with_their_biases_counted_apart():
    assert count(GRU(4, 5)) == 150
    biases = {name: p.numel() for name, p in GRU(5, 3).named_parameters() if name.startswith("b_")}
    assert (sum(biases.values()), count(GRU(5, 3))) == (9, 81)
    biases = {name: p.numel() for name, p in GRU(5, 3, reset="after").named_parameters() if name.startswith("b_")}
    assert (sum(biases.values()), count(GRU(5, 3, reset="after"))) == (12, 84)


def test_blocks_of_parameters_are_one_three_and_four():
    one, three, four = (count(kind(4, 5)) for kind in (RNN, GRU, LSTM))
    assert (three / one, four / one) == (3, 4)


def test_rnn_08_gates_are_what_their_names_say():
    model = LSTM(1, 1).double()
    with torch.no_grad():
        for block, w, u, b in zip("ifco", (0.5, -0.5, 1.0, 0.3), (0.1, 0.2, -0.3, 0.4), (0.0, 1.0, 0.0, -0.2), strict=True):
            model.get_parameter(f"W_x{block}").fill_(w)
            model.get_parameter(f"W_h{block}").fill_(u)
            model.get_parameter(f"b_{block}").fill_(b)
    trace = model.trace(torch.tensor([[[1.0]], [[2.0]]]))
    np.testing.assert_allclose(trace["H"].ravel(), [0.231765183476, 0.458592684252], atol=1e-9)
    np.testing.assert_allclose(trace["C"].ravel(), [0.474061388963, 0.94778677042], atol=1e-9)
    first = [trace[name][0].item() for name in ("I", "F", "C_tilde", "O")]
    np.testing.assert_allclose(first, [0.622459331202, 0.622459331202, 0.761594155956, 0.524979187479], atol=1e-9)


@pytest.mark.parametrize(("bias", "kept"), [(0, 0.0009765625), (1, 0.0436035427941), (2, 0.281033862321)])
def test_rnn_09_and_10_there_is_one_forget_bias_and_it_decides_what_is_left_after_ten_steps(bias, kept):
    model = LSTM(1, 1, forget_bias=bias).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name != "b_f":
                parameter.zero_()
    start = (torch.zeros(1, 1, 1), torch.ones(1, 1, 1))
    trace = model.trace(torch.zeros(10, 1, 1), start, do={"H": set_to(0.0)})
    assert trace["F"][0].item() == pytest.approx(1 / (1 + math.exp(-bias)), abs=1e-12)
    assert trace["C"][-1].item() == pytest.approx(kept, abs=1e-9)


def test_rnn_12_outputs_and_final_state_have_time_or_layers_first():
    for kind in (RNN, GRU, LSTM):
        H_all, state = kind(3, 512)(torch.zeros(8, 60, 3))
        assert H_all.shape == (8, 60, 512)
        for part in state if isinstance(state, tuple) else (state,):
            assert part.shape == (1, 60, 512)
