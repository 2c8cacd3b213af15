// The next token: the most likely ones at the present step, the one that really follows, and how a change moved them.

import { element, sentence, setText } from "./dom.js";
import { formatDifference, formatPercent } from "./numbers.js";
import { tokenKind } from "./timeline.js";

const BARS = 8;

/** The indices of the largest values, largest first; equal ones in order of index, so that ties never flicker. */
export function largest(values, count) {
  return Array.from(values, (value, index) => [value, index])
    .sort((a, b) => b[0] - a[0] || a[1] - b[1])
    .slice(0, count)
    .map(([, index]) => index);
}

/** What to show: the top tokens, and the actual next one after them when it is not among them; its rank counts from 1. */
export function bars(row, actual, count = BARS) {
  const top = largest(row, Math.min(count, row.length));
  const inside = actual === null || top.includes(actual);
  const rank = actual === null ? null : 1 + row.reduce((above, p, at) => above + (p > row[actual] || (p === row[actual] && at < actual)), 0);
  return { shown: inside ? top : [...top.slice(0, count - 1), actual], rank };
}

export function createDistribution(parent, context) {
  const { words } = context;
  const title = element("h3", { text: words.next_token });
  const note = element("p", { class: "note" });
  const list = element("ol", { class: "bars-list" });
  const node = element("section", { class: "distribution", "aria-label": words.next_token }, title, list, note);
  parent.append(node);
  let trace = null;
  const rows = Array.from({ length: BARS }, () => {
    const token = element("span", { class: "token" });
    const bar = element("span", { class: "fill" });
    const before = element("span", { class: "before" });
    const share = element("span", { class: "share" });
    const change = element("span", { class: "change" });
    const row = element("li", {}, token, element("span", { class: "track" }, bar, before), share, change);
    list.append(row);
    return { row, token, bar, before, share, change };
  });

  return {
    node,
    load(next) {
      trace = next;
      node.hidden = !trace.header.arrays.P;
      node.classList.toggle("compared", "baseline/P" in trace.header.arrays);
    },
    update({ step }) {
      if (node.hidden) return;
      const now = trace.row("P", step);
      const base = trace.row("P", step, true);
      const actual = step + 1 < trace.steps ? trace.header.ids[step + 1] : null;
      const { shown, rank } = bars(now, actual);
      rows.forEach(({ row, token, bar, before, share, change }, at) => {
        const index = shown[at];
        row.hidden = index === undefined;
        if (row.hidden) return;
        row.classList.toggle("actual", index === actual);
        row.setAttribute("data-index", String(index));
        setText(token, trace.header.vocabulary[index]);
        token.className = `token ${tokenKind(trace.header.vocabulary[index])}`;
        bar.style.width = `${100 * now[index]}%`;
        setText(share, formatPercent(now[index]));
        before.hidden = !base;
        if (base) {
          before.style.width = `${100 * base[index]}%`;
          const moved = 100 * (now[index] - base[index]);
          setText(change, Math.abs(moved) < 0.05 ? "" : formatDifference(moved, 1));
        } else setText(change, "");
      });
      const next = actual === null ? "" : trace.header.tokens[step + 1];
      setText(note, actual === null ? words.text_ends : sentence(words.actual, { token: next, rank, count: now.length }));
    },
  };
}
