"""Checks that constraints.txt resolves on every Python that ssdlab supports.

Usage: python tools/fresh/pins.py [VERSION...]

For each version pip looks for a wheel of every pin, without installing it. A pin that needs a newer
Python, has no wheel for this one, was withdrawn by its authors (yanked) or contradicts another pin
is an error, and so is a package that a pin needs and constraints.txt does not name.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PINS = Path(__file__).resolve().parents[2] / "constraints.txt"
# The first release of each: Debian 12 has 3.11.2, so a pin that needs 3.11.5 is no use there.
SUPPORTED = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")


def normal(name: str) -> str:
    """A package's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def problems(version: str, pins: Path) -> list[str]:
    """What keeps the pins from being installed on that Python."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet"]
        command += ["--disable-pip-version-check", "--ignore-installed", "--report", str(report)]
        command += ["--only-binary=:all:", "--python-version", version, "--target", folder]
        done = subprocess.run(
            [*command, "-r", str(pins)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return done.stderr.strip().splitlines()[-1:] or [f"pip ended with {done.returncode}"]
        found = json.loads(report.read_text())["install"]
    named = {normal(line.split("==")[0]) for line in pins.read_text().split()}
    names = [package["metadata"]["name"] for package in found]
    missing = [f"{name} is not named" for name in names if normal(name) not in named]
    yanked = re.findall(r"yanked version: (.*?) candidate", done.stderr)
    return missing + [f"{name} was withdrawn (yanked)" for name in yanked]


def main(versions: list[str]) -> int:
    """Print one line for each version; 1 if a pin cannot be had on one of them."""
    failed = False
    for version in versions or SUPPORTED:
        found = problems(version, PINS)
        failed = failed or bool(found)
        outcome = f"does not resolve: {'; '.join(found)}" if found else "resolves"
        print(f"{PINS.name} on Python {version}: {outcome}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
