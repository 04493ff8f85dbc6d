// The pictures and numbers of one drive, from frames: of a twin in the page, or of a served one.

const CAUSE_COUNTERS = [
  ["host", "nand_host_writes"], ["collection", "nand_collection_writes"], ["wear", "nand_wear_writes"],
  ["folding", "nand_folding_writes"], ["packing", "nand_packing_writes"],
  ["mapping", "nand_mapping_writes"], ["padding", "nand_padding_writes"],
];

/** A counter of a frame by its name. */
function countOf(description, frame, name) {
  const index = description.counters.indexOf(name);
  if (index < 0) throw new Error(`the twin does not count ${name}`);
  return frame.counters[index];
}

class Picture {
  /** `view`: the element that shows the drive; `how` is said before its capacity. */
  constructor(view, description, how = "") {
    Object.assign(this, { view, description });
    this.frame = { cells: new Uint32Array(0) };
    this.cells = new Cells(this.part("cells"), this.part("moves"));
    this.part("model").textContent = this.modelWords(how);
    this.listen();
  }

  part(name) {
    return this.view.querySelector(`[data-part="${name}"]`);
  }

  modelWords(how) {
    const { model, capacity_bytes: capacity, spare, dies, superblocks } = this.description;
    return `${model}, ${how}${bytes(capacity)}: ${dies} dies, ${superblocks} superblocks, ` +
      `spare ${number(100 * spare)} %`;
  }

  /** Draws a frame; `sums` are then those of the drawn values, or null where nothing can be seen. */
  draw(frame, settings, now) {
    this.frame = frame;
    this.sums = this.cells.draw(frame, this.description, settings, now);
    const programmed = this.drawCauses(frame, settings.colours);
    if (this.sums) this.sums.programmed = programmed;
    const { unit_bytes: unit } = this.description;
    const host = countOf(this.description, frame, "host_write_bytes");
    const flash = frame.programmed * unit;
    this.show({
      host: bytes(host),
      flash: bytes(flash),
      waf: host ? number(flash / host) : "–",
      free: `${whole(frame.free)} of ${whole(frame.cells.length / 4)}`,
      buffer: `${bytes(frame.buffered * unit)} of ${bytes(frame.bufferUnits * unit)}`,
    });
  }

  /** Sets the texts of parts. */
  show(texts) {
    for (const [name, text] of Object.entries(texts)) {
      const place = this.part(name);
      if (place.textContent !== text) place.textContent = text;
    }
  }

  /** The bar of flash writes by cause. */
  drawCauses(frame, colours) {
    const room = surface(this.part("causes"));
    if (!room) return null;
    const { pen, width, height } = room;
    pen.clearRect(0, 0, width, height);
    pen.fillStyle = colours.empty;
    pen.fillRect(0, 0, width, height);
    let left = 0;
    let drawn = 0;
    for (const [cause, counter] of CAUSE_COUNTERS) {
      const count = countOf(this.description, frame, counter);
      drawn += count;
      const wide = frame.programmed ? (width * count) / frame.programmed : 0;
      pen.fillStyle = colours[cause];
      pen.fillRect(left, 0, wide, height);
      left += wide;
    }
    return drawn;
  }

  /** What the cells are, under the pointer or at the keyboard's cursor. */
  listen() {
    const tip = this.part("tip");
    const show = (index) => {
      this.cells.cursor = index;
      tip.textContent = index < 0
        ? "Point at a superblock, or focus the picture and use the arrow keys, to read what it is."
        : cellWords(this.frame, this.description, index).join("; ");
    };
    const picture = this.part("moves");
    const count = () => this.frame.cells.length / 4;
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

  showLegends(meaning, colours) {
    const show = (name, entries, more = "") => {
      const place = this.view.querySelector(`[data-legend="${name}"]`);
      place?.replaceChildren(...entries.map(([text, colour, frame]) => {
        const key = document.createElement("span");
        key.className = frame ? "key frame" : "key";
        const box = document.createElement("i");
        box.style[frame ? "borderColor" : "backgroundColor"] = colour;
        key.append(box, text);
        return key;
      }), more);
    };
    show("lanes", [
      ["read", colours.read], ["write, program", colours.program], ["read for collection", colours.gather],
      ["erase", colours.erase], ["flush", colours.flush], ["TRIM", colours.trim],
    ]);
    const states = [["open", colours.ink, true], ["victim", colours.collection, true], ["free", colours.grid, true]];
    show("cells", [...legendOf(meaning, colours), ...states], "The filled part is valid.");
    show("causes", CAUSE_COUNTERS.map(([cause]) => [CAUSE_WORDS[cause], colours[cause]]));
  }
}
