"""Every symbol of RNN, LSTM and GRU against NumPy float64 and against torch's layers, values and gradients."""

import numpy as np
import pytest
import torch

from engine.equation import add_to, scale_by, set_to
from engine.recurrent.gru import GRU
from engine.recurrent.lstm import LSTM
from engine.recurrent.rnn import RNN
from tests.engine.recurrent.by_hand import numpy_gru, numpy_lstm, numpy_rnn, sigma
from tests.engine.recurrent.models import (
    ATOL,
    B,
    D,
    H,
    T,
    blocks_of_torch,
    made,
    start,
    torch_gru,
    torch_lstm,
    torch_rnn,
    uniform,
    weights,
)

X = uniform(T, B, D, seed=4)
H0, C0 = start(5), start(6)
SWITCHES = [(reset, update) for reset in ("before", "after") for update in ("keeps", "replaces")]
ACTIVATIONS = {"tanh": np.tanh, "relu": lambda a: np.maximum(a, 0), "sigmoid": sigma}


def assert_same(trace, by_hand):
    assert trace.symbols.keys() == by_hand.keys()
    for name, value in by_hand.items():
        np.testing.assert_allclose(trace[name], value, rtol=0, atol=ATOL, err_msg=name)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_rnn_is_its_equation(activation):
    model = made(RNN, activation=activation)
    assert_same(model.trace(X, H0), numpy_rnn(weights(model), X.numpy(), H0[0].numpy(), ACTIVATIONS[activation]))


def test_lstm_is_its_equations():
    model = made(LSTM)
    assert_same(model.trace(X, (H0, C0)), numpy_lstm(weights(model), X.numpy(), H0[0].numpy(), C0[0].numpy()))


@pytest.mark.parametrize(("reset", "update"), SWITCHES)
def test_gru_is_its_equations(reset, update):
    model = made(GRU, reset=reset, update=update)
    assert_same(model.trace(X, H0), numpy_gru(weights(model), X.numpy(), H0[0].numpy(), reset, update))


@pytest.mark.parametrize(
    ("model", "layer", "letters"),
    [
        (made(RNN), torch_rnn, "h"),
        (made(RNN, activation="relu"), torch_rnn, "h"),
        (made(LSTM), torch_lstm, "ifco"),
        (made(GRU, reset="after"), torch_gru, "rzh"),
    ],
    ids=["rnn tanh", "rnn relu", "lstm", "gru reset after"],
)
@pytest.mark.parametrize("path", ["equations", "fast"])
def test_values_and_gradients_are_those_of_torchs_layer(model, layer, letters, path):
    theirs = layer(model)
    ours_X, theirs_X = (X.clone().requires_grad_() for _ in range(2))
    state = (H0, C0) if isinstance(model, LSTM) else H0
    if path == "fast":
        H_all, end = model(ours_X, state)
    else:
        (only,) = model.unroll(ours_X, state)
        H_all = torch.stack([step["H"] for step in only.results])
        end = model.joined([only.results[-1]])
    torch_H, torch_end = theirs(theirs_X, state)
    mix = uniform(*H_all.shape, seed=9)
    model.zero_grad()
    (H_all * mix).sum().backward()
    (torch_H * mix).sum().backward()
    np.testing.assert_allclose(H_all.detach(), torch_H.detach(), rtol=0, atol=ATOL)
    for our, their in zip(
        end if isinstance(end, tuple) else [end], torch_end if isinstance(end, tuple) else [torch_end], strict=True
    ):
        np.testing.assert_allclose(our.detach(), their.detach(), rtol=0, atol=ATOL)
    np.testing.assert_allclose(ours_X.grad, theirs_X.grad, rtol=0, atol=ATOL)
    for name, gradient in blocks_of_torch(theirs, letters).items():
        np.testing.assert_allclose(model.get_parameter(name).grad, gradient, rtol=0, atol=ATOL, err_msg=name)
    if isinstance(model, GRU):
        np.testing.assert_allclose(model.b_hh.grad, theirs.bias_hh_l0.grad[2 * H :], rtol=0, atol=ATOL)


EVERY_MODEL = [
    made(RNN),
    made(RNN, activation="relu"),
    made(RNN, activation="sigmoid"),
    made(LSTM),
    *(made(GRU, reset=reset, update=update) for reset, update in SWITCHES),
    made(LSTM, num_layers=3, bidirectional=True),
    made(GRU, num_layers=2),
    made(RNN, bidirectional=True),
]


@pytest.mark.parametrize("model", EVERY_MODEL, ids=lambda m: f"{m.kind}{m.switches}{len(m.scopes)}")
def test_the_fast_path_equals_the_equations_in_value_and_gradient(model):
    count = len(model.scopes)
    state = (start(5, count), start(6, count)) if isinstance(model, LSTM) else start(5, count)
    gradients = []
    for path in ("fast", "equations"):
        model.zero_grad()
        x = X.clone().requires_grad_()
        if path == "fast":
            H_all, _ = model(x, state)
        else:
            top = model.unroll(x, state)[-len(model.directions) :]
            H_all = torch.stack([torch.cat([p.results[t]["H"] for p in top], -1) for t in range(T)])
        (H_all * uniform(*H_all.shape, seed=9)).sum().backward()
        gradients.append({"H": H_all.detach(), "X": x.grad, **{name: p.grad for name, p in model.named_parameters()}})
    for name, value in gradients[0].items():
        np.testing.assert_allclose(value, gradients[1][name], rtol=0, atol=ATOL, err_msg=name)


def changed_at(name, steps, units, how):
    """The same change by hand: a function of (symbol, step, value)."""

    def change(symbol, t, value):
        if symbol != name or t not in steps:
            return value
        value = value.copy()
        value[:, units] = how(value[:, units])
        return value

    return change


CHANGES = [
    (set_to(1.0), range(T), slice(None), np.ones_like),
    (set_to(0.25, step=4), [4], slice(None), lambda v: np.full_like(v, 0.25)),
    (set_to(-0.5, step=(3, None), unit=2), range(3, T), [2], lambda v: np.full_like(v, -0.5)),
    (scale_by(0.5, step=(2, 6), unit=[1, 5]), range(2, 6), [1, 5], lambda v: v * 0.5),
    (add_to(0.1, step=T - 1), [T - 1], slice(None), lambda v: v + 0.1),
]


@pytest.mark.parametrize("change", CHANGES, ids=[str(i) for i in range(len(CHANGES))])
@pytest.mark.parametrize("name", ["F", "I", "O", "C_tilde", "C", "H"])
def test_what_if_on_an_lstm_is_the_changed_equations_run_by_hand(name, change):
    intervention, steps, units, how = change
    model = made(LSTM)
    by_hand = numpy_lstm(weights(model), X.numpy(), H0[0].numpy(), C0[0].numpy(), changed_at(name, steps, units, how))
    trace = model.trace(X, (H0, C0), do={name: intervention})
    assert_same(trace, by_hand)
    before = trace.terms[f"{name}:0"]
    changed = np.zeros((T, B, H), bool)
    changed[np.ix_(list(steps), range(B), np.arange(H)[units])] = True
    np.testing.assert_array_equal(trace[name][~changed], before[~changed])


@pytest.mark.parametrize("change", CHANGES, ids=[str(i) for i in range(len(CHANGES))])
@pytest.mark.parametrize("name", ["R", "Z", "H_tilde", "H"])
@pytest.mark.parametrize(("reset", "update"), SWITCHES)
def test_what_if_on_a_gru_is_the_changed_equations_run_by_hand(reset, update, name, change):
    intervention, steps, units, how = change
    model = made(GRU, reset=reset, update=update)
    hand = numpy_gru(weights(model), X.numpy(), H0[0].numpy(), reset, update, changed_at(name, steps, units, how))
    assert_same(model.trace(X, H0, do={name: intervention}), hand)


def test_what_if_in_one_layer_and_direction_acts_there_only():
    model = made(GRU, num_layers=2, bidirectional=True)
    kept, changed = model.trace(X), model.trace(X, do={"layers.0.backward.H": set_to(0.5, step=(3, 5), unit=1)})
    name = "layers.0.backward.H"
    assert (changed[name][3:5, :, 1] == 0.5).all()
    np.testing.assert_array_equal(changed[name][5:], kept[name][5:])  # the backward pass reaches these steps first
    assert np.abs(changed[name][:3] - kept[name][:3]).max() > 1e-6
    np.testing.assert_array_equal(changed["layers.0.forward.H"], kept["layers.0.forward.H"])
    assert np.abs(changed["layers.1.forward.H"] - kept["layers.1.forward.H"]).max() > 1e-6


@pytest.mark.parametrize("model", EVERY_MODEL, ids=lambda m: f"{m.kind}{m.switches}{len(m.scopes)}")
def test_samples_of_a_batch_do_not_touch_each_other(model):
    """RNN-13: the first axis is time; changing sample 1 leaves every symbol of sample 0 as it was."""
    other = X.clone()
    other[:, 1] += 1
    a, b = model.trace(X), model.trace(other)
    for name in a.symbols:
        np.testing.assert_array_equal(a[name][:, 0], b[name][:, 0], err_msg=name)
    np.testing.assert_array_equal(model(X)[0][:, 0].detach(), model(other)[0][:, 0].detach())
    assert not np.allclose(a[list(a.symbols)[-1]][:, 1], b[list(a.symbols)[-1]][:, 1])


@pytest.mark.parametrize("kind", [RNN, LSTM, GRU])
@pytest.mark.parametrize("shape", [(T, B, D + 1), (0, B, D), (T, 0, D), (T, D), (B, T, D, 1)])
def test_a_wrong_shape_is_refused_with_named_axes(kind, shape):
    with pytest.raises(ValueError, match=r"steps.*batch.*inputs.*time first"):
        made(kind)(torch.zeros(shape))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_an_intervention_is_a_finite_number(bad):
    with pytest.raises(ValueError, match="finite"):
        set_to(bad)


@pytest.mark.parametrize("change", [set_to, scale_by, add_to])
def test_an_intervention_is_a_number_that_the_model_can_hold(change):
    with pytest.raises(ValueError, match=r"too large a number for torch\.float32"):
        made(LSTM).float().trace(X.float(), do={"C": change(1e39)})
    assert made(LSTM).double().trace(X.double(), do={"C": set_to(1e39)})["C"].max() == 1e39


def test_interventions_outside_the_run_are_refused():
    model = made(LSTM)
    for do, error in (
        ({"Q": set_to(1)}, KeyError),
        ({"F": set_to(1, step=T)}, IndexError),
        ({"F": set_to(1, step=-1)}, IndexError),
        ({"F": set_to(1, step=(4, 4))}, IndexError),
        ({"F": set_to(1, unit=H)}, IndexError),
        ({"F": set_to(1, unit=[])}, IndexError),
    ):
        with pytest.raises(error):
            model.trace(X, do=do)


def test_a_trace_is_read_only_and_keeps_nothing_alive():
    trace = made(LSTM).trace(X)
    for array in (*trace.arrays.values(), *trace.terms.values(), *trace.weights.values(), *trace.start.values()):
        assert not array.flags.writeable
        assert array.base is None
    with pytest.raises(ValueError, match="read-only"):
        trace["F"][0, 0, 0] = 1


def test_the_same_generator_gives_the_same_weights_and_the_global_one_is_not_touched():
    before = torch.get_rng_state()
    first, second = (LSTM(D, H, generator=torch.Generator().manual_seed(8)) for _ in range(2))
    LSTM(D, H)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(before, torch.get_rng_state())
