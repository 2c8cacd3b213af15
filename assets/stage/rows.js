// A row of numbers as a row of coloured marks.

/** Draw numbers side by side into a canvas of [width, height] CSS pixels. */
export function paintRow(canvas, numbers, ramp, [width, height]) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ink = canvas.getContext("2d");
  const place = (at) => Math.round((at * canvas.width) / numbers.length);
  numbers.forEach((number, at) => {
    ink.fillStyle = ramp.css(number);
    ink.fillRect(place(at), 0, place(at + 1) - place(at), canvas.height);
  });
}
