"""Which ranges of its device a file system has in use, from the output of its own tools.

ext2, ext3, ext4: `dumpe2fs` (e2fsprogs) prints the free blocks of each group. XFS: `xfs_db -r`
(xfsprogs) prints the free extents of each allocation group. The tools only read, and nothing is
mounted. Everything that is not free is in use; bytes beyond the file system's end are not. Trap:
before its log is replayed, a file system's free-space information can be wrong.
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
from ssdlab.heal.device.windows import PROTECTED_BYTES, complement
from ssdlab.heal.pieces import Range

EXT: Final = frozenset({"ext2", "ext3", "ext4"})
_SYSTEM_PATH: Final = "/usr/sbin:/sbin"
_TIMEOUT_S: Final = 3600.0
_FIELD: Final = re.compile(r"^([A-Z][A-Za-z ]+):[ \t]+(.*)$", re.MULTILINE)
_FREE: Final = re.compile(r"^  Free blocks: (.*)$", re.MULTILINE)
_XFS_FIELD: Final = re.compile(r"^(\w+) = (\S+)$", re.MULTILINE)
_XFS_FREE: Final = re.compile(r"^ +(\d+) +(\d+) +(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system: `ranges` are those in use, except the protected first bytes of the device.

    `log_state` is the state of XFS's log; "" for ext2, ext3 and ext4.
    """

    kind: str
    uuid: str
    size_bytes: int
    block_bytes: int
    ranges: tuple[Range, ...]
    log_state: str = ""


def read_file_system(node: Path, kind: str, *, mounted: bool = False) -> FileSystem:
    """Reads which ranges a device's file system uses; if mounted, they may change at any time.

    Raises:
        TargetError: the tool is missing or fails, or the file system is not clean.
    """
    if kind in EXT:
        return parse_ext(_run_tool("dumpe2fs", str(node)), kind, mounted=mounted)
    commands = ("sb 0", "p blocksize dblocks agblocks logstart logblocks uuid", "freesp -d")
    options = [word for command in commands for word in ("-c", command)]
    printed = _run_tool("xfs_db", "-r", *options, str(node))
    return parse_xfs(printed, _run_tool("xfs_logprint", "-t", str(node)))


def log_state(node: Path, kind: str) -> str:
    """The state of XFS's log; "" for other file systems.

    Raises:
        TargetError: as `read_file_system`.
    """
    return _log_state(_run_tool("xfs_logprint", "-t", str(node))) if kind == "xfs" else ""


def parse_ext(text: str, kind: str, *, mounted: bool = False) -> FileSystem:
    """Parses the output of `dumpe2fs`; a mounted file system's journal need not be empty.

    Raises:
        TargetError: the file system is not clean, or uses clusters (bigalloc).
    """
    fields = dict(_FIELD.findall(text))
    features = fields.get("Filesystem features", "").split()
    state = fields.get("Filesystem state", "")
    if not mounted and "needs_recovery" in features:
        raise TargetError(f"the journal of this {kind} is not empty: mount and unmount it first")
    if not mounted and state != "clean":
        raise TargetError(f"this {kind} is not clean ({state}): run e2fsck on it first")
    if "errors" in state:
        raise TargetError(f"this {kind} has errors ({state}): unmount it and run e2fsck first")
    if "bigalloc" in features:
        raise TargetError(
            f"this {kind} uses clusters (bigalloc), which is not supported: heal its files"
        )
    block, count = int(fields["Block size"]), int(fields["Block count"])
    free = []
    for line in _FREE.findall(text):
        for part in filter(None, line.split(", ")):
            first, _, last = part.partition("-")
            free.append((int(first), int(last or first) + 1 - int(first)))
    listed = sum(length for _, length in free)
    if not mounted and listed != int(fields["Free blocks"]):
        raise TargetError(
            f"dumpe2fs lists {listed} free blocks, but the superblock counts "
            f"{fields['Free blocks']}: run e2fsck on it first"
        )
    spans = [Range(start * block, length * block) for start, length in free]
    size = count * block
    return FileSystem(kind, fields["Filesystem UUID"], size, block, _used(spans, size))


def parse_xfs(text: str, log: str) -> FileSystem:
    """Parses the output of `xfs_db` and `xfs_logprint`. The log is not in `ranges`.

    Raises:
        TargetError: the log is not empty.
    """
    state = _log_state(log)
    if "CLEAN" not in state:
        raise TargetError("the log of this xfs is not empty: mount and unmount it first")
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
    return tuple(complement([Range(0, PROTECTED_BYTES), *free], size_bytes))


def _log_state(text: str) -> str:
    match = re.search(r"log tail: .*", text)
    return " ".join(match[0].split()) if match else ""


def _run_tool(program: str, *arguments: str) -> str:
    tool = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")
    if tool is None:
        raise TargetError(f"{program} is not installed; it is needed to find the space in use")
    done = subprocess.run(
        [tool, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=_TIMEOUT_S,
        env={**os.environ, "LC_ALL": "C"},
    )
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split())
        raise TargetError(f"{program} failed to read the space in use: {reason}")
    return done.stdout
