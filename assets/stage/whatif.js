// What if: set a symbol to a value on some steps and units. The only thing the stage ever tells the server.

import { createAsking } from "./asking.js";
import { choice, element, sentence, setText } from "./dom.js";
import { colourSymbols, importMath } from "./formula.js";
import { clamp, formatShort, parseUnits } from "./numbers.js";

/** The change that the controls describe, in the form of the header's `interventions`. */
export function describeChange({ symbol, value, steps, step, units, unit, chosen }) {
  const spans = { one: [step, step + 1], on: [step, null], all: [0, null] };
  const [from, to] = spans[steps];
  return { symbol, value, from, to, units: units === "all" ? null : units === "chosen" ? chosen : [unit] };
}

const sameScope = (a, b) =>
  a.symbol === b.symbol && a.from === b.from && a.to === b.to && JSON.stringify(a.units) === JSON.stringify(b.units);

/** The list with a change added; one on the very same symbol, steps and units is replaced. */
export function withChange(list, change) {
  return [...list.filter((old) => !sameScope(old, change)), change];
}

/** "steps 5 to 9, unit 3" in the words of the page. Steps count from 1 on the screen, units from 0. */
export function describeScope(change, words) {
  const first = change.from ?? 0;
  const open = change.to === null || change.to === undefined;
  let when = sentence(words.steps_some, { first: first + 1, last: change.to });
  if (open) when = first === 0 ? words.all_steps : sentence(words.steps_from, { first: first + 1 });
  else if (change.to === first + 1) when = sentence(words.step_one, { step: first + 1 });
  const who = change.units ? sentence(words.units_some, { units: change.units.join(words.comma) }) : words.all_units;
  return when + words.comma + who;
}

const bare = (symbol) => symbol.slice(symbol.lastIndexOf(".") + 1);

/** "layer 2" after a comma where there are several; nothing where there is one. */
function layerOf(symbol, trace, words) {
  const at = trace.layers.findIndex(({ scope }) => scope && symbol.startsWith(scope));
  return at < 0 ? "" : words.comma + sentence(words.layer, { layer: trace.layers[at].label });
}

export function createWhatIf(parent, context) {
  const { store, words } = context;
  const heading = element("h3", { text: words.what_if });
  const symbolBox = element("span", { class: "symbol" });
  const slider = element("input", { type: "range", step: "any", "aria-label": words.new_value });
  const field = element("input", { type: "number", step: "any", "aria-label": words.new_value });
  const low = element("span", { class: "end" });
  const high = element("span", { class: "end" });
  const chosen = element("input", { type: "text", class: "units", "aria-label": words.chosen_units, placeholder: "3, 7, 12-15" });
  const apply = element("button", { type: "button", class: "apply", text: words.apply });
  const problem = element("p", { class: "problem", role: "alert", hidden: true });
  const active = element("ul", { class: "changes" });
  const reset = element("button", { type: "button", class: "reset", text: words.reset, onclick: () => tell([]) });
  const none = element("p", { class: "note", text: words.not_changeable, hidden: true });
  let trace = null;
  let symbol = null;
  let fresh = true; // a new trace: the limits are others, what the learner has put in is not
  let limits = [0, 1];
  let scope = { steps: "all", units: "one" };

  const steps = choice(words.which_steps, [["one", words.this_step], ["on", words.from_here], ["all", words.all_steps]], (value) => setScope({ steps: value }));
  const units = choice(words.which_units, [["one", words.this_unit], ["all", words.all_units], ["chosen", words.chosen]], (value) => setScope({ units: value }));
  const controls = element(
    "div",
    { class: "controls" },
    element("div", { class: "value" }, symbolBox, element("span", { class: "equals", text: "=" }), field, low, slider, high),
    steps.node,
    units.node,
    chosen,
    apply,
  );
  const bottom = element("div", { class: "active", hidden: true }, element("h4", { text: words.active }), active, reset);
  const node = element("section", { class: "what-if", "aria-label": words.what_if }, heading, controls, problem, none, bottom);
  parent.append(node);

  function setScope(patch) {
    scope = { ...scope, ...patch };
    steps.show(scope.steps);
    units.show(scope.units);
    chosen.hidden = scope.units !== "chosen";
    if (patch.units === "chosen") chosen.focus();
  }

  const { ask, settle } = createAsking(node, context);
  const tell = (interventions) => ask(trace, interventions);

  function complain(text) {
    problem.hidden = !text;
    setText(problem, text ?? "");
  }

  slider.oninput = () => {
    field.value = formatted(Number(slider.value));
  };
  field.oninput = () => {
    slider.value = field.value;
  };
  // Three decimals are what the screen shows; what is sent is what stands in the field.
  const formatted = (value) => String(Math.round(value * 1000) / 1000);

  apply.onclick = () => {
    const typed = field.value.trim() === "" ? NaN : Number(field.value);
    if (!Number.isFinite(typed)) return complain(words.bad_value);
    const value = clamp(typed, ...limits);
    field.value = String(value);
    const list = scope.units === "chosen" ? parseUnits(chosen.value, trace.units) : null;
    if (scope.units === "chosen" && !list) return complain(sentence(words.bad_units, { last: trace.units - 1 }));
    complain(null);
    const { step, unit } = store.get();
    const inLayer = trace.layers[trace.layer].scope;
    return tell(withChange(trace.header.interventions, describeChange({ symbol: inLayer + symbol, value, ...scope, step, unit, chosen: list })));
  };
  chosen.onkeydown = field.onkeydown = (event) => {
    if (event.key === "Enter") apply.onclick();
  };

  function mathOf(name) {
    const formula = importMath(trace.header.symbols[name].mathml);
    colourSymbols(formula, () => {});
    return formula;
  }

  function showChanges() {
    const list = trace.header.interventions;
    bottom.hidden = !list.length;
    active.replaceChildren(
      ...list.map((change, at) => {
        const drop = element("button", {
          type: "button",
          class: "drop",
          text: "\u00d7",
          title: words.remove,
          "aria-label": words.remove,
          onclick: () => tell(list.filter((_, other) => other !== at)),
        });
        const text = element("span", { text: ` = ${formatShort(change.value)}  ` });
        const where = element("span", { class: "scope", text: describeScope(change, words) + layerOf(change.symbol, trace, words) });
        return element("li", {}, mathOf(bare(change.symbol)), text, where, drop);
      }),
    );
  }

  return {
    node,
    settle,
    load(next) {
      trace = next;
      fresh = true;
      settle();
      showChanges();
      setScope({});
    },
    update(state) {
      if (state.symbol === symbol && !fresh) return;
      const same = state.symbol === symbol && field.value !== "";
      symbol = state.symbol;
      fresh = false;
      const able = Boolean(trace.header.symbols[symbol].changeable);
      controls.hidden = !able;
      none.hidden = able;
      complain(null);
      if (!able) return;
      limits = context.scales().limitsOf(symbol);
      [slider.min, slider.max] = limits;
      [field.min, field.max] = limits;
      // A gate starts fully open and a signed value at nothing: the two changes one asks for first.
      if (!same) field.value = limits[0] === 0 ? "1" : "0";
      slider.value = field.value;
      setText(low, formatShort(limits[0]));
      setText(high, formatShort(limits[1]));
      symbolBox.replaceChildren(mathOf(symbol));
    },
  };
}
