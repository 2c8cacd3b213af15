"""The two kernels of the LSTM: they agree, each is taken where it is faster, and parameters laid out for one are the same."""

import copy

import pytest
import torch
from torch import Tensor

from engine.recurrent import kernel_lstm, kernels
from engine.recurrent.lstm import LSTM
from engine.training import checkpoints
from tests.support import seeded, uniform

T, B, D = 11, 3, 5


def parameters(hidden: int, inputs: int = D, dtype=torch.float32, scale: float = 0.4) -> dict[str, Tensor]:
    shapes = {"W_x": (inputs, hidden), "W_h": (hidden, hidden), "b_": (hidden,)}
    return {
        kind + block: uniform(*shape, seed=10 * k + j, low=-scale, high=scale, dtype=dtype).requires_grad_()
        for k, (kind, shape) in enumerate(shapes.items())
        for j, block in enumerate(kernel_lstm.BLOCKS)
    }


def inputs(given: str, steps: int = T, dtype=torch.float32) -> Tensor:
    if given == "ids":
        return torch.randint(D, (steps, B), generator=seeded(5))
    return uniform(steps, B, D, seed=6, dtype=dtype).requires_grad_()


def states(hidden: int, begin: str, dtype=torch.float32) -> tuple[Tensor, Tensor] | None:
    if begin == "none":
        return None
    H, C = (uniform(B, hidden, seed=seed, dtype=dtype) for seed in (50, 51))
    if begin == "zeros":
        H, C = torch.zeros_like(H), torch.zeros_like(C)
    return (H, C) if begin == "zeros" else (H.requires_grad_(), C.requires_grad_())


def everything(kernel, X, W, state) -> list[Tensor]:
    """Values, and gradients of a number that depends on all of them."""
    H_all, end = kernel(X, W, state)
    total = sum((part * uniform(*part.shape, seed=70 + k, dtype=part.dtype)).sum() for k, part in enumerate((H_all, *end)))
    leaves = [each for each in (*W.values(), X, *(state or ())) if each.requires_grad]
    return [H_all, *end, *torch.autograd.grad(total, leaves)]


@pytest.mark.parametrize("hidden", [7, 193])
@pytest.mark.parametrize("given", ["numbers", "ids"])
@pytest.mark.parametrize("begin", ["state", "zeros", "none"])
@pytest.mark.parametrize("steps", [1, 2, T])
def test_both_kernels_agree(hidden, given, begin, steps):
    results = [
        everything(kernel, inputs(given, steps), parameters(hidden), states(hidden, begin))
        for kernel in (kernel_lstm.lstm_fused, kernel_lstm.lstm_by_hand)
    ]
    for number, (one, other) in enumerate(zip(*results, strict=True)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=3e-5, msg=lambda text, n=number: f"result {n}: {text}")


@pytest.mark.parametrize("begin", ["state", "none"])
def test_both_kernels_agree_to_the_last_digits_in_float64(begin):
    f64 = torch.float64
    results = [
        everything(kernel, inputs("numbers", dtype=f64), parameters(7, dtype=f64), states(7, begin, f64))
        for kernel in (kernel_lstm.lstm_fused, kernel_lstm.lstm_by_hand)
    ]
    for number, (one, other) in enumerate(zip(*results, strict=True)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10, msg=lambda text, n=number: f"result {n}: {text}")


def test_half_a_state_of_zeros_is_read_rightly():
    for H, C in ((states(7, "state")[0], torch.zeros(B, 7)), (torch.zeros(B, 7), states(7, "state")[1])):
        one, other = (
            kernel(inputs("ids"), parameters(7), (H, C))[0] for kernel in (kernel_lstm.lstm_fused, kernel_lstm.lstm_by_hand)
        )
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


# -------------------------------------------------------------------------------- the parameters as torch's kernel holds them


@pytest.mark.parametrize("given", ["numbers", "ids"])
@pytest.mark.parametrize("begin", ["state", "none"])
def test_the_three_tensors_have_the_values_and_the_gradients_of_the_twelve(given, begin):
    plain, W = parameters(13), parameters(13)
    whole = kernel_lstm.WholeLSTM(W)
    assert all(torch.equal(value, plain[name]) for name, value in W.items())
    results = []
    for run in (lambda X, state: kernel_lstm.lstm_fused(X, plain, state), whole.run):
        state, X = states(13, begin), inputs(given)
        given_state = state if run != whole.run or state is None else (state[0][None], state[1][None])
        H_all, end = run(X, given_state)
        total = sum(
            (part * uniform(*part.shape[-2:], seed=70 + k, dtype=part.dtype)).sum() for k, part in enumerate((H_all, *end))
        )
        leaves = list(plain.values()) if run != whole.run else whole.tensors
        results.append((H_all, *(part.view(B, 13) for part in end), torch.autograd.grad(total, [*leaves, *(state or ())])))
    (*one, gradients), (*other, whole_gradients) = results
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    found = dict(zip(plain, gradients, strict=False))
    for kind, gradient in zip(kernel_lstm.KINDS, whole_gradients, strict=False):
        assert torch.equal(gradient, torch.cat([found[kind + block].t() for block in kernel_lstm.FUSED_ORDER]))
    assert all(torch.equal(a, b) for a, b in zip(gradients[12:], whole_gradients[3:], strict=True))


def test_a_change_of_one_is_a_change_of_the_other():
    W, X = parameters(7), inputs("ids")
    whole = kernel_lstm.WholeLSTM(W)
    before = whole.run(X)[0]
    with torch.no_grad():
        W["W_hf"] += 1
        whole.tensors[2] -= 1
    after = whole.run(X)[0]
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, kernel_lstm.lstm_by_hand(X, W)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("change", ["copy", "double", "one replaced", "load"])
def test_a_model_whose_parameters_were_moved_stays_a_model_like_any_other(change):
    model = LSTM(D, 13, generator=seeded(3))
    wanted = {name: value.clone() for name, value in model.state_dict().items()}
    kernel_lstm.WholeLSTM(dict(model.named_parameters()))
    X = inputs("ids")
    expected = kernel_lstm.lstm_by_hand(X, dict(model.named_parameters()))[0]
    if change == "copy":
        model = copy.deepcopy(model)
    elif change == "double":
        model = model.double()
    elif change == "one replaced":
        model.W_hf = torch.nn.Parameter(model.W_hf.detach().clone())
    else:
        model.load_state_dict(wanted)
    assert all(torch.equal(value, wanted[name]) for name, value in model.state_dict().items())
    torch.testing.assert_close(model(X)[0].float(), expected, rtol=1e-4, atol=1e-5)


def test_parameters_moved_by_somebody_else_are_noticed():
    model = LSTM(D, 13, generator=seeded(3))
    whole = kernel_lstm.WholeLSTM(dict(model.named_parameters()))
    model.float()  # does nothing
    whole.run(inputs("ids"))
    model.double()
    with pytest.raises(RuntimeError, match="were moved"):
        whole.run(inputs("ids"))


def test_a_checkpoint_of_such_a_model_holds_its_weights(tmp_path):
    trained = checkpoints.load("recall-bias-2")
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    kernel_lstm.WholeLSTM(dict(trained.model.recurrent.named_parameters()))
    parts = {"config": trained.config, "data": {}, "training": {}, "losses": {}}
    checkpoints.save("again", trained.model, trained.vocabulary, **parts, folder=tmp_path)
    again = checkpoints.load("again", tmp_path)
    assert again.weights_sha256 == trained.weights_sha256
    assert all(torch.equal(value, before[name]) for name, value in again.model.state_dict().items())


@pytest.mark.parametrize(
    ("width", "hidden", "ids", "dtype", "kernel"),
    [
        (28, 64, True, torch.float32, "lstm_fused"),
        (28, 256, True, torch.float32, "lstm_fused"),
        (28, 512, True, torch.float32, "lstm_by_hand"),
        (28, 64, True, torch.float64, "lstm_by_hand"),
        (500, 64, True, torch.float32, "lstm_by_hand"),
        (500, 64, False, torch.float32, "lstm_fused"),
        (5, 512, False, torch.float32, "lstm_by_hand"),
    ],
)
def test_the_kernel_is_taken_that_is_faster_at_this_size(monkeypatch, width, hidden, ids, dtype, kernel):
    W = parameters(hidden, width, dtype)
    X = torch.zeros(2, 1, dtype=torch.int64) if ids else torch.zeros(2, 1, width, dtype=dtype)
    taken = []
    for name in ("lstm_fused", "lstm_by_hand"):
        monkeypatch.setattr(kernel_lstm, name, lambda *_, name=name: taken.append(name))
    kernels.run("lstm", X, W)
    assert taken == [kernel]


def test_without_torchs_kernel_everything_is_made_by_hand(monkeypatch):
    assert kernel_lstm.fused(parameters(7), ids=True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not kernel_lstm.fused(parameters(7), ids=True)
