// Time: play, stop, step, scrub, for all drives of the page together.

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
  }

  get at() {
    return this.drives[0]?.current.requests ?? 0;
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
      const requests = seconds * Math.max(AUTO_LEAST, this.timeline.pace(this.at));
      for (const drive of this.drives) drive.run(requests);
    } else {
      for (const drive of this.drives) drive.runFor(seconds * this.speed);
    }
    if (this.ended) this.playing = false;
  }

  step(requests) {
    this.playing = false;
    if (requests < 0) this.seek(Math.max(0, this.at + requests));
    else for (const drive of this.drives) drive.run(requests);
  }

  seek(requests) {
    for (const drive of this.drives) drive.seek(requests);
  }

  /** Runs all steps to their end. */
  finish() {
    for (const drive of this.drives) {
      drive.twin.advance(Infinity);
      drive.refresh();
      drive.target = drive.current.line;
    }
  }
}
