"""What a file system has in use on its device: asked of its own tools, never of its files.

ext2, ext3, ext4: `dumpe2fs` (e2fsprogs) prints the free blocks of each group. XFS: `xfs_db -r`
(xfsprogs) prints the free extents of each allocation group. The tools read; nothing is mounted. In
use is what is not free; what lies behind the file system's end is not its own and stays. Trap:
before its log is replayed a file system's own count of what is free is not to be believed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ssdlab.errors import TargetError
from ssdlab.heal.device.windows import GUARDED_BYTES, complement
from ssdlab.heal.pieces import Range

EXT: Final = frozenset({"ext2", "ext3", "ext4"})
_SYSTEM: Final = "/usr/sbin:/sbin"
_TIMEOUT_S: Final = 3600.0
_FIELD: Final = re.compile(r"^([A-Z][A-Za-z ]+):[ \t]+(.*)$", re.MULTILINE)
_FREE: Final = re.compile(r"^  Free blocks: (.*)$", re.MULTILINE)
_XFS_FIELD: Final = re.compile(r"^(\w+) = (\S+)$", re.MULTILINE)
_XFS_FREE: Final = re.compile(r"^ +(\d+) +(\d+) +(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system at rest. `ranges` are what it has in use behind the guarded first bytes.

    `log_state` is what its tool says of its log, "" where the superblock tells all.
    """

    kind: str
    uuid: str
    size_bytes: int
    block_bytes: int
    ranges: tuple[Range, ...]
    log_state: str = ""


def allocated(node: Path, kind: str, *, mounted: bool = False) -> FileSystem:
    """What the file system on a device has in use; of a mounted one, had a moment ago.

    Raises:
        TargetError: its tool is missing or fails, or it is not clean.
    """
    if kind in EXT:
        return parse_ext(_said("dumpe2fs", str(node)), kind, mounted=mounted)
    words = ("sb 0", "p blocksize dblocks agblocks logstart logblocks uuid", "freesp -d")
    asked = [word for each in words for word in ("-c", each)]
    told = _said("xfs_db", "-r", *asked, str(node))
    return parse_xfs(told, _said("xfs_logprint", "-t", str(node)))


def log_state(node: Path, kind: str) -> str:
    """What XFS's log says now; "" of the others.

    Raises:
        TargetError: as `allocated`.
    """
    return _log_state(_said("xfs_logprint", "-t", str(node))) if kind == "xfs" else ""


def parse_ext(text: str, kind: str, *, mounted: bool = False) -> FileSystem:
    """What `dumpe2fs` said; of a mounted one its journal need not be empty.

    Raises:
        TargetError: not clean, or of a kind whose blocks are counted otherwise.
    """
    fields = dict(_FIELD.findall(text))
    features = fields.get("Filesystem features", "").split()
    state = fields.get("Filesystem state", "")
    if not mounted and "needs_recovery" in features:
        raise TargetError(f"the {kind} has a journal that is not empty: mount and umount it first")
    if not mounted and state != "clean":
        raise TargetError(f"the {kind} is not clean ({state}): run e2fsck on it first")
    if "errors" in state:
        raise TargetError(f"the {kind} has errors ({state}): umount it and run e2fsck first")
    if "bigalloc" in features:
        raise TargetError(f"the {kind} counts clusters (bigalloc): that was never tried")
    block, count = int(fields["Block size"]), int(fields["Block count"])
    free = []
    for line in _FREE.findall(text):
        for part in filter(None, line.split(", ")):
            first, _, last = part.partition("-")
            free.append((int(first), int(last or first) + 1 - int(first)))
    told = sum(length for _, length in free)
    if not mounted and told != int(fields["Free blocks"]):
        raise TargetError(f"dumpe2fs lists {told} free blocks and counts {fields['Free blocks']}")
    spans = [Range(start * block, length * block) for start, length in free]
    size = count * block
    return FileSystem(kind, fields["Filesystem UUID"], size, block, _used(spans, size))


def parse_xfs(text: str, log: str) -> FileSystem:
    """What `xfs_db` and `xfs_logprint` said. Its log is left: nothing reads it in order.

    Raises:
        TargetError: the log is not empty.
    """
    state = _log_state(log)
    if "CLEAN" not in state:
        raise TargetError("the xfs has a log that is not empty: mount and umount it first")
    fields = dict(_XFS_FIELD.findall(text))
    block, group = int(fields["blocksize"]), int(fields["agblocks"])
    spans = [
        Range((int(number) * group + int(start)) * block, int(length) * block)
        for number, start, length in _XFS_FREE.findall(text)
    ]
    start = int(fields["logstart"])
    if start:  # 0: the log is on another device
        shift = (group - 1).bit_length()
        first = (start >> shift) * group + (start & ((1 << shift) - 1))
        spans.append(Range(first * block, int(fields["logblocks"]) * block))
    size = int(fields["dblocks"]) * block
    return FileSystem("xfs", fields["uuid"], size, block, _used(spans, size), state)


def _used(free: list[Range], size_bytes: int) -> tuple[Range, ...]:
    return tuple(complement([Range(0, GUARDED_BYTES), *free], size_bytes))


def _log_state(text: str) -> str:
    found = re.search(r"log tail: .*", text)
    return " ".join(found[0].split()) if found else ""


def _said(program: str, *words: str) -> str:
    tool = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SYSTEM}")
    if tool is None:
        raise TargetError(f"{program}, which tells what is in use, is not installed")
    done = subprocess.run(
        [tool, *words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=_TIMEOUT_S,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split())
        raise TargetError(f"{program} cannot tell what is in use: {reason}")
    return done.stdout
