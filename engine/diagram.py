"""The wires of a model's diagram, derived from its equations: a picture that differs from its formulas cannot be drawn.

A product with a weight matrix and the addition of biases are part of the function they feed, as in every textbook's gate
box; each elementwise operation is a node of its own. A nested circuit is one node, and has a diagram of its own to enter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.equation import Circuit, Nested
from engine.operations import OPERATIONS
from engine.symbols import Symbol
from engine.syntax import Node


@dataclass(frozen=True, kw_only=True)
class DiagramNode:
    """``id`` is a part's id (``C:1``) or the name of an input or output; ``kind`` decides its shape."""

    id: str
    kind: str  # input, output, function, product, sum, complement, affine, matmul, quotient, scale, circuit
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
LABELS = {"product": "×", "sum": "+", "complement": "1−", "affine": "W", "negate": "−"} | {
    "matmul": "·",
    "quotient": "÷",
    "scale": "÷",
    "difference": "−",
}
UNDRAWN = ("weight", "size")  # roles that no wire carries


def wires(circuit: Circuit, table: Mapping[str, Symbol]) -> Diagram:
    """The diagram of one step of ``circuit``; weights and biases are not drawn."""
    drawing = _Drawing(table)
    for name, member in circuit.members.items():
        if isinstance(member, Nested):
            drawing.add(name, "circuit", name, [s for outside in member.reads.values() for s in drawing.name(outside)])
            drawing.made |= {outside: (name, outside) for outside in member.gives}
        else:
            drawing.equation(name, member.tree)
    consumed = {wire.carries for wire in drawing.lines}
    for name, signal in drawing.made.items():
        if name in circuit.carry or name not in consumed:
            drawing.add(name, "output", name, [signal])
    return Diagram(nodes=tuple(drawing.nodes.values()), wires=tuple(drawing.lines))


class _Drawing:
    """Nodes and wires as they come up in the equations; ``made`` says where each result comes from."""

    def __init__(self, table: Mapping[str, Symbol]) -> None:
        self.table = table
        self.nodes: dict[str, DiagramNode] = {}
        self.lines: list[Wire] = []
        self.made: dict[str, Signal] = {}

    def add(self, node_id: str, kind: str, label: str, signals: list[Signal]) -> Signal:
        self.nodes[node_id] = DiagramNode(id=node_id, kind=kind, label=label)
        for source, carries in dict.fromkeys(signals):
            self.lines.append(Wire(source=source, target=node_id, carries=carries))
        return (node_id, node_id)

    def equation(self, name: str, tree: Node) -> None:
        signals = self.visit(tree)
        if tree.id not in self.nodes:
            self.add(tree.id, "affine", LABELS["affine"], signals)
        self.made[name] = (tree.id, name)

    def name(self, name: str) -> list[Signal]:
        if name in self.made:
            return [self.made[name]]
        symbol = self.table[name]
        if not symbol.axes or symbol.role in UNDRAWN:
            return []
        self.nodes.setdefault(name, DiagramNode(id=name, kind="input", label=name))
        return [(name, name)]

    def visit(self, node: Node, inside: bool = False) -> list[Signal]:
        """What comes out of a part. ``inside`` the argument of a function, sums with weights belong to the function's box."""
        if node.kind == "name":
            return self.name(node.text)
        if node.kind == "call":
            return self.call(node, inside)
        below = [self.visit(child, inside and node.kind == "sum") for child in node.children]
        if node.kind == "product":
            below = [self.weighted(child, found) for child, found in zip(node.children, below, strict=True)]
        signals = [signal for each in below for signal in each]
        carrying = sum(bool(each) for each in below)
        if node.kind == "sum":
            if inside and any(part.kind == "matmul" for child in node.children for part in child.walk()):
                return signals
            if carrying == 1 and any(child.kind == "number" for child in node.children):
                return [self.add(node.id, "complement", LABELS["complement"], signals)]
        if node.kind in ("sum", "product", "matmul", "quotient") and carrying > 1:
            minus = node.kind == "sum" and len(node.children) == 2 and node.signs[1] < 0
            return [self.add(node.id, node.kind, LABELS["difference" if minus else node.kind], signals)]
        if node.kind == "quotient" and below[0]:
            return [self.add(node.id, "scale", LABELS["scale"], signals)]
        return signals

    def weighted(self, factor: Node, signals: list[Signal]) -> list[Signal]:
        """A factor that is a product with weights is a node of its own: what enters the product is not what went into it."""
        if not signals or factor.id in self.nodes or not any(part.kind == "matmul" for part in factor.walk()):
            return signals
        return [self.add(factor.id, "affine", LABELS["affine"], signals)]

    def call(self, node: Node, inside: bool) -> list[Signal]:
        operation = OPERATIONS[node.text]
        if operation.style == "index":
            return [signal for child in node.children for signal in self.visit(child, inside)]
        moves = operation.cells == "move"
        signals: list[Signal] = []
        for child in node.children:
            below = self.visit(child, not moves)
            # What is only put elsewhere is no part of a function's box: a product with weights is then a node of its own.
            if moves and below and child.kind in ("matmul", "sum") and child.id not in self.nodes:
                below = [self.add(child.id, "affine", LABELS["affine"], below)]
            signals += below
        return [self.add(node.id, "function", operation.text, signals)] if signals else []
