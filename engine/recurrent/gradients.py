r"""What a prediction owes to the past, and how a memory carries it there.

* ``sensitivity``: the gradient of one number with respect to the state after every earlier step.
* ``memory_path``: how far one memory reaches. The direct path multiplies what each step keeps of the old memory, all other
  operands held: for the LSTM dC_T/dC_t = F_{t+1} * ... * F_T, for the GRU dH_T/dH_t = Z_{t+1} * ... * Z_T. The full Jacobian
  counts every way, also through the gates. The plain network has no direct path.
* ``saturation``: how often a gate is all but shut or all but open.

Gradients are taken on the live tensors of each step, in float64: over a hundred steps they fall below what float32 can hold.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from engine.equation import Circuit, Equation, Intervention, Interventions, Values, by_symbol
from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.stack import Pass, State
from engine.symbols import GATE
from engine.syntax import Node
from engine.trace import Array, Trace, frozen

GATES = ("forget", "input", "output", "reset", "update")
LOW, HIGH = 0.1, 0.9  # all but shut, all but open
BINS = 20


# ------------------------------------------------------------------------------------------------- the chosen number


@dataclass(frozen=True, kw_only=True)
class Target:
    """The number whose gradient is taken: the log-probability of a token, or one unit of a symbol.

    ``symbol`` is ``"P"`` or a traced name (``"H"``, ``"C"``, ``"layers.1.forward.H"``). ``index`` is the token's number or the
    unit; None with ``"P"`` is the token that follows in the text.
    """

    symbol: str
    index: int | None = None


def next_token(token: int | None = None) -> Target:
    """The log-probability of a token after the chosen step; None for the one that the text goes on with."""
    return Target(symbol="P", index=token)


def unit_of(symbol: str, unit: int) -> Target:
    """One unit of a symbol at the chosen step."""
    return Target(symbol=symbol, index=unit)


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """The gradient of ``value`` (the target at ``step``) with respect to every state.

    ``gradients["H"]`` (T, H) holds d value / d H_t in row t, ``norms["H"]`` (T,) the length of each row; both are exactly 0
    after ``step``. ``start["H"]`` (H,) is the gradient with respect to the state before the first step.
    """

    step: int
    target: Target
    value: float
    gradients: Mapping[str, Array] = field(repr=False)
    norms: Mapping[str, Array] = field(repr=False)
    start: Mapping[str, Array] = field(repr=False)


def sensitivity(
    model: RecurrentLanguageModel,
    ids: Tensor,
    step: int,
    target: Target | None = None,
    do: Interventions | None = None,
    *,
    state: State | None = None,
    batch: int = 0,
) -> Sensitivity:
    """The gradient of a chosen number at ``step`` with respect to H (and C) after every step of ids (T, B).

    Steps count from 0. With interventions the gradient is that of the changed run. Raises ``IndexError`` for a step, unit or
    token that is not there, ``ValueError`` when the text ends at ``step`` and no token is chosen, ``KeyError`` for a symbol
    that the model does not have.
    """
    model = _double(model)
    step = _step(step, ids)
    target = target or next_token()
    with torch.enable_grad():
        starts = _starts(model, state, ids.shape[1])
        passes, outputs, _ = model.unroll(ids, starts if len(starts) > 1 else starts[0], do)
        value = _value(passes, outputs, ids, step, target, batch)
        names = {p.scope + name: p for p in passes for name in model.recurrent.circuit.carry}
        states = [p.results[t][name.removeprefix(p.scope)] for name, p in names.items() for t in range(len(p.results))]
        found = torch.autograd.grad(value, [*states, *starts], allow_unused=True, materialize_grads=True)
    T = ids.shape[0]
    rows = {name: torch.stack([g[batch] for g in found[i * T : (i + 1) * T]]) for i, name in enumerate(names)}
    ends = {}
    for place, p in enumerate(passes):
        for name, gradient in zip(model.recurrent.circuit.carry, found[len(states) :], strict=True):
            ends[p.scope + name] = frozen(gradient[place, batch])
    return Sensitivity(
        step=step,
        target=target,
        value=float(value.detach()),
        gradients={name: frozen(row) for name, row in rows.items()},
        norms={name: frozen(row.norm(dim=-1)) for name, row in rows.items()},
        start=ends,
    )


def _double(model: RecurrentLanguageModel) -> RecurrentLanguageModel:
    return copy.deepcopy(model).double()


def _step(step: int, ids: Tensor) -> int:
    if not 0 <= step < ids.shape[0]:
        raise IndexError(f"step {step} is not inside 0 to {ids.shape[0] - 1}")
    return step


def _starts(model: RecurrentLanguageModel, state: State | None, batch: int) -> tuple[Tensor, ...]:
    """The start state (layers * directions, B, H) of each carried name, as leaves: also a frozen model gives gradients."""
    recurrent = model.recurrent
    carry = recurrent.circuit.carry
    starts = recurrent.starts(state, batch)
    return tuple(torch.stack([given[name] for given in starts]).detach().clone().requires_grad_() for name in carry)


def _value(passes: Sequence[Pass], outputs: Sequence[Values], ids: Tensor, step: int, target: Target, batch: int) -> Tensor:
    """The target as a tensor with one element."""
    if target.symbol == "P":
        token = target.index
        if token is None:
            if step + 1 >= ids.shape[0]:
                raise ValueError("the text ends at this step: choose the token whose probability is meant")
            token = int(ids[step + 1, batch])
        row = torch.log_softmax(outputs[step]["Y"][batch], dim=-1)
        return row[_index(token, len(row), "token")]
    for p in passes:
        name = target.symbol.removeprefix(p.scope)
        if target.symbol.startswith(p.scope) and name in p.results[step]:
            row = p.results[step][name][batch]
            return row[_index(target.index or 0, len(row), "unit")]
    raise KeyError(f"{target.symbol} is not a result of this model")


def _index(index: int, size: int, what: str) -> int:
    if not 0 <= index < size:
        raise IndexError(f"{what} {index} is not inside 0 to {size - 1}")
    return index


# ------------------------------------------------------------------------------------------------- the memory's path


@dataclass(frozen=True, kw_only=True)
class MemoryPath:
    """How the memory after step t reaches the memory after ``step``, for t = 0 ... step.

    ``symbol`` is the memory: C of an LSTM, H of the others. ``kept`` (step + 1, H) is what each step keeps of the memory before
    it; ``direct`` (step + 1, H) their product from t + 1 to ``step`` (row ``step`` is 1). Both are None without a direct path.
    ``full[t, i, j]`` is d memory_step[i] / d memory_t[j].

    For a logarithmic axis, each (step + 1,): ``direct_mean`` the mean of abs(direct) over the units, ``diagonal_mean`` the same
    of the full Jacobian's diagonal, ``norm`` its spectral norm (the most that a small change can grow).
    """

    symbol: str
    step: int
    kept: Array | None = field(repr=False)
    direct: Array | None = field(repr=False)
    full: Array = field(repr=False)

    @property
    def distances(self) -> Array:
        """How many steps before ``step`` each row stands."""
        return self.step - np.arange(self.step + 1.0)

    @property
    def direct_mean(self) -> Array | None:
        return None if self.direct is None else np.abs(self.direct).mean(-1)

    @property
    def diagonal(self) -> Array:
        """The full Jacobian's diagonal (step + 1, H): what a unit gets from its own past, by every way."""
        return np.diagonal(self.full, axis1=1, axis2=2)

    @property
    def diagonal_mean(self) -> Array:
        mean: Array = np.abs(self.diagonal).mean(-1)
        return mean

    @property
    def norm(self) -> Array:
        norm: Array = np.linalg.norm(self.full, ord=2, axis=(1, 2))
        return norm


def memory_path(
    model: RecurrentLanguageModel,
    ids: Tensor,
    step: int,
    do: Interventions | None = None,
    *,
    state: State | None = None,
    batch: int = 0,
    scope: str | None = None,
) -> MemoryPath:
    """The direct path of the memory to ``step`` beside its full Jacobian, for ids (T, B); with ``do``, of the changed run.

    ``scope`` chooses the layer of a deep model, the top one if left out; a backward layer has no path to a later step.
    """
    model = _double(model)
    step = _step(step, ids)
    circuit = model.recurrent.circuit
    symbol, direct = memory(circuit)
    with torch.enable_grad():
        starts = _starts(model, state, ids.shape[1])
        passes, _, _ = model.unroll(ids, starts if len(starts) > 1 else starts[0], do)
        chosen = _pass(passes, scope)
        states = [chosen.results[t][symbol] for t in range(step + 1)]
        size = states[step].shape[-1]
        each = torch.zeros(size, *states[step].shape, dtype=states[step].dtype)
        each[:, batch] = torch.eye(size, dtype=states[step].dtype)
        found = torch.autograd.grad(states[step], states, grad_outputs=each, is_grads_batched=True)
        kept = None
        if direct:
            acting = by_symbol(do, [*names_of(passes), "Y", "P"]).get(chosen.scope + symbol, ())
            e = circuit.equations[symbol]
            weights = model.recurrent.weights()[chosen.scope]
            kept = torch.stack([_kept(e, chosen, weights, acting, t, ids.shape[0])[batch] for t in range(step + 1)])
    product = None
    if kept is not None:
        ones = torch.ones(1, size, dtype=kept.dtype)
        product = frozen(torch.cat([kept[1:].flip(0).cumprod(0).flip(0), ones]))
    return MemoryPath(
        symbol=symbol,
        step=step,
        kept=None if kept is None else frozen(kept),
        direct=product,
        full=frozen(torch.stack([jacobian[:, batch] for jacobian in found])),
    )


def memory(circuit: Circuit) -> tuple[str, bool]:
    """The carried symbol that is the memory, and whether it is kept unit by unit.

    It is the one whose equation reads its own past outside every product with a matrix and every function (C of an LSTM, H of
    a GRU); where there is none, the first carried one, without a direct path (H of a plain network).
    """
    for name in circuit.carry:
        e = circuit.equations[name]
        if f"{name}_prev" in e.operands and not _mixed(e.tree, f"{name}_prev"):
            return name, True
    return circuit.carry[0], False


def _mixed(node: Node, name: str) -> bool:
    """Whether an operand goes into a product of matrices or a function somewhere in this part."""
    if node.kind in ("matmul", "transpose", "call"):
        return name in node.names()
    return any(_mixed(child, name) for child in node.children)


def _kept(e: Equation, p: Pass, weights: Values, acting: Sequence[Intervention], step: int, length: int) -> Tensor:
    """The derivative (B, H) of the memory with respect to the memory before, all other operands of its equation held."""
    name = f"{e.name}_prev"
    before = p.results[step - 1] if step else p.start
    operands = {}
    for operand in e.operands:
        carried = operand.removesuffix("_prev")
        source = before[carried] if operand.endswith("_prev") else p.results[step].get(operand, weights.get(operand))
        assert source is not None
        operands[operand] = source.detach()
    leaf = operands[name] = operands[name].clone().requires_grad_()
    result = e(**operands)
    for intervention in acting:
        if step in intervention.steps(length):
            result = intervention(result)
    (gradient,) = torch.autograd.grad(result.sum(), leaf)
    return gradient


def names_of(passes: Sequence[Pass]) -> list[str]:
    """Every result of the passes, by its traced name."""
    return [p.scope + name for p in passes for name in p.results[0]]


def _pass(passes: Sequence[Pass], scope: str | None) -> Pass:
    if scope is None:
        scope = [p.scope for p in passes if not p.scope.endswith("backward.")][-1]
    for p in passes:
        if p.scope == scope and not scope.endswith("backward."):
            return p
    raise KeyError(f"no forward layer {scope!r}; there are {', '.join(repr(p.scope) for p in passes)}")


# ---------------------------------------------------------------------------------------------------------- saturation


@dataclass(frozen=True, kw_only=True)
class Saturation:
    """How a gate's values are spread over 0..1.

    ``below`` is the share under 0.1 (all but shut), ``above`` the share over 0.9 (all but open), ``counts`` (20,) the number of
    values in each of 20 equal bins with ``edges`` (21,); ``below_by_unit`` and ``above_by_unit`` (H,) the shares of each unit.
    """

    name: str
    count: int
    below: float
    above: float
    counts: Array = field(repr=False)
    edges: Array = field(repr=False)
    below_by_unit: Array = field(repr=False)
    above_by_unit: Array = field(repr=False)


def saturation(trace: Trace, name: str, *, batch: int = 0) -> Saturation:
    """The spread of a gate over all steps and units of one text. Raises ``ValueError`` for what is no gate."""
    symbol = trace.symbol(name)
    if symbol.interval != GATE or symbol.role not in GATES:
        raise ValueError(f"{name} is no gate")
    values = np.asarray(trace[name][:, batch], dtype=np.float64)
    counts, edges = np.histogram(values, bins=BINS, range=(0.0, 1.0))
    return Saturation(
        name=name,
        count=values.size,
        below=float((values < LOW).mean()),
        above=float((values > HIGH).mean()),
        counts=frozen(counts.astype(np.float64)),
        edges=frozen(edges),
        below_by_unit=frozen((values < LOW).mean(axis=0)),
        above_by_unit=frozen((values > HIGH).mean(axis=0)),
    )
