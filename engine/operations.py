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
    """How one operation is printed. ``style``: ``function`` f(x), ``root`` a radical, ``row`` acts on a whole row."""

    name: str
    latex: str
    text: str
    style: str = "function"


def sigmoid(a: Tensor) -> Tensor:
    """1 / (1 + exp(-a)), elementwise; values in the open interval (0, 1)."""
    return torch.sigmoid(a)


def tanh(a: Tensor) -> Tensor:
    """Hyperbolic tangent, elementwise; values in (-1, 1)."""
    return torch.tanh(a)


def relu(a: Tensor) -> Tensor:
    """max(a, 0), elementwise."""
    return torch.relu(a)


def exp(a: Tensor) -> Tensor:
    """e to the power a, elementwise."""
    return torch.exp(a)


def sqrt(a: Tensor) -> Tensor:
    """Square root, elementwise."""
    return torch.sqrt(a)


def softmax(a: Tensor) -> Tensor:
    """exp(a) divided by its sum over the last axis: positive weights that sum to 1."""
    return torch.softmax(a, dim=-1)


OPERATIONS: Final[dict[str, Operation]] = {
    "sigmoid": Operation(name="sigmoid", latex=r"\sigma", text="σ"),
    "tanh": Operation(name="tanh", latex=r"\tanh", text="tanh"),
    "relu": Operation(name="relu", latex=r"\operatorname{ReLU}", text="ReLU"),
    "exp": Operation(name="exp", latex=r"\exp", text="exp"),
    "sqrt": Operation(name="sqrt", latex=r"\sqrt", text="√", style="root"),
    "softmax": Operation(name="softmax", latex=r"\operatorname{softmax}", text="softmax", style="row"),
}

FUNCTIONS: Final[dict[str, Callable[..., Tensor]]] = {
    "sigmoid": sigmoid,
    "tanh": tanh,
    "relu": relu,
    "exp": exp,
    "sqrt": sqrt,
    "softmax": softmax,
}
