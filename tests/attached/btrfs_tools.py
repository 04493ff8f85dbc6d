"""Programs of btrfs look at everybody's mounts, and give up at one whose server is gone.

A test beside may cut a served drive's power just then: what that leaves is undone a moment later.
"""

from __future__ import annotations

import os
import subprocess
import time

import pytest

PATIENCE_S = 120
_SERVER_GONE = "Transport endpoint is not connected"
_in_the_way: list[str] = []
"""What was waited for in vain: it is not waited for again."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program, of btrfs or not; skips where another's mount stays in its way."""
    end = time.monotonic() + PATIENCE_S
    while True:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        if not done.returncode or _SERVER_GONE not in done.stderr:
            return done
        if _in_the_way or time.monotonic() > end:
            _in_the_way.append(done.stderr.strip())
            pytest.skip(f"a mount is in the way of {command[0]}: {_in_the_way[0]}")
        time.sleep(0.5)
