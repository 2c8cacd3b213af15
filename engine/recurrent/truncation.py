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

The map is taken in one backward pass: the text runs in as many rows as it has losses, and row k carries loss k alone; a row
ends where its loss stands. All numbers are float64: over a hundred steps gradients fall below what float32 can hold.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from engine.equation import Equation, Interventions, Values, by_symbol
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.stack import State
from engine.syntax import Node
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
    with torch.enable_grad():
        layers, tops = _rows(model, ids, state, do)
        output = model.output_weights()
        scores = tops @ output["W_hq"] + output["b_q"]
        losses = -torch.log_softmax(scores, dim=-1).gather(-1, wanted[..., None])[..., 0].mean(1)
        live = [tensor for layer in layers for tensor in layer.live()]
        found = iter(torch.autograd.grad(losses.sum(), live))
    steps, gradients, uses = len(losses), {}, {}
    for layer in layers:
        for name in layer.states:
            gradients[layer.scope + name] = frozen(_stacked(found, steps))
        adjoints = {place: _stacked(found, steps) for place in layer.sums}
        for term in layer.terms:
            left = None if term.left is None else torch.stack(layer.lefts[term.left]).detach()
            uses[layer.scope + term.weight] = Use(left=left, adjoint=adjoints[term.place], sign=term.sign)
    both = len(model.recurrent.directions)
    flow = GradientFlow(
        truncation=FULL,
        losses=frozen(losses),
        shares=np.ones((steps, steps)) if both > 1 else frozen(shares(FULL, steps)[0]),
        gradients=gradients,
        uses=uses,
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


def _stacked(found: Iterator[Tensor], steps: int) -> Tensor:
    """The next T gradients as (T_loss, T_state, B, H): a step has a row for its own loss and for each later one."""
    columns = [next(found) for _ in range(steps)]
    whole = columns[0].new_zeros(steps, steps, *columns[0].shape[1:])
    for t, column in enumerate(columns):
        whole[steps - len(column) :, t] = column
    return whole


# ------------------------------------------------------------------------------- the run in as many rows as losses


@dataclass(frozen=True, kw_only=True)
class Term:
    """A weight in an equation: in the sum ``place``, with the operand or part that stands before it (None for a bias)."""

    weight: str
    place: str
    left: str | None
    sign: int


def weight_terms(equations: Mapping[str, Equation], weights: Sequence[str]) -> list[Term]:
    """Where the equations use each weight, read off their syntax trees. Raises ``ValueError`` for another form of use."""
    found: dict[str, Term] = {}
    for e in equations.values():
        for node in e.tree.walk():
            if node.kind != "sum":
                continue
            for sign, child in zip(node.signs, node.children, strict=True):
                product = child.kind == "matmul"
                weight = child.children[1] if product else child
                if weight.kind == "name" and weight.text in weights:
                    left = _name(child.children[0]) if product else None
                    found[weight.text] = Term(weight=weight.text, place=node.id, left=left, sign=sign)
    missing = set(weights) - found.keys()
    if missing:
        raise ValueError(f"these weights are no terms of a sum in an equation: {', '.join(sorted(missing))}")
    return [found[name] for name in weights]


def _name(node: Node) -> str:
    return node.text if node.kind == "name" else node.id


@dataclass(frozen=True, kw_only=True)
class _Layer:
    """One layer and direction: live tensors (rows, B, H) of each step for the states and sums, and the factors (B, D)."""

    scope: str
    terms: Sequence[Term]
    states: dict[str, list[Tensor]]
    sums: dict[str, list[Tensor]]
    lefts: dict[str, list[Tensor]]

    def live(self) -> list[Tensor]:
        """All tensors whose gradient is taken, in the order in which it is read."""
        return [tensor for named in (self.states, self.sums) for steps in named.values() for tensor in steps]


def _rows(
    model: RecurrentLanguageModel, ids: Tensor, state: State | None, do: Interventions | None
) -> tuple[list[_Layer], Tensor]:
    """Run every layer with one row for each loss. Returns the layers and the top states (T, B, H) that the losses read."""
    recurrent = model.recurrent
    both, steps = len(recurrent.directions) > 1, ids.shape[0]
    circuit, weights = recurrent.circuit, recurrent.weights()
    starts = recurrent.starts(state, ids.shape[1])
    changes = by_symbol(do, [scope + name for scope in recurrent.scopes for name in circuit.equations])
    read: list[Tensor] = list(model.one_hot(ids).unbind(0))
    layers: list[_Layer] = []
    for place, scope in enumerate(recurrent.scopes):
        terms = weight_terms(circuit.equations, list(weights[scope]))
        acting = {n: [(i, i.steps(steps)) for i in changes.get(scope + n, ())] for n in circuit.equations}
        backward = recurrent.directions[place % len(recurrent.directions)] == "backward"
        results: list[Values] = [{} for _ in read]
        parts: list[Values] = [{} for _ in read]
        begin = {name: value.detach().requires_grad_() for name, value in starts[place].items()}
        carried = {f"{name}_prev": value.expand(steps, *value.shape) for name, value in begin.items()}
        before: list[Values] = [{} for _ in read]
        for t in range(steps - 1, -1, -1) if backward else range(steps):
            change = {n: [i for i, when in pairs if t in when] for n, pairs in acting.items()}
            before[t] = {**carried, "X": read[t]}
            results[t], parts[t] = circuit.run({**weights[scope], **before[t]}, change=change, record=True)
            # Row k ends at step k: later steps owe it nothing. A bidirectional model keeps them all.
            carried = {f"{name}_prev": results[t][name] if both else results[t][name][1:] for name in circuit.carry}
        layers.append(
            _Layer(
                scope=scope,
                terms=terms,
                states={name: [r[name] for r in results] for name in circuit.carry},
                sums={p: [step[p] for step in parts] for p in dict.fromkeys(term.place for term in terms)},
                lefts={
                    # The rows of an operand are copies of one another: the first stands for all.
                    name: [_one_row((before[t] | results[t] | parts[t])[name]) for t in range(steps)]
                    for name in dict.fromkeys(term.left for term in terms if term.left is not None)
                },
            )
        )
        if (place + 1) % len(recurrent.directions) == 0:
            halves = [layer.states["H"] for layer in layers[-len(recurrent.directions) :]]
            read = [torch.cat([half[t] for half in halves], dim=-1) for t in range(steps)]
    return layers, torch.stack([read[t][t if both else 0] for t in range(steps)])


def _one_row(value: Tensor) -> Tensor:
    return value[0] if value.ndim == 3 else value
