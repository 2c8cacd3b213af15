// Curves over a number line, points of data, and the query as a point that can be dragged: where it stands is the row of
// every other view. Points are as large as the weight that this query gives them. Where the lesson says so they can be added
// and taken away by a click: the only thing of this view that the server is told.

import { element, setText, shape } from "./dom.js";
import { clamp, formatNumber, formatShort } from "./numbers.js";

const HEIGHT = 260;
const EDGE = { left: 40, right: 14, top: 18, bottom: 28 };
const AREA = 0.3; // of the plot's height, for a share of 1
const NEAR = 12; // px within which a click means a point
const PATIENCE = 4000; // ms after which clicks count again although no answer came

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

/** The round numbers of a logarithmic axis: 1, 2 and 5 times each power of ten, or the powers alone where they are many. */
function logTicks(low, high) {
  const found = [];
  const factors = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const factor of factors) found.push(Number((factor * 10 ** power).toPrecision(6)));
  }
  return found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
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
 * spec: {x: array, lines: [{array, label, role, dashed, marked}], points: {x, y, weights: over TS or null, joined}, shade: {x, y},
 * log_x, range, axis_x, axis_y, digits, fixed, editable}. `x` and lines lie over T; a line of two axes is drawn at the chosen row, over
 * an `x` of its second axis (`fixed`: then nothing is dragged). `when` of a line names another array while a symbol is chosen.
 * `shade` is a shape under the curves, of heights 0..1 over TU. All arrays are packed with the trace.
 */
export function createCurves(parent, context, spec) {
  const { store, actions, tip, words } = context;
  const picture = shape("svg", { class: "curves", role: "img", "aria-label": spec.label ?? words.curves });
  const handle = element("div", { class: "handle", role: "slider", tabindex: "0", hidden: spec.fixed, "aria-label": spec.handle_label ?? words.query_point });
  const box = element("div", { class: spec.fixed ? "curve-box fixed" : "curve-box" }, picture, handle);
  const legend = element("div", { class: "legend" });
  const edit = element("button", { type: "button", class: "edit-points", "aria-pressed": "false", text: words.edit_points, hidden: !spec.editable });
  const hint = element("p", { class: "note", text: words.edit_points_how, hidden: true });
  const top = element("div", { class: "curve-top" }, legend, edit);
  const node = element("section", { class: "curve-view" }, top, hint, box);
  parent.append(node);
  let trace = null;
  let drawn = [];
  let to = null;
  let moving = {};
  let editing = false;
  let timer = 0;

  const all = (name) => {
    const { offset, shape: size } = trace.array(name);
    return trace.block.subarray(offset, offset + size.reduce((a, b) => a * b, 1));
  };
  const arrayOf = (line, { symbol }) => line.when?.[symbol] ?? line.array;
  const there = () => spec.lines.filter(({ array }) => trace.has(array)); // not every run has every line
  const follows = (name) => trace.array(name).shape.length > 1; // the chosen row of it is drawn

  function pathOf(xs, values) {
    let path = "";
    values.forEach((value, at) => {
      if (Number.isFinite(value)) path += `${path && Number.isFinite(values[at - 1]) ? "L" : "M"}${to.x(xs[at]).toFixed(1)} ${to.y(value).toFixed(1)}`;
    });
    return path;
  }

  function places(xs, points, right, bottom) {
    const finite = [...there().flatMap(({ array }) => [...all(array)]), ...points[1]].filter(Number.isFinite);
    const [lowX, highX] = [Math.min(...xs, ...(spec.fixed ? [] : points[0])), Math.max(...xs, ...(spec.fixed ? [] : points[0]))];
    const [lowY, highY] = spec.range ?? [Math.min(...finite), Math.max(...finite)];
    const pad = spec.range ? 0 : 0.06 * (highY - lowY || 1);
    const along = spec.log_x ? Math.log : (value) => value;
    const [from, span] = [along(lowX), along(highX) - along(lowX) || 1];
    return {
      ends: [lowX, highX, lowY, highY],
      x: (value) => EDGE.left + ((along(value) - from) / span) * (right - EDGE.left),
      y: (value) => bottom - ((value - lowY + pad) / (highY - lowY + 2 * pad || 1)) * (bottom - EDGE.top),
      backX: (px) => {
        const place = from + ((px - EDGE.left) / (right - EDGE.left)) * span;
        return spec.log_x ? Math.exp(place) : place;
      },
      backY: (px) => lowY - pad + ((bottom - px) / (bottom - EDGE.top)) * (highY - lowY + 2 * pad || 1),
    };
  }

  function drawAxes(right, bottom) {
    const [lowX, highX, lowY, highY] = to.ends;
    for (const value of spec.log_x ? logTicks(lowX, highX) : ticks(lowX, highX)) {
      picture.append(shape("line", { x1: to.x(value), x2: to.x(value), y1: EDGE.top, y2: bottom, class: "rule" }));
      picture.append(shape("text", { x: to.x(value), y: bottom + 17, class: "tick middle", text: formatShort(value) }));
    }
    for (const value of ticks(lowY, highY, 5)) {
      picture.append(shape("line", { x1: EDGE.left, x2: right, y1: to.y(value), y2: to.y(value), class: "rule" }));
      picture.append(shape("text", { x: EDGE.left - 6, y: to.y(value) + 4, class: "tick last", text: formatShort(value) }));
    }
    if (spec.axis_y) picture.append(shape("text", { x: 0, y: 11, class: "tick", text: spec.axis_y }));
    if (spec.axis_x) picture.append(shape("text", { x: right, y: bottom - 6, class: "tick last named", text: spec.axis_x }));
  }

  function drawPoints(points) {
    if (spec.points?.joined) {
      const path = [...points[0]].map((x, at) => `${at ? "L" : "M"}${to.x(x).toFixed(1)} ${to.y(points[1][at]).toFixed(1)}`).join("");
      picture.append(shape("path", { d: path, class: "joined" }));
    }
    return [...points[0]].map((x, at) => {
      const dot = shape("circle", { cx: to.x(x), cy: to.y(points[1][at]), r: spec.points.joined ? 4 : 3, class: spec.points.joined ? "point stop" : "point", "data-point": at });
      dot.onpointerenter = (event) => {
        const weight = spec.points.weights ? formatNumber(trace.number(spec.points.weights, { ...store.get(), key: at })) : String(at);
        tip.show(event, weight, `${formatNumber(x)}, ${formatNumber(points[1][at])}`);
      };
      dot.onpointerleave = () => tip.hide();
      if (spec.points.weights) dot.onclick = () => editing || actions.pick({ key: at });
      picture.append(dot);
      return dot;
    });
  }

  function draw() {
    const width = box.clientWidth;
    if (!width) return false;
    const xs = all(spec.x);
    const points = spec.points ? [all(spec.points.x), all(spec.points.y)] : [[], []];
    const [right, bottom] = [width - EDGE.right, HEIGHT - EDGE.bottom];
    to = places(xs, points, right, bottom);
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    picture.replaceChildren();
    drawAxes(right, bottom);
    const area = spec.shade ? picture.appendChild(shape("path", { class: "area", "data-area": spec.shade.y })) : null;
    const stem = shape("line", { class: "stem", y1: EDGE.top, y2: bottom });
    if (!spec.fixed) picture.append(stem);
    const lines = there().map((line) => {
      const path = shape("path", { class: line.dashed ? "curve dashed" : "curve", style: `stroke:var(--role-${line.role})`, "data-line": line.array });
      if (!follows(line.array)) path.setAttribute("d", pathOf(xs, all(line.array)));
      picture.append(path);
      return { path, line };
    });
    const dots = drawPoints(points);
    const marks = there().filter(({ marked }) => marked).map((line) => {
      const mark = shape("circle", { r: 5, class: "mark", style: `fill:var(--role-${line.role})` });
      picture.append(mark);
      return { mark, line };
    });
    moving = { stem, dots, marks, xs, area, bottom, points, lines: lines.filter(({ line }) => follows(line.array)) };
    const key = ({ dashed, role, label }) => element("span", { class: "scale" }, element("span", { class: dashed ? "dash dashed" : "dash", style: `--own:var(--role-${role})` }), element("span", { text: label }));
    legend.replaceChildren(...there().map(key));
    if (spec.points?.label) legend.append(element("span", { class: "scale" }, element("span", { class: spec.points.joined ? "dot stop" : "dot" }), element("span", { text: spec.points.label })));
    if (spec.shade?.label) legend.append(element("span", { class: "scale" }, element("span", { class: "patch" }), element("span", { text: spec.shade.label })));
    return true;
  }

  // ------------------------------------------------------------------------------------------------------ what is asked

  function settle() {
    clearTimeout(timer);
    node.classList.remove("waiting");
  }

  function tell(message) {
    if (node.classList.contains("waiting")) return;
    node.classList.add("waiting");
    timer = setTimeout(settle, PATIENCE);
    context.send("touch", { key: trace.key, ...message });
  }

  edit.onclick = () => {
    editing = !editing;
    edit.setAttribute("aria-pressed", String(editing));
    hint.hidden = !editing;
    box.classList.toggle("editing", editing);
  };

  function touch(event) {
    const at = box.getBoundingClientRect();
    const [x, y] = [event.clientX - at.left, event.clientY - at.top];
    const far = [...moving.points[0]].map((value, place) => Math.hypot(to.x(value) - x, to.y(moving.points[1][place]) - y));
    const closest = far.indexOf(Math.min(...far));
    if (far[closest] <= NEAR) tell({ kind: "remove", at: closest });
    else tell({ kind: "add", x: to.backX(x), y: to.backY(y) });
  }

  const follow = (event) => {
    const at = box.getBoundingClientRect();
    const x = to.backX(event.clientX - at.left);
    actions.moveTo(spec.log_x ? nearest([...moving.xs].map(Math.log), Math.log(x)) : nearest(moving.xs, x));
  };
  box.onclick = (event) => editing && touch(event);
  box.onpointerdown = (event) => {
    if (event.button || editing || spec.fixed || (spec.points?.weights && event.target.classList?.contains("point"))) return;
    box.setPointerCapture(event.pointerId);
    follow(event);
    box.onpointermove = follow;
    box.onpointerup = box.onpointercancel = () => {
      box.onpointermove = null;
    };
  };

  // ------------------------------------------------------------------------------------------------------------- motion

  function followRow(state) {
    for (const { path, line } of moving.lines) path.setAttribute("d", pathOf(moving.xs, trace.along(arrayOf(line, state), state)));
    if (!moving.area) return;
    const places = all(spec.shade.x);
    const high = AREA * (moving.bottom - EDGE.top);
    const heights = trace.along(spec.shade.y, state);
    const line = [...heights].map((value, at) => `L${to.x(places[at]).toFixed(1)} ${(moving.bottom - high * value).toFixed(1)}`).join("");
    moving.area.setAttribute("d", `M${to.x(places[0]).toFixed(1)} ${moving.bottom}${line}L${to.x(places.at(-1)).toFixed(1)} ${moving.bottom}Z`);
  }

  return {
    node,
    settle,
    load(next) {
      trace = next;
      drawn = [];
      settle();
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
      followRow(state);
      if (!spec.fixed) {
        const x = clamp(to.x(moving.xs[state.step]), 0, box.clientWidth);
        moving.stem.setAttribute("x1", x);
        moving.stem.setAttribute("x2", x);
        handle.style.transform = `translate(${clamp(x, 32, box.clientWidth - 32)}px, ${HEIGHT - EDGE.bottom}px)`;
        handle.setAttribute("aria-valuenow", String(state.step + 1));
        handle.setAttribute("aria-valuemin", "1");
        handle.setAttribute("aria-valuemax", String(trace.steps));
        handle.setAttribute("aria-valuetext", formatNumber(moving.xs[state.step], spec.digits));
        setText(handle, formatNumber(moving.xs[state.step], spec.digits));
        for (const { mark, line } of moving.marks) {
          const value = trace.number(arrayOf(line, state), state);
          mark.setAttribute("cx", x);
          mark.setAttribute("cy", Number.isFinite(value) ? to.y(value) : -20);
        }
      }
      if (!spec.points?.weights) return;
      const weights = trace.along(spec.points.weights, state);
      const largest = Math.max(...weights, 1e-12);
      moving.dots.forEach((dot, at) => {
        dot.setAttribute("r", String(2.5 + 7 * Math.sqrt(weights[at] / largest)));
        dot.classList.toggle("chosen", at === state.key);
      });
    },
  };
}
