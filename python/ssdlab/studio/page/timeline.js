// The timeline: commands completed, and the seconds of the scene at which they are shown.

/**
 * Each part has `seconds` from its first step to that of the next part. Within a part, a step takes
 * time in proportion to the square root of its commands, so that few large reads can be seen next
 * to many small writes.
 */
class Timeline {
  /** `commands`: of each step; `parts`: [{step, seconds}], the first with step 0. */
  constructor(commands, parts) {
    this.points = [[0, 0]];
    this.starts = [];
    let [done, at] = [0, 0];
    parts.forEach(({ step, seconds }, index) => {
      const end = parts[index + 1]?.step ?? commands.length;
      const roots = commands.slice(step, end).map(Math.sqrt);
      const sum = roots.reduce((all, each) => all + each, 0);
      roots.forEach((root, offset) => {
        this.starts[step + offset] = done;
        if (!root) return;
        done += commands[step + offset];
        at += (seconds * root) / sum;
        this.points.push([done, at]);
      });
    });
    [this.commands, this.seconds] = [done, at];
  }

  /** The segment that holds a value of the first (0) or second (1) coordinate. */
  segment(value, coordinate) {
    const after = this.points.findIndex((point, index) => index && point[coordinate] > value);
    const index = after < 0 ? this.points.length - 1 : after;
    return [this.points[Math.max(0, index - 1)], this.points[index]];
  }

  secondsAt(commands) {
    const [[c0, s0], [c1, s1]] = this.segment(commands, 0);
    return c1 > c0 ? s0 + ((Math.min(commands, c1) - c0) / (c1 - c0)) * (s1 - s0) : s1;
  }

  commandsAt(seconds) {
    const [[c0, s0], [c1, s1]] = this.segment(seconds, 1);
    return Math.floor(s1 > s0 ? c0 + ((Math.min(seconds, s1) - s0) / (s1 - s0)) * (c1 - c0) : c1);
  }

  /** Commands a second at this place. */
  pace(commands) {
    const [[c0, s0], [c1, s1]] = this.segment(commands, 0);
    return s1 > s0 ? (c1 - c0) / (s1 - s0) : 1;
  }
}

/**
 * The seconds of the timeline at which each row of these drives ends. All drives have the same time
 * axis: a moment of the clock is where the drive that has done the fewest commands is then. So the
 * curves of a faster drive end before those of a slower one.
 */
function placesOf(drives, timeline) {
  if (drives.length === 1) return [drives[0].history.rows.map((row) => timeline.secondsAt(row.commands))];
  const commandsAt = (ns) =>
    Math.min(...drives.map(({ history, current }) => history.commandsAt(ns, current)));
  return drives.map(({ history }) => history.rows.map((row) => timeline.secondsAt(commandsAt(row.end))));
}

/** Seconds as 1:05. */
function minutes(seconds) {
  const all = Math.round(seconds);
  return `${Math.floor(all / 60)}:${String(all % 60).padStart(2, "0")}`;
}
