"""A run that has all positions at once, as bytes for the stage: attention, norms, gradients between steps.

How to show something of your own on the stage
----------------------------------------------
``pack(trace, views=(...), tokens=...)`` makes the bytes, ``pages.ui.stage.mount`` shows them. Whatever a traced circuit has
(symbols, parts of its formulas, inputs, weights) is packed by itself; arrays that no equation made come as ``extra``. Each is
found by the keys of its axes: T query or row (the step that is played), S key or column, N head, C position of the cut; every
other axis counts units. The learner's place is {step, key, head, unit, cut, symbol}; it moves in the browser, is written into
the address there, and no message goes to the server.

A view is a dictionary with ``view``, the ``area`` it stands in (time, side, next, more, what) and its own entries:

=========== ==========================================================================================================
matrix      the large map of the chosen symbol; ``array`` fixes it to one. ``title``, and ``cut``: "rows" or "columns" for a
            line that can be dragged (its axis is C, ``cut_label`` its name); ``instead`` is shown while ``array`` is chosen
multiples   the maps of all heads side by side; with ``heads_symbol`` each has switches that take it out or keep it alone
panel       formulas, and the chosen one read with this cell's numbers
terms       what the chosen number is a sum of: two vectors, their products and the sum; of a softmax the whole row
sum         ``whole`` as the sum of ``parts`` over the heads (and ``bias``), with numbers
diagram     wires derived from the equations; a file in assets/stage/layouts places them
curves      ``x``, ``lines`` ({array, label, role, dashed, marked, when}) over T, ``points`` ({x, y} over S, weights over TS);
            the query is a point on the axis, dragged. ``shade``, ``log_x``, ``axis_x``, ``axis_y``; ``editable``: a click
            adds or takes away a point (``stage.mount(on_touch=...)``); ``fixed``: nothing is dragged, and a line over two axes
            shows its chosen row
series      a series of numbers and a forecast over it, with the values each prediction is made from (assets/stage/series.js)
vectors     ``symbols``: the chosen row of each as bars, in the order in which they are computed
readout     ``items`` ({array, label, digits, when, power}): numbers that follow the place, for instance over C
=========== ==========================================================================================================

Words come from ``pages.ui.stage.stage_words``; a lesson whose rows are no queries replaces some of them
(``{**stage_words(), "at_step": "...", "at_key": "..."}``). NaN in an array is a cell that is not there: nothing is drawn.
A second stage on a page is packed with ``aside=True``: its place is not written into the address. ``without`` names parts that
are not shown: "tokens" (the rows are numbers on a line), "transport" (there is nothing to play). ``wide``: the area ``time``
takes the whole width. ``tick``: milliseconds from step to step when it plays.

A map alone, with a cut: ``pack(None, views=({"view": "matrix", "area": "time", "array": "G", "cut": "columns"}, {"view":
"readout", "area": "side", "items": [{"array": "cosine", "label": "..."}]}), tokens=tokens, keys=tokens, extra={"G":
Extra(log_norms, "TS", name="...", interval=(-6, 0), paper=True), "cosine": Extra(cosines, "C")}, words=...)``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine import cells, notation
from engine.diagram import wires
from engine.equation import Circuit
from engine.symbols import Symbol
from engine.syntax import Node
from engine.text.display import visible
from engine.trace import Trace
from pages.ui.arrays import Array, Block, Header, alike, reach, scale_of, single, strides
from pages.ui.layouts import layout_of
from pages.ui.payload import as_json

View = Mapping[str, Any]
MOST_CELLS = 256  # rows or columns of one map
PLACED = "TSNC"  # axes with a place of their own; the others count units


@dataclass(frozen=True)
class Extra:
    """An array that no equation of the trace made. With a ``name`` it can be chosen like a symbol, written as ``letter``.

    ``interval`` is its fixed scale (else +- the power of two that holds it); ``paper`` draws its low end as paper, as a
    log of norms wants; ``unit`` stands before the ends of its scale (``10^``).
    """

    values: Array
    axes: str
    name: str = ""
    letter: str = ""
    role: str = "state"
    interval: tuple[float, float] | None = None
    paper: bool = False
    unit: str = ""


class Packing:
    """One circuit of a trace (those of its equations that stand in ``scope``), one sequence of its batch, into a block."""

    def __init__(self, trace: Trace, block: Block, scope: str, batch: int) -> None:
        self.trace, self.block, self.scope, self.batch = trace, block, scope, batch
        self.table = trace.tables[scope]
        self.equations = {e.name: e for name, e in trace.equations.items() if trace.scope(name) == scope}
        self.cells: dict[str, dict[str, str]] = {}
        self.terms: dict[str, Header] = {}
        self.scales: dict[str, Header] = {}

    def lookup(self, name: str) -> Array:
        return self.trace.values_of(self.scope, name)

    def seen(self, values: Array, axes: str) -> Array:
        """Those of a pair's numbers that the mask keeps: what it hides decides no scale. All of them elsewhere."""
        masks = [name for name in self.trace.inputs if self.trace.scope(name) == self.scope]
        masks = [name for name in masks if name[len(self.scope) :] in self.table and self.trace.symbol(name).role == "mask"]
        if not masks or not axes.endswith("TS"):
            return values
        mask = self.trace.inputs[masks[0]]
        own = self.trace.symbol(masks[0]).axes
        keep, _ = single(mask, own[len(own) - mask.ndim :], self.batch)
        if np.broadcast_shapes(keep.shape, values.shape) != values.shape:  # the mask itself, one for all heads
            return values
        kept: Array = values[np.broadcast_to(keep.astype(bool), values.shape)]
        return kept if kept.size else values  # where it hides everything, all of them

    def symbol(self, name: str, baseline: Trace | None) -> None:
        """Pack a result, an input or a weight under its own name."""
        array = self.lookup(name)
        axes = self.table[name].axes
        values, kept = single(array, axes[len(axes) - array.ndim :], self.batch)
        values = alike(values, kept) if self.table[name].role == "mask" else values
        self.block.add(name, values, kept)
        runs = [values]
        if baseline is not None and name in self.equations:
            before, _ = single(baseline.values_of(self.scope, name), axes[len(axes) - array.ndim :], self.batch)
            self.block.add(f"baseline/{name}", before, kept)
            runs.append(before)
        self.scales[name] = scale_of(self.table[name], [self.seen(run, kept) for run in runs])

    def equation(self, name: str) -> None:
        """Pack the numbers behind the slots of an equation, in the cells of its result, and what its product adds up."""
        equation = self.equations[name]
        result = self.trace.axes(self.scope + name)
        places = {}
        aligned = dict(self.trace.aligned(self.scope + name))
        aligned.setdefault(equation.tree.id, self.trace.terms[self.scope + equation.tree.id])
        for slot, array in aligned.items():
            values, axes = single(array, result[len(result) - array.ndim :], self.batch)
            if slot in self.table and self.table[slot].role == "mask":
                values = alike(values, axes)
            places[slot] = f"{name}/{slot}"
            self.block.add(places[slot], values, axes)
            if ":" in slot:
                limit = reach([self.seen(values, axes)])
                self.scales[slot] = {"interval": [-limit, limit], "role": self.table[name].role}
        self.cells[name] = places
        row = next((n for n in equation.tree.walk() if n.kind == "call" and n.text in ("softmax", "masked_softmax")), None)
        if row is not None:
            compared = row.children[0]
            compared = compared.children[0] if compared.kind == "quotient" else compared  # scores at a temperature
            if compared.kind == "name":
                self.terms[name] = {"kind": "row", "names": [compared.text, name]}
        found = [(node, carry) for node, carry in cells.slots(equation, self.lookup) if node.kind == "matmul"]
        if len(found) == 1 and (terms := self.product(name, result, *found[0])):
            self.terms[name] = terms

    def product(self, name: str, result: str, node: Node, carry: cells.Carry) -> Header | None:
        """The rows and columns of a product of matrices, and which of them add up to each cell of the result."""
        left, right = (self.lookup(cells.name_of(child)) for child in node.children)
        shape = self.lookup(node.id).shape
        if left.ndim < 2:
            return None
        vector = right.ndim == 1  # a matrix times one vector: every row of the result reads the same one
        right = right if vector else np.swapaxes(right, -1, -2)
        sides: dict[str, Header] = {}
        for side, array, child in (("left", left, node.children[0]), ("right", right, node.children[1])):
            number = np.arange(int(np.prod(array.shape[:-1])), dtype=np.float64).reshape(array.shape[:-1])
            if not vector:
                number = number[..., np.newaxis] if side == "left" else number[..., np.newaxis, :]
            index = carry(np.ascontiguousarray(np.broadcast_to(number, shape)))
            index, axes = single(index, result, self.batch)
            steps = strides(index - index.flat[0], axes)
            if steps is None:
                return None
            rows = array.reshape(-1, array.shape[-1])[int(index.flat[0]) :]
            symbol = next(part.text for part in child.walk() if part.kind == "name")
            self.block.add(f"{name}/{side}", rows, "__")
            sides[side] = {"array": f"{name}/{side}", "strides": steps, "name": symbol}
            if any(part.kind == "matmul" for part in child.walk()):  # no symbol, but a part: it is written as it stands
                sides[side]["written"] = notation.part_mathml(child, self.table)
                self.scales.setdefault(f"{name}/{side}", {"interval": [-reach([rows]), reach([rows])], "role": "state"})
        over = self.table[str(sides["left"]["name"])].axes[-1:]
        return {"kind": "product", "part": node.id, "length": int(left.shape[-1]), "over": over, **sides}

    def formulas(self, docs: Mapping[str, str]) -> list[Header]:
        """Formula, formula with slots and sentence of each equation. A bare sum has no parts: it is read as its number."""
        found = []
        for name, equation in self.equations.items():
            whole = notation.slot_of(equation.tree) is not None
            plugged = self.number(name, equation.tree.id) if whole else notation.plugged_mathml(equation, self.table)
            mathml = notation.mathml(equation, self.table)
            found.append({"name": name, "mathml": mathml, "plugged": plugged, "doc": docs.get(name, equation.doc)})
        return found

    def number(self, name: str, slot: str) -> str:
        """A symbol and its number, as a formula."""
        role = self.table[name].role
        mark = f'<mn data-slot="{slot}" data-symbol="{name}" data-role="{role}"></mn>'
        return notation.math(f"{notation.symbol_mathml(self.table[name])}<mo>=</mo>{mark}")

    def symbols(self, names: Mapping[str, str]) -> dict[str, Header]:
        """What the stage must know of each symbol that has an array; one that no equation defines is read alone."""
        found: dict[str, Header] = {}
        for name in self.block.arrays:
            if name not in self.table or not self.table[name].axes:
                continue
            symbol = self.table[name]
            called = names.get(name) or (self.equations[name].doc.split(":")[0] if name in self.equations else symbol.letter)
            found[name] = {"role": symbol.role, "mathml": notation.symbol_mathml(symbol), "name": called}
            if name not in self.equations:
                found[name] |= {"plugged": self.number(name, name), "doc": called}
        return found


def pack(
    trace: Trace | None,
    *,
    views: Sequence[View],
    tokens: Sequence[str],
    words: Mapping[str, str],
    keys: Sequence[str] | None = None,
    extra: Mapping[str, Extra] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    names: Mapping[str, str] | None = None,
    docs: Mapping[str, str] | None = None,
    start: Mapping[str, Any] | None = None,
    baseline: Trace | None = None,
    heads_symbol: str = "",
    means: Mapping[str, str] | None = None,
    table: Sequence[str] = (),
    first: str = "",
    shown: str = "",
    scope: str = "",
    batch: int = 0,
    aside: bool = False,
    without: Sequence[str] = (),
    wide: bool = False,
    tick: int | None = None,
) -> bytes:
    """Pack a run for ``views``. ``tokens`` are the raw labels of the rows T, ``keys`` those of S (None: the same).

    ``labels`` names the cells of other axes, ``first`` is the symbol to open with, ``shown`` the one that the map shows
    while the chosen symbol is no matrix, ``means`` says which ``extra`` array is a symbol's mean over the heads, ``table``
    the symbols of the text alternative. ``heads_symbol`` is the symbol that is set to 0 where a head is taken out. Raises
    ``ValueError`` where tokens and arrays differ in number, or a map would have more than 256 rows or columns.
    """
    block, extra = Block(), dict(extra or {})
    header: Header = {"cells": {}, "terms": {}, "scales": {}, "equations": [], "symbols": {}, "interventions": []}
    if trace is not None:
        packing = Packing(trace, block, scope, batch)
        wanted = dict.fromkeys([*(o for e in packing.equations.values() for o in e.operands), *packing.equations])
        for name in wanted:
            packing.symbol(name, baseline)
        for name in packing.equations:
            packing.equation(name)
        if any(view["view"] == "diagram" for view in views):
            diagram = wires(Circuit(*packing.equations.values()), dict(packing.table))
            header["layout"] = layout_of(diagram)
            header["diagram"] = {
                "nodes": [{"id": n.id, "kind": n.kind, "label": n.label} for n in diagram.nodes],
                "wires": [{"from": w.source, "to": w.target, "carries": w.carries} for w in diagram.wires],
            }
            for part in {w.carries for w in diagram.wires if ":" in w.carries} - block.arrays.keys():
                _part(packing, part)
        header |= {
            "cells": packing.cells,
            "terms": packing.terms,
            "scales": packing.scales,
            "equations": packing.formulas(docs or {}),
            "symbols": packing.symbols(names or {}),
            "interventions": _interventions(trace),
        }
    for name, one in extra.items():
        _extra(block, header, name, one)
    sizes: dict[str, int] = {}
    for entry in block.arrays.values():
        for axis, size in zip(entry["axes"], entry["shape"], strict=True):
            sizes[axis] = max(size, sizes.get(axis, 1))
    sizes["T"] = sizes.get("T", len(tokens))
    rows, columns = [visible(t) for t in tokens], [visible(t) for t in (tokens if keys is None else keys)]
    if len(rows) != sizes["T"] or len(columns) != sizes.get("S", len(columns)):
        raise ValueError(f"{len(rows)} rows and {len(columns)} columns are named, of {sizes['T']} and {sizes.get('S')}")
    if max(sizes["T"], sizes.get("S", 1)) > MOST_CELLS:
        raise ValueError(f"a map has at most {MOST_CELLS} rows and columns")
    opening = first or next(iter(header["symbols"]), "")
    header |= {
        "views": [dict(view) for view in views],
        "steps": sizes["T"],
        "sizes": sizes,
        "tokens": rows,
        "unknown": [False] * len(rows),
        "labels": {"T": rows, "S": columns, **{axis: list(texts) for axis, texts in (labels or {}).items()}},
        "slots": {},
        "arrays": block.arrays,
        "mask": next((n for n in block.arrays if n in header["symbols"] and header["symbols"][n]["role"] == "mask"), ""),
        "map": shown or opening,
        "first": opening,
        "means": dict(means or {}),
        "heads_symbol": heads_symbol,
        "table": list(table) or list(header["symbols"]),
        "has_baseline": baseline is not None,
        "words": dict(words),
        "aside": aside,
        "without": list(without),
        "wide": wide,
        **({"tick": tick} if tick else {}),
    }
    body = block.to_bytes()
    header["key"] = hashlib.sha256(as_json(header) + body).hexdigest()[:16]
    header["start"] = {"step": 0, "key": 0, "head": 0, "unit": 0, "cut": 0, "symbol": opening, **(start or {})}
    text = as_json(header)
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + body


def _part(packing: Packing, part: str) -> None:
    """Pack a part of an equation that only a wire carries, in the part's own shape, with the last axes of its result."""
    name = part.partition(":")[0]
    array = packing.trace.terms[packing.scope + part]
    axes = packing.trace.axes(packing.scope + name)
    whole = packing.trace[packing.scope + name]
    own = axes if array.ndim == whole.ndim else axes.replace("N", "")
    more = "_" * (array.ndim - len(own))  # axes that the result has no more: summed over last, or first of all
    own = own + more if more and array.shape[: len(own)] == whole.shape else more + own[max(len(own) - array.ndim, 0) :]
    values, kept = single(array, own, packing.batch)
    packing.block.add(part, values, kept)
    packing.scales[part] = {"interval": [-reach([values]), reach([values])], "role": packing.table[name].role}


def _extra(block: Block, header: Header, name: str, one: Extra) -> None:
    block.add(name, one.values, one.axes)
    limit = reach([one.values])
    scale = {"interval": list(one.interval or (-limit, limit)), "role": one.role, "unit": one.unit}
    header["scales"][name] = scale | ({"ramp": "paper"} if one.paper else {})
    if one.name:
        symbol = Symbol(name=name, letter=one.letter or name, axes=one.axes, role=one.role, whole=True)
        mark = f'<mn data-slot="{name}" data-symbol="{name}" data-role="{one.role}"></mn>'
        written = notation.symbol_mathml(symbol)
        plugged = notation.math(f"{written}<mo>=</mo>{mark}")
        header["symbols"][name] = {"role": one.role, "mathml": written, "name": one.name, "plugged": plugged, "doc": one.name}


def _interventions(trace: Trace) -> list[Header]:
    """The changes of a run that act on whole heads, in the form in which the stage sends new ones."""
    found = []
    for name, several in trace.interventions.items():
        for change in several:
            heads = [change.head] if isinstance(change.head, int) else change.head
            entry = {"symbol": name, "value": change.value, "from": 0, "to": None, "units": None}
            found.append(entry | ({"heads": list(heads)} if heads is not None else {}))
    return found
