"""A run of the lesson on positions as a script that computes the page's numbers again, and checks them against torch.

It needs nothing but torch: the equations are those that ran, taken from their own source; vectors and weights are embedded.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from engine.export import embedded, formula, operation, operations_of, source, wrapped
from engine.operations import FUNCTIONS
from engine.trace import Trace

_SCRIPT = Template('''\
"""Attention with $kind positions over a text: the numbers on the page, computed again by the page's own equations.

Made by Unrolled. It needs Python 3.9 or newer and torch, and reads nothing else:  python $file
Change HEAD, ROW or an equation, and run it again.
"""

import base64
import math
import sys
import zlib

import torch

TOKENS = $tokens

HEAD, ROW = $head, $row  # the head and the position whose numbers are printed, from 0

# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run


def run():
    """Every symbol by its name."""
    now = unpacked(NUMBERS, SHAPES)
$body
    return now


def main():
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows its number instead
        sys.stdout.reconfigure(errors="backslashreplace")
    now = run()
    if "P" in now:
        print(f"code of position {ROW}, the first 8 columns")
        print(*[f"{x:10.6f}" for x in now["P"][ROW, :8].tolist()])
    if "P_d" in now:
        ahead = $delta
        gap = (now["P_d"][:-ahead] - now["P"][ahead:]).abs().max().item() if len(TOKENS) > ahead else 0.0
        print(f"largest difference of the turned codes from those {ahead} on: {gap:.1e}")
    print(f"\\nweights of head {HEAD}, position {ROW} {TOKENS[ROW]!r}")
    for key, token in enumerate(TOKENS):
        print(f"{key:4d} {token!r}".ljust(16), f"{now['A'][HEAD, ROW, key].item():10.6f}")
    queries, keys = (now.get(name + "_r", now[name]) for name in "QK")
    mask = torch.zeros(len(TOKENS), len(TOKENS))
    if "B" in now and any("B" in names for names in READ.values()):
        mask = mask + now["B"]
    if "M" in now:
        mask = mask.masked_fill(now["M"] == 0, float("-inf"))
    mask = mask.expand(len(queries), -1, -1)
    read = torch.nn.functional.scaled_dot_product_attention(queries, keys, now["V"], attn_mask=mask)
    print("\\nlargest difference of what the heads read from torch's own attention:")
    print(f"    {(read - now['Z']).abs().max().item():.1e}")


# ---------------------------------------------------------------------------------------------------------------- data

READ = $read

SHAPES = {
$shape_rows
}


def unpacked(text, shapes):
    """Inputs and weights by name, from float32 numbers packed with zlib and written in base 85."""
    numbers = torch.frombuffer(bytearray(zlib.decompress(base64.b85decode("".join(text.split())))), dtype=torch.float32)
    sizes = [math.prod(shape) for shape in shapes.values()]
    return {name: part.reshape(shapes[name]) for name, part in zip(shapes, numbers.split(sizes))}


NUMBERS = """
$numbers
"""

if __name__ == "__main__":
    main()
''')


def script(trace: Trace, tokens: Sequence[str], *, kind: str, delta: int = 1, head: int = 0, row: int = 0) -> str:
    """A script that runs alone and prints the trace's numbers for one head and position, and how near torch's attention is.

    Raises ``ValueError`` where the tokens do not fit, ``IndexError`` for a head or position that is not there.
    """
    heads, count = trace["A"].shape[:2]
    if len(tokens) != count:
        raise ValueError(f"{len(tokens)} tokens do not fit {count} positions")
    if not (0 <= head < heads and 0 <= row < count):
        raise IndexError(f"there is no head {head} or no position {row}")
    given = {**trace.inputs, **trace.weights}
    calls = []
    for name, e in trace.equations.items():
        arguments = ", ".join(f'now["{operand}"]' for operand in e.operands)
        calls.append(f'    now["{name}"] = {name}({arguments})')
    return _SCRIPT.substitute(
        file="positions.py",
        kind=kind,
        delta=delta,
        tokens=wrapped(map(repr, tokens), "[]"),
        head=head,
        row=row,
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of(trace.equations.values())),
        equations="\n\n\n".join(f"# {formula(e, trace.tables[''])}\n{source(e)}" for e in trace.equations.values()),
        body="\n".join(calls),
        read="{" + ", ".join(f'"{name}": {e.operands!r}' for name, e in trace.equations.items() if name == "S") + "}",
        shape_rows="\n".join(f'    "{name}": {tuple(array.shape)},' for name, array in given.items()),
        numbers=embedded(given.values()),
    )
