// Numbers that follow the learner's place: one line each, an array of the run and a label.

import { element, setText } from "./dom.js";
import { formatNumber } from "./numbers.js";
import { seen } from "./where.js";

/** spec: {title, items: [{array, label, digits, when}]}; `when` names another array while a symbol is chosen. */
export function createReadout(parent, context, spec) {
  const list = element("dl", { class: "readout" });
  const node = element("section", {}, ...(spec.title ? [element("h3", { text: spec.title })] : []), list);
  parent.append(node);
  const cells = spec.items.map(({ array, label, digits, when }) => {
    const value = element("dd", { "data-readout": array });
    list.append(element("dt", { text: label }), value);
    return { array, digits: digits ?? 3, value, when };
  });
  let trace = null;
  return {
    node,
    load(next) {
      trace = next;
    },
    update(state) {
      for (const { array, digits, value, when } of cells) setText(value, formatNumber(trace.number(when?.[state.symbol] ?? array, seen(state)), digits));
    },
  };
}
