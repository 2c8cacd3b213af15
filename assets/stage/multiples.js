// All heads side by side: a small map each, on one scale. A click chooses the head; its switches take it out or keep it alone.

import { createAsking } from "./asking.js";
import { element, sentence, setText } from "./dom.js";
import { arrayOf } from "./matrix.js";
import { mapAxes, paintMap } from "./map.js";

const MOST = 132; // px of a small map

export function createMultiples(parent, context, spec = {}) {
  const { store, actions, words } = context;
  const heading = element("h3", { text: words.all_heads });
  const grid = element("div", { class: "multiples", role: "group", "aria-label": words.all_heads });
  const back = element("button", { type: "button", class: "reset", text: words.heads_back, hidden: true, onclick: () => tell([]) });
  const says = element("p", { class: "note" });
  const node = element("section", { class: "heads" }, element("div", { class: "heads-top" }, heading, back), grid, says);
  parent.append(node);
  const { ask, settle } = createAsking(node, context);
  let trace = null;
  let cells = [];
  let drawn = [];

  function tell(removed) {
    const heads = [...removed].sort((a, b) => a - b);
    const rest = trace.header.interventions.filter((change) => !change.heads);
    const change = { symbol: trace.header.heads_symbol, value: 0, from: 0, to: null, units: null, heads };
    ask(trace, heads.length ? [...rest, change] : rest);
  }

  function build(head) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const label = sentence(words.head, { head: head + 1 });
    const choose = element("button", { type: "button", class: "multiple", "aria-pressed": "false", "aria-label": label, onclick: () => actions.pick({ head }) });
    choose.append(canvas, element("span", { class: "number", text: label }));
    const box = element("div", { class: "head-box", "data-head": head }, choose);
    let off = null;
    let only = null;
    if (trace.header.heads_symbol) {
      off = element("button", { type: "button", class: "switch", "aria-pressed": "false", text: words.head_out, title: words.head_out_long, onclick: () => {
        const removed = trace.removed();
        if (!removed.delete(head)) removed.add(head);
        tell(removed);
      } });
      only = element("button", { type: "button", class: "switch", "aria-pressed": "false", text: words.head_only, title: words.head_only_long, onclick: () => tell(cells.map((_, at) => at).filter((at) => at !== head)) });
      box.append(element("div", { class: "switches" }, off, only));
    }
    return { box, choose, canvas, off, only };
  }

  return {
    node,
    settle,
    load(next) {
      trace = next;
      drawn = [];
      settle();
      cells = Array.from({ length: trace.header.sizes.N ?? 1 }, (_, head) => build(head));
      grid.replaceChildren(...cells.map(({ box }) => box));
      const removed = trace.removed();
      cells.forEach(({ box, off, only }, head) => {
        box.classList.toggle("out", removed.has(head));
        off?.setAttribute("aria-pressed", String(removed.has(head)));
        only?.setAttribute("aria-pressed", String(cells.length > 1 && removed.size === cells.length - 1 && !removed.has(head)));
      });
      back.hidden = !removed.size;
    },
    resize() {
      drawn = [];
    },
    update(state) {
      const own = arrayOf(spec, trace, state);
      const name = trace.parts(own).has("head") ? own : trace.header.map;
      const wanted = [name, state.view, context.scales(), grid.clientWidth, trace];
      if (wanted.some((part, at) => part !== drawn[at]) && grid.clientWidth) {
        drawn = wanted;
        const axes = mapAxes(trace, name);
        const columns = grid.clientWidth < 420 ? Math.min(cells.length, 4) : Math.min(cells.length, 8);
        grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, ${MOST}px))`;
        const width = Math.min((grid.clientWidth - (columns - 1) * 10) / columns, MOST);
        const height = Math.max(12, Math.min(width, (width * axes.rows.count) / axes.columns.count));
        const ramp = state.view === "difference" ? context.scales().difference(name) : context.scales().of(name);
        cells.forEach(({ canvas }, head) => {
          const here = { ...state, head };
          const value = (place) => trace.shown(name, place, state.view);
          paintMap(canvas, { trace, name, state: here, value, ramp, width, height, colours: context.colours() });
        });
      }
      cells.forEach(({ choose }, head) => choose.setAttribute("aria-pressed", String(head === state.head)));
      setText(says, sentence(words.heads_show, { name: trace.header.symbols[name]?.name ?? name }));
    },
  };
}
