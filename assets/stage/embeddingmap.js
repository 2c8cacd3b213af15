// The rows of the matrix as points: the first two principal components, or three that can be turned by dragging.

import { choice, element, sentence, setText } from "./dom.js";
import { clamp } from "./numbers.js";

const HIGH = 400;
const PAD = 26;
const LABELS = 200; // of more tokens than this only the chosen ones are named

export function createEmbeddingMap(parent, { words, actions, store, root }) {
  const dims = choice(words.dimensions, [["2", "2D"], ["3", "3D"]], (value) => actions.put({ dims: value }));
  const title = element("div", { class: "map-head" }, element("h3", { text: words.map }), element("span", { class: "space" }), dims.node);
  const canvas = element("canvas", { class: "points", role: "img", tabindex: "-1" });
  const says = element("p", { class: "note", "data-role": "shares" });
  const hint = element("p", { class: "note", "data-role": "hint" });
  parent.append(element("section", { class: "embedding-map" }, title, canvas, says, hint));
  let data = null;
  let turn = { yaw: 0.6, pitch: 0.35 };
  let spots = [];
  let grab = null;

  function spread(state) {
    const { header } = data;
    const flat = header.listed.map((_, place) => Array.from(data.row(`${state.state}/map`, place)));
    if (state.dims === "2") return flat.map(([x, y = 0]) => [x, y, 0]);
    const [cy, sy, cp, sp] = [Math.cos(turn.yaw), Math.sin(turn.yaw), Math.cos(turn.pitch), Math.sin(turn.pitch)];
    return flat.map(([x, y = 0, z = 0]) => {
      const across = cy * x + sy * z;
      const deep = cy * z - sy * x;
      return [across, cp * y - sp * deep, sp * y + cp * deep];
    });
  }

  function draw(state) {
    const wide = canvas.clientWidth;
    if (!wide) return;
    const scale = window.devicePixelRatio || 1;
    canvas.width = wide * scale;
    canvas.height = HIGH * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(root);
    const ink = style.getPropertyValue("--ink").trim();
    const muted = style.getPropertyValue("--role-weights").trim();
    const accent = style.getPropertyValue("--role-forget").trim();
    const mono = style.getPropertyValue("--mono").trim();
    const points = spread(state);
    const sides = [0, 1].map((axis) => points.map((point) => point[axis]));
    const middle = sides.map((values) => (Math.min(...values) + Math.max(...values)) / 2);
    const most = Math.max(1e-9, ...points.map((point) => Math.hypot(...point)));
    const [ex, ey] = sides.map((values, axis) => Math.max(1e-9, ...values.map((value) => Math.abs(value - middle[axis]))));
    const fit = Math.min((wide / 2 - PAD) / ex, (HIGH / 2 - PAD) / ey);
    spots = points.map(([x, y, z]) => ({ x: wide / 2 + fit * (x - middle[0]), y: HIGH / 2 - fit * (y - middle[1]), near: z / most }));
    const { header } = data;
    const chosen = state.picked ?? data.placeOf(header.ids[state.step]);
    const friends = Array.from(data.row(`${state.state}/near`, chosen), (id) => data.placeOf(id)).filter((place) => place >= 0);
    pen.strokeStyle = accent;
    pen.lineWidth = 1;
    for (const friend of friends) {
      pen.beginPath();
      pen.moveTo(spots[chosen].x, spots[chosen].y);
      pen.lineTo(spots[friend].x, spots[friend].y);
      pen.stroke();
    }
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const taken = [];
    const free = (box) => taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
    const dot = ({ x, y }) => {
      pen.fillStyle = muted;
      pen.globalAlpha = 0.6;
      pen.fillRect(x - 1.5, y - 1.5, 3, 3);
      pen.globalAlpha = 1;
    };
    /** Write a name where there is room, a chosen one also a little above or below its point; else leave a dot. */
    const write = (place, bold) => {
      const { x, y } = spots[place];
      const text = header.names[place];
      pen.font = `${bold ? "700 15" : "13"}px ${mono}`;
      const room = pen.measureText(text).width / 2 + 2;
      for (const shift of bold ? [0, -18, 18, -36, 36, -54, 54, -72, 72] : [0]) {
        const at = [clamp(x, room, wide - room), clamp(y + shift, 9, HIGH - 9)];
        const box = [at[0] - room, at[1] - 8, at[0] + room, at[1] + 8];
        if (!free(box)) continue;
        taken.push(box);
        pen.globalAlpha = bold ? 1 : state.dims === "3" ? clamp(0.65 + 0.35 * spots[place].near, 0.3, 1) : 0.85;
        pen.fillStyle = place === chosen ? accent : bold ? ink : muted;
        pen.fillText(text, ...at);
        pen.globalAlpha = 1;
        if (shift) dot(spots[place]);
        return;
      }
      dot(spots[place]);
    };
    write(chosen, true);
    for (const friend of friends) write(friend, true);
    const others = spots.map((_, place) => place).filter((place) => place !== chosen && !friends.includes(place));
    for (const place of others) {
      if (others.length <= LABELS) write(place, false);
      else dot(spots[place]);
    }
    const label = friends.map((place) => header.names[place]).join(", ");
    canvas.setAttribute("aria-label", sentence(words.map_says, { token: header.names[chosen], near: label }));
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.onpointerdown = (event) => {
    if (event.button) return;
    canvas.setPointerCapture(event.pointerId);
    grab = { from: at(event), turn: { ...turn }, moved: false };
  };
  canvas.onpointermove = (event) => {
    if (!grab) return;
    const [x, y] = at(event);
    const [dx, dy] = [x - grab.from[0], y - grab.from[1]];
    if (Math.hypot(dx, dy) > 4) grab.moved = true;
    if (!grab.moved || store.get().dims !== "3") return;
    turn = { yaw: grab.turn.yaw + dx / 120, pitch: clamp(grab.turn.pitch + dy / 120, -1.5, 1.5) };
    draw(store.get());
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    const held = grab;
    grab = null;
    if (!held || held.moved) return;
    const [x, y] = at(event);
    const best = spots.map((spot, place) => [Math.hypot(spot.x - x, spot.y - y), place]).sort((a, b) => a[0] - b[0])[0];
    if (best && best[0] < 24) actions.pick(best[1]);
  };

  return {
    load(next) {
      data = next;
    },
    update(state) {
      dims.show(state.dims);
      const shares = data.header.shares[state.state].slice(0, Number(state.dims));
      const percent = shares.map((share) => `${(100 * share).toFixed(1)} %`).join(" + ");
      const all = `${(100 * shares.reduce((sum, share) => sum + share, 0)).toFixed(1)} %`;
      setText(says, sentence(words.shares, { percent, all }));
      const { listed, rows } = data.header;
      const part = listed.length < rows ? sentence(words.some_rows, { drawn: listed.length, rows }) : "";
      setText(hint, [state.dims === "3" ? words.turn_hint : words.pick_hint, part].filter(Boolean).join(" "));
      draw(state);
    },
  };
}
