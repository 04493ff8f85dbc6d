// The page tests itself at the address #selftest: results as JSON in the element `seen`.

const FRAMES = 1000;
const COMMANDS_A_FRAME = 200;

/** `#selftest=NAME` runs one of these; the tests of the page read what it returns. */
const SELF_TESTS = {
  /** Each scene runs to its end in steps of a frame, and is compared with the command line. */
  scenes: (studio) => DATA.scenes.map(({ name }) => {
    studio.state = { ...studio.state, scene: name, at: 0 };
    studio.open();
    const { story, player } = studio;
    const chapters = new Set();
    for (let frames = 0; frames < 600 && !(story.compared && player.ended); frames += 1) {
      player.run(Math.max(1, studio.timeline.commands / 400));
      studio.settle();
      studio.draw(16 * frames);
      chapters.add($("chapter").textContent);
    }
    const { history, twin, current } = studio.drives[0];
    // What the curve of write amplification has, in each of its columns.
    const { rows } = history;
    const places = rows.map((row) => studio.timeline.secondsAt(row.commands));
    const [line] = linesOf({ rows, places }, "flash", studio.timeline.seconds, 100);
    const flash = line.reduce((sum, [, value]) => sum + value, 0) / twin.description.unit_bytes;
    const lost = studio.drives[0].twin.results().filter(({ kind }) => kind === "power_cut");
    return {
      name,
      ended: player.ended,
      differences: story.compared?.differences ?? ["not compared"],
      counters: story.compared?.counters ?? 0,
      jobs: story.compared?.jobs ?? 0,
      says: $("equal").textContent,
      fault: $("fault").hidden ? "" : $("fault").textContent,
      chapters: chapters.size,
      all_chapters: story.chapters.length,
      lost,
      curve: [flash, current.programmed],
    };
  }),

  /** The sums of what a frame draws are the counters of the drive, in a thousand frames. */
  frames: (studio) => {
    const found = { frames: 0, moved: 0, differences: [] };
    const free = { ...studio.state.free, other: "spare:0.28", steps: decodeSteps("f_r0.5_t0.5_r0.1") };
    const names = [...DATA.scenes.map(({ name }) => name), null];
    for (const name of names) {
      studio.state = { ...studio.state, scene: name, at: 0, free };
      studio.open();
      const each = Math.ceil(FRAMES / names.length);
      for (let frames = 0; frames < each; frames += 1) {
        studio.player.run(studio.timeline.commands / each);
        studio.draw(16 * frames);
        for (const drive of studio.drives) checkSums(drive, name ?? "free play", found);
        found.frames += 1;
      }
    }
    return found;
  },

  /** Going back and on again gives the same counters and the same picture. */
  seeks: (studio) => DATA.scenes.map(({ name }) => {
    studio.state = { ...studio.state, scene: name, at: 0 };
    studio.open();
    const places = [0.3, 0.7, 0.31, 0.1, 0.7];
    const seen = places.map((share) => {
      studio.seek(Math.floor(share * studio.story.recorded));
      studio.draw(0);
      const { twin, current } = studio.drives[0];
      return [JSON.stringify(twin.counters()), current.clock, Array.from(current.cells).join()];
    });
    const [, first, , , again] = seen.map((each) => each.join("|"));
    return { name, equal: first === again, differs: first !== seen[0].join("|") };
  }),

  /**
   * Two drives at the same moments: their clocks in each frame, which of them is done when, and where
   * on the axis each begins and ends its steps.
   */
  pair: (studio) => {
    const { player, drives } = studio;
    const seen = { frames: [], behind: 0 };
    for (let frames = 0; frames < 400 && !player.ended; frames += 1) {
      player.run(studio.timeline.commands / 300);
      studio.draw(16 * frames);
      if (drives.some((drive) => !drive.done && drive.current.line < player.moment)) seen.behind += 1;
      seen.frames.push(drives.map(({ done, current: { requests } }) => [done, requests]));
    }
    const places = placesOf(drives, studio.timeline);
    seen.ends = drives.map(({ current: { line } }) => line);
    seen.places = places.map((each) => each.at(-1));
    seen.clocks = drives.map((drive) => drive.part("clock").textContent);
    seen.lasts = [player.at, $("position").textContent];
    // The middle of the timeline is the same state, reached by going there.
    studio.seek(Math.floor(studio.timeline.commands / 2));
    studio.draw(0);
    seen.half = [player.moment, ...drives.map(({ current: { line, requests } }) => [line, requests])];
    seen.total = studio.timeline.seconds;
    return seen;
  },

  /** What the page shows for the rest of the link, and the link that it writes itself. */
  link: (studio) => {
    studio.draw(0);
    studio.writeLink();
    return {
      link: location.hash,
      scene: studio.state.scene,
      at: studio.player.at,
      position: $("position").textContent,
      colour: $("colour").value,
      theme: document.body.dataset.theme ?? "",
      pace: $("pace").textContent,
      title: $("title").textContent,
      drives: studio.drives.map(({ name, twin }) => [name, twin.description]),
      steps: [...$("steps").querySelectorAll("li")].map((item) => item.firstChild.textContent),
      fault: $("fault").hidden ? "" : $("fault").textContent,
    };
  },

  /** The keys of the page: what each does to the place on the timeline. */
  keys: (studio) => {
    const press = (key, more = {}) => {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
      return studio.player.at;
    };
    studio.seek(50);
    const seen = { start: studio.player.at, right: press("ArrowRight"), left: press("ArrowLeft") };
    press(" ");
    seen.playing = studio.player.playing;
    press(" ");
    seen.stopped = !studio.player.playing;
    seen.end = press("End");
    seen.home = press("Home");
    seen.reachable = [...document.querySelectorAll("button, select, input, summary, canvas[tabindex]")].filter(
      (element) => element.checkVisibility(),
    ).map((element) => [element.id || element.textContent || element.dataset.part, element.tabIndex]);
    return seen;
  },

  /** Milliseconds that a frame takes, with some commands in each. */
  speed: (studio) => {
    studio.player.playing = false;
    const times = [];
    for (let frames = 0; frames < 300; frames += 1) {
      const begin = performance.now();
      studio.player.run(COMMANDS_A_FRAME);
      studio.draw(16 * frames);
      times.push(performance.now() - begin);
    }
    times.sort((a, b) => a - b);
    const superblocks = studio.drives[0].current.cells.length / 4;
    return { superblocks, median_ms: times[150], p99_ms: times[297], requests: studio.player.at };
  },
};

function checkSums(drive, name, found) {
  const { current, twin, picture: { sums } } = drive;
  const dies = twin.description.dies;
  const pairs = {
    "valid units drawn and mapped": [sums.valid, current.mapped],
    "free superblocks drawn and counted": [sums.free, current.free],
    "flash writes drawn and counted": [sums.programmed, current.programmed],
    "erases drawn and counted": [sums.erases * dies, countOf(twin.description, current, "erases")],
  };
  for (const [what, [drawn, counted]] of Object.entries(pairs)) {
    if (drawn !== counted) found.differences.push(`${name} at ${current.requests}: ${what}: ${drawn}, ${counted}`);
  }
  if (countOf(twin.description, current, "collection_moves")) found.moved += 1;
}

function selfTest(studio) {
  const words = new URLSearchParams(location.hash.slice(1));
  const result = document.createElement("pre");
  result.id = "seen";
  try {
    result.textContent = JSON.stringify(SELF_TESTS[words.get("selftest")](studio));
  } catch (error) {
    result.textContent = JSON.stringify({ failed: String(error), stack: error.stack });
  }
  document.body.append(result);
}

start();
