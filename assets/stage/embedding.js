// The stage of the lesson on embeddings: a token picks its row of a matrix, and the rows are points of a map. Both states of the
// matrix, before and after training, come at once.

import { choice, element, sentence, setText } from "./dom.js";
import { createEmbeddingMap } from "./embeddingmap.js";
import { createAddress, listen } from "./keyboard.js";
import { createLookup } from "./lookup.js";
import { clamp, formatNumber } from "./numbers.js";
import { createPlayer } from "./player.js";
import { readTrace } from "./reader.js";
import { luminance, parseColour } from "./scales.js";
import { SPEEDS, createStore } from "./store.js";
import { icon } from "./strips.js";
import { hue, tokenParts } from "./textboard.js";
import { keepInView } from "./timeline.js";

const instances = new WeakMap();
const STATES = ["before", "after"];
const PLACE = ["state", "dims", "step", "unit"];

function reader(bytes) {
  return readTrace(bytes, (header, block) => {
    const at = new Map(header.listed.map((id, place) => [id, place]));
    const row = (name, index) => {
      const { offset, shape } = header.arrays[name];
      return block.subarray(offset + index * shape[1], offset + (index + 1) * shape[1]);
    };
    return {
      header,
      key: header.key,
      row,
      placeOf: (id) => at.get(id) ?? -1,
      nameOf: (id) => (at.has(id) ? header.names[at.get(id)] : header.others[id]),
      fit(state) {
        const whole = (value, count) => clamp(Math.trunc(Number(value)) || 0, 0, count - 1);
        return {
          state: STATES.includes(state.state) ? state.state : "after",
          dims: String(state.dims) === "3" ? "3" : "2",
          step: whole(state.step, header.tokens.length),
          unit: whole(state.unit, header.width),
        };
      },
    };
  });
}

function createTokenRow(parent, { words, actions, store }) {
  const row = element("div", { class: "chips", role: "slider", tabindex: "0", dir: "ltr", "aria-label": words.timeline, "aria-valuemin": "1" });
  const box = element("div", { class: "chip-box" }, row);
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
  const states = choice(words.training, [["before", words.before_training], ["after", words.after_training]], (state) => actions.put({ state }));
  const bar = element("div", { class: "transport", role: "toolbar", "aria-label": words.controls }, back, play, forward, position, speed, element("span", { class: "space" }), states.node);
  parent.append(box, bar);
  let cells = [];
  row.onpointerdown = (event) => {
    const cell = event.composedPath()[0].closest?.(".tok");
    if (cell) actions.moveTo(Number(cell.dataset.at));
  };
  return {
    load({ header }) {
      cells = header.tokens.map((token, at) => {
        const cell = element("span", { class: "tok", "data-at": at }, ...tokenParts(token));
        cell.style.setProperty("--hue", hue(header.ids[at]));
        return cell;
      });
      row.replaceChildren(...cells);
      row.setAttribute("aria-valuemax", String(cells.length));
    },
    update(state, { header }) {
      row.querySelector(".current")?.classList.remove("current");
      const cell = cells[state.step];
      cell.classList.add("current");
      keepInView(box, cell.offsetLeft - row.offsetLeft, cell.offsetLeft - row.offsetLeft + cell.offsetWidth);
      row.setAttribute("aria-valuenow", String(state.step + 1));
      row.setAttribute("aria-valuetext", sentence(words.token_at, { step: state.step + 1, token: header.tokens[state.step], id: header.ids[state.step] }));
      setText(position, `${state.step + 1} / ${cells.length}`);
      states.show(state.state);
      const label = state.playing ? words.pause : words.play;
      if (play.title !== label) {
        play.title = label;
        play.setAttribute("aria-label", label);
        play.replaceChildren(signs[Number(state.playing)]);
      }
      speed.value = String(state.speed);
      back.setAttribute("aria-disabled", String(state.step === 0));
      forward.setAttribute("aria-disabled", String(state.step >= cells.length - 1));
      play.disabled = cells.length < 2;
    },
  };
}

function createNeighbours(parent, { words, actions }) {
  const title = element("h3");
  const list = element("ol", { class: "near" });
  const facts = element("dl", { class: "facts" });
  const nearest = element("div", {}, title, list, element("p", { class: "note", text: words.near_note }));
  parent.append(element("section", { class: "near-panel" }, nearest, element("div", {}, element("h3", { text: words.effective }), facts)));
  const fact = (name, value, key) => [element("dt", { text: name }), element("dd", { text: value, "data-fact": key })];
  return {
    update(state, data) {
      const { header } = data;
      const place = state.picked ?? data.placeOf(header.ids[state.step]);
      const near = data.row(`${state.state}/near`, place);
      const cosines = data.row(`${state.state}/cosine`, place);
      const name = element("span", { class: "tok" }, ...tokenParts(header.names[place]));
      name.style.setProperty("--hue", hue(header.listed[place]));
      title.replaceChildren(words.nearest, " ", name);
      list.replaceChildren(
        ...Array.from(near, (id, at) => {
          const bar = element("span", { class: "cosine-bar" });
          bar.style.width = `${100 * Math.max(0, cosines[at])}%`;
          const token = element("span", { class: "tok" }, ...tokenParts(data.nameOf(id)));
          token.style.setProperty("--hue", hue(id));
          const to = data.placeOf(id);
          return element(
            "li",
            { "data-id": id, class: to >= 0 ? "can" : "", onclick: to >= 0 ? () => actions.pick(to) : null },
            token,
            element("span", { class: "track" }, bar),
            element("span", { class: "cosine", text: formatNumber(cosines[at], 2) }),
          );
        }),
      );
      const shown = (value) => formatNumber(value, 1);
      facts.replaceChildren(
        ...fact(words.one_hot_rows, shown(header.effective.one_hot), "one_hot"),
        ...fact(words.before_training, shown(header.effective.before), "before"),
        ...fact(words.after_training, shown(header.effective.after), "after"),
      );
    },
  };
}

function createStage(host, first) {
  const { words } = first.header;
  let data = first;
  let { move } = first.header.start;
  let moved = false;
  const root = element("div", { class: "stage embedding-stage", role: "group", "aria-label": words.stage });
  host.append(root);
  const store = createStore({ ...data.fit(first.header.start), picked: null, playing: false, speed: 1 });
  const put = (place) => store.set({ ...data.fit({ ...store.get(), ...place }), ...("step" in place ? { picked: null } : {}) });
  const steps = () => data.header.tokens.length;
  const actions = {
    put,
    pick: (picked) => store.set({ picked }),
    moveTo: (step) => put({ step }),
    moveBy: (by) => put({ step: store.get().step + by }),
    first: () => put({ step: 0 }),
    last: () => put({ step: steps() - 1 }),
    unitBy: (by) => put({ unit: (store.get().unit + by + data.header.width) % data.header.width }),
    faster: (speed) => store.set({ speed }),
    play(playing) {
      if (playing && store.get().step >= steps() - 1) put({ step: 0 });
      store.set({ playing: playing && steps() > 1 });
    },
  };
  const colour = (name) => parseColour(getComputedStyle(root).getPropertyValue(name));
  const context = { words, actions, store, colour, root };
  const time = root.appendChild(element("div", { class: "area" }));
  const layout = root.appendChild(element("div", { class: "layout" }));
  const area = (name) => layout.appendChild(element("div", { class: `area ${name}` }));
  const row = createTokenRow(time, context);
  const picture = area("picture");
  const side = area("side");
  const lookup = createLookup(picture, context);
  const map = createEmbeddingMap(side, context);
  const near = createNeighbours(area("what"), context);
  const views = [row, lookup, map, near];
  const player = createPlayer(root, store, () => ({ steps: steps() }), actions, false);
  const address = createAddress(root);
  const silence = listen(root, actions, () => store.get().playing);
  const place = () => Object.fromEntries(PLACE.map((name) => [name, store.get()[name]]));
  const show = (state) => {
    for (const view of views) view.update(state, data);
    player.update(state);
  };
  store.subscribe((state, previous) => {
    show(state);
    if (PLACE.some((name) => state[name] !== previous[name])) {
      moved = true;
      address.write(place());
    }
  });
  let theme = "";
  function readTheme() {
    const paper = parseColour(getComputedStyle(root).getPropertyValue("--st-background-color") || "#fff");
    root.dataset.theme = luminance(paper) < 0.3 ? "dark" : "light";
    const changed = theme !== `${root.dataset.theme}${paper}`;
    theme = `${root.dataset.theme}${paper}`;
    return changed;
  }
  function load(next) {
    data = next;
    for (const view of views) view.load?.(data);
    show(store.get());
  }
  let width = 0;
  const watch = new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    for (const view of views) view.resize?.();
    show(store.get());
  });
  readTheme();
  load(first);
  watch.observe(root);
  const leave = () => {
    if (root.isConnected) return;
    player.stop();
    address.stop();
    silence();
    watch.disconnect();
  };
  return {
    refresh(next) {
      const repaint = readTheme();
      const led = next.header.start.move !== move;
      move = next.header.start.move;
      if (next.key !== data.key) {
        data = next;
        const before = { ...store.get(), playing: false, picked: null };
        for (const view of views) view.load?.(data);
        store.set({ ...before, ...data.fit(led ? next.header.start : before) });
        show(store.get());
      } else if (led) store.set({ ...data.fit(next.header.start), picked: null });
      else if (repaint) {
        for (const view of views) view.resize?.();
        show(store.get());
      }
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
  if (!(data instanceof Uint8Array)) return undefined;
  const read = reader(data);
  const language = JSON.stringify(read.header.words);
  let stage = instances.get(parentElement);
  if (!stage || stage.language !== language) {
    if (stage) Object.assign(read.header.start, stage.remove());
    stage = { ...createStage(parentElement, read), language };
    instances.set(parentElement, stage);
  }
  stage.refresh(read);
  return () => setTimeout(stage.leave, 0);
}
