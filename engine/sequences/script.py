"""A script that forecasts again without this program: it needs torch alone and prints the numbers of the page."""

from __future__ import annotations

import inspect
import textwrap

import numpy as np
from torch import Tensor

from engine.sequences.autoregression import Model, WindowModel
from engine.sequences.following import CIRCUITS, kind_of
from engine.sequences.forecasts import HORIZONS
from engine.trace import Array

SHOWN = 8  # steps that are printed

HEAD = '''"""Forecast a series from its own past: {what}. Needs torch alone."""

import torch
from torch import relu, tanh

# The series. Its first {train} values were for training; the forecast knows the first {start}.
values = torch.tensor({values}, dtype=torch.float64)
train, start = {train}, {start}

# Mean and deviation of the training part, and the weights that were fitted to it.
mu, sigma = {mu!r}, {sigma!r}
weights = {weights}
weights = {{name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()}}


# The equations, as they ran.
{equations}

{predict}

# With a teacher: every value that is read was measured. Without: from step 2 on it reads its own predictions.
steps = min({shown}, len(values) - start)
free = forecast(values[:start], steps)
taught = torch.stack([forecast(values[: start + k], 1)[0] for k in range(steps)])
print("measured", *(f"{{x:.3f}}" for x in values[start : start + steps]))
print("free run", *(f"{{x:.3f}}" for x in free))
print("teacher ", *(f"{{x:.3f}}" for x in taught))

# The error of k-step predictions, from every start point of the test part that has the longest horizon after it.
longest = max(k for k in {horizons} if train + k < len(values))
starts = range(max(train, {context}), len(values) - longest + 1)
runs = torch.stack([forecast(values[:s], longest) for s in starts])
truth = torch.stack([values[s : s + longest] for s in starts])
rms = (runs - truth).square().mean(0).sqrt()
print("rms", *(f"k={{k}}: {{rms[k - 1]:.3f}}" for k in {horizons} if k <= longest))
'''

WINDOW = """
def forecast(known, steps):
    read, said = known[-{tau}:], []
    for _ in range(steps):
        said.append({call}[0])
        read = torch.cat([read[1:], said[-1][None]])
    return torch.stack(said)
"""

LATENT = """
def forecast(known, steps):
    state, said = torch.zeros({hidden}, dtype=torch.float64), []
    for value in known:
        state = H(X(value[None], mu, sigma), state, weights["W_xh"], weights["W_hh"], weights["b_h"])
    for _ in range(steps):
        said.append(x_hat(Y(state, weights["W_hy"], weights["b_y"]), mu, sigma)[0])
        state = H(X(said[-1][None], mu, sigma), state, weights["W_xh"], weights["W_hh"], weights["b_h"])
    return torch.stack(said)
"""
NAMES = {
    "linear": "a linear model of the last values",
    "mlp": "a small network on the last values",
    "rnn": "a recurrent network",
}
CALLS = {
    "linear": 'x_hat(Y(X(read, mu, sigma), weights["W_xy"], weights["b_y"]), mu, sigma)',
    "mlp": 'x_hat(Y(H(X(read, mu, sigma), weights["W_xh"], weights["b_h"]), weights["W_hy"], weights["b_y"]), mu, sigma)',
}


def script(model: Model, values: Array, train: int, start: int) -> str:
    """The script for a fitted model; it carries the series and the weights."""
    kind = kind_of(model)
    if isinstance(model, WindowModel):
        weights: dict[str, Tensor] = dict(model.named_parameters())
        predict = WINDOW.format(tau=model.tau, call=CALLS[kind])
    else:
        weights = model.recurrent.weights()[""] | dict(model.output.named_parameters())
        predict = LATENT.format(hidden=model.recurrent.hidden_size)
    return HEAD.format(
        what=NAMES[kind],
        values=np.asarray(values).tolist(),
        train=train,
        start=start,
        mu=model.scale.mean,
        sigma=model.scale.deviation,
        weights={name: _listed(value) for name, value in weights.items()},
        equations="\n\n".join(_source(name, kind) for name in CIRCUITS[kind].equations),
        predict=predict.strip("\n") + "\n",
        shown=SHOWN,
        horizons=HORIZONS,
        context=model.context,
    )


def _listed(weight: Tensor) -> list[float] | list[list[float]]:
    found: list[float] | list[list[float]] = weight.detach().tolist()
    return found


def _source(name: str, kind: str) -> str:
    """The function of an equation, as it stands in the file it comes from, under the symbol's name."""
    function = CIRCUITS[kind].equations[name].function
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    body = "\n".join(line for line in lines if not line.startswith("@"))
    return body.replace(f"def {function.__name__}(", f"def {name}(", 1) + "\n"
