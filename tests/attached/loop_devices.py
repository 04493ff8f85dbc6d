"""Attaches loop devices, and waits until no other process has them open.

`losetup --find` gets the number of a free device and then opens it. If two run at once, the slower
one briefly has the other's device open for writing, and an exclusive open of it fails.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

TIMEOUT_S = 60


def attach(image: Path, *flags: str) -> tuple[Path | None, str]:
    """A loop device on a file, open in no other process; or None and the reason."""
    done = subprocess.run(
        ["losetup", "--find", "--show", *flags, str(image)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        return None, done.stderr.strip()
    node = Path(done.stdout.strip())
    end = time.monotonic() + TIMEOUT_S
    while openers := _open_in(node):
        assert time.monotonic() < end, f"{node} is open in {openers}"
        time.sleep(0.01)
    return node, ""


def _open_in(node: Path) -> list[str]:
    """The ids of the processes that have the device open."""
    number = node.stat().st_rdev
    openers = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or belongs to another user
            if any(_is(number, descriptor) for descriptor in (process / "fd").iterdir()):
                openers.append(process.name)
    return openers


def _is(number: int, descriptor: Path) -> bool:
    with suppress(OSError):  # it was closed, or its server is gone
        return descriptor.stat().st_rdev == number
    return False
