// Curves of models in training: perplexity on a logarithmic axis, which is the loss on a linear one, and below it the norm of
// the gradient. Drawn anew whenever there is more to draw; the pointer reads the values at a step.

import { element, setText, shape } from "./dom.js";
import { formatNumber } from "./numbers.js";

const EDGE = { left: 44, right: 40, top: 10, bottom: 24 };
const HEIGHT = 300;
const LOW = 86;
const BEYOND = 1; // nats above knowing nothing that are still drawn
const TICKS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/** Round numbers from 0 to `high`, at most seven. */
function rounds(high) {
  const size = 10 ** Math.floor(Math.log10(Math.max(high / 6, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => high / one <= 6);
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => at * step);
}

/** The right end of the axis: it grows in jumps, so that a curve does not move all the time. */
function reach(step, steps) {
  const size = 10 ** Math.floor(Math.log10(Math.max(step, 10)));
  const next = [1, 2, 3, 5, 7, 10].map((factor) => factor * size).find((one) => one >= step);
  return Math.max(Math.min(next, steps), 10);
}

function path(xs, ys, x, y, until) {
  let made = "";
  let broken = true;
  xs.forEach((at, place) => {
    if (at > until) return;
    if (!Number.isFinite(ys[place])) {
      broken = true;
      return;
    }
    made += `${broken ? "M" : "L"}${x(at).toFixed(1)} ${y(ys[place]).toFixed(1)}`;
    broken = false;
  });
  return made;
}

/** The value of a curve at a step: the last one that is not after it. */
export function valueAt(xs, ys, step) {
  let found = NaN;
  for (let place = 0; place < xs.length && xs[place] <= step; place += 1) if (Number.isFinite(ys[place])) found = ys[place];
  return found;
}

export function createChart(parent, { words, actions }) {
  const picture = shape("svg", { class: "training-curves", role: "img", "aria-label": words.training_curves });
  const cursor = element("div", { class: "training-cursor", hidden: true });
  const box = element("div", { class: "training-box" }, picture, cursor);
  parent.append(box);
  let shown = null;
  let to = null;

  function axes(data, width, until) {
    const right = reach(data.playing ? until : data.step, data.steps);
    const values = data.members.flatMap(({ losses, held }) => [...losses, ...held]).filter(Number.isFinite);
    const lines = data.lines.map(({ value }) => value);
    // A model that diverges leaves the picture at its top, instead of flattening everything else.
    const most = (lines.length ? Math.max(...lines) : 4.5) + BEYOND;
    const top = Math.min(Math.max(...values, ...lines, 1), most) + 0.12;
    const bottom = Math.max(0, Math.min(...values, ...lines, most) - 0.15);
    const x = (step) => EDGE.left + (step / right) * (width - EDGE.left - EDGE.right);
    const y = (loss) => HEIGHT - EDGE.bottom - ((Math.min(loss, top) - bottom) / (top - bottom)) * (HEIGHT - EDGE.top - EDGE.bottom);
    return { x, y, right, top, bottom, back: (px) => ((px - EDGE.left) / (width - EDGE.left - EDGE.right)) * right };
  }

  function norms(data, until, add, x) {
    const values = data.members.flatMap(({ norms: all }) => [...all]).filter((one) => Number.isFinite(one) && one > 0);
    const floor = Math.floor(Math.log10(Math.max(Math.min(...values, 1), 1e-6)));
    const ceiling = Math.max(Math.ceil(Math.log10(Math.max(...values, 1))), floor + 1);
    const y = (value) => HEIGHT + LOW - 20 - ((Math.log10(Math.max(value, 1e-9)) - floor) / (ceiling - floor)) * (LOW - 34);
    const width = box.clientWidth;
    for (const power of new Set([floor, ceiling])) {
      add("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(10 ** power), y2: y(10 ** power), class: "rule" });
      add("text", { x: EDGE.left - 6, y: y(10 ** power) + 4, class: "tick last", text: power < -2 || power > 3 ? `1e${power}` : String(10 ** power) });
    }
    add("text", { x: EDGE.left, y: HEIGHT + 6, class: "axis-name", text: words.training_norm });
    if (data.limit) {
      const at = y(data.limit);
      if (at > HEIGHT && at < HEIGHT + LOW - 12) {
        add("line", { x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at, class: "limit" });
        add("text", { x: width - EDGE.right - 4, y: at - 4, class: "tick last", text: words.training_limit });
      }
    }
    for (const member of data.members) {
      add("path", { d: path(member.steps, member.norms, x, y, until), class: "norm", style: `stroke:var(--role-${member.role})` });
    }
  }

  function draw(data, until) {
    const width = box.clientWidth;
    if (!width) return;
    shown = data;
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT + LOW}`);
    const parts = [];
    const add = (tag, attributes) => parts.push(shape(tag, attributes));
    to = axes(data, width, until);
    const { x, y, right, top, bottom } = to;
    for (const step of rounds(right)) {
      add("line", { x1: x(step), x2: x(step), y1: EDGE.top, y2: HEIGHT - EDGE.bottom, class: "rule" });
      add("text", { x: x(step), y: HEIGHT - EDGE.bottom + 15, class: "tick middle", text: step.toLocaleString("en") });
    }
    for (const value of TICKS.filter((one) => Math.log(one) >= bottom && Math.log(one) <= top)) {
      add("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(Math.log(value)), y2: y(Math.log(value)), class: "rule" });
      add("text", { x: EDGE.left - 6, y: y(Math.log(value)) + 4, class: "tick last", text: String(value) });
    }
    for (let loss = Math.ceil(bottom * 2) / 2; loss <= top; loss += 0.5) {
      add("text", { x: width - EDGE.right + 6, y: y(loss) + 4, class: "tick quiet", text: formatNumber(loss, 1) });
    }
    for (const { value, label } of data.lines) {
      add("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value), class: "beat" });
      add("text", { x: width - EDGE.right - 4, y: y(value) - 4, class: "tick last beat-name", text: label });
    }
    for (const member of data.members) {
      const style = `stroke:var(--role-${member.role})`;
      add("path", { d: path(member.steps, member.losses, x, y, until), class: "trained", style });
      add("path", { d: path(member.held_steps, member.held, x, y, until), class: "held", style });
      if (member.best && member.best.step <= until) {
        add("circle", { cx: x(member.best.step), cy: y(member.best.loss), r: 4.5, class: "best", style });
      }
      if (member.broken && member.broken.step <= until) {
        add("path", { d: `M${x(member.broken.step) - 5} ${EDGE.top + 2}l10 10m0 -10l-10 10`, class: "broken", style });
      }
    }
    if (data.frames.length > 1) add("line", { x1: x(until), x2: x(until), y1: EDGE.top, y2: HEIGHT - EDGE.bottom, class: "now" });
    add("text", { x: 2, y: HEIGHT - EDGE.bottom + 15, class: "axis-name", text: "" });
    norms(data, until, add, x);
    picture.replaceChildren(...parts);
  }

  const leave = () => {
    cursor.hidden = true;
  };
  box.onpointermove = (event) => {
    if (!shown || !to) return;
    const place = box.getBoundingClientRect();
    const step = Math.round(to.back(event.clientX - place.left));
    if (step < 0 || step > to.right) return void leave();
    if (event.buttons === 1 && shown.frames.length > 1) actions.moveToStep(step);
    const rows = shown.members.map(({ name, role, steps, losses, held_steps, held }) => {
      const [train, out] = [valueAt(steps, losses, step), valueAt(held_steps, held, step)].map((loss) => (Number.isFinite(loss) ? formatNumber(Math.exp(loss), 2) : "\u2013"));
      return element("div", {}, element("i", { style: `background:var(--role-${role})` }), `${name}  ${train} / ${out}`);
    });
    cursor.replaceChildren(element("strong", { text: `${words.training_step} ${step.toLocaleString("en")}` }), ...rows);
    cursor.hidden = false;
    const left = Math.min(event.clientX - place.left + 12, place.width - cursor.offsetWidth - 4);
    cursor.style.transform = `translate(${Math.max(left, 0)}px, 14px)`;
  };
  box.onpointerleave = leave;
  box.onpointerdown = (event) => {
    if (shown?.frames.length > 1 && to) actions.moveToStep(Math.round(to.back(event.clientX - box.getBoundingClientRect().left)));
  };
  return { draw, height: HEIGHT + LOW, leave, setText };
}
