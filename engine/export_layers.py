"""The script of a model with several layers or directions (see ``engine.export`` for what scripts are).

Each layer and direction is one call of the same cell, with the weights of its own name: ``layers.1.backward.W_xz``.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from engine.equation import Equation, Intervention
from engine.export import MODELS, embedded, formula, operation, operations_of, source, wrapped
from engine.operations import FUNCTIONS
from engine.trace import Trace

_SCRIPT = Template('''\
"""$title of several layers or directions steps through a text: the numbers on the page, computed again.

Made by Unrolled. It needs Python 3.9 or newer and torch, and reads nothing else:  python $file
Change TOKENS (to other tokens of ROW), UNIT, STEP or an equation, and run it again.

Shapes, a row for a vector: $shapes
"""

import base64
import sys
import zlib

import torch

TOKENS = $tokens

UNIT = $unit  # the unit whose numbers are printed, from 0 to $last_unit
STEP = $step  # the step after which the whole distribution is printed, from 1 to $steps
LIKELIEST = 5  # how many of the next tokens are printed for every other step

# Lowest first; the directions of a layer read the same, and the next layer reads their states side by side.
LAYERS = $layers

# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run

# What was changed on the page: (symbol, how, number, steps, units), both counted from 0.
CHANGES = [$changes]


def change(name, value, t):
    """The value of a symbol at step t after the changes."""
    for symbol, how, number, steps, units in CHANGES:
        if symbol == name and t in steps:
            new = value * number if how == "scale" else value + number if how == "add" else torch.full_like(value, number)
            value = value.clone()
            value[:, units] = new[:, units]
    return value


def unroll(read, w, scope):
    """One layer in one direction over the inputs of all steps; a backward one begins at the last step."""
$start
    steps = [None] * len(read)
    order = range(len(read))
    for t in reversed(order) if "backward" in scope else order:
        X_t = read[t]
$body
        steps[t] = {$record}
$carry
    return steps


def run(tokens):
    """Every symbol of every layer at every step, by its full name: a list with one dictionary per step."""
    w = unpacked(WEIGHTS, SHAPES)
    read = []
    for token in tokens:
        X_t = torch.zeros(1, $width)
        X_t[0, ROW[token]] = 1.0  # one-hot, so that X_t W_x is the token's row of W_x
        read.append(X_t)
    found = [{} for _ in tokens]
    for layer in LAYERS:
        halves = [unroll(read, w, scope) for scope in layer]
        for t, now in enumerate(found):
            for scope, steps in zip(layer, halves):
                now.update({scope + name: value for name, value in steps[t].items()})
        read = [torch.cat([steps[t]["H"] for steps in halves], dim=-1) for t in range(len(tokens))]
    for t, (now, H_t) in enumerate(zip(found, read)):
$output
    return found


def main():
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows its number instead
        sys.stdout.reconfigure(errors="backslashreplace")
    steps = run(TOKENS)
    for layer in LAYERS:
        for scope in layer:
            symbols = $symbols
            print(f"\\n{scope[:-1]}, unit {UNIT}".ljust(16))
            print(" " * 16, *[name.rjust(10) for name in symbols])
            for t, (token, now) in enumerate(zip(TOKENS, steps)):
                print(f"{t + 1:4d} {token!r}".ljust(16), *[f"{now[scope + name][0, UNIT].item():10.6f}" for name in symbols])
    for t, (token, now) in enumerate(zip(TOKENS, steps)):
        count = len(NEXT) if t + 1 == STEP else min(LIKELIEST, len(NEXT))
        print(f"\\nnext token after step {t + 1} {token!r}")
        p, order = now["P"][0].topk(count)
        for share, number in zip(p.tolist(), order.tolist()):
            print(f"    {NEXT[number]!r}".ljust(16), f"{share:10.6f}")


# ---------------------------------------------------------------------------------------------------------------- data

# The row of W_x that each token reads; only the rows of this text are embedded. Unknown tokens share the row of <unk>.
ROW = $known

# What the columns of P stand for: the whole vocabulary.
NEXT = $vocabulary

SHAPES = {
$shape_rows
}


def unpacked(text, shapes):
    """The weights by name, from float32 numbers packed with zlib and written in base 85."""
    numbers = torch.frombuffer(bytearray(zlib.decompress(base64.b85decode("".join(text.split())))), dtype=torch.float32)
    sizes = [torch.Size(shape).numel() for shape in shapes.values()]
    return {name: part.reshape(shapes[name]) for name, part in zip(shapes, numbers.split(sizes))}


WEIGHTS = """
$weights
"""

if __name__ == "__main__":
    main()
''')


def script(
    trace: Trace,
    tokens: Sequence[str],
    vocabulary: Sequence[str],
    *,
    model: str = "gru",
    unit: int = 0,
    step: int = 0,
    batch: int = 0,
) -> str:
    """A script that runs alone and prints every symbol of every layer at every step, and the next tokens.

    Arguments as in ``engine.export.script``. Raises ``ValueError`` for a model with a single layer in one direction, and for
    tokens or a vocabulary that do not fit; ``IndexError`` for a unit or step that is not there.
    """
    scopes = [scope for scope in trace.tables if scope]
    if not scopes:
        raise ValueError("this script is written for a model with several layers or directions")
    first = scopes[0]
    ids = trace[f"{first}X"][:, batch].argmax(-1)
    if len(tokens) != len(ids) or len(vocabulary) != trace["P"].shape[-1]:
        raise ValueError(f"{len(tokens)} tokens and a vocabulary of {len(vocabulary)} do not fit this run")
    units = trace[f"{first}H"].shape[-1]
    if not (0 <= unit < units and 0 <= step < len(ids)):
        raise IndexError(f"there is no unit {unit} or no step {step}")
    rows = list(dict.fromkeys(int(i) for i in ids))
    cell = {name.removeprefix(first): e for name, e in trace.equations.items() if trace.scope(name) == first}
    output = {name: e for name, e in trace.equations.items() if not trace.scope(name)}
    table, carried = trace.tables[first], [name.removeprefix(first) for name in trace.start if trace.scope(name) == first]
    lowest = {scope for scope in scopes if scope.split(".")[1] == "0"}
    packed = {
        name: w[rows] if trace.scope(name) in lowest and name.removeprefix(trace.scope(name)).startswith("W_x") else w
        for name, w in trace.weights.items()
    }
    packed |= {f"{name}_start": start[batch][None] for name, start in trace.start.items()}
    depths = dict.fromkeys(scope.split(".")[1] for scope in scopes)
    layers = [[scope for scope in scopes if scope.split(".")[1] == depth] for depth in depths]
    written = [f"# {formula(e, table)}\n{source(e)}" for e in cell.values()]
    written += [f"# {formula(e, trace.tables[''])}\n{source(e)}" for e in output.values()]
    return _SCRIPT.substitute(
        title=MODELS.get(model, "A recurrent model"),
        file=f"{model}-layers.py",
        shapes=f"X (1, tokens of the text {len(rows)}) or the states of the layer below;\nH (1, units {units}).",
        tokens=wrapped(map(repr, tokens), "[]"),
        unit=unit,
        last_unit=units - 1,
        step=step + 1,
        steps=len(ids),
        layers=repr(layers),
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of([*cell.values(), *output.values()])),
        equations="\n\n\n".join(written),
        changes="".join(f"\n    {_change(n, i)}," for n, given in trace.interventions.items() for i in given),
        start="\n".join(f'    {name}_prev = w[scope + "{name}_start"]' for name in carried),
        body="\n".join(f"        {name}_t = {_call(trace, e, first)}" for name, e in cell.items()),
        record=", ".join(f'"{name}": {name}_t' for name in cell),
        carry=f"        {', '.join(f'{n}_prev' for n in carried)} = {', '.join(f'{n}_t' for n in carried)}",
        width=len(rows),
        output="\n".join(f'        {n}_t = now["{n}"] = {_call(trace, e, "")}' for n, e in output.items()),
        symbols=wrapped((f'"{name}"' for name in cell), "[]"),
        known=wrapped((f"{token!r}: {rows.index(int(i))}" for token, i in dict(zip(tokens, ids, strict=True)).items()), "{}"),
        vocabulary=wrapped(map(repr, vocabulary), "[]"),
        shape_rows="\n".join(f'    "{name}": {tuple(w.shape)},' for name, w in packed.items()),
        weights=embedded(packed.values()),
    )


def _call(trace: Trace, e: Equation, scope: str) -> str:
    """One line of a step: the equation called with this step's values, and with the weights of its scope."""
    table = trace.tables[scope]
    prefix = "scope + " if scope else ""

    def given(name: str) -> str:
        if table[name].lag:
            return name
        return f"{name}_t" if table[name].timed else f'w[{prefix}"{name}"]'

    called = f"{e.name}({', '.join(given(name) for name in e.operands)})"
    return f'change({prefix}"{e.name}", {called}, t)'


def _change(name: str, i: Intervention) -> str:
    first, end = i.step if isinstance(i.step, tuple) else (0, None) if i.step is None else (i.step, i.step + 1)
    units = "slice(None)" if i.unit is None else repr([i.unit] if isinstance(i.unit, int) else list(i.unit))
    return f'("{name}", "{i.how}", {i.value!r}, range({first}, {"10**9" if end is None else end}), {units})'
