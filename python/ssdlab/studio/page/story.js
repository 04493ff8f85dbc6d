// A scene: its chapters on the timeline, its texts, and the comparison with the command line.

class Story {
  constructor(scene) {
    this.scene = scene;
    const [first] = scene.drives;
    const ends = [...first.ends];
    let commands = 0;
    // The commands completed before each step.
    this.starts = [...first.steps, ...scene.extra].map((step) => {
      const before = commands;
      if (step.job) commands += ends.length ? ends.shift()[0] : requestsOf(step);
      return before;
    });
    this.recorded = first.requests;
    this.total = commands;
    this.chapters = scene.chapters.map((chapter) => ({ ...chapter, from: this.starts[chapter.step] ?? commands }));
    this.compared = null;
  }

  /** The index of the chapter at a point of the timeline. */
  chapterAt(commands) {
    let index = 0;
    this.chapters.forEach(({ from }, each) => {
      if (from <= commands) index = each;
    });
    return index;
  }

  /** Commands a second, so that the chapter takes the time that it is to take. */
  pace(commands) {
    const index = this.chapterAt(commands);
    const end = this.chapters[index + 1]?.from ?? this.total;
    return (end - this.chapters[index].from) / this.chapters[index].seconds;
  }

  /**
   * Once the steps of the experiment have run: compares the counters and the times of all jobs
   * with those of the command line; then the steps that only the page has are added.
   */
  settle(drives) {
    if (this.compared || !drives.every((drive) => drive.twin.finished)) return false;
    const parts = drives.map((drive, index) => compare(drive, this.scene.drives[index]));
    this.compared = {
      differences: parts.flatMap((part) => part.differences),
      counters: parts.reduce((sum, part) => sum + part.counters, 0),
      jobs: parts.reduce((sum, part) => sum + part.jobs, 0),
    };
    if (this.scene.extra.length) for (const drive of drives) drive.twin.add(this.scene.extra);
    return true;
  }

  /** The result of the comparison in words. */
  equalWords() {
    const { differences, counters, jobs } = this.compared;
    if (differences.length) return ["Not equal to the command line", differences.slice(0, 8).join("; ")];
    return [
      "Equal to the command line.",
      `${counters} counters, and the start, end and commands of ${jobs} jobs (to the nanosecond), ` +
        "computed here and by the command above.",
    ];
  }
}

/** Compares a twin of the page with the recorded end of the same experiment. */
function compare(drive, expected) {
  const differences = [];
  const check = (name, here, there) => {
    if (here !== there) differences.push(`${drive.name}, ${name}: ${here} here, ${there} there`);
  };
  const counters = drive.twin.counters();
  const names = Object.keys(expected.counters);
  for (const name of names) check(name, counters[name], expected.counters[name]);
  const jobs = drive.twin.results().filter(({ kind }) => kind === "job");
  check("jobs", jobs.length, expected.ends.length);
  expected.ends.forEach(([requests, start, end], index) => {
    check(`commands of job ${index}`, jobs[index]?.requests, requests);
    check(`start of job ${index}`, jobs[index]?.start_ns, start);
    check(`end of job ${index}`, jobs[index]?.end_ns, end);
  });
  return { differences, counters: names.length, jobs: expected.ends.length };
}

/** Sets a paragraph for each part of a text; `code` between backquotes. */
function setText(place, text) {
  place.replaceChildren(...text.trim().split(/\n\s*\n/).map((part) => {
    const paragraph = document.createElement("p");
    part.replace(/\s+/g, " ").split("`").forEach((piece, index) => {
      const element = document.createElement(index % 2 ? "code" : "span");
      element.textContent = piece;
      paragraph.append(element);
    });
    return paragraph;
  }));
}
