"""The map of who receives gradient from whom: its time against the length of the text, and against T backward passes.

The other side is what one writes first: run the equations once, then one backward pass for each loss to all earlier states.
Both sides give the same map (``tests/engine/recurrent/test_truncation.py``), in float64, on one thread. They take turns within
each round and are measured by CPU time; a ratio is the median over the rounds.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from engine.recurrent.language_model import RecurrentLanguageModel
from engine.recurrent.truncation import gradient_flow

VOCABULARY, HIDDEN = 76, 64
LENGTHS = (16, 32, 64, 128)
COMPARED, TARGET = 64, 5.0


def mapped(model: RecurrentLanguageModel, ids: Tensor) -> object:
    """The map, as the lesson asks for it."""
    return gradient_flow(model, ids).norms


def one_by_one(model: RecurrentLanguageModel, ids: Tensor) -> list[Tensor]:
    """The same map by T backward passes: for each loss the norms at the states up to it."""
    model = copy.deepcopy(model).double().requires_grad_(requires_grad=False)
    recurrent = model.recurrent
    starts = tuple(value[None].requires_grad_() for value in recurrent.starts(None, ids.shape[1])[0].values())
    (only,), outputs, _ = model.unroll(ids[:-1], starts if len(starts) > 1 else starts[0])
    rows = []
    for k, output in enumerate(outputs):
        loss = functional.cross_entropy(output["Y"], ids[k + 1])
        states = [only.results[t][name] for t in range(k + 1) for name in recurrent.circuit.carry]
        found = torch.autograd.grad(loss, states, retain_graph=True, allow_unused=True, materialize_grads=True)
        rows.append(torch.stack([gradient.norm() for gradient in found]))
    return rows


def seconds(action: Callable[[RecurrentLanguageModel, Tensor], object], model: RecurrentLanguageModel, text: Tensor) -> float:
    start = time.process_time()
    action(model, text)
    return time.process_time() - start


def slope(lengths: tuple[int, ...], times: list[float]) -> float:
    """The slope of log time against log length, by least squares."""
    x, y = [math.log(length) for length in lengths], [math.log(value) for value in times]
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def run(count: int = 7) -> list[str]:
    """Milliseconds by length with the slope, and the ratio to T backward passes with its target."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    lines = [
        f"gradient map: hidden {HIDDEN}, vocabulary {VOCABULARY}, one text, float64, one thread, medians of {count} rounds"
    ]
    for cell in ("rnn", "gru", "lstm"):
        model = RecurrentLanguageModel(cell, VOCABULARY, HIDDEN, generator=generator)
        texts = {T: torch.randint(VOCABULARY, (T + 1, 1), generator=generator) for T in LENGTHS}
        for text in texts.values():
            gradient_flow(model, text)
        times: dict[int, list[float]] = {T: [] for T in LENGTHS}
        others: list[float] = []
        for _ in range(count):
            for T, text in texts.items():
                times[T].append(seconds(mapped, model, text))
            others.append(seconds(one_by_one, model, texts[COMPARED]))
        medians = [statistics.median(times[T]) for T in LENGTHS]
        ratio = statistics.median(other / own for other, own in zip(others, times[COMPARED], strict=True))
        verdict = "reached" if ratio >= TARGET else "MISSED"
        parts = ", ".join(f"T {T}: {1000 * median:.0f} ms" for T, median in zip(LENGTHS, medians, strict=True))
        lines.append(
            f"{cell.upper():4} {parts}; slope {slope(LENGTHS, medians):.2f}; "
            f"x{ratio:.1f} of {COMPARED} backward passes (target {TARGET:.0f}: {verdict})"
        )
    return lines
