// Beside the text: one minibatch, its rows X and, one token later, Y; where each row's state may come from; the offset.

import { choice, element, sentence, setText } from "./dom.js";
import { hue, tokenParts } from "./textboard.js";

export function createBatchPanel(parent, { words, actions }) {
  const ways = [["sequential", words.sequential], ["random", words.random]];
  const way = choice(words.way, ways, (value) => actions.put({ way: value }));
  const slide = element("input", { type: "range", min: "0", step: "1", class: "offset", "aria-label": words.offset });
  slide.oninput = () => actions.put({ offset: Number(slide.value) });
  const offset = element("output", { class: "offset-value" });
  const controls = element("div", { class: "batch-controls" }, way.node, element("label", { class: "offset-label" }, words.offset, slide, offset));
  const title = element("h3");
  const rows = element("div", { class: "batch-rows" });
  const says = element("p", { class: "note", "data-role": "state" });
  const unused = element("p", { class: "note", "data-role": "unused" });
  const node = element("section", { class: "batch-panel" }, controls, title, rows, says, unused);
  const short = element("p", { class: "short", "data-role": "short" });
  parent.append(element("div", { class: "batch-side" }, node, short));
  let drawn = "";

  function line(text, name, start, row, shift) {
    const { steps } = text.plan;
    const cells = Array.from({ length: steps }, (_, at) => {
      const cell = element("span", { class: "tok", "data-place": start + at + shift }, ...tokenParts(text.tokens[start + at + shift]));
      cell.style.setProperty("--hue", hue(row));
      return cell;
    });
    for (const cell of cells) cell.classList.add(shift ? "y" : "x");
    return [element("span", { class: "line-name", text: name }), ...cells];
  }

  function draw(state, text) {
    const cuts = text.cuts(state);
    const { steps, length } = text.plan;
    const starts = cuts[state.batch];
    const before = cuts[state.batch - 1];
    const goesOn = starts.map((start, row) => Boolean(before) && before[row] + steps === start);
    rows.replaceChildren(
      ...starts.map((start, row) => {
        const from = goesOn[row]
          ? sentence(words.carried, { row: row + 1, batch: state.batch })
          : before
            ? sentence(words.elsewhere, { from: before[row] + 1, to: before[row] + steps })
            : words.zeros;
        const sign = goesOn[row] ? "\u21e0" : "0";
        const head = element(
          "div",
          { class: "row-head" },
          element("span", { class: goesOn[row] ? "state-sign on" : "state-sign", text: sign }),
          element("strong", { text: sentence(words.row, { row: row + 1 }) }),
          element("span", { class: "place", text: sentence(words.places, { from: start + 1, to: start + steps }) }),
          element("span", { class: "place", "data-role": "from", text: from }),
        );
        const lines = element("div", { class: "lines" }, ...line(text, "X", start, row, 0), ...line(text, "Y", start, row, 1));
        lines.style.gridTemplateColumns = `1.4em repeat(${steps}, max-content)`;
        const box = element("div", { class: "batch-row", "data-row": row, "data-carried": String(goesOn[row]) }, head, lines);
        box.style.setProperty("--hue", hue(row));
        return box;
      }),
    );
    setText(title, sentence(words.batch_of, { batch: state.batch + 1, batches: cuts.length }));
    setText(says, !before ? words.state_first : state.way === "sequential" ? words.state_carried : words.state_lost);
    const used = cuts.length * starts.length * steps;
    setText(unused, sentence(words.unused, { unused: length - used, length, offset: state.offset }));
  }

  return {
    load() {
      drawn = "";
    },
    update(state, text) {
      const cuts = text.cuts(state);
      const here = state.view === "batch";
      node.hidden = !here || cuts.length === 0;
      short.hidden = !here || cuts.length > 0;
      if (!here) return;
      if (cuts.length === 0) {
        const { batch, steps, needed, length, largest_steps: longest, largest_batch: most } = text.plan;
        const possible = longest || most ? sentence(words.possible, { longest, most, batch, steps }) : "";
        setText(short, `${sentence(words.short, { batch, steps, needed, length })} ${possible}`.trim());
        return;
      }
      way.show(state.way);
      slide.max = String(text.offsets(state.way) - 1);
      slide.value = String(state.offset);
      slide.disabled = text.offsets(state.way) < 2;
      setText(offset, String(state.offset));
      const wanted = [text.key, state.way, state.offset, state.batch].join();
      if (wanted !== drawn) draw(state, text);
      drawn = wanted;
    },
  };
}
