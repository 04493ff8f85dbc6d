// The superblocks as cells: how full of valid units each is, and the meaning of its colour.

const STATES = ["free", "open", "closed", "victim", "empty", "retired"];
const CAUSES = ["host", "collection", "wear", "folding", "padding", "packing"];
const CAUSE_WORDS = {
  host: "host write", collection: "garbage collection", wear: "wear levelling",
  folding: "folding the SLC cache", padding: "padding", packing: "packing", mapping: "map pages",
};
const AGES = 9;
const MOVE_MS = 900;
const MOVES_SHOWN = 48;

/** One superblock's four words. */
function cellOf(cells, index) {
  const [valid, erases, flags, age] = cells.subarray(4 * index, 4 * index + 4);
  return {
    valid, erases, age,
    state: flags & 255,
    slc: (flags >> 8) & 1,
    cause: (flags >> 16) & 255,
    stream: flags >>> 24,
  };
}

class Cells {
  constructor(canvas, overlay) {
    this.canvas = canvas;
    this.overlay = overlay;
    this.drawn = new Int32Array(0);
    this.clear();
    this.cursor = -1;
  }

  clear() {
    this.arrived = [];
    this.moving = [];
  }

  /** Keeps the moves that are new in a frame. */
  take(frame) {
    for (let at = Math.max(0, frame.moves.length - 8 * MOVES_SHOWN); at < frame.moves.length; at += 8) {
      const [from, to, units, cause] = frame.moves.subarray(at, at + 4);
      this.arrived.push({ from, to, units, cause });
    }
    this.arrived = this.arrived.slice(-MOVES_SHOWN);
  }

  /** All cells are drawn again: the colours, the size or what a colour means has changed. */
  forget() {
    this.drawn = new Int32Array(0);
  }

  layout(width, height, count) {
    let size = Math.max(4, Math.floor(Math.sqrt((width * height) / count)));
    while (size > 4 && Math.floor(width / size) * Math.floor(height / size) < count) size -= 1;
    size = Math.min(size, 48);
    this.size = size;
    this.columns = Math.max(1, Math.min(count, Math.floor(width / size)));
    this.left = Math.floor((width - this.columns * size) / 2);
  }

  place(index) {
    const column = index % this.columns;
    const row = Math.floor(index / this.columns);
    return [this.left + column * this.size, row * this.size];
  }

  /** Draws what has changed since the last frame; returns the sums of what is drawn. */
  draw(frame, description, { colours, meaning, reduced }, now) {
    const count = frame.cells.length / 4;
    const room = surface(this.canvas);
    if (!room) return null;
    if (room.resized || this.drawn.length !== count || this.meaning !== meaning) {
      this.meaning = meaning;
      this.drawn = new Int32Array(count).fill(-1);
      this.layout(room.width, room.height, count);
      room.pen.clearRect(0, 0, room.width, room.height);
      this.paint = palette(meaning, colours);
    }
    const sums = { valid: 0, erases: 0, free: 0 };
    const units = description.superblock_units;
    const inside = this.size - (this.size > 7 ? 2 : 1);
    let wear = 1;
    for (let at = 1; at < frame.cells.length; at += 4) wear = Math.max(wear, frame.cells[at]);
    for (let index = 0; index < count; index += 1) {
      const cell = cellOf(frame.cells, index);
      sums.valid += cell.valid;
      sums.erases += cell.erases;
      if (cell.state === 0) sums.free += 1;
      const level = cell.valid ? Math.max(1, Math.round((inside * cell.valid) / units)) : 0;
      const shade = this.shade(cell, meaning, units, frame.units, wear);
      const key = ((level * 64 + shade) * 8 + cell.state) * 2 + cell.slc;
      if (this.drawn[index] === key) continue;
      this.drawn[index] = key;
      this.cell(room.pen, index, { cell, level, inside, fill: this.paint[shade] }, colours);
    }
    this.drawMoves(colours, reduced, now);
    return sums;
  }

  /** The index of a cell's colour. */
  shade(cell, meaning, full, hostUnits, wear) {
    if (meaning === "cause") return cell.cause === 255 ? 6 : cell.cause;
    if (meaning === "stream") return cell.stream % 8;
    if (meaning === "erases") return Math.round(((AGES - 1) * cell.erases) / wear);
    if (meaning === "age") {
      const share = Math.log2(1 + (255 * cell.age) / (2 * hostUnits)) / 8;
      return Math.min(AGES - 1, Math.round((AGES - 1) * share));
    }
    return Math.min(AGES - 1, Math.floor((AGES * cell.valid) / (full + 1)));
  }

  cell(pen, index, { cell, level, inside, fill }, colours) {
    const [left, top] = this.place(index);
    const state = STATES[cell.state];
    pen.fillStyle = colours.paper;
    pen.fillRect(left, top, this.size, this.size);
    pen.fillStyle = state === "free" ? colours.page : colours.empty;
    pen.fillRect(left, top, inside, inside);
    pen.fillStyle = fill;
    pen.fillRect(left, top + inside - level, inside, level);
    if (this.size < 8) return;
    pen.lineWidth = state === "victim" ? 2.5 : 1.5;
    if (state === "free") {
      pen.lineWidth = 1;
      pen.strokeStyle = colours.grid;
    } else if (state === "victim" || state === "empty") {
      pen.strokeStyle = colours.collection;
      if (state === "empty") pen.setLineDash([3, 2]);
    } else if (state === "open") {
      pen.strokeStyle = colours.ink;
    } else if (state === "retired") {
      pen.strokeStyle = colours.muted;
      pen.beginPath();
      pen.moveTo(left, top);
      pen.lineTo(left + inside, top + inside);
      pen.stroke();
    }
    if (state !== "closed") pen.strokeRect(left + 1, top + 1, inside - 2, inside - 2);
    pen.setLineDash([]);
    if (cell.slc) {
      pen.fillStyle = colours.ink;
      pen.fillRect(left + inside / 2 - 2, top + 2, 4, 3);
    }
  }

  /** Units that move: dots from the superblock they leave to the one they go to. */
  drawMoves(colours, reduced, now) {
    const room = surface(this.overlay);
    if (!room) return;
    room.pen.clearRect(0, 0, room.width, room.height);
    for (const move of this.arrived.splice(0)) this.moving.push({ ...move, since: now });
    this.moving = this.moving.filter((each) => now - each.since < MOVE_MS).slice(-MOVES_SHOWN);
    for (const each of this.moving) this.move(room.pen, each, colours, reduced, now);
    if (this.cursor >= 0) {
      const [left, top] = this.place(this.cursor);
      room.pen.strokeStyle = colours.ink;
      room.pen.lineWidth = 3;
      room.pen.strokeRect(left - 1.5, top - 1.5, this.size + 2, this.size + 2);
    }
  }

  move(pen, { from, to, units, cause, since }, colours, reduced, now) {
    const half = this.size / 2;
    const [[x0, y0], [x1, y1]] = [this.place(from), this.place(to)];
    const part = reduced ? 1 : Math.min(1, (now - since) / (0.7 * MOVE_MS));
    const eased = part * part * (3 - 2 * part);
    pen.globalAlpha = 1 - Math.max(0, (now - since) / MOVE_MS - 0.7) / 0.3;
    pen.strokeStyle = pen.fillStyle = colours[CAUSES[cause]] ?? colours.ink;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x0 + half, y0 + half);
    pen.lineTo(x1 + half, y1 + half);
    pen.stroke();
    pen.beginPath();
    const radius = Math.min(6, 2 + Math.sqrt(units) / 2);
    pen.arc(x0 + half + (x1 - x0) * eased, y0 + half + (y1 - y0) * eased, radius, 0, 7);
    pen.fill();
    pen.globalAlpha = 1;
  }

  /** The superblock at a point of the canvas; -1 outside of them. */
  at(x, y, count) {
    const column = Math.floor((x - this.left) / this.size);
    const index = Math.floor(y / this.size) * this.columns + column;
    return column >= 0 && column < this.columns && index < count ? index : -1;
  }
}

/** The colours by `shade`. */
function palette(meaning, colours) {
  if (meaning === "cause") return [...CAUSES.map((name) => colours[name]), colours.grid];
  if (meaning === "stream") return colours.streams;
  return ramp(AGES);
}

/** What a superblock is, in words. */
function cellWords(frame, description, index) {
  const cell = cellOf(frame.cells, index);
  const parts = [`superblock ${index}: ${STATES[cell.state]}${cell.slc ? ", SLC cache" : ""}`];
  parts.push(`${whole(cell.valid)} of ${whole(description.superblock_units)} units valid`);
  parts.push(`erased ${plural(cell.erases, "time")}`);
  if (cell.cause !== 255) {
    parts.push(`last page written for: ${CAUSE_WORDS[CAUSES[cell.cause]]}`);
    parts.push(`${whole(cell.age)} host units ago`);
  }
  if (cell.stream) parts.push(`stream ${cell.stream}`);
  return parts;
}

/** The legend of a meaning: [text, colour] pairs. */
function legendOf(meaning, colours) {
  if (meaning === "cause") return CAUSES.slice(0, 4).map((name) => [CAUSE_WORDS[name], colours[name]]);
  if (meaning === "stream") return colours.streams.slice(0, 4).map((each, n) => [`stream ${n}`, each]);
  const shades = ramp(AGES);
  const ends = {
    valid: ["few valid units", "all valid"],
    age: ["written just now", "long ago"],
    erases: ["erased rarely", "erased most often"],
  }[meaning];
  return [[ends[0], shades[0]], ["between", shades[4]], [ends[1], shades[AGES - 1]]];
}
