"""The whole machine: swap, memory, LVM's discard setting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ssdlab.snapshot import Swap
from ssdlab.storage_stack.blockdev import BlockDevice, device_by_node
from ssdlab.storage_stack.layers import drives_of_mount, drives_under
from ssdlab.storage_stack.mounts import longest_prefix, read_mounts
from ssdlab.storage_stack.pseudofile import read_text, unescape
from ssdlab.storage_stack.roots import Roots

_KIB: Final = 1024
_ISSUE: Final = re.compile(r"^\s*issue_discards\s*=\s*(\d)", re.MULTILINE)
_MEMORY: Final = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


def swaps(roots: Roots) -> tuple[Swap, ...]:
    """All active swap spaces, each with its drives."""
    lines = (read_text(roots.proc / "swaps") or "").splitlines()[1:]
    return tuple(_swap(line.split(), roots) for line in lines if line.strip())


def _swap(fields: list[str], roots: Roots) -> Swap:
    name = unescape(fields[0])
    drives = _drives(name, roots)
    return Swap(
        name=name,
        size_bytes=int(fields[2]) * _KIB,
        used_bytes=int(fields[3]) * _KIB,
        drives=tuple(drive.name for drive in drives),
        in_memory=bool(drives) and all(drive.transport == "ram" for drive in drives),
    )


def _drives(name: str, roots: Roots) -> tuple[BlockDevice, ...]:
    device = device_by_node(name, roots.sys)
    if device is not None:
        return drives_under(device, roots.sys, roots.proc)
    mount = longest_prefix(Path(name), read_mounts(roots.proc), None)
    return () if mount is None else drives_of_mount(mount, roots.sys, roots.proc)


def memory_bytes(roots: Roots) -> int | None:
    """Total memory of the machine (MemTotal)."""
    match = _MEMORY.search(read_text(roots.proc / "meminfo") or "")
    return None if match is None else int(match[1]) * _KIB


def lvm_discards(roots: Roots) -> bool | None:
    """Whether LVM discards the space that it frees (issue_discards); None without lvm.conf."""
    text = read_text(roots.etc / "lvm" / "lvm.conf")
    if text is None:
        return None
    match = _ISSUE.search(text)
    return match is not None and match[1] != "0"
