// Beside the text: the chosen token and what it is made of (split), or its place in the vocabulary (number).

import { element, sentence } from "./dom.js";
import { hue, tokenParts } from "./textboard.js";

export function createTokenPanel(parent, { words, actions, store, text: read }) {
  const chip = element("span", { class: "tok big", "data-role": "chosen" });
  const facts = element("dl", { class: "facts" });
  const detail = element("section", { class: "token-detail" }, element("h3", { text: words.chosen_token }), chip, facts);
  const body = element("tbody");
  const head = element("tr", {}, element("th", { text: words.id }), element("th", { text: words.token }), element("th", { text: words.count, colspan: "2" }));
  const box = element("div", { class: "vocabulary", tabindex: "0", role: "region", "aria-label": words.vocabulary }, element("table", {}, element("thead", {}, head), body));
  const note = element("p", { class: "note" });
  const list = element("section", { class: "vocabulary-panel" }, element("h3", { text: words.vocabulary }), box, note);
  parent.append(detail, list);
  const rows = new Map();
  let chosen = -1;
  let linked = false;

  /** Look at the next place in the text where this number stands. */
  function next(id) {
    const { ids } = read();
    const at = store.get().step;
    const later = ids.indexOf(id, at + 1);
    const found = later >= 0 ? later : ids.indexOf(id);
    if (found >= 0) actions.look(found);
  }

  function fact(name, value) {
    return [element("dt", { text: name }), element("dd", { text: value })];
  }

  return {
    load(text) {
      rows.clear();
      chosen = -1;
      const most = Math.max(1, ...text.vocabulary.map(([, , count]) => count));
      body.replaceChildren(
        ...text.vocabulary.map(([id, token, count, reserved]) => {
          const bar = element("span", { class: "count-bar" });
          bar.style.width = `${(100 * count) / most}%`;
          const name = element("span", { class: reserved ? "tok reserved" : "tok" }, ...tokenParts(token));
          name.style.setProperty("--hue", hue(id));
          const row = element(
            "tr",
            { "data-id": id, onclick: () => next(id) },
            element("td", { class: "id", text: String(id) }),
            element("td", {}, name),
            element("td", { class: "times", text: String(count) }),
            element("td", { class: "bar-cell" }, bar),
          );
          rows.set(id, row);
          return row;
        }),
      );
      const { size, left_out: left } = text.totals;
      const beyond = size - text.vocabulary.length;
      const told = [left ? sentence(words.left_out, { left, least: text.min_freq }) : "", beyond > 0 ? sentence(words.beyond, { beyond }) : "", words.order];
      note.textContent = told.filter(Boolean).join(" ");
    },
    update(state, text) {
      detail.hidden = state.view !== "split";
      list.hidden = state.view !== "number";
      const id = text.ids[state.step];
      if (id === undefined) return;
      if (state.view === "split") {
        chip.replaceChildren(...tokenParts(text.tokens[state.step]));
        chip.style.setProperty("--hue", hue(id));
        const shown = (value) => String(value);
        const { characters, tokens, distinct } = text.totals;
        facts.replaceChildren(
          ...fact(words.place, sentence(words.of, { at: state.step + 1, all: tokens })),
          ...fact(words.points, shown(text.points[state.step])),
          ...fact(words.bytes, shown(text.bytes[state.step])),
          ...fact(words.distinct, shown(distinct)),
          ...fact(words.per_token, tokens ? (characters / tokens).toFixed(2) : "0"),
        );
      }
      const row = rows.get(id);
      if (state.view === "number" && (id !== chosen || !linked)) {
        body.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
        row?.setAttribute("aria-selected", "true");
        if (row) box.scrollTop = Math.max(0, row.offsetTop - box.clientHeight / 2);
        chosen = id;
      }
      linked = state.view === "number";
    },
  };
}
