"""Runs btrfs programs, which read all mounts and fail at one whose server is gone.

Another test may cut the power of a served drive at that moment; its mount is removed soon after.
"""

from __future__ import annotations

import os
import subprocess
import time

import pytest

TIMEOUT_S = 60
_SERVER_GONE = "Transport endpoint is not connected"
_stale_mounts: list[str] = []
"""The error after a timeout; later calls do not wait again."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command; skips the test if a mount without a server remains."""
    end = time.monotonic() + TIMEOUT_S
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
        if _stale_mounts or time.monotonic() > end:
            _stale_mounts.append(done.stderr.strip())
            pytest.skip(f"{command[0]} fails at a mount without a server: {_stale_mounts[0]}")
        time.sleep(0.5)
