"""Pieces of the fast path that its cells share (``kernels.py``). Shapes: T time, B batch, D input width, H hidden width."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar

import torch
from torch import Tensor

Gradients = tuple[Tensor | None, ...]

# slope(gradient, output, grad_input=where): gradient times the slope of the function, read off its own output.
sigmoid_slope = torch.ops.aten.sigmoid_backward.grad_input
tanh_slope = torch.ops.aten.tanh_backward.grad_input
relu_slope = torch.ops.aten.threshold_backward.grad_input


class Work:
    """Memory for the gates of one run, ``values`` (count, *shape), handed on to another run when this one is forgotten.

    Fresh memory of this size comes from the system page by page, which took up to a tenth of a training step. Nothing that a
    caller can see lies in it. The backward pass writes the gradients over the gates; a second one computes the gates again.
    """

    LARGEST = 32_000_000  # bytes; a larger run takes fresh memory and gives it back
    _free: ClassVar[deque[Tensor]] = deque(maxlen=4)

    def __init__(self, count: int, shape: Sequence[int], like: Tensor) -> None:
        size = count * math.prod(shape) * like.element_size()
        self.block = self._found(size) if size <= self.LARGEST else torch.empty(size, dtype=torch.uint8)
        self.values = self.block[:size].view(like.dtype).view(count, *shape)

    def _found(self, size: int) -> Tensor:
        for _ in range(len(self._free)):
            try:
                block = self._free.popleft()
            except IndexError:  # another thread was faster
                break
            if block.numel() >= size:
                return block
            self._free.append(block)
        return torch.empty(size, dtype=torch.uint8)

    def __del__(self) -> None:
        if self.block.numel() <= self.LARGEST:
            self._free.append(self.block)


def first_derivative_only(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """Refuse to be differentiated again. Without this, torch would leave the second derivative out and say nothing."""

    @wraps(backward)
    def checked(ctx: Any, *gradients: Tensor) -> Gradients:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the fast path can be differentiated once only; the equations (unroll) can be as often as needed"
            )
        return backward(ctx, *gradients)

    return checked


def begun(state: Tensor | None) -> Tensor | None:
    """The state a run begins with; None for zeros whose gradient nobody asks for, since their products can be left out."""
    return None if state is None or not (state.requires_grad or bool(state.any())) else state


def steps_of(*tensors: Tensor) -> list[tuple[Tensor, ...]]:
    """Views of each step of tensors (T, ...)."""
    return list(zip(*(tensor.unbind(0) for tensor in tensors), strict=True))


def read_inputs(X: Tensor, W: Tensor, b: Tensor, out: Tensor, scale: float = 1) -> None:
    """out (T, B, H) = scale * (X W + b)."""
    rows = out.view(-1, out.shape[-1])
    if X.is_floating_point():
        torch.addmm(b, X.flatten(0, 1), W, beta=scale, alpha=scale, out=rows)
    else:
        torch.index_select((W + b).mul_(scale), 0, X.flatten(), out=rows)


def tanh_of_half(a: Tensor, minus_one: Tensor) -> None:
    """Replace a by tanh(a / 2) = 2 sigma(a) - 1, in place."""
    torch.add(minus_one, a.sigmoid_(), alpha=2, out=a)


def input_gradients(
    X: Tensor, weights: Sequence[Tensor], dA: Tensor, wanted: bool
) -> tuple[Tensor | None, list[Tensor], list[Tensor]]:
    """Gradients of X (None unless wanted), each W (D, H) and each b (H,), from those of X W + b in dA (blocks, T, B, H)."""
    rows = [block.flatten(0, 1) for block in dA.unbind(0)]
    if not X.is_floating_point():
        tables = [torch.zeros_like(W).index_add_(0, X.flatten(), row) for W, row in zip(weights, rows, strict=True)]
        return None, tables, [table.sum(0) for table in tables]  # every step adds its row to exactly one row of the table
    flat = X.flatten(0, 1).t()
    dX = None
    if wanted:
        dX = rows[0] @ weights[0].t()
        for W, row in zip(weights[1:], rows[1:], strict=True):
            dX.addmm_(row, W.t())
        dX = dX.view(X.shape)
    return dX, [flat @ row for row in rows], [row.sum(0) for row in rows]


def recurrent_gradient(start: Tensor | None, read: Tensor, dA: Tensor) -> Tensor:
    """Gradient of W (H, H) in start W, read_1 W, ..., read_{T-1} W from those of the products dA (T, B, H): one product."""
    dW = read[:-1].flatten(0, 1).t() @ dA[1:].flatten(0, 1)
    return dW if start is None else dW.addmm_(start.t(), dA[0])
