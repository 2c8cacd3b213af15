"""A stack of blocks as a script that computes the page's sizes and gradients again, layer by layer, and compares them.

It needs nothing but torch: the equations are those that ran, taken from their own source, and every random number is drawn
again from its seed.
"""

from __future__ import annotations

from string import Template

from engine.export import formula, operation, operations_of, source, wrapped
from engine.operations import FUNCTIONS
from engine.transformer.depth import FAR, DepthRun, layers_circuit, layers_table
from engine.transformer.norms import EPS

_SCRIPT = Template('''\
"""A stack of $depth equal blocks: how large vectors and gradients are in each, computed again by the page's own equations.

Made by Unrolled. It needs Python 3.9 or newer and torch, and reads nothing else:  python $file
Change DEPTH, an equation or what stands in the loop, and run it again.
"""

import math

import torch

TOKENS = $tokens  # equal numbers are equal tokens

DEPTH, WIDTH, SEED, SCALE = $depth, $width, $seed, $scale

# ------------------------------------------------------------------------------------------------------------ equations


$operations


$equations


# -------------------------------------------------------------------------------------------------------------- the run


def drawn(seed, *shape, dtype=torch.float32):
    """Normal random numbers of their own seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def main():
    vectors = drawn(SEED, len(set(TOKENS)), WIDTH, dtype=torch.float64)
    $change
    X = vectors[TOKENS].requires_grad_()
    generator = torch.Generator().manual_seed(SEED + 1)
    weights = [torch.randn(WIDTH, WIDTH, generator=generator) * (SCALE / math.sqrt(WIDTH)) for _ in range(DEPTH)]
    weights = [W.double().requires_grad_() for W in weights]
    target = drawn(SEED + 2, *X.shape).double()
    now = {"eps": torch.tensor($eps, dtype=torch.float64), "over": torch.tensor([-2])}
    now |= {"gamma": torch.ones(WIDTH, dtype=torch.float64), "beta": torch.zeros(WIDTH, dtype=torch.float64)}
    sizes, value = [], X
    for W in weights:
        now |= {"X": value, "W": W}
$body
        value = now["Y"]
        sizes.append(value.detach().square().mean().sqrt().item())
    loss = (value - target).square().mean()
    gradients = [gradient.norm().item() for gradient in torch.autograd.grad(loss, weights)]
    print("block        size of the output        gradient of its matrix")
    for block, (size, gradient) in enumerate(zip(sizes, gradients), start=1):
        print(f"{block:5d}  {size:24.6e}  {gradient:28.6e}")
    pairs = [*zip(sizes, SIZES), *zip(gradients, GRADIENTS)]
    far = max(abs(here - page) / max(abs(page), 1e-300) for here, page in pairs)
    print(f"\\nlargest difference from the page, relative: {far:.1e}")


# what the page shows
SIZES = $sizes
GRADIENTS = $gradients

if __name__ == "__main__":
    main()
''')


def called(name: str) -> str:
    """The name of an equation's function in the script: the mean is defined by an operation of the same name."""
    return f"the_{name}" if name in FUNCTIONS else name


def script(run: DepthRun) -> str:
    """A script that runs alone and prints the sizes of every block, and how near they are to those of the page."""
    circuit, table = layers_circuit(run.arrangement, run.norm, run.activation), layers_table(run.norm)
    flow = run.flow()
    known = {token: place for place, token in enumerate(dict.fromkeys(run.ids))}
    calls = []
    for name, e in circuit.equations.items():
        arguments = ", ".join(f'now["{operand}"]' for operand in e.operands)
        calls.append(f'        now["{name}"] = {called(name)}({arguments})')
    written = [
        f"# {formula(e, table)}\n{source(e)}".replace(f"def {name}(", f"def {called(name)}(")
        for name, e in circuit.equations.items()
    ]
    change = {
        "normal": "# each number from N(0, 1)",
        "constant": "vectors = vectors[:, :1].repeat(1, WIDTH)  # all features of a token are equal",
        "far": f"vectors = vectors + {FAR}",
    }[run.given]
    return _SCRIPT.substitute(
        file="residual_norm.py",
        depth=run.depth,
        width=run.width,
        seed=run.seed,
        scale=repr(run.init_scale),
        eps=repr(EPS),
        tokens=wrapped((str(known[token]) for token in run.ids), "[]"),
        change=change,
        operations="\n\n\n".join(operation(FUNCTIONS[name]) for name in operations_of(circuit.equations.values())),
        equations="\n\n\n".join(written),
        body="\n".join(calls),
        sizes=wrapped((repr(size) for size in flow.forward[1:]), "[]"),
        gradients=wrapped((repr(size) for size in flow.weights), "[]"),
    )
