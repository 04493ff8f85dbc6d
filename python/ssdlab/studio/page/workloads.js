// The steps of the free play: the jobs of the experiments, by one letter and one number each.

const MIB = 2 ** 20;
const KIB = 2 ** 10;
const ROWS_A_STEP = 200;

/** For each kind: its label, the meaning and choices of its number, and its steps. */
const WORKLOADS = {
  f: { label: "write all in order", parameter: null, make: (n, d) => [fill(d)] },
  r: {
    label: "random writes, 4 KiB", parameter: ["of the capacity", [0.1, 0.25, 0.5, 1, 2], 1, percent],
    make: (n, d, seed) => [writes(d, n, { pattern: "random", queue_depth: 32, seed })],
  },
  h: {
    label: "random writes to the first half", parameter: ["of the capacity", [0.25, 0.5, 1, 2], 1, percent],
    make: (n, d, seed) => {
      const { job } = writes(d, n, { pattern: "random", queue_depth: 32, seed });
      return [{ job: { ...job, length_bytes: part(d, 0.5, MIB) } }];
    },
  },
  o: {
    label: "random writes one by one", parameter: ["of the capacity", [0.01, 0.05, 0.25, 1], 0.25, percent],
    make: (n, d, seed) => [writes(d, n, { pattern: "random_once", queue_depth: 1, seed }), flush()],
  },
  z: {
    label: "writes to hot and cold data (Zipf 1.1)", parameter: ["of the capacity", [0.25, 0.5, 1, 2], 1, percent],
    make: (n, d, seed) => [writes(d, n, { pattern: { zipf: { theta: 1.1 } }, queue_depth: 32, seed })],
  },
  m: {
    label: "mixed, 60 % reads of 16 KiB", parameter: ["of the capacity", [0.1, 0.5, 1], 0.5, percent],
    make: (n, d, seed) => [{
      job: {
        op: "write", read_share: 0.6, pattern: "random", length_bytes: d.capacity, seed,
        block_bytes: 16 * KIB, amount_bytes: part(d, n, 16 * KIB), queue_depth: 16,
      },
    }],
  },
  s: {
    label: "writes with a flush after each", parameter: ["writes", [64, 256, 1024], 256, String],
    make: (n, d, seed) => [{
      job: {
        op: "write", pattern: "random", length_bytes: d.capacity, block_bytes: 16 * KIB,
        amount_bytes: n * 16 * KIB, sync: { flush: { every: 1 } }, seed,
      },
    }],
  },
  l: {
    label: "read all in order", parameter: null,
    make: (n, d) => [{
      job: { op: "read", length_bytes: d.capacity, block_bytes: MIB, amount_bytes: d.capacity },
    }],
  },
  e: {
    label: "random reads, 4 KiB", parameter: ["of the capacity", [0.01, 0.1, 0.5], 0.1, percent],
    make: (n, d, seed) => [{
      job: {
        op: "read", pattern: "random", length_bytes: d.capacity, block_bytes: 4 * KIB,
        amount_bytes: part(d, n, 4 * KIB), queue_depth: 16, seed,
      },
    }],
  },
  t: {
    label: "TRIM the end", parameter: ["of the capacity", [0.1, 0.28, 0.5, 1], 0.5, percent],
    make: (n, d) => {
      const length = part(d, n, MIB);
      const job = { op: "trim", offset_bytes: d.capacity - length, length_bytes: length };
      return [{ job: { ...job, block_bytes: MIB, amount_bytes: length, queue_depth: 4 } }];
    },
  },
  u: { label: "flush", parameter: null, make: () => [flush()] },
  i: {
    label: "leave idle", parameter: ["seconds", [0.01, 0.1, 1, 10, 60], 10, String],
    make: (n) => [{ rest: n }],
  },
  c: { label: "cut the power", parameter: null, make: () => [{ power_cut: true }] },
};

function percent(share) {
  return `${number(100 * share)} %`;
}

function part({ capacity }, share, block) {
  return Math.max(block, Math.floor((share * capacity) / block) * block);
}

function fill({ capacity }) {
  return {
    job: { op: "write", length_bytes: capacity, block_bytes: MIB, amount_bytes: capacity, queue_depth: 4 },
  };
}

function flush() {
  return { job: { op: "flush" } };
}

/** Random writes of 4 KiB: `share` of the capacity in bytes. */
function writes(drive, share, more) {
  const amount = part(drive, share, 4 * KIB);
  return {
    job: { op: "write", length_bytes: drive.capacity, block_bytes: 4 * KIB, amount_bytes: amount, ...more },
  };
}

/** The commands of a step, as the module will count them. */
function requestsOf({ job }) {
  if (!job) return 0;
  if (job.op === "flush") return 1;
  const requests = Math.ceil(job.amount_bytes / job.block_bytes);
  return requests * (job.sync ? 2 : 1);
}

/** The steps of a list of [letter, number], for a drive of `capacity` bytes (a whole MiB). */
function stepsOf(list, capacity, seed) {
  const drive = { capacity: Math.floor(capacity / MIB) * MIB };
  return list.flatMap(([kind, value], index) => {
    const steps = WORKLOADS[kind].make(value, drive, seed * 1000 + index);
    for (const step of steps) {
      if (step.job) step.job.interval_us = Math.max(20, Math.round((10 * requestsOf(step)) / ROWS_A_STEP));
    }
    return steps;
  });
}

/** A list as text for the link, and back; unknown kinds are left out. */
function encodeSteps(list) {
  return list.map(([kind, value]) => (WORKLOADS[kind].parameter ? `${kind}${value}` : kind)).join("_");
}

function decodeSteps(text) {
  return text.split("_").filter((word) => word[0] in WORKLOADS).map((word) => {
    const { parameter } = WORKLOADS[word[0]];
    const value = Number(word.slice(1));
    if (!parameter) return [word[0], null];
    return [word[0], Number.isFinite(value) && value > 0 ? value : parameter[2]];
  });
}

function stepWords([kind, value]) {
  const { label, parameter } = WORKLOADS[kind];
  if (!parameter) return label;
  const [meaning, , , write] = parameter;
  return `${label}: ${write(value)} ${meaning}`;
}
