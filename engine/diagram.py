"""The wires of a model's diagram, derived from its equations: a picture that differs from its formulas cannot be drawn.

A product with a weight matrix and the addition of biases are part of the function they feed, as in every textbook's gate
box; each elementwise operation is a node of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.equation import Circuit
from engine.operations import OPERATIONS
from engine.symbols import Symbol
from engine.syntax import Node


@dataclass(frozen=True, kw_only=True)
class DiagramNode:
    """``id`` is a part's id (``C:1``) or the name of an input or output; ``kind`` decides its shape."""

    id: str
    kind: str  # input, output, function, product, sum, complement, affine
    label: str


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A wire between two nodes. ``carries`` is the symbol (``F``) or part (``C:1``) whose value runs on it."""

    source: str
    target: str
    carries: str


@dataclass(frozen=True, kw_only=True)
class Diagram:
    """All nodes and wires of one step of a circuit."""

    nodes: tuple[DiagramNode, ...]
    wires: tuple[Wire, ...]


Signal = tuple[str, str]  # node it comes from, what it carries
LABELS = {"product": "×", "sum": "+", "complement": "1−", "affine": "W", "negate": "−"}


def wires(circuit: Circuit, table: dict[str, Symbol]) -> Diagram:
    """The diagram of one step of ``circuit``; weights and biases are not drawn."""
    nodes: dict[str, DiagramNode] = {}
    lines: list[Wire] = []
    made: dict[str, Signal] = {}

    def drawn(name: str) -> bool:
        return name in circuit.equations or table[name].timed

    def add(node_id: str, kind: str, label: str, signals: list[Signal]) -> Signal:
        nodes[node_id] = DiagramNode(id=node_id, kind=kind, label=label)
        for source, carries in dict.fromkeys(signals):
            lines.append(Wire(source=source, target=node_id, carries=carries))
        return (node_id, node_id)

    def visit(node: Node, inside: bool = False) -> list[Signal]:
        if node.kind == "name":
            if not drawn(node.text):
                return []
            if node.text in made:
                return [made[node.text]]
            nodes.setdefault(node.text, DiagramNode(id=node.text, kind="input", label=node.text))
            return [(node.text, node.text)]
        if node.kind == "number":
            return []
        below = [visit(child, node.kind == "call" or (inside and node.kind == "sum")) for child in node.children]
        signals = [signal for each in below for signal in each]
        carrying = sum(bool(each) for each in below)
        if node.kind == "call":
            return [add(node.id, "function", OPERATIONS[node.text].text, signals)]
        if node.kind == "sum":
            # A function's argument is one weighted sum of all that comes in: it belongs to the function's box.
            if inside and any(part.kind == "matmul" for child in node.children for part in child.walk()):
                return signals
            if carrying == 1 and any(child.kind == "number" for child in node.children):
                return [add(node.id, "complement", LABELS["complement"], signals)]
        if node.kind in ("sum", "product") and carrying > 1:
            return [add(node.id, node.kind, LABELS[node.kind], signals)]
        return signals

    for name, e in circuit.equations.items():
        signals = visit(e.tree)
        if e.tree.id not in nodes:
            add(e.tree.id, "affine", LABELS["affine"], signals)
        made[name] = (e.tree.id, name)
    consumed = {wire.carries for wire in lines}
    for name in circuit.equations:
        if name in circuit.carry or name not in consumed:
            add(name, "output", name, [made[name]])
    return Diagram(nodes=tuple(nodes.values()), wires=tuple(lines))
