r"""Multi-head attention, Vaswani et al. 2017, section 3.2.2.

Q = heads_N(X W_q),  K and V likewise,  S = Q K^T / sqrt(d_k),  A = softmax_M(S),  Z = A V,  O = concat(Z) W_o

Each head has weights of its own: head n owns the n-th block of columns of W_q, W_k and W_v, and the n-th block of rows of W_o.
O is the sum over the heads of ``O_n`` = Z_n W_o,n (and of the bias). d_k is the width of a head, not of the model.

Departures from other texts: no biases unless asked for (torch has them unless asked not to); torch keeps W_q, W_k and W_v
transposed, below each other in one matrix; the weights shown are always those before dropout, of which there is none here.
``relative`` puts positions into the scores: "rotary" turns queries and keys (Su et al. 2021), "alibi" takes away from the
scores what grows with the distance (Press et al. 2022).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.attention.heads import multihead_circuit, multihead_table
from engine.attention.masks import empty_rows_note, fitted, kept
from engine.attention.positions import alibi, turning_angles
from engine.equation import Circuit, Intervention, Interventions, Values, set_to
from engine.trace import Trace


def head_choices(width: int, near: int | None = None, count: int = 6) -> list[int]:
    """The numbers of heads that a width can be split into: all, or the ``count`` nearest to ``near``, in order."""
    divisors = [n for n in range(1, width + 1) if width % n == 0]
    if near is None:
        return divisors
    return sorted(sorted(divisors, key=lambda n: (abs(n - near), n))[:count])


def without_heads(*numbers: int) -> dict[str, Intervention]:
    """The change that removes heads: what they read is set to 0."""
    return {"Z": set_to(0.0, head=numbers)}


def only_heads(*numbers: int, heads: int) -> dict[str, Intervention]:
    """The change that keeps only some of ``heads`` heads. Nothing to change where all are kept."""
    others = tuple(n for n in range(heads) if n not in numbers)
    return without_heads(*others) if others else {}


class MultiHeadAttention(nn.Module):
    """Multi-head attention with every number kept.

    ``width`` is the width of queries and of the output; ``key_width`` and ``value_width`` are those of the sequences that keys
    and values are made of, where they differ (as torch's ``kdim`` and ``vdim``). A head is ``width / heads`` wide unless
    ``head_width`` says otherwise. ``scaled=False`` leaves out the division by sqrt(d_k).

    Shape:
        X (B, T, width) or (T, width) -> O of the same shape; keys (B, S, key_width), values (B, S, value_width).
        In the trace: Q, K (B, N, T, K), V, Z (B, N, T, U), S, A (B, N, T, S), O_n (B, N, T, width).
        W_q (width, N * K), W_k (key_width, N * K), W_v (value_width, N * U), W_o (N * U, width).
    """

    W_q: nn.Parameter
    W_k: nn.Parameter
    W_v: nn.Parameter
    W_o: nn.Parameter
    b_q: nn.Parameter | None
    b_k: nn.Parameter | None
    b_v: nn.Parameter | None
    b_o: nn.Parameter | None

    def __init__(
        self,
        width: int,
        heads: int,
        key_width: int | None = None,
        value_width: int | None = None,
        bias: bool = False,
        *,
        head_width: int | None = None,
        scaled: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if width < 1 or heads < 1:
            raise ValueError(f"width and heads are at least 1, not {width} and {heads}")
        if head_width is None and width % heads:
            near = ", ".join(map(str, head_choices(width, heads)))
            raise ValueError(
                f"width {width} does not split into {heads} heads: {width} = {width // heads} x {heads} + {width % heads}. "
                f"Near it are {near} heads"
            )
        self.width, self.heads, self.scaled = width, heads, scaled
        self.key_width, self.value_width = key_width or width, value_width or width
        self.head_width = head_width or width // heads
        inner = heads * self.head_width
        generator = generator or torch.Generator().manual_seed(0)
        for name, rows, columns in (
            ("W_q", width, inner),
            ("W_k", self.key_width, inner),
            ("W_v", self.value_width, inner),
            ("W_o", inner, width),
        ):
            bound = math.sqrt(6 / (rows + columns))
            weight = torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)
            self.register_parameter(name, nn.Parameter(weight))
        for name, size in (("b_q", inner), ("b_k", inner), ("b_v", inner), ("b_o", width)):
            self.register_parameter(name, nn.Parameter(torch.zeros(size)) if bias else None)

    @property
    def bias(self) -> bool:
        """Whether the four products have a bias."""
        return self.b_q is not None

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return next(self.parameters()).dtype

    def weights(self) -> Values:
        """The parameters by symbol."""
        return dict(self.named_parameters())

    def sizes(self) -> Values:
        """The number of heads and the width of one, as the equations read them."""
        sizes = {"N": torch.tensor(self.heads)}
        return sizes | ({"d_k": torch.tensor(float(self.head_width), dtype=self.dtype)} if self.scaled else {})

    def circuit(self, *, cross: bool = False, masked: bool = False, relative: str | None = None) -> Circuit:
        """The equations in force."""
        return multihead_circuit(cross, self.bias, masked, self.scaled, relative)

    # ------------------------------------------------------------------------------------------------------- inputs

    def checked(self, X: Tensor, keys: Tensor | None, values: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries' keys' and values' sequences in the model's dtype. Raises ``ValueError`` where they do not fit."""
        keys = X if keys is None else keys
        values = keys if values is None else values
        for name, tensor, width in (("X", X, self.width), ("keys", keys, self.key_width), ("values", values, self.value_width)):
            if tensor.ndim not in (2, 3) or tensor.shape[-1] != width or tensor.ndim != X.ndim or tensor.shape[-2] < 1:
                raise ValueError(
                    f"{name} must be (batch, positions, {width}) or (positions, {width}), not {tuple(tensor.shape)}"
                )
        if values.shape[:-1] != keys.shape[:-1] or keys.shape[:-2] != X.shape[:-2]:
            raise ValueError(
                f"each key has one value, and each sequence its own: X {tuple(X.shape)}, keys {tuple(keys.shape)}, "
                f"values {tuple(values.shape)}"
            )
        return X.to(self.dtype), keys.to(self.dtype), values.to(self.dtype)

    def fitted_mask(self, mask: Any, X: Tensor, keys: Tensor) -> Tensor:
        """A mask for the scores: (T, S) for all, (B, T, S) or (B, 1, S) for each sequence, (B, N, T, S) for each head too."""
        keep = kept(mask)
        if X.ndim == 3 and keep.ndim == 3:
            keep = keep.unsqueeze(1)
        return fitted(keep, (*X.shape[:-2], self.heads, X.shape[-2], keys.shape[-2]))

    def given(
        self, X: Tensor, keys: Tensor | None, values: Tensor | None, mask: Any, relative: str | None
    ) -> tuple[Circuit, Values]:
        """The equations of a run, and what they read beside the weights."""
        cross = keys is not None or values is not None
        X, keys, values = self.checked(X, keys, values)
        inputs = {"X_q": X, "X_k": keys, "X_v": values} if cross else {"X": X}
        inputs |= self.sizes()
        if mask is not None:
            inputs["M"] = self.fitted_mask(mask, X, keys)
        if relative is not None:
            inputs |= self.relative_inputs(relative, X.shape[-2], keys.shape[-2])
        return self.circuit(cross=cross, masked=mask is not None, relative=relative), inputs

    def relative_inputs(self, relative: str, queries: int, keys: int) -> Values:
        """What the scores read of the positions: angles for "rotary", a bias for "alibi"; the last query is the last key's."""
        if relative == "alibi":
            return {"B": alibi(self.heads, queries, keys).to(self.dtype)}
        first = max(0, keys - queries)
        places = {"Theta_q": torch.arange(first, first + queries), "Theta_k": torch.arange(keys)}
        return {name: turning_angles(given, self.head_width).to(self.dtype) for name, given in places.items()}

    # --------------------------------------------------------------------------------------------------------- runs

    def forward(
        self,
        X: Tensor,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        mask: Any = None,
        *,
        relative: str | None = None,
    ) -> Tensor:
        """The fast path: the output O, the same numbers as ``trace``, without the parts."""
        if relative is not None:
            circuit, inputs = self.given(X, keys, values, mask, relative)
            return circuit.run({**inputs, **self.weights()})[0]["O"]
        X, keys, values = self.checked(X, keys, values)
        keep = None if mask is None else self.fitted_mask(mask, X, keys)
        Q, K, V = (
            functional.linear(given, weight.mT, bias).unflatten(-1, (self.heads, -1)).transpose(-3, -2)
            for given, weight, bias in ((X, self.W_q, self.b_q), (keys, self.W_k, self.b_k), (values, self.W_v, self.b_v))
        )
        read = functional.scaled_dot_product_attention(Q, K, V, attn_mask=keep, scale=None if self.scaled else 1.0)
        return functional.linear(read.transpose(-3, -2).flatten(-2), self.W_o.mT, self.b_o)

    def trace(
        self,
        X: Tensor,
        keys: Tensor | None = None,
        values: Tensor | None = None,
        mask: Any = None,
        do: Interventions | None = None,
        *,
        relative: str | None = None,
    ) -> Trace:
        """Run the equations and keep every result and part. ``mask`` is True where a query may attend to a key.

        ``do`` changes heads (``without_heads(2)``), weights, or any other result but ``O_n``, which nothing reads. Rows that
        have nothing to attend to are 0 and stand in ``trace.notes``. Raises ``FloatingPointError`` where the output is no
        number.
        """
        if do and "O_n" in do:
            raise KeyError("O_n shows what Z and W_o give, and nothing reads it: change Z")
        circuit, inputs = self.given(X, keys, values, mask, relative)
        trace = circuit.trace(inputs, self.weights(), {"": multihead_table("B" if X.ndim == 3 else "")}, do=do)
        if not np.isfinite(trace["O"]).all():
            raise FloatingPointError("the output is no number: an input is not finite, or a score too large for its dtype")
        return replace(trace, notes=empty_rows_note(torch.tensor(trace["A"])))
