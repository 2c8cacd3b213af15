// Small helpers to build elements. Text only ever enters the page as a text node.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Set a text only when it differs: an unchanged text node costs no layout. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** `sentence("step {step}", {step: 3})` -> "step 3"; an unknown name stays visible, so that a test can find it. */
export function sentence(template, values = {}) {
  return template.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** A row of buttons of which one is pressed. Returns the row and `show(value)`; `pick(value)` is called on a press. */
export function choice(label, options, pick) {
  const buttons = new Map();
  const row = element("div", { class: "choice", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const button = element("button", { type: "button", text, "aria-pressed": "false", onclick: () => pick(value) });
    buttons.set(value, button);
    row.append(button);
  }
  return {
    node: row,
    buttons,
    show(value) {
      for (const [own, button] of buttons) button.setAttribute("aria-pressed", String(own === value));
    },
  };
}
