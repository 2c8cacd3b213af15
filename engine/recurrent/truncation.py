r"""Back-propagation through time on a live model: who receives gradient from whom, and what a truncation leaves of it.

The loss after step k reaches the use of the weights at step t over the edges t+1, ..., k (state t-1 -> step t is edge t).
Every truncation is a number on each edge, 1, 0 or more, and what is left of a contribution is the product along its way. So
one map of contributions, taken once, serves them all:

* full: every edge counts 1;
* a window of tau steps: loss k reaches the steps k-tau+1, ..., k. It is the textbook's truncated sum, and costs tau steps for
  each loss;
* chunks, what training does: an edge that crosses a cut counts 0, so a step sees from 1 to L steps back, not always L;
* randomized (Tallec & Ollivier 2017): each edge counts 1/pi with probability pi and 0 otherwise, which is 1 in the mean. The
  estimate is right on average and varies from draw to draw.

The map is taken in one way back: all losses walk together, each a row of one adjoint, through derivatives that are read off the
equations (``adjoint.py``). All numbers are float64: over a hundred steps gradients fall below what float32 can hold.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from engine.equation import Intervention, Interventions, Values, by_symbol
from engine.recurrent.adjoint import compiled, pull, through, weight_terms
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.stack import Pass, RecurrentModel, State
from engine.trace import Array, frozen

# ----------------------------------------------------------------------------------------------------- truncations


@dataclass(frozen=True, kw_only=True)
class Truncation:
    """Which edges a gradient passes: make one with ``full``, ``window``, ``chunks``, ``cut_at`` or ``randomized``."""

    kind: str = "full"
    length: int | None = None  # steps of the window or of a chunk
    cuts: tuple[int, ...] = ()  # steps that begin a new piece
    keep: float | None = None  # pi

    def starts(self, steps: int) -> list[int]:
        """The steps at which a piece begins, step 0 included; a window has none, a randomized one has them by chance."""
        if self.kind == "chunks" and self.length is not None:
            return list(range(0, steps, self.length))
        return [0, *(cut for cut in sorted(set(self.cuts)) if 0 < cut < steps)]


FULL = Truncation()


def full() -> Truncation:
    """No truncation."""
    return FULL


def window(length: int) -> Truncation:
    """Each loss reaches back over ``length`` steps, its own included."""
    return Truncation(kind="window", length=_at_least_one(length))


def chunks(length: int) -> Truncation:
    """The text is cut every ``length`` steps, as minibatches cut it."""
    return Truncation(kind="chunks", length=_at_least_one(length))


def cut_at(*steps: int) -> Truncation:
    """The text is cut before the given steps, wherever they are."""
    return Truncation(kind="chunks", cuts=tuple(steps))


def randomized(keep: float) -> Truncation:
    """Each edge is kept with probability ``keep``, and then counts 1/keep. Chains have 1/(1 - keep) steps in the mean."""
    if not 0 < keep <= 1:
        raise ValueError(f"the probability of going on must be above 0 and at most 1, not {keep}")
    return Truncation(kind="randomized", keep=float(keep))


def _at_least_one(length: int) -> int:
    if length < 1:
        raise ValueError(f"a truncated gradient needs at least 1 step, not {length}")
    return int(length)


def edges(truncation: Truncation, steps: int, draws: int, generator: torch.Generator) -> Tensor:
    """What each edge counts in each draw of a randomized truncation, (draws, steps): 0 or 1/pi; edge 0 leads to the start."""
    keep = truncation.keep or 1.0
    kept = torch.rand(draws, steps, generator=generator, dtype=torch.float64) < keep
    return kept.to(torch.float64) / keep


def shares(truncation: Truncation, steps: int, *, draws: int = 1, generator: torch.Generator | None = None) -> Tensor:
    """What is left of the way from loss k to step t, (draws, steps, steps); 0 where t comes after k.

    A truncation without chance has one draw. Raises ``ValueError`` when a randomized one gets no generator.
    """
    k, t = torch.arange(steps)[:, None], torch.arange(steps)
    past = (t <= k).to(torch.float64)
    if truncation.kind == "window":
        return (past * (k - t < (truncation.length or steps)))[None]
    if truncation.kind == "chunks":
        piece = torch.bucketize(torch.arange(steps), torch.tensor(truncation.starts(steps)), right=True)
        return (past * (piece[:, None] == piece))[None]
    if truncation.kind == "full":
        return past[None]
    if generator is None:
        raise ValueError("a randomized truncation draws numbers: pass it a generator")
    factor = edges(truncation, steps, draws, generator)
    left = torch.zeros(draws, steps, steps, dtype=torch.float64)
    left[:, 0, 0] = 1
    for step in range(1, steps):
        torch.mul(left[:, step - 1], factor[:, step, None], out=left[:, step])
        left[:, step, step] = 1
    return left


# ------------------------------------------------------------------------------------------------------- the map


@dataclass(frozen=True, kw_only=True)
class Use:
    """One place where a step uses a weight: ``left @ weight`` (a bias has no left), and the adjoint of that product.

    ``left`` (T, B, D), ``adjoint`` (T_loss, T_state, B, H), whose sign is that of the term in its sum.
    """

    left: Tensor | None
    adjoint: Tensor
    sign: int

    def contributions(self, left_of: Tensor) -> Tensor:
        """What each step adds to the gradient, (draws, T_state, *weight), for averaged shares (draws, T_loss, T_state)."""
        arriving = torch.einsum("nkt,ktbh->ntbh", left_of, self.adjoint) * self.sign
        return arriving.sum(2) if self.left is None else torch.einsum("tbd,ntbh->ntdh", self.left, arriving)

    def gradient(self, left_of: Tensor) -> Tensor:
        """The sum of the contributions over all steps, (draws, *weight)."""
        arriving = torch.einsum("nkt,ktbh->ntbh", left_of, self.adjoint) * self.sign
        if self.left is None:
            return arriving.sum((1, 2))
        return self.left.flatten(0, 1).T @ arriving.flatten(1, 2)


@dataclass(frozen=True, kw_only=True)
class GradientFlow:
    """Who receives gradient from whom.

    ``losses`` (T,): minus the log-probability of the token that follows each step. ``shares`` (T, T): what the truncation
    leaves, row = step of the loss, column = step that receives. ``gradients["H"]`` (T, T, B, H) is d loss_k / d H_t of the
    *full* gradient, by traced name (``layers.1.forward.C``). Over several texts (B > 1) a loss is the mean over them.
    """

    truncation: Truncation
    losses: Array
    shares: Array = field(repr=False)
    gradients: Mapping[str, Array] = field(repr=False)
    uses: Mapping[str, Use] = field(repr=False)
    directions: int = 1

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def full_norms(self) -> dict[str, Array]:
        """Length of d loss_k / d state_t before truncation, (T_loss, T_state) by traced name."""
        return {name: np.linalg.norm(g, axis=(2, 3)) for name, g in self.gradients.items()}

    @property
    def norms(self) -> dict[str, Array]:
        """(T_loss, T_state) by traced name: the length of the gradient that loss k sends to state t, after truncation."""
        return {name: norms * self.shares for name, norms in self.full_norms.items()}

    @property
    def received(self) -> dict[str, Array]:
        """(T,) by traced name: the length of what arrives at each state from all losses together, of the mean loss."""
        summed = {name: np.einsum("kt,ktbh->tbh", self.shares / len(self), g) for name, g in self.gradients.items()}
        return {name: np.linalg.norm(arriving, axis=(1, 2)) for name, arriving in summed.items()}

    @property
    def weights(self) -> tuple[str, ...]:
        """The weights whose gradient comes through time."""
        return tuple(self.uses)

    def gradient(self, weight: str) -> Array:
        """The gradient of the mean loss with respect to a weight of the recurrent layers, after truncation."""
        return frozen(self.uses[weight].gradient(self._averaged())[0])

    def contributions(self, weight: str) -> Array:
        """(T_state, *weight): what the use of the weight at each step adds. Their sum is ``gradient``."""
        return frozen(self.uses[weight].contributions(self._averaged())[0])

    def under(self, truncation: Truncation, generator: torch.Generator | None = None) -> GradientFlow:
        """The same flow under another truncation; nothing is run again. A randomized one is one draw."""
        if self.directions > 1 and truncation.kind != "full":
            raise ValueError("a bidirectional model reads its text from both ends: there is no earlier part to cut off")
        left = self.shares if self.directions > 1 else shares(truncation, len(self), generator=generator)[0]
        return replace(self, truncation=truncation, shares=frozen(left))

    def _averaged(self) -> Tensor:
        return torch.tensor(self.shares)[None] / len(self)


def gradient_flow(
    model: RecurrentLanguageModel,
    ids: Tensor,
    truncation: Truncation = FULL,
    *,
    targets: Tensor | None = None,
    state: State | None = None,
    do: Interventions | None = None,
    generator: torch.Generator | None = None,
) -> GradientFlow:
    """The gradient that every loss sends to every earlier state and to every use of a weight.

    Args:
        ids: (T + 1,) or (T + 1, B); each token but the first is what the step before should have said. With ``targets`` of
            the same shape all T tokens are read.
        state: before the first step; it receives no gradient here. ``do``: the flow of the changed run.
        generator: for a randomized truncation.

    Raises ``ValueError`` when nothing follows the text, ``KeyError`` for an intervention outside the recurrent layers.
    """
    ids, wanted = paired(ids, targets)
    model = copy.deepcopy(model).double().requires_grad_(requires_grad=False)
    recurrent, steps, both = model.recurrent, len(ids), len(model.recurrent.directions)
    with torch.no_grad():
        X = model.one_hot(ids)
        passes = recurrent.unroll(X, state, do, record=True)
        layers = [_Layer(p, recurrent, both > 1) for p in passes]
        losses, arriving = _at_the_top(model, [layer.values["H"] for layer in layers[-both:]], wanted)
        acting = by_symbol(do, [p.scope + name for p in passes for name in recurrent.circuit.equations])
        for first in range(len(layers) - both, -1, -both):  # from the top layer down, each direction of a layer by itself
            below = torch.cat([layer.values["H"] for layer in layers[first - both : first]], dim=-1) if first else X
            sent = [
                layer.back(below, half, acting, live_inputs=first > 0)
                for layer, half in zip(layers[first : first + both], arriving, strict=True)
            ]
            if first:
                arriving = list(torch.stack(sent).sum(0).tensor_split(both, dim=-1))
    flow = GradientFlow(
        truncation=FULL,
        losses=frozen(losses),
        shares=np.ones((steps, steps)) if both > 1 else frozen(shares(FULL, steps)[0]),
        gradients={p.scope + n: _by_loss(g) for p, layer in zip(passes, layers, strict=True) for n, g in layer.states.items()},
        uses={p.scope + n: use for p, layer in zip(passes, layers, strict=True) for n, use in layer.uses().items()},
        directions=both,
    )
    return flow if truncation.kind == "full" else flow.under(truncation, generator)


def paired(ids: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor]:
    """What is read and what should be said, both (T, B). Raises ``ValueError`` when nothing follows."""
    ids = ids[:, None] if ids.ndim == 1 else ids
    if targets is not None:
        return ids, targets[:, None] if targets.ndim == 1 else targets
    if ids.shape[0] < 2:
        raise ValueError("a loss needs a token that follows: the text must have at least 2")
    return ids[:-1], ids[1:]


def _by_loss(stepwise: Tensor) -> Array:
    """(T_state, T_loss, B, H) with the loss first, read-only."""
    array = stepwise.transpose(0, 1).numpy()
    array.flags.writeable = False
    return array


def _at_the_top(model: RecurrentLanguageModel, halves: Sequence[Tensor], wanted: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The losses (T,), and what each sends to the top state of its own step: (T, B, H) for each direction."""
    output, tops = model.output_weights(), torch.cat(list(halves), dim=-1)
    logs = torch.log_softmax(tops @ output["W_hq"] + output["b_q"], dim=-1)
    away = logs.exp()
    away.scatter_add_(-1, wanted[..., None], torch.full_like(away[..., :1], -1.0))
    sent = away @ output["W_hq"].T / wanted.shape[1]
    return -logs.gather(-1, wanted[..., None])[..., 0].mean(1), list(sent.tensor_split(len(halves), dim=-1))


class _Layer:
    """One layer and direction of a recorded run, and the adjoints of all losses on their way back through it.

    ``values``: every result, part and operand, stacked (T, B, H); ``states`` and ``sums``: adjoints (T_state, T_loss, B, H).
    """

    def __init__(self, p: Pass, recurrent: RecurrentModel, whole: bool) -> None:
        self.scope, self.circuit, self.whole = p.scope, recurrent.circuit, whole
        self.backward = p.scope.endswith("backward.")
        self.weights = recurrent.weights()[p.scope]
        self.terms = weight_terms(self.circuit.equations, list(self.weights))
        self.values = {name: torch.stack([step[name] for step in p.results]) for name in p.results[0]}
        self.values |= {place: torch.stack([step[place] for step in p.parts]) for place in p.parts[0]} | self.weights
        for name in self.circuit.carry:
            states, begin = self.values[name], p.start[name][None]
            self.values[f"{name}_prev"] = torch.cat([states[1:], begin] if self.backward else [begin, states[:-1]])
        shape = (len(p.results), *self.values["H"].shape)
        self.states = {name: self.values["H"].new_zeros(shape) for name in self.circuit.carry}
        self.sums = {place: self.values["H"].new_zeros(shape) for place in dict.fromkeys(term.place for term in self.terms)}

    def back(self, X: Tensor, arriving: Tensor, do: Mapping[str, Sequence[Intervention]], *, live_inputs: bool) -> Tensor:
        """Carry the adjoints back over all steps. ``arriving`` at H: (T, B, H) of own losses, or (T_state, T_loss, B, H).

        Returns the adjoints of X, (T_state, T_loss, B, D), empty for inputs that are not live.
        """
        self.values["X"] = X
        steps, carry = len(X), self.circuit.carry
        live = {*self.circuit.equations, *(f"{name}_prev" for name in carry), *(["X"] if live_inputs else [])}
        parts = {name: compiled(e, self.values, live, set(self.sums)) for name, e in self.circuit.equations.items()}
        acting = {n: [(i, i.steps(steps)) for i in do.get(self.scope + n, ())] for n in parts}
        sent = X.new_zeros(steps, *X.shape) if live_inputs else X.new_zeros(0)
        # What has come back to the state before the step; row k is still 0 when the walk arrives at its own loss.
        held = {name: torch.zeros_like(self.states[name][0]) for name in carry}
        for t in range(steps) if self.backward else range(steps - 1, -1, -1):
            # Row k ends at step k: a later step owes it nothing. A bidirectional model keeps them all.
            first = 0 if self.whole else t
            if arriving.ndim == 3:
                held["H"][t] += arriving[t]
            else:
                held["H"][first:] += arriving[t, first:]
            adjoints: Values = {name: value[first:] for name, value in held.items()}
            kept: Values = {}
            for name in reversed(list(parts)):
                adjoint = adjoints.pop(name)
                if name in carry:
                    self.states[name][t, first:] = adjoint
                adjoint = through([i for i, when in acting[name] if t in when], adjoint)
                pull(parts[name], adjoint, t, adjoints, kept)
            for place, value in kept.items():
                self.sums[place][t, first:] = value
            for name, value in held.items():
                value[first:] = adjoints[f"{name}_prev"]
            if live_inputs:
                sent[t, first:] = adjoints["X"]
        return sent

    def uses(self) -> dict[str, Use]:
        """Every weight with its factor and its adjoint."""
        return {
            term.weight: Use(
                left=None if term.left is None else self.values[term.left],
                adjoint=self.sums[term.place].transpose(0, 1),
                sign=term.sign,
            )
            for term in self.terms
        }
