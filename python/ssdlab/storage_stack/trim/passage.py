"""`Passage`: whether a TRIM passes one layer, and why it is thought so."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ssdlab.storage_stack.blockdev import SYS
from ssdlab.storage_stack.mounts import PROC
from ssdlab.storage_stack.trim.tables import Tables

Passes = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class Passage:
    """One layer's answer.

    `layer` is its kind: schedule, file system, partition, dm-crypt, LVM, thin pool, device mapper,
    md, bcache, loop, USB or drive. The schedule is whether anything asks the file system to
    discard. `device` names it: a kernel name, or the mount point of a file system. `why` is the
    evidence in words. `of_below`: it passes none only because what lies below takes none.
    `below_file`: it lies below the backing file of a loop device, where a discard is a hole in
    that file first.
    """

    layer: str
    device: str
    passes: Passes
    why: str
    of_below: bool = False
    below_file: bool = False


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the answers are read: the system's own directories, or captured ones.

    `tables` are device-mapper tables by name (`tables.read_tables`), which root alone can read.
    """

    sys: Path = SYS
    proc: Path = PROC
    etc: Path = Path("/etc")
    run: Path = Path("/run")
    tables: Tables = field(default_factory=dict)
