"""What cannot be read from files of /sys and /proc: sizes of file systems, programs, rights.

A captured machine brings its own answers.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ssdlab.storage_stack.health.smart import Runner, started
from ssdlab.storage_stack.mounts import PROC
from ssdlab.storage_stack.trim.passage import Roots


class Sizes(NamedTuple):
    """Of a file system, in bytes: its block, all of it, what is free for an ordinary user."""

    block: int
    total: int
    free: int


def sizes_of(mount_point: Path) -> Sizes | None:
    """By statvfs; None where it cannot be reached."""
    try:
        stat = os.statvfs(mount_point)
    except OSError:
        return None
    return Sizes(stat.f_frsize, stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)


def is_installed(program: str) -> bool:
    """Whether a program is in PATH."""
    return shutil.which(program) is not None


@dataclass(frozen=True)
class Probes:
    """How to ask; by default this machine is asked."""

    as_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    kernel: str = field(default_factory=platform.release)
    sizes: Callable[[Path], Sizes | None] = sizes_of
    run: Runner = started
    installed: Callable[[str], bool] = is_installed


def is_live(roots: Roots) -> bool:
    """Whether this machine is read, and not a captured one."""
    return roots.proc == PROC
