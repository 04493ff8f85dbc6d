// The last moments on a time axis: host commands above, and below them what each die did.

const OPS = ["read", "write", "trim", "flush"];
const OP_COLOURS = ["read", "program", "trim", "flush"];
const ACTIVITIES = ["idle", "host read", "program", "erase", "read for collection"];
const ACTIVITY_COLOURS = ["empty", "read", "program", "erase", "gather"];
const KEPT = 16384;
const COMMAND_ROWS = 4;
const SPANS_US = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000];

class Lanes {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
  }

  clear() {
    this.commands = [];
    this.operations = [];
    this.span = 0;
  }

  /** Keeps what is new in a frame. */
  take(frame) {
    for (let at = 0; at < frame.commands.length; at += 8) {
      const [, op, , bytes, begins, ends] = frame.commands.subarray(at, at + 8);
      this.commands.push({ op, bytes, begins, ends });
    }
    for (let at = 0; at < frame.operations.length; at += 8) {
      const [kind, die, , , begins, ends] = frame.operations.subarray(at, at + 8);
      this.operations.push({ kind, die, begins, ends });
    }
    if (this.commands.length > KEPT) this.commands = this.commands.slice(-KEPT);
    if (this.operations.length > KEPT) this.operations = this.operations.slice(-KEPT);
  }

  /** Mean latency of the commands at hand, in ns; null without any. */
  latency() {
    const recent = this.commands.slice(-256);
    if (!recent.length) return null;
    return recent.reduce((sum, each) => sum + each.ends - each.begins, 0) / recent.length;
  }

  /** The time that shows the latest operations and commands, in steps. */
  chooseSpan(clock, dies) {
    const first = Math.max(
      nthBefore(this.operations, 12 * dies, clock), nthBefore(this.commands, 96, clock),
    );
    const wanted = Math.max(0, clock - first) / 1e3;
    const wide = (SPANS_US.find((span) => span >= wanted) ?? SPANS_US.at(-1)) * 1e3;
    if (!this.span || wide > this.span || wide * 4 < this.span) this.span = wide;
    return this.span;
  }

  /** `clock` is now, at the right, and `span` what the axis shows, in ns. */
  draw(frame, { clock, span }, colours, names) {
    const room = surface(this.canvas);
    if (!room) return;
    const { pen, width, height } = room;
    pen.clearRect(0, 0, width, height);
    const dies = frame.dies.length / 4;
    const left = 64;
    const right = width - 16;
    const top = 14;
    const row = Math.max(3, Math.min(16, (height - top - 30) / (dies + COMMAND_ROWS + 1)));
    const x = (ns) => left + ((ns - (clock - span)) / span) * (right - left);
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.drawCommands(pen, { x, left, right, top, row, clock, span }, colours);
    const diesTop = top + row * (COMMAND_ROWS + 1);
    this.drawDies(pen, { x, left, right, top: diesTop, row, clock, span, dies }, frame, colours);
    pen.fillStyle = colours.muted;
    pen.textAlign = "left";
    pen.fillText(names.commands, 0, top + (row * COMMAND_ROWS) / 2);
    pen.textAlign = "right";
    pen.fillText("now", right + 14, 6);
    pen.textAlign = "left";
    pen.fillText(`${time(span)} ago`, left, 6);
  }

  drawCommands(pen, { x, left, right, top, row, clock, span }, colours) {
    const busyUntil = new Array(COMMAND_ROWS).fill(-Infinity);
    pen.fillStyle = colours.empty;
    for (let n = 0; n < COMMAND_ROWS; n += 1) pen.fillRect(left, top + n * row, right - left, row - 1);
    for (const { op, begins, ends } of this.commands) {
      const at = busyUntil.findIndex((until) => until <= begins);
      const place = at < 0 ? busyUntil.indexOf(Math.min(...busyUntil)) : at;
      busyUntil[place] = ends;
      if (ends < clock - span || begins > clock) continue;
      const from = Math.max(left, x(begins));
      const to = Math.min(right, Math.max(x(ends), from + 1.5));
      pen.fillStyle = colours[OP_COLOURS[op]];
      pen.fillRect(from, top + place * row, Math.max(1, to - from - 0.5), row - 1);
    }
  }

  drawDies(pen, { x, left, right, top, row, clock, span, dies }, frame, colours) {
    const every = Math.ceil(12 / row);
    for (let die = 0; die < dies; die += 1) {
      pen.fillStyle = colours.empty;
      pen.fillRect(left, top + die * row, right - left, row - 1);
      if (die % every === 0) {
        pen.fillStyle = colours.muted;
        pen.textAlign = "right";
        pen.fillText(`die ${die}`, left - 6, top + (die + 0.5) * row);
      }
    }
    for (const { kind, die, begins, ends } of this.operations) {
      if (ends < clock - span || begins > clock) continue;
      const from = Math.max(left, x(begins));
      const to = Math.min(right, Math.max(x(ends), from + 1));
      pen.fillStyle = colours[ACTIVITY_COLOURS[kind]];
      pen.fillRect(from, top + die * row, Math.max(1, to - from - 0.5), row - 1);
    }
    for (let die = 0; die < dies; die += 1) {
      pen.fillStyle = colours[ACTIVITY_COLOURS[activityOf(frame, die, clock)]];
      pen.fillRect(right + 4, top + die * row, 10, row - 1);
    }
  }
}

/** When the nth but last of these that has begun by `clock` began, or else the first one. */
function nthBefore(list, n, clock) {
  let first = 0;
  for (let at = list.length - 1, seen = 0; at >= 0 && seen < n; at -= 1) {
    if (list[at].begins > clock) continue;
    first = list[at].begins;
    seen += 1;
  }
  return first;
}

/** What a die does at a moment. A drive that is done does nothing after its last operations. */
function activityOf(frame, die, clock) {
  const [activity, left] = frame.dies.subarray(4 * die);
  return clock > frame.line + left ? 0 : activity;
}

/** What the dies do at a moment, in words. */
function dieWords(frame, clock) {
  const counts = new Array(ACTIVITIES.length).fill(0);
  for (let die = 0; 4 * die < frame.dies.length; die += 1) counts[activityOf(frame, die, clock)] += 1;
  return counts.map((count, n) => (count ? `${count} ${ACTIVITIES[n]}` : "")).filter(Boolean).join(", ");
}
