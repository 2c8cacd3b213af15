r"""A language model: a recurrent model with an output layer that scores the next token.

Y_t = H_t W_hq + b_q,  P_t = softmax(Y_t)

The input of token i is its one-hot row, so that X_t W_x is row i of W_x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.equation import Circuit, Interventions, Values, by_symbol, equation
from engine.operations import softmax
from engine.recurrent.gru import GRU
from engine.recurrent.lstm import LSTM
from engine.recurrent.rnn import RNN
from engine.recurrent.stack import Parameters, Pass, RecurrentModel, State, fresh_generator, uniform_parameters
from engine.symbols import GATE, Symbol, symbol, table
from engine.trace import Trace, frozen, stacked


@equation
def Y(H, W_hq, b_q):
    """Scores: one for each token that could come next."""
    return H @ W_hq + b_q


@equation
def P(Y):
    """Probabilities of the next token."""
    return softmax(Y)


OUTPUT = Circuit(Y, P)
OUTPUT_TABLE = table(
    symbol("H", "TBH", "state"),
    symbol("Y", "TBV", "score"),
    symbol("P", "TBV", "probability", GATE),
    symbol("W_hq", "HV", "weight"),
    symbol("b_q", "V", "weight"),
)
CELLS: dict[str, type[RecurrentModel]] = {"rnn": RNN, "gru": GRU, "lstm": LSTM}


def checked_ids(ids: Tensor, size: int) -> Tensor:
    """Token numbers (T, B) of any whole dtype as int64. Raises ``ValueError`` unless they are from 0 to ``size`` - 1."""
    fractions = ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool
    if ids.ndim != 2 or ids.shape[0] < 1 or ids.shape[1] < 1 or fractions:
        kind = "" if not fractions else f" of {ids.dtype}"
        raise ValueError(f"ids must be (steps >= 1, batch >= 1) of whole numbers, time first, not {tuple(ids.shape)}{kind}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= size:
        raise ValueError(f"token number {low if low < 0 else high} is outside the vocabulary of {size} tokens")
    return ids.to(torch.int64)


class RecurrentLanguageModel(nn.Module):
    """Scores of the next token after each token.

    Shape:
        ids (T, B) of int64 -> Y (T, B, V); ``state`` as in ``RecurrentModel``.
    """

    def __init__(
        self,
        cell: str,
        vocabulary_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
        **switches: Any,
    ) -> None:
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"cell is one of {', '.join(CELLS)}, not {cell!r}")
        generator = generator or fresh_generator()
        self.vocabulary_size = vocabulary_size
        self.recurrent = CELLS[cell](vocabulary_size, hidden_size, num_layers, bidirectional, generator, **switches)
        width = hidden_size * len(self.recurrent.directions)
        shapes = {"W_hq": (width, vocabulary_size), "b_q": (vocabulary_size,)}
        self.output = Parameters(uniform_parameters(shapes, width, generator))

    def output_weights(self) -> Values:
        """W_hq and b_q by symbol."""
        return dict(self.output.named_parameters())

    def checked(self, ids: Tensor) -> Tensor:
        """The ids as int64. Raises ``ValueError`` unless they are (steps, batch) whole numbers from 0 to V - 1."""
        return checked_ids(ids, self.vocabulary_size)

    def forward(self, ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The fast path: scores (T, B, V) and the state after the last token."""
        H_all, state = self.recurrent(self.checked(ids), state)
        weights = self.output_weights()
        return torch.addmm(weights["b_q"], H_all.flatten(0, 1), weights["W_hq"]).unflatten(0, ids.shape), state

    def one_hot(self, ids: Tensor) -> Tensor:
        """The input X (T, B, V) of the traced run."""
        return functional.one_hot(self.checked(ids), self.vocabulary_size).to(self.recurrent.dtype)

    def unroll(
        self, ids: Tensor, state: State | None = None, do: Interventions | None = None, *, record: bool = False
    ) -> tuple[list[Pass], list[Values], list[Values]]:
        """Run every equation step by step. Returns the recurrent passes, and the output's results and parts of each step."""
        inner = {name: given for name, given in (do or {}).items() if name not in OUTPUT.equations}
        outer = by_symbol({name: given for name, given in (do or {}).items() if name not in inner}, list(OUTPUT.equations))
        passes = self.recurrent.unroll(self.one_hot(ids), state, inner, record=record)
        top = passes[-len(self.recurrent.directions) :]
        inputs = [{"H": torch.cat([p.results[t]["H"] for p in top], dim=-1)} for t in range(ids.shape[0])]
        results, parts = OUTPUT.unroll(inputs, self.output_weights(), {}, do=outer, record=record)
        return passes, results, parts

    def trace(self, ids: Tensor, state: State | None = None, do: Interventions | None = None) -> Trace:
        """Run every equation on ids (T, B) and keep every result and part, Y and P included."""
        with torch.no_grad():
            passes, results, parts = self.unroll(ids, state, do, record=True)
            inner = {name: given for name, given in (do or {}).items() if name not in OUTPUT.equations}
            base = self.recurrent.recorded(self.one_hot(ids), passes, inner)
            weights = {name: frozen(weight) for name, weight in self.output_weights().items()}
        arrays = {**base.arrays, **stacked(results)}
        tables: dict[str, Mapping[str, Symbol]] = dict(base.tables)
        inputs = dict(base.inputs)
        if "" in tables:
            tables[""] = {**OUTPUT_TABLE, **tables[""]}
        else:  # several layers or directions: the output reads the top layer's states, side by side
            tables[""] = OUTPUT_TABLE
            inputs["H"] = frozen(np.concatenate([base[scope + "H"] for scope in self._top_scopes()], axis=-1))
        return Trace(
            arrays=arrays,
            terms={**base.terms, **stacked(parts)},
            inputs=inputs,
            weights={**base.weights, **weights},
            start=base.start,
            equations={**base.equations, **OUTPUT.equations},
            tables=tables,
            interventions=by_symbol(do, list(arrays)),
            backward=base.backward,
        )

    def _top_scopes(self) -> Sequence[str]:
        return self.recurrent.scopes[-len(self.recurrent.directions) :]
