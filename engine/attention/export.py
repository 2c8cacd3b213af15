"""The run of a multi-head attention as a script that computes the page's numbers again, and checks them against torch.

It needs nothing but torch: the equations are those that ran, taken from their own source; vectors and weights are embedded.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from engine.export import embedded, formula, operation, operations_of, source, wrapped
from engine.operations import FUNCTIONS
from engine.trace import Trace

_SCRIPT = Template('''\
"""Multi-head attention over a text: the numbers on the page, computed again by the page's own equations.

Made by Unrolled. It needs Python 3.9 or newer and torch, and reads nothing else:  python $file
Change HEAD, QUERY, OFF or an equation, and run it again.

Shapes: X (positions $length, width $width); Q, K, V, Z (heads $heads, positions, width of a head $own);
S, A (heads, queries, keys); O_n (heads, positions, width); O (positions, width).
"""

import base64
import math
import sys
import zlib

import torch

TOKENS = $tokens

N = torch.tensor($heads)  # heads
d_k = torch.tensor($own.0)  # width of a head
HEAD, QUERY = $head, $query  # the head and the query whose weights are printed, from 0
OFF = $off  # heads that are taken out, from 0
CAUSAL = $causal  # each position sees itself and what came before

# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run


def run():
    """Every symbol by its name."""
    now = unpacked(NUMBERS, SHAPES)
    now["N"], now["d_k"] = N, d_k
    now["M"] = torch.ones(len(TOKENS), len(TOKENS), dtype=torch.bool)
    if CAUSAL:
        now["M"] = now["M"].tril()
$body
    return now


def by_torch(now):
    """The same layer from torch's own module, all heads in."""
    layer = torch.nn.MultiheadAttention($width, $heads, bias=False, batch_first=True)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([now[name].mT for name in ("W_q", "W_k", "W_v")]))
        layer.out_proj.weight.copy_(now["W_o"].mT)
        X = now["X"].unsqueeze(0)
        return layer(X, X, X, attn_mask=~now["M"], average_attn_weights=False)


def main():
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows its number instead
        sys.stdout.reconfigure(errors="backslashreplace")
    now = run()
    print(f"weights of head {HEAD}, query {QUERY} {TOKENS[QUERY]!r}")
    for key, token in enumerate(TOKENS):
        print(f"{key:4d} {token!r}".ljust(16), f"{now['A'][HEAD, QUERY, key].item():10.6f}")
    print("\\noutput of this query: each head's part, their sum, and the output, in the first 8 units")
    for head in range(int(N)):
        print(f"head {head}".ljust(12), *[f"{x:10.6f}" for x in now["O_n"][head, QUERY, :8].tolist()])
    print("sum".ljust(12), *[f"{x:10.6f}" for x in now["O_n"][:, QUERY, :8].sum(0).tolist()])
    print("output".ljust(12), *[f"{x:10.6f}" for x in now["O"][QUERY, :8].tolist()])
    if not OFF:
        output, weights = by_torch(now)
        print("\\nlargest difference from torch.nn.MultiheadAttention:")
        print(f"    output {(output[0] - now['O']).abs().max().item():.1e}")
        print(f"    weights {(weights[0] - now['A']).abs().max().item():.1e}")


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


def script(trace: Trace, tokens: Sequence[str], *, head: int = 0, query: int = 0) -> str:
    """A script that runs alone and prints the trace's numbers for one head and query, and how near torch's layer is.

    ``trace`` is of one sequence (T, D), with the scaled dot product and no biases. Raises ``ValueError`` where the tokens do
    not fit, ``IndexError`` for a head or query that is not there.
    """
    X, heads = trace["X"], int(trace.inputs["N"])
    if X.ndim != 2 or len(tokens) != len(X):
        raise ValueError(f"{len(tokens)} tokens do not fit vectors {X.shape}")
    if not (0 <= head < heads and 0 <= query < len(X)):
        raise IndexError(f"there is no head {head} or no query {query}")
    table = trace.tables[""]
    embedded_numbers = {"X": X, **trace.weights}
    off = sorted({n for change in trace.interventions.get("Z", ()) for n in change.several("head", heads)})
    body = []
    for name, e in trace.equations.items():
        given = ", ".join(f'now["{operand}"]' for operand in e.operands)
        body.append(f'    now["{name}"] = {name}({given})')
        if name == "Z":
            body.append('    now["Z"][OFF] = 0.0')
    return _SCRIPT.substitute(
        file="multihead.py",
        length=len(X),
        width=X.shape[1],
        heads=heads,
        own=int(trace.inputs["d_k"]),
        tokens=wrapped(map(repr, tokens), "[]"),
        head=head,
        query=query,
        off=off,
        causal="M" in trace.inputs,
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of(trace.equations.values())),
        equations="\n\n\n".join(f"# {formula(e, table)}\n{source(e)}" for e in trace.equations.values()),
        body="\n".join(body),
        shape_rows="\n".join(f'    "{name}": {tuple(array.shape)},' for name, array in embedded_numbers.items()),
        numbers=embedded(embedded_numbers.values()),
    )
