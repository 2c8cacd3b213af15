r"""Predict a series from its own past: three models, written as the lesson writes them.

* linear AR(tau): Y_t = X_t W_xy + b_y, where X_t holds the last tau values. Fitted exactly, by least squares.
* MLP on the last tau values: H_t = ReLU(X_t W_xh + b_h), Y_t = H_t W_hy + b_y. Trained with Adam.
* latent autoregression: the past is summed up in a state, H_t = tanh(X_t W_xh + H_{t-1} W_hh + b_h), Y_t = H_t W_hy + b_y,
  where X_t is the last value alone. The state is lossy, but no value is out of its reach. Trained through time, on pieces.

The models see a series less its mean, divided by its deviation, both of the *training part*; what they return is in the
series' own units. A model predicts the mean of what comes; noise cannot be predicted, and is never fed back as if known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from engine.equation import Circuit, equation
from engine.metrics import clip_by_norm
from engine.operations import relu
from engine.recurrent.language_model import CELLS
from engine.recurrent.stack import Parameters, RecurrentModel, State, uniform_parameters
from engine.symbols import INFINITY, symbol, table
from engine.trace import Array, Trace, frozen, stacked


@equation("Y")
def Y_linear(X, W_xy, b_y):
    """Prediction: a weighted sum of the last values."""
    return X @ W_xy + b_y


@equation
def H(X, W_xh, b_h):
    """Hidden layer: features of the last values."""
    return relu(X @ W_xh + b_h)


@equation("Y")
def Y_hidden(H, W_hy, b_y):
    """Prediction, read from the hidden layer or state."""
    return H @ W_hy + b_y


LINEAR_STEP = Circuit(Y_linear)
MLP_STEP = Circuit(H, Y_hidden)
READOUT = Circuit(Y_hidden)
TABLE = table(
    symbol("X", "TBD", "input_value"),
    symbol("H", "TBH", "state", (0.0, INFINITY)),
    symbol("Y", "TB", "score"),
    symbol("W_xy", "D", "weight"),
    symbol("W_xh", "DH", "weight"),
    symbol("W_hy", "H", "weight"),
    symbol("b_h", "H", "weight"),
    symbol("b_y", "", "weight"),
)

Numbers = NDArray[np.int64]

# ---------------------------------------------------------------------------------------------- pairs from a series


def split(values: Array, train: int) -> tuple[Array, Array]:
    """The first ``train`` values and the rest: pairs are made of each part alone, so no value stands in both."""
    if not 0 < train < len(values):
        raise ValueError(f"of {len(values)} values at least 1 and at most {len(values) - 1} may be for training, not {train}")
    return values[:train], values[train:]


def pairs(values: Array, tau: int) -> tuple[Array, Array]:
    """Features (n - tau, tau), row i = x_i ... x_{i+tau-1}, and labels (n - tau,), x_{i+tau}. Raises ``ValueError``."""
    if tau < 1 or len(values) <= tau:
        raise ValueError(f"{tau} past values and a next one need more than {len(values)} values (and at least 1 past value)")
    features = np.lib.stride_tricks.sliding_window_view(values, tau)[:-1]
    return frozen(features), frozen(values[tau:])


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Mean and deviation of the training part: a model works on (x - mean) / deviation."""

    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, values: Array) -> Scale:
        """Measured from one of the values: equal ones have the deviation 0 (then 1 is taken) and not that of their rounding.

        Raises ``ValueError`` for values that lie farther apart than the largest number.
        """
        point = float(values[0])
        with np.errstate(over="ignore"):
            away = np.asarray(values, dtype=np.float64) - point
        largest = float(np.abs(away).max())
        if not np.isfinite(largest):
            raise ValueError("these values lie farther apart than the largest number there is")
        deviation = largest * float(np.std(away / largest)) if largest else 0.0  # the square of 1e200 is no number
        return cls(mean=point + float(np.mean(away)), deviation=deviation if deviation > 0 else 1.0)

    def to(self, values: Array | Tensor) -> Tensor:
        return (torch.tensor(np.asarray(values), dtype=torch.float64) - self.mean) / self.deviation

    def back(self, scaled: Tensor) -> Array:
        return frozen(scaled.detach() * self.deviation + self.mean)


# -------------------------------------------------------------------------------------------------------- the models


class WindowModel(nn.Module):
    """A model of the last ``tau`` values; ``hidden`` units, or none for the linear one. All in float64.

    Parameters: W_xy (tau, 1), b_y (1,) or W_xh (tau, hidden), b_h, W_hy (hidden, 1), b_y. Xavier's start, biases 0.
    """

    def __init__(self, tau: int, hidden: int | None = None, *, scale: Scale, generator: torch.Generator) -> None:
        super().__init__()
        if tau < 1 or (hidden is not None and hidden < 1):
            raise ValueError(f"tau and the hidden width must be at least 1, not {tau} and {hidden}")
        self.tau, self.hidden, self.scale = tau, hidden, scale
        shapes = (
            {"W_xy": (tau, 1), "b_y": (1,)}
            if hidden is None
            else {"W_xh": (tau, hidden), "b_h": (hidden,), "W_hy": (hidden, 1), "b_y": (1,)}
        )
        for name, shape in shapes.items():
            value = torch.zeros(shape, dtype=torch.float64)
            if len(shape) == 2:
                nn.init.xavier_uniform_(value, generator=generator)
            self.register_parameter(name, nn.Parameter(value))

    @property
    def context(self) -> int:
        """How many values must be known before the first prediction."""
        return self.tau

    @property
    def circuit(self) -> Circuit:
        return LINEAR_STEP if self.hidden is None else MLP_STEP

    def forward(self, X: Tensor) -> Tensor:
        """Scaled windows (..., tau) to scaled predictions (...)."""
        results, _ = self.circuit.run({**dict(self.named_parameters()), "X": X})
        return results["Y"][..., 0]

    def ahead(self, values: Array, steps: int, starts: Sequence[int]) -> Array:
        """Forecasts (len(starts), steps): row i knows values[:starts[i]] and nothing after; from step 2 on it reads its own.

        Raises ``ValueError`` for a start before ``context`` or beyond the end.
        """
        places = checked_starts(starts, self.context, len(values), steps)
        known = self.scale.to(values)
        read = known[torch.as_tensor(places)[:, None] + torch.arange(-self.tau, 0)]
        said = []
        with torch.no_grad():
            for _ in range(steps):
                said.append(self(read))
                read = torch.cat([read[:, 1:], said[-1][:, None]], dim=1)
        return self.scale.back(torch.stack(said, dim=1))

    def trace(self, values: Array) -> Trace:
        """One-step predictions of every window of the series: T = len(values) - tau steps, in the model's scaled numbers."""
        X = self.scale.to(pairs(values, self.tau)[0])[:, None]
        with torch.no_grad():
            runs = [self.circuit.run({**dict(self.named_parameters()), "X": x}, record=True) for x in X]
        return Trace(
            arrays=stacked([results for results, _ in runs]),
            terms=stacked([parts for _, parts in runs]),
            inputs={"X": frozen(X)},
            weights={name: frozen(parameter) for name, parameter in self.named_parameters()},
            start={},
            equations=self.circuit.equations,
            tables={"": TABLE},
        )


class LatentModel(nn.Module):
    """A recurrent cell (rnn, gru or lstm) that reads one value a step, and a prediction from its state. All in float64."""

    def __init__(self, cell: str, hidden: int, *, scale: Scale, generator: torch.Generator) -> None:
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"cell is one of {', '.join(CELLS)}, not {cell!r}")
        self.scale = scale
        self.recurrent: RecurrentModel = CELLS[cell](1, hidden, generator=generator)
        self.output = Parameters(uniform_parameters({"W_hy": (hidden, 1), "b_y": (1,)}, hidden, generator))
        self.double()

    @property
    def context(self) -> int:
        """How many values must be known before the first prediction."""
        return 1

    def readout(self, H_all: Tensor) -> Tensor:
        """Scaled predictions (...) from states (..., H)."""
        results, _ = READOUT.run({**dict(self.output.named_parameters()), "H": H_all})
        return results["Y"][..., 0]

    def forward(self, X: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Scaled values (T, B) to scaled predictions (T, B) of the value after each, and the state."""
        H_all, state = self.recurrent(X[..., None], state)
        return self.readout(H_all), state

    def ahead(self, values: Array, steps: int, starts: Sequence[int]) -> Array:
        """Forecasts (len(starts), steps), as in ``WindowModel``: the state has read all of values[:start]."""
        places = checked_starts(starts, self.context, len(values), steps)
        with torch.no_grad():
            state = self.states(values, places.tolist())
            said = [self.readout((state if isinstance(state, Tensor) else state[0])[0])]
            for _ in range(steps - 1):
                following, state = self(said[-1][None], state)
                said.append(following[0])
        return self.scale.back(torch.stack(said, dim=1))

    def states(self, values: Array, starts: Sequence[int]) -> State:
        """The state (1, len(starts), H) that has read values[:start], for each start: one run over the series."""
        read = self.scale.to(values)[: max(starts), None, None]
        last = torch.as_tensor(np.asarray(starts) - 1)
        if self.recurrent.circuit.carry == ("H",):
            H_all: Tensor = self.recurrent(read)[0]
            return H_all[last, 0][None]
        (only,) = self.recurrent.unroll(read)
        return tuple(torch.cat([step[name] for step in only.results])[last][None] for name in self.recurrent.circuit.carry)

    def trace(self, values: Array) -> Trace:
        """Every value read, in the model's scaled numbers: the cell's symbols and Y, T = len(values) steps."""
        with torch.no_grad():
            X = self.scale.to(values)[:, None, None]
            passes = self.recurrent.unroll(X, record=True)
            output, read = dict(self.output.named_parameters()), [{"H": step["H"]} for step in passes[0].results]
            results, parts = READOUT.unroll(read, output, {}, record=True)
        base = self.recurrent.recorded(X, passes, None)
        weights = {name: frozen(parameter) for name, parameter in self.output.named_parameters()}
        return Trace(
            arrays={**base.arrays, **stacked(results)},
            terms={**base.terms, **stacked(parts)},
            inputs=base.inputs,
            weights={**base.weights, **weights},
            start=base.start,
            equations={**base.equations, **READOUT.equations},
            tables={"": {**TABLE, **base.tables[""]}},
        )


Model = WindowModel | LatentModel


def checked_starts(starts: Sequence[int], context: int, length: int, steps: int) -> Numbers:
    """The starts as an array. Raises ``ValueError`` when one has too little before it, or lies beyond the end."""
    places = np.asarray(starts, dtype=np.int64)
    if steps < 1 or places.ndim != 1 or not len(places) or places.min() < context or places.max() > length:
        raise ValueError(f"a forecast of at least 1 step may start at {context} to {length}, not at {list(starts)[:5]}")
    return places


# ---------------------------------------------------------------------------------------------------------- training


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted model. ``losses``: mean squared error (scaled numbers) of each epoch; of the fit for the linear one."""

    model: Model
    losses: Array = field(repr=False)


def fit_linear(train: Array, tau: int) -> Fit:
    """The linear AR(tau) with the least squared error on the training part; the smallest weights where several are best."""
    scale = Scale.of(train)
    X, y = (scale.to(part) for part in pairs(train, tau))
    model = WindowModel(tau, scale=scale, generator=torch.Generator().manual_seed(0))  # its start is overwritten
    weight, bias = (model.get_parameter(name) for name in ("W_xy", "b_y"))
    # With the means taken out first the bias is no unknown, and a series of rank 2 (a pure sine) is solved to the last digits.
    answer = np.linalg.lstsq((X - X.mean(0)).numpy(), (y - y.mean()).numpy(), rcond=1e-13)[0]
    with torch.no_grad():
        weight.copy_(torch.tensor(answer)[:, None])
        bias.copy_((y.mean() - X.mean(0) @ weight[:, 0])[None])
        loss = float((model(X) - y).square().mean())
    return Fit(model=model, losses=np.array([loss]))


def fit_mlp(
    train: Array,
    tau: int = 4,
    hidden: int = 10,
    *,
    epochs: int = 5,
    batch_size: int = 16,
    learning_rate: float = 0.01,
    generator: torch.Generator,
) -> Fit:
    """An MLP on windows of ``tau`` values, trained with Adam on shuffled minibatches; as in the textbook unless changed."""
    scale = Scale.of(train)
    X, y = (scale.to(part) for part in pairs(train, tau))
    model = WindowModel(tau, hidden, scale=scale, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=_rate(learning_rate))
    losses = []
    for _ in range(epochs):
        total = 0.0
        for chosen in torch.randperm(len(y), generator=generator).split(batch_size):
            total += _step(optimizer, (model(X[chosen]) - y[chosen]).square().mean()) * len(chosen)
        losses.append(total / len(y))
    return Fit(model=model, losses=np.array(losses))


def fit_latent(
    train: Array,
    cell: str = "rnn",
    hidden: int = 16,
    *,
    updates: int = 200,
    batch_size: int = 16,
    num_steps: int = 32,
    learning_rate: float = 0.01,
    generator: torch.Generator,
) -> Fit:
    """A recurrent model trained with Adam, through time, on pieces of ``num_steps`` values drawn from the training part.

    A piece starts from a state of zeros, so its first prediction knows one value. ``losses`` has the mean of each tenth of the
    updates. Raises ``ValueError`` when the part is shorter than a piece.
    """
    if len(train) <= num_steps:
        raise ValueError(f"pieces of {num_steps} values and a next one need more than {len(train)} values")
    scale = Scale.of(train)
    model = LatentModel(cell, hidden, scale=scale, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=_rate(learning_rate))
    pieces = scale.to(np.lib.stride_tricks.sliding_window_view(train, num_steps + 1))
    losses = []
    for _ in range(updates):
        piece = pieces[torch.randint(len(pieces), (batch_size,), generator=generator)].T
        predicted, _ = model(piece[:-1])
        loss = (predicted - piece[1:]).square().mean()
        losses.append(_step(optimizer, loss, clip=list(model.parameters())))
    tenths = np.array_split(np.array(losses), min(10, len(losses)))
    return Fit(model=model, losses=np.array([tenth.mean() for tenth in tenths]))


def _rate(learning_rate: float) -> float:
    """The learning rate, if it is a finite number of at least 0 (0: nothing will change)."""
    if not 0 <= learning_rate < INFINITY:
        raise ValueError(f"the learning rate must be a finite number of at least 0, not {learning_rate}")
    return learning_rate


def _step(optimizer: torch.optim.Optimizer, loss: Tensor, clip: list[nn.Parameter] | None = None) -> float:
    """One update; ``clip`` bounds the norm of all gradients by 1. Raises ``ArithmeticError`` for a loss that is no number."""
    value = float(loss.detach())
    if not np.isfinite(value):
        raise ArithmeticError("the loss is no longer a number: the series or the learning rate is too large")
    optimizer.zero_grad()
    loss.backward()
    if clip:
        gradients = [parameter.grad for parameter in clip]
        clipped, _ = clip_by_norm(gradients, 1.0)
        for parameter, gradient in zip(clip, clipped, strict=True):
            parameter.grad = gradient
    optimizer.step()
    return value
