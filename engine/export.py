"""What a learner takes home: a script that computes the numbers of a run again.

It needs nothing but torch. Its functions are the equations of the trace, taken from the very source that ran; the weights it
needs are embedded. Text of the user appears only as Python literals, never as code.
"""

from __future__ import annotations

import ast
import base64
import inspect
import textwrap
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Template
from typing import Any

import numpy as np

from engine.equation import Equation, Intervention
from engine.operations import FUNCTIONS, OPERATIONS
from engine.symbols import Symbol
from engine.syntax import Node
from engine.trace import Array, Trace

MODELS = {"rnn": "A plain recurrent network", "gru": "A gated recurrent unit", "lstm": "An LSTM"}

# ------------------------------------------------------------------------------------------------------ equations as text

_LOOSE, _TIGHT = {"sum": 1, "negate": 2, "product": 3, "quotient": 4, "matmul": 4, "power": 5, "transpose": 5}, 9


def formula(e: Equation, table: Mapping[str, Symbol]) -> str:
    """An equation as one line of plain text: ``F_t = σ(X_t W_xf + H_{t-1} W_hf + b_f)``."""
    return f"{_spelled(table[e.name])} = {_text(e.tree, table)}"


def _spelled(s: Symbol) -> str:
    index = s.subscript + (f"{{t-{s.lag}}}" if s.lag else "t" if s.timed else "")
    return f"{s.letter}{'~' if s.tilde else ''}" + (f"_{index}" if index else "")


def _text(node: Node, table: Mapping[str, Symbol], least: int = 0) -> str:
    c = node.children
    match node.kind:
        case "name":
            return _spelled(table[node.text])
        case "number":
            return node.text
        case "call":
            inside = ", ".join(_text(child, table) for child in c)
            return f"{OPERATIONS[node.text].text}({inside})"
        case "sum":
            text = _text(c[0], table, 1)
            for sign, child in zip(node.signs[1:], c[1:], strict=True):
                text += (" - " if sign < 0 else " + ") + _text(child, table, 2)
        case "negate":
            text = "-" + _text(c[0], table, 3)
        case "product":
            text = " ⊙ ".join(_text(child, table, 3) for child in c)
        case "matmul":
            text = f"{_text(c[0], table, 4)} {_text(c[1], table, 5)}"
        case "quotient":
            text = f"{_text(c[0], table, 4)} / {_text(c[1], table, 5)}"
        case "power":
            text = f"{_text(c[0], table, 6)}^{_text(c[1], table, 6)}"
        case _:
            text = f"{_text(c[0], table, 6)}ᵀ"
    return text if _LOOSE.get(node.kind, _TIGHT) >= least else f"({text})"


def source(e: Equation) -> str:
    """The function of an equation as it stands in the engine, named after the symbol it defines."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(e.function))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.name, definition.decorator_list = e.name, []
    return ast.unparse(definition)


def operation(function: Callable[..., Any]) -> str:
    """The function of an operation, without its annotations."""
    definition = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.returns = None
    for argument in definition.args.args:
        argument.annotation = None
    return ast.unparse(definition)


# --------------------------------------------------------------------------------------------------------- the script

_SCRIPT = Template('''\
"""$title steps through a text: the numbers on the page, computed again by the page's own equations.

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

# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run

$changes
def run(tokens):
    """Every symbol at every step: a list with one dictionary per step, each value a row (1, units)."""
    w = unpacked(WEIGHTS, SHAPES)
$start
    steps = []
    for t, token in enumerate(tokens):
        X_t = torch.zeros(1, $width)
        X_t[0, ROW[token]] = 1.0  # one-hot, so that X_t W_x is the token's row of W_x
$body
        steps.append({$record})
$carry
    return steps


def main():
    if hasattr(sys.stdout, "reconfigure"):  # a terminal that lacks a character shows its number instead
        sys.stdout.reconfigure(errors="backslashreplace")
    steps = run(TOKENS)
    symbols = $symbols
    print(f"unit {UNIT}".ljust(16), *[name.rjust(10) for name in symbols])
    for t, (token, now) in enumerate(zip(TOKENS, steps)):
        print(f"{t + 1:4d} {token!r}".ljust(16), *[f"{now[name][0, UNIT].item():10.6f}" for name in symbols])
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

_CHANGE = '''\
# What was changed on the page: (symbol, how, number, steps, units), both counted from 0.
CHANGES = [
$rows
]


def change(name, value, t):
    """The value of a symbol at step t after the changes."""
    for symbol, how, number, steps, units in CHANGES:
        if symbol == name and t in steps:
            new = value * number if how == "scale" else value + number if how == "add" else torch.full_like(value, number)
            value = value.clone()
            value[:, units] = new[:, units]
    return value


'''


def script(
    trace: Trace,
    tokens: Sequence[str],
    vocabulary: Sequence[str],
    *,
    model: str = "lstm",
    unit: int = 0,
    step: int = 0,
    batch: int = 0,
) -> str:
    """A script that runs alone and prints the trace's numbers: every symbol at every step, and the next tokens.

    ``tokens`` (T,) are the text as it was typed, ``vocabulary`` (V,) what the columns of P stand for. Raises ``ValueError`` for
    a model with several layers or directions, and for tokens or a vocabulary that do not fit; ``IndexError`` for a unit or step
    that is not there.
    """
    if any(trace.scope(name) for name in trace):
        raise ValueError("a script is written for a model with one layer in one direction")
    ids = trace["X"][:, batch].argmax(-1)
    if len(tokens) != len(ids) or len(vocabulary) != trace["P"].shape[-1]:
        raise ValueError(
            f"{len(tokens)} tokens and a vocabulary of {len(vocabulary)} do not fit a run of {len(ids)} steps "
            f"over {trace['P'].shape[-1]} tokens"
        )
    if not (0 <= unit < trace["H"].shape[-1] and 0 <= step < len(ids)):
        raise IndexError(f"there is no unit {unit} or no step {step}")
    rows = list(dict.fromkeys(int(i) for i in ids))
    table = trace.tables[""]
    packed = {name: w[rows] if table[name].axes.startswith("D") else w for name, w in trace.weights.items()}
    packed |= {f"{name}_start": start[batch][None] for name, start in trace.start.items()}
    carried = list(trace.start)
    return _SCRIPT.substitute(
        title=MODELS.get(model, "A recurrent model"),
        file=f"{model}.py",
        shapes=_named_shapes(trace, len(rows)),
        tokens=wrapped(map(repr, tokens), "[]"),
        unit=unit,
        last_unit=trace["H"].shape[-1] - 1,
        step=step + 1,
        steps=len(ids),
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of(trace.equations.values())),
        equations="\n\n\n".join(f"# {formula(e, table)}\n{source(e)}" for e in trace.equations.values()),
        changes=_changes(trace),
        width=len(rows),
        start="\n".join(f'    {name}_prev = w["{name}_start"]' for name in carried),
        body="\n".join(f"        {name}_t = {_call(trace, e)}" for name, e in trace.equations.items()),
        record=", ".join(f'"{name}": {name}_t' for name in trace),
        carry=f"        {', '.join(f'{n}_prev' for n in carried)} = {', '.join(f'{n}_t' for n in carried)}",
        symbols=wrapped((f'"{name}"' for name in trace if name not in ("Y", "P")), "[]"),
        known=wrapped((f"{token!r}: {rows.index(int(i))}" for token, i in dict(zip(tokens, ids, strict=True)).items()), "{}"),
        vocabulary=wrapped(map(repr, vocabulary), "[]"),
        shape_rows="\n".join(f'    "{name}": {tuple(w.shape)},' for name, w in packed.items()),
        weights=embedded(packed.values()),
    )


def wrapped(parts: Iterable[str], brackets: str, width: int = 110) -> str:
    """A list or dictionary over as many lines as it needs; a part is never broken."""
    lines, line = [], ""
    for part in parts:
        if line and len(line) + len(part) > width:
            lines.append(line.rstrip())
            line = ""
        line += f"{part}, "
    lines.append(line.rstrip())
    if len(lines) == 1:
        return f"{brackets[0]}{lines[0].rstrip(',')}{brackets[1]}"
    return "\n".join([brackets[0], *(f"    {each}" for each in lines), brackets[1]])


def operations_of(equations: Iterable[Equation]) -> list[str]:
    """The operations that the equations use, in the order of the engine's list."""
    used = {node.text for e in equations for node in e.tree.walk() if node.kind == "call"}
    return [name for name in OPERATIONS if name in used]


def _call(trace: Trace, e: Equation) -> str:
    """One line of the run: the equation called with this step's values."""
    table = trace.tables[""]

    def given(name: str) -> str:
        if table[name].lag:
            return name
        return f"{name}_t" if table[name].timed else f'w["{name}"]'

    called = f"{e.name}({', '.join(given(name) for name in e.operands)})"
    return f'change("{e.name}", {called}, t)' if trace.interventions.get(e.name) else called


def _changes(trace: Trace) -> str:
    """The interventions as data, and the function that applies them; nothing where there are none."""
    acting = [(name, i) for name, given in trace.interventions.items() for i in given]
    if not acting:
        return ""
    return _CHANGE.replace("$rows", "\n".join(f"    {_change(name, i)}," for name, i in acting))


def _change(name: str, i: Intervention) -> str:
    first, end = i.step if isinstance(i.step, tuple) else (0, None) if i.step is None else (i.step, i.step + 1)
    units = "slice(None)" if i.unit is None else repr([i.unit] if isinstance(i.unit, int) else list(i.unit))
    return f'("{name}", "{i.how}", {i.value!r}, range({first}, {"10**9" if end is None else end}), {units})'


def _named_shapes(trace: Trace, rows: int) -> str:
    """The size of every axis with its name."""
    units, columns = trace["H"].shape[-1], trace["P"].shape[-1]
    states = ", ".join(name for name in trace if name not in ("Y", "P"))
    return (
        f"X (1, tokens of the text {rows});\n{states} (1, units {units}); Y, P (1, vocabulary {columns});\n"
        f"W_x* (tokens of the text {rows}, units {units}); W_h* (units {units}, units {units}); b_* (units {units});\n"
        f"W_hq (units {units}, vocabulary {columns}); b_q (vocabulary {columns})."
    )


def embedded(weights: Iterable[Array]) -> str:
    """Arrays as the text from which a script reads them: float32, one after the other, packed and in base 85."""
    numbers = np.concatenate([w.astype("<f4").ravel() for w in weights])
    text = base64.b85encode(zlib.compress(numbers.tobytes(), 9)).decode("ascii")
    return "\n".join(text[at : at + 116] for at in range(0, len(text), 116))
