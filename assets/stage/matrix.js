// The large map: the chosen symbol (or one that is given) at the chosen head, rows and columns with their tokens. A click or a
// drag chooses a cell, the pointer reads one; a line can be dragged over it where the lesson cuts.

import { choice, element, sentence, setText } from "./dom.js";
import { colourSymbols, importMath } from "./formula.js";
import { cellPlace, mapAxes, paintMap, thinned } from "./map.js";
import { clamp, formatDifference, formatNumber } from "./numbers.js";
import { partOf } from "./positions.js";
import { createKey } from "./scalekey.js";
import { onDrag, tokenKind } from "./timeline.js";
import { whereParts } from "./where.js";

const WIDEST = 46; // px of a cell
const HIGHEST = 440; // px of a map
const LABEL = 12; // px that a line of text needs
const LONGEST = 88; // px of a label
const PATIENCE = 4000; // ms after which clicks count again although no answer came

export const arrayOf = (spec, trace, state) => {
  if (spec.array) return spec.instead && state.symbol === spec.array ? spec.instead : spec.array; // the chosen map stands above
  const follows = (name) => trace.has(name) && trace.array(name).shape.length > 1;
  return follows(state.symbol) ? state.symbol : trace.header.map;
};

export function createMatrix(parent, context, spec = {}) {
  const { store, actions, links, words, tip } = context;
  const title = element("div", { class: "map-title" });
  const rowLabels = element("div", { class: "row-labels", "aria-hidden": "true" });
  const columnLabels = element("div", { class: "column-labels", "aria-hidden": "true" });
  const canvas = element("canvas", { "aria-hidden": "true" });
  const band = element("div", { class: "row-band" });
  const cell = element("div", { class: "cell-frame" });
  const cutter = element("div", { class: "cutter", role: "slider", tabindex: "0", hidden: true });
  const empties = element("div", { class: "empties" });
  const field = element("div", { class: "field", tabindex: "0", role: "img" }, canvas, empties, band, cell, cutter);
  const grid = element("div", { class: "map-grid" }, element("span"), columnLabels, rowLabels, field);
  const foot = element("div", { class: "map-foot" });
  const says = element("p", { class: "map-says", "data-role": "says" });
  const edit = element("button", { type: "button", class: "edit-points", "aria-pressed": "false", text: words.edit_mask });
  const hint = element("p", { class: "note", text: words.edit_mask_how, hidden: true });
  const node = element("section", { class: "map", "data-map": spec.array ?? "" }, title, hint, grid, foot, says);
  parent.append(node);
  const key = createKey(foot, context);
  let mean = null;
  let trace = null;
  let axes = null;
  let name = "";
  let linked = "";
  let size = [1, 1];
  let drawn = {};
  let editing = false;
  let timer = 0;

  const labelsOf = ({ axis, count }) => trace.header.labels[axis] ?? Array.from({ length: count }, (_, at) => (axis === "1" ? "" : String(at)));
  const averaged = () => (store.get().mean && trace.header.means?.[name]) || null;
  const shownName = () => averaged() ?? name;
  const value = (place) => trace.shown(shownName(), place, store.get().view);
  const rampOf = () => (store.get().view === "difference" ? context.scales().difference(name) : context.scales().of(name));

  function placeAt(x, y) {
    const row = clamp(Math.floor((y / size[1]) * axes.rows.count), 0, axes.rows.count - 1);
    const column = clamp(Math.floor((x / size[0]) * axes.columns.count), 0, axes.columns.count - 1);
    return cellPlace(axes, row, column);
  }

  const choose = (x, y) => actions.pick(spec.array || name !== store.get().symbol ? { symbol: name, ...placeAt(x, y) } : placeAt(x, y));
  onDrag(field, (x, y) => {
    field.focus({ preventScroll: true });
    if (editing) turn(placeAt(x, y));
    else choose(x, y);
  }, (x, y) => editing || choose(x, y));

  // ------------------------------------------------------------------------------------------------- one's own mask

  function settle() {
    clearTimeout(timer);
    node.classList.remove("waiting");
  }

  /** Ask for the cell to be hidden, or shown again; once, until the answer is there. */
  function turn({ step, key: column }) {
    if (node.classList.contains("waiting") || !trace.axes(name).endsWith("TS")) return;
    node.classList.add("waiting");
    timer = setTimeout(settle, PATIENCE);
    context.send("touch", { key: trace.key, kind: "cell", row: step, at: column });
  }

  edit.onclick = () => {
    editing = !editing;
    edit.setAttribute("aria-pressed", String(editing));
    hint.hidden = !editing;
    field.classList.toggle("editing", editing);
  };
  field.onmousemove = (event) => {
    if (event.target === cutter) return undefined;
    const at = field.getBoundingClientRect();
    const place = placeAt(event.clientX - at.left, event.clientY - at.top);
    const now = store.get();
    if (!now.peek || Object.entries(place).some(([part, index]) => now.peek[part] !== index)) actions.peek(place);
    const full = { ...now, ...place };
    const number = value(full);
    const hidden = trace.masks(name) && trace.hidden(full);
    if (Number.isNaN(number)) return tip.show(event, words.no_number, told(full));
    const text = now.view === "difference" ? formatDifference(number) : formatNumber(number);
    return tip.show(event, hidden ? `${text} · ${words.masked}` : text, told(full));
  };
  field.onmouseleave = () => {
    actions.peek(null);
    tip.hide();
  };
  const told = (place) => whereParts(trace, words, place, new Set([axes.rows, axes.columns].filter(({ axis }) => axis !== "1").map(({ axis }) => partOf(axis))));

  field.onkeydown = (event) => {
    if (editing && (event.key === "Enter" || event.key === " ") && event.target === field) {
      event.preventDefault();
      event.stopPropagation();
      turn(store.get());
      return;
    }
    const way = { ArrowUp: ["rows", -1], ArrowDown: ["rows", 1], ArrowLeft: ["columns", -1], ArrowRight: ["columns", 1] }[event.key];
    if (!way || event.ctrlKey || event.metaKey || event.altKey || event.target !== field) return;
    const { axis, count } = axes[way[0]];
    event.preventDefault();
    event.stopPropagation();
    if (axis !== "1") actions.pick({ [partOf(axis)]: clamp(store.get()[partOf(axis)] + way[1], 0, count - 1) });
  };

  // ------------------------------------------------------------------------------------------------------ the cut

  if (spec.cut) {
    const along = () => (spec.cut === "rows" ? axes.rows : axes.columns);
    const cutAt = (x, y) => {
      const share = spec.cut === "rows" ? y / size[1] : x / size[0];
      actions.pick({ cut: clamp(Math.round(share * along().count), 0, trace.size("cut") - 1) });
    };
    cutter.hidden = false;
    cutter.classList.add(spec.cut);
    cutter.setAttribute("aria-label", spec.cut_label ?? words.cut);
    cutter.onpointerdown = (event) => {
      if (event.button) return;
      event.stopPropagation();
      cutter.setPointerCapture(event.pointerId);
      const from = (now) => {
        const box = field.getBoundingClientRect();
        cutAt(now.clientX - box.left, now.clientY - box.top);
      };
      cutter.onpointermove = from;
      cutter.onpointerup = cutter.onpointercancel = () => {
        cutter.onpointermove = null;
      };
    };
    cutter.onkeydown = (event) => {
      const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      actions.pick({ cut: store.get().cut + by });
    };
  }

  // ---------------------------------------------------------------------------------------------------- drawing

  function drawTitle() {
    const { head } = store.get();
    const symbol = trace.header.symbols[name];
    const parts = [];
    if (symbol) {
      const formula = importMath(symbol.mathml);
      colourSymbols(formula, () => {});
      parts.push(element("span", { class: "symbol" }, formula));
    }
    parts.push(element("strong", { text: spec.title ?? symbol?.name ?? name }));
    if (trace.parts(name).has("head") && trace.size("head", name) > 1) {
      const text = averaged() ? words.mean_heads : sentence(words.head_of, { head: head + 1, heads: trace.size("head", name) });
      parts.push(element("span", { class: "of", text }));
    }
    if (trace.header.means?.[name]) {
      mean ??= choice(words.which_heads, [[false, words.one_head], [true, words.mean_heads]], actions.mean);
      mean.show(store.get().mean ?? false);
      parts.push(element("span", { class: "space" }), mean.node);
    }
    if (spec.editable) parts.push(element("span", { class: "space" }), edit);
    title.replaceChildren(...parts);
  }

  function label(text, kind, at, step) {
    const made = element("span", { class: `token ${tokenKind(text)}`, text, "data-at": at });
    made.style[kind === "row" ? "top" : "left"] = `${(at + 0.5) * step}px`;
    return made;
  }

  function layout() {
    axes = mapAxes(trace, name);
    const [rows, columns] = [labelsOf(axes.rows), labelsOf(axes.columns)];
    const wide = Math.max(...rows.map((text) => [...text].length)) > 1;
    const tall = Math.max(...columns.map((text) => [...text].length)) > 2;
    const longest = (texts) => Math.min(LONGEST, 16 + 7.4 * Math.max(...texts.map((text) => [...text].length)));
    const gutter = axes.rows.axis === "1" ? 0 : wide ? longest(rows) : 20;
    const room = parent.clientWidth - gutter - 2;
    if (room <= 0) return false;
    const across = Math.min(room / columns.length, WIDEST);
    const down = Math.min(across, HIGHEST / rows.length);
    size = [across * columns.length, Math.max(down, axes.rows.count === 1 ? 22 : 2) * rows.length];
    grid.style.gridTemplateColumns = `${gutter}px ${size[0]}px`;
    grid.style.gridTemplateRows = `${tall ? longest(columns) : 18}px ${size[1]}px`;
    grid.classList.toggle("tall", tall);
    rowLabels.replaceChildren(...thinned(rows.length, size[1] / rows.length, LABEL).map((at) => label(rows[at], "row", at, size[1] / rows.length)));
    columnLabels.replaceChildren(...thinned(columns.length, across, tall ? LABEL : 6 + 6 * Math.max(...columns.map((text) => [...text].length))).map((at) => label(columns[at], "column", at, across)));
    return true;
  }

  /** The label of the chosen row and column stands out, also where it had no room. */
  function mark(box, { axis, count }, state, kind, step) {
    box.querySelector(".extra")?.remove();
    box.querySelector(".current")?.classList.remove("current");
    if (axis === "1") return;
    const at = state[partOf(axis)];
    let found = box.querySelector(`[data-at="${at}"]`);
    if (!found) {
      found = label(labelsOf({ axis, count })[at] ?? String(at), kind, at, step);
      found.classList.add("extra");
      box.append(found);
    }
    found.classList.add("current");
  }

  function drawEmpties() {
    const found = [];
    if (trace.masks(name)) {
      for (let row = 0; row < axes.rows.count; row += 1) {
        if (!trace.empty({ ...store.get(), step: row })) continue;
        const line = element("div", { class: "empty-row", text: size[1] / axes.rows.count >= LABEL ? words.empty_row : "" });
        line.style.top = `${(row * size[1]) / axes.rows.count}px`;
        line.style.height = line.style.lineHeight = `${size[1] / axes.rows.count}px`;
        found.push(line);
      }
    }
    empties.replaceChildren(...found);
  }

  function paint() {
    paintMap(canvas, { trace, name: shownName(), state: store.get(), value, ramp: rampOf(), width: size[0], height: size[1], colours: context.colours() });
  }

  return {
    node,
    settle,
    load(next) {
      trace = next;
      drawn = {};
      settle();
    },
    resize() {
      drawn = {};
    },
    update(state) {
      name = arrayOf(spec, trace, state);
      if (linked !== name) {
        links.forget(node.parentElement);
        links.add(name, node);
        linked = name;
        links.refresh();
      }
      const wanted = [name, state.head, state.view, state.mean, context.scales(), parent.clientWidth, trace];
      if (wanted.some((part, at) => part !== drawn[at])) {
        if (!layout()) return;
        drawn = wanted;
        drawTitle();
        drawEmpties();
        paint();
        key.show([name], rampOf(), trace.masks(name));
      }
      const [across, down] = [size[0] / axes.columns.count, size[1] / axes.rows.count];
      const row = axes.rows.axis === "1" ? 0 : Math.min(state[partOf(axes.rows.axis)], axes.rows.count - 1);
      const column = axes.columns.axis === "1" ? 0 : Math.min(state[partOf(axes.columns.axis)], axes.columns.count - 1);
      band.style.transform = `translateY(${row * down}px)`;
      band.style.height = `${down}px`;
      cell.style.transform = `translate(${column * across}px, ${row * down}px)`;
      cell.style.width = `${across}px`;
      cell.style.height = `${down}px`;
      mark(rowLabels, axes.rows, state, "row", down);
      mark(columnLabels, axes.columns, state, "column", across);
      if (spec.cut) {
        const at = state.cut * (spec.cut === "rows" ? down : across);
        cutter.style.transform = spec.cut === "rows" ? `translateY(${at}px)` : `translateX(${at}px)`;
        cutter.setAttribute("aria-valuenow", String(state.cut));
        cutter.setAttribute("aria-valuemin", "0");
        cutter.setAttribute("aria-valuemax", String(trace.size("cut") - 1));
      }
      const here = value(state);
      const empty = trace.masks(name) && trace.empty(state);
      const hidden = trace.masks(name) && trace.hidden(state);
      const text = state.view === "difference" ? formatDifference(here) : formatNumber(here);
      setText(says, Number.isNaN(here) ? `${told(state)}: ${words.no_number}` : `${told(state)}: ${text}${empty ? ` · ${words.empty_row}` : hidden ? ` · ${words.masked}` : ""}`);
      field.setAttribute("aria-label", `${trace.header.symbols[name]?.name ?? name}. ${words.map_keys}`);
    },
  };
}
