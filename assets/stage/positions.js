// A run that has all positions at once (attention, norms, gradients between steps): arrays with named axes, read at a place.
//
// A place is {step, key, head, unit, cut}: the query or row (axis T), the key or column (S), the head (N), the position of a
// line that cuts (C); every other axis counts units. An axis of size 1 is read at 0.

import { clamp } from "./numbers.js";
import { Trace } from "./reader.js";

const PARTS = { T: "step", S: "key", N: "head", C: "cut" };
const BASELINE = "baseline/";

export const partOf = (axis) => PARTS[axis] ?? "unit";

export class Positions extends Trace {
  array(name, baseline = false) {
    return this.header.arrays[baseline ? BASELINE + name : name] ?? null;
  }

  has(name) {
    return name in this.header.arrays;
  }

  base(name) {
    return name;
  }

  axes(name) {
    return this.array(name)?.axes ?? "";
  }

  /** How many numbers stand along the last axis. */
  length(name) {
    return this.array(name)?.shape.at(-1) ?? 1;
  }

  /** The parts of a place that a symbol's number depends on. */
  parts(name) {
    const array = this.array(name);
    return new Set(array ? [...array.axes].filter((_, at) => array.shape[at] > 1 || "TS".includes(array.axes[at])).map(partOf) : []);
  }

  /** The number of places along a part, for one symbol. */
  size(part, symbol) {
    const array = this.array(symbol);
    const at = array ? [...array.axes].findIndex((axis) => partOf(axis) === part) : -1;
    if (at >= 0) return array.shape[at];
    const axis = Object.keys(PARTS).find((name) => PARTS[name] === part);
    return (axis && this.header.sizes[axis]) || 1;
  }

  begin(array, place) {
    let at = 0;
    for (let i = 0; i < array.shape.length - 1; i += 1) {
      at = at * array.shape[i] + clamp(place[partOf(array.axes[i])] ?? 0, 0, array.shape[i] - 1);
    }
    return array.offset + at * (array.shape.at(-1) ?? 1);
  }

  /** The number of a symbol or part at a place; NaN if absent. */
  number(name, place, baseline = false) {
    const array = this.array(name, baseline);
    if (!array) return NaN;
    const last = array.shape.length - 1;
    const index = last < 0 ? 0 : clamp(place[partOf(array.axes[last])] ?? 0, 0, array.shape[last] - 1);
    return this.block[this.begin(array, place) + index];
  }

  /** The numbers along the last axis at a place, as a view of the block; null if absent. */
  along(name, place, baseline = false) {
    const array = this.array(name, baseline);
    if (!array) return null;
    const begin = this.begin(array, place);
    return this.block.subarray(begin, begin + (array.shape.at(-1) ?? 1));
  }

  slot(symbol, slot, place) {
    return this.number(this.header.cells[symbol]?.[slot] ?? slot, place);
  }

  /** Which number is shown of a changed run: its own, the baseline's, or the difference. */
  shown(name, place, view) {
    if (view === "baseline") return this.number(name, place, true);
    const now = this.number(name, place);
    return view === "difference" ? now - this.number(name, place, true) : now;
  }

  /** The two vectors whose products add up to a symbol's product of matrices at a place. */
  factors({ left, right, length }, place) {
    return [left, right].map(({ array, strides }) => {
      let row = 0;
      for (const [axis, stride] of Object.entries(strides)) row += stride * (place[partOf(axis)] ?? 0);
      const { offset } = this.header.arrays[array];
      return this.block.subarray(offset + row * length, offset + (row + 1) * length);
    });
  }

  /** Whether the mask speaks of a symbol's cells: the symbol has all axes of the mask. */
  masks(name) {
    return Boolean(this.header.mask) && this.axes(name).endsWith(this.axes(this.header.mask));
  }

  /** Whether a mask hides a cell. */
  hidden(place) {
    return Boolean(this.header.mask) && this.number(this.header.mask, place) === 0;
  }

  /** Whether a row has nothing to attend to. */
  empty(place) {
    return Boolean(this.header.mask) && this.along(this.header.mask, place).every((keep) => keep === 0);
  }

  intervention(symbol, step, unit, head) {
    const found = this.header.interventions.filter((change) => change.symbol === symbol && (!change.heads || change.heads.includes(head)));
    return found.at(-1) ?? null;
  }

  /** The heads that are taken out of this run. */
  removed() {
    return new Set(this.header.interventions.flatMap((change) => change.heads ?? []));
  }

  fit(state) {
    const symbol = this.header.symbols[state.symbol] && this.has(state.symbol) ? state.symbol : this.header.first;
    const within = (part) => clamp(Math.trunc(Number(state[part])) || 0, 0, this.size(part, symbol) - 1);
    return { step: within("step"), unit: within("unit"), key: within("key"), head: within("head"), cut: within("cut"), symbol };
  }
}

/** What a learner can do here beyond what every stage offers. Keys up and down go along the keys of a weight, else along units. */
export function positionActions(store, trace) {
  const by = (part, step) => {
    const size = trace().size(part, store.get().symbol);
    store.set({ [part]: (store.get()[part] + step + size) % size, peek: null });
  };
  const pick = (place) => store.set({ ...trace().fit({ ...store.get(), ...place }), peek: null });
  return {
    pick,
    moveTo: (step) => pick({ step }),
    moveBy: (step) => pick({ step: store.get().step + step }),
    first: () => pick({ step: 0 }),
    last: () => pick({ step: trace().steps - 1 }),
    unitBy: (step) => by(trace().axes(store.get().symbol).endsWith("S") ? "key" : "unit", step),
    headBy: (step) => by("head", step),
    select: (symbol) => trace().header.symbols[symbol] && trace().has(symbol) && pick({ symbol }),
    peek: (peek) => store.set({ peek }),
    mean: (mean) => store.set({ mean }),
  };
}
