// Curves over the timeline: rate, latency, write amplification, free superblocks.

const CURVES = [
  { name: "rate", title: "Rate, MiB/s", short: "MiB/s", write: number, log: false, pixels: 3 },
  { name: "latency", title: "Latency, median and 99 %", short: "Latency", write: time, log: true, pixels: 3 },
  { name: "waf", title: "Write amplification", short: "WAF", write: number, log: false, pixels: 8 },
  { name: "free", title: "Free superblocks", short: "Free", write: number, log: false, pixels: 3 },
];
const HEAD = 18;
const FOOT = 4;
const SIDE = 48;

/** The rows of a series as columns, with the commands completed at the end of each row. */
class History {
  constructor() {
    this.rows = [];
  }

  /** Where the time of the next row begins. */
  startOf(step, start) {
    const last = this.rows.at(-1);
    return last?.step === step ? last.end : start;
  }

  /** Commands completed by a moment of the clock, which `now` is after: within a row in proportion. */
  commandsAt(ns, now) {
    let [low, high] = [0, this.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].end <= ns) low = middle + 1;
      else high = middle;
    }
    const done = low ? this.rows[low - 1] : { end: 0, commands: 0 };
    const row = this.rows[low] ?? { end: now.line, commands: now.requests, seconds: Infinity };
    const begin = Math.max(done.end, row.end - 1e9 * row.seconds);
    if (ns <= begin || row.end <= begin) return done.commands;
    return done.commands + Math.min(1, (ns - begin) / (row.end - begin)) * (row.commands - done.commands);
  }

  /** Takes the series of a frame where it has become longer. */
  take(series, names) {
    const width = names.length;
    const count = series.length / width;
    const known = this.rows.length;
    // The last row may have been an interval in progress.
    const from = Math.max(0, Math.min(known, count) - 1);
    if (count < known) return;
    let commands = from ? this.rows[from - 1].commands : 0;
    this.rows.length = from;
    const at = Object.fromEntries(names.map((name, index) => [name, index]));
    for (let row = from; row < count; row += 1) {
      const value = (name) => series[row * width + at[name]];
      const requests = ["read", "write", "trim", "flush"].map((op) => value(`${op}_requests`));
      commands += requests.reduce((sum, each) => sum + each, 0);
      this.rows.push({
        commands,
        requests: requests.reduce((sum, each) => sum + each, 0),
        step: value("step"),
        end: value("end_ns"),
        // Intervals without a completion have no row: their time counts, too.
        seconds: (value("end_ns") - this.startOf(value("step"), value("start_ns"))) / 1e9,
        bytes: value("read_bytes") + value("write_bytes"),
        carries: value("read_requests") + value("write_requests") > 0,
        p50: value("p50_ns"),
        p99: value("p99_ns"),
        flash: value("flash_bytes"),
        host: value("write_bytes"),
        free: value("free_superblocks"),
      });
    }
  }
}

/**
 * The points of one curve, at most one for each column: lines of [seconds, value]. NaN is a gap:
 * nothing has this value there. `places` are the seconds of the rows on an axis of `total` seconds.
 */
function linesOf({ rows, places }, name, total, columns) {
  const bins = [];
  rows.forEach((row, index) => {
    if (name === "rate" && row.carries === false) return;
    const seconds = places[index];
    const bin = Math.min(columns - 1, Math.floor((seconds / total) * columns));
    const sum = bins[bin] ??= {
      at: 0, seconds: 0, bytes: 0, flash: 0, host: 0, requests: 0, p50: 0, p99: 0, free: 0,
    };
    for (const key of ["seconds", "bytes", "flash", "host", "requests"]) sum[key] += row[key];
    sum.p50 += row.p50 * row.requests;
    sum.p99 = Math.max(sum.p99, row.p99);
    sum.free = row.free;
    sum.at = seconds;
  });
  const line = (value) =>
    bins.filter(Boolean).map((bin) => [bin.at, value(bin) ?? Number.NaN]);
  if (name === "rate") return [line((bin) => (bin.seconds ? bin.bytes / bin.seconds / 2 ** 20 : null))];
  if (name === "waf") return [line((bin) => (bin.host ? bin.flash / bin.host : null))];
  if (name === "flash") return [line((bin) => bin.flash)];
  if (name === "free") return [line((bin) => bin.free)];
  return [
    line((bin) => (bin.requests && bin.p50 ? bin.p50 / bin.requests : null)),
    line((bin) => bin.p99 || null),
  ];
}

class Curves {
  constructor(canvas, curve) {
    Object.assign(this, { canvas }, curve);
    this.pointer = null;
    canvas.addEventListener("pointermove", (event) => {
      this.pointer = event.offsetX;
    });
    canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
    });
  }

  /**
   * `sides`: [{rows, places, done}] of each drive. `at`, `total` and `marks` are seconds of the axis: now,
   * its end, and lines on it.
   */
  draw(sides, { at: now, total: end, marks }, colours) {
    const room = surface(this.canvas);
    if (!room) return;
    const { pen, width, height } = room;
    pen.clearRect(0, 0, width, height);
    const columns = Math.max(40, Math.floor((width - SIDE) / this.pixels));
    const total = end || 1;
    const drawn = sides.map((side) => linesOf(side, this.name, total, columns));
    const values = drawn.flat(2).map(([, value]) => value).filter((value) => value > 0 || (value === 0 && !this.log));
    const most = this.top(Math.max(...values, 0));
    const least = this.log ? 10 ** Math.floor(Math.log10(Math.min(...values, most) || 1)) : 0;
    const x = (seconds) => SIDE + (seconds / total) * (width - SIDE - 2);
    const share = (value) => this.log
      ? Math.log(Math.max(value, least) / least) / Math.log(most / least || 2)
      : value / (most || 1);
    const y = (value) => height - FOOT - share(value) * (height - HEAD - FOOT);
    this.frame(pen, { width, height, least, most, x, marks }, colours);
    drawn.forEach((lines, side) => lines.forEach((line, part) => {
      const style = { colour: side ? colours.line2 : colours.line1, dashed: side === 1, thin: part === 1 };
      this.line(pen, line.filter(([at]) => at > now), x, y, { ...style, alpha: 0.25 });
      this.line(pen, line.filter(([at]) => at <= now), x, y, { ...style, alpha: 1 });
    }));
    const at = x(now);
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(at, HEAD);
    pen.lineTo(at, height - FOOT);
    pen.stroke();
    this.readout(pen, { drawn, sides }, { now, width, total, x }, colours);
  }

  /** The end of the axis: a round number above all values. */
  top(most) {
    if (!(most > 0)) return 1;
    const size = 10 ** Math.floor(Math.log10(most));
    if (this.log) return 10 * size;
    return size * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((each) => each * size >= most);
  }

  frame(pen, { width, height, least, most, x, marks }, colours) {
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = colours.empty;
    pen.fillRect(SIDE, HEAD, width - SIDE - 2, height - HEAD - FOOT);
    pen.strokeStyle = colours.grid;
    pen.lineWidth = 1;
    for (const mark of marks) {
      pen.beginPath();
      pen.moveTo(x(mark), HEAD);
      pen.lineTo(x(mark), height - FOOT);
      pen.stroke();
    }
    pen.fillStyle = colours.muted;
    pen.textAlign = "right";
    pen.fillText(this.write(most), SIDE - 5, HEAD + 4);
    pen.fillText(this.write(least), SIDE - 5, height - FOOT - 5);
  }

  line(pen, points, x, y, { colour, dashed, thin, alpha }) {
    if (!points.length) return;
    pen.globalAlpha = alpha;
    pen.strokeStyle = colour;
    pen.lineWidth = thin ? 1 : 2;
    pen.lineJoin = "round";
    pen.setLineDash(dashed ? [5, 3] : []);
    pen.beginPath();
    let drawing = false;
    for (const [at, value] of points) {
      const known = Number.isFinite(value);
      // One point alone is a short line.
      if (known && !drawing) pen.moveTo(x(at) - 2, y(value));
      if (known) pen.lineTo(x(at), y(value));
      drawing = known;
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  /** The values at the pointer, or else now. */
  readout(pen, { drawn, sides }, { now, width, total, x }, colours) {
    const wanted = this.pointer === null
      ? now
      : ((this.pointer - SIDE) / (width - SIDE - 2)) * total;
    const parts = drawn.map((lines) => (drawn.length > 1 ? lines.slice(0, 1) : lines));
    const isDone = ({ done, places }) => done && sides.length > 1 && wanted > places.at(-1);
    const texts = parts.map((lines, side) => isDone(sides[side]) ? "done" : lines.map((line) => {
      const before = line.filter(([at]) => at <= wanted).at(-1);
      return before && Number.isFinite(before[1]) ? this.write(before[1]) : "–";
    }).join(" / "));
    const text = texts.join("  ·  ");
    pen.textAlign = "right";
    pen.fillStyle = colours.ink;
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(text, width - 2, 8);
    const room = width - 12 - pen.measureText(text).width;
    pen.textAlign = "left";
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(pen.measureText(this.title).width < room ? this.title : this.short, 0, 8);
    if (this.pointer === null || wanted < 0) return;
    pen.strokeStyle = colours.muted;
    pen.setLineDash([2, 2]);
    pen.beginPath();
    pen.moveTo(x(wanted), HEAD);
    pen.lineTo(x(wanted), 200);
    pen.stroke();
    pen.setLineDash([]);
  }
}
