// The page of `ssdlab watch --page`: a served twin live, and back to where the record begins.

const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const REDUCED = matchMedia("(prefers-reduced-motion: reduce)");
const FRAMES_KEPT = 64;
const RETRY_MS = 1000;

/** The inside of a served twin as a frame, which `Picture` draws. */
function frameOf(inside, description) {
  const unit = description.unit_bytes;
  return {
    cells: Uint32Array.from(inside.superblocks.flat()),
    dies: Float64Array.from(inside.dies.flat()),
    counters: Float64Array.from(description.counters, (name) => inside.counters[name]),
    moves: new Float64Array(0),
    line: inside.clock_ns,
    mapped: inside.mapped_units,
    units: description.capacity_bytes / unit,
    free: inside.free_superblocks,
    programmed: inside.programmed_units,
    buffered: inside.buffered_units,
    bufferUnits: Math.floor(description.buffer_bytes / unit),
    cuts: inside.power_cuts,
    lost: inside.lost_units,
  };
}

class WatchPage {
  constructor() {
    this.rows = [];
    this.frames = new Map(); // by number of the sample
    this.at = null; // the number of the sample that is shown; null: the latest one
    this.fetching = null;
    this.ended = null;
    this.meaning = "valid";
    this.curves = CURVES.map((curve) => {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", curve.title);
      $("curves").append(canvas);
      for (const event of ["pointermove", "pointerleave"]) canvas.addEventListener(event, () => this.redraw());
      return new Curves(canvas, curve);
    });
    const view = $("drive").content.firstElementChild.cloneNode(true);
    $("drives").append(view);
    this.picture = new Picture(view, DATA.description);
    this.picture.part("name").textContent = DATA.socket;
    this.listen();
    this.setTheme("");
  }

  /** The number of the sample to show. */
  get wanted() {
    return this.at ?? this.rows.at(-1)?.number ?? null;
  }

  get shownRow() {
    return this.rows[this.shown - this.rows[0]?.number];
  }

  /** Gets the samples since the last one; returns whether there may be more. */
  async update() {
    const next = (this.rows.at(-1)?.number ?? -1) + 1;
    const { record, first, rows, ended } = await getJson(`rows/${next}`);
    if (record !== DATA.record) {
      location.reload(); // another `ssdlab watch` has this port now
      return false;
    }
    this.rows = [...this.rows.filter(({ number: n }) => n >= first), ...rows];
    if (this.at !== null) this.at = Math.max(this.at, first);
    this.ended = ended;
    await this.fetchFrame();
    return ended === null;
  }

  /** Gets the inside at the sample to show, and then that of the one to show by then. */
  fetchFrame() {
    this.fetching ??= this.fetchWanted();
    return this.fetching;
  }

  async fetchWanted() {
    await null; // so that it is known as the one in progress
    try {
      while (this.wanted !== null && this.shown !== this.wanted) {
        const wanted = this.wanted;
        if (!this.frames.has(wanted)) this.keep(wanted, frameOf(await getJson(`frame/${wanted}`), DATA.description));
        this.frame = this.frames.get(wanted);
        this.shown = wanted;
        this.redraw();
      }
    } finally {
      this.fetching = null;
    }
  }

  keep(number, frame) {
    this.frames.set(number, frame);
    if (this.frames.size > FRAMES_KEPT) this.frames.delete(this.frames.keys().next().value);
  }

  /** Shows a sample, or the latest one from now on (null). */
  goTo(number) {
    if (!this.rows.length) return;
    const [first, last] = [this.rows[0].number, this.rows.at(-1).number];
    this.at = number === null ? null : Math.max(first, Math.min(last, number));
    this.redraw();
    this.fetchFrame().catch((error) => this.lost(error));
  }

  setTheme(theme) {
    if (theme) document.body.dataset.theme = theme;
    else delete document.body.dataset.theme;
    $("theme").value = theme;
    this.restyle();
  }

  restyle() {
    this.colours = themeColours();
    this.legend = null;
    this.picture.cells.forget();
    this.redraw();
  }

  listen() {
    const step = (by) => this.goTo((this.shown ?? 0) + by);
    const toggle = () => this.goTo(this.at === null ? this.shown ?? 0 : null);
    $("play").addEventListener("click", toggle);
    $("back").addEventListener("click", () => step(-1));
    $("forward").addEventListener("click", () => step(1));
    $("scrub").addEventListener("input", () => this.goTo(Number($("scrub").value)));
    $("colour").addEventListener("change", () => {
      this.meaning = $("colour").value;
      this.redraw();
    });
    $("theme").addEventListener("change", () => this.setTheme($("theme").value));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    addEventListener("resize", () => this.redraw());
    for (const event of ["pointermove", "pointerleave", "keydown", "blur"]) {
      this.picture.part("moves").addEventListener(event, () => this.redraw());
    }
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, input")) return;
      if (event.key === " " && event.target.closest("button")) return;
      const actions = {
        " ": toggle,
        ArrowRight: () => step(event.shiftKey ? 10 : 1),
        ArrowLeft: () => step(event.shiftKey ? -10 : -1),
        Home: () => this.goTo(0),
        End: () => this.goTo(null),
      };
      if (!(event.key in actions)) return;
      event.preventDefault();
      actions[event.key]();
    });
  }

  /** Draws before the next frame of the screen. */
  redraw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame((now) => {
      this.drawing = false;
      this.draw(now);
    });
  }

  draw(now) {
    const row = this.shownRow;
    if (!row) return;
    const { frame, colours, meaning } = this;
    this.picture.draw(frame, { colours, meaning, reduced: REDUCED.matches }, now);
    this.picture.show(textsOf(row, frame, DATA.description));
    this.picture.part("lost").parentElement.hidden = !frame.cuts;
    const start = this.rows[0].at_s;
    const places = this.rows.map(({ at_s: at }) => at - start);
    const cuts = this.rows.filter(({ cuts: count }, index) => count > this.rows[Math.max(0, index - 1)].cuts);
    const axis = { at: row.at_s - start, total: places.at(-1), marks: cuts.map(({ at_s: at }) => at - start) };
    for (const curve of this.curves) curve.draw([{ rows: this.rows, places }], axis, colours);
    this.drawControls(row, axis);
  }

  drawControls(row, { at, total }) {
    const live = this.at === null;
    $("play").textContent = live ? "Pause" : "Live";
    $("scrub").min = String(this.rows[0].number);
    $("scrub").max = String(this.rows.at(-1).number);
    $("scrub").value = String(row.number);
    $("scrub").setAttribute("aria-valuetext", `${minutes(at)} of ${minutes(total)}`);
    $("position").textContent = `${minutes(at)} of ${minutes(total)}`;
    const ago = this.rows.at(-1).at_s - row.at_s;
    const status = this.ended ? "ended" : live ? "live" : `paused, ${minutes(ago)} ago`;
    if ($("status").textContent !== status) $("status").textContent = status;
    $("status").className = this.ended ? "ended" : live ? "live" : "paused";
    if (this.legend !== this.meaning) {
      this.legend = this.meaning;
      this.picture.showLegends(this.meaning, this.colours);
    }
  }

  lost(error) {
    $("fault").textContent = `No answer from \`ssdlab watch\` (${error.message}). Has it been stopped?`;
    $("fault").hidden = false;
  }

  /** Follows the twin until it has ended. */
  async follow() {
    for (;;) {
      try {
        const goesOn = await this.update();
        $("fault").hidden = true;
        if (this.ended) {
          $("fault").textContent = `${this.ended}. Its record can be seen until \`ssdlab watch\` is stopped.`;
          $("fault").hidden = false;
        }
        if (!goesOn) return;
        await pause(Math.max(50, DATA.every_ms));
      } catch (error) {
        this.lost(error);
        await pause(RETRY_MS);
      }
    }
  }
}

/** The numbers of a sample. */
function textsOf(row, frame, description) {
  const rate = (requests, mib) => `${whole(requests)}/s, ${number(mib)} MiB/s`;
  return {
    clock: time(frame.line),
    read: rate(row.read_per_s, row.read_mib_per_s),
    write: rate(row.write_per_s, row.write_mib_per_s),
    latency: row.p50 === null ? "–" : `${time(row.p50)}, ${time(row.p99)}`,
    lost: `${bytes(frame.lost * description.unit_bytes)}, ${plural(frame.cuts, "cut")}`,
    clients: `${plural(row.clients, "client")}, ${whole(row.in_flight)} in flight`,
    power: row.power,
    dies: dieWords(frame, frame.line),
  };
}

async function getJson(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
}

function pause(ms) {
  return new Promise((done) => {
    setTimeout(done, ms);
  });
}

const page = new WatchPage();
if (!location.hash.startsWith("#selftest")) page.follow();
