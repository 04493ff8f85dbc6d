// Where the units of a file are: one stroke a unit, in the order of the file, coloured by its die.

const UNITS_SHOWN = 1024;
const READ_UNITS = 256;
const PLACES = ["not mapped", "in the write buffer", "in flash"];

class UnitMap {
  constructor(canvas) {
    this.canvas = canvas;
  }

  /** Draws the first units of the file; returns the flash pages that its first 1 MiB is on. */
  draw(twin, fileUnits, dies, colours) {
    const room = surface(this.canvas);
    if (!room) return null;
    const count = Math.min(UNITS_SHOWN, fileUnits);
    const words = twin.units(0, count);
    const { pen, width, height } = room;
    pen.clearRect(0, 0, width, height);
    const perRow = READ_UNITS;
    const rows = Math.ceil(count / perRow);
    const tall = height / rows;
    const shades = ramp(dies);
    const pages = new Set();
    for (let unit = 0; unit < count; unit += 1) {
      const place = words[2 * unit] >>> 16;
      const die = words[2 * unit] & 0xffff;
      if (unit < READ_UNITS && place === 2) pages.add(die * 2 ** 32 + words[2 * unit + 1]);
      const left = Math.round(((unit % perRow) * width) / perRow);
      const right = Math.round((((unit % perRow) + 1) * width) / perRow);
      pen.fillStyle = place === 2 ? shades[die] : place === 1 ? colours.host : colours.empty;
      pen.fillRect(left, Math.floor(unit / perRow) * tall, right - left, tall - 2);
    }
    return pages.size;
  }
}
