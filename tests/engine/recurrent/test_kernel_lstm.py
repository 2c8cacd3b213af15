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
WIDE = 193


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


@pytest.mark.parametrize("hidden", [7, WIDE])
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


@pytest.mark.parametrize("hidden", [7, WIDE])
@pytest.mark.parametrize("begin", ["state", "none"])
def test_both_kernels_agree_to_the_last_digits_in_float64(hidden, begin):
    f64 = torch.float64
    results = [
        everything(kernel, inputs("numbers", dtype=f64), parameters(hidden, dtype=f64), states(hidden, begin, f64))
        for kernel in (kernel_lstm.lstm_fused, kernel_lstm.lstm_by_hand)
    ]
    for number, (one, other) in enumerate(zip(*results, strict=True)):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10, msg=lambda text, n=number: f"result {n}: {text}")


@pytest.mark.parametrize("given", ["numbers", "ids"])
def test_parameters_laid_out_give_the_same_values_and_gradients_without_copies(given):
    plain, laid = parameters(WIDE), parameters(WIDE)
    kernel_lstm.lay_out(laid)
    for name, value in laid.items():
        assert torch.equal(value, plain[name])
        assert value.is_leaf
        assert value.requires_grad
    for kind in kernel_lstm.KINDS:
        blocks = [laid[kind + block] for block in kernel_lstm.FUSED_ORDER]
        below = kernel_lstm.below_one_another(blocks)
        assert below.data_ptr() == blocks[0].data_ptr()
        assert torch.equal(below, torch.cat([block.t() for block in blocks]))
    one = everything(kernel_lstm.lstm_fused, inputs(given), plain, states(WIDE, "state"))
    other = everything(kernel_lstm.lstm_fused, inputs(given), laid, states(WIDE, "state"))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_change_of_a_laid_out_parameter_reaches_the_kernel():
    W, X = parameters(7), inputs("ids")
    kernel_lstm.lay_out(W)
    before = kernel_lstm.lstm_fused(X, W)[0]
    with torch.no_grad():
        W["W_hf"] += 1
    after = kernel_lstm.lstm_fused(X, W)[0]
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, kernel_lstm.lstm_by_hand(X, W)[0], rtol=1e-4, atol=1e-5)


def test_a_change_between_the_passes_is_noticed():
    W = parameters(7)
    kernel_lstm.lay_out(W)
    total = kernel_lstm.lstm_fused(inputs("ids"), W)[0].sum()
    with torch.no_grad():
        W["W_hf"] += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


@pytest.mark.parametrize("change", ["copy", "double", "one replaced", "load"])
def test_a_laid_out_model_stays_a_model_like_any_other(change, tmp_path):
    model = LSTM(D, 13, generator=seeded(3))
    wanted = {name: value.clone() for name, value in model.state_dict().items()}
    kernels.prepare("lstm", dict(model.named_parameters()), ids=True)
    X = inputs("ids")
    expected = kernel_lstm.lstm_by_hand(X, dict(model.named_parameters()))[0]
    if change == "copy":
        model = copy.deepcopy(model)
    elif change == "double":
        model = model.double()
    elif change == "one replaced":
        model.W_hf = torch.nn.Parameter(model.W_hf.detach().clone(memory_format=torch.contiguous_format))
    else:
        model.load_state_dict(wanted)
    assert all(torch.equal(value, wanted[name]) for name, value in model.state_dict().items())
    torch.testing.assert_close(model(X)[0].float(), expected, rtol=1e-4, atol=1e-5)


def test_a_checkpoint_of_a_laid_out_model_holds_its_weights(tmp_path):
    trained = checkpoints.load("recall-bias-2")
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    kernels.prepare("lstm", dict(trained.model.recurrent.named_parameters()), ids=True)
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
    places = [value.data_ptr() for value in W.values()]
    kernels.prepare("lstm", W, ids=ids)
    assert (places != [value.data_ptr() for value in W.values()]) == (kernel == "lstm_fused")


def test_nothing_is_moved_for_the_other_cells():
    W = {"W_hh": uniform(3, 3, seed=1, dtype=torch.float32)}
    place = W["W_hh"].data_ptr()
    for kind in ("rnn", "gru"):
        kernels.prepare(kind, W, ids=True)
    assert W["W_hh"].data_ptr() == place
