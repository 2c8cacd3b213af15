"""What opening a page of attention costs on the server: the run, its bytes, and how both grow with the text."""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from pages.ui.stage import position_names, stage_words, symbol_docs
from tests.stage import boards

LENGTHS = (8, 16, 32, 64)
HEADS, WIDTH = 8, 64
MOST_BYTES, MOST_SECONDS = 1_000_000, 0.25


def median(action: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of CPU, the median of several rounds."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        found.append(time.process_time() - start)
    return statistics.median(found)


def run() -> list[str]:
    """A line for each length; targets for 64 characters and 8 heads; the slope of cost against length on log axes."""
    torch.set_num_threads(1)
    stage_words("en"), position_names("en"), symbol_docs("attention", "en")
    lines, costs = [], []
    for length in LENGTHS:
        boards.attention_of.cache_clear()
        computed = median(lambda n=length: boards.attention_of.__wrapped__(n, HEADS, WIDTH, "causal"))  # type: ignore[misc]
        trace = boards.attention_of(length, HEADS, WIDTH, "causal")
        packed = median(lambda t=trace: boards.packed(t))  # type: ignore[misc]
        size = len(boards.packed(trace))
        costs.append(computed + packed)
        missed = " MISSED" if length == 64 and (size > MOST_BYTES or computed + packed > MOST_SECONDS) else ""
        lines.append(
            f"{length:4d} characters: run {1000 * computed:6.1f} ms, pack {1000 * packed:6.1f} ms, {size:9,d} bytes{missed}"
        )
    slope = np.polyfit(np.log(LENGTHS), np.log(costs), 1)[0]
    lines.append(f"     cost grows like n^{slope:.2f}; targets at 64: {MOST_BYTES:,} bytes, {MOST_SECONDS} s")
    return lines
