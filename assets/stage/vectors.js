// Vectors in steps: for the chosen row each symbol of a computation as a line of bars, one a unit, from one common zero.

import { element, setText, shape } from "./dom.js";
import { colourSymbols, importMath } from "./formula.js";
import { formatNumber, formatShort } from "./numbers.js";
import { partOf } from "./positions.js";
import { whereParts } from "./where.js";

const HIGH = 46;

/** spec: {symbols: [...]}, in the order in which they are computed. A symbol with one number a row is one wide bar. */
export function createVectors(parent, context, spec) {
  const { store, actions, links, tip, words } = context;
  const node = element("section", { class: "vectors" });
  parent.append(node);
  let trace = null;
  let rows = [];

  function build(name) {
    const formula = importMath(trace.header.symbols[name].mathml);
    colourSymbols(formula, () => {});
    const label = element("button", { type: "button", class: "strip-name", title: trace.header.symbols[name].name, onclick: () => actions.select(name) }, formula);
    const picture = shape("svg", { class: "vector", preserveAspectRatio: "none", viewBox: `0 0 ${trace.length(name)} ${HIGH}`, "aria-hidden": "true" });
    const number = element("span", { class: "number", "data-vector": name });
    const reach = element("span", { class: "end" });
    const row = element("div", { class: "vector-row", "data-vector-row": name }, label, picture, number, reach);
    const unitAt = (event) => {
      const box = picture.getBoundingClientRect();
      return Math.min(Math.max(Math.floor(((event.clientX - box.left) / box.width) * trace.length(name)), 0), trace.length(name) - 1);
    };
    const part = partOf(trace.axes(name).at(-1) ?? "1");
    const wide = trace.length(name) > 1;
    picture.onmousemove = (event) => {
      const at = { ...store.get(), ...(wide ? { [part]: unitAt(event) } : {}) };
      actions.hover(name);
      tip.show(event, formatNumber(trace.number(name, at)), whereParts(trace, words, at, trace.parts(name)));
    };
    picture.onmouseleave = () => {
      actions.hover(null);
      tip.hide();
    };
    picture.onclick = (event) => actions.pick({ symbol: name, ...(wide ? { [part]: unitAt(event) } : {}) });
    links.add(name, row);
    return { name, row, picture, number, reach, part };
  }

  return {
    node,
    load(next) {
      trace = next;
      links.forget(node);
      rows = spec.symbols.filter((name) => trace.has(name)).map(build);
      node.replaceChildren(...rows.map(({ row }) => row));
    },
    update(state) {
      const scales = context.scales();
      for (const { name, picture, number, reach, part } of rows) {
        const values = trace.along(name, state);
        const limits = scales.limitsOf(name);
        const top = Math.max(...limits.map(Math.abs));
        const y = (value) => HIGH / 2 - (Math.min(Math.max(value / top, -1), 1) * HIGH) / 2;
        const bars = [...values].map((value, at) => {
          const [from, to] = [y(0), y(value)];
          const chosen = values.length === 1 || at === state[part];
          return shape("rect", { x: at + 0.08, width: 0.84, y: Math.min(from, to), height: Math.max(Math.abs(to - from), 0.75), class: chosen ? "bar-of chosen" : "bar-of", style: `fill:var(--role-${trace.header.scales[name]?.role ?? "state"})` });
        });
        picture.replaceChildren(shape("line", { x1: 0, x2: values.length, y1: HIGH / 2, y2: HIGH / 2, class: "zero" }), ...bars);
        setText(number, formatNumber(trace.number(name, state)));
        setText(reach, `±${formatShort(top)}`);
      }
    },
  };
}
