// A sum of parts: for the chosen row and unit, each part's number as a step from where the one before ended, and the whole.

import { element, sentence, setText, shape } from "./dom.js";
import { colourSymbols, importMath } from "./formula.js";
import { formatDifference, formatNumber } from "./numbers.js";
import { seen } from "./where.js";

const LINE = 20;

export function createSum(parent, context, spec) {
  const { words, actions } = context;
  const heading = element("h3");
  const box = element("div", { class: "sum-rows" });
  const equality = element("p", { class: "equality", "data-role": "equality" });
  const note = element("p", { class: "note" });
  const node = element("section", { class: "sum" }, heading, box, equality, note);
  parent.append(node);
  let trace = null;
  let state = null;

  function place() {
    const at = seen(state);
    // The chosen unit belongs to the chosen symbol; in another one the same number is another unit.
    return trace.parts(state.symbol).has("unit") && [spec.whole, spec.parts].includes(state.symbol) ? at : { ...at, unit: state.out ?? 0 };
  }

  function draw() {
    const at = place();
    const heads = trace.header.sizes.N;
    const parts = Array.from({ length: heads }, (_, head) => ({
      head,
      name: sentence(words.head, { head: head + 1 }),
      value: trace.number(spec.parts, { ...at, head }),
    }));
    if (spec.bias && trace.has(spec.bias)) parts.push({ head: -1, name: words.bias, value: trace.number(spec.bias, at) });
    const whole = trace.number(spec.whole, at);
    let end = 0;
    const spans = parts.map(({ value }) => [end, (end += value)]);
    const reach = Math.max(0.001, ...spans.flat().map(Math.abs), Math.abs(whole));
    const x = (value) => 50 + (50 * value) / reach;
    const bar = ([from, to], kind) => {
      const picture = shape("svg", { class: "step", viewBox: `0 0 100 ${LINE}`, preserveAspectRatio: "none", "aria-hidden": "true" });
      picture.append(
        shape("line", { x1: 50, x2: 50, y1: 0, y2: LINE, class: "zero" }),
        shape("rect", { x: Math.min(x(from), x(to)), width: Math.max(Math.abs(x(to) - x(from)), 0.3), y: 5, height: LINE - 10, class: kind }),
        shape("line", { x1: x(to), x2: x(to), y1: LINE - 5, y2: LINE, class: "end" }),
      );
      return picture;
    };
    const removed = trace.removed();
    const rows = parts.map(({ head, name, value }, index) => {
      const row = element("button", { type: "button", class: "sum-row", "aria-pressed": String(head === at.head), onclick: () => head >= 0 && actions.pick({ head }) });
      if (removed.has(head)) row.classList.add("out");
      row.append(element("span", { text: name }), bar(spans[index], value < 0 ? "minus" : "plus"), element("span", { class: "share-of", "data-part": head, text: formatNumber(value) }));
      return row;
    });
    const formula = importMath(trace.header.symbols[spec.whole].mathml);
    colourSymbols(formula, () => {});
    const total = element("button", { type: "button", class: "sum-row whole", onclick: () => actions.pick({ symbol: spec.whole, unit: at.unit }) }, formula, bar([0, whole], "total"), element("span", { class: "share-of", "data-part": "whole", text: formatNumber(whole) }));
    box.replaceChildren(...rows, total);
    setText(heading, sentence(words.sum_of, { unit: at.unit }));
    const terms = parts.map(({ value }, index) => (index ? ` ${value < 0 ? "\u2212" : "+"} ${formatNumber(Math.abs(value))}` : formatNumber(value)));
    setText(equality, `${terms.join("")} = ${formatNumber(whole)}`);
    const before = trace.number(spec.whole, at, true);
    setText(note, Number.isNaN(before) ? words.sum_rounded : sentence(words.sum_changed, { before: formatNumber(before), difference: formatDifference(whole - before) }));
  }

  return {
    node,
    load(next) {
      trace = next;
    },
    update(next) {
      const chosen = [spec.whole, spec.parts].includes(next.symbol) ? next.unit : state?.out ?? 0;
      state = { ...next, out: chosen };
      draw();
    },
  };
}
