// Numbers that follow the learner's place: one line each, an array of the run and a label.

import { element, setText } from "./dom.js";
import { formatNumber, formatPower } from "./numbers.js";
import { seen } from "./where.js";

const LARGE = 1e5; // from here on a size is written as a power of ten

/**
 * spec: {title, items: [{array, label, digits, when, power}]}; `when` names another array while a symbol is chosen. `power` is an
 * array of the sizes' powers of ten: large sizes are written so, also those that the first array could not hold.
 */
export function createReadout(parent, context, spec) {
  const list = element("dl", { class: "readout" });
  const node = element("section", {}, ...(spec.title ? [element("h3", { text: spec.title })] : []), list);
  parent.append(node);
  const cells = spec.items.map(({ array, label, digits, when, power }) => {
    const value = element("dd", { "data-readout": array });
    list.append(element("dt", { text: label }), value);
    return { array, digits: digits ?? 3, value, when, power };
  });
  let trace = null;
  return {
    node,
    load(next) {
      trace = next;
    },
    update(state) {
      for (const { array, digits, value, when, power } of cells) {
        const number = trace.number(when?.[state.symbol] ?? array, seen(state));
        if (!power || !(number >= LARGE)) setText(value, formatNumber(number, digits));
        else setText(value, formatPower(number === Infinity ? 10 ** trace.number(power, seen(state)) : number));
      }
    },
  };
}
