// A look into models in training: what each writes on, and its gates and states on a fixed sentence.

import { element, setText } from "./dom.js";
import { createRamp } from "./scales.js";

const ROW = 3; // pixels of a unit

export function createView(parent, { words, colourOf }) {
  const node = element("div", { class: "training-views" });
  parent.append(node);
  let made = "";
  let cells = [];

  /** The boxes for these members and symbols; made anew only when they differ. */
  function prepare(data, frame) {
    const wanted = JSON.stringify([data.members.map(({ name, role }) => [name, role]), frame.members.map(({ strips }) => strips.map(({ symbol, steps, units }) => [symbol, steps, units])), frame.read]);
    if (wanted === made) return;
    made = wanted;
    cells = data.members.map((member, place) => {
      const added = element("span", { class: "training-added" });
      const before = element("span", { class: "training-before" });
      const strips = frame.members[place].strips.map(({ symbol, steps, units, name }) => {
        const canvas = element("canvas", { width: steps, height: units, role: "img", "aria-label": `${member.name}: ${name}`, style: `height:${Math.max(units * ROW, 24)}px` });
        return { canvas, box: element("div", { class: "training-strip" }, element("span", { class: "letter", title: name, text: symbol }), canvas) };
      });
      const tokens = element("div", { class: "training-tokens", "aria-hidden": "true" }, element("span"), element("div", { class: "row" }, ...frame.read.map((token) => element("span", { text: token }))));
      const step = element("span", { class: "note" });
      const head = element("h4", {}, element("i", { style: `background:var(--role-${member.role})` }), element("strong", { text: member.name }), step);
      const box = element("section", { class: "training-member" }, head, element("p", { class: "training-sample", "data-member": String(place) }, before, added), ...(strips.length ? [...strips.map(({ box: one }) => one), tokens] : []));
      return { box, added, before, strips, step };
    });
    node.replaceChildren(...cells.map(({ box }) => box));
  }

  return {
    draw(data, frame, block) {
      if (!frame) {
        made = "";
        node.replaceChildren(element("p", { class: "note", text: words.training_no_view }));
        return;
      }
      prepare(data, frame);
      frame.members.forEach(({ step, added, strips }, place) => {
        const cell = cells[place];
        setText(cell.step, `${words.training_step} ${step.toLocaleString("en")}`);
        setText(cell.before, frame.prefix);
        setText(cell.added, added);
        strips.forEach(({ offset, steps, units, low, high, role }, at) => {
          const signed = low < 0;
          const paper = colourOf("--paper");
          const ramp = createRamp([0, 255], signed ? [colourOf("--negative"), paper, colourOf("--positive")] : [paper, colourOf(`--role-${role}`)]);
          const context = cell.strips[at].canvas.getContext("2d");
          const image = context.createImageData(steps, units);
          for (let t = 0; t < steps; t += 1) {
            for (let unit = 0; unit < units; unit += 1) ramp.paint(block[offset + t * units + unit], image.data, 4 * (unit * steps + t));
          }
          context.putImageData(image, 0, 0);
          cell.strips[at].canvas.dataset.range = `${low} ${high}`;
        });
      });
    },
  };
}
