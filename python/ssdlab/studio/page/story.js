// A scene: its chapters on the timeline, its texts, and the comparison with the command line.

class Story {
  constructor(scene) {
    this.scene = scene;
    const [first] = scene.drives;
    const ends = [...first.ends];
    const commands = [...first.steps, ...scene.extra].map((step) => {
      if (!step.job) return 0;
      return ends.length ? ends.shift()[0] : requestsOf(step);
    });
    this.recorded = first.requests;
    this.timeline = new Timeline(commands, scene.chapters);
    this.chapters = scene.chapters.map((chapter) => ({
      ...chapter, from: this.timeline.starts[chapter.step],
    }));
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

  /** The meaning of the cells' colours there: that of the last chapter that has one. */
  colourAt(commands) {
    const known = this.chapters.slice(0, this.chapterAt(commands) + 1).filter(({ colour }) => colour);
    return known.at(-1)?.colour;
  }

  /**
   * Once the steps of the experiment have run: compares the counters and the times of all jobs
   * with those of the command line; then the steps that only the page has are added.
   */
  settle(drives) {
    if (this.compared || !drives.every((drive) => drive.done)) return false;
    const parts = drives.map((drive, index) => compare(drive, this.scene.drives[index]));
    this.compared = {
      differences: parts.flatMap((part) => part.differences),
      counters: parts.reduce((sum, part) => sum + part.counters, 0),
      jobs: parts.reduce((sum, part) => sum + part.jobs, 0),
    };
    if (this.scene.extra.length) for (const drive of drives) drive.add(this.scene.extra);
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

/** Sets a paragraph for each part of a text; `code` between backquotes, *emphasis* between stars. */
function setText(place, text) {
  place.replaceChildren(...text.trim().split(/\n\s*\n/).map((part) => {
    const paragraph = document.createElement("p");
    for (const piece of part.replace(/\s+/g, " ").split(/(`[^`]+`|\*[^*]+\*)/)) {
      const kind = { "`": "code", "*": "em" }[piece[0]];
      const element = document.createElement(kind ?? "span");
      element.textContent = kind ? piece.slice(1, -1) : piece;
      paragraph.append(element);
    }
    return paragraph;
  }));
}
