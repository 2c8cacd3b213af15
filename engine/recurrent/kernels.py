r"""The fast path of the recurrent models: whole sequences, values and gradients, without a record of the parts.

Each cell is one ``torch.autograd.Function`` with its backward through time written out. It keeps the gates of every step,
walks back over the steps once, and takes the gradient of each weight as one product over all steps at the end. Ids are
looked up (row i of W_x) instead of being multiplied as one-hot rows. The LSTM has a file of its own.

The equations are those of ``rnn.py``, ``gru.py`` and ``lstm.py``; tests hold values and gradients equal to them. One
rewriting: tanh(a) is computed as 2 sigma(2a) - 1, which is the same function and takes a third of the time of torch's tanh on
a CPU; in float32 its error is at most 1.2e-7 absolute (the spacing of float32 below 1 is 6e-8).

Shapes: T time, B batch, D input width, H hidden width; time comes first. X is (T, B, D), or ids (T, B) of one-hot rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from engine.recurrent.kernel_lstm import lstm_unroll
from engine.recurrent.kernel_parts import (
    Gradients,
    Work,
    begun,
    first_derivative_only,
    input_gradients,
    read_inputs,
    recurrent_gradient,
    relu_slope,
    sigmoid_slope,
    steps_of,
    tanh_of_half,
    tanh_slope,
)

State = Tensor | tuple[Tensor, ...]
Parameters = Mapping[str, Tensor]


def run(kind: str, X: Tensor, parameters: Parameters, state: Any = None, **switches: Any) -> tuple[Tensor, State]:
    """One layer in one direction: all states and the state after the last step.

    Args:
        kind: "rnn" (switch ``activation``), "gru" (switches ``reset``, ``update``) or "lstm".
        X: (T, B, D) of the parameters' dtype, or ids (T, B) of int64 from 0 to D - 1. T and B at least 1.
        parameters: by symbol, as in the state_dict of the model: W_xh (D, H), W_hh (H, H), b_h (H,), ...
        state: H (B, H), for "lstm" a pair (H, C); None stands for zeros.

    Returns:
        H_all (T, B, H) and H (B, H), for "lstm" the pair (H, C). Differentiable once, in X, state and parameters.
    """
    if kind == "rnn":
        return rnn_unroll(X, parameters, state, **switches)
    if kind == "gru":
        return gru_unroll(X, parameters, state, **switches)
    if kind == "lstm":
        return lstm_unroll(X, parameters, state, **switches)
    raise ValueError(f"kind is rnn, gru or lstm, not {kind!r}")


# --------------------------------------------------------------------------------------------------------------- RNN

ACTIVATIONS = ("tanh", "relu", "sigmoid")


class _RNN(Function):
    """X, H0 or None, W_xh, W_hh, b_h, activation -> H_all (T, B, H)."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, H0: Tensor | None, W_xh: Tensor, W_hh: Tensor, b_h: Tensor, activation: str) -> Tensor:
        H_all = W_hh.new_empty(*X.shape[:2], W_hh.shape[0])
        minus_one, scale = W_hh.new_tensor(-1.0), 2 if activation == "tanh" else 1
        read_inputs(X, W_xh, b_h, H_all, scale)
        H_prev = H0
        for H in H_all.unbind(0):
            if H_prev is not None:
                H.addmm_(H_prev, W_hh, alpha=scale)
            if activation == "tanh":
                tanh_of_half(H, minus_one)
            elif activation == "relu":
                H.relu_()
            else:
                H.sigmoid_()
            H_prev = H
        ctx.activation = activation
        ctx.save_for_backward(X, H0, W_xh, W_hh, H_all)
        return H_all

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        X, H0, W_xh, W_hh, H_all = ctx.saved_tensors
        work, W_back = Work(1, H_all.shape, H_all), W_hh.t()
        dA_all = work.values
        later: Tensor | None = None
        for H, dA, given in reversed(steps_of(H_all, dA_all[0], gradient)):
            if later is None:
                dA.copy_(given)
            else:
                torch.addmm(given, later, W_back, out=dA)
            if ctx.activation == "tanh":
                tanh_slope(dA, H, grad_input=dA)
            elif ctx.activation == "relu":
                relu_slope(dA, H, 0, grad_input=dA)
            else:
                sigmoid_slope(dA, H, grad_input=dA)
            later = dA
        dH0 = dA_all[0, 0] @ W_back if ctx.needs_input_grad[1] else None
        dX, (dW_xh,), (db_h,) = input_gradients(X, [W_xh], dA_all, ctx.needs_input_grad[0])
        return dX, dH0, dW_xh, recurrent_gradient(H0, H_all, dA_all[0]), db_h, None


def rnn_unroll(X: Tensor, W: Parameters, H0: Tensor | None = None, *, activation: str = "tanh") -> tuple[Tensor, Tensor]:
    """H_all (T, B, H) and the last H (B, H) of an RNN with the parameters W_xh, W_hh, b_h."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is one of {', '.join(ACTIVATIONS)}, not {activation!r}")
    H_all: Tensor = _RNN.apply(X, begun(H0), W["W_xh"], W["W_hh"], W["b_h"], activation)
    return H_all, H_all[-1]


# --------------------------------------------------------------------------------------------------------------- GRU

GRU_NAMES = ("W_xr", "W_xz", "W_xh", "b_r", "b_z", "b_h", "W_hr", "W_hz", "W_hh")


def _gru_run(
    X: Tensor, H0: Tensor | None, b_hh: Tensor | None, replaces: bool, weights: Sequence[Tensor]
) -> tuple[Tensor, Work]:
    """H_all (T, B, H), and R, Z, H_tilde and ``seen`` of every step.

    ``seen`` is what the candidate sees of the old state: R * H_prev when the reset gate acts before the product with W_hh,
    H_prev W_hh + b_hh when it acts after it.
    """
    W_hr, W_hz, W_hh = weights[6:]
    work = Work(4, (*X.shape[:2], W_hh.shape[0]), W_hh)
    gates, seen_all = work.values[:3], work.values[3]
    for block, scale in enumerate((1, 1, 2)):
        read_inputs(X, weights[block], weights[3 + block], gates[block], scale)
    H_all = torch.empty_like(seen_all)
    minus_one = W_hh.new_tensor(-1.0)
    H_prev = H_all.new_zeros(H_all.shape[1:]) if H0 is None else H0
    for t, (R, Z, H_tilde, seen, H, R_and_Z) in enumerate(steps_of(*gates, seen_all, H_all, gates[:2].transpose(0, 1))):
        moving = t > 0 or H0 is not None  # products with a start of zeros are left out
        if moving:
            R.addmm_(H_prev, W_hr)
            Z.addmm_(H_prev, W_hz)
        R_and_Z.sigmoid_()
        if b_hh is not None:
            torch.addmm(b_hh, H_prev, W_hh, out=seen) if moving else seen.copy_(b_hh)
            H_tilde.addcmul_(R, seen, value=2)
        else:
            torch.mul(R, H_prev, out=seen)
            if moving:
                H_tilde.addmm_(seen, W_hh, alpha=2)
        tanh_of_half(H_tilde, minus_one)
        start, end = (H_prev, H_tilde) if replaces else (H_tilde, H_prev)
        H_prev = torch.lerp(start, end, Z, out=H)  # start + Z (end - start)
    return H_all, work


class _GRU(Function):
    """X, H0 or None, b_hh (None: reset before the product), Z replaces?, the parameters of ``GRU_NAMES`` -> H_all (T, B, H)."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, H0: Tensor | None, b_hh: Tensor | None, replaces: bool, *weights: Tensor) -> Tensor:
        H_all, ctx.work = _gru_run(X, H0, b_hh, replaces, weights)
        ctx.replaces = replaces
        ctx.save_for_backward(X, H0, b_hh, *weights, H_all)
        return H_all

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        X, H0, b_hh, *weights, H_all = ctx.saved_tensors
        r_back, z_back, h_back = (W.t() for W in weights[6:])
        work, ctx.work = ctx.work or _gru_run(X, H0, b_hh, ctx.replaces, weights)[1], None
        # From here on each gate gives way to the gradient of its argument, and, when the reset gate acts after the product,
        # the product to its own gradient.
        dA_all, seen_all = work.values[:3], work.values[3]
        H_first = torch.zeros_like(H_all[0]) if H0 is None else H0
        dH, other, d = torch.zeros_like(H_first), torch.empty_like(H_first), torch.empty_like(H_first)
        steps = steps_of(*dA_all, seen_all, gradient)
        for t in range(len(steps) - 1, -1, -1):
            R, Z, H_tilde, seen, given = steps[t]
            H_prev = H_all[t - 1] if t else H_first
            start, end = (H_prev, H_tilde) if ctx.replaces else (H_tilde, H_prev)
            d_end = torch.mul(dH.add_(given), Z, out=other)
            sigmoid_slope(torch.sub(end, start, out=d).mul_(dH), Z, grad_input=Z)
            d_start = dH.sub_(d_end)
            other, dH = (d_end, d_start) if ctx.replaces else (d_start, d_end)
            dA_h = tanh_slope(other, H_tilde, grad_input=H_tilde)
            if b_hh is not None:
                torch.mul(dA_h, seen, out=d)
                dH.addmm_(torch.mul(dA_h, R, out=seen), h_back)
            else:
                torch.mm(dA_h, h_back, out=d)
                dH.addcmul_(d, R)
                d.mul_(H_prev)
            dA_r = sigmoid_slope(d, R, grad_input=R)
            if t or ctx.needs_input_grad[1]:
                dH.addmm_(dA_r, r_back).addmm_(Z, z_back)
        dX, dW_x, db = input_gradients(X, weights[:3], dA_all, ctx.needs_input_grad[0])
        if b_hh is not None:
            dW_hh, db_hh = recurrent_gradient(H0, H_all, seen_all), seen_all.sum((0, 1))
        else:
            dW_hh, db_hh = seen_all.flatten(0, 1).t() @ dA_all[2].flatten(0, 1), None
        recurrent = (*(recurrent_gradient(H0, H_all, dA) for dA in dA_all[:2]), dW_hh)
        return dX, dH if ctx.needs_input_grad[1] else None, db_hh, None, *dW_x, *db, *recurrent


def gru_unroll(
    X: Tensor, W: Parameters, H0: Tensor | None = None, *, reset: str = "before", update: str = "keeps"
) -> tuple[Tensor, Tensor]:
    """H_all (T, B, H) and the last H (B, H) of a GRU with the parameters of ``GRU_NAMES``, and b_hh when reset is "after"."""
    if reset not in ("before", "after") or update not in ("keeps", "replaces"):
        raise ValueError(f"reset is before or after and update keeps or replaces, not {reset!r} and {update!r}")
    weights, b_hh = [W[name] for name in GRU_NAMES], W["b_hh"] if reset == "after" else None
    H_all: Tensor = _GRU.apply(X, begun(H0), b_hh, update == "replaces", *weights)
    return H_all, H_all[-1]
