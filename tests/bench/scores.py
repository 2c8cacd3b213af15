"""What attention scores cost against the number of tokens: time of the processor and memory that is taken, per score."""

import torch

from engine.attention.costs import measure, slope
from engine.attention.scores import SCORES

LENGTHS = (64, 128, 256, 512)
WIDTH, HIDDEN = 64, 32
MOST_SLOPE = 2.4  # of memory, which is exact; time is printed and not judged


def run() -> list[str]:
    """A line for each score: milliseconds and megabytes at each length, and the exponents with which they grow."""
    torch.set_num_threads(1)
    lines = [f"     n = {', '.join(map(str, LENGTHS))}; width {WIDTH}, hidden width of the additive score {HIDDEN}"]
    for name in SCORES:
        found = measure(name, LENGTHS, width=WIDTH, hidden=HIDDEN)
        time = slope(LENGTHS, [one.seconds for one in found])
        memory = slope(LENGTHS, [float(one.bytes) for one in found])
        missed = " MISSED" if memory > MOST_SLOPE else ""
        milliseconds = " ".join(f"{1000 * one.seconds:8.2f}" for one in found)
        megabytes = " ".join(f"{one.bytes / 2**20:7.2f}" for one in found)
        lines.append(f"{name:20s} {milliseconds} ms (n^{time:.2f})  {megabytes} MB (n^{memory:.2f}){missed}")
    return lines
