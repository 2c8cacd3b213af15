// One-hot times a matrix beside the row that is looked up: the same numbers, to the last digit.

import { element, sentence, setText } from "./dom.js";
import { clamp, formatNumber, formatShort } from "./numbers.js";
import { createRamp } from "./scales.js";
import { hue, tokenParts } from "./textboard.js";
import { onDrag } from "./timeline.js";

const AROUND = 6; // rows above and below the chosen one
const HIGH = 18; // px of a row
const COLUMNS = 6; // numbers that are written out, half as many where there is little room
const NARROW = 480; // px

export function createLookup(parent, { words, actions, colour }) {
  const title = element("h3", { text: words.lookup });
  const hot = element("div", { class: "hot", role: "img" });
  const hotMark = element("span", { class: "hot-mark", text: "1" });
  hot.append(hotMark);
  const hotSays = element("span", { class: "place", "data-role": "hot" });
  const names = element("div", { class: "row-names", "aria-hidden": "true" });
  const canvas = element("canvas", { "aria-hidden": "true" });
  const frame = element("div", { class: "row-frame" });
  const column = element("div", { class: "unit-line" });
  const field = element("div", { class: "weights-field", role: "img", "aria-label": words.matrix }, canvas, frame, column);
  const scale = element("span", { class: "place scale-says" });
  const digits = element("tbody");
  const table = element("table", { class: "row-digits" }, digits);
  const sum = element("p", { class: "sum", "data-role": "sum" });
  const same = element("p", { class: "same", "data-role": "same" });
  parent.append(
    element(
      "section",
      { class: "lookup" },
      title,
      element("div", { class: "lookup-grid" }, element("span", { class: "var", text: "X" }), element("div", {}, hot, hotSays), element("span", { class: "var", text: "W" }), element("div", { class: "matrix-box" }, names, field), scale),
      table,
      sum,
      same,
    ),
  );
  let data = null;
  let drawn = "";
  let first = 0;

  onDrag(field, (x) => {
    const wide = field.clientWidth;
    if (wide) actions.put({ unit: clamp(Math.floor((x / wide) * data.header.width), 0, data.header.width - 1) });
  });

  function paint(state, place) {
    const { header } = data;
    const rows = Math.min(header.listed.length, 2 * AROUND + 1);
    first = clamp(place - AROUND, 0, header.listed.length - rows);
    const limit = header.limit[state.state];
    const ramp = createRamp([-limit, limit], [colour("--negative"), colour("--paper"), colour("--positive")]);
    canvas.width = header.width;
    canvas.height = rows;
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(header.width, rows);
    for (let row = 0; row < rows; row += 1) {
      const values = data.row(`${state.state}/W`, first + row);
      for (let unit = 0; unit < header.width; unit += 1) {
        ramp.paint(values[unit], image.data, 4 * (row * header.width + unit));
      }
    }
    pen.putImageData(image, 0, 0);
    setText(scale, sentence(words.colours, { limit: formatShort(limit) }));
    field.style.height = `${rows * HIGH}px`;
    names.replaceChildren(
      ...Array.from({ length: rows }, (_, row) => {
        const id = header.listed[first + row];
        const token = element("span", { class: "tok" }, ...tokenParts(header.names[first + row]));
        token.style.setProperty("--hue", hue(id));
        return element("div", { class: first + row === place ? "row-name chosen" : "row-name" }, element("span", { class: "number", text: String(id) }), token);
      }),
    );
  }

  function write(state) {
    const { header } = data;
    const at = header.distinct[state.step];
    const product = data.row(`${state.state}/product`, at);
    const row = data.row(`${state.state}/row`, at);
    const columns = Math.min(table.clientWidth < NARROW ? COLUMNS / 2 : COLUMNS, header.width);
    const start = clamp(state.unit - Math.floor(columns / 2), 0, header.width - columns);
    const units = Array.from({ length: columns }, (_, step) => start + step);
    const line = (name, values, role) =>
      element("tr", { "data-line": role }, element("th", { text: name }), ...units.map((unit) => element("td", { class: unit === state.unit ? "here" : "", "data-unit": unit, text: values ? formatNumber(values[unit], 6) : String(unit) })));
    digits.replaceChildren(line(words.unit_name, null, "unit"), line(words.product, product, "product"), line(words.looked_up, row, "row"));
    const value = formatNumber(row[state.unit], 6);
    setText(sum, sentence(words.product_sum, { value, id: header.ids[state.step], zeros: header.rows - 1, unit: state.unit }));
    setText(same, sentence(words.same, { width: header.width, difference: formatShort(header.difference[state.state]) }));
  }

  return {
    load(next) {
      data = next;
      drawn = "";
    },
    resize() {
      drawn = "";
    },
    update(state) {
      const { header } = data;
      const id = header.ids[state.step];
      const place = data.placeOf(id);
      const wanted = [state.state, place].join();
      if (wanted !== drawn) paint(state, place);
      drawn = wanted;
      hotMark.style.left = `${(100 * (id + 0.5)) / header.rows}%`;
      setText(hotSays, sentence(words.hot, { id, rows: header.rows }));
      hot.setAttribute("aria-label", hotSays.textContent);
      frame.style.transform = `translateY(${(place - first) * HIGH}px)`;
      frame.style.height = `${HIGH}px`;
      column.style.left = `${(100 * (state.unit + 0.5)) / header.width}%`;
      write(state);
    },
  };
}
