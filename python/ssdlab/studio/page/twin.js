// A twin in the WebAssembly module: calls, texts, and the frame as typed arrays.

const FRAME = {
  clock: 0, tick: 1, requests: 2, step: 3, steps: 4, stepRequests: 5, stepTotal: 6, inFlight: 7,
  furthestRequests: 23, mapped: 25, units: 26, free: 27, programmed: 30, cuts: 31,
  line: 33, buffered: 38, bufferUnits: 39,
};
const FRAME_LENGTH = 40;
const LAYOUT_VERSION = 1;
const SEEK = { tick: 0, requests: 1, clock: 2 };

/** The module: one for all twins of the page. */
class Module {
  static load(base64) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    return new Module(new WebAssembly.Instance(new WebAssembly.Module(bytes), {}).exports);
  }

  constructor(exports) {
    this.exports = exports;
    if (exports.studio_version() !== LAYOUT_VERSION) {
      throw new Error("the page and its module are of different versions: make the page again");
    }
  }

  /** Calls a function whose last arguments are a text. */
  withText(name, ...words) {
    const bytes = new TextEncoder().encode(words.pop());
    const address = this.exports.studio_alloc(bytes.length);
    new Uint8Array(this.exports.memory.buffer, address, bytes.length).set(bytes);
    return this.checked(this.exports[name](...words, address, bytes.length));
  }

  /** The result of a call; throws its message if it failed. */
  checked(result) {
    if (result < 0) throw new Error(this.text());
    return result;
  }

  text() {
    const { memory, studio_text: at, studio_text_bytes: length } = this.exports;
    return new TextDecoder().decode(new Uint8Array(memory.buffer, at(), length()));
  }

  json(name, ...words) {
    this.checked(this.exports[name](...words));
    return JSON.parse(this.text());
  }
}

/** One twin. Everything that is drawn comes from `frame`, `units` and `results`. */
class Twin {
  constructor(module, spec) {
    this.module = module;
    this.handle = module.withText("studio_new", JSON.stringify(spec));
    this.description = module.json("studio_describe", this.handle);
  }

  release() {
    this.module.exports.studio_free(this.handle);
  }

  add(steps) {
    this.module.withText("studio_add_steps", this.handle, JSON.stringify(steps));
  }

  /** Runs until `requests` more have completed, the clock is at `until`, or the steps end. */
  advance(requests, until = Infinity) {
    this.module.checked(this.module.exports.studio_advance(this.handle, requests, until));
  }

  seek(by, value) {
    this.module.checked(this.module.exports.studio_seek(this.handle, by, value));
  }

  observe(lists) {
    this.module.exports.studio_observe(this.handle, lists ? 1 : 0);
  }

  cutPower() {
    this.module.checked(this.module.exports.studio_power_cut(this.handle));
  }

  /** The state now. */
  frame() {
    const at = this.module.exports.studio_frame(this.handle);
    const memory = this.module.exports.memory.buffer;
    const words = new Float64Array(memory, at, FRAME_LENGTH);
    // Copies: a call for another twin may move the module's memory.
    const floats = (index, width) =>
      new Float64Array(memory, words[index + 1], words[index] * width).slice();
    const frame = {
      cells: new Uint32Array(memory, words[9], words[8] * 4).slice(),
      dies: floats(10, 4),
      counters: floats(12, 1),
      series: floats(14, this.description.series.length),
      commands: floats(16, 8),
      operations: floats(18, 8),
      moves: floats(20, 8),
    };
    for (const [name, index] of Object.entries(FRAME)) frame[name] = words[index];
    return frame;
  }

  /** For each of `count` units: [die | place << 16, superblock * pages per block + page]. */
  units(first, count) {
    const at = this.module.exports.studio_units(this.handle, first, count);
    this.module.checked(at);
    return new Uint32Array(this.module.exports.memory.buffer, at, 2 * count);
  }

  counters() {
    return this.module.json("studio_counters", this.handle);
  }

  results() {
    return this.module.json("studio_results", this.handle);
  }

}
