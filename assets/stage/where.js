// The place of a number in words: "step 3 of 40" of a recurrent run, "head 2, query 3, key 5" where all positions are there.

import { sentence } from "./dom.js";

/** Where the learner looks now: the cell under the pointer if it is on one, else the cell that is chosen. */
export const seen = (state) => (state.peek ? { ...state, ...state.peek } : state);

/** `template` is the sentence of a recurrent run; elsewhere the axes of the chosen symbol decide what is told. */
export function whereIs(trace, words, place, template, more = {}) {
  const { step, unit } = place;
  if (!trace.parts) {
    const token = trace.header.tokens[step];
    return sentence(template, { step: step + 1, steps: trace.steps, token, unit, units: trace.units, ...more });
  }
  const told = whereParts(trace, words, place, trace.parts(place.symbol));
  return more.name ? `${more.name} ${more.value}. ${told}` : told;
}

/** Head, query, key, unit and cut in words: those of `parts` only. */
export function whereParts(trace, words, place, parts) {
  const { labels } = trace.header;
  const values = {
    head: place.head + 1,
    head_name: labels.N?.[place.head] ?? "",
    step: place.step + 1,
    key: place.key + 1,
    unit: labels.D?.[place.unit] ?? place.unit,
    cut: place.cut,
    token: labels.T?.[place.step] ?? place.step + 1,
    key_token: labels.S?.[place.key] ?? place.key + 1,
  };
  const templates = { head: words.at_head, step: words.at_step, key: words.at_key, unit: words.at_unit, cut: words.at_cut };
  const told = Object.entries(templates).filter(([part]) => parts.has(part));
  return told.map(([, text]) => sentence(text, values)).join(words.comma);
}
