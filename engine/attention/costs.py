"""What scores cost on this machine, against the number of tokens: time of the processor, and memory that is taken.

Both are measured: seconds of this thread, the least of several rounds, and the bytes of every new tensor that an operation
makes (without what torch's kernels hold inside them). ``engine.attention.saturation.score_cost`` counts the same by hand.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from engine.attention.saturation import score_cost
from engine.attention.scores import SCORES

ROUNDS = 3


class _Taken(TorchDispatchMode):
    """Adds up the bytes of new storage while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.known: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for given in args:
            if isinstance(given, torch.Tensor):
                self.known.setdefault(given.untyped_storage().data_ptr(), given)
        found = func(*args, **(kwargs or {}))
        for made in found if isinstance(found, (tuple, list)) else (found,):
            if isinstance(made, torch.Tensor) and made.untyped_storage().data_ptr() not in self.known:
                self.known[made.untyped_storage().data_ptr()] = made  # kept alive: an address is not used twice
                self.bytes += made.untyped_storage().nbytes()
        return found


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One score on ``length`` queries and as many keys: seconds and bytes measured, multiplications counted."""

    score: str
    length: int
    seconds: float
    bytes: int
    multiplications: int


def measure(score: str, lengths: Sequence[int], *, width: int = 64, hidden: int = 32) -> list[Measured]:
    """Scores and softmax for each length, in float32, on vectors of ``width`` numbers."""
    draw = torch.Generator().manual_seed(0)
    chosen = SCORES[score]
    shapes = {"W": (width, width), "W_q": (width, hidden), "W_k": (width, hidden), "w_v": (hidden,)}
    weights = {name: torch.randn(*shapes[name], generator=draw) / width**0.5 for name in chosen.weights}
    found = []
    for length in lengths:
        Q, K = (torch.randn(length, width, generator=draw) for _ in range(2))
        seconds = []
        for _ in range(ROUNDS):
            start = time.thread_time()
            torch.softmax(chosen(Q, K, **weights), dim=-1)
            seconds.append(time.thread_time() - start)
        with _Taken() as taken:
            torch.softmax(chosen(Q, K, **weights), dim=-1)
        counted = score_cost(score, length, length, width, hidden)
        found.append(
            Measured(
                score=score, length=length, seconds=min(seconds), bytes=taken.bytes, multiplications=counted.multiplications
            )
        )
    return found


def slope(lengths: Sequence[int], values: Sequence[float]) -> float:
    """The exponent p of values that grow like length^p, from the longer half of them."""
    half = len(lengths) // 2
    return float(np.polyfit(np.log(lengths[half:]), np.log(np.maximum(values[half:], 1e-9)), 1)[0])
