r"""The loss of a language model as one function: output layer, softmax and cross-entropy, with their gradient written out.

With scores Y = H W_hq + b_q, P = softmax(Y) and N targets that count, the loss is the mean of -ln P[target], and

dY = (P - one_hot(target)) / N,  dW_hq = H^T dY,  db_q = sum of dY,  dH = dY W_hq^T.

The probabilities are made once and turned into dY where they lie. Tests hold it equal to torch's functions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from engine.recurrent.kernel_parts import Gradients, first_derivative_only

IGNORED = -100  # a target that does not count; the value that torch's cross-entropy leaves out


class _NextTokenLoss(Function):
    """H (N, hidden), W_hq, b_q, targets (N,) -> loss. Scores lie as (V, N): the few rows make all the products faster."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, W_hq: Tensor, b_q: Tensor, targets: Tensor) -> Tensor:
        log_P = torch.log_softmax(torch.addmm(b_q[:, None], W_hq.t(), H.t()), dim=0)
        ignored = targets == IGNORED
        answer = targets.masked_fill(ignored, 0)[None]
        number = (~ignored).sum()
        ctx.save_for_backward(H, W_hq, answer, ignored, number, log_P)
        return -(log_P.gather(0, answer).masked_fill_(ignored, 0).sum() / number)

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        H, W_hq, answer, ignored, number, log_P = ctx.saved_tensors
        dY = log_P.exp()
        dY.scatter_add_(0, answer, dY.new_full((), -1.0).expand_as(answer))
        dY.mul_(gradient / number).masked_fill_(ignored, 0)
        return dY.t() @ W_hq.t(), (dY @ H).t(), dY.sum(1), None


def next_token_loss(H_all: Tensor, W_hq: Tensor, b_q: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log-probability of the targets that count, nats; NaN when none does.

    Shape:
        H_all (T, B, H), W_hq (H, V), b_q (V,), targets (T, B) of int64, ``IGNORED`` where no answer is wanted -> ()
    """
    loss: Tensor = _NextTokenLoss.apply(H_all.flatten(0, 1), W_hq, b_q, targets.flatten())
    return loss
