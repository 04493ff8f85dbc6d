// One drive of the page: its twin, and the part of the page that shows it.

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
    this.picture = new Picture(view, this.twin.description, "scaled to ");
    this.lanes = new Lanes(this.part("lanes"));
    this.units = this.fileUnits ? new UnitMap(this.part("units")) : null;
    this.part("file").hidden = !this.units;
    this.history = new History();
    this.owed = 0;
    this.current = this.twin.frame();
    this.part("name").textContent = name;
  }

  part(name) {
    return this.picture.part(name);
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
    this.picture.cells.take(this.current);
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
  }

  /** Runs until the clock is at this moment, or all steps have run. */
  runTo(moment) {
    if (this.current.line >= moment || this.done) return;
    this.twin.advance(Infinity, moment);
    this.refresh();
  }

  /** As `runTo`, from far away: with the picture of the last moments only. */
  catchUp(moment) {
    if (this.current.line >= moment || this.done) return;
    this.twin.seek(SEEK.clock, moment);
    this.seek(this.twin.frame().requests);
    this.runTo(moment);
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
    this.picture.cells.clear();
    this.twin.seek(SEEK.requests, Math.max(0, requests - SHOWN_BEFORE));
    while (this.refresh().requests < requests && !this.done) {
      this.twin.advance(Math.min(SLICE, requests - this.current.requests));
    }
    this.owed = 0;
  }

  /** Draws all parts at a moment of the clock, with `spanNs` of the past. */
  draw({ moment, spanNs, ...settings }, now) {
    const frame = this.current;
    const { colours } = settings;
    this.picture.draw(frame, settings, now);
    this.lanes.draw(frame, { clock: moment, span: spanNs }, colours, { commands: "commands" });
    const latency = this.lanes.latency();
    this.picture.show({
      clock: this.done ? `done at ${time(frame.line)}` : time(moment),
      latency: latency === null ? "–" : time(latency),
      lost: frame.cuts ? this.lostWords(frame.cuts) : "",
      dies: dieWords(frame, moment),
    });
    this.part("lost").parentElement.hidden = !frame.cuts;
    if (this.units) {
      const pages = this.units.draw(this.twin, this.fileUnits, this.twin.description.dies, colours);
      this.part("pages").textContent = plural(pages, "flash page");
    }
  }

  lostWords(cuts) {
    return `${bytes(this.lostUnits(cuts) * this.twin.description.unit_bytes)}, ${plural(cuts, "cut")}`;
  }
}
