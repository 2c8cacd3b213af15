// Reads the bytes that pages/ui/payload.py packs: header length, JSON header, one float32 block.

const BASELINE = "baseline/";

export class Trace {
  constructor(header, block) {
    this.header = header;
    this.block = block;
    this.key = header.key;
    this.steps = header.steps;
    this.units = header.units;
    this.hasBaseline = Boolean(header.has_baseline);
  }

  has(name) {
    return name in this.header.arrays || (name in this.header.slots && this.has(this.header.slots[name].of));
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
  value(name, step, unit, baseline = false) {
    const array = this.header.arrays[baseline ? BASELINE + name : name] ?? null;
    if (array) return this.block[this.place(array, step) + unit];
    const alias = this.header.slots[name];
    if (alias) {
      const at = step + (alias.shift ?? 0);
      return at < 0 ? this.value(alias.start, 0, unit) : this.value(alias.of, at, unit, baseline);
    }
    return NaN;
  }

  /** All units of one step, as a view of the block. */
  row(name, step, baseline = false) {
    const array = this.header.arrays[baseline ? BASELINE + name : name];
    if (!array) return null;
    const start = this.place(array, step);
    return this.block.subarray(start, start + array.shape[array.shape.length - 1]);
  }

  /** The symbol a name belongs to: `C_prev` and `C:0` belong to C; a part of an equation belongs to nobody. */
  base(name) {
    return this.header.slots[name]?.of ?? name;
  }

  /** The last intervention that decides (symbol, step, unit), or null. */
  intervention(symbol, step, unit) {
    const covering = this.header.interventions.filter((change) => change.symbol === symbol && covers(change, step, unit));
    return covering.length ? covering[covering.length - 1] : null;
  }
}

/** Whether a change acts on this step and unit; `to` is not included, null means "to the end" or "all". */
export function covers(change, step, unit) {
  const late = change.to === null || change.to === undefined ? Infinity : change.to;
  return step >= (change.from ?? 0) && step < late && (!change.units || change.units.includes(unit));
}

/** Parse a payload. The block is copied when it does not lie on a multiple of four bytes, as a float array must. */
export function readTrace(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const body = bytes.subarray(4 + length);
  const buffer = body.byteOffset % 4 ? body.slice().buffer : body.buffer;
  const offset = body.byteOffset % 4 ? 0 : body.byteOffset;
  return new Trace(header, new Float32Array(buffer, offset, Math.floor(body.byteLength / 4)));
}
