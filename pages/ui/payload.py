"""A trace as bytes for the stage: uint32 header length, JSON header (padded to four bytes), one float32 block.

Only what the stage shows is packed: the symbols, the parts that stand in a plugged-in formula or on a wire, the biases,
the start states and the probabilities. Rows that repeat (a token's row of ``X W``) are packed once. Every number on the
stage is read from this block.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import notation
from engine.diagram import Diagram, wires
from engine.equation import Circuit
from engine.symbols import GATE, SIGNED, Symbol
from engine.syntax import Node
from engine.text.display import visible
from engine.text.vocabulary import Vocabulary
from engine.trace import Trace
from pages.ui.layouts import Layout, layout_of

PREVIOUS = "_prev"
SLOT = re.compile(r'data-(?:slot|sign-of)="([^"]+)"')
Header = dict[str, Any]


class _Block:
    """The float32 block under construction, and where each array lies in it."""

    def __init__(self) -> None:
        self.arrays: dict[str, Header] = {}
        self._chunks: list[NDArray[np.float32]] = []
        self._length = 0
        self._places: dict[bytes, Header] = {}

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Append an array (steps, width) or (width,); equal arrays, and equal rows where it pays, are stored once."""
        values = np.ascontiguousarray(array, dtype=np.float32)
        content = bytes(str(values.shape), "ascii") + values.tobytes()
        if content not in self._places:
            self._places[content] = self._place(values)
        self.arrays[name] = self._places[content]

    def _place(self, values: NDArray[np.float32]) -> Header:
        entry: Header = {"offset": self._length, "shape": list(values.shape)}
        if values.ndim == 2:
            distinct: dict[bytes, int] = {}
            rows = [distinct.setdefault(row.tobytes(), len(distinct)) for row in values]
            if len(distinct) < 0.8 * len(rows):
                entry["rows"] = rows
                values = np.stack([values[rows.index(place)] for place in range(len(distinct))])
        self._chunks.append(values.ravel())
        self._length += values.size
        return entry

    def to_bytes(self) -> bytes:
        return b"".join(chunk.astype("<f4").tobytes() for chunk in self._chunks)


def _reach(arrays: Iterable[NDArray[Any]]) -> float:
    """The fixed limit of an unbounded symbol: the power of two that all its values lie within, at least 1."""
    finite = [float(np.abs(a[np.isfinite(a)]).max()) for a in arrays if a.size and np.isfinite(a).any()]
    return float(2 ** max(0, math.ceil(math.log2(max([1.0, *finite])))))


def _scopes(trace: Trace) -> list[str]:
    """The layers and directions of the run, lowest first; one without a name where there is a single one."""
    return [scope for scope in trace.tables if scope] or [""]


def _shown(trace: Trace) -> dict[str, str]:
    """The symbols of one layer and of the output, by the name they have on the stage: their full names in the lowest layer."""
    first = _scopes(trace)[0]
    return {name.removeprefix(first): name for name in trace.equations if trace.scope(name) in ("", first)}


def _layers(trace: Trace) -> list[Header]:
    """What the stage must know of each layer and direction: where its names stand, and which way it reads."""
    found: list[Header] = []
    for scope in _scopes(trace):
        depth, back = int(scope.split(".")[1]) if scope else 0, scope in trace.backward
        arrow = (" ←" if back else " →") if trace.backward else ""
        found.append({"scope": scope, "back": back, "depth": depth, "label": f"{depth + 1}{arrow}"})
    return found


def _cell(trace: Trace) -> Circuit:
    """The equations that are drawn as the cell: all whose result has one value per unit."""
    table = trace.tables[_scopes(trace)[0]]
    named = {name: trace.equations[full] for name, full in _shown(trace).items()}
    own = [equation for name, equation in named.items() if name in table and table[name].axes.endswith("H")]
    carry = [equation.name for equation in own if f"{equation.name}{PREVIOUS}" in table]
    return Circuit(*own, carry=carry)


def _interval(symbol: Symbol, reach: float) -> tuple[float, float]:
    """The fixed scale of a symbol: its own interval, or one with its reach in place of infinity."""
    low, high = symbol.interval
    return (max(low, -reach), min(high, reach))


def _part_scale(node: Node, symbol: Symbol, whole: tuple[float, float], table: Mapping[str, Symbol], kind: str) -> Header:
    """The scale of one part of an equation: of its operation where that has bounds, else of the equation's symbol."""
    known = {"sigmoid": GATE, "tanh": SIGNED}.get(node.text) or (GATE if kind == "complement" else None)
    reach = max(map(abs, whole))
    operands = [name for name in node.names() if table[name].timed]
    role = table[operands[0]].role if len(operands) == 1 else symbol.role
    return {"interval": list(known or (-reach, reach)), "role": role}


def _scales(trace: Trace, baseline: Trace | None, cell: Circuit, diagram: Diagram) -> dict[str, Header]:
    """The fixed interval and the role of every symbol and of every part that a wire carries."""
    scopes = _scopes(trace)
    table = trace.tables[scopes[0]]
    runs = [run for run in (trace, baseline) if run is not None]
    scales: dict[str, Header] = {}
    for name, equation in cell.equations.items():
        full = [(run, scope + name) for run in runs for scope in scopes]
        values = [run[each] for run, each in full] + [run.start[each] for run, each in full if each in run.start]
        whole = _interval(table[name], _reach(values))
        scales[name] = {"interval": list(whole), "role": table[name].role}
        kinds = {node.id: node.kind for node in diagram.nodes}
        for node in equation.tree.walk():
            if node.id in kinds and node.id != equation.tree.id:
                scales[node.id] = _part_scale(node, table[name], whole, table, kinds[node.id])
    return scales


def _interventions(trace: Trace) -> list[Header]:
    """The changes of a run, in the form in which the stage sends new ones."""
    found = []
    for name, several in trace.interventions.items():
        for change in several:
            steps = change.steps(len(trace))
            open_end = change.step is None or (isinstance(change.step, tuple) and change.step[1] is None)
            units = [change.unit] if isinstance(change.unit, int) else change.unit
            found.append(
                {
                    "symbol": name,
                    "value": change.value,
                    "from": steps.start,
                    "to": None if open_end else steps.stop,
                    "units": None if units is None else list(units),
                }
            )
    return found


def _equations(trace: Trace, cell: Circuit, docs: Mapping[str, str]) -> list[Header]:
    """Formula, formula with slots and sentence of each equation; a slot is a unit's number, so Y and P have none."""
    return [
        {
            "name": name,
            "mathml": trace.mathml(full),
            "plugged": trace.plugged_mathml(full) if name in cell.equations else "",
            "doc": docs.get(name, trace.equations[full].doc),
        }
        for name, full in _shown(trace).items()
    ]


def _symbols(trace: Trace, cell: Circuit, names: Mapping[str, str]) -> dict[str, Header]:
    """What the stage must know of each traced symbol."""
    symbols = {name: trace.symbol(full) for name, full in _shown(trace).items()}
    return {
        name: {
            "role": symbol.role,
            "axes": symbol.axes.replace("B", ""),
            "mathml": notation.symbol_mathml(symbol),
            "name": names.get(name) or trace.equations[_shown(trace)[name]].doc.split(":")[0],
            "changeable": name in cell.equations,
        }
        for name, symbol in symbols.items()
    }


def _fill(block: _Block, trace: Trace, cell: Circuit, wanted: set[str], batch: int, units: slice) -> dict[str, Header]:
    """Pack the numbers behind ``wanted`` names; returns the names that are read at another place (`C_prev`, `F:0`)."""
    scopes, slots = _scopes(trace), {}
    table = trace.tables[scopes[0]]

    def untouched(name: str, own: str) -> bool:
        """Whether what an equation gave is the symbol itself, in every layer."""
        return name == cell.equations[own].tree.id and all(
            np.array_equal(trace.terms[scope + name], trace[scope + own], equal_nan=True) for scope in scopes
        )

    for name in sorted(wanted):
        own = name.split(":")[0].removesuffix(PREVIOUS)
        if name.endswith(PREVIOUS):
            slots[name] = {"of": own, "shift": -1, "start": f"start.{own}", "mathml": notation.symbol_mathml(table[name])}
        elif ":" in name and untouched(name, own):
            slots[name] = {"of": own, "shift": 0}
            continue
        for scope in scopes if own in cell.equations or scopes[0] + name in trace.weights else ("",):
            if name.endswith(PREVIOUS):
                block.add(f"{scope}start.{own}", trace.start[scope + own][batch, units])
            elif ":" in name:
                block.add(scope + name, trace.terms[scope + name][:, batch, units])
            elif scope + name in trace.weights:
                block.add(scope + name, trace.weights[scope + name])
            elif scope + name in trace:
                block.add(scope + name, trace[scope + name][:, batch, units if name in cell.equations else slice(None)])
    return slots


def _header_diagram(diagram: Diagram) -> Header:
    return {
        "nodes": [{"id": node.id, "kind": node.kind, "label": node.label} for node in diagram.nodes],
        "wires": [{"from": wire.source, "to": wire.target, "carries": wire.carries} for wire in diagram.wires],
    }


def pack(
    trace: Trace,
    *,
    tokens: Sequence[str],
    vocabulary: Vocabulary,
    words: Mapping[str, str],
    model: str = "",
    names: Mapping[str, str] | None = None,
    docs: Mapping[str, str] | None = None,
    start: Mapping[str, Any] | None = None,
    baseline: Trace | None = None,
    mini: bool = False,
    link: str = "",
    chain: bool = False,
    pins: Sequence[tuple[int, str]] = (),
    batch: int = 0,
) -> bytes:
    """Pack one run of a recurrent model (T steps, sequence ``batch``) for the stage; all its layers and directions.

    ``tokens`` are the T raw tokens that were fed in, ``words`` the interface's strings (see ``pages.ui.stage``), ``names`` and
    ``docs`` a short name and a sentence for each symbol, ``start`` the step, unit and symbol to open with, ``baseline`` the
    run without the changes of ``trace``. ``mini`` leaves out all but the diagram of the unit to open with; as a whole it is
    a ``link``. ``chain`` draws the unrolled model above the cell, ``pins`` are units with the names a learner gave them. The
    same run gives the same ``key`` wherever it opens. Raises ``ValueError`` when tokens and trace differ in length.
    """
    if len(tokens) != len(trace):
        raise ValueError(f"{len(tokens)} tokens for a run of {len(trace)} steps")
    cell = _cell(trace)
    scopes = _scopes(trace)
    diagram = wires(cell, dict(trace.tables[scopes[0]]))
    layout: Layout = layout_of(diagram)
    place = {"step": 0, "unit": 0, "symbol": layout["strips"][0], **(start or {})}
    width = int(trace[scopes[0] + layout["strips"][0]].shape[-1])
    units = slice(None)
    if mini:
        unit = min(max(int(place["unit"]), 0), width - 1)
        units, width, place["unit"] = slice(unit, unit + 1), 1, 0
    equations = [] if mini else _equations(trace, cell, docs or {})
    wanted = {*cell.equations, *(wire.carries for wire in diagram.wires)} - {"X"}
    wanted |= {f"{name}{PREVIOUS}" for name in cell.carry}
    wanted |= {slot for equation in equations for slot in SLOT.findall(equation["plugged"])}
    block = _Block()
    slots = _fill(block, trace, cell, wanted | ({"P"} & set(trace) if not mini else set()), batch, units)
    if baseline is not None and not mini:
        for name in (*(scope + strip for scope in scopes for strip in layout["strips"]), *({"P"} & set(trace))):
            block.add(f"baseline/{name}", baseline[name][:, batch])
    ids = vocabulary[list(tokens)]
    header: Header = {
        "model": model,
        "mini": mini,
        "steps": len(trace),
        "units": width,
        "tokens": [visible(token) for token in tokens],
        "raw": list(tokens),
        "unknown": [token not in vocabulary for token in tokens],
        "ids": ids,
        "symbols": _symbols(trace, cell, names or {}),
        "equations": equations,
        "slots": slots,
        "arrays": block.arrays,
        "scales": _scales(trace, baseline, cell, diagram),
        "diagram": _header_diagram(diagram),
        "layout": layout,
        "vocabulary": [] if mini else [visible(token) for token in vocabulary],
        "interventions": _interventions(trace),
        "layers": _layers(trace),
        "chain": chain,
        "pins": [{"unit": unit, "name": name} for unit, name in pins],
        "has_baseline": baseline is not None and not mini,
        "words": dict(words),
        "link": link,
    }
    body = block.to_bytes()
    header["key"] = hashlib.sha256(as_json(header) + body).hexdigest()[:16]
    header["start"] = place
    text = as_json(header)
    text += b" " * (-len(text) % 4)
    return len(text).to_bytes(4, "little") + text + body


def as_json(header: Header) -> bytes:
    """Compact JSON. Half a surrogate pair cannot be sent: it becomes a question mark."""
    return json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
