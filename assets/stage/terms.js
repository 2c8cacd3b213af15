// What one number is made of: of a product of matrices the two vectors, their products and the sum; of a softmax the whole row.

import { element, sentence, setText } from "./dom.js";
import { colourSymbols, importMath } from "./formula.js";
import { formatNumber } from "./numbers.js";
import { paintRow } from "./rows.js";
import { seen, whereParts } from "./where.js";

const WRITTEN = 8; // terms that are written as numbers
const HIGH = 13;

export function createTerms(parent, context) {
  const { words, tip, links, actions } = context;
  const heading = element("h4");
  const table = element("div", { class: "terms-rows" });
  const node = element("section", { class: "terms", hidden: true, "aria-label": words.terms }, heading, table);
  parent.append(node);
  let trace = null;
  let state = null;
  let built = "";
  let rows = [];

  const mathOf = (name) => {
    const known = trace.header.symbols[name];
    if (!known) return element("span", { text: "" });
    const formula = importMath(known.mathml);
    colourSymbols(formula, () => {});
    return formula;
  };

  function row(name, role, numbers, label) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const digits = element("div", { class: "digits" });
    const head = element("span", { class: "term-name" }, label ?? mathOf(name));
    const made = element("div", { class: `term-row ${role}`, "data-term": role }, head, element("div", { class: "term-cells" }, canvas, digits));
    made.onmousemove = (event) => {
      const box = canvas.getBoundingClientRect();
      const at = Math.floor(((event.clientX - box.left) / box.width) * rows[0].count);
      const found = rows.find((one) => one.made === made);
      if (at < 0 || at >= found.count) return tip.hide();
      return tip.show(event, formatNumber(found.last[at]), found.tell(at));
    };
    made.onmouseleave = () => tip.hide();
    if (trace.header.symbols[name]) {
      links.add(name, head);
      head.onclick = () => actions.select(name);
      head.classList.add("live");
    }
    return { made, canvas, digits, name, count: 0, last: [], tell: () => "" };
  }

  function fill(one, numbers, ramp, marked, tell) {
    Object.assign(one, { count: numbers.length, last: numbers, tell });
    const width = one.made.querySelector(".term-cells").clientWidth;
    if (!width) return;
    paintRow(one.canvas, numbers, ramp, [width, HIGH]);
    const texts = numbers.length <= WRITTEN ? [...numbers].map((number) => formatNumber(number)) : [];
    if (one.digits.childElementCount !== texts.length) one.digits.replaceChildren(...texts.map(() => element("span")));
    texts.forEach((text, at) => {
      setText(one.digits.children[at], text);
      one.digits.children[at].classList.toggle("marked", at === marked);
    });
    one.canvas.classList.toggle("has-mark", marked >= 0);
    one.made.style.setProperty("--mark", `${(100 * (marked + 0.5)) / numbers.length}%`);
    one.made.classList.toggle("marks", marked >= 0);
  }

  function build(symbol) {
    const terms = trace.header.terms[symbol];
    links.forget(table);
    if (terms.kind === "row") rows = terms.names.map((name) => row(name, name));
    else {
      const names = [terms.left.name, terms.right.name];
      const label = ({ written }) => (written ? importMath(written) : undefined); // a part has no name of its own
      rows = [row(names[0], "left", [], label(terms.left)), row(names[1], "right", [], label(terms.right)), row("", "products", [], element("span", { class: "times", text: "×" }))];
    }
    table.replaceChildren(...rows.map(({ made }) => made));
    if (terms.kind !== "row") table.append(element("p", { class: "term-sum" }));
    built = `${trace.key} ${symbol}`;
    links.refresh();
  }

  function show() {
    const { symbol } = state;
    const terms = trace.header.terms?.[symbol];
    node.hidden = !terms;
    if (!terms) return;
    if (built !== `${trace.key} ${symbol}`) build(symbol);
    const at = seen(state);
    const scales = context.scales();
    if (terms.kind === "row") {
      setText(heading, words.terms_row);
      const tell = (key) => whereParts(trace, words, { ...at, key }, new Set(["key"]));
      for (const one of rows) fill(one, trace.along(one.name, at), scales.of(one.name), at.key, tell);
      return;
    }
    const [left, right] = trace.factors(terms, at);
    // The only arithmetic of this file: the products that the engine has added up.
    const products = left.map((number, place) => Math.fround(number * right[place]));
    setText(heading, sentence(words.terms_product, { count: left.length }));
    const tell = (place) => (terms.over === "S" ? whereParts(trace, words, { ...at, key: place }, new Set(["key"])) : sentence(words.at_unit, { unit: place }));
    const ramp = (side) => scales.of(side.written ? side.array : side.name);
    fill(rows[0], left, ramp(terms.left), -1, tell);
    fill(rows[1], right, ramp(terms.right), -1, tell);
    fill(rows[2], products, scales.of(terms.part), -1, tell);
    setText(table.querySelector(".term-sum"), sentence(words.terms_sum, { sum: formatNumber(trace.slot(symbol, terms.part, at)) }));
  }

  return {
    node,
    load(next) {
      trace = next;
      built = "";
    },
    resize() {
      if (state) show();
    },
    update(next) {
      state = next;
      show();
    },
  };
}
