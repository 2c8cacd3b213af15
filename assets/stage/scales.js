// Colour scales. Each is fixed by the role of a symbol and never by the values in view.

import { clamp } from "./numbers.js";

const STEPS = 256;

/** "#rrggbb", "#rgb" or "rgb(r, g, b)" -> [r, g, b], 0..255. */
export function parseColour(text) {
  const value = text.trim();
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})$/i.exec(value);
  if (hex) {
    const digits = hex[1].length === 3 ? [...hex[1]].map((digit) => digit + digit).join("") : hex[1];
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  }
  const numbers = value.match(/[\d.]+/g);
  return numbers && numbers.length >= 3 ? numbers.slice(0, 3).map(Number) : [128, 128, 128];
}

/** Relative luminance as in WCAG, 0 black .. 1 white. */
export function luminance(colour) {
  const [r, g, b] = colour.map(toLinear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const toLinear = (byte) => {
  const part = byte / 255;
  return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
};

const toByte = (part) => {
  const value = clamp(part, 0, 1);
  return Math.round(255 * (value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055));
};

// Ottosson's OKLab: equal steps in it look equally large, so a value of 0.5 looks half way.
function toLab(colour) {
  const [r, g, b] = colour.map(toLinear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromLab([lightness, a, b]) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    toByte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    toByte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    toByte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/** The colour a share of the way from one colour to another. */
function mix(from, to, share) {
  const a = toLab(from);
  const b = toLab(to);
  return fromLab(a.map((part, at) => part + (b[at] - part) * share));
}

/** Where a value lies on a scale, 0..1: from `low` to `high`, clipped at the ends. */
function position(value, [low, high]) {
  return clamp((value - low) / (high - low), 0, 1);
}

/**
 * A table of colours over a fixed interval. `stops` are evenly spaced colours: paper and hue for a gate, blue, paper and
 * vermilion for a signed value.
 */
export function createRamp(interval, stops) {
  const table = new Uint8ClampedArray(3 * STEPS);
  for (let at = 0; at < STEPS; at += 1) {
    const along = (at / (STEPS - 1)) * (stops.length - 1);
    const first = Math.min(Math.floor(along), stops.length - 2);
    table.set(mix(stops[first], stops[first + 1], along - first), 3 * at);
  }
  const place = (value) => 3 * Math.round((STEPS - 1) * position(value, interval));
  return {
    interval,
    stops,
    css(value) {
      if (Number.isNaN(value)) return "transparent";
      const at = place(value);
      return `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`;
    },
    /** Which of two colours stands out more on the colour of a value: 0 or 1. */
    clearer(value, texts) {
      if (Number.isNaN(value)) return 0;
      const at = place(value);
      const ground = luminance([...table.slice(at, at + 3)]) + 0.05;
      const [first, second] = texts.map((text) => luminance(text) + 0.05).map((text) => Math.max(text / ground, ground / text));
      return first >= second ? 0 : 1;
    },
    /** Write the colour of a value into four bytes of an image; NaN stays transparent. */
    paint(value, image, at) {
      if (Number.isNaN(value)) return;
      const from = place(value);
      image[at] = table[from];
      image[at + 1] = table[from + 1];
      image[at + 2] = table[from + 2];
      image[at + 3] = 255;
    },
  };
}

/** How strong a value is on its scale, 0..1: what decides the thickness of a wire. */
export function strength(value, [low, high]) {
  if (Number.isNaN(value)) return 0;
  return clamp(Math.abs(value) / Math.max(Math.abs(low), Math.abs(high)), 0, 1);
}

/**
 * The ramps of a trace, made from the colours that the page's theme gives now.
 * `of(name)` colours values of a symbol or of a part of an equation, `difference(name)` their change against the baseline.
 */
export function createScales(trace, colourOf) {
  const paper = colourOf("--paper");
  const signed = [colourOf("--negative"), paper, colourOf("--positive")];
  const made = new Map();
  const remember = (key, make) => {
    if (!made.has(key)) made.set(key, make());
    return made.get(key);
  };
  const scaleOf = (name) => trace.header.scales[name] ?? trace.header.scales[trace.base(name)];
  const limitsOf = (name) => scaleOf(name)?.interval ?? [-1, 1];
  return {
    limitsOf,
    of(name) {
      const limits = limitsOf(name);
      const role = scaleOf(name)?.role ?? "state";
      const unsigned = scaleOf(name)?.ramp === "paper" || limits[0] === 0;
      return remember(unsigned ? `u ${role} ${limits}` : `s ${limits}`, () =>
        createRamp(limits, unsigned ? [paper, colourOf(`--role-${role}`)] : signed));
    },
    difference(name) {
      const reach = Math.max(...limitsOf(name).map(Math.abs));
      return remember(`s ${[-reach, reach]}`, () => createRamp([-reach, reach], signed));
    },
  };
}
