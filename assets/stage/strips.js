// Heat strips: for each symbol a field of all units (rows) over all steps (columns), and under it the selected unit alone.

import { element, sentence, setText, shape } from "./dom.js";
import { colourSymbols, importMath } from "./formula.js";
import { clamp, formatDifference, formatNumber, formatShort } from "./numbers.js";
import { keepInView, onDrag } from "./timeline.js";

const FIELD = 34;
const GAP = 3;
const LINE = 9;
const STRIP = FIELD + GAP + LINE;

/** The value a strip shows at a cell, in one of the views changed, baseline and difference. */
export function shown(trace, name, step, unit, view) {
  if (view === "baseline") return trace.value(name, step, unit, true);
  const now = trace.value(name, step, unit);
  return view === "difference" ? now - trace.value(name, step, unit, true) : now;
}

/** Neighbouring units as [first, end) runs: [3, 4, 7] -> [[3, 5], [7, 8]]; null (all) -> one run. */
export function runs(units, count) {
  if (!units) return [[0, count]];
  const found = [];
  for (const unit of units) {
    const last = found[found.length - 1];
    if (last && last[1] === unit) last[1] = unit + 1;
    else found.push([unit, unit + 1]);
  }
  return found;
}

/** Draw one strip. Rows are averaged where a pixel holds several units; columns keep sharp edges. */
function paint(canvas, trace, name, state, width, ramp) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [columns, rows] = [trace.steps, trace.units];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(STRIP * ratio);
  const ink = canvas.getContext("2d");
  const image = new ImageData(columns, rows);
  for (let step = 0; step < columns; step += 1) {
    for (let unit = 0; unit < rows; unit += 1) {
      ramp.paint(shown(trace, name, step, unit, state.view), image.data, 4 * (unit * columns + step));
    }
  }
  const exact = new OffscreenCanvas(columns, rows);
  exact.getContext("2d").putImageData(image, 0, 0);
  const high = Math.round(FIELD * ratio);
  const squeezed = new OffscreenCanvas(columns, high);
  const between = squeezed.getContext("2d");
  between.imageSmoothingEnabled = rows > high;
  between.imageSmoothingQuality = "high";
  between.drawImage(exact, 0, 0, columns, rows, 0, 0, columns, high);
  ink.imageSmoothingEnabled = false;
  ink.drawImage(squeezed, 0, 0, columns, high, 0, 0, canvas.width, high);
  paintLine(canvas, trace, name, state, ramp);
}

/** The row of the selected unit alone. */
function paintLine(canvas, trace, name, { unit, view }, ramp) {
  const ratio = canvas.height / STRIP;
  const ink = canvas.getContext("2d");
  const [top, high] = [Math.round((FIELD + GAP) * ratio), Math.round(LINE * ratio)];
  ink.clearRect(0, top, canvas.width, high);
  for (let step = 0; step < trace.steps; step += 1) {
    const left = Math.round((step * canvas.width) / trace.steps);
    const right = Math.round(((step + 1) * canvas.width) / trace.steps);
    ink.fillStyle = ramp.css(shown(trace, name, step, unit, view));
    ink.fillRect(left, top, right - left, high);
  }
}

export function createStrips(parent, context) {
  const { store, actions, links, words, tip } = context;
  const names = element("div", { class: "strip-names" });
  const inner = element("div", { class: "strip-inner" });
  const box = element("div", { class: "strip-box" }, inner);
  const column = element("div", { class: "column" });
  const legend = element("div", { class: "legend" });
  const node = element("div", { class: "strips" }, names, box);
  parent.append(node, legend);
  let trace = null;
  let fields = [];
  let width = 4;
  let drawn = {};

  const unitAt = (y) => clamp(Math.floor((y / FIELD) * trace.units), 0, trace.units - 1);
  const stepAt = (x) => clamp(Math.floor(x / width), 0, trace.steps - 1);
  const rampOf = (name) => (store.get().view === "difference" ? context.scales().difference(name) : context.scales().of(name));

  function describe(name, step, unit) {
    const { view } = store.get();
    const number = shown(trace, name, step, unit, view);
    const text = view === "difference" ? formatDifference(number) : formatNumber(number);
    const place = sentence(words.cell, { step: step + 1, token: trace.header.tokens[step], unit });
    return [text, place];
  }

  function outline(field, change) {
    const end = change.to ?? trace.steps;
    for (const [first, last] of runs(change.units, trace.units)) {
      const frame = element("div", { class: "clamped" });
      frame.style.left = `${(100 * (change.from ?? 0)) / trace.steps}%`;
      frame.style.width = `${(100 * (end - (change.from ?? 0))) / trace.steps}%`;
      frame.style.top = `${(FIELD * first) / trace.units}px`;
      frame.style.height = `${Math.max((FIELD * (last - first)) / trace.units, 2)}px`;
      field.append(frame);
    }
  }

  function build(name) {
    const canvas = element("canvas", { "data-strip": name, "aria-hidden": "true" });
    const mark = element("div", { class: "unit-mark" });
    const field = element("div", { class: "strip", "data-strip-box": name }, canvas, mark);
    for (const change of trace.changes(name)) outline(field, change);
    onDrag(
      field,
      (x, y) => actions.pick({ symbol: name, step: stepAt(x), unit: y < FIELD ? unitAt(y) : store.get().unit }),
      (x) => actions.moveTo(stepAt(x)),
    );
    field.onmousemove = (event) => {
      const at = field.getBoundingClientRect();
      const [x, y] = [event.clientX - at.left, event.clientY - at.top];
      actions.hover(name);
      tip.show(event, ...describe(name, stepAt(x), y < FIELD ? unitAt(y) : store.get().unit));
    };
    field.onmouseleave = () => {
      actions.hover(null);
      tip.hide();
    };
    const label = element("button", { type: "button", class: "strip-name", tabindex: "-1", onclick: () => actions.select(name) });
    const formula = importMath(trace.header.symbols[name].mathml);
    colourSymbols(formula, () => {});
    label.append(formula);
    label.title = trace.header.symbols[name].name;
    label.onpointerenter = () => actions.hover(name);
    label.onpointerleave = () => actions.hover(null);
    links.add(name, label);
    links.add(name, field);
    return { name, canvas, mark, field, label };
  }

  /** One short bar for each scale in use, with its fixed ends and the symbols that are drawn on it. */
  function drawLegend() {
    const { view } = store.get();
    const groups = new Map();
    for (const { name } of fields) {
      const ramp = rampOf(name);
      const key = ramp.interval.join();
      if (!groups.has(key)) groups.set(key, { ramps: new Set(), symbols: [] });
      groups.get(key).ramps.add(ramp);
      groups.get(key).symbols.push(name);
    }
    const items = [...groups.values()].map(({ ramps, symbols }) => {
      const bars = element("span", { class: "bars" });
      for (const ramp of ramps) {
        const bar = element("span", { class: "bar" });
        bar.style.background = `linear-gradient(90deg, ${ramp.stops.map((stop) => `rgb(${stop})`).join(", ")})`;
        bars.append(bar);
      }
      const [low, high] = [...ramps][0].interval;
      const who = element("span", { class: "who" });
      for (const name of symbols) {
        const formula = importMath(trace.header.symbols[name].mathml);
        colourSymbols(formula, () => {});
        who.append(formula);
      }
      const ends = (value) => element("span", { class: "end", text: formatShort(value) });
      return element("span", { class: "scale" }, who, ends(low), bars, ends(high));
    });
    const lead = view === "difference" ? [element("span", { class: "lead", text: words.difference })] : [];
    legend.replaceChildren(...lead, ...items);
  }

  return {
    node,
    load(next) {
      trace = next;
      links.forget(names, inner);
      fields = trace.header.layout.strips.filter((name) => trace.has(name)).map(build);
      names.replaceChildren(...fields.map(({ label }) => label));
      inner.replaceChildren(...fields.map(({ field }) => field), column);
      drawn = {};
    },
    resize(strip) {
      width = strip;
      inner.style.width = `${width * trace.steps}px`;
      column.style.width = `${width}px`;
      drawn = {};
    },
    update(state) {
      const { step, unit, view } = state;
      const whole = drawn.view !== view || drawn.scales !== context.scales() || drawn.width !== width;
      for (const { name, canvas, mark } of fields) {
        if (whole) paint(canvas, trace, name, state, width * trace.steps, rampOf(name));
        else if (drawn.unit !== unit) paintLine(canvas, trace, name, state, rampOf(name));
        if (whole || drawn.unit !== unit) mark.style.top = `${(FIELD * (unit + 0.5)) / trace.units}px`;
      }
      if (whole) drawLegend();
      drawn = { view, unit, width, scales: context.scales() };
      column.style.transform = `translateX(${step * width}px)`;
    },
    keepInView: ({ step }) => keepInView(box, step * width, (step + 1) * width),
  };
}

/** A small note at the pointer: a number and where it stands. */
export function createTip(root) {
  const number = element("strong");
  const place = element("span");
  const node = element("div", { class: "tip", role: "presentation", hidden: true }, number, place);
  root.append(node);
  return {
    show(event, value, where) {
      const at = root.getBoundingClientRect();
      setText(number, value);
      setText(place, where);
      node.hidden = false;
      const left = clamp(event.clientX - at.left - node.offsetWidth / 2, 4, at.width - node.offsetWidth - 4);
      node.style.transform = `translate(${left}px, ${event.clientY - at.top - node.offsetHeight - 14}px)`;
    },
    hide() {
      node.hidden = true;
    },
  };
}

/** An icon of 20 x 20 drawn as one path. */
export function icon(path) {
  return shape("svg", { viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true" }, shape("path", { d: path }));
}
