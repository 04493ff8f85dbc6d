"""Checks that constraints.txt resolves on every Python that ssdlab supports.

Usage: python tools/fresh/pins.py [VERSION...]

For each version, pip resolves all pins to wheels without installing them. These are errors: a pin
that needs a newer Python, has no wheel, was yanked, or contradicts another pin; and a dependency
that constraints.txt does not pin.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PINS = Path(__file__).resolve().parents[2] / "constraints.txt"
# The first patch release of each: a pin must not need 3.11.5, because Debian 12 has 3.11.2.
SUPPORTED = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")


def normal(name: str) -> str:
    """A package name, normalized for comparison."""
    return re.sub(r"[-_.]+", "-", name).lower()


def problems(version: str, pins: Path) -> list[str]:
    """The reasons why the pins cannot be installed on that Python."""
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
        packages = json.loads(report.read_text())["install"]
    pinned = {normal(line.split("==")[0]) for line in pins.read_text().split()}
    names = [package["metadata"]["name"] for package in packages]
    missing = [f"{name} is not pinned" for name in names if normal(name) not in pinned]
    yanked = re.findall(r"yanked version: (.*?) candidate", done.stderr)
    return missing + [f"{name} was yanked" for name in yanked]


def main(versions: list[str]) -> int:
    """Print one line for each version; 1 if a pin cannot be installed on one of them."""
    failed = False
    for version in versions or SUPPORTED:
        reasons = problems(version, PINS)
        failed = failed or bool(reasons)
        outcome = f"does not resolve: {'; '.join(reasons)}" if reasons else "resolves"
        print(f"{PINS.name} on Python {version}: {outcome}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
