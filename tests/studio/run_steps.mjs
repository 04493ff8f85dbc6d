// Runs steps in the module of the studio: node run_steps.mjs MODULE PIECES <INPUT >OUTPUT
//
// INPUT is JSON with `spec` and `steps`; OUTPUT has the results and the counters, as the example
// run_steps of crates/studio prints them. The steps run in PIECES requests at a time (0: at once).
import { readFileSync } from "node:fs";

const [path, pieces] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(path), {});
const module = instance.exports;
module.studio_version();

function text() {
  const bytes = new Uint8Array(module.memory.buffer, module.studio_text(), module.studio_text_bytes());
  return new TextDecoder().decode(bytes);
}

function passed(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const address = module.studio_alloc(bytes.length);
  new Uint8Array(module.memory.buffer, address, bytes.length).set(bytes);
  return [address, bytes.length];
}

function checked(result) {
  if (result < 0) {
    console.error(text());
    process.exit(2);
  }
  return result;
}

process.on("uncaughtException", (error) => {
  console.error(`${error}: ${text()}`); // the message of a panic
  process.exit(1);
});

const { spec, steps } = JSON.parse(readFileSync(0, "utf8"));
const twin = checked(module.studio_new(...passed(spec)));
checked(module.studio_add_steps(twin, ...passed(steps)));
const begin = performance.now();
while (checked(module.studio_advance(twin, Number(pieces) || Infinity, Infinity)) === 0);
const milliseconds = performance.now() - begin;
checked(module.studio_results(twin));
const results = JSON.parse(text());
checked(module.studio_counters(twin));
const output = { results, counters: JSON.parse(text()) };
if (process.env.STUDIO_TIMED) output.milliseconds = milliseconds;
process.stdout.write(JSON.stringify(output));
