// Lines of the diagram in pixels: from a node over bends to a node, with rounded corners and an arrowhead.

const HALF = {
  function: [21, 14],
  affine: [13, 11],
  product: [11, 11],
  sum: [11, 11],
  complement: [15, 11],
  matmul: [11, 11],
  quotient: [11, 11],
  scale: [11, 11],
  input: [22, 13],
  output: [20, 13],
};

/** Half the width and height of a node of this kind, in pixels. A box grows with its label. */
function halfSize(kind, label = "") {
  const [width, height] = HALF[kind] ?? HALF.function;
  return [kind === "function" && label.length > 4 ? 32 : width, height];
}

/**
 * Where a line that comes from `from` meets the border of a node. A box is entered straight where the line stands in front
 * of one of its sides, so that several lines enter side by side; a circle is entered towards its middle.
 */
export function border(centre, half, from) {
  const [dx, dy] = [from[0] - centre[0], from[1] - centre[1]];
  if (!half[0] || (!dx && !dy)) return [...centre];
  if (half[0] === half[1]) {
    const share = half[0] / Math.hypot(dx, dy);
    return [centre[0] + dx * share, centre[1] + dy * share];
  }
  if (Math.abs(dx) <= half[0]) return [from[0], centre[1] + Math.sign(dy) * half[1]];
  if (Math.abs(dy) <= half[1]) return [centre[0] + Math.sign(dx) * half[0], from[1]];
  const share = Math.min(dx ? half[0] / Math.abs(dx) : Infinity, dy ? half[1] / Math.abs(dy) : Infinity);
  return [centre[0] + dx * share, centre[1] + dy * share];
}

/** A path through points whose corners are rounded, cut short by `gap` at its end for the arrowhead. */
export function roundedPath(points, radius, gap = 0) {
  const line = points.filter((point, at) => at === 0 || distance(point, points[at - 1]) > 0.01);
  if (line.length < 2) return "";
  const last = line.length - 1;
  line[last] = towards(line[last], line[last - 1], gap);
  let path = `M${text(line[0])}`;
  for (let at = 1; at < last; at += 1) {
    const room = Math.min(radius, distance(line[at - 1], line[at]) / 2, distance(line[at], line[at + 1]) / 2);
    const before = towards(line[at], line[at - 1], room);
    const after = towards(line[at], line[at + 1], room);
    path += `L${text(before)}Q${text(line[at])} ${text(after)}`;
  }
  return `${path}L${text(line[last])}`;
}

/** A filled triangle whose tip lies on `tip`, coming from `from`. */
export function arrowhead(tip, from, size) {
  const length = distance(tip, from) || 1;
  const [ux, uy] = [(tip[0] - from[0]) / length, (tip[1] - from[1]) / length];
  const base = [tip[0] - ux * size, tip[1] - uy * size];
  const wing = size * 0.46;
  return `M${text(tip)}L${text([base[0] - uy * wing, base[1] + ux * wing])}L${text([base[0] + uy * wing, base[1] - ux * wing])}Z`;
}

const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

function towards(from, to, by) {
  const length = distance(from, to);
  if (!length) return [...from];
  const share = Math.min(by / length, 1);
  return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
}

const text = ([x, y]) => `${Math.round(x * 100) / 100} ${Math.round(y * 100) / 100}`;

/**
 * Place a diagram in a box of width x height pixels. `layout` holds positions on its own grid (width, height), which is
 * stretched to the box; nodes keep their size in pixels. Returns nodes by id, wires with their points, and labels.
 */
export function placeDiagram(diagram, layout, width, height) {
  const scale = ([x, y]) => [(x * width) / layout.width, (y * height) / layout.height];
  const nodes = new Map();
  for (const node of diagram.nodes) {
    nodes.set(node.id, { ...node, at: scale(layout.nodes[node.id]), half: halfSize(node.kind, node.label) });
  }
  const wires = diagram.wires.map((wire) => {
    const from = nodes.get(wire.from);
    const to = nodes.get(wire.to);
    const bends = (layout.wires[`${wire.from}>${wire.to}`] ?? []).map(scale);
    const before = bends.length ? bends[bends.length - 1] : from.at;
    const start = border(from.at, from.half, bends.length ? bends[0] : to.at);
    return { ...wire, points: [start, ...bends, border(to.at, to.half, before)] };
  });
  const labels = Object.entries(layout.labels).map(([carries, [x, y, side, bare]]) => ({
    carries,
    at: scale([x, y]),
    side,
    bare: bare === "bare",
  }));
  return { nodes, wires, labels, dots: (layout.dots ?? []).map(({ at, carries }) => ({ at: scale(at), carries })) };
}
