"""Pages as a headless Chromium shows them: on a desk and on a telephone."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

WIDTHS = (1280, 390)
"""CSS pixels of a small desk's window and of a telephone's."""
HANGS_S = 600
_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Each page in a frame of its own: what it says, what does not fit, what was not found.
_SCRIPT = """<!doctype html><meta charset="utf-8"><body><script>
(async () => {
  const seen = [];
  for (const page of PAGES) for (const width of WIDTHS) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
    const loaded = new Promise((done) => { frame.onload = done; });
    frame.src = page;
    document.body.append(frame);
    await loaded;
    const inside = frame.contentDocument;
    const missing = (image) => !(image.complete && image.naturalWidth);
    const cut = (block) => block.scrollWidth > block.clientWidth;
    seen.push({
      page,
      width,
      letters: inside.body.innerText.length,
      beyond: Math.max(0, inside.documentElement.scrollWidth - width),
      cut: [...inside.querySelectorAll("pre")].filter(cut).map((block) => block.innerText),
      missing: [...inside.images].filter(missing).map((image) => image.getAttribute("src")),
    });
    frame.remove();
  }
  document.body.innerHTML = "<pre id=seen></pre>";
  document.getElementById("seen").textContent = JSON.stringify(seen);
})();
</script>"""


@dataclass(frozen=True)
class Seen:
    """A page at a width: its letters, pixels beyond its right edge, blocks cut, images missing."""

    page: str
    width: int
    letters: int
    beyond: int
    cut: list[str]
    missing: list[str]


def look(pages: Sequence[Path], folder: Path) -> tuple[list[Seen], list[str]]:
    """Each page at each width, and what the browser's console says; `folder` is for its profile.

    Skips the test where no Chromium is installed.
    """
    script = _SCRIPT.replace("PAGES", json.dumps([page.resolve().as_uri() for page in pages]))
    answer, console = run_script(script.replace("WIDTHS", json.dumps(WIDTHS)), folder)
    return [Seen(**each) for each in answer], console


def run_script(page: str, folder: Path, fragment: str = "") -> tuple[Any, list[str]]:
    """What a page writes as JSON into its element `seen`, and what the console says.

    `fragment` ends its address. Skips the test where no Chromium is installed.
    """
    frames = folder / "frames.html"
    frames.write_text(page)
    return run_address(frames.as_uri() + fragment, folder)


def run_address(address: str, folder: Path) -> tuple[Any, list[str]]:
    """As `run_script`, for the page at an address."""
    found = [name for name in _NAMES if shutil.which(name)]
    if not found:
        pytest.skip(f"needs {_NAMES[0]}, which is not installed")
    options = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    options += ["--allow-file-access-from-files", "--virtual-time-budget=600000", "--dump-dom"]
    if os.geteuid() == 0:
        options.append("--no-sandbox")  # it refuses root otherwise
    done = subprocess.run(
        [found[0], *options, f"--user-data-dir={folder / 'profile'}", address],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_S,
    )
    hit = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert hit, f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(hit[1])), console
