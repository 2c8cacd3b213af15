"""A cut at every place of a text: what of the gradient is left, and what one loss would have sent across.

A cut before step c leaves out all that a loss at or after c sends to a state before c: on the map the lower left block. All
places are computed at once, so that a line can be dragged over the map and its numbers read off.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.recurrent.truncation import FULL, GradientFlow, shares
from engine.trace import Array, frozen


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """For a cut before each step 0, ..., T - 1 (before step 0 nothing is cut).

    ``cosines`` and ``lengths`` (T,): the gradient of the weights between states that is left, beside the full one: cosine, and
    length as a multiple of it; NaN where a length is 0. ``crossing`` (T_loss, T): the length of what the loss would send to
    the state just before the cut, 0 where the loss lies before it.
    """

    cosines: Array = field(repr=False)
    lengths: Array = field(repr=False)
    crossing: Array = field(repr=False)


def between_states(flow: GradientFlow) -> list[str]:
    """The weights from state to state, whose gradient needs the past most."""
    return [name for name in flow.weights if name.rpartition(".")[2].startswith("W_h")]


def cuts(flow: GradientFlow, state: str = "H") -> Cuts:
    """What a cut at each place does, on top of the truncation that the flow is under."""
    steps = len(flow)
    kept, full = (_Suffixes(flow, left) for left in (torch.tensor(flow.shares), shares(FULL, steps)[0]))
    exact, whole = full.whole(), kept.whole()
    size = float(exact.norm())
    cosines, lengths = np.full(steps, np.nan), np.full(steps, np.nan)
    for place in range(steps):
        found = whole - kept.across(place)
        norm = float(found.norm())
        if size > 0:
            lengths[place] = norm / size
        if size > 0 and norm > 0:
            cosines[place] = float(found @ exact) / (size * norm)
    norms_of = flow.norms[state]
    crossing = np.zeros_like(norms_of)
    crossing[:, 1:] = norms_of[:, :-1] * (np.arange(steps)[:, None] >= np.arange(1, steps))
    return Cuts(cosines=frozen(cosines), lengths=frozen(lengths), crossing=frozen(crossing))


def step_factors(norms: Array) -> Array:
    """(T_loss, T_state): by how much the last step back multiplied the length. NaN at the loss itself and where nothing is.

    ``norms[k, t]`` is ``norms[k, k]`` times the factors of the steps t, ..., k - 1 of row k.
    """
    factors = np.full(norms.shape, np.nan)
    np.divide(norms[:, :-1], norms[:, 1:], out=factors[:, :-1], where=norms[:, 1:] > 0)
    k, t = np.indices(norms.shape)
    factors[t >= k] = np.nan
    return frozen(factors)


class _Suffixes:
    """For each weight between states: what its uses receive from the losses at or after each step, (T_loss, T_state, B, H)."""

    def __init__(self, flow: GradientFlow, left: Tensor) -> None:
        self.uses = [flow.uses[name] for name in between_states(flow)]
        weighted = [use.adjoint * (left / len(flow))[:, :, None, None] * use.sign for use in self.uses]
        self.sums = [each.flip(0).cumsum(0).flip(0) for each in weighted]

    def whole(self) -> Tensor:
        """The gradient of all losses, one vector over the weights."""
        return self._gradient(0, None)

    def across(self, place: int) -> Tensor:
        """The part of it that crosses a cut before step ``place``."""
        return self._gradient(place, place)

    def _gradient(self, first_loss: int, end_state: int | None) -> Tensor:
        parts = []
        for use, sums in zip(self.uses, self.sums, strict=True):
            assert use.left is not None  # a weight between states multiplies a state
            parts.append(use.left[:end_state].flatten(0, 1).T @ sums[first_loss, :end_state].flatten(0, 1))
        return torch.cat([part.flatten() for part in parts])
