// What the colours of a map mean: the ends of its fixed scale, and the hatch of what a mask hides.

import { element } from "./dom.js";
import { formatShort } from "./numbers.js";

export function createKey(parent, context) {
  const node = element("div", { class: "legend" });
  parent.append(node);
  return {
    node,
    show(names, ramp, masked) {
      const bar = element("span", { class: "bar" });
      bar.style.background = `linear-gradient(90deg, ${ramp.stops.map((stop) => `rgb(${stop})`).join(", ")})`;
      const unit = context.trace().header.scales[names[0]]?.unit ?? "";
      const end = (value) => element("span", { class: "end", text: unit ? `${unit}${formatShort(value)}` : formatShort(value) });
      const parts = [element("span", { class: "scale" }, end(ramp.interval[0]), element("span", { class: "bars" }, bar), end(ramp.interval[1]))];
      if (masked) parts.push(element("span", { class: "scale" }, element("span", { class: "hatched" }), element("span", { text: context.words.masked })));
      node.replaceChildren(...parts);
    },
  };
}
