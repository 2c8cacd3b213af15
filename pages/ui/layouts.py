"""Where the nodes, bends and labels of a model's diagram stand: data in assets/stage/layouts, chosen by what is drawn.

A layout file holds places on a grid of ``width`` x ``height``: ``nodes`` (x, y, kind), ``wires`` (the bends between two
nodes; none is a straight line), ``dots`` (where a wire branches), ``labels`` (x, y, side, "bare" for a number without its
symbol), the cell's ``frame`` and the order of the ``strips``. It may extend another one: ids are renamed, entries replaced.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from engine.diagram import Diagram

FOLDER = Path(__file__).resolve().parents[2] / "assets" / "stage" / "layouts"
Layout = dict[str, Any]


def _renamed(layout: Layout, names: Mapping[str, str]) -> Layout:
    """The layout with node ids replaced everywhere."""

    def name(node: str) -> str:
        return names.get(node, node)

    wires = {">".join(name(end) for end in wire.split(">")): bends for wire, bends in layout["wires"].items()}
    return layout | {
        "nodes": {name(node): place for node, place in layout["nodes"].items()},
        "wires": wires,
        "labels": {name(carries): place for carries, place in layout["labels"].items()},
        "dots": [dot | {"carries": name(dot["carries"])} for dot in layout["dots"]],
    }


@cache
def read(name: str) -> Layout:
    """One layout, with what it extends put in. An entry that is null takes the one below it away."""
    own: Layout = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    if "extends" not in own:
        return own
    layout = _renamed(read(own["extends"]), own.get("rename", {}))
    for part in ("nodes", "wires", "labels"):
        merged = layout[part] | own.get(part, {})
        layout[part] = {key: place for key, place in merged.items() if place is not None}
    return layout | {key: own[key] for key in ("dots", "strips", "frame") if key in own}


def fits(layout: Layout, diagram: Diagram) -> bool:
    """Whether the layout places exactly these nodes, each with its kind, and no wire that is not there."""
    nodes = {node.id: node.kind for node in diagram.nodes}
    ends = {f"{wire.source}>{wire.target}" for wire in diagram.wires}
    return nodes == {node: kind for node, (_, _, kind) in layout["nodes"].items()} and layout["wires"].keys() <= ends


def layout_of(diagram: Diagram) -> Layout:
    """The layout of this diagram. Raises ``LookupError`` where no file places it: a model that cannot be drawn yet."""
    for path in sorted(FOLDER.glob("*.json")):
        if fits(layout := read(path.stem), diagram):
            return layout
    raise LookupError(f"no layout places the nodes {', '.join(node.id for node in diagram.nodes)}")
