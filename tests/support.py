"""Small helpers that many tests share: random numbers from a passed generator, never the global one."""

import torch
from torch import Tensor


def seeded(seed: int) -> torch.Generator:
    """A generator of its own for one test."""
    return torch.Generator().manual_seed(seed)


def uniform(*shape: int, seed: int, low: float = -1.0, high: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers spread evenly between low and high, shape as given, float64 unless asked otherwise."""
    return torch.rand(shape, generator=seeded(seed), dtype=dtype) * (high - low) + low
