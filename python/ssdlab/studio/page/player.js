// Time: play, stop, step, scrub, for all drives of the page together.
//
// All drives are at the same moment of the clock. The one that has done the fewest commands says where
// on the timeline that is, so the timeline ends when the slowest drive has done everything.

const AUTO = "auto";
/** Speeds of the slider: by the chapter, or nanoseconds of the drive's clock a second. */
const SPEEDS = [AUTO, 1e4, 3e4, 1e5, 3e5, 1e6, 1e7, 1e8, 1e9, 1e10];
const AUTO_LEAST = 2; // commands a second
const FRAME_MOST_S = 0.1; // a hidden page does not catch up

class Player {
  constructor(drives, timeline) {
    this.drives = drives;
    this.timeline = timeline;
    this.playing = false;
    this.speed = AUTO;
    this.before = null;
    this.moment = 0;
  }

  /** The drive that has done the fewest commands; undefined without drives. */
  get last() {
    return [...this.drives].sort((a, b) => a.current.requests - b.current.requests)[0];
  }

  get at() {
    return this.last?.current.requests ?? 0;
  }

  get ended() {
    return this.drives.every((drive) => drive.done);
  }

  /** Runs on for the time since the last frame. */
  tick(now) {
    const seconds = Math.min(FRAME_MOST_S, this.before === null ? 0 : (now - this.before) / 1000);
    this.before = now;
    if (!this.playing || !seconds) return;
    if (this.speed === AUTO) {
      this.run(seconds * Math.max(AUTO_LEAST, this.timeline.pace(this.at)));
    } else {
      this.moment += seconds * this.speed;
      for (const drive of this.drives) drive.runTo(this.moment);
    }
    if (this.ended) {
      this.playing = false;
      this.moment = this.latest();
    }
  }

  /** Runs until the last drive has done `requests` more; the others run for the same time. */
  run(requests) {
    const [last] = this.drives.filter((drive) => !drive.done).sort((a, b) => a.current.requests - b.current.requests);
    if (!last) return;
    last.run(requests);
    this.moment = Math.max(this.moment, last.current.line);
    for (const drive of this.drives) drive.runTo(this.moment);
  }

  /** The latest moment of a drive. */
  latest() {
    return Math.max(0, ...this.drives.map((drive) => drive.current.line));
  }

  step(requests) {
    this.playing = false;
    if (requests < 0) this.seek(Math.max(0, this.at + requests));
    else this.run(requests);
  }

  /** Goes to the moment at which all drives have done `requests`. */
  seek(requests) {
    for (const drive of this.drives) drive.seek(requests);
    this.moment = this.latest();
    this.catchUp();
  }

  /** Brings drives that are behind to the moment of the others. */
  catchUp() {
    for (const drive of this.drives) drive.catchUp(this.moment);
  }

  /** Runs all steps to their end. */
  finish() {
    for (const drive of this.drives) {
      drive.twin.advance(Infinity);
      drive.refresh();
    }
    this.moment = this.latest();
  }
}
