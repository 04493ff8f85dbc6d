// Numbers as text, and the page's colours.

const NS = { us: 1e3, ms: 1e6, s: 1e9 };

function time(ns) {
  const units = [["min", 60e9], ["s", NS.s], ["ms", NS.ms], ["µs", NS.us], ["ns", 1]];
  const [unit, size] = units.find(([, each]) => Math.abs(ns) >= each) ?? units.at(-1);
  return `${number(ns / size)} ${unit}`;
}

function bytes(count) {
  const units = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
  const [unit, size] = units.find(([, each]) => count >= each) ?? units.at(-1);
  return `${number(count / size)} ${unit}`;
}

/** Three significant digits; whole numbers in full. */
function number(value) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

function whole(value) {
  return Math.round(value).toLocaleString("en");
}

function plural(count, one, many = `${one}s`) {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** The colours of the theme now, by the name of their CSS variable. */
function themeColours() {
  const style = getComputedStyle(document.body);
  const names = [
    "ink", "muted", "grid", "paper", "page", "line1", "line2", "empty",
    "host", "collection", "wear", "folding", "padding", "packing", "mapping",
    "read", "program", "erase", "gather", "trim", "flush",
  ];
  const colours = Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
  colours.streams = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => style.getPropertyValue(`--s${n}`).trim());
  return colours;
}

/** `count` colours from dark blue to yellow that differ in lightness for every kind of sight. */
function ramp(count) {
  const stops = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 181, 98], [254, 232, 56]];
  return Array.from({ length: count }, (_, index) => {
    const at = (index / Math.max(1, count - 1)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    const mix = stops[low].map((part, c) => Math.round(part + (stops[low + 1][c] - part) * (at - low)));
    return `rgb(${mix.join(",")})`;
  });
}

/** A canvas with the pixels of the screen, drawn in CSS pixels. Null while it is hidden. */
function surface(canvas) {
  const box = canvas.getBoundingClientRect();
  if (!box.width) return null;
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(box.width * scale), Math.round(box.height * scale)];
  const resized = canvas.width !== width || canvas.height !== height;
  if (resized) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return { pen, width: box.width, height: box.height, resized };
}
