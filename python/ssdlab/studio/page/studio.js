// The page: its state, its controls, and the loop that draws.

const $ = (id) => document.getElementById(id);
const DATA = JSON.parse($("data").textContent);
const REDUCED = matchMedia("(prefers-reduced-motion: reduce)");
const LINK_EVERY_MS = 1000;

class Studio {
  constructor(module) {
    this.module = module;
    this.state = readLink(location.hash, DATA);
    this.drives = [];
    this.curves = CURVES.map((curve) => {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", curve.title);
      $("curves").append(canvas);
      return new Curves(canvas, curve);
    });
    this.form = new FreeForm($("free"), DATA, (free, what) => this.changeFree(free, what));
    this.makeTabs();
    this.listen();
    this.setTheme(this.state.theme);
    this.open();
  }

  makeTabs() {
    const tab = (label, scene) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.dataset.scene = scene ?? "";
      button.addEventListener("click", () => {
        Object.assign(this.state, { scene, at: 0, colour: null, speed: 0 });
        this.open();
      });
      $("scenes").append(button);
    };
    for (const { name, tab: label } of DATA.scenes) tab(label, name);
    tab("Free play", null);
  }

  /** Makes the drives of the state, and goes to its place on the timeline. */
  open() {
    const { scene: name, free, at } = this.state;
    for (const drive of this.drives) drive.release();
    this.drives = [];
    this.story = name ? new Story(DATA.scenes.find((scene) => scene.name === name)) : null;
    $("fault").hidden = true;
    for (const button of $("scenes").children) {
      if (button.dataset.scene === (name ?? "")) {
        button.setAttribute("aria-current", "page");
        $("scenes").scrollLeft = button.offsetLeft - $("scenes").offsetLeft - 40;
      } else button.removeAttribute("aria-current");
    }
    $("story").hidden = $("end").hidden = !this.story;
    $("free").hidden = Boolean(this.story);
    $("previous").hidden = $("next").hidden = !this.story;
    const wanted = this.story
      ? this.story.scene.drives.map((drive) => ({ ...drive, fileBytes: this.story.scene.file_bytes }))
      : freeDrives(free, DATA);
    try {
      for (const drive of wanted) this.drives.push(this.makeDrive(drive));
    } catch (error) {
      for (const drive of this.drives.splice(0)) drive.release();
      this.fail(error);
    }
    this.timeline = this.story ? this.story.timeline : freeTimeline(wanted[0].steps);
    this.player = new Player(this.drives, this.timeline);
    this.player.speed = SPEEDS[this.state.speed];
    this.chapter = -1;
    this.step = -1;
    if (this.story) this.showScene();
    else this.form.show(free, 0);
    this.seek(at);
  }

  makeDrive(drive) {
    const view = $("drive").content.firstElementChild.cloneNode(true);
    $("drives").append(view);
    view.classList.toggle("second", $("drives").children.length === 2);
    try {
      return new Drive(this.module, drive, view);
    } catch (error) {
      view.remove();
      throw error;
    }
  }

  fail(error) {
    $("fault").textContent = error.message;
    $("fault").hidden = false;
    if (this.player) this.player.playing = false;
  }

  showScene() {
    const { scene, chapters } = this.story;
    $("question").textContent = scene.question;
    $("title").textContent = scene.title;
    $("command").textContent = scene.command;
    $("own").textContent = scene.own;
    $("verdict").textContent = scene.verdict;
    $("findings").querySelector("dl").replaceChildren(...scene.findings.flatMap(([label, value, why]) => {
      const [term, text, note] = ["dt", "dd", "small"].map((name) => document.createElement(name));
      [term.textContent, text.textContent, note.textContent] = [label, value, why];
      text.append(note);
      return [term, text];
    }));
    $("chapters").replaceChildren(...chapters.map(({ title }, index) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-label", `Chapter ${index + 1}: ${title}`);
      button.addEventListener("click", () => this.goToChapter(index));
      item.append(button);
      return item;
    }));
    this.showEqual();
  }

  showChapter() {
    const index = this.story.chapterAt(this.player.at);
    if (index === this.chapter) return;
    this.chapter = index;
    const { title, text } = this.story.chapters[index];
    $("chapter").textContent = `${index + 1}. ${title}`;
    setText($("text"), text);
    [...$("chapters").querySelectorAll("button")].forEach((button, each) => {
      button.classList.toggle("past", each < index);
      if (each === index) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    });
  }

  showEqual() {
    const place = $("equal");
    const result = this.story.compared;
    place.className = result ? (result.differences.length ? "bad" : "good") : "";
    $("finish").hidden = Boolean(result);
    if (!result) {
      place.textContent = "At the end, the page checks that its numbers equal those of this command.";
      return;
    }
    const [head, more] = this.story.equalWords();
    const small = document.createElement("small");
    small.textContent = more;
    place.replaceChildren(head, small);
  }

  goToChapter(index) {
    const { chapters } = this.story;
    this.seek(chapters[Math.max(0, Math.min(chapters.length - 1, index))].from);
  }

  /** Goes to a place on the timeline, also to one after the end of the recorded experiment. */
  seek(commands) {
    try {
      if (this.story && !this.story.compared && commands >= this.story.recorded && commands > 0) {
        this.player.finish();
        this.settle();
      }
      if (commands < this.timeline.commands) this.player.seek(commands);
      else this.player.finish();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Compares with the command line when the experiment has run. */
  settle() {
    if (!this.story?.settle(this.drives)) return;
    this.player.catchUp();
    this.showEqual();
  }

  changeFree(free, what) {
    const previous = this.state.free;
    this.state.free = free;
    if (what !== "added") {
      this.state.at = 0;
      this.open();
      return;
    }
    const added = stepsOf(free.steps, free.capacity, DATA.seed).slice(
      stepsOf(previous.steps.slice(0, -1), free.capacity, DATA.seed).length,
    );
    for (const drive of this.drives) drive.add(added);
    this.player.catchUp();
    this.timeline = this.player.timeline = freeTimeline(stepsOf(free.steps, free.capacity, DATA.seed));
    this.form.show(free, this.player.last?.current.step ?? 0);
  }

  setTheme(theme) {
    this.state.theme = theme;
    if (theme) document.body.dataset.theme = theme;
    else delete document.body.dataset.theme;
    $("theme").value = theme;
    this.restyle();
  }

  /** The colours of the theme; everything is drawn again. */
  restyle() {
    this.colours = themeColours();
    this.legends = null;
    for (const drive of this.drives) drive.picture.cells.forget();
  }

  play(wanted = !this.player.playing) {
    if (wanted && this.player.ended) this.seek(0);
    this.player.playing = wanted && this.drives.length > 0;
  }

  listen() {
    $("play").addEventListener("click", () => this.play());
    $("forward").addEventListener("click", () => this.stepBy(1));
    $("back").addEventListener("click", () => this.stepBy(-1));
    $("previous").addEventListener("click", () => this.goToChapter(this.chapter - 1));
    $("next").addEventListener("click", () => this.goToChapter(this.chapter + 1));
    $("finish").addEventListener("click", () => this.seek(this.story.recorded));
    $("scrub").addEventListener("input", () => this.seek(this.timeline.commandsAt(Number($("scrub").value))));
    $("speed").max = String(SPEEDS.length - 1);
    $("speed").value = String(this.state.speed);
    $("speed").addEventListener("input", () => {
      this.state.speed = Number($("speed").value);
      this.player.speed = SPEEDS[this.state.speed];
    });
    $("colour").addEventListener("change", () => {
      this.state.colour = $("colour").value;
    });
    $("theme").addEventListener("change", () => this.setTheme($("theme").value));
    $("copy").addEventListener("click", async () => {
      this.writeLink();
      await navigator.clipboard?.writeText(location.href);
      $("copied").textContent = "The address of this page now has this state.";
    });
    $("cut").addEventListener("click", () => {
      for (const drive of this.drives) drive.cutPower();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
    addEventListener("hashchange", () => {
      if (location.hash === this.written) return;
      this.state = readLink(location.hash, DATA);
      $("speed").value = String(this.state.speed);
      this.setTheme(this.state.theme);
      this.open();
    });
    addEventListener("keydown", (event) => this.key(event));
  }

  stepBy(requests) {
    try {
      this.player.step(requests);
    } catch (error) {
      this.fail(error);
    }
  }

  key(event) {
    const typing = event.target.closest("select, input, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
    if (event.key === " " && event.target.closest("button, summary")) return;
    const actions = {
      " ": () => this.play(),
      ArrowRight: () => this.stepBy(event.shiftKey ? 100 : 1),
      ArrowLeft: () => this.stepBy(event.shiftKey ? -100 : -1),
      PageDown: () => this.story && this.goToChapter(this.chapter + 1),
      PageUp: () => this.story && this.goToChapter(this.chapter - 1),
      Home: () => this.seek(0),
      End: () => this.seek(this.timeline.commands),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  }

  writeLink() {
    this.state.at = Math.round(this.player.at);
    this.written = writeLink(this.state);
    history.replaceState(null, "", this.written);
  }

  /** One frame: time, then the picture. */
  frame(now) {
    try {
      this.player.tick(now);
      this.settle();
      this.draw(now);
    } catch (error) {
      this.fail(error);
    }
    if (!this.linked || now - this.linked > LINK_EVERY_MS) {
      this.linked = now;
      this.writeLink();
    }
  }

  draw(now) {
    if (!this.drives.length) return;
    if (this.story) this.showChapter();
    const meaning = this.state.colour ?? this.story?.colourAt(this.player.at) ?? "valid";
    const { moment, at } = this.player;
    const spanNs = this.span(moment);
    const settings = { colours: this.colours, meaning, reduced: REDUCED.matches, moment, spanNs };
    for (const drive of this.drives) drive.draw(settings, now);
    const seconds = (commands) => this.timeline.secondsAt(commands);
    const places = placesOf(this.drives, this.timeline);
    const sides = this.drives.map(({ history, done }, side) => (
      { rows: history.rows, places: places[side], done }
    ));
    const marks = this.story ? this.story.chapters.map(({ from }) => seconds(from)) : [];
    const axis = { at: seconds(at), total: this.timeline.seconds, marks };
    for (const curve of this.curves) curve.draw(sides, axis, this.colours);
    this.drawControls(meaning);
  }

  /** The part of the past that the commands and dies of all drives show: of the slowest at work. */
  span(moment) {
    const working = this.drives.filter((drive) => !drive.done);
    const shown = working.length ? working : this.drives;
    return Math.max(...shown.map(({ lanes, twin }) => lanes.chooseSpan(moment, twin.description.dies)));
  }

  drawControls(meaning) {
    const { at, playing, speed, ended } = this.player;
    $("play").textContent = playing ? "Stop" : ended ? "Replay" : "Play";
    const seconds = this.timeline.secondsAt(at);
    $("scrub").max = String(this.timeline.seconds);
    $("scrub").value = String(seconds);
    $("scrub").setAttribute("aria-valuetext", `command ${whole(at)} of ${whole(this.timeline.commands)}`);
    $("position").textContent = `${minutes(seconds)} of ${minutes(this.timeline.seconds)}, command ${whole(at)}`;
    $("pace").textContent = speed === AUTO
      ? `${this.story ? "as the scene" : "automatic"}`
      : `${time(speed)} a second`;
    $("colour").value = meaning;
    if (!this.story && this.step !== this.player.last.current.step) {
      this.step = this.player.last.current.step;
      this.form.mark(this.step);
    }
    if (this.legends !== meaning) {
      this.legends = meaning;
      for (const { picture } of this.drives) picture.showLegends(meaning, this.colours);
    }
  }
}

function start() {
  try {
    const module = Module.load($("module").textContent.trim());
    document.querySelector("main").hidden = false;
    $("transport").hidden = false;
    const studio = new Studio(module);
    if (location.hash.startsWith("#selftest")) {
      selfTest(studio);
      return;
    }
    const loop = (now) => {
      studio.frame(now);
      requestAnimationFrame(loop);
    };
    requestAnimationFrame(loop);
  } catch (error) {
    $("fault").textContent = `The page does not run here: ${error.message}`;
    $("fault").hidden = false;
  }
}
