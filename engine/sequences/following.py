r"""One forecast as a trace: every number of every step, with the teacher and without, so that each can be read.

X_t = (x_t - mu) / sigma,  [H_t = ...,]  Y_t = ...,  x^_t = mu + sigma Y_t

x_t holds the values that the prediction of step t is made from: the last tau of a window model, the last one alone of a latent
model, whose state has read everything before. *Without* a teacher only values before the start were measured; from the second
step on the model's own predictions stand among them. *With* a teacher every value it reads was measured. A prediction is a
mean: no noise is drawn and fed back.

Axes: N is the teacher (0 without, 1 with), T the step after the start, D the place in the window, H units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import torch
from torch import Tensor

from engine.equation import Circuit, equation
from engine.recurrent.rnn import H_tanh
from engine.sequences.autoregression import H, Model, WindowModel, Y_hidden, Y_linear
from engine.sequences.forecasts import UNBOUNDED
from engine.symbols import INFINITY, SIGNED, Symbol, symbol, table
from engine.trace import Array, Trace, frozen


@equation
def X(x, mu, sigma):
    """The values that are read, less the mean of the training part, in deviations."""
    return (x - mu) / sigma


@equation
def x_hat(Y, mu, sigma):
    """Prediction of this step's value, in the unit of the series."""
    return mu + sigma * Y


CIRCUITS: Final = {
    "linear": Circuit(X, Y_linear, x_hat),
    "mlp": Circuit(X, H, Y_hidden, x_hat),
    "rnn": Circuit(X, H_tanh, Y_hidden, x_hat),
}
SYMBOLS: Final = (
    symbol("x", "NTD", "input_value"),
    symbol("X", "NTD", "input_value"),
    symbol("Y", "NT1", "score"),
    Symbol(name="x_hat", letter="x", hat=True, axes="NT1", role="output", italic=True),
    Symbol(name="mu", letter="μ", axes="", role="weight"),
    Symbol(name="sigma", letter="σ", axes="", role="weight"),
    symbol("W_xy", "D1", "weight"),
    symbol("W_xh", "DH", "weight"),
    symbol("W_hh", "HH", "weight"),
    symbol("W_hy", "H1", "weight"),
    symbol("b_h", "H", "weight"),
    symbol("b_y", "1", "weight"),
)
TABLES: Final = {
    kind: table(
        *SYMBOLS,
        symbol("H", "NTH", "state", SIGNED if kind == "rnn" else (0.0, INFINITY)),
        Symbol(name="H_prev", letter="H", axes="NTH", role="state", interval=SIGNED, lag=1),
    )
    for kind in CIRCUITS
}


@dataclass(frozen=True, kw_only=True)
class Following:
    """A forecast after the first ``start`` values (numbered from 0, so ``start`` is the first one predicted).

    ``trace`` as above. ``truth`` (T,): what came. ``own`` (N, T): how many of the values read are the model's own predictions.
    ``wild``: it left the series for good (1000 deviations) and was followed no further.
    """

    start: int
    trace: Trace = field(repr=False)
    truth: Array = field(repr=False)
    own: Array = field(repr=False)
    wild: bool = False

    @property
    def predictions(self) -> Array:
        """(N, T), in the series' unit."""
        return self.trace["x_hat"][..., 0]

    @property
    def errors(self) -> Array:
        return self.predictions - self.truth


def kind_of(model: Model) -> str:
    """Which of the lesson's models it is."""
    if isinstance(model, WindowModel):
        return "linear" if model.hidden is None else "mlp"
    return "rnn"


def follow(model: Model, values: Array, start: int, steps: int) -> Following:
    """Forecast ``steps`` values after values[:start], fewer where the series ends or the run leaves it for good.

    Raises ``ValueError`` for a start that has too little before it or nothing after it.
    """
    if not model.context <= start < len(values):
        raise ValueError(f"a forecast that can be compared starts at {model.context} to {len(values) - 1}, not at {start}")
    steps = min(steps, len(values) - start)
    said = model.ahead(values, steps, [start])[0]
    far = np.flatnonzero(~(np.abs((said - model.scale.mean) / model.scale.deviation) <= UNBOUNDED))
    wild = len(far) > 0
    steps = max(int(far[0]), 1) if wild else steps
    width = model.tau if isinstance(model, WindowModel) else 1
    known = np.concatenate([values[:start], said[: steps - 1]])
    read = np.stack([_windows(series, start, steps, width) for series in (known, values)])
    inputs: dict[str, Tensor] = {"x": torch.tensor(read)}
    numbers = {"mu": model.scale.mean, "sigma": model.scale.deviation}
    weights = {name: torch.tensor(value, dtype=torch.float64) for name, value in numbers.items()}
    if isinstance(model, WindowModel):
        weights |= dict(model.named_parameters())
    else:
        weights |= model.recurrent.weights()[""] | dict(model.output.named_parameters())
        inputs["H_prev"] = torch.stack([_states(model, series, start, steps) for series in (known, values)])
    kind = kind_of(model)
    trace = CIRCUITS[kind].trace(inputs, weights, {"": TABLES[kind]})
    own = np.stack([np.minimum(np.arange(steps), width), np.zeros(steps)])
    return Following(start=start, trace=trace, truth=frozen(values[start : start + steps]), own=frozen(own), wild=wild)


def _windows(series: Array, start: int, steps: int, width: int) -> Array:
    """The ``width`` values before each of the steps (steps, width)."""
    places = start + np.arange(steps)[:, None] + np.arange(-width, 0)
    return np.asarray(series[places])


def _states(model: Model, series: Array, start: int, steps: int) -> Tensor:
    """The state (steps, H) before each step reads its value: that of a run over everything earlier."""
    assert not isinstance(model, WindowModel)
    with torch.no_grad():
        H_all: Tensor = model.recurrent(model.scale.to(series[: start + steps - 1])[:, None, None])[0][:, 0]
    before = torch.cat([torch.zeros_like(H_all[:1]), H_all])
    return before[start - 1 : start - 1 + steps]


def k_step_lines(model: Model, values: Array, horizons: tuple[int, ...]) -> Array:
    """(len(horizons), n): at each place the prediction that was made k steps before it; NaN where there is none."""
    longest = max((k for k in horizons if model.context + k <= len(values)), default=0)
    lines = np.full((len(horizons), len(values)), np.nan)
    if not longest:
        return lines
    starts = np.arange(model.context, len(values))
    said = model.ahead(values, longest, starts.tolist())
    limit = UNBOUNDED * model.scale.deviation
    said = np.where(np.abs(said - model.scale.mean) <= limit, said, np.nan)
    for row, k in enumerate(horizons):
        if k <= longest:
            places = starts + k - 1
            inside = places < len(values)
            lines[row, places[inside]] = said[inside, k - 1]
    return lines


def runs_from(model: Model, values: Array, starts: list[int], steps: int) -> Array:
    """(len(starts), steps): free runs from many starts; NaN after the end of the series, and where a run has left it."""
    said = model.ahead(values, steps, starts)
    limit = UNBOUNDED * model.scale.deviation
    said = np.where(np.abs(said - model.scale.mean) <= limit, said, np.nan)
    beyond = np.asarray(starts)[:, None] + np.arange(steps) >= len(values)
    return frozen(np.where(beyond, np.nan, said))
