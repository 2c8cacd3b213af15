// Things one may look at, side by side, each in a spotlight as large as its weight; above them the wishes one may have. The
// pictures are lines on a grid of 64; which picture is whose stands in the header's labels for axis I.

import { choice, element, sentence, setText, shape } from "./dom.js";
import { formatNumber } from "./numbers.js";

const SIZE = 64;
const LARGEST = 46; // radius of the spotlight of a weight of 1, on the grid
const PICTURES = {
  newspaper: ["M8 14h44v36H8z", "M52 22h5v24a4 4 0 0 1-8 0", "M14 20h32", "M14 26h14v10H14z", "M33 27h13M33 32h13M33 37h13M14 42h32"],
  paper: ["M16 8h22l10 10v38H16z", "M38 8v10h10", "M22 28h20M22 35h20M22 42h12"],
  cup: ["M12 24h32v16a12 12 0 0 1-12 12h-8a12 12 0 0 1-12-12z", "M44 28h4a6 6 0 0 1 0 14h-5", "M22 18c0-4 4-4 4-8M32 18c0-4 4-4 4-8"],
  notebook: ["M16 10h34v44H16z", "M24 10v44", "M12 18h8M12 27h8M12 36h8M12 45h8"],
  book: ["M32 18c-6-5-14-6-22-5v36c8-1 16 0 22 5z", "M32 18c6-5 14-6 22-5v36c-8-1-16 0-22 5z"],
};

/** spec: {label}. Rows are wishes, columns things; weights are A and scores S. */
export function createScene(parent, context, spec) {
  const { store, actions, words } = context;
  const things = element("div", { class: "things" });
  const node = element("section", { class: "scene", "aria-label": spec.label }, things);
  parent.append(node);
  let trace = null;
  let wishes = null;
  let drawn = [];

  function build(name, at) {
    const light = shape("circle", { class: "light", cx: SIZE / 2, cy: SIZE / 2, r: 0 });
    const lines = (PICTURES[name] ?? []).map((d) => shape("path", { d, class: "outline" }));
    const picture = shape("svg", { class: `thing-picture ${name}`, viewBox: `-16 -16 ${SIZE + 32} ${SIZE + 32}`, "aria-hidden": "true" }, light, ...lines);
    const weight = element("strong", { class: "number", "data-weight": at });
    const score = element("span", { class: "thing-score", "data-score": at });
    const label = element("span", { class: "thing-name", text: trace.header.labels.S[at] });
    return { node: element("div", { class: "thing" }, picture, label, weight, score), light, weight, score };
  }

  return {
    node,
    load(next) {
      trace = next;
      const texts = trace.header.labels.T.map((text, at) => [at, text]);
      wishes?.node.remove();
      wishes = choice(spec.label, texts, (step) => actions.moveTo(step));
      node.prepend(wishes.node);
      drawn = trace.header.labels.I.map(build);
      things.replaceChildren(...drawn.map((one) => one.node));
    },
    update(state) {
      wishes.show(state.step);
      drawn.forEach(({ light, weight, score }, key) => {
        const share = trace.number("A", { ...store.get(), key });
        light.setAttribute("r", String(LARGEST * Math.sqrt(share)));
        setText(weight, formatNumber(share));
        setText(score, sentence(words.thing_score, { score: formatNumber(trace.number("S", { ...store.get(), key })) }));
      });
    },
  };
}
