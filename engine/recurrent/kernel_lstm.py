r"""The LSTM's fast path: by hand for large products and for float64, through torch's fused kernel for small ones.

torch's kernel (oneDNN) wants the blocks of all gates below one another in one matrix, in the order i, f, c, o, and the inputs
as one-hot rows. For training, ``WholeLSTM`` moves the parameters to where they lie so; otherwise they are copied in each run.

Shapes: T time, B batch, D input width, H hidden width. X is (T, B, D), or ids (T, B) of one-hot rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from engine.recurrent.kernel_parts import (
    Gradients,
    Work,
    begun,
    first_derivative_only,
    input_gradients,
    read_inputs,
    recurrent_gradient,
    sigmoid_slope,
    steps_of,
    tanh_of_half,
    tanh_slope,
)

Parameters = Mapping[str, Tensor]
Run = tuple[Tensor, tuple[Tensor, Tensor]]

KINDS = ("W_x", "W_h", "b_")
BLOCKS = ("i", "f", "o", "c")
FUSED_ORDER = ("i", "f", "c", "o")
# Where torch's kernel was measured to be the faster one (float32, batch 32, 35 steps, one thread).
FUSED_HIDDEN = 256
FUSED_ONE_HOT = 8_000  # D times H, for ids: beyond it the product with one-hot rows costs more than is gained


def lstm_unroll(X: Tensor, W: Parameters, state: tuple[Tensor, Tensor] | None = None) -> Run:
    """H_all (T, B, H) and the last (H, C) of an LSTM with the parameters W_x*, W_h*, b_* for the blocks i, f, o, c."""
    return (lstm_fused if fused(W, ids=not X.is_floating_point()) else lstm_by_hand)(X, W, state)


def fused(W: Parameters, *, ids: bool) -> bool:
    """Whether an LSTM of these parameters goes through torch's kernel."""
    inputs, hidden = W["W_xi"].shape
    small = hidden <= FUSED_HIDDEN and (not ids or inputs * hidden <= FUSED_ONE_HOT)
    return small and W["W_xi"].dtype == torch.float32 and torch.backends.mkldnn.is_available()


# ----------------------------------------------------------------------------------------------------------- by hand


def _lstm_run(X: Tensor, H0: Tensor | None, C0: Tensor | None, weights: Sequence[Tensor]) -> tuple[Tensor, Work]:
    """H_all (T, B, H), and I, F, O, C_tilde, C and tanh(C) of every step."""
    W_hi, W_hf, W_ho, W_hc = weights[4:8]
    work = Work(6, (*X.shape[:2], W_hi.shape[0]), W_hi)
    gates, C_all, tanh_all = work.values[:4], work.values[4], work.values[5]
    for block, scale in enumerate((1, 1, 1, 2)):
        read_inputs(X, weights[block], weights[8 + block], gates[block], scale)
    H_all, minus_one = torch.empty_like(C_all), W_hi.new_tensor(-1.0)
    H_prev, C_prev = H0, C0
    for I, F, O, C_tilde, four, C, tanh_C, H in steps_of(*gates, gates.transpose(0, 1), C_all, tanh_all, H_all):
        if H_prev is not None:
            I.addmm_(H_prev, W_hi)
            F.addmm_(H_prev, W_hf)
            O.addmm_(H_prev, W_ho)
            C_tilde.addmm_(H_prev, W_hc, alpha=2)
        _tanh = torch.add(minus_one, four.sigmoid_()[3], alpha=2, out=C_tilde)
        torch.mul(I, _tanh, out=C)
        if C_prev is not None:
            C.addcmul_(F, C_prev)
        tanh_of_half(torch.mul(C, 2, out=tanh_C), minus_one)
        H_prev, C_prev = torch.mul(O, tanh_C, out=H), C
    return H_all, work


class _LSTM(Function):
    """X, H0 or None, C0 or None, then W_x*, W_h*, b_* in the order of ``LSTM_BLOCKS`` -> H_all (T, B, H), last C (B, H)."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, H0: Tensor | None, C0: Tensor | None, *weights: Tensor) -> tuple[Tensor, Tensor]:
        H_all, ctx.work = _lstm_run(X, H0, C0, weights)
        ctx.save_for_backward(X, H0, C0, *weights, H_all)
        return H_all, ctx.work.values[4, -1].clone()

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, gradient: Tensor, gradient_C: Tensor) -> Gradients:
        X, H0, C0, *weights, H_all = ctx.saved_tensors
        i_back, f_back, o_back, c_back = (W.t() for W in weights[4:8])
        work, ctx.work = ctx.work or _lstm_run(X, H0, C0, weights)[1], None
        dA_all, C_all, tanh_all = work.values[:4], work.values[4], work.values[5]  # each gate gives way to its gradient
        C_first = torch.zeros_like(H_all[0]) if C0 is None else C0
        C_before = (C_first, *C_all[:-1].unbind(0))
        given = gradient.unbind(0)
        dH, dC, d, e = given[-1].clone(), gradient_C.clone(), torch.empty_like(C_first), torch.empty_like(C_first)
        steps = steps_of(*dA_all, tanh_all)
        for t in range(len(steps) - 1, -1, -1):
            I, F, O, C_tilde, tanh_C = steps[t]
            dC.addcmul_(dH, tanh_slope(O, tanh_C, grad_input=d))
            sigmoid_slope(torch.mul(dH, tanh_C, out=d), O, grad_input=O)
            torch.mul(dC, C_tilde, out=d)
            tanh_slope(torch.mul(dC, I, out=e), C_tilde, grad_input=C_tilde)
            sigmoid_slope(d, I, grad_input=I)
            torch.mul(dC, C_before[t], out=d)
            dC.mul_(F)
            sigmoid_slope(d, F, grad_input=F)
            if t or ctx.needs_input_grad[1]:
                torch.addmm(given[t - 1], I, i_back, out=dH) if t else torch.mm(I, i_back, out=dH)
                dH.addmm_(F, f_back).addmm_(O, o_back).addmm_(C_tilde, c_back)
        dX, dW_x, db = input_gradients(X, weights[:4], dA_all, ctx.needs_input_grad[0])
        recurrent = [recurrent_gradient(H0, H_all, dA) if ctx.needs_input_grad[7] else None for dA in dA_all]
        dH0, dC0 = (value if ctx.needs_input_grad[n] else None for n, value in ((1, dH), (2, dC)))
        return dX, dH0, dC0, *dW_x, *recurrent, *db


def lstm_by_hand(X: Tensor, W: Parameters, state: tuple[Tensor, Tensor] | None = None) -> Run:
    """The LSTM with our own backward through time."""
    H0, C0 = (None, None) if state is None else (begun(state[0]), begun(state[1]))
    H_all, C = _LSTM.apply(X, H0, C0, *(W[kind + block] for kind in KINDS for block in BLOCKS))
    return H_all, (H_all[-1], C)


# -------------------------------------------------------------------------------------------------- torch's own kernel


def lstm_fused(X: Tensor, W: Parameters, state: tuple[Tensor, Tensor] | None = None) -> Run:
    """The LSTM through torch's kernel, from copies of the parameters in torch's order."""
    whole = [torch.cat([W[kind + block].t() for block in FUSED_ORDER]) for kind in KINDS]
    H_all, (H, C) = _kernel(X, whole, None if state is None else (state[0][None], state[1][None]))
    return H_all, (H[0], C[0])


class WholeLSTM:
    """The parameters of an LSTM as torch's kernel holds them, for training: three tensors that lie over the twelve.

    The twelve are moved, in place and with the same values, to where the three lie; from then on a change of the three is a
    change of the twelve. Nothing needs to be copied in a step of training, and the optimiser has three tensors to care for.

    tensors: W_x (4H, D), W_h (4H, H), b (4H,), which require gradients.
    """

    def __init__(self, W: Parameters) -> None:
        self.parts, self.tensors = [], []
        for kind in KINDS:
            blocks = [W[kind + block] for block in FUSED_ORDER]
            whole = torch.cat([block.detach().t() for block in blocks])
            for block, part in zip(blocks, whole.chunk(len(blocks)), strict=True):
                block.data = part.t()
                self.parts.append((block, part))
            self.tensors.append(whole.requires_grad_())

    def run(self, X: Tensor, state: tuple[Tensor, Tensor] | None = None) -> Run:
        """H_all (T, B, H) and the last (H, C), both states (1, B, H).

        Raises:
            RuntimeError: somebody else moved the model's parameters (``model.double()``), so that the three lie over nothing.
        """
        if any(block.data_ptr() != part.data_ptr() for block, part in self.parts):
            raise RuntimeError("the parameters of this model were moved while it was being trained")
        return _kernel(X, self.tensors, state)


def _kernel(X: Tensor, whole: Sequence[Tensor], state: tuple[Tensor, Tensor] | None) -> Run:
    """torch's kernel, which reads one-hot rows and has a second bias; that one is zero."""
    W_x, W_h, b = whole
    if not X.is_floating_point():
        X = W_x.new_zeros(*X.shape, W_x.shape[1]).scatter_(2, X[..., None], 1)
    if state is None:
        state = (W_x.new_zeros(1, X.shape[1], W_h.shape[1]),) * 2
    train = torch.is_grad_enabled()
    H_all, H, C = torch.lstm(X, state, [W_x, W_h, b, torch.zeros_like(b)], True, 1, 0.0, train, False, False)
    return H_all, (H, C)
