// Shows the value nearest to the pointer; opens folded parts for printing.
(() => {
  const REACH = 28; // pixels of the screen
  const tip = document.createElement("div"), ring = document.createElement("div");
  tip.className = "tip";
  ring.className = "ring";
  document.body.append(ring, tip);
  const hide = () => { tip.hidden = ring.hidden = true; };
  hide();
  for (const figure of document.querySelectorAll("svg[data-values]")) {
    const [texts, points] = JSON.parse(figure.dataset.values);
    const show = (event) => {
      const box = figure.getBoundingClientRect();
      const scale = box.width / figure.viewBox.baseVal.width;
      let near = null, least = REACH;
      for (const [x, y, ...lines] of points) {
        const at = [box.left + x * scale, box.top + y * scale];
        const far = Math.hypot(at[0] - event.clientX, at[1] - event.clientY);
        if (far < least) [near, least] = [{ at, lines }, far];
      }
      if (near === null) return hide();
      tip.textContent = near.lines.map((line) => texts[line]).join("\n");
      tip.hidden = ring.hidden = false;
      const [left, top] = near.at;
      ring.style.translate = `${left}px ${top}px`;
      const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
      const above = top - tip.offsetHeight - 14;
      tip.style.translate =
        `${Math.max(8, Math.min(room, left - tip.offsetWidth / 2))}px ${above < 8 ? top + 14 : above}px`;
    };
    figure.addEventListener("pointermove", show);
    figure.addEventListener("pointerdown", show);
    figure.addEventListener("pointerleave", hide);
  }
  addEventListener("scroll", hide, { passive: true });
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
})();
