// Formulas: MathML that the engine made, each symbol an element; numbers are put into its slots.

import { MINUS, formatNumber } from "./numbers.js";
import { element } from "./dom.js";

const MATH = "http://www.w3.org/1998/Math/MathML";
const BOLD_CAPITAL = 0x1d400;
const BOLD_SMALL = 0x1d41a;

/** U+1D400 "mathematical bold A" -> "A"; null for anything else. */
function plainLetter(text) {
  const code = text.codePointAt(0);
  if (code === undefined || text.length !== 2) return null;
  if (code >= BOLD_CAPITAL && code < BOLD_CAPITAL + 26) return String.fromCharCode(65 + code - BOLD_CAPITAL);
  if (code >= BOLD_SMALL && code < BOLD_SMALL + 26) return String.fromCharCode(97 + code - BOLD_SMALL);
  return null;
}

/** Parse a MathML string into an element of this document. Each letter gets its face: bold, italic variable or upright. */
export function importMath(source) {
  const text = source.startsWith("<math") ? source : `<math xmlns="${MATH}"><mrow>${source}</mrow></math>`;
  const parsed = new DOMParser().parseFromString(text, "application/xml");
  if (parsed.querySelector("parsererror")) return element("span", { class: "math-error", text: "?" });
  const formula = document.importNode(parsed.documentElement, true);
  for (const letter of formula.querySelectorAll("mi")) {
    const plain = plainLetter(letter.textContent);
    if (plain !== null) letter.textContent = plain;
    const single = [...letter.textContent].length === 1;
    // The face is chosen by the style sheet: the letters' own shapes exist in few fonts.
    letter.setAttribute("mathvariant", "normal");
    letter.setAttribute("class", plain !== null ? "bold" : single ? "variable" : "upright");
  }
  return formula;
}

/** Give each symbol of a formula the colour of its role, and hand it to `seen(symbol, element)`. */
export function colourSymbols(formula, seen) {
  for (const symbol of formula.querySelectorAll("[data-symbol]")) {
    symbol.style.setProperty("--own", `var(--text-${symbol.getAttribute("data-role")})`);
    seen(symbol.getAttribute("data-symbol"), symbol);
  }
}

/**
 * Put numbers into the slots of a plugged-in formula. `value(slot)` gives each number. A plus before a negative number
 * becomes a minus and the slot shows the size; elsewhere a negative number is wrapped in parentheses, unless nothing stands
 * before it.
 */
export function fillSlots(formula, value) {
  const signed = new Set();
  for (const operator of formula.querySelectorAll("[data-sign-of]")) {
    const negative = value(operator.getAttribute("data-sign-of")) < 0;
    operator.textContent = negative ? MINUS : "+";
    const slot = operator.nextElementSibling;
    if (slot) signed.add(slot);
  }
  for (const slot of formula.querySelectorAll("[data-slot]")) {
    const number = value(slot.getAttribute("data-slot"));
    if (Number.isNaN(number)) {
      slot.textContent = "\u2026"; // this cell owes nothing to it
      continue;
    }
    const text = formatNumber(signed.has(slot) ? Math.abs(number) : number);
    const wrapped = slot.hasAttribute("data-wrap") && number < 0 && !signed.has(slot) && !leads(slot);
    slot.textContent = wrapped ? `(${text})` : text;
  }
}

/** Whether nothing, or only an opening parenthesis, stands before a slot: there a minus sign cannot be misread. */
function leads(slot) {
  if (slot.closest("msup")) return false;
  const before = slot.previousElementSibling;
  return before === null || before.textContent === "(" || before.textContent === "=";
}
