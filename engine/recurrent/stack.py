"""What the recurrent models share: parameters, layers and directions, the fast path, and the traced run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from engine.equation import Circuit, Intervention, Interventions, Values, by_symbol
from engine.recurrent import kernels
from engine.symbols import Symbol
from engine.trace import Array, Trace, frozen, stacked

State = Tensor | tuple[Tensor, ...]
DIRECTIONS = ("forward", "backward")


def fresh_generator() -> torch.Generator:
    """The generator used when none is passed: seeded with 0, never the global one, which all visitors share."""
    return torch.Generator().manual_seed(0)


def uniform_parameters(
    shapes: Mapping[str, tuple[int, ...]], hidden_size: int, generator: torch.Generator
) -> dict[str, nn.Parameter]:
    """Weights from U(-1/sqrt(H), 1/sqrt(H)), biases 0."""
    bound = 1 / math.sqrt(hidden_size)
    return {
        name: nn.Parameter(
            torch.zeros(shape) if len(shape) == 1 else torch.empty(shape).uniform_(-bound, bound, generator=generator)
        )
        for name, shape in shapes.items()
    }


class Parameters(nn.Module):
    """A bare holder of named tensors or of further holders, so that ``state_dict`` keys read ``layers.0.forward.W_xi``."""

    def __init__(
        self, parameters: Mapping[str, nn.Parameter] | None = None, holders: Mapping[str, nn.Module] | None = None
    ) -> None:
        super().__init__()
        for name, parameter in (parameters or {}).items():
            self.register_parameter(name, parameter)
        # "forward" is also the name of a method of nn.Module, which add_module refuses: enter it directly.
        self._modules.update(holders or {})


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One layer in one direction of an unrolled run, in the order of the text: live tensors of each step."""

    scope: str
    results: Sequence[Values]
    parts: Sequence[Values]
    start: Values


class RecurrentModel(nn.Module, ABC):
    """Layers of one kind of cell, in one or both directions.

    Shape:
        X (T, B, D) -> H_all (T, B, H), or (T, B, 2H) when bidirectional, forward half first. ``state`` is H
        (layers * directions, B, H), for the LSTM a pair (H, C) of such, in the order layer 0 forward, layer 0 backward, ...
    """

    kind: ClassVar[str]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if size < 1:
                raise ValueError(f"{name} must be at least 1, not {size}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.directions = DIRECTIONS if bidirectional else DIRECTIONS[:1]
        generator = generator or fresh_generator()
        if num_layers == 1 and not bidirectional:
            for name, parameter in self.initial(input_size, generator).items():
                self.register_parameter(name, parameter)
            return
        layers: dict[str, nn.Module] = {}
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * len(self.directions)
            layers[str(layer)] = Parameters(holders={d: Parameters(self.initial(width, generator)) for d in self.directions})
        self.layers = Parameters(holders=layers)

    # ------------------------------------------------------------------------------------------ what a kind defines

    @property
    @abstractmethod
    def circuit(self) -> Circuit:
        """The equations of one step."""

    @property
    @abstractmethod
    def table(self) -> Mapping[str, Symbol]:
        """What each symbol of the equations is."""

    @property
    def switches(self) -> dict[str, Any]:
        """The conventions in force, as the fast path wants them."""
        return {}

    @abstractmethod
    def shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        """The parameters of one layer and direction with input width ``width``."""

    # ------------------------------------------------------------------------------------------------- parameters

    def initial(self, width: int, generator: torch.Generator) -> dict[str, nn.Parameter]:
        """Fresh parameters of one layer and direction."""
        return uniform_parameters(self.shapes(width), self.hidden_size, generator)

    def weights(self) -> dict[str, dict[str, Tensor]]:
        """The parameters by scope (``""`` or ``"layers.0.forward."``) and by symbol."""
        scopes: dict[str, dict[str, Tensor]] = {}
        for key, parameter in self.named_parameters():
            path, _, name = key.rpartition(".")
            scopes.setdefault(f"{path}." if path else "", {})[name] = parameter
        return scopes

    @property
    def scopes(self) -> list[str]:
        """The dotted prefixes of layers and directions, in the order of the state's first axis."""
        if self.num_layers == 1 and len(self.directions) == 1:
            return [""]
        return [f"layers.{layer}.{direction}." for layer in range(self.num_layers) for direction in self.directions]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the parameters."""
        return next(self.parameters()).dtype

    # ------------------------------------------------------------------------------------------------------ state

    def starts(self, state: State | None, batch: int) -> list[Values]:
        """The carried values before the first step, per scope; zeros where no state is given. Raises ``ValueError``."""
        carry, count = self.circuit.carry, len(self.scopes)
        given: tuple[Tensor, ...]
        if state is None:
            given = tuple(torch.zeros(count, batch, self.hidden_size, dtype=self.dtype) for _ in carry)
        else:
            given = (state,) if isinstance(state, Tensor) else tuple(state)
        if len(given) != len(carry):
            raise ValueError(
                f"the state of {type(self).__name__} is {', '.join(carry)}: {len(carry)} tensors, not {len(given)}"
            )
        shaped = []
        for name, value in zip(carry, given, strict=True):
            tensor = (value.unsqueeze(0) if value.ndim == 2 and count == 1 else value).to(self.dtype)
            if tuple(tensor.shape) != (count, batch, self.hidden_size):
                wanted = f"(layers x directions {count}, batch {batch}, units {self.hidden_size})"
                raise ValueError(f"the state {name} must be {wanted}, not {tuple(tensor.shape)}")
            shaped.append(tensor)
        return [{name: tensor[i] for name, tensor in zip(carry, shaped, strict=True)} for i in range(count)]

    def joined(self, ends: Sequence[Values]) -> State:
        """The state after the last step, from the carried values of each scope."""
        tensors = tuple(torch.stack([end[name] for end in ends]) for name in self.circuit.carry)
        return tensors if len(tensors) > 1 else tensors[0]

    def checked(self, X: Tensor) -> Tensor:
        """X in the model's dtype. Raises ``ValueError`` unless it is (steps, batch, inputs) with at least one step."""
        if X.ndim != 3 or X.shape[-1] != self.input_size or X.shape[0] < 1 or X.shape[1] < 1:
            raise ValueError(f"X must be (steps >= 1, batch >= 1, inputs {self.input_size}), time first, not {tuple(X.shape)}")
        return X.to(self.dtype)

    # ------------------------------------------------------------------------------------------- fast and traced run

    def forward(self, X: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The fast path: the same numbers as ``trace``, without the parts. X (T, B, D), or ids (T, B) of one-hot rows."""
        if X.is_floating_point():
            X = self.checked(X)
        elif X.ndim != 2 or X.shape[0] < 1 or X.shape[1] < 1:
            raise ValueError(f"ids must be (steps >= 1, batch >= 1), time first, not {tuple(X.shape)}")
        starts, weights = self.starts(state, X.shape[1]), self.weights()
        carry, ends = self.circuit.carry, []
        for layer in range(self.num_layers):
            halves = []
            for d, direction in enumerate(self.directions):
                place = layer * len(self.directions) + d
                start = tuple(starts[place][name] for name in carry)
                read = X.flip(0) if direction == "backward" else X
                H_all, end = kernels.run(
                    self.kind, read, weights[self.scopes[place]], start if len(start) > 1 else start[0], **self.switches
                )
                halves.append(H_all.flip(0) if direction == "backward" else H_all)
                end = (end,) if isinstance(end, Tensor) else end
                ends.append(dict(zip(carry, end, strict=True)))
            X = torch.cat(halves, dim=-1) if len(halves) > 1 else halves[0]
        return X, self.joined(ends)

    def unroll(
        self, X: Tensor, state: State | None = None, do: Interventions | None = None, *, record: bool = False
    ) -> list[Pass]:
        """Run the equations step by step. Returns a pass per layer and direction with live tensors, for gradients."""
        X = self.checked(X)
        starts, weights, scopes = self.starts(state, X.shape[1]), self.weights(), self.scopes
        names = list(self.circuit.equations)
        changes = by_symbol(do, [scope + name for scope in scopes for name in names])
        passes: list[Pass] = []
        read = list(X.unbind(0))
        for place, scope in enumerate(scopes):
            back = self.directions[place % len(self.directions)] == "backward"
            change = {n: tuple(_mirrored(i, len(read), back) for i in changes.get(scope + n, ())) for n in names}
            inputs = [{"X": x} for x in (reversed(read) if back else read)]
            results, parts = self.circuit.unroll(inputs, weights[scope], starts[place], do=change, record=record)
            order: Callable[[Sequence[Values]], list[Values]] = (lambda s: list(s)[::-1]) if back else list
            passes.append(Pass(scope=scope, results=order(results), parts=order(parts), start=starts[place]))
            if (place + 1) % len(self.directions) == 0:
                layer = passes[-len(self.directions) :]
                read = [torch.cat([p.results[t]["H"] for p in layer], dim=-1) for t in range(len(read))]
        return passes

    def trace(self, X: Tensor, state: State | None = None, do: Interventions | None = None) -> Trace:
        """Run the equations on X (T, B, D) and keep every result and every part, detached and read-only."""
        with torch.no_grad():
            return self.recorded(X, self.unroll(X, state, do, record=True), do)

    def recorded(self, X: Tensor, passes: Sequence[Pass], do: Interventions | None) -> Trace:
        """The trace of recorded passes."""
        arrays: dict[str, Array] = {}
        terms: dict[str, Array] = {}
        inputs = {self.scopes[0] + "X": frozen(X.to(self.dtype))}
        for p in passes:
            arrays |= {p.scope + name: array for name, array in stacked(p.results).items()}
            terms |= {p.scope + place: array for place, array in stacked(p.parts).items()}
        circuit, weights = self.circuit, self.weights()
        return Trace(
            arrays=arrays,
            terms=terms,
            inputs=inputs,
            weights={scope + name: frozen(w) for scope, named in weights.items() for name, w in named.items()},
            start={p.scope + name: frozen(value) for p in passes for name, value in p.start.items()},
            equations={scope + name: e for scope in self.scopes for name, e in circuit.equations.items()},
            tables=dict.fromkeys(self.scopes, self.table),
            interventions=by_symbol(do, list(arrays)),
            backward=frozenset(scope for scope in self.scopes if scope.endswith("backward.")),
        )


def _mirrored(intervention: Intervention, length: int, back: bool) -> Intervention:
    """An intervention on the steps of the text, in the order in which a backward pass reads them."""
    steps = intervention.steps(length)
    first, end = (length - steps.stop, length - steps.start) if back else (steps.start, steps.stop)
    return replace(intervention, step=(first, end))
