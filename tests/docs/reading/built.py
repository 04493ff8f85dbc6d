"""The site, built of pages that a test may change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]


def copied(folder: Path) -> Path:
    """A checkout whose folders are those of this one, by links; its pages are a copy."""
    for name in ("python", "crates"):
        (folder / name).symlink_to(CHECKOUT / name)
    for name in ("docs", "tools"):
        subprocess.run(["cp", "-r", CHECKOUT / name, folder / name], check=True)
    return folder


def built(checkout: Path) -> subprocess.CompletedProcess[str]:
    """Sphinx as `make site` calls it, into that checkout's folder `site`."""
    return subprocess.run(
        ["bash", checkout / "tools" / "site.sh", checkout / "site"],
        env={**os.environ, "PYTHON": sys.executable},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
