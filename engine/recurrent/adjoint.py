"""Derivatives read off the equations' own syntax trees: many adjoints carried back through a recorded run at once.

A recorded run has the value of every part of every equation at every step. Each part's derivative follows from its kind: a sum
hands an adjoint on, a product multiplies it with the other factors, a function with its slope, a product with a weight matrix
with that matrix transposed. All coefficients are taken for all steps together; going back, a step costs a few operations for
any number of losses. Autograd's own tape would have to be walked once for each loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.equation import Equation, Intervention, Values
from engine.syntax import Node

# The slope of a function, from its own value.
SLOPES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": lambda v: v * (1 - v),
    "tanh": lambda v: 1 - v * v,
    "relu": lambda v: (v > 0).to(v.dtype),
    "exp": lambda v: v,
}


@dataclass(frozen=True, kw_only=True)
class Term:
    """A weight in an equation: in the sum ``place``, with the operand or part that stands before it (None for a bias)."""

    weight: str
    place: str
    left: str | None
    sign: int


def weight_terms(equations: Mapping[str, Equation], weights: Sequence[str]) -> list[Term]:
    """Where the equations use each weight, read off their syntax trees. Raises ``ValueError`` for another form of use."""
    found: dict[str, Term] = {}
    for e in equations.values():
        for node in e.tree.walk():
            if node.kind != "sum":
                continue
            for sign, child in zip(node.signs, node.children, strict=True):
                product = child.kind == "matmul"
                weight = child.children[1] if product else child
                if weight.kind == "name" and weight.text in weights:
                    left = value_name(child.children[0]) if product else None
                    found[weight.text] = Term(weight=weight.text, place=node.id, left=left, sign=sign)
    missing = set(weights) - found.keys()
    if missing:
        raise ValueError(f"these weights are no terms of a sum in an equation: {', '.join(sorted(missing))}")
    return [found[name] for name in weights]


def value_name(node: Node) -> str:
    """The name under which the value of a part is found: an operand's name or a part's id."""
    return node.text if node.kind == "name" else node.id


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A way down in a tree, and what an adjoint is multiplied with: ``by`` (T, B, H) elementwise, ``matrix`` (H, D) or none."""

    to: Part
    by: Tensor | None = None
    matrix: Tensor | None = None
    sign: int = 1


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part on the way of an adjoint: an operand that passes it on (``name``), or a part with edges below it."""

    name: str = ""
    place: str = ""  # of a sum in which weights stand: its adjoint is kept
    edges: tuple[Edge, ...] = field(default=(), repr=False)


def compiled(e: Equation, values: Values, live: set[str], kept: set[str]) -> Part:
    """The ways of an adjoint through an equation, with the coefficients of a run.

    ``values`` hold every operand and part, (T, B, H) or a weight; ``live`` the operands through which an adjoint goes on;
    ``kept`` the sums whose adjoint is wanted. Raises ``ValueError`` for a kind of part that no recurrent cell has.
    """

    def visit(node: Node) -> Part:
        if node.kind == "name":
            return Part(name=node.text)
        if node.kind == "sum":
            pairs = [(sign, child) for sign, child in zip(node.signs, node.children, strict=True) if onward(child)]
            edges = tuple(Edge(to=visit(child), sign=sign) for sign, child in pairs)
            return Part(place=node.id if node.id in kept else "", edges=edges)
        if node.kind == "negate":
            return Part(edges=(Edge(to=visit(node.children[0]), sign=-1),))
        if node.kind == "product":
            return Part(edges=tuple(factor(node, n) for n, child in enumerate(node.children) if onward(child)))
        if node.kind == "matmul" and not onward(node.children[1]):
            return Part(edges=(Edge(to=visit(node.children[0]), matrix=values[value_name(node.children[1])].T),))
        if node.kind == "call" and node.text in SLOPES:
            return Part(edges=(Edge(to=visit(node.children[0]), by=SLOPES[node.text](values[node.id])),))
        raise ValueError(f"{e.name}: no derivative of a {node.kind} {node.text} here")

    def factor(node: Node, chosen: int) -> Edge:
        sign, by = 1, None
        for n, child in enumerate(node.children):
            if n != chosen:
                other = float(child.text) if child.kind == "number" else values[value_name(child)]
                by = other if by is None else by * other
        return Edge(to=visit(node.children[chosen]), by=torch.as_tensor(by), sign=sign)

    def onward(node: Node) -> bool:
        return bool(node.names() & live) or any(part.id in kept for part in node.walk())

    return visit(e.tree)


def pull(part: Part, adjoint: Tensor, step: int, arrived: Values, kept: Values) -> None:
    """Send an adjoint (rows, B, H) of a part down at one step: ``arrived`` gathers what comes to operands, ``kept`` to sums."""
    if part.name:
        arrived[part.name] = arrived[part.name] + adjoint if part.name in arrived else adjoint
    if part.place:
        kept[part.place] = adjoint
    for edge in part.edges:
        below = adjoint
        if edge.by is not None:
            below = below * (edge.by[step] if edge.by.ndim else edge.by)
        elif edge.matrix is not None:
            below = below @ edge.matrix
        pull(edge.to, -below if edge.sign < 0 else below, step, arrived, kept)


def through(interventions: Sequence[Intervention], adjoint: Tensor) -> Tensor:
    """The adjoint of a result before its interventions, from that of the changed one."""
    for intervention in reversed(interventions):
        units = intervention.units(adjoint.shape[-1])
        if intervention.how != "add":
            adjoint = adjoint.clone()
            adjoint[..., units] *= intervention.value if intervention.how == "scale" else 0.0
    return adjoint
