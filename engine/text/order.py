"""The same tokens in another order: what a model that only counted them could not notice."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def shuffled(tokens: Sequence[str], seed: int, keep: int = 1) -> tuple[str, ...]:
    """All tokens in a random order, but for the last ``keep``, which stay where they are."""
    past = max(len(tokens) - keep, 0)
    order = torch.randperm(past, generator=torch.Generator().manual_seed(seed)).tolist()
    return (*(tokens[i] for i in order), *tokens[past:])
