"""Programs and system calls that a snapshot needs besides /sys and /proc.

For a captured machine, pass other `Probes`.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ssdlab.storage_stack.health.smart import Runner, run_program


class Sizes(NamedTuple):
    """Bytes of a file system: block size, total, free for ordinary users."""

    block: int
    total: int
    free: int


def sizes_of(mount_point: Path) -> Sizes | None:
    """From statvfs; None on error."""
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
    """By default, of this machine."""

    as_root: bool = field(default_factory=lambda: os.geteuid() == 0)
    kernel: str = field(default_factory=platform.release)
    sizes: Callable[[Path], Sizes | None] = sizes_of
    run: Runner = run_program
    installed: Callable[[str], bool] = is_installed
