r"""Which part of the text a state depends on: by layer, by distance, by direction.

* ``layer_influence``: how strongly the state of each layer after a chosen step still follows the token of every earlier step,
  and after how many steps half of it is gone. In a deep model the layers keep the past for different lengths.
* ``leak``: why a bidirectional model cannot be used to generate. Its backward cell at step t has read every later token, the
  answer x_{t+1} among them. Measured in two ways: what changes in the states at t when token t+1 is changed, and what the loss
  at t becomes when the text ends at t, as it does while generating.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine.recurrent import kernels
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.text.batches import last_valid, reverse_valid
from engine.trace import Array, frozen

OTHERS = 4  # tokens that take the answer's place in turn, spread over the vocabulary


@dataclass(frozen=True, kw_only=True)
class LayerInfluence:
    """How the states at ``step`` follow the inputs, one row for each layer (and direction): ``scopes``, ``norms`` (L, T).

    ``norms[l, t]`` is the length of d H^l_step / d X_t, the root of the sum of squares over units and inputs. Exactly 0 where
    a direction has not read step t.
    """

    step: int
    scopes: tuple[str, ...]
    norms: Array = field(repr=False)

    @property
    def kept(self) -> Array:
        """(L, T) each row as a share of its value at ``step`` itself; a row that never begins stays 0."""
        own = self.norms[:, self.step : self.step + 1]
        return np.asarray(self.norms / np.where(own > 0, own, 1))

    def half_life(self, scope: str) -> float | None:
        """Steps in which the influence falls to a half, from a line through log norm against distance; None if it does not.

        The line goes back from ``step`` for as long as the influence is above a millionth of its largest value.
        """
        row = self.norms[self.scopes.index(scope)]
        backward = "backward" in scope
        past = row[self.step :] if backward else row[self.step :: -1]
        gone = np.flatnonzero(past <= 1e-6 * past.max())
        past = past[: gone[0]] if len(gone) else past
        if len(past) < 3:
            return None
        slope = float(np.polyfit(np.arange(len(past)), np.log(past), 1)[0])
        return float(np.log(2) / -slope) if slope < 0 else None


def layer_influence(model: RecurrentLanguageModel, ids: Tensor, step: int | None = None, *, batch: int = 0) -> LayerInfluence:
    """The influence of every token of ids (T, B) on each layer's state after ``step`` (the last if left out), in float64."""
    model = copy.deepcopy(model).double().requires_grad_(requires_grad=False)
    step = len(ids) - 1 if step is None else step
    if not 0 <= step < len(ids):
        raise IndexError(f"step {step} is not inside 0 to {len(ids) - 1}")
    with torch.enable_grad():
        # The text runs in as many rows as there are units, and row i carries unit i: one backward pass for each layer.
        X = model.one_hot(ids[:, batch : batch + 1]).repeat(1, model.recurrent.hidden_size, 1).requires_grad_()
        passes = model.recurrent.unroll(X)
        norms = []
        for p in passes:
            (found,) = torch.autograd.grad(p.results[step]["H"].diagonal().sum(), X, retain_graph=True)
            norms.append(found.square().sum((1, 2)).sqrt())
    return LayerInfluence(step=step, scopes=tuple(p.scope for p in passes), norms=frozen(torch.stack(norms)))


# ----------------------------------------------------------------------------------------------- the bidirectional leak


@dataclass(frozen=True, kw_only=True)
class Leak:
    """What a model knows of the answer before it is given, for each of the T steps of a text of T + 1 tokens.

    ``moved`` (T,) by direction: the length of the change of the top state at step t when token t + 1, the answer, is another
    one, in the mean over a few others. 0 to the last digit for the forward direction of a single layer; from the second layer
    on it reads what the backward direction below has read. ``seen`` (T,): the loss at t when the whole text lies before the
    model; ``blind`` (T,): the loss when the text ends at t. For a model without a backward direction the two are the same.
    """

    moved: Mapping[str, Array] = field(repr=False)
    seen: Array = field(repr=False)
    blind: Array = field(repr=False)
    seen_right: Array = field(repr=False)  # (T,) 1 where the likeliest token is the answer
    blind_right: Array = field(repr=False)

    @property
    def seen_perplexity(self) -> float:
        return float(np.exp(self.seen.mean()))

    @property
    def blind_perplexity(self) -> float:
        """What counts for generating: nothing after the step is there yet."""
        return float(np.exp(self.blind.mean()))


def leak(model: RecurrentLanguageModel, ids: Tensor) -> Leak:
    """Measure how much of the answer a model reads, on ids (T + 1,) or (T + 1, 1), in its own dtype. Raises ``ValueError``."""
    text = ids.flatten()
    if ids.numel() != len(ids) or len(text) < 2 or model.vocabulary_size < 2:
        raise ValueError("one text of at least 2 tokens is needed: the answer must follow, and could have been another")
    steps, size = len(text) - 1, model.recurrent.hidden_size
    with torch.no_grad():
        model.checked(text[:, None])
        # The text itself runs as often side by side as its variants will: the very same sums, so that equal is equal.
        same, rows = text[:, None].repeat(1, steps), torch.arange(steps)
        top = model.recurrent(same)[0][rows, rows]
        open_scores, shut_scores = _scores(model, top), _scores(model, _prefixes(model, text[:-1]))
        seen, blind = (functional.cross_entropy(s, text[1:], reduction="none") for s in (open_scores, shut_scores))
        rights = [(s.argmax(-1) == text[1:]).to(s.dtype) for s in (open_scores, shut_scores)]
        shifts = np.unique(np.linspace(1, model.vocabulary_size - 1, OTHERS).astype(int)).tolist()
        moved = torch.zeros(steps, len(model.recurrent.directions), dtype=top.dtype)
        for shift in shifts:
            changed = same.clone()  # in column t the token t + 1 is another one
            changed[rows + 1, rows] = (text[1:] + shift) % model.vocabulary_size
            away = model.recurrent(changed)[0][rows, rows] - top
            moved += away.unflatten(-1, (-1, size)).norm(dim=-1) / len(shifts)
    directions = dict(zip(model.recurrent.directions, moved.T, strict=True))
    return Leak(
        moved={name: frozen(row) for name, row in directions.items()},
        seen=frozen(seen),
        blind=frozen(blind),
        seen_right=frozen(rights[0]),
        blind_right=frozen(rights[1]),
    )


def _scores(model: RecurrentLanguageModel, H_all: Tensor) -> Tensor:
    output = model.output_weights()
    return H_all @ output["W_hq"] + output["b_q"]


def _prefixes(model: RecurrentLanguageModel, text: Tensor) -> Tensor:
    """The top state (T, H or 2H) at the end of each beginning of a text (T,): all side by side, as rows of one batch."""
    recurrent, steps = model.recurrent, len(text)
    lengths = torch.arange(1, steps + 1)
    read = text[:, None].repeat(1, steps)
    weights = recurrent.weights()
    for layer in range(recurrent.num_layers):
        halves = []
        for d, direction in enumerate(recurrent.directions):
            own = weights[recurrent.scopes[layer * len(recurrent.directions) + d]]
            back = direction == "backward"
            H_all, _ = kernels.run(recurrent.kind, reverse_valid(read, lengths) if back else read, own, **recurrent.switches)
            halves.append(reverse_valid(H_all, lengths) if back else H_all)
        read = torch.cat(halves, dim=-1)
    return last_valid(read, lengths)
