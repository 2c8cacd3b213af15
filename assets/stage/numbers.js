// How a number is written on the stage: the twin of `format_number` in engine/notation.py.

export const MINUS = "\u2212";
const HUGE = 1e7; // from here on float32 has no digits left for what stands behind the point
const EXACT = 7; // digits that float32 has

/** A number as a power of ten: 2.8e7. */
export function formatPower(size, digits = 1) {
  const [mantissa, exponent] = size.toExponential(digits).split("e");
  return `${mantissa}e${exponent.replace("-", MINUS).replace("+", "")}`;
}

/**
 * Three decimals, ties away from zero, a true minus sign; from 1e4 no more digits than float32 has. An exponent where three
 * decimals would show nothing, and from 1e7.
 * `toFixed` and `toExponential` round the exact binary value and take the larger of two neighbours, so applied to the
 * absolute value they round ties away from zero.
 */
export function formatNumber(value, digits = 3) {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 ? MINUS : "";
  const size = Math.abs(value);
  if (size === Infinity) return `${sign}\u221e`;
  if (size > 0 && size < 0.5 * 10 ** -digits) return sign + formatPower(size);
  if (size >= HUGE) return sign + formatPower(size, digits);
  return `${sign}${size.toFixed(size < 1e4 ? digits : Math.min(digits, EXACT - String(Math.trunc(size)).length))}`;
}

/** With its sign always shown, as a difference is. */
export function formatDifference(value, digits = 3) {
  const text = formatNumber(value, digits);
  return value > 0 ? `+${text}` : text;
}

/** A number as short as it is exact: for limits of a scale and values that somebody typed. Long ones would not fit beside a scale. */
export function formatShort(value) {
  const short = Number(value.toPrecision(6));
  const text = Math.abs(short) >= 1e6 ? short.toExponential() : String(short);
  return text.replace("e+", "e").replaceAll("-", MINUS);
}

/** A probability in percent, with more digits where it is small. */
export function formatPercent(value) {
  const percent = 100 * value;
  if (percent > 0 && percent < 0.05) return "<0.1";
  return percent.toFixed(1);
}

export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/** "3, 7 12-14" -> [3, 7, 12, 13, 14]: units between 0 and count - 1, sorted, each once; null when nothing is readable. */
export function parseUnits(text, count) {
  const found = new Set();
  for (const part of text.split(/[\s,;.]+/).filter(Boolean)) {
    const match = /^(\d{1,6})(?:[-\u2013\u2212](\d{1,6}))?$/.exec(part);
    if (!match) return null;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    if (first > last || last >= count) return null;
    for (let unit = first; unit <= last; unit += 1) found.add(unit);
  }
  return found.size ? [...found].sort((a, b) => a - b) : null;
}
