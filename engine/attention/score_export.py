"""The scores of a text as a script that computes the page's numbers again by its own equations. It needs torch alone."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import numpy as np

from engine.export import embedded, formula, operation, operations_of, source, wrapped
from engine.operations import FUNCTIONS
from engine.trace import Trace

_SCRIPT = Template('''\
"""Attention scores: from queries and keys to weights, computed by the page's own equations.

Made by Unrolled. It needs Python 3.9 or newer and torch, and reads nothing else:  python $file
Change QUERY, the mask or an equation, and run it again.

Shapes: Q ($count, $width), K ($count, $key_width), V ($count, $values); S, A ($count, $count).
M is True where a query sees a key.
"""

import base64
import math
import sys
import zlib

import torch

TOKENS = $tokens

QUERY = $query  # the query whose scores and weights are printed, from 0
$sizes

# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run


def run():
    """Every symbol by its name."""
    now = unpacked(NUMBERS, SHAPES)
    now["M"] = now["M"] == 1
$given$body
    return now


def main():
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows its number instead
        sys.stdout.reconfigure(errors="backslashreplace")
    now = run()
    print(f"query {QUERY} {TOKENS[QUERY]!r}: key, score, weight")
    for key, token in enumerate(TOKENS):
        print(f"{key:4d} {token!r}".ljust(24), f"{now['S'][QUERY, key].item():12.6f} {now['A'][QUERY, key].item():10.6f}")
    print("what it reads:", *[f"{x:.6f}" for x in now["O"][QUERY].tolist()])
$check

# ---------------------------------------------------------------------------------------------------------------- data

SHAPES = {
$shape_rows
}


def unpacked(text, shapes):
    """Vectors and weights by name, from float32 numbers packed with zlib and written in base 85."""
    numbers = torch.frombuffer(bytearray(zlib.decompress(base64.b85decode("".join(text.split())))), dtype=torch.float32)
    sizes = [math.prod(shape) for shape in shapes.values()]
    return {name: part.reshape(shapes[name]) for name, part in zip(shapes, numbers.split(sizes))}


NUMBERS = """
$numbers
"""

if __name__ == "__main__":
    main()
''')
_CHECK = """\
    fused = torch.nn.functional.scaled_dot_product_attention(*(now[name][None] for name in "QKV"), attn_mask=now["M"][None])
    print(f"largest difference from torch's fused attention: {(fused[0] - now['O']).abs().max().item():.1e}")
"""


def script(trace: Trace, tokens: Sequence[str], query: int = 0) -> str:
    """A script that runs alone and prints the trace's scores and weights of one query; beside the scaled dot product at
    temperature 1 also how near torch's fused attention is. Raises ``IndexError`` for a query that is not there.
    """
    if not 0 <= query < len(tokens):
        raise IndexError(f"there is no query {query}")
    table, inputs = trace.tables[""], trace.inputs
    arrays = {name: np.asarray(inputs[name]) for name in ("Q", "K", "V", "M")} | dict(trace.weights)
    sizes = {name: float(inputs[name]) for name in ("d_k", "tau") if name in inputs}
    body = []
    for name, e in trace.equations.items():
        given = ", ".join(f'now["{operand}"]' for operand in e.operands)
        body.append(f'    now["{name}"] = {name}({given})')
    fused = "d_k" in sizes and "tau" not in sizes
    return _SCRIPT.substitute(
        file="scores.py",
        count=len(tokens),
        width=arrays["Q"].shape[1],
        key_width=arrays["K"].shape[1],
        values=arrays["V"].shape[1],
        tokens=wrapped(map(repr, tokens), "[]"),
        query=query,
        sizes="\n".join(f"{name} = torch.tensor({value!r})" for name, value in sizes.items()),
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of(trace.equations.values())),
        equations="\n\n\n".join(f"# {formula(e, table)}\n{source(e)}" for e in trace.equations.values()),
        given="".join(f'    now["{name}"] = {name}\n' for name in sizes),
        body="\n".join(body),
        check=_CHECK if fused else "",
        shape_rows="\n".join(f'    "{name}": {tuple(array.shape)},' for name, array in arrays.items()),
        numbers=embedded(arrays.values()),
    )
