// The text itself, token by token: coloured by token, written as numbers, or coloured by the row of the minibatch that reads it.

import { element, sentence } from "./dom.js";

const HUES = ["output", "forget", "input", "candidate", "cell", "reset", "update", "weights"];
const BLANK = "\u2423";
const NEWLINE = "\u21b5";

export const hue = (number) => `var(--role-${HUES[number % HUES.length]})`;

/** A token as text nodes; the sign of a blank exists in few fonts and is drawn, its character stays in the text. */
export function tokenParts(text) {
  return text.split(/(\u2423)/).filter(Boolean).map((part) => (part === BLANK ? element("i", { class: "gap", text: part }) : part));
}

/** The token's cell under the pointer, also while dragging. */
const cellUnder = (event) => document.elementFromPoint?.(event.clientX, event.clientY) && event.composedPath()[0];

export function createTextBoard(parent, { words, actions }) {
  const page = element("div", { class: "page", role: "slider", tabindex: "0", dir: "ltr", "aria-label": words.board, "aria-valuemin": "1" });
  const says = element("p", { class: "note board-says" });
  parent.append(element("div", { class: "page-box" }, page), says);
  let cells = [];
  let drawn = [];
  let current = -1;

  const pick = (event) => {
    const cell = cellUnder(event)?.closest?.(".tok");
    if (cell) actions.look(Number(cell.dataset.at));
  };
  page.onpointerdown = (event) => {
    if (event.button) return;
    page.focus({ preventScroll: true });
    pick(event);
    page.onpointermove = (now) => (now.buttons ? pick(now) : (page.onpointermove = null));
  };
  page.onpointerup = page.onpointercancel = () => {
    page.onpointermove = null;
  };

  function write(view, text) {
    for (const [at, cell] of cells.entries()) {
      const number = view === "number";
      cell.replaceChildren(...(number ? [String(text.ids[at])] : tokenParts(text.tokens[at])));
      cell.classList.toggle("unknown", text.ids[at] === 0);
    }
  }

  /** Which row of which minibatch reads each token, and what it says. */
  function colour(state, text) {
    if (state.view !== "batch") {
      for (const [at, cell] of cells.entries()) {
        cell.style.setProperty("--hue", hue(text.ids[at]));
        cell.className = `tok${text.ids[at] === 0 ? " unknown" : ""}`;
        delete cell.dataset.block;
      }
      return;
    }
    const cuts = text.cuts(state);
    const { steps } = text.plan;
    for (const cell of cells) {
      cell.className = "tok unused";
      delete cell.dataset.block;
    }
    for (const [batch, rows] of cuts.entries()) {
      for (const [row, start] of rows.entries()) {
        cells[start].dataset.block = String(batch + 1);
        for (let at = start; at < start + steps; at += 1) {
          cells[at].className = "tok other";
          cells[at].style.setProperty("--hue", hue(row));
        }
      }
    }
    for (const [row, start] of (cuts[state.batch] ?? []).entries()) {
      for (let at = start; at <= start + steps; at += 1) {
        const cell = cells[at];
        if (at < start + steps) cell.classList.replace("other", "now");
        if (at > start) {
          cell.classList.add("target");
          cell.style.setProperty("--target", hue(row));
        }
      }
    }
  }

  return {
    load(text) {
      cells = text.tokens.map((token, at) => element("span", { class: "tok", "data-at": at }));
      const flow = cells.flatMap((cell, at) => (text.tokens[at].endsWith(NEWLINE) ? [cell, element("br")] : [cell]));
      page.replaceChildren(...flow);
      page.classList.toggle("single", text.level === "character" || text.level === "grapheme");
      page.setAttribute("aria-valuemax", String(Math.max(cells.length, 1)));
      const { tokens } = text.totals;
      says.textContent = tokens > cells.length ? sentence(words.part, { shown: cells.length, tokens }) : "";
      drawn = [];
      current = -1;
    },
    update(state, text) {
      const wanted = [state.view, state.view === "batch" ? [state.way, state.offset, state.batch].join() : ""];
      if (drawn[0] !== wanted[0]) write(state.view, text);
      if (wanted.some((part, at) => part !== drawn[at])) colour(state, text);
      drawn = wanted;
      cells[current]?.classList.remove("current");
      current = state.step;
      const cell = cells[current];
      if (!cell) return;
      if (state.view !== "batch") cell.classList.add("current");
      const box = page.parentElement;
      const seen = state.view === "batch" ? cells[text.cuts(state)[state.batch]?.[0]] ?? cell : cell;
      if (seen.offsetTop < box.scrollTop || seen.offsetTop + seen.offsetHeight > box.scrollTop + box.clientHeight) {
        box.scrollTop = seen.offsetTop - box.clientHeight / 3;
      }
      page.setAttribute("aria-valuenow", String(current + 1));
      page.setAttribute("aria-valuetext", sentence(words.token_at, { step: current + 1, token: text.tokens[current], id: text.ids[current] }));
    },
  };
}
