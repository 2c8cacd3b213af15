// The formulas: all equations of the model as a list, and under it the selected one, read with this cell's own numbers.

import { element, sentence, setText } from "./dom.js";
import { colourSymbols, fillSlots, importMath } from "./formula.js";
import { formatNumber, formatShort } from "./numbers.js";
import { seen, whereIs } from "./where.js";

export function createPanel(parent, context) {
  const { actions, links, words } = context;
  const list = element("div", { class: "equations", role: "group", "aria-label": words.equations });
  const large = element("div", { class: "large" });
  const plugged = element("div", { class: "plugged", "data-role": "plugged" });
  const meaning = element("p", { class: "meaning" });
  const place = element("p", { class: "place" });
  // What stands below the stage asks about one place; the stage tells it only when it is asked to.
  const useHere = element("button", { type: "button", class: "use-here", hidden: true }, words.use_here);
  const clamped = element("p", { class: "clamped-note", hidden: true });
  const reading = element("section", { class: "reading", "aria-label": words.reading }, large, plugged, clamped, meaning, place, useHere);
  parent.append(element("div", { class: "panel" }, list, reading));
  let trace = null;
  let buttons = new Map();
  let current = null;
  let numbers = null;
  let used = { step: 0, unit: 0 };
  let here = used;
  let fitting = 0;
  useHere.onclick = () => {
    used = here;
    useHere.hidden = true;
    context.send("place", { ...here, symbol: current });
  };

  const symbolsOf = (formula) =>
    colourSymbols(formula, (name, node) => {
      const symbol = trace.base(name);
      links.add(symbol, node);
      node.addEventListener("pointerenter", () => actions.hover(symbol));
      node.addEventListener("pointerleave", () => actions.hover(null));
      if (!trace.has(symbol) || !trace.header.symbols[symbol]) return;
      node.classList.add("live");
      node.addEventListener("click", (event) => {
        event.stopPropagation();
        actions.select(symbol);
      });
    });

  // A symbol that no equation defines (an input, a mask) is read alone.
  const equationOf = (symbol) =>
    trace.header.equations.find((equation) => equation.name === symbol) ?? { plugged: "", doc: "", ...trace.header.symbols[symbol] };

  /** Shrink a formula that is wider than its box, down to what can still be read; beyond that its box scrolls. */
  function fitWidth(box, smallest) {
    box.style.fontSize = "";
    const formula = box.querySelector("math");
    if (!formula) return;
    const natural = formula.getBoundingClientRect().width;
    const room = box.clientWidth;
    if (!natural || natural <= room) return;
    const size = parseFloat(getComputedStyle(box).fontSize);
    box.style.fontSize = `${Math.max((size * room) / natural - 0.1, smallest)}px`;
  }

  function choose(symbol) {
    current = symbol;
    const equation = equationOf(symbol);
    links.forget(large);
    const formula = importMath(trace.written(equation.mathml));
    symbolsOf(formula);
    large.replaceChildren(formula);
    plugged.hidden = !equation.plugged;
    numbers = equation.plugged ? importMath(equation.plugged) : null;
    plugged.replaceChildren();
    if (numbers) {
      colourSymbols(numbers, () => {});
      plugged.append(numbers);
    }
    setText(meaning, equation.doc);
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name === symbol));
    fitWidth(large, 12);
  }

  return {
    load(next) {
      if (!trace) used = { step: next.header.start.step, unit: next.header.start.unit };
      trace = next;
      links.forget(list, large);
      buttons = new Map();
      for (const equation of trace.header.equations) {
        const formula = importMath(trace.written(equation.mathml));
        const name = trace.header.symbols[equation.name]?.name ?? equation.name;
        const button = element("button", { type: "button", class: "equation", "aria-pressed": "false", title: name });
        button.setAttribute("aria-label", name);
        button.onclick = () => actions.select(equation.name);
        button.append(formula);
        symbolsOf(formula);
        buttons.set(equation.name, button);
      }
      list.replaceChildren(...buttons.values());
      current = null;
    },
    resize() {
      list.style.fontSize = "";
      const wide = Math.max(0, ...[...list.querySelectorAll("math")].map((math) => math.getBoundingClientRect().width));
      const room = list.clientWidth - 20;
      const size = parseFloat(getComputedStyle(list).fontSize);
      if (wide > room) list.style.fontSize = `${Math.max((size * room) / wide - 0.1, 11)}px`;
      fitWidth(large, 12);
      fitWidth(plugged, 11);
    },
    update(state) {
      const { symbol } = state;
      const at = seen(state);
      if (symbol !== current) choose(symbol);
      here = { step: at.step, unit: at.unit };
      useHere.hidden = !trace.header.start.follows || (here.step === used.step && here.unit === used.unit);
      setText(place, whereIs(trace, words, at, numbers ? words.where : words.where_row));
      if (!numbers) return;
      fillSlots(numbers, (slot) => trace.slot(symbol, slot, at));
      cancelAnimationFrame(fitting);
      fitting = requestAnimationFrame(() => fitWidth(plugged, 11)); // with the frame's own layout, not with one before it
      const change = trace.intervention(symbol, at.step, at.unit, at.head);
      clamped.hidden = !change;
      if (change) {
        const given = formatNumber(trace.slot(symbol, `${symbol}:0`, at));
        setText(clamped, sentence(words.clamped, { given, set: formatShort(change.value) }));
      }
    },
  };
}

/** The symbols of the text alternative. */
const rowsOf = (trace) => (trace.header.table ?? trace.header.layout.strips).filter((name) => trace.has(name));

/** The numbers of the present cell as a table, for those who cannot see the picture. Also the polite live region. */
export function createTable(parent, context) {
  const { words } = context;
  const caption = element("caption");
  const body = element("tbody");
  const head = element("thead", {}, element("tr", {}, element("th", { scope: "col", text: words.symbol }), element("th", { scope: "col", text: words.value })));
  const live = element("p", { class: "hidden live", role: "status", "aria-live": "polite" });
  parent.append(element("table", { class: "hidden values" }, caption, head, body), live);
  let trace = null;
  let cells = [];
  let timer = 0;

  return {
    load(next) {
      trace = next;
      cells = rowsOf(trace).map((name) => {
        const cell = element("td", { "data-cell": name });
        const row = element("tr", {}, element("th", { scope: "row", text: trace.header.symbols[name].name }), cell);
        return { name, cell, row };
      });
      body.replaceChildren(...cells.map(({ row }) => row));
    },
    update(state) {
      const { symbol, playing } = state;
      const place = whereIs(trace, words, state, words.cell);
      setText(caption, place);
      for (const { name, cell } of cells) setText(cell, formatNumber(trace.number(name, state)));
      clearTimeout(timer);
      if (playing || !trace.has(symbol)) return;
      // A key held down would flood the reader: only the place where one stops is told.
      timer = setTimeout(() => {
        const value = rowsOf(trace).includes(symbol) ? formatNumber(trace.number(symbol, state)) : "";
        setText(live, whereIs(trace, words, state, words.live, { name: trace.header.symbols[symbol].name, value }));
      }, 300);
    },
  };
}
