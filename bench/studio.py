"""Frames of the studio's page: the time that one takes, with 4,096 superblocks drawn.

Usage: python bench/studio.py

Each frame runs 200 commands of random writes on a full drive, and draws everything, in a headless
Chromium without a graphics card. 60 frames a second leave 16.7 ms for each. Needs Chromium and the
module that `make studio` builds.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ssdlab import profiles
from ssdlab.device import describe_twin
from ssdlab.studio import PageOptions, make_page
from ssdlab.target import Twin

SUPERBLOCKS = 4096
# A twin of the XG5 with few pages in a block, so that many superblocks fit into the page's memory.
CHANGES = (("value = 768,", "value = 3,"), ('value = "512 GB"', 'value = "6000 MB"'))
LINK = "#selftest=speed&free=&steps=f_r0.3_r1&at=400000"


def main() -> None:
    """Measures, and prints one line."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("needs chromium, which is not installed")
    profile = profiles.load("toshiba-xg5")
    for old, new in CHANGES:
        assert profile.count(old) == 1, old
        profile = profile.replace(old, new)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.toml"
        file.write_text(profile)
        page = Path(folder) / "studio.html"
        page.write_text(make_page(PageOptions(Twin(str(file), describe_size(profile)), None)))
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"]
        words += ["--virtual-time-budget=600000", "--dump-dom", f"--user-data-dir={folder}/profile"]
        done = subprocess.run(
            [chromium, *words, page.as_uri() + LINK], capture_output=True, text=True, check=True
        )
    hit = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout, re.DOTALL)
    assert hit, done.stdout[-1000:]
    seen = json.loads(html.unescape(hit[1]))
    assert seen["superblocks"] >= SUPERBLOCKS, seen
    print(
        f"{seen['superblocks']} superblocks: {seen['median_ms']:.1f} ms a frame "
        f"({1000 / seen['median_ms']:.0f} frames/s), p99 {seen['p99_ms']:.1f} ms"
    )


def describe_size(profile: str) -> int:
    """The capacity of the profile's twin."""
    description = describe_twin("many", profile)
    assert description["superblocks"] >= SUPERBLOCKS, description["superblocks"]
    return int(description["capacity_bytes"])


if __name__ == "__main__":
    main()
