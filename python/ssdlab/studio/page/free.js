// The free play: a drive from a profile with changed settings, its steps, and a second drive.

const SETTINGS = {
  spare: {
    label: "spare", values: ["0.07", "0.15", "0.28", "0.5"], write: (value) => percent(Number(value)),
    overrides: (value) => ({ ftl: { spare: Number(value) } }),
  },
  victim: {
    label: "victim policy", values: ["greedy", "fifo", "d-choices", "cost-benefit"], write: String,
    overrides: (value) => ({ ftl: { victim: value } }),
  },
  placement: {
    label: "placement", values: ["striped", "hinted", "inferred", "packed"], write: String,
    overrides: (value) => ({ ftl: { placement: value, streams: null } }),
  },
  capacitors: {
    label: "power-loss protection", values: ["true", "false"], write: (value) => (value === "true" ? "yes" : "no"),
    overrides: (value) => ({ buffer: { power_loss_protection: value === "true" } }),
  },
};
/** The settings in which a second drive may differ. */
const OTHERS = Object.entries(SETTINGS).flatMap(([name, { label, values, write }]) =>
  values.map((value) => ({ key: `${name}:${value}`, label: `${label}: ${write(value)}` })));
const FREE_SECONDS = 60;
const CAPACITIES = [64, 128, 256, 512, 1024, 2048, 4096].map((mib) => mib * 2 ** 20);

/** The drives of a free play, as `Drive` takes them. */
function freeDrives({ profile, capacity, settings, other, steps }, data) {
  const make = (name, changed) => ({
    name,
    spec: {
      profile: data.profiles[profile],
      overrides: overridesOf(changed, data.profiles[profile]),
      capacity_bytes: capacity,
      seed: data.seed,
    },
    steps: stepsOf(steps, capacity, data.seed),
  });
  const drives = [make(`twin:${profile}`, settings)];
  if (other) {
    const [name, value] = other.split(":");
    const label = OTHERS.find(({ key }) => key === other).label;
    drives.push(make(label, { ...settings, [name]: value }));
  }
  return drives;
}

/** The timeline of the free play: a minute, whatever happens. */
function freeTimeline(steps) {
  return new Timeline(steps.map(requestsOf), [{ step: 0, seconds: FREE_SECONDS }]);
}

/** The changes of a profile, by table and key, for these settings. */
function overridesOf(settings, profile) {
  const tables = {};
  for (const [name, value] of Object.entries(settings)) {
    if (!value) continue;
    for (const [table, keys] of Object.entries(SETTINGS[name].overrides(value))) {
      tables[table] = { ...tables[table], ...keys };
    }
  }
  // Two of capacity, spare and blocks decide: with another spare, the capacity that is stated.
  if (settings.spare && /^\s*capacity\s*=/m.test(profile)) tables.flash = { blocks_per_plane: null };
  return tables;
}

/** The form of the free play; `changed(free)` is called with each new state. */
class FreeForm {
  constructor(form, data, changed) {
    this.form = form;
    this.changed = changed;
    const fields = form.elements;
    this.fields = fields;
    setOptions(fields.profile, Object.keys(data.profiles).map((name) => [name, name]));
    for (const name of ["spare", "victim", "placement"]) {
      const { values, write } = SETTINGS[name];
      setOptions(fields[name], [["", "as the profile"], ...values.map((value) => [value, write(value)])]);
    }
    setOptions(fields.other, [["", "none"], ...OTHERS.map(({ key, label }) => [key, label])]);
    setOptions(fields.kind, Object.entries(WORKLOADS).map(([kind, { label }]) => [kind, label]));
    fields.kind.addEventListener("change", () => this.amounts());
    for (const name of ["profile", "capacity", "spare", "victim", "placement", "other"]) {
      fields[name].addEventListener("change", () => this.changed(this.read(), "drive"));
    }
    form.querySelector("#add").addEventListener("click", () => {
      const value = fields.amount.value === "" ? null : Number(fields.amount.value);
      this.state.steps.push([fields.kind.value, value]);
      this.changed(this.read(), "added");
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    this.amounts();
  }

  amounts() {
    const { parameter } = WORKLOADS[this.fields.kind.value];
    this.fields.amount.disabled = !parameter;
    const choices = parameter ? parameter[1].map((each) => [String(each), parameter[3](each)]) : [["", "–"]];
    setOptions(this.fields.amount, choices);
    if (parameter) this.fields.amount.value = String(parameter[2]);
  }

  read() {
    const { profile, capacity, spare, victim, placement, other } = this.fields;
    return {
      ...this.state,
      profile: profile.value,
      capacity: Number(capacity.value),
      settings: { ...this.state.settings, spare: spare.value, victim: victim.value, placement: placement.value },
      other: other.value,
    };
  }

  show(state, current) {
    this.state = state;
    const capacities = [...new Set([...CAPACITIES, state.capacity])].sort((a, b) => a - b);
    setOptions(this.fields.capacity, capacities.map((each) => [String(each), bytes(each)]));
    this.fields.profile.value = state.profile;
    this.fields.capacity.value = String(state.capacity);
    for (const name of ["spare", "victim", "placement"]) this.fields[name].value = state.settings[name];
    this.fields.other.value = state.other;
    const list = this.form.querySelector("#steps");
    list.replaceChildren(...state.steps.map((step, index) => {
      const item = document.createElement("li");
      item.textContent = stepWords(step);
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove: ${stepWords(step)}`);
      remove.addEventListener("click", () => {
        state.steps.splice(index, 1);
        this.changed(this.read(), "drive");
      });
      item.append(remove);
      return item;
    }));
    this.mark(current);
  }

  /** Marks the step that runs now; a step of the list can be several of the module. */
  mark(current) {
    const counts = this.state.steps.map(([kind]) => (kind === "o" ? 2 : 1));
    let before = 0;
    [...this.form.querySelectorAll("#steps li")].forEach((item, index) => {
      item.classList.toggle("now", current >= before && current < before + counts[index]);
      before += counts[index];
    });
  }
}

function setOptions(select, choices) {
  select.replaceChildren(...choices.map(([value, label]) => new Option(label, value)));
}
