"""Tokens per second of a training step of the Transformer: our loop, and torch.nn.TransformerEncoder with torch's optimiser.

Both do the same mathematics on the same batches: two pre-norm layers, causal, forward, mean cross-entropy, backward, clipping
by the norm of all gradients, one step of SGD. (torch's attention has biases, which start at 0 and learn; ours has none.)
Measured as in ``tests.bench.training``: one thread, CPU time, sides in turns, medians over the rounds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.attention.positions import sinusoidal
from engine.training.batch import Batch
from engine.training.loop import TrainingConfig, train
from engine.transformer.language_model import TransformerLanguageModel
from tests.bench.training import CLIP, Step

BATCH, STEPS, VOCABULARY, HEADS, LAYERS = 16, 64, 64, 4, 2
RATE = 0.1
TARGET = 1.05


def model_of(width: int) -> TransformerLanguageModel:
    """The model whose weights both sides start from."""
    return TransformerLanguageModel(
        VOCABULARY, width, LAYERS, HEADS, 2 * width, context=STEPS, generator=torch.Generator().manual_seed(0)
    )


def our_step(model: TransformerLanguageModel) -> Step:
    """A step of the app's own training loop, with its events and its copy of the last good weights."""
    waiting: list[Batch] = []
    config = TrainingConfig(steps=10**9, optimizer="sgd", learning_rate=RATE, max_norm=CLIP)
    run = train(model, lambda _generator: iter(waiting.pop, None), config, torch.Generator())

    def step(X: Tensor, Y: Tensor) -> float:
        waiting.append(Batch(X=X, Y=Y, carries=False))
        return next(run).loss

    return step


def encoder_of(model: TransformerLanguageModel) -> nn.TransformerEncoder:
    """torch's layers with the weights of ours."""
    layer = nn.TransformerEncoderLayer(model.width, HEADS, model.hidden, 0.0, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(model.width), enable_nested_tensor=False)
    W = {name: value.detach() for name, value in model.named_parameters()}
    given = {"norm.weight": W["norm.gamma"], "norm.bias": W["norm.beta"]}
    for n in range(LAYERS):
        own, other = f"blocks.{n}.", f"layers.{n}."
        given |= {
            f"{other}self_attn.in_proj_weight": torch.cat([W[f"{own}attention.W_{k}"].t() for k in "qkv"]),
            f"{other}self_attn.in_proj_bias": torch.zeros(3 * model.width),
            f"{other}self_attn.out_proj.weight": W[f"{own}attention.W_o"].t(),
            f"{other}self_attn.out_proj.bias": torch.zeros(model.width),
        }
        for k in (1, 2):
            given |= {
                f"{other}linear{k}.weight": W[f"{own}feed_forward.W_{k}"].t(),
                f"{other}linear{k}.bias": W[f"{own}feed_forward.b_{k}"],
                f"{other}norm{k}.weight": W[f"{own}norm_{k}.gamma"],
                f"{other}norm{k}.bias": W[f"{own}norm_{k}.beta"],
            }
    encoder.load_state_dict(given)
    return encoder


def torch_step(model: TransformerLanguageModel) -> Step:
    """The same step with torch.nn, torch's clipping and torch's optimiser."""
    encoder = encoder_of(model)
    vectors = nn.Embedding.from_pretrained(model.W_e.detach().clone(), freeze=False)
    output = nn.Linear(model.width, VOCABULARY)
    with torch.no_grad():
        output.weight.copy_(model.W_hq.t())
        output.bias.copy_(model.b_q)
    codes = sinusoidal(STEPS, model.width, dtype=torch.float32)
    later = nn.Transformer.generate_square_subsequent_mask(STEPS)
    parameters = [*encoder.parameters(), *vectors.parameters(), *output.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=RATE)

    def step(X: Tensor, Y: Tensor) -> float:
        H = encoder(math.sqrt(model.width) * vectors(X.t()) + codes, mask=later, is_causal=True)
        loss = functional.cross_entropy(output(H).flatten(0, 1), Y.t().flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        return loss.item()

    return step


SIDES: Mapping[str, Callable[[TransformerLanguageModel], Step]] = {"ours": our_step, "torch.nn": torch_step}


def rounds(width: int, count: int, seconds: float = 0.25) -> dict[str, list[float]]:
    """CPU seconds of a step for each side, one entry a round, both sides in every round."""
    tokens = torch.randint(VOCABULARY, (STEPS + 1, BATCH), generator=torch.Generator().manual_seed(0))
    X, Y = tokens[:-1], tokens[1:]
    sides = {name: make(model_of(width)) for name, make in SIDES.items()}
    for step in sides.values():
        for _ in range(3):
            step(X, Y)
    start = time.process_time()
    sides["ours"](X, Y)
    steps = max(2, round(seconds / (time.process_time() - start)))
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(count):
        for name in list(sides)[:: 1 if number % 2 else -1]:
            start = time.process_time()
            for _ in range(steps):
                sides[name](X, Y)
            times[name].append((time.process_time() - start) / steps)
    return times


def run(count: int = 15) -> list[str]:
    """Tokens per second of CPU time at widths 64 and 128, and the ratio with its target."""
    torch.set_num_threads(1)
    lines = [
        f"training step of a Transformer: {LAYERS} layers, {HEADS} heads, batch {BATCH}, {STEPS} steps, "
        f"vocabulary {VOCABULARY}, one thread, medians of {count} rounds"
    ]
    for width in (64, 128):
        times = rounds(width, count)
        speeds = ", ".join(f"{name} {BATCH * STEPS / statistics.median(values):,.0f}" for name, values in times.items())
        ratio = statistics.median(o / u for o, u in zip(times["torch.nn"], times["ours"], strict=True))
        verdict = "reached" if ratio >= TARGET else "MISSED"
        lines.append(f"width {width}: tokens/s {speeds}, x{ratio:.2f} of torch.nn (target {TARGET:.2f}: {verdict})")
    return lines
