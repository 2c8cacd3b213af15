// The stage of the lesson on tokens: a text on its way into a model, split, numbered and cut into minibatches. Everything that
// can be looked at comes at once (each way to cut, each offset); Streamlit calls the default export again on every rerun.

import { createBatchPanel } from "./batchpanel.js";
import { element, sentence, setText } from "./dom.js";
import { createAddress, listen } from "./keyboard.js";
import { clamp } from "./numbers.js";
import { createPlayer } from "./player.js";
import { luminance, parseColour } from "./scales.js";
import { SPEEDS, createStore } from "./store.js";
import { icon } from "./strips.js";
import { createTextBoard } from "./textboard.js";
import { createTokenPanel } from "./tokenpanel.js";

const instances = new WeakMap();
const VIEWS = ["split", "number", "batch"];
const PLACE = ["view", "way", "offset", "step", "batch"];

/** What the stage shows, and what can be asked of it. */
function reader(data) {
  const offsets = (way) => data.ways[way].length;
  const cuts = ({ way, offset }) => data.ways[way][clamp(offset, 0, Math.max(offsets(way) - 1, 0))] ?? [];
  return {
    ...data,
    offsets,
    cuts,
    /** The state, kept where it is in range and clamped where it is not. */
    fit(state) {
      const whole = (value, count) => clamp(Math.trunc(Number(value)) || 0, 0, Math.max(count - 1, 0));
      const view = VIEWS.includes(state.view) ? state.view : VIEWS[0];
      const way = data.ways[state.way] ? state.way : "sequential";
      const offset = whole(state.offset, offsets(way));
      const batches = cuts({ way, offset }).length;
      return { view, way, offset, step: whole(state.step, data.tokens.length), batch: whole(state.batch, batches) };
    },
    /** Which block has the token at a place as an input: {batch, row} or null. */
    blockAt(state, place) {
      const { steps } = data.plan;
      for (const [batch, rows] of cuts(state).entries()) {
        const row = rows.findIndex((start) => start <= place && place < start + steps);
        if (row >= 0) return { batch, row };
      }
      return null;
    },
  };
}

function createPipeline(parent, { words, actions }) {
  const buttons = VIEWS.map((view, at) => {
    const says = element("span", { class: "stage-says" });
    const name = element("strong", { text: `${at + 1}  ${{ split: words.split, number: words.number, batch: words.batch }[view]}` });
    const button = element("button", { type: "button", class: "pipe", "data-view": view, onclick: () => actions.show(view) }, name, says);
    return { view, says, button };
  });
  parent.append(element("div", { class: "pipeline", role: "group", "aria-label": words.pipeline }, ...buttons.map(({ button }) => button)));
  return {
    update(state, text) {
      const { totals, plan } = text;
      const told = {
        split: sentence(words.split_says, totals),
        number: sentence(words.number_says, totals),
        batch: sentence(words.batch_says, { count: text.cuts(state).length, rows: plan.batch, steps: plan.steps }),
      };
      for (const { view, says, button } of buttons) {
        button.setAttribute("aria-pressed", String(view === state.view));
        setText(says, told[view]);
      }
    },
  };
}

function createTransport(parent, { words, actions, store }, count) {
  const round = (name, label, path, press) =>
    element("button", { type: "button", class: `round ${name}`, "aria-label": label, title: label, onclick: press }, icon(path));
  const signs = [icon("M5 3.5v13l11-6.5z"), icon("M5 3.5h3.6v13H5zM11.4 3.5H15v13h-3.6z")];
  const play = round("play", words.play, "M5 3.5v13l11-6.5z", () => actions.play(!store.get().playing));
  const back = round("back", words.back, "M13.5 4v12L6 10z M4 4h1.8v12H4z", () => actions.moveBy(-1));
  const forward = round("forward", words.forward, "M6.5 4v12l7.5-6z M14.2 4H16v12h-1.8z", () => actions.moveBy(1));
  const position = element("span", { class: "position" });
  const speed = element("select", { class: "speed", "aria-label": words.speed, title: words.speed });
  for (const times of SPEEDS) speed.append(element("option", { value: times, text: `${times}\u00d7` }));
  speed.onchange = () => actions.faster(Number(speed.value));
  const says = element("span", { class: "unit", "data-role": "says" });
  parent.append(element("div", { class: "transport", role: "toolbar", "aria-label": words.controls }, back, play, forward, position, speed, says));
  return {
    update(state) {
      const [at, all] = count(state);
      setText(position, `${Math.min(at + 1, all)} / ${all}`);
      setText(says, state.view === "batch" ? words.minibatch : words.token);
      speed.value = String(state.speed);
      const label = state.playing ? words.pause : words.play;
      if (play.title !== label) {
        play.title = label;
        play.setAttribute("aria-label", label);
        play.replaceChildren(signs[Number(state.playing)]);
      }
      back.setAttribute("aria-disabled", String(at === 0));
      forward.setAttribute("aria-disabled", String(at >= all - 1));
      play.disabled = all < 2;
    },
  };
}

function createStage(host, first) {
  const { words } = first;
  let text = first;
  let { move } = first.start;
  let moved = false;
  const root = element("div", { class: "stage text-stage", role: "group", "aria-label": words.stage });
  host.append(root);
  const store = createStore({ ...text.fit(first.start), playing: false, speed: 1 });
  const part = () => (store.get().view === "batch" ? "batch" : "step");
  const count = (state) => (state.view === "batch" ? [state.batch, text.cuts(state).length] : [state.step, text.tokens.length]);
  const put = (place) => store.set(text.fit({ ...store.get(), ...place }));
  const actions = {
    put,
    show: (view) => put({ view }),
    moveTo: (at) => put({ [part()]: at }),
    moveBy: (by) => put({ [part()]: count(store.get())[0] + by }),
    first: () => put({ [part()]: 0 }),
    last: () => put({ [part()]: count(store.get())[1] - 1 }),
    unitBy: (by) => put(store.get().view === "batch" ? { offset: store.get().offset - by } : { step: store.get().step + 10 * by }),
    faster: (speed) => store.set({ speed }),
    play(playing) {
      const [at, all] = count(store.get());
      if (playing && at >= all - 1) put({ [part()]: 0 });
      store.set({ playing: playing && all > 1 });
    },
    /** Look at a token: in the third stage, at the minibatch in which it is an input. */
    look(step) {
      const state = store.get();
      const block = state.view === "batch" ? text.blockAt(state, step) : null;
      put({ step, ...(block ? { batch: block.batch } : {}) });
    },
  };
  const context = { words, actions, store, text: () => text };
  const pipeline = createPipeline(root, context);
  const layout = root.appendChild(element("div", { class: "layout" }));
  const picture = layout.appendChild(element("div", { class: "area picture" }));
  const side = layout.appendChild(element("div", { class: "area side" }));
  const board = createTextBoard(picture, context);
  const transport = createTransport(picture, context, count);
  const panels = [createTokenPanel(side, context), createBatchPanel(side, context)];
  const views = [pipeline, board, transport, ...panels];
  // The clock of Play counts steps; here they are tokens or minibatches.
  const clock = { get: () => ({ ...store.get(), step: count(store.get())[0] }), set: store.set };
  const player = createPlayer(root, clock, () => ({ steps: count(store.get())[1] }), actions, false);
  const address = createAddress(root);
  const silence = listen(root, actions, () => store.get().playing);
  const place = () => {
    const state = store.get();
    return Object.fromEntries(PLACE.map((name) => [name, state[name]]));
  };
  const show = (state) => {
    root.dataset.view = state.view;
    for (const view of views) view.update(state, text);
    player.update(state);
  };
  store.subscribe((state, previous) => {
    show(state);
    if (PLACE.some((name) => state[name] !== previous[name])) {
      moved = true;
      address.write(place());
    }
  });

  function readTheme() {
    const paper = parseColour(getComputedStyle(root).getPropertyValue("--st-background-color") || "#fff");
    root.dataset.theme = luminance(paper) < 0.3 ? "dark" : "light";
  }

  function load(next) {
    text = next;
    for (const view of views) view.load?.(text);
    show(store.get());
  }

  readTheme();
  load(first);
  const leave = () => {
    if (root.isConnected) return;
    player.stop();
    address.stop();
    silence();
  };
  return {
    refresh(next) {
      readTheme();
      const led = next.start.move !== move;
      move = next.start.move;
      if (next.key !== text.key) {
        text = next; // its places decide what is in range
        const before = { ...store.get(), playing: false };
        store.set({ ...before, ...text.fit(led ? next.start : before) });
        load(next);
      } else if (led) store.set(text.fit(next.start));
      if (moved) address.restore(place());
    },
    remove() {
      root.remove();
      leave();
      return place();
    },
    leave,
  };
}

export default function ({ parentElement, data }) {
  if (!data?.tokens) return undefined;
  const text = reader(data);
  const language = JSON.stringify(data.words);
  let stage = instances.get(parentElement);
  if (!stage || stage.language !== language) {
    if (stage) Object.assign(text.start, stage.remove());
    stage = { ...createStage(parentElement, text), language };
    instances.set(parentElement, stage);
  }
  stage.refresh(text);
  return () => setTimeout(stage.leave, 0);
}
