// The stage of the lesson on training: curves, numbers, samples and gates of one to four models. A live run sends what is new
// twice a second and more; a recorded one comes at once and is played and scrubbed here. Nothing is ever sent back.

import { element, setText } from "./dom.js";
import { listen } from "./keyboard.js";
import { clamp, formatNumber } from "./numbers.js";
import { createPlayer } from "./player.js";
import { luminance, parseColour } from "./scales.js";
import { createStore } from "./store.js";
import { createChart, valueAt } from "./trainingchart.js";
import { createView } from "./trainingview.js";

const instances = new WeakMap();
const COLUMNS = ["model", "train", "held", "bits", "norm", "speed"];

/** The data in the bytes: header length, JSON header, float32 block, then bytes of strips. */
function open(bytes) {
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const copy = bytes.slice(4 + size);
  const floats = new Float32Array(copy.buffer, 0, header.floats);
  const cut = ([offset, length]) => floats.subarray(offset, offset + length);
  const members = header.members.map((member) => ({ ...member, ...Object.fromEntries(["steps", "losses", "norms", "held_steps", "held"].map((name) => [name, cut(member[name])])) }));
  return { ...header, members, strips: copy.subarray(4 * header.floats) };
}

function createTable(parent, { words }) {
  const titles = { model: words.training_model, train: words.training_train, held: words.training_held, bits: words.training_bits, norm: words.training_norms, speed: words.training_speed };
  const body = element("tbody");
  const head = element("tr", {}, ...COLUMNS.map((name) => element("th", { scope: "col", text: titles[name] })));
  parent.append(element("div", { class: "training-numbers" }, element("table", {}, element("thead", {}, head), body)));
  let rows = [];
  let made = "";
  return {
    draw(data, step) {
      const wanted = JSON.stringify(data.members.map(({ name, role }) => [name, role]));
      if (wanted !== made) {
        made = wanted;
        rows = data.members.map((member, place) => {
          const cells = Object.fromEntries(COLUMNS.slice(1).map((name) => [name, element("td", { "data-number": `${place}-${name}` })]));
          const about = element("span", { class: "note" });
          const name = element("th", { scope: "row" }, element("i", { style: `background:var(--role-${member.role})` }), element("span", { text: member.name }), about);
          return { row: element("tr", {}, name, ...Object.values(cells)), cells, about };
        });
        body.replaceChildren(...rows.map(({ row }) => row));
      }
      data.members.forEach((member, place) => {
        const { cells, about } = rows[place];
        const held = valueAt(member.held_steps, member.held, step);
        const norm = valueAt(member.steps, member.norms, step);
        const number = (value, digits) => (Number.isFinite(value) ? formatNumber(value, digits) : "\u2013");
        setText(about, member.about);
        setText(cells.train, number(Math.exp(valueAt(member.steps, member.losses, step)), 2));
        setText(cells.held, number(Math.exp(held), 2));
        setText(cells.bits, number(held / Math.LN2, 2));
        setText(cells.norm, data.limit ? `${number(norm, 2)} \u2192 ${number(Math.min(norm, data.limit), 2)}` : number(norm, 2));
        setText(cells.speed, member.speed ? Math.round(member.speed).toLocaleString("en") : "\u2013");
      });
    },
  };
}

/** Play and scrub of a recorded run, over the steps at which it was kept. */
function createTransport(parent, { words, actions, store }) {
  const play = element("button", { type: "button", class: "training-play", onclick: () => actions.play(!store.get().playing) });
  const range = element("input", { type: "range", min: "0", step: "1", "aria-label": words.training_scrub });
  const position = element("span", { class: "position" });
  const node = element("div", { class: "training-transport", role: "toolbar", "aria-label": words.controls }, play, range, position);
  range.oninput = () => actions.moveTo(Number(range.value));
  parent.append(node);
  return {
    update(state, data) {
      node.hidden = data.frames.length < 2;
      setText(play, state.playing ? words.pause : words.play);
      range.max = String(data.frames.length - 1);
      range.value = String(state.step);
      setText(position, `${words.training_step} ${(data.frames[state.step]?.step ?? 0).toLocaleString("en")}`);
    },
  };
}

function createStage(host, first) {
  const { words } = first;
  let data = first;
  const root = element("div", { class: "stage training", role: "group", "aria-label": words.training_stage });
  host.append(root);
  const store = createStore({ step: Math.max(first.frames.length - 1, 0), playing: false, speed: 2, unit: 0 });
  const last = () => Math.max(data.frames.length - 1, 0);
  const actions = {
    moveTo: (at) => store.set({ step: clamp(at, 0, last()) }),
    moveBy: (by) => actions.moveTo(store.get().step + by),
    moveToStep: (step) => actions.moveTo(data.frames.findLastIndex((frame) => frame.step <= step)),
    first: () => actions.moveTo(0),
    last: () => actions.moveTo(last()),
    unitBy: () => undefined,
    play: (playing) => store.set(playing && store.get().step >= last() ? { playing: last() > 0, step: 0 } : { playing }),
  };
  const colourOf = (name) => parseColour(getComputedStyle(root).getPropertyValue(name));
  const context = { words, actions, store, colourOf };
  const title = element("p", { class: "training-title" });
  root.append(title);
  const transport = createTransport(root, context);
  const chart = createChart(root, context);
  const table = createTable(root, context);
  const view = createView(root, context);
  const player = createPlayer(root, store, () => ({ steps: data.frames.length, header: { tick: 900 } }), actions, false);
  const silence = listen(root, actions, () => store.get().playing, false);

  function readTheme() {
    const paper = parseColour(getComputedStyle(root).getPropertyValue("--st-background-color") || "#fff");
    root.dataset.theme = luminance(paper) < 0.3 ? "dark" : "light";
  }

  function show(state) {
    const frame = data.frames[state.step];
    const until = data.frames.length > 1 ? frame.step : Infinity;
    title.hidden = !data.title;
    setText(title, data.title ?? "");
    root.dataset.step = String(Number.isFinite(until) ? until : data.step);
    transport.update(state, data);
    chart.draw({ ...data, playing: state.playing }, until);
    table.draw(data, until);
    view.draw(data, frame, data.strips);
    player.update(state);
  }

  store.subscribe(show);
  const watch = new ResizeObserver(() => show(store.get()));
  watch.observe(root);
  const leave = () => {
    if (root.isConnected) return;
    player.stop();
    watch.disconnect();
    silence();
  };
  return {
    refresh(next) {
      readTheme();
      const same = next.run === data.run && next.frames.length === data.frames.length;
      data = next;
      if (!same) store.set({ playing: false, step: last() });
      show(store.get());
    },
    remove() {
      root.remove();
      leave();
    },
    leave,
  };
}

export default function ({ parentElement, data }) {
  if (!(data instanceof Uint8Array)) return undefined;
  const run = open(data);
  const language = JSON.stringify(run.words);
  let stage = instances.get(parentElement);
  if (!stage || stage.language !== language) {
    stage?.remove();
    stage = { ...createStage(parentElement, run), language };
    instances.set(parentElement, stage);
  }
  stage.refresh(run);
  return () => setTimeout(stage.leave, 0);
}
