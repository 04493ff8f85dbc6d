// One drive of the page: its twin, and the part of the page that shows it.

const CAUSE_COUNTERS = [
  ["host", "nand_host_writes"], ["collection", "nand_collection_writes"], ["wear", "nand_wear_writes"],
  ["folding", "nand_folding_writes"], ["packing", "nand_packing_writes"],
  ["mapping", "nand_mapping_writes"], ["padding", "nand_padding_writes"],
];

/** Commands before the one that is gone to, for the picture of the last moments, and those that
 * run between two frames: the module lists only the latest operations of a frame. */
const SHOWN_BEFORE = 4000;
const SLICE = 100;

class Drive {
  /** `view`: the element that shows it, a copy of the template; `fileBytes`: of the unit map. */
  constructor(module, { name, spec, steps, fileBytes }, view) {
    this.name = name;
    this.view = view;
    this.twin = new Twin(module, spec);
    this.twin.add(steps);
    this.twin.observe(true);
    this.fileUnits = Math.round((fileBytes ?? 0) / this.twin.description.unit_bytes);
    const part = (each) => view.querySelector(`[data-part="${each}"]`);
    this.cells = new Cells(part("cells"), part("moves"));
    this.lanes = new Lanes(part("lanes"));
    this.units = this.fileUnits ? new UnitMap(part("units")) : null;
    part("file").hidden = !this.units;
    this.history = new History();
    this.part = part;
    this.target = 0; // the clock that is shown, which may be before the end of the last tick
    this.owed = 0;
    this.current = this.twin.frame();
    this.sums = null;
    part("name").textContent = name;
    part("model").textContent = this.modelWords();
    this.listen();
  }

  modelWords() {
    const { model, capacity_bytes: capacity, spare, dies, superblocks } = this.twin.description;
    return `${model}, scaled to ${bytes(capacity)}: ${dies} dies, ${superblocks} superblocks, ` +
      `spare ${number(100 * spare)} %`;
  }

  /** Whether all steps have run. */
  get done() {
    return this.current.step >= this.current.steps;
  }

  /** Units that power cuts lost, by their results. */
  lostUnits(cuts) {
    if (cuts !== this.lost?.cuts) {
      const parts = this.twin.results().map((result) => result.power_cut ?? result);
      this.lost = { cuts, units: parts.reduce((sum, { lost_units: units }) => sum + (units ?? 0), 0) };
    }
    return this.lost.units;
  }

  release() {
    this.twin.release();
    this.view.remove();
  }

  /** Reads a frame after the twin has moved. */
  refresh() {
    this.current = this.twin.frame();
    this.lanes.take(this.current);
    this.cells.take(this.current);
    this.history.take(this.current.series, this.twin.description.series);
    return this.current;
  }

  /** Runs `requests` more; a fraction is kept for the next call. */
  run(requests) {
    this.owed += requests;
    const now = Math.floor(this.owed);
    this.owed -= now;
    if (now > 0 && !this.done) this.twin.advance(now);
    this.refresh();
    this.target = this.current.line;
  }

  /** Runs the clock on by some nanoseconds. */
  runFor(ns) {
    this.target += ns;
    if (this.current.line < this.target && !this.done) {
      this.twin.advance(Infinity, this.target);
      this.refresh();
    }
    if (this.done) this.target = Math.min(this.target, this.current.line);
  }

  add(steps) {
    this.twin.add(steps);
    this.refresh();
  }

  /** Cuts the power now; the known time after it no longer happens. */
  cutPower() {
    this.twin.cutPower();
    this.history = new History();
    this.refresh();
  }

  seek(requests) {
    this.lanes.clear();
    this.cells.clear();
    this.twin.seek(SEEK.requests, Math.max(0, requests - SHOWN_BEFORE));
    while (this.refresh().requests < requests && !this.done) {
      this.twin.advance(Math.min(SLICE, requests - this.current.requests));
    }
    this.target = this.current.line;
    this.owed = 0;
  }

  /** Draws all parts from the frame; keeps the sums of the drawn values. */
  draw(settings, now) {
    const frame = this.current;
    const { colours } = settings;
    this.sums = this.cells.draw(frame, this.twin.description, settings, now);
    this.lanes.draw(frame, Math.min(this.target, frame.line), colours, { commands: "commands" });
    this.drawCauses(frame, colours);
    this.numbers(frame);
    if (this.units) {
      const pages = this.units.draw(this.twin, this.fileUnits, this.twin.description.dies, colours);
      this.part("pages").textContent = plural(pages, "flash page");
    }
  }

  /** The bar of flash writes by cause. */
  drawCauses(frame, colours) {
    const room = surface(this.part("causes"));
    if (!room) return;
    const { pen, width, height } = room;
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = colours.empty;
    pen.fillRect(0, 0, width, height);
    let left = 0;
    let drawn = 0;
    for (const [cause, counter] of CAUSE_COUNTERS) {
      const count = this.twin.count(frame, counter);
      drawn += count;
      const wide = frame.programmed ? (width * count) / frame.programmed : 0;
      pen.fillStyle = colours[cause];
      pen.fillRect(left, 0, wide, height);
      left += wide;
    }
    if (this.sums) this.sums.programmed = drawn;
  }

  numbers(frame) {
    const { unit_bytes: unit } = this.twin.description;
    const host = this.twin.count(frame, "host_write_bytes");
    const flash = frame.programmed * unit;
    const latency = this.lanes.latency();
    const shown = {
      clock: time(Math.min(this.target, frame.line)),
      host: bytes(host),
      flash: bytes(flash),
      waf: host ? number(flash / host) : "–",
      free: `${whole(frame.free)} of ${whole(frame.cells.length / 4)}`,
      latency: latency === null ? "–" : time(latency),
      buffer: `${bytes(frame.buffered * unit)} of ${bytes(frame.bufferUnits * unit)}`,
      lost: frame.cuts ? `${bytes(this.lostUnits(frame.cuts) * unit)}, ${plural(frame.cuts, "cut")}` : "",
      dies: dieWords(frame),
    };
    this.part("lost").parentElement.hidden = !frame.cuts;
    for (const [name, text] of Object.entries(shown)) {
      const place = this.part(name);
      if (place.textContent !== text) place.textContent = text;
    }
  }

  /** What the cells are, under the pointer or at the keyboard's cursor. */
  listen() {
    const tip = this.part("tip");
    const show = (index) => {
      this.cells.cursor = index;
      tip.textContent = index < 0
        ? "Point at a superblock, or focus the picture and use the arrow keys, to read what it is."
        : cellWords(this.current, this.twin.description, index).join("; ");
    };
    const picture = this.part("moves");
    const count = () => this.current.cells.length / 4;
    picture.addEventListener("pointermove", (event) => show(this.cells.at(event.offsetX, event.offsetY, count())));
    picture.addEventListener("pointerleave", () => show(-1));
    picture.addEventListener("blur", () => show(-1));
    picture.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.cells.columns, ArrowDown: this.cells.columns }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      show(Math.max(0, Math.min(count() - 1, this.cells.cursor + by)));
    });
    show(-1);
  }
}
