// The stage: receives a trace once and plays it. Streamlit calls the default export again on every rerun.

import { createBoard } from "./board.js";
import { createChain } from "./chain.js";
import { createDiagram } from "./diagram.js";
import { createDistribution } from "./distribution.js";
import { choice, element } from "./dom.js";
import { createAddress, listen } from "./keyboard.js";
import { createLayers } from "./layers.js";
import { createLinks } from "./links.js";
import { createPanel, createTable } from "./panel.js";
import { createPlayer } from "./player.js";
import { Positions, positionActions } from "./positions.js";
import { Trace, readTrace } from "./reader.js";
import { createScales, luminance, parseColour } from "./scales.js";
import { SPEEDS, createActions, createStore, fit } from "./store.js";
import { createStrips, createTip, icon } from "./strips.js";
import { columnWidths, createTimeline, createTransport } from "./timeline.js";
import { createWhatIf } from "./whatif.js";

const instances = new WeakMap();
// Where a learner is: each stage has some of these.
const PLACE = ["step", "key", "head", "unit", "cut", "symbol", "layer"];
// Where the learner was on each page, while the document lives: who comes back through the frame's links goes on there.
const places = new Map();

const open = (data) => readTrace(data, (header, block) => (header.views ? new Positions(header, block) : new Trace(header, block)));

function createStage(host, first, remembered, went = false) {
  // A stage beside the main one of a page keeps its place to itself; `without` names parts that it does not show.
  const { mini, aside, words, views: asked } = first.header;
  const shown = ["stage", mini && "mini", ...(first.header.without ?? []).map((part) => `without-${part}`)].filter(Boolean);
  const root = element("div", { class: shown.join(" "), role: "group", "aria-label": words.stage });
  host.append(root);
  let trace = first;
  let scales = null;
  let theme = "";
  const begin = { ...first.header.start, ...remembered };
  const path = window.location.pathname;
  const store = createStore({ ...fit(begin, first), hover: null, playing: false, speed: 1, view: "changed" });
  const actions = { ...createActions(store, () => trace), ...(asked ? positionActions(store, () => trace) : {}) };
  const links = createLinks(root);
  const context = { store, actions, links, words, icon, tip: createTip(root), scales: () => scales, send: () => {}, trace: () => trace, colours };
  const layout = root.appendChild(element("div", { class: ["layout", asked && "board", first.header.wide && "wide"].filter(Boolean).join(" ") }));
  const areas = new Map();
  const area = (name) => {
    if (!areas.has(name)) areas.set(name, layout.appendChild(element("div", { class: `area ${name}` })));
    return areas.get(name);
  };
  const ofCell = (create, name) => (mini || asked ? null : create(area(name), context));

  const chain = first.header.chain && !mini ? createChain(area("picture"), context) : null;
  const layers = first.header.chain && !mini ? createLayers(area("picture"), context) : null;
  const diagram = asked ? null : createDiagram(area("picture"), context);
  const time = area("time");
  const transport = createTransport(time, context, SPEEDS);
  const views = [diagram, transport].filter(Boolean);
  let compare = null;
  if (!mini) {
    const texts = [["changed", words.changed], ["baseline", words.baseline], ["difference", words.difference]];
    compare = choice(words.compare, texts, actions.show);
    compare.node.classList.add("compare");
    transport.space.after(compare.node);
  }
  const timeline = createTimeline(time, context);
  const strips = ofCell(createStrips, "time");
  const panel = ofCell(createPanel, "side");
  const distribution = ofCell(createDistribution, "next");
  const whatIf = ofCell(createWhatIf, "what");
  const board = asked ? createBoard(asked, area, context) : [];
  views.push(...[chain, layers, timeline, strips, panel, distribution, whatIf, ...board].filter(Boolean));
  views.push(createTable(root, context));
  const player = createPlayer(root, store, () => trace, actions, mini);
  const address = createAddress(root);
  let moved = Boolean(remembered) || went;
  let loading = false; // between two traces: the views still hold the old one
  let { move } = first.header.start;
  const place = () => {
    const { step, unit, symbol, layer } = store.get();
    if (asked) return trace.fit(store.get());
    return { step, unit, symbol, ...(trace.layers.length > 1 ? { layer } : {}) };
  };
  const silence = mini ? () => {} : listen(root, actions, () => store.get().playing, !aside);
  if (first.header.link) {
    root.append(element("a", { class: "cover", href: first.header.link, target: "_self", "aria-label": words.mini_label }));
  }

  /** What a map is drawn with beside its scale. */
  function colours() {
    const style = getComputedStyle(root);
    const own = (name) => style.getPropertyValue(name).trim();
    const texts = [own("--ink"), own("--paper")];
    return { line: own("--hatch"), texts, parsed: texts.map(parseColour), face: own("--face") };
  }

  /** The colours that the page has now; made anew only when the theme has changed. */
  function readTheme() {
    const style = getComputedStyle(root);
    const dark = luminance(parseColour(style.getPropertyValue("--st-background-color") || "#fff")) < 0.3;
    root.dataset.theme = dark ? "dark" : "light";
    const colourOf = (name) => parseColour(getComputedStyle(root).getPropertyValue(name));
    const now = `${root.dataset.theme} ${colourOf("--paper")}`;
    if (now !== theme || scales?.trace !== trace) scales = { ...createScales(trace, colourOf), trace };
    theme = now;
  }

  function resize() {
    const room = (strips?.node.querySelector(".strip-box") ?? timeline.node).clientWidth;
    if (!room) return;
    const widths = columnWidths(room, trace.steps);
    timeline.resize(widths.token);
    strips?.resize(widths.strip);
    panel?.resize();
    for (const view of board) view.resize?.();
  }

  // What has to be measured is measured first, while nothing has been changed: the browser lays the page out once a step.
  function show(state) {
    for (const view of views) view.keepInView?.(state);
    for (const view of views) view.update(state);
    compare?.show(state.view);
    player.update(state);
  }

  store.subscribe((state, previous) => {
    if (state.hover !== previous.hover || state.symbol !== previous.symbol) links.show(state.hover, state.symbol);
    const elsewhere = PLACE.some((name) => state[name] !== previous[name]);
    if (!loading && state.layer !== previous.layer) enter(state.layer);
    if (!loading && (elsewhere || ["playing", "speed", "view", "peek", "mean"].some((name) => state[name] !== previous[name]))) show(state);
    if (elsewhere && !mini && !aside) {
      moved = true;
      places.set(path, place());
      address.write(place());
    }
  });

  /** Look at another layer: all that is drawn of a cell is drawn of that one. */
  function enter(layer) {
    trace.layer = layer;
    for (const each of views) each.load?.(trace);
    resize();
    links.show(null, store.get().symbol);
    links.refresh();
  }

  let width = 0;
  const watch = new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    resize();
    show(store.get());
  });

  function load(next, wanted) {
    trace = next;
    readTheme();
    const view = trace.hasBaseline ? store.get().view : "changed";
    loading = true;
    const fitting = fit(wanted, trace);
    trace.layer = fitting.layer ?? 0;
    const lower = store.get().layer ? { layer: trace.layer } : {}; // the layer before may not be there any more
    store.set({ ...fitting, ...lower, view });
    loading = false;
    for (const each of views) each.load?.(trace);
    if (compare) compare.node.hidden = !trace.hasBaseline;
    root.classList.toggle("changed", trace.hasBaseline);
    width = root.clientWidth;
    resize();
    show(store.get());
    links.show(null, store.get().symbol);
    links.refresh();
  }

  // The faces of the formulas come late, and change their widths.
  const refit = () => panel?.resize();
  readTheme();
  load(first, begin);
  watch.observe(root);
  document.fonts.addEventListener("loadingdone", refit);
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (mini && !calm) actions.play(true);

  function leave() {
    // Streamlit may call this for a run that a newer one has overtaken: then the stage is still on the page.
    if (root.isConnected) return;
    player.stop();
    address.stop();
    silence();
    document.fonts.removeEventListener("loadingdone", refit);
    watch.disconnect();
    for (const view of views) view.destroy?.();
  }

  return {
    /** A rerun: a new trace, or the same one in perhaps another theme. */
    refresh(next, send) {
      context.send = send;
      const { start } = next.header;
      const sent = start.move !== move; // a followed link leads to a place of its own
      move = start.move;
      if (next.key !== trace.key) {
        load(next, sent ? start : store.get());
        if (moved) address.restore(place());
        return undefined;
      }
      if (sent) store.set(fit(start, trace));
      for (const view of views) view.settle?.();
      if (moved) address.restore(place());
      const before = scales;
      readTheme();
      if (scales !== before) show(store.get());
      return undefined;
    },
    /** Take the stage off the page; returns where the learner was, whether they had moved there, and after which link. */
    remove() {
      root.remove();
      leave();
      return { place: place(), moved, move };
    },
    leave,
  };
}

export default function ({ parentElement, data, setTriggerValue }) {
  if (!(data instanceof Uint8Array)) return undefined;
  const trace = open(data);
  const made = JSON.stringify([trace.header.words, trace.header.views]);
  let stage = instances.get(parentElement);
  if (!stage || stage.made !== made) {
    // Another language or other views: every text and view is new, the learner's place is kept.
    const last = stage?.remove();
    if (last?.move === trace.header.start.move) Object.assign(trace.header.start, last?.place);
    const asked = new URLSearchParams(window.location.search);
    const told = Boolean(stage) || trace.header.mini || trace.header.aside || PLACE.some((name) => asked.has(name));
    stage = { ...createStage(parentElement, trace, told ? null : places.get(window.location.pathname), last?.moved), made };
    instances.set(parentElement, stage);
    document.documentElement.lang = trace.header.words.html_lang; // for screen readers, hyphenation and the browser's own glyphs
  }
  stage.refresh(trace, (name, value) => setTriggerValue(name, value));
  return () => setTimeout(stage.leave, 0);
}
