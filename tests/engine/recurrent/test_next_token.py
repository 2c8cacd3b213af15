"""The fused loss of the next token against torch's linear layer and cross-entropy, values and gradients."""

import pytest
import torch
from torch.nn import functional

from engine.recurrent.next_token import IGNORED, next_token_loss
from tests.support import seeded, uniform

T, B, H, V = 11, 3, 7, 5


def parts(dtype=torch.float64, scale=1.0):
    tensors = [uniform(T, B, H, seed=1), uniform(H, V, seed=2) * scale, uniform(V, seed=3) * scale]
    return [tensor.to(dtype).requires_grad_() for tensor in tensors]


def by_torch(H_all, W_hq, b_q, targets):
    return functional.cross_entropy((H_all @ W_hq + b_q).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


@pytest.mark.parametrize("ignored", [0, 1, 20, T * B - 1])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_loss_and_gradients_are_those_of_torch(ignored, scale):
    targets = torch.randint(V, (T, B), generator=seeded(4))
    targets.view(-1)[torch.randperm(T * B, generator=seeded(5))[:ignored]] = IGNORED
    found, wanted = [], []
    for function, results in ((next_token_loss, found), (by_torch, wanted)):
        tensors = parts(scale=scale)
        loss = function(*tensors, targets)
        results += [loss, *torch.autograd.grad(1.7 * loss, tensors)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_finite_differences():
    targets = torch.randint(V, (T, B), generator=seeded(4))
    targets[2] = IGNORED
    assert torch.autograd.gradcheck(lambda *tensors: next_token_loss(*tensors, targets), parts())


def test_float32_differs_by_rounding_only():
    targets = torch.randint(V, (T, B), generator=seeded(4))
    torch.testing.assert_close(
        next_token_loss(*parts(torch.float32), targets).double(), next_token_loss(*parts(), targets), rtol=1e-6, atol=0
    )


def test_a_second_backward_pass_finds_the_same_and_a_second_derivative_is_refused():
    tensors = parts()
    loss = next_token_loss(*tensors, torch.randint(V, (T, B), generator=seeded(4)))
    first = torch.autograd.grad(loss, tensors, retain_graph=True)
    assert all(
        torch.equal(one, other) for one, other in zip(first, torch.autograd.grad(loss, tensors, retain_graph=True), strict=True)
    )
    with pytest.raises(RuntimeError, match="differentiated once only"):
        torch.autograd.grad(loss, tensors, create_graph=True)


def test_numbers_that_are_none_are_not_hidden():
    tensors = parts()
    with torch.no_grad():
        tensors[0][3, 1, 2] = float("inf")
        assert not next_token_loss(*tensors, torch.zeros(T, B, dtype=torch.int64)).isfinite()
        assert next_token_loss(*parts(), torch.full((T, B), IGNORED)).isnan()


@pytest.mark.parametrize("target", [V, -1])
def test_a_target_outside_the_vocabulary_is_refused(target):
    with pytest.raises((IndexError, RuntimeError)):
        next_token_loss(*parts(), torch.full((T, B), target))
