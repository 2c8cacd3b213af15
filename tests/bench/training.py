"""Tokens per second of a training step: our fast path, a from-scratch loop as in textbooks, and torch.nn.

All three do the same mathematics on the same batches: forward, mean cross-entropy, backward, clipping by the norm of all
gradients, one step of SGD. One thread. The sides take turns within each round and are measured by process CPU time, so that
a busy neighbour disturbs all of them alike; a ratio is the median over the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.training.batch import Batch
from engine.training.loop import TrainingConfig, train

BATCH, STEPS, VOCABULARY = 32, 35, 28
RATE, CLIP = 1.0, 1.0
TARGETS = {
    "rnn": {"torch.nn": 1.2, "textbook": 1.3},
    "gru": {"torch.nn": 1.2, "textbook": 1.3},
    "lstm": {"torch.nn": 1.0, "textbook": 1.3},
}
BLOCKS = {"rnn": ("h",), "gru": ("r", "z", "h"), "lstm": ("i", "f", "o", "c")}
TORCH_ORDER = BLOCKS | {"lstm": ("i", "f", "c", "o")}
LAYERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}

Step = Callable[[Tensor, Tensor], float]
Weights = dict[str, Tensor]


def fresh(cell: str, hidden: int, generator: torch.Generator) -> Weights:
    """Weights from N(0, 0.01^2) and biases 0, as in the textbook, under the names of the models."""
    shapes: dict[str, tuple[int, ...]] = {"W_hq": (hidden, VOCABULARY), "b_q": (VOCABULARY,)}
    for block in BLOCKS[cell]:
        shapes |= {f"W_x{block}": (VOCABULARY, hidden), f"W_h{block}": (hidden, hidden), f"b_{block}": (hidden,)}
    return {
        name: torch.zeros(shape) if len(shape) == 1 else torch.randn(shape, generator=generator) * 0.01
        for name, shape in shapes.items()
    }


def textbook_step(cell: str, weights: Weights) -> Step:
    """A model written out as a textbook does: one-hot rows, a product for each gate and step, autograd, a plain loop."""
    W = {name: value.clone().requires_grad_() for name, value in weights.items()}
    parameters = list(W.values())

    def gate(block: str, X: Tensor, H: Tensor) -> Tensor:
        return X @ W[f"W_x{block}"] + H @ W[f"W_h{block}"] + W[f"b_{block}"]

    def unrolled(inputs: Tensor) -> list[Tensor]:
        H = C = torch.zeros(inputs.shape[1], len(W["W_hq"]))
        outputs = []
        for X in inputs:
            if cell == "rnn":
                H = torch.tanh(gate("h", X, H))
            elif cell == "gru":
                R, Z = torch.sigmoid(gate("r", X, H)), torch.sigmoid(gate("z", X, H))
                H = Z * H + (1 - Z) * torch.tanh(X @ W["W_xh"] + (R * H) @ W["W_hh"] + W["b_h"])
            else:
                I, F, O = (torch.sigmoid(gate(block, X, H)) for block in "ifo")
                C = F * C + I * torch.tanh(gate("c", X, H))
                H = O * torch.tanh(C)
            outputs.append(H @ W["W_hq"] + W["b_q"])
        return outputs

    def step(X: Tensor, Y: Tensor) -> float:
        inputs = functional.one_hot(X, VOCABULARY).to(torch.float32)
        loss = functional.cross_entropy(torch.cat(unrolled(inputs)), Y.reshape(-1))
        for parameter in parameters:
            parameter.grad = None
        loss.backward()
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        norm = torch.sqrt(torch.stack([torch.sum(gradient**2) for gradient in gradients]).sum())
        with torch.no_grad():
            if norm > CLIP:
                for gradient in gradients:
                    gradient[:] *= CLIP / norm
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter[:] -= RATE * gradient
        return loss.item()

    return step


def torch_step(cell: str, weights: Weights) -> Step:
    """The same step with torch.nn, torch's clipping and torch's optimiser. (torch's GRU resets after the product.)"""
    hidden, order = len(weights["W_hq"]), TORCH_ORDER[cell]
    layer, output = LAYERS[cell](VOCABULARY, hidden), nn.Linear(hidden, VOCABULARY)
    parameters = [*layer.parameters(), *output.parameters()]
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.cat([weights[f"W_x{block}"].t() for block in order]))
        layer.weight_hh_l0.copy_(torch.cat([weights[f"W_h{block}"].t() for block in order]))
        layer.bias_ih_l0.copy_(torch.cat([weights[f"b_{block}"] for block in order]))
        layer.bias_hh_l0.zero_()
        output.weight.copy_(weights["W_hq"].t())
        output.bias.copy_(weights["b_q"])
    optimizer = torch.optim.SGD(parameters, lr=RATE)

    def step(X: Tensor, Y: Tensor) -> float:
        H_all, _ = layer(functional.one_hot(X, VOCABULARY).to(torch.float32))
        loss = functional.cross_entropy(output(H_all.reshape(-1, hidden)), Y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        return loss.item()

    return step


def our_step(cell: str, weights: Weights) -> Step:
    """The same step through the app's own training loop, with its events and its copy of the last good weights."""
    model = RecurrentLanguageModel(cell, VOCABULARY, len(weights["W_hq"]))
    model.load_state_dict(
        {("output." if name.endswith("q") else "recurrent.") + name: value for name, value in weights.items()}
    )
    waiting: list[Batch] = []
    config = TrainingConfig(steps=10**9, optimizer="sgd", learning_rate=RATE, max_norm=CLIP)
    run = train(model, lambda _generator: iter(waiting.pop, None), config, torch.Generator())

    def step(X: Tensor, Y: Tensor) -> float:
        waiting.append(Batch(X=X, Y=Y, carries=False))
        return next(run).loss

    return step


SIDES: Mapping[str, Callable[[str, Weights], Step]] = {
    "ours": our_step,
    "torch.nn": torch_step,
    "textbook": textbook_step,
}


def rounds(cell: str, hidden: int, count: int, seconds: float = 0.25) -> dict[str, list[float]]:
    """CPU seconds of a step for each side, one entry a round, all sides in every round."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(VOCABULARY, (STEPS + 1, BATCH), generator=generator)
    X, Y = tokens[:-1], tokens[1:]
    weights = fresh(cell, hidden, generator)
    sides = {name: make(cell, weights) for name, make in SIDES.items()}
    for step in sides.values():
        for _ in range(3):
            step(X, Y)
    start = time.process_time()
    sides["ours"](X, Y)
    steps = max(2, round(seconds / (time.process_time() - start)))
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(count):
        # Another side begins in each round, so that none always follows the same neighbour.
        order = list(sides)[number % len(sides) :] + list(sides)[: number % len(sides)]
        for name in order:
            start = time.process_time()
            for _ in range(steps):
                sides[name](X, Y)
            times[name].append((time.process_time() - start) / steps)
    return times


def run(count: int = 15) -> list[str]:
    """Tokens per second of CPU time at hidden 256 and 512, and the ratios with their targets."""
    torch.set_num_threads(1)
    lines = [f"training step: batch {BATCH}, {STEPS} steps, vocabulary {VOCABULARY}, one thread, medians of {count} rounds"]
    for cell, targets in TARGETS.items():
        for hidden in (256, 512):
            times = rounds(cell, hidden, count)
            speeds = {name: BATCH * STEPS / statistics.median(values) for name, values in times.items()}
            parts = [f"{name} {speed:,.0f}" for name, speed in speeds.items()]
            for name, target in targets.items():
                ratio = statistics.median(o / u for o, u in zip(times[name], times["ours"], strict=True))
                verdict = "reached" if ratio >= target else "MISSED"
                parts.append(f"x{ratio:.2f} of {name} (target {target:.1f}: {verdict})")
            lines.append(f"{cell.upper():4} {hidden}: tokens/s " + ", ".join(parts))
    return lines
