// A matrix as a heat map on a canvas: fixed colours, hidden cells hatched, numbers in the cells where they can be read.

import { formatNumber } from "./numbers.js";
import { partOf } from "./positions.js";

const READABLE = [38, 17]; // px of a cell that holds a number
const HATCH = 5; // px between two lines

/** The axes of a symbol's map: rows and columns, as letters, with their sizes. A vector is a map of one row. */
export function mapAxes(trace, name) {
  const { axes, shape } = trace.array(name);
  const two = [...axes].map((axis, at) => [axis, shape[at]]).filter(([axis]) => axis !== "N");
  const [rows, columns] = two.length > 1 ? two.slice(-2) : [["1", 1], two[0] ?? ["1", 1]];
  return { rows: { axis: rows[0], count: rows[1] }, columns: { axis: columns[0], count: columns[1] } };
}

/** The place of a cell of a map. */
export function cellPlace({ rows, columns }, row, column) {
  const place = rows.axis === "1" ? {} : { [partOf(rows.axis)]: row };
  return columns.axis === "1" ? place : { ...place, [partOf(columns.axis)]: column };
}

/** Which of `count` labels have room, each `step` px from the next and `need` px high: every n-th, always the first. */
export function thinned(count, step, need) {
  const every = Math.max(1, Math.ceil(need / step));
  return Array.from({ length: Math.ceil(count / every) }, (_, at) => at * every);
}

function hatch(ink, left, top, width, height, colour, gap) {
  ink.save();
  ink.beginPath();
  ink.rect(left, top, width, height);
  ink.clip();
  ink.strokeStyle = colour;
  ink.lineWidth = Math.max(1, gap / 6);
  ink.beginPath();
  // One family of lines for the whole map: hatched neighbours join without a seam.
  const first = Math.floor((left + top) / gap) * gap;
  for (let at = first; at <= left + width + top + height; at += gap) {
    ink.moveTo(at - top, top);
    ink.lineTo(at - top - height, top + height);
  }
  ink.stroke();
  ink.restore();
}

/**
 * Draw the map of `name` at a state's head into `width` x `height` CSS pixels. `value(place)` gives the number of a cell,
 * NaN stays paper. `colours` are {line} for hatches, and the two `texts` for numbers (also `parsed`).
 */
export function paintMap(canvas, { trace, name, state, value, ramp, width, height, colours }) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const axes = mapAxes(trace, name);
  const [rows, columns] = [axes.rows.count, axes.columns.count];
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ink = canvas.getContext("2d");
  const image = new ImageData(columns, rows);
  const covered = [];
  const masked = trace.masks(name);
  const numbers = width / columns >= READABLE[0] && height / rows >= READABLE[1];
  const written = [];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const place = { ...state, ...cellPlace(axes, row, column) };
      const number = value(place);
      ramp.paint(number, image.data, 4 * (row * columns + column));
      if (masked && trace.hidden(place)) covered.push([row, column]);
      else if (numbers && !Number.isNaN(number)) written.push([row, column, number]);
    }
  }
  const exact = new OffscreenCanvas(columns, rows);
  exact.getContext("2d").putImageData(image, 0, 0);
  ink.imageSmoothingEnabled = false;
  ink.drawImage(exact, 0, 0, columns, rows, 0, 0, canvas.width, canvas.height);
  const [across, down] = [canvas.width / columns, canvas.height / rows];
  for (const [row, column] of covered) hatch(ink, column * across, row * down, across, down, colours.line, HATCH * ratio);
  ink.font = `${11 * ratio}px ${colours.face}`;
  ink.textAlign = "center";
  ink.textBaseline = "middle";
  for (const [row, column, number] of written) {
    ink.fillStyle = colours.texts[ramp.clearer(number, colours.parsed)];
    ink.fillText(formatNumber(number), (column + 0.5) * across, (row + 0.5) * down + ratio);
  }
}
