// Reads the bytes that pages/ui/payload.py packs: header length, JSON header, one float32 block.

import { MINUS } from "./numbers.js";

const BASELINE = "baseline/";
const BEFORE = `<mi>t</mi><mo>${MINUS}</mo><mn>1</mn>`; // the index of a step before, as the engine writes it

export class Trace {
  constructor(header, block) {
    this.header = header;
    this.block = block;
    this.key = header.key;
    this.steps = header.steps;
    this.units = header.units;
    this.hasBaseline = Boolean(header.has_baseline);
    // A deep model has several layers, a bidirectional one two directions: names are read in the one that is looked at.
    this.layers = header.layers ?? [{ scope: "", back: false }];
    this.layer = 0;
  }

  /** The number of a name at a place {step, unit}; the same question in runs that have all positions at once. */
  number(name, place, baseline = false) {
    return this.value(name, place.step, place.unit, baseline);
  }

  /** The number in a slot of a symbol's plugged-in formula. */
  slot(symbol, slot, place) {
    return this.number(slot, place);
  }

  has(name) {
    return this.keyOf(name) in this.header.arrays || (name in this.header.slots && this.has(this.header.slots[name].of));
  }

  /** The full name of an array in a layer; what belongs to no layer (the probabilities) has only its own name. */
  keyOf(name, layer = this.layer, prefix = "") {
    const scoped = `${prefix}${this.layers[layer].scope}${name}`;
    return scoped in this.header.arrays ? scoped : prefix + name;
  }

  /** The place of a row in the float block: rows that repeat are packed once and found through `rows`. */
  place(array, step) {
    if (array.shape.length === 1) return array.offset;
    const row = array.rows ? array.rows[step] : step;
    return array.offset + row * array.shape[array.shape.length - 1];
  }

  /**
   * The number at (name, step, unit). `C_prev` is C one step back, or the state the run started from. NaN if absent, which a
   * part of an equation is in the baseline: only symbols are kept of that run.
   */
  value(name, step, unit, baseline = false, layer = this.layer) {
    const array = this.header.arrays[this.keyOf(name, layer, baseline ? BASELINE : "")] ?? null;
    if (array) return this.block[this.place(array, step) + unit];
    const alias = this.header.slots[name];
    if (alias) {
      // What reads the text from its end has its state of "before" one step later.
      const at = step + (alias.shift ?? 0) * (this.layers[layer].back ? -1 : 1);
      const outside = at < 0 || at >= this.steps;
      return outside ? this.value(alias.start, 0, unit, false, layer) : this.value(alias.of, at, unit, baseline, layer);
    }
    return NaN;
  }

  /** All units of one step, as a view of the block. */
  row(name, step, baseline = false) {
    const array = this.header.arrays[this.keyOf(name, this.layer, baseline ? BASELINE : "")];
    if (!array) return null;
    const start = this.place(array, step);
    return this.block.subarray(start, start + array.shape[array.shape.length - 1]);
  }

  /** The symbol a name belongs to: `C_prev` and `C:0` belong to C; a part of an equation belongs to nobody. */
  base(name) {
    return this.header.slots[name]?.of ?? name;
  }

  /** A formula as it reads in the layer that is looked at: what reads from the end has its state of before at t + 1. */
  written(mathml) {
    return this.layers[this.layer].back ? mathml.replaceAll(BEFORE, BEFORE.replace(MINUS, "+")) : mathml;
  }

  /** The changes of a symbol in the layer that is looked at. */
  changes(symbol) {
    const full = this.layers[this.layer].scope + symbol;
    return this.header.interventions.filter((change) => change.symbol === full || change.symbol === symbol);
  }

  /** The last intervention that decides (symbol, step, unit), or null. */
  intervention(symbol, step, unit) {
    const covering = this.changes(symbol).filter((change) => covers(change, step, unit));
    return covering.length ? covering[covering.length - 1] : null;
  }
}

/** Whether a change acts on this step and unit; `to` is not included, null means "to the end" or "all". */
export function covers(change, step, unit) {
  const late = change.to === null || change.to === undefined ? Infinity : change.to;
  return step >= (change.from ?? 0) && step < late && (!change.units || change.units.includes(unit));
}

/** Parse a payload. The block is copied when it does not lie on a multiple of four bytes, as a float array must. */
export function readTrace(bytes, make = (header, block) => new Trace(header, block)) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const body = bytes.subarray(4 + length);
  const buffer = body.byteOffset % 4 ? body.slice().buffer : body.buffer;
  const offset = body.byteOffset % 4 ? 0 : body.byteOffset;
  return make(header, new Float32Array(buffer, offset, Math.floor(body.byteLength / 4)));
}
