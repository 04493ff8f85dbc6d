"""Whether a file may be rewritten, and by which method: decided from its `FileInfo` alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal

import msgspec

from ssdlab.storage_stack.blockdev import BlockDevice
from ssdlab.storage_stack.device_warnings import device_warnings
from ssdlab.storage_stack.extents import Extent, ExtentFlag, all_flags
from ssdlab.storage_stack.file_info import Attribute, FileInfo
from ssdlab.storage_stack.filesystem import (
    IN_PLACE,
    LOG_STRUCTURED,
    MEMORY,
    PSEUDO,
    READ_ONLY,
    STACKED,
    is_network,
)
from ssdlab.storage_stack.layers import layers_under

Method = Literal["move extents", "share and compare", "copy and exchange"]
CHUNK_BYTES: Final = 32 << 20
"""Largest range that is rewritten in one step."""
_MAY_BE_COPIED: Final = IN_PLACE | LOG_STRUCTURED
_EXT: Final = frozenset({"ext2", "ext3", "ext4"})


class Refusal(msgspec.Struct, frozen=True):
    """Why a file is not healed: `code` for programs, `sentence` for people."""

    code: str
    sentence: str


def method_for(info: FileInfo) -> Method | None:
    """How this file can be rewritten; None if no safe method is known."""
    kind = info.mount.fs_type
    if kind in _EXT and Attribute.EXTENTS in info.attributes:
        return "move extents"
    if info.shares_blocks:
        return "share and compare"
    return "copy and exchange" if kind in _MAY_BE_COPIED else None


def refusal(info: FileInfo, *, shared: bool = False) -> Refusal | None:
    """The first reason why this file must not be rewritten, or None.

    `shared` allows blocks that other files or snapshots use too. Codes: not-a-file, memory, pseudo,
    network, stacked, read-only, swap, immutable, append-only, verity, encrypted, compressed, dax,
    data-journal, inline, no-permission, no-way, no-extents, nothing-there, hard-links, shared,
    no-journal. `changed` and `no_space` have codes of their own.
    """
    for check in _CHECKS:
        reason = check(info)
        if reason is not None:
            return reason
    if not shared:
        return _shared(info)
    return None


def no_space(info: FileInfo, rewritten_bytes: int, method: Method) -> Refusal | None:
    """Refuses if the new blocks would leave less than 1 % of the file system free. Code: no-room.

    Moving extents needs space for one chunk, sharing for all rewritten bytes, copying for the file.
    """
    new_bytes = info.size_bytes if method == "copy and exchange" else rewritten_bytes
    needed = min(new_bytes, CHUNK_BYTES) if method == "move extents" else new_bytes
    if info.space.free_bytes >= needed + info.space.total_bytes // 100:
        return None
    free_mib, needed_mib = info.space.free_bytes >> 20, needed >> 20
    return Refusal(
        "no-room",
        f"{free_mib} MiB are free; a heal needs {needed_mib} MiB, and 1 % of the file system must "
        "stay free: free some space",
    )


def cached_below(devices: Iterable[BlockDevice]) -> Refusal | None:
    """Why the speed of reads from `devices` is not a drive's. Code: page-cache-below."""
    for device in devices:
        for layer in layers_under(device):
            if any(each.code == "page-cache-below" for each in device_warnings(layer.device)):
                node = f"/dev/{layer.device.name}"
                return Refusal(
                    "page-cache-below",
                    f"no speed can be measured, because {node} is a loop device without direct I/O "
                    "and the page cache of the host may answer instead of the drive: run sudo "
                    f"losetup --direct-io=on {node}",
                )
    return None


def untimed(reason: Refusal) -> Refusal:
    """The refusal of a heal that only a measured speed can plan."""
    return Refusal(
        reason.code, f"{reason.sentence}, or choose what to rewrite by --ranges or --all"
    )


def changed(info: FileInfo) -> Refusal | None:
    """Refuses a file replaced or truncated after `info` was read (log rotation). Code: changed.

    A file that grew is healed as planned, up to its old size.
    """
    try:
        status = info.path.stat()
    except FileNotFoundError:
        what = "it was removed or renamed"
    else:
        if (status.st_dev, status.st_ino) != (info.device_number, info.inode):
            what = "it was replaced by another file"
        elif status.st_size < info.size_bytes:
            what = f"it was truncated from {info.size_bytes} to {status.st_size} bytes"
        else:
            return None
    return Refusal("changed", f"{what} during the heal; no data is lost: run heal again")


def _kind(info: FileInfo) -> Refusal | None:
    if not info.is_plain:
        return Refusal("not-a-file", "it is not a regular file")
    return None


def _mount(info: FileInfo) -> Refusal | None:
    kind, point = info.mount.fs_type, info.mount.mount_point
    for code, kinds, what in (
        ("memory", MEMORY, "a file system in memory"),
        ("pseudo", PSEUDO, "generated by the kernel"),
    ):
        if kind in kinds:
            return Refusal(code, f"{point} is {kind}, {what}: give a file on a drive")
    if is_network(kind):
        return Refusal("network", f"{point} is {kind}: heal it on the machine that has the drive")
    if kind in STACKED or kind == "fuse" or kind.startswith("fuse."):
        return Refusal("stacked", f"{point} is {kind}: heal the file below it, on its own mount")
    if info.mount.has("ro") or kind in READ_ONLY:
        return Refusal("read-only", f"{point} is mounted read-only")
    return None


def _swap(info: FileInfo) -> Refusal | None:
    if info.is_swap:
        return Refusal(
            "swap", "it is active swap space: the kernel writes to its blocks directly; swapoff"
        )
    return None


_ATTRIBUTES: Final = (
    (Attribute.IMMUTABLE, "immutable", "it is immutable (chattr +i)"),
    (Attribute.APPEND_ONLY, "append-only", "it is append-only (chattr +a)"),
    (Attribute.VERITY, "verity", "it is protected by fs-verity"),
    (Attribute.ENCRYPTED, "encrypted", "the file system encrypts it: its blocks cannot be moved"),
    (Attribute.COMPRESSED, "compressed", "the file system compresses it (chattr +c)"),
    (Attribute.DAX, "dax", "it is accessed without the page cache (DAX)"),
    (Attribute.JOURNAL_DATA, "data-journal", "its data goes through the journal (chattr +j)"),
)


def _attribute(info: FileInfo) -> Refusal | None:
    for attribute, code, sentence in _ATTRIBUTES:
        if attribute in info.attributes:
            return Refusal(code, sentence)
    if info.mount.option("data") == "journal":
        return Refusal("data-journal", "data=journal: its data goes through the journal")
    return None


def _permission(info: FileInfo) -> Refusal | None:
    if not info.may_write:
        return Refusal(
            "no-permission", "you may not write it, or it belongs to another user: use sudo"
        )
    return None


_FLAGS: Final = (
    (ExtentFlag.ENCRYPTED, "encrypted", "the file system encrypts it: its blocks cannot be moved"),
    (ExtentFlag.ENCODED, "compressed", "the file system compresses it: a rewrite would undo that"),
    (ExtentFlag.INLINE, "inline", "its data is stored in its metadata: it has no blocks"),
    (ExtentFlag.TAIL, "inline", "its data shares a block with other files"),
)


def _layout(info: FileInfo) -> Refusal | None:
    method = method_for(info)
    if method is None:
        return Refusal("no-way", f"no safe method is known for {info.mount.fs_type}")
    if method == "copy and exchange" and info.names > 1:
        return Refusal(
            "hard-links", "it has several names (hard links), and a copy would replace only one"
        )
    if info.extents is None:
        return Refusal("no-extents", "the file system does not report its extents (FIEMAP)")
    return _extents(info.extents)


def _extents(extents: Sequence[Extent]) -> Refusal | None:
    flags = all_flags(extents)
    for flag, code, sentence in _FLAGS:
        if flag in flags:
            return Refusal(code, sentence)
    if not any(extent.is_written for extent in extents):
        return Refusal("nothing-there", "it has no data on the drive: it is empty, or only holes")
    return None


def _journal(info: FileInfo) -> Refusal | None:
    if info.has_journal is False:
        return Refusal(
            "no-journal",
            "its file system has no journal: a power cut during a heal could lose data; instead, "
            "end the programs that use the file, copy it (cp --preserve=all FILE NEW; sync) and "
            "rename the copy (mv NEW FILE)",
        )
    return None


def _shared(info: FileInfo) -> Refusal | None:
    if ExtentFlag.SHARED not in all_flags(info.extents or ()):
        return None
    return Refusal(
        "shared",
        "its blocks are shared with a copy or a snapshot: the rewritten file would take its space "
        "a second time; give --shared to rewrite it anyway",
    )


_CHECKS: Final[tuple[Callable[[FileInfo], Refusal | None], ...]] = (
    _kind, _mount, _swap, _attribute, _permission, _layout, _journal,
)  # fmt: skip
