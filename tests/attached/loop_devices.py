"""Loop devices that nobody else has open: who searches for a free one may open one of ours.

`losetup --find` asks for the number of a free device and then opens it. Where another program was
faster, it has that one's device open for writing for a moment, and who must have it alone is
refused.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

PATIENCE_S = 600


def attach(image: Path, *flags: str) -> tuple[Path | None, str]:
    """A loop device over a file, open in no other program; None and why where none can be had."""
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
    end = time.monotonic() + PATIENCE_S
    while openers := _open_in(node):
        assert time.monotonic() < end, f"{node} is open in {openers}"
        time.sleep(0.01)
    return node, ""


def _open_in(node: Path) -> list[str]:
    """The numbers of the processes that have it open."""
    number = node.stat().st_rdev
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or is another user's
            if any(_is(number, descriptor) for descriptor in (process / "fd").iterdir()):
                found.append(process.name)
    return found


def _is(number: int, descriptor: Path) -> bool:
    with suppress(OSError):  # it was closed meanwhile, or its server is gone
        return descriptor.stat().st_rdev == number
    return False
