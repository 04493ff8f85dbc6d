"""Runs the system's programs: losetup, mkfs, mount."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from typing import Final

from ssdlab.errors import TargetError

_PATH: Final = ("/usr/sbin", "/sbin")
"""Directories of system programs, which PATH may lack."""
_TIMEOUT_S: Final = 600.0
"""mkfs on a slow twin takes minutes."""


def find(program: str) -> str | None:
    """The path of a program, or None."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), *_PATH]))


def missing(programs: Iterable[str]) -> list[str]:
    """Those that are not installed."""
    return [program for program in programs if find(program) is None]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs a program; its status is in the result. Ctrl-C reaches only ssdlab, not the program.

    Raises:
        TargetError: it is not installed, or hangs.
    """
    path = find(words[0])
    if path is None:
        raise TargetError(f"{words[0]} is not installed; install it")
    try:
        return subprocess.run(
            [path, *words[1:]],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise TargetError(f"{' '.join(words)} did not end within {_TIMEOUT_S:.0f} s") from error


def run_or_fail(*words: str) -> str:
    """Runs a program and returns its output.

    Raises:
        TargetError: it failed; with its message.
    """
    done = run(*words)
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split()) or f"status {done.returncode}"
        raise TargetError(f"{' '.join(words)} failed: {reason}")
    return done.stdout
