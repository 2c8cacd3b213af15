// Which layer and direction the cell below shows, and the units that the learner has pinned: both chosen without the server.

import { choice, element, sentence } from "./dom.js";

export function createLayers(parent, context) {
  const { store, actions, words } = context;
  const node = element("div", { class: "layers" });
  parent.append(node);
  let buttons = null;
  let pins = [];

  return {
    load(trace) {
      node.replaceChildren();
      buttons = null;
      if (trace.layers.length > 1) {
        const options = trace.layers.map(({ label }, layer) => [layer, sentence(words.layer, { layer: label })]);
        buttons = choice(words.layers, options, (layer) => actions.pick({ layer }));
        node.append(buttons.node);
      }
      pins = (trace.header.pins ?? []).map(({ unit, name }) => {
        const text = name ? `${sentence(words.unit_of, { unit })} · ${name}` : sentence(words.unit_of, { unit });
        const pin = element("button", { type: "button", class: "pin", text, "aria-pressed": "false", onclick: () => actions.pick({ unit, symbol: "H" }) });
        return { unit, pin };
      });
      if (pins.length) node.append(element("div", { class: "pins", role: "group", "aria-label": words.pins }, ...pins.map(({ pin }) => pin)));
      node.hidden = !node.childElementCount;
    },
    update({ layer, unit }) {
      buttons?.show(layer);
      for (const each of pins) each.pin.setAttribute("aria-pressed", String(each.unit === unit));
    },
  };
}
