"""Runs of attention for the stage's tests, small and seeded, and their payloads."""

from functools import cache
from typing import Any

import numpy as np
import torch

from engine.attention.masks import keep_past
from engine.attention.multihead import MultiHeadAttention, without_heads
from engine.trace import Trace
from engine.transformer.norms import norm_trace
from pages.ui import stage
from pages.ui.positions import Extra, pack
from tests.support import seeded

TOKENS = tuple("the cat saw the <b>cat</b> 7 的 ␣ 7".replace("␣", " ").split(" "))
ATTENTION = (
    {"view": "matrix", "area": "time"},
    {"view": "panel", "area": "side"},
    {"view": "terms", "area": "side"},
    {"view": "multiples", "area": "next"},
    {"view": "diagram", "area": "next"},
    {"view": "sum", "area": "more", "whole": "O", "parts": "O_n"},
)


@cache
def attention_of(length: int = 11, heads: int = 3, width: int = 15, kind: str = "all", removed: tuple[int, ...] = ()) -> Trace:
    """A trace of one sequence. ``kind``: all, causal, or empty (query 2 may attend to nothing)."""
    model = MultiHeadAttention(width, heads, generator=seeded(3))
    X = torch.randn(length, width, generator=seeded(4))
    mask = None if kind == "all" else keep_past(length)
    if kind == "empty":
        assert mask is not None
        mask[2] = False
    return model.trace(X, mask=mask, do=without_heads(*removed) if removed else None)


def tokens_of(length: int) -> list[str]:
    return [TOKENS[at % len(TOKENS)] for at in range(length)]


def packed(trace: Trace, lang: str = "en", **options: Any) -> bytes:
    length = trace["X"].shape[0]
    options = {"views": ATTENTION, "first": "A", "shown": "A", "heads_symbol": "Z"} | options
    mean = trace["A"].mean(axis=0, dtype=np.float64)
    return pack(
        trace,
        tokens=tokens_of(length),
        words=stage.stage_words(lang),
        names=stage.position_names(lang),
        docs=stage.symbol_docs("attention", lang),
        extra={"A.mean": Extra(mean, "TS", role="probability", interval=(0.0, 1.0))},
        means={"A": "A.mean"},
        **options,
    )


def gradient_map(length: int = 9) -> bytes:
    """A map that no circuit made, with a line that cuts it and a number that follows the line."""
    draw = np.random.default_rng(5)
    values = np.tril(draw.normal(size=(length, length)) - 3)
    values[np.triu_indices(length, 1)] = np.nan
    return pack(
        None,
        tokens=tokens_of(length),
        words=stage.stage_words("en"),
        views=(
            {"view": "matrix", "area": "time", "array": "G", "cut": "columns", "cut_label": "the cut"},
            {"view": "readout", "area": "side", "items": [{"array": "cosine", "label": "cosine"}]},
        ),
        extra={
            "G": Extra(values, "TS", name="Gradient", interval=(-6, 0), paper=True, unit="10^"),
            "cosine": Extra(np.linspace(0, 1, length + 1), "C"),
        },
    )


def curves() -> bytes:
    """Curves with a query that is dragged, and a row of weights."""
    draw = np.random.default_rng(6)
    queries, keys = np.linspace(0, 5, 41), np.sort(draw.uniform(0, 5, 13))
    scores = -((queries[:, None] - keys) ** 2) * 2
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    values = 2 * np.sin(keys) + keys**0.8
    return pack(
        None,
        tokens=[f"{x:.2f}" for x in queries],
        keys=[f"{x:.2f}" for x in keys],
        words=stage.stage_words("en"),
        views=(
            {
                "view": "curves",
                "area": "time",
                "x": "x",
                "lines": [{"array": "fit", "label": "fit", "role": "output", "marked": True}],
                "points": {"x": "keys", "y": "values", "weights": "A"},
            },
            {"view": "matrix", "area": "side", "array": "A"},
        ),
        extra={
            "x": Extra(queries, "T"),
            "keys": Extra(keys, "S"),
            "values": Extra(values, "S"),
            "fit": Extra(weights @ values, "T"),
            "A": Extra(weights, "TS", name="weights", interval=(0, 1), role="query"),
        },
    )


def vectors() -> bytes:
    """Vectors in steps: layer normalisation from its own equations."""
    trace = norm_trace(torch.randn(5, 8, generator=seeded(2)) * 3 + 1)
    return pack(
        trace,
        tokens=tokens_of(5),
        words=stage.stage_words("en"),
        views=({"view": "vectors", "area": "time", "symbols": list(trace.symbols)}, {"view": "panel", "area": "side"}),
    )
