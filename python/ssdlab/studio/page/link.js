// The link: the whole state of the page as the fragment of its address.

const COLOURS = ["valid", "age", "cause", "stream", "erases"];

/** The state that a fragment describes; what is missing or unknown is the default. */
function readLink(fragment, data) {
  const words = new URLSearchParams(fragment.replace(/^#/, ""));
  const one = (name, allowed, otherwise) => (allowed.includes(words.get(name)) ? words.get(name) : otherwise);
  const count = (name, otherwise) => {
    const value = Number(words.get(name) ?? Number.NaN);
    return Number.isFinite(value) && value >= 0 ? value : otherwise;
  };
  const scene = one("scene", data.scenes.map(({ name }) => name), null);
  const settings = Object.fromEntries(Object.keys(SETTINGS).map(
    (name) => [name, one(name, SETTINGS[name].values, "")],
  ));
  return {
    scene: words.has("free") ? null : scene ?? data.scene,
    at: Math.floor(count("at", 0)),
    speed: Math.min(SPEEDS.length - 1, Math.floor(count("speed", 0))),
    colour: one("colour", COLOURS, null),
    theme: one("theme", ["light", "dark"], ""),
    free: {
      profile: one("profile", Object.keys(data.profiles), data.twin),
      capacity: count("capacity", data.capacity_bytes),
      settings,
      other: one("other", OTHERS.map(({ key }) => key), ""),
      steps: decodeSteps(words.get("steps") ?? "f_r1"),
    },
  };
}

/** The fragment of a state. */
function writeLink({ scene, at, speed, colour, theme, free }) {
  const words = new URLSearchParams();
  if (scene) words.set("scene", scene);
  else {
    words.set("free", "");
    words.set("profile", free.profile);
    words.set("capacity", String(free.capacity));
    for (const [name, value] of Object.entries(free.settings)) if (value) words.set(name, value);
    if (free.other) words.set("other", free.other);
    words.set("steps", encodeSteps(free.steps));
  }
  words.set("at", String(at));
  if (speed) words.set("speed", String(speed));
  if (colour) words.set("colour", colour);
  if (theme) words.set("theme", theme);
  return `#${words.toString()}`;
}
