// The cell's diagram: nodes and wires come from the model's equations, places from a layout file. Every wire that carries
// a recorded value shows the selected unit's number, and its the colour and width of the band along it follow that number.

import { element, sentence, setText, shape } from "./dom.js";
import { importMath } from "./formula.js";
import { arrowhead, placeDiagram, roundedPath } from "./geometry.js";
import { formatNumber } from "./numbers.js";
import { strength } from "./scales.js";
import { paintRow } from "./rows.js";
import { tokenKind } from "./timeline.js";
import { seen } from "./where.js";

const ROW = [54, 9]; // px of a vector drawn on a wire
const CORNER = 9;
const ARROW = 8;
const WIDEST = 9; // px of the band at the end of its scale; at 0 only the hairline is left

export function createDiagram(parent, context) {
  const { store, actions, links, words } = context;
  const picture = shape("svg", { class: "wires", "aria-hidden": "true", focusable: "false" });
  const overlay = element("div", { class: "labels" });
  const box = element("div", { class: "diagram", role: "img", "aria-label": words.diagram }, picture, overlay);
  parent.append(box);
  let trace = null;
  let parts = { wires: [], labels: [], token: null };
  let size = "";

  function react(node, symbol) {
    node.onpointerenter = () => actions.hover(symbol);
    node.onpointerleave = () => actions.hover(null);
    node.onclick = () => actions.select(symbol);
  }

  /** The symbol that a wire, node or label stands for: a part (C:1) stands for the symbol of its equation. */
  const symbolOf = (name) => trace.base(name).split(":")[0];

  /** All wires that carry one signal are one shape: it branches, but it has one value. */
  function drawSignal(carries, wires) {
    const symbol = symbolOf(carries);
    const line = wires.map(({ points }) => roundedPath(points, CORNER, ARROW - 1)).join("");
    const heads = wires.map(({ points }) => arrowhead(points[points.length - 1], points[points.length - 2], ARROW)).join("");
    const band = shape("path", { d: line, class: "band" });
    const group = shape("g", { class: "wire", "data-carries": carries });
    group.append(
      shape("path", { d: line, class: "halo", "clip-path": "url(#cell)" }),
      band,
      shape("path", { d: line, class: "track" }),
      shape("path", { d: heads, class: "head" }),
      shape("path", { d: line, class: "reach" }),
    );
    react(group, symbol);
    links.add(symbol, group);
    picture.append(group);
    if (trace.has(carries)) parts.wires.push({ carries, band });
    return group;
  }

  function drawNode(node) {
    const [x, y] = node.at;
    const symbol = symbolOf(node.id);
    const node_ = element("div", { class: `node ${node.kind}`, "data-node": node.id });
    node_.style.left = `${x}px`;
    node_.style.top = `${y}px`;
    if (node.kind === "input" || node.kind === "output") {
      if (node.id in trace.header.symbols || node.id in trace.header.slots) {
        node_.append(importMath(trace.written(mathOf(node.id))));
      } else {
        parts.token = node_;
      }
    } else {
      node_.style.width = `${2 * node.half[0]}px`;
      node_.style.height = `${2 * node.half[1]}px`;
      setText(node_, node.label);
    }
    node_.style.setProperty("--own", `var(--text-${trace.header.symbols[symbol]?.role ?? "state"})`);
    react(node_, symbol);
    links.add(symbol, node_);
    overlay.append(node_);
  }

  const mathOf = (name) => trace.header.symbols[name]?.mathml ?? trace.header.slots[name].mathml;

  function drawLabel(label) {
    if (!trace.has(label.carries)) return;
    const symbol = symbolOf(label.carries);
    const number = element("span", { class: "number", "data-value": label.carries });
    const base = element("span", { class: "base" });
    const node = element("div", { class: `label ${label.side}`, "data-label": label.carries });
    if (!label.bare && trace.header.symbols[label.carries]) {
      const name = element("span", { class: "name" }, importMath(mathOf(label.carries)));
      name.style.color = `var(--text-${trace.header.symbols[label.carries].role})`;
      node.append(name);
    }
    // A vector is drawn whole, one mark a unit; of a row of weights the number of this cell stands beside it.
    const row = trace.length?.(label.carries) > 1 ? element("canvas", { class: "row" }) : null;
    if (row) node.append(row);
    if (!row || trace.axes(label.carries).endsWith("S")) node.append(number);
    node.append(base);
    node.style.left = `${label.at[0]}px`;
    node.style.top = `${label.at[1]}px`;
    react(node, symbol);
    links.add(symbol, node);
    overlay.append(node);
    parts.labels.push({ carries: label.carries, number, base, row });
  }

  /** Draw everything for the present size of the box. Done on the first mount, on a new size and for a new model. */
  function draw() {
    const { layout, diagram } = trace.header;
    // A diagram of many boxes scrolls where there is no room for it.
    if (layout.narrowest) {
      parent.classList.add("picture-scroll");
      box.style.minWidth = `${layout.narrowest}px`;
    }
    const width = box.clientWidth;
    if (!width) return;
    const height = Math.round(Math.min(Math.max((width * layout.height) / layout.width, layout.least), layout.height * 1.12));
    links.forget(overlay, picture);
    overlay.replaceChildren();
    picture.replaceChildren();
    parts = { wires: [], labels: [], token: null };
    box.style.height = `${height}px`;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const [x, y, w, h] = layout.frame;
    const [sx, sy] = [width / layout.width, height / layout.height];
    const rectangle = { x: x * sx, y: y * sy, width: w * sx, height: h * sy };
    const clip = shape("clipPath", { id: "cell" }, shape("rect", rectangle));
    picture.append(shape("defs", {}, clip), shape("rect", { class: "frame", ...rectangle, rx: 10 }));
    const placed = placeDiagram(diagram, layout, width, height);
    const signals = new Map();
    for (const wire of placed.wires) signals.set(wire.carries, [...(signals.get(wire.carries) ?? []), wire]);
    // The carried state lies lowest, so that lines which cross it pass over it.
    const order = [...signals].sort(([a], [b]) => Number(b.endsWith("_prev")) - Number(a.endsWith("_prev")));
    const groups = new Map(order.map(([carries, wires]) => [carries, drawSignal(carries, wires)]));
    for (const { at, carries } of placed.dots) {
      groups.get(carries).append(shape("circle", { class: "joint", cx: at[0], cy: at[1], r: 3 }));
    }
    for (const node of placed.nodes.values()) drawNode(node);
    for (const label of placed.labels) drawLabel(label);
  }

  function show(state) {
    const at = seen(state);
    const { step } = at;
    for (const { carries, band } of parts.wires) {
      const number = trace.number(carries, at);
      band.style.stroke = context.scales().of(carries).css(number);
      band.style.strokeWidth = `${WIDEST * strength(number, context.scales().limitsOf(carries))}px`;
    }
    for (const { carries, number, base, row } of parts.labels) {
      const now = trace.number(carries, at);
      setText(number, formatNumber(now));
      if (row) paintRow(row, trace.along(carries, at), context.scales().of(carries), ROW);
      const before = row ? NaN : trace.number(carries, at, true);
      setText(base, Number.isNaN(before) || before === now ? "" : formatNumber(before));
    }
    if (parts.token) {
      // Above the first layer the input is no token: it is what the layer below has made of it.
      const depth = trace.layers?.[trace.layer].depth ?? 0;
      const read = depth ? sentence(words.from_layer, { layer: depth }) : trace.header.tokens[step];
      setText(parts.token, read);
      parts.token.className = `node input token ${depth ? "from" : tokenKind(read)}`;
    }
  }

  const watch = new ResizeObserver(() => {
    if (trace && size !== String(box.clientWidth)) {
      size = String(box.clientWidth);
      draw();
      show(store.get());
      links.refresh();
    }
  });
  watch.observe(box);

  return {
    load(next) {
      trace = next;
      size = String(box.clientWidth);
      draw();
    },
    update: show,
    destroy: () => watch.disconnect(),
  };
}
