"""What a truncation does to the gradient, and what it saves: direction, length, bias, spread, seconds, memory.

``compare`` reads them off a ``GradientFlow``, over many draws where there is chance. ``truncated_run`` carries the truncation
out as a training loop does, with states cut off from their past, on the fast path: the same gradients (a test holds them
together), with the time and the memory that they cost.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.stack import State
from engine.recurrent.truncation import GradientFlow, Truncation, edges, paired, shares
from engine.trace import Array, frozen

DRAWS_AT_ONCE = 25


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A truncated gradient beside the full one, all weights of the recurrent layers that were asked for as one vector.

    ``cosines`` and ``lengths`` (draws,): of each draw's gradient, the cosine with the full one and its length as a multiple of
    the full one's. ``bias``: distance of the mean over draws from the full gradient; ``spread``: standard deviation of a draw
    (root of the total variance); ``error``: what chance alone leaves of the bias, spread / sqrt(draws); each as a multiple of
    the full length. A truncation without chance has one draw and no spread.
    """

    truncation: Truncation
    draws: int
    cosines: Array = field(repr=False)
    lengths: Array = field(repr=False)
    bias: float
    spread: float
    error: float

    @property
    def cosine(self) -> float:
        """The cosine of a draw with the full gradient, in the mean."""
        return float(self.cosines.mean())

    @property
    def length(self) -> float:
        """The length of a draw as a multiple of the full gradient's, in the mean."""
        return float(self.lengths.mean())


def compare(
    flow: GradientFlow,
    truncation: Truncation,
    *,
    draws: int = 100,
    generator: torch.Generator | None = None,
    weights: Sequence[str] | None = None,
) -> Comparison:
    """Hold a truncation against the full gradient; ``weights`` are those between states (W_h*) unless named.

    ``flow`` may be under any truncation. Raises ``ValueError`` for a bidirectional model, or for a full gradient of 0.
    """
    if flow.directions > 1:
        raise ValueError("a bidirectional model reads its text from both ends: there is no earlier part to cut off")
    names = [n for n in flow.weights if n.rpartition(".")[2].startswith("W_h")] if weights is None else list(weights)
    draws = draws if truncation.kind == "randomized" else 1

    def vector(left: Tensor) -> Tensor:
        return torch.cat([flow.uses[name].gradient(left / len(flow)).flatten(1) for name in names], dim=1)

    exact = vector(shares(Truncation(), len(flow)))[0]
    size = float(exact.norm())
    if not size > 0:
        raise ValueError("the full gradient is 0: nothing to compare with")
    cosines, lengths, total, squares = [], [], torch.zeros_like(exact), 0.0
    for first in range(0, draws, DRAWS_AT_ONCE):
        batch = vector(shares(truncation, len(flow), draws=min(DRAWS_AT_ONCE, draws - first), generator=generator))
        norms = batch.norm(dim=1)
        cosines.append(batch @ exact / (size * norms).clamp_min(torch.finfo(norms.dtype).tiny))
        lengths.append(norms / size)
        total += batch.sum(0)
        squares += float(norms.square().sum())
    mean = total / draws
    spread = np.sqrt(max(0.0, squares - draws * float(mean @ mean)) / (draws - 1)) if draws > 1 else 0.0
    return Comparison(
        truncation=truncation,
        draws=draws,
        cosines=frozen(torch.cat(cosines)),
        lengths=frozen(torch.cat(lengths)),
        bias=float((mean - exact).norm()) / size,
        spread=float(spread) / size,
        error=float(spread / size / np.sqrt(draws)),
    )


# ------------------------------------------------------------------------------------------- carried out, with its cost


@dataclass(frozen=True, kw_only=True)
class TruncatedRun:
    """One gradient, taken as training takes it.

    ``gradients`` by parameter (``recurrent.W_hh``, ``output.W_hq``), ``loss`` the mean over all steps. ``seconds``: processor
    time of this thread, forward and backward. ``saved_bytes``: what the graph kept for the backward pass at its largest,
    without the parameters. ``steps``: how many times a step was run forward with a graph.
    """

    truncation: Truncation
    gradients: Mapping[str, Array] = field(repr=False)
    loss: float
    seconds: float
    saved_bytes: int
    steps: int


def truncated_run(
    model: RecurrentLanguageModel,
    ids: Tensor,
    truncation: Truncation,
    *,
    targets: Tensor | None = None,
    state: State | None = None,
    generator: torch.Generator | None = None,
) -> TruncatedRun:
    """The gradient of the mean loss over ids (T + 1, B) by actually cutting; the model's own gradients are left alone.

    Runs in float64, on our own backward through time: torch's fused LSTM copies its weights at every call, which would count.

    Raises ``ValueError`` for a bidirectional model, a text without a next token, or chance without a generator.
    """
    if len(model.recurrent.directions) > 1:
        raise ValueError("a bidirectional model reads its text from both ends: there is no earlier part to cut off")
    read, wanted = paired(ids, targets)
    if truncation.kind == "randomized" and generator is None:
        raise ValueError("a randomized truncation draws numbers: pass it a generator")
    run = _Run(copy.deepcopy(model).double(), read, wanted)
    began = time.thread_time()
    if truncation.kind == "window":
        run.windows(truncation.length or len(read), state)
    elif truncation.kind == "randomized":
        assert generator is not None
        run.linked(edges(truncation, len(read), 1, generator)[0].tolist(), state)
    else:
        run.pieces(truncation.starts(len(read)), state)
    seconds = time.thread_time() - began
    return TruncatedRun(
        truncation=truncation,
        gradients={name: frozen(gradient) for name, gradient in run.gradients.items()},
        loss=run.loss,
        seconds=seconds,
        saved_bytes=run.largest,
        steps=run.steps,
    )


class _Scaled(Function):
    """A state whose gradient is multiplied on its way back."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.factor, None


class _Run:
    """The pieces of one truncated backward pass and what they add up to."""

    def __init__(self, model: RecurrentLanguageModel, read: Tensor, wanted: Tensor) -> None:
        self.model, self.read, self.wanted = model, read, wanted
        self.parameters = dict(model.named_parameters())
        self.gradients = {name: torch.zeros_like(parameter) for name, parameter in self.parameters.items()}
        self.loss, self.largest, self.steps = 0.0, 0, 0
        self.own = {parameter.untyped_storage().data_ptr() for parameter in self.parameters.values()}
        self.saved: dict[int, int] = {}

    def keep(self, tensor: Tensor) -> Tensor:
        """Count what the graph holds on to: each block of memory once."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.own:
            self.saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    def add(self, losses: Tensor) -> None:
        """One backward pass of some steps' losses, each already divided by T."""
        self.largest = max(self.largest, sum(self.saved.values()) + _gates(losses))
        self.saved.clear()
        found = torch.autograd.grad(losses, list(self.parameters.values()), allow_unused=True)
        for name, gradient in zip(self.parameters, found, strict=True):
            if gradient is not None:
                self.gradients[name] += gradient
        self.loss += float(losses.detach())

    def forward(self, first: int, end: int, state: State | None, losses_from: int) -> tuple[Tensor, State]:
        """Run the steps first..end-1; returns the losses of the steps from ``losses_from`` on, and the state."""
        H_all, state = self.model.recurrent(self.read[first:end], state)
        self.steps += end - first
        output = self.model.output_weights()
        scores = H_all[losses_from - first :] @ output["W_hq"] + output["b_q"]
        wanted = self.wanted[losses_from:end].flatten()
        losses = functional.cross_entropy(scores.flatten(0, 1), wanted, reduction="sum") / self.wanted.numel()
        return losses, state

    def pieces(self, starts: Sequence[int], state: State | None) -> None:
        """Full, or cut into chunks: a backward pass for each piece, and a state cut off between them."""
        for first, end in zip(starts, [*starts[1:], len(self.read)], strict=True):
            with torch.autograd.graph.saved_tensors_hooks(self.keep, lambda kept: kept):
                losses, state = self.forward(first, end, state, first)
            self.add(losses)
            state = detached(state)

    def windows(self, length: int, state: State | None) -> None:
        """A backward pass for each loss, over its own window."""
        states: list[State | None] = [state]
        with torch.no_grad():
            for t in range(len(self.read) - length):
                states.append(self.model.recurrent(self.read[t : t + 1], states[-1])[1])
        for k in range(len(self.read)):
            first = max(0, k - length + 1)
            with torch.autograd.graph.saved_tensors_hooks(self.keep, lambda kept: kept):
                losses, _ = self.forward(first, k + 1, states[first], k)
            self.add(losses)

    def linked(self, factors: Sequence[float], state: State | None) -> None:
        """Step by step with a factor on each edge; where it is 0 the chain ends and its backward pass is made."""
        total: Tensor | None = None
        for t, factor in enumerate(factors):
            if t and factor == 0:
                assert total is not None
                self.add(total)
                total, state = None, detached(state)
            elif t:
                state = joined(tuple(_Scaled.apply(part, factor) for part in _parts(state)))
            with torch.autograd.graph.saved_tensors_hooks(self.keep, lambda kept: kept):
                losses, state = self.forward(t, t + 1, state, t)
            total = losses if total is None else total + losses
        assert total is not None
        self.add(total)


def _gates(losses: Tensor) -> int:
    """The bytes of the gates that the fast path's functions keep beside what autograd saves (``kernels.py``)."""
    seen, found, size = set(), [losses.grad_fn], 0
    while found:
        node = found.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        work = getattr(node, "work", None)
        size += 0 if work is None else work.values.nbytes
        found += [following for following, _ in node.next_functions]
    return size


def _parts(state: State | None) -> Iterator[Tensor]:
    if state is not None:
        yield from (state,) if isinstance(state, Tensor) else state


def joined(parts: tuple[Tensor, ...]) -> State | None:
    """The state that these tensors make up; None for none."""
    return parts if len(parts) > 1 else parts[0] if parts else None


def detached(state: State | None) -> State | None:
    """A state without its past."""
    return joined(tuple(part.detach() for part in _parts(state)))
