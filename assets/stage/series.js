// A series of numbers and a forecast that grows over it: the whole series above, below it the values that the chosen
// prediction is made from. Dragging the start shows the free run from there at once; the run is traced where one lets go.

import { choice, element, sentence, setText, shape } from "./dom.js";
import { clamp, formatNumber, formatShort } from "./numbers.js";
import { onDrag } from "./timeline.js";

const HIGH = { whole: 254, near: 190 };
const EDGE = { left: 46, right: 14, top: 22, bottom: { whole: 44, near: 24 } }; // below the whole one stands the start
const AHEAD = 10; // values after the chosen one in the lower picture
const ROLES = ["input", "reset", "candidate", "update"]; // of the k-step lines
const RUNS = ["output", "input"]; // of the run without and with a teacher

/** Round numbers between two ends, at most `most` of them. */
function ticks(low, high, most, least = 0) {
  const span = high - low || 1;
  const size = 10 ** Math.floor(Math.log10(span / most));
  const step = Math.max([1, 2, 5, 10].map((factor) => factor * size).find((one) => span / one <= most), least);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * span; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/**
 * The run's arrays: series and clean (I), ksteps (KI) and their rms (K), starts (S) and ghosts, the free runs from there (SF),
 * run and own (NT), sizes (start, train, tau, latent, lowest, highest). asked: {horizons}. The place is {step: after the start,
 * head: with a teacher or without, cut: which k-step lines are shown, as bits}.
 */
export function createSeries(parent, context, { horizons }) {
  const { store, actions, words, tip } = context;
  const teacher = choice(words.series_teacher, [["0", words.series_free], ["1", words.series_taught]], (value) => actions.pick({ head: Number(value) }));
  const lines = element("div", { class: "choice ksteps", role: "group", "aria-label": words.series_ksteps });
  const controls = element("div", { class: "series-controls" }, teacher.node, element("span", { class: "series-lines" }, element("span", { class: "note", text: words.series_ksteps }), lines));
  const whole = shape("svg", { class: "series whole", role: "img", "aria-label": words.series_whole });
  const handle = element("button", { type: "button", class: "start-handle", role: "slider", "aria-label": words.series_start_label });
  const top = element("div", { class: "series-box" }, whole, handle);
  const near = shape("svg", { class: "series near", role: "img", "aria-label": words.series_near });
  const reads = element("p", { class: "reads", "data-role": "reads" });
  const key = element("div", { class: "legend" });
  const keyRun = element("span", { class: "line-of run" });
  const bottom = element("div", { class: "series-box lower" }, near);
  const node = element("section", { class: "series-view" }, controls, top, element("div", { class: "series-says" }, reads, key), bottom);
  parent.append(node);
  let trace = null;
  let spec = null; // what the run is
  let drawn = [];
  let chips = [];
  let moving = null;
  let dragged = null; // the number of the start that is being tried

  const all = (name) => {
    const { offset, shape: size } = trace.array(name);
    return trace.block.subarray(offset, offset + size.reduce((a, b) => a * b, 1));
  };
  const row = (name, at) => {
    const { offset, shape: size } = trace.array(name);
    return trace.block.subarray(offset + at * size[1], offset + (at + 1) * size[1]);
  };
  const label = (at) => spec.labels?.[at] ?? formatShort(at + 1);
  const called = (at) => spec.labels?.[at] ?? sentence(words.series_value, { at: at + 1 });

  function scales(box, from, to, which) {
    const [low, top] = spec.range;
    const [right, floor] = [box.clientWidth - EDGE.right, HIGH[which] - EDGE.bottom[which]];
    return {
      right,
      floor,
      x: (at) => EDGE.left + ((at - from) / (to - from || 1)) * (right - EDGE.left),
      y: (value) => floor - ((clamp(value, low, top) - low) / (top - low || 1)) * (floor - EDGE.top),
      back: (px) => from + ((px - EDGE.left) / (right - EDGE.left || 1)) * (to - from),
    };
  }

  const path = (values, to, shift = 0, from = 0, end = values.length) => {
    let text = "";
    let pen = "M";
    for (let at = from; at < end; at += 1) {
      if (Number.isFinite(values[at])) {
        text += `${pen}${to.x(at + shift).toFixed(1)} ${to.y(values[at]).toFixed(1)}`;
        pen = "L";
      } else pen = "M";
    }
    return text;
  };

  function grid(picture, to, from, last, wide, under = 17) {
    if (spec.unit) picture.append(shape("text", { x: EDGE.left - 6, y: EDGE.top - 10, class: "tick last", text: spec.unit }));
    for (const value of ticks(spec.range[0], spec.range[1], 4)) {
      picture.append(shape("line", { x1: EDGE.left, x2: to.right, y1: to.y(value), y2: to.y(value), class: "rule" }));
      picture.append(shape("text", { x: EDGE.left - 6, y: to.y(value) + 4, class: "tick last", text: formatShort(value) }));
    }
    const room = 24 + 6 * Math.max(...[from, last].map((at) => [...label(at)].length));
    let end = 0; // where the last label ends
    for (const at of ticks(from + 1, last + 1, Math.max(2, Math.floor(wide / room)), 1)) {
      const text = label(at - 1);
      const half = 3.2 * [...text].length;
      const x = clamp(to.x(at - 1), half, to.right - half);
      if (x - half < end) continue;
      end = x + half + 8;
      picture.append(shape("text", { x, y: to.floor + under, class: "tick middle", text }));
    }
  }

  function drawWhole() {
    const width = top.clientWidth;
    if (!width) return false;
    const values = all("series");
    const to = scales(top, 0, values.length - 1, "whole");
    whole.setAttribute("viewBox", `0 0 ${width} ${HIGH.whole}`);
    const edge = to.x(spec.train - 0.5);
    whole.replaceChildren(shape("rect", { x: EDGE.left, width: edge - EDGE.left, y: EDGE.top - 4, height: to.floor - EDGE.top + 4, class: "trained" }));
    grid(whole, to, 0, values.length - 1, width, 38);
    const named = (x, text, side) => shape("text", { x, y: 12, class: `tick ${side}`, text });
    whole.append(named(EDGE.left + 2, words.series_train, "first"));
    whole.append(edge + 90 < to.right ? named(edge + 6, words.series_test, "first") : named(to.right, words.series_test, "last"));
    whole.append(shape("path", { d: path(values, to), class: "measured" }));
    if (trace.has("clean")) whole.append(shape("path", { d: path(all("clean"), to), class: "clean" }));
    const kinds = horizons.map((_, at) => {
      const drawing = shape("path", { d: path(row("ksteps", at), to), class: "kstep", style: `stroke:var(--role-${ROLES[at]})` });
      whole.append(drawing);
      return drawing;
    });
    const ghost = whole.appendChild(shape("path", { class: "ghost" }));
    const view = whole.appendChild(shape("rect", { class: "near-box", y: EDGE.top - 4, height: to.floor - EDGE.top + 4 }));
    const stem = whole.appendChild(shape("line", { class: "start-line", y1: EDGE.top - 4, y2: to.floor }));
    const run = whole.appendChild(shape("path", { class: "run" }));
    const mark = whole.appendChild(shape("circle", { class: "mark", r: 5 }));
    moving = { to, kinds, ghost, view, stem, run, mark, count: values.length };
    return true;
  }

  function drawNear(state) {
    const width = bottom.clientWidth;
    const values = all("series");
    const at = spec.start + state.step;
    const before = Math.min(Math.max(spec.tau + 6, width < 560 ? 14 : 30), Math.max(width < 560 ? 20 : 60, spec.tau + 2));
    const from = Math.max(at - before, 0);
    const last = Math.min(at + AHEAD, values.length - 1);
    const to = scales(bottom, from - 0.5, last + 0.5, "near");
    near.setAttribute("viewBox", `0 0 ${width} ${HIGH.near}`);
    near.replaceChildren();
    grid(near, to, from, last, width);
    const said = row("run", state.head);
    const own = state.head ? 0 : trace.number("own", state);
    const first = at - spec.tau;
    near.append(shape("rect", { x: to.x(first - 0.5), width: to.x(at - 0.5) - to.x(first - 0.5), y: EDGE.top - 4, height: to.floor - EDGE.top + 4, class: "window" }));
    if (spec.start >= from) near.append(shape("line", { class: "start-line", x1: to.x(spec.start - 0.5), x2: to.x(spec.start - 0.5), y1: EDGE.top - 4, y2: to.floor }));
    near.append(shape("path", { d: path(values, to, 0, from, last + 1), class: "measured" }));
    near.append(shape("path", { d: path(said, to, spec.start, Math.max(from - spec.start, 0), state.step + 1), class: "run", style: `stroke:var(--role-${RUNS[state.head]})` }));
    const dot = (place, value, kind, tell, radius = 3) => {
      const node = shape("circle", { cx: to.x(place), cy: to.y(value), r: radius, class: kind });
      node.onpointerenter = (event) => tip.show(event, formatNumber(value), `${tell} ${called(place)}`);
      node.onpointerleave = () => tip.hide();
      if (place >= spec.start && place - spec.start < trace.steps) node.onclick = () => actions.moveTo(place - spec.start);
      near.append(node);
    };
    const reading = (place) => place >= first && place < at;
    for (let place = from; place <= last; place += 1) {
      dot(place, values[place], reading(place) && place < at - own ? "seen read" : "seen", words.series_measured, reading(place) && place < at - own ? 4.5 : 2.5);
    }
    const kind = state.head ? "said taught" : "said";
    for (let place = Math.max(from, spec.start); place < at; place += 1) {
      const fed = !state.head && reading(place) && place >= at - own;
      dot(place, said[place - spec.start], fed ? `${kind} read` : kind, words.series_said, fed ? 4.5 : 3);
    }
    const value = said[state.step];
    near.append(shape("line", { class: "miss", x1: to.x(at), x2: to.x(at), y1: to.y(value), y2: to.y(values[at]) }));
    dot(at, value, `${kind} now`, words.series_said, 6);
    const room = to.x(at) > to.right - 70 ? -10 : 10;
    near.append(shape("text", { x: to.x(at) + room, y: clamp(to.y(value) - 9, EDGE.top + 8, to.floor - 4), class: `value ${room < 0 ? "last" : "first"} ${kind}`, text: formatNumber(value) }));
    moving.view.setAttribute("x", moving.to.x(from));
    moving.view.setAttribute("width", Math.max(moving.to.x(last) - moving.to.x(from), 3));
    const measured = spec.tau - own;
    const text = spec.latent ? (own ? words.series_reads_state_own : words.series_reads_state) : own ? words.series_reads_own : words.series_reads;
    setText(reads, sentence(text, { count: spec.tau, measured, own, label: called(at) }));
  }

  function placeStart(at) {
    const x = moving.to.x(at - 0.5);
    for (const name of ["x1", "x2"]) moving.stem.setAttribute(name, x);
    handle.style.transform = `translate(${x}px, ${moving.to.floor}px)`;
    handle.setAttribute("aria-valuenow", String(at + 1));
    handle.setAttribute("aria-valuemin", String(all("starts")[0] + 1));
    handle.setAttribute("aria-valuemax", String(moving.count));
    handle.setAttribute("aria-valuetext", called(at));
    setText(handle, words.series_start);
  }

  /** The start nearest to a place, of those whose free runs came with the page; its run is shown as a ghost. */
  function attempt(place) {
    const starts = all("starts");
    let best = 0;
    starts.forEach((start, at) => {
      if (Math.abs(start - place) < Math.abs(starts[best] - place)) best = at;
    });
    dragged = best;
    moving.ghost.setAttribute("d", path(row("ghosts", best), moving.to, starts[best]));
    node.classList.add("trying");
    placeStart(starts[best]);
  }

  function settle() {
    if (dragged === null) return;
    const start = all("starts")[dragged];
    dragged = null;
    if (start !== spec.start) context.send("place", { step: start, unit: 0, symbol: "start" });
    else rest();
  }

  function rest() {
    node.classList.remove("trying");
    moving?.ghost.removeAttribute("d");
    if (moving) placeStart(spec.start);
  }

  onDrag(handle, () => {}, (x) => attempt(moving.to.back(x + handle.getBoundingClientRect().left - top.getBoundingClientRect().left)));
  handle.addEventListener("pointerup", settle);
  handle.addEventListener("pointercancel", () => {
    dragged = null;
    rest();
  });
  handle.onkeydown = (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (by === undefined && event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter") return settle();
    if (event.key === "Escape") {
      dragged = null;
      return rest();
    }
    const starts = all("starts");
    const here = dragged ?? starts.findIndex((start) => start >= spec.start);
    attempt(starts[clamp((here < 0 ? starts.length - 1 : here) + by, 0, starts.length - 1)]);
  };
  handle.onblur = settle;
  onDrag(whole, (x) => actions.moveTo(Math.round(moving.to.back(x)) - spec.start));

  return {
    node,
    load(next) {
      trace = next;
      const [start, train, tau, latent, ...range] = all("sizes");
      const { I: labels, Q: units } = trace.header.labels;
      spec = { start, train, tau, latent: Boolean(latent), range, labels: labels.length ? labels : null, unit: units[0] };
      drawn = [];
      dragged = null;
      const lineOf = (kind) => element("span", { class: `line-of ${kind}` });
      const shown = [[lineOf("measured"), words.series_key_measured], [keyRun, words.series_key_run], ...(trace.has("clean") ? [[lineOf("clean"), words.series_key_clean]] : [])];
      key.replaceChildren(...shown.map(([line, text]) => element("span", { class: "scale" }, line, element("span", { text }))));
      lines.replaceChildren();
      const errors = all("rms");
      chips = horizons.map((k, at) => {
        const toggle = () => actions.pick({ cut: store.get().cut ^ (1 << at) });
        const chip = element("button", { type: "button", "aria-pressed": "false", "data-k": k, onclick: toggle, title: sentence(words.series_rms, { k }) });
        const error = Number.isFinite(errors[at]) ? formatNumber(errors[at]) : "–";
        chip.append(element("span", { class: "dash", style: `--own:var(--role-${ROLES[at]})` }), element("span", { text: `k = ${k}` }), element("span", { class: "error", "data-rms": k, text: error }));
        chip.disabled = !Number.isFinite(errors[at]);
        lines.append(chip);
        return chip;
      });
    },
    resize() {
      drawn = [];
    },
    update(state) {
      const wanted = [trace, top.clientWidth];
      if (wanted.some((part, at) => part !== drawn[at])) {
        if (!drawWhole()) return;
        drawn = wanted;
        rest();
      }
      teacher.show(String(state.head));
      chips.forEach((chip, at) => {
        const on = Boolean(state.cut & (1 << at)) && !chip.disabled;
        chip.setAttribute("aria-pressed", String(on));
        moving.kinds[at].classList.toggle("on", on);
      });
      const said = row("run", state.head);
      moving.run.setAttribute("d", path(said, moving.to, spec.start, 0, state.step + 1));
      const colour = `var(--role-${RUNS[state.head]})`;
      moving.run.style.stroke = colour;
      moving.mark.style.fill = colour;
      keyRun.style.borderTopColor = colour;
      moving.mark.setAttribute("cx", moving.to.x(spec.start + state.step));
      moving.mark.setAttribute("cy", moving.to.y(said[state.step]));
      drawNear(state);
    },
  };
}
