// The text as a row of tokens, one a step. Drag over it to scrub; it is also the slider for assistive technology.

import { element, sentence, setText } from "./dom.js";
import { clamp } from "./numbers.js";

const NARROWEST = 11; // px in which one character can still be read
const WIDEST = 34;

/** Widths of the columns: of the strips (down to 4 px, then they scroll) and of the tokens (readable, else they scroll). */
export function columnWidths(available, steps) {
  const strip = clamp(available / steps, 4, WIDEST);
  return { strip, token: Math.max(strip, NARROWEST) };
}

/** Scroll a box so that the part from `start` to `end` is in view, with room on both sides when it has to move. */
export function keepInView(box, start, end) {
  const room = Math.min(box.clientWidth * 0.25, 4 * (end - start));
  if (start < box.scrollLeft || end > box.scrollLeft + box.clientWidth) {
    const forward = end > box.scrollLeft + box.clientWidth;
    box.scrollLeft = forward ? end - box.clientWidth + room : start - room;
  }
}

/** Call `move(x, y)` with the place inside `node` while it is pressed and dragged, by mouse, pen or finger. */
export function onDrag(node, start, move = start) {
  node.onpointerdown = (event) => {
    if (event.button) return;
    node.setPointerCapture(event.pointerId);
    const at = (now) => {
      const box = node.getBoundingClientRect();
      return [now.clientX - box.left, now.clientY - box.top];
    };
    start(...at(event));
    node.onpointermove = (now) => move(...at(now));
    node.onpointerup = node.onpointercancel = node.onlostpointercapture = () => {
      node.onpointermove = node.onpointerup = node.onpointercancel = node.onlostpointercapture = null;
    };
  };
}

const BLANK = "\u2423";
const SIGNS = new Set(["\u21b5", "\u21e5", "\u2205"]);

/** "blank", "sign" for the signs of other unseen characters, "long" for several characters as one sees them, else "". */
export function tokenKind(token) {
  if (token === BLANK) return "blank";
  if (SIGNS.has(token)) return "sign";
  if ([...token].length === 1) return "";
  return [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(token)].length > 1 ? "long" : "";
}

/** The cell at a distance from the row's start: cells may differ in width, so the place is searched by halves. */
export function cellAt(cells, x) {
  let [low, high] = [0, cells.length - 1];
  const origin = cells[0].offsetLeft;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (cells[middle].offsetLeft - origin <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

export function createTimeline(parent, context) {
  const { actions, words } = context;
  const row = element("div", {
    class: "tokens",
    role: "slider",
    tabindex: "0",
    dir: "ltr",
    "aria-label": words.timeline,
    "aria-valuemin": "1",
  });
  const box = element("div", { class: "token-box" }, row);
  parent.append(element("div", { class: "token-row" }, box));
  let trace = null;
  let cells = [];
  let current = -1;

  onDrag(row, (x) => actions.moveTo(cellAt(cells, x)));

  function keepStep(step) {
    const cell = cells[step];
    if (cell) keepInView(box, cell.offsetLeft - row.offsetLeft, cell.offsetLeft - row.offsetLeft + cell.offsetWidth);
  }

  return {
    node: box,
    load(next) {
      trace = next;
      current = -1;
      cells = trace.header.tokens.map((token, step) => {
        const cell = element("span", { class: `token ${tokenKind(token)}`, text: token });
        if (trace.header.unknown[step]) {
          cell.classList.add("unknown");
          cell.title = sentence(words.unknown, { token });
        }
        return cell;
      });
      row.replaceChildren(...cells);
      row.setAttribute("aria-valuemax", String(trace.steps));
    },
    /** Set the width of a token's cell in pixels. */
    resize(token) {
      row.style.setProperty("--column", `${token}px`);
      keepStep(current);
    },
    keepInView({ step }) {
      if (step !== current) keepStep(step);
    },
    update({ step }) {
      if (step === current) return;
      cells[current]?.classList.remove("current");
      current = step;
      cells[step].classList.add("current");
      row.setAttribute("aria-valuenow", String(step + 1));
      row.setAttribute(
        "aria-valuetext",
        sentence(words.position, { step: step + 1, steps: trace.steps, token: trace.header.tokens[step] }),
      );
    },
  };
}

/** Play, step back and forward, position and speed. */
export function createTransport(parent, context, speeds) {
  const { actions, words, store } = context;
  const button = (name, label, sign, press) =>
    element("button", { type: "button", class: `round ${name}`, "aria-label": label, title: label, onclick: press }, sign);
  const icon = (path) => context.icon(path);
  const playSign = icon("M5 3.5v13l11-6.5z");
  const pauseSign = icon("M5 3.5h3.6v13H5zM11.4 3.5H15v13h-3.6z");
  const play = button("play", words.play, playSign, () => actions.play(!store.get().playing));
  const back = button("back", words.back, icon("M13.5 4v12L6 10z M4 4h1.8v12H4z"), () => actions.moveBy(-1));
  const forward = button("forward", words.forward, icon("M6.5 4v12l7.5-6z M14.2 4H16v12h-1.8z"), () => actions.moveBy(1));
  const position = element("span", { class: "position" });
  const select = element("select", { class: "speed", "aria-label": words.speed, title: words.speed });
  for (const speed of speeds) select.append(element("option", { value: speed, text: `${speed}\u00d7` }));
  select.onchange = () => actions.faster(Number(select.value));
  const unit = element("span", { class: "unit" });
  // With all positions at once these two go through the heads; units are chosen in the maps.
  const turn = (by) => (trace.parts ? actions.headBy(by) : actions.unitBy(by));
  const down = button("unit-down", words.unit_down, icon("M4 12.5 10 6l6 6.5z"), () => turn(-1));
  const up = button("unit-up", words.unit_up, icon("M4 7.5 10 14l6-6.5z"), () => turn(1));
  const space = element("span", { class: "space" });
  const bar = element(
    "div",
    { class: "transport", role: "toolbar", "aria-label": words.controls },
    back,
    play,
    forward,
    position,
    select,
    space,
    unit,
    down,
    up,
  );
  parent.append(bar);
  let trace = null;
  return {
    node: bar,
    space,
    load(next) {
      trace = next;
      const heads = trace.parts ? trace.header.sizes.N ?? 1 : 0;
      for (const part of [unit, down, up]) part.hidden = heads === 1;
      for (const [part, word] of heads ? [[down, words.head_down], [up, words.head_up]] : []) {
        part.title = word;
        part.setAttribute("aria-label", word);
      }
    },
    update(state) {
      setText(position, `${state.step + 1} / ${trace.steps}`);
      const heads = trace.parts ? { head: state.head + 1, heads: trace.header.sizes.N ?? 1 } : null;
      setText(unit, heads ? sentence(words.head_of, heads) : sentence(words.unit_of, { unit: state.unit, last: trace.units - 1 }));
      select.value = String(state.speed);
      const label = state.playing ? words.pause : words.play;
      if (play.title !== label) {
        play.title = label;
        play.setAttribute("aria-label", label);
        play.replaceChildren(state.playing ? pauseSign : playSign);
      }
      back.setAttribute("aria-disabled", String(state.step === 0));
      forward.setAttribute("aria-disabled", String(state.step === trace.steps - 1));
      play.disabled = trace.steps === 1;
    },
  };
}
