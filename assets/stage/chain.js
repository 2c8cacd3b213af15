// The unrolled model: one column for each step around the present one, one row for each layer and direction. Every box holds
// the state of the selected unit; what runs along a line is the very number in the box that it leaves.

import { element, setText, shape } from "./dom.js";
import { arrowhead, roundedPath } from "./geometry.js";
import { clamp, formatNumber, formatPercent } from "./numbers.js";
import { luminance, parseColour, strength } from "./scales.js";
import { largest } from "./distribution.js";
import { tokenKind } from "./timeline.js";

const PITCH = 78; // px between two steps
const ROW = 52;
const HALF = [25, 13];
const EDGE = 30; // px left and right of the first and last column
const AROUND = 33; // how far from the middle a line passes a box
const ARROW = 6;
const WIDEST = 6;

/** How many steps are drawn in a width, and the first of them: an odd number around the present step, inside the text. */
export function columns(width, step, steps) {
  const room = Math.max(3, Math.floor((width - 2 * EDGE) / PITCH));
  const count = Math.min(room - ((room + 1) % 2), steps);
  return { count, first: clamp(step - (count >> 1), 0, steps - count) };
}

/** A number that fits its box: two decimals, a power of ten where it is large. */
export function brief(value) {
  return Math.abs(value) < 1000 || !Number.isFinite(value) ? formatNumber(value, 2) : formatNumber(value / 10 ** exponent(value), 1) + `e${exponent(value)}`;
}

const exponent = (value) => Math.floor(Math.log10(Math.abs(value)));

export function createChain(parent, context) {
  const { store, actions, links, words } = context;
  const picture = shape("svg", { class: "chain-wires", "aria-hidden": "true", focusable: "false" });
  const overlay = element("div", { class: "chain-cells" });
  const box = element("div", { class: "chain", role: "img", "aria-label": words.chain }, picture, overlay);
  parent.append(box);
  let trace = null;
  let slots = [];
  let labels = [];
  let size = "";

  const levels = () => trace.layers.length;
  const heightOf = (row) => 30 + ROW * (levels() - row) - ROW / 2;

  /** The rows that a row reads from: those of the layer below; none for the lowest, which reads the tokens. */
  function below(row) {
    const depth = trace.layers[row].depth;
    return trace.layers.flatMap((layer, at) => (layer.depth === depth - 1 ? [at] : []));
  }

  /** A line from one height to another in a column: straight, or around the box that stands between. */
  function upright(x, from, to, side) {
    const start = [x + 8 * side, from];
    if (!side) return [start, [x, to]];
    return [start, [x + 8 * side, from - 7], [x + AROUND * side, from - 7], [x + AROUND * side, to + 9], [x + 8 * side, to + 9], [x + 8 * side, to]];
  }

  function line(points, kind) {
    const path = roundedPath(points, 6, ARROW - 1);
    const band = shape("path", { d: path, class: "band" });
    const head = arrowhead(points[points.length - 1], points[points.length - 2], ARROW);
    picture.append(shape("g", { class: `chain-wire ${kind}` }, band, shape("path", { d: path, class: "track" }), shape("path", { d: head, class: "head" })));
    return band;
  }

  function cell(kind, x, y, press) {
    const node = element("div", { class: kind });
    node.style.left = `${x}px`;
    node.style.top = `${y}px`;
    node.onclick = press;
    overlay.append(node);
    return node;
  }

  function draw() {
    const width = box.clientWidth;
    if (!width) return;
    const { count } = columns(width, 0, trace.steps);
    const height = 30 + ROW * levels() + 34;
    picture.replaceChildren();
    overlay.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    box.style.height = `${height}px`;
    const spread = count > 1 ? Math.min((width - 2 * EDGE - PITCH) / (count - 1), 1.5 * PITCH) : 0;
    const middle = (at) => width / 2 + (at - (count - 1) / 2) * spread;
    const bottom = 30 + ROW * levels() + 16;
    const two = trace.layers.some(({ back }) => back);
    slots = Array.from({ length: count }, (_, at) => ({ x: middle(at), cells: [], carried: [], lines: [] }));
    for (const [at, slot] of slots.entries()) {
      for (const [row, { back }] of trace.layers.entries()) {
        const y = heightOf(row);
        const [left, right] = [at ? middle(at - 1) + HALF[0] : slot.x - HALF[0] - 26, slot.x - HALF[0]];
        const [far, near] = [at < count - 1 ? middle(at + 1) - HALF[0] : slot.x + HALF[0] + 26, slot.x + HALF[0]];
        slot.carried.push({ row, band: line(back ? [[far, y], [near, y]] : [[left, y], [right, y]], "carried") });
        const from = below(row);
        const side = two && back ? 1 : 0;
        if (!from.length) slot.lines.push({ row: -1, band: line(upright(slot.x, bottom - 13, y + HALF[1], side), "input") });
        for (const source of from) {
          const own = trace.layers[source].back ? 0 : two ? -1 : 0;
          const start = heightOf(source) - HALF[1];
          // The lower box of a pair sends its line around the upper one, and the upper one of the next pair is reached around the lower.
          slot.lines.push({ row: source, band: line(upright(slot.x, start, y + HALF[1], own || side), "up") });
        }
      }
      const top = trace.layers[levels() - 1].depth;
      for (const [row, layer] of trace.layers.entries()) {
        if (layer.depth !== top || !trace.has("P")) continue;
        const side = two && !layer.back ? -1 : 0;
        slot.lines.push({ row, band: line(upright(slot.x, heightOf(row) - HALF[1], 26, side), "up") });
      }
    }
    for (const [at, slot] of slots.entries()) {
      const go = (more = {}) => actions.pick({ ...store.get(), step: slot.step, ...more });
      slot.column = cell("chain-column", slot.x, 0, () => go());
      slot.column.style.height = `${height}px`;
      slot.token = cell("chain-token token", slot.x, bottom, () => go());
      slot.next = cell("chain-next", slot.x, 13, () => go());
      slot.guess = element("span", { class: "token" });
      slot.share = element("span", { class: "chain-share" });
      slot.next.append(slot.guess, slot.share);
      slot.cells = trace.layers.map((_, layer) => {
        const node = cell("chain-state", slot.x, heightOf(layer), () => go({ layer, symbol: "H" }));
        node.setAttribute("data-chain", `${layer}:${at}`);
        links.add("H", node);
        return node;
      });
    }
    labels = levels() > 1 ? trace.layers.map((layer, at) => {
      const node = cell("chain-label", 0, heightOf(at), () => actions.pick({ ...store.get(), layer: at }));
      node.append(element("span", { text: layer.label }));
      return node;
    }) : [];
  }

  function show(state) {
    if (!slots.length || !trace) return;
    const { step, unit, layer } = state;
    const { first } = columns(box.clientWidth, step, trace.steps);
    const ramp = context.scales().of("H");
    const limits = context.scales().limitsOf("H");
    const paint = (band, value) => {
      band.style.stroke = ramp.css(value);
      band.style.strokeWidth = `${WIDEST * strength(value, limits)}px`;
    };
    for (const [at, slot] of slots.entries()) {
      const here = (slot.step = first + at);
      slot.column.classList.toggle("current", here === step);
      for (const [row, node] of slot.cells.entries()) {
        const value = trace.value("H", here, unit, false, row);
        const colour = ramp.css(value);
        node.style.background = colour;
        node.classList.toggle("dark", luminance(parseColour(colour)) < 0.3);
        node.classList.toggle("current", here === step && row === layer);
        setText(node, brief(value));
      }
      for (const { row, band } of slot.carried) paint(band, trace.value("H_prev", here, unit, false, row));
      for (const { row, band } of slot.lines) if (row >= 0) paint(band, trace.value("H", here, unit, false, row));
      const token = trace.header.tokens[here];
      setText(slot.token, token);
      slot.token.className = `chain-token token ${tokenKind(token)} ${here === step ? "current" : ""}`;
      const chances = trace.row("P", here);
      slot.next.hidden = !chances;
      if (!chances) continue;
      const [best] = largest(chances, 1);
      const guess = trace.header.vocabulary[best];
      setText(slot.guess, guess);
      slot.guess.className = `token ${tokenKind(guess)}`;
      setText(slot.share, `${formatPercent(chances[best])}%`);
      slot.next.classList.toggle("hit", here + 1 < trace.steps && trace.header.ids[here + 1] === best);
    }
    for (const [at, node] of labels.entries()) node.classList.toggle("current", at === layer);
  }

  const watch = new ResizeObserver(() => {
    if (trace && size !== String(box.clientWidth)) {
      size = String(box.clientWidth);
      links.forget(overlay);
      draw();
      show(store.get());
    }
  });
  watch.observe(box);

  return {
    load(next) {
      trace = next;
      size = String(box.clientWidth);
      links.forget(overlay);
      draw();
    },
    update: show,
    destroy: () => watch.disconnect(),
  };
}
