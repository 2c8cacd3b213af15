"""Kernel regression as a script that computes the page's numbers again, by the page's own equations. It needs torch alone."""

from __future__ import annotations

from string import Template

from engine.export import formula, operation, operations_of, source, wrapped
from engine.operations import FUNCTIONS
from engine.trace import Trace

_SCRIPT = Template('''\
"""Kernel regression: a prediction as a weighted mean of known values, computed by the page's own equations.

Made by Unrolled. It needs Python 3.9 or newer and torch, and reads nothing else:  python $file
Change QUERY, the points, the width or an equation, and run it again.

Shapes: x (queries, 1); x_i, y (points); D, S, A (queries, points); f (queries).
"""

import torch

KEYS = $keys
VALUES = $values
QUERY = $query  # where the weights are printed
$width
# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run


def run(queries):
    """Every symbol by its name."""
    now = {"x": torch.tensor(queries, dtype=torch.float64).unsqueeze(-1)}
    now["x_i"], now["y"] = (torch.tensor(given, dtype=torch.float64) for given in (KEYS, VALUES))
$size$body
    return now


def main():
    now = run([QUERY])
    print(f"query {QUERY}: prediction {now['f'].item():.6f}")
    print("key, value, weight")
    for key, value, weight in zip(KEYS, VALUES, now["A"][0].tolist()):
        print(f"{key:12.6f} {value:12.6f} {weight:10.6f}")
    print(f"the weights sum to {now['A'].sum().item():.6f}")


if __name__ == "__main__":
    main()
''')


def script(trace: Trace, query: float) -> str:
    """A script that runs alone and prints the weights and the prediction of ``query`` as ``regress`` makes them."""
    table = trace.tables[""]
    body = []
    for name, e in trace.equations.items():
        given = ", ".join(f'now["{operand}"]' for operand in e.operands)
        body.append(f'    now["{name}"] = {name}({given})')
    has_width = "h" in trace.inputs
    return _SCRIPT.substitute(
        file="kernel_regression.py",
        keys=wrapped(map(repr, trace.inputs["x_i"].tolist()), "[]"),
        values=wrapped(map(repr, trace.inputs["y"].tolist()), "[]"),
        query=repr(query),
        width=f"WIDTH = {float(trace.inputs['h'])!r}  # of the kernel\n" if has_width else "",
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of(trace.equations.values())),
        equations="\n\n\n".join(f"# {formula(e, table)}\n{source(e)}" for e in trace.equations.values()),
        size='    now["h"] = torch.tensor(WIDTH, dtype=torch.float64)\n' if has_width else "",
        body="\n".join(body),
    )
