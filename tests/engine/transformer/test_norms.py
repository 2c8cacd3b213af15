"""Norms against NumPy and torch, values and gradients; the cases of others by their id; axes and what leaks through them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from engine.transformer.residual_norm import RunningStatistics, batch_norm, layer_norm, norm_over, norm_trace, rms_norm
from tests.engine.recurrent.models import ATOL, uniform

B, T, D = 3, 5, 7
X, GAMMA, BETA = uniform(B, T, D, seed=1) * 3 + 1, uniform(D, seed=2), uniform(D, seed=3)


def close(given, expected, atol=1e-9):
    np.testing.assert_allclose(np.asarray(given), np.asarray(expected), rtol=0, atol=atol)


def double(row):
    return torch.tensor(row, dtype=torch.float64)


def norm_by_hand(X, places, gamma=1.0, beta=0.0, eps=1e-5):
    count = np.prod([X.shape[axis] for axis in places])
    mean = X.sum(axis=places, keepdims=True) / count
    variance = ((X - mean) ** 2).sum(axis=places, keepdims=True) / count
    X_hat = (X - mean) / np.sqrt(variance + eps)
    return {"mean": mean, "variance": variance, "X_hat": X_hat, "Y": gamma * X_hat + beta}


PLACES = {"D": (2,), "T": (1,), "B": (0,), "TD": (1, 2), "BT": (0, 1), "BD": (0, 2), "BTD": (0, 1, 2)}


@pytest.mark.parametrize("over", PLACES)
def test_every_symbol_is_its_equation_over_any_axes(over):
    trace = norm_trace(X, "layer", GAMMA, BETA, over=over)
    by_hand = norm_by_hand(X.numpy(), PLACES[over], GAMMA.numpy(), BETA.numpy())
    assert set(trace) == by_hand.keys()
    for name, value in by_hand.items():
        close(trace[name], value, ATOL)
    close(norm_over(X, over, GAMMA, BETA), by_hand["Y"], ATOL)


def test_every_symbol_of_the_three_norms_is_its_equation():
    layer, batch, rms = (norm_trace(X, norm, GAMMA, BETA, eps=1e-3) for norm in ("layer", "batch", "rms"))
    for trace, places in ((layer, (2,)), (batch, (0, 1))):
        for name, value in norm_by_hand(X.numpy(), places, GAMMA.numpy(), BETA.numpy(), 1e-3).items():
            close(trace[name], value, ATOL)
    square = (X.numpy() ** 2).mean(-1, keepdims=True)
    by_hand = {"square": square, "X_hat": X.numpy() / np.sqrt(square + 1e-3)}
    assert set(rms) == {*by_hand, "Y"}
    for name, value in (by_hand | {"Y": GAMMA.numpy() * by_hand["X_hat"]}).items():
        close(rms[name], value, ATOL)


@pytest.mark.parametrize("shape", [(D,), (T, D), (B, T, D), (2, B, T, D)])
def test_the_norms_are_torchs_values_and_gradients(shape):
    data = uniform(*shape, seed=4) * 2 + 1
    flat = (lambda f: lambda x, g, b: f(x.reshape(-1, D), g, b).reshape(shape)) if len(shape) > 1 else (lambda f: f)
    pairs = [
        (layer_norm, lambda x, g, b: functional.layer_norm(x, (D,), g, b)),
        (lambda x, g, _: rms_norm(x, g, 1e-6), lambda x, g, _: functional.rms_norm(x, (D,), g, 1e-6)),
    ]
    if len(shape) > 1:
        pairs.append((batch_norm, flat(lambda x, g, b: functional.batch_norm(x, None, None, g, b, training=True))))
    ahead = uniform(*shape, seed=5)
    for ours, theirs in pairs:
        mine, reference = ([t.clone().requires_grad_() for t in (data, GAMMA, BETA)] for _ in range(2))
        close(ours(*mine).detach(), theirs(*reference).detach(), ATOL)
        (ours(*mine) * ahead).sum().backward()
        (theirs(*reference) * ahead).sum().backward()
        for a, b in zip(mine, reference, strict=True):
            if b.grad is not None:
                close(a.grad, b.grad, ATOL)
    assert torch.autograd.gradcheck(layer_norm, (data.requires_grad_(), GAMMA.clone().requires_grad_(), BETA))


def test_the_textbooks_example():
    given = double([[1, 2], [2, 3]])
    close(layer_norm(given), [[-1, 1], [-1, 1]], 1e-4)
    close(batch_norm(given), [[-1, -1], [1, 1]], 1e-4)


# --------------------------------------------------------------------------------------------------- cases by their id


def test_ln_01_divided_by_n():
    close(layer_norm([1.0, 2.0, 3.0, 4.0]).double(), [-1.34163541997, -0.447211806656, 0.447211806656, 1.34163541997], 1e-6)
    close(layer_norm(double([1, 2, 3, 4])), [-1.34163541997, -0.447211806656, 0.447211806656, 1.34163541997])


def test_ln_02_the_root_of_variance_and_eps():
    close(layer_norm(double([1, 0, 0, 0])), [1.73200462139, -0.577334873798, -0.577334873798, -0.577334873798])


def test_ln_04_the_output_has_mean_0_and_variance_1():
    Y = layer_norm(double([1, 2, 3, 6]), eps=1e-12)
    assert Y.mean().item() == pytest.approx(0, abs=1e-12)
    assert Y.var(correction=0).item() == pytest.approx(1, abs=1e-9)


def test_ln_05_a_row_of_equal_values():
    row = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    Y = layer_norm(row)
    Y.backward(double([1, 0, 0]))
    close(Y.detach(), [0, 0, 0], 0)
    close(row.grad, [210.818510678, -105.409255339, -105.409255339], 1e-8)


@pytest.mark.parametrize("eps", [0.0, -1e-5, float("nan"), float("inf")])
def test_ln_07_eps_must_be_above_0(eps):
    for norm in (
        layer_norm,
        rms_norm,
        batch_norm,
        lambda X, eps: norm_trace(X, eps=eps),
        lambda X, eps: norm_over(X, "TD", eps=eps),
    ):
        with pytest.raises(ValueError, match="epsilon is above 0"):
            norm(torch.zeros(3, 2), eps=eps)


# ---------------------------------------------------------------------------------------------- the whole of the kind


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [0.0, 0.1, 1e4, 1e6, 1e8, -1e8, 3e30])
@pytest.mark.parametrize("width", [1, 2, 3, 7, 768])
def test_equal_values_give_0_however_large_they_are(offset, width, dtype):
    rows = torch.full((4, width), offset, dtype=dtype, requires_grad=True)
    for norm in (layer_norm, batch_norm):
        Y = norm(rows)
        assert Y.dtype == dtype
        assert (Y == 0).all()
        (gradient,) = torch.autograd.grad((Y * torch.arange(width)).sum(), rows)
        assert gradient.isfinite().all()
    assert rms_norm(rows).isfinite().all()
    assert (norm_trace(rows.detach())["X_hat"] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6, 1e8])
def test_no_digits_are_lost_far_from_0(offset, dtype):
    rows = (uniform(11, 13, seed=6) * 100 + offset).to(dtype)
    exact = rows.numpy().astype(np.longdouble)
    for norm, places in ((layer_norm, (1,)), (batch_norm, (0,))):
        expected = norm_by_hand(exact, places, eps=np.longdouble(1e-5))["Y"].astype(np.float64)
        close(norm(rows).double(), expected, 1e-6 if dtype == torch.float32 else 1e-8)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=9))
def test_every_row_gets_mean_0_and_at_most_variance_1(row):
    data = torch.tensor(row, dtype=torch.float32)
    Y = layer_norm(data).double()
    assert Y.isfinite().all()
    assert abs(Y.mean().item()) < 1e-4
    assert Y.var(correction=0).item() < 1 + 1e-4
    assert rms_norm(data).isfinite().all()


def test_half_precision_does_not_overflow():
    for dtype in (torch.float16, torch.bfloat16):
        rows = torch.tensor([[6e4, -6e4, 0.0], [1.0, 2.0, 3.0]], dtype=dtype)
        assert layer_norm(rows).isfinite().all()
        close(layer_norm(rows).double(), layer_norm(rows.double()), 1e-2)


def test_ln_05_kind_numbers_too_large_to_be_squared_are_named_and_no_norm_is_made_up():
    """Their variance is infinite, and X / infinity would be 0 for all of them."""
    X = double([[1e200, -1e200, 0.0], [1.0, 2.0, 3.0]])
    for norm in (layer_norm, rms_norm, batch_norm, lambda given: norm_over(given, "T", axes="TD"), norm_trace):
        with pytest.raises(FloatingPointError, match="too large for a norm"):
            norm(X)
    spoilt = X.clone()
    spoilt[0] = float("nan")
    assert torch.equal(layer_norm(spoilt)[1], layer_norm(X[1]))  # a row that is no number spoils no other


def test_what_does_not_fit_is_refused_in_words():
    for wrong in (torch.zeros(0), torch.zeros(2, 0), torch.tensor(1.0)):
        with pytest.raises(ValueError, match="at least one number"):
            layer_norm(wrong)
    with pytest.raises(ValueError, match="gamma has one number for each of 7"):
        layer_norm(X, torch.ones(T, D))  # the textbook's slip would pass here
    with pytest.raises(ValueError, match="tokens"):
        batch_norm(torch.ones(3))
    for over in ("", "X", "DX"):
        with pytest.raises(ValueError, match="averages over some of"):
            norm_over(X, over)
    with pytest.raises(ValueError, match="norm is one of"):
        norm_trace(X, "group")
    with pytest.raises(ValueError, match="finite"):
        norm_trace(torch.tensor([1.0, float("nan")]))


def test_the_arguments_are_not_written_to():
    given, before = X.clone(), X.clone()
    for norm in (layer_norm, rms_norm, batch_norm):
        norm(given, GAMMA)
    assert torch.equal(given, before)


# ----------------------------------------------------------------------------------------------------- running statistics


def test_running_statistics_are_torchs():
    theirs = torch.nn.BatchNorm1d(D).double()
    statistics = RunningStatistics.start(D)
    for seed in range(4):
        batch = uniform(11, D, seed=seed) * 2 + seed
        theirs(batch)
        statistics = statistics.after(batch)
    assert statistics.batches == 4
    close(statistics.mean, theirs.running_mean, ATOL)
    close(statistics.variance, theirs.running_var, ATOL)  # the unbiased one
    later = uniform(3, D, seed=9)
    close(batch_norm(later, running=statistics), theirs.eval()(later).detach(), ATOL)
    close(batch_norm(later[:1], running=statistics), theirs(later[:1]).detach(), ATOL)


def test_a_batch_of_one_token_is_its_own_mean():
    one = uniform(1, D, seed=1).requires_grad_()
    Y = batch_norm(one, GAMMA, BETA)
    close(Y.detach(), BETA[None], 0)
    Y.sum().backward()
    assert one.grad.isfinite().all()
    statistics = RunningStatistics.start(D).after(one)
    close(statistics.mean, 0.1 * one.detach()[0], 1e-15)
    close(statistics.variance, np.ones(D), 0)  # one value says nothing about a variance
    for momentum in (-0.1, 1.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            statistics.after(one, momentum)
    with pytest.raises(ValueError, match="tokens"):
        statistics.after(one[0])


# ---------------------------------------------------------------------------------------------------- which axes, which leak


def changed_tokens(norm):
    """Which tokens of the outputs change when token 2 of sequence 1 does."""
    other = X.clone()
    other[1, 2] += torch.arange(D)
    return {(b, t) for b, t in (norm(other) - norm(X)).abs().amax(-1).gt(1e-9).nonzero().tolist()}


def test_a_norm_over_the_wrong_axes_leaks_what_comes_later():
    """The textbook's defect D9: averaged over positions too, token 0 knows of token 2."""
    assert changed_tokens(layer_norm) == {(1, 2)}
    assert changed_tokens(rms_norm) == {(1, 2)}
    assert changed_tokens(lambda x: norm_over(x, "TD")) == {(1, t) for t in range(T)}
    assert changed_tokens(lambda x: norm_over(x, "T")) == {(1, t) for t in range(T)}
    assert changed_tokens(batch_norm) == {(b, t) for b in range(B) for t in range(T)}


# ------------------------------------------------------------------------------------------------------------ formulas


def test_the_printed_formulas_are_the_lessons():
    layer, batch, rms = (norm_trace(X, norm) for norm in ("layer", "batch", "rms"))
    assert {name: layer.latex(name) for name in layer} == {
        "mean": r"\mu = \operatorname{mean}(\mathbf X)",
        "variance": r"\sigma^{2} = \operatorname{var}(\mathbf X)",
        "X_hat": r"\hat{\mathbf X} = \frac{\mathbf X - \mu}{\sqrt{\sigma^{2} + \epsilon}}",
        "Y": r"\mathbf Y = \boldsymbol \gamma \odot \hat{\mathbf X} + \boldsymbol \beta",
    }
    assert batch.latex("mean") == r"\mu = \operatorname{mean}_{BT}(\mathbf X)"
    assert norm_trace(X, over="TD").latex("variance") == r"\sigma^{2} = \operatorname{var}_{TD}(\mathbf X)"
    assert {name: rms.latex(name) for name in rms} == {
        "square": r"q = \operatorname{mean}(\mathbf X \odot \mathbf X)",
        "X_hat": r"\hat{\mathbf X} = \frac{\mathbf X}{\sqrt{q + \epsilon}}",
        "Y": r"\mathbf Y = \boldsymbol \gamma \odot \hat{\mathbf X}",
    }


def test_one_vector_step_by_step():
    trace = norm_trace(double([1, 0, 0, 0]))
    assert trace.plugged("mean", expand=8) == "mean(1.00, 0.00, 0.00, 0.00) = 0.25"
    assert trace.plugged("variance", expand=8, digits=4) == "variance(1.0000, 0.0000, 0.0000, 0.0000) = 0.1875"
    assert trace.plugged("X_hat", unit=0, digits=4) == "(1.0000 - 0.2500) / sqrt(0.1875 + 1.0e-5) = 1.7320"
    assert trace.plugged("Y", unit=1) == "1.00 * (-0.58) + 0.00 = -0.58"
    batch = norm_trace(X, "batch")
    assert batch.plugged("mean", unit=2, expand=15).count(", ") == 14
