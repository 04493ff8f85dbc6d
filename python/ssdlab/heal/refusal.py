"""Whether a file may be rewritten, and by which way: decided from what was seen, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ssdlab.storage_stack.attributes import Attribute
from ssdlab.storage_stack.extents import Extent, ExtentFlag, all_flags
from ssdlab.storage_stack.file_info import FileInfo
from ssdlab.storage_stack.filesystem import (
    IN_PLACE,
    LOG_STRUCTURED,
    MEMORY,
    PSEUDO,
    READ_ONLY,
    STACKED,
    is_network,
)

Way = Literal["move extents", "share and compare", "copy and exchange"]
_MAY_BE_COPIED: Final = IN_PLACE | LOG_STRUCTURED
_EXT: Final = frozenset({"ext2", "ext3", "ext4"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file stays as it is: `code` for programs, `sentence` for people."""

    code: str
    sentence: str


def way_of(seen: FileInfo) -> Way | None:
    """How this file's blocks get a new place; None where no way is safe."""
    kind = seen.mount.fs_type
    if kind in _EXT and Attribute.EXTENTS in seen.attributes:
        return "move extents"
    if seen.shares_blocks:
        return "share and compare"
    return "copy and exchange" if kind in _MAY_BE_COPIED else None


def refusal(seen: FileInfo, *, shared: bool = False) -> Refusal | None:
    """The first reason why this file must not be rewritten, or None.

    `shared` allows blocks that other files or snapshots use too. Codes: not-a-file, memory, pseudo,
    network, stacked, read-only, swap, immutable, append-only, verity, encrypted, compressed, dax,
    data-journal, inline, no-permission, no-way, no-extents, nothing-there, hard-links, shared,
    no-journal, and of `changed` and `no_room` their own.
    """
    for look in _LOOKS:
        found = look(seen)
        if found is not None:
            return found
    if not shared:
        return _shared(seen)
    return None


def no_room(seen: FileInfo, rewritten_bytes: int, way: Way) -> Refusal | None:
    """Whether the new copy has room beside the old one, and 1 % stays free.

    Moving and sharing need room for what is in hand; a whole copy for the whole file.
    """
    at_once = seen.size_bytes if way == "copy and exchange" else rewritten_bytes
    needed = min(at_once, CHUNK_BYTES) if way == "move extents" else at_once
    if seen.space.free_bytes >= needed + seen.space.total_bytes // 100:
        return None
    free, more = seen.space.free_bytes >> 20, needed >> 20
    return Refusal("no-room", f"{free} MiB are free; it takes {more} MiB and 1 %: make room")


def changed(seen: FileInfo) -> Refusal | None:
    """Whether the file that was looked at is gone or shorter by now, as by log rotation.

    A longer one is no reason: what it had is healed as planned. Code: changed.
    """
    try:
        status = seen.path.stat()
    except FileNotFoundError:
        what = "it was removed or renamed"
    else:
        if (status.st_dev, status.st_ino) != (seen.device_number, seen.inode):
            what = "another file took its name"
        elif status.st_size < seen.size_bytes:
            what = f"it was truncated from {seen.size_bytes} to {status.st_size} bytes"
        else:
            return None
    return Refusal("changed", f"{what} while it was healed; nothing is lost: run heal again")


CHUNK_BYTES: Final = 32 << 20
"""So much is in hand at once."""


def _kind(seen: FileInfo) -> Refusal | None:
    if not seen.is_plain:
        return Refusal("not-a-file", "it is no plain file")
    return None


def _mount(seen: FileInfo) -> Refusal | None:
    kind, point = seen.mount.fs_type, seen.mount.mount_point
    for code, kinds, why in (
        ("memory", MEMORY, "lives in memory"),
        ("pseudo", PSEUDO, "is made by the kernel and on no drive"),
    ):
        if kind in kinds:
            return Refusal(code, f"{point} is {kind}, which {why}")
    if is_network(kind):
        return Refusal("network", f"{point} is {kind}: heal it on the machine that has the drive")
    if kind in STACKED or kind == "fuse" or kind.startswith("fuse."):
        return Refusal("stacked", f"{point} is {kind}: heal the file below it, on its own mount")
    if seen.mount.has("ro") or kind in READ_ONLY:
        return Refusal("read-only", f"{point} is mounted read-only")
    return None


def _use(seen: FileInfo) -> Refusal | None:
    if seen.is_swap:
        return Refusal("swap", "it is swap space in use: the kernel writes to its blocks directly")
    return None


_ATTRIBUTES: Final = (
    (Attribute.IMMUTABLE, "immutable", "it is immutable (chattr +i)"),
    (Attribute.APPEND_ONLY, "append-only", "it is append-only (chattr +a)"),
    (Attribute.VERITY, "verity", "it is sealed by fs-verity"),
    (Attribute.ENCRYPTED, "encrypted", "the file system encrypts it: its blocks cannot be moved"),
    (Attribute.COMPRESSED, "compressed", "the file system compresses it (chattr +c)"),
    (Attribute.DAX, "dax", "it is mapped straight to memory (dax)"),
    (Attribute.JOURNAL_DATA, "data-journal", "its data goes through the journal (chattr +j)"),
)


def _attribute(seen: FileInfo) -> Refusal | None:
    for attribute, code, sentence in _ATTRIBUTES:
        if attribute in seen.attributes:
            return Refusal(code, sentence)
    if seen.mount.option("data") == "journal":
        return Refusal("data-journal", "data=journal: its data goes through the journal")
    return None


def _permission(seen: FileInfo) -> Refusal | None:
    if not seen.may_write:
        return Refusal("no-permission", "you may not write it, or it is another user's: use sudo")
    return None


_FLAGS: Final = (
    (ExtentFlag.ENCRYPTED, "encrypted", "the file system encrypts it: its blocks cannot be moved"),
    (ExtentFlag.ENCODED, "compressed", "the file system compresses it: rewriting would undo that"),
    (ExtentFlag.INLINE, "inline", "its data lies in the metadata: it has no blocks of its own"),
    (ExtentFlag.TAIL, "inline", "its data shares a block with other files"),
)


def _layout(seen: FileInfo) -> Refusal | None:
    way = way_of(seen)
    if way is None:
        return Refusal("no-way", f"no safe way is known for {seen.mount.fs_type}")
    if way == "copy and exchange" and seen.names > 1:
        return Refusal("hard-links", "it has several names (hard links), which a copy would part")
    if seen.extents is None:
        return Refusal("no-extents", "the file system does not tell where its blocks are")
    return _extents(seen.extents)


def _extents(extents: Sequence[Extent]) -> Refusal | None:
    flags = all_flags(extents)
    for flag, code, sentence in _FLAGS:
        if flag in flags:
            return Refusal(code, sentence)
    if not any(extent.is_written for extent in extents):
        return Refusal("nothing-there", "nothing of it is on the drive: empty, or holes only")
    return None


def _journal(seen: FileInfo) -> Refusal | None:
    if seen.has_journal is False:
        return Refusal("no-journal", "its file system has no journal: a power cut could lose data")
    return None


def _shared(seen: FileInfo) -> Refusal | None:
    if ExtentFlag.SHARED not in all_flags(seen.extents or ()):
        return None
    return Refusal(
        "shared",
        "its blocks are shared with a copy or a snapshot: a rewritten file takes the room a second "
        "time; --shared if that is meant",
    )


_LOOKS: Final[tuple[Callable[[FileInfo], Refusal | None], ...]] = (
    _kind, _mount, _use, _attribute, _permission, _layout, _journal,
)  # fmt: skip
