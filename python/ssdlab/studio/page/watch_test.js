// The page of a served twin tests itself at the address #selftest=NAME: JSON in the element `seen`.

const WATCH_TESTS = {
  /** Draws each recorded sample: are the sums of what is drawn the counters? */
  async frames(tested) {
    await tested.update();
    const found = { frames: 0, differences: [], positions: [] };
    const { description } = DATA;
    for (const { number: at } of tested.rows) {
      await show(tested, at);
      const { frame, picture: { sums } } = tested;
      const pairs = {
        "valid units drawn and mapped": [sums.valid, frame.mapped],
        "free superblocks drawn and counted": [sums.free, frame.free],
        "flash writes drawn and counted": [sums.programmed, frame.programmed],
        "erases drawn and counted": [sums.erases * description.dies, countOf(description, frame, "erases")],
      };
      for (const [what, [drawn, counted]] of Object.entries(pairs)) {
        if (drawn !== counted) found.differences.push(`sample ${at}: ${what}: ${drawn}, ${counted}`);
      }
      found.frames += 1;
      found.positions.push(frame.programmed);
    }
    return { ...found, ...shownBy(tested) };
  },

  /** The keys of the page: the sample that each leads to. */
  async keys(tested) {
    await tested.update();
    tested.draw(0);
    const press = async (key, more = {}) => {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
      await tested.fetchFrame();
      tested.draw(0);
      return [tested.at, tested.shown, $("status").textContent];
    };
    const seen = { live: [tested.at, tested.shown, $("status").textContent] };
    for (const [name, key] of [["paused", " "], ["back", "ArrowLeft"], ["home", "Home"], ["on", "ArrowRight"], ["again", " "]]) {
      seen[name] = await press(key);
    }
    return seen;
  },

  /** Whether anything is beyond the right edge, at the widths of a desk and a telephone. */
  async fits() {
    const seen = [];
    for (const width of [1280, 390]) {
      const frame = document.createElement("iframe");
      frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
      const loaded = new Promise((done) => {
        frame.onload = done;
      });
      frame.src = location.pathname;
      document.body.append(frame);
      await loaded;
      await pause(500);
      const { body, documentElement } = frame.contentDocument;
      seen.push({ width, letters: body.innerText.length, beyond: Math.max(0, documentElement.scrollWidth - width) });
      frame.remove();
    }
    return seen;
  },
};

async function show(tested, at) {
  tested.at = at;
  await tested.fetchFrame();
  tested.draw(0);
}

/** What the page shows now: the texts, the counters of the frame, and the sums of all curves. */
function shownBy({ rows, frame, picture }) {
  const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
  const parts = [...picture.view.querySelectorAll("dd")];
  return {
    texts: Object.fromEntries(parts.map((part) => [part.dataset.part, part.textContent])),
    counters: Object.fromEntries(DATA.description.counters.map((name, n) => [name, frame.counters[n]])),
    sums: { host: sum("host"), flash: sum("flash"), requests: sum("requests"), bytes: sum("bytes") },
    drawn: picture.sums,
    fault: $("fault").hidden ? "" : $("fault").textContent,
  };
}

async function selfTest(name) {
  const result = document.createElement("pre");
  result.id = "seen";
  try {
    result.textContent = JSON.stringify(await WATCH_TESTS[name](page));
  } catch (error) {
    result.textContent = JSON.stringify({ failed: String(error), stack: error.stack });
  }
  document.body.append(result);
}

if (location.hash.startsWith("#selftest")) selfTest(new URLSearchParams(location.hash.slice(1)).get("selftest"));
