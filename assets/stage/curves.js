// Curves over a number line, points of data, and the query as a point that can be dragged: where it stands is the row of
// every other view. Points are as large as the weight that this query gives them.

import { element, setText, shape } from "./dom.js";
import { formatNumber, formatShort } from "./numbers.js";
import { clamp } from "./numbers.js";

const HEIGHT = 260;
const EDGE = { left: 40, right: 12, top: 10, bottom: 26 };

/** Three to six round numbers between two ends. */
function ticks(low, high, most = 6) {
  const span = high - low || 1;
  const raw = span / most;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => span / one <= most);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * span; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/** The index of the number in a sorted row that is nearest to `x`. */
function nearest(row, x) {
  let best = 0;
  row.forEach((value, at) => {
    if (Math.abs(value - x) < Math.abs(row[best] - x)) best = at;
  });
  return best;
}

/**
 * spec: {x: array over T, lines: [{array over T, label, role, dashed}], points: {x, y over S, weights over TS or null},
 * axis_x, axis_y: labels}. All arrays are packed with the trace.
 */
export function createCurves(parent, context, spec) {
  const { store, actions, tip, words } = context;
  const picture = shape("svg", { class: "curves", role: "img", "aria-label": spec.label ?? words.curves });
  const handle = element("div", { class: "handle", role: "slider", tabindex: "0", "aria-label": spec.handle_label ?? words.query_point });
  const box = element("div", { class: "curve-box" }, picture, handle);
  const legend = element("div", { class: "legend" });
  const node = element("section", { class: "curve-view" }, legend, box);
  parent.append(node);
  let trace = null;
  let drawn = [];
  let to = null;
  let moving = [];

  const all = (name) => {
    const { offset, shape: size } = trace.array(name);
    return trace.block.subarray(offset, offset + size.reduce((a, b) => a * b, 1));
  };

  function draw() {
    const width = box.clientWidth;
    if (!width) return false;
    const xs = all(spec.x);
    const points = spec.points ? [all(spec.points.x), all(spec.points.y)] : [[], []];
    const finite = [...spec.lines.flatMap(({ array }) => [...all(array)]), ...points[1]].filter(Number.isFinite);
    const [lowX, highX] = [Math.min(...xs, ...points[0]), Math.max(...xs, ...points[0])];
    const [lowY, highY] = spec.range ?? [Math.min(...finite), Math.max(...finite)];
    const pad = spec.range ? 0 : 0.06 * (highY - lowY || 1);
    const right = width - EDGE.right;
    const bottom = HEIGHT - EDGE.bottom;
    to = {
      x: (value) => EDGE.left + ((value - lowX) / (highX - lowX || 1)) * (right - EDGE.left),
      y: (value) => bottom - ((value - lowY + pad) / (highY - lowY + 2 * pad || 1)) * (bottom - EDGE.top),
      back: (px) => lowX + ((px - EDGE.left) / (right - EDGE.left)) * (highX - lowX),
    };
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    picture.replaceChildren();
    for (const value of ticks(lowX, highX)) {
      picture.append(shape("line", { x1: to.x(value), x2: to.x(value), y1: EDGE.top, y2: bottom, class: "rule" }));
      picture.append(shape("text", { x: to.x(value), y: bottom + 16, class: "tick middle", text: formatShort(value) }));
    }
    for (const value of ticks(lowY, highY, 5)) {
      picture.append(shape("line", { x1: EDGE.left, x2: right, y1: to.y(value), y2: to.y(value), class: "rule" }));
      picture.append(shape("text", { x: EDGE.left - 6, y: to.y(value) + 4, class: "tick last", text: formatShort(value) }));
    }
    const stem = shape("line", { class: "stem", y1: EDGE.top, y2: bottom });
    picture.append(stem);
    for (const line of spec.lines) {
      const values = all(line.array);
      let path = "";
      values.forEach((value, at) => {
        if (Number.isFinite(value)) path += `${path && Number.isFinite(values[at - 1]) ? "L" : "M"}${to.x(xs[at]).toFixed(1)} ${to.y(value).toFixed(1)}`;
      });
      picture.append(shape("path", { d: path, class: line.dashed ? "curve dashed" : "curve", style: `stroke:var(--role-${line.role})`, "data-line": line.array }));
    }
    const dots = [...points[0]].map((x, at) => {
      const dot = shape("circle", { cx: to.x(x), cy: to.y(points[1][at]), r: 3, class: "point", "data-point": at });
      dot.onpointerenter = (event) => {
        const weight = spec.points.weights ? formatNumber(trace.number(spec.points.weights, { ...store.get(), key: at })) : "";
        tip.show(event, weight, `${formatNumber(x)}, ${formatNumber(points[1][at])}`);
      };
      dot.onpointerleave = () => tip.hide();
      dot.onclick = () => actions.pick({ key: at });
      picture.append(dot);
      return dot;
    });
    const marks = spec.lines.filter(({ marked }) => marked).map((line) => {
      const mark = shape("circle", { r: 5, class: "mark", style: `fill:var(--role-${line.role})` });
      picture.append(mark);
      return { mark, line };
    });
    moving = { stem, dots, marks, xs };
    legend.replaceChildren(...spec.lines.map((line) => element("span", { class: "scale" }, element("span", { class: line.dashed ? "dash dashed" : "dash", style: `--own:var(--role-${line.role})` }), element("span", { text: line.label }))));
    return true;
  }

  const follow = (event) => {
    const at = box.getBoundingClientRect();
    actions.moveTo(nearest(moving.xs, to.back(event.clientX - at.left)));
  };
  box.onpointerdown = (event) => {
    if (event.button || event.target.classList?.contains("point")) return;
    box.setPointerCapture(event.pointerId);
    follow(event);
    box.onpointermove = follow;
    box.onpointerup = box.onpointercancel = () => {
      box.onpointermove = null;
    };
  };

  return {
    node,
    load(next) {
      trace = next;
      drawn = [];
    },
    resize() {
      drawn = [];
    },
    update(state) {
      const wanted = [trace, box.clientWidth];
      if (wanted.some((part, at) => part !== drawn[at])) {
        if (!draw()) return;
        drawn = wanted;
      }
      const x = clamp(to.x(moving.xs[state.step]), 0, box.clientWidth);
      moving.stem.setAttribute("x1", x);
      moving.stem.setAttribute("x2", x);
      handle.style.transform = `translate(${x}px, ${HEIGHT - EDGE.bottom}px)`;
      handle.setAttribute("aria-valuenow", String(state.step + 1));
      handle.setAttribute("aria-valuemin", "1");
      handle.setAttribute("aria-valuemax", String(trace.steps));
      setText(handle, formatNumber(moving.xs[state.step]));
      for (const { mark, line } of moving.marks) {
        const value = trace.number(line.array, state);
        mark.setAttribute("cx", x);
        mark.setAttribute("cy", Number.isFinite(value) ? to.y(value) : -20);
      }
      if (!spec.points?.weights) return;
      const weights = trace.along(spec.points.weights, state);
      const top = Math.max(...weights, 1e-12);
      moving.dots.forEach((dot, at) => {
        dot.setAttribute("r", String(2.5 + 7 * Math.sqrt(weights[at] / top)));
        dot.classList.toggle("chosen", at === state.key);
      });
    },
  };
}
