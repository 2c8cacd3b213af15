"""The short list of operations an equation may use, and how each is written.

An equation (``engine.equation``) is one return expression over these and over ``@ + - * / ** .mT``. Anything else is
refused at import, so a formula can never be printed that is not what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Operation:
    """How one operation is printed, and where a cell of its result comes from.

    ``style``: ``function`` f(x), ``root`` a radical, ``row`` f(..., x, ...) for one cell, ``bars`` |x|, ``index`` x with the
    operation as its index. Arguments after the first ``main`` are written as the operation's index: heads_N(x).

    ``cells``: ``each`` cell comes from the same cell of the arguments, a ``row`` function reads it among its row, ``move`` only
    puts numbers elsewhere, ``sum`` makes one number of many.
    """

    name: str
    latex: str
    text: str
    style: str = "function"
    main: int | None = None
    cells: str = "each"


# ------------------------------------------------------------------------------------------------------ each number


def sigmoid(a: Tensor) -> Tensor:
    """1 / (1 + exp(-a)), elementwise; values in the open interval (0, 1)."""
    return torch.sigmoid(a)


def tanh(a: Tensor) -> Tensor:
    """Hyperbolic tangent, elementwise; values in (-1, 1)."""
    return torch.tanh(a)


def relu(a: Tensor) -> Tensor:
    """max(a, 0), elementwise."""
    return torch.relu(a)


def gelu(a: Tensor) -> Tensor:
    """a times the share of a standard normal distribution that lies below a, elementwise (the exact form)."""
    return torch.nn.functional.gelu(a)


def exp(a: Tensor) -> Tensor:
    """e to the power a, elementwise."""
    return torch.exp(a)


def sqrt(a: Tensor) -> Tensor:
    """Square root, elementwise."""
    return torch.sqrt(a)


def sin(a: Tensor) -> Tensor:
    """Sine of an angle in radians, elementwise."""
    return torch.sin(a)


def cos(a: Tensor) -> Tensor:
    """Cosine of an angle in radians, elementwise."""
    return torch.cos(a)


def absolute(a: Tensor) -> Tensor:
    """|a|, elementwise."""
    return torch.abs(a)


def log(a: Tensor) -> Tensor:
    """Natural logarithm, elementwise; minus infinity, with gradient 0, where a is not positive."""
    positive = a > 0
    return torch.where(positive, torch.log(torch.where(positive, a, 1.0)), float("-inf"))


def within(a: Tensor, reach: Tensor) -> Tensor:
    """1 where |a| is at most ``reach``, else 0."""
    return (torch.abs(a) <= reach).to(a.dtype)


# ------------------------------------------------------------------------------------------------------- whole rows


def softmax(a: Tensor) -> Tensor:
    """exp(a) divided by its sum over the last axis: positive weights that sum to 1."""
    return torch.softmax(a, dim=-1)


def masked_softmax(S: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the last axis, over what ``mask`` keeps (True, broadcastable); what it hides has weight exactly 0.

    A row that keeps nothing gives zeros, and its gradient is 0. A score of minus infinity counts as hidden; scores of plus
    infinity share the weight among themselves. The arguments are not written to, and a hidden score may even be NaN. Raises
    ``ValueError`` for a mask of other numbers than 0 and 1.
    """
    scores = torch.as_tensor(S)
    if not scores.is_floating_point():
        scores = scores.to(torch.get_default_dtype())
    if mask is not None:
        keep = torch.as_tensor(mask)
        if keep.dtype != torch.bool and bool(((keep != 0) & (keep != 1)).any()):
            raise ValueError(
                "a mask says True (keep) or False, or 1 and 0; it is no summand of the scores and no list of lengths"
            )
        scores = torch.where(keep == 1, scores, float("-inf"))
    if scores.shape[-1] == 0:
        return scores
    top = scores.amax(dim=-1, keepdim=True).detach()
    endless = top == float("inf")
    # exp sees finite numbers only, so that the form which is not chosen has the gradient 0 and not 0 * inf.
    shifted = torch.where(endless, 0.0, scores) - torch.where(top.isinf(), 0.0, top)
    weights = torch.where(endless, (scores == float("inf")).to(scores.dtype), torch.exp(shifted))
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total)


def or_nearest(A: Tensor, D: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights A; a row of zeros (nothing within reach) goes to the key at the least |D| that is kept, shared by equals."""
    distance = torch.abs(D) if mask is None else torch.where(mask, torch.abs(D), float("inf"))
    nearest = (distance == distance.amin(dim=-1, keepdim=True)).to(A.dtype)
    return torch.where(A.sum(dim=-1, keepdim=True) == 0, nearest / nearest.sum(dim=-1, keepdim=True), A)


# ------------------------------------------------------------------------------------------- many numbers to one number


def mean(a: Tensor, over: Tensor | None = None) -> Tensor:
    """The mean over the last axis, or over those in ``over`` (-1 is the last); they stay, with size 1.

    Measured from one of the numbers: exact where all are equal, and no digits are lost far from 0.
    """
    axes = [-1] if over is None else over.tolist()
    point = a.detach()
    for axis in axes:
        point = point.narrow(axis, 0, 1)
    return point + (a - point).mean(dim=axes, keepdim=True)


def variance(a: Tensor, over: Tensor | None = None) -> Tensor:
    """The mean squared distance from the mean (divided by n, not n - 1); axes as in ``mean``. Exactly 0 for equal numbers."""
    axes = [-1] if over is None else over.tolist()
    point = a.detach()
    for axis in axes:
        point = point.narrow(axis, 0, 1)
    rest = a - point
    return (rest - rest.mean(dim=axes, keepdim=True)).square().mean(dim=axes, keepdim=True)


def total(a: Tensor) -> Tensor:
    """The sum over the last axis."""
    return a.sum(dim=-1)


def take(W: Tensor, i: Tensor) -> Tensor:
    """Rows i of a table W (rows, width)."""
    return W[i.to(torch.int64).flatten()]


# --------------------------------------------------------------------------------------------- numbers put elsewhere


def heads(a: Tensor, N: Tensor) -> Tensor:
    """N column blocks (..., T, N * K) as N heads side by side (..., N, T, K)."""
    return a.reshape(*a.shape[:-1], int(N), -1).transpose(-3, -2)


def concat(a: Tensor) -> Tensor:
    """Heads (..., N, T, K) as column blocks (..., T, N * K): the inverse of ``heads``."""
    return a.transpose(-3, -2).flatten(-2)


def blocks(W: Tensor, N: Tensor) -> Tensor:
    """N row blocks of a matrix (N * K, D) as N matrices (N, K, D)."""
    return W.reshape(int(N), -1, W.shape[-1])


def by_query(a: Tensor) -> Tensor:
    """Row t of a (..., T, H) set beside every key: (..., T, 1, H)."""
    return a.unsqueeze(-2)


def by_key(a: Tensor) -> Tensor:
    """Row s of a (..., S, H) set beside every query: (..., 1, S, H)."""
    return a.unsqueeze(-3)


def interleave(a: Tensor, b: Tensor) -> Tensor:
    """Columns a_0 b_0 a_1 b_1 ...; b may have one column less."""
    width = a.shape[-1] + b.shape[-1]
    filled = torch.nn.functional.pad(b, (0, a.shape[-1] - b.shape[-1]))
    return torch.stack((a, filled), dim=-1).flatten(-2)[..., :width]


def turn(a: Tensor) -> Tensor:
    """Each pair (x_0, x_1) of neighbouring columns a quarter turn on: (-x_1, x_0); a last column without partner gives 0."""
    even = a.shape[-1] // 2 * 2
    pairs = a[..., :even].reshape(*a.shape[:-1], -1, 2)
    turned = torch.stack((-pairs[..., 1], pairs[..., 0]), dim=-1).flatten(-2)
    return torch.nn.functional.pad(turned, (0, a.shape[-1] - even))


def _named(name: str) -> str:
    return rf"\operatorname{{{name}}}"


OPERATIONS: Final[dict[str, Operation]] = {
    operation.name: operation
    for operation in (
        Operation(name="sigmoid", latex=r"\sigma", text="σ"),
        Operation(name="tanh", latex=r"\tanh", text="tanh"),
        Operation(name="relu", latex=_named("ReLU"), text="ReLU"),
        Operation(name="gelu", latex=_named("GELU"), text="GELU"),
        Operation(name="exp", latex=r"\exp", text="exp"),
        Operation(name="sqrt", latex=r"\sqrt", text="√", style="root"),
        Operation(name="sin", latex=r"\sin", text="sin"),
        Operation(name="cos", latex=r"\cos", text="cos"),
        Operation(name="absolute", latex="", text="|·|", style="bars"),
        Operation(name="log", latex=r"\log", text="log"),
        Operation(name="within", latex=r"\mathbb 1", text="𝟙", main=1),
        Operation(name="softmax", latex=_named("softmax"), text="softmax", style="row", cells="row"),
        Operation(name="masked_softmax", latex=_named("softmax"), text="softmax", style="row", main=1, cells="row"),
        Operation(name="or_nearest", latex=_named("nearest"), text="nearest", style="row", main=1, cells="row"),
        Operation(name="mean", latex=_named("mean"), text="mean", main=1, cells="sum"),
        Operation(name="variance", latex=_named("var"), text="var", main=1, cells="sum"),
        Operation(name="total", latex=r"\sum", text="Σ", cells="sum"),
        Operation(name="take", latex=_named("row"), text="row", main=1, cells="sum"),
        Operation(name="turn", latex=_named("turn"), text="turn", cells="sum"),
        Operation(name="heads", latex=_named("heads"), text="heads", main=1, cells="move"),
        Operation(name="concat", latex=_named("concat"), text="concat", cells="move"),
        Operation(name="blocks", latex=_named("blocks"), text="blocks", main=1, cells="move"),
        Operation(name="by_query", latex="t", text="t", style="index", cells="move"),
        Operation(name="by_key", latex="s", text="s", style="index", cells="move"),
        Operation(name="interleave", latex=_named("interleave"), text="interleave", cells="move"),
    )
}

FUNCTIONS: Final[dict[str, Callable[..., Tensor]]] = {
    function.__name__: function
    for function in (
        *(sigmoid, tanh, relu, gelu, exp, sqrt, sin, cos, absolute, log, within),
        *(softmax, masked_softmax, or_nearest, mean, variance, total, take, turn),
        *(heads, concat, blocks, by_query, by_key, interleave),
    )
}
